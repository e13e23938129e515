"""See conftest.py."""

from contract.test_004_values import *  # noqa: F403
