"""Text as the index sees it: CJK pairs, informative words, passages."""

from __future__ import annotations

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.text import tokens as tokens_module
from memoranda.text.folding import fold, fold_places
from memoranda.text.tokens import (
    _listed_stop_words,
    fts_text,
    is_cjk,
    passages,
    query_text,
    stop_words,
    tokens,
    words,
)
from memoranda.text.words import one_word, words_in


@pytest.mark.parametrize(
    ("text", "indexed"),
    [
        ("plain words stay", "plain words stay"),
        ("重跑qx7z后", "重跑 跑 qx7z 后"),
        ("你好世界", "你好 好世 世界 界"),
        ("世", "世"),
        ("ノートブック", "ノー ート トブ ブッ ック ク"),
        ("기억을 저장", "기억 억을 을 저장 장"),
        ("ＡＰＩ文档", "api 文档 档"),
        ("café", "cafe"),
        ("\U00020bb7野家", "\U00020bb7野 野家 家"),
        ("ปูนา", "ปู\uf8f0น น\uf8f0า า\uf8f0"),
        ("ในC++", "ใ\uf8f0น น\uf8f0 c\U000f002b\U000f002b"),
        ("Wi-Fi on €5", "wi-fi on \U000f20ac 5 wifi"),
        ("getUser of v1.2", "getuser of v1.2 get user v 1 2"),
        ("in .NET", "in .net \U000f002enet"),
    ],
)
def test_runs_of_cjk_become_pairs_and_their_last_character(text: str, indexed: str) -> None:
    assert fts_text(text).split() == indexed.split()


@pytest.mark.parametrize("length", [2, 29, 30, 31, 10_000])
def test_a_run_of_any_length_becomes_its_pairs_and_its_last_character(length: int) -> None:
    run = ("記憶\U00020bb7を기억" * length)[:length]
    pairs = [run[position : position + 2] for position in range(length)]
    assert fts_text(run).split() == pairs


def test_decomposed_letters_are_composed_before_they_are_indexed() -> None:
    assert fts_text(unicodedata.normalize("NFD", "기억 é")) == fts_text("기억 é")


def test_private_use_characters_which_mark_facets_never_come_from_a_text() -> None:
    assert fts_text("a\ue000b\uf8ff\U000f0000") == "ab"
    assert query_text("\ue002ui") == ("ui", False)


@pytest.mark.parametrize(
    ("text", "phrase", "is_prefix"),
    [
        ("深色模式", "深色 色模 模式", False),
        ("色", "色", True),
        ("重跑qx7z后", "重跑 跑 qx7z 后", True),
        ("后qx7", "后 qx7", False),
        ("(*", "", False),
        ("🎉", "\U000ff389", False),
        ("C++", "c\U000f002b\U000f002b", False),
        ("มี", "มี\uf8f0", True),
    ],
)
def test_the_end_of_a_query_run_is_open(text: str, phrase: str, is_prefix: bool) -> None:
    found_text, prefix = query_text(text)
    assert (found_text.split(), prefix) == (phrase.split(), is_prefix)


def test_stop_words_are_not_informative_unless_nothing_else_is_there() -> None:
    assert words("What did the user say about dark mode?") == ["user", "dark", "mode"]
    assert words("what is it") == ["what", "is", "it"]
    assert words("用户喜欢什么颜色") == ["用户喜欢", "颜色"]


@given(st.text(alphabet=st.characters(), max_size=60))
def test_folded_text_has_a_place_in_the_text_for_each_character(text: str) -> None:
    folded, places = fold_places(text)
    assert folded == fold(text)
    if places is None:
        assert len(folded) == len(text)
    else:
        assert len(places) == len(folded)
        for place in places:
            assert 0 <= place < len(text)


@given(st.text(max_size=60))
def test_text_in_any_normal_form_and_case_folds_alike(text: str) -> None:
    folded = fold(text)
    assert fold(unicodedata.normalize("NFD", text)) == folded
    assert fold(folded) == folded


def test_folded_text_has_no_case_no_marks_and_no_wide_letters() -> None:
    assert fold("Ünï Ǻ ＡＢ１ İ 深 ß ø") == "uni a ab1 i 深 ss o"


def test_passages_end_at_headings_and_paragraphs() -> None:
    section = " ".join(["word"] * 120)
    text = f"# One\n\n{section}\n\n## Two\n\n{section}\n\n{section}\n"
    found_passages = passages(text)

    headings = [passage.heading for passage in found_passages]
    assert headings == ["One", "Two"]
    assert text[found_passages[1].start :].startswith("## Two")


def test_a_paragraph_without_end_is_cut_into_passages() -> None:
    for text in ("word " * 3000, "字" * 3000, "x" * 20_000, "Eine Zeile mit Worten.\n" * 500):
        found_passages = passages(text)
        assert len(found_passages) > 5
        assert all(passage.end - passage.start <= 3_000 for passage in found_passages)


@given(st.text(alphabet=st.sampled_from("ab 字。.\n#-"), max_size=3000))
def test_passages_cover_all_that_is_written_in_order(text: str) -> None:
    found_passages = passages(text)
    for passage in found_passages:
        assert passage.start < passage.end
    for passage, next_passage in pairwise(found_passages):
        assert passage.end <= next_passage.start
    covered = "".join(text[passage.start : passage.end] for passage in found_passages)
    assert covered.split() == text.split() or "".join(covered.split()) == "".join(text.split())


@given(st.text())
def test_words_are_tokens_of_the_text(text: str) -> None:
    lower_tokens = " ".join(tokens(text)).lower()
    for word in words(text):
        assert word in lower_tokens


def test_a_long_run_is_paired_as_a_short_one_and_pieces_make_up_the_text():
    run = "".join(chr(0x4E00 + n % 5000) for n in range(1500)) + "\U00020000重"
    expected = " ".join([*map("".join, pairwise(run)), run[-1]])
    assert fts_text(run).strip() == expected
    text = "one two\nthree 重跑 " * 50
    assert "".join(tokens_module.parts(text, 7)) == text
    part_words = []
    for part in tokens_module.parts(text, 7):
        part_words.extend(tokens(part))
    assert part_words == tokens(text)
    assert tokens("a_b-c.d\x1ee 9") == ["a", "b", "c", "d", "e", "9"]


@given(st.text(st.sampled_from("abc019 ++##.$_'\"`()-\n\t\x1c/"), max_size=20))
def test_words_of_ascii_text_are_those_of_any_text(text):
    assert words_in(text) == one_word().findall(text)


def test_stop_words_are_those_of_scripts_with_blanks():
    assert stop_words() == {word for word in _listed_stop_words() if not is_cjk(word)}
