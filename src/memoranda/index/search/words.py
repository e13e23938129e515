"""Find the words of a query in texts, also in other forms, and cut snippets around them.

`plan` has the other forms `plans` and `planned`, which are made by endings. `buy` has the form
`bought` (forms.txt). A mistyped word is replaced by words that differ from it by one letter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from memoranda.index.search.parse import Term, term
from memoranda.index.search.word_marks import EXACT, IN_TEXT, LOOSE, bits_of, last_word
from memoranda.text.folding import fold_places
from memoranda.text.han import other_forms
from memoranda.text.pattern import lazy_pattern
from memoranda.text.tokens import is_cjk, tokens
from memoranda.text.words import IN_WORD, words_of

MAX_HELD = 1_500
"""If more notes contain a word, only this many of them, the newest, are looked at."""
# (English ending, the letters that replace the ending to get a root)
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
# The last letters of these endings.
_LAST_LETTERS = frozenset(ending[-1] for ending, _ in _ENDINGS)
# A stem has at least this many letters.
_MIN_STEM_LETTERS = 3
# A consonant doubled before an ending: "run" of "running".
_DOUBLED = lazy_pattern(r"([bdfgmnprt])\1$")
_ALPHABET = "abcdefghijklmnopqrstuvwxyz"
# The endings that a Porter stem may have lost.
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
# If a root is shorter, the whole word is looked for instead.
_MIN_ROOT_LETTERS = 4
# Only these words have their endings removed.
_INFLECTED = lazy_pattern("[a-z]{3,30}")
# A stem without a vowel cannot be a word.
_VOWEL = lazy_pattern("[aeiouy]")
# Any doubled consonant at the end.
_DOUBLE = lazy_pattern(r"([b-df-hj-np-tv-z])\1$")
# A verb such as `hop`, which doubles its last letter: `hoping` is not one of its forms.
_SHORT_SYLLABLE = lazy_pattern("[^aeiou]*[aeiouy][^aeiouwxy]")
# An end that doubles its last letter before "-ing" and "-ed".
_MAY_DOUBLE = lazy_pattern("[^aeiou][aeiou][bdfgklmnprtvz]$")
SNIPPET = 200
"""The most characters of a snippet."""

# Words of a query are numbered from 0 in its order. Everything below that is called `word_number`
# is such a number.
Place = tuple[int, int]
"""(offset in a text, number of the word of the query that is there)."""

MarkedPlace = tuple[int, int, int]
"""(offset in a text, number, bits), for the words of the query that match at this offset.

