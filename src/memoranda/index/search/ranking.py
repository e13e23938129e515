"""Score notes by named features. Their weights are in `weights`.

For a question, a note may match with any word: the stemmed full-text table finds the notes, and
some hundred of them are scored here. For a search for all words, the caller has found the notes
already, and `chunks` reads their texts.

The words of the query that a note contains are one number, its *bits* (`word_marks`). Words are
numbered from 0 in the order of the query. A *row* is the number of a note in the index, and higher
for a newer note. A *conversation* is a folder of notes on one day that are turns of a talk
(index/features.py). Any other note *stands alone*. A text is *told* if it tells something rather
than asks.
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
from memoranda.index.search.parse import MAX_TERMS, ParsedQuery, phrase_for
from memoranda.index.search.queries import (
    COMMON,
    NAMES,
    STEMS,
    Features,
    RowList,
    SearchContext,
)
from memoranda.index.search.question import (
    SEVERAL,
    Focus,
    Question,
    focus_of,
    is_told,
    read_question,
)
from memoranda.index.search.word_marks import (
    EXACT,
    IN_TEXT,
    LOOSE,
    TITLE,
    WIDTH,
    bits_of,
    last_word,
    marks_of,
)
from memoranda.index.search.words import MAX_HELD, Word, forms
from memoranda.text.dialogue import turns_of
from memoranda.text.folding import fold
from memoranda.text.han import other_forms
from memoranda.text.pattern import lazy_pattern
from memoranda.text.tokens import is_cjk

# A long text counts by this many words, the heaviest.
_MAX_WORDS = 40
# The names that records of talks with an assistant give to the person and to the assistant.
_USERS = frozenset(("user", "human"))
_ASSISTANTS = frozenset(("assistant", "ai", "model"))
# A word needs this many letters to match as the beginning of a longer word.
_MIN_PREFIX_LETTERS = 4

# A note without a word of the question needs this cosine to be shown.
_MIN_COSINE = 0.2
# Cosines are scaled to 0 to 1. The scale begins at the cosine that this share of the notes does not
# reach, but at least _MIN_SPREAD (a quarter) below the highest cosine: else it would be too short.
_FAR_SHARE = 0.1
_MIN_SPREAD = 0.25
# The names of the values that `Ranking._parts` returns.
_FEATURES = (
    "words",
    "meaning",
    "neighbors",
    "conversation",
    "conversation_words",
    "speaker",
    "replied",
    "standing",
    "own",
    "asks",
    "date",
    "timed",
)
# At most this many better notes of the same conversation lower a note's score.
MAX_BETTER = 5
# The relevance of a text of this length is halved, since a long text shares words with anything.
_HALVING_CHARACTERS = 720
# With more lists of rows than these, grouping note by note is faster than by sets.
_MAX_LISTS_OF_SETS = 20
# The index looks up at most this many words of a long text.
_MAX_LOOKED_UP = 56
# And at most this many words of a question, however long it is.
_MAX_QUESTION_WORDS = 8 * MAX_TERMS
# A model gets this many characters from the end of a text, and of a talk. The matter of a talk may
# have changed before that.
_EMBEDDED_CHARACTERS = 2_000
_EMBEDDED_CHARACTERS_OF_TALK = 1_000
# If rarer words of a long text have found this many notes, no note is added that has only common
# words.
_ENOUGH_NOTES = 2_000
# A word that has only letters.
_NAME = lazy_pattern(r"[^\W\d_]+")
# A name that more than one in this many notes contains says little.
_FREQUENT_NAME = 25
# Homes with fewer notes are treated as if they had this many.
_MIN_SIZE_FOR_NAMES = 256
# The same for relevance. Of a dozen notes, two that have a word do not make it a common word.
_MIN_SIZE_FOR_RELEVANCE = 256

Nearness = Callable[[str, Collection[int]], Mapping[int, float]]
"""(question, rows) -> the cosine of each note, by row.

