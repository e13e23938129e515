"""What earlier queries read of an index, for one connection to it, as long as the index does not change."""

from __future__ import annotations

import sqlite3
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, TypeVar

from commonplace.index.database import held

if TYPE_CHECKING:
    from commonplace.index.cutting import Piece
    from commonplace.index.standing import Manner
    from commonplace.index.standings import Standing

T = TypeVar("T")


class Room(dict[Hashable, T]):
    """Values by key, all of them together at most so large: when there is no more room, all are forgotten."""

    def __init__(self, most: int):
        super().__init__()
        self._most = self._left = most

    def keep(self, key: Hashable, value: T, size: int = 1) -> T:
        """Keeps one value more, and gives it back."""
        if self._left < size:
            self.clear()
            self._left = self._most
        self[key] = value
        self._left -= size
        return value


class Kept:
    """What queries found out, together some 30 MB at most.

    `rows`: found by an expression; `counts`: how many. `standings`: of rows. `pieces`: what part of a note is cut
    into; `manners`: how a piece is said. By who asked: the `spellings` of a word, and in which sittings somebody was
    `heard`.
    """

    def __init__(self) -> None:
        self.forget(())

    def forget(self, stamp: tuple[int, ...]) -> None:
        """The index has another state now, known by `stamp`."""
        self.stamp = stamp
        self.rows: Room[Sequence[int]] = Room(100_000)
        self.counts: Room[int] = Room(5_000)
        self.standings: Room[Standing] = Room(20_000)
        self.pieces: Room[list[Piece]] = Room(50_000)
        self.manners: Room[Manner] = Room(5_000)
        self.spellings: Room[list[str]] = Room(2_000)
        self.heard: Room[bool] = Room(50_000)


def kept_of(db: sqlite3.Connection, *, settled: bool) -> Kept:
    """What was read of `db` as it is now. Nothing is kept that may be taken back (not `settled`)."""
    if not settled:
        return Kept()
    stamp = (db.execute("pragma data_version").fetchone()[0], db.total_changes)
    found = held(db, Kept)
    if found.stamp != stamp:
        found.forget(stamp)
    return found
