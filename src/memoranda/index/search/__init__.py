"""Search notes. `search` returns whole notes (contract 000b, 6), `smart_search` memories by tokens
(contract 001, 14), and `find_evidence` the chunks of notes that best answer a question.

`parse` reads a query, `question` a question. `queries` has the SQL. `ranking` scores notes by
features, with the weights of `weights`, and `chunks` reads the best of them. `words` knows the forms
of words and cuts snippets.

A *strict* search finds notes with all words of a query. A *relaxed* one finds notes with any word,
as for a question.

A *row* is the number of a note in the index. Rows only grow, so the highest is the newest note. A
*chunk* is a part of a note that is scored by itself: a turn of a conversation, a list item, or a
passage of about 200 words. A *facet* is a word for the full-text tables that stands for a filter,
such as a project.
"""

from __future__ import annotations

import json
import re
import sqlite3
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import chain, groupby, product
from string import ascii_lowercase
from typing import NamedTuple

from memoranda.errors import InvalidInput
from memoranda.index.header_filters import conditions
from memoranda.index.listing import at_address, listing
from memoranda.index.rows import (
    Hit,
    Hits,
    NoteInfo,
    ScoredMemory,
    SmartResult,
    day_of,
    in_order,
    infos,
    observations,
    text_of,
)
from memoranda.index.search import parse
from memoranda.index.search.chunks import (
    LONG_NOTES_READ,
    NOTES_READ,
    NOTES_READ_FOR_STATEMENT,
    ChunkReading,
)
from memoranda.index.search.many_tokens import ManyTokens
from memoranda.index.search.queries import (
    MAX_RANKED,
    NoteContent,
    NoteText,
    SearchContext,
    counted_to,
    search_context,
)
from memoranda.index.search.question import (
    is_certain_question,
    is_question,
    is_short_question,
    is_told,
)
from memoranda.index.search.ranking import Nearness, Ranking
from memoranda.index.search.weights import WEIGHTS
from memoranda.index.search.words import SNIPPET, goes_on_after, shortened
from memoranda.index.superseding import validity_marks
from memoranda.index.told_notes import BELOW, LineGroup, NoteHeading, heading_of
from memoranda.note.model import Observation
from memoranda.query import Query
from memoranda.text.dialogue import spoken
from memoranda.text.folding import is_changed
from memoranda.text.tokens import is_cjk, stop_words, tokens
from memoranda.text.tokens import words as informative_words
from memoranda.text.unicode import sqlite_text, visible

# In a strict search, this many of the best notes by BM25 are read and ranked.
_MAX_READ_BY_BM25 = 20
# So many more are read that have the words in title, headings or tags.
_MAX_READ_BY_NAME = 10
# If more notes match a single word, they are not sorted by BM25 but returned newest first.
_MAX_SORTED = 300
# How many spellings of a mistyped word to look for.
_MAX_SPELLINGS = 3

_HAN = (
    "[\u2e80-\u2fdf\u3005\u3007\u3021-\u3029\u3038-\u303b"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd]"
)
# The score of a token that occurs 0, 1, … 5 times in a memory. More than five count as five.
_COUNT_SCORES = (0.0, 1.0, 1.5, 2.0, 2.0, 3.0)
_TAG_SCORE = 1.0
# With more tokens, a smart search finds those of a note by their beginnings (`ManyTokens`). With
# fewer, or in a longer text, looking for each of them is faster.
_MANY_SMART_TOKENS = 200
_LONG_SMART_TEXT = 10_000
# A note with more characters, counted again for each token, is read up to here.
_MOST_SMART_CHARACTERS = 30_000_000
# A query with this many terms is pasted text, even with quotes and capital operators in it.
_MIN_PASTED_TERMS = 8
# Evidence comes from at most this many notes.
_MAX_EVIDENCE_NOTES = 60


def search(
    db: sqlite3.Connection,
    query: Query,
    *,
    viewer: str | None,
    limit: int = 10,
    offset: int = 0,
    explain: bool = False,
    today: date | None = None,
    near: Nearness | None = None,
) -> Hits:
    """Return one page of the notes that match the text and the filters of `query`, the best first.

    A query without text returns the newest notes that pass the filters. If only notes match that
    are no longer valid, these are returned with a remark.

    viewer: the agent that asks. None is the owner.
    explain: whether to add numbers to each hit's `why`.
    today: the day from which "last week" in a question counts. None means that only written dates
        are understood.
    near: compares meanings. None compares only words.

    Raises InvalidInput for a malformed metadata filter. Any text is a valid query.
    """
    conditions(query.metadata)
    query = query.replace(text=sqlite_text(spoken(query.text)))
    if not query.text.strip():
        notes, total = listing(db, query, viewer=viewer, limit=limit, offset=offset)
        return _with_remarks(db, Hits(_plain_hits(db, notes, query), total), query, viewer)
    if query.search_type == "permalink":
        notes = _notes_at_permalink(db, query, viewer)
        hits = _plain_hits(db, notes[offset : offset + limit], query)
        return _with_remarks(db, Hits(hits, len(notes)), query, viewer)

    # Search by words. Hits far behind the page are not counted.
    with search_context(db, query, viewer) as context:
        page = _Search(
            context=context, limit=limit, offset=offset, explain=explain, today=today, near=near
        ).run()
        most_counted = counted_to(offset + limit)
        if page.total > most_counted:
            page.total = most_counted
            page.is_lower_bound = True
        has_left_out_notes = bool(context.invalid) and query.as_of is None
        if page.total or not has_left_out_notes:
            # Without any span, all notes are always valid.
            return _with_remarks(db, page, query, viewer) if context.spans else page
    # No valid note matches, so the search is repeated with notes that are no longer valid.
    return search(
        db,
        query.replace(valid_at=None),
        viewer=viewer,
        limit=limit,
        offset=offset,
        explain=explain,
        today=today,
        near=near,
    )


