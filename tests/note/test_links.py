"""Slugs, permalinks, folded keys, links, addresses and file names (contract 000b, 3.3, 3.4, 4, 7;
001, 2).
"""

from __future__ import annotations

import time
from pathlib import PurePosixPath

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from memoranda.errors import InvalidInput
from memoranda.note import links
from memoranda.note.links import (
    file_name,
    fold,
    fold_title,
    memory_file_name,
    parse_address,
    parse_link,
    permalink_for,
    slug,
)

ID = "7f8d9e00-1111-4222-8333-444455556666"


@pytest.mark.promise("000b-12.5")
@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("specs/API (v2).md", "specs/api-v2"),
        ("CamelCase Note", "camel-case-note"),
        ("v2.0.0", "v2.0.0"),
        ("C++ & C#", "c-c"),
        ("测试 Note文档", "测试-note-文档"),
        ("ノート", "ノート"),
        ("기억 00001", "기억-00001"),
        ("HTMLParser", "htmlparser"),
        ("v2Beta", "v2-beta"),
        ("a_b--c", "a-b-c"),
        ("(x)/ [y] /z!.markdown", "x/y/z"),
        ("don't can’t", "dont-cant"),
        ("Ünïcödé Straße", "unicode-straße"),
        ("ＡＢＣ－１２", "abc-12"),
        ("e\u0301te\u0301", "ete"),
        ("Русский Ёж", "русский-ёж"),
        ("हिन्दी", "हिन्दी"),
        ("日本語API入門", "日本語-api-入門"),
        ("第3章", "第3章"),
        ("naïveBayes", "naive-bayes"),
        ("🎉", ""),
        ("a/🎉/b", "a/b"),
        ("a//b/", "a/b"),
        ("İstanbul", "istanbul"),
        ("file.md.md", "file.md"),
        ("!../a", "a"),
        ("...", ""),
        ("ÉtéÉté", "ete-ete"),
    ],
)
def test_a_path_has_this_slug(path: str, expected: str) -> None:
    assert slug(path) == expected


@given(st.text())
def test_a_slug_is_its_own_slug(text: str) -> None:
    assert slug(slug(text) + "/x") == slug(text + "/x")


def test_a_permalink_is_the_project_and_the_slug_of_the_path() -> None:
    assert permalink_for("notes", "specs/API (v2).md") == "notes/specs/api-v2"
    assert permalink_for("My Notes", "🎉.md") == "my-notes/untitled"


NAMES = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_characters="\u0345"), max_size=20),
    st.text(
        st.sampled_from("aAzZßẞİıéÉñ_- ./'’ʼ0９Ａ（™½²ǅΣςがｶﾞ기中ﬀ\u0301\u0939\u093f"), max_size=12
    ),
)
"""U+0345, a mark whose capital is a letter, is left out."""


@given(NAMES)
def test_a_name_and_its_slug_fold_alike(name: str) -> None:
    if slug(name):
        assert fold(slug(name)) == fold(name)


@given(
    NAMES,
    st.sampled_from([" ", "_", "-", "  ", "- "]),
    st.sampled_from([" ", "_", "-", "\t"]),
    NAMES,
)
def test_titles_of_one_folded_form_fold_alike(
    beginning: str, first_form: str, second_form: str, right: str
) -> None:
    for first, second in (
        (beginning + first_form + right, beginning + second_form + right),
        (beginning, beginning.upper()),
        (beginning, beginning.swapcase()),
    ):
        if fold_title(first) == fold_title(second) and fold_title(first).strip(".md") not in (
            "",
            "arkdown",
        ):
            assert fold(first.removesuffix(".")) == fold(second.removesuffix("."))


@given(NAMES)
def test_a_path_folds_like_the_path_without_its_extension(path: str) -> None:
    assume(not path.strip().lower().endswith((".md", ".markdown")))
    assert fold(f"a/{path}.md") == fold(f"a/{path.strip()}")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Search Spec.md", "searchspec"),
        ("notes/search-spec", "notessearchspec"),
        ("Ünï_CÖDE", "unicode"),
        ("C++", "c"),
        ("🎉!", "🎉!"),
        ("ＡＰＩ２", "api2"),
        (" - ", "-"),
        ("don’t", "dont"),
    ],
)
def test_a_name_folds_to_its_letters_and_digits(name: str, expected: str) -> None:
    assert fold(name) == expected


