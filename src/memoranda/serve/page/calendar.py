"""Shows the calendar: how many notes and which reminders each day has, and an agenda.

The agenda lists the reminders that are overdue or due soon. Each can be marked as done there, or
put off.
"""

from __future__ import annotations

from calendar import Calendar
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import MAXYEAR, MINYEAR, date, datetime, timedelta
from typing import Any

from starlette.responses import Response

from memoranda import documents
from memoranda.documents.listed import Document, Listed
from memoranda.engine import MemorySession
from memoranda.engine.contents import content_of
from memoranda.engine.overview import by_day
from memoranda.engine.telling.session_start import told_due
from memoranda.errors import InvalidInput
from memoranda.index.rows import NoteInfo
from memoranda.jobs import reminders
from memoranda.note.reminder import Reminder
from memoranda.query import Query, day
from memoranda.serve.page.visit import Visit
from memoranda.serve.page.words.times import Clock
from memoranda.serve.page.words.writers import writer_of, writing_agent

SNOOZES = ("in 1 hour", "tomorrow 9:00", "in 1 week")
"""The times that the page offers for putting off a reminder. Other times are accepted, too."""
SOON = timedelta(days=14)
"""How far the agenda goes ahead, and back for what is done."""
# Notes of a day that one page has, and those of a writer above its "more".
LISTED = 200
_SHOWN_OF_WRITER = 3
# The parts of the agenda, in their order.
_AGENDA = ("Overdue", "Today", "In the next two weeks", "Without a date")
# The states of reminders, those first that need something.
_STATES = ("overdue", "due", "later", "done")
# Reminders of a part of the agenda that are shown above "more".
_REMINDERS_SHOWN = 8
# The first and the last month that can be shown.
_FIRST_MONTH = date(1970, 1, 1)
_LAST_MONTH = date(2999, 12, 1)


@dataclass(slots=True)
class ReminderRow:
    """A reminder as the calendar shows it, with times in the reader's time zone.

    when: when it is due. None for a reminder without a time.
    state: "overdue", "due" (today), "later" or "done".
    repeat: the rule by which it repeats. None if it does not.
    put_off: the time to which one occurrence of a repeating reminder was put off, if that is not
        `when`.
    is_untold: whether it is overdue for so long that no session is told of it any more.
    """

    info: NoteInfo
    text: str
    when: datetime | None
    state: str
    repeat: str | None
    put_off: datetime | None
    is_untold: bool = False


@dataclass
class WriterGroup:
    """The notes of one writer on a day, the latest first.

    writer: an agent's name, or a word to be translated.
    agent: the agent of the avatar. None for the owner.
    """

    writer: str
    agent: str | None
    notes: list[Document] = field(default_factory=list)

    @property
    def shown(self) -> list[Document]:
        """The notes that are shown without unfolding."""
        # A "more" for a single note would take as much room as the note.
        if len(self.notes) <= _SHOWN_OF_WRITER + 1:
            return self.notes
        return self.notes[:_SHOWN_OF_WRITER]

    @property
    def folded(self) -> list[Document]:
        """The notes behind `more`."""
        return self.notes[len(self.shown) :]


def reminder_rows(memory: MemorySession) -> list[ReminderRow]:
    """Return all reminders that the caller sees, in the order of their times.

    Reminders without a time come last.
    """
    now = memory.clock()
    rows = [
        reminder_row(memory, info, reminder)
        for info, reminder in reminders.listed(memory, fired=True)
    ]
    # False sorts before True. Rows without a time are only compared with each other.
    return sorted(rows, key=lambda row: (row.when is None, row.when or now, row.info.id))


def reminder_row(
    memory: MemorySession, info: NoteInfo, reminder: Reminder | None = None
) -> ReminderRow:
    """Return one reminder.

    reminder: its state. None if it is still to be read from the note.
    """
    if reminder is None:
        reminder = Reminder.of(info.header)
    zone = memory.settings.reading_zone
    now = memory.clock()
    # An open reminder waits for the owner. If it repeats, it shows the time for which it fired, and
    # not yet the next one.
    is_open = not reminder.is_done and (reminder.has_fired or reminder.is_due(now))
    due = reminder.shown_due if is_open else reminder.due
    when = None if due is None else due.astimezone(zone)
    # A reminder later today counts as due today.
    state = _state(reminder, due, is_open, now)
    if state == "later" and when and when.date() == now.astimezone(zone).date():
        state = "due"
    put_off = None
    if reminder.snoozed and reminder.snoozed != due:
        put_off = reminder.snoozed.astimezone(zone)
    text = content_of(memory, info).strip()
    is_untold = state == "overdue" and told_due(reminder, now) is None
    return ReminderRow(
        info=info,
        text=text,
        when=when,
        state=state,
        repeat=reminder.repeat,
        put_off=put_off,
        is_untold=is_untold,
    )


