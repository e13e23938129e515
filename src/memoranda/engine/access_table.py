"""The table of who may use a home over HTTP: tokens, members and cookies.

It is in the home's ledger.
"""

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
    """Raised when the table cannot be read. Then every caller is refused.

    why: the reason.
    name: the name of the damaged file.
    """

    def __init__(self, why: str, name: str = "ledger.db"):
        super().__init__(name, why)
        place = f"{PRIVATE}/{name}"
        self.args = (f"{place} of the home cannot be read: {why}. Fix it, or restore a backup.",)


class AccessTable:
    """The table of the home at `root`. The ledger is opened at the first use."""

    def __init__(self, root: Path):
        self.layout = Layout(root)
        self._rows: AccessRows | None = None

    @property
    def space(self) -> str | None:
        """The space that the home is a copy of, if it is in a database. None for a folder."""
        return shared_space(self.layout.root)

    def all(self) -> Mapping[str, Any]:
        """Return the whole table as one document: section -> its elements.

        An example is `{"tokens": [{"id": "t1", ...}]}`. The document must not be changed.
        It is empty if nobody ever got access. Raises AccessRefused.
        """
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
        """Yield the whole table as one document, which the block may change.

        It is written durably at the end of the block. If the block raises an error, nothing is
        written. Raises AccessRefused, StorageError.
        """
        with storing("who may come in"):
            make_private(self.layout.private)
        with (
            changing_shared(self.layout.root, self.layout.access),
            self._open_rows().changing() as rows,
        ):
            yield rows

    def calls_of(self, who: str, day: str) -> int:
        """Return how many calls somebody made on a day.

        who: the key that the server has for the caller.
        day: the day, as `2026-05-07`.

        Raises StorageError.
        """
        return self._open_rows().calls_of(who, day)

    def count_call(self, who: str, day: str) -> None:
        """Count one call of somebody on a day.

        who: the key that the server has for the caller.
        day: the day, as `2026-05-07`.

        Raises StorageError.
        """
        self._open_rows().count_call(who, day)

    def close(self) -> None:
        """Close the ledger. The next use opens it again."""
        if self._rows is not None:
            self._rows.database.close()
            self._rows = None

    def _open_rows(self) -> AccessRows:
        """Open the ledger, and return the table.

        An older version kept the rows in a file, which is moved into the ledger first.
        """
        if self._rows is None:
            database = LedgerDatabase(self.layout.ledger)
            self._rows = AccessRows(database)
            # Callers make many of these tables, each for a short use, and do not close them.
            weakref.finalize(self, database.close)
        if self.layout.access.exists():
            self._take_over(self._rows)
        return self._rows

    def _take_over(self, rows: AccessRows) -> None:
        """Move the rows of an older version's file into the ledger, and remove the file.

        rows: the table in the ledger.

        Raises AccessRefused if the file cannot be read.
        """
        try:
            take_over_file(rows.database, self.layout.access, rows.take_over)
        except ValueError as error:
            raise AccessRefused(str(error), self.layout.access.name) from None
        except OSError as error:
            raise AccessRefused(reason(error), self.layout.access.name) from None