def test_the_folded_title_makes_case_blanks_and_hyphens_alike() -> None:
    assert (
        fold_title(" Search_Spec  TWO-three ")
        == fold_title("search spec two three")
        == "search spec two three"
    )
    assert fold_title("Straße") == fold_title("STRASSE")
    assert fold_title("Café") != fold_title("Cafe")


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        ("Target", (None, "Target")),
        (" Target ", (None, "Target")),
        ("Target|shown", (None, "Target")),
        ("Target\\|shown", (None, "Target")),
        ("Target#Heading|x", (None, "Target")),
        ("Target#^block", (None, "Target")),
        ("#Heading", (None, "")),
        ("|x", (None, "")),
        ("notes::Target", ("notes", "Target")),
        (" my notes :: T#H|x", ("my notes", "T")),
        ("::Target", (None, "::Target")),
        ("a::", (None, "a::")),
        ("a/b::c", (None, "a/b::c")),
        ("C#", (None, "C#")),
        ("a::b::c", ("a", "b::c")),
        ("x::C#", ("x", "C#")),
    ],
)
def test_the_inside_of_a_link_is_read(inner: str, expected: tuple[str | None, str]) -> None:
    assert parse_link(inner) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("memory://notes/a%20b", "notes/a b"),
        ("MEMORY://x", "x"),
        ("memory://notes/*", "notes/*"),
        (" notes/Search spec ", "notes/Search spec"),
        ("100% done", "100% done"),
        ("memory://a%2Fb%25", "a/b%"),
        ("a..b", "a..b"),
        ("Note: x", "Note: x"),
        ("memory://%E6%B5%8B", "测"),
        (".../a", ".../a"),
    ],
)
def test_an_address_is_read(text: str, expected: str) -> None:
    assert parse_address(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "  ", "memory://", "https://example.org", "file://x", "a\0b", "memory://%00", "x" * 2049],
)
def test_an_address_of_another_kind_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_address(text)


def test_an_address_encoded_many_times_is_read_at_once() -> None:
    started = time.process_time()
    parse_address("memory://" + "%25" * 600 + "2e")
    assert time.process_time() - started < 5


@given(st.text(st.characters(codec=None), max_size=300))
def test_every_title_makes_a_name_of_one_visible_file(title: str) -> None:
    name = file_name(title)
    assert PurePosixPath(name).name == name
    assert not name.startswith(".")
    assert len(name.encode()) <= 203
    assert len(name) > 3


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("hello", "hello-7f8d9e00.md"),
        ("# User prefers dark mode\nand more", "user-prefers-dark-mode-7f8d9e00.md"),
        ("🎉🎉", "memory-7f8d9e00.md"),
        ("", "memory-7f8d9e00.md"),
        ("\n\nsecond line", "second-line-7f8d9e00.md"),
        (
            "one two three four five six seven eight nine ten eleven",
            "one-two-three-four-five-six-seven-eight-nine-ten-7f8d9e00.md",
        ),
        ("word " * 9 + "end", "-".join(["word"] * 9) + "-end-7f8d9e00.md"),
        ("x" * 60, "x" * 48 + "-7f8d9e00.md"),
        ("用户喜欢深色模式" * 8, "用户喜欢深色模式" * 6 + "-7f8d9e00.md"),
        ("a/b c.", "a-b-c-7f8d9e00.md"),
        (".git is hidden", "git-is-hidden-7f8d9e00.md"),
        ("v2.0 is out\r\nx", "v2.0-is-out-7f8d9e00.md"),
    ],
)
def test_a_memory_has_this_file_name(content: str, expected: str) -> None:
    assert memory_file_name(content, ID) == expected


def test_a_first_line_as_long_as_a_note_is_made_into_a_name_by_its_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lengths: list[int] = []

    def measured_slug(path: str) -> str:
        lengths.append(len(path))
        return slug(path)

    monkeypatch.setattr(links, "slug", measured_slug)

    assert memory_file_name("记忆" * 500_000, ID).startswith("记忆记忆")
    assert lengths == [10_000]


def test_observation_with_very_many_tags_has_the_first_thousand():
    text = " ".join(f"#t{number}" for number in range(1_200))
    observation = links.tagged(text, text, number=1)
    assert observation.tags == tuple(f"t{number}" for number in range(1_000))
