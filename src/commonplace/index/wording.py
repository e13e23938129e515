"""The words of a question in the index: which notes hold them, and how much each tells."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import nlargest
from math import log

from commonplace.index import kin, weights
from commonplace.index.expression import Term
from commonplace.index.facets import expression, quoted, wanted
from commonplace.index.listing import passing
from commonplace.index.question import MOST_WORDS
from commonplace.index.ranking import Asked
from commonplace.index.standings import SEEN
from commonplace.query import Query
from commonplace.text.tokens import is_cjk, query_text

MOST_HELD = 1_500
"""Of a word that more notes hold, the newest are looked at."""

_LEAST_SIZE = 255
_COMMON = 100
_PREFIX_FROM = 4
_SPELLED = range(5, 20)
_ALPHABET = "abcdefghijklmnopqrstuvwxyz"
_HEAD = 3
_ENDINGS = (
    "", "s", "e", "es", "ed", "ing", "ings", "er", "ers", "y", "ly", "ment", "ments", "ion", "ions", "ation", "ations",
    "al", "ance", "ence", "ant", "ent", "able", "ible", "ive", "ous", "ful", "ness", "ity", "ism", "ist", "ize", "ate",
)  # fmt: skip
_MOST_SPELLINGS = 8
_NEWEST = (
    "select group_concat(rowid) from (select rowid from {table} where {table} match ? order by rowid desc limit ?)"
)
_NAMES = "name_fts"
_EVERY = "select rowid from {table} where {table} match ? order by rowid desc"
_COUNT = "select count(*) from {table} where {table} match ?"


@dataclass(slots=True)
class Word:
    """A word of the question: the notes that hold it or a form of it, those that hold a word akin or one it begins,
    and those whose names hold it. `weight`: how much it tells. `voice`: somebody is called so. `expression`
    finds them all. `spelled`: what stands for it where no note holds it as it is written."""

    text: str
    rows: Sequence[int]
    akin: Sequence[int]
    weight: float
    voice: bool
    expression: str
    named: Sequence[int] = ()
    spelled: Sequence[str] = ()

    @property
    def is_cut(self) -> bool:
        """Whether more notes hold it than were looked at."""
        return max(len(self.rows), len(self.akin)) >= MOST_HELD


class Lookup:
    """Finds the notes that hold the words of one question."""

    def __init__(self, asked: Asked):
        self.asked, self.db = asked, asked.db
        self._known = asked.kept.rows
        title = asked.table == "name_fts"
        self.table, self.column = ("name_fts", "title : ") if title else ("stem_fts", "")
        # A power of two, so that no agent learns from the order how many notes of others there are.
        self.size = 1 << max(_LEAST_SIZE, self.db.execute("select max(row) from note").fetchone()[0] or 0).bit_length()

    def words(self, texts: Sequence[str]) -> list[Word]:
        """The words that some note holds, of very many the rarest."""
        table = weights.WEIGHTS
        texts = texts[: MOST_WORDS * 8]
        voices = {text for (text,) in self.db.execute(
            f"select value from json_each(?) where exists (select 1 from standing s where s.said = value and {SEEN})",
            (json.dumps(texts), self.asked.own),
        )}  # fmt: skip
        found = [self._word(text, text in voices) for text in texts]
        found = [word for word in found if word.rows or word.akin or word.voice]
        if len(found) > MOST_WORDS:
            rare = nlargest(MOST_WORDS, found, key=lambda word: word.weight)
            found = [word for word in found if word in rare]
        if not all(word.voice for word in found):
            for word in found:
                word.weight *= table.name if word.voice else 1.0
        self._name(found)
        return found

    def count(self, words: Sequence[Word]) -> int:
        """How many notes hold any of the words; without what only the filters outside FTS5 can tell."""
        return self.db.execute(_COUNT.format(table=self.table), (self._any(words),)).fetchone()[0]

    def every(self, words: Sequence[Word]) -> list[int]:
        """All those notes, the newest first."""
        return [note for (note,) in self.db.execute(_EVERY.format(table=self.table), (self._any(words),))]

    def _any(self, words: Sequence[Word]) -> str:
        return self.asked.full(f"{self.column}({' OR '.join(word.expression for word in words)})")

    def _word(self, text: str, voice: bool) -> Word:
        latin = not is_cjk(text)
        own = " OR ".join(map(quoted, _forms(text)))
        if not latin and len(text) == 1:
            own += "*"
        rows = self._rows(own)
        others = list(map(quoted, kin.akin(text))) if latin and len(rows) < _COMMON else []
        if latin and len(text) >= _PREFIX_FROM and len(rows) < _COMMON:
            others.append(f"{quoted(text)}*")
        akin = self._rows(" OR ".join(others)) if others else []
        weight = self._rarity(rows or akin)
        spelled = () if rows or akin or voice else spellings(self.asked, text)
        if spelled:
            own = " OR ".join(map(quoted, spelled))
            rows = self._rows(own)
            weight = self._rarity(rows) * weights.WEIGHTS.spelled
        return Word(text, rows, akin, weight, voice, " OR ".join([own, *others]), spelled=spelled)

    def _name(self, words: Sequence[Word]) -> None:
        """Which notes carry the words in their names: asked once for all, then for each."""
        if self.column or not words:
            return
        every = [" OR ".join(map(quoted, _forms(word.text))) for word in words]
        if self._rows(" OR ".join(every), 1, _NAMES):
            for word, own in zip(words, every, strict=True):
                word.named = self._rows(own, MOST_HELD, _NAMES)

    def _rows(self, text: str, most: int = MOST_HELD, table: str = "") -> Sequence[int]:
        """The newest notes that match and pass the filters."""
        column = self.column if not table else "{title headings tags} : "
        full = self.asked.full(f"{column}({text})")
        newest = _NEWEST.format(table=table or self.table)
        key = (newest, full, most)
        rows = self._known.get(key)
        if rows is None:
            rows = self._newest(newest, full, most)
            self._known.keep(key, rows, 40 * len(rows))
        if self.asked.filtered and rows:
            passed = set(passed_of(self.asked, rows))
            rows = [row for row in rows if row in passed]
        return rows

    def _newest(self, newest: str, full: str, most: int) -> list[int]:
        try:
            found = self.db.execute(newest, (full, most)).fetchone()[0]  # one text is read faster than many rows
        except sqlite3.OperationalError as error:
            if "phrase queries" not in str(error):
                raise
            return []  # a word of a script SQLite is too old to know comes apart in several
        return json.loads(f"[{found or ''}]")

    def _rarity(self, rows: Sequence[int]) -> float:
        """How much a word tells, as in bm25; how many hold it is estimated where not all were looked at."""
        held = float(len(rows))
        if held >= MOST_HELD:
            held *= max(1.0, self.size / (max(rows) - min(rows) + 1))
        return log(1 + (max(self.size, held) - held + 0.5) / (held + 0.5))


def passed_of(asked: Asked, notes: Iterable[int]) -> list[int]:
    """Those of `notes` that pass the filters FTS5 cannot apply."""
    where = " and ".join(["n.row in (select value from json_each(?))", *asked.conditions])
    found = asked.db.execute(f"select n.row from note n where {where}", (json.dumps(list(notes)), *asked.values))
    return passing(asked.db, asked.query, [row for (row,) in found])


def is_held(asked: Asked, term: Term) -> bool:
    """Whether any note the viewer sees holds the term, or what it begins."""
    text = expression(*wanted(asked.db, Query(), asked.viewer), asked.matcher.loose(term))
    return asked.matcher.count(text, 1) > 0


def spellings(asked: Asked, word: str) -> list[str]:
    """The words one edit away from `word` (lower case) that notes hold which the viewer sees, in whatever form, at
    most 8; none for what is no Latin word of 5 to 19 letters.

    Asking for all of some 450 words takes SQLite long. Those that differ behind the first letters are therefore
    looked for among the stems that begin with these, and only those that differ within them are asked for one by one.
    """
    if len(word) not in _SPELLED or not (word.isascii() and word.isalpha()):
        return []
    kept, who = asked.kept.spellings, (asked.viewer, asked.table, word)
    return kept[who] if who in kept else kept.keep(who, _spellings(asked, word))


def _spellings(asked: Asked, word: str) -> list[str]:
    head, every = word[:_HEAD], one_edit(word)
    stems = [stem for (stem,) in asked.db.execute(
        "select term from stems where term between ? and ? and length(term) between ? and ?",
        (head, head + "\uffff", len(word) - 7, len(word) + 1),
    )]  # fmt: skip
    whole = {stem + ending for stem in stems for ending in _ENDINGS}
    whole |= {stem[:-1] + ending for stem in stems if stem.endswith("i") for ending in ("y", "ies", "ied")}
    whole |= {stem + stem[-1] + ending for stem in stems for ending in ("ing", "ed")}
    whole |= {stem[:-1] + ending for stem in stems if stem.endswith("e") for ending in ("ing", "ed", "er")}
    full = partial(expression, *wanted(asked.db, Query(), asked.viewer))
    held = _held(asked.db, full, [one for one in every if one in whole or not one.startswith(head)])
    count = {one: asked.matcher.count(full(quoted(one)), _COMMON) for one in held}
    held.sort(key=lambda one: -count[one])
    return [one for one in held if count[one]][:_MOST_SPELLINGS] or held[:_MOST_SPELLINGS]


def _held(db: sqlite3.Connection, full: Callable[[str], str], some: list[str], *, known: bool = False) -> list[str]:
    """Those of the words that notes hold: asked for all at once, then for one half and the other. `known`: at least
    one is held."""
    text = full(" OR ".join(map(quoted, some)))
    there = "select 1 from stem_fts where stem_fts match ? limit 1"
    if not known and not (some and db.execute(there, (text,)).fetchone()):
        return []
    if len(some) == 1:
        return some
    first = _held(db, full, some[: len(some) // 2])
    return first + _held(db, full, some[len(some) // 2 :], known=not first)


def one_edit(word: str) -> list[str]:
    """All words one letter more, less, other or swapped away from `word`; the first letter is right."""
    found: dict[str, None] = {}
    for at in range(1, len(word) + 1):
        head, tail = word[:at], word[at:]
        found.update(dict.fromkeys(head + letter + tail for letter in _ALPHABET))
        if tail:
            found[head + tail[1:]] = None
            found.update(dict.fromkeys(head + letter + tail[1:] for letter in _ALPHABET))
        if len(tail) > 1:
            found[head + tail[1] + tail[0] + tail[2:]] = None
    found.pop(word, None)
    return list(found)


def _forms(text: str) -> tuple[str, ...]:
    return (query_text(text)[0],) if is_cjk(text) else kin.forms(text)
