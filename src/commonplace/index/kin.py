"""Words akin: irregular forms, words of like meaning, things of a kind (data files, English)."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_ENDINGS = (("ies", "y"), ("ied", "y"), ("ings", ""), ("ing", ""), ("es", ""), ("ed", ""), ("s", ""), ("e", ""))
_SHORTEST = 3


def forms(word: str) -> tuple[str, ...]:
    """The irregular forms of `word`, itself first: `buy` gives `buy`, `bought`."""
    return (word, *(one for one in _forms().get(word, ()) if one != word))


def akin(word: str) -> tuple[str, ...]:
    """Words that may stand in an answer where a question says `word` (lower case)."""
    base = _forms().get(word, (word,))[0]
    return tuple(one for one in _kin().get(root(base), ()) if one not in (word, base))


def root(word: str) -> str:
    """An English word without its commonest endings, to look it up by."""
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) + len(instead) >= _SHORTEST:
            return word[: -len(ending)] + instead
    return word


@cache
def _forms() -> dict[str, tuple[str, ...]]:
    return {word: tuple(line) for line in _lines("forms.txt") for word in line}


@cache
def _kin() -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for line in _lines("kin.txt"):
        for word in line:
            found.setdefault(root(word), {}).update(dict.fromkeys(one for one in line if one != word))
    for kind, *things in _lines("kinds.txt"):
        found.setdefault(root(kind.rstrip(":")), {}).update(dict.fromkeys(things))
    return {word: tuple(others) for word, others in found.items()}


def _lines(name: str) -> list[list[str]]:
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    return [line.split() for line in text.splitlines() if line and not line.startswith("#")]
