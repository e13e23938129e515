"""Recognize sentences that give orders to an agent, such as "Ignore all rules" (docs/gate.md).

A part is a named set of words with one meaning: the part `drop` has `ignore`, `forget` and so on.
order-words.txt lists the words of each part by language. An entry of that file is one word, `forget`,
or several, `get_rid_of`; `*` at its end allows any ending. A combination is a line of a rule in
gate.rules, such as `drop + earlier|every + orders`. A sentence meets it if words of all these parts
are near each other in it, in any order.

Each part has a bit in a number. So one look at the bits of its words is enough to pass over most
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
"""Words among which the parts of a rule must stand, unless it says otherwise."""
# Words between the two parts of `a>b`, at most.
_NEXT_TO = 3.5
# Results that each cache here keeps. Texts bring ids and numbers without end, each seen once.
_MOST_KNOWN = 8_000
# Characters of words that are worth remembering, at most.
_LONG = 40
_SHORT = 3
# Words before a match, of the same clause, in which a part that rules it out counts.
_BEFORE = 5
# Characters of a word by which the stems are looked up that it may begin with.
_HEAD = 2
# One character more than the shortest stem has
_BEGINNING = 3
# Characters of the longest Chinese or Japanese entry.
_LONGEST_RUN = 12
# Characters matched at once, so that patterns stay fast.
_LONGEST_SENTENCE = 4_000
_EVERYWHERE = "any"
_COMMA = ","
# A part, a part whose verb is told to somebody, or two parts of which one follows the other.
_ALTERNATIVE = lazy_pattern(r"[a-z]+!?|[a-z]+>[a-z]+")
# The end of a part's name that counts only where its verb gives an order.
_ORDERED = "!"
# The part of a name by which somebody is spoken to, found by its place in the sentence.
_CALLED = "called"
# Words that a sign of code counts for: what it parts does not belong together.
_GAP = 6
# Words of a text for which its score must be larger, at most.
_MOST_WORDS_ALLOWED_FOR = 1_000
# Matches of a rule in one text that are scored, at most.
_MOST_TRIES = 200
# By how much a score must be larger in a text of several windows, times the logarithm of their number.
_LENGTH_WEIGHT = 0.5
# The sign in an address of mail.
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
# Words that a text has wherever one of these patterns matches, or a sign that it must have.
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
# Who is told what to do.
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
# Words after which `to` and a verb tell somebody what to do or what is allowed.
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
    without: parts of which no word may be near.
    within: the number of words among which all terms must be met.
    """

    rule: str
    terms: tuple[Term, ...]
    without: frozenset[str]
    within: float


def combination(rule: str, line: str) -> Combination:
    """Read a line of `parts:` in gate.rules: `drop + earlier|every + orders - report < 12`.

    This asks for words of `drop`, of `earlier` or `every`, and of `orders`, among 12 words and
    without a word of `report` near them. `not>tell` means that a word of `tell` follows one of `not`
    closely. `pay!` means that the verb gives an order (see `_is_order`).

    rule: the name of the rule.

    Raises ValueError for a line in another form.
    """
    text, _, limit = line.partition("<")
    required, *unwanted = text.split(" - ")
    terms = []
    for item in required.split("+"):
        alternatives = [alternative.strip() for alternative in item.split("|")]
        if not all(_ALTERNATIVE.fullmatch(name) for name in alternatives):
            raise ValueError(f"parts: {item.strip()!r} is no part")
        pairs = []
        for name in alternatives:
            first, sign, second = name.partition(">")
            if sign:
                pairs.append((first, second))
        plain_parts = frozenset(name for name in alternatives if ">" not in name)
        terms.append(Term(plain_parts, tuple(pairs)))
    without = frozenset(name.strip() for name in unwanted)
    return Combination(rule, tuple(terms), without, float(limit or WITHIN))


class _Entry(NamedTuple):
    """An entry of order-words.txt.

    words: its words in order, each with whether any ending may follow.
    main: the index in `words` of the main word, by which the entry is looked up.
    """

    language: str
    part: str
    words: tuple[tuple[str, bool], ...]
    main: int
    others: frozenset[str]
    """The words except the main one that allow no other ending. A sentence must have them all."""


_Row = tuple[str, str, str]
"""An entry of order-words.txt: its language, its part, and its folded words as that file has them."""


