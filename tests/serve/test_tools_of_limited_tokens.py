"""A token limited to some projects is offered, and told of, only the tools whose notes it has (docs/http.md)."""

from __future__ import annotations

import pytest

from serve.web import rpc, tool, tools

pytestmark = pytest.mark.anyio


async def instructions(client, secret) -> str:
    begun = await rpc(client, secret, "initialize", protocolVersion="2025-11-25", capabilities={},
                      clientInfo={"name": "x", "version": "1"})  # fmt: skip
    return begun["result"]["instructions"]


@pytest.mark.promise("http-scopes")
async def test_tools_about_a_project_the_token_does_not_have_are_not_there(web, tmp_path, client):
    web.memory.add_project("work", str(tmp_path / "work"))
    work, mixed, every = web.token(projects=["work"]), web.token("mixed", projects=["Kv", "work"]), web.token("all")

    offered = await tools(client, work)
    assert {"write_note", "search_notes", "memory_read_graph"} <= offered
    assert not {"memory", "activate", "update", "memory_recall", "memory_remember"} & offered
    assert "ALWAYS VIEW YOUR MEMORY DIRECTORY" not in await instructions(client, work)
    assert "search_notes" in await instructions(client, work)
    assert "Unknown tool: memory_recall." in await tool(client, work, "memory_recall", key="k")
    assert "# Created note" in await tool(client, work, "write_note", title="A", content="b")

    assert await tools(client, mixed) - offered >= {"memory_recall", "memory_remember"}
    assert not {"memory", "activate"} & await tools(client, mixed)
    assert {"memory", "activate", "memory_recall"} <= await tools(client, every)
    assert "ALWAYS VIEW YOUR MEMORY DIRECTORY" in await instructions(client, every)
