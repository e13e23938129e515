"""Addresses that open a note in the program its folder is kept with.

Obsidian, Logseq and Visual Studio Code (for Foam, Dendron and zk) open a file from an address of
their own; any other file is opened by the program that the system has for it.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from memoranda.note.names import stem

PROGRAM_SCHEMES = frozenset(("obsidian", "logseq", "vscode", "zotero"))
"""Addresses in the text of a note that the page leads to, in addition to those of the web."""
_OF_EDITOR = ("Foam", "Dendron", "zk")
_FILE = "file"
_LOCAL = ("127.0.0.1", "localhost", "::1")


class Opening(NamedTuple):
    """A program that can open a note, and the address that opens it there."""

    program: str
    address: str


def is_local(host: str | None) -> bool:
    """Whether the page is read on the machine the notes are on."""
    return host in _LOCAL


def openings(programs: list[str], root: str, path: str) -> list[Opening]:
    """The ways to open the note at `path` of the folder `root`: in each program that keeps the
    folder, and as a file.
    """
    file = str(PurePosixPath(root, path))
    ways = []
    if "Obsidian" in programs:
        ways.append(Opening("Obsidian", f"obsidian://open?path={quote(file, safe='')}"))
    if "Logseq" in programs:
        graph = quote(PurePosixPath(root).name, safe="")
        page = quote(_page_of_logseq(path), safe="")
        ways.append(Opening("Logseq", f"logseq://graph/{graph}?page={page}"))
    if any(program in programs for program in _OF_EDITOR):
        ways.append(Opening("VS Code", f"vscode://file{quote(file)}"))
    ways.append(Opening(_FILE, f"file://{quote(file)}"))
    return ways


def _page_of_logseq(path: str) -> str:
    """The name of a page: its file's name, with `/` for `___`."""
    return stem(PurePosixPath(path).name).replace("___", "/")


def is_program_address(address: str) -> bool:
    """Whether a link in a note opens one of the programs the page leads to."""
    try:
        return urlsplit(address).scheme.lower() in PROGRAM_SCHEMES
    except ValueError:
        return False
