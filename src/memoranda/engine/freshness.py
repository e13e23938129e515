"""Keeping the index in step with the disk, by the system's watch or by sweeps over all files.

Every call sees each change that was on disk before it, by whatever program. The exception is a
server whose first look at a large project would take long. Until that look is complete, its calls
are answered from the index, with a warning. They see the changes made since the first call, and
older ones as soon as the background look reaches them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from memoranda.clock import Clock, microseconds, waits_at_most
from memoranda.errors import Busy, MemorandaError, ProjectWarning
from memoranda.index.index import Index
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
from memoranda.sources.base import Listing, Stamp, Values, bounded
from memoranda.sources.folder import FolderSource
from memoranda.sources.path_guard import has_link
from memoranda.sources.source import Source

if TYPE_CHECKING:
    from memoranda.index.sync import BulkSource, Difference, Progress, Result
    from memoranda.index.watch import Changes, Watch

Loader = Callable[[Source, str], tuple[Note, Stamp] | None]
_Identity = tuple[int, int] | None
METHOD = "fresh"
"""The daemon's method that brings the index up to date, for processes without a watch."""
# How long a command waits for the daemon to say what changed on disk.
_DAEMON_SECONDS = 0.25
_DAEMON_SECONDS_LOCKED = 0.05
LARGE = 50_000
"""Notes from which on a server's first look at a project's files, some tenths of a second, goes on
behind its calls.
"""
# Files of one portion of a listing, after which the lock may go to others.
_LISTED = 200
# Files compared with the index, and changes applied to it, in one piece of that: a few
# milliseconds.
_APPLIED = 4
# Files with other names in a project from which on all its files are compared, which is faster than
# one by one.
_MANY_SHARED = 200
# How long that waits for the home's lock, the guard held.
_LOCK_SECONDS = 0.01
# Projects whose verbs take what the index has for all there is.
_NEVER_LATE = frozenset((*MEMORY_PROJECTS, GRAPH_PROJECT, KV_PROJECT))
_LATE = (
    "The files of project {} are still being compared with the index: what changed before this "
    "server started may be missing here, or shown as it was. A note that is read is as it is on disk."
)
NOT_UTF8 = with_code(NOT_UTF8_CODE, "bytes that are not UTF-8 are shown as U+FFFD")
UTF16 = with_code(
    UTF16_CODE, "it is UTF-16 text, which is shown and not changed; convert it to UTF-8"
)


