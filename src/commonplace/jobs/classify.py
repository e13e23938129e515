"""Which category a text belongs to, by a table of words (contract 001, 7)."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

FALLBACK = "knowledge"
"""The category of a text without any word of the table."""

_WEIGHTS = {"strong": 3, "normal": 2, "exact": 2, "weak": 1}
_RUN = re.compile("[a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Classified:
    """`words` are the entries that decided, as the table has them, in the order the text first has them;
    `scores` the categories that scored at all, in the table's order."""

    category: str
    words: tuple[str, ...] = ()
    scores: Mapping[str, int] = field(default_factory=dict)


class _Entry(NamedTuple):
    """`sought` in lower case, or as written when `exact`. `around` are longer entries that hold it: what stands
    in them, at that offset, does not count."""

    word: str
    sought: str
    category: str
    weight: int
    exact: bool
    around: tuple[tuple[_Entry, int], ...] = ()


def classify(text: str) -> Classified:
    """The category with the highest score, of equal ones the first in the table; `knowledge` when no word matches.

    `text` is the memory's content. Source: contract 001, 7.
    """
    as_written = _one_spaced(text)
    in_lower = _lowered(as_written)
    scores: dict[str, int] = {}
    found: dict[str, list[tuple[int, str]]] = {}
    for entry in _within_reach(in_lower):
        at = _first(entry, as_written, in_lower)
        if at >= 0:
            scores[entry.category] = scores.get(entry.category, 0) + entry.weight
            found.setdefault(entry.category, []).append((at, entry.word))
    if not scores:
        return Classified(FALLBACK)
    best = max(scores, key=scores.__getitem__)
    return Classified(best, tuple(word for _, word in sorted(found[best])), scores)


def _one_spaced(text: str) -> str:
    """`text` in compatibility form with `'` for `’` and one blank for each run of blanks."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.replace("’", "'"))
    return " ".join(text.split())


def _lowered(text: str) -> str:
    """`text` in lower case, every character in its place."""
    low = text.lower()
    return low if len(low) == len(text) else "".join(c if len(c.lower()) != 1 else c.lower() for c in text)


def _within_reach(in_lower: str) -> list[_Entry]:
    """The entries whose beginning the text has, in the table's order: few, where the table has hundreds."""
    table = _table()
    beginnings = set(_RUN.findall(in_lower))
    if not in_lower.isascii():
        beginnings.update(in_lower)
    ranks = [rank for beginning in table.ranks.keys() & beginnings for rank in table.ranks[beginning]]
    return [table.entries[rank] for rank in sorted(ranks)]


def _first(entry: _Entry, as_written: str, in_lower: str) -> int:
    """Where `entry` first counts, -1 when it does nowhere."""
    text = as_written if entry.exact else in_lower
    at = text.find(entry.sought)
    while at >= 0:
        if _stands(entry, text, at) and not any(
            _matches(longer, as_written, in_lower, at - offset) for longer, offset in entry.around
        ):
            return at
        at = text.find(entry.sought, at + 1)
    return -1


def _matches(entry: _Entry, as_written: str, in_lower: str, at: int) -> bool:
    text = as_written if entry.exact else in_lower
    return at >= 0 and text.startswith(entry.sought, at) and _stands(entry, text, at)


def _stands(entry: _Entry, text: str, at: int) -> bool:
    """Whether the match at `at` stands on word boundaries, as English entries must."""
    if not entry.sought.isascii():
        return True
    end = at + len(entry.sought)
    return not (at and _in_word(text[at - 1])) and not (end < len(text) and _in_word(text[end]))


def _in_word(char: str) -> bool:
    """Whether an English word goes on with `char`. Chinese, Japanese and Korean letters end it: `这个API的`."""
    return char == "_" or (char < "\u2e80" and char.isalnum())


class _Table(NamedTuple):
    """classify.toml: its entries in their order, and where each stands by what it begins with."""

    entries: tuple[_Entry, ...]
    ranks: Mapping[str, Sequence[int]]


@cache
def _table() -> _Table:
    text = Path(__file__).with_name("classify.toml").read_text(encoding="utf-8")
    plain = [
        _Entry(word, word if kind == "exact" else word.lower(), category, _WEIGHTS[kind], kind == "exact")
        for category, kinds in tomllib.loads(text).items()
        for kind, words in kinds.items()
        for word in words
    ]
    ranks: dict[str, list[int]] = {}
    for rank, entry in enumerate(plain):
        begins = _RUN.match(entry.sought.lower())
        ranks.setdefault(begins[0] if begins else entry.sought[0].lower(), []).append(rank)
    return _Table(tuple(entry._replace(around=_around(entry, plain)) for entry in plain), ranks)


def _around(entry: _Entry, every: list[_Entry]) -> tuple[tuple[_Entry, int], ...]:
    """The longer entries that hold `entry`, with each offset it has there."""
    inner = entry.sought.lower()
    found = []
    for longer in every:
        outer = longer.sought.lower()
        if len(outer) > len(inner):
            found += [(longer, at) for at in range(len(outer)) if outer.startswith(inner, at)]
    return tuple(found)
