"""Searching transcripts: the exchanges that contain the words, and passages read from their files,
without secrets.
"""

from __future__ import annotations

import re
import sqlite3
from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, pairwise
from math import log
from pathlib import Path
from typing import Any, NamedTuple

from memoranda.text.folding import fold
from memoranda.text.tokens import is_cjk, pairs, words
from memoranda.transcripts.answers import Question, wanted
from memoranda.transcripts.documents import DocumentFormat
from memoranda.transcripts.formats import FORMATS
from memoranda.transcripts.index import TraceIndex, TraceQuery, TurnRow
from memoranda.transcripts.mask import Mask
from memoranda.transcripts.synonyms import related, synonyms
from memoranda.transcripts.turn import Kind, NotUnderstood, shorten

# Words of a question that are looked for, the rarest first.
_MOST_WORDS = 10
# Turns that the words looked for may be in together, so that a look-up is quick.
_MOST_TURNS = 16_000
# As _MOST_TURNS, for other words that mean the same: common ones say little.
_MOST_RELATED = 4_000
# Turns that may be scored because of one word. Scoring costs ten times as much as finding.
_MOST_SCORED = 6_000
# Words that are looked for where each of them is in more than _MOST_TURNS turns.
_MOST_COMMON_WORDS = 3
# Characters of a passage.
_PASSAGE = 320
# Characters that are shown before the first word.
_BEFORE = 40
# Places of a word in one turn that a passage may begin at.
_MOST_STARTS = 200
# The share of further turns of an exchange in its score, relative to the first.
_OTHER = 0.3
# Further turns of an exchange that add to its score.
_FURTHER = 3
# What a turn is raised by in which the person tells something, as a multiple. An agent repeats the
# words of its work everywhere, and most of what a person types is work to do.
_STATED = 2.0
# The share of the exchanges before and after in a score, and how many turns away they may begin.
_NEAR = 0.3
_NEAR_TURNS = 8
# What another word for the same counts, against the word itself, and what a word near it.
_SYNONYM = 0.7
_RELATED = 0.4
# What a score is raised by at most, as a multiple, where one sentence has all that is asked for.
_ANSWER = 6.0
# The best exchanges are read for that, as long as their files have so few bytes together.
_MOST_READ = 40
_MOST_BYTES_READ = 8 << 20
# What a score is raised by at most, as a multiple, where all that is asked for is near.
_COVERAGE = 8.0
# The best exchanges are judged by how many of the words are in them or near.
_MOST_COVERED = 100
# Turns before and after an exchange in which a word counts, each half of the turn before it.
_AROUND = 4
_FADING = 0.5
_KINDS = {
    Kind.SAID: "you",
    Kind.ANSWERED: "agent",
    Kind.RAN: "command",
    Kind.EDITED: "file",
    Kind.RESULT: "output",
}


class Concept(NamedTuple):
    """A word that is looked for, others that people use for the same, and words near it."""

    word: str
    synonyms: tuple[str, ...]
    related: tuple[str, ...] = ()

    @classmethod
    def of(cls, word: str) -> Concept:
        """The concept of a folded word."""
        same = synonyms(word)
        near = [other for other in related(word) if other not in same]
        return cls(word, tuple(same), tuple(near))


@dataclass(frozen=True, slots=True)
class TraceFilter:
    """Which transcripts to look in: one agent's, of a project's folder or its name, of a time."""

    agent: str = ""
    project: str = ""
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class TraceHit:
    """A place in a transcript.

    ref: the reference that `memory transcripts show` takes.
    project: the name of the folder worked in.
    who: you, agent, command, file or output.
    passage: the passage found.
    answer: the next best passage of the same exchange, or empty.
    is_suspicious: whether the passage may hold planted instructions.
    """

    ref: str
    agent: str
    project: str
    folder: str
    time: datetime | None
    who: str
    passage: str
    answer: str
    score: float
    is_suspicious: bool
    source: str

    def row(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "ref": self.ref,
            "agent": self.agent,
            "project": self.project,
            "folder": self.folder,
            "time": self.time and self.time.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "who": self.who,
            "passage": self.passage,
            "answer": self.answer,
            "score": round(self.score, 4),
            "suspicious": self.is_suspicious,
            "source": self.source,
        }


