"""The official SDK's own client against a server process, in every way it can connect."""

from __future__ import annotations

import asyncio

import pytest
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp_types import Implementation, PromptReference, ResourceTemplateReference

from serve.client import forked_stdio
from serve.process import MINI, SECONDS, environment


@pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
def test_the_official_client_finds_everything(mode):
    info = Implementation(name="Claude-Code", version="1")

    async def conversation():
        async with Client(
            forked_stdio(MINI), mode=mode, client_info=info, read_timeout_seconds=SECONDS
        ) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert tools["append"].title == "Append"
            assert tools["append"].annotations.destructive_hint is True
            assert tools["odd"].input_schema["properties"]["when"]["default"] is None

            result = await client.call_tool("append", {"text": "first"})
            assert result.is_error is False
            assert result.structured_content == {"line": 1}
            assert result.content[0].text == "line 1"
            wrong = await client.call_tool("append", {"text": 5})
            assert wrong.is_error
            assert wrong.structured_content["error"] == wrong.content[0].text
            text = (await client.call_tool("who", {})).content[0].text
            assert text == "claude through mcp"
            with pytest.raises(MCPError, match="Unknown tool: nothing"):
                await client.call_tool("nothing", {})

            names = [prompt.name for prompt in (await client.list_prompts()).prompts]
            assert names == ["greet"]
            greeting = await client.get_prompt("greet", {"name": "Bo"})
            assert greeting.messages[0].content.text == "Greet Bo plainly."
            resources = (await client.list_resources()).resources
            assert resources == []
            templates = (await client.list_resource_templates()).resource_templates
            uri_templates = [template.uri_template for template in templates]
            assert uri_templates == ["memory://{project}/{+path}"]
            note = await client.read_resource("memory://notes/记忆")
            assert note.contents[0].text == "notes|记忆"
            with pytest.raises(MCPError, match="Note not found in nowhere"):
                await client.read_resource("memory://nowhere/x")

            reference = ResourceTemplateReference(uri="memory://{project}/{+path}")
            offered = await client.complete(reference, {"name": "project", "value": "m"})
            assert offered.completion.values == ["memories"]
            offered = await client.complete(
                PromptReference(name="greet"), {"name": "name", "value": "m"}
            )
            assert offered.completion.values == []
            assert client.instructions == "Remember 记忆 things." or mode == "2026-07-28"

    asyncio.run(asyncio.wait_for(conversation(), SECONDS))


def test_the_official_client_starts_a_server_and_ends_it_without_killing_it(tmp_path):
    stderr_file = tmp_path / "stderr"
    parameters = StdioServerParameters(command=MINI[0], args=MINI[1:], env=environment())

    async def conversation():
        with open(stderr_file, "w") as errors:
            async with Client(
                stdio_client(parameters, errlog=errors), read_timeout_seconds=SECONDS
            ) as client:
                await client.call_tool("append", {"text": "x"})

    asyncio.run(asyncio.wait_for(conversation(), SECONDS))
    assert stderr_file.read_text().endswith("event agent_end\nmemory closed\n")
