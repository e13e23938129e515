"""Key-value entries: what the interface `kv` requires of a store of entries, and one such store.

An entry is a value under a key in a namespace. `Entries` has the methods that the interface `kv`
calls. `NoteEntries` stores entries as notes of the project `kv` (contract 004). During a call,
nobody else changes the home. `search`, `namespaces`, `clear` and `stats` look at all entries in the
index. The cost of the other methods does not depend on the number of entries.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from memoranda.clock import EPOCH, parse_stamp
from memoranda.engine.engine import Engine, verb
from memoranda.engine.transaction import Transaction, WritingSession
from memoranda.engine.undo import EXPIRE
from memoranda.errors import Exists, Locked, MemorandaError, NotFound, StorageError
from memoranda.index.note_queries import Expired, Kept
from memoranda.ledger.change import Touched
from memoranda.note import entry as notes
from memoranda.note.entry import PROJECT
from memoranda.note.markdown import default_id
from memoranda.note.model import GLOBAL
from memoranda.sources.base import File
from memoranda.sources.step import StepKind

P = ParamSpec("P")
T = TypeVar("T")
E = TypeVar("E", bound="Entries")

PURGED_AT_ONCE = 100
"""How many expired entries a call that changes something removes at most."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A value under its key. All times have a time zone, which is UTC.

    expires: when the entry expires; None for never.
    id: the name that the store of the entry uses for it, such as the id of a note.
    """

    namespace: str
    key: str
    value: str
    created: datetime
    accessed: datetime
    expires: datetime | None = None
    access_count: int = 0
    id: str = ""


@dataclass(slots=True)
class NamespaceCounts:
    """How many entries a namespace has.

    active: the number of entries that have not expired.
    expired: the number of entries that have expired and are not removed yet.
    """

    namespace: str
    active: int = 0
    expired: int = 0


@dataclass(slots=True)
class Totals:
    """Figures about all entries that have not expired.

    place: the folder or file that has the entries.
    size: the bytes of the files.
    namespaces: the number of namespaces, including namespaces with only expired entries.
    oldest, newest: when the oldest and the newest entry were written; None if there are no entries.
    """

    place: str
    entries: int = 0
    size: int = 0
    namespaces: int = 0
    oldest: datetime | None = None
    newest: datetime | None = None


class EntryError(MemorandaError):
    """An error whose message contract 004, 6 prescribes."""

    code = "invalid"


class NoEntry(EntryError):
    """Raised when no entry has the key."""

    code = "not_found"

    def __init__(self, key: str, namespace: str):
        super().__init__(f"Key '{key}' not found in namespace '{namespace}'")


class EntryExpired(EntryError):
    """Raised when the time to live of the entry with the key is over."""

    code = "not_found"

    def __init__(self, key: str):
        super().__init__(f"Key '{key}' has expired")


class Unreadable(EntryError):
    """Raised when the file or folder of a namespace cannot be read. Nothing was changed."""

    code = "storage"

    def __init__(self, namespace: str):
        super().__init__(f"Namespace '{namespace}' cannot be read; run memory doctor")


def purging(method: Callable[Concatenate[E, P], T]) -> Callable[Concatenate[E, P], T]:
    """Decorate a method of `Entries` so that it also removes some expired entries, as a separate
    change.

    So expired entries disappear even if no daemon runs.
    """

    @wraps(method)
    def call(self: E, *args: P.args, **kwargs: P.kwargs) -> T:
        result = method(self, *args, **kwargs)
        with suppress(MemorandaError):
            # The call itself was successful. If the removal fails, the next call tries it again.
            self.purge()
        return result

    return call


class Entries(Protocol):
    """A store of entries, as one caller sees it.

    Namespaces and keys must match exactly, in case, too. When a method returns, its change is on
    disk.
    """

    engine: Engine

    def put(self, namespace: str, key: str, value: str, ttl: int = 0) -> Entry:
        """Store a new entry, which replaces the entry with the same key. Raises Unreadable.

        ttl: the time to live in seconds; 0 means for ever.
        """

    @verb
    def get(self, namespace: str, key: str) -> Entry:
        """Return the entry, without counting a read. Raises NoEntry, EntryExpired, Unreadable.

        An expired entry is removed. So EntryExpired is raised only the first time, and NoEntry
        after that.
        """
        entry = self._find(namespace, key)
        if self._is_over(entry):
            # The entry has expired even if the disk refuses to remove it.
            with suppress(StorageError, Unreadable):
                self._expire(entry)
            raise EntryExpired(key)
        return entry

    def _find(self, namespace: str, key: str) -> Entry: ...
    def _expire(self, entry: Entry) -> None: ...

    def _is_over(self, entry: Entry) -> bool:
        return entry.expires is not None and self.engine.clock() > entry.expires

    @verb
    def count(self, entry: Entry) -> Entry:
        """Count one read of `entry`, and return the entry with the new count."""
        reads = self.engine.reads
        reads.count_read(entry.id)
        recalls = entry.access_count + reads.counts([entry.id])[entry.id]
        return replace(entry, accessed=self.engine.clock(), access_count=recalls)

    def remove(self, namespace: str, key: str) -> None:
        """Remove the entry, expired or not, and all copies of its file.

        Raises NoEntry, Unreadable.
        """

    def search(
        self, text: str, namespace: str | None, limit: int, offset: int
    ) -> tuple[list[Entry], int]:
        """Return a page of the entries whose key or value contains `text`, and the number of all
        such entries.

        Case does not matter. The entries that were read most come first, then the newest. Equal
        ones are in the order of namespace and key.

        namespace: None means all namespaces that can be read.
        limit, offset: how many entries to return, after skipping how many.
        """

    @verb
    def namespaces(self) -> list[NamespaceCounts]:
        """Return every namespace that has an entry, in the order of the names."""
        active, expired = self._counted()
        return [
            NamespaceCounts(name, active[name], expired[name])
            for name in sorted({*active, *expired})
        ]

    def _counted(self) -> tuple[Counter[str], Counter[str]]:
        """Return two counts by namespace: how many entries have not expired, and how many have."""

    @property
    def unreadable(self) -> list[str]:
        """The namespaces that cannot be read. Calls about all namespaces leave them out."""
        return []

    def clear(self, namespace: str) -> int:
        """Remove all entries of a namespace, including expired entries, and return their number.

        Raises Unreadable.
        """

    def stats(self) -> Totals:
        """Return figures about all entries.

        A namespace counts if it has an entry, even an expired one.
        """

    def purge(self) -> Any:
        """Remove some entries whose time to live is over."""


@dataclass(frozen=True, slots=True)
class _EntryFile:
    """A file of the project `kv`, and the entry in this file.

    path: the path in the project.
    scope: who may see the entry.
    locked: whether the owner forbids changes of the entry.
    """

    path: str
    file: File
    entry: Entry
    scope: str
    locked: bool


class NoteEntries(Entries):
    """Stores each entry as a note of the project `kv`, in a separate file.

    Lists and searches use the index, which also knows entries whose files were moved by hand.
    """

    def __init__(self, session: WritingSession):
        self._session = session
        self.engine = session.engine

    @purging
    @verb
    def put(self, namespace: str, key: str, value: str, ttl: int = 0) -> Entry:
        now = self.engine.clock()
        entry = Entry(namespace, key, value, now, now, expiry(now, ttl))
        with self._session.change("write", fresh=False) as change:
            path, is_new, data = self._put(change, entry, {})
            if is_new:
                change.verb = "write"
            else:
                change.verb = "overwrite"
        written = notes.read_entry(data.decode(), path, now)[0]
        self.engine.reads.restart(written.id)
        return replace(entry, created=written.created, accessed=written.created, id=written.id)

    def _put(
        self, change: Transaction, entry: Entry, other_keys: Mapping[str, Any]
    ) -> tuple[str, bool, bytes]:
        """Add the step that writes `entry`. Raises Locked, Unreadable, Exists.

        If the file of the entry was moved by hand, it is written at its new place.

        other_keys: further header keys.

        Returns the path, whether the entry is new, and the bytes of the file.
        """
        old = next(self._claims(entry.namespace, entry.key), None)
        if old is not None and old.locked:
            raise Locked(f"{PROJECT}/{old.path}")
        if old is not None:
            path = old.path
        else:
            # `places` yields several paths for an entry. The first free one is used, because the
            # file of another entry may be at the usual path.
            self._check(entry.namespace)
            paths = list(notes.places(entry.namespace, entry.key))
            source = self.engine.source(PROJECT)
            free = next(
                (candidate for candidate in paths if source.place(candidate).kind == "missing"),
                None,
            )
            if free is None:
                raise Exists(paths[-1], f"{PROJECT}/{paths[-1]}")
            path = free
        data = _compose(entry, other_keys, old.file.data.decode("utf-8", "replace") if old else "")
        file, scope = (old.file, old.scope) if old else (None, GLOBAL)
        change.put(PROJECT, path, data, old=file, scope=scope)
        return path, old is None, data

    def _find(self, namespace: str, key: str) -> Entry:
        """Return the entry, even if it is expired. Raises NoEntry, Unreadable."""
        claim = next(self._claims(namespace, key), None)
        if claim is None:
            self._check(namespace)
            raise NoEntry(key, namespace)
        return claim.entry

    def _expire(self, entry: Entry) -> None:
        """Remove the file of `entry`, unless the file has a newer entry that has not expired."""
        claim = next(self._claims(entry.namespace, entry.key), None)
        if claim is not None and self._is_over(claim.entry):
            self._remove(EXPIRE, [claim], claim.path)

    @purging
    @verb
    def remove(self, namespace: str, key: str) -> None:
        with self.engine.writing():
            self._find(namespace, key)
            claims = list(self._claims(namespace, key))
            self._remove("delete", claims, claims[0].path)

    @verb
    def search(
        self, text: str, namespace: str | None, limit: int, offset: int
    ) -> tuple[list[Entry], int]:
        lowered = text.lower()
        matches = []
        if namespace is not None:
            self._check(namespace)
        self.engine.fresh()
        counts = self.engine.reads.counts()
        for entry in self._readable_entries(bodies=True):
            if namespace not in (None, entry.namespace):
                continue
            if lowered in entry.key.lower() or lowered in notes.value_of(entry.body).lower():
                recalls = entry.access_count + counts.get(entry.id, 0)
                # Sorted, these tuples are in the order of the result. The numbers are negative, as
                # the highest comes first.
                matches.append(
                    (-recalls, -(entry.created // 1_000_000), entry.namespace, entry.key, entry.row)
                )
        # Only the entries of the page are read from the index, by their rows.
        page = sorted(matches)[offset : offset + limit]
        rows = [row for *_, row in page]
        values = self.engine.index.notes.bodies(rows)
        infos = self.engine.index.notes.infos(rows)
        entries = []
        for recalls, age, space, key, row in page:
            created = EPOCH - timedelta(seconds=age)
            value = notes.value_of(values[row])
            info = infos[row]
            expires = info.expires and parse_stamp(info.expires)
            accessed = _accessed(info.header, created)
            entries.append(
                Entry(space, key, value, created, accessed, expires or None, -recalls, info.id)
            )
        return entries, len(matches)

    def _readable_entries(self, *, bodies: bool = False) -> list[Kept]:
        """Return the entries in the index that the caller may see and that have not expired.

        bodies: whether to read the texts of the entries, too.
        """
        return [
            entry
            for entry in self.engine.index.entries.kept(bodies=bodies)
            if self._session.sees(entry.scope)
        ]

    def _expired_entries(self) -> list[Expired]:
        """Return the expired entries in the index that the caller may see."""
        return [
            entry
            for entry in self.engine.index.entries.expired()
            if self._session.sees(entry.scope)
        ]

    def _counted(self) -> tuple[Counter[str], Counter[str]]:
        self.engine.fresh()
        return Counter(entry.namespace for entry in self._readable_entries()), Counter(
            entry.namespace for entry in self._expired_entries()
        )

    @purging
    @verb
    def clear(self, namespace: str) -> int:
        """Remove all entries of a namespace as one change, and return their number.

        `undo` brings the entries back, except entries with a time to live.
        """
        with self.engine.writing():
            self._check(namespace)
            self.engine.fresh()
            all_entries: list[Kept | Expired] = [
                *self._readable_entries(),
                *self._expired_entries(),
            ]
            paths = [entry.path for entry in all_entries if entry.namespace == namespace]
            entry_files = [
                entry_file
                for path in sorted(paths)
                if (entry_file := self._read_entry_file(path, namespace))
            ]
            if entry_files:
                self._remove("delete", entry_files, f"{entry_files[0].path.rpartition('/')[0]}/")
            return len(entry_files)

    @verb
    def stats(self) -> Totals:
        self.engine.fresh()
        kept_entries = self._readable_entries()
        totals = Totals(
            self.engine.source(PROJECT).root,
            len(kept_entries),
            sum(entry.size for entry in kept_entries),
        )
        totals.namespaces = len(
            {entry.namespace for entry in kept_entries}
            | {entry.namespace for entry in self._expired_entries()}
        )
        if kept_entries:
            totals.oldest = EPOCH + timedelta(
                microseconds=min(entry.created for entry in kept_entries)
            )
            totals.newest = EPOCH + timedelta(
                microseconds=max(entry.created for entry in kept_entries)
            )
        return totals

    @verb
    def purge(self, limit: int = PURGED_AT_ONCE) -> int:
        """Remove up to `limit` expired entries, and return how many were removed.

        Entries that the caller may not see are removed, too.
        """
        index = self.engine.index.entries
        self.engine.freshness.retire_expired()
        if not index.expired(1):
            return 0
        with self.engine.writing():
            entry_files = []
            for over in index.expired(limit):
                with suppress(Unreadable):
                    entry_file = self._read_entry_file(over.path, over.namespace)
                    if entry_file is not None and self._is_over(entry_file.entry):
                        entry_files.append(entry_file)
            if entry_files:
                self._remove(
                    EXPIRE, entry_files, entry_files[0].path if len(entry_files) == 1 else ""
                )
            return len(entry_files)

    @verb
    def peek(self, namespace: str, key: str) -> tuple[Entry, bool] | None:
        """Return the entry and whether it is locked, without counting a read or removing anything.

        None means that no such entry exists, or that it has expired.
        """
        claim = next(self._claims(namespace, key), None)
        if claim is None or self._is_over(claim.entry):
            return None
        return (claim.entry, claim.locked)

    @verb
    def import_entries(self, entries: Sequence[tuple[Entry, Mapping[str, Any]]], verb: str) -> None:
        """Store entries from elsewhere, with their times and counts, as one change.

        entries: pairs of an entry and the further keys of its header. An entry replaces the present
            entry with the same key.
        verb: the verb in the ledger.

        Raises Locked, Unreadable.
        """
        with self._session.change(verb, fresh=False) as change:
            paths = [self._put(change, entry, other_keys)[0] for entry, other_keys in entries]
        self.engine.reads.restart(*(default_id(PROJECT, path) for path in paths))

    @verb
    def keep_outdated(self, entries: Sequence[tuple[Entry, Mapping[str, Any]]]) -> None:
        """Put entries into the history that are older than the present entries with the same keys.

        entries: pairs of an entry and the further keys of its header. Entries with a time to live
            are left out.
        """
        from memoranda.engine.exchange import keep_lost

        lost = []
        for entry, other_keys in entries:
            claim = next(self._claims(entry.namespace, entry.key), None)
            if claim is not None and entry.expires is None and claim.entry.expires is None:
                touched = Touched(
                    StepKind.PUT, PROJECT, claim.path, new=claim.file.etag, scope=claim.scope
                )
                lost.append((touched, _compose(entry, other_keys)))
        keep_lost(self._session, lost)

    def _claims(self, namespace: str, key: str) -> Iterator[_EntryFile]:
        """Yield the files that contain the entry and that the caller may see.

        The file at the usual path of the entry comes first. Files that were moved or copied by hand
        follow, which the index knows.
        """
        usual_path = next(notes.places(namespace, key))
        entry_file = self._read_entry_file(usual_path, namespace)
        if entry_file and self._is_claim(entry_file, namespace, key):
            yield entry_file
        self.engine.fresh()
        for path in self.engine.index.entries.paths_with(key):
            if path != usual_path:
                entry_file = self._read_entry_file(path, namespace)
            else:
                entry_file = None
            if entry_file and self._is_claim(entry_file, namespace, key):
                yield entry_file

    def _is_claim(self, entry_file: _EntryFile, namespace: str, key: str) -> bool:
        """Whether a file contains the entry with this namespace and key, and the caller may see the
        file.
        """
        return (entry_file.entry.namespace, entry_file.entry.key) == (
            namespace,
            key,
        ) and self._session.sees(entry_file.scope)

    def _read_entry_file(self, path: str, namespace: str) -> _EntryFile | None:
        """Return the file at `path` with its entry. None if there is no file. Raises Unreadable.

        namespace: the namespace that the error names.
        """
        source = self.engine.source(PROJECT)
        try:
            file = source.read(path)
        except NotFound:
            return None
        except MemorandaError:
            raise Unreadable(namespace) from None
        changed = EPOCH + timedelta(microseconds=file.stamp.mtime_ns // 1000)
        if file.born:
            born = datetime.fromtimestamp(file.born, UTC)
        else:
            born = None
        note, value = notes.read_entry(file.data.decode("utf-8", "replace"), path, changed, born)
        names = notes.namespace_of(note.header, path), note.title
        entry = Entry(
            *names,
            value,
            note.created,
            _accessed(note.header, note.created),
            note.expires,
            note.access_count,
            note.id,
        )
        return _EntryFile(path, file, entry, note.scope, note.locked)

    def _check(self, namespace: str) -> None:
        """Raise Unreadable if the folder of a namespace cannot be opened, or is not a folder.

        A missing folder raises no error.
        """
        source = self.engine.source(PROJECT)
        # Any key serves here, because only the folder of its path matters.
        usual_path = next(notes.places(namespace, "x"))
        try:
            kind = source.place(usual_path.rpartition("/")[0]).kind
            source.place(usual_path)
        except MemorandaError:
            raise Unreadable(namespace) from None
        if kind not in ("folder", "missing"):
            raise Unreadable(namespace)

    def _remove(self, verb: str, entry_files: Sequence[_EntryFile], changed_path: str) -> None:
        """Remove files of entries as one change. Folders that are empty afterwards are removed,
        too.

        verb: the verb in the ledger.
        changed_path: the path under which the ledger lists the change.

        Raises Locked.
        """
        names: dict[str, set[str]] = {}
        with self._session.change(verb, (PROJECT, changed_path), fresh=False) as change:
            for entry_file in entry_files:
                if entry_file.locked and verb != EXPIRE:
                    raise Locked(f"{PROJECT}/{entry_file.path}")
                change.remove(PROJECT, entry_file.path, entry_file.file, scope=entry_file.scope)
                folder, _, name = entry_file.path.rpartition("/")
                names.setdefault(folder, set()).add(name)
            # Changes of other threads wait in the queue, and may create files in these folders. So
            # they are made before the folders are listed.
            self.engine.make_waiting()
            for folder, removed_names in names.items():
                if folder and removed_names.issuperset(
                    os.listdir(os.path.join(self.engine.source(PROJECT).root, folder))
                ):
                    change.add(StepKind.RMDIR, PROJECT, folder)


def _accessed(header: Mapping[str, Any], created: datetime) -> datetime:
    """Return when an entry was last read, from its header.

    created: the time to return if the header has no valid time.
    """
    with suppress(KeyError, ValueError, OverflowError, TypeError, AttributeError):
        return parse_stamp(header["accessed_at"])
    return created


def _compose(entry: Entry, other_keys: Mapping[str, Any], before: str = "") -> bytes:
    """Return the bytes of the file for an entry.

    other_keys: further header keys.
    before: the text of the file that is replaced; "" for a new file.
    """
    return notes.compose_entry(
        entry.value,
        namespace=entry.namespace,
        key=entry.key,
        created=entry.created,
        expires=entry.expires,
        before=before,
        accessed=entry.accessed,
        access_count=entry.access_count,
        other_keys=other_keys,
    ).encode()


def expiry(now: datetime, ttl: int) -> datetime | None:
    """Return the time at which an entry expires that is written at `now`. None means never.

    ttl: the time to live in seconds; 0 means for ever.
    """
    if ttl:
        return whole_milliseconds(now) + timedelta(seconds=ttl)
    return None


def whole_milliseconds(moment: datetime) -> datetime:
    """Return `moment` without microseconds, because the header key `expires_at` has only
    milliseconds.
    """
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
