"""Recognize sentences that give orders to an agent, such as "Ignore all rules" (docs/gate.md).

A part is a named set of words with one meaning: the part `drop` has `ignore`, `forget` and so on.
order-words.txt lists the words of each part by language. An entry of that file is one word, `forget`,
or several, `get_rid_of`; `*` at its end allows any ending. A combination is a line of a rule in
gate.rules, such as `drop + earlier|every + orders`. A sentence meets it if words of all these parts
are near each other in it, in any order.

Each part has a bit in a number, such as 0b001 for `drop`, 0b010 for `earlier` and 0b100 for `orders`.
So one look at the bits of its words, here 0b101 for "Ignore the rules", is enough to pass over most
sentences.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain, filterfalse
from math import log
from pathlib import Path
from typing import NamedTuple

from memoranda.text.disguise import (
    BREAK,
    FoldedText,
    decoded,
    joined_letters,
    look_alike,
    look_alikes,
    uncovered,
    visible_letters,
)
from memoranda.text.disguise import plain as folded
from memoranda.text.likeness import WINDOW, best_score, is_like_around, may_be_like_orders
from memoranda.text.pattern import lazy_pattern
from memoranda.text.tokens import is_cjk
from memoranda.text.words import runs

WITHIN = 18
"""The parts of a combination must be among this many words, unless it says otherwise."""
# In a pair `a>b`, at most this many words may be between the two.
_NEXT_TO = 3.5
# How many results each cache here keeps. Texts bring ids and numbers without end, each seen once.
_MOST_REMEMBERED = 8_000
# Words with this many characters or more are not remembered.
_LONG = 40
# A word of another alphabet with at most this many letters may look like an English one by chance.
_SHORT = 3
# A part that rules a match out counts up to this many words before it, in the same clause.
_BEFORE = 5
# The stems that a word may begin with are looked up by this many of its first characters.
_HEAD = 2
# One character more than the shortest stem has
_BEGINNING = 3
# Characters of the longest Chinese or Japanese entry.
_LONGEST_RUN = 12
# Words with more letters are not looked for in words that are written together.
_LONGEST_SEGMENT = 14
# Characters of a sentence that are matched together, so that patterns stay fast.
_LONGEST_SENTENCE = 4_000
# In place of a language: words that are used in every language.
_EVERYWHERE = "any"
_COMMA = ","
# A part, a part whose verb is told to somebody, or two parts of which one follows the other.
_ALTERNATIVE = lazy_pattern(r"[a-z]+!?|[a-z]+>[a-z]+")
# The end of a part's name that counts only where its verb gives an order.
_ORDERED = "!"
# The part of a name by which somebody is spoken to. It depends on the place in the sentence.
_CALLED = "called"
# A sign of code counts for this many words, since the words on its two sides seldom belong together.
_GAP = 6
# The score must be larger for a longer text, but only up to this many words.
_MOST_WORDS_ALLOWED_FOR = 1_000
# At most this many matches of a rule in one text are scored.
_MOST_TRIES = 200
# In a text of several windows, the score must be larger by this, times the logarithm of their number.
_LENGTH_WEIGHT = 0.5
# The `@` of a mail address.
_MAIL = lazy_pattern(r"@(?=[\w-]{1,64}\.\w)")
# A host named without `https://`.
_HOST = lazy_pattern(
    r"(?<![\w./@-])(?:[a-z0-9-]{2,40}\.){1,3}(?:com|org|biz|info|xyz|site|online|top|ru|cn|example)\b(?:/\S{0,200})?"
)
# A telephone number with its country.
_PHONE = lazy_pattern(r"\+\d[\d ()-]{7,18}\d")
# Text that is piped into a shell.
_SHELL = lazy_pattern(r"\|\s{0,4}(?:sudo )?(?:ba|z|da)?sh\b|<\(\s{0,2}(?:curl|wget)|\bsh -c\b")
# Files that hold keys and passwords.
_KEY_FILE = lazy_pattern(
    r"\.(?:env|netrc|npmrc|pypirc|pgpass|git-credentials)\b|(?<!\w)\.(?:ssh|aws|kube|gnupg)\b"
    r"|\bid_(?:rsa|ed25519|ecdsa)\b|authorized_keys|/etc/(?:passwd|shadow|sudoers)"
)
# Where one of the patterns matches, the text has one of these words or values.
_KEY_FILE_WORDS = frozenset(
    [
        "env",
        "netrc",
        "npmrc",
        "pypirc",
        "pgpass",
        "git",
        "credentials",
        "ssh",
        "aws",
        "kube",
        "gnupg",
        "id_rsa",
        "id_ed25519",
        "id_ecdsa",
        "authorized_keys",
        "passwd",
        "shadow",
        "sudoers",
    ]
)
_HOST_WORDS = frozenset(
    ["com", "org", "biz", "info", "xyz", "site", "online", "top", "ru", "cn", "example"]
)
_SHELL_WORDS = frozenset(["sh", "bash", "zsh", "dash", "curl", "wget"])
_STYLE_WORDS = frozenset(["display", "visibility", "font", "opacity", "color", "hidden"])
_STYLE_VALUES = frozenset(["none", "hidden", "white", "fff", "ffffff", "transparent"])
# Styles of HTML that hide a text from people.
_HIDDEN = lazy_pattern(
    r"display ?: ?none|visibility ?: ?hidden|font-size ?: ?0|opacity ?: ?0"
    r"|(?<![\w-])color ?: ?(?:white|#fff(?:fff)?|transparent)\b|aria-hidden=.true"
    r"|<[a-z]{1,12} [^<>]{0,80}\bhidden\b",
    re.I,
)
_COMMENTS = ("<!--", "[//]: #", "[//]:#", "{{/*")
# A message of a conversation that claims the system's role.
_ROLE = lazy_pattern(r'"role"\s{0,4}:\s{0,4}"(?:system|developer)"')
# A parameter of an address, which can carry data away.
_PARAMETER = lazy_pattern(r"[?&][\w-]{1,20}=")
# A quotation, whose words nobody here says.
_QUOTE = lazy_pattern(
    r"\"[^\"\n]{1,600}(?:\"|\Z)|“[^”\n]{1,600}(?:”|\Z)|„[^“”\n]{1,600}(?:[“”]|\Z)|«[^»\n]{1,600}(?:»|\Z)"
    r"|「[^」\n]{1,600}(?:」|\Z)|『[^』\n]{1,600}(?:』|\Z)"
    r"|(?<!\w)'[^'\n]{1,600}'(?!\w)|(?<!\w)‘[^’\n]{1,600}’(?!\w)|`[^`\n]{1,600}`"
)


# Words that may stand before a verb that gives an order.
_ADVERBS = frozenset(
    [
        "please",
        "always",
        "just",
        "simply",
        "also",
        "first",
        "instead",
        "now",
        "silently",
        "quietly",
        "immediately",
        "directly",
        "automatically",
        "only",
        "kindly",
        "still",
        "secretly",
        "discreetly",
        "regularly",
        "then",
        "again",
        "permanently",
        "therefore",
        "henceforth",
    ]
)
# Words that begin a clause, whose verb may be an order.
_CLAUSE_BEGINS = frozenset([_COMMA, BREAK, "and", "or", "but", "so", "then", "-"])
_MODALS = frozenset(["must", "should", "shall", "may", "can", "will", "could", "might"])
# Names and pronouns of those to whom orders are given.
_TELLERS = frozenset(
    [
        "you",
        "agent",
        "agents",
        "assistant",
        "assistants",
        "model",
        "models",
        "bot",
        "claude",
        "everyone",
        "everybody",
    ]
)
# Words before `to` and a verb that tells somebody to do something: `you are allowed to delete`.
_LICENCES = frozenset(
    [
        "expected",
        "allowed",
        "cleared",
        "free",
        "authorised",
        "authorized",
        "permitted",
        "told",
        "asked",
        "required",
        "supposed",
        "have",
        "need",
        "needs",
        "sure",
        "remember",
        "entitled",
        "ok",
        "okay",
        "fine",
        "welcome",
        "see",
        "happy",
        "safe",
        "are",
        "is",
    ]
)
# The ends of participles, such as `deleted` and `sent`.
_PARTICIPLES = ("ed", "ing", "ent", "aid", "old", "ought", "itten", "given", "taken", "shown")


@dataclass(frozen=True, slots=True)
class Term:
    """One condition of a combination, such as `not>tell|hide`.

    It is met by a word of any of `parts`, or by both words of any of `pairs`: a word of the second
    part must follow a word of the first one closely.
    """

    parts: frozenset[str]
    pairs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Combination:
    """A line of a rule: words that make the rule match if they are near each other in a sentence.

    rule: the name of the rule.
    terms: the conditions, all of which must be met.
    without: parts that rule a match out if one of their words is near.
    within: the number of words among which all terms must be met.
    """

    rule: str
    terms: tuple[Term, ...]
    without: frozenset[str]
    within: float


def parse_combination(rule: str, line: str) -> Combination:
    """Read a line of `parts:` in gate.rules: `drop + earlier|every + orders - report < 12`.

    This asks for words of `drop`, of `earlier` or `every`, and of `orders`, among 12 words and
    without a word of `report` near them. `not>tell` means that a word of `tell` follows one of `not`
    closely. `pay!` means that the verb gives an order (see `_is_order`).

    rule: the name of the rule.

    Raises ValueError for a line in another form.
    """
    conditions, _, limit = line.partition("<")
    required, *unwanted = conditions.split(" - ")
    terms = tuple(_term(item) for item in required.split("+"))
    without = frozenset(name.strip() for name in unwanted)
    return Combination(rule, terms, without, float(limit or WITHIN))


def _term(text: str) -> Term:
    """Read one condition of a combination: `earlier|every`, `not>tell`.

    Raises ValueError for a text in another form.
    """
    alternatives = [alternative.strip() for alternative in text.split("|")]
    if not all(_ALTERNATIVE.fullmatch(name) for name in alternatives):
        raise ValueError(f"parts: {text.strip()!r} is no part")
    plain_parts: list[str] = []
    pairs: list[tuple[str, str]] = []
    for name in alternatives:
        first, sign, second = name.partition(">")
        if sign:
            pairs.append((first, second))
        else:
            plain_parts.append(name)
    return Term(frozenset(plain_parts), tuple(pairs))


class _Entry(NamedTuple):
    """An entry of order-words.txt.

    words: its words in order, each with whether any ending may follow.
    main: the index in `words` of the main word, by which the entry is looked up.
    others: the words except the main one that allow no other ending. A sentence must have them all.
    """

    language: str
    part: str
    words: tuple[tuple[str, bool], ...]
    main: int
    others: frozenset[str]


_Row = tuple[str, str, str]
"""An entry of order-words.txt: its language, its part, and its folded words as that file has them."""


def _entry_of(row: _Row) -> _Entry:
    """Return the entry of a row. Its main word is the longest, the first if several are longest."""
    language, part, text = row
    words = tuple((word.rstrip("*"), word.endswith("*")) for word in text.split("_"))
    lengths = [len(word) for word, _ in words]
    main = lengths.index(max(lengths))
    others = frozenset(
        word
        for index, (word, may_have_ending) in enumerate(words)
        if index != main and not may_have_ending
    )
    return _Entry(language, part, words, main, others)


def _folded_word(word: str) -> str:
    """Fold a word of an entry; a `*` at its end stays.

    Folding may split it: `e-mail*` becomes `e_mail*`.
    """
    pieces = folded(word.rstrip("*")).split()
    if word.endswith("*"):
        pieces[-1] += "*"
    return "_".join(pieces)


def _length(word: str) -> int:
    """Return the number of letters of an entry's word, without the `*` at its end."""
    return len(word.rstrip("*"))


