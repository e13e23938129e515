"""MCP sessions on the daemon's socket: clients whose `memory mcp` passes on what they say
(pump.py).

The first line of such a connection is a request with the method `mcp`. Once it is granted, MCP's
lines go both ways, served by the code that serves stdin and stdout, with the memory the daemon has
open.
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
from typing import TYPE_CHECKING, Any

from memoranda import __version__
from memoranda.errors import MemorandaError
from memoranda.note.project_access import is_agent
from memoranda.serve.pump import ALIVE, BLOCK, END, LIMIT, METHOD, STOP, Lines, program
from memoranda.serve.turns import CallQueue

if TYPE_CHECKING:
    from memoranda.engine import MemorySession
    from memoranda.faces.tool import Registry
    from memoranda.serve.mcp import ClientConnection, ServerIdentity

# Sessions; the clients beyond are served by processes of their own.
_AT_ONCE = 128
# Requests of one session that are in hand before more is read.
_UNANSWERED = 1000
# Seconds between two signs of life to the daemon.
_ALIVE_EVERY = 1.0
_log = logging.getLogger("memoranda.daemon")
_GRANTED = b'{"jsonrpc":"2.0","id":1,"result":{}}\n'


class SessionRefused(MemorandaError):
    """The daemon does not serve this client; its own process does."""

    code = "refused"


@dataclass(slots=True, eq=False)
class McpSession:
    """A connected client.

    began: when it connected.
    last: when it last asked for something.
    agent, client: who it says it is. Empty if it has not said so yet.
    """

    turns: CallQueue
    began: datetime
    last: datetime
    agent: str | None = None
    client: str = ""
    stop: Callable[[], None] = lambda: None
    unanswered: Callable[[], int] = lambda: 1
    """How many requests wait for an answer; that for the session is the first."""
    answered: asyncio.Event = field(default_factory=asyncio.Event)


class McpSessions:
    """The sessions of one daemon. `memory` is what its socket serves, `registry_for` makes the
    tools of some toolsets in the manner of a preset (None: our own)."""

    def __init__(
        self, memory: MemorySession, registry_for: Callable[[Sequence[str], str | None], Registry]
    ):
        self._memory = memory
        self._registry_for = registry_for
        self._open: set[McpSession] = set()
        self._is_stopping = False

    def connected(self) -> list[McpSession]:
        """The open sessions, the newest first."""
        return sorted(self._open, key=lambda session: session.began, reverse=True)

    def stop(self) -> None:
        """Let running calls end, answer those that wait with `Stopping`, and grant nothing more."""
        self._is_stopping = True
        for session in list(self._open):
            session.stop()

    @staticmethod
    def asked_by(line: bytes) -> dict[str, Any] | None:
        """The parameters of a request for a session. None if the line is not such a request."""
        with suppress(ValueError, TypeError, LookupError, RecursionError):
            if b'"mcp"' in line and (request := json.loads(line))["method"] == METHOD:
                return dict(request.get("params") or {})
        return None

    async def serve(
        self, request: dict[str, Any], reader: StreamReader, writer: StreamWriter
    ) -> None:
        """Grant `request` and serve the connection until the session has ended; or refuse it."""
        now = self._memory.clock()
        session = McpSession(CallQueue(lambda: self._memory, is_shared=True), now, now)
        self._open.add(session)
        alive = asyncio.create_task(_say_alive(writer, session))
        try:
            registry, connection, identity = await asyncio.to_thread(
                self._granted, request, session, writer
            )
            writer.write(_GRANTED)
            session.unanswered = lambda: connection.unanswered
            from memoranda.serve.mcp import converse

            def stop() -> None:
                session.turns.refuse_waiting()
                connection.end()

            session.stop = stop
            if self._is_stopping:
                stop()
            hearing = asyncio.create_task(_hear(reader, writer, connection, session))
            try:
                await converse(connection, registry, session.turns, identity)
            finally:
                hearing.cancel()
                await asyncio.to_thread(session.turns.close)
        except MemorandaError as refused:
            # The client's own process reports a wrong request.
            _log.info("[mcp] a client is served by its own process: %s", refused)
            error = {"code": -32000, "message": str(refused)}
            writer.write(json.dumps({"jsonrpc": "2.0", "id": 1, "error": error}).encode() + b"\n")
        finally:
            alive.cancel()
            self._open.remove(session)

    def _granted(
        self, request: dict[str, Any], session: McpSession, writer: StreamWriter
    ) -> tuple[Registry, ClientConnection, ServerIdentity]:
        """The server for a request; the first time this takes a second, for the SDK. Raises
        SessionRefused, and MemorandaError for what is wanted wrongly."""
        if self._is_stopping or len(self._open) > _AT_ONCE:
            raise SessionRefused("this daemon serves no more sessions")
        if request.get("program") != program():
            raise SessionRefused("this daemon is of another version or installation")
        if request.get("settings") != self._memory.settings.digest():
            # With what its file says by now
            now = self._memory.at_once(lambda: self._memory.settings)
            if request.get("settings") != now.digest():
                raise SessionRefused(
                    "this daemon has another configuration, environment or time zone"
                )
        agent = request.get("agent")
        if agent is not None and not (isinstance(agent, str) and is_agent(agent)):
            raise SessionRefused(f'invalid agent "{agent}"')
        if self._memory.agent not in (None, agent):
            raise SessionRefused(f'this daemon serves agent "{self._memory.agent}" alone')
        registry = self._registry_for(request["tools"], request["like"])
        if request.get("plain_schemas"):
            registry = registry.with_plain_schemas()
        from memoranda.serve.mcp import ClientConnection, ServerIdentity

        def write(line: bytes) -> None:
            if not writer.is_closing():
                writer.write(line + b"\n")

        def met(agent: str, client: str) -> None:
            session.agent, session.client, session.last = agent, client, self._memory.clock()

        identity = ServerIdentity(
            request["name"], __version__, agent, self._memory.settings.agents, met
        )
        return registry, ClientConnection(write, session.answered.set), identity


async def _say_alive(writer: StreamWriter, session: McpSession) -> None:
    """Tell the process of a waiting client that this one is alive. A process that is stopped
    cannot.
    """
    while not writer.is_closing():
        if session.unanswered():
            writer.write(ALIVE)
        await asyncio.sleep(_ALIVE_EVERY)


async def _hear(
    reader: StreamReader, writer: StreamWriter, connection: ClientConnection, session: McpSession
) -> None:
    """Take what the client says until it has said all; not faster than it is answered and takes its
    answers.
    """
    lines = Lines()
    with suppress(ConnectionError):
        while (block := await reader.read(BLOCK)) and len(lines.rest) <= LIMIT:
            for line in lines.feed(block):
                if line == STOP:
                    return session.stop()
                if line == END:
                    return connection.end()
                while connection.unanswered >= _UNANSWERED:
                    session.answered.clear()
                    await session.answered.wait()
                connection.receive(line)
            await writer.drain()
    # The process of the client was killed, and what waits with it
    session.stop()
