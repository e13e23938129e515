"""Moving notes in and out of a home (contract 001, 11 and 12; docs/format.md).

Memories move in order and by id, files as they are. Texts that lose a conflict are kept in the
history. A whole home can be copied file by file, or with its history into a space of a PostgreSQL
database.
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
from itertools import chain, takewhile
from pathlib import Path
from typing import TypeVar

from memoranda import config, config_text
from memoranda.clock import microseconds, stamp, wait_for
from memoranda.engine.engine import verb
from memoranda.engine.history import HistoryVerbs
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
from memoranda.ledger.change import Change, Touched
from memoranda.ledger.postgres.new_space import Key, NewSpace
from memoranda.ledger.postgres.space_rows import FileRow
from memoranda.ledger.reads import ReadRow
from memoranda.note.markdown import Record
from memoranda.note.model import MEMORY_PROJECTS
from memoranda.sources.base import File, Values, sha256
from memoranda.sources.files import read_file, stamp_of
from memoranda.sources.layout import PRIVATE, SKIPPED_FOLDERS, TEMP_PREFIX
from memoranda.sources.path_guard import clean, climbs, open_folder
from memoranda.sources.step import StepKind
from memoranda.text.unicode import is_valid_unicode

T = TypeVar("T")
# The ledger's name for a change made here.
VERB = "import"
OWN = config.OWN_FOLDER
"""The folder of a copy that holds the projects the configuration names."""
BANK_RECORD = ".bank.json"
"""The one hidden file of a project that moves with it: what a memory bank is (faces/bank/)."""
# Rows of one transaction, and the bytes of their texts.
_ROWS = 500
_BYTES = 8 << 20


def batches(
    items: Iterable[T], most_items: int, size_of: Callable[[T], int], most_bytes: int
) -> Iterator[list[T]]:
    """The items in order, in batches of at most this many, and about so large together."""
    batch: list[T] = []
    size = 0
    for item in items:
        if batch and (len(batch) >= most_items or size + size_of(item) > most_bytes):
            yield batch
            batch = []
            size = 0
        batch.append(item)
        size += size_of(item)
    if batch:
        yield batch


class Exchange:
    """The verbs of export, import and moving in for the caller of `memory`."""

    def __init__(self, memory: HistoryVerbs):
        self.memory = memory
        self.engine = memory.engine
        self._index = memory.index
        self._index_identity: object = None

    @verb
    def rows(self, category: str | None = None, scope: str | None = None) -> array[int]:
        """The memories the caller sees, of one category and scope if given, as handles for `page`:
        oldest first, then by id. Eight bytes each."""
        self.engine.fresh()
        rows = self._index.notes.rows_by_creation(self.memory.agent, category, scope)
        self._index_identity = self._index.identity
        return rows

    @verb
    def page(self, rows: Sequence[int]) -> list[tuple[NoteInfo, str]]:
        """These memories with their contents as indexed. Memories that were removed since are left
        out.

        Raises Conflict if the index was rebuilt in between, since its row numbers have changed.
        """
        # Opens it again if it was replaced
        self._index.pin()
        if self._index_identity != self._index.identity:
            raise Conflict("the index", "made anew", "as it was")
        infos = [
            info for info in self._index.notes.in_order(rows) if info.project in MEMORY_PROJECTS
        ]
        return self._with_contents([info for info in infos if self.memory.sees(info.scope)])

    @verb
    def known(self, ids: Iterable[str]) -> dict[str, tuple[NoteInfo, str]]:
        """The memories with exactly these ids, with their contents. Those the caller may not see
        are there too, or two memories would have one id."""
        self.engine.fresh()
        infos = self._index.notes.with_ids(ids, MEMORY_PROJECTS)
        # If two memories have one id, the last one counts.
        infos.sort(key=lambda info: self.memory.sees(info.scope))
        return {info.id: (info, content) for info, content in self._with_contents(infos)}

    @verb
    def survivors(self, ids: Iterable[str]) -> dict[str, str]:
        """The contents of the memories these ids were merged into."""
        infos_by_id = self._index.notes.survivors(ids)
        contents = {
            info.row: content for info, content in self._with_contents([*infos_by_id.values()])
        }
        return {
            identity: contents[info.row]
            for identity, info in infos_by_id.items()
            if self.memory.sees(info.scope)
        }

    @verb
    def contents(self) -> set[bytes]:
        """The `digest` of every memory: a few hundred bytes each."""
        self.engine.fresh()
        bodies = chain.from_iterable(map(self._index.notes.scoped_bodies, MEMORY_PROJECTS))
        return {digest(scope, body.removesuffix("\n")) for scope, body in bodies}

    def _with_contents(self, infos: list[NoteInfo]) -> list[tuple[NoteInfo, str]]:
        self.engine.count_pending_reads(infos)
        bodies = self._index.notes.bodies([info.row for info in infos])
        return [(info, bodies[info.row].removesuffix("\n")) for info in infos if info.row in bodies]

    @verb
    def put(self, records: Sequence[Record]) -> None:
        """Store records as `Upkeep.put` does; their access counts are the whole ones from then on."""
        Upkeep(self.memory).put(records, VERB)
        self.engine.reads.restart(*(record.id for record in records))

    @verb
    def keep(self, older: Sequence[tuple[NoteInfo, bytes]]) -> None:
        """Put texts that lost a conflict into the history, as if each had been the text just before
        the present one.
        """
        lost = [
            (
                Touched(
                    StepKind.PUT,
                    touched.project,
                    touched.path,
                    new=touched.etag,
                    scope=touched.scope,
                ),
                data,
            )
            for touched, data in older
        ]
        keep_lost(self.memory, lost)

    def files_of(self, project: str) -> str | None:
        """The name of a project whose notes are files.

        None for a graph file. Raises ProjectNotFound.
        """
        source = self.engine.source(project)
        if source.holds_entities:
            return None
        return source.name

    def set_time(self, project: str, path: str, moment: datetime) -> None:
        """Set the time of a file to the time of its note.

        A note without a header has no other date.
        """
        nanoseconds = microseconds(moment) * 1_000
        with suppress(OSError):
            os.utime(os.path.join(self.engine.source(project).root, path), ns=(nanoseconds,) * 2)

    @verb
    def file(self, project: str, path: str) -> File | None:
        """The file at `path` of a project.

        None if there is no file. Raises OutsideError, StorageError.
        """
        try:
            return self.engine.source(project).read(path)
        except NotFound:
            return None

    @verb
    def paths_in(self, project: str, folder: str) -> list[str]:
        """The paths of the notes in a folder of a project."""
        return sorted(self.engine.source(project).list(folder).stamps)

    @verb
    def holder(
        self, project: str, *, permalink: str | None = None, identity: str | None = None
    ) -> NoteInfo | None:
        """The note of a project that has this permalink, or this id. None if no note has it."""
        self.engine.fresh()
        if permalink:
            holders = [self._index.notes.by_permalink(project, permalink)]
        else:
            holders = []
        holders += self._index.notes.with_ids([identity], (project,)) if identity else []
        return next(filter(None, holders), None)

    @verb
    def is_taken(self, project: str, path: str) -> bool:
        """Whether something is at `path`, or a note there whose path differs in case only."""
        source = self.engine.source(project)
        self.engine.fresh()
        return (
            source.place(path).kind != "missing"
            or self._index.notes.in_other_case(project, path) is not None
        )

    @verb
    def add_files(
        self,
        project: str,
        files: Sequence[tuple[str, bytes]],
        over: Mapping[str, File] | None = None,
    ) -> None:
        """Write files byte for byte, as one change.

        files: (path, bytes) of each file.
        over: the present file by path, where one should be replaced.

        Raises Exists or Conflict if another file is at a path by now; OutsideError.
        """
        with self.memory.change(VERB, fresh=False) as change:
            for path, data in files:
                change.put(project, path, data, old=(over or {}).get(path), scope=scope_of(data))


def keep_lost(session: WritingSession, lost: Sequence[tuple[Touched, bytes]]) -> None:
    """Record texts that lost a conflict in the history, as one change.

    They are recorded as if each had been there just before the winning text (`Touched.new`), so
    `restore` and `undo` can bring them back. Texts that the history already holds are skipped, so a
    repetition has no effect.
    """
    history = session.engine.ledger.history
    files = list[Touched]()
    with session.engine.writing():
        for touched, data in lost:
            touched.old = sha256(data)
            if not history.has_text(touched.old):
                history.keep_bytes(data)
                files.append(touched)
        if files:
            first_place = (files[0].project, files[0].path)
            moment = stamp(session.engine.clock())
            history.append(
                Change(
                    history.last + 1, moment, VERB, *first_place, session.agent, session.face, files
                )
            )


def digest(scope: str, content: str) -> bytes:
    """A hash of scope and content."""
    return hashlib.blake2b(
        f"{scope}\0{content}".encode("utf-8", "surrogatepass"), digest_size=16
    ).digest()


@dataclass(slots=True)
class Listed:
    """Every file: its name in a copy → (project, path, stamp). What is below a name of
    `unreadable` is unknown.
    """

    files: dict[str, tuple[str, str, Values]] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)


class Contents:
    """The files and the history of `session`'s home. Raises InvalidInput for an agent: private
    notes are among them.
    """

    def __init__(self, session: WritingSession):
        if session.agent is not None:
            raise InvalidInput(
                "A copy of the whole memory is the owner's: run this without an agent's name."
            )
        self.session = session
        self.engine = session.engine

    def wait_until_whole(self) -> None:
        """Wait until all that was acknowledged is here: a new copy of a database's notes is filled
        over time. Raises StorageError when the database cannot be asked."""
        while not wait_for(lambda: not self._lag()):
            continue
        if self._lag() is None:
            why = "their database cannot be asked now, and some may be missing here; try again"
            raise StorageError("the notes", why)

    @verb
    def _lag(self) -> int | None:
        return self.engine.ledger.lag()

    @verb
    def listed(self) -> Listed:
        """The files there are now: all of the projects in the home, and the notes of those
        elsewhere.
        """
        self.engine.fresh()
        found_listing = Listed()
        for name, source in self.engine.sources.items():
            if name in self.engine.extra:
                continue
            if source.trouble():
                found_listing.unreadable.append(f"{self.folder(name)}/")
            elif source.holds_entities:
                if os.path.exists(source.root):
                    found_listing.files[self.folder(name)] = (
                        name,
                        "",
                        stamp_of(os.stat(source.root)),
                    )
            elif name in self.engine.layout.built_in:
                self._walk(name, source.root, found_listing)
            else:
                listing = source.list()
                found_listing.files |= {
                    f"{self.folder(name)}/{path}": (name, path, file_stamp)
                    for path, file_stamp in listing.stamps.items()
                }
                found_listing.unreadable += [
                    f"{self.folder(name)}/{path}" for path in listing.unreadable
                ]
        return found_listing

    def _walk(self, project: str, root: str, listing: Listed) -> None:
        waiting = [""]
        while waiting:
            folder = waiting.pop()
            try:
                with os.scandir(os.path.join(root, folder)) as entries:
                    for entry in entries:
                        if folder:
                            path = f"{folder}/{entry.name}"
                        else:
                            path = entry.name
                        if not is_kept_name(project, entry.name):
                            continue
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append(path)
                        elif entry.is_file(follow_symlinks=False):
                            stamp = stamp_of(entry.stat(follow_symlinks=False))
                            listing.files[f"{self.folder(project)}/{path}"] = project, path, stamp
            except FileNotFoundError:
                continue
            except OSError:
                listing.unreadable.append(f"{self.folder(project)}/{folder}")

    def folder(self, project: str) -> str:
        """The name of a project's folder, or graph file, in a copy."""
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
        """The name in a copy of the file or folder that a change touched at `path`.

        None if the copy leaves it out: the home's own records, hidden files, and projects that are
        gone or belong to another process.
        """
        if not self._is_in_folder(touched):
            return self._name_of_graph_file(touched.file)
        if climbs(path) or not self._is_copied(touched, path):
            return None
        return f"{self.folder(touched.project)}/{path}"

    def _is_in_folder(self, touched: Touched) -> bool:
        """Whether a step changed a whole file in the folder of a project of this home."""
        if touched.project == PRIVATE or touched.root or touched.do == StepKind.LINES:
            return False
        return touched.project in self.engine.sources and touched.project not in self.engine.extra

    def _name_of_graph_file(self, file: str | None) -> str | None:
        """The name in a copy of the graph file at `file`. None if it is not a project's here."""
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
        is_moved_folder = touched.do == StepKind.MOVE and touched.old is None
        if is_moved_folder or touched.do in (StepKind.MKDIR, StepKind.RMDIR):
            return True
        return self.engine.sources[touched.project].is_note(path)

    @verb
    def read(self, project: str, path: str) -> File:
        """The file as it is now. Raises NotFound, OutsideError, StorageError."""
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
        """The replaced text with this SHA-256, from the history. None if it is not kept."""
        try:
            return self.engine.ledger.history.text(digest, "")
        except (NotFound, StorageError):
            return None

    @verb
    def changes(self, after: int = 0) -> list[Change]:
        """The changes with a higher number than `after`, the oldest first, as far back as the
        history goes.
        """
        all_changes = self.engine.ledger.history.changes()
        return [*takewhile(lambda change: change.number > after, all_changes)][::-1]

    @verb
    def have_texts(self) -> None:
        """Bring every text of the history into the home's folder.

        If the notes are in a database, the folder holds only the texts that were used here.
        """
        for digest in sorted(
            text_digest for text_digest in self.engine.ledger.history.referenced() if text_digest
        ):
            self.text(digest)

    @verb
    def reads(self) -> dict[str, ReadRow]:
        """The reads that no header counts yet, by id. With notes in a database, on all machines."""
        return self.engine.reads.whole()


