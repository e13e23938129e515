"""Changes of files used in place. Such a change is in the history if and only if it was made, and
it is taken back line by line (`line_undo.py`).

A source of such files (`graph.py`, `json_rows.py`) turns an edit into lines to remove and lines to
add (`LineChange`). The code that all sources share is here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from memoranda.clock import stamp
from memoranda.engine.session import HomeSession
from memoranda.engine.transaction import check_access
from memoranda.engine.write_gate import check_limits
from memoranda.engine.writing import as_file
from memoranda.errors import CannotUndo
from memoranda.ledger.change import Change
from memoranda.sources.line_change import LineChange
from memoranda.sources.step import Step

Blocked = Callable[[str, str], CannotUndo]
"""Words that the file at (project, path) changed since."""


@dataclass(slots=True)
class InPlaceChange:
    """One change of a file, as `session` makes it.

    project, path: what it is listed under.
    root: the folder of the file, if no other process would look for it there.
    undoes: the number of the change it takes back.
    made: the change in the history. None until something was changed.
    """

    session: HomeSession
    project: str
    path: str
    root: str = ""
    undoes: int | None = None
    made: Change | None = None

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Inside, with the lock of the home, the file may be changed after `announce`. When that
        fails the history does not have it. Raises NotWritable, StorageError.
        """
        engine = self.session.engine
        check_access(self.session, self.project, undoes=self.undoes)
        with engine.writing(), engine.ledger.lines.changing():
            engine.guard.keep()
            yield
            engine.commits += self.made is not None

    def announce(self, lines: LineChange) -> None:
        """Record the change, right before `lines` reaches the file. Raises LimitExceeded,
        StorageError.
        """
        session = self.session
        engine = session.engine
        if not engine.ledger.lines.is_recording:
            return
        new = Step(
            "put",
            self.project,
            "",
            self.path,
            data=b"".join([*lines.new, *lines.added]),
            old=as_file(b""),
        )
        now = engine.clock()
        check_limits([new], engine.settings, session.agent, engine.day_use, now)
        self.made = Change(
            engine.ledger.history.last + 1,
            stamp(now),
            lines.verb,
            self.project,
            self.path,
            session.agent,
            session.face,
            undoes=self.undoes,
            by=session.by or None,
        )
        engine.ledger.lines.begin(self.made, lines, self.root)
