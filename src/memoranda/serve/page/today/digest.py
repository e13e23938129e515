"""Shows the first page, Today: the changes by agents and people, grouped by day and session.

All changes of upkeep of a day are one line, which unfolds. Machinery, such as reminders that fired,
is shown only on demand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import MAXYEAR, MINYEAR, date, datetime, time, timedelta
from itertools import chain

from starlette.responses import Response

from memoranda.clock import EPOCH, parse_stamp
from memoranda.documents.listed import Document
from memoranda.engine import MemorySession
from memoranda.engine.history.refusals import refused_undo_of_run
from memoranda.engine.history.verbs import first_number_since
from memoranda.engine.review import suspicious_notes
from memoranda.engine.telling.served import log_of
from memoranda.errors import CannotUndo, InvalidInput
from memoranda.index.rows import NoteInfo
from memoranda.ledger.change import Change
from memoranda.query import Query
from memoranda.serve.page.calendar import SNOOZES, reminder_rows
from memoranda.serve.page.today import first_run
from memoranda.serve.page.today.change_rows import RowWriter, is_machinery
from memoranda.serve.page.today.day_subjects import subjects_since
from memoranda.serve.page.today.day_summary import Summary, deeds_in, summary_since
from memoranda.serve.page.today.outside_rows import outside_rows
from memoranda.serve.page.visit import Visit
from memoranda.serve.page.words.writers import is_upkeep, program_of

CHANGES = 60
"""Changes, or runs of a job, that one page shows."""
# Days that the page offers as buttons.
_DAYS = 7
# The weeks that the page offers as buttons: how many weeks ago each began, and its heading.
_WEEKS = {"this": (0, "This week"), "last": (1, "Last week")}
_DAYS_OF_WEEK = 7
# Rows of a session, and sessions of a day, that are shown above "more".
_ROWS_SHOWN = 3
_GROUPS_SHOWN = 6
# Fields that narrow the page to what somebody looks for. Without them, earlier days are folded.
_NARROWING = frozenset(("agent", "who", "day", "week", "before"))
# Agents whose changes the page offers to show alone.
_MAX_AGENTS = 8
# Rows of the page's short lists, such as the notes that agents used.
_LISTED = 5
# Some of the notes that agents used are gone, so more are looked up than are listed.
_USED_LOOKED_UP = 4 * _LISTED


@dataclass
class Group:
    """The changes of one agent in one session on one day, the latest first.

    program: the program or interface that it used, in words to translate.
    is_outside: whether these are edits outside of memoranda, of which nobody knows who made them.
    """

    agent: str | None
    program: str
    session: str
    time: str
    rows: list[Document] = field(default_factory=list)
    is_outside: bool = False

    @property
    def shown(self) -> list[Document]:
        """The rows that are shown without unfolding."""
        # A "more" for a single row would take as much room as the row.
        if len(self.rows) <= _ROWS_SHOWN + 1:
            return self.rows
        return self.rows[:_ROWS_SHOWN]

    @property
    def folded(self) -> list[Document]:
        """The rows behind `more`."""
        return self.rows[len(self.shown) :]


@dataclass
class UpkeepOfDay:
    """The changes of upkeep on one day.

    time: when the latest was made.
    verbs: the verb of a change -> how many changes have it.
    runs: the runs that made the changes.
    """

    time: str
    verbs: Counter[str] = field(default_factory=Counter)
    runs: list[UpkeepRun] = field(default_factory=list)


@dataclass
class UpkeepRun:
    """One run of a job, or a single change of upkeep.

    run: the number by which the whole run is undone. None for a single change.
    rows: its changes.
    refusal: the error that the run cannot be undone. None if it can be, or is a single change.
    """

    run: int | None
    rows: list[Document]
    refusal: CannotUndo | None

    @property
    def is_undone(self) -> bool:
        """Whether each of its changes is undone."""
        return all(row["undone_by"] for row in self.rows)


@dataclass
class Day:
    """The changes of one day.

    time: when the latest was made.
    groups: the changes by agents and people.
    tidied: the changes of upkeep. None without such changes.
    """

    time: str
    groups: list[Group] = field(default_factory=list)
    tidied: UpkeepOfDay | None = None

    @property
    def shown(self) -> list[Group]:
        """The groups that are shown without unfolding."""
        # As with rows, a "more" is not worth its room for a single group.
        if len(self.groups) <= _GROUPS_SHOWN + 1:
            return self.groups
        return self.groups[:_GROUPS_SHOWN]

    @property
    def folded(self) -> list[Group]:
        """The groups behind `more`."""
        return self.groups[len(self.shown) :]

    @property
    def count(self) -> int:
        """How many changes agents and people made."""
        return sum(len(group.rows) for group in self.groups)

    @property
    def agents(self) -> list[str | None]:
        """The agents and people who made the changes, each once. None for the owner."""
        return list(dict.fromkeys(group.agent for group in self.groups if not group.is_outside))


def show(visit: Visit) -> Response:
    """Show the newest changes.

    The fields `before` (a number), `day`, `week` and `agent` limit them.
    """
    memory = visit.memory
    # Read before the changes, so that changes made meanwhile are announced to the page.
    since = memory.journal_stamp()
    span = _chosen_span(visit)
    runs, has_no_earlier = _runs(visit, span)
    is_first_visit = not runs and not visit.fields and not memory.stats().total
    if is_first_visit:
        return first_run.show(visit, since)
    visit.begin_page()
    days = _days(visit, runs)
    # Nobody knows who edited a file outside, so such edits are not shown for one agent alone.
    shows_everybody = not visit.text("agent") and not _shows_only_owner(visit)
    if shows_everybody:
        begin, end = _shown_time(visit, runs, span, has_no_earlier)
        _add_outside_edits(visit, days, runs, begin, end)
    summary = _summary(visit, span)
    return visit.html(
        "today.html",
        days=days,
        summary=summary,
        deeds=deeds_in(visit.language, summary),
        subjects=subjects_since(visit, _rows_of_people(days), summary.since),
        span=span,
        suspicious=len(suspicious_notes(memory)),
        due=[row for row in reminder_rows(memory) if row.state in ("overdue", "due")],
        snoozes=SNOOZES,
        listed=_LISTED,
        chips=_chips(visit),
        weeks={name: heading for name, (_, heading) in _WEEKS.items()},
        agents=_agents(visit),
        chosen_agent=visit.text("agent"),
        with_machinery=bool(visit.text("all")),
        earlier=0 if has_no_earlier else next_page(runs),
        before=visit.number("before", 0),
        are_days_folded=not visit.fields.keys() & _NARROWING,
        used=_used_today(memory),
        since=since,
        address=visit.here,
    )


@dataclass
class Span:
    """The days that the page is limited to.

    begin, end: midnights in the reader's time zone. `end` is not included.
    week: the name of the week in _WEEKS. "" for a single day.
    heading: the heading of the week in English. "" for a single day.
    """

    begin: datetime
    end: datetime
    week: str = ""
    heading: str = ""


def _chosen_span(visit: Visit) -> Span | None:
    """Return the day or week that the request chooses. None for all days. Raises InvalidInput."""
    memory = visit.memory
    text = visit.text("day")
    if text:
        day = _day(text)
        return Span(_midnight(memory, day), _midnight(memory, day + timedelta(days=1)))
    week = visit.text("week")
    if not week:
        return None
    if week not in _WEEKS:
        raise InvalidInput(f"`week` must be one of {', '.join(_WEEKS)}")
    weeks_ago, heading = _WEEKS[week]
    today = _today(memory)
    # How many days ago the present week began, which is on Sunday for some readers.
    days_since_begin = (today.weekday() - visit.first_weekday) % _DAYS_OF_WEEK
    first_day = today - timedelta(days=days_since_begin, weeks=weeks_ago)
    return Span(
        _midnight(memory, first_day),
        _midnight(memory, first_day + timedelta(weeks=1)),
        week,
        heading,
    )


def _runs(visit: Visit, span: Span | None) -> tuple[list[list[Change]], bool]:
    """Return the changes to show, grouped by run, and whether there are no earlier ones."""
    memory = visit.memory
    before = visit.number("before", 0)
    since = None
    # The changes of a day follow each other in the log, so a day is a range of their numbers.
    if span is not None:
        since = span.begin
        # On a later page of the span, `before` says where it begins. 0 if the span has not ended.
        before = before or first_number_since(memory, span.end) or 0
    runs = memory.log_by_run(
        None,
        limit=CHANGES,
        agent=visit.text("agent") or None,
        since=since,
        before=before,
    )
    runs_shown = [run for run in runs if visit.text("all") or not is_machinery(run)]
    if _shows_only_owner(visit):
        runs_shown = [run for run in runs_shown if run[0].agent is None and not is_upkeep(run)]
    # A page that is not full is the last one.
    has_no_earlier = len(runs) < CHANGES
    return runs_shown, has_no_earlier


def start_of_day(memory: MemorySession, day: str) -> datetime:
    """Return the midnight when a day begins in the reader's time zone. Raises InvalidInput.

    day: `2026-11-28`.
    """
    return _midnight(memory, _day(day))


def _day(text: str) -> date:
    """Return the day of a text such as `2026-11-28`. Raises InvalidInput."""
    try:
        day = datetime.fromisoformat(text).date()
    except ValueError:
        day = date.min
    # At the ends of the calendar, a midnight of one zone is no time of another.
    if day.year in (MINYEAR, MAXYEAR):
        raise InvalidInput(f'invalid day "{text[:50]}"; a day is YYYY-MM-DD')
    return day


def _midnight(memory: MemorySession, day: date) -> datetime:
    """Return the midnight when a day begins in the reader's time zone. Raises InvalidInput."""
    moment = datetime.combine(day, time())
    return moment.replace(tzinfo=memory.settings.reading_zone).astimezone(memory.clock().tzinfo)


