"""Notes that are not memories as JSON Lines: entities of a graph file."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from memoranda.engine import MemorySession, open_session
from memoranda.transfer.jsonl import Tally
from memoranda.transfer.note_lines import NoteImport, exported_notes
from transfer.conftest import MOMENT

GRAPH_LINE = (
    '{"type":"entity","name":"Anna","entityType":"person","observations":["sails on Tuesdays"]}\n'
)


@pytest.fixture
def graph_file(tmp_path: Path, memory: MemorySession) -> Path:
    """A graph file that is a project of the memory."""
    path = tmp_path / "people.jsonl"
    path.write_text(GRAPH_LINE)
    memory.add_project("people", str(path))
    return path


@pytest.fixture
def other_memory(tmp_path: Path) -> Iterator[MemorySession]:
    with open_session(tmp_path / "other", clock=lambda: MOMENT) as opened:
        yield opened


def import_lines(memory: MemorySession, lines: Sequence[str]) -> Tally:
    tally = Tally()
    source = io.BytesIO("".join(f"{line}\n" for line in lines).encode())
    NoteImport(memory, source).run(tally, lambda sentence: None)
    return tally


def test_an_entity_of_a_graph_file_is_exported_as_a_note(
    memory: MemorySession, graph_file: Path
) -> None:
    rows = [json.loads(line) for line in exported_notes(memory)]
    assert [(row["project"], row["path"], row["type"]) for row in rows] == [
        ("people", "Anna.md", "person")
    ]
    assert "- sails on Tuesdays" in rows[0]["content"]


def test_an_exported_entity_becomes_a_note_in_a_memory_without_the_graph_file(
    memory: MemorySession, graph_file: Path, other_memory: MemorySession
) -> None:
    import_lines(other_memory, [*exported_notes(memory)])
    note = other_memory.find("notes/people/Anna.md")
    assert "- sails on Tuesdays" in other_memory.text_of(note)


def test_an_exported_entity_that_is_still_there_is_not_imported(
    memory: MemorySession, graph_file: Path
) -> None:
    tally = import_lines(memory, [*exported_notes(memory)])
    assert tally.unchanged == 1
    assert graph_file.read_text() == GRAPH_LINE
    assert [note.project for note in memory.list().notes] == ["people"]


def test_an_exported_entity_that_left_the_graph_file_becomes_a_note(
    memory: MemorySession, graph_file: Path
) -> None:
    lines = [*exported_notes(memory)]
    graph_file.write_text("")
    import_lines(memory, lines)
    assert graph_file.read_text() == ""
    assert "- sails on Tuesdays" in memory.text_of(memory.find("notes/people/Anna.md"))
