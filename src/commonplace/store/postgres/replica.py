"""The replica folder: the notes of a space as files, as the database last said. A cache, of the shape of a home.

That of a large space is filled in a thread, so that calls are answered meanwhile and say how far it is.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from commonplace.errors import CommonplaceError, OutsideError, StorageError
from commonplace.store.base import sha256
from commonplace.store.files import lock_file, lock_owner, make_private, put_derived, write_file
from commonplace.store.journal import Touched
from commonplace.store.layout import PRIVATE, Layout
from commonplace.store.path_guard import clean
from commonplace.store.postgres.space_rows import FileRow

Key = tuple[str, str]
"""(project, path)."""
_README = """This folder is a copy.

The notes of this memory are in a PostgreSQL database; here are copies of them, a copy of the journal and the index,
so that reading and searching are fast. Do not edit anything here: changes made by hand reach nobody and are undone.
Edit by the command (`memory edit`) or your agents. Everything here may be deleted while nothing uses it; it is made
anew.
"""


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """What the folder is a whole copy of: the space's `id` and `epoch`, its shared `files`, made since this `boot` of
    the machine. How far its notes are is the last number of its journal."""

    id: str
    epoch: int
    files: int
    boot: str


class ReplicaFolder:
    """The folder of `layout`. For the holder of its lock."""

    def __init__(self, layout: Layout):
        self._layout = layout
        self._built_in = layout.built_in()
        self._state, self._incoming, self._new = layout.replica, layout.incoming, layout.incoming / "new"
        self._parents: set[Path] = set()
        make_private(layout.private)
        put_derived(layout.root / "README.txt", _README.encode())

    def state(self) -> ReplicaState | None:
        """What it is a whole copy of; None for one that is not whole."""
        try:
            return ReplicaState(**json.loads(self._state.read_bytes()))
        except (FileNotFoundError, ValueError, TypeError):
            return None

    def set_state(self, state: ReplicaState | None) -> None:
        """Say what it is a copy of; None: it is not whole. Raises StorageError."""
        if state is None:
            self._state.unlink(missing_ok=True)
        else:
            put_derived(self._state, json.dumps(asdict(state)).encode())

    def root(self, project: str) -> Path:
        """The folder of a project. Raises StorageError for a name that cannot be one."""
        if project == PRIVATE:
            return self._layout.private
        if (known := self._built_in.get(project)) is not None:
            return known
        if "/" in project or project in ("", ".", ".."):
            raise StorageError(project, "it is no name of a project")
        return self._layout.root / "projects" / project

    def place(self, project: str, path: str) -> Path:
        """Where a row lies. Raises StorageError for a path that leads out."""
        own = (self._layout.review.name, self._layout.requests.name)
        try:
            if clean(path, project, hidden=True) != path or not path or (project == PRIVATE and path not in own):
                raise OutsideError(path, project)
        except OutsideError as error:
            raise StorageError(path, str(error)) from None
        return self.root(project) / path

    def begin(self) -> None:
        """Before rows are put."""
        self._parents.clear()
        make_private(self._incoming)
        self._new.unlink(missing_ok=True)  # of a process that was killed

    def put(self, row: FileRow) -> None:
        """Make a file, folder or link what the row says. Raises StorageError, OSError."""
        place = self.place(row.project, row.path)
        if row.kind == "folder":
            self._make_folder(place)
            return
        self._make_folder(place.parent)
        with suppress(FileNotFoundError):
            if stat.S_ISDIR(os.lstat(place).st_mode):
                shutil.rmtree(place)
        fresh = self._new
        if row.kind == "link":
            os.symlink(row.link or "", fresh)
        else:
            write_file(str(fresh), bytes(row.body or b""), mode=row.mode or 0o600, durable=False)
            if row.changed_ns is not None:
                os.utime(fresh, ns=(row.changed_ns, row.changed_ns))
        os.replace(fresh, place)

    def _make_folder(self, folder: Path) -> None:
        if folder in self._parents:
            return
        if folder != self._layout.root:
            self._make_folder(folder.parent)
            if folder.is_symlink() or not folder.is_dir():
                with suppress(FileNotFoundError):
                    os.unlink(folder)
                os.mkdir(folder, 0o700)
        self._parents.add(folder)

    def remove(self, project: str, path: str) -> None:
        """Remove a file or link, or a folder that is empty. Raises StorageError, OSError."""
        place = self.place(project, path)
        with suppress(FileNotFoundError, NotADirectoryError):
            if stat.S_ISDIR(os.lstat(place).st_mode):
                with suppress(OSError):
                    os.rmdir(place)
            else:
                os.unlink(place)

    def gone(self, each: Touched, there: Collection[Key]) -> Iterator[Key]:
        """What a step took away and is not `there` again, the innermost first."""
        if each.do in ("remove", "unlink", "rmdir", "move"):
            if each.do == "move" and each.old is None:
                for key in reversed(list(self._below(each.project, each.path))):
                    if key not in there:
                        yield key
            if (each.project, each.path) not in there:
                yield each.project, each.path

    def _below(self, project: str, path: str) -> Iterator[Key]:
        """Everything in a folder of a project, parents first."""
        root = self.root(project)
        for folder, folders, names in os.walk(root / path if path else root):
            inside = os.path.relpath(folder, root)
            prefix = "" if inside == "." else f"{inside}/"
            yield from ((project, prefix + name) for name in (*folders, *names))

    def listed(self) -> list[Key]:
        """Everything in the projects, parents first."""
        own = self._layout.root / "projects"
        names = [*self._built_in, *(sorted(os.listdir(own)) if own.is_dir() else ())]
        found = [key for name in names for key in self._below(name, "")]
        private = (self._layout.review, self._layout.requests)
        return found + [(PRIVATE, each.name) for each in private if each.exists()]

    def holds(self, key: Key, digest: str | None) -> bool:
        """Whether a file with this SHA-256 lies there; without one, whether anything does."""
        place = self.place(*key)
        try:
            if digest is None:
                return os.path.lexists(place)
            return stat.S_ISREG(os.lstat(place).st_mode) and sha256(place.read_bytes()) == digest
        except OSError:
            return False


class ColdStart:
    """Runs `bring` in a thread, which tells how far it is: so many notes of how many. Returns of `tell`: whether it is
    to go on. The file at `path`, locked meanwhile, tells the other processes of the machine, of which one does it."""

    def __init__(self, path: Path, bring: Callable[[Callable[[int, int], bool]], None]):
        self._path, self._bring = path, bring
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, unless a thread or another process is at it."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="cold-start", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        with suppress(OSError, CommonplaceError):  # the next call begins again where this one ended
            fd = lock_file(self._path, fcntl.LOCK_EX | fcntl.LOCK_NB)
            try:
                self._bring(lambda done, total: self._tell(fd, done, total))
            finally:
                os.ftruncate(fd, 0)
                os.close(fd)

    def _tell(self, fd: int, done: int, total: int) -> bool:
        os.pwrite(fd, f"{done:,} of {total:,}\n".encode(), 0)
        return not self._stop.is_set()

    def words(self) -> str:
        """What to say of it, "" when nobody is at it."""
        is_ours = self._thread is not None and self._thread.is_alive()
        with suppress(OSError):
            if is_ours or lock_owner(self._path) is not None:
                said = self._path.read_text().strip() if self._path.exists() else ""
                return f"this copy of the notes is being filled, {said or 0} are here; the others are not found yet"
        return ""

    def close(self) -> None:
        """Stop; what came stays."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()


def boot_id() -> str:
    """A value that is another one after the machine was started again."""
    if sys.platform == "darwin":
        found = subprocess.run(["sysctl", "-n", "kern.bootsessionuuid"], capture_output=True, text=True, check=False)
        return found.stdout.strip()
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
