"""A project whose notes are Markdown files in a folder: listing, reading, and planning their edits.

Indexing never writes a byte into the folder. Files are left out by `.memoryignore`, and by the
settings of other programs that use the folder (`conventions.py`).
"""

from __future__ import annotations

import builtins
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from memoranda.errors import CannotRead, NotFound, OutsideError, StorageError
from memoranda.sources.base import File, Listing, PathInfo, Stamp
from memoranda.sources.conventions import Conventions, conventions_of, marks_of, title_of_day
from memoranda.sources.files import read_file, reason, refusal, stamp_of, stat_in
from memoranda.sources.ignoring import IgnoreRules, gitignore_patterns
from memoranda.sources.layout import DRAWING_SUFFIX, NOTE_SUFFIXES, SKIPPED_FOLDERS
from memoranda.sources.path_guard import Folder, as_on_disk, has_link, open_folder
from memoranda.sources.source import FileEdit
from memoranda.sources.step import Step
from memoranda.text.unicode import is_valid_unicode

if TYPE_CHECKING:
    from memoranda.note.model import Note

# Symbolic links followed in a row at most, as in the kernel.
_MAX_LINKS = 40
# A listing is yielded in portions of about this number of files.
_PORTION_FILES = 2_000
_NAME = attrgetter("name")
_VALUES = attrgetter("st_size", "st_mtime_ns", "st_ino", "st_ctime_ns")
_LINK_COUNT = attrgetter("st_nlink")


