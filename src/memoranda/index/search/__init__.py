"""Full-text search (contract 000b, 6), smart search (contract 001, 14), and the best evidence for a
question: chunks, not whole notes, until the space is used up.

`parse` reads the query, `ranking` scores notes by features, `chunks` reads the best of them,
`words` knows the forms of words and cuts what is shown, `queries` has the SQL, `weights` the
weights.
"""

from __future__ import annotations

import json
import re
import sqlite3
import unicodedata
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, tzinfo
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
from memoranda.index.search.chunks import READ, READ_LONG, READ_TOLD, ChunkReading
from memoranda.index.search.queries import (
    MAX_RANKED,
    NoteText,
    SearchContext,
    counted_to,
    search_context,
)
from memoranda.index.search.ranking import Nearness, Ranking
from memoranda.index.search.weights import WEIGHTS
from memoranda.index.search.words import shortened
from memoranda.index.superseding import validity_marks
from memoranda.note.links import slug
from memoranda.note.model import ARCHIVED
from memoranda.query import Query
from memoranda.text.dialogue import spoken
from memoranda.text.folding import is_changed
from memoranda.text.tokens import is_cjk, stop_words, tokens
from memoranda.text.tokens import words as informative_words
from memoranda.text.unicode import flat, sqlite_text, visible

# Of more hits than these, only the best are ranked by what is read of them.
_BEST = 20
# How many of the notes with all words are read: the best by BM25, and those that match by name.
_NAMED = 10
# More matches than this of a single word stay newest first.
_MAX_SORTED = 300
# How many spellings of a mistyped word to look for.
_MAX_SPELLINGS = 3

_HAN = (
    "[\u2e80-\u2fdf\u3005\u3007\u3021-\u3029\u3038-\u303b"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd]"
)
# The score of a token, by how often it occurs in a memory; five times is the maximum.
_COUNT_SCORES = (0.0, 1.0, 1.5, 2.0, 2.0, 3.0)
_TAG_SCORE = 1.0
# Queries with this many terms are pasted text, in spite of quotes and capitals.
_PROSE = 8
# Notes from which passages are read for one context.
_MAX_NOTES = 60
# Characters of a title in a context.
_TITLE = 60
# Digits of an id that people type.
_ID = 8
_BELOW = "\n  "


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
    """One page of the notes that match the text and the filters of `query`, best first.

    `viewer` is the agent that asks (None = the owner). Without text: the newest notes that pass the
    filters. `explain` adds numbers to each hit's `why`; `today` is what "last week" in a question
    counts from, `near` compares meanings. Raises InvalidInput for a broken metadata filter; no text
    raises.
    """
    conditions(query.metadata)
    query = query.replace(text=sqlite_text(spoken(query.text)))
    if not query.text.strip():
        notes, total = listing(db, query, viewer=viewer, limit=limit, offset=offset)
        return _with_remarks(db, Hits(_plain_hits(db, notes, query), total), query, viewer)
    # By permalink, and what has ended too
    if query.search_type == "permalink":
        rows_there = at_address(db, query.text.strip(), viewer, query.projects)
        notes = in_order(db, rows_there)
        filters = query.replace(text="", search_type="text", projects=None, valid_at=None)
        if filters != Query():
            passed, _ = listing(db, filters, viewer=viewer, limit=None)
            rows = {note.row for note in passed}
            notes = [note for note in notes if note.row in rows]
        hits = _plain_hits(db, notes[offset : offset + limit], query)
        return _with_remarks(db, Hits(hits, len(notes)), query, viewer)
    with search_context(db, query, viewer) as context:
        result = _Search(context, limit, offset, explain).run(today, near)
        if result.total > (most := counted_to(offset + limit)):
            result.total = most
            result.is_lower_bound = True
        if result.total or not context.invalid or query.as_of is not None:
            if context.spans:
                return _with_remarks(db, result, query, viewer)
            return result
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


def _with_remarks(db: sqlite3.Connection, hits: Hits, query: Query, viewer: str | None) -> Hits:
    """Add remarks to the hits that are over or superseded.

    If the query asks about another time, only `why` gets the remark: the hit was right then.
    """
    marks = validity_marks(db, [hit.note.row for hit in hits], viewer)
    for hit in hits if marks else ():
        mark = marks.get(hit.note.row)
        if mark:
            hit.why.append(mark)
            if query.as_of is None:
                hit.passage = f"[{mark}] {hit.passage}"
    return hits


