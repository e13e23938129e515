"""Runs `memory mcp` while a daemon serves the home: passes lines between the client and the daemon.

`pass_on` asks the daemon for a session. If it grants one, this process replaces itself (`execv`) by
a small program, which is this file alone: `main` and `Pump`. Each client needs such a process, so
it must need little memory. It imports only built-in modules: with `os`, `socket`, `signal` and
`json`, the process would need half as much memory again.

The pump reads the methods and ids of messages in case the daemon disappears. Then it answers the
running requests with an error. At the client's next line it becomes the command `memory mcp` again,
which finds another daemon or serves the client itself. The environment variable CONTINUED tells the
command where to go on.
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
    from collections.abc import Mapping, Sequence
    from socket import socket
    from typing import Any

    from memoranda.config import Settings

METHOD = "mcp"
"""The request with which a connection to the daemon's socket begins to carry MCP's lines."""
CONTINUED = "MEMORY_MCP_CONTINUED"
"""The environment variable from which the command learns how to go on with a session.

Its value is `FILE REPEATED ALONE`, as in `5 2 0`. FILE is the number of an open file with the first
lines for the server. REPEATED is how many of these lines the client has answers for. ALONE is 1 if
no daemon may be asked.
"""
END = b'{"jsonrpc":"2.0","method":"notifications/memoranda/end"}\n'
"""The line that tells the daemon that the client has sent everything."""
STOP = b'{"jsonrpc":"2.0","method":"notifications/memoranda/stop"}\n'
"""The line that tells the daemon to end the session as a signal ends a server."""
ALIVE = b'{"jsonrpc":"2.0","method":"notifications/memoranda/alive"}\n'
"""The line that a daemon sends each second while a client waits. It is not passed on to clients."""
LIMIT = 32 << 20
"""A line may have this many bytes. A session with a longer one goes on without a daemon."""
BLOCK = 1 << 16
"""At most this many bytes are read at once: as much as a pipe holds."""
_FOLDER = __file__.rpartition("/")[0]
# While more bytes wait for the daemon, nothing is read from the client.
_MAX_UNSENT_BYTES = 1 << 20
# A writable pipe takes this many bytes without blocking: POSIX's PIPE_BUF.
_PIPE_BYTES = 4096
# After a signal, the client has this many seconds to take its answers.
_LAST_ANSWER_SECONDS = 1.0
# If a daemon does not answer within this many seconds, this process serves the client itself.
_GRANT_SECONDS = 4.5
# After this many seconds of silence, a daemon counts as gone: a working one sends ALIVE.
_MAX_SILENT_SECONDS = 4.5
# The program that replaces the process: it imports this file without its package.
_START = "import sys; sys.path.append(sys.argv[1]); import pump; pump.main(sys.argv[2:])"
# How the answers of our server begin.
_ANSWER = b'{"jsonrpc":"2.0","id":'
_GONE = "The daemon that served this session went away before it answered. "
# The error for a call, which may have changed something, and the error for another request.
_UNKNOWN_OUTCOME = (
    _GONE + "It is unknown whether the call was carried out: look before you repeat it."
)
_NOTHING_CHANGED = _GONE + "Nothing was changed; repeat the request."


def program() -> str:
    """Return the version and folder of this installation.

    A daemon refuses clients of another installation.
    """
    from memoranda import __version__

    return f"{__version__} {_FOLDER}"


def pass_on(settings: Settings, arguments: Mapping[str, Any]) -> None:
    """Become the pump of this client, if a daemon grants it a session. Then this does not return.

    If it returns, this process must serve the client. Nothing of the client has been read.

    settings: the settings that the daemon must have.
    arguments: the arguments of the session to ask for (sessions.py).
    """
    import os

    # In the value of CONTINUED, the last number says that no daemon may be asked any more.
    must_be_alone = os.environ.get(CONTINUED, "").endswith(" 1")
    # The pump runs without the environment (-I), and uses modules of CPython alone.
    cannot_run_pump = "PYTHONHOME" in os.environ or sys.implementation.name != "cpython"
    if must_be_alone or cannot_run_pump:
        return
    try:
        for fd in (0, 1):
            os.fstat(fd)
    except OSError:
        # Stdin or stdout is closed, which the server reports.
        return
    params = {**arguments, "program": program(), "settings": settings.digest()}
    daemon = _connect(settings, params)
    if daemon is None:
        return
    # The descriptor must survive `execv`.
    os.set_inheritable(daemon, True)
    flags = ["-I", "-S"]
    if sys.flags.dont_write_bytecode:
        flags.append("-B")
    # The folder of this file, the arguments of `main`, and the command to become again.
    arguments_of_pump = [_FOLDER, str(daemon), *sys.orig_argv[1:]]
    os.execv(sys.executable, [sys.executable, *flags, "-c", _START, *arguments_of_pump])


def _connect(settings: Settings, params: Mapping[str, Any]) -> int | None:
    """Connect to the daemon and ask for a session. If no daemon runs, start one.

    Returns the descriptor of the connection. None if the client must be served by this process.

    params: the parameters of the request for a session (sessions.py).
    """
    import os
    import socket

    from memoranda.engine import daemon_client
    from memoranda.sources.layout import Layout

    path = Layout(settings.home).socket
    end = time.monotonic() + _GRANT_SECONDS
    # First a daemon that runs already is tried, then a new one.
    for must_start in (False, True):
        if must_start:
            is_started = daemon_client.start(settings)
            if not is_started or not daemon_client.wait_for(path, end - time.monotonic()):
                return None
        if not os.path.exists(path):
            continue
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as daemon:
            daemon.settimeout(max(0.1, end - time.monotonic()))
            try:
                daemon_client.from_folder(path, daemon.connect)
            except OSError:
                # The socket is left over from a daemon that has ended.
                continue
            if not _serves(daemon, params):
                return None
            # Otherwise the end of `with` would close the connection.
            return daemon.detach()
    return None


def _serves(daemon: socket, params: Mapping[str, Any]) -> bool:
    """Whether a daemon runs and grants a session. A daemon that gives no valid answer does not.

    daemon: the connection to it.
    params: the parameters of the request for a session.
    """
    from memoranda.engine import daemon_peer

    try:
        # A process that was stopped (SIGSTOP) would never answer.
        is_stopped = daemon_peer.is_stopped(daemon_peer.peer_of(daemon))
        return not is_stopped and _grants(daemon, params)
    except (OSError, ValueError):
        return False


def _grants(daemon: socket, params: Mapping[str, Any]) -> bool:
    """Ask a daemon for a session, and return whether it grants one.

    daemon: the connection to it.
    params: the facts about this process, as `pass_on` makes them.

    Raises OSError if it stays silent, and ValueError for an invalid answer.
    """
    import json

    request = {"jsonrpc": "2.0", "id": 1, "method": METHOD, "params": params}
    daemon.sendall(json.dumps(request).encode() + b"\n")
    lines = Lines()
    while block := daemon.recv(BLOCK):
        # The daemon is alive, so it gets the whole time again.
        daemon.settimeout(_GRANT_SECONDS)
        for line in lines.feed(block):
            if line != ALIVE:
                return "result" in json.loads(line)
    return False


class _Json:
    """The settings of the JSON scanner, which `json.JSONDecoder` would have."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float = parse_constant = float
    parse_int = int


