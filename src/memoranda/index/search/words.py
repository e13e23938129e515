"""Words of a query in texts: their forms (irregular ones from a data file, English stems, one edit
away), where they stand, and the snippet cut around them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from itertools import pairwise, product
from operator import or_
from pathlib import Path

from memoranda.index.search.parse import Term, term
from memoranda.index.search.word_marks import EXACT, LOOSE, bits_of, last_word
from memoranda.text.folding import fold_places
from memoranda.text.pattern import lazy_pattern
from memoranda.text.tokens import is_cjk, tokens
from memoranda.text.words import IN_WORD, words_of

MAX_HELD = 1_500
"""Of a word that more notes contain, the newest are looked at."""
_ENDINGS = (
    ("ies", "y"),
    ("ied", "y"),
    ("ings", ""),
    ("ing", ""),
    ("es", ""),
    ("ed", ""),
    ("s", ""),
    ("e", ""),
)
# Letters that a stem has at least.
_SHORTEST = 3
# A consonant doubled before an ending: "run" of "running".
_DOUBLED = lazy_pattern(r"([bdfgmnprt])\1$")
_ALPHABET = "abcdefghijklmnopqrstuvwxyz"
_INFLECTIONS = (
    "",
    "s",
    "e",
    "es",
    "ed",
    "ing",
    "ings",
    "er",
    "ers",
    "y",
    "ly",
    "ment",
    "ments",
    "ion",
    "ions",
    "ation",
    "ations",
    "al",
    "ance",
    "ence",
    "ant",
    "ent",
    "able",
    "ible",
    "ive",
    "ous",
    "ful",
    "ness",
    "ity",
    "ism",
    "ist",
    "ize",
    "ate",
)
# Letters of a root by which other forms are found.
_MIN_ROOT = 4
# Words that English endings are taken from; shorter and longer ones are left alone.
_INFLECTED = lazy_pattern("[a-z]{3,30}")
# A stem without a vowel is no word.
_VOWEL = lazy_pattern("[aeiouy]")
# Any doubled consonant at the end.
_DOUBLE = lazy_pattern(r"([b-df-hj-np-tv-z])\1$")
# A verb such as `hop`, which doubles its last letter: `hoping` is not one of its forms.
_SHORT_SYLLABLE = lazy_pattern("[^aeiou]*[aeiouy][^aeiouwxy]")
# An end that doubles its last letter before "-ing" and "-ed".
_MAY_DOUBLE = lazy_pattern("[^aeiou][aeiou][bdfgklmnprtvz]$")
SNIPPET = 200
"""The most characters of a snippet."""

Place = tuple[int, int]
"""Where in a text a word of the query stands, and its number."""

# At most this many words are respelled if no note contains them.
_FEW_WORDS = 32
# Characters between two words at which their nearness is a half.
_APART = 60


@dataclass(slots=True)
class Word:
    """A word of the query.

    rows: the notes that contain it or a form of it. If none does, those with a longer word that
        begins with it (`is_open`).
    name_rows: the notes with it in title, headings or tags.
    weight: how rare it is.
    is_speaker: whether it is somebody's name.
    match: the expression that finds all of these notes.
    spelled: the words that replace it, if no note contains it as written.
    is_weak: whether it spans a stop word, so that it says little and is not shown.
    term: its term in a search for all words.
    others: further forms and spellings that find it in such a search.
    is_beside: whether it is outside the question of a long text.
    """

    text: str
    weight: float
    rows: Sequence[int] = ()
    is_speaker: bool = False
    match: str = ""
    name_rows: Sequence[int] = ()
    spelled: Sequence[str] = ()
    is_weak: bool = False
    term: Term | None = None
    is_open: bool = False
    others: Sequence[str] = ()
    is_beside: bool = False

    @property
    def is_cut(self) -> bool:
        """Whether more notes contain it than were looked at."""
        return len(self.rows) >= MAX_HELD


def forms(word: str) -> tuple[str, ...]:
    """The irregular forms of `word`, itself first: `buy` gives `buy`, `bought`."""
    return (word, *(form for form in _irregular().get(word, ()) if form != word))


def root(word: str) -> str:
    """An English word without its commonest endings."""
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) + len(instead) >= _SHORTEST:
            return word[: -len(ending)] + instead
    return word


def stem(word: str) -> str:
    """The root with doubled letters and a last `y` removed: `planned`, `planning` and `plan` are
    one.
    """
    stem_found = root(word)
    if stem_found != word:
        stem_found = _DOUBLED.sub(r"\1", stem_found)
    if stem_found.endswith("y") and len(stem_found) > 3:
        return stem_found[:-1]
    return stem_found


def inflections(word: str) -> list[str]:
    """The other inflected forms a folded English word may have, real ones and others: of `studies`
    `study`, `studied`, `studying`, also `studie`. Look them up before they are searched."""
    if not _INFLECTED.fullmatch(word) or word in _invariant():
        return list(_irregular().get(word, ()))

    forms_found: dict[str, None] = {}
    for base in (word, *_bases(word)):
        forms_found[base] = None
        forms_found.update(dict.fromkeys(_endings_of(base)))
        irregular = _irregular().get(base, ())
        forms_found.update(dict.fromkeys(irregular))
    forms_found.pop(word, None)
    return [form for form in forms_found if form not in _invariant()]


def _bases(word: str) -> list[str]:
    """The words `word` may be a plural, a past or a participle of."""
    bases: list[str] = []
    if word.endswith("ies") or word.endswith("ied"):
        bases += [f"{word[:-3]}y", word[:-1]]
    elif word.endswith("ves"):
        bases += [f"{word[:-3]}f", f"{word[:-3]}fe", word[:-1]]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        bases.append(word[:-1])
        if word.endswith(("ses", "xes", "zes", "ches", "shes", "oes")):
            bases.append(word[:-2])

    for ending in ("ing", "ed"):
        rest = word.removesuffix(ending)
        if rest == word or not _VOWEL.search(rest):
            continue
        bases.append(f"{rest}e")
        if _DOUBLE.search(rest):
            bases += [rest[:-1], rest]
        elif not _SHORT_SYLLABLE.fullmatch(rest):
            bases.append(rest)
    return [base for base in bases if len(base) >= _SHORTEST]


def _endings_of(base: str) -> list[str]:
    """The regular forms of a noun or a verb."""
    if base.endswith("y") and base[-2:-1] not in tuple("aeiou"):
        return [f"{base[:-1]}ies", f"{base[:-1]}ied", f"{base}ing"]
    if base.endswith("e"):
        return [f"{base}s", f"{base}d", f"{base[:-1]}ing"]
    forms_found = [f"{base}s", f"{base}ed", f"{base}ing"]
    if base.endswith(("s", "x", "z", "ch", "sh", "o")):
        forms_found.append(f"{base}es")
    if _MAY_DOUBLE.search(base):
        forms_found += [f"{base}{base[-1]}ed", f"{base}{base[-1]}ing"]
    if _SHORT_SYLLABLE.fullmatch(base):
        forms_found = [form for form in forms_found if form not in (f"{base}ed", f"{base}ing")]
    return forms_found


@cache
def _invariant() -> frozenset[str]:
    text = Path(__file__).with_name("invariant.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return frozenset(" ".join(lines).split())


def one_edit(word: str) -> list[str]:
    """All words one letter more, less, other or swapped away from `word`; the first letter is
    right.
    """
    edits: dict[str, None] = {}
    for at in range(1, len(word) + 1):
        head = word[:at]
        tail = word[at:]
        edits.update(dict.fromkeys(head + letter + tail for letter in _ALPHABET))
        if tail:
            edits[head + tail[1:]] = None
            edits.update(dict.fromkeys(head + letter + tail[1:] for letter in _ALPHABET))
        if len(tail) > 1:
            edits[head + tail[1] + tail[0] + tail[2:]] = None
    edits.pop(word, None)
    return list(edits)


def inflected(stems: list[str]) -> set[str]:
    """Words that may have one of these Porter stems."""
    forms_found = {stem_word + ending for stem_word, ending in product(stems, _INFLECTIONS)}
    forms_found |= {
        stem_word[:-1] + ending
        for stem_word in stems
        if stem_word.endswith("i")
        for ending in ("y", "ies", "ied")
    }
    forms_found |= {
        stem_word + stem_word[-1] + ending for stem_word in stems for ending in ("ing", "ed")
    }
    return forms_found | {
        stem_word[:-1] + ending
        for stem_word in stems
        if stem_word.endswith("e")
        for ending in ("ing", "ed", "er")
    }


@cache
def _irregular() -> dict[str, tuple[str, ...]]:
    lines = Path(__file__).with_name("forms.txt").read_text(encoding="utf-8").splitlines()
    return {
        word: tuple(line.split())
        for line in lines
        if not line.startswith("#")
        for word in line.split()
    }


class WordFinder:
    """Finds the words of a query in a text.

    The words of a question are found as in the stemmed full-text table. Terms that must all match
    are found as written, or in another form or spelling.
    """

    def __init__(self, words: Sequence[Word]):
        self._runs: list[tuple[str, int]] = []
        self._phrases: list[tuple[re.Pattern[str], bool, int]] = []
        self._stems: list[tuple[set[str], str, int]] = []
        self._split: list[tuple[str, int]] = []
        # A longer text says enough without words written with signs inside
        self._is_short = len(words) <= _FEW_WORDS
        self._stem = str if any(word.term for word in words) else stem
        for at, word in enumerate(words):
            if word.term:
                self._add_spelling(word.term.words, word.is_open, at, word.term.words)
            else:
                spelled = word.spelled or forms(word.text)
                self._add_spelling(tuple(tokens(word.text)), word.is_open, at, spelled)
            for other_form in word.others:
                parts = tuple(tokens(other_form))
                self._add_spelling(parts, False, at, parts)
        all_heads = {
            one_head
            for stems, prefix, _ in self._stems
            for one_head in (*stems, prefix)
            if one_head
        }
        heads = sorted({one_head.removesuffix("y") or one_head for one_head in all_heads})
        # Whatever ending a word has, it begins with its stem, and so with the shortest that another
        # begins with.
        self._heads = [
            head for at, head in enumerate(heads) if not any(map(head.startswith, heads[:at]))
        ]
        self._known: dict[str, tuple[int, int]] = {}

    def _add_spelling(
        self, parts: Sequence[str], is_open: bool, number: int, words: Sequence[str]
    ) -> None:
        """Look for `parts`, the words of one spelling of the query's word `number`."""
        if not parts:
            return
        first = parts[0]
        if len(parts) > 1:
            self._phrases.append((_phrase(parts), is_open, number))
        elif is_cjk(first):
            self._runs.append((first, number))
        elif not all(map(IN_WORD.__getitem__, first)):
            pattern = re.compile(rf"{re.escape(first)}(?![+#])")
            self._phrases.append((pattern, True, number))
        else:
            self._stems.append((set(map(self._stem, words)), "", bits_of(number, EXACT)))
            if is_open:
                self._stems.append((set(), first, bits_of(number, LOOSE)))
            if self._is_short and len(first) >= _SHORTEST and first.isalnum():
                self._split.append((first, number))

    def places(self, text: str) -> list[tuple[int, int, int]]:
        """Where in a text words of the query stand, which, and all their bits."""
        flat, positions = fold_places(text)

        def begins_word(at: int) -> bool:
            if not at or not IN_WORD[flat[at - 1]] or not IN_WORD[flat[at]]:
                return True
            if flat[at].isdigit() != flat[at - 1].isdigit():
                return True
            if positions:
                position = positions[at]
            else:
                position = at
            return text[position].isupper() and text[position - 1].islower()

        places_found = self._places_of_words(flat, begins_word)
        places_found += self._places_of_phrases(flat, begins_word)
        places_found += self._places_of_split_words(flat, places_found)
        if positions is None:
            return places_found
        return [(positions[at], word, bits) for at, word, bits in places_found]

    def _places_of_words(
        self, flat: str, begins_word: Callable[[int], bool]
    ) -> list[tuple[int, int, int]]:
        held_by_letter = self._known
        find = flat.find
        rest = words_of(flat).match
        places_found: list[tuple[int, int, int]] = []
        for head in self._heads:
            at = find(head)
            while at >= 0:
                if begins_word(at):
                    token = rest(flat, at)
                else:
                    token = None
                if token:
                    candidates = held_by_letter.get(token[0])
                    if candidates is None:
                        candidates = held_by_letter[token[0]] = self._matches_of(token[0])
                    if candidates[1]:
                        places_found.append((at, *candidates))
                at = find(head, at + 1)
        for run, word in self._runs:
            at = find(run)
            while at >= 0:
                places_found.append((at, word, bits_of(word, EXACT)))
                at = find(run, at + 1)
        return places_found

    def _places_of_phrases(
        self, flat: str, begins_word: Callable[[int], bool]
    ) -> list[tuple[int, int, int]]:
        places_found: list[tuple[int, int, int]] = []
        for pattern, is_open, word in self._phrases:
            for match in pattern.finditer(flat):
                at, end = match.span()
                is_whole = end == len(flat) or begins_word(end)
                if begins_word(at) and (is_open or is_whole):
                    places_found.append((at, word, bits_of(word, EXACT)))
        return places_found

    def _places_of_split_words(
        self, flat: str, places_found: Sequence[tuple[int, int, int]]
    ) -> list[tuple[int, int, int]]:
        """Words that were not found as such, written with signs inside: `wifi` as `wi-fi`."""
        if "-" not in flat and "'" not in flat:
            return []
        seen_words = {number for _, number, _ in places_found}
        joined = flat.replace("-", "").replace("'", "")
        return [
            (match.start(), number, bits_of(number, EXACT))
            for word, number in self._split
            if number not in seen_words and word in joined
            for match in re.finditer("['-]?".join(word), flat)
        ]

    def _matches_of(self, token: str) -> tuple[int, int]:
        """The last word of the query a word of the text matches, and the bits of all."""
        stemmed = self._stem(token)
        matching = [
            bit
            for stems, prefix, bit in self._stems
            if stemmed in stems or (prefix and token != prefix and token.startswith(prefix))
        ]
        bits = reduce(or_, matching, 0)
        return last_word(bits), bits


