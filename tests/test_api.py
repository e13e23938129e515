"""The public API: its names, and the verbs of `Memory` beyond the engine's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import memoranda
from memoranda import Draft, InvalidInput, Memory, Session, open_memory
from memoranda.engine import MemorySession

NOW = datetime(2026, 5, 6, 10, tzinfo=UTC)


@pytest.mark.promise("api-1")
def test_the_package_lists_its_public_names() -> None:
    assert dir(memoranda) == sorted([*memoranda.__all__, "__version__"])
    assert all(getattr(memoranda, name) is not None for name in dir(memoranda))


def test_an_open_memory_shows_verbs_for_people_and_the_session_has_the_rest(
    tmp_path: Path,
) -> None:
    with open_memory(tmp_path) as memory:
        assert type(memory) is Memory
        assert type(memory.session.as_caller("claude")) is MemorySession
    names = {name for name in dir(Memory) if not name.startswith("_")}
    assert len(names) <= 45
    assert {"write", "find", "context", "search", "undo"} <= names
    synonyms = {"store", "find_any", "memory_id", "context_for", "recall", "neighbourhood"}
    inner = {"change", "exclusive", "at_once", "in_turn", "admitted", "with_ids", "freshen"}
    assert not names & (synonyms | inner | {"journal_stamp", "engine", "index"})


@pytest.mark.promise("api-1")
def test_upkeep_decay_and_dream_are_verbs(tmp_path: Path) -> None:
    now = [NOW]
    with open_memory(tmp_path, clock=lambda: now[0]) as memory:
        memory.write(Draft("old and unused", "categories", category="knowledge"))
        memory.write(Draft("deploy the repo on branch main", "categories"))
        assert [action.verb for action in memory.dream(dry_run=True).actions] == ["classify"]
        assert len(memory.dream().actions) == 1
        now[0] += timedelta(days=60)
        assert [outcome.job for outcome in memory.upkeep(dry_run=True)] == [
            "expire",
            "decay",
            "upgrade",
            "consolidate",
        ]
        assert len(memory.decay(dry_run=True)) == 2
        assert len(memory.decay()) == 2
        assert memory.decay() == []
        with pytest.raises(InvalidInput):
            memory.dream(4)


def test_remind_is_a_verb(tmp_path: Path) -> None:
    with open_memory(tmp_path, clock=lambda: NOW, config=None) as memory:
        note = memory.remind("call Bob tomorrow at 3pm", tags=["phone"])
        assert note.category == "reminders"
        assert note.header["due_text"] == "tomorrow at 3pm"
        due_at = memory.remind("call Eve", at="in 2 hours").header["due_at"]
        assert due_at == "2026-05-06T12:00:00Z"
        with pytest.raises(InvalidInput):
            memory.remind("call nobody")


def test_ingest_is_a_verb(tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "Tea.md").write_text("green tea at four")
    with open_memory(tmp_path / "home") as memory:
        ingested = memory.ingest("obsidian", vault, dry_run=True)["obsidian"].ingested
        assert ingested == 1
        ingested = memory.ingest("obsidian", vault)["obsidian"].ingested
        assert ingested == 1
        (vault / "Tea.md").write_text("green tea at five")
        updated = memory.ingest("obsidian", vault)["obsidian"].updated
        assert updated == 1
        for source, path in (("obsidan", vault), ("obsidian", tmp_path / "none")):
            with pytest.raises(InvalidInput):
                memory.ingest(source, path)


def test_export_and_import_are_verbs(tmp_path: Path) -> None:
    with open_memory(tmp_path / "a") as memory, open_memory(tmp_path / "b") as other_memory:
        memory.write(Draft("用户喜欢深色模式", "categories", category="preferences"))
        memory.write(Draft("heron", "categories"))
        lines = list(memory.export())
        imported = other_memory.import_(lines).imported
        assert imported == 2
        unchanged = other_memory.import_(lines).unchanged
        assert unchanged == 2
        assert list(other_memory.export()) == lines
        assert list(other_memory.export(category="preferences")) == lines[:1]
        with pytest.raises(InvalidInput):
            other_memory.export(category="nope")
        with pytest.raises(memoranda.BadRecord, match="record 2") as refusal:
            other_memory.import_([*lines[:1], "{"])
        assert isinstance(refusal.value, InvalidInput)
        assert refusal.value.number == 2


def test_a_session_offers_the_toolsets_named(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        session = Session(memory, tools=["notes", "kv"])
        assert not session.call(
            "write_note", {"title": "Plan", "folder": "", "content": "x"}
        ).is_error
        assert not session.call("memory_remember", {"key": "editor", "value": "vim"}).is_error
        assert session.call("memory_write", {"content": "x"}).is_error
