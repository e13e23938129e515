"""Find every trace of notes, before and after the notes are erased.

`Trail` follows the notes back through the ledger: through moves, changes of category and merges. It
says which steps and texts must be removed from the ledger. `search` looks in all files for words
and lines of the erased texts. `Needles` are these words and lines.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from functools import partial
from heapq import heappop, heappush
from typing import NamedTuple

from memoranda.engine.engine import Engine
from memoranda.engine.history.former_places import Departure, Rename
from memoranda.engine.writing import as_file, id_list
from memoranda.errors import NotFound, StorageError
from memoranda.index.database import SCHEMA
from memoranda.index.full_text import has_any_of
from memoranda.ledger.change import ERASE, Change, Location, Touched
from memoranda.ledger.database import SCHEMA as LEDGER_SCHEMA
from memoranda.ledger.history import ABOVE_ALL_NUMBERS
from memoranda.note.entity import GraphRelation
from memoranda.note.model import CATEGORY_PROJECT
from memoranda.note.names import ID_DIGITS
from memoranda.sources import beside_sqlite
from memoranda.sources.graph_lines import graph_object_in
from memoranda.sources.json_rows import namespace_in, stem_of
from memoranda.sources.layout import PRIVATE, TEMP_PREFIX, Layout
from memoranda.sources.line_change import KeptLines
from memoranda.sources.source import Source
from memoranda.sources.step import StepKind
from memoranda.sources.walking import walk

OUR_REMOVAL = ("delete", "", "")
"""Verb, project and path of the change with which `erase` removes the notes themselves.