def ref_of(turn: TurnRow) -> str:
    """The name of a turn: the same as long as its transcript is there."""
    return f"{turn.session}@{turn.position}"


def find(
    index: TraceIndex, mask: Mask, text: str, where: TraceFilter, limit: int
) -> list[TraceHit]:
    """The exchanges that fit `text` best."""
    looked_for = words(text)
    concepts = [Concept.of(word) for word in looked_for]
    # All words at once: each count costs as much as asking for a few words.
    all_words = list(chain(*((item.word, *item.synonyms, *item.related) for item in concepts)))
    index.frequencies(list(chain.from_iterable(map(pairs, filter(None, all_words)))))
    scored = _scored_turns(index, concepts, where)
    by_exchange: dict[int, list[tuple[TurnRow, float]]] = {}
    for turn, score in sorted(scored.values(), key=lambda row: -row[1]):
        by_exchange.setdefault(turn.exchange, []).append((turn, score))

    # An exchange is what is found: a question and its answer often share the words.
    scores = {exchange: _score(turns) for exchange, turns in by_exchange.items()}
    scores = _with_neighbours(by_exchange, scores)
    scores = _with_coverage(index, concepts, by_exchange, scores)
    scores = _with_answers(index, text, concepts, scores)
    best = sorted(scores, key=lambda exchange: -scores[exchange])
    shown_words = list(chain(looked_for, *(concept.synonyms for concept in concepts)))
    hits: list[TraceHit] = []
    for exchange in best:
        hit = _hit(index, mask, by_exchange[exchange], scores[exchange], shown_words)
        # The same words in several places are one hit.
        if hit is not None and hit.passage not in [earlier.passage for earlier in hits]:
            hits.append(hit)
        if len(hits) == limit:
            break
    return hits


def _scored_turns(
    index: TraceIndex, concepts: Sequence[Concept], where: TraceFilter
) -> dict[int, tuple[TurnRow, float]]:
    """The turns with the words that are looked for, or with others that mean the same, by their
    ids, each with its score.
    """
    filters, values = _conditions(where)
    # A word that several of them name counts as what is nearest to what was asked.
    seen: set[str] = set()
    searches = (
        (_new_words([concept.word for concept in concepts], seen), 1.0, _MOST_TURNS),
        (_new_words(_all(concept.synonyms for concept in concepts), seen), _SYNONYM, _MOST_RELATED),
        (_new_words(_all(concept.related for concept in concepts), seen), _RELATED, _MOST_RELATED),
    )
    result: dict[int, tuple[TurnRow, float]] = {}
    for words_used, weight, most in searches:
        query = _trace_query(index, words_used, most)
        if query is None:
            continue
        for turn, score in index.match(query, filters, values):
            if turn.is_statement:
                score *= 1 + _STATED
            earlier = result.get(turn.id, (turn, 0.0))[1]
            result[turn.id] = (turn, earlier + weight * score)
    return result


def _all(groups: Iterable[Iterable[str]]) -> Iterator[str]:
    return chain.from_iterable(groups)


def _new_words(words_named: Iterable[str], seen: set[str]) -> list[str]:
    """The words that are not `seen` yet, each once. They are added to `seen`."""
    result = [word for word in dict.fromkeys(words_named) if word not in seen]
    seen.update(result)
    return result


def _score(turns: Sequence[tuple[TurnRow, float]]) -> float:
    """How well an exchange fits: its best turn, and a part of the next ones."""
    first, *further = (score for _, score in turns)
    return first + _OTHER * sum(further[:_FURTHER])