def next_page(runs: Sequence[Sequence[Change]]) -> int:
    """Return the number of the change before which the next page begins. 0 for no runs.

    runs: the runs of this page, the latest first; each has its latest change first.
    """
    if not runs:
        return 0
    earliest_run = runs[-1]
    newest = earliest_run[0].number
    oldest = earliest_run[-1].number
    is_without_gaps = newest - oldest == len(earliest_run) - 1
    if is_without_gaps:
        return oldest
    # Changes of others are between those of the run. They must be on the next page, and so the run
    # is there again.
    return newest


def _days(visit: Visit, runs: Sequence[Sequence[Change]]) -> list[Day]:
    """Group the runs by day in the reader's time zone, and on each day by session.

    runs: the changes of each run, the latest first.
    """
    memory = visit.memory
    changes = list(chain.from_iterable(runs))
    zone = memory.settings.reading_zone
    writer = RowWriter(memory, changes)
    days: dict[str, Day] = {}
    for run in runs:
        latest = run[0]
        local_day = f"{parse_stamp(latest.time).astimezone(zone):%Y-%m-%d}"
        day = days.setdefault(local_day, Day(latest.time))
        if is_upkeep(run):
            _add_upkeep(memory, day, run, writer)
        else:
            _add_rows(day, run, writer)
    return list(days.values())


