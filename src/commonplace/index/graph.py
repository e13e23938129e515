"""Walking the notes: relations in both directions, neighbours, open ends (contract 000b, 7)."""

from __future__ import annotations

import posixpath
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from commonplace.clock import microseconds
from commonplace.index.facets import may_see
from commonplace.index.keys import CATEGORIES_PROJECT, first_line_of, keys_of, keys_of_links
from commonplace.index.lookup import in_order, infos, text_of
from commonplace.index.resolve import RESOLVED, Answer, Resolver
from commonplace.index.rows import Edge, NoteInfo, Reached

MOST_VISITED = 2_000
"""A walk stops after so many notes, however large the graph."""

_LINKS_AT_ONCE = 1_000


class _Link(NamedTuple):
    """A relation as written, with what resolving it needs to know of the note it stands in."""

    note: int
    type: str
    target: str
    target_project: str | None
    context: str | None
    line: int
    project: str
    path: str
    scope: str


_LINK = (
    "select l.note, l.type, l.target, l.project, l.context, l.line, p.name, n.path, n.scope from {source}"
    " join note n on n.row = l.note join project p on p.id = n.project"
)


def outgoing(db: sqlite3.Connection, note: NoteInfo, viewer: str | None) -> list[Edge]:
    """The note's relations in the order of the file, each with where it leads for `viewer`.

    Ids in a memory's header that lead nowhere are shown to the owner alone: for an agent they may be those of
    memories it must not see (contract 001, 1).
    """
    ids = note.links if viewer is not None and note.project == CATEGORIES_PROJECT else ()
    links = _links_of(db, [note.row])
    answers = _answers(Resolver(db, viewer), links)
    known = infos(db, {row for answer in answers for row in answer.rows if answer.state == RESOLVED})
    return [
        Edge(
            link.type, "out", link.target, answer.state,
            known.get(answer.rows[0]) if answer.state == RESOLVED else None, link.context, link.line,
        )
        for link, answer in zip(links, answers, strict=True)
        if link.target not in ids or answer.state == RESOLVED
    ]  # fmt: skip


def leading(db: sqlite3.Connection, rows: Sequence[int], viewer: str | None) -> list[tuple[int, str, int | None]]:
    """All relations of these notes at once, by note and place: (its row, target as written, row it leads to)."""
    links = _links_of(db, rows)
    answers = _answers(Resolver(db, viewer), links)
    return [
        (link.note, link.target, answer.rows[0] if answer.state == RESOLVED else None)
        for link, answer in zip(links, answers, strict=True)
    ]


def targets(db: sqlite3.Connection, rows: Sequence[int]) -> dict[int, list[str]]:
    """The targets of these notes' relations, as written, by row and place; notes without any are left out."""
    found: dict[int, list[str]] = {}
    for link in _links_of(db, rows):
        found.setdefault(link.note, []).append(link.target)
    return found


def incoming(
    db: sqlite3.Connection, note: NoteInfo, viewer: str | None, limit: int | None = None, offset: int = 0
) -> list[Edge]:
    """The relations of other notes, and its own, that lead to `note`: newest source first.

    Only links that really resolve to it, from notes the viewer sees; `limit` and `offset` page.
    """
    links = [link for link, _ in _links_to(db, [note], Resolver(db, viewer))]
    page = links[offset : None if limit is None else offset + limit]
    known = infos(db, {link.note for link in page})
    return [
        Edge(link.type, "in", known[link.note].title, RESOLVED, known[link.note], link.context, link.line)
        for link in page
    ]


def degree(db: sqlite3.Connection, note: NoteInfo, viewer: str | None) -> int:
    """How many relations lead to the note: the length of all pages of `incoming`."""
    return len(_links_to(db, [note], Resolver(db, viewer)))


def neighbours(
    db: sqlite3.Connection, note: NoteInfo, *, depth: int, viewer: str | None, since: datetime | None = None,
    types: Sequence[str] | None = None, limit: int = 100,
) -> list[Reached]:  # fmt: skip
    """Notes within `depth` relations of `note`, in both directions: each once, nearest first, then newest.

    `types` are the relation types followed (None = all). `since` leaves out notes changed
    earlier, though the walk goes through them. At most `limit` notes; `note` itself is not one.
    """
    resolver = Resolver(db, viewer)
    seen = {note.row}
    frontier = [note]
    found: list[Reached] = []
    earliest = None if since is None else microseconds(since)
    for level in range(1, depth + 1):
        via = _reached(db, frontier, resolver, types, seen)
        changed = _changed(db, via)
        rows = sorted(via, key=lambda row: (-changed[row], row))[: MOST_VISITED - len(seen)]
        seen.update(rows)
        frontier = in_order(db, rows)
        for one in frontier:
            if earliest is None or changed[one.row] >= earliest:
                found.append(Reached(one, level, via[one.row]))
        if len(found) >= limit or not frontier:
            break
    return found[:limit]


