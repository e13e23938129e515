"""Finding what is left of some notes.

The ledger is followed back through moves, categories and merges. The files of the
home are searched for words and lines of the erased texts.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import heappop, heappush

from memoranda.engine.engine import Engine
from memoranda.engine.transaction import Location
from memoranda.engine.writing import as_file, id_list
from memoranda.errors import NotFound, StorageError
from memoranda.index.database import SCHEMA
from memoranda.ledger.change import ERASE, Change, Touched
from memoranda.ledger.database import SCHEMA as LEDGER_SCHEMA
from memoranda.note.entity import GraphRelation
from memoranda.note.model import CATEGORY_PROJECT
from memoranda.sources import beside_sqlite
from memoranda.sources.graph_lines import said_by
from memoranda.sources.json_rows import namespace_in, stem_of
from memoranda.sources.layout import PRIVATE, TEMP_PREFIX, Layout
from memoranda.sources.source import Source
from memoranda.sources.step import StepKind
from memoranda.sources.walking import walk

OUR_REMOVAL = ("delete", "", "")
"""Verb, project and path of the change that takes away what is being erased: no other change is
about no place.
"""
_FILES = (StepKind.PUT, StepKind.REMOVE, StepKind.UNLINK, StepKind.SYMLINK)


def folders_above(path: str) -> Iterator[str]:
    """The folders a path is in, the topmost first."""
    for position, sign in enumerate(path):
        if sign == "/":
            yield path[:position]


class _Waiting:
    """Numbers of changes still to be looked at, given out from the highest to the lowest."""

    def __init__(self, number: int):
        self.number = number
        """The one given out last: only lower ones are still to come."""
        self._heap: list[int] = []

    def add(self, numbers: Iterable[int]) -> None:
        """Have these looked at, except those that were passed."""
        for number in numbers:
            if number < self.number:
                heappush(self._heap, -number)

    def next(self) -> int | None:
        """The highest that is left, None for none."""
        while self._heap:
            number = -heappop(self._heap)
            if number < self.number:
                self.number = number
                return number
        return None


class Trail:
    """The trail of some notes through the history.

    places: where the notes are now, or were last.
    ids: the ids of the notes. After `follow`, also the ids of their older versions.
    entities: the names of entities, by graph file.
    rows: (folder, namespace, key) of the rows of JSON files.
    files: after `follow`, the steps to keep of each change that touched one of the notes, by
        number. None for a step to remove.
    texts: after `follow`, the kept versions.
    met: after `follow`, the places that the ledger knows.
    """

    _is_line: dict[str, Callable[[bytes], bool]]

    def __init__(
        self,
        engine: Engine,
        places: Sequence[Location],
        ids: Sequence[str],
        entities: Mapping[str, Sequence[str]],
        rows: Iterable[tuple[str, str, str]] = (),
    ):
        self._engine = engine
        self._history = engine.ledger.history
        self._now = set(places)
        self._every = set(places)
        self.ids = set(ids)
        self._heads = {note_id[:8] for note_id in ids}
        self._is_line = {
            file: partial(_names, names=frozenset(names)) for file, names in entities.items()
        }
        for folder, namespace, key in rows:
            stem = stem_of(namespace)
            file = os.path.realpath(os.path.join(folder, f"{stem}.json"))
            other_lines = self._is_line.get(file)
            self._is_line[file] = partial(_is_row, stem, namespace, key, other_lines)
        self.files: dict[int, list[Touched | None]] = {}
        self._changes: dict[int, Change] = {}
        self.texts: list[bytes] = []
        self.met: set[Location] = set()
        self._waiting = _Waiting(self._history.last + 1)
        self._moved_projects: set[str] = set()

    def follow(self) -> None:
        """Walk back through the changes that may be about the notes, from the latest to the first."""
        self._waiting.add(self._history.numbers_about(*OUR_REMOVAL))
        self._waiting.add(self._history.numbers_private())
        self._waiting.add(self._history.numbers_in_place(self._is_graph_file))
        for place in self._now:
            self._await_place(place)
        for head in self._heads:
            self._waiting.add(self._history.with_name_id(head, self._waiting.number))
        while (number := self._waiting.next()) is not None:
            change = self._history.change(number)
            if change is not None:
                self._visit(change)
        self._drop_folders()

    def _await_place(self, place: Location) -> None:
        """Have the changes looked at that may be about a note at a place before."""
        number = self._waiting.number
        self._waiting.add(self._history.numbers_at(place[0], place[1], number))
        if place[0] not in self._moved_projects:
            self._moved_projects.add(place[0])
            self._waiting.add(self._history.numbers_of_folder_moves(place[0], number))

    def _is_graph_file(self, file: str) -> bool:
        return os.path.realpath(file) in self._is_line

    def _visit(self, change: Change) -> None:
        """Take the steps about the notes out of one change, and note what its texts tell."""
        is_removal = (change.verb, change.project, change.path) == OUR_REMOVAL
        gone_places = {
            file_index
            for file_index in reversed(range(len(change.files)))
            if is_removal or self._is_hit(change.files[file_index])
        }
        for file_index, touched in enumerate(change.files):
            if file_index not in gone_places and self._goes_along(
                touched, is_partner=bool(gone_places)
            ):
                gone_places.add(file_index)
                self._enter((touched.project, touched.path, touched.root))
        for file_index in gone_places:
            self._remember_text(change.files[file_index])
        remaining = [
            None if file_index in gone_places else self._without_entities(file)
            for file_index, file in enumerate(change.files)
        ]
        if remaining != change.files:
            self._note(change, remaining)

    def _goes_along(self, touched: Touched, *, is_partner: bool) -> bool:
        """Whether a step is about a note that is known by its id.

        A change to the note removed it in its category before, or one merged into it: the step is
        its partner. Or a memory's file has the id in its name, wherever somebody moved it by hand.
        """
        if is_partner and touched.do == StepKind.REMOVE and self._has_id(touched):
            return True
        is_named = (
            touched.project == CATEGORY_PROJECT
            and touched.do in _FILES
            and touched.path[-11:-3] in self._heads
        )
        return is_named and (touched.old is None or self._has_id(touched))

    def _remember_text(self, touched: Touched) -> None:
        """Keep the text a step replaced, and the ids it names its note by."""
        data = self._kept_text(touched.old)
        if data is None:
            return
        self.texts.append(data)
        note = self._engine.parse(touched.project, touched.path, as_file(data))
        if note is None or not note.own_id:
            return
        ids = {note.id, *id_list(note.header.get("merged"))}
        self.ids |= ids
        for head in {note_id[:8] for note_id in ids} - self._heads:
            self._heads.add(head)
            self._waiting.add(self._history.with_name_id(head, self._waiting.number))

    def _note(self, change: Change, remaining: list[Touched | None]) -> None:
        self.files[change.number] = remaining
        self._changes[change.number] = change

    def _is_hit(self, touched: Touched) -> bool:
        """Whether a step is about one of the notes.

        After a move, the walk continues at the old place.
        """
        old_place = (touched.project, touched.path, touched.root)
        new_place = (touched.project, touched.to, touched.root)
        # The answer to a question
        if touched.project == PRIVATE:
            return self._names_note(touched)
        if touched.do != StepKind.MOVE:
            is_hit = touched.do in _FILES and old_place in self._now
            self.met |= {old_place} if is_hit else set()
            return is_hit
        if new_place in self._now:
            self.met.add(new_place)
            self._now.remove(new_place)
            self._enter(old_place)
            return True
        # before, another note lay there
        self._now.discard(old_place)
        if touched.old is None:
            moved_places = [place for place in self._now if _is_below(place, new_place)]
        else:
            moved_places = []
        # A folder that moved: the line is about the folder
        for place in moved_places:
            self._now.remove(place)
            self._enter((touched.project, touched.path + place[1][len(touched.to) :], touched.root))
        return False

    def _names_note(self, touched: Touched) -> bool:
        """Whether the key or the text of an answer names one of the notes."""
        data = touched.path.encode() + (self._kept_text(touched.old) or b"")
        names = [*self.ids, *(os.path.join(project, path) for project, path, _ in self._every)]
        return any(name.encode() in data for name in names)

    def _enter(self, place: Location) -> None:
        self._now.add(place)
        self._every.add(place)
        self._await_place(place)

    def _has_id(self, touched: Touched) -> bool:
        data = self._kept_text(touched.old)
        if data is not None:
            note = self._engine.parse(touched.project, touched.path, as_file(data))
        else:
            note = None
        return note is not None and note.own_id and note.id in self.ids

    def _kept_text(self, digest: str | None) -> bytes | None:
        try:
            if digest:
                return self._history.text(digest, "")
            return None
        except (NotFound, StorageError):
            return None

    def _without_entities(self, touched: Touched) -> Touched | None:
        """A change of lines without the lines of the entities or rows. The rest can still be
        undone.

        None if nothing is left, or if its lines are not kept.
        """
        is_line = None
        if touched.do == StepKind.LINES:
            is_line = self._is_line.get(os.path.realpath(touched.file))
        if is_line is None:
            return touched
        # The whole file, kept because it was written in place
        if touched.new is None:
            return None
        lines = self._engine.ledger.lines
        try:
            kept_lines = lines.kept(touched)
        except (NotFound, StorageError, ValueError):
            # Nothing could undo it, and nobody can tell what the rest holds
            return None
        gone_lines = [line for line in kept_lines.all() if is_line(line)]
        if not gone_lines:
            return touched
        self.texts += gone_lines
        self.met |= {place for place in self._every if place[0] == touched.project}
        remaining = kept_lines.without(is_line)
        if not any(remaining):
            return None
        return lines.keep(touched, remaining)

    def _drop_folders(self) -> None:
        """Remove from the history the names of folders that disappeared with the notes."""
        parent_folders: set[Location] = set()
        for project, path, root in self._every:
            if project != CATEGORY_PROJECT:
                parent_folders.update((project, folder, root) for folder in folders_above(path))
        roots = {
            folder: folder[2] or self._engine.own_root(folder[0]) or "" for folder in parent_folders
        }
        lost = {
            folder
            for folder, root in roots.items()
            if not os.path.isdir(os.path.join(root, folder[1]))
        }
        changes: set[int] = set()
        for project, path, _ in lost:
            changes.update(self._history.numbers_at(project, path, self._history.last + 1))
        for number in sorted(changes, reverse=True):
            change = self._history.change(number)
            if change is not None:
                self._drop_lost_folders(change, lost)

    def _drop_lost_folders(self, change: Change, lost: Collection[Location]) -> None:
        """Take the steps on folders that are lost out of a change, except those still in use."""
        remaining = self.files.get(change.number, [*change.files])
        for file_index, file in enumerate(change.files):
            if file.do == StepKind.MOVE:
                path = file.to
            else:
                path = file.path
            if not _is_folder(file) or (file.project, path, file.root) not in lost:
                continue
            is_in_use = any(
                touched and not _is_folder(touched) and f"{touched.path}/".startswith(f"{path}/")
                for touched in remaining
            )
            remaining[file_index] = file if is_in_use else None
        if remaining != change.files:
            self._note(change, remaining)

    def revised(self, moment: str) -> dict[int, Change]:
        """The changes as they should be without the notes, by number: one that was about nothing
        else leaves its number, and `moment`.
        """
        return {
            number: self._without(self._changes[number], steps, moment)
            for number, steps in self.files.items()
        }

    @property
    def places(self) -> Collection[Location]:
        """All places the notes ever had."""
        return self._every

    def _without(self, change: Change, steps: list[Touched | None], moment: str) -> Change:
        remaining = [touched for touched in steps if touched is not None]
        if all(touched.do in (StepKind.MKDIR, StepKind.RMDIR) for touched in remaining):
            return Change(change.number, moment, ERASE, "", "", None, None, [], change.undoes)
        pairs = [*zip(change.files, steps, strict=True)]
        erased_steps = [touched for touched, remaining_step in pairs if remaining_step is None]
        if _is_about_one_of(change, erased_steps):
            change = _listed_under_another(change, remaining)
        erased = sum(now != touched and not _is_folder(touched) for touched, now in pairs)
        return replace(change, files=remaining, details={"erased": erased})


def _is_about_one_of(change: Change, steps: Iterable[Touched]) -> bool:
    """Whether the place that a change is listed under is the old or new place of one of `steps`."""
    places: set[tuple[str, str]] = set()
    for touched in steps:
        places |= {(touched.project, touched.path), (touched.project, touched.to)}
    return (change.project, change.path) in places


def _listed_under_another(change: Change, steps: Iterable[Touched]) -> Change:
    """The change, listed under the place of the first of `steps` that is not about a folder."""
    first_touched = next(
        touched for touched in steps if touched.do not in (StepKind.MKDIR, StepKind.RMDIR)
    )
    return replace(
        change, project=first_touched.project, path=first_touched.to or first_touched.path
    )


def _is_folder(touched: Touched) -> bool:
    return touched.do in (StepKind.MKDIR, StepKind.RMDIR) or (
        touched.do == StepKind.MOVE and touched.old is None
    )


def _is_below(place: Location, folder: Location) -> bool:
    return (place[0], place[2]) == (folder[0], folder[2]) and place[1].startswith(f"{folder[1]}/")


def _names(line: bytes, names: Collection[str]) -> bool:
    """Whether a line of a graph file is one of these entities, or a relation at one."""
    observations = said_by(line)
    if isinstance(observations, GraphRelation):
        return observations.source in names or observations.target in names
    return observations is not None and observations.name in names


def _is_row(
    stem: str, namespace: str, key: str, others: Callable[[bytes], bool] | None, line: bytes
) -> bool:
    """Whether a row of a JSON file is this entry, or one of `others`."""
    if others is not None and others(line):
        return True
    with suppress(ValueError):
        row = json.loads(line)
        return row.get("key") == key and namespace_in(row, stem) == namespace
    return False


# Words long enough to tell that one text was made of another.
_WORD = re.compile(rb"[0-9A-Za-z_\x80-\xff-]{8,}")
# A word that no other text has by chance: it has a digit or letters of another alphabet, or is
# long.
_TELLING = re.compile(rb"(?!\d{4}-\d\d-\d\d)(?:(?=.*[0-9\x80-\xff])|.{16})", re.DOTALL)
# Characters that continue a longer word, address or title: `notes/c-1`, `notes/c/d`, `C++`, `C#`.
_ADDRESS_SIGN = re.compile(rb"[0-9A-Za-z_\x80-\xff/+#-]")
# Header lines that we write: two notes that share them share nothing of a person's.
_OUR_KEYS = re.compile(
    rb"(?:(?:created|updated|accessed|expires|fired|due|acked)_at|phase|category|scope|type): .*"
)


def _telling_words(data: bytes) -> list[bytes]:
    """The words of a text that no other text holds by chance."""
    return [word for word in _WORD.findall(data) if _TELLING.match(word)]


# Header lines that other notes may have alike; their words count.
_SHARED = b"source: ", b"namespace: ", b"content_hash: "
# A shorter line is too common to show that a text was copied.
_LEAST_LINE_CHARACTERS = 16
# Lines of a text that are looked for elsewhere.
_MOST_LINES = 100
# Notes named that mention what is erased.
_MOST_MENTIONS = 20


@dataclass(slots=True)
class Needles:
    """The texts to search for: `words` all at once, and at most 100 `lines`, one by one."""

    words: set[bytes] = field(default_factory=set)
    lines: list[bytes] = field(default_factory=list)

    @classmethod
    def of(cls, texts: Iterable[bytes], names: Sequence[str]) -> Needles:
        """The long words and lines of `texts`, and all of `names`."""
        words = set[bytes]()
        lines = dict.fromkeys(name.encode() for name in names)
        for text in texts:
            own_lines = [
                line
                for line_or_word in text.splitlines()
                if not _OUR_KEYS.fullmatch(line := line_or_word.strip())
            ]
            lines |= dict.fromkeys(
                line
                for line in own_lines
                if len(line) >= _LEAST_LINE_CHARACTERS and not line.startswith(_SHARED)
            )
            for line in own_lines:
                words.update(_telling_words(line))
        for name in names:
            words.update(_telling_words(name.encode()))
        words |= {word.lower() for word in words}
        step = len(lines) // _MOST_LINES + 1
        return cls(words, list(lines)[::step])

    def longest(self) -> int:
        """The length of the longest, in bytes."""
        return max(map(len, (*self.words, *self.lines)), default=0)

    def found_in(self, data: bytes | mmap.mmap) -> set[bytes]:
        """Those that are in `data`."""
        words = {word for match in _WORD.finditer(data) if (word := match[0]) in self.words}
        return words | {line for line in self.lines if data.find(line) >= 0}

    def names_in(self, data: bytes | mmap.mmap, found: Iterable[bytes]) -> bool:
        """Whether one of those that were `found` in `data` stands there whole: `notes/c` is in
        `notes/c-1`, which names another note."""
        return any(needle in self.words or _stands_whole(data, needle) for needle in found)


def _stands_whole(data: bytes | mmap.mmap, needle: bytes) -> bool:
    """Whether the needle is somewhere in `data` and no word or address goes on at its ends."""
    goes_on_before = _ADDRESS_SIGN.match(needle[:1]) is not None
    goes_on_after = _ADDRESS_SIGN.match(needle[-1:]) is not None
    position = data.find(needle)
    while position >= 0:
        end = position + len(needle)
        before = data[max(position - 1, 0) : position]
        is_begun = goes_on_before and _ADDRESS_SIGN.match(before)
        is_continued = goes_on_after and _ADDRESS_SIGN.match(data[end : end + 1])
        if not is_begun and not is_continued:
            return True
        position = data.find(needle, position + 1)
    return False


@dataclass(slots=True)
class Found:
    """`files` and `bytes` searched; `remains` are our own files that hold something, `mentions` the
    texts of others.
    """

    files: int = 0
    bytes: int = 0
    remains: list[str] = field(default_factory=list)
    mentions: list[str] = field(default_factory=list)


def _kept_texts(engine: Engine) -> Iterator[tuple[str, bytes]]:
    """The SHA-256 and the bytes of each replaced text that the history keeps."""
    history = engine.ledger.history
    for digest in history.texts():
        yield digest, history.text(digest, digest)


def search(
    engine: Engine, needles: Needles, folders: Sequence[str] = (), in_use: Sequence[str] = ()
) -> Found:
    """Look for the needles in all files of the home, in the notes and temporary files of projects
    elsewhere, and in the JSON files of `folders`. What the text of another note, or a kept one,
    holds is its author's: looked for nowhere else. Neither are the words of the names `in_use`."""
    findings = Found()
    theirs = dict[str, set[bytes]]()
    ours = dict[str, set[bytes]]()
    mentions = list[str]()
    roots = [source.root for source in engine.sources.values()]
    places = "\n".join([*roots, *folders, *in_use])
    # Names that are part of a project's place are not a trace of a note.
    known_words = needles.found_in(os.fsencode(f"{places}\n{places.lower()}"))
    for name, path, is_ours in _files(engine, folders):
        try:
            size, needles_in_file, is_named = _look_into(path, needles, known_words)
        except OSError:
            # The file is gone by now.
            continue
        if size is None:
            continue
        findings.files = findings.files + 1
        findings.bytes = findings.bytes + size
        new_words = needles_in_file - known_words
        if new_words:
            (ours if is_ours else theirs)[name] = new_words
        if is_named and not is_ours:
            mentions.append(name)
    schemas = SCHEMA.read_bytes() + LEDGER_SCHEMA.read_bytes()
    common = needles.found_in(schemas).union(*theirs.values())
    for digest, kept_text in _kept_texts(engine):
        new_words = needles.found_in(kept_text) - known_words
        common |= new_words
        if needles.names_in(kept_text, new_words):
            mentions.append(f"the kept text {digest[:8]} of another note")
    common |= {word.lower() for word in common}
    findings.remains = [name for name, new_words in ours.items() if new_words - common]
    findings.mentions = list(dict.fromkeys(mentions))[:_MOST_MENTIONS]
    return findings


