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
from commonplace.index.index import Index
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
    from commonplace.engine.graph_store import GraphStore
    from commonplace.index import sync
    from commonplace.index.vectors.nearest import Vectors
    from commonplace.index.watch import Watch

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
        self.index = Index(self.layout.index_for(self.extra), self.home.lock)
        self._config_stamp = _stamp_of(settings.file)
        self.stores = self._stores({name: each for name, each in extra.items() if hasattr(each, "kind")})
        self._wants_watch = watch
        self._watch: Watch | None = None
        self._roots: dict[str, tuple[int, int] | None] = {}
        self._pending: set[str] = set(self.stores)
        self._openings = 0
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
            self.index.unpin()

    # --- projects -------------------------------------------------------------------------------

    def _stores(self, before: Mapping[str, FolderStore | GraphStore]) -> dict[str, FolderStore | GraphStore]:
        return stores.opened(self.layout, self.settings.projects, self.extra, before)

    def graph_at(self, file: str | Path) -> GraphStore | None:
        """The project that is the graph file at this absolute path, None when none is."""
        found = (each for each in self.stores.values() if each.kind != stores.FOLDER and each.root == str(file))
        return next(found, None)  # type: ignore[return-value]

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

    def rebuild(self) -> None:
        """Throw the index away; the next call that needs it makes it anew from the notes."""
        with self.guard, self.home.lock:
            self._looked = False
            self.index.rebuild()

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
            self.index.unpin()
            raise
        self._looked = self._depth > 0
        if not self._looked:
            self.index.unpin()
        return result

    def _look(self, result: sync.Result, progress: sync.Progress | None) -> None:
        self.index.unpin()
        self.index.pin()
        if self.index.openings != self._openings:
            self._openings, self._pending = self.index.openings, set(self.stores)
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
                    self._sweep(self.stores[project], result, None, folder)
            for project, path in changes.files:
                if project in self.stores and project not in sweeps:
                    self._check_file(self.stores[project], path, result)
        for project in sorted(sweeps):
            self._sweep(self.stores[project], result, progress)
        if troubled - self._troubles.keys():
            self._close_watch()  # what could be read again was not watched
        self._forget_projects(sweeps)
        self.retire()

    def retire(self) -> None:
        """An entry past its time to live is in no face, from that moment on (contract 004, 4)."""
        now = microseconds(self.clock())
        if self.index.notes.over(now, 1):
            with self.home.lock, self.index.transaction():
                self.index.entries.retire(now)

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
        from commonplace.index.watch import Watch

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

    def _forget_projects(self, sweeps: set[str]) -> None:
        if not self._pending:
            return
        self._pending -= sweeps
        self._troubles = {name: texts for name, texts in self._troubles.items() if name in self.stores}
        gone = set(self.index.notes.projects()) - self.stores.keys()
        if gone:
            self._forget(gone)

    def _forget(self, projects: set[str]) -> None:
        with self.home.lock, self.index.transaction():
            for project in projects:
                self.index.forget_project(project)

    def _sweep(self, store: FolderStore | GraphStore, result: sync.Result,
               progress: sync.Progress | None, folder: str = "") -> None:  # fmt: skip
        """Compare a project, or one folder of it, with the index, and apply what differs."""

        self._troubles.pop(store.name, None)
        if store.kind != stores.FOLDER:
            from commonplace.engine import graph_sync

            if trouble := graph_sync.sweep(self, store, result, progress):
                self._troubles[store.name] = [trouble]
            return
        if store.name in self._pending and self.index.seen(store.name):
            self._forget({store.name})  # a graph file had this name
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
        changes = self.index.plan(store.name, listing, folder)
        if changes:
            self.index.apply(store.name, changes, partial(self.load, store), self.home.lock, result, progress)

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

    def _check_file(self, store: FolderStore | GraphStore, path: str, result: sync.Result) -> None:

        stamp = store.stamp(path) if store.is_note(path) else None
        known = self.index.notes.stamp(store.name, path)
        if stamp == known or (stamp is not None and self._skipped.get((store.name, path)) == stamp):
            return
        changes = self.index.plan_file(store.name, path, stamp)
        if changes:
            self.index.apply(store.name, changes, partial(self.load, store), self.home.lock, result)

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
        when, is_entity = file.stamp.mtime_ns, project in self.stores and self.stores[project].kind != stores.FOLDER
        if is_entity and (known := self.index.notes.stamp(project, path)) and known.inode == file.stamp.inode:
            when = known.mtime_ns  # others of the file changed since
        changed = _EPOCH + timedelta(microseconds=when // 1000)  # exact, where a float rounds
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
            if isinstance(error, sqlite3.Error) and Index.is_corrupt(error):
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
            if Index.is_corrupt(error):
                raise  # the verb makes the index anew and starts again
            raise StorageError("the index", Index.explain(error)) from None

    def close(self) -> None:
        """Release the index, the watch and the home."""
        with self.guard:
            if self._closed:
                return
            self._closed = True
            self._close_watch()
            self.index.close()
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
