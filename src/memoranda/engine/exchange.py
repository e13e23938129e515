"""Move notes in and out of a home (contract 001, 11 and 12; docs/format.md).

`Exchange` reads and writes single memories by id, and single files byte for byte. If two homes have
different texts of a note, `keep_lost` puts the text that loses into the history. `Contents` reads a
whole home, to copy it file by file. `IntoDatabase` moves a home with its history into a space of a
PostgreSQL database.
"""

from __future__ import annotations

import hashlib
import os
import stat
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, TypeVar

from memoranda import config, config_text
from memoranda.clock import microseconds, stamp, wait_for
from memoranda.engine.engine import verb
from memoranda.engine.history.verbs import HistoryVerbs
from memoranda.engine.transaction import WritingSession
from memoranda.engine.upkeep import Upkeep
from memoranda.engine.writing import scope_of
from memoranda.errors import (
    ConfigError,
    Conflict,
    InvalidInput,
    MemorandaError,
    NotFound,
    StorageError,
)
from memoranda.index.rows import NoteInfo
from memoranda.index.rows import foreign_rows as foreign_rows
from memoranda.ledger.access_rows import AccessRows
from memoranda.ledger.change import Change, Touched, is_of_machine
from memoranda.ledger.postgres.new_space import Key, NewSpace
from memoranda.ledger.postgres.space_rows import FileRow
from memoranda.ledger.reads import ReadRow
from memoranda.note.markdown import Record
from memoranda.note.model import MEMORY_PROJECTS
from memoranda.sources.base import File, Values, sha256
from memoranda.sources.files import read_file, stamp_of
from memoranda.sources.layout import PRIVATE, SKIPPED_FOLDERS, TEMP_PREFIX
from memoranda.sources.path_guard import clean, climbs, open_folder
from memoranda.sources.source import Source
from memoranda.sources.step import StepKind
from memoranda.text.unicode import is_valid_unicode

T = TypeVar("T")
# The verb of the changes that this module makes.
VERB = "import"
OWN = config.OWN_FOLDER
"""The folder of a copy with the projects that the owner has added in the configuration."""
BANK_RECORD = ".bank.json"
"""The one hidden file of a project that moves with it: it describes a memory bank (faces/bank/)."""
# The permissions that the database stores for folders and links.
_FOLDER_MODE = 0o700
# A row with this kind says that the database has the file already, so the row is only counted.
_STORED_KIND = ""
# One transaction with the database has at most this many rows, and texts of about this many bytes.
_MAX_BATCH_ROWS = 500
_MAX_BATCH_BYTES = 8 << 20


def batches(
    items: Iterable[T],
    most_items: int,
    size_of: Callable[[T], int] | None = None,
    most_bytes: int = 0,
) -> Iterator[list[T]]:
    """Yield lists of items, in the order of the items.

    most_items: how many items a list has at most.
    size_of: returns the bytes of an item. None if the bytes of a list are not limited.
    most_bytes: how many bytes the items of a list have at most together. An item with more bytes
        gets a list with no other item.
    """
    batch: list[T] = []
    batch_bytes = 0
    for item in items:
        item_bytes = size_of(item) if size_of is not None else 0
        is_full = len(batch) >= most_items or batch_bytes + item_bytes > most_bytes
        if batch and is_full:
            yield batch
            batch = []
            batch_bytes = 0
        batch.append(item)
        batch_bytes += item_bytes
    if batch:
        yield batch


