"""Syncing the files behind the changes that were acknowledged.

A change is durable as soon as the ledger is. Its files are synced within a second, or 64 changes,
and when the home is closed. Then the ledger forgets the texts needed to write them again.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterable, Sequence

from memoranda.errors import MemorandaError
from memoranda.sources.step import Step, StepKind

# Files are synced after this number of changes, or after this number of seconds.
CHANGES = 64
SECONDS = 0.8
PARALLEL_SYNCS = 16
"""How many threads sync files, from this number of files on: a disk joins waits that come together.
"""
# The thread ends after it found nothing to do this often in a row.
_MAX_IDLE_ROUNDS = 20
# The system's errors for a path that is no longer the same file or folder. It is skipped.
_PATH_ERRORS = {
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EACCES,
    errno.EPERM,
    errno.EINVAL,
    errno.ENXIO,
    errno.ELOOP,
}


class FileSync:
    """Syncs files in a thread. Thread-safe.

    on_synced: called with the numbers of the changes whose files are safe on the disk now.
    on_refused: called with the numbers of the changes whose files the disk refused, and the error.
    """

    def __init__(
        self,
        on_synced: Callable[[Sequence[int]], None],
        on_refused: Callable[[Sequence[int], str], None],
    ):
        self._on_synced = on_synced
        self._on_refused = on_refused
        # Held while the fields below are read or written
        self._guard = threading.Lock()
        # Held during a whole sync
        self._syncing = threading.Lock()
        # Changes that are not synced yet, and the absolute paths of their files and folders
        self._numbers: list[int] = []
        self._places: set[str] = set()
        self._wake = threading.Event()
        self._is_closed = False
        self._thread: threading.Thread | None = None
        # The process that started the thread: after a fork, the new process has none
        self._process = 0

    def add(self, numbers: Iterable[int], places: Iterable[str]) -> None:
        """Have changes synced soon.

        numbers: the changes.
        places: the absolute paths of their files and folders (`places_of`).
        """
        with self._guard:
            self._numbers += numbers
            self._places.update(places)
            is_full = len(self._numbers) >= CHANGES
            if not self._is_running():
                self._process = os.getpid()
                self._wake = threading.Event()
                self._thread = threading.Thread(target=self._run, name="file-sync", daemon=True)
                self._thread.start()
        if is_full:
            self._wake.set()

    def _is_running(self) -> bool:
        """Whether this process has a thread that syncs. A process that was forked has none."""
        is_of_this_process = self._process == os.getpid()
        return is_of_this_process and self._thread is not None and self._thread.is_alive()

    def _run(self) -> None:
        """Sync the added files, until the object is closed or nothing was added for a while."""
        idle_rounds = 0
        while not self._is_closed:
            self._wake.wait(SECONDS)
            self._wake.clear()
            if self.sync():
                idle_rounds = 0
                continue
            idle_rounds += 1
            if idle_rounds < _MAX_IDLE_ROUNDS:
                continue
            with self._guard:
                # If a change was added just now, `add` has relied on this thread
                if not self._numbers:
                    self._thread = None
                    return
            idle_rounds = 0

    def sync(self) -> bool:
        """Sync all added changes now. Returns whether there were any.

        If the disk refuses, `on_refused` is called: the ledger keeps the changes as unsynced.
        """
        with self._syncing:
            with self._guard:
                numbers = self._numbers
                places = self._places
                self._numbers = []
                self._places = set()
            if not numbers:
                return False
            try:
                sync_places(places)
                self._on_synced(numbers)
            except (OSError, MemorandaError) as error:
                self._on_refused(numbers, str(error))
            return True

    def close(self) -> None:
        """Sync the remaining files, and end the thread."""
        self._is_closed = True
        self._wake.set()
        self.sync()


def places_of(steps: Iterable[Step]) -> set[str]:
    """Return the absolute paths of the files and folders that these steps changed.

    For a PUT of `/home/notes/a.md`: that file and the folder `/home/notes`.
    """
    places = set[str]()
    for step in steps:
        # A row of the ledger is no file. A file used in place is synced as it is written.
        if step.do in (StepKind.SET, StepKind.LINES):
            continue
        place = os.path.join(step.root, step.path)
        places.add(os.path.dirname(place))
        if step.do == StepKind.PUT:
            places.add(place)
        elif step.do == StepKind.MOVE:
            places.add(os.path.dirname(os.path.join(step.root, step.to)))
    return places


def sync_places(places: Iterable[str]) -> None:
    """Sync files and folders. Those that are gone are skipped. Raises OSError."""
    paths = sorted(places)
    if len(paths) < PARALLEL_SYNCS:
        _sync_part(paths)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(PARALLEL_SYNCS) as threads:
        parts = [paths[number::PARALLEL_SYNCS] for number in range(PARALLEL_SYNCS)]
        # Reading the results waits for the threads, and raises their errors
        for _ in threads.map(_sync_part, parts):
            continue


def _sync_part(paths: Iterable[str]) -> None:
    """Sync files and folders to the disk. Those that are gone are skipped. Raises OSError."""
    for path in paths:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            if error.errno in _PATH_ERRORS:
                continue
            raise
        try:
            os.fsync(fd)
        except OSError as error:
            if error.errno not in _PATH_ERRORS:
                raise
        finally:
            os.close(fd)
