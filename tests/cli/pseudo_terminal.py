"""Runs the `memory` command on a pseudo-terminal, as a person has it."""

from __future__ import annotations

import os
import pty
import select

from cli.conftest import PROGRAM, environment
from serve.forked import Forked


def shown(*argv: str, columns: int = 80, rows: int = 24, **environ: str) -> str:
    """What the terminal shows of one run of the command, with plain line breaks; its environment is
    this process's.
    """
    size = {"COLUMNS": str(columns), "LINES": str(rows)}
    settings = environment(**{"TERM": "xterm", "PAGER": "cat", **size, **environ})
    leader, follower = pty.openpty()
    with open(follower, "r+b", buffering=0) as screen:
        program = Forked(
            [*PROGRAM, *argv], env=settings, stdin=screen, stdout=screen, stderr=screen
        )
    read = b""
    part = b"more"
    while part:
        ready, _, _ = select.select([leader], [], [], 60)
        try:
            part = os.read(leader, 65536) if ready else b""
        # Linux says so when the other side is closed
        except OSError:
            part = b""
        read += part
    os.close(leader)
    program.wait(60)
    return read.decode().replace("\r\n", "\n")
