"""An index of notes that exist nowhere else: what `put` is given is what is indexed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from memoranda.index.index import Index
from memoranda.index.resolve import LinkSource, LinkText, Resolver
from memoranda.index.rows import Hits, NoteInfo
from memoranda.note.markdown import parse_note
from memoranda.note.model import Note
from memoranda.query import Query, parse
from memoranda.sources.base import Stamp
from memoranda.text.unicode import sqlite_text

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
WORD_TABLES = ("note_fts", "name_fts", "passage_fts", "stem_fts")


class Desk:
    """An open index, and the verbs of the index in few words. Each `put` is a second younger."""

    def __init__(self, path: Path):
        self.path = path
        self.index = Index(path)
        self.db = self.index.connection
        self.ticks = 0

    def note(
        self, path: str, text: str, project: str = "notes", at: datetime | None = None
    ) -> Note:
        self.ticks += 1
        changed = at or START + timedelta(seconds=self.ticks)
        note = parse_note(text, project=project, path=path, changed=changed, born=None)
        note.etag = sha256(text.encode("utf-8", "replace")).hexdigest()
        return note

    def put(
        self, path: str, text: str = "", project: str = "notes", at: datetime | None = None
    ) -> int:
        with self.index.transaction():
            return self._put(path, text, project, at)

    def put_all(self, texts: dict[str, str], project: str = "notes") -> None:
        """Several notes in one transaction."""
        with self.index.transaction():
            for path, text in texts.items():
                self._put(path, text, project, None)

    def _put(self, path: str, text: str, project: str, at: datetime | None) -> int:
        note = self.note(path, text, project, at)
        return self.index.put(
            note, Stamp(len(text), int(note.changed.timestamp() * 1e9), self.ticks)
        )

    def put_together(self, texts: dict[str, str], project: str = "notes") -> None:
        """Several notes in one go. Each is told its permalink."""
        notes = []
        for path, text in texts.items():
            note = self.note(path, text, project)
            stamp = Stamp(len(text), int(note.changed.timestamp() * 1e9), self.ticks)
            notes.append((note, stamp))
        with self.index.transaction():
            self.index.put_all(notes)

    def remove(self, path: str, project: str = "notes") -> bool:
        with self.index.transaction():
            return self.index.remove(project, path)

    def search(
        self,
        text: str = "",
        *,
        viewer: str | None = None,
        limit: int = 100,
        offset: int = 0,
        explain: bool = False,
        **filters: Any,
    ) -> Hits:
        return self.index.search(
            Query(text, **filters), viewer=viewer, limit=limit, offset=offset, explain=explain
        )

    def asked(self, text: str, viewer: str | None = None) -> list[str]:
        """The paths a query in text form finds, best first."""
        return [hit.note.path for hit in self.index.search(parse(text), viewer=viewer, limit=100)]

    def found(self, text: str = "", **more: Any) -> list[str]:
        """The paths a search finds, best first."""
        return [hit.note.path for hit in self.search(text, **more)]

    def list(
        self,
        *,
        viewer: str | None = None,
        order: str = "changed",
        limit: int | None = None,
        offset: int = 0,
        **filters: Any,
    ) -> list[str]:
        infos, total = self.index.notes.listing(
            Query(order=order, **filters), viewer=viewer, limit=limit, offset=offset
        )
        assert len(infos) <= total
        return [info.path for info in infos]

    def get(self, path: str, project: str = "notes") -> NoteInfo:
        info = self.index.notes.get(project, path)
        assert info is not None, path
        return info

    def permalinks(self, project: str = "notes") -> dict[str, str]:
        rows = self.db.execute(
            "select n.path, n.permalink from note n join project p on p.id = n.project where p.name = ?",
            (project,),
        )
        return dict(rows.fetchall())

    def leads(
        self, target: str, *, project: str = "notes", viewer: str | None = None, **more: Any
    ) -> str:
        """The path a link leads to, else `unwritten` or `ambiguous`."""
        note = self.index.links.resolve(target, project=project, viewer=viewer, **more)
        folder = more.get("folder", "")
        target_project = more.get("target_project")
        answer = Resolver(self.db, viewer).link(
            LinkText(sqlite_text(target), target_project), LinkSource(project, folder, scope=None)
        )
        assert (note is not None) == (answer.state == "resolved")
        if note:
            return note.path
        return answer.state

    def find(
        self, identifier: str, *, project: str | None = None, viewer: str | None = None
    ) -> str:
        return self.index.notes.find(
            identifier, project=project, default_project="notes", viewer=viewer
        ).path

    def incoming(
        self, path: str, viewer: str | None = None, project: str = "notes", **more: Any
    ) -> list[str]:
        edges = self.index.links.incoming(self.get(path, project), viewer, **more)
        for edge in edges:
            assert edge.direction == "in"
            assert edge.state == "resolved"
            assert edge.note
        return [edge.note.path for edge in edges if edge.note]

    def check(self) -> None:
        """The full-text tables are whole, and no table holds a row of a note that is gone."""
        for table in WORD_TABLES:
            self.db.execute(f"insert into {table}({table}) values ('integrity-check')")
        notes = {row for (row,) in self.db.execute("select row from note")}
        for table, column in (
            ("text", "row"),
            ("note_fold", "note"),
            ("merged", "note"),
            ("link", "note"),
        ):
            rows = {row for (row,) in self.db.execute(f"select {column} from {table}")}
            assert rows <= notes, table
        rows = {row for (row,) in self.db.execute("select row from text")}
        assert rows == notes
        for table in ("note_fts", "name_fts"):
            rows = {row for (row,) in self.db.execute(f"select id from {table}_docsize")}
            assert rows == notes, table
        counted: Counter[tuple[object, ...]] = Counter()
        columns = "project, path, scope, coalesce(phase, ''), coalesce(category, '')"
        for project, path, *kind in self.db.execute(f"select {columns} from note"):
            parts = path.split("/")[:-1]
            counted.update(
                (project, "/".join(parts[:depth]), *kind) for depth in range(len(parts) + 1)
            )
        assert {row[:5]: row[5] for row in self.db.execute("select * from tally")} == counted
        passages = self.db.execute("select coalesce(sum(passages), 0) from text").fetchone()[0]
        assert self.db.execute("select count(*) from passage").fetchone()[0] == passages

    def holds_nothing(self) -> None:
        """Every table is empty, the words included."""
        self.check()
        for table in ("note", "text", "note_fold", "merged", "link", "passage", "tally"):
            assert self.db.execute(f"select count(*) from {table}").fetchone()[0] == 0, table
        for table in WORD_TABLES:
            self.db.execute(
                f"create virtual table temp.{table}_words using fts5vocab(main, {table}, row)"
            )
            rows = self.db.execute(f"select term from temp.{table}_words").fetchall()
            assert rows == [], table
            self.db.execute(f"drop table temp.{table}_words")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """An empty index."""
    new_desk = Desk(tmp_path / "index.db")
    yield new_desk
    new_desk.index.close()
