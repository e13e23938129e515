"""Differences word by word, within a budget of work."""

from __future__ import annotations

from time import process_time

from memoranda.text.word_diff import NEW, OLD, SAME, Part, changed_lines, changed_words


def test_a_changed_word_stands_between_what_stayed():
    assert changed_words("Partner: Anna, in Bern", "Partner: Ana, in Bern") == [
        Part(SAME, "Partner: "),
        Part(OLD, "Anna"),
        Part(NEW, "Ana"),
        Part(SAME, ", in Bern"),
    ]
    assert changed_words("", "new") == [Part(NEW, "new")]
    assert changed_words("same", "same") == [Part(SAME, "same")]


def test_lines_that_have_little_in_common_are_an_old_and_a_new_one():
    assert list(changed_lines("a\nthe quick fox\n", "a\nnothing like it here\n")) == [
        [Part(OLD, "the quick fox")],
        [Part(NEW, "nothing like it here")],
    ]


def test_thousands_of_like_lines_and_words_take_no_minutes():
    old = "\n".join(f"- [ ] item {number % 7}" for number in range(2900))
    new = "\n".join(f"- [x] item {number % 5}" for number in range(2900))
    begin = process_time()
    assert list(changed_lines(old, new))
    assert changed_words("a b " * 3000, "b a " * 3001)
    assert process_time() - begin < 10
