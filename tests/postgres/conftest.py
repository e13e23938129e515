"""A server for the session, a space of it for each test, and replicas of that space."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest

from memoranda.engine import MemorySession, open_session
from postgres.server import MISSING, is_available, served

_numbers = count(1)


@pytest.fixture(scope="session")
def database() -> Iterator[str]:
    """The address of a database of a real server."""
    if not is_available():
        pytest.skip(MISSING)
    with served() as url:
        yield url


@pytest.fixture
def space(database: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """The address of a space nobody used before. Copies go below tmp_path."""
    for name in ("MEMORY_HOME", "MEMORY_AGENT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return f"{database}&space=t{os.getpid()}-{next(_numbers)}"


def die_at(number: int) -> Callable[..., None]:
    """What kills this process when it is called for the time of this number, from 1."""
    calls = count(1)

    def called(*_: object) -> None:
        if next(calls) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    return called


def in_child(cache: Path, work: Callable[[], object]) -> int:
    """Do this in a separate process, whose copies are below `cache`, and which closes nothing at
    its end. Returns how it ended, as `os.waitpid` tells: 0 when the work was done."""
    child = os.fork()
    if child == 0:
        try:
            os.environ["XDG_CACHE_HOME"] = str(cache)
            work()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1]


Replica = Callable[..., MemorySession]


@pytest.fixture
def replica(space: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Replica]:
    """Opens the space from a machine: one folder of copies for each name."""
    with ExitStack() as stack:

        def opened(name: str = "a", **more: object) -> MemorySession:
            monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache" / name))
            return stack.enter_context(open_session(space, **more))  # type: ignore[arg-type]

        yield opened
