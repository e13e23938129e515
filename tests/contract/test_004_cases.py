"""Contract 004, 9.1 and 9.2: every case of kv_replies.json, through the registry and over MCP stdio."""

from __future__ import annotations

import json
import time

import pytest

from commonplace import __version__, open_memory
from contract.key_value import CASES, NAMES, Clock, KeyValue, play
from serve.process import connected

pytestmark = pytest.mark.promise("004-9.1", "004-9.2")


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_every_case_through_the_registry(case, tmp_path):
    clock = Clock()
    with open_memory(tmp_path / "home", clock=clock, watch=False) as memory:
        entries = KeyValue(memory)
        play(case, lambda tool, given: entries.call(tool.removeprefix("memory_"), **given), clock.later)


def at_the_start_of_a_second() -> None:
    """Entries of one case must not come to lie in two seconds: their order is part of some replies."""
    while time.time() % 1 > 0.5:
        time.sleep(0.05)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One server for all cases, which ends well and says nothing on stderr."""
    user = tmp_path_factory.mktemp("stdio")
    with connected(user / "home", "--tools", "kv") as server:
        yield server
        assert server.close() == 0
        assert server.errors() == ""


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_every_case_over_mcp_stdio(case, server):
    def call(tool: str, given: dict) -> tuple[str, bool]:
        result = server.call(tool, given)
        assert set(result) == {"content", "isError"}
        (block,) = result["content"]
        assert set(block) == {"type", "text"}
        return block["text"], result["isError"]

    for each in json.loads(call("memory_list_namespaces", {"format": "json"})[0])["namespaces"]:
        call("memory_clear_namespace", {"namespace": each["namespace"]})
    if any(step.get("tool") == "memory_search" for step in case["steps"]):
        at_the_start_of_a_second()
    play(case, call, time.sleep)


HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
TOOLS = {
    "memory_remember": ("key*,value*,namespace,ttl_seconds:integer,format", (False, False, True, False)),
    "memory_recall": ("key*,namespace,format,offset:integer", (True, False, True, False)),
    "memory_forget": ("key*,namespace,format", (False, True, True, False)),
    "memory_search": ("query*,namespace,limit:integer,format,offset:integer", (True, False, True, True)),
    "memory_list_namespaces": ("format,offset:integer", (True, False, True, True)),
    "memory_clear_namespace": ("namespace*,format", (False, True, True, False)),
    "memory_stats": ("format", (True, False, True, True)),
}


def test_agent_memory_is_a_server_of_that_name_with_exactly_these_tools(tmp_path, monkeypatch):
    monkeypatch.delenv("AGENT_MEMORY_PATH", raising=False)
    with connected(tmp_path / "home", "--as", "agent-memory") as server:
        assert server.hello["serverInfo"] == {"name": "agent-memory", "version": __version__}
        assert server.hello["instructions"].count(". ") == 0
        found = {tool["name"]: tool for tool in server.ask("tools/list")["result"]["tools"]}
    assert list(found) == list(TOOLS)
    for name, (arguments, hints) in TOOLS.items():
        schema = found[name]["inputSchema"]
        assert schema["additionalProperties"] is False
        required = schema.get("required", [])
        shown = [
            each + ("*" if each in required else "") + (":integer" if inner["type"] == "integer" else "")
            for each, inner in schema["properties"].items()
        ]
        assert ",".join(shown) == arguments
        assert tuple(found[name]["annotations"][hint] for hint in HINTS) == hints
        assert schema["properties"]["format"]["enum"] == ["markdown", "json"]
