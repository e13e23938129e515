"""`memory mirror`: a folder kept like the memory, byte for byte, one way (docs/teams.md).

What is copied is found by comparing the home's files with those copied last; with git, the journal since the last run
becomes commits (`git_history.py`). Names in the folder are those of a home: `notes/Plan.md`, `projects/NAME/…`.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from commonplace.engine import Memory
from commonplace.engine.exchange import Contents, Listed
from commonplace.errors import CommonplaceError, InvalidInput, NotFound, StorageError
from commonplace.store.base import Values
from commonplace.store.files import lock_file, make_private, put_derived, read_file, reason, storing, write_file
from commonplace.store.layout import TEMP_PREFIX
from commonplace.store.path_guard import Folder, open_folder
from commonplace.transfer.git_history import GitHistory
from commonplace.transfer.moving import MIRROR

_STATE, _LOCK = "state.json", "lock"
_SYNCED_ALONE = 64
"""Up to so many new files are synced one by one; more of them together."""


@dataclass(slots=True)
class Mirrored:
    """What a run did: files `copied`, `removed`, and `restored` because somebody changed them here; `commits` made, and
    the number of the latest `change`. `files` there are now; `left` names what could not be listed or read and stays as
    it was copied last; `notices` are for the owner."""

    files: int = 0
    copied: int = 0
    removed: int = 0
    restored: int = 0
    commits: int = 0
    change: int = 0
    left: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _State:
    """`files`: name → [SHA-256, size, mtime and inode of the file it was copied from]; `writing`: names a run that did
    not end was about to write."""

    home: str
    change: int = 0
    files: dict[str, tuple[str, int, int, int]] = field(default_factory=dict)
    writing: list[str] = field(default_factory=list)
    git: bool = False


class Mirror:
    """The mirror of `memory`'s home in `folder`. Raises InvalidInput for an agent, and for a folder of the home."""

    def __init__(self, memory: Memory, folder: Path):
        self._memory = memory
        self._contents = Contents(memory)
        self.folder = Path(os.path.realpath(folder.expanduser()))
        home = Path(os.path.realpath(memory.home))
        if self.folder in (home, *home.parents) or home in self.folder.parents:
            raise InvalidInput(f"{folder} is or holds the memory home, or lies in it; mirror to another folder.")

    def run(
        self, *, git: bool = False, after_erase: str | None = None, progress: Callable[[int, int], None] | None = None
    ) -> Mirrored:
        """Make the folder like the memory. With `git`, and once there was one, a commit for each change. `after_erase`:
        `rewrite` makes the commits anew without what was erased in the memory, `keep` goes on with it in them; None
        refuses to commit. Raises InvalidInput, Busy, StorageError; the next run goes on."""
        self._contents.wait_until_whole()
        with self._locked():
            state = self._load()
            state.git = git = git or state.git
            history = GitHistory(self.folder, self.folder / MIRROR, self._contents) if git else None
            reached = history.change if history is not None else state.change
            changes = self._contents.changes(reached)
            listed = self._contents.listed()
            done = Mirrored(change=changes[-1].number if changes else max(reached, state.change))
            done.left += listed.unreadable
            self._copy(state, listed, done, progress)
            state.change = done.change
            self._save(state)
            done.files = len(state.files)
            if history is not None:
                later = self._contents.changes(done.change)
                tree = {name: row[0] for name, row in state.files.items()}
                done.notices = history.commit(changes, tree, later, self._memory.clock(), after_erase)
                done.commits = history.made
            return done

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """The folder, made if need be, for one run at a time. Raises InvalidInput, StorageError."""
        ours = self.folder / MIRROR
        try:
            if not ours.is_dir() and self.folder.exists() and (not self.folder.is_dir() or os.listdir(self.folder)):
                raise InvalidInput(f"{self.folder} is not empty and no mirror; name a new or an empty folder.")
            make_private(ours)
            open_folder(str(self.folder), MIRROR, "the mirror").close()
            lock = lock_file(ours / _LOCK, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InvalidInput(f"another run mirrors to {self.folder}; wait for its end.") from None
        except OSError as error:
            raise StorageError(str(self.folder), reason(error)) from None
        try:
            yield
        finally:
            os.close(lock)

    def _load(self) -> _State:
        home, settings = str(self._memory.home), self._memory.settings
        if settings.url is not None:  # a space of a database, whatever machine and user see it
            parts = urlsplit(settings.url)
            where = [each for each in parse_qsl(parts.query) if each[0] in ("host", "port", "dbname", "service")]
            query = urlencode([*where, ("space", settings.space)])
            home = f"postgresql://{parts.netloc.rpartition('@')[2]}{parts.path}?{query}"
        place = self.folder / MIRROR / _STATE
        if not place.exists():
            return _State(home)
        try:
            row: dict[str, Any] = json.loads(place.read_bytes())
            files = {name: (str(a), int(b), int(c), int(d)) for name, (a, b, c, d) in row["files"].items()}
            state = _State(row["home"], row["change"], files, list(row["writing"]), row["git"])
        except (OSError, ValueError, KeyError, TypeError):
            raise StorageError(str(place), "it is damaged; remove it, and the next run looks at every file") from None
        if state.home != home:
            raise InvalidInput(
                f"{self.folder} mirrors {state.home}. Name another folder for {home}, or, if that home moved here, "
                f'change "home" in {place}.'
            )
        return state

    def _save(self, state: _State) -> None:
        row = {"format": 1, "home": state.home, "change": state.change, "git": state.git, "writing": state.writing,
               "files": state.files}  # fmt: skip
        put_derived(self.folder / MIRROR / _STATE, json.dumps(row, ensure_ascii=True, indent=0).encode() + b"\n")

    def _copy(self, state: _State, listed: Listed, done: Mirrored, progress: Callable[[int, int], None] | None) -> None:
        """Write what differs and remove what is gone; `state` is saved before the first file is written."""
        ours = {*state.files, *state.writing}
        changed = [name for name, row in listed.files.items() if not self._is_same(name, row[2], state)]
        left = tuple(f"{each.rstrip('/')}/" for each in listed.unreadable)
        gone = [name for name in ours if name not in listed.files and not f"{name}/".startswith(left)]
        if not changed and not gone:
            return
        for name in changed:
            if name not in ours and os.path.lexists(self.folder / name):
                raise InvalidInput(f"{self.folder / name} is not from the memory; move it away and run this again.")
        state.writing = sorted({*changed, *gone} - state.files.keys())
        self._save(state)
        alone = len(changed) <= _SYNCED_ALONE
        for number, name in enumerate(gone):
            self._remove(name)
            done.removed += state.files.pop(name, None) is not None
            if progress is not None:
                progress(number, len(gone) + len(changed))
        for number, name in enumerate(changed, len(gone) + 1):
            project, path, _ = listed.files[name]
            try:
                file = self._contents.read(project, path)
            except NotFound:  # gone since it was listed: by a change the next run sees
                continue
            except CommonplaceError as error:
                done.left.append(f"{name} ({error})")
                continue
            before = state.files.get(name)
            if self._write(name, file.data, file.mode, file.stamp.mtime_ns, alone):
                done.restored += before is not None and before[0] == file.etag
                done.copied += before is None or before[0] != file.etag
            state.files[name] = (file.etag, *file.stamp)
            if progress is not None:
                progress(number, len(gone) + len(changed))
        if not alone:
            os.sync()
        state.writing = []

    def _is_same(self, name: str, stamp: Values, state: _State) -> bool:
        """Whether neither the home's file nor the copy changed since it was copied."""
        known = state.files.get(name)
        if known is None or known[1:] != tuple(stamp):
            return False
        with suppress(OSError):
            there = os.lstat(self.folder / name)
            return stat.S_ISREG(there.st_mode) and (there.st_size, there.st_mtime_ns) == known[1:3]
        return False

    def _write(self, name: str, data: bytes, mode: int, changed_ns: int, durable: bool) -> bool:
        """Make the copy hold `data`. Returns False when it did. Raises OutsideError at a symlink on the way."""
        parent, _, last = name.rpartition("/")
        with storing(str(self.folder / name)), self._open(parent) as folder:
            is_there = False
            with suppress(OSError):
                is_there = read_file(last, folder.fd).data == data
            if not is_there:
                temp = f"{TEMP_PREFIX}mirror"
                with suppress(FileNotFoundError):  # of a run that was killed
                    os.unlink(temp, dir_fd=folder.fd)
                write_file(temp, data, mode=mode, folder=folder.fd, durable=durable)
                os.rename(temp, last, src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
            os.utime(last, ns=(changed_ns, changed_ns), dir_fd=folder.fd, follow_symlinks=False)
            if durable:
                os.fsync(folder.fd)
        return not is_there

    def _open(self, parent: str) -> Folder:
        """The open folder, made if it is missing."""
        try:
            return open_folder(str(self.folder), parent, "the mirror")
        except NotFound:
            above, _, last = parent.rpartition("/")
            with self._open(above) as folder:
                os.mkdir(last, 0o700, dir_fd=folder.fd)
            return open_folder(str(self.folder), parent, "the mirror")

    def _remove(self, name: str) -> None:
        """Remove a copy, and folders that are empty then."""
        try:
            while name:
                name, _, last = name.rpartition("/")
                with open_folder(str(self.folder), name, "the mirror") as folder:
                    if stat.S_ISDIR(os.stat(last, dir_fd=folder.fd, follow_symlinks=False).st_mode):
                        os.rmdir(last, dir_fd=folder.fd)
                    else:
                        os.unlink(last, dir_fd=folder.fd)
        except (OSError, NotFound):  # it is gone, or the folder holds more
            return
