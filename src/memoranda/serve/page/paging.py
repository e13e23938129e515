"""A part of a list whose rows nobody counted: what the pager of `documents` says of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memoranda.documents.listed import Listed


def part(rows: Sequence[Any], offset: int, most: int) -> Listed:
    """At most `most` of the rows that follow `offset` others; one row more says there are more."""
    listed = list(rows[:most])
    end = offset + len(listed)
    has_more = len(rows) > most
    return Listed(listed, end, end if has_more else None, has_more)