def _notes_at_permalink(db: sqlite3.Connection, query: Query, viewer: str | None) -> list[NoteInfo]:
    """Return the notes at the permalink in `query.text` that pass its filters.

    Notes that are no longer valid are among them.

    viewer: the agent that asks. None is the owner.
    """
    notes = in_order(db, at_address(db, query.text.strip(), viewer, query.projects))
    # `at_address` has used the permalink and the projects. These are the other filters.
    filters = query.replace(text="", search_type="text", projects=None, valid_at=None)
    has_filters = filters != Query()
    if not has_filters:
        return notes
    passing_notes, _ = listing(db, filters, viewer=viewer, limit=None)
    passing_rows = {note.row for note in passing_notes}
    return [note for note in notes if note.row in passing_rows]


def _with_remarks(db: sqlite3.Connection, hits: Hits, query: Query, viewer: str | None) -> Hits:
    """Add a remark to each hit that is no longer valid or is superseded, and return the hits.

    The remark is appended to `why` and put in brackets before the passage. If the query asks about
    another time (`as_of`), the note was valid at that time, so the passage keeps its text.

    viewer: the agent that asks; None for the owner. A newer note is named only if the viewer may
        see it.
    """
    marks = validity_marks(db, [hit.note.row for hit in hits], viewer)
    for hit in hits:
        mark = marks.get(hit.note.row)
        if mark is not None:
            hit.why.append(mark)
            if query.as_of is None:
                hit.passage = f"[{mark}] {hit.passage}"
    return hits


@dataclass(frozen=True, slots=True)
class _QueryKind:
    """The properties of a query that decide between a strict and a relaxed search.

    is_long: whether the query has enough words for a relaxed search.
    is_certain: whether the query is certainly a question.
    is_relaxed: whether a relaxed search follows if no note has all words of the query.
    """

    is_long: bool
    is_certain: bool
    is_relaxed: bool

    @classmethod
    def of(cls, text: str, parsed: parse.ParsedQuery) -> _QueryKind:
        """Return the kind of a query.

        text: the query as written.
        parsed: the same query after `parse.parse`.
        """
        is_asking = is_question(text)
        is_pasted = len(parsed.terms) >= _MIN_PASTED_TERMS
        # Quotes ask for certain words, except in a question or in pasted text.
        is_long = parse.relaxable(parsed, quotes=is_asking or is_pasted)
        is_short = is_short_question(text) and parse.relaxable(parsed, quotes=True, least=1)
        # A few words with a question mark may still be a name, so they have to prove more.
        if is_long:
            is_certain = is_asking
        else:
            is_certain = is_short and is_certain_question(text)
        return cls(is_long, is_certain, is_relaxed=is_long or is_short or is_pasted)


class _Matches(NamedTuple):
    """The notes that match an FTS5 expression.

    expression: the expression.
    rows: their rows, the newest first. If very many notes match, only the newest.
    total: how many notes match.
    """

    expression: str
    rows: list[int]
    total: int


class _Candidates(NamedTuple):
    """Notes that match a query.

    order: their rows, the best first. This order comes from the index alone.
    best: the rows of the notes to read, which come first in `order`.
    """

    order: list[int]
    best: list[int]


