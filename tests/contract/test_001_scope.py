"""Contract 001, 17.13: for agent X a home that holds notes of agent Y answers as one that does not.

Every command and tool is run as X in two homes that differ in nothing but Y's notes; the answers
must be equal.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from contract.note_tools import Tools, put, texts
from contract.tables import tables
from memoranda.cli import COMMANDS
from memoranda.engine import open_session
from memoranda.engine.completion import permalinks
from memoranda.query import Query

TABLES = tables("scope")

pytestmark = pytest.mark.promise("001-17.13")

MINE, OPEN, THEIRS = (f"abcd{n}111-2222-4333-8444-555566667777" for n in (1, 2, 3))
THEIRS_TOO = "eeee1111-2222-4333-8444-555566667777"
THEIR_REMINDER = "dddd1111-2222-4333-8444-555566667777"
MY_REMINDER = "dddd2111-2222-4333-8444-555566667777"


def memory_text(
    ref: str, scope: str, content: str, links: tuple[str, ...] = (), **more: str
) -> str:
    if links:
        listed = "links:\n" + "".join(f"  - {link}\n" for link in links)
    else:
        listed = ""
    keys = "".join(f"{key}: {value}\n" for key, value in more.items())
    if content.endswith("tea"):
        category = "reminders"
    else:
        category = "knowledge"
    return (
        f"---\nid: {ref}\nphase: organized\ncategory: {category}\nscope: {scope}\nsource: manual\n"
        "created_at: 2026-05-07T10:00:00Z\n"
        f"updated_at: 2026-05-07T10:00:00Z\nexpires_at: null\naccess_count: 0\n"
        f"{listed}version: 1\n{keys}---\n{content}\n"
    )


VISIBLE = {
    "categories/knowledge/mine.md": memory_text(
        MINE, "agent:x", "shared words mine [[their secret]] [[open thing]]", (THEIRS, OPEN)
    ),
    "categories/knowledge/open.md": memory_text(
        OPEN, "global", "open thing shared words", (MINE, THEIRS)
    ),
    "categories/reminders/my tea.md": memory_text(
        MY_REMINDER, "agent:x", "my tea", due_at="2026-05-09"
    ),
    "notes/Open.md": "# Open\n\n- [fact] shared words #t\n- see [[Secret]]\n- see [[Mine]]\n",
    "notes/Mine.md": "---\nscope: agent:x\n---\nshared words [[Open]] [[secret title]]\n",
    "memories/open.md": "- [fact] shared words [[Open]]\n",
    "graph/Ada.md": "---\ntitle: Ada\ntype: person\n---\n- shared words\n- knows [[Bob]]\n",
}
HIDDEN = {
    "categories/knowledge/theirs.md": memory_text(
        THEIRS,
        "agent:y",
        "their secret shared words [[open thing]]",
        (MINE, OPEN),
        due_at="2026-05-09",
        supersedes=OPEN,
    ),
    "categories/reminders/their tea.md": memory_text(
        THEIR_REMINDER, "agent:y", "their tea", due_at="2026-05-08"
    ),
    "categories/inbox/theirs too.md": memory_text(THEIRS_TOO, "agent:y", "open thing"),
    "notes/private/Secret.md": "---\nscope: agent:y\ntitle: secret title\naliases: [Secret]\n"
    "status: secretstatus\n---\n"
    "# secretheading\n- [secretcategory] shared words #secrettag\n- part_of [[Open]]\n",
    "notes/open 2.md": "---\nscope: agent:y\ntitle: Open\nlocked: true\n---\nshared words secretly\n",
    "notes/broken.md": "---\nscope: agent:y\ncreated_at: never\n---\nsecret\n",
    "memories/secret.md": "---\nscope: agent:y\n---\n- [fact] shared secret [[Open]]\n",
    "graph/Bob.md": "---\ntitle: Bob\ntype: person\nscope: agent:y\n---\n- shared secret\n- knows [[Ada]]\n",
    "memories/private/secret.md": "---\nscope: agent:y\n---\nsecret\n",
}
COMMAND_LINES = TABLES["command_lines"]
TOOL_CALLS = TABLES["tool_calls"]


def fill(home: Path, *contents: dict[str, str]) -> None:
    """Files with the same times in both homes."""
    for content in contents:
        for path, text in content.items():
            put(home / path, text)
            os.utime(home / path, (1_778_000_000, 1_778_000_000))


@pytest.fixture
def homes(tmp_path: Path) -> tuple[Path, Path]:
    """A home with the notes of both agents, and one with X's alone."""
    both = tmp_path / "both/home"
    alone = tmp_path / "alone/home"
    fill(both, VISIBLE, HIDDEN)
    fill(alone, VISIBLE)
    return both, alone


