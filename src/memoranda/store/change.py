"""The steps of a change on disk: what each does, how it is rolled back, and when recovery counts it
as done.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from memoranda.errors import Conflict, Exists, MemorandaError, NotFound
from memoranda.store.base import File, Stamp, sha256
from memoranda.store.files import read_file, stamp_of, stat_in, write_file
from memoranda.store.journal import CANNOT_LINK, History, Touched
from memoranda.store.layout import TEMP_PREFIX
from memoranda.store.path_guard import Folder, open_folder

if TYPE_CHECKING:
    from concurrent.futures import Executor

NEW_MODE = 0o600
KINDS = ("put", "remove", "move", "mkdir", "rmdir", "unlink", "symlink")
PARALLEL_WRITES = 16
"""From so many files on, temp files are synced by as many threads: the disk does them faster
together.
"""
_OPEN_FOLDERS = 200
"""Folders a change keeps open at a time: a process may have but some hundred files open."""
_RECORDED = ("do", "project", "root", "path", "to", "scope", "link", "kept", "temp", "temp_folder")


@dataclass(slots=True)
class Step:
    """One planned operation on a file or folder of a project at `root`; paths are project-relative.

    `put` writes `data` (`old` None: nothing may be there); `remove` needs `old`; `move` takes a
    file or folder to `to`, which must be free; `mkdir`, `rmdir` (empty by then), `unlink` (a
    symlink), `symlink`. `old` is what the caller read: a file that changed since is a Conflict.
    `kept` False leaves no old text in the history. `away`: other processes do not know the project
    at `root`, so the journal has to name it. Once a `put` is prepared, `etag` and `stamp` are those
    of the file it makes. `by`: as in `Touched`.
    """

    do: str
    project: str
    root: str
    path: str
    to: str = ""
    data: bytes | None = None
    old: File | None = None
    mode: int | None = None
    scope: str = "global"
    link: str = ""
    kept: bool = True
    away: bool = False
    temp: str = ""
    temp_folder: str = ""
    etag: str | None = None
    stamp: Stamp | None = None
    by: dict[str, str] | None = None

    def record(self) -> dict[str, Any]:
        """What the redo record holds of this step."""
        return {key: getattr(self, key) for key in _RECORDED if getattr(self, key) != ""}

    def touched(self) -> Touched:
        """What the journal holds of this step."""
        if self.data is not None:
            self.etag = sha256(self.data)
        old, mode = (self.old.etag, self.old.mode) if self.old else (None, None)
        root = os.path.realpath(self.root) if self.away else ""
        return Touched(
            self.do,
            self.project,
            self.path,
            self.to,
            old,
            self.etag,
            mode,
            self.scope,
            self.link,
            self.kept,
            root=root,
            size=len(self.data or b""),
            by=self.by,
        )


class Execution:
    """Carries out steps, remembers how to roll them back, and which folders to sync.

    `strict`: a file that is not as the step's `old` says is a Conflict; recovery is not strict.
    `durable`: what is
    written is synced; a copy of what is safe elsewhere need not be.
    """

    def __init__(self, history: History, *, strict: bool, durable: bool = True):
        self._history = history
        self._strict = strict
        self._durable = durable
        self._folders: dict[tuple[str, str], Folder] = {}
        self._reverse: list[tuple[str, Step]] = []
        self._held: list[tuple[Step, str]] = []

    def _folder(self, step: Step, path: str) -> Folder:
        """The open folder at `path` of the step's project, checked when it is opened. Of many only
        those used last stay open."""
        key = (step.root, path)
        folder = self._folders.pop(key, None)
        if folder is None:
            if len(self._folders) >= _OPEN_FOLDERS:
                with self._folders.pop(next(iter(self._folders))) as oldest:
                    # A step was done, maybe by a dead writer
                    if self._durable and (self._reverse or not self._strict):
                        os.fsync(oldest.fd)
            folder = open_folder(step.root, path, step.project)
        self._folders[key] = folder
        return folder

    def _at(self, step: Step, path: str | None = None) -> tuple[Folder, str]:
        """The open parent folder of `path`, by default the step's, and the name in it."""
        parent, _, name = (step.path if path is None else path).rpartition("/")
        return self._folder(step, parent), name

    def write_temps(self, puts: Sequence[Step], *, durable: bool = True) -> None:
        """Write the new bytes of `put` steps as temp files; with `durable` sync them."""
        durable = durable and self._durable
        are_many = len(puts) >= PARALLEL_WRITES
        for step in puts:
            assert step.data is not None
            if step.mode is not None:
                mode = step.mode
            elif step.old:
                mode = step.old.mode
            else:
                mode = NEW_MODE
            folder = self._folder(step, step.temp_folder).fd
            status = write_file(
                step.temp, step.data, mode=mode, folder=folder, durable=durable and not are_many
            )
            step.stamp = stamp_of(status)
        if durable and are_many:
            from concurrent.futures import ThreadPoolExecutor

            with ThreadPoolExecutor(PARALLEL_WRITES) as threads:
                self.sync_temps(puts, threads)

    def sync_temps(self, puts: Sequence[Step], threads: Executor) -> None:
        """Sync the temp files of `put` steps that were written without: the disk does many at once."""

        def sync(files: Iterable[tuple[str, int]]) -> None:
            for name, folder in files:
                fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=folder)
                try:
                    os.fsync(fd)
                finally:
                    os.close(fd)

        # The folders of so many are open at the same time
        for at in range(0, len(puts), _OPEN_FOLDERS):
            temps = [
                (step.temp, self._folder(step, step.temp_folder).fd)
                for step in puts[at : at + _OPEN_FOLDERS]
            ]
            for _ in threads.map(
                sync, [temps[n::PARALLEL_WRITES] for n in range(min(PARALLEL_WRITES, len(temps)))]
            ):
                continue

    def remove_temps(self, steps: Sequence[Step]) -> None:
        """Remove the temp files of steps that were not carried out."""
        for step in filter(attrgetter("temp"), steps):
            with suppress(OSError, NotFound):
                os.unlink(step.temp, dir_fd=self._folder(step, step.temp_folder).fd)

    def run(self, step: Step) -> None:
        """Carry out one step."""
        folder, name = self._at(step)
        if step.do in ("put", "remove"):
            self._replace(step, folder, name)
        elif step.do == "move":
            target, new_name = self._at(step, step.to)
            taken = stat_in(new_name, target.fd)
            if taken is not None:
                here = stat_in(name, folder.fd)
                if here is None or not os.path.samestat(here, taken) or step.path == step.to:
                    raise Exists(step.to)
            os.rename(name, new_name, src_dir_fd=folder.fd, dst_dir_fd=target.fd)
            self._reverse.append(("rename", step))
            if step.old is None:
                self._close_below(step.root, step.path)
        elif step.do == "mkdir":
            os.mkdir(name, 0o700, dir_fd=folder.fd)
            self._reverse.append(("rmdir", step))
            os.chmod(name, 0o700, dir_fd=folder.fd)
        elif step.do == "rmdir":
            os.rmdir(name, dir_fd=folder.fd)
            self._reverse.append(("mkdir", step))
            self._close_below(step.root, step.path)
        elif step.do == "symlink":
            os.symlink(step.link, name, dir_fd=folder.fd)
            self._reverse.append(("unlink", step))
        else:
            there = stat_in(name, folder.fd)
            if there is None or not stat.S_ISLNK(there.st_mode):
                raise Conflict(step.path, "a file" if there else "none", "a link")
            os.unlink(name, dir_fd=folder.fd)
            self._reverse.append(("symlink", step))

    def resume(self, step: Step, touched: Touched) -> None:
        """Carry out one step of a dead writer unless it was done; `touched` is what the journal
        will say of it.
        """
        if self._is_done(step, touched):
            return
        # What stands there now is what is replaced
        if step.do == "put":
            touched.old, touched.mode = (step.old.etag, step.old.mode) if step.old else (None, None)
        self.run(step)

    def is_overtaken(self, steps: Sequence[Step], files: Sequence[Touched]) -> bool:
        """On recovery: whether no step was done yet and somebody changed a file since the dead
        writer read it.
        """
        changed = False
        for step, touched in zip(steps, files, strict=True):
            if step.do in ("put", "remove"):
                # Of what is there now
                etag = None
                with suppress(NotFound):
                    folder, name = self._at(step)
                    if stat_in(name, folder.fd):
                        etag = read_file(name, folder.fd).etag
                    else:
                        etag = None
                if self._is_renamed(step) if step.do == "put" else etag is None:
                    return False
                changed = changed or etag != touched.old
                continue
            try:
                if self._is_done(step, touched):
                    return False
            except NotFound:
                # The folder it needs is still to be made
                continue
        return changed

    def _is_renamed(self, step: Step) -> bool:
        """Whether the temp file of a `put` is gone."""
        return stat_in(step.temp, self._folder(step, step.temp_folder).fd) is None

    def _is_done(self, step: Step, touched: Touched) -> bool:
        """On recovery: whether the dead writer had come past this step."""
        try:
            folder, name = self._at(step)
        except NotFound:
            if step.do in ("put", "mkdir", "symlink"):
                raise
            # Its folder is gone already
            return True
        there = stat_in(name, folder.fd)
        if step.do == "put":
            if self._is_renamed(step):
                return True
            step.old = read_file(name, folder.fd) if there else None
            return False
        makes = step.do in ("mkdir", "symlink")
        if there is None or makes:
            return makes == (there is not None)
        if step.do == "remove":
            step.old = read_file(name, folder.fd)
            return step.old.etag != touched.old
        if step.do == "unlink":
            return not stat.S_ISLNK(there.st_mode)
        if step.do == "rmdir":
            return False
        # A move was done if its destination holds what was to go there, and the source was made
        # anew since
        try:
            target, name = self._at(step, step.to)
        except NotFound:
            return False
        there = stat_in(name, target.fd)
        if there is None or touched.old is None or not stat.S_ISREG(there.st_mode):
            return there is not None
        return read_file(name, target.fd).etag == touched.old

    def _replace(self, step: Step, folder: Folder, name: str) -> None:
        """Put the new file in place of what the caller read, or remove that. Another file there is
        a Conflict.
        """
        if self._strict:
            there = stat_in(name, folder.fd)
            if step.old is None and there is not None:
                raise Exists(step.path)
            if step.old is not None and (there is None or stamp_of(there) != step.old.stamp):
                if there and stat.S_ISREG(there.st_mode):
                    now = read_file(name, folder.fd).etag[:8]
                else:
                    now = "none"
                raise Conflict(step.path, now, step.old.etag[:8])
        if step.old is not None and step.kept:
            self._history.keep(step.old, name, folder.fd)
        elif step.old is not None and step.do == "put":
            # Held under a temp name until the change is done: a full disk can refuse to write it
            # again.
            held = f"{step.temp}-old"
            try:
                # By the writer that died and whose step this is
                with suppress(FileExistsError):
                    os.link(
                        name,
                        held,
                        src_dir_fd=folder.fd,
                        dst_dir_fd=folder.fd,
                        follow_symlinks=False,
                    )
                self._held.append((step, held))
            except OSError as error:
                if error.errno not in CANNOT_LINK:
                    raise
        if step.do == "put":
            place = self._folder(step, step.temp_folder)
            os.rename(step.temp, name, src_dir_fd=place.fd, dst_dir_fd=folder.fd)
        else:
            assert step.old is not None
            os.unlink(name, dir_fd=folder.fd)
        self._reverse.append(("restore" if step.old else "unlink", step))

    def _close_below(self, root: str, path: str) -> None:
        """Folders opened below a moved or removed one are not where their names say any more."""
        for key in [
            k
            for k in self._folders
            if k[0] == root and (k[1] == path or k[1].startswith(path + "/"))
        ]:
            self._folders.pop(key).close()

    def sync(self) -> None:
        """Make the entries of all folders used durable."""
        for folder in self._folders.values():
            os.fsync(folder.fd)

    def rollback(self) -> list[str]:
        """Undo the steps carried out, last first. Returns the paths of files that could not be put
        back. A failure does not stop the others; a folder that is no longer empty is kept."""
        lost = []
        for what, step in reversed(self._reverse):
            try:
                folder, name = self._at(step)
                if what == "restore":
                    assert step.old is not None
                    kept = self._history.object_path(step.old.etag)
                    held = next((held for each, held in self._held if each is step), None)
                    if held is not None:
                        os.rename(held, name, src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
                    elif (
                        os.path.exists(kept)
                        and stamp_of(os.stat(kept)).inode == step.old.stamp.inode
                    ):
                        # The very file that stood there
                        os.rename(kept, name, dst_dir_fd=folder.fd)
                    else:
                        temp = f"{TEMP_PREFIX}{os.getpid()}-back-{os.urandom(4).hex()}"
                        write_file(temp, step.old.data, mode=step.old.mode, folder=folder.fd)
                        os.rename(temp, name, src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
                elif what == "unlink":
                    os.unlink(name, dir_fd=folder.fd)
                elif what == "rename":
                    target, new_name = self._at(step, step.to)
                    os.rename(new_name, name, src_dir_fd=target.fd, dst_dir_fd=folder.fd)
                    self._close_below(step.root, step.to)
                elif what == "rmdir":
                    self._close_below(step.root, step.path)
                    os.rmdir(name, dir_fd=folder.fd)
                elif what == "mkdir":
                    os.mkdir(name, 0o700, dir_fd=folder.fd)
                else:
                    os.symlink(step.link, name, dir_fd=folder.fd)
            except (OSError, MemorandaError):
                if what != "rmdir":
                    lost.append(step.path)
        self._reverse.clear()
        return lost

    def close(self) -> None:
        """Remove what was held and close the folders."""
        for step, held in self._held:
            # Put back already
            with suppress(OSError):
                os.unlink(held, dir_fd=self._at(step)[0].fd)
        self._held.clear()
        for folder in self._folders.values():
            folder.close()
        self._folders.clear()
