"""Choose the category of a text, such as `habits` for "I run every Monday".

There are five layers. They are tried in this order, and the first with an answer decides:
1. the owner's corrections: a very similar text that the owner put into a category,
2. the table of words (classify.toml),
3. the times that the text names: a repetition is a habit, a day is a date,
4. the labelled example sentences (examples.txt) that are nearest to the text,
5. `knowledge`.
Source: contract 001, 7 and 18.8.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from itertools import chain
from math import log, sqrt
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memoranda.engine.embedding import known_texts
from memoranda.jobs.dedup import ENDING, neighbouring_pairs
from memoranda.jobs.job import OWNER, SET_BY, Action, MemoryState
from memoranda.note.model import INBOX
from memoranda.text.standing import LIKING, preference_words
from memoranda.text.words import one_word, runs

if TYPE_CHECKING:
    from memoranda.config import Settings
    from memoranda.note import timephrase

FALLBACK = "knowledge"
"""The category of a text that no layer has an answer for."""
# The score of a word, by its kind in the table.
_WEIGHTS = {"strong": 3, "normal": 2, "exact": 2, "weak": 1}
# A Latin word, or one sign of another script.
_WORD_START = re.compile("[a-z0-9]+|[^\x00-\x7f]")
# The number of nearest examples that vote.
_VOTING_EXAMPLES = 60
# The vote of an example is this power of its likeness to the text. Likenesses in meaning differ less
# from each other than likenesses in words, so they need a higher power.
_POWER_BY_WORDS = 1.5
_POWER_BY_MEANING = 4
# With this likeness, the nearest example decides alone.
_LIKENESS_TO_DECIDE_ALONE = 0.4
# And it needs so many words in common with the text.
_COMMON_WORDS_TO_DECIDE_ALONE = 2
# Without this likeness (a cosine), the nearest example says nothing.
_LEAST_LIKENESS = 0.12
# With this likeness, an example outweighs one ordinary word of the table.
_LIKENESS_TO_OUTWEIGH = 0.25
# One ordinary word of the table adds this share of all votes to the votes of its category.
_TABLE_SHARE = 0.15
# A memory whose category the owner corrected decides if it has at least this likeness.
_LIKENESS_TO_CORRECTED = 0.35
# The category with the most votes is sure if it has this many times the votes of the second.
_SURE_RATIO_OF_VOTES = 1.5
# Words of time that the time grammar does not read, since it would have to guess: "in August".
_SAYS_WHEN = re.compile(
    r"\b(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)(?:[a-z]*ary|ch|il|ust|ember|ober)?\b"
    r"|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(?:19|20)\d\d\b"
    r"|\b(?:spring|summer|autumn|fall|winter|days?|weeks?|weekend|months?|years?|holidays?|christmas|easter|eve)\b"
    r"|[年月周日号春夏秋冬节夕]|星期|礼拜|假期",
    re.I,
)
# The number of characters of a text that are compared.
_COMPARED_CHARACTERS = 2000
# The number of characters of an example that a reason shows.
_SHOWN_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class CategoryChoice:
    """The category chosen for a text.

    layer: the layer that decided: `correction`, `table`, `time`, `example` or `fallback`.
    reason: the reason in words.
    words: the words of the table that decided. Empty if another layer decided.
    second: the second-best category, if it is close to the best one. Else None.
    is_doubtful: whether the layer is often wrong for such texts
        (docs/lab/categories-2026-11-28.md).
    """

    category: str
    layer: str
    reason: str
    words: tuple[str, ...] = ()
    second: str | None = None
    is_doubtful: bool = False

    @property
    def is_sure(self) -> bool:
        """Whether the owner need not be asked for the category."""
        if self.layer == "fallback" or self.is_doubtful:
            return False
        return self.second is None or self.layer == "table"


class Classifier:
    """Choose categories for texts.

    Several layers are asked in turn: the owner's corrections of similar memories, the words of the
        text, the times in it, and examples. Weak words leave the decision to the next layer.

    memories: memories to learn from. Only memories whose category the owner set are used (SET_BY).
    """

    def __init__(self, settings: Settings, memories: Iterable[MemoryState] = ()):
        self._settings = settings
        corrected = [
            (memory.content, memory.category) for memory in memories if _is_corrected(memory)
        ]
        # None if the owner has corrected nothing
        self._corrected = Examples(corrected) if corrected else None

    def choose(self, memory: MemoryState) -> CategoryChoice:
        """Choose the category of a memory's text, by the first layer that has an answer."""
        return self.choose_for(memory.content, memory.created)

    def choose_for(self, text: str, created: datetime) -> CategoryChoice:
        """Choose the category of a text. The first layer with an answer decides (see `Classifier`).

        created: when the text was written. Words such as "tomorrow" are read from this time.
        """
        by_correction = self._by_correction(text)
        if by_correction is not None:
            return by_correction

        by_words = self._by_words(text)
        if by_words is not None:
            return by_words

        times = self._times_in(text, created)
        by_time = _by_time(times)
        if by_time is not None:
            return by_time
        is_timeless = not times and _SAYS_WHEN.search(text) is None
        return self._by_examples(text, is_timeless=is_timeless)

    def _by_correction(self, text: str) -> CategoryChoice | None:
        """Choose the category that the owner gave to a very similar text. None without such a text."""
        if self._corrected is None:
            return None
        nearest = self._corrected.nearest(text, limit=1, least=_LIKENESS_TO_CORRECTED)
        if not nearest:
            return None
        category = nearest[0].category
        reason = f'{category} (you put "{one_line_of(nearest[0].example)}" there)'
        return CategoryChoice(category, "correction", reason)

    def _by_words(self, text: str) -> CategoryChoice | None:
        """Choose a category by the words of the table that a text has.

        None if it has none of them, or only weak ones, which say less than a time.
        """
        classified = classify(text)
        best_score = max(classified.scores.values(), default=0)
        if best_score <= _WEIGHTS["weak"]:
            return None
        choice = _by_table(classified, best_score)

        # A very similar example outweighs a single ordinary word.
        has_one_ordinary_word = best_score == _WEIGHTS["normal"]
        if has_one_ordinary_word and examples().nearest(text, limit=1, least=_LIKENESS_TO_OUTWEIGH):
            choice = self._by_examples(text, leaning=classified.category)

        # In `tastes like tea`, the word `like` compares, and says nothing about a preference. If it is
        # the only word, the category is doubtful.
        is_comparison = classified.words == ("like",) and LIKING.search(text) is None
        return replace(choice, is_doubtful=True) if is_comparison else choice

    def _times_in(self, text: str, created: datetime) -> list[timephrase.Reading | None]:
        """Return the times that a text names. None is in the place of an unreadable time.

        created: when the text was written. "Tomorrow" counts from then.
        """
        from memoranda.note import timephrase

        zone = self._settings.reading_zone
        times = timephrase.read_all(text, created, zone, self._settings.day_hour)
        return [time if isinstance(time, timephrase.Reading) else None for _, time in times]

    def _by_examples(
        self, text: str, leaning: str | None = None, *, is_timeless: bool = False
    ) -> CategoryChoice:
        """Choose the category that most of the nearest examples have.

        If a model is configured, the examples nearest in words have one half of the votes, and the
        examples nearest in meaning have the other half.

        leaning: the category that the table gives the text, which gets a part of the votes. None if
            the table gives none.
        is_timeless: whether the text names no time. Then examples of `date` have no vote.
        """
        excluded_category = "date" if is_timeless else None
        by_words = _nearest_in_words(text, excluded_category)
        by_meaning = self._nearest_in_meaning(text, excluded_category)
        best_likeness_by_words = by_words[0].likeness if by_words else 0.0
        if not by_meaning and best_likeness_by_words < _LEAST_LIKENESS:
            return CategoryChoice(FALLBACK, "fallback", f"{FALLBACK} (nothing like it is known)")

        # Count the votes.
        votes = _votes(by_words, _POWER_BY_WORDS)
        if by_meaning:
            votes = _sum_of_votes(votes, _votes(by_meaning, _POWER_BY_MEANING))
        # Without a model, an example that is nearly the text itself gets more than all others.
        is_very_like = best_likeness_by_words >= _LIKENESS_TO_DECIDE_ALONE
        # The likeness of a short text is high with one common word: `plain one` and `My plain tea`.
        is_nearly_an_example = (
            not by_meaning
            and is_very_like
            and _common_words(text, by_words[0].example) >= _COMMON_WORDS_TO_DECIDE_ALONE
        )
        if is_nearly_an_example:
            votes[by_words[0].category] = float("inf")
        if leaning is not None:
            votes[leaning] += _TABLE_SHARE * sum(votes.values())

        # The category with most votes is chosen, but it may be doubtful.
        elected = _elected(votes, [*by_meaning, *by_words])
        # Votes alone are right too seldom. Nearly the same sentence, or the table, must confirm them.
        is_confirmed = is_nearly_an_example or elected.category == leaning
        return replace(elected, is_doubtful=not is_confirmed)

    def _nearest_in_meaning(self, text: str, excluded_category: str | None) -> list[Neighbour]:
        """Return the examples that are nearest in meaning, except for one category.

        Empty without a model, before `learn` has run, and for a text that the model cannot read.

        excluded_category: a category that does not count; None for none.
        """
        example_vectors = known_texts(self._settings, examples().texts)
        if not example_vectors:
            return []
        cosines = example_vectors.cosines(text[:_COMPARED_CHARACTERS])
        neighbours = [
            Neighbour(cosine, category, example)
            for cosine, (example, category) in zip(cosines, examples().labelled, strict=False)
            if category != excluded_category
        ]
        nearest = sorted(neighbours, reverse=True)[:_VOTING_EXAMPLES]
        return [neighbour for neighbour in nearest if neighbour.likeness > 0]


