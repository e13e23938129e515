"""Read queries: `parse` reads words, phrases and operators, `read_question` words and dates.

Source: contract 000b, 6. All text of a user is put into quoted FTS5 strings, so no input can act as syntax.
"""

from __future__ import annotations

import re
import tomllib
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import cache
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import NamedTuple

from memoranda.index.filters import quoted
from memoranda.index.search import weights
from memoranda.text.dialogue import turns_of
from memoranda.text.pattern import lazy_pattern
from memoranda.text.tokens import is_cjk, pairs, query_text, stop_words, tokens, words
from memoranda.text.unicode import sqlite_text
from memoranda.text.words import compounds, units
from memoranda.text.written_numbers import AMOUNT, TELEPHONE, number_forms

MAX_TERMS = 32
"""If a query has more terms or words, only the informative ones count."""

# A phrase in quotes, or a word. A number with blanks inside is a word.
_PIECE = lazy_pattern(rf'"([^"]*)"|((?:(?:{AMOUNT}|{TELEPHONE})(?![^\s"]))|[^\s"]+)')
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
    open: whether the last word may be the beginning of a longer word.
    single: whether the term is one Chinese or Japanese character. The index has pairs of them, so
        the character always matches as a prefix.
    other_spellings: other spellings as phrases, such as `wifi` for `Wi-Fi`.
    is_bare: whether the term was not in quotes, so that its word may match in another form.
    """

    text: str
    phrase: str
    words: tuple[str, ...]
    open: bool
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


def term(text: str, *, phrase: bool = False) -> Term | None:
    """Turn a piece of a query into a term. Return None if the piece contains no word.

    phrase: whether the piece was in quotes.
    """
    # A shortcut for most terms: one word of ASCII letters in lower case.
    if text.isascii() and text.isalpha() and text.islower():
        return Term(text, text, (text,), open=not phrase, is_bare=not phrase)
    phrase_tokens = _phrase_tokens(text)
    if not phrase_tokens:
        return None
    fts_phrase, single = phrase_for(text)
    return Term(
        text.strip(),
        fts_phrase,
        tuple(phrase_tokens),
        open=not phrase and _may_go_on(phrase_tokens),
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


def shortened(text: str) -> str:
    """Return a piece of a query, and of a very long one its first words.

    SQLite compares the places of every word of a phrase. In a long note, that takes a minute for
    thousands of words.
    """
    limit = _MAX_TERM_CHARACTERS if text.isascii() else _MAX_RUN_CHARACTERS
    if len(text) <= limit:
        return text
    return " ".join(_phrase_tokens(text))


def phrase_for(text: str) -> tuple[str, bool]:
    """Return a piece of a query as a phrase, as `query_text` does, `shortened` if it is long."""
    return query_text(shortened(text))


def _may_go_on(words: list[str]) -> bool:
    """Whether the last of these words may be the beginning of a longer word.

    A number after other words may not: `1.1` must not find `1.10`.
    """
    last = words[-1]
    if is_cjk(last) or not last[-1].isalnum():
        return False
    return len(words) == 1 or not last.isdigit()


def _other_spellings(text: str) -> tuple[str, ...]:
    """Return other spellings of a compound or a number as phrases: `getUser` → `get user`."""
    if len(text) <= _MAX_COMPOUND_CHARACTERS:
        spellings = compounds(text)
    else:
        spellings = []
    forms = number_forms(text)
    if not forms and _WITH_CURRENCY.fullmatch(text):
        forms = [text.strip("$€£¥")]
    # The text must be one compound and nothing else.
    elif len(spellings) == 1:
        forms += filter(None, spellings[0])
    return tuple(query_text(form)[0] for form in forms)


def parse(text: str) -> ParsedQuery:
    """Parse a query into clauses of terms: `"red door" OR key NOT lock`.

    The example has two clauses: the phrase `red door`, and `key` without `lock`. An operator that
    lacks a term on one side is plain text. So is a quotation mark without a second one.
    """
    pieces: list[Term | str] = []
    bare = True
    clean_text = _GERSHAYIM.sub("״", sqlite_text(text).replace("\0", " "))
    for match in _PIECE.finditer(clean_text):
        if match[2] in _OPERATORS:
            pieces.append(match[2])
            continue
        is_phrase = match[1] is not None
        bare = bare and not is_phrase
        piece = match[1] if is_phrase else match[2]
        # NOT excludes one term, so what follows it stays whole.
        is_excluded = pieces[-1:] == ["NOT"]
        stays_whole = is_phrase or is_excluded
        for word in [piece] if stays_whole else _at_scripts(piece):
            parsed_term = term(word, phrase=is_phrase)
            if parsed_term:
                pieces.append(parsed_term)
    clauses, has_operators = _clauses(pieces)
    reduced_clauses = tuple(_reduced(clause) for clause in clauses)
    return ParsedQuery(reduced_clauses, bare and not has_operators)


def _at_scripts(word: str) -> list[str]:
    """Split a word of a query between Latin letters and Chinese: `redis会话` → `redis`, `会话`.

    People write the two without a blank, and a note may have words between them. A number or a
    single letter stays with what it belongs to: `3月`, `C语言`. So does a character: `redis中`.
    """
    if word.isascii() or len(word) > _MAX_RUN_CHARACTERS:
        return [word]
    parts = _SCRIPT_CHANGE.split(word)
    if all(_may_stand_alone(part) for part in parts):
        return parts
    return [word]


def _may_stand_alone(part: str) -> bool:
    """Whether a part of a mixed word says something alone: two characters, not only digits."""
    return len(part) > 1 and not part.isdigit()


def _reduced(clause: Clause) -> Clause:
    """Return a clause without repeated terms.

    A clause with more than MAX_TERMS terms also loses its uninformative terms. In a short clause,
    two neighboring words may also match as one word.
    """
    by_phrase: dict[str, Term] = {}
    # Backwards, so that the first of equal terms replaces the later ones.
    for this_term in reversed(clause.terms):
        by_phrase[this_term.phrase.casefold()] = this_term
    terms = list(by_phrase.values())[::-1]
    if len(terms) > MAX_TERMS:
        informative_words = set(words(" ".join([this_term.text for this_term in terms])))
        informative_terms = [
            this_term
            for this_term in terms
            # A phrase in quotes is always meant.
            if not this_term.open or not informative_words.isdisjoint(this_term.words)
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
    if '"' in text or "\0" in text or not _OPERATORS.isdisjoint(text.split()):
        return False
    tail = text
    if len(text) > _PLAIN_TAIL_CHARACTERS:
        # Without the word that was cut
        tail = text[-_PLAIN_TAIL_CHARACTERS:].partition(" ")[2]
    informative_words = [
        word for word in words(tail) if word not in stop_words() and not is_cjk(word)
    ]
    return len(informative_words) > 2


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
        counts = [_weight(bare_term.words[-1], _MIN_PAIR_RUN) for bare_term in terms]
    else:
        all_words = chain.from_iterable([bare_term.words for bare_term in terms])
        counts = [_weight(word, _MIN_LONG_RUN) for word in all_words]
    return sum(counts) >= least


def _weight(word: str, min_run: int) -> int:
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


# If a text has this many times the words of its questions, only the questions count.
_MIN_TEXT_TO_QUESTIONS = 5
# If a text is this many times as long as its last question, the rest is pasted.
_MIN_PASTED_TO_QUESTION = 30
# A question with more words is cut to the part that asks.
_MAX_QUESTION_WORDS = 30
# How many sentences before a very short question are searched for words that say what it is about.
# All of a long text without words, such as a drawn table, would take seconds.
_MAX_SENTENCES_BEFORE = 20
# A text that tells something has at least this many words.
_MIN_TOLD_WORDS = 12
# A question after a pasted text needs this many words to be enough without the text.
_MIN_QUESTION_WORDS = 3
# A question mark at the end.
_MARK = lazy_pattern(r"[?？]\W*$")
# A particle that makes a sentence of Chinese or Japanese a question.
_PARTICLE = lazy_pattern(r"(?:[吗呢嗎]|(?:です|ます|した|せん|だろう|でしょう)か)\W*$")
# A sentence with its closing signs.
_SENTENCE = lazy_pattern(r"[^.!?。！？\n]+[.!?。！？]*")
# A question mark in the address of a page, with what is around it: `h?v` of `watch?v=1`.
_IN_ADDRESS = lazy_pattern(r"[!-~]\?[0-9A-Za-z]")
_ASKING = (
    "what",
    "when",
    "where",
    "who",
    "whom",
    "whose",
    "which",
    "why",
    "how",
    "did",
    "does",
    "do",
    "is",
    "are",
    "was",
    "were",
    "has",
    "have",
    "had",
    "can",
    "could",
    "will",
    "would",
    "should",
)
# An asking word with a capital: a question begins there even without a sign before it.
_START = lazy_pattern(rf"\b(?:{'|'.join(word.title() for word in _ASKING)})\b")
# Asking words of Chinese, Japanese and Korean. They may be anywhere in a sentence.
_ASIAN = lazy_pattern(
    "什么|怎么|怎样|如何|为什么|哪|多少|几[个点号月岁次时位]|多[大久长远]|谁|啥|咋|何时|何处|是否|有没有"
    "|什麼|怎麼|為什麼|誰|なに|何|いつ|どこ|だれ|なぜ|どう|どの|どれ|どちら|いくつ|いくら|누구|언제|어디|무엇|어떻게"
)
# A question for a time.
_WHEN = lazy_pattern(
    r"\bwhen\b|\bwhat (?:date|day|month|year|time)\b|\bhow long\b"
    "|什么时候|何时|哪天|哪年|哪一|几[点号月]|多久|いつ|何時|언제",
    re.I,
)
# A question for what an assistant said: "what did you suggest", "the plan you gave me".
_QUESTIONS_FOR_A_REPLY = (
    # English
    r"\b(?:did|had|have|were) you\b",
    r"\byou(?:[’']ve|[’']d| have| had)?"
    r" (?:[a-z]{2,}ed|said|told|gave|given|wrote|written|made|showed|shown|sent|found|chose|put)\b",
    r"\byour (?:advice|answer|explanation|idea|recommendation|reply|response|suggestion)s?\b",
    r"\bremind me\b|\btell me again\b",
    r"\bour (?:last|previous|earlier) (?:chat|conversation|discussion|talk)\b|\bassistant\b",
    r"\b(?:ai|(?:chat)?bot|chatgpt|claude|copilot|gemini|gpt)"
    r" (?:say|said|tell|told|give|gave|write|wrote|(?:answer|explain|mention|recommend|suggest)(?:ed)?)\b",
    # German
    r"\b(?:hast|hattest|sagtest|meintest|empfahlst|rietst|gabst|schriebst|nanntest) du\b",
    r"\bdu\b[^.!?]{1,60}\bha(?:tte)?st\b",
    # `sie` may be anybody.
    r"\b(?:haben|hatten|sagten|meinten|empfahlen|rieten|gaben|schrieben|nannten) (?-i:Sie)\b",
    r"(?-i:\bSie)\b[^.!?]{1,60}\bha(?:ben|tten)\b",
    r"\b(?:dein|ihr)(?:e[mnrs]?)? (?:antwort|empfehlung|erklärung|rat|tipp|vorschlag|vorschläge)\b",
    r"\berinnere? mich\b|\bsag(?:e|en sie)? mir noch ?mal\b",
    r"\b(?:ki|assistent(?:in)?)\b[^.!?]{1,60}\b(?:gesagt|geraten|empfohlen|vorgeschlagen|geschrieben)\b",
    # French
    r"\b(?:as-tu|avez-vous|avais-tu|aviez-vous|tu (?:m['’])?(?:as|avais)|vous (?:m['’])?(?:avez|aviez))\b",
    r"\b(?:ta|tes|votre|vos) (?:explication|recommandation|réponse|suggestion)s?\b"
    r"|\b(?:ton|tes|votre|vos) conseils?\b",
    r"\brappel(?:le|ez)-moi\b|\bassistante?\b",
    # Spanish
    r"\b(?:aconsejaste|contaste|dijiste|diste|escribiste|explicaste|mencionaste|propusiste|recomendaste"
    r"|sugeriste)\b",
    r"\b(?:me|nos) (?:has|habías)\b|\btus? (?:consejo|explicación|recomendación|respuesta|sugerencia)\b",
    r"\brecuérdame\b|\basistente\b",
    # Italian
    r"\b(?:mi|ci) (?:hai|avevi)\b|\b(?:hai|avevi) (?:consigliato|detto|proposto|scritto|spiegato|suggerito)\b",
    r"\bricordami\b|\bassistente\b",
    # Portuguese
    r"\bvocê (?:me )?(?:aconselhou|deu|disse|escreveu|explicou|mencionou|recomendou|sugeriu|tinha)\b",
    r"\b(?:tua|sua) (?:explicação|recomendação|resposta|sugestão)\b|\bme lembre\b|\blembra-me\b",
    # Chinese
    "[你您妳](?:上次|上回|之前|刚才|剛才|曾|给|給|说|說|讲|講|写|寫|列|提|推荐|推薦|建议|建議|告诉|告訴|回答)",
    "助手|助理|(?:ai|chatgpt|claude)(?:上次|之前)?(?:说|說|推荐|推薦|建议|建議|告诉|告訴|回答)",
    # Japanese
    "(?:教え|言っ|話し|すすめ|勧め|薦め|提案し|推薦し|おすすめし|説明し|書い|答え)て(?:くれ|くださ|いただ)",
    "(?:あなた|君|きみ)が(?:教え|言っ|話し|すすめ|勧め|薦め|提案し|推薦し|書い|答え)|アシスタント",
    # Korean
    "(?:추천|설명|제안|말|얘기|대답)해 ?(?:줬|준|주었|주신|주셨)|알려 ?(?:줬|준|주었|주신|주셨)",
    "(?:네가|니가|당신이) ?(?:말|추천|제안|설명|알려)|어시스턴트",
)
_ASKS_ASSISTANT = lazy_pattern("|".join(_QUESTIONS_FOR_A_REPLY), re.I)
# A request to an assistant: "can you", "show me", "should I", "I'm planning". To remind is none.
_REQUEST = lazy_pattern(
    r"\b(?:can|could|would|will) you\b(?! (?:remind|recall|remember))"
    r"|\b(?:should|shall|can|could|may|might|do) (?:I|we)\b"
    r"|\b(?:help|show|give|tell|teach|find|write|make|draft|recommend|suggest) (?:me|us)\b"
    r"|\bI(?:[’']d| would) like\b|\bI(?:[’']m| am) (?:\w+ly )?[a-z]+ing\b|\bI (?:want|need|have to)\b"
    r"|\badvice\b|\b(?:recommendation|suggestion|idea|tip)s\b"
    "|帮我|请(?!问)|教我|给我|(?:能|可)(?:不能|不可以|以|否)?(?:帮|给|教|推荐|建议)"
    "|我(?:们)?(?:想|要|需要|打算|准备|正在|该|应该|应当|可以|能)",
    re.I,
)
_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_NAME = "|".join([*_MONTHS, *(name[:3] for name in _MONTHS if name != "may"), "sept"])
# A year that is not a part of a longer number or name.
_YEAR = lazy_pattern(r"(?<![\da-z-])((?:19|20)\d\d)(?![\da-z])")
# Words before "may" that make it the month.
_BEFORE_MAY = lazy_pattern(r"\b(?:in|of|since|during|until|last|this)\s+$")


_HELPS = "is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|might|may|must"
_ASKS = r"\b(?:what|which|who|whom|where)\b"
_WORD = r"[\w+'’/-]+"
SEVERAL = lazy_pattern(
    # What are, where has
    rf"{_ASKS}\s+(?:are|were|have|has)\b"
    # Which of her friends have
    rf"|{_ASKS}(?:\s+(?!(?:{_HELPS})\b){_WORD}){{1,4}}\s+(?:are|were|have|has)\b"
    rf"|\b(?:what|which)\s+(?:(?!(?:{_HELPS})\b){_WORD}\s+){{0,4}}?(?!(?:{_HELPS}|this|always)\b)[\w+/-]{{2,}}(?<![sui])s"
    # What kinds of, which books did
    rf"(?=\s+(?:{_HELPS}|in|of|to|for|from|on|with|at|that|and|or)\b|\s*[,?])"
    r"|\bhow many\b|\bboth\b"
    r"|哪些|哪几|几[个种次本位家]|都有|都.{0,8}过",
    re.I,
)
"""Matches a question for several things: a plural ("which books"), the perfect tense ("where has
she worked"), or a number ("how many")."""


@dataclass(frozen=True, slots=True)
class Period:
    """Days that a question names.

    first, last: the first and the last day, as YYYY-MM-DD. MM-DD if no year is named.
    weight: the share that a note of these days gets. A year has a lower weight than a month or day.
    """

    first: str
    last: str
    weight: float

    def share(self, day: str) -> float:
        """Return the weight if `day` (YYYY-MM-DD) is in the period, otherwise 0."""
        # Without a year in the period, only the month and day are compared.
        if self.first <= day[-len(self.first) :] <= self.last:
            return self.weight
        return 0.0


@dataclass(frozen=True, slots=True)
class Question:
    """A question as words and dates.

    words: the words in lower case, each once. Chinese and Japanese runs are cut into pairs.
    weak: the pairs across a stop word, which say little.
    periods: the days that the question names.
    when: whether the question asks for a time.
    only_days: whether the question names nothing but days.
    asks_assistant: whether the question asks for what an assistant said.
    is_request: whether an assistant is to do or to advise something.
    beside: the words of a long text or a dialogue that are outside its question. Each has its
        weight relative to a word of the question.
    asking: the words by which the question asks, such as `recommend` and `mentioned`.
    """

    words: tuple[str, ...]
    weak: frozenset[str]
    periods: tuple[Period, ...]
    when: bool
    only_days: bool = False
    asks_assistant: bool = False
    is_request: bool = False
    beside: Mapping[str, float] = field(default_factory=dict)
    asking: frozenset[str] = frozenset()

    def share_of(self, word: str) -> float:
        """Return how much a word counts, relative to a word of the question that does not ask."""
        share = self.beside.get(word, 1.0)
        if word in self.asking:
            share *= weights.WEIGHTS.asking
        return share


def read_question(text: str, today: date | None = None) -> Question:
    """Read the question in a text: the newest turn of a dialogue, or the questions of a long text.

    All other words of the text count less (`Question.beside`). They are left out if the text was
    pasted before a question that has enough words.

    today: the day from which "last week" counts. None means that only written dates are understood.
    """
    # Find the question, and the texts beside it.
    turns = turns_of(text)
    is_dialogue = bool(turns) and turns[-1] != ""
    focus = Focus(turns[-1]) if is_dialogue else focus_of(text)
    question_text = focus.text
    is_complete = focus.is_buried and len(words(question_text)) >= _MIN_QUESTION_WORDS
    texts_beside: list[str] = []
    if is_dialogue:
        texts_beside = turns[:-1]
    elif len(question_text) < len(text) and not is_complete:
        texts_beside = [text]

    # Find the words of both.
    question_words, weak_in_question = _pairs_of(question_text)
    beside, weak_beside = _words_beside(texts_beside, question_words)
    ordered_words = list(question_words)
    if beside:
        ordered_words += [word for word in _pairs_of(text)[0] if word in beside]

    # Does the question name nothing but times?
    named_periods = periods(question_text, today)
    text_without_times = _RELATIVE.sub(" ", question_text.lower())
    only_days = bool(named_periods) and stop_words().issuperset(words(text_without_times))
    is_request = _REQUEST.search(question_text) is not None
    asking: frozenset[str] = frozenset()
    # Where something is told, such words tell, too: what somebody recommended is the matter.
    if not is_told(text):
        asking = _asking_words(is_request=is_request).intersection(ordered_words)
    return Question(
        tuple(ordered_words),
        weak_in_question | weak_beside,
        tuple(named_periods),
        when=_WHEN.search(question_text) is not None,
        only_days=only_days,
        asks_assistant=_ASKS_ASSISTANT.search(question_text) is not None,
        is_request=is_request,
        beside=beside,
        asking=asking,
    )


@cache
def _asking_words(*, is_request: bool) -> frozenset[str]:
    """Return the words by which people ask, from asking.toml.

    is_request: whether to add the words that only ask in a request, such as `best`.
    """
    path = Path(__file__).with_name("asking.toml")
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    words_that_ask = table["always"].split()
    if is_request:
        words_that_ask += table["in_a_request"].split()
    return frozenset(words_that_ask)


def _words_beside(
    texts: Sequence[str], question_words: Mapping[str, None]
) -> tuple[dict[str, float], frozenset[str]]:
    """Return the words of the texts beside a question with their weights, and the weak ones.

    The words of the last text weigh most, the words of each earlier text less.

    texts: the texts in order, such as the turns of a dialogue.
    question_words: the words of the question, which are left out.
    """
    weights_beside: dict[str, float] = {}
    weak: frozenset[str] = frozenset()
    weight = weights.WEIGHTS.beside
    for text in reversed(texts):
        words_of_text, weak_in_text = _pairs_of(text)
        for word in words_of_text.keys() - question_words.keys() - weights_beside.keys():
            weights_beside[word] = weight
        weak |= weak_in_text & weights_beside.keys()
        weight *= weights.WEIGHTS.earlier
    return weights_beside, weak


def _pairs_of(text: str) -> tuple[dict[str, None], frozenset[str]]:
    """Return (the informative words of a text, the weak words among them).

    Chinese and Japanese runs are cut into pairs. A pair across a stop word is weak: it says little.
    The words are the keys of a dict, in the order of the text. The values are always None.
    """
    # A text in ASCII has no runs.
    if text.isascii():
        return dict.fromkeys(words(text)), frozenset()
    word_pairs: dict[str, None] = {}
    for word in words(text):
        word_pairs.update(dict.fromkeys(pairs(word)))
    # The pairs of whole runs, stop words included.
    run_pairs: dict[str, None] = {}
    for token in tokens(text):
        if is_cjk(token):
            run_pairs.update(dict.fromkeys([pair for pair in pairs(token) if len(pair) > 1]))
    weak = frozenset(run_pairs.keys() - word_pairs.keys())
    return word_pairs | run_pairs, weak


def is_told(text: str) -> bool:
    """Whether `text` tells something, rather than being a list of terms that must all match.

    Such a text has two sentences or lines of several words, and 12 words in all.
    """
    sentence_count = 0
    for match in _SENTENCE.finditer(text):
        has_several_words = len(tokens(match.group())) > 1
        if has_several_words:
            sentence_count += 1
        # The rest of a long text need not be cut into sentences.
        if sentence_count == 2:
            return len(tokens(text)) >= _MIN_TOLD_WORDS
    return False


def is_question(text: str) -> bool:
    """Whether `text` is a question in plain language, by its end or its first word."""
    if is_short_question(text):
        return True
    first_words = tokens(text.strip()[:40])
    return bool(first_words) and first_words[0].lower() in _ASKING


def is_short_question(text: str) -> bool:
    """Whether even a short `text` is a question.

    It needs a question mark, or a question word in Chinese, Japanese or Korean. An English question
    word is not enough: `will smith` is a name.
    """
    end = text.strip()[-40:]
    last_signs = end[-8:]
    if _MARK.search(last_signs) or _PARTICLE.search(last_signs):
        return True
    return _ASIAN.search(end) is not None


def is_certain_question(text: str) -> bool:
    """Whether `text` is certainly a question in Chinese, Japanese or Korean.

    Such a text has a question word and ends in a question mark, or ends in a particle such as `吗`.
    A text with only a question word may be part of a sentence that somebody looks for.
    """
    end = text.strip()[-40:]
    last_signs = end[-8:]
    if _PARTICLE.search(last_signs):
        return True
    return _MARK.search(last_signs) is not None and _ASIAN.search(end) is not None


class Focus(NamedTuple):
    """The part of a text that asks.

    text: this part.
    is_buried: whether the rest of the text is long and was pasted before the question.
    """

    text: str
    is_buried: bool = False


def focus_of(text: str) -> Focus:
    """Return the part of a text that asks.

    The result is the first of these that applies:
    - the last question, if the text is more than _MIN_PASTED_TO_QUESTION times as long;
    - all questions, if the text has _MIN_TEXT_TO_QUESTIONS times their words;
    - the whole text: a short text around a question may say what the question is about.
    """
    if "?" not in text and "？" not in text:
        return Focus(text)
    sentences, positions = _sentences_with_questions(text)
    if not positions:
        return Focus(text)
    last_question = _last_question(sentences, positions[-1])
    if len(text) > _MIN_PASTED_TO_QUESTION * len(last_question):
        return Focus(last_question, is_buried=True)

    questions = "".join(sentences[position] for position in positions)
    question_words = set(words(questions))
    text_words = set(words(text))
    is_short_text = len(text_words) < _MIN_TEXT_TO_QUESTIONS * len(question_words)
    if is_short_text:
        return Focus(text)
    # `last_question` may include the sentence before a very short question.
    if len(positions) == 1:
        return Focus(last_question)
    return Focus(questions)


def _sentences_with_questions(text: str) -> tuple[list[str], list[int]]:
    """Return the sentences of a text, and the positions of the questions among them."""
    sentences: list[str] = []
    positions: list[int] = []
    for match in _SENTENCE.finditer(text):
        sentence = match.group()
        if not sentence.strip():
            continue
        # The question mark of `watch?v=1` ends no sentence.
        ends_in_address = _IN_ADDRESS.match(text, match.end() - 2) is not None
        if sentence.endswith(("?", "？")) and not ends_in_address:
            positions.append(len(sentences))
        sentences.append(sentence)
    return sentences, positions


def _last_question(sentences: Sequence[str], position: int) -> str:
    """Return the question at a position, shortened or extended to a useful length.

    A long question is cut to the part from its last question word on. Sentences before it are put
    in front of a question of a single word: `The tram is late. Why?`.

    position: the position of the question in `sentences`.
    """
    question = sentences[position]
    if len(tokens(question)) > _MAX_QUESTION_WORDS:
        starts = [match.start() for match in _START.finditer(question)]
        if starts:
            last_part = question[starts[-1] :]
            if len(words(last_part)) > 1:
                question = last_part
    first_position = max(0, position - _MAX_SENTENCES_BEFORE)
    while position > first_position and len(words(question)) < 2:
        position -= 1
        question = sentences[position] + question
    return question


def periods(text: str, today: date | None = None) -> list[Period]:
    """Return the days that `text` names: dates, months, years, and days relative to `today`.

    `in May 2026` → 2026-05-01 to 2026-05-31, and with less weight the year 2026.
    """
    lower_text = text.lower()
    periods_found: list[Period] = []
    for match in _dates().finditer(lower_text):
        periods_found += _written(match)
    for year in _YEAR.findall(lower_text):
        periods_found.append(Period(f"{year}-01-01", f"{year}-12-31", _YEAR_WEIGHT))
    if today is not None:
        for first, last in _relative(lower_text, today):
            period = Period(first.isoformat(), last.isoformat(), _RELATIVE_WEIGHT)
            periods_found.append(period)
    return periods_found


# The weights of a period: a year says little, a month or a day more. A relative time such as
# "yesterday" is meant as a day most surely.
_YEAR_WEIGHT = 0.3
_WRITTEN_WEIGHT = 1.0
_RELATIVE_WEIGHT = 1.3


@cache
def _dates() -> re.Pattern[str]:
    """Return the pattern for written dates: `2026-05-01`, `5月1日`, `1st of May 2026`, `May 1`."""
    return re.compile(
        r"(?<!\d)(?P<y1>(?:19|20)\d\d)\s*[-/年]\s*(?P<m1>\d{1,2})(?:\s*[-/月]\s*(?P<d1>\d{1,2}))?(?!\d)"
        r"|(?<!\d)(?P<m2>\d{1,2})月(?:(?P<d2>\d{1,2})[日号])?"
        rf"|(?:\b(?P<d3>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?\b(?P<name>{_NAME})\b\.?"
        r"(?:\s+(?P<d4>\d{1,2})(?:st|nd|rd|th)?\b)?(?:,?\s+(?P<y3>(?:19|20)\d\d))?"
    )


def _written(match: re.Match[str]) -> list[Period]:
    """Return the periods that a written date means: its month and, if it names one, its day.

    "may" counts as a month only with a day, a year or a word such as "in" before it. Returns an
    empty list if the match is not a date.

    match: a match of `_dates`.
    """
    year = match["y1"] or match["y3"]
    day = match["d1"] or match["d2"] or match["d3"] or match["d4"]
    is_date = day or year or _BEFORE_MAY.search(match.string, 0, match.start())
    if match["name"] == "may" and not is_date:
        return []
    month = _month_of(match)
    if not 1 <= month <= 12:
        return []
    month_text = f"{year}-{month:02}" if year else f"{month:02}"
    # Days are compared as texts, so every month may end with the 31st.
    periods_found = [Period(f"{month_text}-01", f"{month_text}-31", _WRITTEN_WEIGHT)]
    if day and 1 <= int(day) <= 31:
        day_text = f"{month_text}-{int(day):02}"
        periods_found.append(Period(day_text, day_text, _WRITTEN_WEIGHT))
    return periods_found


def _month_of(match: re.Match[str]) -> int:
    """Return the number of the month in a match of `_dates`. It may be over 12."""
    name = match["name"]
    if name:
        beginnings = [month_name[:3] for month_name in _MONTHS]
        return beginnings.index(name[:3]) + 1
    return int(match["m1"] or match["m2"])


def _relative(lower_text: str, today: date) -> list[tuple[date, date]]:
    """Return (first day, last day) of each time named relative to `today`.

    `yesterday` is one day, `two weeks ago` a week around the day two weeks before.

    lower_text: a text in lower case.
    """
    spans: list[tuple[date, date]] = []
    for match in _RELATIVE.finditer(lower_text):
        if match["named"]:
            unit, units_ago = _NAMED_TIMES[match["named"]]
            spans.append(_calendar_span(unit, units_ago, today))
            continue
        if match["count"].isdecimal():
            count = int(match["count"])
        else:
            count = _NUMBERS[match["count"]]
        days_in_unit = _UNITS[match["unit"]]
        days_ago = count * days_in_unit
        # Nobody means a day more than a century ago. `date` may not even have such a year.
        if days_ago <= 40_000:
            # "two weeks ago" is hardly meant to the day, so half a unit on both sides counts.
            margin = timedelta(days=days_in_unit // 2)
            middle = today - timedelta(days=days_ago)
            spans.append((middle - margin, middle + margin))
    return spans


def _calendar_span(unit: str, units_ago: int, today: date) -> tuple[date, date]:
    """Return the first and the last day of a day, week, month or year of the calendar.

    unit: `day`, `week`, `month` or `year`.
    units_ago: how many of these units it is before the present one. 0 is the present one.
    """
    if unit == "day":
        day = today - timedelta(days=units_ago)
        return day, day
    if unit == "week":
        monday = today - timedelta(days=today.weekday() + 7 * units_ago)
        return monday, monday + timedelta(days=6)
    if unit == "month":
        # Counted from January of the year 0, months go on over the end of a year.
        year, month_index = divmod(today.year * 12 + today.month - 1 - units_ago, 12)
        first = date(year, month_index + 1, 1)
        # 31 days after the first of a month is a day of the next one.
        first_of_next_month = (first + timedelta(days=31)).replace(day=1)
        return first, first_of_next_month - timedelta(days=1)
    year = today.year - units_ago
    return date(year, 1, 1), date(year, 12, 31)


# The names of times, by (unit, how many such units ago).
_NAMES_OF_TIMES = {
    ("day", 0): ("today", "tonight", "this morning", "今天", "今日"),
    ("day", 1): ("yesterday", "last night", "昨天", "昨晚", "昨日"),
    ("day", 2): ("the day before yesterday", "前天"),
    ("week", 0): ("this week", "本周", "这周", "这个星期", "今週"),
    ("week", 1): ("last week", "上周", "上个星期", "上星期", "先週"),
    ("month", 0): ("this month", "本月", "这个月", "今月"),
    ("month", 1): ("last month", "上个月", "上月", "先月"),
    ("year", 0): ("this year", "今年"),
    ("year", 1): ("last year", "去年", "昨年"),
    ("year", 2): ("前年",),
}
# Each name of a time → (unit, how many such units ago).
_NAMED_TIMES = {name: time for time, names in _NAMES_OF_TIMES.items() for name in names}
# Unit -> its length in days. A rough length is enough: the period gets a margin of half a unit.
_UNITS = {
    "day": 1,
    "week": 7,
    "month": 30,
    "year": 365,
    "天": 1,
    "日": 1,
    "周": 7,
    "个星期": 7,
    "个月": 30,
    "年": 365,
}
# Counts as people write them.
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_NUMBERS |= {"一": 1, "两": 2, "二": 2, "三": 3, "四": 4, "五": 5, "六": 6}


def _one_of(names: Iterable[str]) -> str:
    """Return a pattern for any of these texts, the longest first."""
    return "|".join(sorted(names, key=len, reverse=True))


# A time relative to today: a name (`last week`), or a count of units (`two days ago`).
_RELATIVE = lazy_pattern(
    rf"(?P<named>{_one_of(_NAMED_TIMES)})"
    rf"|(?:\b|(?<![\d一两二三四五六]))(?P<count>\d{{1,4}}|{_one_of(_NUMBERS)})\s*"
    rf"(?P<unit>{_one_of(_UNITS)})(?:s?\s+ago\b|前)"
)
