"""Which passages the notes of an index have, as keys of their texts.

The table lies in the index and goes with it. It is filled in the background, never by a write of a note; a row
counts while its note is there with the same bytes.
"""

from __future__ import annotations

import json
import re
import sqlite3
import struct
from collections.abc import Collection, Iterable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from commonplace.index.facets import may_see
from commonplace.index.vectors.arrays import np
from commonplace.text.tokens import passages
from commonplace.text.unicode import sqlite_text

_HEADING = re.compile(r"#{1,6}[ \t].*")
_WORD = re.compile(r"[^\W\d_]{2,}")
_RECORD = struct.Struct("<IIQ")
_COLUMNS = np.dtype([("start", "<u4"), ("stop", "<u4"), ("key", "<u8")])
_LONGEST = 200_000
"""Characters of a note from which on it is parted by itself, so that a round stays short."""

# `seq` only ever grows, so what was added since is found by it. `spans`: start, stop, key of each passage. An
# entry with a time to live (contract 004) leaves no trace of its text here.
_TABLE = (
    "create table if not exists embedded (seq integer primary key autoincrement, note integer not null unique,"
    " etag blob not null, spans blob not null)"
)
_TODO = (
    "from note n left join embedded e on e.note = n.row and e.etag = n.etag where e.note is null and n.row > ?"
    " and (n.expires is null or n.project is not (select id from project where name = 'kv'))"
)
_WITH_TEXT = _TODO.replace("from note n", "from note n join text t on t.row = n.row")


class Piece(NamedTuple):
    """A passage of a note as it is embedded; `start` and `stop` are places in the note's body."""

    start: int
    stop: int
    text: str
    key: int


def pieces(title: str, body: str) -> list[Piece]:
    """The passages of a note: each with the note's title and its heading in front, where it does not say them.

    A heading by itself is none.
    """
    found = []
    parts = passages(body)
    for one in parts:
        text = body[one.start : one.end].strip()
        if len(parts) > 1 and _HEADING.fullmatch(text):
            continue  # the passage below it has it in front
        said = text[:400].casefold()
        names = [each.strip() for each in dict.fromkeys((title, one.heading)) if _tells(each)]
        text = sqlite_text("\n".join([*(each for each in names if each.casefold() not in said), text]))
        found.append(Piece(one.start, one.end, text, _key(text)))
    return found


def _tells(name: str) -> bool:
    """Whether a title says something: "Turn 003" and "2026-05-07" do not."""
    return len(_WORD.findall(name)) > any(map(str.isdigit, name))


def _key(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def is_there(db: sqlite3.Connection) -> bool:
    """Whether this index has the table yet."""
    return db.execute("select 1 from sqlite_master where name = 'embedded'").fetchone() is not None


def there(db: sqlite3.Connection, notes: Collection[int], viewer: str | None = None) -> list[int]:
    """Those of `notes` that the index still has and `viewer` may see. What a row holds never changes."""
    if not notes:
        return []
    some = json.dumps(list(notes))
    if viewer is None:  # the rows of `feature` are the smaller ones
        found = db.execute("select row from feature where row in (select value from json_each(?))", (some,))
        return [row for (row,) in found]
    found = db.execute("select row, scope from note where row in (select value from json_each(?))", (some,))
    return [row for row, scope in found if may_see(scope, viewer)]


def part(db: sqlite3.Connection, most: int, after: int = 0) -> tuple[int, int]:
    """Part `most` notes behind row `after` into passages. Returns how many, and the last row looked at.

    Expects to run inside a transaction.
    """
    db.execute(_TABLE)
    todo = db.execute(f"select n.row, length(t.text) {_WITH_TEXT} order by n.row limit ?", (after, most)).fetchall()
    done, last, characters = 0, after, 0
    for row, length in todo:
        characters += length
        if done and characters > _LONGEST:
            break
        etag, title, body = db.execute(
            "select n.etag, n.title, t.text from note n join text t on t.row = n.row where n.row = ?", (row,)
        ).fetchone()
        blob = b"".join(_RECORD.pack(one.start, one.stop, one.key) for one in pieces(title, body))
        db.execute("insert or replace into embedded (note, etag, spans) values (?, ?, ?)", (row, etag, blob))
        done, last = done + 1, row
    return done, last


def waiting(db: sqlite3.Connection, after: int = 0) -> int:
    """How many notes behind row `after` are still to be parted."""
    if not is_there(db):
        return db.execute("select count(*) from note").fetchone()[0]
    return db.execute(f"select count(*) {_TODO}", (after,)).fetchone()[0]


def forget_gone(db: sqlite3.Connection) -> int:
    """Drop the passages of notes that are gone or changed. Expects to run inside a transaction."""
    gone = "not exists (select 1 from note n where n.row = embedded.note and n.etag = embedded.etag)"
    return db.execute(f"delete from embedded where {gone}").rowcount


def texts(db: sqlite3.Connection, notes: Iterable[int], keys: set[int]) -> dict[int, str]:
    """The texts of the passages of `notes` whose key is among `keys`, by key."""
    found: dict[int, str] = {}
    for row in dict.fromkeys(notes):
        note = db.execute(
            "select n.title, t.text from note n join text t on t.row = n.row where n.row = ?", (row,)
        ).fetchone()
        if note is not None:
            found.update((one.key, one.text) for one in pieces(*note) if one.key in keys)
    return found


def keys_of(path: Path) -> np.ndarray:
    """The keys of all passages of the index file at `path`; none when it cannot be read."""
    try:
        db = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=5)
        try:
            blobs = [blob for (blob,) in db.execute("select spans from embedded")] if is_there(db) else []
        finally:
            db.close()
    except sqlite3.Error:
        return np.empty(0, np.uint64)
    return np.frombuffer(b"".join(blobs), _COLUMNS)["key"].astype(np.uint64)


