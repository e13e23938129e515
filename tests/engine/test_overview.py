"""memory.md: what an agent reads at start (contract 001, 10)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from memoranda.engine import open_session
from memoranda.engine.overview import MOST_LINES, WEEKS, Overview, figures
from memoranda.engine.upkeep import Upkeep
from memoranda.note.markdown import Record
from memoranda.note.model import Draft

MOMENT = datetime(2026, 5, 7, 10, 0, tzinfo=UTC)


@pytest.fixture
def memory(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.yaml").write_text("timezone: Asia/Shanghai\nindex:\n  per_category: 2\n")
    with open_session(home, clock=lambda: MOMENT) as opened:
        yield opened


def record(number, content, category="preferences", **more):
    moment = MOMENT + timedelta(minutes=number)
    return Record(
        f"{number:08}-e29b-41d4-a716-446655440000", content, category, moment, moment, **more
    )


def test_an_empty_home_has_an_overview_that_says_so(memory):
    assert Overview(memory).text() == (
        "# Memory Index\n\n0 memories, 0 in the inbox. Read one: `memory read ID`. Search: `memory search WORDS`.\n"
    )


@pytest.mark.promise("001-17.13")
def test_each_category_shows_the_most_read_then_the_newest_and_how_to_get_the_rest(memory):
    Upkeep(memory).put(
        [
            record(
                1, "# old but often read\nsecond line", access_count=5, tags=("ui", "dark mode")
            ),
            record(2, "older"),
            record(3, "newest " + "x" * 90),
            record(4, "to be sorted", "inbox"),
            record(5, "of an agent", scope="agent:x"),
        ],
        "import",
    )
    assert Overview(memory).text().split("\n") == [
        "# Memory Index",
        "",
        "4 memories, 1 in the inbox. Read one: `memory read ID`. Search: `memory search WORDS`.",
        "",
        "## preferences (3)",
        "",
        "- 00000001 old but often read #ui #dark mode",
        f"- 00000003 newest {'x' * 73}...",
        "- … 1 more: `memory list --category preferences`",
        "",
        "## inbox (1)",
        "",
        "- 00000004 to be sorted",
        "",
    ]


def test_a_read_counts_in_the_order_before_it_is_folded(memory):
    Upkeep(memory).put([record(1, "one"), record(2, "two"), record(3, "three")], "import")
    memory.read("00000001-e29b-41d4-a716-446655440000")
    assert Overview(memory).text().split("\n")[6].startswith("- 00000001")


def test_reminders_stand_by_their_time_and_fired_ones_are_left_out(memory):
    Upkeep(memory).put(
        [
            record(1, "call Bob", "reminders", further={"due_at": "2026-05-08T07:00:00Z"}),
            record(
                2,
                "pay rent",
                "reminders",
                further={"due_at": "2026-05-07T11:00:00Z", "fired_at": "2026-05-07T11:00:00Z"},
            ),
            record(3, "some day", "reminders"),
            record(
                4,
                "daily",
                "reminders",
                further={
                    "due_at": "2026-05-07T23:00:00Z",
                    "repeat": "FREQ=DAILY",
                    "fired_at": "2026-05-06T23:00:00Z",
                },
            ),
        ],
        "import",
    )
    assert Overview(memory).text().split("\n")[4:-1] == [
        "## reminders (4)",
        "",
        "- 00000004 2026-05-08 07:00 daily",
        "- 00000001 2026-05-08 15:00 call Bob",
        "- … 1 more: `memory remind --list`",
    ]


def test_the_file_is_written_when_it_is_not_as_it_should_be_and_only_then(memory):
    overview = Overview(memory.as_caller("x"))
    assert overview.refresh()
    path = memory.home / "memory.md"
    before = path.stat()
    assert not overview.refresh()
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert before.st_mode & 0o777 == 0o600
    memory.write(Draft("new", project="categories"))
    assert overview.refresh()
    assert "1 memories, 1 in the inbox" in path.read_text()


def test_the_overview_is_bounded_whatever_the_configuration(tmp_path):
    home = tmp_path / "big"
    home.mkdir()
    (home / "config.yaml").write_text("index:\n  per_category: 1000\n")
    with open_session(home, clock=lambda: MOMENT) as memory:
        Upkeep(memory).put([record(number, f"memory {number}") for number in range(250)], "import")
        text = Overview(memory).text()

    assert len(text.splitlines()) == MOST_LINES
    assert text.endswith("\n\n… more: `memory list --limit 0`\n")


def test_the_notes_of_each_week_leave_out_those_of_before_and_of_the_future(memory):
    minutes = [-70 * 7 * 24 * 60, -7 * 24 * 60, 0, 30 * 24 * 60]
    moments = [MOMENT + timedelta(minutes=number) for number in minutes]
    records = [
        Record(
            f"{number:08}-e29b-41d4-a716-446655440000", f"fact {number}", "preferences", when, when
        )
        for number, when in enumerate(moments)
    ]
    Upkeep(memory).put(records, "import")
    weeks = figures(memory).weeks

    assert weeks[-1][0].isoformat() == "2026-05-04"
    assert len(weeks) == WEEKS
    assert [new_notes for _, new_notes in weeks] == [0] * (WEEKS - 2) + [1, 1]
