"""What the tests of export and import share."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from commonplace import Memory, open_memory

MOMENT = datetime(2026, 5, 7, 10, 0, tzinfo=UTC)


def files(home: Path) -> dict[str, bytes]:
    """What is on disk, but for the machine's own and the overview."""
    return {
        str(path.relative_to(home)): path.read_bytes()
        for path in home.rglob("*")
        if path.is_file() and ".commonplace" not in path.parts and path.name != "memory.md"
    }


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """An empty memory whose clock stands still."""
    with open_memory(tmp_path / "home", clock=lambda: MOMENT) as opened:
        yield opened