def _is_corrected(memory: MemoryState) -> bool:
    """Whether the owner set the category of a memory."""
    # `may_say` is a cheap check that spares reading most headers
    if memory.info is None or not memory.info.may_say((SET_BY,)):
        return False
    return memory.header.get(SET_BY) == OWNER


class Neighbour(NamedTuple):
    """An example that is near to a text.

    likeness: how near it is. 1 means equal.
    category: the category of the example.
    example: its text.
    """

    likeness: float
    category: str
    example: str


def category_of_text(settings: Settings, text: str, created: datetime) -> str:
    """Choose the category of a new text, without regard to the owner's corrections.

    created: when the text was written.
    """
    return Classifier(settings).choose_for(text, created).category


def organize(
    job: str,
    verb: str,
    memory: MemoryState,
    classifier: Classifier,
    why: str = "",
    *,
    careful: bool = False,
) -> Action | None:
    """Plan the action that takes a memory out of the inbox into a category.

    A memory that has a category already keeps it. For any other, the classifier chooses one.

    job: the job that plans the action.
    verb: how the action is named in the history.
    why: a reason to put before the category or the reason of the classifier. "" adds none.
    careful: whether to plan nothing if the classifier is not sure. `memory review` asks about these
        memories.

    Returns None if nothing is planned.
    """
    has_category = memory.category != INBOX
    if has_category:
        category = memory.category
        reason = memory.category
        words: tuple[str, ...] = ()
    else:
        choice = classifier.choose(memory)
        if careful and not choice.is_sure:
            return None
        category = choice.category
        reason = choice.reason
        words = choice.words
    if why:
        reason = f"{why}: {reason}"
    return Action(
        job=job,
        verb=verb,
        id=memory.id,
        reason=reason,
        path=memory.path,
        category=category,
        words=words,
    )