The result has the notes in `rows` and the notes most similar to the question. It lacks notes
without a vector. It is empty if no model can be used."""


class Ranking:
    """Finds the notes that answer a query, and scores them by features.

    context: the filters and the viewer.
    text: the text of the query.
    query: the parsed query of a search for all words. Conversations do not count in such a search.
        None for a question.
    found_rows: the rows that a search for all words has found. () for a question.
    today: the day from which "last week" counts.
    near: compares meanings. None compares only words.

    Results, by row of the notes that were scored:
    scores: the sum of what all features add.
    features: the features from the index.
    bits: the words that each note contains.
    cosines: the similarity of meaning, scaled from 0 to 1. Empty if meanings were not compared.
    """

    def __init__(
        self,
        context: SearchContext,
        text: str,
        today: date | None = None,
        near: Nearness | None = None,
        query: ParsedQuery | None = None,
        found_rows: Sequence[int] = (),
    ):
        self.context = context
        self.query = query
        # Read the query.
        self.question = read_question(text, today)
        focus = focus_of(text)
        # Whether the text tells something rather than asks.
        self.is_told = query is None and is_told(text)
        # The weights, some of them changed for this query.
        self.table = weights.WEIGHTS
        # A text that tells something shares few words with the memory, so meaning counts more
        if self.is_told:
            self.table = replace(self.table, meaning=self.table.told_meaning)
        self._leave_out_features_of_talks()
        # Whether the question asks for several things. If so, a note scores less when better notes
        # of its conversation come first.
        asks_for_several = SEVERAL.search(focus.text) is not None
        self._asks_for_several = query is None and asks_for_several and bool(self.table.several)

        # Look up its words.
        self._lookup = _WordLookup(context)
        if query is None:
            self.words = self._lookup.words(self.question)
        else:
            self.words = self._lookup.terms(query)
        self.speakers = {word.text for word in self.words if word.is_speaker}
        # bits -> the notes that contain exactly these words
        self._groups = _groups(self.words)
        self.scorer = TermScorer(self.words)

        # Choose the notes to score, and score them by words.
        self.bits: dict[int, int] = {}
        self.features: dict[int, Features] = {}
        self._find_notes(found_rows)
        self._word_scores = self._score_words()

        # Score them by meaning, and add the notes that are most similar.
        self.cosines: dict[int, float] = {}
        # The highest cosine of a note that is scored, before scaling. None if none were compared.
        self.nearest: float | None = None
        # The share of meaning in the score of a note that stands alone.
        self._meaning_share_alone = self.table.meaning
        if near is not None and self.table.meaning:
            self._compare_meanings(near, self._text_to_embed(text, focus))

        # Look at the notes around the best turns of talks, and at whole talks.
        # Two maps by conversation: the best score of one of its notes, and all their bits together.
        self._best_of_conversation: dict[int, float] = {}
        self._bits_of_conversation: dict[int, int] = {}
        # row -> the part of a note's score that comes from the notes before and after it
        self._neighbor_scores: dict[int, float] = {}
        own_scores = self._scores_without_neighbors()
        self._sum_up_conversations(own_scores)
        self._share_with_neighbors(own_scores)
        # The scores of conversations by words are divided by this.
        self._highest_of_all = self._highest_word_score()
        # The conversations in which an assistant speaks.
        self._conversations_with_assistant = {
            note.conversation for note in self.features.values() if is_assistant(note.speaker)
        }
        # The conversations in which a person speaks to an assistant. Any other name may be a label:
        # `Address: …` in a note beside that of an agent is no talk with it.
        self._conversations_with_user = {
            note.conversation for note in self.features.values() if is_user(note.speaker)
        }

        # Add everything up.
        # row -> how many notes of the same conversation score better, at most MAX_BETTER
        self._better_counts: dict[int, int] = {}
        self.scores = self._scores()

    # --- the notes to score

    def _leave_out_features_of_talks(self) -> None:
        """Set the weights of features to 0 that are useless for this question."""
        is_for_all_words = self.query is not None
        # Replies count in full if the question asks for them.
        if self.question.asks_assistant or is_for_all_words:
            self.table = replace(self.table, replied=0.0)
        # What holds from now on concerns what is to be done or advised.
        if not self.question.is_request or is_for_all_words:
            self.table = replace(self.table, standing=0.0)

    def _find_notes(self, found_rows: Sequence[int]) -> None:
        """Set `features` and `bits` to the notes that are scored.

        found_rows: the notes that a search for all words has found. () for a question, for which
            the notes are chosen here.
        """
        if self.query is None:
            self._choose_notes()
            if self.question.only_days:
                self._add_notes_of_days()
            return
        # In a search for all words, each note is scored as if it belonged to no conversation. Its
        # bits stay empty, since `chunks` looks for the words in the text.
        self.features = {
            note.row: note._replace(conversation=None) for note in self.context.features(found_rows)
        }

    @staticmethod
    def _text_to_embed(text: str, focus: Focus) -> str:
        """Return the part of a query whose meaning is compared.

        If the question is buried in a pasted text, this is the question. For other texts, it is the last
        _EMBEDDED_CHARACTERS, and for talks the last _EMBEDDED_CHARACTERS_OF_TALK.

        focus: the question within the text.
        """
        # Most queries are short, and need not be looked through for turns.
        if len(text) <= _EMBEDDED_CHARACTERS_OF_TALK and not focus.is_buried:
            return text
        is_talk = bool(turns_of(text))
        if is_talk:
            return text[-_EMBEDDED_CHARACTERS_OF_TALK:]
        return focus.text if focus.is_buried else text[-_EMBEDDED_CHARACTERS:]

    def _choose_notes(self) -> None:
        """Set `bits` and `features` to up to `table.most` notes: those whose words weigh most.

        `_groups` has the notes by their bits, so notes of one group have the same words and weigh the
        same. If a group does not fit as a whole, its newest notes are taken.
        """
        scorer = self.scorer
        room = self.table.most
        rows: list[int] = []
        # With equal weights, the lower bits come first, so that the choice is always the same.
        heaviest_first = sorted(self._groups, key=lambda bits: (-scorer[bits], bits))
        for bits in heaviest_first:
            group: Collection[int] = self._groups[bits]
            # Newer notes have higher rows.
            if len(group) > room:
                group = sorted(group, reverse=True)[:room]
            self.bits.update(dict.fromkeys(group, bits))
            rows += group
            room -= len(group)
            if not room:
                break
        self.features = {note.row: note for note in self.context.features(rows)}

    def _add_notes_of_days(self) -> None:
        """Add the newest notes of each day, for a question that names nothing but days.

        A day or month without a year, such as "in May", adds none.
        """
        for period in self.question.periods:
            has_year = len(period.first) == len("2026-11-21")
            if has_year:
                rows = self.context.rows_of_days(period.first, period.last, self.table.most)
                self._add_notes([row for row in rows if row not in self.features])

    def _add_notes(self, rows: Collection[int]) -> None:
        """Add the notes of `rows` that pass all filters to the scored notes."""
        if not rows:
            return
        rows = self.context.visible(rows)
        self._look_up_words(rows)
        self.features.update((note.row, note) for note in self.context.features(rows))

    def _look_up_words(self, rows: Collection[int]) -> None:
        """Find out which words of the query each of these notes contains, and set its `self.bits`.

        Notes without a word of the query get no entry.
        """
        rows_to_look_up = set(rows)
        for bits, group in self._groups.items():
            rows_with_bits = group & rows_to_look_up
            if rows_with_bits:
                self.bits.update(dict.fromkeys(rows_with_bits, bits))
        # For a text of many words, the groups lack notes with only common words
        # (`_groups_of_many`). `_all_bits` takes long to make, so only these are read from it.
        rows_without_group = (rows_to_look_up & self._rows_with_word) - self.bits.keys()
        for row in rows_without_group:
            self.bits[row] = self._all_bits[row]

    @cached_property
    def _all_bits(self) -> dict[int, int]:
        """The words of the query in each note, as bits, by row. Notes without one have no entry."""
        bits_by_row: defaultdict[int, int] = defaultdict(int)
        for word_bits, rows in _rows_by_mark(self.words):
            for row in rows:
                bits_by_row[row] |= word_bits
        return bits_by_row

    # --- scores by words and by meaning

    def _score_words(self) -> dict[int, float]:
        """Score each note by its words: row -> 0 to 1. The best note gets 1.

        As in BM25, a short note gets more than a long note with the same words. Each word counts as
        if it occurred once. Then a note is worth, with k1 = 1.2 and b = `brevity`:

            weight of its words / (1 + k1 * (1 - b + b * length / average length))
        """
        total_length = sum([note.words for note in self.features.values()])
        average_length = total_length / (len(self.features) or 1) or 1
        scorer = self.scorer
        bits = self.bits.get
        # The divisor, parted into what is the same for all notes and what grows with the length.
        brevity = self.table.brevity
        constant = 1 + 1.2 * (1 - brevity)
        per_word = 1.2 * brevity / average_length
        scores = {
            row: scorer[bits(row, 0)] / (constant + per_word * note.words)
            for row, note in self.features.items()
        }
        highest = max(scores.values(), default=0.0) or 1.0
        return {row: score / highest for row, score in scores.items()}

    def _compare_meanings(self, near: Nearness, text: str) -> None:
        """Set `self.cosines` and `self.nearest`, and score the notes most similar to `text`, too.

        `self.cosines` stays empty if no cosine is above 0.

        near: returns the cosine between a text and each note.
        text: the text to compare. Names of speakers in it that very many notes contain are replaced
            by "someone", since they do not distinguish notes.
        """
        if not self.is_told:
            self._set_shares_of_meaning()
        # `near` also knows notes without a word of the question. Similar ones are scored, too.
        all_cosines = near(self._without_frequent_names(text), list(self.features))
        similar_rows = [row for row, cosine in all_cosines.items() if cosine >= _MIN_COSINE]
        self._add_notes([row for row in similar_rows if row not in self.features])
        # `_add_notes` leaves out notes that do not pass the filters, so their cosines go, too.
        cosines = {row: cosine for row, cosine in all_cosines.items() if row in self.features}
        # Without any cosine, no model could be used, and `nearest` stays None.
        if all_cosines:
            self.nearest = max(cosines.values(), default=0.0)

        # `_scaled` divides by the highest.
        if cosines and max(cosines.values()) > 0:
            self.cosines = self._scaled(cosines)

    @staticmethod
    def _scaled(cosines: Mapping[int, float]) -> dict[int, float]:
        """Scale cosines to 0 to 1: the lowest that counts becomes 0, and the highest becomes 1.

        cosines: the cosines by row, the highest above 0.
        """
        ascending = sorted(cosines.values())
        highest = ascending[-1]
        # Most cosines are of notes that have nothing to do with the question.
        far_cosine = ascending[int(len(ascending) * _FAR_SHARE)]
        lowest = min(far_cosine, highest * (1 - _MIN_SPREAD))
        return {
            row: max(0.0, cosine - lowest) / (highest - lowest) for row, cosine in cosines.items()
        }

    def _set_shares_of_meaning(self) -> None:
        """Set the share of meaning in a note's own score, for turns of talks and for other notes.

        The fewer words of the question the best note contains, the more meaning counts. The names in
        the table are weights (`weights.Weights`). Between its rows the shares change evenly.

        | share of the words in the best note | turn of a talk | note that stands alone |
        |---|---|---|
        | 0 | `unheard_meaning` | `unheard_meaning` |
        | `heard` | `meaning` | `meaning` |
        | `well_heard` and more | `meaning` | `alone_meaning` |
        """
        table = self.table
        heard_share = self._heard_share()
        # How far the best note is below `heard`: 1 with no word, 0 at `heard` and above.
        far_below = max(0.0, 1 - heard_share / table.heard)
        turn_share = table.meaning + (table.unheard_meaning - table.meaning) * far_below
        # How far it is above `heard`: 0 at `heard` and below, 1 at `well_heard` and above.
        excess = max(0.0, heard_share - table.heard)
        far_above = min(1.0, excess / (table.well_heard - table.heard))
        self._meaning_share_alone = turn_share - (table.meaning - table.alone_meaning) * far_above
        self.table = replace(table, meaning=turn_share)

    def _heard_share(self) -> float:
        """Return the highest share of the question's words that one note contains, from 0 to 1.

        Words count by rarity. A word that no note contains counts like a word of a single note.
        """
        question = self.question
        # `self.words` has only words that some note contains.
        words_in_notes = {word.text for word in self.words}
        missing_words = [
            word for word in question.words if word not in words_in_notes | question.weak
        ]
        weight_of_missing_word = self._lookup.rarity(1)
        total_weight = weight_of_missing_word * sum(map(question.share_of, missing_words))
        total_weight += sum(word.weight for word in self.words if not word.is_weak)
        return self._highest_weight_in_a_note() / (total_weight or 1.0)

    def _highest_weight_in_a_note(self) -> float:
        """Return the highest sum of word weights in one note. Weak words count 0."""
        weights_of_words = [0.0 if word.is_weak else word.weight for word in self.words]
        highest = 0.0
        # Many notes have the same words, so each set of words is summed up once.
        for bits in set(self.bits.values()):
            weights_in_note = [
                weight
                for word_number, weight in enumerate(weights_of_words)
                if marks_of(bits, word_number)
            ]
            highest = max(highest, sum(weights_in_note))
        return highest

    def _without_frequent_names(self, text: str) -> str:
        """Replace names of speakers that very many notes contain by "someone".

        If Caroline speaks in most notes: `Where did Caroline go?` → `Where did someone go?`. If all
        words of a text are names, the text is returned unchanged.
        """
        speakers = [word for word in self.words if word.is_speaker]
        if len(speakers) == len(self.words):
            return text
        # A name in this many notes is frequent: in one of _FREQUENT_NAME notes of the home.
        frequent_from = max(self.context.size, _MIN_SIZE_FOR_NAMES) / _FREQUENT_NAME
        frequent_names = {
            word.text for word in speakers if word.may_lack_rows or len(word.rows) >= frequent_from
        }
        if not frequent_names:
            return text
        return _NAME.sub(
            lambda name: "someone" if fold(name[0]) in frequent_names else name[0], text
        )

    # --- conversations, and notes beside each other

    def _scores_without_neighbors(self) -> dict[int, float]:
        """Return the score of each note by its own words and meaning, by row."""
        if not self.cosines:
            return self._word_scores
        return {row: sum(self.own_score(row)) for row in self.features}

    def _sum_up_conversations(self, own_scores: Mapping[int, float]) -> None:
        """Set `_best_of_conversation`, the best score in each, and `_bits_of_conversation`, its words.

        Notes outside of conversations are left out.

        own_scores: the score of each note by words and meaning, by row.
        """
        best_scores = self._best_of_conversation
        all_bits = self._bits_of_conversation
        bits = self.bits.get
        for row, score in own_scores.items():
            conversation = self.features[row].conversation
            if conversation is None:
                continue
            # No score is as low as -1.
            if score > best_scores.get(conversation, -1.0):
                best_scores[conversation] = score
            all_bits[conversation] = all_bits.get(conversation, 0) | bits(row, 0)

    def _share_with_neighbors(self, own_scores: Mapping[int, float]) -> None:
        """Give the notes before and after the best turns a part of the turns' scores.

        These neighbors are added to the scored notes even if they contain no word.

        own_scores: the score of each note by words and meaning, by row.
        """
        table = self.table
        scores_of_turns = {
            row: own_scores[row]
            for row, note in self.features.items()
            if note.conversation is not None
        }
        if not scores_of_turns:
            return
        # The sources are the turns that give: source -> (rows before it, rows after it)
        sources = newest_first(scores_of_turns)[: table.sources]
        neighbors = self.context.neighbors(sources)
        all_sides = chain.from_iterable(neighbors.values())
        neighbor_rows = set(chain.from_iterable(all_sides))
        self._add_notes(neighbor_rows - self.features.keys())
        # The notes before a source get the share `after`, because the source comes after them. The
        # order is fixed, since a sum of floats depends on the order of its parts.
        for source in sorted(neighbors, reverse=True):
            rows_before, _ = neighbors[source]
            self._raise_neighbors(rows_before, own_scores[source], table.after)
        for source in sorted(neighbors):
            _, rows_after = neighbors[source]
            self._raise_neighbors(rows_after, own_scores[source], table.before)

    def _raise_neighbors(
        self, rows: Sequence[int], source_score: float, nearest_share: float
    ) -> None:
        """Add a part of a turn's score to the notes on one side of it.

        rows: up to three notes, the nearest first.
        source_score: the score of the turn.
        nearest_share: the part that the nearest note gets. The others get the share `around`.
        """
        around = self.table.around
        shares = (nearest_share, around, around)
        # At the end of a conversation, there are fewer than three rows.
        for row, share in zip(rows, shares, strict=False):
            # `_add_notes` has left out notes that do not pass the filters.
            if row in self.features:
                score_so_far = self._neighbor_scores.get(row, 0.0)
                self._neighbor_scores[row] = score_so_far + share * source_score

    def _highest_word_score(self) -> float:
        """Return the highest score by words that a whole conversation or a single note has.

        If no note has a word, it is 1, so that it can be divided by.
        """
        bits_of_notes = (self.bits.get(row, 0) for row in self.features)
        # Many notes have the same bits, so each are scored once.
        different_bits = {*self._bits_of_conversation.values(), *bits_of_notes}
        return max([self.scorer[bits] for bits in different_bits], default=0.0) or 1.0

    # --- all features together

    def _scores(self) -> dict[int, float]:
        """Return the score of each note, by row. It is the sum of what its features add.

        If the question asks for several things, a note loses score for each better note of the same
        conversation. `self._better_counts` keeps the number of these better notes.
        """
        # Each score is rounded to six decimals, so that equal scores stay equal: `// 1` cuts off what
        # is behind the point. `round` would take three times as long.
        scores = {
            row: (sum(self._parts(note)) * 1e6 + 0.5) // 1 / 1e6
            for row, note in self.features.items()
        }
        if not self._asks_for_several:
            return scores
        # The loop goes from the best note down.
        # conversation -> how many of its notes the loop has passed
        passed_counts: dict[int, int] = {}
        for row in newest_first(scores):
            conversation = self.features[row].conversation
            if conversation is not None:
                better_count = min(passed_counts.get(conversation, 0), MAX_BETTER)
                self._better_counts[row] = better_count
                passed_counts[conversation] = better_count + 1
        # `several` is below 0: a penalty for each better note of the same conversation.
        return {
            row: round(score + self.table.several * self._better_counts.get(row, 0), 6)
            for row, score in scores.items()
        }

    def _parts(self, note: Features) -> tuple[float, ...]:
        """Return the score of a note, split into the parts that _FEATURES name, in their order.

        This function alone defines how a note is scored.
        """
        table = self.table
        conversation = note.conversation
        words, meaning = self.own_score(note.row)
        # A note outside any conversation counts as a conversation of one note.
        best_of_conversation = words + meaning
        bits_of_conversation = self.bits.get(note.row, 0)
        speaker = replied = asks = timed = date = 0.0
        # These features are known of turns only.
        if conversation is not None:
            best_of_conversation = self._best_of_conversation.get(conversation, 0.0)
            bits_of_conversation = self._bits_of_conversation.get(conversation, 0)
            if note.speaker in self.speakers:
                speaker = table.speaker
            if self.is_reply(note):
                replied = table.replied
            if note.question and not self._is_request(note):
                # `note.question` is a percentage.
                asks = table.asks * note.question / 100
            if note.has_time and self.question.when:
                timed = table.timed
        if self.question.periods:
            date = table.date * sum([period.share(note.day) for period in self.question.periods])
        return (
            table.words * words,
            table.words * meaning,
            self._neighbor_scores.get(note.row, 0.0),
            table.conversation * best_of_conversation,
            table.conversation_words
            * self.words_left(note.row)
            * self.scorer[bits_of_conversation]
            / self._highest_of_all,
            speaker,
            replied,
            table.standing * self.is_standing(note),
            table.own * note.first_person / 4,
            asks,
            date,
            timed,
        )

    def own_score(self, row: int) -> tuple[float, float]:
        """Return (score by words, score by meaning) of a note. The sum of both is at most 1.

        A note without a vector is scored by words alone: its score by meaning is 0.
        """
        by_words = self._word_scores.get(row, 0.0)
        # Scaled from 0 to 1.
        cosine = self.cosines.get(row)
        if cosine is None:
            return (by_words, 0.0)
        meaning_share = self.meaning_share(row)
        return (by_words * (1 - meaning_share), cosine * meaning_share)

    def meaning_share(self, row: int) -> float:
        """Return the weight of meaning in the score of a note that has a vector, from 0 to 1.

        A note that stands alone may have a lower share than a turn of a talk (`alone_meaning`).
        """
        if self.features[row].conversation is None:
            return self._meaning_share_alone
        return self.table.meaning

    def words_left(self, row: int) -> float:
        """Return the weight of words, as opposed to meaning, in the score of a whole note: 0 to 1.

        It is 1 if meanings were not compared.
        """
        return 1 - self.meaning_share(row) if self.cosines else 1.0

    def is_reply(self, note: Features) -> bool:
        """Whether a note is a turn of an assistant in a talk with a person."""
        return is_assistant(note.speaker) and note.conversation in self._conversations_with_user

    def is_standing(self, note: Features) -> bool:
        """Whether a person tells an assistant in a note how things are to be from now on.

        The index knows of a note only that somebody says so in it (`Features.is_standing`). Here, it
        must also be a turn, and a person must say it to an assistant.
        """
        return (
            note.is_standing == 1
            and note.conversation is not None
            and not is_assistant(note.speaker)
            and self._is_request(note)
        )

    def _is_request(self, note: Features) -> bool:
        """Whether a note is a turn that a person says to an assistant.

        Questions in other turns lower the score. A request is spared: people explain the matter in
        it, so it may have the answer.
        """
        return note.speaker in _USERS or note.conversation in self._conversations_with_assistant

    # --- results

    def shares(self, row: int) -> dict[str, float]:
        """Return the score of a note, split by feature. Zeros are left out."""
        parts = dict(zip(_FEATURES, self._parts(self.features[row]), strict=True))
        parts["several"] = self.table.several * self._better_counts.get(row, 0)
        return {name: round(value, 3) for name, value in parts.items() if round(value, 3)}

    def page(self, offset: int, limit: int) -> list[int]:
        """Return one page of the notes, the best first.

        Notes with equal scores are sorted by change, the last first, then by permalink. Notes that
        were not scored follow, the newest first.
        """
        stop = offset + limit
        order = self._best_first(stop)
        if stop > len(order):
            unscored_rows = sorted(self._rows_with_word - self.features.keys(), reverse=True)
            if self._match:
                unscored_rows += self.context.newest(self._match, stop, self._lookup.table)
            order = list(dict.fromkeys([*order, *unscored_rows]))
        return order[offset:stop]

    def _best_first(self, most: int) -> list[int]:
        """Return the `most` notes with the highest scores, the best first.

        Notes that score as much as the last one follow. Sorting equal scores reads the index, so
        notes with lower scores are left out before.
        """
        if most >= len(self.scores):
            return self.context.best_first(self.scores)
        # The score of the last note that is wanted.
        lowest_score = nlargest(max(1, most), self.scores.values())[-1]
        best_scores = {row: score for row, score in self.scores.items() if score >= lowest_score}
        return self.context.best_first(best_scores)

    def total(self, most: int, other_rows: Collection[int] = ()) -> int:
        """Return how many notes contain a word, are scored, or are among `other_rows`.

        most: the number at which counting in the index stops.
        """
        # Some notes are scored for their meaning or their day alone.
        scored_without_word = self.features.keys() - self.bits.keys()
        count = len(self._rows_with_word) + len(scored_without_word)
        # `_rows_with_word` lacks older notes with a common word, so they are counted in the index.
        if self._match:
            count = max(count, self.context.count(self._match, most, self._lookup.table))
        further_rows = [
            row
            for row in other_rows
            if row not in self.features and row not in self._rows_with_word
        ]
        return count + len(further_rows)

    @cached_property
    def _match(self) -> str:
        """The FTS5 expression that finds all notes with a word of the query, with the filters.

        "" if the expression is of no use: no word has more notes than were listed, or some filters
        cannot be written in FTS5, so that the expression would find notes that they exclude.
        """
        has_unlisted_notes = any(word.may_lack_rows for word in self.words)
        if not has_unlisted_notes or self.context.is_filtered:
            return ""
        any_word = " OR ".join(word.match for word in self.words)
        return self.context.with_filters(f"{self._lookup.column}({any_word})")

    @cached_property
    def _rows_with_word(self) -> set[int]:
        """The rows of all notes known to contain a word of the query."""
        return set().union(*(rows for _, rows in _rows_by_mark(self.words)))

    def rows_of(self, word: str) -> Sequence[int]:
        """Return the notes that contain a form of `word`. If very many do, only the newest."""
        return self._lookup.rows(_own_match(word))

    def rarity(self, note_count: float) -> float:
        """Return the weight of a word that this many notes contain."""
        return self._lookup.rarity(note_count)

    def bits_of(self, row: int) -> int:
        """Return the bits of a note: the words of the query that it contains. 0 if it has none.

        The note need not be scored.
        """
        if row not in self.bits:
            self._look_up_words([row])
        return self.bits.get(row, 0)

    def relevance(self, bits: int, characters: int) -> float:
        """Return how relevant a text is to the question, whatever other notes contain.

        If the newest turn of a dialogue was joined with turns before it, a text is as relevant as it
        is to that turn alone, or to the joined turns, whichever is more.

        bits: the words that the text contains.
        characters: the length of the text.
        """
        question = self.question
        all_words = frozenset(question.words) - question.weak - question.beside.keys()
        relevance = self._relevance_to(all_words, bits, characters)
        if question.newest:
            newest_words = all_words & question.newest
            relevance = max(relevance, self._relevance_to(newest_words, bits, characters))
        return relevance

    def _relevance_to(self, words: frozenset[str], bits: int, characters: int) -> float:
        """Return how relevant a text is to a question of these words.

        The relevance is the sum of the rarities (0 to 1) of the shared words, times their share of
        the rarities of all words. For a text of _HALVING_CHARACTERS it is half as much, since a
        long text shares words with any question.

        Example: a question has two words of rarity 1, and a short text has one: 1 * 1 / 2 = 0.5.
        """
        shared = 0.0
        all_rarities = 0.0
        number_in_notes = 0
        for word_number, (word, rarity) in enumerate(zip(self.words, self._rarities, strict=True)):
            if word.text not in words:
                continue
            number_in_notes += 1
            all_rarities += rarity
            # Only words that both the text and the question have. Longer words do not count.
            if marks_of(bits, word_number) & (EXACT | TITLE):
                shared += rarity
        # `self.words` lacks the words that no note contains, which have the rarity 1.
        number_missing = max(0, len(words) - number_in_notes)
        all_rarities = max(1.0, all_rarities + number_missing)
        length_factor = 1 + characters / _HALVING_CHARACTERS
        return shared * shared / all_rarities / length_factor

    @cached_property
    def _rarities(self) -> list[float]:
        """How rare each word is, from 0 to 1."""
        rarities: list[float] = []
        for word in self.words:
            counts = not (word.is_weak or word.is_beside)
            rarities.append(self._rarity_from_0_to_1(word) if counts else 0.0)
        return rarities

    def _rarity_from_0_to_1(self, word: Word) -> float:
        """Return how rare a word is. A word that a single note contains has 1.

        A word that was respelled has at most `WEIGHTS.spelled`.
        """
        lookup = self._lookup
        rarity_in_one_note = lookup.rarity(1, _MIN_SIZE_FOR_RELEVANCE)
        rarity = lookup.rarity_of(word, _MIN_SIZE_FOR_RELEVANCE)
        share = min(1.0, rarity / rarity_in_one_note)
        if word.spelled:
            share *= weights.WEIGHTS.spelled
        return share


class TermScorer(dict[int, float]):
    """A cache: bits (`word_marks`) -> the sum of the weights of their words.

    A sum is computed when it is first asked for. A word in the title adds `WEIGHTS.title` times its
    weight.

    weights: the weight of each word of the query.
    in_titles: a mask for the part of the bits about titles, headings and tags.
    """

    def __init__(self, words: Sequence[Word]):
        super().__init__()
        self._title = weights.WEIGHTS.title
        self.weights = [word.weight for word in words]
        self.in_titles = sum(bits_of(at, TITLE) for at in range(len(words)))

    def __missing__(self, bits: int) -> float:
        """Compute and keep the sum of the weights of the words in `bits`.

        It is the sum for all words but the last, which may be known already, plus the weight of the
        last. So few additions are needed.
        """
        if not bits:
            return 0.0
        word_number = last_word(bits)
        shift = WIDTH * word_number
        # The marks of the last word are the highest bits, as `marks_of` would return them.
        marks = bits >> shift
        is_in_text = bool(marks & IN_TEXT)
        is_in_title = bool(marks & TITLE)
        word_score = self.weights[word_number] * (is_in_text + self._title * is_in_title)
        bits_of_other_words = bits ^ (marks << shift)
        score = self[bits_of_other_words] + word_score
        self[bits] = score
        return score


class _WordLookup:
    """Finds the notes that contain the words of one query.

    table: the full-text table to search.
    column: the FTS5 prefix that limits a search to titles. "" for all columns.
    """

    def __init__(self, context: SearchContext):
        self.context = context
        self.table = NAMES if context.by_title else STEMS
        self.column = "title : " if context.by_title else ""

    def words(self, question: Question) -> list[Word]:
        """Return the words of a question that some note contains, with their notes and weights.

        From very many words, only the rarest are returned.
        """
        texts = self._likely_rare(question)
        speakers = self.context.speakers(texts)
        # A long text has enough other words, so its mistyped words are not corrected.
        may_respell = len(texts) <= MAX_TERMS
        words_found: list[Word] = []
        for text in texts:
            is_speaker = text in speakers
            word = self._word(text, may_respell=may_respell and not is_speaker)
            if not word.rows and not is_speaker:
                continue
            word.is_speaker = is_speaker
            self._weigh(word, question)
            words_found.append(word)

        chosen_words = self._heaviest(words_found)
        # A search by title already looks only at names, so `name_rows` would repeat `rows`.
        if not self.column:
            for word in chosen_words:
                word.name_rows = self.rows(word.own_match, table=NAMES)
        return chosen_words

    @staticmethod
    def _likely_rare(question: Question) -> list[str]:
        """Return the words of a text to look up, in their order.

        All words of the question itself are returned. If the text around the question (`beside`) has
        too many words, only its longest are returned, since long words are rarely common.
        """
        other_words = [word for word in question.words if word in question.beside]
        own_word_count = len(question.words) - len(other_words)
        room_for_others = max(0, _MAX_LOOKED_UP - own_word_count)
        longest_others = set(sorted(other_words, key=len, reverse=True)[:room_for_others])
        chosen = [
            word for word in question.words if word not in question.beside or word in longest_others
        ]
        return chosen[:_MAX_QUESTION_WORDS]

    @staticmethod
    def _heaviest(words: list[Word]) -> list[Word]:
        """Return the _MAX_WORDS words with the highest weights, in the order of the text."""
        if len(words) <= _MAX_WORDS:
            return words
        numbers = range(len(words))
        heaviest_numbers = nlargest(_MAX_WORDS, numbers, key=lambda number: words[number].weight)
        return [words[number] for number in sorted(heaviest_numbers)]

    def _word(self, text: str, *, may_respell: bool) -> Word:
        """Look a word up: as written, then as the beginning of a longer word, then respelled.

        The first of these ways that finds a note is taken.

        may_respell: whether a mistyped word may be replaced by known words with one other letter.
            A replaced word gets a lower weight.
        """
        # As written. The index keeps pairs of Chinese, Japanese and Korean characters. A single
        # character therefore matches as the beginning of a pair.
        has_pairs = is_cjk(text)
        is_beginning = has_pairs and len(text) == 1
        endings = self.context.other_endings(text)
        own_match = _own_match(text, endings)
        match = _own_match(text, endings, is_beginning=True) if is_beginning else own_match
        rows = self.rows(match)
        word = Word(text, 1.0, rows, match=match, own_match=own_match, other_forms=endings)

        # As the beginning of a longer word.
        if not word.rows and not has_pairs and len(text) >= _MIN_PREFIX_LETTERS:
            word.may_be_longer = True
            word.match = f"{quoted(text)}*"
            word.rows = self.rows(word.match)
        if word.rows or not may_respell:
            return word

        # Respelled.
        word.spelled = self.context.spellings(text)
        if word.spelled:
            word.may_be_longer = False
            word.match = " OR ".join(map(quoted, word.spelled))
            word.weight = weights.WEIGHTS.spelled
            word.rows = self.rows(word.match)
        return word

    def rows(self, text: str, table: str = "") -> Sequence[int]:
        """Return the newest notes that match an FTS5 expression and pass all filters.

        table: NAMES searches titles, headings and tags. "" searches the table of this object.
        """
        # FTS5 looks only in the columns before the colon.
        column = self.column
        if table:
            column = "{title headings tags} : "
        match = self.context.with_filters(f"{column}({text})")
        rows = self.context.newest_rows(match, MAX_HELD, table or self.table)
        if not self.context.is_filtered or not rows:
            return rows
        # Some filters are beyond FTS5.
        passing_rows = set(self.context.passing(rows))
        return [row for row in rows if row in passing_rows]

    def _weigh(self, word: Word, question: Question) -> None:
        """Set the weight of a word: more for a rare one, less for one that matters less."""
        # A respelled word begins with a lower weight than 1.
        word.weight *= self.rarity_of(word)
        if word.text in question.weak:
            word.is_weak = True
            word.weight *= weights.WEIGHTS.weak
        # Words outside the question count less, and so do words by which it asks.
        word.is_beside = word.text in question.beside
        word.weight *= question.share_of(word.text)

    def rarity_of(self, word: Word, least_size: int = 0) -> float:
        """Return how rare a word is: a higher number for a word in fewer notes.

        If only the newest notes with the word were read, their total number is estimated.

        least_size: a home with fewer notes is treated as if it had this many.
        """
        note_count = float(len(word.rows))
        if note_count >= MAX_HELD:
            # These rows are the newest with the word. The word is taken to be as frequent among all
            # notes as among the rows from the oldest of these to the newest.
            if isinstance(word.rows, RowList):
                rows_looked_at = word.rows.span
            else:
                rows_looked_at = max(word.rows) - min(word.rows) + 1
            note_count *= max(1.0, self.context.size / rows_looked_at)
        return self.rarity(note_count, least_size)

    def rarity(self, note_count: float, least_size: int = 0) -> float:
        """Return the weight of a word that this many notes contain (the IDF of BM25).

        least_size: a home with fewer notes is treated as if it had this many.
        """
        # An estimated `note_count` may be higher than the number of notes.
        size = max(self.context.size, note_count, least_size)
        return log(1 + (size - note_count + 0.5) / (note_count + 0.5))

    def terms(self, query: ParsedQuery) -> list[Word]:
        """Return the terms of a search for all words, with their weights but without notes.

        The weight of a single term does not matter, so it is not looked up.
        """
        context = self.context
        terms = query.terms
        term_words: list[Word] = []
        for term in terms:
            weight = 1.0
            if len(terms) > 1:
                note_count = context.count_of_term(term)
                if not note_count:
                    # No note has the word itself, so notes with longer words count.
                    note_count = context.count(context.broad_expression(term), COMMON + 1)
                weight = self.rarity(note_count)
            word = Word(
                term.text,
                weight,
                term=term,
                may_be_longer=term.may_be_longer,
                other_forms=context.alternatives(term),
            )
            term_words.append(word)
        return term_words


def newest_first(scores: Mapping[int, float]) -> list[int]:
    """Sort notes by score, the best first, and of equal scores the newest first.

    Unlike `SearchContext.best_first`, this does not read the index.
    """
    return sorted(sorted(scores, reverse=True), key=scores.__getitem__, reverse=True)


def is_user(speaker: str | None) -> bool:
    """Whether a speaker's name means the person who talks with an assistant, as `user` does."""
    return speaker in _USERS


