"""`ingest`: take other programs' notes in (contract 001, 11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from commonplace.cli import output
from commonplace.cli.invocation import Invocation
from commonplace.cli.syntax import Names, Text, command, dry_run_option, flag, option
from commonplace.text.unicode import one_line

_ALL = "all"
_SOURCES = "Sources parted by commas: claude, car-agent, fingersaver, logseq, obsidian."


def _names() -> Sequence[str]:
    from commonplace.ingest.sources import SOURCES

    return [_ALL, *SOURCES]


@command("ingest", keys=("sources", "total"), example="memory ingest --source obsidian --path ~/vault --dry-run")
@option("--source", "wanted", default=_ALL, type=Names("list", _names), help=_SOURCES)
@option("--path", metavar="DIR", help="The folder to read instead of the source's own.")
@dry_run_option("Only say what would be stored.")
@flag("--again", "Also bring back what was deleted or has expired.")
def ingest(call: Invocation, *, wanted: str, path: Text, dry_run: bool, again: bool) -> None:
    """Store the notes of other programs as memories in the inbox; their files stay as they are.

    A file is stored once; when its text changes, its memory follows.
    """
    from commonplace.ingest import plan

    sources = plan.sources(wanted, path, call.settings())
    with call.memory() as memory, output.progress("Ingesting") as progress:
        plans, done = plan.run(memory, sources, dry_run=dry_run, again=again, progress=progress)
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
        lines = []
        for name, each in outcomes.items():
            lines.append(f"Ingested {each.ingested} memories from {name}")
            if each.updated:
                lines.append(f"Updated {each.updated} memories from {name}")
        lines += [*([""] if lines else []), f"Total: {total} new memories ingested"]
    call.answer("\n".join(lines), sources={name: asdict(each) for name, each in outcomes.items()}, total=total)
