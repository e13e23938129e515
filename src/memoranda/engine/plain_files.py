"""Read and change the plain files of a project: files of every kind, at every path.

The `memory` tool uses a project in this way (contract 000a). So do memory banks (contract 003),
which read and write whole files (`notes`, `put`).

Paths are relative to the folder of `Files`, and `path_guard` has checked them before. Symlinks
inside the folder are followed in the way that contract 000a, 3 describes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from memoranda.engine.engine import retry_conflicts
from memoranda.engine.links.relinking import NewText, Relinking, moved_note, put_texts, relinking
from memoranda.engine.transaction import Transaction, WritingSession
from memoranda.engine.writing import new_scope, scope_of
from memoranda.errors import (
    Exists,
    InvalidInput,
    MemorandaError,
    NotFound,
    NotText,
    OutsideError,
    StorageError,
    Unusable,
)
from memoranda.note.model import GLOBAL
from memoranda.sources.base import File, PathInfo, Stamp, bounded
from memoranda.sources.step import StepKind
from memoranda.text.utf16 import utf16_coding

if TYPE_CHECKING:
    from memoranda.index.rows import NoteInfo
    from memoranda.ledger.change import Change

Plan = Callable[[], Mapping[str, tuple[str, File | None]]]
"""A function that returns the files to write, by path: (the new text, the file that it replaces).

