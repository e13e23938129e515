"""The verbs that move and delete notes and folders. Each of them makes one change, or fails and
changes nothing.

A caller sees only some notes. If a folder is moved or deleted, the notes that the caller does not
see stay where they are.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memoranda.engine.engine import verb
from memoranda.engine.links.relinking import Relinking, moved_note, put_texts, relinking
from memoranda.engine.reading import ReadVerbs, Ref
from memoranda.engine.transaction import Transaction, WritingSession
from memoranda.engine.writing import read_unlocked, remove_note, scope_of
from memoranda.errors import Advice, Exists, FolderNotFound, InvalidInput, Locked, Unusable
from memoranda.index.rows import NoteInfo
from memoranda.note import links
from memoranda.note.model import BUILT_IN_PROJECTS
from memoranda.note.names import Looseness, file_key
from memoranda.sources import path_guard
from memoranda.sources.base import File
from memoranda.sources.folder import FolderSource
from memoranda.sources.layout import NOTE_SUFFIXES
from memoranda.sources.source import Source
from memoranda.sources.step import StepKind
from memoranda.sources.walking import walk

# The end of the error about a move to another project.
_TO_ANOTHER_PROJECT = Advice(
    " Write the note there with write_note and delete it here, or choose another destination_path.",
    ("write_note",),
    " Choose another destination_path.",
)


@dataclass(slots=True)
class Moved:
    """The result of moving notes.

    old_path, new_path: the path of the note or folder in the project before and after the move.
    notes: how many notes were moved.
    updated: the notes whose links were changed, so that these links still lead to the moved notes.
    broken: the notes with links that do not lead to the same note as before.
    """

    project: str
    old_path: str
    new_path: str
    notes: int = 1
    broken: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Deleted:
    """The result of deleting notes.

    paths: the paths of the notes in their project.
    notes: how many notes were deleted.
    change: the number of the change, with which `memory undo` can undo it.
    lost: how many of the notes `undo` cannot bring back. They are entries with a time to live,
        whose text is not kept (contract 004, 4).
    """

    project: str
    paths: list[str]
    notes: int
    change: int
    lost: int


class PlaceVerbs(ReadVerbs, WritingSession):
    """The verbs that change where notes are."""

    @verb
    def move(
        self,
        ref: Ref,
        destination: str,
        *,
        project: str | None = None,
        follow: bool = False,
        update_links: bool = True,
    ) -> Moved:
        """Move a note inside its project (see `Memory.move`).

        destination: the new path in the project, as `_note_target` reads it.
        project: the project of the note; None for all projects.
        follow: whether the permalink in the header changes with the path.
        update_links: whether to rewrite links that would break, as part of this change.
        """
        with self.change("move") as transaction:
            info = self.find(ref, project, looseness=Looseness.CASE)
            target = self._note_target(info, destination)
            self._check_target(info.project, target)
            file = read_unlocked(self, info)
            self._check_is_free(info, target)
            transaction.about = (info.project, info.path)
            links = self._effects_on_links([(info, target)], follow, update_links)
            own_links = links.texts.get(info.row)
            data = own_links.data if own_links else None
            self._move_file(
                transaction,
                project=info.project,
                path=info.path,
                to=target,
                file=file,
                follow=follow,
                data=data,
                scope=info.scope,
            )
            put_texts(transaction, links)
        return Moved(
            info.project,
            info.path,
            target,
            notes=1,
            broken=links.broken,
            updated=links.updated,
        )

    def _note_target(self, info: NoteInfo, destination: str) -> str:
        """Return the new path of a note that is moved. Raises InvalidInput, OutsideError.

        For a note `plan.md`, `archive/` means `archive/plan.md`, and `archive/idea` means
        `archive/idea.md`. `/` means the top folder of the project. A note `plan.txt`, which there
        may be in `memories`, keeps this ending if the destination has it.

        info: the note.
        destination: the destination as the caller wrote it.
        """
        target = path_guard.clean("" if destination == "/" else destination, info.project)
        if destination.endswith("/"):
            file_name = posixpath.basename(info.path)
            target = posixpath.join(target, file_name)
        elif not target:
            raise InvalidInput("Parameter `destination_path` must not be empty.")
        elif not _keeps_ending(target, info):
            target += ".md"
        return self.engine.spelled(info.project, target)

    def _check_is_free(self, info: NoteInfo, target: str) -> None:
        """Raise Exists or Unusable if something is at `target`, so that the note cannot move there."""
        if target == info.path:
            raise Exists(target)
        kind = self._kind(info.project, target)
        if kind == "hidden":
            # The error must not tell the caller about a note that it does not see.
            raise Unusable(target)
        # If the disk ignores case, a move from `Plan.md` to `plan.md` finds the note itself.
        is_same_file = kind == "file" and file_key(target) == file_key(info.path)
        if kind != "missing" and not is_same_file:
            raise Exists(target)
        # A disk that ignores case would write the note over another one, as when `Idea.md` moves to
        # `plan.md` beside `Plan.md`.
        other = self.index.notes.in_other_case(info.project, target)
        if other is None or file_key(other.path) == file_key(info.path):
            return
        if self.sees(other.scope):
            raise Exists(other.path)
        raise Unusable(target)

    @verb
    def move_folder(
        self,
        project: str,
        folder: str,
        destination: str,
        *,
        follow: bool = False,
        update_links: bool = True,
    ) -> Moved:
        """Move a folder with all its files inside its project (see `Memory.move`).

        folder: the path of the folder.
        destination: its new path. With `/` at the end, a folder to move into.
        follow: whether permalinks in headers change with the paths.
        update_links: whether to rewrite links that would break, as part of this change.
        """
        self.engine.fresh(whole=True)
        with self.change("move") as transaction:
            source = self.source_named(project)
            origin = path_guard.clean(folder.strip("/"), source.name)
            origin = self.engine.spelled(source.name, origin)
            target = self._folder_target(source.name, origin, destination)
            if not origin or self._kind(source.name, origin) != "folder":
                raise FolderNotFound(folder, source.name)
            self._check_folder_target(source.name, origin, target, destination)

            infos, hidden_paths = self._notes_below(source.name, origin)
            moves = [(info, target + info.path[len(origin) :]) for info in infos]
            links = self._effects_on_links(moves, follow, update_links)
            # The new texts of moved notes whose links change, by their old paths.
            texts = {text.info.path: text.data for text in links.texts.values() if text.is_moved}
            transaction.about = (source.name, f"{origin}/")

            # A folder moves in one step if nothing in it has to be changed or left behind.
            is_target_missing = self._kind(source.name, target) == "missing"
            may_move_whole = not follow and not hidden_paths and is_target_missing
            if may_move_whole and texts:
                self._move_pieces(transaction, source, origin, target, texts)
            elif may_move_whole:
                transaction.move(source.name, origin, target)
            else:
                self._move_files(
                    transaction,
                    source=source,
                    origin=origin,
                    target=target,
                    hidden_paths=hidden_paths,
                    follow=follow,
                    texts=texts,
                )
            put_texts(transaction, links)
        return Moved(
            project=source.name,
            old_path=origin,
            new_path=target,
            notes=len(infos),
            broken=links.broken,
            updated=links.updated,
        )

    def _folder_target(self, project: str, origin: str, destination: str) -> str:
        """Return the new path of a folder that is moved.

        If `destination` ends in `/` and such a folder exists, the folder moves into it and keeps
        its name.

        origin: the present path of the folder.
        destination: the new path as the caller wrote it.
        """
        target = path_guard.clean(destination.strip("/"), project)
        target = self.engine.spelled(project, target)
        name = origin.rpartition("/")[2]
        if not destination.endswith("/") or self._kind(project, target) != "folder":
            return target
        if not target:
            return name
        return f"{target}/{name}"

    def _check_folder_target(
        self, project: str, origin: str, target: str, destination: str
    ) -> None:
        """Raise an error if a folder cannot move to `target`.

        origin: the present path of the folder.
        destination: the target as the caller wrote it, for the error.
        """
        if not target or f"{target}/".startswith(f"{origin}/"):
            raise InvalidInput(
                f'A folder cannot be moved into itself: "{destination}". '
                "Choose another destination_path."
            )
        if self._kind(project, target) not in ("missing", "hidden"):
            raise Exists(target)
        # A disk that ignores case would put the notes of both folders into one.
        for place in self._in_other_case(project, target):
            if place != origin and self._kind(project, place) != "hidden":
                raise Exists(place)
        self._check_target(project, f"{target}/x.md")

    def _in_other_case(self, project: str, path: str) -> list[str]:
        """Return the paths on disk that some file systems take for the same as `path`.

        Such file systems ignore case and Unicode form. For `ideas/plans` there may be `Ideas/Plans`
        and `ideas/PLANS`.
        """
        source = self.engine.folder(project)
        folders = [""]
        paths: list[str] = []
        for name in path.split("/"):
            key = file_key(name)
            entries = [entry for folder in folders for entry in source.entries(folder)]
            alike = [entry for entry in entries if file_key(posixpath.basename(entry.path)) == key]
            paths = [entry.path for entry in alike]
            folders = [entry.path for entry in alike if entry.kind == "folder"]
        return paths

    def _move_pieces(
        self,
        transaction: Transaction,
        source: Source,
        folder: str,
        target: str,
        texts: Mapping[str, bytes],
    ) -> None:
        """Add the steps that move a whole folder. There are as few steps as possible.

        texts: the new texts of notes whose links change, by path. Only these notes are written.
            Everything else is moved.
        """
        for entry in self.engine.folder(source.name).entries(folder):
            to = target + entry.path[len(folder) :]
            # A folder with a note to write is moved in pieces, too.
            if any(path.startswith(f"{entry.path}/") for path in texts):
                self._move_pieces(transaction, source, entry.path, to, texts)
            elif entry.path in texts:
                file = source.read(entry.path)
                data = texts[entry.path]
                scope = scope_of(file.data)
                transaction.put(source.name, to, data, mode=file.mode, scope=scope)
                transaction.remove(source.name, entry.path, file, scope=scope)
            else:
                old = source.read(entry.path) if entry.kind == "file" else None
                transaction.move(source.name, entry.path, to, old=old)
        transaction.add(StepKind.RMDIR, source.name, folder)

    def _move_files(
        self,
        transaction: Transaction,
        source: Source,
        origin: str,
        target: str,
        hidden_paths: Container[str],
        follow: bool,
        texts: Mapping[str, bytes],
    ) -> None:
        """Add the steps that move a folder file by file.

        origin: the present path of the folder.
        target: its new path.
        hidden_paths: the paths of notes that the caller does not see. They stay where they are.
        follow: whether permalinks in headers change with the paths.
        texts: the new texts of notes whose links change, by path.
        """
        for place, _, files in sorted(walk(os.path.join(source.root, origin))):
            relative_path = os.path.relpath(place, source.root)
            for name in sorted(files):
                path = f"{relative_path}/{name}"
                if path in hidden_paths:
                    continue
                to = target + path[len(origin) :]
                if source.place(to).kind != "missing":
                    raise Unusable(to)
                file = source.read(path)
                self._move_file(
                    transaction,
                    project=source.name,
                    path=path,
                    to=to,
                    file=file,
                    follow=follow,
                    data=texts.get(path),
                )
        removed_paths = {step.path for step in transaction.steps}
        for folder in _emptied_folders(source.root, origin, removed_paths):
            transaction.add(StepKind.RMDIR, source.name, folder)

    def _effects_on_links(
        self, moves: Sequence[tuple[NoteInfo, str]], follow: bool, update_links: bool
    ) -> Relinking:
        """Return how links must change when notes move.

        moves: pairs of a note and its new path.
        follow: whether permalinks in headers change with the paths.
        update_links: whether links may be rewritten.
        """
        moved = []
        for info, path in moves:
            permalink = None
            if follow and info.header.get("permalink"):
                permalink = self.free_permalink(info.project, path)
            moved.append(moved_note(info, path, permalink))
        return relinking(self, moved, update=update_links)

    def _check_target(self, project: str, target: str) -> None:
        """Raise InvalidInput if a note may not move to `target`.

        At the target, the file must still be a note. A target that begins with the name of another
        project is refused: it is probably meant as a move to that project. If this project has such
        a folder, the target is allowed.
        """
        self._check_place(project, target)
        first_folder, slash, _ = target.partition("/")
        if not slash:
            return
        for name in self.engine.sources:
            is_own_or_built_in = name == project or name in BUILT_IN_PROJECTS
            if is_own_or_built_in or name.lower() != first_folder.lower():
                continue
            if not self.may_use(name):
                continue
            has_such_folder = self.engine.source(project).place(first_folder).kind == "folder"
            if not has_such_folder:
                raise InvalidInput(
                    f"A move stays inside its project {project}; {name} is another one.",
                    advice=_TO_ANOTHER_PROJECT,
                )

    @verb
    def delete(self, ref: Ref, *more_refs: Ref, project: str | None = None) -> Deleted:
        """Delete notes (see `Memory.delete`).

        If the notes are of several projects, the result has the project and paths of the first one.

        project: the project to look in. None means all projects.
        """
        with self.change("delete") as transaction:
            # Several refs may name the same note.
            infos_by_row: dict[int, NoteInfo] = {}
            for ref_to_delete in (ref, *more_refs):
                info = self.find(ref_to_delete, project, looseness=Looseness.EXACT)
                infos_by_row[info.row] = info
            infos = list(infos_by_row.values())
            notes_with_files = [(info, read_unlocked(self, info)) for info in infos]
            remove_note(self, transaction, *notes_with_files)
        assert transaction.done is not None
        first_project = infos[0].project
        paths = [info.path for info in infos if info.project == first_project]
        lost = sum(not file.kept for file in transaction.done.files)
        return Deleted(
            project=first_project,
            paths=paths,
            notes=len(infos),
            change=transaction.done.number,
            lost=lost,
        )

    @verb
    def delete_folder(self, project: str, folder: str) -> Deleted:
        """Delete the notes in a folder that the caller sees. Files that are not notes stay.

        Folders that are empty afterwards are deleted, too.
        """
        self.engine.fresh(whole=True)
        with self.change("delete") as transaction:
            source = self.source_named(project)
            origin = path_guard.clean(folder.strip("/"), source.name)
            origin = self.engine.spelled(source.name, origin)
            if not origin or self._kind(source.name, origin) != "folder":
                raise FolderNotFound(folder, source.name)
            infos, _ = self._notes_below(source.name, origin)
            paths = [info.path for info in infos]
            for info in infos:
                transaction.remove(source.name, info.path, source.read(info.path), scope=info.scope)
            for emptied_folder in _emptied_folders(source.root, origin, set(paths)):
                transaction.add(StepKind.RMDIR, source.name, emptied_folder)
            if not transaction.steps:
                raise InvalidInput(
                    f'Folder "{origin}" holds no notes; files that are no notes are not deleted.'
                )
            transaction.about = (source.name, f"{origin}/")
        assert transaction.done is not None
        lost = sum(not file.kept for file in transaction.done.files)
        return Deleted(
            project=source.name,
            paths=paths,
            notes=len(paths),
            change=transaction.done.number,
            lost=lost,
        )

    def _notes_below(self, project: str, folder: str) -> tuple[list[NoteInfo], set[str]]:
        """Return the notes in a folder that the caller sees, and the paths of the other notes.

        Raises Locked if one of the first is locked.
        """
        infos: list[NoteInfo] = []
        hidden_paths: set[str] = set()
        for info in self.index.notes.below(project, folder):
            if not self.sees(info.scope):
                hidden_paths.add(info.path)
            elif info.locked:
                raise Locked(info.permalink)
            else:
                infos.append(info)
        return infos, hidden_paths

    def _move_file(
        self,
        transaction: Transaction,
        project: str,
        path: str,
        to: str,
        file: File,
        follow: bool,
        data: bytes | None = None,
        **step_fields: Any,
    ) -> None:
        """Add the steps that move a file.

        If its text has to change, the file is written at its new path and removed at its old path.

        file: the file as it is now.
        follow: whether a permalink in the header changes with the path.
        data: the text with changed links; None if no link changes.
        step_fields: further fields of the steps, such as `scope`.
        """
        # Only a note has a permalink.
        note = None
        if follow and path.casefold().endswith(NOTE_SUFFIXES):
            note = self.engine.parse(project, path, file)
        has_permalink = note is not None and note.own_permalink
        if data is None and not has_permalink:
            transaction.move(project, path, to, old=file, **step_fields)
            return
        new_data = file.data if data is None else data
        # Bytes that are not UTF-8 stay as they are.
        text = new_data.decode("utf-8", "surrogateescape")
        if has_permalink:
            from memoranda.note.edit import SetKeys

            text = SetKeys({"permalink": self.free_permalink(project, to)}).apply(text).text
        encoded = text.encode("utf-8", "surrogateescape")
        transaction.put(project, to, encoded, mode=file.mode, **step_fields)
        transaction.remove(project, path, file, **step_fields)

    def free_permalink(self, project: str, path: str, taken_permalinks: Container[str] = ()) -> str:
        """Return a permalink for a note at `path` that no other note has, such as `plans/trip`.

        If the permalink is taken, a number is added: `plans/trip-1`.

        taken_permalinks: further permalinks that count as taken.
        """
        # The candidates have no end.
        for candidate in links.numbered(links.permalink_for(project, path)):
            if candidate in taken_permalinks:
                continue
            if self.permalink_holder(project, path, candidate) is None:
                break
        return candidate

    def permalink_holder(self, project: str, path: str, permalink: str) -> NoteInfo | None:
        """Return a note with this permalink that the caller sees. None if no note has it.

        path: the path of the caller's own note, which is passed over.
        """
        for note in self.index.notes.with_permalink(project, permalink):
            if note.path != path and self.sees(note.scope):
                return note
        return None

    def _check_place(self, project: str, path: str) -> None:
        """Raise InvalidInput if a file at this path would not be a note of the project."""
        source = self.engine.source(project)
        if isinstance(source, FolderSource):
            why = source.rules.reason(path)
            if why:
                raise InvalidInput(
                    f'"{path}" is left out of project {source.name} by {why}. '
                    "Choose another folder."
                )
        if not source.is_note(path):
            raise InvalidInput(
                f'"{path}" cannot hold a note: no part of it may be node_modules or begin with a dot.'
            )


def _keeps_ending(target: str, info: NoteInfo) -> bool:
    """Whether a destination has the ending of a note, and needs no `.md`.

    target: the path that the note moves to.
    info: the note. Any text file is one in `memories`, so its own ending counts, too.
    """
    ending = os.path.splitext(target)[1].casefold()
    own_ending = os.path.splitext(info.path)[1].casefold()
    return ending in NOTE_SUFFIXES or (ending != "" and ending == own_ending)


def _emptied_folders(root: str, folder: str, removed_paths: set[str]) -> list[str]:
    """Return the folders that are empty when `removed_paths` are gone, the innermost first.

    root: the absolute path of the project. All other paths are relative to it.
    folder: only this folder and the folders inside it are looked at.
    """
    # The keys are the folders, in order.
    emptied_folders: dict[str, None] = {}
    for place, folder_names, file_names in walk(os.path.join(root, folder), top_down=False):
        relative_path = os.path.relpath(place, root)
        files = {f"{relative_path}/{name}" for name in file_names}
        subfolders = {f"{relative_path}/{name}" for name in folder_names}
        if files <= removed_paths and subfolders <= emptied_folders.keys():
            emptied_folders[relative_path] = None
    return [*emptied_folders]
