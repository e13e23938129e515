"""The replica of a space on this machine. Its folder: the notes as files, as the database last
said, a cache of the shape of a home; that of a large space is filled in a thread, so that calls are
answered meanwhile and say how far it is. Its journal: a copy, with those of its texts that were
needed here. Its log of reads: what the database does not know yet, while the sums of all replicas
are there. And copies of the files that all replicas share.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import stat
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import UUID, uuid4

from memoranda.errors import (
    Busy,
    DatabaseAway,
    DatabaseRefused,
    MemorandaError,
    NotFound,
    OutsideError,
    StorageError,
)
from memoranda.ledger.change import ORIGINS, Change, Touched
from memoranda.ledger.database import LedgerDatabase, LedgerRefused
from memoranda.ledger.history import History
from memoranda.ledger.postgres.space_database import SpaceDatabase
from memoranda.ledger.postgres.space_rows import FileRow, counted
from memoranda.store.access import AccessLog, LockedLog
from memoranda.store.base import File, Stamp, sha256
from memoranda.store.files import (
    ThreadLock,
    lock_file,
    lock_owner,
    make_private,
    put_derived,
    write_file,
)
from memoranda.store.layout import PRIVATE, Layout, share
from memoranda.store.path_guard import clean
from memoranda.store.walking import walk

Key = tuple[str, str]
"""(project, path)."""
_README = """This folder is a copy.

The notes of this memory are in a PostgreSQL database; here are copies of them, a copy of the journal and the index,
so that reading and searching are fast. Do not edit anything here: changes made by hand reach nobody and are undone.
Edit by the command (`memory edit`) or your agents. Everything here may be deleted while nothing uses it; it is made
anew.
"""
_MARK = re.compile(rb"^# ([0-9a-f-]{36})$", re.MULTILINE)
_BETWEEN = 10.0
"""Seconds between two exchanges with the database, so that a read is no write there."""
_ATTACHED: dict[tuple[int, Path, str, str], SharedFiles] = {}
"""By process (one that was forked must not use these connections), root, address and space."""


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """What the folder is a whole copy of: the space's `id` and `epoch`, its shared `files`, made
    since this `boot` of the machine. How far its notes are is the last number of its journal."""

    id: str
    epoch: int
    files: int
    boot: str


class ReplicaFolder:
    """The folder of `layout`. For the holder of its lock."""

    def __init__(self, layout: Layout):
        self._layout = layout
        self._built_in = layout.built_in
        self._state = layout.replica
        self._incoming = layout.incoming
        self._new = layout.incoming / "new"
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
        known = self._built_in.get(project)
        if known is not None:
            return known
        if "/" in project or project in ("", ".", ".."):
            raise StorageError(project, "it is no name of a project")
        return self._layout.root / "projects" / project

    def place(self, project: str, path: str) -> Path:
        """Where a row lies. Raises StorageError for a path that leads out."""
        own = (self._layout.review.name, self._layout.requests.name)
        try:
            if (
                clean(path, project, hidden=True) != path
                or not path
                or (project == PRIVATE and path not in own)
            ):
                raise OutsideError(path, project)
        except OutsideError as error:
            raise StorageError(path, str(error)) from None
        return self.root(project) / path

    def begin(self) -> None:
        """Before rows are put."""
        self._parents.clear()
        make_private(self._incoming)
        # Of a process that was killed
        self._new.unlink(missing_ok=True)

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
        for folder, folders, names in walk(root / path if path else root):
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
    """Runs `bring` in a thread, which tells how far it is: so many notes of how many. Returns of
    `tell`: whether it is to go on. The file at `path`, locked meanwhile, tells the other processes
    of the machine, of which one does it."""

    def __init__(self, path: Path, bring: Callable[[Callable[[int, int], bool]], None]):
        self._path = path
        self._bring = bring
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, unless a thread or another process is at it."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="cold-start", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        # The next call begins again where this one ended
        with suppress(OSError, MemorandaError):
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
                if self._path.exists():
                    said = self._path.read_text().strip()
                else:
                    said = ""
                return f"this copy of the notes is being filled, {said or 0} are here; the others are not found yet"
        return ""

    def close(self) -> None:
        """Stop; what came stays."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()


