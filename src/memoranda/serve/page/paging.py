"""Makes pages of a list whose length is unknown, such as the log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memoranda.documents.listed import Listed


def page_of_list(rows: Sequence[Any], offset: int, limit: int) -> Listed:
    """Return a page of a list.

    rows: the rows of the page. If the list goes on, they have one row more than `limit`.
    offset: how many rows of the list are before them.
    """
    listed = list(rows[:limit])
    end = offset + len(listed)
    has_more = len(rows) > limit
    return Listed(listed, end, end if has_more else None, has_more)
