"""What doctor says of an index whose words of a note are not those of its file (docs/failures.md)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from memoranda import Draft
from memoranda.engine import MemorySession, open_session
from memoranda.engine import doctor as engine_doctor
from memoranda.engine.doctor import Finding, examine, repair


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemorySession]:
    with open_session(tmp_path / "home", watch=False) as opened:
        opened.write(Draft("- [fact] of tea", title="Tea", project="notes", tags=["warm"]))
        opened.write(Draft("of rain", title="Rain", project="notes"))
        yield opened


def damage(memory: MemorySession, column: str, value: str) -> None:
    """Write another value into the index's row of the note Tea."""
    with closing(sqlite3.connect(memory.home / ".memoranda" / "index.db")) as db, db:
        db.execute(f"update note set {column} = ? where path = 'Tea.md'", (value,))


def stale(memory: MemorySession) -> list[Finding]:
    return [finding for finding in examine(memory) if finding.code == "index_stale"]


@pytest.mark.parametrize(
    ("column", "value"),
    [("title", "Coffee"), ("etag", "0" * 64), ("type", "task"), ("tags", '["cold"]')],
)
def test_another_word_than_the_file_has_is_named_and_mended(
    memory: MemorySession, column: str, value: str
) -> None:
    damage(memory, column, value)

    findings = stale(memory)
    assert [finding.level for finding in findings] == ["error"]
    assert findings[0].text.startswith("1 of 2 compared: ")
    assert findings[0].text.endswith("such as of notes/Tea.md")

    repair(memory, findings)
    assert stale(memory) == []
    assert memory.find("notes/tea").title == "Tea"


def test_an_edit_that_the_index_has_not_seen_is_no_fault(memory: MemorySession) -> None:
    memory.project("notes").root.joinpath("Tea.md").write_text("all new", encoding="utf-8")
    assert stale(memory) == []


def test_no_more_notes_are_compared_than_the_time_allows(
    memory: MemorySession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_doctor, "_MOST_COMPARED_BYTES", 0)
    damage(memory, "title", "Coffee")
    assert stale(memory) == []


def test_finding_counts_only_the_notes_that_were_compared(
    memory: MemorySession, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = [info.size for info in memory.list(limit=0).notes]
    monkeypatch.setattr(engine_doctor, "_MOST_COMPARED_BYTES", max(sizes))
    with closing(sqlite3.connect(memory.home / ".memoranda" / "index.db")) as db, db:
        db.execute("update note set title = 'Coffee'")
    text = stale(memory)[0].text
    assert text.startswith("1 of 1 compared: ")
