"""The bank tools over a memory in a temporary folder."""

from __future__ import annotations

import pytest

from contract.memory_bank import Banks
from memoranda.engine import MemorySession


@pytest.fixture
def banks(memory: MemorySession) -> Banks:
    """The owner at an empty memory."""
    return Banks(memory)
