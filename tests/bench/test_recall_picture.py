"""The picture of docs/recall.md is drawn from the table of that page."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

import recall_picture

SVG = "{http://www.w3.org/2000/svg}"

PAGE = """Text.

| set | questions | FTS5 | ours |
|---|---|---|---|
| Chats: what was said | 1,200 | 50.0 | 75.5 |
| Talks & more | 80 | | 12.5 |
"""


def test_the_picture_says_what_the_table_says() -> None:
    columns, groups = recall_picture.table((recall_picture.DOCS / "recall.md").read_text("utf-8"))
    drawn = recall_picture.drawn(columns, groups)
    assert (recall_picture.DOCS / "recall.svg").read_text("utf-8") == drawn


def test_each_figure_is_a_bar_and_an_empty_cell_is_none() -> None:
    columns, groups = recall_picture.table(PAGE)
    picture = ElementTree.fromstring(recall_picture.drawn(columns, groups))
    texts = [element.text for element in picture.iter(f"{SVG}text")]
    assert texts == ["FTS5", "ours", "Chats", "50.0", "75.5", "Talks & more", "12.5"]
    bars = [element for element in picture.iter(f"{SVG}rect") if element.get("height") == "10"]
    # Two of the legend, then a bar for each figure
    assert len(bars) == 5


def test_bars_are_as_long_as_their_figures() -> None:
    columns, groups = recall_picture.table(PAGE)
    picture = ElementTree.fromstring(recall_picture.drawn(columns, groups))
    bars = [element for element in picture.iter(f"{SVG}rect") if element.get("height") == "10"]
    widths = [float(bar.get("width", "0")) for bar in bars[2:]]
    assert widths[0] * 1.51 == pytest.approx(widths[1], rel=0.01)
