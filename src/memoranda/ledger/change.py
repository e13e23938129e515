"""The values that the ledger stores: a change, and its effect on each file or folder (`Touched`)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any

from memoranda.note.model import AGENT_PREFIX, Provenance
from memoranda.sources.base import sha256
from memoranda.sources.step import Step, StepKind
from memoranda.value_object import ValueObject

ERASE = "erase"
"""The verb of a change that records an erasure. A change about an erased note is replaced by one
with this verb and no details.
"""
FOLD = "fold"
"""The verb of writing counts of reads into files: upkeep that nobody sees as a change
(docs/format.md).
"""
ORIGINS = "origins"
"""The verb of the change numbered 0. It keeps where texts come from whose changes were purged."""
IMPORTING = ("import", "ingest")
FIRST_OF_MACHINE = 1_000_000_000
"""The number of the first change of a file that only one machine has, beside notes in PostgreSQL.

The server numbers the changes of notes, from 1. It knows none of the changes of such files.
"""
TAKEN_BACK = "taken_back"
"""Key in the details of an undo that took back several changes: the list of their numbers."""


def is_of_machine(number: int) -> bool:
    """Whether the change with this number is of a file that only this machine has."""
    return number >= FIRST_OF_MACHINE


@dataclass(slots=True, eq=False, repr=False)
class Touched(ValueObject):
    """One file or folder that a change touched.

    do: a StepKind, or ORIGINS.
    project, path: the file or folder.
    to: its new path, if it was moved.
    old, new: SHA-256 of the text before and after. None if there was no file. For LINES, SHA-256 of
        the removed lines, and of a description of the added ones (`LineChange`).
    mode: the file's mode before.
    scope: the scope of the note.
    link: the target of a symlink.
    kept: whether the old text is kept.
    file: for LINES, the absolute path of the file used in place.
    root: the project's real folder, if other processes of the home would look elsewhere. Else "".
    size: the size of the text after, in bytes.
    by: the origin of this text, in addition to what the change says. Its keys override the keys that
        the change has.
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
    """One entry of the history: an edit of notes that is made and undone as a whole.

    number: counts the changes of a home from 1.
    time: when it was made (ISO 8601, UTC).
    verb: the kind of edit, such as `edit` or `move`.
    project, path: the place that the history lists it under.
    agent, face: who made it, and through which interface. An agent of None is the owner.
    files: the files it touched.
    undoes: the number of the change that it takes back. None if it is not an undo.
    details: further words of the caller, as keys with texts and numbers.
    run: the number of the first change of the same run of a job. An undo of a whole run has the
        number of that run.
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
        """Return the origin of the text that this change wrote to a file.

        It follows from the agent and the verb. `by` of the change and of `touched` override it.
        """
        if self.agent is None:
            who = "owner"
            trust = "owner"
        else:
            who = f"{AGENT_PREFIX}{self.agent}"
            trust = "agent"
        if self.verb in IMPORTING:
            if not self.agent:
                who = "import"
            trust = "import"
        words: dict[str, Any] = {"who": who, "trust": trust, "client": self.face, "time": self.time}
        return Provenance(**words | (self.by or {}) | (touched.by or {}))

    def texts(self) -> Iterator[Touched]:
        """Return the files whose text this change wrote, removed or moved."""
        return (
            file for file in self.files if file.do in (StepKind.PUT, StepKind.REMOVE, StepKind.MOVE)
        )

    def count_of_others(self) -> int:
        """Return how many notes this change wrote, removed or moved, without counting the first.

        A note that came to another place counts once, although it was removed at one place and made
        at another. A note from which a deletion only removed links does not count.
        """
        files = list(self.texts())
        removed = sum(file.do == StepKind.REMOVE for file in files)
        if self.verb == "delete":
            return max(0, removed - 1)
        new = sum(file.do == StepKind.PUT and file.old is None for file in files)
        return max(0, len(files) - min(removed, new) - 1)

    @property
    def root(self) -> str:
        """The `Touched.root` of its files that are in its own project, "" if they have none."""
        return next((file.root for file in self.files if file.project == self.project), "")

    def dump(self) -> bytes:
        """Return the change as one line of JSON. Fields of files with default values are left out.

        `{"change":7,"time":...,"verb":"edit","project":"notes",...,"files":[{"do":"put",...}]}`
        """
        row: dict[str, Any] = {"change": self.number, "time": self.time, "verb": self.verb}
        row |= {"project": self.project, "path": self.path, "agent": self.agent, "face": self.face}
        optional_values = {
            "undoes": self.undoes,
            "details": self.details or None,
            "run": self.run,
            "by": self.by or None,
        }
        row |= {key: value for key, value in optional_values.items() if value is not None}
        row["files"] = [_fields_of(file) for file in self.files]
        return _ENCODER.encode(row).encode() + b"\n"


def undone_numbers(undoes: int | None, details: Any) -> list[int]:
    """Return the numbers of the changes that an undo took back. Empty if it is not an undo.

    If the undo took back a whole run of a job, only the number of the run is returned.

    undoes, details: these fields of the undo's `Change`.
    """
    if undoes is None:
        return []
    if isinstance(details, dict) and isinstance(details.get(TAKEN_BACK), list):
        return [number for number in details[TAKEN_BACK] if isinstance(number, int)]
    return [undoes]


_DEFAULTS = {touched_field.name: touched_field.default for touched_field in fields(Touched)}
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def _fields_of(touched: Touched) -> dict[str, Any]:
    """Return the fields of a value that differ from their defaults."""
    values = {name: getattr(touched, name) for name in _DEFAULTS}
    return {name: value for name, value in values.items() if value != _DEFAULTS[name]}


def touched_by(step: Step) -> Touched:
    """Return the ledger's record of a step. Sets `step.etag`, the SHA-256 of the new text."""
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
