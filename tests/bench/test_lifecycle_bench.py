"""The benchmark of the lifecycle jobs runs and shows its figures. Nothing here looks at how fast anything was."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_every_job_has_a_row_and_nothing_stays(tmp_path: Path) -> None:
    paths = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    small = ["--memories", "8", "--inbox", "3", "--rounds", "1", "--settle", "0"]
    command = [sys.executable, str(ROOT / "bench" / "lifecycle.py"), *small]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert ran.returncode == 0, ran.stderr
    for what in ("dream 1, 3 in the inbox", "consolidate, 8 memories, nothing to do", "dream 3, 8 memories"):
        assert f"\n{what}" in ran.stdout
    assert list(tmp_path.iterdir()) == []
