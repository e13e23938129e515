"""Queries for notes in the index: single notes, lists, and facts needed before a write.

Key-value entries are here, too (contract 004). When an entry expires, it is removed from all tables
but `expired`, which remembers where its file is. So no interface shows it.

A *row* is the number of a note in the index, and higher for a note that changed later. A *stamp* is
the size, the times and the inode of a file, by which a change of the file is noticed. Table `tally`
has the number of notes in each folder at any depth, by scope, phase and category. A *scope* says
who may see a note.
"""

from __future__ import annotations

import fnmatch
import json
import re
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, tzinfo
from importlib import import_module
from itertools import groupby
from typing import Any, NamedTuple

from memoranda.clock import EPOCH, microseconds, to_utc
from memoranda.index import claims, filters, superseding
from memoranda.index.database import Queries, held, reads
from memoranda.index.filters import PINNED, any_of, may_see, project_ids
from memoranda.index.resolve import find, find_id
from memoranda.index.resolve import key as fold_key
from memoranda.index.rows import (
    PACKED,
    NoteInfo,
    NotePlace,
    get,
    in_order,
    infos,
    iso,
    observations,
    text_of,
)
from memoranda.index.tables import insert
from memoranda.note.model import (
    ARCHIVE_PROJECT,
    KV_PROJECT,
    MEMORY_PROJECTS,
    TRACE_PROJECT,
    Provenance,
)
from memoranda.note.names import file_key
from memoranda.query import Query
from memoranda.sources.base import Stamp
from memoranda.text.unicode import sqlite_text
from memoranda.value_object import ValueObject

# A path between `folder/` and `folder/` and this character is below the folder.
_LAST_CHARACTER = "\U0010ffff"
# A path between `folder/` and `folder0` is below the folder, too.
_AFTER_SLASH = "0"
# The path of a note and the numbers of its `PACKED` stamp.
_STAMP_COLUMNS = "path, size, mtime_ns, inode, ctime_ns"
# The id of a project, by name.
_PROJECT = "(select id from project where name = ?)"
_KV = f"(select id from project where name = '{KV_PROJECT}')"
# Values: the name of the project, the first path, and the path before which to stop.
_IN_RANGE = f"project = {_PROJECT} and path >= ? and path < ? order by path"
_IS_GLOBAL_MEMORY = "p.name = 'categories' and n.scope = 'global'"


@dataclass(slots=True, eq=False, repr=False)
class FolderRow(ValueObject):
    """A folder or a note of a project.

    path: its path in the project.
    note: the note. None for a folder.
    notes: how many notes are in the folder, at any depth. 0 for a note.
    """

    path: str
    note: NoteInfo | None = None
    notes: int = 0


class _Entry(NamedTuple):
    """A folder or a note in the listing of a folder. `row` is the row of the note, None for a folder."""

    path: str
    row: int | None = None

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]


@dataclass(slots=True, eq=False, repr=False)
class HomeCounts(ValueObject):
    """How many notes a caller sees.

    projects: the number by project, without the archive.
    categories: the number of memories by (phase, category).
    """

    projects: dict[str, int]
    categories: dict[tuple[str, str], int]

    @property
    def total(self) -> int:
        """The number of notes in all projects."""
        return sum(self.projects.values())


@dataclass(slots=True, eq=False, repr=False)
class Section(ValueObject):
    """A category of memories. Only memories of scope `global` count.

    inbox: how many of the `total` are in phase `inbox`.
    first: the memories to show, the most important first.
    """

    category: str
    total: int
    inbox: int
    first: list[NoteInfo] = field(default_factory=list)


