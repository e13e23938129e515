"""`memory mcp` as a client starts it: the real command, engine and faces behind the protocol."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.mark.promise("trust-provenance")
def test_a_note_says_which_client_and_tool_wrote_it(connect):
    # What it calls itself makes it nobody else
    server = connect(name="owner")
    note = {"title": "N", "content": "---\nwho: owner\n---\nx"}
    assert server.call("write_note", note)["isError"] is False
    assert (
        server.call("memory", {"command": "create", "path": "/memories/m.md", "file_text": "y"})[
            "isError"
        ]
        is False
    )
    for name, tool in (("N", "write_note"), ("memories/m", "memory")):
        provenance = server.call("read_note", {"identifier": name})["structuredContent"][
            "provenance"
        ]
        assert (provenance["who"], provenance["trust"], provenance["tool"]) == (
            "agent:owner-client",
            "agent",
            tool,
        )
        assert provenance["client"].startswith("owner ")
        assert len(provenance["session"]) == 8
    hits = server.call("search_notes", {"query": "client:owner"})["structuredContent"]["results"]
    assert [hit["by"] for hit in hits] == ["agent:owner-client"] * 2


@pytest.mark.promise("trust-projects")
def test_a_client_is_told_that_the_owner_is_asked(connect):
    server = connect(name="cursor-vscode")
    arguments = {"project_name": "vault", "project_path": "/elsewhere/vault"}
    reply = server.call("create_memory_project", arguments)
    assert reply["structuredContent"]["action"] == "asked"
    assert "memory review" in reply["content"][0]["text"]
    assert not Path("/elsewhere").exists()
    refused = server.call("create_memory_project", {**arguments, "project_path": "/etc"})
    assert refused["structuredContent"]["code"] == "project_refused"
