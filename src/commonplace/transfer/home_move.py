"""`memory move-home`: a whole memory to another place, with its history, and the proof that all of it is there.

To a database: `engine/database_move.py`. To a folder: everything is copied into `.moving` of the target, read again and
compared with what was read at the source, and renamed into place at the end. A move that was cut off goes on where it
was. The source is only read.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from commonplace.engine import Memory, open_memory
from commonplace.engine.exchange import OWN, Contents, IntoDatabase
from commonplace.errors import InvalidInput, StorageError
from commonplace.store.base import Stamp, Values, sha256
from commonplace.store.files import make_private, put_derived, read_file, stamp_of, storing, write_file
from commonplace.store.layout import PRIVATE, TEMP_PREFIX, Layout

Progress = Callable[[int, int], None]

MOVING = ".moving"
_STAGED, _NOTE = "home", "move.json"
_JOURNAL = f"{PRIVATE}/history/journal.jsonl"
_TEXTS = f"{PRIVATE}/history/objects/"
DATABASE = ("postgresql://", "postgres://")
"""How the address of a database begins."""
_OF_THE_PLACE = ("memory.sock", ".daemon.lock", MOVING, f"{TEMP_PREFIX}*")
_MADE_ANEW = ("index*.db*", "lock", "redo", "lines", "http", "access.lock", "journal.jsonl.new")
"""Names in `.commonplace` that are not moved."""
_OF_A_COPY = ("README.txt", f"{PRIVATE}/replica.json", f"{PRIVATE}/incoming", f"{PRIVATE}/erased")
"""Names in the folder of copies of a database's notes that are not moved."""
_READS, _CONFIG = f"{PRIVATE}/access.log", "config.yaml"
_OWN_PATHS = (_CONFIG, f"{PRIVATE}/access.json")
"""Files that may name the home by its path."""


@dataclass(slots=True)
class HomeMoved:
    """What was moved, or would be: `files` with `bytes`, `changes` of the journal and `texts` of the history.
    `checksum`: the SHA-256 of one line `<SHA-256> <name>` for each file of a project, sorted by name, as read at the
    source and as it is at the target. `rewritten`: files in which the source's path became the target's. `outside`:
    projects in folders elsewhere, which stay there. `left`: files that no note can be, which a database does not
    take."""

    files: int = 0
    bytes: int = 0
    changes: int = 0
    texts: int = 0
    checksum: str = ""
    rewritten: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


def move(source: str, target: str, *, dry_run: bool = False, progress: Progress | None = None) -> HomeMoved:
    """Move the home at `source` to `target`, each a folder or the address of a database; or go on with it. Raises
    InvalidInput when that cannot be, StorageError; then the target is no home, and the move can be run again."""
    if target.startswith(DATABASE):
        if source.startswith(DATABASE):
            raise InvalidInput("Move from one database to another by way of a folder, or with pg_dump.")
        with open_memory(_home_at(Path(source)), watch=False) as home:
            into = IntoDatabase(home, target)
            into.run(dry_run=dry_run, progress=progress)
            proof = "" if dry_run else checksum(into.digests)
            count, outside = len(into.digests), into.outside
            return HomeMoved(count, into.size, into.changes, into.texts, proof, [], outside, into.left)
    with ExitStack() as held:
        memory = None
        if source.startswith(DATABASE):
            memory = held.enter_context(open_memory(source, watch=False))
        place = Path(source) if memory is None else memory.home
        return FolderMove(place, Path(target), memory).run(dry_run=dry_run, progress=progress)


def _home_at(place: Path) -> Path:
    """Where the home really is. Raises InvalidInput."""
    real = Path(os.path.realpath(place.expanduser()))
    if not Layout(real).private.is_dir():
        raise InvalidInput(f"{place} is no memory home.")
    if list(Layout(real).private.glob("redo-*")):
        raise InvalidInput(f"{place} has a change that was not completed: run memory doctor --fix first.")
    return real


