"""Several threads write at once, as one batch. As a program of `mortals` it prints the name of each
call that was acknowledged."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from crash.mortal import Countdown, at_each, counted, say
from memoranda import faces
from memoranda.engine import MemorySession
from memoranda.faces.reply import Reply
from memoranda.faces.tool import Registry

CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "new": ("write_note", {"title": "New", "content": "new " * 200, "directory": ""}),
    "overwritten": (
        "write_note",
        {"title": "Old", "content": "after " * 200, "directory": "", "overwrite": True},
    ),
    "edited": (
        "edit_note",
        {"identifier": "notes/edited", "operation": "append", "content": "added"},
    ),
    "entry": ("memory_remember", {"key": "colour", "value": "red"}),
    "superseding": (
        "write_note",
        {"title": "Now", "content": "now", "directory": "", "supersedes": ["then"]},
    ),
}
"""What is written at once: each is one change, the last of two files."""


def begin(memory: MemorySession) -> None:
    """What the calls expect to be there."""
    tools = faces.registry(["notes", "kv"], memory.settings)
    for title in ("Old", "Edited", "Then"):
        call = {"title": title, "content": f"before {title}\n", "directory": ""}
        reply = tools.call(memory, "write_note", call)
        assert not reply.is_error
    reply = tools.call(memory, "memory_remember", {"key": "colour", "value": "blue"})
    assert not reply.is_error


@contextmanager
def at_once(
    memory: MemorySession, calls: dict[str, tuple[str, dict[str, Any]]]
) -> Iterator[dict[str, Reply | None]]:
    """Make all `calls`, each in a thread: they wait inside the block, and come in as one batch at
    its end. Yields the dict that has their replies then, by name; None for a call that waits.
    """
    tools: Registry = faces.registry(["notes", "kv"], memory.settings)
    replies: dict[str, Reply | None] = dict.fromkeys(calls)

    def run(name: str) -> None:
        replies[name] = tools.call(memory.as_caller(None, "mcp"), *calls[name])

    threads = [threading.Thread(target=run, args=(name,)) for name in calls]
    with memory.engine.guard:
        for thread in threads:
            thread.start()
        end = time.monotonic() + 20
        while memory.engine.guard.waiting < len(threads) and time.monotonic() < end:
            threading.Event().wait(0.001)
        yield replies
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def main(home: str, countdown: Countdown) -> None:
    from memoranda.engine import open_session
    from memoranda.ledger.ledger import Ledger

    with (
        patch.object(Ledger, "make", counted(Ledger.make, countdown, after=True)),
        open_session(home, watch=False) as memory,
    ):
        memory.sync()
        with at_once(memory, CALLS) as replies:
            countdown.awake = True
        countdown.awake = False
        for name, reply in replies.items():
            assert reply is not None
            say(f"refused {reply.text}" if reply.is_error else name)


if __name__ == "__main__":
    at_each(main)
