"""Changes to make, and the queue in which callers wait for the disk together (docs/concurrency.md).

Each change is accepted or refused on its own.
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

if TYPE_CHECKING:
    from memoranda.ledger.change import Change
    from memoranda.ledger.reads import ReadRow
    from memoranda.sources.line_change import LineChange
    from memoranda.sources.step import Step

# Changes and bytes of one transaction, so that the first caller does not wait long.
MOST_CHANGES = 64
MOST_BYTES = 4 << 20
MOST_SECONDS = 0.1
"""What waits at most: changes, bytes of their files, and how long the first of them."""
# The permalink that a note's header gives it.
_PERMALINK = re.compile(rb"^permalink:[ \t]*(\S+)", re.MULTILINE)
# Bytes in which a permalink is looked for.
_HEADER = 4096


def _nothing() -> None:
    return


@dataclass(slots=True, eq=False)
class PlannedChange:
    """A change with its steps, before it is made and after.

    `check` may refuse it right before it is recorded; `show` is called once its files are on disk.
    `error` says why it was not made. `may_go_alone` tells that it was refused because of others, so
    it is worth another try.
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
        """The place to name where it is refused."""
        lines = self.lines
        if lines is not None:
            return os.path.basename(lines.place)
        return self.change.path or self.change.project

    @property
    def lines(self) -> LineChange | None:
        """The change of the lines of a file used in place. A change that has one does nothing
        else."""
        return next((step.lines for step in self.steps if step.lines is not None), None)

    @property
    def is_simple(self) -> bool:
        """Whether it only writes and removes files, so that it can wait beside others."""
        return not self.folded and all(step.do in ("put", "remove") for step in self.steps)

    @property
    def size(self) -> int:
        """The bytes of the files it writes."""
        return sum(len(step.data or b"") for step in self.steps)

    def claims(self) -> set[tuple[str, str]]:
        """The files, and the addresses of new notes, that no other waiting change may touch."""
        claims = {(step.root, step.path.casefold()) for step in self.steps}
        for step in self.steps:
            if step.data is not None and step.old is None:
                match = _PERMALINK.search(step.data[:_HEADER])
                if match is not None:
                    claims.add(("permalink", match[1].decode("utf-8", "replace").casefold()))
        return claims


class ChangeQueue:
    """The changes that wait. For the thread that is inside the home."""

    def __init__(self) -> None:
        self.changes: list[PlannedChange] = []
        self._claims: set[tuple[str, str]] = set()
        self._bytes = 0
        self._begun = 0.0

    @property
    def is_full(self) -> bool:
        """Whether what waits should be made now."""
        return bool(self.changes) and (
            len(self.changes) >= MOST_CHANGES
            or self._bytes >= MOST_BYTES
            or time.monotonic() > self._begun + MOST_SECONDS
        )

    def takes(self, planned: PlannedChange) -> bool:
        """Whether a change can wait beside the others."""
        return planned.is_simple and self._claims.isdisjoint(planned.claims())

    def add(self, planned: PlannedChange) -> None:
        """Have a change wait."""
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
    """Wake the callers that wait for these changes. If not `made`, the writer was interrupted."""
    for planned in changes:
        if not made and planned.error is None:
            planned.error = NotPutBack(
                "the memory", "it was interrupted; see what is there before you repeat it"
            )
        planned.is_over.set()


def accepted(changes: Sequence[PlannedChange]) -> list[PlannedChange]:
    """Those of the changes that were not refused so far."""
    return [planned for planned in changes if planned.error is None]
