"""Which category a text belongs to: layers, the first of which that says something decides
(contract 001, 7 and 18.8).

The owner's corrections, the table of section 7 (classify.toml), the time grammar, the nearest of
labelled example sentences (examples.txt), `knowledge`.
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
from itertools import chain, compress
from math import log, sqrt
from operator import add, itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memoranda.engine.embedding import known_texts
from memoranda.jobs.dedup import ENDING
from memoranda.jobs.job import OWNER, SET_BY, Action, MemoryState
from memoranda.note.model import INBOX
from memoranda.text.words import one_word, runs

if TYPE_CHECKING:
    from memoranda.config import Settings
    from memoranda.note import timephrase

FALLBACK = "knowledge"
"""The category of a text no layer says anything of."""
# How much a word of each kind of the table says.
_WEIGHTS = {"strong": 3, "normal": 2, "exact": 2, "weak": 1}
# A Latin word, or one sign of another script.
_WORD_START = re.compile("[a-z0-9]+|[^\x00-\x7f]")
# Examples that vote, each by this power of its likeness to the text
_VOTING_EXAMPLES = 60
# How much a vote by words counts beside one by meaning.
_WEIGHT = 1.5
# The power for likeness by meaning, whose values are closer together
_POWER_BY_MEANING = 4
# The likeness with which the nearest example decides alone
_LIKENESS_TO_DECIDE_ALONE = 0.4
# The likeness (cosine) an example must have to decide
_LEAST_LIKENESS = 0.12
# How much an example must be like a text to outweigh one ordinary word.
_LIKENESS_TO_OUTWEIGH = 0.25
# The likeness an example must have to be weighed against one ordinary word of the table, whose
# category then has this share of all votes more.
_TABLE_SHARE = 0.15
# The likeness a memory the owner corrected must have to decide
_LIKENESS_TO_CORRECTED = 0.35
# How many times the votes of the second category the first must have so that nobody is asked.
_SURE_RATIO_OF_VOTES = 1.5
# Words of time the grammar reads no time from, as it would guess: "in August".
_SAYS_WHEN = re.compile(
    r"\b(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)(?:[a-z]*ary|ch|il|ust|ember|ober)?\b"
    r"|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(?:19|20)\d\d\b"
    r"|\b(?:spring|summer|autumn|fall|winter|days?|weeks?|weekend|months?|years?|holidays?|christmas|easter|eve)\b"
    r"|[年月周日号春夏秋冬节夕]|星期|礼拜|假期",
    re.I,
)
# `like` as a verb: "I like", "to like"; elsewhere it mostly compares: "just like we agreed".
_LIKING = re.compile(
    r"\b(?:I|we|you|they|he|she|who|people|to|not|'?d|would|don't|doesn't|both)"
    r" (?:also |really |still |always |particularly )?like\b",
    re.IGNORECASE,
)
# Characters of a text that are compared
_COMPARED_CHARACTERS = 2000
# Characters of an example that a reason shows
_SHOWN_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class CategoryChoice:
    """The category chosen for a text.

    layer: `correction`, `table`, `time`, `example` or `fallback`.
    reason: the reason in words.
    words: the words of the table that decided.
    second: the second-best category, which the owner may be asked about.
    is_doubtful: whether this layer was wrong too often for such texts
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
        """Whether nobody need be asked."""
        if self.layer == "fallback" or self.is_doubtful:
            return False
        return self.second is None or self.layer == "table"


