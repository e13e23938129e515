"""When a series starts and ends, as the parts of a sentence say it."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from memoranda.errors import AmbiguousTime
from memoranda.note.timephrase.days import first_day, last_day, possible_days
from memoranda.note.timephrase.parts import BETWEEN, END, START, Part
from memoranda.note.timephrase.reading import Sentence
from memoranda.note.timephrase.values import Delay


@dataclass
class Bounds:
    """When a series starts and ends. None means that the text does not say it.

    first, last: its first and its last day.
    length: how long it lasts, from its first time on.
    times: how often it comes, its first time included.
    """

    first: date | None = None
    last: date | None = None
    length: Delay | None = None
    times: int | None = None

    @property
    def has_several_ends(self) -> bool:
        """Whether more than one of `last`, `length` and `times` says when the series ends."""
        ends = [self.last, self.length, self.times]
        return ends.count(None) < len(ends) - 1


def bounds_of(sentence: Sentence, today: date) -> Bounds:
    """Return when the series of a sentence starts and ends.

    sentence: the words of the series, such as "every day until Friday".
    today: the day at which the text is read.

    Raises AmbiguousTime for two ends, and for two periods such as "in May and June".
    """
    bounds = Bounds()
    periods = {
        part.lexeme.value
        for part in sentence.of("span", "month")
        if part.role not in (START, END, BETWEEN)
    }
    if len(periods) > 1:
        raise AmbiguousTime(sentence.phrase)
    for part in sentence.of("span"):
        if not part.role:
            _bound_by_span(bounds, part, today)
    months = sentence.of("month")
    for part in months:
        _bound_by_month(bounds, part, today)
    if _are_months_of_range(months):
        _bound_by_months(bounds, months[0].lexeme.value.month, months[1].lexeme.value.month, today)
    _bound_by_days(bounds, sentence, today)
    lengths = sentence.of("length")
    for part in lengths:
        bounds.length = part.lexeme.value
    for part in sentence.of("times"):
        bounds.times = part.lexeme.value
    if bounds.has_several_ends or len(lengths) > 1:
        raise AmbiguousTime(sentence.phrase)
    return bounds


def repeated_days(sentence: Sentence) -> list[Part]:
    """Return the day words that name the days of a series."""
    return [
        part for part in sentence.parts if part.is_day and not part.role and part.kind != "span"
    ]


def _bound_by_span(bounds: Bounds, part: Part, today: date) -> None:
    """Limit a series to a week, month or year: "every day this week".

    bounds: the bounds to set.
    part: the words of the span, such as "this week".
    today: the day at which the text is read.
    """
    bounds.first = max(first_day(part.lexeme.value, today), today)
    bounds.last = last_day(part.lexeme.value, today)


def _bound_by_month(bounds: Bounds, part: Part, today: date) -> None:
    """Limit a series by a month: "every Monday in June", "from June", "until June".

    bounds: the bounds to set.
    part: the words of the month, such as "in June".
    today: the day at which the text is read.
    """
    year, month = part.lexeme.value
    if year is None:
        has_passed = month < today.month
        year = today.year + 1 if has_passed else today.year

    # "until June" sets only the end, "from June" only the start.
    if part.role != END:
        bounds.first = max(date(year, month, 1), today)
    if part.role != START:
        bounds.last = date(year, month, monthrange(year, month)[1])


def _are_months_of_range(months: Sequence[Part]) -> bool:
    """Whether months are the ends of a range without a year: "from November to February"."""
    has_year = any(part.lexeme.value.year for part in months)
    is_range = len(months) == 2 and months[1].role == END and months[0].role != END
    return is_range and not has_year


def _bound_by_months(bounds: Bounds, first: int, last: int, today: date) -> None:
    """Limit a series to the months from `first` to `last`, of which the present may be one.

    November to February end in the year after they began.

    bounds: the bounds to set.
    today: the day at which the text is read.
    """
    for year in (today.year - 1, today.year, today.year + 1):
        last_year = year if first <= last else year + 1
        last_day_of_range = date(last_year, last, monthrange(last_year, last)[1])
        if last_day_of_range >= today:
            bounds.first = max(date(year, first, 1), today)
            bounds.last = last_day_of_range
            return


def _bound_by_days(bounds: Bounds, sentence: Sentence, today: date) -> None:
    """Limit a series by days: "from Monday until Friday".

    bounds: the bounds to set.
    sentence: the words of the series.
    today: the day at which the text is read.

    Raises AmbiguousTime for "until next month", whose first or last day may be meant.
    """
    days = [part for part in sentence.parts if part.is_day]
    starts = [part for part in days if part.role in (START, BETWEEN)]
    ends = [part for part in days if part.role == END]
    if starts:
        bounds.first = _day(sentence, starts, today)
    if ends and all(part.kind == "span" for part in ends):
        raise AmbiguousTime(sentence.phrase)
    if ends:
        bounds.last = _last_day(sentence, ends, bounds.first, today)


def _last_day(sentence: Sentence, ends: Sequence[Part], first: date | None, today: date) -> date:
    """Return the last day of a series.

    The end of "from next Monday to Friday" is counted from the first day, so it is in the same
    week. In "from next Monday to next Friday" it names its own week, so it is counted from today.

    sentence: the words of the series, which an error names.
    ends: the words of the end.
    first: the first day of the series, if the text names it.
    today: the day on which the text is read.

    Raises AmbiguousTime if several days are possible, or only days before the first one.
    """
    if first is None or not any(_counts_from_today(part) for part in ends):
        return _day(sentence, ends, first or today)
    lexemes = [part.lexeme for part in ends]
    days = [day for day in possible_days(lexemes, today) if day >= first]
    if len(days) != 1:
        raise AmbiguousTime(sentence.phrase)
    return days[0]


def _counts_from_today(part: Part) -> bool:
    """Whether a day is said as seen from today: "next Friday", "tomorrow", "of next month"."""
    if part.kind in ("weekday", "weekend"):
        return part.lexeme.value.weeks is not None
    return part.kind in ("day", "span")


def _day(sentence: Sentence, parts: Sequence[Part], today: date) -> date:
    """Return the single day that these parts name. Raises AmbiguousTime for several days."""
    days = possible_days([part.lexeme for part in parts], today)
    if len(days) != 1:
        raise AmbiguousTime(sentence.phrase)
    return days[0]
