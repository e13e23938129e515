"""What export, import, moving in and ingestion ask of a home: memories in order and by id, files as they are, a place
in the history for what lost, and what was taken in before (contract 001, 11 and 12; docs/format.md)."""

from __future__ import annotations

import os
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, TypeVar

from commonplace.clock import stamp
from commonplace.engine.engine import verb
from commonplace.engine.history import HistoryVerbs
from commonplace.engine.overview import content_of
from commonplace.engine.transaction import HomeSession
from commonplace.engine.upkeep import Upkeep
from commonplace.engine.writing import id_list, scope_of
from commonplace.errors import Conflict, NotFound, StorageError
from commonplace.index.rows import NoteInfo
from commonplace.index.unopened import foreign_rows as foreign_rows
from commonplace.note import frontmatter
from commonplace.note.compose import Record
from commonplace.note.model import MEMORY_PROJECTS
from commonplace.query import Query
from commonplace.store.base import File, sha256
from commonplace.store.journal import Change, Touched

VERB = "import"
"""What the journal calls a change made here."""
INGEST = "ingest"
SOURCE_REF, SOURCE_ROOT, SOURCE_HASH = "source_ref", "source_root", "source_hash"
"""Header keys: the file a memory was made from, the folder that is in, and the hash of the text it had then."""


T = TypeVar("T")


def batches(items: Iterable[T], most: int, size_of: Callable[[T], int], largest: int) -> Iterator[list[T]]:
    """The items in order, in batches of at most so many, and about so large together."""
    batch: list[T] = []
    size = 0
    for each in items:
        if batch and (len(batch) >= most or size + size_of(each) > largest):
            yield batch
            batch, size = [], 0
        batch.append(each)
        size += size_of(each)
    if batch:
        yield batch


