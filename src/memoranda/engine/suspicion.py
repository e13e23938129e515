"""The question to the owner about a note that seems to hold injected instructions."""

from __future__ import annotations

from collections.abc import Sequence

from memoranda.engine.engine import verb
from memoranda.engine.session import HomeSession
from memoranda.index.rows import NoteInfo
from memoranda.note.model import Note
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
    return _key("suspicious", info.id, info.title, info.tags, body)


def claim_of_text(id: str, note: Note) -> str:
    """Return the key of the question whether a note is right (`ReadVerbs.claim`).

    id: the id of the note, which its header may lack.
    note: the text of the note, which the index may not have yet.
    """
    return _key(CLAIM, id, note.title, note.tags, note.text[note.body_at :])


def _key(kind: str, id: str, title: str, tags: Sequence[str], body: str) -> str:
    """Return the key of a question of one kind about the text of a note."""
    parts = "\0".join([title, *tags, body])
    digest = sha256(parts.encode("utf-8", "replace"))
    return f"{kind}:{id}:{digest[:_KEY_DIGITS]}"
