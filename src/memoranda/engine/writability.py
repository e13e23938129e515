"""Whether anything can be written into a home: the room on its disk, and the rights to it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

# Less room than this is none: a change of a note needs some pages in the ledger.
_LEAST_ROOM_BYTES = 128 << 10


def write_trouble(folders: Iterable[Path]) -> str:
    """Return why nothing can be written into the first such folder, in words. "" without one.

    folders: the folders of a home and of its state. A missing one is left out.
    """
    for folder in folders:
        reason = _reason(folder)
        if reason:
            return (
                f"{reason}, so no change can be made; reads go on, slowly if the index has to be "
                "made in memory"
            )
    return ""


def _reason(folder: Path) -> str:
    """Return why nothing can be written into a folder. "" if something can be."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return ""
    if disk.f_flag & os.ST_RDONLY:
        return f"the file system of {folder} is read-only"
    room = disk.f_bavail * disk.f_frsize
    # Some file systems do not say how large they are.
    if disk.f_blocks and room < _LEAST_ROOM_BYTES:
        return f"the disk of {folder} is full ({room >> 10} KB left)"
    if not os.access(folder, os.W_OK):
        return f"this user may not write into {folder}"
    return ""