class Exchange:
    """The verbs of export, import and moving in for the caller of `memory`."""

    def __init__(self, memory: HistoryVerbs):
        self.memory = memory
        self.engine = memory.engine
        self._index = memory.index
        self._index_identity: object = None

    @verb
    def rows(self, category: str | None = None, scope: str | None = None) -> array[int]:
        """The memories the caller sees, of one category and scope if given, as handles for `page`: oldest first,
        then by id. Eight bytes each."""
        self.engine.fresh()
        found = self._index.notes.rows_by_creation(self.memory.agent, category, scope)
        self._index_identity = self._index.identity
        return found

    @verb
    def page(self, rows: Sequence[int]) -> list[tuple[NoteInfo, str]]:
        """These memories with their contents as indexed; those gone since `rows` are left out. Raises Conflict when the
        index was made anew meanwhile, as its handles are others then."""
        self._index.pin()  # opens it again if it was replaced
        if self._index_identity != self._index.identity:
            raise Conflict("the index", "made anew", "as it was")
        infos = [info for info in self._index.notes.in_order(rows) if info.project in MEMORY_PROJECTS]
        return self._with_contents([info for info in infos if self.memory.sees(info.scope)])

    @verb
    def known(self, ids: Iterable[str]) -> dict[str, tuple[NoteInfo, str]]:
        """The memories with exactly these ids, with their contents. Those the caller may not see are there too,
        or two memories would have one id."""
        self.engine.fresh()
        infos = self._index.notes.with_ids(ids, MEMORY_PROJECTS)
        infos.sort(key=lambda info: self.memory.sees(info.scope))  # of two with one id the last one counts
        return {info.id: (info, content) for info, content in self._with_contents(infos)}

    @verb
    def survivors(self, ids: Iterable[str]) -> dict[str, str]:
        """The contents of the memories these ids were merged into."""
        found = self._index.notes.survivors(ids)
        contents = {info.row: content for info, content in self._with_contents([*found.values()])}
        return {identity: contents[info.row] for identity, info in found.items() if self.memory.sees(info.scope)}

    @verb
    def contents(self) -> set[bytes]:
        """The `digest` of every memory there is; some hundred bytes each."""
        self.engine.fresh()
        return {
            digest(scope, body.removesuffix("\n"))
            for project in MEMORY_PROJECTS
            for scope, body in self._index.notes.scoped_bodies(project)
        }

    def _with_contents(self, infos: list[NoteInfo]) -> list[tuple[NoteInfo, str]]:
        self.engine.count_pending_reads(infos)
        bodies = self._index.notes.bodies([info.row for info in infos])
        return [(info, bodies[info.row].removesuffix("\n")) for info in infos if info.row in bodies]

    @verb
    def put(self, records: Sequence[Record]) -> None:
        """Store records as `Upkeep.put` does; their access counts are the whole ones from then on."""
        Upkeep(self.memory).put(records, VERB)
        self.engine.access.restart(*(record.id for record in records))

    @verb
    def keep(self, older: Sequence[tuple[NoteInfo, bytes]]) -> None:
        """Put texts that lost against the memory there into the history, as if each had stood there just before."""
        lost = [
            (Touched("put", each.project, each.path, new=each.etag, scope=each.scope), data) for each, data in older
        ]
        keep_lost(self.memory, lost)

    @verb
    def file(self, project: str, path: str) -> File | None:
        """What is at `path` of a project, None for nothing. Raises OutsideError, StorageError."""
        try:
            return self.engine.store(project).read(path)
        except NotFound:
            return None

    @verb
    def holder(self, project: str, *, permalink: str | None = None, identity: str | None = None) -> NoteInfo | None:
        """The note of a project that has this permalink, or this id."""
        self.engine.fresh()
        found = [self._index.notes.by_permalink(project, permalink)] if permalink else []
        found += self._index.notes.with_ids([identity], (project,)) if identity else []
        return next(filter(None, found), None)

    @verb
    def is_taken(self, project: str, path: str) -> bool:
        """Whether something is at `path`, or a note there whose path differs in case only."""
        store = self.engine.store(project)
        self.engine.fresh()
        return store.place(path).kind != "missing" or self._index.notes.in_other_case(project, path) is not None

    @verb
    def add_files(
        self, project: str, files: Sequence[tuple[str, bytes]], over: Mapping[str, File] | None = None
    ) -> None:
        """Write files, byte for byte, as one change: new ones, and those in place of what is `over` at a path. Raises
        Exists or Conflict when another is there meanwhile; OutsideError."""
        with self.memory.change(VERB, fresh=False) as change:
            for path, data in files:
                change.put(project, path, data, old=(over or {}).get(path), scope=scope_of(data))


def keep_lost(session: HomeSession, lost: Sequence[tuple[Touched, bytes]]) -> None:
    """Note texts that lost against those of the files they come with (`Touched.new`) in the history as what stood there
    just before, as one change; `restore` and `undo` bring them. A text the history holds already is left out, so that
    doing it twice is doing it once."""
    history, files = session.engine.home.history, list[Touched]()
    with session.engine.writing():
        for each, data in lost:
            each.old = sha256(data)
            if not os.path.exists(history.object_path(each.old)):
                history.keep_bytes(data)
                files.append(each)
        if files:
            about = (files[0].project, files[0].path)
            moment = stamp(session.engine.clock())
            history.append(Change(history.last + 1, moment, VERB, *about, session.agent, session.face, files))


def digest(scope: str, content: str) -> bytes:
    """A hash of scope and content."""
    import hashlib

    return hashlib.blake2b(f"{scope}\0{content}".encode("utf-8", "surrogatepass"), digest_size=16).digest()


