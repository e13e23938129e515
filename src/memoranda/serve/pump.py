"""`memory mcp` while a daemon serves the home: this process only passes on what client and daemon
say.

`pass_on` asks the daemon to serve this client too. Then the process becomes a separate program that
imports nothing but built-in modules or a single small file. Each client needs such a process, and
`os`, `socket`, `signal` and `json` would make it half as large again. It looks only at methods and
ids, for the case that the daemon disappears. Then running requests are answered with an error. At
the client's next line this process becomes the command again, which finds another daemon or serves
the client itself.
"""

from __future__ import annotations

import _json
import _signal  # type: ignore[import-not-found]  # it has no stub
import posix
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from socket import socket
    from typing import Any

    from memoranda.config import Settings

METHOD = "mcp"
"""The request with which a connection to the daemon's socket begins to carry MCP's lines."""
CONTINUED = "MEMORY_MCP_CONTINUED"
"""The environment variable that tells the command of a session it goes on with: the number of an
open file with the first lines for the server, how many of them are only repeated, and 1 if no
daemon should be asked."""
END = b'{"jsonrpc":"2.0","method":"notifications/memoranda/end"}\n'
"""The line that tells the daemon that the client has sent all."""
STOP = b'{"jsonrpc":"2.0","method":"notifications/memoranda/stop"}\n'
"""The line that tells the daemon to end the session as a signal ends a server."""
ALIVE = b'{"jsonrpc":"2.0","method":"notifications/memoranda/alive"}\n'
"""The line a daemon says each second while a client waits for it; clients are not told of it."""
LIMIT = 32 << 20
"""Bytes a line may have; with a longer one a session goes on without a daemon."""
# Bytes read at once: what a pipe holds.
BLOCK = 1 << 16
_FOLDER = __file__.rpartition("/")[0]
# Bytes for the daemon to take before the client is heard again
_WAITING = 1 << 20
# Bytes that any pipe takes without blocking once it is writable: POSIX's PIPE_BUF
_AT_ONCE = 4096
# Seconds for the client to take its answers after a signal
_LAST_WORDS = 1.0
# Seconds after which a client whom no daemon has said a word to serves itself.
_GRANTED_WITHIN = 4.5
# Seconds of silence after which a daemon counts as gone: one that works says ALIVE.
_SILENCE = 4.5
_START = "import sys; sys.path.append(sys.argv[1]); import pump; pump.main(sys.argv[2:])"
_ANSWER = b'{"jsonrpc":"2.0","id":'
_GONE = "The daemon that served this session went away before it answered. "
_UNKNOWN = _GONE + "It is unknown whether the call was carried out: look before you repeat it."
_AGAIN = _GONE + "Nothing was changed; repeat the request."


def program() -> str:
    """Which installation this is; a daemon serves the clients of the same installation."""
    from memoranda import __version__

    return f"{__version__} {_FOLDER}"


def pass_on(settings: Settings, arguments: Mapping[str, Any]) -> None:
    """Pass on between a daemon and the client, and do not return, if a daemon serves the home.

    settings: the settings that the daemon must have.
    arguments: the arguments of the session to ask for (sessions.py).

    Otherwise returns, and nothing of the client has been read.
    """
    import os

    if (
        os.environ.get(CONTINUED, "").endswith(" 1")
        or "PYTHONHOME" in os.environ
        or sys.implementation.name != "cpython"
    ):
        return
    try:
        for fd in (0, 1):
            os.fstat(fd)
    # closed, which the server reports
    except OSError:
        return
    params = {**arguments, "program": program(), "settings": settings.digest()}
    daemon = _granted(settings, params)
    if daemon is None:
        return
    os.set_inheritable(daemon, True)
    flags = ["-I", "-S", *(["-B"] if sys.flags.dont_write_bytecode else [])]
    own_parts = [_FOLDER, str(daemon)]
    os.execv(sys.executable, [sys.executable, *flags, "-c", _START, *own_parts, *sys.orig_argv[1:]])


