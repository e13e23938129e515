"""Import the store of another program: first a plan (`MovePlan`), then each batch as one change.

Stores are folders of notes (vaults), mirrors of a memory, memory banks (contract 003, 1), knowledge
graphs as JSON Lines (002, 11), and the folder of JSON files of the agent-memory server (004, 7).
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from memoranda.clock import EPOCH
from memoranda.engine import MemorySession
from memoranda.engine.entries import Entry, NoteEntries, whole_milliseconds
from memoranda.engine.exchange import (
    BANK_RECORD,
    OWN,
    VERB,
    Contents,
    Exchange,
    batches,
    is_kept_name,
)
from memoranda.engine.graph import FileGraph, GraphText
from memoranda.engine.graphs import NoteGraph
from memoranda.engine.json_entries import JsonEntryFolder, entry_of, unknown_of
from memoranda.engine.writing import scope_of
from memoranda.errors import MemorandaError
from memoranda.note.entity import Entity, EntityKey, GraphRelation
from memoranda.note.markdown import parse_note
from memoranda.note.model import ARCHIVE_PROJECT, BUILT_IN_PROJECTS, TRACE_PROJECT
from memoranda.sources import path_guard
from memoranda.sources.files import reason
from memoranda.sources.layout import NOTE_SUFFIXES, SKIPPED_FOLDERS
from memoranda.text.unicode import is_valid_unicode

Progress = Callable[[int, int], None]

# The number of items in one change, and of the bytes of their texts.
BATCH = 200
BATCH_BYTES = 16 << 20
IMPORT = "import"
UPDATE = "update"
KEEP = "keep"
MIRROR = ".memory-mirror"
"""The folder in a mirror that holds what it knows of itself."""
# The projects that every home has. Their folders are at the top of a mirror.
_PROJECTS_OF_EVERY_HOME = (*BUILT_IN_PROJECTS, ARCHIVE_PROJECT, TRACE_PROJECT)
BANKS = "banks"
BANK_KINDS = ("global", "projects", "code")
"""The folders of a root of banks, one for each kind."""
_NO_BANK_ID = "its name cannot be a bank's id"
# The reason for a file that is not copied, and not skipped either: it counts as unchanged.
_SAME_FILE = "the same file is there"
EXPIRED = "its time to live is over"
# How a name that only one note may have is called in messages.
_PERMALINK = "permalink"
_ID = "id"
# Files that the bank server makes from the other files.
_BANK_CACHES = ("cache.json", "cache_memory_dump.json")


class WrongStore(MemorandaError):
    """The path does not hold the kind of store that the caller named. The message names the right
    one.
    """

    code = "invalid"


class SourceFile(NamedTuple):
    """A file below a folder.

    path: the path relative to the folder, with `/`.
    size: in bytes.
    refused: the reason why it cannot be imported. "" if it can.
    """

    path: str
    size: int = 0
    refused: str = ""


@dataclass(frozen=True, slots=True)
class MoveAction:
    """One planned action.

    verb: `import`, `update`, or `keep` for a text that only goes into the history.
    name: the name of the imported thing, for people.
    size: its size in bytes.
    content: the thing itself, in a form that `MovePlan.act` knows.
    """

    verb: str
    name: str
    size: int = 0
    content: Any = None


@dataclass(slots=True)
class MovePlan:
    """The plan of an import.

    act: a function that carries out some of the items.
    items: the planned actions.
    unchanged: the number of things that exist here already.
    skipped: (name, reason) of things that are not imported.
    done: the number of items that are carried out.
    """

    act: Callable[[Sequence[MoveAction]], None]
    items: list[MoveAction] = field(default_factory=list)
    unchanged: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)
    done: int = 0

    def count(self, verb: str) -> int:
        """Return how many items the plan imports, updates or keeps in the history.

        verb: IMPORT, UPDATE or KEEP.
        """
        return sum(1 for item in self.items if item.verb == verb)

    def lines(self) -> Iterator[str]:
        """Yield the plan for people, one action a line: `would import notes/Plan.md`."""
        for item in self.items:
            if item.verb != KEEP:
                yield f"would {item.verb} {item.name}"

    def carry_out(self, progress: Progress | None = None) -> None:
        """Carry out the plan, each batch as one change.

        progress: called with the number of items done, and of all items. None calls nothing.

        Raises StorageError and others. Earlier batches stay then.
        """
        for batch in batches(self.items, BATCH, lambda item: item.size, BATCH_BYTES):
            self.act(batch)
            self.done += len(batch)
            if progress is not None:
                progress(self.done, len(self.items))


def check_folder(path: Path, noun: str) -> None:
    """Raise WrongStore unless `path` is a folder.

    noun: the kind of folder that was expected, for the error: `a folder of notes`.
    """
    if path.is_dir():
        return
    if path.exists():
        raise WrongStore(f"{path} is a file, not {noun}")
    raise WrongStore(f"no such folder: {path}")


def read_bytes(path: Path) -> bytes:
    """Read a file. Raises WrongStore if that fails."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise WrongStore(f"no such file: {path}") from None
    except OSError as error:
        raise WrongStore(f"cannot read {path}: {reason(error)}") from None