Several words may match at one offset. The number is the number of the last of them. The bits say for
all of them how they match (`word_marks`): `tea` matches exactly at `tea`, and loosely at `teapot`.
"""

# In a query with more words, words written with signs inside (`wi-fi`) are not looked for.
_MAX_SPLIT_WORDS = 32
# Two words this many characters apart have a nearness of one half.
_HALF_NEAR_CHARACTERS = 60
# Words that are four times as far apart have a nearness of 0.
_MAX_NEAR_CHARACTERS = _HALF_NEAR_CHARACTERS * 4
# A snippet begins at the start of its line if that is at most this far before the words.
_MAX_CHARACTERS_BEFORE = 60
# Blanks at the end of a text that are looked past.
_MAX_BLANKS_AT_END = 100
# If the line begins further away, the snippet begins this many characters before the words.
_CHARACTERS_BEFORE = 40


@dataclass(slots=True)
class Word:
    """A word of the query.

    weight: how much the word counts; a rare word counts more.
    rows: the notes that contain the word, a form of it or, if `may_be_longer`, a longer word. Of more
        than MAX_HELD such notes, only the newest. Empty in a search for all words.
    is_speaker: whether the word is the name of a person who says a note.
    match: the FTS5 expression that finds `rows`.
    own_match: the FTS5 expression of the word itself and its forms, without longer words.
    name_rows: the notes with the word in title, headings or tags.
    spelled: the words that replace a mistyped word, which no note contains.
    is_weak: whether the word is a pair across a stop word, which says little and is not shown.
    term: the term in a search for all words. None for a question.
    may_be_longer: whether longer words that begin with the word count.
    other_forms: other forms that count: with another ending (`endings`), and in a search for all
        words also other spellings.
    is_beside: whether the word is outside the question of a long text.
    """

    text: str
    weight: float
    rows: Sequence[int] = ()
    is_speaker: bool = False
    match: str = ""
    own_match: str = ""
    name_rows: Sequence[int] = ()
    spelled: Sequence[str] = ()
    is_weak: bool = False
    term: Term | None = None
    may_be_longer: bool = False
    other_forms: Sequence[str] = ()
    is_beside: bool = False

    @property
    def may_lack_rows(self) -> bool:
        """Whether `rows` may lack notes, because MAX_HELD or more notes contain the word."""
        return len(self.rows) >= MAX_HELD


def forms(word: str) -> tuple[str, ...]:
    """Return a word and its irregular forms: `buy` → `buy`, `bought`."""
    other_forms_of_word = [form for form in _irregular().get(word, ()) if form != word]
    return (word, *other_forms_of_word)


def root(word: str) -> str:
    """Remove the most common English ending from a word: `stories` → `story`, `planned` → `plann`.

    A word that would become too short is returned as it is.
    """
    # Most words have none of these endings.
    if word[-1:] not in _LAST_LETTERS:
        return word
    for ending, replacement in _ENDINGS:
        length = len(word) - len(ending) + len(replacement)
        if word.endswith(ending) and length >= _MIN_STEM_LETTERS:
            return word[: -len(ending)] + replacement
    return word


def stem(word: str) -> str:
    """Return the root without doubled letters and a final `y`: `planned` and `planning` → `plan`."""
    word_stem = root(word)
    if word_stem != word:
        # `planned` has the root `plann`.
        word_stem = _DOUBLED.sub(r"\1", word_stem)
    # `stories` has the root `story`. A short word such as `day` keeps its `y`.
    if word_stem.endswith("y") and len(word_stem) > 3:
        return word_stem[:-1]
    return word_stem


def inflections(word: str) -> list[str]:
    """Return other forms that an English word may have: `studies` → `study`, `studied`, `studying`.

    Some of the forms are not words (`studie`), so the caller must check that notes contain them.

    word: the word, folded (text/folding.py).
    """
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
    """Return base words that `word` may be derived from: `hoped` → `hope`, `leaves` → `leaf`.

    `word` may be a plural, a past tense or a participle. Not all of the results need be words.
    """
    bases: list[str] = []
    if word.endswith(("ies", "ied")):
        # `studies` → `study`, `ties` → `tie`
        bases += [f"{word[:-3]}y", word[:-1]]
    elif word.endswith("ves"):
        # `leaves` → `leaf`, `lives` → `life`, `loves` → `love`
        bases += [f"{word[:-3]}f", f"{word[:-3]}fe", word[:-1]]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        bases.append(word[:-1])
        # `boxes` → `box`
        if word.endswith(("ses", "xes", "zes", "ches", "shes", "oes")):
            bases.append(word[:-2])

    for ending in ("ing", "ed"):
        base = word.removesuffix(ending)
        if base == word or not _VOWEL.search(base):
            continue
        # `hoped` → `hope`
        bases.append(f"{base}e")
        if _DOUBLE.search(base):
            # `planned` → `plan`, `called` → `call`
            bases += [base[:-1], base]
        elif not _SHORT_SYLLABLE.fullmatch(base):
            # `worked` → `work`
            bases.append(base)
    return [base for base in bases if len(base) >= _MIN_STEM_LETTERS]


def _endings_of(base: str) -> list[str]:
    """Return the regular forms of a noun or verb: `plan` → `plans`, `planned`, `planning`."""
    letter_before_last = base[-2:-1]
    ends_in_vowel_and_y = letter_before_last != "" and letter_before_last in "aeiou"
    if base.endswith("y") and not ends_in_vowel_and_y:
        # `studies`, but `plays`
        return [f"{base[:-1]}ies", f"{base[:-1]}ied", f"{base}ing"]
    if base.endswith("e"):
        # `hopes`, `hoped`, `hoping`
        return [f"{base}s", f"{base}d", f"{base[:-1]}ing"]
    forms_found = [f"{base}s"]
    # `hop` has only `hopped` and `hopping`, since `hoped` is a form of `hope`.
    if not _SHORT_SYLLABLE.fullmatch(base):
        forms_found += [f"{base}ed", f"{base}ing"]
    if base.endswith(("s", "x", "z", "ch", "sh", "o")):
        forms_found.append(f"{base}es")
    if _MAY_DOUBLE.search(base):
        forms_found += [f"{base}{base[-1]}ed", f"{base}{base[-1]}ing"]
    return forms_found


@cache
def _invariant() -> frozenset[str]:
    """Return the words that have no other forms, from invariant.txt."""
    text = Path(__file__).with_name("invariant.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return frozenset(" ".join(lines).split())


def one_edit(word: str) -> list[str]:
    """Return all words that differ from `word` by one letter added, removed, changed or swapped.

    The first letter stays. For `plan`, the result has `plane`, `pln`, `plam` and `paln`.
    """
    edits: dict[str, None] = {}
    for position in range(1, len(word) + 1):
        head = word[:position]
        tail = word[position:]
        # A letter added.
        edits.update(dict.fromkeys(head + letter + tail for letter in _ALPHABET))
        # The next letter removed, and changed.
        if tail:
            edits[head + tail[1:]] = None
            edits.update(dict.fromkeys(head + letter + tail[1:] for letter in _ALPHABET))
        # The next two letters swapped.
        if len(tail) > 1:
            edits[head + tail[1] + tail[0] + tail[2:]] = None
    edits.pop(word, None)
    return list(edits)


def inflected(stems: list[str]) -> set[str]:
    """Return words that may have one of these Porter stems: `studi` → `study`, `studies`, …

    A Porter stem is a word without its English endings.
    """
    words: set[str] = set()
    for porter_stem in stems:
        # `plan` → `plans`
        words.update([porter_stem + ending for ending in _INFLECTIONS])
        # A doubled letter: `run` → `running`
        last_letter = porter_stem[-1]
        words |= {f"{porter_stem}{last_letter}ing", f"{porter_stem}{last_letter}ed"}
        base = porter_stem[:-1]
        if last_letter == "i":
            # `studi` → `study`, `studies`, `studied`
            words |= {f"{base}y", f"{base}ies", f"{base}ied"}
        elif last_letter == "e":
            # `hope` → `hoping`, `hoped`, `hoper`
            words |= {f"{base}ing", f"{base}ed", f"{base}er"}
    return words


@cache
def _irregular() -> dict[str, tuple[str, ...]]:
    """Return all forms of each irregular word, from forms.txt: a line there has one word's forms."""
    lines = Path(__file__).with_name("forms.txt").read_text(encoding="utf-8").splitlines()
    forms_by_word: dict[str, tuple[str, ...]] = {}
    for line in lines:
        if not line.startswith("#"):
            forms_of_word = tuple(line.split())
            forms_by_word.update(dict.fromkeys(forms_of_word, forms_of_word))
    return forms_by_word


