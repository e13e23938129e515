"""The process at the other end of a daemon's socket.

This module is imported before each call of a tool, so it imports almost nothing itself.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

# The bytes of the credentials that the system returns: the numbers of a process, a user and a group,
# of four bytes each.
_CREDENTIALS_BYTES = 12


def peer_of(daemon: socket) -> int | None:
    """Return the process id at the other end of a connection. None if the system does not tell it."""
    import _socket

    if not hasattr(_socket, "SO_PEERCRED"):
        return None
    peer = daemon.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, _CREDENTIALS_BYTES)
    return int.from_bytes(peer[:4], sys.byteorder)


def is_stopped(process: int | None) -> bool:
    """Whether a process was stopped by a signal, so that it answers nobody.

    False if the system does not tell.

    process: the number of the process. None if it is not known, for which the answer is False.
    """
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            state = file.read().rpartition(b")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state in (b"T", b"t")
