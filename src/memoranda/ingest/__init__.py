"""Taking other programs' notes in: which files become new memories, which change one, which are
known. Plan, then act.

What each source says is read in sources.py. Source: contract 001, 11.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
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
from memoranda.ingest.sources import SOURCES, Source, SourceNote, Tree
from memoranda.note.markdown import Record
from memoranda.note.model import INBOX, united
from memoranda.query import split_list
from memoranda.text.user_path import absolute_path

if TYPE_CHECKING:
    from memoranda.config import Settings
    from memoranda.engine import MemorySession

# Files of one change.
BATCH = 200
BATCH_CHARACTERS = 4_000_000
"""How many new memories are one change at most, and about how much text."""
Change = tuple[NoteInfo, SourceNote]


@dataclass(slots=True)
class IngestPlan:
    """The plan for the files of one source; `seen` counts the files looked at."""

    source: str
    root: str = ""
    new: list[SourceNote] = field(default_factory=list)
    changed: list[Change] = field(default_factory=list)
    seen: int = 0
    warnings: list[str] = field(default_factory=list)


# A file whose text differs from its memory's.
_ChangedFile = tuple[IngestPlan, NoteInfo, SourceNote]


@dataclass(slots=True)
class Ingestion:
    """The outcome for the files of one source; `skipped` are those that were neither new nor
    changed.
    """

    ingested: int = 0
    updated: int = 0
    skipped: int = 0
    warnings: list[str] = field(default_factory=list)


ALL = "all"


def named_sources(
    names_text: str, path: str | None, settings: Settings
) -> list[tuple[Source, Path | None]]:
    """The sources with these names, each with its folder. The folder is None if its place is
    unknown.

    names_text: names separated by commas. `all` means all that exist and are not switched off.
    path: a folder to read instead.

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


def _present_sources(folder: Path | None, settings: Settings) -> Iterator[tuple[Source, Path]]:
    """The sources that exist and are not switched off, each with its folder.

    folder: a folder to read instead of each source's own.
    """
    for source in SOURCES.values():
        root = folder or _root_of(source, settings)
        if root is not None and root.is_dir() and source.name not in settings.ingestion_off:
            yield source, root


def _checked_folder(path: str) -> Path:
    """The folder at a path that somebody typed. Raises InvalidInput."""
    folder = _absolute(path)
    if path.strip() and folder.is_dir():
        return folder
    is_missing = path.strip() and not folder.exists()
    raise InvalidInput(f"{'no such folder' if is_missing else 'not a folder'}: {path}")


def _root_of(source: Source, settings: Settings) -> Path | None:
    """The folder of a source. None if its place is unknown."""
    root = settings.ingestion.get(source.name) or source.root
    if root:
        return _absolute(root)
    return None


def _absolute(path: str) -> Path:
    return Path(absolute_path(path))


