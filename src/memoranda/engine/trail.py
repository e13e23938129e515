"""What is left of some notes: what the journal and the history hold of them, followed back through
moves, categories and merges; and what stands in any file of the home, searched for words and lines
of what was erased."""

from __future__ import annotations

import mmap
import os
import posixpath
import re
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from memoranda.engine.engine import Engine
from memoranda.engine.transaction import Location, own_root
from memoranda.engine.writing import as_file, id_list
from memoranda.errors import NotFound, StorageError
from memoranda.index.database import SCHEMA
from memoranda.ledger.change import ERASE, LINES, Change, Touched
from memoranda.ledger.database import SCHEMA as LEDGER_SCHEMA
from memoranda.note.entity import GraphRelation
from memoranda.note.model import CATEGORY_PROJECT
from memoranda.store.inplace.graph_lines import said_by
from memoranda.store.layout import PRIVATE, TEMP_PREFIX
from memoranda.store.walking import walk

OUR_REMOVAL = ("delete", "", "")
"""Verb, project and path of the change that takes away what is being erased: no other change is
about no place.
"""
_FILES = ("put", "remove", "unlink", "symlink")


class Trail:
    """The trail of the notes at `places` now, or last; `ids` are theirs, `entities` those of graph
    files by the file.

    After `follow`: `files` has, for each change that touched one of them, its steps as they are to
    be, None for one that goes; `texts` are the kept versions, `met` the places the journal knows,
    `ids` all that the versions had.
    """

    def __init__(
        self,
        engine: Engine,
        places: Sequence[Location],
        ids: Sequence[str],
        entities: Mapping[str, Sequence[str]],
    ):
        self._engine = engine
        self._history = engine.home.history
        self._now = set(places)
        self._every = set(places)
        self.ids = set(ids)
        self._heads = {each[:8] for each in ids}
        self._entities = {file: set(names) for file, names in entities.items()}
        self.files: dict[int, list[Touched | None]] = {}
        self._changes: dict[int, Change] = {}
        self.texts: list[bytes] = []
        self.met: set[Location] = set()

    def follow(self) -> None:
        """Walk back through the journal, from the latest change to the first."""
        for change in self._history.changes():
            is_removal = (change.verb, change.project, change.path) == OUR_REMOVAL
            gone = {
                at
                for at in reversed(range(len(change.files)))
                if is_removal or self._is_hit(change.files[at])
            }
            for at, each in enumerate(change.files):
                # A step of a change to the note removed it in its category before, or one merged
                # into it.
                is_partner = (
                    bool(gone) and each.do == "remove" and at not in gone and self._has_id(each)
                )
                # Or a memory's file has the id in its name, wherever somebody moved it by hand.
                is_named = (
                    each.project == CATEGORY_PROJECT
                    and each.do in _FILES
                    and each.path[-11:-3] in self._heads
                )
                if at not in gone and (
                    is_partner or (is_named and (each.old is None or self._has_id(each)))
                ):
                    gone.add(at)
                    self._enter((each.project, each.path, each.root))
            # Remember the version's text, and by which ids it is named
            for at in gone:
                each = change.files[at]
                data = self._kept(each.old)
                if data is not None:
                    self.texts.append(data)
                    note = self._engine.parse(each.project, each.path, as_file(data))
                    found = (
                        {note.id, *id_list(note.header.get("merged"))}
                        if note is not None and note.own_id
                        else ()
                    )
                    self.ids.update(found)
                    self._heads.update(id[:8] for id in found)
            left = [
                None if at in gone else self._without_entities(file)
                for at, file in enumerate(change.files)
            ]
            if left != change.files:
                self._note(change, left)
        self._drop_folders()

    def _note(self, change: Change, left: list[Touched | None]) -> None:
        self.files[change.number] = left
        self._changes[change.number] = change

    def _is_hit(self, each: Touched) -> bool:
        """Whether a step is about one of the notes; where it lay before is where the walk goes on."""
        here = (each.project, each.path, each.root)
        there = (each.project, each.to, each.root)
        # Answers to questions: their keys name what they are about
        if each.project == PRIVATE:
            data = each.path.encode() + (self._kept(each.old) or b"")
            return any(
                name.encode() in data
                for name in (*self.ids, *(os.path.join(*at[:2]) for at in self._every))
            )
        if each.do != "move":
            is_hit = each.do in _FILES and here in self._now
            self.met |= {here} if is_hit else set()
            return is_hit
        if there in self._now:
            self.met.add(there)
            self._now.remove(there)
            self._enter(here)
            return True
        # before, another note lay there
        self._now.discard(here)
        if each.old is None:
            below = [place for place in self._now if _is_below(place, there)]
        else:
            below = []
        # A folder that moved: the line is about the folder
        for place in below:
            self._now.remove(place)
            self._enter((each.project, each.path + place[1][len(each.to) :], each.root))
        return False

    def _enter(self, place: Location) -> None:
        self._now.add(place)
        self._every.add(place)

    def _has_id(self, each: Touched) -> bool:
        data = self._kept(each.old)
        if data is not None:
            note = self._engine.parse(each.project, each.path, as_file(data))
        else:
            note = None
        return note is not None and note.own_id and note.id in self.ids

    def _kept(self, digest: str | None) -> bytes | None:
        try:
            if digest:
                return self._history.text(digest, "")
            return None
        except (NotFound, StorageError):
            return None

    def _without_entities(self, each: Touched) -> Touched | None:
        """A change to a graph file without the lines of the entities; what is left of it can still
        be undone.
        """
        if each.do == LINES:
            names = self._entities.get(os.path.realpath(each.file))
        else:
            names = None
        if not names:
            return each
        # The whole file, kept because it was written in place
        if each.new is None:
            return None
        try:
            kept = self._engine.home.lines.kept(each)
        except (NotFound, StorageError, ValueError):
            # Nothing could undo it, and nobody can tell what the rest holds
            return None
        lines = [*(line for _, old, new in kept.replaced for line in (old, new)), *kept.added]
        self.texts += (gone := [line for line in lines if _names(line, names)])
        if not gone:
            return each
        self.met |= {place for place in self._every if place[0] == each.project}
        replaced = [
            row for row in kept.replaced if not (_names(row[1], names) or _names(row[2], names))
        ]
        added = [line for line in kept.added if not _names(line, names)]
        if replaced or added:
            return self._engine.home.lines.keep(each, replaced, added)
        return None

    def _drop_folders(self) -> None:
        """The names of folders that went with the notes go, too."""
        above = {
            (project, path[:at], root)
            for project, path, root in self._every
            if project != CATEGORY_PROJECT
            for at, sign in enumerate(path)
            if sign == "/"
        }
        roots = {each: each[2] or own_root(self._engine, each[0]) or "" for each in above}
        lost = {
            each for each, root in roots.items() if not os.path.isdir(os.path.join(root, each[1]))
        }
        for change in self._history.changes() if lost else ():
            left = self.files.get(change.number, [*change.files])
            for at, file in enumerate(change.files):
                path = file.to if file.do == "move" else file.path
                if _is_folder(file) and (file.project, path, file.root) in lost:
                    held = any(
                        one and not _is_folder(one) and f"{one.path}/".startswith(f"{path}/")
                        for one in left
                    )
                    left[at] = file if held else None
            if left != change.files:
                self._note(change, left)

    def revised(self, moment: str) -> dict[int, Change]:
        """The changes as they are to be without the notes, by number: one that was about nothing
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
        left = [touched for touched in steps if touched is not None]
        if all(touched.do in ("mkdir", "rmdir") for touched in left):
            return Change(change.number, moment, ERASE, "", "", None, None, [], change.undoes)
        pairs = [*zip(change.files, steps, strict=True)]
        gone = {
            (touched.project, path)
            for touched, now in pairs
            if now is None
            for path in (touched.path, touched.to)
        }
        if (change.project, change.path) in gone:
            about = next(touched for touched in left if touched.do not in ("mkdir", "rmdir"))
            change = replace(change, project=about.project, path=about.to or about.path)
        erased = sum(now != touched and not _is_folder(touched) for touched, now in pairs)
        return replace(change, files=left, details={"erased": erased})


def written_by(engine: Engine, agent: str) -> Collection[Location]:
    """Where the files an agent made lie now, or lay last."""
    made: dict[Location, bool] = {}
    for change in reversed(list(engine.home.history.changes())):
        names = {
            posixpath.basename(file.path): at
            for file in change.files
            if file.do == "remove"
            if (at := (file.project, file.path, file.root)) in made
        }
        for file in change.files:
            here = (file.project, file.path, file.root)
            there = (file.project, file.to, file.root)
            if file.do == "put" and file.old is None and file.project in engine.stores:
                # Into another category
                before = names.get(posixpath.basename(file.path))
                made[here] = made.pop(before) if before is not None else change.agent == agent
            elif file.do == "move":
                for place in [place for place in made if place == here or _is_below(place, here)]:
                    made[file.project, there[1] + place[1][len(here[1]) :], file.root] = made.pop(
                        place
                    )
    return [place for place, is_theirs in made.items() if is_theirs]


def _is_folder(each: Touched) -> bool:
    return each.do in ("mkdir", "rmdir") or (each.do == "move" and each.old is None)


def _is_below(place: Location, folder: Location) -> bool:
    return (place[0], place[2]) == (folder[0], folder[2]) and place[1].startswith(f"{folder[1]}/")


def _names(line: bytes, names: Collection[str]) -> bool:
    """Whether a line of a graph file is one of these entities, or a relation at one."""
    found = said_by(line)
    if isinstance(found, GraphRelation):
        return found.source in names or found.target in names
    return found is not None and found.name in names


_WORD = re.compile(rb"[0-9A-Za-z_\x80-\xff-]{8,}")
_TELLING = re.compile(rb"(?!\d{4}-\d\d-\d\d)(?:(?=.*[0-9\x80-\xff])|.{16})", re.DOTALL)
"""What a word must be that no other text holds by chance: one with a digit or of another alphabet,
or a long one.
"""
_OUR_KEYS = re.compile(
    rb"(?:(?:created|updated|accessed|expires|fired|due|acked)_at|phase|category|scope|type): .*"
)
_SHARED = b"source: ", b"namespace: ", b"content_hash: "
"""Header lines that other notes may have alike; their words count."""
_LEAST_LINE = 16
_MOST_LINES = 100
_MOST_MENTIONS = 20


@dataclass(slots=True)
class Needles:
    """What to look for: `words` all at once, and at most 100 `lines` one by one."""

    words: set[bytes] = field(default_factory=set)
    lines: list[bytes] = field(default_factory=list)

    @classmethod
    def of(cls, texts: Iterable[bytes], names: Sequence[str]) -> Needles:
        """The long words and lines of `texts`, and all of `names`."""
        words = set[bytes]()
        lines = dict.fromkeys(name.encode() for name in names)
        for text in texts:
            own = [
                line for each in text.splitlines() if not _OUR_KEYS.fullmatch(line := each.strip())
            ]
            lines |= dict.fromkeys(
                line for line in own if len(line) >= _LEAST_LINE and not line.startswith(_SHARED)
            )
            words |= {each for line in own for each in _WORD.findall(line) if _TELLING.match(each)}
        words |= {
            each for name in names for each in _WORD.findall(name.encode()) if _TELLING.match(each)
        }
        words |= {word.lower() for word in words}
        step = len(lines) // _MOST_LINES + 1
        return cls(words, list(lines)[::step])

    def found_in(self, data: bytes | mmap.mmap) -> set[bytes]:
        """Those that stand in `data`."""
        words = {word for match in _WORD.finditer(data) if (word := match[0]) in self.words}
        return words | {line for line in self.lines if data.find(line) >= 0}


@dataclass(slots=True)
class Found:
    """`files` and `bytes` searched; `remains` are our own files that hold something, `mentions` the
    texts of others.
    """

    files: int = 0
    bytes: int = 0
    remains: list[str] = field(default_factory=list)
    mentions: list[str] = field(default_factory=list)


def search(engine: Engine, needles: Needles, folders: Sequence[str] = ()) -> Found:
    """Look for the needles in all files of the home, in the notes and temporary files of projects
    elsewhere, and in the JSON files of `folders`. What the text of another note, or a kept one,
    holds is its author's: looked for nowhere else."""
    found = Found()
    theirs = dict[str, set[bytes]]()
    ours = dict[str, set[bytes]]()
    places = "\n".join([*(store.root for store in engine.stores.values()), *folders])
    # Where a project lies is no trace of a note
    known = needles.found_in(os.fsencode(f"{places}\n{places.lower()}"))
    for name, path, is_ours in _files(engine, folders):
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            # Gone meanwhile
            continue
        try:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                continue
            found.files = found.files + 1
            found.bytes = found.bytes + status.st_size
            if not status.st_size:
                continue
            with mmap.mmap(fd, 0, access=mmap.ACCESS_READ) as data:
                held = needles.found_in(data) - known
                if held:
                    (ours if is_ours else theirs)[name] = held
        finally:
            os.close(fd)
    schemas = SCHEMA.read_bytes() + LEDGER_SCHEMA.read_bytes()
    common = needles.found_in(schemas).union(*theirs.values())
    for digest in engine.home.history.texts():
        held = needles.found_in(engine.home.history.text(digest, digest)) - known
        common |= held
        if held:
            theirs[f"the kept text {digest[:8]} of another note"] = held
    common |= {each.lower() for each in common}
    found.remains = [name for name, held in ours.items() if held - common]
    found.mentions = list(theirs)[:_MOST_MENTIONS]
    return found


