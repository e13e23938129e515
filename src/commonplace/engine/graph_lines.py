"""The knowledge graph as JSON Lines, for taking it in and handing it out (contract 002, 6 and 11)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from commonplace.engine.entities import Entity, Graph, Relation

_ENTITY = ("type", "name", "entityType", "observations")


@dataclass(slots=True)
class Lines:
    """What a text holds: entities with the keys we do not know, relations, and (line, why) of bad ones."""

    entities: list[tuple[Entity, dict[str, Any]]] = field(default_factory=list)
    relations: list[Relation] = field(default_factory=list)
    bad: list[tuple[int, str]] = field(default_factory=list)


def read(text: str) -> Lines:
    """The graph in `text`: JSON Lines, a JSON array of such objects, or one object of `entities` and `relations`.

    Lines, or members of the array, count from 1. Lines of another type are bad ones too.
    """
    found = Lines()
    text = text.removeprefix("\ufeff")
    whole = _value(text) if text.lstrip()[:1] in ("[", "{") else None
    if isinstance(whole, list):
        for number, each in enumerate(whole, 1):
            _take(found, each, number)
    elif isinstance(whole, dict) and "type" not in whole:
        for kind, key in (("entity", "entities"), ("relation", "relations")):
            listed = whole.get(key)
            for each in listed if isinstance(listed, list) else ():
                _take(found, {**each, "type": kind} if isinstance(each, dict) else each, 1)
    else:
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                _take(found, _value(line) if _is_text(line) else None, number)
    return found


def _value(text: str) -> Any:
    """The JSON value, None when it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _is_text(line: str) -> bool:
    """Whether its bytes were UTF-8; those that were not came as lone surrogates."""
    try:
        line.encode()
    except UnicodeEncodeError:
        return False
    return True


def _take(found: Lines, value: Any, number: int) -> None:
    if not isinstance(value, dict):
        found.bad.append((number, "not a JSON object"))
    elif value.get("type") == "entity":
        name, kind, texts = value.get("name"), value.get("entityType"), value.get("observations")
        kind, texts = "" if kind is None else kind, [] if texts is None else texts
        if not isinstance(name, str) or not isinstance(kind, str) or not _are_texts(texts):
            found.bad.append((number, "no entity: it needs a name, and observations that are texts"))
            return
        more = {key: each for key, each in value.items() if key not in _ENTITY}
        found.entities.append((Entity(_sound(name), _sound(kind), tuple(map(_sound, texts))), more))
    elif value.get("type") == "relation":
        ends = [value.get(key) for key in ("from", "to", "relationType")]
        if not _are_texts(ends):
            found.bad.append((number, "no relation: it needs from, to and relationType"))
            return
        found.relations.append(Relation(*map(_sound, ends)))
    else:
        found.bad.append((number, "neither entity nor relation"))


def _are_texts(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(each, str) for each in values)


def _sound(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def written(graph: Graph) -> list[str]:
    """The graph's lines as they are at one moment, entities first."""
    return graph.at_once(lambda: [*_written(graph)])


def _written(graph: Graph) -> Iterator[str]:
    keys = graph.keys()
    for key, texts in zip(keys, graph.observations(keys), strict=True):
        yield _line(type="entity", name=key.name, entityType=key.type, observations=texts)
    for each in graph.relations():
        yield _line(**{"type": "relation", "from": each.source, "to": each.target, "relationType": each.type})


def _line(**values: Any) -> str:
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))
