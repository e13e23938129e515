"""Contract tests of every kind once more, their homes in a database. All of them: pytest tests/contract
--home-kind=postgres; what fails there writes notes by hand or uses folders and files of one machine as projects."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from postgres.server import MISSING, is_available

TESTS = Path(__file__).parents[1]
FILES = ("test_002_graph.py", "test_000b_permalinks.py")
BY_HAND = "not by_hand and not hand_made and not presets"
"""Names of tests that write files past commonplace, or use the folder of another program."""


@pytest.mark.slow
@pytest.mark.skipif(not is_available(), reason=MISSING)
@pytest.mark.parametrize("file", FILES)
def test_the_contract_is_kept_in_a_database_as_in_a_folder(file: str):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n0", "--home-kind=postgres",
               "-k", BY_HAND, str(TESTS / "contract" / file)]  # fmt: skip
    ran = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-3000:]