def _files(engine: Engine, folders: Iterable[str]) -> Iterator[tuple[str, str, bool]]:
    """(name for people, path, whether it is ours and not the text of an author) of every file to be
    searched.
    """
    layout = engine.layout
    home = str(layout.root)
    objects = str(layout.texts)
    roots = {store.root: name for name, store in engine.stores.items()}
    for folder, _, names in walk(home):
        is_kept = folder.startswith(objects)
        project = any(f"{folder}/".startswith(f"{root}/") for root in roots)
        for each in sorted(names):
            path = os.path.join(folder, each)
            if is_kept:
                shown = f"the kept text {each[:8]} of another note"
            else:
                shown = os.path.relpath(path, home)
            is_theirs = (
                is_kept
                or path == str(engine.settings.file)
                or (project and not each.startswith(TEMP_PREFIX))
            )
            yield shown, path, not is_theirs
    for root, name in roots.items():
        if root.startswith(f"{home}/"):
            continue
        if not os.path.isdir(root):
            yield name, root, False
        for folder, _, names in walk(root):
            for each in sorted(names):
                path = os.path.join(folder, each)
                if each.startswith(TEMP_PREFIX) or engine.stores[name].is_note(
                    os.path.relpath(path, root)
                ):
                    yield (
                        f"{name}/{os.path.relpath(path, root)}",
                        path,
                        each.startswith(TEMP_PREFIX),
                    )
    for folder in folders:
        for each in sorted(os.listdir(folder)):
            yield f"{folder}/{each}", os.path.join(folder, each), False