class _Run(NamedTuple):
    """A run of Chinese or Japanese letters, for the word of the query with this number."""

    letters: str
    word_number: int


class _PhrasePattern(NamedTuple):
    """A pattern for several words, or for a word with signs.

    may_be_longer: whether the last word may be the beginning of a longer one.
    word_number: the number of the word in the query.
    """

    pattern: re.Pattern[str]
    may_be_longer: bool
    word_number: int


class _StemMatch(NamedTuple):
    """A word of the query, to be compared with single words of a text.

    A word of the text matches if its stem is among `stems`, or if it is longer than `prefix` and
    begins with it. A prefix of "" matches nothing.

    bits: the mark of the word if it matches (`word_marks`).
    """

    stems: set[str]
    prefix: str
    bits: int


class _Head(NamedTuple):
    """The letters with which words begin that may match.

    bits: the words of the query that they may match, each with the marks of both ways.
    """

    letters: str
    bits: int


class _SplitWord(NamedTuple):
    """A word that may be written with signs inside: `wifi` as `wi-fi`.

    word_number: its number in the query.
    """

    word: str
    word_number: int


class WordFinder:
    """Finds the words of a query in a text. The words are numbered as in the query, from 0.

    The words of a question are found by their stem, as in the stemmed full-text table. In a search
    for all words, terms are found as written and in their other forms (`Word.other_forms`).
    """

    def __init__(self, words: Sequence[Word]):
        # The spellings of all words, by the way in which they are found (`_add_spelling`).
        self._runs: list[_Run] = []
        self._phrases: list[_PhrasePattern] = []
        self._stems: list[_StemMatch] = []
        self._split: list[_SplitWord] = []
        # Words with signs inside are looked for only in a short query.
        self._may_split = len(words) <= _MAX_SPLIT_WORDS
        # Turns a word of the text into the form that is compared with `_stems`: in a search for all
        # words the word itself, for a question its stem.
        self._stem = str if any(word.term for word in words) else stem
        for word_number, word in enumerate(words):
            if word.term:
                # A search for all words: the term as it was typed.
                parts = word.term.words
                self._add_spelling(parts, word.may_be_longer, word_number, forms_of_part=parts)
            else:
                # A question: the word in its irregular forms, or corrected, or in other characters.
                parts = tuple(tokens(word.text))
                known_forms = word.spelled or forms(word.text)
                self._add_spelling(parts, word.may_be_longer, word_number, known_forms)
                for han_form in other_forms(word.text):
                    self._add_spelling((han_form,), False, word_number, forms_of_part=())
            for other_form in word.other_forms:
                parts = tuple(tokens(other_form))
                self._add_spelling(parts, False, word_number, forms_of_part=parts)
        self._heads = self._heads_of_matches()
        # A cache: a word of a text -> the result of `_matches_of` for it.
        self._known_matches: dict[str, tuple[int, int]] = {}

    def _heads_of_matches(self) -> list[_Head]:
        """Return beginnings of words to look for in a text, as few as possible.

        Each word of a text that one of `_stems` matches begins with one of them. The stems `plan` and
        `story` with the prefix `plann` give `plan` and `stor`.
        """
        bits_by_head: dict[str, int] = {}
        for stems, prefix, word_bits in self._stems:
            bits = bits_of(last_word(word_bits), IN_TEXT)
            for known in (*stems, prefix):
                # A final `y` may be written `ies`, so heads leave it out.
                head = known.removesuffix("y") or known
                bits_by_head[head] = bits_by_head.get(head, 0) | bits
        # The prefix "" matches nothing.
        bits_by_head.pop("", None)
        heads: list[_Head] = []
        for head, bits in sorted(bits_by_head.items()):
            # A head that begins with another head is not needed: where it occurs, the shorter head
            # occurs, too. Sorted, it follows that one or others that begin so.
            if heads and head.startswith(heads[-1].letters):
                heads[-1] = _Head(heads[-1].letters, heads[-1].bits | bits)
            else:
                heads.append(_Head(head, bits))
        return heads

    def _add_spelling(
        self,
        parts: Sequence[str],
        may_be_longer: bool,
        word_number: int,
        forms_of_part: Sequence[str],
    ) -> None:
        """Add one spelling of a query word to the list whose way of searching finds it.

        There is one list for each way:
        - `_phrases`, by patterns: several words (`time zone`), and words with signs (`c++`).
        - `_runs`, as parts of a text: Chinese and Japanese.
        - `_stems`, word by word: any other single word.
        - `_split`, by slow patterns: such a word again, for texts that write `wifi` as `wi-fi`.

        parts: the words of the spelling. If it is empty, nothing is added.
        may_be_longer: whether longer words that begin with it count, too.
        word_number: the number of the word in the query.
        forms_of_part: if `parts` is a single word, all forms of it that count, with itself.
        """
        if not parts:
            return
        if len(parts) > 1:
            pattern = self._phrase(parts)
            self._phrases.append(_PhrasePattern(pattern, may_be_longer, word_number))
            return

        word = parts[0]
        if is_cjk(word):
            self._runs.append(_Run(word, word_number))
            return
        has_only_letters_and_digits = all(IN_WORD[character] for character in word)
        if not has_only_letters_and_digits:
            # `c+` is not found in `c++`.
            pattern = re.compile(rf"{re.escape(word)}(?![+#])")
            self._phrases.append(_PhrasePattern(pattern, True, word_number))
            return

        stems = {self._stem(form) for form in forms_of_part}
        self._stems.append(_StemMatch(stems, prefix="", bits=bits_of(word_number, EXACT)))
        if may_be_longer:
            self._stems.append(_StemMatch(set(), prefix=word, bits=bits_of(word_number, LOOSE)))
        # A shorter word would be found in too many places, such as `a-t` for `at`.
        if self._may_split and len(word) >= _MIN_STEM_LETTERS and word.isalnum():
            self._split.append(_SplitWord(word, word_number))

    @staticmethod
    def _phrase(parts: Sequence[str]) -> re.Pattern[str]:
        """Return a pattern for these words one after the other, with any signs between them.

        `time`, `zone` → a pattern that finds `time zone`, `time-zone` and `timezone`. Two numbers need
        at least one sign between them: `1`, `10` must not find `110`.
        """
        pattern = re.escape(parts[0])
        for before, part in pairwise(parts):
            pattern += _gap(before, part) + re.escape(part)
        return re.compile(pattern)

    def places(self, text: str, bits: int | None = None) -> list[MarkedPlace]:
        """Return where a text has words of the query, in no particular order.

        bits: the words of the query that the text may have, as a bit mask (word_marks.py). The
            others are not looked for. None if the text may have all.
        """
        # Words are looked for in the folded text, in which `ﬁx` is `fix`. Folding may move a
        # character: `offsets` has the offset in `text` of each character of `folded_text`. It is
        # None if folding moved none.
        folded_text, offsets = fold_places(text)
        begins_word = _word_start_test(text, folded_text, offsets)
        places_found = self._places_of_words(folded_text, begins_word, bits)
        places_found += self._places_of_runs(folded_text)
        places_found += self._places_of_phrases(folded_text, begins_word)
        places_found += self._places_of_split_words(folded_text, places_found)
        if offsets is None:
            return places_found
        return [(offsets[offset], number, marks) for offset, number, marks in places_found]

    def _places_of_words(
        self, folded_text: str, begins_word: Callable[[int], bool], bits: int | None
    ) -> list[MarkedPlace]:
        """Find single words by their stems and prefixes.

        A head (`self._heads`) is the beginning of the words that may match: `plan` of `planning`.

        bits: the words that may be found (see `places`).

        folded_text: the text. The offsets in the result are offsets in it.
        begins_word: whether a word begins at an offset of `folded_text`.
        """
        known_matches = self._known_matches
        find = folded_text.find
        match_word = words_of(folded_text).match
        places_found: list[MarkedPlace] = []
        # `str.find` jumps from one beginning of a word that may match to the next, which is faster
        # than to look at all words of a text.
        for head, bits_of_head in self._heads:
            if bits is not None and not bits & bits_of_head:
                continue
            offset = find(head)
            while offset >= 0:
                # Inside a word, the head begins nothing: `plan` in `explanation`. Otherwise, `match`
                # is the whole word that begins here.
                match = match_word(folded_text, offset) if begins_word(offset) else None
                if match:
                    word = match[0]
                    if word not in known_matches:
                        known_matches[word] = self._matches_of(word)
                    word_number, word_bits = known_matches[word]
                    if word_bits:
                        places_found.append((offset, word_number, word_bits))
                offset = find(head, offset + 1)
        return places_found

    def _places_of_runs(self, folded_text: str) -> list[MarkedPlace]:
        """Find runs of Chinese and Japanese, which may be inside longer runs.

        folded_text: the text. The offsets in the result are offsets in it.
        """
        places_found: list[MarkedPlace] = []
        for run, word_number in self._runs:
            offset = folded_text.find(run)
            while offset >= 0:
                places_found.append((offset, word_number, bits_of(word_number, EXACT)))
                offset = folded_text.find(run, offset + 1)
        return places_found

    def _places_of_phrases(
        self, folded_text: str, begins_word: Callable[[int], bool]
    ) -> list[MarkedPlace]:
        """Find the spellings of several words, such as `time zone`, and words with signs (`c++`).

        folded_text: the text. The offsets in the result are offsets in it.
        begins_word: whether a word begins at an offset of `folded_text`.
        """
        places_found: list[MarkedPlace] = []
        for pattern, may_be_longer, word_number in self._phrases:
            for match in pattern.finditer(folded_text):
                start, end = match.span()
                # The match ends with a whole word if another word begins right behind it.
                ends_with_word = end == len(folded_text) or begins_word(end)
                if begins_word(start) and (may_be_longer or ends_with_word):
                    places_found.append((start, word_number, bits_of(word_number, EXACT)))
        return places_found

    def _places_of_split_words(
        self, folded_text: str, places_found: Sequence[MarkedPlace]
    ) -> list[MarkedPlace]:
        """Find words that are written with hyphens or apostrophes inside: `wifi` as `wi-fi`.

        folded_text: the text. The offsets in the result are offsets in it.
        places_found: the places that were found before. Their words are not looked for.
        """
        if "-" not in folded_text and "'" not in folded_text:
            return []
        numbers_found = {word_number for _, word_number, _ in places_found}
        without_signs = folded_text.replace("-", "").replace("'", "")
        further_places: list[MarkedPlace] = []
        for word, word_number in self._split:
            # A pattern is slow, so first look whether the text has the word at all.
            if word_number in numbers_found or word not in without_signs:
                continue
            # `wifi` → `w['-]?i['-]?f['-]?i`
            pattern = "['-]?".join(word)
            for match in re.finditer(pattern, folded_text):
                place = (match.start(), word_number, bits_of(word_number, EXACT))
                further_places.append(place)
        return further_places

    def _matches_of(self, token: str) -> tuple[int, int]:
        """Return the words of the query that a word of the text matches.

        The result is (number of the last matching word, bits of all matching words). The bits are
        0 if no word matches.

        token: a folded word of the text.
        """
        token_stem = self._stem(token)
        bits = 0
        for stems, prefix, word_bits in self._stems:
            # A prefix of "" matches nothing.
            is_longer = prefix != "" and token != prefix and token.startswith(prefix)
            if token_stem in stems or is_longer:
                bits |= word_bits
        return last_word(bits), bits


