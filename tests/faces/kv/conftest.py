"""The key-value tools over a real memory in a temporary folder, by a clock that stands still."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.key_value import KeyValue
from memoranda.engine import open_session
from movable_clock import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def entries(tmp_path: Path, clock: Clock) -> Iterator[KeyValue]:
    """The owner at an empty memory."""
    with open_session(tmp_path / "home", clock=clock, watch=False) as memory:
        yield KeyValue(memory)
