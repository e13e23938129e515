"""What the journal and the history hold of some notes, followed back through moves, categories and merges."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from commonplace.engine.engine import Engine
from commonplace.engine.locations import Location, own_root
from commonplace.engine.writing import as_file, id_list
from commonplace.errors import NotFound, StorageError
from commonplace.note.model import CATEGORY_PROJECT
from commonplace.store.inplace.graph_lines import BadLine, GraphRelation, parse_graph_object, parse_line
from commonplace.store.journal import ERASE, LINES, ORIGINS, Change, Touched
from commonplace.store.layout import PRIVATE

OUR_REMOVAL = ("delete", "", "")
"""Verb, project and path of the change that takes away what is being erased: no other change is about no place."""
_FILES = ("put", "remove", "unlink", "symlink")


class Trail:
    """The trail of the notes at `places` now, or last; `ids` are theirs, `entities` those of graph files by the file.

    After `follow`: `files` has, for each change that touched one of them, its steps as they are to be, None for one
    that goes; `texts` are the kept versions, `met` the places the journal knows, `ids` all that the versions had.
    """

    def __init__(
        self, engine: Engine, places: Sequence[Location], ids: Sequence[str], entities: Mapping[str, Sequence[str]]
    ):
        self._engine = engine
        self._history = engine.home.history
        self._now = set(places)
        self._every = set(places)
        self.ids = set(ids)
        self._heads = {each[:8] for each in ids}
        self._entities = {file: set(names) for file, names in entities.items()}
        self.files: dict[int, list[Touched | None]] = {}
        self.texts: list[bytes] = []
        self.met: set[Location] = set()

    def follow(self) -> None:
        """Walk back through the journal, from the latest change to the first."""
        for change in self._history.changes():
            is_removal = (change.verb, change.project, change.path) == OUR_REMOVAL
            gone = {at for at in reversed(range(len(change.files))) if is_removal or self._is_hit(change.files[at])}
            for at, each in enumerate(change.files):
                if at not in gone and (self._is_partner(each) if gone else self._is_named(each)):
                    gone.add(at)
                    self._enter((each.project, each.path, each.root))
            for at in gone:
                self._keep_text(change.files[at])
            left = [None if at in gone else self._without_entities(each) for at, each in enumerate(change.files)]
            if left != change.files:
                self.files[change.number] = left
        self._drop_folders()

    def _is_hit(self, each: Touched) -> bool:
        """Whether a step is about one of the notes; where it lay before is where the walk goes on."""
        here, there = (each.project, each.path, each.root), (each.project, each.to, each.root)
        if each.project == PRIVATE:  # answers to questions: their keys name what they are about
            data = self._kept(each.old) or b""
            return any(name.encode() in data for name in (*self.ids, *(os.path.join(*at[:2]) for at in self._every)))
        if each.do != "move":
            is_hit = each.do in _FILES and here in self._now
            self.met |= {here} if is_hit else set()
            return is_hit
        if there in self._now:
            self.met.add(there)
            self._now.remove(there)
            self._enter(here)
            return True
        self._now.discard(here)  # before, another note lay there
        below = [place for place in self._now if _is_below(place, there)] if each.old is None else []
        for place in below:  # a folder that moved: the line is about the folder
            self._now.remove(place)
            self._enter((each.project, each.path + place[1][len(each.to) :], each.root))
        return False

    def _enter(self, place: Location) -> None:
        self._now.add(place)
        self._every.add(place)

    def _is_partner(self, each: Touched) -> bool:
        """Whether a step of a change to the note removed it in its category before, or one merged into it."""
        return (each.do == "remove" and self._has_id(each)) or self._is_named(each)

    def _is_named(self, each: Touched) -> bool:
        """Whether a memory's file has the id in its name, wherever somebody moved it by hand."""
        if each.project != CATEGORY_PROJECT or each.do not in _FILES:
            return False
        return each.path[-11:-3] in self._heads and (each.old is None or self._has_id(each))

    def _has_id(self, each: Touched) -> bool:
        data = self._kept(each.old)
        note = self._engine.parse(each.project, each.path, as_file(data)) if data is not None else None
        return note is not None and note.own_id and note.id in self.ids

    def _keep_text(self, each: Touched) -> None:
        """Remember a version's text, and by which ids it is named."""
        data = self._kept(each.old)
        if data is not None:
            self.texts.append(data)
            note = self._engine.parse(each.project, each.path, as_file(data))
            if note is not None and note.own_id:
                found = {note.id, *id_list(note.header.get("merged"))}
                self.ids |= found
                self._heads |= {each[:8] for each in found}

    def _kept(self, digest: str | None) -> bytes | None:
        try:
            return self._history.text(digest, "") if digest else None
        except (NotFound, StorageError):
            return None

    def _without_entities(self, each: Touched) -> Touched | None:
        """A change to a graph file without the lines of the entities; what is left of it can still be undone."""
        names = self._entities.get(os.path.realpath(each.file)) if each.do == LINES else None
        if not names:
            return each
        if each.new is None:  # the whole file, kept because it was written in place
            return None
        try:
            kept = self._engine.home.lines.kept(each)
        except (NotFound, StorageError, ValueError):
            return None  # nothing could undo it, and nobody can tell what the rest holds
        lines = [*(line for _, old, new in kept.replaced for line in (old, new)), *kept.added]
        self.texts += (gone := [line for line in lines if _names(line, names)])
        if not gone:
            return each
        self.met |= {place for place in self._every if place[0] == each.project}
        replaced = [row for row in kept.replaced if not (_names(row[1], names) or _names(row[2], names))]
        added = [line for line in kept.added if not _names(line, names)]
        return self._engine.home.lines.keep(each, replaced, added) if replaced or added else None

    def _drop_folders(self) -> None:
        """The names of folders that went with the notes go, too."""
        above = {(project, path[:at], root) for project, path, root in self._every if project != CATEGORY_PROJECT
                 for at, sign in enumerate(path) if sign == "/"}  # fmt: skip
        gone = {each for each in above if not os.path.isdir(os.path.join(_root(self._engine, each), each[1]))}
        for change in self._history.changes() if gone else ():
            left = self.files.get(change.number, [*change.files])
            for at, each in enumerate(change.files):
                path = each.to if each.do == "move" else each.path
                if _is_folder(each) and (each.project, path, each.root) in gone:
                    held = any(one and not _is_folder(one) and f"{one.path}/".startswith(f"{path}/") for one in left)
                    left[at] = each if held else None
            if left != change.files:
                self.files[change.number] = left

    def rewritten(self, moment: str) -> list[Change]:
        """All changes, the oldest first, without the notes: one that was about nothing else leaves its number, and
        `moment`."""
        changes = [self._rewritten(each, moment) for each in self._history.changes(origins=True)]
        return changes[::-1]

    def _rewritten(self, change: Change, moment: str) -> Change:
        if change.verb == ORIGINS:
            return replace(change, files=[f for f in change.files if (f.project, f.path, f.root) not in self._every])
        steps = self.files.get(change.number)
        if steps is None:
            return change
        left = [each for each in steps if each is not None]
        if all(each.do in ("mkdir", "rmdir") for each in left):
            return Change(change.number, moment, ERASE, "", "", None, None, [], change.undoes)
        gone = {(each.project, path) for each, now in zip(change.files, steps, strict=True) if now is None
                for path in (each.path, each.to)}  # fmt: skip
        if (change.project, change.path) in gone:
            about = next(each for each in left if each.do not in ("mkdir", "rmdir"))
            change = replace(change, project=about.project, path=about.to or about.path)
        erased = sum(now != each and not _is_folder(each) for each, now in zip(change.files, steps, strict=True))
        return replace(change, files=left, details={"erased": erased})


