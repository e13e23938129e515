"""The differences of two texts, line by line, and within a line word by word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from memoranda.text.compare import changes

SAME = " "
OLD = "-"
NEW = "+"
# Blanks, a word, or one sign: the units of a comparison.
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
# Beyond that the comparison takes long, and nobody reads it
_LONGEST = 200_000
# Lines less alike are shown as an old and a new one.
_ALIKE = 0.3


class Part(NamedTuple):
    """A piece of a line: SAME in both texts, only in the OLD one, or only in the NEW one."""

    kind: str
    text: str


def changed_lines(before: str, after: str) -> Iterator[list[Part]]:
    """The lines that differ, each as its parts; lines that stayed are left out."""
    old_lines = before[:_LONGEST].splitlines()
    new_lines = after[:_LONGEST].splitlines()
    for tag, old_start, old_end, new_start, new_end in changes(old_lines, new_lines):
        if tag == "equal":
            continue
        yield from _block(old_lines[old_start:old_end], new_lines[new_start:new_end])


def _block(old_lines: Sequence[str], new_lines: Sequence[str]) -> Iterator[list[Part]]:
    """The parts of changed lines at one place: word by word if a line was edited, otherwise old and
    new.
    """
    if len(old_lines) != len(new_lines):
        yield from ([Part(OLD, line)] for line in old_lines)
        yield from ([Part(NEW, line)] for line in new_lines)
        return
    for old, new in zip(old_lines, new_lines, strict=True):
        parts = changed_words(old, new)
        same_length = sum(len(part.text) for part in parts if part.kind == SAME)
        if 2 * same_length < _ALIKE * (len(old) + len(new)):
            yield [Part(OLD, old)]
            yield [Part(NEW, new)]
        else:
            yield parts


def changed_words(old_text: str, new_text: str) -> list[Part]:
    """Two texts as one, word by word: what stayed, what went, what came."""
    old_words = _WORDS.findall(old_text)
    new_words = _WORDS.findall(new_text)
    parts = []
    for tag, old_start, old_end, new_start, new_end in changes(old_words, new_words):
        old = "".join(old_words[old_start:old_end])
        new = "".join(new_words[new_start:new_end])
        if tag == "equal":
            parts.append(Part(SAME, old))
            continue
        if old:
            parts.append(Part(OLD, old))
        if new:
            parts.append(Part(NEW, new))
    return parts
