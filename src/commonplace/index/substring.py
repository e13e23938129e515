"""Which notes contain a piece of text, case folded as Python does."""

from __future__ import annotations

import re
import sqlite3
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate

MAX_BYTES = 16_000_000
"""Larger indexes (some 40,000 memories of 50 words) are scanned by SQLite instead of cached."""

_SEPARATOR = "\0"
_LONGEST_LIKE = 10_000
# These two are compiled when first needed: that takes `re` long.
_FOLDS_TO_ASCII = "[ßİŉſǰẖẗẘẙẚẞ\u212aﬀ-ﬆ\0]"
"""Characters whose case folding contains ASCII letters; and what ends a text for SQLite."""
_CASELESS = "[\u3041-\u3096\u30a1-\u30fa\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]+"
"""Letters without case, to which no other character folds."""


class FoldedTexts:
    """A cache of all folded texts of an index, one per connection (`database.held`), filled by the second search.

    An answer then takes about 1 ms at 10,000 notes instead of 15. Nothing is ever invalidated: the text of a row does
    not change, new rows have the highest numbers, and callers filter out rows that are gone.
    """

    def __init__(self) -> None:
        self._is_used = self._is_too_large = False
        self._clear()

    def find(self, db: sqlite3.Connection, needle: str) -> list[int]:
        """The rows whose text contains `needle`, in no order; rows of deleted notes may be among them."""
        needle = needle.casefold()
        is_repeated, self._is_used = self._is_used, True
        if not is_repeated or _SEPARATOR in needle or not self._update(db):
            return _scan(db, needle)
        return [row for block in self._blocks.values() for row in block.find(needle)]

    def _clear(self) -> None:
        self._last_row = self._bytes = 0
        self._blocks = {True: _Block(), False: _Block()}

    def _update(self, db: sqlite3.Connection) -> bool:
        """Add the rows that are new. Returns False when all texts take too many bytes."""
        if not self._is_too_large and not self._add_new(db):
            self._clear()  # the texts of deleted notes may have filled it
            self._is_too_large = not self._add_new(db)
        return not self._is_too_large

    def _add_new(self, db: sqlite3.Connection) -> bool:
        new: dict[bool, list[tuple[int, str]]] = {True: [], False: []}
        last, size = self._last_row, self._bytes
        for row, text in db.execute("select row, text from text where row > ? order by row", (last,)):
            folded = text.casefold()
            new[folded.isascii()].append((row, folded))
            last, size = row, size + 80 + len(folded) * (1 if folded.isascii() else 4)
            if size > MAX_BYTES:
                return False
        for is_ascii, texts in new.items():
            if texts:
                self._blocks[is_ascii].extend(texts)
        self._last_row, self._bytes = last, size
        return True


class _Block:
    """Texts joined into one string: that of `rows[n]` begins at `starts[n]`. One wide character makes all of a string
    wide, so ASCII has a block of its own."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.starts: list[int] = []
        self.text = ""

    def extend(self, texts: list[tuple[int, str]]) -> None:
        text = "".join([self.text, *(f"{each}{_SEPARATOR}" for _, each in texts)])
        lengths = (len(each) + len(_SEPARATOR) for _, each in texts[:-1])
        starts = [*self.starts, *accumulate(lengths, initial=len(self.text))]
        self.rows, self.starts, self.text = [*self.rows, *(row for row, _ in texts)], starts, text

    def find(self, needle: str) -> Iterator[int]:
        starts, at = [*self.starts, len(self.text)], self.text.find(needle)
        while 0 <= at < len(self.text):
            found = bisect_right(self.starts, at)
            yield self.rows[found - 1]
            at = self.text.find(needle, starts[found])


def folds_to_ascii(text: str) -> bool:
    """Whether LIKE, which folds ASCII letters only, may miss what Python finds in `text` with case folded."""
    return re.search(_FOLDS_TO_ASCII, text) is not None


def _scan(db: sqlite3.Connection, needle: str) -> list[int]:
    """The same by reading texts; SQLite skips those that cannot match, as it is faster at that than Python."""
    condition, value = "", ""
    if needle.isascii() and "\0" not in needle and len(needle) < _LONGEST_LIKE:
        escaped = re.sub(r"[%_\\]", r"\\\g<0>", needle)
        condition, value = " where folds or text like ? escape '\\'", f"%{escaped}%"
    elif caseless := re.findall(_CASELESS, needle):
        condition, value = " where instr(text, ?)", max(caseless, key=len)
    found = db.execute(f"select row, text from text{condition}", (value,) if condition else ())
    return [row for row, text in found if needle in text.casefold()]
