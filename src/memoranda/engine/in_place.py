"""Changes of files used in place: files of other programs, whose lines memoranda edits.

Such a change is in the history if and only if it was made. It is undone line by line
(`line_undo.py`). The source of a file turns an edit into a step `lines` (`sources/source.py`). This
module has what all such files share.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from memoranda.engine.session import HomeSession
from memoranda.engine.transaction import check_access
from memoranda.engine.write_gate import check_limits
from memoranda.engine.writing import as_file
from memoranda.ledger.change import FOLD, Change
from memoranda.sources.locked_file import CannotReplace
from memoranda.sources.source import InPlaceEdit, InPlaceSource
from memoranda.sources.step import Step, StepKind

EditT = TypeVar("EditT", bound=InPlaceEdit)


@dataclass(slots=True)
class InPlaceChange:
    """One change of a file, as `session` makes it.

    path: the path under which the project lists the change.
    undoes: the number of the change that this one undoes. None if it undoes nothing.
    made: the change as the history has it. None while nothing was changed.
    """

    session: HomeSession
    path: str
    undoes: int | None = None
    made: Change | None = None

    def carry_out(self, source: InPlaceSource[EditT], plan: Callable[[], EditT]) -> Change | None:
        """Make the edit that `plan` returns: all or nothing, durable on return.

        plan: called with the home and the file locked, and the source showing the present content.

        Returns the change as the history has it, or None. Raises NotWritable, LimitExceeded,
        Unconfirmed, StorageError, and the errors of `plan`.
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
        """Make the step. If its file cannot be replaced, write the file in the other way, if it has
        one.
        """
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
        """Have the ledger make the step, after checking the limits of the agent."""
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
        # Counts of recalls are nothing that somebody wrote, so no limit applies to them.
        if verb != FOLD:
            planned.check = lambda: self._check_limits(step)
        planned.show = self._note
        session.engine.make(planned)

    def _check_limits(self, step: Step) -> None:
        """Raise an error if the written lines exceed what the agent may write."""
        assert step.lines is not None
        engine = self.session.engine
        written = Step(
            StepKind.PUT, step.project, "", self.path, data=step.lines.written, old=as_file(b"")
        )
        check_limits([written], engine.settings, self.session.agent, engine.day_use, engine.clock())

    def _note(self, change: Change) -> None:
        """Remember the change, which is now in its file."""
        self.made = change
        self.session.engine.commits += 1
