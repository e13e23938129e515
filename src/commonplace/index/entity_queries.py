"""The notes of project `graph` as entities and relations, by exact name and in their order (contract 002)."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from commonplace.index.database import Database, Queries
from commonplace.index.facets import may_see
from commonplace.index.keys import key
from commonplace.note.entity import folded_name
from commonplace.note.links import without_suffix
from commonplace.note.model import Note

PROJECT = "graph"
_ENTITY = "e.note, e.created, e.path, e.scope, e.name, e.kind"
_SOURCE, _TARGET = 3, 5
"""Fields of a RelationRow; by number they are read faster."""


class EntityRow(NamedTuple):
    """One entity, or a placeholder (`kind` None); `created` in microseconds since 1970."""

    note: int
    created: int
    path: str
    scope: str
    name: str
    kind: str | None


class RelationRow(NamedTuple):
    """One relation item; (`created`, `path`) are those of the note it stands in, `position` its place there."""

    created: int
    path: str
    position: int
    source: str
    type: str
    target: str


def put(db: sqlite3.Connection, note: Note, row: int, created: int) -> None:
    """Store what a note of project `graph` says. Expects a transaction; `row` is the note's."""
    kind = None if note.header.get("placeholder") is True else note.type
    texts = json.dumps([each.text for each in note.observations], ensure_ascii=False)
    values = (row, created, note.path, note.scope, note.title, kind, texts)
    db.execute("insert into entity values (null, ?, ?, ?, ?, ?, ?, ?)", values)


