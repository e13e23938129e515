"""The values that the ledger stores: a change, and its effect on each file or folder (`Touched`)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

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
"""The verb of change 0. It keeps the origins of texts whose changes were purged."""
IMPORTING = ("import", "ingest")
"""The verbs of changes that bring texts from elsewhere."""
VERBS = frozenset(
    (
        *("append", "archive", "ask", "classify", "consolidate", "create", "decay", "delete"),
        *("done", "edit", ERASE, "expire", "fire", FOLD, *IMPORTING, "insert", "link", "merge"),
        *("move", ORIGINS, "overwrite", "pin", "prepend", "remind", "remove", "rename"),
        *("replace", "restore", "retag", "review", "snooze", "supersede", "tag", "undo"),
        *("unlink", "unpin", "update", "upgrade", "write"),
    )
)
"""All verbs of changes. Another one in the ledger is damage (`memory doctor`)."""
FIRST_OF_MACHINE = 1_000_000_000
"""The number of the first change of a file that only one machine has, beside notes in PostgreSQL.

The server numbers the changes of notes, from 1. It knows none of the changes of such files.
"""
TAKEN_BACK = "taken_back"
"""Key in the details of an undo that took back several changes: the list of their numbers."""

UNLINKED = "unlinked"
"""Key in the details of an undo: of how many memories it only removed links to removed memories."""


def is_of_machine(number: int) -> bool:
    """Whether a change with this number touched a file that only this machine has.

    Its number tells: such changes are counted from FIRST_OF_MACHINE.
    """
    return number >= FIRST_OF_MACHINE


class Location(NamedTuple):
    """Where the ledger says that a file is.

    project, path: the project, and the path in it.
    root: the real folder of the project, if other processes of the home would look elsewhere. Else
        "", for the folder that the home has for the project.
    """

    project: str
    path: str
    root: str = ""

    @property
    def name(self) -> str:
        """The place as people see it: `notes/tea.md`, or an absolute path if there is a root."""
        return os.path.join(self.root or self.project, self.path)


@dataclass(slots=True, eq=False, repr=False)
class Touched(ValueObject):
    """One file or folder that a change touched.

    do: a StepKind, or ORIGINS.
    project, path: the file or folder.
    to: its new path, if it was moved.
    old: the SHA-256 of the text before. None if there was no file.
    new: the SHA-256 of the text after. None if there is no file.
        For LINES, `old` is of the removed lines and `new` of a description of the new ones.
    mode: the file's mode before.
    scope: which agents may see the note, `global` for all.
    link: the target of a symlink.
    kept: whether the old text is kept.
    file: for LINES, the absolute path of the file used in place. Else "".
    root: the project's real folder, if other processes of the home would look elsewhere. Else "".
    size: the size of the text after, in bytes.
    by: facts about the origin of this text. They override facts about the whole change. None for none.
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

    @property
    def place(self) -> Location:
        """Where the file or folder is: before a move, and before and after any other step."""
        return Location(self.project, self.path, self.root)

    @property
    def path_after(self) -> str:
        """The path after the step: the new one of what was moved. Any other step keeps the path."""
        return self.to or self.path

    @property
    def place_after(self) -> Location:
        """Where the file or folder is after a move, and before and after any other step."""
        return Location(self.project, self.path_after, self.root)

    @property
    def moves_folder(self) -> bool:
        """Whether the step moved a folder with everything in it. A folder has no text before."""
        return self.do == StepKind.MOVE and self.old is None

    @property
    def makes_file(self) -> bool:
        """Whether the step wrote a file where there was none."""
        return self.do == StepKind.PUT and self.old is None

    def path_after_move(self, path: str) -> str | None:
        """Return where the move of a file or folder took the file at `path`.

        A move of `plans` to `old/plans` took `plans/tea.md` to `old/plans/tea.md`. None if the file
        was not moved.
        """
        return _path_moved(path, self.path, self.to, with_files_below=self.moves_folder)

    def path_before_move(self, path: str) -> str | None:
        """Return from where the move of a file or folder brought the file at `path`.

        None if it did not bring the file there.
        """
        return _path_moved(path, self.to, self.path, with_files_below=self.moves_folder)


