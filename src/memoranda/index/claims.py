"""The claims of notes (note/claims.py) as the index keeps them, and which of them cannot both hold.

Notes are compared within a space and a scope: all projects of ours are one space, each bank and
each other project is a space alone.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from memoranda.index.tables import Row
from memoranda.note.model import (
    BUILT_IN_PROJECTS,
    GRAPH_PROJECT,
    KV_PROJECT,
    TRACE_PROJECT,
    Note,
)

if TYPE_CHECKING:
    from memoranda.note.claims import Claim

# A key has one value anyway, and traces of sessions say nothing about how things are.
_WITHOUT_CLAIMS = (KV_PROJECT, TRACE_PROJECT)
_BANKS = "banks"
# Notes about one subject that are compared.
_MOST_NOTES = 100


class ClaimRow(NamedTuple):
    """A claim and the row of its note."""

    note: int
    claim: Claim


def rows_of(note: Note, body: str) -> list[Row]:
    """The rows of table `claim` for a note, without the column that names the note."""
    if note.project in _WITHOUT_CLAIMS:
        return []
    # 9 ms, which processes that only read need not take
    from memoranda.note.claims import claims, item_claims

    statements = list(item_claims(note.title, note.observations, note.relations))
    if note.project != GRAPH_PROJECT:
        statements += claims(body)
    place = f"{_space(note)}\0{note.scope}"
    rows: dict[tuple[str, int], Row] = {}
    for claim in statements:
        subject = f"{place}\0{claim.subject}"
        rows.setdefault((subject, claim.line), {**claim._asdict(), "subject": subject})
    return list(rows.values())


def _space(note: Note) -> str:
    """Where a note's subjects are the same things."""
    if note.project == _BANKS:
        return f"{_BANKS}/{note.path.partition('/')[0]}"
    if note.project in BUILT_IN_PROJECTS:
        return ""
    return note.project


def rivals(db: sqlite3.Connection, rows: Iterable[int]) -> Iterator[tuple[ClaimRow, ClaimRow]]:
    """Pairs of claims that cannot both be true: one of these notes, and one of another note."""
    subjects = db.execute(
        "select distinct a.subject from claim a join claim b on b.subject = a.subject"
        " and b.note <> a.note and b.value <> a.value"
        " where a.note in (select value from json_each(?))",
        (json.dumps(list(rows)),),
    ).fetchall()
    for (subject,) in subjects:
        yield from _differing(db, subject)


def contested(db: sqlite3.Connection) -> Iterator[list[ClaimRow]]:
    """The claims of each subject about which notes do not agree."""
    subjects = db.execute(
        "select subject from claim group by subject"
        " having count(distinct note) > 1 and count(distinct value) > 1 order by min(note)"
    ).fetchall()
    for (subject,) in subjects:
        yield _claims_about(db, subject)


def _claims_about(db: sqlite3.Connection, subject: str) -> list[ClaimRow]:
    # The newest notes have the highest rows.
    rows = db.execute(
        "select note, name, value, line, start, stop from claim where subject = ?"
        f" order by note desc limit {_MOST_NOTES}",
        (subject,),
    )
    from memoranda.note.claims import Claim

    plain_subject = subject.rpartition("\0")[2]
    return [ClaimRow(note, Claim(plain_subject, *values)) for note, *values in rows]


def _differing(db: sqlite3.Connection, subject: str) -> Iterator[tuple[ClaimRow, ClaimRow]]:
    from memoranda.note.claims import differ

    claim_rows = _claims_about(db, subject)
    for first in claim_rows:
        for second in claim_rows:
            if first.note != second.note and differ(first.claim, second.claim):
                yield first, second