def _is_asked_with_or(text: str) -> bool:
    """Whether a text is told, or a plain question: any of its words may match."""
    return parse.is_told(text) or (parse.is_question(text) and parse.is_plain(text))


@dataclass(frozen=True, slots=True)
class _QueryKind:
    """The kind of a query that must match with all its words.

    `is_long`: it has words enough to be repeated with OR. `is_certain`: it is certainly a question.
    `is_relaxed`: it is asked with OR where nothing holds all its words.
    """

    is_long: bool
    is_certain: bool
    is_relaxed: bool

    @classmethod
    def of(cls, text: str, parsed: parse.ParsedQuery) -> _QueryKind:
        """The kind of a query, read and as it was written."""
        is_question = parse.is_question(text)
        is_pasted = len(parsed.terms) >= _PROSE
        is_long = parse.relaxable(parsed, quotes=is_question or is_pasted)
        is_short = parse.is_short_question(text) and parse.relaxable(parsed, quotes=True, least=1)
        if is_long:
            is_certain = is_question
        else:
            is_certain = is_short and parse.is_certain_question(text)
        return cls(is_long, is_certain, is_long or is_short or is_pasted)


@dataclass(slots=True)
class _Search:
    """One page of one search: `limit` hits from `offset` on."""

    context: SearchContext
    limit: int
    offset: int
    explain: bool

    def run(self, today: date | None, near: Nearness | None) -> Hits:
        """Run the query: as a question if it is one, then with all words, then relaxed or
        respelled.
        """
        text = self.context.query.text
        relaxed: Hits | None = None
        if _is_asked_with_or(text):
            relaxed = self._relaxed(today, near)
            if relaxed.total:
                return relaxed
        parsed = parse.parse(text)
        if not parsed.clauses:
            return Hits([], 0)
        kind = _QueryKind.of(text, parsed)
        if relaxed is None and parsed.bare and kind.is_certain:
            relaxed = self._relaxed(today, near)
            if relaxed.total:
                return relaxed

        hits = self._strict(parsed, today)
        if kind.is_long and 0 < hits.total < self.limit and parse.says_much(parsed):
            return self._filled_up(hits, parsed, today, near)
        if hits.total:
            return hits
        if kind.is_relaxed:
            return self._relaxed(today, near) if relaxed is None else relaxed
        respelled = self._search_respelled(parsed, today)
        if respelled.total or not parse.relaxable(parsed, least=2):
            return respelled
        return self._relaxed(today, near)

    def _filled_up(
        self, hits: Hits, parsed: parse.ParsedQuery, today: date | None, near: Nearness | None
    ) -> Hits:
        """Add to `hits`, the notes with all words, notes with some of them.

        This is for a search whose hits do not fill a page.
        """
        from_start = _Search(self.context, self.offset + self.limit, 0, self.explain)
        if self.offset:
            hits = from_start._strict(parsed, today)
        return from_start._relaxed(today, near, hits.hits, self.offset)

    def _strict(self, parsed: parse.ParsedQuery, today: date | None) -> Hits:
        """All words must match; notes that contain them as whole words come first."""
        context = self.context
        whole = context.match(parsed, whole=True)
        loose = context.match(parsed)
        rows, total = context.matches(loose)
        if not total:
            return Hits([], 0)
        whole_rows, whole_total = (rows, total) if whole == loose else context.matches(whole)
        order, best = self._candidates(parsed, whole, whole_rows, whole_total, whole=True)
        count = len(best)
        if whole_total <= MAX_RANKED and self.offset + self.limit > whole_total < total:
            other_rows, more = self._candidates(
                parsed, loose, _without(rows, whole_rows), total - whole_total
            )
            order = order + _without(other_rows, order)
            best = best + _without(more, best)
        reading = ChunkReading(
            Ranking(context, context.query.text, today, query=parsed, given=best)
        )
        for part in (best[:count], best[count:]):
            inside = set(part)
            best_first = [row for row in reading.order if row in inside]
            ranked = iter(_as_typed_first(best_first, reading, parsed))
            order = [next(ranked) if row in inside else row for row in order]
        page_rows = order[self.offset : self.offset + self.limit]
        if len(page_rows) < self.limit:
            skip = max(0, self.offset - len(order))
            room = self.limit - len(page_rows)
            all_rows, total = (
                (rows, total)
                if len(rows) == total
                else context.matches(loose, len(order) + skip + room)
            )
            page_rows += _without(all_rows, order)[skip : skip + room]
        return Hits(self._hits(reading, page_rows), total)

    def _candidates(
        self, query: parse.ParsedQuery, match: str, rows: list[int], total: int, whole: bool = False
    ) -> tuple[list[int], list[int]]:
        """Choose the best candidates. Returns all rows, best first, and the rows to read.

        query: the query.
        match: its FTS5 expression.
        rows: the newest rows that match.
        total: how many rows match.
        whole: whether only whole words count.

        If very many match, notes with the words in title, headings or tags take part at any age.
        """
        context = self.context
        ranked = rows
        if _BEST < len(rows) <= _MAX_SORTED or (len(rows) > _MAX_SORTED and len(query.terms) > 1):
            ranked = context.by_bm25(
                query, match, rows, max(self.offset + self.limit, _BEST), whole
            )
        if total > min(len(rows), _MAX_SORTED):
            named_rows = context.named(match)[:_NAMED]
        else:
            named_rows = []
        if total > _BEST:
            same = context.same_title(match)
        else:
            same = []
        extra = [row for row in dict.fromkeys([*same, *named_rows]) if row not in ranked[:_BEST]]
        if extra and context.is_filtered:
            extra = context.passing(extra)
        best = ranked[:_BEST] + extra
        return best + _without(ranked, best), best

    def _search_respelled(self, parsed: parse.ParsedQuery, today: date | None) -> Hits:
        """Correct one or two bare words that match nothing.

        Words that no note contains are replaced by known words with one letter added, removed or
        changed.
        """
        if not parsed.bare or len(parsed.clauses) != 1:
            return Hits([], 0)
        spelled: list[str] = []
        choices: list[list[parse.Term]] = []
        for term in parsed.terms:
            if self.context.is_held(term):
                choices.append([term])
            else:
                if len(term.words) == 1:
                    mended = self.context.spellings(term.words[0])[:_MAX_SPELLINGS]
                else:
                    mended = []
                spelled += mended
                choices.append(
                    [spelled_term for word in mended if (spelled_term := parse.term(word))]
                )
        if not spelled or not all(choices):
            return Hits([], 0)
        hits = self._strict(
            parse.ParsedQuery(tuple(map(parse.Clause, product(*choices))), bare=True), today
        )
        for hit in hits:
            held_words = [word for word in spelled if any(word in reason for reason in hit.why)]
            hit.why.append(f"spelled: {', '.join(held_words or spelled)}")
        hits.relaxed = bool(hits.hits)
        return hits

    def _relaxed(
        self, today: date | None, near: Nearness | None, first: Sequence[Hit] = (), skip: int = 0
    ) -> Hits:
        """Search for notes with any of the informative words. The notes `first` come before all
        others; the first `skip` are left out.
        """
        limit = self.limit
        offset = self.offset
        ranking = Ranking(self.context, self.context.query.text, today, near)
        if ranking.is_told:
            read = READ_TOLD
        else:
            read = READ
        reading = ChunkReading(ranking, read)
        rows = reading.order[offset : offset + limit]
        if len(rows) < limit:
            begin = max(0, offset - len(reading.rows))
            stop = offset + limit - len(reading.rows)
            rows += _without(ranking.page(read, stop + READ_LONG), reading.rows)[begin:stop]
        rows_shown = {hit.note.row for hit in first}
        hits = self._hits(reading, _without(rows, rows_shown)[: max(0, limit - len(first))], first)
        return Hits(
            hits[skip:], ranking.total(counted_to(offset + limit) + 1, rows_shown), relaxed=True
        )

    def _hits(
        self, reading: ChunkReading, rows: Sequence[int], first: Sequence[Hit] = ()
    ) -> list[Hit]:
        """Notes as hits, after those that come `first`."""
        context = self.context
        other_texts = context.texts(_without(rows, reading.texts), reading.terms)
        texts = reading.texts | {note_text.row: note_text for note_text in other_texts}
        notes = infos(context.db, rows)
        hits = list(first)
        for row in rows:
            passage, line = reading.shown(texts[row])
            score = min([round(reading.score(row), 6), *(hit.score for hit in hits[-1:])])
            shares = adding_up(reading.shares(row), score) if self.explain else {}
            why = reading.why(texts[row]) + [
                f"{name} {value:.3f}" for name, value in shares.items()
            ]
            if not reading.is_strict:
                why.append("relaxed")
            hits.append(Hit(notes[row], passage, score, why, line, shares))
        _show_observations(context.db, hits, context.query, reading.terms)
        return hits


