"""Bounded replies: which part of an answer goes into one page, and where the next begins (contract 002, 4).

The answer is one sequence: each entity, then the relations that touch it and no earlier entity; last the
relations that touch none. Inside an entity's relations the order is that of the source's place and then of a
digest, not of the place inside the source: so a cursor survives what is added or deleted in between.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from json.encoder import encode_basestring as _quoted
from typing import Any

from commonplace.engine.entities import Graph, Key, Relation
from commonplace.errors import InvalidInput

_AT_ONCE = 200
"""Entities whose observations are read together."""
_FRAME = 200
"""Characters of a page beside its items and its cursor."""
Data = dict[str, Any]
_RELATION = ("from", "to", "relationType")


@dataclass(frozen=True, slots=True)
class Form:
    """How replies look: JSON indented by so many blanks (None = compact), at most `most` characters (0 = any)."""

    indent: int | None = None
    most: int = 80_000

    def text(self, value: Any) -> str:
        """`value` as JSON, other alphabets raw."""
        if self.indent is None:
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return _indented(value, "\n", " " * self.indent)

    def size(self, value: Any) -> int:
        """About how many characters `value` takes as an item of a list of the reply, never fewer."""
        text = self.text(value)
        return len(text) + 2 if self.indent is None else len(text) + 2 + 2 * self.indent * (text.count("\n") + 1)


def _indented(value: Any, margin: str, blanks: str) -> str:
    """What json.dumps makes of texts, numbers, lists and objects with `indent`, in a fraction of its time, as that
    one goes value by value through generators. `margin`: a line break and the blanks before the value."""
    if isinstance(value, str):
        return _quoted(value)
    inner = margin + blanks
    if isinstance(value, dict) and value:
        rows = [
            f"{_quoted(key)}: {_quoted(each) if each.__class__ is str else _indented(each, inner, blanks)}"
            for key, each in value.items()
        ]
        return f"{{{inner}{f',{inner}'.join(rows)}{margin}}}"
    if isinstance(value, list) and value:
        if all(each.__class__ is dict and tuple(each) == _RELATION for each in value):
            return f"[{inner}{_relations(value, inner, inner + blanks)}{margin}]"
        rows = [_quoted(each) if each.__class__ is str else _indented(each, inner, blanks) for each in value]
        return f"[{inner}{f',{inner}'.join(rows)}{margin}]"
    return json.dumps(value)


def _relations(rows: list[Data], margin: str, inner: str) -> str:
    """The items of a list of relations, most of a large reply."""
    head, middle, last = f'{{{inner}"from": ', f',{inner}"to": ', f',{inner}"relationType": '
    return f",{margin}".join([
        f"{head}{_quoted(row['from'])}{middle}{_quoted(row['to'])}{last}{_quoted(row['relationType'])}{margin}}}"
        for row in rows
    ])  # fmt: skip


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
    def of(cls, given: Data) -> Paging:
        """From a tool's arguments."""
        ranked = given.get("ranked", False)
        return cls(given.get("limit", 20 if ranked else None), given.get("offset", 0), given.get("cursor"),
                   given.get("observationOffset", 0), given.get("observationLimit"), ranked)  # fmt: skip

    @property
    def is_plain(self) -> bool:
        """Whether a small answer comes as it is, without totals."""
        return self.limit is None and not self.offset and self.cursor is None and not self.ranked


def relation_data(relation: Relation) -> Data:
    """A relation as replies hold it."""
    return {"from": relation.source, "to": relation.target, "relationType": relation.type}


