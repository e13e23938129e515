"""Fetches client metadata documents of OAuth.

A client without registration uses as its id the https address of a JSON file that describes it. The
address comes from a stranger, so fetching it must do no harm. Only public IP addresses are asked,
and exactly the IP address that was checked. Redirects are not followed, and size and time are
limited.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

from memoranda.errors import MemorandaError

LIMIT = 5 * 1024
"""A document may have this many bytes. The specification of MCP names this size."""
SECONDS = 2.0
"""The largest number of seconds to connect, for each read, and to wait for a turn to fetch."""
# Documents are fetched over HTTPS only.
_PORT = 443
# For this many seconds, a document, or its failure, is remembered without fetching it again.
_REMEMBER_SECONDS = 600.0
_REMEMBER_FAILURE_SECONDS = 60.0
# At most this many documents are remembered, so that strangers cannot fill the memory.
_MAX_REMEMBERED = 200
# Only four documents are fetched at once, so that strangers cannot use all threads.
_FETCH_TURNS = threading.BoundedSemaphore(4)


# IPv6 addresses that a router translates to IPv4 addresses (RFC 6052).
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class NoDocument(MemorandaError):
    """An address may not be fetched, or has no valid document."""

    code = "invalid"


def fetch(url: str) -> dict[str, Any]:
    """Fetch the JSON object at the https address `url`. Raises NoDocument."""
    parts = _checked_parts(url)
    address = public_address(parts.hostname or "")
    if not _FETCH_TURNS.acquire(timeout=SECONDS):
        raise NoDocument("too many are asked for")
    try:
        data = _body(parts, address)
    except (OSError, http.client.HTTPException) as error:
        raise NoDocument(f"it cannot be fetched ({type(error).__name__})") from None
    finally:
        _FETCH_TURNS.release()

    if len(data) > LIMIT:
        raise NoDocument(f"it is larger than {LIMIT} bytes")
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise NoDocument("it is not JSON") from None
    if not isinstance(document, dict):
        raise NoDocument("it is no object")
    return document


def _checked_parts(url: str) -> SplitResult:
    """Split an address `https://HOST/PATH` into its parts. Raises NoDocument for another one."""
    parts = urlsplit(url)
    is_safe = parts.scheme == "https" and bool(parts.hostname) and not parts.username
    # Clients of one host differ by their path. A fragment would never be sent.
    has_path = len(parts.path) > 1
    if not is_safe or not has_path or parts.fragment:
        raise NoDocument("it must be https://HOST/PATH")
    try:
        # An address without a port means the usual one.
        port = _PORT if parts.port is None else parts.port
    except ValueError:
        raise NoDocument(f"it must be at port {_PORT}") from None
    if port != _PORT:
        raise NoDocument(f"it must be at port {_PORT}")
    return parts


def _body(parts: SplitResult, address: str) -> bytes:
    """Return the body of a server's answer, at most LIMIT + 1 bytes of it.

    A body of more than LIMIT bytes is too large. Raises NoDocument for an answer without a
    document, OSError and HTTPException.

    address: the IP address of the server.
    """
    connection = _FixedAddressConnection(parts.hostname or "", address)
    # The timeout of a socket is for each read. A slow server could send byte after byte, so the
    # whole exchange is limited, too: to the time of connecting and of one read.
    timer = threading.Timer(2 * SECONDS, connection.shut_down)
    timer.daemon = True
    timer.start()
    try:
        path = parts.path
        if parts.query:
            path += f"?{parts.query}"
        headers = {"Accept": "application/json", "User-Agent": "memoranda"}
        connection.request("GET", path, headers=headers)
        reply = connection.getresponse()
        if reply.status != 200:
            raise NoDocument(f"it answers with status {reply.status}")
        return reply.read(LIMIT + 1)
    finally:
        timer.cancel()
        connection.close()


def public_address(host: str) -> str:
    """Return an IP address of a host to connect to, of IPv4 if the host has one.

    Raises NoDocument unless all IP addresses of the host are public.
    """
    try:
        infos = socket.getaddrinfo(host, _PORT, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise NoDocument("its host is unknown") from None
    addresses = {str(socket_address[0]) for *_, socket_address in infos}
    for address in addresses:
        if not is_public(address):
            raise NoDocument("its host is not on the public Internet")
    ipv4_addresses = [address for address in addresses if ":" not in address]
    # The least one, so that the choice does not depend on the order of the answer.
    return min(ipv4_addresses or addresses)


def is_public(address: str) -> bool:
    """Whether an IP address belongs to the public Internet.

    An IPv6 address that contains an IPv4 address does not count, since it may lead to that one.
    """
    # `fe80::1%eth0` has the name of an interface after the `%`.
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        contains_ipv4 = ip.ipv4_mapped or ip.sixtofour or ip.teredo or ip in _NAT64
        if contains_ipv4:
            return False
    return ip.is_global and not ip.is_multicast


class _FixedAddressConnection(http.client.HTTPSConnection):
    """Connects to the IP address `address`, even if the host's name now leads to another one."""

    def __init__(self, host: str, address: str):
        super().__init__(host, _PORT, timeout=SECONDS, context=ssl.create_default_context())
        self.address = address

    def connect(self) -> None:
        """Connect to the address that was checked before, and speak TLS in the name of the host.

        Looking the name up again could lead to another address, one inside this network.
        """
        plain_socket = socket.create_connection((self.address, self.port), SECONDS)
        try:
            self.sock = ssl.create_default_context().wrap_socket(
                plain_socket, server_hostname=self.host
            )
        except BaseException:
            plain_socket.close()
            raise

    def shut_down(self) -> None:
        """End a connection that another thread reads from. Its read then fails."""
        if self.sock:
            self.sock.shutdown(socket.SHUT_RDWR)


class Documents:
    """Fetches documents, and remembers each for a while, or that it could not be fetched."""

    def __init__(self, fetch: Callable[[str], dict[str, Any]]):
        self._fetch = fetch
        self._results: dict[str, _FetchResult] = {}

    def get(self, url: str) -> dict[str, Any]:
        """Return the document at `url`. Raises NoDocument."""
        result = self._results.get(url)
        if result is None or time.monotonic() >= result.valid_until:
            result = self._fetch_result(url)
            if len(self._results) >= _MAX_REMEMBERED:
                self._results.clear()
            self._results[url] = result
        if isinstance(result.document, NoDocument):
            raise result.document
        return result.document

    def _fetch_result(self, url: str) -> _FetchResult:
        """Fetch a document, and say how long its content or its failure is remembered."""
        try:
            document = self._fetch(url)
        except NoDocument as failure:
            return _FetchResult(time.monotonic() + _REMEMBER_FAILURE_SECONDS, failure)
        return _FetchResult(time.monotonic() + _REMEMBER_SECONDS, document)


class _FetchResult(NamedTuple):
    """The result of fetching a document.

    valid_until: when it must be fetched again, in seconds of `time.monotonic`.
    document: the document, or the error.
    """

    valid_until: float
    document: dict[str, Any] | NoDocument
