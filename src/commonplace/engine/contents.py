"""Everything a home holds, file by file, for who copies it whole: `memory mirror` and `memory move-home`."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from itertools import takewhile

from commonplace.clock import wait_for
from commonplace.engine.engine import verb
from commonplace.engine.transaction import HomeSession
from commonplace.errors import InvalidInput, NotFound, StorageError
from commonplace.store.base import File, Values
from commonplace.store.files import read_file, stamp_of
from commonplace.store.journal import Change, Touched
from commonplace.store.layout import PRIVATE, SKIPPED_FOLDERS, TEMP_PREFIX
from commonplace.store.path_guard import climbs, open_folder
from commonplace.text.unicode import is_valid_unicode

OWN = "projects"
"""The folder of a copy that holds the projects the configuration names."""
_SHOWN_HIDDEN = ".bank.json"


@dataclass(slots=True)
class Listed:
    """Every file: its name in a copy → (project, path, stamp). What lies below a name of `unreadable` is unknown."""

    files: dict[str, tuple[str, str, Values]] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)


class Contents:
    """The files and the history of `session`'s home. Raises InvalidInput for an agent: private notes are among them."""

    def __init__(self, session: HomeSession):
        if session.agent is not None:
            raise InvalidInput("A copy of the whole memory is the owner's: run this without an agent's name.")
        self.session = session
        self.engine = session.engine

    def wait_until_whole(self) -> None:
        """Wait until all that was acknowledged is here: a new copy of a database's notes is filled over time. Raises
        StorageError when the database cannot be asked."""
        while not wait_for(lambda: not self._lag()):
            continue
        if self._lag() is None:
            why = "their database cannot be asked now, and some may be missing here; try again"
            raise StorageError("the notes", why)

    @verb
    def _lag(self) -> int | None:
        return self.engine.home.lag()

    @verb
    def listed(self) -> Listed:
        """The files there are now: all of the projects in the home, and the notes of those elsewhere."""
        self.engine.fresh()
        found = Listed()
        for name, store in self.engine.stores.items():
            if name in self.engine.extra:
                continue
            if store.trouble():
                found.unreadable.append(f"{self.folder(name)}/")
            elif store.holds_entities:
                if os.path.exists(store.root):
                    found.files[self.folder(name)] = name, "", stamp_of(os.stat(store.root))
            elif name in self.engine.layout.built_in():
                self._walk(name, store.root, found)
            else:
                listing = store.list()
                found.files |= {f"{self.folder(name)}/{path}": (name, path, at) for path, at in listing.stamps.items()}
                found.unreadable += [f"{self.folder(name)}/{path}" for path in listing.unreadable]
        return found

    def _walk(self, project: str, root: str, found: Listed) -> None:
        waiting = [""]
        while waiting:
            folder = waiting.pop()
            try:
                with os.scandir(os.path.join(root, folder)) as entries:
                    for each in entries:
                        path = f"{folder}/{each.name}" if folder else each.name
                        if not is_kept_name(project, each.name):
                            continue
                        if each.is_dir(follow_symlinks=False):
                            waiting.append(path)
                        elif each.is_file(follow_symlinks=False):
                            stamp = stamp_of(each.stat(follow_symlinks=False))
                            found.files[f"{self.folder(project)}/{path}"] = project, path, stamp
            except FileNotFoundError:
                continue
            except OSError:
                found.unreadable.append(f"{self.folder(project)}/{folder}")

    def folder(self, project: str) -> str:
        """The name of a project's folder, or graph file, in a copy."""
        if project in self.engine.layout.built_in():
            return project.removeprefix(".")
        name = f"%2E{project[1:]}" if project.startswith(".") else project
        return f"{OWN}/{name}.jsonl" if self.engine.stores[project].holds_entities else f"{OWN}/{name}"

    def name(self, each: Touched, path: str) -> str | None:
        """What the file (or folder) at `path` that a change touched is called in a copy; None for what is not in it:
        the home's own records, projects of another process or gone since, hidden files."""
        known = each.project in self.engine.stores and each.project not in self.engine.extra
        if not known or each.project == PRIVATE or each.root or each.do == "lines":
            for name, store in self.engine.stores.items():
                if store.holds_entities and each.file and os.path.realpath(each.file) == os.path.realpath(store.root):
                    return None if name in self.engine.extra else self.folder(name)
            return None
        parts = path.split("/")
        if each.project in self.engine.layout.built_in():
            is_kept = all(is_kept_name(each.project, part) for part in parts)
        else:
            is_folder = each.do in ("mkdir", "rmdir") or (each.do == "move" and each.old is None)
            is_kept = is_folder or self.engine.stores[each.project].is_note(path)
        return f"{self.folder(each.project)}/{path}" if is_kept and not climbs(path) else None

    @verb
    def read(self, project: str, path: str) -> File:
        """The file as it is now. Raises NotFound, OutsideError, StorageError."""
        store = self.engine.store(project)
        if store.holds_entities:
            return read_file(store.root)
        parent, _, name = path.rpartition("/")
        try:
            with open_folder(store.root, parent, project) as folder:
                return read_file(name, folder.fd)
        except FileNotFoundError:
            raise NotFound(path, project) from None

    @verb
    def text(self, digest: str) -> bytes | None:
        """The replaced text with this SHA-256 as the history keeps it; None for one that is not kept."""
        try:
            return self.engine.home.history.text(digest, "")
        except (NotFound, StorageError):
            return None

    @verb
    def changes(self, after: int = 0) -> list[Change]:
        """The changes with a higher number than `after`, the oldest first, as far back as the history goes."""
        every = self.engine.home.history.changes()
        return [*takewhile(lambda each: each.number > after, every)][::-1]

    @verb
    def have_texts(self) -> None:
        """Have every text of the history in the home's folder, which for notes in a database holds those used here."""
        for digest in sorted(each for each in self.engine.home.history.referenced() if each):
            self.text(digest)

    @verb
    def reads(self) -> bytes:
        """The access log of a home with these reads (docs/format.md)."""
        with self.engine.access.locked() as log:
            return log.lines(log.counts, log.used)


def is_kept_name(project: str, name: str) -> bool:
    """Whether a file or folder of this name in a project of the home is part of a copy. Of hidden ones these are the
    records of banks, and what agents made with the memory tool."""
    if name.startswith(TEMP_PREFIX) or name in SKIPPED_FOLDERS or name.lower() == ".git" or not is_valid_unicode(name):
        return False
    return not name.startswith(".") or name == _SHOWN_HIDDEN or project == "memories"
