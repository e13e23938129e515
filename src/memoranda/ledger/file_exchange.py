"""Putting a new file in place of an old one without burying what somebody just saved there.

An editor may save between the moment a file was looked at and the moment it is replaced. So the two
files are exchanged in one call of the system, and the caller looks at what came out. Where the
system or the file system cannot exchange, the old file is taken out first, then the new one is put
in: whatever anybody saved is always in one of the two places.
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
_TAKEN_OUT = "-out"

Rename = Callable[[int, bytes, int, bytes, int], int]


class Entry(NamedTuple):
    """A name in an open folder."""

    folder: int
    name: str


@cache
def _system_call() -> Rename | None:
    """The call of the C library that renames with flags, or None."""
    # 4 ms, and a note that is new needs none of it
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


def exchange(new: Entry, place: Entry) -> None:
    """Put the file `new` at `place`, and the file from `place` under the name of `new`.

    Raises OSError; FileNotFoundError if `place` is empty. If the system cannot exchange and
    somebody saves a file at `place` in between, that file stays and FileExistsError is raised.
    """
    rename = _system_call()
    if rename is not None:
        names = os.fsencode(new.name), os.fsencode(place.name)
        number = rename(new.folder, names[0], place.folder, names[1], _EXCHANGE)
        if number == 0:
            return
        if number not in _NO_EXCHANGE:
            raise OSError(number, os.strerror(number), place.name)
    exchange_by_steps(new, place)


def exchange_by_steps(new: Entry, place: Entry) -> None:
    """Exchange two files like `exchange`, with plain renames.

    The name is free for a moment in between.
    """
    out = Entry(new.folder, f"{new.name}{_TAKEN_OUT}")
    _rename(place, out)
    try:
        put_new(new, place)
    except FileExistsError:
        # A newer file is there: what was taken out is older than that
        _rename(out, new)
        raise
    except OSError:
        _rename(out, place)
        raise
    _rename(out, new)


def put_new(new: Entry, place: Entry) -> bool:
    """Give the file `new` the name `place`, which must be free. Returns whether its old name is
    gone. Raises FileExistsError, OSError.
    """
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
    try:
        os.lstat(place.name, dir_fd=place.folder)
    except FileNotFoundError:
        _rename(new, place)
        return
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), place.name)


def _rename(old: Entry, new: Entry) -> None:
    os.rename(old.name, new.name, src_dir_fd=old.folder, dst_dir_fd=new.folder)
