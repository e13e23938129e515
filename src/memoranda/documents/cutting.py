"""Cuts replies to a number of characters.

`largest_size` decides every cut. The other functions use it for different things: for whole rows,
for a text that grows with its parts, and for a document, which is a JSON value.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

# Keys of an object in a cut document.
_MAX_KEYS = 50
# Characters of each text in a cut document: the largest of these numbers that fits is used.
_TEXT_CHARACTERS = (80, 200, 500, 2000)
# If shorter texts are not enough, each list is cut to a power of two of entries, at most to 2 to the
# power of this number.
_MAX_ENTRIES_POWER = 8


def compact(data: Any) -> str:
    """Return `data` as JSON without blanks."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def largest_size(highest: int, length: Callable[[int], int], room: int) -> int:
    """Return the largest size up to `highest` that fits into `room`. 0 if not even 1 fits.

    For example, the size is the number of rows to show, and its length is the number of characters
    that they take.

    length: returns the length for a size. A larger size must not be shorter.
    """
    sizes = range(highest + 1)
    return max(bisect_right(sizes, room, key=length) - 1, 0)


def rows_that_fit(lengths: Sequence[int], room: int) -> int:
    """Return how many rows fit into `room`, beginning with the first: 2 for [3, 4, 5] and 8.

    lengths: the length of each row, in characters.
    room: how many characters there is room for.
    """
    characters_used = list(accumulate(lengths, initial=0))
    return largest_size(len(lengths), characters_used.__getitem__, room)


def text_that_fits(highest: int, text: Callable[[int], str], room: int) -> str:
    """Return the longest text that fits into `room` characters, `text(0)` if no text fits.

    highest: the size of the whole text. The sizes from 0 to this number are tried.

    text: makes the text for a size. Below `highest` it must grow with the size. The text for
        `highest` itself may be shorter than the one before, as it needs no mark of a cut.
    """
    whole_text = text(highest)
    if len(whole_text) <= room:
        return whole_text
    return text(largest_size(highest - 1, lambda size: len(text(size)), room))


def cut(document: Any, room: int) -> str:
    """Return a document as JSON of at most `room` characters.

    As much is kept as fits. Three things are tried in this order:

    1. the whole document;
    2. the document with all its lists, and its long texts shortened as little as possible;
    3. the document with the shortest texts, and long lists shortened as little as possible. Then
       the key `truncated` is set.
    """
    whole_document = len(_TEXT_CHARACTERS)

    def with_shorter_texts(choice: int) -> str:
        """Return the document with texts of at most `_TEXT_CHARACTERS[choice]` characters."""
        if choice == whole_document:
            return compact(document)
        return compact(_shorten(document, _TEXT_CHARACTERS[choice]))

    def with_shorter_lists(power: int) -> str:
        """Return the document with the shortest texts, and lists of at most `2**power` entries."""
        shortened = _shorten(document, _TEXT_CHARACTERS[0], 2**power)
        return compact({**shortened, "truncated": True})

    text = text_that_fits(whole_document, with_shorter_texts, room)
    if len(text) <= room:
        return text
    return text_that_fits(_MAX_ENTRIES_POWER, with_shorter_lists, room)


def _shorten(value: Any, most_characters: int, entries: int | None = None) -> Any:
    """Shorten the texts and lists in a value, at any depth.

    value: a value of JSON.
    most_characters: the length to which texts are cut.
    entries: the length to which lists are cut. None leaves lists as they are.
    """
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
