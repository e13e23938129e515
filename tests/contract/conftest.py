"""Fixtures of the acceptance tests."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.memory_bank import Ground
from contract.note_tools import Tools
from memoranda.engine import MemorySession, open_session


@pytest.fixture
def tools(memory: MemorySession) -> Tools:
    """The owner's tools over an empty home, which is looked at again on each call."""
    return Tools(memory)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tools]:
    """The same for all tests of a module, which do not mind each other's notes."""
    with open_session(tmp_path_factory.mktemp("shared") / "home", watch=False) as memory:
        yield Tools(memory)


@pytest.fixture
def emptied(shared: Tools) -> Tools:
    """The home of the module's tests without their notes, for those that mind neither its history
    nor its folders.
    """
    for project in shared.memory.projects:
        for path in project.root.glob("*"):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    return shared


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    """Where the cases of the banks are played, away from this machine's own settings."""
    for name in ("MEMORY_AGENT", "MEMORY_BANK_DEBUG", "MEMORY_BANK_ROOT", "LLM_API_URL"):
        monkeypatch.delenv(name, raising=False)
    return Ground(tmp_path)
