"""The home on disk: one lock, one way to change files, all or nothing (DESIGN.md, 4).

A change is a list of `Step`s. `Home.commit` writes and syncs all new bytes as temp files, notes the
steps in the redo record, carries them out (each replaced file first linked into the history), syncs
the folders, and appends the change to the journal: that line is the commit mark. A record found when
the lock is taken belongs to a writer that died; its steps are carried out again, or, if it had not
come that far, its temp files are removed. So every change is there as a whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from commonplace.clock import Clock, stamp
from commonplace.errors import CommonplaceError, Conflict, Exists, NotFound, StorageError
from commonplace.store.atomic import Lock, make_private, read_fd, reason, refusal, write_file
from commonplace.store.base import File, Stamp
from commonplace.store.history import Change, History, Touched
from commonplace.store.jail import Folder, open_folder
from commonplace.store.layout import TEMP_PREFIX, Layout

NEW_MODE = 0o600
HEAD = 65536
MANY, WRITERS = 16, 16


@dataclass(slots=True)
class Step:
    """One planned operation on a file or folder of a project at `root`; paths are project-relative.

    `put` writes `data` (`old` None: nothing may be there); `remove` needs `old`; `move` takes a file or
    folder to `to`, which must be free; `mkdir`, `rmdir` (empty by then), `unlink` (a symlink).
    `old` is what the caller read: a file that changed since is a Conflict. `kept` False leaves no old
    text in the history.
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
            new = hashlib.sha256(self.data).hexdigest()
        mode = self.old.mode if self.old else None
        return Touched(self.do, self.project, self.path, self.to, old, new, mode, self.scope, self.link, self.kept)


