"""A text as the grammar reads it, with the way back to how it was written."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from memoranda.note.timephrase.words import table

# Runs of blanks, which are shortened so that patterns stay fast.
_LONG_BLANKS = re.compile(r"\s{3,}")
_QUOTES = "’‘ʼ`´"


@cache
def _simplified() -> dict[str, str]:
    """Traditional characters of time words -> their simplified forms."""
    return dict(table("chinese.traditional"))


def _plain_form(char: str) -> str:
    """A character in compatibility form and lower case; quotes as '."""
    if char in _QUOTES:
        return "'"
    return _simplified().get(char) or unicodedata.normalize("NFKC", char).lower()


class Text:
    """`plain` is `written` character by character in the form the patterns match.

    Runs of three and more blanks are made short: a run with an empty line in it is two line ends.
    """

    def __init__(self, written: str):
        self.written = written
        if written.isascii():
            forms = list(written.lower().replace("`", "'"))
        else:
            forms = [_plain_form(char) for char in written]
        long_plain = "".join(forms)
        places: list[int] = []
        for place, form in enumerate(forms):
            places += [place] * len(form)
        pieces: list[str] = []
        # The place in `written` of each character of `plain`
        self._origin: list[int] = []
        start = 0
        for blank in _LONG_BLANKS.finditer(long_plain):
            short = _short_blank(blank[0])
            pieces += [long_plain[start : blank.start()], short]
            self._origin += places[start : blank.start() + len(short)]
            start = blank.end()
        pieces.append(long_plain[start:])
        self._origin += places[start:]
        self.plain = "".join(pieces)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The place in `written` of plain[start:end]; one character at least."""
        return self._origin[start], self._origin[end - 1] + 1

    def as_written(self, start: int, end: int) -> str:
        """plain[start:end] as the user wrote it, without blanks around it."""
        if start >= end:
            return ""
        first, last = self.span(start, end)
        return self.written[first:last].strip()


def _short_blank(blank: str) -> str:
    if blank.count("\n") > 1:
        return "\n\n"
    if "\n" in blank:
        return "\n"
    return " "
