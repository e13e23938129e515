"""Scoring notes by named features, for questions and for all other searches (`weights`).

For a question, the stemmed full-text table tells which notes contain a word, and everything else is
computed here, for some hundred notes. For a search for all words, the notes are given, and their
texts are read in `chunks`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import cached_property
from heapq import nlargest
from itertools import chain
from math import log

from memoranda.index.filters import quoted
from memoranda.index.search import weights
from memoranda.index.search.parse import (
    MAX_TERMS,
    SEVERAL,
    Focus,
    ParsedQuery,
    Question,
    focus_of,
    is_told,
    read_question,
)
from memoranda.index.search.queries import COMMON, NAMES, STEMS, Features, SearchContext
from memoranda.index.search.word_marks import (
    EXACT,
    IN_TEXT,
    LOOSE,
    TITLE,
    bits_of,
    last_word,
    marks_of,
)
from memoranda.index.search.words import MAX_HELD, Word, forms
from memoranda.text.dialogue import turns_of
from memoranda.text.folding import fold
from memoranda.text.pattern import lazy_pattern
from memoranda.text.tokens import is_cjk, query_text

# How many words of a long text count: those with most weight.
_MAX_WORDS = 40
# Speakers who are the person.
_USERS = frozenset(("user", "human"))
# The two sides of a talk with an assistant, as its records name them.
_ASSISTANTS = frozenset(("assistant", "ai", "model"))
# Letters from which on a word also matches as a prefix.
_PREFIX_FROM = 4

# The cosine from which a note without a word of the question is worth showing.
_MIN_COSINE = 0.2
# Nearness in meaning counts from the note that so large a share is farther than.
_FAR_SHARE = 0.1
# Meaning counts from the cosine that this share of the notes do not reach, and from this far below
# the highest.
_MIN_SPREAD = 0.25
# The names of what is added up, in the order of `Ranking._parts`.
_FEATURES = (
    "words",
    "meaning",
    "neighbors",
    "conversation",
    "conversation_words",
    "speaker",
    "own",
    "asks",
    "date",
    "timed",
)
# Better passages of one conversation that lower the next one.
_MAX_BETTER = 5
# Characters of a text whose relevance is halved for its length.
_LONG = 720
# With more lists of notes there are enough groups that notes are grouped one by one.
_MANY_LISTS = 20
# For how many words of a long text the index is asked.
_MOST_ASKED = 56
# A model is given this many characters of the end of a text.
_EMBEDDED = 2_000
# If rarer words of a long text have found this many notes, no note is added for a common word
# alone.
_ENOUGH = 2_000
# A word of letters alone.
_NAME = lazy_pattern(r"[^\W\d_]+")
# A name that more than one in so many notes holds says little.
_FREQUENT_NAME = 25
# Homes with fewer notes are judged as if they had so many.
_NAMED_SIZE = 256

Nearness = Callable[[str, Collection[int]], Mapping[int, float]]
"""(question, rows) -> cosines of these notes and of the most similar ones, by row; {} where no
model is usable. A note without a vector is left out."""


class _WordLookup:
    """Finds the notes that contain the words of one question."""

    def __init__(self, context: SearchContext):
        self.context = context
        self.table, self.column = (NAMES, "title : ") if context.by_title else (STEMS, "")

    def words(self, question: Question) -> list[Word]:
        """The words of the question that some note contains, of very many the rarest."""
        texts = _likely_rare(question)
        speakers = self.context.speakers(texts)
        # A longer text says enough without its mistyped words
        is_mended = len(texts) <= MAX_TERMS
        words_found: list[Word] = []
        for text in texts:
            is_speaker = text in speakers
            word = self._word(text, is_mended=is_mended and not is_speaker)
            if not word.rows and not is_speaker:
                continue
            word.is_speaker = is_speaker
            word.weight *= self._rarity_of(word)
            if text in question.weak:
                word.is_weak = True
                word.weight *= weights.WEIGHTS.weak
            if text in question.beside:
                word.is_beside = True
                word.weight *= question.beside[text]
            words_found.append(word)

        if len(words_found) > _MAX_WORDS:
            rare = nlargest(
                _MAX_WORDS, range(len(words_found)), key=lambda at: words_found[at].weight
            )
            words_found = [words_found[at] for at in sorted(rare)]
        if not self.column:
            for word in words_found:
                word.name_rows = self.rows(_own_match(word.text), table=NAMES)
        return words_found

    def _word(self, text: str, *, is_mended: bool) -> Word:
        """A word and the notes that hold it, else a longer word it begins, else, with `is_mended`,
        a word one edit away. Its weight is what it counts relative to a word that is held."""
        is_latin = not is_cjk(text)
        match = _own_match(text)
        if not is_latin and len(text) == 1:
            match += "*"
        word = Word(text, 1.0, self.rows(match), match=match)
        if not word.rows and is_latin and len(text) >= _PREFIX_FROM:
            word.is_open = True
            word.match = f"{quoted(text)}*"
            word.rows = self.rows(word.match)
        if word.rows or not is_mended:
            return word
        word.spelled = self.context.spellings(text)
        if word.spelled:
            word.is_open = False
            word.match = " OR ".join(map(quoted, word.spelled))
            word.weight = weights.WEIGHTS.spelled
            word.rows = self.rows(word.match)
        return word

    def _rarity_of(self, word: Word) -> float:
        """How rare a word is; of one that very many notes hold not all were looked at."""
        note_count = float(len(word.rows))
        if note_count >= MAX_HELD:
            note_count *= max(1.0, self.context.size / (max(word.rows) - min(word.rows) + 1))
        return self.rarity(note_count)

    def terms(self, query: ParsedQuery) -> list[Word]:
        """The terms of a search for all words; how rare a single one is does not matter."""
        context = self.context
        terms = query.terms
        term_words = list[Word]()
        for term in terms:
            weight = 1.0
            if len(terms) > 1:
                weight = self.rarity(
                    context.held(term) or context.count(context.loose(term), COMMON + 1)
                )
            other_forms = context.alternatives(term)
            term_words.append(
                Word(term.text, weight, term=term, is_open=term.open, others=other_forms)
            )
        return term_words

    def rows(self, text: str, table: str = "") -> list[int]:
        if table:
            column = "{title headings tags} : "
        else:
            column = self.column
        rows = self.context.newest(
            self.context.with_filters(f"{column}({text})"), MAX_HELD, table or self.table
        )
        if self.context.is_filtered and rows:
            passed = set(self.context.passing(rows))
        else:
            passed = None
        if passed is None:
            return rows
        return [row for row in rows if row in passed]

    def rarity(self, note_count: float) -> float:
        """As in BM25."""
        return log(1 + (max(self.context.size, note_count) - note_count + 0.5) / (note_count + 0.5))


class TermScorer(dict[int, float]):
    """The sum of the weights of words, by bitmask; `in_titles` is the part of a bitmask about
    title, headings, tags.
    """

    def __init__(self, words: Sequence[Word]):
        super().__init__()
        self._title = weights.WEIGHTS.title
        self.weights = [word.weight for word in words]
        self.in_titles = sum(bits_of(at, TITLE) for at in range(len(words)))

    def __missing__(self, bits: int) -> float:
        if not bits:
            return 0.0
        word = last_word(bits)
        marks = marks_of(bits, word)
        is_in_text = bool(marks & IN_TEXT)
        is_in_title = bool(marks & TITLE)
        word_score = self.weights[word] * (is_in_text + self._title * is_in_title)
        score = self[bits ^ bits_of(word, marks)] + word_score
        self[bits] = score
        return score


class Ranking:
    """The notes that answer a question, and the part each feature adds to their scores.

    context: the filters and the viewer.
    query, given: for a search for all words, the query and its notes. Each note stands alone and is
        read as a whole.
    today: the day that "last week" counts from.
    near: compares meanings.
    scores, features: the scores and the features of the notes scored.
    bits: which words each note contains, and how (`word_marks`).
    cosines: the similarity of meaning, scaled to 0 to 1.
    """

    def __init__(
        self,
        context: SearchContext,
        text: str,
        today: date | None = None,
        near: Nearness | None = None,
        query: ParsedQuery | None = None,
        given: Sequence[int] = (),
    ):
        self.context = context
        self.query = query
        self.question = read_question(text, today)
        self.table = weights.WEIGHTS
        self.is_told = query is None and is_told(text)
        if self.is_told:
            self.table = replace(self.table, meaning=self.table.told_meaning)
        self._lookup = _WordLookup(context)
        if query is None:
            self.words = self._lookup.words(self.question)
        else:
            self.words = self._lookup.terms(query)
        focus = focus_of(text)
        self._is_several = (
            query is None and SEVERAL.search(focus.text) is not None and bool(self.table.several)
        )
        self.speakers = {word.text for word in self.words if word.is_speaker}
        self._groups = _groups(self.words)
        self.scorer = TermScorer(self.words)

        self.bits: dict[int, int] = {}
        self.features: dict[int, Features] = {}
        if query is None:
            self._choose()
            self._add_days()
        else:
            self._take(given)
        self._word_scores = self._score_words()
        self.cosines: dict[int, float] = {}
        if near is not None and self.table.meaning:
            self._compare_meanings(near, _meant(text, focus))
        own_scores = self._word_scores
        if self.cosines:
            own_scores = {row: sum(self.own_score(row)) for row in self.features}

        self._best: dict[int, float] = {}
        self._together: dict[int, int] = {}
        self._neighbor_scores: dict[int, float] = {}
        self._look_around(own_scores)
        together = {*self._together.values(), *(self.bits.get(row, 0) for row in self.features)}
        self._most = max(map(self.scorer.__getitem__, together), default=0.0) or 1.0
        self._better: dict[int, int] = {}
        self._assisted = {
            note.conversation for note in self.features.values() if is_assistant(note.speaker)
        }
        self.scores = self._scores()

    def _take(self, rows: Sequence[int]) -> None:
        """Score these notes, each as one that stands alone."""
        self.features = {
            note.row: note._replace(conversation=None) for note in self.context.features(rows)
        }

    def _add_days(self) -> None:
        """The newest notes of each day, for a question that names nothing but days."""
        if not self.question.only_days:
            return
        for period in self.question.periods:
            is_whole_date = len(period.first) == len("2026-11-21")
            if is_whole_date:
                rows = self.context.rows_of_days(period.first, period.last, self.table.most)
                self._add([row for row in rows if row not in self.features])

    @cached_property
    def _order(self) -> list[int]:
        return self.context.best_first(self.scores)

    @cached_property
    def _match(self) -> str:
        """The expression that finds all notes that contain a word.

        Empty if all were looked at already.
        """
        is_cut = any(word.is_cut for word in self.words) and not self.context.is_filtered
        any_word = " OR ".join(word.match for word in self.words)
        if is_cut:
            return self.context.with_filters(f"{self._lookup.column}({any_word})")
        return ""

    @cached_property
    def _holding(self) -> set[int]:
        """The notes that were found to contain a word."""
        return set().union(*(rows for _, rows in _lists(self.words)))

    def total(self, most: int, other_rows: Collection[int] = ()) -> int:
        """How many notes contain a word or are scored, or are among `other_rows`; those that were not
        looked at are counted up to `most`."""
        known_count = len(self._holding) + len(self.features.keys() - self.bits.keys())
        if self._match:
            known_count = max(
                known_count, self.context.count(self._match, most, self._lookup.table)
            )
        return known_count + sum(
            row not in self.features and row not in self._holding for row in other_rows
        )

    def page(self, offset: int, limit: int) -> list[int]:
        """Some of the notes in order; of equal score those changed last come first, then by
        permalink.
        """
        order = self._order
        stop = offset + limit
        if stop > len(order):
            rest = sorted(self._holding - self.features.keys(), reverse=True)
            if self._match:
                rest += self.context.newest(self._match, stop, self._lookup.table)
            order = list(dict.fromkeys([*order, *rest]))
        return order[offset:stop]

    def rows_of(self, word: str) -> Sequence[int]:
        """The notes that contain a form of `word`. If very many do, the newest."""
        return self._lookup.rows(_own_match(word))

    def rarity(self, note_count: float) -> float:
        """How much a word counts that this many notes hold."""
        return self._lookup.rarity(note_count)

    def bits_of(self, row: int) -> int:
        """The words of the question a note contains, as in `bits`, whether it was scored or not."""
        if row not in self.bits:
            self._look_up([row])
        return self.bits.get(row, 0)

    def relevance(self, bits: int, characters: int) -> float:
        """How relevant a text is to the question, on its own scale and not relative to other notes.

        It is the sum of the rarities (0 to 1) of the shared words, times their share of the
        rarities of all words. A long text gets less, since it shares many words with anything.

        bits: the words the text contains.
        characters: its length.
        """
        rarities = self._rarities
        shared = sum(
            rarity for word, rarity in enumerate(rarities) if marks_of(bits, word) & (EXACT | TITLE)
        )
        question = self.question
        heard = sum(not (word.is_weak or word.is_beside) for word in self.words)
        asked_words = set(question.words) - question.weak - question.beside.keys()
        unheard = max(0, len(asked_words) - heard)
        return shared * shared / max(1.0, sum(rarities) + unheard) / (1 + characters / _LONG)

    @cached_property
    def _rarities(self) -> list[float]:
        """How rare each word is, from 0 to 1."""
        rarest = log(1 + (self.context.size + 0.5) / 1.5)
        return [
            0.0 if word.is_weak or word.is_beside else min(1.0, word.weight / rarest)
            for word in self.words
        ]

    def shares(self, row: int) -> dict[str, float]:
        """The part that each feature adds to the score of a scored note.

        Zero parts are left out.
        """
        parts = dict(zip(_FEATURES, self._parts(self.features[row]), strict=True))
        parts["several"] = self.table.several * self._better.get(row, 0)
        return {name: round(value, 3) for name, value in parts.items() if round(value, 3)}

    def _parts(self, note: Features) -> tuple[float, ...]:
        """The part that each of _FEATURES adds to the score of a note. This is the one formula."""
        table = self.table
        place = note.conversation
        words, meaning = self.own_score(note.row)
        # A note that stands alone is a separate conversation
        best = words + meaning
        together = self.bits.get(note.row, 0)
        speaker = asks = timed = date = 0.0
        if place is not None:
            best = self._best.get(place, 0.0)
            together = self._together.get(place, 0)
            if note.speaker in self.speakers:
                speaker = table.speaker
            if note.question and not self._is_request(note):
                asks = table.asks * note.question / 100
            if note.has_time and self.question.when:
                timed = table.timed
        if self.question.periods:
            date = table.date * sum([period.share(note.day) for period in self.question.periods])
        return (
            table.words * words,
            table.words * meaning,
            self._neighbor_scores.get(note.row, 0.0),
            table.conversation * best,
            table.conversation_words * self.scorer[together] / self._most,
            speaker,
            table.own * note.first_person / 4,
            asks,
            date,
            timed,
        )

    def _is_request(self, note: Features) -> bool:
        """Whether a question in this turn may still come with the answer.

        In such turns somebody explains a matter to an assistant.
        """
        return note.speaker in _USERS or note.conversation in self._assisted

    def _scores(self) -> dict[int, float]:
        """The sum of all features of each note."""
        # Rounded, in a third of the time of `round`: equals stay equal
        scores = {
            row: (sum(self._parts(note)) * 1e6 + 0.5) // 1 / 1e6
            for row, note in self.features.items()
        }
        if not self._is_several:
            return scores
        seen_counts: dict[int, int] = {}
        # A penalty for each higher-scored note of the conversation
        for row in newest_first(scores):
            conversation_of = self.features[row].conversation
            if conversation_of is not None:
                self._better[row] = before = min(seen_counts.get(conversation_of, 0), _MAX_BETTER)
                seen_counts[conversation_of] = before + 1
        return {
            row: round(score + self.table.several * self._better.get(row, 0), 6)
            for row, score in scores.items()
        }

    def own_score(self, row: int) -> tuple[float, float]:
        """A note's score by words and by meaning, together up to 1.

        Without a vector, by words alone.
        """
        words = self._word_scores.get(row, 0.0)
        cosine = self.cosines.get(row)
        share = self.table.meaning
        if cosine is None:
            return (words, 0.0)
        return (words * (1 - share), cosine * share)

    def _choose(self) -> None:
        """Choose the notes whose words weigh most. Among equal notes the newest come first."""
        scorer = self.scorer
        room = self.table.most
        rows: list[int] = []
        for bits in sorted(self._groups, key=lambda bit_group: (-scorer[bit_group], bit_group)):
            some: Collection[int] = self._groups[bits]
            if len(some) > room:
                some = sorted(some, reverse=True)[:room]
            self.bits.update(dict.fromkeys(some, bits))
            rows += some
            room -= len(some)
            if not room:
                break
        self.features = {note.row: note for note in self.context.features(rows)}

    def _add(self, rows: Collection[int]) -> None:
        """Also score the given notes if they pass all filters."""
        rows = self.context.visible(rows)
        self._look_up(rows)
        self.features.update((note.row, note) for note in self.context.features(rows))

    def _look_up(self, rows: Collection[int]) -> None:
        asked_rows = set(rows)
        for bits, group in self._groups.items():
            matching = group & asked_rows
            if matching:
                self.bits.update(dict.fromkeys(matching, bits))
        for row in (asked_rows & self._holding) - self.bits.keys():
            self.bits[row] = self._left_out[row]

    @cached_property
    def _left_out(self) -> dict[int, int]:
        """The words that notes contain, those in no group among them."""
        bits: defaultdict[int, int] = defaultdict(int)
        for bit, rows in _lists(self.words):
            for row in rows:
                bits[row] |= bit
        return bits

    def _score_words(self) -> dict[int, float]:
        """The score of each note by its words, 1 for the best: of equal ones the shorter is worth
        more.
        """
        usual = (
            sum([note.words for note in self.features.values()]) / (len(self.features) or 1) or 1
        )
        scorer = self.scorer
        bits = self.bits.get
        share = self.table.brevity
        least = 1 + 1.2 * (1 - share)
        more = 1.2 * share / usual
        scores_found = {
            row: scorer[bits(row, 0)] / (least + more * note.words)
            for row, note in self.features.items()
        }
        most = max(scores_found.values(), default=0.0) or 1.0
        return {row: value / most for row, value in scores_found.items()}

    def _compare_meanings(self, near: Nearness, text: str) -> None:
        """Scales the cosines to 0 to 1, and scores the most similar notes too.

        Names of speakers that very many notes contain do not distinguish notes, and are put as
        "someone".
        """
        if not self.is_told:
            self.table = replace(self.table, meaning=self._share_of_meaning())
        cosines = near(self._without_frequent_names(text), list(self.features))
        self._add(
            [
                row
                for row, cosine in cosines.items()
                if cosine >= _MIN_COSINE and row not in self.features
            ]
        )
        cosines = {row: cosine for row, cosine in cosines.items() if row in self.features}
        order = sorted(cosines.values())
        if not order or order[-1] <= 0:
            return
        most = order[-1]
        least = min(order[int(len(order) * _FAR_SHARE)], most * (1 - _MIN_SPREAD))
        self.cosines = {
            row: max(0.0, cosine - least) / (most - least) for row, cosine in cosines.items()
        }
        if self.cosines:
            # The share of words is less in what a conversation says, too
            words_share = 1 - self.table.meaning
            self.table = replace(
                self.table, conversation_words=self.table.conversation_words * words_share
            )

    def _share_of_meaning(self) -> float:
        """How much meaning counts in a note's own score: the more, the fewer words of the question
        the best note holds."""
        table = self.table
        missing = max(0.0, 1 - self._heard_share() / table.heard)
        return table.meaning + (table.unheard_meaning - table.meaning) * missing

    def _heard_share(self) -> float:
        """The share of the question's words, by rarity, that the note with most of them holds."""
        question = self.question
        heard_words = {word.text for word in self.words}
        unheard = [word for word in question.words if word not in heard_words | question.weak]
        rarest = self._lookup.rarity(1)
        total = rarest * sum(question.beside.get(word, 1.0) for word in unheard)
        total += sum(word.weight for word in self.words if not word.is_weak)
        return self._most_held() / (total or 1.0)

    def _most_held(self) -> float:
        """The highest sum of the weights of words that one note holds, in its text or its names."""
        weights_of_words = [0.0 if word.is_weak else word.weight for word in self.words]
        return max(
            (
                sum(weight for at, weight in enumerate(weights_of_words) if marks_of(bits, at))
                for bits in set(self.bits.values())
            ),
            default=0.0,
        )

    def _without_frequent_names(self, text: str) -> str:
        """The text with "someone" for speakers' names that very many notes contain, unless it holds
        nothing else."""
        speakers = [word for word in self.words if word.is_speaker]
        if len(speakers) == len(self.words):
            return text
        least = max(self.context.size, _NAMED_SIZE) / _FREQUENT_NAME
        frequent = {word.text for word in speakers if word.is_cut or len(word.rows) >= least}
        if not frequent:
            return text
        return _NAME.sub(lambda name: "someone" if fold(name[0]) in frequent else name[0], text)

    def _look_around(self, own_scores: Mapping[int, float]) -> None:
        """Collect the best score and the words of each conversation, and what the best notes add to
        neighbors.

        This also scores turns that contain no word themselves.
        """
        best = self._best
        together = self._together
        bits = self.bits.get
        for row, value in own_scores.items():
            place = self.features[row].conversation
            if place is not None:
                if value > best.get(place, -1.0):
                    best[place] = value
                together[place] = together.get(place, 0) | bits(row, 0)
        table = self.table
        neighbor_scores = self._neighbor_scores
        able = {
            row: own_scores[row]
            for row, note in self.features.items()
            if note.conversation is not None
        }
        if able:
            neighbors = self.context.neighbors(newest_first(able)[: table.sources])
        else:
            neighbors = {}
        sides = chain.from_iterable(neighbors.values())
        rows = set(chain.from_iterable(sides))
        self._add(rows - self.features.keys())
        for side, share in ((0, table.after), (1, table.before)):
            for source in sorted(neighbors, reverse=not side):
                shares = (share, table.around, table.around)
                for part, row in zip(shares, neighbors[source][side], strict=False):
                    if row in self.features:
                        neighbor_scores[row] = (
                            neighbor_scores.get(row, 0.0) + part * own_scores[source]
                        )


