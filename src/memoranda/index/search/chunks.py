"""Read the best notes chunk by chunk.

A *chunk* is a turn of a conversation, a list item, or a passage of about 200 words. A long note
contains many words of a query and says little about most of them. So the best notes are read, and
each chunk is scored with the features of `weights`. For this, the chunk counts as a note, and its
note as a conversation. A note gets the score of its best chunk, and this chunk is shown.

A *row* is the number of a note in the index. *Bits* are the words of the query that a text contains,
as one number (`word_marks`); words are numbered from 0 in the order of the query. The *names* of a
note are its title, aliases, headings and tags.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from heapq import nlargest
from itertools import chain
from math import log2
from typing import NamedTuple

from memoranda.index.features import (
    SHORT,
    ChunkSpan,
    chunk_spans,
    first_person,
    spans_from_index,
    style_of,
)
from memoranda.index.resolve import key
from memoranda.index.search.feedback import SOURCES, topic_shares
from memoranda.index.search.parse import Term
from memoranda.index.search.queries import NoteText
from memoranda.index.search.ranking import (
    MAX_BETTER,
    Ranking,
    TermScorer,
    is_assistant,
    is_user,
    newest_first,
)
from memoranda.index.search.word_marks import EXACT, IN_TEXT, LOOSE, TITLE, bits_of, marks_of
from memoranda.index.search.words import (
    SNIPPET,
    Place,
    WordFinder,
    nearness,
    shortened,
    shown_terms,
    snippet,
)
from memoranda.note.model import ARCHIVE_PROJECT, ARCHIVED
from memoranda.text.tokens import word_count

# How many of the best notes are read for a question.
NOTES_READ = 24
# How many notes are read for a text that tells something. Its many words hardly tell a good long
# note from a bad one before the notes are read.
NOTES_READ_FOR_STATEMENT = 32
# How many long notes are read in addition. A long note scores low before its chunks are known.
LONG_NOTES_READ = 10

# How many characters are read of all notes together, and of one note.
_MAX_CHARACTERS = 250_000
_MAX_NOTE_CHARACTERS = 40_000
# Features that need the text of a chunk (first person, question, time) are added to this many of
# the best chunks. The distances of words (`nearness`) are added to fewer.
_MAX_READ_CHUNKS = 60
_MAX_NEARNESS_CHUNKS = 20
# Of a query with more words, only those that the index knows of a note are looked for in its text.
_MAX_WORDS_LOOKED_FOR = 20
# How much repetitions of a word add, as in BM25.
_K1 = 1.2
# A question with fewer informative words is too short to say that nothing answers it.
_MIN_QUESTION_WORDS = 3
# With this relevance, words alone say that a passage answers. It is the floor of hooks.
_CERTAIN_RELEVANCE = 0.65
# In a home of this many notes or more, the nearest note must have the whole cosine `related`.
_MANY_NOTES = 1024
# A note without a word of the question may answer it if its scaled cosine is at least this.
_NEARER_HALF = 0.5
# The chunks of this many passages are cached, and the styles of this many chunks. Without the
# caches, `bench/recall.py --notes session` takes half as long again.
_CACHE_SIZE = 2_000
# The chunks by the hash of their text, so that the texts need not be kept.
_known_chunks: dict[int, list[ChunkSpan]] = {}
_style_of = lru_cache(_CACHE_SIZE)(style_of)
_first_person = lru_cache(_CACHE_SIZE)(first_person)


class MatchedWords(NamedTuple):
    """The words of the query that a note contains.

    title: the words in its title, headings and tags.
    text: the words in its text.
    spelled: words of its text that are in place of misspelled words of the query.
    has_longer: whether a word of the query is only the beginning of a longer word.
    """

    title: tuple[str, ...]
    text: tuple[str, ...]
    spelled: tuple[str, ...]
    has_longer: bool

    def reasons(self) -> list[str]:
        """Return the words as reasons of a hit, such as `title: plan` and `words: plan, budget`."""
        reasons = []
        if self.title:
            reasons.append(f"title: {', '.join(self.title)}")
        if self.text:
            reasons.append(f"words: {', '.join(self.text)}")
        return reasons


@dataclass(slots=True)
class Chunk:
    """A part of a note: `text[start:stop]` of the note in `row`.

    words: about how many words the chunk has.
    speaker: the folded first name of the person who says the chunk. None if no speaker is named.
    bits: the words of the query that the chunk contains, as a number (word_marks.py).
    counts: word → how often the chunk contains it. Words are numbered as in the query, from 0.
    places: the places of these words in the text of the note.
    score: the score of the chunk.
    word_score: its score by words alone. The best chunk has 1.
    is_relevant: whether the chunk or a neighbor contains a word of the query.
    parts: feature → the part of the score that comes from it.
    name_words: about how many words are in title, headings and tags of the note. 0 if they were not
        read.
    """

    row: int
    start: int
    stop: int
    words: int
    speaker: str | None
    bits: int = 0
    counts: dict[int, int] = field(default_factory=dict)
    score: float = 0.0
    places: list[Place] = field(default_factory=list)
    word_score: float = 0.0
    is_relevant: bool = False
    parts: dict[str, float] = field(default_factory=dict)
    name_words: float = 0.0


class _Passage(NamedTuple):
    """A part of a note that may answer a question, from `start` to `stop`.

    row: the row of the note.
    score: the score of this part.
    bits: the words of the query that it contains (`word_marks`).
    """

    row: int
    start: int
    stop: int
    score: float
    bits: int


@dataclass(slots=True)
class _Adjustments:
    """How the scores of notes were changed after their chunks were scored.

    gains: row -> the part of the note's score that comes from the topic of the best notes.
    losses: row -> the part, below 0, that it loses to better notes of its conversation.
    other_days: row -> the part, below 0, that it loses to better notes of other days.
    factors: row -> the factor below 1 of a note that is archived or unfilled.
    """

    gains: dict[int, float] = field(default_factory=dict)
    losses: dict[int, float] = field(default_factory=dict)
    other_days: dict[int, float] = field(default_factory=dict)
    factors: dict[int, float] = field(default_factory=dict)


class ChunkReading:
    """The best notes for a query, read chunk by chunk.

    A short note that is a turn of a conversation is not read: the index knows its words.

    is_strict: whether this is a search for all words.
    rows: the notes that take part: the best notes, then the best long notes, which score low as
        whole notes. For a search for all words, all notes of the ranking.
    order: `rows`, the best first.
    texts: the texts of the notes that were read, by row.
    chunks: the chunks of these notes, by row.
    scores: the scores of the notes, by row.
    """

    def __init__(
        self,
        ranking: Ranking,
        first: int = 0,
        *,
        reads_turns: bool = False,
        related: float = 0.0,
    ):
        """Read and score the notes of `ranking`.

        first: how many of the best notes take part. A search for all words ignores it.
        reads_turns: whether to read turns of conversations, too, so that their texts can be shown.
        related: the cosine from which a note has to do with the question. 0 if it is not known.
        """
        self._ranking = ranking
        self._related = related
        self._table = ranking.table
        self._question = ranking.question
        self.is_strict = ranking.query is not None

        # Choose the notes and the words to look for.
        self.rows = self._rows_to_read(first)
        self._features = {
            row: ranking.features[row] for row in self.rows if row in ranking.features
        }
        self._finder = WordFinder(ranking.words)
        # The text of the query in the form in which titles are compared.
        self._query_key = key(ranking.context.query.text)

        # Read the notes and cut them. A short turn of a conversation is left whole.
        rows_to_chunk = [
            row for row, note in self._features.items() if note.is_long or note.conversation is None
        ]
        self.texts = self._read_texts(self.rows if reads_turns else rows_to_chunk)
        self.chunks = self._cut_notes(rows_to_chunk)

        # Score the chunks, and each note by its best chunk.
        # row -> bits. In a search for all words, only the words in the names of the note are set;
        # for a question, the words in the whole note.
        self._bits: dict[int, int] = {}
        # row -> feature -> the part that the note as a whole adds to the score of each chunk
        self._parts_of_note: dict[int, dict[str, float]] = {}
        # The notes in which a person speaks to an assistant. `Model: …` may be a label among others.
        self._rows_with_user = {
            row
            for row, chunks in self.chunks.items()
            if any(is_user(chunk.speaker) for chunk in chunks)
        }
        self.scores = {row: ranking.scores[row] for row in self.rows if row in ranking.scores}
        if self.chunks:
            self._score_chunks()

        # Change the scores by what is known about whole notes.
        self._archived = ranking.context.archived(self.rows)
        self._unfilled = ranking.context.unfilled(self.rows)
        self._adjustments = _Adjustments()
        self._adjust_scores()
        best_first = ranking.context.best_first(self.scores)
        # Notes without a score follow.
        self.order = list(dict.fromkeys([*best_first, *self.rows]))
        self._lowest_score = min(self.scores.values(), default=0.0)

    # --- the notes that are read, and their chunks

    def terms(self) -> Sequence[Term]:
        """Return the terms that are looked for in very long texts."""
        query = self._ranking.query
        return query.terms if query else self._terms_of_question

    @cached_property
    def _terms_of_question(self) -> list[Term]:
        """The terms of a question. They are made once, and only if a very long text is read."""
        return shown_terms(self._ranking.words)

    def _rows_to_read(self, first: int) -> list[int]:
        """Choose the notes for `rows`: the `first` best ones, then LONG_NOTES_READ long ones."""
        ranking = self._ranking
        if self.is_strict:
            return list(ranking.features)
        best_rows = ranking.page(offset=0, limit=first)
        chosen_rows = set(best_rows)
        scores = ranking.scores
        other_long_rows = [
            row for row, note in ranking.features.items() if note.is_long and row not in chosen_rows
        ]
        # With equal scores, the newer note comes first. It has the higher row.
        best_long_rows = nlargest(
            LONG_NOTES_READ, other_long_rows, key=lambda row: (scores.get(row, 0.0), row)
        )
        return best_rows + best_long_rows

    def _read_texts(self, rows: Sequence[int]) -> dict[int, NoteText]:
        """Read the texts of these notes and return them by row."""
        return {text.row: text for text in self._ranking.context.texts(rows, self.terms)}

    def _cut_notes(self, rows: Sequence[int]) -> dict[int, list[Chunk]]:
        """Cut notes into chunks until _MAX_CHARACTERS are used up. Return the chunks by row.

        A turn of a conversation with a single chunk is left out: the index knows its words.
        """
        chunks_by_row: dict[int, list[Chunk]] = {}
        characters_left = _MAX_CHARACTERS
        for row in rows:
            if characters_left <= 0:
                break
            chunks = self._chunks_of(self.texts[row])
            characters_left -= sum([chunk.stop - chunk.start for chunk in chunks])
            if len(chunks) > 1 or self._features[row].conversation is None:
                chunks_by_row[row] = chunks
        return chunks_by_row

    def _chunks_of(self, note_text: NoteText) -> list[Chunk]:
        """Cut a note into chunks, without scores.

        A short note is one chunk. The chunks of a longer note are in the index (`note_text.cuts`). A
        very long note has none there, and its passages to search (`note_text.spans`) are cut here,
        up to _MAX_NOTE_CHARACTERS.
        """
        row = note_text.row
        note = self._features.get(row)
        if note is not None and not note.is_long:
            whole_text = Chunk(row, 0, len(note_text.text), note.words, note.speaker)
            return [whole_text]
        if note_text.cuts is not None:
            spans_of_chunks = spans_from_index(note_text.cuts, note_text.speakers)
            return [Chunk(row, *span) for span in spans_of_chunks]

        chunks: list[Chunk] = []
        characters_cut = 0
        for first, last in note_text.spans:
            if characters_cut > _MAX_NOTE_CHARACTERS:
                break
            # Offsets in the passage become offsets in the text.
            chunks += [
                Chunk(row, first + start, first + stop, words, speaker)
                for start, stop, words, speaker in self._cached_chunks(note_text.text[first:last])
            ]
            characters_cut += last - first
        return chunks

    @staticmethod
    def _cached_chunks(text: str) -> list[ChunkSpan]:
        """Return the result of `chunk_spans` for a text, from `_known_chunks` if it is there."""
        text_hash = hash(text)
        chunks = _known_chunks.get(text_hash)
        if chunks is None:
            chunks = chunk_spans(text)
            if len(_known_chunks) >= _CACHE_SIZE:
                _known_chunks.clear()
            _known_chunks[text_hash] = chunks
        return chunks

    # --- the scores of chunks

    def _score_chunks(self) -> None:
        """Score all chunks and give each note the score of its best chunk.

        A note that was not cut into chunks counts as one chunk, so that its score is comparable.
        """
        scorer = self._ranking.scorer
        brevity = self._table.brevity
        # Score by words. `_score_words` compares what it gets, so the chunks and the notes without
        # chunks come first, together.
        self._find_words()
        all_chunks = list(chain.from_iterable(self.chunks.values()))
        uncut_notes = self._uncut_notes()
        matching_chunks = [chunk for chunk in all_chunks if chunk.bits]
        _score_words([*matching_chunks, *uncut_notes.values()], scorer, brevity)
        # Then each note with chunks as a whole.
        whole_notes = {
            row: self._as_one_chunk(chunks, self._bits[row]) for row, chunks in self.chunks.items()
        }
        _score_words(whole_notes.values(), scorer, brevity)
        all_notes = [*whole_notes.values(), *uncut_notes.values()]
        highest_weight = max([scorer[note.bits] for note in all_notes]) or 1.0

        # Add the other features, first those of the note, then those of the chunk.
        neighbor_scores = self._neighbor_scores(matching_chunks)
        speakers = self._asked_speakers(all_chunks)
        for row, whole_note in whole_notes.items():
            self._parts_of_note[row] = self._parts_from_note(row, whole_note, highest_weight)
            score_from_note = sum(self._parts_of_note[row].values())
            self._score_chunks_of(row, score_from_note, neighbor_scores, speakers)
        self._add_text_features(all_chunks)

        # A note has the score of its best chunk.
        for row, chunks in self.chunks.items():
            self.scores[row] = round(max(chunk.score for chunk in chunks), 6)
        self._rescale_uncut_notes({row: note.word_score for row, note in uncut_notes.items()})

    @staticmethod
    def _as_one_chunk(chunks: Sequence[Chunk], bits: int) -> Chunk:
        """Combine all chunks of a note into one chunk, with the words and counts of all.

        bits: the words of the query that the names of the note contain.
        """
        counts: dict[int, int] = {}
        for chunk in chunks:
            bits |= chunk.bits
            for word, count in chunk.counts.items():
                counts[word] = counts.get(word, 0) + count
        return Chunk(
            row=chunks[0].row,
            start=chunks[0].start,
            stop=chunks[-1].stop,
            words=sum(chunk.words for chunk in chunks),
            speaker=None,
            bits=bits,
            counts=counts,
            name_words=chunks[0].name_words,
        )

    def _find_words(self) -> None:
        """Find the words of the query in all chunks.

        Sets `bits`, `counts`, `places` and `name_words` of each chunk, and the bits of each note.
        """
        for row, chunks in self.chunks.items():
            note_text = self.texts[row]
            note_bits = self._bits_before_reading(note_text)
            self._bits[row] = note_bits
            name_words = word_count(note_text.name_text)
            for chunk in chunks:
                chunk.name_words = name_words
            # A single chunk is the whole note, so it has the words of the note.
            if len(chunks) == 1:
                chunks[0].bits = note_bits
            # `in_titles` keeps of all bits only those about title, headings and tags.
            title_bits = note_bits & self._ranking.scorer.in_titles
            self._find_in_text(note_text, chunks, title_bits)

    def _bits_before_reading(self, note_text: NoteText) -> int:
        """Return bits: the words of the query that a note is known to have before its text is read.

        For a question, the index knows the words of the whole note. A search for all words has to
        prove each word in the text itself, so only the words in the names of the note count here.
        """
        if self.is_strict:
            return self._bits_of_names(note_text)
        return self._ranking.bits.get(note_text.row, 0)

    def _bits_of_names(self, note_text: NoteText) -> int:
        """Return the bits of the words that are in title, headings, tags or address of a note.

        A word in the address counts as little as a longer word (LOOSE).
        """
        bits = 0
        for _, word_number, _ in self._finder.places(note_text.name_text):
            bits |= bits_of(word_number, EXACT | TITLE)
        for _, word_number, _ in self._finder.places(note_text.address):
            bits |= bits_of(word_number, LOOSE)
        return bits

    def _find_in_text(self, note_text: NoteText, chunks: Sequence[Chunk], title_bits: int) -> None:
        """Find the words of the query in the text of a note, and add them to its chunks.

        A title, heading or tag says what every chunk is about: under the title "Staging", the chunk
        "The port is 8080" answers "staging port" with both words. But a chunk without a word of the
        query does not match because of the title alone.

        title_bits: the words of the query in title, headings and tags of the note.
        """
        starts_of_chunks = [chunk.start for chunk in chunks]
        bits = self._bits_to_look_for(note_text.row)
        for start, stop in note_text.spans:
            # The later passages of a very long text were not cut into chunks.
            if start >= chunks[-1].stop:
                break
            places = self._finder.places(note_text.text[start:stop], bits)
            for offset_in_span, word_number, word_bits in places:
                offset = start + offset_in_span
                # The chunk with this offset is the last one that does not start behind it.
                chunk = chunks[bisect_right(starts_of_chunks, offset) - 1]
                chunk.counts[word_number] = chunk.counts.get(word_number, 0) + 1
                chunk.places.append((offset, word_number))
                chunk.bits |= word_bits | title_bits

    def _bits_to_look_for(self, row: int) -> int | None:
        """Return the words of the query that the text of a note may have. None for all of them.

        For a text of many words, looking for all of them in each note takes long, and the index knows
        which of them a note has. It does not know for a word with a long list of notes, and forms of
        words are found in a text that it keeps apart (`gas`, `gases`): among many words that matters
        little, in a short question it does.
        """
        is_short = len(self._ranking.words) <= _MAX_WORDS_LOOKED_FOR
        if is_short or self.is_strict or self._ranking.context.by_title:
            return None
        return self._ranking.bits.get(row, 0) | self._bits_of_long_lists

    @cached_property
    def _bits_of_long_lists(self) -> int:
        """The bits of the words whose notes were not all listed, and of the words without notes."""
        bits = 0
        for word_number, word in enumerate(self._ranking.words):
            if word.may_lack_rows or not word.rows:
                bits |= bits_of(word_number, IN_TEXT)
        return bits

    def _uncut_notes(self) -> dict[int, Chunk]:
        """Return each note that was not cut into chunks as one chunk, by row."""
        bits = self._ranking.bits
        return {
            row: Chunk(row, start=0, stop=0, words=note.words, speaker=None, bits=bits.get(row, 0))
            for row, note in self._features.items()
            if row not in self.chunks
        }

    def _neighbor_scores(self, all_chunks: Sequence[Chunk]) -> dict[int, float]:
        """Return how much the neighbors of the best chunks gain from them.

        The result maps `id(neighbor)` to the sum of the shares that the neighbor gets.
        """
        table = self._table
        # Chunks are no keys of a dict, since they change. So `id` of Python stands for each.
        scores: dict[int, float] = {}
        # id(chunk) -> (all chunks of its note, position of the chunk among them)
        positions = {
            id(chunk): (chunks, position)
            for chunks in self.chunks.values()
            for position, chunk in enumerate(chunks)
        }
        around = table.around
        # (steps from the source to the neighbor, share of the source's score that the neighbor
        # gets). At step 1 the source is before its neighbor, hence `before`.
        shares = (
            (1, table.before),
            (2, around),
            (3, around),
            (-1, table.after),
            (-2, around),
            (-3, around),
        )
        for source in nlargest(table.sources, all_chunks, key=lambda chunk: chunk.word_score):
            chunks, position = positions[id(source)]
            for step, share in shares:
                neighbor_position = position + step
                if 0 <= neighbor_position < len(chunks):
                    neighbor_id = id(chunks[neighbor_position])
                    gain = share * source.word_score
                    scores[neighbor_id] = scores.get(neighbor_id, 0.0) + gain
        return scores

    def _asked_speakers(self, all_chunks: Sequence[Chunk]) -> set[str]:
        """Return the speakers that the query names, including speakers of chunks."""
        speakers = {chunk.speaker for chunk in all_chunks}
        return self._ranking.speakers | {
            word.text for word in self._ranking.words if word.text in speakers
        }

    def _parts_from_note(
        self, row: int, whole_note: Chunk, highest_weight: float
    ) -> dict[str, float]:
        """Return the features that a whole note adds to the score of each of its chunks.

        whole_note: the note as one chunk.
        highest_weight: the highest weight of all words of a note.
        """
        table = self._table
        # The share `passage` of the score by words is left to the chunk itself.
        by_words = self._words_share(row) * (1 - table.passage) * whole_note.word_score
        _, by_meaning = self._ranking.own_score(row)
        day = self._features[row].day
        has_title = any(key(name) == self._query_key for name in self.texts[row].names)
        return {
            "words": table.words * by_words,
            # The note counts as the conversation of its chunks.
            "conversation": table.conversation * (by_words + by_meaning),
            "conversation_words": table.conversation_words
            * self._ranking.words_left(row)
            * (self._ranking.scorer[whole_note.bits] / highest_weight),
            "date": table.date * sum([period.share(day) for period in self._question.periods]),
            "meaning": table.words * by_meaning,
            "same_title": table.same_title * has_title,
        }

    def _words_share(self, row: int) -> float:
        """Return the share of words in the score of a note. Its meaning has the other share."""
        if row in self._ranking.cosines:
            return 1.0 - self._ranking.meaning_share(row)
        return 1.0

    def _score_chunks_of(
        self,
        row: int,
        score_from_note: float,
        neighbor_scores: Mapping[int, float],
        speakers: set[str],
    ) -> None:
        """Set the scores of the chunks of a note, without what needs their text (`_add_text_features`).

        score_from_note: the part of each score that comes from the features of the note.
        neighbor_scores: the part that comes from the best chunks before and after, by `id(chunk)`. A
            chunk without such neighbors is missing.
        speakers: the speakers that the query names.
        """
        table = self._table
        note = self._features[row]
        # The words of a chunk get the share `table.passage` of the weights of words and conversation.
        # The words of the whole note get the rest (`_parts_from_note`).
        passage_weight = self._words_share(row) * (table.words + table.conversation) * table.passage
        # What a person wants from now on (`I prefer …`) counts more in every chunk of the note.
        standing = table.standing if self._ranking.is_standing(note) else 0.0
        is_turn_of_assistant = self._ranking.is_reply(note)
        has_user = row in self._rows_with_user
        for chunk in self.chunks[row]:
            from_neighbors = neighbor_scores.get(id(chunk), 0.0)
            chunk.is_relevant = bool(chunk.bits or from_neighbors)
            is_asked_speaker = chunk.is_relevant and chunk.speaker in speakers
            # An assistant says it: either the note is its turn, or the note has the whole talk.
            is_replied = is_turn_of_assistant or (has_user and is_assistant(chunk.speaker))
            chunk.parts = {
                "passage": passage_weight * chunk.word_score,
                "neighbors": from_neighbors,
                "speaker": table.speaker if is_asked_speaker else 0.0,
                "replied": table.replied if is_replied else 0.0,
                "standing": standing,
            }
            chunk.score = score_from_note + sum(chunk.parts.values())

    def _add_text_features(self, all_chunks: Sequence[Chunk]) -> None:
        """Add the features that need the text of a chunk, for the best chunks only."""
        table = self._table
        query_word_count = len(self._ranking.words)
        rows_with_assistant = {chunk.row for chunk in all_chunks if is_assistant(chunk.speaker)}
        best_chunks = nlargest(_MAX_READ_CHUNKS, all_chunks, key=lambda chunk: chunk.score)
        for rank, chunk in enumerate(best_chunks):
            note = self._features[chunk.row]
            # The features of a short note are in the index. A chunk of a long one is read.
            text = ""
            pronoun_count = note.first_person
            if note.is_long:
                text = self.texts[chunk.row].text[chunk.start : chunk.stop]
                pronoun_count = _first_person(text)
            # Pronouns of the first person are counted up to 4.
            parts = {"own": table.own * pronoun_count / 4}
            # One word alone is near to nothing.
            has_several_words = len(chunk.counts) > 1
            if has_several_words and rank < _MAX_NEARNESS_CHUNKS:
                parts["near"] = table.near * nearness(sorted(chunk.places), query_word_count)
            # Whether a chunk asks counts only in a talk, where an answer is wanted. What a person
            # asks an assistant is spared: people explain the matter in it.
            if chunk.speaker is not None:
                style = _style_of(text) if note.is_long else note
                is_request = chunk.row in rows_with_assistant or is_user(chunk.speaker)
                parts["asks"] = 0.0 if is_request else table.asks * style.question / 100
                parts["timed"] = table.timed if self._question.when and style.has_time else 0.0

            # The parts are kept apart, so that a hit can be explained.
            chunk.parts |= parts
            chunk.score += sum(parts.values())

    def _rescale_uncut_notes(self, own_scores: dict[int, float]) -> None:
        """Adjust the scores of notes without chunks to the scale of the chunks.

        The ranking gave the best whole note a score by words of 1. Beside chunks this note may have
        only 0.8, if a chunk has 1. So the score by words of each note is replaced by its score
        beside chunks. What its neighbors and its conversation add is made of the old scores, so it
        is multiplied by 0.8.

        own_scores: the score by words of each such note beside chunks, by row.
        """
        # row -> feature -> the part of the old score that comes from it
        shares_by_row = {row: self._ranking.shares(row) for row in own_scores}
        # How much a score by words of 1 adds to the score of the note.
        word_weights = {row: self._words_share(row) * self._table.words for row in own_scores}
        # The old scores by words. The weight is 0 if only meaning counts, so the division needs
        # `or 1`.
        old_scores = {
            row: shares.get("words", 0.0) / (word_weights[row] or 1)
            for row, shares in shares_by_row.items()
        }
        highest_own = max(own_scores.values(), default=0.0)
        highest_old = max(old_scores.values(), default=0.0) or 1.0
        # The 0.8 of the example.
        factor = highest_own / highest_old
        for row, shares in shares_by_row.items():
            shares_from_others = shares.get("neighbors", 0.0) + shares.get("conversation", 0.0)
            change_by_words = word_weights[row] * (own_scores[row] - old_scores[row])
            change = change_by_words + (factor - 1) * shares_from_others
            self.scores[row] = round(self._ranking.scores[row] + change, 6)

    # --- the scores of notes

    def _adjust_scores(self) -> None:
        """Change the scores by day, topic and conversation, and of archived and unfilled notes."""
        if not self.is_strict and self._table.other_day:
            self._lower_other_days()
        if self._ranking.is_told and self._table.feedback:
            self._raise_notes_on_topic()
        if self._ranking.is_told and self._table.told_several:
            self._spread_over_conversations()
        factors = dict.fromkeys(self._archived, self._table.archived)
        factors |= dict.fromkeys(self._unfilled, self._table.unfilled)
        for row, factor in factors.items():
            self._multiply(row, factor)

    def _lower_other_days(self) -> None:
        """Lower the scores of notes that stand alone and are not of the day of the best note.

        What is written on one day is often about one thing. A day that has a good note loses little.
        """
        notes_alone = [
            note
            for row, note in self._features.items()
            if note.conversation is None and row in self.scores
        ]
        best_score_of_day: dict[str, float] = {}
        for note in notes_alone:
            best_so_far = best_score_of_day.get(note.day, 0.0)
            best_score_of_day[note.day] = max(best_so_far, self.scores[note.row])
        if len(best_score_of_day) < 2:
            return
        highest = max(best_score_of_day.values())
        for note in notes_alone:
            # `other_day` is below 0, so the loss is, too. It is 0 on the day of the best note.
            loss = self._table.other_day * (highest - best_score_of_day[note.day])
            if loss:
                self._adjustments.other_days[note.row] = loss
                self._change(note.row, loss)

    def _raise_notes_on_topic(self) -> None:
        """Raise the scores of notes and chunks about the topic of the best notes (`feedback`)."""
        ranking = self._ranking
        best_rows = nlargest(SOURCES, self.scores, key=lambda row: (self.scores[row], row))
        highest = max(self.scores.values(), default=0.0)
        # Turns of conversations were not read. Their texts are needed here only, so they do not get
        # into `self.texts`.
        texts_of_turns = self._read_texts([row for row in best_rows if row not in self.texts])
        texts = self.texts | texts_of_turns
        # The best notes tell the topic, each as much as it scores.
        sources = [(texts[row].text, self.scores[row]) for row in best_rows if self.scores[row] > 0]
        shares = topic_shares(sources, ranking.rows_of, ranking.rarity, self.scores)
        for row, share in shares.items():
            # A note that is all about the topic gains `feedback` of the highest score.
            gain = self._table.feedback * highest * share
            self._adjustments.gains[row] = gain
            self._change(row, gain)

    def _spread_over_conversations(self) -> None:
        """Lower the score of each note that follows better notes of the same conversation.

        The hits should come from different conversations, because notes next to a hit are shown
        with it anyway.
        """
        better_counts: dict[int, int] = {}
        for row in newest_first(self.scores):
            note = self._features.get(row)
            if note is None or note.conversation is None:
                continue
            better_count = min(better_counts.get(note.conversation, 0), MAX_BETTER)
            better_counts[note.conversation] = better_count + 1
            if better_count:
                # `told_several` is below 0, so the loss is, too.
                loss = self._table.told_several * better_count
                self._adjustments.losses[row] = loss
                self._change(row, loss)

    def _change(self, row: int, change: float) -> None:
        """Add a number to the score of a note and of its chunks."""
        self.scores[row] = round(self.scores[row] + change, 6)
        for chunk in self.chunks.get(row, ()):
            chunk.score += change

    def _multiply(self, row: int, factor: float) -> None:
        """Multiply the score of a note and of its chunks by a factor below 1."""
        self._adjustments.factors[row] = factor
        # `min`, since a score below 0 must not rise.
        score = self.scores.get(row, 0.0)
        self.scores[row] = min(score, score * factor)
        for chunk in self.chunks.get(row, ()):
            chunk.score = min(chunk.score, chunk.score * factor)

    # --- results

    def score(self, row: int) -> float:
        """Return the score of a note.

        A note outside `rows` has the score of the ranking, but at most the lowest score of `rows`.
        """
        return self.scores.get(row, min(self._ranking.scores.get(row, 0.0), self._lowest_score))

    def shares(self, row: int) -> dict[str, float]:
        """Return the score of a note, split by feature: `{"words": 0.61, "date": 0.98}`.

        Zeros are left out. `passage` is the part of the best chunk of a long note. The result is
        empty for a note that has no score here.
        """
        if row not in self.scores:
            return {}
        # What the note gained or lost after its chunks were scored.
        gain = self._adjustments.gains.get(row, 0.0)
        loss = self._adjustments.losses.get(row, 0.0)
        other_day = self._adjustments.other_days.get(row, 0.0)
        was_scored_by_chunks = row in self._parts_of_note
        if not was_scored_by_chunks:
            # The score of the ranking, and what was changed here. What none of the adjustments
            # explains comes from `_rescale_uncut_notes`, or from the factor of an archived note.
            change = self.scores[row] - self._ranking.scores[row] - gain - loss - other_day
            parts = self._ranking.shares(row) | {"passage": change, "feedback": gain}
            parts["other_day"] = other_day
            parts["several"] = parts.get("several", 0.0) + loss
            return {name: round(value, 3) for name, value in parts.items() if round(value, 3)}

        # The note and its best chunk.
        best_chunk = max(self.chunks[row], key=lambda chunk: chunk.score)
        parts = self._parts_of_note[row] | best_chunk.parts
        # A single chunk is the whole note, so nothing is said of a passage.
        if len(self.chunks[row]) == 1:
            parts["words"] += parts.pop("passage")
        parts["feedback"] = gain
        parts["several"] = loss
        parts["other_day"] = other_day
        factor = self._adjustments.factors.get(row, 1.0)
        return {name: round(value * factor, 3) for name, value in parts.items() if round(value, 3)}

    def snippet_of(self, note_text: NoteText) -> tuple[str, int]:
        """Return (snippet from the best chunk of a note, its line in the file counted from 1)."""
        # Choose the part of the text: its best chunk.
        chunks = self.chunks.get(note_text.row, ())
        if chunks:
            best = max(chunks, key=lambda chunk: chunk.score)
            start = best.start
            stop = best.stop
        else:
            start, stop = self._shown_part(note_text)

        # Cut the snippet out of it. A short part needs no choice.
        if stop - start <= SNIPPET:
            passage, line = shortened(note_text.text, start, stop)
        else:
            # The places in the only chunk of a note are known already.
            if len(chunks) == 1:
                places = chunks[0].places
            else:
                places_in_chunk = self._finder.places(note_text.text[start:stop])
                places = [
                    (start + offset, word_number) for offset, word_number, _ in places_in_chunk
                ]
            word_weights = [word.weight for word in self._ranking.words]
            passage, line = snippet(note_text.text, start, stop, sorted(places), word_weights)
        # `line` is counted in the text. The frontmatter comes before it in the file.
        return passage, line + note_text.front.count("\n")

    def _shown_part(self, note_text: NoteText) -> tuple[int, int]:
        """Return (start, stop) of the part of a note to show if its chunks were not scored.

        A short text is shown whole. A long text is shown by the chunk with the most words of the
        query.
        """
        if len(note_text.text) <= SHORT:
            return 0, len(note_text.text)
        best = max(
            self._chunks_of(note_text),
            key=lambda chunk: self._count_of_marks(note_text.text[chunk.start : chunk.stop]),
        )
        return best.start, best.stop

    def _count_of_marks(self, text: str) -> int:
        """Return how many words of the query a text contains, each counted once."""
        bits = 0
        for _, _, word_bits in self._finder.places(text):
            bits |= word_bits
        return bits.bit_count()

    def relevant(self, least: float) -> list[_Passage]:
        """Return all relevant passages, the best first.

        The reading must have been made with `reads_turns`.

        least: leave out passages with a lower `relevance_of`. 0 keeps all.
        """
        passages = self._passages
        if least:
            passages = [passage for passage in passages if self.relevance_of(passage) >= least]
        return sorted(passages, key=lambda passage: -passage.score)

    def says_enough(self, floor: float) -> bool:
        """Whether the notes may answer the question: any chunk has at least this relevance.

        Relevance (`Ranking.relevance`) counts shared words. Notes that were found by a day may share
        few words with the question. So the result is always True for a text that tells something, a
        question of one or two words, and a question with a day. If meanings were compared, a note
        must be near the question (`related`) or have much more relevance. The reading must have been
        made with `reads_turns`.

        floor: the least relevance of the best chunk.
        """
        ranking = self._ranking
        question = ranking.question
        is_too_short = len(question.words) < _MIN_QUESTION_WORDS
        if ranking.is_told or question.periods or is_too_short:
            return True
        if ranking.nearest is not None:
            return self._is_anything_near_or_certain(floor)
        # Longer words do not count for relevance. So if a word was found only as the beginning of
        # longer words, the relevance is too low to decide.
        if any(word.may_be_longer for word in ranking.words):
            return True
        return any(self.relevance_of(passage) >= floor for passage in self._passages)

    def _is_anything_near_or_certain(self, floor: float) -> bool:
        """Whether a note is near the question, or a passage has the relevance that it needs.

        A cosine tells an everyday prompt better than words do. So a note that has a vector and is
        not near needs _CERTAIN_RELEVANCE. For a note without a vector, `floor` is enough.
        """
        ranking = self._ranking
        # By chance, the highest cosine grows with the number of notes, about as its logarithm. So
        # a home of _MANY_NOTES asks for the whole of `related`, and an empty one for the half.
        share_of_size = log2(ranking.context.size) / log2(_MANY_NOTES)
        least_cosine = self._related * (1 + min(1.0, share_of_size)) / 2
        highest_cosine = ranking.nearest or 0.0
        if highest_cosine >= least_cosine:
            return True
        for passage in self._passages:
            has_vector = passage.row in ranking.cosines
            least_relevance = _CERTAIN_RELEVANCE if has_vector else floor
            if self.relevance_of(passage) >= least_relevance:
                return True
        return False

    def relevance_of(self, passage: _Passage) -> float:
        """Return the relevance of a passage, by its words and its length (`Ranking.relevance`)."""
        return self._ranking.relevance(passage.bits, passage.stop - passage.start)

    @cached_property
    def _passages(self) -> list[_Passage]:
        """All parts of the notes that may answer a question, in no particular order."""
        passages: list[_Passage] = []
        for row in self.rows:
            # An unfilled file of a memory bank has only what a new bank begins with.
            if row in self._unfilled:
                continue
            if row in self.chunks:
                passages += [
                    _Passage(row, chunk.start, chunk.stop, chunk.score, chunk.bits)
                    for chunk in self._relevant_chunks(row)
                ]
            elif row in self.texts:
                start, stop = self._shown_part(self.texts[row])
                bits = self._ranking.bits.get(row, 0)
                passages.append(_Passage(row, start, stop, self.score(row), bits))
        return passages

    def _relevant_chunks(self, row: int) -> list[Chunk]:
        """Return the chunks of the note in `row` that may answer the question.

        These have a word of the question, or are beside such a chunk. If there are none, it is the
        best chunk of a note that is near the question in meaning, and no chunk of another note.
        """
        chunks = self.chunks[row]
        relevant = [chunk for chunk in chunks if chunk.is_relevant]
        is_near = self._ranking.cosines.get(row, 0.0) >= _NEARER_HALF
        if not relevant and is_near:
            relevant = [max(chunks, key=lambda chunk: chunk.score)]
        return relevant

    def why(self, note_text: NoteText) -> list[str]:
        """Return the reasons why a note was found, such as `["words: plan, budget", "archived"]`.

        If the note contains no word of the query, the reason may be `meaning`.
        """
        marks = []
        if note_text.row in self._archived or note_text.project == ARCHIVE_PROJECT:
            marks.append(ARCHIVED)
        # The words of the query that the note contains, as a bit mask (word_marks.py).
        bits = self._bits_of_note(note_text)
        if bits:
            return self._reasons(bits) + marks
        if self._ranking.cosines.get(note_text.row, 0.0) > 0:
            return ["meaning", *marks]
        return marks

    def _reasons(self, bits: int) -> list[str]:
        """Return the reasons to show for a note, such as `title: plan` and `words: plan, budget`.

        bits: the words of the query that the note contains (`word_marks`).
        """
        words = self._words_of_bits(bits)
        reasons = words.reasons()
        if words.spelled:
            reasons.append(f"spelled: {', '.join(words.spelled)}")
        if words.has_longer:
            reasons.append("prefix")
        return reasons

    def matched_words(self, note_text: NoteText) -> MatchedWords:
        """Return the words of the query that a note contains."""
        return self._words_of_bits(self._bits_of_note(note_text))

    def _bits_of_note(self, note_text: NoteText) -> int:
        """Return the words of the query that a note contains, as bits (`word_marks`)."""
        row = note_text.row
        if not self.is_strict:
            return self._ranking.bits_of(row)
        # In a search for all words, the ranking does not know the words. A note that was not cut
        # into chunks is read here.
        if row not in self._bits:
            self._bits[row] = self._bits_of_names(note_text)
            for start, stop in note_text.spans:
                for _, _, word_bits in self._finder.places(note_text.text[start:stop]):
                    self._bits[row] |= word_bits
        # `_bits` has only the words in the names of a note with chunks. The chunks have the others.
        bits = self._bits[row]
        for chunk in self.chunks.get(row, ()):
            bits |= chunk.bits
        return bits

    def _words_of_bits(self, bits: int) -> MatchedWords:
        """Return the words of the query whose marks are in `bits` (`word_marks`)."""
        title_words: list[str] = []
        text_words: list[str] = []
        spelled: list[str] = []
        has_longer = False
        for word_number, word in enumerate(self._ranking.words):
            marks = marks_of(bits, word_number)
            # `LOOSE` alone: the text has only a longer word. A weak word counts here, too.
            if (marks & IN_TEXT) == LOOSE:
                has_longer = True
            # A weak word itself says too little to be a reason.
            if word.is_weak:
                continue
            if marks & TITLE:
                title_words.append(word.text)
            if marks & IN_TEXT:
                text_words.append(word.text)
                spelled += word.spelled
        return MatchedWords(tuple(title_words), tuple(text_words), tuple(spelled), has_longer)


def _score_words(chunks: Collection[Chunk], scorer: TermScorer, brevity: float) -> None:
    """Set `word_score` of each chunk: its score by words, as in BM25 with k1 = 1.2.

    The best chunk gets 1.

    scorer: gives the weight of the words of a chunk.
    brevity: how much longer texts get less, from 0 to 1 (the b of BM25).
    """
    if not chunks:
        return
    average_words = sum(chunk.words for chunk in chunks) / len(chunks) or 1
    average_name_words = sum(chunk.name_words for chunk in chunks) / len(chunks) or 1
    for chunk in chunks:
        # k1 * (1 - b + b * length / average length) of BM25: more for a long text, whose words
        # then count less.
        saturation = _K1 * (1 - brevity + brevity * chunk.words / average_words)
        # Words in a title that is longer than the average count less, too.
        title_factor = 1.0
        if chunk.name_words:
            excess_length = chunk.name_words / average_name_words - 1
            title_factor = (1 + _K1) / (1 + _K1 + _K1 * brevity * excess_length)
        chunk.word_score = _word_score(chunk, scorer, saturation, title_factor)

    # Divide by the highest score, so that the best chunk gets 1.
    highest = max((chunk.word_score for chunk in chunks), default=0.0) or 1.0
    for chunk in chunks:
        chunk.word_score /= highest


def _word_score(chunk: Chunk, scorer: TermScorer, saturation: float, title_factor: float) -> float:
    """Return the score of a chunk by its words, before it is compared with other chunks.

    scorer: gives the weight of the words of a chunk.
    saturation: how little repetitions add: a word that occurs n times counts n / (n + saturation).
    title_factor: how much a word in the title counts, compared with a title of average length.
    """
    # The marks in titles, and all others.
    title_bits = chunk.bits & scorer.in_titles
    text_bits = chunk.bits ^ title_bits
    # Each word as if it occurred once: n / (n + saturation) with n = 1.
    score = (scorer[text_bits] + title_factor * scorer[title_bits]) / (1 + saturation)
    for word_number, count in chunk.counts.items():
        # A word in the title already counts as if it were repeated very often.
        is_in_title = bool(marks_of(chunk.bits, word_number) & TITLE)
        if count > 1 and not is_in_title:
            for_repetitions = count / (count + saturation) - 1 / (1 + saturation)
            score += scorer.weights[word_number] * for_repetitions
    return score
