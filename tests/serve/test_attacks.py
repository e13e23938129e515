"""What strangers do to a server over HTTP: `tools/try_attacks.py`, with few of each."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

import pytest

TOOL = Path(__file__).parents[2] / "tools/try_attacks.py"
NUMBER = int(os.environ.get("MEMORANDA_ATTACKS", "40"))
SLOW_MACHINE = 60.0


@pytest.fixture
def try_attacks(monkeypatch: pytest.MonkeyPatch) -> Any:
    spec = importlib.util.spec_from_file_location("try_attacks", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "try_attacks", module)
    spec.loader.exec_module(module)
    # How long a call takes is for the tool to say: here others use the machine
    monkeypatch.setattr(module, "SECONDS", SLOW_MACHINE)
    return module


@pytest.mark.slow
@pytest.mark.promise("http-strangers")
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
def test_strangers_keep_nobody_from_being_served_and_get_in_nowhere(try_attacks: Any) -> None:
    assert try_attacks.run(NUMBER) == []
