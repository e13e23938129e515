"""Days of the Chinese calendar on ours, by the tables of borax."""

from __future__ import annotations

from datetime import date

from memoranda.note.timephrase.values import LunarDate


def next_lunar_date(lunar: LunarDate, today: date) -> date:
    """Return the next date of a lunar day, today included.

    If a year is named, it is the date in that year.

    Raises ValueError for a day that no year has, or without borax.
    """
    try:
        from borax.calendars.lunardate import LCalendars
        from borax.calendars.lunardate import LunarDate as Converted
    except ImportError:
        raise ValueError(lunar) from None
    # A lunar year ends in the next solar one
    years = [lunar.year] if lunar.year else range(today.year - 1, today.year + 3)
    for year in years:
        # Only some years have a leap month, and it is a copy of another month each time.
        if lunar.is_leap and LCalendars.leap_month(year) != lunar.month:
            continue
        # Day 0 stands for the last day of the month.
        day = lunar.day or LCalendars.ndays(year, lunar.month, int(lunar.is_leap))
        try:
            solar: date = Converted(year, lunar.month, day, int(lunar.is_leap)).to_solar_date()
        except ValueError:
            # The month has only 29 days in this year.
            continue
        if lunar.year or solar >= today:
            return solar
    raise ValueError(lunar)
