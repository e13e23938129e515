"""Fill a new replica of a large space in a thread, so that calls are answered meanwhile and say how far it is."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from commonplace.errors import CommonplaceError
from commonplace.store.files import lock_file, lock_owner


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