def _phrase(parts: Sequence[str]) -> re.Pattern[str]:
    """Matches these words one after the other, whatever signs stand between them."""
    pattern = re.escape(parts[0])
    for before, part in pairwise(parts):
        may_touch = is_cjk(before) or is_cjk(part) or before.isalpha() or part.isalpha()
        pattern += r"[\W_]*" if may_touch else r"[\W_]+"
        pattern += re.escape(part)
    return re.compile(pattern)


def shown_terms(words: Sequence[Word]) -> list[Term]:
    """The terms to look for in a very long text: words without endings, mistyped words as
    respelled.
    """
    terms_found: dict[str, None] = {}
    for word in (term_found for term_found in words if not term_found.is_weak):
        base = root(word.text)
        terms_found.update(
            dict.fromkeys((base if len(base) >= _MIN_ROOT else word.text, *word.spelled))
        )
    return [term_found for text in terms_found if (term_found := term(text))]


def snippet(
    text: str, start: int, stop: int, places: Sequence[Place], weights: Sequence[float]
) -> tuple[str, int]:
    """At most 200 characters of `text[start:stop]`, cut where the words of most weight stand; and
    their line, from 1 in `text`. `places` are in order."""
    if stop - start > SNIPPET:
        inside = [place for place in places if start <= place[0] < stop]
    else:
        inside = []
    if not inside:
        return shortened(text, start, stop)

    def weight(number: int) -> float:
        first = inside[number][0]
        return sum(
            weights[word]
            for word in {word for at, word in inside[number:] if at < first + SNIPPET - 40}
        )

    # A little before the words: the start of their line when that is near, else of a word.
    at = inside[max(range(len(inside)), key=weight)][0]
    begin = text.rfind("\n", start, at) + 1 or start
    if at - begin > 60:
        back = max(start, at - 40)
        begin = text.find(" ", back, at) + 1 or back
    return shortened(text, begin, stop)


def shortened(text: str, begin: int, stop: int) -> tuple[str, int]:
    """At most 200 characters of `text` from `begin` on, up to `stop`; and their line, from 1 in
    `text`.
    """
    end = min(stop, begin + SNIPPET)
    if end < stop and not text[end].isspace():
        blank = max(text.rfind(" ", begin, end), text.rfind("\n", begin, end))
        if blank > begin + SNIPPET * 2 // 3:
            end = blank
    piece = text[begin:end]
    begin += len(piece) - len(piece.lstrip())
    return piece.strip(), text.count("\n", 0, begin) + 1


def nearness(places: Sequence[Place], words: int) -> float:
    """How close words of a query are: 1 if neighbors in the query are side by side, 0 if they are
    far apart.

    words: the number of words in the query, at least two.
    places: the places of the words in order.
    """
    last = [-1] * words
    closest = [_APART * 4] * words
    for at, word in places:
        last[word] = at
        for neighbour in (word - 1, word + 1):
            if 0 <= neighbour < words and last[neighbour] >= 0:
                pair = min(word, neighbour)
                closest[pair] = min(closest[pair], at - last[neighbour])
    return sum(_APART / (_APART + gap) for gap in closest[: words - 1] if gap < _APART * 4) / (
        words - 1
    )
