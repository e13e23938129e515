"""The documented line for each preset is a server that starts, with the tools of the one it stands
in for.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from contract.home_kinds import BANK, FILE
from contract.mcp_server import Server
from memoranda.faces import PRESETS

pytestmark = pytest.mark.promise("issue-drop-in")

MOVING_IN = (Path(__file__).parents[2] / "docs" / "moving-in.md").read_text("utf-8")
FIRST = {
    "server-memory": "create_entities",
    "thoughtbox": "memory_create_entities",
    "memory-bank": "activate",
    "agent-memory": "memory_remember",
    "basic-memory": "write_note",
    "anthropic": "memory",
}


def entries() -> dict[str, dict[str, Any]]:
    """The entries by preset."""
    blocks = re.findall(r"^```json\n(.*?)^```$", MOVING_IN, re.MULTILINE | re.DOTALL)
    servers = next(json.loads(block)["mcpServers"] for block in blocks if "--as" in block)
    return {entry["args"][2]: entry for entry in servers.values()}


def test_every_preset_has_its_line() -> None:
    assert set(entries()) == set(PRESETS) == set(FIRST)


IN_PLACE = {"server-memory": FILE, "thoughtbox": FILE, "memory-bank": BANK}


@pytest.mark.parametrize(
    "preset",
    [
        pytest.param(
            preset_name,
            marks=pytest.mark.folder_home(IN_PLACE[preset_name]) if preset_name in IN_PLACE else (),
        )
        for preset_name in FIRST
    ],
)
def test_the_line_starts_a_server_that_looks_where_it_says(terminal: Any, preset: str) -> None:
    entry = entries()[preset]
    assert entry["command"] == "memory"
    command, *arguments = entry["args"]
    assert command == "mcp"
    with Server(*arguments, "--home", str(terminal.home), **entry.get("env", {})) as server:
        names = {tool["name"] for tool in server.ask("tools/list")["result"]["tools"]}
        assert FIRST[preset] in names
        if preset == "memory-bank":
            server.call("activate", bank_type="global", bank_id="auto")
        elif preset == "agent-memory":
            server.call("memory_remember", key="a", value="b")
        elif preset in ("server-memory", "thoughtbox"):
            entity = {"name": "a", "entityType": "b", "observations": []}
            server.call(FIRST[preset], entities=[entity])
        assert server.close() == 0
    for place in entry.get("env", {}).values():
        assert place.startswith("~/")
        assert (terminal.folder / "user" / place[2:]).exists()
