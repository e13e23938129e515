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


def test_prepend_goes_directly_after_the_frontmatter(doc):
    edited(doc, "prepend", "first of all")
    assert body(doc).startswith("---\ntitle: Doc\n---\nfirst of all\n# Doc\n")


def test_find_replace_is_literal_and_counted(doc):
    reply = edited(doc, "find_replace", "o.e", find_text="first")
    assert reply.data["replacements"] == 1
    assert body(doc) == NOTE.replace("first", "o.e")


def test_wrong_counts_change_nothing_and_name_the_remedy(doc):
    text = doc.refused("edit_note", "count", identifier="Doc", operation="find_replace", content="x", find_text="## ")
    assert text == (
        "Expected 1 occurrences of find_text in notes/doc, found 3. Set expected_replacements=3 or give more context."
    )
    text = doc.refused("edit_note", "count", identifier="Doc", operation="find_replace", content="x", find_text="zzz")
    assert text == ("Expected 1 occurrences of find_text in notes/doc, found 0. Check the exact text with read_note.")
    assert body(doc) == NOTE
    assert edited(doc, "find_replace", "#- ", find_text="## ", expected_replacements=3).data["replacements"] == 3


def test_replace_section_takes_subsections_and_keeps_the_heading(doc):
    edited(doc, "replace_section", "## One\nnew text", section="## One")
    assert "## One\n\nnew text\n\n## Two\n" in body(doc)
    assert "Inner" not in body(doc)


def test_a_missing_section_is_added_and_the_reply_says_so(doc):
    reply = edited(doc, "replace_section", "third", section="Three")
    assert reply.data["section_added"] is True
    assert "Three" in reply.text
    assert body(doc).startswith(NOTE)
    assert "Three\n" in body(doc)[len(NOTE) :]


def test_text_goes_before_and_after_a_heading(doc):
    edited(doc, "insert_before_section", "before", section="Two")
    edited(doc, "insert_after_section", "after", section="Two")
    assert "before\n## Two\nafter\n" in body(doc)


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


def test_crlf_stays_crlf(face):
    face.put("Doc.md", "a\r\nb\r\n")
    edited(face, "append", "c\nd")
    edited(face, "find_replace", "x\ny", find_text="a\nb")
    text = face.file("Doc.md").read_bytes()
    assert text.startswith(b"x\r\ny\r\nc\r\nd")
    assert text.count(b"\n") == text.count(b"\r\n")


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


def test_an_edit_that_would_break_the_frontmatter_is_refused(doc):
    reply = edited(doc, "find_replace", "title: [", find_text="title: Doc")
    assert reply.is_error
    assert body(doc) == NOTE
