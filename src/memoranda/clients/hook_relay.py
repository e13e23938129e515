"""Hands the event of a hook to the daemon of the home, where one runs.

A client waits for a hook before each call of a tool. So this imports almost nothing: neither the
event nor the settings are understood here, but by the daemon. Where anything is out of the ordinary
it leaves the event to the whole command, which gets the bytes that were read.
"""

from __future__ import annotations

import os
import time

from memoranda.clients import hook

# Bytes; the daemon takes no larger request.
_MOST_REQUEST_BYTES = 1 << 20
# Another program that runs the hooks of Claude Code says so by variables with these prefixes.
_FOREIGN_VARIABLES = ("GROK_", "DEVIN_")
# Names of clients and of events, which are put into the request unchanged.
_NAME_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-")


def relayed(arguments: list[str]) -> str | None:
    """The daemon's answer to the event on stdin. Empty if the client gets nothing.

    None if the daemon does not answer; `hook.read_event` still has the event then.

    arguments: the arguments of the command, such as `--home /home/ann/notes hook claude-code`.
    """
    home = None
    if arguments[0] == "--home" and len(arguments) > 2:
        home = arguments[1]
        arguments = arguments[2:]
    command, *names = arguments
    is_usual = command == hook.METHOD and len(names) in (1, 2)
    if not is_usual or not all(map(_NAME_LETTERS.issuperset, names)):
        return None
    socket_path = _socket_path(home)
    if not socket_path or not os.path.exists(socket_path):
        return None
    end = time.monotonic() + hook.seconds_left()
    try:
        request = _request(names, hook.read_event(end))
        if not request:
            return None
        reply = _ask(socket_path, request, end)
    except TimeoutError:
        # The time is up, so that the client gets nothing.
        return ""
    except OSError:
        return None
    return _answer_in(reply)


def _socket_path(home: str | None) -> str:
    """Where the daemon of the home listens, which is `home` if the command said so; "" where only
    the settings can tell.
    """
    variables = os.environ
    # Who acts, and another program in the place of Claude Code, are for the whole command.
    if variables.get("MEMORY_AGENT") or any(
        name.startswith(_FOREIGN_VARIABLES) for name in variables
    ):
        return ""
    home = home or variables.get("MEMORY_HOME")
    if home:
        if not home.startswith("/"):
            return ""
        return f"{home}/memory.sock"
    user_folder = variables.get("HOME", "")
    if not user_folder.startswith("/"):
        return ""
    home = f"{user_folder}/.memory"
    try:
        with open(f"{home}/config.yaml", "rb") as file:
            # The home may be elsewhere.
            if b"storage" in file.read():
                return ""
    except FileNotFoundError:
        pass
    except OSError:
        return ""
    return f"{home}/memory.sock"


def _request(names: list[str], payload: bytes) -> bytes:
    """The request to the daemon in one line; b"" for an event that cannot be in one.

    names: the client, and the event where its payload does not name it.
    """
    # JSON has line ends only where blanks may be.
    payload = payload.strip().replace(b"\n", b" ").replace(b"\r", b" ")
    if not payload.startswith(b"{") or len(payload) > _MOST_REQUEST_BYTES - 1_000:
        return b""
    client, name = [*names, ""][:2]
    head = (
        f'{{"jsonrpc": "2.0", "id": 1, "method": "{hook.PAYLOAD_METHOD}", "params":'
        f' {{"client": "{client}", "name": "{name}", "payload": '
    )
    return head.encode() + payload + b"}}\n"


def _ask(path: str, request: bytes, end: float) -> bytes:
    """The reply of the daemon to a request; b"" where nothing answers. Raises OSError, and
    TimeoutError where the time is up at `end`, of the monotonic clock.
    """
    # `socket` takes four times as long to import.
    import _socket

    from memoranda.engine.daemon_peer import is_stopped, peer_of

    daemon = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        daemon.settimeout(max(0.001, end - time.monotonic()))
        daemon.connect(path)
        if is_stopped(peer_of(daemon)):
            return b""
        daemon.sendall(request)
        reply = b""
        while not reply.endswith(b"\n"):
            daemon.settimeout(max(0.001, end - time.monotonic()))
            block = daemon.recv(1 << 16)
            if not block:
                return b""
            reply += block
        return reply
    finally:
        daemon.close()


def _answer_in(reply: bytes) -> str | None:
    """The answer in the daemon's reply. None if it gave none."""
    if hook.NOTHING_TO_SAY in reply:
        return ""
    # Most answers are empty and need no parser.
    import json

    try:
        answer = json.loads(reply)["result"]["reply"]
    except (ValueError, KeyError, TypeError):
        return None
    if isinstance(answer, str):
        return answer
    return None