def is_kept_name(project: str, name: str) -> bool:
    """Whether a copy includes a file or folder of this name in a project of the home.

    The only hidden names included are the records of banks, and files made with the memory tool.
    """
    if (
        name.startswith(TEMP_PREFIX)
        or name in SKIPPED_FOLDERS
        or name.lower() == ".git"
        or not is_valid_unicode(name)
    ):
        return False
    return not name.startswith(".") or name == BANK_RECORD or project == "memories"


@dataclass(slots=True)
class IntoDatabase:
    """Moves `session`'s home, the owner's, to the database at `address`.

    After `run`: `digests` are the SHA-256 of the files by their name in a copy, as the server has
    them too, `size` their bytes together; the number of `texts` of the history, and of `changes`. `left` is
    what a database does not take, `outside` projects whose notes are not in the home.
    """

    session: WritingSession
    address: str
    digests: dict[str, str] = field(default_factory=dict)
    size: int = 0
    texts: int = 0
    changes: int = 0
    left: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    _seen: dict[Key, tuple[Values, str, str]] = field(default_factory=dict)

    def run(self, *, dry_run: bool, progress: Callable[[int, int], None] | None) -> None:
        """Move, or go on. Raises InvalidInput for a space with notes, DatabaseAway,
        DatabaseRefused, StorageError.
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
            self._fill(space, places, progress)
            with self.session.exclusive():
                self._fill(space, self._places(), None)
                stored_digests = space.read_again()
                names = {key: name for key, (name, _) in self._places().items()}
                answers = self._answers()
                self._check_stored(space, stored_digests, answers)
                self.digests = {
                    names[key]: digest
                    for key, digest in stored_digests.items()
                    if key not in answers
                }
                self.size = sum(
                    stamp[0] for stamp, kind, _ in self._seen.values() if kind == "file"
                )
                reads = self.session.engine.reads
                last = self.session.engine.ledger.history.last
                space.finish(last, reads.counts(), reads.used(), self._shared())
        finally:
            space.close()

    def _count(self, places: dict[Key, tuple[str, str]]) -> None:
        """Count the files, texts and changes to move, for a dry run."""
        for name, place in places.values():
            status = os.lstat(place)
            if stat.S_ISREG(status.st_mode):
                self.digests[name] = ""
                self.size += status.st_size
        self.texts = len(set(self.session.engine.ledger.history.texts()))
        self.changes = len(self._history())

    def _check_stored(
        self, space: NewSpace, stored_digests: dict[Key, str], answers: dict[Key, FileRow]
    ) -> None:
        """Raise StorageError unless the server returns exactly the bytes that were read here.

        stored_digests: the SHA-256 of the files as the server has them.
        answers: the rows of answers to questions, which are not files.
        """
        read_digests = {
            key: digest for key, (_, kind, digest) in self._seen.items() if kind == "file"
        }
        read_digests |= {key: row.sha256 or "" for key, row in answers.items()}
        changes = {number: sha256(change.dump()) for number, change in self._history().items()}
        is_whole = space.digests_of_changes() == changes and len(space.texts()) == self.texts
        if stored_digests != read_digests or not is_whole:
            why = "what it holds is not what was read; run the move again"
            raise StorageError(self.address.rpartition("@")[2], why)

    def _places(self) -> dict[Key, tuple[str, str]]:
        """Map (project, path) of every file, folder and link to its name in a copy and its place on
        disk.

        Also sets `left` and `outside`: the files left out, and the projects outside the home.
        """
        engine = self.session.engine
        contents = Contents(self.session)
        self.left, self.outside, places_by_key = [], [], dict[Key, tuple[str, str]]()
        root_prefix = f"{os.path.realpath(engine.layout.root)}/"
        for name, source in engine.sources.items():
            if source.holds_entities or not f"{os.path.realpath(source.root)}/".startswith(
                root_prefix
            ):
                self.outside.append(name)
                continue
            for path in self._below(name, source.root):
                places_by_key[name, path] = (
                    f"{contents.folder(name)}/{path}",
                    f"{source.root}/{path}",
                )
        return places_by_key

    def _answers(self) -> dict[Key, FileRow]:
        """The rows of what the owner answered and agents ask for."""
        rows = self.session.engine.ledger.review_rows
        answer_rows: dict[Key, FileRow] = {}
        for path in rows.paths():
            data = rows.bytes_at(path) or b""
            key = (PRIVATE, path)
            answer_rows[key] = FileRow(*key, "file", data, sha256(data), None, 0o600, None)
        return answer_rows

    def _below(self, project: str, root: str) -> Iterator[str]:
        waiting = [""]
        while waiting:
            folder = waiting.pop()
            try:
                entries = sorted(
                    os.scandir(os.path.join(root, folder)), key=lambda dir_entry: dir_entry.name
                )
            except FileNotFoundError:
                continue
            for dir_entry in entries:
                if folder:
                    path = f"{folder}/{dir_entry.name}"
                else:
                    path = dir_entry.name
                is_kept = is_kept_name(project, dir_entry.name)
                with suppress(MemorandaError):
                    is_kept = is_kept and clean(path, project, hidden=True) == path
                    if is_kept and (
                        dir_entry.is_symlink() or dir_entry.is_file() or dir_entry.is_dir()
                    ):
                        yield path
                        waiting += [path] if dir_entry.is_dir(follow_symlinks=False) else []
                        continue
                self.left.append(f"{project}/{path}")

    def _fill(
        self,
        space: NewSpace,
        places: dict[Key, tuple[str, str]],
        progress: Callable[[int, int], None] | None,
    ) -> None:
        """Make the database hold what is here: files and answers, then the history."""
        self._fill_files(space, places, progress)
        self._fill_changes(space)
        self._fill_texts(space)

    def _fill_files(
        self,
        space: NewSpace,
        places: dict[Key, tuple[str, str]],
        progress: Callable[[int, int], None] | None,
    ) -> None:
        """Make the database hold the files at `places`, and the answers to questions."""
        stored_files = space.files()
        answers = self._answers()
        space.remove_files(
            [key for key in stored_files if key not in places and key not in answers]
        )
        space.put_files(answers.values())
        self._seen = {key: seen_row for key, seen_row in self._seen.items() if key in places}
        copied = 0
        for batch in batches(
            self._rows(places, stored_files), _ROWS, lambda row: len(row.body or b""), _BYTES
        ):
            space.put_files([row for row in batch if row.kind])
            copied += len(batch)
            if progress is not None:
                progress(copied, len(places))

    def _fill_changes(self, space: NewSpace) -> None:
        """Make the database hold the changes of the history."""
        changes = self._history()
        stored_changes = space.digests_of_changes()
        space.remove_changes([number for number in stored_changes if number not in changes])
        differing = [
            change
            for number, change in changes.items()
            if stored_changes.get(number) != sha256(change.dump())
        ]
        for part in batches(differing, _ROWS, lambda _: 0, 1):
            space.put_changes(part)
        self.changes = len(changes)

    def _fill_texts(self, space: NewSpace) -> None:
        """Make the database hold the replaced texts of the history."""
        history = self.session.engine.ledger.history
        own_texts = set(history.texts())
        stored_texts = space.texts()
        space.remove_texts(stored_texts - own_texts)
        for digests in batches(sorted(own_texts - stored_texts), _ROWS, lambda _: 0, 1):
            space.put_texts([(digest, self._older_text(digest)) for digest in digests])
        self.texts = len(own_texts)

    def _rows(
        self,
        places: dict[Key, tuple[str, str]],
        stored_files: dict[Key, tuple[str, str | None, int | None]],
    ) -> Iterator[FileRow]:
        """A row for each place; of kind "" for one that is in the database already."""
        for (project, path), (_, place) in places.items():
            # Gone since; the second time nobody writes
            with suppress(FileNotFoundError):
                status = os.lstat(place)
                stamp = stamp_of(status)
                mode = stat.S_IMODE(status.st_mode)
                seen_row = self._seen.get((project, path))
                if seen_row is not None and seen_row[0] == stamp:
                    continue
                if stat.S_ISLNK(status.st_mode):
                    row = FileRow(
                        project, path, "link", None, None, os.readlink(place), 0o700, None
                    )
                elif stat.S_ISDIR(status.st_mode):
                    row = FileRow(project, path, "folder", None, None, None, 0o700, None)
                else:
                    file = read_file(place)
                    row = FileRow(
                        project, path, "file", file.data, file.etag, None, mode, file.stamp.mtime_ns
                    )
                self._seen[project, path] = stamp, row.kind, row.sha256 or ""
                is_there = stored_files.get((project, path)) == (
                    row.kind,
                    row.sha256 or row.link,
                    row.mode,
                )
                yield row._replace(kind="", body=None) if is_there else row

    def _older_text(self, digest: str) -> bytes:
        """A kept text. Raises StorageError for one that is damaged."""
        try:
            return self.session.engine.ledger.history.text(digest, "")
        except (NotFound, StorageError):
            name = f"the older text {digest[:12]}"
            raise StorageError(name, "it is damaged; see memory doctor") from None

    def _history(self) -> dict[int, Change]:
        """All changes, by their numbers."""
        history = self.session.engine.ledger.history
        return {change.number: change for change in history.changes(origins=True)}

    def _shared(self) -> dict[str, bytes]:
        """The files all replicas share, as they should be there."""
        layout = self.session.engine.layout
        settings = self.session.engine.settings
        changes = {
            f"projects.{name}": None if name in self.outside else f"{OWN}/{name}"
            for name in settings.projects
        }
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
    """The text of a configuration that does not say where the state of the memory is."""
    return config_text.change(config, _stored_keys(config, "storage.state"))


def _stored_keys(config: Path, *keys: str) -> dict[str, None]:
    """Those of the keys that a configuration has, each to be removed."""
    rows = config_text.read(config)
    return {key: None for key in keys if config_text.stored_value(rows, key)}
