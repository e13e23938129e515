"""Read queries of words, phrases and operators. Questions are read in `question`.

Source: contract 000b, 6. All text of a user is put into quoted FTS5 strings, so no input can act as
syntax.

A *term* is a word or a phrase of a query. A term may have several words: `time-zone` has `time` and
`zone`. A *clause* is what is between two ORs. A *run* is Chinese or Japanese text without blanks,
which the index keeps as pairs of characters.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain, islice, pairwise

from memoranda.index.filters import quoted
from memoranda.text.pattern import lazy_pattern
from memoranda.text.tokens import is_cjk, query_text, stop_words, tokens, words
from memoranda.text.unicode import sqlite_text
from memoranda.text.words import compounds, units
from memoranda.text.written_numbers import AMOUNT, TELEPHONE, number_forms

MAX_TERMS = 32
"""If a query has more terms or words, only the informative ones count."""

# A phrase in quotes, or a word. A number with blanks inside is a word.
_PIECE = lazy_pattern(
    rf'"(?P<phrase>[^"]*)"|(?P<word>(?:(?:{AMOUNT}|{TELEPHONE})(?![^\s"]))|[^\s"]+)'
)
# An amount with a currency, which a note may write behind the amount or leave out.
_WITH_CURRENCY = lazy_pattern(r"[$€£¥]\d[\d.,]*|\d[\d.,]*[$€£¥]")
# Between a Latin letter or digit and a Chinese or Japanese character.
_SCRIPT_CHANGE = lazy_pattern(
    "(?<=[0-9A-Za-z])(?=[\u3041-\u30ff\u3400-\u9fff])|(?<=[\u3041-\u30ff\u3400-\u9fff])(?=[0-9A-Za-z])"
)
# A double quote inside a Hebrew abbreviation, typed in place of the sign for it.
_GERSHAYIM = lazy_pattern('(?<=[א-ת])"(?=[א-ת])')
# The operators. Only capitals count.
_OPERATORS = frozenset(("AND", "OR", "NOT"))
# A phrase has at most this many words. A longer quote is pasted text.
_MAX_PHRASE_WORDS = 64
# `is_plain` checks only this many characters at the end of a text.
_PLAIN_TAIL_CHARACTERS = 400
# With this number of words as the least, `relaxable` counts terms and not their words.
_PAIR = 2
# A Chinese or Japanese run of this many characters counts for several words ...
_MIN_LONG_RUN = 7
# ... and of this many, if two words are enough.
_MIN_PAIR_RUN = 4
# A longer word is data, such as Base64. The words inside it are looked for instead.
_MAX_TERM_CHARACTERS = 400
# A longer run without blanks is cut, since a long phrase takes much time.
_MAX_RUN_CHARACTERS = 64
# In a query of up to this many words, two neighbors also match as one: `time zone` as `timezone`.
_MAX_JOINED_TERMS = 6
# A name of up to this many characters also matches by its parts.
_MAX_COMPOUND_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Term:
    """A word or phrase to look for.

    text: the term as written, without quotes.
    phrase: the text for FTS5, not quoted yet.
    words: the folded words of the term.
    may_be_longer: whether the last word may be the beginning of a longer word.
    single: whether the term is one Chinese or Japanese character. The index has pairs of them, so
        the character always matches as a prefix.
    other_spellings: other spellings as phrases, such as `wifi` for `Wi-Fi`.
    is_bare: whether the term was not in quotes, so that its word may match in another form.
    """

    text: str
    phrase: str
    words: tuple[str, ...]
    may_be_longer: bool
    single: bool = False
    other_spellings: tuple[str, ...] = ()
    is_bare: bool = False

    @property
    def whole(self) -> str:
        """The FTS5 string that matches whole words: `"red door"`."""
        return quoted(self.phrase) + ("*" if self.single else "")

    @property
    def prefix(self) -> str:
        """The FTS5 string that also matches longer last words: `"red door"*` finds `red doors`."""
        return quoted(self.phrase) + "*"


@dataclass(frozen=True, slots=True)
class Clause:
    """One part of a query between two ORs: `red door NOT lock`.

    terms: the terms that must all match.
    without: the terms after NOT, none of which may match.
    """

    terms: tuple[Term, ...]
    without: tuple[Term, ...] = ()


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A query after `parse`. A note is found if at least one of the clauses matches.

    bare: whether the query has only words, without a phrase or an operator.
    """

    clauses: tuple[Clause, ...]
    bare: bool

    @property
    def terms(self) -> list[Term]:
        """The positive terms of all clauses, each once, in the order of the query."""
        all_terms = chain.from_iterable(clause.terms for clause in self.clauses)
        return list(dict.fromkeys(all_terms))