class Home:
    """Lock, redo record and history of the home folder. Thread-safe through its lock."""

    def __init__(self, layout: Layout, clock: Clock):
        self.layout = layout
        self._clock = clock
        try:
            make_private(layout.root)
            make_private(layout.private)
            self.history = History(layout)
            self._redo = os.open(layout.redo, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            self.lock = Lock(layout.lock, self._entered)
            if self.unfinished():
                with self.lock:  # finish or clean up what a dead writer left; a live one just ends first
                    pass
        except OSError as error:
            raise StorageError("the memory home", reason(error)) from None

    def close(self) -> None:
        """Release the files; the home stays as it is."""
        self.history.close()
        os.close(self._redo)
        self.lock.close()

    def commit(
        self,
        verb: str,
        steps: Sequence[Step],
        *,
        about: tuple[str, str],
        agent: str | None = None,
        face: str | None = None,
        undoes: int | None = None,
        details: dict[str, Any] | None = None,
    ) -> Change:
        """Carry out `steps` as one change: all or nothing, durable on return. The lock must be held.

        `about` is (project, path) the change is listed under. Raises Conflict when a file is not as
        read, Exists when a destination is taken, StorageError when the disk refuses; then nothing changed.
        """
        steps = [*_missing_folders(steps), *steps]
        number = self.history.last + 1
        change = Change(number, stamp(self._clock()), verb, *about, agent, face,
                        [each.touched() for each in steps], undoes, details)  # fmt: skip
        work = _Work(self.history, strict=True)
        try:
            self._prepare(steps, number)
            self._note(change, steps)
            for step in steps:
                work.carry_out(step)
            work.sync()
            self.history.append(change)
        except OSError as error:
            work.take_back()
            _remove_temps(steps)
            self._clear()
            raise refusal(about[1] or about[0], error) from None
        except BaseException:
            work.take_back()
            _remove_temps(steps)
            self._clear()
            raise
        finally:
            work.close()
        try:
            self._clear()
        except OSError:
            pass  # the journal has the change, so whoever takes the lock next drops the record
        return change

    def unfinished(self) -> bool:
        """Whether a redo record waits (only a writer at work, or one that died, leaves one)."""
        return os.fstat(self._redo).st_size > 0

    def _prepare(self, steps: Sequence[Step], number: int) -> None:
        """Write and sync the new bytes as temp files, named in the record before they exist."""
        mark = f"{TEMP_PREFIX}{os.getpid()}-{number}-{os.urandom(4).hex()}"
        puts = [step for step in steps if step.do == "put"]
        for index, step in enumerate(puts):
            step.temp_folder = _existing_folder(step.root, step.path)
            step.temp = f"{mark}-{index}"
        places = sorted({(step.project, step.root, step.temp_folder) for step in puts})
        self._write({"mark": mark, "places": places}, 0)
        if len(puts) < MANY:
            for step in puts:
                _write_temp(step)
            return
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(WRITERS) as pool:  # the disk syncs many files at once faster than one by one
            for written in [pool.submit(_write_temp, step) for step in puts]:
                written.result()

    def _note(self, change: Change, steps: Sequence[Step]) -> None:
        """Complete the redo record; with several steps it must be durable before the first of them."""
        record = {"change": change.dump().decode(), "steps": [step.record() for step in steps]}
        self._write(record, os.fstat(self._redo).st_size)
        if len(steps) > 1:
            os.fdatasync(self._redo)

    def _write(self, record: dict[str, Any], at: int) -> None:
        line = json.dumps(record, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
        done = 0
        while done < len(line):
            done += os.pwrite(self._redo, line[done:], at + done)

    def _clear(self) -> None:
        """Drop the record: no step of it may be carried out again."""
        try:
            os.ftruncate(self._redo, 0)
        except OSError:
            os.pwrite(self._redo, b"-", 0)

    def _entered(self) -> None:
        """The lock was just taken: learn of others' changes, finish what a dead writer began."""
        self.history.refresh()
        if os.fstat(self._redo).st_size == 0:
            return
        try:
            self._recover()
        except (OSError, CommonplaceError):
            # It cannot be finished now (an unmounted project, a read-only disk): set aside for doctor.
            os.replace(self.layout.redo, f"{self.layout.redo}-{self.history.last + 1}")
            os.close(self._redo)
            self._redo = os.open(self.layout.redo, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            return
        self._clear()

    def _recover(self) -> None:
        lines = read_fd_from_start(self._redo).split(b"\n")
        if len(lines) < 2 or not lines[0].startswith(b"{"):
            return  # cut off while the first line was written, or dropped: nothing is to be done
        begun = json.loads(lines[0])
        if len(lines) > 2:
            record = json.loads(lines[1])
            change = Change.load(record["change"].encode())
            if change.number > self.history.last:
                self._finish(change, [Step(**each) for each in record["steps"]])
        for project, root, path in begun["places"]:
            _remove_marked(project, root, path, begun["mark"])

    def _finish(self, change: Change, steps: Sequence[Step]) -> None:
        work = _Work(self.history, strict=False)
        try:
            for step, touched in zip(steps, change.files, strict=True):
                work.carry_out(step, touched)
            work.sync()
        finally:
            work.close()
        self.history.append(change)

    def set_aside(self) -> list[str]:
        """Redo records that could not be finished when they were found (for doctor)."""
        names = sorted(os.listdir(self.layout.private))
        return [os.path.join(self.layout.private, name) for name in names if name.startswith("redo-")]

    def retry(self, record: str) -> None:
        """Finish a record that was set aside. The lock must be held. Raises CommonplaceError."""
        try:
            with open(record, "rb") as file:
                data = file.read()
            os.pwrite(self._redo, data, 0)
            self._recover()
            self._clear()
            os.unlink(record)
        except OSError as error:
            raise refusal(os.path.basename(record), error) from None


class _Work:
    """Carries out steps, remembers how to take them back, and which folders to sync."""

    def __init__(self, history: History, *, strict: bool):
        self._history = history
        self._strict = strict
        self._open: dict[tuple[str, str], Folder] = {}
        self._back: list[tuple[str, Step]] = []

    def folder(self, step: Step, path: str) -> Folder:
        """The open parent folder of `path`."""
        parent = path.rpartition("/")[0]
        key = (step.root, parent)
        if key not in self._open:
            self._open[key] = open_folder(step.root, parent, step.project)
        return self._open[key]

    def carry_out(self, step: Step, touched: Touched | None = None) -> None:
        if not self._strict and touched is not None and self._done(step, touched):
            return
        getattr(self, f"_{step.do}")(step)

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
            with open_folder(step.root, step.temp_folder, step.project) as place:
                if _lstat(step.temp, place.fd) is None:
                    return True
            step.old = read_file(name, folder.fd) if there else None
            return False
        makes = step.do in ("mkdir", "symlink")
        if there is None or makes:
            return makes == (there is not None)
        if step.do == "remove":
            step.old = read_file(name, folder.fd)
            return step.old.etag != touched.old
        return False

    def _at(self, step: Step) -> tuple[Folder, str]:
        return self.folder(step, step.path), step.path.rpartition("/")[2]

    def _put(self, step: Step) -> None:
        folder, name = self._at(step)
        self._check(step, folder, name)
        if step.old is not None and step.kept:
            self._history.keep(step.old, name, folder.fd)
        with open_folder(step.root, step.temp_folder, step.project) as place:
            os.rename(step.temp, name, src_dir_fd=place.fd, dst_dir_fd=folder.fd)
        self._back.append(("restore" if step.old else "unlink", step))

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

    def take_back(self) -> None:
        """Undo the steps carried out, last first."""
        for what, step in reversed(self._back):
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
        self._back.clear()

    def _restore(self, step: Step, folder: Folder, name: str) -> None:
        """Put the very file that stood there back, or its bytes."""
        assert step.old is not None
        kept = self._history.object_path(step.old.etag)
        if os.path.exists(kept) and os.stat(kept).st_ino == step.old.stamp.inode:
            os.rename(kept, name, dst_dir_fd=folder.fd)
            return
        temp = f"{TEMP_PREFIX}{os.getpid()}-back-{os.urandom(4).hex()}"
        write_file(temp, step.old.data, mode=step.old.mode, folder=folder.fd)
        os.rename(temp, name, src_dir_fd=folder.fd, dst_dir_fd=folder.fd)

    def close(self) -> None:
        for folder in self._open.values():
            folder.close()
        self._open.clear()


def _write_temp(step: Step) -> None:
    """Write and sync the new bytes of a `put`."""
    assert step.data is not None
    mode = step.mode if step.mode is not None else step.old.mode if step.old else NEW_MODE
    with open_folder(step.root, step.temp_folder, step.project) as folder:
        write_file(step.temp, step.data, mode=mode, folder=folder.fd)


def read_fd_from_start(fd: int) -> bytes:
    """All bytes of an open file, from its beginning, wherever its position is."""
    os.lseek(fd, 0, os.SEEK_SET)
    return read_fd(fd)


def stamp_of(status: os.stat_result) -> Stamp:
    """The stamp of a stat result."""
    return Stamp(status.st_size, status.st_mtime_ns, status.st_ino)


def _lstat(name: str, folder: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def read_file(name: str, folder: int) -> File:
    """The regular file `name` of an open folder; a symlink is refused. Raises OSError."""
    fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise IsADirectoryError(21, "not a regular file")
        data = read_fd(fd)
        born = getattr(status, "st_birthtime", None)
        return File(data, stamp_of(status), hashlib.sha256(data).hexdigest(), stat.S_IMODE(status.st_mode), born)
    finally:
        os.close(fd)


def read_head(name: str, folder: int) -> bytes:
    """The first `HEAD` bytes of a file of an open folder. Raises OSError."""
    fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        return os.read(fd, HEAD)
    finally:
        os.close(fd)


def _existing_folder(root: str, path: str) -> str:
    """The nearest folder above `path` that exists already."""
    parent = path.rpartition("/")[0]
    while parent and not os.path.isdir(os.path.join(root, parent)):
        parent = parent.rpartition("/")[0]
    return parent


def _missing_folders(steps: Sequence[Step]) -> list[Step]:
    """A `mkdir` step for each folder the steps need and the disk lacks, parents first."""
    found: dict[tuple[str, str], Step] = {}
    made = {(step.root, step.path) for step in steps if step.do == "mkdir"}
    for step in steps:
        if step.do not in ("put", "move", "symlink"):
            continue
        parent = (step.to or step.path).rpartition("/")[0]
        while parent and (step.root, parent) not in made and not os.path.lexists(os.path.join(step.root, parent)):
            found[step.root, parent] = Step("mkdir", step.project, step.root, parent)
            made.add((step.root, parent))
            parent = parent.rpartition("/")[0]
    return [found[key] for key in sorted(found)]


def _remove_temps(steps: Sequence[Step]) -> None:
    for step in steps:
        if step.temp:
            try:
                with open_folder(step.root, step.temp_folder, step.project) as folder:
                    os.unlink(step.temp, dir_fd=folder.fd)
            except (OSError, NotFound):
                continue


def _remove_marked(project: str, root: str, path: str, mark: str) -> None:
    """Remove the temp files of a dead writer from one folder."""
    try:
        folder = open_folder(root, path, project)
    except NotFound:
        return
    with folder:
        for name in os.listdir(folder.fd):
            if name.startswith(mark):
                os.unlink(name, dir_fd=folder.fd)
