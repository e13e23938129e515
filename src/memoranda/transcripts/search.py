"""Searches transcripts for the exchanges that fit a question best.

A turn is one thing said or done, an exchange is a turn of the person with the turns that follow it.
The index gives the turns with the words of the question, or with related words. Their scores are
added up by exchange, and raised if the exchange has many of the words, or a sentence that answers.
Passages are read from the transcripts, and secrets are taken out of them.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, pairwise
from math import log
from pathlib import Path
from typing import Any, NamedTuple

from memoranda.text.folding import fold
from memoranda.text.han import other_forms
from memoranda.text.tokens import is_cjk, pairs, words
from memoranda.transcripts.answers import Question, wanted
from memoranda.transcripts.documents import DocumentFormat
from memoranda.transcripts.formats import FORMATS
from memoranda.transcripts.index import ScoredTurn, TraceIndex, TraceQuery, TurnRow
from memoranda.transcripts.mask import Mask
from memoranda.transcripts.originals import moment, raw_text, text_of
from memoranda.transcripts.synonyms import related, synonyms
from memoranda.transcripts.turn import Kind, shorten

# Words of a question that are looked for, the rarest first.
_MAX_WORDS = 10
# Turns that have the searched words, added up over the words, so that a search is quick.
_MAX_TURNS = 16_000
# As _MAX_TURNS, for synonyms and related words: common ones say little.
_MAX_RELATED_TURNS = 4_000
# Turns that may be scored because of one word. Scoring costs ten times as much as finding.
_MAX_SCORED_TURNS = 6_000
# Words that are searched for if each of them is in more than _MAX_TURNS turns.
_MAX_COMMON_WORDS = 3
# Characters of a passage.
_PASSAGE_CHARACTERS = 320
# Characters that are shown before the first word.
_CHARACTERS_BEFORE = 40
# Places in one turn that a passage may begin at.
_MAX_STARTS = 200
# How much the further turns of an exchange add to its score, as a share of their scores.
_FURTHER_SHARE = 0.3
# Further turns of an exchange that add to its score, or that may give a second passage.
_MAX_FURTHER_TURNS = 3
# A statement of the person gets this multiple of its score in addition. An agent repeats the words
# of its work everywhere, and a person mostly types work to do.
_STATEMENT_BONUS = 2.0
# How much the exchanges before and after add to a score, as a share of their scores.
_NEIGHBOUR_SHARE = 0.3
# How many turns away a neighbouring exchange may begin.
_NEIGHBOUR_TURNS = 8
# How much a synonym and a related word count, if the word itself counts 1.
_SYNONYM_WEIGHT = 0.7
_RELATED_WEIGHT = 0.4
# An exchange with a sentence that answers the whole question gets this multiple of its score in
# addition.
_ANSWER_BONUS = 6.0
# Exchanges that are read to look for such a sentence, and the bytes that may be parsed for it.
_MAX_READ_EXCHANGES = 40
_MAX_READ_BYTES = 8 << 20
# An exchange that has all words of the question in it or near it gets this multiple of its score
# in addition.
_COVERAGE_BONUS = 8.0
# Exchanges for which the words in them or near them are counted.
_MAX_COVERED_EXCHANGES = 100
# Turns before and after an exchange in which a word still counts. It counts half as much with each
# turn that it is further away.
_NEAR_TURNS = 4
_NEARNESS_PER_TURN = 0.5
_KINDS = {
    Kind.SAID: "you",
    Kind.ANSWERED: "agent",
    Kind.RAN: "command",
    Kind.EDITED: "file",
    Kind.RESULT: "output",
}


class Concept(NamedTuple):
    """A word of the question, with its synonyms and related words, all folded.

    For `price`: the synonym `cost` and the related word `money`, for example.
    """

    word: str
    synonyms: tuple[str, ...]
    related: tuple[str, ...] = ()

    @classmethod
    def of(cls, word: str) -> Concept:
        """Look up the synonyms and the related words of a folded word."""
        # A Chinese word in the other kind of characters counts as a synonym.
        synonym_words = [*synonyms(word), *other_forms(word)]
        related_words = [
            related_word for related_word in related(word) if related_word not in synonym_words
        ]
        return cls(word, tuple(synonym_words), tuple(related_words))


@dataclass(frozen=True, slots=True)
class TraceFilter:
    """The transcripts to look in. "" and None mean all.

    agent: the name of the agent.
    project: the folder of a project, or the last part of its path.
    since, until: the turns of a time, without `until` itself.
    """

    agent: str = ""
    project: str = ""
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class TraceHit:
    """A place in a transcript.

    ref: the reference that `memory transcripts show` takes.
    agent: the agent that wrote the transcript.
    project: the last part of `folder`.
    folder: the folder that the session worked in.
    time: when it was said; None if unknown.
    who: you, agent, command, file or output.
    passage: the part of the turn that fits the question, without secrets.
    answer: a passage of another turn of the exchange, or "".
    score: the higher, the better it fits.
    is_suspicious: whether the passage, or a name shown beside it, may hold injected instructions.
    source: the file of the transcript.
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
        """Return the hit as a JSON object."""
        return {
            "ref": self.ref,
            "agent": self.agent,
            "project": self.project,
            "folder": self.folder,
            "time": self.time.strftime("%Y-%m-%dT%H:%M:%SZ") if self.time else None,
            "who": self.who,
            "passage": self.passage,
            "answer": self.answer,
            "score": round(self.score, 4),
            "suspicious": self.is_suspicious,
            "source": self.source,
        }


