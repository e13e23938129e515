"""`make demo` shows what it says it shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[1] / "samples" / "demo.py"


@pytest.mark.slow
def test_the_demo_finds_what_is_in_the_vault_it_adds(tmp_path: Path) -> None:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("MEMORY_")
    }
    environment["TMPDIR"] = str(tmp_path)
    ran = subprocess.run(
        [sys.executable, str(DEMO)], capture_output=True, text=True, timeout=120, env=environment
    )
    assert ran.returncode == 0, ran.stderr
    assert "Added project sample" in ran.stdout
    assert "relations: 3 resolved" in ran.stdout
    assert '# 0 notes for "' not in ran.stdout
    assert "61 notes, not a byte changed" in ran.stdout
