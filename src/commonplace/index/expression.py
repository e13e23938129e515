"""The text of a query as terms, and terms as FTS5 expressions (contract 000b, 6).

Whatever a user writes ends up inside quoted FTS5 strings: no input can be syntax.
"""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass

from commonplace.index.facets import PROJECT, project_ids, quoted, token
from commonplace.index.kept import Room
from commonplace.text.tokens import flatten, is_cjk, query_text, stop_words, tokens, words
from commonplace.text.unicode import sqlite_text

MOST_TERMS = 32
"""More terms than this are reduced to the informative ones."""

COMMON = 2_000
"""A word that more notes hold is not also matched as a prefix, and not all its notes are ranked."""

_PIECE = re.compile(r'"([^"]*)"|([^\s"]+)')
_OPERATORS = frozenset(("AND", "OR", "NOT"))
_PHRASE_TOKENS = 64
_TAIL = 400
_NO_SUCH_NOTE = '"\uf8ff"'


@dataclass(frozen=True, slots=True)
class Term:
    """One word or phrase to look for.

    `phrase` is its text for FTS5, `words` its flattened words. `open`: may match as a prefix;
    `single`: one CJK character, always a prefix.
    """

    text: str
    phrase: str
    words: tuple[str, ...]
    open: bool
    single: bool = False

    @property
    def whole(self) -> str:
        """The FTS5 string that matches it as it stands."""
        return quoted(self.phrase) + ("*" if self.single else "")

    @property
    def prefix(self) -> str:
        """The FTS5 string that matches it and what it begins."""
        return quoted(self.phrase) + "*"


@dataclass(frozen=True, slots=True)
class Clause:
    """Terms that must all be there, and terms that must not."""

    terms: tuple[Term, ...]
    without: tuple[Term, ...] = ()


@dataclass(frozen=True, slots=True)
class Wanted:
    """The parsed text: any of the clauses. `bare`: words only, no phrase and no operator."""

    clauses: tuple[Clause, ...]
    bare: bool

    @property
    def terms(self) -> list[Term]:
        """The terms looked for, each once."""
        return list(dict.fromkeys(term for clause in self.clauses for term in clause.terms))


def term(text: str, *, phrase: bool = False) -> Term | None:
    """One chunk of text as a term, None when it holds no letter or digit."""
    every = tokens(text)[:_PHRASE_TOKENS]
    if not every:
        return None
    written = " ".join(every) if len(text) > 400 else text
    if written.isascii():
        found, single = written.replace("\0", " ").strip(), False
    else:
        found, single = query_text(written)
    flat = tuple(map(flatten, every))
    return Term(text.strip(), found, flat, open=not phrase and not is_cjk(flat[-1]), single=single)


def parse(text: str) -> Wanted:
    """The words, phrases and operators of `text`; a lone operator and an odd quote are text."""
    pieces: list[Term | str] = []
    bare = True
    for match in _PIECE.finditer(sqlite_text(text).replace("\0", " ")):
        if match[1] is not None:
            found = term(match[1], phrase=True)
            bare = False
        elif match[2] in _OPERATORS:
            pieces.append(match[2])
            continue
        else:
            found = term(match[2])
        if found is not None:
            pieces.append(found)
    clauses, operators = _clauses(pieces)
    if operators:
        bare = False
    return Wanted(tuple(_shortened(clause) for clause in clauses), bare)


def is_plain(text: str) -> bool:
    """Whether `text` is bare words, three informative ones among its last: so much can be told without parsing it."""
    if '"' in text or "\0" in text or not _OPERATORS.isdisjoint(text.split()):
        return False
    telling = words(text[-_TAIL:].partition(" ")[2] if len(text) > _TAIL else text)
    return sum(not is_cjk(word) for word in telling if word not in stop_words()) > 2


def _clauses(pieces: list[Term | str]) -> tuple[list[Clause], bool]:
    """Groups the pieces: OR parts clauses, NOT takes the next term away, AND changes nothing."""
    clauses: list[Clause] = []
    terms: list[Term] = []
    without: list[Term] = []
    operators = False
    position = 0
    while position < len(pieces):
        piece = pieces[position]
        after = pieces[position + 1] if position + 1 < len(pieces) else None
        later = pieces[position + 2] if position + 2 < len(pieces) else None
        joins = bool(terms or without) and (isinstance(after, Term) or (after == "NOT" and isinstance(later, Term)))
        position += 1
        if isinstance(piece, Term):
            terms.append(piece)
        elif piece == "NOT" and isinstance(after, Term):
            without.append(after)
            operators, position = True, position + 1
        elif piece == "OR" and joins:
            clauses.append(Clause(tuple(terms), tuple(without)))
            terms, without, operators = [], [], True
        elif piece == "AND" and joins:
            operators = True
        else:
            lone = term(piece.lower())
            assert lone is not None
            terms.append(lone)
    if terms or without:
        clauses.append(Clause(tuple(terms), tuple(without)))
    return clauses[:MOST_TERMS], operators


