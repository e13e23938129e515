"""Word forms: irregular forms (a data file, English), stems, and words one edit away."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_ENDINGS = (("ies", "y"), ("ied", "y"), ("ings", ""), ("ing", ""), ("es", ""), ("ed", ""), ("s", ""), ("e", ""))
_SHORTEST = 3
_DOUBLED = re.compile(r"([bdfgmnprt])\1$")
_ALPHABET = "abcdefghijklmnopqrstuvwxyz"
_INFLECTIONS = (
    "", "s", "e", "es", "ed", "ing", "ings", "er", "ers", "y", "ly", "ment", "ments", "ion", "ions", "ation", "ations",
    "al", "ance", "ence", "ant", "ent", "able", "ible", "ive", "ous", "ful", "ness", "ity", "ism", "ist", "ize", "ate",
)  # fmt: skip


def forms(word: str) -> tuple[str, ...]:
    """The irregular forms of `word`, itself first: `buy` gives `buy`, `bought`."""
    return (word, *(one for one in _forms().get(word, ()) if one != word))


def root(word: str) -> str:
    """An English word without its commonest endings."""
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) + len(instead) >= _SHORTEST:
            return word[: -len(ending)] + instead
    return word


def stem(word: str) -> str:
    """The root with doubled letters and a last `y` removed: `planned`, `planning` and `plan` are one."""
    found = root(word)
    found = found if found == word else _DOUBLED.sub(r"\1", found)
    return found[:-1] if found.endswith("y") and len(found) > 3 else found


def one_edit(word: str) -> list[str]:
    """All words one letter more, less, other or swapped away from `word`; the first letter is right."""
    found: dict[str, None] = {}
    for at in range(1, len(word) + 1):
        head, tail = word[:at], word[at:]
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
    found |= {one[:-1] + ending for one in stems if one.endswith("i") for ending in ("y", "ies", "ied")}
    found |= {one + one[-1] + ending for one in stems for ending in ("ing", "ed")}
    return found | {one[:-1] + ending for one in stems if one.endswith("e") for ending in ("ing", "ed", "er")}


@cache
def _forms() -> dict[str, tuple[str, ...]]:
    lines = Path(__file__).with_name("forms.txt").read_text(encoding="utf-8").splitlines()
    return {word: tuple(line.split()) for line in lines if not line.startswith("#") for word in line.split()}