@dataclass(slots=True)
class _Search:
    """One page of one search: `limit` hits from `offset` on.

    context: the query, its filters and its viewer.
    explain: whether to add numbers to each hit's `why`.
    today: the day from which "last week" in a question counts. None means that only written dates
        are understood.
    near: compares meanings. None compares only words.

    A *strict* search finds the notes with all words of the query. A *relaxed* search finds notes
    with any of its words that say much, and ranks those with more of them higher.
    """

    context: SearchContext
    limit: int
    offset: int
    explain: bool
    today: date | None
    near: Nearness | None

    def run(self) -> Hits:
        """Run the query in several ways until one finds notes.

        A question is searched for relaxed first. Any other query is searched for strictly, then
        relaxed if it is long enough, else with corrected spelling and then relaxed.
        """
        # Relaxed first, for what is plainly a question. Parsing a long text takes time, so this is
        # asked before.
        text = self.context.query.text
        # The result of a relaxed search that found nothing. None as long as none was made.
        relaxed: Hits | None = None
        if self._begins_relaxed(text):
            relaxed = self._relaxed()
            if relaxed.total:
                return relaxed
        parsed = parse.parse(text)
        # The text has no word, only operators and signs.
        if not parsed.clauses:
            return Hits([], total=0)
        kind = _QueryKind.of(text, parsed)
        if relaxed is None and parsed.bare and kind.is_certain:
            relaxed = self._relaxed()
            if relaxed.total:
                return relaxed

        # Then strictly.
        hits = self._strict(parsed)
        if not hits.total:
            return self._without_strict_hits(parsed, kind, relaxed)
        is_page_to_fill_up = kind.is_long and hits.total < self.limit and parse.says_much(parsed)
        if is_page_to_fill_up:
            return self._filled_up(hits, parsed)
        return hits

    @staticmethod
    def _begins_relaxed(text: str) -> bool:
        """Whether the first search for a text is relaxed, so that a note may match with any word.

        This holds for a text that tells something, and for a question without operators and quotes.
        Operators and quotes ask for certain words.
        """
        is_plain_question = is_question(text) and parse.is_plain(text)
        return is_plain_question or is_told(text)

    def _without_strict_hits(
        self, parsed: parse.ParsedQuery, kind: _QueryKind, relaxed: Hits | None
    ) -> Hits:
        """Run the query in other ways, because no note has all its words.

        parsed: the query as clauses of terms.
        kind: the properties of the query.
        relaxed: the result of a relaxed search that was tried first. None if no such search was made.
        """
        if kind.is_relaxed:
            return self._relaxed() if relaxed is None else relaxed
        respelled = self._search_respelled(parsed)
        # Nothing else is left to try, so here two words are enough for a relaxed search.
        if respelled.total or not parse.relaxable(parsed, least=2):
            return respelled
        return self._relaxed()

    def _filled_up(self, hits: Hits, parsed: parse.ParsedQuery) -> Hits:
        """Fill up a page of hits with notes that have only some of the words.

        hits: the hits on the page so far. They have all words.
        parsed: the query as clauses of terms.
        """
        # Over all pages, the hits with all words come first. So the pages before this one are made,
        # too, and left out at the end.
        from_first_page = replace(self, limit=self.offset + self.limit, offset=0)
        if self.offset:
            hits = from_first_page._strict(parsed)
        return from_first_page._relaxed(hits.hits, skipped_hits=self.offset)

    def _strict(self, parsed: parse.ParsedQuery) -> Hits:
        """Search for notes with all words of a query, and return one page of hits.

        The hits come in this order:
        1. notes with the words as whole words. First those that are read, which are the best by
           BM25 or by their names: they are sorted by what they say. Then the others by BM25.
        2. notes in which a word only begins a longer word, in the same way.
        3. notes that were not sorted, since very many match: the newest first.
        BM25 says little about a single word. If more than _MAX_SORTED notes have it, they are taken
        by age instead, the newest first.

        parsed: the query as clauses of terms.
        """
        # Find the notes: `match` makes an expression for SQLite's full-text tables of the words.
        context = self.context
        matches = self._matches(context.match(parsed))
        if not matches.total:
            return Hits([], total=0)
        whole, longer = self._groups(parsed, matches)

        # Read the best notes of both groups, and sort them within their group.
        rows_to_read = whole.best + longer.best
        ranking = Ranking(
            context, context.query.text, self.today, query=parsed, found_rows=rows_to_read
        )
        reading = ChunkReading(ranking)
        order = whole.order + longer.order
        for group in (whole, longer):
            order = _with_group_ranked(order, group.best, reading, parsed)

        # Cut the page out of this order, and fill it with notes that were not sorted.
        total = matches.total
        page_rows = order[self.offset : self.offset + self.limit]
        if len(page_rows) < self.limit:
            rest, total = self._rest_of_page(matches, order, len(page_rows))
            page_rows += rest
        return Hits(self._hits(reading, page_rows), total)

    def _matches(self, expression: str) -> _Matches:
        """Return the notes that an FTS5 expression matches."""
        rows, total = self.context.matches(expression)
        return _Matches(expression, rows, total)

    def _groups(
        self, parsed: parse.ParsedQuery, matches: _Matches
    ) -> tuple[_Candidates, _Candidates]:
        """Return the candidates with whole words, and those in which a word begins a longer one.

        For `plan`, the first group has the notes with `plan`, the second those with only `planner`.
        The second group is empty if the page ends within the first. No note is in both.

        parsed: the query as clauses of terms.
        matches: the notes of both groups.
        """
        whole_expression = self.context.match(parsed, whole=True)
        whole_matches = matches
        if whole_expression != matches.expression:
            whole_matches = self._matches(whole_expression)
        whole = self._candidates(parsed, whole_matches, whole=True)

        page_end = self.offset + self.limit
        has_longer_on_page = whole_matches.total < min(matches.total, page_end)
        # `rows` lacks some of more notes than MAX_RANKED, so the groups could not be told apart.
        if not has_longer_on_page or whole_matches.total > MAX_RANKED:
            return whole, _Candidates(order=[], best=[])

        longer_matches = _Matches(
            matches.expression,
            rows=_without(matches.rows, whole_matches.rows),
            total=matches.total - whole_matches.total,
        )
        longer = self._candidates(parsed, longer_matches, whole=False)
        # `_candidates` adds notes by their names, and these may have the whole words.
        return whole, _Candidates(
            order=_without(longer.order, whole.order), best=_without(longer.best, whole.best)
        )

    def _rest_of_page(
        self, matches: _Matches, order: list[int], ranked_count: int
    ) -> tuple[list[int], int]:
        """Fill a page with the newest rows that are not ranked.

        matches: the notes that match the query.
        order: the ranked rows, which come before all others, on this page and on earlier ones.
        ranked_count: how many of them are on this page.

        Returns the further rows of the page, and a better value of `matches.total`.
        """
        missing_count = self.limit - ranked_count
        # If this page begins behind the ranked rows, earlier pages have had some of the others.
        shown_earlier = max(0, self.offset - len(order))
        rows = matches.rows
        total = matches.total
        has_all_rows = len(rows) == total
        if not has_all_rows:
            # As many rows as there are up to the end of this page.
            rows, total = self.context.matches(
                matches.expression, len(order) + shown_earlier + missing_count
            )
        unranked_rows = _without(rows, order)
        return unranked_rows[shown_earlier : shown_earlier + missing_count], total

    def _candidates(
        self, query: parse.ParsedQuery, matches: _Matches, *, whole: bool
    ) -> _Candidates:
        """Return the rows in a first order, and those to read.

        matches: the notes that match `query`.
        whole: whether only whole words count.

        If very many notes match, `matches.rows` has only the newest. So notes with the words in
        title, headings or tags are added to the rows to read, even if they are old.
        """
        rows = matches.rows
        # Sorting very many notes by a single word takes long and says little.
        is_worth_sorting = len(rows) <= _MAX_SORTED or len(query.terms) > 1
        if len(rows) > _MAX_READ_BY_BM25 and is_worth_sorting:
            # The order must be right up to the end of the page.
            sorted_count = max(self.offset + self.limit, _MAX_READ_BY_BM25)
            rows = self.context.by_bm25(query, matches.expression, rows, sorted_count, whole)
        best = rows[:_MAX_READ_BY_BM25]
        best = best + _without(self._named_rows(matches), best)
        return _Candidates(order=[*best, *_without(rows, best)], best=best)

    def _named_rows(self, matches: _Matches) -> list[int]:
        """Return notes to read because of their names, which the best by BM25 may miss.

        First come notes whose title is the query, then notes with its words in title, headings or
        tags. If few notes match, all are read anyway, and the result is empty.
        """
        context = self.context
        named_rows: list[int] = []
        are_all_read = matches.total <= _MAX_READ_BY_BM25
        if not are_all_read:
            named_rows += context.same_title(matches.expression)
        has_older_rows = matches.total > len(matches.rows)
        if has_older_rows or matches.total > _MAX_SORTED:
            named_rows += context.named(matches.expression)[:_MAX_READ_BY_NAME]
        # A note may be in both.
        named_rows = list(dict.fromkeys(named_rows))
        # Names were looked up without the filters that FTS5 cannot apply.
        if named_rows and context.is_filtered:
            return context.passing(named_rows)
        return named_rows

    def _search_respelled(self, parsed: parse.ParsedQuery) -> Hits:
        """Search strictly with corrected spelling.

        Each word that no note contains is replaced by known words with one letter added, removed or
        changed: `buget plan` → `budget plan`. If the query has operators or quotes, or if a word
        cannot be corrected, no hits are returned.

        parsed: the query as clauses of terms.
        """
        if not parsed.bare or len(parsed.clauses) != 1:
            return Hits([], total=0)
        corrections: list[str] = []
        # For each term of the query, the terms that may be in its place.
        choices: list[list[parse.Term]] = []
        for term in parsed.terms:
            # A word that some note contains is spelled well.
            if self.context.is_in_any_note(term):
                choices.append([term])
            else:
                spellings = self._spellings(term)
                corrections += spellings
                corrected_terms = [parse.term(spelling) for spelling in spellings]
                choices.append([corrected for corrected in corrected_terms if corrected])
        # A term with an empty list of choices cannot be corrected.
        if not corrections or not all(choices):
            return Hits([], total=0)

        # A note matches if it has one choice for each term: `buget plan` with the choices `budget`
        # and `nugget` becomes `budget plan OR nugget plan`.
        clauses = tuple(parse.Clause(terms) for terms in product(*choices))
        hits = self._strict(parse.ParsedQuery(clauses, bare=True))
        for hit in hits:
            corrections_in_hit = [word for word in corrections if word in hit.words]
            hit.spelled = tuple(corrections_in_hit or corrections)
            hit.why.append(f"spelled: {', '.join(hit.spelled)}")
        hits.relaxed = bool(hits.hits)
        return hits

    def _spellings(self, term: parse.Term) -> list[str]:
        """Return corrected spellings of a term. A term of several words has none."""
        if len(term.words) != 1:
            return []
        return self.context.spellings(term.words[0])[:_MAX_SPELLINGS]

    def _relaxed(self, strict_hits: Sequence[Hit] = (), skipped_hits: int = 0) -> Hits:
        """Search for notes with at least one of the informative words.

        All notes are in one order: first the notes that `reading` has read, sorted by their chunks,
        then the others as `ranking` sorts them. The page is cut out of this order.

        strict_hits: hits with all words. They are put before all others, and take their places.
        skipped_hits: how many hits to leave out at the beginning.
        """
        page_end = self.offset + self.limit
        ranking = Ranking(self.context, self.context.query.text, self.today, self.near)
        best_count = NOTES_READ_FOR_STATEMENT if ranking.is_told else NOTES_READ
        reading = ChunkReading(ranking, best_count)
        rows = reading.order[self.offset : page_end]
        if len(rows) < self.limit:
            # The page goes on among the notes that were not read. Its part there, from 0:
            read_count = len(reading.rows)
            begin = max(0, self.offset - read_count)
            stop = page_end - read_count
            # Besides the best notes, up to LONG_NOTES_READ others were read. They are left out
            # here, so as many more are asked for.
            other_rows = ranking.page(best_count, stop + LONG_NOTES_READ)
            rows += _without(other_rows, reading.rows)[begin:stop]

        strict_rows = {hit.note.row for hit in strict_hits}
        places_left = max(0, self.limit - len(strict_hits))
        relaxed_rows = _without(rows, strict_rows)[:places_left]
        hits = self._hits(reading, relaxed_rows, strict_hits)
        total = ranking.total(counted_to(page_end) + 1, strict_rows)
        return Hits(hits[skipped_hits:], total, relaxed=True)

    def _hits(
        self, reading: ChunkReading, rows: Sequence[int], hits_before: Sequence[Hit] = ()
    ) -> list[Hit]:
        """Turn notes into hits. Return `hits_before` and these hits.

        Scores must not rise from hit to hit. So a score above the score of the hit before is lowered
        to it.

        reading: the scores and texts of the notes. Texts that it has not read are read here.
        rows: the rows of the notes, the best first.
        """
        context = self.context
        texts_not_read_yet = context.texts(_without(rows, reading.texts), reading.terms)
        texts = reading.texts | {note_text.row: note_text for note_text in texts_not_read_yet}
        notes = infos(context.db, rows)
        hits = list(hits_before)
        for row in rows:
            note_text = texts[row]
            passage, line = reading.snippet_of(note_text)
            score = round(reading.score(row), 6)
            if hits:
                score = min(score, hits[-1].score)
            matched_words = reading.matched_words(note_text)
            hit = Hit(
                notes[row],
                passage,
                score,
                why=reading.why(note_text),
                line=line,
                shares=adding_up(reading.shares(row), score) if self.explain else {},
                words=(*matched_words.title, *matched_words.text),
                spelled=matched_words.spelled,
                word_reasons=tuple(matched_words.reasons()),
                is_cut=goes_on_after(note_text.text, passage),
            )
            hit.why += hit.share_reasons()
            if not reading.is_strict:
                hit.why.append("relaxed")
            hits.append(hit)
        _show_observations(context.db, hits, context.query, reading.terms)
        return hits


