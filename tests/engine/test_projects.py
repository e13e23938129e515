"""Projects of several processes on one home."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from memoranda import errors
from memoranda.engine import open_session


@pytest.fixture
def tmp_path():
    """On the disk: no agent is given a folder below /dev, where those of tests may be."""
    with TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.fixture
def vault(tmp_path):
    folder = tmp_path / "vault"
    folder.mkdir()
    (folder / "a.md").write_text("- [fact] heronword\n")
    return folder


def test_a_project_for_one_process_is_not_forgotten_because_of_others(tmp_path, vault):
    with (
        open_session(tmp_path / "home", projects={"mine": vault}) as mine,
        open_session(tmp_path / "home") as other_memory,
    ):
        assert mine.search("heronword").total == 1
        assert other_memory.search("heronword").total == 0
        assert mine.search("heronword").total == 1
        assert mine.stats().projects == {"mine": 1}
        with pytest.raises(errors.NotFound):
            other_memory.find("a")


def test_a_folder_in_around_or_like_another_project_or_the_home_is_refused(tmp_path, vault):
    with open_session(tmp_path / "home") as memory:
        memory.add_project("vault", str(vault))
        for folder in (
            vault / "inner",
            tmp_path,
            vault,
            tmp_path / "home",
            tmp_path / "home" / "x",
        ):
            with pytest.raises(errors.ProjectRefused):
                memory.add_project("other", str(folder))
        assert memory.add_project("VAULT", str(vault))[1] == "unchanged"
        for name in ("notes", "MEMORIES", "vault"):
            with pytest.raises(errors.Exists):
                memory.add_project(name, str(tmp_path / "elsewhere"))
        for name in ("", "a/b", "x" * 65, "a\nb", "..."):
            with pytest.raises(errors.InvalidInput):
                memory.add_project(name, str(tmp_path / "elsewhere"))
    assert not (tmp_path / "elsewhere").exists()


def test_projects_are_all_there_for_a_thread_while_another_adds_and_removes_one(tmp_path, vault):
    names = set()
    is_done = threading.Event()
    interval = sys.getswitchinterval()
    with open_session(tmp_path / "home", watch=False) as memory:
        built_in = {project.name for project in memory.projects}

        def look() -> None:
            while not is_done.is_set():
                try:
                    names.add(frozenset(project.name for project in memory.projects) & built_in)
                except RuntimeError as error:
                    names.add(error)

        looking = threading.Thread(target=look)
        sys.setswitchinterval(1e-6)
        try:
            looking.start()
            for _ in range(10):
                memory.add_project("other", str(vault))
                memory.remove_project("other")
        finally:
            is_done.set()
            looking.join()
            sys.setswitchinterval(interval)
    assert names == {frozenset(built_in)}


@pytest.fixture
def agent(tmp_path, monkeypatch):
    """The home as agent `x` sees it; its owner keeps notes in `user`, and allows agents the folder
    `allowed`.
    """
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    (tmp_path / "user" / "notes").mkdir(parents=True)
    (tmp_path / "allowed").mkdir()
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.yaml").write_text(f"notes:\n  roots: ['{tmp_path / 'allowed'}']\n")
    with open_session(tmp_path / "home") as memory:
        yield memory.as_caller("x")


@pytest.mark.promise("trust-projects")
def test_an_agent_adds_folders_below_the_allowed_ones_without_asking(agent, tmp_path):
    for name, folder in (
        ("a", tmp_path / "allowed" / "a"),
        ("b", tmp_path / "home" / "projects" / "b"),
    ):
        assert agent.add_project(name, str(folder))[1] == "created"
        assert folder.is_dir()
    questions = agent.as_caller(None).review()
    assert questions == []


@pytest.mark.promise("trust-projects")
def test_what_an_agent_asks_for_elsewhere_waits_for_the_owner(agent, tmp_path):
    folder = tmp_path / "user" / "notes"
    owner = agent.as_caller(None)
    (tmp_path / "allowed" / "link").symlink_to(folder)
    for folder_given in (
        folder,
        folder,
        tmp_path / "allowed" / "link",
        tmp_path / "allowed" / ".." / "user" / "notes",
    ):
        added, action = agent.add_project("vault", str(folder_given))
        assert action == "asked"
        assert added.root == folder
    names = {project.name for project in agent.projects}
    assert "vault" not in names
    (item,) = owner.review()
    assert (item.kind, item.refs) == ("project", (str(folder),))
    assert "Agent x" in item.text
    assert agent.review() == []
    owner.decide(item.key, "y")
    root = owner.project("vault").root
    assert root == folder
    assert owner.review() == []


def test_what_the_owner_refused_is_not_asked_again(agent, tmp_path):
    owner = agent.as_caller(None)
    agent.add_project("vault", str(tmp_path / "user" / "notes"))
    owner.decide(owner.review()[0].key, "n")

    assert agent.add_project("vault", str(tmp_path / "user" / "notes"))[1] == "asked"
    assert owner.review() == []
    names = {project.name for project in owner.projects}
    assert "vault" not in names


@pytest.mark.promise("trust-projects")
@pytest.mark.parametrize(
    "folder",
    [
        "/etc",
        "/usr/share/doc",
        "/",
        "~",
        "~/.claude",
        "~/.config/Code",
        "~/Library/Application Support/Claude",
        "~/notes/.obsidian",
        "HOME",
        "HOME/notes/x",
        "HOME/.memoranda",
        "HOME/projects",
        "HOME/projects/../notes",
        "ALLOWED/etc",
        "ALLOWED/own",
    ],
)
def test_no_agent_is_given_what_is_not_notes(agent, tmp_path, folder):
    (tmp_path / "allowed" / "etc").symlink_to("/etc")
    (tmp_path / "allowed" / "own").symlink_to(tmp_path / "home" / ".memoranda")
    folder_given = folder.replace("HOME", str(tmp_path / "home")).replace(
        "ALLOWED", str(tmp_path / "allowed")
    )
    with pytest.raises(errors.ProjectRefused):
        agent.add_project("new", folder_given)

    questions = agent.as_caller(None).review()
    assert questions == []


@pytest.mark.promise("trust-projects")
@pytest.mark.parametrize(
    "name",
    [
        "a\nb",
        "a\u202egnp.b",
        "red\x1b[31m",
        "a\u200bb",
        "gh" + "p_9vXz7LmB4nR8sYwE1uC6pJ2dF5gA0iKoMqZt",
        "https://user:hunter2" + "secret9@example.com/x",
    ],
)
def test_the_owner_is_asked_about_no_folder_that_would_look_like_another(agent, tmp_path, name):
    with pytest.raises(errors.ProjectRefused) as refused:
        agent.add_project("new", f"{tmp_path}/user/{name}")
    assert "\n" not in str(refused.value)
    assert agent.as_caller(None).review() == []


@pytest.mark.promise("trust-projects")
@pytest.mark.parametrize("name", ["Meine Notizen", "笔记", "café", "नोट्स"])
def test_the_owner_is_asked_about_a_folder_of_any_language(agent, tmp_path, name):
    folder = tmp_path / "user" / name
    assert agent.add_project("new", str(folder))[1] == "asked"


def test_the_requests_of_agents_are_bounded(agent, tmp_path):
    for number in range(100):
        agent.add_project(f"p{number}", str(tmp_path / "user" / f"p{number}"))
    with pytest.raises(errors.ProjectRefused, match="wait for the owner"):
        agent.add_project("more", str(tmp_path / "user" / "more"))

    questions = agent.as_caller(None).review(limit=0)
    assert len(questions) == 100


def test_adding_a_project_keeps_the_configurations_other_lines(tmp_path, vault):
    config = tmp_path / "home" / "config.yaml"
    config.parent.mkdir()
    text = "# mine\nmemory_tool:\n  instructions:   # what I want\n    - 'Be brief.'\n\nhistory:\n  days: 30\n"
    config.write_text(text)
    with open_session(tmp_path / "home") as memory:
        memory.add_project("vault", str(vault), default=True)
        assert memory.default_project == "vault"
        assert all(line in config.read_text().splitlines() for line in text.splitlines())
        memory.remove_project("vault")
        assert memory.default_project == "notes"
    for line in text.splitlines():
        assert line in config.read_text().splitlines()
