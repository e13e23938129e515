"""What earlier queries read of an index, for one connection to it, as long as the index does not change."""

from __future__ import annotations

import sqlite3
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from commonplace.index.database import held

if TYPE_CHECKING:
    from commonplace.index.cutting import Piece
    from commonplace.index.standing import Manner
    from commonplace.index.standings import Standing

T = TypeVar("T")

_MB, _ENTRY = 1_000_000, 250
"""Bytes; an entry takes so many besides its text and what it is worth more."""


class Room(dict[Hashable, T]):
    """Values by key, all of them together at most so many bytes: when there is no more room, all are forgotten."""

    def __init__(self, most: int):
        super().__init__()
        self._most = self._left = most

    def keep(self, key: tuple[object, ...], value: T, size: int = 0) -> T:
        """Keeps one value more, of about `size` bytes, and gives it back."""
        self.keep_all({key: value}, size + sum([len(part) for part in key if isinstance(part, str)]))
        return value

    def keep_all(self, values: Mapping[Hashable, T], size: int = 0) -> None:
        """Keeps several values of about `size` bytes each."""
        size = len(values) * (size + _ENTRY)
        if self._left < size:
            self.clear()
            self._left = self._most
        self.update(values)
        self._left -= size


class Kept:
    """What queries found out, together some 30 MB at most. Values are never changed.

    `rows`: found by an expression; `counts`: how many. `standings`: of rows. `pieces`: what part of a note is cut
    into; `manners`: how a piece is said. By who asked: the `spellings` of a word, and in which sittings somebody was
    `heard`.
    """

    def __init__(self) -> None:
        self.forget(())

    def forget(self, stamp: tuple[int, ...]) -> None:
        """The index has another state now, known by `stamp`."""
        self.stamp = stamp
        self.rows: Room[Sequence[int]] = Room(5 * _MB)
        self.counts: Room[int] = Room(2 * _MB)
        self.standings: Room[Standing] = Room(6 * _MB)
        self.pieces: Room[Sequence[Piece]] = Room(8 * _MB)
        self.manners: Room[Manner] = Room(2 * _MB)
        self.spellings: Room[Sequence[str]] = Room(_MB)
        self.heard: Room[bool] = Room(6 * _MB)


def kept_of(db: sqlite3.Connection, *, settled: bool) -> Kept:
    """What was read of `db` as it is now. Nothing is kept that may be taken back (not `settled`)."""
    if not settled:
        return Kept()
    stamp = (db.execute("pragma data_version").fetchone()[0], db.total_changes)
    found = held(db, Kept)
    if found.stamp != stamp:
        found.forget(stamp)
    return found
