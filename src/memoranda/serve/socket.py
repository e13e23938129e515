"""Serves the daemon's Unix socket (contract 001, 13).

A request and its answer are each one JSON object on a line, as JSON-RPC or in a simpler form:
`{"method": "search", "params": {"query": "x"}}`. `Protocol` answers the requests, `SocketServer`
keeps the connections, and lets requests in progress end before the daemon stops.
"""

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
from memoranda.serve.call_queue import InternalError
from memoranda.serve.sessions import McpSessions
from memoranda.text.outside import outside_name

if TYPE_CHECKING:
    from memoranda.engine import MemorySession
    from memoranda.faces.tool import Registry

Methods = Mapping[str, Callable[["MemorySession", dict[str, Any]], Any]]
"""Methods that the socket answers in addition to tools, by name. Each is called with the owner's
memory and the request's `params`."""

LIMIT = 1 << 20
"""A request may have this many bytes, without its line break."""

# Codes of errors in JSON-RPC.
_NOT_JSON = -32700
_NO_REQUEST = -32600
_NO_TOOL = -32601
_BAD_PARAMS = -32602
_TOOL_ERROR = -32000
# An error repeats at most this many characters of the name of an agent.
_MAX_NAME_CHARACTERS = 100
UNNAMED = "unknown"
"""The agent of a caller that names no agent."""
# Where the arguments of a `tools/call` may be, in the order in which they are looked for.
_ARGUMENT_KEYS = ("params", "arguments")
_PLACE_OF_AGENT = 'agent is a key of the request, beside method: {"method": …, "agent": "NAME"}'
_log = logging.getLogger("memoranda.serve")
# When the server stops, clients have this many seconds to take their answers.
_LAST_ANSWER_SECONDS = 5.0
# A client has this many seconds to send the rest of a line that is too long.
_LONG_LINE_SECONDS = 5.0


class _Refused(Exception):
    """A request cannot be carried out.

    code: the code of the error in JSON-RPC.
    text: the message.
    """

    def __init__(self, code: int, text: str):
        super().__init__(text)
        self.code = code


class Protocol:
    """Answers requests on the socket.

    memory: the memory of the home's owner.
    registry: the tools. They use the memory as the agent that the request names.
    methods: further methods, which use the memory as the owner.
    """

    def __init__(self, memory: MemorySession, registry: Registry, methods: Methods | None = None):
        self._memory = memory
        self._registry = registry
        self._methods = methods or {}

    def answer(self, line: bytes) -> bytes:
        """Carry out the request in a line, and return the answer as a line.

        An invalid request is answered with an error; nothing is raised for it.
        """
        try:
            request = parse_json(line)
        except (ValueError, RecursionError) as error:
            return _error(_Refused(_NOT_JSON, f"parse error: {error}"), None, b'"jsonrpc"' in line)
        if not isinstance(request, dict):
            is_batch = _is_batch(request)
            text = "batches are not supported" if is_batch else "not an object"
            return _error(_Refused(_NO_REQUEST, f"parse error: {text}"), None, is_batch)
        is_rpc = request.get("jsonrpc") == "2.0"
        # A request in the simpler form may lack an id. Its answer then has 0.
        request_id = request.get("id", 0)
        if not _is_id(request_id):
            text = "parse error: id must be a number, a string or null"
            return _error(_Refused(_NO_REQUEST, text), None, is_rpc)
        try:
            result = self._result_of(request)
        except _Refused as error:
            return _error(error, request_id, is_rpc)
        except Exception:
            # The outermost loop of this transport: errors are reported, and the connection stays.
            _log.exception("A call failed")
            return _error(_Refused(_TOOL_ERROR, str(InternalError())), request_id, is_rpc)
        return _line({"jsonrpc": "2.0"} if is_rpc else {}, id=request_id, result=result)

    def _result_of(self, request: dict[str, Any]) -> Any:
        """Run the tool or the method of a request, and return its result. Raises _Refused."""
        method = request.get("method", "")
        params = request.get("params")
        if not isinstance(method, str):
            raise _Refused(_NO_REQUEST, "parse error: method must be a string")
        if params is not None and not isinstance(params, dict):
            raise _Refused(_BAD_PARAMS, "params must be an object")
        params = params or {}
        memory = self._memory_of_caller(request)
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
        is_known_tool = name in self._registry.tools
        raise _Refused(_TOOL_ERROR if is_known_tool else _NO_TOOL, reply.text)

    def _memory_of_caller(self, request: dict[str, Any]) -> MemorySession:
        """Return the memory as the agent that a request names may use it. Raises _Refused.

        A request that names no agent comes from the agent UNNAMED, never from the owner.
        """
        only_agent = self._memory.agent
        agent = request.get("agent")
        other_keys = {key: value for key, value in request.items() if key != "agent"}
        # If a key such as `Agent` were ignored, the caller would act as another agent than it
        # thinks.
        if _names_agent(other_keys):
            raise _Refused(_BAD_PARAMS, _PLACE_OF_AGENT)
        if agent is not None:
            _check_agent(agent, only_agent)
        # The names that a client gives itself and its session are for the ledger.
        names = {}
        for key in ("client", "session"):
            name = request.get(key)
            if isinstance(name, str) and name.isprintable():
                names[key] = name
        return self._memory.as_caller(only_agent or agent or UNNAMED, **names)

    def _check_place_of_agent(self, name: str, *places: dict[str, Any]) -> None:
        """Raise _Refused if a request names its agent among the arguments of a tool.

        If the key were ignored, the caller would act as another agent than it thinks.

        name: the tool. It may have an argument `agent`, which is allowed.
        places: the parts of the request where the key does not belong.
        """
        tool = self._registry.tools.get(name)
        has_argument_agent = tool is not None and "agent" in tool.schema.get("properties", {})
        names_agent = any(_names_agent(place) for place in places)
        if names_agent and not has_argument_agent:
            raise _Refused(_BAD_PARAMS, _PLACE_OF_AGENT)


