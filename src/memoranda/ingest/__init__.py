"""Ingest the notes of other programs: store their files as memories, and update these memories.

A source is a kind of folder, such as an Obsidian vault; sources.py reads its files. `plan` sorts
the files into new, changed and known ones, and `apply` then writes the memories. `run` does both.
Source: contract 001, 11.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from memoranda.engine.exchange import VERB, batches
from memoranda.engine.upkeep import (
    SOURCE_HASH,
    SOURCE_REF,
    SOURCE_ROOT,
    Ingested,
    IngestedTexts,
    Upkeep,
)
from memoranda.errors import Conflict, InvalidInput, Locked, NotFound, NotText, choices
from memoranda.index.rows import NoteInfo
from memoranda.ingest.sources import SOURCES, Program, SourceNote, Tree
from memoranda.note.markdown import Record
from memoranda.note.model import INBOX, united
from memoranda.query import split_list
from memoranda.text.user_path import absolute_path

if TYPE_CHECKING:
    from memoranda.config import Settings
    from memoranda.engine import MemorySession

BATCH = 200
"""At most this many new memories are stored in one change."""
BATCH_CHARACTERS = 4_000_000
"""About this many characters of new memories are stored in one change."""


class Change(NamedTuple):
    """A memory to update, and the file with its new text.

    info: the memory.
    note: the file.
    """

    info: NoteInfo
    note: SourceNote


@dataclass(slots=True)
class IngestPlan:
    """The plan for one source: which files become memories.

    source: the name of the source.
    root: its folder; "" if its place is unknown.
    new: the files to store as memories.
    changed: the memories to update.
    seen: the number of files that were read.
    warnings: the files that could not be read, in words.
    """

    source: str
    root: str = ""
    new: list[SourceNote] = field(default_factory=list)
    changed: list[Change] = field(default_factory=list)
    seen: int = 0
    warnings: list[str] = field(default_factory=list)


class _ChangedFile(NamedTuple):
    """A file whose text differs from its memory's.

    source_plan: the plan of the source that the file belongs to.
    info: the memory.
    note: the file.
    """

    source_plan: IngestPlan
    info: NoteInfo
    note: SourceNote


@dataclass(slots=True)
class Ingestion:
    """The outcome for one source, as numbers of files.

    ingested: stored as new memories.
    updated: whose memories were updated.
    skipped: neither new nor changed.
    warnings: the files that could not be read or stored, in words.
    """

    ingested: int = 0
    updated: int = 0
    skipped: int = 0
    warnings: list[str] = field(default_factory=list)


ALL = "all"
"""The name that means all sources that exist and are not switched off."""


def named_sources(
    names_text: str, path: str | None, settings: Settings
) -> list[tuple[Program, Path | None]]:
    """Return the sources with these names, each with its folder, None if its place is unknown.

    names_text: names separated by commas, or `all`.
    path: a folder to read instead of each source's usual one; None to read the usual one.

    Raises InvalidInput for an unknown source, or a `path` that is missing, a file or blank.
    """
    names = list(dict.fromkeys(split_list(names_text)))
    _check_source_names(names or [names_text])
    folder = None
    if path is not None:
        folder = _checked_folder(path)
    if ALL not in names:
        return [(SOURCES[name], folder or _root_of(SOURCES[name], settings)) for name in names]
    return list(_present_sources(folder, settings))


def _check_source_names(names: Iterable[str]) -> None:
    """Raise InvalidInput for a name that is neither a source nor `all`."""
    for name in names:
        if name != ALL and name not in SOURCES:
            raise InvalidInput(f"Unknown source: {name}", choices(name, [ALL, *SOURCES]))


def _present_sources(folder: Path | None, settings: Settings) -> Iterator[tuple[Program, Path]]:
    """Yield the sources that exist and are not switched off, each with its folder.

    folder: a folder to read instead of each source's usual one; None to read the usual one.
    """
    for source in SOURCES.values():
        root = folder or _root_of(source, settings)
        if root is not None and root.is_dir() and source.name not in settings.ingestion_off:
            yield source, root


def _checked_folder(path: str) -> Path:
    """Return the folder at a path that somebody typed.

    Raises InvalidInput for a path that is missing, a file or blank.
    """
    folder = _absolute(path)
    is_blank = path.strip() == ""
    if not is_blank and folder.is_dir():
        return folder
    if not is_blank and not folder.exists():
        raise InvalidInput(f"no such folder: {path}")
    raise InvalidInput(f"not a folder: {path}")


def _root_of(source: Program, settings: Settings) -> Path | None:
    """Return the folder of a source in the settings, or else its usual one. None if it has none."""
    root = settings.ingestion.get(source.name) or source.root
    if root:
        return _absolute(root)
    return None


def _absolute(path: str) -> Path:
    """Return a path from the root of the file system, with `~` expanded. Raises InvalidInput."""
    return Path(absolute_path(path))


def run(
    memory: MemorySession,
    chosen: Sequence[tuple[Program, Path | None]],
    *,
    dry_run: bool = False,
    takes_removed: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[list[IngestPlan], list[Ingestion]]:
    """Ingest the files of these sources. Return a plan and an outcome for each source, in order.

    chosen: the sources with their folders, as `named_sources` returns them.
    dry_run: whether to write nothing, and to return the outcomes that the plans would have.
    takes_removed: whether to store again the memories that somebody removed.
    progress: called with the number of files that were stored so far, and of all to store. None
        calls nothing.
    """
    ingested_texts = Ingested(memory).known()
    trees = [(source, Tree(root, excluded_folders=(memory.home,))) for source, root in chosen]
    plans = plan(trees, ingested_texts, takes_removed=takes_removed)
    if not dry_run:
        return plans, apply(memory, plans, ingested_texts, progress)
    return plans, [_expected_outcome(source_plan) for source_plan in plans]


def _expected_outcome(source_plan: IngestPlan) -> Ingestion:
    """Return the outcome that a plan would have."""
    new_count = len(source_plan.new)
    changed_count = len(source_plan.changed)
    return Ingestion(
        ingested=new_count,
        updated=changed_count,
        skipped=source_plan.seen - new_count - changed_count,
        warnings=source_plan.warnings,
    )


def plan(
    reads: Sequence[tuple[Program, Tree]],
    ingested_texts: IngestedTexts,
    *,
    takes_removed: bool = False,
) -> list[IngestPlan]:
    """Plan which files of these sources become memories. Nothing is written yet.

    A text that a memory has already is skipped. If a file was stored before and has changed, its
    memory is updated.

    reads: the sources, each with its folder.
    ingested_texts: the texts that are stored already. The planned texts are added to it.
    takes_removed: whether to store memories again that somebody removed.
    """
    plans: list[IngestPlan] = []
    # Files that have no memory, each with the plan of its source.
    without_memory: list[tuple[IngestPlan, SourceNote]] = []
    changed: deque[_ChangedFile] = deque()
    for source, tree in reads:
        source_plan = IngestPlan(source.name, tree.root, warnings=tree.warnings)
        plans.append(source_plan)
        for note in source.scan(tree):
            info = ingested_texts.refs.get(note.source_ref)
            if info is None:
                without_memory.append((source_plan, note))
            elif note.content_hash not in ingested_texts.texts[info.id]:
                changed.append(_ChangedFile(source_plan, info, note))
        source_plan.seen = tree.seen
    _plan_changed(changed, ingested_texts)
    # After the changed files: a text that a memory loses may be stored for another file.
    for source_plan, note in without_memory:
        is_stored = ingested_texts.hashes[note.content_hash]
        is_refused = not takes_removed and _was_removed(note, ingested_texts)
        if is_stored or is_refused:
            continue
        source_plan.new.append(note)
        ingested_texts.hold(note.source_ref, frozenset((note.content_hash,)))
    return plans


def _was_removed(note: SourceNote, ingested_texts: IngestedTexts) -> bool:
    """Whether somebody removed a memory of this file, or one with this text."""
    if note.source_ref in ingested_texts.gone_refs:
        return True
    return note.content_hash in ingested_texts.gone_hashes


def _plan_changed(changed: deque[_ChangedFile], ingested_texts: IngestedTexts) -> None:
    """Add the changed files to the plans of their sources.

    Two files may have swapped their texts. So a file whose new text another memory has waits until
    that memory gets another text. Without that, the file is left out.

    changed: the changed files. They are removed from it.
    ingested_texts: which memory has which text.
    """
    # By the hash of a text: the files that wait until no memory has this text.
    waiting: dict[str, list[_ChangedFile]] = {}
    while changed:
        file = changed.popleft()
        content_hash = file.note.content_hash
        is_taken = ingested_texts.hashes[content_hash]
        if is_taken:
            waiting.setdefault(content_hash, []).append(file)
            continue

        file.source_plan.changed.append(Change(file.info, file.note))
        # The memory of this file loses its old text, for which other files may wait
        lost_hashes = ingested_texts.hold(file.info.id, frozenset((content_hash,)))
        for lost_hash in lost_hashes:
            changed.extend(waiting.pop(lost_hash, ()))


def apply(
    memory: MemorySession,
    plans: Sequence[IngestPlan],
    ingested_texts: IngestedTexts,
    progress: Callable[[int, int], None] | None = None,
) -> list[Ingestion]:
    """Store the new memories of all plans, then update the changed ones. Return the outcomes.

    A batch of new memories is one change in the history, and so is each update. A memory that is
    locked, or that somebody changed since the plan, stays as it is, and a warning names it.

    ingested_texts: as `plan` left it.
    progress: called with the number of files that were stored so far, and of all to store. None
        calls nothing.

    Raises StorageError. Memories that were stored before the error stay.
    """
    ingested = Ingested(memory)
    total = sum(len(source_plan.new) + len(source_plan.changed) for source_plan in plans)
    finished = 0
    outcomes = [Ingestion(warnings=list(source_plan.warnings)) for source_plan in plans]

    def advance(number: int) -> None:
        """Report that `number` more files were stored."""
        nonlocal finished
        finished += number
        if progress is not None:
            progress(finished, total)

    for source_plan, outcome in zip(plans, outcomes, strict=True):
        records = [_record(memory, note, source_plan.root) for note in source_plan.new]
        record_batches = batches(
            records, BATCH, lambda record: len(record.content), BATCH_CHARACTERS
        )
        outcome.ingested = ingested.store(list(record_batches), ingested_texts, advance)
    # New memories come first, so that they are there even if an update raises an error.
    for source_plan, outcome in zip(plans, outcomes, strict=True):
        _update_changed(memory, source_plan, outcome, advance)
        outcome.skipped = source_plan.seen - outcome.ingested - outcome.updated
    return outcomes


def _update_changed(
    memory: MemorySession,
    source_plan: IngestPlan,
    outcome: Ingestion,
    advance: Callable[[int], None],
) -> None:
    """Update the memories of changed files. A memory that cannot be updated gets a warning.

    outcome: takes the warnings, and counts the updated memories.
    advance: called with 1 after each file.
    """
    upkeep = Upkeep(memory)
    for info, note in source_plan.changed:
        try:
            _update(upkeep, info, note, source_plan.root)
            outcome.updated += 1
        except (Conflict, InvalidInput, Locked, NotFound, NotText) as error:
            path = note.source_ref.partition(":")[2]
            outcome.warnings.append(f"{path}: not updated. {error}")
        advance(1)


def _record(memory: MemorySession, note: SourceNote, root: str) -> Record:
    """Turn a file into a new memory of the inbox.

    note: the file.
    root: the root folder of its source.
    """
    # The clock is read for each file, so that the first of two files with the same name is older.
    now = memory.clock()
    return Record(
        id=str(uuid4()),
        content=note.content,
        category=INBOX,
        created=now,
        updated=now,
        tags=note.tags,
        source=note.source,
        expires=now + memory.settings.short_term_ttl,
        further=_source_keys(note, root, note.aliases),
    )


def _update(upkeep: Upkeep, info: NoteInfo, note: SourceNote, root: str) -> None:
    """Give a memory the present text of its file.

    info: the memory.
    note: the file.
    root: the root folder of its source.
    """
    # Aliases and tags that the memory got since it was stored stay.
    aliases = tuple(dict.fromkeys((*info.aliases, *note.aliases)))
    keys = _source_keys(note, root, aliases)
    keys["tags"] = united((*info.tags, *note.tags))
    upkeep.rewrite(info, note.content, keys, VERB)


def _source_keys(note: SourceNote, root: str, aliases: Sequence[str]) -> dict[str, Any]:
    """Return the header keys that a memory gets from its file.

    note: the file.
    root: the root folder of its source.
    aliases: the other names of the note.
    """
    keys: dict[str, Any] = {"title": note.title}
    if aliases:
        keys["aliases"] = list(aliases)
    keys[SOURCE_REF] = note.source_ref
    keys[SOURCE_ROOT] = root
    keys[SOURCE_HASH] = note.content_hash
    if note.date:
        keys["date"] = note.date
    return keys