def _word_start_test(
    text: str, folded_text: str, offsets: Sequence[int] | None
) -> Callable[[int], bool]:
    """Return a function that says whether a word begins at an offset of a folded text.

    Words begin after a blank or a sign, and also inside `getUser` (at `User`) and `v2` (at `2`).

    text: the text before folding, whose capitals show where the words in `getUser` begin.
    folded_text: the same text after folding.
    offsets: the offset in `text` of each character of `folded_text`. None if they are the same.
    """

    def begins_word(offset: int) -> bool:
        if offset == 0:
            return True
        character = folded_text[offset]
        character_before = folded_text[offset - 1]
        # A sign is a word of its own, and ends the word before it.
        if not IN_WORD[character_before] or not IN_WORD[character]:
            return True
        if character.isdigit() != character_before.isdigit():
            return True
        offset_in_text = offsets[offset] if offsets else offset
        return text[offset_in_text].isupper() and text[offset_in_text - 1].islower()

    return begins_word


def _gap(before: str, part: str) -> str:
    """Return a pattern for the signs and blanks that may be between two words of a phrase.

    Between two numbers there must be one, otherwise there may be none.

    before: the first of the two words.
    part: the second word.
    """
    # Any number of signs. With `*+`, the pattern gives none of them back to try the rest again.
    signs = r"[\W_]*+"
    if not part[0].isalnum():
        # The second word is itself a sign, such as an emoji, so the gap ends where it begins. If the
        # gap could take it, too, a phrase of twenty emojis would be tried in endless combinations.
        signs = rf"(?:(?!{re.escape(part)})[\W_])*+"
    # Beside a word of letters, no sign is needed: `timezone`. `is_cjk` is asked, too, since for
    # Python the Chinese zero is no letter, as in 二〇二四.
    if any(word.isalpha() or is_cjk(word) for word in (before, part)):
        return signs
    # Between two numbers, at least one sign is needed: `1`, `10` must not find `110`.
    if before[-1].isalnum() and part[0].isalnum():
        return rf"[\W_]{signs}"
    return signs


