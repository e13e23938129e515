"""A server for the session, a space of it for each test, and replicas of that space."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest

from commonplace import Memory, open_memory
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


Replica = Callable[..., Memory]


@pytest.fixture
def replica(space: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Replica]:
    """Opens the space from a machine: one folder of copies for each name."""
    with ExitStack() as stack:

        def opened(name: str = "a", **more: object) -> Memory:
            monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache" / name))
            return stack.enter_context(open_memory(space, **more))  # type: ignore[arg-type]

        yield opened
