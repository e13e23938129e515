"""Telling notes of one derived permalink apart (contract 000b, 4.1).

The first path in code-point order keeps the permalink, the others take `-1`, `-2` …, leaving out
what another note is called by its own path or frontmatter. The outcome depends on the notes
only, not on the order in which they came. A note of its own permalink never gives way.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable

_NUMBERED = re.compile(r"(.+)-([1-9]\d*)")

Renamed = Callable[[int, str], None]
"""Called with a row and its new permalink, before the row changes."""


def came(db: sqlite3.Connection, project: int, row: int, permalink: str, own: bool, renamed: Renamed) -> None:
    """The note `row` now claims `permalink`: renumbers the groups this touches."""
    others = db.execute(
        "select own, base from note where permalink = ? and project = ? and row <> ?", (permalink, project, row)
    ).fetchall()
    groups = {base or permalink for own_one, base in others if not own_one}
    if others and not own:
        groups.add(permalink)
    for base in sorted(groups):
        _renumber(db, project, base, renamed)


def went(db: sqlite3.Connection, project: int, permalink: str, renamed: Renamed) -> None:
    """A note called `permalink` is gone: those that had to give way may move up."""
    bases = [permalink]
    numbered = _NUMBERED.fullmatch(permalink)
    if numbered:
        bases.append(numbered[1])
    for base in bases:
        if db.execute("select 1 from note where base = ? and project = ? limit 1", (base, project)).fetchone():
            _renumber(db, project, base, renamed)


def _renumber(db: sqlite3.Connection, project: int, base: str, renamed: Renamed) -> None:
    members = db.execute(
        # `+`: else SQLite walks all notes of the project in the order of their paths
        "select row, path, permalink from note where permalink = ?1 and +project = ?2 and own = 0 and base is null"
        " union select row, path, permalink from note where base = ?1 and +project = ?2 order by path",
        (base, project),
    ).fetchall()
    number = -1
    for row, _, current in members:
        number = _next_free(db, project, base, number)
        name = base if number == 0 else f"{base}-{number}"
        if name != current:
            renamed(row, name)
            db.execute("update note set permalink = ?, base = ? where row = ?", (name, base if number else None, row))


def _next_free(db: sqlite3.Connection, project: int, base: str, number: int) -> int:
    """The next number no other note's own or path-derived permalink stands at."""
    while True:
        number += 1
        taken = db.execute(
            "select 1 from note where permalink = ? and project = ? and base is null and (own = 1 or ?) limit 1",
            (base if number == 0 else f"{base}-{number}", project, number > 0),
        ).fetchone()
        if taken is None:
            return number
