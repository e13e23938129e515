"""Key-value entries: what face `kv` needs of a place that keeps them, and the notes of project `kv` (contract 004).

One call is one critical section. Cost does not depend on the number of entries, but for `search`,
`namespaces`, `clear` and `stats`, which look at the index of all of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from commonplace.engine.history import EXPIRE
from commonplace.engine.session import verb
from commonplace.engine.transaction import HomeSession, Transaction
from commonplace.errors import CommonplaceError, Exists, Locked, NotFound, StorageError
from commonplace.note import entry as notes
from commonplace.note.entry import PROJECT
from commonplace.note.markdown import default_id
from commonplace.note.model import GLOBAL, Note
from commonplace.store.base import File

P = ParamSpec("P")
T = TypeVar("T")

PURGED_AT_ONCE = 100
"""Expired entries one changing call removes at most."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Entry:
    """A value under its key; times are aware UTC. `id` is its place's own name for it."""

    namespace: str
    key: str
    value: str
    created: datetime
    accessed: datetime
    expires: datetime | None = None
    access_count: int = 0
    id: str = ""


@dataclass(slots=True)
class Tally:
    """How many entries a namespace has, those past their time to live apart."""

    namespace: str
    active: int = 0
    expired: int = 0


@dataclass(slots=True)
class Totals:
    """All entries that are not expired: number, bytes of their files, namespaces, first and last written; and where."""

    place: str
    entries: int = 0
    size: int = 0
    namespaces: int = 0
    oldest: datetime | None = None
    newest: datetime | None = None


class EntryError(CommonplaceError):
    """What contract 004, 6 has a sentence for."""

    code = "invalid"


class NoEntry(EntryError):
    code = "not_found"

    def __init__(self, key: str, namespace: str):
        super().__init__(f"Key '{key}' not found in namespace '{namespace}'")


class EntryExpired(EntryError):
    code = "not_found"

    def __init__(self, key: str):
        super().__init__(f"Key '{key}' has expired")


class Unreadable(EntryError):
    """The place of a namespace cannot be read; nothing was changed."""

    code = "storage"

    def __init__(self, namespace: str):
        super().__init__(f"Namespace '{namespace}' cannot be read; run memory doctor")


class Entries(Protocol):
    """A place that keeps entries, for one caller. Names are exact; each change is durable on return."""

    def put(self, namespace: str, key: str, value: str, ttl: int = 0) -> Entry:
        """Keep a new entry in place of what has the key; `ttl` in seconds, 0 = for ever. Raises Unreadable."""
        ...

    def get(self, namespace: str, key: str) -> Entry:
        """The entry, not counted. Raises NoEntry; EntryExpired once, which removes it; Unreadable."""
        ...

    def count(self, entry: Entry) -> Entry:
        """Count one recall of `entry`; the entry with that counted."""
        ...

    def remove(self, namespace: str, key: str) -> None:
        """Remove the entry, expired or not. Raises NoEntry, Unreadable."""
        ...

    def search(self, text: str, namespace: str | None, limit: int, offset: int) -> tuple[list[Entry], int]:
        """A page of the entries with `text` in key or value, without case, and how many there are.

        By recalls, newest first, then by namespace and key. None = in all namespaces.
        """
        ...

    def namespaces(self) -> list[Tally]:
        """Every namespace that has an entry, by name."""
        ...

    def clear(self, namespace: str) -> int:
        """Remove all entries of a namespace, expired ones too; how many. Raises Unreadable."""
        ...

    def stats(self) -> Totals:
        """What there is in all."""
        ...


@dataclass(frozen=True, slots=True)
class _Found:
    """An entry's file as read; `note` has its frontmatter."""

    path: str
    file: File
    note: Note
    namespace: str
    value: str


def purging(method: Callable[Concatenate[NoteEntries, P], T]) -> Callable[Concatenate[NoteEntries, P], T]:
    """Besides, and as a change of its own, some expired entries are removed: a secret ends without a daemon too."""

    @wraps(method)
    def call(self: NoteEntries, *args: P.args, **kwargs: P.kwargs) -> T:
        result = method(self, *args, **kwargs)
        try:
            self.purge()
        except CommonplaceError:
            pass  # the call itself is done; the next one tries again
        return result

    return call


