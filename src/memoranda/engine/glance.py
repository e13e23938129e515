"""Facts about a home that are known without opening it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from memoranda.index.glance import may_hold_any
from memoranda.sources.layout import Layout


def may_know(home: Path, texts: Sequence[str]) -> bool:
    """Whether a note may hold one of these texts: False only where none did when the index last
    looked.
    """
    return may_hold_any(Layout(home).index, texts)
