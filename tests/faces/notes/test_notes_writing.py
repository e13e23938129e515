from __future__ import annotations

import pytest

pytestmark = pytest.mark.promise("000b-12.10")

CONTENT = """Some text.

- [decision] use SQLite #storage (after a test)
- [decision] one file
- [fact] it is fast
- implements [[Search]]
- see [[Storage]]
- needs [[Not There]]
"""


def test_the_reply_says_what_was_made_in_text_and_data(face):
    face.write("Search")
    face.write("Storage")
    reply = face.call(
        "write_note", title="API", content=CONTENT, directory="specs", tags=["api", "x"]
    )
    checksum = reply.data["checksum"]
    assert reply.text == (
        "# Created note\nproject: notes\nfile_path: specs/API.md\npermalink: notes/specs/api\n"
        f"checksum: {checksum}\nobservations: decision 2, fact 1\nrelations: 2 resolved, 1 not written yet\n"
        "tags: api, x"
    )
    changed = reply.data.pop("changed")
    assert changed.endswith("Z")
    assert reply.data == {
        "action": "created",
        "title": "API",
        "permalink": "notes/specs/api",
        "file_path": "specs/API.md",
        "project": "notes",
        "type": "note",
        "checksum": checksum,
        "observations": {"decision": 2, "fact": 1},
        "relations": {"resolved": 2, "unresolved": 1},
        "tags": ["api", "x"],
    }


def test_observations_without_category_are_counted_too(face):
    reply = face.call("write_note", title="A", content="- only a #tag\n- [x1] fact\n- [X1] other")
    assert reply.data["observations"] == {"x1": 2, "": 1}
    assert "observations: x1 2, without category 1" in reply.text


@pytest.mark.parametrize("directory", ["", "/", None])
def test_without_a_directory_a_note_goes_to_the_projects_root(face, directory):
    assert face.write("A", directory=directory)["file_path"] == "A.md"


def test_a_note_can_be_written_to_another_project_named_in_any_case(face):
    written = face.write("pref", "text", project="MEMORIES")
    assert written["project"] == "memories"
    assert face.file("pref.md", "memories").exists()


def test_a_memory_goes_to_its_category(face):
    written = face.write(
        "Dark mode", "user prefers dark mode", project="categories", directory="preferences"
    )
    assert written["type"] == "preferences"
    assert written["file_path"].startswith("preferences/")
    assert face("search_notes", query="dark mode")["results"][0]["project"] == "categories"


def test_a_memory_needs_one_of_the_categories(face):
    text = face.refused(
        "write_note", "invalid", title="A", content="x", project="categories", directory="stuff"
    )
    assert "`directory`" in text
    assert "preferences" in text
    assert face.write("A", project="categories", note_type="lessons")["type"] == "lessons"
    assert face.write("A", project="categories")["type"] == "inbox"


def test_a_file_that_is_no_note_is_not_overwritten(face):
    face.file("A.md").mkdir(parents=True)
    text = face.refused("write_note", "exists", title="A", content="x", overwrite=True)
    assert "Choose another title or directory." in text
    assert face.file("A.md").is_dir()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("expires_at: next blue moon", "next blue moon"),
        ("valid_until: the end", "the end"),
        ("date: 32 May", "32 May"),
        ("scope: everyone", "everyone"),
    ],
)
def test_a_header_value_that_cannot_be_read_is_named_in_the_reply(face, line, words):
    written = face.call("write_note", title="A", content=f"---\n{line}\n---\ntext", directory="x")
    edited = face.call("edit_note", identifier="x/A.md", operation="append", content="more")
    for reply in (written, edited):
        (warning,) = reply.data["warnings"]
        assert words in warning
        assert warning in reply.text


def test_a_note_with_a_readable_header_has_no_warning(face):
    content = "---\nexpires_at: 2030-01-01\nvalid_from: 2025-01-01\nscope: global\n---\ntext"
    reply = face.call("write_note", title="A", content=content, directory="x")
    assert "warnings" not in reply.data


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("expires_at: next blue moon", "expires_at"),
        ("expires_at: [2030-01-01]", "expires_at"),
        ("tags: {a: 1}", "tags"),
        ("scope: everyone", "scope"),
        ("category: cats", "category"),
    ],
)
def test_a_header_value_that_a_memory_cannot_take_is_refused(face, line, key):
    reply = face.call(
        "write_note",
        title="A",
        content=f"---\n{line}\n---\nzq47",
        project="categories",
        directory="knowledge",
    )
    assert reply.is_error
    assert key in reply.text
    assert face("search_notes", query="zq47")["results"] == []


def test_a_memory_takes_the_values_of_its_header(face):
    content = "---\nexpires_at: 2030-01-01\nscope: agent:claude\ntags: 2026\n---\ntext"
    written = face.write("A", content, project="categories", directory="knowledge")
    info = face.memory.find(written["permalink"])
    assert info.scope == "agent:claude"
    assert info.expires == "2030-01-01T00:00:00Z"
    assert info.tags == ("2026",)


def test_a_memory_keeps_the_time_and_the_source_of_its_header(face):
    content = "---\ncreated_at: 2020-01-01T00:00:00Z\nsource: diary\n---\ntext"
    written = face.write("A", content, project="categories", directory="knowledge")
    info = face.memory.find(written["permalink"])
    assert (info.created, info.source) == ("2020-01-01T00:00:00Z", "diary")
    assert "warnings" not in written


@pytest.mark.parametrize(
    "line", ["id: abcd", "content_hash: x", "phase: inbox", "version: 7", "links: [a]"]
)
def test_a_header_key_that_a_memory_sets_itself_is_named(face, line):
    key, _, _ = line.partition(":")
    written = face.write(
        "A", f"---\n{line}\n---\ntext", project="categories", directory="knowledge"
    )
    assert any(warning.endswith(f": {key}") for warning in written["warnings"])


def test_the_title_of_the_call_wins_over_the_header_of_a_memory(face):
    written = face.write("A", "---\ntitle: B\n---\ntext", project="categories")
    assert written["title"] == "A"


def test_a_category_in_the_metadata_places_a_memory(face):
    written = face.write("A", project="categories", metadata={"category": "people"})
    assert written["file_path"].startswith("people/")


@pytest.mark.parametrize("line", ["expires_at:", "expires_at: null", "tags:", "scope:"])
def test_an_empty_header_value_of_a_memory_counts_as_none(face, line):
    written = face.write(
        "A", f"---\n{line}\n---\ntext", project="categories", directory="knowledge"
    )
    info = face.memory.find(written["permalink"])
    assert (info.expires, info.tags, info.scope) == (None, (), "global")