No other change with this verb has an empty project and path.
"""
_STEPS_ON_FILES = (StepKind.PUT, StepKind.REMOVE, StepKind.UNLINK, StepKind.SYMLINK)


def folders_above(path: str) -> Iterator[str]:
    """Yield the folders that a path is in: `a` and `a/b` for `a/b/c.md`."""
    for position, sign in enumerate(path):
        if sign == "/":
            yield path[:position]


class _NumberQueue:
    """A queue that returns change numbers from the highest to the lowest, each once.

    last_number: the number that `next` returned last. Only lower numbers can still follow.
    """

    def __init__(self, limit: int):
        """Make an empty queue for numbers below `limit`."""
        self.last_number = limit
        # The numbers are stored as negative ones, because `heappop` returns the lowest.
        self._heap: list[int] = []

    def add(self, numbers: Iterable[int]) -> None:
        """Add numbers. A number that is not below `last_number` comes too late and is ignored."""
        for number in numbers:
            if number < self.last_number:
                heappush(self._heap, -number)

    def next(self) -> int | None:
        """Take the highest number out of the queue and return it. None if the queue is empty."""
        while self._heap:
            number = -heappop(self._heap)
            # A number may have been added twice.
            if number < self.last_number:
                self.last_number = number
                return number
        return None


class Trail:
    """Follows notes back through the history, and finds every step and text that is about them.

    Arguments:
    places: where the notes are now. For notes that are gone, where they were last.
    renames: how other programs renamed the notes.
    departures: when other programs took other notes away from the places of the notes.
    ids: the ids of the notes.
    entities: the names of the entities to erase, by graph file.
    rows: (folder, namespace, key) of the rows of JSON files to erase.

    Results of `follow`:
    ids: the given ids, and the ids of older versions of the notes.
    files: for each change that is about one of the notes, the steps that remain of it, by the
        change's number. A step that must be removed is None.
    texts: the older versions of the notes that the history has.
    met: the places of the notes that the ledger knows.
    """

    def __init__(
        self,
        engine: Engine,
        places: Sequence[Location],
        renames: Iterable[Rename],
        departures: Iterable[Departure],
        ids: Sequence[str],
        entities: Mapping[str, Sequence[str]],
        rows: Iterable[tuple[str, str, str]] = (),
    ):
        self._engine = engine
        self._history = engine.ledger.history
        # Where the notes are. `follow` goes back from the newest change to the oldest, so these are
        # the places at the time of the change that it looks at.
        self._present_places = set(places)
        # All places where the notes ever were.
        self._all_places = set(places)
        # The renames and departures to apply, the latest last.
        self._renames = sorted(renames, key=lambda rename: rename.before)
        # Before a note was renamed to its new place, the changes there are about another note. If no
        # change touched the note there since the rename, all of them are.
        arrivals = [
            Departure(rename.new, before=rename.since or ABOVE_ALL_NUMBERS)
            for rename in self._renames
        ]
        self._departures = sorted([*departures, *arrivals], key=lambda departure: departure.before)
        self.ids = set(ids)
        # The first digits of the ids.
        self._id_starts = {note_id[:ID_DIGITS] for note_id in ids}
        # For each graph file or JSON file, by its real path: functions that say whether a line must
        # be erased. A line for which one of them returns True is erased.
        self._line_tests: dict[str, list[Callable[[bytes], bool]]] = {
            file: [partial(_is_about_entity, names=frozenset(names))]
            for file, names in entities.items()
        }
        for folder, namespace, key in rows:
            stem = stem_of(namespace)
            file = os.path.realpath(os.path.join(folder, f"{stem}.json"))
            is_entry = partial(_is_entry, stem, namespace, key)
            self._line_tests.setdefault(file, []).append(is_entry)

        # The results of `follow`, which the class describes.
        self.files: dict[int, list[Touched | None]] = {}
        self.texts: list[bytes] = []
        self.met: set[Location] = set()
        # The changes in `files`, by number, as they were.
        self._changes: dict[int, Change] = {}
        # The SHA-256 of all texts that were looked at.
        self._digests_looked_at: set[str | None] = set()

        # The numbers of the changes to look at, from the newest to the oldest, and the projects
        # whose moves of folders are among them.
        self._queue = _NumberQueue(ABOVE_ALL_NUMBERS)
        self._queued_projects: set[str] = set()

    def follow(self) -> None:
        """Walk back through the changes that may be about the notes, from the latest to the first.

        The results are in `ids`, `files`, `texts` and `met`.
        """
        self._queue.add(self._history.numbers_about(*OUR_REMOVAL))
        self._queue.add(self._history.numbers_of_private_rows())
        self._queue.add(self._history.numbers_in_place(self._holds_erased_lines))
        for place in self._present_places:
            self._queue_changes_at(place, self._queue.last_number)
        for rename in self._renames:
            self._queue_changes_at(rename.old, rename.before)
        for id_start in self._id_starts:
            self._queue.add(self._history.numbers_with_id(id_start, self._queue.last_number))
        while (number := self._queue.next()) is not None:
            change = self._history.change(number)
            if change is not None:
                self._take_back_renames(number)
                self._visit(change)
        self._drop_lost_folders()

    def _take_back_renames(self, number: int) -> None:
        """Let the present places be those before the renames that came after a change.

        The places that the notes had not reached yet go, and the former places come.

        number: the number of the change, which is the next to look at.
        """
        while self._departures and self._departures[-1].before > number:
            departure = self._departures.pop()
            self._present_places.discard(departure.place)
        while self._renames and self._renames[-1].before > number:
            rename = self._renames.pop()
            self._present_places.add(rename.old)
            self._all_places.add(rename.old)

    def _queue_changes_at(self, place: Location, number: int) -> None:
        """Add the changes of a place below `number` to the queue.

        Moves of folders in the same project are added, too, because a note moves with its folder.
        """
        self._queue.add(self._history.numbers_at(place.project, place.path, number))
        if place.project not in self._queued_projects:
            self._queued_projects.add(place.project)
            self._queue.add(self._history.numbers_of_folder_moves(place.project, number))

    def _holds_erased_lines(self, file: str) -> bool:
        """Whether some lines of a graph file or JSON file must be erased."""
        return os.path.realpath(file) in self._line_tests

    def _visit(self, change: Change) -> None:
        """Find the steps of one change that are about the notes, and learn from their texts.

        If there are any, `files` gets the remaining steps of the change.
        """
        erased_indexes = self._steps_at_present_places(change)
        erased_indexes |= self._steps_with_known_id(change, erased_indexes)
        for step_index in erased_indexes:
            self._learn_from_texts(change.files[step_index])
        remaining_steps = [
            None if step_index in erased_indexes else self._without_erased_lines(touched)
            for step_index, touched in enumerate(change.files)
        ]
        if remaining_steps != change.files:
            self._record(change, remaining_steps)

    def _steps_at_present_places(self, change: Change) -> set[int]:
        """Return the indexes of the steps that changed a file where one of the erased notes was then.

        Also follow the moves in the change: afterwards, the present places are those before it.
        """
        if (change.verb, change.project, change.path) == OUR_REMOVAL:
            return set(range(len(change.files)))
        step_indexes: set[int] = set()
        moves = change.moves_by_rewriting()
        # The steps are visited backwards: before a step that moved a note, earlier steps of the
        # change had the note at its old place.
        for step_index in reversed(range(len(change.files))):
            if step_index in moves:
                written_index = moves[step_index]
                if self._follow_rewriting(change.files[step_index], change.files[written_index]):
                    step_indexes |= {step_index, written_index}
            elif self._follow_step(change.files[step_index]):
                step_indexes.add(step_index)
        return step_indexes

    def _follow_rewriting(self, removed: Touched, written: Touched) -> bool:
        """Return whether a change moved one of the notes by writing it at another place.

        removed: the step that removed the note at its old place, which becomes a present place.
        written: the step that wrote it at its new place, where the note was not before.
        """
        if written.place not in self._present_places:
            # Another note left the place. So earlier changes at it were about that note.
            self._present_places.discard(removed.place)
            return False
        self.met.add(written.place)
        self._present_places.remove(written.place)
        self._add_place(removed.place)
        return True

    def _steps_with_known_id(self, change: Change, erased_indexes: Collection[int]) -> set[int]:
        """Return the indexes of further steps that are about the notes, judged by an id.

        erased_indexes: the steps that are about the notes because of their place.

        The places of the steps become places of the notes.
        """
        step_indexes: set[int] = set()
        for step_index, touched in enumerate(change.files):
            if step_index in erased_indexes:
                continue
            # A step found here counts for the steps behind it, too.
            has_erased_steps = bool(erased_indexes or step_indexes)
            if self._is_about_known_id(touched, has_erased_steps=has_erased_steps):
                step_indexes.add(step_index)
                self._add_place(touched.place)
        return step_indexes

    def _is_about_known_id(self, touched: Touched, *, has_erased_steps: bool) -> bool:
        """Whether a step is about one of the notes, judged by the id in its text or file name.

        touched: the step.
        has_erased_steps: whether another step of the same change is about the notes. In this case,
            a step that removes a file with the id of a note is also about the note: the note
            changed its category, or was merged.
        """
        if has_erased_steps and touched.do == StepKind.REMOVE and self._has_id(touched):
            return True
        # Somebody may have moved a memory's file by hand, but its name still ends with the id, as in
        # `tea-1a2b3c4d.md`.
        id_start = touched.path.removesuffix(".md")[-ID_DIGITS:]
        is_named_by_id = (
            touched.project == CATEGORY_PROJECT
            and touched.do in _STEPS_ON_FILES
            and id_start in self._id_starts
        )
        # Two ids may begin alike. A file that was new has no old text that could tell.
        return is_named_by_id and (touched.old is None or self._has_id(touched))

    def _learn_from_texts(self, touched: Touched) -> None:
        """Collect the texts that the history has of a step in `texts`, and their ids in `ids`.

        The history has the text that the step replaced. It has the text that the step wrote only if
        another program replaced that text. Changes of files that are named by these ids are queued.

        touched: the step.
        """
        written_digest = touched.new if touched.do == StepKind.PUT else None
        for digest in (written_digest, touched.old):
            # The text that a change wrote is often the one that the next change replaced.
            if digest in self._digests_looked_at:
                continue
            self._digests_looked_at.add(digest)
            data = self._kept_text(digest)
            if data is not None:
                self._learn_from(touched, data)

    def _learn_from(self, touched: Touched, data: bytes) -> None:
        """Add a kept text of a step to `texts`, and the ids in its header to `ids`.

        Changes of files that are named by a new id are queued.

        touched: the step that read or wrote the text.
        data: the text.
        """
        self.texts.append(data)
        note = self._engine.parse(touched.project, touched.path, as_file(data))
        if note is None or not note.own_id:
            return
        ids = {note.id, *id_list(note.header.get("merged"))}
        self.ids |= ids
        for id_start in {note_id[:ID_DIGITS] for note_id in ids} - self._id_starts:
            self._id_starts.add(id_start)
            self._queue.add(self._history.numbers_with_id(id_start, self._queue.last_number))

    def _record(self, change: Change, remaining_steps: list[Touched | None]) -> None:
        """Record in `files` which steps of a change remain after the erasure.

        remaining_steps: the steps of the change in order. None in place of a step that must be
            removed.
        """
        self.files[change.number] = remaining_steps
        self._changes[change.number] = change

    def _follow_step(self, touched: Touched) -> bool:
        """Return whether a step is about a note at one of the present places.

        If the step moved the note, the place before the move replaces the present place: the
        earlier changes know the note there.

        touched: the step.
        """
        # A step in the private project stored the answer to a question.
        if touched.project == PRIVATE:
            return self._is_answer_about_note(touched)
        if touched.do == StepKind.MOVE:
            return self._follow_move(touched)
        is_about_note = touched.do in _STEPS_ON_FILES and touched.place in self._present_places
        if is_about_note:
            self.met.add(touched.place)
        return is_about_note

    def _follow_move(self, touched: Touched) -> bool:
        """Replace the present places by the places before a move.

        touched: the step. It moved a note or a folder.

        Returns whether the step moved one of the notes. A step that moved a folder is not about the
        notes in the folder.
        """
        new_place = touched.place._replace(path=touched.to)
        if new_place in self._present_places:
            self.met.add(new_place)
            self._present_places.remove(new_place)
            self._add_place(touched.place)
            return True
        # The step moved another note away from its place. So earlier changes at this place were
        # about that other note, even if one of our notes came to the place later.
        self._present_places.discard(touched.place)
        for place in list(self._present_places):
            if (place.project, place.root) != (touched.project, touched.root):
                continue
            old_path = touched.path_before_move(place.path)
            if old_path is not None:
                self._present_places.remove(place)
                self._add_place(place._replace(path=old_path))
        return False

    def _is_answer_about_note(self, touched: Touched) -> bool:
        """Whether an answer to a question names one of the notes by its id or place.

        touched: the step that stored the answer. Its path is the key of the question.
        """
        answer = self._kept_text(touched.old) or b""
        key_and_answer = touched.path.encode() + answer
        paths = [os.path.join(project, path) for project, path, _ in self._all_places]
        return any(name.encode() in key_and_answer for name in [*self.ids, *paths])

    def _add_place(self, place: Location) -> None:
        """Record that a note was at `place`, and queue the earlier changes of this place."""
        self._present_places.add(place)
        self._all_places.add(place)
        self._queue_changes_at(place, self._queue.last_number)

    def _has_id(self, touched: Touched) -> bool:
        """Whether the text that a step replaced has the id of one of the notes in its header."""
        data = self._kept_text(touched.old)
        if data is None:
            return False
        note = self._engine.parse(touched.project, touched.path, as_file(data))
        return note is not None and note.own_id and note.id in self.ids

    def _kept_text(self, digest: str | None) -> bytes | None:
        """Return the text with this SHA-256 from the history. None if the history does not have it."""
        if not digest:
            return None
        try:
            return self._history.text(digest, "")
        except (NotFound, StorageError):
            return None

    def _without_erased_lines(self, touched: Touched) -> Touched | None:
        """Return a step without the lines to erase, so that the rest can still be undone.

        Only a step that changes lines of a graph file or JSON file has such lines. Any other step
        is returned as it is. None means that no line remains, or that the history does not have the
        lines.

        touched: the step.
        """
        if touched.do != StepKind.LINES:
            return touched
        line_tests = self._line_tests.get(os.path.realpath(touched.file))
        # Nothing in this file will be erased line by line.
        if line_tests is None:
            return touched
        # The step removed the whole file, and the lines to erase with it.
        is_whole_file = touched.new is None
        if is_whole_file:
            return None
        try:
            kept_lines = self._engine.ledger.lines.lines_of(touched)
        except (NotFound, StorageError, ValueError):
            # The lines are lost or damaged. So the step cannot be undone anyway, and it may hold
            # erased lines.
            return None
        return self._without_lines(touched, kept_lines, partial(_passes_any, line_tests))

    def _without_lines(
        self, touched: Touched, kept_lines: KeptLines, is_erased: Callable[[bytes], bool]
    ) -> Touched | None:
        """Return a step without the lines to erase. None if no line remains.

        The erased lines are added to `texts`, and the notes that have them to `met`.

        touched: the step.
        kept_lines: its lines, as the history has them.
        is_erased: whether a line must be erased.
        """
        erased_lines = [line for line in kept_lines.all() if is_erased(line)]
        if not erased_lines:
            return touched
        self.texts += erased_lines
        # A place of a graph file is an entity. Which of the erased ones has the lines does not matter.
        self.met |= {place for place in self._all_places if place.project == touched.project}
        remaining_lines = kept_lines.without(is_erased)
        if not any(remaining_lines):
            return None
        return self._engine.ledger.lines.keep(touched, remaining_lines)

    def _drop_lost_folders(self) -> None:
        """Remove from the history the names of folders that disappeared with the notes.

        The name of a folder may tell what its notes were about.
        """
        lost_folders: set[Location] = set()
        for place in self._all_places:
            # The folders of categories are always there.
            if place.project == CATEGORY_PROJECT:
                continue
            root = place.root or self._engine.own_root(place.project) or ""
            for path in folders_above(place.path):
                if not os.path.isdir(os.path.join(root, path)):
                    lost_folders.add(place._replace(path=path))

        numbers: set[int] = set()
        for folder in lost_folders:
            numbers.update(self._history.numbers_at(folder.project, folder.path, ABOVE_ALL_NUMBERS))
        for number in sorted(numbers, reverse=True):
            change = self._history.change(number)
            if change is not None:
                self._drop_folders_from(change, lost_folders)

    def _drop_folders_from(self, change: Change, lost_folders: Collection[Location]) -> None:
        """Remove the steps on lost folders from a change.

        lost_folders: folders that no longer exist.

        A step stays if another remaining step of the change is about a file in the folder.
        """
        # `follow` may already have taken steps out of the change.
        remaining_steps = self.files.get(change.number, [*change.files])
        for step_index, step in enumerate(change.files):
            if not _is_folder(step):
                continue
            folder = step.place_after
            if folder not in lost_folders:
                continue
            is_in_use = any(
                remaining is not None and _is_on_file_below(remaining, folder.path)
                for remaining in remaining_steps
            )
            remaining_steps[step_index] = step if is_in_use else None
        if remaining_steps != change.files:
            self._record(change, remaining_steps)

    def revised(self, moment: str) -> dict[int, Change]:
        """Return the changes in `self.files`, by number, without their steps about the notes.

        If the steps that remain of a change only make or remove folders, an empty change with the
        same number takes its place.

        moment: the time stamp of an empty change.
        """
        return {
            number: _with_only(self._changes[number], steps, moment)
            for number, steps in self.files.items()
        }

    @property
    def places(self) -> Collection[Location]:
        """All places where the notes ever were."""
        return self._all_places


def _with_only(change: Change, steps: Sequence[Touched | None], moment: str) -> Change:
    """Return a change with only the remaining steps.

    steps: for each step of the change, the step that remains of it; None if nothing remains of it.
    moment: the time stamp of the result if no step remains, or only steps that make or remove
        folders.
    """
    remaining_steps = [touched for touched in steps if touched is not None]
    # Nothing that a person wrote remains. Only the number of the change stays in use.
    if all(touched.do in (StepKind.MKDIR, StepKind.RMDIR) for touched in remaining_steps):
        return Change(
            number=change.number,
            time=moment,
            verb=ERASE,
            project="",
            path="",
            agent=None,
            face=None,
            undoes=change.undoes,
        )

    removed_steps: list[Touched] = []
    erased_files = 0
    for touched, remaining_step in zip(change.files, steps, strict=True):
        if remaining_step is None:
            removed_steps.append(touched)
        # A step may also have lost only some of its lines.
        is_changed = remaining_step != touched
        if is_changed and not _is_folder(touched):
            erased_files += 1
    # The history must not name an erased note.
    if _is_about_one_of(change, removed_steps):
        change = _listed_under_another(change, remaining_steps)
    return replace(change, files=remaining_steps, details={"erased": erased_files})


def _is_about_one_of(change: Change, steps: Iterable[Touched]) -> bool:
    """Whether the history lists a change under the path of one of these steps.

    For a step that moved a file, the old and the new path count.
    """
    places: set[tuple[str, str]] = set()
    for touched in steps:
        places |= {(touched.project, touched.path), (touched.project, touched.to)}
    return (change.project, change.path) in places


def _listed_under_another(change: Change, steps: Iterable[Touched]) -> Change:
    """Return a copy of a change that is listed under another place.

    It is the place of the first of `steps` that is not about a folder.
    """
    first_touched = next(
        touched for touched in steps if touched.do not in (StepKind.MKDIR, StepKind.RMDIR)
    )
    return replace(change, project=first_touched.project, path=first_touched.path_after)


def _is_folder(touched: Touched) -> bool:
    """Whether a step is about a folder."""
    return touched.moves_folder or touched.do in (StepKind.MKDIR, StepKind.RMDIR)


def _is_on_file_below(touched: Touched, folder: str) -> bool:
    """Whether a step is about a file in a folder, given as a path."""
    return not _is_folder(touched) and f"{touched.path}/".startswith(f"{folder}/")


def _is_about_entity(line: bytes, names: Collection[str]) -> bool:
    """Whether a line of a graph file is an entity with one of these names, or a relation from or to
    one.
    """
    record = graph_object_in(line)
    if isinstance(record, GraphRelation):
        return record.source in names or record.target in names
    return record is not None and record.name in names


def _is_entry(stem: str, namespace: str, key: str, line: bytes) -> bool:
    """Whether a row of a JSON file is the entry with a namespace and key.

    stem: the name of the file without `.json`.
    line: the row as it is in the file.
    """
    try:
        row = json.loads(line)
    except ValueError:
        return False
    return row.get("key") == key and namespace_in(row, stem) == namespace


def _passes_any(line_tests: Sequence[Callable[[bytes], bool]], line: bytes) -> bool:
    """Whether one of the functions returns True for a line."""
    return any(is_erased(line) for is_erased in line_tests)


# Words that are long enough to show that one text was made from another text.
_WORD = re.compile(rb"[0-9A-Za-z_\x80-\xff-]{8,}")
# Matches a word that no other text has by chance. It has a digit or a letter of another alphabet,
# or at least 16 characters. A date such as `2025-03-01` is left out.
_TELLING = re.compile(rb"(?!\d{4}-\d\d-\d\d)(?:(?=.*[0-9\x80-\xff])|.{16})", re.DOTALL)
# Characters that continue a longer word, address or title: `notes/c-1`, `notes/c/d`, `C++`, `C#`.
_ADDRESS_SIGN = re.compile(rb"[0-9A-Za-z_\x80-\xff/+#-]")
# Header lines that memoranda writes. Two notes may have the same line without having copied it.
_OUR_TIMES = b"created|updated|accessed|last_used|expires|fired|due|acked|archived"
_OUR_KEYS = re.compile(
    rb"(?:(?:%b)_at|snoozed_until|valid_from|valid_until|archived_by|archived_from"
    rb"|phase|category|scope|type): .*" % _OUR_TIMES
)
# The beginning of a note up to the ids that its header links to. Notes with one link are no copies.
_LINK_LIST = re.compile(rb"\A(---\n(?:(?!---).*\n)*?)links:\n(?:[ \t]*- .*\n)+")


def telling_words(data: bytes) -> list[bytes]:
    """Return the words of a text that no other text has by chance, such as `0a1b2c3d`."""
    return [word for word in _WORD.findall(data) if _TELLING.match(word)]


# Header lines that other notes may have, too. The lines are not searched for, but their words are.
_SHARED_KEYS = (b"source: ", b"namespace: ", b"content_hash: ")
# A shorter line is too common to show that a text was copied.
_MIN_LINE_CHARACTERS = 16
# At most about this many lines are searched for, spread over all texts.
_MAX_LINES = 100
# Bytes of a file that are searched at a time.
_PIECE_BYTES = 4 << 20
# How many other notes with the same words are listed.
_MAX_MENTIONS = 20


def _lines_by_people(texts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of texts, without blanks around them and without headers that we write."""
    for text in texts:
        for text_line in _LINK_LIST.sub(rb"\1", text).splitlines():
            line = text_line.strip()
            if not _OUR_KEYS.fullmatch(line):
                yield line


