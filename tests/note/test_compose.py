"""New files of write_note and of the memory command (contract 000b, 7; contract 001, 2)."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.note.frontmatter import parse, split
from commonplace.note.markdown import Record, compose_note, parse_note

CREATED = datetime(2026, 5, 7, 10, tzinfo=UTC)
ID = "550e8400-e29b-41d4-a716-446655440000"


def composed(content: str, **more: Any) -> str:
    return compose_note(content, **{"title": "API", "permalink": "notes/specs/api", "created": CREATED} | more)


def header(text: str) -> dict[str, Any]:
    return parse(split(text).yaml or "")


def test_a_note_has_its_keys_in_order_and_a_final_newline() -> None:
    assert composed(
        "# API\n\ntext", type="spec", tags=["api", "#x", "API", ""], metadata={"status": "no", "n": 3, "v": "1.10"}
    ) == (
        "---\ntitle: API\ntype: spec\npermalink: notes/specs/api\ntags:\n  - api\n  - x\n"
        "created_at: 2026-05-07T10:00:00Z\n"
        'status: "no"\n"n": 3\nv: "1.10"\n---\n# API\n\ntext\n'
    )


def test_the_content_may_bring_its_type_permalink_and_date() -> None:
    content = "---\ntype: decision\npermalink: my/place\ncreated_at: 2020-01-01\nid: abc\n---\nbody"
    assert composed(content).startswith(
        "---\nid: abc\ntitle: API\ntype: decision\npermalink: my/place\ncreated_at: 2020-01-01\n---\nbody\n"
    )
    assert list(header(composed("---\ncreated: 2020-01-01\n---\nx"))) == ["title", "type", "permalink", "created"]


def test_metadata_may_set_the_permalink_but_not_the_title() -> None:
    found = header(composed("x", metadata={"permalink": "p/q", "title": "no", "type": "no"}))
    assert (found["permalink"], found["title"], found["type"]) == ("p/q", "API", "note")


@pytest.mark.parametrize("body", ["", "x", "x\n", "x\n\n", "---\nno header", "\n---\na: b\n---\n", "x\n---\n"])
def test_a_body_is_written_as_given(body: str) -> None:
    text = composed(body)
    assert text[split(text).body_at :] == (body if body.endswith("\n") else body + "\n")


def test_a_body_of_crlf_lines_gets_a_header_of_crlf_lines() -> None:
    text = composed("---\r\nx: y\r\n---\r\na\r\nb")
    assert text.endswith("---\r\na\r\nb\r\n")
    assert text.count("\n") == text.count("\r\n")


@pytest.mark.parametrize("own", ["a: &x 1\nb: *x", "{a: 1, b: 1}", "a: 1\nb: 1\nb: 1"])
def test_unusual_frontmatter_keeps_its_values(own: str) -> None:
    found = header(composed(f"---\n{own}\n---\nbody"))
    assert (found["a"], found["b"]) == ("1", "1")


VALUES = st.text() | st.integers() | st.booleans() | st.none() | st.lists(st.text(), max_size=3)


@given(
    st.text(st.characters(codec="utf-8")),
    st.text(min_size=1),
    st.lists(st.text(), max_size=3),
    st.dictionaries(st.text(), VALUES, max_size=3),
)
def test_what_is_written_is_read_again(body: str, title: str, tags: list[str], metadata: dict[str, Any]) -> None:
    if split(body).yaml is not None:
        return
    found = parse_note(
        composed(body, title=title, tags=tags, metadata=metadata), project="notes", path="x.md", changed=CREATED
    )
    assert found.header["title"] == title
    assert found.body.removesuffix("\n") == body.removeprefix("\ufeff").removesuffix("\n")
    for key, value in metadata.items():
        if key not in ("title", "type", "tags", "id", "permalink", "created_at"):
            assert found.header[key] == (str(value) if type(value) is int else value)


@given(st.text(st.characters(codec="utf-8")))
def test_a_memorys_content_is_kept_exactly(content: str) -> None:
    text = Record(ID, content, "inbox", CREATED, CREATED).text()
    found = parse_note(text, project="categories", path="inbox/x.md", changed=CREATED)
    assert found.content == content
    assert found.header["content_hash"] == hashlib.sha256(content.encode()).hexdigest()
    assert found.warnings == []