def adding_up(shares: Mapping[str, float], score: float) -> dict[str, float]:
    """Round the shares of a score to three decimals so that they add up to the rounded score.

    A rounding error goes to the largest share: `{words: 0.3334, date: 0.3334}` with the score
    0.6668 → `{words: 0.334, date: 0.333}`. A larger difference becomes the share `cap`: the score
    was lowered so that the hit stays behind an earlier hit.
    """
    if not shares:
        return {}
    # In whole thousandths, sums are exact.
    thousandths = {name: round(1000 * share) for name, share in shares.items()}
    difference = round(1000 * score) - sum(thousandths.values())
    # Rounding changes each share by half a thousandth at most.
    is_rounding_error = abs(difference) <= len(thousandths)
    if is_rounding_error:
        changed_name = max(thousandths, key=lambda name: abs(thousandths[name]))
    else:
        changed_name = "cap"
    thousandths[changed_name] = thousandths.get(changed_name, 0) + difference
    return {name: share / 1000 for name, share in thousandths.items() if share}


def _with_group_ranked(
    order: list[int], group: Sequence[int], reading: ChunkReading, query: parse.ParsedQuery
) -> list[int]:
    """Return `order` with the rows of one group sorted by their rank.

    The rows of the group share the same places as before. All other rows stay where they are.

    order: rows of all groups.
    group: the rows of the group.
    reading: has the rank of each row of the group.
    query: the query, whose accents count for the rank.
    """
    group_rows = set(group)
    best_first = [row for row in reading.order if row in group_rows]
    ranked = iter(_as_typed_first(best_first, reading, query))
    return [next(ranked) if row in group_rows else row for row in order]


