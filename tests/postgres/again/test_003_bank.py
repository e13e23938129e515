"""See conftest.py."""

from contract.test_003_bank import *  # noqa: F403
