"""Score how like a planted order a text is, by the roles of its words (docs/gate.md).

A role is a kind of word that orders and ordinary notes use to a different extent, such as words for
the reader (`agent`), for a check (`control`) or for switching off (`disable`). roles.txt lists the
words of each role by language. role-weights.txt says how much each role, each negated role and each
pair of roles speaks for a planted order; `tools/fit_likeness.py` makes it.

A text is looked at in windows of whole sentences, or of pieces of long ones. The sum of the weights
in a window is its score.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, reduce
from itertools import chain
from math import inf
from operator import or_
from pathlib import Path
from typing import NamedTuple

from memoranda.text.disguise import look_alike, look_alikes
from memoranda.text.pattern import lazy_pattern

WINDOW = 30
"""Words of a window, at most."""
# Words of the pieces into which a longer sentence is cut. Each window has two of them.
_PIECE = 15
# Words before and behind a match that are scored with it, at most.
_AROUND = 8
# Words after a negation that it negates.
_NEGATED = 3
# Words whose roles are kept, and the characters of a word that is worth keeping, at most.
_MOST_KNOWN = 8_000
_LONG = 40
# Letters of Chinese or Japanese that count as a word.
_LETTERS_OF_A_WORD = 2
_SHORTEST_STEM = 2
# One character more than the shortest stem has
_BEGINNING = 3
# From so many words on, those without a role are sorted out all at once.
_MANY_WORDS = 2_000
_NEGATIONS = ("neg", "without", "noneed")
# Languages that share the Latin alphabet. Only words of one of them count in a text.
_LATIN = ("en", "de", "fr", "es", "pt", "it", "nl", "pl", "tr", "sv")
# Languages whose words are told by their letters, and signs that belong to every language.
_SHARED = ("ru", "ko", "any")
# Bits for the roles of a word in one language. Those of all languages are in one number.
_ROLE_BITS = 64
_ROLES_OF_A_LANGUAGE = (1 << _ROLE_BITS) - 1
_SHIFTS = {language: _ROLE_BITS * place for place, language in enumerate(_LATIN + _SHARED)}
# Bits in which the words of a language are counted. The counts of all languages are in one number.
_COUNT_BITS = 20
_COUNTS_OF_A_LANGUAGE = (1 << _COUNT_BITS) - 1
# Sums of weights are kept for this many roles at a time.
_CHUNK_BITS = 12
_CHUNK = (1 << _CHUNK_BITS) - 1
_IDEOGRAPHS = lazy_pattern("[\u3040-\u30ff\u3400-\u9fff]")
_KANA = lazy_pattern("[\u3040-\u30ff]")


class _Word(NamedTuple):
    """The roles of a word, as bits.

    roles: its roles in each of `_LATIN`, with those in `_SHARED` and in Chinese and Japanese.
    negated: the roles that are negated within it, which only a run of Chinese or Japanese has.
    counts: 1 for each of `_LATIN` that has the word, _COUNT_BITS apart.
    """

    roles: tuple[int, ...]
    negated: int
    counts: int


class _Phrase(NamedTuple):
    """An entry of several words, without its first word. The last word may be only a stem."""

    rest: tuple[str, ...]
    is_stem: bool
    language: int
    role: int


_OF_NO_ROLE = _Word((0,) * len(_LATIN), 0, 0)


class Window(NamedTuple):
    """Whole sentences next to each other, and the roles of their words as bits.

    first, last: the numbers of its first and its last sentence.
    may_have: all roles that its words have in any language, alone or as the first of several words.
    """

    first: int
    last: int
    may_have: int


class WindowRoles(NamedTuple):
    """The roles of the words of a window and the negated ones, as bits.

    A role is negated in `do not delete`, where a negation is shortly before its word.
    """

    roles: int
    negated: int


class _KnownRoles(dict[str, int]):
    """A cache of the roles that words may have. It is emptied when it has _MOST_KNOWN words."""

    def __init__(self, look_up: Callable[[str], int]):
        super().__init__()
        self._look_up = look_up

    def __missing__(self, word: str) -> int:
        bits = self._look_up(word)
        if len(self) >= _MOST_KNOWN:
            self.clear()
        if len(word) < _LONG:
            self[word] = bits
        return bits


class _RunEntries:
    """The Chinese and Japanese entries of roles.txt, found anywhere in a run of such letters."""

    def __init__(self) -> None:
        # Language -> entry -> its roles, as bits
        self._roles: dict[str, dict[str, int]] = {"zh": {}, "ja": {}}

    def add(self, language: str, entry: str, role: int) -> None:
        """Add an entry of a role. The role is given as its bit."""
        roles = self._roles[language]
        roles[entry] = roles.get(entry, 0) | role

    @cached_property
    def _lengths(self) -> dict[str, list[int]]:
        """The lengths of the entries by their first letter, the longest first."""
        lengths: dict[str, list[int]] = {}
        for entry in sorted(self._roles["zh"] | self._roles["ja"], key=len, reverse=True):
            lengths_of_letter = lengths.setdefault(entry[0], [])
            if len(entry) not in lengths_of_letter:
                lengths_of_letter.append(len(entry))
        return lengths

    @cached_property
    def _first_letter(self) -> re.Pattern[str]:
        """Matches a letter with which an entry may begin."""
        return re.compile(f"[{''.join(map(re.escape, self._lengths))}]")

    def roles_in(self, run: str) -> Iterator[tuple[int, int]]:
        """Yield (position, roles as bits) of each entry in a run of letters.

        Of entries that begin at the same letter only the longest counts. The next entry may begin
        with its last letter.
        """
        roles = self._roles["ja" if _KANA.search(run) else "zh"]
        next_start = 0
        for match in self._first_letter.finditer(run):
            start = match.start()
            if start < next_start:
                continue
            for length in self._lengths[run[start]]:
                bits = roles.get(run[start : start + length])
                if bits:
                    yield start, bits
                    next_start = start + length - 1
                    break


class Roles:
    """The words of roles.txt.

    names: the names of the roles. The bit of a role is its place in this list.
    """

    def __init__(self, text: str):
        self.names: list[str] = []
        # Words, and beginnings of words -> their roles in all languages, as `_bits` returns them
        self._exact: dict[str, int] = {}
        self._stems: dict[str, int] = {}
        # The lengths of stems by their first characters, so that only beginnings of these lengths
        # are looked up
        self._stem_lengths: dict[str, set[int]] = {}
        # By these characters very many words are sorted out that begin as no stem does
        self._beginnings: set[str] = set()
        self._runs = _RunEntries()
        # The entries of several words by their first words. Few are ever looked up, and only those
        # become phrases (`_phrases`).
        self._longer_entries: dict[str, list[tuple[str, str, int]]] = {}
        self._phrases: dict[str, list[_Phrase]] = {}
        # Caches of words that were looked up: what they are, and their roles in any language
        self._known: dict[str, _Word] = {}
        self._roles_of = _KnownRoles(self._roles_in_any_language)
        self._read(text)
        self._negations = sum(1 << self.names.index(name) for name in _NEGATIONS)

    def _read(self, text: str) -> None:
        """Read roles.txt, whose lines are `[role]` and `language: entries`."""
        for line in text.splitlines():
            if line.startswith("["):
                self.names.append(line.strip("[]"))
            elif line and line[0] != "#":
                language, _, entries = line.partition(": ")
                self._add(language, entries.split())

    def _add(self, language: str, entries: list[str]) -> None:
        """Add the entries of the last role in one language.

        `agent` is a word, `delet*` a stem, `get_rid_of` an entry of several words. Chinese and
        Japanese entries are parts of runs.
        """
        role = 1 << (len(self.names) - 1)
        if language not in _SHIFTS:
            for entry in entries:
                self._runs.add(language, entry, role)
            return
        # The words of all other languages are in one table, with bits for each language.
        bits = role << _SHIFTS[language]
        for entry in entries:
            if "_" in entry:
                first = entry.partition("_")[0]
                self._longer_entries.setdefault(first, []).append((entry, language, role))
            elif entry[-1] == "*":
                self._add_stem(entry[:-1], bits)
            else:
                self._exact[entry] = self._exact.get(entry, 0) | bits

    def _add_stem(self, stem: str, bits: int) -> None:
        """Add a beginning of words."""
        self._stems[stem] = self._stems.get(stem, 0) | bits
        self._stem_lengths.setdefault(stem[:_SHORTEST_STEM], set()).add(len(stem))
        self._beginnings.add(stem[:_BEGINNING])

    def windows(self, sentences: Sequence[Sequence[str]]) -> Iterator[Window]:
        """Yield the windows of a text. No window is a part of another one.

        sentences: the folded words of each sentence. Each has a word.
        """
        lengths = [_length_of(words) for words in sentences]
        masks = list(map(self.may_have, sentences))
        # The window goes from `first` to before `end`. `length` is the length of its sentences.
        end = 0
        length = 0.0
        end_of_last_window = 0
        for first, first_length in enumerate(lengths):
            # Take as many sentences as fit, and one sentence in any case.
            while end < len(lengths) and (end == first or length + lengths[end] <= WINDOW):
                length += lengths[end]
                end += 1
            # A window that ends with the one before is a part of it.
            if end > end_of_last_window:
                yield Window(first, end - 1, reduce(or_, masks[first:end]))
                end_of_last_window = end
            length -= first_length

    def may_have(self, words: Iterable[str]) -> int:
        """Return the roles that words may have in any language, as bits."""
        return reduce(or_, map(self._roles_of.__getitem__, words), 0)

    def any_may_have(self, words: Iterable[str]) -> int:
        """Return the same as `may_have`, but faster for very many words with repetitions."""
        different_words = set(words)
        if len(different_words) > _MANY_WORDS:
            different_words -= self._without_role(different_words)
        return self.may_have(different_words)

    def _without_role(self, words: Iterable[str]) -> set[str]:
        """Return ASCII words that have no role. Ids and numbers are such words.

        A word that is left out may have none, either.
        """
        ascii_words = list(filter(str.isascii, words))
        may_have = {
            word
            for word, alike in zip(ascii_words, look_alikes(ascii_words), strict=True)
            if word in self._exact
            or alike in self._exact
            or word in self._longer_entries
            or word[:_BEGINNING] in self._beginnings
            or alike[:_BEGINNING] in self._beginnings
            or word[:_SHORTEST_STEM] in self._stems
            or alike[:_SHORTEST_STEM] in self._stems
        }
        return set(ascii_words) - may_have

    def roles_in(self, sentences: Sequence[Sequence[str]]) -> WindowRoles:
        """Return the roles in the sentences of a window, which are read in one language."""
        return SentenceRoles(self, sentences).in_window(0, len(sentences) - 1)

    def in_sentence(
        self, sentence: Sequence[str], words: Sequence[_Word], language: int
    ) -> WindowRoles:
        """Return the roles in a sentence.

        sentence, words: its folded words, and what `word` returns for each of them.
        language: the place in `_LATIN` of the language of its Latin words.
        """
        roles = 0
        negated = 0
        # The number of the last word that the last negation negates
        negated_until = -1
        for number, word in enumerate(words):
            bits = word.roles[language]
            if sentence[number] in self._longer_entries:
                bits |= self._of_phrases(sentence, number, language)
            if not bits:
                continue
            roles |= bits
            negated |= word.negated
            if number <= negated_until:
                negated |= bits
            if bits & self._negations:
                negated_until = number + _NEGATED
        return WindowRoles(roles, negated)

    def _of_phrases(self, sentence: Sequence[str], number: int, language: int) -> int:
        """Return the roles of phrases in the table that begin at word `number` of a sentence.

        language: the number of the sentence's language. Phrases of other Latin languages do not
            count.
        """
        roles = 0
        for phrase in self._phrases_from(sentence[number]):
            is_latin = phrase.language < len(_LATIN)
            if is_latin and phrase.language != language:
                continue
            words = tuple(sentence[number + 1 : number + 1 + len(phrase.rest)])
            if words == phrase.rest or (phrase.is_stem and _begin_alike(words, phrase.rest)):
                roles |= phrase.role
        return roles

    def _phrases_from(self, first: str) -> list[_Phrase]:
        """Return the phrases in the table that begin with the word `first`."""
        if first not in self._phrases:
            phrases = []
            for entry, language, role in self._longer_entries[first]:
                rest = tuple(entry.rstrip("*").split("_")[1:])
                place = (_LATIN + _SHARED).index(language)
                phrases.append(_Phrase(rest, entry[-1] == "*", place, role))
            self._phrases[first] = phrases
        return self._phrases[first]

    def word(self, word: str) -> _Word:
        """Return the roles of a word. The result is kept for a short word."""
        known_word = self._known.get(word)
        if known_word is None:
            known_word = self._look_up(word)
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            if len(word) < _LONG:
                self._known[word] = known_word
        return known_word

    def _look_up(self, word: str) -> _Word:
        """Find the roles of a word, without those kept by `word`."""
        if not word.isascii() and _IDEOGRAPHS.search(word):
            return self._word_of_run(word)
        bits = self._bits(word)
        if not bits:
            return _OF_NO_ROLE
        shared = 0
        for language in _SHARED:
            shared |= bits >> _SHIFTS[language] & _ROLES_OF_A_LANGUAGE
        roles = []
        counts = 0
        for place, language in enumerate(_LATIN):
            own = bits >> _SHIFTS[language] & _ROLES_OF_A_LANGUAGE
            roles.append(own | shared)
            if own:
                counts |= 1 << place * _COUNT_BITS
        return _Word(tuple(roles), 0, counts)

    def _roles_in_any_language(self, word: str) -> int:
        """Return the roles that a word may have in any language.

        Roles of phrases that begin with the word are among them.
        """
        if not word.isascii() and _IDEOGRAPHS.search(word):
            return self.word(word).roles[0]
        roles = 0
        for _, _, role in self._longer_entries.get(word, ()):
            roles |= role
        bits = self._bits(word)
        while bits:
            roles |= bits & _ROLES_OF_A_LANGUAGE
            bits >>= _ROLE_BITS
        return roles

    def _bits(self, word: str) -> int:
        """Return the roles of a word in all languages, `_ROLE_BITS` apart.

        A word of no role that looks like an English one has the roles of that.
        """
        bits = self._bits_as_written(word)
        if bits:
            return bits
        alike = look_alike(word)
        if alike == word:
            return 0
        return self._bits_as_written(alike) & _ROLES_OF_A_LANGUAGE

    def _bits_as_written(self, word: str) -> int:
        """Return the roles of a word in all languages, `_ROLE_BITS` apart."""
        bits = self._exact.get(word, 0)
        # Few words begin as a stem does
        for length in self._stem_lengths.get(word[:_SHORTEST_STEM], ()):
            bits |= self._stems.get(word[:length], 0)
        return bits

    def _word_of_run(self, run: str) -> _Word:
        """Return the roles of the entries in a run of Chinese or Japanese letters."""
        roles = 0
        negated = 0
        # The position of the last letter that the last negation negates
        negated_until = -1
        for position, bits in self._runs.roles_in(run):
            roles |= bits
            if position <= negated_until:
                negated |= bits
            if bits & self._negations:
                negated_until = position + _NEGATED * _LETTERS_OF_A_WORD
        # A run belongs to no Latin language, so its roles count in each of them.
        return _Word((roles,) * len(_LATIN), negated, 0)


class SentenceRoles:
    """The roles in the sentences of a text.

    Windows overlap, so a sentence is in several of them. Its roles are found once, and then kept.

    sentences: the folded words of each sentence.
    """

    def __init__(self, roles: Roles, sentences: Sequence[Sequence[str]]):
        self._roles = roles
        self._sentences = sentences
        # By the number of the sentence
        self._words: dict[int, list[_Word]] = {}
        self._counts: dict[int, int] = {}
        # By the number of the sentence and the place of the language
        self._found: dict[tuple[int, int], WindowRoles] = {}

    def in_window(self, first: int, last: int) -> WindowRoles:
        """Return the roles in the sentences from `first` to `last`, which are read in one language."""
        numbers = range(first, last + 1)
        for number in numbers:
            if number not in self._words:
                words = list(map(self._roles.word, self._sentences[number]))
                self._words[number] = words
                self._counts[number] = sum(word.counts for word in words)
        language = _language_of(sum(self._counts[number] for number in numbers))
        roles = 0
        negated = 0
        for number in numbers:
            in_sentence = self._in_sentence(number, language)
            roles |= in_sentence.roles
            negated |= in_sentence.negated
        return WindowRoles(roles, negated)

    def _in_sentence(self, number: int, language: int) -> WindowRoles:
        """Return the roles in one sentence, if its Latin words are of a language."""
        found = self._found.get((number, language))
        if found is None:
            found = self._roles.in_sentence(self._sentences[number], self._words[number], language)
            self._found[number, language] = found
        return found


def _begin_alike(words: Sequence[str], phrase: Sequence[str]) -> bool:
    """Whether words match a phrase, if the last word may have any ending."""
    is_alike = len(words) == len(phrase) and words[:-1] == phrase[:-1]
    return is_alike and words[-1].startswith(phrase[-1])


def _length_of(words: Sequence[str]) -> float:
    """Return the length of a sentence. Letters of Chinese and Japanese count as parts of words."""
    # Most sentences have only ASCII words, which are found to be so all at once
    if "".join(words).isascii():
        return len(words)
    return sum(map(_length_of_word, words))


def _length_of_word(word: str) -> float:
    """Return 1, or the length of a run of Chinese or Japanese letters in words."""
    if word.isascii() or not _IDEOGRAPHS.search(word):
        return 1
    return len(word) / _LETTERS_OF_A_WORD


def _language_of(counts: int) -> int:
    """Return the place in `_LATIN` of the language with most of the words. English comes first.

    counts: the sum of the counts of all words, see `_Word`.
    """
    best = 0
    most = counts & _COUNTS_OF_A_LANGUAGE
    for place in range(1, len(_LATIN)):
        number = counts >> place * _COUNT_BITS & _COUNTS_OF_A_LANGUAGE
        if number > most:
            best = place
            most = number
    return best


class Likeness:
    """Scores windows of a text by the roles of their words. Planted orders score high.

    names: the names of the roles. A role is a kind of word, such as `agent` or `report`.
    text: the weights, as in role-weights.txt. Each line has a weight and the feature that adds it:
        `1.2 agent` (the role), `0.4 not ask` (the negated role), `-0.8 agent + report` (both). A
        line without a role (`-3`) is added to each score. Lines with `maybe` (`0.5 maybe agent`,
        `-2 maybe`) are for the rougher score of `may_be_like`, which counts every role that a word
        may have.
    """

    def __init__(self, names: Sequence[str], text: str):
        self._base_weight = 0.0
        # By the place of a role in `names`
        self._role_weights = [0.0] * len(names)
        self._negated_weights = [0.0] * len(names)
        # (bit of the other role, weight) of each pair of a role, and the bits of all its pairs
        self._pairs_of_role: list[list[tuple[int, float]]] = [[] for _ in names]
        self._pair_bits = [0] * len(names)
        # The weights of `may_be_like`
        self._rough_base = 0.0
        self._rough_weights = [0.0] * len(names)
        place_of = {name: place for place, name in enumerate(names)}
        for line in text.splitlines():
            if line and line[0] != "#":
                number, *feature = line.split()
                self._set_weight(float(number), feature, place_of)
        # A table of sums for each group of roles, so that a few look-ups replace many additions.
        self._rough_sums = [
            _Sums(self._rough_weights[begin : begin + _CHUNK_BITS])
            for begin in range(0, len(names), _CHUNK_BITS)
        ]

    def _set_weight(self, weight: float, feature: list[str], place_of: Mapping[str, int]) -> None:
        """Set the weight of one line of the table.

        feature: the words of the line behind the weight.
        place_of: the place of each role by its name.
        """
        match feature:
            case []:
                self._base_weight = weight
            case ["maybe"]:
                self._rough_base = weight
            case ["maybe", name]:
                self._rough_weights[place_of[name]] = weight
            case ["not", name]:
                self._negated_weights[place_of[name]] = weight
            case [name, "+", other_name]:
                other_bit = 1 << place_of[other_name]
                self._pairs_of_role[place_of[name]].append((other_bit, weight))
                self._pair_bits[place_of[name]] |= other_bit
            case [name]:
                self._role_weights[place_of[name]] = weight
            case _:
                text = " ".join(feature)
                raise ValueError(f"role-weights.txt: `{text}` is no feature that has a weight")

    def may_be_like(self, roles_of_words: int) -> bool:
        """Whether a text is worth scoring, by the roles that its words may have."""
        score = self._rough_base
        rest = roles_of_words
        for sums in self._rough_sums:
            score += sums[rest & _CHUNK]
            rest >>= _CHUNK_BITS
        return score >= 0

    def score(self, window: WindowRoles) -> float:
        """Return the score of a window: the larger it is, the more like a planted order."""
        score = self._base_weight
        for place in _places(window.roles):
            score += self._role_weights[place]
            # For most roles, none that it has a pair with is here
            if window.roles & self._pair_bits[place]:
                for other_bit, weight in self._pairs_of_role[place]:
                    if window.roles & other_bit:
                        score += weight
        for place in _places(window.negated):
            score += self._negated_weights[place]
        return score


def _places(bits: int) -> Iterator[int]:
    """Yield the place of each bit that is set, the lowest first: `0b1010` → 1, 3."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


