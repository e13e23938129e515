"""Calling, starting and ending the daemon of a home (contract 001, 13).

The daemon is a server that listens on a socket in the home. The first client that could use it
starts it: `memory mcp`, or a hook. The daemon ends half an hour after its last client (`memory
serve --idle`). docs/clients.md has the rules for users.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoranda.engine.daemon_peer import is_stopped, peer_of

if TYPE_CHECKING:
    from socket import socket

    from memoranda.config import Settings
    from memoranda.sources.layout import Layout

# The most bytes of a request that the daemon accepts.
_MOST_REQUEST_BYTES = 1 << 20


IDLE = "30m"
"""How long after its last client the daemon ends, if a client has started it."""
AUTOSTARTED = "started by a client"
"""The text after the process number in the lock file of a daemon that a client has started."""
STATE = "daemon/state"
"""The daemon's method that returns its state."""
# Seconds between two looks at a daemon that is starting.
_SECONDS_BETWEEN_LOOKS = 0.02


def ask(path: Path, method: str, params: Mapping[str, Any], seconds: float) -> Any:
    """Call `method` of the daemon that listens on the socket `path`, and return its result.

    path: the path of the socket.
    method: the name of the method, such as `fresh`.
    params: the arguments of the method.
    seconds: how long to wait for the answer.

    The result is None if no daemon can be asked: none listens, it is stopped by a signal, or it is
    this process. It is None, too, if the daemon refuses the call or the request is too long. Raises
    OSError if there is no answer in time.
    """
    if not os.path.exists(path):
        return None
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as daemon:
        daemon.settimeout(seconds)
        try:
            daemon.connect(str(path))
        except OSError:
            return None
        peer = peer_of(daemon)
        if peer == os.getpid() or is_stopped(peer):
            return None
        try:
            return call(daemon, method, params).get("result")
        except ValueError:
            return None


def call(daemon: socket, method: str, params: Mapping[str, Any]) -> Any:
    """Send a request to the daemon over a connection, and return the reply as parsed JSON.

    method: the name of the method, such as `fresh`.
    params: the arguments of the method.

    Raises OSError. Raises ValueError if the request is too long, or the reply is not JSON.
    """
    import json

    document = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    request = json.dumps(document).encode() + b"\n"
    if len(request) > _MOST_REQUEST_BYTES:
        raise ValueError("the request is too long")
    daemon.sendall(request)
    # A reply is one line.
    data = b""
    while not data.endswith(b"\n"):
        block = daemon.recv(1 << 16)
        if not block:
            break
        data += block
    return json.loads(data)


def from_folder(path: Path, use: Callable[[str], None]) -> None:
    """Call `use` with a path of a socket that is not too long for the operating system.

    If `path` is too long, this process changes into the folder of the socket during the call, and
    `use` gets only the name of the socket. This is only safe before other threads run.

    use: a function such as `socket.connect` or `socket.bind`.
    """
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


def why_not_started(settings: Settings, environ: Mapping[str, str] = os.environ) -> str:
    """Return the reason why a client may not start a daemon for this home. "" if it may.

    environ: the environment variables of the client.
    """
    if not settings.autostart:
        return "daemon.autostart is off"
    if environ.get("CI", "").lower() not in ("", "0", "false"):
        return "this is a CI job (the variable CI is set)"
    if settings.url is not None:
        return "the notes are in PostgreSQL"
    folder = settings.home
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not os.access(folder, os.W_OK | os.X_OK):
        return "the home cannot be written"
    return ""


def start(settings: Settings, environ: Mapping[str, str] = os.environ) -> bool:
    """Start the daemon of the home, unless one is running or none may be started.

    environ: the environment variables that the daemon inherits, except MEMORY_AGENT.

    Returns whether a daemon was started. It may take a moment until it listens: `wait_for` waits
    for that.
    """
    from memoranda.sources.files import lock_owner, make_private
    from memoranda.sources.layout import Layout

    layout = Layout(settings.home)
    try:
        if why_not_started(settings, environ):
            return False
        is_running = lock_owner(layout.daemon_lock) is not None
        if is_running:
            return False
    except OSError:
        return False

    # The daemon serves several clients, and each of them tells its agent. So the daemon must not
    # inherit the name of the agent that starts it.
    inherited = {name: value for name, value in environ.items() if name != "MEMORY_AGENT"}
    # If this fails, the daemon reports why its log and its socket cannot be made there.
    with suppress(OSError):
        make_private(layout.private)

    # Input and output of the daemon go nowhere, so that it does not hold the client's terminal
    # open.
    nothing = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
    command = _daemon_command(settings, layout)
    try:
        os.posix_spawn(sys.executable, command, inherited, file_actions=nothing, setsid=True)
    except (OSError, NotImplementedError):
        return False
    return True


def _daemon_command(settings: Settings, layout: Layout) -> list[str]:
    """Return the command line that starts the daemon of a home.

    layout: the places of the files in the home.
    """
    command = [sys.executable, "-P", "-m", "memoranda", "--home", str(settings.home)]
    if settings.file != layout.config:
        command += ["--config", str(settings.file)]
    return [*command, "serve", "--idle", IDLE, "--log", str(layout.daemon_log)]


def wait_for(path: Path, seconds: float) -> bool:
    """Wait until a daemon listens on the socket `path`. Returns whether one does.

    seconds: how long to wait at most.
    """
    import socket
    import time

    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as daemon:
            try:
                # `from_folder` connects even if the path is too long for a socket.
                from_folder(path, daemon.connect)
                return True
            except OSError:
                time.sleep(_SECONDS_BETWEEN_LOOKS)
    return False


def stop(lock: Path, seconds: float) -> int | None:
    """End the daemon and wait for its end. This also works if the daemon is stopped by a signal.

    lock: the file that the daemon keeps locked.
    seconds: how long to wait.

    Returns the process number of the daemon, or None if no daemon runs. Raises OSError, and
    TimeoutError if the daemon does not end in time.
    """
    import signal
    import time

    from memoranda.sources.files import lock_owner

    owner = lock_owner(lock)
    if owner is None or not owner.pid:
        return None
    process = int(owner.pid)
    try:
        os.kill(process, signal.SIGTERM)
        # A process that was stopped by a signal (SIGSTOP) takes SIGTERM only when it goes on.
        os.kill(process, signal.SIGCONT)
    except ProcessLookupError:
        # It has just ended by itself.
        return process
    end = time.monotonic() + seconds
    while lock_owner(lock) is not None:
        if time.monotonic() > end:
            raise TimeoutError(f"process {process} has not ended within {seconds:.0f} seconds")
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    return process