def _look_into(
    path: str, needles: Needles, known_words: set[bytes]
) -> tuple[int | None, set[bytes], bool]:
    """Search a file. Returns its size in bytes, the needles in it, and whether a new needle is a
    whole word there.

    path: the file.
    needles: the texts to search for.
    known_words: needles that do not count as new.

    The size is None if it is not a regular file. Whole words are not looked for in a database.
    Raises OSError.
    """
    status = os.stat(path, follow_symlinks=False)
    if not stat.S_ISREG(status.st_mode):
        return None, set(), False
    if not status.st_size:
        return 0, set(), False
    if beside_sqlite.is_of_sqlite(path):
        needles_in_file = set[bytes]()
        for piece in beside_sqlite.pieces(path, needles.longest()):
            needles_in_file |= needles.found_in(piece)
        return status.st_size, needles_in_file, False
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        with mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) as data:
            needles_in_file = needles.found_in(data)
            is_named = needles.names_in(data, needles_in_file - known_words)
            return status.st_size, needles_in_file, is_named
    except ValueError:
        # The file is empty by now.
        return 0, set(), False
    finally:
        os.close(descriptor)


def _folders_of_home(layout: Layout) -> Iterator[tuple[str, list[str], list[str]]]:
    """The folders of the home, and of its private folder if it is outside."""
    yield from walk(str(layout.root))
    if layout.is_apart:
        yield from walk(str(layout.private))


