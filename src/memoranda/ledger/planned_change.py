"""Changes that are planned and not made yet, and the queue in which they wait.

All changes in the queue are made with one wait for the disk (docs/concurrency.md). Each of them is
accepted or refused on its own.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memoranda.errors import NotPutBack
from memoranda.sources.step import StepKind

if TYPE_CHECKING:
    from memoranda.ledger.change import Change
    from memoranda.ledger.reads import ReadRow
    from memoranda.sources.line_change import LineChange
    from memoranda.sources.step import Step

MOST_CHANGES = 64
MOST_BYTES = 4 << 20
MOST_SECONDS = 0.1
"""Limits of the queue, so that the first caller does not wait long: the number of changes, the bytes
of their files, and the seconds since the first change came."""
# The permalink in a note's header.
_PERMALINK = re.compile(rb"^permalink:[ \t]*(\S+)", re.MULTILINE)
# A header is looked for in this number of bytes.
_HEADER_BYTES = 4096


def _nothing() -> None:
    return


@dataclass(slots=True, eq=False)
class PlannedChange:
    """A change with its steps, from its planning until it is made or refused.

    folded: read counts that the change adds to headers of notes, by path of the note.
    check: called right before the change is recorded. It raises an error to refuse the change.
    show: called with the change once its files are on disk. None calls nothing.
    error: why the change was not made. None while it was not tried, and after success.
    may_go_alone: whether the change failed as one of a group, and may succeed if it is tried alone.
    is_over: set once the change is made or refused.
    """

    change: Change
    steps: list[Step]
    folded: Mapping[str, ReadRow] = field(default_factory=dict)
    check: Callable[[], None] = _nothing
    show: Callable[[Change], None] | None = None
    error: BaseException | None = None
    may_go_alone: bool = False
    is_over: threading.Event = field(default_factory=threading.Event)

    @property
    def about(self) -> str:
        """The file or project that an error about this change names."""
        lines = self.lines
        if lines is not None:
            return os.path.basename(lines.place)
        # The removal by an erasure names no note.
        return self.change.path or self.change.project or "the notes"

    @property
    def lines(self) -> LineChange | None:
        """The lines that this change edits in a graph or JSON file. None for any other change.

        Such a file has many notes, one on each line. A change of lines has no other steps.
        """
        for step in self.steps:
            if step.lines is not None:
                return step.lines
        return None

    @property
    def is_simple(self) -> bool:
        """Whether it only writes and removes files, so that it can wait with other changes."""
        kinds = {step.do for step in self.steps}
        return not self.folded and kinds <= {StepKind.PUT, StepKind.REMOVE}

    @property
    def size(self) -> int:
        """The number of bytes that it writes."""
        return sum(len(step.data or b"") for step in self.steps)

    def claims(self) -> set[tuple[str, str]]:
        """Return the files and permalinks that no other waiting change may use.

        Paths and permalinks are in lower case, as in `{("/home/main", "notes/a.md"), ("permalink",
        "main/a")}`.
        """
        claims = {(step.root, step.path.casefold()) for step in self.steps}
        for step in self.steps:
            # Only a new file brings a permalink that nobody has yet
            if step.data is not None and step.old is None:
                match = _PERMALINK.search(step.data[:_HEADER_BYTES])
                if match is not None:
                    claims.add(("permalink", match[1].decode("utf-8", "replace").casefold()))
        return claims


class ChangeQueue:
    """The changes that wait to be made together. Only the holder of the home's lock may use it."""

    def __init__(self) -> None:
        self.changes: list[PlannedChange] = []
        # The files and permalinks of all waiting changes (`PlannedChange.claims`)
        self._claims: set[tuple[str, str]] = set()
        # The bytes that all waiting changes write
        self._bytes = 0
        # When the first change came, in seconds of `time.monotonic`
        self._begun = 0.0

    @property
    def is_full(self) -> bool:
        """Whether the waiting changes have reached a limit and should be made now."""
        if not self.changes:
            return False
        return (
            len(self.changes) >= MOST_CHANGES
            or self._bytes >= MOST_BYTES
            or time.monotonic() > self._begun + MOST_SECONDS
        )

    def takes(self, planned: PlannedChange) -> bool:
        """Whether a change can wait with the others: it is simple, and shares no file with them."""
        return planned.is_simple and self._claims.isdisjoint(planned.claims())

    def add(self, planned: PlannedChange) -> None:
        """Add a change to the queue."""
        if not self.changes:
            self._begun = time.monotonic()
        self.changes.append(planned)
        self._claims |= planned.claims()
        self._bytes += planned.size

    def take_all(self) -> list[PlannedChange]:
        """Remove and return all waiting changes."""
        changes = self.changes
        self.changes = []
        self._claims = set()
        self._bytes = 0
        return changes


def end(changes: Iterable[PlannedChange], *, made: bool) -> None:
    """Wake the callers that wait for these changes.

    made: whether the writer was not interrupted. If it was, every change without an error gets
        NotPutBack.
    """
    for planned in changes:
        if not made and planned.error is None:
            planned.error = NotPutBack(
                "the memory", "it was interrupted; see what is there before you repeat it"
            )
        planned.is_over.set()


def accepted(changes: Sequence[PlannedChange]) -> list[PlannedChange]:
    """Return the changes that were not refused so far."""
    return [planned for planned in changes if planned.error is None]
