"""What people are told to install exists, and one module says it."""

from __future__ import annotations

import re
from importlib.metadata import metadata
from pathlib import Path

import pytest

from memoranda import extras

ROOT = Path(__file__).parents[1]
OFFERED = set(metadata("memoranda").get_all("Provides-Extra") or ())
_NAMED = re.compile(r"(?:\bmemoranda|\.|/source)\[([a-z0-9, -]+)\]")
PAGES = [
    path
    for folder in ("src", "docs", "plugin", "deploy", "samples", "tools", "README.md", "Makefile")
    for path in ([ROOT / folder] if (ROOT / folder).is_file() else (ROOT / folder).rglob("*"))
    if path.is_file() and path.suffix not in (".pyc", ".png")
]


def named(path: Path) -> set[str]:
    text = path.read_text("utf-8", "replace")
    lines = [line for line in text.splitlines() if "pip" in line or "extra" in line]
    extras = set()
    for line in lines:
        for names in _NAMED.findall(line):
            extras |= {name.strip() for name in names.split(",")}
    return extras


def test_each_extra_that_is_named_anywhere_exists() -> None:
    unknown = {str(path): named(path) - OFFERED for path in PAGES if named(path) - OFFERED}
    assert unknown == {}
    assert set().union(*map(named, PAGES)) >= {"semantic", "anthropic", "postgres"}


def test_each_extra_that_the_code_asks_for_exists() -> None:
    extras_asked = set()
    for module in (ROOT / "src").rglob("*.py"):
        text = module.read_text("utf-8")
        extras_asked.update(re.findall(r"install_command\(\s*[\"']([\w-]+)", text))
    assert extras_asked - {"semantic"} == {
        "adk",
        "anthropic",
        "langgraph",
        "openai-agents",
        "postgres",
    }
    assert extras_asked <= OFFERED


def test_one_module_makes_the_sentences() -> None:
    saying = {
        path.name
        for path in (ROOT / "src").rglob("*.py")
        if "pip install" in path.read_text("utf-8")
    }
    assert saying == {"extras.py"}


@pytest.mark.parametrize(
    ("is_checkout", "command"),
    [(True, "pip install '.[semantic]' numpy"), (False, "pip install 'memoranda[semantic]' numpy")],
)
def test_a_checkout_and_a_wheel_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_checkout: bool, command: str
) -> None:
    if is_checkout:
        (tmp_path / "pyproject.toml").write_text("", "utf-8")
    monkeypatch.setattr(extras, "_CHECKOUT", tmp_path)
    assert extras.install_command("semantic", "numpy") == command