@dataclass(slots=True)
class Needles:
    """The words and lines of erased texts to search for.

    words: long words. All of them are compared with the words of a searched text at once.
    lines: lines and names, about 100 at most, which are searched for one by one.
    """

    words: set[bytes] = field(default_factory=set)
    lines: list[bytes] = field(default_factory=list)
    _inner_words: dict[bytes, set[bytes]] = field(default_factory=dict)
    """The long words of each line, except a word at the beginning or the end of the line."""

    @classmethod
    def of(cls, texts: Iterable[bytes], names: Sequence[str]) -> Needles:
        """Return needles with the long words and lines of `texts`, and with all `names`."""
        encoded_names = [name.encode() for name in names]
        words: set[bytes] = set()
        for name in encoded_names:
            words.update(telling_words(name))
        # The names come first. The keys of a dictionary keep the order, and have no line twice.
        lines = dict.fromkeys(encoded_names)
        for line in _lines_by_people(texts):
            words.update(telling_words(line))
            is_telling = len(line) >= _MIN_LINE_CHARACTERS and not line.startswith(_SHARED_KEYS)
            if is_telling:
                lines[line] = None
        # The index has the words in lower case.
        words |= {word.lower() for word in words}
        # If there are too many lines, only every second or third one, and so on, is searched for.
        distance = len(lines) // _MAX_LINES + 1
        return cls(words, list(lines)[::distance])

    def all_but(self, excluded: Collection[bytes]) -> set[str]:
        """Return the needles that are not excluded, as texts."""
        remaining = {*self.words, *self.lines}.difference(excluded)
        return {needle.decode("utf-8", "replace") for needle in remaining}

    def longest(self) -> int:
        """Return the length of the longest needle in bytes."""
        return max(map(len, (*self.words, *self.lines)), default=0)

    def found_in(self, data: bytes) -> set[bytes]:
        """Return the needles that are in `data`."""
        data_words = set(_WORD.findall(data))
        lines_in_data = {line for line in self._possible_in(data_words) if line in data}
        return (self.words & data_words) | lines_in_data

    def _possible_in(self, data_words: set[bytes]) -> Iterator[bytes]:
        """Yield the lines that may be in a text with these words.

        Only these lines have to be searched for in the text, which takes longer than comparing
        words.
        """
        for line in self.lines:
            if line not in self._inner_words:
                self._inner_words[line] = _inner_words_of(line)
            if self._inner_words[line] <= data_words:
                yield line

    def names_in(self, data: bytes | mmap.mmap, needles_in_data: Iterable[bytes]) -> bool:
        """Whether `data` has one of the needles as a whole word or address.

        For example, `notes/c` is also a part of `notes/c-1`, but this is the address of another
        note.

        needles_in_data: the needles that `found_in` returned for `data`.
        """
        return any(needle in self.words or _is_whole(data, needle) for needle in needles_in_data)