class _Sums(dict[int, float]):
    """A cache: a set of roles as bits -> the sum of their weights."""

    def __init__(self, weights: Sequence[float]):
        """weights: the weight of each role, in the order of their bits."""
        super().__init__()
        self._weights = weights

    def __missing__(self, bits: int) -> float:
        weights = enumerate(self._weights)
        self[bits] = sum(weight for place, weight in weights if bits >> place & 1)
        return self[bits]


@cache
def roles() -> Roles:
    """Return the words of roles.txt."""
    return Roles(Path(__file__).with_name("roles.txt").read_text(encoding="utf-8"))


@cache
def likeness() -> Likeness:
    """Return the weights of role-weights.txt."""
    text = Path(__file__).with_name("role-weights.txt").read_text(encoding="utf-8")
    return Likeness(roles().names, text)


def may_be_like_orders(words: Iterable[str]) -> bool:
    """Whether a text of these folded words is worth scoring. Most texts are not."""
    return likeness().may_be_like(roles().any_may_have(words))


def in_pieces(sentences: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
    """Yield sentences. One with more than WINDOW words is cut into pieces of _PIECE words.

    A text without stops would otherwise be a single window, with the words of a whole page.
    """
    for words in sentences:
        if _length_of(words) <= WINDOW:
            yield words
        else:
            yield from _pieces(words)


def _pieces(words: Iterable[str]) -> Iterator[list[str]]:
    """Yield the words of a long sentence in pieces. A long run of Chinese is cut, too."""
    piece: list[str] = []
    room: float = _PIECE
    for part in chain.from_iterable(map(_parts_of_run, words)):
        length = _length_of_word(part)
        if room < length and piece:
            yield piece
            piece = []
            room = _PIECE
        piece.append(part)
        room -= length
    if piece:
        yield piece


def _parts_of_run(word: str) -> Iterator[str]:
    """Yield a word, a run of Chinese or Japanese in parts that fit into a piece."""
    if word.isascii() or not _IDEOGRAPHS.search(word):
        yield word
        return
    letters = _PIECE * _LETTERS_OF_A_WORD
    for start in range(0, len(word), letters):
        yield word[start : start + letters]


def is_like_around(words: Sequence[str], first: int, last: int, least: float) -> bool:
    """Whether a stretch of a sentence around some of its words has a score.

    A stretch goes on for up to _AROUND words to each side. So words that are put before or behind it
    add stretches, and take none away.

    words: the folded words of the sentence.
    first, last: the indexes of the words that a stretch must have.
    least: the lowest score that counts.
    """
    begin = max(0, first - _AROUND)
    around = words[begin : last + 1 + _AROUND]
    known_words = list(map(roles().word, around))
    for start in range(first - begin, -1, -1):
        for end in range(last + 1 - begin, len(around) + 1):
            stretch = known_words[start:end]
            language = _language_of(sum(word.counts for word in stretch))
            window = roles().in_sentence(around[start:end], stretch, language)
            if likeness().score(window) >= least:
                return True
    return False


def best_score(sentences: Iterable[Sequence[str]]) -> float:
    """Return the largest score of any window in a text. Windows not worth scoring are passed over.

    It takes time in proportion to the text.

    sentences: the folded words of each sentence. Each has a word.
    """
    weights = likeness()
    pieces = list(in_pieces(sentences))
    roles_by_piece = SentenceRoles(roles(), pieces)
    best = -inf
    for window in roles().windows(pieces):
        if weights.may_be_like(window.may_have):
            in_window = roles_by_piece.in_window(window.first, window.last)
            best = max(best, weights.score(in_window))
    return best
