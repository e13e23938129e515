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
    if top_down:
        return _walk_down(os.fspath(root))
    return _walk_up(os.fspath(root))


def _walk_down(root: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield each folder before its contents."""
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        names = _names_in(folder)
        if names is None:
            continue
        folders, files = names
        yield folder, folders, files
        waiting += _to_walk(folder, folders)


def _walk_up(root: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield each folder after its contents."""
    # (folder, whether its contents have been yielded already). The last one is taken first.
    waiting = [(root, False)]
    while waiting:
        folder, is_walked = waiting.pop()
        # Listed a second time before it is yielded, since the caller may have removed contents.
        names = _names_in(folder)
        if names is None:
            continue
        folders, files = names
        if is_walked:
            yield folder, folders, files
            continue
        waiting.append((folder, True))
        waiting += [(inner, False) for inner in _to_walk(folder, folders)]


def _to_walk(folder: str, names: list[str]) -> list[str]:
    """Return the paths of the folders in a folder, the last first, without links to folders."""
    paths = [os.path.join(folder, name) for name in reversed(names)]
    return [path for path in paths if not os.path.islink(path)]


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
