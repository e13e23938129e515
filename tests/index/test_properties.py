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