class _WordParts(NamedTuple):
    """The parts that a word belongs to, as bits.

    bits: all parts in any language, including the parts of longer entries whose main word it is.
    alone_bits: the parts that list it as an entry of one word.
    alone: the same by language, as (language, bits).
    entries: the entries whose main word it is.
    longer_entries: the `entries` that have several words.
    beside: the parts of `longer_entries` by the other words that an entry needs, as (words, bits).
    """

    bits: int
    alone_bits: int
    alone: tuple[tuple[str, int], ...]
    entries: tuple[_Entry, ...]
    longer_entries: tuple[_Entry, ...]
    beside: tuple[tuple[frozenset[str], int], ...]


_OF_NO_PART = _WordParts(bits=0, alone_bits=0, alone=(), entries=(), longer_entries=(), beside=())


class Vocabulary:
    """The entries of order-words.txt. It tells which parts the words of a sentence belong to.

    parts: the bit of each part by its name.
    """

    def __init__(self, text: str):
        self.parts: dict[str, int] = {}
        # The rows of entries by their main word. Few are ever looked up, so `_Entry` objects are
        # made only then. The main words of `_stems` allow any ending.
        self._exact: dict[str, list[_Row]] = {}
        self._stems: dict[str, list[_Row]] = {}
        # The (language, part) of Chinese and Japanese entries
        self._runs: dict[str, list[tuple[str, str]]] = {}
        # By language, what may be written together with a word, in front of it
        self._prefixes: dict[str, tuple[str, ...]] = {}
        self._read(text)

        # The words of these two kinds of parts count only at some places of a sentence. Here, where
        # places are not looked at, each has the bit of the part whose words it has.
        self.parts[_CALLED] = self.parts["who"]
        self.parts |= {f"{part}{_ORDERED}": bit for part, bit in self.parts.items()}
        # The lengths of stems by their first characters, and of runs by their first character
        self._stem_lengths = _lengths_by_head(self._stems)
        self._run_lengths = _lengths_of_runs(self._runs)
        # By these characters very many words are sorted out that begin as no stem does.
        self._beginnings = {stem[:_BEGINNING] for stem in self._stems}
        first_characters = "".join(map(re.escape, self._run_lengths))
        # The letters of a run from each one on at which an entry may begin
        self._run_heads = re.compile(f"(?=([{first_characters}].{{0,{_LONGEST_RUN - 1}}}))", re.S)
        self._cached_parts_of = lru_cache(_MOST_REMEMBERED)(self._look_up)

    def _read(self, text: str) -> None:
        """Read order-words.txt, whose lines are `[language]`, `part: words` and `prefixes: words`.

        Raises ValueError for another line.
        """
        language = _EVERYWHERE
        for number, line in enumerate(text.splitlines(), 1):
            row = line.partition(" #")[0].strip()
            if not row or row.startswith("#"):
                continue
            if row.startswith("["):
                language = row.strip("[]")
                continue
            part, sign, words = row.partition(":")
            if not sign:
                raise ValueError(f"order-words.txt, line {number}: expected `part: words`")
            if part == "prefixes":
                self._prefixes[language] = tuple(words.split())
                continue
            self.parts.setdefault(part, 1 << len(self.parts))
            for entry in words.split():
                # Most entries are a single word of small Latin letters
                if entry.isalpha() and entry.isascii() and entry.islower():
                    self._exact.setdefault(entry, []).append((language, part, entry))
                else:
                    self._add(language, part, entry)

    def _add(self, language: str, part: str, entry: str) -> None:
        """Add an entry of order-words.txt: to `_runs`, `_stems` or `_exact`, by its kind."""
        if language in ("zh", "ja") and is_cjk(entry):
            run = "".join(folded(entry).split())
            self._runs.setdefault(run, []).append((language, part))
            return
        letters = entry.replace("_", "").replace("*", "")
        # Most words are of small Latin letters, which folding leaves as they are
        if not (letters.isascii() and letters.isalpha() and letters.islower()):
            entry = "_".join(map(_folded_word, entry.split("_")))
        if "_" in entry:
            main = max(entry.split("_"), key=_length)
        else:
            main = entry
        if main[-1] == "*":
            rows = self._stems.setdefault(main[:-1], [])
        else:
            rows = self._exact.setdefault(main, [])
        rows.append((language, part, entry))

    def bits(self, word: str) -> int:
        """Return the bits of all parts that a word may belong to, in any language.

        The part of an entry of several words counts if the word is its main word.
        """
        return self.parts_of(word).bits

    def parts_of(self, word: str) -> _WordParts:
        """Return the parts that a word may belong to. The result is cached for a short word."""
        if len(word) < _LONG:
            return self._cached_parts_of(word)
        return self._look_up(word)

    def _look_up(self, word: str) -> _WordParts:
        """Find the parts that a word may belong to, without a cache."""
        entries = self._entries(word)
        # Most new words, such as parts of an id, are in no entry
        if not entries and word.isascii():
            return _OF_NO_PART
        # The parts that list the word alone, or as a run of Chinese or Japanese in it.
        parts_alone: list[tuple[str, str]] = []
        longer_entries: list[_Entry] = []
        for entry in entries:
            if len(entry.words) > 1:
                longer_entries.append(entry)
            else:
                parts_alone.append((entry.language, entry.part))
        if not word.isascii() and runs().search(word):
            parts_alone += self._parts_in_run(word)
        alone_bits = 0
        bits_by_language: dict[str, int] = {}
        for language, part in parts_alone:
            bit = self.parts[part]
            alone_bits |= bit
            bits_by_language[language] = bits_by_language.get(language, 0) | bit

        # The parts that list it with other words.
        all_bits = alone_bits
        beside: dict[frozenset[str], int] = {}
        for entry in longer_entries:
            bit = self.parts[entry.part]
            all_bits |= bit
            beside[entry.others] = beside.get(entry.others, 0) | bit
        return _WordParts(
            bits=all_bits,
            alone_bits=alone_bits,
            alone=tuple(bits_by_language.items()),
            entries=entries,
            longer_entries=tuple(longer_entries),
            beside=tuple(beside.items()),
        )

    def of_no_part(self, words: Iterable[str]) -> set[str]:
        """Return the ASCII words that belong to no part, because no entry has them as main word.

        This is faster than calling `parts_of` for each word. Ids and numbers, of which a long text
        may have very many different ones, are such words.
        """
        ascii_words = list(filter(str.isascii, words))
        # Most of very many words are sorted out by their first letters.
        possible_words = {
            word: alike
            for word, alike in zip(ascii_words, look_alikes(ascii_words), strict=True)
            if word in self._exact
            or alike in self._exact
            or word[:_BEGINNING] in self._beginnings
            or alike[:_BEGINNING] in self._beginnings
            or word[:_HEAD] in self._stems
            or alike[:_HEAD] in self._stems
        }
        words_with_part = {
            word
            for word, alike in possible_words.items()
            if self._has_entry(word) or (alike != word and self._has_entry(alike))
        }
        return set(ascii_words) - words_with_part

    def _has_entry(self, form: str) -> bool:
        """Whether a word is the main word of an entry, or begins as one that ends in `*`."""
        if form in self._exact:
            return True
        lengths = self._stem_lengths.get(form[:_HEAD], ())
        return any(form[:length] in self._stems for length in lengths)

    def parts_by_language(self, words: Iterable[str], sentence: set[str]) -> dict[str, int]:
        """Return the parts (sets of words with one meaning) that words belong to: language -> bits.

        An entry of several words counts if the sentence has all its words, in any order.

        words: the words to look at.
        sentence: all words of the sentence.
        """
        sentence_forms = self.with_forms(sentence)
        bits_by_language: dict[str, int] = {}
        for word in words:
            word_parts = self.parts_of(word)
            for language, bits in word_parts.alone:
                bits_by_language[language] = bits_by_language.get(language, 0) | bits
            for entry in word_parts.longer_entries:
                if entry.others <= sentence_forms:
                    bits = bits_by_language.get(entry.language, 0)
                    bits_by_language[entry.language] = bits | self.parts[entry.part]
        return bits_by_language

    def with_forms(self, words: set[str]) -> set[str]:
        """Return these words with the words that they look like: `payment` for `pаymеnt`."""
        # A word of ASCII letters looks like no other, and a number is no word in disguise
        odd_words = [word for word in words if not word.isalpha() or not word.isascii()]
        odd_words = [word for word in odd_words if not word.isdecimal()]
        ascii_forms = look_alikes([word for word in odd_words if word.isascii()])
        other_forms = map(self._forms, filterfalse(str.isascii, odd_words))
        return words.union(ascii_forms, *other_forms)

    def _entries(self, word: str) -> tuple[_Entry, ...]:
        """Return the entries whose main word is `word`, or a word that it looks like."""
        rows: list[_Row] = []
        for form in self._forms(word):
            rows += self._exact.get(form, ())
            # Few words begin as a stem does
            for length in self._stem_lengths.get(form[:_HEAD], ()):
                if length <= len(form):
                    rows += self._stems.get(form[:length], ())
        return tuple(map(_entry_of, rows))

    def _forms(self, word: str) -> list[str]:
        """Return the forms of a word to look up.

        These are the word, the Latin word that it looks like, and the word without a prefix that
        languages such as Arabic write together with it.
        """
        forms = [word]
        alike = _latin_look_alike(word)
        if alike != word:
            # A short word of another alphabet may look like an English one by chance
            is_mixed = any(char.isascii() for char in word)
            if is_mixed or len(word) > _SHORT:
                forms.append(alike)
        if not word.isascii():
            for prefixes in self._prefixes.values():
                forms += [
                    word[len(prefix) :]
                    for prefix in prefixes
                    if word.startswith(prefix) and len(word) > len(prefix) + 2
                ]
        return forms

    def _in_run(self, run: str) -> Iterator[tuple[str, str, int]]:
        """Yield (language, part, offset) of each entry in a run of Chinese or Japanese letters."""
        for start, char in enumerate(run):
            for length in self._run_lengths.get(char, ()):
                for language, part in self._runs.get(run[start : start + length], ()):
                    yield language, part, start

    def _parts_in_run(self, run: str) -> set[tuple[str, str]]:
        """Return (language, part) of the entries in a run of Chinese or Japanese letters."""
        parts: set[tuple[str, str]] = set()
        # A long run repeats itself, or has few letters at which an entry begins.
        heads: set[str] = set(self._run_heads.findall(run))
        for head in heads:
            for length in self._run_lengths[head[0]]:
                parts.update(self._runs.get(head[:length], ()))
        return parts

    def places(self, words: Sequence[str]) -> dict[str, dict[str, list[float]]]:
        """Find the words of each part in a sentence. Returns language -> part -> places.

        A place counts words from 0. Two letters of Chinese or Japanese count as one word, and a
        sign of code as _GAP words. Places are in the order of the sentence. The key `pay!` has the
        places of `pay` where a verb gives an order.
        """
        places_by_language: dict[str, dict[str, list[float]]] = {}

        def add(language: str, part: str, place: float, *, gives_order: bool) -> None:
            """Add a place of a part, and also to the part with `!` if its verb gives an order."""
            places_by_part = places_by_language.setdefault(language, {})
            places_by_part.setdefault(part, []).append(place)
            if gives_order:
                places_by_part.setdefault(part + _ORDERED, []).append(place)

        for place_of_call in self._places_of_calls(words):
            add(_EVERYWHERE, _CALLED, place_of_call, gives_order=False)
        words_without_commas = [word for word in words if word != _COMMA]
        order_indexes = _indexes_of_orders(words)
        place = 0.0
        for index, word in enumerate(words_without_commas):
            for entry in self.parts_of(word).entries:
                if len(entry.words) > 1 and not self._is_here(entry, words_without_commas, index):
                    continue
                # Only for English, the place of a verb shows whether it gives an order
                gives_order = entry.language != "en" or index - entry.main in order_indexes
                add(entry.language, entry.part, place, gives_order=gives_order)
            if not word.isascii() and runs().search(word):
                for language, part, offset in self._in_run(word):
                    # Two letters count as one word.
                    add(language, part, place + offset / 2, gives_order=True)
            place += _places_taken(word)
        return places_by_language

    def _places_of_calls(self, words: Sequence[str]) -> Iterator[float]:
        """Yield the places where a sentence speaks to somebody by name.

        Examples: `Assistant: …`, `To the agent, …` and `…, assistant`.
        """
        # The part `who` has the names, `opener` the words that may come before a name, such as
        # `to`, and `hidden` the signs that hide a text from people.
        name_bit = self.parts["who"]
        opener_bits = self.parts["opener"] | name_bit
        hidden_bit = self.parts["hidden"]
        place = 0.0
        # Whether the words so far may come before a name at the beginning, as `To the`
        is_beginning = True
        for number, word in enumerate(words):
            if word == _COMMA:
                continue
            bits = self.bits(word)
            is_name = bits & name_bit and self._is_whole(word)
            if is_name and _is_set_off(words, number, is_beginning=is_beginning):
                yield place
            # After a mark that hides text, a sentence may begin again
            is_beginning = bool(bits & hidden_bit) or (is_beginning and bool(bits & opener_bits))
            place += _places_taken(word)

    def _is_whole(self, word: str) -> bool:
        """Whether a word is the name itself. A run of Chinese may only contain the name."""
        return word.isascii() or not is_cjk(word) or word in self._runs

    def _is_here(self, entry: _Entry, words: Sequence[str], number: int) -> bool:
        """Whether the words of an entry follow each other here, with the main word at `number`."""
        begin = number - entry.main
        end = begin + len(entry.words)
        if begin < 0 or end > len(words):
            return False
        for (entry_word, is_stem), word in zip(entry.words, words[begin:end], strict=True):
            if word == entry_word or (is_stem and word.startswith(entry_word)):
                continue
            if entry_word not in self._forms(word):
                return False
        return True

    def languages(
        self, places_by_language: dict[str, dict[str, list[float]]]
    ) -> Iterator[dict[str, list[float]]]:
        """Yield the parts and their places for each language that a sentence may be in.

        Parts that belong to no language are added to each. English is added to languages of other
        scripts, whose writers use English for technical words.

        places_by_language: the result of `places`: language -> part -> places.
        """
        shared = places_by_language.get(_EVERYWHERE, {})
        for language, parts in places_by_language.items():
            if language == _EVERYWHERE:
                continue
            sources = [shared, parts]
            if language in _BESIDE_ENGLISH and "en" in places_by_language:
                sources.append(places_by_language["en"])
            all_places: dict[str, list[float]] = {}
            for source in sources:
                for part, places in source.items():
                    all_places[part] = sorted([*all_places.get(part, ()), *places])
            yield all_places

    def segmented(self, run: str) -> list[str]:
        """Find the words of entries in a run of letters: `deletefiles` → `delete`, `files`."""
        words = []
        start = 0
        while start < len(run):
            word = self._longest_word_at(run, start)
            if word:
                words.append(word)
            start += len(word) or 1
        return words

    def _longest_word_at(self, run: str, start: int) -> str:
        """Return the longest word of an entry that is in a run of letters at `start`, else ""."""
        for length in range(_LONGEST_SEGMENT, 1, -1):
            piece = run[start : start + length]
            if len(piece) == length and (piece in self._exact or piece in self._stems):
                return piece
        return ""