def _is_visible(name: str) -> bool:
    """Whether a file or folder with this name is not hidden."""
    return not name.startswith(".")


def _is_of_vault(name: str) -> bool:
    """Whether a file or folder with this name in a vault is copied. Folders of packages are not."""
    return _is_visible(name) and name not in SKIPPED_FOLDERS


def _is_of_bank(name: str) -> bool:
    """Whether a file or folder with this name in a memory bank is copied."""
    return _is_of_vault(name) and name not in _BANK_CACHES


def files_below(root: Path, includes: Callable[[str], bool]) -> Iterator[SourceFile]:
    """Yield all files below `root`, sorted by path.

    Links are not followed. Links and folders that cannot be read come with the reason (`refused`).

    includes: whether to include a file or folder with this name.
    """
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        try:
            entries = sorted(os.scandir(root / folder), key=lambda entry: entry.name)
        except OSError as error:
            yield SourceFile(f"{folder}/", refused=reason(error))
            continue
        inner_folders = []
        for entry in entries:
            if not includes(entry.name):
                continue
            path = f"{folder}/{entry.name}" if folder else entry.name
            is_text = is_valid_unicode(entry.name) and entry.name.isprintable()
            if is_text and entry.is_dir(follow_symlinks=False):
                inner_folders.append(path)
            else:
                yield _source_file(entry, path, is_text)
        # The last one waiting is listed next
        waiting += reversed(inner_folders)


def _source_file(entry: os.DirEntry[str], path: str, is_text: bool) -> SourceFile:
    """Describe a file, with the reason if it cannot be imported.

    entry: the file, as `os.scandir` lists it.
    path: its path below the folder that is imported.
    is_text: whether its name is valid text.
    """
    if not is_text:
        shown_path = path.encode("utf-8", "backslashreplace").decode()
        return SourceFile(shown_path, refused="its name is no text")
    if entry.is_symlink():
        return SourceFile(path, refused="it is a link")
    if not entry.is_file(follow_symlinks=False):
        return SourceFile(path, refused="it is no file")
    return SourceFile(path, entry.stat(follow_symlinks=False).st_size)


def plan_vault(memory: MemorySession, path: Path, project: str) -> MovePlan:
    """Plan to copy a folder of notes into a project, with its folders and other files.

    Raises WrongStore, ProjectNotFound.
    """
    check_folder(path, "a folder of notes")
    name = memory.project(project).name
    files = list(files_below(path, _is_of_vault))
    if not any(_is_note(file.path) for file in files):
        raise WrongStore(f"{path} holds no notes (*.md)")
    return _Copying(memory, name).add(path, files)


def plan_mirror(memory: MemorySession, path: Path) -> MovePlan:
    """Plan to bring back the files that `memory mirror` keeps at `path`, each into its project.

    Projects of the configuration that do not exist here become folders of the home when the plan is
    carried out. Raises WrongStore, InvalidInput for an agent.
    """
    check_folder(path, "a mirror")
    if not (path / MIRROR).is_dir():
        raise WrongStore(f"{path} is no mirror: it has no folder {MIRROR}")
    # `Contents` raises InvalidInput for an agent, since a mirror also has other agents' notes.
    Contents(memory)
    copying = _MirrorCopying(memory)
    for project, folder in _mirror_folders(path):
        if folder.is_dir() and not folder.is_symlink():
            copying.add(project, folder)
        elif os.path.lexists(folder):
            why = "a graph file, or no folder: memory project add takes it in place"
            copying.plan.skipped.append((folder.name, why))
    return copying.plan