def _granted(settings: Settings, params: Mapping[str, Any]) -> int | None:
    """Connect to the daemon, which is started if none runs, and ask for a session.

    Returns the descriptor of the connection. None if the client must be served by this process.
    """
    import os
    import socket

    from memoranda.engine import daemon_client, daemon_peer
    from memoranda.sources.layout import Layout

    path = Layout(settings.home).socket
    end = time.monotonic() + _GRANTED_WITHIN
    for is_new in (False, True):
        if is_new and not (
            daemon_client.start(settings) and daemon_client.wait_for(path, end - time.monotonic())
        ):
            return None
        if not os.path.exists(path):
            continue
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as daemon:
            daemon.settimeout(max(0.1, end - time.monotonic()))
            try:
                daemon_client.from_folder(path, daemon.connect)
            except OSError:
                # Nobody listens there any more.
                continue
            try:
                stopped = daemon_peer.is_stopped(daemon_peer.peer_of(daemon))
                if stopped or not _grants(daemon, params):
                    return None
            except (OSError, ValueError):
                return None
            return daemon.detach()
    return None


def _grants(daemon: socket, params: Mapping[str, Any]) -> bool:
    """Whether a daemon grants the session.

    Raises OSError if it stays silent for a while, and ValueError for an invalid answer.
    """
    import json

    request = {"jsonrpc": "2.0", "id": 1, "method": METHOD, "params": params}
    daemon.sendall(json.dumps(request).encode() + b"\n")
    lines = Lines()
    while block := daemon.recv(BLOCK):
        # The daemon is alive, so it may take its time.
        daemon.settimeout(_GRANTED_WITHIN)
        for line in lines.feed(block):
            if line != ALIVE:
                return "result" in json.loads(line)
    return False


