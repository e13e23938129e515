"""Questions ranked by words and by meaning (docs/recall.md, feature `meaning`)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

np = pytest.importorskip("numpy", reason="numpy is not installed: the semantic extra is not tested")

from commonplace import config  # noqa: E402
from commonplace.engine import open_memory  # noqa: E402
from commonplace.engine.embedding import Embedding  # noqa: E402
from commonplace.index.asking import answers  # noqa: E402
from commonplace.index.ranking import Asked  # noqa: E402
from commonplace.note.model import Draft  # noqa: E402
from commonplace.query import Query  # noqa: E402
from index.vectors import tiny  # noqa: E402

QUESTION = "which database does invoicing use?"


@pytest.fixture
def memory(tmp_path):
    with open_memory(tmp_path / "home", watch=False) as opened:
        opened.write(Draft("The billing service moved to Postgres", title="Billing"))
        opened.write(Draft("An old database of birds", title="Birds"))
        opened.as_caller("y").write(Draft("My private ledger", title="Ledger", scope="agent:y"))
        yield opened


def asked(memory, near, agent=None, text=QUESTION):
    found = answers(Asked(memory._core.db, Query(text), agent), text, None, near)
    titles = {info.row: info.title for info in memory.list(limit=0)[0]}
    return [titles[row] for row in found.page(memory._core.db, 0, 10)]


def rows(memory):
    return {info.title: info.row for info in memory.list(limit=0)[0]}


def test_a_note_is_found_by_its_meaning_though_it_holds_no_word_of_the_question(memory):
    billing = rows(memory)["Billing"]
    assert asked(memory, None) == ["Birds"]
    assert "Billing" in asked(memory, lambda text, known: {billing: 0.7})


def test_meaning_decides_between_notes_that_hold_the_same_words(memory):
    memory.write(Draft("A new database of birds", title="Other birds"))
    place = rows(memory)
    for first, second in (("Birds", "Other birds"), ("Other birds", "Birds")):
        assert asked(memory, lambda text, known, a=first, b=second: {place[a]: 0.9, place[b]: 0.1})[0] == first


def test_what_is_hardly_near_is_not_shown(memory):
    billing = rows(memory)["Billing"]
    assert asked(memory, lambda text, known: {billing: 0.1}) == ["Birds"]


def test_nobody_learns_of_a_note_he_may_not_see_by_its_meaning(memory):
    ledger = rows(memory)["Ledger"]
    assert "Ledger" in asked(memory, lambda text, known: {ledger: 0.9}, "y")
    assert asked(memory, lambda text, known: {ledger: 0.9}, "x") == ["Birds"]


def test_only_the_question_is_compared_not_the_prompt_in_front(memory):
    heard = []
    asked(memory, lambda text, known: heard.append(text) or {}, text="You are a helpful assistant. " * 70 + "\n\n" + QUESTION)
    assert heard == [QUESTION]


def test_a_search_uses_the_vectors_of_the_home_and_explains_their_share(tmp_path: Path):
    model = tiny.make(tmp_path / "model")
    settings = replace(config.load(tmp_path / "home"), semantic_model=str(model))
    with open_memory(config=settings, watch=False) as memory:
        memory.write(Draft("the billing database is slow", title="Billing"))
        before = memory.search("what is slow at the billing database?", explain=True)[0].why
        assert Embedding(memory).some(30) == 1
        after = memory.search("what is slow at the billing database?", explain=True)[0].why
        assert not any(each.startswith("meaning") for each in before)
        assert any(each.startswith("meaning 0.") or each.startswith("meaning 1.") for each in after)
        assert "billing" in memory.context_for("what is slow at the billing database?")