def is_assistant(speaker: str | None) -> bool:
    """Whether this is what records of talks with an assistant call it."""
    return speaker in _ASSISTANTS


def is_user(speaker: str | None) -> bool:
    """Whether this is what such records call the person."""
    return speaker in _USERS


def newest_first(scores: Mapping[int, float]) -> list[int]:
    """The notes by score, of equal score the newest first: `best_first` without asking the index."""
    return sorted(sorted(scores, reverse=True), key=scores.__getitem__, reverse=True)


def _groups(words: Sequence[Word]) -> dict[int, set[int]]:
    """The notes that contain a word, by bitmask: so few groups that notes are counted and chosen by
    sets.
    """
    lists = _lists(words)
    if len(lists) > _MANY_LISTS:
        return _groups_of_many(words)
    groups: dict[int, set[int]] = {}
    for bit, rows in lists:
        remaining = set(rows)
        for bits_before, group in list(groups.items()):
            both = group & remaining
            if both:
                group -= both
                remaining -= both
                groups[bits_before | bit] = both
        groups[bit] = remaining
    return {bits_held: group for bits_held, group in groups.items() if group}


def _lists(words: Sequence[Word], first: int = 0) -> list[tuple[int, Sequence[int]]]:
    """The notes that contain each word and that are called by it, by the bit that says so."""
    lists: list[tuple[int, Sequence[int]]] = []
    for number, word in enumerate(words, first):
        if word.rows:
            mark = LOOSE if word.is_open else EXACT
            lists.append((bits_of(number, mark), word.rows))
        if word.name_rows:
            lists.append((bits_of(number, TITLE), word.name_rows))
    return lists


