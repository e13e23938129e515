"""Which part of a large text is searched, and that an edit counts only the words it changed."""

from __future__ import annotations

from memoranda.index import writer
from memoranda.text.remembered import remembering


def numbered_words(number):
    return "".join(f"w{n} " for n in range(number))


def parts_counted(monkeypatch, texts):
    """Return how many parts of texts were split into words, while results are remembered."""
    counts = []
    tokens = writer.tokens

    def count(text):
        counts.append(len(text))
        return tokens(text)

    monkeypatch.setattr(writer, "tokens", count)
    with remembering():
        for text in texts:
            writer.searched(text)
    return len(counts)


def test_the_words_of_an_edited_text_are_counted_again_only_behind_the_edit(monkeypatch):
    text = "amber birch cedar " * 60_000
    once = parts_counted(monkeypatch, [text])
    monkeypatch.undo()
    assert parts_counted(monkeypatch, [text, text + "delta"]) == once + 1


def test_a_text_of_more_different_words_than_are_searched_is_cut():
    text = numbered_words(writer.WORDS * 2)
    searched = writer.searched(text)
    assert text.startswith(searched)
    assert writer.WORDS < len(searched.split()) < writer.WORDS * 1.2


def test_a_large_text_that_repeats_its_words_is_searched_as_a_whole():
    text = "amber birch " * 100_000
    assert writer.searched(text) == text
