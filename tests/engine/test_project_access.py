"""What the owner allows agents in one project: who may use it, where they write, whether at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.note_tools import Tools, put
from memoranda.engine import MemorySession, open_session
from memoranda.engine.doctor import examine
from memoranda.errors import InvalidInput, MemorandaError, NotWritable, ProjectNotFound
from memoranda.note import edit as edits
from memoranda.note.model import Draft
from memoranda.note.project_access import ProjectAccess

PROJECT = "vault"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemorySession]:
    root = tmp_path / "vault"
    put(root / "Topics/Espresso.md", "# Espresso\n\nbrewword [[Home]]\n")
    put(root / "Home.md", "homeword\n")
    with open_session(tmp_path / "home", face="cli") as memory:
        memory.add_project(PROJECT, str(root))
        yield memory


def as_agent(memory: MemorySession, name: str) -> MemorySession:
    return memory.as_caller(name, "mcp")


def allow(memory: MemorySession, **access: object) -> None:
    memory.set_access(PROJECT, ProjectAccess(**access))  # type: ignore[arg-type]


def paths(memory: MemorySession, text: str) -> list[str]:
    return sorted(hit.note.path for hit in memory.search(text).hits)


def test_only_named_agents_see_the_notes(memory: MemorySession) -> None:
    assert paths(as_agent(memory, "codex"), "brewword") == ["Topics/Espresso.md"]
    allow(memory, agents=("claude", "cursor"))
    for name in ("claude", "cursor", "Claude"):
        assert paths(as_agent(memory, name), "brewword") == ["Topics/Espresso.md"]
    assert paths(memory, "brewword") == ["Topics/Espresso.md"]
    assert paths(as_agent(memory, "codex"), "brewword") == []


def test_project_of_named_agents_is_not_there_for_another(memory: MemorySession) -> None:
    allow(memory, agents=("claude",))
    codex = as_agent(memory, "codex")
    names = [project.name for project in codex.projects]
    assert PROJECT not in names
    with pytest.raises(ProjectNotFound):
        codex.project(PROJECT)


def test_missing_folder_of_a_project_is_told_only_to_who_may_use_it(
    memory: MemorySession, tmp_path: Path
) -> None:
    allow(memory, agents=("claude",))
    (tmp_path / "vault").rename(tmp_path / "elsewhere")
    told = {}
    for name in ("claude", "codex"):
        caller = as_agent(memory, name)
        findings = [finding.code for finding in examine(caller) if finding.path == PROJECT]
        told[name] = (findings, [warning.project for warning in caller.warnings])
    assert told == {"claude": (["broken_store"], [PROJECT]), "codex": ([], [])}


def test_file_that_cannot_be_read_is_told_only_to_who_may_use_its_project(
    memory: MemorySession,
) -> None:
    allow(memory, agents=("claude",))
    left_out = memory.engine.freshness.left_out
    left_out.add_unreadable((PROJECT, "Home.md"), "Permission denied")
    assert [*as_agent(memory, "claude").unreadable] == [(PROJECT, "Home.md")]
    assert as_agent(memory, "codex").unreadable == {}


def test_no_tool_tells_of_notes_that_only_another_agent_may_see(memory: MemorySession) -> None:
    allow(memory, agents=("claude",))
    tools = Tools(as_agent(memory, "codex"))
    for tool, arguments in (
        ("read_note", {"identifier": "Espresso"}),
        ("read_note", {"identifier": "vault/topics/espresso"}),
        ("list_directory", {"dir_name": "/", "project": PROJECT}),
        ("build_context", {"url": "Espresso"}),
    ):
        reply = tools.call(tool, **arguments)
        assert "brewword" not in reply.text
        assert "Topics" not in reply.text
    recent = tools.text("recent_activity", timeframe="7d")
    assert "Espresso" not in recent


def test_named_agent_reads_the_notes_by_a_tool(memory: MemorySession) -> None:
    allow(memory, agents=("claude",))
    reply = Tools(as_agent(memory, "claude")).call("read_note", identifier="Espresso")
    assert reply.data


def test_notes_are_seen_again_once_all_may_use_the_project(
    memory: MemorySession, tmp_path: Path
) -> None:
    allow(memory, agents=("claude",))
    assert paths(as_agent(memory, "codex"), "brewword") == []
    allow(memory)
    assert paths(as_agent(memory, "codex"), "brewword") == ["Topics/Espresso.md"]


def test_change_of_the_configuration_by_hand_counts_when_it_is_opened(
    memory: MemorySession, tmp_path: Path
) -> None:
    assert paths(memory, "brewword") == ["Topics/Espresso.md"]
    memory.close()
    file = tmp_path / "home/config.yaml"
    before = file.read_text()
    file.write_text(f"{before}access:\n  {PROJECT}:\n    agents: [claude]\n")
    with open_session(tmp_path / "home", agent="codex") as again:
        assert paths(again, "brewword") == []
    with open_session(tmp_path / "home", agent="claude") as again:
        assert paths(again, "brewword") == ["Topics/Espresso.md"]
    file.write_text(before)
    with open_session(tmp_path / "home", agent="codex") as again:
        assert paths(again, "brewword") == ["Topics/Espresso.md"]


def test_private_note_of_an_agent_that_may_not_use_the_project_is_hidden_from_it(
    memory: MemorySession,
) -> None:
    put(memory.project(PROJECT).root / "Own.md", "---\nscope: agent:codex\n---\nownword\n")
    assert paths(as_agent(memory, "codex"), "ownword") == ["Own.md"]
    allow(memory, agents=("claude",))
    assert paths(as_agent(memory, "codex"), "ownword") == []
    assert paths(as_agent(memory, "claude"), "ownword") == []
    assert paths(memory, "ownword") == ["Own.md"]


def test_history_of_a_project_is_told_to_its_agents_alone(memory: MemorySession) -> None:
    allow(memory, agents=("claude",))
    as_agent(memory, "claude").edit("Espresso", edits.Append("more\n"))
    assert as_agent(memory, "claude").log()
    assert not [change for change in as_agent(memory, "codex").log() if change.project == PROJECT]


def test_nobody_changes_a_project_that_is_read_only(memory: MemorySession) -> None:
    claude = as_agent(memory, "claude")
    claude.edit("Espresso", edits.Append("more\n"))
    root = memory.project(PROJECT).root
    allow(memory, is_read_only=True)
    before = {path: path.read_bytes() for path in root.rglob("*.md")}
    for session in (claude, memory):
        with pytest.raises(NotWritable, match="read-only"):
            session.edit("Espresso", edits.Append("again\n"))
        with pytest.raises(NotWritable):
            session.write(Draft("text", project=PROJECT, title="New"))
        with pytest.raises(NotWritable):
            session.delete("Espresso")
        with pytest.raises(NotWritable):
            session.move("Espresso", "Elsewhere.md")
        with pytest.raises(NotWritable):
            session.move_folder(PROJECT, "Topics", "Other")
    assert {path: path.read_bytes() for path in root.rglob("*.md")} == before
    assert paths(claude, "brewword") == ["Topics/Espresso.md"]


def test_owner_takes_back_what_was_done_before_a_project_was_read_only(
    memory: MemorySession,
) -> None:
    as_agent(memory, "claude").edit("Espresso", edits.Append("more\n"))
    root = memory.project(PROJECT).root
    allow(memory, is_read_only=True)
    memory.undo()
    assert b"more" not in (root / "Topics/Espresso.md").read_bytes()


def test_agents_write_in_their_folder_alone(memory: MemorySession) -> None:
    allow(memory, write_folder="Inbox/")
    claude = as_agent(memory, "claude")
    note = claude.write(Draft("text", project=PROJECT, title="New"))
    assert note.path == "Inbox/New.md"
    claude.edit("New", edits.Append("more\n"))
    for refused in (
        lambda: claude.edit("Espresso", edits.Append("more\n")),
        lambda: claude.write(Draft("text", project=PROJECT, title="Two", folder="Topics")),
        lambda: claude.write(Draft("text", project=PROJECT, title="Two", folder="/")),
        lambda: claude.move("New", "Topics/New.md"),
        lambda: claude.delete("Espresso"),
        lambda: claude.delete_folder(PROJECT, "Topics"),
        lambda: claude.tag("Espresso", ["x"]),
    ):
        with pytest.raises(NotWritable, match="Inbox/"):
            refused()
    memory.edit("Espresso", edits.Append("the owner writes everywhere\n"))


def test_move_in_the_folder_of_agents_leaves_links_elsewhere_and_names_them(
    memory: MemorySession,
) -> None:
    allow(memory, write_folder="Inbox")
    claude = as_agent(memory, "claude")
    claude.write(Draft("text", project=PROJECT, title="New"))
    root = memory.project(PROJECT).root
    put(root / "Home.md", "[[New]]\n")
    moved = claude.move("New", "Inbox/Newer.md")

    assert moved.broken == ["Home.md"]
    assert (root / "Home.md").read_text() == "[[New]]\n"


@pytest.mark.parametrize("folder", ["../out", "a/../../b", "a\0b"])
def test_folder_that_is_none_of_the_project_is_refused(
    memory: MemorySession, tmp_path: Path, folder: str
) -> None:
    access = ProjectAccess(write_folder=folder)
    with pytest.raises(MemorandaError):
        memory.set_access(PROJECT, access)
    assert memory.access_to(PROJECT) == ProjectAccess()
    with pytest.raises(MemorandaError):
        memory.add_project("other", str(tmp_path / "other"), access=access)
    assert not (tmp_path / "other").exists()


def test_agents_do_not_change_what_they_may_do(memory: MemorySession) -> None:
    with pytest.raises(InvalidInput, match="Only the owner"):
        as_agent(memory, "claude").set_access(PROJECT, ProjectAccess(agents=("claude",)))
    with pytest.raises(InvalidInput, match="Only the owner"):
        as_agent(memory, "claude").add_project(
            "mine", str(memory.home / "projects/mine"), access=ProjectAccess(agents=("claude",))
        )
    with pytest.raises(InvalidInput, match="built-in"):
        memory.set_access("notes", ProjectAccess(is_read_only=True))


def test_access_goes_with_its_project(memory: MemorySession, tmp_path: Path) -> None:
    allow(memory, agents=("claude",), write_folder="Inbox", ignore=("Topics/",))
    assert paths(memory, "brewword") == []
    root = memory.project(PROJECT).root
    memory.remove_project(PROJECT)
    memory.add_project(PROJECT, str(root))
    assert memory.access_to(PROJECT) == ProjectAccess()
    assert paths(as_agent(memory, "codex"), "brewword") == ["Topics/Espresso.md"]
