"""Inline tags: what is one and where none is (contract 001, 11)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.ingest.sources import inline_tags as tags


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#tag", ["tag"]),
        ("a #tag, b", ["tag"]),
        ("(#tag) （#标签）", ["tag", "标签"]),
        ("#a/b #two_words #kebab-case #Mixed #mixed", ["a/b", "two_words", "kebab-case", "mixed"]),
        ("今天 #水边/春天，见 #三", ["水边/春天", "三"]),
        ("#123 #1a #2026-05 #٣", ["1a", "2026-05"]),
        ("#trailing/ #/ #- #_", ["trailing"]),
        ('x#glued a.#b "#c" [#d] *#e*', []),
        ("# Title #in-it #", ["in-it"]),
        ("## Closed ##\n###no-heading\n#tag-line", ["tag-line"]),
        ("- item #one\n  1. two #two\n> quote #three", ["one", "two", "three"]),
        ("\\#escaped", []),
        ("#café #हिन्दी", ["café", "हिन्दी"]),
    ],
)
def test_a_tag_stands_after_a_line_start_a_blank_or_a_parenthesis(text, expected):
    assert list(tags(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "`a #no`",
        "``a ` #no``",
        "`spans\n#no lines`",
        "```sh\n#no\n```",
        "~~~\na #no\n~~~",
        "```\n#no, never closed",
        "- item\n  ```\n  #no\n  ```",
        "para\n\n    #no",
        "<!-- #no -->",
        "%% #no %%",
    ],
)
def test_code_and_comments_hold_no_tags(text):
    assert tags(text) == ()
    assert tags(f"{text}\n\n`````\n`````\n") == ()


def test_a_tag_after_code_counts():
    assert tags("```\n#no\n```\n#yes `x` #also") == ("yes", "also")


@pytest.mark.parametrize(
    "text",
    [
        "https://a.org/#no",
        "https://a.org/(#no)",
        "[x](#no)",
        "[x]( #no )",
        "<https://a.org/#no>",
        "[x]: #no",
        "[[Page #no]]",
        "[[Page#no]]",
        "[[#no]]",
        "![[a #no|b]]",
    ],
)
def test_addresses_and_wikilinks_hold_no_tags(text):
    assert tags(text) == ()


def test_two_words_in_brackets_are_a_tag_where_asked_for():
    text = "#[[Two Words]] (#[[三 字]]) x#[[no]] `#[[no]]` #[[]] #plain"
    assert tags(text, bracketed=True) == ("two words", "三 字", "plain")
    assert tags(text) == ("plain",)


@given(
    st.text(alphabet=st.sampled_from("#[]()`~ab1 /-_\n\t>:%<!*|\\标 "), max_size=60), st.booleans()
)
def test_any_text_has_tags_of_the_form_they_must_have(text, bracketed):
    for tag in tags(text, bracketed=bracketed):
        assert tag == tag.lower()
        assert any(map(str.isalnum, tag))
        assert not tag.isdigit()
        assert f"#{tag}" in text or (bracketed and "#[[" in text)
