"""The main job on real input, in under a minute: `make demo`.

Starts `memory mcp` as a real process on a fresh home, and lets the official MCP client do what an
agent does: write memories, link notes, search a vault that its owner added in place, in two
languages, walk the links, edit, and take a mistake back. The home is temporary and removed at the
end.
"""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mcp import Client, StdioServerParameters, stdio_client

VAULT = Path(__file__).parent / "vault"
PREFERENCES = """---
title: Working with Mara
type: memory
tags: [user]
---
## Observations
- [style] Wants the answer first, then the reasons #communication
- [tools] Prefers SQLite to any server, and plain files to both #storage

## Relations
- works_on [[Heron]]
"""


def heading(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n== {text}")


def shown(text: str, lines: int = 14) -> None:
    rows = text.splitlines()
    for row in rows[:lines]:
        print("   ", row)
    rest = len(rows) - lines
    if rest > 0:
        print(f"    … {rest} more lines")


def fingerprint(folder: Path) -> str:
    """One hash over the names, bytes, modes and times of all files."""
    digest = hashlib.sha256()
    for place in sorted(folder.rglob("*")):
        status = place.stat()
        digest.update(f"{place.relative_to(folder)} {status.st_mode}".encode())
        if place.is_file():
            digest.update(f"{status.st_mtime_ns}".encode() + place.read_bytes())
    return digest.hexdigest()[:16]


class Agent:
    """An MCP client that prints what it asks and what it hears."""

    def __init__(self, client: Client):
        self._client = client

    async def __call__(
        self, tool: str, lines: int = 14, quiet: bool = False, **arguments: object
    ) -> str:
        result = await self._client.call_tool(tool, arguments)
        text = result.content[0].text
        if result.is_error:
            raise SystemExit(f"{tool} failed: {text}")
        if not quiet:
            shown(text, lines)
        return text


def memory(home: Path, *arguments: str) -> str:
    """Run the `memory` command on the same home, as a person would."""
    command = [sys.executable, "-m", "memoranda", *arguments, "--home", str(home)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


async def work(home: Path, vault: Path) -> None:
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "memoranda", "mcp", "--no-daemon", "--home", str(home)]
    )
    async with Client(stdio_client(server)) as client:
        agent = Agent(client)
        tools = (await client.list_tools()).tools
        heading(f"Connected. {len(tools)} tools: {', '.join(tool.name for tool in tools)}")

        heading("An agent remembers something with Anthropic's memory tool")
        await agent(
            "memory", command="create", path="/memories/user/mara.md", file_text=PREFERENCES
        )
        await agent("memory", command="view", path="/memories")

        heading("The person adds a vault of Markdown notes, in place: memory project add")
        before = fingerprint(vault)
        shown(memory(home, "project", "add", "sample", str(vault)))

        heading("It writes a note that links to both")
        await agent(
            "write_note",
            title="Plan for the next release",
            directory="plans",
            tags=["release"],
            content="- [decision] Ship the search rewrite first #search\n"
            "- [risk] Renames on network disks (see [[Durable renames]])\n"
            "- follows [[Release 1.10]]\n- asked_by [[memories::Working with Mara]]\n",
        )

        heading('One question over everything: "fsync rename"')
        assert "Durable renames" in await agent("search_notes", query="fsync rename", page_size=3)
        heading('And in Chinese: "全文检索"')
        assert "中文全文检索" in await agent("search_notes", query="全文检索", page_size=2)

        heading("Walking the links from the plan, two steps")
        await agent(
            "build_context",
            url="memory://notes/plans/plan-for-the-next-release",
            depth=2,
            max_related=6,
            lines=22,
        )

        heading("An edit changes only what was asked")
        await agent(
            "edit_note",
            identifier="Plan for the next release",
            operation="find_replace",
            find_text="first #search",
            content="first, then rest #search",
        )

        heading("A mistake: the memory is deleted …")
        await agent("memory", command="delete", path="/memories/user/mara.md")
        heading("… and the person takes it back: memory log, memory undo")
        shown(memory(home, "log", "--limit", "3"))
        shown(memory(home, "undo"))
        await agent("memory", command="view", path="/memories/user/mara.md", view_range=[1, 4])

        heading("What changed lately")
        await agent("recent_activity", timeframe="1h", page_size=4)
        is_same = before == fingerprint(vault)
        count = len(list(vault.rglob("*.md")))
        outcome = "not a byte changed" if is_same else "CHANGED"
        heading(f"The vault: {count} notes, {outcome}")
        if not is_same:
            raise SystemExit("the vault was changed")


def main() -> None:
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="memoranda-demo-") as folder:
        home = Path(folder) / "home"
        vault = Path(folder) / "vault"
        shutil.copytree(VAULT, vault)
        asyncio.run(work(home, vault))
    seconds = time.perf_counter() - started
    print(f"\nDone in {seconds:.1f} s. The notes above were plain files in a temporary folder.")


if __name__ == "__main__":
    main()
