"""Serves MCP to one client on stdin and stdout of this process: `memory mcp` without a daemon."""

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
from memoranda.serve.call_queue import CallQueue, collect_garbage
from memoranda.serve.pump import CONTINUED, answered_by, continued

if TYPE_CHECKING:
    from memoranda.engine import MemorySession
    from memoranda.faces.tool import Registry
    from memoranda.serve.mcp import ClientConnection

INTERRUPTED = 130
"""Exit status after SIGINT; after SIGTERM and at the end of input it is 0."""
# One piece of work in the background takes this many seconds.
_EMBED_SECONDS = 1.0
# After a signal, the client has this many seconds to take its answers.
_LAST_ANSWER_SECONDS = 1.0


def run_stdio(
    open_session: Callable[[], MemorySession],
    registry: Registry,
    *,
    name: str = "memoranda",
    version: str = "",
    agent: str | None = None,
    clients: Mapping[str, str] | None = None,
) -> int:
    """Serve `registry` over MCP until the client closes stdin. Returns the process's exit status.

    open_session: opens the memory. It is called once, off the event loop, after the client has its
        first answer. If it raises MemorandaError, the call that needs the memory is answered with
        that error, and the next call tries again.
    registry: the tools.
    name: the name that the server tells the client.
    version: the version that the server tells the client.
    agent: the agent of the client (`--agent` or MEMORY_AGENT). None: `agent_of` finds it by the
        client's name.
    clients: the owner's table from client name to agent (configuration key `agents`). None for no
        table.

    From here to the end of the process, descriptors 0 and 1 belong to the protocol. Everything that
    the client sends before it closes stdin is carried out and answered. After SIGTERM or SIGINT the
    running call ends, the waiting ones are answered with an error, and the function returns. A
    second signal ends the process immediately. Sources: contract 000a, 7; contract 000b, 9;
    contract 001, 1 (identity).
    """
    # A process that took over from the client's first one goes on where that one stopped reading.
    first_lines, not_for_client = continued()
    wire = StdioTransport(first_lines, not_for_client)
    os.environ.pop(CONTINUED, None)
    # Imports make no garbage, and take a tenth less time without the search for it.
    gc.disable()
    try:
        from memoranda.serve.mcp import ClientConnection, ServerIdentity, converse
    finally:
        collect_garbage()
    call_queue = CallQueue(open_session, _keep_up, embed_some)
    identity = ServerIdentity(name, version, agent, clients or {})

    async def serve() -> int:
        # After its first answer the client knows the tools. The memory is opened meanwhile.
        connection = ClientConnection(wire.send, on_answer=call_queue.prepare)
        signals = _StopSignals(connection, call_queue)
        wire.start(connection.receive, connection.end)
        await converse(connection, registry, call_queue, identity)
        await _flush(wire, signals.received)
        was_interrupted = signals.received.done() and signals.received.result() == signal.SIGINT
        if was_interrupted:
            return INTERRUPTED
        return 0

    try:
        with registry.hooks.session():
            return asyncio.run(serve())
    finally:
        call_queue.close()


class _StopSignals:
    """Ends a conversation after SIGINT or SIGTERM. Belongs to the running event loop.

    The first signal ends the conversation. A second one ends the process at once.

    connection: the conversation with the client.
    call_queue: its calls. Calls that still wait are refused.
    received: a future for the number of the first signal.
    """

    def __init__(self, connection: ClientConnection, call_queue: CallQueue) -> None:
        self._connection = connection
        self._call_queue = call_queue
        self._loop = asyncio.get_running_loop()
        self.received: asyncio.Future[int] = self._loop.create_future()
        for number in (signal.SIGINT, signal.SIGTERM):
            self._loop.add_signal_handler(number, self._stop, number)

    def _stop(self, number: int) -> None:
        """End the conversation, because the signal `number` has come."""
        # A second signal may have come before its handler was removed.
        if self.received.done():
            return
        # From now on a signal ends the process at once.
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            self._loop.remove_signal_handler(signal_number)
            signal.signal(signal_number, signal.SIG_DFL)
        self._call_queue.refuse_waiting()
        self._connection.end()
        self.received.set_result(number)


async def _flush(wire: StdioTransport, stop_signal: asyncio.Future[int]) -> None:
    """Wait until the client has taken all answers. After a signal, wait _LAST_ANSWER_SECONDS only.

    stop_signal: is done once a signal has come.
    """
    flushing = asyncio.ensure_future(wire.flush())
    flush_or_signal: set[asyncio.Future[Any]] = {flushing, stop_signal}
    await asyncio.wait(flush_or_signal, return_when=asyncio.FIRST_COMPLETED)
    # Returns at once if it was not the signal that came.
    await asyncio.wait({flushing}, timeout=_LAST_ANSWER_SECONDS)
    flushing.cancel()


