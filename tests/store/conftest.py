"""What the tests of stores share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.graph_tools import GraphFile
from memoranda import clock
from memoranda.engine import open_session
from memoranda.ledger.home import Home
from memoranda.store.folder import FolderStore
from memoranda.store.layout import Layout


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[GraphFile]:
    folder = tmp_path / "place"
    folder.mkdir()
    with open_session(tmp_path / "home", watch=False) as memory:
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
