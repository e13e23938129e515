"""The replica of a space on this machine.

The folder has the notes as files, in the state that was last fetched: a cache in the form of a
home. A thread fills the folder of a large space. Until it is full, calls are answered from the
notes that are there, with a remark on the progress.

The journal is a copy, with only the texts that this machine has needed. The log of reads has the
sums of all replicas, and the reads that the database does not know yet. The files that all replicas
share are copied, too.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import stat
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass
from heapq import merge
from itertools import takewhile
from operator import itemgetter
from pathlib import Path
from sqlite3 import Connection
from typing import Any
from uuid import UUID, uuid4

from memoranda.clock import Clock, waits_at_most
from memoranda.errors import (
    Busy,
    DatabaseAway,
    MemorandaError,
    NotFound,
    OutsideError,
    StorageError,
)
from memoranda.ledger.access_rows import AccessRows
from memoranda.ledger.change import FIRST_OF_MACHINE, ORIGINS, Change, Touched, is_of_machine
from memoranda.ledger.database import LedgerDatabase, LedgerRefused
from memoranda.ledger.history import ABOVE_ALL_NUMBERS, History, origins_change
from memoranda.ledger.postgres.space_database import SpaceDatabase
from memoranda.ledger.postgres.space_rows import FileRow
from memoranda.ledger.reads import ReadRow, Reads, sum_of
from memoranda.ledger.review_rows import ReviewRows, is_row
from memoranda.sources.base import sha256
from memoranda.sources.files import (
    ThreadLock,
    lock_file,
    lock_owner,
    make_private,
    put_derived,
    write_file,
)
from memoranda.sources.layout import PRIVATE, Layout, share
from memoranda.sources.path_guard import clean
from memoranda.sources.step import StepKind
from memoranda.sources.walking import walk

Key = tuple[str, str]
"""(project, path)."""
_README = """This folder is a copy.

