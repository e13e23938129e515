"""Files used in place, and their changes in a home's history: all or nothing, logged if and only if made.

Before a change reaches a graph file, the lines that go are kept, what is to come is noted in one record of the home,
and the journal gets its line. A record found when the home's lock is taken belongs to a writer that died: lines
that came only in part are completed, and a change that had not begun leaves the journal again. The order of
locks is always the home's, then the file's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from commonplace.errors import CommonplaceError, NotFound, StorageError
from commonplace.store.journal import LINES, Change, History, RedoRecord, Touched, redo_lines
from commonplace.store.layout import Layout


@dataclass(slots=True)
class LineChange:
    """A change that is about to reach the file at `place`.

    `numbers` are those, from 0 and in the file as it was, of the lines that change or go; `old` and `new` what they
    were and become (empty: removed), `added` the other new lines. If these are appended, `size` is the file's size
    before and `data` the bytes to come; else `size` is None. `inode` is that of the file, or of the one that will
    replace it. Where the file is overwritten `whole` is its old content and `data` the new one.
    """

    place: str
    verb: str
    numbers: list[int]
    old: list[bytes]
    new: list[bytes]
    added: list[bytes]
    inode: int = 0
    size: int | None = None
    data: bytes = b""
    whole: bytes | None = None


@dataclass(frozen=True, slots=True)
class KeptLines:
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

    def wipe(self) -> None:
        """Drop what older records left in the file; none may wait."""
        self._record.wipe()

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Inside, a change may `begin`; when it fails it leaves the journal again."""
        from commonplace.store.inplace.locked_file import Unconfirmed

        try:
            yield
        except Unconfirmed:
            self._clear()
            raise
        except (CommonplaceError, OSError):
            self._rollback()
            raise
        self._clear()

    def begin(self, change: Change, lines: LineChange) -> None:
        """Keep the lines that go and log `change`, right before `lines` reaches its file. Raises OSError."""
        self._rollback()  # a rename was begun before and did not work
        size = sum(map(len, (*lines.new, *lines.added)))
        touched = Touched(LINES, change.project, change.path, file=lines.place, size=size)
        if lines.old:
            touched.old = self._history.keep_bytes(b"".join(lines.old))
        touched.new = self._keep_new(lines.numbers, lines.new, lines.added, durable=False)
        change.files = [touched]
        if lines.whole:
            whole = self._history.keep_bytes(lines.whole)
            change.files.insert(0, Touched(LINES, change.project, change.path, old=whole))
        self._begun = change
        row = {"change": change.dump().decode(), "place": lines.place, "size": lines.size, "inode": lines.inode}
        self._record.begin({**row, "data": _text(lines.data)})
        if len(lines.added) > 1:
            self._record.sync()  # the file may come back from a power failure with some of them
        self._history.append(change, durable=bool(lines.old))

    def _keep_new(self, at: Sequence[int], new: Iterable[bytes], added: Iterable[bytes], *, durable: bool) -> str:
        row = {"at": at, "new": [*map(_text, new)], "added": [*map(_text, added)]}
        return self._history.keep_bytes(json.dumps(row).encode(), durable=durable)

    def keep(self, touched: Touched, replaced: Sequence[tuple[int, bytes, bytes]], added: Sequence[bytes]) -> Touched:
        """The step with only these lines kept of it. Raises OSError."""
        old = b"".join(line for _, line, _ in replaced)
        digest = self._history.keep_bytes(old) if old else None
        new = self._keep_new([at for at, _, _ in replaced], [line for _, _, line in replaced], added, durable=True)
        return replace(touched, old=digest, new=new)

    def _rollback(self) -> None:
        if self._begun is not None:
            self._history.retract(self._begun)
            self._clear()

    def _clear(self) -> None:
        if self._begun is not None:
            self._begun = None
            self._record.drop()

    def recover(self) -> None:
        """Complete or take back what a writer that died left."""
        self._begun = None
        self._record.refresh()
        if not self.waits():
            return
        from commonplace.store.inplace.locked_file import LockedFile

        try:
            for row in redo_lines(self._record.read()):
                change = Change.load(row["change"].encode())
                latest = next(self._history.changes(), None)
                is_logged = latest is not None and latest.dump() == change.dump()
                file, data = LockedFile(Path(row["place"])), row["data"].encode("utf-8", "surrogateescape")
                if row["size"] is not None:
                    is_made = file.complete_append(row["size"], data, row["inode"])
                elif data:
                    old = self._history.text(change.files[0].old or "", change.path)
                    is_made = file.complete_overwrite(old, data, row["inode"])
                else:
                    stamp = file.stamp()
                    is_made = stamp is not None and stamp.inode == row["inode"]
                if is_logged and not is_made:
                    self._history.retract(change)
                elif is_made and not is_logged:  # a power failure took the line
                    change.number = self._history.last + 1
                    self._history.append(change)
        except (ValueError, KeyError, TypeError):
            pass  # it died while it wrote the record: nothing was changed
        except (OSError, NotFound, StorageError):
            return  # the file is out of reach; the record waits for it
        self._record.drop()

    def kept(self, touched: Touched) -> KeptLines:
        """What the history holds of a change to lines. Raises NotFound, StorageError when it is gone or damaged."""
        row = json.loads(self._history.text(touched.new or "", touched.path))
        old = self._history.text(touched.old, touched.path) if touched.old else b""
        lines = [line + b"\n" for line in old.removesuffix(b"\n").split(b"\n")] if old else []
        new, added = ([line.encode("utf-8", "surrogateescape") for line in row[key]] for key in ("new", "added"))
        return KeptLines(list(zip(row["at"], lines, new, strict=True)), added)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
