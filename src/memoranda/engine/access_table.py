"""The table of who may use a home over HTTP, kept in the home's ledger."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memoranda.errors import StorageError
from memoranda.ledger.access_rows import AccessRows
from memoranda.ledger.database import LedgerDatabase
from memoranda.ledger.takeover import take_over_file
from memoranda.sources.files import make_private, reason, storing
from memoranda.sources.layout import PRIVATE, Layout, changing_shared, follow_shared, shared_space


class AccessRefused(StorageError):
    """The tokens cannot be read. Until they can be read, no caller is let in."""

    def __init__(self, why: str, name: str = "ledger.db"):
        super().__init__(name, why)
        place = f"{PRIVATE}/{name}"
        self.args = (f"{place} of the home cannot be read: {why}. Fix it, or restore a backup.",)


class AccessTable:
    """The table of the home at `root`, opened when it is first used."""

    def __init__(self, root: Path):
        self.layout = Layout(root)
        self._rows: AccessRows | None = None

    @property
    def space(self) -> str | None:
        """The space of the database that the home is a copy of. None for a home in a folder."""
        return shared_space(self.layout.root)

    def all(self) -> Mapping[str, Any]:
        """All rows, read-only. Raises AccessRefused."""
        follow_shared(self.layout.root)
        is_there = self.layout.ledger.exists() or self.layout.access.exists()
        if self._rows is None and not is_there:
            return {}
        try:
            return self._open_rows().all()
        except AccessRefused:
            raise
        except StorageError as error:
            raise AccessRefused(error.reason) from None

    @contextmanager
    def changing(self) -> Iterator[dict[str, Any]]:
        """Yield all rows for editing, and write them durably when the block ends.

        Raises AccessRefused, StorageError.
        """
        with storing("who may come in"):
            make_private(self.layout.private)
        with (
            changing_shared(self.layout.root, self.layout.access),
            self._open_rows().changing() as rows,
        ):
            yield rows

    def calls_of(self, who: str, day: str) -> int:
        """How many calls `who` made on a day. Raises StorageError."""
        return self._open_rows().calls_of(who, day)

    def count_call(self, who: str, day: str) -> None:
        """Count a call that `who` made on a day. Raises StorageError."""
        self._open_rows().count_call(who, day)

    def close(self) -> None:
        """Release the ledger. The next use opens it again."""
        if self._rows is not None:
            self._rows.database.close()
            self._rows = None

    def _open_rows(self) -> AccessRows:
        """The rows in the ledger, after taking in the file in which an older version kept them."""
        if self._rows is None:
            database = LedgerDatabase(self.layout.ledger)
            self._rows = AccessRows(database)
            # Commands and the page make many of these, each for a few lines.
            weakref.finalize(self, database.close)
        if self.layout.access.exists():
            self._take_over(self._rows)
        return self._rows

    def _take_over(self, rows: AccessRows) -> None:
        """Take the older version's file into the ledger. Raises AccessRefused."""
        try:
            take_over_file(rows.database, self.layout.access, rows.take_over)
        except ValueError as error:
            raise AccessRefused(str(error), self.layout.access.name) from None
        except OSError as error:
            raise AccessRefused(reason(error), self.layout.access.name) from None
