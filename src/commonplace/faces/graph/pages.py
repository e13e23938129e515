"""Bounded replies: which part of an answer goes into one page, and where the next begins (contract 002, 4).

The answer is one sequence: each entity, then the relations that touch it and no earlier entity; last the
relations that touch none. Inside an entity's relations the order is that of the source's place and then of a
digest, not of the place inside the source: so a cursor survives what is added or deleted in between.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.engine.entities import EntityKey, GraphRelation
from commonplace.errors import InvalidInput
from commonplace.faces.arguments import Arguments

if TYPE_CHECKING:
    from commonplace.engine.graph_verbs import Graph

_BATCH = 200  # entities whose observations are read together
_FRAME = 200  # characters of a page beside its items and its cursor
_CURSOR_PER_CHARACTER = 16  # of a cursor, for each in what it tells: 12 as JSON at most, a third more in base64
_LEAST_ITEM = 30  # characters an entity or a relation takes at least
Data = dict[str, Any]
Position = list[int | str]
"""What orders the relations of one entity, whatever else comes or goes."""


@dataclass(frozen=True, slots=True)
class Form:
    """How replies look: JSON indented by so many blanks (None = compact), at most `most` characters (0 = any)."""

    indent: int | None = None
    most: int = 80_000

    @property
    def teaches(self) -> bool:
        """Whether a second text may say what was not done: not in the presets, whose replies are fixed."""
        return self.indent is None

    def text(self, value: Any) -> str:
        """`value` as JSON, other alphabets raw."""
        if self.indent is None:
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        from pydantic_core import to_json  # loaded where a server is; fast, also with an indent

        return to_json(value, indent=self.indent).decode()

    def size(self, value: Any) -> int:
        """About how many characters `value` takes as an item of a list of the reply, never fewer."""
        text = self.text(value)
        return len(text) + 2 if self.indent is None else len(text) + 2 + 2 * self.indent * (text.count("\n") + 1)


@dataclass(frozen=True, slots=True)
class Paging:
    """What the caller wants to see of the answer; see the table of contract 002, 4."""

    limit: int | None = None
    offset: int = 0
    cursor: str | None = None
    first_observation: int = 0
    observations: int | None = None
    ranked: bool = False

    @classmethod
    def of(cls, arguments: Arguments) -> Paging:
        """From a tool's arguments."""
        get, ranked = arguments.get, arguments.get("ranked", False)
        window = get("observationOffset", 0), get("observationLimit")
        return cls(get("limit", 20 if ranked else None), get("offset", 0), get("cursor"), *window, ranked)


def relations_data(relations: Iterable[GraphRelation]) -> list[Data]:
    """Relations as replies hold them."""
    return [{"from": source, "to": target, "relationType": type} for source, target, type, _ in relations]


class _Item(NamedTuple):
    """An entity of the sequence, or a relation with its position and the number of the entity it comes with."""

    number: int
    data: Data
    relation: GraphRelation | None = None
    position: Position | None = None
    in_rest: bool = False


class _Cursor(NamedTuple):
    """The last item shown: its entity's `order`, or in a ranking the digests of all entities `seen`; the position
    of its relation; whether that touches no entity."""

    order: Position | None
    position: Position | None
    in_rest: bool
    seen: list[str] | None = None

    def text(self) -> str:
        text = json.dumps(list(self), separators=(",", ":"))
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    @classmethod
    def read(cls, text: str) -> _Cursor:
        """Raises InvalidInput for a text we never wrote."""
        try:
            data = base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
            order, position, in_rest, seen = json.loads(data)
        except (ValueError, TypeError, RecursionError):
            raise InvalidInput("Invalid cursor") from None
        for each in (order, position, seen):
            if each is not None and not (isinstance(each, list) and all(isinstance(one, int | str) for one in each)):
                raise InvalidInput("Invalid cursor")
        if not isinstance(in_rest, bool) or (order is None) == (seen is None):
            raise InvalidInput("Invalid cursor")
        return cls(order, position, in_rest, seen)


