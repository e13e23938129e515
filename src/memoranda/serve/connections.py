"""Limits the connections of the HTTP server, and the time that a request's header may take.

A client that sends nothing cannot keep others out. A full server closes the connection that has
waited longest for its client. Connections that never got an answer are closed before others.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""The hosts of addresses that only programs on this machine reach."""
HEADER_SECONDS = 30.0
"""The header of a request may take this many seconds. They begin with the connection, and for later
requests with the first byte."""
CONNECTIONS = 1000
"""A server may have this many open connections."""
FOR_ADDRESS = 250
"""One IP address may have this many open connections. This machine may have any number, because all
clients behind a tunnel come from it."""
_REFUSALS = {
    408: f"The request's header did not come within {HEADER_SECONDS:.0f} s.",
    503: "Too many calls are in progress. Try again in a moment.",
}


class Connection(H11Protocol):
    """A connection that uvicorn serves, within the limits of this module."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept the connection.

        If there are too many, close one that waits, or refuse this one.
        """
        super().connection_made(_BatchedWrites(transport, self.loop))  # type: ignore[arg-type]
        # Refuses the request if its header takes too long. None while no header is expected.
        self._header_timer: asyncio.TimerHandle | None = None
        # When the client last sent something, on the clock of the event loop.
        self._last_received = self.loop.time()
        self._was_answered = False
        self._start_header_timer()
        candidates = self._candidates_to_close()
        if candidates:
            self._make_room(candidates)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection.

        exc: the error that ended the connection. None if one of the two sides closed it.
        """
        self._stop_header_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take data from the client, and watch the time of a request's header.

        The time of a body is watched by `middleware.in_time`.
        """
        self._last_received = self.loop.time()
        request_before = self.cycle
        super().data_received(data)
        if self.transport.is_closing():
            return
        # uvicorn makes a new cycle as soon as a header is complete.
        is_header_complete = self.cycle is not request_before
        if is_header_complete:
            self._stop_header_timer()
        elif self._waits_for_client and not self._reads_body:
            self._start_header_timer()

    def on_response_complete(self) -> None:
        """Go on with the next request, and record that this connection has had an answer."""
        self._was_answered = True
        super().on_response_complete()

    @property
    def _reads_body(self) -> bool:
        """Whether a request's header has come and its body has not."""
        # A cycle is uvicorn's object for one request and its answer. None before the first.
        if self.cycle is None or self.cycle.response_complete:
            return False
        return self.cycle.more_body

    @property
    def _waits_for_client(self) -> bool:
        """Whether the client must send something before the server can go on."""
        return self.cycle is None or self.cycle.response_complete or self._reads_body

    def _start_header_timer(self) -> None:
        """Begin to wait for the header of a request, unless the wait has begun already."""
        if self._header_timer is None:
            self._header_timer = self.loop.call_later(HEADER_SECONDS, self._refuse, 408)

    def _stop_header_timer(self) -> None:
        """Wait no longer for the header of a request."""
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _candidates_to_close(self) -> list[Connection]:
        """Return the connections to choose from if one must be closed. Empty if there is room.

        They are the connections of this one's address if it has too many, or of the busiest address
        if the server is full.
        """
        # With so few connections, no limit is reached, and nothing need be counted.
        if len(self.connections) <= FOR_ADDRESS:
            return []
        other_connections: list[Any] = [
            connection for connection in self.connections if connection is not self
        ]
        connections_by_host: dict[str, list[Any]] = {}
        for connection in other_connections:
            connections_by_host.setdefault(_host(connection), []).append(connection)
        host = _host(self)
        same_host = connections_by_host.get(host, [])
        if host not in LOOPBACK and len(same_host) >= FOR_ADDRESS:
            return same_host
        if len(other_connections) < CONNECTIONS:
            return []
        return max(connections_by_host.values(), key=len)

    def _make_room(self, candidates: Iterable[Connection]) -> None:
        """Close one of the candidates that waits for its client.

        If none waits, refuse this connection.
        """
        waiting = [connection for connection in candidates if connection._waits_for_client]
        if not waiting:
            self._refuse(503)
            return
        # A connection that never got an answer goes first (False sorts before True), then the one
        # that was silent longest.
        least_used = min(
            waiting, key=lambda connection: (connection._was_answered, connection._last_received)
        )
        self.connections.discard(least_used)
        least_used.transport.close()

    def _refuse(self, status: int) -> None:
        """Answer with an HTTP status without reading a request, and close the connection."""
        error = {"code": -32000, "message": _REFUSALS[status]}
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
    """Return the IP address that a connection comes from. "" if it is unknown."""
    if connection.client is None:
        return ""
    return connection.client[0]


class _BatchedWrites:
    """A transport that collects writes, and sends them once at the end of the event loop's turn.

    The header and the body of an answer are then one packet, not two that wait for each other.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop):
        self._transport = transport
        self._loop = loop
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Send `data` at the end of this turn of the event loop."""
        if not self._pieces:
            self._loop.call_soon(self._flush)
        self._pieces.append(data)

    def close(self) -> None:
        """Send everything that was written, and close the transport."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._pieces:
            data = b"".join(self._pieces)
            self._pieces.clear()
            self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
