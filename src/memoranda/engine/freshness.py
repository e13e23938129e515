"""Keep the index in step with the files on disk.

Before each call, `Freshness.update` looks for changed files. There are two ways. The watch lists
the changes that the operating system has reported. A sweep compares the times and sizes of all
files of a project with the index. So a call sees every change that was on disk before it, whichever
program made it.

The exception is a server with a large project, whose first sweep would take long. Such a project is
called late: calls are answered from the index, with a warning, and the sweep goes on between calls
(`catch_up`). Changes made after the server has started are seen all the same, because the watch
reports them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from memoranda.clock import Clock, microseconds, waits_at_most
from memoranda.engine.left_out import LeftOutFiles
from memoranda.engine.long_notes import LongNotes
from memoranda.errors import Busy, MemorandaError, ProjectWarning, StorageError
from memoranda.index.index import Index
from memoranda.index.rows import NotIndexable
from memoranda.ledger.ledger import Ledger
from memoranda.note.model import (
    GRAPH_PROJECT,
    KV_PROJECT,
    MEMORY_PROJECTS,
    NOT_UTF8_CODE,
    UTF16_CODE,
    Note,
    with_code,
)
from memoranda.note.project_access import is_in_force
from memoranda.sources.base import Listing, Stamp, Values
from memoranda.sources.folder import FolderSource
from memoranda.sources.path_guard import has_link
from memoranda.sources.source import Source
from memoranda.text.remembered import remembering

if TYPE_CHECKING:
    from memoranda.index.sync import BulkSource, Comparison, Difference, Progress, Result
    from memoranda.index.watch import Changes, Watch
    from memoranda.index.writer import Indexed, Prepared


class ReadAhead(NamedTuple):
    """A note that was read while others used the home.

    rows: its rows of the index.
    settings: the settings with which it was read.
    gate: the gate whose rules marked it.
    """

    note: Note
    rows: Prepared
    settings: object
    gate: object

    def is_right(self, stamp: Stamp | None, settings: object, gate: object) -> bool:
        """Whether reading the file again would give the same note and rows.

        stamp: the present stamp of the file. None if the file is gone.
        settings: the settings in force.
        gate: the gate in use.
        """
        has_same_rules = self.settings is settings and self.gate is gate
        return has_same_rules and self.rows.stamp == stamp


class NoteReader(Protocol):
    """Reads notes from disk for the index. `Engine` is the one implementation."""

    def load(
        self, source: Source, path: str, ahead: ReadAhead | None = None
    ) -> tuple[Note, Stamp] | None:
        """Return the note at a path, with the stamp of its file. None if it is not a note.

        ahead: what `read_ahead` returned for this path, if it was called.
        """
        ...

    def read_ahead(self, source: Source, path: str, project_id: int) -> ReadAhead | None:
        """Read a note without the home, so that others may use the home meanwhile.

        None if the note cannot be read so. Then `load` reads it, and reports the error.
        """
        ...

    def home_released_if_allowed(self) -> AbstractContextManager[bool]:
        """Let other threads use the home during a `with` block, if the running call allows it."""
        ...

    def bulk_source_of(self, source: Source) -> BulkSource | None:
        """Return a source that lets helper processes read many files. None if they cannot."""
        ...


# Device and inode of a folder or file. None if nothing is at the path.
_Identity = tuple[int, int] | None
METHOD = "fresh"
"""The daemon's method that brings the index up to date, for processes without a watch."""
# How long a command waits for the daemon to say what changed on disk. The daemon may need the
# home's lock for its answer, so the wait is shorter if the command holds it.
_DAEMON_SECONDS = 0.25
_DAEMON_SECONDS_LOCKED = 0.05
# The daemon may be reading a large file. How long to wait until it has indexed the file, how long
# for each of its answers meanwhile, and how long between two questions.
_SECONDS_OF_READING = 60.0
_DAEMON_SECONDS_READING = 5.0
_SECONDS_BETWEEN_QUESTIONS = 0.05
LARGE = 50_000
"""A project with more notes is late in a server. Its first sweep takes some tenths of a second, and
goes on between calls.
"""
# `catch_up` lists this many files at a time, and then applies this many differences at a time. Each
# takes a few milliseconds, after which a call may come in.
_FILES_AT_A_TIME = 200
_DIFFERENCES_AT_A_TIME = 4
# How long `catch_up` waits for the home's lock. Calls wait for it meanwhile.
_LOCK_SECONDS = 0.01
# A project with more shared files (files with a second name) is swept, which is faster than looking
# at them one by one.
_MAX_SHARED_FILES = 200
# These projects are never late: their verbs rely on the index having every note.
_NEVER_LATE = frozenset((*MEMORY_PROJECTS, GRAPH_PROJECT, KV_PROJECT))
_LATE = (
    "The files of project {} are still being compared with the index: what changed before this "
    "server started may be missing here, or shown as it was. A note that is read is as it is on disk."
)
_BEING_READ = (
    "A large file of project {} is being read: until that is done, it is shown as it was before."
)
# Files with more bytes are read while other threads may use the home.
_LARGE_FILE_BYTES = 200_000
# A large file may change while it is read. After this number of attempts, it is read while others
# wait.
_MOST_READINGS = 3
# If there are more large files, or more bytes in them, they are read one by one while others wait:
# notes that are read ahead are all in memory at the same time.
_MOST_LARGE_FILES = 16
_MOST_LARGE_BYTES = 16 << 20
NOT_UTF8 = with_code(NOT_UTF8_CODE, "bytes that are not UTF-8 are shown as U+FFFD")
UTF16 = with_code(
    UTF16_CODE, "it is UTF-16 text, which is shown and not changed; convert it to UTF-8"
)


@dataclass
class _LateSweep:
    """How far the sweep of a late project has got.

    comparison: has the stamps of the notes seen so far, on disk and in the index.
    removed: the stamps of the notes that only the index has, by path.
    waiting_folders: the folders that are still to be compared, at first the project itself.
    unreadable_folders: the folders that could not be listed.
    """

    comparison: Comparison
    removed: dict[str, bytes] = field(default_factory=dict)
    waiting_folders: list[str] = field(default_factory=lambda: [""])
    unreadable_folders: list[str] = field(default_factory=list)