def _mirror_folders(mirror: Path) -> list[tuple[str, Path]]:
    """Return the projects of a mirror, each with its folder, which need not exist."""
    # The folder of a hidden project is visible in a mirror.
    folders = [(name, mirror / name.removeprefix(".")) for name in _PROJECTS_OF_EVERY_HOME]
    if (mirror / OWN).is_dir():
        # A name with a dot at its beginning is written with `%2E`.
        for folder in sorted((mirror / OWN).iterdir()):
            folders.append((folder.name.replace("%2E", ".", 1), folder))
    return folders


class _MirrorCopying:
    """Plan to copy the folders of a mirror, each into its project.

    plan: the plan for all folders. The content of each action is an _OfProject.
    """

    def __init__(self, memory: MemorySession) -> None:
        self._memory = memory
        self._known_projects = {
            *_PROJECTS_OF_EVERY_HOME,
            *(project.name for project in memory.projects),
        }
        # By project.
        self._plans: dict[str, MovePlan] = {}
        self.plan = MovePlan(self._act)

    def add(self, project: str, folder: Path) -> None:
        """Add the files of a folder to the plan."""
        files = files_below(folder, partial(is_kept_name, project))
        is_new = project not in self._known_projects
        project_plan = _Copying(self._memory, project, is_new=is_new).add(folder, files)
        self._plans[project] = project_plan
        for item in project_plan.items:
            self.plan.items.append(replace(item, content=_OfProject(project, item)))
        self.plan.unchanged += project_plan.unchanged
        self.plan.skipped += project_plan.skipped

    def _act(self, items: Sequence[MoveAction]) -> None:
        """Carry out some items, each by the plan of its project. Missing projects are made first."""
        for project, group in groupby(items, lambda item: item.content.project):
            if project not in self._known_projects:
                self._memory.add_project(project, str(self._memory.home / OWN / project))
                self._known_projects.add(project)
            self._plans[project].act([item.content.action for item in group])


class _OfProject(NamedTuple):
    """An action in the plan of one project, as it is stored in the plan for all projects.

    project: the name of the project.
    action: one action of the project's plan.
    """

    project: str
    action: MoveAction


def plan_banks(
    memory: MemorySession,
    path: Path,
    name_bank: Callable[[Path], tuple[str, str]],
    is_id: Callable[[str], bool],
) -> MovePlan:
    """Plan to copy memory banks. Raises WrongStore.

    path: a root with the folders `global`, `projects` and `code`, or one of these. It may also be a
        folder of projects, or a single bank: a folder of Markdown files.
    name_bank: returns the kind (one of BANK_KINDS) and the id of a single bank.
    is_id: whether a text can be the id of a bank.
    """
    check_folder(path, "a folder of memory banks")
    places = _bank_places(path, name_bank)
    if not places:
        raise WrongStore(
            f"{path} holds no memory banks: neither Markdown files nor folders of them"
        )
    copying = _Copying(memory, BANKS)
    for place in places:
        bank_path = f"{place.kind}/{place.id}/"
        if is_id(place.id):
            copying.add(place.folder, _bank_files(place.folder), bank_path)
        else:
            copying.plan.skipped.append((bank_path, _NO_BANK_ID))
    return copying.plan


class _BankPlace(NamedTuple):
    """The kind of a bank (one of BANK_KINDS), its id, and the folder with its files."""

    kind: str
    id: str
    folder: Path


