"""Graph files as projects, and where `memory graph` and `memory call` find the graph (contract 002,
8 and 11).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memoranda.cli import presets

pytestmark = pytest.mark.promise("002-14.13")

ADA = '{"type":"entity","name":"Ada","entityType":"person","observations":["likes tea"]}\n'
KNOWS = '{"type":"relation","from":"Ada","to":"Bob","relationType":"knows"}\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    place = tmp_path / "place" / "people.jsonl"
    place.parent.mkdir()
    place.write_text(ADA + KNOWS)
    return place


@pytest.fixture
def bare(terminal: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The command in an empty working folder, without variables that name a graph file."""
    monkeypatch.chdir(tmp_path)
    for name in ("MEMORY_FILE_PATH", "THOUGHTBOX_MEMORY_PATH"):
        monkeypatch.delenv(name, raising=False)
    return terminal


def configure(terminal: Any, file: Path) -> None:
    terminal.ok("list")
    terminal.configure(f"graph:\n  file: {file}\n")


def graph(terminal: Any, tool: str, **arguments: Any) -> Any:
    return json.loads(terminal.ok("call", f"memory_{tool}", json.dumps(arguments)))


def test_a_graph_file_is_added_listed_found_and_taken_off_again(bare: Any, file: Path) -> None:
    assert (
        bare.ok("project", "add", "people", str(file))
        == f"Added project people ({file}, 1 notes)\n"
    )
    assert bare.ok("project", "list").splitlines()[-1] == f"{'people':<12} {1:>6} {file}"
    reply = json.loads(bare.ok("call", "search_notes", '{"query": "tea", "output_format": "json"}'))
    permalinks = [hit["permalink"] for hit in reply["results"]]
    assert permalinks == ["people/ada"]
    assert "- likes tea" in bare.ok("call", "read_note", '{"identifier": "people/ada"}')
    refused = bare("call", "write_note", '{"title": "x", "content": "y", "project": "people"}')
    assert refused.status == 1
    assert "graph tools" in refused.err
    assert bare.ok("project", "remove", "people") == "Removed project people\n"
    text = file.read_text()
    assert text == ADA + KNOWS


def test_the_graph_tools_read_and_write_a_graph_file_by_its_project(bare: Any, file: Path) -> None:
    bare.ok("project", "add", "people", str(file))
    assert [
        entity["name"] for entity in graph(bare, "read_graph", project="people")["entities"]
    ] == ["Ada"]
    graph(
        bare,
        "create_entities",
        project="people",
        entities=[{"name": "Bob", "entityType": "", "observations": []}],
    )
    graph(bare, "create_entities", entities=[{"name": "Eve", "entityType": "", "observations": []}])
    assert '"name":"Bob"' in file.read_text()
    assert (bare.home / "graph" / "Eve.md").exists()
    entities = graph(bare, "read_graph", project="*")["entities"]
    assert {(entity["name"], entity["project"]) for entity in entities} == {
        ("Ada", "people"),
        ("Bob", "people"),
        ("Eve", "graph"),
    }


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("a.jsonl", "[1]\n", "a.jsonl is a JSON array"),
        ("a.md", "# A note\n", "not a folder: "),
        ("a.txt", "", "not a folder: "),
        ("a.json", '{"a": 1}\n', "not a folder: "),
    ],
)
def test_a_file_that_holds_no_graph_is_no_project(
    bare: Any, tmp_path: Path, name: str, text: str, error: str
) -> None:
    place = tmp_path / name
    place.write_text(text)
    ran = bare("project", "add", "work", str(place))
    assert ran.status == 1
    assert ran.error.startswith(error)
    assert "work" not in bare.ok("project", "list")


def test_a_graph_file_needs_no_ending_and_is_no_default(
    bare: Any, file: Path, tmp_path: Path
) -> None:
    plain = file.rename(tmp_path / "graphs")
    status = bare("project", "add", "people", str(plain), "--default").status
    assert status == 1
    bare.ok("project", "add", "people", str(plain))
    error = bare("project", "add", "again", str(plain)).error
    assert error == f"{plain} overlaps project people"
    assert bare("project", "default", "people").status == 1
    assert "people" in bare.ok("project", "list")


def test_a_folder_around_a_graph_file_may_be_a_project_too(bare: Any, file: Path) -> None:
    bare.ok("project", "add", "people", str(file))
    (file.parent / "note.md").write_text("about coffee\n")
    added = bare.ok("project", "add", "vault", str(file.parent))
    assert added.splitlines()[0] == f"Added project vault ({file.parent}, 1 notes)"


def test_doctor_names_what_a_project_file_holds_that_is_ignored(bare: Any, file: Path) -> None:
    bare.ok("project", "add", "people", str(file))
    with file.open("a") as lines:
        lines.write("torn\n")
    assert "people.jsonl line 3: not JSON, kept and ignored" in bare("doctor").out
    file.unlink()
    assert "the project's file is missing" in bare("doctor").out