The notes of this memory are in a PostgreSQL database; here are copies of them, a copy of the journal and the index,
so that reading and searching are fast. Do not edit anything here: changes made by hand reach nobody and are undone.
Edit by the command (`memory edit`) or your agents. Everything here may be deleted while nothing uses it; it is made
anew. Only the history of JSON files of entries used in place, which no other machine has, would be gone.
"""
# An exchange of reads waits this many seconds for the lock of the folder.
_LOCK_SECONDS = 0.25
# Seconds between two exchanges of reads with the database. Without a pause, every read here would
# be a write in the database.
_EXCHANGE_SECONDS = 10.0
# (process, root, address, space) -> shared files. The process is part of the key, because a forked
# process must not use the connections of its parent.
_ATTACHED: dict[tuple[int, Path, str, str], SharedFiles] = {}


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """The state of the space that the folder is a complete copy of.

    The number of the last change is not a part of it: the journal has that.

    id: identifies the space.
    epoch: a number that grows when earlier changes of the space are revised or purged.
    files: a number that grows when a shared file of the space changes.
    boot: identifies the start of this machine after which the copy was made.
    """

    id: str
    epoch: int
    files: int
    boot: str


class ReplicaFolder:
    """The folder of a replica, which has the files, folders and links of a space.

    Only the holder of the folder's lock may use it.
    """

    review_rows: ReviewRows
    """The answers and requests. In the space they are files, and here they are rows of the ledger."""

    def __init__(self, layout: Layout):
        self._layout = layout
        self._built_in = layout.built_in
        self._state_file = layout.replica
        self._incoming = layout.incoming
        self._temporary_file = layout.incoming / "new"
        # Folders that `_make_folder` has checked or made since `begin`
        self._made_folders: set[Path] = set()
        make_private(layout.private)
        put_derived(layout.root / "README.txt", _README.encode())

    def state(self) -> ReplicaState | None:
        """Return the state that the folder is a complete copy of, None if it is incomplete."""
        try:
            return ReplicaState(**json.loads(self._state_file.read_bytes()))
        except (FileNotFoundError, ValueError, TypeError):
            return None

    def set_state(self, state: ReplicaState | None) -> None:
        """Record the state that the folder is a copy of.

        None means it is incomplete. Raises StorageError.
        """
        if state is None:
            self._state_file.unlink(missing_ok=True)
        else:
            put_derived(self._state_file, json.dumps(asdict(state)).encode())

    def root(self, project: str) -> Path:
        """Return the folder of a project. Raises StorageError for an invalid name of a project."""
        if project == PRIVATE:
            return self._layout.private
        built_in_root = self._built_in.get(project)
        if built_in_root is not None:
            return built_in_root
        if "/" in project or project in ("", ".", ".."):
            raise StorageError(project, "it is no name of a project")
        return self._layout.root / "projects" / project

    def place(self, project: str, path: str) -> Path:
        """Return the absolute path of a row's file. Raises StorageError for a path that leads out."""
        try:
            is_clean = path != "" and clean(path, project, hidden=True) == path
        except OutsideError as error:
            raise StorageError(path, str(error)) from None
        # Of the private folder, only these files are shared by the machines.
        private_files = (self._layout.review.name, self._layout.requests.name)
        is_allowed = project != PRIVATE or path in private_files
        if not (is_clean and is_allowed):
            raise StorageError(path, str(OutsideError(path, project)))
        return self.root(project) / path

    def begin(self) -> None:
        """Prepare for `put`: make the folder of its temporary file."""
        self._made_folders.clear()
        make_private(self._incoming)
        # A process that was killed may have left the file
        self._temporary_file.unlink(missing_ok=True)

    def put(self, row: FileRow) -> None:
        """Write the file, folder or link of a row.

        An answer to a question of `memory review`, or a request of an agent, is also such a row. It
        is stored in the ledger.

        row: the row, as the database has it.

        Raises StorageError, OSError.
        """
        if is_row(row.project, row.path):
            self.review_rows.store(row.path, bytes(row.body or b""))
            return
        place = self.place(row.project, row.path)
        if row.kind == "folder":
            self._make_folder(place)
            return
        self._make_folder(place.parent)

        # A folder that is in the way of a file is removed.
        with suppress(FileNotFoundError):
            if stat.S_ISDIR(os.lstat(place).st_mode):
                shutil.rmtree(place)

        # It is written elsewhere first, so that a reader sees the old file or the new one whole.
        temporary_file = self._temporary_file
        if row.kind == "link":
            os.symlink(row.link or "", temporary_file)
        else:
            data = bytes(row.body or b"")
            write_file(str(temporary_file), data, mode=row.mode or 0o600, durable=False)
            if row.changed_ns is not None:
                os.utime(temporary_file, ns=(row.changed_ns, row.changed_ns))
        os.replace(temporary_file, place)

    def _make_folder(self, folder: Path) -> None:
        """Make a folder and the folders above it, in place of any link or file there."""
        if folder in self._made_folders:
            return
        if folder != self._layout.root:
            self._make_folder(folder.parent)
            if folder.is_symlink() or not folder.is_dir():
                with suppress(FileNotFoundError):
                    os.unlink(folder)
                os.mkdir(folder, 0o700)
        self._made_folders.add(folder)

    def remove(self, project: str, path: str) -> None:
        """Remove a file or link, or a folder that is empty. Raises StorageError, OSError."""
        if is_row(project, path):
            self.review_rows.store(path, data=None)
            return
        place = self.place(project, path)
        with suppress(FileNotFoundError, NotADirectoryError):
            if stat.S_ISDIR(os.lstat(place).st_mode):
                with suppress(OSError):
                    os.rmdir(place)
            else:
                os.unlink(place)

    def emptied_by(self, touched: Touched, places_there: Collection[Key]) -> Iterator[Key]:
        """Yield the places that a step emptied, contents of a folder before the folder.

        touched: the step.
        places_there: places that the space has now, which are left out.
        """
        if touched.do not in (
            StepKind.REMOVE,
            StepKind.UNLINK,
            StepKind.RMDIR,
            StepKind.MOVE,
            StepKind.SET,
        ):
            return
        if touched.moves_folder:
            # It took everything in it along
            for key in reversed(list(self._below(touched.project, touched.path))):
                if key not in places_there:
                    yield key
        if (touched.project, touched.path) not in places_there:
            yield touched.project, touched.path

    def _below(self, project: str, path: str) -> Iterator[Key]:
        """Yield the places of everything below a folder of a project, parents first.

        path: the folder. "" is the project itself.
        """
        root = self.root(project)
        for folder, folders, names in walk(root / path if path else root):
            path_of_folder = os.path.relpath(folder, root)
            prefix = "" if path_of_folder == "." else f"{path_of_folder}/"
            for name in (*folders, *names):
                yield project, prefix + name

    def all_places(self) -> list[Key]:
        """Return the places of everything in all projects, parents first."""
        projects = [*self._built_in]
        projects_folder = self._layout.root / "projects"
        if projects_folder.is_dir():
            projects += sorted(os.listdir(projects_folder))
        keys: list[Key] = []
        for project in projects:
            keys += self._below(project, path="")

        private_files = (self._layout.review, self._layout.requests)
        keys += [(PRIVATE, file.name) for file in private_files if file.exists()]
        keys += [(PRIVATE, path) for path in self.review_rows.paths()]
        return keys

    def holds(self, key: Key, digest: str | None) -> bool:
        """Whether the file at a place has this SHA-256.

        key: the (project, path) of the place.
        digest: the SHA-256. If it is None, the answer is whether anything is at the place.
        """
        if is_row(*key):
            _, path = key
            data = self.review_rows.bytes_at(path)
            if data is None:
                return False
            return digest is None or sha256(data) == digest
        place = self.place(*key)
        try:
            if digest is None:
                return os.path.lexists(place)
            return stat.S_ISREG(os.lstat(place).st_mode) and sha256(place.read_bytes()) == digest
        except OSError:
            return False


