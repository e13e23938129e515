"""How a change is taken back: the inverse of each of its steps, what is in its way, and the
mark by which a memory remembers that a job's action was taken back. Lines of a graph file:
`undo_lines` in line_undo.py.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from typing import Any

from memoranda.engine.notes import NoteVerbs
from memoranda.engine.past_privacy import scopes_below
from memoranda.engine.transaction import (
    Location,
    LocationGone,
    Transaction,
    read_or_none,
    source_at,
)
from memoranda.engine.writing import as_file, id_list, scope_of
from memoranda.errors import CannotUndo, NotFound
from memoranda.ledger.change import ERASE, FOLD, Change, Touched
from memoranda.ledger.history import History
from memoranda.note.model import MEMORY_KEYS, MEMORY_PROJECTS
from memoranda.sources.base import File, sha256
from memoranda.sources.folder import FolderSource
from memoranda.sources.json_rows import PASSING
from memoranda.sources.step import Step, StepKind
from memoranda.sources.walking import walk

ENTRIES = "kv"
EXPIRE = "expire"
"""The verb of removing entries whose time to live is over."""


class Later:
    """The changes after the one numbered `number`, except those taken back `together` with it."""

    def __init__(self, history: History, number: int, together: Collection[int] = ()):
        self._history = history
        self._number = number
        self._together = frozenset(together)

    def text_now(self, digest: str, now: str) -> str:
        """Follow a text through later versions that only count more reads, at most up to `now`.

        Texts are named by SHA-256.
        """
        met: set[str] = set()
        while digest != now and digest not in met:
            met.add(digest)
            digest = self._history.folded_into(digest, self._number) or digest
        return digest

    def blocked(self, place: Location, is_visible: Callable[[Change], bool]) -> CannotUndo:
        """The error that a place changed since; it names the latest change of it the caller sees."""
        project, path, root = place
        by = "outside memoranda"
        for change in self._history.changes_at(project, path, after=self._number):
            is_other = change.number not in self._together and change.verb != FOLD
            if is_other and concerns(change, place) and is_visible(change):
                by = f"#{change.number}"
                break
        name = os.path.join(root or project, path)
        return CannotUndo(f"{name} changed later ({by})", f"#{self._number}")


class Undo:
    """The steps that take changes back, the latest first; CannotUndo when a file is not as a change
    left it.
    """

    _done: Change
    _later: Later

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
        self._steps: dict[tuple[str, str], Step] = {}
        self._kept_from: dict[tuple[str, str], list[str]] = {}
        self._carried: dict[str, list[str]] = {}

    def take_back(self, done_change: Change, together: Collection[int] = ()) -> None:
        """Add the inverse of each step of `done_change`, the last step first.

        together: the numbers of the changes that are taken back with it.

        The memories that a job changed remember that its action was taken back. In a pair, one
        remembers the other.
        """
        self._done = done_change
        self._later = Later(self._engine.ledger.history, done_change.number, together)
        for touched in _remembering(done_change):
            mark = done_change.verb
            if mark in ("merge", "link"):
                mark += self._partner_mark(done_change, touched)
            self._kept_from.setdefault((touched.project, touched.path), []).append(mark)
        for touched in reversed(done_change.files):
            self._add_inverse(touched)

    def _partner_mark(self, done_change: Change, touched: Touched) -> str:
        """The name of the other memory of a pair. Empty if it cannot be read."""
        partner = next(
            file
            for file in done_change.files
            if file.do == StepKind.PUT and file.path != touched.path
        )
        file = self._file(self._source(partner), partner.project, partner.path)
        if file is None:
            return ""
        note = self._engine.parse(partner.project, partner.path, file)
        return f":{note.id}" if note else ""

    def finish(self) -> None:
        """Write what memories remember into their headers."""
        for place, step in self._steps.items():
            marks = [
                *self._carried.get(os.path.basename(place[1]), ()),
                *self._kept_from.get(place, ()),
            ]
            if (
                marks
                and step.do == StepKind.PUT
                and step.data is not None
                and place[0] in MEMORY_PROJECTS
            ):
                known_marks = self._marks(*place, as_file(step.data))
                # No header that could hold it
                with suppress(ValueError):
                    step.data = _with_marks(step.data, list(dict.fromkeys([*known_marks, *marks])))

    def _marks(self, project: str, path: str, file: File) -> list[str]:
        """The actions on a memory that were taken back, from its header."""
        if project in MEMORY_PROJECTS:
            note = self._engine.parse(project, path, file)
        else:
            note = None
        if note:
            return id_list(note.header.get("kept_from"))
        return []

    def _file(self, source: FolderSource, project: str, path: str) -> File | None:
        """The file as the steps so far leave it. None if it does not exist."""
        step = self._steps.get((project, path))
        if step is None:
            return read_or_none(source, path)
        if step.do == StepKind.PUT and step.data:
            return replace(as_file(step.data), etag=sha256(step.data))
        return None

    def _refusal(self, why: str) -> CannotUndo:
        return CannotUndo(why, f"#{self._done.number}")

    def _source(self, touched: Touched) -> FolderSource:
        """The source the step was on."""
        try:
            return source_at(self._engine, touched.project, touched.root)
        except LocationGone as error:
            raise self._refusal(str(error)) from None

    def _add(
        self, do: StepKind, touched: Touched, source: FolderSource, path: str, **step_fields: Any
    ) -> None:
        before = self._steps.get((touched.project, path))
        if before is None or do not in (StepKind.PUT, StepKind.REMOVE):
            step = self._transaction.add(
                do, touched.project, path, source=source, scope=touched.scope, **step_fields
            )
            if do in (StepKind.PUT, StepKind.REMOVE):
                self._steps[touched.project, path] = step
        elif do == StepKind.REMOVE and before.old is None:
            # The file was created and removed by the changes taken back.
            self._transaction.steps.remove(before)
            del self._steps[touched.project, path]
        else:
            # An earlier change of the same file: its older text counts
            before.do, before.data = (
                do,
                step_fields.get("data"),
            )

    def _set_back(self, touched: Touched) -> None:
        """Make a row of the ledger what it was: an answer of the owner, a request of an agent."""
        rows = self._engine.ledger.review_rows
        now = rows.bytes_at(touched.path)
        if (now and sha256(now)) != touched.new:
            raise self._blocked(touched, touched.path)
        if touched.old is not None:
            data = self._kept_text(touched)
        else:
            data = None
        self._transaction.steps.append(rows.step_at(touched.path, data))

    def _add_inverse(self, touched: Touched) -> None:
        """Add the step that takes one step back."""
        if touched.do == StepKind.SET:
            self._set_back(touched)
            return
        source = self._source(touched)
        match touched.do:
            case StepKind.MOVE:
                self._move_back(source, touched)
            case StepKind.PUT:
                self._put_back(source, touched)
            case StepKind.REMOVE:
                self._bring_back(source, touched)
            case StepKind.MKDIR:
                self._remove_folder(source, touched)
            case StepKind.RMDIR:
                if not os.path.isdir(os.path.join(source.root, touched.path)):
                    self._add(StepKind.MKDIR, touched, source, touched.path)
            case StepKind.UNLINK:
                self._expect_free(source, touched)
                self._add(StepKind.SYMLINK, touched, source, touched.path, link=touched.link)
            case _:
                self._remove_link(source, touched)

    def _move_back(self, source: FolderSource, touched: Touched) -> None:
        """Have a file or folder where it was before it moved."""
        self._expect_there(source, touched, touched.to, touched.new or touched.old)
        is_folder = touched.old is None
        foreign = self._foreign_below(touched) if is_folder else set()
        if foreign:
            self._move_seen_back(source, touched, foreign)
            return
        self._expect_free(source, touched)
        old = None if is_folder else read_or_none(source, touched.to)
        self._add(StepKind.MOVE, touched, source, touched.to, to=touched.path, old=old)

    def _put_back(self, source: FolderSource, touched: Touched) -> None:
        """Have the text a file had before it was written, or no file."""
        file = self._expect_there(source, touched, touched.path, touched.new)
        if touched.old is None:
            self._add(StepKind.REMOVE, touched, source, touched.path, old=file)
            return
        data = self._kept_text(touched)
        self._add(
            StepKind.PUT, touched, source, touched.path, data=data, old=file, mode=touched.mode
        )

    def _bring_back(self, source: FolderSource, touched: Touched) -> None:
        """Have a file again that was removed."""
        if not touched.kept:
            # One of several that were cleared; the others come back
            return
        self._expect_free(source, touched)
        data = self._kept_text(touched)
        self._add(StepKind.PUT, touched, source, touched.path, data=data, mode=touched.mode)

    def _remove_folder(self, source: FolderSource, touched: Touched) -> None:
        """Remove a folder that was made, if what is taken back leaves it empty."""
        leaving = [step for step in self._transaction.steps if step.root == source.root]
        gone_paths = {
            step.path
            for step in leaving
            if step.do not in (StepKind.PUT, StepKind.MKDIR, StepKind.SYMLINK)
        }
        place = os.path.join(source.root, touched.path)
        if not os.path.isdir(place):
            return
        paths_inside = {f"{touched.path}/{name}" for name in os.listdir(place)}
        if paths_inside <= gone_paths:
            self._add(StepKind.RMDIR, touched, source, touched.path)

    def _remove_link(self, source: FolderSource, touched: Touched) -> None:
        """Remove a symlink that was made."""
        place = source.place(touched.path)
        if place.kind != "link" or place.link != touched.link:
            raise self._blocked(touched, touched.path)
        self._add(StepKind.UNLINK, touched, source, touched.path, link=touched.link)

    def _foreign_below(self, moved: Touched) -> set[str]:
        """The paths of notes in a moved folder that the caller does not see."""
        self._engine.fresh(whole=True)
        scopes = scopes_below(self._engine, moved)
        return {path for path, scope in scopes.items() if not self._session.sees(scope)}

    def _move_seen_back(self, source: FolderSource, moved: Touched, foreign: set[str]) -> None:
        """Move a folder back file by file.

        Files that the caller does not see stay, and are not mentioned.
        """
        for place, _, names in sorted(walk(os.path.join(source.root, moved.to))):
            relative_path = os.path.relpath(place, source.root)
            for path in (f"{relative_path}/{name}" for name in sorted(names)):
                if path in foreign:
                    continue
                move_back = replace(moved, path=moved.path + path[len(moved.to) :], to=path)
                self._expect_free(source, move_back)
                self._add(
                    StepKind.MOVE,
                    move_back,
                    source,
                    path,
                    to=move_back.path,
                    old=read_or_none(source, path),
                )

    def _expect_there(
        self, source: FolderSource, touched: Touched, path: str, etag: str | None
    ) -> File | None:
        """The file as the change left it at `path`; a moved folder (no etag) must just be there."""
        if etag is None:
            if os.path.lexists(os.path.join(source.root, path)):
                return None
            raise self._blocked(touched, path)
        file = self._file(source, touched.project, path)
        # A text that only counts more reads since is not a different text.
        if file is not None:
            etag = self._later.text_now(etag, file.etag)
        if file is not None and file.etag == etag:
            return file
        # Perhaps only an undo's marks tell the file from the text with this etag; they go on with
        # the memory.
        if file:
            marks = self._marks(touched.project, path, file)
        else:
            marks = []
        for number in range(len(marks)):
            if file and sha256(_with_marks(file.data, marks[:number])) == etag:
                self._carried[os.path.basename(path)] = marks[number:]
                return file
        raise self._blocked(touched, path)

    def _expect_free(self, source: FolderSource, touched: Touched) -> None:
        step = self._steps.get((touched.project, touched.path))
        if step:
            is_free = step.do == StepKind.REMOVE
        else:
            is_free = not os.path.lexists(os.path.join(source.root, touched.path))
        if not is_free:
            raise self._blocked(touched, touched.path)

    def _blocked(self, touched: Touched, path: str) -> CannotUndo:
        """The error that another change is in the way. It names the change only if the caller may
        see it.
        """
        file = read_or_none(self._source(touched), path)
        if file is not None and not self._session.sees(scope_of(file.data)):
            name = os.path.join(touched.root or touched.project, path)
            return self._refusal(f"the path {name} cannot be used")
        place = (touched.project, path, touched.root)
        return self._later.blocked(place, self._is_visible)

    def _kept_text(self, touched: Touched) -> bytes:
        if not touched.kept or touched.old is None:
            raise self._refusal(PASSING)
        name = f"{touched.project}/{touched.path}"
        try:
            return self._engine.ledger.history.text(touched.old, name)
        except NotFound:
            raise self._refusal(f"the text of {name} is no longer kept") from None


def _remembering(done_change: Change) -> list[Touched]:
    """The memories that record in their header that the action of a job was taken back.

    They are all that the job wrote to. For a merge it is the memory that was removed, for a link
    the first of the two.
    """
    if done_change.undoes is not None or done_change.run is None:
        return []
    touched_memories = [
        touched
        for touched in done_change.files
        if touched.project in MEMORY_PROJECTS and touched.old is not None
    ]
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
    """A memory's text with just these marks. Raises ValueError for a header that cannot hold them."""
    from memoranda.note.edit import SetKeys
    from memoranda.note.frontmatter import REMOVE

    return SetKeys({"kept_from": marks or REMOVE}, MEMORY_KEYS).apply(data.decode()).text.encode()


def is_upkeep(change: Change) -> bool:
    """Whether nobody made a change, or would take it back: folded counts, entries past their
    time to live.
    """
    return change.verb == FOLD or (change.verb == EXPIRE and change.project == ENTRIES)


def is_blank(change: Change) -> bool:
    """Whether a line only takes the place of a change of what was erased."""
    return change.verb == ERASE and not change.details


def concerns(change: Change, place: Location) -> bool:
    """Whether a change touched the file at a place."""
    project, path, root = place
    if (change.project, change.path, change.root) == place:
        return True
    for file in change.files:
        if (file.project, file.root) == (project, root):
            is_folder = file.do == StepKind.MOVE and file.old is None
            if path in (file.path, file.to) or (
                is_folder and path.startswith((f"{file.path}/", f"{file.to}/"))
            ):
                return True
    return False