def is_assistant(speaker: str | None) -> bool:
    """Whether records of talks use this name for an assistant: `assistant`, `ai`, `model`."""
    return speaker in _ASSISTANTS


def _groups(words: Sequence[Word]) -> dict[int, set[int]]:
    """Group the notes that contain a word by their bits: all notes with exactly the same words.

    There are few groups, so whole groups are scored and chosen instead of notes. If `tea` is in the
    notes 1 and 2, and `plan` in 2 and 3, the groups are {1} for `tea`, {2} for both, {3} for `plan`.
    """
    rows_by_mark = _rows_by_mark(words)
    if len(rows_by_mark) > _MAX_LISTS_OF_SETS:
        return _groups_of_many(words)
    # The groups by the words so far. Each further word splits them.
    groups: dict[int, set[int]] = {}
    for word_bits, rows in rows_by_mark:
        # The notes of this word that are in no group yet.
        only_this_word = set(rows)
        for bits_before, group in list(groups.items()):
            with_this_word = group & only_this_word
            if with_this_word:
                # The notes leave the old group, a set that is changed in place, and form a new one.
                group -= with_this_word
                only_this_word -= with_this_word
                groups[bits_before | word_bits] = with_this_word
        groups[word_bits] = only_this_word
    return {bits: group for bits, group in groups.items() if group}


