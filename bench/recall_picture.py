"""Draw the table of docs/recall.md as bars.

    python bench/recall_picture.py [PAGE] [PICTURE]

Every row of the page's table becomes a group of bars, one for each column with a figure, so the
picture cannot say anything else than the table. Without arguments: docs/recall.md and
docs/recall.svg.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import dropwhile, takewhile
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"

# Columns of the table before the figures: the set and how many questions it has.
_NAMES = 2
_COLOURS = ("#9aa5b1", "#2b6cb0", "#d6a44c", "#2f855a")
_WIDTH = 720
_LABEL = 150
_SCALE = (_WIDTH - _LABEL - 60) / 100
_BAR = 11
_GAP = 12
_TOP = 40


@dataclass(frozen=True)
class Group:
    """A set, and its figure in each column, None where it was not measured."""

    name: str
    figures: list[float | None]


def main(arguments: Sequence[str]) -> int:
    """Read the page and write the picture."""
    page = DOCS / "recall.md"
    picture = DOCS / "recall.svg"
    if arguments:
        page = Path(arguments[0])
    if len(arguments) > 1:
        picture = Path(arguments[1])
    columns, groups = table(page.read_text(encoding="utf-8"))
    picture.write_text(drawn(columns, groups), encoding="utf-8")
    return 0


def table(text: str) -> tuple[list[str], list[Group]]:
    """The names of the columns with figures, and the rows, of the first table in a page."""
    before_table = dropwhile(lambda line: not line.startswith("|"), text.splitlines())
    lines = takewhile(lambda line: line.startswith("|"), before_table)
    header, _, *rows = [_cells(line) for line in lines]
    groups = []
    for name, _, *cells in rows:
        short = name.partition(":")[0]
        figures = [float(cell) if cell else None for cell in cells]
        groups.append(Group(short, figures))
    return header[_NAMES:], groups


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def drawn(columns: Sequence[str], groups: Sequence[Group]) -> str:
    """The bars as SVG."""
    parts = [_legend(columns)]
    at = _TOP
    for group in groups:
        bars = [(number, value) for number, value in enumerate(group.figures) if value is not None]
        height = len(bars) * _BAR
        middle = at + height / 2 + 4
        parts.append(_text(_LABEL - 8, middle, group.name, anchor="end"))
        for number, value in bars:
            parts.append(_bar(at, value, _COLOURS[number % len(_COLOURS)]))
            at += _BAR
        at += _GAP
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {at}"'
        ' font-family="sans-serif" font-size="11">\n'
        "<title>Texts found among the first ten, of 100 that answer</title>\n"
        f'<rect width="{_WIDTH}" height="{at}" fill="#fff"/>\n{body}\n</svg>\n'
    )


def _legend(columns: Sequence[str]) -> str:
    parts = []
    x = _LABEL
    for name, colour in zip(columns, _COLOURS, strict=False):
        parts.append(f'<rect x="{x}" y="12" width="10" height="10" fill="{colour}"/>')
        parts.append(_text(x + 15, 21, name))
        x += 30 + 7 * len(name)
    return "\n".join(parts)


def _bar(top: float, value: float, colour: str) -> str:
    width = value * _SCALE
    rect = f'<rect x="{_LABEL}" y="{top}" width="{width:.1f}" height="{_BAR - 1}" fill="{colour}"/>'
    return rect + "\n" + _text(_LABEL + width + 4, top + 9, f"{value:.1f}")


def _text(x: float, top: float, text: str, anchor: str = "start") -> str:
    return (
        f'<text x="{x:.1f}" y="{top:.1f}" text-anchor="{anchor}" fill="#222">{escape(text)}</text>'
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