def ref_of(turn: TurnRow) -> str:
    """Return the reference of a turn, `SESSION@POSITION`. It is valid as long as its transcript is."""
    return f"{turn.session}@{turn.position}"


def find(
    index: TraceIndex, mask: Mask, text: str, where: TraceFilter, limit: int
) -> list[TraceHit]:
    """Return the exchanges that fit `text` best, as one hit each, best first.

    An exchange is a person's words and everything up to the next.

    index: the transcripts.
    mask: takes out secrets, and finds suspicious words.
    where: which transcripts to look in.
    limit: the most hits.
    """
    query_words = words(text)
    concepts = [Concept.of(word) for word in query_words]
    _count_words(index, concepts)

    # Turns with the words, by exchange, the best first.
    scored_turns = _scored_turns(index, concepts, where).values()
    by_exchange: dict[int, list[ScoredTurn]] = {}
    for scored_turn in sorted(scored_turns, key=lambda scored_turn: -scored_turn.score):
        by_exchange.setdefault(scored_turn.turn.exchange, []).append(scored_turn)

    # Exchanges are ranked, not turns: a question and its answer often share the words.
    scores = {exchange: _score(turns) for exchange, turns in by_exchange.items()}
    scores = _with_neighbours(by_exchange, scores)
    scores = _with_coverage(index, concepts, by_exchange, scores)
    scores = _with_answers(index, text, concepts, scores)

    # The same words in several places are one hit.
    hits: dict[str, TraceHit] = {}
    shown_words = list(chain(query_words, *(concept.synonyms for concept in concepts)))
    for exchange in sorted(scores, key=lambda exchange: -scores[exchange]):
        hit = _hit(
            index,
            mask=mask,
            turns=by_exchange[exchange],
            score=scores[exchange],
            query_words=shown_words,
            shown=hits,
        )
        if hit is not None:
            hits[hit.passage] = hit
        if len(hits) == limit:
            break
    return list(hits.values())


def _count_words(index: TraceIndex, concepts: Iterable[Concept]) -> None:
    """Have the index count the words of concepts, and keep the numbers for later steps.

    Counting all at once is faster than counting them one by one.
    """
    all_words: list[str] = []
    for concept in concepts:
        all_words += [concept.word, *concept.synonyms, *concept.related]
    # The index has Chinese words as pairs of characters.
    parts: list[str] = []
    for word in all_words:
        if word:
            parts += pairs(word)
    index.frequencies(parts)