class Classifier:
    """Chooses categories. `memories` are those the owner may have corrected (see SET_BY)."""

    def __init__(self, settings: Settings, memories: Iterable[MemoryState] = ()):
        self._settings = settings
        may_be = (
            memory
            for memory in memories
            if memory.info is not None and memory.info.may_say((SET_BY,))
        )
        corrected = [
            (memory_state.content, memory_state.category)
            for memory_state in may_be
            if memory_state.header.get(SET_BY) == OWNER
        ]
        self._corrected = Examples(corrected) if corrected else None

    def choose(self, memory: MemoryState) -> CategoryChoice:
        """The category of a memory's text, by the first layer that says something."""
        return self.choose_for(memory.content, memory.created)

    def choose_for(self, text: str, created: datetime) -> CategoryChoice:
        """The category of a text written at a time, by the first layer that says something."""
        by_correction = self._by_correction(text)
        if by_correction is not None:
            return by_correction
        classified = classify(text)
        highest = max(classified.scores.values(), default=0)
        is_comparison = classified.words == ("like",) and _LIKING.search(text) is None
        # A single usual word decides only if no example is very similar to the text.
        if highest == _WEIGHTS["normal"] and examples().nearest(text, 1, _LIKENESS_TO_OUTWEIGH):
            by_examples = self._by_examples(text, classified.category)
            return replace(by_examples, is_doubtful=by_examples.is_doubtful or is_comparison)
        if highest > _WEIGHTS["weak"]:
            return replace(_by_table(classified, highest), is_doubtful=is_comparison)
        times = self._times_in(text, created)
        by_time = _by_time(times)
        if by_time is not None:
            return by_time
        is_timeless = not times and _SAYS_WHEN.search(text) is None
        return self._by_examples(text, is_timeless=is_timeless)

    def _by_correction(self, text: str) -> CategoryChoice | None:
        """The category that the owner gave to a very similar text. None if none exists."""
        if self._corrected is None:
            return None
        nearest = self._corrected.nearest(text, 1, _LIKENESS_TO_CORRECTED)
        if not nearest:
            return None
        _, category, example = nearest[0]
        reason = f'{category} (you put "{one_line_of(example)}" there)'
        return CategoryChoice(category, "correction", reason)

    def _times_in(self, text: str, created: datetime) -> list[timephrase.Reading | None]:
        """The times that a text names. An unreadable time gives None."""
        from memoranda.note import timephrase

        zone = self._settings.reading_zone
        times = timephrase.read_all(text, created, zone, self._settings.day_hour)
        return [time if isinstance(time, timephrase.Reading) else None for _, time in times]

    def _by_examples(
        self, text: str, leaning: str | None = None, *, is_timeless: bool = False
    ) -> CategoryChoice:
        """Choose by the nearest examples, in words and, if there is a model, in meaning. Both vote
        alike.

        leaning: the category by the table.
        is_timeless: whether the text names no time. Examples of `date` have no vote then.
        """
        if is_timeless:
            without = "date"
        else:
            without = None
        by_words = examples().nearest(text, 2 * _VOTING_EXAMPLES, 0.0)
        by_words = [example for example in by_words if example[1] != without][:_VOTING_EXAMPLES]
        by_meaning = self._nearest_in_meaning(text, without)
        if not by_meaning and (not by_words or by_words[0][0] < _LEAST_LIKENESS):
            return CategoryChoice(FALLBACK, "fallback", f"{FALLBACK} (nothing like it is known)")
        votes = _votes(by_words, _WEIGHT)
        is_alike = False
        if by_meaning:
            votes = _sum_of_votes(votes, _votes(by_meaning, _POWER_BY_MEANING))
        elif by_words[0][0] >= _LIKENESS_TO_DECIDE_ALONE:
            is_alike = True
            votes[by_words[0][1]] = float("inf")
        if leaning is not None:
            votes[leaning] += _TABLE_SHARE * sum(votes.values())
        elected = _elected(votes, [*by_meaning, *by_words])
        # Votes alone are right too seldom; nearly the same sentence, or a word of the table, backs them
        is_backed = is_alike or elected.category == leaning
        return replace(elected, is_doubtful=not is_backed)

    def _nearest_in_meaning(self, text: str, without: str | None) -> list[tuple[float, str, str]]:
        """(likeness, category, example) of the examples nearest in meaning, none of the category
        `without`. Nothing without a model, before `learn`, and for a text the model cannot read.
        """
        known_examples = known_texts(self._settings, examples().texts)
        if not known_examples:
            return []
        labelled = zip(
            known_examples.cosines(text[:_COMPARED_CHARACTERS]), examples().labelled, strict=False
        )
        likenesses = [
            (cosine, category, example)
            for cosine, (example, category) in labelled
            if category != without
        ]
        nearest = sorted(likenesses, reverse=True)[:_VOTING_EXAMPLES]
        return [likeness for likeness in nearest if likeness[0] > 0]


def category_of_text(settings: Settings, text: str, created: datetime) -> str:
    """The category a text belongs to that a person asked to remember."""
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
    """The action that takes a memory out of the inbox.

    It goes into its category or, without one, into the classifier's choice.

    why: a reason to put before the classifier's.
    careful: return None if the classifier is not sure; `memory review` asks about these.
    """
    category, reason = memory.category, memory.category
    words: tuple[str, ...] = ()
    if category == INBOX:
        choice = classifier.choose(memory)
        if careful and not choice.is_sure:
            return None
        category = choice.category
        reason = choice.reason
        words = choice.words
    return Action(
        job, verb, memory.id, f"{why}: {reason}" if why else reason, memory.path, category, words
    )


def category_of(memory: MemoryState, classifier: Classifier) -> str:
    if memory.category == INBOX:
        return classifier.choose(memory).category
    return memory.category


def _by_table(classified: Classified, highest: int) -> CategoryChoice:
    """The category the words of the table decide."""
    category = classified.category
    equal = [
        name for name, score in classified.scores.items() if score == highest and name != category
    ]
    reason = f"{category} ({', '.join(classified.words)})"
    if equal:
        second = equal[0]
    else:
        second = None
    return CategoryChoice(category, "table", reason, classified.words, second)


