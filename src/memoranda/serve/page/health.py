"""Shows the health of the memory: its size and growth, the index, upkeep, the doctor's findings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import cache
from math import ceil

from starlette.responses import Response

from memoranda.engine.doctor import Finding, examine, repair
from memoranda.engine.embedding import Embedding
from memoranda.engine.overview import figures
from memoranda.jobs.job import last_dream
from memoranda.jobs.lifecycle import IDLE
from memoranda.serve.page.graph.names import project_title
from memoranda.serve.page.package_files import TEXTS, text_in
from memoranda.serve.page.visit import Visit

# The sentences for the steps of upkeep that change something. Other steps only examine.
_STEP_SENTENCES = {
    "expire": "Removed what had ended",
    "decay": "Let unused notes fade",
    "upgrade": "Sorted from the inbox",
    "consolidate": "Merged what says the same",
    "notify": "Reminders sent",
    "purge": "Forgot old texts",
    "embed": "Passages embedded",
}
LEVEL_WORDS = {"error": "to mend", "warning": "to look at", "info": "good to know"}
"""How much a finding matters, by its level."""
# Places of a kind of findings that are linked, and findings of which the doctor's words are shown.
_PLACES_SHOWN = 6
_MAX_DETAILS = 100
# The fewest weeks that are drawn.
_MIN_WEEKS = 6
UNKNOWN = "Something is not as it should be."
"""The sentence for a finding whose code has none."""


@dataclass
class FindingGroup:
    """The findings of one kind.

    level: how much they matter, in words to translate.
    is_serious: whether the owner should look at them.
    sentence: what they mean for a person, in English.
    remedy: what to do about them, in English. "" if the doctor's own words must do.
    """

    level: str
    is_serious: bool
    sentence: str
    remedy: str
    findings: list[Finding] = field(default_factory=list)


def show(visit: Visit) -> Response:
    """Show the page. Its script asks for the doctor's findings, which take a while."""
    visit.begin_page()
    memory = visit.memory
    embedding = Embedding(memory)
    size = figures(memory)
    rounds = visit.request.app.state.rounds
    return visit.html(
        "health.html",
        figures=size,
        weeks=weeks_from_first_note(size.weeks),
        sync=memory.sync(),
        highest=max((number for _, number in size.weeks), default=0) or 1,
        embedding=embedding,
        trouble=embedding.trouble,
        vectors=embedding.counts(),
        unreadable=memory.unreadable,
        warnings=memory.warnings,
        rounds=rounds,
        minutes_to_round=_minutes_until(rounds.next if rounds else None, visit.now),
        dream=last_dream(memory.home),
        quiet=_quiet_times() if memory.settings.dream else {},
        steps_told=_STEP_SENTENCES,
        project_titles={name: project_title(visit.language, name) for name in size.counts.projects},
    )


def weeks_from_first_note(weeks: Sequence[tuple[date, int]]) -> Sequence[tuple[date, int]]:
    """Leave out the weeks before the first note, but return at least _MIN_WEEKS weeks.

    weeks: (Monday, number of new notes), the oldest first.
    """
    numbers = [number for _, number in weeks]
    first_week = next((at for at, number in enumerate(numbers) if number), len(weeks))
    latest_start = max(0, len(weeks) - _MIN_WEEKS)
    return weeks[min(first_week, latest_start) :]


def _minutes_until(moment: datetime | None, now: datetime) -> int | None:
    """Return in how many minutes a moment comes, at least one. None without one."""
    if moment is None:
        return None
    return max(1, ceil((moment - now) / timedelta(minutes=1)))


def _quiet_times() -> dict[str, int]:
    """Return how long nobody must have written before each level of thorough tidying."""
    idle_by_level = dict(IDLE)
    minute = timedelta(minutes=1)
    return {
        "minutes": idle_by_level[1] // minute,
        "more_minutes": idle_by_level[2] // minute,
        "hours": idle_by_level[3] // timedelta(hours=1),
    }


def doctor(visit: Visit) -> Response:
    """Show the findings of the doctor. A POST repairs the faults that can be repaired."""
    findings = examine(visit.memory)
    if visit.is_post:
        repair(visit.memory, findings)
    return visit.part_or_page(
        "findings.html",
        "doctor.html",
        findings=findings,
        groups=finding_groups(findings),
        most_shown=_PLACES_SHOWN,
        most_detailed=_MAX_DETAILS,
    )


def finding_groups(findings: Iterable[Finding]) -> list[FindingGroup]:
    """Group findings by level and kind. The groups stay in the order of the findings."""
    groups: dict[tuple[str, str], FindingGroup] = {}
    for finding in findings:
        key = (finding.level, finding.code)
        if key not in groups:
            groups[key] = FindingGroup(
                level=LEVEL_WORDS[finding.level],
                is_serious=finding.level != "info",
                sentence=_texts("findings").get(finding.code, UNKNOWN),
                remedy=_texts("remedies").get(finding.code, ""),
            )
        groups[key].findings.append(finding)
    return list(groups.values())


@cache
def _texts(name: str) -> Mapping[str, str]:
    """Return a sentence for each kind of finding, by the code of the finding.

    name: "findings" for what a finding means, "remedies" for what to do about it.
    """
    return json.loads(text_in(TEXTS, f"{name}.json"))