def _keep_up(memory: MemorySession) -> None:
    """Bring the overview `memory.md` up to date if memories have changed."""
    if memory.has_changed_memories:
        from memoranda.engine.overview import Overview

        Overview(memory).keep_up()


def embed_some(memory: MemorySession) -> bool:
    """Embed waiting notes for a second, or until the server stops. Returns whether more may wait."""
    from memoranda.engine.embedding import Embedding

    return Embedding(memory).embed_some(_EMBED_SECONDS, stop=lambda: not may_wait()) > 0


class StdioTransport:
    """Reads and writes the lines of the client, on the descriptors that were stdin and stdout.

    From then on, descriptor 0 is empty and descriptor 1 is stderr. So the output of a library, a
    hook or a child process cannot get between two messages. Reading and writing have a thread each,
    so neither a silent nor a slow client holds up the event loop. The threads are daemons: one that
    waits for a client does not keep a stopping process alive.

    first_lines: lines to read before the lines of stdin.
    not_for_client: ids of requests in `first_lines` whose answers the client has already. Their answers
        are not written.
    """

    def __init__(self, first_lines: bytes = b"", not_for_client: Collection[Any] = ()) -> None:
        """Take over descriptors 0 and 1. From now on, prints of this process go to stderr."""
        self._first_lines = first_lines
        self._not_for_client = set(not_for_client)
        self._in = os.dup(0)
        self._out = os.dup(1)
        with open(os.devnull, "r+b") as nothing:
            os.dup2(nothing.fileno(), 0)
            try:
                os.dup2(2, 1)
            except OSError:
                # Stderr is closed.
                os.dup2(nothing.fileno(), 1)
        # Lines to write. None ends the writing.
        self._output: SimpleQueue[bytes | None] = SimpleQueue()

    def start(self, on_line: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        """Begin to read and write on threads. The functions are called on the running event loop.

        on_line: called with each line of input.
        on_end: called at the end of input, and also, perhaps a second time, when the client no
            longer reads.
        """
        self._loop = asyncio.get_running_loop()
        self._all_written = asyncio.Event()
        reading = threading.Thread(
            target=self._read, args=(on_line, on_end), name="stdin", daemon=True
        )
        writing = threading.Thread(target=self._write, args=(on_end,), name="stdout", daemon=True)
        reading.start()
        writing.start()

    def send(self, line: bytes) -> None:
        """Queue a line, without a line break, for writing. Does not wait."""
        if self._not_for_client:
            id = answered_by(line)
            if id in self._not_for_client:
                self._not_for_client.discard(id)
                return
        self._output.put(line + b"\n")

    async def flush(self) -> None:
        """Wait until everything is written, or the client no longer reads.

        Nothing can be sent afterwards.
        """
        self._output.put(None)
        await self._all_written.wait()

    def _read(self, on_line: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        """Read lines until the end of input.

        on_line: called with each line, on the event loop.
        on_end: called after the last line.
        """
        # An earlier process of this session may have read some lines, and the beginning of the next.
        *whole_lines, incomplete_line = self._first_lines.split(b"\n")
        for line in whole_lines:
            self._post(on_line, line)
        try:
            with open(self._in, "rb", buffering=1 << 16, closefd=False) as stdin:
                # Reading ends with the first empty line: a terminal could go on after its end.
                while line := stdin.readline():
                    self._post(on_line, incomplete_line + line)
                    incomplete_line = b""
        except OSError:
            # The terminal or socket behind it is gone, which counts as its end.
            pass
        self._post(on_line, incomplete_line)
        self._post(on_end)

    def _write(self, on_end: Callable[[], None]) -> None:
        """Write the queued lines until `flush`, or until the client no longer reads."""
        try:
            while (line := self._output.get()) is not None:
                unwritten = memoryview(line)
                while unwritten:
                    # A pipe may take only a part at once.
                    byte_count = os.write(self._out, unwritten)
                    unwritten = unwritten[byte_count:]
        except OSError:
            # The client is gone: running calls finish, their replies are dropped.
            self._post(on_end)
        self._post(self._all_written.set)

    def _post(self, call: Callable[..., None], *data: bytes) -> None:
        """Have the event loop call a function with `data`. Callable from any thread."""
        try:
            self._loop.call_soon_threadsafe(call, *data)
        except RuntimeError:
            # The loop has ended, and so have all listeners.
            pass
