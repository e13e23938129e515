"""Says in words what a change did to a property of a note: `due: tomorrow 09:00`.

The names of header keys are words in the tables of texts/.
"""

from __future__ import annotations

from markupsafe import Markup

from memoranda.serve.page.words.repetition import repetition
from memoranda.serve.page.words.times import Clock, time_element
from memoranda.serve.page.words.wording import translated, words

# Keys whose values are times.
_TIMES = frozenset(
    ("due_at", "snoozed_until", "fired_for", "valid_from", "valid_until", "expires_at", "date")
)
_RULE = "repeat"
_MAX_CHARACTERS = 80


def property_name(language: str, key: str) -> str:
    """Return the name of a header key in words. A key without words loses its underscores."""
    table = words(language)
    return table.get(key) or translated(language, key.replace("_", " "))


def property_value(clock: Clock, key: str, value: str) -> Markup | str:
    """Return the value of a header key in words: a time as `tomorrow 09:00`, a rule as `every day`."""
    if key in _TIMES:
        return time_element(clock, value)
    if key == _RULE:
        return repetition(clock.language, value)
    if len(value) > _MAX_CHARACTERS:
        return f"{value[: _MAX_CHARACTERS - 1]}…"
    return translated(clock.language, value)
