"""How notes stand, read from the index: see `standing` and schema.sql."""

from __future__ import annotations

import json
import sqlite3
from array import array
from collections.abc import Collection, Hashable, Iterable
from functools import partial
from typing import NamedTuple

from commonplace.index.database import held

SEEN = "(?2 is null or exists (select 1 from note n where n.row = s.row and n.scope in ('global', ?2)))"
"""Whether the viewer whose own scope is ?2 sees the note of standing `s`."""

_MOST_HELD = 20_000
"""About 5 MB."""

_MOST_ROWS, _ENTRY = 250_000, 50
"""About 2 MB; an entry counts so much besides its rows."""


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


class Standings:
    """The standings of an index. Those read are `held`."""

    def __init__(self, db: sqlite3.Connection, held: dict[int, Standing]):
        self._db, self._held = db, held

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


def standings(db: sqlite3.Connection, *, settled: bool) -> Standings:
    """The standings of the index `db`. What is read is held for the next question, unless (not `settled`) it may be
    taken back."""
    return Standings(db, found_before(db, settled=settled).standings)


class FoundBefore:
    """What earlier questions read, as long as the index does not change: the rows found by an expression, and
    `standings` by row."""

    def __init__(self) -> None:
        self.forget(())

    def forget(self, stamp: tuple[int, ...]) -> None:
        """The index has another state now, known by `stamp`."""
        self.stamp, self._room = stamp, _MOST_ROWS
        self._found: dict[Hashable, array[int]] = {}
        self.standings: dict[int, Standing] = {}

    def get(self, key: Hashable) -> list[int] | None:
        """The rows, None when they are to be looked for."""
        known = self._found.get(key)
        return None if known is None else known.tolist()

    def put(self, key: Hashable, rows: list[int]) -> list[int]:
        """Keeps the rows, and gives them back."""
        if self._room < len(rows):
            self._room, self._found = _MOST_ROWS, {}
        self._found[key] = array("q", rows)
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


def _numbers(text: str | None) -> list[int]:
    return list(map(int, text.split(","))) if text else []