class NoteQueries(Queries):
    """Reads the notes of one index. `viewer` is the agent that asks, None the owner."""

    get = reads(get)
    infos = reads(infos)
    in_order = reads(in_order)
    text_of = reads(text_of)
    observations = reads(observations)
    find = reads(find)
    find_id = reads(find_id)

    def listing(
        self, query: Query, *, viewer: str | None, limit: int | None = 10, offset: int = 0
    ) -> tuple[list[NoteInfo], int]:
        """Return one page of the notes that pass `query`, and how many pass on all pages.

        viewer: the agent that asks; None for the owner. Hidden notes are left out.
        limit, offset: how many notes to return, after skipping how many. None means all.
        """
        from memoranda.index.listing import listing

        return listing(self._db, query, viewer=viewer, limit=limit, offset=offset)

    def rows_passing(self, query: Query, *, viewer: str | None) -> list[int]:
        """Return the rows of all notes that pass `query`, in its order.

        viewer: the agent that asks; None for the owner. Hidden notes are left out.
        """
        from memoranda.index.listing import rows_passing

        return rows_passing(self._db, query, viewer=viewer)

    def validity_marks(
        self, infos: Iterable[NoteInfo], viewer: str | None, zone: tzinfo | None
    ) -> dict[int, str]:
        """Return a remark for each note that is not valid at all times, by row.

        For example: `superseded by team/plan` or `valid until 2026-05-31`.

        viewer: the agent that asks. A newer note is named only if the agent may see it. None is the
            owner.
        zone: the time zone of the days; None for the system's.
        """
        return superseding.validity_marks(self._db, [info.row for info in infos], viewer, zone)

    def disputed_claims(self, rows: Iterable[int]) -> list[list[claims.ClaimRow]]:
        """Return all claims about each subject on which one of these notes and another note differ."""
        return claims.disputes_of(self._db, rows)

    def shared_claims(self, rows: Iterable[int]) -> list[list[claims.StatedClaim]]:
        """Return what these notes claim about each subject about which several of them claim
        something."""
        return claims.shared(self._db, rows)

    def rows_with(self, texts: Sequence[str], limit: int) -> list[int]:
        """Find notes that contain at least one of these texts. Returns up to `limit` rows.

        Notes with the rarest texts come first.
        """
        from memoranda.index.glance import any_of_texts

        expression = any_of_texts(texts)
        if not expression:
            return []
        matches = self._db.execute(
            "select rowid from note_fts where note_fts match ? order by rank limit ?",
            (expression, limit),
        )
        return [row for (row,) in matches]

    def has_any(self) -> bool:
        """Whether the index holds a note."""
        return self._db.execute("select 1 from note limit 1").fetchone() is not None

    def contested(self) -> list[list[claims.ClaimRow]]:
        """Return the claims that notes disagree about, one list for each subject."""
        return list(claims.disputes_for_review(self._db))

    def invalid_rows(self, moment: datetime) -> set[int]:
        """Return the rows of the notes that are not valid at a moment.

        They are superseded, valid only until an earlier time, or only from a later one.
        """
        return set(filters.invalid_at(superseding.valid_spans(self._db), moment))

    def disputed(self) -> list[NoteInfo]:
        """Return the owner's notes that somebody else's note says it supersedes."""
        return in_order(self._db, superseding.disputed_rows(self._db))

    def successors(self, info: NoteInfo) -> list[NoteInfo]:
        """Return the notes whose header says that they supersede this note."""
        return in_order(self._db, superseding.successors(self._db, info.row))

    def predecessors(self, info: NoteInfo) -> list[NoteInfo]:
        """Return the notes that this note supersedes, as its header says."""
        return in_order(self._db, superseding.predecessors(self._db, info.row))

    def stamps(self, project: str, folder: str = "") -> dict[str, bytes]:
        """Map the path of every note of a project to its `PACKED` stamp.

        Expired entries are included.

        folder: the only folder to look in, at any depth. "" means the whole project.
        """
        pack = PACKED.pack
        # Naming each column is faster than `*stamp`, and there may be very many notes.
        stamps = {
            path: pack(size, mtime_ns, inode, ctime_ns)
            for path, size, mtime_ns, inode, ctime_ns in self._note_stamps(project, folder)
        }
        # Expired entries are in a table of their own, until their files are removed.
        if project == KV_PROJECT:
            prefix = f"{folder}/" if folder else ""
            expired_stamps = self._db.execute(f"select {_STAMP_COLUMNS} from expired")
            for path, *stamp in expired_stamps:
                if path.startswith(prefix):
                    stamps[path] = pack(*stamp)
        return stamps

    def _note_stamps(self, project: str, folder: str) -> Iterable[tuple[Any, ...]]:
        """Select `_STAMP_COLUMNS` of each note in a project, or in one of its folders."""
        in_project = f"project = {_PROJECT}"
        if folder:
            # All paths that begin with `folder/`.
            return self._db.execute(
                f"select {_STAMP_COLUMNS} from note where {in_project} and path >= ? and path < ?",
                (project, f"{folder}/", f"{folder}{_AFTER_SLASH}"),
            )
        # `not indexed` lets SQLite read the whole table in its order, which is faster than to look
        # up the notes of a project. For a new project without notes, it would be slower.
        any_note = self._db.execute(f"select 1 from note where {in_project} limit 1", (project,))
        if any_note.fetchone() is None:
            return ()
        return self._db.execute(
            f"select {_STAMP_COLUMNS} from note not indexed where {in_project}", (project,)
        )

    def stamps_of(self, project: str, paths: Collection[str]) -> dict[str, bytes]:
        """Map the paths that the index knows as notes to their `PACKED` stamps."""
        sql = f"select {_STAMP_COLUMNS} from note where project = ? and path in ({{marks}})"
        number = project_ids(self._db).get(project.casefold())
        return {path: PACKED.pack(*stamp) for path, *stamp in self._among(sql, paths, number)}

    def number_in(self, project: str, folder: str = "") -> int:
        """Return how many notes of a project are in a folder, at any depth. "" is the project."""
        sql = f"select total(notes) from tally where project = {_PROJECT} and folder = ?"
        return int(self._db.execute(sql, (project, folder)).fetchone()[0])

    def folders_in(self, project: str) -> list[str]:
        """Return all folders of a project that have notes at any depth, without the project."""
        sql = f"select distinct folder from tally where project = {_PROJECT} and folder <> ''"
        return [folder for (folder,) in self._db.execute(sql, (project,))]

    def missing_on_disk(
        self, project: str, folder: str, notes: Collection[str], folders: Collection[str], size: int
    ) -> Iterator[dict[str, bytes]]:
        """Yield the notes of a folder in the index that are no longer on disk, in parts.

        A folder in it that still exists is not searched.

        notes: the paths of those notes directly in the folder that are in the index and on disk.
        folders: the paths of the folders that are directly in it on disk.
        size: how many rows of the index to read for each part.

        Each part maps paths to `PACKED` stamps.
        """
        # The folders directly in it: path -> how many notes the index has there.
        prefix = f"{folder}/" if folder else ""
        indexed_folders = self._folders(project, prefix, depth=1, viewer=None)

        # Look at all notes of the folders that are gone.
        folders_gone = sorted(indexed_folders.keys() - set(folders))
        ranges = [(f"{path}/", path + _AFTER_SLASH) for path in folders_gone]
        # And at the notes directly in the folder, which are between its folders. If the index has no
        # more of them than `notes`, none is missing.
        number_directly_in_folder = self.number_in(project, folder) - sum(indexed_folders.values())
        if number_directly_in_folder != len(notes):
            ranges += _between(prefix, indexed_folders, depth=1)
        for start, stop in ranges:
            for rows in self._stamp_rows(project, start, stop, size):
                yield {path: PACKED.pack(*stamp) for path, *stamp in rows if path not in notes}

    def _stamp_rows(
        self, project: str, start: str, stop: str, size: int
    ) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the paths and stamps of the notes between two paths, `size` rows at a time."""
        sql = (
            f"select {_STAMP_COLUMNS} from note"
            f" where project = {_PROJECT} and path > ? and path < ?"
            " order by path limit ?"
        )
        # Each part begins behind the last path of the part before.
        last_path = start
        while rows := self._db.execute(sql, (project, last_path, stop, size)).fetchall():
            yield rows
            last_path, *_ = rows[-1]

    def _select(self, sql: str, values: Sequence[object] = ()) -> list[NoteInfo]:
        """Return the notes whose rows a statement selects, in its order."""
        return in_order(self._db, [row for (row,) in self._db.execute(sql, values)])

    def by_day(
        self, first: date, until: date, zone: tzinfo | None, viewer: str | None
    ) -> dict[str, int]:
        """Return how many notes each day has, from `first` until before `until`.

        A note counts on the day that it is about. If it names no day, it counts on the day it was
        written. The archive and traces do not count. Days are written YYYY-MM-DD; days without
        notes are missing.

        zone: the time zone of the days; None for the system's.
        viewer: the agent that asks; None for the owner, who sees all notes.
        """
        from memoranda.index.listing import IS_OF_DAYS, SAYS_DAY

        # The two days as texts, for notes that name a day, and as moments, for all others.
        midnights = [
            microseconds(to_utc(datetime.combine(day, time()), zone)) for day in (first, until)
        ]
        values_of_days = (first.isoformat(), until.isoformat(), *midnights)
        sql = (
            f"select n.created, case when {SAYS_DAY} then substr(n.date, 1, 10) end, n.scope"
            " from note n join project p on p.id = n.project"
            f" where p.name not in (?, ?) and {IS_OF_DAYS}"
        )
        notes = self._db.execute(sql, (ARCHIVE_PROJECT, TRACE_PROJECT, *values_of_days))
        counts = Counter[str]()
        for created, day, scope in notes:
            if not may_see(scope, viewer):
                continue
            # The note names no day.
            if day is None:
                moment_written = EPOCH + timedelta(microseconds=created)
                day = moment_written.astimezone(zone).date().isoformat()
            counts[day] += 1
        return dict(counts)

    def written(self, viewer: str | None) -> list[tuple[int, int]]:
        """Return (time written, size) of each note that `viewer` sees.

        The time is in microseconds since 1970, the size in bytes.
        """
        rows = self._db.execute("select created, size, scope from note")
        return [(created, size) for created, size, scope in rows if may_see(scope, viewer)]

    def by_writer(self, viewer: str | None) -> dict[str, int]:
        """Return how many notes each writer wrote, of those that `viewer` sees; the largest first.

        A writer is the name of an agent, `file` for files of other programs, or another origin. The
        archive and traces do not count.
        """
        counts = Counter[str]()
        sql = (
            "select coalesce(n.provenance ->> 'who', 'file'), n.scope, count(*) from note n"
            " join project p on p.id = n.project where p.name not in (?, ?) group by 1, 2"
        )
        for who, scope, number in self._db.execute(sql, (ARCHIVE_PROJECT, TRACE_PROJECT)):
            if may_see(scope, viewer):
                counts[Provenance(who=str(who)).writer] += number
        return dict(counts.most_common())

    def times_written(self, project: str) -> dict[str, str]:
        """Return when each text of a project was written, in ISO 8601, by the SHA-256 of its file.

        Files that another program wrote do not count.
        """
        sql = (
            "select etag, provenance ->> 'time' from note"
            f" where project = {_PROJECT} and provenance is not null and typeof(etag) = 'blob'"
        )
        return {etag.hex(): time or "" for etag, time in self._db.execute(sql, (project,))}

    def projects(self) -> list[str]:
        """Return the names of all projects in the index, also of those without notes."""
        return [name for (name,) in self._db.execute("select name from project order by name")]

    def header_keys(self, project: str, most: int) -> tuple[int, dict[str, int]]:
        """Return how many notes of a project were looked at, and how many of them have each key in
        their header.

        most: how many notes to look at, the last indexed first.
        """
        sql = (
            "with sample as (select n.row, coalesce(t.header, '{}') as header"
            f" from note n join text t on t.row = n.row where n.project = {_PROJECT}"
            " order by n.row desc limit ?)"
            " select null, count(*) from sample union all"
            " select key, count(distinct row) from sample, json_each(header) group by key"
        )
        (_, sample_size), *counts = self._db.execute(sql, (project, most))
        return sample_size, dict(counts)

    def scopes(self, project: str) -> set[str]:
        """Return the scopes that notes of a project have."""
        sql = (
            f"select distinct scope from tally where project = {_PROJECT} and folder = '' and notes"
        )
        return {scope for (scope,) in self._db.execute(sql, (project,))}

    def counts(self, viewer: str | None) -> HomeCounts:
        """Return how many notes `viewer` sees, by project and by category."""
        projects = Counter[str]()
        categories = Counter[tuple[str, str]]()
        # The tally of the folder "" has the numbers of the whole project. `cross join` makes SQLite
        # read the few projects first.
        columns = "p.name, t.phase, t.category, t.scope, t.notes"
        sql = f"select {columns} from project p cross join tally t on t.project = p.id and t.folder = ''"
        for name, phase, category, scope, number in self._db.execute(sql):
            if not may_see(scope, viewer):
                continue
            # For the caller, the archive is no project. Its notes are memories of another phase.
            if name != ARCHIVE_PROJECT:
                projects[name] += number
            if name in MEMORY_PROJECTS:
                categories[phase, category] += number
        return HomeCounts(dict(projects), dict(categories))

    def directory(
        self,
        project: str,
        folder: str = "",
        *,
        depth: int = 1,
        viewer: str | None = None,
        glob: str | None = None,
        limit: int | None = 50,
        offset: int = 0,
    ) -> tuple[list[FolderRow], int]:
        """List a folder. Returns one page of its entries, and the number of all.

        Folders come first, then notes, each sorted by code point. Folders without a note that
        `viewer` sees are left out. Source: contract 000b, list_directory.

        depth: how many levels of folders to go down; 1 means only what is directly in the folder.
        viewer: the agent that asks; None for the owner.
        glob: keep only entries whose last name matches this pattern. None keeps all.
        limit: the size of the page. None means all entries.
        offset: how many entries come before the page.
        """
        # The folders come first. `ranges` are the paths of the notes that are not too deep.
        prefix = f"{folder.strip('/')}/".lstrip("/")
        folders = self._folders(project, prefix, depth, viewer)
        ranges = list(_between(prefix, folders, depth))
        entries = [_Entry(path) for path in sorted(folders)]

        # All notes are read if each must be looked at: for a pattern, or because some are hidden.
        hides_notes = self._hides(project, folder.strip("/"), viewer)
        if limit is None or glob or hides_notes:
            max_slashes = prefix.count("/") + depth
            entries += self._notes_in(project, ranges, max_slashes, viewer)
            if glob:
                entries = [entry for entry in entries if fnmatch.fnmatchcase(entry.name, glob)]
            page_end = None if limit is None else offset + limit
            return self._folder_rows(entries[offset:page_end], folders), len(entries)

        # Otherwise the notes are only counted, and only those on the page are read.
        notes_before_page = max(offset - len(entries), 0)
        notes, note_count = self._note_page(project, ranges, notes_before_page, limit)
        page = [*entries[offset:], *notes][:limit]
        return self._folder_rows(page, folders), len(entries) + note_count

    def _folder_rows(
        self, entries: Sequence[_Entry], note_counts: Mapping[str, int]
    ) -> list[FolderRow]:
        """Read the notes among some entries of a folder, and return all entries.

        note_counts: how many notes each folder has.
        """
        notes = infos(self._db, [entry.row for entry in entries if entry.row is not None])
        rows: list[FolderRow] = []
        for entry in entries:
            if entry.row is None:
                rows.append(FolderRow(entry.path, notes=note_counts[entry.path]))
            else:
                rows.append(FolderRow(entry.path, notes[entry.row]))
        return rows

    def _notes_in(
        self, project: str, ranges: Iterable[tuple[str, str]], max_slashes: int, viewer: str | None
    ) -> list[_Entry]:
        """Return the notes in ranges of paths that `viewer` sees.

        ranges: (first path, path to stop before) of each range.
        max_slashes: leave out paths with this many slashes or more.
        """
        notes: list[_Entry] = []
        for start, stop in ranges:
            rows = self._db.execute(
                f"select path, row, scope from note where {_IN_RANGE}", (project, start, stop)
            )
            for path, row, scope in rows:
                if path.count("/") < max_slashes and may_see(scope, viewer):
                    notes.append(_Entry(path, row))
        return notes

    def _note_page(
        self, project: str, ranges: Iterable[tuple[str, str]], first: int, limit: int
    ) -> tuple[list[_Entry], int]:
        """Return one page of the notes in ranges of paths, and the number of all.

        ranges: (first path, path to stop before) of each range.
        first: how many notes come before the page.
        limit: the size of the page.
        """
        page: list[_Entry] = []
        total = 0
        for start, stop in ranges:
            bounds = (project, start, stop)
            (number_in_range,) = self._db.execute(
                f"select count(*) from note where project = {_PROJECT} and path >= ? and path < ?",
                bounds,
            ).fetchone()
            notes_missing = limit - len(page)
            # `total` notes are in the ranges before this one.
            ends_before_page = total + number_in_range <= first
            if notes_missing > 0 and not ends_before_page:
                sql = f"select path, row from note where {_IN_RANGE} limit ? offset ?"
                # The page may begin inside this range.
                notes_to_skip = max(first - total, 0)
                rows = self._db.execute(sql, (*bounds, notes_missing, notes_to_skip))
                page += [_Entry(path, row) for path, row in rows]
            total += number_in_range
        return page, total

    def has_hidden(self, viewer: str | None) -> bool:
        """Whether there is any note that `viewer` does not see."""
        scopes = self._db.execute("select distinct scope from tally where folder = ''")
        return not all(may_see(scope, viewer) for (scope,) in scopes)

    def _hides(self, project: str, folder: str, viewer: str | None) -> bool:
        """Whether a folder, or the whole project for "", has notes that `viewer` does not see."""
        sql = f"select distinct scope from tally where project = {_PROJECT} and folder = ?"
        scopes = self._db.execute(sql, (project, folder))
        return not all(may_see(scope, viewer) for (scope,) in scopes)

    def _folders(self, project: str, prefix: str, depth: int, viewer: str | None) -> dict[str, int]:
        """Return the folders below `prefix`, and how many notes of each `viewer` sees.

        prefix: a folder with a slash at the end; "" is the project.
        depth: how many levels of folders to go down.
        """
        # Table `tally` counts the notes of each folder by scope, phase and category.
        sql = f"select folder, scope, notes from tally where project = {_PROJECT} and folder > ? and folder < ?"
        note_counts = Counter[str]()
        # A folder directly below `prefix` has as many slashes as `prefix`.
        max_slashes = prefix.count("/") + depth
        bounds = (project, prefix, prefix + _LAST_CHARACTER)
        for path, scope, number in self._db.execute(sql, bounds):
            if path.count("/") < max_slashes and may_see(scope, viewer):
                note_counts[path] += number
        return note_counts

    def hidden(self, viewer: str | None) -> list[NoteInfo]:
        """Return the notes that `viewer` does not see. The owner, None, sees all."""
        private_notes = self._select("select row from note where scope <> 'global'")
        return [info for info in private_notes if not may_see(info.scope, viewer)]

    def etags(self) -> set[str]:
        """Return the SHA-256 of every note, in hexadecimal digits."""
        # A SHA-256 is stored as bytes.
        rows = self._db.execute("select etag from note")
        return {etag.hex() if isinstance(etag, bytes) else etag for (etag,) in rows}

    def below(self, project: str, folder: str) -> list[NoteInfo]:
        """Return all notes of a folder at any depth and of any scope, sorted by path."""
        prefix = f"{folder.strip('/')}/".lstrip("/")
        return self._select(
            f"select row from note where {_IN_RANGE}", (project, prefix, prefix + _LAST_CHARACTER)
        )

    def complete(
        self, prefix: str, viewer: str | None, limit: int = 100, project: str | None = None
    ) -> list[str]:
        """Return up to `limit` permalinks that begin with `prefix`, sorted by code point.

        Archived notes are left out.

        viewer: the agent that asks; None for the owner, who sees all notes.
        project: the only project to look in. None means all.
        """
        prefix = sqlite_text(prefix)
        rows = self._db.execute(
            "select distinct permalink from note where permalink >= :prefix and permalink < :end"
            " and (:project is null or project = (select id from project where name = :project))"
            f" and project is not (select id from project where name = '{ARCHIVE_PROJECT}')"
            " and (:viewer is null or scope in ('global', 'agent:' || :viewer))"
            " order by permalink limit :limit",
            {
                "prefix": prefix,
                "end": prefix + _LAST_CHARACTER,
                "project": project,
                "viewer": viewer,
                "limit": limit,
            },
        )
        return [permalink for (permalink,) in rows]

    def duplicates(self) -> dict[str, list[NoteInfo]]:
        """Return the ids that several notes have, each with these notes by path."""
        repeated_ids = "select id from note group by id having count(*) > 1"
        notes = self._select(f"select row from note where id in ({repeated_ids}) order by id, path")
        return {identity: list(group) for identity, group in groupby(notes, lambda note: note.id)}

    def sharing_permalinks(self) -> list[list[NoteInfo]]:
        """Return the notes that have one permalink, by path, for each permalink of several notes."""
        repeated = "select permalink from note group by permalink having count(*) > 1"
        notes = self._select(
            f"select row from note where permalink in ({repeated}) order by permalink, path"
        )
        return [list(group) for _, group in groupby(notes, lambda note: note.permalink)]

    def sample(self, most: int) -> list[NoteInfo]:
        """Return at most this many notes, chosen at random if there are more."""
        return self._select("select row from note order by random() limit ?", (most,))

    def suspicious(self) -> list[NoteInfo]:
        """Return the notes that seem to contain injected instructions, the newest first."""
        return self._select("select row from note where suspicious is not null order by row desc")

    def warnings(self) -> list[tuple[str, str, tuple[str, ...]]]:
        """Return the warnings from reading notes: (project, path, texts) for each note with any."""
        source = "note n join project p on p.id = n.project where n.warnings is not null"
        rows = self._db.execute(f"select p.name, n.path, n.warnings from {source} order by 1, 2")
        return [(project, path, tuple(json.loads(texts))) for project, path, texts in rows]

    def stamp(self, project: str, path: str) -> Stamp | None:
        """Return the stored stamp of a note or an expired entry. None if neither is at the path."""
        columns = "size, mtime_ns, inode, ctime_ns"
        sql = f"select {columns} from note where project = {_PROJECT} and path = ?"
        row = self._db.execute(sql, (project, path)).fetchone()
        # Expired entries have left the table of notes.
        if row is None and project == KV_PROJECT:
            sql = f"select {columns} from expired where path = ?"
            row = self._db.execute(sql, (path,)).fetchone()
        if row is None:
            return None
        return Stamp(*row)

    def skipped(self) -> dict[tuple[str, str], tuple[Stamp, str]]:
        """Return the files that are not notes: (project, path) → (stamp when read, reason).

        The reason is "" if nobody needs to know it.
        """
        rows = self._db.execute(
            "select project, path, size, mtime_ns, inode, ctime_ns, why from skipped"
        )
        return {(project, path): (Stamp(*stamp), why) for project, path, *stamp, why in rows}

    def skip(
        self, project: str, path: str, stamp: Stamp, why: str, *, fails_here: bool = False
    ) -> None:
        """Record that the file at `path` is not a note while it has this stamp.

        stamp: the size and times of the file.
        why: the reason, for people; "" if nobody needs to know it.
        fails_here: whether this version of memoranda fails at the file, so that another one may
            not.
        """
        self._db.execute(
            "insert or replace into skipped"
            " (project, path, size, mtime_ns, inode, ctime_ns, why, program)"
            " values (?, ?, ?, ?, ?, ?, ?, ?)",
            (project, path, *stamp, why, _program() if fails_here else ""),
        )

    def failed_elsewhere(self) -> list[tuple[str, str]]:
        """Return (project, path) of files that another version of memoranda could not read."""
        sql = "select project, path from skipped where program not in ('', ?)"
        return [(project, path) for project, path in self._db.execute(sql, (_program(),))]

    def unskip(self, project: str, path: str) -> None:
        """Forget that the file at `path` is not a note, so that it is read again."""
        self._db.execute("delete from skipped where project = ? and path = ?", (project, path))

    def expired_paths(self, now: int, limit: int = -1) -> list[str]:
        """Return the paths of key-value entries whose time is over but which the index still shows.

        now: in microseconds since 1970.
        limit: how many paths at most; -1 means all.
        """
        sql = f"select path from note where project = {_PROJECT} and expires < ? limit ?"
        return [path for (path,) in self._db.execute(sql, (KV_PROJECT, now, limit))]

    def in_other_case(self, project: str, path: str) -> NoteInfo | None:
        """Return a note whose path some file systems take for the same as `path`, or None.

        Such file systems ignore case and Unicode form.
        """
        # Such paths have the same key in `note_fold`, but so do other paths.
        candidates = self._db.execute(
            "select n.row, n.path from note_fold f cross join note n on n.row = f.note"
            f" where f.fold = ? and n.project = {_PROJECT}",
            (fold_key(path), project),
        )
        rows = [row for row, other_path in candidates if file_key(other_path) == file_key(path)]
        notes = in_order(self._db, rows)
        return notes[0] if notes else None

    def by_permalink(self, project: str, address: str) -> NoteInfo | None:
        """Return the first note of a project with exactly this permalink, or None.

        address: the permalink.
        """
        notes = self.with_permalink(project, address)
        return notes[0] if notes else None

    def with_permalink(self, project: str, address: str) -> list[NoteInfo]:
        """Return the notes of a project with exactly this permalink, sorted by path.

        address: the permalink.
        """
        # `+`: else SQLite walks all notes of the project in the order of their paths
        sql = f"select row from note where permalink = ? and +project = {_PROJECT} order by +path"
        return self._select(sql, (address, project))

    def holding_link(self, identity: str) -> list[NoteInfo]:
        """Return the memories whose header has this id among its `links`."""
        notes = self._select("select distinct note from link where fold = ?", (fold_key(identity),))
        return [info for info in notes if identity in info.links]

    def with_text(self, digest: str, viewer: str | None) -> list[NoteInfo]:
        """Return the notes that `viewer` sees and whose file has exactly this text.

        This reads a row of each note.

        digest: the SHA-256 of the text.
        """
        notes = self._select("select row from note where etag = ?", (bytes.fromhex(digest),))
        return [info for info in notes if may_see(info.scope, viewer)]

    def with_ids(self, ids: Iterable[str], projects: Sequence[str]) -> list[NoteInfo]:
        """Return the notes of these projects that have one of these ids.

        Two notes with the same id are both included.
        """
        return self._select(
            "select n.row from note n join project p on p.id = n.project"
            " where n.id in (select value from json_each(?)) and p.name in (select value from json_each(?))",
            (json.dumps(list(ids)), json.dumps(projects)),
        )

    def survivors(self, ids: Iterable[str]) -> dict[str, NoteInfo]:
        """Return the notes into which notes with these ids were merged, by id.

        An id that was not merged is missing.
        """
        sql = "select id, note from merged where id in (select value from json_each(?))"
        merged_rows = self._db.execute(sql, (json.dumps(list(ids)),)).fetchall()
        notes_by_row = infos(self._db, [row for _, row in merged_rows])
        return {identity: notes_by_row[row] for identity, row in merged_rows if row in notes_by_row}

    def rows_by_creation(
        self, viewer: str | None, category: str | None, scope: str | None
    ) -> array[int]:
        """Return the rows of all memories that `viewer` sees, the oldest first, then by id.

        Archived memories are included.

        category, scope: keep only memories of these. None means any.
        """
        rows = self._db.execute(
            f"select row from note where project in (select id from project where name in {MEMORY_PROJECTS})"
            " and (:viewer is null or scope in ('global', 'agent:' || :viewer))"
            " and (:category is null or category = :category)"
            " and (:scope is null or scope = :scope) order by created, id, row",
            {"viewer": viewer, "category": category, "scope": scope},
        )
        return array("q", (row for (row,) in rows))

    def places(self, rows: Sequence[int]) -> list[NotePlace]:
        """Return the places of the notes in these rows, in no particular order."""
        sql = (
            "select n.row, n.id, p.name, n.path, n.category, n.phase, n.title from note n"
            " join project p on p.id = n.project where n.row in (select value from json_each(?))"
        )
        places = self._db.execute(sql, (json.dumps(list(rows)),))
        return [NotePlace(*columns) for columns in places]

    def agents_at_work(self, rows: Sequence[int]) -> list[tuple[int, str, str]]:
        """Return (row, author, time created) of these notes that agents wrote, the oldest first.

        The author is written `agent:name`, the time in ISO 8601.
        """
        sql = (
            "select row, created, provenance ->> 'who' from note"
            " where row in (select value from json_each(?)) and provenance like '%\"agent:%'"
            " and provenance ->> 'who' like 'agent:%' order by created, row"
        )
        agent_notes = self._db.execute(sql, (json.dumps(list(rows)),))
        return [(row, who, iso(created)) for row, created, who in agent_notes]

    def file_text(self, project: str, path: str, *, unless_etag: str) -> str | None:
        """Return the text of the file at a path as it was indexed. None if it was not indexed.

        unless_etag: the SHA-256 of a text that the caller has. The result is None for this text,
            too.
        """
        sql = (
            "select n.etag, t.front || t.text from note n join text t on t.row = n.row"
            f" where n.project = {_PROJECT} and n.path = ?"
        )
        row = self._db.execute(sql, (project, path)).fetchone()
        if row is None:
            return None
        etag, text = row
        # A SHA-256 is stored as bytes.
        if isinstance(etag, bytes):
            etag = etag.hex()
        if etag == unless_etag:
            return None
        return str(text)

    def bodies(self, rows: Sequence[int]) -> dict[int, str]:
        """Return the text after the frontmatter of each of these rows."""
        sql = "select row, text from text where row in (select value from json_each(?))"
        return dict(self._db.execute(sql, (json.dumps(list(rows)),)).fetchall())

    def folders_named(self, names: Sequence[str]) -> list[tuple[str, str]]:
        """Find folders by their paths. Returns (project, folder) of each that has notes."""
        sql = (
            "select distinct p.name, t.folder from tally t join project p on p.id = t.project"
            " where t.folder in (select value from json_each(?)) order by p.name, t.folder"
        )
        return self._db.execute(sql, (json.dumps(list(names)),)).fetchall()

    def rows_repeating(self, pattern: re.Pattern[str]) -> set[int]:
        """Return the rows of the notes whose body matches `pattern` at least twice.

        Rows of deleted notes may be among them.
        """
        from memoranda.index.repeated import RepeatedPatterns

        return held(self._db, RepeatedPatterns).rows(self._db, pattern)

    def scoped_bodies(self, project: str) -> Iterator[tuple[str, str]]:
        """Yield (scope, text after the frontmatter) of every note of a project."""
        sql = f"select n.scope, t.text from note n join text t on t.row = n.row where n.project = {_PROJECT}"
        return iter(self._db.execute(sql, (project,)))

    def sections(
        self,
        most: int,
        reads: Mapping[str, int],
        moment: datetime,
        upheld: Collection[int] = (),
    ) -> list[Section]:
        """Return every category that has memories, each with its most important memories.

        Pinned memories come first, then those read most often, then the newest. Reminders are left
        out, since `reminders` returns them.

        most: how many memories to show of each category; 0 means none.
        reads: how often memories were read, by id, in addition to the count in their frontmatter.
        moment: show only memories that are valid at this time.
        upheld: the rows of memories that no other note ends.
        """
        # Count the memories of each category.
        counts = self._db.execute(
            "select n.category, count(*), sum(n.phase = 'inbox') from note n join project p on p.id = n.project"
            f" where {_IS_GLOBAL_MEMORY} group by 1"
        )
        sections = {category: Section(category, total, inbox) for category, total, inbox in counts}

        # Choose those to show. `row_number` numbers the memories of a category by importance.
        invalid_rows = filters.invalid_at(superseding.valid_spans(self._db), moment, upheld)
        is_valid = filters.excluded(invalid_rows, "n.row")
        # "" if all notes are valid.
        and_is_valid = f" and {is_valid}" if is_valid else ""
        pinned = self._db.execute(
            "select rowid from name_fts where name_fts match ?", (any_of(PINNED, ["true"]),)
        )
        ranked = self._db.execute(
            "select category, row from (select n.category, n.row, row_number() over (partition by n.category order by"
            " n.row in (select value from json_each(?)) desc,"
            " n.access_count + coalesce(r.value, 0) desc, n.created desc, n.id) as place"
            " from note n join project p on p.id = n.project left join json_each(?) r on r.key = n.id"
            f" where {_IS_GLOBAL_MEMORY} and n.category <> 'reminders'{and_is_valid})"
            " where place <= ? order by category, place",
            (json.dumps([row for (row,) in pinned]), json.dumps(reads), most),
        )
        for category, row in ranked:
            sections[category].first += in_order(self._db, [row])
        return list(sections.values())

    def reminders(self) -> list[NoteInfo]:
        """Return all memories of category `reminders` and scope `global`, the oldest first."""
        return self._select(
            "select n.row from note n join project p on p.id = n.project"
            f" where {_IS_GLOBAL_MEMORY} and n.category = 'reminders' order by n.created, n.id"
        )


def _between(prefix: str, folders: Iterable[str], depth: int) -> Iterator[tuple[str, str]]:
    """Yield ranges of paths with all notes below `prefix`, except those too deep below it.

    A range is (first path, path to stop before). With folders `a` and `b`, prefix "" and depth 1,
    the ranges are: up to `a/`, from `a/` to `b/`, after `b/`.

    prefix: a folder with a slash at the end; "" is the project.
    folders: the folders below it, down to `depth` levels.
    depth: how many levels of folders to go down; 1 means only what is directly in the folder.
    """
    # Notes in the deepest folders are too deep. So the ranges leave out these folders.
    slashes_of_deepest = prefix.count("/") + depth - 1
    deepest_folders = [folder for folder in folders if folder.count("/") == slashes_of_deepest]
    start = prefix
    for folder_prefix in sorted([f"{folder}/" for folder in deepest_folders]):
        yield start, folder_prefix
        # Go on behind all paths in this folder.
        start = folder_prefix + _LAST_CHARACTER
    yield start, prefix + _LAST_CHARACTER


class Kept(NamedTuple):
    """A key-value entry that has not expired, as lists show it.

    row: the row of its note.
    path, id, scope: the properties of its note.
    namespace, key: its name.
    created: in microseconds since 1970.
    access_count: how many times it was read, as its header says.
    size: the size of its file in bytes.
    body: the text after the frontmatter.
    """

    row: int
    path: str
    namespace: str
    key: str
    id: str
    scope: str
    created: int
    access_count: int
    size: int
    body: str


class Expired(NamedTuple):
    """A key-value entry whose time is over and whose file still exists.

    path, scope: where the file is, and who may see it.
    namespace: the namespace of the entry.
    """

    path: str
    namespace: str
    scope: str


class EntryQueries(Queries):
    """Reads the key-value entries of one index, and removes those whose time is over."""

    def kept(self, *, bodies: bool = True) -> Iterator[Kept]:
        """Yield every entry that has not expired.

        bodies: whether to read the texts. If False, each `body` is "".
        """
        from memoranda.note.entry import namespace_in

        body = "t.text" if bodies else "''"
        rows = self._db.execute(
            f"select n.row, n.path, t.front, n.title, n.id, n.scope, n.created, n.access_count, n.size, {body}"
            f" from note n join text t on t.row = n.row where n.project = {_KV}"
        )
        for row, path, front, *other_fields in rows:
            yield Kept(row, path, namespace_in(front, path), *other_fields)

    def expired(self, limit: int = -1) -> list[Expired]:
        """Return the expired entries whose files still exist, sorted by path.

        limit: how many at most; -1 means all.
        """
        rows = self._db.execute(
            "select path, namespace, scope from expired order by path limit ?", (limit,)
        )
        return [Expired(*row) for row in rows]

    def paths_with(self, key: str) -> Sequence[str]:
        """Return the paths of all entries with this key, in any namespace, expired or not."""
        rows = self._db.execute(
            "select n.path from note_fold f cross join note n on n.row = f.note"
            f" where f.fold = :fold and n.title = :key and n.project = {_KV}"
            " union select path from expired where key = :key order by 1",
            {"fold": fold_key(key), "key": key},
        )
        return [path for (path,) in rows]

    def retire(self, now: int) -> None:
        """Move all entries whose time is over from the other tables to `expired`.

        Expects to run inside a transaction.

        now: in microseconds since 1970.
        """
        from memoranda.index import writer
        from memoranda.note.entry import namespace_of

        db = self._db
        for path in NoteQueries(self._database).expired_paths(now):
            info = get(db, KV_PROJECT, path)
            assert info is not None
            writer.remove(db, KV_PROJECT, path)
            entry = {
                "path": path,
                "size": info.size,
                "mtime_ns": info.mtime_ns,
                "inode": info.inode,
                "ctime_ns": info.ctime_ns,
                "namespace": namespace_of(info.header, path),
                "key": info.title,
                "scope": info.scope,
            }
            insert(db, "expired", [entry])


def _program() -> str:
    """Return the version of memoranda."""
    # The module is only named here, because the index may not import what is above it.
    return str(import_module("memoranda").__version__)
