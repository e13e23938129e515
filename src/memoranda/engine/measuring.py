"""Measure how well the search finds a person's own notes.

This is a known-item search: somebody looks for a note that they have seen before. Notes, and some
words of each, are drawn at random, and the search should find each note by its words. The result
depends only on the notes and the seed. So two versions of the program can be compared on one
memory.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from random import Random
from statistics import fmean, median
from typing import NamedTuple

from memoranda.engine.engine import verb
from memoranda.engine.reading import ReadVerbs
from memoranda.index.rows import NoteInfo
from memoranda.note.model import KV_PROJECT, TRACE_PROJECT
from memoranda.query import Query
from memoranda.text.tokens import stop_words, words

# How many hits a search returns. The note should be among them.
PAGE = 10
# Characters of a note from which words are drawn.
_MOST_CHARACTERS_OF_NOTE = 4_000
# How many words of a text a query of the kind "part of a sentence" has.
_PHRASE_WORDS = 8
# A note with fewer informative words is not searched for, because many other notes may have the
# same ones.
_LEAST_WORDS = 6


class KnownItem(NamedTuple):
    """A query made from a note.

    kind: how the query was made: `two words`, `question`, `part of a sentence` or `title`.
    query: the text to search for.
    row: the note's row in the index.
    """

    kind: str
    query: str
    row: int


class RecallFigure(NamedTuple):
    """The result for all queries of one kind.

    kind: how the queries were made, such as `question` or `title`.
    asked: the number of queries.
    first: the percentage of queries that had their note as the first hit.
    page: the percentage of queries that had their note among the first PAGE hits.
    milliseconds: the median time of a search.
    """

    kind: str
    asked: int
    first: float
    page: float
    milliseconds: float


class _Result(NamedTuple):
    """The result of one search.

    position: the position of the note among the hits, from 0. None if it is not among them.
    milliseconds: how long the search took.
    """

    position: int | None
    milliseconds: float


@verb
def measure_recall(memory: ReadVerbs, notes: int = 60, seed: int = 1) -> list[RecallFigure]:
    """Search for notes that the caller may see, and return how often they were found.

    Each note is searched for by several kinds of queries. Notes that are archived or no longer
    valid, traces of sessions and key-value entries are left out. No note is counted as read or
    used.

    notes: how many notes to search for at most.
    seed: the seed of the random choice. The same seed chooses the same notes and words.

    Returns one figure for each kind of query.
    """
    results_by_kind: dict[str, list[_Result]] = {}
    for item in _known_items(memory, notes, seed):
        results_by_kind.setdefault(item.kind, []).append(_search_for(memory, item))
    return [_figure(kind, results) for kind, results in results_by_kind.items()]


def _search_for(memory: ReadVerbs, item: KnownItem) -> _Result:
    """Search for one note by its query."""
    begun_at = time.perf_counter()
    hits = memory.index.search(
        memory.query_of(item.query, valid=True),
        viewer=memory.agent,
        limit=PAGE,
        today=memory._today(),
        near=memory._nearness(),
    )
    milliseconds = (time.perf_counter() - begun_at) * 1000
    rows = [hit.note.row for hit in hits]
    position = rows.index(item.row) if item.row in rows else None
    return _Result(position, milliseconds)


def _figure(kind: str, results: Sequence[_Result]) -> RecallFigure:
    """Compute the figure for one kind of query from the results of these queries."""
    first = 100 * fmean(result.position == 0 for result in results)
    page = 100 * fmean(result.position is not None for result in results)
    milliseconds = median(result.milliseconds for result in results)
    return RecallFigure(
        kind,
        asked=len(results),
        first=round(first, 1),
        page=round(page, 1),
        milliseconds=round(milliseconds, 1),
    )


def _known_items(memory: ReadVerbs, notes: int, seed: int) -> Iterator[KnownItem]:
    """Yield the queries for notes that are drawn at random.

    notes: for how many notes at most.
    seed: the seed of the random choice.

    Notes with few words are left out.
    """
    random = Random(seed)
    infos, _ = memory.list(Query(archived=False, order="path"), limit=0)
    # A search does not find these notes, so looking for them would lower the figures.
    invalid_rows = memory.invalid_rows()
    candidates = [
        info
        for info in infos
        if info.project not in (KV_PROJECT, TRACE_PROJECT) and info.row not in invalid_rows
    ]
    random.shuffle(candidates)
    remaining_count = notes
    for info in candidates:
        if not remaining_count:
            return
        _, body = memory.index.notes.text_of(info.row)
        text = body[:_MOST_CHARACTERS_OF_NOTE]
        if len(_informative_words(text)) >= _LEAST_WORDS:
            remaining_count -= 1
            yield from _items_of(info, text, random)


def _items_of(info: NoteInfo, text: str, random: Random) -> Iterator[KnownItem]:
    """Yield the queries for one note: two words, a question, part of a sentence, and the title.

    text: the text of the note.
    random: draws the words.
    """
    informative_words = _informative_words(text)
    two_words = " ".join(random.sample(informative_words, 2))
    yield KnownItem("two words", two_words, info.row)
    topic = " ".join(random.sample(informative_words, 4))
    yield KnownItem("question", f"What do I know about {topic}?", info.row)

    words_as_written = text.split()
    start = random.randrange(max(1, len(words_as_written) - _PHRASE_WORDS))
    phrase = " ".join(words_as_written[start : start + _PHRASE_WORDS])
    yield KnownItem("part of a sentence", phrase, info.row)
    # A title of one word is too common.
    if len(words(info.title)) > 1:
        yield KnownItem("title", info.title, info.row)


def _informative_words(text: str) -> list[str]:
    """Return the different words of a text in alphabetical order, without words such as `the`."""
    return sorted(set(words(text)) - stop_words())