class ColdStart:
    """Fills a new replica in a thread, while calls are answered from the notes that are there.

    Only one process of the machine fills the replica. It locks the file at `path`, and writes its
    progress into this file for the other processes.

    fill: fetches the notes. Its argument is a function that it must call now and then with (number
        of notes so far, number of all notes). That function returns whether to continue.
    """

    def __init__(self, path: Path, fill: Callable[[Callable[[int, int], bool]], None]):
        self._path = path
        self._fill = fill
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread that fetches the notes for the first time, unless it runs already.

        It ends immediately if another process is fetching them into the folder.
        """
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="cold-start", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        """Fetch the notes, unless another process is fetching them."""
        # After an error, the next call continues with the notes that are still missing.
        with suppress(OSError, MemorandaError):
            fd = lock_file(self._path, fcntl.LOCK_EX | fcntl.LOCK_NB)
            try:
                self._fill(lambda files_done, total: self._tell(fd, files_done, total))
            finally:
                os.ftruncate(fd, 0)
                os.close(fd)

    def _tell(self, fd: int, files_done: int, total: int) -> bool:
        """Write the progress into the locked file `fd`. Returns whether to go on.

        files_done: how many notes were fetched so far.
        total: how many there are.
        """
        os.pwrite(fd, f"{files_done:,} of {total:,}\n".encode(), 0)
        return not self._stop.is_set()

    def progress(self) -> str:
        """Return a sentence about the progress, "" if no process is filling the folder."""
        is_our_thread_alive = self._thread is not None and self._thread.is_alive()
        try:
            is_being_filled = is_our_thread_alive or lock_owner(self._path) is not None
            if not is_being_filled:
                return ""
            # The file is missing or empty until the first notes are fetched.
            numbers = self._path.read_text().strip() if self._path.exists() else ""
        except OSError:
            return ""
        return (
            f"this copy of the notes is being filled, {numbers or 0} are here; "
            "the others are not found yet"
        )

    def close(self) -> None:
        """Stop the thread. The notes that it fetched stay."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()


# The numbers of changes that the server assigns. Changes of files of this machine have higher ones.
_SHARED = range(1, FIRST_OF_MACHINE)
_OF_MACHINE = range(FIRST_OF_MACHINE, ABOVE_ALL_NUMBERS)


