"""Memories as JSON Lines: out, oldest first, and in again with nothing lost (contract 001, 12).

Neither holds more than a few hundred memories at a time. An import looks at the whole input before it writes.
"""

from __future__ import annotations

import hashlib
import io
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, BinaryIO
from uuid import uuid4

from commonplace.engine.exchange import Exchange, digest
from commonplace.errors import InvalidInput
from commonplace.note.compose import Record
from commonplace.note.links import first_line
from commonplace.text.gate import redact
from commonplace.transfer.records import BadRecord, ParsedRecord, as_note, as_record, compared, line, read, row

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.index.rows import NoteInfo

Progress = Callable[[int, int], None]
Say = Callable[[str], None]

PAGE = 200
"""Memories read, or written as one change, at a time."""
_PAGE_BYTES = 4 << 20
_BOM = b"\xef\xbb\xbf"
NEW, UPDATE, OLDER, UNCHANGED, SKIP = "import", "update", "older", "unchanged", "skip"


def exported(
    memory: Memory, category: str | None = None, scope: str | None = None, *,
    redacts: bool = False, secret: Callable[[], None] | None = None,
) -> Iterator[str]:  # fmt: skip
    """The lines, without newlines, of the memories the caller sees: oldest `created_at` first, then by id.

    `secret` is called for each that holds what looks like a secret; with `redacts` it is redacted.
    """
    exchange = Exchange(memory)
    rows = exchange.rows(category, scope)
    for start in range(0, len(rows), PAGE):
        for info, content in exchange.page(rows[start : start + PAGE]):
            if found := memory.secrets_in(content):
                if secret is not None:
                    secret()
                content = redact(content, found) if redacts else content
            yield line(memory, info, content)


@dataclass(slots=True)
class Tally:
    """What an import did, or would do: `imported` are new; `skipped` are bad, older than what is there, or without
    an id and with a content that is there."""

    imported: int = 0
    updated: int = 0
    unchanged: int = 0
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class _Action:
    """What becomes of one record; `info` is the memory that has its id."""

    verb: str
    number: int
    record: Record
    info: NoteInfo | None = None


@dataclass(slots=True)
class _Pass:
    """One way through the input. A trial run that `remembers` what it would have written counts exactly, also
    where an id stands twice; that is some 200 bytes a record."""

    remembers: bool = False
    warn: Say | None = None
    contents: set[bytes] | None = None
    written: dict[str, tuple[datetime, bytes]] = field(default_factory=dict)


