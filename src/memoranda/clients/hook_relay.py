"""Hands the event of a hook to the daemon of the home, if the daemon runs.

A client waits for a hook before each call of a tool. So this module imports almost nothing, and the
daemon alone reads the event and the settings. In any unusual case the module leaves the event to
the full command, which gets the bytes that were read.
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
    """Return the daemon's answer to the event on stdin; "" if the client should get no text.

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
    """Return the path of the daemon's socket; "" if only the settings can tell the path.

    home: the home that the command line names, or None.
    """
    variables = os.environ
    # The full command handles a named agent, and programs that run the hooks of Claude Code.
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
            # The setting `storage` may name another folder as the home.
            if b"storage" in file.read():
                return ""
    except FileNotFoundError:
        pass
    except OSError:
        return ""
    return f"{home}/memory.sock"


def _request(names: list[str], payload: bytes) -> bytes:
    """Return the request to the daemon in one line; b"" for an event that cannot be sent in one
    line.

    names: the client, and the event for a client whose payload does not name the event.
    payload: the bytes that the client sent, which are put into the request unchanged.
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
    """Return the daemon's reply to a request; b"" if no daemon answers.

    Raises TimeoutError if the time is up, and OSError if the socket fails.

    path: the path of the daemon's socket.
    end: when the time is up, in seconds of the monotonic clock.
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
    """Return the answer in the daemon's reply. None if the reply has no answer.

    `{"result": {"reply": "text"}}` gives `text`.
    """
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
