"""Rules that describe what a sentence is up to by its parts: whom it speaks to, what it asks for,
what it wants left out (docs/gate.md).

The words of a part are data, a section for each language (order-words.txt). A rule names parts that
must stand near each other in one sentence, in whatever words, order or spelling. Most sentences are
let go after one look at which parts their words belong to.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from memoranda.text.disguise import (
    BREAK,
    decoded,
    joined_letters,
    look_alike,
    uncovered,
    words_by_sentence,
)
from memoranda.text.disguise import plain as folded
from memoranda.text.pattern import lazy_pattern
from memoranda.text.tokens import is_cjk
from memoranda.text.words import runs

WITHIN = 18
"""Words among which the parts of a rule must stand, unless it says otherwise."""
# Words between the two parts of `a>b`, at most.
_NEXT_TO = 3.5
# Words remembered with what they were read as.
_KNOWN_WORDS = 100_000
# Characters of words that are worth remembering, at most.
_LONG = 40
_SPACED_LETTERS = 4
_SHORT = 3
# Words before a match in which a part that rules it out counts.
_BEFORE = 5
# Characters of the longest Chinese or Japanese entry.
_LONGEST_RUN = 12
# Characters matched at once, so that patterns stay fast.
_LONGEST_SENTENCE = 4_000
_EVERYWHERE = "any"
_COMMA = ","
# The part of a name by which somebody is spoken to, found by its place in the sentence.
_CALLED = "called"
# Words that a sign of code counts for: what it parts does not belong together.
_GAP = 6
# The sign in an address of mail.
_MAIL = lazy_pattern(r"@(?=[\w-]{1,64}\.\w)")
# Text that is piped into a shell.
_SHELL = lazy_pattern(r"\|\s{0,4}(?:sudo )?(?:ba|z|da)?sh\b|<\(\s{0,2}(?:curl|wget)|\bsh -c\b")
# Files that hold keys and passwords.
_KEY_FILE = lazy_pattern(
    r"\.(?:env|netrc|npmrc|pypirc|pgpass|git-credentials)\b|(?<!\w)\.(?:ssh|aws|kube|gnupg)\b"
    r"|\bid_(?:rsa|ed25519|ecdsa)\b|authorized_keys|/etc/(?:passwd|shadow|sudoers)"
)
_KEY_FILES = (".env", ".ssh", ".netrc", ".aws", ".kube", ".gnupg", ".npmrc", ".pypirc", ".pgpass")
_OTHER_KEY_FILES = (".git-credentials", "id_", "authorized_keys", "/etc/")
_UNSEEN_STYLES = ("hidden", "display", "opacity", "font-size", "color")
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


@dataclass(frozen=True, slots=True)
class Term:
    """One condition of a line: any of `parts`, or `first>second` for each of `pairs`."""

    parts: frozenset[str]
    pairs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Combination:
    """Parts that together make a rule match: all `terms` near each other, none of `without` in
    the sentence.
    """

    rule: str
    terms: tuple[Term, ...]
    without: frozenset[str]
    within: float


def combination(rule: str, line: str) -> Combination:
    """A line of `parts:` as written in gate.rules: `drop + earlier|every + orders - report < 12`.

    `not>tell` means that a word of `tell` follows one of `not` closely. Raises ValueError.
    """
    text, _, limit = line.partition("<")
    required, *unwanted = text.split(" - ")
    terms = []
    for item in required.split("+"):
        alternatives = [alternative.strip() for alternative in item.split("|")]
        if not all(re.fullmatch(r"[a-z]+(?:>[a-z]+)?", name) for name in alternatives):
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
    """One entry of a part: its words, each with whether any ending may follow."""

    language: str
    part: str
    words: tuple[tuple[str, bool], ...]
    main: int


class Vocabulary:
    """The words of all parts, by language; see the head of order-words.txt."""

    def __init__(self, text: str):
        self.parts: dict[str, int] = {}
        self._exact: dict[str, list[_Entry]] = {}
        self._stems: dict[str, list[_Entry]] = {}
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
                self._add(language, part, entry)
        self.parts[_CALLED] = self.parts["who"]
        self._lengths = sorted({len(stem) for stem in self._stems}, reverse=True)
        self.known_bits: dict[str, int] = {}
        self._known: dict[str, tuple[_Entry, ...]] = {}
        lengths: dict[str, set[int]] = {}
        for run in self._runs:
            if len(run) <= _LONGEST_RUN:
                lengths.setdefault(run[0], set()).add(len(run))
        self._run_lengths = {first: sorted(found) for first, found in lengths.items()}

    def _add(self, language: str, part: str, entry: str) -> None:
        if language in ("zh", "ja") and is_cjk(entry):
            run = "".join(folded(entry).split())
            self._runs.setdefault(run, []).append((language, part))
            return
        words = []
        for word in entry.split("_"):
            stem = word.rstrip("*")
            # Most words are of small Latin letters, which folding leaves as they are.
            pieces = [stem]
            if not (stem.isascii() and stem.isalpha() and stem.islower()):
                pieces = folded(stem).split()
            words += [(piece, False) for piece in pieces]
            if word.endswith("*"):
                words[-1] = (words[-1][0], True)
        main = max(range(len(words)), key=lambda number: len(words[number][0]))
        first, is_stem = words[main]
        if is_stem:
            table = self._stems
        else:
            table = self._exact
        table.setdefault(first, []).append(_Entry(language, part, tuple(words), main))

    def bits(self, word: str) -> int:
        """The parts that `word` may belong to, or be the main word of, in any language."""
        known_bits = self.known_bits.get(word)
        if known_bits is not None:
            return known_bits
        value = 0
        for entry in self._entries(word):
            value |= self.parts[entry.part]
        if not word.isascii() and runs().search(word):
            for _, part, _ in self._in_run(word):
                value |= self.parts[part]
        if len(self.known_bits) < _KNOWN_WORDS and len(word) < _LONG:
            self.known_bits[word] = value
        return value

    def _entries(self, word: str) -> tuple[_Entry, ...]:
        """The entries whose main word `word` is."""
        known_entries = self._known.get(word)
        if known_entries is not None:
            return known_entries
        entries: list[_Entry] = []
        for form in self._forms(word):
            entries += self._exact.get(form, ())
            for length in self._lengths:
                if length <= len(form):
                    entries += self._stems.get(form[:length], ())
        if len(self._known) < _KNOWN_WORDS and len(word) < _LONG:
            self._known[word] = tuple(entries)
        return tuple(entries)

    def _forms(self, word: str) -> list[str]:
        """`word`, what it looks like, and without what Arabic writes together with it."""
        forms = [word]
        alike = look_alike(word)
        # A short word of another alphabet may look like an English one by chance
        is_mixed = any(char.isascii() for char in word)
        if alike != word and alike.isascii() and (is_mixed or len(word) > _SHORT):
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
        """Language, part and place of each entry in a run of Chinese or Japanese."""
        for at, char in enumerate(run):
            for length in self._run_lengths.get(char, ()):
                for language, part in self._runs.get(run[at : at + length], ()):
                    yield language, part, at

    def places(self, words: Sequence[str]) -> dict[str, dict[str, list[float]]]:
        """By language and part, where the parts stand among `words`, in the order of the text."""
        places_by_language: dict[str, dict[str, list[float]]] = {}
        for place in self._called(words):
            places_by_language.setdefault(_EVERYWHERE, {}).setdefault(_CALLED, []).append(place)
        spoken = [word for word in words if word != _COMMA]
        at = 0.0
        for number, word in enumerate(spoken):
            for entry in self._entries(word):
                if self._is_here(entry, spoken, number):
                    places_by_language.setdefault(entry.language, {}).setdefault(
                        entry.part, []
                    ).append(at)
            if not word.isascii() and runs().search(word):
                for language, part, offset in self._in_run(word):
                    place = at + offset / 2
                    places_by_language.setdefault(language, {}).setdefault(part, []).append(place)
                at += len(word) / 2
            else:
                at += _GAP if word == BREAK else 1
        return places_by_language

    def _called(self, words: Sequence[str]) -> Iterator[float]:
        """Where somebody is spoken to by name: `Assistant: …`, `To the agent, …`, `…, assistant`."""
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
        """Whether a name is all of a word: in Chinese it may stand anywhere in one."""
        return word.isascii() or not is_cjk(word) or word in self._runs

    def _is_here(self, entry: _Entry, words: Sequence[str], number: int) -> bool:
        """Whether all words of an entry stand here, its main word at `number`."""
        if len(entry.words) == 1:
            return True
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
        """The parts of each language in a sentence, with those that count in every one. English
        counts beside languages of other scripts, whose writers use it for technical words.
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
        """The known words in letters without blanks between words."""
        words = []
        at = 0
        while at < len(run):
            for length in range(min(14, len(run) - at), 1, -1):
                piece = run[at : at + length]
                if piece in self._exact or piece in self._stems:
                    words.append(piece)
                    at += length
                    break
            else:
                at += 1
        return words


