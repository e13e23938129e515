"""The session of a command that changes notes.

It does not import the verbs of the history, of the review and of projects, so that the command
starts fast.
"""

from __future__ import annotations

from memoranda.engine.notes import NoteVerbs
from memoranda.engine.read_session import ReadSession


class NoteSession(NoteVerbs, ReadSession):
    """An open memory for one caller, with all verbs that read or change notes."""
