"""The history (a journal of changes, and the texts they replaced) and the redo record of the change
under way.

`history/journal.jsonl` holds one JSON line per change, numbered from 1; a line is the commit mark
of its change. `history/objects/ab/<sha256>` holds each replaced text once. The redo record is a
file of lines, each JSON and a checksum that goes on from the line before: the temp files to come,
then the steps of each change. It counts from a leading `{` to the first NUL; an older, longer
record may show behind that. It is dropped by a mark over its first byte: to truncate the file would
cost more than all the syncs of a small change.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import Any
from zlib import crc32

from memoranda.clock import parse_stamp
from memoranda.errors import NotFound, StorageError
from memoranda.note.model import Provenance
from memoranda.store.base import File, sha256
from memoranda.store.files import (
    is_at,
    make_private,
    open_if_may,
    open_own,
    read_fd,
    reason,
    sync_folder,
    write_file,
)
from memoranda.store.layout import Layout

LINES = "lines"
ERASE = "erase"
"""The verb of a line that says that something was erased; one without details stands for a line
about it.
"""
FOLD = "fold"
"""The verb of writing counts of reads into files: upkeep that nobody sees as a change
(docs/format.md).
"""
ORIGINS = "origins"
"""The verb of the line, numbered 0, that keeps where texts come from whose changes were purged."""
IMPORTING = ("import", "ingest")
_BLOCK = 1 << 16
_FIRST_BLOCK = 1 << 12
"""Bytes read of the journal at a time, from its end: often only the last line is wanted."""
_NEW = ".new"
CANNOT_LINK = {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP, errno.EACCES}


@dataclass(slots=True)
class Touched:
    """One file or folder a change touched.

    `do`: `put`, `remove`, `move` (file or folder, to `to`), `mkdir`, `rmdir`, `unlink` (a symlink
    to
    `link`), `lines` (of the absolute `file` used in place; `old` is what went, `new` tells what
    came: inplace).
    `old`, `new`: SHA-256 of the text before and after; `mode` the file's mode before. `root`: the
    project's real
    folder, where no other process of the home would look for it, else empty. `size`: of the text
    after, in bytes.
    `by`: what is to be said of where this text comes from, besides what the change says: see
    `Change.provenance`.
    """

    do: str
    project: str
    path: str
    to: str = ""
    old: str | None = None
    new: str | None = None
    mode: int | None = None
    scope: str = "global"
    link: str = ""
    kept: bool = True
    file: str = ""
    root: str = ""
    size: int = 0
    by: dict[str, str] | None = None


@dataclass(slots=True)
class Change:
    """One line of the journal. `path` is what the change was about; `undoes` names a change taken
    back; `details` are what the caller said of it (words to texts and numbers), None for nothing.
    `run` is the number of the first change of the job's run that made it; of an undo, that the
    whole run is taken back. `by`: the client, session and tool it came through, as far as known."""

    number: int
    time: str
    verb: str
    project: str
    path: str
    agent: str | None
    face: str | None
    files: list[Touched] = field(default_factory=list)
    undoes: int | None = None
    details: dict[str, Any] | None = None
    run: int | None = None
    by: dict[str, str] | None = None

    def provenance(self, each: Touched) -> Provenance:
        """Where the text that this change wrote to the file comes from; also of lines of older
        versions.
        """
        who, trust = ("owner", "owner") if self.agent is None else (f"agent:{self.agent}", "agent")
        if self.verb in IMPORTING:
            who = who if self.agent else "import"
            trust = "import"
        said: dict[str, Any] = {"who": who, "trust": trust, "client": self.face, "time": self.time}
        return Provenance(**said | (self.by or {}) | (each.by or {}))

    def texts(self) -> Iterator[Touched]:
        """The files whose text this change wrote, removed or moved."""
        return (each for each in self.files if each.do in ("put", "remove", "move"))

    @property
    def root(self) -> str:
        """The folder of its project, where no other process would look for it, else empty: see
        Touched.
        """
        return next((each.root for each in self.files if each.project == self.project), "")

    def essence(self) -> tuple[object, ...]:
        """What tells it from other changes under whatever number."""
        files = [(each.do, each.project, each.path, each.to, each.new) for each in self.files]
        return self.time, self.verb, self.project, self.path, files

    def dump(self) -> bytes:
        """The change as one JSON line; fields of a file with their default value are left out."""
        row: dict[str, Any] = {"change": self.number, "time": self.time, "verb": self.verb}
        row |= {"project": self.project, "path": self.path, "agent": self.agent, "face": self.face}
        more = {
            "undoes": self.undoes,
            "details": self.details or None,
            "run": self.run,
            "by": self.by or None,
        }
        row |= {key: value for key, value in more.items() if value is not None}
        row["files"] = [
            {name: value for name, usual in _FIELDS if (value := getattr(each, name)) != usual}
            for each in self.files
        ]
        return _ENCODER.encode(row).encode() + b"\n"

    @classmethod
    def load(cls, line: bytes) -> Change:
        """The change a JSON line describes. Raises ValueError when it is none."""
        row = json.loads(line)
        try:
            files = [Touched(**each) for each in row["files"]]
            return cls(
                row["change"],
                row["time"],
                row["verb"],
                row["project"],
                row["path"],
                row.get("agent"),
                row.get("face"),
                files,
                row.get("undoes"),
                row.get("details"),
                row.get("run"),
                row.get("by"),
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"not a change: {error}") from None


_FIELDS = [(each.name, each.default) for each in fields(Touched)]
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_PLAIN_ENCODER = json.JSONEncoder(separators=(",", ":"))


class History:
    """The journal and the objects of one home. Writing is for the holder of the home's lock."""

    def __init__(self, layout: Layout):
        self._layout = layout
        self._fd, self._is_writable = open_if_may(layout.journal)
        self._size = -1
        self._last = 0
        self.staged: list[Change] = []
        """Changes that are to be appended together, in order; they count as if they had been."""

    def close(self) -> None:
        os.close(self._fd)

    def refresh(self) -> None:
        """See what other processes appended or purged. Called when the lock is taken."""
        try:
            here = os.fstat(self._fd)
            there = os.stat(self._layout.journal)
            moved = here.st_ino != there.st_ino
        except FileNotFoundError:
            moved = True
        if moved or not self._is_writable:
            make_private(self._layout.objects)
            fresh = open_own(self._layout.journal)
            os.close(self._fd)
            self._fd = fresh
            self._is_writable = True
            self._size = -1
        size = os.fstat(self._fd).st_size
        if size == self._size:
            return
        if self._size < 0:
            with suppress(FileNotFoundError):
                # Left by a purge that was killed
                os.unlink(f"{self._layout.journal}{_NEW}")
        if size and os.pread(self._fd, 1, size - 1) != b"\n":
            # A line cut off by a power failure: close it, so that it spoils no other.
            os.pwrite(self._fd, b"\n", size)
            size += 1
        self._last = next((change.number for change in self.changes()), 0)
        self._size = size

    @property
    def last(self) -> int:
        """The number of the latest change, 0 when there is none."""
        if self.staged:
            return self.staged[-1].number
        return self._last

    def append(self, change: Change, *, durable: bool = True) -> None:
        """Commit `change`: its line is durable on return, unless told otherwise. Raises OSError
        with the journal as before."""
        self.append_lines(change.dump(), change.number, durable=durable)

    def append_lines(self, lines: bytes, last: int, *, durable: bool = True) -> None:
        """The same for the lines of changes numbered one after the other up to `last`, with one
        wait for the disk.
        """
        size = os.fstat(self._fd).st_size
        try:
            done = 0
            while done < len(lines):
                done += os.pwrite(self._fd, lines[done:], size + done)
            if durable:
                os.fdatasync(self._fd)
        except OSError:
            os.ftruncate(self._fd, size)
            raise
        self._size = size + len(lines)
        self._last = last

    def retract(self, change: Change) -> None:
        """Take the line of `change` back, if it is the last one, because the change was not made."""
        line = change.dump()
        size = os.fstat(self._fd).st_size
        if size >= len(line) and os.pread(self._fd, len(line), size - len(line)) == line:
            os.ftruncate(self._fd, size - len(line))
            self._size = -1
            self.refresh()

    def changes(self, *, origins: bool = False) -> Iterator[Change]:
        """All changes, newest first, with `origins` the line of purged ones too; lines that cannot
        be read are passed over."""
        yield from self.staged[::-1]
        try:
            fd = open_own(self._layout.journal, os.O_RDONLY)
        # Nothing was changed yet in a home that is read-only now
        except FileNotFoundError:
            return
        try:
            at = os.fstat(fd).st_size
            tail = b""
            size = _FIRST_BLOCK
            while at > 0:
                start = max(0, at - size)
                tail, *lines = (os.pread(fd, at - start, start) + tail).split(b"\n")
                # A long line is read in few parts
                at = start
                size = max(_BLOCK, len(tail))
                for line in filter(bytes.strip, reversed([tail, *lines] if at == 0 else lines)):
                    with suppress(ValueError):
                        change = Change.load(line)
                        if origins or change.verb != ORIGINS:
                            yield change
        finally:
            os.close(fd)

    def object_path(self, digest: str) -> str:
        """Where the text with this SHA-256 lies, if kept."""
        return os.path.join(self._layout.objects, digest[:2], digest)

    def keep(self, old: File, name: str, folder: int) -> None:
        """Keep the text of file `name` in the open `folder` by linking its inode, else by a copy.

        Raises OSError.
        """
        place = self.object_path(old.etag)
        try:
            try:
                os.link(name, place, src_dir_fd=folder, follow_symlinks=False)
            except FileNotFoundError:
                make_private(self._layout.objects / old.etag[:2])
                os.link(name, place, src_dir_fd=folder, follow_symlinks=False)
        except FileExistsError:
            if self._is_sound(old.etag):
                return
            # Somebody who kept that file open wrote into it: it is no longer that text
            os.unlink(place)
            self.keep(old, name, folder)
        except OSError as error:
            if error.errno not in CANNOT_LINK:
                raise
            write_file(place, old.data)

    def keep_bytes(self, data: bytes, *, durable: bool = True) -> str:
        """Keep a text that is no file of its own, durable on return unless told otherwise. Returns
        its SHA-256. Raises OSError."""
        digest = sha256(data)
        place = self.object_path(digest)
        make_private(self._layout.objects / digest[:2])
        try:
            write_file(place, data, durable=durable)
        except FileExistsError:
            # Its writer died before all of it was there
            if not self._is_sound(digest):
                os.unlink(place)
                write_file(place, data, durable=durable)
        return digest

    def _is_sound(self, digest: str) -> bool:
        try:
            self.text(digest, digest)
        except (NotFound, StorageError):
            return False
        return True

    def text(self, digest: str, path: str) -> bytes:
        """The kept text with this SHA-256. Raises StorageError when it is gone or damaged."""
        try:
            fd = open_own(self.object_path(digest), os.O_RDONLY)
        except FileNotFoundError:
            raise NotFound(path) from None
        except OSError as error:
            raise StorageError(path, reason(error)) from None
        try:
            data = read_fd(fd)
        finally:
            os.close(fd)
        if sha256(data) != digest:
            raise StorageError(path, "its kept text is damaged")
        return data

    def purge(
        self,
        before: datetime,
        spared: Collection[str | None] = (),
        living: Callable[[], Collection[str]] = frozenset,
    ) -> int:
        """Forget changes older than `before`, and texts nothing refers to any more and that are not
        `spared`. Returns how many changes.

        The latest change always stays, so numbers go on; of the texts that are `living` (SHA-256),
        and of all in folders elsewhere, one line keeps where they come from. For the holder of the
        home's lock.
        """
        kept = [
            each
            for each in self.changes()
            if parse_stamp(each.time) >= before or each.number == self._last
        ]
        kept.reverse()
        total = sum(1 for _ in self.changes())
        if len(kept) < total:
            self.rewrite([*self._origins(before, living()), *kept])
        self.sweep(spared)
        return total - len(kept)

    def rewrite(self, changes: Iterable[Change]) -> None:
        """Put these changes, the oldest first, in place of all. For the holder of the home's lock.
        Raises OSError.
        """
        self._replace(b"".join(each.dump() for each in changes))

    def _replace(self, lines: bytes, *, durable: bool = True) -> None:
        """Put these lines in place of all."""
        fresh = f"{self._layout.journal}{_NEW}"
        with suppress(FileNotFoundError):
            os.unlink(fresh)
        write_file(fresh, lines, durable=durable)
        os.replace(fresh, self._layout.journal)
        if durable:
            sync_folder(self._layout.journal.parent)
        self.refresh()

    def sweep(self, spared: Collection[str | None] = ()) -> int:
        """Remove the texts of `unreferenced`. Returns how many. For the holder of the home's lock.
        Raises OSError.
        """
        gone = self.unreferenced(spared)
        for digest in gone:
            os.unlink(self.object_path(digest))
        return len(gone)

    def unreferenced(self, spared: Collection[str | None] = ()) -> list[str]:
        """The kept texts no change refers to, but for those `spared`: by SHA-256."""
        wanted = self.referenced() | {*spared}
        folders = os.scandir(self._layout.objects)
        return sorted(
            each.name
            for folder in folders
            for each in os.scandir(folder.path)
            if each.name not in wanted
        )

    def referenced(self) -> set[str | None]:
        """The texts that changes refer to: by SHA-256."""
        files = [each for change in self.changes() for each in change.files]
        return {each.old for each in files} | {each.new for each in files if each.do == LINES}

    def _origins(self, before: datetime, living: Collection[str]) -> list[Change]:
        """The line that keeps where texts come from of which only changes older than `before` tell;
        none for none.
        """
        found: dict[tuple[str, str, str, str | None], Touched] = {}
        for change in self.changes(origins=True):
            is_kept = change.verb != ORIGINS and (
                parse_stamp(change.time) >= before or change.number == self._last
            )
            for each in change.files:
                wrote = (
                    each.do in ("put", ORIGINS)
                    and each.new is not None
                    and (each.root or each.new in living)
                )
                if wrote and (key := (each.project, each.path, each.root, each.new)) not in found:
                    by = change.provenance(each).row()
                    touched = Touched(
                        ORIGINS,
                        each.project,
                        each.path,
                        new=each.new,
                        scope=each.scope,
                        root=each.root,
                    )
                    touched.by = None if is_kept else by
                    found[key] = touched
        files = [each for each in reversed(found.values()) if each.by is not None]
        if files:
            moment = next((each.by["time"] for each in files if each.by), "")
        else:
            moment = ""
        if files:
            return [Change(0, moment, ORIGINS, files[0].project, "", None, None, files)]
        return []


