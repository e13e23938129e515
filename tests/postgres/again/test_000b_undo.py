"""See conftest.py."""

from contract.test_000b_undo import *  # noqa: F403
