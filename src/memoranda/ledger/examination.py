"""Finds and repairs damage of the ledger itself, for `memory doctor`.

Damage is: pages of the file that SQLite cannot read, kept texts that are missing or changed, and
rows of changes or steps that are lost or cannot be read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum

from memoranda.errors import NotFound, StorageError
from memoranda.ledger.change import ERASE, FIRST_OF_MACHINE, FOLD, VERBS
from memoranda.ledger.database import CHECK, complaints
from memoranda.ledger.history import History
from memoranda.sources.step import StepKind

# How many complaints or places a message names at most.
_MAX_NAMED = 3
_MAX_REASON_CHARACTERS = 200
# A column that holds null or a JSON object.
_IS_OBJECT = (
    "case when {0} is null then 1 when not json_valid({0}) then 0 "
    "else json_type({0}) = 'object' end"
)
_UNREADABLE = (
    f"select number from change where not {_IS_OBJECT.format('details')} "
    f"or not {_IS_OBJECT.format('made_by')}"
)
_UNREADABLE_STEPS = (
    f"select distinct change as number from step where not {_IS_OBJECT.format('made_by')}"
)
_IS_NAME = "typeof({0}) = 'text' and {0} <> ''"
_IS_NUMBER = "{0} is null or (typeof({0}) = 'integer' and {0} > 0)"
_IS_DIGEST = (
    "{0} is null or (typeof({0}) = 'text' and length({0}) = 64 and {0} not glob '*[^0-9a-f]*')"
)
# What every readable row fulfills. Columns link, file and root may have any text and any bytes.
_READABLE_CHANGE = (
    "typeof(time) = 'text' and time glob '[0-9][0-9][0-9][0-9]-*' and datetime(time) is not null",
    _IS_NAME.format("verb"),
    # An erasure does not say what was erased, and the counts of reads go to notes of many projects.
    f"typeof(project) = 'text' and (project <> '' or verb in ('{ERASE}', '{FOLD}'))",
    "typeof(path) = 'text'",
    f"agent is null or {_IS_NAME.format('agent')}",
    f"face is null or {_IS_NAME.format('face')}",
    _IS_NUMBER.format("undoes"),
    _IS_NUMBER.format("run"),
)
_KINDS = ", ".join(f"'{kind}'" for kind in StepKind)
_READABLE_STEP = (
    f"do in ({_KINDS})",
    _IS_NAME.format("project"),
    "typeof(path) = 'text'",
    "typeof(dest) = 'text'",
    _IS_DIGEST.format("old"),
    _IS_DIGEST.format("new"),
    "mode is null or (typeof(mode) = 'integer' and mode >= 0)",
    _IS_NAME.format("scope"),
    "kept in (0, 1)",
    "typeof(size) = 'integer' and size >= 0",
    # A file that was there has a text and a mode, and a file that was not has neither. But a text
    # that lost a conflict in an import was in no file (`keep_lost`).
    "(old is null) = (mode is null) or do in ('set', 'lines') "
    "or do = 'put' and mode is null and exists "
    "(select 1 from change where number = step.change and verb = 'import')",
    "old is not null or do <> 'remove'",
    # Only what writes a text has a new one
    "(new is not null) = (do = 'put') or do in ('set', 'lines')",
    "(dest <> '') = (do = 'move')",
    "(link <> '') = (do in ('symlink', 'unlink')) or do = 'move'",
)
_VERBS = ", ".join(f"'{verb}'" for verb in sorted(VERBS))
# A readable line with a verb that no change has. The number of an undone change tells an undo.
_STRANGE = (
    f"select number from change where typeof(verb) = 'text' and (verb not in ({_VERBS}) "
    f"or (verb = 'undo') <> (undoes is not null) and verb <> '{ERASE}')"
)
# Numbers between two changes that no change has. The numbers between the last change of a note and
# FIRST_OF_MACHINE, where the changes of one machine's own files begin, are not missing.
_GAPS = (
    "select before + 1 as first, number - 1 as last from "
    "(select number, lag(number) over (order by number) as before from change) "
    f"where number > before + 1 and number <> {FIRST_OF_MACHINE} "
    # A change whose files are not on the disk outlasts later ones that are too old to be kept
    "and before not in (select change from unsynced) order by number"
)


def _all_of(conditions: Iterable[str]) -> str:
    """Return the SQL condition that all of these are true."""
    return " and ".join(f"({condition})" for condition in conditions)


_LOST = (
    f"select number from change where not ({_all_of(_READABLE_CHANGE)}) "
    f"union select change from step where not ({_all_of(_READABLE_STEP)})"
)
_LOOSE_STEPS = (
    "select distinct change as number from step s "
    "where not exists (select 1 from change where number = s.change)"
)
_WITHOUT_STEPS = (
    f"select number from change c where verb <> '{ERASE}' "
    "and not exists (select 1 from step where change = c.number)"
)
_WITHOUT_TEXT = (
    "select distinct old as sha256 from step s where old is not null and kept "
    "and do in ('put', 'remove') and not exists (select 1 from text where sha256 = s.old)"
)
_PLACES = "select change, project, path from step where old = ? and kept order by change desc"


class DamageKind(Enum):
    """The kinds of damage. A value is the code of its finding."""

    PAGES = "damaged_ledger"
    TEXT = "damaged_text"
    MISSING_TEXT = "missing_text"
    CHANGE = "damaged_change"
    EMPTY = "empty_change"
    LOST = "lost_change"
    VERB = "strange_change"
    GAP = "missing_change"


@dataclass(frozen=True, slots=True)
class Damage:
    """One problem of the ledger.

    kind: what is damaged.
    key: the SHA-256 of the damaged text, or the number of the damaged change. "" for PAGES. For
        GAP, the first number that is missing.
    text: a sentence that describes the problem.
    """

    kind: DamageKind
    key: str
    text: str


def examine(history: History, *, has_all_texts: bool = True) -> list[Damage]:
    """Find all damage of the ledger. This reads the whole ledger.

    history: the history in this ledger.
    has_all_texts: whether every change and every kept text must be here. False if a server has
        them.

    Raises StorageError.
    """
    pages = _torn_pages(history)
    if pages:
        return pages
    damages = [*_damaged_changes(history), *_damaged_texts(history)]
    if has_all_texts:
        damages += _missing_texts(history)
        damages += _gaps(history)
    return damages


def _torn_pages(history: History) -> list[Damage]:
    """Return one PAGES damage if SQLite complains about the file, else nothing."""
    complaint_lines = complaints(history.database.rows(CHECK))
    if not complaint_lines:
        return []
    why = "; ".join(complaint_lines[:_MAX_NAMED])
    short_why = why[:_MAX_REASON_CHARACTERS]
    text = f"the ledger is damaged ({short_why}): the notes are whole, their history is not"
    return [Damage(DamageKind.PAGES, key="", text=text)]


def _damaged_changes(history: History) -> Iterator[Damage]:
    """Yield the changes with invalid JSON, steps without their change, destroyed changes, changes
    without steps, and changes with a verb that no change has. Each change is named once.
    """
    lost_numbers = _numbers(history, _LOST)
    loose_numbers = _numbers(history, _LOOSE_STEPS) - lost_numbers
    empty_numbers = _numbers(history, _WITHOUT_STEPS) - lost_numbers
    # A change that is named for a graver reason is not named for a lesser one, too
    gravely_damaged = lost_numbers | loose_numbers | empty_numbers
    unreadable_numbers = _numbers(history, _UNREADABLE) | _numbers(history, _UNREADABLE_STEPS)
    strange_numbers = _numbers(history, _STRANGE) - lost_numbers - empty_numbers
    yield from _damages(
        unreadable_numbers - gravely_damaged,
        DamageKind.CHANGE,
        "the line of change #{} cannot be read whole; the note is as it is",
    )
    yield from _damages(
        loose_numbers,
        DamageKind.CHANGE,
        "change #{} is gone, and only what it did to files is left",
    )
    yield from _damages(
        lost_numbers,
        DamageKind.LOST,
        "the line of change #{} is destroyed: the change cannot be undone",
    )
    yield from _damages(
        empty_numbers,
        DamageKind.EMPTY,
        "what change #{} did to files is gone: it cannot be undone",
    )
    yield from _damages(
        strange_numbers,
        DamageKind.VERB,
        "the word for what change #{} did is none that memoranda uses",
    )


def _damages(numbers: Iterable[int], kind: DamageKind, text: str) -> Iterator[Damage]:
    """Yield one damage for each of these changes.

    text: what is wrong, with `{}` in place of the number.
    """
    for number in sorted(numbers):
        yield Damage(kind, str(number), text.format(number))


def _numbers(history: History, sql: str) -> set[int]:
    """Return the numbers of changes that a statement selects."""
    return {row["number"] for row in history.database.rows(sql)}


def _damaged_texts(history: History) -> Iterator[Damage]:
    """Yield the kept texts whose bytes do not have their SHA-256."""
    for digest in history.texts():
        # Only for its error, whose place nobody sees
        try:
            history.text(digest, digest)
        except NotFound:
            continue
        except StorageError:
            text = f"the text of {_places_of(history, digest)} is damaged and cannot be restored"
            yield Damage(DamageKind.TEXT, digest, text)


def _missing_texts(history: History) -> Iterator[Damage]:
    """Yield the texts that a step says are kept, and that exist neither as row nor as file."""
    # The SHA-256 of the texts that are files
    large_texts: set[str] = set()
    with suppress(FileNotFoundError):
        folder = os.path.dirname(history.object_path("0" * 64))
        large_texts = set(os.listdir(folder))
    for row in history.database.rows(_WITHOUT_TEXT):
        digest = row["sha256"]
        if digest not in large_texts:
            text = f"the text of {_places_of(history, digest)} is missing and cannot be restored"
            yield Damage(DamageKind.MISSING_TEXT, digest, text)


def _gaps(history: History) -> Iterator[Damage]:
    """Yield the numbers that no change has, although older and newer changes are there."""
    for row in history.database.rows(_GAPS):
        if row["first"] == row["last"]:
            changes = f"change #{row['first']} is"
        else:
            changes = f"changes #{row['first']} to #{row['last']} are"
        text = f"{changes} not in the history: lost, removed by a repair, or not made in a crash"
        yield Damage(DamageKind.GAP, str(row["first"]), text)


def _places_of(history: History, digest: str) -> str:
    """Say which files had a text: `main/note.md before change #7 and 2 more`.

    digest: the SHA-256 of the text.
    """
    rows = history.database.rows(_PLACES, (digest,))
    places = [f"{row['project']}/{row['path']} before change #{row['change']}" for row in rows]
    if not places:
        return "no change"
    named_places = ", ".join(places[:_MAX_NAMED])
    if len(places) > _MAX_NAMED:
        return f"{named_places} and {len(places) - _MAX_NAMED} more"
    return named_places


def mend(history: History, damage: Damage) -> None:
    """Remove one damage: forget the data that cannot be read, so that the rest can be used.

    The home's lock must be held. Raises StorageError.

    history: the history in this ledger.
    """
    match damage.kind:
        case DamageKind.PAGES:
            history.database.set_damaged_aside()
            history.database.refresh()
        case DamageKind.TEXT:
            history.forget_text(damage.key)
            _forbid_undo(history, damage.key)
        case DamageKind.MISSING_TEXT:
            _forbid_undo(history, damage.key)
        case DamageKind.VERB:
            with history.database.transaction() as connection:
                connection.execute(
                    "update change set verb = iif(undoes is null, 'edit', 'undo') where number = ?",
                    (int(damage.key),),
                )
        case DamageKind.GAP:
            # What is gone cannot be made up
            return
        case DamageKind.EMPTY | DamageKind.LOST:
            with history.database.transaction() as connection:
                for table, column in (("step", "change"), ("change", "number")):
                    sql = f"delete from {table} where {column} = ?"
                    connection.execute(sql, (int(damage.key),))
        case DamageKind.CHANGE:
            _forget_unreadable_fields(history, int(damage.key))


def _forbid_undo(history: History, digest: str) -> None:
    """Record that a replaced text is not kept.

    Its change stays in the history, but it can no longer be undone.

    digest: the SHA-256 of the text.
    """
    with history.database.transaction() as connection:
        connection.execute("update step set kept = 0 where old = ?", (digest,))


def _forget_unreadable_fields(history: History, number: int) -> None:
    """Remove those parts of a change that are not a JSON object, and steps without a change.

    number: the number of the change.
    """
    with history.database.transaction() as connection:
        connection.execute(
            "update change set details = null where number = ? "
            f"and not {_IS_OBJECT.format('details')}",
            (number,),
        )
        for table, column in (("change", "number"), ("step", "change")):
            connection.execute(
                f"update {table} set made_by = null where {column} = ? "
                f"and not {_IS_OBJECT.format('made_by')}",
                (number,),
            )
        connection.execute(
            "delete from step where change = ? and change not in (select number from change)",
            (number,),
        )
