"""Programs of ours as forks of a process that has imported all they import (template.py), which
takes them a second.

What a fork is not: a start of the interpreter. Tests of that use subprocess.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from subprocess import DEVNULL, PIPE
from tempfile import TemporaryFile
from typing import IO, Any

from serve.template import NUMBER

FOR_THE_START = ("PYTHON", "LANG", "LC_", "LD_", "MEMORANDA_")
"""How the names of variables begin that an interpreter, or our sitecustomize, looks at when it
starts.
"""


class Template:
    """The process; `environ` is that of its start."""

    def __init__(self, environ: Mapping[str, str]):
        self._lock = threading.Lock()
        self._wire, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    str(Path(__file__).with_name("template.py")),
                    str(theirs.fileno()),
                ],
                stdin=DEVNULL,
                stdout=DEVNULL,
                env=environ,
                pass_fds=[theirs.fileno()],
            )
        atexit.register(self._end)

    def start(self, program: dict[str, Any], fds: list[int]) -> None:
        data = json.dumps(program).encode()
        with self._lock:
            socket.send_fds(self._wire, [NUMBER.pack(len(data))], fds)
            self._wire.sendall(data)

    def _end(self) -> None:
        self._wire.close()
        self._process.wait(60)


@cache
def template(*start: tuple[str, str]) -> Template:
    """The one for all programs started with these variables."""
    return Template({**os.environ, **dict(start)})


class Forked:
    """A program of ours, driven as subprocess.Popen is; `command` begins with this interpreter."""

    stdin: Any = None
    stdout: Any = None
    stderr: Any = None

    def __init__(
        self,
        command: list[str],
        *,
        env: Mapping[str, str],
        cwd: Path | None = None,
        umask: int = -1,
        stdin: Any = PIPE,
        stdout: Any = PIPE,
        stderr: Any = PIPE,
        text: bool = False,
    ):
        self.returncode: int | None = None
        start = tuple(
            (name, value) for name, value in sorted(env.items()) if name.startswith(FOR_THE_START)
        )
        its: list[int] = []
        for number, (name, stream) in enumerate(
            (("stdin", stdin), ("stdout", stdout), ("stderr", stderr))
        ):
            if stream == PIPE:
                read, write = os.pipe()
                mine, fd = (read, write) if number else (write, read)
                setattr(
                    self, name, os.fdopen(mine, ("r" if number else "w") + ("" if text else "b"))
                )
            else:
                if stream == DEVNULL:
                    fd = os.open(os.devnull, os.O_RDWR)
                else:
                    fd = os.dup(stream.fileno())
            its.append(fd)
        self._end, end = os.pipe()
        program = {
            "command": command,
            "env": dict(env),
            "cwd": str(cwd or Path.cwd()),
            "umask": umask,
        }
        template(*start).start(program, [*its, end])
        for fd in (*its, end):
            os.close(fd)
        self._lock = threading.Lock()
        self.pid = self._heard()

    def __del__(self) -> None:
        os.close(self._end)

    def _heard(self) -> int:
        """The next number the template says: the process's id, then its status."""
        data = os.read(self._end, NUMBER.size)
        assert data, "the template has ended"
        return int(NUMBER.unpack(data)[0])

    def poll(self) -> int | None:
        with self._lock:
            if self.returncode is None and select.select([self._end], [], [], 0)[0]:
                self.returncode = self._heard()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None and not select.select([self._end], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("fork", timeout or 0)
        status = self.poll()
        assert status is not None
        return status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            # It has just ended
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float) -> tuple[Any, Any]:
        """All it says on stdout and stderr, once it has ended."""
        outputs: dict[IO[Any], Any] = {}
        streams = [
            candidate
            for candidate in (self.stdout, self.stderr)
            if candidate and not candidate.closed
        ]
        readers = [
            threading.Thread(target=lambda of=stream: outputs.update({of: of.read()}), daemon=True)
            for stream in streams
        ]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(timeout)
            if reader.is_alive():
                raise subprocess.TimeoutExpired("fork", timeout)
        self.wait(timeout)
        for stream in streams:
            stream.close()
        return outputs.get(self.stdout), outputs.get(self.stderr)


def run(
    command: list[str],
    *,
    env: Mapping[str, str],
    input: bytes = b"",
    cwd: Path | None = None,
    timeout: float = 60,
) -> subprocess.CompletedProcess[bytes]:
    """As subprocess.run, with all it prints kept."""
    with TemporaryFile() as input_file, TemporaryFile() as out, TemporaryFile() as err:
        input_file.write(input)
        input_file.seek(0)
        program = Forked(command, env=env, cwd=cwd, stdin=input_file, stdout=out, stderr=err)
        try:
            status = program.wait(timeout)
        finally:
            program.kill()
        for file in (out, err):
            file.seek(0)
        return subprocess.CompletedProcess(command, status, out.read(), err.read())