def _groups_of_many(words: Sequence[Word]) -> dict[int, set[int]]:
    """Group notes like `_groups`, but note by note, which is faster for a text with many words.

    The result maps bits to the notes that contain exactly these words of the query. The rarest
    words are read first. Once they have found _ENOUGH_NOTES, the others find no further notes:
    they are only marked in the notes that were found.
    """
    bits_by_row: defaultdict[int, int] = defaultdict(int)
    rarest_first = sorted(range(len(words)), key=lambda number: -words[number].weight)
    for word_number in rarest_first:
        for word_bits, rows in _rows_by_mark([words[word_number]], first=word_number):
            has_enough = len(bits_by_row) >= _ENOUGH_NOTES
            # Only notes that were found before, or all.
            rows_to_mark = bits_by_row.keys() & rows if has_enough else rows
            for row in rows_to_mark:
                bits_by_row[row] |= word_bits

    groups: dict[int, set[int]] = {}
    for row, bits in bits_by_row.items():
        groups.setdefault(bits, set()).add(row)
    return groups


def _rows_by_mark(words: Sequence[Word], first: int = 0) -> list[tuple[int, Sequence[int]]]:
    """Return pairs (bits, rows): up to two for each word.

    The first pair has the notes that contain the word. The second pair has the notes with the word
    in title, headings or tags. A pair without rows is left out. The bits have the one mark that the
    pair stands for.

    first: the number in the query of the first of `words`.
    """
    rows_by_mark: list[tuple[int, Sequence[int]]] = []
    for word_number, word in enumerate(words, first):
        if word.rows:
            mark = LOOSE if word.may_be_longer else EXACT
            rows_by_mark.append((bits_of(word_number, mark), word.rows))
        if word.name_rows:
            rows_by_mark.append((bits_of(word_number, TITLE), word.name_rows))
    return rows_by_mark


def _own_match(text: str, endings: Sequence[str] = (), *, is_beginning: bool = False) -> str:
    """Return the FTS5 expression for a word in all its irregular forms.

    `buy` → `"buy" OR "bought"`, with each form as the index has it (`phrase_for`). A Chinese word is
    looked for in simplified and in traditional characters.

    endings: the word with other endings.
    is_beginning: whether longer words that begin with the word match, too.
    """
    if is_cjk(text):
        spellings = [text, *other_forms(text)]
    else:
        spellings = [*forms(text), *endings]
    end = "*" if is_beginning else ""
    return " OR ".join(quoted(phrase_for(spelling)[0]) + end for spelling in spellings)
