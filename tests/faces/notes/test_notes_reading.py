from __future__ import annotations

import pytest

from contract.tables import tables

TABLES = tables("note_identifiers")

NOTE = "---\ntitle: Lines\nnumber: 1.10\n---\none\ntwo\nthree\n"


def test_a_note_is_shown_exactly_as_it_lies_on_disk(face):
    face.put("A.md", NOTE)
    reply = face.call("read_note", identifier="A.md")
    assert reply.text == NOTE
    changed = reply.data.pop("changed")
    assert changed.endswith("Z")
    assert reply.data == {
        "title": "Lines",
        "permalink": "notes/a",
        "file_path": "A.md",
        "project": "notes",
        "type": "note",
        "checksum": reply.data["checksum"],
        "frontmatter": {"title": "Lines", "number": "1.10"},
        "provenance": {"who": "file", "trust": "agent"},
        "content": NOTE,
        "start_line": 1,
        "end_line": 7,
        "total_lines": 7,
        "truncated": False,
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no newline",
        "crlf\r\nlines\r\n",
        "\ufeffwith BOM\n",
        "\n\n",
        "---\nbroken: [\n---\nbody",
        "a\u2028b\x0cc\n",
    ],
)
def test_odd_texts_are_shown_exactly(shared, text):
    shared.put("Odd.md", text)
    reply = shared.call("read_note", identifier="Odd.md")
    assert not reply.is_error
    assert reply.text == reply.data["content"] == text


@pytest.mark.parametrize(
    ("first", "last", "expected_text"),
    [
        (5, 6, "one\ntwo\n"),
        (7, -1, "three\n"),
        (6, 99, "two\nthree\n"),
        (1, 1, "---\n"),
        (7, None, "three\n"),
    ],
)
def test_a_range_of_lines(shared, first, last, expected_text):
    shared.put("A.md", NOTE)
    reply = shared.call("read_note", identifier="A.md", start_line=first, end_line=last)

    assert reply.text == expected_text
    assert reply.data["content"] == expected_text
    assert reply.data["start_line"] == first
    assert reply.data["total_lines"] == 7
    assert reply.data["truncated"] is False


def test_a_range_past_the_end_is_empty(face):
    face.put("A.md", NOTE)
    reply = face.call("read_note", identifier="A.md", start_line=8)
    assert not reply.is_error
    assert reply.data["content"] == ""
    assert "7 lines" in reply.text


@pytest.mark.parametrize("identifier", TABLES["identifiers"])
def test_every_kind_of_identifier_leads_to_the_note(shared, identifier):
    shared.put(
        "specs/API.md", "---\nid: 11111111-1111-4111-8111-111111111111\ntitle: API Design\n---\nx\n"
    )
    assert shared("read_note", identifier=identifier)["file_path"] == "specs/API.md"


def test_a_note_of_another_project_is_found_when_it_is_the_only_one(face):
    face.put("user/pref.md", "x", "memories")
    assert face("read_note", identifier="memories/user/pref")["project"] == "memories"
    assert face("read_note", identifier="pref", project="memories")["project"] == "memories"


def test_bytes_that_are_not_text_are_shown_with_a_warning(face):
    face.put("Latin.md", b"caf\xe9\n")
    reply = face.call("read_note", identifier="Latin.md")

    assert reply.data["content"] == "caf\ufffd\n"
    assert reply.text.startswith("caf\ufffd\n")
    assert "Latin.md" in reply.data["warnings"][0]
    assert reply.data["warnings"][0] in reply.text


def test_a_read_counts_as_an_access(face):
    face.write("A")
    face.text("read_note", identifier="A")
    face.text("read_note", identifier="A")
    assert face.memory.find("A").access_count == 2


