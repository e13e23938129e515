"""Play the same week of work against Basic Memory and against `memory mcp --as basic-memory`, and
compare the files.

    python tools/drop_in_week.py PATH/TO/basic-memory [PATH/TO/memory]

Both programs get two empty projects, the same configuration and the same calls over stdio. The files
they leave are compared. Differences that docs/moving-in.md names are ignored, all others are
printed. The exit code is 1 if there is one, or if one program refuses a call that the other carries
out.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROJECTS = ("main", "work")
SAME = [
    (r"(?m)^created_at: .*\n", ""),
    (r"\n(?:[ \t]*\n)+", r"\n"),
    (r"(?m)^ +- ", "- "),
    (r"(?m)^(\w+): '(.*)'$", r'\1: "\2"'),
]
"""What docs/moving-in.md says differs: a header key, empty lines, the indentation of lists and the
quotes of values.
"""

Call = tuple[str, dict[str, Any]]


def note(title: str, content: str, directory: str = "", **more: Any) -> Call:
    return "write_note", {"title": title, "content": content, "directory": directory, **more}


def edit(identifier: str, operation: str, content: str, **more: Any) -> Call:
    return "edit_note", {
        "identifier": identifier,
        "operation": operation,
        "content": content,
        **more,
    }


WEEK: list[Call] = [
    # Monday: two projects, first notes, links to notes that are not there yet
    note(
        "Roadmap",
        "# Roadmap\n\n- [goal] Ship in March #plan\n- part_of [[Company]]\n",
        "plans",
        project="main",
    ),
    note(
        "API (v2)",
        "# API\n\n## Errors\n\nnone yet\n\n## Auth\n\ntokens\n",
        "specs",
        tags="api, draft",
        project="main",
    ),
    note("Stand-up", "- [ ] call Ann\n- [decision] Mondays at nine\n", "meetings", project="work"),
    note("测试 Note", "- [fact] 中文内容 #标签\n", "inbox", project="main"),
    # Tuesday: edits of every kind
    edit(
        "specs/api-v2", "replace_section", "404 when missing\n", section="## Errors", project="main"
    ),
    edit("specs/api-v2", "append", "\n## Limits\n\n100 a minute\n", project="main"),
    edit("plans/roadmap", "find_replace", "April", find_text="March", project="main"),
    edit("plans/roadmap", "prepend", "Seen by all.\n", project="main"),
    edit(
        "plans/roadmap", "append", "- [risk] late\n", metadata={"status": "active"}, project="main"
    ),
    edit(
        "plans/roadmap",
        "insert_after_section",
        "\nIn short: ship.\n",
        section="# Roadmap",
        project="main",
    ),
    ("search_notes", {"query": "ship", "project": "main"}),
    # Wednesday: the missing end of a link; overwriting; a refused write
    note(
        "Company",
        "# Company\n\n- [fact] six people\n",
        "",
        note_type="organization",
        project="main",
    ),
    note("Stand-up", "- [decision] Tuesdays at ten\n", "meetings", overwrite=True, project="work"),
    note("Company", "twice\n", "", project="main"),
    ("build_context", {"url": "memory://main/plans/roadmap", "project": "main"}),
    # Thursday: moves and folders
    (
        "move_note",
        {"identifier": "specs/api-v2", "destination_path": "archive/API.md", "project": "main"},
    ),
    (
        "move_note",
        {
            "identifier": "inbox",
            "destination_path": "notes",
            "is_directory": True,
            "project": "main",
        },
    ),
    ("move_note", {"identifier": "Company", "destination_path": "../out.md", "project": "main"}),
    ("list_directory", {"dir_name": "/", "depth": 2, "project": "main"}),
    # Friday: metadata, a title with signs, a deletion, a look back
    note("What: now?", "text\n", "odd", metadata={"due": "2026-11-01", "count": 3}, project="work"),
    note("Gone", "soon\n", "", project="work"),
    ("delete_note", {"identifier": "Gone", "project": "work"}),
    ("read_note", {"identifier": "main/plans/roadmap"}),
    ("recent_activity", {"timeframe": "7d", "project": "main"}),
]


class Server:
    """A server over stdio with a separate home."""

    def __init__(self, command: list[str], home: Path):
        self.home = home
        projects = {name: {"path": str(home / name)} for name in PROJECTS}
        for name in (*PROJECTS, ".basic-memory"):
            (home / name).mkdir(parents=True)
        config = {"projects": projects, "default_project": "main", "semantic_search_enabled": False}
        (home / ".basic-memory/config.json").write_text(json.dumps(config))
        server_variables = {
            "HOME": str(home),
            "MEMORY_HOME": str(home / "memory"),
            "LOGFIRE_IGNORE_NO_CONFIG": "1",
        }
        inherited = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("BASIC_MEMORY", "XDG_"))
        }
        pipes: dict[str, Any] = {
            "stdin": subprocess.PIPE,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.DEVNULL,
        }
        self.process = subprocess.Popen(
            command, env=inherited | server_variables, text=True, **pipes
        )
        self.count = 0
        client = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "week", "version": "1"},
        }
        self.ask("initialize", client)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.count += 1
        self.send({"jsonrpc": "2.0", "id": self.count, "method": method, "params": params})
        assert self.process.stdout is not None
        for line in self.process.stdout:
            answer = json.loads(line) if line.startswith("{") else {}
            if answer.get("id") == self.count:
                return dict(answer.get("result") or {"isError": True, "content": []})
        raise SystemExit(f"{method}: the server ended")

    def failed(self, call: Call) -> bool:
        """Carry out a call; whether it was refused, in whatever form that program says so."""
        result = self.ask("tools/call", {"name": call[0], "arguments": call[1]})
        text = "".join(content.get("text", "") for content in result["content"])
        return bool(result.get("isError")) or "Failed" in text[:40] or "# Error" in text[:40]

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(60)

    def files(self) -> dict[str, str]:
        """Every file of the projects without the keys that are ours."""
        texts = {}
        for name in PROJECTS:
            folder = self.home / name
            for path in sorted(folder.rglob("*")):
                if path.is_file():
                    place = str(path.relative_to(self.home))
                    texts[place] = comparable(path.read_text())
        return texts


def comparable(text: str) -> str:
    """A note without the differences that docs/moving-in.md names."""
    for pattern, by in SAME:
        text = re.sub(pattern, by, text)
    return text.rstrip("\n")


def main(theirs: str, ours: str) -> int:
    with tempfile.TemporaryDirectory() as folder:
        their_server = Server([theirs, "mcp"], Path(folder, "there"))
        our_server = Server([ours, "mcp", "--as", "basic-memory"], Path(folder, "here"))
        their_refusals = [their_server.failed(call) for call in WEEK]
        our_refusals = [our_server.failed(call) for call in WEEK]
        their_server.close()
        our_server.close()
        their_files = their_server.files()
        our_files = our_server.files()
    differences = [
        *differing_refusals(their_refusals, our_refusals),
        *differing_files(their_files, our_files),
    ]
    if differences:
        print("\n\n".join(differences))
        return 1
    print(f"{len(WEEK)} calls, {len(our_files)} files: the same")
    return 0


def differing_refusals(their_refusals: list[bool], our_refusals: list[bool]) -> Iterator[str]:
    """The calls of the week that only one of the servers refused."""
    refusals = zip(WEEK, their_refusals, our_refusals, strict=True)
    for call, is_refused_there, is_refused_here in refusals:
        if is_refused_there != is_refused_here:
            place = "there" if is_refused_there else "here"
            yield f"{call[0]} {call[1]}: refused {place} only"


def differing_files(their_files: dict[str, str], our_files: dict[str, str]) -> Iterator[str]:
    """The files that are not the same after the week."""
    paths = their_files.keys() | our_files.keys()
    for path in sorted(paths):
        their_text = their_files.get(path)
        our_text = our_files.get(path)
        if their_text != our_text:
            yield f"{path}\n--- there\n{their_text}\n--- here\n{our_text}"


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        raise SystemExit(__doc__)
    default = str(Path(sys.executable).parent / "memory")
    raise SystemExit(main(sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else default))
