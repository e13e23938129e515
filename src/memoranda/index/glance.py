"""Read the notes of an index that have given words, in some milliseconds.

A hook (a command that a client runs before each tool) does this first. If no note has the words, or
none says anything about them, the hook ends without loading the rest of the program.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from memoranda.text.tokens import query_text

CANDIDATES_PER_NOTE = 4
"""How many notes with the words of an action are looked at for each one that is told.

Some of them may not be told: they no longer hold, or only other agents may read them.
"""
# A hook waits this many seconds for a process that writes the index, and not longer.
_BUSY_SECONDS = 0.05
_BODIES = (
    "select text from text join"
    " (select rowid as note, rank as place from note_fts where note_fts match ?"
    " order by rank limit ?)"
    " on row = note order by place"
)


def bodies_with(path: Path, texts: Sequence[str], limit: int) -> list[str] | None:
    """Return the bodies of up to `limit` notes that contain at least one of these texts.

    Notes with the rarest texts come first. The result is empty if no note matches, if `texts` has
    no word, or if there is no index yet. It is None if the index is busy or cannot be read.

    path: the file of the index.
    """
    expression = any_of_texts(texts)
    if not expression or not path.exists():
        return []
    address = f"{path.absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True, timeout=_BUSY_SECONDS)) as database:
            rows = database.execute(_BODIES, (expression, limit)).fetchall()
    except sqlite3.Error:
        return None
    return [body for (body,) in rows]


def any_of_texts(texts: Sequence[str]) -> str:
    """Return the FTS5 expression that finds notes with at least one of these texts.

    `["red door", "key"]` → `"red door" OR "key"`. "" if the texts have no words.
    """
    strings: list[str] = []
    for text in texts:
        phrase, _ = query_text(text)
        if phrase:
            # As an FTS5 string, so that no character acts as syntax
            strings.append('"' + phrase.replace('"', '""') + '"')
    return " OR ".join(strings)
