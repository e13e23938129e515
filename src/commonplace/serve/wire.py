"""The process's stdin and stdout as one protocol's alone: whole lines in, whole lines out."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from queue import SimpleQueue


class Wire:
    """Takes descriptors 0 and 1 for itself, for the rest of the process.

    Afterwards descriptor 0 is at its end and descriptor 1 is stderr: what a library, a hook or a child
    process prints cannot get between two messages. Reading and writing have a thread each, so neither a
    silent nor a slow client holds up the event loop. The threads are daemons: one that waits for a
    client does not keep a stopping process alive.
    """

    def __init__(self) -> None:
        self._in, self._out = os.dup(0), os.dup(1)
        with open(os.devnull, "r+b") as nothing:
            os.dup2(nothing.fileno(), 0)
            try:
                os.dup2(2, 1)
            except OSError:  # stderr is closed
                os.dup2(nothing.fileno(), 1)
        self._waiting: SimpleQueue[bytes | None] = SimpleQueue()

    def start(self, line: Callable[[bytes], None], end: Callable[[], None]) -> None:
        """Call `line` on the running event loop for every line that comes in, then `end` once.

        `end` may come a second time, and early, when the other side no longer reads.
        """
        self._loop = asyncio.get_running_loop()
        self._written = asyncio.Event()
        threading.Thread(target=self._read, args=(line, end), name="stdin", daemon=True).start()
        threading.Thread(target=self._write, args=(end,), name="stdout", daemon=True).start()

    def send(self, line: bytes) -> None:
        """Write `line`, which has no line break, after all lines sent before. Does not wait."""
        self._waiting.put(line + b"\n")

    async def flush(self) -> None:
        """Wait until all is written, or nobody reads any more. Nothing can be sent afterwards."""
        self._waiting.put(None)
        await self._written.wait()

    def _read(self, line: Callable[[bytes], None], end: Callable[[], None]) -> None:
        try:
            with open(self._in, "rb", buffering=1 << 16, closefd=False) as lines:
                for each in lines:
                    self._post(line, each)
        except OSError:  # the terminal or socket behind it is gone: the same as its end
            pass
        self._post(end)

    def _write(self, end: Callable[[], None]) -> None:
        try:
            while (line := self._waiting.get()) is not None:
                rest = memoryview(line)
                while rest:
                    rest = rest[os.write(self._out, rest) :]
        except OSError:  # nobody reads: what is in progress still ends, unheard
            self._post(end)
        self._post(self._written.set)

    def _post(self, call: Callable[..., None], *given: bytes) -> None:
        try:
            self._loop.call_soon_threadsafe(call, *given)
        except RuntimeError:  # the loop has ended; so has everyone who would listen
            pass
