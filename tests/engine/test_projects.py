"""Projects of several processes on one home."""

from __future__ import annotations

import sys
import threading

import pytest

from commonplace import errors, open_memory


@pytest.fixture
def vault(tmp_path):
    folder = tmp_path / "vault"
    folder.mkdir()
    (folder / "a.md").write_text("- [fact] heronword\n")
    return folder


def test_a_project_for_one_process_is_not_forgotten_because_of_others(tmp_path, vault):
    with open_memory(tmp_path / "home", projects={"mine": vault}) as mine, open_memory(tmp_path / "home") as other:
        assert mine.search("heronword").total == 1
        assert other.search("heronword").total == 0
        assert mine.search("heronword").total == 1
        assert mine.stats().projects == {"mine": 1}
        with pytest.raises(errors.NotFound):
            other.find("a")


def test_a_project_added_or_removed_by_another_process_is_taken_up(tmp_path, vault):
    with open_memory(tmp_path / "home") as one, open_memory(tmp_path / "home") as two:
        assert one.search("heronword").total == 0
        two.add_project("Vault", str(vault))
        assert one.search("heronword").total == 1
        assert [project.name for project in one.projects][-1] == "Vault"
        two.remove_project("vault")
        assert one.search("heronword").total == 0
        assert (vault / "a.md").read_text() == "- [fact] heronword\n"


def test_a_configuration_broken_by_hand_leaves_the_projects_as_they_were(tmp_path, vault):
    with open_memory(tmp_path / "home") as memory:
        memory.add_project("vault", str(vault))
        (tmp_path / "home" / "config.yaml").write_text("projects: [broken\n")
        assert memory.search("heronword").total == 1


def test_adding_a_project_keeps_the_configurations_other_lines(tmp_path, vault):
    config = tmp_path / "home" / "config.yaml"
    config.parent.mkdir()
    text = "# mine\nmemory_tool:\n  instructions:   # what I want\n    - 'Be brief.'\n\nhistory:\n  days: 30\n"
    config.write_text(text)
    with open_memory(tmp_path / "home") as memory:
        memory.add_project("vault", str(vault), default=True)
        assert memory.default_project == "vault"
        assert all(line in config.read_text().splitlines() for line in text.splitlines())
        memory.remove_project("vault")
        assert memory.default_project == "notes"
    for line in text.splitlines():
        assert line in config.read_text().splitlines()


def test_a_folder_in_around_or_like_another_project_or_the_home_is_refused(tmp_path, vault):
    with open_memory(tmp_path / "home") as memory:
        memory.add_project("vault", str(vault))
        for folder in (vault / "inner", tmp_path, vault, tmp_path / "home", tmp_path / "home" / "x"):
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
    seen, done = set(), threading.Event()
    interval = sys.getswitchinterval()
    with open_memory(tmp_path / "home", watch=False) as memory:
        built_in = {project.name for project in memory.projects}

        def look() -> None:
            while not done.is_set():
                try:
                    seen.add(frozenset(project.name for project in memory.projects) & built_in)
                except RuntimeError as error:
                    seen.add(error)

        looking = threading.Thread(target=look)
        sys.setswitchinterval(1e-6)
        try:
            looking.start()
            for _ in range(10):
                memory.add_project("other", str(vault))
                memory.remove_project("other")
        finally:
            done.set()
            looking.join()
            sys.setswitchinterval(interval)
    assert seen == {frozenset(built_in)}