def _inner_words_of(line: bytes) -> set[bytes]:
    """Return the long words of a line that are not at one of its ends.

    A word at an end may be a part of a longer word in a text that has the line.
    """
    words: set[bytes] = set()
    for match in _WORD.finditer(line):
        is_at_end = match.start() == 0 or match.end() == len(line)
        if not is_at_end:
            words.add(match[0])
    return words


def _is_whole(data: bytes | mmap.mmap, needle: bytes) -> bool:
    """Whether the needle is somewhere in `data` and is not part of a longer word or address."""
    position = data.find(needle)
    while position >= 0:
        if not _is_continued(data, needle, position):
            return True
        position = data.find(needle, position + 1)
    return False


def _is_continued(data: bytes | mmap.mmap, needle: bytes, position: int) -> bool:
    """Whether the needle at a position is a part of a longer word or address.

    Only a needle that ends with a sign of words can be continued by another one: `c-1` continues
    `c`, but nothing continues `c.`.
    """
    sign_before = data[max(position - 1, 0) : position]
    end = position + len(needle)
    sign_after = data[end : end + 1]
    return _are_of_one_word(sign_before, needle[:1]) or _are_of_one_word(needle[-1:], sign_after)


def _are_of_one_word(first_sign: bytes, second_sign: bytes) -> bool:
    """Whether two neighbouring signs belong to one word or address. An empty one does not."""
    has_first = _ADDRESS_SIGN.match(first_sign) is not None
    return has_first and _ADDRESS_SIGN.match(second_sign) is not None


