"""Finding the time words of a text."""

from __future__ import annotations

from commonplace.note.timephrase.shapes import shapes, starts
from commonplace.note.timephrase.spelling import tokens_of
from commonplace.note.timephrase.tokens import Token


def scan(plain: str) -> list[Token]:
    """The time words of `plain` (lower case, compatibility form) in order, not overlapping. Words such as
    "tonight" give two tokens with one place."""
    table, found, at = shapes(), [], 0
    for start in starts().finditer(plain):
        if start.start() < at:
            continue
        lead = start[0]
        for shape in table.get("0" if lead.isdigit() else lead, ()):
            match = shape.match(plain, start.start())
            if match and match.end() > match.start():
                tokens = tokens_of(shape.kind, match, at)
                if tokens:
                    found += tokens
                    at = match.end()
                    break
    return found