def _with_neighbours(
    turns: dict[int, list[tuple[TurnRow, float]]], scores: dict[int, float]
) -> dict[int, float]:
    """The scores, raised by a part of the scores of the exchanges before and after in the session.

    The subject of a question is often named one exchange earlier.
    """
    order = sorted(scores)
    raised = dict(scores)
    for before, after in pairwise(order):
        # Exchanges are numbered by their first turns.
        is_near = after - before <= _NEAR_TURNS
        if is_near and turns[before][0][0].session == turns[after][0][0].session:
            raised[before] += _NEAR * scores[after]
            raised[after] += _NEAR * scores[before]
    return raised


def _with_coverage(
    index: TraceIndex,
    concepts: Sequence[Concept],
    turns: dict[int, list[tuple[TurnRow, float]]],
    scores: dict[int, float],
) -> dict[int, float]:
    """The scores of the best exchanges, raised the more of the concepts occur in them or close by.

    One word ten times does not answer a question of five words.
    """
    places = _places(index, concepts)
    most = sum(concept.weight for concept in places)
    best = sorted(scores, key=lambda exchange: -scores[exchange])[:_MOST_COVERED]
    covered = {}
    for exchange in best:
        ids = [turn.id for turn, _ in turns[exchange]]
        share = 0.0
        for concept in places:
            share += concept.weight * concept.nearness(ids) / most
        covered[exchange] = scores[exchange] * (1 + _COVERAGE * share * share)
    return covered


def _with_answers(
    index: TraceIndex,
    text: str,
    concepts: Sequence[Concept],
    scores: dict[int, float],
) -> dict[int, float]:
    """The scores of the best exchanges, each several times as high the better one of its sentences
    answers the question. What is asked for is mostly said in one sentence; that a person and an
    agent said its words somewhere in an exchange tells less.
    """
    count = index.last_turn()
    sizes = index.frequencies([concept.word for concept in concepts])
    wanted_words = [
        wanted(
            concept.word,
            (*concept.synonyms, *concept.related),
            _weight(count, sizes.get(concept.word, 0)),
        )
        for concept in concepts
    ]
    question = Question(text, wanted_words, _SYNONYM)
    room = _MOST_BYTES_READ
    result = {}
    for exchange in sorted(scores, key=lambda id: -scores[id])[:_MOST_READ]:
        fit = 0.0
        for turn in index.exchange(exchange):
            if turn.kind not in (Kind.SAID, Kind.ANSWERED):
                continue
            room -= _bytes_to_read(turn)
            if room < 0:
                break
            fit = max(fit, question.fit(raw_text(turn) or ""))
        result[exchange] = scores[exchange] * (1 + _ANSWER * fit * fit)
    return result


def _bytes_to_read(turn: TurnRow) -> int:
    """The number of bytes to parse to read one turn: all bytes of a document."""
    if not isinstance(FORMATS[turn.format], DocumentFormat):
        return 0
    try:
        return Path(turn.path).stat().st_size
    except OSError:
        return 0


def _weight(count: int, size: int) -> float:
    """How much a word says that is in `size` of `count` turns: the more, the fewer they are."""
    return log(1 + count / (1 + size))


class _Places(NamedTuple):
    """The turns with the word of a concept, with another word for it, and with one near it; and how
    much the concept says.
    """

    exact: frozenset[int]
    same: frozenset[int]
    near: frozenset[int]
    weight: float

    def nearness(self, ids: Sequence[int]) -> float:
        """How near to the turns `ids` the concept is, from 0 to 1."""
        return max(
            _nearness(self.exact, ids),
            _SYNONYM * _nearness(self.same, ids),
            _RELATED * _nearness(self.near, ids),
        )


def _places(index: TraceIndex, concepts: Sequence[Concept]) -> list[_Places]:
    """Where the concepts are that are anywhere."""
    count = index.last_turn()
    result = []
    for concept in concepts:
        exact = _turns_with(index, [concept.word], _MOST_TURNS)
        same = _turns_with(index, concept.synonyms, _MOST_RELATED)
        near = _turns_with(index, concept.related, _MOST_RELATED)
        if exact or same or near:
            result.append(_Places(exact, same, near, _weight(count, len(exact | same))))
    return result


