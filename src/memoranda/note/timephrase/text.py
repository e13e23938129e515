"""A text in the form that the grammar reads, and the way back to the text as it was written."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from memoranda.note.timephrase.words import table

# Runs of blanks, which are shortened so that patterns stay fast.
_LONG_BLANKS = re.compile(r"\s{3,}")
_QUOTES = "’‘ʼ`´"
# In compatibility form, "2½" would be "21/2".
_FRACTIONS = {"½": ".5", "¼": ".25", "¾": ".75"}


@cache
def _simplified() -> dict[str, str]:
    """Return traditional characters of time words -> their simplified forms."""
    return dict(table("chinese.traditional"))


def _plain_form(char: str) -> str:
    """Return a character in compatibility form and lower case. Each kind of quote becomes `'`."""
    if char in _QUOTES:
        return "'"
    if char in _FRACTIONS:
        return _FRACTIONS[char]
    return _simplified().get(char) or unicodedata.normalize("NFKC", char).lower()


class Text:
    """A text in two forms: `written` as the user wrote it, `plain` as the patterns match it.

    `plain` is `written` with each character in its plain form: `"３PM"` becomes `"3pm"`.
    Three or more blanks in a row are shortened: to two line ends if an empty line is among them, to
    one line end if they contain a single line end, and else to one space.
    """

    def __init__(self, written: str):
        """Make the plain form of a text, and record where each of its characters comes from.

        written: the text as a person wrote it.
        """
        self.written = written
        # The plain form of each character of `written`.
        if written.isascii():
            forms = list(written.lower().replace("`", "'"))
        else:
            forms = [_plain_form(char) for char in written]
        # The place in `written` of each character of the forms. A character may become several,
        # such as `½`, which all have its place.
        places: list[int] = []
        for place, form in enumerate(forms):
            places += [place] * len(form)
        # `_origin`: the place in `written` of each character of `plain`.
        self.plain, self._origin = _with_short_blanks("".join(forms), places)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Convert a span of `plain`, which must not be empty, to the same span of `written`.

        Returns (start, end).
        """
        return self._origin[start], self._origin[end - 1] + 1

    def as_written(self, start: int, end: int) -> str:
        """Return `plain[start:end]` as the user wrote it, without blanks around it."""
        if start >= end:
            return ""
        first, last = self.span(start, end)
        return self.written[first:last].strip()


def _with_short_blanks(text: str, places: list[int]) -> tuple[str, list[int]]:
    """Shorten the long runs of blanks in a text. Return it with the places that remain.

    places: a number for each character of the text. The first blanks of each run remain.
    """
    pieces: list[str] = []
    remaining_places: list[int] = []
    copied_until = 0
    for blanks in _LONG_BLANKS.finditer(text):
        short = _short_blank(blanks[0])
        pieces += [text[copied_until : blanks.start()], short]
        remaining_places += places[copied_until : blanks.start() + len(short)]
        copied_until = blanks.end()
    pieces.append(text[copied_until:])
    remaining_places += places[copied_until:]
    return "".join(pieces), remaining_places


def _short_blank(blank: str) -> str:
    """Return the short form of three or more blanks: two line ends, one line end, or a space."""
    if blank.count("\n") > 1:
        return "\n\n"
    if "\n" in blank:
        return "\n"
    return " "
