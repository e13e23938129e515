"""Serves MCP sessions on the daemon's socket, for clients whose `memory mcp` is a pump (pump.py).

The first line of such a connection is a request for a session, with the method `mcp`. If the daemon
grants it, the lines that follow are MCP. They are served as on stdin and stdout, with the memory
that the daemon has open. If the daemon refuses, the client's own process serves it.
"""

from __future__ import annotations

import asyncio
import json
import logging
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from memoranda import __version__
from memoranda.errors import MemorandaError
from memoranda.note.project_access import is_agent
from memoranda.serve.call_queue import CallQueue
from memoranda.serve.pump import ALIVE, BLOCK, END, LIMIT, METHOD, STOP, Lines, program

if TYPE_CHECKING:
    from memoranda.engine import MemorySession
    from memoranda.faces.tool import Registry
    from memoranda.serve.mcp import ClientConnection, ServerIdentity

# A daemon serves at most this many sessions. Further clients are served by their own processes.
_MAX_SESSIONS = 128
# At most this many requests of one session may wait for answers. With more, nothing is read.
_MAX_UNANSWERED = 1000
# The daemon sends a sign of life once in this many seconds.
_ALIVE_EVERY = 1.0
_log = logging.getLogger("memoranda.daemon")
_GRANT_LINE = b'{"jsonrpc":"2.0","id":1,"result":{}}\n'


class SessionRefused(MemorandaError):
    """The daemon does not serve this client, so the client's own process does."""

    code = "refused"


@dataclass(slots=True, eq=False)
class McpSession:
    """A connected client.

    call_queue: the queue of its calls.
    began: when it connected.
    last: when it last sent a request.
    agent: the agent that it acts as. None before its first request.
    client: the name that it gives itself. "" before its first request.
    stop: ends the session.
    unanswered: returns how many requests wait for an answer. The request for the session is the
        first.
    answered: set after each answer.
    """

    call_queue: CallQueue
    began: datetime
    last: datetime
    agent: str | None = None
    client: str = ""
    stop: Callable[[], None] = lambda: None
    unanswered: Callable[[], int] = lambda: 1
    answered: asyncio.Event = field(default_factory=asyncio.Event)


