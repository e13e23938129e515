"""bench/durable.py: one durable write on a slow disk."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_each_kind_of_write_waits_for_the_slow_disk_and_is_compared() -> None:
    small = ["--milliseconds", "20", "--writes", "3", "--rounds", "1"]
    command = [sys.executable, "durable.py", *small, "--beside", str(BENCH.parent / "src")]

    process = subprocess.run(command, cwd=BENCH, capture_output=True, text=True, timeout=120)

    assert process.returncode == 0, process.stderr
    rows = re.findall(r"^(a .*?) +([\d.]+)  before +([\d.]+)  times", process.stdout, re.M)
    kinds = [kind for kind, _, _ in rows]
    assert kinds == ["a new note", "a note overwritten"]
    for _, ours, before in rows:
        # A write that did not wait for a sync would not be durable.
        assert float(ours) >= 20
        assert float(before) >= 20
