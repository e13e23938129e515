"""Which notes hold a piece of text, case folded as Python does."""

from __future__ import annotations

import re
import sqlite3
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

_MOST_BYTES = 16_000_000
"""More than this is not held: some 40,000 memories of 50 words."""

_ROW_BYTES = 80
"""What a text takes besides its characters: its row and its beginning, and their places in two lists."""

_BETWEEN = "\0"
_LONGEST_PATTERN = 1_000
_LONGEST_LIKE = 10_000
_SIGNS, _ESCAPED = re.compile(r"[%_\\]"), r"\\\g<0>"
# The next two are compiled where they are first needed: it takes `re` long.
_APART = "[ßİŉſǰẖẗẘẙẚẞ\u212aﬀ-ﬆ\0]"
"""Letters that fold to letters of ASCII; and what SQLite takes for the end of a text."""
_CASELESS = "[\u3041-\u3096\u30a1-\u30fa\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]+"
"""Letters without case, that no other letter folds to."""


class _Block(NamedTuple):
    """Some notes' texts in one string; the text of `rows[n]` begins at `starts[n]`."""

    width: int
    rows: list[int]
    starts: list[int]
    text: str

    def matched(self, pattern: re.Pattern[str]) -> Iterator[int]:
        """The row of each match."""
        return (self.rows[bisect_right(self.starts, found.start()) - 1] for found in pattern.finditer(self.text))

    def with_(self, other: _Block) -> _Block:
        shift = len(self.text) + len(_BETWEEN)
        starts = [*self.starts, *(start + shift for start in other.starts)]
        return _Block(self.width, self.rows + other.rows, starts, f"{self.text}{_BETWEEN}{other.text}")


class Texts:
    """The texts of an index, for one connection to it (`database.held`). Whoever asks twice is likely to ask again:
    from then on they are held folded in memory, and an answer takes a twentieth of the time.

    Nothing has to be taken out: a row's text never changes, new rows are the highest, and what is gone from the index
    passes no filter of the caller's.
    """

    def __init__(self) -> None:
        self._is_asked = self._too_many = False
        self._forget()

    def holding(self, db: sqlite3.Connection, needle: str) -> list[int]:
        """The rows of the notes whose text holds `needle`, in no order; rows that are gone may be among them."""
        needle = needle.casefold()
        again, self._is_asked = self._is_asked, True
        if again and len(needle) <= _LONGEST_PATTERN and _BETWEEN not in needle and self._extended(db):
            once = re.compile(f"{re.escape(needle)}[^{_BETWEEN}]*")  # to the end of the text; faster than str.find
            return [row for block in self._blocks for row in block.matched(once)]
        return _scanned(db, needle)

    def _forget(self) -> None:
        self._last = self._bytes = 0
        self._blocks: list[_Block] = []

    def _extended(self, db: sqlite3.Connection) -> bool:
        """Takes up what is new; False when there is, or once was, too much to hold."""
        if not self._too_many and not self._take(db):
            self._forget()  # without what is gone there may be room
            self._too_many = not self._take(db) or self._bytes > _MOST_BYTES * 3 // 4
            if self._too_many:
                self._forget()
        return not self._too_many

    def _take(self, db: sqlite3.Connection) -> bool:
        """Adds the texts of the rows after the last one known, all or none of them: False when there is no room."""
        parts: dict[int, list[tuple[int, str]]] = {}
        last, size = self._last, self._bytes
        for row, text in db.execute("select row, text from text where row > ? order by row", (last,)):
            folded = text.casefold()
            width = _width(folded)
            parts.setdefault(width, []).append((row, folded))
            last, size = row, size + width * len(folded) + _ROW_BYTES
            if size > _MOST_BYTES:
                return False
        blocks = list(self._blocks)
        for width, texts in parts.items():
            _add(blocks, _block(width, texts))
        self._blocks, self._last, self._bytes = blocks, last, size
        return True


def _add(blocks: list[_Block], new: _Block) -> None:
    """One block more; of one width those not much larger are joined with it, so that there are never many."""
    for at, block in enumerate(blocks):
        if block.width == new.width and len(block.rows) <= 2 * len(new.rows):
            del blocks[at]
            return _add(blocks, block.with_(new))
    blocks.append(new)


def _width(text: str) -> int:
    """The bytes a character of `text` takes; one wide character makes all of a block as wide, so they are parted."""
    return 1 if text.isascii() else 2 if max(text) < "\U00010000" else 4


def _block(width: int, texts: list[tuple[int, str]]) -> _Block:
    lengths = (len(text) + len(_BETWEEN) for _, text in texts[:-1])
    return _Block(width, [row for row, _ in texts], list(accumulate(lengths, initial=0)),
                  _BETWEEN.join(text for _, text in texts))  # fmt: skip


def folds_apart(text: str) -> bool:
    """Whether LIKE, which folds the letters of ASCII only, may miss what Python finds in `text` with case folded."""
    return re.search(_APART, text) is not None


def _scanned(db: sqlite3.Connection, needle: str) -> list[int]:
    """The same by a look at every text. SQLite is faster at that than Python, so it leaves out what it can."""
    condition, value = "", ""
    if needle.isascii() and "\0" not in needle and len(needle) < _LONGEST_LIKE:
        condition, value = " where folds or text like ? escape '\\'", f"%{_SIGNS.sub(_ESCAPED, needle)}%"
    elif caseless := re.findall(_CASELESS, needle):
        condition, value = " where instr(text, ?)", max(caseless, key=len)
    found = db.execute(f"select row, text from text{condition}", (value,) if condition else ())
    return [row for row, text in found if needle in text.casefold()]