def _turns_with(index: TraceIndex, looked_for: Sequence[str], most: int) -> frozenset[int]:
    """The turns with one of these words, at most `most`.

    For very common words, the newest turns.
    """
    query = _trace_query(index, looked_for, most)
    if query is None:
        return frozenset()
    return frozenset().union(*(index.turns_with(word, query.newest) for word in query.words))


def _nearness(places: Container[int], ids: Sequence[int]) -> float:
    """How near to the turns `ids` one of the turns `places` is, from 0 to 1, which is among them."""
    first = min(ids)
    last = max(ids)
    if any(id in places for id in range(first, last + 1)):
        return 1.0
    nearness = 1.0
    for distance in range(1, _AROUND + 1):
        nearness *= _FADING
        if first - distance in places or last + distance in places:
            return nearness
    return 0.0


def _trace_query(index: TraceIndex, looked_for: Sequence[str], most: int) -> TraceQuery | None:
    """The query of the index for these words; None where it has none of them.

    The work is bounded for any size of the index. Only the rarest words are looked for, which
    together occur in at most `most` turns. Common words count only in turns with two of them. If
    all words are very common, the newest turns are searched, unless `most` is less than
    _MOST_TURNS.
    """
    parts = {word: list(filter(None, pairs(word))) for word in looked_for}
    counts = index.frequencies(list(chain.from_iterable(parts.values())))
    # A phrase is in at most as many turns as the rarest of its parts.
    sizes: dict[str, int] = {}
    for word, pieces in parts.items():
        size = min((counts.get(piece, 0) for piece in pieces), default=0)
        if size:
            sizes[word] = size
    rarest = sorted(sizes, key=sizes.__getitem__)[:_MOST_WORDS]
    if not rarest:
        return None

    chosen = _within(rarest, sizes, most)
    newest = 1.0
    if not chosen and most < _MOST_TURNS:
        return None
    if not chosen:
        # All words are very common: look at the newest part of the turns.
        chosen = rarest[:_MOST_COMMON_WORDS]
        newest = _MOST_TURNS / sum(sizes[word] for word in chosen)
    phrases = ['"' + " ".join(parts[word]).replace('"', "") + '"' for word in chosen]
    rare = 0
    if newest == 1.0:
        rare = len(_within(chosen, sizes, _MOST_SCORED))
    return TraceQuery(tuple(phrases), rare, newest)


def _within(words_by_size: Sequence[str], sizes: dict[str, int], most: int) -> list[str]:
    """The first of these words, as long as they are together in at most `most` turns."""
    chosen: list[str] = []
    # The sizes are added up: most turns have one of the words only.
    for word in words_by_size:
        most -= sizes[word]
        if most < 0:
            break
        chosen.append(word)
    return chosen


def _conditions(where: TraceFilter) -> tuple[str, list[Any]]:
    """A condition for the rows of a search, and its values."""
    parts = []
    values: list[Any] = []
    if where.agent:
        parts.append("hit.agent = ?")
        values.append(where.agent)
    if where.project:
        parts.append("(hit.folder = ? or hit.folder like ? escape '\\')")
        escaped = re.sub(r"([\\%_])", r"\\\1", where.project)
        values += [where.project, f"%/{escaped}"]
    if where.since is not None:
        parts.append("hit.time >= ?")
        values.append(int(where.since.timestamp()))
    if where.until is not None:
        parts.append("hit.time < ?")
        values.append(int(where.until.timestamp()))
    if not parts:
        return "", []
    return f"where {' and '.join(parts)}", values


