"""Facts about a home that are known without opening it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from memoranda.index.glance import CANDIDATES_PER_NOTE, bodies_with
from memoranda.sources.layout import Layout


def bodies_known(home: Path, texts: Sequence[str], limit: int) -> list[str] | None:
    """Return the bodies of notes that contain at least one of these texts, from the index.

    home: the folder of the home.
    texts: the texts to look for.
    limit: how many notes the caller needs. More are returned, because some of them may not be shown.

    None means that the index could not be read in time.
    """
    return bodies_with(Layout(home).index, texts, CANDIDATES_PER_NOTE * limit)
