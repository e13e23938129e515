"""Record which files are not in the index, so that they are not read at each comparison.

A file is left out if it is not text, if it cannot be read, or if its note cannot be indexed. It is
read again when its stamp changes. The record is stored in the index, so that other processes know
it, too. Files that cannot be read at the moment are only in the memory of this process.
"""

from __future__ import annotations

from collections.abc import Iterable

from memoranda.index.index import Index
from memoranda.sources.base import Stamp, Values, bounded

Key = tuple[str, str]
"""A project, and the path of a file in it."""


class LeftOutFiles:
    """The files that are left out of an index."""

    def __init__(self, index: Index):
        self._index = index
        # By key, the stamp that the file had when it was left out.
        self._stamps: dict[Key, Stamp] = {}
        self.reasons: dict[Key, str] = {}
        """Why files are left out, for people. A file that is only no text has no reason."""
        self.failed_elsewhere: set[str] = set()
        """The projects with files that another version of memoranda could not index."""

    def load(self) -> None:
        """Read the record that the index has, in place of the present one."""
        notes = self._index.notes
        rows = notes.skipped()
        self._stamps = {key: stamp for key, (stamp, _) in rows.items()}
        self.reasons = {key: reason for key, (_, reason) in rows.items() if reason}
        # This version may be able to index these files.
        failed_elsewhere = notes.failed_elsewhere()
        if failed_elsewhere:
            self.failed_elsewhere |= {project for project, _ in failed_elsewhere}
            self.forget_all(failed_elsewhere)

    def has(self, key: Key, stamp: Values) -> bool:
        """Whether a file was left out when it had this stamp."""
        return self._stamps.get(key) == bounded(stamp)

    def is_known(self, key: Key) -> bool:
        """Whether a file was left out when it was last read, whatever its stamp is now."""
        return key in self._stamps or key in self.reasons

    def paths_in(self, project: str, folder: str = "") -> set[str]:
        """Return the paths of the files of a project, or of one of its folders, that are left out."""
        prefix = f"{folder}/" if folder else ""
        return {
            path
            for name, path in self._stamps.keys() | self.reasons.keys()
            if name == project and path.startswith(prefix)
        }

    def add(self, key: Key, stamp: Stamp, reason: str = "", *, fails_here: bool = False) -> None:
        """Record that a file is left out. The caller must have a transaction of the index.

        reason: why, for people; "" keeps the reason that the file has.
        fails_here: whether another version of memoranda may be able to index the file.
        """
        stamp = bounded(stamp)
        self._stamps[key] = stamp
        if reason:
            self.reasons[key] = reason
        reason = self.reasons.get(key, "")
        self._index.notes.skip(*key, stamp, reason, fails_here=fails_here)

    def add_unreadable(self, key: Key, reason: str) -> None:
        """Record, in this process alone, that a file cannot be read at the moment."""
        self.reasons[key] = reason

    def forget(self, key: Key) -> None:
        """Remove a file from the record, so that it is read again.

        The caller must have a transaction of the index.
        """
        self.reasons.pop(key, None)
        if self._stamps.pop(key, None) is not None:
            self._index.notes.unskip(*key)

    def forget_all(self, keys: Iterable[Key]) -> None:
        """Remove files from the record, in one transaction of the index."""
        with self._index.write_lock, self._index.transaction():
            for key in keys:
                self.forget(key)
