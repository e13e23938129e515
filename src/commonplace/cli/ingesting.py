"""`ingest`: take other programs' notes in (contract 001, 11)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commonplace.cli import output
from commonplace.cli.failures import Failure
from commonplace.cli.invocation import Invocation
from commonplace.cli.syntax import Names, command

if TYPE_CHECKING:
    from commonplace.config import Settings
    from commonplace.ingest import Source
    from commonplace.ingest.taking import Outcome, Plan

ALL = "all"


def _names() -> Sequence[str]:
    from commonplace.ingest import SOURCES

    return [ALL, *SOURCES]


@command("ingest", keys=("sources", "total"))
@click.option("--source", "wanted", default=ALL, metavar="LIST", type=Names("list", _names), show_default=True,
              help="Sources parted by commas: claude, car-agent, fingersaver, logseq, obsidian.")  # fmt: skip
@click.option("--path", metavar="DIR", help="The folder to read instead of the source's own.")
@click.option("--dry-run", is_flag=True, help="Only say what would be stored.")
@click.option("--again", is_flag=True, help="Also bring back what was deleted or has expired.")
def ingest(call: Invocation, *, wanted: str, path: str | None, dry_run: bool, again: bool) -> None:
    """Store the notes of other programs as memories in the inbox; their files stay as they are.

    A file is stored once; when its text changes, its memory follows.
    """
    sources = _sources(wanted)
    folder = None if path is None else _folder(path)
    roots = _roots(sources, folder, call.settings(), chosen=ALL not in _split(wanted))
    with call.memory() as memory, output.progress("Ingesting") as progress:
        from commonplace.engine.exchange import Ingested
        from commonplace.engine.memories import on_one_line
        from commonplace.ingest import taking
        from commonplace.ingest.tree import Tree

        known = Ingested(memory).known()
        reads = [(source, Tree(root, (memory.home,))) for source, root in roots]
        plans = taking.plan(reads, known, again=again)
        done = [taking.outcome(each) for each in plans] if dry_run else taking.apply(memory, plans, known, progress)
    outcomes = {each.source: outcome for each, outcome in zip(plans, done, strict=True)}
    total = sum(each.ingested for each in done)
    if not call.json:
        for name, each in outcomes.items():
            for warning in each.warnings:
                output.notice(on_one_line(f"warning: {name}: {warning}"))
    lines = _intended(plans) if dry_run else _done(outcomes, total)
    call.answer("\n".join(lines), sources={name: asdict(each) for name, each in outcomes.items()}, total=total)


def _split(wanted: str) -> list[str]:
    return list(dict.fromkeys(name.strip() for name in wanted.split(",") if name.strip()))


def _sources(wanted: str) -> list[Source]:
    """The sources named. Raises Failure for one there is not."""
    from commonplace.ingest import SOURCES

    names = _split(wanted)
    for name in names or [wanted]:
        if name != ALL and name not in SOURCES:
            raise Failure(f"Unknown source: {name}")
    return list(SOURCES.values()) if ALL in names else [SOURCES[name] for name in names]


def _folder(path: str) -> Path:
    """The folder of `--path`, which may be missing. Raises Failure for a file, or no name at all."""
    folder = Path(os.path.abspath(os.path.expanduser(path)))
    if not path.strip() or (folder.exists() and not folder.is_dir()):
        raise Failure(f"not a folder: {path}")
    return folder


def _roots(
    sources: Iterable[Source], folder: Path | None, settings: Settings, *, chosen: bool
) -> list[tuple[Source, Path | None]]:
    """Each source with its folder; of all sources those that are there and not switched off."""
    found: list[tuple[Source, Path | None]] = []
    for source in sources:
        own = settings.ingestion.get(source.name) or source.root
        root = folder or (Path(os.path.abspath(os.path.expanduser(own))) if own else None)
        is_there = root is not None and root.is_dir() and source.name not in settings.ingestion_off
        if chosen or is_there:
            found.append((source, root))
    return found


def _done(outcomes: Mapping[str, Outcome], total: int) -> list[str]:
    lines = [f"Ingested {each.ingested} memories from {name}" for name, each in outcomes.items()]
    return [*lines, *([""] if lines else []), f"Total: {total} new memories ingested"]


def _intended(plans: Sequence[Plan]) -> list[str]:
    from commonplace.engine.memories import on_one_line

    lines = [f"would ingest {found.source_ref}" for each in plans for found in each.new]
    lines += [f"would update {info.id[:8]} {found.source_ref}" for each in plans for info, found in each.changed]
    return [on_one_line(each) for each in lines] or ["Nothing to ingest."]
