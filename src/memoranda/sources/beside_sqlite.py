"""Reads the files of an SQLite database as bytes while SQLite may have them open.

A process that closes any descriptor of a file loses all its POSIX locks on that file, also those
that SQLite took. Another process may then delete the write-ahead log below open connections. So a
descriptor of such a file is opened once and stays open until the file itself was deleted.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

from memoranda.sources.files import open_own

_ENDINGS = (".db", ".db-wal", ".db-shm", ".db-journal")
# Bytes read at once.
_PIECE_BYTES = 16 << 20

_mutex = threading.Lock()
_descriptors: dict[tuple[int, int], int] = {}
"""By device and inode."""


def is_of_sqlite(path: str) -> bool:
    """Whether a name is of a database file, or of a file that SQLite keeps beside one.

    `ledger.db` and `ledger.db-wal` are.
    """
    return path.endswith(_ENDINGS)


def pieces(path: str, overlap: int) -> Iterator[bytes]:
    """Yield a file in pieces of some megabytes. Raises OSError.

    overlap: the number of bytes that a piece repeats from the end of the piece before. So a word
        that is searched for is never cut in two.
    """
    descriptor = _descriptor_of(path)
    position = 0
    while True:
        start = max(0, position - overlap)
        piece = os.pread(descriptor, position - start + _PIECE_BYTES, start)
        end = start + len(piece)
        if end <= position:
            return
        yield piece
        position = end


def _descriptor_of(path: str) -> int:
    """Return the open descriptor of the file at `path`; open it the first time. Raises OSError."""
    with _mutex:
        _close_deleted()
        status = os.stat(path, follow_symlinks=False)
        key = (status.st_dev, status.st_ino)
        if key not in _descriptors:
            descriptor = open_own(path, os.O_RDONLY | os.O_NOFOLLOW)
            opened = os.fstat(descriptor)
            # Another file may be at the path by now.
            key = (opened.st_dev, opened.st_ino)
            _descriptors[key] = descriptor
        return _descriptors[key]


def _close_deleted() -> None:
    """Close the descriptors of deleted files: nobody can open those, so nobody needs their locks."""
    for key, descriptor in list(_descriptors.items()):
        if os.fstat(descriptor).st_nlink == 0:
            os.close(_descriptors.pop(key))
