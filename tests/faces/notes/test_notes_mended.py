"""What models met with: near misses, folders, stray addresses, time frames (issue 14)."""

from __future__ import annotations

import pytest
import yaml

from contract.note_tools import Tools
from memoranda.engine import open_session


def test_a_mistyped_heading_is_named_and_adds_no_section(face):
    face.write("A", "# Plan\n\n## Decisions\n\nold\n")
    text = face.refused(
        "edit_note",
        "section",
        identifier="A",
        operation="replace_section",
        section="Decsions",
        content="n",
    )
    assert "Plan, Decisions" in text


@pytest.mark.parametrize(
    ("operation", "expected"),
    [("append", "## One\n\nold\nnew\n\n## Two\n"), ("prepend", "## One\nnew\n\nold\n\n## Two\n")],
)
def test_append_and_prepend_go_into_the_section_that_is_named(face, operation, expected):
    face.write("A", "## One\n\nold\n\n## Two\n")
    face("edit_note", identifier="A", operation=operation, section="One", content="new\n")
    assert face.file("A.md").read_text().endswith(expected)
    face.refused(
        "edit_note", "section", identifier="A", operation="append", section="None such", content="x"
    )


def test_a_missing_folder_is_called_a_folder(face):
    face.write("A", directory="specs")
    for name in ("/nope", "nope", "specs/nope"):
        text = face.refused("list_directory", "not_found", dir_name=name)
        assert text.startswith(f'Folder not found in project notes: "{name}". Its folders: specs.')
        assert "list_directory" in text
    text = face.refused("delete_note", "not_found", identifier="nope", is_directory=True)
    assert text.startswith('Folder not found in project notes: "nope"')
    assert "list_directory" in text


def test_an_address_in_a_project_there_is_not_makes_no_folder(face, tmp_path):
    face("create_memory_project", project_name="other", project_path=str(tmp_path / "other"))
    face.write("A")
    before = face.snapshot()
    missing = {"identifier": "memory://missing-project/x", "operation": "append", "content": "y"}
    assert "missing-project" in face.refused("edit_note", "project_not_found", **missing)
    assert "other is another one" in face.refused(
        "move_note", "invalid", identifier="A", destination_path="other/A.md"
    )
    assert face.snapshot() == before
    face("edit_note", **missing | {"identifier": "new-folder/x"})


def test_a_time_given_as_metadata_stays_the_text_it_is(face):
    moment = "2026-06-18T10:42:00Z"
    face.write("A", metadata={"reviewed_at": moment, "when": moment})
    header = yaml.safe_load(face.file("A.md").read_text().split("---\n")[1])
    assert (header["reviewed_at"], header["when"]) == (moment, moment)


def test_an_overwrite_keeps_the_tags_and_keys_it_does_not_name(face):
    face.write("A", tags=["x"], metadata={"status": "open", "owner": "Ann"}, note_type="task")
    overwritten = face.write("A", "---\nowner: Bob\n---\nnew", overwrite=True)
    header = yaml.safe_load(face.file("A.md").read_text().split("---\n")[1])
    assert (header["status"], header["owner"], header["tags"], overwritten["type"]) == (
        "open",
        "Bob",
        ["x"],
        "task",
    )


def test_a_missing_project_folder_is_no_part_of_a_note(tmp_path):
    (tmp_path / "gone").mkdir()
    with open_session(
        tmp_path / "home", watch=False, projects={"gone": tmp_path / "gone"}
    ) as memory:
        face = Tools(memory)
        face.write("A", "only this\n")
        (tmp_path / "gone").rmdir()
        read = face.call("read_note", identifier="A")
        assert read.text.endswith("only this\n")
        assert len(read.data["warnings"]) == 1
        reply = face.call("search_notes", query="only")
        assert "Warning" in reply.text
        reply = face.call("search_notes", query="only", project="notes")
        assert "Warning" not in reply.text


def test_context_shows_the_text_within_its_budget_and_a_passage_of_each_neighbour(face):
    face.write("Leaf", "the leaf says this\n")
    written = face.write("Hub", "what the hub says " * 40 + "\n\n- see [[Leaf]]\n")
    reply = face.call("build_context", url="Hub", max_tokens=20)
    (result,) = reply.data["results"]

    assert result["primary_result"]["checksum"] == written["checksum"] in reply.text
    assert len(result["content"]) == 82
    assert result["truncated"] is True
    assert "depth 1, via see: the leaf says this" in reply.text
    truncated = face("build_context", url="Hub")["results"][0]["truncated"]
    assert truncated is False


def test_refusals_of_a_new_revision_address_and_scope_say_how_to_go_on(face, tmp_path):
    text = face.refused(
        "write_note",
        "not_found",
        title="New",
        content="x",
        overwrite=True,
        expected_checksum="12345678",
    )
    assert text.startswith('Note not found in notes: "New.md"')
    assert text.endswith("Leave expected_checksum out to create it.")
    missing = {"identifier": "memory://nowhere/x", "operation": "append", "content": "y"}
    text = face.refused("edit_note", "project_not_found", **missing)
    assert "Projects: banks, categories, graph, kv, memories, notes." in text
    text = face.refused(
        "edit_note", "invalid", **missing | {"identifier": "memory://kv/x"}, project="notes"
    )
    assert text == "memory://kv/x names project kv, the call notes. Name one of them."
    assert "max_tokens" in face.refused("build_context", "invalid", url="A", max_tokens=-1)
    of_another = {"title": "B", "content": "x", "metadata": {"scope": "agent:b"}}
    reply = face.as_agent("a").call("write_note", **of_another)
    assert (reply.text, "Use global or agent:a." in reply.hint) == ('invalid scope "agent:b"', True)