def adding_up(shares: Mapping[str, float], score: float) -> dict[str, float]:
    """The shares of a score to three decimals, so that they add up to the score to three decimals.

    What rounding leaves goes to the largest share. What keeps a hit from standing before one that
    comes first is the share `cap`.
    """
    if not shares:
        return {}
    thousandths = {name: round(1000 * share) for name, share in shares.items()}
    rest = round(1000 * score) - sum(thousandths.values())
    largest = max(thousandths, key=lambda name: abs(thousandths[name]))
    is_rounding = abs(rest) <= len(thousandths)
    changed_name = largest if is_rounding else "cap"
    thousandths[changed_name] = thousandths.get(changed_name, 0) + rest
    return {name: share / 1000 for name, share in thousandths.items() if share}


def _as_typed_first(rows: list[int], reading: ChunkReading, query: parse.ParsedQuery) -> list[int]:
    """Move the rows to the front that have the marked letters of the query as typed: `schön` before
    `schon`.
    """
    typed = [_composed(term.text) for term in query.terms if is_changed(term.text)]
    if not typed:
        return rows
    other_rows = [row for row in rows if not _holds_all(reading.texts.get(row), typed)]
    return [*_without(rows, other_rows), *other_rows]


def _holds_all(note: NoteText | None, texts: Sequence[str]) -> bool:
    if note is None:
        return False
    written = _composed(f"{note.called}\n{note.text}")
    return all(text in written for text in texts)


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()


