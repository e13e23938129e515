"""Words with signs are found with what stands right behind them: a version, a slash, a hyphen."""

from __future__ import annotations

from pathlib import Path

import pytest

from index.conftest import Desk


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("C++20 modules", "C++"),
        ("C++20 modules", "C++20"),
        ("C++20 modules", '"C++20"'),
        ("the c++17 standard", "C++17"),
        ("C++/CLI and C#", "C++"),
        ("C++-style casts", "C++"),
        ("built with g++-12", "g++"),
        ("built with g++12", "g++"),
        ("C#12 records", "C#"),
        ("C#12 records", "C#12"),
        ("F#8 news", "F#"),
        ("a C++'s rule", "C++"),
        ("学习C++20模块", "C++"),
        ("issue#12 is open", "issue"),
        ("issue#12 is open", "12"),
        ("see abc#1", "abc"),
        ("notepad++ 8", "notepad++"),
    ],
)
def test_word_with_signs_is_found(tmp_path: Path, text: str, query: str) -> None:
    desk = Desk(tmp_path / "index.db")
    desk.put("a.md", text)
    desk.put("b.md", "another note about cooking")
    assert desk.found(query) == ["a.md"]
    desk.index.close()


@pytest.mark.parametrize(
    ("text", "query"),
    [("the C language, 20 years", "C++20"), ("C and 12", "C#12"), ("C++20", "C#"), ("C#12", "F#")],
)
def test_another_language_is_not_found_for_it(tmp_path: Path, text: str, query: str) -> None:
    desk = Desk(tmp_path / "index.db")
    desk.put("a.md", text)
    assert desk.found(query) == []
    desk.index.close()
