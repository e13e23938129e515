"""Changes to files of records used in place, in the history: all or nothing, logged if and only if made.

Before a change reaches the file, the lines that go are kept, what is to come is noted in one record of the home,
and the journal gets its line. A record found when the home's lock is taken belongs to a writer that died: lines
that came only in part are completed, and a change that had not begun leaves the journal again. The order of
locks is always the home's, then the file's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commonplace.errors import CommonplaceError, NotFound, StorageError
from commonplace.store.journal import LINES, Change, History, RedoRecord, Touched, redo_lines
from commonplace.store.layout import Layout

if TYPE_CHECKING:
    from commonplace.store.records import Coming


@dataclass(frozen=True, slots=True)
class Said:
    """What the history holds of one change to lines. `replaced`: (number, line before, line after, empty for one
    that went); numbers from 0, in the file before."""

    replaced: list[tuple[int, bytes, bytes]]
    added: list[bytes]


class LineChanges:
    """The record of one home. For the holder of the home's lock, but for `waits`."""

    def __init__(self, layout: Layout, history: History):
        self._record = RedoRecord(layout.lines)
        self._history = history
        self._begun: Change | None = None

    def close(self) -> None:
        """Release the record."""
        self._record.close()

    def waits(self) -> bool:
        """Whether a record is there: of a writer at work, or of one that died."""
        return self._record.waits()

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Inside, a change may `begin`; when it fails it leaves the journal again."""
        from commonplace.store.records import Unconfirmed

        try:
            yield
        except Unconfirmed:
            self._clear()
            raise
        except (CommonplaceError, OSError):
            self._take_back()
            raise
        self._clear()

    def begin(self, change: Change, coming: Coming) -> None:
        """Keep the lines that go and log `change`, right before `coming` reaches its file. Raises OSError."""
        self._take_back()  # it was begun in another way that did not work
        touched = Touched(LINES, change.project, change.path, file=coming.place)
        if coming.old:
            touched.old = self._history.keep_bytes(b"".join(coming.old))
        said = {"at": coming.at, "new": [*map(_text, coming.new)], "added": [*map(_text, coming.added)]}
        touched.new = self._history.keep_bytes(json.dumps(said).encode(), durable=False)
        change.files = [touched]
        if coming.whole:
            whole = self._history.keep_bytes(coming.whole)
            change.files.insert(0, Touched(LINES, change.project, change.path, old=whole))
        self._begun = change
        self._note(change, coming)
        self._history.append(change, durable=bool(coming.old))

    def _note(self, change: Change, coming: Coming) -> None:
        self._record.begin({
            "change": change.dump().decode(), "place": coming.place, "size": coming.size, "inode": coming.inode,
            "data": _text(coming.data),
        })  # fmt: skip
        if len(coming.added) > 1:
            self._record.sync()  # the file may come back from a power failure with some of them

    def _take_back(self) -> None:
        if self._begun is not None:
            self._history.retract(self._begun)
            self._clear()

    def _clear(self) -> None:
        if self._begun is not None:
            self._begun = None
            self._record.drop()

    def recover(self) -> None:
        """See to what a writer that died left."""
        self._begun = None
        self._record.refresh()
        if not self.waits():
            return
        try:
            for row in redo_lines(self._record.read()):
                self._settle(Change.load(row["change"].encode()), row)
        except (ValueError, KeyError, TypeError):
            pass  # it died while it wrote the record: nothing was changed
        except (OSError, NotFound, StorageError):
            return  # the file is out of reach; the record waits for it
        self._record.drop()

    def _settle(self, change: Change, row: dict[str, Any]) -> None:
        latest = next(self._history.changes(), None)
        is_logged = latest is not None and latest.dump() == change.dump()
        is_made = self._is_made(change, row)
        if is_logged and not is_made:
            self._history.retract(change)
        elif is_made and not is_logged:  # a power failure took the line
            change.number = self._history.last + 1
            self._history.append(change)

    def _is_made(self, change: Change, row: dict[str, Any]) -> bool:
        """Whether the change came to its file, after completing what came only in part. Raises OSError."""
        from commonplace.store.records import Records

        records = Records(Path(row["place"]))
        if row["size"] is not None:
            return records.complete(row["size"], _bytes(row["data"]), row["inode"])
        if row["data"]:
            old = self._history.text(change.files[0].old or "", change.path)
            return records.complete_in_place(old, _bytes(row["data"]), row["inode"])
        return records.inode == row["inode"]

    def said(self, touched: Touched) -> Said | None:
        """What the history holds of a change to lines; None for the whole content kept beside. Raises NotFound,
        StorageError when it is gone or damaged."""
        if touched.new is None:
            return None
        said = json.loads(self._history.text(touched.new, touched.path))
        old = self._history.text(touched.old, touched.path) if touched.old else b""
        return Said(list(zip(said["at"], _lines(old), map(_bytes, said["new"]), strict=True)),
                    [*map(_bytes, said["added"])])  # fmt: skip


def _lines(data: bytes) -> list[bytes]:
    """The lines in `data`; only `\\n` ends one."""
    return [line + b"\n" for line in data.removesuffix(b"\n").split(b"\n")] if data else []


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
