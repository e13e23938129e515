"""Erase notes for good: every version and every trace in the home, checked by a search.

`Erasure` makes a `Plan` of the things to erase. The ledger stores the plan before the first byte is
removed, and deletes the plan last. All steps of `_carry_out` may be repeated. So after a crash, the
next process that opens the home runs all steps again (`finish`).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import NamedTuple, cast

from memoranda.clock import stamp
from memoranda.config import absolute
from memoranda.engine import review
from memoranda.engine.engine import Engine, verb
from memoranda.engine.history.authorship import made_by
from memoranda.engine.history.former_places import (
    Departure,
    Rename,
    departures,
    places_to_follow,
    renames_by_others,
)
from memoranda.engine.history.trail import (
    OUR_REMOVAL,
    Found,
    Mention,
    MentionKind,
    Needles,
    Trail,
    folders_above,
    search,
)
from memoranda.engine.history.verbs import HistoryVerbs
from memoranda.engine.links.attachments import files_shown_in
from memoranda.engine.overview import Overview, Pending
from memoranda.engine.reading import Ref
from memoranda.engine.telling.served import log_of
from memoranda.engine.transaction import Transaction, root_of, source_at
from memoranda.engine.writing import editable, follow_content, id_list
from memoranda.errors import (
    Ambiguous,
    InvalidInput,
    Locked,
    MemorandaError,
    NotFound,
    NotPutBack,
    OutcomeUnknown,
    StorageError,
)
from memoranda.index.rows import NoteInfo
from memoranda.ledger.change import ERASE, Change, Location, is_of_machine
from memoranda.ledger.history import ABOVE_ALL_NUMBERS, History
from memoranda.note import entry
from memoranda.note.markdown import default_id
from memoranda.note.model import CATEGORY_PROJECT, MEMORY_PROJECTS, REMINDERS
from memoranda.note.names import Looseness
from memoranda.query import Query, memory_query
from memoranda.sources.base import File, sha256
from memoranda.sources.files import put_derived, storing
from memoranda.sources.graph_file import GraphFileSource
from memoranda.sources.json_rows import stem_of
from memoranda.sources.step import StepKind

# An entry of a folder of JSON files, such as `~/data/colours.json:sky`. Its namespace is `colours`.
_ENTRY = re.compile(
    r"(?P<folder>[/~].*)/(?P<namespace>[^/]+)\.json:(?P<key>.+)",
    re.DOTALL,
)
# A number of results that no folder of JSON files has.
_ALL_ENTRIES = 1 << 30
_ONLY_OWNER = "Only the owner can erase: run memory erase without an agent's name."
_GOES_ON = "the rest is erased when the memory is opened next, once the disk allows it"


@dataclass(frozen=True, slots=True)
class Erased:
    """The result of an erasure.

    notes: the erased notes, as `project/path`.
    changes, texts: how many changes in the ledger and how many texts of the history were removed.
    files, bytes: how many files and bytes were searched afterwards.
    remains: the files in which a part of the notes was still found; empty if all went well.
    mentions: other notes, texts of other notes in the history, and sources that name an erased note
        or repeat words of one. An erasure does not change them.
    out_of_reach: where a server of notes may still have a part of the notes.
    """

    notes: tuple[str, ...]
    changes: int = 0
    texts: int = 0
    files: int = 0
    bytes: int = 0
    remains: tuple[str, ...] = ()
    mentions: tuple[Mention, ...] = ()
    out_of_reach: tuple[str, ...] = ()


class PlannedFile(NamedTuple):
    """A file to erase, as it was when the plan was made.

    root: the real folder of the project, if it is not the folder that the home has for it; else "".
    etag: the SHA-256 of its text. A file that has another text by now is not erased.
    """

    project: str
    path: str
    root: str
    etag: str

    @property
    def place(self) -> Location:
        """The place of the file, as the ledger knows it."""
        return Location(self.project, self.path, self.root)


class PlannedEntry(NamedTuple):
    """An entry to erase from the JSON file of a namespace in a folder."""

    folder: str
    namespace: str
    key: str


class _Removed(NamedTuple):
    """The number of removed things.

    changes: how many changes of the history were replaced by records of an erasure.
    texts: how many texts of the history were removed.
    out_of_reach: where a server of notes may still have a part of the notes.
    """

    changes: int
    texts: int
    out_of_reach: tuple[str, ...]


@dataclass(slots=True)
class Plan:
    """The things to erase. The ledger stores the plan as JSON until everything is erased.

    latest: the numbers of the latest changes when the plan was made (`History.latest_numbers`).
    observation: if given, only this observation is erased, from one note and from its older
        versions.
    places: where the notes are, or where they were last.
    former_places: all places where the notes ever were. Their empty folders are removed, too.
    renames: how other programs renamed the notes.
    departures: when other programs took other notes away from these places. Earlier changes there
        are about those notes.
    ids: the ids of the notes.
    files: the files that the notes have now.
    entities: the names of entities, by graph file.
    rows: entries in JSON files.
    requests: the keys of the agent's requests to the owner, if all notes of an agent are erased.
    """

    latest: tuple[int, ...]
    observation: str | None = None
    places: list[Location] = field(default_factory=list)
    former_places: list[Location] = field(default_factory=list)
    renames: list[Rename] = field(default_factory=list)
    departures: list[Departure] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    files: list[PlannedFile] = field(default_factory=list)
    entities: dict[str, list[str]] = field(default_factory=dict)
    rows: list[PlannedEntry] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def is_before(self, number: int) -> bool:
        """Whether the change with this number was made before the plan.

        Only such changes are erased. Changes of files that only this machine has are numbered in a
        series of their own.
        """
        return any(
            number <= latest and is_of_machine(number) == is_of_machine(latest)
            for latest in self.latest
        )

    @property
    def erases_whole_notes(self) -> bool:
        """Whether notes are erased as a whole. If not, they only lose an observation."""
        return self.observation is None

    @property
    def names(self) -> list[str]:
        """The names of the erased things, as `memory log` shows them."""
        notes = [place.name for place in self.places]
        entries = [f"{row.folder}/{row.namespace}.json:{row.key}" for row in self.rows]
        return sorted({*notes, *entries, *self.requests})

    @classmethod
    def from_json(cls, record: bytes | str) -> Plan:
        """Return the plan that the ledger stored as JSON. Raises ValueError, KeyError, TypeError."""
        row = json.loads(record)
        # JSON has lists in place of tuples.
        row["places"] = [Location(*place) for place in row["places"]]
        # A plan of an earlier version has no former places.
        row["former_places"] = [Location(*place) for place in row.get("former_places", ())]
        # Nor does it have renames and departures.
        row["renames"] = [
            Rename(Location(*new), Location(*old), since, before)
            for new, old, since, before in row.get("renames", ())
        ]
        row["departures"] = [
            Departure(Location(*place), before) for place, before in row.get("departures", ())
        ]
        row["files"] = [PlannedFile(*file) for file in row["files"]]
        row["rows"] = [PlannedEntry(*entry_row) for entry_row in row["rows"]]
        # A plan of an earlier version has one number.
        if "last" in row:
            row["latest"] = [row.pop("last")]
        return cls(**row)


class Erasure:
    """Erases notes for the owner.

    An erasure has four steps:
    1. A plan is made of the notes to erase.
    2. The notes are followed back through the history: this is their trail.
    3. The notes and their trail are removed.
    4. Every file of the home is searched for words that remain.

    Raises InvalidInput if the caller of `memory` is an agent.
    """

    def __init__(self, memory: HistoryVerbs):
        if memory.agent is not None:
            raise InvalidInput(_ONLY_OWNER)
        self.memory = memory
        self.engine = memory.engine
        # The present texts of the notes.
        self._texts: list[bytes] = []
        # The references by which the caller named notes that no longer have a file, by the place
        # that the file had.
        self._refs_without_file: dict[Location, str] = {}

    @verb
    def erase(
        self,
        refs: Sequence[Ref],
        *,
        agent: str | None,
        project: str | None,
        source: str | None,
        observation: str | None,
        dry_run: bool,
    ) -> Erased:
        """Remove notes for good, and prove that nothing remains (see `Memory.erase`).

        refs: the notes to erase.
        agent, project, source: erase all notes of this agent, of this project, or from this source;
            None selects no notes.
        observation: erase only this observation, from the one note of `refs`. None erases whole
            notes.
        dry_run: whether only to return what the erasure would do.

        Raises InvalidInput, NotFound for a note that neither the disk nor the ledger knows, and
        NotPutBack if the disk refused in the middle. Of another error nothing was changed.
        """
        if observation is not None:
            names_one_note = len(refs) == 1 and not (agent or project or source)
            if not names_one_note:
                raise InvalidInput("An observation is erased from one note: give one reference.")
        with self.engine.writing():
            finish(self.memory)
            self.engine.fresh(whole=True)

            # Plan: the notes, then their trail. The plan grows while the trail is followed.
            plan = Plan(self.engine.ledger.history.latest_numbers, observation)
            for ref in refs:
                self._add_ref(plan, ref)
            if observation is not None:
                self._check_observation(plan, observation)
            self._add_selected(plan, agent, project, source)
            trail = self._whole_trail(plan)
            self._check_gone_are_known(trail)
            # A note that only loses an observation keeps its folders.
            if plan.erases_whole_notes:
                plan.former_places = sorted(trail.places)
            names = tuple(plan.names)
            if not names:
                return Erased(names)

            # Look up what can no longer be looked up when the notes are gone. The mentions are the
            # keys. A dict keeps their order and has each once.
            mentions = dict.fromkeys(self._notes_linking_to(plan))
            mentions |= dict.fromkeys(self._attachments_of(plan, trail))
            needles = self._needles(plan, trail)
            if dry_run:
                return self._foretell(plan, trail, needles, [*mentions])

            # If this process dies during the erasure, the next one finishes the stored plan
            # (`finish`).
            self.engine.ledger.set_erasing(json.dumps(asdict(plan)))
            try:
                removed = _carry_out(self.memory, plan)
            except OutcomeUnknown:
                raise
            except MemorandaError as error:
                if self._withdraw(plan, trail):
                    raise
                reason = error.reason if isinstance(error, StorageError) else str(error)
                raise NotPutBack("the whole erasure", f"{reason}; {_GOES_ON}") from None

        # The search may take long, so other callers may use the home again.
        proof = self._proof(plan, needles)
        mentions |= dict.fromkeys(proof.mentions)
        return Erased(
            names,
            changes=removed.changes,
            texts=removed.texts,
            files=proof.files,
            bytes=proof.bytes,
            remains=tuple(proof.remains),
            mentions=tuple(mentions),
            out_of_reach=removed.out_of_reach,
        )

    def _withdraw(self, plan: Plan, trail: Trail) -> bool:
        """Remove a plan that failed before anything of it was done. Returns whether it is removed.

        Else the next process that opens the home would erase the notes, though the caller was told
        that nothing was changed.

        trail: the changes of the notes, as they were found before.
        """
        if self.engine.ledger.history.latest_numbers != plan.latest:
            return False
        # If the history was revised already, it has fewer changes of the notes.
        trail_now = _trail_of(self.engine, plan)
        with suppress(MemorandaError):
            trail_now.follow()
            if trail_now.files.keys() == trail.files.keys():
                self.engine.ledger.set_erasing(plan=None)
                return True
        return False

    def _whole_trail(self, plan: Plan) -> Trail:
        """Follow the notes of a plan through the history, and return the trail: all steps and texts
        of them.

        Reminders that were made from the notes are added to the plan and followed, too.
        """
        trail = self._follow(plan)
        # A reminder names its note by the id.
        may_have_reminders = plan.erases_whole_notes and bool(plan.ids)
        if may_have_reminders:
            has_more_notes = self._add_reminders(plan)
            if has_more_notes:
                trail = self._follow(plan)
        return trail

    def _needles(self, plan: Plan, trail: Trail) -> Needles:
        """Return the texts and names that the search after the erasure must not find anywhere.

        plan: the notes to erase.
        trail: the older texts of these notes.
        """
        if plan.observation is not None:
            return Needles.of([plan.observation.encode()], names=[])
        return Needles.of([*self._texts, *trail.texts], names=[*plan.ids, *plan.names])

    def _check_observation(self, plan: Plan, observation: str) -> None:
        """Raise InvalidInput if the note of the plan does not have this observation."""
        for project, path, _ in plan.places:
            observations = self.memory.observations((project, path))
            if not any(observation in (item.text, item.content) for item in observations):
                raise InvalidInput(f'{project}/{path} has no observation "{observation}".')

    def _add_reminders(self, plan: Plan) -> bool:
        """Add to the plan the reminders that were made from its notes.

        Returns whether there are any.
        """
        reminders = self.memory.list(memory_query(category=REMINDERS), limit=0)[0]
        derived = [
            info
            for info in reminders
            if info.header.get("reminder_of") in plan.ids and info.id not in plan.ids
        ]
        for info in derived:
            self._add_note(plan, info)
        return bool(derived)

    def _check_gone_are_known(self, trail: Trail) -> None:
        """Raise NotFound if a reference names a missing file that the ledger has never had."""
        for place, ref in self._refs_without_file.items():
            if place not in trail.met:
                raise NotFound(ref, "the memory")

    def _proof(self, plan: Plan, needles: Needles) -> Found:
        """Search for the erased notes, and remove the words that files of memoranda still have.

        plan: the notes that were erased.
        needles: the texts and names to search for.

        Returns the result of the last search.
        """
        folders = [row.folder for row in plan.rows]
        in_use = self._folders_in_use(plan)
        proof = search(self.engine, needles, folders, in_use)
        # The index is made again from the notes that are left.
        if any("/index" in remain for remain in proof.remains):
            self.engine.rebuild_index()
            proof = search(self.engine, needles, folders, in_use)

        # The pages of the ledger that were freed may still have the words. It is written again.
        ledger = self.engine.layout.ledger.name
        if any(remain.endswith(ledger) for remain in proof.remains):
            # If the disk or another process refuses, the result names the files that remain.
            with suppress(StorageError):
                self.engine.ledger.database.rewrite()
            proof = search(self.engine, needles, folders, in_use)

        # `memory install` keeps copies of the files of other programs that it changes. Such a copy
        # is deleted if it has erased words. The JSON files beside the copies are records, not copies.
        for name in list(proof.remains):
            file = self.engine.layout.place(name)
            is_copy = file.parent == self.engine.layout.install and file.suffix != ".json"
            if is_copy:
                file.unlink(missing_ok=True)
                proof.remains.remove(name)
        return proof

    def _folders_in_use(self, plan: Plan) -> list[str]:
        """Return the folders of the erased notes that other notes use or have used.

        The names of these folders are not a trace of the erased notes.
        """
        parent_folders: set[Location] = set()
        for place in plan.places:
            parent_folders.update(place._replace(path=path) for path in folders_above(place.path))
        history = self.engine.ledger.history
        paths_in_use: list[str] = []
        for folder in sorted(parent_folders):
            root = folder.root or self.engine.own_root(folder.project) or ""
            # The notes are erased by now. So what is still there or in the history is of others.
            exists = os.path.isdir(os.path.join(root, folder.path))
            if exists or history.has_steps_below(folder.project, folder.path):
                paths_in_use.append(folder.path)
        return paths_in_use

    def _foretell(
        self, plan: Plan, trail: Trail, needles: Needles, known_mentions: Sequence[Mention]
    ) -> Erased:
        """Return the result that the erasure would have, for a dry run.

        plan: the notes to erase.
        trail: their steps and texts in the history.
        needles: the texts and names to search for.
        known_mentions: the mentions that the search does not find: notes that link to the notes of
            the plan, files from which `memory ingest` made them, and files that they show.
        """
        folders = [row.folder for row in plan.rows]
        search_result = search(self.engine, needles, folders)

        # The notes are still there, so the search finds them, too. They must not be listed as
        # mentions, which are other things with the same words. The search names a note by its
        # place, a file in a folder without a project by its absolute path, and a text of the history
        # by its hash.
        digests_of_own_texts = {sha256(text) for text in trail.texts}
        own_places = {(file.project, file.path) for file in plan.files}
        own_names = set(digests_of_own_texts)
        for place in plan.places:
            if place.root:
                own_names.add(place.name)
            else:
                own_places.add((place.project, place.path))
        mentions = [
            mention
            for mention in dict.fromkeys([*known_mentions, *search_result.mentions])
            if mention.place not in own_places and mention.name not in own_names
        ]
        return Erased(
            tuple(plan.names),
            changes=sum(plan.is_before(number) for number in trail.files),
            texts=len(digests_of_own_texts),
            files=search_result.files,
            bytes=search_result.bytes,
            mentions=tuple(mentions),
        )

    def _add_ref(self, plan: Plan, ref: Ref) -> None:
        """Add the thing that a reference names to the plan.

        It may be a note, a file that is not a note, an entry of a JSON file, or a file that only
        the history knows. Raises Ambiguous, NotFound.
        """
        # A pair of project and path, or a note that was found before, can only mean a note.
        if not isinstance(ref, str):
            self._add_note(plan, self.memory.find(ref))
            return
        entry_match = _ENTRY.fullmatch(ref)
        if entry_match is not None:
            self._add_row(plan, ref, **entry_match.groupdict())
            return
        info = self._note_named(ref)
        if info is not None:
            self._add_note(plan, info)
            return
        place = self.memory.locate(ref, looseness=Looseness.EXACT)
        has_file = self._add_file(plan, place)
        if not has_file:
            # `_check_gone_are_known` checks later whether the history knows the file.
            self._refs_without_file[place] = ref

    def _note_named(self, ref: str) -> NoteInfo | None:
        """Return the note that a reference names exactly. None if there is no such note.

        The id of a merged memory names the note into which it was merged: its words are there, so
        they would stay if only its past were erased. Raises Ambiguous.
        """
        with suppress(NotFound):
            return self.memory.find_any(ref, looseness=Looseness.EXACT)
        with suppress(NotFound):
            successor = self.memory.memory_id(ref)
            merged_ids = id_list(successor.header.get("merged"))
            if any(merged_id.startswith(ref.lower()) for merged_id in merged_ids):
                return successor
        return None

    def _add_row(self, plan: Plan, ref: str, folder: str, namespace: str, key: str) -> None:
        """Add an entry of a JSON file to the plan. The entry may be gone, if the history knows it.

        ref: the whole reference, such as `~/data/colours.json:sky`, for the error.
        folder: the folder of the JSON file.
        namespace: the namespace, or the name of its file without `.json`.
        key: the key of the entry.

        Raises NotFound, Ambiguous.
        """
        from memoranda.engine.json_entries import JsonEntryFolder

        root = str(absolute(folder))
        entry_store = JsonEntryFolder(root).entries(self.memory)
        # The search also finds entries that only contain the key.
        similar_entries, _ = entry_store.search(key, namespace=None, limit=_ALL_ENTRIES, offset=0)
        # Namespaces such as `my work` and `my_work` share a file. The exact name counts first.
        file_stem = stem_of(namespace)
        entries_in_file = [
            item
            for item in similar_entries
            if item.key == key and stem_of(item.namespace) == file_stem
        ]
        exact_entries = [item for item in entries_in_file if item.namespace == namespace]
        named_entries = exact_entries or entries_in_file
        if len(named_entries) > 1:
            names = [f"{folder}/{item.namespace}.json:{key}" for item in named_entries]
            raise Ambiguous(ref, names)
        if named_entries:
            named_entry = named_entries[0]
            plan.rows.append(PlannedEntry(root, named_entry.namespace, key))
            self._texts.append(f"{key}\n{named_entry.value}".encode())
            return
        # The entry is gone. The history lists its changes under the file and the key.
        path_in_history = f"{namespace}.json:{key}"
        history = self.engine.ledger.history
        if not history.numbers_at(entry.PROJECT, path_in_history, ABOVE_ALL_NUMBERS):
            raise NotFound(ref, "the JSON files")
        plan.rows.append(PlannedEntry(root, namespace, key))

    def _add_note(self, plan: Plan, info: NoteInfo) -> None:
        """Add a note to the plan, with its file, its id, and the ids of notes that were merged into
        it.

        Raises Locked.
        """
        if info.locked:
            raise Locked(info.permalink)
        for note_id in (info.id, *id_list(info.header.get("merged"))):
            if note_id not in plan.ids:
                plan.ids.append(note_id)
        root = root_of(self.engine, info.project)
        self._add_file(plan, Location(info.project, info.path, root))

    def _add_file(self, plan: Plan, place: Location) -> bool:
        """Add a place and the file at this place to the plan. Returns whether there is a file."""
        is_new = place not in plan.places
        if is_new:
            plan.places.append(place)
            self._add_entity(plan, place)
            file = _file_at(self.engine, place)
            if file is not None:
                plan.files.append(
                    PlannedFile(place.project, place.path, place.root, etag=file.etag)
                )
                self._texts.append(file.data)
        # The file may have been added by an earlier call.
        return any(planned.place == place for planned in plan.files)

    def _add_entity(self, plan: Plan, place: Location) -> None:
        """Add the name of the entity at a place to the plan, if the place is in a graph file."""
        source = self.engine.sources.get(place.project)
        if not isinstance(source, GraphFileSource):
            return
        entity = source.entity(place.path)
        # An entity that is gone had the name that its path shows.
        name = entity.name if entity else place.path.removesuffix(".md")
        plan.entities.setdefault(os.path.realpath(source.root), []).append(name)

    def _add_selected(
        self, plan: Plan, agent: str | None, project: str | None, source: str | None
    ) -> None:
        """Add notes to the plan: all of an agent, all of a project, and all from a source.

        agent: the name of an agent. None adds no notes.
        project: the name of a project. None adds no notes.
        source: the value of `source` in the header of notes. None adds no notes.
        """
        selected: list[NoteInfo] = []
        if source is not None:
            selected += self.memory.list(Query(source=source), limit=0)[0]
        if project is not None:
            name = self.engine.source(project, looseness=Looseness.EXACT).name
            selected += self.memory.list(Query(projects=(name,)), limit=0)[0]
            # The ledger may know files of the project that are gone.
            for path, root in self.engine.ledger.history.places_of(name):
                self._add_file(plan, Location(name, path, root))
        if agent is not None:
            plan.requests = review.asked_by(self.memory, agent)
            selected += self.memory.list(Query(scope=f"agent:{agent}"), limit=0)[0]
            for place in made_by(self.engine, agent):
                self._add_place(plan, place)
        for info in selected:
            self._add_note(plan, info)

    def _add_place(self, plan: Plan, place: Location) -> None:
        """Add the note at a place to the plan. If the index has no note there, add only the file."""
        # Only notes of this home, which have no root of their own, are in the index.
        info = None
        if not place.root:
            info = self.engine.index.notes.get(place.project, place.path)
        if info is not None:
            self._add_note(plan, info)
        else:
            self._add_file(plan, place)

    def _follow(self, plan: Plan) -> Trail:
        """Follow the notes of the plan back through the ledger, and return their trail.

        The ids that older versions of the notes had are added to the plan.
        """
        self._add_renames(plan)
        trail = _trail_of(self.engine, plan)
        trail.follow()
        plan.ids = sorted(trail.ids)
        return trail

    def _add_renames(self, plan: Plan) -> None:
        """Add to the plan what other programs renamed, which only the present files can show.

        A memory is left out: the trail finds its changes by its id.
        """
        places = [place for place in plan.places if place.project not in MEMORY_PROJECTS]
        followed_places = places_to_follow(self.memory, places)
        plan.renames = []
        for place in followed_places:
            plan.renames += renames_by_others(self.memory, place)
        former_places = [rename.old for rename in plan.renames]
        plan.departures = []
        for place in [*followed_places, *former_places]:
            plan.departures += departures(self.memory, place)

    def _notes_linking_to(self, plan: Plan) -> Iterator[Mention]:
        """Yield the notes that link to the notes of the plan.

        If `memory ingest` made one of these notes, the file that it was made from is yielded, too.
        """
        # If only an observation is erased, the note stays, so links to it stay right.
        if not plan.erases_whole_notes:
            return
        erased_places = {(file.project, file.path) for file in plan.files}
        for project, path in sorted(erased_places):
            info = self.engine.index.notes.get(project, path)
            if info is None:
                continue
            source = info.header.get("source_ref")
            if source:
                yield Mention(MentionKind.SOURCE, str(source))
            for backlink in self.memory.backlinks(info):
                place = (backlink.project, backlink.path)
                if place not in erased_places:
                    yield Mention(MentionKind.NOTE, "/".join(place), place)

    def _attachments_of(self, plan: Plan, trail: Trail) -> Iterator[Mention]:
        """Yield the files that the notes of the plan show, or showed, such as pictures.

        These files stay. The search for remains does not find what a picture shows.

        trail: the older texts of the notes.
        """
        if not plan.erases_whole_notes:
            return
        texts = [text.decode("utf-8", "replace") for text in (*self._texts, *trail.texts)]
        # A place with a folder of its own is in no project that is open here.
        projects = {place.project for place in plan.places if not place.root}
        for project in sorted(projects):
            for path in files_shown_in(self.memory, project, texts):
                yield Mention(MentionKind.ATTACHMENT, f"{project}/{path}")


@verb
def finish(memory: HistoryVerbs) -> None:
    """Complete an erasure that a process began and did not finish, if there is one.

    Raises MemorandaError if that fails. Then the plan stays, and `memory doctor --fix` tries again.
    """
    ledger = memory.engine.ledger
    if ledger.erasing() is None:
        return
    with memory.engine.writing():
        # The plan is read again, now that no other process can change it.
        record = ledger.erasing()
        if record is None:
            # The process was still alive. It finished while this process waited for the lock.
            return
        try:
            plan = Plan.from_json(record)
        except (ValueError, KeyError, TypeError):
            ledger.set_erasing(plan=None)
            raise StorageError(
                "the erasure that was cut off", "its plan is damaged; erase again"
            ) from None
        _carry_out(memory.as_caller(agent=None), plan)


def _carry_out(memory: HistoryVerbs, plan: Plan) -> _Removed:
    """Carry out all steps of a plan. The caller must hold the lock.

    The steps may have been done before, by a process that died.
    """
    engine = memory.engine
    history = engine.ledger.history
    erased_changes = 0
    erased_texts = 0
    if not _is_recorded(history, plan):
        _remove(memory, plan)
        with storing("the history"):
            erased_changes = _revise_history(engine, plan)
            erased_texts = history.sweep()
            # Overwrites the bytes of the rows that were deleted from the ledger.
            engine.ledger.wipe()
            _make_derived_again(memory, plan)
            # The change about the erasure comes last: it says that all of this is done.
            _record_erasure(memory, plan)
    engine.ledger.set_erasing(plan=None)
    # The plan, which was just removed, named the erased notes. So its bytes must go, too.
    engine.ledger.wipe()
    return _Removed(erased_changes, erased_texts, engine.ledger.purge_deleted())


def _is_recorded(history: History, plan: Plan) -> bool:
    """Whether the history has a change about the erasure of this plan.

    The history gets it when everything else is done (`_record_erasure`). So only the plan is left
    to remove.
    """
    # The history returns the newest change first.
    for change in history.changes():
        if plan.is_before(change.number):
            return False
        # An empty change that took the place of an erased one has no details.
        if change.verb == ERASE and change.details:
            return True
    return False


def _trail_of(engine: Engine, plan: Plan) -> Trail:
    """Return the trail of the notes of a plan, which is still to be followed."""
    return Trail(
        engine,
        places=plan.places,
        renames=plan.renames,
        departures=plan.departures,
        ids=plan.ids,
        entities=plan.entities,
        rows=plan.rows,
    )


def _revise_history(engine: Engine, plan: Plan) -> int:
    """Take the notes out of the changes of the history.

    Returns how many changes from before the plan are about the notes. The removal of the notes,
    which this erasure has just made, is revised, too, but not counted.
    """
    trail = _trail_of(engine, plan)
    trail.follow()
    if trail.files:
        revised = trail.revised(stamp(engine.clock()))
        engine.ledger.history.revise(revised, trail.places)
    return sum(plan.is_before(number) for number in trail.files)


def _record_erasure(memory: HistoryVerbs, plan: Plan) -> None:
    """Add a change to the history that says how many notes were erased, but not which."""
    history = memory.engine.ledger.history
    history.append(
        Change(
            number=history.last + 1,
            time=stamp(memory.engine.clock()),
            verb=ERASE,
            project="",
            path="",
            agent=None,
            face=memory.face,
            details={"notes": len(plan.names)},
        )
    )


def _unchanged_places(engine: Engine, plan: Plan) -> Iterator[Location]:
    """Yield the places of those files that have not changed since the erasure was planned."""
    for planned in plan.files:
        file = _file_at(engine, planned.place)
        if file is not None and file.etag == planned.etag:
            yield planned.place


def _remove(memory: HistoryVerbs, plan: Plan) -> None:
    """Remove the notes themselves: their files, lines and entries, and the records about them.

    A file that has changed since the plan was made stays.
    """
    engine = memory.engine
    files: list[Location] = []
    paths_in_graphs: dict[str, list[str]] = {}
    for place in _unchanged_places(engine, plan):
        if isinstance(engine.sources.get(place.project), GraphFileSource):
            paths_in_graphs.setdefault(place.project, []).append(place.path)
        else:
            files.append(place)

    removal_verb, no_project, no_path = OUR_REMOVAL
    with memory.change(removal_verb, (no_project, no_path), fresh=False) as transaction:
        for place in files:
            _remove_from_file(memory, plan, transaction, place)
        _remove_folders(memory, plan, transaction)
        _remove_answers(memory, plan, transaction)
    _forget_readers(memory, plan)
    for project in sorted(paths_in_graphs):
        _remove_from_graph(memory, plan, project, paths_in_graphs[project])
    _remove_rows(memory, plan)

    # The next steps need an index without the notes.
    engine.freshness.is_current = False
    engine.fresh(whole=True)


def _remove_answers(memory: HistoryVerbs, plan: Plan, transaction: Transaction) -> None:
    """Add steps that remove the questions to the owner about the notes, and the answers."""
    rows = memory.engine.ledger.review_rows
    for path in rows.paths_naming([*plan.ids, *plan.names]):
        transaction.steps.append(rows.step_at(path, data=None, kept=False))


def _forget_readers(memory: HistoryVerbs, plan: Plan) -> None:
    """Forget which sessions were shown the notes and, if whole notes are erased, who has read them.

    A note that only loses an observation stays, and with it the record of its readers.
    """
    # Reads: how often each note was read, and when. They say nothing about a single observation.
    if plan.erases_whole_notes:
        # A note without an id in its header has one made from its place.
        ids_from_places = [default_id(project, path) for project, path, _ in plan.places]
        memory.engine.reads.forget({*plan.ids, *ids_from_places})
    # Sessions: the ids of the notes and the hashes of the lines that each session was shown. A hash
    # does not tell of which note it is, so all are forgotten. A session then gets them once more.
    memory.engine.ledger.forget_sessions()
    # The log of tools: which notes a call gave to an agent, with the query that found them.
    log_of(memory).forget(plan.ids)


def _remove_from_file(
    memory: HistoryVerbs, plan: Plan, transaction: Transaction, place: Location
) -> None:
    """Add the step that removes a file or, for an observation, only the lines with the observation.

    The history does not keep the removed text.
    """
    project, path, root = place
    info = memory.index.notes.get(project, path)
    # A file that is no note has no observations.
    if plan.observation is None or info is None:
        source = source_at(memory.engine, project, root)
        transaction.remove(project, path, source.read(path), source=source, kept=False)
        return
    file, text = editable(memory, info)
    note = memory.parse(project, path, file)
    erased_line_numbers = {
        observation.line
        for observation in note.observations
        if plan.observation in (observation.text, observation.content)
    }
    remaining_lines = [
        line
        for line_number, line in enumerate(text.split("\n"), start=1)
        if line_number not in erased_line_numbers
    ]
    remaining_text = "\n".join(remaining_lines)
    data = follow_content(memory, info, text, remaining_text).encode()
    transaction.put(project, path, data, old=file, scope=info.scope, kept=False)


def _remove_from_graph(
    memory: HistoryVerbs, plan: Plan, project: str, paths: Sequence[str]
) -> None:
    """Remove entities and their relations from a graph file or, for an observation, only the
    observation.

    paths: the paths of the entities, such as `Ada.md`.
    """
    from memoranda.engine.graph import FileGraph

    graph = FileGraph(memory, cast(GraphFileSource, memory.engine.sources[project]))
    entities = [graph.source.entity(path) for path in paths]
    names = [entity.name for entity in entities if entity is not None]
    if plan.observation is None:
        graph.delete_entities(names)
    else:
        graph.delete_observations([(name, [plan.observation]) for name in names])


def _remove_rows(memory: HistoryVerbs, plan: Plan) -> None:
    """Remove the entries of JSON files that are in the plan."""
    # Few plans have such entries, and the imports take time.
    if not plan.rows:
        return
    from memoranda.engine.entries import NoEntry
    from memoranda.engine.json_entries import JsonEntryFolder

    for folder, namespace, key in plan.rows:
        # An entry that is gone already needs no removal.
        with suppress(NoEntry):
            JsonEntryFolder(folder).entries(memory).remove(namespace, key)


def _remove_folders(memory: HistoryVerbs, plan: Plan, transaction: Transaction) -> None:
    """Add steps that remove the folders that a transaction leaves empty. Some folders always stay.

    A folder that a note was moved out of, or was deleted from, is removed, too, if it is empty.
    """
    removals = [step for step in transaction.steps if step.do == StepKind.REMOVE]
    # (root, path) of the files and folders that will be gone.
    removed_places = {(step.root, step.path) for step in removals}
    parent_folders: set[_Folder] = set()
    for step in removals:
        for path in folders_above(step.path):
            parent_folders.add(_Folder(step.project, step.root, path))
    for project, path, place_root in plan.former_places:
        root = place_root or memory.engine.own_root(project) or ""
        for folder_path in folders_above(path):
            if _is_real_folder(os.path.join(root, folder_path)):
                parent_folders.add(_Folder(project, root, folder_path))

    # The longest path comes first, so that a folder is removed before the one above it.
    for folder in sorted(parent_folders, key=lambda folder: -len(folder.path)):
        names = os.listdir(os.path.join(folder.root, folder.path))
        places_inside = {(folder.root, f"{folder.path}/{name}") for name in names}
        is_emptied = places_inside <= removed_places
        if is_emptied and _may_remove_folder(memory, folder):
            transaction.add(StepKind.RMDIR, folder.project, folder.path)
            removed_places.add((folder.root, folder.path))


def _is_real_folder(path: str) -> bool:
    """Whether there is a folder at a path, and not a link to one."""
    return os.path.isdir(path) and not os.path.islink(path)


class _Folder(NamedTuple):
    """A folder above a removed file: `path` in the project, whose folder is `root`."""

    project: str
    root: str
    path: str


def _may_remove_folder(memory: HistoryVerbs, folder: _Folder) -> bool:
    """Whether a folder may be removed together with the last note in it.

    The folders of categories stay. In added projects, folders stay that the owner has made.
    """
    project = folder.project
    source = memory.engine.sources.get(project)
    # The project was removed, or has another folder now.
    if source is None or source.root != folder.root:
        return False
    if project == CATEGORY_PROJECT:
        return False
    is_built_in = project in memory.engine.layout.built_in
    return is_built_in or memory.engine.ledger.history.has_made_folder(project, folder.path)


def _make_derived_again(memory: HistoryVerbs, plan: Plan) -> None:
    """Make everything again that is derived from notes, now without the erased notes.

    This includes the overview, the lists of reminders, the report of the last dream, the index and
    the vectors.
    """
    engine = memory.engine
    Overview(memory).refresh(create=False)
    Pending(memory).refresh(create=False)
    report = engine.layout.dream_report
    data = report.read_bytes() if report.exists() else b""
    # The report quotes notes. If it quotes an erased note, only its time is kept.
    quotes_erased_note = any(note_id.encode() in data for note_id in plan.ids)
    if quotes_erased_note:
        time_of_dream = json.loads(data).get("last_dream")
        put_derived(report, json.dumps({"last_dream": time_of_dream}).encode())
    engine.freshness.rebuild_others()
    if engine.layout.vectors.exists():
        from memoranda.engine.embedding import Embedding

        Embedding(memory).drop_gone()
    engine.index.scrub()


def _file_at(engine: Engine, place: Location) -> File | None:
    """Return the file at a place. None if it cannot be read."""
    try:
        return source_at(engine, place.project, place.root).read(place.path)
    except MemorandaError:
        return None
