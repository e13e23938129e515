"""Walks through folders without recursion, so that even very deep ones do not exhaust the stack."""

from __future__ import annotations

import os
from collections.abc import Iterator


def walk(
    root: str | os.PathLike[str], *, top_down: bool = True
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Walk a folder like `os.walk`: yield a folder, the names of its folders, and all other names.

    Unlike `os.walk` up to Python 3.11, it does not call itself for each level. Links are not
    followed, and unreadable folders are skipped.

    top_down: whether a folder comes before its contents. Then the caller may remove names from the
        list of folders, and these are not walked.
    """
    # (folder, whether its contents have been yielded already)
    waiting = [(os.fspath(root), False)]
    while waiting:
        folder, is_walked = waiting.pop()
        # A link to a folder is listed with the folders, but not followed.
        if folder != os.fspath(root) and os.path.islink(folder):
            continue
        names = _names_in(folder)
        if names is None:
            continue
        folders, files = names
        if top_down or is_walked:
            yield folder, folders, files
        if top_down:
            waiting += [(os.path.join(folder, name), False) for name in reversed(folders)]
        # The last one is taken first: the folders in this one, and then this one again.
        elif not is_walked:
            waiting.append((folder, True))
            waiting += [(os.path.join(folder, name), False) for name in reversed(folders)]


def _names_in(folder: str) -> tuple[list[str], list[str]] | None:
    """Return the names of the folders in a folder, and all other names. None if it is unreadable."""
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
