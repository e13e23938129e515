"""The steps an edit of notes is turned into by their source, and that the ledger carries out."""

from __future__ import annotations

from dataclasses import dataclass

from memoranda.sources.base import File, Stamp

LINES = "lines"
SET = "set"
"""The step that sets a row of the ledger: an answer of the owner, a request of an agent."""
# Only the owner reads a new note.
NEW_MODE = 0o600


@dataclass(slots=True)
class Step:
    """One planned operation on a file or folder of a project at `root`; paths are project-relative.

    `put` writes `data` (`old` None: nothing may be there); `remove` needs `old`; `move` takes a
    file or folder to `to`, which must be free; `mkdir`, `rmdir` (empty by then), `unlink` (a
    symlink), `symlink`, `set` (a row of the ledger). `old` is what the caller read: a file that
    changed since is a Conflict.
    `kept` False leaves no old text in the ledger, `is_passing` no new one. `away`: other processes
    do not know the project at `root`, so the ledger has to name it. Once a `put` is prepared,
    `etag` and `stamp` are those of the file it makes. `by`: as in `Touched`.
    """

    do: str
    project: str
    root: str
    path: str
    to: str = ""
    data: bytes | None = None
    old: File | None = None
    mode: int | None = None
    scope: str = "global"
    link: str = ""
    kept: bool = True
    is_passing: bool = False
    away: bool = False
    temp: str = ""
    temp_folder: str = ""
    etag: str | None = None
    stamp: Stamp | None = None
    by: dict[str, str] | None = None
