"""Chinese in simplified and in traditional characters: a search in one finds texts in the other."""

from __future__ import annotations

import pytest

from index.conftest import Desk
from memoranda.errors import NotFound
from memoranda.text.han import other_forms


@pytest.fixture
def shelf(desk: Desk) -> Desk:
    desk.put("simple.md", "计费服务用 Postgres 14")
    desk.put("classic.md", "計費服務的負責人是美玲")
    desk.put("other.md", "花园要浇水")
    return desk


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("計費服務", ["计费服务"]),
        ("计费服务", ["計費服務"]),
        ("头发", ["頭發", "頭髮"]),
        ("日本", []),
        ("billing", []),
    ],
)
def test_a_text_has_the_forms_of_the_other_characters(text: str, forms: list[str]) -> None:
    assert other_forms(text) == forms


def test_a_long_text_has_few_forms() -> None:
    assert len(other_forms("发后干台里面" * 8)) <= 13


@pytest.mark.parametrize("typed", ["负责人", "負責人", "负"])
def test_words_that_no_note_has_as_typed_are_found_in_the_other_characters(
    shelf: Desk, typed: str
) -> None:
    assert shelf.found(typed) == ["classic.md"]


def test_words_that_a_note_has_as_typed_find_only_such_notes(shelf: Desk) -> None:
    """A broken assert means contract 000 (notes), 12.7: what a run finds is what grep finds."""
    assert shelf.found("计费服务") == ["simple.md"]
    assert shelf.found("費") == ["classic.md"]


def test_a_phrase_in_quotes_finds_only_what_was_typed(shelf: Desk) -> None:
    assert shelf.found('"計費服務"') == ["classic.md"]


@pytest.mark.parametrize("question", ["计费服务的负责人是谁?", "計費服務的負責人是誰?"])
def test_a_question_finds_notes_in_both_kinds_of_characters(shelf: Desk, question: str) -> None:
    assert shelf.found(question) == ["classic.md", "simple.md"]


def test_a_passage_in_the_other_characters_is_shown_at_its_words(desk: Desk) -> None:
    desk.put("long.md", "苍鹭在河边。\n" * 60 + "\n\n計費服務在五月搬家。\n")
    assert "計費服務" in desk.search("计费服务")[0].passage


@pytest.mark.parametrize("piece", ["服务用", "服務用"])
def test_a_piece_of_a_text_is_found_in_the_other_characters(shelf: Desk, piece: str) -> None:
    assert shelf.list(contains=piece) == ["simple.md"]


def test_a_piece_of_a_text_filters_a_search_in_both_kinds_of_characters(shelf: Desk) -> None:
    assert shelf.found("Postgres", contains="計費") == ["simple.md"]


def test_the_graph_is_searched_literally(desk: Desk) -> None:
    """A broken assert means contract 002, 6: a search is for a piece of text."""
    desk.put("lin.md", "---\ntitle: 林書豪\ntype: person\n---\n", project="graph")
    assert [key.name for key in desk.index.entities.matching("林書豪", None)] == ["林書豪"]
    assert desk.index.entities.matching("林书豪", None) == []


def test_a_name_in_the_other_characters_reaches_no_note_but_is_suggested(desk: Desk) -> None:
    desk.put("计费服务.md", "Postgres 14")
    with pytest.raises(NotFound) as caught:
        desk.find("計費服務")
    assert caught.value.suggestions == ["notes/计费服务"]
