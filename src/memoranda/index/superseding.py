"""Find which note supersedes which, by the key `supersedes` of headers (docs/format.md).

A newer note *supersedes* an older one: the older note is no longer valid, but is kept. The key has
the id of the older note, or the name by which a link would name the older note. Like a link, a name
is resolved when somebody asks, so the name may be written before the note that has it.

A *pair* is an older note and the newer note that supersedes it. In SQL they are `old` and `new`.
Pairs by id come from table `superseded` (_BY_ID). Pairs by name are resolved here and passed to SQL
as JSON (_BY_NAME).
"""

from __future__ import annotations

import json
import posixpath
import sqlite3
from collections.abc import Iterable
from datetime import timedelta, tzinfo
from typing import NamedTuple

from memoranda.clock import EPOCH
from memoranda.index.filters import DAY, Span, seen_by
from memoranda.index.resolve import LinkSource, LinkText, Resolver
from memoranda.note.links import parse_link
from memoranda.text.unicode import one_line

# A note that only one agent sees cannot end the validity of notes of others.
_MAY_END = (
    "old.row <> new.row and"
    " (new.scope = old.scope or new.scope = 'global' and (old.scope = 'global'"
    " or lower(coalesce(new.provenance ->> 'who', '')) in (lower(old.scope), '', 'owner', 'import')))"
)
# Pairs of an `old` note and a `new` one that supersedes it: by id, and by name.
_BY_ID = (
    f"superseded s join note new on new.row = s.note join note old on old.id = s.id and {_MAY_END}"
)
_BY_NAME = (
    "json_each(:pairs) pair join note old on old.row = pair.value ->> 0"
    f" join note new on new.row = pair.value ->> 1 and {_MAY_END}"
)
# A pair of the owner's note and a note of an agent, an import or a page.
_IS_DISPUTED = (
    "old.ends is null and old.provenance ->> 'trust' = 'owner'"
    " and coalesce(new.provenance ->> 'trust', '') <> 'owner'"
)
# Selects the spans of the notes that have a limit, and of those that another note names by its id.
_LIMITED = (
    "select row, begins, ends from note where limited"
    f" union all select old.row, 0, new.begins from {_BY_ID}"
)
# Selects the names in `supersedes` that are not the id of a note, with the note that has them.
_NAMES = (
    "select s.id, s.note, p.name, n.path, n.scope from superseded s join note n on n.row = s.note"
    " join project p on p.id = n.project where s.is_name"
    " and not exists (select 1 from note other where other.id = s.id)"
)
_GIVEN = "(select value from json_each(:given))"
# The name of the newer note in a remark: for a memory, the beginning of its id.
_NAME = (
    "case when new.permalink like '%-' || substr(new.id, 1, 8)"
    " then substr(new.id, 1, 8) else new.permalink end"
)


class _Pair(NamedTuple):
    """A note and the newer note that supersedes it.

    old: the row of the older note.
    new: the row of the newer note.
    """

    old: int
    new: int


def valid_spans(db: sqlite3.Connection) -> list[Span]:
    """Return the spans of the notes that are not valid at all times, which usually are few.

    Such a note has a day on which it begins or ends, or is superseded by another note.
    """
    spans = db.execute(_LIMITED).fetchall()
    pairs = _pairs_by_name(db)
    if pairs:
        statement = f"select old.row, 0, new.begins from {_BY_NAME}"
        spans += db.execute(statement, {"pairs": json.dumps(pairs)})
    return spans


def disputed_rows(db: sqlite3.Connection) -> list[int]:
    """Return the rows of the owner's notes that somebody else's note says it supersedes.

    A note that has an end of its own is left out.
    """
    values = {"pairs": json.dumps(_pairs_by_name(db))}
    # A dict keeps each row once, in the order in which it was found.
    rows: dict[int, None] = {}
    for pairs in (_BY_ID, _BY_NAME):
        disputed = db.execute(f"select old.row from {pairs} where {_IS_DISPUTED}", values)
        for (row,) in disputed:
            rows[row] = None
    return list(rows)