class NoteEntries:
    """Entries as notes of the project `kv`."""

    def __init__(self, memory: HomeSession):
        self._memory = memory
        self.engine = memory.engine

    @purging
    @verb
    def put(self, namespace: str, key: str, value: str, ttl: int = 0) -> Entry:
        """One file written; an entry moved by hand is replaced where it lies."""
        now = self.engine.clock()
        expires = whole_milliseconds(now) + timedelta(seconds=ttl) if ttl else None
        with self._memory.change("write", fresh=False) as change:
            old = self._replaceable(namespace, key)
            path = old.path if old else self._free_path(namespace, key)
            before = old.file.data.decode("utf-8", "replace") if old else ""
            text = notes.compose_entry(value, namespace=namespace, key=key, created=now, expires=expires, before=before)
            self._put(change, path, text.encode(), old)
            change.verb = "overwrite" if old else "write"
        written = notes.read_entry(text, path, now)[0]
        if self.engine.access.counts().get(written.id):
            self.engine.access.restart(written.id)
        created = written.created
        return Entry(namespace, key, value, created, created, expires, 0, written.id)

    def _replaceable(self, namespace: str, key: str) -> _Found | None:
        """The entry's file, None for a new one. Raises Locked, Unreadable."""
        old = next(self._claims(namespace, key), None)
        if old is not None and old.note.locked:
            raise Locked(f"{PROJECT}/{old.path}")
        return old

    def _put(self, change: Transaction, path: str, data: bytes, old: _Found | None) -> None:
        file, scope = (old.file, old.note.scope) if old else (None, GLOBAL)
        change.put(PROJECT, path, data, old=file, scope=scope)

    @verb
    def get(self, namespace: str, key: str) -> Entry:
        """The one file is read; the index only tells of entries that lie elsewhere."""
        found = next(self._claims(namespace, key), None)
        if found is None:
            self._check(namespace)
            raise NoEntry(key, namespace)
        if self._is_over(found):
            try:
                self._remove(EXPIRE, [found], found.path)
            except StorageError:
                pass  # it is over whether or not the disk lets go of the file
            raise EntryExpired(key)
        note = found.note
        return Entry(namespace, key, found.value, note.created, note.created, note.expires, note.access_count, note.id)

    @verb
    def count(self, entry: Entry) -> Entry:
        """A line in the access log; the file stays as it is."""
        self.engine.access.note(entry.id)
        pending = self.engine.access.counts().get(entry.id, 0)
        return replace(entry, accessed=self.engine.clock(), access_count=entry.access_count + pending)

    @purging
    @verb
    def remove(self, namespace: str, key: str) -> None:
        """Every file that holds the entry goes, should somebody have copied it."""
        with self.engine.writing():
            found = list(self._claims(namespace, key))
            if not found:
                self._check(namespace)
                raise NoEntry(key, namespace)
            self._remove("delete", found, found[0].path)

    @verb
    def search(self, text: str, namespace: str | None, limit: int, offset: int) -> tuple[list[Entry], int]:
        """By the index, which shows what is on disk now."""
        core, wanted = self.engine, text.lower()
        if namespace is not None:
            self._check(namespace)
        core.fresh()
        counts, matches = core.access.counts(), []
        for each in core.index.entries.kept():
            if wanted not in each.key.lower() and wanted not in notes.value_of(each.body).lower():
                continue
            if self._memory.sees(each.scope) and namespace in (None, each.namespace):
                recalls = each.access_count + counts.get(each.id, 0)
                matches.append((-recalls, -(each.created // 1_000_000), each.namespace, each.key, each.row))
        matches.sort()
        values = core.index.entries.values([match[-1] for match in matches[offset : offset + limit]])
        page = []
        for recalls, age, space, key, row in matches[offset : offset + limit]:
            created = _EPOCH - timedelta(seconds=age)
            page.append(Entry(space, key, notes.value_of(values[row]), created, created, None, -recalls))
        return page, len(matches)

    @verb
    def namespaces(self) -> list[Tally]:
        """By the index; a namespace is there as long as an entry is."""
        core, found = self.engine, dict[str, Tally]()
        core.fresh()
        for each in core.index.entries.kept(bodies=False):
            if self._memory.sees(each.scope):
                found.setdefault(each.namespace, Tally(each.namespace)).active += 1
        for over in core.index.entries.expired():
            if self._memory.sees(over.scope):
                found.setdefault(over.namespace, Tally(over.namespace)).expired += 1
        return [found[name] for name in sorted(found)]

    @purging
    @verb
    def clear(self, namespace: str) -> int:
        """One change, which an undo takes back but for entries with a time to live."""
        core = self.engine
        with core.writing():
            self._check(namespace)
            core.fresh()
            kept, expired = core.index.entries.kept(bodies=False), core.index.entries.expired()
            paths = [
                each.path
                for some in (kept, expired)
                for each in some
                if each.namespace == namespace and self._memory.sees(each.scope)
            ]
            found = [one for path in sorted(paths) if (one := self._read(path, namespace))]
            if found:
                self._remove("delete", found, f"{found[0].path.rpartition('/')[0]}/")
            return len(found)

    @verb
    def stats(self) -> Totals:
        """By the index."""
        core = self.engine
        core.fresh()
        found = [each for each in core.index.entries.kept(bodies=False) if self._memory.sees(each.scope)]
        totals = Totals(core.store(PROJECT).root, len(found), sum(each.size for each in found))
        totals.namespaces = len({each.namespace for each in found})
        if found:
            totals.oldest = _EPOCH + timedelta(microseconds=min(each.created for each in found))
            totals.newest = _EPOCH + timedelta(microseconds=max(each.created for each in found))
        return totals

    @verb
    def purge(self, most: int = PURGED_AT_ONCE) -> int:
        """Remove up to `most` entries past their time to live, whoever may see them. Returns how many."""
        core = self.engine
        core.freshness.retire_expired()
        if not core.index.entries.expired(1):
            return 0
        with core.writing():
            found = []
            for over in core.index.entries.expired(most):
                try:
                    one = self._read(over.path, over.namespace)
                except Unreadable:
                    continue
                if one is not None and self._is_over(one):
                    found.append(one)
            if found:
                self._remove(EXPIRE, found, found[0].path if len(found) == 1 else "")
            return len(found)

    # --- moving in ------------------------------------------------------------------------------

    @verb
    def held(self, namespace: str, key: str) -> tuple[Entry, bool] | None:
        """The entry and whether it is locked; None for none and for one whose time is over. Changes nothing."""
        found = next(self._claims(namespace, key), None)
        if found is None or self._is_over(found):
            return None
        note = found.note
        entry = Entry(namespace, key, found.value, note.created, note.created, note.expires, note.access_count, note.id)
        return entry, note.locked

    @verb
    def take(self, entries: Sequence[tuple[Entry, Mapping[str, Any]]], verb: str) -> None:
        """Keep entries with all they bring along, further fields too, as one change; each takes the place of the
        one with its key. Raises Locked, Unreadable."""
        with self._memory.change(verb, fresh=False) as change:
            for entry, further in entries:
                old = self._replaceable(entry.namespace, entry.key)
                path = old.path if old else self._free_path(entry.namespace, entry.key)
                before = old.file.data.decode("utf-8", "replace") if old else ""
                self._put(change, path, _brought(entry, further, before), old)
        counts = self.engine.access.counts()
        for step in change.steps:
            identity = default_id(PROJECT, step.path)
            if counts.get(identity):
                self.engine.access.restart(identity)

    @verb
    def outdated(self, entries: Sequence[tuple[Entry, Mapping[str, Any]]]) -> None:
        """Note entries that are older than those with their keys in the history, but for those with a time to live."""
        from commonplace.engine.exchange import Lost, keep_lost

        lost = []
        for entry, further in entries:
            found = next(self._claims(entry.namespace, entry.key), None)
            if found is not None and entry.expires is None and found.note.expires is None:
                data = _brought(entry, further)
                lost.append(Lost(PROJECT, found.path, found.note.scope, found.file.etag, data))
        keep_lost(self._memory, lost)

    # --- files ----------------------------------------------------------------------------------

    def _claims(self, namespace: str, key: str) -> Iterator[_Found]:
        """The files that hold the entry and that the caller sees: at its own place first, then by the index."""
        for path in self._candidates(namespace, key):
            found = self._read(path, namespace)
            named = found is not None and (found.namespace, found.note.title) == (namespace, key)
            if found is not None and named and self._memory.sees(found.note.scope):
                yield found

    def _candidates(self, namespace: str, key: str) -> Iterator[str]:
        usual = next(notes.places(namespace, key))
        yield usual
        self.engine.fresh()
        yield from (path for path in self.engine.index.entries.paths_with(key) if path != usual)

    def _read(self, path: str, namespace: str) -> _Found | None:
        """The entry in the file at `path`, None when there is none. Raises Unreadable."""
        try:
            file = self.engine.store(PROJECT).read(path)
        except NotFound:
            return None
        except CommonplaceError:
            raise Unreadable(namespace) from None
        changed = _EPOCH + timedelta(microseconds=file.stamp.mtime_ns // 1000)
        born = datetime.fromtimestamp(file.born, UTC) if file.born else None
        note, value = notes.read_entry(file.data.decode("utf-8", "replace"), path, changed, born)
        return _Found(path, file, note, notes.namespace_of(note.header, path), value)

    def _is_over(self, found: _Found) -> bool:
        return found.note.expires is not None and self.engine.clock() > found.note.expires

    def _check(self, namespace: str) -> None:
        """Raise Unreadable when what lies where the namespace's folder belongs is none, or none we may open."""
        store, usual = self.engine.store(PROJECT), next(notes.places(namespace, "x"))
        try:
            kind = store.place(usual.rpartition("/")[0]).kind
            store.place(usual)
        except CommonplaceError:
            raise Unreadable(namespace) from None
        if kind not in ("folder", "missing"):
            raise Unreadable(namespace)

    def _free_path(self, namespace: str, key: str) -> str:
        """Where a new entry goes; another entry whose name comes to the same path keeps it."""
        self._check(namespace)
        paths = list(notes.places(namespace, key))
        for path in paths:
            if self.engine.store(PROJECT).place(path).kind == "missing":
                return path
        raise Exists(paths[-1], f"{PROJECT}/{paths[-1]}")

    # --- changes --------------------------------------------------------------------------------

    def _remove(self, verb: str, found: Sequence[_Found], about: str) -> None:
        """Remove the files, and each folder that is empty then, as one change."""
        for one in found:
            if one.note.locked and verb != EXPIRE:
                raise Locked(f"{PROJECT}/{one.path}")
        names: dict[str, set[str]] = {}
        with self._memory.change(verb, (PROJECT, about), fresh=False) as change:
            for one in found:
                change.remove(PROJECT, one.path, one.file, scope=one.note.scope)
                folder, _, name = one.path.rpartition("/")
                names.setdefault(folder, set()).add(name)
            for folder, gone in names.items():
                if self._is_left_empty(folder, gone):
                    change.add("rmdir", PROJECT, folder)

    def _is_left_empty(self, folder: str, without: set[str]) -> bool:
        """Whether a namespace's folder holds nothing but the files named."""
        if not folder:
            return False
        with os.scandir(os.path.join(self.engine.store(PROJECT).root, folder)) as entries:
            return all(each.name in without for each in entries)


def _brought(entry: Entry, further: Mapping[str, Any], before: str = "") -> bytes:
    return notes.compose_entry(
        entry.value, namespace=entry.namespace, key=entry.key, created=entry.created, expires=entry.expires,
        before=before, accessed=entry.accessed, access_count=entry.access_count, further=further,
    ).encode()  # fmt: skip


def whole_milliseconds(moment: datetime) -> datetime:
    """`moment` cut to what `expires_at` shows."""
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