# Languages whose speakers mix English words into their sentences.
_BESIDE_ENGLISH = frozenset(["zh", "ja", "ko", "ru", "ar", "hi"])


@cache
def vocabulary() -> Vocabulary:
    """The words that come with the program."""
    return Vocabulary(Path(__file__).with_name("order-words.txt").read_text(encoding="utf-8"))


class Orders:
    """Combinations of parts, tried on every sentence of a text."""

    def __init__(self, combinations: Sequence[Combination]):
        self._words = vocabulary()
        self._combinations = combinations
        self._needs = [self._need(line) for line in combinations]
        self._possible: dict[int, tuple[Combination, ...]] = {0: ()}
        self._plain_words: set[str] = set()
        self._term_bits: dict[int, int] = {}
        self._needed_terms = [self._terms_of(needs) for needs in self._needs]

    def _terms_of(self, needs: tuple[tuple[int, ...], ...]) -> int:
        """The terms of a combination as bits: equal terms of several combinations share one."""
        terms = 0
        for groups in needs:
            parts = 0
            for group in groups:
                parts |= group
            terms |= self._term_bits.setdefault(parts, 1 << len(self._term_bits))
        return terms

    def _need(self, line: Combination) -> tuple[tuple[int, ...], ...]:
        """For each term the parts of which a sentence must have one, or both of a pair."""
        bit = self._words.parts
        needs = []
        for term in line.terms:
            groups = [(part,) for part in term.parts] + list(term.pairs)
            unknown = [part for part in chain.from_iterable(groups) if part not in bit]
            if unknown:
                raise ValueError(f"rule {line.rule}: no part is called {unknown[0]}")
            masks: list[int] = []
            for group in groups:
                masks.append(sum({bit[part] for part in group}))
            needs.append(tuple(masks))
        return tuple(needs)

    def _candidates(self, mask: int) -> tuple[Combination, ...]:
        """The combinations that words of these parts may meet."""
        candidates = self._possible.get(mask)
        if candidates is None:
            # A term that no word belongs to rules most combinations out
            met = sum([bit for parts, bit in self._term_bits.items() if mask & parts])
            near = [at for at, terms in enumerate(self._needed_terms) if met & terms == terms]
            candidates = tuple(self._combinations[at] for at in near if self._meets(mask, at))
            if len(self._possible) < _KNOWN_WORDS:
                self._possible[mask] = candidates
        return candidates

    def _meets(self, mask: int, at: int) -> bool:
        """Whether words of these parts may meet every term of the combination at a position."""
        return all(_has_any(mask, groups) for groups in self._needs[at])

    def rules(self, clear: str) -> dict[str, None]:
        """The names of the rules that match a text or a text hidden in it, in order, each once.

        clear: the text without disguises: `uncovered`, and `visible_letters` if it is not ASCII.
        """
        rules_found, longest = self._in_text(clear)
        if longest >= _SPACED_LETTERS:
            joined = joined_letters(clear)
        else:
            joined = None
        if joined is not None:
            rules_found |= self._in_text(joined)[0]
        for hidden in decoded(clear):
            rules_found |= self._in_text(uncovered(hidden))[0]
        return rules_found

    def _in_text(self, text: str) -> tuple[dict[str, None], int]:
        """The rules that match, and how many words in a row are single letters at most."""
        rules_found: dict[str, None] = {}
        longest = 0
        for sentence, words in words_by_sentence(_marked(text)):
            lengths = list(map(len, words))
            if lengths.count(1) > longest:
                longest = max(longest, _longest_run_of_ones(lengths))
            lines = self._candidates(self._parts_of(words))
            if lines:
                for begin in range(0, len(sentence), _LONGEST_SENTENCE):
                    rules_found |= self._in_sentence(
                        sentence[begin : begin + _LONGEST_SENTENCE], lines
                    )
        return rules_found, longest

    def _parts_of(self, words: Sequence[str]) -> int:
        """The parts that these words may belong to. Most words belong to none, and are told from
        the others by a set."""
        plain_words = self._plain_words
        mask = 0
        for word in set(words) - plain_words:
            bits = self._words.bits(word)
            mask |= bits
            if not bits and len(plain_words) < _KNOWN_WORDS and len(word) < _LONG:
                plain_words.add(word)
        return mask

    def _in_sentence(self, sentence: str, lines: Sequence[Combination]) -> dict[str, None]:
        rules_found = self._matching(folded(sentence).split(), lines)
        if not rules_found:
            return rules_found
        outside = _QUOTE.sub(" ", sentence)
        if len(outside) == len(sentence):
            return rules_found
        # A text that its writer only quotes asks nobody for anything.
        rest = folded(outside).split()
        is_report = any(self._words.bits(word) & self._words.parts["report"] for word in rest)
        if is_report:
            return self._matching(rest, lines)
        return rules_found

    def _matching(self, words: Sequence[str], lines: Sequence[Combination]) -> dict[str, None]:
        rules_found: dict[str, None] = {}
        for parts in self._words.languages(self._words.places(words)):
            for line in lines:
                if line.rule not in rules_found and _is_met(line, parts):
                    rules_found[line.rule] = None
        return rules_found


