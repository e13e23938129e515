"""A text in the form that is matched, with the way back to the user's own characters."""

from __future__ import annotations

import re
import unicodedata

_LONG_BLANKS = re.compile(r"\s{3,}")


class Text:
    """`plain` is `written` in compatibility form (NFKC) and lower case, character by character, long runs of
    blanks made short: a run with an empty line in it is two line ends."""

    def __init__(self, written: str):
        self.written = written
        self._origin: list[int] | None = None
        if written.isascii():
            self.plain = written.lower()
        else:
            self._spell()
        if _LONG_BLANKS.search(self.plain):
            self._shorten()

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where plain[start:end] stands in `written`; one character at least."""
        if self._origin is None:
            return start, end
        return self._origin[start], self._origin[end - 1] + 1

    def phrase(self, start: int, end: int) -> str:
        """The user's own text of plain[start:end]."""
        first, last = self.span(start, end)
        return self.written[first:last]

    def _spell(self) -> None:
        parts: list[str] = []
        self._origin = []
        for at, char in enumerate(self.written):
            part = char.lower() if char.isascii() else _plain(char)
            parts.append(part)
            self._origin += [at] * len(part)
        self.plain = "".join(parts)

    def _shorten(self) -> None:
        plain, before = self.plain, self._origin or range(len(self.plain))
        parts: list[str] = []
        origin: list[int] = []
        at = 0
        for blank in _LONG_BLANKS.finditer(plain):
            short = "\n\n" if blank[0].count("\n") > 1 else "\n" if "\n" in blank[0] else " "
            parts += [plain[at : blank.start()], short]
            origin += before[at : blank.start()]
            origin += [before[blank.start()]] * len(short)
            at = blank.end()
        origin += before[at:]
        self.plain, self._origin = "".join([*parts, plain[at:]]), origin


def _plain(char: str) -> str:
    return "'" if char in "’‘" else unicodedata.normalize("NFKC", char).lower()