def successors(db: sqlite3.Connection, row: int) -> list[int]:
    """Return the rows of the notes that supersede the note in `row`."""
    return _paired_rows(db, row, result_side="new", known_side="old")


def predecessors(db: sqlite3.Connection, row: int) -> list[int]:
    """Return the rows of the notes that the note in `row` supersedes."""
    return _paired_rows(db, row, result_side="old", known_side="new")


def validity_marks(
    db: sqlite3.Connection, rows: Iterable[int], viewer: str | None, zone: tzinfo | None = None
) -> dict[int, str]:
    """Return a remark for each note that is not valid at all times, by row.

    Examples: `superseded by team/plan`, `valid until 2026-05-31`.

    rows: the notes to look at.
    viewer: the agent that asks. None is the owner. A newer note is named only if visible.
    zone: the time zone of the days. None means the system's zone.
    """
    # Notes whose header has a day on which they begin or end.
    rows_json = json.dumps(list(rows))
    limited = db.execute(
        "select row, begins, ends from note"
        f" where row in {_GIVEN} and (ends is not null or begins > created)",
        {"given": rows_json},
    )
    marks: dict[int, str] = {}
    for row, begins, ends in limited:
        if ends is None:
            marks[row] = f"valid from {_day(begins, zone)}"
        else:
            marks[row] = f"valid until {_day(ends, zone)}"

    # Notes that are superseded. This mark replaces one of the header.
    pairs_by_name = _pairs_by_name(db)
    values = {"given": rows_json, "viewer": viewer, "pairs": json.dumps(pairs_by_name)}
    sources = [_BY_ID]
    # Mostly there are none, and a search need not ask for them.
    if pairs_by_name:
        sources.append(_BY_NAME)
    for pairs in sources:
        # Of several newer notes, the one that begins first is named: it comes last, and replaces the
        # marks before it.
        marks |= db.execute(
            f"select old.row, 'superseded by ' || {_NAME} from {pairs} where old.row in {_GIVEN}"
            f" and {seen_by('new.scope', ':viewer')} order by new.begins desc",
            values,
        )
    # A permalink in the header may contain control characters.
    return {row: one_line(mark) for row, mark in marks.items()}


def _paired_rows(
    db: sqlite3.Connection, row: int, *, result_side: str, known_side: str
) -> list[int]:
    """Return the rows of notes that supersede the note in `row` or are superseded by it, each once.

    result_side: the side of the pair whose rows are returned, "old" or "new".
    known_side: the other side, on which `row` is.
    """
    values = {"row": row, "pairs": json.dumps(_pairs_by_name(db))}
    # A dict keeps each row once, in the order in which it was found.
    paired_rows: dict[int, None] = {}
    for pairs in (_BY_ID, _BY_NAME):
        matches = db.execute(
            f"select {result_side}.row from {pairs} where {known_side}.row = :row", values
        )
        for (paired_row,) in matches:
            paired_rows[paired_row] = None
    return list(paired_rows)


def _pairs_by_name(db: sqlite3.Connection) -> list[_Pair]:
    """Return the pairs where the header of the newer note gives the name of the older one."""
    names = db.execute(_NAMES).fetchall()
    if not names:
        return []
    # The resolver sees all notes: the scopes are compared later, when the pairs are used.
    resolver = Resolver(db, viewer=None)
    pairs: list[_Pair] = []
    for name, row, project, path, scope in names:
        target_project, target = parse_link(name)
        source = LinkSource(project, posixpath.dirname(path), scope)
        answer = resolver.link(LinkText(target, target_project), source)
        if answer.row is not None:
            pairs.append(_Pair(answer.row, row))
    return pairs


def _day(moment: int, zone: tzinfo | None) -> str:
    """Return the day of a moment as YYYY-MM-DD.

    moment: in microseconds since 1970. Midnight UTC means the day itself, in any zone.
    zone: None means the system's zone.
    """
    time = EPOCH + timedelta(microseconds=moment)
    if moment % DAY:
        time = time.astimezone(zone)
    return time.date().isoformat()
