"""The terms of a text, by which jobs see what memories have in common: words and pairs of Han characters.

Source: contract 001, 5 (dream level 2) and 6 (rare terms).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache
from operator import add
from pathlib import Path

_HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"
_HAN_RUN = re.compile(f"[{_HAN}]{{2,}}")
_LETTER = f"[^\\W_{_HAN}]"
# `don't`, `kube-proxy`, `config.yaml`, `max_retries` are one word each.
_WORD = re.compile(f"{_LETTER}+(?:(?:[.'-]|_+){_LETTER}+)*")
_MARKED = re.compile(r"[\d_.-]")
_SIGNS = re.compile("[_.-]")
_WIKILINK = re.compile(r"!?\[\[[^\[\]\n]{1,400}\]\]")
_SHORTEST = 4
"""Letters of the shortest plain word that is evidence."""


def plain(text: str) -> str:
    """`text` in compatibility form (NFKC) and lower case."""
    return (text if text.isascii() else unicodedata.normalize("NFKC", text)).lower()


def terms(low: str) -> frozenset[str]:
    """All words of a plain text and all its pairs of neighbouring Han characters."""
    found = set(_words(low))
    if not low.isascii():
        for run in _HAN_RUN.findall(low):
            found.update(map(add, run, run[1:]))
    return frozenset(found)


def telling_words(low: str) -> frozenset[str]:
    """The words of a plain text that can be evidence: of four letters or more and no stop words, or marked by a digit,
    `_`, `-` or `.` within. Numbers are none, but versions, dates and addresses are (`3.11.2`).

    Wikilinks are left out: their targets are evidence of their own.
    """
    _, is_telling = _stop_words()
    return frozenset(filter(is_telling, set(_words(without_wikilinks(low)))))


def han_runs(low: str) -> list[str]:
    """The runs of two or more Han characters in a plain text, in order, wikilinks left out."""
    return [] if low.isascii() else _HAN_RUN.findall(without_wikilinks(low))


def telling_pairs(runs: list[str]) -> frozenset[str]:
    """The pairs of neighbouring characters in `runs` that can be evidence."""
    stop_words, _ = _stop_words()
    return frozenset(pair for run in runs for pair in map(add, run, run[1:])) - stop_words


def without_wikilinks(text: str) -> str:
    """`text` with a blank for every `[[wikilink]]`."""
    return _WIKILINK.sub(" ", text) if "[[" in text else text


def _words(low: str) -> list[str]:
    low = low.replace("’", "'")
    found = _WORD.findall(low)
    return [word[:-2] if word.endswith("'s") else word for word in found] if "'s" in low else found


@cache
def _stop_words() -> tuple[frozenset[str], Callable[[str], bool]]:
    """The stop words, and the test of a telling word, which knows them."""
    lines = Path(__file__).with_name("stopwords.txt").read_text(encoding="utf-8").splitlines()
    every = frozenset(word for line in lines if not line.startswith("#") for word in line.split())

    def is_telling(word: str) -> bool:
        if word in every:
            return False
        letters = sum(map(str.isalpha, word))
        if _MARKED.search(word) is None:
            return letters >= _SHORTEST
        return letters > 0 or len(_SIGNS.findall(word)) > 1

    return every, is_telling
