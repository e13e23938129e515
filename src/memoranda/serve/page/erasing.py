"""Shows what erasing a note would take with it, erases it, and names what has the same words.

A note that is erased often holds a secret, and the file of a memory is named by the beginning of its
text. So notes are named by their title, with secrets masked, and opened by their id.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from starlette.responses import Response

from memoranda.engine import MemorySession
from memoranda.engine.whereabouts import note_of_text
from memoranda.errors import MemorandaError
from memoranda.index.rows import NoteInfo
from memoranda.note.model import ARCHIVE_PROJECT
from memoranda.serve.page.addresses import id_url
from memoranda.serve.page.visit import Visit

# Before a note is erased, notes with the same words are named: at most this many.
_MAX_NAMED = 8
# How an erasure names an older text of another note, and the file that a note was made from.
_OLDER_TEXT = re.compile(r"the kept text ([0-9a-f]+) of another note")
_SOURCE = re.compile(r"the source (.+), from which ingest would take it again")
_ARCHIVE_FOLDER = "archive"


@dataclass(frozen=True)
class Mention:
    """Something that has the same words as an erased note, and stays.

    title: the title of the note, with secrets masked, or the name of the file.
    url: the address of the note. "" for a file.
    is_older_text: whether only an older text of the note has the words.
    is_source: whether it is the file from which the erased note was made.
    """

    title: str
    url: str = ""
    is_older_text: bool = False
    is_source: bool = False


def form(visit: Visit, info: NoteInfo) -> Response:
    """Ask whether to erase a note. Says what would go, and which notes have the same words."""
    foretold = visit.memory.erase(info, dry_run=True)
    return visit.html(
        "erase.html",
        note=info,
        title=masked_title(visit.memory, info),
        foretold=foretold,
        mentions=_mentions(visit.memory, foretold.mentions),
        most_named=_MAX_NAMED,
    )


def erase(visit: Visit, info: NoteInfo) -> Response:
    """Erase a note from the files and the history, or ask whether to do so."""
    if visit.fields.get("sure") != "yes":
        return form(visit, info)
    erased = visit.memory.erase(info)
    return visit.html("erased.html", done=erased, mentions=_mentions(visit.memory, erased.mentions))


def masked_title(memory: MemorySession, info: NoteInfo) -> str:
    """Return the title of a note, with its secrets masked."""
    return memory.rules_for_reading().redacted(info.title)


def _mentions(memory: MemorySession, names: Iterable[str]) -> list[Mention]:
    """Return what an erasure named, as people know it."""
    return [_mention(memory, name) for name in names]


def _mention(memory: MemorySession, name: str) -> Mention:
    source = _SOURCE.fullmatch(name)
    if source:
        return Mention(source[1], is_source=True)
    older_text = _OLDER_TEXT.fullmatch(name)
    if older_text:
        info = note_of_text(memory, older_text[1])
    else:
        info = _note_called(memory, name)
    if info is None:
        return Mention("" if older_text else name, is_older_text=older_text is not None)
    return Mention(masked_title(memory, info), id_url(info.id), older_text is not None)


def _note_called(memory: MemorySession, name: str) -> NoteInfo | None:
    """Return the note at a project and path, written as one text. None if no note is there."""
    project, _, path = name.partition("/")
    if project == _ARCHIVE_FOLDER:
        project = ARCHIVE_PROJECT
    with suppress(MemorandaError):
        return memory.find((project, path))
    return None
