"""The frontmatter in the content of `write_note` for a memory: what is used, refused and named."""

from __future__ import annotations

from typing import Any

KEYS = "---\n{}\n---\nThe kettle is in the attic.\n"


def test_a_category_that_does_not_exist_is_refused(face: Any) -> None:
    reply = face.refused(
        "write_note",
        "invalid",
        title="Kettle",
        project="categories",
        content=KEYS.format("category: cats"),
    )
    assert "must be one of soul, character" in reply
    assert 'got "cats"' in reply


def test_a_source_in_the_frontmatter_is_the_source_of_the_memory(face: Any) -> None:
    written = face.write("Kettle", KEYS.format("source: diary"), project="categories")
    file = face.file(written["file_path"], "categories")
    assert "\nsource: diary\n" in file.read_text(encoding="utf-8")


def test_keys_that_a_memory_sets_itself_are_named_as_left_out(face: Any) -> None:
    content = KEYS.format("created_at: 2020-01-01\nversion: 9\nroom: attic")
    written = face.write("Kettle", content, project="categories")
    assert written["warnings"] == [
        "Left out of the frontmatter, because a memory sets it itself: created_at, version."
    ]