def category_of(memory: MemoryState, classifier: Classifier) -> str:
    """Return the category of a memory. The classifier chooses one for a memory without category."""
    if memory.category == INBOX:
        return classifier.choose(memory).category
    return memory.category


def _by_table(classified: Classified, best_score: int) -> CategoryChoice:
    """Choose the category of the table's words. A category with the same score is the second.

    classified: the category that the table gives, and all scores.
    best_score: the score of this category.
    """
    category = classified.category
    equal_categories = [
        name
        for name, score in classified.scores.items()
        if score == best_score and name != category
    ]
    reason = f"{category} ({', '.join(classified.words)})"
    second = equal_categories[0] if equal_categories else None
    return CategoryChoice(
        category=category, layer="table", reason=reason, words=classified.words, second=second
    )


def _by_time(times: Iterable[timephrase.Reading | None]) -> CategoryChoice | None:
    """Choose `habits` for a repetition, `date` for a day of the calendar. None for other times."""
    readings = [time for time in times if time is not None]
    candidates = [("habits", reading) for reading in readings if reading.repeat]
    candidates += [("date", reading) for reading in readings if reading.is_dated]
    if not candidates:
        return None
    category, reading = candidates[0]
    return CategoryChoice(category, "time", f'{category} (time "{reading.phrase}")')


