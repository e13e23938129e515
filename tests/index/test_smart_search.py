"""The words and scores of smart search (contract 001, 14)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda import Draft, InvalidInput
from memoranda.engine import MemorySession, open_session
from memoranda.index import search as index_search
from memoranda.index.search import smart_tokens
from memoranda.index.search.many_tokens import ManyTokens
from memoranda.query import memory_query

NOW = datetime(2026, 5, 7, 10, tzinfo=UTC)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemorySession]:
    with open_session(tmp_path / "home", clock=lambda: NOW, watch=False) as opened:
        yield opened


def put(memory: MemorySession, text: str, **more: object) -> str:
    return memory.write(Draft(text, project="categories", category="knowledge", **more)).id  # type: ignore[arg-type]


def score(memory: MemorySession, query: str) -> list[float]:
    return [hit.score for hit in memory.smart_search(query).best]


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
def test_words_are_han_characters_and_runs_of_letters_and_digits(
    text: str, expected: list[str]
) -> None:
    assert smart_tokens(text) == expected


def test_stop_words_count_only_where_there_is_nothing_else(memory: MemorySession) -> None:
    oven_id = put(memory, "The oven is in the kitchen")
    put(memory, "What is this and where is it")
    result = memory.smart_search("Where is the oven's door?")

    assert result.tokens == ["where", "is", "the", "oven", "s", "door"]
    ids = [hit.note.id for hit in result.best]
    assert ids == [oven_id]
    assert result.best[0].matched == ["oven"]
    assert result.best[0].score == 1.0
    assert result.total == 1
    assert memory.smart_search("the").total == 1
    assert memory.smart_search("what is it").total == 2


MEMORIES = (
    "Grandma's spare key hangs behind the shed.",
    "The gym closes at ten on weekdays.",
    "Nora is allergic to peanuts.",
    "The ferry across the lake takes bikes for six euros.",
    "We chose Postgres for the billing service.",
    "Emil's cello recital is on 14 June.",
    "The caretaker of the cabin is called Sven.",
    "Compost goes out on Thursdays.",
    "Priya answers questions about cloud quotas.",
    "The school bus leaves at 7:25.",
    "爸爸的心脏科医生姓王。",
    "路由器的管理地址写在背面的贴纸上。",
    "小李负责支付网关。",
    "外婆有糖尿病，不吃甜食。",
    "家长会在第三周召开。",
    "What is done is done, and it is what it is.",
    "This and that and the other, for you and for me.",
)
QUESTIONS = (
    "Where is grandma's key?",
    "When does the gym close on weekdays?",
    "Is Nora allergic to anything?",
    "What do bikes cost on the ferry?",
    "Which database did we choose for billing?",
    "When is the recital of Emil?",
    "Who is the caretaker of the cabin?",
    "On what day does the compost go out?",
    "Who do I ask about cloud quotas?",
    "What time does the bus to the school leave?",
    "爸爸的医生是谁？",
    "路由器的管理地址是什么？",
    "谁负责支付网关？",
    "外婆可以吃甜食吗？",
    "家长会是什么时候？",
)


def test_fifteen_questions_find_their_memory_first(memory: MemorySession) -> None:
    ids = [put(memory, text) for text in MEMORIES]
    results = [memory.smart_search(question) for question in QUESTIONS]
    assert [result.best[0].note.id for result in results] == ids[: len(QUESTIONS)]
    assert sum(result.total for result in results) <= 30


@pytest.mark.parametrize(
    ("times", "expected"), [(1, 1.0), (2, 1.5), (3, 2.0), (4, 2.0), (5, 3.0), (9, 3.0)]
)
def test_a_word_adds_by_how_often_it_stands_there(
    memory: MemorySession, times: int, expected: float
) -> None:
    put(memory, " ".join(["Dark"] * times))
    assert score(memory, "dark") == [expected]


def test_a_word_counts_inside_longer_ones_without_overlap(memory: MemorySession) -> None:
    put(memory, "aaaa banana")
    assert score(memory, "aa") == [1.5]
    assert score(memory, "an") == [1.5]


def test_the_frontmatter_is_no_content(memory: MemorySession) -> None:
    put(memory, "x", tags=["preferences"])
    assert memory.smart_search("knowledge preferences organized").total == 0


def test_a_tag_counts_only_with_the_word_in_the_text(memory: MemorySession) -> None:
    put(memory, "dark", tags=["Dark", "dark mode"])
    assert score(memory, "dark") == [2.0]
    assert score(memory, "dark mode") == [2.0]
    put(memory, "nothing", tags=["mode"])
    assert memory.smart_search("mode").total == 0


def test_the_best_come_first_then_the_newest_then_by_id(tmp_path: Path) -> None:
    time = [NOW]
    with open_session(tmp_path / "home", clock=lambda: time[0], watch=False) as memory:
        best = put(memory, "dark dark")
        older = sorted(put(memory, f"dark {number}") for number in range(4))
        time[0] += timedelta(days=1)
        newest = put(memory, "newest dark")
        ids = [hit.note.id for hit in memory.smart_search("dark").best]
        assert ids == [best, newest, *older]


@pytest.mark.parametrize("filling", [0, 20_000])
def test_each_token_of_a_very_long_query_counts(memory: MemorySession, filling: int) -> None:
    put(memory, f"Amber, birches and birch 深色{' ' * filling}.")
    other_words = " ".join(f"word{number}" for number in range(1_000))

    result = memory.smart_search(f"birch {other_words} amber 色")

    [hit] = result.best
    assert hit.matched == ["birch", "amber", "色"]
    assert hit.score == 3.5


def test_the_more_tokens_a_query_has_the_less_of_a_long_memory_is_read(
    memory: MemorySession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_search, "_MOST_SMART_CHARACTERS", 20)
    put(memory, "amber then birch")

    assert score(memory, "birch") == [1.0]
    assert score(memory, "amber birch") == [1.0]


def test_a_query_without_a_letter_is_refused(memory: MemorySession) -> None:
    with pytest.raises(InvalidInput, match="no valid tokens in query"):
        memory.smart_search("!?")


def test_only_memories_of_categories_are_found(memory: MemorySession) -> None:
    memory.write(Draft("dark", title="A", project="notes"))
    assert memory.smart_search("dark").total == 0


def test_changes_by_hand_are_seen(memory: MemorySession) -> None:
    ref = put(memory, "dark")
    place = memory.home / "categories" / memory.memory_id(ref).path
    place.write_bytes(place.read_bytes().replace(b"dark", b"light and more"))

    assert memory.smart_search("dark").total == 0
    assert score(memory, "light") == [1.0]


def test_an_agent_finds_and_counts_its_own_and_what_is_global(memory: MemorySession) -> None:
    for scope in ("global", "agent:x", "agent:y"):
        put(memory, f"dark {scope}", scope=scope)
    result = memory.as_caller("x").smart_search("dark agent y", 0)

    scopes = sorted(hit.note.scope for hit in result.best)
    assert scopes == ["agent:x", "global"]
    assert result.total == 2
    total = memory.as_caller("x").smart_search("dark", 10, memory_query(scope="agent:y")).total
    assert total == 0
    assert memory.smart_search("dark").total == 3


PIECES = st.sampled_from(
    [
        "dark",
        "Dark",
        "DARKER",
        "ui",
        " ",
        "-",
        "深",
        "色",
        "né",
        "NÉ",
        "xİ",
        "aß",
        "aẞ",
        "\u212a8s",
        "\n",
        "xx",
    ]
)
TEXTS = st.lists(PIECES, min_size=1, max_size=12).map("".join).filter(str.strip)


@given(texts=st.lists(TEXTS, min_size=1, max_size=4), query=TEXTS)
def test_tokens_found_by_their_beginnings_are_those_that_the_texts_have(
    texts: list[str], query: str
) -> None:
    tokens = smart_tokens(query)
    many_tokens = ManyTokens(tokens)
    for text in texts:
        expected = [token for token in tokens if token in text]
        assert many_tokens.in_text(text) == expected


@settings(max_examples=25)
@given(texts=st.lists(TEXTS, min_size=1, max_size=4), query=TEXTS)
def test_the_scores_are_those_of_the_definition(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], query: str
) -> None:
    def weight(count: int) -> float:
        if not count:
            return 0
        if count == 1:
            return 1
        if count == 2:
            return 1.5
        if count < 5:
            return 2
        return 3

    expected = [
        sum(weight(text.lower().count(token)) for token in smart_tokens(query)) for text in texts
    ]
    with open_session(tmp_path_factory.mktemp("home"), watch=False) as memory:
        for text in texts:
            put(memory, text)
        if smart_tokens(query):
            assert score(memory, query) == sorted(
                (value for value in expected if value), reverse=True
            )