class ReplicaHistory(History):
    """As `History`; what is written goes to the database first. `rewritten` is called after changes
    were revised or purged.
    """

    def __init__(
        self,
        layout: Layout,
        ledger: LedgerDatabase,
        server: SpaceDatabase,
        rewritten: Callable[[], None],
    ):
        super().__init__(layout, ledger)
        self._server = server
        self._rewritten = rewritten

    def replace_all(self, changes: Iterable[Change]) -> None:
        """Put the changes the database has in place of all, and drop the texts none of them refers
        to.
        """
        super().replace_all(changes)
        super().sweep()

    def append(self, change: Change, *, durable: bool = True) -> None:
        """Commit a change that changes no note, with the texts kept here that it refers to."""
        digests = [touched.old for touched in change.files if touched.old]
        here = [digest for digest in digests if self.has_text(digest)]
        texts = {digest: super(ReplicaHistory, self).text(digest, change.path) for digest in here}
        self._server.append(change, texts)
        self.append_all([change])

    def text(self, digest: str, path: str) -> bytes:
        """As `History.text`; a text that is not here is fetched. Raises DatabaseAway."""
        try:
            return super().text(digest, path)
        except LedgerRefused:
            raise
        except StorageError:
            self.forget_text(digest)
        except NotFound:
            pass
        data = self._server.text(digest)
        if data is None or sha256(data) != digest:
            raise NotFound(path)
        self.keep_bytes(data, durable=False)
        return data

    def revise(self, revised: Mapping[int, Change], lost: Collection[tuple[str, str, str]]) -> None:
        """As `History.revise`, for all replicas."""
        changes = [revised.get(change.number, change) for change in self.changes(origins=True)]
        for change in changes:
            if change.verb == ORIGINS:
                change.files = [
                    touched
                    for touched in change.files
                    if (touched.project, touched.path, touched.root) not in lost
                ]
        self._server.rewrite(reversed(changes))
        super().revise(revised, lost)
        self._rewritten()

    def _forget(self, numbers: Collection[int], origins: Sequence[Touched]) -> None:
        kept = [change for change in self.changes() if change.number not in numbers]
        older = next(iter(self._origins()), None)
        places = [*(older.files if older is not None else ()), *origins]
        if places:
            moment = min((touched.by or {}).get("time", "") for touched in places)
            project = places[0].project
            kept.append(Change(0, moment, ORIGINS, project, "", None, None, places))
        self._server.rewrite(reversed(kept))
        super()._forget(numbers, origins)
        self._rewritten()

    def sweep(self) -> int:
        """As `History.sweep`, in the database and here. Returns how many went in the database."""
        gone = self._server.sweep(self.referenced())
        super().sweep()
        return gone


