"""Calls that need the memory take turns: one at a time, in the order they came, off the event loop."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

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
"""Seconds between two pieces of work in the background, which leave a core to others."""
KEPT_UP_AFTER = 4.0
"""Seconds from a call to the upkeep after it: `memory.md` may be 5 behind (contract 001, 10)."""


# New objects before garbage is collected: some megabytes at most
_OBJECTS = 10_000


def collect_garbage() -> None:
    """Turn the garbage collector on, as a server that runs long needs it.

    Objects that exist already are left out of it.
    """
    gc.freeze()
    gc.set_threshold(_OBJECTS)
    gc.enable()


class CallQueue:
    """One thread on which the memory is opened, by the first call or by `prepare`, and used.

    `upkeep` is called with the memory KEPT_UP_AFTER seconds after calls, and before it is closed;
    `background` after it, on a separate thread, repeatedly while it returns True: calls do not
    wait for it. A memory that `is_shared` is not closed.
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
        self._waiting: asyncio.Task[None] | None = None
        self._memory: MemorySession | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="memoranda")
        self._aside = ThreadPoolExecutor(1, thread_name_prefix="background")
        self._prepared = self._stopping = False
        self._ended = threading.Event()
        self._begun = 0.0

    def prepare(self) -> None:
        """Open the memory at the next turn, once. If that fails, the next call tries again and says
        why.
        """
        if not self._prepared and not self._stopping:
            self._prepared = True
            self._thread.submit(waits_until(self._ended)(self._open_memory))

    async def take(self, call: Callable[[MemorySession], T]) -> T:
        """The result of `call(memory)`, after all calls that came before.

        Cancelling a call that waits drops it; one that runs goes on to its end. Raises MemorandaError:
        what `call` raises, `Stopping`, `Busy` when a call before it takes longer than a call waits,
        or `InternalError` for any other exception, which is logged.
        """
        if self._stopping:
            raise Stopping

        future = self._thread.submit(self._run_timed, call)
        loop = asyncio.get_running_loop()
        late: list[Busy] = []

        def refuse() -> None:
            """Refuse the call if it still waits for its turn while the running one takes too long."""
            took = self._seconds_of_call_at_work()
            if took > CALL_WAITS and future.cancel():
                server = f"this server (process {os.getpid()})"
                late.append(Busy(f"another call of {server}, for {took:.0f} seconds"))
            elif not future.done():
                loop.call_later(0.1, refuse)

        timer = loop.call_later(CALL_WAITS, refuse)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            if self._stopping and future.cancelled():
                raise Stopping from None
            if late:
                raise late[0] from None
            raise
        except MemorandaError:
            raise
        except Exception:
            # The outermost loop of this transport: errors are reported, and the connection stays.
            _log.exception("A call failed")
            raise InternalError from None
        finally:
            # The timer would keep the result alive until it fires.
            timer.cancel()
            if self._waiting is None and not self._stopping:
                self._waiting = asyncio.create_task(self._look_after())

    def _run_timed(self, call: Callable[[MemorySession], T]) -> T:
        """Run a call, and record since when it runs, for those that wait behind it."""
        self._begun = time.monotonic()
        try:
            with waits_until(self._ended):
                return call(self._open_memory())
        finally:
            self._begun = 0.0

    def _seconds_of_call_at_work(self) -> float:
        # Read once: the call may end between a check and a second reading.
        begun = self._begun
        return time.monotonic() - begun if begun else 0.0

    async def _look_after(self) -> None:
        """Upkeep a while after a call, then the work in the background, piece by piece."""
        await asyncio.sleep(KEPT_UP_AFTER)
        self._waiting = None
        if self._stopping:
            return
        self._thread.submit(self._logged, self._upkeep)
        piece = lambda memory: not self._stopping and self._background(memory)
        while not self._stopping:
            future = self._aside.submit(self._logged, piece)
            if not await asyncio.wrap_future(future):
                return
            await asyncio.sleep(AGAIN_AFTER)

    def _logged(self, work: Callable[[MemorySession], object]) -> object:
        """The result of work on the open memory.

        None without an open memory, or after an error, which is logged.
        """
        try:
            with waits_until(self._ended):
                if self._memory is None:
                    return None
                return work(self._memory)
        except MemorandaError as error:
            _log.warning("%s", error)
            return None

    def refuse_waiting(self) -> None:
        """Let the running call end without waiting for locks. Answer all waiting and later calls
        with `Stopping`.
        """
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

    def _open_memory(self) -> MemorySession:
        if self._memory is None:
            self._memory = self._open()
        return self._memory
