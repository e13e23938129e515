"""Which project a name means: the exact one, else without case, else without signs and blanks."""

from __future__ import annotations

from pathlib import Path

import pytest

from memoranda.engine import MemorySession, open_session
from memoranda.errors import MemorandaError, ProjectNotFound
from memoranda.note.names import named_one

NAMES = ["ExampleProject", "My Notes", "my-notes", "Work", "Résumé", "v1.2", "v12", "C-1"]


@pytest.mark.parametrize(
    ("name_given", "expected_name"),
    [
        ("ExampleProject", "ExampleProject"),
        ("exampleproject", "ExampleProject"),
        ("example_project", "ExampleProject"),
        ("example project", "ExampleProject"),
        ("Example-Project.", "ExampleProject"),
        ("My Notes", "My Notes"),
        ("my notes", "My Notes"),
        ("my-notes", "my-notes"),
        ("MY-NOTES", "my-notes"),
        ("mynotes", None),
        ("WORK", "Work"),
        ("work ", "Work"),
        ("resume", "Résumé"),
        ("v1.2", "v1.2"),
        ("v12", "v12"),
        ("V-1-2", None),
        ("c1", "C-1"),
        ("exampl", None),
        ("exampleprojects", None),
        ("", None),
    ],
)
def test_one_project_is_meant_or_none(name_given: str, expected_name: str | None) -> None:
    assert named_one(name_given, NAMES) == expected_name


def test_a_name_that_means_several_names_none_of_them(tmp_path: Path) -> None:
    projects = {"My Notes": tmp_path / "a", "my-notes": tmp_path / "b"}
    for folder in projects.values():
        folder.mkdir()
    with open_session(tmp_path / "home", projects=projects, watch=False) as memory:
        assert memory.project("my notes").name == "My Notes"
        with pytest.raises(ProjectNotFound, match=r"My Notes.*my-notes"):
            memory.project("mynotes")


@pytest.mark.parametrize(
    ("name", "text", "notes"),
    [
        ("a.json", '{"entities":[{"name":"Tea","entityType":"x","observations":[]}]}', 1),
        ("a.json", '{\n  "entities": [],\n  "relations": []\n}\n', 0),
        ("a.json", "{}", 0),
        ("a.json", "[]\n", 0),
        ("a.json", "", 0),
        ("a.JSON", "{}\n", 0),
        ("a.json", '{"type":"entity","name":"Tea","entityType":"x","observations":[]}', 1),
        ("a.jsonl", "{}", 0),
    ],
)
def test_a_graph_file_of_any_known_form_becomes_a_project(
    memory: MemorySession, tmp_path: Path, name: str, text: str, notes: int
) -> None:
    file = tmp_path / name
    file.write_text(text)
    memory.add_project("graphs", str(file))

    _, total = memory.list("project:graphs")
    assert total == notes
    assert file.read_text() == text


@pytest.mark.parametrize("text", ['{"a": 1}', "[1, 2]", '[{"a": 1}]', "no JSON", '"text"', "null"])
def test_another_json_file_becomes_no_project(
    memory: MemorySession, tmp_path: Path, text: str
) -> None:
    file = tmp_path / "a.json"
    file.write_text(text)
    with pytest.raises(MemorandaError):
        memory.add_project("graphs", str(file))
    assert file.read_text() == text
