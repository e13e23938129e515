"""Reading the best notes: turns of a conversation, list items, passages of about 200 words, scored
like notes.

A long note contains many words of a query and says little about most of them. The best notes are
therefore read, and each chunk is scored by the features of `weights`, as if it were a note in a
separate conversation: its neighbors, its note (the conversation), its title and headings, its
speaker and the note's date count. The best chunk's score is the note's, and the best chunk is
shown.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, reduce
from heapq import nlargest
from itertools import chain
from operator import or_
from typing import NamedTuple

from memoranda.index.features import SHORT, first_person, speaker_of, style_of, turns_or_passages
from memoranda.index.resolve import key
from memoranda.index.search.feedback import SOURCES, topic_shares
from memoranda.index.search.queries import NoteText
from memoranda.index.search.ranking import Ranking, TermScorer, is_assistant, is_user
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
from memoranda.text.pattern import lazy_pattern
from memoranda.text.tokens import word_count

# Notes whose text is read for a question, and for a text that tells something.
READ = 24
READ_TOLD = 32
READ_LONG = 10
"""This many of the best notes are read, more where something is told, whose many words tell long
notes badly apart; and this many long ones that come after them.
"""

# Characters read of all notes together, and of one.
_MAX_CHARACTERS = 250_000
_MAX_PER_NOTE = 40_000
# Passages that are compared word by word.
_READ_CLOSELY = 60
# How many of the best chunks are read word by word, and for how many the distances of words count.
_READ_NEAR = 20
# Informative words of a question from which on it can be told that nothing answers it.
_LEAST_ASKED = 3
# Characters of a list that is cut at its items.
_MIN_LIST = 200
_MIN_ITEMS = 3
# The chunks of this many long texts are cached, and the styles of this many chunks: `bench/recall.py
# --notes session` takes half as long again without.
_CACHED = 2_000
# By the hash of a text, so that the texts need not be kept.
_known_chunks: dict[int, list[tuple[int, int, int, str | None]]] = {}
_style_of = lru_cache(_CACHED)(style_of)
_first_person = lru_cache(_CACHED)(first_person)
# The beginning of a list item.
_ITEM = lazy_pattern(r"^(?:[-*+]|\d{1,3}[.)])[ \t]+\S", re.M)
# A short beginning that ends in a colon: the name of a speaker.
_SPEAKER = lazy_pattern(r"[^\n:：]{1,80}[:：]")


@dataclass(slots=True)
class Chunk:
    """A part of a note: `text[start:stop]` of the note in `row`.

    words: about how many words it has.
    speaker: the person who says it.
    bits: the words of the query that it contains, as in `Ranking`.
    often: how often it contains each word, by the number of the word.
    places: where the words are.
    own: the score of its words, 1 for the best chunk.
    is_relevant: whether it or a neighbor contains a word.
    parts: the parts that some features add to its score.
    named: about how many words are in title, headings and tags of the note; 0 if they were not
        read.
    """

    row: int
    start: int
    stop: int
    words: int
    speaker: str | None
    bits: int = 0
    often: dict[int, int] = field(default_factory=dict)
    score: float = 0.0
    places: list[Place] = field(default_factory=list)
    own: float = 0.0
    is_relevant: bool = False
    parts: dict[str, float] = field(default_factory=dict)
    named: float = 0.0


def chunk(text: str) -> list[tuple[int, int]]:
    """Split a text into the turns of a conversation, or into list items and passages of about 200
    words.

    Returns (start, stop) of each.
    """
    if len(text) <= SHORT:
        return [(0, len(text))]
    spans: list[tuple[int, int]] = []
    for start, stop in turns_or_passages(text):
        if stop - start >= _MIN_LIST:
            starts = [match.start() for match in _ITEM.finditer(text, start, stop)]
        else:
            starts = []
        if len(starts) < _MIN_ITEMS:
            spans.append((start, stop))
            continue
        # Each item includes the text after it, and the first item a heading before it.
        before = text[start : starts[0]].strip()
        is_heading = before.startswith("#") and "\n" not in before
        starts = [start, *starts[0 if before and not is_heading else 1 :]]
        spans += zip(starts, [*starts[1:], stop], strict=True)
    return spans or [(0, len(text))]


class _Passage(NamedTuple):
    """`start` to `stop` of the note in `row`, its score and the words of the query it holds."""

    row: int
    start: int
    stop: int
    score: float
    bits: int


class ChunkReading:
    """The best notes for a query, read chunk by chunk.

    rows: the notes read. They are the `first` best ones, and after them the best long ones, which
        score low as whole notes. For a search for all words, all given notes.
    order: the same, best first.
    chunks: the chunks of long notes and of notes that stand alone.
    texts: the texts of these notes; with `every`, of all notes.

    A turn of a conversation is not read: alone it says little, and its words are known.
    """

    def __init__(self, ranking: Ranking, first: int = 0, *, every: bool = False):
        self._ranking = ranking
        self._table = ranking.table
        self._question = ranking.question
        self.is_strict = ranking.query is not None
        self.rows = self._rows_to_read(first)
        self._features = {
            row: ranking.features[row] for row in self.rows if row in ranking.features
        }
        self._finder = WordFinder(ranking.words)
        self._asked = key(ranking.context.query.text)
        if ranking.query:
            self.terms = ranking.query.terms
        else:
            self.terms = shown_terms(ranking.words)

        # A turn of a conversation says little by itself, and what it holds is known
        telling = [
            row for row, note in self._features.items() if note.is_long or note.conversation is None
        ]
        self.texts = self._read(self.rows if every else telling)
        self.chunks = self._cut(telling)
        self._bits: dict[int, int] = {}
        self._about: dict[int, dict[str, float]] = {}
        self.scores = {row: ranking.scores[row] for row in self.rows if row in ranking.scores}
        if self.chunks:
            self._score_chunks()

        self._gains: dict[int, float] = {}
        if ranking.is_told and self._table.feedback:
            self._learn_from_best()
        self._archived = ranking.context.archived(self.rows)
        self._unfilled = ranking.context.unfilled(self.rows)
        self._factors = dict.fromkeys(self._archived, self._table.archived)
        self._factors |= dict.fromkeys(self._unfilled, self._table.unfilled)
        self._lower_factored()
        self.order = list(dict.fromkeys([*ranking.context.best_first(self.scores), *self.rows]))
        self._least = min(self.scores.values(), default=0.0)

    def _rows_to_read(self, first: int) -> list[int]:
        """The notes that are read, as the class says."""
        ranking = self._ranking
        if self.is_strict:
            rows = list(ranking.features)
        else:
            rows = ranking.page(0, first)
        inside = set(rows)
        scores = ranking.scores
        rest = [row for row, note in ranking.features.items() if note.is_long and row not in inside]
        return rows + nlargest(READ_LONG, rest, key=lambda row: (scores.get(row, 0.0), row))

    def _read(self, rows: Sequence[int]) -> dict[int, NoteText]:
        """The texts of these notes."""
        return {text.row: text for text in self._ranking.context.texts(rows, self.terms)}

    def _cut(self, rows: Sequence[int]) -> dict[int, list[Chunk]]:
        """The chunks of these notes, so far as there is room; a turn of one chunk is left out."""
        chunks_of_notes: dict[int, list[Chunk]] = {}
        room = _MAX_CHARACTERS
        for row in rows:
            if room <= 0:
                break
            pieces = self._chunks_of(self.texts[row])
            room -= sum([piece.stop - piece.start for piece in pieces])
            if len(pieces) > 1 or self._features[row].conversation is None:
                chunks_of_notes[row] = pieces
        return chunks_of_notes

    def _learn_from_best(self) -> None:
        """Raise the notes that hold the topic of the best ones."""
        ranking = self._ranking
        best = nlargest(SOURCES, self.scores, key=lambda row: (self.scores[row], row))
        most = max(self.scores.values(), default=0.0)
        unread = self._read([row for row in best if row not in self.texts])
        texts = self.texts | unread
        sources = [(texts[row].text, self.scores[row]) for row in best if self.scores[row] > 0]
        shares = topic_shares(sources, ranking.rows_of, ranking.rarity, self.scores)
        for row, share in shares.items():
            gain = self._gains[row] = self._table.feedback * most * share
            self.scores[row] = round(self.scores[row] + gain, 6)
            for piece in self.chunks.get(row, ()):
                piece.score += gain

    def _lower_factored(self) -> None:
        """Multiply the scores of archived and unfilled notes, which only ever makes them less."""
        for row, factor in self._factors.items():
            score = self.scores.get(row, 0.0)
            self.scores[row] = min(score, score * factor)
            for piece in self.chunks.get(row, ()):
                piece.score = min(piece.score, piece.score * factor)

    def shown(self, text: NoteText) -> tuple[str, int]:
        """The snippet of a note, from its best chunk, and its line in the file."""
        some = self.chunks.get(text.row, ())
        if some:
            best = max(some, key=lambda piece: piece.score)
        else:
            best = None
        start, stop = (best.start, best.stop) if best else self._whole(text)
        if stop - start <= SNIPPET:
            passage, line = shortened(text.text, start, stop)
        else:
            if best and len(some) == 1:
                places = best.places
            else:
                found_places = self._finder.places(text.text[start:stop])
                places = [(start + at, word) for at, word, _ in found_places]
            passage, line = snippet(
                text.text,
                start,
                stop,
                sorted(places),
                [word.weight for word in self._ranking.words],
            )
        return passage, line + text.front.count("\n")

    def relevant(self, least: float) -> list[tuple[int, int, int, float]]:
        """All relevant chunks of the notes read, best first: note, start, stop, score; none of less
        than `least` by `Ranking.relevance`. Needs `every`."""
        passages = self._passages
        if least:
            passages = [passage for passage in passages if self._relevance_of(passage) >= least]
        best_first = sorted(passages, key=lambda passage: -passage.score)
        return [(passage.row, passage.start, passage.stop, passage.score) for passage in best_first]

    def says_enough(self, floor: float) -> bool:
        """Whether any chunk has this relevance by `Ranking.relevance`, or it cannot be told.

        What a told text, a question of one or two words, a day, the beginning of a word or a
        meaning finds may share few words with it. Needs `every`.
        """
        ranking = self._ranking
        question = ranking.question
        is_by_words = not (ranking.is_told or ranking.cosines or question.periods)
        if not is_by_words or len(question.words) < _LEAST_ASKED:
            return True
        if any(word.is_open for word in ranking.words):
            return True
        return any(self._relevance_of(passage) >= floor for passage in self._passages)

    def _relevance_of(self, passage: _Passage) -> float:
        return self._ranking.relevance(passage.bits, passage.stop - passage.start)

    @cached_property
    def _passages(self) -> list[_Passage]:
        """The chunks of the notes read that a question may be answered with."""
        passages: list[_Passage] = []
        for row in self.rows:
            # An unfilled note says what it is for, and nothing else
            if row in self._unfilled:
                continue
            if row in self.chunks:
                passages += [
                    _Passage(row, piece.start, piece.stop, piece.score, piece.bits)
                    for piece in self.chunks[row]
                    if piece.is_relevant
                ]
            elif row in self.texts:
                start, stop = self._whole(self.texts[row])
                bits = self._ranking.bits.get(row, 0)
                passages.append(_Passage(row, start, stop, self.score(row), bits))
        return passages

    def score(self, row: int) -> float:
        """The score of a note; one that was not read scores at most as much as the last one that was."""
        return self.scores.get(row, min(self._ranking.scores.get(row, 0.0), self._least))

    def shares(self, row: int) -> dict[str, float]:
        """The part that each feature adds to the score of a note. Zero parts are left out.

        `passage` is the part added by the best chunk of a long note.
        """
        if row not in self.scores:
            return {}
        gain = self._gains.get(row, 0.0)
        if row not in self._about:
            # The scale of words, or the archive
            change = self.scores[row] - self._ranking.scores[row] - gain
            parts = self._ranking.shares(row) | {"passage": change, "feedback": gain}
            return {name: round(value, 3) for name, value in parts.items() if round(value, 3)}
        parts = self._about[row] | max(self.chunks[row], key=lambda piece: piece.score).parts
        if len(self.chunks[row]) == 1:
            parts["words"] += parts.pop("passage")
        parts["feedback"] = gain
        factor = self._factors.get(row, 1.0)
        return {name: round(value * factor, 3) for name, value in parts.items() if round(value, 3)}

    def why(self, text: NoteText) -> list[str]:
        """Why a note was found."""
        marks = []
        if text.row in self._archived or text.project == ARCHIVE_PROJECT:
            marks.append(ARCHIVED)
        bits = self._held_bits(text)
        if bits:
            return self._reasons(bits) + marks
        if self._ranking.cosines.get(text.row, 0.0) > 0:
            return ["meaning", *marks]
        return marks

    def _held_bits(self, text: NoteText) -> int:
        """Which words of the query a note holds, as in `Ranking`."""
        row = text.row
        if not self.is_strict:
            return self._ranking.bits_of(row)
        # For a search for all words, only the text itself tells.
        if row not in self._bits:
            self._bits[row] = self._named(text)
            for start, stop in text.spans:
                for _, _, position in self._finder.places(text.text[start:stop]):
                    self._bits[row] |= position
        return reduce(or_, (piece.bits for piece in self.chunks.get(row, ())), self._bits[row])

    def _reasons(self, bits: int) -> list[str]:
        """The reasons shown for a note that holds these words of the query."""
        words = [(word, marks_of(bits, at)) for at, word in enumerate(self._ranking.words)]
        titled = [word.text for word, marks in words if marks & TITLE and not word.is_weak]
        held_words = [word for word, marks in words if marks & IN_TEXT and not word.is_weak]
        reasons = []
        if titled:
            reasons.append(f"title: {', '.join(titled)}")
        if held_words:
            reasons.append(f"words: {', '.join(word.text for word in held_words)}")
        spelled = list(chain.from_iterable(word.spelled for word in held_words))
        if spelled:
            reasons.append(f"spelled: {', '.join(spelled)}")
        if any(marks & IN_TEXT == LOOSE for _, marks in words):
            reasons.append("prefix")
        return reasons

    def _named(self, text: NoteText) -> int:
        """Which words title, headings and tags contain, and which only the address, which says
        least.
        """
        bits = 0
        for _, word, _ in self._finder.places(text.called):
            bits |= bits_of(word, EXACT | TITLE)
        for _, word, _ in self._finder.places(text.address):
            bits |= bits_of(word, LOOSE)
        return bits

    def _whole(self, text: NoteText) -> tuple[int, int]:
        """The whole of a short text, or the chunk with most of the words of a long text.

        Used for texts that there was no room to score.
        """
        if len(text.text) <= SHORT:
            return 0, len(text.text)

        def count(piece: Chunk) -> int:
            places = self._finder.places(text.text[piece.start : piece.stop])
            return reduce(or_, (bits for _, _, bits in places), 0).bit_count()

        best = max(self._chunks_of(text), key=count)
        return best.start, best.stop

    def _chunks_of(self, text: NoteText) -> list[Chunk]:
        """The chunks of a note.

        For a very long note, only those in passages that contain a word, up to a limit.
        """
        note = self._features.get(text.row)
        if note is not None and not note.is_long:
            return [Chunk(text.row, 0, len(text.text), note.words, note.speaker)]
        pieces: list[Chunk] = []
        size = 0
        for first, last in text.spans:
            if size <= _MAX_PER_NOTE:
                parts = _sized_chunks(text.text[first:last])
                pieces += [
                    Chunk(text.row, first + start, first + stop, words, who)
                    for start, stop, words, who in parts
                ]
                size += last - first
        return pieces

    def _score_chunks(self) -> None:
        """Score all chunks, and with them the notes, on the same scale as short notes."""
        ranking = self._ranking
        scorer = ranking.scorer
        brevity = self._table.brevity
        self._find_words()
        all_chunks = list(chain.from_iterable(self.chunks.values()))
        single = {
            row: Chunk(row, 0, 0, note.words, None, ranking.bits.get(row, 0))
            for row, note in self._features.items()
            if row not in self.chunks
        }
        matching = [piece for piece in all_chunks if piece.bits]
        _score_words([*matching, *single.values()], scorer, brevity)
        whole = {row: _together(pieces, self._bits[row]) for row, pieces in self.chunks.items()}
        _score_words(whole.values(), scorer, brevity)
        full = max([scorer[piece.bits] for piece in (*whole.values(), *single.values())]) or 1.0

        neighbors = self._neighbor_scores(matching)
        speakers = self._asked_speakers(all_chunks)
        for row, pieces in self.chunks.items():
            self._about[row] = self._about_note(row, whole[row], full)
            usual = sum(self._about[row].values())
            for piece in pieces:
                self._score_chunk(piece, usual, neighbors.get(id(piece), 0.0), speakers)
        self._read_closely(all_chunks)
        for row, pieces in self.chunks.items():
            self.scores[row] = round(max(piece.score for piece in pieces), 6)
        self._rescale({row: piece.own for row, piece in single.items()})

    def _asked_speakers(self, all_chunks: Sequence[Chunk]) -> set[str]:
        """The speakers that the query names, including speakers of parts of notes."""
        speakers = {piece.speaker for piece in all_chunks}
        return self._ranking.speakers | {
            word.text for word in self._ranking.words if word.text in speakers
        }

    def _words_share(self, row: int) -> float:
        """The share of words in the score of a note; its meaning makes up the rest."""
        if row in self._ranking.cosines:
            return 1.0 - self._table.meaning
        return 1.0

    def _about_note(self, row: int, whole: Chunk, full: float) -> dict[str, float]:
        """The part that a note as a whole adds to the score of each of its chunks.

        `whole` is all of the note as one chunk, `full` the highest score by words of any note.
        """
        table = self._table
        by_words = self._words_share(row) * (1 - table.passage) * whole.own
        by_meaning = self._ranking.own_score(row)[1]
        day = self._features[row].day
        has_title = any(key(name) == self._asked for name in self.texts[row].names)
        return {
            "words": table.words * by_words,
            # The note is the conversation of its chunks
            "conversation": table.conversation * (by_words + by_meaning),
            "conversation_words": table.conversation_words
            * (self._ranking.scorer[whole.bits] / full),
            "date": table.date * sum([period.share(day) for period in self._question.periods]),
            "meaning": table.words * by_meaning,
            "same_title": table.same_title * has_title,
        }

    def _score_chunk(
        self, piece: Chunk, usual: float, from_neighbors: float, speakers: set[str]
    ) -> None:
        """All features of a chunk but those that need its text; `usual` is what its note adds."""
        table = self._table
        piece.is_relevant = bool(piece.bits or from_neighbors)
        share = self._words_share(piece.row) * (table.words + table.conversation) * table.passage
        from_speaker = 0.0
        if piece.is_relevant and piece.speaker in speakers:
            from_speaker = table.speaker
        piece.parts = {
            "passage": share * piece.own,
            "neighbors": from_neighbors,
            "speaker": from_speaker,
        }
        piece.score = usual + sum(piece.parts.values())

    def _find_words(self) -> None:
        for row, some in self.chunks.items():
            text = self.texts[row]
            bits = self._bits[row] = (
                self._named(text) if self.is_strict else self._ranking.bits.get(row, 0)
            )
            titles = bits & self._ranking.scorer.in_titles
            starts = [piece.start for piece in some]
            named_words = word_count(text.called)
            for piece in some:
                piece.named = named_words
            if len(some) == 1:
                some[0].bits = bits
            for start, stop in text.spans:
                if start >= some[-1].stop:
                    # Only the beginning of such a long text is read.
                    break
                for at, word, match in self._finder.places(text.text[start:stop]):
                    piece = some[bisect_right(starts, start + at) - 1]
                    piece.often[word] = piece.often.get(word, 0) + 1
                    piece.places.append((start + at, word))
                    piece.bits |= match | titles

    def _neighbor_scores(self, all_chunks: Sequence[Chunk]) -> dict[int, float]:
        """The scores that the best chunks add to their neighbors, by the identity of the chunk."""
        table = self._table
        scores = dict[int, float]()
        places = {
            id(piece): (some, at) for some in self.chunks.values() for at, piece in enumerate(some)
        }
        around = table.around
        shares = (
            (1, table.before),
            (2, around),
            (3, around),
            (-1, table.after),
            (-2, around),
            (-3, around),
        )
        for piece in nlargest(table.sources, all_chunks, key=lambda piece: piece.own):
            some, at = places[id(piece)]
            for step, share in shares:
                if 0 <= at + step < len(some):
                    neighbour_id = id(some[at + step])
                    scores[neighbour_id] = scores.get(neighbour_id, 0.0) + share * piece.own
        return scores

    def _read_closely(self, all_chunks: Sequence[Chunk]) -> None:
        """Add the features that need the text of a chunk, for the best chunks only."""
        table = self._table
        count = len(self._ranking.words)
        assisted = {piece.row for piece in all_chunks if is_assistant(piece.speaker)}
        for number, piece in enumerate(
            nlargest(_READ_CLOSELY, all_chunks, key=lambda piece: piece.score)
        ):
            note = self._features[piece.row]
            if note.is_long:
                text = self.texts[piece.row].text[piece.start : piece.stop]
            else:
                text = ""
            more = {
                "own": table.own * (_first_person(text) if note.is_long else note.first_person) / 4
            }
            if len(piece.often) > 1 and number < _READ_NEAR:
                more["near"] = table.near * nearness(sorted(piece.places), count)
            if piece.speaker is not None:
                style = _style_of(text) if note.is_long else note
                is_request = piece.row in assisted or is_user(piece.speaker)
                more["asks"] = 0.0 if is_request else table.asks * style.question / 100
                more["timed"] = table.timed if self._question.when and style.has_time else 0.0
            piece.parts |= more
            piece.score += sum(more.values())

    def _rescale(self, own_scores: dict[int, float]) -> None:
        """Adjust the scores of notes with one chunk, given the scores of their words among all
        chunks.

        The parts that neighbors and conversations add are scaled by the same factor.
        """
        shares_by_row = {row: self._ranking.shares(row) for row in own_scores}
        # Which the words make up where meaning is known
        rest = 1.0 - self._table.meaning
        shares = {
            row: (rest if row in self._ranking.cosines else 1.0) * self._table.words or 1
            for row in own_scores
        }
        before = {
            row: row_shares.get("words", 0.0) / shares[row]
            for row, row_shares in shares_by_row.items()
        }
        factor = max(own_scores.values(), default=0.0) / (max(before.values(), default=0.0) or 1.0)
        for row, row_shares in shares_by_row.items():
            other_shares = row_shares.get("neighbors", 0.0) + row_shares.get("conversation", 0.0)
            change = shares[row] * (own_scores[row] - before[row]) + (factor - 1) * other_shares
            self.scores[row] = round(self._ranking.scores[row] + change, 6)


def _score_words(some: Collection[Chunk], scorer: TermScorer, brevity: float) -> None:
    """Set the scores of chunks by their words, as in BM25. The best chunk gets 1."""
    usual = sum(piece.words for piece in some) / (len(some) or 1) or 1
    usual_named = sum(piece.named for piece in some) / (len(some) or 1) or 1
    for piece in some:
        slow = 1.2 * (1 - brevity + brevity * piece.words / usual)
        if piece.named:
            titled = 2.2 / (2.2 + 1.2 * brevity * (piece.named / usual_named - 1))
        else:
            titled = 1.0
        in_titles = piece.bits & scorer.in_titles
        piece.own = (scorer[piece.bits ^ in_titles] + titled * scorer[in_titles]) / (1 + slow)
        for at, often in piece.often.items():
            # A word in the title already has the highest count.
            if often > 1 and not marks_of(piece.bits, at) & TITLE:
                piece.own += scorer.weights[at] * (often / (often + slow) - 1 / (1 + slow))
    most = max((piece.own for piece in some), default=0.0) or 1.0
    for piece in some:
        piece.own /= most


def _together(some: Sequence[Chunk], bits: int) -> Chunk:
    """The chunks of a note as one, with what else its name says."""
    often: dict[int, int] = {}
    for piece in some:
        bits |= piece.bits
        for word, count in piece.often.items():
            often[word] = often.get(word, 0) + count
    return Chunk(
        some[0].row,
        some[0].start,
        some[-1].stop,
        sum(piece.words for piece in some),
        None,
        bits,
        often,
        named=some[0].named,
    )


def _sized_chunks(text: str) -> list[tuple[int, int, int, str | None]]:
    """The chunks of a text as (start, stop, about how many words, speaker or None)."""
    text_hash = hash(text)
    pieces = _known_chunks.get(text_hash)
    if pieces is None:
        pieces = []
        for start, stop in chunk(text):
            match = _SPEAKER.match(text, start)
            if match:
                speaker = speaker_of(f"{match.group()} x".lstrip())
            else:
                speaker = None
            pieces.append((start, stop, round(word_count(text[start:stop])) or 1, speaker))
        if len(_known_chunks) >= _CACHED:
            _known_chunks.clear()
        _known_chunks[text_hash] = pieces
    return pieces
