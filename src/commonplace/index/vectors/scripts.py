"""Which texts a model can read, judged by the scripts its vocabulary has words in."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

_DENSE = {"CJK", "HIRAGANA", "KATAKANA", "HANGUL"}
"""Scripts whose letter says about as much as three of others."""
_ALIASES = {"FULLWIDTH": "LATIN", "HALFWIDTH": "KATAKANA", "IDEOGRAPHIC": "CJK"}
_WORDS, _CHARACTERS, _SHARE = 200, 3000, 0.02
_MOST_FOREIGN = 0.3
_BYTES = "\u0120"  # how a vocabulary of byte pairs writes a blank


def scripts(vocabulary: Iterable[str]) -> frozenset[str] | None:
    """The scripts a vocabulary has words in, not only letters; None when it is one of bytes and cannot be judged.

    A script counts with 200 pieces of three letters (of two for Chinese, Japanese and Korean; or 3,000 single
    Han characters), or when these are a fiftieth of the vocabulary.
    """
    words: Counter[str] = Counter()
    characters: Counter[str] = Counter()
    total = 0
    for piece in vocabulary:
        if piece.startswith(_BYTES):
            return None
        total += 1
        piece = piece.removeprefix("##").removeprefix("\u2581")
        if not piece.isalpha():
            continue
        name = script(piece[0])
        if len(piece) == 1:
            characters[name] += 1
        elif len(piece) >= (2 if name in _DENSE else 3):
            words[name] += 1
    found = {name for name, count in words.items() if count >= min(_WORDS, max(1, total * _SHARE))}
    return frozenset(found | {name for name in ("CJK",) if characters[name] >= min(_CHARACTERS, total / 4)})


def is_readable(text: str, known: frozenset[str] | None) -> bool:
    """Whether at most three tenths of what `text` says stand in scripts that are not `known` (None = all are).

    A text without letters says nothing.
    """
    if text.isascii():
        return any(map(str.isalpha, text)) and (known is None or "LATIN" in known)
    total = foreign = 0
    for letter, count in Counter(text).items():
        if not letter.isalpha():
            continue
        name = script(letter)
        weight = count * (3 if name in _DENSE else 1)
        total += weight
        if known is not None and name not in known:
            foreign += weight
    return total > 0 and foreign <= _MOST_FOREIGN * total


@lru_cache(8192)
def script(letter: str) -> str:
    """The script of a letter, as the first word of its Unicode name."""
    name = unicodedata.name(letter, "").partition(" ")[0]
    return _ALIASES.get(name, name.partition("-")[0])
