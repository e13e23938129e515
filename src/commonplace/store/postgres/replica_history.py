"""The journal of a replica: a copy of the one in the database, and of its texts those that were needed here."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress

from commonplace.errors import NotFound, StorageError
from commonplace.store.base import sha256
from commonplace.store.files import write_file
from commonplace.store.journal import Change, History
from commonplace.store.layout import Layout
from commonplace.store.postgres.space_database import SpaceDatabase


class ReplicaHistory(History):
    """As `History`; what is written goes to the database first. `rewritten` is called after `rewrite`."""

    def __init__(self, layout: Layout, database: SpaceDatabase, rewritten: Callable[[], None]):
        self._database, self._rewritten = database, rewritten
        super().__init__(layout)

    def replace(self, lines: Iterable[bytes]) -> None:
        """Put the lines the database has in place of all, and drop the texts none of them refers to. Raises OSError."""
        fresh = f"{self._layout.journal}.new"
        with suppress(FileNotFoundError):
            os.unlink(fresh)
        write_file(fresh, b"".join(lines), durable=False)
        os.replace(fresh, self._layout.journal)
        self.refresh()
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
