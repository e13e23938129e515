"""Forks that work on a home each and kill themselves at the n-th durable operation.

Usage: mortal.py SCRIPT, with a line `DIE_AT HOME` on stdin for each home (0: never). A fork prints one line per
acknowledged call, flushed, and `done`; after each one comes the line `end`.
Every rename, link, unlink, mkdir, fsync, write and SQLite commit below the home counts as an operation.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'tests'}"}

COUNTED = (
    "rename", "replace", "link", "unlink", "mkdir", "rmdir", "fsync", "fdatasync", "write", "pwrite", "ftruncate",
    "symlink",
)  # fmt: skip


class Countdown:
    """Dies when it reaches zero; 0 at the start = never."""

    def __init__(self, steps: int):
        self.left = steps
        self.seen = 0
        self.awake = False

    def tick(self) -> None:
        if not self.awake:
            return
        self.seen += 1
        if self.left and self.seen == self.left:
            os.kill(os.getpid(), signal.SIGKILL)


def arm(countdown: Countdown) -> None:
    """Count every durable operation of the os module, before it happens."""
    for name in COUNTED:
        setattr(os, name, counted(getattr(os, name), countdown))


def counted(function, countdown: Countdown):
    def call(*args, **kwargs):
        countdown.tick()
        return function(*args, **kwargs)

    return call


def say(text: str) -> None:
    sys.__stdout__.buffer.write(text.encode() + b"\n")
    sys.__stdout__.buffer.flush()


SCRIPTS = {
    "edits": [
        {"command": "str_replace", "path": "/memories/a.md", "old_str": "count 0", "new_str": "count 1"},
        {"command": "insert", "path": "/memories/a.md", "insert_line": 0, "insert_text": "top"},
        {"command": "create", "path": "/memories/new/deep/b.md", "file_text": "- [fact] b\n"},
        {"command": "create", "path": "/memories/a.md", "file_text": "- [fact] rewritten\n"},
    ],
    "moves": [
        {"command": "rename", "old_path": "/memories/a.md", "new_path": "/memories/x/y/a.md"},
        {"command": "rename", "old_path": "/memories/folder", "new_path": "/memories/moved"},
        {"command": "delete", "path": "/memories/moved"},
    ],
}


def main(home: str, script: str, die_at: int) -> None:
    from commonplace.faces.memory_tool import MemoryCommands
    from commonplace.index import database, sync

    countdown = Countdown(die_at)
    arm(countdown)
    original = database.transaction

    @contextmanager
    def transaction(db):
        countdown.tick()
        with original(db):
            yield
            countdown.tick()
        countdown.tick()

    database.transaction = sync.transaction = transaction
    from commonplace import open_memory

    with open_memory(home, watch=False) as memory:
        commands = MemoryCommands()
        countdown.awake = True
        for arguments in SCRIPTS[script]:
            reply = commands.run(memory, arguments)
            countdown.awake = False
            say(f"{'refused' if reply.is_error else 'ok'} {reply.text.splitlines()[0]}")
            countdown.awake = True
        countdown.awake = False
    say(f"done {countdown.seen}")


def at_each(work: Callable[[str, int], None], end: str = "") -> None:
    """Fork for each line of stdin, the number of an operation (0: never) and a home, and work there."""
    for line in sys.stdin:
        die_at, home = line.rstrip("\n").split(" ", 1)
        child = os.fork()
        if child == 0:
            work(home, int(die_at))
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status in (0, -signal.SIGKILL), status
        if end:
            say(end)


def killed(homes: dict[Path, int], *program: str) -> str:
    """What a program prints that works `at_each` of these homes until the operation of that number."""
    lines = "".join(f"{die_at} {home}\n" for home, die_at in homes.items())
    command = [sys.executable, *program]
    ran = subprocess.run(command, input=lines.encode(), env=ENVIRONMENT, capture_output=True, timeout=200)
    assert ran.returncode == 0, ran.stderr.decode()
    return ran.stdout.decode()


if __name__ == "__main__":
    import commonplace.faces.memory_tool  # noqa: F401 (imported once, for all forks)

    at_each(lambda home, die_at: main(home, sys.argv[1], die_at), "end")
