"""The weights of all ranking features: the one table. docs/recall.md tells what each is worth."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Weights:
    """What counts. A feature is between 0 and about 1; the score is the weighted sum.

    Words, neighbors and conversation are divided by the highest value among the candidates. `bench/fit.py` fits the
    weights from `before` to `timed`; those inside `words`, `meaning` and `several` were chosen by hand.
    """

    words: float = 1.0  # the informative words it contains, rare ones more (stems, irregular forms)
    title: float = 1.3  # a word in title, heading or tag, on top of the word itself
    same_title: float = 0.5  # title or alias is the very query text
    weak: float = 0.35  # a pair of CJK characters across a stop word, relative to another pair
    spelled: float = 0.7  # a word one edit away from one that no note contains, relative to the word itself
    brevity: float = 0.4  # how much long texts are worth less, words being equal: the b of BM25
    before: float = 0.4  # the score of the note before it: an answer follows its question
    after: float = 0.18  # the score of the note after it
    around: float = 0.23  # the scores of the notes two and three places away, on either side
    conversation: float = 0.51  # the best note of the same conversation
    conversation_words: float = 0.44  # how many of the words its conversation contains in all
    speaker: float = 0.8  # the question names who said it (or where it comes from)
    own: float = 0.19  # first person ("I", "my"): the text is about its speaker
    asks: float = -0.58  # somebody asks it: answers are wanted
    date: float = 0.98  # its date is one the question names (a month or week: 1, a day: 2, a year: 0.3)
    meaning: float = 0.6  # this share of a note's own score is embedding similarity (extra `semantic`), the rest words
    several: float = -0.1  # several things are asked for: for each better note of the conversation, up to five
    timed: float = 0.57  # the question asks when, and what somebody said names a time
    near: float = 0.9  # in a text that is read: how close words stand that are neighbors in the query
    passage: float = 0.66  # of a long note: the share of its best chunk, the rest is the note as a whole
    most: int = 150  # this many notes, chosen by words alone, are scored with all features
    archived: float = 0.5  # how much an archived memory is worth, relative to another one
    unfilled: float = 0.3  # how much a file of a memory bank is worth in which nobody wrote since it was made
    sources: int = 20  # this many of the best of them raise the score of their neighbors


WEIGHTS = Weights()
"""The weights in use."""

COLUMNS = {"title": 10, "headings": 4, "body": 1, "tags": 4, "address": 0.5}
"""What FTS5's bm25() counts, which chooses what is read of a search for all words."""
