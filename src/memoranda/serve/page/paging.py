"""A part of a list whose rows nobody counted: what the pager of `documents` says of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memoranda.documents.listed import Listed


def part(rows: Sequence[Any], offset: int, limit: int) -> Listed:
    """At most `limit` of the rows that follow `offset` others; one row more says there are more."""
    listed = list(rows[:limit])
    end = offset + len(listed)
    has_more = len(rows) > limit
    return Listed(listed, end, end if has_more else None, has_more)
