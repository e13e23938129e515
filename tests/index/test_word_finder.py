"""Words of a query are found in a text, all of them or those that the text may have."""

from __future__ import annotations

import pytest

from memoranda.index.search.word_marks import EXACT, bits_of
from memoranda.index.search.words import Word, WordFinder

TEXT = "Two stories about planning: the planner plans a party, and more stories."


def finder_for(*texts):
    return WordFinder([Word(text, 1.0, []) for text in texts])


def words_found(finder, bits=None):
    return {word_number for _, word_number, _ in finder.places(TEXT, bits)}


@pytest.mark.parametrize("text", ["story", "stories", "plan", "planned", "party", "parties"])
def test_a_word_is_found_in_its_other_forms(text):
    assert words_found(finder_for(text)) == {0}


def test_words_of_which_one_begins_with_another_are_all_found():
    assert words_found(finder_for("planner", "plan", "stories")) == {0, 1, 2}


def test_of_all_words_those_are_found_that_the_text_may_have():
    finder = finder_for("stories", "party", "plan")
    assert words_found(finder, bits_of(1, EXACT)) == {1}


def test_a_text_that_may_have_no_word_has_none():
    assert words_found(finder_for("stories", "party"), 0) == set()


def test_a_word_at_two_places_is_found_at_both():
    places = finder_for("stories", "party").places(TEXT, bits_of(0, EXACT))
    assert [TEXT[offset : offset + 7] for offset, _, _ in places] == ["stories", "stories"]