class Exchange:
    """The verbs of export, import and moving in, for the caller of `memory`."""

    def __init__(self, memory: HistoryVerbs):
        self.memory = memory
        self.engine = memory.engine
        self._index = memory.index
        # The index that the row numbers of `rows` are from.
        self._index_identity: object = None

    @verb
    def rows(self, category: str | None = None, scope: str | None = None) -> array[int]:
        """Return the row numbers of the memories that the caller sees. `page` reads the memories.

        The oldest memory comes first. Of memories of the same age, the one with the lower id comes
        first. A row number takes eight bytes, so the result is small for any number of memories.

        category, scope: return only memories with this category or scope; None for all.
        """
        self.engine.fresh()
        rows = self._index.notes.rows_by_creation(self.memory.agent, category, scope)
        self._index_identity = self._index.identity
        return rows

    @verb
    def page(self, rows: Sequence[int]) -> list[tuple[NoteInfo, str]]:
        """Return memories and their contents as the index has them.

        rows: row numbers that `rows` returned. Memories that were removed since then are left out.

        Raises Conflict if the index was rebuilt since `rows` was called, because a rebuilt index
        has other row numbers.
        """
        # This opens the index again if another process has replaced it.
        self._index.pin()
        if self._index_identity != self._index.identity:
            raise Conflict("the index", "made anew", "as it was")
        infos = [
            info for info in self._index.notes.in_order(rows) if info.project in MEMORY_PROJECTS
        ]
        return self._with_contents([info for info in infos if self.memory.sees(info.scope)])

    @verb
    def known(self, ids: Iterable[str]) -> dict[str, tuple[NoteInfo, str]]:
        """Return the memories with exactly these ids and their contents, by id.

        Memories that the caller may not see are included, because an import would otherwise make a
        second memory with the same id.
        """
        self.engine.fresh()
        infos = self._index.notes.with_ids(ids, MEMORY_PROJECTS)
        # If two memories have the same id, the later one in this list is returned. So memories that
        # the caller sees are put at the end.
        infos.sort(key=lambda info: self.memory.sees(info.scope))
        return {info.id: (info, content) for info, content in self._with_contents(infos)}

    @verb
    def survivors(self, ids: Iterable[str]) -> dict[str, str]:
        """Return the content of the memory into which each memory was merged, by the id of the
        merged memory.

        Only contents that the caller may see are included.

        ids: the ids of the merged memories.
        """
        survivors_by_id = self._index.notes.survivors(ids)
        notes_with_contents = self._with_contents([*survivors_by_id.values()])
        contents_by_row = {info.row: content for info, content in notes_with_contents}
        return {
            merged_id: contents_by_row[survivor.row]
            for merged_id, survivor in survivors_by_id.items()
            if self.memory.sees(survivor.scope)
        }

    @verb
    def contents(self) -> set[bytes]:
        """Return the `digest` of every memory. The set takes a few hundred bytes for each memory."""
        self.engine.fresh()
        digests: set[bytes] = set()
        for project in MEMORY_PROJECTS:
            for scope, body in self._index.notes.scoped_bodies(project):
                # In the file, a line break ends the content. It is not a part of it.
                digests.add(digest(scope, body.removesuffix("\n")))
        return digests

    def _with_contents(self, infos: list[NoteInfo]) -> list[tuple[NoteInfo, str]]:
        """Return the notes with their contents. Notes that left the index in between are left out."""
        self.engine.count_pending_reads(infos)
        bodies = self._index.notes.bodies([info.row for info in infos])
        return [(info, bodies[info.row].removesuffix("\n")) for info in infos if info.row in bodies]

    @verb
    def put(self, records: Sequence[Record]) -> None:
        """Store records as `Upkeep.put` does, with their access counts.

        A memory's access count is the number in its header plus the reads that the ledger has
        counted since. A record brings the complete count with it. So the reads that the ledger has
        for a replaced memory are dropped. Otherwise they would be added to the new count.
        """
        Upkeep(self.memory).put(records, VERB)
        self.engine.reads.restart(*(record.id for record in records))

    @verb
    def keep(self, older: Sequence[tuple[NoteInfo, bytes]]) -> None:
        """Put texts that lost a conflict into the history, so that they can be restored.

        older: pairs of a note as it is now, and the text that lost against it. The history shows
            this text as if it had been there before the present one.
        """
        lost_texts: list[tuple[Touched, bytes]] = []
        for info, lost_text in older:
            step = Touched(StepKind.PUT, info.project, info.path, new=info.etag, scope=info.scope)
            lost_texts.append((step, lost_text))
        keep_lost(self.memory, lost_texts)

    def files_of(self, project: str) -> str | None:
        """Return the exact name of a project whose notes are files.

        None means that the notes are in a graph file. Raises ProjectNotFound.
        """
        source = self.engine.source(project)
        if source.holds_entities:
            return None
        return source.name

    def set_time(self, project: str, path: str, moment: datetime) -> None:
        """Set the modification time of a file. For a note without a header, this time is its only
        date.
        """
        file = os.path.join(self.engine.source(project).root, path)
        nanoseconds = microseconds(moment) * 1_000
        with suppress(OSError):
            # The times of the last access and of the last modification.
            os.utime(file, ns=(nanoseconds, nanoseconds))

    @verb
    def file(self, project: str, path: str) -> File | None:
        """Return the file at `path` of a project.

        None means that there is no file. Raises OutsideError, StorageError.
        """
        try:
            return self.engine.source(project).read(path)
        except NotFound:
            return None

    @verb
    def paths_in(self, project: str, folder: str) -> list[str]:
        """Return the sorted paths of the notes in a folder of a project."""
        return sorted(self.engine.source(project).list(folder).stamps)

    @verb
    def holder(
        self, project: str, *, permalink: str | None = None, identity: str | None = None
    ) -> NoteInfo | None:
        """Return the note of a project with a permalink, or else the note with an id. None if there
        is neither.

        permalink: the permalink; None looks only for the id.
        identity: the id; None looks only for the permalink.
        """
        self.engine.fresh()
        if permalink:
            info = self._index.notes.by_permalink(project, permalink)
            if info is not None:
                return info
        if identity:
            infos = self._index.notes.with_ids([identity], (project,))
            if infos:
                return infos[0]
        return None

    @verb
    def is_taken(self, project: str, path: str) -> bool:
        """Whether a new note at `path` would collide with something.

        This is so if something is at `path`, or if the path of a note differs from `path` only in
        case.
        """
        source = self.engine.source(project)
        self.engine.fresh()
        if source.place(path).kind != "missing":
            return True
        return self._index.notes.in_other_case(project, path) is not None

    @verb
    def add_files(
        self,
        project: str,
        files: Sequence[tuple[str, bytes]],
        over: Mapping[str, File] | None = None,
    ) -> None:
        """Write files byte for byte, as one change.

        files: (path, bytes) of each file.
        over: the present files that may be replaced, by path. None if no file may be replaced.

        Raises Exists or Conflict if another file is at one of the paths by now. Raises OutsideError
        for a path that leads out of the project.
        """
        replaceable = over or {}
        with self.memory.change(VERB, fresh=False) as transaction:
            for path, data in files:
                transaction.put(
                    project, path, data, old=replaceable.get(path), scope=scope_of(data)
                )