def _bank_places(path: Path, name_bank: Callable[[Path], tuple[str, str]]) -> list[_BankPlace]:
    """Find the banks at `path`, which may be a root of banks, banks of one kind, or a single bank.

    name_bank: returns the kind (one of BANK_KINDS) and the id of a single bank.
    """
    files = [entry for entry in path.iterdir() if entry.is_file()]
    note_names = [file.name.lower() for file in files if _is_note(file.name)]
    # A root of banks may have a readme, but no other note.
    may_be_root = not note_names or note_names == ["readme.md"]
    if may_be_root:
        places: list[_BankPlace] = []
        for kind in BANK_KINDS:
            places += _banks_below(path / kind, kind)
        if places:
            return places

    # A folder with notes is a single bank, one without notes contains banks of one kind.
    if note_names:
        kind, bank_id = name_bank(path)
        return [_BankPlace(kind, bank_id, path)]
    folder_name = path.resolve().name
    kind = folder_name if folder_name in BANK_KINDS else "projects"
    return _banks_below(path, kind)


def _banks_below(folder: Path, kind: str) -> list[_BankPlace]:
    """Find the banks in `folder`, which has banks of one kind."""
    return [_BankPlace(kind, bank.name, bank) for bank in _bank_folders(folder)]


def _bank_files(folder: Path) -> list[SourceFile]:
    """Return the files of a bank, with the bank's record (BANK_RECORD)."""
    files = list(files_below(folder, _is_of_bank))
    # The record's name begins with a dot, so it is not among them.
    record = folder / BANK_RECORD
    if record.is_file() and not record.is_symlink():
        files.append(SourceFile(BANK_RECORD, record.stat().st_size))
    return files


def _bank_folders(path: Path) -> list[Path]:
    """Return the folders in `path` that have a note. Empty if `path` is not a folder."""
    if not path.is_dir():
        return []
    bank_folders: list[Path] = []
    for entry in sorted(path.iterdir()):
        is_folder = entry.is_dir() and not entry.is_symlink()
        if not is_folder or not _is_visible(entry.name):
            continue
        has_note = any(_is_note(file.path) for file in files_below(entry, _is_visible))
        if has_note:
            bank_folders.append(entry)
    return bank_folders


def _is_note(name: str) -> bool:
    """Whether a file with this name or path is a note."""
    return name.lower().endswith(NOTE_SUFFIXES)


