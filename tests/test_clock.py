"""Time frames against an injected clock: every form, and what is refused (contract 000b, 5)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from memoranda.clock import duration, since
from memoranda.errors import InvalidInput

# A Thursday
NOW = datetime(2026, 5, 7, 10, 30, 15, 500, tzinfo=UTC)
EAST = timezone(timedelta(hours=8))


@pytest.mark.promise("000b-12.6")
@pytest.mark.parametrize(
    ("text", "local"),
    [
        ("today", (2026, 5, 8)),
        ("Last Week", (2026, 4, 27)),
        ("lastweek", (2026, 4, 27)),
        ("last month", (2026, 4, 1)),
        ("上周", (2026, 4, 27)),
        (" 2025-11-01 ", (2025, 11, 1)),
        ("2025-11-01 10:00:05", (2025, 11, 1, 10, 0, 5)),
        ("2025-11-01t10:00", (2025, 11, 1, 10)),
    ],
)
def test_days_begin_at_midnight_of_the_zone(text: str, local: tuple[int, ...]) -> None:
    # Already the 8th in the east
    late = NOW.replace(hour=20)
    assert since(text, late, EAST) == datetime(*local, tzinfo=EAST)
    assert since(text, late, EAST).tzinfo is UTC


def test_a_written_offset_counts() -> None:
    assert since("2025-11-01T10:00Z", NOW, EAST) == datetime(2025, 11, 1, 10, tzinfo=UTC)
    assert since("2025-11-01 10:00 -0330", NOW) == datetime(2025, 11, 1, 13, 30, tzinfo=UTC)


def test_midnight_follows_the_clock_change() -> None:
    zone = ZoneInfo("Europe/Berlin")
    after = datetime(2026, 3, 29, 12, tzinfo=UTC)
    assert since("today", after, zone) == datetime(2026, 3, 28, 23, tzinfo=UTC)
    assert since("this week", after, zone) == datetime(2026, 3, 22, 23, tzinfo=UTC)


def test_without_a_zone_the_systems_counts() -> None:
    assert since("2025-11-01", NOW) == datetime(2025, 11, 1).astimezone(UTC)


def test_there_is_no_upper_limit() -> None:
    assert since("400d", NOW) == NOW - timedelta(days=400)
    assert since("9999999999y", NOW) == datetime.min.replace(tzinfo=UTC)
    assert since("9" * 3000 + "h", NOW) == datetime.min.replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("168h0m0s", 7 * 86_400),
        ("1h30m", 5_400),
        ("1.5h", 5_400),
        ("500ms", 0.5),
        ("1m250ms", 60.25),
        ("0.5d", 43_200),
    ],
)
def test_durations_are_read_in_the_forms_that_old_configurations_have(
    text: str, seconds: float
) -> None:
    assert duration(text).total_seconds() == seconds


@pytest.mark.parametrize("text", ["60", "1 h", "-1h", "1.h", ".5h", "1h30", "5us", "9" * 20 + "d"])
def test_what_is_no_duration_is_refused_and_quoted(text: str) -> None:
    with pytest.raises(InvalidInput, match=f'"{text}"'):
        duration(text)
