"""The note tools under `--as basic-memory`: arguments, routing, options, JSON keys (contract 000b, 10; issue 14)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from commonplace.cli.presets import preset
from commonplace.config import load
from commonplace.engine import open_memory
from commonplace.faces import registry
from contract.note_tools import texts

MAIN, WORK = "main", "work"


class Program:
    """A server of the preset over a configuration, called as its clients call it."""

    def __init__(self, folder: Path, environ: dict[str, str] | None = None, **config: Any):
        self.folder = folder
        projects = {MAIN: {"path": str(folder / MAIN)}, WORK: str(folder / WORK)}
        for name in projects:
            (folder / name).mkdir(parents=True, exist_ok=True)
        settings = {"projects": projects, "default_project": MAIN, **config}
        (folder / "bm").mkdir(exist_ok=True)
        (folder / "bm/config.json").write_text(json.dumps(settings))
        self.chosen = preset("basic-memory", {"BASIC_MEMORY_CONFIG_DIR": str(folder / "bm"), **(environ or {})})
        from dataclasses import replace

        own = replace(load(folder / "home", None), default_project=self.chosen.default_project or "notes")
        self.memory = open_memory(projects=self.chosen.projects, config=own, watch=False)
        self.registry = registry(self.chosen.tools, own, vault=self.chosen.vault)

    def call(self, tool: str, **arguments: Any) -> Any:
        return self.registry.call(self.memory, tool, arguments)

    def text(self, tool: str, **arguments: Any) -> str:
        reply = self.call(tool, **arguments)
        assert not reply.is_error, reply.text
        assert reply.data is not None
        return reply.text

    def data(self, tool: str, **arguments: Any) -> Any:
        return json.loads(self.text(tool, output_format="json", **arguments))

    def fails(self, tool: str, **arguments: Any) -> str:
        reply = self.call(tool, **arguments)
        assert reply.is_error, reply.text
        return reply.text


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    made = Program(tmp_path)
    yield made
    made.memory.close()


def test_the_default_stays_the_vaults_after_every_project_call(program: Program, tmp_path: Path) -> None:
    program.text("create_memory_project", project_name="more", project_path=str(tmp_path / "more"))
    program.text("delete_project", project_name="more")
    program.text("write_note", title="Later", content="x", directory="")
    assert (tmp_path / "main/Later.md").exists()


@pytest.mark.parametrize("name", ["notes", "graph", "kv", "banks", "memories", "categories"])
def test_a_vault_with_the_name_of_a_built_in_project_is_the_one_that_is_used(tmp_path: Path, name: str) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    program = Program(tmp_path, projects={name: str(vault)}, default_project=name)
    program.text("write_note", title="Mine", content="x", directory="", project=name)
    assert (vault / "Mine.md").exists()
    assert f"project: {name}\n" in program.text("write_note", title="Two", content="x", directory="")
    listed = program.data("list_memory_projects")
    assert [each["name"] for each in listed["projects"]] == [listed["default_project"]] == [name]
    program.memory.close()


def test_a_cloud_project_is_never_written_to_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "cwd"
    here.mkdir()
    monkeypatch.chdir(here)
    main = {"path": str(tmp_path / MAIN)}
    program = Program(
        tmp_path, projects={"team": {"path": "team", "mode": "cloud"}, MAIN: main}, default_project="team"
    )
    assert "cloud" in program.fails("write_note", title="A", content="x", directory="", project="team")
    assert "Cloud workspaces" in program.fails("write_note", title="A", content="x", directory="", workspace="w")
    program.text("write_note", title="A", content="x", directory="")
    assert (list(here.iterdir()), (tmp_path / "main/A.md").exists()) == ([], True)
    program.memory.close()


def test_one_project_of_the_environment_is_the_one_of_every_call(tmp_path: Path) -> None:
    program = Program(tmp_path, {"BASIC_MEMORY_MCP_PROJECT": WORK})
    assert f"project: {WORK}" in program.text("write_note", title="A", content="x", directory="", project="nowhere")
    assert "constrained to a single project" in program.text("list_memory_projects")
    assert "disabled" in program.text("create_memory_project", project_name="n", project_path="/n")
    assert (tmp_path / "work/A.md").exists()
    program.memory.close()


def test_its_configuration_is_found_where_xdg_says_and_a_vault_without_one_is_used(tmp_path: Path) -> None:
    (tmp_path / "xdg/basic-memory").mkdir(parents=True)
    (tmp_path / "xdg/basic-memory/config.json").write_text(json.dumps({"projects": {"x": str(tmp_path)}}))
    assert preset("basic-memory", {"XDG_CONFIG_HOME": str(tmp_path / "xdg")}).projects == {"x": str(tmp_path)}
    vault = tmp_path / "vault"
    vault.mkdir()
    alone = {"BASIC_MEMORY_CONFIG_DIR": str(tmp_path / "none"), "BASIC_MEMORY_HOME": str(vault)}
    found = preset("basic-memory", alone)
    assert (found.projects, found.default_project) == ({"main": str(vault)}, "main")


def test_every_alias_of_its_arguments_means_the_same(program: Program) -> None:
    program.text("write_note", title="A", content="# One\n\ntext\n\n## Two\n\nold words\n", folder="d")
    program.text("edit_note", identifier="A", operation="find_replace", find="old words", replacement="new words")
    program.text("edit_note", identifier="A", operation="replace_section", heading="## Two", new_content="third\n")
    assert program.data("search_notes", q="third", limit=1, since="7d")["results"][0]["title"] == "A"
    assert program.data("build_context", uri="memory://main/d/a", lookback="7d")["results"]
    assert "d/A.md" in program.text("list_directory", path="/d", glob="*.md")
    program.text("move_note", identifier="A", to="e/A.md")
    assert program.text("delete_note", identifier="e", is_dir=True).startswith("# Directory Deleted")
    listed = {tool.name: tool.schema["properties"] for tool in program.registry.tools.values()}
    assert not {"heading", "q", "uri", "to", "glob"} & {name for each in listed.values() for name in each}


def test_json_has_its_keys(program: Program) -> None:
    made = program.data("write_note", title="A", content="- [fact] round\n- see [[B]]\n", directory="d", tags="x, y")
    assert set(made) == {"title", "permalink", "file_path", "checksum", "action", "similar_notes"}
    read = program.data("read_note", identifier="A")
    assert set(read) == {"title", "permalink", "file_path", "content", "frontmatter"}
    assert read["content"].startswith("- [fact] round")
    edited = program.data("edit_note", identifier="A", operation="append", content="more\n", metadata={"state": "on"})
    assert set(edited) == {"title", "permalink", "file_path", "checksum", "operation", "fileCreated"}
    assert program.data("read_note", identifier="A", include_frontmatter=True)["frontmatter"]["state"] == "on"
    (row,) = program.data("search_notes", query="round", entity_types=["observation"])["results"]
    assert (row["type"], row["category"], row["content"]) == ("observation", "fact", "round")
    (context,) = program.data("build_context", url="main/d/a")["results"]
    assert "round" in context["primary_result"]["content"]
    missing = program.data("read_note", identifier="nothing like it")
    assert (missing["error"], missing["title"]) == ("NOTE_NOT_FOUND", None)
    assert program.data("delete_note", identifier="zz")["deleted"] is False
    moved = program.data("move_note", identifier="A", destination_folder="f")
    assert (moved["moved"], moved["file_path"]) == (True, "f/A.md")


def test_a_project_is_known_by_its_id_and_by_the_beginning_of_an_address(program: Program) -> None:
    rows = {each["name"]: each["external_id"] for each in program.data("list_memory_projects")["projects"]}
    program.text("write_note", title="W", content="of work", directory="", project_id=rows[WORK])
    assert "of work" in program.text("read_note", identifier="memory://work/w")
    assert "No project has the id" in program.fails("read_note", identifier="W", project_id="00000000")
    assert program.data("search_notes", query="work")["total"] == 0
    assert program.data("search_notes", query="work", search_all_projects=True)["total"] == 1
    assert "Unknown project" in program.fails("search_notes", query="work", projects=["nowhere"])


def test_its_options_on_names_and_permalinks_are_followed(tmp_path: Path) -> None:
    options = {"kebab_filenames": True, "permalinks_include_project": False, "update_permalinks_on_move": True}
    program = Program(tmp_path, **options, write_note_overwrite_default=True)
    made = program.data("write_note", title="My Note: With/Signs?", content="x", directory="d")
    assert (made["file_path"], made["permalink"]) == ("d/my-note-with-signs.md", "d/my-note-with-signs")
    assert program.data("write_note", title="My Note: With/Signs?", content="y", directory="d")["action"] == "updated"
    moved = program.data("move_note", identifier="My Note: With/Signs?", destination_path="e/other.md")
    assert moved["permalink"].endswith("e/other")
    program.memory.close()


def test_a_move_to_another_project_makes_no_folder(program: Program, tmp_path: Path) -> None:
    program.text("write_note", title="A", content="x", directory="")
    assert "Cross-Project" in program.text("move_note", identifier="A", destination_path="work/A.md")
    assert sorted(texts(tmp_path / MAIN)) == ["A.md"]


def test_its_further_tools_are_views_of_the_same_notes(program: Program, tmp_path: Path) -> None:
    program.text(
        "write_note", title="Ann", content="- [role] cook\n- [city] Rome\n", directory="people", note_type="person"
    )
    program.text("write_note", title="Bob", content="- [role] baker\n", directory="people", note_type="person")
    schema = {"entity": "person", "schema": {"role": "string", "city": "string", "email?": "string"}}
    program.text("write_note", title="Person", content="s", directory="", note_type="schema", metadata=schema)
    (tmp_path / "main/data.json").write_text("{}")
    (tmp_path / "main/picture.png").write_bytes(b"\x89PNG\r\n")
    assert "cook" in program.text("view_note", identifier="Ann")
    assert program.data("read_content", path="data.json")["content_type"] == "application/json"
    assert program.data("read_content", path="picture.png")["type"] == "image"
    found = json.loads(json.loads(program.text("search", query="cook"))[0]["text"])
    fetched = json.loads(json.loads(program.text("fetch", id=found["results"][0]["id"]))[0]["text"])
    assert (found["total_count"], fetched["title"]) == (1, "Ann")
    report = program.data("schema_validate", note_type="person")
    assert (report["total_notes"], report["warning_count"], report["valid_count"]) == (2, 1, 2)
    assert program.data("schema_infer", note_type="person")["suggested_required"] == ["role"]
    assert [each["name"] for each in program.data("schema_diff", note_type="person")["dropped_fields"]] == ["email"]
    assert program.data("cat", identifier="Bob", start_line=1, end_line=1)["content"] == "---"
    assert [each["file_path"] for each in program.data("grep", pattern="baker")["matches"]] == ["people/Bob.md"]
    assert program.data("ls", path="/")["total"] == 2
    assert [each["title"] for each in program.data("find", name="B*.md")["nodes"]] == ["Bob"]
    assert program.data("tail", lines=1)[0]["title"] == "Person"


def test_refusals_are_errors_that_name_the_way_on(program: Program) -> None:
    program.text("write_note", title="A", content="one one", directory="")
    assert "edit_note" in program.fails("write_note", title="A", content="x", directory="")
    wrong = program.fails("edit_note", identifier="A", operation="find_replace", find_text="one", content="two")
    assert "expected_replacements=2" in wrong
    assert "Text Not Found" in program.fails(
        "edit_note", identifier="A", operation="find_replace", find_text="none", content="x"
    )
    assert "Invalid operation" in program.fails("edit_note", identifier="A", operation="rub", content="x")
    assert "double slashes" in program.fails("build_context", url="memory://a//b")
    assert program.data("move_note", identifier="A", destination_path="../A.md")["error"] == "SECURITY_VALIDATION_ERROR"
    assert "never deletes" in program.fails("delete_project", project_name=WORK, delete_notes=True)
