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
# How many digits of the hash the key has.
_KEY_DIGITS = 12


@verb
def suspicion(memory: HomeSession, info: NoteInfo) -> str:
    """Return the key of the question about a suspicious note.

    It has a hash of the title, the tags and the text. So if any of these changes, the owner is asked
    again.
    """
    _, body = memory.index.notes.text_of(info.row)
    parts = "\0".join([info.title, *info.tags, body])
    digest = sha256(parts.encode("utf-8", "replace"))
    return f"suspicious:{info.id}:{digest[:_KEY_DIGITS]}"