def _scored_turns(
    index: TraceIndex, concepts: Sequence[Concept], where: TraceFilter
) -> dict[int, ScoredTurn]:
    """Return the turns with words of the concepts, by their ids.

    Scores for the words themselves, for synonyms and for related words are added up.

    where: which transcripts to look in.
    """
    filters, values = _sql_filter(where)
    all_synonyms = chain.from_iterable([concept.synonyms for concept in concepts])
    all_related = chain.from_iterable([concept.related for concept in concepts])
    # A word that is both in the question and a synonym counts only as a word of the question.
    used_words: set[str] = set()
    own_words = _new_words([concept.word for concept in concepts], used_words)
    new_synonyms = _new_words(all_synonyms, used_words)
    new_related = _new_words(all_related, used_words)
    searches = (
        (own_words, 1.0, _MAX_TURNS),
        (new_synonyms, _SYNONYM_WEIGHT, _MAX_RELATED_TURNS),
        (new_related, _RELATED_WEIGHT, _MAX_RELATED_TURNS),
    )
    scored_turns: dict[int, ScoredTurn] = {}
    for search_words, weight, max_turns in searches:
        query = _trace_query(index, search_words, max_turns)
        if query is None:
            continue
        for turn, score in index.match(query, filters, values):
            if turn.is_statement:
                score *= 1 + _STATEMENT_BONUS
            # The same turn may be found by another search.
            earlier = scored_turns.get(turn.id, ScoredTurn(turn, score=0.0))
            scored_turns[turn.id] = ScoredTurn(turn, earlier.score + weight * score)
    return scored_turns


def _new_words(candidates: Iterable[str], used_words: set[str]) -> list[str]:
    """Return the candidates that are not in `used_words`, each once, and add them to it."""
    new_words = [word for word in dict.fromkeys(candidates) if word not in used_words]
    used_words.update(new_words)
    return new_words


def _score(turns: Sequence[ScoredTurn]) -> float:
    """Return the score of an exchange: the score of its best turn, and a share of the next ones.

    turns: the turns that were found, best first.
    """
    scores = [scored_turn.score for scored_turn in turns]
    further_scores = scores[1 : 1 + _MAX_FURTHER_TURNS]
    return scores[0] + _FURTHER_SHARE * sum(further_scores)


def _with_neighbours(
    turns: dict[int, list[ScoredTurn]], scores: dict[int, float]
) -> dict[int, float]:
    """Raise the score of each exchange, because the exchange before or after it scores, too.

    The subject of a question is often named one exchange earlier. A share of the neighbour's score
    is added. Only neighbours in the same session count.

    turns: exchange -> the turns of it that were found.
    scores: exchange -> score.
    """
    raised_scores = dict(scores)
    # Exchanges have the ids of their first turns, so that their order is the order in time.
    for before, after in pairwise(sorted(scores)):
        is_near = after - before <= _NEIGHBOUR_TURNS
        if is_near and turns[before][0].turn.session == turns[after][0].turn.session:
            raised_scores[before] += _NEIGHBOUR_SHARE * scores[after]
            raised_scores[after] += _NEIGHBOUR_SHARE * scores[before]
    return raised_scores


def _with_coverage(
    index: TraceIndex,
    concepts: Sequence[Concept],
    turns: dict[int, list[ScoredTurn]],
    scores: dict[int, float],
) -> dict[int, float]:
    """Raise the scores of the best exchanges, if many concepts are in or near them.

    One word ten times does not answer a question of five words.

    index: the transcripts.
    concepts: the words of the question with their synonyms.
    turns: exchange -> the turns of it that were found.
    scores: exchange -> score.
    """
    best = sorted(scores, key=lambda exchange: -scores[exchange])[:_MAX_COVERED_EXCHANGES]
    first = min(best, default=0) - _NEAR_TURNS
    present_concepts = _concept_turns(index, concepts, first)
    total_weight = sum(concept.weight for concept in present_concepts)
    raised_scores = {}
    for exchange in best:
        ids = [scored_turn.turn.id for scored_turn in turns[exchange]]
        share = 0.0
        for concept in present_concepts:
            share += concept.weight * concept.nearness(ids) / total_weight
        # The square prefers an exchange with all concepts to several with half of them.
        raised_scores[exchange] = scores[exchange] * (1 + _COVERAGE_BONUS * share * share)
    return raised_scores


