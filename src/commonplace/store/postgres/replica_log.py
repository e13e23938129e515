"""What a replica keeps of the journal and of the reads counted.

Its journal is a copy of the one in the database, with those of its texts that were needed here. Its own log of reads
holds what the database does not know yet; the sums of all replicas are there.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import UUID, uuid4

from commonplace.errors import Busy, DatabaseRefused, NotFound, StorageError
from commonplace.store.access import AccessLog, LockedLog
from commonplace.store.base import File, Stamp, sha256
from commonplace.store.files import put_derived
from commonplace.store.journal import Change, History
from commonplace.store.layout import Layout
from commonplace.store.postgres.space_database import SpaceDatabase
from commonplace.store.postgres.space_rows import counted

_MARK = re.compile(rb"^# ([0-9a-f-]{36})$", re.MULTILINE)
_BETWEEN = 10.0
"""Seconds between two exchanges with the database, so that a read is no write there."""


class ReplicaHistory(History):
    """As `History`; what is written goes to the database first. `rewritten` is called after `rewrite`."""

    def __init__(self, layout: Layout, database: SpaceDatabase, rewritten: Callable[[], None]):
        self._database, self._rewritten = database, rewritten
        super().__init__(layout)

    def replace(self, lines: Iterable[bytes]) -> None:
        """Put the lines the database has in place of all, and drop the texts none of them refers to. Raises OSError."""
        self._replace(b"".join(lines), durable=False)
        super().sweep()

    def append(self, change: Change, *, durable: bool = True) -> None:
        """Commit a change that changes no note, with the texts kept here that it refers to."""
        wanted = [each.old for each in change.files if each.old]
        here = [each for each in wanted if os.path.exists(self.object_path(each))]
        self._database.append(change, {each: super(ReplicaHistory, self).text(each, change.path) for each in here})
        self.append_lines(change.dump(), change.number, durable=False)

    def text(self, digest: str, path: str) -> bytes:
        """As `History.text`; a text that is not here is fetched. Raises DatabaseAway."""
        try:
            return super().text(digest, path)
        except StorageError:
            os.unlink(self.object_path(digest))
        except NotFound:
            pass
        data = self._database.text(digest)
        if data is None or sha256(data) != digest:
            raise NotFound(path)
        self.keep_bytes(data, durable=False)
        return data

    def rewrite(self, changes: Iterable[Change]) -> None:
        """As `History.rewrite`, for all replicas."""
        every = list(changes)
        self._database.rewrite(every)
        self.replace(each.dump() for each in every)
        self._rewritten()

    def sweep(self, spared: Collection[str | None] = ()) -> int:
        """As `History.sweep`, in the database and here. Returns how many went in the database."""
        gone = self._database.sweep({each for each in self.referenced() | {*spared} if each})
        super().sweep(spared)
        return gone


class ReplicaAccess(AccessLog):
    """As `AccessLog`. The counts shown are those of the database at the last exchange, and what was read here since."""

    def __init__(self, path: Path, database: SpaceDatabase):
        super().__init__(path)
        self._log, self._database = path, database
        self._totals: Counter[str] = Counter()
        self._total_used: dict[str, int] = {}
        self._next = 0.0

    def exchange(self, *, now: bool = False) -> None:
        """Add what was read here to the database and see what was read elsewhere, if it is time to or `now`."""
        if now or time.monotonic() >= self._next:
            with suppress(OSError, Busy, DatabaseRefused):  # what is not sent is counted here and sent later
                if now or super().stamp()[0]:
                    with super().locked() as log:
                        self._send(log)
                self._fetch()
                self._next = time.monotonic() + _BETWEEN

    def _send(self, log: LockedLog) -> None:
        data = log.file.data
        if not data:
            return
        for found in reversed(_MARK.findall(data)):  # a process was to send what is before it, and did not end that
            if self._database.has_counted(UUID(found.decode())):
                put_derived(self._log, data.partition(b"# %s\n" % found)[2])
                return  # what came since is sent the next time
        mark, lines = uuid4(), data.decode("utf-8", "replace").splitlines()
        with open(self._log, "ab") as file:
            file.write(f"# {mark}\n".encode())
        restarted = [line[2:] for line in lines if line[:2] == "0 "]
        self._database.add_reads(mark, restarted, super().counts(), super().used())
        put_derived(self._log, b"")
        self._database.forget_mark(mark)

    def _fetch(self) -> None:
        rows = self._database.reads()
        self._totals = Counter({id: count for id, count, _ in rows if count})
        self._total_used = {id: used for id, _, used in rows if used}

    @contextmanager
    def locked(self) -> Iterator[LockedLog]:
        """The counts of all replicas; what `Upkeep.log_step` leaves of them stays in the database. Raises also
        DatabaseAway."""
        with super().locked() as log:
            self._send(log)
        self._fetch()
        counts, used = Counter(self._totals), dict(self._total_used)
        whole = LockedLog(log.name, File(b"", Stamp(0, 0, 0), sha256(b"")), counts, log.changed, used)
        data = whole.lines(counts, used)
        yield LockedLog(log.name, File(data, Stamp(len(data), 0, 0), sha256(data)), counts, log.changed, used)
        self._next = 0.0

    def fold(self, left: bytes) -> None:
        """A change was committed that leaves just these lines of the log in the database."""
        found = counted(left)
        self._totals = Counter({id: count for id, (count, _) in found.items() if count})
        self._total_used = {id: used for id, (_, used) in found.items() if used}

    def restart(self, *keys: str) -> None:
        super().restart(*keys)
        for key in keys:
            self._totals.pop(key, None)
            self._total_used.pop(key, None)

    def stamp(self) -> tuple[int, int]:
        size, inode = super().stamp()
        return size + self._totals.total(), inode

    def counts(self) -> Counter[str]:
        own = super().counts()
        return self._totals + own if own and self._totals else own or self._totals

    def used(self) -> Mapping[str, int]:
        own = super().used()
        return {**self._total_used, **own}

    def close(self) -> None:
        if os.path.exists(self._log) and os.path.getsize(self._log):
            self.exchange(now=True)
        super().close()
