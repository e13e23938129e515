"""Changes of files used in place. Such a change is in the history if and only if it was made, and
it is taken back line by line (`line_undo.py`).

A source of such files (`graph.py`, `json_rows.py`) turns an edit into lines to remove and lines to
add (`LineChange`). The code that all sources share is here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from memoranda.engine.session import HomeSession
from memoranda.engine.transaction import check_access
from memoranda.engine.write_gate import check_limits
from memoranda.engine.writing import as_file
from memoranda.errors import CannotUndo
from memoranda.ledger.change import Change
from memoranda.sources.line_change import LineChange
from memoranda.sources.step import LINES, Step

Blocked = Callable[[str, str], CannotUndo]
"""Words that the file at (project, path) changed since."""


@dataclass(slots=True)
class InPlaceChange:
    """One change of a file, as `session` makes it.

    `project`, `path`: what it is listed under. `root`: the folder of the file, where no other
    process would look for it. `undoes`: the change it takes back. `made`: what it became in the
    history, None as long as nothing was changed, or where the home has no history of such files.
    """

    session: HomeSession
    project: str
    path: str
    root: str = ""
    undoes: int | None = None
    made: Change | None = None

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Inside, with the lock of the home, `write` may be called. Raises NotWritable,
        StorageError.
        """
        engine = self.session.engine
        check_access(self.session, self.project, undoes=self.undoes)
        with engine.writing():
            engine.guard.keep()
            yield

    def write(self, verb: str, lines: LineChange) -> None:
        """Have the ledger bring `lines` into their file. Raises LimitExceeded, CannotReplace,
        Unconfirmed, StorageError.
        """
        session = self.session
        step = Step(LINES, self.project, self.root, self.path, lines=lines)
        planned = session.engine.ledger.plan(
            verb,
            [step],
            about=(self.project, self.path),
            agent=session.agent,
            face=session.face,
            undoes=self.undoes,
            by=session.by or None,
        )
        planned.check = lambda: self._check_limits(lines)
        planned.show = self._note
        session.engine.make(planned)

    def _check_limits(self, lines: LineChange) -> None:
        engine = self.session.engine
        written = Step("put", self.project, "", self.path, data=lines.written, old=as_file(b""))
        check_limits([written], engine.settings, self.session.agent, engine.day_use, engine.clock())

    def _note(self, change: Change) -> None:
        """The change is in its file."""
        if not change.number:
            return
        self.made = change
        self.session.engine.commits += 1
