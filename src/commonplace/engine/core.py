"""What an open memory holds: the home, the stores, the index, and how they are kept in step.

One thread at a time is inside (`guard`); writers also hold the home's lock. The order is always
guard, then lock.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commonplace import config
from commonplace.clock import Clock, microseconds
from commonplace.config import Settings
from commonplace.engine import elsewhere, showing, stores
from commonplace.errors import (
    CommonplaceError,
    ConfigError,
    NotFound,
    ProjectNotFound,
    ReadOnlyProject,
    StorageError,
)
from commonplace.index import database, lookup, places
from commonplace.index.rows import NoteInfo
from commonplace.note.model import Note
from commonplace.store.access import AccessLog
from commonplace.store.atomic import folders_held, make_private, reason
from commonplace.store.base import File, Listing, Stamp, bounded
from commonplace.store.folder import FolderStore
from commonplace.store.history import Change
from commonplace.store.home import Home, Step
from commonplace.store.layout import Layout

if TYPE_CHECKING:
    from commonplace.index import sync
    from commonplace.index.changes import Watch
    from commonplace.index.vectors.nearest import Vectors
    from commonplace.store.inplace.graph_file import GraphStore

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NOT_UTF8 = "not_utf8: bytes that are not UTF-8 are shown as U+FFFD"


class Core:
    """The state all callers of one open memory share."""

    def __init__(self, settings: Settings, extra: Mapping[str, str | os.PathLike[str]], clock: Clock, watch: bool):
        self.settings = settings
        self.clock = clock
        self.guard = threading.RLock()
        self.layout = Layout(settings.home)
        self.home = Home(self.layout, clock)
        self.access = AccessLog(self.layout.access_log)
        self._troubles: dict[str, list[str]] = {}
        self.unreadable: dict[tuple[str, str], str] = {}
        self._skipped: dict[tuple[str, str], Stamp] = {}
        self.extra = {name: os.fspath(place) for name, place in extra.items()}
        self._index = self.layout.index_for(self.extra)
        self._config_stamp = _stamp_of(settings.file)
        self.stores = self._stores({name: each for name, each in extra.items() if hasattr(each, "kind")})
        self._wants_watch = watch
        self._watch: Watch | None = None
        self._roots: dict[str, tuple[int, int] | None] = {}
        self._pending: set[str] = set(self.stores)
        self._db: sqlite3.Connection | None = None
        self._inode: tuple[int, int] | None = None
        self._depth = self._writes = 0
        self._looked = False
        self._closed = False
        self.vectors: Vectors | None = None
        self.no_vectors, self.collected = "", False
        self.commits = 0
        self.shown: dict[tuple[str, str], Note] = {}
        """What the last change of the verb at work wrote, as read for the index."""
        self.changed: set[str] = set()
        """The projects changed since `memory.md` was last made."""

    @property
    def warnings(self) -> list[str]:
        """What the last look at the projects' folders could not see."""
        with self.guard:
            return [text for name in sorted(self._troubles) for text in self._troubles[name]]

    def enter(self) -> bool:
        """A verb begins, the guard held. Returns whether no other verb called it. Raises StorageError once closed."""
        self._check_open()
        self._depth += 1
        return self._depth == 1

    def _check_open(self) -> None:
        if self._closed:  # its file numbers may be other files' by now
            raise StorageError("the memory", "it was closed")

    def leave(self) -> None:
        """A verb ends."""
        self._depth -= 1
        if not self._depth:
            self._looked, self.shown = False, {}

    # --- projects -------------------------------------------------------------------------------

    def _stores(self, before: Mapping[str, FolderStore | GraphStore]) -> dict[str, FolderStore | GraphStore]:
        return stores.opened(self.layout, self.settings.projects, self.extra, before)

    def set_projects(self, settings: Settings) -> None:
        """Use the projects of `settings` from now on; those gone leave the index."""
        self.settings = settings
        self.stores = self._stores(self.stores)
        self._pending = set(self.stores)
        self._close_watch()

    def store(self, project: str) -> FolderStore | GraphStore:
        """The store of a project, its name compared without case. Raises ProjectNotFound."""
        if project in self.stores:
            return self.stores[project]
        for name, store in self.stores.items():
            if name.lower() == project.lower():
                return store
        raise ProjectNotFound(project, sorted(self.stores))

    # --- the index ------------------------------------------------------------------------------

    @property
    def is_swept(self) -> bool:
        """Whether the index already shows what was on disk when this process first looked."""
        return not self._pending

    @property
    def db(self) -> sqlite3.Connection:
        """The open index; made anew when it is missing, foreign or damaged."""
        if self._db is not None:
            # One verb sees one index, even if another process just made it anew.
            if self._looked or _identity(self._index) == self._inode:
                return self._db
            self._db.close()
            self._db = None
        with self.home.lock:
            try:
                self._db, _ = database.open_index(self._index)
                self._inode = _identity(self._index)
            except OSError as error:
                raise StorageError("the index", reason(error)) from None
        self._pending = set(self.stores)
        return self._db

    def rebuild(self) -> None:
        """Throw the index away; the next call that needs it makes it anew from the notes."""
        with self.guard, self.home.lock:
            if self._db is not None:
                self._db.close()
                self._db = None
            self._looked = False
            for suffix in ("", "-wal", "-shm"):
                Path(str(self._index) + suffix).unlink(missing_ok=True)

    def fresh(self, progress: sync.Progress | None = None) -> sync.Result:
        """Make the index show every change that is on disk now, by whatever program. Once per verb."""
        from commonplace.index import sync

        result = sync.Result()
        if self._looked:
            return result
        self.reload()
        try:
            self._look(result, progress)
        except BaseException:
            self._pending = set(self.stores)  # the system tells a change once: look at everything next time
            raise
        self._looked = self._depth > 0
        return result

    def _look(self, result: sync.Result, progress: sync.Progress | None) -> None:
        db = self.db
        if self._watch and any(_identity(self.stores[name].root) != known for name, known in self._roots.items()):
            self._close_watch()  # a project's folder was made, went away or was exchanged
        changes = self._watch.drain() if self._watch else None
        if changes is not None and changes.lost:
            self._close_watch()
            changes = None
        if not self._watch and self._wants_watch:
            self._open_watch()
        troubled = set(self._troubles)
        if changes is None:
            sweeps = set(self.stores)
        else:
            sweeps = (self._pending | troubled) & self.stores.keys()
            sweeps |= self.stores.keys() - self._roots.keys()
            for project, folder in sorted(changes.folders):
                if project in self.stores and project not in sweeps:
                    self._sweep(db, self.stores[project], result, None, folder)
            for project, path in changes.files:
                if project in self.stores and project not in sweeps:
                    self._check_file(db, self.stores[project], path, result)
        for project in sorted(sweeps):
            self._sweep(db, self.stores[project], result, progress)
        if troubled - self._troubles.keys():
            self._close_watch()  # what could be read again was not watched
        self._forget_projects(db, sweeps)
        self.retire(db)

    def retire(self, db: sqlite3.Connection) -> None:
        """An entry past its time to live is in no face, from that moment on (contract 004, 4)."""
        now = microseconds(self.clock())
        if places.over(db, now, 1):
            from commonplace.index import entries

            with self.home.lock, database.transaction(db):
                entries.retire(db, now)

    def reload(self) -> None:
        """Take up projects another process added to the configuration, or removed from it."""
        stamp = _stamp_of(self.settings.file)
        if stamp == self._config_stamp:
            return
        self._config_stamp = stamp
        try:
            now = config.load(self.layout.root, self.settings.file, {})
        except ConfigError:
            return  # somebody is editing it; what was read at the start stays in force
        if now.projects != self.settings.projects:
            self.set_projects(replace(self.settings, projects=now.projects))

    def _open_watch(self) -> None:
        from commonplace.index.changes import Watch

        folders = {name: store for name, store in self.stores.items() if store.kind == stores.FOLDER}
        self._roots = {name: _identity(store.root) for name, store in folders.items()}
        roots = [
            (name, store.root, folder)
            for name, store in folders.items()
            if os.path.isdir(store.root)
            for folder in store.folders()
        ]
        self._watch = Watch.open(roots)
        self._wants_watch = self._watch is not None
        self._pending = set(self.stores)

    def _close_watch(self) -> None:
        if self._watch is not None:
            self._watch.close()
            self._watch = None
            self._wants_watch = True

    def _forget_projects(self, db: sqlite3.Connection, sweeps: set[str]) -> None:
        if not self._pending:
            return
        self._pending -= sweeps
        self._troubles = {name: texts for name, texts in self._troubles.items() if name in self.stores}
        gone = set(lookup.projects(db)) - self.stores.keys()
        if gone:
            self._forget(db, gone)

    def _forget(self, db: sqlite3.Connection, projects: set[str]) -> None:
        from commonplace.index import writer

        with self.home.lock, database.transaction(db):
            for project in projects:
                writer.forget_project(db, project)

    def _sweep(self, db: sqlite3.Connection, store: FolderStore | GraphStore, result: sync.Result,
               progress: sync.Progress | None, folder: str = "") -> None:  # fmt: skip
        """Compare a project, or one folder of it, with the index, and apply what differs."""
        from commonplace.index import sync

        self._troubles.pop(store.name, None)
        if store.kind != stores.FOLDER:
            from commonplace.engine import graph_sync

            if trouble := graph_sync.sweep(self, db, store, result, progress):
                self._troubles[store.name] = [trouble]
            return
        if store.name in self._pending and places.seen(db, store.name):
            self._forget(db, {store.name})  # a graph file had this name
        if os.path.isdir(store.root):
            listing = store.list(folder)
        elif store.name in self.layout.built_in():
            listing = Listing()
        else:
            self._troubles[store.name] = [f"The folder of project {store.name} is missing; its notes are as last seen."]
            return
        if listing.unreadable:
            self._troubles[store.name] = [
                f"Folder {each or '/'} of project {store.name} cannot be read." for each in listing.unreadable
            ]
        self._drop_skipped(store.name, listing, folder)
        changes = sync.plan(db, store.name, listing, folder)
        if changes:
            sync.apply(db, store.name, changes, partial(self.load, store), self.home.lock, result, progress)

    def _drop_skipped(self, project: str, listing: Listing, folder: str) -> None:
        """Leave out files known to be no text, as long as they are the same."""
        if not self._skipped and not self.unreadable:
            return
        for (name, path), _ in list(self.unreadable.items()):
            inside = not folder or path.startswith(f"{folder}/")
            if name == project and inside and path not in listing.stamps:
                del self.unreadable[name, path]
                self._skipped.pop((name, path), None)
        for (name, path), stamp in self._skipped.items():
            if name == project and path in listing.stamps and bounded(listing.stamps[path]) == stamp:
                del listing.stamps[path]

    def _check_file(
        self, db: sqlite3.Connection, store: FolderStore | GraphStore, path: str, result: sync.Result
    ) -> None:
        from commonplace.index import sync

        stamp = store.stamp(path) if store.is_note(path) else None
        known = places.stamp(db, store.name, path)
        if stamp == known or (stamp is not None and self._skipped.get((store.name, path)) == stamp):
            return
        changes = sync.plan_one(db, store.name, path, stamp)
        if changes:
            sync.apply(db, store.name, changes, partial(self.load, store), self.home.lock, result)

    def load(self, store: FolderStore | GraphStore, path: str) -> tuple[Note, Stamp] | None:
        """The note at `path` for the index, None when it is none (not text, gone, unreadable)."""
        key = (store.name, path)
        try:
            file = store.read(path)
        except NotFound:
            return None
        except CommonplaceError as error:
            self.unreadable[key] = str(error)
            return None
        note = self.note_of(store.name, path, file)
        broken = note is None or (store.name == "categories" and _is_broken(note))
        if not broken:
            self.unreadable.pop(key, None)
            self._skipped.pop(key, None)
            return note, file.stamp
        self._skipped[key] = file.stamp
        if store.name == "categories":
            self.unreadable[key] = note.warnings[0] if note else NOT_UTF8
        return None

    def note_of(self, project: str, path: str, file: File) -> Note | None:
        """The note these bytes are; None for bytes that are no UTF-8 text where that is no note."""
        from commonplace.note.markdown import parse_note  # 8 ms; a search that finds nothing new reads no file

        warnings = []
        try:
            text = file.data.decode("utf-8")
        except UnicodeDecodeError:
            if project in ("memories", "categories"):
                return None
            text = file.data.decode("utf-8", "replace")
            warnings.append(NOT_UTF8)
        is_entity = file.changed_ns is not None
        when = file.stamp.mtime_ns if file.changed_ns is None else file.changed_ns
        changed = _EPOCH + timedelta(microseconds=when // 1000)  # exact, where a float rounds
        if is_entity and (known := lookup.get(self.db, project, path)) and known.inode == file.stamp.inode:
            changed = datetime.fromisoformat(known.changed)  # others of the file changed since
        born = datetime.fromtimestamp(file.born, UTC) if file.born else None
        note = parse_note(text, project=project, path=path, changed=changed, born=born, entity=is_entity)
        note.warnings += warnings
        note.etag = file.etag
        return note

    # --- changes --------------------------------------------------------------------------------

    def step(self, do: str, project: str, path: str, *, store: FolderStore | None = None, **more: object) -> Step:
        """A step on a file of `project`, or of a `store` of it that is elsewhere. Of an entry with a time to live no
        text is kept (contract 004, 4).

        Raises ReadOnlyProject for an entity of a graph file.
        """
        if store is None:
            self.check_writable(project)
        if project == "kv" and isinstance(old := more.get("old"), File):
            from commonplace.note.entry import is_passing

            more["kept"] = more.get("kept", True) and not is_passing(old.data)
        root = (store or self.store(project)).root
        away = bool(self.extra or store) and elsewhere.own_root(self, project) != root
        return Step(do, project, root, path, away=away, **more)  # type: ignore[arg-type]

    def check_writable(self, project: str) -> None:
        """Raises ReadOnlyProject when the notes of `project` are the entities of a graph file."""
        store = self.store(project)
        if store.kind != stores.FOLDER:
            raise ReadOnlyProject(store.name, os.path.basename(store.root))

    def commit(self, verb: str, steps: Sequence[Step], about: tuple[str, str], agent: str | None, face: str | None,
               undoes: int | None = None, details: dict[str, Any] | None = None) -> Change:  # fmt: skip
        """Carry out `steps` as one change and show it in the index. The home's lock must be held."""
        for step in steps:
            if not os.path.isdir(step.root):
                self._make_root(step)
        change = self.home.commit(verb, steps, about=about, agent=agent, face=face, undoes=undoes, details=details)
        self.commits, self.shown = self.commits + 1, {}
        self.changed |= {step.project for step in steps}
        try:
            showing.show(self, change)
        except (sqlite3.Error, OSError, StorageError) as error:
            # The files are safe and acknowledged; the index catches up by a sweep.
            self._pending = set(self.stores)
            self._close_watch()
            if isinstance(error, sqlite3.Error) and database.is_corrupt(error):
                self.rebuild()
        return change

    def _make_root(self, step: Step) -> None:
        """The folder of a built-in project is made at its first use; that of an added one is not ours to make."""
        if step.project not in self.layout.built_in():
            raise StorageError(step.path, f"the folder of project {step.project} is missing")
        try:
            make_private(Path(step.root))
        except OSError as error:
            raise StorageError(step.path, reason(error)) from None

    def purge_history(self) -> int:
        """Forget changes older than `history.days`. Returns how many."""
        with self.guard, self.home.lock:
            try:
                return self.home.purge(self.clock() - timedelta(days=self.settings.history_days))
            except OSError as error:
                raise StorageError("the history", reason(error)) from None

    # --- access counts --------------------------------------------------------------------------

    def counted(self, infos: Iterable[NoteInfo]) -> None:
        """Add the reads still in the access log to the counts shown."""
        counts: Counter[str] = self.access.counts()
        if counts:
            for info in infos:
                info.access_count += counts.get(info.id, 0)

    @contextmanager
    def writing(self):
        """Inside, no other writer of this home is at work, nor one of another home in folders both use. A disk that
        refuses is a StorageError.
        """
        try:
            with self.guard:
                self._check_open()
                shared = () if self._writes else stores.shared(self.layout, self.stores.values())
                with self.home.lock, folders_held(shared):
                    self._writes += 1
                    try:
                        yield
                    finally:
                        self._writes -= 1
        except OSError as error:
            raise StorageError("the memory", reason(error)) from None
        except sqlite3.Error as error:
            if database.is_corrupt(error):
                raise  # the verb makes the index anew and starts again
            raise StorageError("the index", database.plain(error)) from None

    def close(self) -> None:
        """Release the index, the watch and the home."""
        with self.guard:
            if self._closed:
                return
            self._closed = True
            self._close_watch()
            if self._db is not None:
                self._db.close()
                self._db = None
            self.access.close()
            self.home.close()


def _stamp_of(file: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino


def _identity(path: str | Path) -> tuple[int, int] | None:
    """What tells a folder or file from another one in its place; None when there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_broken(note: Note) -> bool:
    return any(warning.startswith("bad_frontmatter") for warning in note.warnings)
