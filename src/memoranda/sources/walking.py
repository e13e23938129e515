"""Walking through folders without recursion: however deep they are, the stack stays as it is."""

from __future__ import annotations

import os
from collections.abc import Iterator


def walk(
    root: str | os.PathLike[str], *, top_down: bool = True
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Walk a folder like `os.walk`: yields a folder, the names of its folders, and all other names.

    Unlike `os.walk` up to Python 3.11, it does not call itself for each level. Links are not
    followed, and unreadable folders are skipped. Top down, the caller may remove names from the
    list of folders, which are not walked then.
    """
    waiting = [(os.fspath(root), False)]
    while waiting:
        folder, is_walked = waiting.pop()
        if folder != os.fspath(root) and os.path.islink(folder):
            continue
        listed = _names_in(folder)
        if listed is None:
            continue
        folders, files = listed
        if top_down or is_walked:
            yield folder, folders, files
        if top_down:
            waiting += [(os.path.join(folder, name), False) for name in reversed(folders)]
        elif not is_walked:
            waiting.append((folder, True))
            waiting += [(os.path.join(folder, name), False) for name in reversed(folders)]


def _names_in(folder: str) -> tuple[list[str], list[str]] | None:
    """The names of the folders in a folder, and of everything else. None if it cannot be read."""
    folders: list[str] = []
    files: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir():
                    folders.append(entry.name)
                else:
                    files.append(entry.name)
    except OSError:
        return None
    return folders, files
