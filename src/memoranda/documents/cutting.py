"""Cuts replies to a number of characters.

`largest_size` decides every cut. The other functions say what has a size: whole rows, a text that
grows with its parts, or a document, which is a JSON value.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

# Keys of an object in a cut document.
_MAX_KEYS = 50
# Characters of each text in a cut document.
_TEXT_CHARACTERS = (80, 200, 500, 2000)
# Entries of each list, if shorter texts are not enough: a power of two up to this one.
_MAX_ENTRIES_POWER = 8


def compact(data: Any) -> str:
    """Return `data` as JSON without blanks."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def largest_size(highest: int, length: Callable[[int], int], room: int) -> int:
    """Return the largest size up to `highest` whose length is within `room`, or 0.

    length: returns the length for a size. It must grow with the size.
    """
    sizes = range(highest + 1)
    return max(bisect_right(sizes, room, key=length) - 1, 0)


def rows_that_fit(lengths: Sequence[int], room: int) -> int:
    """Return how many rows fit into `room`, beginning with the first: 2 for [3, 4, 5] and 8."""
    characters_used = list(accumulate(lengths, initial=0))
    return largest_size(len(lengths), characters_used.__getitem__, room)


def text_that_fits(highest: int, text: Callable[[int], str], room: int) -> str:
    """Return `text(size)` for the largest size up to `highest` whose text is within `room`.

    If none is, return `text(0)`.

    text: makes the text for a size. Below `highest` it must grow with the size. The text for
        `highest` itself may be shorter than the one before, as it needs no mark of a cut.
    """
    whole_text = text(highest)
    if len(whole_text) <= room:
        return whole_text
    return text(largest_size(highest - 1, lambda size: len(text(size)), room))


def cut(document: Any, room: int) -> str:
    """Return a document as JSON of at most `room` characters.

    Texts are shortened first. If that is not enough, lists are shortened, too, and the key
    `truncated` is set.
    """

    def with_shorter_texts(size: int) -> str:
        if size == len(_TEXT_CHARACTERS):
            return compact(document)
        return compact(_shorten(document, _TEXT_CHARACTERS[size]))

    def with_shorter_lists(size: int) -> str:
        shortened = _shorten(document, _TEXT_CHARACTERS[0], 1 << size)
        return compact({**shortened, "truncated": True})

    text = text_that_fits(len(_TEXT_CHARACTERS), with_shorter_texts, room)
    if len(text) <= room:
        return text
    return text_that_fits(_MAX_ENTRIES_POWER, with_shorter_lists, room)


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