class Freshness:
    """Finds the changes on disk that the index lacks. The caller must hold the engine's guard.

    sources: the sources of all projects. The engine sets them again when the projects change.
    reader: reads the notes.
    long_notes: inserts the words of long notes that the index still lacks.
    watch: whether to let the operating system report changes.
    may_be_late: whether large projects are swept between calls. Then the caller has to call
        `catch_up` until `late_sweeps` is empty.
    socket: where the daemon listens. Before this process sweeps projects, it asks the daemon, and
        it need not sweep the projects that the daemon watches.
    """

    # Whether the next update must also finish the sweeps of large projects.
    _must_be_whole = False
    # The watch, None while there is none. `_wants_watch` says whether to open one.
    _watch: Watch | None = None
    # The number of the opening of the index (`Index.openings`) that was last brought up to date.
    _known_opening = 0
    # When the last complete update began (time.monotonic): the index has what was on disk then. 0
    # means that it failed, or that `forget` was called, so the next update must look at the disk.
    _last_update_began = 0.0

    is_current = False
    """Whether the present call of a verb has looked at the disk already."""
    why_behind = ""
    """The reason why the index may lack the last changes. Empty if it has them."""
    why_others_missing = ""
    """The reason why changes of other machines may be missing. Empty if none is missing."""

    def __init__(
        self,
        index: Index,
        ledger: Ledger,
        sources: Mapping[str, Source],
        *,
        reader: NoteReader,
        long_notes: LongNotes,
        clock: Clock,
        watch: bool,
        may_be_late: bool,
        socket: Path,
    ):
        self._index = index
        self._ledger = ledger
        self.sources = sources
        self._reader = reader
        self._long_notes = long_notes
        self._clock = clock
        self._wants_watch = watch
        self._may_be_late = may_be_late
        self._socket = socket

        # The projects that have to be swept.
        self._to_sweep: set[str] = set(self.sources)
        # The folders of the projects when the watch began, to notice when one is replaced.
        self._roots: dict[str, _Identity] = {}

        # Which files need care.
        # (project, path) of the large files that threads are reading while others use the home.
        self._being_read: set[tuple[str, str]] = set()
        # By project, the reasons why a sweep could not see all files.
        self._troubles: dict[str, list[str]] = {}
        self._shared_paths: dict[str, set[str]] = {}
        """By project, the paths of notes whose file has a second name (a hard link).

        The watch does not see changes that are made under the second name.
        """

        # What the engine sets and reads.
        self.scopes: dict[str, str] = {}
        """The scope in force of each project that only some agents may use."""
        self.late_sweeps: dict[str, Iterator[None]] = {}
        """The running sweep of each late project. Each `next` compares a few more files."""
        self.left_out = LeftOutFiles(index)
        """The files that are not in the index, because they cannot be read as notes."""

    def close(self) -> None:
        """Stop watching, and end the sweeps of late projects. The next update opens a new watch."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None
            self._wants_watch = True
        self.late_sweeps.clear()

    def forget(self, *, whole: bool = False) -> None:
        """Make the next update compare all projects with the disk, whatever the watch has seen.

        whole: whether the next update must also finish the sweeps of large projects.
        """
        self._must_be_whole |= whole
        # 0 means "never", so the next update must look at the disk.
        self._last_update_began = 0.0
        self._to_sweep = set(self.sources)
        self.is_current = False
        self.close()

    @property
    def is_swept(self) -> bool:
        """Whether all projects have been swept."""
        return not self._to_sweep

    @property
    def has_news(self) -> bool:
        """Whether the watch has seen changes since the last update."""
        return self._watch is not None and self._watch.has_changes()

    @property
    def warnings(self) -> list[ProjectWarning]:
        """Warnings about changes on disk that the index may not have, such as files that cannot be
        read.
        """
        warnings = []
        for name, troubles in sorted(self._troubles.items()):
            warnings += [ProjectWarning(text, name) for text in troubles]
        for name in sorted(self.late_sweeps):
            warnings.append(ProjectWarning(_LATE.format(name), name))
        for name in sorted({project for project, _ in self._being_read}):
            warnings.append(ProjectWarning(_BEING_READ.format(name), name))
        return warnings + [
            ProjectWarning(text) for text in (self.why_behind, self.why_others_missing) if text
        ]

    @property
    def is_reading(self) -> bool:
        """Whether a thread is reading a large file, which the index shows as it was before."""
        return bool(self._being_read)

    def pin_known_index(self) -> bool:
        """Let the running verb use one index from here to its end, whatever other processes do.

        Returns whether it is the index that was last brought up to date.
        """
        self._index.pin()
        return not self._is_index_replaced()

    def has_seen(self, moment: float) -> bool:
        """Whether the index was completely brought up to date after a moment (time.monotonic).

        If so, the index is pinned for the running verb.
        """
        if moment >= self._last_update_began or self.why_behind:
            return False
        return self.pin_known_index()

    def update(
        self, progress: Progress | None = None, *, is_locked: bool = False, whole: bool = False
    ) -> Result:
        """Bring the index up to date with the files, and return what changed.

        progress: called to report how much of a sweep is done, or None. A sweep compares all files
            of a project with the index.
        is_locked: whether the caller holds the home's lock. The daemon may be waiting for this
            lock, so it is given less time to answer.
        whole: whether to finish the sweeps of large projects, too. Otherwise they may go on later.
        """
        from memoranda.index.sync import Result

        result = Result()
        began = time.monotonic()
        opening_before = self._known_opening
        # If this update fails, the next one must look at the disk.
        self._last_update_began = 0.0
        whole = whole or self._must_be_whole
        # This call waits for the late projects. So their sweeps in small pieces end here, and these
        # projects are swept at once, as all others are.
        if whole and self.late_sweeps:
            self.close()
        try:
            self._update(result, progress, whole, is_locked=is_locked)
            if self._is_index_replaced():
                # Another thread opened another index while this one read a large file.
                self._index.try_later()
                self._update(result, progress, whole, is_locked=is_locked)
        except BaseException:
            # The watch reports each change only once, so its reports for this update are lost.
            self._let_all_be_swept()
            raise
        has_filled_new_index = self._index.openings != opening_before
        if has_filled_new_index:
            # This update filled a new index, which may have taken long. So a stand-in for an index
            # that cannot be used is kept for some more seconds.
            self._index.try_later()
        self._must_be_whole = False
        self._last_update_began = began
        self.why_behind = ""
        return result

    def _is_index_replaced(self) -> bool:
        """Whether another index was opened since the last update, so that nothing is known of it."""
        return self._index.openings != self._known_opening

    def _let_all_be_swept(self) -> None:
        """Make the next update compare all projects with the disk, and begin late sweeps again."""
        self._to_sweep = set(self.sources)
        if self.late_sweeps:
            self.close()

    def _update(
        self, result: Result, progress: Progress | None, whole: bool, *, is_locked: bool
    ) -> None:
        """Do the work of `update`, and add the changes to `result`.

        progress: called to report how far a sweep has got.
        whole: whether to finish the sweeps of large projects, too.
        is_locked: whether this process holds the lock of the home.
        """
        # While this thread reads a large file, another thread may apply another configuration. This
        # update keeps to the projects that it began with.
        sources = self.sources
        # From here to its end, a verb uses the same index, even if another process replaces it.
        self._index.pin()
        self._prepare_for_changed_surroundings()

        # The changes are taken before a new watch is opened: it sees only later ones.
        changes = self._changes_seen_by_watch()
        if not self._watch and self._wants_watch:
            self._open_watch(self._may_be_late and not whole)

        troubled_before = set(self._troubles)
        # The projects to sweep that this update knows of. The update of another thread may fail
        # meanwhile. Then it puts a new set in `_to_sweep`, which must stay as it is.
        pending = self._to_sweep

        if changes is None:
            # Without a report of the watch, every project has to be compared with the disk.
            swept_projects = sources.keys() - self.late_sweeps.keys()
        else:
            swept_projects = self._projects_beyond_the_watch() - self.late_sweeps.keys()
            self._show_seen_changes(changes, sources.keys() - swept_projects, result)

        self._sweep_projects(swept_projects, result, progress, is_locked=is_locked)

        has_lost_troubles = bool(troubled_before - self._troubles.keys())
        if has_lost_troubles:
            # Folders that can be read again are not watched yet, so open the watch again.
            self.close()
        # `pending` is empty unless projects had to be swept. That also happens after a change of the
        # projects themselves.
        if pending:
            pending -= swept_projects
            self._forget_removed_projects()
        self.retire_expired()

    def _sweep_projects(
        self, projects: Set[str], result: Result, progress: Progress | None, *, is_locked: bool
    ) -> None:
        """Compare projects with the index, except those that the daemon keeps up to date.

        projects: their names.
        result: the numbers of changes so far; the new changes are added.
        progress: called to report how far a sweep has got.
        is_locked: whether this process holds the lock of the home.
        """
        # The configuration may have changed while another thread had its turn, before this and at
        # each sweep (`NoteReader.home_released_if_allowed`).
        known_projects = projects & self.sources.keys()
        covered_by_daemon = self._shown_by_daemon(known_projects, is_locked=is_locked)
        for project in sorted(known_projects - covered_by_daemon):
            source = self.sources.get(project)
            if source is not None:
                self._sweep(source, result, progress)

    def _prepare_for_changed_surroundings(self) -> None:
        """Find the projects that have to be swept for other reasons than a change of their files.

        The reasons are a new index, a replaced folder, and new rules about files to skip. Before a
        sweep, the index gets the passages that an ended process left out.
        """
        if self._is_index_replaced():
            self._begin_with_this_index()
        if self._is_a_root_replaced():
            self.close()
        self._let_new_rules_be_swept()
        if self._to_sweep:
            self._forget_other_scopes()
            # A process may have ended before it had inserted them.
            self._long_notes.place_what_is_left()

    def _begin_with_this_index(self) -> None:
        """Prepare a sweep of all projects, because another process has replaced the index."""
        self._known_opening = self._index.openings
        self._let_all_be_swept()
        self.left_out.load()

    def _is_a_root_replaced(self) -> bool:
        """Whether the folder of a watched project was created, removed or replaced since the watch
        began.
        """
        if not self._watch:
            return False
        roots = {name: _identity(self.sources[name].root) for name in self._roots}
        return self._roots != roots

    def _changes_seen_by_watch(self) -> Changes | None:
        """Return the changes that the watch has seen since the last update.

        None if nothing was watched, or if the watch has lost changes.
        """
        if not self._watch:
            return None
        changes = self._watch.drain()
        if changes is not None and changes.lost:
            self.close()
            return None
        return changes

    def _projects_beyond_the_watch(self) -> set[str]:
        """Return the projects that must be swept, because the watch does not see all their changes."""
        with_many_shared = {
            name for name, paths in self._shared_paths.items() if len(paths) > _MAX_SHARED_FILES
        }
        # A project in one of these sets may have been removed since.
        uncertain = self._to_sweep | self._troubles.keys() | with_many_shared
        unwatched = self.sources.keys() - self._roots.keys()
        return (uncertain & self.sources.keys()) | unwatched

    def _show_seen_changes(self, changes: Changes, projects: set[str], result: Result) -> None:
        """Make the index show the changes that the watch has seen in these projects.

        Files with a second name (`_shared_paths`) are looked at, too, because the watch cannot see all
        their changes.

        changes: the files and folders that the watch reported.
        projects: the projects to update by these reports. The caller sweeps the others.
        result: the numbers of changes so far; the new changes are added.
        """
        for project, folder in sorted(changes.folders):
            if project in projects & self.sources.keys():
                self._sweep(self.sources[project], result, progress=None, folder=folder)
        paths_by_project: dict[str, list[str]] = {}
        for project, path in changes.files:
            paths_by_project.setdefault(project, []).append(path)
        for project in sorted(projects & paths_by_project.keys()):
            # The configuration may have changed while another thread had its turn.
            if project in self.sources:
                self._show_files(self.sources[project], paths_by_project[project], result)
        for project in sorted(projects & self._shared_paths.keys()):
            shared_paths = self._shared_paths[project]
            if shared_paths and project in self.sources:
                self._show_files(self.sources[project], sorted(shared_paths), result)

    def _forget_removed_projects(self) -> None:
        """Remove the projects that no longer exist from the index and from the warnings."""
        index = self._index
        self._troubles = {
            name: texts for name, texts in self._troubles.items() if name in self.sources
        }
        for project in set(index.notes.projects()) - self.sources.keys():
            with index.write_lock, index.transaction():
                index.forget_project(project)

    def _show_files(self, source: Source, paths: Sequence[str], result: Result) -> None:
        """Make the index show these files as they are on disk now.

        source: the project.
        paths: the paths of the files in the project.
        result: the numbers of changes so far; the new changes are added.
        """
        differences: list[Difference] = []
        for path in paths:
            differences += self._differences_of_file(source, path)
        self._apply(source, differences, result)
        if isinstance(source, FolderSource):
            shared_paths = self._shared_paths.setdefault(source.name, set())
            shared_paths.difference_update(paths)
            shared_paths.update(path for path in paths if source.is_shared(path))

    def _let_new_rules_be_swept(self) -> None:
        """Let those projects be swept whose rules about files to skip have changed.

        The rules may leave out files that the index has, or let in files that it lacks.
        """
        changed = {
            name
            for name, source in self.sources.items()
            if isinstance(source, FolderSource) and source.look_at_conventions()
        }
        if changed:
            self._to_sweep |= changed
            self.close()

    def _forget_other_scopes(self) -> None:
        """Remove projects from the index whose notes have a scope that is no longer in force.

        The sweep that follows indexes these projects again, with the present scope.
        """
        index = self._index
        for name in sorted(self._to_sweep & self.sources.keys()):
            known_scopes = index.notes.scopes(name)
            if not known_scopes or is_in_force(known_scopes, self.scopes.get(name, "")):
                continue
            with index.write_lock, index.transaction():
                index.forget_project(name)

    def watched_folders(self) -> dict[str, str]:
        """Return the folders of the watched projects whose notes are all in the index, by the
        project's name.

        The index shows them as of the last update.
        """
        if self._watch is None or self.why_behind:
            return {}
        watched = self._roots.keys() - self._troubles.keys() - self._to_sweep
        return {name: self.sources[name].root for name in watched & self.sources.keys()}

    def _shown_by_daemon(self, projects: set[str], *, is_locked: bool) -> set[str]:
        """Ask the daemon to bring the index up to date. Return the projects that it keeps current.

        This process need not compare these projects with the disk (sweep them).

        projects: the projects that this process would have to sweep. Others are not returned.
        is_locked: whether this process holds the lock of the home.
        """
        # The daemon does not watch graph files. It is quick to compare them with the index.
        if all(self.sources[name].holds_entities for name in projects):
            return set()
        answer = self._answer_of_daemon(is_locked=is_locked)
        if not answer:
            return set()
        if not self._is_own_index(answer["index"]):
            return set()
        self.left_out.load()
        # A project of the same name may be another folder for the daemon, which a preset gave it.
        watched_folders = answer["projects"]
        # The daemon may be of a version that could not index some files.
        trusted = projects - self.left_out.failed_elsewhere
        return {name for name in trusted if watched_folders.get(name) == self.sources[name].root}

    def _answer_of_daemon(self, *, is_locked: bool) -> dict[str, Any] | None:
        """Ask the daemon to bring the index up to date, and return its answer.

        If the daemon is reading a large file, this waits for it. To read the file here as well
        would take as long, and double the work.

        is_locked: whether this process holds the lock of the home.

        None if there is no daemon, or if it is too busy to answer in time.
        """
        # The daemon may need the lock that this process holds, so waiting would be in vain.
        if is_locked:
            return self._ask_daemon(_DAEMON_SECONDS_LOCKED)
        # A question may make the daemon read a large file. Meanwhile, it answers the next question.
        answer = self._ask_daemon(_DAEMON_SECONDS) or self._ask_daemon(_DAEMON_SECONDS)
        end = time.monotonic() + _SECONDS_OF_READING
        while answer and answer.get("reading"):
            # Another program may write to the file again and again.
            if time.monotonic() > end:
                return None
            time.sleep(_SECONDS_BETWEEN_QUESTIONS)
            answer = self._ask_daemon(_DAEMON_SECONDS_READING)
        return answer

    def _ask_daemon(self, seconds: float) -> dict[str, Any] | None:
        """Ask the daemon once to bring the index up to date, and return its answer.

        seconds: how long to wait for the answer.

        None if there is no daemon, or if it does not answer in time.
        """
        from memoranda.engine import daemon_client

        try:
            answer: dict[str, Any] | None = daemon_client.ask(self._socket, METHOD, {}, seconds)
            return answer
        except OSError:
            return None

    def _is_own_index(self, daemon_index: Sequence[int]) -> bool:
        """Whether the index file that the daemon brought up to date is the one in use here.

        daemon_index: (st_dev, st_ino) of the daemon's file.
        """
        if self._index.is_copy:
            # This process cannot use the file, and has an index in memory.
            return False
        # The identity ends in the number of times that this process opened the file.
        return list(self._index.identity[:2]) == list(daemon_index)

    def retire_expired(self) -> None:
        """Hide entries whose time to live is over from all verbs (contract 004, 4).

        Their files are removed later.
        """
        now = microseconds(self._clock())
        index = self._index
        # Usually nothing has expired, and then no lock is taken.
        if index.notes.expired_paths(now, limit=1):
            with index.write_lock, index.transaction():
                index.entries.retire(now)

    def _open_watch(self, may_be_late: bool) -> None:
        """Watch all folders, and begin the sweeps of late projects.

        may_be_late: whether large projects are late.
        """
        from memoranda.index.watch import Watch

        # A graph file is one file, which is quick to compare. So it is not watched.
        watched_sources = {
            name: source for name, source in self.sources.items() if not source.holds_entities
        }
        self._roots = {name: _identity(source.root) for name, source in watched_sources.items()}
        late_sources: dict[str, FolderSource] = {}
        if may_be_late:
            late_sources = self._late_among(watched_sources)

        self._watch = Watch.open(self._folders_to_watch(watched_sources, late_sources))
        self._wants_watch = self._watch is not None
        self._to_sweep = set(self.sources)
        self.late_sweeps = {}
        # Without a watch every call compares all files, so no project can be late.
        if self._watch is not None:
            for name, late_source in late_sources.items():
                self.late_sweeps[name] = self._sweep_in_pieces(late_source, self._watch)

    def _late_among(self, sources: Mapping[str, Source]) -> dict[str, FolderSource]:
        """Return the sources that are too large to be compared during a call, by project."""
        return {
            name: source
            for name, source in sources.items()
            if isinstance(source, FolderSource)
            and os.path.isdir(source.root)
            and self._takes_long(source)
        }

    def _folders_to_watch(
        self, sources: Mapping[str, Source], late_sources: Mapping[str, FolderSource]
    ) -> list[tuple[str, str, str]]:
        """Return each folder to watch as (project, folder of the project, folder).

        sources: all projects to watch. Those that do not exist yet have no folders.
        late_sources: the late projects among them. Finding all folders of a large project takes
            long. So only the folders in which the index has notes are watched at first.
        """
        folders: list[tuple[str, str, str]] = []
        for name, source in sources.items():
            if name not in late_sources and os.path.isdir(source.root):
                folders += [(name, source.root, folder) for folder in source.folders()]
        for name, late_source in late_sources.items():
            known_folders = self._known_folders(late_source)
            folders += [(name, late_source.root, folder) for folder in known_folders]
        return folders

    def _takes_long(self, source: FolderSource) -> bool:
        """Whether a project is so large that calls should not wait until it is compared with the
        index.
        """
        may_be_late = not self._index.is_copy and source.name not in _NEVER_LATE
        # The index has seen a version only of a project that was a graph file before.
        was_graph_file = bool(self._index.seen_stamp(source.name))
        if not may_be_late or was_graph_file:
            return False
        return self._index.notes.number_in(source.name) > LARGE

    def _known_folders(self, source: FolderSource) -> list[str]:
        """Return the folders of a project that have notes in the index, as absolute paths."""
        folders = [source.root]
        for name in self._index.notes.folders_in(source.name):
            if not has_link(source.root, name):
                folders.append(f"{source.root}/{name}")
        return folders

    def catch_up(self, seconds: float) -> None:
        """Continue the sweeps of late projects for about this number of seconds."""
        index = self._index
        end = time.monotonic() + seconds
        index.pin()
        try:
            # If another process replaced the index, the next update begins the sweeps again.
            while self.late_sweeps and not self._is_index_replaced():
                name = next(iter(self.late_sweeps))
                is_swept = self._continue_sweep(name, end)
                if not is_swept:
                    return
        except BaseException:
            # A generator that has raised an error is at its end. The next update makes a new one.
            self.close()
            raise
        finally:
            index.unpin()

    def show_if_late(self, project: str, path: str) -> None:
        """Make the index show one file as it is now, if its project is late."""
        if project in self.late_sweeps:
            from memoranda.index.sync import Result

            source = self.sources[project]
            self._apply(source, self._differences_of_file(source, path), Result())

    def _continue_sweep(self, name: str, end: float) -> bool:
        """Continue the sweep of a late project. Returns whether the sweep is finished.

        Then the project is no longer late.

        end: when to stop, as a value of time.monotonic.
        """
        for _ in self.late_sweeps[name]:
            if time.monotonic() >= end:
                return False
        # A sweep that had to give up has closed the watch, and with it ended all late sweeps. Then
        # the project still has to be swept.
        was_given_up = name not in self.late_sweeps
        if not was_given_up:
            del self.late_sweeps[name]
            self._to_sweep.discard(name)
        return True

    def _sweep_in_pieces(self, source: FolderSource, watch: Watch) -> Iterator[None]:
        """Compare a late project with the index, and apply the differences. Yields often.

        Between two pieces, calls come in and other programs may write. So each difference is
        checked again before it is applied.

        source: the late project: a large one that was not compared yet.
        watch: the open watch, to which folders are added.
        """
        from memoranda.index import sync

        # First, collect the differences of all folders. If they were applied folder by folder, a
        # file that moved to another folder would look like a removed note and a new note.
        sweep = _LateSweep(sync.Comparison())
        while sweep.waiting_folders:
            folder = sweep.waiting_folders.pop()
            # Each folder is watched before it is listed, so that no change is missed.
            try:
                watch.add(source.name, source.root, folder)
            except OSError:
                # There are too many folders to watch, so every update has to sweep.
                self.close()
                self._wants_watch = False
                return
            yield from self._compare_folder(source, folder, sweep)

        # Then apply the differences in small parts.
        differences = sweep.comparison.end(sweep.removed, unreadable=())
        yield
        for start in range(0, len(differences), _DIFFERENCES_AT_A_TIME):
            some_differences = differences[start : start + _DIFFERENCES_AT_A_TIME]
            # Another process may hold the lock of the home. Calls come in before the next attempt.
            while not self._try_to_apply(source, some_differences):
                yield
            yield
        if sweep.unreadable_folders:
            self._troubles[source.name] = _unreadable(source.name, sweep.unreadable_folders)
        else:
            self._forget_lost_files(source)

    def _compare_folder(
        self, source: FolderSource, folder: str, sweep: _LateSweep
    ) -> Iterator[None]:
        """Compare the notes directly in one folder of a late project with the index. Yields often.

        sweep: gets the differences, and the folders in this folder.
        """
        notes = self._index.notes
        name = source.name
        listing = Listing()
        subfolders: list[str] = []
        known_paths: set[str] = set()
        for _ in source.portions(folder, listing, subfolders, _FILES_AT_A_TIME):
            known_stamps = notes.stamps_of(name, listing.stamps)
            known_paths.update(known_stamps)
            sweep.comparison.look(known_stamps, listing.stamps)
            # A large folder is never in memory as a whole.
            listing.stamps.clear()
            yield
        self._shared_paths.setdefault(name, set()).update(listing.shared)
        sweep.waiting_folders += subfolders
        sweep.unreadable_folders += listing.unreadable
        # If a folder cannot be read, nobody knows which of its notes were removed.
        if listing.unreadable:
            return
        for part in notes.missing_on_disk(name, folder, known_paths, subfolders, _FILES_AT_A_TIME):
            sweep.removed.update(part)
            yield

    def _forget_lost_files(self, source: FolderSource) -> None:
        """Forget those files of a project that were left out of the index and do not exist any
        more.
        """
        lost = [
            (source.name, path)
            for path in self.left_out.paths_in(source.name)
            if source.stamp(path) is None
        ]
        if lost:
            self.left_out.forget_all(lost)

    def _try_to_apply(self, source: FolderSource, earlier: Sequence[Difference]) -> bool:
        """Apply the differences that still exist to the index.

        earlier: differences that were found a while ago.

        Returns False if another process holds the home's lock. Then nothing was applied.
        """
        from memoranda.index.sync import Result

        differences = self._still_there(source, earlier)
        try:
            with waits_at_most(_LOCK_SECONDS):
                self._apply_now(source, differences, Result())
        except Busy:
            return False
        return True

    def _still_there(self, source: Source, earlier: Iterable[Difference]) -> list[Difference]:
        """Return the differences that still exist.

        earlier: differences that were found a while ago.
        """
        differences: list[Difference] = []
        for difference in earlier:
            old_path = difference.old
            path = difference.path
            # A file that was not moved.
            if old_path is None or old_path == path:
                differences += self._differences_of_file(source, path)
            elif self._is_still_moved(source, old_path, path):
                differences.append(difference)
            else:
                # The move is undone or goes on, so both places are looked at by themselves.
                differences += self._differences_of_file(source, old_path)
                differences += self._differences_of_file(source, path)
        return differences

    def _is_still_moved(self, source: Source, old_path: str, path: str) -> bool:
        """Whether a file that was moved from `old_path` to `path` is still at its new place.

        The index must not have the note at its new place yet.
        """
        if source.stamp(old_path) is not None or not source.stamp(path):
            return False
        return self._index.notes.stamp(source.name, path) is None

    def _sweep(
        self, source: Source, result: Result, progress: Progress | None, folder: str = ""
    ) -> None:
        """Compare a project, or one folder of it, with the index, and apply the differences.

        source: the project.
        result: the numbers of changes so far; the new changes are added.
        progress: called to report how far the sweep has got.
        folder: the folder; "" for the whole project.
        """
        index = self._index
        name = source.name
        self._troubles.pop(name, None)
        # Only a project that is a single file has a version, which changes with every write. The
        # index stores the version that it shows.
        version = source.version()
        if version is not None and version == index.seen_stamp(name):
            return
        # A writer may have died while it wrote the file. Its change is completed before the file is
        # read.
        if version is not None and self._ledger.has_line_change():
            self._ledger.try_to_recover()
            version = source.version()
        if not source.holds_entities:
            self._forget_former_graph_file(name)

        try:
            differences = self._differences_in(source, folder)
        except MemorandaError as error:
            self._troubles[name] = [str(error)]
            return
        self._apply(source, differences, result, progress)
        if version is not None and name not in self._troubles:
            with index.write_lock, index.transaction():
                index.record_seen(name, version)

    def _forget_former_graph_file(self, name: str) -> None:
        """Remove a project from the index if it was a graph file before, and is a folder now.

        The index has entities of it, which a comparison with files would not find.
        """
        index = self._index
        # Projects are pending when they may have changed. Usually this saves asking the index.
        was_graph_file = name in self._to_sweep and index.seen_stamp(name)
        if was_graph_file:
            with index.write_lock, index.transaction():
                index.forget_project(name)

    def _differences_in(self, source: Source, folder: str) -> Sequence[Difference]:
        """Return the differences between a project, or one folder of it, and the index.

        folder: the folder; "" for the whole project.

        If the project cannot be read, the result is empty and `_troubles` gets the reason. Raises
        MemorandaError.
        """
        trouble = source.trouble()
        if trouble:
            if not self._is_to_come(source):
                self._troubles[source.name] = [trouble]
            return ()
        # Some sources know themselves what changed since the version that the index shows. The
        # files of others have to be listed.
        if not folder:
            changed_paths = source.changed_since(self._index.seen_stamp(source.name))
            if changed_paths is not None:
                return self._differences_of_paths(source, changed_paths)
        return self._differences_by_listing(source, folder)

    def _is_to_come(self, source: Source) -> bool:
        """Whether a project does not exist on disk because nobody has written to it yet."""
        if not source.optional or source.version() is not None:
            return False
        # If the index has notes of it, it existed before.
        return not self._index.notes.stamps(source.name)

    def _differences_of_paths(self, source: Source, paths: Iterable[str]) -> list[Difference]:
        """Return the differences between some files of a project and the index.

        paths: the paths of files, or of the entities of a graph file.
        """
        differences: list[Difference] = []
        for path in paths:
            differences += self._differences_to_stamp(source, path, source.stamp(path))
        return differences

    def _differences_by_listing(self, source: Source, folder: str) -> Sequence[Difference]:
        """List the files of a project or folder, and return their differences to the index."""
        name = source.name
        listing = Listing()
        parts = self._parts(source, folder, listing)
        # `plan` lists the parts one by one. `listing` is complete only after it.
        differences = self._index.plan(name, parts, listing.unreadable, folder)
        if not folder:
            self._shared_paths[name] = set()
        self._shared_paths.setdefault(name, set()).update(listing.shared)
        if listing.unreadable:
            self._troubles[name] = _unreadable(name, listing.unreadable)
        return differences

    def _differences_of_file(self, source: Source, path: str) -> list[Difference]:
        """Return the differences between one file and the index."""
        # A stamp of None means that there is no note.
        stamp = source.stamp(path) if source.is_note(path) else None
        # The index lacks such a file as long as it stays as it is.
        if stamp is not None and self.left_out.has((source.name, path), stamp):
            return []
        return self._differences_to_stamp(source, path, stamp)

    def _differences_to_stamp(
        self, source: Source, path: str, stamp: Stamp | None
    ) -> list[Difference]:
        """Return the differences between a file with this stamp and the index.

        stamp: the size and times of the file. None if the file is gone.
        """
        key = (source.name, path)
        is_gone = stamp is None
        if is_gone and self.left_out.is_known(key):
            self.left_out.forget_all([key])
        return self._index.plan_file(source.name, path, stamp)

    def _apply(
        self,
        source: Source,
        differences: Sequence[Difference],
        result: Result,
        progress: Progress | None = None,
    ) -> None:
        """Apply differences to the index, and add them to `result`.

        Large files are read last, while other threads may use the home.
        """
        if not differences:
            # The usual case. Passages may be missing from an earlier change.
            self._long_notes.place_what_is_left()
            return
        # Other threads apply the differences of the files that they are reading now.
        if self._being_read:
            differences = [
                difference
                for difference in differences
                if (source.name, difference.path) not in self._being_read
            ]
        large = self._differences_of_large_files(source, differences)
        if not large:
            self._apply_now(source, differences, result, progress)
            return
        others = [difference for difference in differences if difference not in large]
        self._apply_now(source, others, result, progress)
        self._apply_large(source, large, result)

    def _differences_of_large_files(
        self, source: Source, differences: Sequence[Difference]
    ) -> list[Difference]:
        """Return the differences of the files to be read while other threads may use the home.

        Empty if there are too many large files, or too many bytes in them.
        """
        from memoranda.index.sync import BATCH

        # More differences than a batch are a first look at a project, for which others wait anyway.
        # A graph file has many notes, and is read as a whole.
        if len(differences) > BATCH or source.holds_entities:
            return []
        large: list[Difference] = []
        total_bytes = 0
        for difference in differences:
            size = self._bytes_to_read(source, difference)
            if size > _LARGE_FILE_BYTES:
                large.append(difference)
                total_bytes += size
        # A single file may have any size.
        if len(large) <= 1:
            return large
        if len(large) > _MOST_LARGE_FILES or total_bytes > _MOST_LARGE_BYTES:
            return []
        return large

    def _bytes_to_read(self, source: Source, difference: Difference) -> int:
        """Return the size of a changed file or of its former text, whichever is larger.

        To take the former text out of the index, its words have to be computed.
        """
        # The size is looked up again, because a file may have grown since the change was seen.
        stamps = [source.stamp(difference.path)]
        if difference.old is not None:
            stamps.append(self._index.notes.stamp(source.name, difference.old))
        return max(stamp.size if stamp is not None else 0 for stamp in stamps)

    def _apply_large(self, source: Source, earlier: Sequence[Difference], result: Result) -> None:
        """Apply the differences of large files, and add them to `result`.

        While their texts are read, other threads may use the home, and the index has the notes as
        they were before.

        earlier: the differences as they are before the files are read.
        """
        name = source.name
        files = {(name, difference.path) for difference in earlier}
        replaced_notes = self._replaced_notes(name, earlier)
        # Other threads leave the differences of these files to this thread.
        self._being_read |= files
        try:
            # The words that are computed while others use the home are remembered for `_apply_now`.
            with remembering():
                ahead = self._read_while_released(source, earlier, replaced_notes)
                with self._long_notes.replacing([(name, note) for note in replaced_notes]):
                    is_same_source = self.sources.get(name) is source
                    if is_same_source and not self._is_index_replaced():
                        differences = self._still_there(source, earlier)
                        self._apply_now(source, differences, result, ahead=ahead)
                    else:
                        # Another thread replaced the index or the project. So the next update sweeps.
                        self._to_sweep = set(self.sources)
        finally:
            self._being_read -= files

    def _replaced_notes(self, project: str, differences: Sequence[Difference]) -> list[Indexed]:
        """Return the notes of the index that these differences of a project replace or remove."""
        notes: list[Indexed] = []
        for difference in differences:
            if difference.old is None:
                continue
            note = self._index.indexed(project, difference.old)
            if note is not None:
                notes.append(note)
        return notes

    def _read_while_released(
        self, source: Source, differences: Sequence[Difference], replaced_notes: Sequence[Indexed]
    ) -> dict[str, ReadAhead]:
        """Read changed files while others use the home, and return the notes by path.

        The words of the notes that they replace are computed as well.

        differences: the differences of the files.
        replaced_notes: the notes of the index that they replace.

        The result is empty if others cannot use the home meanwhile. Then `_apply_now` reads the
        files.
        """
        from memoranda.index.writer import foresee_removal

        # A project without notes in the index has no id yet. 0 is none of the ids.
        project_id = self._index.project_ids().get(source.name.casefold(), 0)
        ahead: dict[str, ReadAhead] = {}
        with self._reader.home_released_if_allowed() as is_released:
            # The running call holds a lock, so reading here would gain nothing.
            if not is_released:
                return ahead
            for difference in differences:
                path = difference.path
                note_read = self._read_settled(source, path, project_id)
                if note_read is not None:
                    ahead[path] = note_read
            for note in replaced_notes:
                foresee_removal(source.name, note)
        return ahead

    def _read_settled(self, source: Source, path: str, project_id: int) -> ReadAhead | None:
        """Read a note while others use the home. Read it again if it changed meanwhile.

        project_id: the id of its project in the index.

        None if the note cannot be read, or if it changed during every attempt.
        """
        for _ in range(_MOST_READINGS):
            note_read = self._reader.read_ahead(source, path, project_id)
            if note_read is None or note_read.rows.stamp == source.stamp(path):
                return note_read
        return None

    def _apply_now(
        self,
        source: Source,
        differences: Sequence[Difference],
        result: Result,
        progress: Progress | None = None,
        ahead: Mapping[str, ReadAhead] = {},
    ) -> None:
        """Apply differences to the index, and add them to `result`.

        If a note cannot be indexed, it is left out. Its batch is then applied file by file, so that
        many such notes take no longer than as many others.

        source: the project.
        differences: the differences between its files and the index.
        progress: called with the number of applied differences, and of all.
        ahead: the notes that were read before, by path.
        """
        from memoranda.index.sync import BATCH

        application = _Application(
            freshness=self,
            source=source,
            differences=differences,
            result=result,
            progress=progress,
            ahead=ahead,
        )
        # Helper processes read many files ahead. They would begin again after each note that is
        # left out, so from the first such note on, this process reads the files itself.
        bulk_source = self._reader.bulk_source_of(source)
        while application.applied_count < len(differences):
            try:
                application.apply_rest(bulk_source)
            except NotIndexable:
                bulk_source = None
                # The note is in the batch that comes next.
                begin = application.applied_count
                for difference in differences[begin : begin + BATCH]:
                    application.apply_or_leave_out(difference)
        self._long_notes.place_what_is_left()

    def load_for_index(
        self, source: Source, path: str, ahead: ReadAhead | None
    ) -> tuple[Note, Stamp] | None:
        """Read the note at a path as `load` does, and keep the text that it replaces.

        ahead: the note as it was read before; None if it was not.
        """
        loaded = self._reader.load(source, path, ahead)
        # A file that is new to this comparison may be in the index by now: another process may
        # have indexed it in the meantime.
        if loaded is not None:
            note, _ = loaded
            self._keep_replaced(note)
        return loaded

    def apply_to_index(
        self,
        source: Source,
        differences: Sequence[Difference],
        load: Callable[[str], tuple[Note, Stamp] | None],
        result: Result,
        progress: Progress,
        bulk_source: BulkSource | None,
        rows: Mapping[str, Prepared],
    ) -> None:
        """Call `Index.apply` with these arguments.

        bulk_source: lets helper processes read many files. None if only this process reads them.
        """
        self._index.apply(
            source.name,
            changes=differences,
            load=load,
            # It is taken for each batch, so that other processes can write in between.
            lock=self._index.write_lock,
            result=result,
            progress=progress,
            files=bulk_source,
            ahead=rows,
        )

    def _keep_replaced(self, note: Note) -> None:
        """Keep the former text of a note that another program replaced, if a change wrote it.

        The history needs it to tell what the other program changed. Only the index has it still.
        """
        # Entries may have a time to live, and then leave no text.
        if note.project == KV_PROJECT:
            return
        text = self._index.notes.file_text(note.project, note.path, unless_etag=note.etag)
        if text is None:
            return
        # If the ledger cannot be written, the call is answered all the same.
        with suppress(StorageError):
            self._ledger.history.keep_overwritten(text.encode("utf-8", "surrogateescape"))

    def leave_out(self, source: Source, error: NotIndexable) -> None:
        """Record that a note is not in the index until its file changes, and why."""
        with self._index.write_lock, self._index.transaction():
            key = (source.name, error.path)
            self.left_out.add(key, error.stamp, str(error), fails_here=True)

    def _parts(self, source: Source, folder: str, listing: Listing) -> Iterator[dict[str, Values]]:
        """Yield the stamps of a project's files by path, in several parts.

        A file is left out if it is known not to be text and has not changed since.

        folder: the folder to list; "" for the whole project.
        listing: gets the folders that cannot be read, and other findings.
        """
        name = source.name
        # At first these are all files that were left out. Each file that is listed is taken away, so
        # in the end only files remain that no longer exist.
        missing_paths = self.left_out.paths_in(name, folder)
        for _ in source.parts(folder, listing):
            for path in missing_paths & listing.stamps.keys():
                missing_paths.remove(path)
                if self.left_out.has((name, path), listing.stamps[path]):
                    del listing.stamps[path]
            yield listing.stamps
            listing.stamps.clear()
        # The files in a folder that cannot be read may still exist.
        if missing_paths and not listing.unreadable:
            self.left_out.forget_all((name, path) for path in missing_paths)

    def drop_derived(self) -> None:
        """Remove everything that is derived from notes. It is made again when it is needed.

        This is done after another machine has erased notes, so that no copy of their text remains
        here.
        """
        layout = self._ledger.layout
        with self._ledger.lock:
            self.rebuild_others()
            self._index.scrub()
            lists = [layout.overview, *layout.pending_lists()]
            for path in (*lists, *layout.vectors.glob("*")):
                path.unlink(missing_ok=True)
            self._ledger.forget_sessions()
            layout.erased.unlink(missing_ok=True)

    def rebuild_others(self) -> None:
        """Empty the other indexes of this home.

        They belong to processes with other sets of projects, which then rebuild them.
        """
        for path in self._ledger.layout.indexes():
            if path != self._index.path:
                Index(path, self._ledger.lock).rebuild()

    def accept(self, project: str, path: str, stamp: Stamp, note: Note | None) -> Note | None:
        """Return the note at a path if it may be indexed.

        stamp: the size and times of its file.
        note: the note, or None for a file that is not text. Such a file is left out, and the result
            is None.
        """
        key = (project, path)
        # Before the first update, the record of files that are left out is not loaded yet.
        if not self._known_opening:
            self.left_out.load()
        if note is not None:
            self.left_out.forget(key)
            return note
        # In other projects than those of memories, files that are not text are nothing unusual.
        self.left_out.add(key, stamp, NOT_UTF8 if project in MEMORY_PROJECTS else "")
        return None


class _Application:
    """Applies the differences of one project to the index, and counts those that are applied.

    freshness: loads the notes, and has the index.
    source: the project.
    differences: the differences between its files and the index.
    result: the numbers of changes so far; the applied differences are added.
    progress: called with the number of applied differences, and of all.
    ahead: the notes that were read before, by path.
    """

    def __init__(
        self,
        freshness: Freshness,
        source: Source,
        differences: Sequence[Difference],
        result: Result,
        progress: Progress | None,
        ahead: Mapping[str, ReadAhead],
    ):
        self._freshness = freshness
        self._source = source
        self._differences = differences
        self._result = result
        self._progress = progress
        self._ahead = ahead
        self._rows = {path: read.rows for path, read in ahead.items()}
        # The paths of notes that cannot be indexed.
        self._paths_left_out: set[str] = set()
        self.applied_count = 0
        """How many of the differences are applied. They are the first ones."""

    def apply_rest(self, bulk_source: BulkSource | None) -> None:
        """Apply all differences that are not yet applied.

        bulk_source: reads many files ahead, in other processes. None reads them one by one.

        Raises NotIndexable for a note that cannot be indexed. Then the batches before it are
        applied, and counted in `applied_count`.
        """
        rest = self._differences
        # A slice is a list, which takes more memory than `Differences`. So it is only made if needed.
        if self.applied_count > 0:
            rest = self._differences[self.applied_count :]
        self._apply(rest, bulk_source)

    def apply_or_leave_out(self, difference: Difference) -> None:
        """Apply the next difference. If its note cannot be indexed, leave the note out."""
        try:
            self._apply([difference], bulk_source=None)
        except NotIndexable as error:
            self._paths_left_out.add(error.path)
            self._freshness.leave_out(self._source, error)
            # `_load` says now that no note is there. So an earlier text of it goes from the index.
            self._apply([difference], bulk_source=None)

    def _apply(self, differences: Sequence[Difference], bulk_source: BulkSource | None) -> None:
        """Apply the next differences, and count them."""
        count_before = self.applied_count

        def count(number: int, _: int) -> None:
            """Count the first `number` of these differences as applied."""
            self.applied_count = count_before + number
            if self._progress is not None:
                self._progress(self.applied_count, len(self._differences))

        self._freshness.apply_to_index(
            self._source,
            differences=differences,
            load=self._load,
            result=self._result,
            progress=count,
            bulk_source=bulk_source,
            rows=self._rows,
        )

    def _load(self, path: str) -> tuple[Note, Stamp] | None:
        """Read the note at a path. None if it is left out, or if no note is there."""
        if path in self._paths_left_out:
            return None
        return self._freshness.load_for_index(self._source, path, self._ahead.get(path))


def _unreadable(project: str, folders: Sequence[str]) -> list[str]:
    """Return a sentence for each folder of a project that cannot be read."""
    return [f"Folder {folder or '/'} of project {project} cannot be read." for folder in folders]


def _identity(path: str | Path) -> _Identity:
    """Return the device and the inode of the folder or file at a path. None if nothing is at the
    path.

    If the result differs from an earlier one, another folder or file is at the path now.
    """
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