def unresolved(db: sqlite3.Connection, viewer: str | None, project: str | None = None) -> list[tuple[NoteInfo, str]]:
    """Every link that leads to no note, or to several: (note, target as written), by note and place."""
    rows = [
        row
        for row, scope in db.execute(
            "select row, scope from note where ?1 is null or project = (select id from project where name = ?1)"
            " order by row", (project,),
        )
        if may_see(scope, viewer)
    ]  # fmt: skip
    open_links: list[tuple[int, str]] = []
    for at in range(0, len(rows), _LINKS_AT_ONCE):
        links = _links_of(db, rows[at : at + _LINKS_AT_ONCE])
        answers = _answers(Resolver(db, viewer), links)
        open_links += [(one.note, one.target) for one, to in zip(links, answers, strict=True) if to.state != RESOLVED]
    known = infos(db, {row for row, _ in open_links})
    return [(known[row], target) for row, target in open_links]


def _reached(
    db: sqlite3.Connection, frontier: list[NoteInfo], resolver: Resolver, types: Sequence[str] | None, seen: set[int]
) -> dict[int, str]:
    """The rows one relation away from the frontier, not yet seen, with the type they are reached by."""
    via: dict[int, str] = {}
    links = [one for one in _links_of(db, [note.row for note in frontier]) if types is None or one.type in types]
    for link, answer in zip(links, _answers(resolver, links), strict=True):
        if answer.state == RESOLVED and answer.rows[0] not in seen:
            via.setdefault(answer.rows[0], link.type)
    for link, _ in _links_to(db, frontier, resolver):
        if link.note not in seen and (types is None or link.type in types):
            via.setdefault(link.note, link.type)
    return via


def _changed(db: sqlite3.Connection, rows: Iterable[int]) -> dict[int, int]:
    every = list(rows)
    found: dict[int, int] = {}
    for at in range(0, len(every), _LINKS_AT_ONCE):
        part = every[at : at + _LINKS_AT_ONCE]
        found.update(
            db.execute(f"select row, changed from note where row in ({', '.join('?' * len(part))})", part).fetchall()
        )
    return found


def _links_of(db: sqlite3.Connection, rows: Sequence[int]) -> list[_Link]:
    """The links that stand in these notes, by note and place."""
    found: list[_Link] = []
    for at in range(0, len(rows), _LINKS_AT_ONCE):
        part = rows[at : at + _LINKS_AT_ONCE]
        found += map(_Link._make, db.execute(
            f"{_LINK.format(source='link l')} where l.note in ({', '.join('?' * len(part))})"
            " order by l.note, l.position", part,
        ))  # fmt: skip
    return found


def _links_to(db: sqlite3.Connection, notes: Sequence[NoteInfo], resolver: Resolver) -> list[tuple[_Link, int]]:
    """The links that lead to one of `notes`, with the row of that one; newest source first."""
    rows = {note.row for note in notes}
    keys = sorted({one for note in notes for one in _keys(db, note)})
    links: list[tuple[int, _Link]] = []
    for at in range(0, len(keys), _LINKS_AT_ONCE):
        part = keys[at : at + _LINKS_AT_ONCE]
        found = db.execute(
            f"{_LINK.format(source='link l').replace(' from', ', n.changed from', 1)}"
            f" where l.fold in ({', '.join('?' * len(part))}) order by l.note, l.position", part,
        )  # fmt: skip
        links += [(values[-1], _Link._make(values[:-1])) for values in found if may_see(values[-2], resolver.viewer)]
    links.sort(key=lambda one: -one[0])
    every = [link for _, link in links]
    return [
        (link, answer.rows[0])
        for link, answer in zip(every, _answers(resolver, every), strict=True)
        if answer.state == RESOLVED and answer.rows[0] in rows
    ]


def _keys(db: sqlite3.Connection, note: NoteInfo) -> set[str]:
    """All keys a link to the note can have."""
    text = text_of(db, note.row)[1] if note.project == CATEGORIES_PROJECT else ""
    first = first_line_of(note.project, text)
    keys = keys_of(note.project, note.path, note.permalink, (note.title, *note.aliases), first)
    return keys | keys_of_links(note.project, note.path, note.permalink, note.id)


def _answers(resolver: Resolver, links: Sequence[_Link]) -> list[Answer]:
    """Where each link leads; plain targets are looked up together."""
    resolver.prefetch({link.target for link in links if not link.target.startswith(("./", "../"))})
    return [
        resolver.link(link.target, link.project, posixpath.dirname(link.path), link.target_project, link.scope)
        for link in links
    ]
