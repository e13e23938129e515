"""Contract 000b, 12.16: the index may be thrown away between any two calls; the answers are the
same.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from contract.note_tools import Tools, put
from contract.tables import tables
from memoranda.engine import open_session

TABLES = tables("note_script")

pytestmark = pytest.mark.promise("000b-12.16")

FILES = {
    "a/One.md": "# One\n\n- [fact] apples are red #fruit\n- see [[Two]]\n- see [[Later]]\n",
    "a/Two.md": "---\ntitle: Two\ntags: [fruit]\nstatus: open\n---\npears 梨子 are green\n",
    "a/two.md": "another two\n",
    "b/Broken.md": "---\ntitle: [x\n---\nstill apples\n",
    "Secret.md": "---\nscope: agent:ada\n---\napples in secret\n",
}
SCRIPT = TABLES["script"]
START = 1_600_000_000
NOW = datetime.fromtimestamp(START + 999, UTC)


def harmless(tools: Tools) -> None:
    """The index is left alone."""


def deleted(tools: Tools) -> None:
    for file in (tools.memory.home / ".memoranda").glob("index.db*"):
        file.unlink()


def main_file_deleted(tools: Tools) -> None:
    (tools.memory.home / ".memoranda/index.db").unlink(missing_ok=True)


def emptied(tools: Tools) -> None:
    deleted(tools)
    put(tools.memory.home / ".memoranda/index.db", b"")


def replaced_by_nonsense(tools: Tools) -> None:
    deleted(tools)
    put(tools.memory.home / ".memoranda/index.db", b"no database " * 999)


def masked(reply: Any, home: Path) -> str:
    """A reply as one text, without the times of writing and the place of the home."""
    text = f"{reply.text}\n{json.dumps(reply.data, ensure_ascii=False, indent=1)}".replace(
        str(home), "HOME"
    )
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?Z?)?", "TIME", text)
    return re.sub(r'("?checksum"?: "?)[0-9a-f]{8}', r"\1SUM", text)


def settle(home: Path, step: int) -> None:
    """Give what the last call wrote a fixed time: whether the clock ticked meanwhile is no
    matter here.
    """
    for file in [*(home / "notes").rglob("*"), *(home / "memories").rglob("*")]:
        if file.is_file() and file.stat().st_mtime > START + len(SCRIPT) + 9:
            os.utime(file, (START + step, START + step))


def answers(home: Path, harm: Callable[[Tools], None], watch: bool, agent: str | None) -> list[str]:
    for path, text in FILES.items():
        put(home / "notes" / path, text)
    settle(home, 0)
    with open_session(home, clock=lambda: NOW, watch=watch) as memory:
        tools = Tools(memory.as_caller(agent, "mcp"))
        memory.sync()
        replies = []
        for step, (tool, arguments) in enumerate(SCRIPT, 1):
            harm(tools)
            replies.append(masked(tools.call(tool, **arguments), home))
            settle(home, step)
        for step in range(len(SCRIPT) + 1, len(SCRIPT) + 4):
            harm(tools)
            memory.undo()
            settle(home, step)
        harm(tools)
        replies.append(masked(tools.call("search_notes", query="apples"), home))
        return replies


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str | None, list[str]]:
    return {
        agent: answers(tmp_path_factory.mktemp("undisturbed") / "home", harmless, True, agent)
        for agent in (None, "bob")
    }


@pytest.mark.parametrize(
    ("harm", "watch", "agent"),
    [
        (deleted, False, "bob"),
        (deleted, True, None),
        (main_file_deleted, True, "bob"),
        (emptied, False, None),
        (replaced_by_nonsense, True, "bob"),
    ],
)
def test_index_deleted_between_calls_changes_no_answer(
    tmp_path: Path, undisturbed, harm, watch: bool, agent: str | None
) -> None:
    for call, usual_answer, answer in zip(
        [*SCRIPT, "the end"],
        undisturbed[agent],
        answers(tmp_path / "home", harm, watch, agent),
        strict=True,
    ):
        assert answer == usual_answer, call
