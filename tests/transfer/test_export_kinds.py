"""Exports as people really have them: without times, in several copies, with other shapes of tags
and of conversations (docs/moving-in.md)."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from memoranda import Query
from memoranda.engine import MemorySession
from memoranda.transfer.exports import READERS, Exported, plan_export
from memoranda.transfer.moving import MovePlan

JUNE = 1_750_000_000.0
DAY = 86_400.0


def message(
    text: str, when: float | None = None, role: str = "user", **more: Any
) -> dict[str, Any]:
    return {
        "author": {"role": role},
        "create_time": when,
        "content": {"content_type": "text", "parts": [text]},
        **more,
    }


def node(parent: str | None, text: str | None = None, when: float | None = None) -> dict[str, Any]:
    return {"parent": parent, "message": message(text, when) if text else None}


def conversation(mapping: Mapping[str, Any], ref: str = "c", **more: Any) -> dict[str, Any]:
    return {"conversation_id": ref, "title": "Herons", "mapping": mapping, **more}


def read(kind: str, folder: Path, value: Any, name: str = "conversations.json") -> list[Any]:
    file = folder / name
    file.write_text(json.dumps(value))
    return list(READERS[kind](file))


def spoken(items: Sequence[Any]) -> list[str]:
    (item,) = [item for item in items if isinstance(item, Exported) and item.turns]
    return [text for _, _, text in item.turns]


def take(memory: MemorySession, kind: str, path: Path) -> MovePlan:
    plan = plan_export(memory, kind, path, "notes")
    plan.carry_out()
    return plan


TREE = {
    "root": node(None),
    "q": node("root", "question", JUNE),
    "old": node("q", "replaced", JUNE + 1),
    "new": node("q", "answer", JUNE + 2),
}


@pytest.mark.parametrize(
    ("mapping", "more", "texts"),
    [
        (TREE, {"current_node": "new"}, ["question", "answer"]),
        (TREE, {"current_node": "old"}, ["question", "replaced"]),
        (TREE, {}, ["question", "answer"]),
        (TREE, {"current_node": None}, ["question", "answer"]),
        (TREE, {"current_node": "gone"}, ["question", "answer"]),
        (TREE, {"current_node": ["new"]}, ["question", "answer"]),
        (dict(reversed(TREE.items())), {}, ["question", "answer"]),
        (
            {"a": node(None, "one"), "b": node("a", "two"), "c": node("a", "three")},
            {},
            ["one", "three"],
        ),
        ({"a": node(None, "one"), "b": node(None, "two")}, {}, ["one", "two"]),
        (
            {"a": {"children": ["b"], "message": message("one")}, "b": {"message": message("two")}},
            {},
            ["one", "two"],
        ),
        ({"a": node("b", "one"), "b": node("a", "two")}, {"current_node": "b"}, ["one", "two"]),
        ({"a": node(None, "one"), "b": "odd", "c": node("a", "two")}, {}, ["one", "two"]),
    ],
)
def test_a_conversation_without_a_last_node_is_its_newest_branch(
    tmp_path: Path, mapping: Any, more: dict[str, Any], texts: list[str]
) -> None:
    assert spoken(read("chatgpt", tmp_path, [conversation(mapping, **more)])) == texts


@pytest.mark.parametrize(
    ("more", "when", "day"),
    [
        ({"create_time": JUNE}, None, "2025-06-15"),
        ({"update_time": JUNE}, None, "2025-06-15"),
        ({}, JUNE, "2025-06-15"),
        ({"create_time": 0, "update_time": 0}, JUNE, "2025-06-15"),
        ({"create_time": JUNE - DAY}, JUNE, "2025-06-14"),
        ({"create_time": "2025-06-15T01:00:00Z"}, None, "2025-06-15"),
        ({"create_time": JUNE * 1000}, None, "2025-06-15"),
        ({"create_time": "soon"}, JUNE, "2025-06-15"),
        ({}, None, "undated"),
        ({"create_time": None, "update_time": -1}, None, "undated"),
    ],
)
def test_a_time_that_is_missing_is_taken_from_the_messages_and_is_never_1970(
    memory: MemorySession, tmp_path: Path, more: dict[str, Any], when: float | None, day: str
) -> None:
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps([conversation({"a": node(None, "wading", when)}, **more)]))
    take(memory, "chatgpt", file)
    (note,), _ = memory.list(Query(projects=("notes",)), limit=0)

    assert note.path.startswith(f"chatgpt/{day} ")
    assert not note.created.startswith("1970")
    assert "1970" not in memory.text_of(note)
    unchanged = take(memory, "chatgpt", file).unchanged
    assert unchanged == 1


def test_what_was_saved_without_a_time_has_that_of_its_conversation(
    memory: MemorySession, tmp_path: Path
) -> None:
    saving = {
        "parent": None,
        "message": message("Likes herons.", None, "assistant", recipient="bio"),
    }
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps([conversation({"a": saving}, create_time=JUNE)]))
    take(memory, "chatgpt", file)
    (info,), _ = memory.list(Query(projects=("categories",)), limit=0)
    assert info.created.startswith("2025-06-15")


def copies(*pairs: tuple[str, float | None]) -> list[dict[str, Any]]:
    return [
        conversation({"a": node(None, text, JUNE)}, create_time=JUNE, update_time=updated)
        for text, updated in pairs
    ]


@pytest.mark.parametrize(
    ("pairs", "text", "dropped"),
    [
        ([("old", JUNE), ("new", JUNE + 1)], "new", 1),
        ([("new", JUNE + 1), ("old", JUNE)], "new", 1),
        ([("b", JUNE + 1), ("c", JUNE + 2), ("a", JUNE)], "c", 2),
        ([("same", JUNE), ("same", JUNE)], "same", 0),
        ([("short", None), ("much longer", None)], "much longer", 1),
        ([("much longer", None), ("short", None)], "much longer", 1),
        ([("undated but longer", None), ("new", JUNE + 1)], "new", 1),
    ],
)
def test_of_several_copies_the_newest_counts_and_the_others_are_named(
    memory: MemorySession, tmp_path: Path, pairs: list[Any], text: str, dropped: int
) -> None:
    (tmp_path / "conversations.json").write_text(json.dumps(copies(*pairs)))
    plan = take(memory, "chatgpt", tmp_path / "conversations.json")
    (note,), _ = memory.list(Query(projects=("notes",)), limit=0)

    assert memory.text_of(note).rstrip().endswith(f"\n{text}")
    assert plan.skipped == [("chatgpt c (Herons)", "the export holds a newer copy of it")] * dropped


def test_of_two_exports_in_one_folder_the_newer_counts(
    memory: MemorySession, tmp_path: Path
) -> None:
    for folder, pair in (("2025", ("new", JUNE + 1)), ("2026-copy", ("old", JUNE))):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "conversations.json").write_text(json.dumps(copies(pair)))
    take(memory, "chatgpt", tmp_path)
    (note,), _ = memory.list(Query(projects=("notes",)), limit=0)

    assert "new" in memory.text_of(note)


def test_of_two_copies_of_a_memory_the_newer_counts(memory: MemorySession, tmp_path: Path) -> None:
    rows = [
        {"id": "m", "memory": "Likes tea", "created_at": "2025-01-01", "updated_at": "2025-03-01"},
        {"id": "m", "memory": "Likes milk", "created_at": "2025-01-01"},
    ]
    file = tmp_path / "mem0.json"
    file.write_text(json.dumps(rows))
    plan = take(memory, "mem0", tmp_path / "mem0.json")
    (info,), _ = memory.list(limit=0)

    assert "Likes tea" in memory.text_of(info)
    assert plan.skipped == [("mem0 m (Likes milk)", "the export holds a newer copy of it")]


TAGS = [
    ('["heron", "reed bed"]', ("heron", "reed bed")),
    (["heron", "reed bed"], ("heron", "reed bed")),
    ("heron,reed bed", ("heron", "reed bed")),
    ("heron, reed bed,", ("heron", "reed bed")),
    ("['heron', 'reed bed']", ("heron", "reed bed")),
    ("heron", ("heron",)),
    ("[]", ()),
    ("", ()),
    (None, ()),
    ([None, "heron"], ("heron",)),
    ("[half", ("[half",)),
    ("#heron", ("#heron",)),
]


@pytest.mark.parametrize(("written", "tags"), TAGS)
def test_tags_may_be_a_list_or_a_text_of_one(
    tmp_path: Path, written: Any, tags: tuple[str, ...]
) -> None:
    row = {"content_hash": "h", "content": "x", "tags": written}
    (item,) = read("mcp-memory-service", tmp_path, {"memories": [row]}, "export.json")
    assert item.tags == tags
    (item,) = read("mem0", tmp_path, [{"id": "m", "memory": "x", "categories": written}])
    assert item.tags == tags
    row = {"id": 1, "text": "x", "concepts": written}
    (item,) = read("claude-mem", tmp_path, {"observations": [row]})
    assert item.tags == ("observation", *tags)


@pytest.mark.parametrize(
    ("kind", "rows", "names"),
    [
        ("chatgpt", [{"title": "No mapping", "id": "x"}], ["conversations.json (No mapping)"]),
        ("chatgpt", [conversation({}, "e")], ["chatgpt e (Herons)"]),
        ("claude", [{"uuid": "u", "name": "Empty", "chat_messages": []}], ["claude u (Empty)"]),
        ("mem0", [{"memory": "Likes tea"}], ["mem0 Likes tea"]),
        ("mem0", [{"id": "n", "memory": None}], ["mem0 n"]),
        ("mem0", [{"id": "g", "memory": "x", "state": "deleted"}], ["mem0 g"]),
        ("mcp-memory-service", [{"content": "No id here"}], ["mcp-memory-service No id here"]),
    ],
)
def test_what_is_left_out_is_named(
    memory: MemorySession, tmp_path: Path, kind: str, rows: list[Any], names: list[str]
) -> None:
    sound = {
        "chatgpt": conversation({"a": node(None, "x")}, "sound"),
        "claude": {"uuid": "s", "chat_messages": [{"sender": "human", "text": "x"}]},
        "mem0": {"id": "s", "memory": "x"},
        "mcp-memory-service": {"content_hash": "s", "content": "x"},
    }
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps([sound[kind], *rows]))

    assert [name for name, _ in take(memory, kind, file).skipped] == names


def _message(name: str, parent: str, sender: str, text: str, minute: int) -> dict[str, Any]:
    return {
        "uuid": name,
        "parent_message_uuid": parent,
        "sender": sender,
        "text": text,
        "created_at": f"2026-01-02T03:{minute:02}:00Z",
    }


# The parent of the first message of a conversation with Claude.
BEFORE_FIRST = "00000000-0000-4000-8000-000000000000"
# The question was edited, and the answer to the edited one was tried twice.
BRANCHED = [
    _message("q1", BEFORE_FIRST, "human", "Where do herons nest in Mai?", 0),
    _message("a1", "q1", "assistant", "Mai is a name.", 1),
    _message("q2", BEFORE_FIRST, "human", "Where do herons nest in May?", 2),
    _message("a2", "q2", "assistant", "In reeds.", 3),
    _message("a3", "q2", "assistant", "In high trees.", 4),
    _message("q3", "a3", "human", "Thank you.", 5),
]
LOST_PARENT = _message("x", "gone", "human", "By the river, too?", 6)
SHOWN = ["Where do herons nest in May?", "In high trees.", "Thank you."]
# A message that answers none of the others does not replace any of them.
LOST_PARENT_TEXTS = [row["text"] for row in [*BRANCHED, LOST_PARENT]]


def _imported_turns(memory: MemorySession, folder: Path, conversation: dict[str, Any]) -> list[str]:
    """The texts of the note that an export of Claude with this conversation makes, in order."""
    file = folder / "conversations.json"
    file.write_text(json.dumps([{"uuid": "c", "name": "Herons", **conversation}]))
    plan_export(memory, "claude", file, "notes").carry_out()
    (note,) = memory.list(Query(types=("conversation",)))[0]
    parts = memory.read(note).text.split("\n## ")[1:]
    return [part.partition("\n")[2].strip() for part in parts]


@pytest.mark.parametrize(
    ("conversation", "texts"),
    [
        ({"chat_messages": BRANCHED}, SHOWN),
        ({"chat_messages": BRANCHED[::-1]}, SHOWN[::-1]),
        (
            {"chat_messages": BRANCHED, "current_leaf_message_uuid": "a2"},
            ["Where do herons nest in May?", "In reeds."],
        ),
        ({"chat_messages": [*BRANCHED, LOST_PARENT]}, LOST_PARENT_TEXTS),
        (
            {"chat_messages": [{**row, "parent_message_uuid": None} for row in BRANCHED]},
            [row["text"] for row in BRANCHED],
        ),
        (
            {"chat_messages": [{**row, "parent_message_uuid": BEFORE_FIRST} for row in BRANCHED]},
            [row["text"] for row in BRANCHED],
        ),
    ],
    ids=["newest", "backwards", "last named", "parent missing", "no parents", "one parent"],
)
def test_replaced_messages_of_claude_are_left_out_and_all_others_stay(
    memory: MemorySession, tmp_path: Path, conversation: dict[str, Any], texts: list[str]
) -> None:
    assert _imported_turns(memory, tmp_path, conversation) == texts


def test_documents_that_claude_wrote_stand_where_it_wrote_them(
    memory: MemorySession, tmp_path: Path
) -> None:
    artifact = {"command": "create", "title": "Herons", "content": "# All about herons"}
    correction = {"command": "update", "old_str": "All", "new_str": "More"}
    file = {"path": "doc/plan.md", "file_text": "Count the nests."}
    blocks = [
        {"type": "text", "text": "Here it is."},
        {"type": "tool_use", "name": "artifacts", "input": artifact},
        {"type": "tool_use", "name": "artifacts", "input": correction},
        {"type": "tool_use", "name": "create_file", "input": file},
        {"type": "tool_use", "name": "web_search", "input": {"query": "private words"}},
        {"type": "tool_use", "name": "artifacts", "input": None},
    ]
    message = {"sender": "assistant", "content": blocks}
    (text,) = _imported_turns(memory, tmp_path, {"chat_messages": [message]})
    assert text == (
        "Here it is.\n\nDocument Herons:\n\n# All about herons\n\n"
        "Document doc/plan.md:\n\nCount the nests."
    )


def test_files_that_claude_remembers_become_memories_with_their_times(
    memory: MemorySession, tmp_path: Path
) -> None:
    files = [
        {"path": "/a.md", "content": "Likes herons.", "updated_at": "2026-03-01T09:00:00Z"},
        {"path": "/empty.md", "content": ""},
        None,
    ]
    file = tmp_path / "memories.json"
    file.write_text(json.dumps({"account_uuid": "acc", "memory_files": files}))
    plan = plan_export(memory, "claude", file, "notes")
    plan.carry_out()
    (info,) = memory.list(Query(projects=("categories",)))[0]
    assert memory.read(info).text.endswith("Likes herons.\n")
    assert info.created.startswith("2026-03-01T09:00")
    assert plan.skipped == [("claude memory:acc:/empty.md", "it has no text")]


def test_a_conversation_about_a_design_is_a_note_with_what_both_said(
    memory: MemorySession, tmp_path: Path
) -> None:
    blocks = [
        {"type": "thinking", "text": "A secret thought."},
        {"type": "text", "text": "A blue logo."},
        {"type": "tool_call", "toolCall": {"name": "draw"}},
        {"type": "user_interjection", "message": {"content": "Darker!"}},
    ]
    attachment = {"name": "brief.txt", "content": "A heron on one leg."}
    chat = {
        "uuid": "12345678-1234-1234-1234-123456789abc",
        "project": {"name": "Logo"},
        "created_at": "2026-03-01T09:00:00Z",
        "messages": [
            {"role": "user", "content": {"content": "Draw a logo.", "attachments": [attachment]}},
            {"role": "assistant", "content": {"contentBlocks": blocks}},
        ],
    }
    with zipfile.ZipFile(tmp_path / "design_chats-000.zip", "w") as archive:
        archive.writestr(f"design_chats/{chat['uuid']}.json", json.dumps(chat))
    plan_export(memory, "claude", tmp_path, "notes").carry_out()
    (info,) = memory.list(Query(types=("conversation",)))[0]
    text = memory.read(info).text
    assert info.title == "Logo"
    said = ["Draw a logo.", "A heron on one leg.", "A blue logo.", "Darker!"]
    places = [text.index(words) for words in said]
    assert places == sorted(places)
    assert "A secret thought." not in text
