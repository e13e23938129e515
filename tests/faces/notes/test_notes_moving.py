from __future__ import annotations

import pytest


def test_a_note_moves_and_its_own_permalink_stays(face):
    face.put("A.md", "---\npermalink: my/own\n---\nx")
    reply = face.call("move_note", identifier="A", destination_path="archive/2026/B")
    paths = {"old_path": "A.md", "new_path": "archive/2026/B.md"}
    assert reply.data == {
        "action": "moved",
        "project": "notes",
        **paths,
        "notes": 1,
        "broken_links": [],
    }
    assert reply.text.splitlines()[0] == "# Moved note"
    assert "A.md" in reply.text
    assert "archive/2026/B.md" in reply.text
    assert face("read_note", identifier="my/own")["file_path"] == "archive/2026/B.md"


@pytest.mark.parametrize(
    ("taken", "target"),
    [("P.md", "p.md"), ("Ideas/Été.md", "ideas/été"), ("Caf\u00e9.md", "CAFE\u0301.md")],
)
def test_a_destination_that_differs_from_another_note_only_in_case_is_refused(face, taken, target):
    face.put("Lines.md", "lines")
    face.put(taken, "taken")
    text = face.refused("move_note", "exists", identifier="Lines", destination_path=target)
    assert text == f"Destination already exists: {taken}. Choose another destination_path."
    assert face("read_note", identifier="Lines")["file_path"] == "Lines.md"


def test_a_destination_like_that_of_another_agents_note_is_refused_without_its_name(face):
    face.put("Lines.md", "lines")
    face.put("Secret.md", "---\nscope: agent:other\n---\nx")
    arguments = {"identifier": "Lines", "destination_path": "secret.md"}
    reply = face.as_agent("me").call("move_note", **arguments)
    assert reply.is_error
    assert reply.text == "The path secret.md cannot be used. Choose another one."


def test_a_note_moves_to_its_own_path_in_another_case(face):
    face.put("Plan.md", "plan")
    assert face("move_note", identifier="Plan", destination_path="plan")["new_path"] == "plan.md"


@pytest.mark.parametrize(
    ("taken", "target"),
    [("Caf\u00e9", "CAFE\u0301"), ("Deep/Plans", "deep/plans"), ("Deep/Plans", "Deep/PLANS")],
)
def test_a_folder_does_not_move_to_a_path_like_that_of_another_folder(face, taken, target):
    face.put("Third/Two.md", "two")
    face.put(f"{taken}/One.md", "one")
    text = face.refused(
        "move_note", "exists", identifier="Third", destination_path=target, is_directory=True
    )
    assert text == f"Destination already exists: {taken}. Choose another destination_path."
    assert face("read_note", identifier="Two")["file_path"] == "Third/Two.md"


@pytest.mark.parametrize("target", ["plans", "PLANS"])
def test_a_folder_moves_to_its_own_path_in_another_case(face, target):
    face.put("Plans/One.md", "one")
    face("move_note", identifier="Plans", destination_path=target, is_directory=True)
    assert face("read_note", identifier="One")["file_path"] == f"{target}/One.md"


def test_a_final_slash_keeps_the_name(face):
    face.put("A.md", "x")
    assert (
        face("move_note", identifier="A", destination_path="archive/")["new_path"] == "archive/A.md"
    )
    assert face("move_note", identifier="A", destination_folder="b/c")["new_path"] == "b/c/A.md"


def test_links_by_path_that_no_longer_resolve_are_named(face):
    face.put("specs/API.md", "---\ntitle: The API\n---\nx")
    face.put("ByPath.md", "see [[specs/API]]")
    face.put("ByTitle.md", "see [[The API]]")
    reply = face.call(
        "move_note",
        identifier="The API",
        destination_path="old/Interface.md",
        update_links=False,
    )
    assert reply.data["broken_links"] == ["ByPath.md"]
    assert "ByPath.md" in reply.text
    assert face.file("ByPath.md").read_text() == "see [[specs/API]]"


def test_links_by_path_are_updated_and_their_notes_named(face):
    face.put("specs/API.md", "---\ntitle: The API\n---\nx")
    face.put("ByPath.md", "see [[specs/API]]")
    face.put("ByTitle.md", "see [[The API]]")
    reply = face.call("move_note", identifier="The API", destination_path="old/Interface.md")

    assert reply.data["updated_links"] == ["ByPath.md"]
    assert "Links updated in: ByPath.md" in reply.text
    text = face.file("ByPath.md").read_text()
    assert text == "see [[old/Interface]]"
    text = face.file("ByTitle.md").read_text()
    assert text == "see [[The API]]"


@pytest.mark.parametrize(
    ("tool", "more"), [("move_note", {"destination_path": "new"}), ("delete_note", {})]
)
def test_a_folder_needs_is_directory(face, tool, more):
    face.put("specs/A.md", "a")
    text = face.refused(tool, "invalid", identifier="specs", **more)
    assert "`is_directory` must be true" in text
    assert face(tool, identifier="specs", is_directory=True, **more)["notes"] == 1


def test_a_folder_does_not_move_into_itself_or_onto_another(face):
    face.put("a/A.md", "a")
    face.put("b/B.md", "b")
    for code, target, words in (
        ("invalid", "a/inner", "destination_path"),
        ("exists", "b", "Destination already exists: b"),
    ):
        assert words in face.refused(
            "move_note", code, identifier="a", destination_path=target, is_directory=True
        )
    assert set(face.snapshot()) == {"a/A.md", "b/B.md"}


def test_a_deleted_note_comes_back_with_undo(face):
    face.put("specs/A.md", "the text")
    reply = face.call("delete_note", identifier="specs/A")
    assert reply.data == {
        "action": "deleted",
        "project": "notes",
        "paths": ["specs/A.md"],
        "notes": 1,
    }
    assert reply.text.startswith("Deleted specs/A.md")
    assert "memory undo" in reply.text
    assert face.snapshot() == {}
    face.memory.undo(int(reply.text.rpartition("memory undo ")[2].rstrip("`.")))
    assert face.snapshot() == {"specs/A.md": b"the text"}
    assert face("search_notes", query="the text")["total"] == 1


@pytest.mark.parametrize("identifier", ["/", "", "."])
def test_a_whole_project_is_neither_moved_nor_deleted(face, identifier):
    face.put("A.md", "a")
    assert face.call("delete_note", identifier=identifier, is_directory=True).is_error
    assert face.call(
        "move_note", identifier=identifier, destination_path="x", is_directory=True
    ).is_error
    assert face.snapshot() == {"A.md": b"a"}


def test_notes_of_another_agent_stay_when_their_folder_is_deleted(face):
    face.put("specs/A.md", "a")
    face.put("specs/Secret.md", "---\nscope: agent:other\n---\nx")
    before = face.snapshot()
    me = face.as_agent("me")
    reply = me.call("delete_note", identifier="specs", is_directory=True)
    assert not reply.is_error
    assert "Secret" not in f"{reply.text} {reply.data}"
    assert set(before) - set(face.snapshot()) == {"specs/A.md"}
    me.refused("delete_note", "not_found", identifier="specs", is_directory=True)
