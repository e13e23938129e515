"""The steps of a change on disk: what each does, how it is taken back, and when it counts as done already."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from commonplace.errors import CommonplaceError, Conflict, Exists, NotFound
from commonplace.store.atomic import read_fd, write_file
from commonplace.store.base import File, Stamp, bounded, sha256
from commonplace.store.history import CANNOT_LINK, History, Touched
from commonplace.store.layout import TEMP_PREFIX
from commonplace.store.path_guard import Folder, open_folder

NEW_MODE = 0o600
HEAD = 65536
KINDS = ("put", "remove", "move", "mkdir", "rmdir", "unlink", "symlink")


@dataclass(slots=True)
class Step:
    """One planned operation on a file or folder of a project at `root`; paths are project-relative.

    `put` writes `data` (`old` None: nothing may be there); `remove` needs `old`; `move` takes a file or
    folder to `to`, which must be free; `mkdir`, `rmdir` (empty by then), `unlink` (a symlink).
    `old` is what the caller read: a file that changed since is a Conflict. `kept` False leaves no old
    text in the history. `away`: other processes do not know the project at `root`, so the journal has to say it.
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

    def record(self) -> dict[str, Any]:
        """What the redo record holds of this step."""
        keys = ("do", "project", "root", "path", "to", "scope", "link", "kept", "temp", "temp_folder")
        return {key: getattr(self, key) for key in keys if getattr(self, key) != ""}

    def touched(self) -> Touched:
        """What the journal holds of this step."""
        old, new = (self.old.etag if self.old else None), None
        if self.data is not None:
            new = sha256(self.data)
        mode = self.old.mode if self.old else None
        root = os.path.realpath(self.root) if self.away else ""
        return Touched(self.do, self.project, self.path, self.to, old, new, mode, self.scope, self.link, self.kept,
                       root=root)  # fmt: skip


