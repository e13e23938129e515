"""What the tests of the ledger share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda import clock
from memoranda.ledger.ledger import Ledger
from memoranda.sources.folder import FolderSource
from memoranda.sources.layout import Layout


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    new_ledger = Ledger(Layout(tmp_path / "home"), clock.now)
    (tmp_path / "home" / "notes").mkdir()
    yield new_ledger
    new_ledger.close()


@pytest.fixture
def notes(ledger: Ledger) -> FolderSource:
    return FolderSource("notes", ledger.layout.built_in["notes"])