class ReplicaHistory(History):
    """A `History` that writes to the database first.

    Changes of files used in place are only in the ledger of this machine, because the files are
    only here. Their numbers begin with FIRST_OF_MACHINE, and `last` does not count them.

    on_revised: called after changes were revised or purged.
    """

    def __init__(
        self,
        layout: Layout,
        ledger: LedgerDatabase,
        server: SpaceDatabase,
        on_revised: Callable[[], None],
    ):
        super().__init__(layout, ledger)
        self._server = server
        self._on_revised = on_revised

    def _last_below(self, end: int) -> int:
        return super()._last_below(min(end, FIRST_OF_MACHINE))

    @property
    def last_of_machine(self) -> int:
        """The number of the latest change that touched a file of this machine only.

        Without such a change, it is the number before the first.
        """
        return max(super()._last_below(ABOVE_ALL_NUMBERS), FIRST_OF_MACHINE - 1)

    @property
    def latest_numbers(self) -> tuple[int, ...]:
        if is_of_machine(self.last_of_machine):
            return self.last, self.last_of_machine
        return (self.last,)

    def _read_back(
        self, sql: str, values: tuple[Any, ...], before: int | None = None
    ) -> Iterator[Change]:
        """Yield the changes of a query, newest first. The two series of numbers are merged by time."""
        if not is_of_machine(self.last_of_machine):
            return super()._read_back(sql, values, before)
        # Each query returns the changes below a number. All numbers of this machine are larger than
        # all shared ones, so the query for this machine ends with the shared changes. `takewhile`
        # leaves them out.
        shared_end, machine_end = self._ends(before)
        shared = super()._read_back(sql, values, shared_end)
        of_machine = takewhile(
            lambda change: is_of_machine(change.number),
            super()._read_back(sql, values, machine_end),
        )
        return merge(of_machine, shared, key=lambda change: change.time, reverse=True)

    def _ends(self, before: int | None) -> tuple[int, int]:
        """Return below which numbers the changes are that come before a change.

        The first number is for the shared changes, the second for the changes of this machine. In
        the series of the change itself, these are the smaller numbers. In the other series, they
        are the changes that were made earlier.

        before: the number of the change. None for all changes.
        """
        if before is None:
            return _SHARED.stop, _OF_MACHINE.stop
        # Of two changes of the same time, `_read_back` yields the one of this machine first, as the
        # newer one. So the shared one counts as earlier.
        is_of_this_machine = before in _OF_MACHINE
        if is_of_this_machine:
            moment = self._earliest_from(_OF_MACHINE, before)
            return self._end_at(_SHARED, "<=", moment), before
        moment = self._earliest_from(_SHARED, before)
        return before, self._end_at(_OF_MACHINE, "<", moment)

    def _earliest_from(self, series: range, number: int) -> str:
        """Return the time of the earliest change in a series, from a number on. "" without one.

        It need not be the time of the first of these changes, because the clocks of machines
        differ.

        series: the range of the numbers of the series.
        """
        sql = "select min(time) as earliest from change where number between ? and ?"
        row = self.database.row(sql, (number, series[-1]))
        assert row is not None
        return row["earliest"] or ""

    def _end_at(self, series: range, comparison: str, moment: str) -> int:
        """Return the number after the last change of a series before a moment.

        series: the range of the numbers of the series.
        comparison: `<`, or `<=` to count changes at the moment itself, too.
        moment: a time, ISO 8601 in UTC.
        """
        sql = (
            f"select max(number) as last from change where time {comparison} ? "
            "and number between ? and ?"
        )
        row = self.database.row(sql, (moment, series[0], series[-1]))
        assert row is not None
        return (row["last"] or 0) + 1

    def first_since(self, time: str) -> int | None:
        first_of_series = [self._first_since(time, series) for series in (_SHARED, _OF_MACHINE)]
        rows = [row for row in first_of_series if row is not None]
        first = min(rows, key=itemgetter("time"), default=None)
        if first is None:
            return None
        return int(first["number"])

    def replace_all(self, changes: Iterable[Change]) -> None:
        """Replace the shared history by the database's, and drop texts that nothing refers to."""
        with self.database.transaction(durable=False) as connection:
            connection.execute("delete from change where number < ?", (FIRST_OF_MACHINE,))
            connection.execute("delete from step where change < ?", (FIRST_OF_MACHINE,))
            connection.execute("delete from origin")
            self.record(connection, changes)
        self.drop_texts()

    def drop_texts(self) -> None:
        """Drop the texts here that no change refers to."""
        super().sweep()

    def append(self, change: Change, *, durable: bool = True) -> None:
        """Commit a change that changes no note, with the texts kept here that it refers to.

        durable: has no effect. The database always makes changes durable.
        """
        texts: dict[str, bytes] = {}
        for touched in change.files:
            if touched.old and self.has_text(touched.old):
                texts[touched.old] = super().text(touched.old, change.path)
        self._server.append(change, texts)
        self.append_all([change])

    def text(self, digest: str, path: str) -> bytes:
        """Return the text with this SHA-256. A text that is missing or damaged here is fetched.

        path: the file that errors name.

        Raises DatabaseAway, NotFound.
        """
        try:
            return super().text(digest, path)
        except LedgerRefused:
            # Without the ledger, it is unknown whether the text is here
            raise
        except StorageError:
            # The text here is damaged
            self.forget_text(digest)
        except NotFound:
            # This machine has not needed the text before
            pass
        data = self._server.text(digest)
        if data is None or sha256(data) != digest:
            raise NotFound(path)
        self.keep_bytes(data, durable=False)
        return data

    def revise(self, revised: Mapping[int, Change], lost: Collection[tuple[str, str, str]]) -> None:
        """Replace changes in the database and here. Other replicas then fetch them.

        revised: number of a change -> the change to have in its place.
        lost: (project, path, root) of the files whose texts lose their origin.
        """
        shared_changes = [change for change in revised.values() if not is_of_machine(change.number)]
        if not shared_changes and not lost:
            super().revise(revised, lost)
            return
        # Change 0 has the origins of texts whose changes were purged. It is revised, too.
        for origins in self._origins():
            origins.files = [touched for touched in origins.files if touched.place not in lost]
            shared_changes.append(origins)
        self._server.revise(shared_changes)
        super().revise(revised, lost)
        self._on_revised()

    def follow_revised(self, revised: Sequence[Change], oldest: int) -> None:
        """Take over changes that another machine revised or purged in the database.

        revised: the revised changes. Each replaces the change here that has its number.
        oldest: the number of the oldest change that the database still has. Older ones are deleted.
        """
        # The deleted changes may include the last one, which is cached.
        self._last = None
        with self.database.transaction(durable=False) as connection:
            connection.execute("delete from step where change < ?", (oldest,))
            connection.execute("delete from change where number < ?", (oldest,))
            for change in revised:
                if change.verb == ORIGINS:
                    # This change has all origins, and `record` fills the table with them again.
                    connection.execute("delete from origin")
                connection.execute("delete from step where change = ?", (change.number,))
                connection.execute("delete from change where number = ?", (change.number,))
            self.record(connection, revised)

    def count(self) -> int:
        """Return how many changes of the database this replica has."""
        sql = "select count(*) as count from change where number < ?"
        row = self.database.row(sql, (FIRST_OF_MACHINE,))
        assert row is not None
        return int(row["count"])

    def _forget(self, numbers: Collection[int], origins: Sequence[Touched]) -> None:
        """Delete changes in the database and here.

        numbers: the numbers of the changes.
        origins: the steps that say where remaining texts come from. They are kept.
        """
        shared_numbers = [number for number in numbers if not is_of_machine(number)]
        if not shared_numbers:
            # Lines of files have no origins, so nothing changes for other machines.
            super()._forget(numbers, origins)
            return
        # In the database, change 0 has all origins: the earlier ones and the new ones
        all_origins: list[Touched] = []
        for change_zero in self._origins():
            all_origins += change_zero.files
        all_origins += origins
        revised: list[Change] = []
        if all_origins:
            revised.append(origins_change(all_origins))
        self._server.revise(revised, shared_numbers)
        super()._forget(numbers, origins)
        self._on_revised()

    def sweep(self) -> int:
        """Remove unneeded texts, in the database and here.

        Returns how many were removed in the database.
        """
        unreferenced = self._server.sweep(self.replaced())
        super().sweep()
        return unreferenced