def shown_terms(words: Sequence[Word]) -> list[Term]:
    """Return the terms to look for in a very long text: the roots of words, and respelled words.

    `planning` is looked for as `plann`, which finds its other forms, too. A word whose root has fewer
    than _MIN_ROOT_LETTERS letters is looked for as it is. Weak words are left out.
    """
    # A dict keeps the order of the words, and each text once.
    texts: dict[str, None] = {}
    for word in words:
        if word.is_weak:
            continue
        text = root(word.text)
        if len(text) < _MIN_ROOT_LETTERS:
            text = word.text
        texts.update(dict.fromkeys((text, *word.spelled)))
    terms = [term(text) for text in texts]
    return [shown_term for shown_term in terms if shown_term is not None]


def snippet(
    text: str, start: int, stop: int, places: Sequence[Place], weights: Sequence[float]
) -> tuple[str, int]:
    """Cut up to 200 characters from `text[start:stop]`, around the words with most weight.

    Return the snippet, and its line in `text`, from 1.

    places: the places of words in the text, in order.
    weights: the weight of each word of the query.
    """
    # A short text is shown from its beginning.
    if stop - start <= SNIPPET:
        return shortened(text, start, stop)
    places_inside = [place for place in places if start <= place[0] < stop]
    if not places_inside:
        return shortened(text, start, stop)

    # Of the snippets that begin at a place, take the one whose words weigh most.
    weights_of_snippets = [
        _weight_from(places_inside[first:], weights) for first in range(len(places_inside))
    ]
    best = weights_of_snippets.index(max(weights_of_snippets))
    offset_of_word, _ = places_inside[best]

    # Begin at the start of the line if it is near, otherwise at the start of a word.
    # `rfind` and `find` return -1 if there is nothing. One more is 0, so `or` takes what follows.
    begin = text.rfind("\n", start, offset_of_word) + 1 or start
    if offset_of_word - begin > _MAX_CHARACTERS_BEFORE:
        earliest = max(start, offset_of_word - _CHARACTERS_BEFORE)
        begin = text.find(" ", earliest, offset_of_word) + 1 or earliest
    return shortened(text, begin, stop)


