"""Taking other programs' notes in (contract 001, 11): which sources there are, and where they lie."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from commonplace.ingest import car_agent, claude, fingersaver, logseq, obsidian
from commonplace.ingest.found import Found
from commonplace.ingest.tree import Tree


@dataclass(frozen=True, slots=True)
class Source:
    """A kind of folder. `root` is where it lies if nobody says otherwise; None: nowhere."""

    name: str
    root: str | None
    scan: Callable[[Tree], Iterator[Found]]


SOURCES = {
    each.name: each
    for each in (
        Source(claude.NAME, "~/.claude", claude.scan),
        Source(car_agent.NAME, "~/.car-agent", car_agent.scan),
        Source(fingersaver.NAME, "~/.fingersaver", fingersaver.scan),
        Source(logseq.NAME, "~/logseq", logseq.scan),
        Source(obsidian.NAME, None, obsidian.scan),
    )
}
"""Every source by its name, in the order of the contract."""
