"""Long notes in pieces: the turns of a conversation, list items, passages of about 200 words."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from commonplace.index.standing import SHORT, manner, parts

_LEAST_LIST, _LEAST_ITEMS = 200, 3
_ITEM = re.compile(r"^(?:[-*+]|\d{1,3}[.)])[ \t]+\S", re.M)
_VOICE = re.compile(r"[^\n:：]{1,80}[:：]")


class Piece(NamedTuple):
    """A piece `text[start:stop]` of a note: about how many words it has, and the folded first name of who says it."""

    start: int
    stop: int
    words: int
    said: str | None


def pieces(text: str, first: int, last: int) -> list[Piece]:
    """What `text[first:last]` is cut into."""
    return [
        Piece(first + start, first + stop, _size(text, first + start, first + stop), _said(text, first + start))
        for start, stop in cut(text[first:last])
    ]


def cut(text: str) -> list[tuple[int, int]]:
    """The turns of a conversation, else list items and passages of about 200 words, as (start, stop)."""
    if len(text) <= SHORT:
        return [(0, len(text))]
    return [piece for start, stop in parts(text) for piece in _items(text, start, stop)] or [(0, len(text))]


def _items(text: str, start: int, stop: int) -> list[tuple[int, int]]:
    """A passage of several list items in pieces; each takes along what follows it, the first the heading before."""
    if stop - start < _LEAST_LIST:
        return [(start, stop)]
    starts = [match.start() for match in _ITEM.finditer(text, start, stop)]
    if len(starts) < _LEAST_ITEMS:
        return [(start, stop)]
    before = text[start : starts[0]].strip()
    if before and not (before.startswith("#") and "\n" not in before):
        starts.insert(0, start)
    else:
        starts[0] = start
    return list(zip(starts, [*starts[1:], stop], strict=True))


def _size(text: str, start: int, stop: int) -> int:
    return max(text.count(" ", start, stop) + 1, (stop - start) // 12)


def _said(text: str, start: int) -> str | None:
    found = _VOICE.match(text, start)
    return None if found is None else _voice(found.group())


@lru_cache(1_000)
def _voice(name: str) -> str | None:
    return manner(f"{name} x").said
