"""Whether a question asks for several things: their notes are seldom of one sitting."""

from __future__ import annotations

import re

_HELPS = "is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|might|may|must"
_ASKS = r"\b(?:what|which|who|whom|where)\b"
_WORD = r"[\w+'’/-]+"
_SEVERAL = re.compile(
    rf"{_ASKS}\s+(?:are|were|have|has)\b"  # what are, where has
    rf"|{_ASKS}(?:\s+(?!(?:{_HELPS})\b){_WORD}){{1,4}}\s+(?:are|were|have|has)\b"  # which of her friends have
    rf"|\b(?:what|which)\s+(?:(?!(?:{_HELPS})\b){_WORD}\s+){{0,4}}?(?!(?:{_HELPS}|this|always)\b)[\w+/-]{{2,}}(?<![sui])s"
    rf"(?=\s+(?:{_HELPS}|in|of|to|for|from|on|with|at|that|and|or)\b|\s*[,?])"  # what kinds of, which books did
    r"|\bhow many\b|\bboth\b"
    r"|哪些|哪几|几[个种次本位家]|都有|都.{0,8}过",
    re.I,
)


def asks_several(text: str) -> bool:
    """Whether `text`, a question, asks for several things: by a plural, by the perfect tense ("where has she
    worked"), or by how many they are."""
    return _SEVERAL.search(text) is not None
