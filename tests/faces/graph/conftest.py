"""The graph tools over an empty home."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from contract.graph_tools import Nodes
from memoranda.engine import open_session
from movable_clock import Ticking


@pytest.fixture
def clock() -> Ticking:
    return Ticking(datetime(2026, 11, 1, tzinfo=UTC))


@pytest.fixture
def nodes(tmp_path: Path, clock: Ticking) -> Iterator[Nodes]:
    with open_session(tmp_path / "home", watch=False, clock=clock) as memory:
        yield Nodes(memory)
