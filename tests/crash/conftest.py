"""The library that lets system calls fail, compiled once for the tests of several files."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("failing") / "failing_disk.so"
    command = [
        "gcc",
        "-shared",
        "-fPIC",
        "-o",
        str(path),
        str(Path(__file__).with_name("failing_disk.c")),
        "-ldl",
    ]
    process = subprocess.run(command, capture_output=True, text=True)
    if process.returncode:
        pytest.skip(f"the compiler refuses: {process.stderr[-200:]}")
    return path
