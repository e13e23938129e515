from __future__ import annotations

import pytest

pytestmark = pytest.mark.promise("000b-12.9")

NOTE = "---\ntitle: Doc\n---\n# Doc\n\nintro\n\n## One\n\nfirst\n\n### Inner\n\ninner\n\n## Two\n\nsecond\n"


def edited(face, operation, content, **more):
    return face.call("edit_note", identifier="Doc", operation=operation, content=content, **more)


def body(face):
    return face.file("Doc.md").read_bytes().decode()


@pytest.fixture
def doc(face):
    face.put("Doc.md", NOTE)
    return face


def test_the_reply_names_the_note_and_what_changed(doc):
    reply = edited(doc, "append", "- [fact] new")
    rows = reply.text.splitlines()
    place = ["project: notes", "file_path: Doc.md", "permalink: notes/doc"]

    assert rows[:5] == ["# Edited note (append)", *place, f"checksum: {reply.data['checksum']}"]
    assert len(rows) == 6
    assert reply.data["action"] == "edited"
    assert reply.data["operation"] == "append"
    checksum = doc("read_note", identifier="Doc")["checksum"]
    assert reply.data["checksum"] == checksum
    assert body(doc).rstrip("\n") == NOTE + "- [fact] new"


@pytest.mark.parametrize("operation", ["append", "prepend"])
@pytest.mark.parametrize(
    ("identifier", "path", "title"),
    [
        ("specs/New Note", "specs/New Note.md", "New Note"),
        ("New.md", "New.md", "New"),
        ("notes/x/New", "x/New.md", "New"),
    ],
)
def test_adding_to_a_missing_note_makes_it(face, operation, identifier, path, title):
    reply = face.call("edit_note", identifier=identifier, operation=operation, content="hello")
    assert reply.text.startswith(f"# Created note ({operation})\n")
    assert reply.data["action"] == "created"
    assert reply.data["operation"] == operation
    assert reply.data["file_path"] == path
    assert reply.data["title"] == title
    text = face.file(path).read_text()
    assert "hello" in text


def test_other_operations_do_not_make_a_note(face):
    face.refused(
        "edit_note",
        "not_found",
        identifier="New",
        operation="find_replace",
        content="x",
        find_text="y",
    )
    assert face.snapshot() == {}
