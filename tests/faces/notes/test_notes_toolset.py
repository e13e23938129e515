from __future__ import annotations

import json

import pytest

from contract.tables import tables
from memoranda.faces.notes import toolset
from memoranda.faces.tool import Registry


def test_it_can_be_loaded_only_once():
    with pytest.raises(Exception, match="write_note"):
        Registry([toolset(), toolset()])


def test_parameters_of_other_programs_are_used_or_without_effect_and_never_silently_wrong(face):
    face.write("A", workspace="w", compact=True)
    note_read = face("read_note", identifier="A", include_frontmatter=True, include_content=False)
    assert (
        note_read["checksum"] in face.call("read_note", identifier="A", include_content=False).text
    )
    assert "content" not in note_read
    face.refused("search_notes", "project_not_found", query="text", project_id="p1")
    face.refused("search_notes", "invalid", query="text", entity_types=["relation"])
    face.refused("recent_activity", "invalid", type="relation")
    results = face(
        "search_notes",
        query="text",
        entity_types=["entity"],
        min_similarity=0.5,
        search_all_projects=True,
    )
    assert results["total"] == 1
    assert face("recent_activity", type="entity", depth=2)["total"] == 1


def test_parameters_are_also_known_by_their_other_names(face):
    written = face.write("A", folder="specs", entity_type="idea")
    assert (written["file_path"], written["type"]) == ("specs/A.md", "idea")


def test_the_schemas_own_name_wins_over_the_other_one(face):
    assert face.write("A", folder="x", directory="y")["file_path"] == "y/A.md"
    assert face.write("B", folder="x", directory=None)["file_path"] == "x/B.md"


@pytest.mark.parametrize("tags", ['["red", "blue"]', "red, blue", ["red", "blue"]])
def test_lists_come_as_lists_as_json_text_or_with_commas(face, tags):
    assert face.write("A", tags=tags)["tags"] == ["red", "blue"]
    assert face("search_notes", tags=tags)["total"] == 1


def test_numbers_objects_and_booleans_may_come_as_text(face):
    face.write("A", metadata='{"priority": 3}')
    face.write("A", "new", overwrite="true")
    assert face("read_note", identifier="A", start_line="1", end_line=1.0)["end_line"] == 1


@pytest.mark.parametrize(
    "name",
    [
        "workspace",
        "compact",
        "include_frontmatter",
        "include_content",
        "min_similarity",
        "search_all_projects",
    ],
)
def test_an_argument_of_basic_memory_without_effect_is_taken_by_every_tool(shared, name):
    for tool in ("search_notes", "build_context", "recent_activity", "list_directory"):
        needed = {"search_notes": {"query": "x"}, "build_context": {"url": "*"}}.get(tool, {})
        shared(tool, **needed, **{name: True})


def test_output_format_json_makes_the_text_the_data(face):
    face.write("A")
    for tool, arguments in (
        ("write_note", {"title": "B", "content": "x"}),
        ("read_note", {"identifier": "A"}),
        ("search_notes", {"query": "text"}),
        ("list_directory", {}),
        ("build_context", {"url": "A"}),
        ("recent_activity", {}),
        ("list_memory_projects", {}),
    ):
        reply = face.call(tool, **arguments, output_format="json")
        assert reply.text == json.dumps(reply.data, ensure_ascii=False, separators=(",", ":"))


def test_null_is_an_absent_parameter(face):
    face.write("A", directory=None, tags=None, project=None, expected_checksum=None)
    assert face("recent_activity", project=None)["total"] == 1


@pytest.mark.parametrize(("tool", "arguments", "words"), tables("note_arguments")["wrong"])
def test_a_wrong_argument_is_named(shared, tool, arguments, words):
    shared.put("A.md", "one\n" * 7)
    before = shared.snapshot()
    assert words in shared.refused(tool, "invalid", **arguments)
    assert shared.snapshot() == before
