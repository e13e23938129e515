"""Undo changes.

`Undo` adds the inverse of each step of a change to a transaction. It raises CannotUndo if a later
change has touched the same files. Links that upkeep made later do not count (later_upkeep.py).

If a job made the change, the undone memories get a mark in their header (`kept_from: [merge:ID]`),
so that the job does not make the same change again.

Changes of lines in a graph file are undone by `undo_lines` in line_undo.py.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

from memoranda.engine.history.later_upkeep import (
    LaterUpkeep,
    can_be_stepped_over,
    later_upkeep,
    path_after_sorting,
)
from memoranda.engine.history.past_privacy import scopes_below
from memoranda.engine.notes import NoteVerbs
from memoranda.engine.transaction import (
    LocationGone,
    Transaction,
    read_or_none,
    source_at,
)
from memoranda.engine.writing import as_file, editable, id_list, scope_of
from memoranda.errors import CannotUndo, MemorandaError, NotFound, UndoObstacle
from memoranda.index.rows import NoteInfo
from memoranda.ledger.change import ERASE, FOLD, UNLINKED, Change, Location, Touched
from memoranda.ledger.history import History
from memoranda.note.model import CATEGORY_PROJECT, MEMORY_KEYS, MEMORY_PROJECTS
from memoranda.sources.base import File, sha256
from memoranda.sources.folder import FolderSource
from memoranda.sources.json_rows import PASSING
from memoranda.sources.step import Step, StepKind
from memoranda.sources.walking import walk

ENTRIES = "kv"
"""The project of key-value entries."""
EXPIRE = "expire"
"""The verb of removing entries whose time to live is over."""


class Later:
    """The changes after a certain change. They decide whether it can be undone.

    number: the number of the change to undo.
    together: the numbers of the changes that the same call undoes. They do not prevent the undo.
    """

    def __init__(self, history: History, number: int, together: Collection[int] = ()):
        self._history = history
        self._number = number
        self._together = frozenset(together)

    def newest_version(self, digest_left: str, digest_now: str) -> str:
        """Return the latest version of a text, where versions differ only in their count of reads.

        A new count makes a new version of the file, but it does not prevent an undo.

        digest_left: the SHA-256 of the text that a change left.
        digest_now: the SHA-256 of the present text. The search ends with it.

        Returns the SHA-256 of the version.
        """
        version = digest_left
        for version in self._history.counted_versions(digest_left, self._number):
            if version == digest_now:
                break
        return version

    def upkeep(
        self, place: Location, digest_left: str, file_now: File, digest_now: str
    ) -> LaterUpkeep | None:
        """Return what upkeep did to a file since the change. None if others changed it, too.

        See `later_upkeep` for the arguments.
        """
        return later_upkeep(
            self._history,
            place=place,
            number=self._number,
            digest_left=digest_left,
            file_now=file_now,
            digest_now=digest_now,
        )

    def has_changed(self, project: str, path: str) -> bool:
        """Whether a change since has touched a file, counts of reads aside."""
        changes = self._history.changes_at(project, path, after=self._number)
        return any(change.verb != FOLD for change in changes)

    def path_after_sorting(self, touched: Touched) -> str:
        """Return the present path of a memory if upkeep has moved it. Otherwise its old path.

        touched: the step that wrote the memory.
        """
        return path_after_sorting(self._history, touched.place, self._number)

    def refusal_at(self, place: Location, is_visible: Callable[[Change], bool]) -> CannotUndo:
        """Return the error that a place has changed since the change to undo.

        The error names the latest change of the place that the caller may see. A change that can
        be stepped over is only named if there is no other.

        place: the file: project, path and folder.
        is_visible: says whether the error may name a change to the caller.
        """
        number_to_name: int | None = None
        # The newest change comes first.
        for change in self._history.changes_at(place.project, place.path, after=self._number):
            is_other = change.number not in self._together and change.verb != FOLD
            if not (is_other and concerns(change, place) and is_visible(change)):
                continue
            if not can_be_stepped_over(self._history, change):
                number_to_name = change.number
                break
            if number_to_name is None:
                number_to_name = change.number
        if number_to_name is None:
            changed_by = "outside memoranda"
            obstacle = UndoObstacle.OUTSIDE
        else:
            changed_by = f"#{number_to_name}"
            obstacle = UndoObstacle.LATER
        return CannotUndo(
            f"{place.name} changed later ({changed_by})",
            number=self._number,
            obstacle=obstacle,
            later=number_to_name,
        )


class Undo:
    """Adds the steps to a transaction that undo changes.

    Call `take_back` for each change, the latest first, and then `finish`. Both raise CannotUndo if
    a file is not as the change left it.

    In the methods, `touched` is the step to undo as the ledger records it, and `source` is the
    folder with its file.

    is_visible: says whether an error may name a change to the caller.
    """

    has_begun: bool
    """Whether the last `take_back` added something, even if it then raised an error."""
    _undone_change: Change
    """The change that `take_back` is working on."""
    _later: Later
    """The changes after `_undone_change`."""

    def __init__(
        self,
        session: NoteVerbs,
        transaction: Transaction,
        is_visible: Callable[[Change], bool],
    ):
        self._session = session
        self._is_visible = is_visible
        self._engine = session.engine
        self._transaction = transaction
        # By (project, path), the step of the transaction that writes or removes the file.
        self._steps: dict[tuple[str, str], Step] = {}
        # By (project, path), the marks that this undo adds to the memory's header.
        self._new_marks: dict[tuple[str, str], list[str]] = {}
        # By file name, the marks that earlier undos added and that must not get lost.
        self._earlier_marks: dict[str, list[str]] = {}
        # By (project, path), the SHA-256 of the text in the history that a step's text comes from.
        self._origins: dict[tuple[str, str], str] = {}
        # The steps that removed files which the undo restores.
        self._brought_back: list[Touched] = []
        # The number of memories from which only links to removed memories go.
        self._unlinked_count = 0

    def take_back(self, done_change: Change, together: Collection[int] = ()) -> None:
        """Add the inverse of each step of `done_change`, the last step first.

        If a job made the change, each memory that the job wrote to gets a mark with the verb of the
        change, such as `expire`. After a merge or a link, only one of the two memories gets a mark,
        which has the id of the other memory, such as `merge:ID`.

        together: the numbers of the changes that the same call undoes.
        """
        self._undone_change = done_change
        self._later = Later(self._engine.ledger.history, done_change.number, together)
        self.has_begun = False
        for touched in _steps_to_mark(done_change):
            self.has_begun = True
            mark = done_change.verb
            has_partner = done_change.verb in ("merge", "link")
            if has_partner:
                mark += self._partner_mark(done_change, touched)
            self._new_marks.setdefault((touched.project, touched.path), []).append(mark)
        for touched in reversed(done_change.files):
            self._add_inverse(touched)

    def _partner_mark(self, done_change: Change, touched: Touched) -> str:
        """Return the end of the mark for an undone merge or link: `:` and the id of the partner.

        The partner is the memory with which the marked memory was merged or linked. By the mark, a
        job knows not to do the same with these two again. "" if the partner cannot be read.

        done_change: the change of the job that is undone.
        touched: the step on the memory that gets the mark.
        """
        # The change wrote two memories, and the partner is the one without the mark.
        partner = next(
            other_file
            for other_file in done_change.files
            if other_file.do == StepKind.PUT and other_file.path != touched.path
        )
        file = self._file(self._source(partner), partner.project, partner.path)
        if file is None:
            return ""
        note = self._engine.parse(partner.project, partner.path, file)
        return f":{note.id}" if note else ""

    def finish(self) -> None:
        """Add the marks of memories to the headers that the steps will write. Call this last.

        Raises CannotUndo if a restored memory is back already, at another place.
        """
        self._check_no_twins()
        if self._unlinked_count:
            details = self._transaction.details or {}
            self._transaction.details = {**details, UNLINKED: self._unlinked_count}
        for (project, path), step in self._steps.items():
            marks = [
                *self._earlier_marks.get(os.path.basename(path), ()),
                *self._new_marks.get((project, path), ()),
            ]
            is_written_memory = step.do == StepKind.PUT and project in MEMORY_PROJECTS
            if not marks or not is_written_memory or step.data is None:
                continue
            known_marks = self._marks_in_header(project, path, as_file(step.data))
            all_marks = list(dict.fromkeys([*known_marks, *marks]))
            # A file without a header that can hold the marks stays without them.
            with suppress(ValueError):
                step.data = _with_marks(step.data, all_marks)

    def _check_no_twins(self) -> None:
        """Raise CannotUndo if a memory that the undo restores would then be there twice.

        So it is if something else brought the memory back, and it was moved since.
        """
        for touched in self._brought_back:
            step = self._steps.get((touched.project, touched.path))
            if step is None or step.data is None:
                continue
            memory_id = self._id_at(touched.project, touched.path, as_file(step.data))
            if not memory_id:
                continue
            # The index shows the memories as they are before the undo.
            for twin in self._session.index.notes.with_ids([memory_id], MEMORY_PROJECTS):
                is_other_file = (twin.project, twin.path) != (touched.project, touched.path)
                if is_other_file and self._came_later_and_stays(twin):
                    raise self._refusal_at(touched, touched.path)

    def _came_later_and_stays(self, twin: NoteInfo) -> bool:
        """Whether a memory came to its place after the change to undo, and the undo leaves it there.

        A copy that somebody made by hand was not written by a change, so it does not count.
        """
        step = self._steps.get((twin.project, twin.path))
        if step is not None and step.do in (StepKind.REMOVE, StepKind.MOVE):
            return False
        return self._later.has_changed(twin.project, twin.path)

    def _marks_in_header(self, project: str, path: str, file: File) -> list[str]:
        """Return the marks in the header of a memory. Empty for other notes."""
        if project not in MEMORY_PROJECTS:
            return []
        note = self._engine.parse(project, path, file)
        if note is None:
            return []
        return id_list(note.header.get("kept_from"))

    def _file(self, source: FolderSource, project: str, path: str) -> File | None:
        """Return a file as it will be after the steps added so far. None if there will be no file."""
        step = self._steps.get((project, path))
        if step is None:
            return read_or_none(source, path)
        if step.do == StepKind.PUT and step.data:
            return replace(as_file(step.data), etag=sha256(step.data))
        return None

    def _refusal_because(self, why: str, obstacle: UndoObstacle = UndoObstacle.OTHER) -> CannotUndo:
        """Return the error that the change cannot be undone.

        why: the reason in words.
        """
        return CannotUndo(why, number=self._undone_change.number, obstacle=obstacle)

    def _source(self, touched: Touched) -> FolderSource:
        """Return the source whose file the step changed. Raises CannotUndo if its folder is out of
        reach.
        """
        try:
            return source_at(self._engine, touched.project, touched.root)
        except LocationGone as error:
            raise self._refusal_because(str(error), UndoObstacle.UNREACHABLE) from None

    def _add(
        self, do: StepKind, touched: Touched, source: FolderSource, path: str, **step_fields: Any
    ) -> None:
        """Add a step. If an earlier undone change has a step for the same file, change that step
        instead.

        do: the kind of step.
        source: the folder with the file.
        path: the path of the file now.
        step_fields: further fields of the step, such as `data` and `old`.
        """
        self.has_begun = True
        is_of_file_text = do in (StepKind.PUT, StepKind.REMOVE)
        earlier_step = self._steps.get((touched.project, path))
        if earlier_step is None or not is_of_file_text:
            step = self._transaction.add(
                do, touched.project, path, source=source, scope=touched.scope, **step_fields
            )
            if is_of_file_text:
                self._steps[touched.project, path] = step
            return
        if do == StepKind.REMOVE and earlier_step.old is None:
            # The earlier step would bring the file back, and this one would remove it again: the
            # undone changes created and removed it. So nothing is left to do.
            self._transaction.drop(earlier_step)
            del self._steps[touched.project, path]
            return
        # The latest change is undone first. So the new step has the oldest text, which is restored.
        earlier_step.do = do
        earlier_step.data = step_fields.get("data")

    def _undo_row(self, touched: Touched) -> None:
        """Restore a row of the ledger: an answer of the owner, or a request of an agent."""
        rows = self._engine.ledger.review_rows
        present_row = rows.bytes_at(touched.path)
        present_digest = sha256(present_row) if present_row else None
        if present_digest != touched.new:
            raise self._refusal_at(touched, touched.path)
        # Without an old row, the change made the row, so it is removed.
        data = None if touched.old is None else self._kept_text(touched)
        self.has_begun = True
        self._transaction.steps.append(rows.step_at(touched.path, data))

    def _add_inverse(self, touched: Touched) -> None:
        """Add the step that undoes one step of a change."""
        # A row of the ledger has no file.
        if touched.do == StepKind.SET:
            self._undo_row(touched)
            return
        source = self._source(touched)
        match touched.do:
            case StepKind.MOVE:
                self._undo_move(source, touched)
            case StepKind.PUT:
                self._undo_put(source, touched)
            case StepKind.REMOVE:
                self._undo_removal(source, touched)
            case StepKind.MKDIR:
                self._undo_new_folder(source, touched)
            case StepKind.RMDIR:
                # Somebody may have made the folder again.
                if not os.path.isdir(os.path.join(source.root, touched.path)):
                    self._add(StepKind.MKDIR, touched, source, touched.path)
            case StepKind.UNLINK:
                self._check_is_free(source, touched)
                self._add(StepKind.SYMLINK, touched, source, touched.path, link=touched.link)
            case _:
                # The only kind that is left is SYMLINK. `undo_lines` undoes LINES.
                self._undo_new_link(source, touched)

    def _undo_move(self, source: FolderSource, touched: Touched) -> None:
        """Add the step that moves a file or folder back to its former place."""
        # Raises CannotUndo if the file or folder is not there as the change left it.
        self._file_as_left(source, touched, touched.to, touched.new or touched.old)
        hidden_paths = self._hidden_paths_below(touched) if touched.moves_folder else set()
        if hidden_paths:
            self._move_visible_files_back(source, touched, hidden_paths)
            return
        self._check_is_free(source, touched)
        file = None if touched.moves_folder else read_or_none(source, touched.to)
        self._add(StepKind.MOVE, touched, source, touched.to, to=touched.path, old=file)

    def _undo_put(self, source: FolderSource, touched: Touched) -> None:
        """Add the step that undoes the writing of a file.

        It restores the text that the file had before. A file that was new is removed.
        """
        touched = self._at_present_path(source, touched)
        file = self._file_as_left(source, touched, touched.path, touched.new)
        upkeep = self._upkeep_since(touched, file)
        is_new_file = touched.old is None
        if is_new_file:
            if upkeep is not None and file is not None:
                self._drop_links_of_upkeep(touched, file, upkeep)
            self._add(StepKind.REMOVE, touched, source, touched.path, old=file)
            return
        data = self._kept_text(touched)
        restored_data = _with_upkeep(upkeep, data)
        self._set_text(touched, source, restored_data, file=file, mode=touched.mode)

    def _at_present_path(self, source: FolderSource, touched: Touched) -> Touched:
        """Return a step whose path is where the memory is now, if upkeep has moved it.

        touched: the step that wrote the memory, as the ledger records it.
        """
        is_memory = touched.project == CATEGORY_PROJECT
        if not is_memory or self._file(source, touched.project, touched.path) is not None:
            return touched
        return replace(touched, path=self._later.path_after_sorting(touched))

    def _set_text(
        self,
        touched: Touched,
        source: FolderSource,
        data: bytes,
        *,
        file: File | None,
        mode: int | None,
    ) -> None:
        """Add the step that gives a file a text from before the change.

        touched: the step to undo, as the ledger records it. Its `old` is the text in the history.
        data: the text, with what upkeep did to its header since.
        file: the file as it is now. None if it does not exist.
        mode: the file's mode before the change. None if it is not known.
        """
        self._add(StepKind.PUT, touched, source, touched.path, data=data, old=file, mode=mode)
        if touched.old is not None:
            self._origins[touched.project, touched.path] = touched.old

    def _upkeep_since(self, touched: Touched, file: File | None) -> LaterUpkeep | None:
        """Return what upkeep did to a file since the undone change wrote it. None for nothing.

        touched: the step that wrote it, as the ledger records it.
        file: the file as it will be after the steps added so far.
        """
        # The file still has the text that the change wrote.
        if file is None or touched.new is None or touched.new == file.etag:
            return None
        return self._upkeep_at(touched, touched.path, file, touched.new)

    def _upkeep_at(
        self, touched: Touched, path: str, file: File, digest_left: str
    ) -> LaterUpkeep | None:
        """Return what upkeep did to the file at `path` since the change. None if others changed it.

        file: the file as it will be after the steps added so far.
        digest_left: the SHA-256 of the text that the change left.
        """
        place = Location(touched.project, path, touched.root)
        # A text that this undo made from one of the history is not in the history itself.
        digest_now = self._origins.get((touched.project, path), file.etag)
        return self._later.upkeep(place, digest_left, file, digest_now)

    def _drop_links_of_upkeep(self, touched: Touched, file: File, upkeep: LaterUpkeep) -> None:
        """Add the steps that remove the links that upkeep made to a memory from other memories.

        Nothing is removed if the memory only goes to another place.

        touched: the step that wrote the memory, which the undo removes.
        file: the memory's file as it is now.
        """
        memory_id = self._id_at(touched.project, touched.path, file)
        ids_of_new_files = {
            self._id_at(project, path, as_file(step.data))
            for (project, path), step in self._steps.items()
            if step.do == StepKind.PUT and step.old is None and step.data is not None
        }
        # The undo also writes the memory at another place.
        goes_elsewhere = memory_id in ids_of_new_files
        if not memory_id or goes_elsewhere:
            return
        index = self._session.index
        for partner in index.notes.with_ids(upkeep.added_links(), MEMORY_PROJECTS):
            # A locked or unreadable memory keeps its link, and `memory doctor` reports the link.
            with suppress(MemorandaError, ValueError):
                self._drop_link(partner, memory_id)

    def _drop_link(self, partner: NoteInfo, memory_id: str) -> None:
        """Add the step that removes one link from the header of a memory.

        memory_id: the id of the memory to which the link leads.

        Raises Locked, NotFound, and ValueError for a header that cannot be edited.
        """
        source = cast(FolderSource, self._session.engine.sources[partner.project])
        place = (partner.project, partner.path)
        step = self._steps.get(place)
        if step is None:
            # Called for the error that it raises if the note may not be changed.
            editable(self._session, partner)
        file = self._file(source, *place)
        if file is None:
            return
        note = self._engine.parse(*place, file)
        links = id_list(note.header.get("links")) if note else []
        if memory_id not in links:
            return
        other_links = [link for link in links if link != memory_id]
        data = _with_list(file.data, "links", other_links)
        self.has_begun = True
        if step is not None:
            # A change has one step for each file, so this step gets the edit, too.
            step.data = data
            return
        self._steps[place] = self._transaction.put(*place, data, old=file, scope=partner.scope)
        self._origins[place] = file.etag
        self._unlinked_count += 1

    def _id_at(self, project: str, path: str, file: File) -> str:
        """Return the id of the memory in a file. "" if the file has none."""
        note = self._engine.parse(project, path, file) if project in MEMORY_PROJECTS else None
        return note.id if note else ""

    def _undo_removal(self, source: FolderSource, touched: Touched) -> None:
        """Add the step that restores a file that was removed."""
        if not touched.kept:
            # The text was not kept on purpose. The other files of the change still come back.
            return
        self._check_is_free(source, touched)
        data = self._kept_text(touched)
        upkeep = self._upkeep_elsewhere(touched, data)
        restored_data = _with_upkeep(upkeep, data)
        self._set_text(touched, source, restored_data, file=None, mode=touched.mode)
        self._brought_back.append(touched)

    def _upkeep_elsewhere(self, removed: Touched, data: bytes) -> LaterUpkeep | None:
        """Return what upkeep did to a memory after the undone change moved it to another place.

        None if the change did not bring the memory to another place.

        removed: the step that removed the memory from its former place.
        data: the text that it had there.
        """
        memory_id = self._id_at(removed.project, removed.path, as_file(data))
        if not memory_id:
            return None
        for touched in self._undone_change.files:
            if not touched.makes_file:
                continue
            source = self._source(touched)
            present = self._at_present_path(source, touched)
            file = self._file(source, present.project, present.path)
            if file is not None and self._id_at(present.project, present.path, file) == memory_id:
                return self._upkeep_since(present, file)
        return None

    def _undo_new_folder(self, source: FolderSource, touched: Touched) -> None:
        """Add the step that removes a folder that the change made, if the undo leaves the folder
        empty.
        """
        adding_kinds = (StepKind.PUT, StepKind.MKDIR, StepKind.SYMLINK)
        removed_paths = {
            step.path
            for step in self._transaction.steps
            if step.root == source.root and step.do not in adding_kinds
        }
        folder = os.path.join(source.root, touched.path)
        if not os.path.isdir(folder):
            return
        paths_inside = {f"{touched.path}/{name}" for name in os.listdir(folder)}
        if paths_inside <= removed_paths:
            self._add(StepKind.RMDIR, touched, source, touched.path)

    def _undo_new_link(self, source: FolderSource, touched: Touched) -> None:
        """Add the step that removes a symlink that the change made.

        source: the folder with the symlink.
        touched: the step that made it.

        Raises CannotUndo if the symlink was replaced or leads elsewhere now.
        """
        place = source.place(touched.path)
        if place.kind != "link" or place.link != touched.link:
            raise self._refusal_at(touched, touched.path)
        self._add(StepKind.UNLINK, touched, source, touched.path, link=touched.link)

    def _hidden_paths_below(self, moved: Touched) -> set[str]:
        """Return the paths of the notes in a moved folder that the caller may not see."""
        self._engine.fresh(whole=True)
        scopes = scopes_below(self._engine, moved)
        return {path for path, scope in scopes.items() if not self._session.sees(scope)}

    def _move_visible_files_back(
        self, source: FolderSource, moved: Touched, hidden_paths: set[str]
    ) -> None:
        """Add a step for each file of a moved folder that moves this file back.

        This is done if the folder has notes that the caller may not see.

        hidden_paths: the paths of these notes. They stay where they are, and are not mentioned.
        """
        for place, _, names in sorted(walk(os.path.join(source.root, moved.to))):
            relative_path = os.path.relpath(place, source.root)
            for name in sorted(names):
                path = f"{relative_path}/{name}"
                if path in hidden_paths:
                    continue
                old_path = moved.path + path.removeprefix(moved.to)
                move_back = replace(moved, path=old_path, to=path)
                self._check_is_free(source, move_back)
                self._add(
                    StepKind.MOVE,
                    move_back,
                    source,
                    path,
                    to=move_back.path,
                    old=read_or_none(source, path),
                )

    def _file_as_left(
        self, source: FolderSource, touched: Touched, path: str, digest_left: str | None
    ) -> File | None:
        """Return the file at `path`. Raises CannotUndo unless it is as the change left it.

        What does not prevent an undo may differ: counts of reads, marks, and the work of upkeep.

        digest_left: the SHA-256 of the text that the change left. None for a moved folder:
            something must be at the path, and the result is None.
        """
        if digest_left is None:
            if os.path.lexists(os.path.join(source.root, path)):
                return None
            raise self._refusal_at(touched, path)
        file = self._file(source, touched.project, path)
        if file is None:
            raise self._refusal_at(touched, path)

        # The same text, or a version of it that only counts more reads.
        newest_digest = self._later.newest_version(digest_left, file.etag)
        if file.etag == newest_digest:
            return file

        # The same text with more marks, which the memory keeps.
        added_marks = self._marks_added_to(newest_digest, touched.project, path, file)
        if added_marks:
            self.has_begun = True
            self._earlier_marks[os.path.basename(path)] = added_marks
            return file

        # The same text with what upkeep wrote into the header, which the undo may keep.
        if self._upkeep_at(touched, path, file, digest_left) is not None:
            return file
        raise self._refusal_at(touched, path)

    def _marks_added_to(self, digest: str, project: str, path: str, file: File) -> list[str]:
        """Return the marks that earlier undos added to a text, if nothing else was changed in it.

        digest: the SHA-256 of the text without these marks.
        file: the file as it is now. New marks come after the older ones.
        """
        marks = self._marks_in_header(project, path, file)
        # How many marks are older is not known, so each number is tried.
        for older_count in range(len(marks)):
            text_with_older_marks = _with_marks(file.data, marks[:older_count])
            if sha256(text_with_older_marks) == digest:
                return marks[older_count:]
        return []

    def _check_is_free(self, source: FolderSource, touched: Touched) -> None:
        """Raise CannotUndo if the path where the undo would restore a file is taken."""
        step = self._steps.get((touched.project, touched.path))
        if step is not None:
            is_free = step.do == StepKind.REMOVE
        else:
            is_free = not os.path.lexists(os.path.join(source.root, touched.path))
        if not is_free:
            raise self._refusal_at(touched, touched.path)

    def _refusal_at(self, touched: Touched, path: str) -> CannotUndo:
        """Return the error that somebody has changed the file at `path` since the change to undo.

        The error names the later change only if the caller may see it.
        """
        place = Location(touched.project, path, touched.root)
        file = read_or_none(self._source(touched), path)
        if file is not None and not self._session.sees(scope_of(file.data)):
            return self._refusal_because(f"the path {place.name} cannot be used")
        return self._later.refusal_at(place, self._is_visible)

    def _kept_text(self, touched: Touched) -> bytes:
        """Return the text that the step replaced. Raises CannotUndo if the history does not have
        it.
        """
        # Only the texts of entries with a time to live are not kept.
        if not touched.kept or touched.old is None:
            raise self._refusal_because(PASSING, UndoObstacle.PASSING)
        name = f"{touched.project}/{touched.path}"
        try:
            return self._engine.ledger.history.text(touched.old, name)
        except NotFound:
            reason = f"the text of {name} is no longer kept"
            raise self._refusal_because(reason, UndoObstacle.NOT_KEPT) from None


def _steps_to_mark(done_change: Change) -> list[Touched]:
    """Return the steps on the memories that get a mark if a change is undone.

    - If no job made the change, no memory gets a mark.
    - After a merge, the memory that was removed gets it.
    - After a link, the first of the two memories gets it.
    - After any other change, all memories that the job wrote to get it.
    """
    is_of_job = done_change.run is not None
    if done_change.undoes is not None or not is_of_job:
        return []
    touched_memories = [
        touched
        for touched in done_change.files
        if touched.project in MEMORY_PROJECTS and touched.old is not None
    ]
    # One mark suffices to prevent a second link of the two.
    if done_change.verb == "link":
        return touched_memories[:1]
    if done_change.verb == "merge":
        merged = [
            touched
            for touched in touched_memories
            if touched.do == StepKind.REMOVE and touched.path != done_change.path
        ]
        return merged[-1:]
    return touched_memories


def _with_marks(data: bytes, marks: list[str]) -> bytes:
    """Return the text of a memory with exactly these marks in its header.

    Raises ValueError if the header cannot be edited.
    """
    return _with_list(data, "kept_from", marks)


def _with_list(data: bytes, key: str, items: list[str]) -> bytes:
    """Return the text of a memory with exactly these items under a key of its header.

    Raises ValueError if the header cannot be edited.
    """
    from memoranda.note.edit import SetKeys
    from memoranda.note.frontmatter import REMOVE

    set_items = SetKeys({key: items or REMOVE}, MEMORY_KEYS)
    return set_items.apply(data.decode()).text.encode()


def _with_upkeep(upkeep: LaterUpkeep | None, data: bytes) -> bytes:
    """Return a text to restore, with the header keys that upkeep changed since.

    A text whose header cannot be edited is restored as it was.
    """
    if upkeep is None:
        return data
    try:
        return upkeep.applied_to(data)
    except ValueError:
        return data


def is_upkeep(change: Change) -> bool:
    """Whether the program made a change without being asked, so that nobody would undo it.

    Such a change writes counts of reads into headers, or removes entries whose time to live is
    over.
    """
    return change.verb == FOLD or (change.verb == EXPIRE and change.project == ENTRIES)


def is_blank(change: Change) -> bool:
    """Whether a change no longer has content, because everything it changed was erased.

    Such a change only keeps its number in the ledger.
    """
    return change.verb == ERASE and not change.details


def concerns(change: Change, place: Location) -> bool:
    """Whether a change touched the file at a place, or moved a folder above the file."""
    if (change.project, change.path, change.root) == place:
        return True
    for file in change.files:
        if (file.project, file.root) != (place.project, place.root):
            continue
        if place.path in (file.path, file.to):
            return True
        if file.moves_folder and place.path.startswith((f"{file.path}/", f"{file.to}/")):
            return True
    return False