class ReplicaReads(Reads):
    """The `Reads` of a replica: the database's counts at the last exchange, and reads made here since.

    An exchange sends the reads made here, and fetches the sums of all machines. Reads are sent
    under a mark, a random number. The database remembers the marks that it has counted. So after a
    crash, reads are sent again only if their mark is new there: none is counted twice.
    """

    def __init__(
        self,
        database: LedgerDatabase,
        clock: Clock,
        server: SpaceDatabase,
        lock: Callable[[], AbstractContextManager[object]],
    ):
        super().__init__(database, clock)
        self._server = server
        self._lock = lock
        # The sums of all machines, as of the last exchange
        self._totals: dict[str, ReadRow] = {}
        # Before this time of `time.monotonic` there is no further exchange
        self._next_exchange = 0.0

    def exchange(self, *, now: bool = False) -> None:
        """Send the reads made here to the database, and fetch the sums of all machines.

        This happens at most every ten seconds, unless `now`. If the database cannot be reached, the
        reads wait for the next exchange.
        """
        if now or time.monotonic() >= self._next_exchange:
            with suppress(OSError, Busy, StorageError), waits_at_most(_LOCK_SECONDS):
                self._exchange()
            self._next_exchange = time.monotonic() + _EXCHANGE_SECONDS

    def _exchange(self) -> None:
        """Send the reads made here and fetch the sums of all machines.

        Raises DatabaseAway, Busy.
        """
        with self._lock():
            self.flush()
            # First the reads that an interrupted exchange left, then the new ones
            self._send_marked()
            if self._mark_rows():
                self._send_marked()
        rows = self._server.reads()
        self._totals = {key: ReadRow(count, read_at=0, used_at=used) for key, count, used in rows}

    def _mark_rows(self) -> bool:
        """Give all reads made here a new mark. Returns False if nothing was read here."""
        with self._database.transaction() as connection:
            connection.execute(
                "insert into sent_read (mark, key, count, used_at, restarted) "
                "select ?, key, count, used_at, restarted from read",
                (str(uuid4()),),
            )
            return connection.execute("delete from read").rowcount > 0

    def _send_marked(self) -> None:
        """Send the reads of every mark that the database has not counted yet."""
        for row in self._database.rows("select distinct mark from sent_read"):
            mark = UUID(row["mark"])
            if not self._server.has_counted(mark):
                self._send(mark)
            with self._database.transaction() as connection:
                connection.execute("delete from sent_read where mark = ?", (row["mark"],))
            self._server.forget_mark(mark)

    def _send(self, mark: UUID) -> None:
        """Send the reads under one mark to the database."""
        restarted_keys: list[str] = []
        counts: dict[str, int] = {}
        last_uses: dict[str, int] = {}
        for row in self._database.rows("select * from sent_read where mark = ?", (str(mark),)):
            key = row["key"]
            counts[key] = row["count"]
            last_uses[key] = row["used_at"]
            if row["restarted"]:
                restarted_keys.append(key)
        self._server.add_reads(mark, restarted_keys, counts, last_uses)

    def _forget_restarted(self, connection: Connection) -> None:
        # The restart is kept until the next exchange, since the database must learn of it.
        return

    def rows(self, keys: Collection[str] | None = None) -> dict[str, ReadRow]:
        """Return the reads by key: the sums of all machines and the reads made here since.

        keys: the keys to return. None for all.
        """
        # Reads that an exchange is sending, and reads that no exchange has sent. They are added in
        # the order in which they were made.
        marked_rows = self._database.rows("select key, count, used_at, restarted from sent_read")
        reads_since = [
            (row["key"], ReadRow(row["count"], 0, row["used_at"], row["restarted"]))
            for row in marked_rows
            if keys is None or row["key"] in keys
        ]
        reads_since += super().rows(keys).items()

        rows = {key: row for key, row in self._totals.items() if keys is None or key in keys}
        for key, reads in reads_since:
            rows[key] = sum_of(rows.get(key, ReadRow()), reads)
        return rows

    def rows_to_fold(self) -> dict[str, ReadRow]:
        """Return the reads of all machines by key, after an exchange. Raises DatabaseAway, Busy."""
        self._exchange()
        return {key: row for key, row in self._totals.items() if row != ReadRow()}

    def restart(self, *keys: str) -> None:
        """Let the counts of these keys begin again from 0."""
        super().restart(*keys)
        for key in keys:
            self._totals.pop(key, None)

    def fold(self, folded: Mapping[str, ReadRow]) -> None:
        """Subtract the reads that a committed change added to headers of notes.

        folded: the reads to subtract, by key.
        """
        for key, row in folded.items():
            total = self._totals.get(key, ReadRow())
            times = max(0, total.times - row.times)
            # The header has the time of use now, too. A later use is not in the header yet.
            is_used_since = total.used_at > row.used_at
            used = total.used_at if is_used_since else 0
            self._totals[key] = ReadRow(times, read_at=0, used_at=used)

    def forget(self, keys: Iterable[str]) -> None:
        """Delete all reads of these keys, in the database and here."""
        forgotten = [*keys]
        self._server.forget_reads(forgotten)
        super().forget(forgotten)
        for key in forgotten:
            self._totals.pop(key, None)

    def stamp(self) -> tuple[int, int]:
        reads, latest = super().stamp()
        return reads + sum(row.times for row in self._totals.values()), latest

    def close(self) -> None:
        """Send the reads made here, if the database can be reached."""
        with suppress(StorageError):
            if self._database.row("select 1 from read limit 1") is not None:
                self.exchange(now=True)
        super().close()