def _entry_of(row: _Row) -> _Entry:
    """Return the entry of a row. Its main word is the longest, the first if several are longest."""
    language, part, text = row
    words = tuple((word.rstrip("*"), word.endswith("*")) for word in text.split("_"))
    main = max(range(len(words)), key=lambda number: len(words[number][0]))
    others = frozenset(
        other for at, (other, may_end) in enumerate(words) if at != main and not may_end
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


class _Known(NamedTuple):
    """The parts to which a word belongs, as bits."""

    bits: int
    """All parts in any language, including parts of longer entries whose main word it is."""
    alone_bits: int
    """The parts that list it as an entry of one word."""
    alone: tuple[tuple[str, int], ...]
    """The parts that list it as an entry of one word, by language: (language, bits)."""
    entries: tuple[_Entry, ...]
    """The entries whose main word it is."""
    longer_entries: tuple[_Entry, ...]
    """Those of `entries` that have several words."""
    beside: tuple[tuple[frozenset[str], int], ...]
    """The parts of `longer_entries`, by the other words that each entry needs: (words, bits)."""


_OF_NO_PART = _Known(0, 0, (), (), (), ())


class Vocabulary:
    """The entries of order-words.txt, and the parts to which the words of a sentence belong.

    parts: the bit of each part by its name.
    """

    def __init__(self, text: str):
        self.parts: dict[str, int] = {}
        # By main word. Few of them are ever asked for, so entries are made then
        self._exact: dict[str, list[_Row]] = {}
        self._stems: dict[str, list[_Row]] = {}
        self._runs: dict[str, list[tuple[str, str]]] = {}
        self._prefixes: dict[str, tuple[str, ...]] = {}
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
        self.parts[_CALLED] = self.parts["who"]
        # Whether a verb gives an order is seen from its place: a word may give one by any part
        self.parts |= {f"{part}{_ORDERED}": bit for part, bit in self.parts.items()}
        self._lengths = _lengths_by_head(self._stems)
        # By these characters very many words are sorted out that begin as no stem does.
        self._beginnings = {stem[:_BEGINNING] for stem in self._stems}
        self._known_short = lru_cache(_MOST_KNOWN)(self._look_up)
        lengths: dict[str, set[int]] = {}
        for run in self._runs:
            if len(run) <= _LONGEST_RUN:
                lengths.setdefault(run[0], set()).add(len(run))
        self._run_lengths = {first: sorted(found) for first, found in lengths.items()}
        starts = "".join(map(re.escape, self._run_lengths))
        # The letters of a run from each one on at which an entry may begin
        self._run_heads = re.compile(f"(?=([{starts}].{{0,{_LONGEST_RUN - 1}}}))", re.S)

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
        """Return the bits of all parts in any language to which a word may belong.

        A word may belong to the part of an entry of several words whose main word it is.
        """
        return self.known(word).bits

    def known(self, word: str) -> _Known:
        """Return the parts to which a word may belong. The result is cached for a short word."""
        if len(word) < _LONG:
            return self._known_short(word)
        return self._look_up(word)

    def _look_up(self, word: str) -> _Known:
        """Find the parts to which a word may belong, without the cache of `known`."""
        bits_by_language: dict[str, int] = {}
        several: list[_Entry] = []
        entries = self._entries(word)
        # Most words that are new, such as parts of an id, are of this kind
        if not entries and word.isascii():
            return _OF_NO_PART
        for entry in entries:
            if len(entry.words) > 1:
                several.append(entry)
            else:
                bits_by_language[entry.language] = (
                    bits_by_language.get(entry.language, 0) | self.parts[entry.part]
                )
        if not word.isascii() and runs().search(word):
            for language, part in self._parts_in_run(word):
                bits_by_language[language] = bits_by_language.get(language, 0) | self.parts[part]
        alone_bits = 0
        for part_bits in bits_by_language.values():
            alone_bits |= part_bits
        bits = alone_bits
        beside: dict[frozenset[str], int] = {}
        for entry in several:
            bit = self.parts[entry.part]
            bits |= bit
            beside[entry.others] = beside.get(entry.others, 0) | bit
        by_language = tuple(bits_by_language.items())
        return _Known(bits, alone_bits, by_language, entries, tuple(several), tuple(beside.items()))

    def of_no_part(self, words: Iterable[str]) -> set[str]:
        """Return the ASCII words that match no entry and look like none, so that they have no part.

        This is `known` for many words at once, without looking up each. Ids and numbers, of which
        a long text may have very many different ones, are such words.
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
        lengths = self._lengths.get(form[:_HEAD], ())
        return any(form[:length] in self._stems for length in lengths)

    def parts_by_language(self, words: Iterable[str], sentence: set[str]) -> dict[str, int]:
        """Return the bits of the parts to which words of a sentence belong, by language.

        An entry of several words counts if the sentence has all its words, in any order.

        words: the words to look at.
        sentence: all words of the sentence.
        """
        there = self.with_forms(sentence)
        found: dict[str, int] = {}
        for word in words:
            known_word = self.known(word)
            for language, bits in known_word.alone:
                found[language] = found.get(language, 0) | bits
            for entry in known_word.longer_entries:
                if entry.others <= there:
                    bits = found.get(entry.language, 0)
                    found[entry.language] = bits | self.parts[entry.part]
        return found

    def with_forms(self, words: set[str]) -> set[str]:
        """Return these words with the words that they look like: `payment` for `pаymеnt`."""
        odd_words = [word for word in words if not word.isalpha() or not word.isascii()]
        forms = [word for word in odd_words if not word.isdecimal()]
        ascii_forms = look_alikes([word for word in forms if word.isascii()])
        return words.union(ascii_forms, *map(self._forms, filterfalse(str.isascii, forms)))

    def _entries(self, word: str) -> tuple[_Entry, ...]:
        """Return the entries whose main word is `word`, or a word that it looks like."""
        rows: list[_Row] = []
        for form in self._forms(word):
            rows += self._exact.get(form, ())
            # Few words begin as a stem does
            for length in self._lengths.get(form[:_HEAD], ()):
                if length <= len(form):
                    rows += self._stems.get(form[:length], ())
        return tuple(map(_entry_of, rows))

    def _forms(self, word: str) -> list[str]:
        """Return the forms in which a word is looked up.

        These are the word, the Latin word that it looks like, and the word without a prefix that
        languages such as Arabic write together with it.
        """
        forms = [word]
        alike = look_alike(word)
        if alike != word and alike.isascii():
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
        """Return the places of the words of each part in a sentence, by language and part.

        A place counts words from 0. Two letters of Chinese or Japanese count as one word, and a sign
        of code as _GAP words. Places are in the order of the sentence. The key `pay!` has the places
        of `pay` at which a verb gives an order.
        """
        places_by_language: dict[str, dict[str, list[float]]] = {}
        for place in self._places_of_calls(words):
            places_by_language.setdefault(_EVERYWHERE, {}).setdefault(_CALLED, []).append(place)
        spoken = [word for word in words if word != _COMMA]
        orders = _places_of_orders(words)
        text_place = 0.0
        for number, word in enumerate(spoken):
            for entry in self.known(word).entries:
                if len(entry.words) == 1 or self._is_here(entry, spoken, number):
                    parts = places_by_language.setdefault(entry.language, {})
                    parts.setdefault(entry.part, []).append(text_place)
                    if entry.language != "en" or number - entry.main in orders:
                        parts.setdefault(entry.part + _ORDERED, []).append(text_place)
            if not word.isascii() and runs().search(word):
                for language, part, offset in self._in_run(word):
                    place = text_place + offset / 2
                    parts = places_by_language.setdefault(language, {})
                    parts.setdefault(part, []).append(place)
                    parts.setdefault(part + _ORDERED, []).append(place)
                text_place += len(word) / 2
            else:
                text_place += _GAP if word == BREAK else 1
        return places_by_language

    def _places_of_calls(self, words: Sequence[str]) -> Iterator[float]:
        """Yield the places of names by which somebody is spoken to.

        Such names are in `Assistant: …`, `To the agent, …` and `…, assistant`.
        """
        who = self.parts["who"]
        opener = self.parts["opener"] | who
        place = 0.0
        is_open = True
        for number, word in enumerate(words):
            if word == _COMMA:
                continue
            if word == BREAK:
                place += _GAP
                continue
            bits = self.bits(word)
            if bits & who and self._is_whole(word) and _is_set_off(words, number, is_open=is_open):
                yield place
            is_open = bool(is_open and bits & opener) or bool(bits & self.parts["hidden"])
            place += 1

    def _is_whole(self, word: str) -> bool:
        """Whether a word is the name itself. A run of Chinese may only contain the name."""
        return word.isascii() or not is_cjk(word) or word in self._runs

    def _is_here(self, entry: _Entry, words: Sequence[str], number: int) -> bool:
        """Whether the words of an entry follow each other here, with the main word at `number`."""
        begin = number - entry.main
        if begin < 0 or begin + len(entry.words) > len(words):
            return False
        for (entry_word, is_stem), word in zip(entry.words, words[begin:], strict=False):
            if word == entry_word or (is_stem and word.startswith(entry_word)):
                continue
            if entry_word not in self._forms(word):
                return False
        return True

    def languages(
        self, places_by_language: dict[str, dict[str, list[float]]]
    ) -> Iterator[dict[str, list[float]]]:
        """Yield the places of the parts of a sentence, once for each language that it may be in.

        Parts whose words belong to no language are added to each language. English is added to
        languages of other scripts, whose writers use English for technical words.
        """
        shared = places_by_language.get(_EVERYWHERE, {})
        for language, parts in places_by_language.items():
            if language == _EVERYWHERE:
                continue
            groups = [shared, parts]
            if language in _BESIDE_ENGLISH and "en" in places_by_language:
                groups.append(places_by_language["en"])
            together: dict[str, list[float]] = {}
            for group in groups:
                for part, places in group.items():
                    together[part] = sorted([*together.get(part, ()), *places])
            yield together

    def segmented(self, run: str) -> list[str]:
        """Find the known words in a run of letters: `deletefiles` becomes `delete`, `files`."""
        words = []
        start = 0
        while start < len(run):
            for length in range(min(14, len(run) - start), 1, -1):
                piece = run[start : start + length]
                if piece in self._exact or piece in self._stems:
                    words.append(piece)
                    start += length
                    break
            else:
                start += 1
        return words


def _lengths_by_head(stems: Iterable[str]) -> dict[str, list[int]]:
    """Return the lengths of the stems, longest first, by their first _HEAD characters."""
    lengths: dict[str, set[int]] = {}
    for stem in stems:
        lengths.setdefault(stem[:_HEAD], set()).add(len(stem))
    return {head: sorted(found, reverse=True) for head, found in lengths.items()}


# Languages whose speakers mix English words into their sentences.
_BESIDE_ENGLISH = frozenset(["zh", "ja", "ko", "ru", "ar", "hi"])


@cache
def vocabulary() -> Vocabulary:
    """Return the words of order-words.txt."""
    return Vocabulary(Path(__file__).with_name("order-words.txt").read_text(encoding="utf-8"))


class _Need(NamedTuple):
    """The parts, as bits, that a sentence must have for a combination to be tried on it."""

    line: Combination
    first: tuple[int, ...]
    """The alternatives of its first term: the bits of a part, or of both parts of a pair."""
    any_of: tuple[int, ...]
    """For each term without pairs, the bits of its parts. The sentence needs one of them."""
    with_pairs: tuple[tuple[int, ...], ...]
    """For each term with pairs, its alternatives. The sentence needs all bits of one of them."""

    def is_met(self, mask: int) -> bool:
        """Whether a sentence whose parts are the bits of `mask` has all that the line needs."""
        for parts in self.any_of:
            if not mask & parts:
                return False
        return all(_has_any(mask, groups) for groups in self.with_pairs)


class Orders:
    """Finds the combinations that the sentences of a text meet.

    Three checks, each slower than the one before, are made of a sentence. The first looks at the
    parts to which its words may belong, the second at the parts to which they do belong in one
    language, and the third at their places. Few sentences come to the third.
    """

    def __init__(self, combinations: Sequence[Combination], likeness: Mapping[str, float]):
        """likeness: by the name of a rule, the least score of text (text/likeness.py).

        A rule that has combinations counts only where a window around them has this score. A rule
        without combinations matches wherever a window has it.
        """
        self._combinations = combinations
        self._likeness = likeness
        rules_with_parts = {line.rule for line in combinations}
        self._by_score_alone = {
            rule: least for rule, least in likeness.items() if rule not in rules_with_parts
        }
        self._words = vocabulary()
        self._candidates = lru_cache(_MOST_KNOWN)(self._find_candidates)
        # Words of no part, of which most sentences are made
        self._plain_words: set[str] = set()
        # By a part of its first term, which is its rarest, each line with all that it needs
        self._by_first_part: dict[int, list[_Need]] = {}
        for line in combinations:
            need = self._need(line)
            for parts in need.first:
                first_part = 1 << (parts.bit_length() - 1)
                self._by_first_part.setdefault(first_part, []).append(need)
        self._first_parts = sum(self._by_first_part)

    def __reduce__(
        self,
    ) -> tuple[type[Orders], tuple[Sequence[Combination], Mapping[str, float]]]:
        """Send the combinations to another process, and none of the caches."""
        return Orders, (self._combinations, self._likeness)

    def _need(self, line: Combination) -> _Need:
        """Return the parts that a sentence must have to meet a combination.

        Raises ValueError if the combination names a part that does not exist.
        """
        bit = self._words.parts
        any_of: list[int] = []
        with_pairs: list[tuple[int, ...]] = []
        first: tuple[int, ...] = ()
        for term in line.terms:
            groups = [(part,) for part in term.parts] + list(term.pairs)
            unknown = [part for part in chain.from_iterable(groups) if part not in bit]
            if unknown:
                raise ValueError(f"rule {line.rule}: no part is called {unknown[0]}")
            masks = tuple(sum({bit[part] for part in group}) for group in groups)
            first = first or masks
            if term.pairs:
                with_pairs.append(masks)
            else:
                any_of.append(sum(set(masks)))
        return _Need(line, first, tuple(any_of), tuple(with_pairs))

    def _find_candidates(self, mask: int) -> tuple[Combination, ...]:
        """Return the combinations that a sentence may meet whose parts are the bits of `mask`."""
        lines: dict[Combination, None] = {}
        to_try = mask & self._first_parts
        while to_try:
            first_part = to_try & -to_try
            to_try ^= first_part
            for need in self._by_first_part[first_part]:
                if need.is_met(mask):
                    lines[need.line] = None
        return tuple(lines)

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
        """Return the names of the rules of which a sentence meets a combination."""
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
            lines = self._lines_for(words, bits_of)
            if lines:
                for begin in range(0, len(sentence), _LONGEST_SENTENCE):
                    part = sentence[begin : begin + _LONGEST_SENTENCE]
                    new_lines = [line for line in lines if line.rule not in rule_ids]
                    rule_ids |= self._in_sentence(part, new_lines, doubts)
        return rule_ids

    def _bits_in(self, words: Sequence[str]) -> dict[str, int]:
        """Return the bits of the parts of each word in a text. Words of no part are left out.

        The part of an entry of several words counts if the text has all its words.
        """
        different_words = set(words)
        bits_of: dict[str, int] = {}
        there: set[str] | None = None
        new_words = different_words - self._plain_words
        words_of_no_part = self._words.of_no_part(new_words)
        self._remember_plain(words_of_no_part)
        for word in new_words - words_of_no_part:
            known_word = self._words.known(word)
            bits = known_word.alone_bits
            if known_word.beside:
                if there is None:
                    there = self._words.with_forms(different_words)
                for others, bits_beside in known_word.beside:
                    if others <= there:
                        bits |= bits_beside
            if bits:
                bits_of[word] = bits
            elif not known_word.bits:
                self._remember_plain({word})
        return bits_of

    def _remember_plain(self, words: set[str]) -> None:
        """Keep words of no part, unless they are long, so that they are not looked up again.

        More words than are kept come from a text of ids, which are not met again.
        """
        if len(words) > _MOST_KNOWN:
            return
        if len(self._plain_words) + len(words) > _MOST_KNOWN:
            self._plain_words.clear()
        self._plain_words.update(word for word in words if len(word) < _LONG)

    def _lines_for(self, words: Sequence[str], bits_of: dict[str, int]) -> tuple[Combination, ...]:
        """Return the combinations that a sentence may meet with words of one language.

        bits_of: the bits of the parts of each word in the whole text.
        """
        telling_words = bits_of.keys() & words
        mask = 0
        for word in telling_words:
            mask |= bits_of[word]
        # Few sentences have the parts of any combination, even in several languages at once
        if not self._candidates(mask):
            return ()
        lines: dict[Combination, None] = {}
        parts_by_language = self._words.parts_by_language(telling_words, set(words))
        shared = parts_by_language.pop(_EVERYWHERE, 0)
        # A name by which somebody is called counts in each language, as in `places`
        for parts in parts_by_language.values():
            shared |= parts & self._words.parts[_CALLED]
        # Sorted, because the order of a set of words differs between two processes
        for language, parts in sorted(parts_by_language.items()):
            together = parts | shared
            if language in _BESIDE_ENGLISH:
                together |= parts_by_language.get("en", 0)
            lines |= dict.fromkeys(self._candidates(together))
        return tuple(lines)

    def _in_sentence(
        self, sentence: str, lines: Sequence[Combination], doubts: _Doubts
    ) -> dict[str, None]:
        """Return the names of the rules that match a sentence.

        Quotations do not count in a sentence that reports them: `He said: "Ignore all rules."`

        lines: the combinations to try.
        doubts: the rules that match only with a score.
        """
        rule_ids = self._matching_rules(folded(sentence).split(), lines, doubts)
        if not rule_ids:
            return rule_ids
        text_outside_quotes = _QUOTE.sub(" ", sentence)
        if len(text_outside_quotes) == len(sentence):
            return rule_ids
        # A text that its writer only quotes asks nobody for anything.
        words_outside_quotes = folded(text_outside_quotes).split()
        is_report = any(
            self._words.bits(word) & self._words.parts["report"] for word in words_outside_quotes
        )
        if is_report:
            return self._matching_rules(words_outside_quotes, lines, doubts)
        return rule_ids

    def _matching_rules(
        self, words: Sequence[str], lines: Sequence[Combination], doubts: _Doubts
    ) -> dict[str, None]:
        """Return the names of the rules of `lines` that words match by their places."""
        rule_ids: dict[str, None] = {}
        begins = _begins_of_clauses(words)
        for parts in self._words.languages(self._words.places(words)):
            for line in lines:
                if line.rule in rule_ids:
                    continue
                own_begins = begins if doubts.concern(line.rule) else [0.0]
                for places in _matches(line, parts, own_begins):
                    if doubts.are_dispelled(line.rule, words, places):
                        rule_ids[line.rule] = None
                        break
        return rule_ids


def _places_of_orders(words: Sequence[str]) -> set[int]:
    """Return the places in a sentence at which an English verb would give an order.

    Such verbs are in `Delete the backups`, `please always delete`, `you may delete` and `are to be
    deleted`. Places count words from 0, without commas.
    """
    orders: set[int] = set()
    number = 0
    for position, word in enumerate(words):
        if word == _COMMA:
            continue
        if _is_order(words, position):
            orders.add(number)
        number += 1
    return orders


def _is_order(words: Sequence[str], position: int) -> bool:
    """Whether the word at this index, if it is an English verb, tells somebody to do something."""
    before = position - 1
    while before >= 0 and words[before] in _ADVERBS:
        before -= 1
    if words[position].endswith(_PARTICIPLES):
        # "should never be deleted", "is to be deleted": whatever does it, somebody is told to
        is_passive = before >= 1 and words[before] == "be"
        return is_passive and words[before - 1] in _MODALS | _ADVERBS | {"to"}
    if words[position].endswith("s") and not words[position].endswith("ss"):
        # "The assistant pays": what somebody is said to do is what it should do
        return before >= 0 and words[before] in _TELLERS
    if before < 0 or words[before] in _CLAUSE_BEGINS:
        # "Email: …" is a label, and no order to mail something
        return words[position + 1 : position + 2] not in ([_COMMA], [BREAK])
    subject = words[max(0, before - 3) : before]
    if words[before] in _MODALS:
        return not _TELLERS.isdisjoint(subject[-1:])
    return words[before] == "to" and not _LICENCES.isdisjoint(subject)


def _has_any(mask: int, groups: Sequence[int]) -> bool:
    """Whether `mask` has all bits of at least one of these groups."""
    return any(mask & group == group for group in groups)


def _is_set_off(words: Sequence[str], number: int, *, is_open: bool) -> bool:
    """Whether a comma separates the word at `number` from the rest of the sentence.

    This is so in `assistant, …` at the beginning, and in `…, assistant` at the end.

    is_open: whether the word is at the beginning.
    """
    if words[number + 1 : number + 2] == [_COMMA]:
        return is_open
    return number + 1 == len(words) and number > 1 and words[number - 1] == _COMMA


def words_of_sentences(text: str) -> list[list[str]]:
    """Return the folded words of each sentence of a text, as they are scored (text/likeness.py)."""
    clear = uncovered(text)
    if not clear.isascii():
        clear = visible_letters(clear)
    return [words for _, words in _folded_with_marks(clear).sentences()]


def _folded_with_marks(text: str) -> FoldedText:
    """Fold a text in which words replace signs with a meaning, as `zzaddress` replaces `https://`.

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
    # A sign is found much faster than a pattern, and most texts have none of them.
    # Chinese has no blank before an address or a path, so these are no words of their own.
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
    return any(sign in text for sign in signs)


class _Doubts:
    """Decides of rules with a least score whether a match counts, in one text.

    A match counts if some words around it have the score. No other word can take its mark away: not
    in other sentences, not before or behind these words, and not in a clause between commas within
    the match.

    least: the least score by the name of a rule. A rule that is not in it always counts.
    """

    def __init__(self, least: Mapping[str, float]):
        self._least = least
        self._tries = Counter[str]()

    def concern(self, rule: str) -> bool:
        """Whether a rule matches only with a score."""
        return rule in self._least

    def are_dispelled(self, rule: str, words: Sequence[str], places: Sequence[float]) -> bool:
        """Whether a match of a rule counts.

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
        without = _without_idle_clauses(match)
        return without != match and is_like_around(
            without.words, without.first, without.last, least
        )


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
    spoken: list[str] = []
    clauses: list[int] = []
    indexes: list[int] = []
    clause = 0
    end = 0.0
    for word in words:
        if word == _COMMA:
            clause += 1
            continue
        end += _places_taken(word)
        while len(indexes) < len(places) and places[len(indexes)] < end:
            indexes.append(len(spoken))
        spoken.append(word)
        clauses.append(clause)
    busy_clauses = frozenset(clauses[index] for index in indexes)
    return _Match(spoken, indexes[0], indexes[-1], clauses, busy_clauses)


def _places_taken(word: str) -> float:
    """Return how many places a word takes, as `Vocabulary.places` counts them."""
    if word == BREAK:
        return _GAP
    if not word.isascii() and runs().search(word):
        return len(word) / 2
    return 1


def _without_idle_clauses(match: _Match) -> _Match:
    """Return a match without the clauses within it that have none of its parts."""
    kept = [
        index
        for index, clause in enumerate(match.clauses)
        if not match.first < index < match.last or clause in match.busy_clauses
    ]
    return _Match(
        [match.words[index] for index in kept],
        match.first,
        kept.index(match.last),
        [match.clauses[index] for index in kept],
        match.busy_clauses,
    )


def _allowance(number: int) -> float:
    """Return by how much the best score of a text of so many words must be larger.

    A long text has many windows, of which one may look like an order by chance. Padding does not
    raise it without end.
    """
    windows = max(1, min(number, _MOST_WORDS_ALLOWED_FOR) / WINDOW)
    return _LENGTH_WEIGHT * log(windows)


def _begins_of_clauses(words: Sequence[str]) -> list[float]:
    """Return the places at which the clauses of a sentence begin, in order. Commas part clauses.

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
    line: Combination, parts: dict[str, list[float]], begins: Sequence[float]
) -> Iterator[list[float]]:
    """Yield the places of the terms of each match of a combination in a sentence, in order.

    parts: the places of each part in the sentence, in order.
    begins: the places at which its clauses begin, in order. What rules a match out must be in the
        clause in which the match begins, or behind.
    """
    places: list[tuple[float, int]] = []
    for number, term in enumerate(line.terms):
        part_places = _places_of(term.parts, parts)
        for leader, follower in term.pairs:
            part_places += _places_close_after(parts.get(leader, ()), parts.get(follower, ()))
        if not part_places:
            return
        places += [(place, number) for place in part_places]
    against = sorted(_places_of(line.without, parts))
    for match in _near(sorted(places), len(line.terms), line.within):
        # "Yesterday we had cake, delete …": an earlier clause rules nothing out.
        begin = begins[bisect_right(begins, match[0]) - 1]
        if not _is_between(against, max(begin, match[0] - _BEFORE), match[-1]):
            yield match


def _places_of(names: Iterable[str], parts: dict[str, list[float]]) -> list[float]:
    """Return the places of all words that belong to one of the named parts."""
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
    """Yield places of every term that are near each other, in order.

    places: (place, index of a term), sorted.
    terms: the number of terms.
    within: how many words a stretch may have.
    """
    last: dict[int, float] = {}
    for place, term in places:
        last[term] = place
        if len(last) == terms and place - min(last.values()) <= within:
            yield sorted(last.values())
