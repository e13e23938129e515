"""The links between notes: relations in both directions, and walks along them (contract 000b, 7)."""

from __future__ import annotations

import json
import posixpath
import sqlite3
from collections import Counter
from collections.abc import Collection, Container, Iterable, Sequence
from datetime import datetime
from itertools import chain, product
from typing import NamedTuple

from memoranda.clock import microseconds
from memoranda.index.database import Queries, held, version
from memoranda.index.filters import may_see
from memoranda.index.former_addresses import former_names
from memoranda.index.resolve import (
    RESOLVED,
    Candidate,
    LinkTarget,
    Resolver,
    first_line_of,
    key,
    keys_of,
)
from memoranda.index.rows import Edge, NoteInfo, Reached, in_order, infos, text_of
from memoranda.note.links import lead
from memoranda.note.model import ARCHIVE_PROJECT, MEMORY_PROJECTS
from memoranda.note.names import stem
from memoranda.note.notion import is_page
from memoranda.text.unicode import sqlite_text

MOST_VISITED = 2_000
"""A walk stops after this many notes, however large the graph."""
MOST_SHOWN = 200
"""So many of the links that lead to a note are told with it, more than any reply has room for."""
# Values of one statement, below SQLite's limit of 999 in old versions.
_MOST_MARKS = 400
# Of more relations than these the memory they take is worth more than the time.
_MOST_REMEMBERED = 200_000
# The notes that link to a hub are read this many at a time.
_SOURCES = 200


class _Link(NamedTuple):
    """A relation as written, with the facts about its note that resolving needs."""

    note: int
    type: str
    target: str
    target_project: str | None
    context: str | None
    line: int
    project: str
    path: str
    scope: str
    changed: int
    rest: str


_LINKS = (
    "select l.note, l.type, l.target, l.project, l.context, l.line, p.name, n.path, n.scope, n.changed,"
    " l.rest from link l"
    " join note n on n.row = l.note join project p on p.id = n.project"
    " where l.{column} in ({marks}) order by l.note, l.position"
)


class RememberedPairs:
    """The relations among all notes as they were in a `state` of the index, one per connection
    (`database.held`).
    """

    def __init__(self) -> None:
        self.state: tuple[tuple[int, int], Collection[str]] | None = None
        self.by_viewer: dict[str | None, frozenset[tuple[int, int, str]]] = {}


