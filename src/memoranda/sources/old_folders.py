"""Memories that an older program kept in two folders of the home, beside the categories.

The `memory` command that contract 001 describes had no categories at first: its memories were in
`short-term` and `long-term`. It still reads them there, so a home may have some. Here these folders
are in the project of memories, where each file goes to its category when it is next written.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from memoranda.note.model import OLD_FOLDERS
from memoranda.text.pattern import lazy_pattern

# The beginning of a memory's file. A file without it may be anything.
_MEMORY_HEADER = lazy_pattern(r"---\n(?:.*\n)*?id:")
# The header keys before `id` are short.
_READ_CHARACTERS = 1000


def adopt(root: Path, categories: Path) -> None:
    """Move the memories of the two folders into the folders of that name in `categories`.

    root: the folder of the home.
    categories: the folder of the project of memories.

    The bytes of a file stay, and so does its name, unless another file has it. Other files
    stay where they are. If the disk cannot be written, nothing is moved or raised.
    """
    for name in OLD_FOLDERS:
        folder = root / name
        # Hardly any home has these folders. A link may lead anywhere.
        if not os.path.isdir(folder) or os.path.islink(folder):
            continue
        with suppress(OSError):
            _move_memories(folder, categories / name)
            # This fails, and changes nothing, if anything else is in the folder.
            os.rmdir(folder)


def _move_memories(folder: Path, target: Path) -> None:
    """Move the memories of a folder into another one, which is made if it is missing."""
    for file in sorted(_memories(folder)):
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A second process may have moved the file since it was listed.
        with suppress(FileNotFoundError):
            os.rename(file, _free_path(target, file))


def _memories(folder: Path) -> Iterator[Path]:
    """Yield the memories of a folder. The older program made no folders in it."""
    for file in folder.glob("*.md"):
        if file.is_symlink() or not file.is_file():
            continue
        with open(file, encoding="utf-8", errors="replace") as opened:
            if _MEMORY_HEADER.match(opened.read(_READ_CHARACTERS)):
                yield file


def _free_path(folder: Path, file: Path) -> Path:
    """Return a path for a file in another folder: with its name, or with `-2` and so on behind it."""
    path = folder / file.name
    number = 2
    while os.path.lexists(path):
        path = folder / f"{file.stem}-{number}{file.suffix}"
        number += 1
    return path
