"""Tags and fields inside a note's text."""

from __future__ import annotations

import pytest

from memoranda.note.inline import LEVELS, inline, levels


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("Met #anna and #work today.", ["anna", "work"]),
        ("#first in the line", ["first"]),
        ("a\n#second line", ["second"]),
        ("nested #journal/2025/03 here", ["journal/2025/03"]),
        ("glued #a#b", ["a", "b"]),
        ("twice #Work #work", ["Work"]),
        ("other scripts #日记 #заметка #café #योग #🎉", ["日记", "заметка", "café", "योग", "🎉"]),
        ("with - and _: #to-do #in_box", ["to-do", "in_box"]),
        ("a year #y1984, an issue with a word #12-fix", ["y1984", "12-fix"]),
        ("words of hexadecimal letters #bad #face #decade", ["bad", "face", "decade"]),
        ("in a list\n- item #x\n  more #y", ["x", "y"]),
        ("> quoted #q", ["q"]),
        ("tags:: a, [[b]], #c", ["a", "b", "c"]),
        ("tags:: one two", ["one", "two"]),
        ("list\n\n- a\n\n    #deep in it", ["deep"]),
        ("# Heading", []),
        ("## Heading", []),
        ("##glued", []),
        ("issue #12 and #1984", []),
        ("fixes #12, closes GH-#13", []),
        ("colours #fff #FF8800 #1a2b3c #aabbcc80 #eee", []),
        ("style color: #cafe; here", []),
        ("https://example.org/page#part and page#part", []),
        ("[shown](#part) and [[Note#Heading]] and [[#Heading]]", []),
        ("`#code` and ``a #b``", []),
        ("```sh\n#comment\n```\nafter #yes", ["yes"]),
        ("~~~\n#comment\n```\n#still\n~~~", []),
        ("text\n\n    #indented code\n\nafter", []),
        ("<!-- #hidden --> %% #hidden2 %%", []),
        ("C# and F# and #", []),
        ("#!/bin/sh", []),
        ("escaped \\#no", []),
        ("it costs $5 #", []),
    ],
)
def test_inline_tags_of_a_text_are_those_obsidian_shows(text: str, tags: list[str]) -> None:
    assert list(inline(text).tags) == tags


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("status:: draft", {"status": ["draft"]}),
        ("- due:: 2026-03-01", {"due": ["2026-03-01"]}),
        ("**Rating**:: 5", {"Rating": ["5"]}),
        ("Read it [rating:: 9] (mood:: fine)", {"rating": ["9"], "mood": ["fine"]}),
        ("author:: A\nauthor:: B", {"author": ["A", "B"]}),
        ("作者:: 李白", {"作者": ["李白"]}),
        ("use std::vector and a::b", {}),
        ("`key:: value`", {}),
        ("```\nkey:: value\n```", {}),
        ("empty::", {}),
        ("A sentence with a colon: no field", {}),
    ],
)
def test_fields_of_a_text_are_lines_and_brackets(text: str, fields: dict[str, list[str]]) -> None:
    assert inline(text).fields == fields


def test_nested_tag_is_in_all_its_levels() -> None:
    assert levels("journal/2025/03") == ["journal/2025/03", "journal/2025", "journal"]


def test_a_tag_that_is_nested_very_deep_is_found_by_its_outermost_levels():
    tag = "/".join(f"t{number}" for number in range(50_000))
    tag_levels = levels(tag)
    assert tag_levels[0] == tag
    assert tag_levels[-2:] == ["t0/t1", "t0"]
    assert len(tag_levels) == LEVELS + 1
    deepest = "/".join("abcdefghijklmnopqrstuvwxyz"[:LEVELS])
    assert levels(deepest)[0] == deepest
    assert len(levels(deepest)) == deepest.count("/") + 1
