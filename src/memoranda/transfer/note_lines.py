"""Export the notes of all projects but `categories` as JSON Lines, and import them again.

A line has the note's `project` and `path`, and its text in two parts: `header`, the frontmatter as
it is in the file, and `content`. Both together are the file, byte for byte.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, BinaryIO, NamedTuple

from memoranda.clock import parse_stamp
from memoranda.engine import MemorySession
from memoranda.engine.exchange import Exchange
from memoranda.errors import BadRecord, InvalidInput, MemorandaError, ProjectNotFound
from memoranda.index.rows import NoteInfo
from memoranda.note.frontmatter import split
from memoranda.note.model import MEMORY_PROJECTS
from memoranda.query import Query
from memoranda.sources.base import File
from memoranda.transfer.jsonl import (
    NEW,
    OLDER,
    PAGE,
    UNCHANGED,
    UPDATE,
    Tally,
    exported_text,
    is_note_line,
)

# Notes of a project that does not exist here go into a folder of this project.
_ELSEWHERE = "notes"
_BOM = b"\xef\xbb\xbf"


def exported_notes(
    memory: MemorySession,
    projects: Sequence[str] = (),
    scope: str | None = None,
    *,
    redacts: bool = False,
    secret: Callable[[], None] | None = None,
) -> Iterator[str]:
    """Yield a line, without its newline, for each note that the caller sees, by project and path.

    An entity of a graph file has the text that it would have as a note.

    projects, scope: export only these. Empty and None export all.
    redacts: whether texts that seem to be secrets are replaced.
    secret: called for each note that seems to hold a secret. None calls nothing.
    """
    exchange = Exchange(memory)
    for info in notes_of(memory, projects, scope):
        whole_text = _text_of(memory, exchange, info)
        if whole_text is None:
            continue
        text = exported_text(memory, whole_text, redacts, secret)
        yield json.dumps(_row(info, text), ensure_ascii=False, separators=(",", ":"))


def notes_of(
    memory: MemorySession, projects: Sequence[str] = (), scope: str | None = None
) -> list[NoteInfo]:
    """Return the notes that `exported_notes` writes.

    projects, scope: only these. Empty and None return all.
    """
    query = Query(projects=tuple(projects) or None, scope=scope, archived=False, order="path")
    infos, _ = memory.list(query, limit=0)
    # Memories are exported as memories.
    return [info for info in infos if info.project not in MEMORY_PROJECTS]


def _text_of(memory: MemorySession, exchange: Exchange, info: NoteInfo) -> str | None:
    """Return the text of a note with its header. None if its file is gone."""
    if exchange.files_of(info.project) is None:
        return memory.text_of(info)
    file = exchange.file(info.project, info.path)
    return None if file is None else file.data.decode("utf-8", "replace")


def _row(info: NoteInfo, text: str) -> dict[str, Any]:
    """Return a note as the JSON object of its line."""
    body_at = split(text)[1]
    return {
        "project": info.project,
        "path": info.path,
        "id": info.id,
        "title": info.title,
        "type": info.type,
        "tags": list(info.tags),
        "created_at": info.created,
        "updated_at": info.updated or info.changed,
        "header": text[:body_at],
        "content": text[body_at:],
    }


class _NewFile(NamedTuple):
    """The action for one line.

    verb: NEW, UPDATE, UNCHANGED or OLDER. The last means that the existing file stays.
    project, path, data: the place and the bytes of the file to write.
    before: the existing file. None for a new one.
    time: when the note was last changed. None if the line does not say it.
    """

    verb: str
    project: str
    path: str
    data: bytes
    before: File | None
    time: datetime | None


class NoteImport:
    """Import the lines of `source` that are about notes. Lines about memories are ignored.

    If a path exists already, the newer text counts, and the other one goes to the history.

    skip_bad: whether to leave out bad lines. Otherwise the first one ends the import.
    """

    def __init__(self, memory: MemorySession, source: BinaryIO, *, skip_bad: bool = False):
        self._memory = memory
        self._exchange = Exchange(memory)
        self._source = source
        self._skip_bad = skip_bad

    def run(
        self, tally: Tally, warn: Callable[[str], None], say: Callable[[str], None] | None = None
    ) -> None:
        """Carry out the import. Raises BadRecord.

        tally: counts the lines that are done so far.
        warn: called with a sentence for each line that is left out. None calls nothing.
        say: called with a sentence for each action of a trial run, which writes nothing. None
            imports the lines.
        """
        batch: list[_NewFile] = []
        for new in self._planned_files(tally, warn):
            if new.verb in (UNCHANGED, OLDER):
                tally.count(new.verb)
                continue
            # A batch is one change, so all of its notes are of one project
            is_full = len(batch) >= PAGE
            begins_project = bool(batch) and batch[0].project != new.project
            if is_full or begins_project:
                self._write(batch, tally, say)
                batch = []
            batch.append(new)
        if batch:
            self._write(batch, tally, say)

    def _planned_files(self, tally: Tally, warn: Callable[[str], None]) -> Iterator[_NewFile]:
        """Yield a plan for each line. Raises BadRecord, unless bad lines are to be left out.

        tally: counts the lines that are left out.
        warn: called with a sentence for each of these.
        """
        for number, values in self._lines():
            try:
                new = self._plan_line(values)
            except MemorandaError as error:
                bad = BadRecord(number, str(error))
                if not self._skip_bad:
                    raise bad from None
                warn(f"warning: {bad}")
                tally.skipped += 1
                continue
            yield new

    def _write(
        self, batch: Sequence[_NewFile], tally: Tally, say: Callable[[str], None] | None
    ) -> None:
        """Write files of one project as one change. In a trial run, only say and count them.

        batch: the files.
        tally: counts them.
        say: called with a sentence for each file of a trial run. None writes the files.
        """
        project = batch[0].project
        if say is not None:
            for new in batch:
                say(f"would import {project}/{new.path}")
        else:
            files = [(new.path, new.data) for new in batch]
            replaced_files = {new.path: new.before for new in batch if new.before is not None}
            self._exchange.add_files(project, files, replaced_files)
            for new in batch:
                if new.time is not None:
                    self._exchange.set_time(project, new.path, new.time)
        for new in batch:
            tally.count(new.verb)

    def _lines(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the number and the values of each line about a note. Blank lines do not count."""
        number = 0
        self._source.seek(0)
        for line in iter(self._source.readline, b""):
            if number == 0:
                line = line.removeprefix(_BOM)
            if not line.strip():
                continue
            number += 1
            if is_note_line(line):
                yield number, json.loads(line)

    def _plan_line(self, values: dict[str, Any]) -> _NewFile:
        """Plan how to import one line. Raises InvalidInput, OutsideError."""
        content = values.get("content")
        header = values.get("header") or ""
        if not isinstance(content, str) or not isinstance(header, str):
            raise InvalidInput("content and header must be texts")
        data = f"{header}{content}".encode("utf-8", "surrogatepass")
        entity_text = self._text_of_entity(values["project"], values["path"])
        if entity_text is not None:
            # The line does not change the file of another program.
            verb = UNCHANGED if entity_text == f"{header}{content}" else OLDER
            return _NewFile(verb, values["project"], values["path"], data, before=None, time=None)
        project, path = self._place(values["project"], values["path"])
        # A line without a readable time counts as older than a note that is here.
        time = None
        with suppress(KeyError, TypeError, ValueError, AttributeError):
            time = parse_stamp(values["updated_at"])
        file = self._exchange.file(project, path)
        if file is None:
            verb = NEW
        elif file.data == data:
            verb = UNCHANGED
        elif self._is_newer(time, project, path):
            verb = UPDATE
        else:
            verb = OLDER
        return _NewFile(verb, project=project, path=path, data=data, before=file, time=time)

    def _place(self, project: str, path: str) -> tuple[str, str]:
        """Return the project and path where a note is written.

        If the project does not exist or is a graph file, the note goes into a folder of project
        `notes` with the project's name.
        """
        name = None
        with suppress(ProjectNotFound):
            name = self._exchange.files_of(project)
        if name is None:
            return _ELSEWHERE, f"{project}/{path}"
        return name, path

    def _text_of_entity(self, project: str, path: str) -> str | None:
        """Return the text of an entity of a graph file. None if there is none at the path."""
        with suppress(MemorandaError):
            if self._exchange.files_of(project) is None:
                return self._memory.text_of(self._memory.find((project, path)))
        return None

    def _is_newer(self, time: datetime | None, project: str, path: str) -> bool:
        """Whether a line is newer than the existing note at its place.

        time: when the note of the line was last changed. None if the line does not say it.
        """
        with suppress(MemorandaError):
            existing = self._memory.find((project, path))
            return time is not None and time > parse_stamp(existing.updated or existing.changed)
        return False
