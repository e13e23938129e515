"""Differences word by word, within a budget of work."""

from __future__ import annotations

from time import process_time

from memoranda.text.word_diff import NEW, OLD, SAME, Part, changed_words


def test_a_changed_word_stands_between_what_stayed():
    assert changed_words("Partner: Anna, in Bern", "Partner: Ana, in Bern") == [
        Part(SAME, "Partner: "),
        Part(OLD, "Anna"),
        Part(NEW, "Ana"),
        Part(SAME, ", in Bern"),
    ]
    assert changed_words("", "new") == [Part(NEW, "new")]
    assert changed_words("same", "same") == [Part(SAME, "same")]


def test_thousands_of_like_words_take_no_minutes():
    begin = process_time()
    assert changed_words("a b " * 3000, "b a " * 3001)
    assert process_time() - begin < 10
