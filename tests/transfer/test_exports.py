"""Exports of assistants and other memory servers: nothing lost, dates kept, a second import finds
nothing new.
"""

from __future__ import annotations

import copy
import gzip
import json
import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from memoranda import Query
from memoranda.engine import MemorySession
from memoranda.query import memory_query
from memoranda.transfer.exports import READERS, plan_export
from memoranda.transfer.moving import MovePlan, WrongStore


def _chatgpt(
    text: str = "Where do herons nest?", updated: float = 1_750_000_100.0
) -> list[dict[str, Any]]:
    def node(
        name: str, parent: str | None, role: str, parts: Any, to: str = "all"
    ) -> dict[str, Any]:
        message = {
            "id": name,
            "author": {"role": role},
            "recipient": to,
            "create_time": 1_750_000_000.5,
            "content": {"content_type": "text", "parts": parts},
        }
        return {"id": name, "parent": parent, "message": message}

    nodes = [
        {"id": "root", "parent": None, "message": None},
        node("q", "root", "user", [text, {"content_type": "image_asset_pointer"}]),
        node("other", "q", "assistant", ["An answer that was replaced."]),
        node("m", "q", "assistant", ["User watches birds.\nUser lives in Passau."], "bio"),
        node("r", "m", "tool", ["Model set context updated."]),
        node("a", "r", "assistant", ["In colonies, in high trees."]),
    ]
    return [
        {
            "conversation_id": "c-1",
            "title": "Herons / nests",
            "create_time": 1_750_000_000.5,
            "update_time": updated,
            "current_node": "a",
            "mapping": {node["id"]: node for node in nodes},
        }
    ]


CLAUDE = [
    {
        "uuid": "u-1",
        "name": "Tea",
        "created_at": "2026-01-02T03:04:05.678Z",
        "updated_at": "2026-01-03T00:00:00Z",
        "chat_messages": [
            {
                "sender": "human",
                "created_at": "2026-01-02T03:04:05Z",
                "text": "x",
                "content": [{"type": "text", "text": "Which tea?"}],
                "attachments": [{"file_name": "a.txt", "extracted_content": "list of teas"}],
            },
            {
                "sender": "assistant",
                "created_at": "2026-01-02T03:04:06Z",
                "text": "Green tea.",
                "content": [],
            },
        ],
    },
    {"uuid": "u-2", "name": "", "chat_messages": []},
]
CLAUDE_MEMORY = [
    {
        "account_uuid": "acc",
        "conversations_memory": "Likes tea.",
        "project_memories": {"p": "A shop."},
    }
]
MEM0 = {
    "results": [
        {
            "id": "m-1",
            "memory": "Likes oat milk",
            "created_at": "2025-05-06T07:08:09-07:00",
            "categories": ["food"],
        },
        {"id": "m-2", "content": "Gone", "state": "deleted"},
    ]
}
MCP_MEMORY = {
    "memories": [
        {
            "content_hash": "h1",
            "content": "Use WAL mode",
            "tags": ["sqlite"],
            "memory_type": "decision",
            "created_at": 1_750_000_000.0,
        }
    ]
}


