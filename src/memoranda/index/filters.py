"""Select the notes that pass the filters of a query, by facets and validity.

A *facet* is a property of a note (project, type, tag …). Its token is a word of the full-text table,
so filters and words are combined in one FTS5 expression. A facet token begins with a private-use
character, which text/tokens.py removes from all texts of users, so no query can contain one by
accident.

A note is valid from `begins` until before `ends`, or until another note supersedes it. Its header
has these times (`valid_from`, `valid_until`); the other note's header has `supersedes`. A time that
is a whole number of days since 1970 means that day in the time zone of the query. Any other time
means a moment.

Values of the header are compared in header_filters.py.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

from memoranda.clock import EPOCH, microseconds
from memoranda.note.inline import Inline, levels
from memoranda.note.model import (
    AGENT_PREFIX,
    ARCHIVE_PROJECT,
    CATEGORY_PROJECT,
    GLOBAL,
    KV_PROJECT,
    MEMORY_PROJECTS,
    TRACE_PROJECT,
    Note,
    Provenance,
    flag,
)
from memoranda.note.names import without_case
from memoranda.note.project_access import PREFIX as SEVERAL
from memoranda.note.project_access import is_among
from memoranda.query import Query
from memoranda.text.checksum import blake2b
from memoranda.text.pattern import lazy_pattern
from memoranda.text.remembered import remembered

Span = tuple[int, int, int | None]
"""(row, begin, end) of a note in microseconds. The end is None if it has none."""

# Each kind of facet has two private characters from this one on: one before a value, one before the
# checksum of a value that FTS5 would not take as one token.
_FIRST_MARK = 0xE000
# A token that no note has.
_NOTHING = "\uf8ff"
# A quoted token in an FTS5 expression.
_TOKEN = lazy_pattern('"([^"]+)"')
# A value that FTS5 takes as one token.
_PLAIN = lazy_pattern(r"[a-z0-9]{1,24}")
# More projects than these are not excluded one by one.
_MAX_EXCLUDED_PROJECTS = 30
# The longest value whose token is cached: a tag has any length.
_MOST_REMEMBERED_CHARACTERS = 64
# `to do`, `to-do` and `to_do` are one type.
_TYPE_BLANKS = lazy_pattern(r"[-\s]+")
# The kinds of facets. OBSERVED is the category of an observation.
PROJECT, TYPE, TAG, OBSERVED, CATEGORY, PHASE, SCOPE, SOURCE, STATUS, PINNED, BY, CLIENT = range(12)

DAY = 86_400_000_000
"""A day in microseconds."""
HAS_BEGUN = f"n.begins <= case when n.begins % {DAY} then ? else ? end"
"""A condition on `note n`: it is valid already at a moment. Values: `moment_values`."""


def token(kind: int, value: str) -> str:
    """Return the facet token of a value: a private character and the value in lower case.

    The Unicode form of the value does not matter: `é` may be one character or two. A value that is
    not a short ASCII word is replaced by its checksum. In a type, `-` and blanks are the same as
    `_`.

    kind: PROJECT, TYPE and so on.
    """
    if len(value) > _MOST_REMEMBERED_CHARACTERS:
        return _token(kind, value)
    return _short_token(kind, value)


def _token(kind: int, value: str) -> str:
    """Return the facet token of a value, without the cache of `token`.

    TAG with `#Tea` → U+E004 and `tea`. TAG with `green tea` → U+E005 and a checksum.
    """
    # Values that mean the same get the same token. A scope is only lower-cased, as where it is read.
    # Case folding would turn the ligature U+FB01 into `fi`, so that one agent would have the scope
    # of another.
    if kind == SCOPE:
        value = value.strip().lower()
    else:
        value = without_case(value)
    if kind == TYPE:
        value = _TYPE_BLANKS.sub("_", value)
    elif kind == TAG:
        value = value.removeprefix("#")

    # Each kind has two private characters: for values, and for checksums.
    mark_of_value = chr(_FIRST_MARK + 2 * kind)
    mark_of_checksum = chr(_FIRST_MARK + 2 * kind + 1)
    if _PLAIN.fullmatch(value):
        return f"{mark_of_value}{value}"
    digest = blake2b(value.encode("utf-8", "replace"), digest_size=8).hex()
    return f"{mark_of_checksum}{digest}"


# Each note has a dozen tokens, nearly all of them equal to other notes' tokens. Without a cache,
# they take a tenth of the time of indexing.
_short_token = lru_cache(maxsize=1024)(_token)


def facet_text(note: Note, project: int, extra: Inline) -> str:
    """Return the facet tokens of a note, each once. `with_writer` adds the tokens of its writer.

    project: the id of its project.
    extra: the tags and fields in its text.
    """
    # (kind, value) of each facet. A value of None is left out at the end.
    pairs: list[tuple[int, str | None]] = [
        (PROJECT, str(project)),
        (TYPE, note.type),
        (SCOPE, note.scope),
    ]
    tags = [*note.tags, *extra.tags]
    for observation in note.observations:
        pairs.append((OBSERVED, observation.category))
        tags += observation.tags
    # `levels` gives `journal` and `journal/2025` for the tag `journal/2025`, so both find it.
    for tag in tags:
        pairs += [(TAG, level) for level in levels(tag.lstrip("#"))]
    pairs += [(CATEGORY, note.category), (PHASE, note.phase), (SOURCE, note.source)]

    # A status may be in the header or in a field of the text.
    status = note.header.get("status", extra.fields.get("status"))
    if status is not None:
        statuses = status if isinstance(status, list) else [status]
        pairs += [(STATUS, str(value)) for value in statuses]
    if flag(note.header.get("pinned")):
        pairs.append((PINNED, "true"))
    # A dict keeps each token once.
    tokens = dict.fromkeys(token(kind, value) for kind, value in pairs if value is not None)
    return " ".join(tokens)


def with_writer(facet: str, provenance: Provenance) -> str:
    """Return the facet tokens of a note and of its writer, for a `facet` column.

    facet: the tokens of the note, as `facet_text` returns them.
    provenance: the writer of the text, and the client that the writer used.
    """
    return " ".join([facet, *_writer_tokens(provenance)])


@remembered
def _writer_tokens(provenance: Provenance) -> list[str]:
    """Return the facet tokens of a writer. All notes of one change have the same."""
    pairs = [(BY, provenance.who)]
    client = provenance.client
    if client:
        # A filter may name the client with its version or without.
        pairs += [(CLIENT, client), (CLIENT, client.partition(" ")[0])]
    return list(dict.fromkeys(token(kind, value) for kind, value in pairs))


def _named_projects(query: Query, ids_by_name: Mapping[str, int]) -> list[int]:
    """Return the ids of the projects that a query names. The archive belongs to `categories`.

    ids_by_name: the ids of all projects by case-folded name.
    """
    names = [name.casefold() for name in query.projects or ()]
    ids = list(dict.fromkeys(ids_by_name[name] for name in names if name in ids_by_name))
    archive = ids_by_name.get(ARCHIVE_PROJECT)
    has_memories = CATEGORY_PROJECT in (query.projects or ())
    if archive is not None and has_memories and query.archived is not False:
        ids.append(archive)
    return ids


def _excluded_projects(
    db: sqlite3.Connection, query: Query, ids_by_name: Mapping[str, int]
) -> list[str]:
    """Return the tokens of projects to leave out if a query names no projects.

    These are the traces and, if the query excludes it, the archive.

    ids_by_name: the ids of all projects by case-folded name.
    """
    tokens = []
    archive = ids_by_name.get(ARCHIVE_PROJECT)
    if archive is not None and query.archived is False:
        tokens.append(token(PROJECT, str(archive)))
    traces = ids_by_name.get(TRACE_PROJECT)
    # Most homes have no traces, and a simpler expression is faster.
    if traces is not None:
        sql = "select 1 from note where project = ? limit 1"
        if db.execute(sql, (traces,)).fetchone():
            tokens.append(token(PROJECT, str(traces)))
    return tokens


def wanted(
    db: sqlite3.Connection, query: Query, viewer: str | None, *, has_text: bool = False
) -> tuple[list[str], list[str]]:
    """Return the facets that a note must have, and must not have, to pass a query.

    The first list has FTS5 expressions, all of which must match. The second has tokens, none of
    which may occur. Scopes that `viewer` may not see are among them.

    viewer: the agent that asks; None for the owner.
    has_text: whether the query also has words. Then projects with most of the notes are selected by
        excluding the other projects, since FTS5 reads fewer tokens that way.
    """
    unwanted = [token(SCOPE, scope) for scope in hidden_scopes(db, viewer)]
    ids_by_name = project_ids(db)
    needed: list[str] = []
    # The query asks for the archive only.
    if query.archived:
        archive_id = ids_by_name.get(ARCHIVE_PROJECT)
        needed.append(_any_project([] if archive_id is None else [archive_id]))
    if query.projects is None:
        unwanted += _excluded_projects(db, query, ids_by_name)
    else:
        # Projects are selected by their tokens, or by excluding the tokens of all others.
        ids = _named_projects(query, ids_by_name)
        other_ids = set(ids_by_name.values()).difference(ids)
        may_exclude = has_text and len(other_ids) <= _MAX_EXCLUDED_PROJECTS
        if may_exclude and counted(db, ids) > counted(db, other_ids):
            unwanted += [token(PROJECT, str(other_id)) for other_id in sorted(other_ids)]
        else:
            needed.append(_any_project(ids))
    return needed + _note_expressions(query), unwanted


def _any_project(ids: Sequence[int]) -> str:
    """Return an FTS5 expression for the notes of these projects. Without any id it finds no note."""
    if not ids:
        return quoted(_NOTHING)
    return any_of(PROJECT, map(str, ids))


def _note_expressions(query: Query) -> list[str]:
    """Return the FTS5 expressions for all filters of a query but its projects."""
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
    # `by: ada` also finds notes by `agent:ada`.
    if query.by is not None:
        needed.append(any_of(BY, [query.by, f"{AGENT_PREFIX}{query.by}"]))
    return needed


def projects_of(
    needed: Iterable[str], unwanted: Iterable[str], project_numbers: Iterable[int]
) -> list[int] | None:
    """Return the ids of the projects whose visible notes all pass these filters.

    None if the filters require other facets than projects.

    needed, unwanted: the lists that `wanted` returns.
    project_numbers: the ids of all projects.
    """
    # All projects: token -> id. Those that do not pass are taken out one after the other.
    remaining = {token(PROJECT, str(number)): number for number in project_numbers}
    for needed_expression in needed:
        tokens = _TOKEN.findall(needed_expression)
        are_projects = all(
            this_token in remaining or this_token == _NOTHING for this_token in tokens
        )
        if not are_projects:
            return None
        remaining = {
            this_token: number for this_token, number in remaining.items() if this_token in tokens
        }

    # Scopes do not matter here: hidden notes are left out anyway. `_token` begins their tokens with
    # one of these two characters.
    scope_marks = (chr(_FIRST_MARK + 2 * SCOPE), chr(_FIRST_MARK + 2 * SCOPE + 1))
    for this_token in unwanted:
        if not this_token.startswith(scope_marks):
            remaining.pop(this_token, None)
    return list(remaining.values())


def counted(db: sqlite3.Connection, projects: Iterable[int], viewer: str | None = None) -> int:
    """Return how many notes of these projects `viewer` sees.

    projects: the ids of the projects.
    viewer: the agent that asks; None for the owner, who sees all.
    """
    sql = "select scope, sum(notes) from tally where project = ? and folder = '' group by scope"
    count = 0
    for project in projects:
        for scope, number in db.execute(sql, (project,)):
            if may_see(scope, viewer):
                count += number
    return count


def any_of(kind: int, values: Iterable[str]) -> str:
    """Return an FTS5 expression for notes whose facet `kind` has at least one of these values."""
    phrases = [quoted(token(kind, value)) for value in values]
    if len(phrases) == 1:
        return phrases[0]
    return f"({' OR '.join(phrases)})"


def quoted(phrase: str) -> str:
    """Return `phrase` as an FTS5 string, so that no character in it acts as syntax."""
    return '"' + phrase.replace('"', '""') + '"'


def expression(needed: list[str], unwanted: list[str], text: str = "") -> str:
    """Join an expression for words and facets into one FTS5 expression.

    needed, unwanted: the lists that `wanted` returns.
    text: an FTS5 expression for words. "" without words.

    "" if nothing is needed, since FTS5 cannot only exclude.
    """
    expressions = [f"({text})", *needed] if text else needed
    positive = " AND ".join(expressions)
    if not unwanted or not positive:
        return positive
    return f"({positive}) NOT ({' OR '.join(map(quoted, unwanted))})"


def passes(facets: str, needed: Iterable[str], unwanted: Iterable[str]) -> bool:
    """Whether a note passes the filters of a query.

    facets: all facet tokens of the note (column `facet`).
    needed, unwanted: the lists that `wanted` returns.
    """
    note_tokens = set(facets.split(" "))
    if not note_tokens.isdisjoint(unwanted):
        return False
    # An expression joins its tokens by OR, so it fails if the note has none of them.
    return not any(
        note_tokens.isdisjoint(_TOKEN.findall(needed_expression)) for needed_expression in needed
    )


def hidden_scopes(db: sqlite3.Connection, viewer: str | None) -> list[str]:
    """Return the scopes of notes that `viewer` may not see. The owner (None) sees all."""
    if viewer is None:
        return []
    # Jumping from one scope to the next is faster than reading the scopes of all notes. The first
    # jump begins before all scopes, at "".
    scopes = [""]
    next_scope = (
        "select scope from note where scope <> 'global' and scope > ? order by scope limit 1"
    )
    while row := db.execute(next_scope, (scopes[-1],)).fetchone():
        (scope,) = row
        scopes.append(scope)
    return [scope for scope in scopes[1:] if not may_see(scope, viewer)]


def may_see(scope: str, viewer: str | None) -> bool:
    """Whether `viewer` sees notes of `scope`.

    The owner (None) sees all. An agent sees `global`, its own scope, and scopes that list it.
    """
    if viewer is None or scope == GLOBAL or scope == f"agent:{viewer}":
        return True
    return is_among(scope, viewer)


def seen_by(column: str, viewer: str) -> str:
    """Return the condition of `may_see` in SQL.

    column: the column with the scope.
    viewer: the SQL for the viewer, such as `:viewer`. It occurs three times.
    """
    is_named = f"instr({column}, ',' || {viewer} || ',')"
    return (
        f"({viewer} is null or {column} in ('global', 'agent:' || {viewer})"
        f" or {column} like '{SEVERAL}%' and {is_named} > 0)"
    )


def project_ids(db: sqlite3.Connection) -> dict[str, int]:
    """Return the ids of all indexed projects by case-folded name."""
    return {name.casefold(): number for number, name in db.execute("select id, name from project")}


class ValidSpan(NamedTuple):
    """The time when a note is valid, as columns of table `note`.

    begins, ends: in microseconds since 1970. `ends` is None for a note without an end.
    limited: None if the note has been valid ever since it was written, as most notes. Otherwise 1.
        The few notes with 1 have a database index of their own, in which they are found fast.
    """

    begins: int
    ends: int | None
    limited: int | None


def valid_span(note: Note) -> ValidSpan:
    """Return when a note is valid: a span of time.

    It begins at `valid_from`. If that is missing, it begins at the note's date or creation,
    whichever is earlier. It may end before that: a note of 2026 says that a job ended in 2020.
    Nobody knows when the job began, so the note counts as valid at all times before its end.
    """
    # All times are microseconds since 1970.
    ends = _end_of(note)
    created = microseconds(note.created)
    if note.valid_from is not None:
        begins = microseconds(note.valid_from)
        # Valid ever since it was written. A whole day may begin up to a day later in another time
        # zone, so it must be a day before.
        was_always_valid = ends is None and begins <= created - DAY
        return ValidSpan(begins, ends, limited=None if was_always_valid else 1)
    begins = min(created, _beginning_of_date(note, created))
    if ends is None:
        return ValidSpan(begins, ends=None, limited=None)
    if ends <= begins:
        # A note of 2026 about a job that ended in 2020. Nobody knows when the job began.
        begins = 0
    return ValidSpan(begins, ends, limited=1)


def _beginning_of_date(note: Note, default: int) -> int:
    """Return the moment when the date of a note begins, in microseconds.

    default: returned for a note without a date, or with one that is not written as YYYY-MM-DD.
    """
    if not note.date:
        return default
    try:
        return microseconds(datetime.fromisoformat(note.date[:10]).replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        return default


def _end_of(note: Note) -> int | None:
    """Return the end of a note in microseconds, by `valid_until` or `expires_at`.

    None without an end. `expires_at` does not count for memories, which are archived then, and
    key-value entries, which are removed.
    """
    times = [note.valid_until]
    if note.project not in (*MEMORY_PROJECTS, KV_PROJECT):
        times.append(note.expires)
    ends = [microseconds(time) for time in times if time is not None]
    return min(ends, default=None)


def moment_values(moment: datetime) -> tuple[int, int]:
    """Return the values for HAS_BEGUN: a moment, and its day in its time zone.

    Both are in microseconds since 1970. The first is compared with moments, the second with days.
    """
    day = datetime(moment.year, moment.month, moment.day, tzinfo=UTC) - EPOCH
    return microseconds(moment), day.days * DAY


def invalid_at(spans: Iterable[Span], moment: datetime, upheld: Collection[int] = ()) -> list[int]:
    """Return the rows that are not valid at a moment: too early, over or superseded.

    spans: the spans of all notes that are not always valid.
    upheld: the rows of notes that no other note ends.
    """
    now, today = moment_values(moment)
    invalid_rows: set[int] = set()
    for row, begins, ends in spans:
        if row in upheld:
            continue
        has_begun = _is_reached(begins, now, today)
        has_ended = ends is not None and _is_reached(ends, now, today)
        if has_ended or not has_begun:
            invalid_rows.add(row)
    return sorted(invalid_rows)


def _is_reached(time: int, now: int, today: int) -> bool:
    """Whether a time of a note is now or earlier. All are in microseconds since 1970.

    time: a multiple of DAY means a day, which is compared with `today`. Any other time is a moment.
    now, today: a moment, and its day in its time zone (`moment_values`).
    """
    is_day = time % DAY == 0
    return time <= (today if is_day else now)


def excluded(rows: Sequence[int], name: str) -> str:
    """Return an SQL condition that leaves out these rows. "" if no row is left out.

    name: the column with the row.
    """
    if rows:
        return f"{name} not in ({', '.join(map(str, rows))})"
    return ""
