"""How rows look on a terminal: columns by the width of their characters, in colour. Pipes never see this."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from unicodedata import combining, east_asian_width

from commonplace.text.unicode import one_line

_GAP = "  "
_LEAST = 12
"""Columns the last cell has at least, however narrow the terminal."""
_STYLES = {"head": "1", "id": "33", "kind": "36", "dim": "2", "error": "31;1"}


def is_terminal() -> bool:
    """Whether a person reads stdout."""
    return sys.stdout is not None and sys.stdout.isatty()


def paint(text: str, style: str, stream: object = None) -> str:
    """`text` in colour where the stream [stdout] is a terminal that has colours, and NO_COLOR is not set."""
    stream = sys.stdout if stream is None else stream
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not getattr(stream, "isatty", bool)()
    return text if is_plain else f"\x1b[{_STYLES[style]}m{text}\x1b[0m"


def width(text: str) -> int:
    """How many columns of a terminal `text` takes: two for a Chinese character, none for an accent of its own."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)


def fit(text: str, columns: int) -> str:
    """`text` cut to so many columns, with an ellipsis when it was longer."""
    if width(text) <= columns:
        return text
    kept, taken = [], 1
    for char in text:
        taken += width(char)
        if taken > columns:
            break
        kept.append(char)
    return "".join(kept) + "…"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], styles: Sequence[str] = ("id", "kind")) -> list[str]:
    """Lines of a table as wide as the terminal; the last column is cut to what the others leave. `styles`: those of the
    first columns. Control characters are shown as they are in no text, so no cell can move the cursor."""
    import shutil  # 6 ms

    cells = [[_printable(cell) for cell in row] for row in rows]
    widths = [max(map(width, column)) for column in zip(head, *cells, strict=True)]
    room = shutil.get_terminal_size().columns - sum(widths[:-1]) - len(_GAP) * (len(widths) - 1)
    last = max(room, _LEAST)
    lines = [paint(_GAP.join(_padded(each, size) for each, size in zip(head, widths, strict=True)).rstrip(), "head")]
    for row in cells:
        shown = [_padded(cell, size) for cell, size in zip(row[:-1], widths, strict=False)] + [fit(row[-1], last)]
        painted = [paint(cell, style) for cell, style in zip(shown, styles, strict=False)]
        lines.append(_GAP.join([*painted, *shown[len(painted) :]]))
    return lines


def _padded(text: str, columns: int) -> str:
    return text + " " * (columns - width(text))


def _printable(text: str) -> str:
    flat = one_line(text)
    return flat if flat.isprintable() else "".join(char if char.isprintable() else "\ufffd" for char in flat)