def _longest_run_of_ones(numbers: Sequence[int]) -> int:
    longest = 0
    run = 0
    for number in numbers:
        if number == 1:
            run = run + 1
        else:
            run = 0
        longest = max(longest, run)
    return longest


def _has_any(mask: int, groups: Sequence[int]) -> bool:
    """Whether `mask` has all of one of these groups of bits."""
    return any(mask & group == group for group in groups)


def _is_set_off(words: Sequence[str], number: int, *, is_open: bool) -> bool:
    """Whether the word at `number` opens a sentence before a comma, or ends one after it."""
    if words[number + 1 : number + 2] == [_COMMA]:
        return is_open
    return number + 1 == len(words) and number > 1 and words[number - 1] == _COMMA


def _marked(text: str) -> str:
    """`text` with words in the place of what only its signs tell: addresses, a pipe into a shell,
    files that hold keys, places that nobody sees.
    """
    # A sign is found much faster than a pattern, and most texts have none of them.
    if _holds_any(text, ("://", "@")):
        text = text.replace("http://", " zzaddress ").replace("https://", " zzaddress ")
        text = _MAIL.sub(" zzaddress ", text)
        text = _PARAMETER.sub(" zzhidden ", text)
    if '"role"' in text:
        text = _ROLE.sub(" zzrole ", text)
    if _holds_any(text, ("|", "<(", "sh -c")):
        text = _SHELL.sub(" zzshell ", text)
    if _holds_any(text, "._/") and _holds_any(text, _KEY_FILES + _OTHER_KEY_FILES):
        text = _KEY_FILE.sub(" zzkeyfile ", text)
    if _holds_any(text, "<:=") and _holds_any(text, _UNSEEN_STYLES):
        text = _HIDDEN.sub(" zzhidden ", text)
    if _holds_any(text, ("!", "[//]", "{{/*")):
        for sign in _COMMENTS:
            text = text.replace(sign, " zzcomment ")
        text = text.replace("![", " zzhidden ")
    return text


