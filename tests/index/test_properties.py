"""Header values, inline tags and fields are searched and filtered."""

from __future__ import annotations

import pytest
from tests.index.conftest import Desk

NOTES = {
    "book.md": "---\nauthor: Ursula Vane\nrating: 4\nstatus: draft\n---\nA quiet story.\n",
    "day.md": "Walked along the river.\n\n#journal/2025 mood:: calm\n",
    "log.md": "---\ntags: [journal/2024/winter]\n---\nSnow.\n\nmood:: calm\nscore:: 7\n",
    "other.md": "A quiet evening, see page#journal.\n\n```\n#journal\nmood:: calm\n```\n",
}


@pytest.fixture
def vault(desk: Desk) -> Desk:
    desk.put_all(NOTES)
    return desk


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("ursula", ["book.md"]),
        ("quiet vane", ["book.md"]),
        ("tag:journal", ["day.md", "log.md"]),
        ("tag:#journal", ["day.md", "log.md"]),
        ("tag:journal/2025", ["day.md"]),
        ("tag:journal/2024", ["log.md"]),
        ("tag:journal/20", []),
        ("tag:2025", []),
        ("snow tag:journal", ["log.md"]),
        ("status:draft", ["book.md"]),
    ],
)
def test_query_finds_what_header_and_inline_tags_say(
    vault: Desk, text: str, paths: list[str]
) -> None:
    assert sorted(vault.asked(text)) == paths


@pytest.mark.parametrize("form", ["\u00e9t\u00e9", "e\u0301te\u0301", "E\u0301T\u00c9"])
def test_tag_and_status_are_found_in_either_unicode_form(desk: Desk, form: str) -> None:
    composed = "\u00e9t\u00e9"
    decomposed = "e\u0301te\u0301"
    desk.put("a.md", f"Warm #{composed}/x\n")
    desk.put("b.md", f"Warm #{decomposed}/x\n")
    desk.put("c.md", f"---\ntags: [{composed}]\n---\n")
    desk.put("d.md", f"---\ntags: [{decomposed}]\n---\n")
    desk.put("e.md", f"---\nstatus: {decomposed}\n---\n")
    tagged = desk.asked(f"tag:{form}")
    assert sorted(tagged) == ["a.md", "b.md", "c.md", "d.md"]
    with_status = desk.asked(f"status:{form}")
    assert with_status == ["e.md"]


@pytest.mark.parametrize(
    ("metadata", "paths"),
    [
        ({"mood": "calm"}, ["log.md"]),
        ({"score": {"$gte": 5}}, ["log.md"]),
        ({"rating": {"$gte": 4}}, ["book.md"]),
        ({"author": "Ursula Vane"}, ["book.md"]),
    ],
)
def test_metadata_filter_reads_header_values_and_fields(
    vault: Desk, metadata: dict[str, object], paths: list[str]
) -> None:
    assert sorted(vault.list(metadata=metadata)) == paths


def test_note_with_properties_leaves_no_word_behind(vault: Desk) -> None:
    for path in NOTES:
        vault.put(path, "Nothing of this.")
    assert vault.asked("ursula") == []
    assert vault.asked("tag:journal") == []
    for path in NOTES:
        vault.remove(path)
    vault.check()
