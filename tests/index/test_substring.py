"""Substring filters: the cached folded texts answer as the index does, whatever happened since."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.index.conftest import Desk

from memoranda.index import listing
from memoranda.query import Query
from memoranda.text.folding import fold

PIECES = (
    "Straße",
    "STRASSE",
    "K",
    "heron",
    "Heron ",
    "苍鹭在河边",
    "İstanbul",
    "🦩 flamingo",
    "a\0b",
    "ﬁne",
    "x",
    "",
)
NEEDLES = (
    "strasse",
    "k",
    "HERON",
    "鹭在",
    "i",
    "🦩",
    "a\0b",
    "\0",
    "fine",
    "fi",
    "n x",
    "heron h",
    "zz",
)


# A title is looked at, too; it is the name of the file here
def expected_paths(texts: dict[str, str], needle: str) -> list[str]:
    return sorted(
        path
        for path, text in texts.items()
        if needle.casefold() in text.casefold() or needle in path.removesuffix(".md")
    )


def held(desk: Desk, needle: str, **filters: object) -> list[str]:
    query = Query(contains=needle, order="path", **filters)  # type: ignore[arg-type]
    notes, total = listing.listing(desk.db, query, viewer=None, limit=None)
    assert total == len(notes)
    return [info.path for info in notes]


steps = st.lists(
    st.tuples(st.integers(0, 5), st.lists(st.sampled_from(PIECES), max_size=3).map("".join)),
    min_size=1,
    max_size=14,
)


@pytest.mark.slow
@given(steps)
def test_cached_texts_find_what_a_look_at_each_text_finds(changes: list[tuple[int, str]]) -> None:
    with TemporaryDirectory() as folder:
        desk = Desk(Path(folder) / "index.db")
        texts: dict[str, str] = {}
        for at, (number, text) in enumerate(changes):
            path = f"{number}.md"
            if text and path in texts and at % 3 == 0:
                desk.remove(path)
                del texts[path]
            else:
                desk.put(path, text)
                texts[path] = text
            needle = NEEDLES[at % len(NEEDLES)]
            assert held(desk, needle) == expected_paths(texts, needle)
        for needle in NEEDLES:
            assert held(desk, needle) == expected_paths(texts, needle)
        desk.db.close()


def test_filters_count_for_cached_texts(desk: Desk) -> None:
    desk.put("a.md", "---\ntags: [bird]\n---\nA heron.\n")
    desk.put("b.md", "Another heron.\n", project="other")
    for _ in range(3):
        assert held(desk, "heron") == ["a.md", "b.md"]
        assert held(desk, "heron", tags=("bird",)) == ["a.md"]
        assert held(desk, "heron", projects=("other",)) == ["b.md"]
        assert held(desk, "heron", projects=("none",)) == []


def test_no_text_is_read_where_no_project_is_left(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.put("a.md", "A heron.\n")
    monkeypatch.setattr(listing, "_rows_containing", lambda texts, _: pytest.fail("texts are read"))
    assert held(desk, "heron", projects=("none",)) == []


def test_texts_too_large_for_the_cache_are_looked_at_each_time(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "MAX_BYTES", 400)
    for number in range(6):
        desk.put(f"{number}.md", f"Straße {number}")
        assert [held(desk, "STRASSE") for _ in range(3)] == [
            [f"{count}.md" for count in range(number + 1)]
        ] * 3


def told_characters() -> list[str]:
    """Each character beyond ASCII, of the planes that hold nothing or private signs every 61st.

    What is in those planes is folded by its category alone.
    """
    characters = [chr(code) for code in range(0x80, 0x110000) if not 0xD800 <= code < 0xE000]
    uniform = [
        character for character in characters if ord(character) >> 16 in (*range(4, 14), 15, 16)
    ]
    assert {unicodedata.category(character) for character in uniform} <= {"Cn", "Co"}
    singly_checked = [
        character for character in characters if ord(character) >> 16 in (0, 1, 2, 3, 14)
    ]
    assert len(singly_checked) + len(uniform) == len(characters)
    return [*singly_checked, *uniform[::61]]


@pytest.mark.slow
def test_sqlite_leaves_out_nothing_that_python_would_find() -> None:
    characters = told_characters()
    # Folded a line each, which is faster than alone, and no sequence reaches over a line's end
    folded = fold("\n".join(characters)).split("\n")
    missed = [
        character
        for character, form in zip(characters, folded, strict=True)
        if not form or any(map(str.isascii, form))
    ]
    assert len(missed) > 5000
    assert [character for character in missed if not listing.folds(character)] == []
    assert listing.folds("\0")


@pytest.mark.parametrize("needle", ["100%", "a_b", "back\\slash", "%", "_", "\\", "x" * 12_000])
def test_signs_of_like_are_signs_of_the_text(desk: Desk, needle: str) -> None:
    desk.put("a.md", f"so {needle} it stands")
    desk.put("b.md", "so 100 it stands, axb, backslash, x")
    assert held(desk, needle) == ["a.md"]


def test_a_whole_page_pasted_is_looked_for_too(desk: Desk) -> None:
    page = "".join(f"sentence {number}. " for number in range(200))
    desk.put("a.md", f"before {page} after")
    desk.put("b.md", "sentence 1.")
    assert [held(desk, page) for _ in range(3)] == [["a.md"]] * 3


def test_in_a_small_project_beside_a_large_one_the_same_is_found(desk: Desk) -> None:
    desk.put_all({f"{number}.md": f"Straße {number}" for number in range(40)}, project="large")
    desk.put_all({"a.md": "in der STRASSE", "b.md": "nothing"}, project="small")
    for needle in ("strasse", "STRAßE", "%"):
        query = Query(contains=needle, projects=("small",))
        notes, total = listing.listing(desk.db, query, viewer=None, limit=None)
        paths = [info.path for info in notes]
        assert paths == (["a.md"] if needle != "%" else [])
        assert total == len(notes)