def _claude_mem(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute(
            "create table observations (id integer primary key, project, type, title, narrative, facts,"
            " concepts, created_at_epoch)"
        )
        db.execute(
            "insert into observations values (1, 'heron', 'bugfix', 'Crash fixed', 'The lock was held.',"
            " '[\"fsync first\"]', '[\"locks\"]', 1750000000000)"
        )
        db.execute(
            "create table session_summaries (id integer primary key, project, request, learned, created_at)"
        )
        db.execute(
            "insert into session_summaries values (1, 'heron', 'Fix it', 'Locks', '2025-06-15T15:06:40Z')"
        )
    db.close()


def _mcp_memory(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute(
            "create table memories (id integer primary key, content_hash, content, tags, memory_type,"
            " created_at real, updated_at real, deleted_at real)"
        )
        db.execute(
            "insert into memories values (1, 'h1', 'Use WAL mode', 'sqlite,db', 'decision', 1750000000.0, null, null)"
        )
        db.execute("insert into memories values (2, 'h2', 'Old', '', null, 1.0, null, 2.0)")
    db.close()


def _source(kind: str, folder: Path) -> Path:
    """An export of this kind in `folder`."""
    if kind == "chatgpt":
        with zipfile.ZipFile(folder / "export.zip", "w") as archive:
            archive.writestr("conversations.json", json.dumps(_chatgpt()))
        return folder / "export.zip"
    if kind == "claude":
        (folder / "conversations.json").write_text(json.dumps(CLAUDE))
        (folder / "memories.json").write_text(json.dumps(CLAUDE_MEMORY))
        return folder
    if kind == "mem0":
        (folder / "memories.jsonl.gz").write_bytes(
            gzip.compress("\n".join(json.dumps(result) for result in MEM0["results"]).encode())
        )
        return folder
    make, name = (
        (_claude_mem, "claude-mem.db") if kind == "claude-mem" else (_mcp_memory, "sqlite_vec.db")
    )
    make(folder / name)
    return folder


def _import(memory: MemorySession, kind: str, path: Path) -> MovePlan:
    plan = plan_export(memory, kind, path, "notes")
    plan.carry_out()
    return plan


WANTED = {
    "chatgpt": [
        ("knowledge", "User watches birds.", "2025-06-15"),
        ("knowledge", "User lives in Passau.", "2025-06-15"),
    ],
    "claude": [("knowledge", "Likes tea.", None), ("project", "A shop.", None)],
    "mem0": [("knowledge", "Likes oat milk", "2025-05-06")],
    "claude-mem": [
        ("lessons", "Crash fixed\nThe lock was held.\n- fsync first", "2025-06-15"),
        ("knowledge", "Request: Fix it\nLearned: Locks", "2025-06-15"),
    ],
    "mcp-memory-service": [("decisions", "Use WAL mode", "2025-06-15")],
}


@pytest.mark.parametrize("kind", READERS)
def test_what_a_program_remembers_becomes_memories_with_its_dates_once(
    memory: MemorySession, tmp_path: Path, kind: str
) -> None:
    folder = tmp_path / "source"
    folder.mkdir()
    source = _source(kind, folder)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    _import(memory, kind, source)
    infos = memory.list(Query(projects=("categories",)), limit=0)[0]
    memories_found = [
        (info.category, memory.text_of(info).split("---\n", 2)[2].strip(), info) for info in infos
    ]
    assert sorted((category, text) for category, text, _ in memories_found) == sorted(
        row[:2] for row in WANTED[kind]
    )
    for category, text, info in memories_found:
        day = next(row[2] for row in WANTED[kind] if row[:2] == (category, text))
        assert day is None or info.created.startswith(day)
        assert info.provenance.who == "import"
        assert info.provenance.trust == "import"
        assert info.source == kind
        assert info.expires is None
        assert kind in info.tags
    again = plan_export(memory, kind, source, "notes")
    assert again.items == []
    infos, _ = memory.list(limit=0)
    assert again.unchanged == len(infos)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_a_conversation_is_one_note_of_the_branch_that_was_shown(
    memory: MemorySession, tmp_path: Path
) -> None:
    _import(memory, "chatgpt", _source("chatgpt", tmp_path))
    note = memory.read(memory.search(Query("colonies", projects=("notes",))).hits[0].note)
    assert note.title == "Herons / nests"
    assert note.type == "conversation"
    assert note.source == "chatgpt"
    assert note.created.date().isoformat() == "2025-06-15"
    assert note.provenance.trust == "import"
    first = note.text.index("Where do herons nest?\n[image_asset_pointer]")
    second = note.text.index("In colonies")
    assert first < second
    assert "replaced" not in note.text
    assert "## You, 2025-06-15T15:06Z" in note.text


def test_a_conversation_of_claude_keeps_its_attachments_and_an_empty_one_is_named(
    memory: MemorySession, tmp_path: Path
) -> None:
    plan = _import(memory, "claude", _source("claude", tmp_path))
    text = memory.read(memory.search(Query("which tea", projects=("notes",))).hits[0].note).text
    assert (
        text.index("Which tea?")
        < text.index("list of teas")
        < text.index("## Claude")
        < text.index("Green tea.")
    )
    assert plan.skipped == [("claude u-2", "it has no text")]


def test_a_conversation_that_went_on_is_brought_up_to_date_and_one_edited_here_is_left(
    memory: MemorySession, tmp_path: Path
) -> None:
    file = tmp_path / "conversations.json"

    def run(text: str, updated: float) -> MovePlan:
        file.write_text(json.dumps(_chatgpt(text, updated)))
        return _import(memory, "chatgpt", file)

    run("First words", 1_750_000_100.0)
    assert run("First words, and more", 1_750_000_200.0).count("update") == 1
    assert memory.search(Query("more", projects=("notes",))).hits
    older = run("First words", 1_750_000_100.0)
    assert (older.count("update"), [why for _, why in older.skipped]) == (
        0,
        ["another text is there"],
    )


@pytest.mark.parametrize("kind", READERS)
def test_what_is_no_such_export_is_refused_and_nothing_is_written(
    memory: MemorySession, tmp_path: Path, kind: str
) -> None:
    file = tmp_path / "conversations.json"
    for content in (
        None,
        b"",
        b"no export",
        b'{"a": 1}',
        b"SQLite format 3\0broken",
        b"[[1, 2], null]",
    ):
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(WrongStore, match=r"conversations\.json"):
            plan_export(memory, kind, file, "notes")
    assert memory.list(limit=0)[1] == 0


def test_a_json_export_of_mcp_memory_service_and_texts_that_are_none(
    memory: MemorySession, tmp_path: Path
) -> None:
    file = tmp_path / "export.json"
    broken = {"content_hash": "h2", "content": "half \ud800"}
    file.write_text(
        json.dumps(
            {"memories": [*MCP_MEMORY["memories"], broken, {"content_hash": "h3", "content": " "}]}
        )
    )
    plan = _import(memory, "mcp-memory-service", file)
    assert (plan.count("import"), len(plan.skipped)) == (1, 2)
    assert memory.list(limit=0)[0][0].category == "decisions"


def test_a_conversation_without_any_time_is_found_again(
    memory: MemorySession, tmp_path: Path
) -> None:
    file = tmp_path / "conversations.json"
    file.write_text(
        json.dumps([{"uuid": "u", "chat_messages": [{"sender": "human", "text": "Hello"}]}])
    )

    assert _import(memory, "claude", file).count("import") == 1
    unchanged = _import(memory, "claude", file).unchanged
    assert unchanged == 1


@pytest.mark.parametrize("dated_first", [True, False])
def test_a_conversation_whose_day_one_export_lacks_is_found_again(
    memory: MemorySession, tmp_path: Path, dated_first: bool
) -> None:
    undated = {"uuid": "u", "chat_messages": [{"sender": "human", "text": "Hello"}]}
    dated = {**undated, "created_at": "2025-03-01T10:00:00Z", "updated_at": "2025-03-02T10:00:00Z"}
    file = tmp_path / "conversations.json"
    for number, row in enumerate([dated, undated] if dated_first else [undated, dated]):
        file.write_text(json.dumps([row, {**row, "uuid": "other"}]))
        plan = _import(memory, "claude", file)
        assert plan.count("import") == (0 if number else 2)

    _, total = memory.list("project:notes", limit=0)
    assert total == 2


def zipped(files: dict[str, Any]) -> bytes:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, value in files.items():
            archive.writestr(name, value if isinstance(value, bytes) else json.dumps(value))
    return buffer.getvalue()


def test_an_export_of_claude_in_parts_with_its_projects(
    memory: MemorySession, tmp_path: Path
) -> None:
    id = "12345678-1234-1234-1234-123456789abc"
    project = {
        "uuid": id,
        "name": "Bakery",
        "prompt_template": "Answer in French.",
        "docs": [{"filename": "oven.md", "content": "The oven heats to 280 degrees."}],
    }
    tool = {
        "sender": "assistant",
        "text": "This block is not supported.",
        "content": [{"type": "tool_use", "name": "x"}],
    }
    chat = {
        "uuid": "c",
        "name": "Rye",
        "chat_messages": [{"sender": "human", "text": "Which flour?"}, tool],
    }
    parts = {
        "conversations-000.zip": zipped({"conversations.json": CLAUDE}),
        "conversations-001.zip": zipped({"conversations.json": [chat]}),
        "memories-000.zip": zipped({f"memories/{id}.json": CLAUDE_MEMORY[0]}),
        "projects-000.zip": zipped({f"projects/{id}.json": project}),
        "light_metadata-000.zip": zipped({"users.json": [{"uuid": "x", "email_address": "a@b.c"}]}),
    }
    (tmp_path / "export.zip").write_bytes(zipped(parts))
    (tmp_path / "parts").mkdir()
    for name, data in parts.items():
        (tmp_path / "parts" / name).write_bytes(data)
    assert _import(memory, "claude", tmp_path / "parts").count("import") == 5
    assert _import(memory, "claude", tmp_path / "export.zip").unchanged == 5
    (project_note,) = memory.list(Query(types=("project",), projects=("notes",)))[0]
    assert project_note.title == "Bakery"
    assert "## oven.md\n\nThe oven heats" in memory.read(project_note).text
    (rye,) = [
        conversation
        for conversation in memory.list(Query(types=("conversation",)))[0]
        if conversation.title == "Rye"
    ]
    assert "not supported" not in memory.read(rye).text
    assert _import(memory, "claude", tmp_path / "parts" / "memories-000.zip").unchanged == 2


def test_an_export_of_chatgpt_in_parts_with_what_it_was_told_of_its_user(
    memory: MemorySession, tmp_path: Path
) -> None:
    older = "1. [2025-01-01]. Lives in Linz."
    newer = "1. [2025-01-02]. Lives in Graz.\n2. [2025-01-02]. User watches birds."
    for number, listed in enumerate([older, newer]):
        (chat,) = _chatgpt(updated=1_750_000_000.0 + number)
        chat["conversation_id"] = f"c-{number}"
        answer = chat["mapping"]["a"]["message"]
        hidden = chat["mapping"]["r"]["message"]
        spoken = {"content_type": "audio_transcription", "text": "Spoken too."}
        answer["content"]["parts"] = ["In trees \ue200cite\ue202turn0search1\ue201.", spoken]
        hidden |= {
            "author": {"role": "user"},
            "metadata": {"is_visually_hidden_from_conversation": True},
            "content": {"content_type": "user_editable_context", "user_instructions": "Be brief."},
        }
        chat["mapping"]["root"]["message"] = {
            "id": f"x{number}",
            "author": {"role": "assistant"},
            "content": {"content_type": "model_editable_context", "model_set_context": listed},
        }
        (tmp_path / f"conversations-{number:03}.json").write_text(json.dumps([chat]))
    _import(memory, "chatgpt", tmp_path)
    memories_told = sorted(
        (info.category, memory.read(info).body.strip())
        for info in memory.list(memory_query(), limit=0)[0]
    )
    assert memories_told == [
        ("knowledge", "Lives in Graz."),
        ("knowledge", "User lives in Passau."),
        ("knowledge", "User watches birds."),
        ("preferences", "Be brief."),
    ]
    notes = memory.list(Query(types=("conversation",)))[0]
    assert len(notes) == 2
    assert "In trees.\nSpoken too." in memory.read(notes[0]).text


def test_the_export_of_claude_mem_as_json(memory: MemorySession, tmp_path: Path) -> None:
    file = tmp_path / "memories.json"
    row = {
        "id": 1,
        "project": "heron",
        "type": "bugfix",
        "title": "Crash fixed",
        "created_at_epoch": 1_750_000_000_000,
    }
    file.write_text(
        json.dumps(
            {"query": "*", "observations": [row], "summaries": [{"id": 1, "request": "Fix it"}]}
        )
    )
    assert _import(memory, "claude-mem", file).count("import") == 2


def _places(value: Any, *above: Any) -> Iterator[tuple[Any, ...]]:
    """The keys and positions that lead to each value inside a JSON value."""
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    else:
        items = []
    for key, inner_value in items:
        yield (*above, key)
        yield from _places(inner_value, *above, key)


@pytest.mark.parametrize("kind", list(READERS))
def test_an_export_with_odd_values_is_read_as_far_as_it_goes_or_refused(
    kind: str, memory: MemorySession, tmp_path: Path
) -> None:
    rows = [
        {
            "id": 1,
            "title": "t",
            "narrative": "n",
            "facts": "[1]",
            "concepts": "[]",
            "created_at_epoch": 1,
        }
    ]
    claude_mem = {"observations": rows, "summaries": [{"id": 2, "request": "r"}]}
    good = {
        "chatgpt": _chatgpt(),
        "claude": [*CLAUDE, *CLAUDE_MEMORY],
        "mem0": MEM0,
        "claude-mem": claude_mem,
        "mcp-memory-service": MCP_MEMORY,
    }[kind]
    file = tmp_path / "conversations.json"
    for place in _places(good):
        for odd in (None, 1, True, "x", [1], [None], {"a": 1}):
            bad = copy.deepcopy(good)
            at: Any = bad
            for key in place[:-1]:
                at = at[key]
            at[place[-1]] = odd
            file.write_text(json.dumps(bad))
            with suppress(WrongStore):
                plan_export(memory, kind, file, "notes")
