"""The one way in which a document is cut to size."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

# Keys of an object that a document keeps when it is cut.
_KEYS = 50
# How long texts may be, tried in turn.
_TEXTS = (2000, 500, 200, 80)
# How long lists may be, when shorter texts are not enough; then half of that, and so on.
_ENTRIES = 256


def compact(data: Any) -> str:
    """`data` as JSON without blanks."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def number_that_fit(lengths: Sequence[int], room: int) -> int:
    """How many of the first entries, of these lengths, fit into `room`."""
    return sum(used <= room for used in accumulate(lengths))


def longest(highest: int, length: Callable[[int], int], room: int) -> int:
    """The greatest size up to `highest` at which a text is no longer than `room`; 0 if none is.

    length: how long the text is at a size; it grows with the size.
    """
    sizes = range(highest + 1)
    return max(bisect_right(sizes, room, key=length) - 1, 0)


def cut(document: Any, room: int) -> str:
    """A document as JSON of at most `room` characters.

    Texts become shorter first, then lists, which the key `truncated` says.
    """
    text = compact(document)
    for most_characters in _TEXTS:
        if len(text) <= room:
            return text
        text = compact(_shorten(document, most_characters))
    entries = _ENTRIES
    while len(text) > room and entries:
        text = compact({**_shorten(document, _TEXTS[-1], entries), "truncated": True})
        entries //= 2
    return text


def _shorten(value: Any, most_characters: int, entries: int | None = None) -> Any:
    """`value` with texts of at most `most_characters` characters, and lists of at most `entries` rows."""
    if isinstance(value, str):
        if len(value) <= most_characters:
            return value
        return value[: most_characters - 1] + "…"
    if isinstance(value, list):
        return [_shorten(element, most_characters, entries) for element in value[:entries]]
    if isinstance(value, dict):
        some = list(value.items())[:_KEYS]
        return {key: _shorten(element, most_characters, entries) for key, element in some}
    return value