class _Copying:
    """Plan to copy files into a project.

    is_new: whether the project does not exist yet, so that no file can be in the way.
    """

    def __init__(self, memory: MemorySession, project: str, *, is_new: bool = False):
        self._memory = memory
        self._project = project
        self._is_new = is_new
        self._exchange = Exchange(memory)
        # The paths of planned notes with a permalink or id: by (_PERMALINK, value), (_ID, value).
        self._claimed: dict[tuple[str, str], str] = {}
        # Planned paths by their case-folded form.
        self._paths: dict[str, str] = {}
        self.plan = MovePlan(self._act)

    def _act(self, items: Sequence[MoveAction]) -> None:
        """Copy the files of these items."""
        copies: list[_FileCopy] = [item.content for item in items]
        files = [(copy.path, read_bytes(copy.source)) for copy in copies]
        self._exchange.add_files(self._project, files)

    def add(self, folder: Path, files: Iterable[SourceFile], prefix: str = "") -> MovePlan:
        """Add the files of `folder` to the plan.

        A file that exists with the same bytes is unchanged. No file is overwritten.

        prefix: put before the path of each file in the project, such as `projects/app/`.
        """
        for file in files:
            source = folder / file.path
            path = prefix + file.path
            name = f"{self._project}/{path}"
            refusal = file.refused or self._refusal(source, path)
            if refusal == "":
                copy = _FileCopy(source, path)
                self.plan.items.append(MoveAction(IMPORT, name, file.size, copy))
            elif refusal == _SAME_FILE:
                self.plan.unchanged += 1
            else:
                self.plan.skipped.append((name, refusal))
        return self.plan

    def _refusal(self, source: Path, path: str) -> str:
        """Return the reason why a file is not copied, "" if it is copied.

        The reason is `_SAME_FILE` if the project has the same file already.
        """
        try:
            hidden = path.endswith(f"/{BANK_RECORD}") or self._project == "memories"
            if path_guard.clean(path, self._project, hidden=hidden) != path:
                return "its name cannot be kept"
            if self._is_new:
                return ""
            existing = self._exchange.file(self._project, path)
        except MemorandaError as error:
            return str(error)
        data = read_bytes(source)
        if existing is not None:
            return self._difference(existing.data, data)
        return self._collision(path) or self._refused_note(path, data)

    def _difference(self, existing: bytes, data: bytes) -> str:
        """Say how a file differs from an existing one at its path. `_SAME_FILE` if both are equal.

        The caller does not learn whether a file is equal to one that it may not see.
        """
        if not self._memory.sees(scope_of(existing)):
            return "something else is there"
        if existing == data:
            return _SAME_FILE
        return "another text is there"

    def _collision(self, path: str) -> str:
        """Return the reason if another path differs from this one only in the case of its letters.

        "" if no path does.
        """
        earlier_path = self._paths.setdefault(path.casefold(), path)
        if earlier_path != path:
            return f"{earlier_path} is there under the same name but for its case"
        if self._exchange.is_taken(self._project, path):
            return "something is there under the same name but for its case"
        return ""

    def _refused_note(self, path: str, data: bytes) -> str:
        """Return the reason why a new note is not copied: its scope, or a name that is taken.

        "" if the note is copied.
        """
        scope = scope_of(data)
        if not self._memory.sees(scope):
            return f'its scope is "{scope}"'
        if not _is_note(path):
            return ""
        note = parse_note(
            data.decode("utf-8", "replace"), project=self._project, path=path, changed=EPOCH
        )
        # A permalink and an id are each taken by one note only.
        claims: list[tuple[str, str]] = []
        if note.own_permalink:
            claims.append((_PERMALINK, note.permalink))
        if note.own_id:
            claims.append((_ID, note.id))
        for noun, value in claims:
            holder = self._holder_path(noun, value)
            if holder:
                return f'its {noun} "{value}" is that of {holder}; change one of the two and import again'
        self._claimed |= dict.fromkeys(claims, path)
        return ""

    def _holder_path(self, noun: str, value: str) -> str:
        """Return the path of the note that has a permalink or id already. "" if no note has it.

        A note that the caller may not see is "another note".

        noun: _PERMALINK or _ID.
        value: the permalink or the id.
        """
        # An earlier note of this import takes it.
        if (noun, value) in self._claimed:
            return f"{self._project}/{self._claimed[noun, value]}"
        if noun == _PERMALINK:
            info = self._exchange.holder(self._project, permalink=value)
        else:
            info = self._exchange.holder(self._project, identity=value)
        if info is None:
            return ""
        if self._memory.sees(info.scope):
            return f"{info.project}/{info.path}"
        return "another note"


class _FileCopy(NamedTuple):
    """A file to copy.

    source: the file.
    path: its path in the project.
    """

    source: Path
    path: str


def plan_graph(graph: NoteGraph | FileGraph, graph_text: GraphText) -> MovePlan:
    """Plan to merge the graph in a text into `graph`. Bad lines are skipped.

    There is an item for each new entity, for each entity that gains observations or unknown keys,
    and for each new relation.

    graph_text: the entities, relations and bad lines of the text.
    """
    entities = _united_entities(graph_text)
    relations = defaultdict[str, dict[tuple[str, str, str], GraphRelation]](dict)
    for relation in graph_text.relations:
        relations[relation.source].setdefault(relation.triple, relation)
    # Entities come first, so that no relation needs a placeholder for one.
    names = list(dict.fromkeys([*entities, *relations]))
    lacking = _Lacking(graph, names, entities)
    known_relations = {relation.triple for relation in graph.relations(set(relations))}

    plan = MovePlan(partial(_merge_into, graph))
    plan.skipped = [(f"line {number}", why) for number, why in graph_text.bad]
    for name in names:
        if name in entities:
            lacking.add_to(plan, name)
        for relation in relations.get(name, {}).values():
            if relation.triple in known_relations:
                plan.unchanged += 1
            else:
                text = f"relation {relation.source} {relation.type} {relation.target}"
                plan.items.append(MoveAction(IMPORT, text, 0, relation))
    return plan


def _merge_into(graph: NoteGraph | FileGraph, items: Sequence[MoveAction]) -> None:
    """Merge the entities and relations of these items into a graph."""
    contents = [item.content for item in items]
    relations = [content for content in contents if isinstance(content, GraphRelation)]
    entities = [content for content in contents if not isinstance(content, GraphRelation)]
    graph.merge(entities, relations)