@dataclass(slots=True)
class IngestedTexts:
    """The texts and files that memories the caller sees were made from. `hashes` counts the memories that have a text,
    by its SHA-256: the one they hold and the one they were made from. `refs` are memories by source reference.
    `gone_hashes` and `gone_refs` are those of memories that were removed, as far as the history holds them."""

    hashes: Counter[str] = field(default_factory=Counter)
    refs: dict[str, NoteInfo] = field(default_factory=dict)
    texts: dict[str, frozenset[str]] = field(default_factory=dict)
    gone_hashes: set[str] = field(default_factory=set)
    gone_refs: set[str] = field(default_factory=set)
    change: int = 0

    def hold(self, identity: str, texts: frozenset[str]) -> frozenset[str]:
        """Memory `identity` has these texts from now on. Returns the hashes nothing has any more."""
        before = self.texts.get(identity, frozenset())
        self.hashes.update(texts)
        self.hashes.subtract(before)
        self.texts[identity] = texts
        return frozenset(each for each in before if not self.hashes[each])


class Ingested:
    """The verbs of ingestion for the caller of `memory`."""

    def __init__(self, memory: HistoryVerbs):
        self.memory = memory
        self.engine = memory.engine

    @verb
    def known(self) -> IngestedTexts:
        """What is known now: one pass over the memories, one over the history."""
        upkeep = Upkeep(self.memory)
        known, merged = IngestedTexts(), set[str]()
        with self.engine.writing():
            for info in (*upkeep.every(), *upkeep.every(Query(archived=True))):
                known.hold(info.id, frozenset(_texts_of(content_of(self.memory, info), info.header)))
                if isinstance(ref := info.header.get(SOURCE_REF), str):
                    known.refs.setdefault(ref, info)
                merged.update(id_list(info.header.get("merged")))
            known.change = self.engine.home.history.last
        for header, content in self._removed():
            identity = str(header.get("id"))
            if identity in known.texts:
                continue  # moved since, or brought back
            known.gone_hashes.update(_texts_of(content, header))
            if identity not in merged and isinstance(ref := header.get(SOURCE_REF), str):
                known.gone_refs.add(ref)
        return known

    def _removed(self) -> Iterator[tuple[dict[str, Any], str]]:
        """Header and content of every text the history holds of a memory that was removed."""
        history, done = self.engine.home.history, set[str]()
        for change in history.changes():
            here = [each for each in change.files if each.project in MEMORY_PROJECTS]
            put = {each.path.rpartition("/")[2] for each in here if each.do == "put"}
            for each in here:
                is_moved = each.path.rpartition("/")[2] in put
                if each.do != "remove" or is_moved or not (each.kept and each.old and self.memory.sees(each.scope)):
                    continue
                if each.old not in done:
                    done.add(each.old)
                    with suppress(NotFound, StorageError, ValueError):  # damaged, or no memory
                        text = history.text(each.old, each.path).decode()
                        yaml_text, body_at = frontmatter.split(text)
                        yield frontmatter.parse(yaml_text or ""), text[body_at:].removesuffix("\n")

    @verb
    def store(self, batches: Sequence[Sequence[Record]], known: IngestedTexts, advance: Callable[[int], None]) -> int:
        """Store new memories, each batch as one change, and tell `advance` how many a batch had. What another run took
        in since `known` was made is left out. Returns how many were stored. Raises InvalidInput, StorageError; the
        batches stored before stay."""
        stored, history = 0, self.engine.home.history
        for batch in batches:  # in one verb, that the disk be looked over once
            with self.engine.writing():
                records = batch
                later = takewhile(lambda change: change.number > known.change, history.changes())
                if any(change.verb == INGEST for change in later):
                    now = self.known()
                    records = [
                        each for each in batch
                        if each.further[SOURCE_REF] not in now.refs and not now.hashes[each.further[SOURCE_HASH]]
                    ]  # fmt: skip
                if records:
                    Upkeep(self.memory).put(records, INGEST)
                known.change = history.last
            stored += len(records)
            advance(len(batch))
        return stored


def _texts_of(content: str, header: dict[str, Any]) -> Iterator[str]:
    yield sha256(content.encode("utf-8", "surrogatepass"))
    if isinstance(taken := header.get(SOURCE_HASH), str):
        yield taken
