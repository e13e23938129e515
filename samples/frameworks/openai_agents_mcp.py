"""An agent of the OpenAI Agents SDK with the memory tools over MCP, and its transcript in the same
home.

`pip install '.[openai-agents]'`. Give `main` a model name instead of an object to use a
real one.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from agents import Agent, RunConfig, Runner
from agents.mcp import MCPServerStdio

from memoranda import open_memory
from memoranda.clients.openai_agents import MemorandaSession


async def main(question: str, home: str, model: Any = "gpt-5") -> str:
    params: Any = {
        "command": sys.executable,
        "args": ["-m", "memoranda", "--home", home, "mcp"],
        "env": dict(os.environ),
    }
    async with MCPServerStdio(params=params, client_session_timeout_seconds=30) as server:
        with open_memory(home, agent="openai-agents") as memory:
            agent = Agent(
                "assistant", instructions="Use your memory.", mcp_servers=[server], model=model
            )
            session = MemorandaSession("samples", memory)
            result = await Runner.run(
                agent, question, session=session, run_config=RunConfig(tracing_disabled=True)
            )
    return str(result.final_output)


if __name__ == "__main__":
    print(asyncio.run(main(" ".join(sys.argv[1:]), os.path.expanduser("~/.memory"))))
