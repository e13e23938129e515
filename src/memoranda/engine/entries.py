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
from typing import Any, Concatenate, NamedTuple, ParamSpec, Protocol, TypeGuard, TypeVar

from memoranda.clock import EPOCH, parse_stamp
from memoranda.engine.engine import Engine, verb
from memoranda.engine.history.undo import EXPIRE
from memoranda.engine.transaction import Transaction, WritingSession
from memoranda.errors import Exists, Locked, MemorandaError, NotFound, StorageError
from memoranda.index.note_queries import Expired, Kept
from memoranda.ledger.change import Touched
from memoranda.note import entry as notes
from memoranda.note.entry import PROJECT
from memoranda.note.markdown import default_id
from memoranda.note.model import GLOBAL
from memoranda.sources.base import File
from memoranda.sources.step import Step, StepKind

P = ParamSpec("P")
T = TypeVar("T")
E = TypeVar("E", bound="Entries")

PURGED_AT_ONCE = 100
"""How many expired entries a call that changes something removes at most."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A value under its key. All times have a time zone, which is UTC.

    namespace, key: the name of the entry. Case matters in both.
    created: when the value was written.
    accessed: when the entry was last read. If it was never read, when it was written.
    expires: when the entry expires; None for never.
    access_count: how many times the entry was read.
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
    entries: the number of entries.
    size: the bytes of the files.
    namespaces: the number of namespaces, including namespaces with only expired entries.
    oldest: when the oldest entry was written; None if there are no entries.
    newest: when the newest entry was written; None if there are no entries.
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
    """Decorate a method of `Entries` so that a call of it also removes some expired entries.

    The removal is a separate change. So expired entries disappear even if no daemon runs.
    """

    @wraps(method)
    def call(self: E, *args: P.args, **kwargs: P.kwargs) -> T:
        result = method(self, *args, **kwargs)
        # The call itself was successful. If the removal fails, the next call tries it again.
        with suppress(MemorandaError):
            self.purge()
        return result

    return call


class Entries(Protocol):
    """A store of entries, as one caller sees it.

    Case matters in namespaces and keys. When a method returns, its change is on disk.
    """

    engine: Engine

    def put(self, namespace: str, key: str, value: str, ttl: int = 0) -> Entry:
        """Store a new entry, which replaces the entry with the same key in the namespace.

        ttl: the time to live in seconds; 0 means for ever.

        Raises Unreadable.
        """

    @verb
    def get(self, namespace: str, key: str) -> Entry:
        """Return the entry with a key of a namespace, without counting a read.

        An expired entry is removed. So EntryExpired is raised only the first time, and NoEntry
        after that.

        Raises NoEntry, EntryExpired, Unreadable.
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
        """Remove the entry with a key of a namespace, expired or not, and all copies of its file.

        Raises NoEntry, Unreadable.
        """

    def search(
        self, text: str, namespace: str | None, limit: int, offset: int
    ) -> tuple[list[Entry], int]:
        """Return a page of the entries whose key or value contains `text`, and the number of all
        such entries.

        Case does not matter. The entries that were read most come first, then the newest. Equal
        ones are in the order of namespace and key.

        namespace: the namespace to search. None means all namespaces that can be read.
        limit: how many entries to return.
        offset: how many entries to skip before the first one.
        """

    @verb
    def namespaces(self) -> list[NamespaceCounts]:
        """Return every namespace that has an entry, in the order of the names."""
        active, expired = self._counted()
        names = sorted(active.keys() | expired.keys())
        return [NamespaceCounts(name, active[name], expired[name]) for name in names]

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

    path: the path of the file in the project.
    file: the bytes and the times of the file.
    entry: the entry that was read from it.
    scope: who may see the entry.
    locked: whether the owner forbids changes of the entry.
    """

    path: str
    file: File
    entry: Entry
    scope: str
    locked: bool


class _Match(NamedTuple):
    """The fields of a matching entry that decide its rank in a search.

    row: its row in the index.
    namespace, key: the name of the entry.
    created_second: when it was written, in whole seconds since 1970.
    reads: how many times it was read.
    """

    row: int
    namespace: str
    key: str
    created_second: int
    reads: int


def _rank(match: _Match) -> tuple[int, int, str, str, int]:
    """Return the sort key of a match: the most read first, then the newest, then by name."""
    return (-match.reads, -match.created_second, match.namespace, match.key, match.row)


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
        """Write an entry into its file, and return it. The new value counts as never read.

        namespace, key: the name of the entry. An entry with this name is replaced.
        ttl: the time to live in seconds; 0 means for ever.
        """
        now = self.engine.clock()
        entry = Entry(
            namespace=namespace,
            key=key,
            value=value,
            created=now,
            accessed=now,
            expires=expiry(now, ttl),
        )
        with self._session.change("write", fresh=False) as transaction:
            step = self._put(transaction, entry, other_keys={})
            if step.old is not None:
                transaction.verb = "overwrite"
        data = step.data or b""
        note, _ = notes.read_entry(data.decode(), step.path, now)
        self.engine.reads.restart(note.id)
        return replace(entry, created=note.created, accessed=note.created, id=note.id)

    def _put(self, transaction: Transaction, entry: Entry, other_keys: Mapping[str, Any]) -> Step:
        """Add the step that writes `entry`, and return the step.

        If the file of the entry was moved by hand, it is written at its new place.

        other_keys: further header keys.

        Raises Locked, Unreadable, Exists.
        """
        old = self._first_claim(entry.namespace, entry.key)
        if old is None:
            self._check(entry.namespace)
            path = self._free_path(entry)
            data = _compose(entry, other_keys)
            return transaction.put(PROJECT, path, data, old=None, scope=GLOBAL)
        if old.locked:
            raise Locked(f"{PROJECT}/{old.path}")
        data = _compose(entry, other_keys, old.file.data.decode("utf-8", "replace"))
        return transaction.put(PROJECT, old.path, data, old=old.file, scope=old.scope)

    def _free_path(self, entry: Entry) -> str:
        """Return the first free path for a new entry. Raises Exists.

        An entry has several possible paths, because the file of another entry may be at the usual
        path.
        """
        source = self.engine.source(PROJECT)
        paths = list(notes.places(entry.namespace, entry.key))
        for path in paths:
            if source.place(path).kind == "missing":
                return path
        raise Exists(paths[-1], f"{PROJECT}/{paths[-1]}")

    def _find(self, namespace: str, key: str) -> Entry:
        """Return the entry with a key of a namespace, even if it is expired. Raises NoEntry,
        Unreadable.
        """
        claim = self._first_claim(namespace, key)
        if claim is None:
            self._check(namespace)
            raise NoEntry(key, namespace)
        return claim.entry

    def _expire(self, entry: Entry) -> None:
        """Remove the file of `entry`, unless the file has a newer entry that has not expired."""
        claim = self._first_claim(entry.namespace, entry.key)
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
        """Return a page of the entries that contain `text`, and the number of all such entries.

        The index finds them. Only the entries of the page are read.

        namespace: the namespace to search. None means all namespaces.
        """
        if namespace is not None:
            self._check(namespace)
        self.engine.fresh()
        matches = self._matches(text, namespace)
        matches.sort(key=_rank)
        return self._entries_of(matches[offset : offset + limit]), len(matches)

    def _matches(self, text: str, namespace: str | None) -> list[_Match]:
        """Return the entries whose key or value contains `text`, in any order.

        namespace: None means all namespaces.
        """
        lowered = text.lower()
        counts = self.engine.reads.counts()
        matches: list[_Match] = []
        for entry in self._readable_entries(bodies=True):
            is_in_namespace = namespace is None or namespace == entry.namespace
            if not is_in_namespace:
                continue
            if lowered in entry.key.lower() or lowered in notes.value_of(entry.body).lower():
                # The header has the reads up to the last write of the file, `counts` those since.
                reads = entry.access_count + counts.get(entry.id, 0)
                created_second = entry.created // 1_000_000
                matches.append(
                    _Match(
                        row=entry.row,
                        namespace=entry.namespace,
                        key=entry.key,
                        created_second=created_second,
                        reads=reads,
                    )
                )
        return matches

    def _entries_of(self, matches: Sequence[_Match]) -> list[Entry]:
        """Complete matches of a search with the rest of their data in the index, as entries."""
        rows = [match.row for match in matches]
        bodies = self.engine.index.notes.bodies(rows)
        infos = self.engine.index.notes.infos(rows)
        entries: list[Entry] = []
        for match in matches:
            info = infos[match.row]
            created = EPOCH + timedelta(seconds=match.created_second)
            expires = parse_stamp(info.expires) if info.expires else None
            entries.append(
                Entry(
                    namespace=match.namespace,
                    key=match.key,
                    value=notes.value_of(bodies[match.row]),
                    created=created,
                    accessed=_accessed(info.header, created),
                    expires=expires,
                    access_count=match.reads,
                    id=info.id,
                )
            )
        return entries

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
        active = Counter(entry.namespace for entry in self._readable_entries())
        expired = Counter(entry.namespace for entry in self._expired_entries())
        return active, expired

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
            entry_files: list[_EntryFile] = []
            for path in sorted(paths):
                entry_file = self._read_entry_file(path, namespace)
                # The file may have disappeared since the index saw it.
                if entry_file is not None:
                    entry_files.append(entry_file)
            if entry_files:
                folder = entry_files[0].path.rpartition("/")[0]
                self._remove("delete", entry_files, f"{folder}/")
            return len(entry_files)

    @verb
    def stats(self) -> Totals:
        """Return figures about the entries in the index."""
        self.engine.fresh()
        active_entries = self._readable_entries()
        namespaces = {entry.namespace for entry in active_entries}
        namespaces.update(entry.namespace for entry in self._expired_entries())
        totals = Totals(
            self.engine.source(PROJECT).root,
            entries=len(active_entries),
            size=sum(entry.size for entry in active_entries),
            namespaces=len(namespaces),
        )
        if active_entries:
            created = [entry.created for entry in active_entries]
            totals.oldest = EPOCH + timedelta(microseconds=min(created))
            totals.newest = EPOCH + timedelta(microseconds=max(created))
        return totals

    @verb
    def purge(self, limit: int = PURGED_AT_ONCE) -> int:
        """Remove up to `limit` expired entries, and return how many were removed.

        Entries that the caller may not see are removed, too.
        """
        index = self.engine.index.entries
        self.engine.freshness.retire_expired()
        if not index.expired(limit=1):
            return 0
        with self.engine.writing():
            entry_files: list[_EntryFile] = []
            for expired in index.expired(limit):
                with suppress(Unreadable):
                    entry_file = self._read_entry_file(expired.path, expired.namespace)
                    # The file may have a new entry that the index has not seen yet.
                    if entry_file is not None and self._is_over(entry_file.entry):
                        entry_files.append(entry_file)
            if entry_files:
                changed_path = entry_files[0].path if len(entry_files) == 1 else ""
                self._remove(EXPIRE, entry_files, changed_path)
            return len(entry_files)

    @verb
    def peek(self, namespace: str, key: str) -> tuple[Entry, bool] | None:
        """Return the entry and whether it is locked, without counting a read or removing anything.

        The owner forbids to change a locked entry. None means that no such entry exists, or that it
        has expired.
        """
        claim = self._first_claim(namespace, key)
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
        with self._session.change(verb, fresh=False) as transaction:
            steps = [self._put(transaction, entry, other_keys) for entry, other_keys in entries]
        ids = [default_id(PROJECT, step.path) for step in steps]
        self.engine.reads.restart(*ids)

    @verb
    def keep_outdated(self, entries: Sequence[tuple[Entry, Mapping[str, Any]]]) -> None:
        """Put entries into the history that are older than the present entries with the same keys.

        entries: pairs of an entry and the further keys of its header. Entries with a time to live
            are left out.
        """
        from memoranda.engine.exchange import keep_lost

        lost_texts: list[tuple[Touched, bytes]] = []
        for entry, other_keys in entries:
            claim = self._first_claim(entry.namespace, entry.key)
            if claim is None:
                continue
            # The history keeps no text of an entry with a time to live.
            if entry.expires is not None or claim.entry.expires is not None:
                continue
            touched = Touched(
                StepKind.PUT, PROJECT, claim.path, new=claim.file.etag, scope=claim.scope
            )
            lost_texts.append((touched, _compose(entry, other_keys)))
        keep_lost(self._session, lost_texts)

    def _first_claim(self, namespace: str, key: str) -> _EntryFile | None:
        """Return the file that counts for an entry, the first of `_claims`. None if no file has it."""
        return next(self._claims(namespace, key), None)

    def _claims(self, namespace: str, key: str) -> Iterator[_EntryFile]:
        """Yield the files that contain the entry with a key, and that the caller may see.

        The file at the usual path of the entry comes first. Files that were moved or copied by hand
        follow, which the index knows.
        """
        usual_path = next(notes.places(namespace, key))
        entry_file = self._read_entry_file(usual_path, namespace)
        if self._is_claim(entry_file, namespace, key):
            yield entry_file
        # Most callers only need the first file. So the index is asked only if they go on.
        self.engine.fresh()
        for path in self.engine.index.entries.paths_with(key):
            if path == usual_path:
                continue
            entry_file = self._read_entry_file(path, namespace)
            if self._is_claim(entry_file, namespace, key):
                yield entry_file

    def _is_claim(
        self, entry_file: _EntryFile | None, namespace: str, key: str
    ) -> TypeGuard[_EntryFile]:
        """Whether a file contains the entry with this namespace and key, and the caller may see it.

        entry_file: the file; None if the file is missing.
        """
        if entry_file is None or not self._session.sees(entry_file.scope):
            return False
        entry = entry_file.entry
        return entry.namespace == namespace and entry.key == key

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
        born = datetime.fromtimestamp(file.born, UTC) if file.born else None
        note, value = notes.read_entry(file.data.decode("utf-8", "replace"), path, changed, born)
        entry = Entry(
            namespace=notes.namespace_of(note.header, path),
            key=note.title,
            value=value,
            created=note.created,
            accessed=_accessed(note.header, note.created),
            expires=note.expires,
            access_count=note.access_count,
            id=note.id,
        )
        return _EntryFile(path=path, file=file, entry=entry, scope=note.scope, locked=note.locked)

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
        """Remove files of entries, and the folders that are then empty, as one change.

        verb: the verb in the ledger.
        entry_files: the files to remove.
        changed_path: the path under which the ledger lists the change.

        Raises Locked.
        """
        # By folder, the names of its files that are removed.
        names_by_folder: dict[str, set[str]] = {}
        with self._session.change(verb, (PROJECT, changed_path), fresh=False) as transaction:
            for entry_file in entry_files:
                # An entry expires even if the owner has locked it.
                if entry_file.locked and verb != EXPIRE:
                    raise Locked(f"{PROJECT}/{entry_file.path}")
                transaction.remove(
                    PROJECT, entry_file.path, entry_file.file, scope=entry_file.scope
                )
                folder, _, name = entry_file.path.rpartition("/")
                names_by_folder.setdefault(folder, set()).add(name)
            # Changes of other threads wait in the queue, and may create files in these folders. So
            # they are made before the folders are listed.
            self.engine.make_waiting()
            root = self.engine.source(PROJECT).root
            for folder, removed_names in names_by_folder.items():
                # The folder of the project itself always stays.
                if not folder:
                    continue
                present_names = set(os.listdir(os.path.join(root, folder)))
                if present_names <= removed_names:
                    transaction.add(StepKind.RMDIR, PROJECT, folder)


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
    """Return the time when an entry that is written at `now` will expire. None means never.

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
