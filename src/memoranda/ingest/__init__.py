"""Taking other programs' notes in: which files become new memories, which change one, which are
known. Plan, then act.

What each source says is read in sources.py. Source: contract 001, 11.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
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

BATCH = 200
BATCH_CHARACTERS = 4_000_000
"""How many new memories are one change at most, and about how much text."""
Change = tuple[NoteInfo, SourceNote]


@dataclass(slots=True)
class IngestPlan:
    """What is to be done with the files of one source; `seen` counts the files looked at."""

    source: str
    root: str = ""
    new: list[SourceNote] = field(default_factory=list)
    changed: list[Change] = field(default_factory=list)
    seen: int = 0
    warnings: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Ingestion:
    """What was done with the files of one source; `skipped` are those that were neither new nor
    changed.
    """

    ingested: int = 0
    updated: int = 0
    skipped: int = 0
    warnings: list[str] = field(default_factory=list)


ALL = "all"


def named_sources(
    wanted: str, path: str | None, settings: Settings
) -> list[tuple[Source, Path | None]]:
    """The sources named (parted by commas), each with its folder; of all sources those that are
    there and not switched off. `path`: the folder to read instead. Raises InvalidInput for an
    unknown source, or a `path` that is missing, a file or blank."""
    names = list(dict.fromkeys(split_list(wanted)))
    for name in names or [wanted]:
        if name != ALL and name not in SOURCES:
            raise InvalidInput(f"Unknown source: {name}", choices(name, [ALL, *SOURCES]))
    folder = None if path is None else _absolute(path)
    if path is not None and folder and (not path.strip() or not folder.is_dir()):
        is_missing = path.strip() and not folder.exists()
        raise InvalidInput(f"{'no such folder' if is_missing else 'not a folder'}: {path}")
    found: list[tuple[Source, Path | None]] = []
    for source in SOURCES.values() if ALL in names else [SOURCES[name] for name in names]:
        own = settings.ingestion.get(source.name) or source.root
        root = folder or (_absolute(own) if own else None)
        is_there = root is not None and root.is_dir() and source.name not in settings.ingestion_off
        if ALL not in names or is_there:
            found.append((source, root))
    return found


def _absolute(path: str) -> Path:
    return Path(absolute_path(path))


def run(
    memory: MemorySession,
    chosen: Sequence[tuple[Source, Path | None]],
    *,
    dry_run: bool = False,
    again: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[list[IngestPlan], list[Ingestion]]:
    """Take in what the files of these sources say: the plans, and what became of each (with
    `dry_run`: would).
    """
    known = Ingested(memory).known()
    plans = plan(
        [(source, Tree(root, (memory.home,))) for source, root in chosen], known, again=again
    )
    if not dry_run:
        return plans, apply(memory, plans, known, progress)
    sizes = [(len(each.new), len(each.changed), each) for each in plans]
    return plans, [
        Ingestion(new, changed, each.seen - new - changed, each.warnings)
        for new, changed, each in sizes
    ]


def plan(
    reads: Sequence[tuple[Source, Tree]], known: IngestedTexts, *, again: bool = False
) -> list[IngestPlan]:
    """What the files of these sources ask for, given what is `known`, which takes the plan up. A
    text some memory has is skipped; a known file with a new text changes its memory; what was
    removed stays so, unless `again`. Nothing is written."""
    plans: list[IngestPlan] = []
    unknown: list[tuple[IngestPlan, SourceNote]] = []
    changed: deque[tuple[IngestPlan, NoteInfo, SourceNote]] = deque()
    for source, tree in reads:
        here = IngestPlan(source.name, tree.root, warnings=tree.warnings)
        plans.append(here)
        for note in source.scan(tree):
            info = known.refs.get(note.source_ref)
            if info is None:
                unknown.append((here, note))
            elif note.content_hash not in known.texts[info.id]:
                changed.append((here, info, note))
        here.seen = tree.seen
    waiting: dict[str, list[tuple[IngestPlan, NoteInfo, SourceNote]]] = {}
    # A text another memory has waits until the change of that memory's own file frees it
    while changed:
        here, info, note = changed.popleft()
        if known.hashes[note.content_hash]:
            waiting.setdefault(note.content_hash, []).append((here, info, note))
            continue
        here.changed.append((info, note))
        for free in known.hold(info.id, frozenset((note.content_hash,))):
            changed.extend(waiting.pop(free, ()))
    for here, note in unknown:
        is_gone = note.content_hash in known.gone_hashes or note.source_ref in known.gone_refs
        if not known.hashes[note.content_hash] and (again or not is_gone):
            here.new.append(note)
            known.hold(note.source_ref, frozenset((note.content_hash,)))
    return plans


def apply(
    memory: MemorySession,
    plans: Sequence[IngestPlan],
    known: IngestedTexts,
    progress: Callable[[int, int], None] | None = None,
) -> list[Ingestion]:
    """Carry out the plans; each batch of new memories is one change, and each changed memory. One
    that changed since the plan, or is locked, is left as it is, with a warning. Raises
    StorageError; what was stored before it stays."""
    ingested = Ingested(memory)
    upkeep = Upkeep(memory)
    total = sum(len(each.new) + len(each.changed) for each in plans)
    done = 0
    outcomes = [Ingestion(warnings=list(each.warnings)) for each in plans]

    def advance(number: int) -> None:
        nonlocal done
        done += number
        if progress is not None:
            progress(done, total)

    for each, here in zip(plans, outcomes, strict=True):
        records = []
        for note in each.new:
            # One after the other: of two files of one name the first is the older
            now = memory.clock()
            expires = now + memory.settings.short_term_ttl
            further = _further(note, each.root, note.aliases)
            more: dict[str, Any] = {"source": note.source, "expires": expires, "further": further}
            records.append(
                Record(str(uuid4()), note.content, INBOX, now, now, tags=note.tags, **more)
            )
        size = lambda each: len(each.content)
        here.ingested = ingested.store(
            list(batches(records, BATCH, size, BATCH_CHARACTERS)), known, advance
        )
    for each, here in zip(plans, outcomes, strict=True):
        # What a memory was tagged and named with since stays
        for info, note in each.changed:
            keys = _further(note, each.root, tuple(dict.fromkeys((*info.aliases, *note.aliases))))
            keys["tags"] = united((*info.tags, *note.tags))
            try:
                upkeep.rewrite(info, note.content, keys, VERB)
                here.updated += 1
            except (Conflict, InvalidInput, Locked, NotFound, NotText) as error:
                here.warnings.append(f"{note.source_ref.partition(':')[2]}: not updated. {error}")
            advance(1)
        here.skipped = each.seen - here.ingested - here.updated
    return outcomes


def _further(note: SourceNote, root: str, aliases: Sequence[str]) -> dict[str, Any]:
    named = {"title": note.title} | ({"aliases": list(aliases)} if aliases else {})
    dated = {"date": note.date} if note.date else {}
    return (
        named
        | {SOURCE_REF: note.source_ref, SOURCE_ROOT: root, SOURCE_HASH: note.content_hash}
        | dated
    )
