"""Keep the claims of notes in the index, and find claims of two notes that cannot both be true.

A *claim* (note/claims.py) is a statement that a subject has a value: "The port is 8080".

Only claims of the same space and scope are compared. The built-in projects are one space together.
Each memory bank and each other project is a separate space. A *scope* says who may see a note.
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

# A key of project kv has only one value. Traces of sessions do not state facts.
_WITHOUT_CLAIMS = (KV_PROJECT, TRACE_PROJECT)
_BANKS = "banks"
# At most this many notes about one subject are compared.
_MOST_NOTES = 100


class ClaimRow(NamedTuple):
    """A claim with the note that makes it.

    note: the row of the note in the index.
    claim: the claim.
    """

    note: int
    claim: Claim


def rows_of(note: Note, body: str) -> list[Row]:
    """Return the rows of table `claim` for a note, without the column that names the note.

    Empty for key-value entries and traces of sessions, which make no claims.

    body: the text of the note after its frontmatter.
    """
    if note.project in _WITHOUT_CLAIMS:
        return []
    # This import takes 9 ms, which processes that only read notes do not need.
    from memoranda.note.claims import claims, item_claims

    statements = list(item_claims(note.title, note.observations, note.relations))
    if note.project != GRAPH_PROJECT:
        statements += claims(body)
    space_and_scope = f"{_space(note)}\0{note.scope}"
    rows: dict[tuple[str, int], Row] = {}
    for claim in statements:
        subject = f"{space_and_scope}\0{claim.subject}"
        # Of two claims about a subject on one line, the first counts.
        rows.setdefault((subject, claim.line), {**claim._asdict(), "subject": subject})
    return list(rows.values())


def _space(note: Note) -> str:
    """Return the name of the space in which a subject of the note always means one thing.

    "" is the space of the built-in projects, `banks/tram` the space of the bank `tram`.
    """
    if note.project == _BANKS:
        return f"{_BANKS}/{note.path.partition('/')[0]}"
    if note.project in BUILT_IN_PROJECTS:
        return ""
    return note.project


def rivals(db: sqlite3.Connection, rows: Iterable[int]) -> Iterator[tuple[ClaimRow, ClaimRow]]:
    """Yield pairs of claims that cannot both be true, about each subject of these notes.

    The two claims of a pair come from different notes. Each pair may come in both orders.

    rows: the rows of the notes.
    """
    subjects = db.execute(
        "select distinct a.subject from claim a join claim b on b.subject = a.subject"
        " and b.note <> a.note and b.value <> a.value"
        " where a.note in (select value from json_each(?))",
        (json.dumps(list(rows)),),
    ).fetchall()
    for (subject,) in subjects:
        yield from _differing(db, subject)


def contested(db: sqlite3.Connection) -> Iterator[list[ClaimRow]]:
    """Yield, for each subject to which notes give different values, all claims about the subject.

    At most the newest 100 claims of a subject are returned, the newest note first.
    """
    subjects = db.execute(
        "select subject from claim group by subject"
        " having count(distinct note) > 1 and count(distinct value) > 1 order by min(note)"
    ).fetchall()
    for (subject,) in subjects:
        yield _claims_about(db, subject)


def _claims_about(db: sqlite3.Connection, subject: str) -> list[ClaimRow]:
    """Return the newest claims about a subject, at most `_MOST_NOTES`.

    subject: space, scope and subject with NUL between them, which the column `subject` holds.
    """
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
    """Yield the pairs of claims about a subject that differ, each pair in both orders.

    subject: space, scope and subject with NUL between them, which the column `subject` holds.
    """
    from memoranda.note.claims import differ

    claim_rows = _claims_about(db, subject)
    for first in claim_rows:
        for second in claim_rows:
            if first.note != second.note and differ(first.claim, second.claim):
                yield first, second
