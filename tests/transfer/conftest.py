"""What the tests of export and import share."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memoranda.engine import MemorySession, open_session
from serve.forked import run
from serve.process import environment

MOMENT = datetime(2026, 5, 7, 10, 0, tzinfo=UTC)


def files(home: Path) -> dict[str, bytes]:
    """The files on disk, without the machine's own and the overview."""
    return {
        str(path.relative_to(home)): path.read_bytes()
        for path in home.rglob("*")
        if path.is_file() and ".memoranda" not in path.parts and path.name != "memory.md"
    }


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemorySession]:
    """An empty memory whose clock stands still."""
    with open_session(tmp_path / "home", clock=lambda: MOMENT) as opened:
        yield opened


KILLED = """
import os, signal, sys
from pathlib import Path
{imports}
left = int(sys.argv[1])
def seen(event, _):
    global left
    if event in {events}:
        left -= 1
        if left == 0: os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(seen)
{work}
"""


def times_killed(
    stops: Iterable[int],
    events: list[str],
    imports: str,
    work: str,
    *arguments: str | Path,
    **environ: str,
) -> int:
    """How often `work`, Python with `arguments` in sys.argv[2:], was killed, each time at a later
    one of these audit events (`stops`) wherever that is, until it ran to its end: no clock
    decides."""
    script = KILLED.format(events=events, imports=imports, work=work)
    killed = 0
    for stop in stops:
        ran = run(
            [sys.executable, "-c", script, str(stop), *map(str, arguments)],
            env={**environment(), **environ},
        )
        if ran.returncode == 0:
            break
        assert ran.returncode == -signal.SIGKILL, ran.stderr
        killed += 1
    return killed