_scan = _json.make_scanner(_Json)  # type: ignore[arg-type]  # the class has all it looks for
# The errors of the scanner. Up to Python 3.11 this includes a SystemError, because `json`, whose
# error it means, is not loaded.
_NOT_JSON = (ValueError, StopIteration, RecursionError, SystemError)


def message_in(line: bytes) -> dict[str, Any]:
    """Return the JSON object in `line`. Empty if the line is not a JSON object."""
    try:
        message, _ = _scan(line.decode("utf-8", "surrogateescape").strip("\ufeff \t\r\n"), 0)
    except _NOT_JSON:
        return {}
    if isinstance(message, dict):
        return message
    return {}


def id_in(line: bytes) -> Any:
    """Return the id of the request in `line`. None if the line is not a request."""
    message = message_in(line)
    if "method" in message and _is_id(message.get("id")):
        return message.get("id")
    return None


def answered_by(line: bytes) -> Any:
    """Return the id of the request that a line from our server answers. None if it is not an
    answer.

    `{"jsonrpc":"2.0","id":7,"result":{}}` gives 7. Only the beginning of the line is read, because
    answers can be long.
    """
    if not line.startswith(_ANSWER):
        return None
    for key in (b',"result":', b',"error":'):
        end = line.find(key)
        if end < 0:
            continue
        id_text = line[len(_ANSWER) : end].decode()
        try:
            id, length = _scan(id_text, 0)
        except _NOT_JSON:
            continue
        # Otherwise the key was found inside the id, which may be any text.
        if length == len(id_text):
            return id
    return None


