"""The graph tools over an empty home."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from commonplace import open_memory
from contract.graph_tools import Nodes, Ticking


@pytest.fixture
def clock() -> Ticking:
    return Ticking()


@pytest.fixture
def nodes(tmp_path: Path, clock: Ticking) -> Iterator[Nodes]:
    with open_memory(tmp_path / "home", watch=False, clock=clock) as memory:
        yield Nodes(memory)
