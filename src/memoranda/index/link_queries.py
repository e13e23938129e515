"""Queries for the links between notes, in both directions (contract 000b, 7).

A relation is a link with a type; an ordinary link has the type `links_to`. Table `link` has every
relation as written. Which note it leads to is resolved for each query (resolve.py), since this
depends on who asks.

A *row* is the number of a note in the index. A *key* is the folded form of a name (`resolve.key`):
table `link` keeps the key of each target in column `fold`. So the links with one of a note's keys
may lead to the note, and resolving them tells which do. The *source* of a link is the note that has
it.
"""

from __future__ import annotations

import json
import posixpath
import sqlite3
from collections import Counter
from collections.abc import Collection, Container, Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from memoranda.clock import microseconds
from memoranda.index.database import Queries, held, version
from memoranda.index.filters import may_see
from memoranda.index.former_addresses import former_names
from memoranda.index.resolve import (
    RESOLVED,
    Candidate,
    LinkSource,
    LinkTarget,
    LinkText,
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
"""A note is shown with at most this many of the links to it. No reply has room for more."""
# Values of one statement, below SQLite's limit of 999 in old versions.
_MAX_VALUES = 400
# More relations than these are not cached, since they would take too much memory.
_MAX_CACHED_PAIRS = 200_000
# The notes that link to a note with very many links are read this many at a time.
_SOURCES_PER_STATEMENT = 200


class _Link(NamedTuple):
    """A relation as written, with the facts about its note that resolving needs.

    note: the row of the note with the relation.
    type: the type of the relation, such as `part_of`.
    target: the text of the link, without its project and heading.
    target_project: the project that the link names. None if it names none.
    context: the text in parentheses after the relation, or None.
    line: the number of the line in the file.
    project, path, scope, changed: properties of the note with the relation.
    rest: `#` and the text after it, or "".
    """

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


# Selects the columns of `_Link`. `{column}` is `note` or `fold`, `{marks}` are its values.
_LINKS = (
    "select l.note, l.type, l.target, l.project, l.context, l.line, p.name, n.path, n.scope, n.changed,"
    " l.rest from link l"
    " join note n on n.row = l.note join project p on p.id = n.project"
    " where l.{column} in ({marks}) order by l.note, l.position"
)


class ResolvedLink(NamedTuple):
    """A relation, and the note that it leads to.

    row: the note that has the relation.
    name: the name that the relation leads to, as written.
    target_row: the note with this name. None if no note has it.
    """

    row: int
    name: str
    target_row: int | None


class _ByChange(NamedTuple):
    """A sort key of notes, which puts the last changed first.

    negative_changed: the time of the change in microseconds since 1970, negative.
    permalink, path: decide between notes that changed at the same time.
    """

    negative_changed: int
    permalink: str
    path: str


class RememberedPairs:
    """A cache of the relations among all notes, one per connection (`database.held`).

    state: the version and the projects of the index when they were read. None at first.
    by_viewer: (row, row that it leads to, type) of each relation, by viewer.
    """

    def __init__(self) -> None:
        self.state: tuple[tuple[int, int], Collection[str]] | None = None
        self.by_viewer: dict[str | None, frozenset[tuple[int, int, str]]] = {}


class LinkQueries(Queries):
    """Reads the links of one index. `viewer` is the agent that asks, None the owner."""

    def _resolver(self, viewer: str | None) -> Resolver:
        """Return an object that resolves links for `viewer`."""
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
        """Return the note that a link leads to for `viewer`. None if it leads to no note.

        project, folder: the place of the note that has the link.
        target: the text in `[[target]]`.
        target_project: the project in `[[project::target]]`. None if the link names no project.
        """
        resolver = self._resolver(viewer)
        text = LinkText(sqlite_text(target), target_project)
        answer = resolver.link(text, LinkSource(project, folder, scope=None))
        if answer.row is None:
            return None
        return infos(self._db, [answer.row]).get(answer.row)

    def outgoing(self, note: NoteInfo, viewer: str | None) -> list[Edge]:
        """Return the note's relations in the order of the file, resolved for `viewer`.

        Only the owner sees ids in a memory's header that lead nowhere. Such an id may belong to a
        memory that an agent must not see (contract 001, 1). The web address of a Notion page is a
        relation only if this page is among the notes.
        """
        # The ids in the header of a memory.
        ids_to_hide: Sequence[str] = ()
        if viewer is not None and note.project in MEMORY_PROJECTS:
            ids_to_hide = note.links

        # Resolve all links at once: `answers` has the target of each.
        links = self._links("note", [note.row])
        resolver = self._resolver(viewer)
        answers = _answers(resolver, links)
        infos_by_row = infos(self._db, {answer.row for answer in answers if answer.row is not None})
        edges: list[Edge] = []
        for link, answer in zip(links, answers, strict=True):
            is_hidden_without_note = link.target in ids_to_hide or is_page(link.target)
            if answer.row is None and is_hidden_without_note:
                continue
            edge = Edge(
                link.type,
                direction="out",
                target=self._shown_target(resolver, link, answer),
                state=answer.state,
                note=None if answer.row is None else infos_by_row.get(answer.row),
                context=link.context,
                line=link.line,
            )
            edges.append(edge)
        return edges

    @staticmethod
    def _shown_target(resolver: Resolver, link: _Link, answer: LinkTarget) -> str:
        """Return the target of a link as shown: `Plan` of `[[work::Plan#Next]]`.

        If the link leads to no note, `work::` stays. It also stays if `work` is not a project, and
        `#Next` stays if a note has it in its name.

        resolver: knows the projects.
        answer: the note to which the link leads.
        """
        if answer.is_whole:
            target = link.target + link.rest
        else:
            target = link.target
        if link.target_project is None:
            return target
        # A link without a note is shown alike whether `work` is hidden from the viewer or does not
        # exist, so it does not tell an agent that a hidden project exists.
        if answer.row is not None and resolver.is_project(link.target_project):
            return target
        return f"{link.target_project}::{target}"

    def resolved_links_of(self, rows: Sequence[int], viewer: str | None) -> list[ResolvedLink]:
        """Return the relations of these notes, sorted by note, and by position in the note.

        viewer: the agent that asks; None for the owner. Hidden notes are left out.
        """
        links = self._links("note", rows)
        answers = _answers(self._resolver(viewer), links)
        return [
            ResolvedLink(link.note, link.target, answer.row)
            for link, answer in zip(links, answers, strict=True)
            if answer.row is not None or not is_page(link.target)
        ]

    def pairs(self, rows: Collection[int] | None, viewer: str | None) -> set[tuple[int, int, str]]:
        """Return the relations between these notes: (row, row that it leads to, type).

        rows: None means all notes.
        viewer: the agent that asks; None for the owner. Hidden notes are left out.
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
        """Return the relations between all notes, from the cache unless the index has changed.

        viewer: the agent that asks; None for the owner. Hidden notes are left out.
        """
        remembered = held(self._db, RememberedPairs)
        state = (version(self._db), self._database.projects)
        if remembered.state != state:
            remembered.state = state
            remembered.by_viewer = {}
        # The caller gets a copy, which it may change.
        if viewer in remembered.by_viewer:
            return set(remembered.by_viewer[viewer])
        pairs = self._all_pairs(viewer)
        if len(pairs) <= _MAX_CACHED_PAIRS:
            remembered.by_viewer[viewer] = frozenset(pairs)
        return pairs

    def _all_pairs(self, viewer: str | None) -> set[tuple[int, int, str]]:
        """Return the relations between all notes: (row, row that it leads to, type).

        viewer: the agent that asks; None for the owner. Hidden notes are left out.
        """
        # The visible notes, by row. A note may have very many links, so its project and folder are
        # read once here, and not with each link.
        sources: dict[int, LinkSource] = {}
        notes = self._db.execute(
            "select n.row, p.name, n.path, n.scope from note n join project p on p.id = n.project"
        )
        for row, project, path, scope in notes:
            if may_see(scope, viewer):
                sources[row] = LinkSource(project, path.rpartition("/")[0], scope)

        # Look up all targets at once, except relative ones, which depend on the folder.
        resolver = self._resolver(viewer)
        targets = self._db.execute(
            "select distinct target from link"
            " where target not like './%' and target not like '../%'"
        ).fetchall()
        resolver.prefetch([target for (target,) in targets])

        pairs: set[tuple[int, int, str]] = set()
        links = self._db.execute("select note, type, target, project, rest from link").fetchall()
        for row, relation_type, target, target_project, rest in links:
            source = sources.get(row)
            if source is None:
                continue
            # `rest` is `#` with a heading behind it, or "".
            link_text = LinkText(target, target_project, rest)
            target_row = resolver.link(link_text, source).row
            if target_row in sources and target_row != row:
                pairs.add((row, target_row, relation_type))
        return pairs

    def targets(self, rows: Sequence[int]) -> dict[int, list[str]]:
        """Return the targets of these notes' relations as they are written: row -> targets.

        The targets of a note are in the order of its text. Notes without relations are missing.
        """
        targets_by_row: dict[int, list[str]] = {}
        for link in self._links("note", rows):
            targets_by_row.setdefault(link.note, []).append(link.target)
        return targets_by_row

    def incoming(
        self, note: NoteInfo, viewer: str | None, limit: int | None = None, offset: int = 0
    ) -> list[Edge]:
        """Return a page of the relations that lead to `note`, the last changed source first.

        The note's relations to itself count, too.

        viewer: the agent that asks; None for the owner. Hidden notes are left out.
        limit: the size of the page. None means all.
        offset: how many relations come before the page.
        """
        end = None if limit is None else offset + limit
        with self._database.snapshot():
            links, _ = self._newest_to(note, self._resolver(viewer), end)
            return self._incoming(links[offset:end])

    def count_incoming(
        self, notes: Sequence[NoteInfo], viewer: str | None, limit: int
    ) -> dict[int, int]:
        """Return how many relations lead to each of these notes, by row. It counts up to `limit`.

        viewer: the agent that asks; None for the owner. Hidden notes are left out.
        """
        counts: dict[int, int] = {}
        with self._database.snapshot():
            # Links that may lead to several of the notes are looked up once.
            resolver = self._resolver(viewer)
            for note in notes:
                links, _ = self._newest_to(note, resolver, limit)
                # Links are read in groups, so there may be more of them than the limit.
                counts[note.row] = min(limit, len(links))
        return counts

    def _incoming(self, links: Sequence[_Link]) -> list[Edge]:
        """Turn links to one note into edges, which name the notes they come from."""
        infos_by_row = infos(self._db, {link.note for link in links})
        edges: list[Edge] = []
        for link in links:
            source = infos_by_row[link.note]
            edge = Edge(
                link.type,
                direction="in",
                target=source.title,
                state=RESOLVED,
                note=source,
                context=link.context,
                line=link.line,
            )
            edges.append(edge)
        return edges

    def around(
        self,
        note: NoteInfo,
        *,
        depth: int,
        viewer: str | None,
        since: datetime | None = None,
        limit: int = 100,
    ) -> tuple[list[Edge], int, list[Reached]]:
        """Return a note's edges, how many more links name it, and its neighbours.

        The edges are all outgoing ones and the newest incoming ones: MOST_SHOWN, or `limit` if that
        is larger. This method looks for the links to the note only once, so it is faster than
        `incoming` and `neighbours`.

        depth: how many relations a neighbour is away at most.
        limit: the most neighbours to return, and the most incoming edges if it is over MOST_SHOWN.
        viewer: the agent that asks; None for the owner. Hidden notes are left out.
        since: leave out neighbours that changed earlier. None leaves out none.
        """
        with self._database.snapshot():
            resolver = self._resolver(viewer)
            max_shown = max(limit, MOST_SHOWN)
            # A longer walk needs all links, and a time may leave out most of them.
            is_short_walk = depth == 1 and not since
            most_needed = max_shown if is_short_walk else None
            links_to_note, more_count = self._newest_to(note, resolver, most_needed)
            edges = self.outgoing(note, viewer) + self._incoming(links_to_note[:max_shown])
            # The links that were read and are not shown.
            more_count += max(0, len(links_to_note) - max_shown)
            neighbours = self._walk(
                [note],
                depth=depth,
                resolver=resolver,
                limit=limit,
                since=since,
                links=links_to_note,
            )
            return edges, more_count, neighbours

    def neighbours(
        self, notes: Sequence[NoteInfo], *, depth: int, viewer: str | None, limit: int = 100
    ) -> list[Reached]:
        """Return up to `limit` notes within `depth` relations of `notes`, in both directions.

        Each note comes once, the nearest first, then the last changed. `notes` are left out.

        depth: how many relations a note is away at most.
        viewer: the agent that asks; None for the owner. Hidden notes are left out.
        """
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
        """Collect notes within `depth` relations of `notes`, the nearest first, each once.

        depth: how many relations away the walk goes.
        resolver: finds the notes to which links lead.
        limit: the most notes to collect.
        since: leave out notes that changed earlier. The walk still passes through them. None leaves
            out none.
        links: all links to `notes`, if the caller has them. None if not.
        """
        visited_rows = {note.row for note in notes}
        # The notes of the level before, from which the walk goes on.
        frontier = list(notes)
        reached: list[Reached] = []
        earliest = None if since is None else microseconds(since)
        for level in range(1, depth + 1):
            if level > 1 or links is None:
                links = self._links_to(frontier, resolver)

            # Visit the next notes, the last changed first, since very many are not visited.
            relation_types = self._types_of_next(frontier, links, visited_rows, resolver)
            sort_keys = self._by_change(relation_types)
            room = MOST_VISITED - len(visited_rows)
            level_rows = sorted(relation_types, key=sort_keys.__getitem__)[:room]
            visited_rows.update(level_rows)

            # Leave out of the result what changed before `since`
            result_rows = level_rows
            if earliest is not None:
                result_rows = [
                    row for row in level_rows if -sort_keys[row].negative_changed >= earliest
                ]

            # The walk goes on from all notes of this level. From the last level it does not, so
            # there only the notes of the result are read.
            rows_to_read = level_rows
            is_last_level = level == depth
            if is_last_level:
                rows_to_read = result_rows[: limit - len(reached)]
            frontier = in_order(self._db, rows_to_read)
            rows_of_result = set(result_rows)
            for note in frontier:
                if note.row in rows_of_result:
                    reached.append(Reached(note, level, relation_types[note.row]))
            if len(reached) >= limit or not frontier:
                break
        return reached[:limit]

    def _links_to(self, notes: Sequence[NoteInfo], resolver: Resolver) -> Sequence[_Link]:
        """Return the links that lead to any of these notes, the last changed source first.

        resolver: finds the notes to which links lead.
        """
        keys: set[str] = set()
        for note in notes:
            keys.update(self._keys(note))
        return self._links_leading_to(notes, self._links("fold", keys), resolver)

    def _types_of_next(
        self,
        frontier: Sequence[NoteInfo],
        links: Iterable[_Link],
        visited_rows: Container[int],
        resolver: Resolver,
    ) -> dict[int, str]:
        """Return the notes one relation away from `frontier`: the type of the relation, by row.

        links: the links to `frontier`.
        visited_rows: the rows to leave out.
        resolver: finds the notes to which links lead.
        """
        # `setdefault`: of several relations with a note, the first one counts.
        types: dict[int, str] = {}
        # The links from `frontier`, in the order of its notes.
        positions = {note.row: position for position, note in enumerate(frontier)}
        outgoing = sorted(self._links("note", [*positions]), key=lambda link: positions[link.note])
        for link, answer in zip(outgoing, _answers(resolver, outgoing), strict=True):
            if answer.row is not None and answer.row not in visited_rows:
                types.setdefault(answer.row, link.type)
        # The links to `frontier`.
        for link in links:
            if link.note not in visited_rows:
                types.setdefault(link.note, link.type)
        return types

    def _by_change(self, rows: Iterable[int]) -> dict[int, _ByChange]:
        """Return a sort key for each row, which puts the last changed first."""
        sql = (
            "select row, changed, permalink, path from note "
            "where row in (select value from json_each(?))"
        )
        cursor = self._db.execute(sql, (json.dumps(list(rows)),))
        return {
            row: _ByChange(-changed, permalink, path) for row, changed, permalink, path in cursor
        }

    def _links(self, column: str, values: Collection[int | str]) -> list[_Link]:
        """Return the links whose column `note` or `fold` is among `values`, by note and position."""
        sql = _LINKS.replace("{column}", column)
        return [_Link(*columns) for columns in self._among(sql, values)]

    def _newest_to(
        self, note: NoteInfo, resolver: Resolver, limit: int | None
    ) -> tuple[list[_Link], int]:
        """Return links that lead to a note, and how many more links have one of its keys.

        The links from the last changed notes come first. The other links are counted without being
        resolved, so not all of them need to lead to this note.

        resolver: finds the notes to which links lead.
        limit: stop after this many links, from the notes indexed last. None means all.
        """
        # Find the notes with such links: row -> how many links. The notes indexed last come first.
        keys = self._keys(note)
        rows_of_links = self._among("select note from link where fold in ({marks})", keys)
        link_counts = Counter(row for (row,) in rows_of_links)
        source_rows = sorted(link_counts, reverse=True)

        # Read and resolve their links, some notes at a time. `+` makes SQLite find the links by
        # their notes, since very many links may have these keys.
        marks = ", ".join("?" * len(keys))
        sql = _LINKS.replace("l.{column} in", f"+l.fold in ({marks}) and l.note in")
        notes_at_a_time = max(1, len(source_rows)) if limit is None else _SOURCES_PER_STATEMENT
        newest_links: list[_Link] = []
        for start in range(0, len(source_rows), notes_at_a_time):
            # Enough: the links of the remaining notes are only counted.
            if limit is not None and len(newest_links) >= limit:
                other_link_count = sum([link_counts[row] for row in source_rows[start:]])
                return newest_links, other_link_count
            part = source_rows[start : start + notes_at_a_time]
            links = [_Link(*columns) for columns in self._among(sql, part, *keys)]
            newest_links += self._links_leading_to([note], links, resolver)
        return newest_links, 0

    @staticmethod
    def _links_leading_to(
        notes: Sequence[NoteInfo], links: list[_Link], resolver: Resolver
    ) -> list[_Link]:
        """Return the visible links that lead to one of `notes`, the last changed source first.

        links: the links that may lead to them.
        resolver: finds the notes to which links lead.
        """
        rows = {note.row for note in notes}
        visible_links = [link for link in links if may_see(link.scope, resolver.viewer)]
        # Of links of the same time, the path decides and not the row, since a rebuilt index has
        # other rows. `changed` is a time in microseconds.
        visible_links.sort(key=lambda link: (-link.changed, link.project, link.path))
        answers = _answers(resolver, visible_links)
        return [
            link for link, answer in zip(visible_links, answers, strict=True) if answer.row in rows
        ]

    def _keys(self, note: NoteInfo) -> set[str]:
        """Return the keys that links to a note may be stored with."""
        # A memory may be linked by its first line.
        body = ""
        if note.project in MEMORY_PROJECTS:
            _, body = text_of(self._db, note.row)
        return link_keys(note, first_line_of(note.project, body))

    def relocation(self, moved: Sequence[MovedNote], viewer: str | None) -> Relocation:
        """Compare where links lead before and after these notes move.

        moved: the notes that move.
        viewer: the agent that asks; None for the owner. Hidden notes are left out.
        """
        return Relocation(self._db, moved, viewer, self._database.projects)


def link_keys(note: NoteInfo, first_line: str | None = None) -> set[str]:
    """Return the keys (`key`) of all names by which a link may lead to a note.

    A link may name the note's title, an alias, its id, its permalink, its path or an end of its path.
    It may put the project before the permalink or the path. It may also name an address that the
    note had before upkeep moved it.

    first_line: the first line of a memory. None for other notes.
    """
    # The names that the index stores for the note, as keys. Further names become keys at the end.
    titles = (note.title, *note.aliases)
    keys = keys_of(note.project, note.path, note.permalink, titles, first_line)
    other_names = {note.id, note.permalink}

    # The permalink and the path after the project: `work/a/b`. `lead` writes the project as
    # permalinks do, and `stem` leaves out the extension.
    for project in (note.project, lead(note.project)):
        other_names |= {f"{project}/{note.permalink}", f"{project}/{stem(note.path)}"}

    # The ends of the path: `b/c.md`, `b/c`, `c.md` and `c` for `a/b/c.md`.
    parts = note.path.split("/")
    for start in range(1, len(parts)):
        end = "/".join(parts[start:])
        other_names |= {end, stem(end)}

    # The addresses before it was archived, or moved otherwise.
    origin = note.header.get("archived_from") if note.project == ARCHIVE_PROJECT else None
    other_names.update(former_names(note.project, note.path, str(origin or "")))
    return keys | {key(name) for name in other_names}


class MovedNote(NamedTuple):
    """A note to move.

    before: the note as it is now.
    after: the note as the index will know it after the move.
    """

    before: NoteInfo
    after: NoteInfo


class Relocation:
    """Compares where links lead before and after notes move.

    The index still has the notes at their old places. "After" means what the links will mean when
    the notes have moved but the links are the same.
    """

    def __init__(
        self,
        db: sqlite3.Connection,
        moved: Sequence[MovedNote],
        viewer: str | None,
        projects: Collection[str],
    ):
        """Prepare to compare links for `viewer`.

        moved: the notes that move.
        projects: the names of all projects, as `Database.projects`.
        """
        self._db = db
        self._viewer = viewer
        self._moved = moved
        # The new path of each moved note, by row.
        self._paths = {move.before.row: move.after.path for move in moved}
        self._before = Resolver(db, viewer, projects)
        self._after = MovedResolver(db, viewer, projects, moved)

    def sources(self) -> list[NoteInfo]:
        """Return the notes with links that the move would break.

        A link is broken if it would lead to another note than now, or to none (`_is_broken`).
        """
        # A link may break because its own note moves, or because it names a note that moves. The
        # new names count, too: a link that now leads elsewhere may then lead to the moved note.
        keys_of_moved_notes: set[str] = set()
        for move in self._moved:
            keys_of_moved_notes |= link_keys(move.before) | link_keys(move.after)
        links_in_moved_notes = self._select("note", list(self._paths))
        links_to_moved_notes = self._select("fold", keys_of_moved_notes)
        # A link may be in both lists. A dict keeps it once.
        links = dict.fromkeys([*links_in_moved_notes, *links_to_moved_notes])

        source_rows: set[int] = set()
        for link in links:
            if may_see(link.scope, self._viewer) and self._is_broken(link):
                source_rows.add(link.note)
        return in_order(self._db, sorted(source_rows))

    def _is_broken(self, link: _Link) -> bool:
        """Whether a link will lead to another note after the move, or to none."""
        broken_target = self.broken_target(
            link.note,
            link.project,
            link.path,
            link.scope,
            LinkText(link.target, link.target_project, link.rest),
            may_be_markdown=link.target.endswith((".md", ".markdown")),
        )
        return broken_target is not None

    def _select(self, column: str, values: Collection[int | str]) -> list[_Link]:
        """Return the links whose column `note` or `fold` is among `values`."""
        links: list[_Link] = []
        all_values = list(values)
        for start in range(0, len(all_values), _MAX_VALUES):
            part = all_values[start : start + _MAX_VALUES]
            sql = _LINKS.format(column=column, marks=", ".join("?" * len(part)))
            links += [_Link(*columns) for columns in self._db.execute(sql, part)]
        return links

    def broken_target(
        self,
        row: int,
        project: str,
        path: str,
        scope: str,
        link: LinkText,
        *,
        may_be_markdown: bool = False,
    ) -> int | None:
        """Return the row of the note that a link would lose by the move.

        None if the link keeps working, or leads nowhere now.

        row, project, path, scope: properties of the note with the link, before the move.
        may_be_markdown: whether the link may be written `[text](target)`. Other programs read such
            a target from the folder of its note. The link is also broken if they would no longer
            find the target.
        """
        # Compare where the link leads now with where it will lead.
        source = LinkSource(project, posixpath.dirname(path), scope)
        target_now = self._before.link(link, source)
        if target_now.row is None:
            return None
        # The note with the link may move, too.
        folder_after = posixpath.dirname(self._paths.get(row, path))
        target_after = self._after.link(link, source._replace(folder=folder_after))
        if target_after.row != target_now.row:
            return target_now.row

        # Compare the same for other programs. A relative target means the same to them as to us.
        is_relative = link.target.startswith(("./", "../"))
        if may_be_markdown and not is_relative:
            before, after = self.note(target_now.row)
            was_found_by_others = posixpath.join(source.folder, link.target) == before.path
            will_be_found_by_others = posixpath.join(folder_after, link.target) == after.path
            if was_found_by_others and not will_be_found_by_others:
                return target_now.row
        return None

    def leads(self, source: NoteInfo, target: str, target_project: str | None, row: int) -> bool:
        """Whether a link in `source` will lead to the note `row` after the move.

        target: the text of the link, without its project and heading.
        target_project: the project that the link names; None if it names none.
        """
        source_after = LinkSource(source.project, self.folder_after(source), source.scope)
        return self._after.link(LinkText(target, target_project), source_after).row == row

    def is_whole(self, source: NoteInfo, link: LinkText) -> bool:
        """Whether the `#` in a link belongs to the name of a note, as in `[[C# tips]]`.

        source: the note with the link.
        """
        folder = posixpath.dirname(source.path)
        return self._before.link(link, LinkSource(source.project, folder, source.scope)).is_whole

    def note(self, row: int) -> MovedNote:
        """Return a note as it is and as it will be. Both are equal if it does not move."""
        for move in self._moved:
            if move.before.row == row:
                return move
        (info,) = in_order(self._db, [row])
        return MovedNote(info, info)

    def folder_after(self, source: NoteInfo) -> str:
        """Return the folder that a note will have after the move."""
        return posixpath.dirname(self._paths.get(source.row, source.path))


class MovedResolver(Resolver):
    """Resolves targets as if notes had moved.

    A link must be updated even if the old address of a note would still lead to it. So old
    addresses do not count here.
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
        # The moved notes by the names under which links will find them: keys, and an id after a NUL.
        self._arriving: dict[str, list[Candidate]] = {}
        for _, note in moved:
            candidate = Candidate(
                row=note.row,
                project=note.project,
                path=note.path,
                id=note.id,
                permalink=note.permalink,
                title=note.title,
                aliases=json.dumps(list(note.aliases)) if note.aliases else None,
                scope=note.scope,
                # The creation time only decides between memories with one name.
                created=0,
            )
            for name in (*link_keys(note), "\0" + note.id):
                self._arriving.setdefault(name, []).append(candidate)

    def _fetch(self, names: list[str]) -> None:
        """Read candidates as `Resolver`, but with the moved notes under their new names only."""
        super()._fetch(names)
        for name in names:
            notes_that_stay = [
                note for note in self._candidates[name] if note.row not in self._moved_rows
            ]
            self._candidates[name] = [*notes_that_stay, *self._arriving.get(name, [])]


def _answers(resolver: Resolver, links: Sequence[_Link]) -> list[LinkTarget]:
    """Return the target of each link. All but relative targets are looked up together.

    resolver: finds the notes to which links lead.
    """
    resolver.prefetch({link.target for link in links if not link.target.startswith(("./", "../"))})
    answers: list[LinkTarget] = []
    for link in links:
        text = LinkText(link.target, link.target_project, link.rest)
        source = LinkSource(link.project, link.path.rpartition("/")[0], link.scope)
        answers.append(resolver.link(text, source))
    return answers
