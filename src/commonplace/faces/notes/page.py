"""Pages of a list, and the bounds that keep every reply's text short (contract 000b, 7)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from commonplace.errors import InvalidInput

TEXT_LIMIT = 20_000
ROOM = 17_000
"""Characters the entries of one reply may take; the rest is for its head, its foot and warnings."""

_LAST_ROW = 2**62  # an offset the index still counts to


def whole(args: dict[str, Any], name: str, least: int, most: int | None = None) -> int:
    """The whole number `args[name]`, lowered to `most`. Raises InvalidInput below `least`."""
    value = args[name]
    if value < least:
        raise InvalidInput(f"Parameter `{name}` must be {least} or more; got {value}.")
    return value if most is None else min(value, most)


def compact(data: Any) -> str:
    """`data` as JSON without blanks."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Page:
    """Which part of a list is asked for: `number` from 1, `size` entries."""

    number: int
    size: int

    @classmethod
    def of(cls, args: dict[str, Any], most: int) -> Page:
        """The page `args` asks for, its size lowered to `most`. Raises InvalidInput below 1."""
        return cls(whole(args, "page", 1), whole(args, "page_size", 1, most))

    @property
    def offset(self) -> int:
        """How many entries come before this page."""
        return min((self.number - 1) * self.size, _LAST_ROW)

    def fitting(self, lengths: Sequence[int], room: int = ROOM) -> Page:
        """This page, or a shorter one with the same first entry when entries of `lengths` exceed `room`."""
        count = max(fitting(lengths, room), 1)
        return self if count >= len(lengths) else self.shorter(count)

    def shorter(self, count: int) -> Page:
        """A page of at most `count` entries with the same first one.

        Its size divides the offset, so that the following pages miss nothing.
        """
        size = next(n for n in range(count, 0, -1) if self.offset % n == 0)
        return Page(self.offset // size + 1, size)

    def data(self, total: int, shown: int) -> dict[str, Any]:
        """The keys every list carries; `shown` entries of `total` are on this page."""
        more = self.offset + shown < total
        return {"total": total, "page": self.number, "page_size": self.size, "more": more}

    def foot(self, total: int, shown: int) -> str:
        """The line that says what is shown and how to get the next page; "" when everything is."""
        if not shown:
            last = -(-total // self.size)
            return f"Nothing on page {self.number}. Last page: {last}." if total else ""
        if shown == total:
            return ""
        line = f"Shown: {self.offset + 1}-{self.offset + shown} of {total}."
        if self.offset + shown < total:
            line += f" Next: page={self.number + 1}, page_size={self.size}."
        return line


def lengths(entries: Sequence[dict[str, Any]], lines: Sequence[str], as_json: bool) -> list[int]:
    """What each entry takes in the reply's text: its line, or its JSON when that is the text."""
    return [len(compact(each)) + 1 for each in entries] if as_json else [len(line) + 1 for line in lines]


def fitting(lengths: Sequence[int], room: int) -> int:
    """How many of the first entries, of these lengths, fit into `room`."""
    for count, used in enumerate(accumulate(lengths)):
        if used > room:
            return count
    return len(lengths)