class LinkQueries(Queries):
    """Reads the links of one index. `viewer` is the agent that asks, None the owner."""

    def _resolver(self, viewer: str | None) -> Resolver:
        return Resolver(self._db, viewer, self._database.projects)

    def resolve(
        self,
        target: str,
        *,
        project: str,
        folder: str = "",
        viewer: str | None,
        target_project: str | None = None,
    ) -> NoteInfo | None:
        """Resolve a link to the note that it leads to for `viewer`. None if there is none.

        project, folder: the place of the note that has the link.
        target: the text in `[[target]]`.
        target_project: the project in `[[project::target]]`.
        """
        answer = self._resolver(viewer).link(
            sqlite_text(target), project, folder, target_project, None
        )
        return next(iter(in_order(self._db, [] if answer.row is None else [answer.row])), None)

    def outgoing(self, note: NoteInfo, viewer: str | None) -> list[Edge]:
        """The note's relations in the order of the file, resolved for `viewer`.

        Only the owner sees ids in a memory's header that lead nowhere: they may belong to memories
        that an agent must not see (contract 001, 1). The address of a Notion page that is not here
        does not count as a link, since it leads to the web.
        """
        if viewer is not None and note.project in MEMORY_PROJECTS:
            ids = note.links
        else:
            ids = ()
        links = self._links("note", [note.row])
        resolver = self._resolver(viewer)
        answers = _answers(resolver, links)
        infos_by_row = infos(self._db, {answer.row for answer in answers if answer.row is not None})
        return [
            Edge(
                link.type,
                "out",
                _shown_target(resolver, link, answer),
                answer.state,
                infos_by_row.get(answer.row or 0),
                link.context,
                link.line,
            )
            for link, answer in zip(links, answers, strict=True)
            if answer.row is not None or not (link.target in ids or is_page(link.target))
        ]

    def resolved_links_of(
        self, rows: Sequence[int], viewer: str | None
    ) -> list[tuple[int, str, int | None]]:
        """All relations of these notes, by note and place: (its row, target as written, row it
        leads to).

        The last is None if the target does not exist.
        """
        links = self._links("note", rows)
        answers = _answers(self._resolver(viewer), links)
        return [
            (link.note, link.target, answer.row)
            for link, answer in zip(links, answers, strict=True)
            if answer.row is not None or not is_page(link.target)
        ]

    def pairs(self, rows: Collection[int] | None, viewer: str | None) -> set[tuple[int, int, str]]:
        """The relations among these notes, None: among all, as (row, row it leads to, type); each
        once.
        """
        if rows is None:
            return self._remembered_pairs(viewer)
        known_rows = set(rows)
        links = self._links("note", sorted(known_rows))
        answers = _answers(self._resolver(viewer), links)
        return {
            (link.note, answer.row, link.type)
            for link, answer in zip(links, answers, strict=True)
            if answer.row is not None and answer.row in known_rows and answer.row != link.note
        }

    def _remembered_pairs(self, viewer: str | None) -> set[tuple[int, int, str]]:
        """The relations among all notes, found anew where the index changed since."""
        remembered = held(self._db, RememberedPairs)
        state = (version(self._db), self._database.projects)
        if remembered.state != state:
            remembered.state = state
            remembered.by_viewer = {}
        if viewer in remembered.by_viewer:
            return set(remembered.by_viewer[viewer])
        pairs = self._all_pairs(viewer)
        if len(pairs) <= _MOST_REMEMBERED:
            remembered.by_viewer[viewer] = frozenset(pairs)
        return pairs

    def _all_pairs(self, viewer: str | None) -> set[tuple[int, int, str]]:
        """The relations between all notes.

        The place of each note is read once, rather than for each of its links.
        """
        sources = {
            row: (project, path.rpartition("/")[0], scope)
            for row, project, path, scope in self._db.execute(
                "select n.row, p.name, n.path, n.scope from note n join project p on p.id = n.project"
            )
            if may_see(scope, viewer)
        }
        resolver = self._resolver(viewer)
        targets = "select distinct target from link where target not like './%'"
        resolver.prefetch(
            target
            for (target,) in self._db.execute(f"{targets} and target not like '../%'").fetchall()
        )
        pairs = set[tuple[int, int, str]]()
        links = self._db.execute("select note, type, target, project, rest from link")
        for row, kind, target, target_project, part_after_name in links.fetchall():
            source = sources.get(row)
            if source is None:
                continue
            project, folder, scope = source
            reached = resolver.link(
                target, project, folder, target_project, scope, part_after_name
            ).row
            if reached is not None and reached in sources and reached != row:
                pairs.add((row, reached, kind))
        return pairs

    def targets(self, rows: Sequence[int]) -> dict[int, list[str]]:
        """The targets of these notes' relations, as written, by row and place; notes without any
        are left out.
        """
        targets_by_row: dict[int, list[str]] = {}
        for link in self._links("note", rows):
            targets_by_row.setdefault(link.note, []).append(link.target)
        return targets_by_row

    def incoming(
        self, note: NoteInfo, viewer: str | None, limit: int | None = None, offset: int = 0
    ) -> list[Edge]:
        """The relations of other notes, and its own, that lead to `note`: newest source first.

        Only links that really resolve to it, from notes the viewer sees; `limit` and `offset` page.
        """
        with self._database.snapshot():
            if limit is None:
                until = None
            else:
                until = offset + limit
            links, _ = self._newest_to(note, self._resolver(viewer), until)
            return self._incoming(links[offset:until])

    def count_incoming(
        self, notes: Sequence[NoteInfo], viewer: str | None, limit: int
    ) -> dict[int, int]:
        """By row, how many relations lead to each of these notes, counted up to `limit`."""
        with self._database.snapshot():
            # One for all: many links lead to several of them
            resolver = self._resolver(viewer)
            return {
                note.row: min(limit, len(self._newest_to(note, resolver, limit)[0]))
                for note in notes
            }

    def _incoming(self, links: Sequence[_Link]) -> list[Edge]:
        infos_by_row = infos(self._db, {link.note for link in links})
        return [
            Edge(
                link.type,
                "in",
                infos_by_row[link.note].title,
                RESOLVED,
                infos_by_row[link.note],
                link.context,
                link.line,
            )
            for link in links
        ]

    def around(
        self,
        note: NoteInfo,
        *,
        depth: int,
        viewer: str | None,
        since: datetime | None = None,
        limit: int = 100,
    ) -> tuple[list[Edge], int, list[Reached]]:
        """`outgoing` and `incoming` of a note, of a hub the newest `MOST_SHOWN` or a few more; how
        many links more name the note; and its `neighbours`. What leads to it is looked for once."""
        with self._database.snapshot():
            resolver = self._resolver(viewer)
            links, more_count = self._newest_to(
                note, resolver, max(limit, MOST_SHOWN) if depth == 1 and not since else None
            )
            edges = self.outgoing(note, viewer) + self._incoming(links[: max(limit, MOST_SHOWN)])
            more_count += max(0, len(links) - max(limit, MOST_SHOWN))
            return edges, more_count, self._walk([note], depth, resolver, limit, since, links)

    def neighbours(
        self, notes: Sequence[NoteInfo], *, depth: int, viewer: str | None, limit: int = 100
    ) -> list[Reached]:
        """Notes within `depth` relations of `notes`, in both directions: each once, nearest first,
        then newest. At most `limit` notes; `notes` are not among them."""
        with self._database.snapshot():
            return self._walk(notes, depth, self._resolver(viewer), limit)

    def _walk(
        self,
        notes: Sequence[NoteInfo],
        depth: int,
        resolver: Resolver,
        limit: int,
        since: datetime | None = None,
        links: Sequence[_Link] | None = None,
    ) -> list[Reached]:
        """Collect the neighbours of notes (see `neighbours`).

        since: leave out notes changed earlier, though the walk goes through them.
        links: the links to the notes, if they are known.
        """
        seen_rows = {note.row for note in notes}
        frontier = list(notes)
        reached: list[Reached] = []
        if since is None:
            earliest = None
        else:
            earliest = microseconds(since)
        for level in range(1, depth + 1):
            if level > 1 or links is None:
                links = self._links_to(frontier, resolver)
            types = self._types_of_next(frontier, links, seen_rows, resolver)
            changed = self._by_change(types)
            rows = sorted(types, key=changed.__getitem__)[: MOST_VISITED - len(seen_rows)]
            seen_rows.update(rows)
            late = {row for row in rows if earliest is None or -changed[row][0] >= earliest}
            # The walk ends at the last level, so its other notes need not be read.
            if level == depth:
                rows = [row for row in rows if row in late][: limit - len(reached)]
            frontier = in_order(self._db, rows)
            reached += [
                Reached(note, level, types[note.row]) for note in frontier if note.row in late
            ]
            if len(reached) >= limit or not frontier:
                break
        return reached[:limit]

    def _links_to(self, notes: Sequence[NoteInfo], resolver: Resolver) -> Sequence[_Link]:
        """The links that lead to any of these notes."""
        keys: set[str] = set()
        for note in notes:
            keys.update(self._keys(note))
        return self._links_leading_to(notes, self._links("fold", keys), resolver)

    def _types_of_next(
        self,
        frontier: Sequence[NoteInfo],
        links: Iterable[_Link],
        seen_rows: Container[int],
        resolver: Resolver,
    ) -> dict[int, str]:
        """The rows one relation away and not yet seen, with the type they are reached by."""
        types: dict[int, str] = {}
        turn = {note.row: number for number, note in enumerate(frontier)}
        outgoing = sorted(self._links("note", [*turn]), key=lambda link: turn[link.note])
        for link, answer in zip(outgoing, _answers(resolver, outgoing), strict=True):
            if answer.row is not None and answer.row not in seen_rows:
                types.setdefault(answer.row, link.type)
        for link in links:
            if link.note not in seen_rows:
                types.setdefault(link.note, link.type)
        return types

    def _by_change(self, rows: Iterable[int]) -> dict[int, tuple[int, str, str]]:
        """Keys that sort rows by their change, latest first: the negative time, the permalink, the
        path.
        """
        sql = (
            "select row, changed, permalink, path from note "
            "where row in (select value from json_each(?))"
        )
        cursor = self._db.execute(sql, (json.dumps(list(rows)),))
        return {row: (-changed, permalink, path) for row, changed, permalink, path in cursor}

    def _links(self, column: str, values: Collection[int | str]) -> list[_Link]:
        """The links whose column `note` or `fold` is among `values`, by note and place."""
        return list(map(_Link._make, self._among(_LINKS.replace("{column}", column), values)))

    def _newest_to(
        self, note: NoteInfo, resolver: Resolver, limit: int | None
    ) -> tuple[list[_Link], int]:
        """The links that lead to a note, newest source first, and how many more links name it.

        limit: about how many links to look at, from the notes indexed last. None means all.
        """
        keys = self._keys(note)
        places = self._among("select note from link where fold in ({marks})", keys)
        sources = Counter(chain.from_iterable(places))
        rows = sorted(sources, reverse=True)
        newest_links = list[_Link]()
        if limit is not None:
            size = _SOURCES
        else:
            size = max(1, len(rows))
        for start in range(0, len(rows), size):
            if limit is not None and len(newest_links) >= limit:
                return newest_links, sum(map(sources.__getitem__, rows[start:]))
            marks = ", ".join("?" * len(keys))
            among = _LINKS.replace("l.{column} in", f"+l.fold in ({marks}) and l.note in")
            links = map(_Link._make, self._among(among, rows[start : start + size], *keys))
            newest_links += self._links_leading_to([note], list(links), resolver)
        return newest_links, 0

    @staticmethod
    def _links_leading_to(
        notes: Sequence[NoteInfo], links: list[_Link], resolver: Resolver
    ) -> list[_Link]:
        """The `links` that the caller sees and that lead to one of `notes`, newest source first."""
        rows = {note.row for note in notes}
        links = [link for link in links if may_see(link.scope, resolver.viewer)]
        # By no row: a rebuilt index has others.
        links.sort(key=lambda link: (-link.changed, link.project, link.path))
        return [
            link
            for link, answer in zip(links, _answers(resolver, links), strict=True)
            if answer.row in rows
        ]

    def _keys(self, note: NoteInfo) -> set[str]:
        """The keys under which links to a note may be stored."""
        if note.project in MEMORY_PROJECTS:
            text = text_of(self._db, note.row)[1]
        else:
            text = ""
        return link_keys(note, first_line_of(note.project, text))

    def relocation(self, moved: Sequence[MovedNote], viewer: str | None) -> Relocation:
        """Where links lead before and after these notes move."""
        return Relocation(self._db, moved, viewer, self._database.projects)


