"""What each feature of the ranking of questions weighs: the one table. docs/recall.md tells what each is worth."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Weights:
    """Every feature is between 0 and about 1 for a piece; the score is their weighted sum.

    Words, neighbours and sitting are divided by the highest value any candidate of the question reaches.
    """

    words: float = 1.0  # the informative words it holds, rare ones more (stems, irregular forms)
    kin: float = 0.6  # a word akin to one asked for (car, vehicle), against the word itself
    title: float = 1.0  # a word in title, heading or tag, on top of the word itself
    name: float = 0.15  # a speaker's name standing in the text, against another word
    spelled: float = 0.7  # a word one edit away from one that no note holds, against the word itself
    brevity: float = 0.3  # how much a long piece is worth less, words being equal: the b of bm25
    before: float = 0.3  # the words of the piece before it: an answer follows its question
    after: float = 0.2  # the words of the piece after it
    around: float = 0.25  # the words of the pieces two and three places away, on either side
    sitting: float = 0.25  # the best piece of the same sitting or note
    session: float = 0.3  # how many of the words its sitting or note holds in all: the parent's own score
    said: float = 0.7  # the question names who said it (or where it comes from)
    present: float = 0.4  # the question names somebody who spoke in the same sitting
    own: float = 0.15  # it speaks of the speaker ("I", "my"): people tell of themselves
    asks: float = -0.5  # it is a question itself: answers are wanted
    date: float = 0.75  # its date is one the question names (a month or week: 1, a day: 2, a year: 0.3)
    meaning: float = 0.4  # how near its meaning is to the question's (extra `semantic`), against the best score by words
    timed: float = 0.45  # the question asks when, and the piece names a time
    most: int = 150  # so many pieces by words alone are weighed with all features
    sources: int = 20  # so many of the best of them lend their words to the pieces beside them


WEIGHTS = Weights()
"""The weights in use."""
