"""The contract tests that tell most in a short time once more, their homes in a database: notes, links, graph, banks,
keys, undo, and what another client changes between two calls. All of them: pytest tests/contract --home-kind=postgres.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from postgres.server import MISSING, is_available

CONTRACT = Path(__file__).parents[1] / "contract"
FILES = ("000b_freshness", "000b_links", "000b_permalinks", "000b_undo", "001_hand_made", "002_graph",
         "003_bank", "004_expiry", "004_values")  # fmt: skip
IN_THIS_PROCESS = "not stdio and not mcp and not file-"


@pytest.mark.slow
@pytest.mark.skipif(not is_available(), reason=MISSING)
def test_the_contract_is_kept_in_a_database_as_in_a_folder():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n0", "--home-kind=postgres",
               "-m", "not slow", "-k", IN_THIS_PROCESS, *(f"{CONTRACT}/test_{each}.py" for each in FILES)]  # fmt: skip
    ran = subprocess.run(command, cwd=CONTRACT.parents[1], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-3000:]
    found = re.search(r"(\d+) passed", ran.stdout)
    assert found is not None
    assert int(found[1]) > 200, ran.stdout[-300:]