class MentionKind(Enum):
    """The kinds of things that have words of an erased note, and stay."""

    NOTE = auto()
    """A note, or another file in the folder of a project."""

    OLDER_TEXT = auto()
    """A text of another note that the history keeps."""

    SOURCE = auto()
    """The file that an erased note was made from by `memory ingest`."""

    FILE = auto()
    """A file outside of all folders of projects, or the file of a graph."""

    ATTACHMENT = auto()
    """A file that an erased note embeds or links to, such as a picture."""

    TRANSCRIPTS = auto()
    """The index of the transcripts of agents' sessions, which other programs keep."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A note, text or file that repeats words of an erased note. An erasure does not change it.

    kind: whether it is a note, an older text, or another thing (see MentionKind).
    name: the name to show to people, or the SHA-256 of an older text.
    place: the project and path of a note, otherwise None.
    """

    kind: MentionKind
    name: str
    place: tuple[str, str] | None = None

    @property
    def words(self) -> str:
        """The mention in words, as the command prints it."""
        if self.kind is MentionKind.OLDER_TEXT:
            return f"the kept text {self.name[:8]} of another note"
        if self.kind is MentionKind.SOURCE:
            return f"the source {self.name}, from which ingest would take it again"
        if self.kind is MentionKind.TRANSCRIPTS:
            return (
                f"the index of transcripts {self.name} (memory transcripts forget deletes it, "
                "the transcripts are files of other programs)"
            )
        return self.name

    @property
    def relation(self) -> str:
        """How the mention and the erased note belong together, in words."""
        if self.kind is MentionKind.ATTACHMENT:
            return f"it shows {self.words}"
        return f"named by {self.words}"


