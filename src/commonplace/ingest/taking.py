"""Plan, then act: which files become new memories, which change one, which are known (contract 001, 11)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from commonplace.engine.exchange import SOURCE_HASH, SOURCE_REF, VERB, Ingested, Known
from commonplace.engine.upkeep import Upkeep
from commonplace.errors import Conflict, InvalidInput, Locked, NotFound, NotText
from commonplace.index.rows import NoteInfo
from commonplace.ingest import Source
from commonplace.ingest.found import Found
from commonplace.ingest.tree import Tree
from commonplace.note.model import INBOX
from commonplace.note.record import Record

if TYPE_CHECKING:
    from commonplace.engine import Memory

BATCH, BATCH_CHARACTERS = 200, 4_000_000
"""How many new memories are one change at most, and about how much text."""
Change = tuple[NoteInfo, Found]


@dataclass(slots=True)
class Plan:
    """What is to be done with the files of one source; `seen` counts the files looked at."""

    source: str
    new: list[Found] = field(default_factory=list)
    changed: list[Change] = field(default_factory=list)
    seen: int = 0
    warnings: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Outcome:
    """What was done with the files of one source; `skipped` are those that were neither new nor changed."""

    ingested: int = 0
    updated: int = 0
    skipped: int = 0
    warnings: list[str] = field(default_factory=list)


def plan(reads: Sequence[tuple[Source, Tree]], known: Known, *, again: bool = False) -> list[Plan]:
    """What the files of these sources ask for, given what is `known`, which takes the plan up.

    A text some memory has is skipped; a known file with a new text changes its memory; what was removed stays
    so, unless `again`. Nothing is written.
    """
    plans: list[Plan] = []
    strange: list[tuple[Plan, Found]] = []
    altered: deque[tuple[Plan, NoteInfo, Found]] = deque()
    for source, tree in reads:
        here = Plan(source.name, warnings=tree.warnings)
        plans.append(here)
        for found in source.scan(tree):
            info = known.refs.get(found.source_ref)
            if info is None:
                strange.append((here, found))
            elif found.content_hash not in known.texts[info.id]:
                altered.append((here, info, found))
        here.seen = tree.seen
    _plan_changes(altered, known)
    for here, found in strange:
        digest = found.content_hash
        is_gone = digest in known.gone_hashes or found.source_ref in known.gone_refs
        if not known.hashes[digest] and (again or not is_gone):
            here.new.append(found)
            known.hold(found.source_ref, frozenset((digest,)))
    return plans


def _plan_changes(altered: deque[tuple[Plan, NoteInfo, Found]], known: Known) -> None:
    """Take up the changes whose text no memory has; one may have it only until its own file's change."""
    waiting: dict[str, list[tuple[Plan, NoteInfo, Found]]] = {}
    while altered:
        each = here, info, found = altered.popleft()
        if known.hashes[found.content_hash]:
            waiting.setdefault(found.content_hash, []).append(each)
            continue
        here.changed.append((info, found))
        for free in known.hold(info.id, frozenset((found.content_hash,))):
            altered.extend(waiting.pop(free, ()))


def outcome(each: Plan) -> Outcome:
    """What carrying out a plan comes to, if nothing hinders it."""
    ingested, updated = len(each.new), len(each.changed)
    return Outcome(ingested, updated, each.seen - ingested - updated, list(each.warnings))


def apply(
    memory: Memory, plans: Sequence[Plan], known: Known, progress: Callable[[int, int], None] | None = None
) -> list[Outcome]:
    """Carry out the plans; each batch of new memories is one change, and each changed memory.

    Raises StorageError; what was stored before it stays. A memory that changed since the plan, or is locked, is
    left as it is, with a warning.
    """
    ingested, upkeep = Ingested(memory), Upkeep(memory)
    total = sum(len(each.new) + len(each.changed) for each in plans)
    done = 0
    outcomes = [Outcome(warnings=list(each.warnings)) for each in plans]

    def advance(number: int) -> None:
        nonlocal done
        done += number
        if progress is not None:
            progress(done, total)

    for each, here in zip(plans, outcomes, strict=True):
        records = [_record(memory, found) for found in each.new]
        here.ingested = ingested.store(list(_batches(records)), known, advance)
    for each, here in zip(plans, outcomes, strict=True):
        for info, found in each.changed:
            here.updated += _changed(upkeep, info, found, here.warnings)
            advance(1)
        here.skipped = each.seen - here.ingested - here.updated
    return outcomes


def _batches(records: Sequence[Record]) -> Iterator[list[Record]]:
    batch: list[Record] = []
    size = 0
    for record in records:
        if batch and (len(batch) == BATCH or size + len(record.content) > BATCH_CHARACTERS):
            yield batch
            batch, size = [], 0
        batch.append(record)
        size += len(record.content)
    if batch:
        yield batch


def _record(memory: Memory, found: Found) -> Record:
    now: datetime = memory.clock()
    return Record(
        str(uuid4()), found.content, INBOX, now, now, tags=found.tags, source=found.source,
        expires=now + memory.settings.short_term_ttl, further=_further(found, found.aliases),
    )  # fmt: skip


def _further(found: Found, aliases: Sequence[str]) -> dict[str, Any]:
    keys: dict[str, Any] = {"title": found.title}
    if aliases:
        keys["aliases"] = list(aliases)
    keys |= {SOURCE_REF: found.source_ref, SOURCE_HASH: found.content_hash}
    if found.date:
        keys["date"] = found.date
    return keys


def _changed(upkeep: Upkeep, info: NoteInfo, found: Found, warnings: list[str]) -> bool:
    """Give a memory its file's new text. What it was tagged and named with since stays."""
    keys = _further(found, tuple(dict.fromkeys((*info.aliases, *found.aliases))))
    tags: dict[str, str] = {}
    for tag in (*info.tags, *found.tags):
        tags.setdefault(tag.casefold(), tag)
    try:
        upkeep.rewrite(info, found.content, keys | {"tags": list(tags.values())}, VERB)
    except (Conflict, InvalidInput, Locked, NotFound, NotText) as error:
        warnings.append(f"{found.source_ref.partition(':')[2]}: not updated. {error}")
        return False
    return True