def keep_lost(session: WritingSession, lost: Sequence[tuple[Touched, bytes]]) -> None:
    """Save texts that lost a conflict in the history, as one change.

    The history then shows each text as if it had been in its file just before the text that won
    (`Touched.new`). So `restore` and `undo` can bring the lost text back. Texts that the history
    has already are skipped, so that a second call with the same texts has no effect.

    lost: pairs of a step to record and the text that lost. `Touched.old` of the step is set here.
    """
    history = session.engine.ledger.history
    recorded_steps: list[Touched] = []
    with session.engine.writing():
        for touched, lost_text in lost:
            touched.old = sha256(lost_text)
            if not history.has_text(touched.old):
                history.keep_bytes(lost_text)
                recorded_steps.append(touched)
        if not recorded_steps:
            return
        change = Change(
            number=history.last + 1,
            time=stamp(session.engine.clock()),
            verb=VERB,
            # The log lists the change under the place of its first step.
            project=recorded_steps[0].project,
            path=recorded_steps[0].path,
            agent=session.agent,
            face=session.face,
            files=recorded_steps,
        )
        history.append(change)


def digest(scope: str, content: str) -> bytes:
    """Return a hash of the scope and the content of a memory. Equal memories have equal hashes."""
    data = f"{scope}\0{content}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=16).digest()


class ListedFile(NamedTuple):
    """A file of a home: its project, its path there, and its stamp (size and times)."""

    project: str
    path: str
    stamp: Values


@dataclass(slots=True)
class Listed:
    """The list of the files of a home, as `Contents.listed` returns it.

    files: each file, by its name in a copy of the home.
    unreadable: the names in a copy of folders that cannot be read. Their files are not in the list.
    """

    files: dict[str, ListedFile] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)