def _as_typed_first(rows: list[int], reading: ChunkReading, query: parse.ParsedQuery) -> list[int]:
    """Move notes with the accents of the query to the front: for `schön`, `schön` before `schon`.

    Only terms with accents count. For a query without accents, `rows` is returned unchanged.
    """
    # Folding removes accents, so it changes only terms that have some.
    words_with_accents = [_composed(term.text) for term in query.terms if is_changed(term.text)]
    if not words_with_accents:
        return rows
    other_rows = [row for row in rows if not _holds_all(reading.texts.get(row), words_with_accents)]
    return [*_without(rows, other_rows), *other_rows]


def _holds_all(note: NoteText | None, texts: Sequence[str]) -> bool:
    """Whether a note contains all these texts, accents included.

    note: None if the note was not read; the result is False then.
    """
    if note is None:
        return False
    written = _composed(f"{note.name_text}\n{note.text}")
    return all(text in written for text in texts)


def _composed(text: str) -> str:
    """Return a text in lower case and in the Unicode form NFC. Accents stay: `SCHÖN` → `schön`."""
    return unicodedata.normalize("NFC", text).casefold()


def _without(rows: Sequence[int], excluded: Iterable[int]) -> list[int]:
    """Return `rows` without the excluded ones, in their order."""
    excluded_rows = set(excluded)
    return [row for row in rows if row not in excluded_rows]


