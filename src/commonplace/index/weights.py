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
    sitting: float = 0.35  # the best piece of the same sitting or note
    session: float = 0.3  # how many of the words its sitting or note holds in all: the parent's own score
    said: float = 0.7  # the question names who said it (or where it comes from)
    present: float = 0.4  # the question names somebody who spoke in the same sitting
    own: float = 0.15  # it speaks of the speaker ("I", "my"): people tell of themselves
    asks: float = -0.5  # it is a question itself: answers are wanted
    date: float = 0.75  # its date is one the question names (a month or week: 1, a day: 2, a year: 0.3)
    meaning: float = 0.6  # of a piece's own worth so much is how near its meaning is (extra `semantic`), the rest words
    several: float = -0.1  # several things are asked for: for each better piece of the same sitting, up to five
    timed: float = 0.45  # the question asks when, and the piece names a time
    passage: float = 1.0  # the best passage of a long note, weighed as a piece, against the note as a whole
    most: int = 150  # so many pieces by words alone are weighed with all features
    sources: int = 20  # so many of the best of them lend their words to the pieces beside them


WEIGHTS = Weights()
"""The weights in use."""


@dataclass(frozen=True, slots=True)
class Exact:
    """What counts where all words must be there: a note is worth what its fields say together, as in BM25F, and what
    its best passage says. Each of the shares is multiplied with something between 0 and 1."""

    fields: float = 0.55  # all fields of the note together
    passage: float = 0.35  # how much of what is looked for the best passage holds, the title taken along
    near: float = 0.1  # how near the terms stand to each other in that passage
    same_title: float = 0.3  # title or alias is the very text asked for
    metadata: float = 0.06  # a term is a tag, the project or the source; three times at most
    title: float = 6.0  # a term in the title, against once in the text
    heading: float = 3.0  # a term in a heading
    tag: float = 3.0  # a term in a tag
    body: float = 1.0  # a term in the text
    address: float = 0.5  # a term in path or permalink
    beginning: float = 0.7  # the beginning of a word, against the whole word
    saturation: float = 1.2  # how slowly more of the same term stops to count: the k of bm25
    brevity: float = 0.75  # how much long notes are worth less: the b of bm25
    usual: int = 1_200  # characters of a note that is neither long nor short
    once: float = 0.85  # a term that stands once in a passage, against often
    again: float = 0.15  # what each further time adds in a passage, up to 1
    titled: float = 2.0  # a term in the title counts as so many times in each passage
    close: float = 0.3  # of two passages with the same terms: how much their nearness decides
    apart: int = 60  # characters between two terms at which nearness is a half
    picked: tuple[float, ...] = (10, 4, 1, 4, 0.5)  # title, headings, body, tags, address in the bm25 that picks notes


EXACT = Exact()
"""The weights in use where all words must be there."""
