"""Words that people use for each other when they ask for what was said (synonyms.txt). Pure."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_ENDINGS = ("ing", "ies", "es", "ed", "s")


def synonyms(word: str) -> list[str]:
    """Other words for a folded word in any form. Empty if the table does not have it."""
    table = _table()
    for form in _forms(word):
        if form in table:
            return [synonym for synonym in table[form] if synonym not in (word, form)]
    return []


def related(word: str) -> list[str]:
    """Words of general English that are near a folded word (related.txt); [] for one it does not
    have. They say less than synonyms.
    """
    table = _related()
    for form in _forms(word):
        if form in table:
            return [other for other in table[form].split() if other != word]
    return []


@cache
def _related() -> dict[str, str]:
    """By each word, others in one text."""
    lines = Path(__file__).with_name("related.txt").read_text("utf-8").splitlines()
    entries = (line.partition(": ") for line in lines if not line.startswith("#"))
    return {word: others for word, _, others in entries}


@cache
def _table() -> dict[str, list[str]]:
    """By each word, the words of its groups."""
    text = Path(__file__).with_name("synonyms.txt").read_text("utf-8")
    table: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        # Two words as one with a hyphen are not found so in texts.
        group = [word for word in line.split() if "-" not in word]
        for word in group:
            words = table.setdefault(word, [])
            words += [member for member in group if member not in words]
    return table


def _forms(word: str) -> list[str]:
    """A word, and what it may be a form of: `stored` of `store`, `copies` of `copy`."""
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
