"""The SDK's own server with one tool, on stdin and stdout: what `memory mcp` is measured against."""

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool

ECHO = Tool(
    name="echo",
    description="Give the text back.",
    input_schema={
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    },
)


async def list_tools(ctx, params) -> ListToolsResult:
    return ListToolsResult(tools=[ECHO])


async def call_tool(ctx, params) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=params.arguments["text"])])


async def main() -> None:
    server = Server("bare", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