class Contents:
    """Reads the files and the history of a home, in order to copy them.

    A copy includes the private notes of all agents. So only the owner may make one; for an agent,
    the constructor raises InvalidInput.
    """

    def __init__(self, session: WritingSession):
        if session.agent is not None:
            raise InvalidInput(
                "A copy of the whole memory is the owner's: run this without an agent's name."
            )
        self.session = session
        self.engine = session.engine

    def wait_until_whole(self) -> None:
        """Wait until this machine has all changes of the home.

        If the notes are in a database, a new machine receives the changes bit by bit. Raises
        StorageError if the database does not answer.
        """
        # `_lag` is 0 when nothing is missing, and None when the database does not answer. Both end
        # the loop. `wait_for` gives up after a while, so it is called again.
        while not wait_for(lambda: not self._lag()):
            continue
        if self._lag() is None:
            why = "their database cannot be asked now, and some may be missing here; try again"
            raise StorageError("the notes", why)

    @verb
    def _lag(self) -> int | None:
        """Return how many changes this machine does not have yet. None if the database does not
        answer.
        """
        return self.engine.ledger.lag()

    @verb
    def listed(self) -> Listed:
        """List the present files of the home.

        A project inside the home is listed with all its files. A project in another folder is
        listed only with its notes, because other files there may not belong to the memory.
        """
        self.engine.fresh()
        home_files = Listed()
        for name, source in self.engine.sources.items():
            # Projects that only this process has are not part of the home.
            if name in self.engine.extra:
                continue
            if source.trouble():
                home_files.unreadable.append(f"{self.folder(name)}/")
            elif source.holds_entities:
                self._list_graph_file(name, source.root, home_files)
            elif name in self.engine.layout.built_in:
                self._list_all_files(name, source.root, home_files)
            else:
                self._list_notes(source, home_files)
        return home_files

    def _list_graph_file(self, project: str, file: str, home_files: Listed) -> None:
        """Add a graph file to `home_files`, if the file exists."""
        if os.path.exists(file):
            stamp = stamp_of(os.stat(file))
            home_files.files[self.folder(project)] = ListedFile(project, "", stamp)

    def _list_notes(self, source: Source, home_files: Listed) -> None:
        """Add the notes of a project outside the home to `home_files`.

        There, they have the paths below the home that they get in a copy.
        """
        listing = source.list()
        folder = self.folder(source.name)
        for path, file_stamp in listing.stamps.items():
            home_files.files[f"{folder}/{path}"] = ListedFile(source.name, path, file_stamp)
        home_files.unreadable += [f"{folder}/{path}" for path in listing.unreadable]

    def _list_all_files(self, project: str, root: str, home_files: Listed) -> None:
        """Add all files of a project inside the home to `home_files`.

        root: the folder of the project.
        """
        waiting_folders = [""]
        while waiting_folders:
            folder = waiting_folders.pop()
            try:
                waiting_folders += self._list_folder(project, root, folder, home_files)
            except FileNotFoundError:
                # Another program removed the folder after its parent was listed.
                continue
            except OSError:
                home_files.unreadable.append(f"{self.folder(project)}/{folder}")

    def _list_folder(self, project: str, root: str, folder: str, home_files: Listed) -> list[str]:
        """Add the files that are directly in one folder to `home_files`.

        root: the folder of the project.
        folder: the path in the project of the folder to list; "" for the project itself.

        Returns the paths in the project of the folders inside it. Raises OSError.
        """
        subfolders: list[str] = []
        with os.scandir(os.path.join(root, folder)) as dir_entries:
            for dir_entry in dir_entries:
                if not is_kept_name(project, dir_entry.name):
                    continue
                path = f"{folder}/{dir_entry.name}" if folder else dir_entry.name
                if dir_entry.is_dir(follow_symlinks=False):
                    subfolders.append(path)
                elif dir_entry.is_file(follow_symlinks=False):
                    # Another program may have removed the file since the folder was read.
                    with suppress(FileNotFoundError):
                        stamp = stamp_of(dir_entry.stat(follow_symlinks=False))
                        name = f"{self.folder(project)}/{path}"
                        home_files.files[name] = ListedFile(project, path, stamp)
        return subfolders

    def folder(self, project: str) -> str:
        """Return the name that a project's folder or graph file has in a copy.

        A built-in project has its name without a dot in front: `.archive` becomes `archive`. Other
        projects are below `OWN`, and a dot in front of the name is written `%2E`. A graph file has
        the ending `.jsonl`.
        """
        if project in self.engine.layout.built_in:
            return project.removeprefix(".")
        if project.startswith("."):
            name = f"%2E{project[1:]}"
        else:
            name = project
        if self.engine.sources[project].holds_entities:
            return f"{OWN}/{name}.jsonl"
        return f"{OWN}/{name}"

    def name(self, touched: Touched, path: str) -> str | None:
        """Return the name in a copy of the file or folder that a change touched.

        touched: the step of the change.
        path: the path in the project that the step touched: the former path or, for a move, perhaps
            the new one.

        None means that a copy does not include the file. These are the home's own records, hidden
        files, and files of projects that are gone or belong to another process.
        """
        if not self._is_in_folder(touched):
            return self._name_of_graph_file(touched.file)
        if climbs(path) or not self._is_copied(touched, path):
            return None
        return f"{self.folder(touched.project)}/{path}"

    def _is_in_folder(self, touched: Touched) -> bool:
        """Whether a step changed a whole file in a project that is a folder of this home.

        The answer is False for a line of a graph file, and for a project that only one process has.
        """
        if touched.project == PRIVATE or touched.root or touched.do == StepKind.LINES:
            return False
        return touched.project in self.engine.sources and touched.project not in self.engine.extra

    def _name_of_graph_file(self, file: str | None) -> str | None:
        """Return the name of a graph file in a copy.

        file: the absolute path of the graph file; None or "" if a step was not about a graph file.

        None means that no project of this home has the file.
        """
        if not file:
            return None
        real_path = os.path.realpath(file)
        for project, source in self.engine.sources.items():
            if source.holds_entities and os.path.realpath(source.root) == real_path:
                return None if project in self.engine.extra else self.folder(project)
        return None

    def _is_copied(self, touched: Touched, path: str) -> bool:
        """Whether a copy includes the file or folder that a change touched at `path`."""
        if touched.project in self.engine.layout.built_in:
            return all(is_kept_name(touched.project, part) for part in path.split("/"))
        # A copy of a project in another folder has only its notes. A folder has no ending that
        # would show a note, so folders are always included.
        if touched.moves_folder or touched.do in (StepKind.MKDIR, StepKind.RMDIR):
            return True
        return self.engine.sources[touched.project].is_note(path)

    @verb
    def read(self, project: str, path: str) -> File:
        """Return a file as it is on disk now. Raises NotFound, OutsideError, StorageError."""
        source = self.engine.source(project)
        if source.holds_entities:
            return read_file(source.root)
        parent, _, name = path.rpartition("/")
        try:
            with open_folder(source.root, parent, project) as folder:
                return read_file(name, folder.fd)
        except FileNotFoundError:
            raise NotFound(path, project) from None

    @verb
    def text(self, digest: str) -> bytes | None:
        """Return a replaced text from the history by its SHA-256. None if the history does not have
        it.
        """
        try:
            return self.engine.ledger.history.text(digest, "")
        except (NotFound, StorageError):
            return None

    @verb
    def changes(self, after: int = 0) -> list[Change]:
        """Return the changes of notes with a number above `after`, the oldest first.

        With notes in a database, changes of files that only this machine has are left out.
        """
        later_changes: list[Change] = []
        # The history returns the newest change first.
        for change in self.engine.ledger.history.changes():
            if is_of_machine(change.number):
                continue
            if change.number <= after:
                break
            later_changes.append(change)
        later_changes.reverse()
        return later_changes

    @verb
    def have_texts(self) -> None:
        """Download all texts of the history into the home's folder.

        If the notes are in a database, the folder holds only those texts that this machine has used
        so far. In any other home, all texts are there already.
        """
        # None stands for the text of a file that was new.
        digests = {digest for digest in self.engine.ledger.history.replaced() if digest}
        for digest in sorted(digests):
            # Reading a text from the database stores it here.
            self.text(digest)

    @verb
    def reads(self) -> dict[str, ReadRow]:
        """Return the reads that are not yet written in the headers of notes, by the id of the note.

        If the notes are in a database, the reads on all machines are included.
        """
        return self.engine.reads.rows_to_fold()