def _add_upkeep(memory: MemorySession, day: Day, run: Sequence[Change], writer: RowWriter) -> None:
    """Add a run of upkeep to a day."""
    if day.tidied is None:
        day.tidied = UpkeepOfDay(run[0].time)
    day.tidied.verbs.update(change.verb for change in run)
    rows = [writer.row(change) for change in run]
    refusal = None if run[0].run is None else refused_undo_of_run(memory, run)
    day.tidied.runs.append(UpkeepRun(run[0].run, rows, refusal))


def _add_rows(day: Day, run: Sequence[Change], writer: RowWriter) -> None:
    """Add changes to a day: to its last group, or to a new one for another agent or session."""
    latest = run[0]
    session = (latest.by or {}).get("session") or ""
    group = day.groups[-1] if day.groups else None
    if group is None or (group.agent, group.session) != (latest.agent, session):
        group = Group(latest.agent, _program(latest), session, latest.time)
        day.groups.append(group)
    group.rows += [writer.row(change) for change in run]


def _rows_of_people(days: Iterable[Day]) -> Iterator[Document]:
    """Yield the rows of agents and people, without upkeep and without edits outside."""
    for day in days:
        for group in day.groups:
            if not group.is_outside:
                yield from group.rows


def _shown_time(
    visit: Visit, runs: Sequence[Sequence[Change]], span: Span | None, is_whole: bool
) -> tuple[datetime, datetime | None]:
    """Return the beginning and the end of the time that this page covers.

    The end is None if the page shows the latest changes.

    runs: the changes on the page, grouped by run, newest first.
    span: the time that the reader chose, or None.
    is_whole: whether this is the last page, with the earliest changes.
    """
    end = None if span is None else span.end
    before = visit.memory.change_numbered(visit.number("before", 0))
    if before is not None:
        end = parse_stamp(before.time)
    begin = EPOCH if span is None else span.begin
    if runs and not is_whole:
        begin = parse_stamp(runs[-1][-1].time)
    return begin, end