def _without(rows: Sequence[int], excluded: Iterable[int]) -> list[int]:
    excluded_rows = set(excluded)
    return [row for row in rows if row not in excluded_rows]


def _kind_of_character(char: str) -> str:
    """Whether a character is "han", part of a "word", or "" for neither."""
    # ASCII first: most text never needs the expression, which takes long to compile.
    if not char.isascii() and re.match(_HAN, char):
        return "han"
    if char.isalpha() or char.isdecimal():
        return "word"
    return ""


def smart_tokens(text: str) -> list[str]:
    """Each Han character and each run of other letters and digits of `text`, lower case, in order,
    each once.
    """
    unique_tokens: dict[str, None] = {}
    for kind, run in groupby(text, _kind_of_character):
        if kind:
            characters = "".join(run)
            unique_tokens.update(
                dict.fromkeys(characters if kind == "han" else [characters.lower()])
            )
    return list(unique_tokens)


def smart_search(
    db: sqlite3.Connection, text: str, query: Query, *, viewer: str | None, top: int = 10
) -> SmartResult:
    """The `top` best notes (0 = all) that pass the filters of `query`. The query must name
    projects.

    Every such note is read: a token counts inside longer words too, which no full-text table could
    answer, and ten thousand texts are read in some tens of milliseconds. Best first, then newest,
    then by id. Stop words count only in a text that holds nothing else. Raises InvalidInput when
    `text` contains no letter or digit.
    """
    query_tokens = smart_tokens(sqlite_text(text))
    if not query_tokens:
        raise InvalidInput("no valid tokens in query")
    counted = _counted_tokens(text, query_tokens)
    with search_context(db, query, viewer) as context:
        scored = [
            candidate
            for content in context.contents()
            if (candidate := _smart_score(content, counted)) is not None
        ]
        archived = context.archived([candidate.row for candidate in scored])
        scored.sort(key=lambda candidate: candidate.order(candidate.row in archived))
        best = scored[: top or None]
        notes = in_order(db, [candidate.row for candidate in best])
        is_left_out = not scored and bool(context.invalid)
    if is_left_out and query.as_of is None:
        return smart_search(db, text, query.replace(valid_at=None), viewer=viewer, top=top)
    memories = [
        ScoredMemory(
            note, round(candidate.final_score(candidate.row in archived), 2), candidate.tokens
        )
        for note, candidate in zip(notes, best, strict=True)
    ]
    return SmartResult(query_tokens, memories, len(scored))


class _SmartCandidate(NamedTuple):
    """A note that holds some of the tokens, and what it is ordered by."""

    score: float
    created: int
    identity: str
    row: int
    tokens: list[str]

    def final_score(self, is_archived: bool) -> float:
        """The score, which is less for an archived memory."""
        return self.score * WEIGHTS.archived if is_archived else self.score

    def order(self, is_archived: bool) -> tuple[float, int, str]:
        """Sorts the best first, then the newest, then by id."""
        return -self.final_score(is_archived), -self.created, self.identity