def _path_moved(path: str, old: str, new: str, *, with_files_below: bool) -> str | None:
    """Return the new path of a file if `old` is moved to `new`. None if the file is not moved.

    with_files_below: whether `old` is a folder, so that the files below it are moved, too.
    """
    is_below = with_files_below and path.startswith(f"{old}/")
    if path == old or is_below:
        return new + path[len(old) :]
    return None


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
            # The owner has not written the texts of an import: they come from elsewhere
            if not self.agent:
                who = "import"
            trust = "import"
        facts: dict[str, Any] = {"who": who, "trust": trust, "client": self.face, "time": self.time}
        return Provenance(**facts | (self.by or {}) | (touched.by or {}))

    def texts(self) -> Iterator[Touched]:
        """Yield the files whose text this change wrote, removed or moved."""
        for file in self.files:
            if file.do in (StepKind.PUT, StepKind.REMOVE, StepKind.MOVE):
                yield file

    def empties(self, project: str, path: str) -> bool:
        """Whether this change moved the note at a place away or removed it, and put no other there.

        project, path: the place.
        """
        has_left = False
        for file in self.files:
            if file.project != project:
                continue
            is_removed = file.do == StepKind.REMOVE and file.path == path
            is_moved = file.do == StepKind.MOVE and file.path_after_move(path) is not None
            if is_removed or is_moved:
                has_left = True
            # A later step of the change may bring another note to the place.
            is_written = file.do == StepKind.PUT and file.path == path
            is_reached = file.do == StepKind.MOVE and file.path_before_move(path) is not None
            if is_written or is_reached:
                has_left = False
        return has_left

    def moves_by_rewriting(self) -> dict[int, int]:
        """Return which files this change removed and wrote at another place, as positions in `files`.

        A move that also changes the text, such as its links, is recorded so: the file is put at its
        new place, just before it is removed at the old one. A memory whose category changes keeps
        its file name.

        The keys are the steps that removed a file, the values those that wrote it.
        """
        written_positions: set[int] = set()
        # name of a file -> position of the first step that wrote a new file of this name
        first_position_of_name: dict[str, int] = {}
        for position, file in enumerate(self.files):
            if file.makes_file:
                written_positions.add(position)
                first_position_of_name.setdefault(os.path.basename(file.path), position)
        removed_positions = [
            position for position, file in enumerate(self.files) if file.do == StepKind.REMOVE
        ]
        # An undo also makes and removes files that have nothing to do with each other. Then a file
        # that was written just before another is removed need not be the same note.
        has_one_of_each = len(written_positions) == 1 and len(removed_positions) == 1
        is_paired_by_order = self.verb != "undo" or has_one_of_each
        moves: dict[int, int] = {}
        for position in removed_positions:
            position_before = position - 1
            name = os.path.basename(self.files[position].path)
            if is_paired_by_order and position_before in written_positions:
                moves[position] = position_before
            elif name in first_position_of_name:
                moves[position] = first_position_of_name[name]
        return moves

    def pairs_moved_by_rewriting(self) -> list[tuple[Touched, Touched]]:
        """Return the moves of `moves_by_rewriting` as pairs of steps.

        Each pair has the step that removed the file, and the step that wrote it elsewhere.
        """
        return [
            (self.files[removed_position], self.files[written_position])
            for removed_position, written_position in self.moves_by_rewriting().items()
        ]

    def count_of_others(self) -> int:
        """Return how many notes this change wrote, removed or moved, without counting the first.

        A note that came to another place counts once, although it was removed at one place and made
        at another. A note from which a deletion or an undo only removed links does not count.
        """
        files = list(self.texts())
        removed_count = sum(file.do == StepKind.REMOVE for file in files)
        if self.verb == "delete":
            note_count = removed_count
        else:
            # A moved note is one of the removed and one of the new files.
            new_count = sum(file.makes_file for file in files)
            moved_count = min(removed_count, new_count)
            unlinked_count = (self.details or {}).get(UNLINKED, 0)
            note_count = len(files) - moved_count - unlinked_count
        return max(0, note_count - 1)

    @property
    def root(self) -> str:
        """The folder of its project, if that is outside of the home. Else "" (`Touched.root`)."""
        for file in self.files:
            if file.project == self.project:
                return file.root
        return ""

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

    undoes, details: the fields of the undo's `Change` with these names. `undoes` is None if
        the change is not an undo. The details may come from a damaged row.
    """
    if undoes is None:
        return []
    if isinstance(details, dict):
        numbers = details.get(TAKEN_BACK)
        if isinstance(numbers, list):
            return [number for number in numbers if isinstance(number, int)]
    return [undoes]


class Standing:
    """Tells which changes still count: those that are not undos, and that no undo took back.

    An undo writes no text of its own: it gives back what an older change wrote. If the undo was
    taken back, what it took back counts again.
    """

    def __init__(self) -> None:
        self._taken_back: set[int] = set()
        self._runs_taken_back: set[int] = set()

    def counts(self, change: Change) -> bool:
        """Whether a change counts. An undo never does, nor a change that an undo took back.

        Ask for all changes in order, the newest first. An undo comes before the changes that it
        takes back, and they are recorded when it is asked for.
        """
        if change.number in self._taken_back:
            return False
        is_undo = change.undoes is not None
        if not is_undo:
            return change.run not in self._runs_taken_back
        # This undo was not taken back itself, so it takes back its changes
        if change.run is not None:
            self._runs_taken_back.add(change.run)
        self._taken_back.update(undone_numbers(change.undoes, change.details))
        return False


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
    return Touched(
        do=step.do,
        project=step.project,
        path=step.path,
        to=step.to,
        old=step.old.etag if step.old is not None else None,
        new=step.etag,
        mode=step.old.mode if step.old is not None else None,
        scope=step.scope,
        link=step.link,
        kept=step.kept,
        root=os.path.realpath(step.root) if step.away else "",
        size=len(step.data or b""),
        by=step.by,
    )
