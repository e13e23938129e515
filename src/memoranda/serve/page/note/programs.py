"""Makes addresses that open a note in the program with which its folder is edited.

Obsidian, Logseq and Visual Studio Code (for Foam, Dendron and zk) open a file by an address such as
`obsidian://open?path=…`. An address `file://…` opens it in the system's program for such files.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from memoranda.note.names import stem

PROGRAM_SCHEMES = frozenset(("obsidian", "logseq", "vscode", "zotero"))
"""The schemes of addresses in a note that the page shows as links, in addition to the web's."""
# Programs that are extensions of Visual Studio Code.
_EDITOR_EXTENSIONS = ("Foam", "Dendron", "zk")
_FILE = "file"
_LOCAL = ("127.0.0.1", "localhost", "::1")


class Opening(NamedTuple):
    """A program that can open a note, and the address for that."""

    program: str
    address: str


def is_local(host: str | None) -> bool:
    """Whether a page at this host is read on the machine of the notes.

    host: the host in the address of the page. False if it is None, as in an address without a host.
    """
    return host in _LOCAL


def openings(programs: list[str], root: str, path: str) -> list[Opening]:
    """Return the ways to open a note: in each program of its folder, and as a file.

    programs: the programs whose files are in the folder: "Obsidian", "Logseq", "Foam", …
    root: the folder.
    path: the path of the note in the folder.
    """
    file = str(PurePosixPath(root, path))
    ways = []
    if "Obsidian" in programs:
        ways.append(Opening("Obsidian", f"obsidian://open?path={quote(file, safe='')}"))
    if "Logseq" in programs:
        graph = quote(PurePosixPath(root).name, safe="")
        page = quote(_page_of_logseq(path), safe="")
        ways.append(Opening("Logseq", f"logseq://graph/{graph}?page={page}"))
    if any(program in programs for program in _EDITOR_EXTENSIONS):
        ways.append(Opening("VS Code", f"vscode://file{quote(file)}"))
    ways.append(Opening(_FILE, f"file://{quote(file)}"))
    return ways


def _page_of_logseq(path: str) -> str:
    """Return the name of a page in Logseq: `work___plan.md` gives `work/plan`."""
    return stem(PurePosixPath(path).name).replace("___", "/")


def is_program_address(address: str) -> bool:
    """Whether an address opens a program of PROGRAM_SCHEMES."""
    try:
        return urlsplit(address).scheme.lower() in PROGRAM_SCHEMES
    except ValueError:
        return False
