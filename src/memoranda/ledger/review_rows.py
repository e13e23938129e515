"""The owner's answers to review questions, and the agents' requests, as rows of the ledger.

A step SET of a change writes such a row. So the row exists if and only if the change does, and an
undo restores the value before. The path of the step is `answer/KEY` or `request/KEY`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from sqlite3 import Connection
from typing import TYPE_CHECKING, Any

from memoranda.errors import Conflict
from memoranda.ledger.database import LedgerDatabase
from memoranda.sources.base import File, Stamp, sha256
from memoranda.sources.layout import PRIVATE

if TYPE_CHECKING:
    from memoranda.ledger.change import Touched
    from memoranda.sources.step import Step

ANSWER = "answer"
REQUEST = "request"
_NO_STAMP = Stamp(size=0, mtime_ns=0, inode=0)


def is_row(project: str, path: str) -> bool:
    """Whether the place of a step is a row with an answer or a request, and not a file."""
    return project == PRIVATE and row_place(path)[0] in (ANSWER, REQUEST)


def row_place(path: str) -> tuple[str, str]:
    """Return the kind and the key of the row at a step's path.

    `answer/3f2a` is `("answer", "3f2a")`.
    """
    kind, _, key = path.partition("/")
    return kind, key


class ReviewRows:
    """Reads, plans and writes the answers and requests of one home.

    folder: the private folder of the home, which is the root of the steps.
    """

    def __init__(self, database: LedgerDatabase, folder: str):
        self._database = database
        self._folder = folder

    def all(self, kind: str) -> dict[str, dict[str, Any]]:
        """Return all stored values of a kind, such as answers, by key. Raises StorageError."""
        rows = self._database.rows("select key, value from review where kind = ?", (kind,))
        return {row["key"]: json.loads(row["value"]) for row in rows}

    def value(self, kind: str, key: str) -> dict[str, Any] | None:
        """Return the value of one row, None if it does not exist. Raises StorageError."""
        data = self.bytes_at(f"{kind}/{key}")
        if data is None:
            return None
        return json.loads(data)

    def bytes_at(self, path: str) -> bytes | None:
        """Return the JSON of the row at a step's path, None if it does not exist."""
        sql = "select value from review where kind = ? and key = ?"
        row = self._database.row(sql, row_place(path))
        if row is None:
            return None
        return str(row["value"]).encode()

    def paths(self) -> list[str]:
        """Return the paths of all rows, such as `answer/3f2a`."""
        rows = self._database.rows("select kind, key from review order by kind, key")
        return [f"{row['kind']}/{row['key']}" for row in rows]

    # --- steps

    def step(self, kind: str, key: str, value: Any, *, kept: bool = True) -> Step:
        """Return the step that sets a row.

        kind: ANSWER for an answer of the owner, or REQUEST for a request of an agent.
        key: the key of the question or request.
        value: the new value, which JSON can express. None removes the row.
        kept: whether the history keeps the replaced value.
        """
        data = None
        if value is not None:
            data = json.dumps(value).encode()
        return self.step_at(f"{kind}/{key}", data, kept=kept)

    def step_at(self, path: str, data: bytes | None, *, kept: bool = True) -> Step:
        """Return the step that sets a row.

        path: the kind and the key of the row, such as `answer/3f2a`.
        data: the new value as JSON. None removes the row.
        kept: whether the history keeps the replaced value.
        """
        from memoranda.sources.step import Step, StepKind

        old_data = self.bytes_at(path)
        old = None
        if old_data is not None:
            old = File(old_data, _NO_STAMP, sha256(old_data))
        return Step(StepKind.SET, PRIVATE, self._folder, path, data=data, old=old, kept=kept)

    def apply(self, connection: Connection, steps: Iterable[Step]) -> None:
        """Carry out the steps that set rows, in the transaction that records them.

        Raises Conflict when a row is not as it was read.
        """
        from memoranda.sources.step import StepKind

        for step in steps:
            if step.do != StepKind.SET:
                continue
            present_data = self.bytes_at(step.path)
            data_as_read = step.old.data if step.old is not None else None
            if present_data != data_as_read:
                raise Conflict(step.path, _name_of(present_data), _name_of(data_as_read))
            self.put(connection, step.path, step.data)

    def put(self, connection: Connection, path: str, data: bytes | None) -> None:
        """Set the row at `path` to this JSON. None removes it."""
        place = row_place(path)
        if data is None:
            connection.execute("delete from review where kind = ? and key = ?", place)
            return
        sql = "insert or replace into review (kind, key, value) values (?, ?, ?)"
        connection.execute(sql, (*place, data.decode()))

    def store(self, path: str, data: bytes | None) -> None:
        """Set the row at `path` to the JSON that another machine wrote. None removes it.

        Raises StorageError.
        """
        with self._database.transaction(durable=False) as connection:
            self.put(connection, path, data)

    def take_back(self, connection: Connection, files: Sequence[Touched]) -> None:
        """Restore the values that a change replaced, because the change was not made after all.

        connection: in a transaction.
        files: the steps of the change, as the ledger recorded them.
        """
        from memoranda.sources.step import StepKind

        # Of several steps on a row, the first one has the value before the change, so it comes last
        for touched in reversed(files):
            if touched.do != StepKind.SET:
                continue
            old_data = None
            if touched.old is not None:
                sql = "select data from text where sha256 = ?"
                row = connection.execute(sql, (touched.old,)).fetchone()
                if row is not None:
                    old_data = bytes(row["data"])
            self.put(connection, touched.path, old_data)

    def paths_naming(self, names: Sequence[str]) -> list[str]:
        """Return the paths of rows whose key contains one of these names."""
        paths: list[str] = []
        for path in self.paths():
            _, key = row_place(path)
            if any(name in key for name in names):
                paths.append(path)
        return paths


def _name_of(data: bytes | None) -> str:
    """Return a short name of a value for errors: 8 digits of its SHA-256, or "none"."""
    if data is None:
        return "none"
    return sha256(data)[:8]