def written_by(engine: Engine, agent: str) -> Collection[Location]:
    """Where the files an agent made lie now, or lay last."""
    made: dict[Location, bool] = {}
    for change in reversed(list(engine.home.history.changes())):
        names = {posixpath.basename(each.path): at for each in change.files if each.do == "remove"
                 if (at := (each.project, each.path, each.root)) in made}  # fmt: skip
        for each in change.files:
            here, there = (each.project, each.path, each.root), (each.project, each.to, each.root)
            if each.do == "put" and each.old is None and each.project in engine.stores:
                before = names.get(posixpath.basename(each.path))  # into another category
                made[here] = made.pop(before) if before is not None else change.agent == agent
            elif each.do == "move":
                for place in [place for place in made if place == here or _is_below(place, here)]:
                    made[each.project, there[1] + place[1][len(here[1]) :], each.root] = made.pop(place)
    return [place for place, is_theirs in made.items() if is_theirs]


def _is_folder(each: Touched) -> bool:
    return each.do in ("mkdir", "rmdir") or (each.do == "move" and each.old is None)


def _is_below(place: Location, folder: Location) -> bool:
    return (place[0], place[2]) == (folder[0], folder[2]) and place[1].startswith(f"{folder[1]}/")


def _root(engine: Engine, place: Location) -> str:
    return place[2] or own_root(engine, place[0]) or ""


def _names(line: bytes, names: Collection[str]) -> bool:
    """Whether a line of a graph file is one of these entities, or a relation at one."""
    try:
        found = parse_graph_object(parse_line(line) or {})
    except BadLine:
        return False
    if isinstance(found, GraphRelation):
        return found.source in names or found.target in names
    return found is not None and found.name in names