class SharedFiles:
    """The files of a home that are the same on all machines, such as its configuration.

    They are copies of files in a space of a database. Any thread may use this object. It has its
    own connection.

    url, space: the address of the database, and the name of the space in it.
    """

    def __init__(self, layout: Layout, url: str, space: str):
        self._layout = layout
        self._places = {
            path.name: path
            for path in (layout.config, layout.access, layout.dream_report, layout.erasing)
        }
        self._access: AccessRows | None = None
        self._url = url
        self.space = space
        self._database = SpaceDatabase(url, space)
        self._thread_lock = ThreadLock()
        # The version of the shared files that was fetched last, -1 before the first time
        self._version = -1

    def hand_over(self) -> SpaceDatabase:
        """Give away the connection, so that the home that is opened next can use it.

        This object makes a new connection when it needs one.
        """
        with self._thread_lock:
            database = self._database
            self._database = SpaceDatabase(self._url, self.space)
            return database

    def close(self) -> None:
        """End the connections."""
        with self._thread_lock:
            self._database.close()
            if self._access is not None:
                self._access.database.close()
                self._access = None

    def follow(self) -> None:
        """Bring the copies up to date, if the database can be reached."""
        with self._thread_lock, suppress(DatabaseAway):
            self._follow()

    def _follow(self) -> None:
        """Fetch the shared files if they changed in the database. Raises DatabaseAway."""
        if self._version < 0:
            state = self._database.prepare()
        else:
            state = self._database.newest()
        if state.files != self._version:
            self.show(self._database.shared_files())
            self._version = state.files

    def show(self, texts_by_name: Mapping[str, bytes]) -> None:
        """Replace the copies of the shared files. Raises StorageError.

        texts_by_name: name -> bytes. A shared file that is missing here is removed.
        """
        for name, path in self._places.items():
            self._show_one(path, texts_by_name.get(name))

    def _show_one(self, path: Path, data: bytes | None) -> None:
        """Replace the copy of one shared file. None removes it.

        The server keeps who may do what as a file. Here it is not a file, but rows of the ledger.
        """
        if path != self._layout.access:
            _put_file(path, data)
            return
        if self._read(path) != data:
            self._access_rows().load(data)

    def _access_rows(self) -> AccessRows:
        """Return the access rows of the ledger. All replicas share them as one file."""
        if self._access is None:
            make_private(self._layout.private)
            self._access = AccessRows(LedgerDatabase(self._layout.ledger))
        return self._access

    def _read(self, path: Path) -> bytes | None:
        """Return the content of this machine's copy of a shared file. None if there is no copy."""
        if path == self._layout.access:
            return self._access_rows().dump()
        return _bytes_of(path)

    @contextmanager
    def changing(self, path: Path) -> Iterator[None]:
        """Let the block change the copy of a shared file, then change it for all replicas.

        If the block or the database fails, the copy is restored.
        """
        # Other files belong to this machine alone.
        if path not in self._places.values():
            yield
            return
        with self._thread_lock, self._database.sharing():
            self._follow()
            before = self._read(path)
            try:
                yield
                after = self._read(path)
                if after != before:
                    self._database.put_shared(path.name, after)
            except BaseException:
                self._show_one(path, before)
                raise


def attach(root: Path, url: str, space: str) -> SharedFiles:
    """Let this process use the space's shared files for the home at `root`.

    A second call returns the same object.
    """
    key = (os.getpid(), root, url, space)
    if key not in _ATTACHED:
        _ATTACHED[key] = SharedFiles(Layout(root), url, space)
    share(root, _ATTACHED[key])
    return _ATTACHED[key]


def _bytes_of(path: Path) -> bytes | None:
    """Return the bytes of a file. None if it does not exist."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _put_file(path: Path, data: bytes | None) -> None:
    """Write a file. None removes it."""
    if data is not None:
        make_private(path.parent)
        put_derived(path, data)
    elif path.exists():
        os.unlink(path)
