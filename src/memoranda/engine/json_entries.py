"""Key-value entries in the JSON files of an agent-memory folder, used in place (contract 004, 7).

Each change of rows is in the home's history and can be undone, even if other rows of the file have
changed since. The history never has the value of an entry with a time to live. A recall (a read of
an entry) is counted in the home's ledger. The counts are added to the files when the home is
closed, so a recall writes no file.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memoranda.clock import seconds
from memoranda.engine.engine import Engine, verb
from memoranda.engine.entries import (
    PURGED_AT_ONCE,
    Entries,
    Entry,
    NoEntry,
    Totals,
    Unreadable,
    expiry,
    purging,
)
from memoranda.engine.history.undo import EXPIRE
from memoranda.engine.in_place import InPlaceChange
from memoranda.engine.session import HomeSession
from memoranda.errors import MemorandaError
from memoranda.ledger.change import FOLD
from memoranda.ledger.reads import Reads
from memoranda.sources.files import reason, storing
from memoranda.sources.json_files import CannotOpen, Content, EntryCount, JsonFile, JsonFiles
from memoranda.sources.json_rows import (
    Row,
    RowEdit,
    is_entry,
    moment_of,
    namespace_in,
    stem_of,
)
from memoranda.text.pattern import lazy_pattern
from memoranda.text.unicode import repair_surrogates
from memoranda.text.user_path import absolute_path

# The fields of a row that are written here. Other fields belong to other programs.
_KNOWN = ("key", "value", "created_at", "accessed_at", "expires_at", "access_count", "namespace")
# A count that another program wrote as a text. Python refuses to read a number of very many digits.
_COUNT_IN_TEXT = lazy_pattern(r"[0-9]{1,18}")


class JsonEntryFolder:
    """The folder of JSON files, which all callers of this process share.

    recalled: when each entry was last read by this process, by its name in the log of reads.
    """

    def __init__(self, folder: str | os.PathLike[str]):
        self.files = JsonFiles(Path(absolute_path(folder)))
        self.recalled: dict[str, datetime] = {}
        self.engine: Engine | None = None

    def entries(self, session: HomeSession) -> JsonEntries:
        """Return the entries of the folder for the caller of `session`."""
        if self.engine is not session.engine:
            self.engine = session.engine
            self.engine.before_close.append(self.fold)
        return JsonEntries(session, self)

    def fold(self) -> None:
        """Write the recalls (reads of entries) that were counted so far into the files.

        If a file cannot be written, its recalls stay in the ledger until the next time.
        """
        engine = self.engine
        if engine is None or engine.is_closed or not engine.reads.counts():
            return
        with engine.guard, suppress(OSError):
            for stem in self.files.stems():
                with suppress(OSError, MemorandaError, ValueError):
                    if self._pending_recalls(stem, self.files.read(stem), engine.reads):
                        self._fold_into(stem, engine)

    def _fold_into(self, stem: str, engine: Engine) -> None:
        """Write the recalls (counted reads) of its entries into one file.

        This is a change that no list of changes shows.

        stem: the name of the file without `.json`.
        """
        file = JsonFile(self.files, stem)

        def plan() -> RowEdit:
            """Return the edit that exchanges each recalled row for the row with its new counts."""
            pending = self._pending_recalls(stem, file.content, engine.reads)
            inserted_rows: dict[int, list[Row]] = {}
            for position, (name, recalls) in pending.items():
                row = file.content.rows[position]
                inserted_rows[position] = [self._with_recalls(row, name, recalls)]
            return RowEdit(FOLD, removed=set(pending), inserted=inserted_rows)

        InPlaceChange(HomeSession(engine, None, "job"), f"{stem}.json").carry_out(file, plan)

    def _with_recalls(self, row: Row, name: str, recalls: int) -> Row:
        """Return a row with more recalls added, and with the time of the last one if it is known.

        name: the entry's name in the log of reads.
        """
        count = row.get("access_count")
        counted_row = row | {"access_count": _count_with_recalls(count, recalls)}
        last_recall = self.recalled.get(name)
        if last_recall is None:
            return counted_row
        # The time keeps its form: a number of seconds, or a text.
        if isinstance(row.get("accessed_at"), int | float):
            return counted_row | {"accessed_at": last_recall.timestamp()}
        return counted_row | {"accessed_at": seconds(last_recall)}

    def _pending_recalls(
        self, stem: str, content: Content, reads: Reads
    ) -> dict[int, tuple[str, int]]:
        """Return the reads that a file does not count yet: position of the row -> (name, count).

        Example: `{3: ("notes/key", 2)}`. The name is the entry's name in the log of reads.

        stem: the name of the file without `.json`.
        content: the rows of the file.
        reads: the log of reads that are not in files yet.
        """
        counts = reads.counts()
        pending: dict[int, tuple[str, int]] = {}
        for position, row in enumerate(content.rows):
            name = self.files.name_of(row, stem)
            if counts.get(name):
                pending[position] = (name, counts[name])
        return pending


class JsonEntries(Entries):
    """Entries as rows of the file `<name>.json` of the namespace `name`.

    If the name of a namespace cannot be the name of a file, the rows have the name in the field
    `namespace`.
    """

    def __init__(self, session: HomeSession, folder: JsonEntryFolder):
        self.engine = session.engine
        self._session = session
        self._folder = folder
        self._files = folder.files

    @purging
    @verb
    def put(self, namespace: str, key: str, value: str, ttl: int = 0) -> Entry:
        """Store an entry as the last row of its file. It replaces the row with the same key.

        If other programs added fields to the former row, the new row has them, too.

        namespace: the namespace, which decides the file.
        ttl: the time to live in seconds; 0 means for ever.
        """
        value = self._session.admitted(value, f"{namespace}/{key}")
        now = self.engine.clock()
        stem = stem_of(namespace)
        expires = expiry(now, ttl)
        row: Row = {
            "key": key,
            "value": value,
            "created_at": seconds(now),
            "accessed_at": seconds(now),
            "expires_at": expires.timestamp() if expires is not None else None,
            "access_count": 0,
        }
        # The name of the file says which namespace it is, if it can.
        if namespace != stem:
            row["namespace"] = namespace

        def plan(rows: Sequence[Row]) -> RowEdit:
            """Return the edit that adds the new row, and removes older rows with its key.

            rows: the rows of the file.
            """
            replaced_positions: set[int] = set()
            for position, old_row in enumerate(rows):
                if is_entry(old_row, stem, namespace, key):
                    replaced_positions.add(position)
                    row.update(_unknown_fields(old_row))
            verb_in_history = "overwrite" if replaced_positions else "write"
            return RowEdit(verb_in_history, replaced_positions, added=[row])

        content = self._carry_out(namespace, f"{stem}.json:{key}", plan, make=True)
        return self._entry(row, stem, content)

    def _carry_out(
        self,
        namespace: str,
        path: str,
        plan: Callable[[Sequence[Row]], RowEdit],
        *,
        make: bool = False,
    ) -> Content:
        """Edit the file of a namespace.

        path: the path that the history shows for the change.
        plan: gets the rows of the file, and returns the edit to make.
        make: whether to create the file if it is missing.

        Returns the content of the file afterwards. Raises Unreadable if the file cannot be used,
        and StorageError if it cannot be written.
        """
        file = JsonFile(self._files, stem_of(namespace), path, make=make)
        change = InPlaceChange(self._session, path)
        try:
            change.carry_out(file, lambda: plan(file.content.rows))
        except (CannotOpen, ValueError):
            raise Unreadable(namespace) from None
        return file.content

    def _find(self, namespace: str, key: str) -> Entry:
        """Return the entry with a key of a namespace. Raises NoEntry, Unreadable."""
        stem = stem_of(namespace)
        content = self._read_content(stem, namespace)
        for row in content.rows:
            if is_entry(row, stem, namespace, key):
                return self._entry(row, stem, content)
        raise NoEntry(key, namespace)

    def _expire(self, entry: Entry) -> None:
        """Remove an entry whose time to live is over."""
        stem = stem_of(entry.namespace)

        def is_expired_row(row: Row) -> bool:
            """Whether a row is this entry. The row may have been replaced by a newer one."""
            return is_entry(row, stem, entry.namespace, entry.key) and self._is_past(row)

        self._drop(stem, is_expired_row, verb=EXPIRE, key=entry.key)

    @verb
    def count(self, entry: Entry) -> Entry:
        """Count a recall (a read) of an entry.

        This waits while another process is writing recalls into the entry's file.
        """
        with ExitStack() as lock:
            # If the file cannot be locked, the recall is counted all the same.
            with suppress(OSError):
                lock.enter_context(self._files.shared(stem_of(entry.namespace)))
            counted_entry = super().count(entry)
        self._folder.recalled[entry.id] = counted_entry.accessed
        return counted_entry

    @purging
    @verb
    def remove(self, namespace: str, key: str) -> None:
        """Remove the entry with a key of a namespace. Raises NoEntry."""
        stem = stem_of(namespace)
        if not self._drop(namespace, lambda row: is_entry(row, stem, namespace, key), key=key):
            raise NoEntry(key, namespace)

    @verb
    def search(
        self, text: str, namespace: str | None, limit: int, offset: int
    ) -> tuple[list[Entry], int]:
        """Return a page of the entries that contain `text`, and the number of all such entries.

        The text may be in the key or in the value. The entries with most recalls come first.

        namespace: the namespace to search. None means all namespaces.
        limit: how many entries to return.
        offset: how many entries to skip before the first one.
        """
        counts = self.engine.reads.counts()
        matches: list[Entry] = []
        for entry in self._entries_with(text.lower(), namespace):
            # The row has the reads up to the last write of the file, `counts` those since.
            recalls = entry.access_count + counts.get(entry.id, 0)
            matches.append(replace(entry, access_count=recalls))

        # The most recalled first, then the newest, then by name.
        matches.sort(
            key=lambda match: (
                -match.access_count,
                -int(match.created.timestamp()),
                match.namespace,
                match.key,
            )
        )
        return matches[offset : offset + limit], len(matches)

    def _entries_with(self, lowered: str, namespace: str | None) -> Iterator[Entry]:
        """Yield the entries that have a text in the key or the value.

        lowered: the text in lower case.
        namespace: None means all namespaces.
        """
        contents: Iterable[tuple[str, Content]]
        if namespace is None:
            contents = self._readable()
        else:
            stem_of_namespace = stem_of(namespace)
            contents = [(stem_of_namespace, self._read_content(stem_of_namespace, namespace))]
        for stem, content in contents:
            for row in content.rows:
                # A file may have rows of several namespaces.
                is_searched = namespace is None or namespace_in(row, stem) == namespace
                if not is_searched or self._is_past(row):
                    continue
                if lowered in row["key"].lower() or lowered in _value(row).lower():
                    yield self._entry(row, stem, content)

    def _counted(self) -> tuple[Counter[str], Counter[str]]:
        """Return two counts by namespace: how many entries have not expired, and how many have."""
        active = Counter[str]()
        expired = Counter[str]()
        for stem, content in self._readable():
            for row in content.rows:
                counter = expired if self._is_past(row) else active
                counter[namespace_in(row, stem)] += 1
        return active, expired

    @verb
    def clear(self, namespace: str) -> int:
        """Remove all rows of a namespace, and return how many were removed.

        Rows of other namespaces in the same file stay.
        """
        stem = stem_of(namespace)
        count = self._drop(namespace, lambda row: namespace_in(row, stem) == namespace)
        # If the namespace was unknown, nothing must be written at all.
        if count:
            with suppress(MemorandaError):
                self.purge()
        return count

    @verb
    def stats(self) -> Totals:
        """Return figures about all entries. The sizes are the sizes of whole files."""
        totals = Totals(str(self._files.root))
        names = set[str]()
        times = list[datetime]()
        for stem, content in self._readable():
            active_rows = [row for row in content.rows if not self._is_past(row)]
            totals.entries += len(active_rows)
            totals.size += content.size
            names |= {namespace_in(row, stem) for row in content.rows}
            times += [_created(row, content) for row in active_rows]
        totals.namespaces = len(names)
        if times:
            totals.oldest = min(times)
            totals.newest = max(times)
        return totals

    @verb
    def purge(self, limit: int = PURGED_AT_ONCE) -> None:
        """Remove up to `limit` expired entries, then record how many entries remain.

        Files that cannot be read are skipped.
        """
        remaining_limit = limit
        for stem in self._stems():
            with suppress(MemorandaError):
                rows = self._read_content(stem, stem).rows
                has_expired_rows = any(self._is_past(row) for row in rows)
                if remaining_limit > 0 and has_expired_rows:
                    removed = self._drop(stem, self._is_past, remaining_limit, verb=EXPIRE)
                    remaining_limit -= removed
        with suppress(OSError, ValueError):
            self._files.write_count(self._count_rows)

    def _count_rows(self) -> EntryCount:
        """Count the rows and the namespaces of all files that can be read. Expired rows are
        included.
        """
        entries = 0
        names = set[str]()
        for stem, content in self._readable():
            entries += len(content.rows)
            names |= {namespace_in(row, stem) for row in content.rows}
        return EntryCount(entries, len(names))

    @property
    def unreadable(self) -> list[str]:
        """The names, without `.json`, of the files that cannot be read."""
        readable = {stem for stem, _ in self._readable()}
        return [stem for stem in self._stems() if stem not in readable]

    def why_unreadable(self, stem: str) -> str:
        """Return why a file cannot be read. "" for a file that can be read.

        stem: the name of the file without `.json`.
        """
        try:
            self._files.read(stem)
        except OSError as error:
            return reason(error)
        except (json.JSONDecodeError, UnicodeDecodeError):
            return "no JSON text"
        except ValueError as error:
            return str(error)
        return ""

    def _readable(self) -> Iterator[tuple[str, Content]]:
        """Yield the name without `.json` and the content of each file that can be read."""
        for stem in self._stems():
            with suppress(Unreadable):
                yield stem, self._read_content(stem, stem)

    def _stems(self) -> list[str]:
        """Return the names of the files, without `.json`. Raises StorageError."""
        with storing("the folder of JSON files"):
            return self._files.stems()

    def _read_content(self, stem: str, namespace: str) -> Content:
        """Return the content of a file. Raises Unreadable.

        stem: the name of the file without `.json`.
        namespace: the namespace that the error names.
        """
        try:
            return self._files.read(stem)
        except (OSError, ValueError):
            raise Unreadable(namespace) from None

    def _drop(
        self,
        namespace: str,
        is_to_remove: Callable[[Row], bool],
        limit: int | None = None,
        *,
        verb: str = "delete",
        key: str | None = None,
    ) -> int:
        """Remove rows from the file of a namespace, and return how many were removed.

        is_to_remove: says whether a row should be removed.
        limit: how many rows to remove at most; None for no limit.
        verb: the verb of the change in the history.
        key: the key under which the history lists the change. None means that it is listed under
            the file.
        """
        path = f"{stem_of(namespace)}.json"
        if key is not None:
            path += f":{key}"
        removed_positions = set[int]()

        def plan(rows: Sequence[Row]) -> RowEdit:
            """Return the edit that removes the first `limit` of these rows."""
            positions = [position for position, row in enumerate(rows) if is_to_remove(row)]
            removed_positions.update(positions[:limit])
            return RowEdit(verb, removed_positions)

        self._carry_out(namespace, path, plan)
        return len(removed_positions)

    def _is_past(self, row: Row) -> bool:
        """Whether the time to live of a row is over."""
        expires = moment_of(row.get("expires_at"))
        return expires is not None and self.engine.clock() > expires

    def _entry(self, row: Row, stem: str, content: Content) -> Entry:
        """Return a row of the file `stem` as an entry with its id."""
        return replace(entry_of(row, stem, content), id=self._files.name_of(row, stem))


def entry_of(row: Row, stem: str, content: Content) -> Entry:
    """Return a row of the file `stem` as an entry without an id."""
    created = _created(row, content)
    accessed = moment_of(row.get("accessed_at")) or created
    expires = moment_of(row.get("expires_at"))
    recalls = _number(row.get("access_count"))
    return Entry(
        namespace=namespace_in(row, stem),
        key=repair_surrogates(row["key"]),
        value=_value(row),
        created=created,
        accessed=accessed,
        expires=expires,
        access_count=recalls,
    )


def _created(row: Row, content: Content) -> datetime:
    """Return when a row was written. If it does not say so, when its file was last changed."""
    return moment_of(row.get("created_at")) or datetime.fromtimestamp(content.changed, UTC)


def _unknown_fields(row: Row) -> Row:
    """Return the fields of a row that belong to other programs."""
    return {name: value for name, value in row.items() if name not in _KNOWN}


def unknown_of(row: Row, stem: str) -> Row:
    """Return the fields of a row that an entry does not have.

    They are the fields of other programs. A field `namespace` is included if it does not name the
    namespace in which the row counts.

    stem: the name of the file without `.json`.
    """
    unknown = _unknown_fields(row)
    if "namespace" in row and namespace_in(row, stem) != row["namespace"]:
        unknown["namespace"] = row["namespace"]
    return unknown


def _value(row: Row) -> str:
    """Return the value of a row as text. A value that is not a text is written as JSON."""
    value: Any = row.get("value", "")
    return repair_surrogates(value if isinstance(value, str) else json.dumps(value))


def _number(value: Any) -> int:
    """Return the count in a field of a row; 0 if the field is not a whole number.

    Another program may have written the number as a text (`"7"`) or with a fraction of zero (`7.0`).
    """
    if isinstance(value, bool):
        return 0
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and _COUNT_IN_TEXT.fullmatch(value):
        return int(value)
    return 0


def _count_with_recalls(count: Any, recalls: int) -> int | float | str:
    """Return the value of the field `access_count` with more recalls, in the form that it had.

    count: the value of the field; None if the row has no such field.
    """
    total = _number(count) + recalls
    if isinstance(count, float) and count.is_integer():
        return float(total)
    if isinstance(count, str) and _COUNT_IN_TEXT.fullmatch(count):
        return str(total)
    return total
