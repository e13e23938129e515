"""`ingest`: take other programs' notes in (contract 001, 11)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from commonplace.cli import output
from commonplace.cli.invocation import Invocation
from commonplace.cli.output import Failure
from commonplace.cli.syntax import Names, Text, command, dry_run_option, flag, option
from commonplace.query import split_list
from commonplace.text.unicode import one_line

if TYPE_CHECKING:
    from commonplace.config import Settings
    from commonplace.ingest.sources import Source

_ALL = "all"
_SOURCES = "Sources parted by commas: claude, car-agent, fingersaver, logseq, obsidian."


def _names() -> Sequence[str]:
    from commonplace.ingest.sources import SOURCES

    return [_ALL, *SOURCES]


@command("ingest", keys=("sources", "total"))
@option("--source", "wanted", default=_ALL, type=Names("list", _names), help=_SOURCES)
@option("--path", metavar="DIR", help="The folder to read instead of the source's own.")
@dry_run_option("Only say what would be stored.")
@flag("--again", "Also bring back what was deleted or has expired.")
def ingest(call: Invocation, *, wanted: str, path: Text, dry_run: bool, again: bool) -> None:
    """Store the notes of other programs as memories in the inbox; their files stay as they are.

    A file is stored once; when its text changes, its memory follows.
    """
    sources = _sources(wanted, path, call.settings())
    with call.memory() as memory, output.progress("Ingesting") as progress:
        from commonplace.engine.exchange import Ingested
        from commonplace.ingest import plan
        from commonplace.ingest.tree import Tree

        known = Ingested(memory).known()
        reads = [(source, Tree(root, (memory.home,))) for source, root in sources]
        plans = plan.plan(reads, known, again=again)
        done = [plan.expected(each) for each in plans] if dry_run else plan.apply(memory, plans, known, progress)
    outcomes = {each.source: outcome for each, outcome in zip(plans, done, strict=True)}
    total = sum(each.ingested for each in done)
    if not call.json:
        for name, each in outcomes.items():
            for warning in each.warnings:
                output.notice(one_line(f"warning: {name}: {warning}"))
    if dry_run:
        lines = [f"would ingest {found.source_ref}" for each in plans for found in each.new]
        lines += [f"would update {info.id[:8]} {found.source_ref}" for each in plans for info, found in each.changed]
        lines = list(map(one_line, lines)) or ["Nothing to ingest."]
    else:
        lines = [f"Ingested {each.ingested} memories from {name}" for name, each in outcomes.items()]
        lines += [*([""] if lines else []), f"Total: {total} new memories ingested"]
    call.answer("\n".join(lines), sources={name: asdict(each) for name, each in outcomes.items()}, total=total)


def _sources(wanted: str, path: str | None, settings: Settings) -> list[tuple[Source, Path | None]]:
    """The sources named, each with its folder; of all sources those that are there and not switched off.

    Raises Failure for an unknown source, or a `--path` that is a file or blank.
    """
    from commonplace.ingest.sources import SOURCES

    names = list(dict.fromkeys(split_list(wanted)))
    for name in names or [wanted]:
        if name != _ALL and name not in SOURCES:
            raise Failure(f"Unknown source: {name}")
    folder = None if path is None else _absolute(path)
    if path is not None and folder and (not path.strip() or (folder.exists() and not folder.is_dir())):
        raise Failure(f"not a folder: {path}")
    found: list[tuple[Source, Path | None]] = []
    for source in SOURCES.values() if _ALL in names else [SOURCES[name] for name in names]:
        own = settings.ingestion.get(source.name) or source.root
        root = folder or (_absolute(own) if own else None)
        is_there = root is not None and root.is_dir() and source.name not in settings.ingestion_off
        if _ALL not in names or is_there:
            found.append((source, root))
    return found


def _absolute(path: str) -> Path:
    return Path(os.path.abspath(os.path.expanduser(path)))