def _with_answers(
    index: TraceIndex,
    text: str,
    concepts: Sequence[Concept],
    scores: dict[int, float],
) -> dict[int, float]:
    """Return the scores of the best exchanges, raised by how well one of their sentences answers.

    An answer is mostly one sentence. Words spread over an exchange tell less.

    index: the transcripts.
    text: the question.
    concepts: its words with their synonyms.
    scores: the scores by exchange.
    """
    question = _question(index, text, concepts)
    # Only the best exchanges are read, and only so many bytes of them.
    best = sorted(scores, key=scores.__getitem__, reverse=True)[:_MAX_READ_EXCHANGES]
    bytes_left = _MAX_READ_BYTES
    raised_scores = {}
    for exchange in best:
        # How well the best sentence of the exchange answers.
        fit = 0.0
        for turn in index.exchange(exchange):
            if turn.kind not in (Kind.SAID, Kind.ANSWERED):
                continue
            bytes_left -= _bytes_to_read(turn)
            if bytes_left < 0:
                break
            fit = max(fit, question.fit(raw_text(turn) or ""))
        raised_scores[exchange] = scores[exchange] * (1 + _ANSWER_BONUS * fit * fit)
    return raised_scores


def _bytes_to_read(turn: TurnRow) -> int:
    """Return how many bytes must be parsed to read one turn.

    This is the size of the whole file for a format with one JSON document, otherwise 0.
    """
    if not isinstance(FORMATS[turn.format], DocumentFormat):
        return 0
    try:
        return Path(turn.path).stat().st_size
    except OSError:
        return 0


def _question(index: TraceIndex, text: str, concepts: Sequence[Concept]) -> Question:
    """Return the question to find answering sentences for. A rare word counts more.

    index: the transcripts, which tell how rare a word is.
    text: the question.
    concepts: its words with their synonyms.
    """
    count = index.last_turn()
    sizes = index.frequencies([concept.word for concept in concepts])
    wanted_words = []
    for concept in concepts:
        weight = _weight(count, sizes.get(concept.word, 0))
        wanted_words.append(wanted(concept.word, (*concept.synonyms, *concept.related), weight))
    return Question(text, wanted_words, _SYNONYM_WEIGHT)


def _weight(count: int, size: int) -> float:
    """Return how much a word says that is in `size` of `count` turns. A rare word says more."""
    return log(1 + count / (1 + size))


class _ConceptTurns(NamedTuple):
    """The ids of the turns that contain a concept.

    exact: turns with the word itself.
    by_synonym, by_related: turns with a synonym, and with a related word.
    weight: how much the concept says: more if it occurs in fewer turns.
    """

    exact: frozenset[int]
    by_synonym: frozenset[int]
    by_related: frozenset[int]
    weight: float

    def nearness(self, ids: Sequence[int]) -> float:
        """Return how near the concept is to the turns `ids`: 1 is among them, 0 is far away."""
        return max(
            _nearness(self.exact, ids),
            _SYNONYM_WEIGHT * _nearness(self.by_synonym, ids),
            _RELATED_WEIGHT * _nearness(self.by_related, ids),
        )


