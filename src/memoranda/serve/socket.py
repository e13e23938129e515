"""The daemon's Unix socket: one JSON object a line each way, connections, and a stop that answers
what is in progress (contract 001, 13)."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import stat
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoranda.engine.daemon_client import from_folder
from memoranda.errors import StorageError
from memoranda.faces.agent.session import call_tool, ends_batch, parse_json, result_data, tool_list
from memoranda.note.project_access import is_agent
from memoranda.serve.sessions import McpSessions
from memoranda.serve.turns import InternalError
from memoranda.text.gate import default_rules

if TYPE_CHECKING:
    from memoranda.engine import MemorySession
    from memoranda.faces.tool import Registry

Methods = Mapping[str, Callable[["MemorySession", dict[str, Any]], Any]]
"""Methods that the socket answers in addition to tools: functions of the caller's memory and the
request's `params`, by method."""

LIMIT = 1 << 20
"""Bytes a request may have, its line break apart."""

_NOT_JSON = -32700
_NO_REQUEST = -32600
_NO_TOOL = -32601
_BAD_PARAMS = -32602
_TOOL_ERROR = -32000
# Characters that count of what a client calls itself and its session.
_SAID = 100
UNNAMED = "unknown"
"""The agent that a caller is who names none."""
_ARGUMENT_KEYS = ("params", "arguments")
_log = logging.getLogger("memoranda.serve")
# Seconds for a client to take its answers once the server stops
_LAST_WORDS = 5.0
# Seconds for a client to send the rest of a line that is too long
_REST = 5.0


class _Refused(Exception):
    """A request that cannot be carried out: its JSON-RPC `code`, and the text for everybody."""

    def __init__(self, code: int, text: str):
        super().__init__(text)
        self.code = code


class Protocol:
    """Answers requests on the socket.

    registry: the tools, called for the agents that the callers name.
    methods: further methods, which get the owner's `memory`.
    """

    def __init__(self, memory: MemorySession, registry: Registry, methods: Methods | None = None):
        self._memory = memory
        self._registry = registry
        self._methods = methods or {}

    def answer(self, line: bytes) -> bytes:
        """The reply to one line, with its line break. Never raises for what a client sent."""
        try:
            request = parse_json(line)
        except (ValueError, RecursionError) as error:
            return _error(_Refused(_NOT_JSON, f"parse error: {error}"), None, b'"jsonrpc"' in line)
        if not isinstance(request, dict):
            if isinstance(request, list):
                requests = request
            else:
                requests = []
            is_batch = any(isinstance(item, dict) and "jsonrpc" in item for item in requests)
            if is_batch:
                text = "batches are not supported"
            else:
                text = "not an object"
            return _error(_Refused(_NO_REQUEST, f"parse error: {text}"), None, is_batch)
        is_rpc = request.get("jsonrpc") == "2.0"
        identity = request.get("id", 0)
        try:
            if isinstance(identity, bool) or not isinstance(identity, int | float | str | None):
                identity = None
                raise _Refused(_NO_REQUEST, "parse error: id must be a number, a string or null")
            result = self._result_of(request)
        except _Refused as error:
            return _error(error, identity, is_rpc)
        except Exception:
            # The outermost loop of this transport: errors are reported, and the connection stays.
            _log.exception("A call failed")
            return _error(_Refused(_TOOL_ERROR, str(InternalError())), identity, is_rpc)
        return _line({"jsonrpc": "2.0"} if is_rpc else {}, id=identity, result=result)

    def _result_of(self, request: dict[str, Any]) -> Any:
        """The result of a request. Raises _Refused."""
        method = request.get("method", "")
        params = request.get("params")
        if not isinstance(method, str):
            raise _Refused(_NO_REQUEST, "parse error: method must be a string")
        if params is not None and not isinstance(params, dict):
            raise _Refused(_BAD_PARAMS, "params must be an object")
        params = params or {}
        memory = self._caller(request)
        if method == "tools/list":
            return tool_list(self._registry)
        if method in self._methods:
            # The owner's own commands, on a socket that only the owner's programs reach.
            return self._methods[method](self._memory, params)
        if method == "tools/call":
            name, arguments = _tool_call(params)
        else:
            name = method
            arguments = params
        self._check_place_of_agent(name, params, arguments)
        reply = call_tool(self._registry, memory, name, arguments)
        if not ends_batch(reply):
            return result_data(reply)
        raise _Refused(_TOOL_ERROR if name in self._registry.tools else _NO_TOOL, reply.text)

    def _caller(self, request: dict[str, Any]) -> MemorySession:
        """The memory as the caller that a request names; who names nobody is an agent without a
        name, never the owner. Raises _Refused."""
        own_agent = self._memory.agent
        agent = request.get("agent")
        if agent is not None and own_agent is not None and str(agent).lower() != own_agent:
            raise _Refused(_BAD_PARAMS, f'this daemon serves agent "{own_agent}" alone')
        if agent is not None and not (isinstance(agent, str) and is_agent(agent)):
            raise _Refused(_BAD_PARAMS, f'invalid agent "{str(agent)[:_SAID]}"')
        caller_keys = {"client": request.get("client"), "session": request.get("session")}
        by = {
            key: default_rules().redacted(value[:_SAID])
            for key, value in caller_keys.items()
            if isinstance(value, str) and value.isprintable()
        }
        return self._memory.as_caller(own_agent or agent or UNNAMED, **by)

    def _check_place_of_agent(self, name: str, *places: dict[str, Any]) -> None:
        """Raise _Refused for an `agent` among a tool's arguments.

        If it were ignored, the caller would act as another agent than it thinks.
        """
        tool = self._registry.tools.get(name)
        has_its_own = tool is not None and "agent" in tool.schema.get("properties", {})
        if not has_its_own and any("agent" in place for place in places):
            raise _Refused(
                _BAD_PARAMS,
                'agent is a key of the request, beside method: {"method": …, "agent": "NAME"}',
            )


