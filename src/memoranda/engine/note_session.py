"""The session of a command that changes notes.

It loads no verbs of the history, of the review or of projects, so that the command starts fast.
"""

from __future__ import annotations

from memoranda.engine.notes import NoteVerbs
from memoranda.engine.read_session import ReadSession


class NoteSession(NoteVerbs, ReadSession):
    """An open memory with the verbs that read and the verbs that change notes, for one caller."""
