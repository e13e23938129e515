"""A system call that writes fails under a running HTTP server, each in turn: what a caller was told is
done is there after the server was killed, what it was refused is not there or whole, and the server
goes on answering.

The calls that fail are those of test_failing_disk.py. DISK_FAILURES sets how many fail in turn.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import httpx2
import pytest

from crash.test_failing_disk import FAILURES as FAILURES_ON_DISK
from crash.test_failing_disk import KINDS, STAYS_FULL
from memoranda import Draft, cli
from memoranda.engine import open_session
from memoranda.serve.auth import Access
from serve.forked import Forked
from serve.process import SECONDS
from serve.web import ACCEPT, bearer

# A server takes a second to start
FAILURES = max(1, FAILURES_ON_DISK // 3)
NOTES = ("edited", "moved", "deleted", "folder/one", "folder/two")
NO_FAILURE = 1_000_000
LARGE = f"large {'-' * 993}\n" * 600
"""More than half a megabyte of few words."""
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "write": ("write_note", {"title": "new", "directory": "", "content": "new text"}),
    "edit": (
        "edit_note",
        {"identifier": "notes/edited", "operation": "append", "content": "more"},
    ),
    "move": ("move_note", {"identifier": "notes/moved", "destination_path": "away/moved.md"}),
    "delete": ("delete_note", {"identifier": "notes/deleted"}),
    "folder": (
        "move_note",
        {"identifier": "folder", "destination_path": "other", "is_directory": True},
    ),
    "entry": ("memory_remember", {"key": "name", "value": "second"}),
    "entity": (
        "memory_create_entities",
        {"entities": [{"name": "Bob", "entityType": "person", "observations": ["new text"]}]},
    ),
    "file": (
        "memory",
        {"command": "create", "path": "/memories/made.md", "file_text": "new text"},
    ),
    "large": ("write_note", {"title": "large", "directory": "", "content": LARGE}),
}
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no C compiler here"),
]


def serve() -> None:
    """The server, in a separate process: at SIGUSR1 calls begin to count, at SIGUSR2 it says how
    many there were.
    """
    import ctypes

    home, count_file = sys.argv[1:]
    loaded = ctypes.CDLL(None)
    signal.signal(signal.SIGUSR1, lambda *_: loaded.failing_disk_start())
    signal.signal(
        signal.SIGUSR2, lambda *_: Path(count_file).write_text(str(loaded.failing_disk_seen()))
    )
    options = ["--http", "127.0.0.1:0", "--tools", "memory,notes,graph,kv", "--interval", "1h"]
    sys.exit(cli.main(["serve", "--home", home, *options, "--log", os.devnull]))


@contextmanager
def serving(library: Path, place: Path, kind: str, at: int) -> Iterator[tuple[Any, str]]:
    """The server in which call number `at` fails, and its address. It is killed at the end."""
    environment = {
        **os.environ,
        "LD_PRELOAD": str(library),
        "FAILING_FOLDER": str(place / "home"),
        "FAILING_AT": str(at),
        "FAILING_CODE": str(KINDS[kind]),
        "FAILING_ON": "1" if kind == STAYS_FULL else "",
        "PYTHONPATH": os.pathsep.join(sys.path),
        "HOME": str(place),
    }
    start = "from crash.test_failing_http import serve; serve()"
    command = [sys.executable, "-c", start, str(place / "home"), str(place / "seen")]
    process = Forked(command, env=environment, stdin=DEVNULL, stderr=DEVNULL, text=True)
    try:
        assert process.stdout is not None
        address = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
        assert address
        yield process, address[0]
    finally:
        process.kill()
        process.communicate(timeout=SECONDS)


def made(place: Path) -> str:
    """A home with notes and an entry. Returns the secret of a token."""
    with open_session(place / "home", watch=False) as memory:
        for name in NOTES:
            folder, _, title = name.rpartition("/")
            memory.write(Draft(f"{name}\n", title=title, project="notes", folder=folder))
    return Access(place / "home").add("laptop", rate=0)[1]


def told(address: str, secret: str) -> dict[str, bool]:
    """By call, whether it was acknowledged. A server that answers nothing fails the test."""
    acknowledged: dict[str, bool] = {}
    with httpx2.Client(timeout=SECONDS) as client:
        for name, (tool, arguments) in CALLS.items():
            body = {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/call",
                "params": {"name": tool, "arguments": arguments},
            }
            answer = client.post(f"{address}/mcp", json=body, headers=ACCEPT | bearer(secret))
            assert answer.status_code in (200, 500, 503), answer.text
            result = answer.json().get("result") if answer.status_code == 200 else None
            acknowledged[name] = bool(result) and not result.get("isError")
    return acknowledged


def outcome(place: Path) -> dict[str, bool | None]:
    """Whether what a call does is on the disk; None for anything between before and after."""
    home = place / "home"

    def holds(path: str, *texts: str) -> bool | None:
        if not (home / path).exists():
            return False
        text = (home / path).read_text()
        return True if all(this in text for this in texts) else None

    def moved(before: str, after: str) -> bool | None:
        was = (home / before).exists()
        return None if was == (home / after).exists() else not was

    moves = {moved(f"notes/folder/{name}.md", f"notes/other/{name}.md") for name in ("one", "two")}
    entries = [*(home / "kv").rglob("*.md")] if (home / "kv").exists() else []
    return {
        "write": holds("notes/new.md", "new text"),
        "edit": "more" in (home / "notes/edited.md").read_text(),
        "move": moved("notes/moved.md", "notes/away/moved.md"),
        "delete": not (home / "notes/deleted.md").exists(),
        "folder": moves.pop() if len(moves) == 1 else None,
        "entry": any("second" in path.read_text() for path in entries),
        "entity": holds("graph/Bob.md", "new text"),
        "file": holds("memories/made.md", "new text"),
        "large": holds("notes/large.md", LARGE.strip()),
    }


def check(place: Path, acknowledged: dict[str, bool]) -> None:
    """What was acknowledged is there, nothing is torn, and all of it can be taken back."""
    before = len(NOTES)
    with open_session(place / "home", watch=False) as memory:
        memory.sync()
        now = outcome(place)
        for name, is_there in now.items():
            assert is_there is not None, f"{name} is torn"
            assert is_there or not acknowledged[name], f"{name} was acknowledged and is lost"
        changes = [change for change in memory.log(limit=0) if change.number > before]
        assert len(changes) == sum(map(bool, now.values())), [change.verb for change in changes]
        for _ in changes:
            memory.undo()
        assert not any(outcome(place).values())


def calls_made(library: Path, place: Path) -> int:
    """How many calls that write the server makes where none fails."""
    secret = made(place)
    with serving(library, place, "io", NO_FAILURE) as (process, address):
        process.send_signal(signal.SIGUSR1)
        acknowledged = told(address, secret)
        assert all(acknowledged.values()), acknowledged
        process.send_signal(signal.SIGUSR2)
        return int(eventually((place / "seen").read_text))
    raise AssertionError("it ended")


def eventually(read: Callable[[], str]) -> str:
    """What a file holds once it is there."""
    for _ in range(SECONDS * 1_000):
        with suppress(FileNotFoundError):
            text = read()
            if text:
                return text
    raise AssertionError("nobody wrote it")


@pytest.fixture(scope="session")
def calls(library: Path, tmp_path_factory: pytest.TempPathFactory) -> int:
    return calls_made(library, tmp_path_factory.mktemp("whole"))


@pytest.mark.promise("issue-full-disk")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", range(FAILURES))
def test_a_call_that_fails_under_the_http_server_loses_and_tears_nothing(
    library: Path, calls: int, tmp_path: Path, kind: str, part: int
) -> None:
    assert calls > 40
    secret = made(tmp_path)
    # Other places for each kind
    shift = [*KINDS].index(kind) / len(KINDS)
    at = 1 + int((part + shift) * calls / FAILURES)
    with serving(library, tmp_path, kind, at) as (process, address):
        process.send_signal(signal.SIGUSR1)
        acknowledged = told(address, secret)
        assert process.poll() is None
    check(tmp_path, acknowledged)
