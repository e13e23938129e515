"""Contract 000b, 12.6: every form of time frame against a clock that stands still; recent_activity
is exact.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from contract.note_tools import Tools
from contract.tables import tables
from memoranda.engine import open_session

TABLES = tables("note_time_frames")

pytestmark = pytest.mark.promise("000b-12.6")

# A Wednesday
NOW = datetime(2026, 3, 11, 15, 30, 20, tzinfo=UTC)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def ago(**span: int) -> datetime:
    return NOW - timedelta(**span)


FRAMES = {
    "45min": ago(minutes=45),
    "90 minutes": ago(minutes=90),
    "5m": ago(minutes=5),
    "2h": ago(hours=2),
    "2 hours": ago(hours=2),
    "1 HOUR": ago(hours=1),
    "7d": ago(days=7),
    "3 days ago": ago(days=3),
    "1 day": ago(days=1),
    "2w": ago(weeks=2),
    "2 Weeks": ago(weeks=2),
    "1mo": ago(days=30),
    "2 months": ago(days=60),
    "3y": ago(days=3 * 365),
    "10 years": ago(days=3650),
    "today": at("2026-03-11"),
    "Yesterday": at("2026-03-10"),
    "this week": at("2026-03-09"),
    "last week": at("2026-03-02"),
    "last month": at("2026-02-01"),
    "2025-11-01": at("2025-11-01"),
    "2025-11-01T10:00": at("2025-11-01T10:00"),
    "2025-11-01T10:00Z": at("2025-11-01T10:00"),
    "2025-11-01T10:00+08:00": at("2025-11-01T02:00"),
    "2小时": ago(hours=2),
    "3天": ago(days=3),
    "1周": ago(weeks=1),
    "今天": at("2026-03-11"),
    "昨天": at("2026-03-10"),
    "本周": at("2026-03-09"),
    "上周": at("2026-03-02"),
    "this month": at("2026-03-01"),
    "本月": at("2026-03-01"),
    "上个月": at("2026-02-01"),
    "last 3 days": ago(days=3),
    "the past week": ago(weeks=1),
    "a week": ago(weeks=1),
    "an hour ago": ago(hours=1),
    "最近3天": ago(days=3),
    "一周": ago(weeks=1),
    "两个月": ago(days=60),
}
NO_FRAMES = TABLES["no_frames"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tools]:
    """Tools whose clock stands at NOW, in UTC."""
    home = tmp_path_factory.mktemp("clocked") / "home"
    home.mkdir()
    settings = home / "config.yaml"
    settings.write_text("timezone: UTC\n")
    with open_session(home, clock=lambda: NOW, watch=False) as memory:
        yield Tools(memory)


def touch(file: Path, moment: datetime, nanoseconds: int = 0) -> None:
    stamp = int(moment.timestamp()) * 10**9 + nanoseconds
    os.utime(file, ns=(stamp, stamp))


@pytest.mark.parametrize(("frame", "since"), FRAMES.items())
def test_every_form_of_time_frame_begins_at_its_moment_exactly(
    emptied: Tools, frame: str, since: datetime
) -> None:
    before = since - timedelta(seconds=1)
    late = NOW + timedelta(days=9)
    for name, moment in (("in", since), ("out", before), ("late", late)):
        touch(emptied.put(f"{name}.md"), moment)
    data = emptied("recent_activity", timeframe=frame)
    assert data["since"] == since.strftime("%Y-%m-%dT%H:%M:%SZ")
    file_paths = [result["file_path"] for result in data["results"]]
    assert file_paths == ["late.md", "in.md"]
    hits = emptied.found("", after_date=frame)
    assert hits == {"late.md", "in.md"}


@pytest.mark.parametrize("frame", NO_FRAMES)
def test_anything_else_is_refused_and_never_guessed(emptied: Tools, frame: str) -> None:
    emptied.put("a.md")
    for tool, arguments in (
        ("recent_activity", {"timeframe": frame}),
        ("search_notes", {"query": "x", "after_date": frame}),
        ("build_context", {"url": "a", "timeframe": frame}),
    ):
        assert emptied.refused(tool, "timeframe", **arguments) == (
            f'Time frame "{frame}" is not understood. Use e.g. 2h, 7d, 3 weeks, yesterday or 2026-11-01.'
        )


def test_recent_activity_of_two_hours_is_exactly_what_was_touched_within_7200_seconds(
    emptied: Tools,
) -> None:
    ages = [0, 1, 59, 3600, 7199, 7200, 7201, 7260, 86400]
    for age in ages:
        touch(emptied.put(f"{age:06}.md"), NOW - timedelta(seconds=age))
    touch(emptied.put("just out.md"), NOW - timedelta(seconds=7201), nanoseconds=999_999_999)
    data = emptied("recent_activity", timeframe="2h", page_size=100)

    assert [result["file_path"] for result in data["results"]] == [
        f"{age:06}.md" for age in ages if age <= 7200
    ]
    assert data["total"] == 6


def test_local_days_are_those_of_the_configured_zone(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("timezone: Asia/Shanghai\n")
    with open_session(tmp_path, clock=lambda: NOW, watch=False) as memory:
        # It is 23:30 there
        tools = Tools(memory)
        since = tools("recent_activity", timeframe="today")["since"]
        assert since == "2026-03-10T16:00:00Z"
        since = tools("recent_activity", timeframe="本周")["since"]
        assert since == "2026-03-08T16:00:00Z"
        since = tools("recent_activity", timeframe="2025-11-01")["since"]
        assert since == "2025-10-31T16:00:00Z"


def test_recent_notes_are_newest_first_over_all_projects_and_equal_times_by_permalink(
    emptied: Tools,
) -> None:
    for name, age, project in (
        ("c", 10, "notes"),
        ("a", 20, "memories"),
        ("b", 20, "notes"),
        ("d", 5, "memories"),
    ):
        touch(emptied.put(f"{name}.md", project=project), NOW - timedelta(seconds=age))
    rows = emptied("recent_activity", timeframe="1h")["results"]
    assert [row["permalink"] for row in rows] == [
        "memories/d",
        "notes/c",
        "memories/a",
        "notes/b",
    ]
    assert [
        result["file_path"] for result in emptied("recent_activity", project="Memories")["results"]
    ] == ["d.md", "a.md"]
