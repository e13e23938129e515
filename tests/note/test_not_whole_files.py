"""A text with the marks of a stopped merge, and a memory whose file is cut in its header."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memoranda.note.markdown import parse_note
from memoranda.note.model import BAD_HEADER, MERGE_CONFLICT, warning_text

CHANGED = datetime(2026, 5, 7, tzinfo=UTC)
ID = "387bbf7c-884c-4622-bf17-cf95197ab978"
CONFLICT = "<<<<<<< HEAD\ncoffee\n=======\ntea\n>>>>>>> c747ce0 (three)\n"


def complaint(text: str, code: str, project: str = "notes") -> str | None:
    note = parse_note(text, project=project, path="a.md", changed=CHANGED)
    return warning_text(note.warnings, code)


@pytest.mark.parametrize("project", ["notes", "categories"])
@pytest.mark.parametrize(
    ("before", "line"), [("", 1), ("# Plan\n\n", 3), ("---\ntags: [a]\n---\ntext\n", 5)]
)
def test_conflict_of_a_merge_is_named_with_its_line(before: str, line: int, project: str) -> None:
    for text in (before + CONFLICT, (before + CONFLICT).replace("\n", "\r\n")):
        assert f"at line {line}," in (complaint(text, MERGE_CONFLICT, project) or "")


def test_conflict_in_a_header_is_named_beside_the_header() -> None:
    text = f"---\nid: {ID}\n{CONFLICT}---\ntext\n"
    assert "at line 3," in (complaint(text, MERGE_CONFLICT, "categories") or "")
    assert complaint(text, BAD_HEADER, "categories")


@pytest.mark.parametrize(
    "text",
    [
        f"```\n{CONFLICT}```\n",
        "<<<<<<< HEAD\nno end\n",
        "Heading\n=======\n\ntext\n",
        "in a line <<<<<<< HEAD\n=======\n>>>>>>> x\n",
        ">>>>>>> quoted\n=======\n<<<<<<< backwards\n",
    ],
)
def test_text_that_is_no_conflict_has_no_complaint(text: str) -> None:
    assert complaint(text, MERGE_CONFLICT) is None


@pytest.mark.parametrize("start", ["", "\ufeff"])
@pytest.mark.parametrize("rest", ["", "\ncontent_hash: 9f", "\nscope: agent:ann\nthe text\n"])
def test_memory_cut_in_its_header_is_named(start: str, rest: str) -> None:
    text = f"{start}---\nid: {ID}{rest}"
    assert "is missing" in (complaint(text, BAD_HEADER, "categories") or "")
    assert complaint(text, BAD_HEADER, "notes") is None


@pytest.mark.parametrize("text", ["---\ntitle: never closed\ntext\n", "---\nA rule first\n", "---"])
def test_text_by_hand_below_a_rule_has_no_complaint(text: str) -> None:
    assert complaint(text, BAD_HEADER, "categories") is None
