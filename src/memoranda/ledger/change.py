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
from memoranda.sources.base import sha256
from memoranda.sources.step import Step
from memoranda.value_object import ValueObject

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
TAKEN_BACK = "taken_back"
"""In the details of an undo: the numbers of the changes it took back, where they are several."""
KINDS = ("put", "remove", "move", "mkdir", "rmdir", "unlink", "symlink")


@dataclass(slots=True, eq=False, repr=False)
class Touched(ValueObject):
    """One file or folder that a change touched.

    do: `put`, `remove`, `move` (a file or folder, to `to`), `mkdir`, `rmdir`, `unlink` (a symlink
        to `link`), `set` (a row of the ledger), or `lines` (of the absolute `file` used in place;
        `old` are the removed lines, `new` describes the added ones: `LineChange`).
    old, new: SHA-256 of the text before and after.
    mode: the file's mode before.
    scope: the scope of the note.
    kept: whether the old text is kept.
    root: the project's real folder, if other processes of the home would not look for it there.
        Otherwise empty.
    size: the size of the text after, in bytes.
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


@dataclass(slots=True, eq=False, repr=False)
class Change(ValueObject):
    """One line of the ledger.

    number, time, verb: which change it is, when it was made, and how.
    project, path: what the change was about.
    agent, face: who made it, and through which interface.
    files: the files it touched.
    undoes: the number of the change it takes back.
    details: what the caller said about it, as words to texts and numbers.
    run: the number of the first change of the same run of a job. For an undo, that it takes back
        the whole run.
    by: the client, session and tool it came through, if known.
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


def touched_by(step: Step) -> Touched:
    """The ledger's record of a step. Sets `etag` of a step with data."""
    if step.data is not None:
        step.etag = sha256(step.data)
    old = None
    mode = None
    if step.old is not None:
        old = step.old.etag
        mode = step.old.mode
    root = ""
    if step.away:
        root = os.path.realpath(step.root)
    return Touched(
        step.do,
        step.project,
        step.path,
        step.to,
        old,
        step.etag,
        mode,
        step.scope,
        step.link,
        step.kept,
        root=root,
        size=len(step.data or b""),
        by=step.by,
    )
