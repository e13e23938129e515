"""The recipes of CONTRIBUTING.md work: a copy of the package gets a tool, a command, a column, an
import, a job and an error by their steps, and all of them are there.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import memoranda

pytestmark = pytest.mark.slow
SOURCE = Path(memoranda.__file__).parent
ROOT = Path(__file__).parents[1]

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
        Action("throwaway", "discard", memory.id, "it is tagged throwaway", memory.path)
        for memory in memories
        if "throwaway" in memory.tags
    ]
'''
IMPORT = '''

def _csv(path: Path) -> Found:
    """Read a table of notes with the columns `id` and `text`."""
    import csv

    rows = [*csv.DictReader(read_bytes(path).decode().splitlines())]
    if not any("text" in row for row in rows):
        raise WrongStore(f"{path} has no column `text`")
    for row in rows:
        if row["text"]:
            yield Exported(row["id"], row["text"], created=None)
        else:
            yield LeftOut(f"csv {row['id']}", "it has no text")


READERS["csv"] = _csv
'''
ERROR = '''

class NoteFrozen(MemorandaError):
    """The note may not be changed before a day."""

    code = "frozen"

    def __init__(self, name: str):
        super().__init__(f"{name} may not be changed yet. Change it tomorrow.")
'''
TOUCHED: dict[str, set[str]] = {}
"""The files of the package that each recipe touches, as they are called in it."""
_RECIPES = re.findall(
    r"\*\*(An? [\w ]+)\.\*\*(.*?)(?=\n\n\*\*|\n## )",
    (ROOT / "CONTRIBUTING.md").read_text("utf-8"),
    re.S,
)


class Recipe:
    """One recipe, followed in a copy of the package."""

    def __init__(self, name: str, package: Path):
        self._package = package
        self._touched = TOUCHED.setdefault(name, set())

    def edit(self, file: str, old: str, new: str) -> None:
        """Replace a text that a file contains once."""
        text = self._text(file)
        assert text.count(old) == 1, (file, old)
        (self._package / file).write_text(text.replace(old, new), "utf-8")

    def append(self, file: str, addition: str) -> None:
        (self._package / file).write_text(self._text(file) + addition, "utf-8")

    def insert_after(self, file: str, line: str, new_line: str) -> None:
        """Insert a line after a line that the file contains once."""
        self.edit(file, f"{line}\n", f"{line}\n{new_line}\n")

    def _text(self, file: str) -> str:
        self._touched.add(file)
        return (self._package / file).read_text("utf-8")


def add_tool(package: Path) -> None:
    recipe = Recipe("A tool", package)
    recipe.edit("faces/texts/notes-tools.json", "\n]\n", f",\n{json.dumps(TOOL)}\n]\n")
    recipe.append("faces/notes/read_tools.py", RUN)


def add_command(package: Path) -> None:
    recipe = Recipe("A command", package)
    recipe.append("cli/search_commands.py", COMMAND)
    recipe.edit("cli/__init__.py", "context backlinks orphans", "context backlinks orphans shout")
    summaries = (package / "cli/summaries.txt").read_text("utf-8").splitlines()
    (line,) = [line for line in summaries if line.startswith("orphans ")]
    recipe.insert_after("cli/summaries.txt", line, "shout          Print a note in capitals.")


def add_column(package: Path) -> None:
    recipe = Recipe("A column of the index", package)
    recipe.edit("index/schema.sql", "  provenance   text\n", "  provenance   text,\n  words int\n")
    database = (package / "index/database.py").read_text("utf-8")
    (version,) = re.findall(r"^SCHEMA_VERSION = (\d+)$", database, re.M)
    recipe.edit(
        "index/database.py",
        f"SCHEMA_VERSION = {version}\n",
        f"SCHEMA_VERSION = {int(version) + 1}\n",
    )
    recipe.insert_after(
        "index/writer.py",
        '        "provenance": _provenance_json(note.provenance),',
        '        "words": len(indexed.text.split()),',
    )
    recipe.insert_after(
        "index/rows.py",
        '    "provenance_json": _Column("n.provenance"),',
        '    "words": _Column("n.words"),',
    )
    recipe.insert_after(
        "index/rows.py", "    provenance_json: str | None = None", "    words: int = 0"
    )
    recipe.insert_after("query.py", "    client: str | None = None", "    least_words: int = 0")
    recipe.insert_after(
        "index/listing.py",
        "    conditions = Conditions()",
        '    conditions.add("n.words >= ?", query.least_words)',
    )


def add_import(package: Path) -> None:
    recipe = Recipe("An import", package)
    recipe.append("transfer/exports.py", IMPORT)
    recipe.edit("cli/import_kinds.py", '"mcp-memory-service")', '"mcp-memory-service", "csv")')


def add_job(package: Path) -> None:
    recipe = Recipe("A job", package)
    recipe.append("jobs/lifecycle.py", JOB)
    recipe.insert_after(
        "jobs/lifecycle.py",
        '    "consolidate": lambda memories, settings, now: plan_duplicates(memories),',
        '    "throwaway": lambda *state: plan_throwaway(*state),',
    )
    recipe.edit(
        "jobs/job.py",
        '_REMOVING = ("expire", "decay")',
        '_REMOVING = ("expire", "decay", "discard")',
    )


def add_error(package: Path) -> None:
    recipe = Recipe("An error", package)
    recipe.append("errors.py", ERROR)
    recipe.insert_after("__init__.py", '        "NoTime",', '        "NoteFrozen",')
    recipe.insert_after(
        "__init__.pyi",
        "from memoranda.errors import NoTime as NoTime",
        "from memoranda.errors import NoteFrozen as NoteFrozen",
    )


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
        process = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            env=self._environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert process.returncode == 0, process
        return process.stdout

    def memory(self, *arguments: str, stdin: str = "") -> str:
        """What the command prints."""
        return self.python("from memoranda.cli import run; run()", *arguments, stdin=stdin)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    folder = tmp_path_factory.mktemp("recipes")
    package = folder / "memoranda"
    # With the compiled files, which hold for all files that no recipe touches
    shutil.copytree(SOURCE, package)
    _write_with(SOURCE.parent, folder, "before")
    for add in (add_tool, add_command, add_column, add_import, add_job, add_error):
        add(package)
    (folder / "vault").mkdir()
    (folder / "bm").mkdir()
    config = {"projects": {"main": str(folder / "vault")}, "default_project": "main"}
    (folder / "bm/config.json").write_text(json.dumps(config))
    return Copy(folder)


def _write_with(code: Path, folder: Path, title: str) -> None:
    """Write a note with another version of the code, so that the home has an index of it."""
    script = (
        "from memoranda import Draft, open_memory\n"
        f"with open_memory({str(folder / 'home')!r}) as memory:\n"
        f"    memory.write(Draft('a b c d', project='notes', title={title!r}))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(code)}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True, timeout=60)


@pytest.mark.parametrize(
    "name",
    ["A tool", "A command", "A column of the index", "An import", "A job", "An error"],
)
def test_a_recipe_names_each_file_it_takes(copy: Copy, name: str) -> None:
    text = dict(_RECIPES)[name]
    assert {file for file in TOUCHED[name] if f"`{file}`" not in text} == set()


def answers(copy: Copy, *options: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """What a server of the copy answers to tools/list and to one call, by the number of the
    message.
    """
    client = {"name": "test", "version": "1"}
    opening = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    parameters = {"name": tool, "arguments": arguments}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": parameters},
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
        names = {tool["name"] for tool in replies["2"]["tools"]}
        assert "count_words" in names
        assert replies["3"]["content"][0]["text"] == "3 words"


def test_command_added_runs_and_is_in_the_help(copy: Copy) -> None:
    written = json.loads(copy.memory("write", "--json", "quiet", "words"))["memory"]["id"]
    assert copy.memory("shout", written) == "QUIET WORDS\n"
    assert json.loads(copy.memory("shout", "--json", written))["text"] == "QUIET WORDS"
    assert "Print a note in capitals." in copy.memory("help")


def test_column_added_is_filled_and_read_with_the_provenance_of_many_notes(copy: Copy) -> None:
    output = copy.python(
        "from memoranda import Draft, open_memory, Query\n"
        "with open_memory() as memory:\n"
        "    drafts = [Draft(f'a b {n}', project='notes', title=f'N{n}') for n in range(50)]\n"
        "    memory.write_many(drafts)\n"
        "    notes = memory.list(Query(projects=('notes',)), limit=0)[0]\n"
        "    new = [note for note in notes if note.title.startswith('N')]\n"
        "    print({(note.words, note.provenance.who) for note in new}, len(new))\n"
        "    print([note.words for note in notes if note.title == 'before'])\n"
    )
    assert output == "{(3, 'owner')} 50\n[4]\n"


def test_column_added_as_a_filter_narrows_lists_and_searches(copy: Copy) -> None:
    output = copy.python(
        "from memoranda import Draft, open_memory, Query\n"
        "with open_memory() as memory:\n"
        "    memory.write(Draft('heron', project='notes', title='Short'))\n"
        "    memory.write(Draft('heron ' * 9, project='notes', title='Long'))\n"
        "    query = Query(projects=('notes',), least_words=9)\n"
        "    print([note.title for note in memory.list(query).notes])\n"
        "    print([hit.note.title for hit in memory.search(query.replace(text='heron'))])\n"
    )
    assert output == "['Long']\n['Long']\n"


def test_import_added_takes_a_file_and_counts_what_it_leaves_out(
    copy: Copy, tmp_path: Path
) -> None:
    file = tmp_path / "notes.csv"
    file.write_text("id,text\n1,tea is green\n2,\n")
    reply = json.loads(copy.memory("import", "--json", "--from", "csv", str(file)))
    assert (reply["imported"], reply["skipped"]) == (1, 1)
    assert "tea is green" in copy.memory("list")


def test_job_added_runs_with_the_others(copy: Copy) -> None:
    copy.memory("write", "of no use", "--category", "knowledge", "--tags", "throwaway")
    planned = json.loads(copy.memory("consolidate", "--dry-run", "--json"))["jobs"]["throwaway"]
    assert planned["processed"] == 1
    outcome = json.loads(copy.memory("consolidate", "--json"))["jobs"]["throwaway"]
    assert outcome["processed"] == 1
    assert "of no use" not in copy.memory("list")
    assert " discard " in copy.memory("log")


def test_error_added_is_of_the_library(copy: Copy) -> None:
    code = "import memoranda; error = memoranda.NoteFrozen('Plan'); print(error.code, error)"
    assert copy.python(code) == "frozen Plan may not be changed yet. Change it tomorrow.\n"