The replaced file is None for a new file. The function is called while the home's lock is held.
"""


class Files:
    """The files of one project, as one caller may read and write them during one call.

    folder: the folder in the project that paths are relative to; "" means the whole project. The
        attribute has its names as the disk spells them.

    Raises ProjectNotFound.
    """

    def __init__(self, session: WritingSession, project: str, folder: str = ""):
        self._session = session
        self._engine = session.engine
        self._project = project
        self._source = session.engine.folder(project)
        self.folder = self._source.spelled(folder)

    def reading(self) -> AbstractContextManager[None]:
        """Return a context that keeps the other threads of this process out of the home.

        It does not take the home's lock, which reading does not need.
        """
        return self._engine.reading()

    def _place(self, path: str) -> PathInfo:
        """Return the file, folder or link at `path`, without following a symlink at its end.

        For a missing file, the path of the result is where a new file would be written: symlinks to
        folders are resolved. If a file is where the path needs a folder, the new file cannot be
        written, and `link` of the result is the path of that file.

        Raises OutsideError if the path leads out of the folder, even for a missing file.
        """
        full_path = self._source.spelled(f"{self.folder}/{path}".strip("/"))
        place = self._inside(self._source.place(full_path))
        if place.kind != "missing" or not path:
            return place
        nearest, missing_path = self._nearest_existing(full_path)
        in_the_way = "" if nearest.kind == "folder" else nearest.path
        return PathInfo("missing", f"{nearest.path}/{missing_path}".lstrip("/"), link=in_the_way)

    def _nearest_existing(self, full_path: str) -> tuple[PathInfo, str]:
        """Find the nearest folder above a missing file that exists, and the rest of the path.

        full_path: the path of the missing file in the project, such as `a/b/c.md`. If only `a`
            exists, the result is `a` and `b/c.md`.

        Links are followed, so the result may be elsewhere than the path says. Raises OutsideError.
        """
        parent, _, missing_path = full_path.rpartition("/")
        # The folder of these files, `folder`, always counts as existing.
        while len(parent) > len(self.folder):
            place = self._source.place(parent)
            followed = self._follow(place)
            if followed.kind != "missing":
                return followed, missing_path
            # Below a link that leads to nothing, the new file would be below the link's target.
            missing_parent = followed.path if place.kind == "link" else parent
            parent, _, name = missing_parent.rpartition("/")
            missing_path = f"{name}/{missing_path}"
        return PathInfo("folder", self.folder), missing_path

    def _inside(self, place: PathInfo) -> PathInfo:
        """Return `place` if it is in the folder of these files. Raises OutsideError if it is not."""
        if self.folder and not f"{place.path}/".startswith(f"{self.folder}/"):
            raise OutsideError(place.path, self._project)
        return place

    def at(self, path: str) -> PathInfo:
        """Return the file or folder at `path`. A symlink at the end of the path is followed.

        If only another agent may see the file, it is `missing` for the caller. Raises OutsideError
        if the path leads out of the folder.
        """
        place = self._follow(self._place(path))
        if not self._shows(place):
            return PathInfo("missing", place.path)
        # The base folder is made with its first file, but callers find it from the beginning.
        is_base_folder = not path
        if place.kind == "missing" and is_base_folder:
            return PathInfo("folder", place.path)
        return place

    def itself(self, path: str) -> PathInfo:
        """Return the file, folder or link at `path`. Symlinks are not followed."""
        place = self._place(path)
        if self._shows(place):
            return place
        return PathInfo("missing", place.path)

    def _follow(self, place: PathInfo) -> PathInfo:
        """Return the place that a symlink leads to. Raises OutsideError outside of the folder."""
        return self._inside(self._source.follow(place))

    def entries(self, path: str) -> list[tuple[str, PathInfo]]:
        """List a folder: the name of each entry, and the place that it leads to.

        The entries are sorted by code point. Hidden names, `node_modules`, and links that lead to
        nothing or out of the folder are left out. So is everything that the caller may not see.
        """
        entries: list[tuple[str, PathInfo]] = []
        folder = self._source.spelled(f"{self.folder}/{path}".strip("/"))
        for entry in self._source.entries(folder):
            name = entry.path.rpartition("/")[2]
            # The memory tool lists neither of them (contract 000a, 4).
            if name.startswith(".") or name == "node_modules":
                continue
            try:
                # A name that is not UTF-8 cannot be shown.
                name.encode()
                place = self._follow(entry)
            except (OutsideError, StorageError, UnicodeEncodeError):
                continue
            if place.kind in ("folder", "file") and self._shows(place):
                entries.append((name, PathInfo(place.kind, place.path, place.size, entry.link)))
        return entries

    def read(self, path: str) -> File:
        """Return the file at `path` with its bytes."""
        place = self.at(path)
        if place.kind != "file":
            raise NotFound(path, self._project)
        return self._source.read(place.path)

    def notes(self) -> dict[str, Stamp]:
        """Return the notes in the folder that the caller may see: their stamps (size and times), by
        path.

        They are sorted by path. The result is empty if the folder is missing. Raises OutsideError
        if the folder is a symlink, and StorageError if a folder inside it cannot be read.
        """
        place = self._source.place(self.folder)
        if place.kind == "missing":
            return {}
        if place.kind != "folder":
            raise OutsideError(self.folder, self._project)
        listing = self._source.list(self.folder)
        if listing.unreadable:
            raise StorageError(listing.unreadable[0], "a folder cannot be read")
        prefix = f"{self.folder}/" if self.folder else ""
        return {
            path.removeprefix(prefix): bounded(listing.stamps[path])
            for path in sorted(listing.stamps)
            if self._may_see_file(path)
        }

    def count_access(self, place: PathInfo) -> None:
        """Count a read of the note at `place`.

        Nothing is counted for a file that cannot be read or is not a note.
        """
        if not self._source.is_note(place.path):
            return
        try:
            note = self._engine.parse(self._project, place.path, self._source.read(place.path))
        except MemorandaError:
            return
        if note is not None:
            self._engine.reads.count_read(note.id)

    def _may_see_file(self, path: str) -> bool:
        """Whether the caller may see the file at `path`.

        The file is hidden if the scope in its header is another agent's.
        """
        if self._session.agent is None:
            return True
        try:
            file = self._source.read(path)
        except MemorandaError:
            # A file that cannot be read has no scope to hide it.
            return True
        return self._session.sees(scope_of(file.data))

    def _shows(self, place: PathInfo) -> bool:
        """Whether the caller may know that something is at `place`.

        Files of another agent are hidden. So are folders that have only such files.
        """
        if place.kind == "file":
            return self._may_see_file(place.path)
        is_own_folder = place.path == self.folder
        if place.kind != "folder" or is_own_folder or self._session.agent is None:
            return True
        entries = self._source.entries(place.path)
        # An empty folder has nothing to hide.
        return not entries or any(self._shows(entry) for entry in entries)

    @retry_conflicts
    def write(self, path: str, text: str, *, overwrite: bool) -> None:
        """Write exactly `text` to the file at `path`.

        overwrite: whether a present file may be replaced.

        Raises Exists for a folder, for a link to nothing, and for a file that may not be replaced.
        Raises Unusable for a file that the caller may not see, and NotADirectory if a file is where
        the path needs a folder.
        """
        with self._session.change("create", fresh=False) as transaction:
            named_place = self._place(path)
            place = named_place
            if named_place.kind == "link":
                place = self._follow(named_place)
            # `""` is the folder itself, which exists for the caller even before its first file.
            if named_place.kind == "missing" and path:
                self._put_file(transaction, named_place, text, old=None)
            elif place.kind != "file":
                raise Exists(path)
            elif not self._may_see_file(place.path):
                raise Unusable(path)
            elif not overwrite:
                raise Exists(path)
            else:
                self._put_file(transaction, place, text, self._source.read(place.path))

    def _put_file(
        self, transaction: Transaction, place: PathInfo, text: str, old: File | None
    ) -> None:
        """Add the step that writes a file.

        The scope of the step is the scope in the header of the text.

        old: the file that was read at the place; None for a new file.

        Raises NotADirectory, and InvalidInput for a scope that the caller does not see.
        """
        # For a missing file, `_place` sets `link` to a file that is where a folder is needed.
        if place.link:
            raise NotADirectory(place.link)
        data = text.encode()
        scope = new_scope(self._session, data, old.data if old else None)
        transaction.put(self._project, place.path, data, old=old, scope=scope)

    @retry_conflicts
    def put(self, plan: Plan, verb: str, details: dict[str, Any] | None = None) -> Change | None:
        """Write whole files as one change, which the ledger lists under the first file.

        plan: returns the files to write. It is called again if another program changes one of them
            in between.
        verb: the verb in the ledger.
        details: further data that the history stores with the change, as keys with texts and
            numbers. None if there are none.

        Returns the change, or None if there was no file to write. Raises Exists for a place that is
        taken, OutsideError, NotADirectory, Unusable, and the errors of `plan`.
        """
        with self._session.change(verb, fresh=False) as transaction:
            transaction.details = details
            for path, (text, old) in plan().items():
                place = self._place(path)
                if not self._shows(place):
                    raise Unusable(path)
                if place.kind not in ("file", "missing"):
                    raise Exists(path)
                self._put_file(transaction, place, text, old)
        return transaction.done

    @retry_conflicts
    def edit(self, path: str, edit: Any) -> Any:
        """Apply an edit to the text of a file, and return the effect of the edit (`Edited`).

        Raises NotFound, NotText and the errors of the edit.
        """
        with self._session.change("edit", fresh=False) as transaction:
            place = self.at(path)
            if place.kind != "file":
                raise NotFound(path, self._project)
            old = self._source.read(place.path)
            if utf16_coding(old.data):
                raise NotText(path)
            try:
                text = old.data.decode()
            except UnicodeDecodeError:
                raise NotText(path) from None
            edited = edit.apply(text)
            self._put_file(transaction, place, edited.text, old)
        return edited

    @retry_conflicts
    def delete(self, path: str) -> None:
        """Remove a file, a link, or a folder with everything in it, as one change. Raises NotFound."""
        with self._session.change("delete", fresh=False) as transaction:
            place = self.itself(path)
            if place.kind == "missing":
                raise NotFound(path, self._project)
            self._remove(transaction, place)
            transaction.about = (self._project, _shown_path(place))

    @retry_conflicts
    def clear(self) -> None:
        """Remove everything in the folder that the caller may see, as one change."""
        with self._session.change("delete", fresh=False) as transaction:
            if self._source.place(self.folder).kind != "folder":
                return
            for entry in self._source.entries(self.folder):
                if self._shows(entry):
                    self._remove(transaction, entry)
            transaction.about = (self._project, f"{self.folder}/" if self.folder else "")

    def _remove(self, transaction: Transaction, place: PathInfo) -> None:
        """Add the steps that remove a file, a link, or the part of a folder that the caller may
        see.

        The entries of a folder are removed before the folder. A folder that is not empty then
        stays.
        """
        # Whether a folder was removed together with all its entries, by path.
        is_removed_whole: dict[str, bool] = {}
        # Each folder is put on this stack twice: first to remove its entries, then (with True) to
        # remove the folder.
        waiting = [(place, False)]
        while waiting:
            entry, is_emptied = waiting.pop()
            if entry.kind != "folder":
                self._remove_one(transaction, entry)
                continue
            entries_inside = self._source.entries(entry.path)
            if not is_emptied:
                waiting.append((entry, True))
                waiting += [
                    (inner, False) for inner in reversed(entries_inside) if self._shows(inner)
                ]
                continue
            # All entries are still there, because the steps are carried out later. If one of them
            # has a file that the caller may not see, the file stays, and so does this folder.
            remaining = [
                inner for inner in entries_inside if not is_removed_whole.get(inner.path, False)
            ]
            is_removed_whole[entry.path] = all(self._is_all_shown(inner) for inner in remaining)
            if is_removed_whole[entry.path]:
                transaction.add(StepKind.RMDIR, self._project, entry.path)

    def _remove_one(self, transaction: Transaction, place: PathInfo) -> None:
        """Add the step that removes one file or one link.

        Raises InvalidInput for a device or a socket.
        """
        if place.kind == "link":
            transaction.add(StepKind.UNLINK, self._project, place.path, link=place.link)
        elif place.kind == "other":
            raise InvalidInput("it is, or holds, something that is neither a file nor a folder.")
        else:
            file = self._source.read(place.path)
            transaction.remove(self._project, place.path, file, scope=scope_of(file.data))

    def _is_all_shown(self, place: PathInfo) -> bool:
        """Whether the caller may see everything at `place`, including everything in a folder."""
        # The owner sees everything.
        if self._session.agent is None:
            return True
        # `_shows` of a folder only says whether something in it is visible, so look at each file.
        waiting = [place]
        while waiting:
            entry = waiting.pop()
            if entry.kind == "folder":
                waiting += self._source.entries(entry.path)
            elif not self._shows(entry):
                return False
        return True

    def _changed_links(self, source: PathInfo, target: str) -> Relinking:
        """Return how links in notes must change if a file or folder is moved to `target`."""
        notes = self._session.index.notes
        infos: list[NoteInfo] = []
        if source.kind == "folder":
            infos = notes.below(self._project, source.path)
        elif source.kind == "file":
            info = notes.get(self._project, source.path)
            if info is not None:
                infos = [info]
        moved_notes = [
            moved_note(info, target + info.path[len(source.path) :])
            for info in infos
            if self._session.sees(info.scope)
        ]
        return relinking(self._session, moved_notes)

    def _move_shown(
        self, transaction: Transaction, place: PathInfo, target: str, texts: Mapping[str, NewText]
    ) -> None:
        """Add the steps that move the part of a folder that the caller may see.

        The rest stays, and the folder with it. A folder without a rest goes.

        target: the new path of the folder.
        texts: the new text of each note whose links change, by path.
        """
        for entry in self._source.entries(place.path):
            if not self._shows(entry):
                continue
            name = entry.path.rpartition("/")[2]
            to = f"{target}/{name}"
            target_kind = self._source.place(to).kind
            if entry.kind == "folder" and self._moves_in_pieces(entry, target_kind, texts):
                self._move_shown(transaction, entry, to, texts)
            elif target_kind != "missing":
                # Only something that the caller may not see can be there.
                raise Unusable(to)
            else:
                self._move(transaction, entry, to, texts)
        # Everything in it moved. Otherwise, what the caller may not see is still there.
        if self._is_all_shown(place):
            transaction.add(StepKind.RMDIR, self._project, place.path)

    def _moves_in_pieces(
        self, folder: PathInfo, target_kind: str, texts: Mapping[str, NewText]
    ) -> bool:
        """Whether a folder cannot be moved in one step.

        A folder is moved in pieces in three cases: a note in it is rewritten, a folder is at the
        target, or the caller does not see all of it.

        target_kind: what is at the target: `missing`, `folder` or another kind of place.
        texts: the new text of each note whose links change, by path.
        """
        has_new_texts = any(path.startswith(f"{folder.path}/") for path in texts)
        return has_new_texts or target_kind == "folder" or not self._is_all_shown(folder)

    def _move(
        self, transaction: Transaction, place: PathInfo, to: str, texts: Mapping[str, NewText]
    ) -> None:
        """Add the steps that move one file, link or folder to `to`.

        texts: the new text of each note whose links change, by the path of the note before the
            move. Such a note is written at its new path and removed at its old path.
        """
        text = texts.get(place.path)
        if text is not None:
            scope = scope_of(text.old.data)
            transaction.put(self._project, to, text.data, mode=text.old.mode, scope=scope)
            transaction.remove(self._project, place.path, text.old, scope=scope)
            return
        # A folder or a link has no text.
        if place.kind != "file":
            transaction.move(self._project, place.path, to, old=None, scope=GLOBAL)
            return
        file = self._source.read(place.path)
        transaction.move(self._project, place.path, to, old=file, scope=scope_of(file.data))

    @retry_conflicts
    def rename(self, path: str, to: str) -> None:
        """Move a file, link or folder to a free place. Links that would break are changed.

        Raises Exists, NotFound, and InvalidInput for a move of a folder into itself.
        """
        with self._session.change("move") as transaction:
            source = self._place(path)
            target = self._place(to)
            is_hidden = self._is_hidden(target)
            is_own_folder = to == ""
            if is_own_folder:
                raise Exists(to)
            # What happens at a place that the caller may not see is decided below.
            if not is_hidden and self._is_taken(target, source):
                raise Exists(to)
            if source.kind == "missing" or not self._shows(source):
                raise NotFound(path, self._project)
            _check_target(source, target, to, is_hidden=is_hidden)

            links = self._changed_links(source, target.path)
            moved_texts = {text.info.path: text for text in links.texts.values() if text.is_moved}
            is_partly = is_hidden or not self._is_all_shown(source)
            if source.kind == "folder" and (moved_texts or is_partly):
                self._move_shown(transaction, source, target.path, moved_texts)
            else:
                self._move(transaction, source, target.path, moved_texts)
            put_texts(transaction, links)
            transaction.about = (self._project, _shown_path(source))

    def _is_hidden(self, place: PathInfo) -> bool:
        """Whether something is at `place` that the caller may not see."""
        return place.kind != "missing" and not self._shows(place)

    def _is_taken(self, target: PathInfo, source: PathInfo) -> bool:
        """Whether something other than the source of the move is at the target."""
        if target.kind == "missing":
            return False
        is_same_but_for_case = target.path.lower() == source.path.lower()
        if target.path == source.path or not is_same_but_for_case:
            return True
        # Some file systems ignore case. There, the file at the target is the source itself. A
        # listing shows the names as they are on disk.
        parent = target.path.rpartition("/")[0]
        return any(entry.path == target.path for entry in self._source.entries(parent))


def _check_target(source: PathInfo, target: PathInfo, to: str, *, is_hidden: bool) -> None:
    """Raise an error if a file, link or folder cannot be moved to `target`.

    to: the target as the caller named it.
    is_hidden: whether something is at the target that the caller may not see.
    """
    # If a folder is moved to a folder that the caller may not see, the target has both contents.
    are_folders = source.kind == "folder" and target.kind == "folder"
    if is_hidden and not are_folders:
        raise Unusable(to)
    if target.kind == "missing" and target.link:
        raise NotADirectory(target.link)
    if target.path.startswith(f"{source.path}/"):
        raise InvalidInput("a folder cannot go inside itself.")


def _shown_path(place: PathInfo) -> str:
    """Return the path that the ledger shows for a change at `place`.

    The path of a folder ends in `/`.
    """
    if place.kind == "folder":
        return f"{place.path}/"
    return place.path


class NotADirectory(MemorandaError):
    """Raised when a file is where the path needs a folder."""

    code = "invalid"

    def __init__(self, path: str):
        super().__init__(f"{path} is not a directory.")
