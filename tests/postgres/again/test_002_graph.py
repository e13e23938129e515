"""See conftest.py."""

from contract.test_002_graph import *  # noqa: F403