def _lengths_of_runs(runs_of_entries: Iterable[str]) -> dict[str, list[int]]:
    """Return the different lengths of Chinese and Japanese entries by their first character.

    Entries of more than _LONGEST_RUN characters are left out.
    """
    lengths_by_character: dict[str, set[int]] = {}
    for run in runs_of_entries:
        if len(run) <= _LONGEST_RUN:
            lengths_by_character.setdefault(run[0], set()).add(len(run))
    return {first: sorted(lengths) for first, lengths in lengths_by_character.items()}


def _lengths_by_head(stems: Iterable[str]) -> dict[str, list[int]]:
    """Return the lengths of the stems, longest first, by their first _HEAD characters."""
    lengths_by_head: dict[str, set[int]] = {}
    for stem in stems:
        lengths_by_head.setdefault(stem[:_HEAD], set()).add(len(stem))
    return {head: sorted(lengths, reverse=True) for head, lengths in lengths_by_head.items()}


# Languages whose speakers mix English words into their sentences.
_BESIDE_ENGLISH = frozenset(["zh", "ja", "ko", "ru", "ar", "hi"])


def _latin_look_alike(word: str) -> str:
    """Return the ASCII word that a folded word looks like, or the word itself."""
    # The beginning of a run of Chinese is enough. Such a run may be as long as a note.
    if not look_alike(word[:_LONG]).isascii():
        return word
    alike = look_alike(word)
    if alike.isascii():
        return alike
    return word


