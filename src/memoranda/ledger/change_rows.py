"""A change and its steps as rows of the tables `change` and `step`. They are the same in ledger.db and
in a PostgreSQL database; schema.sql says what each column is.
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
    """The statement that inserts a row by the names of its columns, which commas separate."""
    marks = ", ".join("?" for _ in columns.split(", "))
    return f"insert into {table} ({columns}) values ({marks})"


class RowByName(Protocol):
    """A row whose fields are named by their columns."""

    def __getitem__(self, column: str, /) -> Any: ...


def change_values(change: Change) -> tuple[Any, ...]:
    """The values of CHANGE_COLUMNS."""
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
    """The values of STEP_COLUMNS."""
    return (
        touched.do,
        touched.project,
        touched.path,
        touched.to,
        touched.old,
        touched.new,
        touched.mode,
        touched.scope,
        stored(touched.link),
        int(touched.kept),
        stored(touched.file),
        stored(touched.root),
        touched.size,
        json.dumps(touched.by) if touched.by else None,
    )


def change_of(row: RowByName) -> Change:
    """The change of a row, without its steps."""
    return Change(
        row["number"],
        row["time"],
        row["verb"],
        row["project"],
        row["path"],
        row["agent"],
        row["face"],
        [],
        row["undoes"],
        loaded(row["details"]),
        row["run"],
        loaded(row["made_by"]),
    )


def touched_of(row: RowByName) -> Touched:
    """The effect of a step on a file or folder."""
    return Touched(
        row["do"],
        row["project"],
        row["path"],
        row["dest"],
        row["old"],
        row["new"],
        row["mode"],
        row["scope"],
        os.fsdecode(row["link"]),
        bool(row["kept"]),
        os.fsdecode(row["file"]),
        os.fsdecode(row["root"]),
        row["size"],
        loaded(row["made_by"]),
    )


def with_steps(rows: Iterable[RowByName], steps: Iterable[RowByName]) -> Iterator[Change]:
    """The changes of rows, with their steps: both in the order of the changes."""
    waiting = iter(steps)
    step = next(waiting, None)
    for row in rows:
        change = change_of(row)
        while step is not None and step["change"] <= change.number:
            if step["change"] == change.number:
                change.files.append(touched_of(step))
            step = next(waiting, None)
        yield change


def stored(path: str) -> str | bytes:
    """A path of the system as SQLite takes it: as text, or as bytes if it is not valid Unicode."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return os.fsencode(path)
    return path


def loaded(text: str | None) -> Any:
    """Parse a JSON value. None for a damaged one, which `memory doctor` reports."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None