def _error_line(id: Any, text: str) -> bytes:
    """Return the line that answers the request `id` with an error."""
    id_text = _json.encode_basestring_ascii(id) if isinstance(id, str) else str(id)
    message = _json.encode_basestring_ascii(text)
    error = f'"error":{{"code":-32603,"message":{message}}}'
    return f'{{"jsonrpc":"2.0","id":{id_text},{error}}}\n'.encode()


def _is_id(value: Any) -> bool:
    """Whether a value can be the id of a request. A boolean cannot, though it is an `int`."""
    return type(value) in (int, str)


class Lines:
    """Splits a stream of blocks into lines.

    rest: the beginning of a line whose end has not come yet.
    """

    def __init__(self) -> None:
        self.rest = bytearray()

    def feed(self, block: bytes) -> list[bytes]:
        """Add a block of the stream. Returns the lines that end in it, with their line breaks."""
        self.rest += block
        if b"\n" not in block:
            return []
        end = self.rest.rfind(b"\n") + 1
        whole_lines = bytes(self.rest[:end])
        self.rest = self.rest[end:]
        return [line + b"\n" for line in whole_lines[:-1].split(b"\n")]


class _UnsentLines:
    """Lines that wait until the daemon takes them, the first one first.

    lines: these lines. The daemon may have taken a part of the first one.
    byte_count: the bytes of all these lines together.
    """

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.byte_count = 0
        # How many bytes of the first line the daemon has taken.
        self._sent_bytes = 0

    def add(self, line: bytes) -> None:
        """Add a line behind the others."""
        self.lines.append(line)
        self.byte_count += len(line)

    def send_to(self, daemon: int) -> bool:
        """Send as much of the first line as the daemon takes without blocking.

        Returns whether the daemon has now taken the whole line, which is then removed.

        daemon: the descriptor of the connection to it.

        Raises BlockingIOError if it takes nothing now, and OSError if it takes nothing more.
        """
        line = self.lines[0]
        self._sent_bytes += posix.write(daemon, memoryview(line)[self._sent_bytes :])
        if self._sent_bytes < len(line):
            return False
        self._sent_bytes = 0
        self.byte_count -= len(line)
        del self.lines[0]
        return True

    def remove(self, unwanted: tuple[bytes, ...]) -> None:
        """Remove all lines that are one of these."""
        self.lines = [line for line in self.lines if line not in unwanted]
        self.byte_count = sum(len(line) for line in self.lines)


