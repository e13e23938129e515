"""The daemon's Unix socket: connections, lines, and a stop that answers what is in progress (contract 001, 13)."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from commonplace.engine.daemon_client import from_folder
from commonplace.errors import StorageError
from commonplace.serve.rpc import LIMIT, too_large
from commonplace.serve.sessions import McpSessions

Session = AbstractContextManager[object]

_LAST_WORDS = 5.0  # seconds for a client to take its answers once the server stops
_REST = 5.0  # seconds for a client to send the rest of a line that is too long


class Listener:
    """A listening socket at `path`, mode 0600. A stale one is replaced, never one somebody listens on.

    A path too long for the system is bound by its name alone, from its folder; call this before other threads
    run. Raises StorageError.
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
            raise StorageError(path.name, f"it cannot be bound, its path has {size} bytes: {error}") from None
        finally:
            os.umask(mask)

    def close(self) -> None:
        """Stop listening, and remove the socket if it is still this one."""
        self.socket.close()
        with suppress(FileNotFoundError):
            if os.lstat(self.path).st_ino == self._inode:
                os.unlink(self.path)


class SocketServer:
    """Serves the connections of `listener`. `answer` makes the reply line to a request line, on one of `threads`;
    `session` is entered for the time of each connection. Connections that ask for it become `sessions` of MCP."""

    def __init__(
        self, listener: Listener, answer: Callable[[bytes], bytes], session: Callable[[], Session],
        threads: ThreadPoolExecutor, sessions: McpSessions | None = None,
    ):  # fmt: skip
        self._listener = listener
        self._answer = answer
        self._session = session
        self._threads = threads
        self._sessions = sessions
        self._connections: dict[asyncio.Task[None], bool] = {}  # whether each has a request in progress
        self._server: asyncio.Server | None = None
        self._stopping = False

    async def start(self) -> None:
        """Begin to accept connections."""
        self._server = await asyncio.start_unix_server(self._connected, sock=self._listener.socket, limit=LIMIT)

    async def stop(self) -> None:
        """Accept no more, answer the requests in progress, close all connections and remove the socket."""
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
        try:
            with self._session():
                await self._converse(task, reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            pass  # the client has closed the connection
        finally:
            del self._connections[task]
            writer.close()
            with suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _converse(self, task: asyncio.Task[None], reader: StreamReader, writer: StreamWriter) -> None:
        while not self._stopping:
            try:
                line = await reader.readuntil(b"\n")
            except asyncio.IncompleteReadError as ended:
                line = ended.partial  # the last line need not end in a line break
                if not line.strip():
                    return
            except asyncio.LimitOverrunError:
                writer.write(too_large())
                with suppress(TimeoutError):  # cut off while it sends, it would not come to read its answer
                    async with asyncio.timeout(_REST):
                        while (block := await reader.read(LIMIT)) and b"\n" not in block:
                            pass
                return
            if not line.strip():
                continue
            self._connections[task] = True
            if self._sessions is not None and (asked := self._sessions.asked_by(line)) is not None:
                return await self._sessions.serve(asked, reader, writer)
            writer.write(await asyncio.get_running_loop().run_in_executor(self._threads, self._answer, line))
            await writer.drain()
            self._connections[task] = False
