"""The engine: the parts that all callers of one open home share.

The home is the folder with the memories, the index and the ledger. The engine owns these parts:
- the guard, which lets one thread at a time use the other parts
- the lock, which keeps out other processes
- the index, the ledger, and the sources of the projects.

`guard.py` says which thread may use the parts, and which thread waits for which.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from datetime import datetime, timedelta
from functools import cached_property, partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

from memoranda import config
from memoranda.clock import CALL_WAITS, Clock, waits_at_most
from memoranda.config import Settings, absolute
from memoranda.engine.freshness import NOT_UTF8, UTF16, Freshness, ReadAhead
from memoranda.engine.guard import Guard, RepeatAlone
from memoranda.engine.long_notes import LongNotes
from memoranda.errors import (
    CannotRead,
    ConfigError,
    ConfigFileError,
    Conflict,
    MemorandaError,
    NotFound,
    ProjectNotFound,
    ProjectOutOfReach,
    ProjectRefused,
    StorageError,
)
from memoranda.index.index import Index
from memoranda.index.rows import NoteInfo, NotIndexable, at_note
from memoranda.ledger.ledger import Ledger
from memoranda.ledger.planned_change import PlannedChange, accepted, end
from memoranda.note.links import lead
from memoranda.note.model import (
    ARCHIVE_PROJECT,
    BUILT_IN_PROJECTS,
    CATEGORY_PROJECT,
    MEMORY_PROJECTS,
    OLD_FOLDERS,
    TRACE_PROJECT,
    Note,
    Provenance,
)
from memoranda.note.names import Looseness, named_one, without_case
from memoranda.note.project_access import EVERYTHING, ProjectAccess
from memoranda.sources.base import File, Stamp
from memoranda.sources.files import closed_on_error, lock_folders, reason, storing
from memoranda.sources.folder import FolderSource, add_name_of_day
from memoranda.sources.layout import PRIVATE, Layout
from memoranda.sources.source import Source
from memoranda.text.unicode import sqlite_text
from memoranda.text.user_path import absolute_path
from memoranda.text.utf16 import utf16_text

if TYPE_CHECKING:
    from memoranda.engine.write_gate import DayUse, Gate
    from memoranda.index.sync import BulkSource, Progress, Result
    from memoranda.index.vectors.nearest import Vectors

P = ParamSpec("P")
T = TypeVar("T")

GRAPH_FILE_SUFFIX = ".jsonl"
ONLY_SHARED = (
    "the notes are in PostgreSQL, the same on every machine, and this is of one machine; "
    "use a memory in a folder (--home) for it"
)
# How often a change is planned again because another program wrote the file in between.
_CONFLICT_RETRIES = 4
# How many seconds the thread that catches up with the files works before it lets calls in.
_SECONDS_OF_CATCHING_UP = 0.004
# How many seconds this thread then leaves to the calls.
_SECONDS_BETWEEN_PIECES = 0.004
# How many seconds a call that only reads waits for the lock in order to update the index.
_SECONDS_A_READ_WAITS = 1.0


class Engine:
    """The state that all callers of one open home share.

    settings: the configuration in force.
    extra: a folder, graph file or source for each project name, for this process only. If the name
        is the name of a built-in project, this project has another place in this process.
    clock: a function that returns the present time.
    watch: whether the operating system reports changes on disk.
    only: names of projects in lower case. If it is not empty, no other projects exist in this
        process.
    serving: whether large projects are compared with the disk in the background, as in a server,
        instead of during a call.

    Raises ProjectRefused if `extra` is given for a home whose notes are in PostgreSQL.
    """

    # What has happened in this process since the home was opened.
    vectors: Vectors | None = None
    """The vectors by which notes are found by meaning, once they are opened (`Embedding`)."""
    no_vectors = ""
    """The reason why there are no vectors; "" if there are, or if nobody has looked yet."""
    vectors_collected = False
    """Whether this process has removed the vectors that no passage needs."""
    commits = 0
    """How many changes this process has made."""
    config_trouble = ""
    """Why the configuration on disk is not in force; "" if it is."""
    is_writing = False
    """Whether this process is in a section of `writing`."""
    is_closed = False
    # How many verbs are running inside each other on the thread that has the guard.
    _depth = 0

    # How calls are answered. Callers set these.
    call_waits = CALL_WAITS
    """How many seconds a call waits for the home at most."""
    follows_disk = True
    """Whether verbs bring the index up to date with the disk first. Otherwise they answer from the
    index as it is, unless it is empty.
    """
    looks_once = False
    """Whether only the first verb compares the index with the disk, and the others rely on it. This
    saves a short command that calls several verbs the time of comparing all files again and again.
    The first verb that writes ends it.
    """

    def __init__(
        self,
        settings: Settings,
        extra: Mapping[str, str | os.PathLike[str]],
        clock: Clock,
        watch: bool,
        only: frozenset[str] = frozenset(),
        serving: bool = False,
    ):
        if settings.url is not None and extra:
            raise ProjectRefused(", ".join(_places_of(extra.values())), ONLY_SHARED)

        # What the process was started with.
        self.settings = settings
        self.clock = clock
        self.extra = {name: os.fspath(place) for name, place in extra.items()}
        self.only = only
        self.layout = Layout(settings.home)

        # The parts of the home. If one cannot be opened, those opened before are closed.
        self.ledger = self._opened_ledger(serving)
        self.reads = self.ledger.reads
        self.guard = Guard(self.ledger.queue, self.make_waiting)
        self._outside_locks = ExitStack()
        """Holds the locks of folders outside the home while this process writes."""
        self.sources: dict[str, Source] = {
            name: source for name, source in extra.items() if isinstance(source, Source)
        }
        with closed_on_error(self.ledger):
            self._adopt_old_folders()
            self.index = Index(self.layout.index_for(self.extra, only), self.ledger.lock)
            with closed_on_error(self.index):
                self._open_sources()
        self.long_notes = LongNotes(
            self.index, self.guard, self.home_released_if_allowed, self.handle_index_error
        )
        self.freshness = Freshness(
            self.index,
            self.ledger,
            self.sources,
            reader=self,
            long_notes=self.long_notes,
            clock=clock,
            watch=watch,
            may_be_late=serving,
            socket=self.layout.socket,
        )
        self.freshness.scopes = self._scopes()

        # The thread that compares the late projects with the disk, and the event that ends it.
        self._catching_up: threading.Thread | None = None
        self._ended = threading.Event()

        self.changed_projects: set[str] = set()
        """The projects changed since `memory.md` was last made."""
        self.before_close: list[Callable[[], None]] = []
        """Functions that `close` calls first, while the home is still open."""

    def _adopt_old_folders(self) -> None:
        """Take up the memories that an older program kept beside the categories."""
        root = self.layout.root
        if not any(os.path.isdir(root / name) for name in OLD_FOLDERS):
            return
        # Hardly any home has these folders.
        from memoranda.sources import old_folders

        old_folders.adopt(root, self.layout.built_in[CATEGORY_PROJECT])

    def _opened_ledger(self, serving: bool) -> Ledger:
        """Return the ledger. For notes in a database, it is the copy on this machine."""
        url = self.settings.url
        if url is None:
            return Ledger(self.layout, self.clock)
        from memoranda.ledger.postgres.replica_ledger import ReplicaLedger

        return ReplicaLedger(self.layout, self.clock, url, self.settings.space, serves=serving)

    @cached_property
    def gate(self) -> Gate:
        """The write gate, which refuses texts with secrets. It uses the rules of the settings."""
        from memoranda.engine.write_gate import Gate

        return Gate(self.settings, self.layout.root)

    @cached_property
    def day_use(self) -> DayUse:
        """The counter of how much each agent wrote today."""
        from memoranda.engine.write_gate import DayUse

        return DayUse(self.ledger.history)

    def close(self) -> None:
        """Release the watch, the index and the home.

        If releasing one of them raises an error, the others are released all the same.
        """
        with self.guard:
            if self.is_closed:
                return
            with ExitStack() as closing:
                # The callbacks are called in reverse order: `_end` is called first.
                closing.callback(self.ledger.close)
                closing.callback(self.index.close)
                closing.callback(self.freshness.close)
                closing.callback(self._end)
                for work in self.before_close:
                    work()

    def _end(self) -> None:
        """Record that the home is closed, and end the thread that works in the background."""
        self.is_closed = True
        self._ended.set()

    def _check_open(self) -> None:
        """Raise StorageError if the home was closed."""
        # By now the system may have reused the descriptors of the closed files for other files.
        if self.is_closed:
            raise StorageError("the memory", "it was closed")

    def _open_sources(self) -> None:
        """Open the source of each project: the built-in ones, the configured ones and `extra`.

        A graph file that is open already keeps its source.
        """
        sources: dict[str, Source] = {}
        for name, root in self.layout.built_in.items():
            # The `memory` tool keeps files of any name there, and follows symlinks.
            is_memory_tool = name == "memories"
            place = absolute(self.extra[name]) if name in self.extra else root
            sources[name] = FolderSource(
                name, place, every_text=is_memory_tool, links=is_memory_tool, optional=True
            )

        for name, folder in {**self.settings.projects, **self.extra}.items():
            if name not in sources:
                sources[name] = self._opened_source(name, absolute(folder))
        for name in self.extra:
            self.register(name, sources[name])

        self.index.projects = frozenset(sources)
        if self.only:
            sources = {
                name: source for name, source in sources.items() if name.lower() in self.only
            }
        # Assigned at once, since threads without the guard may look up a project at any time.
        self.sources = sources

    def register(self, name: str, source: Source) -> None:
        """Set the attribute `away` of a source: whether only this process has its place.

        A preset or an option may have given this process another place for the project, or a
        project that the home does not have. The history then records the folder in each step, so
        that every process can undo the step.
        """
        source.away = self.own_root(name) != source.root

    def own_root(self, project: str) -> str | None:
        """Return the folder that the home itself has for a project.

        An option may have given this process another folder for the project. That folder is not
        returned. None means that the home has no such project.
        """
        # The private project has the answers to review questions. `undo` can undo them, too.
        if project == PRIVATE:
            return str(self.layout.private)
        place = self.layout.built_in.get(project) or self.settings.projects.get(project)
        if place is None:
            return None
        return absolute_path(place)

    def _opened_source(self, name: str, place: Path) -> Source:
        """Return an open source for a project that is not built in.

        A graph file that is open already is not opened again: its source is returned.

        place: the folder or the graph file of the project.
        """
        # With notes in a database, each project is a folder of this machine's copy of the home. The
        # folder is made with the first note.
        if self.settings.url is not None:
            return FolderSource(name, place, optional=True)
        open_source = self.sources.get(name)
        if open_source is not None and open_source.holds_entities:
            is_at_same_place = open_source.root == str(place)
            if is_at_same_place:
                return open_source
        # A graph file that does not exist yet is recognized by its name.
        is_new_graph_file = place.suffix == GRAPH_FILE_SUFFIX and not place.is_dir()
        if place.is_file() or is_new_graph_file:
            from memoranda.sources.graph_file import GraphFileSource

            return GraphFileSource(name, place, optional=name in self.extra)
        return FolderSource(name, place, ignored=self.access_to(name).ignore)

    def reload_config(self) -> None:
        """Apply changes that any program has made to the configuration since it was last read.

        The notes of removed projects leave the index. If the configuration cannot be read, the
        former one stays in force, and `config_trouble` says why.
        """
        # A change is finished with the settings that it was begun with.
        if self.is_writing:
            return
        is_same = config.file_stamp(self.settings.file) == self.settings.stamp
        if is_same and not self.config_trouble:
            return
        with self.guard:
            former_settings = self.settings
            try:
                self.settings = config.reread(former_settings)
            except ConfigError as error:
                why = error.reason if isinstance(error, ConfigFileError) else str(error)
                self.config_trouble = (
                    f"{former_settings.file.name} is not in force as it is now, "
                    f"but as it was before: {why}"
                )
                return
            self.config_trouble = ""
            # The gate was made from the former settings. Without it, the next use makes a new one.
            vars(self).pop("gate", None)
            has_same_projects = self.settings.projects == former_settings.projects
            has_same_access = self.settings.access == former_settings.access
            if not (has_same_projects and has_same_access):
                self._open_changed_sources()

    def _open_changed_sources(self) -> None:
        """Open the sources of the present projects, and have all projects compared with the disk."""
        self._open_sources()
        self.freshness.sources = self.sources
        self.freshness.scopes = self._scopes()
        self.freshness.forget()

    def _scopes(self) -> dict[str, str]:
        """Return the scope of each project that only some agents may use, by the project's name."""
        access = self.settings.access
        return {name: access[name].scope for name in access if access[name].agents}

    def source(self, project: str, *, looseness: Looseness = Looseness.SIGNS) -> Source:
        """Return the source of the project with this name.

        The exact name is tried first, then the name in another case, then the name without signs
        and blanks: `example-project` finds the project `Example Project`. If several projects fit
        in one of the last two ways, none is found.

        looseness: how much the name may differ, as `project_name` reads it.

        Raises ProjectNotFound. Raises ProjectOutOfReach for a built-in project that this process
        was not given.
        """
        name = self.project_name(project, looseness=looseness)
        if name is None:
            # Another process may have added the project since the configuration was read.
            self.reload_config()
            name = self.project_name(project, looseness=looseness)
        if name is not None:
            return self.sources[name]
        error = ProjectOutOfReach if project in BUILT_IN_PROJECTS else ProjectNotFound
        raise error(project, sorted({*self.sources} - {ARCHIVE_PROJECT, TRACE_PROJECT}))

    def access_to(self, project: str) -> ProjectAccess:
        """Return the rights of agents in a project. Without a setting, agents may do everything."""
        return self.settings.access.get(project, EVERYTHING)

    def project_name(self, project: str, *, looseness: Looseness = Looseness.SIGNS) -> str | None:
        """Return the exact name of the project that `project` means. None if no project fits, or
        several do.

        `source` says in which ways a name may fit.

        looseness: with EXACT or CASE, which verbs that change a note pass, the name may differ only
            in case, or be the one that permalinks begin with.
        """
        name = named_one(project, self.sources)
        if name is None or looseness is Looseness.SIGNS:
            return name
        is_as_shown = without_case(project) in (without_case(name), lead(name))
        return name if is_as_shown else None

    def folder(self, project: str) -> FolderSource:
        """Return the source of a project that is a folder which may be written.

        Raises ProjectNotFound. Raises ReadOnlyProject for a graph file and a project that is only
        read.
        """
        source = self.source(project)
        source.check_writable()
        return cast(FolderSource, source)

    def spelled(self, project: str, path: str) -> str:
        """Return `path` with its names as they are spelled on disk.

        `Ideas/a.md` becomes `ideas/A.md` if the file is called so. In a project that is not a
        folder, the path stays as it is.
        """
        source = self.source(project)
        if isinstance(source, FolderSource):
            return source.spelled(path)
        return path

    def fresh(self, progress: Progress | None = None, *, whole: bool = False) -> Result:
        """Make the index show every change that is on disk now, and return the changes.

        Within one verb, only the first call looks at the disk.

        progress: called to report how far the comparison with the disk has got. None reports
            nothing.
        whole: whether to wait for large projects, too. Otherwise large projects may be incomplete
            in a server that has just started, and `warnings` says so.

        The index may be impossible to write, because its lock is held, or the disk is full or
        read-only. Then a writer gets the error. A reader uses a copy in memory. If the index is too
        large to be copied, the last changes may be missing, and `warnings` says so.
        """
        from memoranda.index.sync import Result

        result = Result()
        if self._needs_no_look(whole=whole):
            return result

        if not whole and self._has_seen_all():
            # The files need no second look, but time has passed, so entries may have expired.
            self.freshness.retire_expired()
        else:
            result = self._update_index(progress, whole=whole)
            # After another machine erased notes, no copy of their text may remain here.
            if self.ledger.erased():
                self.freshness.drop_derived()

        # Within a verb, later calls need not look again. Outside of one, the index is let go.
        if self._depth:
            self.freshness.is_current = True
        else:
            self.index.unpin()
        if self.freshness.late_sweeps:
            self._start_catching_up()
        return result

    def _needs_no_look(self, *, whole: bool) -> bool:
        """Whether the index can be used as it is, without a look at the disk.

        whole: whether large projects must be complete, too.
        """
        if self.looks_once and self.freshness.is_current:
            # Another process may have replaced the index since the first verb.
            self.freshness.is_current = self.freshness.pin_known_index()
        if whole:
            return self.freshness.is_current and not self.freshness.late_sweeps
        return self.freshness.is_current or self._may_use_index_as_it_is()

    def _may_use_index_as_it_is(self) -> bool:
        """Whether a call may be answered from the index without a look at the disk.

        This is only for reading, and only in a process that does not follow the disk. The index
        must not be empty, and must not show expired entries.
        """
        if self.follows_disk or self.is_writing:
            return False
        self.index.pin()
        return self.index.notes.has_any() and self._has_retired_expired()

    def _has_retired_expired(self) -> bool:
        """Hide expired entries, and return whether that was possible.

        It is not if another process holds the home's lock, or if the disk is full or read-only.
        """
        try:
            with waits_at_most(_SECONDS_A_READ_WAITS):
                self.freshness.retire_expired()
        except (StorageError, OSError, sqlite3.OperationalError):
            return False
        return True

    def _start_catching_up(self) -> None:
        """Start a thread that compares the late projects with the disk, unless one is running."""
        if self._catching_up is not None and self._catching_up.is_alive():
            return
        self._catching_up = threading.Thread(
            target=self._compare_late_projects, name="catching-up", daemon=True
        )
        self._catching_up.start()

    def _has_seen_all(self) -> bool:
        """Whether the index has been compared with the disk since the present verb was called.

        Then the comparison need not be repeated.
        """
        if self.is_writing and not self.ledger.queue.changes:
            # This process has just got the lock. Before that, other processes may have written.
            return False
        # Another machine may have changed notes in a database at any time.
        if self.settings.url is not None:
            return False
        return self.freshness.has_seen(self.guard.asked_at)

    def _update_index(self, progress: Progress | None, *, whole: bool) -> Result:
        """Bring the index up to date with the disk, and return the changes.

        A writer gets an error if the index cannot be written. A reader gets none: a copy of the
        index in memory is brought up to date instead. If the index is too large for a copy, the
        result is empty, and `freshness.why_behind` has the reason. If the index is corrupt, every
        caller gets the error.

        progress: called to report how far the comparison with the disk has got.
        whole: whether to wait for large projects, too.
        """
        from memoranda.index.sync import Result

        # A reader does not wait long for the lock, because it can do without.
        if self.is_writing:
            time_limit: AbstractContextManager[None] = nullcontext()
        else:
            time_limit = waits_at_most(_SECONDS_A_READ_WAITS)
        try:
            with time_limit:
                return self.freshness.update(progress, is_locked=self.is_writing, whole=whole)
        except (StorageError, OSError, sqlite3.OperationalError) as error:
            is_corrupt = isinstance(error, sqlite3.Error) and self.index.is_corrupt(error)
            # A writer must not work with an old index. A corrupt index is rebuilt further out
            # (`verb`).
            if self.is_writing or is_corrupt:
                raise
            if self.index.copy_to_memory():
                return self.freshness.update(progress)
            why = self.index.explain(error) if isinstance(error, sqlite3.Error) else str(error)
            self.freshness.why_behind = (
                f"The last changes on disk may be missing here: the index could not follow ({why})."
            )
            return Result()

    def _compare_late_projects(self) -> None:
        """Compare the late projects with the disk, in short pieces between the calls.

        This is the work of a thread. It ends when no project is late, or when the home is closed.
        """
        while not self._ended.wait(_SECONDS_BETWEEN_PIECES):
            try:
                with self.guard:
                    if self.is_closed or not self.freshness.late_sweeps:
                        self._catching_up = None
                        return
                    self.freshness.catch_up(_SECONDS_OF_CATCHING_UP)
            except (MemorandaError, OSError, sqlite3.Error):
                # If a long call holds the guard, the work goes on after it. Any other error occurs
                # in the next call as well, which reports it.
                continue

    def catch_up(self) -> None:
        """Bring the index up to date before a writer takes the lock, if that may take long.

        The first comparison with the disk may find many changes, and a later one a large file. Other
        threads and processes should not wait for the lock meanwhile.
        """
        with self.guard:
            self._check_open()
            self.reload_config()
            may_find_much = not self.freshness.is_swept or self.freshness.has_news
            if may_find_much and not self.is_writing:
                self.fresh()
                # Other processes may still write until this process holds the lock. So the index
                # is compared once more then, which is fast after this comparison.
                self.freshness.is_current = False

    def rebuild_index(self) -> None:
        """Throw the index away. The next call that needs an index makes it again from the notes."""
        with self.guard, self.ledger.lock:
            self.index.rebuild()
            self.freshness.forget()

    def file_of(self, info: NoteInfo) -> File:
        """Read the file of a note that the index has found.

        Raises NotFound if the file is gone, CannotRead if the whole folder of its project is
        missing, and OutsideError.
        """
        source = self.source(info.project)
        try:
            return source.read(info.path)
        except NotFound:
            if os.path.lexists(source.root):
                raise NotFound(info.path, info.project) from None
        # The whole project is missing on disk. Its notes are still in the index, so that they can
        # be found and are back at once when the disk is.
        place = "file" if source.holds_entities else "folder"
        why = f"the {place} of project {source.name} is missing"
        remedy = f"Put the {place} back, or let its owner run memory project remove {source.name}."
        raise CannotRead(info.path, why, remedy)

    def load(
        self, source: Source, path: str, ahead: ReadAhead | None = None
    ) -> tuple[Note, Stamp] | None:
        """Read the note at `path` for the index, with the stamp of its file (size and times).

        ahead: what `read_ahead` returned for this path. It is used if the file has not changed.
            None if it was not read ahead.

        None means that the file is not a note, is gone, is left out of the index, or cannot be
        read. If it cannot be read, `freshness.left_out` gets the reason.
        """
        if not source.is_note(path):
            return None
        if ahead is not None and ahead.is_right(source.stamp(path), self.settings, self.gate):
            note = ahead.note
            self.freshness.accept(source.name, path, ahead.rows.stamp, note)
            note.provenance = self.written_by(source.name, path, note.etag)
            return note, ahead.rows.stamp

        try:
            file = source.read(path)
        except NotFound:
            return None
        except MemorandaError as error:
            reason = error.reason if isinstance(error, StorageError) else str(error)
            self.freshness.left_out.add_unreadable((source.name, path), reason)
            return None
        indexed_note = self.indexable(source.name, path, file)
        if indexed_note is None:
            return None
        # The ledger knows texts of whole files only. An entity is a part of a graph file.
        if not source.holds_entities:
            indexed_note.provenance = self.written_by(source.name, path, file.etag)
        return indexed_note, file.stamp

    def read_ahead(self, source: Source, path: str, project_id: int) -> ReadAhead | None:
        """Read a note and compute its index rows before the lock is taken.

        Writing to the index then takes less time under the lock. Neither the lock nor the index is
        used here. Returns None if there is no note, or if it cannot be read. `load` then reads the
        file again under the lock, and reports the error.

        project_id: the id of the note's project in the index.
        """
        from memoranda.index.writer import prepare

        settings = self.settings
        gate = self.gate
        with suppress(MemorandaError, NotIndexable):
            if not source.is_note(path):
                return None
            file = source.read(path)
            with at_note(path, file.stamp):
                note = self.parse(source.name, path, file)
                if note is None:
                    return None
                note.suspicious = gate.suspicious(note)
            permalink = sqlite_text(note.permalink)
            rows = prepare(note, file.stamp, project_id, permalink)
            return ReadAhead(note, rows, settings, gate)
        return None

    @contextmanager
    def home_released_if_allowed(self) -> Iterator[bool]:
        """Let other threads use the home during a `with` block, if the running call allows it.

        Yields whether they may. They may not while this call has a lock for which they would wait.
        Calls of theirs that came in are let pass before this call goes on.
        """
        is_allowed = self.guard.is_mine and not self.is_writing and not self.ledger.lock.is_held
        if not is_allowed:
            yield False
            return
        turns_before = self.guard.turns
        with self.home_released():
            yield True
            # One turn was that of this thread
            self.guard.let_pass(turns_before + 1)
        self._check_open()
        # The file of the index is not tried again in the middle of a call: it may lack what this
        # call has put into a stand-in.
        self.index.try_later()
        self.index.pin()

    def indexable(self, project: str, path: str, file: File) -> Note | None:
        """Return the note in the bytes of a file, marked if it seems to hold injected instructions.

        None means that the index should leave the file out. Raises NotIndexable.
        """
        with at_note(path, file.stamp):
            note = self.parse(project, path, file)
            if note is not None:
                note.suspicious = self.gate.suspicious(note)
        return self.freshness.accept(project, path, file.stamp, note)

    def bulk_source_of(self, source: Source) -> BulkSource | None:
        """Return a source that lets helper processes read many notes of a project at once.

        Returns None if they cannot: the project is not a folder, or only some agents may use it.
        """
        from memoranda.index.sync import BulkSource

        # Helper processes do not know which agents may use the project.
        if not isinstance(source, FolderSource) or self.access_to(source.name).agents:
            return None
        accept = partial(self._accept_from_helper, source.name)
        return BulkSource(source, self.gate.suspicious, accept)

    def _accept_from_helper(self, project: str, path: str, file: File) -> Provenance:
        """Take up a note that a helper process has read, and return who wrote it."""
        self.freshness.left_out.forget((project, path))
        return self.written_by(project, path, file.etag)

    def written_by(self, project: str, path: str, etag: str) -> Provenance:
        """Return who wrote the text of a file. Empty for a text that the ledger does not know.

        The ledger finds the writer by the hash of the text, not by the times of the file.

        etag: the SHA-256 of the text.
        """
        return self.ledger.history.writer_at(project, path, etag) or Provenance()

    def parse(self, project: str, path: str, file: File) -> Note | None:
        """Parse the bytes of a file as a note.

        The projects of memories take only UTF-8: for other bytes the result is None. In other
        projects, the note gets a warning instead.
        """
        text, warning = _decoded(file.data)
        takes_only_utf8 = project == "memories" or project in MEMORY_PROJECTS
        if warning and takes_only_utf8:
            return None
        note = file.note(project, path, text, self._time_of_shared_file(project, path, file))
        source = self.sources.get(project)
        if isinstance(source, FolderSource):
            add_name_of_day(note, source)

        # If only some agents may use the project, its notes are private to them.
        access = self.access_to(project)
        if access.agents:
            note.scope = access.scope_of(note.scope)
        if warning:
            note.warnings.append(warning)
        return note

    def _time_of_shared_file(self, project: str, path: str, file: File) -> datetime | None:
        """Return when a note last changed whose file also has other notes.

        The times of such a file do not say it, because lines of other notes may have changed. So a
        note keeps the time in the index, unless its own text has changed.

        None if the file has no other notes. None, too, if the note is new, or its text has changed.
        """
        if file.changed_ns is None:
            return None
        indexed = self.index.notes.get(project, path)
        # The `inode` of such a note is a hash of its lines.
        if indexed is None or indexed.inode != file.stamp.inode:
            return None
        return datetime.fromisoformat(indexed.changed)

    def count_pending_reads(self, infos: Iterable[NoteInfo]) -> None:
        """Complete the access counts of notes that come from the index.

        The reads that are not yet written in the headers of the notes are added to `access_count`.
        """
        infos = list(infos)
        counts = self.reads.counts([info.id for info in infos])
        # Usually no read is waiting to be written.
        if not counts:
            return
        for info in infos:
            info.access_count += counts[info.id]

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Enter a section that only one writer of all threads and processes can be in.

        Writers of other homes are kept out, too, if the homes share the folder of a project. A
        section within a section on the same thread does not lock again. Raises StorageError if the
        disk refuses.
        """
        if self.is_writing and self.guard.is_mine:
            yield
            return
        if self.looks_once:
            # A change must be planned from the present files, so they are compared again.
            self.looks_once = False
            self.freshness.is_current = False
        try:
            with waits_at_most(self.call_waits), self.guard:
                self._check_open()
                with self.ledger.writing(), self._locked_outside():
                    self.is_writing = True
                    try:
                        yield
                    finally:
                        self.is_writing = False
        except OSError as error:
            raise StorageError("the memory", reason(error)) from None
        except sqlite3.Error as error:
            if self.index.is_corrupt(error):
                # The decorator `verb` rebuilds the index and calls its method again.
                raise
            raise StorageError("the index", self.index.explain(error)) from None

    @contextmanager
    def _locked_outside(self) -> Iterator[None]:
        """Lock the folders of projects outside the home during a `with` block, because other homes
        may use them too.

        While the queue has changes, the locks stay: the next writer finds the folders locked, and
        `make_waiting` releases them. The caller must hold the home's lock.
        """
        # If the queue has changes already, this process has kept the locks since an earlier writer.
        if not self.ledger.queue.changes:
            self._lock_outside()
            # While another process held the lock, a copy of the index in memory served the readers.
            # From now on, the index itself does.
            if self.index.close_stand_in():
                self.freshness.is_current = False
        try:
            yield
        finally:
            if not self.ledger.queue.changes:
                self._outside_locks.close()

    def _lock_outside(self) -> None:
        """Lock the folders of projects outside the home, because other homes may use them too."""
        root_prefix = f"{self.layout.root}/"
        roots = [source.root for source in self.sources.values() if not source.holds_entities]
        outside_roots = [root for root in roots if not root.startswith(root_prefix)]
        if outside_roots:
            self._outside_locks.enter_context(lock_folders(outside_roots))

    def make(self, planned: PlannedChange) -> None:
        """Make a change and show it in the index. The caller must hold the lock.

        Raises the error that the ledger set on `planned`, and the errors of `Ledger.write`.
        """
        self.ledger.make([planned])
        if planned.error is not None:
            raise planned.error
        self._show([planned])

    def make_waiting(self) -> None:
        """Make all changes of the queue together, and show them in the index.

        Each thread puts its change into the queue, and one thread makes them all. So several
        changes need only one wait for the disk.
        """
        if not self.ledger.queue.changes:
            return
        changes = list[PlannedChange]()
        is_made = False
        try:
            with self.ledger.writing():
                changes += self.ledger.queue.changes
                self.ledger.make_waiting()
                is_made = True
                self._show(changes)
        finally:
            end(changes, made=is_made)
            if not self.is_writing:
                self._outside_locks.close()

    def _show(self, changes: Sequence[PlannedChange]) -> None:
        """Bring changes that are on disk into the index, in one transaction."""
        try:
            with self.index.transaction():
                for planned in accepted(changes):
                    if planned.show is not None:
                        planned.show(planned.change)
        except (sqlite3.Error, OSError, StorageError, NotIndexable) as error:
            # The files are written, so the change is not lost. The next comparison with the disk
            # brings the index up to date.
            self.handle_index_error(error)

    def wait_for(self, planned: PlannedChange) -> None:
        """Let other threads use the home until a change of the queue is made.

        Raises the error with which the ledger refused the change. Raises RepeatAlone if the change
        failed only because of another change that was made together with it. The caller then
        repeats the verb.
        """
        with self._outside_verbs():
            self.guard.wait_for(planned)
        if planned.error is None:
            return
        if planned.may_go_alone and self.guard.may_repeat:
            raise RepeatAlone
        raise planned.error

    @contextmanager
    def home_released(self) -> Iterator[None]:
        """Let other threads use the home during a `with` block.

        The code of the block must not use the home. After the block, the index is compared with the
        disk again before it is used.
        """
        with self._outside_verbs(), self.guard.released():
            yield

    @contextmanager
    def _outside_verbs(self) -> Iterator[None]:
        """Let verbs of other threads be outermost verbs during a `with` block.

        They may change notes and replace the index. So it is let go before the block, and compared
        with the disk again after it.
        """
        depth = self._depth
        self._depth = 0
        self.index.unpin()
        try:
            yield
        finally:
            self._depth = depth
            self.freshness.is_current = False

    def handle_index_error(self, error: Exception) -> None:
        """Prepare for the next call after the index could not take up a change that is on disk.

        The next call compares all files with the index, and so finds the change. A corrupt index is
        rebuilt.

        error: the error of the index.
        """
        self.freshness.forget(whole=True)
        if isinstance(error, sqlite3.Error) and self.index.is_corrupt(error):
            self.rebuild_index()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Enter a section for reading. Other threads of this process wait until it ends.

        If a writer died during a change, the change is first completed, if that is possible.
        """
        with waits_at_most(self.call_waits), self.guard:
            self._check_open()
            if not self.is_writing:
                if self.ledger.unfinished():
                    self.ledger.try_to_recover()
                self.freshness.why_others_missing = self.ledger.follow()
                self.reload_config()
            yield

    def purge_history(self) -> int:
        """Forget changes older than the setting `history.days`, and return how many were forgotten.

        While a large project is still being compared with the disk, nothing is forgotten and the
        result is 0. While the clock may be wrong, only what was old at the last change before that
        is forgotten.
        """
        with storing("the history"), self.guard, self.ledger.writing():
            if self.freshness.late_sweeps:
                # Some texts in use may be unknown yet, so nothing is forgotten this time.
                return 0
            age_to_forget = timedelta(days=self.settings.history_days)
            # A clock that is months ahead for an hour must not end the history.
            now = self.ledger.history.believed_time(self.clock(), age_to_forget)
            return self.ledger.purge(now - age_to_forget, self._present_texts, now)

    def _present_texts(self) -> set[str]:
        """Return the hashes of the texts that notes have now. The history must keep these texts."""
        self.fresh(whole=True)
        self.index.unpin()
        return self.index.notes.etags()

    def _take_up_changes_elsewhere(self) -> None:
        """Take up changes that other machines made in the database, and changes of the settings."""
        self.freshness.why_others_missing = self.ledger.follow()
        self.reload_config()

    def _rebuild_corrupt_index(self, error: sqlite3.Error, commits: int) -> None:
        """Throw the index away after an error in a verb, so that the verb can be called again.

        error: the error of the index.
        commits: how many changes this process had made before the verb was called.

        Raises StorageError if the index is not corrupt. Raises MemorandaError if the verb has made
        a change already: called again, it would make the change twice.
        """
        if not self.index.is_corrupt(error):
            raise StorageError("the index", self.index.explain(error)) from None
        self.rebuild_index()
        if self.commits != commits:
            raise MemorandaError(
                "The change is made, but the index was damaged; it is made anew."
            ) from None

    def _let_go(self) -> None:
        """Let go of the index after an outermost verb. The next verb looks at the disk again."""
        if not self.looks_once:
            self.freshness.is_current = False
        self.index.unpin()