@cache
def vocabulary() -> Vocabulary:
    """Return the words of order-words.txt."""
    return Vocabulary(Path(__file__).with_name("order-words.txt").read_text(encoding="utf-8"))


class _Need(NamedTuple):
    """The parts, as bits, that a sentence must have for a combination to be tried on it.

    combination: the combination with these needs.
    first: the alternatives of its first term: the bits of a part, or of both parts of a pair.
    any_of: for each term without pairs, the bits of its parts. The sentence needs one of them.
    with_pairs: for each term with pairs, its alternatives. The sentence needs all bits of one.
    """

    combination: Combination
    first: tuple[int, ...]
    any_of: tuple[int, ...]
    with_pairs: tuple[tuple[int, ...], ...]

    def is_met(self, mask: int) -> bool:
        """Whether a sentence whose parts are the bits of `mask` has all that the combination needs."""
        for parts in self.any_of:
            if not mask & parts:
                return False
        return all(_has_any(mask, groups) for groups in self.with_pairs)


class Orders:
    """Finds the combinations of parts that sentences of a text meet, as in `drop + orders`.

    Each sentence goes through up to three checks, each slower than the one before. The first looks
    at the parts to which its words may belong. The second looks at the parts to which they do
    belong in one language, and the third at their places. Few sentences come to the third.
    """

    def __init__(self, combinations: Sequence[Combination], likeness: Mapping[str, float]):
        """Take the combinations and the least scores of rules.

        likeness: by the name of a rule, the least score of a text (text/likeness.py). A rule with
            combinations matches only where a window around one has this score. A rule without
            combinations matches wherever a window has it.
        """
        self._combinations = combinations
        self._likeness = likeness
        rules_with_combinations = {combination.rule for combination in combinations}
        self._by_score_alone = {
            rule: least for rule, least in likeness.items() if rule not in rules_with_combinations
        }
        self._vocabulary = vocabulary()
        self._candidates = lru_cache(_MOST_REMEMBERED)(self._find_candidates)
        # Words of no part, of which most sentences are made
        self._plain_words: set[str] = set()
        # The bit of a part -> what the combinations need whose first term has this part. The first
        # term is the one that texts have least. Of a pair, the part with the higher bit is taken.
        self._by_first_part: dict[int, list[_Need]] = {}
        for combination in combinations:
            need = self._need(combination)
            for parts in need.first:
                first_part = 1 << (parts.bit_length() - 1)
                self._by_first_part.setdefault(first_part, []).append(need)
        self._first_parts = sum(self._by_first_part)

    def __reduce__(
        self,
    ) -> tuple[type[Orders], tuple[Sequence[Combination], Mapping[str, float]]]:
        """Send the combinations to another process, and none of the caches."""
        return Orders, (self._combinations, self._likeness)

    def _need(self, combination: Combination) -> _Need:
        """Return the parts that a sentence must have to meet a combination.

        Raises ValueError if the combination names a part that does not exist.
        """
        bits = self._vocabulary.parts
        any_of: list[int] = []
        with_pairs: list[tuple[int, ...]] = []
        first: tuple[int, ...] = ()
        for term in combination.terms:
            # The alternatives of the term: one part, or both parts of a pair.
            alternatives = [(part,) for part in term.parts] + list(term.pairs)
            unknown_parts = [part for part in chain.from_iterable(alternatives) if part not in bits]
            if unknown_parts:
                raise ValueError(f"rule {combination.rule}: no part is called {unknown_parts[0]}")
            # Sets, since two names may have the same bit, such as `pay` and `pay!`.
            masks = tuple(sum({bits[part] for part in parts}) for parts in alternatives)
            first = first or masks
            if term.pairs:
                with_pairs.append(masks)
            else:
                any_of.append(sum(set(masks)))
        return _Need(combination, first, tuple(any_of), tuple(with_pairs))

    def _find_candidates(self, mask: int) -> tuple[Combination, ...]:
        """Return the combinations that a sentence may meet whose parts are the bits of `mask`."""
        combinations: dict[Combination, None] = {}
        parts_to_try = mask & self._first_parts
        while parts_to_try:
            # Take the lowest bit: `0b1100 & -0b1100` is `0b0100`.
            first_part = parts_to_try & -parts_to_try
            parts_to_try ^= first_part
            for need in self._by_first_part[first_part]:
                if need.is_met(mask):
                    combinations[need.combination] = None
        return tuple(combinations)

    def rules(self, clear: str) -> dict[str, None]:
        """Return the names of the rules that match a text, or a text that is encoded in it.

        The names are the keys of the result, in the order in which they were found.

        clear: the text without disguises: `uncovered`, and `visible_letters` if it is not ASCII.
        """
        folded_text = _folded_with_marks(clear)
        rule_ids = self._in_text(folded_text)
        if folded_text.has_spaced_letters():
            joined = joined_letters(clear)
            if joined is not None:
                rule_ids |= self._in_text(_folded_with_marks(joined))
        for hidden in decoded(clear):
            rule_ids |= self._in_text(_folded_with_marks(uncovered(hidden)))
        return rule_ids

    def _in_text(self, text: FoldedText) -> dict[str, None]:
        """Return the names of the rules that match a text."""
        rule_ids = self._by_parts(text)
        if self._by_score_alone and may_be_like_orders(text.words):
            best = best_score(words for _, words in text.sentences())
            best -= _allowance(len(text.words))
            for rule, least in self._by_score_alone.items():
                if best >= least:
                    rule_ids[rule] = None
        return rule_ids

    def _by_parts(self, text: FoldedText) -> dict[str, None]:
        """Return the names of the rules with a combination that some sentence of the text meets."""
        rule_ids: dict[str, None] = {}
        bits_of = self._bits_in(text.words)
        # Without a part of its first term, which is its rarest, no combination is met
        first_words = {word for word, bits in bits_of.items() if bits & self._first_parts}
        if not first_words:
            return rule_ids
        doubts = _Doubts(self._likeness)
        for sentence, words in text.sentences():
            if first_words.isdisjoint(words):
                continue
            combinations = self._combinations_for(words, bits_of)
            if not combinations:
                continue
            for begin in range(0, len(sentence), _LONGEST_SENTENCE):
                piece = sentence[begin : begin + _LONGEST_SENTENCE]
                new_combinations = [
                    combination for combination in combinations if combination.rule not in rule_ids
                ]
                rule_ids |= self._in_sentence(piece, new_combinations, doubts)
        return rule_ids

    def _bits_in(self, words: Sequence[str]) -> dict[str, int]:
        """Return the parts of each word in a text, as bits. Words of no part are left out.

        The part of an entry of several words counts if the text has all its words.
        """
        different_words = set(words)
        bits_of: dict[str, int] = {}
        # All words, and the words that they look like. They are made when they are first needed,
        # for the main word of an entry of several words.
        forms: set[str] | None = None
        new_words = different_words - self._plain_words
        words_of_no_part = self._vocabulary.of_no_part(new_words)
        self._remember_plain(words_of_no_part)
        for word in new_words - words_of_no_part:
            word_parts = self._vocabulary.parts_of(word)
            bits = word_parts.alone_bits
            if word_parts.beside and forms is None:
                forms = self._vocabulary.with_forms(different_words)
            for other_words, bits_beside in word_parts.beside:
                has_other_words = forms is not None and other_words <= forms
                if has_other_words:
                    bits |= bits_beside
            if bits:
                bits_of[word] = bits
            elif not word_parts.bits:
                self._remember_plain({word})
        return bits_of

    def _remember_plain(self, words: set[str]) -> None:
        """Keep words of no part, unless they are long, so that they are not looked up again."""
        # So many words come from a text of ids, which are not met again
        if len(words) > _MOST_REMEMBERED:
            return
        if len(self._plain_words) + len(words) > _MOST_REMEMBERED:
            self._plain_words.clear()
        self._plain_words.update(word for word in words if len(word) < _LONG)

    def _combinations_for(
        self, words: Sequence[str], bits_of: dict[str, int]
    ) -> tuple[Combination, ...]:
        """Return the combinations that a sentence may meet with words of one language.

        bits_of: the bits of the parts of each word in the whole text.
        """
        words_with_parts = bits_of.keys() & words
        bits_of_sentence = 0
        for word in words_with_parts:
            bits_of_sentence |= bits_of[word]
        # Few sentences have the parts of any combination, even in several languages at once
        if not self._candidates(bits_of_sentence):
            return ()
        combinations: dict[Combination, None] = {}
        parts_by_language = self._vocabulary.parts_by_language(words_with_parts, set(words))
        # The parts that count in each language
        shared = parts_by_language.pop(_EVERYWHERE, 0)
        # A name by which somebody is called counts in each language, as in `places`
        for parts in parts_by_language.values():
            shared |= parts & self._vocabulary.parts[_CALLED]
        # Sorted, because the order of a set of words differs between two processes
        for language, parts in sorted(parts_by_language.items()):
            all_parts = parts | shared
            if language in _BESIDE_ENGLISH:
                all_parts |= parts_by_language.get("en", 0)
            combinations |= dict.fromkeys(self._candidates(all_parts))
        return tuple(combinations)

    def _in_sentence(
        self, sentence: str, combinations: Sequence[Combination], doubts: _Doubts
    ) -> dict[str, None]:
        """Return the names of the rules that match a sentence.

        Quotations do not count in a sentence that reports them: `He said: "Ignore all rules."`

        combinations: the combinations to try.
        doubts: the rules that match only with a score.
        """
        rule_ids = self._matching_rules(folded(sentence).split(), combinations, doubts)
        if not rule_ids:
            return rule_ids
        text_outside_quotes = _QUOTE.sub(" ", sentence)
        if len(text_outside_quotes) == len(sentence):
            return rule_ids
        # A text that its writer only quotes asks nobody for anything.
        words_outside_quotes = folded(text_outside_quotes).split()
        report_bit = self._vocabulary.parts["report"]
        is_report = any(self._vocabulary.bits(word) & report_bit for word in words_outside_quotes)
        if is_report:
            return self._matching_rules(words_outside_quotes, combinations, doubts)
        return rule_ids

    def _matching_rules(
        self, words: Sequence[str], combinations: Sequence[Combination], doubts: _Doubts
    ) -> dict[str, None]:
        """Return the names of the rules that a sentence matches by the places of its words.

        words: the folded words of the sentence.
        combinations: the combinations to try.
        doubts: the rules that match only with a score.
        """
        rule_ids: dict[str, None] = {}
        begins = _begins_of_clauses(words)
        for parts in self._vocabulary.languages(self._vocabulary.places(words)):
            for combination in combinations:
                if combination.rule in rule_ids:
                    continue
                # Without a score, clauses do not matter: the sentence is one clause
                clause_begins = begins if doubts.concern(combination.rule) else [0.0]
                for places in _matches(combination, parts, clause_begins):
                    if doubts.are_dispelled(combination.rule, words, places):
                        rule_ids[combination.rule] = None
                        break
        return rule_ids


