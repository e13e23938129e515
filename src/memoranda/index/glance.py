"""Whether an index holds words at all, looked up without opening it: a hook that has nothing to say
is then over in some milliseconds.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from memoranda.text.tokens import query_text

# Seconds to wait for a writer; a hook has no more.
_BUSY_SECONDS = 0.05


def may_hold_any(path: Path, texts: Sequence[str]) -> bool:
    """Whether a note of the index at `path` may hold one of these texts.

    True if that is unknown, False if the index or the texts are missing.
    """
    expression = any_of_texts(texts)
    if not expression or not path.exists():
        return False
    address = f"{path.absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True, timeout=_BUSY_SECONDS)) as database:
            row = database.execute(
                "select 1 from note_fts where note_fts match ? limit 1", (expression,)
            ).fetchone()
    except sqlite3.Error:
        return True
    return row is not None


def any_of_texts(texts: Sequence[str]) -> str:
    """The full-text expression for notes that hold one of these texts. Empty without words."""
    phrases = [phrase for phrase, _ in map(query_text, texts) if phrase]
    return " OR ".join('"' + phrase.replace('"', '""') + '"' for phrase in phrases)
