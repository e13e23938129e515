"""Says in words how often a reminder repeats: `every Mon, Thu`, `every 2 months, day 1`."""

from __future__ import annotations

from memoranda.errors import InvalidInput
from memoranda.note.timephrase.rules import Recurrence, parse_rule
from memoranda.serve.page.words.wording import counted, translated

# The words for one and for several periods, by the frequency of a rule.
_PERIODS = {
    "MINUTELY": ("every minute", "every {n} minutes"),
    "HOURLY": ("every hour", "every {n} hours"),
    "DAILY": ("every day", "every {n} days"),
    "WEEKLY": ("every week", "every {n} weeks"),
    "MONTHLY": ("every month", "every {n} months"),
    "YEARLY": ("every year", "every {n} years"),
}
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_LAST_DAY = -1


def repetition(language: str, rule: str) -> str:
    """Return a rule of repetition in words. A rule that cannot be read gives `repeats`."""
    try:
        recurrence = parse_rule(rule)
    except InvalidInput:
        return translated(language, "repeats")
    days = _days(language, recurrence)
    is_every_week = recurrence.freq == "WEEKLY" and recurrence.interval == 1
    if is_every_week and days:
        return translated(language, "every {days}", days=days)
    singular, plural = _PERIODS[recurrence.freq]
    period = counted(language, singular, plural, recurrence.interval)
    # The due date tells the day of a year, and which Tuesday of a month.
    is_told_by_due_date = recurrence.months or recurrence.nth
    if not days or is_told_by_due_date:
        return period
    return translated(language, ", ").join((period, days))


def _days(language: str, recurrence: Recurrence) -> str:
    """Return the days of a rule: `Mon, Thu`, `day 1`. "" if it names none."""
    if recurrence.days:
        return ", ".join(translated(language, _WEEKDAYS[day]) for day in recurrence.days)
    if recurrence.monthdays == (_LAST_DAY,):
        return translated(language, "the last day")
    if recurrence.monthdays:
        numbers = ", ".join(map(str, recurrence.monthdays))
        return translated(language, "day {n}", n=numbers)
    return ""
