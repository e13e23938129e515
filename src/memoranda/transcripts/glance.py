"""Whether transcripts teach anything about some terms, looked up without opening the memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path

from memoranda.sources.layout import Layout
from memoranda.transcripts.index import TraceIndex
from memoranda.transcripts.terms import hashed


def may_teach(home: Path, terms: Iterable[str]) -> bool:
    """Whether the transcripts' index in the home has a lesson about one of these terms."""
    path = Layout(home).transcripts
    if not path.exists():
        return False
    try:
        with TraceIndex(path, may_write=False) as index:
            return index.has_lesson([hashed(term) for term in terms])
    except sqlite3.Error:
        return False
