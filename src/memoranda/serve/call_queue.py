"""Runs the calls that need the memory one at a time, in the order they came, off the event loop."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from memoranda.clock import CALL_WAITS, waits_until
from memoranda.errors import Busy, MemorandaError

if TYPE_CHECKING:
    from memoranda.engine import MemorySession

T = TypeVar("T")
_log = logging.getLogger("memoranda.serve")


class Stopping(MemorandaError):
    """The server was told to stop before the call's turn came."""

    code = "stopping"

    def __init__(self) -> None:
        super().__init__(
            "The server is stopping; this call was not carried out. Repeat it after a restart."
        )


class InternalError(MemorandaError):
    """A fault of ours. The log has the traceback; the caller gets a sentence."""

    code = "internal"

    def __init__(self) -> None:
        super().__init__(
            "The call failed inside the server. Its log on stderr says why; `memory doctor` may help."
        )


AGAIN_AFTER = 0.2
"""The seconds between two pieces of work in the background. Other programs get the core meanwhile."""
KEPT_UP_AFTER = 4.0
"""The seconds from a call to the upkeep after it. `memory.md` may be 5 seconds behind (contract 001,
10)."""


# Garbage is collected after this many new objects, which have at most some megabytes.
_MAX_NEW_OBJECTS = 10_000


def collect_garbage() -> None:
    """Turn on the garbage collector for a server that runs long.

    Objects that exist already, like imported modules, are never examined again.
    """
    gc.freeze()
    gc.set_threshold(_MAX_NEW_OBJECTS)
    gc.enable()


class _WaitLimit:
    """Watches a call that waits for its turn, and refuses it if the running call takes too long.

    call: the call that waits. Cancelling it refuses it.
    seconds_of_running_call: returns how long the running call has taken.
    refusal: the error for the caller. None unless the call was refused.
    """

    def __init__(self, call: Future[Any], seconds_of_running_call: Callable[[], float]) -> None:
        self._call = call
        self._seconds_of_running_call = seconds_of_running_call
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(CALL_WAITS, self._refuse_if_late)
        self.refusal: Busy | None = None

    def end(self) -> None:
        """Stop the timer. Otherwise it would keep the result of the call in memory until it fires."""
        self._timer.cancel()

    def _refuse_if_late(self) -> None:
        """Refuse the call if the running one takes too long. Otherwise look again soon."""
        seconds = self._seconds_of_running_call()
        # `cancel` returns False, and does nothing, for a call that runs or is done.
        if seconds > CALL_WAITS and self._call.cancel():
            server = f"this server (process {os.getpid()})"
            self.refusal = Busy(f"another call of {server}, for {seconds:.0f} seconds")
        elif not self._call.done():
            self._timer = self._loop.call_later(0.1, self._refuse_if_late)