class EntityQueries(Queries):
    """Reads the entities of one index; `viewer` is the agent that asks, None the owner.

    Every entity with its name, type and observations in lower case stays in memory for `matching`, and is brought up
    to date when the index has changed.
    """

    def __init__(self, database: Database):
        super().__init__(database)
        self._seen: tuple[sqlite3.Connection, int, int] | None = None
        self._forget()

    def _forget(self) -> None:
        self._known: dict[int, tuple[tuple[int, str], EntityRow, str, list[str]] | None] = {}
        self._rows: list[EntityRow] = []
        self._wholes: list[str] = []
        self._texts: list[list[str]] = []

    def all(self, viewer: str | None) -> list[EntityRow]:
        """Every entity, in order."""
        self._follow()
        return [row for row in self._rows if may_see(row.scope, viewer)]

    def matching(self, text: str, viewer: str | None) -> list[EntityRow]:
        """The entities whose name, type or a single observation holds `text`, all in lower case; in order."""
        self._follow()
        return [
            self._rows[at]
            for at in [at for at, whole in enumerate(self._wholes) if text in whole]
            if any(text in each for each in self._texts[at]) and may_see(self._rows[at].scope, viewer)
        ]

    def _follow(self) -> None:
        db = self._db
        now = (db, db.execute("pragma data_version").fetchone()[0], db.total_changes)
        if self._seen == now:
            return
        if self._seen is None or self._seen[0] is not db:
            self._forget()
        self._seen = now
        last = max(self._known, default=0)
        sql = f"select e.seq, e.observations, {_ENTITY} from entity e where e.seq > ?"
        for seq, texts, *values in db.execute(sql, (last,)):
            row = EntityRow._make(values)
            lowered = [each.lower() for each in (row.name, row.kind or "", *json.loads(texts))]
            known = ((row.created, row.path), row, "\n".join(lowered), lowered)
            self._known[seq] = None if row.kind is None else known  # a placeholder is known, but no entity
        fresh = max(self._known, default=0) > last
        if db.execute("select count(*) from entity").fetchone()[0] != len(self._known):
            there = {seq for (seq,) in db.execute("select seq from entity")}
            self._known = {seq: one for seq, one in self._known.items() if seq in there}
            fresh = True
        if fresh:
            ordered = sorted(one for one in self._known.values() if one is not None)
            self._rows, self._wholes, self._texts = ([one[at] for one in ordered] for at in (1, 2, 3))  # type: ignore[assignment]

    def named(self, names: Iterable[str], viewer: str | None) -> list[EntityRow]:
        """Entities and placeholders of exactly these names, in order."""
        wanted = set(names)
        sql = f"select {_ENTITY} from note_fold f join entity e on e.note = f.note where f.fold in ({{marks}})"
        found = map(EntityRow._make, self._among(sql, {key(name) for name in wanted}))
        visible = {each.note: each for each in found if each.name in wanted and may_see(each.scope, viewer)}
        return sorted(visible.values(), key=lambda each: (each.created, each.path))

    def observations(self, notes: Sequence[int]) -> dict[int, list[str]]:
        """The observations of the entities in these notes, by note."""
        sql = "select note, observations from entity where note in (select value from json_each(?))"
        found = dict(self._db.execute(sql, (json.dumps(notes),)).fetchall())
        every = json.loads(f"[{','.join(found.values())}]")  # one parse is faster than many
        return dict(zip(found, every, strict=True))

    def relations(self, viewer: str | None) -> list[RelationRow]:
        """Every relation, in order."""
        return sorted(self._linked("entity e join link l on l.note = e.note", "true", None, viewer))

    def relations_at(self, names: set[str], viewer: str | None) -> list[RelationRow]:
        """The relations with at least one end among `names`, in order."""
        folds = {key(name) for name in names}
        ends = folds | {key(name.partition("::")[2] or name) for name in names if "::" in name}
        among = "e.note in (select note from note_fold where fold in ({marks}))"
        rows = self._linked("entity e cross join link l on l.note = e.note", among, folds, viewer)
        found = {row for row in rows if row[_SOURCE] in names}  # a note with several keys may be in several batches
        rows = self._linked("link l cross join entity e on e.note = l.note", "l.fold in ({marks})", ends, viewer)
        return sorted(found.union(row for row in rows if row[_TARGET] in names))

    def _linked(
        self, source: str, among: str, keys: Collection[str] | None, viewer: str | None
    ) -> Iterator[RelationRow]:
        """The relations of `source` for which `among` holds; SQL names targets as `target_name` does."""
        sql = (
            "select e.created, e.path, l.position, e.name, l.type,"
            " case when l.project is null or lower(l.project) = ? then l.target else l.project || '::' || l.target end"
            f" from {source} where l.item = 1 and (? is null or e.scope in ('global', 'agent:' || ?)) and {among}"
        )
        values = (PROJECT, viewer, viewer)
        rows = self._db.execute(sql, values) if keys is None else self._among(sql, keys, *values)
        return map(RelationRow._make, rows)

    def holds_file(self, project: str, stem: str) -> bool:
        """Whether a note in the project's own folder has this file name, whatever its case and composition."""
        folded = folded_name(stem)
        rows = self._db.execute(
            "select n.path from note_fold f join note n on n.row = f.note join project p on p.id = n.project"
            " where f.fold = ? and p.name = ?", (key(stem), project),
        )  # fmt: skip
        return any("/" not in path and folded_name(without_suffix(path)) == folded for (path,) in rows)

    def titled(self, project: str, names: Iterable[str], viewer: str | None) -> list[int]:
        """The rows of a project's notes with exactly one of these titles."""
        return self._exactly("n.title", "note_fold", project, names, viewer)

    def linking(self, project: str, names: Iterable[str], viewer: str | None) -> list[int]:
        """The rows of a project's notes with a link written as one of these names."""
        return self._exactly("f.target", "link", project, names, viewer)

    def _exactly(self, text: str, table: str, project: str, names: Iterable[str], viewer: str | None) -> list[int]:
        """The rows whose `text` is one of `names`, found in `table` by the folded key all spellings share."""
        wanted = set(names)
        sql = (
            f"select n.row, {text}, n.scope from {table} f join note n on n.row = f.note"
            " join project p on p.id = n.project where p.name = ? and f.fold in ({marks})"
        )
        found = self._among(sql, {key(name) for name in wanted}, project)
        return list(dict.fromkeys(row for row, name, scope in found if name in wanted and may_see(scope, viewer)))

    def last_created(self) -> int:
        """The latest `created` of all entities and placeholders, 0 when there is none."""
        return self._db.execute("select max(created) from entity").fetchone()[0] or 0

    def version(self, viewer: str | None) -> tuple[int, int]:
        """A value that differs once something in the graph changed."""
        seen = "?1 is null or scope in ('global', 'agent:' || ?1)"
        sql = f"select count(*), coalesce(max(seq), 0) from entity where {seen}"
        return self._db.execute(sql, (viewer,)).fetchone()


def target_name(target: str, project: str | None) -> str:
    """The name a target means in the graph; one in another project is told by its project too."""
    return target if project is None or project.casefold() == PROJECT else f"{project}::{target}"