def _by_time(times: Iterable[timephrase.Reading | None]) -> CategoryChoice | None:
    """`habits` for a repetition, `date` for a day of the calendar. None for other times."""
    readings = [time for time in times if time is not None]
    candidates = [("habits", reading) for reading in readings if reading.repeat]
    candidates += [("date", reading) for reading in readings if reading.is_dated]
    if not candidates:
        return None
    category, reading = candidates[0]
    return CategoryChoice(category, "time", f'{category} (time "{reading.phrase}")')


def _votes(neighbours: Iterable[tuple[float, str, str]], power: float) -> defaultdict[str, float]:
    """The votes of (likeness, category, example) for each category."""
    votes = defaultdict[str, float](float)
    for likeness, category, _ in neighbours:
        votes[category] += likeness**power
    return votes


def _sum_of_votes(
    by_words: Mapping[str, float], by_meaning: Mapping[str, float]
) -> defaultdict[str, float]:
    """The shares of both votes, added."""
    of_words = sum(by_words.values()) or 1.0
    of_meaning = sum(by_meaning.values())
    joined = defaultdict[str, float](float)
    for category in [*by_words, *by_meaning]:
        share = by_words.get(category, 0.0) / of_words
        joined[category] = share + by_meaning.get(category, 0.0) / of_meaning
    return joined


def _elected(
    votes: Mapping[str, float], neighbours: Sequence[tuple[float, str, str]]
) -> CategoryChoice:
    """The category with most votes, and the second if it is close."""
    (category, most_votes), *later_votes = sorted(votes.items(), key=itemgetter(1), reverse=True)
    examples_of_category = [example for _, name, example in neighbours if name == category]
    if examples_of_category:
        nearest = examples_of_category[0]
    else:
        nearest = neighbours[0][2]
    second = None
    if later_votes and most_votes < _SURE_RATIO_OF_VOTES * later_votes[0][1]:
        second = later_votes[0][0]
    reason = f'{category} (nearest to "{one_line_of(nearest)}")'
    return CategoryChoice(category, "example", reason, (), second)


def learn(settings: Settings) -> int:
    """Embed some of the examples, so that texts are also compared by meaning.

    Returns how many were embedded: 0 if all are, or without a model. Raises NoModel, NoAnswer,
    StorageError.
    """
    known_examples = known_texts(settings, examples().texts)
    if known_examples:
        return known_examples.learn()
    return 0


def one_line_of(text: str) -> str:
    """A text in one line, as a reason or a question shows it."""
    line = " ".join(text.split())
    if len(line) <= _SHOWN_CHARACTERS:
        return line
    return line[: _SHOWN_CHARACTERS - 1] + "…"


class Examples:
    """Labelled texts, compared with others by their words (tf-idf, cosine)."""

    def __init__(self, labelled: Sequence[tuple[str, str]]):
        self.labelled = labelled
        self.texts = tuple([text for text, _ in labelled])
        counts = _counted_features(self.texts)
        having = Counter(chain.from_iterable(counts))
        self._rarity = {
            feature: log((len(counts) + 1) / (count + 0.5)) for feature, count in having.items()
        }
        self._unknown = log(2 * (len(counts) + 1))
        self._with = defaultdict[str, list[tuple[int, float]]](list)
        # loops, no small functions: there are a thousand
        for example_index, features in enumerate(counts):
            weights = {}
            squares = 0.0
            for feature, count in features.items():
                weights[feature] = weight = (1 + log(count)) * self._rarity[feature]
                squares += weight * weight
            length = sqrt(squares) or 1.0
            for feature, weight in weights.items():
                self._with[feature].append((example_index, weight / length))

    def nearest(self, text: str, limit: int, least: float) -> list[tuple[float, str, str]]:
        """(likeness, category, example) of the nearest ones that are like `text` by `least` at
        least, best first.
        """
        likeness = [0.0] * len(self.labelled)
        (counts,) = _counted_features([text])
        weights = {
            name: (1 + log(count)) * self._rarity.get(name, self._unknown)
            for name, count in counts.items()
        }
        length = sqrt(sum(weight * weight for weight in weights.values())) or 1.0
        for feature, weight in weights.items():
            for example_index, example in self._with.get(feature, ()):
                likeness[example_index] += weight / length * example
        best = sorted(range(len(likeness)), key=likeness.__getitem__, reverse=True)[:limit]
        return [
            (
                likeness[example_index],
                self.labelled[example_index][1],
                self.labelled[example_index][0],
            )
            for example_index in best
            if likeness[example_index] > least
        ]


