"""What a bank and its files may be called."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.faces.bank.bank import (
    is_bank_id,
    is_target,
    project_id,
    repository_id,
    suffixed_id,
    title_case,
)


@pytest.mark.parametrize("text", ["a", "A b.c_d-1", "翻译_项目", "हिन्दी", "naïve", "n" * 100, "-x", "x.", "auto"])
def test_letters_and_digits_of_any_script_make_an_id(text: str) -> None:
    assert is_bank_id(text)


BLANKS_AND_SIGNS = (" a", "a\tb", "a\0", "a\ud800", "\u202e", "a\u200b", "a/b", "a\\b", "a:b", "~", "*")


@pytest.mark.parametrize("text", [*BLANKS_AND_SIGNS, "", ".a", "..", "a..b", "node_modules", "n" * 101, "字" * 90])
def test_anything_else_does_not(text: str) -> None:
    assert not is_bank_id(text)


def test_a_target_is_a_relative_path_to_a_markdown_file() -> None:
    assert is_target("a.md")
    assert is_target("/".join("abcdefghi") + "/j.md")
    assert not is_target("/".join("abcdefghij") + "/k.md")
    assert is_target("b" * 97 + ".md")
    assert not is_target("b" * 98 + ".md")
    assert is_target("a" * 99 + "/" + "b" * 97 + ".md")
    assert not is_target("a" * 100 + "/" + "b" * 97 + ".md")
    for text in (
        "",
        ".md",
        "a.txt",
        "a.md/",
        "/a.md",
        "a//b.md",
        "./a.md",
        "a/../b.md",
        ".x/a.md",
        "a.MD",
        "cache.json",
    ):
        assert not is_target(text), text


@given(st.text(max_size=150))
def test_every_folder_name_gives_a_valid_id(name: str) -> None:
    id = repository_id(name)
    assert is_bank_id(id)
    assert is_bank_id(suffixed_id(id, "0a1b2c"))


def test_names_become_ids() -> None:
    assert project_id(" My \t Proj ") == "my_proj"
    assert repository_id("My Repo") == "my_repo"
    assert repository_id(".dotfiles") == "_dotfiles"
    assert repository_id("c++") == "c__"
    assert repository_id("") == "_"
    assert suffixed_id("n" * 100, "abcdef") == "n" * 93 + "-abcdef"


def test_ids_become_titles() -> None:
    assert title_case("my_proj") == "My Proj"
    assert title_case("release-plan__2") == "Release Plan 2"
    assert title_case("readMe") == "ReadMe"
