"""What export, import and moving in ask of a home: memories in order and by id, files as they are, and a place
in the history for what lost (contract 001, 12; DESIGN.md, 4)."""

from __future__ import annotations

import hashlib
import os
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from commonplace.clock import stamp
from commonplace.engine.memory import verb
from commonplace.engine.storing import scope_of
from commonplace.engine.upkeep import PROJECT, Upkeep
from commonplace.errors import Conflict, NotFound
from commonplace.index import lookup, places
from commonplace.index.rows import NoteInfo
from commonplace.note.compose import Record
from commonplace.store.base import File
from commonplace.store.history import Change, Touched

if TYPE_CHECKING:
    from commonplace.engine import Memory

VERB = "import"
"""What the journal calls a change made here."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The text `data` that lost against the note at `path`, whose SHA-256 is `etag`."""

    project: str
    path: str
    scope: str
    etag: str
    data: bytes


class Exchange:
    """Verbs for the caller of `memory`."""

    def __init__(self, memory: Memory):
        self.memory = memory
        self._core = memory._core
        self._index: object = None

    # --- memories -------------------------------------------------------------------------------

    @verb
    def rows(self, category: str | None = None, scope: str | None = None) -> array[int]:
        """The memories the caller sees, of one category and scope if given, as handles for `page`: oldest first,
        then by id. Eight bytes each."""
        self._core.fresh()
        found = places.in_time(self._core.db, PROJECT, self.memory.agent, category, scope)
        self._index = self._core._inode
        return found

    @verb
    def page(self, rows: Sequence[int]) -> list[tuple[NoteInfo, str]]:
        """These memories with their contents as indexed; those gone since `rows` are left out.

        Raises Conflict when the index was made anew meanwhile, as its handles are others then.
        """
        db = self._core.db
        if self._index != self._core._inode:
            raise Conflict("the index", "made anew", "as it was")
        infos = [info for info in lookup.in_order(db, rows) if info.project == PROJECT]
        return self._with_contents([info for info in infos if self.memory.sees(info.scope)])

    @verb
    def known(self, ids: Iterable[str]) -> dict[str, tuple[NoteInfo, str]]:
        """The memories with exactly these ids, with their contents. Those the caller may not see are there too,
        or two memories would have one id."""
        self._core.fresh()
        infos = places.with_ids(self._core.db, ids, (PROJECT,))
        infos.sort(key=lambda info: self.memory.sees(info.scope))  # of two with one id the last one counts
        return {info.id: (info, content) for info, content in self._with_contents(infos)}

    @verb
    def survivors(self, ids: Iterable[str]) -> dict[str, str]:
        """The contents of the memories these ids were merged into."""
        found = places.survivors(self._core.db, ids)
        contents = {info.row: content for info, content in self._with_contents([*found.values()])}
        return {identity: contents[info.row] for identity, info in found.items() if self.memory.sees(info.scope)}

    @verb
    def contents(self) -> set[bytes]:
        """The `digest` of every memory there is; some hundred bytes each."""
        self._core.fresh()
        return {digest(scope, _content(body)) for scope, body in places.scoped_bodies(self._core.db, PROJECT)}

    def _with_contents(self, infos: list[NoteInfo]) -> list[tuple[NoteInfo, str]]:
        self._core.counted(infos)
        bodies = places.bodies(self._core.db, [info.row for info in infos])
        return [(info, _content(bodies[info.row])) for info in infos if info.row in bodies]

    @verb
    def put(self, records: Sequence[Record]) -> None:
        """Store records as `Upkeep.put` does; their access counts are the whole ones from then on."""
        Upkeep(self.memory).put(records, VERB)
        counts = self._core.access.counts()
        for record in records:
            if counts.get(record.id):
                self._core.access.restart(record.id)

    @verb
    def keep(self, older: Sequence[tuple[NoteInfo, bytes]]) -> None:
        """Put texts that lost against the memory there into the history, as if each had stood there just before."""
        lost = [Lost(info.project, info.path, info.scope, info.etag, data) for info, data in older]
        keep_lost(self.memory, lost)

    # --- files ----------------------------------------------------------------------------------

    @verb
    def file(self, project: str, path: str) -> File | None:
        """What is at `path` of a project, None for nothing. Raises OutsideError, StorageError."""
        try:
            return self._core.store(project).read(path)
        except NotFound:
            return None

    @verb
    def holder(self, project: str, *, permalink: str | None = None, identity: str | None = None) -> NoteInfo | None:
        """The note of a project that has this permalink, or this id."""
        self._core.fresh()
        db = self._core.db
        found = places.by_permalink(db, project, permalink) if permalink else None
        if found is None and identity:
            found = next(iter(places.with_ids(db, [identity], (project,))), None)
        return found

    @verb
    def is_taken(self, project: str, path: str) -> bool:
        """Whether something is at `path`, or a note there whose path differs in case only."""
        store = self._core.store(project)
        self._core.fresh()
        return store.place(path).kind != "missing" or places.in_other_case(self._core.db, project, path) is not None

    @verb
    def add_files(self, project: str, files: Sequence[tuple[str, bytes]]) -> None:
        """Write new files, byte for byte, as one change. Raises Exists when one is there meanwhile; OutsideError."""
        core = self._core
        with core.writing():
            steps = [core.step("put", project, path, data=data, scope=scope_of(data)) for path, data in files]
            core.commit(VERB, steps, (project, steps[0].path), self.memory.agent, self.memory.face)


def keep_lost(memory: Memory, lost: Sequence[Lost]) -> None:
    """Note texts in the history as what stood there just before, as one change; `restore` and `undo` bring them.

    A text the history holds already is left out, so that doing it twice is doing it once.
    """
    core, files = memory._core, []
    with core.writing():
        for each in lost:
            mark = hashlib.sha256(each.data).hexdigest()
            if not os.path.exists(core.home.history.object_path(mark)):
                core.home.history.keep_bytes(each.data)
                files.append(Touched("put", each.project, each.path, "", mark, each.etag, None, each.scope))
        if files:
            number, moment = core.home.history.last + 1, stamp(memory.clock())
            about = (files[0].project, files[0].path)
            change = Change(number, moment, VERB, *about, memory.agent, memory.face, files)
            core.home.history.append(change)


def digest(scope: str, content: str) -> bytes:
    """What tells one content in one scope from all others."""
    return hashlib.blake2b(f"{scope}\0{content}".encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _content(body: str) -> str:
    return body[:-1] if body.endswith("\n") else body