def _counted_tokens(text: str, query_tokens: list[str]) -> list[str]:
    """The tokens of a query that count: all but stop words, unless there are no others."""
    telling = set(smart_tokens(" ".join(informative_words(sqlite_text(text)))))
    little = stop_words() | set(ascii_lowercase)
    counted = [
        token
        for token in query_tokens
        if (token in telling if is_cjk(token) else token not in little)
    ]
    return counted or query_tokens


def _smart_score(
    content: tuple[int, int, str, str | None, str], counted: Sequence[str]
) -> _SmartCandidate | None:
    """A note's score by how often it holds each token, up to five times; None without any."""
    row, created, identity, tags, body = content
    low = body.lower()
    # The rest of a long text need not be read
    counts = {token: count for token in counted if (count := len(low.split(token, 5)) - 1)}
    if not counts:
        return None
    score = sum(_COUNT_SCORES[count] for count in counts.values())
    if tags:
        tagged = {tag.lower() for tag in json.loads(tags)}
        score += _TAG_SCORE * sum(token in tagged for token in counts)
    return _SmartCandidate(score, created, identity, row, list(counts))


def _plain_hits(db: sqlite3.Connection, notes: Sequence[NoteInfo], query: Query) -> list[Hit]:
    hits = []
    for note in notes:
        front, text = text_of(db, note.row)
        passage, line = shortened(text, 0, len(text))
        hits.append(Hit(note, passage, 0.0, [], line + front.count("\n")))
    _show_observations(db, hits, query, ())
    return hits


def _show_observations(
    db: sqlite3.Connection, hits: list[Hit], query: Query, terms: Sequence[parse.Term]
) -> None:
    """Replace the snippets by matching observations, if the query filters by observation category."""
    categories = {name.strip().casefold() for name in (*query.categories, *query.any_category)}
    if not categories:
        return
    words = list(chain.from_iterable(term.words for term in terms))
    for hit in hits:
        visible_observations = [
            observation
            for observation in observations(db, hit.note)
            if (observation.category or "").strip().casefold() in categories
        ]
        if visible_observations:
            best = max(
                visible_observations,
                key=lambda this_observation: sum(
                    word in this_observation.content.lower() for word in words
                ),
            )
            hit.passage = best.content[:200]
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
) -> list[Hit]:
    """The chunks that best answer `question`, best first.

    max_chars: the most characters that they take as `format_evidence` writes them.

    A hit is one turn, one list item or one passage of about 200 words, cut from the note's text; a
    note may give several, and what repeats an earlier one is left out. `today` is what "last week"
    in the question counts from; `near` as for `Ranking`; notes for which `skip` is true are left
    out, and chunks less relevant than `least` (`Ranking.relevance`). There are none where no chunk
    is as relevant to the question as `floor` (`ChunkReading.says_enough`). What is not valid at
    `filters.valid_at` is left out unless nothing else answers; it is marked.
    """
    query = filters.replace(
        text=sqlite_text(spoken(question)), projects=None if projects is None else tuple(projects)
    )
    with search_context(db, query, viewer) as context:
        ranking = Ranking(context, query.text, today, near)
        if context.spans and query.as_of is None:
            marks = validity_marks(db, ranking.features, viewer)
        else:
            marks = {}
        reading = ChunkReading(ranking, _MAX_NOTES, every=True)
        evidence: list[Hit] = []
        if not floor or reading.says_enough(floor):
            evidence = list(_chunks_that_fit(db, reading, max_chars, marks, skip, least))
        if evidence or not context.invalid or query.as_of is not None:
            return evidence
    return find_evidence(
        db,
        question,
        viewer=viewer,
        max_chars=max_chars,
        projects=projects,
        today=today,
        near=near,
        filters=filters.replace(valid_at=None),
        skip=skip,
        least=least,
        floor=floor,
    )


