"""The weights of all ranking features: the one table. docs/recall.md tells what each is worth."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QuestionWeights:
    """What counts for questions. A feature is between 0 and about 1; the score is the weighted sum.

    Words, neighbors and conversation are divided by the highest value among the candidates. `bench/fit.py` fits the
    weights from `before` to `timed`; those inside `words`, `meaning` and `several` were chosen by hand.
    """

    words: float = 1.0  # the informative words it contains, rare ones more (stems, irregular forms)
    longer: float = 0.2  # a longer word that it begins, relative to the word itself
    title: float = 1.0  # a word in title, heading or tag, on top of the word itself
    name: float = 0.15  # a speaker's name in the text, relative to another word
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
    passage: float = 0.66  # of a long note: the share of its best chunk, the rest is the note as a whole
    most: int = 150  # this many notes, chosen by words alone, are scored with all features
    archived: float = 0.5  # how much an archived memory is worth, relative to another one
    sources: int = 20  # this many of the best of them raise the score of their neighbors


WEIGHTS = QuestionWeights()
"""The weights in use for questions."""


@dataclass(frozen=True, slots=True)
class AllWordsWeights:
    """What counts where all words must match: all fields together, as in BM25F, and the best passage. Each of the
    first three is multiplied by something between 0 and 1."""

    fields: float = 0.55  # all fields of the note together
    passage: float = 0.35  # how many of the terms the best passage and the title contain
    near: float = 0.1  # how near to each other the terms stand in that passage
    same_title: float = 0.3  # title or alias is the very query text
    metadata: float = 0.06  # a term is a tag, the project or the source; three times at most
    title: float = 6.0  # a term in the title, relative to once in the text
    heading: float = 3.0  # a term in a heading
    tag: float = 3.0  # a term in a tag
    body: float = 1.0  # a term in the text
    address: float = 0.5  # a term in path or permalink
    prefix: float = 0.7  # the beginning of a word, relative to the whole word
    saturation: float = 1.2  # how slowly more of the same term stops to count: the k of BM25
    brevity: float = 0.75  # how much long notes are worth less: the b of BM25
    archived: float = 0.5  # how much an archived memory is worth, relative to another one
    usual: int = 1_200  # characters of a note that is neither long nor short
    once: float = 0.85  # a term that stands once in a passage
    again: float = 0.15  # what each further time adds in a passage, up to 1
    titled: float = 2.0  # a term in the title counts as so many times in each passage
    close: float = 0.3  # of two passages with the same terms: how much nearness decides
    apart: int = 60  # characters between two terms at which nearness is a half
    columns: tuple[float, ...] = (10, 4, 1, 4, 0.5)  # title, headings, body, tags, address in FTS5's bm25()


EXACT = AllWordsWeights()
"""The weights in use where all words must match."""
