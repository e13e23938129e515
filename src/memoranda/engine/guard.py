"""Concurrency, told once: who may be inside an open home, and who waits for whom
(docs/concurrency.md has a diagram).

There are four locks. A thread takes them in this order, and may take each of them again while it
holds it:

1. the guard, between the threads of one process: one is inside at a time;
2. the lock of the space, between machines, if the notes are in PostgreSQL;
3. the home's lock, between processes (`ledger/lock.py`): a process that changes something holds it;
4. the lock of a file used in place, between homes (`sources/locked_file.py`).

Reading needs the guard alone. It sees every change that was on disk when the call came in.

Writing waits for the disk once, and callers share the wait. A call of a tool that makes one change
comes in with `run`. If others wait behind it, its change is put into the queue
(`ledger/planned_change.py`), the home's lock is kept, and the next call is let in. The last of them
makes all waiting changes in one transaction of the ledger, and then each call goes on. A call that
does anything else first has the waiting changes made, so it sees the disk as it is.

A large change is planned inside, its texts are checked outside (`Engine.home_released`), and it is
made inside if the files that it was made from have not changed.

Other programs know none of these locks. To notice what they save, a file is compared with the text
that was read: before a change, and as its files are exchanged (`ledger/execution.py`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple, TypeVar

from memoranda.errors import Busy, MemorandaError
from memoranda.ledger.planned_change import ChangeQueue, PlannedChange
from memoranda.sources.files import ThreadLock

T = TypeVar("T")

# A call leaves its change to the next call that comes in. If that call gave up, nobody makes the
# change. So after this time, the call makes its change itself.
_SECONDS_BETWEEN_LOOKS = 0.25
# A thread with much work to do waits until nobody came in for this long, so that the calls of other
# threads come to their ends. It waits no longer than the second number.
_SECONDS_OF_QUIET = 0.003
_SECONDS_OF_COURTESY = 0.1


class RepeatAlone(BaseException):
    """Raised when a call must be repeated after all waiting changes are made.

    There are two reasons. A waiting change may be at the same place, and was not known when the call
    was planned. Or the change of the call was refused because of another waiting change.
    """


class _CallInside(NamedTuple):
    """The state that the guard has of the call inside it.

    depth: how often its thread has entered.
    asked_at, may_repeat: see the attributes of the guard.
    shares: whether it makes one change, which may be made together with others.
    """

    depth: int
    asked_at: float
    may_repeat: bool
    shares: bool


class Guard(ThreadLock):
    """A lock that lets one thread at a time into an open home. Raises Busy.

    The thread inside may enter again, any number of times.

    changes: the queue of changes that are planned but not yet on disk.
    make_all: the function that makes all changes of the queue.
    """

    def __init__(self, changes: ChangeQueue, make_all: Callable[[], None]):
        super().__init__()
        self._changes = changes
        self._make_all = make_all
        self.waiting = 0
        """How many calls that make one change wait to come in."""
        self.asked_at = math.inf
        """When the call inside asked to come in (time.monotonic), if it makes one change.

        If another call has compared the index with the disk since then, this call need not. For
        other calls it is infinite.
        """
        self.may_repeat = False
        """Whether the call inside may be repeated as a whole."""
        # Whether the call inside makes one change, which may be made together with others.
        self._shares = False

    def __enter__(self) -> None:
        """Enter, and make the changes that wait, so that the caller sees the disk as it is."""
        super().__enter__()
        if self._depth == 1 and self._changes.changes:
            try:
                self._make_what_waits()
            except BaseException:
                self.__exit__()
                raise

    def _make_what_waits(self) -> None:
        """Make the changes that wait.

        If that fails, the changes stay in the queue, and the calls that planned them try again.
        """
        with suppress(MemorandaError, OSError):
            self._make_all()

    @property
    def may_share(self) -> bool:
        """Whether the change of the call inside may wait, to be made together with changes of other
        calls.
        """
        return self._shares and (self.waiting > 0 or bool(self._changes.changes))

    def run(self, work: Callable[[], T]) -> T:
        """Call `work` inside the guard, and return its result.

        The change that it makes may be made together with changes of other calls.

        work: makes one change, and may be repeated as a whole. It is repeated if it raises
            RepeatAlone.
        """
        if self.is_mine:
            return work()
        with suppress(RepeatAlone):
            return self._run_sharing(work)
        with self:
            return work()

    def _run_sharing(self, work: Callable[[], T]) -> T:
        """Call `work` inside the guard without making the waiting changes first.

        They are made at the end if the queue is full, or if no other call waits to share its
        change. Raises RepeatAlone.
        """
        asked_at = time.monotonic()
        self._enter_counted()
        try:
            self._begin(asked_at, may_repeat=True)
            return work()
        finally:
            self._end()
            try:
                if self._changes.is_full or not self.waiting:
                    self._make_what_waits()
            finally:
                self.__exit__()

    def _enter_counted(self) -> None:
        """Enter, and count in `waiting` until then. The waiting changes are not made first."""
        with self._counting:
            self.waiting += 1
        try:
            # `Guard.__enter__` would make the waiting changes.
            super().__enter__()
        finally:
            with self._counting:
                self.waiting -= 1

    def _begin(self, asked_at: float, *, may_repeat: bool) -> None:
        """Record the arrival of a call that makes one change, which it may share (`may_share`).

        asked_at: when the call asked to come in (time.monotonic).
        may_repeat: whether the call may be repeated as a whole.
        """
        self.asked_at = asked_at
        self.may_repeat = may_repeat
        self._shares = True

    def _end(self) -> None:
        """Forget everything about the call inside, as it leaves the guard."""
        self.asked_at = math.inf
        self.may_repeat = False
        self._shares = False

    def wait_for(self, planned: PlannedChange) -> None:
        """Let other threads in until a waiting change was made or refused.

        Only the thread inside may call this.
        """
        # If no other call waits to come in, nobody else would make the changes. So this call does.
        if self._changes.is_full or not self.waiting:
            self._make_what_waits()
        if planned.is_over.is_set():
            return
        while not planned.is_over.is_set():
            call = self._leave_wholly()
            try:
                planned.is_over.wait(_SECONDS_BETWEEN_LOOKS)
            finally:
                self._come_back(call)
            # If no other call has made the changes in time, this call does.
            if not planned.is_over.is_set():
                self._make_what_waits()

    @contextmanager
    def released(self) -> Iterator[None]:
        """Let other threads enter during a `with` block, however often this thread has entered.

        After the block, this thread waits for its turn again, however long that takes. For a thread
        that has not entered, this does nothing.
        """
        if not self.is_mine:
            yield
            return
        call = self._leave_wholly()
        try:
            yield
        finally:
            # Other programs may have changed files meanwhile. So for a comparison of the index with
            # the disk, the call asks to come in only now.
            if call.shares:
                call = call._replace(asked_at=time.monotonic())
            self._come_back(call)

    def _leave_wholly(self) -> _CallInside:
        """Leave the guard, however often this thread has entered.

        Returns the state of the call, because the guard gets the states of those that come in now.
        """
        call = _CallInside(self._depth, self.asked_at, self.may_repeat, self._shares)
        self._end()
        # With the depth 1, one `__exit__` leaves the guard at all its levels.
        self._depth = 1
        self.__exit__()
        return call

    def _come_back(self, call: _CallInside) -> None:
        """Enter the guard as `_leave_wholly` left it, however long that takes."""
        while not self.is_mine:
            with suppress(Busy):
                super().__enter__()
        self._depth = call.depth
        self.asked_at = call.asked_at
        self.may_repeat = call.may_repeat
        self._shares = call.shares

    def let_pass(self, turns: int) -> None:
        """Wait while other threads come in and leave, at most `_SECONDS_OF_COURTESY`.

        A call of another thread comes in several times. If a thread with much work to do came in
        between, such a call would wait for a part of that work each time. This thread must be
        outside. It does not wait if nobody came in after it.

        turns: `self.turns` as this thread left.
        """
        end = time.monotonic() + _SECONDS_OF_COURTESY
        known_turns = turns
        while time.monotonic() < end:
            is_inside = bool(self._owner)
            came_in = self.turns != known_turns
            # Nobody is inside, and nobody came in since the last look.
            if not is_inside and not came_in:
                return
            known_turns = self.turns
            time.sleep(_SECONDS_OF_QUIET)

    def keep(self) -> None:
        """Record that the running call makes a lasting change, so that the call must not be
        repeated.

        Changes that wait are made first.
        """
        if self._changes.changes:
            self._make_what_waits()
        self.may_repeat = False
