"""What a bank and its files may be called."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.faces.bank.bank import is_bank_id, is_target, repository_id, suffixed_id


@pytest.mark.parametrize("text", ["a", "A b.c_d-1", "翻译_项目", "हिन्दी", "naïve", "n" * 100, "-x", "x.", "auto"])
def test_letters_and_digits_of_any_script_make_an_id(text: str) -> None:
    assert is_bank_id(text)


BLANKS_AND_SIGNS = (" a", "a\tb", "a\0", "a\ud800", "\u202e", "a\u200b", "a/b", "a\\b", "a:b", "~", "*")


@pytest.mark.parametrize("text", [*BLANKS_AND_SIGNS, "", ".a", "..", "a..b", "node_modules", "n" * 101, "字" * 90])
def test_anything_else_does_not(text: str) -> None:
    assert not is_bank_id(text)


def test_a_target_is_a_relative_path_to_a_markdown_file() -> None:
    deep, long = "/".join("abcdefghi"), "b" * 97 + ".md"
    for good in ("a.md", f"{deep}/j.md", long, "a" * 99 + "/" + long):
        assert is_target(good), good
    refused = ["", ".md", "a.txt", "a.md/", "/a.md", "a//b.md", "./a.md", "a/../b.md", ".x/a.md", "a.MD", "cache.json"]
    for bad in (*refused, f"{deep}/j/k.md", f"b{long}", "a" * 100 + "/" + long):
        assert not is_target(bad), bad


@given(st.text(max_size=150))
def test_every_folder_name_gives_a_valid_id(name: str) -> None:
    id = repository_id(name)
    assert is_bank_id(id)
    assert is_bank_id(suffixed_id(id, "0a1b2c"))