class Freshness:
    """Finds the changes on disk that the index lacks. The caller holds the engine's guard.

    sources: the sources of all projects; set again when the projects change.
    load: gives the note at a path of a source.
    files: gives the means by which other processes read many files of a source.
    watch: let the system report changes.
    may_be_late: look at large projects in the background. `catch_up` is called between calls as
        long as `late` names projects.
    socket: where the daemon listens. A process that would have to look at all files asks it first,
        and skips the projects that it watches.
    """

    def __init__(
        self,
        index: Index,
        ledger: Ledger,
        sources: Mapping[str, Source],
        load: Loader,
        files: Callable[[Source], BulkSource | None],
        clock: Clock,
        watch: bool,
        may_be_late: bool,
        socket: Path,
    ):
        self._index = index
        self._ledger = ledger
        self.sources = sources
        self._load = load
        self._files = files
        self._clock = clock
        self._wants_watch = watch
        self._may_be_late = may_be_late
        self._must_be_whole = False
        self._socket = socket
        self._watch: Watch | None = None
        self._roots: dict[str, _Identity] = {}
        self._pending: set[str] = set(self.sources)
        self._openings = 0
        self._looked = 0.0
        self._troubles: dict[str, list[str]] = {}
        self._skipped: dict[tuple[str, str], Stamp] = {}
        self._shared: dict[str, set[str]] = {}
        """By project the notes whose file has another name; the watch does not tell of all that is
        written to them."""
        self.scopes: dict[str, str] = {}
        """The scope in force of the projects that only some agents may use."""
        self.late: dict[str, Iterator[None]] = {}
        """The projects that are still compared with the disk, and the rest of that."""
        self.unreadable: dict[tuple[str, str], str] = {}
        """Files left out because they cannot be read: (project, path) -> why."""
        self.is_current = False
        """Whether the verb at work has looked at the disk already."""
        self.behind = ""
        """Why the index may not show the last changes."""
        self.elsewhere = ""
        """Why changes made on other machines may be missing."""

    def close(self) -> None:
        """Stop watching."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None
            self._wants_watch = True
        self.late.clear()

    def forget(self, *, whole: bool = False) -> None:
        """Look at every file next time; with `whole` no project may be late then."""
        self._must_be_whole |= whole
        self._looked = 0.0
        self._pending = set(self.sources)
        self.is_current = False
        self.close()

    @property
    def is_swept(self) -> bool:
        """Whether the index shows what was on disk when this process first looked."""
        return not self._pending

    @property
    def warnings(self) -> list[ProjectWarning]:
        """Warnings about projects that the last look could not see whole."""
        warnings = []
        for name, troubles in sorted(self._troubles.items()):
            warnings += [ProjectWarning(text, name) for text in troubles]
        for name in sorted(self.late):
            warnings.append(ProjectWarning(_LATE.format(name), name))
        return warnings + [ProjectWarning(text) for text in (self.behind, self.elsewhere) if text]

    def has_seen(self, moment: float) -> bool:
        """Whether the index has been compared with the disk since `moment` (time.monotonic)."""
        if moment >= self._looked or self.behind:
            return False
        self._index.pin()
        return self._index.openings == self._openings

    def update(
        self, progress: Progress | None = None, *, is_locked: bool = False, whole: bool = False
    ) -> Result:
        """Make the index show every change on disk; unless `whole`, projects may be late. Returns
        what it found.

        `is_locked`: the caller holds the home's lock, which the daemon may be waiting for.
        """
        from memoranda.index.sync import Result

        result = Result()
        begun = time.monotonic()
        self._looked = 0.0
        openings = self._openings
        whole = whole or self._must_be_whole
        if whole and self.late:
            self.close()
        try:
            self._update(
                result, progress, _DAEMON_SECONDS_LOCKED if is_locked else _DAEMON_SECONDS, whole
            )
            self._must_be_whole = False
        except BaseException:
            if self.late:
                self.close()
            # The system tells a change once: look at everything next time
            self._pending = set(self.sources)
            raise
        if self._index.openings != openings:
            # Catching up may have taken long.
            self._index.try_later()
        self._looked = begun
        self.behind = ""
        return result

    def _update(
        self, result: Result, progress: Progress | None, patience: float, whole: bool
    ) -> None:
        sources = self.sources
        # A verb sees a single index, even if another process rebuilds it.
        self._index.pin()
        if self._index.openings != self._openings:
            self._begin_with_this_index()
        if self._has_another_root():
            self.close()
        self._look_at_conventions()
        if self._pending:
            self._forget_other_scopes()
        changes = self._changes_seen_by_watch()
        if not self._watch and self._wants_watch:
            self._open_watch(self._may_be_late and not whole)
        troubled = set(self._troubles)
        if changes is None:
            sweeps = sources.keys() - self.late.keys()
        else:
            sweeps = self._beyond_the_watch() - self.late.keys()
            self._look_at_changes(changes, sources.keys() - sweeps, result)
        covered = self._shown_by_daemon(sweeps, patience)
        for project in sorted(sweeps - covered):
            self._sweep(sources[project], result, progress)
        if troubled - self._troubles.keys():
            # Folders that can be read again were not watched in between.
            self.close()
        if self._pending:
            self._pending -= sweeps
            self._forget_removed_projects()
        self.retire_expired()

    def _begin_with_this_index(self) -> None:
        """Know nothing of what the index shows: another process may have rebuilt it."""
        self._openings = self._index.openings
        self._pending = set(self.sources)
        if self.late:
            self.close()
        self._load_skipped()

    def _has_another_root(self) -> bool:
        """Whether a watched project's folder was made, went away or was exchanged."""
        if not self._watch:
            return False
        roots = {name: _identity(self.sources[name].root) for name in self._roots}
        return self._roots != roots

    def _changes_seen_by_watch(self) -> Changes | None:
        """The changes since the last look.

        None if nothing was watched, or if some changes were lost.
        """
        if not self._watch:
            return None
        changes = self._watch.drain()
        if changes is not None and changes.lost:
            self.close()
            return None
        return changes

    def _beyond_the_watch(self) -> set[str]:
        """The projects of which the watch does not tell every change."""
        many_shared = {name for name, paths in self._shared.items() if len(paths) > _MANY_SHARED}
        uncertain = self._pending | self._troubles.keys() | many_shared
        unwatched = self.sources.keys() - self._roots.keys()
        return (uncertain & self.sources.keys()) | unwatched

    def _look_at_changes(self, changes: Changes, projects: set[str], result: Result) -> None:
        """Make the index show the changes that the watch has seen in these projects."""
        for project, folder in sorted(changes.folders):
            if project in projects:
                self._sweep(self.sources[project], result, None, folder)
        paths_by_project: dict[str, list[str]] = {}
        for project, path in changes.files:
            paths_by_project.setdefault(project, []).append(path)
        for project in sorted(projects & paths_by_project.keys()):
            self._look_at_files(self.sources[project], paths_by_project[project], result)
        for project in sorted(projects & self._shared.keys()):
            self._look_at_files(self.sources[project], sorted(self._shared[project]), result)

    def _forget_removed_projects(self) -> None:
        """Take removed projects out of the index and out of the warnings."""
        index = self._index
        self._troubles = {
            name: texts for name, texts in self._troubles.items() if name in self.sources
        }
        for project in set(index.notes.projects()) - self.sources.keys():
            with index.write_lock, index.transaction():
                index.forget_project(project)

    def _look_at_files(self, source: Source, paths: Sequence[str], result: Result) -> None:
        """Make the index show these files as they are now."""
        differences: list[Difference] = []
        for path in paths:
            differences += self._differs(source, path)
        self._apply(source, differences, result)
        if isinstance(source, FolderSource):
            shared = self._shared.setdefault(source.name, set())
            shared.difference_update(paths)
            shared.update(path for path in paths if source.is_shared(path))

    def _look_at_conventions(self) -> None:
        """Schedule a full look at each project whose rules for skipped files have changed."""
        changed = {
            name
            for name, source in self.sources.items()
            if isinstance(source, FolderSource) and source.look_at_conventions()
        }
        if changed:
            self._pending |= changed
            self.close()

    def _forget_other_scopes(self) -> None:
        """Projects whose notes were indexed for other agents than may use them now are indexed
        again."""
        index = self._index
        for name in sorted(self._pending & self.sources.keys()):
            known_scopes = index.notes.scopes(name)
            if not known_scopes or is_in_force(known_scopes, self.scopes.get(name, "")):
                continue
            with index.write_lock, index.transaction():
                index.forget_project(name)

    def shown(self) -> dict[str, str]:
        """The folders, by project, that were in step with the index when this process last looked.

        Only folders that this process watches are included.
        """
        if self._watch is None or self.behind:
            return {}
        watched = self._roots.keys() - self._troubles.keys() - self._pending
        return {name: self.sources[name].root for name in watched & self.sources.keys()}

    def _shown_by_daemon(self, sweeps: set[str], patience: float) -> set[str]:
        """The projects among `sweeps` that a daemon watches and has brought up to date in this
        index.

        patience: how many seconds to wait for the daemon's answer.
        """
        if all(self.sources[name].holds_entities for name in sweeps):
            return set()
        from memoranda.engine import daemon_client

        try:
            answer = daemon_client.ask(self._socket, METHOD, {}, patience)
        except OSError:
            # The daemon is busy.
            return set()
        if not answer or answer["index"] != list(self._index.identity[:2]) or self._index.is_copy:
            return set()
        self._load_skipped()
        return {name for name in sweeps if answer["projects"].get(name) == self.sources[name].root}

    def _load_skipped(self) -> None:
        """Load from the index which files are not notes."""
        skipped = self._index.notes.skipped()
        self._skipped = {key: stamp for key, (stamp, _) in skipped.items()}
        self.unreadable = {key: why for key, (_, why) in skipped.items() if why}

    def retire_expired(self) -> None:
        """Take entries past their time to live out of every face, from that moment on (contract
        004, 4).
        """
        now = microseconds(self._clock())
        index = self._index
        if index.notes.expired_paths(now, 1):
            with index.write_lock, index.transaction():
                index.entries.retire(now)

    def _open_watch(self, may_be_late: bool) -> None:
        """Watch all folders.

        may_be_late: whether large projects are compared later. Only their folders in the index are
            watched then, as finding all of them takes long.
        """
        from memoranda.index.watch import Watch

        sources = self.sources
        roots_by_name = {
            name: source.root for name, source in sources.items() if not source.holds_entities
        }
        self._roots = {name: _identity(root) for name, root in roots_by_name.items()}
        late: dict[str, FolderSource] = {}
        watched: list[tuple[str, str, str]] = []
        for name, root in roots_by_name.items():
            source = sources[name]
            if not os.path.isdir(root):
                continue
            if may_be_late and isinstance(source, FolderSource) and self._takes_long(source):
                late[name] = source
            else:
                watched += [(name, root, folder) for folder in source.folders()]
        for name, source in late.items():
            watched += [(name, source.root, folder) for folder in self._known_folders(source)]
        self._watch = Watch.open(watched)
        self._wants_watch = self._watch is not None
        self._pending = set(sources)
        self.late = {}
        if self._watch is not None:
            self.late = {name: self._compare(source, self._watch) for name, source in late.items()}

    def _takes_long(self, source: FolderSource) -> bool:
        """Whether a project is so large that calls should not wait until it is compared."""
        if self._index.is_copy or source.name in _NEVER_LATE or self._index.seen(source.name):
            return False
        return self._index.notes.number_in(source.name) > LARGE

    def _known_folders(self, source: FolderSource) -> list[str]:
        """The folders of a project in which the index has notes, as paths on the disk."""
        folders = [source.root]
        for name in self._index.notes.folders_in(source.name):
            if not has_link(source.root, name):
                folders.append(f"{source.root}/{name}")
        return folders

    def catch_up(self, seconds: float) -> None:
        """Go on comparing late projects with the disk, for about so long."""
        index = self._index
        end = time.monotonic() + seconds
        index.pin()
        try:
            while self.late and index.openings == self._openings:
                name = next(iter(self.late))
                for _ in self.late[name]:
                    if time.monotonic() >= end:
                        return
                if self.late.pop(name, None) is not None:
                    self._pending.discard(name)
        except BaseException:
            # The next call starts again
            self.close()
            raise
        finally:
            index.unpin()

    def look_at(self, project: str, path: str) -> None:
        """Compare one file with the disk now, if its project has not been compared yet."""
        if project in self.late:
            from memoranda.index.sync import Result

            source = self.sources[project]
            self._apply(source, self._differs(source, path), Result())

    def _compare(self, source: FolderSource, watch: Watch) -> Iterator[None]:
        """Compare a project with the index and apply what differs, piece by piece.

        A folder is watched, then listed. All differences are known before the first is applied: a
        file that moved to another folder stays the same note. Other programs may write in between,
        so each difference is checked again when its turn comes.
        """
        from memoranda.index import sync

        notes = self._index.notes
        name = source.name
        comparison = sync.Comparison()
        removed: dict[str, bytes] = {}
        waiting = [""]
        unreadable = list[str]()
        while waiting:
            folder = waiting.pop()
            seen_paths = set[str]()
            folders = list[str]()
            try:
                watch.add(name, source.root, folder)
            except OSError:
                # There are too many folders to watch, so every call has to look at all files.
                self.close()
                self._wants_watch = False
                return
            listing = Listing()
            for _ in source.portions(folder, listing, folders, _LISTED):
                known_stamps = notes.stamps_of(name, listing.stamps)
                seen_paths.update(known_stamps)
                comparison.look(known_stamps, listing.stamps)
                listing.stamps.clear()
                yield
            waiting += folders
            unreadable += listing.unreadable
            self._shared.setdefault(name, set()).update(listing.shared)
            # A file that could not be listed is not one that is gone.
            if listing.unreadable:
                continue
            for part in notes.not_among(name, folder, seen_paths, folders, _LISTED):
                removed |= part
                yield
        changes = comparison.end(removed, ())
        yield
        for start in range(0, len(changes), _APPLIED):
            while not self._applied(source, changes[start : start + _APPLIED]):
                yield
            yield
        if unreadable:
            self._troubles[name] = _unreadable(name, unreadable)
        else:
            self._forget_lost_files(source)

    def _forget_lost_files(self, source: FolderSource) -> None:
        """Forget the files of a project that were left out of the index and are gone now."""
        lost: list[tuple[str, str]] = []
        for project, path in self.unreadable.keys() | self._skipped.keys():
            if project == source.name and source.stamp(path) is None:
                lost.append((project, path))
        if lost:
            self._notice_all(lost)

    def _applied(self, source: FolderSource, changes: Sequence[Difference]) -> bool:
        """Apply what of `changes`, found a while ago, is still so; False when somebody keeps the
        lock."""
        from memoranda.index.sync import Result

        differences: list[Difference] = []
        for change in changes:
            old = change.old
            if old is None or old == change.path:
                differences += self._differs(source, change.path)
            elif self._is_still_moved(source, old, change.path):
                differences.append(change)
            else:
                differences += self._differs(source, old) + self._differs(source, change.path)
        try:
            with waits_at_most(_LOCK_SECONDS):
                self._apply(source, differences, Result())
        except Busy:
            return False
        return True

    def _is_still_moved(self, source: FolderSource, old: str, path: str) -> bool:
        """Whether the file at `old` is gone, and the one at `path` not in the index yet."""
        if source.stamp(old) is not None or not source.stamp(path):
            return False
        return self._index.notes.stamp(source.name, path) is None

    def _sweep(
        self, source: Source, result: Result, progress: Progress | None, folder: str = ""
    ) -> None:
        """Compare a project, or one folder of it, with the index, and apply what differs."""
        index = self._index
        name = source.name
        self._troubles.pop(name, None)
        version = source.version()
        if version is not None:
            if version == index.seen(name):
                return
            if self._ledger.has_line_change():
                self._ledger.try_to_recover()
                version = source.version()
        elif name in self._pending and not source.holds_entities and index.seen(name):
            # A graph file had this name.
            with index.write_lock, index.transaction():
                index.forget_project(name)
        try:
            changes = self._changes_in(source, folder)
        except MemorandaError as error:
            self._troubles[name] = [str(error)]
            return
        self._apply(source, changes, result, progress)
        if version is not None and name not in self._troubles:
            with index.write_lock, index.transaction():
                index.see(name, version)

    def _changes_in(self, source: Source, folder: str) -> Sequence[Difference]:
        """The differences between a project, or one folder of it, and the index. What cannot be
        read is noted as a trouble of the project. Raises MemorandaError."""
        trouble = source.trouble()
        if trouble:
            if not self._is_to_come(source):
                self._troubles[source.name] = [trouble]
            return ()
        if not folder:
            paths = source.changed_since(self._index.seen(source.name))
            if paths is not None:
                return self._changes_of(source, paths)
        return self._changes_by_listing(source, folder)

    def _is_to_come(self, source: Source) -> bool:
        """Whether a project that cannot be read is one that nobody has written to yet."""
        if not source.optional or source.version() is not None:
            return False
        return not self._index.notes.stamps(source.name)

    def _changes_of(self, source: Source, paths: Iterable[str]) -> list[Difference]:
        """The differences between these files, or entities, and the index."""
        changes: list[Difference] = []
        for path in paths:
            changes += self._index.plan_file(source.name, path, source.stamp(path))
        return changes

    def _changes_by_listing(self, source: Source, folder: str) -> Sequence[Difference]:
        """The differences between a listing of the files and the index."""
        name = source.name
        listing = Listing()
        parts = self._parts(source, folder, listing)
        # The parts are listed while the plan is made; `listing` is whole only after it.
        changes = self._index.plan(name, parts, listing.unreadable, folder)
        if not folder:
            self._shared[name] = set()
        self._shared.setdefault(name, set()).update(listing.shared)
        if listing.unreadable:
            self._troubles[name] = _unreadable(name, listing.unreadable)
        return changes

    def _differs(self, source: Source, path: str) -> list[Difference]:
        """The changes that make the index show one file."""
        if source.is_note(path):
            stamp = source.stamp(path)
        else:
            stamp = None
        if stamp is not None and self._skipped.get((source.name, path)) == stamp:
            return []
        return self._index.plan_file(source.name, path, stamp)

    def _apply(
        self,
        source: Source,
        changes: Sequence[Difference],
        result: Result,
        progress: Progress | None = None,
    ) -> None:
        if changes:
            index = self._index
            index.apply(
                source.name,
                changes,
                partial(self._load, source),
                index.write_lock,
                result,
                progress,
                self._files(source),
            )

    def _parts(self, source: Source, folder: str, listing: Listing) -> Iterator[dict[str, Values]]:
        """The files that `source.parts` finds, without unchanged files that are known not to be
        text.
        """
        name = source.name
        skipped = self._skipped
        removed = {
            path
            for project, path in self.unreadable.keys() | skipped.keys()
            if project == name and (not folder or path.startswith(f"{folder}/"))
        }
        for _ in source.parts(folder, listing):
            for path in removed & listing.stamps.keys():
                removed.remove(path)
                if skipped.get((name, path)) == bounded(listing.stamps[path]):
                    del listing.stamps[path]
            yield listing.stamps
            listing.stamps.clear()
        if removed and not listing.unreadable:
            self._notice_all([(name, path) for path in removed])

    def drop_derived(self) -> None:
        """Remove what was derived from notes that were erased on another machine, and derive it
        again."""
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
        """Empty the indexes that this home has for other sets of projects.

        Their processes rebuild them.
        """
        for path in self._ledger.layout.indexes():
            if path != self._index.path:
                Index(path, self._ledger.lock).rebuild()

    def accept(self, project: str, path: str, stamp: Stamp, note: Note | None) -> Note | None:
        """Return `note` if it may be indexed. A file that is not text is noted as skipped: None."""
        key = (project, path)
        if not self._openings:
            self._load_skipped()
        if note is not None:
            self.notice(*key)
            return note
        self._skipped[key] = stamp
        if project in MEMORY_PROJECTS:
            self.unreadable[key] = NOT_UTF8
        self._index.notes.skip(*key, stamp, self.unreadable.get(key, ""))
        return None

    def _notice_all(self, keys: Sequence[tuple[str, str]]) -> None:
        with self._index.write_lock, self._index.transaction():
            for key in keys:
                self.notice(*key)

    def notice(self, project: str, path: str) -> None:
        """Forget that a file is not a note, so that it is looked at again."""
        self.unreadable.pop((project, path), None)
        if self._skipped.pop((project, path), None) is not None:
            self._index.notes.unskip(project, path)


def _unreadable(project: str, folders: Sequence[str]) -> list[str]:
    return [f"Folder {folder or '/'} of project {project} cannot be read." for folder in folders]


def _identity(path: str | Path) -> _Identity:
    """A key that changes if another folder or file takes this place. None if the place is empty."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
