"""Move, back up or mirror a whole home: `memory move-home`, `backup`, `mirror` (docs/teams.md).

A move copies a home with its history, and checks that the copy is complete. `IntoDatabase` of
engine/exchange.py moves a home to a database. To move a home to a folder, everything is copied into
`.moving` of the target, compared with the source, and renamed into place at the end. An interrupted
move can be resumed. The source is only read.

A mirror is a folder that is made equal to the memory, byte for byte; changes in the mirror are lost.
The files to copy are found by comparing the home with the last copy. With git, each run is one
commit (`git_history.py`). Names in it are as in a home: `notes/Plan.md`, `projects/NAME/…`.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

from memoranda.engine import MemorySession, open_session
from memoranda.engine.exchange import OWN, Contents, IntoDatabase, Listed, without_state
from memoranda.errors import InvalidInput, MemorandaError, NotFound, StorageError
from memoranda.ledger.copying import (
    copy_ledger,
    is_unfinished,
    ledger_counts,
    put_reads,
    relocate_ledger,
)
from memoranda.sources.base import File, Stamp, Values, sha256
from memoranda.sources.files import (
    digest_of,
    lock_file,
    make_private,
    put_derived,
    read_file,
    stamp_of,
    storing,
    write_file,
)
from memoranda.sources.layout import PRIVATE, TEMP_PREFIX, Layout
from memoranda.sources.path_guard import Folder, open_folder
from memoranda.sources.walking import walk
from memoranda.text.user_path import user_path
from memoranda.transfer.git_history import GitHistory
from memoranda.transfer.moving import MIRROR, Progress

MOVING = ".moving"
"""The folder in the target of a move that has everything until the move is complete."""
# The folder in `.moving` with the copy, and the file there that names the source of the move.
_STAGED = "home"
_RECORD = "move.json"
_LEDGER = f"{PRIVATE}/ledger.db"
# The folder with large texts of the history. Each file is named by its SHA-256.
_TEXTS = f"{PRIVATE}/texts/"
DATABASE = ("postgresql://", "postgres://")
"""The beginnings of the address of a database."""
# Names of files of running programs. They are not moved.
_NAMES_OF_PROGRAMS = ("memory.sock", ".daemon.lock", MOVING, f"{TEMP_PREFIX}*")
# Names in `.memoranda` that are not moved, as the new home makes these files itself.
_DERIVED_NAMES = ("index*.db*", "lock", "http", "ledger.db-*")
# Names in the folder of copies of a database's notes that are not moved.
_NAMES_OF_A_COPY = (
    "README.txt",
    f"{PRIVATE}/replica.json",
    f"{PRIVATE}/incoming",
    f"{PRIVATE}/erased",
)
_CONFIG = "config.yaml"
# The mtime and inode in the stamp of a copied ledger. No file has them, so a ledger is always copied
# again.
_NEVER_THE_SAME = (-1, -1)
# Files that may name the home by its path.
_FILES_WITH_PATHS = (_CONFIG,)


@dataclass(slots=True)
class HomeMoved:
    """The result of a move, or of a dry run.

    files, bytes: the number of files and their size.
    changes, texts: the number of changes, and of older texts.
    checksum: the SHA-256 of one line `<SHA-256> <name>` for each file of a project, sorted by name.
        It is the same for the source and the target.
    rewritten: files in which the source's path was replaced by the target's.
    outside: projects in folders elsewhere, which stay there.
    left: files that cannot be notes, which a database does not take.
    """

    files: int = 0
    bytes: int = 0
    changes: int = 0
    texts: int = 0
    checksum: str = ""
    rewritten: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


def move(
    source: str, target: str, *, dry_run: bool = False, progress: Progress | None = None
) -> HomeMoved:
    """Move a home, or resume a move.

    source, target: each is the path of a folder, or the address of a database.
    dry_run: whether only to count what would be moved.
    progress: called with the work done so far, and all work. None calls nothing.

    Raises StorageError, and InvalidInput if the move is impossible. Then the target is not a home,
    and the move can be run again.
    """
    is_from_database = source.startswith(DATABASE)
    is_to_database = target.startswith(DATABASE)
    if is_from_database and is_to_database:
        raise InvalidInput("Move from one database to another by way of a folder, or with pg_dump.")
    if is_to_database:
        return _move_to_database(Path(source), target, dry_run=dry_run, progress=progress)
    with ExitStack() as locks:
        memory = None
        source_folder = Path(source)
        if is_from_database:
            memory = locks.enter_context(open_session(source, watch=False))
            source_folder = memory.home
        folder_move = FolderMove(source_folder, Path(target), memory)
        return folder_move.run(dry_run=dry_run, progress=progress)


def _move_to_database(
    source: Path, address: str, *, dry_run: bool, progress: Progress | None
) -> HomeMoved:
    """Do `move` from a folder to the database with this address."""
    with open_session(_home_at(source), watch=False) as home:
        database_move = IntoDatabase(home, address)
        database_move.run(dry_run=dry_run, progress=progress)
        return HomeMoved(
            files=len(database_move.digests),
            bytes=database_move.size,
            changes=database_move.changes,
            texts=database_move.texts,
            checksum="" if dry_run else checksum(database_move.digests),
            outside=database_move.outside,
            left=database_move.left,
        )


def back_up(memory: MemorySession, target: Path, progress: Progress | None = None) -> HomeMoved:
    """Copy the home of `memory` to `target` as it is at one moment, even while it is in use.

    The copy is read again and compared. It is a home: `memory --home TARGET` opens it.

    progress: called with the work done so far, and all work. None calls nothing.

    Raises InvalidInput if `target` is not empty, StorageError. Then the backup can be run again.
    """
    # `FolderMove` opens a home in a folder itself
    open_home = memory if memory.settings.url is not None else None
    folder_move = FolderMove(memory.home, target, open_home, relocates=False)
    return folder_move.run(progress=progress)


def _home_at(place: Path) -> Path:
    """Return the real path of a home, without symlinks.

    Raises InvalidInput if no home is there, or if it has a change that was not completed.
    """
    real_path = Path(os.path.realpath(user_path(place)))
    # A home with its state in another folder has a configuration that names the folder.
    if not Layout(real_path).private.is_dir() and not (real_path / _CONFIG).is_file():
        raise InvalidInput(f"{place} is no memory home.")
    if is_unfinished(Layout(real_path).ledger):
        raise InvalidInput(
            f"{place} has a change that was not completed: run memory doctor --fix first."
        )
    return real_path


class FolderMove:
    """Move a home to a folder: copy it, check the copy, and put it into its place.

    source: the folder of the home. For notes in a database, the folder with copies of them.
    memory: the open home, for notes in a database. None for a home in a folder.
    relocates: whether paths in the copy that name the source are changed to name the target.

    Raises InvalidInput if the move is impossible.
    """

    def __init__(
        self,
        source: Path,
        target: Path,
        memory: MemorySession | None = None,
        *,
        relocates: bool = True,
    ):
        self._relocates = relocates
        self.source = _home_at(source)
        self.target = Path(os.path.realpath(user_path(target)))
        self._memory = memory
        self._layout = Layout(self.source)
        # The folder with the copy, and the file that names the source.
        self._staged = self.target / MOVING / _STAGED
        self._record = self.target / MOVING / _RECORD
        # The name of `.moving` while it is removed at the end.
        self._finished = self.target / PRIVATE / f"{TEMP_PREFIX}moved"
        # The SHA-256 of each copied file, by name.
        self._digests: dict[str, str] = {}
        # The stamp of the source of everything that was copied, by name.
        self._seen: dict[str, Values] = {}
        if self._overlap():
            raise InvalidInput(
                f"{target} is or holds {source}, or lies in it; name another folder."
            )
        if self._is_target_occupied() and not self._record_of_move():
            raise InvalidInput(
                f"{target} is not empty; name an empty folder, or one with an interrupted copy of {source}."
            )

    def _overlap(self) -> bool:
        """Whether source and target are one folder, or one of them is inside the other."""
        is_target_in_source = self.target.is_relative_to(self.source)
        is_source_in_target = self.source.is_relative_to(self.target)
        return is_target_in_source or is_source_in_target

    def _is_target_occupied(self) -> bool:
        """Whether something is in the way at the target: a file, or a folder that is not empty.

        A move that was interrupted before it copied anything is not in the way.
        """
        try:
            target_names = os.listdir(self.target)
        except FileNotFoundError:
            return False
        except NotADirectoryError:
            return True
        is_empty_move = target_names == [MOVING] and not self._staged.exists()
        return bool(target_names) and not is_empty_move

    def _record_of_move(self) -> dict[str, Any]:
        """Return the record of an interrupted move from this source to this target.

        It has `from`, the source, and after the check `moved`, the result. Empty without such a move.
        """
        for path in (self._record, self._finished / _RECORD):
            with suppress(OSError, ValueError, KeyError, TypeError):
                record: dict[str, Any] = json.loads(path.read_bytes())
                is_of_this_move = record["from"] == str(self.source)
                return record if is_of_this_move else {}
        return {}

    def run(self, *, dry_run: bool = False, progress: Progress | None = None) -> HomeMoved:
        """Move the home, or resume an interrupted move.

        If StorageError is raised, the source is as it was, and the move can be run again.

        dry_run: whether only to count what would be moved.
        progress: called with the work done so far, and all work. None calls nothing.
        """
        checked_result = self._record_of_move().get("moved")
        if checked_result:
            # The move was interrupted after the check, so only the last step is left.
            self._finish()
            return HomeMoved(**checked_result)

        moved = HomeMoved()
        with ExitStack() as locks:
            memory = self._memory or locks.enter_context(open_session(self.source, watch=False))
            # Opening the home read its configuration, which may name another folder for the state.
            self._layout = Layout(self.source)
            contents = Contents(memory)
            contents.wait_until_whole()
            self._fetch_texts(contents)
            moved.outside = self._projects_outside(memory)
            if dry_run:
                self._seen = {name: stamp_of(os.lstat(self._place(name))) for name in self._names()}
                return self._count(moved)
            with storing(str(self.target)):
                self._copy_all(memory, contents, locks, progress)
        with storing(str(self.target)):
            self._adapt_and_check(moved, progress)
        self._finish()
        return moved

    def _fetch_texts(self, contents: Contents) -> None:
        """Make sure that the folder of the source has all texts of the history.

        It lacks some only if the notes are in a database.
        """
        if self._memory is not None:
            contents.have_texts()

    def _projects_outside(self, memory: MemorySession) -> list[str]:
        """Return the names of the projects whose folders are not in the source."""
        root = f"{self.source}{os.sep}"
        return [
            project.name
            for project in memory.projects
            if not f"{project.root}{os.sep}".startswith(root)
        ]

    def _copy_all(
        self,
        memory: MemorySession,
        contents: Contents,
        locks: ExitStack,
        progress: Progress | None,
    ) -> None:
        """Copy everything to `.moving` of the target.

        Most is copied while the home is in use. Then the home is locked, and everything that
        changed in the meantime is copied again.

        memory: the open home.
        contents: everything in it.
        locks: takes the locks, and holds them until it is closed.
        progress: called with the work done so far, and all work. None calls nothing.
        """
        make_private(self._record.parent)
        self._put_record({})
        make_private(self._staged)
        self._copy(progress)

        self._lock_spaces(memory, locks)
        self._fetch_texts(contents)
        self._copy(None)
        self._add_reads(contents)

    def _add_reads(self, contents: Contents) -> None:
        """Write the reads of notes into the copied ledger, if the notes are in a database.

        The ledger of the source then has only the reads on this machine, not those on others.
        """
        if self._memory is not None:
            put_reads(self._staged / _LEDGER, contents.reads())
            self._digests[_LEDGER] = digest_of(self._staged / _LEDGER)

    def _adapt_and_check(self, moved: HomeMoved, progress: Progress | None) -> None:
        """Adapt the copy to its new place, check it, and record the result durably.

        moved: the result, which is filled in.
        progress: called with the work done so far, and all work. None calls nothing.
        """
        # The checksum is that of the source, so it is made of the digests before any adaptation.
        source_digests = dict(self._digests)
        self._forget_state()
        if self._relocates:
            moved.rewritten = self._relocate()
        self._check(progress)
        moved.checksum = checksum(source_digests)
        self._count(moved)
        # The record says that the copy is complete, so it must not be on the disk before the copy.
        os.sync()
        self._put_record({"moved": asdict(moved)})

    def _put_record(self, result: Mapping[str, Any]) -> None:
        """Write the record of the move: its source, and its result once the copy was checked.

        result: `{"moved": …}` after the check. Empty before it.
        """
        put_derived(self._record, json.dumps({"from": str(self.source), **result}).encode())

    def _lock_spaces(self, memory: MemorySession, locks: ExitStack) -> None:
        """Lock the home and its spaces until `locks` is closed, which also closes them."""
        for place in [self.source, *sorted(self.source.glob("spaces/*"))]:
            if place == self.source:
                space = memory
            elif Layout(place).private.is_dir():
                space = open_session(place, watch=False)
            else:
                continue
            locks.callback(space.close)
            locks.enter_context(space.exclusive())

    def _names(self) -> Iterator[str]:
        """Yield the names of all files, links and folders that are moved.

        A name is the path below the home. The names of folders end in `/`: `notes/`.
        """
        waiting = [""]
        while waiting:
            name = waiting.pop()
            is_home = name == ""
            if not is_home:
                yield name
            if is_home or name.endswith("/"):
                waiting += reversed(self._names_in(name))

    def _names_in(self, folder: str) -> list[str]:
        """Return the names in one folder that are moved, in order."""
        names = []
        with os.scandir(self._place(folder)) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                name = folder + entry.name
                if self._memory is not None and name in _NAMES_OF_A_COPY:
                    continue
                if _stays(entry, folder):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    names.append(f"{name}/")
                elif entry.is_file(follow_symlinks=False) or entry.is_symlink():
                    names.append(name)
        is_home = folder == ""
        if is_home and self._layout.is_apart:
            # The state is in another folder. In the copy, it is in `.memoranda`, in place of a
            # former one.
            private_folder = f"{PRIVATE}/"
            names = [name for name in names if name != private_folder]
            names.append(private_folder)
        return names

    def _place(self, name: str) -> Path:
        """Return the path of a file or folder of the source. A folder's name may end in `/`."""
        return self._layout.place(name.rstrip("/"))

    def _copy(self, progress: Progress | None) -> None:
        """Copy everything that changed since the last call, and remove files that the home lost.

        progress: called with the work done so far and all work, of which copying is half. None
            calls nothing.
        """
        names = list(self._names())
        for number, name in enumerate(names):
            with suppress(FileNotFoundError):
                self._copy_entry(name)
            if progress is not None:
                # The other half of the work is the check.
                progress(number // 2, len(names))
        self._remove_all_but({*names})

    def _copy_entry(self, name: str) -> None:
        """Copy one file, folder or symlink, unless it is as it was at the last copy."""
        source = self._place(name)
        status = os.lstat(source)
        stamp = stamp_of(status)
        if self._seen.get(name) == stamp:
            return
        staged = self._staged / name
        if name.endswith("/"):
            staged.mkdir(mode=0o700, exist_ok=True)
            staged.chmod(stat.S_IMODE(status.st_mode))
        elif stat.S_ISLNK(status.st_mode):
            staged.unlink(missing_ok=True)
            staged.symlink_to(os.readlink(source))
        elif _is_ledger(name):
            # The ledger may be in use. Its log has pages that the file does not have yet.
            copy_ledger(source, staged)
            self._digests[name] = digest_of(staged)
            stamp = Stamp(os.lstat(staged).st_size, *_NEVER_THE_SAME)
        else:
            file = read_file(str(source))
            self._digests[name] = file.etag
            if not self._is_copied(staged, file):
                self._put_file(name, file.data, file.mode, file.stamp.mtime_ns)
        self._seen[name] = stamp

    def _is_copied(self, staged: Path, file: File) -> bool:
        """Whether an earlier run, which was interrupted, has copied this file to `staged`."""
        if not staged.exists():
            return False
        # The inode, the last number of a stamp, always differs. The digest takes long to compute.
        size_and_time = stamp_of(os.lstat(staged))[:2]
        return size_and_time == file.stamp[:2] and digest_of(staged) == file.etag

    def _remove_all_but(self, names_to_keep: set[str]) -> None:
        """Remove everything from the copy that is not one of these names."""
        for name in self._seen.keys() - names_to_keep:
            del self._seen[name]
            self._digests.pop(name, None)
        # The contents of a folder come before the folder
        for folder, folder_names, file_names in walk(self._staged, top_down=False):
            for entry_name in (*folder_names, *file_names):
                place = Path(folder, entry_name)
                name = str(place.relative_to(self._staged))
                if place.is_dir() and not place.is_symlink():
                    if f"{name}/" not in names_to_keep:
                        place.rmdir()
                elif name not in names_to_keep:
                    place.unlink()

    def _put_file(self, name: str, data: bytes, mode: int, changed_ns: int) -> None:
        """Write a file of the copy.

        mode: its permissions.
        changed_ns: the time of its last change, in nanoseconds since 1970.
        """
        temp = self._staged / f"{TEMP_PREFIX}moving"
        temp.unlink(missing_ok=True)
        write_file(str(temp), data, mode=mode, durable=False)
        os.utime(temp, ns=(changed_ns, changed_ns))
        os.replace(temp, self._staged / name)

    def _forget_state(self) -> None:
        """Remove the setting `storage.state` from the configuration of the copy.

        It names a folder outside the source, which the copy must not use.
        """
        # The setting may be in a configuration file outside the home, which is not copied.
        has_config = _CONFIG in self._digests
        if not self._layout.is_apart or not has_config:
            return
        file = read_file(str(self._staged / _CONFIG))
        data = without_state(self._staged / _CONFIG).encode()
        self._put_file(_CONFIG, data, file.mode, file.stamp.mtime_ns)
        self._digests[_CONFIG] = sha256(data)

    def _relocate(self) -> list[str]:
        """Replace the path of the source by the path of the target, in the files of the copy.

        The configuration and the ledgers name folders of projects, spaces and graph files. Returns
        the names of the changed files.
        """
        changed = []
        for name in _FILES_WITH_PATHS:
            if name not in self._digests:
                continue
            file = read_file(str(self._staged / name))
            data = self._relocated(name, file.data)
            if data != file.data:
                self._put_file(name, data, file.mode, file.stamp.mtime_ns)
                self._digests[name] = sha256(data)
                changed.append(name)
        for name in [name for name in self._digests if _is_ledger(name)]:
            place = self._staged / name
            if relocate_ledger(place, str(self.source), str(self.target)):
                changed.append(name)
            self._digests[name] = digest_of(place)
        return changed

    def _relocated(self, name: str, data: bytes) -> bytes:
        """Return a file's bytes with the source's path replaced by the target's.

        A path counts only as a whole: moving `/home/a` must not change `/home/ab`.

        name: the file, below the home.
        """
        home_prefix = os.path.expanduser("~/")
        spellings = {str(self.source), str(self.source).replace(home_prefix, "~/", 1)}
        alternatives = b"|".join(re.escape(os.fsencode(path)) for path in spellings)
        target = os.fsencode(self.target)
        data = re.sub(b"(%s)(?=[/\"'\\s]|$)" % alternatives, lambda match: target, data)

        # The configuration of a database names the places of projects relative to it.
        if self._memory is not None and name == _CONFIG:
            relative_place = rb"(?m)(:\s*[\"']?)(?=projects/)"
            data = re.sub(relative_place, lambda match: match[0] + target + b"/", data)
        return data

    def _check(self, progress: Progress | None) -> None:
        """Read the copy again, and compare it with the source as it was read.

        Raises StorageError if something differs.
        """
        for number, (name, digest) in enumerate(self._digests.items()):
            staged_digest = digest_of(self._staged / name)
            # The history names each text by its SHA-256, which shows damage at the source, too.
            file_name = name.rpartition("/")[2]
            has_wrong_name = name.startswith(_TEXTS) and staged_digest != file_name
            if staged_digest != digest or has_wrong_name:
                raise StorageError(
                    name, f"the copy at {self.target} is not what was read; run the move again"
                )
            if progress is not None:
                progress(len(self._digests) + number + 1, 2 * len(self._digests))

    def _finish(self) -> None:
        """Rename everything that was checked into its place.

        `.memoranda` comes last, since it makes the folder a home. Then `.moving` is removed.
        """
        with storing(str(self.target)):
            if (self.target / MOVING).exists():
                names = sorted(os.listdir(self._staged), key=lambda name: (name == PRIVATE, name))
                for name in names:
                    os.rename(self._staged / name, self.target / name)
                os.sync()
                os.rename(self.target / MOVING, self._finished)
            # The record is removed last: without it, the move could not be resumed
            shutil.rmtree(self._finished / _STAGED, ignore_errors=True)
            shutil.rmtree(self._finished)

    def _count(self, moved: HomeMoved) -> HomeMoved:
        """Fill in the numbers of files, bytes, changes and texts, and return the result."""
        names = [name for name in self._seen if not name.endswith("/")]
        moved.files = len(names)
        # The first value of a stamp is the size.
        moved.bytes = sum(self._seen[name][0] for name in names)
        ledger = self._staged / _LEDGER if self._staged.exists() else self._layout.ledger
        moved.texts = sum(name.startswith(_TEXTS) for name in names)
        if ledger.exists():
            changes, texts = ledger_counts(ledger)
            moved.changes = changes
            moved.texts += texts
        return moved


def _stays(entry: os.DirEntry[str], folder: str) -> bool:
    """Whether a file or folder of the home is not moved with the home.

    Files of running programs stay, and files that the new home makes itself. A folder with such a
    name stays only if it is in `.memoranda`: elsewhere it belongs to the owner.

    folder: the path below the home of the folder with the entry.
    """
    parts = folder.rstrip("/").split("/")
    is_below_private = PRIVATE in parts
    patterns = _DERIVED_NAMES if is_below_private else _NAMES_OF_PROGRAMS
    has_such_name = any(fnmatch(entry.name, pattern) for pattern in patterns)
    if not has_such_name:
        return False
    is_directly_in_private = parts[-1] == PRIVATE
    is_move = entry.name == MOVING
    is_file = entry.is_file(follow_symlinks=False)
    return is_file or is_directly_in_private or is_move


def _is_ledger(name: str) -> bool:
    """Whether a name is the ledger of the home, or of a space in the home."""
    return f"/{name}".endswith(f"/{_LEDGER}")


def checksum(digests: Mapping[str, str]) -> str:
    """Return the checksum of a home: a SHA-256 of the names and digests of its files.

    digests: the SHA-256 of each file, by name. Only files of projects count.
    """
    layout = Layout(Path("/"))
    built_in_folders = [str(place.relative_to("/")) for place in layout.built_in.values()]
    folders = {OWN, *built_in_folders}
    lines = []
    for name, digest in sorted(digests.items()):
        top_folder = name.partition("/")[0]
        if top_folder in folders:
            lines.append(f"{digest}  {name}\n")
    return sha256("".join(lines).encode("utf-8", "surrogateescape"))


_STATE = "state.json"
# Up to this many new files are synced one by one; more of them together.
_FILES_SYNCED_ALONE = 64


@dataclass(slots=True)
class Mirrored:
    """The result of one run of a mirror, which copies a home to another folder.

    files: the number of files in the mirror now.
    copied, removed: the number of files that were copied and removed.
    restored: the number of files copied again because somebody changed them in the mirror.
    commits: the number of commits that were made.
    change: the number of the latest change in the memory.
    left: the files that could not be listed or read. Their last copies stay.
    notices: sentences for the owner.
    """

    files: int = 0
    copied: int = 0
    removed: int = 0
    restored: int = 0
    commits: int = 0
    change: int = 0
    left: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


class _CopiedFile(NamedTuple):
    """A file of the home as it was when it was copied: the SHA-256 of its text, and its stamp."""

    etag: str
    size: int
    mtime_ns: int
    inode: int
    ctime_ns: int

    @property
    def stamp(self) -> Values:
        """The stamp of the file."""
        return self.size, self.mtime_ns, self.inode, self.ctime_ns


@dataclass(slots=True)
class _State:
    """The state of a mirror, as the last run recorded it.

    home: the home that it mirrors: a path, or an address without a password.
    change: the number of the latest change of the memory that the mirror has.
    files: each file that was copied, by its name in the mirror.
    writing: names that an interrupted run was about to write.
    git: whether the mirror has commits.
    """

    home: str
    change: int = 0
    files: dict[str, _CopiedFile] = field(default_factory=dict)
    writing: list[str] = field(default_factory=list)
    git: bool = False


class Mirror:
    """Mirror the home of `memory` in `folder`.

    Raises InvalidInput for an agent, and for a folder that is in the home or contains the home.
    """

    def __init__(self, memory: MemorySession, folder: Path):
        self._memory = memory
        self._contents = Contents(memory)
        self.folder = Path(os.path.realpath(user_path(folder)))
        home = Path(os.path.realpath(memory.home))
        contains_home = home.is_relative_to(self.folder)
        is_in_home = self.folder.is_relative_to(home)
        if contains_home or is_in_home:
            raise InvalidInput(
                f"{folder} is or holds the memory home, or lies in it; mirror to another folder."
            )

    def run(
        self, *, git: bool = False, after_erase: str | None = None, progress: Progress | None = None
    ) -> Mirrored:
        """Make the folder equal to the memory.

        git: whether to commit the changes of this run. Once a mirror has commits, this is always on.
        after_erase: the way to treat earlier commits after an erasure in the memory. `rewrite`
            begins them again without the erased texts, `keep` leaves them. None refuses to commit.
        progress: called with the number of files done, and of all that differ. None calls nothing.

        Raises InvalidInput, Busy, StorageError. The next run continues.
        """
        self._contents.wait_until_whole()
        with self._locked():
            state = self._load()
            state.git = git or state.git
            history = GitHistory(self.folder, self.folder / MIRROR) if state.git else None

            # The commits may be behind the files, if the last run was killed between the two.
            known_change = history.change if history is not None else state.change
            changes = self._contents.changes(known_change)
            listed = self._contents.listed()
            latest_change = max(known_change, state.change)
            if changes:
                latest_change = changes[-1].number
            mirrored = Mirrored(change=latest_change)
            mirrored.left += listed.unreadable

            self._copy(state, listed, mirrored, progress)
            state.change = mirrored.change
            self._save(state)
            mirrored.files = len(state.files)
            if history is not None:
                mirrored.notices = history.commit(changes, self._memory.clock(), after_erase)
                mirrored.commits = history.made
            return mirrored

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Lock the folder for one run at a time, after making it if necessary.

        Raises InvalidInput if another run has the lock or the folder has other files, StorageError.
        """
        state_folder = self.folder / MIRROR
        with storing(str(self.folder)):
            # A mirror removes files that the home does not have, so it may not begin in a folder
            # with files of somebody else.
            is_mirror = state_folder.is_dir()
            is_empty_folder = self.folder.is_dir() and not os.listdir(self.folder)
            if self.folder.exists() and not is_mirror and not is_empty_folder:
                raise InvalidInput(
                    f"{self.folder} is not empty and no mirror; name a new or an empty folder."
                )
            make_private(state_folder)
            # Raises OutsideError if the folder is a symlink.
            open_folder(str(self.folder), MIRROR, "the mirror").close()
            try:
                # The other run may take long, so this one does not wait for it.
                lock = lock_file(state_folder / "lock", fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InvalidInput(
                    f"another run mirrors to {self.folder}; wait for its end."
                ) from None
        try:
            yield
        finally:
            os.close(lock)

    def _home_name(self) -> str:
        """Return the name of the mirrored home, which is the same on every machine that opens it.

        It is the folder, or the address of a database without user and password.
        """
        settings = self._memory.settings
        if settings.url is None:
            return str(self._memory.home)
        address = urlsplit(settings.url)
        host = address.netloc.rpartition("@")[2]
        # The parameters that say which database it is
        parameters = [
            (key, value)
            for key, value in parse_qsl(address.query)
            if key in ("host", "port", "dbname", "service")
        ]
        query = urlencode([*parameters, ("space", settings.space)])
        return f"postgresql://{host}{address.path}?{query}"

    def _load(self) -> _State:
        """Return the state that the last run recorded, or an empty one before the first run.

        Raises StorageError for a damaged state, InvalidInput for the mirror of another home.
        """
        home = self._home_name()
        place = self.folder / MIRROR / _STATE
        if not place.exists():
            return _State(home)
        try:
            row: dict[str, Any] = json.loads(place.read_bytes())
            files = {
                name: _CopiedFile(str(etag), *Stamp(*map(int, numbers)))
                for name, (etag, *numbers) in row["files"].items()
            }
            state = _State(
                home=row["home"],
                change=row["change"],
                files=files,
                writing=list(row["writing"]),
                git=row["git"],
            )
        except (OSError, ValueError, KeyError, TypeError):
            raise StorageError(
                str(place), "it is damaged; remove it, and the next run looks at every file"
            ) from None
        if state.home != home:
            raise InvalidInput(
                f"{self.folder} mirrors {state.home}. Name another folder for {home}, or, if that home moved here, "
                f'change "home" in {place}.'
            )
        return state

    def _save(self, state: _State) -> None:
        """Record the state of the mirror for the next run."""
        row = {
            "format": 1,
            "home": state.home,
            "change": state.change,
            "git": state.git,
            "writing": state.writing,
            "files": state.files,
        }
        put_derived(
            self.folder / MIRROR / _STATE,
            json.dumps(row, ensure_ascii=True, indent=0).encode() + b"\n",
        )

    def _copy(
        self, state: _State, listed: Listed, mirrored: Mirrored, progress: Progress | None
    ) -> None:
        """Write the files that differ, and remove the files that the memory no longer has.

        The state is saved before the first file is written, so that the next run knows which files
        are copies if this run is interrupted.

        state: the state that the last run recorded.
        listed: the files that the home has now.
        mirrored: counts the files.
        progress: called with the number of files done, and of all that differ. None calls nothing.
        """
        changed, removed = self._differences(state, listed)
        if not changed and not removed:
            return
        # The state knows the other files already.
        state.writing = sorted({*changed, *removed} - state.files.keys())
        self._save(state)
        # For many files, one sync of all disks at the end takes less time.
        syncs_each_file = len(changed) <= _FILES_SYNCED_ALONE
        for number, name in enumerate(removed):
            self._remove(name)
            was_recorded = state.files.pop(name, None) is not None
            if was_recorded:
                mirrored.removed += 1
            if progress is not None:
                progress(number, len(removed) + len(changed))
        for number, name in enumerate(changed, len(removed) + 1):
            is_copied = self._copy_file(name, state, listed, mirrored, syncs_each_file)
            if is_copied and progress is not None:
                progress(number, len(removed) + len(changed))
        if not syncs_each_file:
            os.sync()
        state.writing = []

    def _differences(self, state: _State, listed: Listed) -> tuple[list[str], list[str]]:
        """Return the names of the files to write, and the names of the files to remove.

        state: the state that the last run recorded.
        listed: the files that the home has now.

        Raises InvalidInput if a new file would replace one that did not come from the memory.
        """
        copied_names = {*state.files, *state.writing}
        changed = [
            name
            for name, file in listed.files.items()
            if not self._is_same(name, file.stamp, state)
        ]
        for name in changed:
            if name not in copied_names and os.path.lexists(self.folder / name):
                raise InvalidInput(
                    f"{self.folder / name} is not from the memory; move it away and run this again."
                )
        # The copies of files in folders that cannot be read now stay.
        unread_folders = tuple(f"{folder.rstrip('/')}/" for folder in listed.unreadable)
        removed = [
            name
            for name in copied_names
            if name not in listed.files and not f"{name}/".startswith(unread_folders)
        ]
        return changed, removed

    def _copy_file(
        self, name: str, state: _State, listed: Listed, mirrored: Mirrored, is_synced_alone: bool
    ) -> bool:
        """Copy one file. Returns False if it could not be read.

        name: the name of the file in the mirror.
        state: the state, in which the copy is recorded.
        listed: the files that the home has now.
        mirrored: counts the files.
        is_synced_alone: whether to sync this file to the disk. Otherwise all are synced together.
        """
        listed_file = listed.files[name]
        try:
            file = self._contents.read(listed_file.project, listed_file.path)
        except NotFound:
            # It was removed after it was listed. The next run removes the copy.
            return False
        except MemorandaError as error:
            mirrored.left.append(f"{name} ({error})")
            return False
        former_etag = state.files[name].etag if name in state.files else None
        is_written = self._write(
            name, file.data, file.mode, file.stamp.mtime_ns, durable=is_synced_alone
        )
        if is_written and former_etag == file.etag:
            # The home's file is as it was, so somebody changed the copy
            mirrored.restored += 1
        elif is_written:
            mirrored.copied += 1
        state.files[name] = _CopiedFile(file.etag, *file.stamp)
        return True

    def _is_same(self, name: str, stamp: Values, state: _State) -> bool:
        """Whether neither the home's file nor the copy changed since it was copied."""
        if name not in state.files:
            return False
        copied = state.files[name]
        if copied.stamp != tuple(stamp):
            return False
        # A copy has the size and the time of the home's file, but an inode of its own.
        with suppress(OSError):
            status = os.lstat(self.folder / name)
            has_same_size = status.st_size == copied.size
            has_same_time = status.st_mtime_ns == copied.mtime_ns
            return stat.S_ISREG(status.st_mode) and has_same_size and has_same_time
        return False

    def _write(self, name: str, data: bytes, mode: int, changed_ns: int, *, durable: bool) -> bool:
        """Write `data` to the copy of a file. Returns False if the copy has this data already.

        mode: the permissions.
        changed_ns: the time of the last change, in nanoseconds since 1970.
        durable: whether to sync the file to the disk.

        Raises OutsideError for a symlink on the way.
        """
        parent, _, last = name.rpartition("/")
        with storing(str(self.folder / name)), self._open(parent) as folder:
            is_there = False
            with suppress(OSError):
                is_there = read_file(last, folder.fd).data == data
            if not is_there:
                temp = f"{TEMP_PREFIX}mirror"
                # A file left by a killed run.
                with suppress(FileNotFoundError):
                    os.unlink(temp, dir_fd=folder.fd)
                write_file(temp, data, mode=mode, folder=folder.fd, durable=durable)
                os.rename(temp, last, src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
            os.utime(last, ns=(changed_ns, changed_ns), dir_fd=folder.fd, follow_symlinks=False)
            if durable:
                os.fsync(folder.fd)
        return not is_there

    def _open(self, parent: str) -> Folder:
        """Open a folder of the mirror. Missing folders on the way are made.

        parent: the path of the folder. "" is the mirror itself.
        """
        # Paths may be deeper than Python can recurse, so this is a loop: up to the nearest folder
        # that is there, then down again.
        nearest_path = parent
        missing_names: list[str] = []
        folder = self._open_existing(nearest_path)
        while folder is None:
            nearest_path, _, name = nearest_path.rpartition("/")
            missing_names.append(name)
            folder = self._open_existing(nearest_path)
        for name in reversed(missing_names):
            with folder:
                os.mkdir(name, 0o700, dir_fd=folder.fd)
                new_path = folder.at(name)
            folder = open_folder(str(self.folder), new_path, "the mirror")
        return folder

    def _open_existing(self, path: str) -> Folder | None:
        """Open a folder of the mirror. None if it is missing.

        path: the path of the folder. "" is the mirror itself, which must be there: without it,
            NotFound is raised.
        """
        try:
            return open_folder(str(self.folder), path, "the mirror")
        except NotFound:
            if not path:
                raise
        return None

    def _remove(self, name: str) -> None:
        """Remove a copy, and the folders that become empty by that."""
        try:
            while name:
                name, _, last = name.rpartition("/")
                with open_folder(str(self.folder), name, "the mirror") as folder:
                    if stat.S_ISDIR(os.stat(last, dir_fd=folder.fd, follow_symlinks=False).st_mode):
                        os.rmdir(last, dir_fd=folder.fd)
                    else:
                        os.unlink(last, dir_fd=folder.fd)
        except (OSError, NotFound):
            # The folder has other files, or is gone.
            return