def is_kept_name(project: str, name: str) -> bool:
    """Whether a copy includes a file or folder with this name.

    project: a project inside the home.

    Hidden files are left out, with two exceptions: the record of a memory bank (BANK_RECORD), and
    all files of the project `memories`, which models write with the memory tool.
    """
    is_git_folder = name.lower() == ".git"
    if name.startswith(TEMP_PREFIX) or name in SKIPPED_FOLDERS or is_git_folder:
        return False
    # The database and archives take only names in Unicode.
    if not is_valid_unicode(name):
        return False
    is_hidden = name.startswith(".")
    return not is_hidden or name == BANK_RECORD or project == "memories"


class _CopiedFile(NamedTuple):
    """A file, folder or link to copy.

    name: its name in a copy of the home, such as `notes/plan.md`.
    place: its absolute path on disk.
    """

    name: str
    place: str


class _SentFile(NamedTuple):
    """A file, folder or link that this process has sent to the database, or has found there.

    stamp: the size and times of the file when it was read.
    kind: `file`, `folder` or `link`.
    digest: the SHA-256 of a file; "" for folders and links.
    """

    stamp: Values
    kind: str
    digest: str

    @property
    def size(self) -> int:
        """The bytes of the file."""
        return self.stamp[0]


def _may_be_stored(project: str, path: str, dir_entry: os.DirEntry[str]) -> bool:
    """Whether the database takes a file, folder or link of a project.

    The name must be allowed, and the entry must not be a socket or a device.

    path: its path in the project.
    dir_entry: the same as `os.scandir` returned it.
    """
    if not is_kept_name(project, dir_entry.name):
        return False
    try:
        is_clean = clean(path, project, hidden=True) == path
        return is_clean and (dir_entry.is_symlink() or dir_entry.is_file() or dir_entry.is_dir())
    except MemorandaError:
        return False


def _row_of(key: Key, place: str, status: os.stat_result) -> FileRow:
    """Read a file, folder or link, and return it as a row of the database.

    key: its project and path.
    place: its absolute path.
    status: the result of `os.lstat` for it.
    """
    if stat.S_ISLNK(status.st_mode):
        link = os.readlink(place)
        return _row_without_text(key, "link", link=link)
    if stat.S_ISDIR(status.st_mode):
        return _row_without_text(key, "folder", link=None)
    file = read_file(place)
    project, path = key
    return FileRow(
        project=project,
        path=path,
        kind="file",
        body=file.data,
        sha256=file.etag,
        link=None,
        mode=stat.S_IMODE(status.st_mode),
        changed_ns=file.stamp.mtime_ns,
    )


