"""A PydanticAI agent with the memory tools over MCP. `pip install .
'pydantic-ai-slim[mcp]'`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset


async def main(question: str, home: str, model: Any = "openai:gpt-5") -> str:
    arguments = ["-m", "memoranda", "--home", home, "mcp"]
    server = MCPToolset(
        StdioTransport(sys.executable, arguments, env=dict(os.environ)), init_timeout=30
    )
    agent = Agent(model, toolsets=[server], instructions="Use your memory.")
    async with agent:
        return (await agent.run(question)).output


if __name__ == "__main__":
    print(asyncio.run(main(" ".join(sys.argv[1:]), os.path.expanduser("~/.memory"))))
