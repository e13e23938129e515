"""The contents of notes as the index has them, and where notes are in the home."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memoranda.engine.engine import verb
from memoranda.index.rows import NoteInfo

if TYPE_CHECKING:
    from memoranda.engine.reading import ReadVerbs
    from memoranda.note.model import Note


def content_of(memory: ReadVerbs, info: NoteInfo) -> str:
    """The content of a memory the index knows: its text without frontmatter and final newline."""
    return contents(memory, [info])[0]


@verb
def contents(memory: ReadVerbs, infos: Sequence[NoteInfo]) -> list[str]:
    """The contents of several memories, in their order."""
    bodies = memory.index.notes.bodies([info.row for info in infos])
    return [bodies.get(info.row, "").removesuffix("\n") for info in infos]


def home_path(note: Note | NoteInfo) -> str:
    """Where a memory is, relative to the home."""
    return f"{note.project.removeprefix('.')}/{note.path}"
