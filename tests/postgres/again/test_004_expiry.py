"""See conftest.py."""

from contract.test_004_expiry import *  # noqa: F403
