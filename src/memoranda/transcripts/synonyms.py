"""Finds synonyms (synonyms.txt) and related words (related.txt) of the words of a question. Pure."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_ENDINGS = ("ing", "ies", "es", "ed", "s")


def synonyms(word: str) -> list[str]:
    """Return the synonyms of a folded word in any form, [] if the table does not have the word."""
    table = _table()
    for form in _forms(word):
        if form in table:
            return [synonym for synonym in table[form] if synonym not in (word, form)]
    return []


def related(word: str) -> list[str]:
    """Return the related words of a folded word in any form, [] if the table does not have it.

    They are less alike in meaning than synonyms.
    """
    table = _related()
    for form in _forms(word):
        if form in table:
            return [related_word for related_word in table[form].split() if related_word != word]
    return []


@cache
def _related() -> dict[str, str]:
    """Return the table of related words: word -> related words, separated by blanks."""
    lines = Path(__file__).with_name("related.txt").read_text("utf-8").splitlines()
    entries = (line.partition(": ") for line in lines if not line.startswith("#"))
    return {word: related_words for word, _, related_words in entries}


@cache
def _table() -> dict[str, list[str]]:
    """Return the table of synonyms: word -> all words of the groups that it is in."""
    text = Path(__file__).with_name("synonyms.txt").read_text("utf-8")
    table: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        # Two words with a hyphen between them are rarely written so in texts.
        group = [word for word in line.split() if "-" not in word]
        for word in group:
            words = table.setdefault(word, [])
            words += [member for member in group if member not in words]
    return table


def _forms(word: str) -> list[str]:
    """Return a word, and the words it may be a form of: `store` for `stored`."""
    forms = [word]
    for ending in _ENDINGS:
        stem = word.removesuffix(ending)
        if stem == word or len(stem) < 3:
            continue
        forms += [stem, f"{stem}e"]
        if ending == "ies":
            forms.append(f"{stem}y")
        # "stopped", "shipping"
        if stem[-1] == stem[-2]:
            forms.append(stem[:-1])
    return forms
