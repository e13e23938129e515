"""See conftest.py."""

from contract.test_000b_freshness import *  # noqa: F403