class Spans:
    """The passages of an index in memory: arrays `note`, `start`, `stop`, `key` and `seq` of one length."""

    def __init__(self) -> None:
        self._db: sqlite3.Connection | None = None
        self._clear()

    def _clear(self) -> None:
        self.note, self.seq = np.empty(0, np.int64), np.empty(0, np.int64)
        self.start, self.stop = np.empty(0, np.int64), np.empty(0, np.int64)
        self.key = np.empty(0, np.uint64)
        self._last = self._notes = 0
        self._order = self._sorted = np.empty(0, np.int64)

    def of(self, notes: Collection[int]) -> np.ndarray:
        """The passages of these notes, in order."""
        if len(self._order) != len(self.note):
            self._order = np.argsort(self.note, kind="stable")
            self._sorted = self.note[self._order]
        wanted = np.unique(np.fromiter(notes, np.int64, len(notes)))
        first = np.searchsorted(self._sorted, wanted)
        counts = np.searchsorted(self._sorted, wanted, "right") - first
        places = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        return np.sort(self._order[places])

    def refresh(self, db: sqlite3.Connection) -> bool:
        """Take up what was added since the last time. Returns False when all passages are to be looked at anew: old
        ones have other numbers now."""
        same = self._db is db
        if not same:
            self._db = db
            self._clear()
        if not is_there(db):
            return same
        last = db.execute("select max(seq) from embedded").fetchone()[0] or 0
        if last == self._last:
            return same
        fresh = db.execute("select seq, note, spans from embedded where seq > ?", (self._last,)).fetchall()
        there = db.execute("select count(*) from embedded").fetchone()[0]
        if self._notes and self._notes + len(fresh) > 100 + 1.25 * there:
            self._clear()
            same = False
            fresh = db.execute("select seq, note, spans from embedded").fetchall()
        self._add(fresh)
        self._last = last
        return same

    def _add(self, fresh: Sequence[tuple[int, int, bytes]]) -> None:
        counts = [len(blob) // _RECORD.size for _, _, blob in fresh]
        columns = np.frombuffer(b"".join(blob for _, _, blob in fresh), _COLUMNS)
        self._notes += len(fresh)
        self.seq = np.concatenate([self.seq, np.repeat(np.array([one[0] for one in fresh], np.int64), counts)])
        self.note = np.concatenate([self.note, np.repeat(np.array([one[1] for one in fresh], np.int64), counts)])
        self.start = np.concatenate([self.start, columns["start"].astype(np.int64)])
        self.stop = np.concatenate([self.stop, columns["stop"].astype(np.int64)])
        self.key = np.concatenate([self.key, columns["key"].astype(np.uint64)])
