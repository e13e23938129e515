"""The files that all replicas of a space share, and their copies in a replica folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from commonplace.errors import DatabaseAway
from commonplace.store.files import ThreadLock, make_private, put_derived
from commonplace.store.layout import Layout, share
from commonplace.store.postgres.space_database import SpaceDatabase

_ATTACHED: dict[tuple[int, Path, str, str], SharedFiles] = {}
"""By process (one that was forked must not use these connections), root, address and space."""


class SharedFiles:
    """The shared files of the space at `url`. Thread-safe; the connection is one of its own."""

    def __init__(self, layout: Layout, url: str, space: str):
        self._places = {
            each.name: each for each in (layout.config, layout.access, layout.dream_report, layout.erasing)
        }  # fmt: skip
        self._url, self.space = url, space
        self._database = SpaceDatabase(url, space)
        self._threads = ThreadLock()
        self._seen = -1

    def hand_over(self) -> SpaceDatabase:
        """The connection used so far, for the home that is opened next; another one is made when it is needed."""
        with self._threads:
            given, self._database = self._database, SpaceDatabase(self._url, self.space)
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
        state = self._database.prepare() if self._seen < 0 else self._database.newest()
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
        if path not in self._places.values():  # the configuration of this machine
            yield
            return
        with self._threads, self._database.sharing():
            self._follow()
            before = _read(path)
            try:
                yield
                if (after := _read(path)) != before:
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
