"""Find hits that say what an older hit says, too: "Anna moved to Lisbon", told once more.

The newer one comes first. Which of two such notes scores higher is mostly a matter of a word more or
less beside the statement, and the newer one says that it still holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memoranda.engine.telling.contested import Reader, Statement, with_leaders_first
from memoranda.index.rows import Hit


def with_newest_first(memory: Reader, hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits of a search in their order, but a newer one before one that says the same.

    Both passages show the statement, and the newer note has every word of the query that the older
    one has, so that nothing is lost by showing it first. Of several newer notes, the newest counts.
    A note that is held back comes before no other, and an unconfirmed note of somebody else before
    none of the owner's.
    """
    # By the row of an older note, the row of the note that comes before it.
    leader_rows: dict[int, int] = {}
    # A search has each note once.
    hits_by_row = {hit.note.row: hit for hit in hits}
    for statements in _shown_statements(memory, hits_by_row):
        newest_first = sorted(statements, key=lambda statement: statement.moment, reverse=True)
        for position, older in enumerate(newest_first):
            for newer in newest_first[:position]:
                if _comes_before(memory, newer, older, hits_by_row):
                    leader_rows.setdefault(older.info.row, newer.info.row)
                    break
    return with_leaders_first(hits, lambda hit: hit.note, leader_rows)


def _shown_statements(memory: Reader, hits_by_row: dict[int, Hit]) -> Iterator[list[Statement]]:
    """Yield the statements about each subject of several hits that their passages show."""
    for stated_claims in memory.index.notes.shared_claims(hits_by_row):
        statements: list[Statement] = []
        for row, claim in stated_claims:
            hit = hits_by_row[row]
            if claim.name in hit.passage and claim.value in hit.passage:
                statements.append(Statement(hit.note, claim))
        if len(statements) > 1:
            yield statements


def _comes_before(
    memory: Reader, newer: Statement, older: Statement, hits_by_row: dict[int, Hit]
) -> bool:
    """Whether the newer one of two statements about one subject is to be shown first.

    hits_by_row: the hits, by the rows of their notes.
    """
    from memoranda.note.claims import differ

    if newer.info.row == older.info.row or differ(older.claim, newer.claim):
        return False
    # Nothing that the query asks for may get lost behind the newer note.
    words_of_newer = set(hits_by_row[newer.info.row].words)
    words_of_older = set(hits_by_row[older.info.row].words)
    if not words_of_older <= words_of_newer:
        return False
    if memory.is_held_back(newer.info):
        return False
    # The words of the owner have no such marks.
    is_newer_of_owner = not memory.author_marks(newer.info)
    is_older_of_owner = not memory.author_marks(older.info)
    return is_newer_of_owner or not is_older_of_owner