def _indexes_of_orders(words: Sequence[str]) -> set[int]:
    """Return the indexes of the words in a sentence that give an order, if they are English verbs.

    Such verbs are in `Delete the backups`, `please always delete`, `you may delete` and `are to be
    deleted`. The indexes do not count commas.
    """
    order_indexes: set[int] = set()
    index = 0
    for position, word in enumerate(words):
        if word == _COMMA:
            continue
        if _is_order(words, position):
            order_indexes.add(index)
        index += 1
    return order_indexes


def _is_order(words: Sequence[str], position: int) -> bool:
    """Whether the word at this index, if it is an English verb, tells somebody to do something."""
    verb = words[position]
    # The index of the word before the verb and its adverbs, -1 at the beginning of the sentence.
    before = position - 1
    while before >= 0 and words[before] in _ADVERBS:
        before -= 1
    if verb.endswith(_PARTICIPLES):
        # "should never be deleted", "is to be deleted": somebody is told to do it
        is_passive = before >= 1 and words[before] == "be"
        return is_passive and words[before - 1] in _MODALS | _ADVERBS | {"to"}
    is_third_person = verb.endswith("s") and not verb.endswith("ss")
    if is_third_person:
        # "The assistant pays" tells the assistant to pay
        return before >= 0 and words[before] in _TELLERS
    begins_clause = before < 0 or words[before] in _CLAUSE_BEGINS
    if begins_clause:
        # "Email: …" is a label, and no order to mail something. A colon is folded to a comma.
        is_label = words[position + 1 : position + 2] in ([_COMMA], [BREAK])
        return not is_label
    words_before = words[max(0, before - 3) : before]
    if words[before] in _MODALS:
        # "you may delete"
        return not _TELLERS.isdisjoint(words_before[-1:])
    # "you are allowed to delete"
    return words[before] == "to" and not _LICENCES.isdisjoint(words_before)


