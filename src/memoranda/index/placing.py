"""Put the words of long notes into the index in parts, and take them out in parts.

A very long note has more than `PASSAGES_AT_ONCE` passages, and SQLite needs a second for its words.
So the transaction that writes the note inserts only the words by which a search finds it. Those of
its stems and of its passages follow in later transactions (`writer.place`), each with at most
`PASSAGES_AT_ONCE` passages, and others may use the home between two of them. Before a note is
replaced, `writer.withdraw` takes these words out in the same way.

Table `unplaced` has the notes that lack some of these words. So nothing is lost if a process ends in
between: the next one that opens the index goes on (`Freshness`). Meanwhile a search finds such a
note by all its words. It shows the beginning of the note for a hit in the missing passages, and a
question finds no other forms of the words of its text.

Every function expects to run inside a transaction (`database.transaction`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from memoranda.index.rows import FIRST_PASSAGE
from memoranda.index.tables import Row, insert
from memoranda.text.tokens import fts_text

PASSAGES_AT_ONCE = 200
"""One transaction inserts, or takes out, at most this many passages of a note. A note with more of
them gets its stems and all its passages in transactions of their own."""


class Passage(NamedTuple):
    """A passage of a long note.

    start, end: its bounds in the body, in characters.
    words: its words as a full-text table gets them.
    """

    start: int
    end: int
    words: str


class _Span(NamedTuple):
    """A row of table `passage`: a passage is the characters `start` to `stop` of a text."""

    row: int
    start: int
    stop: int


def insert_passages(
    db: sqlite3.Connection, passages_by_note: Iterable[tuple[int, Sequence[Passage]]]
) -> None:
    """Insert the passages of notes, and their words unless there are too many for one transaction.

    The row of a passage tells its note (`FIRST_PASSAGE`).

    passages_by_note: the row of each note, and its passages.
    """
    # The rows of three tables.
    spans: list[Row] = []
    words: list[Row] = []
    notes_lacking_words: list[Row] = []
    for note, passages in passages_by_note:
        first_row = note * FIRST_PASSAGE
        for row, passage in enumerate(passages, first_row):
            spans.append({"row": row, "start": passage.start, "stop": passage.end})
        if has_parts(len(passages)):
            # `place` inserts its words later, beginning with the first passage.
            notes_lacking_words.append({"note": note, "next": first_row, "lacks_stems": True})
            continue
        for row, passage in enumerate(passages, first_row):
            words.append({"rowid": row, "body": passage.words})
    insert(db, "passage", spans)
    insert(db, "passage_fts", words)
    insert(db, "unplaced", notes_lacking_words)


def has_parts(passages: int) -> bool:
    """Whether the words of a note with so many passages are inserted in parts."""
    return passages > PASSAGES_AT_ONCE


def lacks_stems(db: sqlite3.Connection, note: int) -> bool:
    """Whether the stems of a long note are not in the index.

    note: the row of the note.
    """
    sql = "select 1 from unplaced where note = ? and lacks_stems"
    return db.execute(sql, (note,)).fetchone() is not None


def record_stems(db: sqlite3.Connection, note: int, *, are_there: bool) -> None:
    """Record whether the index has the stems of a note without passages.

    note: the row of the note.
    are_there: whether it has them.
    """
    values = (note, note * FIRST_PASSAGE, not are_there)
    db.execute("insert or replace into unplaced (note, next, lacks_stems) values (?, ?, ?)", values)


def unplaced(db: sqlite3.Connection) -> list[int]:
    """Return the rows of notes that still have words to insert into the index."""
    return [note for (note,) in db.execute("select note from unplaced order by note")]


def place(db: sqlite3.Connection, note: int) -> bool:
    """Insert the words of the next missing passages of a note. False if none is missing.

    note: the row of the note.
    """
    waiting = db.execute(
        "select u.next, t.passages, t.text from unplaced u join text t on t.row = u.note"
        " where u.note = ?",
        (note,),
    ).fetchone()
    if waiting is None:
        return False
    # The passages of a note have rows that follow each other. Those from `next_row` on are missing.
    next_row, passage_count, text = waiting
    row_after_last = note * FIRST_PASSAGE + passage_count
    stop_row = min(next_row + PASSAGES_AT_ONCE, row_after_last)
    words = [
        {"rowid": span.row, "body": fts_text(text[span.start : span.stop])}
        for span in _spans(db, next_row, stop_row)
    ]
    insert(db, "passage_fts", words)
    are_all_placed = stop_row == row_after_last
    if are_all_placed:
        db.execute("delete from unplaced where note = ?", (note,))
    else:
        db.execute("update unplaced set next = ? where note = ?", (stop_row, note))
    return True


def withdraw(db: sqlite3.Connection, note: int, text: str, passages: int) -> bool:
    """Take out the words of the last passages of a note. False if none is left.

    note: the row of the note.
    text: the text of the note.
    passages: how many passages it has.
    """
    # The rows of its passages whose words are in the index: from `first_row` to before `stop_row`.
    first_row = note * FIRST_PASSAGE
    stop_row = _end_of_placed(db, note, passages)
    begin_row = max(first_row, stop_row - PASSAGES_AT_ONCE)
    are_all_out = begin_row >= stop_row
    if are_all_out:
        return False
    _take_words_out(db, text, begin_row, stop_row)
    # From here on they are missing.
    sql = "insert or replace into unplaced (note, next, lacks_stems) values (?, ?, false)"
    db.execute(sql, (note, begin_row))
    return True


def delete_passages(db: sqlite3.Connection, note: int, text: str, passages: int) -> None:
    """Delete all passages of a note.

    note: the row of the note.
    text: the text of the note.
    passages: how many passages it has.
    """
    first_row = note * FIRST_PASSAGE
    row_after_last = first_row + passages
    _take_words_out(db, text, first_row, _end_of_placed(db, note, passages))
    db.execute("delete from passage where row >= ? and row < ?", (first_row, row_after_last))
    db.execute("delete from unplaced where note = ?", (note,))


def _end_of_placed(db: sqlite3.Connection, note: int, passages: int) -> int:
    """Return the row after the last passage of a note whose words are in the index."""
    waiting = db.execute("select next from unplaced where note = ?", (note,)).fetchone()
    if waiting is None:
        return note * FIRST_PASSAGE + passages
    next_row: int = waiting[0]
    return next_row


def _take_words_out(db: sqlite3.Connection, text: str, begin: int, end: int) -> None:
    """Delete the words of the passages in the rows from `begin` to before `end`."""
    db.executemany(
        "insert into passage_fts (passage_fts, rowid, body) values ('delete', ?, ?)",
        ((span.row, fts_text(text[span.start : span.stop])) for span in _spans(db, begin, end)),
    )


def _spans(db: sqlite3.Connection, begin: int, end: int) -> list[_Span]:
    """Return the passages in the rows from `begin` to before `end`."""
    rows = db.execute(
        "select row, start, stop from passage where row >= ? and row < ? order by row",
        (begin, end),
    )
    return [_Span(*row) for row in rows]
