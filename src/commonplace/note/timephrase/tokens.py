"""The time words of a text: each a kind with its value and its place."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any, NamedTuple


class Token(NamedTuple):
    """A time word at plain[start:end]. A `weak` one counts only beside another."""

    kind: str
    value: Any
    start: int
    end: int
    weak: bool = False


class Delay(NamedTuple):
    """A distance in time: whole `months` and `days`, and elapsed `seconds`. Negative ones lie back."""

    months: int
    days: int
    seconds: int

    @property
    def exact(self) -> bool:
        """Whether hours and minutes count, not days of the calendar."""
        return bool(self.seconds)


class Clock(NamedTuple):
    """A time of day. `form`: "bare" hours 1-12 that may be before or after noon, "colon" as 9:30 (a part of
    the day may still move it), "fixed", "midnight" or "eod"."""

    hour: int
    minute: int = 0
    second: int = 0
    form: str = "fixed"


class Draft(NamedTuple):
    """A repetition as far as one word tells it: `days` are weekdays 0-6, `monthdays` 1-31 or -1, the last."""

    unit: str
    interval: Fraction = Fraction(1)
    days: tuple[int, ...] = ()
    monthdays: tuple[int, ...] = ()
    month: int | None = None


def place(match: re.Match[str]) -> tuple[int, int]:
    """The place of a match without the blanks around it."""
    text = match[0]
    return match.start() + len(text) - len(text.lstrip()), match.end() - (len(text) - len(text.rstrip()))
