"""Keeps the files of the page in memory: templates, texts, scripts and styles.

An update replaces these files while a server runs. The code of that server knows only the files
with which it was installed, so all of them are read once, when it starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path

import memoranda

TEMPLATES = "templates"
TEXTS = "texts"
STATIC = "static"
Mark = tuple[int, int, int]
"""Tells one installation of the program from another: inode, size and time of one of its files."""


@cache
def package_files() -> Mapping[str, bytes]:
    """Return all files of the page, by name: `texts/zh.json` -> its content.

    The first call reads them from the package.
    """
    _mark_of_program()
    contents = {}
    for folder in (TEMPLATES, TEXTS, STATIC):
        for file in files(__package__).joinpath(folder).iterdir():
            contents[f"{folder}/{file.name}"] = file.read_bytes()
    return contents


def is_program_replaced() -> bool:
    """Whether an update has replaced the program since this server started."""
    return _mark_now() != _mark_of_program()


@cache
def _mark_of_program() -> Mark | None:
    """Return the mark that the program had when this server started."""
    return _mark_now()


def _mark_now() -> Mark | None:
    """Return the mark of the program that is installed now. None if no program is there."""
    try:
        status = Path(memoranda.__file__).stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def files_in(folder: str) -> Mapping[str, bytes]:
    """Return the files of one folder (TEMPLATES, TEXTS or STATIC): name -> content."""
    beginning = f"{folder}/"
    return {
        name.removeprefix(beginning): content
        for name, content in package_files().items()
        if name.startswith(beginning)
    }


def text_in(folder: str, name: str) -> str:
    """Return the text of a file in a folder (TEMPLATES, TEXTS or STATIC). Raises KeyError."""
    return package_files()[f"{folder}/{name}"].decode()
