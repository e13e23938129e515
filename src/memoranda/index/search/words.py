"""Words of a query in texts: their forms (irregular ones from a data file, English stems, one edit
away), where they stand, and the snippet cut around them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, reduce
from itertools import pairwise
from operator import or_
from pathlib import Path

from memoranda.index.search.parse import Term, term
from memoranda.text.tokens import IN_WORD, flatten, is_cjk, one_word

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
_SHORTEST = 3
_DOUBLED = re.compile(r"([bdfgmnprt])\1$")
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
_MIN_ROOT = 4
SNIPPET = 200
"""The most characters of a snippet."""

Place = tuple[int, int]
"""Where in a text a word of the query stands, and its number."""

_APART = 60
"""Characters between two words at which their nearness is a half."""


@dataclass(slots=True)
class Word:
    """A word of the query.

    `rows`: the notes that contain it or a form of it, or, where none does, a longer word it begins
    (`is_open`);
    `name_rows`: those with it in title, headings or tags. `weight`: how rare it is. `is_speaker`:
    somebody has this
    name. `match` finds all of these notes. `spelled`: what replaces it where no note contains it as
    written.
    `is_weak`: it lies across a stop word, so it says little and nobody is told of it. `term`: what
    it is in a search
    for all words.
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

    @property
    def is_cut(self) -> bool:
        """Whether more notes contain it than were looked at."""
        return len(self.rows) >= MAX_HELD


def forms(word: str) -> tuple[str, ...]:
    """The irregular forms of `word`, itself first: `buy` gives `buy`, `bought`."""
    return (word, *(one for one in _irregular().get(word, ()) if one != word))


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
    found = root(word)
    if found == word:
        found = found
    else:
        found = _DOUBLED.sub(r"\1", found)
    if found.endswith("y") and len(found) > 3:
        return found[:-1]
    return found


def one_edit(word: str) -> list[str]:
    """All words one letter more, less, other or swapped away from `word`; the first letter is
    right.
    """
    found: dict[str, None] = {}
    for at in range(1, len(word) + 1):
        head = word[:at]
        tail = word[at:]
        found.update(dict.fromkeys(head + letter + tail for letter in _ALPHABET))
        if tail:
            found[head + tail[1:]] = None
            found.update(dict.fromkeys(head + letter + tail[1:] for letter in _ALPHABET))
        if len(tail) > 1:
            found[head + tail[1] + tail[0] + tail[2:]] = None
    found.pop(word, None)
    return list(found)


def inflected(stems: list[str]) -> set[str]:
    """Words that may have one of these Porter stems."""
    found = {one + ending for one in stems for ending in _INFLECTIONS}
    found |= {
        one[:-1] + ending for one in stems if one.endswith("i") for ending in ("y", "ies", "ied")
    }
    found |= {one + one[-1] + ending for one in stems for ending in ("ing", "ed")}
    return found | {
        one[:-1] + ending for one in stems if one.endswith("e") for ending in ("ing", "ed", "er")
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
    """Finds the words of a query in a text: those of a question as the stemmed full-text table
    would, terms that must all match as they are written."""

    def __init__(self, words: Sequence[Word]):
        self._runs: list[tuple[str, int]] = []
        self._phrases: list[tuple[re.Pattern[str], bool, int]] = []
        self._stems: list[tuple[set[str], str, int]] = []
        self._stem = str if any(word.term for word in words) else stem
        for at, word in enumerate(words):
            if word.term:
                parts = word.term.words
            else:
                parts = (flatten(word.text),)
            # A phrase, whatever signs stand between its words
            if len(parts) > 1:
                pattern = re.escape(parts[0])
                for before, part in pairwise(parts):
                    pattern += r"[\W_]*" if is_cjk(before) or is_cjk(part) else r"[\W_]+"
                    pattern += re.escape(part)
                self._phrases.append((re.compile(pattern), word.is_open, at))
            elif is_cjk(parts[0]):
                self._runs.append((parts[0], at))
            else:
                own = parts if word.term else word.spelled or forms(parts[0])
                self._stems.append((set(map(self._stem, own)), "", 1 << 3 * at))
                if word.is_open:
                    self._stems.append((set(), parts[0], 2 << 3 * at))
        every = {one for stems, prefix, _ in self._stems for one in (*stems, prefix) if one}
        heads = sorted({one.removesuffix("y") or one for one in every})
        # Whatever ending a word has, it begins with its stem, and so with the shortest that another
        # begins with.
        self._heads = [
            head for at, head in enumerate(heads) if not any(map(head.startswith, heads[:at]))
        ]
        self._known: dict[str, tuple[int, int]] = {}

    def places(self, flat: str) -> list[tuple[int, int, int]]:
        """Where in a folded text words of the query stand, which, and all their bits."""
        known = self._known
        find = flat.find
        rest = one_word().match
        found: list[tuple[int, int, int]] = []
        for head in self._heads:
            at = find(head)
            while at >= 0:
                if not at or not IN_WORD[flat[at - 1]]:
                    token = rest(flat, at)[0]  # type: ignore[index]  # a head begins with a letter or a digit
                    held = known.get(token)
                    if held is None:
                        held = known[token] = self._held(token)
                    if held[1]:
                        found.append((at, *held))
                at = find(head, at + 1)
        for run, word in self._runs:
            at = find(run)
            while at >= 0:
                found.append((at, word, 1 << 3 * word))
                at = find(run, at + 1)
        for pattern, is_open, word in self._phrases:
            for match in pattern.finditer(flat):
                at, end = match.span()
                if at and IN_WORD[flat[at]] and IN_WORD[flat[at - 1]]:
                    continue
                if (
                    is_open
                    or end == len(flat)
                    or not (IN_WORD[flat[end - 1]] and IN_WORD[flat[end]])
                ):
                    found.append((at, word, 1 << 3 * word))
        return found

    def _held(self, token: str) -> tuple[int, int]:
        """The last word of the query a word of the text stands for, and the bits of all."""
        found = self._stem(token)
        each = [
            bit
            for stems, prefix, bit in self._stems
            if found in stems or (prefix and token != prefix and token.startswith(prefix))
        ]
        bits = reduce(or_, each, 0)
        return (bits.bit_length() - 1) // 3, bits


def shown_terms(words: Sequence[Word]) -> list[Term]:
    """What to look for in a very long text: words without their endings, mistyped ones as they are
    spelled.
    """
    found: dict[str, None] = {}
    for word in (one for one in words if not one.is_weak):
        base = root(word.text)
        found.update(dict.fromkeys((base if len(base) >= _MIN_ROOT else word.text, *word.spelled)))
    return [one for text in found if (one := term(text))]


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
    """1 when words that are neighbors in a query of so many `words`, at least two, stand side by
    side, 0 when far apart. `places` are in order."""
    last = [-1] * words
    closest = [_APART * 4] * words
    for at, word in places:
        last[word] = at
        for other in (word - 1, word + 1):
            if 0 <= other < words and last[other] >= 0:
                pair = min(word, other)
                closest[pair] = min(closest[pair], at - last[other])
    return sum(_APART / (_APART + gap) for gap in closest[: words - 1] if gap < _APART * 4) / (
        words - 1
    )
