"""`memory mcp` where a daemon serves the home: asking it to serve this client too.

If it agrees, this process becomes the small program that passes on what the two say (pump.py).
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping
from typing import Any

from commonplace import __version__
from commonplace.config import Settings
from commonplace.engine.daemon_client import call
from commonplace.serve import pump
from commonplace.store.layout import Layout

METHOD = "mcp"
"""The request with which a connection to the daemon's socket begins to carry MCP's lines."""
PROGRAM = f"{__version__} {os.path.dirname(pump.__file__)}"
"""Which installation this is; a daemon serves the clients of its own."""
_SECONDS = 10.0  # to wait for the daemon; the first session of all takes it a second
_START = "import sys; sys.path.append(sys.argv[1]); import pump; pump.main(sys.argv[2:])"


def pass_on(settings: Settings, wanted: Mapping[str, Any]) -> None:
    """If a daemon serves the home with these settings, and grants what is `wanted` (sessions.py), pass on between it
    and the client from here on, and do not return. Else nothing of the client has been read."""
    path = Layout(settings.home).socket
    is_alone = os.environ.get(pump.CONTINUED, "").endswith(" 1")
    if is_alone or "PYTHONHOME" in os.environ or sys.implementation.name != "cpython" or not os.path.exists(path):
        return
    try:
        for fd in (0, 1):
            os.fstat(fd)
    except OSError:  # closed, which the server reports
        return
    params = {**wanted, "program": f"{PROGRAM} {settings.digest()}"}
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as daemon:
        daemon.settimeout(_SECONDS)
        try:
            daemon.connect(str(path))
            if "result" not in call(daemon, METHOD, params):
                return
        except (OSError, ValueError):
            return
        daemon.set_inheritable(True)
        flags = ["-I", "-S", *(["-B"] if sys.flags.dont_write_bytecode else [])]
        own = [os.path.dirname(pump.__file__), str(daemon.fileno())]
        os.execv(sys.executable, [sys.executable, *flags, "-c", _START, *own, *sys.orig_argv[1:]])
