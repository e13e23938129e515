"""The weights of all ranking features. docs/ranking.md explains each feature."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of all features. A feature is between 0 and about 1; the score is the weighted
    sum.

    Words, neighbors and conversation are divided by the highest value among the candidates.
    `bench/fit.py` fits the weights from `before` to `timed`; those inside `words`, `meaning` and
    `several` were chosen by hand.
    """

    # The informative words it contains, rare ones more (stems, irregular forms)
    words: float = 1.0
    # A word in title, heading or tag, on top of the word itself
    title: float = 1.3
    # Title or alias is the very query text
    same_title: float = 2.0
    # A pair of CJK characters across a stop word, relative to another pair
    weak: float = 0.35
    # A word of a long text outside its question, or of an earlier turn of a dialogue
    beside: float = 0.75
    # A word by which the question asks, such as "recommend" or "mentioned", relative to other words
    asking: float = 0.3
    # The weight of each turn further back, relative to the turn after it.
    earlier: float = 1.0
    # A word one edit away from one that no note contains, relative to the word itself
    spelled: float = 0.7
    # How much long texts are worth less, words being equal: the b of BM25
    brevity: float = 0.4
    # The score of the note before it: an answer follows its question
    before: float = 0.4
    # The score of the note after it
    after: float = 0.18
    # The scores of the notes two and three places away, on either side
    around: float = 0.23
    # The best note of the same conversation
    conversation: float = 0.51
    # How many of the words its conversation contains in all
    conversation_words: float = 0.44
    # The question names who said it (or where it comes from)
    speaker: float = 0.8
    # An assistant says it. What a person asks for, they mostly said themselves.
    replied: float = -0.6
    # The question is a request, and the person told the assistant how things are to be from now on
    standing: float = 0.4
    # First person ("I", "my"): the text is about its speaker
    own: float = 0.19
    # Somebody asks it: answers are wanted
    asks: float = -0.58
    # Its date is one that the question names (a month or week: 1, a day: 2, a year: 0.3)
    date: float = 0.98
    # The share of embedding similarity in a note's own score (extra `semantic`). The rest is words.
    meaning: float = 0.6
    # The same share for told texts, which share few words with the memory.
    told_meaning: float = 0.75
    # The same share for a question of which no note holds a word.
    unheard_meaning: float = 1.0
    # The share of a question's words, by rarity, that the best note must hold for `meaning` to be the
    # share. With less, the share goes up to `unheard_meaning`.
    heard: float = 0.5
    # The same share for a note that stands alone, if a note holds `well_heard` of the question's words.
    # What is written to be read alone says its matter in its own words. A turn of a talk does not.
    alone_meaning: float = 0.3
    # See `alone_meaning`. Between `heard` and this, the share of such a note goes down from `meaning`.
    well_heard: float = 0.6
    # The question asks for several things: this is added for each better note of the conversation,
    # up to five notes
    several: float = -0.1
    # The same where something is told: what different conversations say of it is wanted.
    told_several: float = -0.5
    # For a note that stands alone: how far the best note of its day is below the best of all days.
    # It decides between notes that are otherwise worth the same.
    other_day: float = -0.01
    # The question asks when, and the turn names a time
    timed: float = 0.57
    # How close words are in the text that are neighbors in the query
    near: float = 0.9
    # The share of its best chunk in the score of a long note. The rest is the note as a whole.
    passage: float = 0.66
    # For a text that tells something: how much of the topic of the best notes it contains, relative
    # to the best score
    feedback: float = 0.4
    # How many notes, chosen by words alone, are scored with all features.
    most: int = 150
    # The factor of the score of an archived memory
    archived: float = 0.5
    # The factor of the score of a file of a memory bank that nobody has written yet
    unfilled: float = 0.3
    # How many of the best notes raise the scores of their neighbors.
    sources: int = 20


WEIGHTS = Weights()
"""The weights in use."""

COLUMNS = {"title": 10, "headings": 4, "body": 1, "tags": 4, "address": 0.5}
"""The weights of columns for FTS5's bm25(), which chooses the notes that a strict search reads."""