def format_evidence(
    hits: Sequence[Hit], zone: tzinfo | None = None, last: Container[int] = ()
) -> str:
    """Write evidence as text: a line with title, day and address, and below it the note's passages.

    hits: the passages.
    zone: the time zone of the days. None means the system's.
    last: rows of notes that come last, under a separate line.

    Lines of passages are indented by two blanks, so none can pass for a line about a note. Notes of
    one folder and day whose address repeats their title share a line, and each begins with its
    name. A memory begins with the first 8 characters of its id.
    """
    lines = {hit.note.row: _note_line(hit.note, zone) for hit in hits}
    groups: dict[tuple[bool, str], list[Hit]] = {}
    for hit in hits:
        groups.setdefault(lines[hit.note.row].group, []).append(hit)
    evidence_lines = []
    for (_, place), some in groups.items():
        some.sort(
            key=lambda hit: (
                hit.note.row in last,
                hit.note.created,
                hit.note.permalink,
                hit.line,
            )
        )
        rows = list(dict.fromkeys(hit.note.row for hit in some))
        line = lines[rows[0]]
        if len(rows) == 1 and not line.is_memory:
            evidence_lines.append(_BELOW.join([line.heading, *(hit.passage for hit in some)]))
            continue
        parts = [flat(f"({place})")]
        for row in rows:
            parts.append(
                f"{lines[row].name}: "
                + _BELOW.join(hit.passage for hit in some if hit.note.row == row)
            )
        evidence_lines.append("\n".join(parts))
    return "\n\n".join(evidence_lines)


class _NoteLine(NamedTuple):
    """The way evidence names a note.

    is_memory: whether it is named by its text and its id, as memories are (contract 001, 2).
    group: notes of one group share a line: day and folder if the file name repeats the title, or
        else day and address.
    name: its name in a shared line.
    heading: its own line. A title that the address repeats is left out.
    """

    is_memory: bool
    group: tuple[bool, str]
    name: str
    heading: str


def _note_line(note: NoteInfo, zone: tzinfo | None) -> _NoteLine:
    last = note.permalink.rpartition("/")[2]
    is_memory = bool(note.id) and note.permalink.endswith(f"-{note.id[:_ID]}")
    is_title_said = is_memory or slug(note.title) == last
    is_project_said = note.permalink.startswith(f"{note.project.removeprefix('.')}/")
    if is_project_said:
        address = note.permalink
    else:
        address = f"{note.project}: {note.permalink}"
    day = day_of(note, zone) + (f", {ARCHIVED}" if note.phase == ARCHIVED else "")
    if is_title_said and "/" in address:
        place = address.rpartition("/")[0]
    else:
        place = address
    if is_title_said:
        title = ""
    else:
        title = f"{' '.join(note.title[:_TITLE].split())} "
    if is_memory:
        name = note.id[:_ID]
    else:
        name = flat(last)
    return _NoteLine(
        is_memory, (is_title_said, f"{day}, {place}"), name, flat(f"{title}({day}, {address})")
    )


def _chunks_that_fit(
    db: sqlite3.Connection,
    ranking: ChunkReading,
    space: int,
    marks: Mapping[int, str],
    skip: Callable[[NoteInfo], bool] | None,
    least: float,
) -> Iterator[Hit]:
    """The best chunks that fit into `space` characters together with the lines about their notes."""
    notes = infos(db, ranking.rows)
    given_rows: set[int] = set()
    groups: set[tuple[bool, str]] = set()
    lines: dict[int, _NoteLine] = {}
    seen_words: list[frozenset[str]] = []
    for row, start, stop, score in ranking.relevant(least):
        text = ranking.texts[row]
        note = notes[row]
        if skip is not None and skip(note):
            continue
        passage = (f"[{marks[row]}] " if row in marks else "") + text.text[start:stop].strip()
        if row in lines:
            line = lines[row]
        else:
            line = lines.setdefault(row, _note_line(note, None))
        head = 1
        if row not in given_rows:
            name = len(line.name) + 3
            if line.is_memory:
                whole = len(line.group[1]) + 4 + name
            else:
                whole = len(line.heading) + 3
            if line.group in groups:
                head = name
            else:
                head = whole
        passage = visible(passage).replace("\n", _BELOW)
        head += len(_BELOW) - 1
        if len(passage) + head > space:
            if given_rows or head >= space:
                continue
            passage = passage[: space - head].rstrip()
        words = frozenset(tokens(passage))
        if not passage or any(not words - other_words - stop_words() for other_words in seen_words):
            continue
        space -= len(passage) + head
        given_rows.add(row)
        groups.add(line.group)
        seen_words.append(words)
        number = text.front.count("\n") + text.text.count("\n", 0, start) + 1
        yield Hit(note, passage, round(score, 6), ranking.why(text), number)
