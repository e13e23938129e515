"""Contract 003, 11.1: every case of bank_cases.json, through the registry and over MCP stdio."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from commonplace import faces, open_memory
from contract.mcp_server import Server
from contract.memory_bank import CASES, NAMES, Ground


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


@pytest.mark.promise("003-11.1")
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_every_case_through_the_registry(case: dict[str, Any], ground: Ground) -> None:
    with open_memory(ground.home) as memory:
        tools = faces.registry(["bank"], memory.settings)

        def call(tool: str, arguments: dict[str, Any]) -> tuple[str, bool, Any]:
            reply = tools.call(memory, tool, arguments)
            return reply.text, reply.is_error, reply.data

        ground.run(case, call)


@pytest.mark.promise("003-11.1", "003-11.9")
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_every_case_over_mcp(case: dict[str, Any], ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MEMORY_AGENT", "MEMORY_BANK_DEBUG", "MEMORY_BANK_ROOT"):
        monkeypatch.delenv(name, raising=False)
    with Server("--tools", "bank", "--home", str(ground.home), MEMORY_BANK_DEBUG="1") as server:

        def call(tool: str, arguments: dict[str, Any]) -> tuple[str, bool, Any]:
            result = server.call(tool, **arguments)
            (block,) = result["content"]
            return block["text"], result["isError"], result["structuredContent"]

        ground.run(case, call)
        assert server.close() == 0
