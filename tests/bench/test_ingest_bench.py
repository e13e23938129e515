"""The benchmark of ingestion runs and shows its figures. Nothing here looks at how fast anything was."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).parents[2] / "bench" / "ingest.py"


def test_the_figures_of_ingestion_are_shown(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(BENCH), "--notes", "12"],
        capture_output=True, text=True, timeout=120, env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for what in ("ingest, 12 new notes", "again, all known", "again, 12 of them changed"):
        assert what in done.stdout
    assert list(tmp_path.iterdir()) == []