def parse(text: str) -> ParsedQuery:
    """Parse a query into clauses of terms: `"red door" OR key NOT lock`.

    The example has two clauses: the phrase `red door`, and `key` without `lock`. An operator that
    lacks a term on one side is plain text. So is a quotation mark without a second one.
    """
    pieces: list[Term | str] = []
    has_phrase = False
    clean_text = _GERSHAYIM.sub("״", sqlite_text(text).replace("\0", " "))
    for match in _PIECE.finditer(clean_text):
        phrase = match["phrase"]
        word = match["word"]
        if word in _OPERATORS:
            pieces.append(word)
            continue

        if phrase is not None:
            has_phrase = True
            texts = [phrase]
        elif pieces[-1:] == ["NOT"]:
            # NOT excludes one term, so the word behind it is not split
            texts = [word]
        else:
            texts = _at_scripts(word)
        terms = [term(piece, phrase=phrase is not None) for piece in texts]
        # A text that has only signs is no term
        pieces += filter(None, terms)

    clauses, has_operators = _clauses(pieces)
    reduced_clauses = tuple(_reduced(clause) for clause in clauses)
    return ParsedQuery(reduced_clauses, bare=not has_phrase and not has_operators)


def _at_scripts(word: str) -> list[str]:
    """Split a word of a query between Latin letters and Chinese: `redis会话` → `redis`, `会话`.

    People write the two without a blank, and a note may have words between them. A number or a
    single letter stays with what it belongs to: `3月`, `C语言`. So does a character: `redis中`.
    """
    if word.isascii() or len(word) > _MAX_RUN_CHARACTERS:
        return [word]
    parts = _SCRIPT_CHANGE.split(word)
    says_something_alone = [len(part) > 1 and not part.isdigit() for part in parts]
    if all(says_something_alone):
        return parts
    return [word]


def term(text: str, *, phrase: bool = False) -> Term | None:
    """Turn a piece of a query into a term. Return None if the piece contains no word.

    phrase: whether the piece was in quotes.
    """
    # A shortcut for most terms: one word of ASCII letters in lower case.
    if text.isascii() and text.isalpha() and text.islower():
        return Term(text, text, (text,), may_be_longer=not phrase, is_bare=not phrase)
    phrase_tokens = _phrase_tokens(text)
    if not phrase_tokens:
        return None
    fts_phrase, single = phrase_for(text)
    return Term(
        text.strip(),
        fts_phrase,
        tuple(phrase_tokens),
        may_be_longer=not phrase and _may_be_longer(phrase_tokens),
        single=single,
        other_spellings=() if phrase else _other_spellings(text),
        is_bare=not phrase,
    )


def _phrase_tokens(text: str) -> list[str]:
    """Return the first words of a piece of a query. A long run of Chinese or Japanese is cut."""
    phrase_tokens = tokens(text)[:_MAX_PHRASE_WORDS]
    # Only Chinese and Japanese have long runs, so few texts need to be looked through.
    if len(text) > _MAX_RUN_CHARACTERS and not text.isascii():
        return [token[:_MAX_RUN_CHARACTERS] if is_cjk(token) else token for token in phrase_tokens]
    return phrase_tokens


def _may_be_longer(words: list[str]) -> bool:
    """Whether the last of these words may be the beginning of a longer word.

    A number after other words may not: `1.1` must not find `1.10`.
    """
    last = words[-1]
    if is_cjk(last) or not last[-1].isalnum():
        return False
    return len(words) == 1 or not last.isdigit()