def _state(reminder: Reminder, due: datetime | None, is_open: bool, now: datetime) -> str:
    """Return the state of a reminder: "overdue", "done" or "later".

    is_open: whether the reminder has fired or is due, and is not done.
    """
    # A reminder that fires early, before its time, is not overdue yet.
    if is_open and (due is None or due <= now):
        return "overdue"
    if reminder.is_done and not reminder.is_waiting:
        return "done"
    return "later"


def _month(text: str) -> date:
    """Return the first day of a month: `2026-11` gives 1 November 2026. Raises InvalidInput.

    A month before the first or after the last that can be shown gives that one.
    """
    first_day = _day(f"{text[:7]}-01")
    return min(max(first_day, _FIRST_MONTH), _LAST_MONTH)


def _day(text: str) -> date:
    """Return the day of a text such as `2026-11-28`. Raises InvalidInput."""
    refusal = InvalidInput(f'invalid day "{text[:50]}"; a day is YYYY-MM-DD')
    try:
        parsed_day = date.fromisoformat(text)
    except ValueError:
        raise refusal from None
    # The page links to the days around a day, which the first and the last year may not have.
    if parsed_day.year in (MINYEAR, MAXYEAR):
        raise refusal
    return parsed_day


def show(visit: Visit) -> Response:
    """Show the calendar: what is due, one month, and one of its days.

    Without a chosen day, it is today.
    """
    memory = visit.memory
    today = memory.clock().astimezone(memory.settings.reading_zone).date()
    chosen = _day(visit.fields["day"]) if visit.fields.get("day") else None
    shown_day = chosen or today
    month = _month(visit.fields.get("month") or shown_day.isoformat())
    offset = visit.number("offset", 0)
    visit.begin_page()
    weeks = Calendar(visit.first_weekday).monthdatescalendar(month.year, month.month)
    rows = reminder_rows(memory)
    by_date = _by_day(rows)
    of_day = _notes_of(memory, shown_day, offset)
    return visit.html(
        "calendar.html",
        month=month,
        weeks=weeks,
        notes=by_day(memory, weeks[0][0], weeks[-1][-1] + timedelta(days=1)),
        reminders=_counts_of_states(by_date),
        of_day_reminders=by_date.get(shown_day.isoformat(), []),
        today=today,
        chosen=shown_day.isoformat(),
        shown_day=shown_day,
        is_chosen=chosen is not None,
        of_day=of_day,
        writers=_by_writer(of_day),
        agenda=_agenda(rows, today),
        done=_done_lately(visit.reader_clock, rows),
        snoozes=SNOOZES,
        most_due=_REMINDERS_SHOWN,
        previous=(month - timedelta(days=1)).isoformat()[:7],
        following=(month + timedelta(days=31)).isoformat()[:7],
        back=visit.here,
    )


def _notes_of(memory: MemorySession, shown_day: date, offset: int) -> Listed:
    """Return one part of the list of a day's notes, the latest first.

    Each says whether it looks planted, its category, and who wrote it: `writer`, and `agent` for the
    avatar.

    offset: how many notes are before this part.
    """
    zone = memory.settings.zone
    begin = day(shown_day.isoformat(), "day", zone)
    end = day(shown_day.isoformat(), "day", zone, after=1)
    query = Query(day_from=begin, day_until=end, archived=False, order="created")
    infos, total = memory.list(query, limit=LISTED, offset=offset)
    listed = documents.references(memory, infos, total, offset)
    for row, info in zip(listed, infos, strict=True):
        row["is_planted"] = memory.is_held_back(info)
        row["category"] = info.category
        row["writer"] = writer_of(info)
        row["agent"] = writing_agent(info)
    return listed


def _by_writer(notes: Iterable[Document]) -> list[WriterGroup]:
    """Group notes by who wrote them. The writer of the latest note is the first."""
    groups: dict[str, WriterGroup] = {}
    for note in notes:
        group = groups.setdefault(note["writer"], WriterGroup(note["writer"], note["agent"]))
        group.notes.append(note)
    return list(groups.values())


