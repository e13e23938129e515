"""Run one query against the index. All SQL of the search is here.

Filters and terms become FTS5 expressions. Ranking gets the notes, their texts and their features.
If very many notes match, only the newest are read, so even very common terms take little time.

A *row* is the number of a note in the index: the rowid in every full-text table. Rows only grow, so
the highest is the newest note. A *facet* is a word in these tables that stands for a filter, such as
a project (filters.py). A *match* is an FTS5 expression, as it stands behind `match` in SQL.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, overload

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
from memoranda.index.listing import conditions_of, passing
from memoranda.index.resolve import key
from memoranda.index.rows import FIRST_PASSAGE, property_text
from memoranda.index.search.endings import other_endings
from memoranda.index.search.parse import ParsedQuery, Term, phrase_for, shortened, term
from memoranda.index.search.weights import COLUMNS
from memoranda.index.search.words import inflected, inflections, one_edit
from memoranda.index.unfilled import unfilled_rows
from memoranda.note.model import ARCHIVE_PROJECT
from memoranda.query import Query
from memoranda.text.han import other_forms
from memoranda.text.pattern import lazy_pattern
from memoranda.text.tokens import stop_words

COMMON = 2_000
"""A word that more notes contain is matched only as a whole word, not as a prefix."""
MAX_RANKED = 1_000
"""If more notes match, only this many of them, the newest, are ranked."""
MAX_COUNTED = 10_000
"""Matches are counted up to this number. To count a note, SQLite decodes its entry in the list of
each word. For common words, this takes most of the time of a search."""
NAMES = "name_fts"
STEMS = "stem_fts"
"""The full-text tables of titles, headings and tags, and of stems."""

# The weights of the columns of a full-text table as bm25() takes them. Facets get 0.
_COLUMN_WEIGHTS = {
    "note_fts": "{body:g}, {title:g}, {headings:g}, {tags:g}, {address:g}, 0".format(**COLUMNS),
    NAMES: "{title:g}, {headings:g}, {tags:g}, 0".format(**COLUMNS),
}
# The cache of one connection takes at most this much.
_CACHE_BYTES = 20_000_000
# bm25() does not look at a word that more notes contain.
_MAX_NOTES_OF_RARE_WORD = 5_000
# In an index of this size or more, a prefix is replaced by the words that begin with it. In a
# smaller one, FTS5 finds the prefix faster than we find the words.
_MIN_SIZE_TO_EXPAND = 1 << 17
# If more words begin with a prefix, FTS5 gets the prefix and joins all their notes.
_MAX_LONGER_WORDS = 1_000
# Up to this number of rows, the SQL lists the rows, and sorts equal scores by time.
_MAX_LISTED_ROWS = 200
# This many notes with the words in their names are ranked before all others.
_MAX_NAMED = 500
# Up to this many notes of that kind stay newest first. More are sorted by how well names match.
_MAX_UNSORTED_NAMED = 10
# An FTS5 string that no note contains: a character for private use.
_NO_SUCH_NOTE = '"\uf8ff"'
# An index counts as having at least this many notes.
_MIN_SIZE = 4
# A word of at most 24 letters is also looked for as two words of at least 3 letters each.
_MIN_PART_LETTERS = 3
_MAX_PARTED_LETTERS = 24
# A word of this many letters may be misspelled.
_SPELLED_LENGTHS = range(5, 20)
# The first letters of a misspelled word are usually right.
_CERTAIN_LETTERS = 3
# Letters of the longest ending that a stem lacks, such as `-ations`.
_LONGEST_ENDING = 6
# How many spellings may replace one word.
_MAX_SPELLINGS = 8
# Spellings are compared by how many notes have them, counted up to this number.
_MAX_SPELLING_COUNT = 100
# Matches every string of an FTS5 expression. Group 1 is set if the string is one word as a prefix.
_PREFIX = lazy_pattern(r'"(?:[!#-/:-@[-`{-~ ]*([A-Za-z0-9]+)[!#-/:-@[-`{-~ ]*"\*|(?:[^"]|"")*")')
# Selects a prefix (which need not be a word), and then the words that begin with it. Each word is
# found as the next one after the word before. No character of a word is less than char(1).
_WORDS_WITH_PREFIX = (
    "with recursive longer(word) as (select :prefix union all"
    " select (select term from words where term >= word || char(1) limit 1) from longer where word glob :prefix || '*'"
    " limit :most) select word from longer where word glob :prefix || '*'"
)
# Stands for a list of rows in SQL. The rows are passed as one parameter, a JSON list (`_json`).
_ROWS_PARAMETER = "(select value from json_each(?))"
# A condition: :viewer sees the note of feature `f`.
_VISIBLE = (
    "(:viewer is null or exists"
    f" (select 1 from note n where n.row = f.row and {seen_by('n.scope', ':viewer')}))"
)
# Up to three visible notes on one side of note `c` in its conversation, as a text `5,7,8`.
_SIDE = (
    "(select group_concat(row) from (select f.row from feature f where f.conversation = c.conversation"
    f" and (f.position, f.row) {{side}} (c.position, c.row) and {_VISIBLE}"
    " order by f.position {way}, f.row {way} limit 3))"
)
# (row, notes before, notes after) of each of :rows.
_NEIGHBORS = (
    f"select r.value, {_SIDE.format(side='<', way='desc')}, {_SIDE.format(side='>', way='asc')}"
    " from json_each(:rows) r join feature c on c.row = r.value"
)


def _rows_in(joined: str | None) -> list[int]:
    """Return the rows that `group_concat` joined by commas. It gives None for no rows."""
    # In brackets, numbers with commas between them are a list in JSON.
    rows: list[int] = json.loads(f"[{joined or ''}]")
    return rows


@dataclass(slots=True)
class NoteText:
    """The texts of a note that a search reads.

    row, project: the row of the note, and its project.
    names: the title and aliases.
    name_text: the title, aliases, headings and tags, one on a line.
    path: the path of the note in its project.
    header: the header as JSON, or None.
    front: the frontmatter.
    text: the text after the frontmatter.
    spans: (start, stop) of the parts of `text` to read: all of `text`, or the passages that match.
    cuts, speakers: the chunks of `text` as the index keeps them (`features.StoredChunks`). Both are
        None if `text` has one chunk, or is so long that it is stored as passages.
    """

    row: int
    project: str
    names: list[str]
    name_text: str
    path: str
    header: str | None
    front: str
    text: str
    spans: list[tuple[int, int]]
    cuts: bytes | None = None
    speakers: str | None = None

    @property
    def address(self) -> str:
        """The project, the path and the values of the header. Only a search for all words asks."""
        return f"{self.project}/{self.path}\n{property_text(self.header)}"


class _StoredText(NamedTuple):
    """The columns that make up a `NoteText`.

    aliases, tags: JSON lists, None without any.
    header: the header as JSON, or None.
    passages: as how many passages the text is stored. 0 if it is not that long.
    """

    row: int
    project: str
    title: str
    aliases: str | None
    tags: str | None
    path: str
    headings: str
    front: str
    header: str | None
    text: str
    passages: int
    cuts: bytes | None
    speakers: str | None


class Features(NamedTuple):
    """The ranking features of a note, as they were indexed (schema.sql, table `feature`).

    row: the row of the note.
    conversation, position: the conversation that it is a turn of, and its place there.
    speaker: the folded first name of the person who says it, or None.
    day: the day that it is about, as YYYY-MM-DD.
    words: about how many words it has.
    question: the share of questions in percent.
    first_person: how many pronouns of the first person it has, up to 4.
    has_time: 1 if it names a time, otherwise 0.
    is_long: 1 if it has more than one chunk, otherwise 0.
    is_standing: 1 if somebody says in it how things are to be from now on, otherwise 0.
    """

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
    is_standing: int


class RowList(Sequence[int]):
    """Rows of notes, the newest first, as SQLite lists them in a text: `9,7,4`.

    The text is read when more than the number of rows, the first or the last one is needed. For a
    common word, nobody needs more.
    """

    __slots__ = ("_length", "_rows", "_text")

    def __init__(self, text: str):
        self._text = text
        self._length = text.count(",") + 1 if text else 0
        self._rows: list[int] | None = None

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[int]:
        return iter(self._all())

    @overload
    def __getitem__(self, index: int) -> int: ...

    @overload
    def __getitem__(self, index: slice) -> list[int]: ...

    def __getitem__(self, index: int | slice) -> int | list[int]:
        return self._all()[index]

    @property
    def span(self) -> int:
        """How many rows lie between the first and the last one, both included."""
        first = self._text.partition(",")[0]
        last = self._text.rpartition(",")[2]
        return int(first) - int(last) + 1

    def _all(self) -> list[int]:
        """Return the rows as numbers."""
        if self._rows is None:
            # A single text is read faster than many rows.
            self._rows = json.loads(f"[{self._text}]")
        return self._rows


def counted_to(stop: int) -> int:
    """Return the largest number of matches that a search counts exactly.

    Counting all matches of a common word would take too long, so counting stops at MAX_COUNTED, and
    the total is then a lower bound. On a page further back, counting goes on to the end of the page.

    stop: the number of the last hit of the page, counted from 1 over all pages: 20 for the second
        page of ten hits.
    """
    return max(MAX_COUNTED, stop)


class QueryCache(dict[Hashable, Any]):
    """The results of queries on one connection, until the index changes or the cache is full.

    `bench/asking.py` shows that a question takes a quarter longer without this cache.
    """

    def __init__(self) -> None:
        self.version: tuple[int, int] | None = None
        self._bytes = 0

    def keep(self, values: Mapping[Any, Any], size: int) -> None:
        """Add values to the cache. If it would get too large, drop all older values before.

        size: about how many bytes the values take, without 250 bytes of overhead for each value.
        """
        self._bytes += size + 250 * len(values)
        if self._bytes > _CACHE_BYTES:
            self.clear()
            self._bytes = size + 250 * len(values)
        self.update(values)


@contextmanager
def search_context(
    db: sqlite3.Connection, query: Query, viewer: str | None
) -> Iterator[SearchContext]:
    """Open a context for one query. All its SQL sees one state of the index.

    viewer: the agent that asks. None is the owner, who sees all notes.
    """
    # The cache of the connection. Results that include uncommitted changes must not get into it.
    if db.in_transaction:
        cache = QueryCache()
    else:
        cache = held(db, QueryCache)
    with snapshot(db):
        # After a change of the index, the cached results may be wrong.
        present_version = version(db)
        if cache.version != present_version:
            cache.clear()
            cache.version = present_version
        yield SearchContext(db, query, viewer, cache)


class NoteContent(NamedTuple):
    """The parts of a note that a smart search reads.

    created: in microseconds since 1970.
    identity: the id of the note.
    tags: a JSON list. None without tags.
    """

    row: int
    created: int
    identity: str
    tags: str | None
    text: str


class SearchContext:
    """One query of one viewer, and how to read the index for it.

    needed: the facets that a note must have, such as its project (`filters.wanted`).
    unwanted: the facets that a note must not have.
    by_title: whether only titles are searched.
    table: the full-text table to search.
    is_filtered: whether some filters are applied by SQL or Python, because FTS5 cannot apply them.
    invalid: the rows to leave out, because they are not valid at the time of the query.
    """

    def __init__(self, db: sqlite3.Connection, query: Query, viewer: str | None, cache: QueryCache):
        self.db = db
        self._cache = cache
        self.query = query
        self.needed, self.unwanted = wanted(db, query, viewer, has_text=True)
        self._viewer = viewer
        # The filters that FTS5 cannot apply, but SQL can.
        self._filters = conditions_of(db, query, viewer)
        self.by_title = query.search_type == "title"
        # An FTS5 prefix that limits a search to a column. "" for all columns.
        self._column = ""
        self.table = "note_fts"
        if self.by_title:
            self.table = NAMES
            self._column = "title : "
        self.is_filtered = bool(self._filters.sql or query.metadata or query.contains)
        # The ids of all projects, by name.
        self._projects = project_ids(db)
        # The time at which notes must be valid, if any.
        moment = query.as_of or query.valid_at
        self.invalid: list[int] = []
        if moment is not None:
            self.invalid = filters.invalid_at(self.spans, moment, query.upheld)
        # The condition for full-text tables, in which the row is called `rowid`.
        self._valid_condition = self._valid_only("rowid")

    @cached_property
    def spans(self) -> list[filters.Span]:
        """When notes are valid, for each note that is not valid at all times."""
        if "spans" not in self._cache:
            spans = superseding.valid_spans(self.db)
            self._cache.keep({"spans": spans}, 100 * len(spans))
        return self._cache["spans"]

    def _valid_only(self, column: str) -> str:
        """Return ` and ` with an SQL condition that leaves out invalid notes.

        Return "" if all notes are valid.

        column: the SQL name of the column with the row.
        """
        condition = filters.excluded(self.invalid, column)
        return f" and {condition}" if condition else ""

    def with_filters(self, text: str) -> str:
        """Return an FTS5 expression limited by all filters that FTS5 can apply.

        text: the expression to limit. "" returns an expression of the filters alone.
        """
        if not text:
            return expression(*wanted(self.db, self.query, self._viewer))
        return expression(self.needed, self.unwanted, text)

    def broad_expression(self, query_term: Term) -> str:
        """Return the FTS5 expression of a term that also finds longer words and other forms.

        A term in more than COMMON notes does not match longer words. A term of at most two letters
        matches longer words only if no note contains the term itself. The `s` of `Anna's` never
        matches longer words.
        """
        # `Anna's` has the words `anna` and `s`.
        last_word = query_term.words[-1]
        is_possessive = last_word == "s" and len(query_term.words) > 1
        is_prefix = query_term.may_be_longer and not is_possessive
        if is_prefix:
            # `to` as a prefix would find half of all words.
            most_notes = 0 if len(last_word) <= 2 else COMMON
            is_prefix = self.count_of_term(query_term) <= most_notes
        # The term itself, and its other forms as they are.
        expressions = [self._expression_of(query_term, is_prefix)]
        expressions += [self._expression_of_text(text) for text in self.alternatives(query_term)]
        if len(expressions) > 1:
            return f"({' OR '.join(expressions)})"
        return expressions[0]

    def _expression_of_text(self, text: str) -> str:
        """Return the FTS5 expression of a word or phrase that was not typed.

        A single Chinese character matches as the first of a pair.
        """
        phrase, is_beginning = phrase_for(text)
        expression_of_text = self._column + quoted(phrase)
        if is_beginning:
            expression_of_text += "*"
        return expression_of_text

    def alternatives(self, query_term: Term) -> list[str]:
        """Return other texts that find a term: `timezones` → `timezone`, `time zones`.

        Such a text has the word of the term in another form, as two words or in another spelling. A
        Chinese term that no note contains as it is typed is looked for in the other characters:
        `计费` → `計費`. Where a note contains it, only such notes are hits, as contract 000b, 12 wants.
        Texts that no note contains are left out. A term in quotes has no alternatives.
        """
        # A phrase in quotes is looked for as it is.
        if not query_term.is_bare:
            return []
        cache_key = ("alternatives", query_term)
        if cache_key not in self._cache:
            texts = list(query_term.other_spellings)
            text_as_typed = shortened(query_term.text)
            # Simplified or traditional characters. Other scripts have no other forms.
            if not self._occurs(text_as_typed):
                texts += other_forms(text_as_typed)
            first_word, *further_words = query_term.words
            if not further_words and not query_term.single:
                texts += inflections(first_word)
                texts += self.other_endings(first_word)
                texts += self._splits_into_two_words(first_word)
            elif further_words == ["s"]:
                # `Anna's` also finds `Anna`.
                texts.append(first_word)
            texts = [text for text in dict.fromkeys(texts) if self._occurs(text)]
            # About 40 bytes for each text.
            self._cache.keep({cache_key: texts}, 40 * len(texts))
        return self._cache[cache_key]

    def other_endings(self, word: str) -> list[str]:
        """Return the other forms of a Russian or Ukrainian word that notes contain.

        Any note counts, even a note that the viewer may not see. The result is empty for a word of
        another language.
        """
        forms = sorted(other_endings(word))
        if not forms:
            return []
        cache_key = ("endings", word)
        if cache_key not in self._cache:
            # One look at all words with a common beginning is faster than one for each form. What
            # the first and the last of sorted texts begin with, all of them begin with.
            common_beginning = forms[0]
            while not forms[-1].startswith(common_beginning):
                common_beginning = common_beginning[:-1]
            rows = self.db.execute(
                "select term from stems where term between ? and ?",
                (common_beginning, common_beginning + "\uffff"),
            )
            words_in_notes = {word_in_notes for (word_in_notes,) in rows}
            forms_in_notes = [form for form in forms if form in words_in_notes]
            self._cache.keep({cache_key: forms_in_notes}, 40 * len(forms_in_notes))
        return self._cache[cache_key]

    def _splits_into_two_words(self, word: str) -> list[str]:
        """Return a word as two words that some notes contain: `timezone` → `time zone`."""
        if not word.isascii() or not word.isalpha() or len(word) > _MAX_PARTED_LETTERS:
            return []
        pairs: list[str] = []
        # Try every place to cut, from `tim ezone` to `timez one`. Looking a part up takes longer than
        # knowing stop words, so this is done last.
        for cut in range(_MIN_PART_LETTERS, len(word) - _MIN_PART_LETTERS + 1):
            first = word[:cut]
            second = word[cut:]
            has_stop_word = first in stop_words() or second in stop_words()
            if not has_stop_word and self._occurs(first) and self._occurs(second):
                pairs.append(f"{first} {second}")
        return pairs

    def _occurs(self, text: str) -> bool:
        """Whether any note contains the word or phrase, even a note that the viewer may not see."""
        return self.count(self._expression_of_text(text), 1) > 0

    def match(self, query: ParsedQuery, *, whole: bool = False) -> str:
        """Return the FTS5 expression of a query with all filters.

        whole: whether to match only whole words as written, without longer words and other forms.
        """
        expression_of = self._expression_of if whole else self.broad_expression
        clauses: list[str] = []
        for clause in query.clauses:
            # `red door NOT lock` → `"red"* AND "door"*`
            text = " AND ".join([expression_of(query_term) for query_term in clause.terms])
            # A clause that only excludes starts from all notes.
            if not text:
                text = self._all_notes()
            excluded: list[str] = []
            for query_term in clause.without:
                # Here a longer word counts only if the query has a star.
                is_prefix = query_term.may_be_longer and query_term.text.endswith("*")
                excluded.append(self._expression_of(query_term, is_prefix))
            if excluded:
                # `("red"* AND "door"*) NOT ("lock")`
                text = f"({text}) NOT ({' OR '.join(excluded)})"
            clauses.append(f"({text})")
        return self.with_filters(" OR ".join(clauses))

    def _all_notes(self) -> str:
        """Return an FTS5 expression that matches all notes."""
        if not self._projects:
            return _NO_SUCH_NOTE
        return any_of(PROJECT, map(str, self._projects.values()))

    def count_of_term(self, query_term: Term) -> int:
        """Return how many notes contain the term as whole words, counted up to COMMON + 1."""
        return self.count(self._column + query_term.whole, COMMON + 1)

    def is_in_any_note(self, query_term: Term) -> bool:
        """Whether any note that the viewer sees matches the term."""
        return self.count(self._if_visible(self.broad_expression(query_term)), 1) > 0

    def count(self, match: str, most: int, table: str = "") -> int:
        """Return how many notes match an FTS5 expression, counted up to `most`.

        table: a full-text table. "" means the table of this context.
        """
        table = table or self.table
        match = self._expand_prefixes(match, table)
        cache_key = ("count", table, match + self._valid_condition, most)
        if cache_key not in self._cache:
            sql = f"select count(*) from (select 1 from {table} where {table} match ?{self._valid_condition} limit ?)"
            count = self.db.execute(sql, (match, most)).fetchone()[0]
            self._cache.keep({cache_key: count}, len(match))
        return self._cache[cache_key]

    def newest(self, match: str, limit: int, table: str = "") -> list[int]:
        """Return the newest rows that match an FTS5 expression, at most `limit`.

        table: a full-text table. "" means the table of this context.
        """
        return list(self.newest_rows(match, limit, table))

    def newest_rows(self, match: str, limit: int, table: str = "") -> RowList:
        """Return what `newest` does, without reading the rows yet.

        table: a full-text table. "" means the table of this context.
        """
        table = table or self.table
        match = self._expand_prefixes(match, table)
        cache_key = ("newest", table, match + self._valid_condition, limit)
        if cache_key in self._cache:
            return self._cache[cache_key]
        newest_rows = (
            f"select rowid from {table} where {table} match ?{self._valid_condition}"
            " order by rowid desc limit ?"
        )
        # SQLite joins the rows to one text, which is read faster than many rows. None for no rows.
        sql = f"select group_concat(rowid) from ({newest_rows})"
        try:
            (joined_rows,) = self.db.execute(sql, (match, limit)).fetchone()
        except sqlite3.OperationalError as error:
            if "phrase queries" not in str(error):
                raise
            # An old SQLite splits a word of a script that it does not know into a phrase. STEMS has
            # no places of words, so it cannot match phrases.
            return RowList("")
        result = RowList(joined_rows or "")
        # About 40 bytes for each row.
        self._cache.keep({cache_key: result}, len(match) + 40 * len(result))
        return result

    def matches(self, match: str, limit: int = MAX_RANKED) -> tuple[list[int], int]:
        """Return (the newest rows that match and pass all filters, the number of all such rows).

        limit: the most rows to return. If more match than `counted_to(limit)`, the number is only a
            lower bound.
        """
        # One more than is counted exactly shows that the number is a lower bound.
        most = counted_to(limit) + 1
        if not self.is_filtered:
            # One row more than wanted shows whether there are more.
            rows = self.newest(match, limit + 1)
            total = len(rows)
            if total > limit:
                total = self.count(match, most)
            return rows[:limit], total

        # FTS5 finds the notes, SQL applies most filters, and `passing` the others.
        conditions = " and ".join([f"{self.table} match ?", *self._filters.sql])
        where = conditions + self._valid_only("f.rowid")
        # Filters in Python may leave out any number of rows, so SQL must return all (-1).
        has_python_filters = self.query.metadata or self.query.contains
        sql_limit = -1 if has_python_filters else most
        matching_rows = self.db.execute(
            f"select f.rowid from {self.table} f join note n on n.row = f.rowid where {where}"
            " order by f.rowid desc limit ?",
            [self._expand_prefixes(match), *self._filters.values, sql_limit],
        )
        rows = passing(self.db, self.query, [row for (row,) in matching_rows])
        return rows[:limit], len(rows)

    def _expand_prefixes(self, match: str, table: str = "") -> str:
        """Replace the prefixes in an expression by words: `"plan"*` → `("plan" OR "planner")`.

        For a prefix, FTS5 joins the lists of all longer words before it returns the first note. For
        words joined by OR, FTS5 stops reading once it has enough notes. For a small index, and for
        the table of stems, the expression is returned unchanged.
        """
        if table == STEMS or self.size < _MIN_SIZE_TO_EXPAND:
            return match
        return _PREFIX.sub(self._expanded_prefix, match)

    def _expanded_prefix(self, prefix: re.Match[str]) -> str:
        """Replace one string of an FTS5 expression, such as `"plan"*`, by `("plan" OR "planner")`.

        The string is returned unchanged if it is not the prefix of one word, or if more than
        _MAX_LONGER_WORDS words begin with it.

        prefix: a match of `_PREFIX`.
        """
        # The whole string, such as `"plan"*`, and the word in it.
        fts_string = prefix[0]
        word = prefix[1]
        # Not a prefix, or a prefix of several words.
        if word is None:
            return fts_string
        cache_key = ("longer", fts_string)
        if cache_key not in self._cache:
            parameters = {"prefix": word.lower(), "most": _MAX_LONGER_WORDS + 1}
            rows = self.db.execute(_WORDS_WITH_PREFIX, parameters).fetchall()
            # The first row is the prefix.
            longer_words = [quoted(longer_word) for (longer_word,) in rows[1:]]
            expanded = fts_string.removesuffix("*")
            if len(rows) > _MAX_LONGER_WORDS:
                expanded = fts_string
            elif longer_words:
                expanded = f"({' OR '.join([expanded, *longer_words])})"
            self._cache.keep({cache_key: expanded}, len(expanded))
        return self._cache[cache_key]

    def passing(self, rows: Iterable[int]) -> list[int]:
        """Return the rows that pass the filters which FTS5 cannot apply, and that are valid."""
        where = " and ".join([f"n.row in {_ROWS_PARAMETER}", *self._filters.sql])
        sql = f"select n.row from note n where {where}{self._valid_only('n.row')}"
        rows_passing = self.db.execute(sql, (_json(rows), *self._filters.values))
        return passing(self.db, self.query, [row for (row,) in rows_passing])

    def visible(self, rows: Collection[int]) -> Collection[int]:
        """Return the rows of the notes that pass all filters and that the viewer may see."""
        # The filters of SQL and Python.
        if self.is_filtered:
            rows = self.passing(rows)
        if self.invalid:
            invalid = set(self.invalid)
            rows = [row for row in rows if row not in invalid]
        # The filters of FTS5. These rows were not found by a match, so their facets are read.
        if not self.needed and not self.unwanted:
            return rows
        rows_with_facets = self.db.execute(
            f"select row, facet from text where row in {_ROWS_PARAMETER}", (_json(rows),)
        )
        return [
            row for row, facets in rows_with_facets if passes(facets, self.needed, self.unwanted)
        ]

    def by_bm25(
        self, query: ParsedQuery, match: str, rows: list[int], most: int, whole: bool
    ) -> list[int]:
        """Put the best `most` notes by BM25 first. The others keep their order.

        match: the FTS5 expression of the query, with filters, that found `rows`.
        rows: the rows of the notes in the index, the highest first.
        whole: whether to match only whole words.

        Terms in more than _MAX_NOTES_OF_RARE_WORD notes are ignored, because bm25() reads every
        note with a term. If all terms are that frequent, `rows` is returned unchanged.
        """
        expression_of = self._expression_of if whole else self.broad_expression
        table = self.table
        # A query of a single word without filters reads all its notes in any case, so that bm25()
        # costs nothing more, however many they are.
        rare_terms = [
            query_term
            for query_term in query.terms
            if self._is_all_of(match, expression_of(query_term)) or self._is_rare(query_term)
        ]
        if not rare_terms:
            return rows
        # In one clause, all terms must match. Of several clauses, one is enough.
        operator = " OR " if len(query.clauses) > 1 else " AND "
        rare_match = operator.join(map(expression_of, rare_terms))

        # Limit the rare terms to `rows`. If they are the whole query, they match exactly `rows` and
        # older rows, so the last row is limit enough, and a long list need not be passed. The `+`
        # keeps SQLite from looking up the rows one by one.
        lowest_row = rows[-1]
        condition = f"{table} match ? and {table}.rowid >= ?"
        values = [rare_match, lowest_row]
        is_short_list = len(rows) <= _MAX_LISTED_ROWS
        if is_short_list or not self._is_all_of(match, rare_match):
            condition += f" and +{table}.rowid in {_ROWS_PARAMETER}"
            values.append(_json(rows))

        # Notes with equal scores are sorted by the time of their change if they are few. For many,
        # reading these times takes long.
        source = table
        order_of_ties = f"{table}.rowid desc"
        if is_short_list:
            source = f"{table} join note n on n.row = {table}.rowid"
            order_of_ties = "n.changed desc, n.permalink"
        ranked_rows = self.db.execute(
            f"select {table}.rowid from {source} where {condition}{self._valid_only(f'{table}.rowid')}"
            f" order by bm25({table}, {_COLUMN_WEIGHTS[table]}), {order_of_ties} limit ?",
            [*values, most],
        )
        # The best first, then all others. A dict keeps the first of equal rows.
        best_rows = [row for (row,) in ranked_rows]
        return list(dict.fromkeys([*best_rows, *rows]))

    def _is_rare(self, query_term: Term) -> bool:
        """Whether so few notes contain a term that bm25() can read them all."""
        most_counted = _MAX_NOTES_OF_RARE_WORD + 1
        number = self.count(self._column + query_term.whole, most_counted)
        return number <= _MAX_NOTES_OF_RARE_WORD

    def _is_all_of(self, match: str, text: str) -> bool:
        """Whether a query is nothing but one expression: it has one clause and no filters.

        match: the FTS5 expression of the query with its filters.
        text: the expression of some terms.
        """
        # The query has brackets around each clause, and around all of them.
        return match == f"(({text}))" and not self.is_filtered

    def named(self, match: str) -> list[int]:
        """Return the newest notes that match in title, headings or tags, the best first.

        Up to 10 notes stay newest first. Of 500 or more, which would take long to rank, the newest
        500 are returned, newest first.

        match: an FTS5 expression.
        """
        rows = self.newest(match, _MAX_NAMED, NAMES)
        is_to_be_ranked = _MAX_UNSORTED_NAMED < len(rows) < _MAX_NAMED
        if not is_to_be_ranked:
            return rows
        sql = (
            f"select rowid from {NAMES} where {NAMES} match ?{self._valid_condition}"
            f" order by bm25({NAMES}, {_COLUMN_WEIGHTS[NAMES]}), rowid desc"
        )
        return [row for (row,) in self.db.execute(sql, (match,))]

    def same_title(self, match: str) -> list[int]:
        """Return up to 20 notes whose title or alias is the text of the query, and that match.

        match: an FTS5 expression.
        """
        # `note_fold` has the names of notes as `key` folds them.
        sql = "select note from note_fold where fold = ? order by note desc limit 20"
        title_rows = [row for (row,) in self.db.execute(sql, (key(self.query.text),))]
        if not title_rows:
            return []
        # Keep those that match, and so pass the filters.
        sql = (
            f"select rowid from {self.table} where {self.table} match ?"
            f" and rowid in {_ROWS_PARAMETER}{self._valid_condition}"
        )
        values = (self._expand_prefixes(match), _json(title_rows))
        return [row for (row,) in self.db.execute(sql, values)]

    def texts(self, rows: Sequence[int], terms: Callable[[], Sequence[Term]]) -> list[NoteText]:
        """Read the texts of these notes. The result is in no particular order.

        A very long text is stored as passages. `NoteText.spans` says which of them to search: those
        that contain a term of the query.

        terms: returns the terms of the query. It is called for very long texts only.
        """
        if not rows:
            return []
        stored_texts = self.db.execute(
            "select n.row, p.name, n.title, n.aliases, n.tags, n.path, t.headings,"
            " t.front, t.header, t.text, t.passages, t.chunks, t.speakers"
            " from note n join project p on p.id = n.project join text t on t.row = n.row"
            f" where n.row in {_ROWS_PARAMETER}",
            (_json(rows),),
        )
        note_texts: list[NoteText] = []
        for columns_of_text in stored_texts:
            stored = _StoredText(*columns_of_text)
            names = [stored.title]
            if stored.aliases:
                names += json.loads(stored.aliases)
            tags = json.loads(stored.tags) if stored.tags else []
            note_text = NoteText(
                stored.row,
                stored.project,
                names,
                name_text="\n".join([*names, stored.headings, *tags]),
                path=stored.path,
                header=stored.header,
                front=stored.front,
                text=stored.text,
                spans=self._spans_to_search(stored, terms),
                cuts=stored.cuts,
                speakers=stored.speakers,
            )
            note_texts.append(note_text)
        return note_texts

    def _spans_to_search(
        self, stored: _StoredText, terms: Callable[[], Sequence[Term]]
    ) -> list[tuple[int, int]]:
        """Return (start, stop) of the parts of a text to search: all of it, or some passages.

        These are the passages with all phrases. If no passage has all, they are the passages with
        any phrase, and without such passages it is the first one.

        terms: returns the terms of the query.
        """
        whole_text = [(0, len(stored.text))]
        if not stored.passages:
            return whole_text
        phrases = [_fts_string(query_term, query_term.may_be_longer) for query_term in terms()]
        # The passages of a note have rows of their own, one after the other.
        first_row = stored.row * FIRST_PASSAGE
        last_row = first_row + stored.passages - 1
        passage_rows: list[int] = []
        if phrases:
            passage_rows = self._passages(" AND ".join(phrases), first_row, last_row)
            if not passage_rows:
                passage_rows = self._passages(" OR ".join(phrases), first_row, last_row)
        spans = self.db.execute(
            f"select start, stop from passage where row in {_ROWS_PARAMETER} order by row",
            (_json(passage_rows or [first_row]),),
        ).fetchall()
        return spans or whole_text

    def _passages(self, match: str, first: int, last: int) -> list[int]:
        """Return the rows of the passages that match an FTS5 expression, at most 100.

        first, last: the rows of the first and the last passage of the note.
        """
        sql = (
            "select rowid from passage_fts"
            " where passage_fts match ? and rowid between ? and ? limit 100"
        )
        return [row for (row,) in self.db.execute(sql, (match, first, last))]

    def best_first(self, scores: Mapping[int, float]) -> list[int]:
        """Sort rows by score, the best first.

        Rows with equal scores are sorted by the time of their change, the last first, then by
        permalink.
        """
        # Only of rows with equal scores, the index is asked for more.
        rows_per_score = Counter(scores.values())
        equal_rows = [row for row, score in scores.items() if rows_per_score[score] > 1]
        if not equal_rows:
            return sorted(scores, key=scores.__getitem__, reverse=True)
        ties = self.db.execute(
            f"select row, changed, permalink from note where row in {_ROWS_PARAMETER}",
            (_json(equal_rows),),
        )
        tie_breaks = {row: (-changed, permalink) for row, changed, permalink in ties}
        return sorted(scores, key=lambda row: (-scores[row], *tie_breaks.get(row, ()), row))

    @cached_property
    def size(self) -> int:
        """How many notes the index has, rounded up to a power of two.

        Scores depend on this number. Notes that the viewer must not see count, too. Rounding hides
        how many of them there are.
        """
        sql = "select sum(t.notes) from project p cross join tally t on t.project = p.id and t.folder = ''"
        (note_count,) = self.db.execute(sql).fetchone()
        # The sum of no rows is None.
        note_count = max(_MIN_SIZE, note_count or 0)
        # 5 to 8 → 8, 9 to 16 → 16
        return 1 << (note_count - 1).bit_length()

    def archived(self, rows: Iterable[int]) -> set[int]:
        """Return the rows that are archived memories."""
        archive = self._projects.get(ARCHIVE_PROJECT)
        if archive is None:
            return set()
        sql = f"select row from note where project = ? and row in {_ROWS_PARAMETER}"
        return {row for (row,) in self.db.execute(sql, (archive, _json(rows)))}

    def unfilled(self, rows: Iterable[int]) -> set[int]:
        """Return the rows of unfilled notes: files of a memory bank that nobody has written yet."""
        return unfilled_rows(self.db, rows)

    def features(self, rows: Iterable[int]) -> list[Features]:
        """Return the features of these notes. Notes that no longer exist are left out."""
        # The cache has the features of a note under its row. None for a note that is not there yet.
        features_by_row = {row: self._cache.get(row) for row in rows}
        missing_rows = [row for row, cached in features_by_row.items() if cached is None]
        if missing_rows:
            # The fields of `Features` are named like the columns.
            columns = ", ".join(Features._fields)
            sql = f"select {columns} from feature where row in {_ROWS_PARAMETER}"
            read_features = map(Features._make, self.db.execute(sql, (_json(missing_rows),)))
            new_features = {features.row: features for features in read_features}
            self._cache.keep(new_features, size=0)
            features_by_row |= new_features
        return [features for features in features_by_row.values() if features is not None]

    def rows_of_days(self, first: str, last: str, most: int) -> list[int]:
        """Return the newest notes of a range of days, at most `most`.

        first, last: the first and the last day, as YYYY-MM-DD.
        """
        day_query = "select row from feature where day between ? and ? order by row desc limit ?"
        return [row for (row,) in self.db.execute(day_query, (first, last, most))]

    def neighbors(self, rows: Collection[int]) -> dict[int, tuple[list[int], list[int]]]:
        """Return (notes before, notes after) of each note in its conversation, by row.

        Each list has up to three visible notes, the nearest first.
        """
        neighbor_rows = self.db.execute(
            _NEIGHBORS, {"rows": _json(rows), "viewer": self._viewer}
        ).fetchall()
        return {row: (_rows_in(before), _rows_in(after)) for row, before, after in neighbor_rows}

    def speakers(self, words: Sequence[str]) -> set[str]:
        """Return the words among these that name a speaker in a note that the viewer may see."""
        names = self.db.execute(
            "select value from json_each(:words) where exists"
            f" (select 1 from feature f where f.speaker = value and {_VISIBLE})",
            {"words": json.dumps(words), "viewer": self._viewer},
        )
        return {name for (name,) in names}

    def spellings(self, word: str) -> list[str]:
        """Return up to 8 words in visible notes that differ from `word` by one letter.

        `buget` → `budget`, if notes contain it. The most frequent come first. The result is empty
        unless `word` has 5 to 19 Latin letters.

        word: a word in lower case.
        """
        if len(word) not in _SPELLED_LENGTHS or not (word.isascii() and word.isalpha()):
            return []

        # A word has some 450 edits: words that differ from it by one letter. Looking each up would
        # take too long. Most edits begin with the same letters as the word. Of these, only those are
        # looked up that are a form of some stem in notes. One query reads the stems. The edits with
        # another beginning are few, and are all looked up.
        head = word[:_CERTAIN_LETTERS]
        # An edit has at most one letter more or less than the word. Its stem may lack an ending.
        shortest_stem = len(word) - 1 - _LONGEST_ENDING
        longest_stem = len(word) + 1
        stems = self.db.execute(
            "select term from stems where term between ? and ? and length(term) between ? and ?",
            (head, head + "\uffff", shortest_stem, longest_stem),
        )
        possible_words = inflected([stem for (stem,) in stems])
        edits = [
            edit for edit in one_edit(word) if edit in possible_words or not edit.startswith(head)
        ]

        # Words whose stem some note has, and how many notes have exactly the word.
        spellings = [edit for edit in edits if self.count(self._if_visible(quoted(edit)), 1, STEMS)]
        counts = {
            spelling: self.count(self._if_visible(quoted(spelling)), _MAX_SPELLING_COUNT)
            for spelling in spellings
        }
        spellings.sort(key=lambda spelling: -counts[spelling])
        # If no note has one of the words as it is, their stems must do.
        words_in_notes = [spelling for spelling in spellings if counts[spelling]]
        return (words_in_notes or spellings)[:_MAX_SPELLINGS]

    def contents(self) -> Iterator[NoteContent]:
        """Yield the contents of every note that passes the filters, which must name projects."""
        rows = self.db.execute(
            "select n.row, n.created, n.id, n.tags, t.text from note_fts f join note n on n.row = f.rowid"
            f" join text t on t.row = n.row where {' and '.join(['note_fts match ?', *self._filters.sql])}"
            f"{self._valid_only('n.row')}",
            (self.with_filters(""), *self._filters.values),
        )
        return map(NoteContent._make, rows)

    def _if_visible(self, text: str) -> str:
        """Limit an FTS5 expression to notes that the viewer may see, also in other projects.

        The other filters of the query do not count: a spelling is known if any of these notes has
        it.
        """
        has_project_filter = self.query.projects is not None
        if not has_project_filter:
            return expression([], self.unwanted, text)
        # `self.unwanted` may be about projects that the filter leaves out. The viewer may see notes
        # of those, too. So only the scopes that are hidden from the viewer are excluded here.
        hidden = [token(SCOPE, scope) for scope in hidden_scopes(self.db, self._viewer)]
        return expression([], hidden, text)

    def _expression_of(self, query_term: Term, is_prefix: bool = False) -> str:
        """Return the FTS5 expression of a term.

        A term `work/plans`, where `work` is a project, also finds notes of the project `work` with
        `plans` in their address.

        query_term: the term.
        is_prefix: whether the last word may be the beginning of a longer word.
        """
        text = self._column + _fts_string(query_term, is_prefix)
        # Does the term begin with a project?
        first_segment, slash, path_after_it = query_term.text.partition("/")
        if not slash:
            return text
        project_id = self._projects.get(first_segment.casefold())
        if project_id is None:
            return text
        inner_term = term(path_after_it, phrase=not query_term.may_be_longer)
        if inner_term is None:
            return text

        # The column `address` has the path without the project. The project has a facet.
        column = self._column or "address : "
        in_address = column + _fts_string(inner_term, is_prefix)
        in_project = quoted(token(PROJECT, str(project_id)))
        return f"({text} OR ({in_address} AND {in_project}))"


def _fts_string(query_term: Term, is_prefix: bool) -> str:
    """Return the FTS5 string of a term, which may match longer words if `is_prefix`."""
    return query_term.prefix if is_prefix else query_term.whole


def _json(rows: Iterable[int]) -> str:
    """Return rows as a JSON list, for `_ROWS_PARAMETER`."""
    return json.dumps(list(rows))
