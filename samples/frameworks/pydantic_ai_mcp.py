"""A PydanticAI agent with the memory tools over MCP. `pip install commonplace 'pydantic-ai-slim[mcp]'`."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.mcp import MCPServerStdio


async def main(question: str, home: str, model: Any = "openai:gpt-5") -> str:
    server = MCPServerStdio(sys.executable, ["-m", "commonplace", "--home", home, "mcp"], env=dict(os.environ), timeout=30)
    agent = Agent(model, toolsets=[server], instructions="Use your memory.")
    async with agent:
        return (await agent.run(question)).output


if __name__ == "__main__":
    print(asyncio.run(main(" ".join(sys.argv[1:]), os.path.expanduser("~/.memory"))))
