"""A process that works on each home it is given in a fork, which kills itself at the n-th durable
operation.

Every rename, link, unlink, mkdir, fsync, write and SQLite commit below the home counts as an
operation.
"""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'tests'}"}

COUNTED = (
    "rename",
    "replace",
    "link",
    "unlink",
    "mkdir",
    "rmdir",
    "fsync",
    "fdatasync",
    "write",
    "pwrite",
    "ftruncate",
    "symlink",
)


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


def counted(function, countdown: Countdown, after: bool = False):
    """The function with a tick before each call and, if so asked, one after it."""

    def call(*args, **kwargs):
        countdown.tick()
        result = function(*args, **kwargs)
        if after:
            countdown.tick()
        return result

    return call


@contextmanager
def watched_disk(watched: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Iterator[None]:
    """Inside, every operation on the disk is one `watched`: calls of the system, the exchange of
    two files, the begin and the commit of a transaction of the ledger.

    What it raises as an OSError the ledger raises as SQLite would.
    """
    from memoranda.ledger import execution
    from memoranda.ledger.database import LedgerDatabase, LedgerRefused
    from memoranda.sources.files import reason

    moment = watched(lambda: None)
    original = LedgerDatabase.transaction

    def ledger_moment() -> None:
        try:
            moment()
        except OSError as error:
            raise LedgerRefused(reason(error)) from None

    @contextmanager
    def transaction(self, **more):
        ledger_moment()
        with original(self, **more) as connection:
            yield connection
            ledger_moment()

    with ExitStack() as stack:
        for name in COUNTED:
            stack.enter_context(patch.object(os, name, watched(getattr(os, name))))
        exchange = watched(execution.exchange)
        stack.enter_context(patch.object(execution, "exchange", exchange))
        stack.enter_context(patch.object(LedgerDatabase, "transaction", transaction))
        yield


def say(text: str) -> None:
    sys.__stdout__.buffer.write(text.encode() + b"\n")
    sys.__stdout__.buffer.flush()


def at_each(work: Callable[[str, Countdown], None]) -> None:
    """Do `work` for each line of stdin, the number of an operation and a home, in a fork that dies
    at that operation. 0 is work done here, that later forks need not import what it needs. Prints a
    line `end` after each, with how many operations there were."""
    for line in sys.stdin:
        die_at, home = line.rstrip("\n").split(" ", 1)
        countdown = Countdown(int(die_at))
        if countdown.left == 0:
            run(work, home, countdown)
            gc.freeze()
        elif (child := os.fork()) == 0:
            signal.alarm(60)
            run(work, home, countdown)
            os._exit(0)
        else:
            _, ending = os.waitpid(child, 0)
            status = os.waitstatus_to_exitcode(ending)
            assert status in (0, -signal.SIGKILL), status
        say(f"end {countdown.seen}")


def run(work: Callable[[str, Countdown], None], home: str, countdown: Countdown) -> None:
    with watched_disk(lambda function: counted(function, countdown, after=True)):
        work(home, countdown)


@contextmanager
def mortals(*program: str) -> Iterator[Callable[..., tuple[list[str], int]]]:
    """Starts a program that works `at_each`. Yields what has it work on a home until the operation
    of a number (0: undisturbed), and returns the lines it printed and how many operations there
    were."""
    command = [sys.executable, *program]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env=ENVIRONMENT, text=True, **pipes) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def until(home: Path, die_at: int = 0) -> tuple[list[str], int]:
            process.stdin.write(f"{die_at} {home}\n")
            process.stdin.flush()
            lines = []
            for line in process.stdout:
                word, _, number = line.rstrip("\n").partition(" ")
                if word == "end":
                    return lines, int(number)
                lines.append(line.rstrip("\n"))
            raise AssertionError("the work failed on its own")

        yield until


SCRIPTS = {
    "edits": [
        {
            "command": "str_replace",
            "path": "/memories/a.md",
            "old_str": "count 0",
            "new_str": "count 1",
        },
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


def main(home: str, countdown: Countdown) -> None:
    from memoranda.engine import open_session
    from memoranda.faces.memory_tool import MemoryCommands
    from memoranda.index import database, sync

    original = database.transaction

    @contextmanager
    def transaction(db):
        countdown.tick()
        with original(db):
            yield
            countdown.tick()
        countdown.tick()

    with (
        patch.object(database, "transaction", transaction),
        patch.object(sync, "transaction", transaction),
        open_session(home, watch=False) as memory,
    ):
        commands = MemoryCommands()
        for arguments in SCRIPTS[sys.argv[1]]:
            countdown.awake = True
            reply = commands.run(memory, arguments)
            countdown.awake = False
            say(f"{'refused' if reply.is_error else 'ok'} {reply.text.splitlines()[0]}")


if __name__ == "__main__":
    at_each(main)
