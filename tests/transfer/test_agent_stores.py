"""Memories that agents and deja-vu keep on disk, moved in."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest

from memoranda import Query
from memoranda.engine import open_session
from memoranda.transfer.agent_stores import STORES
from memoranda.transfer.exports import plan_export
from memoranda.transfer.moving import WrongStore


@pytest.fixture
def memory(tmp_path):
    with open_session(tmp_path / "home", watch=False) as memory:
        yield memory


def move(memory, kind, path):
    plan = plan_export(memory, kind, path, "notes", STORES[kind])
    plan.carry_out(None)
    return plan


def texts(memory):
    infos, _ = memory.list(Query(), limit=0)
    return sorted(memory.text_of(info).rpartition("---\n")[2].strip() for info in infos)


def test_a_synced_memory_store_becomes_memories_and_twice_is_once(memory, tmp_path):
    store = tmp_path / "store"
    (store / "people").mkdir(parents=True)
    (store / ".anthropic-memory-store").write_text("{}")
    (store / "people" / "anna.md").write_text("Anna likes tea.")
    (store / "plan.txt").write_text("Ship in May.")
    (store / "x.png").write_bytes(b"\x89PNG")
    plan = move(memory, "anthropic-memory", store)
    assert texts(memory) == ["Anna likes tea.", "Ship in May."]
    assert plan.skipped == [("/x.png", "not a text")]
    again = move(memory, "anthropic-memory", store)
    assert len(again.items) == 0
    assert again.unchanged == 2


def test_a_listing_of_a_store_is_read_with_its_times(memory, tmp_path):
    file = tmp_path / "list.json"
    rows = [
        {"path": "/a.md", "content": "A fact.", "created_at": "2026-05-01T10:00:00Z"},
        {"path": "/b.md", "type": "memory"},
    ]
    file.write_text(json.dumps({"data": rows}))
    plan = move(memory, "anthropic-memory", file)
    assert texts(memory) == ["A fact."]
    assert plan.skipped[0][0] == "/b.md"
    assert memory.list(Query())[0][0].created.startswith("2026-05-01")


def test_notes_of_deja_vu_come_without_those_that_no_longer_hold(memory, tmp_path):
    file = tmp_path / "notes.jsonl"
    rows = [
        {"ts": "2026-06-01T10:00:00Z", "project": "fjord", "text": "Use pnpm.", "tags": ["js"]},
        {
            "ts": "2026-06-02T10:00:00Z",
            "text": "Use moment.",
            "session": "codex:1",
            "state": "accepted",
        },
        {
            "ts": "2026-06-03T10:00:00Z",
            "text": "No moment.",
            "session": "codex:1",
            "state": "rejected",
        },
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    plan = move(memory, "deja-vu", tmp_path)
    assert texts(memory) == ["Use pnpm."]
    assert {why for _, why in plan.skipped} == {"it is rejected there"}
    (info,) = memory.list(Query())[0]
    assert {"js", "fjord", "deja-vu"} <= set(info.tags)


def test_memory_files_of_codex_gemini_and_copilot_are_read_where_they_are(memory, tmp_path):
    root = tmp_path / "person"
    (root / ".codex" / "memories").mkdir(parents=True)
    (root / ".codex" / "memories" / "a.md").write_text("Codex knows the quay.")
    (root / ".gemini").mkdir()
    (root / ".gemini" / "GEMINI.md").write_text(
        "# Rules\n\n- Write tests.\n\n## Gemini Added Memories\n- Likes tea.\n- Lives in\n  Oslo.\n"
        "\n## Other\n- No memory.\n"
    )
    (root / ".copilot").mkdir()
    (root / ".copilot" / "copilot-instructions.md").write_text("## Remembered\n* Uses vim.\n")
    move(memory, "agent-files", root)
    assert texts(memory) == ["Codex knows the quay.", "Likes tea.", "Lives in Oslo.", "Uses vim."]


@pytest.mark.parametrize("kind", list(STORES))
def test_what_holds_nothing_of_the_kind_is_refused(memory, tmp_path, kind):
    (tmp_path / "empty").mkdir()
    with pytest.raises(WrongStore):
        move(memory, kind, tmp_path / "empty")


@pytest.mark.parametrize(
    ("kind", "row"),
    [
        ("anthropic-memory", {"path": "/a.md", "content": "A fact.", "created_at": "2026-05-01"}),
        ("deja-vu", {"ts": "2026-06-01", "text": "b", "session": "s", "state": "new", "tags": []}),
    ],
)
def test_a_listing_with_odd_values_is_read_as_far_as_it_goes_or_refused(
    memory, tmp_path, kind, row
):
    good = {"path": "/b.md", "content": "b", "text": "b"}
    file = tmp_path / "notes.jsonl"
    odd_values = (None, 1, True, "x", [1], {"a": 1})
    odd_rows = []
    for key in row:
        odd_rows += [row | {key: value} for value in odd_values]
    for odd in (*odd_values, *odd_rows):
        file.write_text(f"{json.dumps(good)}\n{json.dumps(odd)}\n")
        items = plan_export(memory, kind, file, "notes", STORES[kind]).items
        assert items
        file.write_text(json.dumps([odd]))
        with suppress(WrongStore):
            plan_export(memory, kind, file, "notes", STORES[kind])
    file.write_text("1")
    with pytest.raises(WrongStore):
        plan_export(memory, kind, file, "notes", STORES[kind])