@cache
def examples() -> Examples:
    """The sentences of examples.txt."""
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
    """The features by which texts are compared, counted for each text.

    They are its words without endings, CJK characters and pairs, its beginning (`^word`), and its
    form: names, numbers, marks, length. Only the beginning of a long text counts. The function uses
    loops and patterns instead of small functions for speed: a thousand examples are read before the
    first text is compared.
    """
    all_counts = list[Counter[str]]()
    words = one_word()
    is_cjk = runs().match
    for text in texts:
        text = text[:_COMPARED_CHARACTERS]
        features = list[str]()
        low = unicodedata.normalize("NFKC", text.lower().replace("’", "'"))
        for word_index, word in enumerate(ENDING.sub("", " ".join(words.findall(low))).split()):
            if not word.isascii() and is_cjk(word):
                features += [*word, *map(add, word, word[1:])]
                features += [f"^{word[0]}", f"^{word[:2]}"] if word_index == 0 else []
            else:
                if word.isdigit():
                    feature_word = ""
                else:
                    feature_word = word
                features += ([feature_word] if feature_word else []) + (
                    [f"^{feature_word}"] if word_index == 0 else []
                )
        written = _LATIN_WORD.findall(text)
        if written:
            first = written[0].lower()
        else:
            first = ""
        after = " " + " ".join(written[1:]) + " "
        every_word = f" {first}{after}"
        signs = {
            "#name": _NAME.search(after),
            "#number": any(map(str.isdigit, written)),
            "#does": first.endswith("s") and first not in ("this", "is", "always", "his", "its"),
            "#doing": first.endswith("ing"),
            "#of": "'s " in every_word,
            "#did": "ed " in every_word,
        }
        features += [
            *compress(signs, signs.values()),
            *map("#".__add__, dict.fromkeys(_MARK.findall(text))),
        ]
        features.append(
            f"#words{min(4, len(written) // 4)}" if written else f"#length{min(5, len(text) // 5)}"
        )
        all_counts.append(Counter(features))
    return all_counts


class Classified(NamedTuple):
    """The category that the table of words gives a text.

    words: the entries of the table that decided, in the order in which the text has them.
    scores: the categories with a score, in the order of the table.
    """

    category: str
    words: tuple[str, ...]
    scores: Mapping[str, int]


class _Entry(NamedTuple):
    """An entry of the table. `sought` in lower case, or as written when `exact`."""

    word: str
    sought: str
    category: str
    weight: int
    exact: bool

    def is_at(self, start: int, text: str) -> bool:
        """Whether it stands at a position of `text`, an English entry as a separate word."""
        end = start + len(self.sought)
        if not text.startswith(self.sought, start):
            return False
        # Chinese, Japanese and Korean letters end an English word: `这个API的`.
        neighbours = (text[start - 1 : start], text[end : end + 1]) if self.sought.isascii() else ()
        return not any(char == "_" or (char < "\u2e80" and char.isalnum()) for char in neighbours)


def classify(text: str) -> Classified:
    """The category with the highest score, of equal ones the first in the table; `knowledge` when
    no word matches. An entry counts once; a match inside a longer match of any entry does not
    count. `text` is the memory's content. Source: contract 001, 7.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.replace("’", "'"))
    text = " ".join(text.split())
    lowered = _lowered(text)
    categories, table = _table()
    matched: dict[_Entry, None] = {}
    matched_until = 0
    for match in _WORD_START.finditer(lowered):
        position = match.start()
        for entry in table.get(match[0], ()):
            if entry.is_at(position, text if entry.exact else lowered):
                end = position + len(entry.sought)
                if end > matched_until:
                    matched_until = end
                    matched[entry] = None
                break
    totals = Counter[str]()
    for entry in matched:
        totals[entry.category] += entry.weight
    scores = {name: totals[name] for name in categories if name in totals}
    best = max(scores, key=scores.__getitem__, default=FALLBACK)
    words = tuple(entry.word for entry in matched if entry.category == best)
    return Classified(best, words, scores)


def _lowered(text: str) -> str:
    """`text` in lower case; a letter that grows stays, so that every character keeps its place."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(char.lower() if len(char.lower()) == 1 else char for char in text)


@cache
def _table() -> tuple[tuple[str, ...], dict[str, list[_Entry]]]:
    """The categories of classify.toml in their order, and its entries by what they begin with, the
    longest first.
    """
    tables = tomllib.loads(Path(__file__).with_name("classify.toml").read_text(encoding="utf-8"))
    places: dict[str, tuple[str, str]] = {}
    for category, kinds in tables.items():
        for kind, words in kinds.items():
            places |= dict.fromkeys(words, (category, kind))
    entries_by_stem: dict[str, list[_Entry]] = {}
    for word in sorted(places, key=len, reverse=True):
        category, kind = places[word]
        low = word.lower()
        is_exact = kind == "exact"
        entry = _Entry(word, word if is_exact else low, category, _WEIGHTS[kind], is_exact)
        entries_by_stem.setdefault(_WORD_START.findall(low)[0], []).append(entry)
    return tuple(tables), entries_by_stem