def _weight_from(places: Sequence[Place], weights: Sequence[float]) -> float:
    """Return the weight of all words in a snippet that begins shortly before the first place.

    A word that occurs several times counts once.

    places: the places of words from there on, in order.
    weights: the weight of each word of the query.
    """
    first_offset, _ = places[0]
    # The snippet begins up to _CHARACTERS_BEFORE before the first word.
    end = first_offset + SNIPPET - _CHARACTERS_BEFORE
    numbers_in_snippet = {word_number for offset, word_number in places if offset < end}
    return sum([weights[word_number] for word_number in numbers_in_snippet])


def shortened(text: str, begin: int, stop: int) -> tuple[str, int]:
    """Cut up to 200 characters from `text[begin:stop]`, if possible at the end of a word.

    Return the snippet, and its line in `text`, from 1.
    """
    end = min(stop, begin + SNIPPET)
    is_inside_word = end < stop and not text[end].isspace()
    if is_inside_word:
        last_blank = max(text.rfind(" ", begin, end), text.rfind("\n", begin, end))
        # A very long word is cut, rather than showing next to nothing.
        if last_blank > begin + SNIPPET * 2 // 3:
            end = last_blank
    piece = text[begin:end]
    # Count lines up to the first character that is not a blank.
    begin += len(piece) - len(piece.lstrip())
    return piece.strip(), text.count("\n", 0, begin) + 1


