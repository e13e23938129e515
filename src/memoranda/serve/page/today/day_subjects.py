"""Names the people and projects that a day was about, for the sentence at the top of Today."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

from memoranda.clock import parse_stamp
from memoranda.documents.listed import Document
from memoranda.serve.page.people.offered_names import OfferedName, names_of_notes
from memoranda.serve.page.visit import Visit
from memoranda.text.folding import fold

# Names in the sentence.
_MAX_SUBJECTS = 3
# How many changes at least must name somebody. A single one says nothing about the day.
_MIN_CHANGES = 2


def subjects_since(
    visit: Visit, rows: Iterable[Document], since: datetime
) -> Sequence[OfferedName]:
    """Return the people and projects that most of the changes since a moment name, the first of them.

    Notes that look planted do not count. Names with a secret are left out.

    rows: the changes that the page shows (see `RowWriter`).
    """
    texts = [
        fold(_words_of(row))
        for row in rows
        if parse_stamp(row["time"]) >= since and not row["is_planted"] and not row["undone_by"]
    ]
    all_texts = "\n".join(texts)
    counts: Counter[OfferedName] = Counter()
    for name in names_of_notes(visit):
        # Most names are in no text at all.
        if name.folded in all_texts:
            pattern = _pattern_of(name.folded)
            counts[name] = sum(pattern.search(text) is not None for text in texts)
    redacted = visit.memory.rules_for_reading().redacted
    often_named = [
        name
        for name, count in counts.most_common()
        if count >= _MIN_CHANGES and redacted(name.name) == name.name
    ]
    return often_named[:_MAX_SUBJECTS]


def _words_of(row: Document) -> str:
    """Return the title and the new words of a change."""
    parts = [part.text for line in row["lines"] for part in line if part.kind != "-"]
    return " ".join((row["title"], *parts))


def _pattern_of(name: str) -> re.Pattern[str]:
    """Return the pattern of a name as a whole word. Scripts without blanks have no whole words.

    name: folded.
    """
    word = re.escape(name)
    return re.compile(rf"(?<!\w){word}(?!\w)" if name.isascii() else word)
