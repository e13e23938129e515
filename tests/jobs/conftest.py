from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.homes import Home


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """An empty home whose clock stands still."""
    home = Home(tmp_path / "home")
    with home.memory:
        yield home
