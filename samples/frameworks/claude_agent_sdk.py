"""The Claude Agent SDK with the memory tools over MCP. `pip install . claude-agent-sdk`."""

from __future__ import annotations

import asyncio
import os
import sys

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query


def options(home: str) -> ClaudeAgentOptions:
    server = {
        "type": "stdio",
        "command": sys.executable,
        "args": ["-m", "memoranda", "--home", home, "mcp"],
        "alwaysLoad": True,
    }
    return ClaudeAgentOptions(mcp_servers={"memory": server}, allowed_tools=["mcp__memory"])  # type: ignore[dict-item]


async def main(question: str, home: str) -> str:
    answer = ""
    async for message in query(prompt=question, options=options(home)):
        if isinstance(message, ResultMessage):
            answer = message.result or ""
    return answer


if __name__ == "__main__":
    print(asyncio.run(main(" ".join(sys.argv[1:]), os.path.expanduser("~/.memory"))))
