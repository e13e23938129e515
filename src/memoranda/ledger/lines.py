"""Changes of lines in a graph file, all or nothing, recorded if and only if they are made.

Before a change reaches the file, it is recorded in the ledger, with the lines to remove and the
lines to add. A record that is found when the home's lock is taken belongs to a writer that died. If
its lines were written only in part, they are completed. If it had not begun, the change is removed
from the ledger.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from sqlite3 import Connection
from typing import TYPE_CHECKING, NamedTuple

from memoranda.errors import MemorandaError, NotFound, StorageError
from memoranda.ledger.change import Change, Touched
from memoranda.ledger.history import History
from memoranda.sources.step import LINES

if TYPE_CHECKING:
    from memoranda.sources.line_change import LineChange

_BYTES = "utf-8", "surrogateescape"


class KeptLines(NamedTuple):
    """The lines of one change, as the history keeps them.

    replaced: (number, line before, line after). Numbers count from 0, in the file before. The line
        after is empty if the line was removed.
    added: lines at the end.
    """

    replaced: list[tuple[int, bytes, bytes]]
    added: list[bytes]


class LineChanges:
    """The changes of lines of one home. For the holder of the home's lock, except `waits`."""

    is_recording = True
    """Whether changes of files used in place are in the history of this home."""

    def __init__(self, history: History):
        self._history = history
        self._database = history.database
        self._begun: Change | None = None

    def waits(self) -> bool:
        """Whether a change is under way, or its writer died."""
        return self._database.row("select 1 from line_change limit 1") is not None

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Inside, a change may `begin`; when it fails the ledger does not have it."""
        # 3 ms, which most homes need never: they have no files of other programs
        from memoranda.sources.locked_file import Unconfirmed

        try:
            yield
        except Unconfirmed:
            self._clear()
            raise
        except (MemorandaError, OSError):
            self._rollback()
            raise
        self._clear()

    def begin(self, change: Change, lines: LineChange, root: str = "") -> None:
        """Record `change`, right before `lines` reaches its file. Raises StorageError.

        root: as in `Touched`.
        """
        # A rename was begun before and did not work
        self._rollback()
        record = {
            "place": lines.place,
            "size": lines.size,
            "inode": lines.inode,
            "data": lines.data.decode(*_BYTES),
        }
        size = sum(map(len, (*lines.new, *lines.added)))
        touched = Touched(
            LINES, change.project, change.path, file=lines.place, root=root, size=size
        )
        # One line that is added is synced with its file; of several, some could come alone
        is_durable = bool(lines.old) or len(lines.added) > 1
        with self._database.transaction(durable=is_durable) as connection:
            if lines.old:
                touched.old = self._history.keep_text(connection, b"".join(lines.old))
            new = _new_lines(lines.numbers, lines.new, lines.added)
            touched.new = self._history.keep_text(connection, new)
            change.files = [touched]
            if lines.whole:
                whole = self._history.keep_text(connection, lines.whole)
                before = replace(touched, old=whole, new=None, size=0)
                change.files.insert(0, before)
            self._history.record(connection, [change])
            self._insert(connection, change.number, json.dumps(record))
        self._begun = change

    def _insert(self, connection: Connection, number: int, record: str) -> None:
        connection.execute("insert into line_change values (?, ?)", (number, record.encode()))

    def keep(
        self, touched: Touched, replaced: Sequence[tuple[int, bytes, bytes]], added: Sequence[bytes]
    ) -> Touched:
        """The step with only these lines kept of it. Raises StorageError."""
        old = b"".join(line for _, line, _ in replaced)
        new = _new_lines([at for at, _, _ in replaced], [line for _, _, line in replaced], added)
        with self._database.transaction() as connection:
            if old:
                digest = self._history.keep_text(connection, old)
            else:
                digest = None
            return replace(touched, old=digest, new=self._history.keep_text(connection, new))

    def _rollback(self) -> None:
        if self._begun is not None:
            self._history.retract([self._begun.number])
            self._begun = None

    def _clear(self) -> None:
        if self._begun is not None:
            self._forget(self._begun.number)
            self._begun = None

    def _forget(self, number: int) -> None:
        with self._database.transaction(durable=False) as connection:
            connection.execute("delete from line_change where change = ?", (number,))

    def recover(self) -> None:
        """Complete or take back what a writer that died left."""
        self._begun = None
        for row in self._database.rows("select * from line_change order by change"):
            try:
                self._complete(row["change"], json.loads(row["record"]))
            except (OSError, NotFound, StorageError):
                # The file is out of reach; the record waits for it
                continue

    def _complete(self, number: int, record: dict[str, object]) -> None:
        from memoranda.sources.locked_file import LockedFile

        file = LockedFile(Path(str(record["place"])))
        data = str(record["data"]).encode(*_BYTES)
        inode = int(str(record["inode"]))
        if record["size"] is not None:
            is_made = file.complete_append(int(str(record["size"])), data, inode)
        elif data:
            is_made = file.complete_overwrite(self._whole_before(number), data, inode)
        else:
            stamp = file.stamp()
            is_made = stamp is not None and stamp.inode == inode
        if is_made:
            self._forget(number)
        else:
            self._history.retract([number])

    def _whole_before(self, number: int) -> bytes:
        """The text of the file before a change that writes it in place."""
        change = self._history.change(number)
        if change is None:
            return b""
        return self._history.text(change.files[0].old or "", change.path)

    def kept(self, touched: Touched) -> KeptLines:
        """The lines of a change, from the history.

        Raises NotFound, StorageError if they are gone or damaged.
        """
        row = json.loads(self._history.text(touched.new or "", touched.path))
        if touched.old:
            old = self._history.text(touched.old, touched.path)
        else:
            old = b""
        lines: list[bytes] = []
        if old:
            lines = [line + b"\n" for line in old.removesuffix(b"\n").split(b"\n")]
        new = [line.encode(*_BYTES) for line in row["new"]]
        added = [line.encode(*_BYTES) for line in row["added"]]
        return KeptLines(list(zip(row["at"], lines, new, strict=True)), added)


def _new_lines(numbers: Sequence[int], new: Iterable[bytes], added: Iterable[bytes]) -> bytes:
    """The new and added lines, as the history stores them."""
    row = {
        "at": numbers,
        "new": [line.decode(*_BYTES) for line in new],
        "added": [line.decode(*_BYTES) for line in added],
    }
    return json.dumps(row).encode()