def _other_spellings(text: str) -> tuple[str, ...]:
    """Return other spellings of a compound or a number as phrases: `getUser` → `get user`.

    An amount with a sign of a currency has only the spelling without this sign.
    """
    # The spellings of each compound in the text. A long text is not a name.
    spellings_of_compounds = []
    if len(text) <= _MAX_COMPOUND_CHARACTERS:
        spellings_of_compounds = compounds(text)
    # A number in other ways of writing, an amount without its currency, or a compound.
    forms = number_forms(text)
    if not forms and _WITH_CURRENCY.fullmatch(text):
        forms = [text.strip("$€£¥")]
    # A number may be a compound as well, such as a date. The text must be one compound and nothing
    # else.
    elif len(spellings_of_compounds) == 1:
        forms += filter(None, spellings_of_compounds[0])
    return tuple(query_text(form)[0] for form in forms)


def phrase_for(text: str) -> tuple[str, bool]:
    """Return a piece of a query as a phrase, as `query_text` does, `shortened` if it is long."""
    return query_text(shortened(text))


def shortened(text: str) -> str:
    """Return a piece of a query, and of a very long one its first words.

    SQLite compares the places of every word of a phrase. In a long note, that takes a minute for
    thousands of words.
    """
    limit = _MAX_TERM_CHARACTERS if text.isascii() else _MAX_RUN_CHARACTERS
    if len(text) <= limit:
        return text
    return " ".join(_phrase_tokens(text))


def _clauses(pieces: list[Term | str]) -> tuple[list[Clause], bool]:
    """Return (clauses, whether the query has an operator).

    OR begins a new clause, NOT excludes the next term, AND changes nothing: `red door OR key NOT
    lock` becomes a clause of `red` and `door`, and a clause of `key` without `lock`.

    pieces: terms, and operators as text.
    """
    clauses: list[Clause] = []
    # The terms of the clause that is not complete yet, and its excluded terms.
    terms: list[Term] = []
    without: list[Term] = []
    has_operator = False
    remaining = deque(pieces)
    while remaining:
        piece = remaining.popleft()
        next_piece = remaining[0] if remaining else None
        # AND and OR are operators only between two terms.
        joins_terms = bool(terms or without) and _begins_with_term(remaining)
        if isinstance(piece, Term):
            terms.append(piece)
        elif piece == "NOT" and isinstance(next_piece, Term):
            # This takes the next piece, too.
            without.append(next_piece)
            remaining.popleft()
            has_operator = True
        elif piece == "OR" and joins_terms:
            clauses.append(Clause(tuple(terms), tuple(without)))
            terms = []
            without = []
            has_operator = True
        elif piece == "AND" and joins_terms:
            has_operator = True
        else:
            # An operator that joins nothing is a word.
            operator_as_term = term(piece.lower())
            assert operator_as_term is not None
            terms.append(operator_as_term)
    if terms or without:
        clauses.append(Clause(tuple(terms), tuple(without)))

    # A query of very many clauses would take too long.
    return clauses[:MAX_TERMS], has_operator


def _begins_with_term(pieces: Iterable[Term | str]) -> bool:
    """Whether some pieces of a query begin with a term, or with NOT and a term."""
    first_pieces = list(islice(pieces, 2))
    if first_pieces[:1] == ["NOT"]:
        del first_pieces[0]
    return bool(first_pieces) and isinstance(first_pieces[0], Term)


def _reduced(clause: Clause) -> Clause:
    """Return a clause without repeated terms.

    A clause with more than MAX_TERMS terms also loses its uninformative terms. In a short clause,
    two neighboring words may also match as one word.
    """
    # Leave out repeated terms. Backwards, so that the first of equal terms replaces the later ones.
    terms_by_phrase: dict[str, Term] = {}
    for this_term in reversed(clause.terms):
        terms_by_phrase[this_term.phrase.casefold()] = this_term
    terms = list(terms_by_phrase.values())[::-1]

    # Shorten a long clause, and join neighbors in a short one.
    if len(terms) > MAX_TERMS:
        informative_words = set(words(" ".join([this_term.text for this_term in terms])))
        informative_terms = [
            this_term
            for this_term in terms
            # A phrase in quotes is always meant.
            if not this_term.may_be_longer or not informative_words.isdisjoint(this_term.words)
        ]
        terms = (informative_terms or terms)[:MAX_TERMS]
    if len(terms) <= _MAX_JOINED_TERMS:
        terms = _with_neighbors(terms)
    return Clause(tuple(terms), clause.without[:MAX_TERMS])