class _Json:
    """How the scanner reads numbers and objects."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float = parse_constant = float
    parse_int = int


_scan = _json.make_scanner(_Json)  # type: ignore[arg-type]  # the class has all it looks for
# The errors of the scanner. Up to Python 3.11 this includes a SystemError, because `json`, whose
# error it means, is not loaded.
_NOT_JSON = (ValueError, StopIteration, RecursionError, SystemError)


def message_in(line: bytes) -> dict[str, Any]:
    """The JSON object in `line`, or an empty one."""
    try:
        message, _ = _scan(line.decode("utf-8", "surrogateescape").strip("\ufeff \t\r\n"), 0)
    except _NOT_JSON:
        return {}
    if isinstance(message, dict):
        return message
    return {}


def id_in(line: bytes) -> Any:
    """The id of the request in `line`, None without one."""
    message = message_in(line)
    if "method" in message and _is_id(message.get("id")):
        return message.get("id")
    return None


def answered_by(line: bytes) -> Any:
    """The id of the request that a line of our server answers, None if it answers none."""
    for key in (b',"result":', b',"error":'):
        if line.startswith(_ANSWER) and (end := line.find(key)) > 0:
            text = line[len(_ANSWER) : end].decode()
            try:
                message, read = _scan(text, 0)
            except _NOT_JSON:
                continue
            if read == len(text):
                return message
    return None


def _error_line(id: Any, text: str) -> bytes:
    """The line that answers a request with an error."""
    if isinstance(id, str):
        id_text = _json.encode_basestring_ascii(id)
    else:
        id_text = str(id)
    message = _json.encode_basestring_ascii(text)
    error = f'"error":{{"code":-32603,"message":{message}}}'
    return f'{{"jsonrpc":"2.0","id":{id_text},{error}}}\n'.encode()


def _is_id(value: Any) -> bool:
    """Whether a value can be the id of a request."""
    return type(value) in (int, str)


class Lines:
    """Turns blocks into lines with their breaks; `rest` is the beginning of one."""

    def __init__(self) -> None:
        self.rest = bytearray()

    def feed(self, block: bytes) -> list[bytes]:
        """The lines that end in `block`."""
        self.rest += block
        if b"\n" not in block:
            return []
        end = self.rest.rfind(b"\n") + 1
        whole_lines = bytes(self.rest[:end])
        self.rest = self.rest[end:]
        return [line + b"\n" for line in whole_lines[:-1].split(b"\n")]


class Pump:
    """One session, between descriptors 0 and 1 and the connection to the daemon.

    command: the command that this process was and becomes again.
    first: lines to send before the client's.
    not_for_client: ids of requests whose answers are dropped, since the client has them already.
    """

    def __init__(self, daemon: int, command: list[str], first: bytes, not_for_client: set[Any]):
        self._daemon: int | None = daemon
        self._command = command
        self._asked, self._answered = Lines(), Lines()
        self._unsent: list[bytes] = []
        # Bytes of the first one of them that are with the daemon
        self._sent = 0
        # Of them all
        self._size = 0
        self._output = bytearray()
        self._begun: dict[Any, str] = {}
        # Lines that another server must be told first.
        self._opening: dict[str, bytes] = {}
        self._is_heard = self._has_sent = self._is_awaited = False
        self._at_end = self._is_too_long = self._is_cut = False
        self._stopped: int | None = None
        # Since when the daemon owes an answer and has said nothing
        self._waits_since: float | None = None
        self._is_silent = False
        posix.set_blocking(daemon, False)
        self._signals, woken = posix.pipe()
        posix.set_blocking(woken, False)
        _signal.set_wakeup_fd(woken)
        for number in (_signal.SIGINT, _signal.SIGTERM):
            _signal.signal(number, lambda number, frame: None)
        self._not_for_client = not_for_client
        self._from_client(first)

    def run(self) -> int:
        """Until the session has ended: the exit status."""
        while self._stopped is None or self._daemon is not None or self._output:
            if self._daemon is None and not self._output:
                if self._is_needed():
                    self._become_command()
                if self._at_end:
                    return 0
            if not self._work_once():
                break
        if self._stopped == _signal.SIGINT:
            return 130
        return 0

    def _is_needed(self) -> bool:
        """Whether the client waits for something while there is no daemon."""
        return bool(self._unsent or self._asked.rest or (self._is_awaited and not self._at_end))

    def _work_once(self) -> bool:
        """Wait until something can be read or written, and do it. Returns False when the client does
        not take its last lines.
        """
        is_last = self._stopped is not None and self._daemon is None
        patience = _LAST_WORDS if is_last else self._patience()
        readable, writable, _ = select.select(self._inputs(), self._outputs(), [], patience)
        if is_last and not writable:
            return False
        if self._daemon not in readable and self._patience() == 0:
            self._is_silent = True
            self._lose_daemon()
        if self._signals in readable:
            self._take_signal()
        if 1 in writable:
            self._write_to_client()
        if self._daemon in writable:
            self._send()
        if self._daemon is not None and self._daemon in readable:
            self._receive()
        if 0 in readable:
            self._read_from_client()
        return True

    def _inputs(self) -> list[int]:
        """The descriptors that are read from."""
        inputs = [self._signals]
        is_over = self._at_end or self._is_too_long or self._stopped
        if not is_over and self._size < _WAITING:
            inputs.append(0)
        if self._daemon is not None:
            inputs.append(self._daemon)
        return inputs

    def _outputs(self) -> list[int]:
        """The descriptors for which there is something to write."""
        outputs = []
        if self._output:
            outputs.append(1)
        if self._unsent and self._daemon is not None and not self._is_cut:
            outputs.append(self._daemon)
        return outputs

    def _take_signal(self) -> None:
        """Ask the daemon to end the session; the next signal does what it does to any process."""
        number = posix.read(self._signals, 1)[0]
        if self._stopped is not None:
            return
        self._stopped = number
        self._queue(STOP)
        for signal_number in (_signal.SIGINT, _signal.SIGTERM):
            _signal.signal(signal_number, _signal.SIG_DFL)

    def _write_to_client(self) -> None:
        try:
            del self._output[: posix.write(1, self._output[:_AT_ONCE])]
        except BlockingIOError:
            pass
        except OSError:
            # The client is gone: running calls finish, their replies are dropped.
            self._output.clear()
            self._end()

    def _read_from_client(self) -> None:
        try:
            block = posix.read(0, BLOCK)
        except BlockingIOError:
            return
        except OSError:
            # The terminal or socket behind it is gone, which counts as its end.
            block = b""
        if block:
            self._from_client(block)
        else:
            self._end()

    def _patience(self) -> float | None:
        """Seconds to wait for the daemon, which says something each second while it owes an answer.

        None if nothing is awaited.
        """
        if self._daemon is None or not (self._begun or self._unsent):
            self._waits_since = None
            return None
        if self._waits_since is None:
            self._waits_since = time.monotonic()
        return max(0.0, self._waits_since + _SILENCE - time.monotonic())

    def _queue(self, line: bytes) -> None:
        self._unsent.append(line)
        self._size += len(line)

    def _end(self) -> None:
        if not self._at_end:
            self._at_end = True
            # The last line may lack its break
            if self._asked.rest:
                self._from_client(b"\n")
            if self._daemon is not None:
                self._queue(END)

    def _from_client(self, block: bytes) -> None:
        for line in self._asked.feed(block):
            self._note_message(line)
            self._queue(line)
        if len(self._asked.rest) > LIMIT and not self._is_too_long:
            self._is_too_long = True
            self._queue(END)

    def _note_message(self, line: bytes) -> None:
        """Remember the parts of a line that a new server must know, and that the client waits for
        an answer.
        """
        message = message_in(line)
        method = message.get("method")
        params = message.get("params")
        if not isinstance(params, dict):
            params = {}
        if method in ("initialize", "notifications/initialized"):
            self._opening[method] = line
        elif method == "resources/subscribe":
            self._opening[f"watch {params.get('uri')}"] = line
        elif method == "resources/unsubscribe":
            self._opening.pop(f"watch {params.get('uri')}", None)
        elif method == "notifications/cancelled" and _is_id(params.get("requestId")):
            self._begun.pop(params["requestId"], None)
        request_id = message.get("id")
        if isinstance(method, str) and _is_id(request_id):
            self._begun[request_id] = method

    def _send(self) -> None:
        assert self._daemon is not None
        try:
            self._sent += posix.write(self._daemon, memoryview(self._unsent[0])[self._sent :])
        except BlockingIOError:
            return
        # The daemon may have answered before it disappeared.
        except OSError:
            self._is_cut = True
            return
        if self._sent == len(self._unsent[0]):
            self._size -= self._sent
            self._sent = 0
            self._has_sent = True
            del self._unsent[0]

    def _receive(self) -> None:
        assert self._daemon is not None
        try:
            block = posix.read(self._daemon, BLOCK)
        except BlockingIOError:
            return
        except OSError:
            block = b""
        self._waits_since = None
        if not block:
            self._lose_daemon()
        for line in self._answered.feed(block):
            if line == ALIVE:
                continue
            self._is_heard = True
            id = answered_by(line)
            if id is not None:
                self._begun.pop(id, None)
            if id is not None and id in self._not_for_client:
                self._not_for_client.discard(id)
            else:
                self._output += line

    def _lose_daemon(self) -> None:
        """Answer the calls of a daemon that is gone, silent or has ended the session with an error."""
        assert self._daemon is not None
        posix.close(self._daemon)
        self._daemon = None
        self._unsent = [line for line in self._unsent if line not in (END, STOP)]
        opening = {id_in(line) for line in self._opening.values()} - {None}
        # Besides both lines of the handshake
        is_watching = len(self._opening) > 2
        self._is_awaited = is_watching or bool(opening & self._begun.keys())
        sent_again = opening | {id_in(line) for line in self._unsent}
        for id, method in self._begun.items():
            if id not in sent_again:
                self._output += _error_line(id, _UNKNOWN if method == "tools/call" else _AGAIN)

    def _become_command(self) -> None:
        """Run the command in this process, to go on with the session."""
        opening_lines = [line for line in self._opening.values() if line not in self._unsent]
        waiting = self._begun.keys() - self._not_for_client
        repeated = [line for line in opening_lines if id_in(line) not in waiting]
        if self._opening.get("initialize") not in repeated:
            repeated = []
        lines = [
            *repeated,
            *(line for line in opening_lines if line not in repeated),
            *self._unsent,
            bytes(self._asked.rest),
        ]
        if hasattr(posix, "memfd_create"):
            # A file that only this process has
            fd = posix.memfd_create("session")
        else:
            import tempfile

            fd, path = tempfile.mkstemp()
            posix.unlink(path)
        with open(fd, "wb", closefd=False) as file:
            file.writelines(lines)
        posix.set_inheritable(fd, True)
        is_unheard = self._has_sent and not self._is_heard
        is_alone = self._is_too_long or self._is_silent or is_unheard
        posix.putenv(CONTINUED, f"{fd} {len(repeated)} {int(is_alone)}")
        posix.execv(sys.executable, [sys.executable, *self._command])


def continued() -> tuple[bytes, set[Any]]:
    """The state of a session that this process continues.

    Returns the lines to send to the server first, and the ids of requests in them that the client
    has answers for.
    """
    opening_data = posix.environ.pop(CONTINUED.encode(), b"")
    if not opening_data:
        return b"", set()
    posix.unsetenv(CONTINUED)
    fd, repeated, _ = map(int, opening_data.split())
    posix.lseek(fd, 0, 0)
    with open(fd, "rb") as file:
        first = file.read()
    return first, {id_in(line) for line in first.split(b"\n")[:repeated]} - {None}


def main(arguments: list[str]) -> None:
    """Pass on between stdin, stdout and the daemon, then exit.

    arguments: the descriptor of the daemon, and the command that this process was.
    """
    posix._exit(Pump(int(arguments[0]), arguments[1:], *continued()).run())