def _groups_of_many(words: Sequence[Word]) -> dict[int, set[int]]:
    """`_groups` of a long text, note by note, the rarest words first. Notes with nothing but common
    words are left out, once there are enough."""
    bits: defaultdict[int, int] = defaultdict(int)
    for at in sorted(range(len(words)), key=lambda at: -words[at].weight):
        for bit, rows in _lists([words[at]], at):
            for row in rows if len(bits) < _ENOUGH else bits.keys() & rows:
                bits[row] |= bit
    found: dict[int, set[int]] = {}
    for row, held in bits.items():
        found.setdefault(held, set()).add(row)
    return found


def _likely_rare(question: Question) -> list[str]:
    """The words to look for. If there are very many, the question's words and the longest others.

    Long words are rarely common.
    """
    others = [word for word in question.words if word in question.beside]
    room = max(0, _MOST_ASKED - (len(question.words) - len(others)))
    kept = set(sorted(others, key=len, reverse=True)[:room])
    chosen = [word for word in question.words if word not in question.beside or word in kept]
    return chosen[: MAX_TERMS * 8]


def _meant(text: str, focus: Focus) -> str:
    """The part of a query that a model is asked about."""
    if focus.is_buried and not turns_of(text):
        return focus.text
    return text[-_EMBEDDED:]


def _own_match(text: str) -> str:
    if is_cjk(text):
        return quoted(query_text(text)[0])
    return " OR ".join(quoted(query_text(form)[0]) for form in forms(text))
