"""The values the ledger is made of: a change, what it did to each file, and the steps it is planned
as.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any

from memoranda.note.model import Provenance
from memoranda.store.base import File, Stamp, sha256

LINES = "lines"
SET = "set"
"""The step that sets a row of the ledger: an answer of the owner, a request of an agent."""
ERASE = "erase"
"""The verb of a change that says that something was erased. Without details it takes the place of
a change about it.
"""
FOLD = "fold"
"""The verb of writing counts of reads into files: upkeep that nobody sees as a change
(docs/format.md).
"""
ORIGINS = "origins"
"""The verb of the change numbered 0. It keeps where texts come from whose changes were purged."""
IMPORTING = ("import", "ingest")
# Only the owner reads a new note.
NEW_MODE = 0o600
TAKEN_BACK = "taken_back"
"""In the details of an undo: the numbers of the changes it took back, where they are several."""
KINDS = ("put", "remove", "move", "mkdir", "rmdir", "unlink", "symlink")


@dataclass(slots=True)
class Touched:
    """One file or folder that a change touched.

    do: `put`, `remove`, `move` (a file or folder, to `to`), `mkdir`, `rmdir`, `unlink` (a symlink
        to `link`), `set` (a row of the ledger), or `lines` (of the absolute `file` used in place;
        `old` are the removed lines, `new` describes the added ones).
    old, new: SHA-256 of the text before and after.
    mode: the file's mode before.
    scope: the scope of the note.
    kept: whether the old text is kept.
    root: the project's real folder, if other processes of the home would not look for it there.
        Otherwise empty.
    size: of the text after, in bytes.
    by: the origin of this text, in addition to what the change says (see `Change.provenance`).
    """

    do: str
    project: str
    path: str
    to: str = ""
    old: str | None = None
    new: str | None = None
    mode: int | None = None
    scope: str = "global"
    link: str = ""
    kept: bool = True
    file: str = ""
    root: str = ""
    size: int = 0
    by: dict[str, str] | None = None


@dataclass(slots=True)
class Change:
    """One line of the journal.

    number, time, verb: which change it is, when it was made, and how.
    project, path: what the change was about.
    agent, face: who made it, and through which interface.
    files: the files it touched.
    undoes: the number of the change it takes back.
    details: what the caller said about it, as words to texts and numbers.
    run: the number of the first change of the same run of a job. For an undo, that it takes back
        the whole run.
    by: the client, session and tool it came through, as far as known.
    """

    number: int
    time: str
    verb: str
    project: str
    path: str
    agent: str | None
    face: str | None
    files: list[Touched] = field(default_factory=list)
    undoes: int | None = None
    details: dict[str, Any] | None = None
    run: int | None = None
    by: dict[str, str] | None = None

    def provenance(self, touched: Touched) -> Provenance:
        """Where the text that this change wrote to the file comes from; also of lines of older
        versions.
        """
        who, trust = ("owner", "owner") if self.agent is None else (f"agent:{self.agent}", "agent")
        if self.verb in IMPORTING:
            if not self.agent:
                who = "import"
            trust = "import"
        words: dict[str, Any] = {"who": who, "trust": trust, "client": self.face, "time": self.time}
        return Provenance(**words | (self.by or {}) | (touched.by or {}))

    def texts(self) -> Iterator[Touched]:
        """The files whose text this change wrote, removed or moved."""
        return (file for file in self.files if file.do in ("put", "remove", "move"))

    @property
    def root(self) -> str:
        """The folder of its project, if other processes would not look for it there (see
        `Touched`).

        Otherwise empty.
        """
        return next((file.root for file in self.files if file.project == self.project), "")

    def dump(self) -> bytes:
        """The change as one JSON line; fields of a file with their default value are left out."""
        row: dict[str, Any] = {"change": self.number, "time": self.time, "verb": self.verb}
        row |= {"project": self.project, "path": self.path, "agent": self.agent, "face": self.face}
        more = {
            "undoes": self.undoes,
            "details": self.details or None,
            "run": self.run,
            "by": self.by or None,
        }
        row |= {key: value for key, value in more.items() if value is not None}
        row["files"] = [
            {name: value for name, usual in _FIELDS if (value := getattr(file, name)) != usual}
            for file in self.files
        ]
        return _ENCODER.encode(row).encode() + b"\n"

    @classmethod
    def load(cls, line: bytes) -> Change:
        """The change a JSON line describes. Raises ValueError when it is not one."""
        row = json.loads(line)
        try:
            files = [Touched(**row_file) for row_file in row["files"]]
            return cls(
                row["change"],
                row["time"],
                row["verb"],
                row["project"],
                row["path"],
                row.get("agent"),
                row.get("face"),
                files,
                row.get("undoes"),
                row.get("details"),
                row.get("run"),
                row.get("by"),
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"not a change: {error}") from None


def undone_numbers(undoes: int | None, details: Any) -> list[int]:
    """The numbers of the changes that an undo took back, from its `Change` fields.

    For a run, its first number.
    """
    if undoes is None:
        return []
    if isinstance(details, dict) and isinstance(details.get(TAKEN_BACK), list):
        return [number for number in details[TAKEN_BACK] if isinstance(number, int)]
    return [undoes]


_FIELDS = [(each.name, each.default) for each in fields(Touched)]
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


@dataclass(slots=True)
class Step:
    """One planned operation on a file or folder of a project. Paths are relative to the project.

    do: `put` writes `data`; if `old` is None, the place must be free. `remove` needs `old`. `move`
        moves a file or folder to `to`, which must be free. Also `mkdir`, `rmdir` (the folder must
        be empty by then), `unlink` (a symlink), `symlink`, `set` (a row of the ledger).
    root: the folder of the project.
    old: the file as the caller read it. If it has changed since, that is a Conflict.
    kept: whether the old text stays in the ledger.
    is_passing: whether the new text stays out of the ledger.
    away: whether other processes do not know the project at `root`, so that the ledger has to name
        it.
    etag, stamp: of the new file, as soon as a `put` is prepared.
    by: as in `Touched`.
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

    def touched(self) -> Touched:
        """The journal's record of this step."""
        if self.data is not None:
            self.etag = sha256(self.data)
        old, mode = (self.old.etag, self.old.mode) if self.old else (None, None)
        if self.away:
            root = os.path.realpath(self.root)
        else:
            root = ""
        return Touched(
            self.do,
            self.project,
            self.path,
            self.to,
            old,
            self.etag,
            mode,
            self.scope,
            self.link,
            self.kept,
            root=root,
            size=len(self.data or b""),
            by=self.by,
        )