def link_keys(note: NoteInfo, first_line: str | None = None) -> set[str]:
    """The keys under which links to a note may be stored.

    They are made of its titles, id and permalink, the ends of its path, permalink and path after
    the project, and the addresses it had before upkeep moved it.
    """
    titles = (note.title, *note.aliases)
    keys = keys_of(note.project, note.path, note.permalink, titles, first_line)
    prefixes = {note.project, lead(note.project)}
    names = (note.permalink, stem(note.path))
    in_front = [f"{prefix}/{name}" for prefix, name in product(prefixes, names)]
    parts = note.path.split("/")
    ends = ["/".join(parts[start:]) for start in range(1, len(parts))]
    ends += [stem(end) for end in ends]
    origin = note.header.get("archived_from") if note.project == ARCHIVE_PROJECT else None
    former = former_names(note.project, note.path, str(origin or ""))
    return keys | {key(name) for name in (note.id, note.permalink, *in_front, *ends, *former)}


class MovedNote(NamedTuple):
    """A note to move: as it is now, and as the index will know it after the move."""

    before: NoteInfo
    after: NoteInfo


class Relocation:
    """Where links lead before and after notes move."""

    def __init__(
        self,
        db: sqlite3.Connection,
        moved: Sequence[MovedNote],
        viewer: str | None,
        projects: Collection[str],
    ):
        self._db = db
        self._viewer = viewer
        self._moved = moved
        self._paths = {move.before.row: move.after.path for move in moved}
        self._before = Resolver(db, viewer, projects)
        self._after = MovedResolver(db, viewer, projects, moved)

    def sources(self) -> list[NoteInfo]:
        """The notes with links that lead to another note afterwards, or to none."""
        rows = list(self._paths)
        moved_notes = chain.from_iterable(self._moved)
        keys = set(chain.from_iterable(map(link_keys, moved_notes)))
        links = dict.fromkeys([*self._select("note", rows), *self._select("fold", keys)])
        broken = {
            link.note
            for link in links
            if may_see(link.scope, self._viewer)
            and self.broken_target(
                link.note,
                link.project,
                link.path,
                link.scope,
                (link.target, link.target_project, link.rest),
                may_be_markdown=link.target.endswith((".md", ".markdown")),
            )
        }
        return in_order(self._db, sorted(broken))

    def _select(self, column: str, values: Collection[int | str]) -> list[_Link]:
        links: list[_Link] = []
        all_values = list(values)
        for start in range(0, len(all_values), _MOST_MARKS):
            part = all_values[start : start + _MOST_MARKS]
            sql = _LINKS.format(column=column, marks=", ".join("?" * len(part)))
            links += map(_Link._make, self._db.execute(sql, part))
        return links

    def broken_target(
        self,
        row: int,
        project: str,
        path: str,
        scope: str,
        link: tuple[str, str | None, str],
        *,
        may_be_markdown: bool = False,
    ) -> int | None:
        """The row of the note that a link in the note `row` leads to now but not after the move.

        A Markdown link also counts as broken if only other programs, which read it from the folder
        of its note, would no longer find the target. None if the link keeps working, or leads
        nowhere now.
        """
        target, target_project, part_after_name = link
        folder = posixpath.dirname(path)
        now = self._before.link(target, project, folder, target_project, scope, part_after_name)
        if now.row is None:
            return None
        folder_after = posixpath.dirname(self._paths.get(row, path))
        target_after = self._after.link(
            target, project, folder_after, target_project, scope, part_after_name
        )
        if target_after.row != now.row:
            return now.row
        if may_be_markdown and not target.startswith(("./", "../")):
            before, after = self.note(now.row)
            was_relative = posixpath.join(folder, target) == before.path
            if was_relative and posixpath.join(folder_after, target) != after.path:
                return now.row
        return None

    def leads(self, source: NoteInfo, target: str, target_project: str | None, row: int) -> bool:
        """Whether a link in `source` leads to the note `row` afterwards."""
        folder = posixpath.dirname(self._paths.get(source.row, source.path))
        target_after = self._after.link(
            target, source.project, folder, target_project, source.scope
        )
        return target_after.row == row

    def is_whole(self, source: NoteInfo, link: tuple[str, str | None, str]) -> bool:
        """Whether a `#` in a link belongs to the name of its note, so that no heading follows."""
        target, target_project, part_after_name = link
        folder = posixpath.dirname(source.path)
        return self._before.link(
            target, source.project, folder, target_project, source.scope, part_after_name
        ).is_whole

    def note(self, row: int) -> tuple[NoteInfo, NoteInfo]:
        """The note as it is, and as it will be after the move."""
        for move in self._moved:
            if move.before.row == row:
                return move
        (info,) = in_order(self._db, [row])
        return info, info

    def folder_after(self, source: NoteInfo) -> str:
        """The folder of a note after the move."""
        return posixpath.dirname(self._paths.get(source.row, source.path))


