"""The time words of a text as lexemes: the meaning of each spelling, without a clock.

The words are in words.toml, the patterns to match in shapes.toml.
"""

from __future__ import annotations

import re
from functools import cache

from memoranda.note.timephrase import clock_readers, day_readers, series_readers
from memoranda.note.timephrase.values import Lexeme
from memoranda.note.timephrase.words import compiled, data_file, table

__all__ = ["scan", "table"]

_READERS = day_readers.READERS | clock_readers.READERS | series_readers.READERS
_Shapes = dict[str, list[tuple[str, str]]]


@cache
def _shapes() -> tuple[_Shapes, re.Pattern[str]]:
    """The shapes (kind, pattern) by their first word: an English word, a Chinese character, or "0"
    for digits; and a pattern that finds the next word, digits or character that may begin one."""
    shapes: _Shapes = {}
    for entry in data_file("shapes.toml")["shape"]:
        for lead in _leads(entry["leads"]):
            shapes.setdefault(lead, []).append((entry["kind"], entry["pattern"]))
    characters = "".join(lead for lead in shapes if not lead.isascii())
    return shapes, re.compile(f"[a-z]+|[0-9]+|[{characters}]")


def _leads(names: str) -> list[str]:
    """The first words (in Chinese, characters) of the names; @table means the names of a table."""
    leads: dict[str, None] = {}
    for name in names.split():
        if name[0] == "@":
            words = table(name[1:])
        else:
            words = [name]
        for word in words:
            leads[word.split()[0] if word.isascii() else word[0]] = None
    return list(leads)


def scan(phrase: str) -> list[Lexeme]:
    """The time words of `phrase` (see Text) in order, not overlapping. Words such as "tonight" give
    two lexemes with one place."""
    shapes, starts = _shapes()
    lexemes: list[Lexeme] = []
    end = 0
    for start in starts.finditer(phrase):
        if start.start() < end:
            continue
        if start[0].isdigit():
            lead = "0"
        else:
            lead = start[0]
        for kind, pattern in shapes.get(lead, ()):
            matched = _lexemes_at(phrase, start.start(), end, kind, pattern)
            if matched:
                lexemes += matched
                end = matched[0].end
                break
    return lexemes


def _lexemes_at(phrase: str, start: int, end: int, kind: str, pattern: str) -> list[Lexeme]:
    """The lexemes of a shape at `start`; the one before ends at `end`."""
    match = compiled(pattern).match(phrase, start)
    if not match or not match[0]:
        return []
    first, last = match.span()
    if first > end:
        before = phrase[first - 1 : first]
    else:
        before = ""
    try:
        values = _READERS[kind](match, before)
    except ValueError:
        return []
    text = match[0]
    last = first + len(text.rstrip())
    first += len(text) - len(text.lstrip())
    return [
        Lexeme(name.removesuffix("?"), value, first, last, name.endswith("?"))
        for name, value in values
    ]
