"""Puts a new file in place of an old one without losing what somebody just saved there.

An editor may save between the moment a file was looked at and the moment it is replaced. So one
system call exchanges the two files, and the caller looks at the file that came out. Some file
systems cannot exchange. There, the old file is renamed first, and then the new one takes its place.
Either way, a saved text is always in one of the two places.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

# RENAME_EXCHANGE of Linux and RENAME_SWAP of macOS.
_EXCHANGE = 2
# A kernel or file system that cannot exchange two files answers with one of these.
_NO_EXCHANGE = {errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM, errno.ENOTTY}
# A file system that cannot link a second name answers with one of these.
_NO_LINK = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EACCES}
# Ends the temporary name of a file that was taken out and is not at its new name yet.
_TAKEN_OUT = "-out"

Rename = Callable[[int, bytes, int, bytes, int], int]
"""Renames a file with flags: (folder, name, new folder, new name, flags). Returns 0 or an errno."""


class Entry(NamedTuple):
    """A name in an open folder.

    folder: the descriptor of the folder.
    """

    folder: int
    name: str


def exchange(new: Entry, place: Entry) -> None:
    """Put the file `new` at `place`, and the file from `place` under the name of `new`.

    Raises OSError; FileNotFoundError if `place` is empty. If the system cannot exchange and
    somebody saves a file at `place` in between, that file stays and FileExistsError is raised.
    """
    rename = _rename_with_flags()
    if rename is not None:
        new_name = os.fsencode(new.name)
        old_name = os.fsencode(place.name)
        error_number = rename(new.folder, new_name, place.folder, old_name, _EXCHANGE)
        if error_number == 0:
            return
        if error_number not in _NO_EXCHANGE:
            raise OSError(error_number, os.strerror(error_number), place.name)
    exchange_by_steps(new, place)


def exchange_by_steps(new: Entry, place: Entry) -> None:
    """Exchange two files with plain renames, where the system cannot do it at once.

    For a moment no file has the name `place`. Somebody may save a new file there in this moment.

    new: the file that is put at `place`.
    place: the file that gets the name of `new`.
    """
    old_file = Entry(new.folder, f"{new.name}{_TAKEN_OUT}")
    _rename(place, old_file)
    try:
        put_new(new, place)
    except FileExistsError:
        # Somebody saved a newer file at `place`, so the old file does not return there
        _rename(old_file, new)
        raise
    except OSError:
        # The new file could not be put there, so the old one returns.
        _rename(old_file, place)
        raise
    _rename(old_file, new)


def put_new(new: Entry, place: Entry) -> bool:
    """Rename the file `new` to `place`, which must be free.

    Returns whether the old name is gone: the disk may refuse to remove it. Raises FileExistsError,
    OSError.
    """
    # A rename would replace a file at `place`. Linking the file there fails instead.
    try:
        os.link(
            new.name,
            place.name,
            src_dir_fd=new.folder,
            dst_dir_fd=place.folder,
            follow_symlinks=False,
        )
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
        _put_new_without_links(new, place)
        return True
    try:
        os.unlink(new.name, dir_fd=new.folder)
    except OSError:
        return False
    return True


def _put_new_without_links(new: Entry, place: Entry) -> None:
    """Rename `new` to `place`. Raises FileExistsError if a file is at `place`.

    A file that somebody saves there between the check and the renaming is overwritten.
    """
    try:
        os.lstat(place.name, dir_fd=place.folder)
    except FileNotFoundError:
        _rename(new, place)
        return
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), place.name)


def _rename(old: Entry, new: Entry) -> None:
    os.rename(old.name, new.name, src_dir_fd=old.folder, dst_dir_fd=new.folder)


@cache
def _rename_with_flags() -> Rename | None:
    """Return the function of the C library that renames with flags, None if it has none."""
    # Loading takes 4 ms, and a new note does not need it
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    if sys.platform == "darwin":
        name = "renameatx_np"
    else:
        name = "renameat2"
    function = getattr(library, name, None)
    if function is None:
        return None
    function.argtypes = [
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_uint,
    ]

    def rename(old_folder: int, old: bytes, new_folder: int, new: bytes, flags: int) -> int:
        if function(old_folder, old, new_folder, new, flags) == 0:
            return 0
        return ctypes.get_errno()

    return rename
