"""Records changes of lines in files used in place, such as a graph file of another program.

The ledger keeps the removed and the new lines, and a record of how the file is written. The record
is deleted once the lines are in the file. So a record that is found later is of a writer that died:
lines that were written in part are completed, and a change that had not begun is deleted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from sqlite3 import Connection
from typing import TYPE_CHECKING

from memoranda.errors import NotFound, StorageError
from memoranda.ledger.change import Touched
from memoranda.ledger.history import History
from memoranda.sources.line_change import KeptLines
from memoranda.sources.step import Step, StepKind

if TYPE_CHECKING:
    from memoranda.sources.line_change import LineChange

# The arguments of `encode` and `decode` that keep any bytes in a JSON text.
_ANY_BYTES = ("utf-8", "surrogateescape")


@dataclass(frozen=True, slots=True)
class _WriteRecord:
    """How the lines of a change get into their file: a row of the table `line_change`.

    place: the path of the file.
    size: the size of the file before lines are appended. None if it is written as a whole.
    inode: the number of the file in which the lines are at the end.
    data: the bytes to append, or to overwrite the file with. b"" if a new file takes its place.
    """

    place: str
    size: int | None
    inode: int
    data: bytes

    def as_json(self) -> bytes:
        """Return the record as the table has it."""
        row = asdict(self) | {"data": self.data.decode(*_ANY_BYTES)}
        return json.dumps(row).encode()

    @classmethod
    def of_json(cls, data: bytes) -> _WriteRecord:
        """Return the record that `as_json` has encoded."""
        row = json.loads(data)
        return cls(row["place"], row["size"], row["inode"], row["data"].encode(*_ANY_BYTES))


class LineChanges:
    """Records, completes and reads the changes of lines of one home.

    The home's lock must be held.
    """

    def __init__(self, history: History):
        self._history = history
        self._database = history.database

    def touched_by(self, connection: Connection, step: Step) -> list[Touched]:
        """Keep the texts of a step in the history. Returns the records of the step.

        The last record has the removed lines (`old`) and a description of the new ones (`new`). If
        the file may be overwritten in place, the record before it has the whole old text.

        connection: in the transaction that records the change.

        Raises StorageError.
        """
        lines = step.lines
        assert lines is not None
        touched = Touched(
            StepKind.LINES,
            step.project,
            step.path,
            file=lines.place,
            root=step.root,
            size=len(lines.written),
        )
        if lines.old:
            touched.old = self._history.keep_text(connection, b"".join(lines.old))
        new = _new_lines(lines.numbers, lines.new, lines.added)
        touched.new = self._history.keep_text(connection, new)
        old_whole_text = lines.write.whole
        if not old_whole_text:
            return [touched]
        old_digest = self._history.keep_text(connection, old_whole_text)
        return [replace(touched, old=old_digest, new=None, size=0), touched]

    def begin(self, connection: Connection, number: int, lines: LineChange) -> None:
        """Record how the lines of a change get into their file, before they are written.

        connection: in the transaction that records the change.
        number: the number of the change.
        lines: how the lines get into the file.
        """
        write = lines.write
        record = _WriteRecord(lines.place, write.size, write.inode, write.data)
        values = (number, record.as_json())
        connection.execute("insert into line_change (change, record) values (?, ?)", values)

    def end(self, number: int) -> None:
        """Delete the record of `begin`: the lines of the change are in their file.

        Raises StorageError.
        """
        with self._database.transaction(durable=False) as connection:
            connection.execute("delete from line_change where change = ?", (number,))

    def keep(self, touched: Touched, lines: KeptLines) -> Touched:
        """Store the lines that a step changed in the history, in place of the whole texts.

        Returns the record of the step, with the hashes of the stored lines.

        touched: the record of the step.
        lines: the lines that it replaced and added.

        Raises StorageError.
        """
        removed_text = b"".join(old_line for _, old_line, _ in lines.replaced)
        numbers = [number for number, _, _ in lines.replaced]
        new_lines = [new_line for _, _, new_line in lines.replaced]
        description = _new_lines(numbers, new_lines, lines.added)
        with self._database.transaction() as connection:
            old = None
            if removed_text:
                old = self._history.keep_text(connection, removed_text)
            new = self._history.keep_text(connection, description)
        return replace(touched, old=old, new=new)

    def recover(self) -> None:
        """Complete the changes of a writer that died, or delete those that it had not begun."""
        for row in self._database.rows("select * from line_change order by change"):
            number = row["change"]
            record = _WriteRecord.of_json(row["record"])
            try:
                has_all_lines = self._complete_file(number, record)
                if has_all_lines:
                    self.end(number)
                else:
                    self._history.retract([number])
            except (OSError, NotFound, StorageError):
                # The file is out of reach; the record waits for it
                continue

    def _complete_file(self, number: int, record: _WriteRecord) -> bool:
        """Write the rest of the lines of a change, if a part of them is in the file.

        number: the number of the change.
        record: how its lines get into the file.

        Returns whether all lines are in the file now. False if none of them was.
        """
        # Most homes never need this module
        from memoranda.sources.locked_file import LockedFile

        file = LockedFile(Path(record.place))
        if record.size is not None:
            return file.complete_append(record.size, record.data, record.inode)
        if record.data:
            whole_before = self._whole_before(number)
            return file.complete_overwrite(whole_before, record.data, record.inode)
        # A new file was to be renamed over the old one. Its inode shows whether it is there.
        stamp = file.stamp()
        return stamp is not None and stamp.inode == record.inode

    def _whole_before(self, number: int) -> bytes:
        """Return the whole text of the file before a change that writes it in place."""
        change = self._history.change(number)
        if change is None:
            return b""
        return self._history.text(change.files[0].old or "", change.path)

    def lines_of(self, touched: Touched) -> KeptLines:
        """Return the lines of a change from the history.

        touched: the last value of `touched_by` for the change.

        Raises NotFound if they are gone, StorageError if they are damaged.
        """
        row = json.loads(self._history.text(touched.new or "", touched.path))
        removed_text = b""
        if touched.old:
            removed_text = self._history.text(touched.old, touched.path)
        old_lines: list[bytes] = []
        if removed_text:
            lines = removed_text.removesuffix(b"\n").split(b"\n")
            old_lines = [line + b"\n" for line in lines]
        new_lines = [line.encode(*_ANY_BYTES) for line in row["new"]]
        added_lines = [line.encode(*_ANY_BYTES) for line in row["added"]]
        # The number of each changed line, its old text and its new text
        changed_lines = list(zip(row["at"], old_lines, new_lines, strict=True))
        return KeptLines(changed_lines, added_lines)


def _new_lines(numbers: Sequence[int], new: Iterable[bytes], added: Iterable[bytes]) -> bytes:
    """Return the new and added lines as JSON, as the history stores them.

    `{"at": [3], "new": ["line 3 after the change"], "added": ["a line at the end"]}`

    numbers: the numbers of the changed lines.
    new: these lines after the change.
    added: the lines added at the end.
    """
    row = {
        "at": numbers,
        "new": [line.decode(*_ANY_BYTES) for line in new],
        "added": [line.decode(*_ANY_BYTES) for line in added],
    }
    return json.dumps(row).encode()