def _united_entities(graph_text: GraphText) -> dict[str, tuple[Entity, dict[str, Any]]]:
    """Return the entities of a text by name, each with its unknown keys.

    Entities with the same name are merged into one.
    """
    entities: dict[str, tuple[Entity, dict[str, Any]]] = {}
    for entity, other_keys in graph_text.entities:
        if entity.name in entities:
            first, keys = entities[entity.name]
            observations = dict.fromkeys([*first.observations, *entity.observations])
            entity = Entity(first.name, first.type, tuple(observations))
            other_keys = {**other_keys, **keys}
        entities[entity.name] = entity, other_keys
    return entities


class _Lacking:
    """Find the observations and keys of imported entities that a graph does not have yet.

    names: all names that are imported, also of entities that only a relation names.
    entities: the imported entities by name, each with its unknown keys.
    """

    def __init__(
        self,
        graph: NoteGraph | FileGraph,
        names: Iterable[str],
        entities: dict[str, tuple[Entity, dict[str, Any]]],
    ):
        self._entities = entities
        existing = graph.named(dict.fromkeys(names))
        self._observed = defaultdict[str, set[str]](set)
        for key, texts in zip(existing, graph.observations(existing), strict=True):
            self._observed[key.name].update(texts)
        # The names of entities that would gain unknown keys. A graph file stores these elsewhere.
        self._gaining = set[str]()
        if isinstance(graph, NoteGraph):
            self._gaining = self._names_gaining_keys(graph, existing)

    def _names_gaining_keys(self, graph: NoteGraph, existing: Sequence[EntityKey]) -> set[str]:
        """Return the names of imported entities that have unknown keys which the graph lacks.

        existing: the imported entities that the graph has.
        """
        with_unknown_keys = []
        for key in existing:
            if key.name in self._entities:
                _, unknown_keys = self._entities[key.name]
                if unknown_keys:
                    with_unknown_keys.append((key, unknown_keys))
        answers = graph.lacking(with_unknown_keys)
        return {
            key.name
            for (key, _), is_lacking in zip(with_unknown_keys, answers, strict=True)
            if is_lacking
        }

    def add_to(self, plan: MovePlan, name: str) -> None:
        """Add to a plan the part of an entity that the graph lacks, or count the entity as
        unchanged.

        name: the name of the entity.
        """
        entity, _ = self._entities[name]
        is_there = name in self._observed
        has_all = is_there and self._observed[name].issuperset(entity.observations)
        if has_all and name not in self._gaining:
            plan.unchanged += 1
            return
        verb = UPDATE if is_there else IMPORT
        size = sum(map(len, entity.observations))
        plan.items.append(MoveAction(verb, f"entity {name}", size, self._entities[name]))


_OLDER = "a newer one is here; this one is in the history"
_OLDER_PASSING = "a newer one is here"


class _Incoming(NamedTuple):
    """An entry of the agent-memory server.

    entry: the entry in our form.
    unknown: the fields of it that we do not know.
    """

    entry: Entry
    unknown: dict[str, Any]

    @property
    def name(self) -> str:
        """The name of the entry for people."""
        return f"kv/{self.entry.namespace}/{self.entry.key}"


def plan_agent_memory(memory: MemorySession, path: Path, *, skip_bad: bool = False) -> MovePlan:
    """Plan to copy the entries of an agent-memory folder into notes.

    If two entries have the same key, the one with the later `created_at` counts, since a repeated
    "remember" sets it. If both are equal, the existing one counts.

    skip_bad: whether to leave out files that are not lists of entries. Otherwise the first of them
        raises WrongStore.

    Raises WrongStore.
    """
    check_folder(path, "a folder of agent-memory")
    entries = NoteEntries(memory)
    files = JsonEntryFolder(path).files
    stems = files.stems()
    if not stems:
        raise WrongStore(f"{path} holds no JSON files of agent-memory")

    plan = MovePlan(partial(_store_entries, entries))
    newest: dict[tuple[str, str], _Incoming] = {}
    for stem in stems:
        try:
            content = files.read(stem)
        except (OSError, ValueError) as error:
            if not skip_bad:
                raise WrongStore(
                    f"{path / stem}.json is no list of entries ({error}); "
                    "mend it, or leave it out with --skip-bad"
                ) from None
            plan.skipped.append((f"{stem}.json", "it is no list of entries"))
            continue
        incoming_entries = [
            _Incoming(entry_of(row, stem, content), unknown_of(row, stem)) for row in content.rows
        ]
        _take_usable(incoming_entries, newest, plan, memory.clock())
    for incoming in newest.values():
        _decide(incoming, entries, plan)
    return plan