def _is_id(value: Any) -> bool:
    """Whether a value can be the id of a request: a number, a text or null."""
    # In Python, but not in JSON, a truth value is a number.
    return isinstance(value, int | float | str | None) and not isinstance(value, bool)


def _check_agent(agent: Any, only_agent: str | None) -> None:
    """Raise _Refused unless `agent` is the name of an agent that the daemon serves.

    only_agent: the only agent that it serves. None if it serves any agent.
    """
    if only_agent is not None and str(agent).lower() != only_agent:
        raise _Refused(_BAD_PARAMS, f'this daemon serves agent "{only_agent}" alone')
    # A name that seems to give orders to its reader is not allowed.
    is_allowed = isinstance(agent, str) and is_agent(agent) and outside_name(agent) == agent
    if not is_allowed:
        raise _Refused(_BAD_PARAMS, f'invalid agent "{str(agent)[:_MAX_NAME_CHARACTERS]}"')


def _names_agent(part: Mapping[str, Any]) -> bool:
    """Whether a part of a request has the key `agent`, in any case."""
    return any(key.lower() == "agent" for key in part)


def _tool_call(params: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the name and the arguments of a `tools/call`. Raises _Refused.

    params: the parameters of the request. The arguments are in its `params` or its `arguments`, or
        they are its other keys: `{"name": "search", "query": "x"}`.
    """
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
    """Return the line that answers a request with an error.

    error: the reason, with its code.
    identity: the id of the request. None if it cannot be read: the answer has null, or 0 if the
        request is not JSON-RPC.
    is_rpc: whether to answer as JSON-RPC 2.0 does.
    """
    if is_rpc:
        return _line(
            {"jsonrpc": "2.0"}, id=identity, error={"code": error.code, "message": str(error)}
        )
    if identity is None and error.code in (_NOT_JSON, _NO_REQUEST):
        identity = 0
    return _line({}, id=identity, error=str(error))


def _line(head: dict[str, Any], **reply: Any) -> bytes:
    """Return a JSON object as a line: the keys of `head`, then the keys of `reply`."""
    text = json.dumps(head | reply, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace") + b"\n"


def _is_batch(value: Any) -> bool:
    """Whether a JSON value is a list of several requests, a batch of JSON-RPC."""
    if not isinstance(value, list):
        return False
    return any(isinstance(item, dict) and "jsonrpc" in item for item in value)


class Listener:
    """A listening socket at `path`, which only this user can open (mode 0600).

    A socket that an ended process left is replaced. Raises StorageError if a program listens on it.

    Make this before other threads run. If the path is too long for the system, the process changes
    its working folder for a moment, to bind the socket by its name alone.
    """

    def __init__(self, path: Path):
        self.path = path
        with suppress(FileNotFoundError):
            _remove_old_socket(path)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # Only the owner's programs may use the socket, from its first moment on.
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
        """Stop listening, and remove the socket's file, unless another daemon has replaced it."""
        self.socket.close()
        with suppress(FileNotFoundError):
            if os.lstat(self.path).st_ino == self._inode:
                os.unlink(self.path)


def _remove_old_socket(path: Path) -> None:
    """Remove the socket that an ended process left at `path`.

    Raises FileNotFoundError if nothing is there. Raises StorageError if a program listens on the
    socket, or if something else is there.
    """
    if not stat.S_ISSOCK(os.lstat(path).st_mode):
        raise StorageError(path.name, "something other than a socket is there")
    # Nobody listens on the socket of an ended process, so connecting fails.
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe, suppress(OSError):
        from_folder(path, probe.connect)
        raise StorageError(path.name, "another program listens on it")
    os.unlink(path)


class SocketServer:
    """Serves the connections of `listener`.

    answer: carries out the request in a line, and returns the answer as a line. It is called on one
        of `threads`.
    connection_context: makes a context that is open during each connection.
    sessions: serves connections that ask for MCP. None means that they are not served.
    """

    def __init__(
        self,
        listener: Listener,
        answer: Callable[[bytes], bytes],
        connection_context: Callable[[], AbstractContextManager[object]],
        threads: ThreadPoolExecutor,
        sessions: McpSessions | None = None,
    ):
        self._listener = listener
        self._answer = answer
        self._connection_context = connection_context
        self._threads = threads
        self._mcp_sessions = sessions
        # The task of each connection, and those tasks that have a request in progress.
        self._connections: set[asyncio.Task[None]] = set()
        self._busy: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._stopping = False
        self.quiet_since: float | None = None
        """Since when no client is connected, on the clock of the event loop. None while one is."""

    @property
    def clients(self) -> int:
        """How many clients are connected."""
        return len(self._connections)

    async def start(self) -> None:
        """Begin to accept connections."""
        self.quiet_since = asyncio.get_running_loop().time()
        self._server = await asyncio.start_unix_server(
            self._serve_connection, sock=self._listener.socket, limit=LIMIT
        )

    async def stop(self) -> None:
        """Stop serving.

        Requests in progress are answered. Then all connections are closed and the socket is removed.
        """
        if self._server is not None:
            self._server.close()
        for task in self._connections - self._busy:
            task.cancel()
        self._stopping = True
        if self._connections:
            _, unfinished = await asyncio.wait(self._connections, timeout=_LAST_ANSWER_SECONDS)
            for task in unfinished:
                task.cancel()
        await asyncio.to_thread(self._threads.shutdown)
        self._listener.close()

    async def _serve_connection(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Serve one connection until the client closes it or the server stops.

        reader: has the lines of the client.
        writer: takes the lines for the client.
        """
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        self.quiet_since = None
        try:
            with self._connection_context():
                await self._serve_lines(task, reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            # The client has closed the connection, or the server stops.
            pass
        finally:
            self._connections.discard(task)
            self._busy.discard(task)
            if not self._connections:
                self.quiet_since = asyncio.get_running_loop().time()
            writer.close()
            with suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _serve_lines(
        self, task: asyncio.Task[None], reader: StreamReader, writer: StreamWriter
    ) -> None:
        """Answer each line of a connection, or hand the connection to an MCP session.

        task: the task of the connection. It is marked while a request is in progress.
        reader: has the lines of the client.
        writer: takes the lines for the client.
        """
        loop = asyncio.get_running_loop()
        while not self._stopping:
            try:
                line = await reader.readuntil(b"\n")
            except asyncio.IncompleteReadError as ended:
                # The client has sent everything. The last line may lack its line break.
                line = ended.partial
                if not line.strip():
                    return
            except asyncio.LimitOverrunError:
                return await _refuse_long_line(reader, writer)
            if not line.strip():
                continue
            self._busy.add(task)
            if self._mcp_sessions is not None:
                request_for_session = self._mcp_sessions.session_request(line)
                if request_for_session is not None:
                    return await self._mcp_sessions.serve(request_for_session, reader, writer)
            writer.write(await loop.run_in_executor(self._threads, self._answer, line))
            await writer.drain()
            self._busy.discard(task)


async def _refuse_long_line(reader: StreamReader, writer: StreamWriter) -> None:
    """Answer a line over LIMIT with an error, and read it to its end.

    reader: has the lines of the client.
    writer: takes the lines for the client.
    """
    refused = _Refused(_NO_REQUEST, f"request too large (limit {LIMIT} bytes)")
    writer.write(_error(refused, None, False))
    # If the connection were closed while the client sends, it would not read the answer.
    with suppress(TimeoutError):
        async with asyncio.timeout(_LONG_LINE_SECONDS):
            while True:
                block = await reader.read(LIMIT)
                if not block or b"\n" in block:
                    return
