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
    """Return the shapes by their leads, and a pattern that finds the next possible lead.

    A lead is the English word or the Chinese character that a shape begins with, or "0" for digits:
    `{"next": [("weekday", "…"), …], "0": …}`. Shapes are looked up by it, so that few are tried.
    """
    shapes: _Shapes = {}
    for entry in data_file("shapes.toml")["shape"]:
        for lead in _leads(entry["leads"]):
            shapes.setdefault(lead, []).append((entry["kind"], entry["pattern"]))
    characters = "".join(lead for lead in shapes if not lead.isascii())
    return shapes, re.compile(f"[a-z]+|[0-9]+|[{characters}]")


def _leads(names: str) -> list[str]:
    """Return the leads that one shape names: `["on", "0"]` for "on 0".

    `@english.months` stands for the first word of each name in that table.
    """
    leads: dict[str, None] = {}
    for name in names.split():
        if name[0] == "@":
            words = table(name[1:])
        else:
            words = [name]
        for word in words:
            # The first word of "twenty-first", "valentine's" and "new year's day". In Chinese, it is
            # the first character.
            lead = re.match(r"[a-z]+|.", word)
            assert lead is not None
            leads[lead[0]] = None
    return list(leads)


def scan(plain: str) -> list[Lexeme]:
    """Return the time words of a text in order. They do not overlap.

    A word such as "tonight" gives two lexemes with the same place.

    plain: the text in plain form: `3pm` for `３PM`.
    """
    shapes, starts = _shapes()
    lexemes: list[Lexeme] = []
    end = 0
    for start in starts.finditer(plain):
        # It is inside the word before.
        if start.start() < end:
            continue
        # The shapes are listed by the sign that they begin with, all digits under "0".
        lead = "0" if start[0].isdigit() else start[0]
        for kind, pattern in shapes.get(lead, ()):
            matched = _lexemes_at(plain, start.start(), end, kind, pattern)
            if matched:
                lexemes += matched
                end = matched[0].end
                break
    return lexemes


def _lexemes_at(plain: str, start: int, end: int, kind: str, pattern: str) -> list[Lexeme]:
    """Return the lexemes of a shape at `start`: time words with their kind, value and place.

    Empty if the shape does not match. A word with several meanings gives several lexemes at one
    place.

    plain: the text in plain form: `3pm` for `３PM`.
    end: where the lexeme before ends.
    kind: the name of the reader.
    pattern: the pattern of the shape.
    """
    match = compiled(pattern).match(plain, start)
    if not match or not match[0]:
        return []
    first, last = match.span()
    # A character of the word before is not told to the reader.
    before = plain[first - 1 : first] if first > end else ""
    try:
        meanings = _READERS[kind](match, before)
    except ValueError:
        return []

    # Blanks that the pattern took at its ends are not part of the word.
    text = match[0]
    last = first + len(text.rstrip())
    first += len(text) - len(text.lstrip())
    return [
        Lexeme(meaning.kind, meaning.value, first, last, meaning.is_weak) for meaning in meanings
    ]
