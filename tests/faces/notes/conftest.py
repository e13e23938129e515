"""The note tools over a real memory in a temporary folder, called the way every transport calls
them.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from contract.note_tools import Tools
from memoranda.engine import MemorySession, open_session


@pytest.fixture
def face(memory: MemorySession) -> Tools:
    """The owner at an empty memory."""
    return Tools(memory)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tools]:
    """The same for all tests of a module, which do not mind each other's notes."""
    with open_session(tmp_path_factory.mktemp("shared") / "home", watch=False) as memory:
        yield Tools(memory)