class GraphReply:
    """All entities and relations of one answer, in the order of the sequence. Raises InvalidInput for a cursor
    that is none."""

    def __init__(
        self, graph: Graph, keys: Sequence[EntityKey], relations: Sequence[GraphRelation], paging: Paging, form: Form
    ):
        self._graph, self._keys, self._paging, self._form = graph, list(keys), paging, form
        self._relations = relations
        self._cursor = _Cursor.read(paging.cursor) if paging.cursor is not None else None
        if self._cursor is not None and self._cursor.seen is not None:  # the ranking may have changed since
            places = {digest: at for at, digest in enumerate(self._cursor.seen)}
            self._keys.sort(key=lambda key: places.get(_digest(key), len(places)))

    def data(self) -> tuple[Data, str]:
        """The reply's data, and its text."""
        asked = self._paging
        is_plain = asked.limit is None and not asked.offset and asked.cursor is None and not asked.ranked
        if is_plain and (data := self._whole()) is not None:  # a small answer comes as it is, without totals
            text = self._form.text(data)
            if not self._form.most or len(text) <= self._form.most:
                return data, text
        totals = {"totalEntities": len(self._keys), "totalRelations": len(self._relations)}
        data = {"entities": [], "relations": [], **totals} if self._paging.limit == 0 else self._page(totals)
        return data, self._form.text(data)

    def _whole(self) -> Data | None:
        """Everything; None if it is found not to fit into one reply."""
        most, entities, used = self._form.most or math.inf, [], 0
        if _LEAST_ITEM * (len(self._keys) + len(self._relations)) > most:
            return None
        for entity in self._entities(0):
            entities.append(entity)
            used += len(entity["name"]) + sum(map(len, entity["observations"]))
            if used > most:
                return None
        return {"entities": entities, "relations": relations_data(self._relations)}

    def _entities(self, start: int) -> Iterator[Data]:
        """The entities from `start` on with the observations asked for."""
        first, count = self._paging.first_observation, self._paging.observations
        end = None if count is None else first + count
        for at in range(start, len(self._keys), _BATCH):
            part = self._keys[at : at + _BATCH]
            for key, texts in zip(part, self._graph.observations(part), strict=True):
                window = texts[first:end]
                data: Data = {"name": key.name, "entityType": key.type, "observations": window}
                if len(window) < len(texts):
                    data["observationCount"] = len(texts)
                if key.project is not None:
                    data["project"] = key.project
                yield data

    def _page(self, totals: Data) -> Data:
        """As many items from the cursor on as fit, and the cursor of the next page if there is more."""
        room = self._form.most - _FRAME if self._form.most else math.inf
        limit = math.inf if self._paging.limit is None else self._paging.limit
        entities: list[Data] = []
        relations: list[GraphRelation] = []
        last: _Item | None = None
        more: Data = {}
        for item in self._sequence():
            size = self._form.size(item.data)
            cursor_size = self._cursor_size(item, room - size) if self._form.most else 0
            is_full = item.relation is None and len(entities) >= limit
            if last is not None and (is_full or size + cursor_size > room):
                more["nextCursor"] = self._cursor_after(last)
                break
            if item.relation is not None:
                relations.append(item.relation)
            elif size + cursor_size <= room:
                entities.append(item.data)
            else:
                entities.append(self._first_observations(item.data, room - cursor_size))
                size = self._form.size(entities[-1])
            room -= size
            last = item
        relations.sort(key=lambda each: each.order)
        return {"entities": entities, "relations": relations_data(relations), **totals, **more}

    def _first_observations(self, entity: Data, room: float) -> Data:
        """An entity too large for a page, with the first observations that fit, at least one."""
        texts = entity["observations"]
        short = {**entity, "observations": [], "observationCount": entity.get("observationCount", len(texts))}
        room -= self._form.size(short)
        for each in texts:
            room -= self._form.size(each) + 2 * (self._form.indent or 0)
            if room < 0 and short["observations"]:
                break
            short["observations"].append(each)
        return short if len(short["observations"]) < short["observationCount"] else entity

    def _cursor_size(self, item: _Item, room: float) -> int:
        """As many characters as the cursor after `item` takes; where more than these surely fit into `room`, more."""
        if self._paging.ranked:
            return 20 * (item.number + 2) + 400
        size = _CURSOR_PER_CHARACTER * len(repr((self._order(item), item.position)))
        return size if size <= room else len(self._cursor_after(item))

    def _order(self, item: _Item) -> Position:
        return list(self._keys[item.number].order) if self._keys else []

    def _cursor_after(self, item: _Item) -> str:
        if self._paging.ranked:
            seen = [_digest(each) for each in self._keys[: item.number + 1]]
            return _Cursor(None, item.position, item.in_rest, seen).text()
        return _Cursor(self._order(item), item.position, item.in_rest).text()

    def _sequence(self) -> Iterator[_Item]:
        """What comes from the cursor or the offset on."""
        begin, resumes = self._begin()
        in_rest = resumes and self._cursor is not None and self._cursor.in_rest
        position = self._cursor.position if self._cursor is not None and resumes else None
        if in_rest:
            del self._keys[begin:]  # what was created since is no part of this answer
        first: dict[str, int] = {}
        for number, key in enumerate(self._keys):
            first.setdefault(key.name, number)
        groups: dict[int, list[GraphRelation]] = {}
        rest = len(self._keys)
        for each in self._relations:
            groups.setdefault(min(first.get(each.source, rest), first.get(each.target, rest)), []).append(each)
        if not in_rest:
            if resumes:
                yield from _items(groups, begin - 1, rest, position)
            for number, entity in enumerate(self._entities(begin), begin):
                yield _Item(number, entity)
                yield from _items(groups, number, rest)
        yield from _items(groups, rest, rest, position if in_rest else None)

    def _begin(self) -> tuple[int, bool]:
        """The number of the next entity, and whether the sequence goes on right after the cursor's item: not if
        its entity is gone, and its relations with it."""
        cursor = self._cursor
        if cursor is None:
            return self._paging.offset, False
        if cursor.seen is not None:
            seen = set(cursor.seen)
            begin = sum(_digest(key) in seen for key in self._keys)
            is_there = bool(begin) and _digest(self._keys[begin - 1]) == cursor.seen[-1]
        else:
            order = tuple(cursor.order or ())
            try:
                begin = sum(key.order <= order for key in self._keys)
            except TypeError:
                raise InvalidInput("Invalid cursor") from None
            is_there = bool(begin) and self._keys[begin - 1].order == order
        return begin, is_there or cursor.in_rest


def _items(
    groups: Mapping[int, Sequence[GraphRelation]], number: int, rest: int, after: Position | None = None
) -> list[_Item]:
    """The relations that come with entity `number` of `rest`, or with none, in the order of the sequence."""
    items, group = [], groups.get(number, ())
    for each, data in zip(group, relations_data(group), strict=True):
        digest = blake2b("\0".join(each.triple).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
        position = [*each.order[:-1], digest]
        if after is None or position > after:
            items.append(_Item(min(number, rest - 1), data, each, position, number == rest))
    return sorted(items, key=lambda item: item.position or [])


def _digest(key: EntityKey) -> str:
    name = f"{key.project or ''}\0{key.name}\0{key.order}"
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