def _body_bytes(row: FileRow) -> int:
    """Return the number of bytes in the body of a row. 0 for a row without a body."""
    return len(row.body or b"")


def _row_without_text(key: Key, kind: str, *, link: str | None) -> FileRow:
    """Return the row of a link or a folder, which has no text, and whose time is not kept.

    key: its project and path.
    kind: `link` or `folder`.
    link: the target of a link; None for a folder.
    """
    project, path = key
    return FileRow(
        project=project,
        path=path,
        kind=kind,
        body=None,
        sha256=None,
        link=link,
        mode=_FOLDER_MODE,
        changed_ns=None,
    )


@dataclass(slots=True)
class IntoDatabase:
    """Moves a home into a database.

    session: the owner's session in the home to move.
    address: the address of the database and of the space in it, `postgresql://…`.

    Results of `run`:
    digests: the SHA-256 of each file that the server has now, by the file's name in a copy.
    size: the bytes of these files together.
    texts: how many replaced texts the history has.
    changes: how many changes the history has.
    left: the files that the database does not take, as `project/path`.
    outside: the projects whose notes are not in the home and are therefore not moved.
    """

    session: WritingSession
    address: str
    digests: dict[str, str] = field(default_factory=dict)
    size: int = 0
    texts: int = 0
    changes: int = 0
    left: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    _sent: dict[Key, _SentFile] = field(default_factory=dict)
    """The files that this process has sent, or has found in the database."""

    def run(self, *, dry_run: bool, progress: Callable[[int, int], None] | None) -> None:
        """Move the home, or continue a move that was interrupted.

        dry_run: whether only to count the files that would be moved.
        progress: called with the number of files that were sent so far, and the number of all
            files. None calls nothing.

        The home can be used while a first pass sends the files. A second pass then locks the home,
        and sends the files that have changed since the first pass. Raises InvalidInput for a space
        with notes, DatabaseAway, DatabaseRefused, StorageError.
        """
        target = config.load(self.address, unread=True)
        if target.url is None:
            raise ConfigError("the address of a database begins with postgresql://")
        space = NewSpace(target.url, target.space, str(self.session.engine.layout.root))
        try:
            space.check_free()
            places = self._places()
            if dry_run:
                self._count(places)
                return
            space.begin()
            # The first pass takes long, so the home can be used and changed meanwhile.
            self._fill(space, places, progress)
            # The second pass sends what has changed. From here until the database takes over, nobody
            # may change the home.
            with self.session.exclusive():
                self._fill(space, self._places(), progress=None)
                self._check_and_count(space)
                self._hand_over(space)
        finally:
            space.close()

    def _check_and_count(self, space: NewSpace) -> None:
        """Check the bytes that the server has now, and set `digests` and `size`.

        space: the part of the database that takes the home.

        Raises StorageError if the server has other bytes than this home.
        """
        stored_digests = space.read_again()
        answers = self._answers()
        self._check_stored(space, stored_digests, answers)
        places = self._places()
        # The owner's answers are rows on the server, but not files in a copy.
        self.digests = {
            places[key].name: digest for key, digest in stored_digests.items() if key not in answers
        }
        self.size = sum(file.size for file in self._sent.values() if file.kind == "file")

    def _hand_over(self, space: NewSpace) -> None:
        """Send the counts of reads and the shared files, and let the database become the home."""
        reads = self.session.engine.reads
        last_change = self.session.engine.ledger.history.last
        space.finish(last_change, reads.counts(), reads.used(), self._shared())

    def _count(self, places: dict[Key, _CopiedFile]) -> None:
        """Count the files, texts and changes that a move would send. It is used for a dry run."""
        for file in places.values():
            status = os.lstat(file.place)
            if stat.S_ISREG(status.st_mode):
                self.digests[file.name] = ""
                self.size += status.st_size
        self.texts = len(set(self.session.engine.ledger.history.texts()))
        self.changes = len(self._history())

    def _check_stored(
        self, space: NewSpace, stored_digests: dict[Key, str], answers: dict[Key, FileRow]
    ) -> None:
        """Raise StorageError unless the server has exactly the bytes that were read here.

        All digests of the server are computed from the bytes that it has stored.

        space: the part of the database that takes the home.
        stored_digests: the SHA-256 of each file on the server.
        answers: the rows with the owner's answers. They do not come from files, so `_sent` does not
            have them.
        """
        sent_digests = {key: file.digest for key, file in self._sent.items() if file.kind == "file"}
        sent_digests |= {key: row.sha256 or "" for key, row in answers.items()}
        has_same_files = stored_digests == sent_digests

        sent_changes = {number: sha256(change.dump()) for number, change in self._history().items()}
        has_same_changes = space.digests_of_changes() == sent_changes

        sent_texts = set(self.session.engine.ledger.history.texts())
        has_same_texts = space.texts() == sent_texts

        if not (has_same_files and has_same_changes and has_same_texts):
            # The part of the address in front of `@` has the password.
            address = self.address.rpartition("@")[2]
            why = "what it holds is not what was read; run the move again"
            raise StorageError(address, why)

    def _places(self) -> dict[Key, _CopiedFile]:
        """Return every file, folder and link to move, by (project, path).

        This also sets `left` to the files that cannot be moved, and `outside` to the projects that
        are not moved.
        """
        engine = self.session.engine
        contents = Contents(self.session)
        self.left = []
        self.outside = []
        places: dict[Key, _CopiedFile] = {}
        root_prefix = f"{os.path.realpath(engine.layout.root)}/"
        for name, source in engine.sources.items():
            is_in_home = f"{os.path.realpath(source.root)}/".startswith(root_prefix)
            if source.holds_entities or not is_in_home:
                self.outside.append(name)
                continue
            for path in self._paths_below(name, source.root):
                places[name, path] = _CopiedFile(
                    f"{contents.folder(name)}/{path}", f"{source.root}/{path}"
                )
        return places

    def _answers(self) -> dict[Key, FileRow]:
        """Return the owner's answers and the requests of agents as rows of the database, by
        (project, path).
        """
        rows = self.session.engine.ledger.review_rows
        answer_rows: dict[Key, FileRow] = {}
        for path in rows.paths():
            data = rows.bytes_at(path) or b""
            answer_rows[PRIVATE, path] = FileRow(
                project=PRIVATE,
                path=path,
                kind="file",
                body=data,
                sha256=sha256(data),
                link=None,
                mode=0o600,
                changed_ns=None,
            )
        return answer_rows

    def _paths_below(self, project: str, root: str) -> Iterator[str]:
        """Yield the paths of a project that the database takes. All other paths are added to
        `left`.

        root: the folder of the project.
        """
        waiting_folders = [""]
        while waiting_folders:
            folder = waiting_folders.pop()
            try:
                dir_entries = list(os.scandir(os.path.join(root, folder)))
            except FileNotFoundError:
                # Another program removed the folder after its parent was listed.
                continue
            dir_entries.sort(key=lambda dir_entry: dir_entry.name)
            for dir_entry in dir_entries:
                path = f"{folder}/{dir_entry.name}" if folder else dir_entry.name
                if not _may_be_stored(project, path, dir_entry):
                    self.left.append(f"{project}/{path}")
                    continue
                yield path
                if dir_entry.is_dir(follow_symlinks=False):
                    waiting_folders.append(path)

    def _fill(
        self,
        space: NewSpace,
        places: dict[Key, _CopiedFile],
        progress: Callable[[int, int], None] | None,
    ) -> None:
        """Make the database equal to this home. The history is sent last.

        space: the part of the database that takes the home.
        places: the files, folders and links to move, by (project, path).
        progress: called with the number of files that were sent, and the number of all files.
        """
        self._fill_files(space, places, progress)
        self._fill_changes(space)
        self._fill_texts(space)

    def _fill_files(
        self,
        space: NewSpace,
        places: dict[Key, _CopiedFile],
        progress: Callable[[int, int], None] | None,
    ) -> None:
        """Make the database hold exactly the files of `places`, and the owner's answers.

        space: the part of the database that takes the home.
        places: the files, folders and links to move, by (project, path).
        progress: called with the number of files that were sent, and the number of all files.
        """
        stored_files = space.files()
        answers = self._answers()
        # After an interrupted move, the database may have files that are gone here.
        space.remove_files(
            [key for key in stored_files if key not in places and key not in answers]
        )
        space.put_files(answers.values())

        # Files that were removed since the first pass are not there any more.
        self._sent = {key: file for key, file in self._sent.items() if key in places}
        sent_count = 0
        rows = self._rows(places, stored_files)
        for batch in batches(rows, _MAX_BATCH_ROWS, _body_bytes, _MAX_BATCH_BYTES):
            # Files that the database has already are only counted.
            space.put_files([row for row in batch if row.kind != _STORED_KIND])
            sent_count += len(batch)
            if progress is not None:
                progress(sent_count, len(places))

    def _fill_changes(self, space: NewSpace) -> None:
        """Make the database hold exactly the changes of the history.

        space: the part of the database that takes the home.
        """
        changes = self._history()
        stored_changes = space.digests_of_changes()
        space.remove_changes([number for number in stored_changes if number not in changes])
        differing = [
            change
            for number, change in changes.items()
            if stored_changes.get(number) != sha256(change.dump())
        ]
        # Changes are small, so only their number limits a batch.
        for batch in batches(differing, _MAX_BATCH_ROWS):
            space.put_changes(batch)
        self.changes = len(changes)

    def _fill_texts(self, space: NewSpace) -> None:
        """Make the database hold exactly the replaced texts of the history.

        space: the part of the database that takes the home.
        """
        history = self.session.engine.ledger.history
        own_texts = set(history.texts())
        stored_texts = space.texts()
        space.remove_texts(stored_texts - own_texts)
        missing_texts = sorted(own_texts - stored_texts)
        for digests in batches(missing_texts, _MAX_BATCH_ROWS):
            space.put_texts([(digest, self._older_text(digest)) for digest in digests])
        self.texts = len(own_texts)

    def _rows(
        self,
        places: dict[Key, _CopiedFile],
        stored_files: dict[Key, tuple[str, str | None, int | None]],
    ) -> Iterator[FileRow]:
        """Yield a row for each file of `places` that was not sent yet, or that has changed since.

        stored_files: (kind, content, mode) of each file in the database. The content is the SHA-256
            of a file, the target of a link, or None for a folder.

        If the database has a file already as it is now, its row has the kind `_STORED_KIND` and no
        body.
        """
        for key, copied_file in places.items():
            try:
                row = self._row_to_send(key, copied_file.place)
            except FileNotFoundError:
                # In the first pass, another program may remove a file after it was listed. In the
                # second pass the home is locked.
                continue
            if row is None:
                continue
            content = row.sha256 or row.link
            if stored_files.get(key) == (row.kind, content, row.mode):
                row = row._replace(kind=_STORED_KIND, body=None)
            yield row

    def _row_to_send(self, key: Key, place: str) -> FileRow | None:
        """Read a file, folder or link, and note in `_sent` that it is sent.

        key: its project and path.
        place: its absolute path.

        Returns None if it was sent before, and has not changed since. Raises FileNotFoundError.
        """
        status = os.lstat(place)
        stamp = stamp_of(status)
        sent_file = self._sent.get(key)
        if sent_file is not None and sent_file.stamp == stamp:
            return None
        row = _row_of(key, place, status)
        self._sent[key] = _SentFile(stamp, row.kind, row.sha256 or "")
        return row

    def _older_text(self, digest: str) -> bytes:
        """Return a replaced text from the history. Raises StorageError if the text is damaged.

        digest: the SHA-256 of the text.
        """
        try:
            return self.session.engine.ledger.history.text(digest, "")
        except (NotFound, StorageError):
            name = f"the older text {digest[:12]}"
            raise StorageError(name, "it is damaged; see memory doctor") from None

    def _history(self) -> dict[int, Change]:
        """Return all changes of the history, by their numbers."""
        history = self.session.engine.ledger.history
        return {change.number: change for change in history.changes(origins=True)}

    def _shared(self) -> dict[str, bytes]:
        """Return the files that all machines of a database share: file name -> content.

        These are the configuration, the table of access tokens and the report of the last dream.
        Settings that only suit this machine are taken out of the configuration.
        """
        layout = self.session.engine.layout
        settings = self.session.engine.settings
        # On the other machines, each project is a folder of the home. A project that was outside
        # this home was not moved, so it is removed from the configuration.
        changes = {
            f"projects.{name}": None if name in self.outside else f"{OWN}/{name}"
            for name in settings.projects
        }
        # These settings are folders of one machine, so the other machines must not get them.
        changes |= _stored_keys(layout.config, "storage.root", "storage.state")
        shared_files = {}
        if layout.config.exists():
            shared_files[layout.config.name] = config_text.change(layout.config, changes).encode()
        tokens = AccessRows(self.session.engine.ledger.database).dump()
        if tokens is not None:
            shared_files[layout.access.name] = tokens
        if layout.dream_report.exists():
            shared_files[layout.dream_report.name] = layout.dream_report.read_bytes()
        return shared_files


def without_state(config: Path) -> str:
    """Return the text of a configuration without the setting `storage.state`."""
    return config_text.change(config, _stored_keys(config, "storage.state"))


def _stored_keys(config: Path, *keys: str) -> dict[str, None]:
    """Return a change that removes some keys from a configuration, for `config_text.change`.

    keys: the keys to remove. Keys that the configuration does not have are left out.

    Returns None as the new value of each key, which means to remove the key.
    """
    rows = config_text.read(config)
    return {key: None for key in keys if config_text.stored_value(rows, key)}
