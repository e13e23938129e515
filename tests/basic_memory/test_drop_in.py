"""The note tools under `--as basic-memory`: arguments, routing, options, JSON keys (contract 000b,
10; amendment 8).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from contract.note_tools import texts
from memoranda import Draft
from memoranda.basic_memory import FORMER, reading
from memoranda.basic_memory.vault import _settings
from memoranda.cli.presets import preset
from memoranda.config import load
from memoranda.engine import open_session
from memoranda.errors import ConfigFileError, NotFound
from memoranda.faces import registry
from memoranda.faces.agent.session import call_tool
from memoranda.index.search import queries
from memoranda.serve.mcp import resource_result

MAIN = "main"
WORK = "work"


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
        self.chosen = preset(
            "basic-memory", {"BASIC_MEMORY_CONFIG_DIR": str(folder / "bm"), **(environ or {})}
        )
        from dataclasses import replace

        own_config = replace(
            load(folder / "home", None), default_project=self.chosen.default_project or "notes"
        )
        self.memory = open_session(projects=self.chosen.projects, config=own_config, watch=False)
        self.registry = registry(self.chosen.tools, own_config, manners=self.chosen.manners)

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
    program_in_vault = Program(tmp_path)
    yield program_in_vault
    program_in_vault.memory.close()


def test_the_default_stays_the_vaults_after_every_project_call(
    program: Program, tmp_path: Path
) -> None:
    program.text("create_memory_project", project_name="more", project_path=str(tmp_path / "more"))
    program.text("delete_project", project_name="more")
    program.text("write_note", title="Later", content="x", directory="")
    assert (tmp_path / "main/Later.md").exists()


@pytest.mark.parametrize("name", ["notes", "graph", "kv", "banks", "memories", "categories"])
def test_a_vault_with_the_name_of_a_built_in_project_is_the_one_that_is_used(
    tmp_path: Path, name: str
) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    program = Program(tmp_path, projects={name: str(vault)}, default_project=name)
    program.text("write_note", title="Mine", content="x", directory="", project=name)
    assert (vault / "Mine.md").exists()
    assert f"project: {name}\n" in program.text(
        "write_note", title="Two", content="x", directory=""
    )
    listed = program.data("list_memory_projects")
    assert (
        [project["name"] for project in listed["projects"]] == [listed["default_project"]] == [name]
    )
    program.memory.close()


@pytest.mark.parametrize("name", ["memories", "kv", "Notes"])
def test_such_a_vault_has_its_own_name_in_files_and_replies_and_texts_of_notes_stay(
    tmp_path: Path, name: str
) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    program = Program(tmp_path, projects={name: str(vault)}, default_project=name)
    sentence = f"3 notes, memories basic-memory, {name}@basic-memory"
    program.text("write_note", title="Mine", content=f"harbour: {sentence}", directory="d")
    address = f"{name.lower()}/d/mine"
    assert f"\npermalink: {address}\n" in (vault / "d/Mine.md").read_text()
    assert sentence in program.text("read_note", identifier=address)
    texts = [
        program.text("search_notes", query="harbour"),
        program.text("build_context", url="d/mine", output_format="text"),
    ]
    for text in texts:
        assert sentence in text
        assert f": {address})" in text
    other_texts = [
        program.text("recent_activity"),
        program.text("list_directory", dir_name="/"),
        program.fails("delete_note", identifier="gone", is_directory=True),
        program.text("read_note", identifier="gone"),
        json.dumps(program.data("build_context", url="nowhere")),
    ]
    assert [text for text in other_texts if "basic-memory" in text] == []
    program.memory.close()


def test_a_cloud_project_is_never_written_to_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    working_folder = tmp_path / "cwd"
    working_folder.mkdir()
    monkeypatch.chdir(working_folder)
    main = {"path": str(tmp_path / MAIN)}
    program = Program(
        tmp_path,
        projects={"team": {"path": "team", "mode": "cloud"}, MAIN: main},
        default_project="team",
    )
    assert "cloud" in program.fails(
        "write_note", title="A", content="x", directory="", project="team"
    )
    assert "Cloud workspaces" in program.fails(
        "write_note", title="A", content="x", directory="", workspace="w"
    )
    program.text("write_note", title="A", content="x", directory="")
    assert (list(working_folder.iterdir()), (tmp_path / "main/A.md").exists()) == ([], True)
    program.memory.close()


def test_one_project_of_the_environment_is_the_one_of_every_call(tmp_path: Path) -> None:
    program = Program(tmp_path, {"BASIC_MEMORY_MCP_PROJECT": WORK})
    assert f"project: {WORK}" in program.text(
        "write_note", title="A", content="x", directory="", project="nowhere"
    )
    assert f"Every call is about project {WORK}" in program.text("list_memory_projects")
    arguments = {"project_name": "n", "project_path": "/n"}
    assert program.data("create_memory_project", **arguments)["error"] == "PROJECT_CONSTRAINED"
    assert (tmp_path / "work/A.md").exists()
    program.memory.close()


def test_its_configuration_is_found_where_xdg_says_and_a_vault_without_one_is_used(
    tmp_path: Path,
) -> None:
    (tmp_path / "xdg/basic-memory").mkdir(parents=True)
    (tmp_path / "xdg/basic-memory/config.json").write_text(
        json.dumps({"projects": {"x": str(tmp_path)}})
    )
    assert preset("basic-memory", {"XDG_CONFIG_HOME": str(tmp_path / "xdg")}).projects == {
        "x": str(tmp_path)
    }
    vault = tmp_path / "vault"
    vault.mkdir()
    alone = {"BASIC_MEMORY_CONFIG_DIR": str(tmp_path / "none"), "BASIC_MEMORY_HOME": str(vault)}
    chosen = preset("basic-memory", alone)
    assert chosen.projects == {"main": str(vault)}
    assert chosen.default_project == "main"


def test_a_configuration_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    for text in ("{", "[" * 100_000, "[]"):
        file.write_text(text, "utf-8")
        with pytest.raises(ConfigFileError, match=r"load config: .*config\.json: "):
            _settings({"BASIC_MEMORY_CONFIG_DIR": str(tmp_path)})


def test_every_alias_of_its_arguments_means_the_same(program: Program) -> None:
    program.text(
        "write_note", title="A", content="# One\n\ntext\n\n## Two\n\nold words\n", folder="d"
    )
    program.text(
        "edit_note",
        identifier="A",
        operation="find_replace",
        find="old words",
        replacement="new words",
    )
    program.text(
        "edit_note",
        identifier="A",
        operation="replace_section",
        heading="## Two",
        new_content="third\n",
    )
    assert (
        program.data("search_notes", q="third", limit=1, since="7d")["results"][0]["title"] == "A"
    )
    assert program.data("build_context", uri="memory://main/d/a", lookback="7d")["results"]
    assert "d/A.md" in program.text("list_directory", path="/d", glob="*.md")
    program.text("move_note", identifier="A", to="e/A.md")
    assert program.text("delete_note", identifier="e", is_dir=True).startswith("Deleted folder e")
    listed = {tool.name: tool.schema["properties"] for tool in program.registry.tools.values()}
    names = set(chain.from_iterable(listed.values()))
    assert names.isdisjoint({"heading", "q", "uri", "to", "glob"})


NOTE_KEYS = {"title", "permalink", "file_path", "checksum"}


@pytest.fixture
def written(program: Program) -> dict[str, Any]:
    """The data of a reply to a note that was written."""
    content = "- [fact] round\n- see [[B]]\n"
    return program.data("write_note", title="A", content=content, directory="d", tags="x, y")


def test_data_of_a_written_note_has_its_keys(written: dict[str, Any]) -> None:
    assert set(written) == NOTE_KEYS | {"action", "similar_notes"}


def test_data_of_a_note_that_is_read_has_its_keys_and_content(program: Program, written) -> None:
    read = program.data("read_note", identifier="A")
    assert set(read) == NOTE_KEYS | {"content", "frontmatter"}
    assert read["content"].startswith("- [fact] round")


def test_data_of_an_edited_note_has_its_keys_and_the_note_its_metadata(
    program: Program, written
) -> None:
    edit = {"operation": "append", "content": "more\n", "metadata": {"state": "on"}}
    edited = program.data("edit_note", identifier="A", **edit)
    assert set(edited) == NOTE_KEYS | {"operation", "fileCreated"}
    read = program.data("read_note", identifier="A", include_frontmatter=True)
    assert read["frontmatter"]["state"] == "on"


def test_observation_that_is_found_has_its_category(program: Program, written) -> None:
    search = {"query": "round", "entity_types": ["observation"]}
    document = program.data("search_notes", **search)
    (row,) = document["results"]
    assert row["type"] == "observation"
    assert row["category"] == "fact"
    assert row["content"] == "round"


def test_context_has_the_content_of_its_note(program: Program, written) -> None:
    document = program.data("build_context", url="main/d/a")
    (context,) = document["results"]
    content = context["primary_result"]["content"]
    assert "round" in content


def test_data_of_a_missing_note_has_the_code_of_the_error(program: Program, written) -> None:
    missing = program.data("read_note", identifier="nothing like it")
    assert missing["error"] == "NOTE_NOT_FOUND"
    assert missing["title"] is None


def test_missing_note_is_not_deleted(program: Program, written) -> None:
    deletion = program.data("delete_note", identifier="zz")
    assert deletion["deleted"] is False


def test_moved_note_says_where_it_is(program: Program, written) -> None:
    moved = program.data("move_note", identifier="A", destination_folder="f")
    assert moved["moved"] is True
    assert moved["file_path"] == "f/A.md"


def test_a_project_is_known_by_its_id_and_by_the_beginning_of_an_address(program: Program) -> None:
    rows = {
        project["name"]: project["external_id"]
        for project in program.data("list_memory_projects")["projects"]
    }
    program.text("write_note", title="W", content="of work", directory="", project_id=rows[WORK])
    assert "of work" in program.text("read_note", identifier="memory://work/w")
    assert "No project has the id" in program.fails(
        "read_note", identifier="W", project_id="00000000"
    )
    assert program.data("search_notes", query="work")["total"] == 0
    assert program.data("search_notes", query="work", search_all_projects=True)["total"] == 1
    assert "Unknown project" in program.fails("search_notes", query="work", projects=["nowhere"])


def test_an_address_in_a_project_there_is_not_is_refused_without_our_projects(
    program: Program,
) -> None:
    call = {"identifier": "memory://missing-project/x", "operation": "append", "content": "y"}
    text = program.fails("edit_note", **call)
    assert "No project `missing-project`" in text
    refused = json.loads(program.fails("edit_note", **call, output_format="json"))
    assert (refused["error"], refused["projectRoute"]) == (
        "UNRESOLVED_PROJECT_ROUTE",
        "missing-project",
    )
    more = program.fails("read_note", identifier="x", project="nowhere")
    assert not {"banks", "categories", "kv", "graph", "memories"} & set(
        re.findall(r"\w+", text + more)
    )


def test_metadata_sets_nothing_that_has_an_argument_of_its_own(
    program: Program, tmp_path: Path
) -> None:
    keys = {"permalink": "hacked/path", "title": "Other", "tags": ["unwanted"], "state": "on"}
    written = program.data(
        "write_note", title="A", content="x", directory="d", tags=["yes"], metadata=keys
    )
    text = (tmp_path / "main/d/A.md").read_text()

    assert written["permalink"] == "main/d/a"
    assert "unwanted" not in text
    assert "state" in text


def test_an_address_outside_is_refused_by_every_tool_that_reads(program: Program) -> None:
    for address in (
        "~/secrets.txt",
        "\\\\server\\share\\x",
        "memory://~/.env",
        "../x",
        "a/" * 1500 + "../../x",
    ):
        refused = program.data("read_note", identifier=address)
        assert (refused["error"], refused["content"]) == ("SECURITY_VALIDATION_ERROR", None)
        document = json.loads(program.text("read_content", path=address))
        assert "must stay inside project main" in document["error"]


@pytest.mark.parametrize(
    "bounds", [{"start_line": 0}, {"end_line": 0}, {"start_line": 5, "end_line": 3}]
)
def test_bounds_no_text_has_are_refused_also_for_a_note_there_is_not(
    program: Program, bounds: dict[str, int]
) -> None:
    assert "_line` must be " in program.fails("read_note", identifier="none", **bounds)


def test_its_options_on_names_and_permalinks_are_followed(tmp_path: Path) -> None:
    options = {
        "kebab_filenames": True,
        "permalinks_include_project": False,
        "update_permalinks_on_move": True,
    }
    program = Program(tmp_path, **options, write_note_overwrite_default=True)
    written = program.data("write_note", title="My Note: With/Signs?", content="x", directory="d")
    assert (written["file_path"], written["permalink"]) == (
        "d/my-note-with-signs.md",
        "d/my-note-with-signs",
    )
    assert (
        program.data("write_note", title="My Note: With/Signs?", content="y", directory="d")[
            "action"
        ]
        == "updated"
    )
    moved = program.data(
        "move_note", identifier="My Note: With/Signs?", destination_path="e/other.md"
    )
    assert moved["permalink"].endswith("e/other")
    program.memory.close()


def test_a_move_to_another_project_makes_no_folder(program: Program, tmp_path: Path) -> None:
    program.text("write_note", title="A", content="x", directory="")
    moved = program.data("move_note", identifier="A", destination_path="work/A.md")
    assert (moved["moved"], moved["error"]) == (False, "CROSS_PROJECT_MOVE_NOT_SUPPORTED")
    assert sorted(texts(tmp_path / MAIN)) == ["A.md"]


def test_its_further_tools_are_views_of_the_same_notes(program: Program, tmp_path: Path) -> None:
    program.text(
        "write_note",
        title="Ann",
        content="- [role] cook\n- [city] Rome\n",
        directory="people",
        note_type="person",
    )
    program.text(
        "write_note",
        title="Bob",
        content="- [role] baker\n",
        directory="people",
        note_type="person",
    )
    (tmp_path / "main/data.json").write_text("{}")
    (tmp_path / "main/picture.png").write_bytes(b"\x89PNG\r\n")
    assert "cook" in program.text("view_note", identifier="Ann")
    assert program.data("read_content", path="data.json")["content_type"] == "application/json"
    assert program.data("read_content", path="picture.png")["type"] == "image"


@pytest.mark.parametrize("tool", FORMER)
def test_former_tool_called_is_answered_with_the_one_that_does_its_work(
    program: Program, tool: str
) -> None:
    assert tool not in program.registry.tools
    reply = call_tool(program.registry, program.memory, tool, {})
    assert reply.is_error is True
    assert reply.text == f"{tool} is not served here. Use {FORMER[tool]}."
    named_tools = set(re.findall(r"[a-z]+_[a-z]+", FORMER[tool])) & program.registry.tools.keys()
    assert named_tools


def test_time_in_an_observation_given_as_filter_is_refused_with_what_to_do(
    program: Program,
) -> None:
    text = "- [decision] @effective[2026-06-10,2026-07-27) Redis\n"
    program.text("write_note", title="Cache", content=text, directory="")
    for name in ("valid_at", "valid_overlaps", "time_kind"):
        assert "as_of" in program.fails("search_notes", query="Redis", **{name: "2026-07-01"})

    total = program.data("search_notes", query="Redis")["total"]
    assert total == 1


def test_refusals_are_errors_that_name_the_way_on(program: Program) -> None:
    program.text("write_note", title="A", content="one one", directory="")
    assert "edit_note" in program.fails("write_note", title="A", content="x", directory="")
    wrong = program.fails(
        "edit_note", identifier="A", operation="find_replace", find_text="one", content="two"
    )
    assert "expected_replacements=2" in wrong
    assert "found 0" in program.fails(
        "edit_note", identifier="A", operation="find_replace", find_text="none", content="x"
    )
    assert "Invalid operation" in program.fails(
        "edit_note", identifier="A", operation="rub", content="x"
    )
    assert "double slashes" in program.fails("build_context", url="memory://a//b")
    assert (
        program.data("move_note", identifier="A", destination_path="../A.md")["error"]
        == "SECURITY_VALIDATION_ERROR"
    )
    assert "never deletes" in program.fails("delete_project", project_name=WORK, delete_notes=True)


GUARDED: list[tuple[str, dict[str, Any], str]] = [
    (
        "write_note",
        {"title": "B", "content": "x", "directory": "", "expected_checksum": "0"},
        "requires overwrite=True",
    ),
    (
        "edit_note",
        {"identifier": "C", "operation": "append", "content": "x", "expected_checksum": "0"},
        "Note not found",
    ),
    (
        "edit_note",
        {"identifier": "A", "operation": "append", "content": "x", "metadata": {"type": " "}},
        "type",
    ),
    (
        "edit_note",
        {"identifier": "A", "operation": "append", "content": "x", "metadata": {"k": None}},
        "null",
    ),
    (
        "read_note",
        {"identifier": "A", "include_content": False, "start_line": 2},
        "include_content",
    ),
    ("search_notes", {"query": "x", "page_size": 0}, "1 or more"),
    ("build_context", {"url": "A", "page_size": 0}, "page_size"),
]


@pytest.mark.parametrize(("tool", "arguments", "words"), GUARDED)
def test_what_cannot_be_meant_is_refused(
    program: Program, tool: str, arguments: dict[str, Any], words: str
) -> None:
    program.text("write_note", title="A", content="text", directory="")
    assert words in program.fails(tool, **arguments)
    assert "text\n" in program.text("read_note", identifier="A")


def test_a_note_that_was_moved_is_not_overwritten_from_its_old_place(
    program: Program, tmp_path: Path
) -> None:
    program.text("write_note", title="A", content="first", directory="d")
    program.text("move_note", identifier="A", destination_path="e/B.md")
    reply = program.call(
        "write_note",
        title="A",
        content="second",
        directory="d",
        overwrite=True,
        output_format="json",
    )
    assert (reply.is_error, json.loads(reply.text)["error"]) == (True, "NOTE_PATH_CONFLICT")
    assert "first" in (tmp_path / "main/e/B.md").read_text()


def test_a_move_that_gives_a_new_permalink_is_one_change(tmp_path: Path) -> None:
    program = Program(tmp_path, update_permalinks_on_move=True)
    for title in "AB":
        program.text("write_note", title=title, content="x", directory="d")
    program.text("move_note", identifier="d", destination_path="e", is_directory=True)
    program.text("move_note", identifier="A", destination_path="f/A.md")
    assert "permalink: main/f/a\n" in (tmp_path / "main/f/A.md").read_text()
    assert "permalink: main/e/b\n" in (tmp_path / "main/e/B.md").read_text()
    assert [change.verb for change in program.memory.log(limit=9)] == [
        "move",
        "move",
        "write",
        "write",
    ]
    program.memory.undo()
    assert "permalink: main/e/a\n" in (tmp_path / "main/e/A.md").read_text()
    assert not (tmp_path / "main/f/A.md").exists()
    program.memory.close()


@pytest.fixture
def people(program: Program) -> Program:
    """The tools over two notes: Ann, who knows Bob, and Bob."""
    content = "- [role] cook\n- knows [[Bob]]\n"
    program.text("write_note", title="Ann", content=content, directory="people")
    program.text("write_note", title="Bob", content="by the harbour\n", directory="people")
    return program


def test_lines_of_a_note_are_read_with_where_to_go_on(people: Program) -> None:
    first_lines = {"identifier": "Ann", "start_line": 1, "end_line": 2}
    text = people.text("read_note", **first_lines)
    assert text == "---\ntitle: Ann\n"
    document = people.data("read_note", **first_lines)
    assert document["has_more"] is True
    assert document["next_start_line"] == 3
    assert document["next_end_line"] == 4


def test_missing_note_is_answered_with_notes_that_come_near(people: Program) -> None:
    missing = people.text("read_note", identifier="a cook")
    assert missing.startswith('Note not found in main: "a cook"')
    assert "- Ann (main/people/ann)" in missing
    assert "come near" not in people.text("read_note", identifier="zebra")


def test_context_as_text_has_observations_and_relations(people: Program) -> None:
    context = people.text("build_context", url="people/ann", output_format="text")
    for part in ("# Ann (", "## Observations\n- [role] cook", "## Relations\n- knows [[Bob]]"):
        assert part in context, part


def test_context_of_a_missing_note_says_that_there_is_none(people: Program) -> None:
    text = people.text("build_context", url="zebra", output_format="text")
    assert "No note is at zebra" in text


def test_recent_activity_has_observations_and_relations_that_were_asked_for(
    people: Program,
) -> None:
    recent = people.text("recent_activity", type=["entity", "observation", "relation"])
    assert "in main: 2 notes" in recent
    assert "- cook\n- [[Ann]] → knows → [[Bob]]" in recent


def test_recent_activity_has_nothing_on_the_page_after_the_last(people: Program) -> None:
    assert people.data("recent_activity", page=2) == []


def test_relation_found_by_its_type_says_from_where_it_leads(people: Program) -> None:
    document = people.data("search_notes", query="knows", entity_types=["relation"])
    (edge,) = document["results"]
    assert edge["from_entity"] == "main/people/ann"
    assert edge["relation_type"] == "knows"


def test_folder_moved_or_missed_says_how_many_files(program: Program) -> None:
    program.text("write_note", title="Ann", content="x", directory="people")
    arguments = {"identifier": "people", "destination_path": "staff", "is_directory": True}
    moved = program.data("move_note", **arguments)
    assert moved["moved"] is True
    assert moved["total_files"] == 1
    assert moved["destination"] == "staff"
    file_path = program.data("read_note", identifier="Ann")["file_path"]
    assert file_path == "staff/Ann.md"
    missing = {"identifier": "nowhere", "is_directory": True, "output_format": "json"}
    refused = program.fails("move_note", destination_path="x", **missing)
    error = json.loads(refused)["error"]
    assert error == "Entity not found: nowhere"
    total_files = json.loads(program.fails("delete_note", **missing))["total_files"]
    assert total_files == 0


def test_its_prompts_are_of_the_project(program: Program) -> None:
    program.text(
        "write_note", title="Ann", content="- [role] cook\n- knows [[Bob]]\n", directory="people"
    )
    for name, words in (("recent_activity", "main/people/ann"), ("getting_started", MAIN)):
        assert words in program.registry.prompts[name].render(program.memory, {"project": MAIN})


def test_no_days_are_today(program: Program) -> None:
    program.text("write_note", title="A", content="x", directory="")
    assert [row["title"] for row in program.data("recent_activity", timeframe="0d")] == ["A"]
    assert program.data("build_context", url="a", timeframe="0d")["metadata"]["primary_count"] == 1


def test_a_note_lands_in_the_folder_there_is_whatever_its_case(
    program: Program, tmp_path: Path
) -> None:
    program.text("write_note", title="One", content="x", directory="Schemas/API")
    assert program.data("write_note", title="Two", content="x", directory="schemas/api")[
        "file_path"
    ] == ("Schemas/API/Two.md")
    for title in ("Three", "Four"):
        program.text("write_note", title=title, content="x", directory="inbox")
    moved = program.data("move_note", identifier="Three", destination_path="SCHEMAS/Three.md")
    assert moved["moved"] is True
    assert moved["file_path"] == "Schemas/Three.md"
    program.text("move_note", identifier="Three", destination_folder="INBOX")
    names = sorted(path.name for path in (tmp_path / "main").iterdir())
    assert names == ["Schemas", "inbox"]


def test_a_permalink_another_note_has_gets_a_number(program: Program) -> None:
    content = "---\npermalink: s/same\n---\n\nbody"
    written = [
        program.data("write_note", title=title, content=content, directory="s")
        for title in ("A", "B", "C")
    ]
    assert [note["permalink"] for note in written] == ["s/same", "s/same-1", "s/same-2"]
    written = [
        program.data("write_note", title=title, content=title, directory="s")
        for title in ("API v2", "API-v2")
    ]
    assert [note["permalink"] for note in written] == ["main/s/api-v2", "main/s/api-v2-1"]
    again = program.data("write_note", title="API-v2", content="new", directory="s", overwrite=True)
    assert (again["action"], again["permalink"]) == ("updated", "main/s/api-v2-1")
    refused = program.call(
        "write_note",
        title="D",
        content=content,
        directory="s",
        overwrite=True,
        output_format="json",
    )
    assert (json.loads(refused.text)["error"], json.loads(refused.text)["file_path"]) == (
        "NOTE_PATH_CONFLICT",
        "s/A.md",
    )


def test_a_permalink_is_taken_with_and_without_the_project_in_front(program: Program) -> None:
    first = program.data("write_note", title="A", content="first", directory="d")
    content = "---\npermalink: d/a\n---\n\nsecond"
    second = program.data("write_note", title="B", content=content, directory="d")
    assert (first["permalink"], second["permalink"]) == ("main/d/a", "d/a-1")
    for address in ("main/d/a", "d/a", "memory://d/a"):
        assert "first" in program.text("read_note", identifier=address)
    refused = program.call(
        "write_note",
        title="C",
        content=content,
        directory="d",
        overwrite=True,
        output_format="json",
    )
    assert json.loads(refused.text)["error"] == "NOTE_PATH_CONFLICT"


def test_an_overwrite_takes_the_permalink_its_content_gives(program: Program) -> None:
    program.text("write_note", title="A", content="old", directory="d")
    content = "---\npermalink: d/mine\n---\n\nnew"
    written = program.data("write_note", title="A", content=content, directory="d", overwrite=True)
    assert (written["action"], written["permalink"], written["file_path"]) == (
        "updated",
        "d/mine",
        "d/A.md",
    )
    assert written["checksum"] == program.data("read_note", identifier="d/mine")["checksum"]
    assert "old" not in program.text("read_note", identifier="d/mine")


def test_a_note_is_a_resource_by_its_address_with_and_without_its_project(program: Program) -> None:
    program.text("write_note", title="Search Design", content="text", directory="notes")
    program.text("write_note", title="Far", content="elsewhere", directory="d", project=WORK)
    for uri, content in (
        ("memory://main/notes/search-design", "text"),
        # A folder, not our project of that name
        ("memory://notes/search-design", "text"),
        ("memory://notes/Search%20Design.md", "text"),
        ("memory://work/d/far", "elsewhere"),
    ):
        read = resource_result(program.memory, program.registry.templates, uri)
        assert content in read["contents"][0]["text"]
    with pytest.raises(NotFound) as error:
        resource_result(program.memory, program.registry.templates, "memory://kv/nothing")
    assert "banks" not in str(error.value)


def test_a_reply_names_the_project_it_chose_itself(program: Program) -> None:
    without_project = program.text(
        "write_note", title="A", content="x", directory="", note_type="Decision Log"
    )
    assert "type: decision_log" in program.text("read_note", identifier="A")
    assert f"\nproject: {MAIN}\n" in without_project
    with_project = program.text("write_note", title="B", content="x", directory="", project=WORK)
    assert f"\nproject: {WORK}\n" in with_project


def test_a_folder_that_the_owner_has_to_allow_is_not_said_to_be_added(tmp_path: Path) -> None:
    program = Program(tmp_path)
    program.memory = program.memory.as_caller("agent", "mcp")
    answer = program.data(
        "create_memory_project", project_name="far", project_path="/elsewhere/far"
    )
    assert (answer["created"], answer["error"]) == (False, "OWNER_ASKED")
    assert "far" not in {
        project["name"] for project in program.data("list_memory_projects")["projects"]
    }
    program.memory.close()


def test_a_title_in_another_case_deletes_nothing(program: Program, tmp_path: Path) -> None:
    program.text("write_note", title="CamelCase Note", content="x", directory="")
    assert program.text("delete_note", identifier="camelcase note") == "false"
    assert program.text("delete_note", identifier="CamelCase Note") == "true"


def test_a_total_that_is_not_exact_says_so(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        program.text("write_note", title=f"Heron {number}", content="herons", directory="")
    monkeypatch.setattr(queries, "MAX_COUNTED", 2)
    for page_size, total, is_exact in ((2, 2, False), (4, 4, True)):
        results = program.data("search_notes", query="herons", page_size=page_size)
        assert (results["total"], results["total_is_exact"], results["has_more"]) == (
            total,
            is_exact,
            not is_exact,
        )


def test_a_search_for_observations_counts_and_pages_through_all_of_them(program: Program) -> None:
    drafts = [Draft(f"- [idea] widget {n}", project=MAIN, title=f"N {n}") for n in range(230)]
    program.memory.write_many(drafts)
    arguments = {"query": "widget", "entity_types": ["observation"], "page_size": 100}
    pages = [program.data("search_notes", **arguments, page=page) for page in (1, 2, 3)]

    assert [len(page["results"]) for page in pages] == [100, 100, 30]
    assert [(page["total_is_exact"], page["has_more"]) for page in pages] == [
        (False, True),
        (True, True),
        (True, False),
    ]
    permalinks = set()
    for page in pages:
        permalinks |= {row["permalink"] for row in page["results"]}
    assert len(permalinks) == 230
    assert pages[-1]["total"] == 230


def test_a_search_for_observations_that_few_notes_have_ends_and_says_that_it_did_not_read_all(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MOST_READ", 200)
    program.memory.write_many(
        [Draft(f"widget {n}", project=MAIN, title=f"N {n}") for n in range(230)]
    )
    results = program.data("search_notes", query="widget", entity_types=["observation"])
    assert (results["results"], results["total_is_exact"], results["has_more"]) == (
        [],
        False,
        False,
    )


def test_replies_say_what_happened_and_what_was_given(program: Program) -> None:
    program.text("write_note", title="A", content="one\n\n## Old\n\nx", directory="")
    assert "No section" in program.fails(
        "edit_note", identifier="A", operation="replace_section", section="New", content="x"
    )
    assert program.text("read_note", identifier="A", start_line=99).startswith(
        "[no line 99: the note has "
    )
    assert 'got "/"' in program.fails("delete_note", identifier="/", is_directory=True)
    assert "`type`" in program.fails("recent_activity", type=5)
    arguments = {
        "title": "Z",
        "content": "x",
        "directory": "",
        "overwrite": True,
        "expected_checksum": "12345678",
    }
    assert '"Z.md"' in program.fails("write_note", **arguments)


def test_the_next_page_of_a_folder_with_long_names_begins_where_the_last_ended(
    program: Program,
) -> None:
    names = {f"{n:03} {'long name ' * 18}" for n in range(90)}
    program.memory.write_many(
        [Draft("x", project=MAIN, title=name, folder="many") for name in names]
    )
    arguments = {"dir_name": "many", "page": 1, "page_size": 90}
    nodes_seen = 0
    while True:
        data = program.data("list_directory", **arguments)
        nodes_seen += len(data["nodes"])
        if not data["has_more"]:
            break
        arguments |= {"page": data["page"] + 1, "page_size": data["page_size"]}

    assert nodes_seen == 90
    assert data["total"] == 90


@pytest.mark.parametrize(
    "project_name",
    [
        "ExampleProject",
        "exampleproject",
        "example-project",
        "EXAMPLE_PROJECT",
        "Example Project",
        " exampleproject ",
    ],
)
def test_a_project_is_meant_whatever_the_case_and_signs_of_its_name(
    tmp_path: Path, project_name: str
) -> None:
    (tmp_path / "example").mkdir()
    projects = {"other": str(tmp_path / "other"), "ExampleProject": str(tmp_path / "example")}
    (tmp_path / "other").mkdir()
    program = Program(tmp_path, projects=projects, default_project=project_name.strip())
    try:
        assert program.memory.default_project == "ExampleProject"
        program.text(
            "write_note", title="Heron", content="wades", directory="birds", project=project_name
        )
        assert "wades" in program.text("read_note", identifier="birds/heron", project=project_name)
        assert "Heron" in program.text("search_notes", query="wades", project=project_name)
        assert "wades" in program.text(
            "read_note", identifier=f"memory://{project_name.strip().replace(' ', '-')}/birds/heron"
        )
        assert (tmp_path / "example/birds/Heron.md").exists()
    finally:
        program.memory.close()


def test_section_replaced_without_its_subsections_leaves_them(
    program: Program, tmp_path: Path
) -> None:
    text = "# One\n\nold\n\n## Below\n\nstays\n\n# Two\n\nother\n"
    program.text("write_note", title="A", content=text, directory="")
    arguments = {"identifier": "A", "operation": "replace_section", "section": "One"}
    program.text("edit_note", content="new", replace_subsections=False, **arguments)
    written = (tmp_path / "main/A.md").read_text()
    assert written.endswith("# One\n\nnew\n\n## Below\n\nstays\n\n# Two\n\nother\n")
    program.text("edit_note", content="newer", **arguments)
    written = (tmp_path / "main/A.md").read_text()
    assert written.endswith("# One\n\nnewer\n\n# Two\n\nother\n")


def test_argument_that_is_null_is_one_that_was_left_out(program: Program) -> None:
    program.text("write_note", title="A", content="x", directory="", overwrite=None, tags=None)
    assert "edit_note" in program.fails(
        "write_note", title="A", content="y", directory="", overwrite=None
    )
    assert program.data("recent_activity", timeframe=None, page=None, page_size=None)
    results = program.data("build_context", url="A", depth=None, max_related=None)["results"]
    assert results
