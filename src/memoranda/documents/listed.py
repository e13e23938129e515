"""The form of every list: a part of its rows, the number of all rows, and where the next part begins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from memoranda.documents.cutting import rows_that_fit
from memoranda.value_object import FrozenValueObject

Document = dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Listed(FrozenValueObject):
    """A part of a list. Each face writes it with the keys of its contract.

    rows: the documents of this part. On the page, these are the values that it shows.
    total: the number of rows of the whole list.
    next: the offset of the next part. None at the end of the list.
    is_lower_bound: whether the list may have more rows than `total`.
    """

    rows: list[Any]
    total: int
    next: int | None = None
    is_lower_bound: bool = False

    @classmethod
    def part(
        cls,
        rows: Sequence[Any],
        total: int | None = None,
        offset: int = 0,
        *,
        is_lower_bound: bool = False,
    ) -> Listed:
        """Make a part of a longer list.

        rows: the rows of this part.
        total: the number of all rows. None means that this part ends the list.
        offset: the number of rows before this part.
        is_lower_bound: whether there may be more rows than `total`.
        """
        end = offset + len(rows)
        if total is None:
            total = end
        has_more = bool(rows) and (is_lower_bound or end < total)
        return cls(list(rows), total, end if has_more else None, is_lower_bound)

    def first(self, count: int, offset: int = 0) -> Listed:
        """Return the first `count` rows of this part.

        offset: the number of rows of the whole list before this part.
        """
        if count >= len(self.rows):
            return self
        return Listed(self.rows[:count], self.total, offset + count, self.is_lower_bound)

    def fit(self, lengths: Sequence[int], room: int, offset: int = 0) -> Listed:
        """Keep as many whole rows as fit into `room` characters, at least one.

        lengths: the characters that each row takes.
        offset: the number of rows before this part.
        """
        return self.first(max(rows_that_fit(lengths, room), 1), offset)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)
