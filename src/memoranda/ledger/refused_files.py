"""Remembers the changes whose files the disk refused to sync, until they were written again.

After a failed sync, the system may forget that the bytes of the file are not on the disk, and the
next sync of the same file succeeds. So such a file is written once more, as a new file.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress

from memoranda.errors import StorageError
from memoranda.ledger.database import LedgerDatabase
from memoranda.sources.step import Step, StepKind

# Stands before the boot of a refused change in the table `unsynced`.
_MARK = "refused "
# Seconds until the files are written again: the first time, and at most.
_FIRST_PAUSE = 2.0
_LONGEST_PAUSE = 300.0
_COUNT = f"select count(*) as number from unsynced where boot like '{_MARK}%'"
# Whether a change that is synced already touched the file after the change with this number.
_TOUCHED_LATER = (
    "select 1 from step where path = ? and project = ? and change > ? "
    "and change not in (select change from unsynced) limit 1"
)


class RefusedFiles:
    """The refused changes of a ledger.

    database: the ledger's database, whose table `unsynced` has them.
    boot: the present start of the machine (`boot_id`).
    """

    def __init__(self, database: LedgerDatabase, boot: str):
        self._database = database
        self._boot = boot
        self.mark = f"{_MARK}{boot}"
        """The boot of a change that was refused since the machine was started."""
        self.pause = 0.0
        """Seconds between the last two tries, 0.0 if nothing is refused."""
        self._next_try = 0.0
        # Whether this process could not sync files, and has not written them again
        self._has_new = False
        # The error of the system, such as `[Errno 5] Input/output error`
        self._reason = ""

    def record(self, numbers: Sequence[int], reason: str) -> None:
        """Record that the disk refused the files of these changes.

        reason: the error of the system in words.
        """
        self._reason = reason
        self._has_new = True
        # Each time twice as long, between the two limits
        self.pause = min(max(_FIRST_PAUSE, self.pause * 2), _LONGEST_PAUSE)
        self._next_try = time.monotonic() + self.pause
        rows = [(self.mark, number, self._boot) for number in numbers]
        sql = "update unsynced set boot = ? where change = ? and boot = ?"
        # If the disk refuses this row, too, the change is still in the table as unsynced
        with suppress(StorageError), self._database.transaction(durable=False) as connection:
            connection.executemany(sql, rows)

    def record_written(self) -> None:
        """Record that all files that were refused are on the disk now."""
        self.pause = 0.0
        self._has_new = False
        self._reason = ""

    @property
    def is_due(self) -> bool:
        """Whether files that this process could not sync should be tried again now."""
        return self._has_new and time.monotonic() >= self._next_try

    def trouble(self) -> str:
        """Describe the refused files in a sentence, "" if there are none. Raises StorageError."""
        row = self._database.row(_COUNT)
        number = row["number"] if row is not None else 0
        if not number:
            return ""
        reason = f" ({self._reason})" if self._reason else ""
        changes = "1 change" if number == 1 else f"{number} changes"
        return (
            f"the disk refused the files of {changes}{reason}: the ledger has their texts, "
            "and they are written again with the next change or round of upkeep"
        )

    def is_replaced(self, number: int, step: Step) -> bool:
        """Whether a later change touched the file of a step, and is on the disk already.

        number: the number of the change that has the step.
        """
        if step.do not in (StepKind.PUT, StepKind.REMOVE):
            return False
        values = (step.path, step.project, number)
        return self._database.row(_TOUCHED_LATER, values) is not None