class ReplicaAccess(AccessLog):
    """As `AccessLog`. The counts shown are those of the database at the last exchange, and what was
    read here since.
    """

    def __init__(self, path: Path, database: SpaceDatabase):
        super().__init__(path)
        self._log = path
        self._database = database
        self._totals: Counter[str] = Counter()
        self._total_used: dict[str, int] = {}
        self._next = 0.0

    def exchange(self, *, now: bool = False) -> None:
        """Add what was read here to the database and see what was read elsewhere, if it is time to
        or `now`.
        """
        if now or time.monotonic() >= self._next:
            # What is not sent is counted here and sent later
            with suppress(OSError, Busy, DatabaseRefused):
                if now or super().stamp()[0]:
                    with super().locked() as log:
                        self._send(log)
                self._fetch()
                self._next = time.monotonic() + _BETWEEN

    def _send(self, log: LockedLog) -> None:
        data = log.file.data
        if not data:
            return
        # A process was to send what is before it, and did not end that
        for found in reversed(_MARK.findall(data)):
            if self._database.has_counted(UUID(found.decode())):
                put_derived(self._log, data.partition(b"# %s\n" % found)[2])
                # What came since is sent the next time
                return
        mark = uuid4()
        lines = data.decode("utf-8", "replace").splitlines()
        with open(self._log, "ab") as file:
            file.write(f"# {mark}\n".encode())
        restarted = [line[2:] for line in lines if line[:2] == "0 "]
        self._database.add_reads(mark, restarted, super().counts(), super().used())
        put_derived(self._log, b"")
        self._database.forget_mark(mark)

    def _fetch(self) -> None:
        rows = self._database.reads()
        self._totals = Counter({id: count for id, count, _ in rows if count})
        self._total_used = {id: used for id, _, used in rows if used}

    @contextmanager
    def locked(self) -> Iterator[LockedLog]:
        """The counts of all replicas; what `Upkeep.log_step` leaves of them stays in the database.
        Raises also DatabaseAway."""
        with super().locked() as log:
            self._send(log)
        self._fetch()
        counts = Counter(self._totals)
        used = dict(self._total_used)
        whole = LockedLog(
            log.name, File(b"", Stamp(0, 0, 0), sha256(b"")), counts, log.changed, used
        )
        data = whole.lines(counts, used)
        yield LockedLog(
            log.name, File(data, Stamp(len(data), 0, 0), sha256(data)), counts, log.changed, used
        )
        self._next = 0.0

    def fold(self, left: bytes) -> None:
        """A change was committed that leaves just these lines of the log in the database."""
        found = counted(left)
        self._totals = Counter({id: count for id, (count, _) in found.items() if count})
        self._total_used = {id: used for id, (_, used) in found.items() if used}

    def restart(self, *keys: str) -> None:
        super().restart(*keys)
        for key in keys:
            self._totals.pop(key, None)
            self._total_used.pop(key, None)

    def stamp(self) -> tuple[int, int]:
        size, inode = super().stamp()
        return size + self._totals.total(), inode

    def counts(self) -> Counter[str]:
        own = super().counts()
        if own and self._totals:
            return self._totals + own
        return own or self._totals

    def used(self) -> Mapping[str, int]:
        own = super().used()
        return {**self._total_used, **own}

    def close(self) -> None:
        if os.path.exists(self._log) and os.path.getsize(self._log):
            self.exchange(now=True)
        super().close()


class SharedFiles:
    """The shared files of the space at `url`. Thread-safe; the connection is one of its own."""

    def __init__(self, layout: Layout, url: str, space: str):
        self._places = {
            each.name: each
            for each in (layout.config, layout.access, layout.dream_report, layout.erasing)
        }
        self._url = url
        self.space = space
        self._database = SpaceDatabase(url, space)
        self._threads = ThreadLock()
        self._seen = -1

    def hand_over(self) -> SpaceDatabase:
        """The connection used so far, for the home that is opened next; another one is made when it
        is needed.
        """
        with self._threads:
            given = self._database
            self._database = SpaceDatabase(self._url, self.space)
            return given

    def close(self) -> None:
        """End the connection."""
        with self._threads:
            self._database.close()

    def follow(self) -> None:
        """Bring the copies up to date, if the database can be asked."""
        with self._threads, suppress(DatabaseAway):
            self._follow()

    def _follow(self) -> None:
        if self._seen < 0:
            state = self._database.prepare()
        else:
            state = self._database.newest()
        if state.files != self._seen:
            self.show(self._database.shared_files())
            self._seen = state.files

    def show(self, found: Mapping[str, bytes]) -> None:
        """Make the copies these. Raises StorageError."""
        for name, path in self._places.items():
            _put(path, found.get(name))

    @contextmanager
    def changing(self, path: Path) -> Iterator[None]:
        """See `changing_shared`."""
        # The configuration of this machine
        if path not in self._places.values():
            yield
            return
        with self._threads, self._database.sharing():
            self._follow()
            before = _read(path)
            try:
                yield
                after = _read(path)
                if after != before:
                    self._database.put_shared(path.name, after)
            except BaseException:
                _put(path, before)
                raise


def attach(root: Path, url: str, space: str) -> SharedFiles:
    """From now on this process has the shared files of the home at `root` from the space."""
    key = (os.getpid(), root, url, space)
    if key not in _ATTACHED:
        _ATTACHED[key] = SharedFiles(Layout(root), url, space)
    share(root, _ATTACHED[key])
    return _ATTACHED[key]


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _put(path: Path, data: bytes | None) -> None:
    if data is not None:
        make_private(path.parent)
        put_derived(path, data)
    elif path.exists():
        os.unlink(path)
