"""Time frames against an injected clock: every form, and what is refused (contract 000b, 5)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from commonplace.clock import since
from commonplace.errors import TimeframeError

NOW = datetime(2026, 5, 7, 10, 30, 15, 500, tzinfo=UTC)  # a Thursday
EAST = timezone(timedelta(hours=8))


@pytest.mark.promise("000b-12.6")
@pytest.mark.parametrize(
    ("text", "back"),
    [
        ("90min", timedelta(minutes=90)),
        ("90 minutes", timedelta(minutes=90)),
        ("1 minute", timedelta(minutes=1)),
        ("5m", timedelta(minutes=5)),
        ("2h", timedelta(hours=2)),
        ("2 hours", timedelta(hours=2)),
        ("1 HOUR ago", timedelta(hours=1)),
        ("7d", timedelta(days=7)),
        ("3 days ago", timedelta(days=3)),
        ("1day", timedelta(days=1)),
        ("2w", timedelta(days=14)),
        ("2 weeks", timedelta(days=14)),
        ("1 week", timedelta(days=7)),
        ("3mo", timedelta(days=90)),
        ("2 months", timedelta(days=60)),
        ("1 month", timedelta(days=30)),
        ("2y", timedelta(days=730)),
        ("3 years ago", timedelta(days=1095)),
        (" 2 H ", timedelta(hours=2)),
        ("2小时", timedelta(hours=2)),
        ("3天", timedelta(days=3)),
        ("1周", timedelta(days=7)),
        ("3 天", timedelta(days=3)),
    ],
)
def test_an_amount_counts_back_from_now_exactly(text: str, back: timedelta) -> None:
    assert since(text, NOW) == NOW - back


@pytest.mark.parametrize(
    ("text", "local"),
    [
        ("today", (2026, 5, 7)),
        ("yesterday", (2026, 5, 6)),
        ("this week", (2026, 5, 4)),
        ("Last Week", (2026, 4, 27)),
        ("last month", (2026, 4, 1)),
        ("lastweek", (2026, 4, 27)),
        ("今天", (2026, 5, 7)),
        ("昨天", (2026, 5, 6)),
        ("本周", (2026, 5, 4)),
        ("上周", (2026, 4, 27)),
        ("2025-11-01", (2025, 11, 1)),
        (" 2025-11-01 ", (2025, 11, 1)),
        ("2025-11-01T10:00", (2025, 11, 1, 10)),
        ("2025-11-01 10:00:05", (2025, 11, 1, 10, 0, 5)),
        ("2025-11-01t10:00", (2025, 11, 1, 10)),
    ],
)
@pytest.mark.promise("000b-12.6")
@pytest.mark.parametrize("zone", [UTC, EAST])
def test_days_begin_at_local_midnight(text: str, local: tuple[int, ...], zone: timezone) -> None:
    assert since(text, NOW, zone) == datetime(*local, tzinfo=zone)
    assert since(text, NOW, zone).tzinfo is UTC


def test_a_written_offset_counts() -> None:
    assert since("2025-11-01T10:00Z", NOW, EAST) == datetime(2025, 11, 1, 10, tzinfo=UTC)
    assert since("2025-11-01T10:00:00+02:00", NOW, EAST) == datetime(2025, 11, 1, 8, tzinfo=UTC)
    assert since("2025-11-01 10:00 -0330", NOW) == datetime(2025, 11, 1, 13, 30, tzinfo=UTC)


def test_the_day_is_the_one_of_the_zone() -> None:
    late = datetime(2026, 5, 7, 20, tzinfo=UTC)  # already the 8th in the east
    assert since("today", late, EAST) == datetime(2026, 5, 8, tzinfo=EAST)


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


@pytest.mark.promise("000b-12.6")
@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "0h",
        "0 days",
        "-2h",
        "+2h",
        "1.5h",
        "2",
        "h",
        "ago",
        "2ago",
        "2 fortnights",
        "2s",
        "soon",
        "tomorrow",
        "next week",
        "this month",
        "last",
        "2h 30m",
        "2026-13-01",
        "2026-02-30",
        "2026-1-1",
        "2026-11-01T25:00",
        "2026-11-01T10",
        "2026-11-01X10:00",
        "20261101",
        "2026-11-01T10:00+9",
        "2026-11-01T10:00 UTC",
        "两天",
        "２h",
        "٣d",
        "今年",
        "9" * 5000 + "h",
        "7d; drop",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(TimeframeError) as caught:
        since(text, NOW)
    assert caught.value.code == "timeframe"


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(TimeframeError):
        since(7, NOW)  # type: ignore[arg-type]
