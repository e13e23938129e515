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

from memoranda.index.rows import iso
from memoranda.index.tables import Row
from memoranda.note.model import (
    BANK_PROJECT,
    BUILT_IN_PROJECTS,
    GRAPH_PROJECT,
    KV_PROJECT,
    TRACE_PROJECT,
    Note,
)

if TYPE_CHECKING:
    from memoranda.note.claims import Claim, Sentence

# A key of project kv has only one value. Traces of sessions do not state facts.
_WITHOUT_CLAIMS = (KV_PROJECT, TRACE_PROJECT)
# At most this many notes about one subject are compared.
_MOST_NOTES = 100
# A longer observation is not read for claims. Reading it could take long, since it may be as long as a
# note.
_MOST_OBSERVATION_CHARACTERS = 1_000


class StatedClaim(NamedTuple):
    """A claim, and the row in the index of the note that makes it."""

    note: int
    claim: Claim


class ClaimRow(NamedTuple):
    """A claim with the note that makes it.

    note: the row of the note in the index.
    claim: the subject, and the value that the note gives it.
    time: the date that the header of the note gives, or else the time of its creation.
    changed_at: when the file of the note changed, in microseconds since 1970.
    """

    note: int
    claim: Claim
    time: str
    changed_at: int

    @property
    def moment(self) -> tuple[str, int]:
        """The sort key that puts claims in the order of time: the time, and the row of the note."""
        return (self.time, self.note)

    @property
    def changed(self) -> str:
        """When the file of the note changed, to be compared with `time`. Rarely needed."""
        return str(iso(self.changed_at))


def rows_of(note: Note, body: str) -> list[Row]:
    """Return the rows of table `claim` for a note, without the column that names the note.

    Empty for key-value entries and traces of sessions, which make no claims.

    body: the text of the note after its frontmatter.
    """
    if note.project in _WITHOUT_CLAIMS:
        return []
    # This import takes 9 ms, which processes that only read notes do not need.
    from memoranda.note.changes import item_changes
    from memoranda.note.claims import claims, item_claims, sentences_in

    # Claims in the observations and relations. A longer observation says more than one thing.
    observations = [
        observation
        for observation in note.observations
        if len(observation.content) <= _MOST_OBSERVATION_CHARACTERS
    ]
    all_claims = list(item_claims(note.title, observations, note.relations))
    all_claims += item_changes(note.title, observations)
    # Claims in the sentences. The note of an entity has nothing but observations and relations.
    if note.project != GRAPH_PROJECT:
        sentences = sentences_in(body)
        all_claims += claims(sentences)
        all_claims += _changes_of_its_time(note, body, sentences)

    # Only claims of one space and scope are compared, so both belong to the subject.
    space_and_scope = f"{_space(note)}\0{note.scope}"
    rows: dict[tuple[str, int], Row] = {}
    for claim in all_claims:
        subject = f"{space_and_scope}\0{claim.subject}"
        # Of two claims about a subject on one line, the first counts: one that Review asks about
        # before one that it does not.
        rows.setdefault((subject, claim.line), {**claim._asdict(), "subject": subject})
    return list(rows.values())


def _changes_of_its_time(note: Note, body: str, sentences: Iterable[Sentence]) -> Iterator[Claim]:
    """Yield the claims in a note that replace earlier ones, such as "Anna moved to Porto".

    Sentences about a year before the note are left out, because they are not news.

    body: the text of the note after its frontmatter.
    sentences: the sentences of this text.
    """
    from memoranda.note.changes import changes, is_of_an_earlier_year

    # The year of the date in the header or, without one, the year in which it was written.
    year = note.created.year
    year_of_date = (note.date or "")[:4]
    if year_of_date.isdecimal():
        year = int(year_of_date)
    for claim in changes(sentences):
        if not is_of_an_earlier_year(body[claim.start : claim.stop], year):
            yield claim


def _space(note: Note) -> str:
    """Return the space of a note's subjects. In one space, a subject always means the same thing.

    "" is the space of the built-in projects, `banks/tram` the space of the bank `tram`.
    """
    if note.project == BANK_PROJECT:
        return f"{BANK_PROJECT}/{note.path.partition('/')[0]}"
    if note.project in BUILT_IN_PROJECTS:
        return ""
    return note.project