def goes_on_after(text: str, snippet: str) -> bool:
    """Whether a text has more words behind a snippet of it, which `shortened` cut from it."""
    # The end of the text, long enough for the snippet and for blanks behind it.
    end = text[-len(snippet) - _MAX_BLANKS_AT_END :].rstrip()
    return not end.endswith(snippet)


def nearness(places: Sequence[Place], words: int) -> float:
    """Return how close the words of a query are in a text, from 0 to 1.

    1 means that all words that are neighbors in the query touch each other in the text. 0 means
    that all of them are at least _MAX_NEAR_CHARACTERS apart, or that they do not occur.

    places: the places of the words in order.
    words: the number of words in the query, at least two.
    """
    # The last offset of each word so far, by its number. -1 if it did not occur yet.
    last_offsets = [-1] * words
    # `gaps[n]` is the smallest distance so far between the words n and n + 1 of the query. So the
    # query has one gap less than words.
    gaps = [_MAX_NEAR_CHARACTERS] * (words - 1)
    for offset, word_number in places:
        last_offsets[word_number] = offset
        # The words before and after it in the query may have occurred earlier in the text.
        for neighbor in (word_number - 1, word_number + 1):
            has_occurred = 0 <= neighbor < words and last_offsets[neighbor] >= 0
            if has_occurred:
                pair = min(word_number, neighbor)
                gaps[pair] = min(gaps[pair], offset - last_offsets[neighbor])
    # Words that touch count 1, words _HALF_NEAR_CHARACTERS apart count a half.
    nearness_of_pairs = [
        _HALF_NEAR_CHARACTERS / (_HALF_NEAR_CHARACTERS + gap)
        for gap in gaps
        if gap < _MAX_NEAR_CHARACTERS
    ]
    return sum(nearness_of_pairs) / (words - 1)
