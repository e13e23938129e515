"""How notes stand, read from the index: see `standing` and schema.sql."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from commonplace.index.kept import Kept

SEEN = "(?2 is null or exists (select 1 from note n where n.row = s.row and n.scope in ('global', ?2)))"
"""Whether the viewer whose own scope is ?2 sees the note of standing `s`."""


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
_OF_DAYS = "select row from standing where day between ? and ? order by row desc limit ?"
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
    """The standings of an index. What is read is `kept`."""

    def __init__(self, db: sqlite3.Connection, kept: Kept):
        self._db, self._held, self._heard = db, kept.standings, kept.heard

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
            fresh = list(map(_made, self._db.execute(_OF, (json.dumps(missing),)).fetchall()))
            held.keep_all({note.row: note for note in fresh})
            found += fresh
        return found

    def of_days(self, first: str, last: str, most: int) -> list[int]:
        """The newest notes of these days (YYYY-MM-DD, inclusive), at most so many."""
        return [row for (row,) in self._db.execute(_OF_DAYS, (first, last, most))]

    def beside(self, rows: Collection[int], own: str | None) -> dict[int, tuple[list[int], list[int]]]:
        """Of each of these notes the notes before it in its sitting and those after it that the viewer of scope `own`
        sees (None: all): up to three each, the nearest first."""
        found = self._db.execute(_BESIDE, (json.dumps(list(rows)), own)).fetchall()
        return {row: (_numbers(before), _numbers(after)) for row, before, after in found}

    def heard(self, voices: Collection[str], sittings: Collection[int], own: str | None) -> set[int]:
        """Those of the sittings in which one of `voices` said something that the viewer of scope `own` sees."""
        who = (own, *sorted(voices))
        known = {place: self._heard.get((place, who)) for place in sittings}
        if left := [place for place, is_there in known.items() if is_there is None]:
            found = self._db.execute(_HEARD, (json.dumps(left), own, json.dumps(list(voices))))
            there = {place for (place,) in found}
            self._heard.keep_all({(place, who): place in there for place in left})
            known.update((place, place in there) for place in left)
        return {place for place, is_there in known.items() if is_there}


def _numbers(text: str | None) -> list[int]:
    return list(map(int, text.split(","))) if text else []