class Import:
    """The import of `source`, a seekable file of JSON Lines, for the caller of `memory`.

    With `skip_bad` bad records are left out.
    """

    def __init__(self, memory: Memory, source: BinaryIO, *, skip_bad: bool = False):
        self._memory = memory
        self._exchange = Exchange(memory)
        self._source = source
        self._skip_bad = skip_bad
        self._now = memory.clock()
        self._size = source.seek(0, io.SEEK_END)

    def check(self) -> None:
        """Look at every record, and change nothing. Raises BadRecord for the first bad one."""
        for _ in self._batches(_Pass(), Tally()):
            pass

    def plan(self, say: Say, warn: Say) -> Tally:
        """What `run` would do: each action is told to `say`, each record left out to `warn`. Raises BadRecord."""
        tally = Tally()
        for actions in self._batches(_Pass(remembers=True, warn=warn), tally):
            for each in actions:
                if each.verb in (NEW, UPDATE):
                    say(f"would {each.verb} {each.record.id[:8] or 'new'} {first_line(each.record.content)[:60]}")
        return tally

    def run(self, tally: Tally, warn: Say, progress: Progress | None = None) -> None:
        """Carry it out, after `check`; `tally` counts what is done so far. A batch is one change.

        Raises BadRecord, StorageError and the like; what was written before stays, and may be imported again.
        """
        for actions in self._batches(_Pass(warn=warn), tally):
            older = [(each.info, each.record.text().encode()) for each in actions if each.verb == OLDER and each.info]
            if older:
                self._exchange.keep(older)
            records = [each.record for each in actions if each.verb in (NEW, UPDATE)]
            if records := [each if each.id else replace(each, id=str(uuid4())) for each in records]:
                self._exchange.put(records)
            if progress is not None:
                progress(self._source.tell(), self._size)

    def _batches(self, way: _Pass, tally: Tally) -> Iterator[list[_Action]]:
        """The actions for each batch of records, counted in `tally` once the caller is done with them."""
        batch: list[tuple[int, ParsedRecord]] = []
        ids: set[str] = set()
        size = 0
        for number, data in self._lines():
            try:
                given = read(data, now=self._now, ttl=self._memory.settings.short_term_ttl, sees=self._memory.sees)
            except InvalidInput as error:
                self._refuse(BadRecord(number, str(error)), tally, way)
                continue
            if len(batch) >= PAGE or size > _PAGE_BYTES or (given.has_id and given.record.id in ids):
                yield from self._planned(batch, way, tally)
                batch, ids, size = [], set(), 0
            batch.append((number, given))
            ids.add(given.record.id)
            size += len(data)
        yield from self._planned(batch, way, tally)

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        self._source.seek(0)
        number = 0
        while data := self._source.readline():
            data = data.removeprefix(_BOM) if number == 0 else data
            if data.strip():
                number += 1
                yield number, data.rstrip(b"\r\n")

    def _refuse(self, error: BadRecord, tally: Tally, way: _Pass) -> None:
        if not self._skip_bad:
            raise error
        tally.skipped += 1
        if way.warn is not None:
            way.warn(f"warning: {error}")

    def _planned(self, batch: list[tuple[int, ParsedRecord]], way: _Pass, tally: Tally) -> Iterator[list[_Action]]:
        ids = [given.record.id for _, given in batch if given.has_id]
        known = self._exchange.known(ids)
        gone = self._exchange.survivors(each for each in ids if each not in known)
        actions = []
        for number, given in batch:
            try:
                actions.append(self._action(number, given, known, gone, way))
            except BadRecord as error:
                self._refuse(error, tally, way)
        yield actions
        for each in actions:
            name = {NEW: "imported", UPDATE: "updated", UNCHANGED: "unchanged"}.get(each.verb, "skipped")
            setattr(tally, name, getattr(tally, name) + 1)

    def _action(
        self, number: int, given: ParsedRecord, known: dict[str, tuple[NoteInfo, str]], gone: dict[str, str], way: _Pass
    ) -> _Action:
        record = given.record
        if not given.has_id:
            return _Action(SKIP if self._is_there(record, way) else NEW, number, record)
        if record.id in known:
            return self._against(number, given, *known[record.id], way)
        if record.id in way.written:
            return self._twice(number, record, way)
        if record.id in gone and _lines_of(record.content) <= _lines_of(gone[record.id]):
            return _Action(SKIP, number, record)  # merged into another memory, which says all of it
        self._note(record, way)
        return _Action(NEW, number, record)

    def _against(self, number: int, given: ParsedRecord, info: NoteInfo, content: str, way: _Pass) -> _Action:
        """The record against the memory that has its id: the newer one wins."""
        memory = self._memory
        if not memory.sees(info.scope):
            raise BadRecord(number, f"the id {info.id} is taken")
        if info.id in way.written:
            return self._twice(number, given.record, way)
        before = compared(row(memory, info, content))
        if compared(given.values) == before:
            return _Action(UNCHANGED, number, given.record, info)
        there = as_record(info, content)
        record = given.over(there, self._now)
        note = as_note(record, self._now)
        if compared(row(memory, note, note.content)) == before:
            return _Action(UNCHANGED, number, record, info)
        if record.updated <= there.updated:
            return _Action(OLDER, number, record, info)
        if info.locked:
            raise BadRecord(number, f'{info.permalink} is locked and is not replaced. Remove its "locked: true" first.')
        self._note(record, way)
        return _Action(UPDATE, number, replace(record, access_count=max(record.access_count, info.access_count)), info)

    def _is_there(self, record: Record, way: _Pass) -> bool:
        """Whether the content is there in the scope; a content seen once is there from then on."""
        if way.contents is None:
            way.contents = self._exchange.contents()
        before = len(way.contents)
        way.contents.add(digest(record.scope, record.content))
        return len(way.contents) == before

    def _note(self, record: Record, way: _Pass) -> None:
        if way.contents is not None:
            way.contents.add(digest(record.scope, record.content))
        if way.remembers:
            way.written[record.id] = _state(record)

    def _twice(self, number: int, record: Record, way: _Pass) -> _Action:
        """On a trial run: the record against an earlier one of the input with its id."""
        moment, text = way.written[record.id]
        now, own = _state(record)
        if own == text or now <= moment:
            return _Action(UNCHANGED if own == text else OLDER, number, record)
        self._note(record, way)
        return _Action(UPDATE, number, record)


def _state(record: Record) -> tuple[datetime, bytes]:
    """When the record is of, and a digest of all it says but its access count."""
    text = replace(record, access_count=0).text()
    return record.updated, hashlib.blake2b(text.encode(), digest_size=16).digest()


def _lines_of(content: str) -> set[str]:
    """The lines as the rule for duplicates compares them (contract 001, 5)."""
    lines = unicodedata.normalize("NFKC", content).lower().splitlines()
    return {" ".join(each.split()) for each in lines if each.strip()}