class Answer:
    """All entities and relations of one answer, in the order of the sequence."""

    def __init__(self, graph: Graph, keys: Sequence[Key], relations: Sequence[Relation], paging: Paging, form: Form):
        self._graph, self._keys, self._paging, self._form = graph, list(keys), paging, form
        self._relations = relations
        self._start = _Cursor.read(paging.cursor) if paging.cursor is not None else None
        if self._start is not None and self._start.seen is not None:
            self._arrange(self._start.seen)

    def _arrange(self, seen: Sequence[str]) -> None:
        """Put entities seen on earlier pages in front, for a ranking may have changed since."""
        places = {mark: at for at, mark in enumerate(seen)}
        known = [key for key in self._keys if _mark(key) in places]
        known.sort(key=lambda key: places[_mark(key)])
        self._keys = [*known, *(key for key in self._keys if _mark(key) not in places)]

    def data(self) -> tuple[Data, str]:
        """The reply's data, and its text."""
        if self._paging.is_plain and (whole := self._whole()) is not None:
            return whole
        totals = {"totalEntities": len(self._keys), "totalRelations": len(self._relations)}
        if self._paging.limit == 0:
            data = {"entities": [], "relations": [], **totals}
            return data, self._form.text(data)
        data = self._page() | totals
        if "nextCursor" in data:
            data["nextCursor"] = data.pop("nextCursor")  # the last key
        return data, self._form.text(data)

    def _whole(self) -> tuple[Data, str] | None:
        """Everything, if it fits into one reply."""
        most, entities, used = self._form.most, [], 0
        if most and 30 * (len(self._keys) + len(self._relations)) > most:
            return None
        for _, entity in self._entities(0):
            entities.append(entity)
            used += len(entity["name"]) + sum(map(len, entity["observations"]))
            if most and used > most:
                return None
        data = {"entities": entities, "relations": [relation_data(each) for each in self._relations]}
        text = self._form.text(data)
        return (data, text) if not most or len(text) <= most else None

    def _entities(self, start: int) -> Iterator[tuple[int, Data]]:
        """The entities from `start` on with the observations asked for; each with its number."""
        for at in range(start, len(self._keys), _AT_ONCE):
            part = self._keys[at : at + _AT_ONCE]
            for number, (key, texts) in enumerate(zip(part, self._graph.observations(part), strict=True), at):
                yield number, self._entity(key, texts)

    def _entity(self, key: Key, texts: list[str]) -> Data:
        first, count = self._paging.first_observation, self._paging.observations
        window = texts[first : None if count is None else first + count] if first or count is not None else texts
        data: Data = {"name": key.name, "entityType": key.type, "observations": window}
        if len(window) < len(texts):
            data["observationCount"] = len(texts)
        if key.project is not None:
            data["project"] = key.project
        return data

    def _page(self) -> Data:
        page = _Page(self._form, self._paging.limit)
        for item in self._sequence():
            if not page.take(item, self._cursor_size(item)):
                break
        data: Data = {"entities": page.entities, "relations": [relation_data(each) for each in sorted(
            page.relations, key=lambda each: each.order)]}  # fmt: skip
        if page.is_cut and page.last is not None:
            data["nextCursor"] = self._cursor_after(page.last)
        return data

    def _cursor_size(self, item: _Item) -> int:
        """At least as many characters as the cursor after the item takes."""
        if not self._form.most:
            return 0
        return 20 * (item.number + 2) + 400 if self._paging.ranked else len(self._cursor_after(item))

    def _cursor_after(self, item: _Item) -> str:
        key = self._keys[item.number] if 0 <= item.number < len(self._keys) else None
        mark = item.mark if item.relation is not None else None
        if self._paging.ranked:
            seen = [_mark(each) for each in self._keys[: item.number + 1]]
            return _Cursor(None, mark, item.is_rest, seen).written()
        order = list(key.order) if key else list(self._keys[-1].order) if self._keys else []
        return _Cursor(order, mark, item.is_rest).written()

    def _sequence(self) -> Iterator[_Item]:
        """What comes from the cursor or the offset on."""
        begin, mark, in_rest = self._place()
        first = {}
        for number, key in enumerate(self._keys):
            first.setdefault(key.name, number)
        groups: dict[int, list[_Item]] = {}
        last = len(self._keys)
        for each in self._relations:
            number = min(first.get(each.source, last), first.get(each.target, last))
            groups.setdefault(number, []).append(_Item(number, None, each, _place_of(each), number == last))
        if mark is not None and not in_rest:
            yield from self._after(groups.get(begin - 1, ()), mark)
        elif begin and not in_rest and self._start is not None:
            yield from sorted(groups.get(begin - 1, ()), key=lambda item: item.mark)
        if not in_rest:
            for number, entity in self._entities(begin):
                yield _Item(number, entity)
                yield from sorted(groups.get(number, ()), key=lambda item: item.mark)
        rest = [_Item(last - 1, None, item.relation, item.mark, True) for item in groups.get(last, ())]
        yield from self._after(rest, mark if in_rest else None)

    @staticmethod
    def _after(items: Sequence[_Item], mark: list[Any] | None) -> list[_Item]:
        return sorted((item for item in items if mark is None or item.mark > mark), key=lambda item: item.mark)

    def _place(self) -> tuple[int, list[Any] | None, bool]:
        """(number of the next entity, mark of the last relation shown with the one before, whether in the rest)."""
        cursor = self._start
        if cursor is None:
            return self._paging.offset, None, False
        if cursor.seen is not None:
            marks = set(cursor.seen)
            begin = sum(_mark(key) in marks for key in self._keys)
            is_there = bool(begin) and _mark(self._keys[begin - 1]) == cursor.seen[-1]
        else:
            order = tuple(cursor.order or ())
            try:
                begin = sum(key.order <= order for key in self._keys)
                is_there = bool(begin) and self._keys[begin - 1].order == order
            except TypeError:
                raise InvalidInput("Invalid cursor") from None
        if cursor.in_rest:
            self._keys = self._keys[:begin]  # what was created since is no part of this answer
            return begin, cursor.mark, True
        if not is_there:  # the entity is gone, and its relations with it
            self._start = None
            return begin, None, False
        return begin, cursor.mark, False


