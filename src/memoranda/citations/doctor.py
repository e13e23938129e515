"""`memory doctor --citations`: the notes whose cited code changed or went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from memoranda.citations.check import CitationCheck
from memoranda.citations.code import State
from memoranda.engine.contents import contents, home_path
from memoranda.engine.doctor import Finding
from memoranda.query import Query

if TYPE_CHECKING:
    from memoranda.engine import MemorySession

# A citation that is still right is not a finding.
_CODES = {
    State.CHANGED: "stale_citation",
    State.GONE: "gone_citation",
    State.MOVED: "moved_citation",
}


@dataclass(slots=True)
class CitationReport:
    """The result of checking the places in code that notes cite.

    checked: the number of places that could be compared.
    findings: the places that changed.
    """

    checked: int = 0
    findings: list[Finding] = field(default_factory=list)


def examine_citations(memory: MemorySession, folders: Sequence[str | Path]) -> CitationReport:
    """Check the citations of all notes. Changes nothing.

    folders: folders with code in which cited paths are looked up, beside those that notes name.
    """
    infos, _ = memory.list(Query(archived=False, valid_at=memory.clock()), limit=0)
    check = CitationCheck(memory, folders)
    report = CitationReport()
    for result in check.notes(infos, contents(memory, infos)):
        report.checked += 1
        code = _CODES.get(result.verdict.state)
        if code is not None:
            level = "warning" if result.is_stale else "info"
            report.findings.append(Finding(level, code, home_path(result.info), result.sentence()))
    check.save()
    # Warnings first
    report.findings.sort(key=lambda finding: (finding.level != "warning", finding.path))
    return report
