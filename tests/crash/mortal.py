"""Forks that work on a home each and kill themselves at the n-th durable operation.

Usage: mortal.py SCRIPT, with a line `DIE_AT HOME` on stdin for each home (0: never). A fork prints one line per
acknowledged call, flushed, and `done`; after each one comes the line `end`.
Every rename, link, unlink, mkdir, fsync, write and SQLite commit below the home counts as an operation.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager

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


if __name__ == "__main__":
    import commonplace.faces.memory_tool  # noqa: F401 (imported once, for all forks)

    for line in sys.stdin:
        die_at, home = line.rstrip("\n").split(" ", 1)
        child = os.fork()
        if child == 0:
            main(home, sys.argv[1], int(die_at))
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status in (0, -signal.SIGKILL), status
        say("end")