class Work:
    """Carries out steps, remembers how to take them back, and which folders to sync."""

    def __init__(self, history: History, *, strict: bool):
        self._history = history
        self._strict = strict
        self._open: dict[tuple[str, str], Folder] = {}
        self._back: list[tuple[str, Step]] = []
        self._held: list[tuple[Step, str]] = []

    def folder(self, step: Step, path: str) -> Folder:
        """The open parent folder of `path`."""
        parent = path.rpartition("/")[0]
        key = (step.root, parent)
        if key not in self._open:
            self._open[key] = open_folder(step.root, parent, step.project)
        return self._open[key]

    def carry_out(self, step: Step, touched: Touched | None = None) -> None:
        """Do one step; on recovery (`touched` is what the journal will say) only if it was not done."""
        if not self._strict and touched is not None:
            if self._done(step, touched):
                return
            if step.do == "put":  # what stands there now is what is replaced
                touched.old, touched.mode = (step.old.etag, step.old.mode) if step.old else (None, None)
        getattr(self, f"_{step.do}")(step)

    def is_overtaken(self, steps: Sequence[Step], files: Sequence[Touched]) -> bool:
        """On recovery: whether nothing was done yet and somebody changed a file since the dead writer read it."""
        changed = False
        for step, touched in zip(steps, files, strict=True):
            if step.do in ("put", "remove"):
                there = self._digest(step)
                if not self._has_temp(step) if step.do == "put" else there is None:
                    return False
                changed = changed or there != touched.old
            elif self._was_done(step, touched):
                return False
        return changed

    def _was_done(self, step: Step, touched: Touched) -> bool:
        try:
            return self._done(step, touched)
        except NotFound:
            return False  # the folder it needs is still to be made

    def _digest(self, step: Step) -> str | None:
        """What is at the step's path now, None for nothing."""
        try:
            folder, name = self._at(step)
        except NotFound:
            return None
        return read_file(name, folder.fd).etag if _lstat(name, folder.fd) else None

    def _has_temp(self, step: Step) -> bool:
        with open_folder(step.root, step.temp_folder, step.project) as place:
            return _lstat(step.temp, place.fd) is not None

    def _done(self, step: Step, touched: Touched) -> bool:
        """On recovery: whether the dead writer had come past this step."""
        try:
            folder, name = self._at(step)
        except NotFound:
            if step.do in ("put", "mkdir", "symlink"):
                raise
            return True  # its folder is gone already
        there = _lstat(name, folder.fd)
        if step.do == "put":
            if not self._has_temp(step):
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
        return step.do == "move" and self._has_moved(step, touched)

    def _has_moved(self, step: Step, touched: Touched) -> bool:
        """Whether what is at the destination is what was to go there, so that the source was made anew since."""
        try:
            target, new = self.folder(step, step.to), step.to.rpartition("/")[2]
        except NotFound:
            return False
        there = _lstat(new, target.fd)
        if there is None or touched.old is None or not stat.S_ISREG(there.st_mode):
            return there is not None
        return read_file(new, target.fd).etag == touched.old

    def _at(self, step: Step) -> tuple[Folder, str]:
        return self.folder(step, step.path), step.path.rpartition("/")[2]

    def _put(self, step: Step) -> None:
        folder, name = self._at(step)
        self._check(step, folder, name)
        if step.old is not None and step.kept:
            self._history.keep(step.old, name, folder.fd)
        elif step.old is not None:
            self._hold(step, name, folder.fd)
        with open_folder(step.root, step.temp_folder, step.project) as place:
            os.rename(step.temp, name, src_dir_fd=place.fd, dst_dir_fd=folder.fd)
        self._back.append(("restore" if step.old else "unlink", step))

    def _hold(self, step: Step, name: str, folder: int) -> None:
        """Hold a file the history may not keep under a temp name until the change is done: a full disk can
        refuse to write it again."""
        held = f"{step.temp}-old"
        try:
            os.link(name, held, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except OSError as error:
            if error.errno not in CANNOT_LINK:
                raise
            return
        self._held.append((step, held))

    def _remove(self, step: Step) -> None:
        folder, name = self._at(step)
        self._check(step, folder, name)
        assert step.old is not None
        if step.kept:
            self._history.keep(step.old, name, folder.fd)
        os.unlink(name, dir_fd=folder.fd)
        self._back.append(("restore", step))

    def _move(self, step: Step) -> None:
        folder, name = self._at(step)
        target, new = self.folder(step, step.to), step.to.rpartition("/")[2]
        taken = _lstat(new, target.fd)
        if taken is not None:
            here = _lstat(name, folder.fd)
            same = here is not None and (here.st_ino, here.st_dev) == (taken.st_ino, taken.st_dev)
            if not same or step.path == step.to:
                raise Exists(step.to)
        os.rename(name, new, src_dir_fd=folder.fd, dst_dir_fd=target.fd)
        self._back.append(("rename", step))
        if step.old is None:
            self._forget_below(step.root, step.path)

    def _mkdir(self, step: Step) -> None:
        folder, name = self._at(step)
        os.mkdir(name, 0o700, dir_fd=folder.fd)
        self._back.append(("rmdir", step))
        os.chmod(name, 0o700, dir_fd=folder.fd)

    def _rmdir(self, step: Step) -> None:
        folder, name = self._at(step)
        os.rmdir(name, dir_fd=folder.fd)
        self._back.append(("mkdir", step))
        self._forget_below(step.root, step.path)

    def _unlink(self, step: Step) -> None:
        folder, name = self._at(step)
        there = _lstat(name, folder.fd)
        if there is None or not stat.S_ISLNK(there.st_mode):
            raise Conflict(step.path, "a file" if there else "none", "a link")
        os.unlink(name, dir_fd=folder.fd)
        self._back.append(("symlink", step))

    def _symlink(self, step: Step) -> None:
        folder, name = self._at(step)
        os.symlink(step.link, name, dir_fd=folder.fd)
        self._back.append(("unlink", step))

    def _forget_below(self, root: str, path: str) -> None:
        """Folders opened below a moved or removed one are not where their names say any more."""
        for key in [k for k in self._open if k[0] == root and (k[1] == path or k[1].startswith(path + "/"))]:
            self._open.pop(key).close()

    def _check(self, step: Step, folder: Folder, name: str) -> None:
        """The file must still be what the caller read; else it is a Conflict."""
        if not self._strict:
            return
        there = _lstat(name, folder.fd)
        if step.old is None:
            if there is not None:
                raise Exists(step.path)
        elif there is None or stamp_of(there) != step.old.stamp:
            now = read_file(name, folder.fd).etag[:8] if there and stat.S_ISREG(there.st_mode) else "none"
            raise Conflict(step.path, now, step.old.etag[:8])

    def sync(self) -> None:
        """Make the folders' entries durable."""
        for folder in self._open.values():
            os.fsync(folder.fd)

    def take_back(self) -> list[str]:
        """Undo the steps carried out, last first. Returns the paths of files that could not be put back; one
        that resists stops no other, and a folder somebody else uses by now just stays."""
        lost = []
        for what, step in reversed(self._back):
            try:
                self._undo(what, step)
            except (OSError, CommonplaceError):
                if what != "rmdir":
                    lost.append(step.path)
        self._back.clear()
        return lost

    def _undo(self, what: str, step: Step) -> None:
        folder, name = self._at(step)
        if what == "restore":
            self._restore(step, folder, name)
        elif what == "unlink":
            os.unlink(name, dir_fd=folder.fd)
        elif what == "rename":
            target, new = self.folder(step, step.to), step.to.rpartition("/")[2]
            os.rename(new, name, src_dir_fd=target.fd, dst_dir_fd=folder.fd)
            self._forget_below(step.root, step.to)
        elif what == "rmdir":
            self._forget_below(step.root, step.path)
            os.rmdir(name, dir_fd=folder.fd)
        elif what == "mkdir":
            os.mkdir(name, 0o700, dir_fd=folder.fd)
        else:
            os.symlink(step.link, name, dir_fd=folder.fd)

    def _restore(self, step: Step, folder: Folder, name: str) -> None:
        """Put the very file that stood there back, or its bytes."""
        assert step.old is not None
        held = next((held for each, held in self._held if each is step), None)
        if held is not None:
            os.rename(held, name, src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
            return
        kept = self._history.object_path(step.old.etag)
        if os.path.exists(kept) and stamp_of(os.stat(kept)).inode == step.old.stamp.inode:
            os.rename(kept, name, dst_dir_fd=folder.fd)
            return
        temp = f"{TEMP_PREFIX}{os.getpid()}-back-{os.urandom(4).hex()}"
        write_file(temp, step.old.data, mode=step.old.mode, folder=folder.fd)
        os.rename(temp, name, src_dir_fd=folder.fd, dst_dir_fd=folder.fd)

    def close(self) -> None:
        """Let go of what was held and of the folders."""
        for step, held in self._held:
            try:
                os.unlink(held, dir_fd=self._at(step)[0].fd)
            except OSError:
                continue  # put back already
        self._held.clear()
        for folder in self._open.values():
            folder.close()
        self._open.clear()


def write_temp(step: Step) -> None:
    """Write and sync the new bytes of a `put`."""
    assert step.data is not None
    mode = step.mode if step.mode is not None else step.old.mode if step.old else NEW_MODE
    with open_folder(step.root, step.temp_folder, step.project) as folder:
        write_file(step.temp, step.data, mode=mode, folder=folder.fd)


def stamp_of(status: os.stat_result) -> Stamp:
    """The stamp of a stat result."""
    return bounded((status.st_size, status.st_mtime_ns, status.st_ino))


def _lstat(name: str, folder: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def read_file(name: str, folder: int | None = None) -> File:
    """The regular file `name`, of an open folder if given; a symlink is refused. Raises OSError."""
    fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise IsADirectoryError(21, "not a regular file")
        data = read_fd(fd)
        born = getattr(status, "st_birthtime", None)
        return File(data, stamp_of(status), sha256(data), stat.S_IMODE(status.st_mode), born)
    finally:
        os.close(fd)


def read_head(name: str, folder: int) -> bytes:
    """The first `HEAD` bytes of a file of an open folder. Raises OSError."""
    fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        return os.read(fd, HEAD)
    finally:
        os.close(fd)
