"""The lines of a graph file: the entity or relation each says, and one line changed in place; a
whole graph as text (contract 002)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from memoranda.note.entity import Entity, GraphRelation
from memoranda.sources.json_files import refuse_constant
from memoranda.text.unicode import is_valid_unicode, repair_surrogates

ENTITY_KEYS = ("type", "name", "entityType", "observations")
_BLANK = (" ", "\t", "\r")
_EMPTY = (b"{}", b"[]")
# Signs that a line, or a file, may be in one of the forms of `as_lines`.
_MAYBE_OTHER_FORM = re.compile(rb'[}\]][ \t]*\{|"(?:entities|relations)"|\A\s*(?:\{\s*\}|\[\s*\])')
# Lists of a document that holds a whole graph, and the type of their members.
_MEMBERS = {"entities": "entity", "relations": "relation"}
_BOM = b"\xef\xbb\xbf"
# Lines looked at to recognise a file.
_FIRST_LINES = 100
# Lines, and bytes of each, that show what a file is.
_LONGEST = 1 << 20


class BadLine(ValueError):
    """A line that is not a JSON object, or an object that does not fit its type. The text gives the
    reason.
    """


def parse_graph_object(value: dict[str, Any]) -> Entity | GraphRelation | None:
    """The entity or relation in a JSON object.

    None for an object of another type. Raises BadLine.
    """
    kind = value.get("type")
    if kind == "entity":
        name = value.get("name")
        type_ = value.get("entityType")
        texts = value.get("observations")
        if not isinstance(name, str):
            raise BadLine("an entity without a name")
        are_texts = texts is None or (
            isinstance(texts, list) and all(isinstance(text, str) for text in texts)
        )
        if not isinstance(type_, str | None) or not are_texts:
            raise BadLine("an entity whose type or observations are no texts")
        return Entity(
            repair_surrogates(name),
            repair_surrogates(type_ or ""),
            tuple(map(repair_surrogates, texts or ())),
        )
    if kind == "relation":
        source, target, relation = (value.get(key) for key in ("from", "to", "relationType"))
        if not (isinstance(source, str) and isinstance(target, str) and isinstance(relation, str)):
            raise BadLine("a relation without from, to or relationType")
        return GraphRelation(
            repair_surrogates(source), repair_surrogates(target), repair_surrogates(relation)
        )
    if not isinstance(kind, str):
        raise BadLine("an object without a type")
    return None


def holds_graph(file: Path) -> bool:
    """Whether a file holds a graph. Raises OSError.

    It does if one of its first lines is an entity or a relation, if it has another known form, or
    if it is an empty `.json`.
    """
    with file.open("rb") as lines:
        if any(said_by(lines.readline(_LONGEST)) is not None for _ in range(_FIRST_LINES)):
            return True
    if file.suffix.lower() != ".json":
        return False
    data = file.read_bytes()
    return not data.strip() or as_lines(data) is not None


def said_by(line: bytes) -> Entity | GraphRelation | None:
    """The entity or relation a line holds, None for any other line."""
    try:
        return parse_graph_object(parse_line(line) or {})
    except BadLine:
        return None


def parse_line(line: bytes) -> dict[str, Any] | None:
    """The object in a line, None for a blank one. Raises BadLine."""
    line = line.removeprefix(_BOM)
    if not line.strip():
        return None
    try:
        value = json.loads(line.decode(), parse_constant=refuse_constant)
    except UnicodeDecodeError:
        raise BadLine("not UTF-8") from None
    except (ValueError, RecursionError):
        raise BadLine("not JSON") from None
    if not isinstance(value, dict):
        raise BadLine("no JSON object")
    return value


def dump_line(value: Any) -> str:
    """`value` as JSON in one line without blanks, other alphabets raw."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def entity_line(entity: Entity, other_keys: dict[str, Any]) -> str:
    """An entity as one line of JSON, with the further keys `other_keys`."""
    value = {
        "type": "entity",
        "name": entity.name,
        "entityType": entity.type,
        "observations": entity.observations,
    }
    return dump_line(
        value | {key: item for key, item in other_keys.items() if key not in ENTITY_KEYS}
    )


def relation_line(relation: GraphRelation) -> str:
    """A relation as one line of JSON."""
    ends = {"from": relation.source, "to": relation.target, "relationType": relation.type}
    return dump_line({"type": "relation", **ends})


