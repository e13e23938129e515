"""`memory mcp` as a client starts it: the real command, engine and faces behind the protocol."""

from __future__ import annotations

import sys

import pytest


@pytest.fixture
def memory_mcp(start, tmp_path, monkeypatch):
    """Start `memory mcp` with these arguments on one home below tmp_path."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("MEMORY_HOME", "MEMORY_AGENT", "BASIC_MEMORY_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)

    def started(*arguments):
        home = str(tmp_path / "home")
        return start(*arguments, command=[sys.executable, "-m", "commonplace", "mcp", "--home", home])

    return started


def test_the_clients_name_decides_whose_notes_it_sees(memory_mcp, tmp_path):
    memories = tmp_path / "home" / "memories"
    memories.mkdir(parents=True)
    (memories / "mine.md").write_text("---\nscope: agent:claude\n---\nmine\n")
    view = {"command": "view", "path": "/memories/mine.md"}
    for client, sees in (("claude-code", True), ("cursor-vscode", False)):
        server = memory_mcp()
        server.handshake(client=client)
        assert server.call("memory", view)["isError"] is not sees
        assert server.close() == 0
    server = memory_mcp("--agent", "claude")
    server.handshake(client="cursor-vscode")
    assert server.call("memory", view)["isError"] is False