def _kind_of_character(char: str) -> str:
    """Return "han" for a Chinese character, "word" for another letter or digit, else ""."""
    # Most texts are ASCII and never need the pattern, which takes long to compile.
    if not char.isascii() and re.match(_HAN, char):
        return "han"
    if char.isalpha() or char.isdecimal():
        return "word"
    return ""


def smart_tokens(text: str) -> list[str]:
    """Split a text into tokens for a smart search: `Plan B 计划` → `plan`, `b`, `计`, `划`.

    A token is one Chinese character, or a run of other letters and digits in lower case. A repeated
    token is returned only at its first place.
    """
    all_tokens: list[str] = []
    for kind, run in groupby(text, _kind_of_character):
        if kind == "han":
            all_tokens += run
        elif kind == "word":
            all_tokens.append("".join(run).lower())
    return list(dict.fromkeys(all_tokens))


def smart_search(
    db: sqlite3.Connection, text: str, query: Query, *, viewer: str | None, top: int = 10
) -> SmartResult:
    """Return the memories that contain the tokens of `text` most often (contract 001, 14).

    The best memories come first. Equal scores are sorted by time of creation, the newest first,
    then by id. Stop words count only if `text` has no other words. Every note that passes the
    filters is read: a token also counts inside longer words, which full-text tables cannot find.
    So that others need not wait long, only the beginning of a very long note is read for a very long
    query.

    query: the filters, which must name projects.
    viewer: the agent that asks; None for the owner. Hidden notes are left out.
    top: how many memories to return; 0 means all.

    Raises InvalidInput if `text` contains no letter or digit.
    """
    query_tokens = smart_tokens(sqlite_text(text))
    if not query_tokens:
        raise InvalidInput("no valid tokens in query")
    counted_tokens = _counted_tokens(text, query_tokens)
    with search_context(db, query, viewer) as context:
        # Score every note.
        candidates = _smart_candidates(context, counted_tokens)

        # Take the best.
        archived_rows = context.archived([candidate.row for candidate in candidates])
        candidates.sort(key=lambda candidate: candidate.order(candidate.row in archived_rows))
        best = candidates[:top] if top else candidates
        notes = in_order(db, [candidate.row for candidate in best])
        may_match_invalid_notes = not candidates and bool(context.invalid)
    # Notes that are no longer valid are better than nothing.
    if may_match_invalid_notes and query.as_of is None:
        return smart_search(db, text, query.replace(valid_at=None), viewer=viewer, top=top)

    # The best memories, with their scores.
    memories: list[ScoredMemory] = []
    for note, candidate in zip(notes, best, strict=True):
        score = candidate.final_score(candidate.row in archived_rows)
        memories.append(ScoredMemory(note, round(score, 2), candidate.tokens))
    return SmartResult(query_tokens, memories, len(candidates))


def _smart_candidates(context: SearchContext, counted_tokens: list[str]) -> list[_SmartCandidate]:
    """Return each note that passes the filters and contains some of the tokens, with its score.

    counted_tokens: the tokens of the query that count, at least one.
    """
    # Both ways of looking for tokens find the same. For a text, the faster one is taken.
    has_many_tokens = len(counted_tokens) > _MANY_SMART_TOKENS
    many_tokens = ManyTokens(counted_tokens if has_many_tokens else ())
    most_characters = _MOST_SMART_CHARACTERS // len(counted_tokens)
    candidates: list[_SmartCandidate] = []
    for content in context.contents():
        lower_text = content.text[:most_characters].lower()
        if has_many_tokens and len(lower_text) <= _LONG_SMART_TEXT:
            tokens_held = many_tokens.in_text(lower_text)
        else:
            tokens_held = [token for token in counted_tokens if token in lower_text]
        candidate = _smart_score(content, lower_text, tokens_held)
        if candidate is not None:
            candidates.append(candidate)
    return candidates


