"""The benchmark of the lifecycle jobs runs and shows its figures. Nothing here looks at how fast anything was."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_job_has_a_row_and_nothing_stays(tmp_path: Path) -> None:
    paths = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    ran = subprocess.run(
        [sys.executable, str(ROOT / "bench" / "lifecycle.py"), "--memories", "30", "--inbox", "10", "--rounds", "1"],
        capture_output=True, text=True, timeout=300, env=environment,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    for what in ("dream 1, 10 in the inbox", "consolidate, 30 memories, nothing to do", "dream 3, 30 memories"):
        assert f"\n{what}" in ran.stdout
    assert list(tmp_path.iterdir()) == []
