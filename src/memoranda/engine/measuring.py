"""Measure how well the search finds a person's own notes.

A known item is a note that somebody has seen before and looks for again. Notes, and some words of
each, are drawn at random; the search should find the note by these words. The result depends only
on the notes and the seed. So two versions of the program can be compared on one memory.
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

# A note counts as found if it is among this many first hits.
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

    asked: the number of queries.
    first: the percentage of queries whose note was the first hit.
    page: the percentage whose note was among the first PAGE hits.
    milliseconds: the median time of a search.
    """

    kind: str
    asked: int
    first: float
    page: float
    milliseconds: float


@verb
def measure_recall(memory: ReadVerbs, notes: int = 60, seed: int = 1) -> list[RecallFigure]:
    """Search for notes that the caller may see, by several queries each, and return how often they
    were found.

    Notes that are archived or no longer valid, traces of sessions and key-value entries are not
    searched for. No note is counted as read or used.

    notes: how many notes to search for at most.
    seed: the seed of the random choice. The same seed chooses the same notes and words.

    Returns one figure for each kind of query.
    """
    figures: dict[str, list[tuple[int | None, float]]] = {}
    for item in _known_items(memory, notes, seed):
        begin = time.perf_counter()
        hits = memory.index.search(
            memory.query_of(item.query, valid=True),
            viewer=memory.agent,
            limit=PAGE,
            today=memory._today(),
            near=memory._nearness(),
        )
        took = (time.perf_counter() - begin) * 1000
        rows = [hit.note.row for hit in hits]
        if item.row in rows:
            place = rows.index(item.row)
        else:
            place = None
        figures.setdefault(item.kind, []).append((place, took))
    return [_figure(kind, places) for kind, places in figures.items()]


def _figure(kind: str, places: Sequence[tuple[int | None, float]]) -> RecallFigure:
    """Return the figure for one kind of query.

    places: for each query, the position of its note among the hits, from 0, and the milliseconds
        that the search took. The position is None if the note was not among the hits.
    """
    first = 100 * fmean(place == 0 for place, _ in places)
    page = 100 * fmean(place is not None for place, _ in places)
    return RecallFigure(
        kind, len(places), round(first, 1), round(page, 1), round(median(ms for _, ms in places), 1)
    )


def _known_items(memory: ReadVerbs, notes: int, seed: int) -> Iterator[KnownItem]:
    """Yield the queries for at most `notes` notes, which are drawn at random.

    Notes with few words are left out.

    seed: the seed of the random choice.
    """
    chance = Random(seed)
    infos, _ = memory.list(Query(archived=False, order="path"), limit=0)
    # A search leaves these out, so that looking for them would lower the figure.
    invalid_rows = memory.invalid_rows()
    candidates = [
        info
        for info in infos
        if info.project not in (KV_PROJECT, TRACE_PROJECT) and info.row not in invalid_rows
    ]
    chance.shuffle(candidates)
    remaining_count = notes
    for info in candidates:
        if not remaining_count:
            return
        text = memory.index.notes.text_of(info.row)[1][:_MOST_CHARACTERS_OF_NOTE]
        if len(set(words(text)) - stop_words()) >= _LEAST_WORDS:
            remaining_count -= 1
            yield from _items_of(info, text, chance)


def _items_of(info: NoteInfo, text: str, chance: Random) -> Iterator[KnownItem]:
    """Yield the queries for one note: two words, a question, part of a sentence, and the title.

    text: the text of the note.
    chance: draws the words.
    """
    informative = sorted(set(words(text)) - stop_words())
    yield KnownItem("two words", " ".join(chance.sample(informative, 2)), info.row)
    topic = " ".join(chance.sample(informative, 4))
    yield KnownItem("question", f"What do I know about {topic}?", info.row)
    written = text.split()
    start = chance.randrange(max(1, len(written) - _PHRASE_WORDS))
    yield KnownItem(
        "part of a sentence", " ".join(written[start : start + _PHRASE_WORDS]), info.row
    )
    if len(words(info.title)) > 1:
        yield KnownItem("title", info.title, info.row)
