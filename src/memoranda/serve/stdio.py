"""`memory mcp`: one client, on this process's stdin and stdout."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
from collections.abc import Callable, Collection, Mapping
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from memoranda.clock import may_wait
from memoranda.serve.pump import CONTINUED, answered_by, continued
from memoranda.serve.turns import CallQueue, collect_garbage

if TYPE_CHECKING:
    from memoranda.engine import MemorySession
    from memoranda.faces.tool import Registry

INTERRUPTED = 130
"""Exit status after SIGINT; after SIGTERM and at the end of input it is 0."""
# Seconds of embedding between two looks for a call.
_EMBED_SECONDS = 1.0
# Seconds for a client to take its answers once the server was told to stop
_LAST_WORDS = 1.0


def run_stdio(
    open_session: Callable[[], MemorySession],
    registry: Registry,
    *,
    name: str = "memoranda",
    version: str = "",
    agent: str | None = None,
    clients: Mapping[str, str] | None = None,
) -> int:
    """Serve `registry` over MCP until the client closes stdin, and return the process's exit
    status.

    open_session: opens the memory. It is called once, off the event loop, after the client has its
        first answer. If it raises MemorandaError, each call answers with that error, and the next
        one tries again.
    registry: the tools.
    name, version: how the server calls itself.
    agent: the caller (`--agent` or MEMORY_AGENT). None means the identity that belongs to the
        client's name.
    clients: names of clients to identities (configuration key `agents`), beside the table of known
        clients.

    Descriptors 0 and 1 are the protocol's from here to the end of the process. Everything that the
    client sends before it closes stdin is carried out and answered. SIGTERM and SIGINT let the
    running call end, answer the waiting ones with an error and stop; a second signal ends the
    process immediately. Sources: contract 000a, 7; contract 000b, 9; contract 001, 1 (identity).
    """
    wire = StdioTransport(*continued())
    os.environ.pop(CONTINUED, None)
    # Importing without collecting garbage takes a tenth less time, and there is no garbage
    gc.disable()
    try:
        from memoranda.serve.mcp import ClientConnection, ServerIdentity, converse
    finally:
        collect_garbage()
    turns = CallQueue(open_session, _keep_up, embed_some)
    identity = ServerIdentity(name, version, agent, clients or {})

    async def session() -> int:
        loop = asyncio.get_running_loop()
        stopped: asyncio.Future[int] = loop.create_future()
        connection = ClientConnection(wire.send, turns.prepare)

        def stop(number: int) -> None:
            # Two signals that came together are one
            if not stopped.done():
                # The next one does what it does to any process
                for signal_number in (
                    signal.SIGINT,
                    signal.SIGTERM,
                ):
                    loop.remove_signal_handler(signal_number)
                    signal.signal(signal_number, signal.SIG_DFL)
                turns.refuse_waiting()
                connection.end()
                stopped.set_result(number)

        for signal_number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(signal_number, stop, signal_number)
        wire.start(connection.receive, connection.end)
        await converse(connection, registry, turns, identity)
        # The client takes all answers; once stopped, for a while
        flushing = asyncio.ensure_future(wire.flush())
        waiting: set[asyncio.Future[Any]] = {flushing, stopped}
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({flushing}, timeout=_LAST_WORDS)
        flushing.cancel()
        if stopped.done() and stopped.result() == signal.SIGINT:
            return INTERRUPTED
        return 0

    try:
        with registry.hooks.session():
            return asyncio.run(session())
    finally:
        turns.close()


def _keep_up(memory: MemorySession) -> None:
    if memory.has_changed_memories:
        from memoranda.engine.overview import Overview

        Overview(memory).keep_up()


def embed_some(memory: MemorySession) -> bool:
    """A short while of embedding what waits, until the server stops. Returns whether there may be
    more.
    """
    from memoranda.engine.embedding import Embedding

    return Embedding(memory).some(_EMBED_SECONDS, stop=lambda: not may_wait()) > 0


class StdioTransport:
    """Takes descriptors 0 and 1 for itself, for the rest of the process.

    Afterwards descriptor 0 is at its end and descriptor 1 is stderr: what a library, a hook or a
    child process prints cannot get between two messages. Reading and writing have a thread each, so
    neither a silent nor a slow client holds up the event loop. The threads are daemons: one that
    waits for a client does not keep a stopping process alive. `first` comes before what stdin has;
    answers to the ids `unheard` are not written.
    """

    def __init__(self, first: bytes = b"", unheard: Collection[Any] = ()) -> None:
        self._first, self._unheard = first, set(unheard)
        self._in, self._out = os.dup(0), os.dup(1)
        with open(os.devnull, "r+b") as nothing:
            os.dup2(nothing.fileno(), 0)
            try:
                os.dup2(2, 1)
            except OSError:
                # Stderr is closed.
                os.dup2(nothing.fileno(), 1)
        self._waiting: SimpleQueue[bytes | None] = SimpleQueue()

    def start(self, line: Callable[[bytes], None], end: Callable[[], None]) -> None:
        """Call `line` on the running event loop for every line of input, and `end` at the end of
        input.

        `end` is also called, perhaps a second time, when the other side no longer reads.
        """
        self._loop = asyncio.get_running_loop()
        self._written = asyncio.Event()
        threading.Thread(target=self._read, args=(line, end), name="stdin", daemon=True).start()
        threading.Thread(target=self._write, args=(end,), name="stdout", daemon=True).start()

    def send(self, line: bytes) -> None:
        """Write `line`, which has no line break, after all lines sent before. Does not wait."""
        if self._unheard and (id := answered_by(line)) in self._unheard:
            return self._unheard.discard(id)
        self._waiting.put(line + b"\n")

    async def flush(self) -> None:
        """Wait until all is written, or nobody reads any more. Nothing can be sent afterwards."""
        self._waiting.put(None)
        await self._written.wait()

    def _read(self, line: Callable[[bytes], None], end: Callable[[], None]) -> None:
        *begun, incomplete_line = self._first.split(b"\n")
        for this_line in begun:
            self._post(line, this_line)
        try:
            with open(self._in, "rb", buffering=1 << 16, closefd=False) as lines:
                # A terminal's end is read once
                while this_line := lines.readline():
                    self._post(line, incomplete_line + this_line)
                    incomplete_line = b""
        except OSError:
            # The terminal or socket behind it is gone, which counts as its end.
            pass
        self._post(line, incomplete_line)
        self._post(end)

    def _write(self, end: Callable[[], None]) -> None:
        try:
            while (line := self._waiting.get()) is not None:
                remaining = memoryview(line)
                while remaining:
                    remaining = remaining[os.write(self._out, remaining) :]
        except OSError:
            # The client is gone: running calls finish, their replies are dropped.
            self._post(end)
        self._post(self._written.set)

    def _post(self, call: Callable[..., None], *data: bytes) -> None:
        try:
            self._loop.call_soon_threadsafe(call, *data)
        except RuntimeError:
            # The loop has ended, and so have all listeners.
            pass
