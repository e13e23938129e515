"""Find out in some milliseconds whether an index has any note with given words.

A hook (a command that a client runs at each prompt) asks this first. If no note has the words, the
hook ends without loading the rest of the program.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from memoranda.text.tokens import query_text

# A hook waits this many seconds for a process that writes the index, and not longer.
_BUSY_SECONDS = 0.05


def may_hold_any(path: Path, texts: Sequence[str]) -> bool:
    """Whether a note of the index may contain one of these texts.

    True if the index cannot be read in time. False if there is no index, or no word in `texts`.

    path: the file of the index.
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
    """Return the FTS5 expression that finds notes with at least one of these texts.

    `["red door", "key"]` → `"red door" OR "key"`. "" if the texts have no words.
    """
    phrases = [phrase for phrase, _ in map(query_text, texts) if phrase]
    return " OR ".join('"' + phrase.replace('"', '""') + '"' for phrase in phrases)
