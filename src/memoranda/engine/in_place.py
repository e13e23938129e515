"""Change files used in place: files of other programs, whose lines memoranda edits.

Each kind of file has a source. The source turns an edit of its file into a step of the kind `lines`
(`sources/source.py`). This module has the ledger make that step, in the same way for all kinds of
files. The step and its entry in the history are made together: an edit that failed is not in the
history, and one that was made is never missing there. `line_undo.py` undoes it line by line.
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
    """One change of a file.

    session: the caller who makes it.
    path: the path under which the project lists the change.
    undoes: the number of the change that this one undoes. None if it undoes nothing.
    recorded: the change as the history has it. None while nothing was changed.
    """

    session: HomeSession
    path: str
    undoes: int | None = None
    recorded: Change | None = None

    def carry_out(self, source: InPlaceSource[EditT], plan: Callable[[], EditT]) -> Change | None:
        """Make an edit, all of it or nothing. On return it is durable.

        source: the source of the file.
        plan: returns the edit. While it runs, the home and the file are locked, and `source` has
            the present content of the file.

        Returns the change as the history has it. None if the edit changes nothing.

        Raises NotWritable, LimitExceeded, Unconfirmed, StorageError, and the errors of `plan`.
        """
        engine = self.session.engine
        check_access(self.session, source.name, undoes=self.undoes)
        with engine.writing():
            engine.guard.keep()
            with source.changing():
                edit = plan()
                for step in source.steps(edit):
                    self._make_or_write_into(edit.verb, step)
                    engine.reads.restart(*source.counted(edit))
        return self.recorded

    def _make_or_write_into(self, verb: str, step: Step) -> None:
        """Make a step. If its file cannot be replaced by a new one, write into the file instead.

        verb: the verb in the history.

        Raises the cause of CannotReplace if the file cannot be written in another way.
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
        """Let the ledger make a step, after a check of the agent's limits.

        verb: the verb in the history.
        """
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
        # Nobody wrote the counts of reads, so no limit applies to them.
        if verb != FOLD:
            planned.check = lambda: self._check_limits(step)
        planned.show = self._remember
        session.engine.make(planned)

    def _check_limits(self, step: Step) -> None:
        """Raise LimitExceeded if the written lines are more than the agent may write."""
        assert step.lines is not None
        engine = self.session.engine
        # The lines count like a text in a file that was empty before.
        step_on_text = Step(
            StepKind.PUT,
            step.project,
            root="",
            path=self.path,
            data=step.lines.written,
            old=as_file(b""),
        )
        check_limits(
            [step_on_text], engine.settings, self.session.agent, engine.day_use, engine.clock()
        )

    def _remember(self, change: Change) -> None:
        """Remember the change, once it is in its file."""
        self.recorded = change
        self.session.engine.commits += 1
