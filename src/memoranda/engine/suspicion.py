"""The question to the owner about a note that seems to hold injected instructions."""

from __future__ import annotations

from memoranda.engine.engine import verb
from memoranda.engine.session import HomeSession
from memoranda.index.rows import NoteInfo
from memoranda.text.checksum import sha256

CLAIM = "claim"
"""The kind of question in which the owner confirms a note of an agent."""
KEEP = "k"
"""The answer that a suspicious note is fine."""


@verb
def suspicion(memory: HomeSession, info: NoteInfo) -> str:
    """The key of the question about a suspicious note.

    The key holds a hash of title, tags and text. So when any of these changes, the owner is asked
    again.
    """
    text_of_note = "\0".join([info.title, *info.tags, memory.index.notes.text_of(info.row)[1]])
    return f"suspicious:{info.id}:{sha256(text_of_note.encode('utf-8', 'replace'))[:12]}"