@dataclass(slots=True)
class Found:
    """The result of `search`.

    files, bytes: how many files and bytes were searched.
    remains: the names of files made by memoranda that still hold a part of the erased texts.
    mentions: texts of other authors that have words of the erased texts.
    """

    files: int = 0
    bytes: int = 0
    remains: list[str] = field(default_factory=list)
    mentions: list[Mention] = field(default_factory=list)


def search(
    engine: Engine, needles: Needles, folders: Sequence[str] = (), in_use: Sequence[str] = ()
) -> Found:
    """Look for the needles everywhere that the erased words may still be.

    These places are all files of the home, the notes and temporary files of projects elsewhere, and
    the JSON files of `folders`.

    A needle in a file that memoranda made is a *trace*, unless the needle is *shared*: another note,
    or a text that the history keeps, has it, too. Then the word belongs to the author of that text.

    in_use: names of folders that other notes use. The words in these names are not traces either.
    """
    findings = Found()
    # Names that are part of a place are not a trace of a note.
    place_words = _needles_in_places(engine, needles, [*folders, *in_use])
    # Every database has the words of its schema.
    shared_words = needles.found_in(SCHEMA.read_bytes() + LEDGER_SCHEMA.read_bytes())
    # The needles in the files that memoranda made, by the name of the file.
    words_of_ours: dict[str, set[bytes]] = {}
    mentions: list[Mention] = []

    for file, result in _searched_files(engine, folders, needles, place_words):
        findings.files += 1
        findings.bytes += result.size
        new_words = result.needles - place_words
        is_mentioned = result.is_named
        if file.is_of_transcripts:
            # What a transcript says is no excuse for a trace elsewhere, so no word is shared.
            is_mentioned = bool(new_words)
        elif not file.is_ours:
            shared_words |= new_words
        elif new_words:
            words_of_ours[file.name] = new_words
        if is_mentioned and file.mention is not None:
            mentions.append(file.mention)

    # The bytes of a full-text table do not show every word, so the table is asked, too.
    if has_any_of(engine.layout.transcripts, needles.all_but(place_words)):
        mentions.append(_mention_of_transcripts(engine.layout))

    # The ledger also has older texts of other notes. If it has a needle, these texts are looked at
    # one by one.
    if any(_is_of_history(name) for name in words_of_ours):
        older_words, older_mentions = _search_older_texts(engine, needles, place_words)
        shared_words |= older_words
        mentions += older_mentions

    shared_words |= {word.lower() for word in shared_words}
    findings.remains = [name for name, words in words_of_ours.items() if words - shared_words]
    findings.mentions = list(dict.fromkeys(mentions))[:_MAX_MENTIONS]
    return findings


