"""A memory whose header does not parse stays in list, search, read and edit, marked."""

from __future__ import annotations

from typing import Any

import pytest

from contract.home_kinds import prepared
from contract.note_tools import put

ID = "550e8400-e29b-41d4-a716-446655440000"
HEADERS = [
    "title: x: y",
    "title: [unclosed",
    "title: 'never closed",
    'title: "never closed',
    "tags: [a, b",
    "tags: {a",
    "tags:\n\t- a",
    "title: @at",
    "title: `tick",
    "title: %percent",
    "title: *gone",
    "title: a\n  b: c",
    "- item",
    "just words",
    "title: |\n a\nb",
    "? [a",
    "title: !!binary [",
    ": : :",
    "key: value: - other",
    "title: a #b\n c: [",
]


@pytest.fixture(params=HEADERS)
def broken(terminal: Any, request: pytest.FixtureRequest) -> Any:
    text = f"---\nid: {ID}\ncategory: soul\n{request.param}\n---\nthe zebra runs\n"
    put(prepared(terminal.home) / "categories/soul/broken.md", text)
    return terminal


def test_memory_with_a_broken_header_is_found_everywhere_and_marked(broken: Any) -> None:
    assert "[header not read] the zebra runs" in broken.ok("list")
    assert "[header not read] the zebra runs" in broken.ok("search", "zebra")
    output = broken.ok("read", ID[:8])
    assert "\nHeader: the frontmatter is not read, " in output
    assert output.endswith("\nthe zebra runs\n")
    header_error = broken("read", ID, "--json").json["memory"]["header_error"]
    assert header_error


def test_memory_with_a_broken_header_is_edited_with_its_header_left(
    broken: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = broken.home / "categories/soul/broken.md"
    before = file.read_text()
    monkeypatch.setenv("EDITOR", "sed -i s/zebra/lion/")

    broken.ok("edit", ID[:8])

    text = file.read_text()
    assert text == before.replace("zebra", "lion")


def test_upkeep_leaves_a_memory_with_a_broken_header_alone(broken: Any) -> None:
    file = broken.home / "categories/soul/broken.md"
    before = file.read_text()

    broken.ok("read", ID[:8])
    broken.ok("tidy")

    assert file.read_text() == before
    out = broken("doctor").out
    assert f"error bad_frontmatter categories/soul/{file.name}: " in out


def test_header_that_was_corrected_is_marked_no_longer(broken: Any) -> None:
    file = broken.home / "categories/soul/broken.md"
    broken.ok("list")
    file.write_text(f"---\nid: {ID}\ncategory: soul\n---\nthe zebra runs\n")

    assert "[header not read]" not in broken.ok("list")
    memory = broken("read", ID, "--json").json["memory"]
    assert "header_error" not in memory


@pytest.mark.parametrize(
    ("content", "shown", "complaint"),
    [
        (b"caf\xe9 quokka\n", "caf\ufffd quokka", "bytes that are not UTF-8"),
        (b"\xff\xfeq\x00u\x00o\x00", "quo", "it is UTF-16 text"),
    ],
)
def test_reading_a_file_that_is_not_utf8_says_so(
    terminal: Any, content: bytes, shown: str, complaint: str
) -> None:
    folder = terminal.home / "notes"
    folder.mkdir(parents=True)
    (folder / "odd.md").write_bytes(content)

    ran = terminal("read", "odd")

    assert shown in ran.out
    assert f"warning: notes/odd.md: {complaint}" in ran.err
    assert terminal("read", "odd", "--json").status == 0
