"""One query against the index: its filters and terms as FTS5 expressions, and all SQL of the
search.

Even for very common terms the cost is bounded: only the newest of many matches are looked at.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from memoranda.index import filters, superseding
from memoranda.index.database import held, snapshot, version
from memoranda.index.filters import (
    PROJECT,
    SCOPE,
    any_of,
    expression,
    hidden_scopes,
    passes,
    project_ids,
    quoted,
    seen_by,
    token,
    wanted,
)
from memoranda.index.listing import columns, passing
from memoranda.index.resolve import key
from memoranda.index.rows import FIRST_PASSAGE, property_text
from memoranda.index.search.parse import ParsedQuery, Term, term
from memoranda.index.search.weights import COLUMNS
from memoranda.index.search.words import inflected, inflections, one_edit
from memoranda.note.model import ARCHIVE_PROJECT
from memoranda.query import Query
from memoranda.text.pattern import lazy_pattern
from memoranda.text.tokens import query_text, stop_words

COMMON = 2_000
"""A word in more notes is not also matched as a prefix."""
MAX_RANKED = 1_000
"""Of more matches only this many, the newest, are ranked."""
MAX_COUNTED = 10_000
"""Beyond this many matches a total only says that there are more. To count a note is to decode its
entry in the list of each word: of a word in every third note, most of what a search takes."""
NAMES = "name_fts"
STEMS = "stem_fts"
"""The full-text tables of titles, headings and tags, and of stems."""

# The weights of the columns of a full-text table as bm25() takes them; facets count nothing.
_COLUMN_WEIGHTS = {
    "note_fts": "{body:g}, {title:g}, {headings:g}, {tags:g}, {address:g}, 0".format(**COLUMNS),
    NAMES: "{title:g}, {headings:g}, {tags:g}, 0".format(**COLUMNS),
}
# Bytes of counts and rows that are remembered.
_CACHE_BYTES = 20_000_000
# A word that more notes hold is not also taken as a beginning.
_RARE_ENOUGH = 5_000
# From this many notes on, as `size` counts them, the words that begin with a prefix are asked for in
# its place. In fewer FTS5 finds the prefix faster than we the words: of 30,000 notes two words of
# one in less than half the time.
_SPELLED_OUT_FROM = 1 << 17
# More words that begin with a prefix are left to FTS5, which then joins all their notes.
_MAX_LONGER = 1_000
# Up to this number, a query names its rows, and sorts equal scores by time.
_FEW_ROWS = 200
# Notes whose names match that are ranked before all others.
_MAX_NAMED = 500
# Fewer than these stay in their order; more are sorted by how well their names match.
_NAMED_SORTED = 10
_NO_SUCH_NOTE = '"\uf8ff"'
_MIN_SIZE = 4
# Letters of each part of a compound that is taken apart.
_LEAST_PART = 3
# Letters of each half of a word that is looked for in two words, and of the whole.
_LONGEST_PARTED = 24
_SPELLED_LENGTHS = range(5, 20)
# Letters at the beginning that a misspelt word has right.
_SPELLED_PREFIX = 3
# Spellings looked for in the place of one word.
_MAX_SPELLINGS = 8
# Counting ends here: which of two common spellings is the commoner does not matter.
_SPELLED_COUNT = 100
# A string of an FTS5 expression; one word as a prefix, with the word.
_PREFIX = lazy_pattern(r'"(?:[!#-/:-@[-`{-~ ]*([A-Za-z0-9]+)[!#-/:-@[-`{-~ ]*"\*|(?:[^"]|"")*")')
# A prefix, whether it is a word or not, and the words that begin with it. No character of a word
# comes before char(1): each word is looked up behind the one before, whatever notes hold that.
_LONGER = (
    "with recursive longer(word) as (select :prefix union all"
    " select (select term from words where term >= word || char(1) limit 1) from longer where word glob :prefix || '*'"
    " limit :most) select word from longer where word glob :prefix || '*'"
)
_GIVEN = "(select value from json_each(?))"
# Whether :viewer sees the note of feature `f`.
_VISIBLE = (
    "(:viewer is null or exists"
    f" (select 1 from note n where n.row = f.row and {seen_by('n.scope', ':viewer')}))"
)
_SIDE = (
    "(select group_concat(row) from (select f.row from feature f where f.conversation = c.conversation"
    f" and (f.position, f.row) {{side}} (c.position, c.row) and {_VISIBLE}"
    " order by f.position {way}, f.row {way} limit 3))"
)
_NEIGHBORS = (
    f"select r.value, {_SIDE.format(side='<', way='desc')}, {_SIDE.format(side='>', way='asc')}"
    " from json_each(:rows) r join feature c on c.row = r.value"
)


@dataclass(slots=True)
class NoteText:
    """The texts of a candidate that are read.

    called: its title, aliases, headings and tags.
    address: its path, and the values of its header.
    spans: the parts of its text to read. For a long text, the passages that match.
    """

    row: int
    project: str
    names: list[str]
    called: str
    address: str
    front: str
    text: str
    spans: list[tuple[int, int]]


class Features(NamedTuple):
    """The values computed for a note when it was indexed: see schema.sql, table `feature`."""

    row: int
    conversation: int | None
    position: int
    speaker: str | None
    day: str
    words: int
    question: int
    first_person: int
    has_time: int
    is_long: int


def counted_to(stop: int) -> int:
    """The number up to which matches are counted for a page that ends at `stop`. Beyond it, it is
    only known that there are more.
    """
    return max(MAX_COUNTED, stop)


class QueryCache(dict[Hashable, Any]):
    """The results of queries on one connection, until the index changes or the cache is full.

    `bench/asking.py` shows that a question takes a quarter longer without it.
    """

    def __init__(self) -> None:
        self.version: tuple[int, int] | None = None
        self._bytes = 0

    def keep(self, values: Mapping[Any, Any], size: int) -> None:
        """Add values of about `size` bytes in all, in addition to 250 for each."""
        self._bytes += size + 250 * len(values)
        if self._bytes > _CACHE_BYTES:
            self.clear()
            self._bytes = size + 250 * len(values)
        self.update(values)


@contextmanager
def search_context(
    db: sqlite3.Connection, query: Query, viewer: str | None
) -> Iterator[SearchContext]:
    """A context, inside of which all SQL sees one state of the index. Nothing uncommitted is
    cached.
    """
    if db.in_transaction:
        cache = QueryCache()
    else:
        cache = held(db, QueryCache)
    with snapshot(db):
        if cache.version != (now := version(db)):
            cache.clear()
            cache.version = now
        yield SearchContext(db, query, viewer, cache)


class SearchContext:
    """A query and its caller. `viewer` is the agent that searches (None = the owner)."""

    def __init__(self, db: sqlite3.Connection, query: Query, viewer: str | None, cache: QueryCache):
        self.db = db
        self._cache = cache
        self.query = query
        self.needed, self.unwanted = wanted(db, query, viewer, has_text=True)
        self._viewer = viewer
        self._conditions, self._values = columns(db, query, viewer)
        self.by_title = query.search_type == "title"
        if self.by_title:
            self.table = NAMES
        else:
            self.table = "note_fts"
        if self.by_title:
            self._column = "title : "
        else:
            self._column = ""
        self.is_filtered = bool(self._conditions or query.metadata or query.contains)
        """Whether there are filters FTS5 cannot apply."""
        self._projects = project_ids(db)
        moment = query.as_of or query.valid_at
        if moment is None:
            self.invalid = []
        else:
            self.invalid = filters.invalid_at(self.spans, moment)
        """The notes that are left out because they are not valid at the time asked about."""
        self._valid = self._valid_only("rowid")

    @cached_property
    def spans(self) -> list[filters.Span]:
        """The notes that are not valid all the time."""
        if "spans" not in self._cache:
            spans = superseding.valid_spans(self.db)
            self._cache.keep({"spans": spans}, 100 * len(spans))
        return self._cache["spans"]

    def _valid_only(self, column: str) -> str:
        """A further SQL condition on the column that holds the row.

        Empty if nothing is left out.
        """
        if condition := filters.excluded(self.invalid, column):
            return f" and {condition}"
        return ""

    def with_filters(self, text: str) -> str:
        """An FTS5 expression together with all filters FTS5 can apply."""
        if not text:
            return expression(*wanted(self.db, self.query, self._viewer))
        return expression(self.needed, self.unwanted, text)

    def loose(self, query_term: Term) -> str:
        """The FTS5 expression of a term, with prefixes unless it is very short, very common or a
        possessive.
        """
        last = query_term.words[-1]
        is_prefix = query_term.open
        if is_prefix and len(last) <= 2:
            is_possessive = last == "s" and len(query_term.words) > 1
            is_prefix = not is_possessive and self.held(query_term) == 0
        text = self._expression_of(query_term, is_prefix and self.held(query_term) <= COMMON)
        other_forms = [
            f"{self._column}{quoted(query_text(alternative)[0])}"
            for alternative in self.alternatives(query_term)
        ]
        if other_forms:
            return f"({' OR '.join([text, *other_forms])})"
        return text

    def alternatives(self, query_term: Term) -> list[str]:
        """Other texts that find a term: its word in another form, as two words, or in another
        spelling.

        Words that no note contains are left out.
        """
        if not query_term.is_bare:
            return []
        cache_key = ("alternatives", query_term)
        if cache_key not in self._cache:
            words = list(query_term.others)
            if len(query_term.words) == 1 and not query_term.single:
                words += inflections(query_term.words[0])
                words += self._in_two_words(query_term.words[0])
            elif len(query_term.words) == 2 and query_term.words[1] == "s":
                words.append(query_term.words[0])
            words = [word for word in dict.fromkeys(words) if self._is_anywhere(word)]
            self._cache.keep({cache_key: words}, 40 * len(words))
        return self._cache[cache_key]

    def _in_two_words(self, word: str) -> list[str]:
        """`timezone` as `time zone`: all ways to part a word into two that some notes contain."""
        if not word.isascii() or not word.isalpha() or len(word) > _LONGEST_PARTED:
            return []
        ways = ((word[:at], word[at:]) for at in range(_LEAST_PART, len(word) - _LEAST_PART + 1))
        return [
            f"{first} {second}"
            for first, second in ways
            if stop_words().isdisjoint((first, second))
            and self._is_anywhere(first)
            and self._is_anywhere(second)
        ]

    def _is_anywhere(self, text: str) -> bool:
        """Whether any note contains the word or phrase, no matter who may see the note."""
        return self.count(f"{self._column}{quoted(query_text(text)[0])}", 1) > 0

    def match(self, query: ParsedQuery, *, whole: bool = False) -> str:
        """The FTS5 expression of a query with all filters; `whole` without prefixes."""
        form = self._expression_of if whole else self.loose
        parts = []
        for clause in query.clauses:
            positive = " AND ".join(map(form, clause.terms))
            # Any note but those without
            if not positive:
                if self._projects:
                    positive = any_of(PROJECT, map(str, self._projects.values()))
                else:
                    positive = _NO_SUCH_NOTE
            if clause.without:
                without = (
                    self._expression_of(excluded, excluded.open and excluded.text.endswith("*"))
                    for excluded in clause.without
                )
                positive = f"({positive}) NOT ({' OR '.join(without)})"
            parts.append(f"({positive})")
        return self.with_filters(" OR ".join(parts))

    def held(self, query_term: Term) -> int:
        """How many notes contain the term as whole words, counted up to COMMON + 1."""
        return self.count(self._column + query_term.whole, COMMON + 1)

    def is_held(self, query_term: Term) -> bool:
        """Whether any note the viewer sees matches the term."""
        return self.count(self._if_visible(self.loose(query_term)), 1) > 0

    def count(self, match: str, most: int, table: str = "") -> int:
        """How many notes match an FTS5 expression, counted up to `most`."""
        table = table or self.table
        match = self._spelled_out(match, table)
        counted = ("count", table, match + self._valid, most)
        if counted not in self._cache:
            sql = f"select count(*) from (select 1 from {table} where {table} match ?{self._valid} limit ?)"
            count = self.db.execute(sql, (match, most)).fetchone()[0]
            self._cache.keep({counted: count}, len(match))
        return self._cache[counted]

    def newest(self, match: str, limit: int, table: str = "") -> list[int]:
        """The newest rows that match an FTS5 expression."""
        table = table or self.table
        match = self._spelled_out(match, table)
        cache_key = ("newest", table, match + self._valid, limit)
        if cache_key in self._cache:
            return self._cache[cache_key]
        rows = f"select rowid from {table} where {table} match ?{self._valid} order by rowid desc limit ?"
        try:
            newest_rows = self.db.execute(
                f"select group_concat(rowid) from ({rows})", (match, limit)
            ).fetchone()[0]
        except sqlite3.OperationalError as error:
            if "phrase queries" not in str(error):
                raise
            # SQLite splits a word of a script it is too old to know, and STEMS has no phrases
            return []
        # A single text is read faster than many rows.
        result = json.loads(f"[{newest_rows or ''}]")
        self._cache.keep({cache_key: result}, len(match) + 40 * len(result))
        return result

    def matches(self, match: str, limit: int = MAX_RANKED) -> tuple[list[int], int]:
        """The newest rows that match and pass all filters, at most `limit`, and how many rows
        match.

        If more match than `counted_to` allows, the number is a lower bound.
        """
        most = counted_to(limit) + 1
        if not self.is_filtered:
            rows = self.newest(match, limit + 1)
            return rows[:limit], len(rows) if len(rows) <= limit else self.count(match, most)
        where = " and ".join([f"{self.table} match ?", *self._conditions]) + self._valid_only(
            "f.rowid"
        )
        matching_rows = self.db.execute(
            f"select f.rowid from {self.table} f join note n on n.row = f.rowid where {where}"
            " order by f.rowid desc limit ?",
            [
                self._spelled_out(match),
                *self._values,
                -1 if self.query.metadata or self.query.contains else most,
            ],
        )
        rows = passing(self.db, self.query, [row for (row,) in matching_rows])
        return rows[:limit], len(rows)

    def _spelled_out(self, match: str, table: str = "") -> str:
        """Replace a prefix in an expression by the words that begin with it.

        For a prefix, FTS5 joins the lists of all its words before it returns the first note. For
        words joined by OR it reads only as far as needed.
        """
        if table == STEMS or self.size < _SPELLED_OUT_FROM:
            return match
        return _PREFIX.sub(self._longer, match)

    def _longer(self, prefix: re.Match[str]) -> str:
        if prefix[1] is None:
            return prefix[0]
        cache_key = ("longer", prefix[0])
        if cache_key not in self._cache:
            rows = self.db.execute(
                _LONGER, {"prefix": prefix[1].lower(), "most": _MAX_LONGER + 1}
            ).fetchall()
            words = " OR ".join(
                [prefix[0].removesuffix("*"), *(quoted(word) for (word,) in rows[1:])]
            )
            if len(rows) > _MAX_LONGER:
                words = prefix[0]
            elif len(rows) > 1:
                words = f"({words})"
            self._cache.keep({cache_key: words}, len(words))
        return self._cache[cache_key]

    def passing(self, rows: Iterable[int]) -> list[int]:
        """The rows that pass the filters FTS5 cannot apply."""
        where = " and ".join([f"n.row in {_GIVEN}", *self._conditions])
        sql = f"select n.row from note n where {where}{self._valid_only('n.row')}"
        rows_passing = self.db.execute(sql, (_json(rows), *self._values))
        return passing(self.db, self.query, [row for (row,) in rows_passing])

    def visible(self, rows: Collection[int]) -> Collection[int]:
        """The rows that pass all filters and that the viewer sees."""
        if self.is_filtered:
            rows = self.passing(rows)
        if self.invalid:
            invalid = set(self.invalid)
            rows = [row for row in rows if row not in invalid]
        if not self.needed and not self.unwanted:
            return rows
        visible_rows = self.db.execute(
            f"select row, facet from text where row in {_GIVEN}", (_json(rows),)
        )
        return [row for row, facets in visible_rows if passes(facets, self.needed, self.unwanted)]

    def by_bm25(
        self, query: ParsedQuery, match: str, rows: list[int], most: int, whole: bool
    ) -> list[int]:
        """The best `most` of `rows` by BM25, equal ones newest first, then the others.

        Terms too common to distinguish notes are left out: bm25() looks at every note that contains
        a term.
        """
        form = self._expression_of if whole else self.loose
        table = self.table
        # A word on its own, without filters, is always used: the rows are all that contain it.
        rare = [
            query_term
            for query_term in query.terms
            if (match == f"(({form(query_term)}))" and not self.is_filtered)
            or self.count(self._column + query_term.whole, _RARE_ENOUGH + 1) <= _RARE_ENOUGH
        ]
        if not rare:
            return rows
        text = (" OR " if len(query.clauses) > 1 else " AND ").join(map(form, rare))
        condition = f"{table} match ? and {table}.rowid >= ?"
        values = [text, rows[-1]]
        # Without this condition, the rows are simply the newest.
        if len(rows) <= _FEW_ROWS or match != f"(({text}))" or self.is_filtered:
            condition += f" and +{table}.rowid in {_GIVEN}"
            values.append(_json(rows))
        source = table
        ties = f"{table}.rowid desc"
        if len(rows) <= _FEW_ROWS:
            source = f"{table} join note n on n.row = {table}.rowid"
            ties = "n.changed desc, n.permalink"
        ranked_rows = self.db.execute(
            f"select {table}.rowid from {source} where {condition}{self._valid_only(f'{table}.rowid')}"
            f" order by bm25({table}, {_COLUMN_WEIGHTS[table]}), {ties} limit ?",
            [*values, most],
        )
        return list(dict.fromkeys([*(row for (row,) in ranked_rows), *rows]))

    def named(self, match: str) -> list[int]:
        """The newest notes that match in title, headings or tags, best first."""
        rows = self.newest(match, _MAX_NAMED, NAMES)
        if not _NAMED_SORTED < len(rows) < _MAX_NAMED:
            return rows
        return [
            row
            for (row,) in self.db.execute(
                f"select rowid from {NAMES} where {NAMES} match ?{self._valid}"
                f" order by bm25({NAMES}, {_COLUMN_WEIGHTS[NAMES]}), rowid desc",
                (match,),
            )
        ]

    def same_title(self, match: str) -> list[int]:
        """The matching notes one of whose names is the query text."""
        sql = "select note from note_fold where fold = ? order by note desc limit 20"
        rows = self.db.execute(sql, (key(self.query.text),)).fetchall()
        sql = f"select rowid from {self.table} where {self.table} match ? and rowid in {_GIVEN}{self._valid}"
        row_query = (
            self.db.execute(sql, (self._spelled_out(match), _json(row for (row,) in rows)))
            if rows
            else ()
        )
        return [row for (row,) in row_query]

    def texts(self, rows: Sequence[int], terms: Sequence[Term]) -> list[NoteText]:
        """The texts of these notes.

        In a long text, the passages to read are marked: those with all terms, or with any, or the
        first.
        """
        note_texts: list[NoteText] = []
        if not rows:
            return note_texts
        phrases = [
            query_term.prefix if query_term.open else query_term.whole for query_term in terms
        ]
        matching = "select rowid from passage_fts where passage_fts match ? and rowid between ? and ? limit 100"
        reading = f"select start, stop from passage where row in {_GIVEN} order by row"
        for (
            row,
            project,
            title,
            aliases,
            tags,
            path,
            headings,
            front,
            header,
            text,
            count,
        ) in self.db.execute(
            "select n.row, p.name, n.title, n.aliases, n.tags, n.path, t.headings,"
            " t.front, t.header, t.text, t.passages"
            " from note n join project p on p.id = n.project join text t on t.row = n.row"
            f" where n.row in {_GIVEN}",
            (_json(rows),),
        ):
            names = [title, *(json.loads(aliases) if aliases else ())]
            spans: list[tuple[int, int]] = []
            if count:
                first = row * FIRST_PASSAGE
                inside = list[int]()
                for joint in (" AND ", " OR ") if phrases else ():
                    cache_key = (joint.join(phrases), first, first + count - 1)
                    inside = inside or [at for (at,) in self.db.execute(matching, cache_key)]
                spans = self.db.execute(reading, (_json(inside or [first]),)).fetchall()
            spans = spans or [(0, len(text))]
            address = f"{project}/{path}\n{property_text(header)}"
            called = "\n".join((*names, headings, *(json.loads(tags) if tags else ())))
            note_texts.append(NoteText(row, project, names, called, address, front, text, spans))
        return note_texts

    def best_first(self, scores: Mapping[int, float]) -> list[int]:
        """Rows by score; of equal score those changed last come first, then by permalink."""
        often = Counter(scores.values())
        equal = [row for row, score in scores.items() if often[score] > 1]
        if not equal:
            return sorted(scores, key=scores.__getitem__, reverse=True)
        row_cursor = self.db.execute(
            f"select row, changed, permalink from note where row in {_GIVEN}", (_json(equal),)
        )
        order_by_row = {row: (-changed, permalink) for row, changed, permalink in row_cursor}
        return sorted(scores, key=lambda row: (-scores[row], *order_by_row.get(row, ()), row))

    @cached_property
    def size(self) -> int:
        """How many notes the index has, rounded up to a power of two.

        All notes count, but an agent must not learn from the order how many notes others have.
        """
        sql = "select sum(t.notes) from project p cross join tally t on t.project = p.id and t.folder = ''"
        return 1 << (max(_MIN_SIZE, self.db.execute(sql).fetchone()[0] or 0) - 1).bit_length()

    def archived(self, rows: Iterable[int]) -> set[int]:
        """Those of the rows that are archived memories."""
        archive = self._projects.get(ARCHIVE_PROJECT)
        archived_query = f"select row from note where project = ? and row in {_GIVEN}"
        if archive is None:
            return set()
        return {row for (row,) in self.db.execute(archived_query, (archive, _json(rows)))}

    def unfilled(self, rows: Iterable[int]) -> set[int]:
        """The rows that are files of a memory bank as `activate` created them."""
        banks = self._projects.get("banks")
        condition = "project = ? and json_extract(provenance, '$.tool') = 'activate'"
        unfilled_query = f"select row from note where {condition} and row in {_GIVEN}"
        if banks is None:
            return set()
        return {row for (row,) in self.db.execute(unfilled_query, (banks, _json(rows)))}

    def features(self, rows: Iterable[int]) -> list[Features]:
        """The features of these notes; missing ones are left out."""
        features_by_row = {row: self._cache.get(row) for row in rows}
        missing = [row for row, row_features in features_by_row.items() if row_features is None]
        if missing:
            text = f"select {', '.join(Features._fields)} from feature where row in {_GIVEN}"
            new = {
                row_values[0]: Features._make(row_values)
                for row_values in self.db.execute(text, (_json(missing),))
            }
            self._cache.keep(new, 0)
            features_by_row |= new
        return [row_values for row_values in features_by_row.values() if row_values]

    def rows_of_days(self, first: str, last: str, most: int) -> list[int]:
        """The newest notes of these days (YYYY-MM-DD, inclusive)."""
        day_query = "select row from feature where day between ? and ? order by row desc limit ?"
        return [row for (row,) in self.db.execute(day_query, (first, last, most))]

    def neighbors(self, rows: Collection[int]) -> dict[int, tuple[list[int], list[int]]]:
        """For each note, up to three visible notes before it in its conversation and three after
        it, the nearest first.
        """
        neighbor_rows = self.db.execute(
            _NEIGHBORS, {"rows": _json(rows), "viewer": self._viewer}
        ).fetchall()
        return {
            row: (json.loads(f"[{before or ''}]"), json.loads(f"[{after or ''}]"))
            for row, before, after in neighbor_rows
        }

    def speakers(self, words: Sequence[str]) -> set[str]:
        """Those of the words that are the names of speakers of visible notes."""
        return {
            word
            for (word,) in self.db.execute(
                "select value from json_each(:words) where exists"
                f" (select 1 from feature f where f.speaker = value and {_VISIBLE})",
                {"words": json.dumps(words), "viewer": self._viewer},
            )
        }

    def spellings(self, word: str) -> list[str]:
        """The words in visible notes that differ from `word` by one letter, at most 8, the most
        frequent first.

        word: a word in lower case. Empty unless it has 5 to 19 Latin letters.

        To look up all of some 450 words takes SQLite long. Those that differ after the first
        letters are therefore compared with the stems that begin with these, and only those that
        differ within them are looked up.
        """
        if len(word) not in _SPELLED_LENGTHS or not (word.isascii() and word.isalpha()):
            return []
        head = word[:_SPELLED_PREFIX]
        edits = one_edit(word)
        stems = [
            stem
            for (stem,) in self.db.execute(
                "select term from stems where term between ? and ? and length(term) between ? and ?",
                (head, head + "\uffff", len(word) - 7, len(word) + 1),
            )
        ]
        possible = inflected(stems)
        edits = [edit for edit in edits if edit in possible or not edit.startswith(head)]
        held = [edit for edit in edits if self.count(self._if_visible(quoted(edit)), 1, STEMS)]
        count = {
            spelling: self.count(self._if_visible(quoted(spelling)), _SPELLED_COUNT)
            for spelling in held
        }
        held.sort(key=lambda spelling: -count[spelling])
        return [spelling for spelling in held if count[spelling]][:_MAX_SPELLINGS] or held[
            :_MAX_SPELLINGS
        ]

    def contents(self) -> Iterator[tuple[int, int, str, str | None, str]]:
        """(row, created, id, tags as JSON or None, text) of every note that passes the filters.

        The filters must name projects.
        """
        return self.db.execute(
            "select n.row, n.created, n.id, n.tags, t.text from note_fts f join note n on n.row = f.rowid"
            f" join text t on t.row = n.row where {' and '.join(['note_fts match ?', *self._conditions])}"
            f"{self._valid_only('n.row')}",
            (self.with_filters(""), *self._values),
        )

    def _if_visible(self, text: str) -> str:
        unwanted = self.unwanted
        # Other projects may be unwanted, but are seen
        if self.query.projects is not None:
            unwanted = [token(SCOPE, scope) for scope in hidden_scopes(self.db, self._viewer)]
        return expression([], unwanted, text)

    def _expression_of(self, query_term: Term, is_prefix: bool = False) -> str:
        """The FTS5 expression of a term. A path that begins with a project's name also means the
        rest within that project."""
        text = self._column + (query_term.prefix if is_prefix else query_term.whole)
        head, slash, rest = query_term.text.partition("/")
        if slash:
            number = self._projects.get(head.casefold())
        else:
            number = None
        if number is not None:
            inner = term(rest, phrase=not query_term.open)
        else:
            inner = None
        if inner is None:
            return text
        within = (self._column or "address : ") + (inner.prefix if is_prefix else inner.whole)
        return f"({text} OR ({within} AND {quoted(token(PROJECT, str(number)))}))"


def _json(rows: Iterable[int]) -> str:
    return json.dumps(list(rows))
