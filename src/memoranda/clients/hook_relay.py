"""Hands the event of a hook to the daemon of the home, if the daemon runs.

A client waits for a hook before each call of a tool. So this module imports almost nothing, and
leaves the parsing of the event and of the settings to the daemon. In any unusual case, it returns
without an answer. Then the full command handles the event, with the bytes that were read.
"""

from __future__ import annotations

import os
import time

from memoranda.clients import hook

# The most bytes of a request that the daemon accepts, and those of a request around the payload.
_MOST_REQUEST_BYTES = 1 << 20
_BYTES_AROUND_PAYLOAD = 1_000
# Environment variables with these beginnings are set by other programs that run Claude Code's hooks.
_FOREIGN_VARIABLES = ("GROK_", "DEVIN_")
# Words with which a request to remember begins, in the forms that JSON has for them.
_REMEMBER = (b"remember", "记住".encode(), rb"\u8bb0\u4f4f")
# The characters in the names of clients and events. Such names need no quoting in JSON.
_NAME_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-")


def relayed(arguments: list[str]) -> str | None:
    """Return the daemon's answer to the event on stdin; "" if the client should get no text.

    None means that the full command must handle the event. It can still get the event from
    `hook.read_event`.

    arguments: the arguments of the command, such as `--home /home/ann/notes hook claude-code`.
    """
    usual = usual_arguments(arguments)
    if usual is None:
        return None
    home, client, name = usual
    socket_path = _socket_path(home)
    if not socket_path or not os.path.exists(socket_path):
        return None
    end = time.monotonic() + hook.seconds_left()
    payload = b""
    try:
        payload = hook.read_event(end)
        request = _request(client, name, payload)
        if not request:
            return None
        reply = _ask(socket_path, request, end)
    except TimeoutError:
        # The full command ends as soon as a request to remember is in a file.
        if _may_ask_to_remember(payload):
            return None
        # The time is up, so the full command must not be tried. The client gets no text.
        return ""
    except OSError:
        return None
    return _answer_in(reply)


def usual_arguments(arguments: list[str]) -> tuple[str | None, str, str] | None:
    """Return (home, client, event) that a command line names.

    The home is None, and the event is "", if the command line does not name them. Returns None if
    the command line has other options, so that the full command must handle it.

    arguments: the arguments of the command, such as `--home /home/ann/notes hook claude-code`.
    """
    home = None
    if arguments[0] == "--home" and len(arguments) > 2:
        home = arguments[1]
        arguments = arguments[2:]
    command, *names = arguments
    is_usual = command == hook.METHOD and len(names) in (1, 2)
    if not is_usual or not all(map(_is_plain_name, names)):
        return None
    client = names[0]
    event_name = names[1] if len(names) > 1 else ""
    return home, client, event_name


def _is_plain_name(word: str) -> bool:
    """Whether a word can only be the name of a client or an event. `--help` is an option."""
    return not word.startswith("-") and _NAME_LETTERS.issuperset(word)


def _socket_path(home: str | None) -> str:
    """Return the path of the daemon's socket. "" if the full command must find it.

    home: the home that the command line names. None if it names none.
    """
    variables = os.environ
    # The full command handles a named agent, and other programs that run the hooks of Claude Code.
    is_other_program = any(name.startswith(_FOREIGN_VARIABLES) for name in variables)
    if variables.get("MEMORY_AGENT") or variables.get(hook.DEBUG) or is_other_program:
        return ""
    home = home or variables.get("MEMORY_HOME")
    # A home that is no absolute path may be relative, begin with `~` or be in a database.
    if home and not home.startswith("/"):
        return ""
    if home:
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


def _request(client: str, name: str, payload: bytes) -> bytes:
    """Return the request to the daemon as one line; b"" if the event cannot be sent this way.

    name: the event; "" if the payload of the client names it.
    payload: the bytes that the client sent. They become a part of the request without being parsed.
    """
    # A request is one line. In JSON, a blank may replace each line break.
    payload = payload.strip().replace(b"\n", b" ").replace(b"\r", b" ")
    most_bytes = _MOST_REQUEST_BYTES - _BYTES_AROUND_PAYLOAD
    if not payload.startswith(b"{") or len(payload) > most_bytes:
        return b""
    head = (
        f'{{"jsonrpc": "2.0", "id": 1, "method": "{hook.PAYLOAD_METHOD}", "params":'
        f' {{"client": "{client}", "name": "{name}", "payload": '
    )
    return head.encode() + payload + b"}}\n"


def _may_ask_to_remember(payload: bytes) -> bool:
    """Whether a payload has a word that can begin a request to remember something."""
    lower = payload.lower()
    return any(word in lower for word in _REMEMBER)


def _ask(path: str, request: bytes, end: float) -> bytes:
    """Return the daemon's reply to a request; b"" if no daemon answers.

    path: the path of the daemon's socket.
    end: when the time is up, in seconds of the monotonic clock.

    Raises TimeoutError if the time is up, and OSError if the socket fails.
    """
    # The module `socket` takes four times as long to import as `_socket`.
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

    For example, `{"result": {"reply": "text"}}` gives `text`.
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
