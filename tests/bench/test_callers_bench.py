"""The bench of many callers runs and loses nothing. No test looks at a time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench" / "callers.py"


@pytest.mark.slow
def test_a_few_callers_lose_nothing_over_the_socket_and_over_http():
    words = ["--callers", "3", "--seconds", "2", "--pause", "0.01", "--notes", "5"]
    done = subprocess.run(
        [sys.executable, str(BENCH), *words], capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    header, *rows = [line.split() for line in done.stdout.splitlines()]
    assert header[-2:] == ["refused", "lost"]
    assert [row[0] for row in rows] == ["socket", "http"]
    for row in rows:
        assert row[-2:] == ["0", "0"]
        assert int(row[-3]) > 0
