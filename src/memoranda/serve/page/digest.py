"""Today: what agents and people did, by session and day, each with what it says now.

Upkeep is one line a day; machinery (what fired, what was asked) is shown on demand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from itertools import islice
from typing import Any

from starlette.responses import Response

from memoranda.clock import parse_stamp
from memoranda.engine import MemorySession
from memoranda.engine.history import Revision, undone_by_change
from memoranda.engine.refusals import can_undo_run, refused_undos
from memoranda.engine.upkeep import Upkeep
from memoranda.engine.whereabouts import where_now
from memoranda.errors import CannotUndo, InvalidInput
from memoranda.index.rows import NoteInfo
from memoranda.ledger.change import Change
from memoranda.serve.page import differences
from memoranda.serve.page.calendar import reminder_rows
from memoranda.serve.page.differences import GAP, Difference, Line
from memoranda.serve.page.rendering import note_url
from memoranda.serve.page.visit import HOME, Visit
from memoranda.text.word_diff import SAME, Part

CHANGES = 60
"""Changes, or runs of a job, that one page shows."""
_DAYS = 7
"""Days offered as chips."""
_LINES = 3
"""Lines of a row."""
_LINE = 220
"""Characters of a line of a row."""
_AROUND = 40
"""Characters that stay of the text around a changed word."""
_FOLDED = 5
"""Rows of a session that are shown before `more`."""
_MOST_TODAY = 2_000
"""Changes of today that are counted."""
_LISTED = 5
_PRIVATE = ".memoranda"

LEARNED = "learned"
CHANGED = "changed"
FORGOT = "forgot"
TIDIED = "tidied"
_WORD_OF = {
    "write": LEARNED,
    "create": LEARNED,
    "import": LEARNED,
    "ingest": LEARNED,
    "delete": FORGOT,
    "remove": FORGOT,
    "erase": FORGOT,
    "archive": FORGOT,
    "expire": FORGOT,
}
"""The word for a change by its verb; all others changed something."""
_MACHINERY = frozenset(("fire", "review", "ask", "snooze", "done", "expire"))
"""Verbs of what nobody has to know about, unless they ask."""
_JOBS = frozenset(("classify", "upgrade", "consolidate", "decay", "remind", "merge", "link"))
"""Verbs of upkeep when the daemon, or a run of a job, did them."""


@dataclass
class Row:
    """One change as a person reads it.

    `word`: LEARNED, CHANGED, FORGOT. `lines`: what is new, or what changed word by word. `refusal`:
    why it cannot be taken back; empty when it can. `undone_by`: the change that took it back.
    """

    number: int
    time: str
    word: str
    verb: str
    title: str
    url: str
    lines: list[Line] = field(default_factory=list)
    properties: list[differences.PropertyChange] = field(default_factory=list)
    others: int = 0
    refusal: str = ""
    undone_by: int | None = None
    undoes: int | None = None


@dataclass
class Group:
    """What one agent did in one session on one day, the latest first."""

    agent: str | None
    client: str
    session: str
    time: str
    rows: list[Row] = field(default_factory=list)

    @property
    def shown(self) -> list[Row]:
        """The rows that are shown at once."""
        return self.rows if len(self.rows) <= _FOLDED + 1 else self.rows[:_FOLDED]

    @property
    def folded(self) -> list[Row]:
        """The rows behind `more`."""
        return self.rows[len(self.shown) :]


@dataclass
class Tidied:
    """What upkeep did on one day: how often each verb, and the runs of it."""

    time: str
    verbs: Counter[str] = field(default_factory=Counter)
    runs: list[Tidying] = field(default_factory=list)


@dataclass
class Tidying:
    """One run of a job, or one change of upkeep; `run`: the number to take all of it back by."""

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
    """What happened since `since`: how many notes were learned, changed, forgotten, and by whom.

    `is_week`: nothing happened today, so it is of the last seven days.
    """

    since: datetime
    is_week: bool = False
    learned: int = 0
    changed: int = 0
    forgot: int = 0
    agents: list[str] = field(default_factory=list)


def show(visit: Visit) -> Response:
    """The newest changes, or those before a number, of a day, of an agent."""
    memory = visit.memory
    # Before the look: what comes meanwhile is told to the page
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
        suspicious=len(memory.suspicious_notes()),
        due=[row for row in reminder_rows(memory) if row.state in ("overdue", "due")],
        listed=_LISTED,
        chips=_chips(visit),
        agents=_agents(visit),
        chosen_agent=visit.text("agent"),
        chosen_day=visit.text("day"),
        with_machinery=bool(visit.text("all")),
        earlier=0 if is_whole else _next_page(runs),
        before=visit.number("before", 0),
        used=_used_today(memory),
        since=since,
        address=visit.here,
    )


def _runs(visit: Visit) -> tuple[list[list[Change]], bool]:
    """The changes to be shown, those of a run of a job together, and whether these are all."""
    memory = visit.memory
    before = visit.number("before", 0)
    since = None
    day = visit.text("day")
    if day:
        begin = start_of_day(memory, day)
        since = begin
        end = memory.last_number_before(begin + timedelta(days=1)) + 1
        before = min(before, end) if before else end
    runs = memory.log_by_run(
        None,
        limit=CHANGES,
        agent=visit.text("agent") or None,
        since=since,
        before=before,
    )
    shown = [run for run in runs if visit.text("all") or not _is_machinery(run)]
    if visit.text("agent") == "" and visit.text("who") == "owner":
        shown = [run for run in shown if run[0].agent is None and not _is_upkeep(run)]
    return shown, len(runs) < CHANGES


def start_of_day(memory: MemorySession, day: str) -> datetime:
    """Midnight of a day (YYYY-MM-DD) where the reader lives. Raises InvalidInput."""
    try:
        moment = datetime.combine(datetime.fromisoformat(day).date(), time())
    except ValueError:
        raise InvalidInput(f'invalid day "{day[:50]}"; a day is YYYY-MM-DD') from None
    return moment.replace(tzinfo=memory.settings.reading_zone).astimezone(memory.clock().tzinfo)


def _is_machinery(run: Sequence[Change]) -> bool:
    return all(
        change.verb in _MACHINERY or (change.project == _PRIVATE and change.undoes is None)
        for change in run
    )


def _is_upkeep(run: Sequence[Change]) -> bool:
    """Whether a job did this, and nobody asked for it."""
    first = run[0]
    if first.undoes is not None:
        return False
    return first.run is not None or (first.face == "daemon" and first.verb in _JOBS)


def _next_page(runs: Sequence[Sequence[Change]]) -> int:
    """The number before which the next page begins; a run with others between is rather shown twice."""
    if not runs:
        return 0
    first = runs[-1][0].number
    last = runs[-1][-1].number
    if first - last == len(runs[-1]) - 1:
        return last
    return first


def undone_in(changes: Iterable[Change]) -> Mapping[int, int]:
    """By number, the change that took a change, or the run that begins with it, back and stands
    itself.
    """
    undos = {number: change.number for change in changes for number in undone_by_change(change)}
    return {number: undo for number, undo in undos.items() if undo not in undos}


def _days(visit: Visit, runs: Sequence[Sequence[Change]]) -> list[Day]:
    """The runs by the day of the reader, each day by who was at work in which session."""
    memory = visit.memory
    changes = [change for run in runs for change in run]
    zone = memory.settings.reading_zone
    writer = _RowWriter(memory, changes)
    days: dict[str, Day] = {}
    for run in runs:
        latest = run[0]
        key = f"{parse_stamp(latest.time).astimezone(zone):%Y-%m-%d}"
        day = days.setdefault(key, Day(latest.time))
        if _is_upkeep(run):
            _add_tidying(memory, day, run, writer)
        else:
            _add_rows(day, run, writer)
    return list(days.values())


def _add_tidying(
    memory: MemorySession, day: Day, run: Sequence[Change], writer: _RowWriter
) -> None:
    if day.tidied is None:
        day.tidied = Tidied(run[0].time)
    day.tidied.verbs.update(change.verb for change in run)
    rows = [writer.row(change) for change in run]
    may_undo = run[0].run is not None and can_undo_run(memory, run)
    day.tidied.runs.append(Tidying(run[0].run, rows, may_undo))


def _add_rows(day: Day, run: Sequence[Change], writer: _RowWriter) -> None:
    latest = run[0]
    by = latest.by or {}
    client = by.get("client") or latest.face or ""
    session = by.get("session") or ""
    group = day.groups[-1] if day.groups else None
    if group is None or (group.agent, group.session) != (latest.agent, session):
        group = Group(latest.agent, client, session, latest.time)
        day.groups.append(group)
    group.rows += [writer.row(change) for change in run]


class _RowWriter:
    """Makes rows of changes; what all of them need is looked up once."""

    def __init__(self, memory: MemorySession, changes: Sequence[Change]):
        self._memory = memory
        numbers = [change.number for change in changes]
        self._refusals = refused_undos(memory, numbers)
        self._undone = undone_in(changes)
        self._revisions = memory.revisions_of(changes, limit=1)
        self._places: dict[tuple[str, str], NoteInfo | None] = {}

    def row(self, change: Change) -> Row:
        """A change with the note it is about, what it says, and whether it can be taken back."""
        revision = next(iter(self._revisions.get(change.number, [])), None)
        info = self._note(change)
        row = Row(
            change.number,
            change.time,
            word_of(change),
            change.verb,
            self._title(change, info, revision),
            self._address(change, info),
            others=max(0, sum(1 for _ in change.texts()) - 1),
            refusal=self._refusals.get(change.number, ""),
            undone_by=self._undone.get(change.number),
            undoes=change.undoes,
        )
        if revision is not None:
            _describe(row, revision)
        return row

    def _note(self, change: Change) -> NoteInfo | None:
        """The note a change is about, where it is by now."""
        is_note = change.project and change.path and not change.root
        if not is_note or change.project == _PRIVATE or change.verb == "erase":
            return None
        place = (change.project, change.path)
        if place not in self._places:
            self._places[place] = where_now(self._memory, *place)
        return self._places[place]

    def _title(self, change: Change, info: NoteInfo | None, revision: Revision | None) -> str:
        if info is not None:
            return info.title[:_LINE]
        if revision is not None and (revision.before or revision.after):
            text = differences.split(revision.after or revision.before or "")[1]
            for line in text.splitlines():
                if line.strip("# \t"):
                    return line.strip("# \t")[:_LINE]
        return change.path.rpartition("/")[2].removesuffix(".md")

    def _address(self, change: Change, info: NoteInfo | None) -> str:
        """The note, or where there is none any more, what the change did."""
        if info is None:
            return f"{HOME}/change/{change.number}"
        return note_url(info.project, info.path)


def word_of(change: Change) -> str:
    """What a change is called for people: LEARNED, CHANGED, FORGOT."""
    if change.undoes is not None:
        return CHANGED
    return _WORD_OF.get(change.verb, CHANGED)


def _describe(row: Row, revision: Revision) -> None:
    """Say in the row what the change did to its first note."""
    if revision.before is None and revision.after is not None:
        row.lines = _beginning(revision.after, row.title)
        return
    if revision.after is None and revision.before is not None:
        row.lines = _beginning(revision.before, row.title)
        return
    difference = differences.of_revision(revision, 40)
    row.properties = difference.properties
    row.lines = snippet(difference)


def _beginning(text: str, title: str) -> list[Line]:
    """The first lines of a new text that do not only say the title again."""
    body = differences.split(text)[1]
    stripped = (line.strip() for line in body.splitlines())
    telling = (line for line in stripped if line and line.lstrip("# ") != title)
    return [[Part(SAME, _cut(line))] for line in islice(telling, _LINES)]


def snippet(difference: Difference, most: int = _LINES) -> list[Line]:
    """The changed lines of a difference, with little of what stayed around the words."""
    changed = [line for line in difference.lines if any(part.kind != SAME for part in line)]
    telling = [line for line in changed if line[0].kind != GAP and _says_something(line)]
    return [_trimmed(line) for line in telling[:most]]


def _says_something(line: Line) -> bool:
    return any(part.text.strip() for part in line)


def _trimmed(line: Line) -> Line:
    last = len(line) - 1
    parts = []
    for number, part in enumerate(line):
        text = part.text
        if part.kind == SAME and number == 0 and len(text) > _AROUND:
            text = f"…{text[-_AROUND:]}"
        elif part.kind == SAME and number == last and len(text) > _AROUND:
            text = f"{text[:_AROUND]}…"
        parts.append(Part(part.kind, _cut(text)))
    return parts


def _cut(text: str) -> str:
    if len(text) <= _LINE:
        return text
    return f"{text[: _LINE - 1]}…"


def _summary(memory: MemorySession) -> Summary:
    """What agents and the owner did today, or where that is nothing, in the last seven days."""
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
        if _is_machinery([change]) or _is_upkeep([change]) or change.undoes is not None:
            continue
        words[word_of(change)] += max(1, sum(1 for _ in change.texts()))
        if change.agent:
            agents[change.agent] = None
    summary.learned = words[LEARNED]
    summary.changed = words[CHANGED]
    summary.forgot = words[FORGOT]
    summary.agents = list(agents)
    return summary


def _today(memory: MemorySession) -> Any:
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


def _used_today(memory: MemorySession) -> list[tuple[NoteInfo, datetime]]:
    """The notes agents used last today."""
    midnight = start_of_day(memory, _today(memory).isoformat())
    uses = Upkeep(memory).uses()
    today = {identity: moment for identity, moment in uses.items() if moment >= midnight}
    latest = sorted(today, key=lambda identity: today[identity], reverse=True)[: 4 * _LISTED]
    infos = memory.with_ids(latest)
    return sorted(
        ((info, today[info.id]) for info in infos), key=lambda pair: pair[1], reverse=True
    )[:_LISTED]


def change(visit: Visit) -> Response:
    """One change with all it did."""
    number = visit.number("change", 0)
    revisions = visit.memory.revisions(number, limit=_DIFFS + 1)
    shown = [
        (revision, differences.of_revision(revision), _where(visit.memory, revision))
        for revision in revisions[:_DIFFS]
    ]
    done = visit.memory.change_numbered(number)
    refusal = refused_undos(visit.memory, [number]).get(number, "")
    return visit.html(
        "change_part.html" if visit.is_part else "change.html",
        change=done,
        word=word_of(done) if done else "",
        revisions=shown,
        has_more=len(revisions) > _DIFFS,
        number=number,
        refusal=refusal,
    )


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
        raise CannotUndo(f"cannot undo #{number}: it is no change of {memory.agent}")
    if run and memory.agent is None:
        done = memory.undo_run(run)[0]
    else:
        done = memory.undo(number or None)
    if visit.is_api:
        return {"change": done.number, "undone": done.undoes}
    return visit.back()


def _own_numbers(memory: MemorySession) -> Collection[int]:
    return {change.number for change in memory.log(limit=0, agent=memory.agent)}