def with_members(line: bytes, **members: Any) -> bytes:
    """Set these keys in a line that is a JSON object. All its other bytes stay. New keys come last."""
    if line.startswith(_BOM):
        bom = _BOM
    else:
        bom = b""
    text = line.removeprefix(_BOM).decode()
    for key, value in members.items():
        new_value = dump_line(value)
        spans = [(start, end) for name, start, end in _members(text) if name == key]
        if spans:
            start, end = spans[-1]
            text = text[:start] + new_value + text[end:]
        else:
            brace = text.rindex("}")
            head = text[:brace].rstrip()
            if head.endswith("{"):
                comma = ""
            else:
                comma = ","
            text = f"{head}{comma}{json.dumps(key)}:{new_value}{text[brace:]}"
    return bom + text.encode() + (b"" if text.endswith("\n") else b"\n")


def _members(text: str) -> Iterator[tuple[str, int, int]]:
    """(key, start and end of its value) of the object in `text`, which is known to be one."""
    decoder = json.JSONDecoder()
    position = text.index("{") + 1
    while True:
        position = _skip_blanks(text, position)
        if text[position] == "}":
            return
        key, position = decoder.raw_decode(text, position)
        start = _skip_blanks(text, _skip_blanks(text, position) + 1)
        _, end = decoder.raw_decode(text, start)
        yield key, start, end
        position = _skip_blanks(text, end)
        position += text[position] == ","


def _skip_blanks(text: str, position: int) -> int:
    while text[position] in " \t\r\n":
        position += 1
    return position


def as_lines(data: bytes) -> list[bytes] | None:
    """The lines into which a file of another known form is converted. None if its own lines count.

    Known forms are `{}` and `[]`, one object of `entities` and `relations`, in one line or several,
    and objects glued on one line. Sound lines, and lines that are bad in other ways, keep their
    bytes.
    """
    text = data.removeprefix(_BOM).strip()
    first, _, other_lines = text.partition(b"\n")
    is_begun_empty = first.strip() in _EMPTY
    if not (is_begun_empty or _MAYBE_OTHER_FORM.search(text)):
        return None
    members = _graph_members(json_value(text))
    if members is not None:
        return members
    lines = (other_lines if is_begun_empty else data).removesuffix(b"\n")
    all_lines: list[bytes] = []
    is_other = is_begun_empty
    for line in lines.split(b"\n"):
        parts = _glued(line)
        is_other = is_other or parts is not None
        all_lines += [line + b"\n"] if parts is None else parts
    if not is_other:
        return None
    if lines:
        return all_lines
    return []


def _glued(line: bytes) -> list[bytes] | None:
    """The lines in one: the objects glued on it, or the members of `entities` and `relations`. None
    for any other line."""
    if not _MAYBE_OTHER_FORM.search(line):
        return None
    parts = _values(line.removeprefix(_BOM))
    if parts is None:
        return None
    member_lines: list[bytes] = []
    is_other = len(parts) > 1
    for value, part in parts:
        members = _graph_members(value)
        is_other = is_other or members is not None
        member_lines += [part + b"\n"] if members is None else members
    if is_other:
        return member_lines
    return None


def _values(line: bytes) -> list[tuple[Any, bytes]] | None:
    """The objects and empty arrays that make up a line, each with its bytes.

    None for other lines.
    """
    decoder = json.JSONDecoder()
    values: list[tuple[Any, bytes]] = []
    try:
        text = line.decode().strip()
        position = 0
        while position < len(text):
            value, end = decoder.raw_decode(text, position)
            if not isinstance(value, dict) and value != []:
                return None
            values.append((value, text[position:end].encode()))
            position = end
            while text[position : position + 1] in _BLANK:
                position += 1
    except (ValueError, RecursionError):
        return None
    return values


def _graph_members(value: Any) -> list[bytes] | None:
    """The lines for an object of `entities` and `relations`, or for an empty one. None for any
    other value.

    Other members of the object become a line too.
    """
    if value in ({}, []):
        return []
    if not isinstance(value, dict) or "type" in value or not value.keys() & {*_MEMBERS}:
        return None
    lists = {key: value[key] for key in _MEMBERS if value.get(key) is not None}
    if not all(map(_holds_objects, lists.values())):
        return None
    made_members: list[bytes] = []
    for key, members in lists.items():
        made_members += [_member_line(_MEMBERS[key], member) for member in members]
    other_members = {key: item for key, item in value.items() if key not in _MEMBERS}
    if other_members:
        made_members.append(_raw_line(other_members))
    return made_members