def _name_in_home(layout: Layout, path: str) -> str:
    """The name by which people know a file of the home, the reverse of `Layout.place`."""
    private = str(layout.private)
    if layout.is_apart and path.startswith(f"{private}/"):
        return os.path.join(PRIVATE, os.path.relpath(path, private))
    return os.path.relpath(path, str(layout.root))


SearchedFile = tuple[str, str, bool]
"""(name for people, path, whether it is ours and not the text of an author)"""


def _files(engine: Engine, folders: Iterable[str]) -> Iterator[SearchedFile]:
    """The files to search, in the home, in projects elsewhere and in `folders`."""
    yield from _files_of_home(engine)
    home = f"{engine.layout.root}/"
    for source in engine.sources.values():
        if not source.root.startswith(home):
            yield from _files_elsewhere(source)
    for folder in folders:
        for name in sorted(os.listdir(folder)):
            yield f"{folder}/{name}", os.path.join(folder, name), False


def _files_of_home(engine: Engine) -> Iterator[SearchedFile]:
    layout = engine.layout
    roots = [f"{source.root}/" for source in engine.sources.values()]
    for folder, _, names in _folders_of_home(layout):
        is_kept = folder.startswith(str(layout.texts))
        is_of_project = f"{folder}/".startswith(tuple(roots))
        for name in sorted(names):
            path = os.path.join(folder, name)
            label = _name_in_home(layout, path)
            if is_kept:
                label = f"the kept text {name[:8]} of another note"
            is_note = is_of_project and not name.startswith(TEMP_PREFIX)
            is_theirs = is_kept or is_note or path == str(engine.settings.file)
            yield label, path, not is_theirs


def _files_elsewhere(source: Source) -> Iterator[SearchedFile]:
    """The notes of a project outside the home, and our temporary files there."""
    if not os.path.isdir(source.root):
        yield source.name, source.root, False
    for folder, _, names in walk(source.root):
        for name in sorted(names):
            path = os.path.join(folder, name)
            relative_path = os.path.relpath(path, source.root)
            is_temporary = name.startswith(TEMP_PREFIX)
            if is_temporary or source.is_note(relative_path):
                yield f"{source.name}/{relative_path}", path, is_temporary