def _needles_in_places(engine: Engine, needles: Needles, folders: Iterable[str]) -> set[bytes]:
    """Search the names of the projects' places and of `folders`. Returns the needles found."""
    roots = [source.root for source in engine.sources.values()]
    places = "\n".join([*roots, *folders])
    return needles.found_in(os.fsencode(f"{places}\n{places.lower()}"))


def _searched_files(
    engine: Engine, folders: Iterable[str], needles: Needles, place_words: set[bytes]
) -> Iterator[tuple[SearchedFile, _SearchResult]]:
    """Search every file that may hold a trace, and yield each file with the result.

    These are the files of the home, of projects elsewhere and in `folders`.

    needles: the texts and names to search for.
    place_words: needles that do not count for `_SearchResult.is_named`.
    """
    for file in _files(engine, folders):
        try:
            result = _search_file(file.path, needles, place_words)
        except OSError:
            # Another program removed the file after it was listed.
            continue
        if result is not None:
            yield file, result


def _is_of_history(name: str) -> bool:
    """Whether a file of the home belongs to the ledger, which has the texts of other notes, too."""
    return "/ledger.db" in name


def _search_older_texts(
    engine: Engine, needles: Needles, place_words: set[bytes]
) -> tuple[set[bytes], list[Mention]]:
    """Search the texts that the ledger keeps.

    Returns the needles in them, and the texts that have one as a word.

    place_words: needles that do not count.
    """
    words: set[bytes] = set()
    mentions: list[Mention] = []
    for digest, kept_text in engine.ledger.history.texts_with_data():
        new_words = needles.found_in(kept_text) - place_words
        words |= new_words
        if needles.names_in(kept_text, new_words):
            mentions.append(Mention(MentionKind.OLDER_TEXT, digest))
    return words, mentions


class _SearchResult(NamedTuple):
    """The result of searching one file.

    size: its bytes.
    needles: the needles in the file.
    is_named: whether one of the needles is in the file as a whole word or address. Needles that the
        caller excluded do not count. It is False for a database, where the ends of words cannot be
        seen.
    """

    size: int
    needles: set[bytes]
    is_named: bool


_EMPTY_FILE = _SearchResult(size=0, needles=set(), is_named=False)


def _search_file(path: str, needles: Needles, place_words: set[bytes]) -> _SearchResult | None:
    """Search a file for the needles. None means that it is not a regular file. Raises OSError.

    place_words: needles that do not count for `_SearchResult.is_named`.
    """
    status = os.stat(path, follow_symlinks=False)
    if not stat.S_ISREG(status.st_mode):
        return None
    if not status.st_size:
        return _EMPTY_FILE
    if beside_sqlite.is_of_sqlite(path):
        database_pieces = beside_sqlite.pieces(path, needles.longest())
        needles_in_file = _needles_in(database_pieces, needles)
        return _SearchResult(status.st_size, needles_in_file, is_named=False)

    # The path is from a listing. By now it may be a link, which must not be followed, or a pipe,
    # for which nobody must wait.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        with mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) as data:
            needles_in_file = _needles_in(_pieces(data, needles.longest()), needles)
            is_named = needles.names_in(data, needles_in_file - place_words)
            return _SearchResult(status.st_size, needles_in_file, is_named)
    except ValueError:
        # `mmap` refuses an empty file. Another program emptied the file since `os.stat`.
        return _EMPTY_FILE
    finally:
        os.close(descriptor)


