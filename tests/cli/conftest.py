"""What the tests of the command line share."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import memoranda

PROGRAM = [sys.executable, "-m", "memoranda"]


def environment(**more: str) -> dict[str, str]:
    """The environment of a process that imports the package under test."""
    return {**os.environ, "PYTHONPATH": str(Path(memoranda.__file__).parents[1]), **more}


def run_process(
    *argv: str, env: dict[str, str] | None = None, **more: Any
) -> subprocess.CompletedProcess[bytes]:
    """Run a program as a process, and keep its output."""
    return subprocess.run(
        argv, env=environment(**(env or {})), capture_output=True, timeout=60, **more
    )


def tree(terminal: Any) -> dict[str, bytes]:
    """The files of the home that are not the machine's own."""
    files = (path for path in sorted(terminal.home.rglob("*")) if path.is_file())
    return {str(file): file.read_bytes() for file in files if ".memoranda" not in file.parts}