class FolderSource:
    """The notes of project `name` in the folder `root` (absolute).

    every_text: whether each visible file counts as a note, not only `*.md` and `*.markdown`.
    links: whether paths may lead through symlinks that stay inside (contract 000a, 3). If not,
        symlinks are refused.
    optional: whether the folder may be missing, which means that it has no notes. Such a folder
        belongs to this home, so no other program has settings for it.
    ignored: patterns of files to leave out, in the format of .gitignore, from the configuration.
    """

    holds_entities = False
    away = False

    def __init__(
        self,
        name: str,
        root: Path,
        *,
        every_text: bool = False,
        links: bool = False,
        optional: bool = False,
        ignored: Iterable[str] = (),
    ):
        self.name = name
        self.root = str(root)
        self._every_text = every_text
        self._links = links
        self.optional = optional
        self._ignored = tuple(ignored)
        # The value of `marks_of` for which the conventions and rules were read. None: not yet.
        self._marks: tuple[tuple[int, int] | None, ...] | None = None
        self._conventions = Conventions()
        self._rules = IgnoreRules()

    def look_at_conventions(self) -> bool:
        """Read the settings of the folder's programs again, if they changed.

        Returns whether other files are left out than before.
        """
        has_programs = not self.optional
        marks = marks_of(self.root, has_programs=has_programs)
        if marks == self._marks:
            return False
        is_first_look = self._marks is None
        self._marks = marks
        has_settings = any(marks) or bool(self._ignored)
        if is_first_look and not has_settings:
            # The empty defaults are right
            return False
        self._conventions = conventions_of(self.root, has_programs=has_programs)
        patterns_before = self._rules.patterns
        own_patterns = gitignore_patterns(self._ignored, "the configuration")
        self._rules = IgnoreRules((*self._conventions.rules.patterns, *own_patterns))
        return not is_first_look and self._rules.patterns != patterns_before

    @property
    def conventions(self) -> Conventions:
        """The settings that other programs have for the folder, as `look_at_conventions` read them."""
        if self._marks is None:
            self.look_at_conventions()
        return self._conventions

    @property
    def rules(self) -> IgnoreRules:
        """The rules that leave files out, as `look_at_conventions` read them."""
        if self._marks is None:
            self.look_at_conventions()
        return self._rules

    def name_of_day(self, path: str) -> str:
        """Return the name that links use for a daily note in a folder of Logseq.

        `journals/2025_12_01.md` is named `Dec 1st, 2025`. "" for other notes and folders.
        """
        if not self.conventions.day_title:
            return ""
        return title_of_day(self._conventions, path)

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
        """Do nothing, because files of a folder can be written."""

    def changing(self) -> AbstractContextManager[None]:
        return nullcontext()

    def steps(self, edit: FileEdit) -> Sequence[Step]:
        """Return the one step that makes an edit."""
        step = Step(
            do=edit.do,
            project=self.name,
            root=self.root,
            path=edit.path,
            to=edit.to,
            data=edit.data,
            old=edit.old,
            mode=edit.mode,
            scope=edit.scope,
            link=edit.link,
            kept=edit.kept,
            is_passing=edit.is_passing,
            away=self.away,
            by=edit.by,
        )
        return [step]

    def is_note(self, path: str) -> bool:
        """Whether a file at this path would be a note, by its path alone (contract 000b, 1)."""
        is_hidden = path.startswith(".") or "/." in path
        folder_names = path.split("/")[:-1]
        if is_hidden or not SKIPPED_FOLDERS.isdisjoint(folder_names):
            return False
        if self.rules.reason(path):
            return False
        return self.has_note_name(path)

    def has_note_name(self, name: str) -> bool:
        """Whether a file with this name or path would be a note in a folder of notes."""
        if self._every_text:
            return True
        folded = name.lower()
        return folded.endswith(NOTE_SUFFIXES) and not folded.endswith(DRAWING_SUFFIX)

    def list(self, below: str = "") -> Listing:
        """Return the notes below a folder with their stamps.

        If the folder does not exist, the listing is empty. If the folder of the whole project does
        not exist, it is named as unreadable, so that no note counts as removed: its disk may not be
        mounted.

        below: the path of the folder. "" lists all notes.
        """
        listing = Listing()
        for _ in self.parts(below, listing):
            pass
        return listing

    def parts(self, below: str, listing: Listing) -> Iterator[None]:
        """Add the notes below a folder to `listing`, some before each `yield`.

        The caller may empty `listing` in between.

        below: the path of the folder. "" for all notes.
        listing: takes the notes, and the folders that cannot be read.
        """
        waiting = [below]
        if below:
            # Files behind a link are listed only at their real place
            is_behind_link = has_link(self.root, below)
            if is_behind_link or self.rules.reason(below, is_folder=True):
                waiting = []
        while waiting:
            # This adds the folders in it to `waiting`
            for _ in self.portions(waiting.pop(), listing, waiting, _PORTION_FILES):
                if len(listing.stamps) >= _PORTION_FILES:
                    yield
        yield

    def portions(
        self, folder: str, listing: Listing, waiting: builtins.list[str], size: int | None = None
    ) -> Iterator[None]:
        """Add the notes directly in a folder to `listing`, and its folders to `waiting`.

        folder: the path of the folder. "" is the project's own.
        size: how many entries are added before each `yield`. None for all.
        """
        place = os.path.join(self.root, folder) if folder else self.root
        try:
            fd = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
            try:
                # Scanning the descriptor is faster: the system need not walk the path for each file
                with os.scandir(fd) as entries:
                    while portion := [*islice(entries, size)]:
                        self._list_folder(folder, portion, listing, waiting)
                        yield
            finally:
                os.close(fd)
        except (FileNotFoundError, NotADirectoryError):
            is_missing_project = not folder and not self.optional
            if is_missing_project:
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
        """Add the notes among a folder's entries to `listing`, and the folders to `waiting`.

        As little as possible is done for each note, since there are thousands.
        """
        prefix = f"{folder}/" if folder else ""
        visible = _visible(entries)
        # Looked up once, not for each entry.
        is_note_name = self.has_note_name
        notes = [
            entry
            for entry in visible
            if is_note_name(entry.name) and entry.is_file(follow_symlinks=False)
        ]
        has_other_entries = len(notes) < len(visible)
        if has_other_entries:
            inner_folders = [prefix + name for name in _folder_names(visible)]
            waiting += self._not_left_out(inner_folders, is_folder=True)
        if self.rules:
            allowed = set(self._not_left_out([prefix + entry.name for entry in notes]))
            notes = [entry for entry in notes if prefix + entry.name in allowed]

        # Notes that were removed meanwhile are left out.
        notes, stats = _with_stats(notes)
        paths = map(prefix.__add__, map(_NAME, notes))
        listing.stamps.update(zip(paths, map(_VALUES, stats), strict=True))
        has_hard_links = max(map(_LINK_COUNT, stats), default=1) > 1
        if has_hard_links:
            listing.shared += [
                prefix + note.name
                for note, status in zip(notes, stats, strict=True)
                if status.st_nlink > 1
            ]

    def _not_left_out(
        self, paths: builtins.list[str], *, is_folder: bool = False
    ) -> builtins.list[str]:
        """Return the paths that no rule leaves out.

        is_folder: whether the paths are folders. Some rules are only for these.
        """
        rules = self.rules
        if not rules:
            return paths
        return [path for path in paths if not rules.reason(path, is_folder=is_folder)]

    def folders(self) -> Iterator[str]:
        """Yield the absolute paths of all folders that may hold notes, for watching.

        The first is the project's own.
        """
        waiting = [self.root]
        while waiting:
            folder = waiting.pop()
            yield folder
            with suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    is_skipped = entry.name.startswith(".") or entry.name in SKIPPED_FOLDERS
                    if is_skipped or not entry.is_dir(follow_symlinks=False):
                        continue
                    path = entry.path.removeprefix(self.root).lstrip("/")
                    if not self.rules.reason(path, is_folder=True):
                        waiting.append(entry.path)

    def stamp(self, path: str) -> Stamp | None:
        try:
            status = os.lstat(os.path.join(self.root, path))
        except (OSError, ValueError):
            return None
        if stat.S_ISREG(status.st_mode):
            return stamp_of(status)
        return None

    def is_shared(self, path: str) -> bool:
        """Whether the file at `path` has a second name, a hard link."""
        try:
            return os.lstat(os.path.join(self.root, path)).st_nlink > 1
        except (OSError, ValueError):
            return False

    def read(self, path: str) -> File:
        """Read the file at `path`, after the path guard's check.

        Raises NotFound, OutsideError, CannotRead.
        """
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
        """Open the folder that contains `path`, after the path guard's check."""
        return open_folder(self.root, path.rpartition("/")[0], self.name, links=self._links)

    def spelled(self, path: str) -> str:
        """Return `path` with each name as the disk spells it.

        For example, the disk may have `é` as two characters.
        """
        # Such names have only one form, so the disk need not be asked
        if path.isascii() and " " not in path:
            return path
        return as_on_disk(self.root, path)

    def place(self, path: str) -> PathInfo:
        """Return the kind of thing at a path of the project. "" is the project's own folder.

        A symlink itself is not followed. Raises OutsideError, StorageError.
        """
        if not path:
            return PathInfo("folder", "")
        real_path = path
        try:
            with self.open_parent(path) as folder:
                name = path.rpartition("/")[2]
                real_path = folder.at(name)
                return self._place(name, folder) or PathInfo("missing", real_path)
        except NotFound:
            return PathInfo("missing", real_path)
        except OSError as error:
            raise refusal(path, error) from None

    def _place(self, name: str, folder: Folder) -> PathInfo | None:
        """Return the entry called `name` in the open folder. None if there is no such entry."""
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
        """Follow a symlink, through further symlinks if need be, and return its target.

        The kind is `missing` if nothing is there. A `place` that is not a symlink is returned as it
        is. Raises OutsideError if the symlink leads out of the project or in a circle.
        """
        start = place.path
        for _ in range(_MAX_LINKS):
            if place.kind != "link":
                return place
            folder = os.path.join(self.root, place.path.rpartition("/")[0])
            target = os.path.normpath(os.path.join(os.path.realpath(folder), place.link))
            real_root = os.path.realpath(self.root)
            if not _is_inside(target, real_root):
                # The way outside may lead back inside through another link
                target = os.path.realpath(target)
                if not _is_inside(target, real_root):
                    raise OutsideError(start, self.name)
            path_of_target = target[len(real_root) + 1 :]
            place = self.place(path_of_target)
        raise OutsideError(start, self.name)

    def entries(self, path: str) -> builtins.list[PathInfo]:
        """Return everything directly in the folder `path`, also hidden names, sorted by name.

        Raises StorageError.
        """
        try:
            with open_folder(self.root, path, self.name, links=self._links) as folder:
                places = [self._place(name, folder) for name in sorted(os.listdir(folder.fd))]
                return [place for place in places if place is not None]
        except OSError as error:
            raise refusal(path, error) from None