def _take_usable(
    incoming_entries: Iterable[_Incoming],
    newest: dict[tuple[str, str], _Incoming],
    plan: MovePlan,
    now: datetime,
) -> None:
    """Put the usable entries of a file into `newest`, unless an entry with their key is newer.

    newest: the newest entry so far for each key, by namespace and key.
    plan: gets a skipped entry for each of the others.
    now: the present time, at which some entries are over.
    """
    for incoming in incoming_entries:
        why_unusable = _why_unusable(incoming.entry, now)
        if why_unusable:
            plan.skipped.append((incoming.name, why_unusable))
        else:
            _take_newest(incoming, newest, plan)


def _take_newest(
    incoming: _Incoming, newest: dict[tuple[str, str], _Incoming], plan: MovePlan
) -> None:
    """Put an entry into `newest`, unless an entry with its key there is newer.

    newest: the newest entry so far for each key, by namespace and key.
    plan: gets a skipped entry for each further entry with a key.
    """
    key = (incoming.entry.namespace, incoming.entry.key)
    earlier = newest.get(key)
    if earlier is None:
        newest[key] = incoming
        return
    # Of two equally old ones, the later in the files counts
    is_newer = incoming.entry.created >= earlier.entry.created
    if is_newer:
        newest[key] = incoming
    # Entries with one key have one name, so it does not matter which of the two is named
    plan.skipped.append((incoming.name, "another with its key is newer"))


def _store_entries(entries: NoteEntries, items: Sequence[MoveAction]) -> None:
    """Carry out some items of a plan: store entries, and keep outdated ones in the history."""
    current = [item.content for item in items if item.verb != KEEP]
    outdated = [item.content for item in items if item.verb == KEEP]
    if current:
        entries.import_entries(current, VERB)
    if outdated:
        entries.keep_outdated(outdated)


def _why_unusable(entry: Entry, now: datetime) -> str:
    """Return the reason why an entry is not imported, whatever is here. "" if it may be."""
    if entry.expires is not None and now > entry.expires:
        return EXPIRED
    if not entry.key.strip():
        return "its key is blank"
    return ""


def _decide(incoming: _Incoming, entries: NoteEntries, plan: MovePlan) -> None:
    """Add an incoming entry to a plan. If an entry here has its key, the newer of the two counts."""
    entry = incoming.entry
    name = incoming.name
    size = len(entry.value)
    existing = entries.peek(entry.namespace, entry.key)
    if existing is None:
        plan.items.append(MoveAction(IMPORT, name, size, incoming))
        return
    present_entry, is_locked = existing
    if _compared(present_entry) == _compared(entry):
        plan.unchanged += 1
        return

    # Notes keep the time of an entry in whole seconds.
    is_newer = entry.created.replace(microsecond=0) > present_entry.created.replace(microsecond=0)
    if is_newer and is_locked:
        plan.skipped.append((name, "the one here is locked"))
        return
    if is_newer:
        plan.items.append(MoveAction(UPDATE, name, size, incoming))
        return

    # The older entry goes into the history, which does not get texts of entries that expire.
    if entry.expires is not None or present_entry.expires is not None:
        plan.skipped.append((name, _OLDER_PASSING))
        return
    plan.skipped.append((name, _OLDER))
    plan.items.append(MoveAction(KEEP, name, size, incoming))


def _compared(entry: Entry) -> tuple[Any, ...]:
    """Return the values to compare entries by.

    They have the precision that a note has: seconds, and milliseconds for the end.
    """
    expires = entry.expires and whole_milliseconds(entry.expires)
    return entry.value, entry.created.replace(microsecond=0), expires