def _add_outside_edits(
    visit: Visit,
    days: list[Day],
    runs: Sequence[Sequence[Change]],
    begin: datetime,
    end: datetime | None,
) -> None:
    """Add edits outside of memoranda to the days of a span, in the order of time."""
    memory = visit.memory
    zone = memory.settings.reading_zone
    for row in outside_rows(memory, list(chain.from_iterable(runs)), begin, end):
        time = row["time"]
        group = Group(agent=None, program="", session="", time=time, rows=[row], is_outside=True)
        local_day = parse_stamp(time).astimezone(zone).date()
        # The days and their groups have the latest first, so the edit comes behind all later ones.
        dates = [parse_stamp(day.time).astimezone(zone).date() for day in days]
        position_of_day = sum(date > local_day for date in dates)
        if local_day not in dates:
            days.insert(position_of_day, Day(time))
        groups = days[position_of_day].groups
        position_of_group = sum(other.time >= time for other in groups)
        groups.insert(position_of_group, group)


def _program(change: Change) -> str:
    """Return the program of a change beside its agent's name: `3.0` for cursor in `cursor 3.0`."""
    program = program_of(change)
    beginning = f"{change.agent} "
    if change.agent and program.startswith(beginning):
        return program.removeprefix(beginning)
    return "" if program == change.agent else program


def _summary(visit: Visit, span: Span | None) -> Summary:
    """Summarize the chosen days, or today. If nothing happened today, summarize seven days.

    Only changes of the chosen agent, or of the owner, count.
    """
    memory = visit.memory
    agent = visit.text("agent")
    is_owner = _shows_only_owner(visit)
    if span is not None:
        end = first_number_since(memory, span.end)
        return summary_since(memory, span.begin, end, agent=agent, is_owner=is_owner)
    midnight = _midnight(memory, _today(memory))
    today = summary_since(memory, midnight, agent=agent, is_owner=is_owner)
    if today.learned or today.changed or today.forgot:
        return today
    # Today is the last of the seven days.
    begin = midnight - timedelta(days=_DAYS - 1)
    week = summary_since(memory, begin, agent=agent, is_owner=is_owner)
    week.is_week = True
    return week


def _shows_only_owner(visit: Visit) -> bool:
    """Whether only changes of the owner are shown."""
    return visit.text("agent") == "" and visit.text("who") == "owner"


def _today(memory: MemorySession) -> date:
    return memory.clock().astimezone(memory.settings.reading_zone).date()


def _chips(visit: Visit) -> list[datetime]:
    """Return the midnights of the last days, the latest first, for the buttons of days."""
    today = _today(visit.memory)
    return [
        start_of_day(visit.memory, (today - timedelta(days=number)).isoformat())
        for number in range(_DAYS)
    ]


def _agents(visit: Visit) -> list[str]:
    """Return the names of agents that wrote lately, in alphabetical order, at most _MAX_AGENTS."""
    recent = visit.memory.log(limit=500)
    names = sorted({change.agent for change in recent if change.agent})
    return names[:_MAX_AGENTS]


def _used_today(memory: MemorySession) -> list[tuple[NoteInfo, str]]:
    """Return the notes that agents got last today, each with the time."""
    midnight = start_of_day(memory, _today(memory).isoformat())
    time_by_id = dict(log_of(memory).latest_notes(midnight, _USED_LOOKED_UP))
    # `limit=0` means no limit; the ids are the limit.
    listed, _ = memory.list(Query(ids=tuple(time_by_id)), limit=0)
    info_by_id = {info.id: info for info in listed}
    used = [(info_by_id[id], time) for id, time in time_by_id.items() if id in info_by_id]
    return used[:_LISTED]
