"""What is stored through each interface in one client is told at the start of each other client's
session: through the MCP server and the hooks, each as a separate process."""

from __future__ import annotations

import pytest

from clients.test_hook_process import START, context, hook
from contract.mcp_server import Server
from memoranda.engine import open_session

FACT = "The user always wants tabs, never blanks."
INTERFACES = {
    "memory": (
        "memory",
        {"command": "create", "path": "/memories/user/preferences.md", "file_text": FACT},
    ),
    "notes": ("write_note", {"title": "Style", "folder": "", "content": f"- [preference] {FACT}"}),
    "graph": (
        "memory_create_entities",
        {"entities": [{"name": "default_user", "entityType": "person", "observations": [FACT]}]},
    ),
    "kv": ("memory_remember", {"key": "indentation", "value": FACT}),
    "agent": ("memory_write", {"content": FACT, "category": "preferences"}),
}
OTHERS = ("codex", "gemini-cli", "cursor", "copilot-cli", "opencode")


def store(home, toolset):
    """Store the fact as Claude Code does through one toolset, over MCP."""
    tool, arguments = INTERFACES[toolset]
    options = ("--home", str(home), "--tools", toolset)
    with Server(*options, client="claude-code") as server:
        result = server.call(tool, arguments)
    assert not result.get("isError"), result


def start_of(client, home):
    """What the first session of a client is told."""
    events = {
        "codex": {**START, "turn_id": "t1"},
        "gemini-cli": START,
        "cursor": {
            "conversation_id": "c1",
            "hook_event_name": "sessionStart",
            "workspace_roots": ["/"],
        },
        "copilot-cli": {"sessionId": "c1", "cwd": "/", "source": "new"},
        "opencode": {"session_id": "c1", "cwd": "/"},
    }
    argv = {"copilot-cli": (client, "sessionStart"), "opencode": (client, "start")}
    process = hook(home, events[client], *argv.get(client, (client,)))
    return process.stdout.decode()


@pytest.mark.slow
@pytest.mark.parametrize("interface", INTERFACES)
def test_what_one_client_stored_is_in_the_first_request_of_each_other(tmp_path, interface):
    home = tmp_path / "home"
    with open_session(home):
        pass
    store(home, interface)
    for client in OTHERS:
        first_request = start_of(client, home)
        assert FACT in first_request, (client, first_request)
        assert first_request.count(FACT) == 1
        assert "claude noted" in first_request
        assert "unconfirmed" in first_request


def test_the_client_itself_is_told_again_in_its_next_session(tmp_path):
    home = tmp_path / "home"
    with open_session(home):
        pass
    store(home, "memory")
    assert FACT in context(hook(home, START))
