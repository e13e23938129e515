"""Calendar: notes and reminders by day; what is due and overdue, to be done or put off."""

from __future__ import annotations

from calendar import Calendar
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from starlette.responses import Response

from memoranda.engine import MemorySession
from memoranda.engine.overview import content_of
from memoranda.errors import InvalidInput
from memoranda.index.rows import NoteInfo
from memoranda.jobs import reminders
from memoranda.serve.page.visit import Visit

SNOOZES = ("in 1 hour", "tomorrow 9:00", "in 1 week")
"""What the page offers to put a reminder off to; it may be any time that can be read."""
SOON = timedelta(days=14)
LISTED = 200
_FIRST = date(1970, 1, 1)
_LAST = date(2999, 12, 1)


@dataclass(slots=True)
class ReminderRow:
    """A reminder as the calendar shows it; times are local; `state`: overdue, due (today), later or
    done; `put_off`: when an occurrence of a repeating one comes that was put off beyond its next
    time."""

    info: NoteInfo
    text: str
    when: datetime | None
    state: str
    repeat: str | None
    put_off: datetime | None


def rows_of(memory: MemorySession) -> list[ReminderRow]:
    """All reminders the caller sees, by time, those without one last."""
    zone = memory.settings.reading_zone
    now = memory.clock()
    today = now.astimezone(zone).date()
    found = []
    for info, each in reminders.listed(memory, fired=True):
        is_open = not each.is_done and (each.has_fired or each.is_due(now))
        due = each.shown_due if is_open else each.due
        when = due and due.astimezone(zone)
        # What comes an hour before is not late yet
        is_late = is_open and (due is None or due <= now)
        if is_late:
            state = "overdue"
        elif each.is_done and not each.is_waiting:
            state = "done"
        else:
            state = "later"
        if state == "later" and when and when.date() == today:
            state = "due"
        else:
            state = state
        if each.snoozed and each.snoozed != due:
            put_off = each.snoozed.astimezone(zone)
        else:
            put_off = None
        found.append(
            ReminderRow(info, content_of(memory, info).strip(), when, state, each.repeat, put_off)
        )
    return sorted(found, key=lambda each: (each.when is None, each.when or now, each.info.id))


def _month(text: str) -> date:
    """The first day of the month `text` names (YYYY-MM). Raises InvalidInput."""
    return min(max(_day(f"{text[:7]}-01"), _FIRST), _LAST)


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f'invalid day "{text[:50]}"; a day is YYYY-MM-DD') from None


def show(visit: Visit) -> Response:
    """A month, the reminders that are open, and one day of it."""
    memory = visit.memory
    given = visit.given
    today = memory.clock().astimezone(memory.settings.reading_zone).date()
    chosen = _day(given["day"]) if given.get("day") else None
    month = _month(given.get("month") or (chosen or today).isoformat())
    weeks = Calendar().monthdatescalendar(month.year, month.month)
    notes = memory.on_days(weeks[0][0], weeks[-1][-1] + timedelta(days=1))
    every = rows_of(memory)
    by_day: dict[str, list[ReminderRow]] = {}
    for each in every:
        for moment in filter(None, (each.when, each.put_off)):
            by_day.setdefault(moment.date().isoformat(), []).append(each)
    key = (chosen or today).isoformat()
    if key not in notes and not weeks[0][0] <= (chosen or today) <= weeks[-1][-1]:
        notes = notes | memory.on_days(chosen or today, (chosen or today) + timedelta(days=1))
    rows = notes.get(key, [])
    return visit.html(
        "calendar.html",
        month=month,
        weeks=weeks,
        notes=notes,
        reminders=by_day,
        today=today,
        chosen=key,
        is_chosen=chosen is not None,
        of_day=memory.of_rows(rows[::-1][:LISTED]),
        count=len(rows),
        due=[each for each in every if each.state in ("overdue", "due")],
        snoozes=SNOOZES,
        later=[
            each
            for each in every
            if each.state == "later" and (each.when is None or each.when.date() <= today + SOON)
        ],
        before=(month - timedelta(days=1)).isoformat()[:7],
        after=(month + timedelta(days=31)).isoformat()[:7],
        back=f"/page/calendar?{visit.request.url.query}".rstrip("?"),
    )


def change(visit: Visit) -> Response | dict[str, Any]:
    """Mark a reminder as done, or put it off."""
    given = visit.given
    memory = visit.memory
    if given.get("action") == "done":
        info = reminders.acknowledge(memory, given.get("ref", ""))
    elif given.get("action") == "snooze":
        info = reminders.snooze(
            memory, given.get("ref", ""), given.get("when") or given.get("until") or SNOOZES[0]
        )
    else:
        raise InvalidInput('invalid action (one of "done", "snooze")')
    if not visit.is_api:
        return visit.back()
    return {"id": info.id} | {
        name: info.header.get(name) for name in ("due_at", "snoozed_until", "acked_at")
    }


def json(visit: Visit) -> dict[str, Any]:
    """How many notes each day of a month has, and all reminders."""
    memory = visit.memory
    today = memory.clock().astimezone(memory.settings.reading_zone).date()
    month = _month(visit.given.get("month") or today.isoformat())
    days = memory.on_days(month, (month + timedelta(days=31)).replace(day=1))
    rows = [
        {
            "id": each.info.id,
            "text": each.text,
            "due": each.when and each.when.isoformat(),
            "state": each.state,
            "repeat": each.repeat,
            "put_off": each.put_off and each.put_off.isoformat(),
        }
        for each in rows_of(memory)
    ]
    return {
        "month": month.isoformat()[:7],
        "days": {day: len(found) for day, found in sorted(days.items())},
        "reminders": rows,
    }
