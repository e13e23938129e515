"""Selecting the notes that pass the filters of a query, by facets and validity.

Each note carries facet tokens (project, type, tags …) as words of the full-text table, so that they
count and combine inside it. They begin with a private-use character, which text/tokens.py keeps out
of everything a user writes, so no query can mean one by accident.

A note is valid from `begins` on, before `ends`, until another note supersedes it. Its header says
so (`valid_from`, `valid_until`), or the header of the other note (`supersedes`). A whole number of
days since 1970 means that day in the time zone of the query. Any other number means a moment.

Values of the header are compared in header_filters.py.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain

from memoranda.clock import EPOCH, microseconds
from memoranda.note.inline import Inline, levels
from memoranda.note.model import (
    ARCHIVE_PROJECT,
    CATEGORY_PROJECT,
    GLOBAL,
    KV_PROJECT,
    MEMORY_PROJECTS,
    TRACE_PROJECT,
    Note,
)
from memoranda.note.project_access import PREFIX as SEVERAL
from memoranda.note.project_access import is_among
from memoranda.query import Query
from memoranda.text.checksum import blake2b
from memoranda.text.pattern import lazy_pattern

Span = tuple[int, int, int | None]
"""Row, begin and end of a note."""

# The first private character: each replaces a value that FTS5 could not hold as one token.
_FIRST_MARK = 0xE000
_NONE = "\uf8ff"
# A quoted token of an expression of FTS5.
_TOKEN = lazy_pattern('"([^"]+)"')
# A value that FTS5 takes as one token as it is.
_PLAIN = lazy_pattern(r"[a-z0-9]{1,24}")
# With more projects, one comparison of their ids is slower than a list.
_FEW_PROJECTS = 30
# `to do`, `to-do` and `to_do` are one type.
_TYPE_BLANKS = lazy_pattern(r"[-\s]+")
PROJECT, TYPE, TAG, OBSERVED, CATEGORY, PHASE, SCOPE, SOURCE, STATUS, PINNED, BY, CLIENT = range(12)

DAY = 86_400_000_000
"""A day in microseconds."""
HAS_BEGUN = f"n.begins <= case when n.begins % {DAY} then ? else ? end"
"""A condition on `note n`; its values are those of `moment_values`."""


# Each note has a dozen tokens, nearly all of them equal to other notes' tokens. Without a cache,
# they take a tenth of the time of indexing.
@lru_cache(maxsize=1024)
def token(kind: int, value: str) -> str:
    """The token of one value; values are compared without case, types with `-`, blank as `_`.

    A scope is folded as its header is: a ligature must not make a scope nobody has out as an
    agent's.
    """
    if kind == SCOPE:
        value = value.strip().lower()
    else:
        value = value.strip().casefold()
    if kind == TYPE:
        value = _TYPE_BLANKS.sub("_", value)
    elif kind == TAG:
        value = value.removeprefix("#")
    if _PLAIN.fullmatch(value):
        return f"{chr(_FIRST_MARK + 2 * kind)}{value}"
    # 3 ms
    digest = blake2b(value.encode("utf-8", "replace"), 8).hex()
    return f"{chr(_FIRST_MARK + 2 * kind + 1)}{digest}"


def facet_text(note: Note, project: int, extra: Inline) -> str:
    """All facet tokens of `note`, each once, for the `facet` columns; `extra` is in its text."""
    pairs: list[tuple[int, str | None]] = [
        (PROJECT, str(project)),
        (TYPE, note.type),
        (SCOPE, note.scope),
    ]
    tags = [*note.tags, *extra.tags]
    for observation in note.observations:
        pairs.append((OBSERVED, observation.category))
        tags += observation.tags
    # `journal` finds `journal/2025`
    for tag in tags:
        pairs += [(TAG, level) for level in levels(tag.lstrip("#"))]
    pairs += [(CATEGORY, note.category), (PHASE, note.phase), (SOURCE, note.source)]
    pairs.append((BY, note.provenance.who))
    client = note.provenance.client
    if client:
        # With its version, and without
        pairs += [
            (CLIENT, client),
            (CLIENT, client.partition(" ")[0]),
        ]
    status = note.header.get("status", extra.fields.get("status"))
    if status is not None:
        pairs += [
            (STATUS, str(value)) for value in (status if isinstance(status, list) else [status])
        ]
    if note.header.get("pinned") is True:
        pairs.append((PINNED, "true"))
    return " ".join(dict.fromkeys(token(kind, value) for kind, value in pairs if value is not None))


def _asked_projects(query: Query, ids_by_name: Mapping[str, int]) -> list[int]:
    """The ids of the projects that a query names; the archive belongs to the memories."""
    names = [name.casefold() for name in query.projects or ()]
    ids = list(dict.fromkeys(ids_by_name[name] for name in names if name in ids_by_name))
    archive = ids_by_name.get(ARCHIVE_PROJECT)
    has_memories = CATEGORY_PROJECT in (query.projects or ())
    if archive is not None and has_memories and query.archived is not False:
        ids.append(archive)
    return ids


def _unasked_projects(
    db: sqlite3.Connection, query: Query, ids_by_name: Mapping[str, int]
) -> list[str]:
    """The tokens of projects that a query that names none leaves out: traces, and the archive if it
    says so."""
    tokens = []
    archive = ids_by_name.get(ARCHIVE_PROJECT)
    if archive is not None and query.archived is False:
        tokens.append(token(PROJECT, str(archive)))
    traces = ids_by_name.get(TRACE_PROJECT)
    # Without traces, and that is usual, the expression stays simple
    if traces is not None:
        sql = "select 1 from note where project = ? limit 1"
        if db.execute(sql, (traces,)).fetchone():
            tokens.append(token(PROJECT, str(traces)))
    return tokens


def wanted(
    db: sqlite3.Connection, query: Query, viewer: str | None, *, has_text: bool = False
) -> tuple[list[str], list[str]]:
    """The tokens a note must have, and those it must not have, to pass a query and be seen by
    `viewer`.

    The required entries are FTS5 expressions (alternatives joined by OR); the excluded are tokens.
    has_text: express projects with most of the notes by excluding the others, which is read faster.
    """
    unwanted = [token(SCOPE, scope) for scope in hidden_scopes(db, viewer)]
    ids_by_name = project_ids(db)
    archive = ids_by_name.get(ARCHIVE_PROJECT)
    needed: list[str] = []
    if query.archived:
        needed.append(quoted(_NONE) if archive is None else any_of(PROJECT, [str(archive)]))
    if query.projects is None:
        unwanted += _unasked_projects(db, query, ids_by_name)
    else:
        ids = _asked_projects(query, ids_by_name)
        others = set(ids_by_name.values()).difference(ids)
        if has_text and len(others) <= _FEW_PROJECTS and counted(db, ids) > counted(db, others):
            unwanted += [token(PROJECT, str(other)) for other in sorted(others)]
        else:
            needed.append(any_of(PROJECT, map(str, ids)) if ids else quoted(_NONE))
    return needed + _needed_of_notes(query), unwanted


def _needed_of_notes(query: Query) -> list[str]:
    """The FTS5 expressions that a note must match, in any project."""
    needed: list[str] = []
    if query.types:
        needed.append(any_of(TYPE, query.types))
    needed += [any_of(TAG, [tag]) for tag in query.tags]
    if query.categories:
        needed.append(any_of(OBSERVED, query.categories))
    for name in query.any_category:
        needed.append(f"({quoted(token(OBSERVED, name))} OR {quoted(token(CATEGORY, name))})")
    for kind, value in (
        (CATEGORY, query.category),
        (PHASE, query.phase),
        (SCOPE, query.scope),
        (SOURCE, query.source),
        (STATUS, query.status),
        (CLIENT, query.client),
    ):
        if value is not None:
            needed.append(any_of(kind, [value]))
    if query.pinned:
        needed.append(any_of(PINNED, ["true"]))
    # The name of an agent will do
    if query.by is not None:
        needed.append(any_of(BY, [query.by, f"agent:{query.by}"]))
    return needed


def projects_of(
    needed: Iterable[str], unwanted: Iterable[str], project_numbers: Iterable[int]
) -> list[int] | None:
    """The projects in which any note passes these filters, given as `wanted` returns them.

    None if the filters require more than a project, or exclude more than scopes.
    """
    remaining = {
        f"{chr(_FIRST_MARK + 2 * PROJECT)}{this_number}": this_number
        for this_number in project_numbers
    }
    scopes = (chr(_FIRST_MARK + 2 * SCOPE), chr(_FIRST_MARK + 2 * SCOPE + 1))
    for needed_tokens in needed:
        tokens = _TOKEN.findall(needed_tokens)
        if not all(this_number in remaining or this_number == _NONE for this_number in tokens):
            return None
        remaining = {name: number for name, number in remaining.items() if name in tokens}
    for this_number in unwanted:
        if not this_number.startswith(scopes):
            remaining.pop(this_number, None)
    return list(remaining.values())


def counted(db: sqlite3.Connection, projects: Iterable[int], viewer: str | None = None) -> int:
    """How many notes of these projects `viewer` sees."""
    sql = "select scope, sum(notes) from tally where project = ? and folder = '' group by scope"
    rows = chain.from_iterable(db.execute(sql, (project,)) for project in projects)
    return sum(number for scope, number in rows if may_see(scope, viewer))


def any_of(kind: int, values: Iterable[str]) -> str:
    """An FTS5 expression for notes with one of these values."""
    phrases = [quoted(token(kind, value)) for value in values]
    if len(phrases) == 1:
        return phrases[0]
    return f"({' OR '.join(phrases)})"


def quoted(phrase: str) -> str:
    """`phrase` as an FTS5 string, so that nothing in it acts as syntax."""
    return '"' + phrase.replace('"', '""') + '"'


def expression(needed: list[str], unwanted: list[str], text: str = "") -> str:
    """One FTS5 expression of a text part, facets needed and facets not wanted; "" = no condition."""
    positive = " AND ".join([f"({text})", *needed] if text else needed)
    if not unwanted or not positive:
        return positive
    return f"({positive}) NOT ({' OR '.join(map(quoted, unwanted))})"


def passes(facets: str, needed: Iterable[str], unwanted: Iterable[str]) -> bool:
    """Whether a note with these facet tokens passes the filters `wanted` gave."""
    held_tokens = set(facets.split(" "))
    return held_tokens.isdisjoint(unwanted) and not any(
        held_tokens.isdisjoint(_TOKEN.findall(this_expression)) for this_expression in needed
    )


def hidden_scopes(db: sqlite3.Connection, viewer: str | None) -> list[str]:
    """The scopes in use that `viewer` may not see (None, the owner, sees all)."""
    if viewer is None:
        return []
    scopes = [""]
    next_scope = (
        "select scope from note where scope <> 'global' and scope > ? order by scope limit 1"
    )
    while row := db.execute(next_scope, (scopes[-1],)).fetchone():
        scopes.append(row[0])
    return [scope for scope in scopes[1:] if not may_see(scope, viewer)]


def may_see(scope: str, viewer: str | None) -> bool:
    """Whether `viewer` sees notes of `scope`: the owner all, an agent `global` and its own."""
    if viewer is None or scope == GLOBAL or scope == f"agent:{viewer}":
        return True
    return is_among(scope, viewer)


def seen_by(column: str, viewer: str) -> str:
    """The same as a condition of SQL, for a column and a value that may be null, `:name`."""
    is_named = f"instr({column}, ',' || {viewer} || ',')"
    return (
        f"({viewer} is null or {column} in ('global', 'agent:' || {viewer})"
        f" or {column} like '{SEVERAL}%' and {is_named} > 0)"
    )


def project_ids(db: sqlite3.Connection) -> dict[str, int]:
    """The ids of all indexed projects by case-folded name."""
    return {name.casefold(): number for number, name in db.execute("select id, name from project")}


def valid_span(note: Note) -> tuple[int, int | None, int | None]:
    """The span in which a note is valid: (begin, end or None, 1 or None), in microseconds since
    1970.

    The third value is 1 if the note has not been valid at all times since it was written. Without
    `valid_from`, the span begins with its event or its writing, whichever came first. If it ended
    before that, it was always valid before its end.
    """
    ends = _end_of(note)
    begins = created = microseconds(note.created)
    if note.valid_from is not None:
        begins = microseconds(note.valid_from)
        return begins, ends, 1 if ends is not None or begins > created - DAY else None
    if note.date:
        try:
            begins = min(
                begins, microseconds(datetime.fromisoformat(note.date[:10]).replace(tzinfo=UTC))
            )
        except (ValueError, OverflowError):
            # A date written another way than by its days
            pass
    if ends is None:
        return (begins, None, None)
    return (0 if ends <= begins else begins, ends, 1)


def _end_of(note: Note) -> int | None:
    """The end of a note in microseconds, by `valid_until` or `expires_at`. None without an end.

    Expiring memories are archived instead, and entries are removed.
    """
    times = [note.valid_until]
    if note.project not in (*MEMORY_PROJECTS, KV_PROJECT):
        times.append(note.expires)
    return min((microseconds(time) for time in times if time is not None), default=None)


def moment_values(moment: datetime) -> tuple[int, int]:
    """A moment, and its day in its own zone, as HAS_BEGUN compares them."""
    return microseconds(moment), (
        datetime(moment.year, moment.month, moment.day, tzinfo=UTC) - EPOCH
    ).days * DAY


def invalid_at(spans: Iterable[Span], moment: datetime) -> list[int]:
    """The rows that are over, superseded or not valid yet at `moment`."""
    now, today = moment_values(moment)
    return sorted(
        {
            row
            for row, begins, ends in spans
            if begins > (now if begins % DAY else today)
            or (ends is not None and ends <= (now if ends % DAY else today))
        }
    )


def excluded(rows: Sequence[int], name: str) -> str:
    """An SQL condition that leaves out these rows, which are in the column `name`; "" for none."""
    if rows:
        return f"{name} not in ({', '.join(map(str, rows))})"
    return ""
