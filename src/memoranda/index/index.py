"""The index of the notes on disk. The engine uses only this object, and no SQL.

The whole index can be made again from the notes. All SQL is in this package, so another database
could replace SQLite by offering the methods of `Index`, `NoteQueries`, `LinkQueries`,
`EntityQueries` and `EntryQueries`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from memoranda.index import database
from memoranda.index.database import Database
from memoranda.index.filters import project_ids
from memoranda.index.note_queries import EntryQueries, NoteQueries
from memoranda.query import Query
from memoranda.sources.base import Stamp, Values

if TYPE_CHECKING:
    import sqlite3

    from memoranda.index.entity_queries import EntityQueries
    from memoranda.index.link_queries import LinkQueries
    from memoranda.index.rows import Hit, Hits, NoteInfo, SmartResult
    from memoranda.index.search.ranking import Nearness
    from memoranda.index.sync import BulkSource, Difference, Differences, Load, Progress, Result
    from memoranda.index.writer import Indexed, Prepared
    from memoranda.note.model import Note


class Index(Database):
    """The index in the file at `path`.

    lock: the lock of the home.

    `put`, `remove`, `forget_project` and `record_seen` must run inside a `transaction`. Modules that a
    caller may not need are imported at their first use.
    """

    is_corrupt = staticmethod(database.is_corrupt)

    def __init__(self, path: Path, lock: AbstractContextManager[object] | None = None):
        super().__init__(path, lock)
        self.notes = NoteQueries(self)
        self.entries = EntryQueries(self)

    def explain(self, error: sqlite3.Error) -> str:
        """Return the reason for an SQLite error in words for people."""
        return database.explain(error, self.path.parent)

    @cached_property
    def links(self) -> LinkQueries:
        """The links between notes."""
        from memoranda.index.link_queries import LinkQueries

        return LinkQueries(self)

    @cached_property
    def entities(self) -> EntityQueries:
        """The notes of project `graph` as entities and relations."""
        from memoranda.index.entity_queries import EntityQueries

        return EntityQueries(self)

    def put(self, note: Note, stamp: Stamp) -> str:
        """Index `note`. It replaces any note at its project and path. Return its permalink."""
        from memoranda.index import writer

        return writer.put(self.connection, note, stamp)

    def put_all(
        self,
        notes: Iterable[tuple[Note, Stamp]],
        prepared: Mapping[tuple[str, str], Prepared] = {},
    ) -> None:
        """Index notes, and set their permalinks. No two of them may have the same project and path.

        prepared: rows that were computed before, by (project, path). The other notes are computed
            now.
        """
        from memoranda.index import writer

        writer.put_all(self.connection, notes, prepared)

    def indexed(self, project: str, path: str) -> Indexed | None:
        """Return the fields of a note for `foresee_removal`. None if no note is at `path`."""
        from memoranda.index import writer

        number = self.project_ids().get(project.casefold(), 0)
        return writer.indexed(self.connection, number, path)

    def project_ids(self) -> dict[str, int]:
        """Return the ids of the projects, by name in lower case."""
        return project_ids(self.connection)

    def unplaced(self) -> list[int]:
        """Return the rows of long notes that the index does not have all words of yet."""
        from memoranda.index import placing

        return placing.unplaced(self.connection)

    def place(self, note: int) -> bool:
        """Insert some missing words of the note in a row. Return False if none is missing."""
        from memoranda.index import writer

        return writer.place(self.connection, note)

    def withdraw(self, project: str, path: str) -> bool:
        """Take some words of a long note out of the index, before the note is replaced.

        Return False if none is left of those that go in parts.
        """
        from memoranda.index import writer

        return writer.withdraw(self.connection, project, path)

    def remove(self, project: str, path: str) -> bool:
        """Remove a note or an expired entry. Return False if the index has nothing at `path`."""
        from memoranda.index import writer

        return writer.remove(self.connection, project, path)

    def forget_project(self, project: str) -> None:
        """Remove a project and all of its notes from the index."""
        from memoranda.index import writer

        writer.forget_project(self.connection, project)

    def plan(
        self,
        project: str,
        parts: Iterable[dict[str, Values]],
        unreadable: Sequence[str] = (),
        folder: str = "",
    ) -> Differences:
        """Return the changes that bring the index up to date with the files of a project.

        parts: the files, as several maps from path to stamp.
        unreadable: folders that could not be read. No file below them counts as removed. The caller
            may fill this list until the last of `parts` is read.
        folder: compare only this folder. "" means the whole project.

        Removals come first, then new notes, oldest first.
        """
        from memoranda.index.sync import Comparison

        comparison = Comparison()
        known_stamps = self.notes.stamps(project, folder)
        for stamps in parts:
            comparison.look(known_stamps, stamps)
        return comparison.end(known_stamps, unreadable)

    def plan_file(self, project: str, path: str, stamp: Stamp | None) -> list[Difference]:
        """Return the change that brings the index in step with one file, or [] if nothing changed.

        stamp: the size and times of the file. None if the file does not exist.
        """
        from memoranda.index.sync import Difference

        known_stamp = self.notes.stamp(project, path)
        if known_stamp == stamp:
            return []
        return [Difference(path, stamp, None if known_stamp is None else path)]

    def apply(
        self,
        project: str,
        changes: Sequence[Difference],
        load: Load,
        lock: AbstractContextManager[object],
        result: Result,
        progress: Progress | None = None,
        files: BulkSource | None = None,
        ahead: Mapping[str, Prepared] = {},
    ) -> None:
        """Carry out the changes of `plan`, one batch of changes per transaction.

        lock: the lock of the home. Each batch holds it, so that no process can write a file between
            the reading of its bytes and the writing of its rows.
        load: returns the note at a path and its stamp. None if the file no longer has a note.
        files: a source from which helper processes can read many files. None means that all are
            read here.
        result: the counts of changes, to which this method adds.
        progress: is called with (number of changes done, number of all changes), or None.
        ahead: rows that were computed before, by path.
        """
        from memoranda.index import sync

        sync.apply(
            self.connection,
            project,
            changes,
            load=load,
            lock=lock,
            result=result,
            progress=progress,
            files=files,
            ahead=ahead,
        )

    def seen_stamp(self, project: str) -> Stamp | None:
        """Return the stamp that a project had when it was last indexed, if it is a single file.

        None if it was never indexed.
        """
        sql = "select size, mtime_ns, inode, ctime_ns from project where name = ?"
        row = self.connection.execute(sql, (project,)).fetchone()
        if row is None or row[0] is None:
            return None
        return Stamp(*row)

    def record_seen(self, project: str, file: Stamp | None) -> None:
        """Record the stamp of the project's file that the index now shows.

        file: None if the file does not exist, which counts as a stamp of zeros.
        """
        self.connection.execute(
            "insert into project (name, size, mtime_ns, inode, ctime_ns) values (?, ?, ?, ?, ?)"
            " on conflict (name) do update set size = excluded.size, mtime_ns = excluded.mtime_ns,"
            " inode = excluded.inode, ctime_ns = excluded.ctime_ns",
            (project, *(file or (0, 0, 0, 0))),
        )

    def search(
        self,
        query: Query,
        *,
        viewer: str | None,
        limit: int = 10,
        offset: int = 0,
        explain: bool = False,
        today: date | None = None,
        near: Nearness | None = None,
    ) -> Hits:
        """Return one page of the notes that match `query`, the best first.

        viewer: the agent that asks; None for the owner. Hidden notes are left out.
        limit, offset: how many hits to return, after skipping how many.
        explain: whether to add numbers to each hit's `why`.
        today: the day from which "last week" in a question counts. None means that only written
            dates are understood.
        near: compares meanings. None compares only words.
        """
        from memoranda.index import search

        return search.search(
            self.connection,
            query,
            viewer=viewer,
            limit=limit,
            offset=offset,
            explain=explain,
            today=today,
            near=near,
        )

    def evidence(
        self,
        question: str,
        *,
        viewer: str | None,
        max_chars: int = 8_000,
        projects: Sequence[str] | None = None,
        today: date | None = None,
        near: Nearness | None = None,
        filters: Query = Query(),
        skip: Callable[[NoteInfo], bool] | None = None,
        least: float = 0.0,
        floor: float = 0.0,
        related: float = 0.0,
    ) -> list[Hit]:
        """Return the passages that best answer `question`, the best first.

        viewer: the agent that asks; None for the owner. Hidden notes are left out.
        max_chars: the most characters that the passages take as text.
        projects: the projects to search; None for all.
        today: the day that "last week" in the question is counted from. None means that only
            written dates are understood.
        near: compares meanings. None compares only words.
        filters: further filters, and the time at which notes must be valid.
        skip: returns True for notes to leave out. None leaves out no note.
        least: the lowest relevance of a passage in the result. Relevance is the share of the
            question's words that a passage has, from 0 to 1.
        floor: if no passage has this relevance, nothing answers the question, and the result is
            empty. 0 means no limit.
        related: the lowest cosine at which a note is about the question. If a note has it, `floor`
            does not matter. 0 if it is not known for the model.
        """
        from memoranda.index import search

        return search.find_evidence(
            self.connection,
            question,
            viewer=viewer,
            max_chars=max_chars,
            projects=projects,
            today=today,
            near=near,
            filters=filters,
            skip=skip,
            least=least,
            floor=floor,
            related=related,
        )

    def smart(self, text: str, query: Query, *, viewer: str | None, top: int = 10) -> SmartResult:
        """Return the memories that contain the words of `text` most often (contract 001, 14).

        viewer: the agent that asks; None for the owner. Hidden notes are left out.
        top: how many memories to return. 0 means all.
        """
        from memoranda.index import search

        return search.smart_search(self.connection, text, query, viewer=viewer, top=top)