def _shortened(clause: Clause) -> Clause:
    """The clause without repeated terms, and of a long one the informative terms."""
    terms = list({one.phrase.casefold(): one for one in reversed(clause.terms)}.values())[::-1]
    if len(terms) > MOST_TERMS:
        telling = set(words(" ".join(one.text for one in terms)))
        kept = [one for one in terms if not one.open or any(word in telling for word in one.words)]
        terms = (kept or terms)[:MOST_TERMS]
    return Clause(tuple(terms), clause.without[:MOST_TERMS])


class Matcher:
    """Decides per term whether it matches whole words or prefixes, asking the index once each.

    `column` limits every term to one column of `table`; `counts` is what was counted before.
    """

    def __init__(self, db: sqlite3.Connection, table: str, column: str, counts: Room[int]):
        self.db = db
        self.table = table
        self.projects = project_ids(db)
        self._column = f"{column} : " if column else ""
        self._counts = counts

    def held(self, found: Term) -> int:
        """In how many notes the term stands as it is, counted up to COMMON + 1."""
        return self.count(self._column + found.whole, COMMON + 1)

    def spread(self, found: Term) -> int:
        """In how many notes the term matches, as a whole if it does at all, up to COMMON + 1."""
        return self.held(found) or self.count(self.loose(found), COMMON + 1)

    def is_rare(self, found: Term, limit: int) -> bool:
        """Whether at most `limit` notes hold the term as it is."""
        return self.held(found) <= COMMON or self.count(self._column + found.whole, limit + 1) <= limit

    def count(self, expression: str, limit: int) -> int:
        """How many notes match `expression`, at most `limit`."""
        key = (self.table, expression, limit)
        if key not in self._counts:
            text = f"select count(*) from (select 1 from {self.table} where {self.table} match ? limit ?)"
            self._counts.keep(key, self.db.execute(text, (expression, limit)).fetchone()[0])
        return self._counts[key]

    def loose(self, found: Term) -> str:
        """The expression for the term, prefixes included where they may match."""
        return self._placed(found, self._as_prefix(found))

    def strict(self, found: Term) -> str:
        """The expression for the term as whole words."""
        return self._placed(found, False)

    def any_note(self) -> str:
        """An expression every note matches."""
        every = [quoted(token(PROJECT, str(number))) for number in self.projects.values()]
        return f"({' OR '.join(every)})" if every else _NO_SUCH_NOTE

    def _as_prefix(self, found: Term) -> bool:
        """Whether the term is matched as a prefix: not what is very short or very common."""
        if not found.open:
            return False
        if len(found.words[-1]) <= 2:
            return self.held(found) == 0
        return self.held(found) <= COMMON

    def _placed(self, found: Term, prefix: bool) -> str:
        """A path that begins with a project's name also means the rest within that project."""
        expression = self._column + (found.prefix if prefix else found.whole)
        head, slash, rest = found.text.partition("/")
        number = self.projects.get(head.casefold()) if slash else None
        inner = term(rest, phrase=not found.open) if number is not None else None
        if inner is None:
            return expression
        within = (self._column or "address : ") + (inner.prefix if prefix else inner.whole)
        return f"({expression} OR ({within} AND {quoted(token(PROJECT, str(number)))}))"


def match(wanted: Wanted, matcher: Matcher, *, whole: bool = False) -> str:
    """The FTS5 expression of `wanted`; `whole` without prefixes. "" when there is nothing to find."""
    form = matcher.strict if whole else matcher.loose
    parts = []
    for clause in wanted.clauses:
        positive = " AND ".join(form(one) for one in clause.terms) or matcher.any_note()
        if clause.without:
            negative = " OR ".join(matcher.strict(one) for one in clause.without)
            positive = f"({positive}) NOT ({negative})"
        parts.append(f"({positive})")
    return " OR ".join(parts)


def relaxable(wanted: Wanted, *, quotes: bool = False, least: int = 3) -> bool:
    """Whether a query without hits may be asked again with OR: `least` or more bare words, a long CJK run counting for
    several. With `quotes` a phrase may stand among them."""
    if len(wanted.clauses) != 1 or wanted.clauses[0].without or not (wanted.bare or quotes):
        return False
    size = sum(
        (len(word) // 2 if len(word) > 6 else 1) if is_cjk(word) else 1
        for one in wanted.clauses[0].terms
        if one.open or is_cjk(one.words[-1])
        for word in one.words
    )
    return size >= least