class FolderMove:
    """A move from the home at `source` to the folder `target`; `memory` is given of notes in a database, of which
    `source` has the copies. Raises InvalidInput when that cannot be."""

    def __init__(self, source: Path, target: Path, memory: Memory | None = None):
        self.source, self.target = _home_at(source), Path(os.path.realpath(target.expanduser()))
        self._memory = memory
        self._staged = self.target / MOVING / _STAGED
        self._note = self.target / MOVING / _NOTE
        self._digests: dict[str, str] = {}
        self._seen: dict[str, Values] = {}
        if self.source in (self.target, *self.target.parents) or self.target in self.source.parents:
            raise InvalidInput(f"{target} is or holds {source}, or lies in it; name another folder.")
        try:
            found = os.listdir(self.target)
        except FileNotFoundError:
            found = []
        except NotADirectoryError:
            found = [str(self.target)]
        came_to_nothing = found == [MOVING] and not self._staged.exists()
        if found and not came_to_nothing and not self._noted():
            raise InvalidInput(f"{target} is not empty, nor a move from {source} that was cut off; name another one.")

    def _noted(self) -> dict[str, Any]:
        """What is noted of a move from this source to this target; nothing when none began."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            row: dict[str, Any] = json.loads(self._note.read_bytes())
            return row if row["from"] == str(self.source) else {}
        return {}

    def run(self, *, dry_run: bool = False, progress: Progress | None = None) -> HomeMoved:
        """Move, or go on. Raises StorageError with everything as it was, to be run again."""
        moved = HomeMoved()
        if done := self._noted().get("moved"):  # it was cut off after it was checked
            self._finish()
            return HomeMoved(**done)
        with ExitStack() as held:
            memory = self._memory or held.enter_context(open_memory(self.source, watch=False))
            contents = Contents(memory)
            contents.wait_until_whole()
            if self._memory is not None:
                contents.have_texts()
            root = f"{self.source}{os.sep}"
            moved.outside = [each.name for each in memory.projects if not f"{each.root}{os.sep}".startswith(root)]
            if dry_run:
                self._seen = {name: stamp_of(os.lstat(self.source / name)) for name in self._names()}
                return self._counted(moved)
            with storing(str(self.target)):
                make_private(self._note.parent)
                put_derived(self._note, json.dumps({"from": str(self.source)}).encode())
                make_private(self._staged)
                self._copy(progress)
                for place in [self.source, *sorted(self.source.glob("spaces/*"))]:
                    if place == self.source or Layout(place).private.is_dir():
                        space: Memory = memory if place == self.source else open_memory(place, watch=False)
                        held.callback(space.close)
                        held.enter_context(space.exclusive())
                if self._memory is not None:
                    contents.have_texts()
                self._copy(None)
                if self._memory is not None and (reads := contents.reads()):
                    self._put(_READS, reads, 0o600, 0)
                    self._digests[_READS], self._seen[_READS] = sha256(reads), Stamp(len(reads), 0, 0)
        with storing(str(self.target)):
            read = dict(self._digests)
            moved.rewritten = self._relocate()
            self._check(progress)
            moved.checksum = checksum(read)
            self._counted(moved)
            os.sync()
            put_derived(self._note, json.dumps({"from": str(self.source), "moved": asdict(moved)}).encode())
        self._finish()
        return moved

    def _names(self, folder: str = "") -> Iterator[str]:
        """The names of all files, links and folders that are moved; folders end in `/`."""
        inside = folder.rstrip("/").rpartition("/")[2] == PRIVATE
        left = _MADE_ANEW if inside or PRIVATE in folder.split("/") else _OF_THE_PLACE
        with os.scandir(self.source / folder) as entries:
            for each in sorted(entries, key=lambda each: each.name):
                name = folder + each.name
                if self._memory is not None and name in _OF_A_COPY:
                    continue
                is_file = each.is_file(follow_symlinks=False)
                if any(fnmatch(each.name, pattern) for pattern in left) and (inside or is_file or each.name == MOVING):
                    continue
                if each.is_dir(follow_symlinks=False):
                    yield f"{name}/"
                    yield from self._names(f"{name}/")
                elif is_file or each.is_symlink():
                    yield name

    def _copy(self, progress: Progress | None) -> None:
        """Copy what differs from what was seen before, and remove what is gone."""
        names = list(self._names())
        for number, name in enumerate(names):
            with suppress(FileNotFoundError):  # gone since it was listed; the second time nobody writes
                there = os.lstat(self.source / name)
                source, staged, stamp = self.source / name, self._staged / name, stamp_of(there)
                if self._seen.get(name) == stamp:
                    pass
                elif name.endswith("/"):
                    staged.mkdir(mode=0o700, exist_ok=True)
                    staged.chmod(stat.S_IMODE(there.st_mode))
                elif stat.S_ISLNK(there.st_mode):
                    staged.unlink(missing_ok=True)
                    staged.symlink_to(os.readlink(source))
                else:
                    file = read_file(str(source))
                    self._digests[name] = file.etag
                    is_there = staged.exists() and stamp_of(os.lstat(staged))[:2] == file.stamp[:2]
                    if not is_there or read_file(str(staged)).etag != file.etag:
                        self._put(name, file.data, file.mode, file.stamp.mtime_ns)
                self._seen[name] = stamp
            if progress is not None:
                progress(number // 2, len(names))  # the other half is the check
        kept = {*names}
        for name in self._seen.keys() - kept:
            del self._seen[name]
            self._digests.pop(name, None)
        for name in sorted(_all_below(self._staged), reverse=True):
            if name not in kept:
                place = self._staged / name
                place.rmdir() if name.endswith("/") else place.unlink()

    def _put(self, name: str, data: bytes, mode: int, changed_ns: int) -> None:
        temp = self._staged / f"{TEMP_PREFIX}moving"
        temp.unlink(missing_ok=True)
        write_file(str(temp), data, mode=mode, durable=False)
        os.utime(temp, ns=(changed_ns, changed_ns))
        os.replace(temp, self._staged / name)

    def _relocate(self) -> list[str]:
        """Name the target where the source named itself: folders of projects and spaces, graph files in the home."""
        olds = {str(self.source), str(self.source).replace(f"{Path.home()}/", "~/", 1)}
        anywhere = re.compile(b"(%s)(?=[/\"'\\s]|$)" % b"|".join(re.escape(os.fsencode(old)) for old in olds))
        in_journal = re.compile(b'("(?:file|root)":")' + re.escape(os.fsencode(self.source)) + b"(?=/)")
        new, changed = os.fsencode(self.target), []
        for name in (*_OWN_PATHS, _JOURNAL):
            if name in self._digests:
                file = read_file(str(self._staged / name))
                if name == _JOURNAL:
                    data = in_journal.sub(lambda found: found[1] + new, file.data)
                else:
                    data = anywhere.sub(lambda found: new, file.data)
                    if self._memory is not None and name == _CONFIG:  # where projects of a database lie is told so
                        data = re.sub(rb"(?m)(:\s*[\"']?)(?=projects/)", lambda found: found[0] + new + b"/", data)
                if data != file.data:
                    self._put(name, data, file.mode, file.stamp.mtime_ns)
                    self._digests[name] = sha256(data)
                    changed.append(name)
        return changed

    def _check(self, progress: Progress | None) -> None:
        """Read everything again and compare it with what was read at the source. Raises StorageError."""
        for number, (name, digest) in enumerate(self._digests.items()):
            there = read_file(str(self._staged / name)).etag
            if there != digest or (name.startswith(_TEXTS) and there != name.rpartition("/")[2]):
                raise StorageError(name, f"the copy at {self.target} is not what was read; run the move again")
            if progress is not None:
                progress(len(self._digests) + number + 1, 2 * len(self._digests))

    def _finish(self) -> None:
        """Rename all that was checked into place, what makes it a home last."""
        gone = self.target / PRIVATE / f"{TEMP_PREFIX}moved"
        with storing(str(self.target)):
            for name in sorted(os.listdir(self._staged), key=lambda name: (name == PRIVATE, name)):
                os.rename(self._staged / name, self.target / name)
            os.sync()
            os.rename(self.target / MOVING, gone)
            shutil.rmtree(gone)

    def _counted(self, moved: HomeMoved) -> HomeMoved:
        names = [name for name in self._seen if not name.endswith("/")]
        moved.files, moved.bytes = len(names), sum(self._seen[name][0] for name in names)
        moved.texts = sum(name.startswith(_TEXTS) for name in names)
        with suppress(FileNotFoundError):
            place = self._staged if self._staged.exists() else self.source
            lines = (place / _JOURNAL).read_bytes().split(b"\n")
            moved.changes = sum(1 for line in lines if line.strip())
        return moved


def checksum(digests: Mapping[str, str]) -> str:
    """See `HomeMoved`: `digests` are SHA-256 by name."""
    own = Layout(Path("/"))
    folders = (OWN, *(str(place.relative_to("/")) for place in own.built_in().values()))
    lines = (f"{digest}  {name}\n" for name, digest in sorted(digests.items()) if name.partition("/")[0] in folders)
    return sha256("".join(lines).encode("utf-8", "surrogateescape"))


def _all_below(folder: Path) -> Iterator[str]:
    for place, folders, files in os.walk(folder):
        inside = "" if place == str(folder) else f"{os.path.relpath(place, folder)}/"
        links = [name for name in folders if os.path.islink(os.path.join(place, name))]
        yield from (f"{inside}{name}/" for name in folders if name not in links)
        yield from (f"{inside}{name}" for name in (*files, *links))
