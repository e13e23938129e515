"""One thread at a time works on an open home; those that change it may wait for the disk together
(docs/failures.md).

A call that others wait behind does not wait for the disk itself: it stages its change and leaves,
the next one comes in and stages its own, and the last of them carries all out. Only then does any
of them return. Who comes in for anything else settles what is staged first, so nobody is shown what
may still fail.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from memoranda.errors import MemorandaError, NotPutBack
from memoranda.store.files import ThreadLock

T = TypeVar("T")

_CHANGES = 64
_BYTES = 4 << 20
_SECONDS = 0.1
"""What a batch holds at most: changes, bytes of their files, and how long it stays open."""
_LOOK_AGAIN = 0.25
"""Seconds after which a call whose batch nobody ended looks whether it has to: who was to come in
gave up.
"""


class Again(BaseException):
    """What was staged could not be carried out together and is undone: the calls it is of are
    repeated one by one.
    """


class _Batch:
    """What was staged since `begun`, and, once it `is_over`, why it failed."""

    def __init__(self) -> None:
        self.begun = time.monotonic()
        self.is_over = threading.Event()
        self.error: BaseException | None = None


class Guard(ThreadLock):
    """Lets one thread in at a time, any number of times. Raises Busy.

    `carry_out` puts what is staged on disk, and `staged` says how much that is: changes, and bytes.
    """

    def __init__(self, carry_out: Callable[[], None], staged: Callable[[], tuple[int, int] | None]):
        super().__init__()
        self._carry_out = carry_out
        self._staged = staged
        self.batch: _Batch | None = None
        """What is staged, if anything."""
        self.waiting = 0
        """How many wait to come in with a change."""
        self.asked = math.inf
        """When the call inside asked to come in (time.monotonic), if it makes one change: what
        others looked at since then it need not look at again."""
        self._may_repeat = self._has_part = False

    def __enter__(self) -> None:
        super().__enter__()
        if self._depth == 1 and self.batch is not None:
            self._settle_first()

    def _settle_first(self) -> None:
        """Put what is staged on disk before this thread does anything; those it is of are told when
        that fails.
        """
        try:
            with suppress(Again, MemorandaError):
                self.settle()
        except BaseException:
            self.__exit__()
            raise

    def run(self, work: Callable[[], T]) -> T:
        """The result of `work`, which may be repeated as a whole, once what it staged is on disk,
        and what it saw staged by others."""
        if self.is_mine:
            return work()
        with suppress(Again):
            return self._together(work)
        with self:
            return work()

    def _together(self, work: Callable[[], T]) -> T:
        """As `run`, and the batch `work` staged into is over. Raises Again, NotPutBack or
        OutcomeUnknown if it failed."""
        asked = time.monotonic()
        with self._counting:
            self.waiting += 1
        try:
            super().__enter__()
        finally:
            with self._counting:
                self.waiting -= 1
        batch = None
        try:
            self._may_repeat = True
            self._has_part = False
            self.asked = asked
            return work()
        finally:
            try:
                self._may_repeat = False
                self.asked = math.inf
                batch = self.batch
                if batch is not None:
                    changes, size = self._staged() or (0, 0)
                    is_full = (
                        changes >= _CHANGES
                        or size >= _BYTES
                        or time.monotonic() > batch.begun + _SECONDS
                    )
                    if is_full or not self.waiting:
                        with suppress(Again, MemorandaError):
                            self.settle()
            finally:
                self.__exit__()
            while batch is not None and not batch.is_over.wait(_LOOK_AGAIN):
                if self.take_if_free():
                    self._settle_first()
                    self.__exit__()
            error = batch and batch.error
            if isinstance(error, Again):
                raise Again
            if isinstance(error, MemorandaError):
                raise error
            if error is not None:
                raise NotPutBack(
                    "the memory", "it was interrupted; see what is there before you repeat it"
                )

    @property
    def may_stage(self) -> bool:
        """Whether the call inside may stage its change: it can be repeated, and somebody waits to
        come in after it.
        """
        return self._may_repeat and (self.waiting > 0 or self.batch is not None)

    def stage(self) -> None:
        """The call inside has staged a change."""
        self.batch = self.batch or _Batch()
        self._has_part = True

    def keep(self) -> None:
        """The call inside makes a change that stays: it is not repeated any more, and part of no
        batch.
        """
        self.settle()
        self._may_repeat = False

    def settle(self) -> None:
        """Put what is staged on disk. For the thread inside. Raises Again when that failed: the
        call inside may have seen it."""
        batch, self.batch = self.batch, None
        if batch is None:
            return
        self._may_repeat &= not self._has_part
        try:
            self._carry_out()
        except BaseException as error:
            batch.error = error
            raise
        finally:
            batch.is_over.set()