def _tool_call(params: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """(name, arguments) of a `tools/call`: the arguments are in `params`, in `arguments`, or flat
    beside `name`. Raises _Refused."""
    name = params.get("name", "")
    if not isinstance(name, str):
        raise _Refused(_BAD_PARAMS, "name must be a string")
    for key in _ARGUMENT_KEYS:
        arguments = params.get(key)
        if arguments is None:
            continue
        if not isinstance(arguments, dict):
            raise _Refused(_BAD_PARAMS, f"{key} must be an object")
        return name, arguments
    reserved = ("name", *_ARGUMENT_KEYS)
    return name, {key: value for key, value in params.items() if key not in reserved}


def _error(error: _Refused, identity: Any, is_rpc: bool) -> bytes:
    """The reply with an error; if its request cannot be identified, the id is 0, in JSON-RPC null."""
    if is_rpc:
        return _line(
            {"jsonrpc": "2.0"}, id=identity, error={"code": error.code, "message": str(error)}
        )
    if identity is None and error.code in (_NOT_JSON, _NO_REQUEST):
        identity = 0
    return _line({}, id=identity, error=str(error))


def _line(head: dict[str, Any], **reply: Any) -> bytes:
    text = json.dumps(head | reply, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace") + b"\n"


class Listener:
    """A listening socket at `path`, mode 0600. A stale one is replaced, never one somebody listens
    on.

    A path too long for the system is bound by its name alone, from its folder; call this before
    other threads run. Raises StorageError.
    """

    def __init__(self, path: Path):
        self.path = path
        with suppress(FileNotFoundError):
            if not stat.S_ISSOCK(os.lstat(path).st_mode):
                raise StorageError(path.name, "something else than a socket is there")
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe, suppress(OSError):
                from_folder(path, probe.connect)
                raise StorageError(path.name, "another program listens on it")
            os.unlink(path)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        mask = os.umask(0o177)
        try:
            from_folder(path, self.socket.bind)
            self.socket.listen(128)
            self._inode = os.lstat(path).st_ino
        except OSError as error:
            self.socket.close()
            size = len(os.fsencode(path))
            raise StorageError(
                path.name, f"it cannot be bound, its path has {size} bytes: {error}"
            ) from None
        finally:
            os.umask(mask)

    def close(self) -> None:
        """Stop listening, and remove the socket if it is still this one."""
        self.socket.close()
        with suppress(FileNotFoundError):
            if os.lstat(self.path).st_ino == self._inode:
                os.unlink(self.path)


class SocketServer:
    """Serves the connections of `listener`.

    answer: makes the reply to the line of a request. It is called on one of `threads`.
    session: a context that is open during each connection.
    sessions: serves connections that ask for MCP.
    """

    def __init__(
        self,
        listener: Listener,
        answer: Callable[[bytes], bytes],
        session: Callable[[], AbstractContextManager[object]],
        threads: ThreadPoolExecutor,
        sessions: McpSessions | None = None,
    ):
        self._listener = listener
        self._answer = answer
        self._session = session
        self._threads = threads
        self._sessions = sessions
        # Whether each has a request in progress
        self._connections: dict[asyncio.Task[None], bool] = {}
        self._server: asyncio.Server | None = None
        self._stopping = False
        self.quiet_since: float | None = None
        """Since when nobody is connected, on the clock of the event loop; None while somebody is."""

    @property
    def clients(self) -> int:
        """How many are connected."""
        return len(self._connections)

    async def start(self) -> None:
        """Begin to accept connections."""
        self.quiet_since = asyncio.get_running_loop().time()
        self._server = await asyncio.start_unix_server(
            self._connected, sock=self._listener.socket, limit=LIMIT
        )

    async def stop(self) -> None:
        """Accept nothing more, answer the requests in progress, close all connections and remove the
        socket.
        """
        if self._server is not None:
            self._server.close()
        for task, is_busy in self._connections.items():
            if not is_busy:
                task.cancel()
        self._stopping = True
        if self._connections:
            _, late = await asyncio.wait(self._connections, timeout=_LAST_WORDS)
            for task in late:
                task.cancel()
        await asyncio.to_thread(self._threads.shutdown)
        self._listener.close()

    async def _connected(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections[task] = False
        self.quiet_since = None
        try:
            with self._session():
                while not self._stopping:
                    try:
                        line = await reader.readuntil(b"\n")
                    except asyncio.IncompleteReadError as ended:
                        # The last line need not end in a line break
                        line = ended.partial
                        if not line.strip():
                            return
                    except asyncio.LimitOverrunError:
                        refused = _Refused(_NO_REQUEST, f"request too large (limit {LIMIT} bytes)")
                        writer.write(_error(refused, None, False))
                        # Cut off while it sends, it would not come to read its answer
                        with suppress(TimeoutError):
                            async with asyncio.timeout(_REST):
                                while (block := await reader.read(LIMIT)) and b"\n" not in block:
                                    pass
                        return
                    if not line.strip():
                        continue
                    self._connections[task] = True
                    if (
                        self._sessions is not None
                        and (session_request := self._sessions.asked_by(line)) is not None
                    ):
                        return await self._sessions.serve(session_request, reader, writer)
                    loop = asyncio.get_running_loop()
                    writer.write(await loop.run_in_executor(self._threads, self._answer, line))
                    await writer.drain()
                    self._connections[task] = False
        except (ConnectionError, asyncio.CancelledError):
            # The client has closed the connection
            pass
        finally:
            del self._connections[task]
            if not self._connections:
                self.quiet_since = asyncio.get_running_loop().time()
            writer.close()
            with suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()
