"""Remember which texts of the index have a pattern at least twice, so that each is read once."""

from __future__ import annotations

import re
import sqlite3
from itertools import islice


class RepeatedPatterns:
    """Knows the texts of an index that have a pattern at least twice. One object per connection.

    Each text is read once for a pattern: the text of a row does not change, and new rows have the
    highest numbers. The rows of deleted notes are not removed, so callers must keep only rows of
    existing notes.
    """

    def __init__(self) -> None:
        # The last row that was read, and the rows that have the pattern twice, by pattern.
        self._last_rows: dict[re.Pattern[str], int] = {}
        self._rows: dict[re.Pattern[str], set[int]] = {}

    def rows(self, db: sqlite3.Connection, pattern: re.Pattern[str]) -> set[int]:
        """Return the rows of all texts after the frontmatter that have `pattern` at least twice."""
        rows = self._rows.setdefault(pattern, set())
        new_texts = db.execute(
            "select row, text from text where row > ? order by row",
            (self._last_rows.get(pattern, 0),),
        )
        for row, text in new_texts:
            if _has_twice(pattern, text):
                rows.add(row)
            self._last_rows[pattern] = row
        return rows


def _has_twice(pattern: re.Pattern[str], text: str) -> bool:
    """Whether `text` has at least two matches of `pattern`. It is read only up to the second."""
    return len(list(islice(pattern.finditer(text), 2))) == 2