def _holds_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(member, dict) for member in value)


def _member_line(kind: str, member: dict[str, Any]) -> bytes:
    """A member as a line. For an entity without `entityType`, its `type` is used."""
    named_kind = member.get("type")
    if kind == "entity" and "entityType" not in member and named_kind not in (None, kind):
        member = member | {"entityType": named_kind}
    return _raw_line({"type": kind} | member | {"type": kind})


def _raw_line(value: Any) -> bytes:
    text = dump_line(value)
    if not is_valid_unicode(text):
        text = json.dumps(value, separators=(",", ":"))
    return text.encode() + b"\n"


def shape_of(data: bytes, lines: Sequence[bytes]) -> str:
    """The kind of file this is, if not one of lines of JSON objects; "" if it is one."""
    stripped = (text for line in lines if (text := line.removeprefix(_BOM).strip()))
    full = list(islice(stripped, 2))
    if not full:
        return ""
    first = json_value(full[0])
    if isinstance(first, dict) and (len(full) > 1 or "type" in first):
        return ""
    full += stripped
    document = json_value(data.removeprefix(_BOM).strip())
    if isinstance(document, list):
        return "a JSON array"
    if document is not None and len(full) > 1:
        return "one JSON value over several lines"
    if isinstance(document, dict):
        return "one JSON object without a type"
    if not any(line.startswith(b"{") for line in full):
        return "a file of another kind"
    is_torn = full[0] == b"{" or full[0].startswith(b"[")
    if is_torn and not any(isinstance(json_value(line), dict) for line in full):
        return "one JSON value over several lines, cut off"
    return ""


def json_value(text: str | bytes) -> Any:
    """The JSON value, or None."""
    try:
        return json.loads(text if isinstance(text, str) else text.decode())
    except (ValueError, RecursionError):
        return None


@dataclass(slots=True)
class GraphText:
    """Read the lines of a text: entities with the keys we do not know, relations, and (line, why)
    of bad ones."""

    entities: list[tuple[Entity, dict[str, Any]]] = field(default_factory=list)
    relations: list[GraphRelation] = field(default_factory=list)
    bad: list[tuple[int, str]] = field(default_factory=list)


def parse_graph(text: str) -> GraphText:
    """The graph in `text`: JSON Lines, a JSON array of such objects, or one object of `entities`
    and `relations`. Lines, or members of the array, count from 1. Lines of another type are bad
    ones too."""
    text = text.removeprefix("\ufeff")
    if text.lstrip()[:1] in ("[", "{"):
        document = json_value(text)
    else:
        document = None
    if isinstance(document, list):
        return _collect(enumerate(document, 1))
    if isinstance(document, dict) and "type" not in document:
        members = [("entity", document.get("entities")), ("relation", document.get("relations"))]
        listed: list[tuple[str, Any]] = []
        for kind, values in members:
            if isinstance(values, list):
                listed += [(kind, value) for value in values]
        return _collect(
            (1, {**member, "type": kind} if isinstance(member, dict) else member)
            for kind, member in listed
        )
    lines = ((number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip())
    return _collect(
        (number, json_value(line) if is_valid_unicode(line) else None) for number, line in lines
    )


_BAD = {
    "entity": "no entity: it needs a name, and observations that are texts",
    "relation": "no relation: it needs from, to and relationType",
}


def _collect(values: Iterable[tuple[int, Any]]) -> GraphText:
    graph_text = GraphText()
    for number, value in values:
        if not isinstance(value, dict):
            graph_text.bad.append((number, "not a JSON object"))
            continue
        try:
            graph_object = parse_graph_object(value)
        except BadLine:
            graph_object = None
        if isinstance(graph_object, Entity):
            graph_text.entities.append(
                (graph_object, {key: item for key, item in value.items() if key not in ENTITY_KEYS})
            )
        elif graph_object is not None:
            graph_text.relations.append(graph_object)
        else:
            graph_text.bad.append(
                (number, _BAD.get(str(value.get("type")), "neither entity nor relation"))
            )
    return graph_text
