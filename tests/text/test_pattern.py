"""Patterns that are compiled when they are first used (our own design)."""

from __future__ import annotations

import re

import pytest

from memoranda.text.pattern import lazy_pattern


def test_a_lazy_pattern_answers_as_the_compiled_one() -> None:
    lazy = lazy_pattern(r"(?P<word>[a-z]+)(\d*)", re.IGNORECASE)
    usual = re.compile(r"(?P<word>[a-z]+)(\d*)", re.IGNORECASE)
    text = "Ab1 cd 22 ef"
    matches = lazy.findall(text)
    assert matches == usual.findall(text)
    assert lazy.sub("-", text) == usual.sub("-", text)
    assert lazy.subn("-", text) == usual.subn("-", text)
    assert lazy.split(text) == usual.split(text)
    assert [match.span() for match in lazy.finditer(text)] == [
        match.span() for match in usual.finditer(text)
    ]
    for method in ("match", "search", "fullmatch"):
        matched = getattr(lazy, method)("ab12")
        assert matched is not None
        assert matched["word"] == "ab"
    assert lazy.pattern == usual.pattern
    assert lazy.flags == usual.flags
    assert lazy.groups == usual.groups


def test_a_broken_lazy_pattern_is_refused_at_its_first_use() -> None:
    broken = lazy_pattern("(")
    with pytest.raises(re.error):
        broken.search("x")


def test_nothing_is_compiled_before_the_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    usual = re.compile

    def counting(source: str, flags: int = 0) -> re.Pattern[str]:
        compiled.append(source)
        return usual(source, flags)

    monkeypatch.setattr(re, "compile", counting)
    lazy = lazy_pattern("only-once")
    assert compiled == []
    assert lazy.search("only-once")
    assert lazy.fullmatch("only-once")
    assert compiled == ["only-once"]