class Pump:
    """Passes the lines of one session between the client and the daemon.

    The client is at descriptors 0 and 1. If the daemon is lost, the pump answers the running
    requests with errors, and becomes `memory mcp` again as soon as the client needs a server.

    daemon: the descriptor of the connection to the daemon.
    command: the arguments of the `memory mcp` that this process was and becomes again.
    first_lines: lines to send before the client's.
    not_for_client: ids of requests in `first_lines` whose answers the client has already. Their answers
        are dropped.
    """

    def __init__(
        self, daemon: int, command: list[str], first_lines: bytes, not_for_client: set[Any]
    ):
        """Take over the session."""
        self._command = command

        # The client. Whether it has sent everything, and whether it has begun a line that is too
        # long for any daemon.
        self._client_lines = Lines()
        self._has_client_ended = False
        self._is_client_line_too_long = False
        # Bytes that the client has not taken yet.
        self._to_client = bytearray()
        # The method of each request that waits for its answer, by id.
        self._open_requests: dict[Any, str] = {}
        self._not_for_client = not_for_client

        # The daemon; None once it is lost. Its lines, and the lines that it has not taken yet.
        self._daemon: int | None = daemon
        self._daemon_lines = Lines()
        self._unsent = _UnsentLines()
        # Since when it owes an answer and has sent nothing. None while it owes none.
        self._daemon_owes_since: float | None = None
        # Whether it takes nothing more. What it has sent before is still read.
        self._is_daemon_deaf = False

        # For `_become_command`, which chooses the next server by what this daemon did: whether it
        # has taken a whole line, has sent one, and was given up because it was silent too long.
        self._has_daemon_taken = False
        self._has_daemon_answered = False
        self._is_daemon_silent = False
        # Lines that a new server must get first, by purpose: the handshake and what is watched.
        self._opening: dict[str, bytes] = {}
        # Whether a new server is needed at once, even if the client sends nothing more.
        self._must_have_server = False

        # The signal that ends the session. None before one came.
        self._stop_signal: int | None = None
        # `select` waits for descriptors alone, so each signal is made a byte in a pipe.
        self._signals, writing_end = posix.pipe()
        posix.set_blocking(writing_end, False)
        _signal.set_wakeup_fd(writing_end)
        for number in (_signal.SIGINT, _signal.SIGTERM):
            # Python writes the byte only for a signal that has a handler. This one has nothing
            # more to do; without it, the signal would end the process before the last answers.
            _signal.signal(number, lambda number, frame: None)

        posix.set_blocking(daemon, False)
        self._take_client_block(first_lines)

    def run(self) -> int:
        """Pass lines on until the session has ended. Returns the exit status of the process.

        It ends when the client has sent everything and has all answers, or after a signal.
        """
        while True:
            # While there is a daemon, it decides when the session ends: it closes the connection.
            has_nothing_left = self._daemon is None and not self._to_client
            if has_nothing_left and self._stop_signal is not None:
                break
            if has_nothing_left and self._needs_server():
                # This process becomes a new server, and does not return here.
                self._become_command()
            if has_nothing_left and self._has_client_ended:
                return 0
            if not self._work_once():
                break
        if self._stop_signal == _signal.SIGINT:
            return 130
        return 0

    def _needs_server(self) -> bool:
        """Whether the client waits for something while there is no daemon."""
        if self._unsent.lines or self._client_lines.rest:
            return True
        return self._must_have_server and not self._has_client_ended

    def _work_once(self) -> bool:
        """Wait until something can be read or written, and do it.

        Returns False if the session must end because the client does not take its last lines.
        """
        # After a signal has ended the session, only the last lines for the client are left to write.
        is_last_answer = self._stop_signal is not None and self._daemon is None
        # None waits for any time.
        wait_seconds = _LAST_ANSWER_SECONDS if is_last_answer else self._silence_left()
        readable, writable, _ = select.select(self._inputs(), self._outputs(), [], wait_seconds)
        if is_last_answer and not writable:
            return False
        # Bytes that came at the last moment still count, and are read below.
        has_waited_long = self._silence_left() == 0
        if has_waited_long and self._daemon not in readable:
            self._is_daemon_silent = True
            self._lose_daemon()
        if self._signals in readable:
            self._take_signal()
        if 1 in writable:
            self._write_to_client()
        if self._daemon in writable:
            self._send_to_daemon()
        # The daemon may have been given up above.
        if self._daemon is not None and self._daemon in readable:
            self._receive_from_daemon()
        if 0 in readable:
            self._read_from_client()
        return True

    def _inputs(self) -> list[int]:
        """Return the descriptors to read from.

        The client (0) is not read while too many of its bytes wait for the daemon.
        """
        inputs = [self._signals]
        is_over = self._has_client_ended or self._is_client_line_too_long or self._stop_signal
        if not is_over and self._unsent.byte_count < _MAX_UNSENT_BYTES:
            inputs.append(0)
        if self._daemon is not None:
            inputs.append(self._daemon)
        return inputs

    def _outputs(self) -> list[int]:
        """Return the descriptors that have something to be written to them."""
        outputs = []
        if self._to_client:
            outputs.append(1)
        if self._unsent.lines and self._daemon is not None and not self._is_daemon_deaf:
            outputs.append(self._daemon)
        return outputs

    def _take_signal(self) -> None:
        """Ask the daemon to end the session. From now on a signal ends this process at once."""
        number = posix.read(self._signals, 1)[0]
        if self._stop_signal is not None:
            return
        self._stop_signal = number
        self._unsent.add(STOP)
        for signal_number in (_signal.SIGINT, _signal.SIGTERM):
            _signal.signal(signal_number, _signal.SIG_DFL)

    def _write_to_client(self) -> None:
        """Write as much as the client takes without blocking."""
        try:
            count = posix.write(1, self._to_client[:_PIPE_BYTES])
            del self._to_client[:count]
        except BlockingIOError:
            pass
        except OSError:
            # The client is gone: running calls finish, their replies are dropped.
            self._to_client.clear()
            self._record_client_end()

    def _read_from_client(self) -> None:
        """Take the next bytes from the client. No bytes mean that the client has sent everything."""
        try:
            block = posix.read(0, BLOCK)
        except BlockingIOError:
            return
        except OSError:
            # The terminal or socket behind it is gone, which counts as its end.
            block = b""
        if block:
            self._take_client_block(block)
        else:
            self._record_client_end()

    def _silence_left(self) -> float | None:
        """Return how many more seconds the daemon may be silent. 0 if it has been silent for too
        long.

        None if the daemon owes no answer. The time begins when this is first called while it owes
        one. It begins again with each line that the daemon sends (`_receive_from_daemon`).
        """
        owes_answer = bool(self._open_requests or self._unsent.lines)
        if self._daemon is None or not owes_answer:
            self._daemon_owes_since = None
            return None
        if self._daemon_owes_since is None:
            self._daemon_owes_since = time.monotonic()
        return max(0.0, self._daemon_owes_since + _MAX_SILENT_SECONDS - time.monotonic())

    def _record_client_end(self) -> None:
        """Record that the client has sent everything, and tell the daemon."""
        if not self._has_client_ended:
            self._has_client_ended = True
            # The client's last line may lack its line break.
            if self._client_lines.rest:
                self._take_client_block(b"\n")
            if self._daemon is not None:
                self._unsent.add(END)

    def _take_client_block(self, block: bytes) -> None:
        """Take a block that the client sent."""
        for line in self._client_lines.feed(block):
            self._record_message(line)
            self._unsent.add(line)
        if len(self._client_lines.rest) > LIMIT and not self._is_client_line_too_long:
            self._is_client_line_too_long = True
            self._unsent.add(END)

    def _record_message(self, line: bytes) -> None:
        """Record a line of the client, in case the daemon is lost.

        Records the handshake and the watched resources, which a new server must know, and the
        requests that wait for an answer.
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
            self._open_requests.pop(params["requestId"], None)
        request_id = message.get("id")
        if isinstance(method, str) and _is_id(request_id):
            self._open_requests[request_id] = method

    def _send_to_daemon(self) -> None:
        """Send the daemon as much of the first waiting line as it takes without blocking."""
        assert self._daemon is not None
        try:
            if self._unsent.send_to(self._daemon):
                self._has_daemon_taken = True
        except BlockingIOError:
            pass
        except OSError:
            # The daemon is not lost before its answers are read: some may have come.
            self._is_daemon_deaf = True

    def _receive_from_daemon(self) -> None:
        """Take a block that the daemon sent, and queue its lines for the client."""
        assert self._daemon is not None
        try:
            block = posix.read(self._daemon, BLOCK)
        except BlockingIOError:
            return
        except OSError:
            # As if the daemon had closed the connection
            block = b""
        self._daemon_owes_since = None
        if not block:
            self._lose_daemon()
        for line in self._daemon_lines.feed(block):
            if line != ALIVE:
                self._has_daemon_answered = True
                self._take_answer(line)

    def _take_answer(self, line: bytes) -> None:
        """Queue a line of the daemon for the client, unless it answers a request of this process."""
        id = answered_by(line)
        if id is not None:
            self._open_requests.pop(id, None)
        if id is not None and id in self._not_for_client:
            self._not_for_client.discard(id)
        else:
            self._to_client += line

    def _lose_daemon(self) -> None:
        """Close the connection to a daemon that is gone, silent or has ended the session.

        The requests that wait for an answer get an error, unless a new server will get them.
        """
        assert self._daemon is not None
        posix.close(self._daemon)
        self._daemon = None
        # These were for this daemon only.
        self._unsent.remove((END, STOP))
        # A new server gets the opening lines again, and the lines that this daemon has not taken.
        opening_ids = {id_in(line) for line in self._opening.values()} - {None}
        unsent_ids = {id_in(line) for line in self._unsent.lines}
        ids_for_new_server = opening_ids | unsent_ids
        for id, method in self._open_requests.items():
            if id not in ids_for_new_server:
                text = _UNKNOWN_OUTCOME if method == "tools/call" else _NOTHING_CHANGED
                self._to_client += _error_line(id, text)

        # Besides the two lines of the handshake, each opening line is about a watched resource. Of
        # its changes the client is told without asking, so it needs a server now.
        is_watching = len(self._opening) > 2
        is_opening_open = bool(opening_ids & self._open_requests.keys())
        self._must_have_server = is_watching or is_opening_open

    def _lines_with_answer(self, opening_lines: Sequence[bytes]) -> list[bytes]:
        """Return the lines for a new server whose answers the client has already.

        They are sent first, so that CONTINUED only needs their number.

        opening_lines: the lines that the new server must get.
        """
        # A request of `_not_for_client` is open at this daemon, but the client has its answer.
        unanswered_ids = self._open_requests.keys() - self._not_for_client
        answered = [line for line in opening_lines if id_in(line) not in unanswered_ids]
        # A server must get `initialize` before any other line. So if its answer is still due, no
        # other line can be sent before it.
        if self._opening.get("initialize") not in answered:
            return []
        return answered

    def _become_command(self) -> None:
        """Become `memory mcp` again, which goes on with the session (CONTINUED). Does not return."""
        # A new server must get the opening lines first, unless they are sent anyway.
        unsent_lines = self._unsent.lines
        opening_lines = [line for line in self._opening.values() if line not in unsent_lines]
        repeated = self._lines_with_answer(opening_lines)
        unanswered = [line for line in opening_lines if line not in repeated]
        lines = [*repeated, *unanswered, *unsent_lines, bytes(self._client_lines.rest)]

        # The lines are passed on in a file without a path.
        if hasattr(posix, "memfd_create"):
            fd = posix.memfd_create("session")
        else:
            import tempfile

            fd, path = tempfile.mkstemp()
            posix.unlink(path)
        with open(fd, "wb", closefd=False) as file:
            file.writelines(lines)
        posix.set_inheritable(fd, True)

        # A daemon that took lines and sent none would probably do it again.
        has_never_answered = self._has_daemon_taken and not self._has_daemon_answered
        is_alone = self._is_client_line_too_long or self._is_daemon_silent or has_never_answered
        posix.putenv(CONTINUED, f"{fd} {len(repeated)} {int(is_alone)}")
        posix.execv(sys.executable, [sys.executable, *self._command])


def continued() -> tuple[bytes, set[Any]]:
    """Return the state of the session that this process goes on with (CONTINUED).

    The first value is the lines that the server must get before the client's. The second value is
    the ids of requests in these lines whose answers the client has. Both are empty for a new session.
    """
    opening_data = posix.environ.pop(CONTINUED.encode(), b"")
    if not opening_data:
        return b"", set()
    posix.unsetenv(CONTINUED)
    fd, repeated_count, _ = map(int, opening_data.split())
    # The file is at its end, where the former process stopped to write.
    posix.lseek(fd, 0, 0)
    with open(fd, "rb") as file:
        first_lines = file.read()
    repeated_lines = first_lines.split(b"\n")[:repeated_count]
    return first_lines, {id_in(line) for line in repeated_lines} - {None}


def main(arguments: list[str]) -> None:
    """Run the pump until the session has ended, then exit.

    arguments: the descriptor of the connection to the daemon, then the arguments of the command
        that this process was.
    """
    daemon, *command = arguments
    first_lines, not_for_client = continued()
    pump = Pump(int(daemon), command, first_lines, not_for_client)
    posix._exit(pump.run())
