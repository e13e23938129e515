"""Runs the `memory` command on a pseudo-terminal, as a person has it."""

from __future__ import annotations

import os
import pty
import select
import sys
import time

from cli.conftest import PROGRAM, environment


def shown(*argv: str, columns: int = 80, rows: int = 24, **environ: str) -> str:
    """What the terminal shows of one run of the command, with plain line breaks; its environment is this process's."""
    pid, terminal = pty.fork()
    if pid == 0:  # pragma: no cover
        size = {"COLUMNS": str(columns), "LINES": str(rows)}
        settings = environment(**{"TERM": "xterm", "PAGER": "cat", **size, **environ})
        os.execve(sys.executable, [*PROGRAM, *argv], settings)
    read, end = b"", time.monotonic() + 60
    while time.monotonic() < end:
        ready, _, _ = select.select([terminal], [], [], 60)
        try:
            part = os.read(terminal, 65536) if ready else b""
        except OSError:  # Linux says so when the other side is closed
            part = b""
        if not part:
            break
        read += part
    os.close(terminal)
    os.waitpid(pid, 0)
    return read.decode().replace("\r\n", "\n")
