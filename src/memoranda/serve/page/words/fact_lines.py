"""Shows the category of a fact as a part of its own in a line of Markdown that was compared."""

from __future__ import annotations

import re

from memoranda.documents.differences import Line
from memoranda.text.word_diff import Part

FACT = "fact"
"""The kind of the part that has the category of a fact, before its text."""
OPENING = re.compile(r"\s*(?:[-*+]|#+)\s+(?:\[([^\[\]\n]{2,60})\]\s+)?")
"""The marks before an item of a list, with the category of a fact, or before a heading."""


def with_fact(line: Line) -> Line:
    """Return a line with the category of its fact as a separate part.

    A line without a fact stays as it is in the file, since its marks may be what was changed.
    """
    if not line:
        return line
    first = line[0]
    opening = OPENING.match(first.text)
    if opening is None or not opening[1]:
        return line
    return [Part(FACT, opening[1]), Part(first.kind, first.text[opening.end() :]), *line[1:]]