class McpSessions:
    """The sessions of one daemon.

    memory: the memory that the daemon serves.
    registry_for: makes a registry from the names of toolsets, and the name of the server that the
        tools imitate. None means that they imitate none.
    """

    def __init__(
        self, memory: MemorySession, registry_for: Callable[[Sequence[str], str | None], Registry]
    ):
        self._memory = memory
        self._registry_for = registry_for
        self._open: set[McpSession] = set()
        self._is_stopping = False

    def connected(self) -> list[McpSession]:
        """Return the open sessions, the newest first."""
        return sorted(self._open, key=lambda session: session.began, reverse=True)

    def stop(self) -> None:
        """Let running calls end, answer waiting calls with Stopping, and accept no further sessions."""
        self._is_stopping = True
        for session in list(self._open):
            session.stop()

    @staticmethod
    def session_request(line: bytes) -> dict[str, Any] | None:
        """Return the parameters of a request for a session. None for any other line."""
        # Most lines are not such a request, and need not be parsed.
        if b'"mcp"' not in line:
            return None
        with suppress(ValueError, TypeError, LookupError, RecursionError):
            request = json.loads(line)
            if request["method"] == METHOD:
                return dict(request.get("params") or {})
        return None

    async def serve(
        self, request: dict[str, Any], reader: StreamReader, writer: StreamWriter
    ) -> None:
        """Grant a request for a session and serve the connection until it ends, or refuse it.

        request: the parameters of the request, as `pump.pass_on` makes them.
        reader: has the lines of the client.
        writer: takes the lines for the client.
        """
        now = self._memory.clock()
        call_queue = CallQueue(lambda: self._memory, is_shared=True)
        session = McpSession(call_queue, began=now, last=now)
        # It counts as open from here on, so that `stop` ends it, too.
        self._open.add(session)
        alive_task = asyncio.create_task(_say_alive(writer, session))
        try:
            # The first import of the SDK takes a second, so it runs on a thread.
            server = await asyncio.to_thread(self._make_server, request, session, writer)
            writer.write(_GRANT_LINE)
            await self._converse(server, session, reader, writer)
        except MemorandaError as refused:
            # The client's own process tells the client what is wrong with its request.
            _log.info("[mcp] a client is served by its own process: %s", refused)
            error = {"code": -32000, "message": str(refused)}
            writer.write(json.dumps({"jsonrpc": "2.0", "id": 1, "error": error}).encode() + b"\n")
        finally:
            alive_task.cancel()
            self._open.remove(session)

    async def _converse(
        self,
        server: _SessionServer,
        session: McpSession,
        reader: StreamReader,
        writer: StreamWriter,
    ) -> None:
        """Serve a connection until it ends, or until the daemon stops.

        server: the server for the session.
        session: the state of the client's session.
        reader: has the lines of the client.
        writer: takes the lines for the client.
        """
        from memoranda.serve.mcp import converse

        connection = server.connection

        def stop() -> None:
            session.call_queue.refuse_waiting()
            connection.end()

        # From now on the connection counts the requests that wait, and the daemon can end it.
        session.unanswered = lambda: connection.unanswered
        session.stop = stop
        # If the daemon began to stop while the server was made, it called the former `session.stop`,
        # which does nothing.
        if self._is_stopping:
            stop()
        reading_task = asyncio.create_task(_read_lines(reader, writer, connection, session))
        try:
            await converse(connection, server.registry, session.call_queue, server.identity)
        finally:
            reading_task.cancel()
            await asyncio.to_thread(session.call_queue.close)

    def _check_may_serve(self, request: dict[str, Any]) -> None:
        """Raise SessionRefused unless this daemon would serve the client as its own process would.

        request: the parameters of the request.
        """
        # The session that is asked for is one of the open ones already.
        if self._is_stopping or len(self._open) > _MAX_SESSIONS:
            raise SessionRefused("this daemon serves no more sessions")
        if request.get("program") != program():
            raise SessionRefused("this daemon is of another version or installation")
        if not self._has_settings(request.get("settings")):
            raise SessionRefused("this daemon has another configuration, environment or time zone")
        agent = request.get("agent")
        is_agent_name = isinstance(agent, str) and is_agent(agent)
        if agent is not None and not is_agent_name:
            raise SessionRefused(f'invalid agent "{agent}"')
        only_agent = self._memory.agent
        if only_agent is not None and only_agent != agent:
            raise SessionRefused(f'this daemon serves agent "{only_agent}" alone')

    def _has_settings(self, digest: Any) -> bool:
        """Whether this daemon has the settings with this digest, which the client read."""
        if digest == self._memory.settings.digest():
            return True
        # The file of settings may have changed since the daemon last read it.
        current_settings = self._memory.at_once(lambda: self._memory.settings)
        return digest == current_settings.digest()

    def _make_server(
        self, request: dict[str, Any], session: McpSession, writer: StreamWriter
    ) -> _SessionServer:
        """Make the server for a session.

        request: the parameters of the request.
        session: the session to serve. Its facts are updated at each request.
        writer: takes the lines for the client.

        Raises SessionRefused, and MemorandaError for wrong arguments such as an unknown toolset.
        """
        self._check_may_serve(request)
        registry = self._registry_for(request["tools"], request["like"])
        if request.get("plain_schemas"):
            registry = registry.with_plain_schemas()
        # This imports the SDK.
        from memoranda.serve.mcp import ClientConnection, ServerIdentity

        def write(line: bytes) -> None:
            if not writer.is_closing():
                writer.write(line + b"\n")

        def record_request(agent: str, client: str) -> None:
            session.agent = agent
            session.client = client
            session.last = self._memory.clock()

        identity = ServerIdentity(
            name=request["name"],
            version=__version__,
            agent=request.get("agent"),
            clients=self._memory.settings.agents,
            on_request=record_request,
        )
        connection = ClientConnection(write, on_answer=session.answered.set)
        return _SessionServer(registry, connection, identity)


class _SessionServer(NamedTuple):
    """The parts that serve one session.

    registry: its tools.
    connection: the connection to the client.
    identity: the name of the server, and how it finds the agent that calls.
    """

    registry: Registry
    connection: ClientConnection
    identity: ServerIdentity


async def _say_alive(writer: StreamWriter, session: McpSession) -> None:
    """Send ALIVE each second while the client waits for an answer.

    A daemon that was stopped (SIGSTOP) sends nothing. So the pump notices that it was stopped.

    writer: takes the lines for the client.
    session: tells whether requests wait.
    """
    while not writer.is_closing():
        if session.unanswered():
            writer.write(ALIVE)
        await asyncio.sleep(_ALIVE_EVERY)


async def _read_lines(
    reader: StreamReader, writer: StreamWriter, connection: ClientConnection, session: McpSession
) -> None:
    """Pass the client's lines to `connection` until the client has sent everything.

    Nothing is read while too many requests wait for answers, or the client does not take them.

    reader: has the lines of the client.
    writer: takes the lines for the client.
    connection: takes the lines as requests.
    session: the session that ends if the client is gone.
    """
    lines = Lines()
    with suppress(ConnectionError):
        # A longer line ends the session. The pump ends it itself before it sends so much.
        while len(lines.rest) <= LIMIT:
            block = await reader.read(BLOCK)
            if not block:
                break
            for line in lines.feed(block):
                if line == STOP:
                    return session.stop()
                if line == END:
                    return connection.end()
                # An answer makes room for another request.
                while connection.unanswered >= _MAX_UNANSWERED:
                    session.answered.clear()
                    await session.answered.wait()
                connection.receive(line)
            await writer.drain()
    # Neither END nor STOP came: the pump was killed, and nobody waits for the answers.
    session.stop()
