"""Changes of files used in place. Such a change is in the history if and only if it was made, and
it is taken back line by line (`line_undo.py`).

The source of such a file turns an edit into a step `lines` (`sources/source.py`). What is the same
for all of them is here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from memoranda.engine.session import HomeSession
from memoranda.engine.transaction import check_access
from memoranda.engine.write_gate import check_limits
from memoranda.engine.writing import as_file
from memoranda.ledger.change import Change
from memoranda.sources.locked_file import CannotReplace
from memoranda.sources.source import InPlaceEdit, InPlaceSource
from memoranda.sources.step import Step

EditT = TypeVar("EditT", bound=InPlaceEdit)


@dataclass(slots=True)
class InPlaceChange:
    """One change of a file, as `session` makes it.

    path: the path in the project that it is listed under.
    undoes: the change it takes back.
    made: what it became in the history. None as long as nothing was changed, or where the home has
        no history of such files.
    """

    session: HomeSession
    path: str
    undoes: int | None = None
    made: Change | None = None

    def carry_out(self, source: InPlaceSource[EditT], plan: Callable[[], EditT]) -> Change | None:
        """Have the ledger make the edit that `plan` returns, all or nothing, durable on return.

        `plan` is called with the home and the file locked, and what is in the file shown. Returns
        the change as the history has it, or None. Raises NotWritable, LimitExceeded, Unconfirmed,
        StorageError, and as `plan`.
        """
        engine = self.session.engine
        check_access(self.session, source.name, undoes=self.undoes)
        with engine.writing():
            engine.guard.keep()
            with source.changing():
                edit = plan()
                for step in source.steps(edit):
                    self._make_anyhow(edit.verb, step)
                    engine.reads.restart(*source.counted(edit))
        return self.made

    def _make_anyhow(self, verb: str, step: Step) -> None:
        """Make the step, in another way where its file cannot be replaced."""
        assert step.lines is not None
        try:
            self._make(verb, step)
        except CannotReplace as error:
            other_way = step.lines.write.instead()
            if other_way is None:
                raise error.cause from None
            step.lines.write = other_way
            self._make(verb, step)

    def _make(self, verb: str, step: Step) -> None:
        session = self.session
        planned = session.engine.ledger.plan(
            verb,
            [step],
            about=(step.project, self.path),
            agent=session.agent,
            face=session.face,
            undoes=self.undoes,
            by=session.by or None,
        )
        planned.check = lambda: self._check_limits(step)
        planned.show = self._note
        session.engine.make(planned)

    def _check_limits(self, step: Step) -> None:
        assert step.lines is not None
        engine = self.session.engine
        written = Step(
            "put", step.project, "", self.path, data=step.lines.written, old=as_file(b"")
        )
        check_limits([written], engine.settings, self.session.agent, engine.day_use, engine.clock())

    def _note(self, change: Change) -> None:
        """The change is in its file."""
        if not change.number:
            return
        self.made = change
        self.session.engine.commits += 1