is_repeated = ContextVar("is_repeated", default=False)
"""Whether the running verb is a repetition after a Conflict.

A repeated verb lets no other thread write before its end, so that it does not fail again.
"""


def _places_of(projects: Iterable[str | os.PathLike[str]]) -> list[str]:
    """Return where the given projects are: the roots of sources, and the paths of folders."""
    return [project.root if isinstance(project, Source) else str(project) for project in projects]


def verb(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """Decorate a method as a verb. Its class must have an attribute `engine`.

    - Only one thread at a time runs a verb of a home.
    - If the index turns out to be damaged, it is rebuilt and the method is called again.
    - If a file changed between its reading and its writing (Conflict), the method is called again,
      unless the caller passed a checksum.
    - An OSError becomes a StorageError.

    If one verb calls another, only the outer verb does all this.
    """
    retried = retry_conflicts(method)

    def call_outermost(self: Any, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `method`, and again after a Conflict or if the index is corrupt."""
        engine: Engine = self.engine
        commits_before = engine.commits
        # A checksum says which version the caller read. After a Conflict, the file is another one.
        has_checksum = kwargs.get("checksum") is not None
        try:
            if has_checksum:
                return method(self, *args, **kwargs)
            return retried(self, *args, **kwargs)
        except sqlite3.Error as error:
            engine._rebuild_corrupt_index(error, commits_before)
            return method(self, *args, **kwargs)

    @wraps(method)
    def call(self: Any, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `method` as the only thread inside the home, and treat its errors as `verb` says."""
        engine: Engine = self.engine
        with waits_at_most(engine.call_waits), engine.guard:
            engine._check_open()
            is_outermost = engine._depth == 0
            if is_outermost and not engine.is_writing:
                engine._take_up_changes_elsewhere()
            engine._depth += 1
            try:
                if is_outermost:
                    return call_outermost(self, *args, **kwargs)
                return method(self, *args, **kwargs)
            except OSError as error:
                raise StorageError("the memory", reason(error)) from None
            finally:
                engine._depth -= 1
                if is_outermost:
                    engine._let_go()

    return call


def _decoded(data: bytes) -> tuple[str, str]:
    """Decode the bytes of a file. Returns the text, and a warning if it is not UTF-8 (else "")."""
    text = utf16_text(data)
    if text is not None:
        return text, UTF16
    try:
        return data.decode("utf-8"), ""
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace"), NOT_UTF8


def retry_conflicts(method: Callable[P, T]) -> Callable[P, T]:
    """Return a function that calls `method`, and calls it again if it raises Conflict.

    A Conflict means that a file changed between its reading and its writing. After five calls the
    Conflict is raised.
    """

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        """Call `method`, and again if it raises Conflict, up to five times in all."""
        with suppress(Conflict):
            return method(*args, **kwargs)
        # A repeated change keeps the lock from its plan to its end, so that no other writer comes
        # between.
        token = is_repeated.set(True)
        try:
            for _ in range(_CONFLICT_RETRIES - 1):
                with suppress(Conflict):
                    return method(*args, **kwargs)
            return method(*args, **kwargs)
        finally:
            is_repeated.reset(token)

    return call
