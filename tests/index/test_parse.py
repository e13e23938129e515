"""Questions as they are read: what is asked, which words and days it names."""

from __future__ import annotations

from datetime import date

import pytest

from memoranda.index.search.parse import parse, term
from memoranda.index.search.question import Focus, Period, focus_of, is_told, periods, read_question

TODAY = date(2026, 11, 21)
"""A Saturday."""


def test_stop_words_leave_a_question_and_chinese_comes_in_pairs() -> None:
    assert read_question("What did the painter buy in Leiden?").words == (
        "painter",
        "buy",
        "leiden",
    )
    question = read_question("用户喜欢深色模式吗？")
    assert question.words == ("用户", "户喜", "喜欢", "欢深", "深色", "色模", "模式", "式吗")
    assert question.weak == {"式吗"}, "what lies across a stop word says little"


def test_a_question_that_says_little_takes_the_sentence_before_along() -> None:
    prompt = "You are a careful assistant. " * 20
    question = read_question(prompt + "Mara sold the boat. Why?")
    assert question.words[:3] == ("mara", "sold", "boat")
    assert question.beside.keys() == {"careful", "assistant"}


def test_a_question_that_says_little_looks_only_at_the_few_sentences_before_it() -> None:
    rules = "~." * 1_600
    assert focus_of(f"Mara sold the boat.{rules}Why?").text.count("~") == 20
    assert "boat" in focus_of(f"{rules}Mara sold the boat.{'~.' * 9}Why?").text


def test_the_newest_turn_of_a_dialogue_comes_first_and_the_others_count_beside() -> None:
    question = read_question(
        "Ada: I painted the canoe red.\nMel: Lovely!\nAda: Now the oars want varnish and a bag."
    )
    assert question.words[:3] == ("ada", "oars", "varnish")
    assert {"painted", "canoe", "red", "lovely"} <= question.beside.keys()
    assert "varnish" not in question.beside


@pytest.mark.parametrize(
    "text",
    [
        "Ada painted the canoe. Now she wants to varnish the oars as well, at the lake.",
        '<Ada>: "I painted the canoe red."\n<Mel>: "Lovely! Did you varnish the oars as well?"',
        "我昨天把独木舟漆成了红色。今天我还想给船桨上清漆，你觉得哪一种比较好？"
        "另外 the oars, the bag, the rope, the lamp and the stove are still wet.",
    ],
)
def test_what_is_said_in_sentences_is_told(text: str) -> None:
    assert is_told(text)


@pytest.mark.parametrize(
    "text",
    [
        "canoe varnish",
        '"the canoe is red" oars',
        "What did Ada bring to the lake?",
        "canoe AND varnish NOT oars",
        "v1.10.2 config.yaml",
    ],
)
def test_a_list_of_terms_is_not_told(text: str) -> None:
    assert not is_told(text)


def test_how_much_a_question_counts_goes_by_its_share_of_the_words_and_not_by_length() -> None:
    little = "Rope, lamp, stove, oars, tent, kettle, compass, map, bucket, sail, axe. Where is the red canoe?"
    assert read_question(little).words[:2] == ("red", "canoe")
    much = "Mara keeps rope and lamp and stove in the tent. " * 8
    last_question = (
        "Does the kettle hang beside the compass, the bucket, the sail and the map of Mara?"
    )
    assert len(much) > 350
    assert read_question(much + last_question).words[:2] == ("mara", "keeps")
    assert not read_question(much + last_question).beside


def test_a_mixed_word_is_split_but_where_not_excludes_it_as_one() -> None:
    (clause,) = parse("登录 redis会话 NOT vue组件").clauses
    texts = [term.text for term in clause.terms]
    excluded_texts = [term.text for term in clause.without]
    assert texts == ["登录", "redis", "会话"]
    assert excluded_texts == ["vue组件"]


def test_the_question_mark_of_an_address_asks_nothing() -> None:
    request = (
        "Summarise the plan to move the office to Lisbon with Ana, Bob, Mara and Jo in spring. "
    )
    address = "See https://example.com/watch?v=abc123 for pictures. "
    for text in (request + address, request * 9 + address):
        assert focus_of(text) == Focus(text)
        assert not read_question(text).beside
    last_question = "Who pays for the movers of the office?"

    text = focus_of((request + address) * 9 + last_question).text
    assert text.strip() == last_question
    text = focus_of(request * 9 + "你会用它写信吗?Python").text
    assert text.strip() == "你会用它写信吗?"


def test_a_question_told_in_a_few_sentences_is_kept_whole() -> None:
    story = "Mara wanted a boat for years, and everybody tried to talk her out of it. " * 4
    assert read_question(story + "Who sold it in the end?").words[:2] == ("mara", "wanted")


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("in June 2023", "2023-06-01", "2023-06-31"),
        ("on 8 May, 2023", "2023-05-08", "2023-05-08"),
        ("on May 8th 2023", "2023-05-08", "2023-05-08"),
        ("2023-06", "2023-06-01", "2023-06-31"),
        ("2023年5月8日", "2023-05-08", "2023-05-08"),
        ("in May", "05-01", "05-31"),
        ("in 2019", "2019-01-01", "2019-12-31"),
        ("yesterday", "2026-11-20", "2026-11-20"),
        ("the day before yesterday", "2026-11-19", "2026-11-19"),
        ("last week", "2026-11-09", "2026-11-15"),
        ("上周", "2026-11-09", "2026-11-15"),
        ("this month", "2026-11-01", "2026-11-30"),
        ("last month", "2026-10-01", "2026-10-31"),
        ("去年", "2025-01-01", "2025-12-31"),
        ("three days ago", "2026-11-18", "2026-11-18"),
        ("3天前", "2026-11-18", "2026-11-18"),
        ("two weeks ago", "2026-11-04", "2026-11-10"),
    ],
)
def test_the_days_a_question_names(text: str, first: str, last: str) -> None:
    assert (first, last) in [
        (period.first, period.last) for period in periods(f"What happened {text}?", TODAY)
    ]


@pytest.mark.parametrize(
    "text", ["may I go", "a 13月", "32 things", "May be", "99999 years ago", "room 2023a"]
)
def test_what_names_no_day(text: str) -> None:
    assert periods(text, TODAY) == []


def test_without_today_only_written_dates_count() -> None:
    assert periods("last week") == []


def test_a_period_without_a_year_fits_every_year() -> None:
    may = Period("05-01", "05-31", 1.0)
    assert may.share("2023-05-09") == may.share("1999-05-31") == 1.0
    assert may.share("2023-06-01") == 0.0


def test_a_question_may_name_nothing_but_days() -> None:
    assert read_question("What did I do last week?", TODAY).only_days
    assert read_question("我昨天做了什么？", TODAY).only_days is False
    assert not read_question("What did Mara cook last week?", TODAY).only_days
    assert not read_question("What did I do?", TODAY).only_days


def test_a_long_run_without_blanks_is_looked_for_by_its_beginning() -> None:
    """A phrase of thousands of equal pairs took minutes in a note that repeats them."""
    run = "".join(chr(0x4E00 + number) for number in range(5_000))
    long_term = term(run)
    assert long_term is not None
    assert long_term.words == (run[:64],)