def _votes(neighbours: Iterable[Neighbour], power: float) -> defaultdict[str, float]:
    """Add up the votes for each category: each neighbour has its likeness to the given power.

    neighbours: the examples that vote.
    power: with a higher one, the nearest examples count more.
    """
    votes = defaultdict[str, float](float)
    for neighbour in neighbours:
        votes[neighbour.category] += neighbour.likeness**power
    return votes


def _nearest_in_words(text: str, excluded_category: str | None) -> list[Neighbour]:
    """Return the examples that are nearest in words, the best first, except for one category.

    excluded_category: a category that does not count; None for none.
    """
    # Twice the number, as some may be excluded.
    nearest = examples().nearest(text, limit=2 * _VOTING_EXAMPLES, least=0.0)
    neighbours = [neighbour for neighbour in nearest if neighbour.category != excluded_category]
    return neighbours[:_VOTING_EXAMPLES]


def _sum_of_votes(
    by_words: Mapping[str, float], by_meaning: Mapping[str, float]
) -> defaultdict[str, float]:
    """Add two votes so that both have the same weight: each is divided by the sum of its votes.

    by_words, by_meaning: the votes by category.
    """
    sum_by_words = sum(by_words.values()) or 1.0
    sum_by_meaning = sum(by_meaning.values())
    votes = defaultdict[str, float](float)
    for category in [*by_words, *by_meaning]:
        share_by_words = by_words.get(category, 0.0) / sum_by_words
        votes[category] = share_by_words + by_meaning.get(category, 0.0) / sum_by_meaning
    return votes


def _elected(votes: Mapping[str, float], neighbours: Sequence[Neighbour]) -> CategoryChoice:
    """Choose the category with most votes. The second one is named if it is close.

    votes: the votes by category.
    neighbours: the examples that voted, the nearest first.
    """
    (category, most_votes), *others = sorted(votes.items(), key=itemgetter(1), reverse=True)
    second = None
    if others:
        second_category, second_votes = others[0]
        is_close = most_votes < _SURE_RATIO_OF_VOTES * second_votes
        if is_close:
            second = second_category
    # No example has voted for a category that only the table gives
    examples_of_category = [
        neighbour.example for neighbour in neighbours if neighbour.category == category
    ]
    nearest_example = (examples_of_category or [neighbours[0].example])[0]
    reason = f'{category} (nearest to "{one_line_of(nearest_example)}")'
    return CategoryChoice(category, "example", reason, second=second)


