"""Asking the daemon of a home, if one listens on its socket (contract 001, 13)."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from socket import socket

_REQUEST_LIMIT = 1 << 20


def ask(path: Path, method: str, params: Mapping[str, Any], seconds: float) -> Any:
    """The result of `method` from the daemon that listens on the socket `path`. None when nobody
    listens, it is this very process, the request is too long, or the daemon refuses it. Raises
    OSError when no answer came within `seconds`."""
    if not os.path.exists(path):
        return None
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as daemon:
        daemon.settimeout(seconds)
        try:
            daemon.connect(str(path))
        except OSError:
            return None
        if hasattr(socket, "SO_PEERCRED"):
            peer = daemon.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            if int.from_bytes(peer[:4], sys.byteorder) == os.getpid():
                return None
        try:
            return call(daemon, method, params).get("result")
        except ValueError:
            return None


def call(daemon: socket, method: str, params: Mapping[str, Any]) -> Any:
    """The reply to a request over a connection. Raises OSError, and ValueError for what is too long
    or no reply.
    """
    import json

    request = (
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n"
    )
    if len(request) > _REQUEST_LIMIT:
        raise ValueError("the request is too long")
    daemon.sendall(request)
    data = b""
    while not data.endswith(b"\n") and (block := daemon.recv(1 << 16)):
        data += block
    return json.loads(data)


def from_folder(path: Path, use: Callable[[str], None]) -> None:
    """`use` with the path; if that is too long for the system, with its name, from its folder. Call
    it before other threads run."""
    try:
        return use(str(path))
    except OSError as error:
        if "too long" not in str(error):
            raise
    before = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.chdir(path.parent)
        use(path.name)
    finally:
        os.fchdir(before)
        os.close(before)