class CallQueue:
    """Runs calls with the memory one after the other, on a single thread.

    open_session: opens the memory. It is called by the first call or by `prepare`.
    upkeep: called with the memory KEPT_UP_AFTER seconds after calls, and before it is closed.
    background: called after `upkeep` on a separate thread, so that calls do not wait for it. It
        does a piece of work, and returns whether there is more.
    is_shared: whether others use the memory, too. Then it is not closed.
    """

    def __init__(
        self,
        open_session: Callable[[], MemorySession],
        upkeep: Callable[[MemorySession], object] = lambda _: None,
        background: Callable[[MemorySession], bool] = lambda _: False,
        is_shared: bool = False,
    ):
        self._open = open_session
        self._is_shared = is_shared
        self._upkeep = upkeep
        self._background = background
        # The upkeep that waits for KEPT_UP_AFTER seconds. None while there was no call since.
        self._upkeep_task: asyncio.Task[None] | None = None
        self._memory: MemorySession | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="memoranda")
        self._background_thread = ThreadPoolExecutor(1, thread_name_prefix="background")
        self._is_prepared = False
        self._is_stopping = False
        # Set as soon as calls must no longer wait for locks: inside `waits_until(event)`, a wait for
        # a lock ends with an error when the event is set.
        self._must_not_wait = threading.Event()
        # When the running call began, by `time.monotonic`. 0 if no call runs.
        self._call_began = 0.0

    def prepare(self) -> None:
        """Open the memory on its thread ahead of the first call.

        If that fails, the next call tries again and raises the error.
        """
        if not self._is_prepared and not self._is_stopping:
            self._is_prepared = True
            self._thread.submit(waits_until(self._must_not_wait)(self._open_memory))

    async def run(self, call: Callable[[MemorySession], T]) -> T:
        """Run `call` with the memory after all earlier calls, and return its result.

        If the caller is cancelled, a call that waits is dropped, and a running call goes on to its
        end.

        Raises the MemorandaError of `call`, and InternalError for its other exceptions, which are
        logged. Raises Stopping if the server ends, and Busy if an earlier call takes too long.
        """
        if self._is_stopping:
            raise Stopping

        future = self._thread.submit(self._run_timed, call)
        limit = _WaitLimit(future, self._seconds_of_running_call)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            # There are three causes. `refuse_waiting` has cancelled the call, because the server
            # stops. Or `limit` has cancelled it, because an earlier call takes too long. Or the
            # caller itself was cancelled.
            if self._is_stopping and future.cancelled():
                raise Stopping from None
            if limit.refusal is not None:
                raise limit.refusal from None
            raise
        except MemorandaError:
            raise
        except Exception:
            # The outermost loop of this transport: errors are reported, and the connection stays.
            _log.exception("A call failed")
            raise InternalError from None
        finally:
            limit.end()
            # One upkeep follows all calls of the next KEPT_UP_AFTER seconds.
            if self._upkeep_task is None and not self._is_stopping:
                self._upkeep_task = asyncio.create_task(self._upkeep_later())

    def _run_timed(self, call: Callable[[MemorySession], T]) -> T:
        """Run a call, and record when it began, so that a waiting call can see how long it takes."""
        self._call_began = time.monotonic()
        try:
            with waits_until(self._must_not_wait):
                return call(self._open_memory())
        finally:
            self._call_began = 0.0

    def _seconds_of_running_call(self) -> float:
        """Return how long the running call has taken. 0 if no call runs."""
        # The attribute is read only once, because the call may end at any moment.
        began = self._call_began
        if began == 0.0:
            return 0.0
        return time.monotonic() - began

    async def _upkeep_later(self) -> None:
        """Run the upkeep a while after a call, then the work in the background piece by piece."""
        await asyncio.sleep(KEPT_UP_AFTER)
        # A call that comes from now on needs another upkeep.
        self._upkeep_task = None
        # `close` runs the upkeep itself.
        if self._is_stopping:
            return
        # It takes its turn among the calls. Nothing here depends on its result.
        self._thread.submit(self._logged, self._upkeep)
        # The pause between two pieces leaves the core to other programs.
        while not self._is_stopping:
            future = self._background_thread.submit(self._logged, self._do_background_piece)
            has_more = await asyncio.wrap_future(future)
            if not has_more:
                return
            await asyncio.sleep(AGAIN_AFTER)

    def _do_background_piece(self, memory: MemorySession) -> bool:
        """Do a piece of work in the background. Return whether there is more."""
        if self._is_stopping:
            return False
        return self._background(memory)

    def _logged(self, work: Callable[[MemorySession], object]) -> object:
        """Do work with the memory and return its result.

        None if the memory is not open, or after an error, which is logged.
        """
        try:
            with waits_until(self._must_not_wait):
                if self._memory is None:
                    return None
                return work(self._memory)
        except MemorandaError as error:
            _log.warning("%s", error)
            return None

    def refuse_waiting(self) -> None:
        """Answer all waiting and later calls with Stopping.

        The running call goes on, but it no longer waits for locks.
        """
        self._is_stopping = True
        self._must_not_wait.set()
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._background_thread.shutdown(wait=False, cancel_futures=True)

    def close(self) -> None:
        """Wait for the running call and the work in the background, and close the memory."""
        self._is_stopping = True
        self._background_thread.shutdown(wait=True, cancel_futures=True)
        self._thread.shutdown(wait=True)
        if self._memory is not None:
            self._logged(self._upkeep)
            if not self._is_shared:
                self._memory.close()
            self._memory = None

    def _open_memory(self) -> MemorySession:
        """Return the memory, which the first call opens."""
        if self._memory is None:
            self._memory = self._open()
        return self._memory
