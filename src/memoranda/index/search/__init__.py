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
# Of the notes that contain all words this many of the best by BM25 are read, and this many that
# match by name.
_NAMED = 10
# One word's more matches stay newest first.
_MAX_SORTED = 300
# This many spellings of a mistyped word are looked for.
_MAX_SPELLINGS = 3

_HAN = (
    "[\u2e80-\u2fdf\u3005\u3007\u3021-\u3029\u3038-\u303b"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd]"
)
# What a token adds that occurs this many times in a memory; five or more times count as five.
_COUNT_SCORES = (0.0, 1.0, 1.5, 2.0, 2.0, 3.0)
_TAG_SCORE = 1.0
# So many terms are rather a text pasted whole, whatever quotes and capitals stand between them.
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
        return _marked(db, Hits(_plain_hits(db, notes, query), total), query, viewer)
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
        return _marked(db, Hits(hits, len(notes)), query, viewer)
    with search_context(db, query, viewer) as context:
        result = _Search(context, limit, offset, explain).run(today, near)
        if result.total > (most := counted_to(offset + limit)):
            result.total = most
            result.is_lower_bound = True
        if result.total or not context.invalid or query.as_of is not None:
            if context.spans:
                return _marked(db, result, query, viewer)
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


def _marked(db: sqlite3.Connection, hits: Hits, query: Query, viewer: str | None) -> Hits:
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
        is_question = parse.is_question(text)
        if parse.is_told(text) or (is_question and parse.is_plain(text)):
            relaxed = self._relaxed(today, near)
        else:
            relaxed = None
        if relaxed is not None and relaxed.total:
            return relaxed
        parsed = parse.parse(text)
        if not parsed.clauses:
            return Hits([], 0)
        is_prose = is_question or len(parsed.terms) >= _PROSE
        is_long = parse.relaxable(parsed, quotes=is_prose)
        is_short = parse.is_short_question(text) and parse.relaxable(parsed, quotes=True, least=1)
        if is_long:
            is_certain = is_question
        else:
            is_certain = is_short and parse.is_certain_question(text)
        if relaxed is None and parsed.bare and is_certain:
            relaxed = self._relaxed(today, near)
            if relaxed.total:
                return relaxed
        hits = self._strict(parsed, today)
        if is_long and 0 < hits.total < self.limit and parse.says_much(parsed):
            # Notes that hold all words, fewer than a page, and after them those that hold some: on
            # all pages.
            from_start = _Search(self.context, self.offset + self.limit, 0, self.explain)
            if self.offset:
                first = from_start._strict(parsed, today)
            else:
                first = hits
            return from_start._relaxed(today, near, first.hits, self.offset)
        if hits.total:
            return hits
        if is_long or is_short or len(parsed.terms) >= _PROSE:
            if relaxed is None:
                return self._relaxed(today, near)
            return relaxed
        respelled = self._respelled(parsed, today)
        if respelled.total or not parse.relaxable(parsed, least=2):
            return respelled
        return self._relaxed(today, near)

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

    def _respelled(self, parsed: parse.ParsedQuery, today: date | None) -> Hits:
        """One or two bare words that match nothing, with those that no note contains corrected within
        one edit.
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
        """Any of the informative words may match; `first` come before all others. The first `skip`
        are left out.
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
            if self.explain:
                shares = reading.shares(row)
            else:
                shares = {}
            score = min([round(reading.score(row), 6), *(hit.score for hit in hits[-1:])])
            why = reading.why(texts[row]) + [
                f"{name} {value:.3f}" for name, value in shares.items()
            ]
            if not reading.is_strict:
                why.append("relaxed")
            hits.append(Hit(notes[row], passage, score, why, line, shares))
        _show_observations(context.db, hits, context.query, reading.terms)
        return hits


def _as_typed_first(rows: list[int], reading: ChunkReading, query: parse.ParsedQuery) -> list[int]:
    """`rows`, before the others those that hold the marked letters of the query as they were typed:
    `schön` before `schon`."""
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
    """The `top` best notes (0 = all) among those that pass the filters of `query`, which must name
    projects.

    Every such note is read: a token counts inside longer words too, which no full-text table could
    answer, and ten thousand texts are read in some tens of milliseconds. Best first, then newest,
    then by id. Stop words count only in a text that holds nothing else. Raises InvalidInput when
    `text` contains no letter or digit.
    """
    query_tokens = smart_tokens(sqlite_text(text))
    if not query_tokens:
        raise InvalidInput("no valid tokens in query")
    telling = set(smart_tokens(" ".join(informative_words(sqlite_text(text)))))
    little = stop_words() | set(ascii_lowercase)
    counted = [
        this_token
        for this_token in query_tokens
        if (this_token in telling if is_cjk(this_token) else this_token not in little)
    ] or query_tokens
    found_scored: list[tuple[float, int, str, int, list[str]]] = []
    with search_context(db, query, viewer) as context:
        for row, created, identity, tags, body in context.contents():
            # Counted up to five times: the rest of a long text need not be read
            low = body.lower()
            counts = {token: count for token in counted if (count := len(low.split(token, 5)) - 1)}
            if counts:
                score = sum(_COUNT_SCORES[count] for count in counts.values())
                tagged = {load.lower() for load in json.loads(tags)} if tags else ()
                score += _TAG_SCORE * sum(token in tagged for token in counts)
                found_scored.append((-score, -created, identity, row, list(counts)))
        archived = context.archived([row for *_, row, _ in found_scored])
        if archived:
            found_scored = [
                (
                    scored_row[0] * WEIGHTS.archived
                    if scored_row[3] in archived
                    else scored_row[0],
                    *scored_row[1:],
                )
                for scored_row in found_scored
            ]
        found_scored.sort()
        best = found_scored[: top or None]
        notes = in_order(db, [row for *_, row, _ in best])
        is_left_out = not found_scored and bool(context.invalid)
    if is_left_out and query.as_of is None:
        return smart_search(db, text, query.replace(valid_at=None), viewer=viewer, top=top)
    scored = [
        ScoredMemory(note, round(-scored_row[0], 2), scored_row[4])
        for note, scored_row in zip(notes, best, strict=True)
    ]
    return SmartResult(query_tokens, scored, len(found_scored))


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
) -> list[Hit]:
    """The chunks that best answer `question`, best first, at most `max_chars` characters as
    `format_evidence` writes them.

    A hit is one turn, one list item or one passage of about 200 words, cut from the note's text; a
    note may give several, and what repeats an earlier one is left out. `today` is what "last week"
    in the question counts from; `near` as for `Ranking`; notes for which `skip` is true are left
    out, and chunks less relevant than `least` (`Ranking.relevance`). What is not valid at
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
        evidence = list(
            _fitting(
                db, ChunkReading(ranking, _MAX_NOTES, every=True), max_chars, marks, skip, least
            )
        )
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


def _fitting(
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
