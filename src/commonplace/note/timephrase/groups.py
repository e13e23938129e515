"""Adjacent time words as groups: one group is one time."""

from __future__ import annotations

import re
from dataclasses import dataclass

from commonplace.note.timephrase.days import DAY_KINDS
from commonplace.note.timephrase.scan import scan
from commonplace.note.timephrase.text import Text
from commonplace.note.timephrase.tokens import Token

_BETWEEN = re.compile(r"(?:[\s,:]|的|在|于|(?<![a-z0-9_])(?:at|on|by|before|the|in)(?![a-z0-9_]))*")
PARAGRAPH = re.compile(r"\n[^\S\n]*\n")
"""What stands between two paragraphs."""


@dataclass(frozen=True, slots=True)
class Group:
    """Time words with nothing but connecting words between them, and the user's own text of them."""

    tokens: tuple[Token, ...]
    phrase: str
    span: tuple[int, int]

    def of(self, *kinds: str) -> list[Token]:
        return [token for token in self.tokens if token.kind in kinds]


def groups(text: Text) -> list[Group]:
    """The groups of a text in order. Words that count only in company ("the morning sun") make none alone."""
    runs: list[list[Token]] = []
    for token in scan(text.plain):
        if runs and _adjacent(text.plain, runs[-1][-1], token):
            runs[-1].append(token)
        else:
            runs.append([token])
    return [_group(text, kept) for run in runs if (kept := _kept(run))]


def _adjacent(plain: str, first: Token, second: Token) -> bool:
    between = plain[first.end : second.start]
    if between.strip() == "of":
        return second.kind == "span"
    return bool(_BETWEEN.fullmatch(between)) and not PARAGRAPH.search(between)


def _kept(run: list[Token]) -> list[Token]:
    """The run without words that mean no time here: "sat" or "sun" beside a surer day or without a clock,
    and everything when no sure word is left."""
    has_clock = any(token.kind == "clock" for token in run)
    sure_day = any(token.kind in DAY_KINDS and not token.weak for token in run)
    kept = [t for t in run if not (t.kind == "weekday" and t.weak and (sure_day or not has_clock))]
    if any(not token.weak for token in kept):
        return kept
    kinds = {token.kind for token in kept}
    return kept if "clock" in kinds and len(kinds) > 1 else []


def _group(text: Text, tokens: list[Token]) -> Group:
    start, end = tokens[0].start, max(token.end for token in tokens)
    return Group(tuple(tokens), text.phrase(start, end), text.span(start, end))