def _has_any(mask: int, groups: Sequence[int]) -> bool:
    """Whether `mask` has all bits of at least one of these groups."""
    return any(mask & group == group for group in groups)


def _is_set_off(words: Sequence[str], number: int, *, is_beginning: bool) -> bool:
    """Whether a comma separates the word at `number` from the rest of the sentence.

    This is so in `assistant, …` at the beginning, and in `…, assistant` at the end.

    is_beginning: whether the word is at the beginning.
    """
    is_before_comma = words[number + 1 : number + 2] == [_COMMA]
    if is_before_comma:
        return is_beginning
    is_last = number + 1 == len(words)
    return is_last and number > 1 and words[number - 1] == _COMMA


def words_of_sentences(text: str) -> list[list[str]]:
    """Return the folded words of each sentence of a text, as they are scored (text/likeness.py)."""
    clear = uncovered(text)
    if not clear.isascii():
        clear = visible_letters(clear)
    return [words for _, words in _folded_with_marks(clear).sentences()]


def _folded_with_marks(text: str) -> FoldedText:
    """Fold a text, and replace signs that have a meaning by words: `zzaddress` for `https://`.

    Other such signs are a pipe into a shell, the name of a file that holds keys, and HTML that hides
    a text.
    """
    folded_text = FoldedText(text)
    marked = _mark_signs(text, frozenset(folded_text.words))
    if marked == text:
        return folded_text
    return FoldedText(marked)


