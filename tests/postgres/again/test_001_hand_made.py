"""See conftest.py."""

from contract.test_001_hand_made import *  # noqa: F403