def _concept_turns(
    index: TraceIndex, concepts: Sequence[Concept], first: int
) -> list[_ConceptTurns]:
    """Find the turns of each concept. Concepts that no turn has are left out.

    concepts: the words of the question with their synonyms.
    first: the lowest id to look at for very common words.
    """
    count = index.last_turn()
    result = []
    for concept in concepts:
        exact = _turns_with(index, [concept.word], _MAX_TURNS, first)
        by_synonym = _turns_with(index, concept.synonyms, _MAX_RELATED_TURNS, first)
        by_related = _turns_with(index, concept.related, _MAX_RELATED_TURNS, first)
        # A very common word has a size even if none of its turns is after `first`. So the size says
        # whether the word occurs at all.
        occurs = exact.size or by_synonym.ids or by_related.ids
        if occurs:
            size = max(exact.size, len(exact.ids | by_synonym.ids))
            weight = _weight(count, size)
            result.append(_ConceptTurns(exact.ids, by_synonym.ids, by_related.ids, weight))
    return result


class _WordTurns(NamedTuple):
    """The turns that contain one of several words.

    ids: their ids. For very common words, only the ids that are needed.
    size: the number of turns that were to be looked at.
    """

    ids: frozenset[int]
    size: int


def _turns_with(
    index: TraceIndex, query_words: Sequence[str], max_turns: int, first: int
) -> _WordTurns:
    """Return the turns with one of these words. For very common words, only the newest turns.

    index: the transcripts.
    query_words: the words.
    max_turns: about how many turns may be read.
    first: the lowest id to look at if the words are very common.
    """
    query = _trace_query(index, query_words, max_turns)
    if query is None:
        return _WordTurns(ids=frozenset(), size=0)
    is_very_common = query.newest < 1.0
    lowest_id = first if is_very_common else 0
    ids_by_word = [index.turns_with(word, query.newest, lowest_id) for word in query.words]
    ids = frozenset[int]().union(*ids_by_word)
    # The ids from `first` on are only some of the turns that have a very common word.
    size = max_turns if is_very_common else len(ids)
    return _WordTurns(ids, size)


def _nearness(word_turns: Container[int], ids: Sequence[int]) -> float:
    """Return how near one of `word_turns` is to the turns `ids`.

    1.0 means between the first and the last of `ids`, 0.5 one turn before or after, 0.25 two turns.
    0.0 means further away than _NEAR_TURNS.
    """
    first = min(ids)
    last = max(ids)
    if any(id in word_turns for id in range(first, last + 1)):
        return 1.0
    nearness = 1.0
    for distance in range(1, _NEAR_TURNS + 1):
        nearness *= _NEARNESS_PER_TURN
        if first - distance in word_turns or last + distance in word_turns:
            return nearness
    return 0.0


def _trace_query(
    index: TraceIndex, query_words: Sequence[str], max_turns: int
) -> TraceQuery | None:
    """Make the query of the index for these words. Return None if no word can be searched for.

    A search must not take longer as the index grows. So it reads at most `max_turns` turns, and
    which words it looks for depends on how many turns have them:

    - The rarest words are chosen, as long as together they are in at most `max_turns` turns. More
      frequent words are left out.
    - If even the rarest word is in more turns, the newest turns are searched for a few words. This
      is done only for words of the question. For synonyms, which have a smaller `max_turns`, the
      result is None.
    - If the index has none of the words, the result is None.

    query_words: the words.
    """
    # The index has Chinese words as pairs of characters, so that a word may be a phrase.
    parts = {word: list(filter(None, pairs(word))) for word in query_words}
    sizes = _sizes(index, parts)
    rarest = sorted(sizes, key=sizes.__getitem__)[:_MAX_WORDS]
    if not rarest:
        return None

    chosen = _longest_beginning(rarest, sizes, max_turns)
    if chosen:
        rare = len(_longest_beginning(chosen, sizes, _MAX_SCORED_TURNS))
        newest = 1.0
    elif max_turns < _MAX_TURNS:
        return None
    else:
        chosen = rarest[:_MAX_COMMON_WORDS]
        rare = 0
        # The newest turns, of which about `_MAX_TURNS` have one of these words.
        newest = _MAX_TURNS / sum(sizes[word] for word in chosen)
    phrases = tuple(_quoted_phrase(parts[word]) for word in chosen)
    return TraceQuery(phrases, rare, newest)


