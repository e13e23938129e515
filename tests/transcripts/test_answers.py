"""How well one sentence of a text answers a question."""

from __future__ import annotations

import pytest

from memoranda.transcripts.answers import Question, states_something, wanted
from memoranda.transcripts.synonyms import related, synonyms


def fit(question, text):
    words = question.lower().strip("?").split()
    return Question(
        question, [wanted(word, synonyms(word), 1.0) for word in words if len(word) > 3], 0.7
    ).fit(text)


def test_what_is_in_one_sentence_counts_more_than_what_is_in_several():
    question = "timeout billing requests"
    together = "Nothing new. The timeout of billing requests is short."
    apart = "The timeout is short. See billing. Requests come in."
    assert fit(question, together) > 2 * fit(question, apart) > 0


def test_other_words_for_the_same_count_less_than_the_word():
    exact = fit("billing fails", "billing fails")
    related = fit("billing fails", "billing breaks")
    assert exact > related > fit("billing fails", "billing sings")


def test_a_question_is_no_answer():
    assert (
        0
        < fit("does billing close", "Does billing close?")
        < fit("does billing close", "Billing does close.")
    )


def test_a_request_for_work_tells_less_than_a_statement():
    question = "billing tests hang"
    assert (
        0
        < fit(question, "Look why the billing tests hang.")
        < fit(question, "The billing tests hang.")
    )
    assert fit(question, "") == 0.0


@pytest.mark.parametrize(
    ("question", "answer", "other_answer"),
    [
        ("who owns billing", "For now Priya owns billing.", "For now nobody owns billing."),
        ("when is billing closed", "Billing is closed on Monday.", "Billing is closed now."),
        ("how many hosts has billing", "Billing has 12 hosts.", "Billing has hosts."),
        ("why was billing moved", "Billing was moved because of rain.", "Billing was moved far."),
    ],
)
def test_the_kind_of_thing_that_is_asked_for_counts(question, answer, other_answer):
    assert fit(question, answer) > fit(question, other_answer) > 0


def test_scripts_without_blanks_are_looked_at_too():
    question = Question("数据库 端口", [wanted("数据库", (), 1.0), wanted("端口", (), 1.0)], 0.7)
    assert question.fit("我们的数据库端口是 5432。") == 1.0


def test_a_word_has_near_words_in_any_of_its_forms():
    assert "writer" in related("author")
    assert related("authors") == related("author")
    assert related("frobnicator") == []


@pytest.mark.parametrize(
    ("text", "tells"),
    [
        ("Billing runs on the old host since spring.", True),
        ("Run the tests. Billing runs on the old host since spring. So go on.", True),
        ("计费服务现在运行在旧的主机上。", True),
        ("Please run the tests of billing again.", False),
        ("Where does billing run at the moment?", False),
        ("can you look why billing hangs", False),
        ("So go on.", False),
        ("现在计费服务运行在哪里？", False),
        ("", False),
    ],
)
def test_what_a_person_tells_is_neither_a_question_nor_work(text, tells):
    assert states_something(text) is tells