@pytest.mark.parametrize(
    "how", ["config", "MEMORY_FILE_PATH", "THOUGHTBOX_MEMORY_PATH", ".thoughtbox/memory.jsonl"]
)
def test_call_export_and_import_use_the_graph_file_the_server_would(
    bare: Any, file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, how: str
) -> None:
    if how == "config":
        configure(bare, file)
    elif how.startswith("."):
        (tmp_path / how).parent.mkdir()
        file = file.rename(tmp_path / how)
    else:
        monkeypatch.setenv(how, str(file))
    assert [entity["name"] for entity in graph(bare, "read_graph")["entities"]] == ["Ada"]
    assert graph(bare, "search_nodes", query="tea likes", ranked=True)["totalEntities"] == 1
    assert bare.ok("graph", "export") == ADA + KNOWS
    more = tmp_path / "more.jsonl"
    more.write_text(
        '{"type":"entity","name":"Ada","entityType":"other","observations":["likes tea","sings"]}\n'
        '{"type":"entity","name":"Bob","entityType":"p","observations":[],"createdAt":"2024"}\n'
        + KNOWS
    )
    for verb in ("Imported", "Nothing new in"):
        imported = bare("graph", "import", str(more))
        assert imported.out == f"{verb} 2 entities, 1 relations (0 lines skipped)\n"
    assert file.read_text() == (
        ADA.replace('tea"', 'tea","sings"')
        + KNOWS
        + '{"type":"entity","name":"Bob","entityType":"p","observations":[],"createdAt":"2024"}\n'
    )
    assert len(bare.ok("log").splitlines()) == 1
    assert bare.ok("undo") == f"Undid #1: import {file.stem}/{file.name}\n"
    assert file.read_text() == ADA + KNOWS
    assert not list((bare.home / "graph").glob("*.md"))


def test_the_file_in_use_is_taken_into_the_notes_not_into_itself(bare: Any, file: Path) -> None:
    file.write_text(json.dumps([json.loads(ADA)]))
    configure(bare, file)
    assert bare("graph", "export").status == 1
    assert (
        bare.ok("graph", "import", str(file))
        == "Imported 1 entities, 0 relations (0 lines skipped)\n"
    )
    assert (bare.home / "graph" / "Ada.md").exists()


def test_a_graph_file_in_use_gets_a_name_no_other_project_has(tmp_path: Path) -> None:
    def named(stem: str, **taken_names: str) -> list[str]:
        return list(presets.graph_project(tmp_path / f"{stem}.jsonl", taken_names))

    assert named("memory") == ["memory"]
    assert named("notes") == ["notes file"]
    assert named("Work", work="/elsewhere") == ["Work file"]
    assert named("notes", **{"notes file": "/elsewhere"}) == ["notes file 2"]
    assert named("a*b") == ["a-b"]
    assert named("memory", mine=str(tmp_path / "memory.jsonl")) == []
    assert presets.graph_project(None, {}) == {}


def test_the_reply_to_a_large_create_is_bounded(bare: Any) -> None:
    many = [{"name": f"e{n}", "entityType": "t", "observations": ["x" * 200]} for n in range(400)]
    reply = graph(bare, "create_entities", entities=many)

    assert len(json.dumps(reply)) <= 80_000
    assert graph(bare, "search_nodes", query="e399", limit=1)["entities"][0]["observations"] == [
        "x" * 200
    ]


def test_second_import_of_a_graph_says_that_nothing_is_new(bare: Any, tmp_path: Path) -> None:
    source = tmp_path / "source.jsonl"
    source.write_text(ADA)
    counts = "1 entities, 0 relations (0 lines skipped)\n"
    assert bare.ok("import", "--from", "graph-jsonl", str(source)) == f"Imported {counts}"
    assert bare.ok("import", "--from", "graph-jsonl", str(source)) == f"Nothing new in {counts}"


@pytest.mark.parametrize("argv", [("import", "--from", "graph-jsonl"), ("graph", "import")])
def test_import_of_a_graph_counts_what_was_here(
    bare: Any, tmp_path: Path, argv: tuple[str, ...]
) -> None:
    source = tmp_path / "source.jsonl"
    source.write_text(ADA)
    bare.ok("graph", "import", str(source))
    source.write_text(ADA + ADA.replace("Ada", "Bob"))
    ran = bare(*argv, str(source))
    assert ran.out == "Imported 2 entities, 0 relations (0 lines skipped)\n"
    assert ran.err == "1 was here already\n"


def test_toolset_graph_beside_another_preset_finds_the_file_of_thoughtbox(
    tmp_path: Path, bare: Any
) -> None:
    file = tmp_path / ".thoughtbox" / "memory.jsonl"
    file.parent.mkdir()
    file.write_text(ADA)
    assert presets.graph_file(None, like="agent-memory") == file
