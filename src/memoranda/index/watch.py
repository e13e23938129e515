"""Watch the folders of projects for changes. This uses inotify, which only Linux has.

The system queues the changes until they are read, without a thread and without polling. So an idle
memory costs nothing, and reading an empty queue takes one system call.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from memoranda.sources.layout import SKIPPED_FOLDERS
from memoranda.sources.walking import walk
from memoranda.text.unicode import is_valid_unicode


@dataclass(slots=True)
class Changes:
    """The changes since the last look.

    files, folders: (project, path in the project) of each changed file or folder.
    lost: whether the queue has missed changes. Then all files must be compared, with a new watch.
    """

    files: set[tuple[str, str]] = field(default_factory=set)
    folders: set[tuple[str, str]] = field(default_factory=set)
    lost: bool = False


class _WatchedFolder(NamedTuple):
    """A folder of a project.

    project: the name of the project.
    root: the absolute path of the project's folder.
    path: the path of the folder in the project. "" for the project's folder.
    """

    project: str
    root: str
    path: str


class Watch:
    """Watches every folder of the projects. For one thread at a time."""

    def __init__(self, inotify: Any, flags: Any):
        """Make a watch without folders. `open` makes one for the folders of projects.

        inotify: an `INotify` of inotify_simple.
        flags: the flags of that package.
        """
        self._inotify = inotify
        self._flags = flags
        # The watched folders by the numbers of their watches, which events have
        self._folders: dict[int, _WatchedFolder] = {}

    @classmethod
    def open(cls, folders: Iterable[tuple[str, str, str]]) -> Watch | None:
        """Watch `folders`, given as (project, the project's root, absolute folder).

        None if the system has no inotify, or its limit of watches is reached. Then every call has
        to look at all files.
        """
        if not sys.platform.startswith("linux"):
            return None
        try:
            from inotify_simple import INotify, flags

            watch = cls(INotify(), flags)
        except (ImportError, OSError):
            return None
        try:
            for project, root, folder in folders:
                inner_folder = "" if folder == root else os.path.relpath(folder, root)
                watch.add(project, root, inner_folder)
        except OSError:
            watch.close()
            return None
        return watch

    def add(self, project: str, root: str, folder: str) -> None:
        """Begin to watch a folder for changes of its files. Folders inside it are not watched.

        Watching a folder twice does no harm. A folder that is missing or cannot be read is ignored.

        project: the name of the project, which events report.
        root: the absolute path of the project's folder.
        folder: the path of the folder in the project; "" for the project's folder.

        Raises OSError if the limit of watches is reached.
        """
        flags = self._flags
        mask = (
            flags.CREATE
            | flags.MODIFY
            | flags.CLOSE_WRITE
            | flags.ATTRIB
            | flags.DELETE
            | flags.MOVED_FROM
            | flags.MOVED_TO
            | flags.DELETE_SELF
            | flags.MOVE_SELF
            | flags.ONLYDIR
        )
        path = os.path.join(root, folder) if folder else root
        try:
            number = self._inotify.add_watch(path, mask)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            # The notes of an unreadable folder cannot be read, so it need not be watched.
            return
        self._folders[number] = _WatchedFolder(project, root, folder)

    def has_changes(self) -> bool:
        """Whether `drain` would return anything."""
        queue = select.poll()
        queue.register(self._inotify.fd, select.POLLIN)
        return bool(queue.poll(0))

    def drain(self) -> Changes:
        """Return everything that changed since the last call, without waiting for changes."""
        changes = Changes()
        try:
            while events := self._inotify.read(timeout=0):
                for event in events:
                    self._add_event(event, changes)
        except OSError:
            changes.lost = True
        return changes

    def _add_event(self, event: Any, changes: Changes) -> None:
        """Record in `changes` which file or folder an event of the system is about."""
        flags = self._flags
        mask = event.mask
        # Events were lost, or there will be no more of this disk.
        if mask & (flags.Q_OVERFLOW | flags.UNMOUNT):
            changes.lost = True
            return

        # `wd` is the number of the watch. Late events come from a folder that is no longer watched.
        folder = self._folders.get(event.wd)
        if folder is None:
            return

        # About the watched folder itself: such an event has no name. Unless it is the project's own
        # folder, the watch of the folder above it reports the same.
        is_top_folder = folder.path == ""
        if mask & (flags.DELETE_SELF | flags.MOVE_SELF):
            if is_top_folder:
                changes.lost = True
            return
        name = event.name
        if not name:
            if is_top_folder and mask & flags.ATTRIB:
                changes.folders.add((folder.project, ""))
            return

        # About a file or folder in it. Hidden ones are no notes.
        path = name if is_top_folder else f"{folder.path}/{name}"
        if name.startswith(".") or not is_valid_unicode(path):
            return
        is_folder = bool(mask & flags.ISDIR)
        if not is_folder:
            changes.files.add((folder.project, path))
        elif name not in SKIPPED_FOLDERS:
            self._follow_folder(mask, folder.project, folder.root, path)
            changes.folders.add((folder.project, path))

    def _follow_folder(self, mask: int, project: str, root: str, path: str) -> None:
        """Watch a new folder with the folders in it, or stop watching a removed folder.

        mask: the flags of the event, which say what happened.
        project, root: the project, and its folder.
        path: the path of the folder in the project.
        """
        flags = self._flags
        if mask & (flags.DELETE | flags.MOVED_FROM):
            # The folder is gone. The watches of a renamed folder, and of all folders in it, would
            # report changes under its old name, so they end.
            for number, watched in list(self._folders.items()):
                is_inside = f"{watched.path}/".startswith(f"{path}/")
                if watched.project == project and is_inside:
                    del self._folders[number]
                    with suppress(OSError):
                        self._inotify.rm_watch(number)
        elif not mask & flags.ATTRIB:
            # The folder is new. (ATTRIB means that its mode has changed, and its watches stay.)
            self.add(project, root, path)
            for parent, names, _ in walk(os.path.join(root, path)):
                names[:] = [name for name in names if self._is_watched(name)]
                for name in names:
                    folder = os.path.relpath(os.path.join(parent, name), root)
                    self.add(project, root, folder)

    @staticmethod
    def _is_watched(name: str) -> bool:
        """Whether folders of this name may hold notes."""
        return not name.startswith(".") and name not in SKIPPED_FOLDERS

    def close(self) -> None:
        """Release the watch."""
        self._inotify.close()
