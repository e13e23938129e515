"""The bank tools over a memory in a temporary folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from commonplace import open_memory
from contract.memory_bank import Banks


@pytest.fixture
def banks(tmp_path: Path) -> Iterator[Banks]:
    """The owner at an empty memory."""
    with open_memory(tmp_path / "home", watch=False) as memory:
        yield Banks(memory)