def _sizes(index: TraceIndex, parts: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Return how many turns have each word at most. Words that no turn has are left out.

    parts: word -> its parts in the index, one after the other. A phrase is in at most as many turns
        as the rarest of its parts.
    """
    counts = index.frequencies(list(chain.from_iterable(parts.values())))
    sizes: dict[str, int] = {}
    for word, pieces in parts.items():
        size = min((counts.get(piece, 0) for piece in pieces), default=0)
        if size:
            sizes[word] = size
    return sizes


def _quoted_phrase(pieces: Sequence[str]) -> str:
    """Return the phrase of FTS5 for some words in a row: `"green tea"`."""
    phrase = " ".join(pieces).replace('"', "")
    return f'"{phrase}"'


def _longest_beginning(
    words_by_size: Sequence[str], sizes: dict[str, int], max_turns: int
) -> list[str]:
    """Return the first of these words, until their sizes add up to `max_turns`.

    words_by_size: the words, the rarest first.
    sizes: word -> the number of turns that have it.
    """
    chosen: list[str] = []
    turns_left = max_turns
    for word in words_by_size:
        turns_left -= sizes[word]
        if turns_left < 0:
            break
        chosen.append(word)
    return chosen


def _sql_filter(where: TraceFilter) -> tuple[str, list[Any]]:
    """Return the SQL condition of a filter and the values for its question marks.

    Without a filter, the condition is "".
    """
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
    turns: Sequence[ScoredTurn],
    score: float,
    query_words: Sequence[str],
    shown: Container[str],
) -> TraceHit | None:
    """Make the hit for an exchange.

    None if the transcript no longer has its best turn, or if its passage is among `shown`.

    index: the transcripts.
    mask: takes out secrets, and finds suspicious words.
    turns: its turns that were found, best first.
    score: the score of the exchange.
    query_words: the words by which the passage is chosen.
    shown: the passages of earlier hits.
    """
    best = turns[0].turn
    text = text_of(best, mask)
    if text is None:
        return None
    shown_part = passage(text, query_words)
    if shown_part in shown:
        return None
    answer = _answer_passage(index, mask, turns, text, query_words)
    # A short text is its own passage, and need not be looked at twice.
    shown_texts = dict.fromkeys((text, shown_part, answer))
    has_suspicious_name = mask.is_suspicious_name(origin(best))
    is_suspicious = has_suspicious_name or any(map(mask.is_suspicious, shown_texts))
    return _trace_hit(best, shown_part, answer, score, is_suspicious=is_suspicious)


def _answer_passage(
    index: TraceIndex,
    mask: Mask,
    turns: Sequence[ScoredTurn],
    best_text: str,
    query_words: Sequence[str],
) -> str:
    """Return a passage of another turn of an exchange, such as the agent's answer. "" if there is
    no such turn.

    mask: takes out secrets, and finds suspicious words.
    turns: the turns of the exchange that were found, best first.
    best_text: the text of the first of the turns. A turn with the same text is left out.
    query_words: the passage is chosen by these words.
    """
    best = turns[0].turn
    further = [scored_turn.turn for scored_turn in turns[1:]]
    # If no other turn was found for words of the person, the agent's answer is shown.
    if best.kind is Kind.SAID:
        further += [turn for turn in index.exchange(best.exchange) if turn.kind is Kind.ANSWERED]
    for turn in further[:_MAX_FURTHER_TURNS]:
        further_text = text_of(turn, mask)
        if further_text and further_text != best_text:
            return passage(further_text, query_words)
    return ""


def _trace_hit(
    turn: TurnRow, text: str, answer: str, score: float, *, is_suspicious: bool
) -> TraceHit:
    """Make the hit for a turn.

    text: the passage of the turn to show.
    answer: a passage of another turn of the exchange, such as the agent's answer; "" for none.
    score: how well the turn fits what was searched.
    is_suspicious: whether a shown text may hold instructions for its reader.
    """
    return TraceHit(
        ref=ref_of(turn),
        agent=turn.agent,
        project=Path(turn.folder).name,
        folder=turn.folder,
        time=moment(turn.time),
        who=_KINDS[turn.kind],
        passage=text,
        answer=answer,
        score=score,
        is_suspicious=is_suspicious,
        source=turn.path,
    )


def origin(turn: TurnRow) -> str:
    """Return the names that are shown beside a passage, as one path.

    Others may choose them: a repository names its folders, and a transcript its session.
    """
    return f"{turn.session}/{turn.folder}/{turn.path}"


def passage(text: str, query_words: Iterable[str], most: int = _PASSAGE_CHARACTERS) -> str:
    """Return the part of `text` with the most query words, as one line.

    query_words: the folded words.
    most: the largest number of characters. A cut part begins or ends with `…`.
    """
    flat = " ".join(text.split())
    if len(flat) <= most:
        return flat
    starts = _word_positions(fold(flat), query_words)
    if not starts:
        return shorten(flat, most)
    start = _densest_start(starts, most - 2 * _CHARACTERS_BEFORE)
    # Folding may change the length of a text, so that the position may be too large.
    begin = max(0, min(start, len(flat) - most) - _CHARACTERS_BEFORE)
    # Two characters are left for the `…` at both ends.
    end = min(len(flat), begin + most - 2)
    part = flat[begin:end]
    if begin:
        part = f"…{part}"
    if end < len(flat):
        part = f"{part}…"
    return part


def _word_positions(folded: str, query_words: Iterable[str]) -> list[int]:
    """Return the positions of the words in a folded text, in ascending order.

    query_words: the folded words.
    """
    starts: list[int] = []
    for word in query_words:
        stem = _stem(word)
        position = folded.find(stem)
        while position >= 0 and len(starts) < _MAX_STARTS:
            starts.append(position)
            position = folded.find(stem, position + 1)
    return sorted(starts)


def _stem(word: str) -> str:
    """Return the beginning that most forms of a word share: `migrat` for `migration`."""
    if is_cjk(word) or len(word) < 5:
        return word
    return word[: max(4, len(word) - 3)]


def _densest_start(starts: Sequence[int], span: int) -> int:
    """Return the position that the most others follow within `span` characters.

    starts: positions in ascending order.
    """
    counts = [bisect_left(starts, start + span) - bisect_left(starts, start) for start in starts]
    return starts[counts.index(max(counts))]


def shown(
    index: TraceIndex, mask: Mask, ref: str, most: int = 4_000, turns_after: int | None = None
) -> list[TraceHit]:
    """Return the exchange around a turn, one hit for each turn. [] if no turn has this reference.

    mask: takes out secrets, and finds suspicious words.
    ref: the reference of a turn, `SESSION@POSITION`. A unique beginning of the session's name is
        enough.
    most: the largest number of characters of each turn.
    turns_after: how many turns after this one are returned, without those before it. None returns
        the whole exchange.
    """
    session, _, position = ref.rpartition("@")
    if not session:
        return []
    turns = index.find_turn(session, position)
    # A part of a name may fit several sessions.
    if len({turn.session for turn in turns}) != 1:
        return []
    exchange = index.exchange(turns[0].exchange)
    most_hits = len(exchange)
    if turns_after is not None:
        exchange = _from_turn(exchange, ref)
        # The turn itself, and those after it
        most_hits = 1 + turns_after
    hits: list[TraceHit] = []
    for turn in exchange:
        if len(hits) >= most_hits:
            break
        text = text_of(turn, mask)
        if text is None:
            continue
        text = shorten(text, most)
        is_suspicious = mask.is_suspicious(text) or mask.is_suspicious_name(origin(turn))
        hit = _trace_hit(turn, text, answer="", score=0.0, is_suspicious=is_suspicious)
        hits.append(hit)
    return hits


def _from_turn(exchange: list[TurnRow], ref: str) -> list[TurnRow]:
    """Return the turns of an exchange, from the turn with this reference on. May be empty."""
    refs = [ref_of(turn) for turn in exchange]
    if ref not in refs:
        return []
    return exchange[refs.index(ref) :]