@dataclass(slots=True)
class _Item:
    """An entity of the sequence, or a relation with the number of the entity it comes with."""

    number: int
    entity: Data | None
    relation: Relation | None = None
    mark: list[Any] | None = None
    is_rest: bool = False


class _Page:
    """Items taken as long as they fit."""

    def __init__(self, form: Form, limit: int | None):
        self._form, self._limit = form, limit
        self._room = form.most - _FRAME if form.most else None
        self.entities: list[Data] = []
        self.relations: list[Relation] = []
        self.last: _Item | None = None
        self.is_cut = False

    def take(self, item: _Item, cursor: int) -> bool:
        """Whether the item is on this page; `cursor` is the size of the one that would follow it."""
        if item.entity is not None and self._limit is not None and len(self.entities) >= self._limit:
            return self._cut()
        if self._room is not None:
            size = self._form.size(item.entity or relation_data(item.relation))  # type: ignore[arg-type]
            if size + cursor > self._room:
                if self.last is not None:
                    return self._cut()
                if item.entity is not None:
                    item.entity = self._shortened(item.entity, cursor)
                    size = self._form.size(item.entity)
            self._room -= size
        if item.entity is not None:
            self.entities.append(item.entity)
        elif item.relation is not None:
            self.relations.append(item.relation)
        self.last = item
        return True

    def _cut(self) -> bool:
        self.is_cut = True
        return False

    def _shortened(self, entity: Data, cursor: int) -> Data:
        """An entity too large for a page, with the first observations that fit, at least one."""
        texts = entity["observations"]
        count = entity.get("observationCount", len(texts))
        short = {**entity, "observations": [], "observationCount": count}
        assert self._room is not None
        room = self._room - self._form.size(short) - cursor
        for each in texts:
            room -= self._form.size(each) + 2 * (self._form.indent or 0)
            if room < 0 and short["observations"]:
                break
            short["observations"].append(each)
        return short if len(short["observations"]) < count else entity


@dataclass(frozen=True, slots=True)
class _Cursor:
    """The last item shown: its entity's `order`, or in a ranking all that were `seen`; the relation's `mark`."""

    order: list[Any] | None
    mark: list[Any] | None
    in_rest: bool
    seen: list[str] | None = None

    def written(self) -> str:
        """As an opaque text."""
        text = json.dumps([self.order, self.mark, self.in_rest, self.seen], separators=(",", ":"))
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    @classmethod
    def read(cls, text: str) -> _Cursor:
        """Raises InvalidInput for a text we never wrote."""
        try:
            order, mark, in_rest, seen = json.loads(
                base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
            )
        except (ValueError, TypeError, RecursionError):
            raise InvalidInput("Invalid cursor") from None
        lists = all(each is None or isinstance(each, list) for each in (order, mark, seen))
        if not lists or not isinstance(in_rest, bool) or (order is None) == (seen is None):
            raise InvalidInput("Invalid cursor")
        if not all(isinstance(each, int | str) for each in [*(order or ()), *(mark or ()), *(seen or ())]):
            raise InvalidInput("Invalid cursor")
        return cls(order, mark, in_rest, seen)


def _place_of(relation: Relation) -> list[Any]:
    """Where a relation stands among those of one entity, whatever else comes or goes."""
    digest = blake2b("\0".join(relation.triple).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
    return [*relation.order[:-1], digest]


def _mark(key: Key) -> str:
    name = f"{key.project or ''}\0{key.name}\0{key.order}"
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