def test_a_listing_shows_folders_first_then_notes(face):
    face.put("b.md", "---\ntitle: Second\n---\n")
    face.put("a.md", "x")
    face.put("z/deep/one.md", "x")
    face.put("z/two.md", "x")
    face.put("picture.png", "no note")
    reply = face.call("list_directory")
    data = reply.data
    kinds = [(entry["kind"], entry["path"]) for entry in data["entries"]]
    assert kinds == [("folder", "z"), ("note", "a.md"), ("note", "b.md")]
    assert data["entries"][0]["notes"] == 2
    assert data["entries"][2]["title"] == "Second"
    assert data["entries"][2]["permalink"] == "notes/b"
    assert data["entries"][2]["changed"].endswith("Z")
    assert (data["project"], data["directory"], data["total"], data["more"]) == (
        "notes",
        "",
        3,
        False,
    )
    rows = reply.text.splitlines()
    assert rows[1] == "z/  (2 notes)"
    assert rows[3].startswith("b.md  Second  20")


def test_depth_and_glob_reach_below(face):
    face.put("z/deep/one.md", "x")
    face.put("z/two.md", "x")
    paths = [entry["path"] for entry in face("list_directory", depth=3)["entries"]]
    assert {"z", "z/deep", "z/two.md", "z/deep/one.md"} == set(paths)
    entries = face("list_directory", depth=10, file_name_glob="t*.md")["entries"]
    paths = [entry["path"] for entry in entries]
    assert "z/two.md" in paths
    paths = [entry["path"] for entry in entries]
    assert "z/deep/one.md" not in paths


@pytest.mark.parametrize("name", ["z", "z/", "/z", "notes/z", "memory://notes/z"])
def test_a_folder_is_known_by_several_names(shared, name):
    shared.put("z/two.md", "x")
    data = shared("list_directory", dir_name=name)
    assert (data["directory"], data["total"]) == ("z", 1)


def test_a_folder_of_another_project(face):
    face.put("user/a.md", "x", "memories")
    for arguments in ({"dir_name": "user", "project": "memories"}, {"dir_name": "memories/user"}):
        data = face("list_directory", **arguments)
        assert (data["project"], data["directory"], data["total"]) == ("memories", "user", 1)


def test_pages_of_a_listing_follow_each_other(face):
    for n in range(7):
        face.put(f"{n}.md", "x")
    paths = []
    for page in (1, 2, 3):
        data = face("list_directory", page=page, page_size=3)
        paths += [entry["path"] for entry in data["entries"]]
        assert data["more"] is (page < 3)
    assert paths == [f"{n}.md" for n in range(7)]
    text = face.text("list_directory", page=1, page_size=3)
    assert text.endswith("Shown: 1-3 of 7. Next: page=2, page_size=3.")


def test_a_page_past_the_end_is_empty(face):
    face.put("a.md", "x")
    for tool in ("list_directory", "recent_activity"):
        reply = face.call(tool, page=9)
        assert not reply.is_error
        assert reply.data["total"] == 1
        assert reply.data["more"] is False
        assert reply.data["page"] == 9
        assert "Last page: 1." in reply.text

    entries = face("list_directory", page=10**30)["entries"]
    assert entries == []


def test_recent_activity_says_when_nothing_changed(face):
    text = face.text("recent_activity")
    assert "0 notes" in text
    assert "timeframe" in text


def test_the_checksum_that_a_guarded_edit_asks_for_stands_beside_the_text(face):
    written = face.write("Plan", "one")
    reply = face.call("read_note", identifier="Plan")
    assert (reply.text, reply.hint) == (
        face.file("Plan.md").read_text(),
        f"checksum: {written['checksum']}",
    )


@pytest.mark.parametrize("name", ["./plans", "plans/.", "/plans//", "notes/./plans"])
def test_a_listed_folder_is_named_as_it_lies_in_the_project(shared, name):
    shared.put("plans/2026/A.md", "one")
    reply = shared.call("list_directory", dir_name=name)
    assert reply.data["directory"] == "plans"
    assert reply.text.startswith("# notes: /plans, ")
