"""Several commands at once (contract 001, 17.7)."""

from __future__ import annotations

import json
import sys
from subprocess import DEVNULL
from typing import Any

import pytest

from serve.forked import Forked
from serve.process import environment

pytestmark = [pytest.mark.promise("001-17.7"), pytest.mark.slow]

PROGRAM = """
import json, sys
from commonplace.cli import main
for argv in json.load(sys.stdin):
    if main(argv):
        sys.exit(1)
"""


def at_once(*batches: list[list[str]]) -> None:
    """Run each batch of command lines in a process of its own, all at the same time."""
    running = [Forked([sys.executable, "-c", PROGRAM], env=environment(), text=True, stdout=DEVNULL) for _ in batches]
    for process, batch in zip(running, batches, strict=True):
        process.stdin.write(json.dumps(batch))
        process.stdin.close()
    for process in running:
        _, errors = process.communicate(timeout=120)
        assert (process.returncode, errors) == (0, "")


def test_no_access_is_lost(terminal: Any) -> None:
    ref = terminal.write("read me")
    at_once(*[[["read", ref]] * 25] * 4)
    assert terminal("list", "--json").json["memories"][0]["access_count"] == 100


def test_no_link_is_lost(terminal: Any) -> None:
    hub, *others = [terminal.write(str(number)) for number in range(25)]
    at_once(*[[["link", hub, other] for other in others[part::4]] for part in range(4)])
    assert sorted(terminal("read", hub, "--json").json["memory"]["links"]) == sorted(others)
    assert all(terminal("read", each, "--json").json["memory"]["links"] == [hub] for each in others)


def test_no_memory_is_lost(terminal: Any) -> None:
    at_once(*[[["write", f"{part} {number}"] for number in range(25)] for part in range(4)])
    listed = terminal("list", "--limit", "0", "--json").json
    assert listed["total"] == len({each["content"] for each in listed["memories"]}) == 100
    assert len(list((terminal.home / "categories" / "inbox").glob("*.md"))) == 100
