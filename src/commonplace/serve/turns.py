"""Calls that need the memory take turns: one at a time, in the order they came, off the event loop."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from commonplace.clock import CALL_WAITS, waits_until
from commonplace.errors import Busy, CommonplaceError

if TYPE_CHECKING:
    from commonplace.engine import Memory

T = TypeVar("T")
_log = logging.getLogger("commonplace.serve")


class Stopping(CommonplaceError):
    """The server was told to stop before the call's turn came."""

    code = "stopping"

    def __init__(self) -> None:
        super().__init__("The server is stopping; this call was not carried out. Repeat it after a restart.")


class InternalError(CommonplaceError):
    """A fault of ours. The log has the traceback; the caller gets a sentence."""

    code = "internal"

    def __init__(self) -> None:
        super().__init__("The call failed inside the server. Its log on stderr says why; `memory doctor` may help.")


AGAIN_AFTER = 0.2
"""Seconds between two pieces of work in the background, which leave a core to others."""
KEPT_UP_AFTER = 4.0
"""Seconds from a call to the upkeep after it: `memory.md` may be 5 behind (contract 001, 10)."""


class CallQueue:
    """One thread on which the memory is opened, by the first call or by `prepare`, and used.

    `upkeep` is called with the memory KEPT_UP_AFTER seconds after calls, and before it is closed; `background` after
    it, on a thread of its own, repeatedly while it returns True: calls do not wait for it. A memory that `is_shared` is
    not closed.
    """

    def __init__(
        self,
        open_memory: Callable[[], Memory],
        upkeep: Callable[[Memory], object] = lambda _: None,
        background: Callable[[Memory], bool] = lambda _: False,
        is_shared: bool = False,
    ):
        self._open, self._is_shared = open_memory, is_shared
        self._upkeep, self._background = upkeep, background
        self._waiting: asyncio.TimerHandle | None = None
        self._memory: Memory | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="commonplace")
        self._aside = ThreadPoolExecutor(1, thread_name_prefix="background")
        self._prepared = self._stopping = False
        self._ended = threading.Event()
        self._begun = 0.0

    def prepare(self) -> None:
        """Open the memory at the next turn, once. If that fails, the next call tries again and says why."""
        if not self._prepared and not self._stopping:
            self._prepared = True
            self._thread.submit(self._stoppable, self._opened)

    async def take(self, call: Callable[[Memory], T]) -> T:
        """The result of `call(memory)`, after all calls that came before.

        Cancelling a call that waits drops it; one that runs ends by itself. Raises CommonplaceError:
        what `call` raises, `Stopping`, `Busy` when a call before it takes longer than a call waits, or `InternalError`
        for any other exception, which is logged.
        """
        if self._stopping:
            raise Stopping
        future = self._thread.submit(self._timed, call)
        late: list[Busy] = []
        self._refuse_late(future, late, CALL_WAITS)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            if self._stopping and future.cancelled():
                raise Stopping from None
            if late:
                raise late[0] from None
            raise
        except CommonplaceError:
            raise
        except Exception:  # the outermost loop of this transport: reported, and the connection lives
            _log.exception("A call failed")
            raise InternalError from None
        finally:
            if self._waiting is None and not self._stopping:
                loop = asyncio.get_running_loop()
                self._waiting = loop.call_later(KEPT_UP_AFTER, self._later, loop)

    def _refuse_late(self, future: Future[T], late: list[Busy], seconds: float) -> None:
        """Refuse the call after `seconds` if it still waits for its turn, and the one at work takes that long."""

        def refuse() -> None:
            took = time.monotonic() - self._begun if self._begun else 0.0
            if took > CALL_WAITS and future.cancel():
                late.append(Busy(f"another call of this server (process {os.getpid()}), for {took:.0f} seconds"))
            elif not future.done():
                self._refuse_late(future, late, 0.1)

        asyncio.get_running_loop().call_later(seconds, refuse)

    def _timed(self, call: Callable[[Memory], T]) -> T:
        """The result of the call; when it began is noted for those behind it."""
        self._begun = time.monotonic()
        try:
            return self._stoppable(lambda: call(self._opened()))
        finally:
            self._begun = 0.0

    def _stoppable(self, work: Callable[[], T]) -> T:
        """The result of `work`, which stops waiting for locks when the server stops."""
        with waits_until(self._ended):
            return work()

    def _later(self, loop: asyncio.AbstractEventLoop) -> None:
        self._waiting = None
        if not self._stopping:
            self._thread.submit(self._logged, self._upkeep)
            self._work(loop)

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        """A piece of the work in the background, and the next one after a pause."""
        if not self._stopping:
            call = self._aside.submit(self._logged, lambda memory: not self._stopping and self._background(memory))
            piece = asyncio.wrap_future(call, loop=loop)
            piece.add_done_callback(lambda done: self._worked(done, loop))

    def _worked(self, done: asyncio.Future[object], loop: asyncio.AbstractEventLoop) -> None:
        if not done.cancelled() and done.result():
            loop.call_later(AGAIN_AFTER, self._work, loop)

    def _logged(self, work: Callable[[Memory], object]) -> object:
        """The result of work on the open memory; None if there is none, or for an error, which is logged."""
        try:
            memory = self._memory
            return None if memory is None else self._stoppable(lambda: work(memory))
        except CommonplaceError as error:
            _log.warning("%s", error)
            return None

    def refuse_waiting(self) -> None:
        """Let the running call end, which waits for no lock any more, and answer those that wait, and later ones, with
        `Stopping`."""
        self._stopping = True
        self._ended.set()
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._aside.shutdown(wait=False, cancel_futures=True)

    def close(self) -> None:
        """Wait for the running call and the piece of work in the background, and close the memory."""
        self._stopping = True
        self._aside.shutdown(wait=True, cancel_futures=True)
        self._thread.shutdown(wait=True)
        if self._memory is not None:
            self._logged(self._upkeep)
            if not self._is_shared:
                self._memory.close()
            self._memory = None

    def _opened(self) -> Memory:
        if self._memory is None:
            self._memory = self._open()
        return self._memory
