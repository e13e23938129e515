"""Moves a file or folder, by a copy if the system cannot rename it (EXDEV).

The system cannot rename it if the two places are on different file systems, or if a folder is in a
lower layer of overlayfs, as in containers.

The copy is made under a temporary name beside the destination, synced, and renamed into place as a
whole. Then the original is removed, file by file. A file that somebody saved there in between moves
to the new place, over the copy.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import NamedTuple

from memoranda.errors import Conflict
from memoranda.ledger.file_exchange import Entry, put_new
from memoranda.sources.base import Stamp
from memoranda.sources.files import stamp_of, stat_in
from memoranda.sources.layout import TEMP_PREFIX

# The name of an unfinished copy. One name is enough: there is one writer, and after its death the
# copy is made again from the beginning.
_COPY = f"{TEMP_PREFIX}moving"
# A link in the place of a folder or a file is never followed.
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def move(old: Entry, new: Entry) -> None:
    """Move the file or folder `old` to the free name `new`, by a copy if it cannot be renamed.

    Raises Conflict when somebody saved a file while it was copied, OSError; then nothing moved.
    """
    try:
        os.rename(old.name, new.name, src_dir_fd=old.folder, dst_dir_fd=new.folder)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _move_by_copy(old, new)


def _move_by_copy(old: Entry, new: Entry) -> None:
    """Copy `old` to `new`, then remove `old`. Raises Conflict, OSError, as `move` does."""
    copy = Entry(new.folder, _COPY)
    # A process may have died while it copied.
    _remove_all(copy)
    try:
        stamps = _copy(old, copy, path="")
        # Folders have no stamps. So only a file or link has one at the path "".
        is_file = "" in stamps
        if is_file:
            put_new(copy, new)
        else:
            os.rename(copy.name, new.name, src_dir_fd=copy.folder, dst_dir_fd=new.folder)
    except BaseException:
        _remove_all(copy)
        raise
    # The copy must be safe on the disk before the first old file is removed.
    os.fsync(new.folder)
    if not is_file:
        _remove_copied(old, new, path="", stamps=stamps)
        return

    status = stat_in(old.name, old.folder)
    is_saved_since = status is not None and stamp_of(status) != stamps[""]
    if is_saved_since:
        os.unlink(new.name, dir_fd=new.folder)
        raise Conflict(old.name, "another text", "the one that was moved")
    os.unlink(old.name, dir_fd=old.folder)


def _copy(old: Entry, new: Entry, path: str) -> dict[str, Stamp]:
    """Copy a file, link or folder with all its contents, and sync the copy.

    old: what is copied.
    new: the place of the copy, which must be free.
    path: where `old` is below the folder that is moved, "" for that folder itself.

    Returns the stamp of every file and link by its path, such as `{"/a/note.md": ...}`.
    """
    status = os.stat(old.name, dir_fd=old.folder, follow_symlinks=False)
    if stat.S_ISLNK(status.st_mode):
        os.symlink(os.readlink(old.name, dir_fd=old.folder), new.name, dir_fd=new.folder)
        return {path: stamp_of(status)}
    if not stat.S_ISDIR(status.st_mode):
        return {path: _copy_file(old, new)}
    os.mkdir(new.name, 0o700, dir_fd=new.folder)
    stamps: dict[str, Stamp] = {}
    with _opened(old, new) as folders:
        for name, old_inner, new_inner in folders.entries():
            stamps |= _copy(old_inner, new_inner, f"{path}/{name}")
        os.fchmod(folders.new, stat.S_IMODE(status.st_mode))
        os.fsync(folders.new)
    return stamps


class _OpenFolders(NamedTuple):
    """Descriptors of a folder and of its copy.

    old: the descriptor of the folder.
    new: the descriptor of the copy.
    """

    old: int
    new: int

    def entries(self) -> Iterator[tuple[str, Entry, Entry]]:
        """Yield each name in the old folder, with its entries in the old and in the new folder."""
        for name in sorted(os.listdir(self.old)):
            yield name, Entry(self.old, name), Entry(self.new, name)


@contextmanager
def _opened(old: Entry, new: Entry) -> Iterator[_OpenFolders]:
    """Open a folder and its copy, and close them at the end of the block.

    old, new: the places of the folder and of the copy.
    """
    with ExitStack() as stack:
        source = os.open(old.name, _FOLDER, dir_fd=old.folder)
        stack.callback(os.close, source)
        target = os.open(new.name, _FOLDER, dir_fd=new.folder)
        stack.callback(os.close, target)
        yield _OpenFolders(source, target)


def _copy_file(old: Entry, new: Entry) -> Stamp:
    """Copy one file with its mode and times, and sync the copy.

    old, new: the file, and the free place of the copy.

    Returns the stamp of `old` before it was copied.
    """
    from shutil import copyfileobj

    source = os.open(old.name, _FILE, dir_fd=old.folder)
    try:
        status = os.fstat(source)
        target = os.open(new.name, _NEW_FILE, 0o600, dir_fd=new.folder)
        with open(source, "rb", closefd=False) as reading, open(target, "wb") as writing:
            copyfileobj(reading, writing)
            writing.flush()
            os.fchmod(target, stat.S_IMODE(status.st_mode))
            os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
            os.fsync(target)
        return stamp_of(status)
    finally:
        os.close(source)


def _remove_copied(old: Entry, new: Entry, path: str, stamps: dict[str, Stamp]) -> None:
    """Remove the files that were copied from `old`. A file that was saved since replaces its copy.

    new: the copy of `old`.
    path: where `old` is below the folder that is moved, "" for that folder itself.
    stamps: the stamp that each file had when it was copied, by its path below that folder.
    """
    status = stat_in(old.name, old.folder)
    if status is None:
        return
    if not stat.S_ISDIR(status.st_mode):
        is_as_copied = stamps.get(path) == stamp_of(status)
        if not is_as_copied:
            # Somebody saved the file since, so their newer text is copied again.
            with suppress(FileNotFoundError):
                os.unlink(new.name, dir_fd=new.folder)
            _copy(old, new, path)
        os.unlink(old.name, dir_fd=old.folder)
        return

    # The folder may be one that somebody has made since.
    with suppress(FileExistsError):
        os.mkdir(new.name, 0o700, dir_fd=new.folder)
    with _opened(old, new) as folders:
        for name, old_inner, new_inner in folders.entries():
            _remove_copied(old_inner, new_inner, f"{path}/{name}", stamps)
    # Somebody may have put another file there just now: then the folder stays
    with suppress(OSError):
        os.rmdir(old.name, dir_fd=old.folder)


def clear_moved(old: Entry, new: Entry) -> None:
    """Finish a move across file systems: delete each old file whose copy is complete.

    The move copies first and deletes afterwards. A process may die between the two. A file below
    `old` is deleted if its copy below `new` has the same bytes, and a folder if it is empty then.

    old: the file or folder that was moved.
    new: its copy.
    """
    status = stat_in(old.name, old.folder)
    copy_status = stat_in(new.name, new.folder)
    if status is None or copy_status is None:
        return
    if stat.S_ISREG(status.st_mode) and stat.S_ISREG(copy_status.st_mode):
        # Both names may be of one file, which must stay
        is_same_file = os.path.samestat(status, copy_status)
        if not is_same_file and _bytes_of(old) == _bytes_of(new):
            os.unlink(old.name, dir_fd=old.folder)
        return
    if not (stat.S_ISDIR(status.st_mode) and stat.S_ISDIR(copy_status.st_mode)):
        return
    with _opened(old, new) as folders:
        for _, old_inner, new_inner in folders.entries():
            clear_moved(old_inner, new_inner)
    # A folder in which files are left stays
    with suppress(OSError):
        os.rmdir(old.name, dir_fd=old.folder)


def _bytes_of(entry: Entry) -> bytes:
    """Return the bytes of a file."""
    with open(os.open(entry.name, _FILE, dir_fd=entry.folder), "rb") as reading:
        return reading.read()


def _remove_all(entry: Entry) -> None:
    """Remove a file or a whole folder, if it exists."""
    status = stat_in(entry.name, entry.folder)
    if status is None:
        return
    if stat.S_ISDIR(status.st_mode):
        from shutil import rmtree

        rmtree(entry.name, dir_fd=entry.folder)
    else:
        os.unlink(entry.name, dir_fd=entry.folder)