def learn(settings: Settings) -> int:
    """Compute the vectors of examples, so that texts can also be compared with them by meaning.

    Returns the number of new vectors: 0 if all examples have one, or without a model. Raises
    NoModel, NoAnswer, StorageError.
    """
    example_vectors = known_texts(settings, examples().texts)
    if not example_vectors:
        return 0
    return example_vectors.learn()


def one_line_of(text: str) -> str:
    """Return a text in one line and cut at 40 characters, as a reason or a question shows it."""
    line = " ".join(text.split())
    if len(line) <= _SHOWN_CHARACTERS:
        return line
    return line[: _SHOWN_CHARACTERS - 1] + "…"


class Examples:
    """Find the labelled texts that are most like a given text, by their words (tf-idf, cosine).

    labelled: (text, category) of each example.
    """

    def __init__(self, labelled: Sequence[tuple[str, str]]):
        self.labelled = labelled
        self.texts = tuple([text for text, _ in labelled])
        all_counts = _counted_features(self.texts)
        example_counts = Counter(chain.from_iterable(all_counts))
        # How much a feature says: the fewer examples have it, the more.
        self._rarity = {
            feature: log((len(all_counts) + 1) / (count + 0.5))
            for feature, count in example_counts.items()
        }
        # The rarity of a feature that no example has.
        self._unknown_rarity = log(2 * (len(all_counts) + 1))
        # (index, weight) of the examples with a feature.
        self._weights_by_feature = defaultdict[str, list[tuple[int, float]]](list)
        # The weights of an example are a vector of length 1, so that `nearest` gets the cosine of
        # two texts by adding products. Loops instead of small functions, for speed: there are a
        # thousand examples.
        for example_index, features in enumerate(all_counts):
            weights = {}
            sum_of_squares = 0.0
            for feature, count in features.items():
                weight = (1 + log(count)) * self._rarity[feature]
                weights[feature] = weight
                sum_of_squares += weight * weight
            # An example without features has no direction, and is like no text
            length = sqrt(sum_of_squares) or 1.0
            for feature, weight in weights.items():
                self._weights_by_feature[feature].append((example_index, weight / length))

    def nearest(self, text: str, limit: int, least: float) -> list[Neighbour]:
        """Return the examples that are nearest to a text, the best first.

        limit: the number of examples.
        least: the likeness that an example must exceed.
        """
        likenesses = self._likenesses(text)
        best_indexes = sorted(range(len(likenesses)), key=likenesses.__getitem__, reverse=True)
        neighbours = []
        for example_index in best_indexes[:limit]:
            likeness = likenesses[example_index]
            if likeness > least:
                example, category = self.labelled[example_index]
                neighbours.append(Neighbour(likeness, category, example))
        return neighbours

    def _likenesses(self, text: str) -> list[float]:
        """Return how like each example is to a text: the cosine of their features, from 0 to 1."""
        likenesses = [0.0] * len(self.labelled)
        (counts,) = _counted_features([text])
        weights = {
            name: (1 + log(count)) * self._rarity.get(name, self._unknown_rarity)
            for name, count in counts.items()
        }
        length = sqrt(sum(weight * weight for weight in weights.values())) or 1.0
        for feature, weight in weights.items():
            for example_index, example_weight in self._weights_by_feature.get(feature, ()):
                likenesses[example_index] += weight / length * example_weight
        return likenesses


