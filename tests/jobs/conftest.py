from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.homes import Home


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """An empty home in UTC whose clock stands still."""
    home = Home(tmp_path / "home", "timezone: UTC\n")
    with home.memory:
        yield home
