"""The files that a new memory bank begins with, and whether somebody has written into one.

Such a file has a title, and sections with one sentence each (bank-files.toml). It says
nothing about the person or the project.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

FOLDERS = {"global": "global", "project": "projects", "code": "code"}
"""The folder of the banks of each kind."""

MAX_UNFILLED_BYTES = 4_000
"""No unfilled file is larger, so that long texts need not be read."""


class Section(NamedTuple):
    """A section of a file: its heading, and the sentence below."""

    heading: str
    sentence: str


class BankFile(NamedTuple):
    """A file of a new bank.

    path: the path in the bank.
    title: the title. "" for the main file, whose title is the name of the bank.
    sections: the sections, in order.
    """

    path: str
    title: str
    sections: tuple[Section, ...]


@cache
def files_of(kind: str) -> tuple[BankFile, ...]:
    """Return the files that a new bank of this kind begins with, in their order."""
    # Imported here, since few homes have banks
    import tomllib

    table = tomllib.loads(Path(__file__).with_name("bank-files.toml").read_text(encoding="utf-8"))
    files: list[BankFile] = []
    for row in table[kind]:
        sections = tuple(Section(*section) for section in row["sections"])
        files.append(BankFile(row["file"], row["title"], sections))
    return tuple(files)


def composed(title: str, sections: Iterable[Section]) -> str:
    """Return the text of a file with this title and these sections."""
    body = "".join(f"\n## {heading}\n{sentence}\n" for heading, sentence in sections)
    return f"# {title}\n" + (body or "\n")


def is_unfilled(path: str, text: str) -> bool:
    """Whether a file of a bank has only what a new bank begins with.

    path: the path in the project of banks, such as `projects/tram/readme.md`.
    """
    folder, _, path_with_id = path.partition("/")
    path_in_bank = path_with_id.partition("/")[2]
    first_line = text.strip().partition("\n")[0].rstrip()
    for kind in FOLDERS:
        if FOLDERS[kind] != folder:
            continue
        for file in files_of(kind):
            # Any line that begins in this way may be the name of the bank.
            title = file.title or first_line.removeprefix("# ")
            if file.path == path_in_bank and _lines(composed(title, file.sections)) == _lines(text):
                return True
    return False


def _lines(text: str) -> list[str]:
    """Return the lines of a text without blanks around it and at their ends."""
    return [line.rstrip() for line in text.strip().splitlines()]