def _with_neighbors(terms: list[Term]) -> list[Term]:
    """Let two neighboring words also match as one word: `time` and `zone` also as `timezone`."""
    terms_with_neighbors = list(terms)
    for first_position, (first, second) in enumerate(pairwise(terms)):
        if not (_is_one_word(first) and _is_one_word(second)):
            continue
        joined = first.words[0] + second.words[0]
        for position in (first_position, first_position + 1):
            changed_term = terms_with_neighbors[position]
            terms_with_neighbors[position] = replace(
                changed_term, other_spellings=(*changed_term.other_spellings, joined)
            )
    return terms_with_neighbors


def _is_one_word(query_term: Term) -> bool:
    """Whether a term is one word of ASCII letters, not in quotes."""
    return (
        query_term.is_bare
        and len(query_term.words) == 1
        and query_term.words[0].isascii()
        and query_term.text.isalpha()
    )


def is_plain(text: str) -> bool:
    """Whether `text` has no quotes and operators, and at least three informative words.

    Only the end of a long text is checked for informative words, so that the whole text need not be
    parsed. Chinese and Japanese words do not count.
    """
    has_operator = not _OPERATORS.isdisjoint(text.split())
    if has_operator or '"' in text or "\0" in text:
        return False
    tail = text
    if len(text) > _PLAIN_TAIL_CHARACTERS:
        # Without the word that was cut
        tail = text[-_PLAIN_TAIL_CHARACTERS:].partition(" ")[2]
    informative_words = [
        word for word in words(tail) if word not in stop_words() and not is_cjk(word)
    ]
    return len(informative_words) > 2


def relaxable(query: ParsedQuery, *, quotes: bool = False, least: int = 3) -> bool:
    """Whether a query has enough bare words for a relaxed search, which needs only one of them.

    A bare word is not in quotes. A long Chinese or Japanese run counts for several words.

    quotes: whether a query with phrases may be searched for relaxed, too.
    least: how many bare words are enough. Up to two, a term of several words (`city/tram`) counts
        once, and a shorter run counts for two words.
    """
    has_operators = len(query.clauses) != 1 or bool(query.clauses[0].without)
    may_be_relaxed = query.bare or quotes
    if has_operators or not may_be_relaxed:
        return False
    terms = [bare_term for bare_term in query.clauses[0].terms if bare_term.is_bare]
    if least <= _PAIR:
        # Each term counts, however many words it has.
        counts = [_count_as_words(bare_term.words[-1], _MIN_PAIR_RUN) for bare_term in terms]
    else:
        all_words = chain.from_iterable([bare_term.words for bare_term in terms])
        counts = [_count_as_words(word, _MIN_LONG_RUN) for word in all_words]
    return sum(counts) >= least


def _count_as_words(word: str, min_run: int) -> int:
    """Return as how many words a word counts.

    A Chinese or Japanese run of at least `min_run` characters counts as half its characters:
    `北京市地铁站` with `min_run` 4 → 3. Any other word counts as one.
    """
    if not is_cjk(word):
        return 1
    length = len(units(word))
    if length >= min_run:
        return length // 2
    return 1


def says_much(query: ParsedQuery) -> bool:
    """Whether notes with only some of the words are worth showing after the notes with all words.

    This needs a Chinese or Japanese run, or three informative words in at least two terms. An
    address (`city/tram/stop`) is one term and names one thing.
    """
    if any(is_cjk(query_term.words[-1]) for query_term in query.terms):
        return True
    if len(query.terms) < 2:
        return False
    all_words = chain.from_iterable([query_term.words for query_term in query.terms])
    informative_words = [word for word in all_words if word not in stop_words()]
    return len(informative_words) > 2
