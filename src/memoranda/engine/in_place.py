"""A change of a file used in place: it is in the history if and only if it is made, and it is taken
back by its lines.

A source of such files (`FileGraph`, `JsonEntries`) turns an edit into lines that go and lines that
come (`LineChange`), whatever its files look like. What is the same for all is here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from memoranda.clock import stamp
from memoranda.engine.reading import ReadVerbs
from memoranda.engine.transaction import HomeSession, check_access
from memoranda.engine.write_gate import check_limits
from memoranda.engine.writing import as_file
from memoranda.errors import CannotUndo, NotFound, StorageError
from memoranda.ledger.change import LINES, Change, Step, Touched
from memoranda.ledger.lines import KeptLines
from memoranda.store.inplace import LineChange

Blocked = Callable[[str, str], CannotUndo]
"""Words that the file at (project, path) changed since."""


@dataclass(slots=True)
class InPlaceChange:
    """One change of a file, as `session` makes it.

    `project`, `path`: what it is listed under. `root`: the folder of the file, where no other
    process would look for it. `undoes`: the change it takes back. `made`: what it became in the
    history, None as long as nothing was changed.
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
        with engine.writing(), engine.home.lines.changing():
            engine.guard.keep()
            yield
            engine.commits += self.made is not None

    def announce(self, lines: LineChange) -> None:
        """Record the change, right before `lines` reaches the file. Raises LimitExceeded,
        StorageError.
        """
        session = self.session
        engine = session.engine
        if not engine.home.lines.is_recording:
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
            engine.home.history.last + 1,
            stamp(now),
            lines.verb,
            self.project,
            self.path,
            session.agent,
            session.face,
            undoes=self.undoes,
            by=session.by or None,
        )
        engine.home.lines.begin(self.made, lines, self.root)


def undo_lines(session: ReadVerbs, change: Change, blocked: Blocked) -> Change:
    """Take back a change of lines; the home's lock is held. Raises CannotUndo, NotAGraphFile,
    StorageError.
    """
    touched = next(file for file in change.files if file.do == LINES and file.new is not None)
    try:
        kept_lines = session.engine.home.lines.kept(touched)
    except (NotFound, StorageError):
        raise CannotUndo(f"cannot undo #{change.number}: its lines are no longer kept") from None
    undone = _take_back(session, change, touched, kept_lines, blocked)
    if undone is None:
        raise CannotUndo(f"cannot undo #{change.number}: nothing of it is left")
    return undone


def _take_back(
    session: ReadVerbs, change: Change, touched: Touched, kept_lines: KeptLines, blocked: Blocked
) -> Change | None:
    """Have the source of the file take the change back. Returns the undo, None for nothing to do."""
    if touched.file.endswith(".json") and touched.root:
        from memoranda.engine.json_entries import JsonEntryFolder

        entries = JsonEntryFolder(touched.root).entries(session)
        return entries.take_back(change, touched, kept_lines, blocked)
    from memoranda.engine.graph import graph_of

    return graph_of(session, touched).take_back(change, kept_lines, blocked)
