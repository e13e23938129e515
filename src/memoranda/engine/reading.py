"""Verbs that read: they find notes, read, search and list them, and follow their links.

A verb is a method that a caller of an open home may use. The index answers, and each verb first
brings the index up to date with the disk.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Container, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from memoranda import clock
from memoranda.config import Settings
from memoranda.engine.engine import verb
from memoranda.engine.project_list import ProjectList
from memoranda.engine.suspicion import CLAIM, KEEP, suspicion
from memoranda.engine.telling.manner import Telling, author, telling, told_name
from memoranda.engine.writability import write_trouble
from memoranda.errors import (
    Ambiguous,
    InvalidInput,
    MemorandaError,
    NotFound,
    OutsideError,
    ProjectWarning,
)
from memoranda.index.rows import FilledNotes, NoteInfo, NotesListed
from memoranda.index.told_notes import Mark, ToldNote, evidence_text, told_notes
from memoranda.ledger.review_rows import ANSWER
from memoranda.note import links
from memoranda.note.model import (
    ARCHIVE_PROJECT,
    CATEGORY_PROJECT,
    KV_PROJECT,
    MEMORY_PROJECTS,
    Note,
)
from memoranda.note.names import Looseness, is_named_by_id, is_place, link_target
from memoranda.query import Query, memory_query, parse
from memoranda.sources import path_guard
from memoranda.sources.folder import FolderSource
from memoranda.value_object import ValueObject

if TYPE_CHECKING:
    from memoranda.index.note_queries import FolderRow, HomeCounts
    from memoranda.index.rows import Hit, Hits, SmartResult
    from memoranda.index.search.ranking import Nearness
    from memoranda.index.sync import Result
    from memoranda.note.model import Observation
    from memoranda.sources.base import File
    from memoranda.text.gate import Rules

T = TypeVar("T")
Ref = str | tuple[str, str] | Note | NoteInfo

# A common estimate for English, so that no tokenizer is needed.
CHARACTERS_PER_TOKEN = 4
# The tokens of a context if the caller names no number.
EVIDENCE_TOKENS = 2000
# A question gets no evidence unless a passage has at least this relevance (docs/recall.md). So half of
# the questions that need no memory get nothing, but also 1 percent of those that notes answer.
EVIDENCE_FLOOR = 0.2
# How many hits of a search a reranking model puts in order, if there is one.
MOST_RERANKED = 30
# The length of a UUID with its hyphens.
_ID_LENGTH = 36


@dataclass(slots=True, eq=False, repr=False)
class DirectoryEntry(ValueObject):
    """A folder or a note in a listing.

    kind: `folder` or `note`.
    path: the path relative to the project.
    title, permalink: the title and permalink of a note; None for a folder.
    changed: when the note was last changed (ISO 8601); None for a folder.
    notes: how many notes a folder has, with its subfolders; None for a note.
    """

    kind: str
    path: str
    title: str | None = None
    permalink: str | None = None
    changed: str | None = None
    notes: int | None = None


def _directory_entry(row: FolderRow) -> DirectoryEntry:
    """Return the entry for a row of the index's listing. A row without a note is of a folder."""
    note = row.note
    if note is None:
        return DirectoryEntry("folder", row.path, notes=row.notes)
    return DirectoryEntry(
        kind="note", path=row.path, title=note.title, permalink=note.permalink, changed=note.changed
    )


@dataclass(slots=True, eq=False, repr=False)
class Directory(ValueObject):
    """One page of a listing of a folder.

    entries: the notes and folders on this page.
    total: their number on all pages.
    """

    entries: list[DirectoryEntry]
    total: int


def _check_max_tokens(max_tokens: int | None) -> None:
    """Raise InvalidInput for a number of tokens below 1. None is right: it means no such limit."""
    if max_tokens is not None and max_tokens < 1:
        raise InvalidInput(f"`max_tokens` must be at least 1; got {max_tokens}.")