@cache
def examples() -> Examples:
    """Read the sentences of examples.txt. A line `[habits]` begins the sentences of a category."""
    rows = list[tuple[str, str]]()
    category = ""
    for line in Path(__file__).with_name("examples.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            category = line.strip("[]")
        elif line and not line.startswith("#"):
            rows.append((line, category))
    return Examples(rows)


# A Latin word with its apostrophes, or a number.
_LATIN_WORD = re.compile(r"[A-Za-z][A-Za-z'’]*|\d+")
# A capital after a blank is a name; "I" is not.
_NAME = re.compile(r" (?!I[ '])[A-Z]")
# Signs that tell one kind of sentence from another.
_MARK = re.compile("[?!:;,、，：；]")


def _counted_features(texts: Iterable[str]) -> list[Counter[str]]:
    """Count the features of each text. Texts with many common features are similar.

    `Anna likes teas!` has its words without endings, `anna`, `lik`, `tea`, its beginning `^anna`,
    and features of its form: `#!`, `#words0` (its length). Only the beginning of a long text
    counts.
    """
    all_counts = list[Counter[str]]()
    for text in texts:
        beginning = text[:_COMPARED_CHARACTERS]
        all_counts.append(Counter([*_word_features(beginning), *_form_features(beginning)]))
    return all_counts


def _word_features(text: str) -> list[str]:
    """Return the words of a text without endings, and its first word once more as `^word`.

    `She likes tea` has `she`, `^she`, `like` and `tea`. The first word says much about the kind of
    a sentence.

    The characters and pairs of Chinese words count as words. Numbers are not told apart: they have
    no feature here, and together the feature `#number` (`_form_features`).
    """
    is_cjk = runs().match
    lower_text = unicodedata.normalize("NFKC", text.lower().replace("’", "'"))
    text_words = " ".join(one_word().findall(lower_text))
    features = list[str]()
    # This loop calls few functions, for speed: a thousand examples are read before the first text
    # is compared.
    for word_index, word in enumerate(ENDING.sub("", text_words).split()):
        is_first = word_index == 0
        if not word.isascii() and is_cjk(word):
            # Its characters, and their pairs.
            features += [*word, *neighbouring_pairs(word)]
            if is_first:
                features += [f"^{word[0]}", f"^{word[:2]}"]
            continue
        is_number = word.isdigit()
        if not is_number:
            features.append(word)
        if is_first:
            features.append("^" if is_number else f"^{word}")
    return features


def _common_words(text: str, example: str) -> int:
    """Return how many different words, without their endings, two texts have in common."""
    common = {*_word_features(text)} & {*_word_features(example)}
    return sum(not feature.startswith("^") for feature in common)


def _form_features(text: str) -> list[str]:
    """Return features of a text's form, such as `#does` if its first word seems to be a verb.

    One of them is its length: in words, or in characters if it has no Latin letters or digits.
    """
    latin_words = _LATIN_WORD.findall(text)
    first_word = latin_words[0].lower() if latin_words else ""
    later_words = " " + " ".join(latin_words[1:]) + " "
    every_word = f" {first_word}{later_words}"
    # These words end with `s`, but are no verbs of an action.
    may_be_verb = first_word not in ("this", "is", "always", "his", "its")
    has_form = {
        "#name": _NAME.search(later_words),
        "#number": any(map(str.isdigit, latin_words)),
        "#does": first_word.endswith("s") and may_be_verb,
        "#doing": first_word.endswith("ing"),
        "#of": "'s " in every_word,
        "#did": "ed " in every_word,
    }
    features = [form for form, is_so in has_form.items() if is_so]
    # Each mark once, in the order of the text.
    features += [f"#{mark}" for mark in dict.fromkeys(_MARK.findall(text))]
    # Texts of about the same length have one feature: `#words0` is for less than 4 words.
    if latin_words:
        features.append(f"#words{min(4, len(latin_words) // 4)}")
    else:
        features.append(f"#length{min(5, len(text) // 5)}")
    return features


class Classified(NamedTuple):
    """The category that the table of words gives a text.

    words: the entries of the table that decided, in the order in which the text has them.
    scores: the score of each category that has one, in the order of the table.
    """

    category: str
    words: tuple[str, ...]
    scores: Mapping[str, int]


class _Entry(NamedTuple):
    """An entry of the table of words, which gives points to a category.

    word: the entry as the table has it.
    letters: the letters to look for: the word in lower case, or as written if it is exact.
    category: the category that gets the points.
    weight: the number of points.
    is_exact: whether capital and small letters are distinguished.
    """

    word: str
    letters: str
    category: str
    weight: int
    is_exact: bool

    def is_at(self, start: int, text: str) -> bool:
        """Whether the entry is at a position of `text`. An English entry must be a whole word."""
        if not text.startswith(self.letters, start):
            return False
        is_english = self.letters.isascii()
        if not is_english:
            return True
        end = start + len(self.letters)
        neighbours = (text[start - 1 : start], text[end : end + 1])
        return not any(_continues_english_word(char) for char in neighbours)


def _continues_english_word(char: str) -> bool:
    """Whether a character beside an English word belongs to it. "" at the ends of a text does not.

    Chinese, Japanese and Korean letters, which begin at U+2E80, do not: `这个API的`.
    """
    return char == "_" or (char < "\u2e80" and char.isalnum())


def classify(text: str) -> Classified:
    """Return the category with the highest score in the table of words, and all scores.

    If several categories have the highest score, the first of them in the table counts. If no word
    of the table is in the text, the category is `knowledge`. Source: contract 001, 7.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.replace("’", "'"))
    entries = _entries_in(" ".join(text.split()))

    # Sum the weights of the entries by category.
    totals = Counter[str]()
    for entry in entries:
        totals[entry.category] += entry.weight
    categories, _ = _table()
    scores = {name: totals[name] for name in categories if name in totals}
    best = max(scores, key=scores.__getitem__, default=FALLBACK)
    words = tuple(entry.word for entry in entries if entry.category == best)
    return Classified(best, words, scores)


def _entries_in(text: str) -> list[_Entry]:
    """Find entries of the table of words in a text. Returns them in the order of the text.

    An entry is returned once. Inside a longer entry it does not count: in `each day`, `day` is not
    found.
    """
    lowered = _lowered(text)
    _, table = _table()
    # A dict keeps the order of its keys
    entries: dict[_Entry, None] = {}
    end_of_last = 0
    for match in _WORD_START.finditer(lowered):
        start = match.start()
        # The longest entries come first, so the first one that is there is the longest
        for entry in table.get(match[0], ()):
            is_there = entry.is_at(start, text if entry.is_exact else lowered)
            if not is_there:
                continue
            end = start + len(entry.letters)
            is_inside_last = end <= end_of_last
            if not is_inside_last:
                end_of_last = end
                entries[entry] = None
            break
    return list(entries)


def _lowered(text: str) -> str:
    """Return a text in lower case. Every character keeps its position.

    Letters whose lower case has two characters, such as `İ`, stay as they are.
    """
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(char.lower() if len(char.lower()) == 1 else char for char in text)


@cache
def _table() -> tuple[tuple[str, ...], dict[str, list[_Entry]]]:
    """Read classify.toml: its categories in their order, and its entries by their first word.

    The words of preferences are in text/standing.toml.

    The entries with one first word are sorted by length, the longest first: `each day` comes before
    `each`.
    """
    tables = tomllib.loads(Path(__file__).with_name("classify.toml").read_text(encoding="utf-8"))
    tables["preferences"] = preference_words()
    category_and_kind: dict[str, tuple[str, str]] = {}
    for category, kinds in tables.items():
        for kind, words in kinds.items():
            category_and_kind |= dict.fromkeys(words, (category, kind))
    entries_by_first_word: dict[str, list[_Entry]] = {}
    for word in sorted(category_and_kind, key=len, reverse=True):
        category, kind = category_and_kind[word]
        lower_word = word.lower()
        is_exact = kind == "exact"
        letters = word if is_exact else lower_word
        entry = _Entry(
            word=word, letters=letters, category=category, weight=_WEIGHTS[kind], is_exact=is_exact
        )
        first_word = _WORD_START.findall(lower_word)[0]
        entries_by_first_word.setdefault(first_word, []).append(entry)
    return tuple(tables), entries_by_first_word
