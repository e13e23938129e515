"""Today: what agents and people did, by session and day, each with what it says now.

Upkeep is one line a day; machinery (what fired, what was asked) is shown on demand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from itertools import chain
from typing import Any

from starlette.responses import Response

from memoranda.clock import parse_stamp
from memoranda.documents import differences
from memoranda.engine import MemorySession
from memoranda.engine.history import Revision, last_number_before
from memoranda.engine.refusals import can_undo_run, refused_undos
from memoranda.engine.review import suspicious_notes
from memoranda.engine.served import log_of
from memoranda.engine.whereabouts import where_now
from memoranda.errors import CannotUndo, InvalidInput
from memoranda.index.rows import NoteInfo
from memoranda.ledger.change import Change
from memoranda.query import Query
from memoranda.serve.page.calendar import reminder_rows
from memoranda.serve.page.change_rows import (
    CHANGED,
    FORGOT,
    LEARNED,
    Row,
    RowWriter,
    is_machinery,
    is_upkeep,
    word_of,
)
from memoranda.serve.page.visit import Visit

CHANGES = 60
"""Changes, or runs of a job, that one page shows."""
# Days offered as chips.
_DAYS = 7
# Rows of a session that are shown before `more`.
_FOLDED = 5
# Changes of today that are counted.
_MOST_TODAY = 2_000
# Changes shown of a session before "more".
_LISTED = 5


@dataclass
class Group:
    """The changes of one agent in one session on one day, the latest first."""

    agent: str | None
    client: str
    session: str
    time: str
    rows: list[Row] = field(default_factory=list)

    @property
    def shown(self) -> list[Row]:
        """The rows that are shown without unfolding."""
        return self.rows if len(self.rows) <= _FOLDED + 1 else self.rows[:_FOLDED]

    @property
    def folded(self) -> list[Row]:
        """The rows behind `more`."""
        return self.rows[len(self.shown) :]


@dataclass
class Tidied:
    """The changes of upkeep on one day: the number of each verb, and the runs."""

    time: str
    verbs: Counter[str] = field(default_factory=Counter)
    runs: list[Tidying] = field(default_factory=list)


@dataclass
class Tidying:
    """One run of a job, or one change of upkeep.

    run: the number by which the whole run is taken back.
    rows: its changes.
    may_undo: whether it can be taken back.
    """

    run: int | None
    rows: list[Row]
    may_undo: bool


@dataclass
class Day:
    """One day: `time` is of its latest change."""

    time: str
    groups: list[Group] = field(default_factory=list)
    tidied: Tidied | None = None


@dataclass
class Summary:
    """The number of notes learned, changed and forgotten since a moment, and by whom.

    since: the moment.
    is_week: whether it covers the last seven days, because nothing happened today.
    """

    since: datetime
    is_week: bool = False
    learned: int = 0
    changed: int = 0
    forgot: int = 0
    learned_by_agents: int = 0
    agents: list[str] = field(default_factory=list)


def show(visit: Visit) -> Response:
    """The newest changes, or those before a number, of a day, of an agent."""
    memory = visit.memory
    # Read this before the changes: later ones are announced to the page.
    since = memory.journal_stamp()
    runs, is_whole = _runs(visit)
    if not runs and not visit.fields and not memory.stats().total:
        from memoranda.serve.page import first_run

        return first_run.show(visit, since)
    days = _days(visit, runs)
    return visit.html(
        "today.html",
        days=days,
        summary=_summary(memory),
        suspicious=len(suspicious_notes(memory)),
        due=[row for row in reminder_rows(memory) if row.state in ("overdue", "due")],
        listed=_LISTED,
        chips=_chips(visit),
        agents=_agents(visit),
        chosen_agent=visit.text("agent"),
        chosen_day=visit.text("day"),
        with_machinery=bool(visit.text("all")),
        earlier=0 if is_whole else next_page(runs),
        before=visit.number("before", 0),
        used=_used_today(memory),
        since=since,
        address=visit.here,
    )


def _runs(visit: Visit) -> tuple[list[list[Change]], bool]:
    """The changes to show, grouped by run, and whether these are all."""
    memory = visit.memory
    before = visit.number("before", 0)
    # A day is a range of numbers: changes of one day follow each other in the log
    since = None
    day = visit.text("day")
    if day:
        begin = start_of_day(memory, day)
        since = begin
        end = last_number_before(memory, begin + timedelta(days=1)) + 1
        before = min(before, end) if before else end
    runs = memory.log_by_run(
        None,
        limit=CHANGES,
        agent=visit.text("agent") or None,
        since=since,
        before=before,
    )
    runs_shown = [run for run in runs if visit.text("all") or not is_machinery(run)]
    if visit.text("agent") == "" and visit.text("who") == "owner":
        runs_shown = [run for run in runs_shown if run[0].agent is None and not is_upkeep(run)]
    return runs_shown, len(runs) < CHANGES


def start_of_day(memory: MemorySession, day: str) -> datetime:
    """Midnight of a day (YYYY-MM-DD) where the reader lives. Raises InvalidInput."""
    try:
        moment = datetime.combine(datetime.fromisoformat(day).date(), time())
    except ValueError:
        raise InvalidInput(f'invalid day "{day[:50]}"; a day is YYYY-MM-DD') from None
    return moment.replace(tzinfo=memory.settings.reading_zone).astimezone(memory.clock().tzinfo)


def next_page(runs: Sequence[Sequence[Change]]) -> int:
    """The number before which the next page begins; a run with others between is rather shown twice."""
    if not runs:
        return 0
    first = runs[-1][0].number
    last = runs[-1][-1].number
    if first - last == len(runs[-1]) - 1:
        return last
    return first


def _days(visit: Visit, runs: Sequence[Sequence[Change]]) -> list[Day]:
    """The runs by the day of the reader, each day by who was at work in which session."""
    memory = visit.memory
    changes = list(chain.from_iterable(runs))
    zone = memory.settings.reading_zone
    writer = RowWriter(memory, changes)
    days: dict[str, Day] = {}
    for run in runs:
        latest = run[0]
        key = f"{parse_stamp(latest.time).astimezone(zone):%Y-%m-%d}"
        day = days.setdefault(key, Day(latest.time))
        if is_upkeep(run):
            _add_tidying(memory, day, run, writer)
        else:
            _add_rows(day, run, writer)
    return list(days.values())


def _add_tidying(memory: MemorySession, day: Day, run: Sequence[Change], writer: RowWriter) -> None:
    if day.tidied is None:
        day.tidied = Tidied(run[0].time)
    day.tidied.verbs.update(change.verb for change in run)
    rows = [writer.row(change) for change in run]
    may_undo = run[0].run is not None and can_undo_run(memory, run)
    day.tidied.runs.append(Tidying(run[0].run, rows, may_undo))


def _add_rows(day: Day, run: Sequence[Change], writer: RowWriter) -> None:
    latest = run[0]
    by = latest.by or {}
    client = by.get("client") or latest.face or ""
    session = by.get("session") or ""
    group = day.groups[-1] if day.groups else None
    if group is None or (group.agent, group.session) != (latest.agent, session):
        group = Group(latest.agent, client, session, latest.time)
        day.groups.append(group)
    group.rows += [writer.row(change) for change in run]


def _summary(memory: MemorySession) -> Summary:
    """A summary of today or, if nothing happened today, of the last seven days."""
    midnight = start_of_day(memory, _today(memory).isoformat())
    today = _summary_since(memory, midnight)
    if today.learned or today.changed or today.forgot:
        return today
    week = _summary_since(memory, midnight - timedelta(days=_DAYS - 1))
    week.is_week = True
    return week


def _summary_since(memory: MemorySession, since: datetime) -> Summary:
    summary = Summary(since)
    agents: dict[str, None] = {}
    words = Counter[str]()
    for change in memory.log(limit=_MOST_TODAY, since=since):
        if is_machinery([change]) or is_upkeep([change]) or change.undoes is not None:
            continue
        word = word_of(change)
        many = max(1, sum(1 for _ in change.texts()))
        words[word] += many
        if change.agent:
            agents[change.agent] = None
            summary.learned_by_agents += many if word == LEARNED else 0
    summary.learned = words[LEARNED]
    summary.changed = words[CHANGED]
    summary.forgot = words[FORGOT]
    summary.agents = list(agents)
    return summary


def _today(memory: MemorySession) -> date:
    return memory.clock().astimezone(memory.settings.reading_zone).date()


def _chips(visit: Visit) -> list[datetime]:
    """Midnights of the last days, the latest first."""
    today = _today(visit.memory)
    return [
        start_of_day(visit.memory, (today - timedelta(days=number)).isoformat())
        for number in range(_DAYS)
    ]


def _agents(visit: Visit) -> list[str]:
    """The agents that wrote lately, by name."""
    recent = visit.memory.log(limit=500)
    return sorted({change.agent for change in recent if change.agent})[:8]


def _used_today(memory: MemorySession) -> list[tuple[NoteInfo, str]]:
    """The notes agents got last today, each with when."""
    midnight = start_of_day(memory, _today(memory).isoformat())
    latest = dict(log_of(memory).latest_notes(midnight, 4 * _LISTED))
    listed, _ = memory.list(Query(ids=tuple(latest)), limit=0)
    infos = {info.id: info for info in listed}
    used = [(infos[identity], at) for identity, at in latest.items() if identity in infos]
    return used[:_LISTED]


def change(visit: Visit) -> Response:
    """One change with all it did."""
    number = visit.number("change", 0)
    revisions = visit.memory.revisions(number, limit=_DIFFS + 1)
    revisions_shown = [
        (revision, differences.of_revision(revision), _where(visit.memory, revision))
        for revision in revisions[:_DIFFS]
    ]
    change_found = visit.memory.change_numbered(number)
    refusal = refused_undos(visit.memory, [number]).get(number, "")
    return visit.part_or_page(
        "change_part.html",
        "change.html",
        change=change_found,
        word=word_of(change_found) if change_found else "",
        revisions=revisions_shown,
        has_more=len(revisions) > _DIFFS,
        number=number,
        refusal=refusal,
    )


# Files of a change whose differences are shown.
_DIFFS = 50


def _where(memory: MemorySession, revision: Revision) -> NoteInfo | None:
    touched = revision.touched
    return where_now(memory, touched.project, touched.to or touched.path)


def undo(visit: Visit) -> Response | dict[str, Any]:
    """Take a change, or a run, back; then the page the button stood on.

    Who comes with a token takes back what they changed themselves. Raises CannotUndo.
    """
    memory = visit.memory
    number = visit.number("change", 0)
    run = visit.number("run", 0)
    if memory.agent is not None and number not in _own_numbers(memory):
        raise CannotUndo(f"it is no change of {memory.agent}", f"#{number}")
    if run and memory.agent is None:
        undo_change = memory.undo_run(run)[0]
    else:
        undo_change = memory.undo(number or None)
    if visit.is_api:
        return {"change": undo_change.number, "undone": undo_change.undoes}
    return visit.back()


def _own_numbers(memory: MemorySession) -> Collection[int]:
    return {change.number for change in memory.log(limit=0, agent=memory.agent)}
