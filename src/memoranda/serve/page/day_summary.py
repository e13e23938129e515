"""Counts how many notes were learned, changed and forgotten, for the sentence at the top of Today."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from memoranda.engine import MemorySession
from memoranda.ledger.change import Change
from memoranda.serve.page.change_rows import CHANGED, FORGOT, LEARNED, is_machinery, word_of
from memoranda.serve.page.wording import counted
from memoranda.serve.page.writers import is_upkeep

# Changes that are counted.
_MAX_COUNTED_CHANGES = 2_000


@dataclass
class Summary:
    """How many notes were learned, changed and forgotten since a moment.

    since: the moment.
    is_week: whether the moment is seven days ago, because nothing happened today.
    by_agents: LEARNED, CHANGED or FORGOT -> to how many notes agents did that.
    agents: LEARNED, CHANGED or FORGOT -> the names of the agents that did that.
    """

    since: datetime
    is_week: bool = False
    learned: int = 0
    changed: int = 0
    forgot: int = 0
    by_agents: Counter[str] = field(default_factory=Counter)
    agents: dict[str, list[str]] = field(default_factory=dict)


def summary_since(
    memory: MemorySession,
    since: datetime,
    before: int | None = None,
    *,
    agent: str = "",
    is_owner: bool = False,
) -> Summary:
    """Count the changes since a moment, without upkeep, machinery and undos.

    before: only changes with lower numbers. None means all.
    agent: only changes of this agent. "" means everybody's.
    is_owner: whether only changes of the owner count.
    """
    summary = Summary(since)
    note_counts = Counter[str]()
    changes = memory.log(
        limit=_MAX_COUNTED_CHANGES, since=since, before=before, agent=agent or None
    )
    for change in changes:
        if is_machinery([change]) or is_upkeep([change]) or change.undoes is not None:
            continue
        if is_owner and change.agent is not None:
            continue
        word = word_of(change)
        note_count = count_of_notes(change)
        note_counts[word] += note_count
        if not change.agent:
            continue
        summary.by_agents[word] += note_count
        agents = summary.agents.setdefault(word, [])
        if change.agent not in agents:
            agents.append(change.agent)
    summary.learned = note_counts[LEARNED]
    summary.changed = note_counts[CHANGED]
    summary.forgot = note_counts[FORGOT]
    return summary


def count_of_notes(change: Change) -> int:
    """Return how many notes a change learned, changed or forgot, wherever the page counts them.

    A change without texts, such as a move of a folder, counts as one. Notes that a deletion only
    took links out of do not count.
    """
    return 1 + change.count_of_others()


def deeds_in(language: str, summary: Summary) -> list[str]:
    """Return what was done, as words that follow a name: `learned 3 things`, `removed one note`."""
    deeds = (
        ("learned one thing", "learned {n} things", summary.learned),
        ("changed one note", "changed {n} notes", summary.changed),
        ("removed one note", "removed {n} notes", summary.forgot),
    )
    return [
        counted(language, singular, plural, count) for singular, plural, count in deeds if count
    ]