def _holds_any(text: str, signs: Iterable[str]) -> bool:
    return any(sign in text for sign in signs)


def _is_met(line: Combination, parts: dict[str, list[float]]) -> bool:
    places: list[tuple[float, int]] = []
    for number, term in enumerate(line.terms):
        at = _places_of(term.parts, parts)
        for first, second in term.pairs:
            at += _following(parts.get(first, ()), parts.get(second, ()))
        if not at:
            return False
        places += [(place, number) for place in at]
    against = sorted(_places_of(line.without, parts))
    return any(
        not _is_between(against, first - _BEFORE, last)
        for first, last in _near(sorted(places), len(line.terms), line.within)
    )


def _places_of(names: Iterable[str], parts: dict[str, list[float]]) -> list[float]:
    """The places of all words that belong to one of these parts."""
    places: list[float] = []
    for name in names:
        places += parts.get(name, ())
    return places


def _following(first: Sequence[float], second: Sequence[float]) -> list[float]:
    """The places of `second` that come closely after one of `first`."""
    return [place for place in second if _is_between(first, place - _NEXT_TO, place - 0.1)]


def _is_between(places: Sequence[float], first: float, last: float) -> bool:
    """Whether one of the sorted `places` is between these two."""
    at = bisect_left(places, first)
    return at < len(places) and places[at] <= last


def _near(
    places: Sequence[tuple[float, int]], terms: int, within: float
) -> Iterator[tuple[float, float]]:
    """The stretches of at most `within` words that hold a place of every term."""
    last: dict[int, float] = {}
    for place, term in places:
        last[term] = place
        first = min(last.values())
        if len(last) == terms and place - first <= within:
            yield first, place
