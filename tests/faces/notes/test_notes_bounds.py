"""Replies stay short whatever is in the project (contract 000b, 7 and 12.13); `Tools.call` checks
each text.
"""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.promise("000b-12.13")


def test_a_long_note_is_read_in_parts_at_line_ends(face):
    lines = [f'line {n} "quoted" 文字\n' for n in range(5_000)]
    text = "".join(lines)
    face.put("Big.md", text)
    text_read = ""
    start = 1
    for form in ("text", "json", "text", "json"):
        reply = face.call("read_note", identifier="Big.md", start_line=start, output_format=form)
        if form == "json":
            data = json.loads(reply.text)
        else:
            data = reply.data
        assert data["truncated"] is True
        assert data["start_line"] == start
        assert data["content"].endswith("\n")
        assert len(data["content"]) > 10_000
        text_read += data["content"]
        start = data["end_line"] + 1
        if form == "text":
            lines_shown = f"lines {data['start_line']}-{data['end_line']} of 5000"
            mark = f"[{lines_shown}; continue with start_line={start}]"
            assert reply.text == data["content"] + mark

    assert text.startswith(text_read)


def test_a_note_just_within_the_limit_is_not_cut(face):
    face.put("Fits.md", "x" * 99 + "\n" + ("y" * 99 + "\n") * 199)
    face.put("Over.md", "x" * 99 + "\n" + ("y" * 99 + "\n") * 199 + "z")

    text = face.text("read_note", identifier="Fits.md")
    assert len(text) == 20_000
    truncated = face("read_note", identifier="Fits.md")["truncated"]
    assert truncated is False
    truncated = face("read_note", identifier="Over.md")["truncated"]
    assert truncated is True


def test_one_endless_line_is_shown_in_part(face):
    face.put("Line.md", "first\n" + "x" * 5_000_000 + "\nlast\n")
    end_line = face("read_note", identifier="Line.md")["end_line"]
    assert end_line == 1
    reply = face.call("read_note", identifier="Line.md", start_line=2)
    assert reply.data["truncated"] is True
    assert "of its 5000000 characters; continue with start_line=3]" in reply.text
    text = face.text("read_note", identifier="Line.md", start_line=3)
    assert text == "last\n"
    json.loads(face.text("read_note", identifier="Line.md", start_line=2, output_format="json"))


def test_huge_frontmatter_stays_within_the_limit(face):
    face.put("Head.md", "---\ntitle: " + "t" * 50_000 + "\nkey: " + "k" * 50_000 + "\n---\nbody\n")
    for tool, arguments in (
        ("read_note", {"identifier": "Head.md", "start_line": 4}),
        ("search_notes", {"query": "body"}),
        ("build_context", {"url": "Head.md"}),
        ("list_directory", {}),
        ("recent_activity", {}),
    ):
        assert not face.call(tool, **arguments).is_error
        json.loads(face.text(tool, **arguments, output_format="json"))


def test_a_full_page_of_ordinary_notes_keeps_its_size(face):
    for n in range(210):
        face.put(f"specs/Ordinary note {n}.md", "samewords " + "filler " * 60)
    results = face("search_notes", query="samewords", page_size=100)["results"]
    assert len(results) == 100
    results = face("recent_activity", page_size=100)["results"]
    assert len(results) == 100
    entries = face("list_directory", dir_name="specs", page_size=200)["entries"]
    assert len(entries) == 200


def test_a_folder_of_many_notes_is_deleted_in_few_words(face):
    for n in range(300):
        face.put(f"crowd/{n}.md", "x")
    reply = face.call("delete_note", identifier="crowd", is_directory=True)

    assert len(reply.data["paths"]) == 300
    assert reply.data["notes"] == 300
    assert "and 280 more" in reply.text
    assert len(reply.text) < 1000


def test_a_note_of_many_headings_gives_a_short_error(face):
    face.put("Doc.md", "".join(f"## Heading number {n}\n" for n in range(5000)))
    text = face.refused(
        "edit_note",
        "section",
        identifier="Doc",
        operation="insert_after_section",
        section="X",
        content="x",
    )
    assert "Heading number 0" in text


def test_numbers_of_any_size_are_pages(face):
    face.put("A.md", "x")
    huge = 10**30
    for tool, arguments in (
        ("list_directory", {}),
        ("recent_activity", {}),
        ("search_notes", {"query": "x"}),
        ("build_context", {"url": "*"}),
        ("build_context", {"url": "A"}),
    ):
        assert face(tool, page=huge, page_size=huge, **arguments)["total"] == 1
    assert face("read_note", identifier="A", start_line=huge)["content"] == ""


def test_many_observations_and_tags_are_counted_in_a_short_text(face):
    content = "".join(f"- [category {n} with a long name] fact #tag{n}\n" for n in range(2000))
    reply = face.call(
        "write_note", title="A", content=content, tags=[f"tag{n}" for n in range(1000)]
    )

    assert len(reply.data["observations"]) == 2000
    assert len(reply.text) < 4000
