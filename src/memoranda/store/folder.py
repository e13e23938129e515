"""A folder of Markdown notes, used in place: indexing never writes a byte into it."""

from __future__ import annotations

import builtins
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from operator import attrgetter
from pathlib import Path

from memoranda.errors import CannotRead, NotFound, OutsideError, StorageError
from memoranda.store.base import File, Listing, PathInfo, Stamp
from memoranda.store.files import read_file, reason, refusal, stamp_of, stat_in
from memoranda.store.layout import NOTE_SUFFIXES, SKIPPED_FOLDERS
from memoranda.store.path_guard import Folder, as_on_disk, has_link, open_folder
from memoranda.text.unicode import is_valid_unicode

_LINKS = 40
_PART = 2_000
_NAME = attrgetter("name")
_VALUES = attrgetter("st_size", "st_mtime_ns", "st_ino")


class FolderStore:
    """The notes below `root` (absolute).

    With `every_text` each visible file counts as a note, else those named `*.md`, `*.markdown`.
    With `links` paths may lead through symlinks that stay inside (contract 000a, 3); else they are
    refused. An `optional` folder that is missing just holds nothing.
    """

    holds_entities = False

    def __init__(
        self,
        name: str,
        root: Path,
        *,
        every_text: bool = False,
        links: bool = False,
        optional: bool = False,
    ):
        self.name = name
        self.root = str(root)
        self._every_text = every_text
        self._links = links
        self.optional = optional

    def trouble(self) -> str:
        if self.optional or os.path.isdir(self.root):
            return ""
        return f"The folder of project {self.name} is missing; its notes are as last seen."

    def version(self) -> Stamp | None:
        # Only a listing tells the state of a folder
        return None

    def changed_since(self, version: Stamp | None) -> builtins.list[str] | None:
        return None

    def check_writable(self) -> None:
        """Files of a folder can be written."""

    def is_note(self, path: str) -> bool:
        """Whether a file of this name would be a note: contract 000b, 1."""
        if (
            path.startswith(".")
            or "/." in path
            or not SKIPPED_FOLDERS.isdisjoint(path.split("/")[:-1])
        ):
            return False
        return self._every_text or path.lower().endswith(NOTE_SUFFIXES)

    def list(self, below: str = "") -> Listing:
        """As in `Store`; a folder that is gone (but for the project's own) just holds nothing."""
        listing = Listing()
        for _ in self.parts(below, listing):
            pass
        return listing

    def parts(self, below: str, listing: Listing) -> Iterator[None]:
        # What a link leads to is listed there
        if below and has_link(self.root, below):
            waiting = []
        else:
            waiting = [below]
        while waiting:
            for _ in self.portions(waiting.pop(), listing, waiting, _PART):
                if len(listing.stamps) >= _PART:
                    yield
        yield

    def portions(
        self, folder: str, listing: Listing, waiting: builtins.list[str], size: int | None = None
    ) -> Iterator[None]:
        """Add the notes directly in a folder to `listing`, its folders to `waiting`: `size` [all]
        entries a step.
        """
        try:
            fd = os.open(
                os.path.join(self.root, folder) if folder else self.root,
                os.O_RDONLY | os.O_DIRECTORY,
            )
            try:
                # By its number: the way there is not walked for each file
                with os.scandir(fd) as entries:
                    while some := [*islice(entries, size)]:
                        self._list_folder(folder, some, listing, waiting)
                        yield
            finally:
                os.close(fd)
        except (FileNotFoundError, NotADirectoryError):
            if not folder and not self.optional:
                listing.unreadable.append(folder)
        except OSError:
            listing.unreadable.append(folder)

    def _list_folder(
        self,
        folder: str,
        entries: Iterable[os.DirEntry[str]],
        listing: Listing,
        waiting: builtins.list[str],
    ) -> None:
        """One folder's notes into `listing`, its folders into `waiting`. As little as possible is
        done note by note: there are thousands."""
        prefix = f"{folder}/" if folder else ""
        shown = [entry for entry in entries if entry.name[0] != "."]
        if not "".join(map(_NAME, shown)).isprintable():
            shown = [each for each in shown if is_valid_unicode(each.name)]
        every = self._every_text
        notes = [
            each
            for each in shown
            if (every or each.name.lower().endswith(NOTE_SUFFIXES))
            and each.is_file(follow_symlinks=False)
        ]
        if len(notes) < len(shown):
            folders = [each.name for each in shown if each.is_dir(follow_symlinks=False)]
            waiting += [prefix + name for name in folders if name not in SKIPPED_FOLDERS]
        try:
            found = [note.stat(follow_symlinks=False) for note in notes]
        # One went away meanwhile
        except FileNotFoundError:
            there = notes
            notes = []
            found = []
            for each in there:
                with suppress(FileNotFoundError):
                    found.append(each.stat(follow_symlinks=False))
                    notes.append(each)
        listing.stamps.update(
            zip(map(prefix.__add__, map(_NAME, notes)), map(_VALUES, found), strict=True)
        )

    def folders(self) -> Iterator[str]:
        """Absolute paths of the project's folder and all that may hold notes, for watching."""
        waiting = [self.root]
        while waiting:
            folder = waiting.pop()
            yield folder
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        is_shown = entry.name[0] != "." and entry.name not in SKIPPED_FOLDERS
                        if is_shown and entry.is_dir(follow_symlinks=False):
                            waiting.append(entry.path)
            except OSError:
                continue

    def stamp(self, path: str) -> Stamp | None:
        try:
            status = os.lstat(os.path.join(self.root, path))
        except (OSError, ValueError):
            return None
        if stat.S_ISREG(status.st_mode):
            return stamp_of(status)
        return None

    def read(self, path: str) -> File:
        """The file at `path`, checked by path_guard. Raises NotFound, OutsideError, CannotRead."""
        try:
            with self.open_parent(path) as folder:
                return read_file(path.rpartition("/")[2], folder.fd)
        except FileNotFoundError:
            raise NotFound(path) from None
        except OSError as error:
            raise CannotRead(path, reason(error)) from None
        except StorageError as error:
            raise CannotRead(path, error.reason) from None

    def open_parent(self, path: str) -> Folder:
        """The verified, open folder that holds `path`."""
        return open_folder(self.root, path.rpartition("/")[0], self.name, links=self._links)

    def spelled(self, path: str) -> str:
        """`path` with its names as they are on disk: `path_guard.as_on_disk`."""
        if path.isascii() and " " not in path:
            return path
        return as_on_disk(self.root, path)

    def place(self, path: str) -> PathInfo:
        if not path:
            return PathInfo("folder", "")
        here = path
        try:
            with self.open_parent(path) as folder:
                name = path.rpartition("/")[2]
                here = folder.at(name)
                return self._place(name, folder) or PathInfo("missing", here)
        except NotFound:
            return PathInfo("missing", here)
        except OSError as error:
            raise refusal(path, error) from None

    def _place(self, name: str, folder: Folder) -> PathInfo | None:
        """What `name` in the open folder is, None for nothing."""
        status = stat_in(name, folder.fd)
        if status is None:
            return None
        if stat.S_ISLNK(status.st_mode):
            return PathInfo("link", folder.at(name), link=os.readlink(name, dir_fd=folder.fd))
        if stat.S_ISREG(status.st_mode):
            kind = "file"
        elif stat.S_ISDIR(status.st_mode):
            kind = "folder"
        else:
            kind = "other"
        return PathInfo(kind, folder.at(name), status.st_size)

    def follow(self, place: PathInfo) -> PathInfo:
        """Where a symlink leads: the place it points to; `missing` when it dangles.

        Raises OutsideError when it leaves the project or turns in a circle.
        """
        start = place.path
        for _ in range(_LINKS):
            if place.kind != "link":
                return place
            folder = os.path.join(self.root, place.path.rpartition("/")[0])
            target = os.path.normpath(os.path.join(os.path.realpath(folder), place.link))
            base = os.path.realpath(self.root)
            if target != base and not target.startswith(base + "/"):
                real = os.path.realpath(target)
                if real != base and not real.startswith(base + "/"):
                    raise OutsideError(start, self.name)
                target = real
            place = self.place(target[len(base) + 1 :])
        raise OutsideError(start, self.name)

    def entries(self, path: str) -> builtins.list[PathInfo]:
        """Everything directly in the folder `path`, hidden names too, sorted by code point. Raises
        StorageError.
        """
        try:
            with open_folder(self.root, path, self.name, links=self._links) as folder:
                places = [self._place(name, folder) for name in sorted(os.listdir(folder.fd))]
                return [place for place in places if place is not None]
        except OSError as error:
            raise refusal(path, error) from None
