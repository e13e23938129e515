"""Which texts have a pattern several times, without reading all of them for each question."""

from __future__ import annotations

import re
import sqlite3
from itertools import islice


class RepeatedPatterns:
    """The texts of an index that have a pattern several times, one per connection (`database.held`).

    Each text is read once for a pattern: the text of a row does not change, and new rows have the
    highest numbers. Rows of notes that are gone stay, so callers intersect with those there are.
    """

    def __init__(self) -> None:
        self._last_rows: dict[re.Pattern[str], int] = {}
        self._rows: dict[re.Pattern[str], set[int]] = {}

    def rows(self, db: sqlite3.Connection, pattern: re.Pattern[str]) -> set[int]:
        """The rows whose text after the frontmatter has `pattern` at least twice."""
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
    return len(list(islice(pattern.finditer(text), 2))) == 2
