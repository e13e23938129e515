"""The documentation is true."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]


def reference() -> ModuleType:
    """The generator, which is no part of the package."""
    spec = importlib.util.spec_from_file_location("reference", ROOT / "tools" / "reference.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["cli.md", "tools.md"])
def test_the_reference_pages_are_what_the_code_generates(name: str, request: pytest.FixtureRequest) -> None:
    now = reference().PAGES[name]()
    path = ROOT / "docs" / name
    if request.config.getoption("--update"):
        path.write_text(now, "utf-8")
    assert path.read_text("utf-8") == now, "run: python tools/reference.py"
