"""Client metadata documents of OAuth: a client that is the address of a JSON file about itself.

The address comes from a stranger, so the request goes only to public addresses of the Internet over
https, to the very address that was checked, is not redirected, and is small and short.
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
from typing import Any
from urllib.parse import SplitResult, urlsplit

from memoranda.errors import MemorandaError

# Bytes of a client's document; the specification of MCP names this size.
LIMIT = 5 * 1024
# Seconds for one document, and for a free place to fetch it.
SECONDS = 2.0
# Documents are fetched over HTTPS only.
_PORT = 443
# Seconds for which a document, or a refusal, counts without being fetched again.
_KEPT = 600.0
_KEPT_REFUSAL = 60.0
# Documents remembered at once, so that strangers cannot fill the memory.
_KEPT_MOST = 200
_AT_ONCE = threading.BoundedSemaphore(4)


class NoDocument(MemorandaError):
    """The address has no document a client could have, or may not be asked."""

    code = "invalid"


def fetch(url: str) -> dict[str, Any]:
    """The JSON object at the https address `url`. Raises NoDocument."""
    parts = _checked_parts(url)
    address = public_address(parts.hostname or "")
    if not _AT_ONCE.acquire(timeout=SECONDS):
        raise NoDocument("too many are asked for")
    try:
        data = _body(parts, address)
    except (OSError, http.client.HTTPException) as error:
        raise NoDocument(f"it cannot be fetched ({type(error).__name__})") from None
    finally:
        _AT_ONCE.release()

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
    """The parts of an address that may be asked. Raises NoDocument."""
    parts = urlsplit(url)
    has_host = parts.scheme == "https" and bool(parts.hostname) and not parts.username
    # A client is told apart by its path, and a fragment is never sent.
    if not has_host or parts.fragment or len(parts.path) < 2:
        raise NoDocument("it must be https://HOST/PATH")
    try:
        is_usual = parts.port in (None, _PORT)
    except ValueError:
        is_usual = False
    if not is_usual:
        raise NoDocument(f"it must be at port {_PORT}")
    return parts


def _body(parts: SplitResult, address: str) -> bytes:
    """The answer of a server, at most one byte more than LIMIT. Raises NoDocument for an answer
    that is not a document, OSError and HTTPException.
    """
    connection = _To(parts.hostname or "", address)
    # The timeout of a socket is for each read; a slow server could send byte after byte.
    clock = threading.Timer(
        2 * SECONDS, lambda: connection.sock and connection.sock.shutdown(socket.SHUT_RDWR)
    )
    clock.daemon = True
    clock.start()
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
        clock.cancel()
        connection.close()


def public_address(host: str) -> str:
    """The address to connect to; every one the name has must be public. Raises NoDocument."""
    try:
        addresses = {
            address[4][0] for address in socket.getaddrinfo(host, _PORT, type=socket.SOCK_STREAM)
        }
    except (OSError, UnicodeError):
        raise NoDocument("its host is unknown") from None
    for address in addresses:
        if not is_public(str(address)):
            raise NoDocument("its host is not on the public Internet")
    return str(sorted(addresses, key=lambda address: ":" in str(address))[0])


def is_public(address: str) -> bool:
    """Whether an IP address is one of the public Internet, and holds no other address."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address) and (
        ip.ipv4_mapped or ip.sixtofour or ip.teredo or ip in ipaddress.ip_network("64:ff9b::/96")
    ):
        return False
    return ip.is_global and not ip.is_multicast


class _To(http.client.HTTPSConnection):
    """Connects to `address`, even if the host's name means another address by now."""

    def __init__(self, host: str, address: str):
        super().__init__(host, _PORT, timeout=SECONDS, context=ssl.create_default_context())
        self.address = address

    def connect(self) -> None:
        plain_socket = socket.create_connection((self.address, self.port), SECONDS)
        try:
            self.sock = ssl.create_default_context().wrap_socket(
                plain_socket, server_hostname=self.host
            )
        except BaseException:
            plain_socket.close()
            raise


class Documents:
    """Documents fetched lately, by address; also that there was none."""

    def __init__(self, fetch: Callable[[str], dict[str, Any]]):
        self._fetch = fetch
        self._found: dict[str, tuple[float, dict[str, Any] | NoDocument]] = {}

    def get(self, url: str) -> dict[str, Any]:
        """The document at `url`. Raises NoDocument."""
        until, document = self._found.get(url, (0.0, NoDocument("")))
        if time.monotonic() >= until:
            keep_for = _KEPT
            try:
                document = self._fetch(url)
            except NoDocument as refused:
                document = refused
                keep_for = _KEPT_REFUSAL
            if len(self._found) >= _KEPT_MOST:
                self._found.clear()
            self._found[url] = time.monotonic() + keep_for, document
        if isinstance(document, NoDocument):
            raise document
        return document
