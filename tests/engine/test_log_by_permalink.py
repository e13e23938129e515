"""The history of a note by its permalink, in which the project has another spelling."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda import Draft
from memoranda.engine import MemorySession, open_session

PROJECTS = pytest.mark.parametrize("project", ["notes", "Vault One"])


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemorySession]:
    """A memory with a project whose name is not as permalinks are written."""
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "vault").mkdir()
    (home / "config.yaml").write_text(f"projects:\n  Vault One: {tmp_path / 'vault'}\n")
    with open_session(home, watch=False) as opened:
        yield opened


@PROJECTS
def test_the_log_takes_a_permalink(memory: MemorySession, project: str) -> None:
    note = memory.write(Draft("text", project=project, title="Old Plug"))
    assert note.permalink is not None
    verbs = [change.verb for change in memory.log(note.permalink)]
    assert verbs == ["write"]


@PROJECTS
def test_the_log_of_an_address_without_a_note_is_empty(memory: MemorySession, project: str) -> None:
    memory.write(Draft("text", project=project, title="Old Plug"))
    assert memory.log(f"{project}/never there") == []


@PROJECTS
def test_the_log_takes_the_path_of_a_deleted_note(memory: MemorySession, project: str) -> None:
    memory.delete(memory.write(Draft("text", project=project, title="Old Plug")))
    verbs = [change.verb for change in memory.log(f"{project}/Old Plug.md")]
    assert verbs == ["delete", "write"]
