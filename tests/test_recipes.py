"""The recipes of CONTRIBUTING.md work: a copy of the package gets a tool, a command, a column and a
job by their steps, and all of them are there.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import memoranda

pytestmark = pytest.mark.slow
SOURCE = Path(memoranda.__file__).parent

TOOL = {
    "name": "count_words",
    "shares_commit": False,
    "description": "How many words a note has.",
    "inputSchema": {
        "type": "object",
        "properties": {"identifier": {"type": "string"}, "project": {"type": "string"}},
        "required": ["identifier"],
    },
    "annotations": {"readOnlyHint": True},
}
RUN = '''

def count_words(memory: MemorySession, args: Arguments) -> Reply:
    """How many words a note has."""
    words = len(memory.read(args["identifier"], project=args.get("project")).content.split())
    return Reply(f"{words} words", {"words": words})
'''
COMMAND = '''

@command("shout", "ID", keys=("text",), example="memory shout 5a1f")
def shout(call: Invocation, ref: str) -> None:
    """Print a note in capitals."""
    with call.memory() as memory:
        text = memory.read(memory.find_any(ref), count=False).content.upper()
        call.answer(text, text=text)
'''
JOB = '''

def plan_throwaway(
    memories: Sequence[MemoryState], settings: Settings, now: datetime
) -> list[Action]:
    """What is tagged throwaway goes to the archive."""
    return [
        Action("throwaway", "decay", memory.id, "it is tagged throwaway", memory.path)
        for memory in memories
        if "throwaway" in memory.tags
    ]


JOBS["throwaway"] = plan_throwaway
'''


def edited(file: Path, old: str, new: str) -> None:
    """Replace a piece of a file that stands in it once."""
    text = file.read_text("utf-8")
    assert text.count(old) == 1, (file, old)
    file.write_text(text.replace(old, new), "utf-8")


def appended(file: Path, text: str) -> None:
    file.write_text(file.read_text("utf-8") + text, "utf-8")


def add_tool(package: Path) -> None:
    declared = package / "faces/texts/notes-tools.json"
    rows = json.loads(declared.read_text("utf-8"))
    declared.write_text(json.dumps([*rows, TOOL]), "utf-8")
    appended(package / "faces/notes/read_tools.py", RUN)


def add_command(package: Path) -> None:
    appended(package / "cli/search_commands.py", COMMAND)
    edited(
        package / "cli/__init__.py", "context backlinks orphans", "context backlinks orphans shout"
    )


def add_column(package: Path) -> None:
    index = package / "index"
    edited(index / "schema.sql", "  provenance   text\n", "  provenance   text,\n  words integer\n")
    edited(
        index / "writer.py",
        '        "provenance": _provenance_json(note.provenance),\n',
        '        "provenance": _provenance_json(note.provenance),\n'
        '        "words": len(known.text.split()),\n',
    )
    edited(
        index / "rows.py",
        '    "provenance_json": _Column("n.provenance"),\n',
        '    "provenance_json": _Column("n.provenance"),\n    "words": _Column("n.words"),\n',
    )
    edited(
        index / "rows.py",
        "    provenance_json: str | None = None\n",
        "    provenance_json: str | None = None\n    words: int = 0\n",
    )


def add_job(package: Path) -> None:
    appended(package / "jobs/lifecycle.py", JOB)


class Copy:
    """A copy of the package that has one of each more, and a home for it."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._environment = {
            **os.environ,
            "PYTHONPATH": str(folder),
            "MEMORY_HOME": str(folder / "home"),
            "BASIC_MEMORY_CONFIG_DIR": str(folder / "bm"),
            "HOME": str(folder),
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def python(self, code: str, *arguments: str, stdin: str = "") -> str:
        """What a program prints that uses the copy; it must succeed."""
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            env=self._environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done
        return done.stdout

    def memory(self, *arguments: str, stdin: str = "") -> str:
        """What the command prints."""
        return self.python("from memoranda.cli import run; run()", *arguments, stdin=stdin)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    folder = tmp_path_factory.mktemp("recipes")
    package = folder / "memoranda"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
    for add in (add_tool, add_command, add_column, add_job):
        add(package)
    (folder / "vault").mkdir()
    (folder / "bm").mkdir()
    config = {"projects": {"main": str(folder / "vault")}, "default_project": "main"}
    (folder / "bm/config.json").write_text(json.dumps(config))
    return Copy(folder)


def answers(copy: Copy, *options: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """What a server of the copy answers to tools/list and to one call, by the number of the
    message.
    """
    client = {"name": "test", "version": "1"}
    opening = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    asked = {"name": tool, "arguments": arguments}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": asked},
    ]
    lines = "".join(json.dumps(message) + "\n" for message in messages)
    replies = [json.loads(line) for line in copy.memory("mcp", *options, stdin=lines).splitlines()]
    return {str(reply["id"]): reply["result"] for reply in replies if "id" in reply}


def test_tool_added_is_called_and_served_also_in_place_of_another_server(copy: Copy) -> None:
    note = {"title": "Plan", "content": "one two three", "directory": ""}
    copy.memory("call", "write_note", json.dumps(note))
    assert copy.memory("call", "count_words", '{"identifier": "Plan"}') == "3 words\n"
    for options in ((), ("--as", "basic-memory")):
        replies = answers(copy, *options, tool="count_words", arguments={"identifier": "Plan"})
        assert "count_words" in {tool["name"] for tool in replies["2"]["tools"]}
        assert replies["3"]["content"][0]["text"] == "3 words"


def test_command_added_runs_and_is_in_the_help(copy: Copy) -> None:
    written = json.loads(copy.memory("write", "--json", "quiet", "words"))["memory"]["id"]
    assert copy.memory("shout", written) == "QUIET WORDS\n"
    assert json.loads(copy.memory("shout", "--json", written))["text"] == "QUIET WORDS"
    assert "Print a note in capitals." in copy.memory("help")


def test_column_added_is_filled_and_read_with_the_provenance_of_many_notes(copy: Copy) -> None:
    told = copy.python(
        "from memoranda import Draft, open_memory, Query\n"
        "with open_memory() as memory:\n"
        "    drafts = [Draft(f'a b {n}', project='notes', title=f'N{n}') for n in range(50)]\n"
        "    memory.write_many(drafts)\n"
        "    memory.session.reindex()\n"
        "    notes = memory.list(Query(projects=('notes',)), limit=0)[0]\n"
        "    notes = [note for note in notes if note.title.startswith('N')]\n"
        "    print({(note.words, note.provenance.who) for note in notes}, len(notes))\n"
    )
    assert told == "{(3, 'owner')} 50\n"


def test_job_added_runs_with_the_others(copy: Copy) -> None:
    copy.memory("write", "of no use", "--category", "knowledge", "--tags", "throwaway")
    shown = json.loads(copy.memory("consolidate", "--dry-run", "--json"))["jobs"]["throwaway"]
    assert shown["processed"] == 1
    done = json.loads(copy.memory("consolidate", "--json"))["jobs"]["throwaway"]
    assert done["processed"] == 1
    assert "of no use" not in copy.memory("list")
