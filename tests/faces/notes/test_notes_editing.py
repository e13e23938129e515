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
    assert rows[:5] == [
        "# Edited note (append)",
        "project: notes",
        "file_path: Doc.md",
        "permalink: notes/doc",
        f"checksum: {reply.data['checksum']}",
    ]
    assert len(rows) == 6
    assert reply.data["action"] == "edited"
    assert reply.data["operation"] == "append"
    assert reply.data["checksum"] == doc.data("read_note", identifier="Doc")["checksum"]
    assert body(doc).rstrip("\n") == NOTE + "- [fact] new"


@pytest.mark.parametrize("operation", ["replace_section", "insert_before_section", "insert_after_section"])
@pytest.mark.parametrize("section", [None, "", "  "])
def test_section_operations_need_a_section(doc, operation, section):
    text = doc.refused("edit_note", "invalid", identifier="Doc", operation=operation, content="x", section=section)
    assert "`section`" in text
    assert operation in text


@pytest.mark.parametrize("find_text", [None, ""])
def test_find_replace_needs_a_text_to_find(doc, find_text):
    text = doc.refused(
        "edit_note", "invalid", identifier="Doc", operation="find_replace", content="x", find_text=find_text
    )
    assert "`find_text`" in text


def test_expected_replacements_count_from_one(doc):
    text = doc.refused(
        "edit_note",
        "invalid",
        identifier="Doc",
        operation="find_replace",
        content="x",
        find_text="one",
        expected_replacements=0,
    )
    assert "`expected_replacements`" in text


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
    assert (reply.data["action"], reply.data["operation"]) == ("created", operation)
    assert (reply.data["file_path"], reply.data["title"]) == (path, title)
    assert "hello" in face.file(path).read_text()


def test_other_operations_do_not_make_a_note(face):
    face.refused("edit_note", "not_found", identifier="New", operation="find_replace", content="x", find_text="y")
    assert face.snapshot() == {}