def _hit(
    index: TraceIndex,
    mask: Mask,
    turns: Sequence[tuple[TurnRow, float]],
    score: float,
    looked_for: Sequence[str],
) -> TraceHit | None:
    best = turns[0][0]
    text = text_of(best, mask)
    if text is None:
        return None
    # The answer is another turn that fits, not one with the same text.
    answer = ""
    further = [turn for turn, _ in turns[1:]]
    # To what a person said, what the agent answered is the best addition.
    if best.kind is Kind.SAID:
        further += [turn for turn in index.exchange(best.exchange) if turn.kind is Kind.ANSWERED]
    for turn in further[:_FURTHER]:
        further_text = text_of(turn, mask)
        if further_text and further_text != text:
            answer = passage(further_text, looked_for)
            break
    shown_part = passage(text, looked_for)
    is_suspicious = any(map(mask.is_suspicious, dict.fromkeys((text, shown_part, answer))))
    return TraceHit(
        ref_of(best),
        best.agent,
        Path(best.folder).name,
        best.folder,
        moment(best.time),
        _KINDS[best.kind],
        shown_part,
        answer,
        score,
        is_suspicious,
        best.path,
    )


def moment(time: int) -> datetime | None:
    """The time of a turn. None if unknown."""
    if not time:
        return None
    return datetime.fromtimestamp(time, UTC)


def raw_text(turn: TurnRow) -> str | None:
    """The text of a turn from its transcript, secrets included. None if it is gone."""
    try:
        return FORMATS[turn.format].passage(Path(turn.path), turn.session, turn.position)
    except (OSError, NotUnderstood, ValueError, sqlite3.Error):
        return None


def text_of(turn: TurnRow, mask: Mask) -> str | None:
    """The text of a turn from its transcript, without secrets. None if it is gone."""
    text = raw_text(turn)
    if text is None:
        return None
    return mask.clean(text)


def passage(text: str, looked_for: Iterable[str], most: int = _PASSAGE) -> str:
    """The part of `text` in which most of the words are, in one line."""
    flat = " ".join(text.split())
    if len(flat) <= most:
        return flat
    starts = _starts(fold(flat), looked_for)
    if not starts:
        return shorten(flat, most)
    start = _densest(starts, most - 2 * _BEFORE)
    # Folding may have moved it.
    begin = max(0, min(start, len(flat) - most) - _BEFORE)
    end = min(len(flat), begin + most - 2)
    part = flat[begin:end]
    if begin:
        part = f"…{part}"
    if end < len(flat):
        part = f"{part}…"
    return part


def _starts(folded: str, looked_for: Iterable[str]) -> list[int]:
    """Where the words are in a folded text, in order."""
    starts: list[int] = []
    for word in looked_for:
        stem = _stem(word)
        at = folded.find(stem)
        while at >= 0 and len(starts) < _MOST_STARTS:
            starts.append(at)
            at = folded.find(stem, at + 1)
    return sorted(starts)


def _stem(word: str) -> str:
    """The beginning that all forms of a word share, roughly."""
    if is_cjk(word) or len(word) < 5:
        return word
    return word[: max(4, len(word) - 3)]


def _densest(starts: Sequence[int], span: int) -> int:
    """The first of these places from which on most of them are within `span` characters."""
    counts = [bisect_left(starts, start + span) - bisect_left(starts, start) for start in starts]
    return starts[counts.index(max(counts))]


def shown(index: TraceIndex, mask: Mask, ref: str, most: int = 4_000) -> list[TraceHit]:
    """The exchange in which the turn named `ref` is, turn by turn; [] if no turn has that name."""
    session, _, position = ref.rpartition("@")
    if not session:
        return []
    turns = index.find_turn(session, position)
    # A part of a name may fit several sessions.
    if len({turn.session for turn in turns}) != 1:
        return []
    hits = []
    for turn in index.exchange(turns[0].exchange):
        text = text_of(turn, mask)
        if text is None:
            continue
        text = shorten(text, most)
        hits.append(
            TraceHit(
                ref_of(turn),
                turn.agent,
                Path(turn.folder).name,
                turn.folder,
                moment(turn.time),
                _KINDS[turn.kind],
                text,
                "",
                0.0,
                mask.is_suspicious(text),
                turn.path,
            )
        )
    return hits
