"""Questions ranked by words and by meaning (docs/ranking.md, feature `meaning`)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from memoranda import config
from memoranda.engine import open_session
from memoranda.engine.embedding import Embedding
from memoranda.index.search import find_evidence
from memoranda.index.search.chunks import ChunkReading
from memoranda.index.search.queries import search_context
from memoranda.index.search.ranking import Ranking
from memoranda.index.search.weights import WEIGHTS
from memoranda.note.model import Draft
from memoranda.query import Query

QUESTION = "which database does invoicing use?"


@pytest.fixture
def memory(tmp_path):
    with open_session(tmp_path / "home", watch=False) as opened:
        opened.write(Draft("The billing service moved to Postgres", title="Billing"))
        opened.write(Draft("An old database of birds", title="Birds"))
        opened.as_caller("y").write(Draft("My private ledger", title="Ledger", scope="agent:y"))
        yield opened


def asked(memory, near, agent=None, text=QUESTION):
    titles = {info.row: info.title for info in memory.list(limit=0)[0]}
    with search_context(memory.index.connection, Query(text), agent) as context:
        return [titles[row] for row in Ranking(context, text, None, near).page(0, 10)]


def rows(memory):
    return {info.title: info.row for info in memory.list(limit=0)[0]}


def test_a_note_is_found_by_its_meaning_though_it_holds_no_word_of_the_question(memory):
    billing = rows(memory)["Billing"]
    assert asked(memory, None) == ["Birds"]
    assert "Billing" in asked(memory, lambda text, rows: {billing: 0.7})


def test_meaning_decides_between_notes_that_hold_the_same_words(memory):
    memory.write(Draft("A new database of birds", title="Other birds"))
    place = rows(memory)
    for first, second in (("Birds", "Other birds"), ("Other birds", "Birds")):
        assert (
            asked(memory, lambda text, rows, a=first, b=second: {place[a]: 0.9, place[b]: 0.1})[0]
            == first
        )


def test_what_is_hardly_near_is_not_shown(memory):
    billing = rows(memory)["Billing"]
    assert asked(memory, lambda text, rows: {billing: 0.1}) == ["Birds"]


def test_nobody_learns_of_a_note_he_may_not_see_by_its_meaning(memory):
    ledger = rows(memory)["Ledger"]
    assert "Ledger" in asked(memory, lambda text, rows: {ledger: 0.9}, "y")
    assert asked(memory, lambda text, rows: {ledger: 0.9}, "x") == ["Birds"]


def test_only_the_question_is_compared_not_the_prompt_in_front(memory):
    heard = []
    prompt = "You are a helpful assistant. " * 70 + "\n\n"
    asked(memory, lambda text, rows: heard.append(text) or {}, text=prompt + QUESTION)
    assert heard == [QUESTION]


def test_what_has_no_vector_counts_by_its_words_alone(memory):
    """A note not embedded yet, or in a language the model cannot read, loses nothing to those that
    are.
    """
    memory.write(Draft("A database of planets that invoicing use", title="Planets"))
    place = rows(memory)
    shares = explained(memory, lambda text, rows: {place["Birds"]: 0.9, place["Billing"]: 0.3})

    assert (
        asked(memory, lambda text, rows: {place["Birds"]: 0.9, place["Billing"]: 0.3})[0]
        == "Planets"
    )
    assert shares["Planets"]["words"] == 1
    assert "meaning" not in shares["Planets"]
    assert {"words", "meaning"} <= shares["Birds"].keys()


def explained(memory, near, text=QUESTION):
    with search_context(memory.index.connection, Query(text), None) as context:
        ranking = Ranking(context, text, None, near)
        for note, score in ranking.scores.items():
            assert sum(ranking.shares(note).values()) == pytest.approx(score, abs=0.01)
        titles = {info.row: info.title for info in memory.list(limit=0)[0]}
        return {titles[row]: ranking.shares(row) for row in ranking.scores}


def test_meaning_is_lent_to_what_stands_beside(memory):
    turns = (
        "Ada: all our bills come out of Postgres",
        "Mel: since last spring",
        "Mel: nice weather",
    )
    for at, text in enumerate(turns):
        memory.write(
            Draft(text, title=f"Turn {at}", project="notes", folder="talk", date="2023-05-08")
        )
    place = rows(memory)
    cosines = {place["Turn 0"]: 0.8, place["Birds"]: 0.1}
    shares = explained(memory, lambda text, rows: cosines)
    assert shares["Turn 0"]["meaning"] > 0.5
    assert shares["Turn 1"]["neighbors"] > shares["Turn 2"]["neighbors"] > 0
    assert "meaning" not in shares["Turn 1"]


def test_how_near_is_told_between_what_is_far_and_the_nearest(memory):
    """Cosines of another model may all be large: only how they differ tells."""
    place = rows(memory)
    several = {place["Billing"]: 0.9, place["Birds"]: 0.6, place["Ledger"]: 0.7}
    shares = explained(memory, lambda text, rows: several)
    nearest = shares["Billing"]["meaning"]
    assert shares["Ledger"]["meaning"] == pytest.approx(nearest / 3, abs=0.001)
    assert "meaning" not in shares["Birds"]
    close = {place["Billing"]: 0.9, place["Birds"]: 0.89}
    meaning = explained(memory, lambda text, rows: close)["Birds"]["meaning"]
    assert meaning > 0.5


def test_a_question_that_no_note_holds_is_answered_by_meaning_alone(memory):
    place = rows(memory)
    near = {place["Billing"]: 0.9, place["Birds"]: 0.1}
    shares = explained(memory, lambda text, rows: near, "Which old database has birds?")
    half = explained(memory, lambda text, rows: near, "Which database does invoicing use nowadays?")
    unheard = explained(memory, lambda text, rows: near, "Whither do invoices wander?")

    assert shares["Billing"]["meaning"] == WEIGHTS.alone_meaning
    assert WEIGHTS.meaning < half["Billing"]["meaning"] < unheard["Billing"]["meaning"]
    assert unheard["Billing"]["meaning"] == WEIGHTS.unheard_meaning


def test_of_a_question_whose_words_are_heard_a_turn_has_more_of_its_meaning_than_a_note(memory):
    turn = "Ada: the old database has birds"
    memory.write(Draft(turn, title="Turn", project="notes", folder="talk", date="2023-05-08"))
    place = rows(memory)
    near = {place["Turn"]: 0.9, place["Billing"]: 0.9, place["Birds"]: 0.1}
    shares = explained(memory, lambda text, rows: near, "Which old database has birds?")

    assert shares["Turn"]["meaning"] == WEIGHTS.meaning
    assert shares["Billing"]["meaning"] == WEIGHTS.alone_meaning


def test_where_meaning_alone_counts_a_turn_gets_nothing_for_a_pair_that_says_little(memory):
    """The pair 式吗 goes across a stop word; no note holds any other word of the question."""
    text = "用户喜欢深色模式吗？"
    memory.write(
        Draft("Mel: 这是仪式吗", title="Turn", project="notes", folder="talk", date="2023-05-08")
    )
    place = rows(memory)
    cosines = {place["Billing"]: 0.9, place["Birds"]: 0.4, place["Turn"]: 0.1}
    with search_context(memory.index.connection, Query(text), None) as context:
        ranking = Ranking(context, text, None, lambda text, rows: cosines)
        reading = ChunkReading(ranking, 10)

    assert ranking.shares(place["Turn"]) == {}
    assert reading.scores[place["Turn"]] == 0
    assert reading.order == [place["Billing"], place["Birds"], place["Turn"]]


def test_a_name_that_very_many_notes_hold_is_somebody_to_the_model(memory):
    heard = []

    def near(text, rows):
        heard.append(text)
        return {}

    memory.write(Draft("Ada: the invoicing database is old", title="One"))
    asked(memory, near, text="Which database did Ada's sister use?")
    for at in range(12):
        memory.write(Draft(f"Ada: database number {at}", title=f"Number {at}"))
    asked(memory, near, text="Which database did Ada's sister use?")
    asked(memory, near, text="Who is Ada?")
    assert heard == [
        "Which database did Ada's sister use?",
        "Which database did someone's sister use?",
        "Who is Ada?",
    ]


def test_a_search_uses_the_vectors_of_the_home_and_explains_their_share(
    tmp_path: Path, small_models: str
):
    settings = replace(config.load(tmp_path / "home"), semantic_model=small_models)
    with open_session(config=settings, watch=False) as memory:
        memory.write(Draft("the billing database is slow", title="Billing"))
        before = memory.search("what is slow at the billing database?", explain=True)[0].why
        assert Embedding(memory).embed_some(30) == 1
        after = memory.search("what is slow at the billing database?", explain=True)[0].why
        for reason in before:
            assert not reason.startswith("meaning")
        assert any(
            reason.startswith("meaning 0.") or reason.startswith("meaning 1.") for reason in after
        )
        assert "billing" in memory.context_for("what is slow at the billing database?")


def evidence(memory, cosines_by_title, text=QUESTION, related=0.3):
    """The titles of the notes in a context, if notes have these cosines with the question."""
    place = rows(memory)
    hits = find_evidence(
        memory.index.connection,
        text,
        viewer=None,
        near=lambda text, rows: {place[title]: value for title, value in cosines_by_title.items()},
        floor=0.2,
        related=related,
    )
    return [hit.note.title for hit in hits]


def test_a_context_has_a_note_that_holds_no_word_of_the_question_but_is_near_it(memory):
    memory.write(Draft("Oranges need sun", title="Oranges"))
    cosines = {"Billing": 0.7, "Birds": 0.3, "Oranges": 0.25}
    assert evidence(memory, cosines)[0] == "Billing"
    assert "Oranges" not in evidence(memory, cosines)


def test_a_context_has_the_best_passage_of_a_long_note_that_is_near_but_holds_no_word(memory):
    memory.write(Draft("Oranges need sun and rain. " * 120, title="Oranges"))
    assert "Oranges" in evidence(memory, {"Oranges": 0.6})


@pytest.mark.parametrize(
    ("text", "highest", "is_silent"),
    [
        ("Which harbour crane lifts oranges of Spain?", 0.15, True),
        ("Which harbour crane lifts oranges of Spain?", 0.35, False),
        # A word in passing is not enough where nothing is near.
        ("Which crane lifts birds?", 0.15, True),
        # Several rare words are.
        ("Is there a database of birds?", 0.15, False),
        ("Oranges?", 0.22, False),
    ],
)
def test_with_a_model_a_question_that_nothing_is_near_gets_nothing(
    memory, text, highest, is_silent
):
    assert (evidence(memory, {"Billing": highest, "Birds": 0.05}, text) == []) == is_silent


def test_a_note_that_has_no_vector_yet_needs_no_more_words_than_without_a_model(memory):
    text = "Which crane lifts birds?"
    assert evidence(memory, {"Billing": 0.21, "Birds": 0.05}, text, related=0.5) == []
    assert "Birds" in evidence(memory, {"Billing": 0.21}, text, related=0.5)


def test_a_model_whose_scale_is_not_known_silences_no_question(memory):
    text = "Which crane lifts birds?"
    assert evidence(memory, {"Billing": 0.15}, text, related=0.0) == ["Birds"]


def test_the_nearest_of_many_notes_must_be_nearer_than_that_of_few(memory):
    text = "Which harbour crane lifts oranges of Spain?"
    assert evidence(memory, {"Billing": 0.25}, text) == ["Billing"]
    memory.write_many([Draft(f"Ticket {number}", project="notes") for number in range(1_100)])
    assert evidence(memory, {"Billing": 0.25}, text) == []
