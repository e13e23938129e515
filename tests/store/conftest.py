"""What the tests of stores share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from commonplace import clock, open_memory
from commonplace.store.folder import FolderStore
from commonplace.store.home import Home
from commonplace.store.layout import Layout
from contract.graph_tools import GraphFile


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[GraphFile]:
    folder = tmp_path / "place"
    folder.mkdir()
    with open_memory(tmp_path / "home", watch=False) as memory:
        yield GraphFile(folder, memory)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(Layout(tmp_path / "home"), clock.now)
    (tmp_path / "home" / "notes").mkdir()
    yield made
    made.close()


@pytest.fixture
def notes(home: Home) -> FolderStore:
    return FolderStore("notes", home.layout.built_in["notes"])