def run(
    memory: MemorySession,
    chosen: Sequence[tuple[Source, Path | None]],
    *,
    dry_run: bool = False,
    takes_removed: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[list[IngestPlan], list[Ingestion]]:
    """Take in what the files of these sources say: the plans, and what became of each (with
    `dry_run`: would).
    """
    ingested_texts = Ingested(memory).known()
    plans = plan(
        [(source, Tree(root, (memory.home,))) for source, root in chosen],
        ingested_texts,
        takes_removed=takes_removed,
    )
    if not dry_run:
        return plans, apply(memory, plans, ingested_texts, progress)
    sizes = [(len(source_plan.new), len(source_plan.changed), source_plan) for source_plan in plans]
    return plans, [
        Ingestion(new, changed, source_plan.seen - new - changed, source_plan.warnings)
        for new, changed, source_plan in sizes
    ]


def plan(
    reads: Sequence[tuple[Source, Tree]],
    ingested_texts: IngestedTexts,
    *,
    takes_removed: bool = False,
) -> list[IngestPlan]:
    """Plan what to do with the files of these sources. Nothing is written.

    A text that a memory already has is skipped. A known file with a new text changes its memory.
    Removed memories stay removed, unless `takes_removed`.

    ingested_texts: the texts stored already; the plan's texts are added to them.
    """
    plans: list[IngestPlan] = []
    unknown: list[tuple[IngestPlan, SourceNote]] = []
    changed: deque[_ChangedFile] = deque()
    for source, tree in reads:
        source_plan = IngestPlan(source.name, tree.root, warnings=tree.warnings)
        plans.append(source_plan)
        for note in source.scan(tree):
            info = ingested_texts.refs.get(note.source_ref)
            if info is None:
                unknown.append((source_plan, note))
            elif note.content_hash not in ingested_texts.texts[info.id]:
                changed.append((source_plan, info, note))
        source_plan.seen = tree.seen
    _plan_changed(changed, ingested_texts)
    # After the changed ones, which may free a text.
    for source_plan, note in unknown:
        is_removed = (
            note.content_hash in ingested_texts.gone_hashes
            or note.source_ref in ingested_texts.gone_refs
        )
        if not ingested_texts.hashes[note.content_hash] and (takes_removed or not is_removed):
            source_plan.new.append(note)
            ingested_texts.hold(note.source_ref, frozenset((note.content_hash,)))
    return plans


def _plan_changed(changed: deque[_ChangedFile], ingested_texts: IngestedTexts) -> None:
    """Add the files that changed to their plans. A text another memory has waits until the change
    of that memory's own file frees it."""
    waiting: dict[str, list[_ChangedFile]] = {}
    while changed:
        file = changed.popleft()
        source_plan, info, note = file
        if ingested_texts.hashes[note.content_hash]:
            waiting.setdefault(note.content_hash, []).append(file)
            continue
        source_plan.changed.append((info, note))
        for free in ingested_texts.hold(info.id, frozenset((note.content_hash,))):
            changed.extend(waiting.pop(free, ()))


def apply(
    memory: MemorySession,
    plans: Sequence[IngestPlan],
    ingested_texts: IngestedTexts,
    progress: Callable[[int, int], None] | None = None,
) -> list[Ingestion]:
    """Carry out the plans: each batch of new memories is one change, and each changed memory is
    another.

    A memory that is locked, or changed since the plan, stays as it is, and a warning names it.
    Raises StorageError; everything stored before it stays.
    """
    ingested = Ingested(memory)
    upkeep = Upkeep(memory)
    total = sum(len(source_plan.new) + len(source_plan.changed) for source_plan in plans)
    finished = 0
    outcomes = [Ingestion(warnings=list(source_plan.warnings)) for source_plan in plans]

    def advance(number: int) -> None:
        nonlocal finished
        finished += number
        if progress is not None:
            progress(finished, total)

    for source_plan, outcome in zip(plans, outcomes, strict=True):
        records = []
        for note in source_plan.new:
            # One after the other, so that of two files with one name the first is older.
            now = memory.clock()
            expires = now + memory.settings.short_term_ttl
            other_keys = _further(note, source_plan.root, note.aliases)
            record_fields: dict[str, Any] = {
                "source": note.source,
                "expires": expires,
                "further": other_keys,
            }
            records.append(
                Record(str(uuid4()), note.content, INBOX, now, now, tags=note.tags, **record_fields)
            )
        size = lambda source_plan: len(source_plan.content)
        outcome.ingested = ingested.store(
            list(batches(records, BATCH, size, BATCH_CHARACTERS)), ingested_texts, advance
        )
    for source_plan, outcome in zip(plans, outcomes, strict=True):
        # Tags and names that a memory got since stay.
        for info, note in source_plan.changed:
            keys = _further(
                note, source_plan.root, tuple(dict.fromkeys((*info.aliases, *note.aliases)))
            )
            keys["tags"] = united((*info.tags, *note.tags))
            try:
                upkeep.rewrite(info, note.content, keys, VERB)
                outcome.updated += 1
            except (Conflict, InvalidInput, Locked, NotFound, NotText) as error:
                outcome.warnings.append(
                    f"{note.source_ref.partition(':')[2]}: not updated. {error}"
                )
            advance(1)
        outcome.skipped = source_plan.seen - outcome.ingested - outcome.updated
    return outcomes


def _further(note: SourceNote, root: str, aliases: Sequence[str]) -> dict[str, Any]:
    names = {"title": note.title} | ({"aliases": list(aliases)} if aliases else {})
    if note.date:
        dated = {"date": note.date}
    else:
        dated = {}
    return (
        names
        | {SOURCE_REF: note.source_ref, SOURCE_ROOT: root, SOURCE_HASH: note.content_hash}
        | dated
    )
