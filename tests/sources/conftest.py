"""What the tests of sources share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.graph_tools import GraphFile
from memoranda.engine import open_session


@pytest.fixture
def graph_file(tmp_path: Path) -> Iterator[GraphFile]:
    folder = tmp_path / "place"
    folder.mkdir()
    with open_session(tmp_path / "home", watch=False) as memory:
        yield GraphFile(folder, memory)