def _is_inside(path: str, folder: str) -> bool:
    """Whether an absolute path is a folder or below it."""
    return path == folder or path.startswith(folder + "/")


def _visible(entries: Iterable[os.DirEntry[str]]) -> builtins.list[os.DirEntry[str]]:
    """Return the entries that are not hidden and whose names are valid Unicode."""
    visible = [entry for entry in entries if entry.name[0] != "."]
    # Printable text is valid Unicode. One call tests all names, and nearly always that is enough.
    all_names = "".join(map(_NAME, visible))
    if all_names.isprintable():
        return visible
    return [entry for entry in visible if is_valid_unicode(entry.name)]


def _folder_names(entries: Iterable[os.DirEntry[str]]) -> builtins.list[str]:
    """Return the names of the folders among entries, without those that never hold notes."""
    folders = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    return [name for name in folders if name not in SKIPPED_FOLDERS]


def _with_stats(
    entries: list[os.DirEntry[str]],
) -> tuple[list[os.DirEntry[str]], list[os.stat_result]]:
    """Return the files that still exist, and the status of each, in two lists."""
    try:
        return entries, [entry.stat(follow_symlinks=False) for entry in entries]
    except FileNotFoundError:
        # A folder was removed in between.
        pass
    present: list[os.DirEntry[str]] = []
    stats: list[os.stat_result] = []
    for entry in entries:
        with suppress(FileNotFoundError):
            stats.append(entry.stat(follow_symlinks=False))
            present.append(entry)
    return present, stats


def add_name_of_day(note: Note, source: FolderSource) -> None:
    """Let links name the note of a day as Logseq does: `[[Dec 1st, 2025]]`."""
    name = source.name_of_day(note.path)
    if name and name not in note.aliases:
        note.aliases = (*note.aliases, name)