def masked(text: str, home: Path) -> str:
    """An answer without what differs between any two homes: its place, new ids, times of writing,
    hashes, scores.
    """
    text = re.sub("space=[a-z0-9]+", "SPACE", text.replace(str(home.parent), "HOME"))
    for pattern, mask in (
        (r'"score": [\d.]+', "SCORE"),
        (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?Z?", "TIME"),
        (r'("?checksum"?: "?)[0-9a-f]{8}', "SUM"),
        (r'"seconds": [\d.]+', "SECONDS"),
        (r'_hash": "[0-9a-f]{64}', "_hash"),
        (r"text-[0-9a-f]{8}\.md", "FILE"),
    ):
        text = re.sub(pattern, mask, text)
    names: dict[str, str] = {}
    new = re.findall(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", text)
    for memory_id in new:
        if memory_id not in (MINE, OPEN, THEIRS, THEIRS_TOO, THEIR_REMINDER, MY_REMINDER):
            names.setdefault(memory_id, f"ID{len(names)}")
    for memory_id, name in names.items():
        text = text.replace(memory_id, name).replace(memory_id[:8], name)
    return text


def same(homes: tuple[Path, Path], run: Callable[[Path], str], case: object) -> None:
    with_theirs, without = (masked(run(home), home) for home in homes)
    assert with_theirs == without, case


def kept(home: Path) -> None:
    """Y's notes are as they were."""
    for path, text in HIDDEN.items():
        assert (home / path).read_text() == text, path


@pytest.mark.slow
def test_every_command_answers_as_if_foreign_notes_did_not_exist(
    terminal: Any, monkeypatch: pytest.MonkeyPatch, homes: tuple[Path, Path]
) -> None:
    monkeypatch.setenv("EDITOR", "true")

    def run(home: Path) -> str:
        ran = terminal("--home", str(home), "--agent", "x", *argv)
        return f"{ran.status}\n{ran.out}\n{ran.err}"

    for argv in COMMAND_LINES:
        same(homes, run, argv)
    kept(homes[0])


def test_all_commands_are_among_these() -> None:
    # The tools of `mcp` and of the socket are below; upkeep itself is the owner's; `bench` tells times.
    assert {argv[0] for argv in COMMAND_LINES} == set(COMMANDS) - {"mcp", "serve", "bench"}


@pytest.mark.parametrize("watch", [False, True])
def test_every_tool_answers_as_if_foreign_notes_did_not_exist(
    homes: tuple[Path, Path], watch: bool
) -> None:
    opened = {home: open_session(home, watch=watch) for home in homes}
    faces = {home: Tools(memory.as_caller("x", "mcp")) for home, memory in opened.items()}

    def run(home: Path) -> str:
        reply = faces[home].call(tool, **arguments)
        return f"{reply.is_error}\n{reply.text}\n{json.dumps(reply.data, ensure_ascii=False, indent=1)}"

    try:
        for tool, arguments in TOOL_CALLS:
            same(homes, run, (tool, arguments))
    finally:
        for memory in opened.values():
            memory.close()
    kept(homes[0])


def test_all_tools_are_among_these(tools: Tools) -> None:
    assert {name for name, _ in TOOL_CALLS} == set(tools.registry.tools)


def test_prompts_resources_and_completions_are_the_same(homes: tuple[Path, Path]) -> None:
    def run(home: Path) -> str:
        with open_session(home, agent="x", watch=False) as memory:
            tools = Tools(memory)
            texts = []
            for prompt, words in product(
                tools.registry.prompts.values(), ("secret", "shared words")
            ):
                if "query" in [name for name, *_ in prompt.arguments]:
                    names = ("topic", "query")
                else:
                    names = ("topic",)
                texts.append(prompt.render(memory, dict.fromkeys(names, words)))
            (template,) = tools.registry.templates
            for prefix, project in product(("", "pri", "sec"), ("notes", "memories")):
                texts.append(str(template.complete(memory, "path", prefix, {"project": project})))
            return "\n".join(texts)

    same(homes, run, "prompts")


def test_every_verb_of_the_python_api_is_the_same(homes: tuple[Path, Path]) -> None:
    def run(home: Path) -> str:
        with open_session(home, agent="x", watch=False) as memory:
            infos, total = memory.list(Query(order="path"), limit=0)
            answers: list[object] = [
                [info.path for info in infos],
                total,
                memory.stats(),
                permalinks(memory, ""),
            ]
            answers += [
                memory.context_for("shared secret words"),
                memory.list(Query(after=memory.since("99y")))[1],
                memory.log(),
            ]
            answers += [hit.note.path for hit in memory.search("shared OR secret", limit=50)]
            for info in infos:
                answers += [
                    (edge.target, edge.state, edge.note and edge.note.path)
                    for edge in memory.outgoing(info)
                ]
                answers += [info.path, *(backlink.path for backlink in memory.backlinks(info))]
                answers += [
                    reached_note.note.path for reached_note in memory.context(info, depth=3).reached
                ]
            return "\n".join(map(repr, answers))

    same(homes, run, "python")


def test_each_agent_sees_its_own_and_the_owner_all(terminal: Any, homes: tuple[Path, Path]) -> None:
    at = ["--home", str(homes[0]), "--json"]
    for agent, total, links in (
        ([], 6, [THEIRS, OPEN]),
        (["--agent", "y"], 4, None),
        (["--agent", "x"], 3, [OPEN]),
    ):
        listed = terminal(*at, *agent, "list", "--project", "categories")
        assert listed.json["total"] == total
        if links is not None:
            document = terminal(*at, *agent, "read", MINE).json
            assert document["memory"]["links"] == links


def test_what_an_agent_links_keeps_the_links_it_does_not_see(
    terminal: Any, homes: tuple[Path, Path]
) -> None:
    at = ["--home", str(homes[0]), "--json"]
    new = terminal(*at, "--agent", "x", "write", "new").json["memory"]["id"]
    terminal.ok(*at, "--agent", "x", "link", MINE, new)
    terminal.ok(*at, "--agent", "x", "tag", MINE, "--add", "t")

    document = terminal(*at, "read", MINE).json
    assert document["memory"]["links"] == [THEIRS, OPEN, new]


def test_an_agent_can_undo_its_deletion_though_a_foreign_memory_lost_a_link(
    homes: tuple[Path, Path],
) -> None:
    before = texts(homes[0] / "categories")
    with open_session(homes[0], agent="x", watch=False) as memory:
        memory.delete(MINE)
        assert (
            texts(homes[0] / "categories")["knowledge/theirs.md"] != before["knowledge/theirs.md"]
        )
        (change,) = memory.log()
        paths = {file.path for file in change.files}
        assert paths == {"knowledge/mine.md", "knowledge/open.md"}
        assert memory.log("categories/knowledge/theirs.md") == []
        memory.undo()

    assert texts(homes[0] / "categories") == before


def test_an_agents_doctor_does_not_cut_links_to_notes_it_does_not_see(
    terminal: Any, homes: tuple[Path, Path]
) -> None:
    before = texts(homes[0] / "categories")
    terminal("--home", str(homes[0]), "--agent", "x", "doctor", "--fix")
    assert texts(homes[0] / "categories") == before
    terminal("--home", str(homes[0]), "doctor", "--fix")
    assert texts(homes[0] / "categories") == before
    (homes[0] / "categories/knowledge/theirs.md").unlink()
    ran = terminal("--home", str(homes[0]), "doctor", "--fix")
    assert "dangling_link" in ran.out
    assert json.loads(terminal.ok("--home", str(homes[0]), "read", MINE, "--json"))["memory"][
        "links"
    ] == [OPEN]


def test_the_history_of_foreign_notes_is_hidden_and_cannot_be_undone(tmp_path: Path) -> None:
    with open_session(tmp_path / "home", watch=False) as memory:
        x, y = (Tools(memory.as_caller(name, "mcp")) for name in ("x", "y"))
        x("write_note", title="Mine", content="---\nscope: agent:x\n---\none")
        y("write_note", title="Theirs", content="---\nscope: agent:y\n---\nsecret")
        y("edit_note", identifier="Theirs", operation="append", content="more secret")
        y("delete_note", identifier="Theirs")
        y("write_note", title="Was theirs", content="---\nscope: agent:y\n---\nsecret")
        y(
            "edit_note",
            identifier="Was theirs",
            operation="find_replace",
            find_text="scope: agent:y\n",
            content="",
        )
        before = texts(tmp_path / "home/notes")
        assert [change.path for change in x.memory.log(limit=0)] == ["Mine.md"]
        assert [change.path for change in y.memory.log(limit=0)] == [
            "Was theirs.md",
            "Was theirs.md",
            "Theirs.md",
            "Theirs.md",
            "Theirs.md",
        ]
        for ref in ("notes/Theirs.md", "notes/Was theirs.md"):
            with pytest.raises(Exception, match="Note not found"):
                x.memory.restore(ref)
        for number in range(2, 7):
            with pytest.raises(Exception, match=f"no change #{number}"):
                x.memory.undo(number)
        assert texts(tmp_path / "home/notes") == before
        x.memory.undo()
        assert list(texts(tmp_path / "home/notes")) == ["Was theirs.md"]
