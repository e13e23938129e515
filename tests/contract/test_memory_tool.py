"""Contract 000a: every case of memory_tool.json, through each way the tool is offered."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from commonplace import faces, open_memory
from commonplace.anthropic import AsyncMemoryTool, MemoryTool
from commonplace.config import load
from contract.memory_tool import CASES, NAMES, Store, arguments, check_reply

pytestmark = pytest.mark.promise("000a-12.1")
_SDK_CASES = [case for case in CASES if all(isinstance(arguments(op).get("command"), str) for op in case["ops"])
              and not any(arguments(op)["command"] == "undo_edit" for op in case["ops"])]  # fmt: skip


def configured(case: dict, store: Store) -> None:
    store.home.mkdir(parents=True, exist_ok=True)
    if value := case.get("options", {}).get("create_existing"):
        (store.home / "config.yaml").write_text(f"memory_tool:\n  create_existing: {value}\n")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "home")


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_every_case_through_the_registry(case, store):
    configured(case, store)
    store.fill(case)
    with open_memory(store.home) as memory:
        registry = faces.registry(["memory"], memory.settings)
        for op in case["ops"]:
            reply = registry.call(memory, "memory", arguments(op))
            check_reply(op, reply.text, reply.is_error, store.home)
            assert reply.data == ({"error": reply.text, "is_error": True} if reply.is_error else None)
    store.check(case)


@pytest.mark.parametrize("case", _SDK_CASES, ids=[case["name"] for case in _SDK_CASES])
def test_every_case_the_sdk_can_carry_through_the_adapter(case, store):
    from anthropic.lib.tools import ToolError

    configured(case, store)
    store.fill(case)
    tool = MemoryTool(store.home)
    try:
        for op in case["ops"]:
            try:
                text, failed = tool.call(arguments(op)), False
            except ToolError as error:
                text, failed = error.content, True
            check_reply(op, text, failed, store.home)
    finally:
        tool.close()
    store.check(case)


@pytest.mark.parametrize("case", _SDK_CASES, ids=[case["name"] for case in _SDK_CASES])
def test_every_case_the_sdk_can_carry_through_the_async_adapter(case, store):
    from anthropic.lib.tools import ToolError

    configured(case, store)
    store.fill(case)
    tool = AsyncMemoryTool(store.home)

    async def run() -> None:
        for op in case["ops"]:
            try:
                text, failed = await tool.call(arguments(op)), False
            except ToolError as error:
                text, failed = error.content, True
            check_reply(op, text, failed, store.home)

    try:
        asyncio.run(run())
    finally:
        tool.close()
    store.check(case)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_every_case_through_memory_call(case, store, capfd):
    from commonplace.cli import main

    configured(case, store)
    store.fill(case)
    for op in case["ops"]:
        argv = ["call", "memory", json.dumps(arguments(op)), "--home", str(store.home), "--json"]
        with pytest.raises(SystemExit) as ended:
            raise SystemExit(main(argv))
        out = json.loads(capfd.readouterr().out)
        check_reply(op, out["text"], out["is_error"], store.home)
        assert (ended.value.code or 0) == (1 if out["is_error"] else 0)
    store.check(case)


def test_the_settings_reach_the_description(tmp_path):
    (tmp_path / "config.yaml").write_text("memory_tool:\n  create_existing: error\n")
    described = faces.registry(["memory"], load(tmp_path)).tools["memory"].description
    assert "an existing file is refused" in described
    assert "overwritten" in faces.registry(["memory"], load(tmp_path / "other")).tools["memory"].description