def _by_day(rows: Sequence[ReminderRow]) -> dict[str, list[ReminderRow]]:
    """Group reminders by day (`2026-11-28`). One that was put off is on both its days."""
    rows_by_day: dict[str, list[ReminderRow]] = {}
    for row in rows:
        for moment in (row.when, row.put_off):
            if moment is not None:
                rows_by_day.setdefault(moment.date().isoformat(), []).append(row)
    return rows_by_day


def _counts_of_states(
    by_date: Mapping[str, Sequence[ReminderRow]],
) -> Mapping[str, list[tuple[str, int]]]:
    """Return the states that the reminders of each day have, with how many have each."""
    counts = defaultdict[str, list[tuple[str, int]]](list)
    for day_shown, rows in by_date.items():
        numbers = Counter(row.state for row in rows)
        counts[day_shown] = [(state, numbers[state]) for state in _STATES if numbers[state]]
    return counts


def _done_lately(clock: Clock, rows: Sequence[ReminderRow]) -> list[ReminderRow]:
    """Return the reminders that were done in the last two weeks, the latest first."""
    done: dict[tuple[datetime, str], ReminderRow] = {}
    for row in rows:
        done_at = clock.local(row.info.header.get("acked_at"))
        if row.state == "done" and done_at is not None and done_at >= clock.now - SOON:
            # The id keeps the order of reminders that were done at the same moment.
            done[done_at, row.info.id] = row
    return [done[key] for key in sorted(done, reverse=True)]


def _agenda(rows: Sequence[ReminderRow], today: date) -> dict[str, list[ReminderRow]]:
    """Group the open reminders of the next two weeks by the part of the agenda. Leave out empty parts."""
    agenda: dict[str, list[ReminderRow]] = {name: [] for name in _AGENDA}
    for row in rows:
        name = _agenda_part(row, today)
        if name:
            agenda[name].append(row)
    return {name: listed for name, listed in agenda.items() if listed}


def _agenda_part(row: ReminderRow, today: date) -> str:
    """Return the part of the agenda that a reminder belongs to. "" if it does not belong to it."""
    if row.state == "overdue":
        return "Overdue"
    if row.state == "due":
        return "Today"
    if row.state != "later":
        return ""
    if row.when is None:
        return "Without a date"
    return "In the next two weeks" if row.when.date() <= today + SOON else ""


def change(visit: Visit) -> Response | dict[str, Any]:
    """Mark a reminder as done, put it off, or give it another time, as the field `action` says.

    The field `ref` names the reminder. The time is in the field `when`. To put it off, the field
    `until` may have one of SNOOZES instead.
    """
    fields = visit.fields
    memory = visit.memory
    action = fields.get("action")
    ref = fields.get("ref", "")
    if action == "done":
        info = reminders.acknowledge(memory, ref)
    elif action == "snooze":
        until = fields.get("when") or fields.get("until") or SNOOZES[0]
        info = reminders.snooze(memory, ref, until)
    elif action == "due":
        info = reminders.reschedule(memory, ref, visit.text("when"))
    else:
        raise InvalidInput('invalid action (one of "done", "snooze", "due")')
    if not visit.is_api:
        return visit.back()
    return {"id": info.id} | {
        name: info.header.get(name) for name in ("due_at", "snoozed_until", "acked_at")
    }


def as_json(visit: Visit) -> dict[str, Any]:
    """Return how many notes each day of a month has, and all reminders, as JSON."""
    memory = visit.memory
    today = memory.clock().astimezone(memory.settings.reading_zone).date()
    month = _month(visit.fields.get("month") or today.isoformat())
    # A month has at most 31 days, so this is a day of the next month.
    day_of_next_month = month + timedelta(days=31)
    days = by_day(memory, month, day_of_next_month.replace(day=1))
    shown_rows = reminder_rows(memory)
    listed = documents.notes(memory, [row.info for row in shown_rows])
    return {
        "month": month.isoformat()[:7],
        "days": dict(sorted(days.items())),
        "reminders": [
            document | _times(row) for document, row in zip(listed, shown_rows, strict=True)
        ],
    }


def _times(row: ReminderRow) -> dict[str, Any]:
    """Return the text, the times and the state of a reminder as JSON."""
    return {
        "text": row.text,
        "due": None if row.when is None else row.when.isoformat(),
        "state": row.state,
        "repeat": row.repeat,
        "put_off": None if row.put_off is None else row.put_off.isoformat(),
    }