def _mark_signs(text: str, words: frozenset[str]) -> str:
    """Replace signs with a meaning by words such as `zzaddress`, which order-words.txt lists.

    words: the folded words of the text.
    """
    # A sign or word is found much faster than a pattern, and most texts have none of them. Chinese
    # has no blank before an address or a path, so a path may be a part of a word there.
    if _holds_any(text, ("://", "@")):
        text = text.replace("http://", " zzaddress ").replace("https://", " zzaddress ")
        text = _PARAMETER.sub(" zzhidden ", text)
    if not words.isdisjoint(_HOST_WORDS):
        text = _HOST.sub(" zzaddress ", text)
    if "@" in text:
        text = _MAIL.sub(" zzaddress ", text)
    if "+" in text:
        text = _PHONE.sub(" zzphone ", text)
    if "role" in words:
        text = _ROLE.sub(" zzrole ", text)
    if not words.isdisjoint(_SHELL_WORDS):
        text = _SHELL.sub(" zzshell ", text)
    if not words.isdisjoint(_KEY_FILE_WORDS) or _holds_any(text, ("/etc/", "authorized_keys")):
        text = _KEY_FILE.sub(" zzkeyfile ", text)
    if not words.isdisjoint(_STYLE_WORDS) and _has_style_value(words) and _holds_any(text, ":=<"):
        text = _HIDDEN.sub(" zzhidden ", text)
    if _holds_any(text, ("!", "[//]", "{{/*")):
        for sign in _COMMENTS:
            text = text.replace(sign, " zzcomment ")
        text = text.replace("![", " zzhidden ")
    return text


def _has_style_value(words: frozenset[str]) -> bool:
    """Whether one of these words is a value that hides a text: `none`, or a size such as `0px`."""
    return not words.isdisjoint(_STYLE_VALUES) or any(word.startswith("0") for word in words)


def _holds_any(text: str, signs: Iterable[str]) -> bool:
    """Whether a text contains one of these signs."""
    return any(sign in text for sign in signs)


