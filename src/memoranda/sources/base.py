"""The values that pass through a source of notes (`source.py`): a file as read, its stamp, a listing."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from memoranda.clock import EPOCH
from memoranda.errors import MemorandaError, StorageError
from memoranda.text.checksum import sha256 as sha256
from memoranda.value_object import ValueObject

if TYPE_CHECKING:
    from memoranda.note.model import Note


class Stamp(NamedTuple):
    """A key that tells one state of a file from another without reading it.

    size: in bytes.
    mtime_ns: when the text was changed last, in nanoseconds since 1970.
    inode: the number of the file. For an entity in a graph file, a digest of its lines.
    ctime_ns: when the system last saw a change. No program can set it back, so it reveals a text
        that was changed under its old time. A rename and new rights set it too.
    """

    size: int
    mtime_ns: int
    inode: int
    ctime_ns: int = 0

    def is_same_file(self, other: Stamp) -> bool:
        """Whether the two are equal except for `ctime_ns`, which a rename changes."""
        return self[:3] == other[:3]


NO_STAMP = Stamp(0, 0, 0)
"""The stamp of a file that is not there yet."""


Values = tuple[int, int, int, int]
"""The values of a stamp as the system reports them.

For thousands of files, these tuples are made much faster than stamps.
"""

# The largest integer that SQLite can store. Some file systems report larger ones.
_MAX_INTEGER = (1 << 63) - 1


def bounded(values: Values) -> Stamp:
    """Return the stamp with these values, limited to numbers that the index can store."""
    size, changed, inode, status_changed = values
    return Stamp(size, _bounded_time(changed), inode & _MAX_INTEGER, _bounded_time(status_changed))


def _bounded_time(nanoseconds: int) -> int:
    """Return a time limited to numbers that SQLite can store."""
    return max(-_MAX_INTEGER, min(nanoseconds, _MAX_INTEGER))


@dataclass(slots=True, eq=False, repr=False)
class Listing(ValueObject):
    """All notes of a project as the disk shows them.

    stamps: project-relative path, with `/` -> values of the stamp.
    unreadable: folders (project-relative, "" = the project itself) that could not be listed. Notes
        below them must not be taken for deleted.
    shared: notes whose file has another name, a hard link. The system does not report what is
        written under that name.
    """

    stamps: dict[str, Values] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)
    shared: list[str] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class File(ValueObject):
    """A file as read.

    data: its bytes.
    stamp: its size and times, which tell this state of the file from others.
    etag: the SHA-256 of its bytes (64 hex digits).
    mode: its permission bits.
    born: the birth time in seconds, if known.
    changed_ns: for an entity of a graph file, whose stamp has no time, the time of its last change.
        None for files.
    """

    data: bytes
    stamp: Stamp
    etag: str
    mode: int = 0o600
    born: float | None = None
    changed_ns: int | None = None

    def note(self, project: str, path: str, text: str, changed: datetime | None = None) -> Note:
        """Parse the note at `path`.

        text: the bytes of this file as text.
        changed: when it was changed last. None for the time of the file.
        """
        # The import takes 8 ms, and a search that finds nothing new reads no file
        from memoranda.note.markdown import parse_note

        # Only an entity of a graph file has a time beside its stamp
        is_entity = self.changed_ns is not None
        born = datetime.fromtimestamp(self.born, UTC) if self.born else None
        note = parse_note(
            text,
            project=project,
            path=path,
            changed=changed or self._changed(),
            born=born,
            entity=is_entity,
        )
        note.etag = self.etag
        return note

    def _changed(self) -> datetime:
        """Return when the file or entity was changed last."""
        nanoseconds = self.stamp.mtime_ns if self.changed_ns is None else self.changed_ns
        # `datetime.fromtimestamp` would round
        return EPOCH + timedelta(microseconds=nanoseconds // 1000)


@dataclass(slots=True, eq=False, repr=False)
class PathInfo(ValueObject):
    """The kind of thing at a path.

    kind: `file`, `folder`, `link` (a symlink), `other` or `missing`.
    path: its real place, project-relative, with folder links resolved.
    size: in bytes.
    link: the target of a symlink. "" for anything else.
    """

    kind: str
    path: str
    size: int = 0
    link: str = ""


class Unconfirmed(MemorandaError):
    """The change is in the file, but it could neither be synced nor taken back."""

    code = StorageError.code

    def __init__(self, file: str, why: str):
        super().__init__(
            f"{file} is changed, but {why}: the change may not outlive a power failure."
        )
