"""Questions as they are read: what is asked, which words and days it names."""

from __future__ import annotations

from datetime import date

import pytest

from commonplace.index.search.parse import (
    Period,
    asks_several,
    focus_of,
    is_certain_question,
    is_question,
    is_short_question,
    periods,
    read_question,
)

TODAY = date(2026, 11, 21)
"""A Saturday."""


@pytest.mark.parametrize(
    "text",
    ["what did she buy", "Does it rain", "the red kettle, where?", "他住在哪里", "咖啡好喝吗？", "How many"],
)
def test_a_question_is_told_by_its_end_or_its_first_word(text: str) -> None:
    assert is_question(text)


@pytest.mark.parametrize("text", ["harbour hill goats", "kettle what", "深色模式", "", "?x"])
def test_words_alone_are_no_question(text: str) -> None:
    assert not is_question(text)


@pytest.mark.parametrize("text", ["会议几点", "王芳学啥", "ピアノを弾けますか", "민수 생일은 언제", "你在嗎"])
def test_words_that_ask_in_chinese_japanese_and_korean_are_known(text: str) -> None:
    assert is_question(text)
    assert is_short_question(text)


def test_an_english_word_in_front_does_not_make_two_words_a_question_that_may_be_relaxed() -> None:
    assert is_question("will smith")
    assert not is_short_question("will smith")
    assert is_short_question("smith?")


def test_a_part_of_a_sentence_is_no_outright_question() -> None:
    assert is_certain_question("梁宝生是谁?")
    assert is_certain_question("会议开始了吗")
    assert not is_certain_question("哪里有")
    assert not is_certain_question("深色模式?")
    assert not is_certain_question("who is Bob?")


def test_stop_words_leave_a_question_and_chinese_comes_in_pairs() -> None:
    assert read_question("What did the painter buy in Leiden?").words == ("painter", "buy", "leiden")
    assert read_question("用户喜欢深色模式吗？").words == ("用户", "户喜", "喜欢", "欢深", "深色", "色模", "模式")


def test_of_a_long_text_the_question_at_its_end_is_asked() -> None:
    prompt = "You are a careful assistant. Use plain words and keep every answer short. " * 30
    assert focus_of(prompt + "Which boat did Mara sell?").strip() == "Which boat did Mara sell?"
    assert read_question(prompt + "Which boat did Mara sell?").words == ("boat", "mara", "sell")


def test_a_question_that_says_little_takes_the_sentence_before_along() -> None:
    prompt = "You are a careful assistant. " * 20
    assert read_question(prompt + "Mara sold the boat. Why?").words == ("mara", "sold", "boat")


def test_a_long_text_without_a_question_is_asked_whole() -> None:
    text = "The harbour sleeps under a grey sky. " * 20
    assert focus_of(text) == text


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
    assert (first, last) in [(one.first, one.last) for one in periods(f"What happened {text}?", TODAY)]


@pytest.mark.parametrize("text", ["may I go", "a 13月", "32 things", "May be", "99999 years ago", "room 2023a"])
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


@pytest.mark.parametrize(
    "text", ["When did it start?", "What year was it?", "How long has it been?", "什么时候开始的？"]
)
def test_a_question_for_a_time(text: str) -> None:
    assert read_question(text).when


@pytest.mark.parametrize(
    "text",
    ["What books has Ada read?", "Where has Mel worked?", "Which of her friends have moved?",
     "How many dogs are there?", "What are the names of the cats?", "What kinds of tea does she drink?",
     "What have both of them painted?",
     "Ada 读过哪些书？", "她都去过哪里？"],
)  # fmt: skip
def test_a_plural_the_perfect_tense_or_a_number_asks_for_several_things(text: str) -> None:
    assert asks_several(text)


@pytest.mark.parametrize(
    "text",
    ["What did Ada bring to the lake?", "When was the roof mended?", "Where is this?", "Which bus goes there?",
     "What is Ada's dog called?", "Who bought a kettle?", "Ada 什么时候搬家？"],
)  # fmt: skip
def test_other_questions_ask_for_one(text: str) -> None:
    assert not asks_several(text)