class ReadVerbs(ProjectList):
    """The verbs that read. They write nothing to disk except the counts of reads and uses."""

    @property
    def settings(self) -> Settings:
        """Return the configuration in force."""
        return self.engine.settings

    def reread_settings(self) -> Settings:
        """Return the configuration as its file has it now.

        Each verb reads a changed file by itself. This is for what a setting decides before the
        first verb of a call.
        """
        self.engine.reload_config()
        return self.engine.settings

    @property
    def warnings(self) -> builtins.list[ProjectWarning]:
        """Return a warning for each file and folder that the last look at the disk could not read.

        No warning is about a project that the caller may not use. If the configuration cannot be
        read, a warning about it comes first. `Memory.warnings` adds further warnings to this list.
        """
        with self.engine.guard:
            warnings = [
                warning
                for warning in self.engine.freshness.warnings
                if not warning.project or self.may_use(warning.project)
            ]
            trouble = self.engine.config_trouble
            if trouble:
                return [ProjectWarning(trouble), *warnings]
            return warnings

    @property
    def disk_trouble(self) -> str:
        """Say which changes have files that the disk refused to sync. "" without such changes.

        Raises StorageError.
        """
        return self.engine.ledger.refused_files.trouble()

    @property
    def write_trouble(self) -> str:
        """Say why nothing can be written into the home, such as a full disk. "" if it can be."""
        layout = self.engine.layout
        return write_trouble((layout.root, layout.private))

    @property
    def unreadable(self) -> dict[tuple[str, str], str]:
        """Return why files are missing in the index: (project, path) -> the reason.

        These files cannot be read as notes. Those of projects that the caller may not use are not
        named.
        """
        reasons = self.engine.freshness.left_out.reasons
        return {place: reason for place, reason in reasons.items() if self.may_use(place[0])}

    @property
    def has_changed_memories(self) -> bool:
        """Whether `memory.md` is out of date.

        It is if this process has changed a memory of the project `categories` since `memory.md` was
        written.
        """
        return CATEGORY_PROJECT in self.engine.changed_projects

    @verb
    def freshen(self) -> dict[str, Any]:
        """Bring the index up to date on behalf of another process that has this home open.

        Returns what the other process may rely on:
        index: (st_dev, st_ino) of the index file that is up to date now.
        projects: the folders of the projects that this process watches. The other process need not
            compare these folders with the index.
        reading: whether another thread is reading a large file, which the index does not show yet.
        """
        self.engine.fresh()
        index = self.engine.index
        # The other process cannot use a copy of the index in the memory of this process.
        projects = {} if index.is_copy else self.engine.freshness.watched_folders()
        return {
            "index": index.identity[:2],
            "projects": projects,
            "reading": self.engine.freshness.is_reading,
        }

    @verb
    def read(self, ref: Ref, *, project: str | None = None, count: bool = True) -> Note:
        """Return the whole note as it is on disk now.

        ref: the note, named in one of the ways that `find` understands.
        project: the project to look in; None for all projects.
        count: whether to count one read of the note.

        Raises NotText if the file is not text, and the errors of `find`.
        """
        if isinstance(ref, NoteInfo) and self.sees(ref.scope) and self._is_unchanged(ref):
            # The caller found this note in the index, and its file is as it was then. So the index
            # is not brought up to date for it.
            info = ref
        else:
            info = self.find(ref, project)
        note = self.parse(info.project, info.path, self.engine.file_of(info))
        if count:
            self.engine.reads.count_read(note.id)
            self.served.append(note.id)
        return self.as_indexed(note)

    def _is_unchanged(self, info: NoteInfo) -> bool:
        """Whether the file of a note is as the index knows it: with the same size, times and inode."""
        known_stamp = (info.size, info.mtime_ns, info.inode, info.ctime_ns)
        return self.engine.source(info.project).stamp(info.path) == known_stamp

    def look_once(self) -> None:
        """From now on, compare the index with the disk only in the first verb, until one writes.

        This is for a short command that calls several verbs.
        """
        self.engine.looks_once = True

    @verb
    def at_once(self, work: Callable[[], T]) -> T:
        """Call `work` and return its result.

        The disk is checked for changes only once, at the first read in `work`. So all reads in
        `work` see one state of the disk.
        """
        return work()

    @verb
    def file(self, ref: Ref, project: str | None = None) -> File:
        """Return the file of a note with its bytes, even if the bytes are not text.

        project: the project to look in. None means all projects.

        Raises the errors of `find`.
        """
        info = self.find(ref, project)
        return self.engine.file_of(info)

    @verb
    def text_of(self, info: NoteInfo) -> str:
        """Return the note's text as indexed, without looking at the disk."""
        return "".join(self.index.notes.text_of(info.row))

    @verb
    def find(
        self,
        ref: Ref,
        project: str | None = None,
        *,
        looseness: Looseness = Looseness.SIGNS,
    ) -> NoteInfo:
        """Return the note that `ref` means (see `Memory.find`; contract 000b, 4.2).

        ref: a name, a permalink or an id; or (project, path); or a note that was found before.
        project: the project to look in; None for all projects.
        looseness: how much a name may differ from the note's own name. Verbs that change a note
            pass CASE, and verbs that delete a note pass EXACT.

        Raises NotFound, Ambiguous if several notes have the name, and OutsideError for a path that
        leads out of the project.
        """
        if isinstance(ref, str):
            info = self._note_named(ref, project, looseness)
        else:
            info = self._at_place(ref)
        self.engine.count_pending_reads([info])
        return info

    def _note_named(self, identifier: str, project: str | None, looseness: Looseness) -> NoteInfo:
        """Return the note that a reference names. Raises the errors of `find`.

        The reference may be as lists print it: `main: Shopping` is the note Shopping in the project
        main. If some note is called `main: Shopping`, that note is returned instead.

        project: the project to look in; None for all projects.
        looseness: how much the name may differ from the note's own: EXACT, CASE or SIGNS.
        """
        if project is not None:
            project = self.source_named(project).name
        self.engine.fresh()
        try:
            return self._resolve(identifier, project, looseness)
        except NotFound:
            # No note is called so. It may be the project and the name, as a list prints them.
            prefix, colon, name = identifier.partition(": ")
            listed_project: str | None = None
            if colon:
                listed_project = self.project_called(prefix.strip(), looseness=looseness)
            is_elsewhere = project is not None and project != listed_project
            if listed_project is None or is_elsewhere:
                raise
            with suppress(NotFound, InvalidInput, OutsideError):
                return self._resolve(name, listed_project, looseness)
            # The first error names the reference as the caller wrote it.
            raise

    def _resolve(self, identifier: str, project: str | None, looseness: Looseness) -> NoteInfo:
        """Return the note with a name in the index. Raises the errors of `find`.

        identifier: a name, a permalink, an id, or a link such as `[[Plan]]`.
        project: the project to look in; None for all projects.
        looseness: how much the name may differ from the note's own: EXACT, CASE or SIGNS.

        A late project is a large one that is still being compared with the disk. Its files of this
        name are looked at now, so that the answer is right.
        """
        freshness = self.engine.freshness
        target = link_target(identifier)
        if target and not self._is_name_as_written(identifier, project):
            identifier = target
        look_up = partial(
            self.index.notes.find,
            identifier,
            project=project,
            default_project=self.default_project,
            viewer=self.agent,
            looseness=looseness,
            begins_with_project=self._begins_with_project(identifier, looseness),
        )
        try:
            info = look_up()
        except OutsideError as error:
            # An address alone does not tell its project.
            raise OutsideError(error.path, project or self.default_project) from None
        except NotFound:
            if not freshness.late_sweeps:
                raise
            self._look_at_late_files(identifier)
            info = look_up()

        # The index of a late project may have an old text of the note.
        if freshness.late_sweeps and not self._is_unchanged(info):
            freshness.show_if_late(info.project, info.path)
            info = look_up()
        return info

    def _begins_with_project(self, identifier: str, looseness: Looseness) -> bool:
        """Whether a name begins with a project that the caller may use: `work/Tea.md`.

        It matters only where something is changed. So the answer is False for reading (SIGNS).
        """
        if looseness is Looseness.SIGNS:
            return False
        first, slash, _ = identifier.removeprefix("memory://").partition("/")
        return bool(slash) and self.project_called(first, looseness=looseness) is not None

    def _look_at_late_files(self, identifier: str) -> None:
        """Bring files that a name may mean as a path into the index, if their project is late."""
        freshness = self.engine.freshness
        # A look at a file may end the list of late projects.
        for project in list(freshness.late_sweeps):
            path = identifier.removeprefix("memory://").removeprefix(f"{project}/")
            freshness.show_if_late(project, path)
            freshness.show_if_late(project, f"{path}.md")

    def _at_place(self, ref: tuple[str, str] | Note | NoteInfo) -> NoteInfo:
        """Return the note at (project, path), or the note that the caller read there before.

        If the caller gives a memory that was moved or merged since then, the memory is found by its
        id. Raises NotFound.
        """
        if isinstance(ref, tuple):
            project, path = ref
        else:
            project, path = ref.project, ref.path
        self.engine.fresh()
        source_name = self.source_named(project).name
        self.engine.freshness.show_if_late(source_name, path)
        info = self.index.notes.get(source_name, path)
        if info is None:
            if project in MEMORY_PROJECTS and not isinstance(ref, tuple):
                # The memory was moved to its category, or merged, since the caller found it.
                return self._memory_of_id(ref.id)
            raise NotFound(path, project)
        if not self.sees(info.scope):
            raise NotFound(path, project)
        return info

    def _is_name_as_written(self, text: str, project: str | None) -> bool:
        """Whether a text that looks like a link is itself the exact name of a note.

        For example, a note may be called `[[Plan]]`.

        project: the project to look in; None for all projects.
        """
        try:
            self.index.notes.find(
                text,
                project=project,
                default_project=self.default_project,
                viewer=self.agent,
                looseness=Looseness.EXACT,
            )
        except Ambiguous:
            return True
        except MemorandaError:
            return False
        return True

    @verb
    def find_any(self, ref: str, *, looseness: Looseness = Looseness.SIGNS) -> NoteInfo:
        """Return the note of any project that `ref` names.

        ref: a name, a permalink, the beginning of a memory's id, or `project/path`.
        looseness: how much the name may differ from the note's own: EXACT, CASE or SIGNS.

        Raises NotFound if no note fits, and Ambiguous if several notes fit. A text that is the name
        of one note and the beginning of another note's id is ambiguous, too.
        """
        try:
            return self._memory_or_note(ref, looseness)
        except (NotFound, InvalidInput, OutsideError) as error:
            near = error.suggestions if isinstance(error, NotFound) else ()
            raise NotFound(ref, CATEGORY_PROJECT, near) from None

    def _memory_or_note(self, ref: str, looseness: Looseness) -> NoteInfo:
        """Return the memory whose id is or begins with `ref`, or else the note with this name or
        place.

        A whole id counts more than a name: if `ref` is both, it means the id. Raises Ambiguous if
        the beginning of an id is also the exact name of another note, and if a note that is to be
        changed has the same id as the memory. Raises the errors of `find`, too.

        looseness: how much the name may differ from the note's own: EXACT, CASE or SIGNS.
        """
        memory = self._memory_by_id(ref, looseness)
        if memory is not None and memory.id == ref.strip().lower():
            if looseness is not Looseness.SIGNS:
                self._check_has_own_id(memory)
            return memory
        named_note: NoteInfo | None = None
        with suppress(NotFound, InvalidInput, OutsideError):
            named_note = self._at_path_or_named(ref, Looseness.EXACT)
        if memory is not None and named_note is not None and memory.row != named_note.row:
            raise Ambiguous(ref, [memory.id, f"{named_note.project}/{named_note.path}"])
        if memory is not None:
            return memory
        if named_note is not None:
            return named_note
        # Neither an id nor an exact name. So a name may also differ from the note's own.
        return self._at_path_or_named(ref, looseness)

    def _check_has_own_id(self, memory: NoteInfo) -> None:
        """Raise Ambiguous if a note of another project has the id of a memory.

        A note in the archive keeps the id that its place gave it, and the next note at that place
        gets the same one.
        """
        # The index is asked directly, so that the whole home is not compared with the disk.
        found_note = self.index.notes.find(
            memory.id,
            default_project=self.default_project,
            viewer=self.agent,
            looseness=Looseness.EXACT,
        )
        if found_note.row != memory.row:
            places = [f"{note.project}/{note.path}" for note in (memory, found_note)]
            raise Ambiguous(memory.id, places)

    def _memory_by_id(self, ref: str, looseness: Looseness) -> NoteInfo | None:
        """Return the memory whose id is or begins with `ref`. None if `ref` names no memory so.

        looseness: how much a name may differ, as `is_named_by_id` reads it.

        Raises Ambiguous if several ids begin with `ref`.
        """
        # Somebody may write any id into a file by hand, the place of another file too.
        if looseness is not Looseness.SIGNS and is_place(ref, begins_with_project=False):
            return None
        memory: NoteInfo | None = None
        with suppress(NotFound):
            memory = self.memory_id(ref)
        if memory is None or not is_named_by_id(ref.strip().lower(), memory.id, looseness):
            return None
        return memory

    def _at_path_or_named(self, ref: str, looseness: Looseness) -> NoteInfo:
        """Return the note at `project/path`, or else the note that `ref` names.

        looseness: how much the name may differ from the note's own: EXACT, CASE or SIGNS.

        Raises the errors of `find`, and Ambiguous if a project called `archive` and the archive both
        have a note at this place.
        """
        first, slash, path = ref.partition("/")
        project: str | None = None
        if slash:
            project = self.project_called(first, looseness=looseness)
        if project is not None:
            with suppress(NotFound, InvalidInput, OutsideError):
                note = self.find((project, path))
                self.check_not_in_archive(ref, note.project, note.path)
                return note
        if project == KV_PROJECT:
            entry_note = self._entry_named(ref, path)
            if entry_note is not None:
                return entry_note
        info = self.find(ref, looseness=looseness)
        if project == KV_PROJECT and info.project != project and looseness is not Looseness.SIGNS:
            # The entry is gone, and another note has its name for a title.
            raise NotFound(ref, project, [f"{info.project}/{info.path}"])
        return info

    def check_not_in_archive(self, ref: str, project: str, path: str) -> None:
        """Raise Ambiguous if `ref`, which names a place of a project, may also mean an archived note.

        Replies show an archived note as `archive/PATH`. A project of a user may be called
        `archive`, too, so its note at this path is named by its id in the error.

        ref: the reference, `project/path`.
        project, path: the place.
        """
        shown_name = ARCHIVE_PROJECT.removeprefix(".")
        if project.casefold() != shown_name:
            return
        archived_note = self.index.notes.get(ARCHIVE_PROJECT, path)
        note = self.index.notes.get(project, path)
        if archived_note is None or note is None:
            return
        if self.sees(archived_note.scope) and self.sees(note.scope):
            raise Ambiguous(ref, [f"{ARCHIVE_PROJECT}/{path}", note.id])

    def _entry_named(self, ref: str, name: str) -> NoteInfo | None:
        """Return the note of the key-value entry `NAMESPACE/KEY`. None if no entry is called so.

        Both parts may have a `/`, so several entries may have the name: then Ambiguous is raised.

        ref: the whole reference, for the error.
        name: its part after the project.
        """
        # Commands that name no entry do without the module.
        from memoranda.note.entry import namespace_of

        parts = name.split("/")
        notes = []
        for count in range(1, len(parts)):
            namespace = "/".join(parts[:count])
            key = "/".join(parts[count:])
            for path in self.index.entries.paths_with(key):
                note = self.index.notes.get(KV_PROJECT, path)
                if note is None or not self.sees(note.scope):
                    continue
                if namespace_of(note.header, path) == namespace:
                    notes.append(note)
        if len(notes) > 1:
            raise Ambiguous(ref, [f"{note.project}/{note.path}" for note in notes])
        return notes[0] if notes else None

    @verb
    def find_memory(self, ref: str) -> NoteInfo:
        """Return the memory that `ref` names, for a verb that changes it.

        A memory is a note in one of MEMORY_PROJECTS: `memory write` stores it in `categories`, and
        upkeep may move it to the archive.

        ref: the beginning of an id, a name or `project/path`. A name may differ from the memory's
            own name only in case. Looser names, which are enough for reading, might change another
            memory than the caller means.

        Raises the errors of `find_any`, and NotFound for a note that is not a memory.
        """
        info = self.find_any(ref, looseness=Looseness.CASE)
        if info.project not in MEMORY_PROJECTS:
            raise NotFound(ref, CATEGORY_PROJECT)
        return info

    @verb
    def memory_id(self, text: str) -> NoteInfo:
        """Return the memory of `categories` whose id is `text` or begins with `text` (contract 001,
        1).

        Its access count includes the reads that are not yet written in its file. Raises NotFound,
        and Ambiguous if several ids begin with `text`.
        """
        note = self._memory_of_id(text)
        self.engine.count_pending_reads([note])
        return note

    def _memory_of_id(self, text: str) -> NoteInfo:
        """Return the memory that `memory_id` finds, without adding the reads that its file does not
        have yet.

        If `text` is a whole id and the memory's file is unchanged, no other file is checked.
        Otherwise the index is first brought up to date.
        """
        reference = text
        text = text.strip().lower()
        if not text.isascii():
            # An id consists of ASCII characters, so no memory has this id.
            raise NotFound(reference, CATEGORY_PROJECT)
        note: NoteInfo | None = None
        is_whole_id = len(text) == _ID_LENGTH
        # Comparing all files takes long before the first sweep, and little time after it.
        if is_whole_id and not self.engine.freshness.is_swept:
            with suppress(NotFound):
                note = self.index.notes.find_id(text, viewer=self.agent)
        if note is not None and self._is_unchanged(note):
            return note
        self.engine.fresh()
        try:
            return self.index.notes.find_id(text, viewer=self.agent)
        except NotFound:
            raise NotFound(reference, CATEGORY_PROJECT) from None

    @verb
    def search(
        self,
        query: str | Query,
        *,
        limit: int = 10,
        offset: int = 0,
        explain: bool = False,
        max_tokens: int | None = None,
        vetted: bool = False,
        is_use: bool = True,
    ) -> Hits:
        """Search for notes (see `Memory.search` and contract 000b, 6).

        limit: how many hits to return.
        offset: how many hits to skip before the first one.
        explain: whether each hit says why it was found.
        max_tokens: the most tokens of all hits together; None for no limit.
        vetted: whether to leave out notes that are held back (`is_held_back`). It is True if the
            hits go into the context of a model that did not ask for them.
        is_use: whether the notes found count as used.
        """
        _check_max_tokens(max_tokens)
        self.engine.fresh()
        valid_query = self.query_of(query, valid=True)
        if vetted:
            valid_query = valid_query.replace(upheld=self.upheld_rows())
        hits = self._page_of_hits(valid_query, limit, offset, explain=explain)
        if vetted:
            hits.hits = [hit for hit in hits if not self.is_held_back(hit.note)]
        # A newer note comes before one that says the same or that it contradicts. But a query about
        # another time gets the answers that were right then.
        if valid_query.as_of is None:
            from memoranda.engine.telling.restated import with_newest_first

            hits.hits, _ = self._newest_first(with_newest_first(self, hits.hits))
        self.engine.count_pending_reads(hit.note for hit in hits)
        if max_tokens is not None:
            hits.cut(max_tokens * CHARACTERS_PER_TOKEN)
        # Hits without scores are a plain list, which does not count as use.
        if is_use and any(hit.score for hit in hits):
            self.record_use(hit.note for hit in hits if hit.passage)
        return hits

    def _page_of_hits(self, query: Query, limit: int, offset: int, *, explain: bool) -> Hits:
        """Return a page of hits.

        If the settings name a reranking model, the first MOST_RERANKED hits are in the order of
        this model.

        limit: how many hits to return.
        offset: how many hits to skip before the first one.
        explain: whether each hit says why it was found.
        """
        find = partial(
            self.index.search,
            query,
            viewer=self.agent,
            explain=explain,
            today=self._today(),
            near=self._nearness(),
        )
        if self._is_reranked(query, offset):
            return self._reranked(query.text, find, offset, limit)
        return find(limit=limit, offset=offset)

    def _is_reranked(self, query: Query, offset: int) -> bool:
        """Whether a model puts the first hits of this search in order."""
        has_text = bool(query.text.strip()) and query.search_type != "permalink"
        return has_text and offset < MOST_RERANKED and self.settings.rerank_model is not None

    def _reranked(self, text: str, find: Callable[..., Hits], offset: int, limit: int) -> Hits:
        """Return a page of hits after a model has put the first MOST_RERANKED hits in order.

        text: the text of the search.
        find: returns the hits of the index for a `limit` and an `offset`.
        offset: how many hits to skip before the page.
        limit: how many hits the page has.

        The hits after the first MOST_RERANKED stay in the order of the index.
        """
        # The import is here because few homes have such a model.
        from memoranda.index.search.reranking import RerankModel, rerank

        settings = self.settings
        hits = find(limit=MOST_RERANKED, offset=0)
        if settings.rerank_endpoint and settings.rerank_model:
            model = RerankModel(
                settings.rerank_endpoint, settings.rerank_model, settings.rerank_key
            )
            rerank(model, text, hits, MOST_RERANKED)
        # The page may need further hits, after those that the model has put in order.
        missing = offset + limit - MOST_RERANKED
        if missing > 0 and len(hits) == MOST_RERANKED:
            hits.hits += find(limit=missing, offset=MOST_RERANKED).hits
        hits.hits = hits.hits[offset : offset + limit]
        return hits

    def gate_rules(self) -> Rules:
        """Return the rules of the write gate, which refuses texts with secrets. They include the
        owner's.
        """
        return self.engine.gate.rules()

    def rules_for_reading(self) -> Rules:
        """Return `gate_rules`. If the owner's file of rules cannot be read, return only the
        program's rules.
        """
        return self.engine.gate.rules_for_reading()

    def is_held_back(self, info: NoteInfo) -> bool:
        """Whether a note is shown only on request, because it may give orders to agents.

        A suspicious note is not held back if the owner wrote all of it, or approved it in `review`.
        Its name is not the owner's if an agent moved it since.
        """
        if not info.suspicious:
            return False
        if self._is_moved_to_order(info):
            return True
        if info.provenance.trust == "owner":
            return False
        return self.decision(suspicion(self, info)) != KEEP

    def _is_moved_to_order(self, info: NoteInfo) -> bool:
        """Whether an agent gave a note a place whose name may be an order."""
        if not self.rules_for_reading().name_suspicions(info.path):
            return False
        return self._agent_that_named(info) is not None

    def _agent_that_named(self, info: NoteInfo) -> str | None:
        """Return the agent that gave a note its place since the owner last approved the note.

        None if the owner gave it, or approved it.
        """
        history = self.engine.ledger.history
        is_rewritten = info.provenance.trust == "owner"
        agent = history.agent_that_named(info.project, info.path, is_rewritten=is_rewritten)
        # Few notes were placed by an agent, so only of these it is asked when they were approved.
        if agent is None:
            return None
        keys = (self.claim(info), suspicion(self, info))
        approved_keys = [key for key in keys if self.decision(key) == KEEP]
        # The number of the change that stored the approval; 0 without one.
        approval_number = history.last_change_of_answers(approved_keys)
        if not approval_number:
            return agent
        return history.agent_that_named(info.project, info.path, after=approval_number)

    def decision(self, key: str) -> str | None:
        """Return the owner's answer to a question of `review`, as a letter.

        Returns None if the question is open, or if its answer was carried out at once and not
        stored.

        key: identifies the question.
        """
        answer = self.engine.ledger.review_value(ANSWER, key)
        if answer is None:
            return None
        return str(answer.get("choice"))

    def telling(self, info: NoteInfo) -> Telling:
        """Return how to show a note to a session that did not ask for it.

        It is shown as a fact, as the claim of its author, or not at all (docs/trust.md).
        """
        provenance = info.provenance
        is_own = provenance.trust == "owner"
        return telling(
            provenance,
            is_held_back=self.is_held_back(info),
            is_confirmed=not is_own and self.decision(self.claim(info)) == KEEP,
        )

    def author_marks(self, info: NoteInfo) -> tuple[Mark, ...]:
        """Return the remarks that a session must see beside the words of a note.

        They name the author, and say that the owner has not confirmed the note. A note that the
        owner wrote or confirmed has none.
        """
        if self.telling(info) is Telling.FACT:
            return ()
        return (Mark("by {agent}", author(info.provenance)), Mark("unconfirmed"))

    def name_marks(self, info: NoteInfo) -> tuple[Mark, ...]:
        """Return the remark that an agent gave its place to a note that is told as a fact.

        The address of a note, and often its title, are made of its place. So they are the agent's
        words (AMENDMENTS 1.4).
        """
        if self.telling(info) is not Telling.FACT:
            return ()
        agent = self._agent_that_named(info)
        if agent is None:
            return ()
        return (Mark("moved here by {agent}, name unconfirmed", told_name(agent)),)

    def origin_marks(self, info: NoteInfo) -> tuple[Mark, ...]:
        """Return the remarks on who wrote a note, and on who gave it its place."""
        return self.author_marks(info) or self.name_marks(info)

    def claim(self, info: NoteInfo) -> str:
        """Return the key of the question whether a note is right.

        If the owner confirms the note, the answer is stored under this key. The key changes with
        the text of the note.
        """
        return suspicion(self, info).replace("suspicious:", f"{CLAIM}:", 1)

    def record_use(self, infos: Iterable[NoteInfo]) -> None:
        """Record that the caller was shown the text of these notes (contract 001, 18.3).

        Memories among them count as used, but not as read.
        """
        infos_shown = list(infos)
        self.served += [info.id for info in infos_shown]
        # A look from the page, or a preview, does not count as use.
        if self.only_reads:
            return
        memories = [info.id for info in infos_shown if info.project in MEMORY_PROJECTS]
        self.engine.reads.record_use(memories, self.clock())

    def _nearness(self) -> Nearness | None:
        """Return the function that says how near notes are to a query in meaning.

        None means that the home has no embedding model, or that no note has an embedding yet.
        """
        from memoranda.engine.embedding import Embedding

        return Embedding(self).nearness

    def _related(self) -> float:
        """Return the lowest cosine similarity of a note that is related to a question.

        Each embedding model has its own.
        """
        from memoranda.engine.embedding import Embedding

        return Embedding(self).related

    @verb
    def smart_search(
        self, query: str, top: int = 10, filters: Query = memory_query(), *, use: bool = True
    ) -> SmartResult:
        """Search memories for the words of `query`, and return the best first (contract 001, 14).

        top: how many memories to return; 0 means all.
        filters: the filter that a memory must pass.
        use: whether the memories found count as used.

        Raises InvalidInput if `query` holds no word.
        """
        self.engine.fresh()
        result = self.index.smart(
            query, self.query_of(filters, valid=True), viewer=self.agent, top=top
        )
        self.engine.count_pending_reads(hit.note for hit in result.best)
        if use:
            self.record_use(hit.note for hit in result.best)
        return result

    @verb
    def context_for(
        self,
        question: str,
        *,
        max_tokens: int | None = None,
        projects: tuple[str, ...] | None = None,
        as_of: datetime | None = None,
        vetted: bool = True,
    ) -> str:
        """Collect evidence for a question as text for a prompt (see `Memory.context`).

        max_tokens: the most tokens of the text; None for EVIDENCE_TOKENS.
        projects: the names of the projects to search; None for all.
        as_of: the time at which the evidence was valid; None for now.
        vetted: whether to leave out notes that are held back (`is_held_back`).

        Raises ProjectNotFound, and InvalidInput for a `max_tokens` below 1.
        """
        _check_max_tokens(max_tokens)
        self.engine.fresh()
        room = (EVIDENCE_TOKENS if max_tokens is None else max_tokens) * CHARACTERS_PER_TOKEN
        filters = self._evidence_filters(projects, as_of)
        hits = self._evidence(question, room, filters, vetted=vetted)
        # The rows of notes that are shown after a newer note that contradicts them.
        led_rows: Container[int] = ()
        # A question about another time (`as_of`) gets passages that were right at that time. A newer
        # note does not make them outdated, so no notes are put in front of them.
        if as_of is None:
            from memoranda.engine.telling.surroundings import with_surroundings

            hits, led_rows = self._newest_first(hits)
            hits = with_surroundings(self, hits, room, filters.projects)
        # Several passages may be of one note.
        notes_by_id = {hit.note.id: hit.note for hit in hits}
        self.record_use(notes_by_id.values())
        notes = self._with_authors(told_notes(hits, self.settings.zone, led_rows))
        text = evidence_text(notes)
        # The remarks on authors take room, too.
        while len(text) > room and len(notes) > 1:
            notes.remove(min(notes, key=lambda note: note.score))
            text = evidence_text(notes)
        return text[:room]

    def _evidence_filters(self, projects: tuple[str, ...] | None, as_of: datetime | None) -> Query:
        """Return the filters that the notes of a context must pass. Raises ProjectNotFound.

        projects: the names of the projects to search; None for all.
        as_of: the time at which the evidence was valid; None for now.
        """
        filters = Query(projects=projects, as_of=as_of, upheld=self.upheld_rows())
        return self.query_of(filters, valid=True)

    def _evidence(
        self,
        question: str,
        room: int,
        filters: Query,
        *,
        vetted: bool,
    ) -> builtins.list[Hit]:
        """Return the passages that best answer a question. [] if no note is near enough to it.

        room: the most characters of the passages.
        filters: the filters that a note must pass, as `query_of` returns them.
        vetted: whether to leave out notes that are held back (`is_held_back`).
        """
        return self.index.evidence(
            question,
            viewer=self.agent,
            max_chars=room,
            projects=filters.projects,
            today=self._today(),
            near=self._nearness(),
            filters=filters,
            skip=self.is_held_back if vetted else None,
            floor=EVIDENCE_FLOOR,
            related=self._related(),
        )

    @verb
    def passed_over(
        self,
        question: str,
        *,
        projects: tuple[str, ...] | None = None,
        as_of: datetime | None = None,
    ) -> int:
        """Return how many notes a search finds although none is near enough for `context_for`.

        0 if a note is near enough, because `context_for` is then empty for another reason. 0 for a
        blank question, too, because no note can be near to it.

        question: the question that `context_for` was called with.
        projects: the names of the projects to search; None for all.
        as_of: the time at which the evidence was valid; None for now.
        """
        # A search without words would list all notes.
        if not question.strip():
            return 0
        self.engine.fresh()
        room = EVIDENCE_TOKENS * CHARACTERS_PER_TOKEN
        filters = self._evidence_filters(projects, as_of)
        if self._evidence(question, room, filters, vetted=False):
            return 0
        query = Query(question, projects=projects, as_of=as_of)
        return self.search(query, limit=1, is_use=False).total

    def _with_authors(self, notes: Iterable[ToldNote]) -> builtins.list[ToldNote]:
        """Return notes with the remarks on their authors (`origin_marks`)."""
        marked_notes: builtins.list[ToldNote] = []
        for note in notes:
            marks = (*note.marks, *self.origin_marks(note.note))
            marked_notes.append(note._replace(marks=marks))
        return marked_notes

    @verb
    def recall(
        self,
        text: str,
        *,
        least: float,
        max_tokens: int,
        known_ids: Container[str] = (),
        limit: int = 5,
    ) -> builtins.list[ToldNote]:
        """Return the notes relevant to a text that is not a query, with their relevant passages.

        The passages are chosen by their words, not by embeddings. Three kinds of notes are left
        out: notes that are not valid now, archived notes, and notes that are not shown to a session
        that did not ask for them (`telling`). Claims name their author.

        text: the text, such as the prompt that the user just wrote.
        least: the lowest relevance of a passage (docs/hooks.md).
        max_tokens: the most tokens of the passages together.
        known_ids: the ids of notes to leave out.
        limit: how many passages to return at most.
        """
        self.engine.fresh()
        filters = Query(as_of=self.clock(), archived=False, upheld=self.upheld_rows())
        hits = self.index.evidence(
            text,
            viewer=self.agent,
            max_chars=max_tokens * CHARACTERS_PER_TOKEN,
            today=self._today(),
            least=least,
            filters=self.query_of(filters),
            skip=lambda note: note.id in known_ids or self.telling(note) is Telling.SILENT,
        )[:limit]
        hits, led_rows = self._newest_first(hits)
        return self._with_authors(told_notes(hits, self.settings.zone, led_rows))

    @verb
    def list(
        self,
        query: str | Query = Query(),
        *,
        limit: int = 50,
        offset: int = 0,
    ) -> NotesListed:
        """List the notes that pass filters (see `Memory.list`)."""
        self.engine.fresh()
        infos, total = self.index.notes.listing(
            self.query_of(query), viewer=self.agent, limit=limit or None, offset=offset
        )
        self.engine.count_pending_reads(infos)
        return NotesListed(infos, total)

    @verb
    def list_filled(self, query: Query, *, limit: int, offset: int = 0) -> FilledNotes:
        """List notes, but not the files of memory banks that nobody has filled yet.

        They are newer than all that a person wrote before, so a list of the newest notes would have
        nothing else. A query that names projects asks for all of their notes.

        limit: how many notes at most; 0 means all.
        offset: how many notes to skip.
        """
        if query.projects is not None:
            infos, total = self.list(query, limit=limit, offset=offset)
            return FilledNotes(infos, total, 0)

        infos, total = self.list(query.replace(filled=True), limit=limit, offset=offset)
        _, total_with_unfilled = self.list(query, limit=1)
        return FilledNotes(infos, total, total_with_unfilled - total)

    def since(self, text: str) -> datetime:
        """Return the beginning of a time frame such as `2h` or `yesterday` (contract 000b, 5)."""
        return clock.since(text, self.clock(), self.settings.zone)

    def as_of(self, text: str) -> datetime:
        """Return the moment that a text means, as a value for `Query.as_of`.

        text: a day, a time, `yesterday`, `3 weeks ago`, `2025-03` or `2025`. A day, month or year
            means its end: `2025` is the last moment of 2025.

        Raises TimeframeError if the text is not a time.
        """
        return clock.as_of(text, self.clock(), self.settings.zone)

    @verb
    def validity_marks(self, infos: Iterable[NoteInfo]) -> dict[int, str]:
        """Return the remarks on notes that are not valid at all times, by row of the note.

        Such a remark is shown with the note: `superseded by PERMALINK`, `valid until DAY` or
        `valid from DAY`. A note that a newer one contradicts gets a remark, too. Other notes have
        none.
        """
        from memoranda.engine.telling.contested import newer_marks

        notes = list(infos)
        remarks = newer_marks(self, notes)
        return remarks | self.index.notes.validity_marks(notes, self.agent, self.settings.zone)

    @verb
    def version_at(self, ref: Ref, moment: datetime) -> NoteInfo:
        """Return the version of a note that was valid at `moment`.

        The versions of a note are the note and all notes that supersede it or that it supersedes,
        in any number of steps. If several were valid, the note itself comes first, then the newest.
        Raises InvalidInput if no version was valid.
        """
        info = self.find(ref)
        versions = self.versions(info)
        projects = tuple({version.project for version in versions.values()})
        valid_notes, _ = self.list(Query(projects=projects, as_of=moment), limit=0)
        valid = [version for version in valid_notes if version.row in versions]
        if not valid:
            raise InvalidInput(
                f"Neither {info.permalink} nor what it supersedes or is superseded by was valid on {moment:%Y-%m-%d}."
            )
        return max(valid, key=lambda version: (version.row == info.row, version.created))

    def versions(self, info: NoteInfo) -> dict[int, NoteInfo]:
        """Return a note and all its other versions that the caller may see, by row.

        A version supersedes another version or is superseded by it, in any number of steps.
        """
        notes = self.index.notes
        notes_by_row = {info.row: info}
        pending = [info]
        while pending:
            current = pending.pop()
            neighbours = notes.successors(current)
            if current.may_say(("supersedes",)):
                neighbours += notes.predecessors(current)
            new = {
                neighbour.row: neighbour
                for neighbour in neighbours
                if neighbour.row not in notes_by_row and self.sees(neighbour.scope)
            }
            notes_by_row |= new
            pending += new.values()
        return notes_by_row

    def _newest_first(self, hits: builtins.list[Hit]) -> tuple[builtins.list[Hit], Container[int]]:
        """Put each hit that a newer note contradicts behind the hit of the newer note.

        The passage of such a hit begins with a mark that says so. A note that the owner wrote or
        confirmed stays before a newer, unconfirmed note of somebody else.

        Returns the hits in their new order, and the rows of the notes that come behind another one
        for this reason.
        """
        from memoranda.engine.telling.contested import (
            leader_rows_of,
            marks_of,
            newer_contradictions,
            with_leaders_first,
        )

        notes = {hit.note.row: hit.note for hit in hits}
        contradictions = newer_contradictions(self, notes.values())
        # By the row of a note, the row of the note that is to be shown before it.
        leader_rows = self.upheld_leaders(notes) | leader_rows_of(self, contradictions)
        if not leader_rows:
            return hits, ()
        marks = marks_of(self, contradictions)
        for hit in hits:
            mark = marks.get(hit.note.row)
            if mark is not None:
                hit.why.append(mark)
                hit.passage = f"[{mark}] {hit.passage}"
        return with_leaders_first(hits, lambda hit: hit.note, leader_rows), leader_rows

    def upheld_rows(self) -> tuple[int, ...]:
        """Return the rows of the owner's notes that only unconfirmed notes of others supersede.

        Such a note stays valid until the owner confirms one of these notes, or supersedes it.
        """
        return tuple(info.row for info in self.index.notes.disputed() if self._is_upheld(info))

    def _is_upheld(self, info: NoteInfo) -> bool:
        """Whether a note of the owner is superseded only by notes that the owner never confirmed.

        info: the note. Notes that supersede it through others are looked at, too.
        """
        passed_rows = {info.row}
        pending = [info]
        while pending:
            for successor in self.index.notes.successors(pending.pop()):
                if successor.row in passed_rows:
                    continue
                if self.telling(successor) is Telling.FACT:
                    return False
                passed_rows.add(successor.row)
                pending.append(successor)
        return True

    def upheld_leaders(self, rows: Container[int]) -> dict[int, int]:
        """Return the rows of the owner's notes that come before unconfirmed notes of others.

        The result has the row of the owner's note by the row of each note that supersedes it.

        rows: the rows of the owner's notes to look at.
        """
        leader_rows: dict[int, int] = {}
        for info in self.index.notes.disputed():
            if info.row in rows and self._is_upheld(info):
                for successor in self.index.notes.successors(info):
                    leader_rows[successor.row] = info.row
        return leader_rows

    def invalid_rows(self) -> set[int]:
        """Return the rows of the notes that are not valid now."""
        return self.index.notes.invalid_rows(self.clock()) - {*self.upheld_rows()}

    def _today(self) -> date:
        """Return the present day in the owner's time zone."""
        return self.clock().astimezone(self.settings.zone).date()

    def query_of(self, query: str | Query, *, valid: bool = False) -> Query:
        """Return a query in the form that the index takes.

        A text is parsed, the times are in the owner's zone, and projects have their exact names.

        valid: whether to leave out notes that are not valid now. It is ignored if the query is
            about another time (`as_of`).

        Raises ProjectNotFound, and InvalidInput or OutsideError for an invalid address.
        """
        now = self.clock()
        zone = self.settings.zone
        if isinstance(query, str):
            query = parse(query, now=now, zone=zone)
        if query.as_of is not None:
            query = query.replace(as_of=query.as_of.astimezone(zone))
        elif valid:
            query = query.replace(valid_at=now.astimezone(zone))
        if query.day_from is not None and query.day_until is not None:
            query = query.replace(
                day_from=query.day_from.astimezone(zone), day_until=query.day_until.astimezone(zone)
            )
        if query.address is not None:
            query = query.replace(address=links.parse_address(query.address))
        if query.projects is not None:
            names = tuple(self.source_named(name).name for name in query.projects)
            query = query.replace(projects=names)
        return query

    @verb
    def directory(
        self,
        project: str,
        folder: str = "",
        *,
        depth: int = 1,
        glob: str | None = None,
        limit: int = 50,
        offset: int = 0,
    ) -> Directory:
        """List the folders and notes below a folder (see `Memory.directory`).

        folder: the folder in the project; "" means the whole project.
        depth: how many levels of folders to list.
        glob: a pattern that names must match; None for all names.
        limit: how many entries a page has; 0 means all entries.
        offset: how many entries to skip.
        """
        self.engine.fresh()
        source = self.source_named(project)
        links.check_length(glob or "", "A pattern of names")
        folder = self._folder(source.name, folder)
        rows, total = self.index.notes.directory(
            source.name,
            folder,
            depth=depth,
            viewer=self.agent,
            glob=glob,
            limit=limit or None,
            offset=offset,
        )
        return Directory([_directory_entry(row) for row in rows], total)

    @verb
    def has_folder(self, project: str, folder: str) -> bool:
        """Whether a project has a folder that the caller may see. Raises OutsideError."""
        self.engine.fresh()
        try:
            self._folder(self.source_named(project).name, folder)
        except NotFound:
            return False
        return True

    def _folder(self, project: str, folder: str) -> str:
        """Return the path of a folder as it is spelled on disk.

        For example, `/ideas/` becomes `Ideas` if the folder is called so. Raises NotFound,
        OutsideError.
        """
        folder = path_guard.clean(folder.strip("/"), project)
        folder = self.engine.spelled(project, folder)
        if folder and self._kind(project, folder) != "folder":
            raise NotFound(folder, project)
        return folder

    def _kind(self, project: str, path: str) -> str:
        """Return the kind of the entry at `path` of a project, as this caller sees it.

        The kind is `file`, `folder`, `missing` or another kind of `Source.place`. It is `hidden` in
        three cases: for a note of another agent, for a folder with only such notes, and for an
        entry that the rules of the project leave out.
        """
        source = self.engine.source(project)
        kind = source.place(path).kind
        is_folder = kind == "folder"
        if isinstance(source, FolderSource) and source.rules.reason(path, is_folder=is_folder):
            return "hidden"
        # The owner sees everything.
        if self.agent is None or kind not in ("file", "folder"):
            return kind
        if is_folder:
            infos = self.index.notes.below(project, path)
        else:
            info = self.index.notes.get(project, path)
            infos = [info] if info is not None else []
        # A folder without notes, and a file that is not a note, have nothing to hide.
        sees_any = not infos or any(self.sees(info.scope) for info in infos)
        return kind if sees_any else "hidden"

    def holds_entities(self, project: str) -> bool:
        """Whether the notes of a project are entities of a graph file, which other tools write,
        too.
        """
        return self.engine.source(project).holds_entities

    @verb
    def observations(self, ref: Ref) -> builtins.list[Observation]:
        """Return the observations of a note, in the order of its text.

        An observation is a line such as `- [fact] text`.
        """
        return self.index.notes.observations(self.find(ref))

    @verb
    def sync(self) -> Result:
        """Make the index show the whole disk, and return the changes that the index took up.

        The other verbs also bring the index up to date, but they do not wait for large projects.
        """
        return self.engine.fresh(whole=True)

    @verb
    def reindex(self, progress: Callable[[int, int], None] | None = None) -> tuple[int, int]:
        """Rebuild the index from the files (see `Memory.reindex`).

        progress: called with the number of files read so far, and the number of all files. None
            calls nothing.

        Returns how many notes and how many projects the caller sees.
        """
        engine = self.engine
        engine.rebuild_index()
        engine.purge_history()
        # Somebody may have changed memories by hand, so `memory.md` is written again.
        engine.changed_projects.add(CATEGORY_PROJECT)
        engine.fresh(progress)
        counts = self.index.notes.counts(self.agent)
        return sum(counts.projects.values()), len(counts.projects)

    @verb
    def stats(self) -> HomeCounts:
        """Count the notes of the home (see `Memory.stats`)."""
        self.engine.fresh()
        return self.index.notes.counts(self.agent)