class _SmartCandidate(NamedTuple):
    """A note that contains some of the tokens.

    score: the score without the factor for archived memories.
    created: when the note was created, in microseconds since 1970.
    identity: the id of the note.
    row: its row in the index.
    tokens: the tokens that the note contains.
    """

    score: float
    created: int
    identity: str
    row: int
    tokens: list[str]

    def final_score(self, is_archived: bool) -> float:
        """Return the score, which is lower for an archived memory.

        is_archived: whether the note is in the archive.
        """
        return self.score * WEIGHTS.archived if is_archived else self.score

    def order(self, is_archived: bool) -> tuple[float, int, str]:
        """Return a sort key: the best first, then the newest, then by id.

        is_archived: whether the note is in the archive.
        """
        return -self.final_score(is_archived), -self.created, self.identity


def _counted_tokens(text: str, query_tokens: list[str]) -> list[str]:
    """Return the tokens of a query that count: all but stop words and single letters.

    If the query has nothing else, all of its tokens count.

    query_tokens: all tokens of the query.
    """
    informative_tokens = set(smart_tokens(" ".join(informative_words(sqlite_text(text)))))
    uninformative_tokens = stop_words() | set(ascii_lowercase)
    counted_tokens: list[str] = []
    for token in query_tokens:
        # A single Chinese character is often a word.
        if is_cjk(token):
            is_counted = token in informative_tokens
        else:
            is_counted = token not in uninformative_tokens
        if is_counted:
            counted_tokens.append(token)
    return counted_tokens or query_tokens


def _smart_score(
    content: NoteContent, lower_text: str, tokens_held: list[str]
) -> _SmartCandidate | None:
    """Score a note by how often it contains each token. Return None if it contains none.

    A tag that equals a token adds _TAG_SCORE.

    lower_text: the part of its text that is read, in lower case.
    tokens_held: the tokens that this part contains.
    """
    if not tokens_held:
        return None
    score = 0.0
    for token in tokens_held:
        # A text that is split n times has the token n times. Splitting up to five times stops at the
        # fifth occurrence, so the rest of a long text need not be read.
        count = len(lower_text.split(token, 5)) - 1
        score += _COUNT_SCORES[count]
    if content.tags:
        lower_tags = {tag.lower() for tag in json.loads(content.tags)}
        score += _TAG_SCORE * len(lower_tags.intersection(tokens_held))
    return _SmartCandidate(score, content.created, content.identity, content.row, tokens_held)


def _plain_hits(db: sqlite3.Connection, notes: Sequence[NoteInfo], query: Query) -> list[Hit]:
    """Turn notes into hits with score 0. The snippet is the beginning of the text."""
    hits = []
    for note in notes:
        front, text = text_of(db, note.row)
        passage, line_in_text = shortened(text, begin=0, stop=len(text))
        line = front.count("\n") + line_in_text
        is_cut = goes_on_after(text, passage)
        hits.append(Hit(note, passage, score=0.0, line=line, is_cut=is_cut))
    _show_observations(db, hits, query, terms=tuple)
    return hits


def _show_observations(
    db: sqlite3.Connection,
    hits: list[Hit],
    query: Query,
    terms: Callable[[], Sequence[parse.Term]],
) -> None:
    """Replace the snippet of each hit by an observation, if the query filters by a category.

    The observation has one of these categories and, of all such observations of the note, the most
    words of the query.

    terms: returns the terms of the query. Without any, the first observation is taken.
    """
    categories = {name.strip().casefold() for name in (*query.categories, *query.any_category)}
    if not categories:
        return
    words = list(chain.from_iterable(term.words for term in terms()))

    def words_held(observation: Observation) -> int:
        """Return how many words of the query an observation contains."""
        content = observation.content.lower()
        return sum(word in content for word in words)

    for hit in hits:
        observations_of_category = [
            observation
            for observation in observations(db, hit.note)
            if (observation.category or "").strip().casefold() in categories
        ]
        if observations_of_category:
            best = max(observations_of_category, key=words_held)
            hit.passage = best.content[:SNIPPET]
            hit.is_cut = len(best.content) > SNIPPET
            hit.line = best.line