def _needles_in(pieces: Iterable[bytes], needles: Needles) -> set[bytes]:
    """Return the needles that are in the pieces of a file."""
    needles_in_file: set[bytes] = set()
    for piece in pieces:
        needles_in_file |= needles.found_in(piece)
    return needles_in_file


def _pieces(data: mmap.mmap, overlap: int) -> Iterator[bytes]:
    """Yield the bytes of a file in pieces of about _PIECE_BYTES.

    overlap: how many of the last bytes of a piece the next piece begins with. With the length of
        the longest needle, no needle is cut.
    """
    for start in range(0, len(data), _PIECE_BYTES):
        yield data[max(0, start - overlap) : start + _PIECE_BYTES]


def _folders_of_home(layout: Layout) -> Iterator[tuple[str, list[str], list[str]]]:
    """Walk through the folder of the home, and through its private folder if that is elsewhere.

    Yields tuples as `os.walk` does: a folder, the names of its folders, and the names of its files.
    """
    yield from walk(str(layout.root))
    if layout.is_apart:
        yield from walk(str(layout.private))


def _name_in_home(layout: Layout, path: str) -> str:
    """Return the name that people know for a file of the home, such as `.memoranda/ledger.db`.

    `Layout.place` does the reverse.
    """
    private = str(layout.private)
    if layout.is_apart and path.startswith(f"{private}/"):
        return os.path.join(PRIVATE, os.path.relpath(path, private))
    return os.path.relpath(path, str(layout.root))


class SearchedFile(NamedTuple):
    """A file to search.

    name: the name to show to people.
    path: the absolute path.
    mention: how it is named if it has words of an erased note. None if memoranda made the file,
        and not an author.
    """

    name: str
    path: str
    mention: Mention | None

    @property
    def is_ours(self) -> bool:
        """Whether memoranda made the file."""
        return self.mention is None

    @property
    def is_of_transcripts(self) -> bool:
        """Whether it is the index of transcripts, or a file that SQLite keeps beside it."""
        return self.mention is not None and self.mention.kind is MentionKind.TRANSCRIPTS


def _files(engine: Engine, folders: Iterable[str]) -> Iterator[SearchedFile]:
    """Yield the files to search: the files of the home, of projects elsewhere, and in `folders`."""
    yield from _files_of_home(engine)
    home = f"{engine.layout.root}/"
    for source in engine.sources.values():
        if not source.root.startswith(home):
            yield from _files_elsewhere(source)
    for folder in folders:
        for name in sorted(os.listdir(folder)):
            label = f"{folder}/{name}"
            mention = Mention(MentionKind.FILE, label)
            yield SearchedFile(label, os.path.join(folder, name), mention)


def _files_of_home(engine: Engine) -> Iterator[SearchedFile]:
    """Yield all files of the home.

    Files that memoranda did not make get a mention: notes, older texts that the history keeps, and
    the configuration. So does the index of transcripts, whose words are from other programs' files.
    """
    layout = engine.layout
    for folder, _, names in _folders_of_home(layout):
        has_older_texts = folder.startswith(str(layout.texts))
        source = _source_above(engine, folder)
        for name in sorted(names):
            path = os.path.join(folder, name)
            label = _name_in_home(layout, path)
            mention = None
            if has_older_texts:
                mention = Mention(MentionKind.OLDER_TEXT, name)
            elif source is not None and not name.startswith(TEMP_PREFIX):
                place = (source.name, os.path.relpath(path, source.root))
                mention = Mention(MentionKind.NOTE, label, place)
            elif path.startswith(str(layout.transcripts)):
                mention = _mention_of_transcripts(layout)
            elif path == str(engine.settings.file):
                mention = Mention(MentionKind.FILE, label)
            yield SearchedFile(label, path, mention)


def _mention_of_transcripts(layout: Layout) -> Mention:
    """Return the mention for the index of transcripts."""
    return Mention(MentionKind.TRANSCRIPTS, _name_in_home(layout, str(layout.transcripts)))


def _source_above(engine: Engine, folder: str) -> Source | None:
    """Return the project that a folder is in, the innermost of several. None if it is in none."""
    sources = [
        source for source in engine.sources.values() if f"{folder}/".startswith(f"{source.root}/")
    ]
    return max(sources, key=lambda source: len(source.root), default=None)


def _files_elsewhere(source: Source) -> Iterator[SearchedFile]:
    """Yield the files of a project outside the home that may hold a text.

    These are its notes, and the temporary files that memoranda made beside them. A graph file is
    one file, which is yielded itself.
    """
    if not os.path.isdir(source.root):
        # A graph file, or a project whose folder is gone. There is no folder to walk through.
        mention = Mention(MentionKind.FILE, source.name)
        yield SearchedFile(source.name, source.root, mention)
        return
    for folder, _, names in walk(source.root):
        for name in sorted(names):
            path = os.path.join(folder, name)
            relative_path = os.path.relpath(path, source.root)
            label = f"{source.name}/{relative_path}"
            if name.startswith(TEMP_PREFIX):
                yield SearchedFile(label, path, mention=None)
            elif source.is_note(relative_path):
                mention = Mention(MentionKind.NOTE, label, (source.name, relative_path))
                yield SearchedFile(label, path, mention)
