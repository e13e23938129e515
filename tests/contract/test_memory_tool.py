"""Contract 000a: every case of memory_tool.json, through each way the tool is offered."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anthropic.lib.tools import ToolError

from commonplace import faces, open_memory
from commonplace.anthropic import AsyncMemoryTool, MemoryTool
from commonplace.config import load
from contract.memory_tool import CASES, Store, arguments, check_reply

pytestmark = pytest.mark.promise("000a-12.1")

Call = Callable[[dict[str, Any]], tuple[str, bool]]


@contextmanager
def registry(home: Path, terminal: Any) -> Iterator[Call]:
    with open_memory(home) as memory:
        tools = faces.registry(["memory"], memory.settings)

        def call(given: dict[str, Any]) -> tuple[str, bool]:
            reply = tools.call(memory, "memory", given)
            assert reply.data == ({"error": reply.text, "is_error": True} if reply.is_error else None)
            return reply.text, reply.is_error

        yield call


@contextmanager
def adapter(made: type, home: Path, terminal: Any) -> Iterator[Call]:
    tool = made(home)

    def call(given: dict[str, Any]) -> tuple[str, bool]:
        try:
            reply = tool.call(given)
            return (asyncio.run(reply) if inspect.isawaitable(reply) else reply), False
        except ToolError as error:
            return error.content, True

    yield call
    tool.close()


@contextmanager
def command(home: Path, terminal: Any) -> Iterator[Call]:
    def call(given: dict[str, Any]) -> tuple[str, bool]:
        ran = terminal("call", "memory", json.dumps(given), "--home", str(home), "--json")
        assert ran.status == (1 if ran.json["is_error"] else 0)
        return ran.json["text"], ran.json["is_error"]

    yield call


WAYS = {
    "registry": registry,
    "adapter": partial(adapter, MemoryTool),
    "async adapter": partial(adapter, AsyncMemoryTool),
    "memory call": command,
}


def carried(case: dict[str, Any], way: str) -> bool:
    """Whether this way can carry the case: the SDK knows only its own commands."""
    commands = [arguments(op).get("command") for op in case["ops"]]
    return "adapter" not in way or all(isinstance(each, str) and each != "undo_edit" for each in commands)


@pytest.mark.parametrize(
    ("way", "case"),
    [pytest.param(way, case, id=f"{way}: {case['name']}") for way in WAYS for case in CASES if carried(case, way)],
)
def test_every_case(way: str, case: dict[str, Any], tmp_path: Path, terminal: Any) -> None:
    store = Store(tmp_path / "home")
    store.home.mkdir(exist_ok=True)
    if value := case.get("options", {}).get("create_existing"):
        (store.home / "config.yaml").write_text(f"memory_tool:\n  create_existing: {value}\n")
    store.fill(case)
    with WAYS[way](store.home, terminal) as call:
        for op in case["ops"]:
            check_reply(op, *call(arguments(op)), store.home)
    store.check(case)


def test_the_settings_reach_the_description(tmp_path):
    (tmp_path / "config.yaml").write_text("memory_tool:\n  create_existing: error\n")
    described = faces.registry(["memory"], load(tmp_path)).tools["memory"].description
    assert "an existing file is refused" in described
    assert "overwritten" in faces.registry(["memory"], load(tmp_path / "other")).tools["memory"].description