class _Doubts:
    """Decides in one text whether a match of a rule with a least score counts.

    It counts if some words around the match have the score. So an attacker cannot lower the score
    by harmless words: not in other sentences, not before or behind these words, and not in a clause
    between commas within the match.

    least: the least score by the name of a rule. A rule that is not in it always counts.
    """

    def __init__(self, least: Mapping[str, float]):
        self._least = least
        self._tries = Counter[str]()

    def concern(self, rule: str) -> bool:
        """Whether a rule matches only with a score."""
        return rule in self._least

    def are_dispelled(self, rule: str, words: Sequence[str], places: Sequence[float]) -> bool:
        """Whether a match of a rule counts: the sentence around it is enough like a planted order.

        A match counts, too, if the rule needs no score, or after _MOST_TRIES tries, which are
        counted.

        words: the folded words of the sentence.
        places: the places of the parts of the match, in order.
        """
        least = self._least.get(rule)
        if least is None:
            return True
        self._tries[rule] += 1
        # Scoring them all would take long, and few notes have as many sentences like orders
        if self._tries[rule] > _MOST_TRIES:
            return True
        match = _match_in(words, places)
        if is_like_around(match.words, match.first, match.last, least):
            return True
        shorter_match = _without_idle_clauses(match)
        if shorter_match == match:
            return False
        return is_like_around(shorter_match.words, shorter_match.first, shorter_match.last, least)


class _Match(NamedTuple):
    """A match in a sentence.

    words: the words of the sentence, without commas.
    first, last: the indexes of its first and its last word.
    clauses: the number of the clause of each word. Commas part clauses.
    busy_clauses: the numbers of the clauses that have a part of the match.
    """

    words: list[str]
    first: int
    last: int
    clauses: list[int]
    busy_clauses: frozenset[int]


def _match_in(words: Sequence[str], places: Sequence[float]) -> _Match:
    """Return a match in a sentence.

    words: the words of the sentence, with commas.
    places: the places of its parts, in order, as `Vocabulary.places` counts them.
    """
    words_without_commas: list[str] = []
    # For each word, the number of its clause and the place at which it ends.
    clauses: list[int] = []
    end_places: list[float] = []
    clause = 0
    end_place = 0.0
    for word in words:
        if word == _COMMA:
            clause += 1
            continue
        end_place += _places_taken(word)
        words_without_commas.append(word)
        clauses.append(clause)
        end_places.append(end_place)
    # A place belongs to the first word that ends behind it. A run of Chinese has several places.
    indexes = [bisect_right(end_places, place) for place in places]
    busy_clauses = frozenset(clauses[index] for index in indexes)
    return _Match(words_without_commas, indexes[0], indexes[-1], clauses, busy_clauses)


def _places_taken(word: str) -> float:
    """Return how many places a word takes, as `Vocabulary.places` counts them."""
    if word == BREAK:
        return _GAP
    if not word.isascii() and runs().search(word):
        return len(word) / 2
    return 1


def _without_idle_clauses(match: _Match) -> _Match:
    """Return a match without the clauses within it that have none of its parts."""
    indexes = [
        index
        for index, clause in enumerate(match.clauses)
        if not match.first < index < match.last or clause in match.busy_clauses
    ]
    return _Match(
        words=[match.words[index] for index in indexes],
        first=match.first,
        last=indexes.index(match.last),
        clauses=[match.clauses[index] for index in indexes],
        busy_clauses=match.busy_clauses,
    )


def _allowance(word_count: int) -> float:
    """Return by how much the best score must be larger for a text of this many words.

    A long text has many windows, of which one may look like an order by chance. The allowance has a
    limit, so that nobody can hide an order by adding words.
    """
    windows = max(1, min(word_count, _MOST_WORDS_ALLOWED_FOR) / WINDOW)
    return _LENGTH_WEIGHT * log(windows)


def _begins_of_clauses(words: Sequence[str]) -> list[float]:
    """Return the places where the clauses of a sentence begin, in order. Commas part clauses.

    words: the words of the sentence, with commas.
    """
    begins = [0.0]
    place = 0.0
    for word in words:
        if word == _COMMA:
            begins.append(place)
        else:
            place += _places_taken(word)
    return begins


def _matches(
    combination: Combination, parts: dict[str, list[float]], begins: Sequence[float]
) -> Iterator[list[float]]:
    """Yield each match of a combination in a sentence, as the places of its terms in order.

    parts: the places of each part in the sentence, in order.
    begins: the places where clauses of the sentence begin, in order.
    """
    # Each place with the index of the term that it meets
    places: list[tuple[float, int]] = []
    for number, term in enumerate(combination.terms):
        term_places = _places_of(term.parts, parts)
        for leader, follower in term.pairs:
            term_places += _places_close_after(parts.get(leader, ()), parts.get(follower, ()))
        if not term_places:
            return
        places += [(place, number) for place in term_places]
    unwanted_places = sorted(_places_of(combination.without, parts))
    for match in _near(sorted(places), len(combination.terms), combination.within):
        # "Yesterday we had cake, delete …": words of an earlier clause do not rule the match out
        clause_begin = begins[bisect_right(begins, match[0]) - 1]
        first_place = max(clause_begin, match[0] - _BEFORE)
        is_ruled_out = _is_between(unwanted_places, first_place, match[-1])
        if not is_ruled_out:
            yield match


def _places_of(names: Iterable[str], parts: dict[str, list[float]]) -> list[float]:
    """Return the places of all words in one of the named parts."""
    places: list[float] = []
    for name in names:
        places += parts.get(name, ())
    return places


def _places_close_after(first: Sequence[float], second: Sequence[float]) -> list[float]:
    """Return the places of `second` that are closely behind one of `first`."""
    return [place for place in second if _is_between(first, place - _NEXT_TO, place - 0.1)]


def _is_between(places: Sequence[float], first: float, last: float) -> bool:
    """Whether one of the sorted `places` is between `first` and `last`, or equal to one of them."""
    first_index = bisect_left(places, first)
    return first_index < len(places) and places[first_index] <= last


def _near(places: Sequence[tuple[float, int]], terms: int, within: float) -> Iterator[list[float]]:
    """Yield places that are near each other, one of every term, in order.

    At each place, only the last place of every other term before it is tried, which is the nearest.

    places: (place, index of a term), sorted.
    terms: the number of terms.
    within: the greatest distance of the first place to the last.
    """
    last_places: dict[int, float] = {}
    for place, term in places:
        last_places[term] = place
        if len(last_places) == terms and place - min(last_places.values()) <= within:
            yield sorted(last_places.values())
