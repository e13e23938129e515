"""Contract 003, 11.1: every case of bank_cases.json, through the registry and over MCP stdio."""

from __future__ import annotations

from typing import Any

import pytest

from commonplace import faces, open_memory
from contract.mcp_server import Server
from contract.memory_bank import CASES, NAMES, Ground


@pytest.mark.promise("003-11.1", "003-11.9")
@pytest.mark.parametrize("way", ["registry", pytest.param("mcp", marks=pytest.mark.slow)])
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_every_case(case: dict[str, Any], way: str, ground: Ground) -> None:
    if way == "registry":
        with open_memory(ground.home) as memory:
            tools = faces.registry(["bank"], memory.settings)

            def reply(tool: str, arguments: dict[str, Any]) -> tuple[str, bool, Any]:
                said = tools.call(memory, tool, arguments)
                return said.text, said.is_error, said.data

            ground.run(case, reply)
        return
    with Server("--tools", "bank", "--home", str(ground.home), MEMORY_BANK_DEBUG="1") as server:

        def result(tool: str, arguments: dict[str, Any]) -> tuple[str, bool, Any]:
            said = server.call(tool, arguments)
            (content,) = said["content"]
            return content["text"], said["isError"], said["structuredContent"]

        ground.run(case, result)
        assert server.close() == 0
