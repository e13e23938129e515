"""Recognize what holds from now on: what somebody prefers, and what they ask for once and for all.

The words are in standing.toml. The categories of memories and the lessons of sessions are made of
the same words.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

from memoranda.text.pattern import lazy_pattern

LIKING = lazy_pattern(
    r"\b(?:I|we|you|they|he|she|who|people|to|not|'?d|would|don't|doesn't|both)"
    r" (?:also |really |still |always |particularly )?like\b",
    re.IGNORECASE,
)
"""`like` as a verb: "I like", "to like". Elsewhere it mostly compares: "just like we agreed"."""

SENTENCE = lazy_pattern(r"[^\n.!?。！？]+(?:\.(?=\S)[^\n.!?。！？]*)*[.!?。！？]*")
"""A sentence. A dot inside a name does not end it."""

MAX_CHARACTERS = 6_000
"""A longer text is read up to here."""


@cache
def preference_words() -> dict[str, list[str]]:
    """Return the words of preferences, by how much they say: `strong` or `normal`."""
    return {**_table()["preferences"]}


@cache
def order_rules() -> list[str]:
    """Return regular expressions for orders. A sentence that matches one of them is an order."""
    return _table()["orders"]["rules"]


def says_what_holds(text: str) -> bool:
    """Whether a text says how things are to be from now on.

    It names a preference ("I prefer trains", 我更喜欢坐火车), or has a sentence that asks for something
    once and for all ("Always answer in French", 以后请用中文).

    text: what somebody says, without their name before it.
    """
    beginning = text[:MAX_CHARACTERS]
    if _preference().search(beginning) or LIKING.search(beginning):
        return True
    order = _order()
    return any(
        order.search(match[0].strip(" \t-*•")) is not None for match in SENTENCE.finditer(beginning)
    )


@cache
def _table() -> dict[str, dict[str, list[str]]]:
    """Return standing.toml."""
    return tomllib.loads(Path(__file__).with_name("standing.toml").read_text(encoding="utf-8"))


@cache
def _preference() -> re.Pattern[str]:
    """Return a pattern that finds words of preferences, except `like`, which needs a context."""
    words = [word for kind in preference_words().values() for word in kind if word != "like"]
    latin_words = "|".join(re.escape(word) for word in words if word.isascii())
    # Chinese has no blanks between words.
    other_words = "|".join(word for word in words if not word.isascii())
    return re.compile(rf"\b(?:{latin_words})\b|{other_words}", re.IGNORECASE)


@cache
def _order() -> re.Pattern[str]:
    """Return the pattern of a sentence that is an order."""
    return re.compile("|".join(f"(?:{rule})" for rule in order_rules()), re.IGNORECASE)
