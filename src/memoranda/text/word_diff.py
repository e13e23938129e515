"""The differences of two texts, word by word."""

from __future__ import annotations

import re
from typing import NamedTuple

from memoranda.text.compare import changes

SAME = " "
OLD = "-"
NEW = "+"
# Letters of scripts without blanks between words: Chinese and Japanese. Each counts as a word.
_SINGLE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
# Blanks, a word, or one sign: the units of a comparison.
_WORDS = re.compile(rf"\s+|[{_SINGLE}]|[^\W{_SINGLE}]+|[^\w\s]")


class Part(NamedTuple):
    """A piece of a line: SAME in both texts, only in the OLD one, or only in the NEW one."""

    kind: str
    text: str


def changed_words(old_text: str, new_text: str) -> list[Part]:
    """Compare two texts word by word. Return the parts of both texts in one list.

    `buy tea`, `buy milk` → `buy ` (SAME), `tea` (OLD), `milk` (NEW).
    """
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
