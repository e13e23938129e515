"""How notes stand, read from the index: see `standing` and schema.sql."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Hashable, Iterable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from commonplace.index.database import held

T = TypeVar("T")

SEEN = "(?2 is null or exists (select 1 from note n where n.row = s.row and n.scope in ('global', ?2)))"
"""Whether the viewer whose own scope is ?2 sees the note of standing `s`."""

_MOST_HELD = 20_000
"""About 5 MB."""

_MOST_ROWS, _ENTRY = 100_000, 20
"""About 4 MB; an entry counts so much besides its rows."""

_MOST_KEPT = 2_000
_MOST_VOICES, _MOST_HEARD = 20, 5_000
"""About 10 MB at most."""


class Standing(NamedTuple):
    """How a note stands among others."""

    row: int
    sitting: int | None
    place: int
    said: str | None
    day: str
    words: int
    asks: int
    own: int
    timed: int
    long: int


_made = partial(tuple.__new__, Standing)
_COLUMNS = ", ".join(f"p.{name}" for name in Standing._fields)
_OF = f"select {_COLUMNS} from standing p where p.row in (select value from json_each(?))"
_OF_DAYS = f"select {_COLUMNS} from standing p where p.day between ? and ? order by p.row desc limit ?"
_SIDE = (
    "(select group_concat(row) from (select s.row from standing s where s.sitting = c.sitting"
    f" and (s.place, s.row) {{side}} (c.place, c.row) and {SEEN} order by s.place {{way}}, s.row {{way}} limit 3))"
)
_BESIDE = (
    f"select r.value, {_SIDE.format(side='<', way='desc')}, {_SIDE.format(side='>', way='asc')}"
    " from json_each(?1) r join standing c on c.row = r.value"
)
_HEARD = (
    "select r.value from json_each(?1) r where exists (select 1 from json_each(?3) v cross join standing s"
    f" indexed by standing_said where s.said = v.value and s.sitting = r.value and {SEEN})"
)


class Standings:
    """The standings of an index. What is read is kept in `before`."""

    def __init__(self, db: sqlite3.Connection, before: FoundBefore):
        self._db, self._held, self._heard = db, before.standings, before.heard

    def of(self, rows: Iterable[int]) -> list[Standing]:
        """The standings of these notes; missing ones are left out."""
        held, found, missing = self._held, [], []
        for row in rows:
            known = held.get(row)
            if known is None:
                missing.append(row)
            else:
                found.append(known)
        if missing:
            if len(held) > _MOST_HELD:
                held.clear()
            fresh = list(map(_made, self._db.execute(_OF, (json.dumps(missing),)).fetchall()))
            held.update((note.row, note) for note in fresh)
            found += fresh
        return found

    def of_days(self, first: str, last: str, most: int) -> list[Standing]:
        """The newest notes of these days (YYYY-MM-DD, inclusive)."""
        return list(map(_made, self._db.execute(_OF_DAYS, (first, last, most))))

    def beside(self, rows: Collection[int], own: str | None) -> dict[int, tuple[list[int], list[int]]]:
        """Of each of these notes the notes before it in its sitting and those after it that the viewer of scope `own`
        sees (None: all): up to three each, the nearest first."""
        found = self._db.execute(_BESIDE, (json.dumps(list(rows)), own)).fetchall()
        return {row: (_numbers(before), _numbers(after)) for row, before, after in found}

    def heard(self, voices: Collection[str], sittings: Collection[int], own: str | None) -> set[int]:
        """Those of the sittings in which one of `voices` said something that the viewer of scope `own` sees."""
        if len(self._heard) > _MOST_VOICES:
            self._heard.clear()
        known = self._heard.setdefault((own, *sorted(voices)), {})
        if len(known) > _MOST_HEARD:
            known.clear()
        if left := [place for place in sittings if place not in known]:
            known.update(dict.fromkeys(left, False))
            found = self._db.execute(_HEARD, (json.dumps(left), own, json.dumps(list(voices))))
            known.update((place, True) for (place,) in found)
        return {place for place in sittings if known[place]}


class FoundBefore:
    """What earlier queries read, as long as the index does not change: the rows found by an expression, how many there
    are (`counts`), `standings` by row, `spellings` by whoever asked and word, and by whom it was asked for, whether
    somebody is `heard` in a sitting."""

    def __init__(self) -> None:
        self.forget(())

    def forget(self, stamp: tuple[int, ...]) -> None:
        """The index has another state now, known by `stamp`."""
        self.stamp, self._room = stamp, _MOST_ROWS
        self._found: dict[Hashable, Sequence[int]] = {}
        self.standings: dict[int, Standing] = {}
        self.heard: dict[Hashable, dict[int, bool]] = {}
        self.spellings: dict[Hashable, list[str]] = {}
        self.counts: dict[Hashable, int] = {}

    def get(self, key: Hashable) -> Sequence[int] | None:
        """The rows, None when they are to be looked for."""
        return self._found.get(key)

    def put(self, key: Hashable, rows: Sequence[int]) -> Sequence[int]:
        """Keeps the rows, and gives them back."""
        if self._room < len(rows):
            self._room, self._found = _MOST_ROWS, {}
        self._found[key] = rows
        self._room -= len(rows) + _ENTRY
        return rows


def found_before(db: sqlite3.Connection, *, settled: bool) -> FoundBefore:
    """What was found in `db` as it is now."""
    if not settled:
        return FoundBefore()
    stamp = (db.execute("pragma data_version").fetchone()[0], db.total_changes)
    found = held(db, FoundBefore)
    if found.stamp != stamp:
        found.forget(stamp)
    return found


def keep(held: dict[Hashable, T], key: Hashable, value: T) -> None:
    """Holds one value more; too many are forgotten at once."""
    if len(held) >= _MOST_KEPT:
        held.clear()
    held[key] = value


def _numbers(text: str | None) -> list[int]:
    return list(map(int, text.split(","))) if text else []
