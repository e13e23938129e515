"""Fixtures of the acceptance tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from commonplace import open_memory
from contract.note_tools import Tools


@pytest.fixture
def tools(tmp_path: Path) -> Iterator[Tools]:
    """The owner's tools over an empty home, which is looked at anew on each call."""
    with open_memory(tmp_path / "home", watch=False) as memory:
        yield Tools(memory)
