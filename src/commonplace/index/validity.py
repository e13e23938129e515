"""Which notes are valid at a moment: from `begins` on, before `ends`, and not superseded by then.

A note says so in its header (`valid_from`, `valid_until`), or the header of another does (`supersedes`). A whole number
of days since 1970 stands for that day in whatever time zone is asked about, any other number for a moment.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from commonplace.clock import EPOCH, microseconds
from commonplace.text.unicode import one_line

if TYPE_CHECKING:
    from commonplace.note.model import Note

Span = tuple[int, int, int | None]
"""Row, begin and end of a note."""

_DAY = 86_400_000_000
HAS_BEGUN = f"n.begins <= case when n.begins % {_DAY} then ? else ? end"
"""A condition on `note n`; its values are those of `times`."""
_GIVEN = "(select value from json_each(?1))"
_NAME = "case when new.permalink like '%-' || substr(new.id, 1, 8) then substr(new.id, 1, 8) else new.permalink end"
"""How the later note is called: a memory by the beginning of its id."""
SUPERSEDES = (
    "superseded s join note new on new.row = s.note join note old on old.id = s.id and old.row <> new.row and"
    " (new.scope = old.scope or new.scope = 'global' and (old.scope = 'global'"
    " or lower(coalesce(new.provenance ->> 'who', '')) in (lower(old.scope), '', 'owner', 'import')))"
)
"""The `old` notes and the `new` ones that supersede them. What one agent keeps to himself no other agent ends."""
_LIMITED = f"select row, begins, ends from note where limited union all select old.row, 0, new.begins from {SUPERSEDES}"


def span(note: Note) -> tuple[int, int | None, int | None]:
    """From when until when a note is valid, in microseconds since 1970 (None = without end); and 1 if it is not valid
    all the time since it was written, else None.

    Without `valid_from` it began with its event or when it was written, whichever came first; if it is said to have
    ended before that, it was valid always before.
    """
    ends = None if note.valid_until is None else microseconds(note.valid_until)
    begins = created = microseconds(note.created)
    if note.valid_from is not None:
        begins = microseconds(note.valid_from)
        return begins, ends, 1 if ends is not None or begins > created - _DAY else None
    if note.date:
        try:
            begins = min(begins, microseconds(datetime.fromisoformat(note.date[:10]).replace(tzinfo=UTC)))
        except (ValueError, OverflowError):
            pass  # a date written another way than by its days
    return (begins, None, None) if ends is None else (0 if ends <= begins else begins, ends, 1)


def times(moment: datetime) -> tuple[int, int]:
    """A moment, and the day it lies in in its own zone, as HAS_BEGUN compares them."""
    return microseconds(moment), (datetime(moment.year, moment.month, moment.day, tzinfo=UTC) - EPOCH).days * _DAY


def limited(db: sqlite3.Connection) -> list[Span]:
    """The notes that are not valid all the time since they were written: usually few."""
    return db.execute(_LIMITED).fetchall()


def invalid(spans: Iterable[Span], moment: datetime) -> list[int]:
    """The rows that are over, superseded or not valid yet at `moment`."""
    now, today = times(moment)
    return sorted({
        row for row, begins, ends in spans
        if begins > (now if begins % _DAY else today) or (ends is not None and ends <= (now if ends % _DAY else today))
    })  # fmt: skip


def excluded(rows: Sequence[int], name: str) -> str:
    """An SQL condition that leaves out these rows, which stand in the column `name`; "" for none."""
    return f"{name} not in ({', '.join(map(str, rows))})" if rows else ""


def marks(db: sqlite3.Connection, rows: Iterable[int], viewer: str | None) -> dict[int, str]:
    """What is to be said of those of `rows` that are not valid all the time: `superseded by …`, `valid until …`."""
    given = json.dumps(list(rows))
    said = "case when ends is null then 'valid from ' || {} else 'valid until ' || {} end"
    said = said.format(*(f"date({name} / 1000000, 'unixepoch')" for name in ("begins", "ends")))
    found = dict(db.execute(
        f"select row, {said} from note where row in {_GIVEN} and (ends is not null or begins > created)", (given,)
    ))  # fmt: skip
    found |= db.execute(
        f"select old.row, 'superseded by ' || {_NAME} from {SUPERSEDES} where old.row in {_GIVEN}"
        " and (?2 is null or new.scope in ('global', 'agent:' || ?2))"
        " order by new.begins desc",
        (given, viewer),
    )
    return {row: one_line(mark) for row, mark in found.items()}  # a permalink may be written with anything in it
