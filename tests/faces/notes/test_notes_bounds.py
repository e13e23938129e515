"""Replies stay short whatever lies in the project (contract 000b, 7 and 12.13); `Face.call` checks each text."""

from __future__ import annotations

import json

import pytest

from commonplace.engine import open_memory

pytestmark = pytest.mark.promise("000b-12.13")


def walked(face, tool, key, identity, **arguments):
    """All entries of a list, page by page, as the text says how to go on."""
    seen, page = [], {}
    while True:
        reply = face.call(tool, **arguments | page)
        assert not reply.is_error, reply.text
        seen += [identity(each) for each in reply.data[key]]
        if not reply.data["more"]:
            return seen
        page = {"page": reply.data["page"] + 1, "page_size": reply.data["page_size"]}
        assert f"page={page['page']}, page_size={page['page_size']}" in reply.text or arguments.get("output_format")


def test_a_long_note_is_read_in_parts_at_line_ends(face):
    text = "".join(f'line {n} "quoted" 文字\n' for n in range(5_000))
    face.put("Big.md", text)
    seen, start = "", 1
    for form in ("text", "json", "text", "json"):
        reply = face.call("read_note", identifier="Big.md", start_line=start, output_format=form)
        data = json.loads(reply.text) if form == "json" else reply.data
        assert data["truncated"] is True
        assert data["start_line"] == start
        assert data["content"].endswith("\n")
        assert len(data["content"]) > 10_000
        seen += data["content"]
        start = data["end_line"] + 1
        if form == "text":
            mark = f"[lines {data['start_line']}-{data['end_line']} of 5000; continue with start_line={start}]"
            assert reply.text == data["content"] + mark
    assert text.startswith(seen)


def test_a_note_just_within_the_limit_is_not_cut(face):
    face.put("Fits.md", "x" * 99 + "\n" + ("y" * 99 + "\n") * 199)
    face.put("Over.md", "x" * 99 + "\n" + ("y" * 99 + "\n") * 199 + "z")
    assert len(face.text("read_note", identifier="Fits.md")) == 20_000
    assert face.data("read_note", identifier="Fits.md")["truncated"] is False
    assert face.data("read_note", identifier="Over.md")["truncated"] is True


@pytest.mark.parametrize("form", ["text", "json"])
def test_texts_about_the_limit_are_cut_at_the_right_line(face, form):
    for size in range(18_500, 20_200, 97):
        text = ("z" * 60 + "\n") * (size // 61) + "z" * (size % 61)
        face.put("Edge.md", text)
        reply = face.call("read_note", identifier="Edge.md", output_format=form)
        data = json.loads(reply.text) if form == "json" else reply.data
        assert data == reply.data
        shown = data["content"]
        assert text.startswith(shown)
        assert data["truncated"] is (shown != text)
        assert shown == text or shown == ("z" * 60 + "\n") * data["end_line"]
        assert len(shown) > 17_000


def test_one_endless_line_is_shown_in_part(face):
    face.put("Line.md", "first\n" + "x" * 5_000_000 + "\nlast\n")
    assert face.data("read_note", identifier="Line.md")["end_line"] == 1
    reply = face.call("read_note", identifier="Line.md", start_line=2)
    assert reply.data["truncated"] is True
    assert "of its 5000000 characters; continue with start_line=3]" in reply.text
    assert face.text("read_note", identifier="Line.md", start_line=3) == "last\n"
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


@pytest.fixture(scope="module")
def crowd(tmp_path_factory, face_for):
    """A hub with 300 notes that link to it; only read."""
    with open_memory(tmp_path_factory.mktemp("crowd") / "home", watch=False) as memory:
        face = face_for(memory)
        face.put("Hub.md", "# Hub\n\n- [fact] the middle\n")
        tail = "a rather long name for a note that takes its place in every line of every list"
        for n in range(300):
            face.put(f"crowd/{n:04} {tail}.md", f"- part_of [[Hub]]\n\nsamewords number {n} " + "filler " * 40)
        yield face


@pytest.mark.parametrize("form", ["text", "json"])
def test_every_list_leads_through_all_of_a_crowd(crowd, form):
    listed = walked(
        crowd,
        "list_directory",
        "entries",
        lambda each: each["path"],
        dir_name="crowd",
        page_size=200,
        output_format=form,
    )
    assert len(listed) == len(set(listed)) == 300
    found = walked(
        crowd,
        "search_notes",
        "results",
        lambda each: each["file_path"],
        query="samewords",
        page_size=100,
        output_format=form,
    )
    assert len(found) == len(set(found)) == 300
    recent = walked(
        crowd, "recent_activity", "results", lambda each: each["file_path"], page_size=100, output_format=form
    )
    assert len(recent) == len(set(recent)) == 301


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_hub_with_many_links_is_shown_in_part(crowd, form):
    reply = crowd.call("build_context", url="Hub", depth=5, max_related=100, output_format=form)
    (result,) = reply.data["results"]
    assert len(result["relations"]) + result["more_relations"] == 300
    assert len(result["relations"]) >= 20
    assert result["related_results"]
    if form == "text":
        assert "more: find them with search_notes" in reply.text


def test_a_star_that_matches_all_is_shown_in_pages(crowd):
    reply = crowd.call("build_context", url="*", page_size=100)
    assert reply.data["total"] == 301
    assert reply.data["more"] is True
    first = {each["primary_result"]["file_path"] for each in reply.data["results"]}
    second = crowd.data("build_context", url="*", page=reply.data["page"] + 1, page_size=reply.data["page_size"])
    assert first.isdisjoint(each["primary_result"]["file_path"] for each in second["results"])


def test_a_full_page_of_ordinary_notes_keeps_its_size(face):
    for n in range(210):
        face.put(f"specs/Ordinary note {n}.md", "samewords " + "filler " * 60)
    assert len(face.data("search_notes", query="samewords", page_size=100)["results"]) == 100
    assert len(face.data("recent_activity", page_size=100)["results"]) == 100
    assert len(face.data("list_directory", dir_name="specs", page_size=200)["entries"]) == 200


def test_a_folder_of_many_notes_is_deleted_in_few_words(face):
    for n in range(300):
        face.put(f"crowd/{n}.md", "x")
    reply = face.call("delete_note", identifier="crowd", is_directory=True)
    assert len(reply.data["paths"]) == reply.data["notes"] == 300
    assert "and 280 more" in reply.text
    assert len(reply.text) < 1000


def test_a_note_of_many_headings_gives_a_short_error(face):
    face.put("Doc.md", "".join(f"## Heading number {n}\n" for n in range(5000)))
    text = face.refused(
        "edit_note", "section", identifier="Doc", operation="insert_after_section", section="X", content="x"
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
        assert face.data(tool, page=huge, page_size=huge, **arguments)["total"] == 1
    assert face.data("read_note", identifier="A", start_line=huge)["content"] == ""


def test_many_observations_and_tags_are_counted_in_a_short_text(face):
    content = "".join(f"- [category {n} with a long name] fact #tag{n}\n" for n in range(2000))
    reply = face.call("write_note", title="A", content=content, tags=[f"tag{n}" for n in range(2000)])
    assert len(reply.data["observations"]) == 2000
    assert len(reply.text) < 4000