def find_evidence(
    db: sqlite3.Connection,
    question: str,
    *,
    viewer: str | None,
    max_chars: int = 8_000,
    projects: Sequence[str] | None = None,
    today: date | None = None,
    near: Nearness | None = None,
    filters: Query = Query(),
    skip: Callable[[NoteInfo], bool] | None = None,
    least: float = 0.0,
    floor: float = 0.0,
    related: float = 0.0,
) -> list[Hit]:
    """Return the chunks of notes that best answer `question`, the best first.

    A hit is one turn of a conversation, one list item or one passage of about 200 words. A note may
    have several hits. A chunk that repeats an earlier chunk is left out. Notes that are not valid
    at `filters.valid_at` are used only if no other note answers. Their passages begin with a
    remark.

    viewer: the agent that asks; None for the owner. Hidden notes are left out.
    max_chars: the most characters that the hits take as `evidence_text` words them.
    projects: the projects to search; None for all.
    today: the day that "last week" in the question is counted from. None means that only written
        dates are understood.
    near: compares meanings. None compares only words.
    filters: further filters, and the time at which notes must be valid.
    skip: returns True for notes to leave out. None leaves out no note.
    least: the lowest relevance of a chunk in the result. Relevance is the share of the question's
        words that a chunk has, from 0 to 1.
    floor: if no chunk has this relevance, nothing answers the question, and the result is empty. 0
        means no limit.
    related: the lowest cosine at which a note is about the question. If a note has it, `floor` does
        not matter. 0 if it is not known for the model.
    """
    query = filters.replace(
        text=sqlite_text(spoken(question)), projects=None if projects is None else tuple(projects)
    )
    # At most two rounds: with the notes that are valid, then with all notes.
    while True:
        with search_context(db, query, viewer) as context:
            ranking = Ranking(context, query.text, today, near)
            # If no note has a span of validity, all notes are always valid.
            marks: dict[int, str] = {}
            if context.spans and query.as_of is None:
                marks = validity_marks(db, ranking.features, viewer)

            reading = ChunkReading(ranking, _MAX_EVIDENCE_NOTES, reads_turns=True, related=related)
            evidence: list[Hit] = []
            if not floor or reading.says_enough(floor):
                evidence = list(
                    _chunks_that_fit(
                        db, reading, space=max_chars, marks=marks, skip=skip, least=least
                    )
                )

            may_be_in_invalid_notes = bool(context.invalid) and query.as_of is None
            if evidence or not may_be_in_invalid_notes:
                return evidence
        # Without this time, no note is invalid any more, so the next round is the last.
        query = query.replace(valid_at=None)


def _chunks_that_fit(
    db: sqlite3.Connection,
    reading: ChunkReading,
    space: int,
    marks: Mapping[int, str],
    skip: Callable[[NoteInfo], bool] | None,
    least: float,
) -> Iterator[Hit]:
    """Yield the best chunks that fit into `space` characters together with their notes' lines.

    reading: the chunks that were read, with their scores.
    marks: the remarks to put before passages, by row.
    skip: returns True for notes to leave out. None keeps all.
    least: leave out chunks with a lower relevance.
    """
    notes = infos(db, reading.rows)
    evidence = _EvidenceText(space)
    # The best passage comes first.
    for passage in reading.relevant(least):
        note_text = reading.texts[passage.row]
        note = notes[passage.row]
        if skip is not None and skip(note):
            continue
        text = note_text.text[passage.start : passage.stop].strip()
        if passage.row in marks:
            text = f"[{marks[passage.row]}] {text}"
        # `take` returns "" for a passage that does not fit or says nothing new.
        text = evidence.take(visible(text).replace("\n", BELOW), note)
        if text:
            # The line in the file: the frontmatter comes before the text.
            line = note_text.front.count("\n") + note_text.text.count("\n", 0, passage.start) + 1
            yield Hit(
                note,
                text,
                round(passage.score, 6),
                reading.why(note_text),
                line,
                relevance=reading.relevance_of(passage),
            )


class _EvidenceText:
    """The text that `evidence_text` makes of the passages taken so far: its length, and its words.

    Each note has a heading, which notes of one group may share. Passages are below it.
    """

    def __init__(self, space: int):
        """Begin an empty text of at most `space` characters."""
        self._space_left = space
        self._rows: set[int] = set()
        # The headings of the notes, and the groups of notes whose shared heading was used.
        self._headings: dict[int, NoteHeading] = {}
        self._groups: set[LineGroup] = set()
        # The words of each passage that was taken.
        self._words_of_passages: list[frozenset[str]] = []

    def take(self, passage: str, note: NoteInfo) -> str:
        """Take a passage if there is room for it and it says something new.

        Returns the passage as it was taken, or "" if it was not. The first passage is cut if it is
        too long. A later one is not, since a shorter one behind it may fit whole.
        """
        # Cut or refuse a passage that does not fit.
        heading = self._heading(note)
        length_around = self._length_around(note, heading)
        room = self._space_left - length_around
        if len(passage) > room:
            is_first = not self._rows
            if not is_first or room <= 0:
                return ""
            passage = passage[:room].rstrip()

        # Refuse a passage whose informative words are all in one earlier passage.
        words = frozenset(tokens(passage))
        informative = words - stop_words()
        is_repeated = any(informative <= earlier_words for earlier_words in self._words_of_passages)
        if not passage or is_repeated:
            return ""

        # Take it.
        self._space_left -= len(passage) + length_around
        self._rows.add(note.row)
        self._groups.add(heading.group)
        self._words_of_passages.append(words)
        return passage

    def _heading(self, note: NoteInfo) -> NoteHeading:
        """Return the heading of a note. It is made once for all passages of the note."""
        if note.row not in self._headings:
            self._headings[note.row] = heading_of(note, day_of(note, zone=None))
        return self._headings[note.row]

    def _length_around(self, note: NoteInfo, heading: NoteHeading) -> int:
        """Return how many characters a passage takes beside its own, such as a new heading."""
        if note.row in self._rows:
            return len(BELOW)
        # `heading.length` counts the line break before the passage, and `BELOW` begins with it.
        return heading.length(is_shared=heading.group in self._groups) + len(BELOW) - 1
