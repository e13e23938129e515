"""No call takes long because an argument is as large as it may be: `tools/try_sizes.py` on a small
home (10,000 notes: run the tool).
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from memoranda.engine import MemorySession, open_session
from memoranda.faces import ALL, registry
from memoranda.faces.texts import text_file
from memoranda.serve.page.routes import API

TOOL = Path(__file__).parents[2] / "tools/try_sizes.py"
NOTES = 60
LARGE = 20_000
MOST_SECONDS = 2.0


@pytest.fixture
def try_sizes(monkeypatch: pytest.MonkeyPatch) -> Any:
    spec = importlib.util.spec_from_file_location("try_sizes", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "try_sizes", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "LARGE", LARGE)
    # The largest values alone, which cost most
    monkeypatch.setattr(module, "SIZES", ())
    # What others wait is the tool's to see: a caller that asks all the time costs as much as the rest
    monkeypatch.setattr(module, "calling", nobody_else)
    return module


@contextmanager
def nobody_else(memory: MemorySession) -> Iterator[Any]:
    """In place of another caller, who never waited."""
    yield SimpleNamespace(longest=lambda: 0.0)


def test_every_tool_address_prompt_and_template_is_tried(tmp_path: Path, try_sizes: Any) -> None:
    sizes = json.loads(text_file("sizes.json"))
    with open_session(tmp_path / "home", watch=False) as memory:
        for toolset in ("all", "agent"):
            served = registry([toolset], memory.settings)
            tried = {tool for _, tool, _ in try_sizes.calls(served, sizes)}
            assert tried == served.tools.keys()
        served = registry(ALL, memory.settings)
        prompts = {}
        for prompt in served.prompts.values():
            prompts[prompt.name] = tuple(name for name, _, _ in prompt.arguments)
        assert prompts == try_sizes.PROMPTS
        uris = [template.uri for template in served.templates]
        assert uris == [try_sizes.TEMPLATE]
    addresses = {
        re.sub(r"/\d+$", "/{change}", path.removeprefix("/api"))
        for path in try_sizes.API_PARAMETERS.keys() | try_sizes.API_BODIES.keys()
    }

    assert addresses == API.keys()
    assert {f"/api{path}" for path, (methods, _) in API.items() if "POST" in methods} == {
        *try_sizes.API_BODIES
    }


@pytest.mark.slow
@pytest.mark.promise("arguments-sizes")
@pytest.mark.parametrize("tool", ["memory ", "edit_note", "search_notes"])
def test_no_call_takes_long_for_its_largest_argument(
    tmp_path: Path, try_sizes: Any, tool: str
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.yaml").write_text(try_sizes.CONFIGURATION, "utf-8")
    with open_session(home, watch=False) as memory:
        try_sizes.fill(memory, NOTES)
        costs = list(try_sizes.measure(memory, only=tool))

    assert len(costs) > 10
    assert [cost for cost in costs if cost.seconds > MOST_SECONDS] == []
