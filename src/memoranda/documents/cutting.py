"""Cuts documents, which are JSON values, to the size of a reply."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

# Keys of an object in a cut document.
_MAX_KEYS = 50
# Characters of texts, tried in this order until the document fits.
_TEXT_CHARACTERS = (2000, 500, 200, 80)
# Entries of lists, if shorter texts are not enough. It is halved until the document fits.
_MAX_ENTRIES = 256


def compact(data: Any) -> str:
    """Return `data` as JSON without blanks."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def number_that_fit(lengths: Sequence[int], room: int) -> int:
    """Return how many entries fit into `room`, beginning with the first: 2 for [3, 4, 5] and 8."""
    return sum(used <= room for used in accumulate(lengths))


def longest(highest: int, length: Callable[[int], int], room: int) -> int:
    """Return the largest size up to `highest` at which a text fits into `room`, or 0.

    length: returns the length of the text for a size. It must grow with the size.
    """
    sizes = range(highest + 1)
    return max(bisect_right(sizes, room, key=length) - 1, 0)


def cut(document: Any, room: int) -> str:
    """Return a document as JSON of at most `room` characters.

    Texts are shortened first. If that is not enough, lists are shortened, too, and the key
    `truncated` is set.
    """
    text = compact(document)
    for most_characters in _TEXT_CHARACTERS:
        if len(text) <= room:
            return text
        text = compact(_shorten(document, most_characters))
    entries = _MAX_ENTRIES
    while len(text) > room and entries:
        text = compact({**_shorten(document, _TEXT_CHARACTERS[-1], entries), "truncated": True})
        entries //= 2
    return text


def _shorten(value: Any, most_characters: int, entries: int | None = None) -> Any:
    """Shorten the texts and lists in a value. `entries` is None for lists of any length."""
    if isinstance(value, str):
        if len(value) <= most_characters:
            return value
        return value[: most_characters - 1] + "…"
    if isinstance(value, list):
        return [_shorten(element, most_characters, entries) for element in value[:entries]]
    if isinstance(value, dict):
        entries_shown = list(value.items())[:_MAX_KEYS]
        return {key: _shorten(element, most_characters, entries) for key, element in entries_shown}
    return value
