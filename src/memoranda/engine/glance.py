"""Facts about a home that are known without opening it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from memoranda.index.glance import may_hold_any
from memoranda.sources.layout import Layout


def may_know(home: Path, texts: Sequence[str]) -> bool:
    """Whether a note of the home may hold one of these texts.

    False means that no note held any of them when the index was last brought up to date.
    """
    return may_hold_any(Layout(home).index, texts)