def disputes_of(db: sqlite3.Connection, rows: Iterable[int]) -> list[list[ClaimRow]]:
    """Return all claims about each subject on which one of these notes and another note differ.

    Each list has the claims of all notes about one subject, the newest note first. Values that are
    worded differently may still say the same (`note.claims.differ`).

    rows: the rows of the notes.
    """
    subjects = db.execute(
        "select distinct a.subject from claim a join claim b on b.subject = a.subject"
        " and b.note <> a.note and b.value <> a.value"
        " where a.note in (select value from json_each(?))",
        (json.dumps(list(frozenset(rows))),),
    ).fetchall()
    return [_claims_about(db, subject) for (subject,) in subjects]


def shared(db: sqlite3.Connection, rows: Iterable[int]) -> list[list[StatedClaim]]:
    """Return what these notes claim about each subject about which several of them claim something.

    rows: the rows of the notes.
    """
    claims_of_notes = db.execute(
        "select subject, note, name, value, line, start, stop, kind from claim"
        " where note in (select value from json_each(?))",
        (json.dumps(list(frozenset(rows))),),
    )
    columns_by_subject: dict[str, list[Row]] = {}
    for subject, *columns in claims_of_notes:
        names = ("note", "name", "value", "line", "start", "stop", "kind")
        columns_by_subject.setdefault(subject, []).append(dict(zip(names, columns, strict=True)))
    # Few subjects are shared, so most claims are not made into objects.
    claims_by_subject: list[list[StatedClaim]] = []
    for subject, columns_of_claims in columns_by_subject.items():
        notes = {columns["note"] for columns in columns_of_claims}
        if len(notes) > 1:
            plain_subject = subject.rpartition("\0")[2]
            claims_by_subject.append(
                [_stated(plain_subject, columns) for columns in columns_of_claims]
            )
    return claims_by_subject


def _stated(subject: str, columns: Row) -> StatedClaim:
    """Return a claim of table `claim`.

    subject: the subject alone, without the space and the scope before it.
    columns: the other columns.
    """
    from memoranda.note.claims import Claim, ClaimKind

    of_claim = {name: value for name, value in columns.items() if name != "note"}
    claim = Claim(subject, **{**of_claim, "kind": ClaimKind(columns["kind"])})
    return StatedClaim(columns["note"], claim)


def disputes_for_review(db: sqlite3.Connection) -> Iterator[list[ClaimRow]]:
    """Yield the claims about each subject that notes disagree about, one list for each subject.

    Only claims count that Review asks about. At most the newest 100 claims of a subject are
    returned, the newest note first.
    """
    from memoranda.note.claims import ClaimKind

    subjects = db.execute(
        f"select subject from claim where kind = {ClaimKind.ASKED} group by subject"
        " having count(distinct note) > 1 and count(distinct value) > 1 order by min(note)"
    ).fetchall()
    for (subject,) in subjects:
        rows = _claims_about(db, subject)
        yield [row for row in rows if row.claim.kind is ClaimKind.ASKED]


def _claims_about(db: sqlite3.Connection, subject: str) -> list[ClaimRow]:
    """Return the newest claims about a subject, at most `_MOST_NOTES`.

    subject: space, scope and subject with NUL between them, which the column `subject` holds.
    """
    # The newest notes have the highest rows.
    rows = db.execute(
        "select c.name, c.value, c.line, c.start, c.stop, c.kind, n.row, n.date, n.created, n.changed"
        " from claim c cross join note n on n.row = c.note where c.subject = ?"
        f" order by c.note desc limit {_MOST_NOTES}",
        (subject,),
    )
    from memoranda.note.claims import Claim, ClaimKind

    plain_subject = subject.rpartition("\0")[2]
    # Looking a kind up is faster than to call the enum, and there may be very many rows.
    kinds = {kind.value: kind for kind in ClaimKind}
    claim_rows: list[ClaimRow] = []
    for name, value, line, start, stop, kind, note, date, created, changed in rows:
        claim = Claim(
            subject=plain_subject,
            name=name,
            value=value,
            line=line,
            start=start,
            stop=stop,
            kind=kinds[kind],
        )
        claim_rows.append(ClaimRow(note, claim, date or iso(created), changed))
    return claim_rows
