"""What the tests of stores share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from commonplace import open_memory
from contract.graph_tools import GraphFile


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[GraphFile]:
    folder = tmp_path / "place"
    folder.mkdir()
    with open_memory(tmp_path / "home", watch=False) as memory:
        yield GraphFile(folder, memory)
