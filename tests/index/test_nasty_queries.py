"""No input makes an engine error: contract 000b, 6."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace.index import resolve
from commonplace.index.search.evidence import find_evidence
from commonplace.query import Query, parse
from index.conftest import Desk

NASTY = [
    '"', '""', '"""', "(", ")", "*", "NEAR(", "NEAR(a b, 2)", "a NEAR b", "^a", "a^", "-a", "+a", "a:b", "title:a",
    "{title} : a", "facet:x", "a AND", "AND a", "NOT", "NOT NOT a", "OR", "a OR OR b", "a\0b", "\0", "'", "';--", "%",
    "_",
    "\\", "a\\", '"a', 'a"b"c', '"a" "', "[x]", "[[x]]", "🎉", "🎉 OR a", "\ue000", "\ue002ui", "\ud800", "a\ud800",
    "\u200b", "\ufeff", "É\u0301", "ß", "İ", "a" * 10_000, "字" * 5_000, "a " * 5_000, '"' * 999, "(" * 500,
    "OR " * 300,
    "x AND " * 300, "NOT a " * 100, "tag:", 'tag:"', "before:never", "after:0d", "café:x", "http://[::1]/", "C++",
    "#", "/",
    "//", "notes/", "/notes", "notes//x", "* *", "a*b", "...", "……", "。", "a.b.c.d", "1 2 3", "١٢٣", "𝒜", "ｱﾞ", "ㅤ",
]  # fmt: skip


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder: Path = tmp_path_factory.mktemp("nasty")
    desk = Desk(folder / "index.db")
    desk.put("a.md", "---\ntags: [ui]\n---\na b c near title facet or and not 字字字 tag before after")
    desk.put("b.md", "Other: 'quoted' text * with (signs)")
    yield desk
    desk.db.close()


@pytest.mark.parametrize("text", NASTY)
def test_a_nasty_query_is_text(shelf: Desk, text: str) -> None:
    for search_type in ("text", "title", "permalink"):
        hits = shelf.search(text, search_type=search_type)
        assert len(hits) <= hits.total
    assert shelf.search(text, viewer="x", types=("note",), tags=(text,)).total == 0
    shelf.asked(text)
    find_evidence(shelf.db, text, viewer=None)


@settings(deadline=None)
@given(st.text(max_size=60))
def test_no_text_raises(shelf: Desk, text: str) -> None:
    shelf.search(text)
    shelf.search(text, search_type="title")
    shelf.search("a", tags=(text,), types=(text,), source=text, status=text)
    shelf.asked(text)


@settings(deadline=None)
@given(st.lists(st.sampled_from([*NASTY[:60], "a", "OR", "AND", "NOT", '"a b"', "tag:ui", "字字"]), max_size=8))
def test_no_mixture_of_operators_raises(shelf: Desk, pieces: list[str]) -> None:
    hits = shelf.search(" ".join(pieces))
    assert hits.total <= 2


@settings(deadline=None)
@given(st.text(max_size=40))
def test_the_text_form_of_a_query_is_always_understood(text: str) -> None:
    assert isinstance(parse(text), Query)


@settings(deadline=None)
@given(st.text(max_size=40))
def test_suggestions_come_for_any_text(shelf: Desk, text: str) -> None:
    for name in resolve.suggestions(shelf.db, text, viewer=None):
        assert name in {"notes/a", "notes/b"}


@settings(deadline=None, max_examples=40)
@given(st.text(min_size=1, max_size=80))
def test_whatever_is_written_can_be_taken_out_again(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    desk = Desk(tmp_path_factory.mktemp("any") / "index.db")
    desk.put("n.md", f"---\ntitle: x\n---\n{text}\n- [{text[:5]}] {text} #{text[:3]}\n[[{text}]]")
    desk.check()
    assert desk.remove("n.md")
    desk.holds_nothing()
    desk.db.close()
