"""Converts changes and their steps to and from rows of the tables `change` and `step`.

The tables are the same in ledger.db and in a PostgreSQL database. schema.sql describes the columns.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from memoranda.ledger.change import Change, Touched

CHANGE_COLUMNS = "number, time, verb, project, path, agent, face, undoes, run, details, made_by"
STEP_COLUMNS = (
    '"do", project, path, dest, old, new, mode, scope, link, kept, file, root, size, made_by'
)


def insertion(table: str, columns: str) -> str:
    """Return the SQL that inserts a row into a table, with a mark for each value.

    `insertion("step", "change, path")` is `insert into step (change, path) values (?, ?)`.
    """
    marks = ", ".join("?" for _ in columns.split(", "))
    return f"insert into {table} ({columns}) values ({marks})"


class RowByName(Protocol):
    """A row whose fields are named by their columns."""

    def __getitem__(self, column: str, /) -> Any: ...


def change_values(change: Change) -> tuple[Any, ...]:
    """Return the values of CHANGE_COLUMNS for a change."""
    return (
        change.number,
        change.time,
        change.verb,
        change.project,
        change.path,
        change.agent,
        change.face,
        change.undoes,
        change.run,
        json.dumps(change.details) if change.details else None,
        json.dumps(change.by) if change.by else None,
    )


def step_values(touched: Touched) -> tuple[Any, ...]:
    """Return the values that a step is stored with, in the order of STEP_COLUMNS."""
    return (
        touched.do,
        touched.project,
        touched.path,
        touched.to,
        touched.old,
        touched.new,
        touched.mode,
        touched.scope,
        storable_path(touched.link),
        int(touched.kept),
        storable_path(touched.file),
        storable_path(touched.root),
        touched.size,
        json.dumps(touched.by) if touched.by else None,
    )


def change_of(row: RowByName) -> Change:
    """Convert a row of `change` to a Change without steps."""
    return Change(
        number=row["number"],
        time=row["time"],
        verb=row["verb"],
        project=row["project"],
        path=row["path"],
        agent=row["agent"],
        face=row["face"],
        files=[],
        undoes=row["undoes"],
        details=json_or_none(row["details"]),
        run=row["run"],
        by=json_or_none(row["made_by"]),
    )


def touched_of(row: RowByName) -> Touched:
    """Convert a row of `step` to the record of what the step did."""
    return Touched(
        do=row["do"],
        project=row["project"],
        path=row["path"],
        to=row["dest"],
        old=row["old"],
        new=row["new"],
        mode=row["mode"],
        scope=row["scope"],
        link=os.fsdecode(row["link"]),
        kept=bool(row["kept"]),
        file=os.fsdecode(row["file"]),
        root=os.fsdecode(row["root"]),
        size=row["size"],
        by=json_or_none(row["made_by"]),
    )


def with_steps(rows: Iterable[RowByName], steps: Iterable[RowByName]) -> Iterator[Change]:
    """Build changes from their rows, and add the steps to each.

    rows: rows of the table `change`, sorted by number.
    steps: rows of the table `step`, sorted by the number of the change. Steps of other changes are
        skipped.
    """
    remaining_steps = iter(steps)
    step = next(remaining_steps, None)
    for row in rows:
        change = change_of(row)
        while step is not None and step["change"] <= change.number:
            if step["change"] == change.number:
                change.files.append(touched_of(step))
            step = next(remaining_steps, None)
        yield change


def storable_path(path: str) -> str | bytes:
    """Return a path as SQLite can store it: text, or bytes if it is not valid Unicode."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return os.fsencode(path)
    return path


def json_or_none(text: str | None) -> Any:
    """Parse the JSON of a column. Returns None for null, and for a damaged value.

    `memory doctor` reports damaged values.
    """
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None
