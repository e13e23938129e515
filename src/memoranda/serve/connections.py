"""The connections of the HTTP server: their number, and how long a request's header may take.

A client that sends nothing takes no place from others. A full server closes the connection that has
waited longest for its client, beginning with connections that never sent a whole request.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

LOOPBACK = ("127.0.0.1", "localhost", "::1")
HEADER_SECONDS = 30.0
"""Seconds for the header of a request, from the connection or from its first byte."""
CONNECTIONS = 1000
"""Connections a server has open."""
FOR_ADDRESS = 250
"""Those of one address; of this machine any number, as everybody behind a tunnel comes from it."""
_SENTENCES = {
    408: f"The request's header did not come within {HEADER_SECONDS:.0f} s.",
    503: "Too many calls are in progress. Try again in a moment.",
}


class Connection(H11Protocol):
    """One connection, as uvicorn serves it, within the limits above."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept the connection.

        If there are too many, close one that waits, or refuse this one.
        """
        super().connection_made(_OneWrite(transport, self.loop))  # type: ignore[arg-type]
        self._header_timer: asyncio.TimerHandle | None = None
        self._last = self.loop.time()
        self._was_answered = False
        self._expect_header()
        crowd = self._crowd()
        if crowd:
            self._make_room(crowd)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._header_came()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what came; the header has a time, and its body another (`in_time`)."""
        self._last = self.loop.time()
        request_before = self.cycle
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self.cycle is not request_before:
            self._header_came()
        elif self._waits_for_client and not self._reads_body:
            self._expect_header()

    def on_response_complete(self) -> None:
        """Go on with the next request.

        A connection that was answered is closed last of those that wait.
        """
        self._was_answered = True
        super().on_response_complete()

    @property
    def _reads_body(self) -> bool:
        """Whether a request's header has come and its body has not."""
        return self.cycle is not None and not self.cycle.response_complete and self.cycle.more_body

    @property
    def _waits_for_client(self) -> bool:
        """Whether no whole request is being answered."""
        return self.cycle is None or self.cycle.response_complete or self._reads_body

    def _expect_header(self) -> None:
        if self._header_timer is None:
            self._header_timer = self.loop.call_later(HEADER_SECONDS, self._refuse, 408)

    def _header_came(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _crowd(self) -> list[Connection]:
        """The connections of which one must be closed. Empty while there is room."""
        if len(self.connections) <= FOR_ADDRESS:
            return []
        other_connections: list[Any] = [
            connection for connection in self.connections if connection is not self
        ]
        host = _host(self)
        if host not in LOOPBACK:
            connections_of_host = [
                this_connection
                for this_connection in other_connections
                if _host(this_connection) == host
            ]
            if len(connections_of_host) >= FOR_ADDRESS:
                return connections_of_host
        if len(other_connections) < CONNECTIONS:
            return []
        busiest_host, _ = Counter(map(_host, other_connections)).most_common(1)[0]
        return [
            this_connection
            for this_connection in other_connections
            if _host(this_connection) == busiest_host
        ]

    def _make_room(self, crowd: Iterable[Connection]) -> None:
        """Close one of `crowd` that waits for its client; if each is at work, refuse this one."""
        waiting = [connection for connection in crowd if connection._waits_for_client]
        if not waiting:
            self._refuse(503)
            return
        longest = min(waiting, key=lambda connection: (connection._was_answered, connection._last))
        self.connections.discard(longest)
        longest.transport.close()

    def _refuse(self, status: int) -> None:
        """Answer with `status` before any request was read, and close."""
        error = {"code": -32000, "message": _SENTENCES[status]}
        body = json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
            "content-type: application/json\r\n"
            f"content-length: {len(body)}\r\n"
            "connection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()


def _host(connection: Connection) -> str:
    """The address a connection comes from."""
    if connection.client is None:
        return ""
    return connection.client[0]


class _OneWrite:
    """A transport that sends what is written in one turn of the event loop in one piece.

    An answer's header and its body are then one packet, not two that wait for each other.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop):
        self._transport = transport
        self._loop = loop
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Send `data` once this turn of the event loop has ended."""
        if not self._pieces:
            self._loop.call_soon(self._flush)
        self._pieces.append(data)

    def close(self) -> None:
        """Send what is written, and close."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._pieces:
            data = b"".join(self._pieces)
            self._pieces.clear()
            self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
