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
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
# Of more months than these, the ones that are left out are named.
_MOST_MONTHS_NAMED = len(_MONTHS) // 2
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
        words = [translated(language, "every {days}", days=days)]
    else:
        singular, plural = _PERIODS[recurrence.freq]
        words = [counted(language, singular, plural, recurrence.interval), days]
    words.append(_months(language, recurrence))
    return translated(language, ", ").join(filter(None, words))


def _months(language: str, recurrence: Recurrence) -> str:
    """Return the months to which a rule is limited: `only Jun, Jul`, `except Aug`. "" without any."""
    # The due date tells the month of a year.
    if not recurrence.months or recurrence.freq == "YEARLY":
        return ""
    months = recurrence.months
    template = "only {months}"
    if len(months) > _MOST_MONTHS_NAMED:
        months = tuple(month for month in range(1, 13) if month not in recurrence.months)
        template = "except {months}"
    names = ", ".join(translated(language, _MONTHS[month - 1]) for month in months)
    return translated(language, template, months=names)


def _days(language: str, recurrence: Recurrence) -> str:
    """Return the days of a rule: `Mon, Thu`, `day 1`. "" if it names none."""
    # The due date tells the day of a year, and which Tuesday of a month.
    if recurrence.freq == "YEARLY" or recurrence.nth:
        return ""
    if recurrence.days:
        return ", ".join(translated(language, _WEEKDAYS[day]) for day in recurrence.days)
    if recurrence.monthdays == (_LAST_DAY,):
        return translated(language, "the last day")
    if recurrence.monthdays:
        numbers = ", ".join(map(str, recurrence.monthdays))
        return translated(language, "day {n}", n=numbers)
    return ""