class MovedResolver(Resolver):
    """Resolves targets as if notes had moved.

    A link that leads on by a former address alone is given the new one, so none is known here.
    """

    knows_former_addresses = False

    def __init__(
        self,
        db: sqlite3.Connection,
        viewer: str | None,
        projects: Collection[str],
        moved: Sequence[MovedNote],
    ):
        super().__init__(db, viewer, projects)
        self._moved_rows = {move.before.row for move in moved}
        self._arriving: dict[str, list[Candidate]] = {}
        for _, note in moved:
            candidate = Candidate(
                note.row,
                note.project,
                note.path,
                note.id,
                note.permalink,
                note.title,
                json.dumps(list(note.aliases)) if note.aliases else None,
                note.scope,
                0,
            )
            for name in (*link_keys(note), "\0" + note.id):
                self._arriving.setdefault(name, []).append(candidate)

    def _fetch(self, names: list[str]) -> None:
        super()._fetch(names)
        for name in names:
            staying = [note for note in self._candidates[name] if note.row not in self._moved_rows]
            self._candidates[name] = staying + self._arriving.get(name, [])


def _shown_target(resolver: Resolver, link: _Link, answer: LinkTarget) -> str:
    """The target of a link as shown.

    An unknown project in front, or a heading that is the end of a name, belongs to the name.
    """
    if answer.is_whole:
        target = link.target + link.rest
    else:
        target = link.target
    if link.target_project is None or resolver.is_project(link.target_project):
        return target
    return f"{link.target_project}::{target}"


def _answers(resolver: Resolver, links: Sequence[_Link]) -> list[LinkTarget]:
    """Where each link leads; plain targets are looked up together."""
    resolver.prefetch({link.target for link in links if not link.target.startswith(("./", "../"))})
    return [
        resolver.link(
            link.target,
            link.project,
            link.path.rpartition("/")[0],
            link.target_project,
            link.scope,
            link.rest,
        )
        for link in links
    ]