_WAITS = b"{"
_DROPPED = b"-"
_END = b"\0"
_LARGE = 1 << 16
"""A dropped record of more bytes is truncated after all."""


class RedoRecord:
    """The redo record at `path`, for the holder of the home's lock; `waits` may be asked by
    anybody. Raises OSError.
    """

    def __init__(self, path: Path):
        self._path = path
        self._fd, self._is_writable = open_if_may(path)
        self._end = 0
        self._sum = 0

    def close(self) -> None:
        os.close(self._fd)

    def waits(self) -> bool:
        """Whether there is a record: its writer is at work, or died."""
        return os.pread(self._fd, 1, 0) == _WAITS

    def read(self) -> bytes:
        """The file's bytes, for `redo_lines`."""
        return os.pread(self._fd, os.fstat(self._fd).st_size, 0)

    def add(self, *rows: dict[str, Any], is_new: bool = False) -> None:
        """More lines, or the first ones of a new record. They count from the moment all of them are
        there.
        """
        if is_new:
            self._end = self._sum = 0
        lines = b""
        for row in rows:
            text = _PLAIN_ENCODER.encode(row).encode()
            self._sum = crc32(text, self._sum)
            lines += b"%s %08x\n" % (text, self._sum)
        for data, at in ((lines[1:] + _END, self._end + 1), (lines[:1], self._end)):
            done = 0
            while done < len(data):
                done += os.pwrite(self._fd, data[done:], at + done)
        self._end += len(lines)

    def sync(self) -> None:
        """Make it durable as it is now."""
        os.fdatasync(self._fd)

    def drop(self) -> None:
        """Mark the record as finished, so that recovery ignores it."""
        if not self.waits():
            return
        try:
            if os.fstat(self._fd).st_size > _LARGE:
                os.ftruncate(self._fd, 0)
            else:
                os.pwrite(self._fd, _DROPPED, 0)
        # What cannot be cut can be marked, and the other way round
        except OSError:
            os.pwrite(self._fd, _DROPPED, 0)
            os.ftruncate(self._fd, 0)

    def wipe(self) -> None:
        """Drop what older records left in the file; none may wait."""
        os.ftruncate(self._fd, 0)
        os.fsync(self._fd)

    def refresh(self) -> None:
        """Another process may have set the record aside: then a new one is in use."""
        if self._is_writable and is_at(self._fd, self._path):
            return
        fresh = open_own(self._path)
        os.close(self._fd)
        self._fd = fresh
        self._is_writable = True

    def set_aside(self, name: str) -> None:
        """Rename it to `name` and use a new one."""
        os.rename(self._path, name)
        self.refresh()


def redo_lines(data: bytes) -> list[Any]:
    """The lines of a record that are there as a whole, none for one that was dropped. Raises
    ValueError for damage.
    """
    if not data.startswith(_WAITS):
        return []
    rows = []
    total = 0
    for line in data.partition(_END)[0].split(b"\n")[:-1]:
        text, _, known = line.rpartition(b" ")
        # As written before there were checksums
        if line.endswith(b"}"):
            text = line
            known = b""
        total = crc32(text, total)
        if known and known != b"%08x" % total:
            raise ValueError("its checksum does not fit")
        rows.append(json.loads(text))
    return rows
