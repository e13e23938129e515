"""How large a note may be, and how much an agent may write in a day (docs/trust.md). Counted from the journal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta

from commonplace.clock import EPOCH, parse_stamp, to_utc
from commonplace.config import Settings
from commonplace.errors import LimitExceeded
from commonplace.store.change import Step
from commonplace.store.journal import Change, History

_OF_OTHERS = frozenset(("delete", "undo"))
"""Verbs that write nothing new, but into notes the agent does not see: their sizes would tell of those."""


@dataclass(slots=True)
class Use:
    """What one agent wrote on a day: new notes, and bytes in all."""

    notes: int = 0
    bytes: int = 0


class DayUse:
    """The use of all agents of one home on the day of the last question. Each line of the journal is read once."""

    def __init__(self, history: History):
        self._history = history
        self._begins = self._ends = EPOCH
        self._last = 0
        self._agents: dict[str, Use] = {}

    def since_midnight(self, now: datetime, settings: Settings) -> dict[str, Use]:
        """What each agent wrote on the day of `now`."""
        history = self._history
        if not self._begins <= now < self._ends or self._last > history.last:
            day = now.astimezone(settings.zone).date()
            self._begins, self._ends = (
                to_utc(datetime.combine(each, time()), settings.zone) for each in (day, day + timedelta(days=1))
            )
            self._last, self._agents = 0, {}
        for change in history.changes() if history.last != self._last else ():
            if change.number <= self._last or parse_stamp(change.time) < self._begins:
                break
            self._add(change)
        self._last = history.last
        return self._agents

    def count(self, change: Change) -> None:
        """Count the change that was just made here, so that it is not read again."""
        if self._last == change.number - 1:
            self._last = change.number
            self._add(change)

    def _add(self, change: Change) -> None:
        if change.agent is None:
            return
        use = self._agents.setdefault(change.agent, Use())
        if change.verb not in _OF_OTHERS:
            use.bytes += sum(each.size for each in change.files)
        new = sum(each.do == "put" and each.old is None for each in change.files)
        use.notes += max(0, new - sum(each.do == "remove" for each in change.files))


def check(steps: Sequence[Step], settings: Settings, agent: str | None, day: DayUse, now: datetime) -> None:
    """Raises LimitExceeded when a note is too large, or `agent` (None: the owner) would write too much today."""
    puts = [step for step in steps if step.do == "put" and step.data is not None]
    for step in puts:
        size, before = len(step.data or b""), len(step.old.data) if step.old else 0
        if settings.note_bytes and size > max(settings.note_bytes, before):
            raise LimitExceeded(
                f"{step.path} would have {size:,} bytes; a note may have {settings.note_bytes:,}. "
                "Nothing was changed. Split it, or let the owner raise limits.note_bytes."
            )
    if agent is None:
        return
    use = day.since_midnight(now, settings).get(agent, Use())
    new = sum(step.old is None for step in puts) - sum(step.do == "remove" for step in steps)
    size = sum(len(step.data or b"") for step in puts)
    for name, limit, used, more, unit in (
        ("agent_notes_per_day", settings.agent_notes_per_day, use.notes, max(new, 0), "new notes"),
        ("agent_bytes_per_day", settings.agent_bytes_per_day, use.bytes, size, "bytes"),
    ):
        if limit and more and used + more > limit:
            raise LimitExceeded(
                f"Agent {agent} wrote {used:,} of the {limit:,} {unit} it may write a day; this is {more:,} more. "
                f"Nothing was changed. Go on tomorrow, or let the owner raise limits.{name}."
            )
