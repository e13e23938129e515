"""The words and scores of smart search (contract 001, 14)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace import Draft, InvalidInput, Memory, open_memory
from commonplace.index.search import smart_tokens
from commonplace.query import memory_query

NOW = datetime(2026, 5, 7, 10, tzinfo=UTC)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with open_memory(tmp_path / "home", clock=lambda: NOW, watch=False) as opened:
        yield opened


def put(memory: Memory, text: str, **more: object) -> str:
    return memory.write(Draft(text, project="categories", category="knowledge", **more)).id  # type: ignore[arg-type]


def score(memory: Memory, query: str) -> list[float]:
    return [each.score for each in memory.smart_search(query).best]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Dark-Mode 模式 hello hello", ["dark", "mode", "模", "式", "hello"]),
        ("深色深mode2", ["深", "色", "mode2"]),
        ("qx7z後k8s", ["qx7z", "後", "k8s"]),
        ("snake_case a.b", ["snake", "case", "a", "b"]),
        ("ÜBER Ölof", ["über", "ölof"]),
        ("カタカナ 한국어", ["カタカナ", "한국어"]),
        ("々〇", ["々", "〇"]),
        ("½ ² …", []),
        ("", []),
    ],
)
def test_words_are_han_characters_and_runs_of_letters_and_digits(text: str, expected: list[str]) -> None:
    assert smart_tokens(text) == expected


@pytest.mark.parametrize(("times", "expected"), [(1, 1.0), (2, 1.5), (3, 2.0), (4, 2.0), (5, 3.0), (9, 3.0)])
def test_a_word_adds_by_how_often_it_stands_there(memory: Memory, times: int, expected: float) -> None:
    put(memory, " ".join(["Dark"] * times))
    assert score(memory, "dark") == [expected]


def test_a_word_counts_inside_longer_ones_without_overlap(memory: Memory) -> None:
    put(memory, "aaaa banana")
    assert score(memory, "aa") == [1.5]
    assert score(memory, "an") == [1.5]


def test_the_frontmatter_is_no_content(memory: Memory) -> None:
    put(memory, "x", tags=["preferences"])
    assert memory.smart_search("knowledge preferences organized").total == 0


def test_a_tag_counts_only_with_the_word_in_the_text(memory: Memory) -> None:
    put(memory, "dark", tags=["Dark", "dark mode"])
    assert score(memory, "dark") == [2.0]
    assert score(memory, "dark mode") == [2.0]
    put(memory, "nothing", tags=["mode"])
    assert memory.smart_search("mode").total == 0


def test_the_best_come_first_then_the_newest_then_by_id(tmp_path: Path) -> None:
    time = [NOW]
    with open_memory(tmp_path / "home", clock=lambda: time[0], watch=False) as memory:
        best = put(memory, "dark dark")
        older = sorted(put(memory, f"dark {number}") for number in range(4))
        time[0] += timedelta(days=1)
        newest = put(memory, "newest dark")
        assert [each.note.id for each in memory.smart_search("dark").best] == [best, newest, *older]


def test_a_query_without_a_letter_is_refused(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match="no valid tokens in query"):
        memory.smart_search("!?")


def test_only_memories_of_categories_are_found(memory: Memory) -> None:
    memory.write(Draft("dark", title="A", project="notes"))
    assert memory.smart_search("dark").total == 0


def test_changes_by_hand_are_seen(memory: Memory) -> None:
    ref = put(memory, "dark")
    place = memory.home / "categories" / memory.memory_id(ref).path
    place.write_bytes(place.read_bytes().replace(b"dark", b"light and more"))
    assert memory.smart_search("dark").total == 0
    assert score(memory, "light") == [1.0]


def test_an_agent_finds_and_counts_its_own_and_what_is_global(memory: Memory) -> None:
    for scope in ("global", "agent:x", "agent:y"):
        put(memory, f"dark {scope}", scope=scope)
    found = memory.as_caller("x").smart_search("dark agent y", 0)
    assert sorted(each.note.scope for each in found.best) == ["agent:x", "global"]
    assert found.total == 2
    assert memory.as_caller("x").smart_search("dark", 10, memory_query(scope="agent:y")).total == 0
    assert memory.smart_search("dark").total == 3


PIECES = st.sampled_from(
    ["dark", "Dark", "DARKER", "ui", " ", "-", "深", "色", "é", "É", "İ", "ß", "ẞ", "\u212a8s", "\n", "x"]
)
TEXTS = st.lists(PIECES, min_size=1, max_size=12).map("".join).filter(str.strip)


@settings(max_examples=25, deadline=None)
@given(texts=st.lists(TEXTS, min_size=1, max_size=4), query=TEXTS)
def test_the_scores_are_those_of_the_definition(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], query: str
) -> None:
    def weight(count: int) -> float:
        return 0 if not count else 1 if count == 1 else 1.5 if count == 2 else 2 if count < 5 else 3

    expected = [sum(weight(text.lower().count(token)) for token in smart_tokens(query)) for text in texts]
    with open_memory(tmp_path_factory.mktemp("home"), watch=False) as memory:
        for text in texts:
            put(memory, text)
        if smart_tokens(query):
            assert score(memory, query) == sorted((each for each in expected if each), reverse=True)
