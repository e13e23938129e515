"""The one form of every list: a part of its rows, the number of all rows, and where to go on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from memoranda.documents.cutting import number_that_fit
from memoranda.value_object import FrozenValueObject

Document = dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Listed(FrozenValueObject):
    """A part of a list.

    rows: the documents of this part; on the page, what it shows of each.
    total: how many rows the whole list has.
    next: the offset of the next part. None at the end of the list.
    is_lower_bound: whether `total` is only a lower bound.

    Each face writes it under the keys of its contract.
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
        """The part that begins after `offset` rows. Without `total`, it ends the list."""
        end = offset + len(rows)
        if total is None:
            total = end
        has_more = bool(rows) and (is_lower_bound or end < total)
        return cls(list(rows), total, end if has_more else None, is_lower_bound)

    def first(self, count: int, offset: int = 0) -> Listed:
        """The first rows of this part, which begins after `offset` rows of the list."""
        if count >= len(self.rows):
            return self
        return Listed(self.rows[:count], self.total, offset + count, self.is_lower_bound)

    def fit(self, lengths: Sequence[int], room: int, offset: int = 0) -> Listed:
        """Keep as many whole rows as fit into `room` characters, at least one.

        lengths: what each row takes.
        """
        return self.first(max(number_that_fit(lengths, room), 1), offset)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)
