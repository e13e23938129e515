"""Firing reminders: once each, in an order no crash can hurt, and the pending lists (contract 001,
8).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from editing import replace_in
from jobs.homes import FOUR, MOMENT, ONE, THREE, TWO, Home
from memoranda.clock import stamp
from memoranda.engine.overview import Overview, Pending
from memoranda.errors import InvalidInput, StorageError
from memoranda.jobs import reminders

pytestmark = pytest.mark.promise("001-17.9")

DAILY = "FREQ=DAILY;BYHOUR=9;BYMINUTE=0"
HEAD = "# Pending Reminders\n\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    home = Home(tmp_path / "home", "timezone: UTC\n")
    monkeypatch.setattr(reminders, "show", lambda settings, texts: pushed.append(list(texts)))
    pushed: list[list[str]] = []
    home.pushed = pushed  # type: ignore[attr-defined]
    with home.memory:
        yield home


def remind(home: Home, identity: str, text: str, due: datetime = MOMENT, **more: Any) -> str:
    further = {"due_at": stamp(due), **more.pop("further", {})}
    return home.put(identity, text, "reminders", further=further, **more)


def fire(home: Home) -> list[str]:
    return [info.id for info in reminders.notify(home.memory).notified]


def pending(home: Home, name: str = "pending.md") -> str:
    return (home.memory.home / name).read_text(encoding="utf-8")


def header(home: Home, identity: str) -> dict[str, Any]:
    return home.info(identity).header


def test_reminder_fires_at_its_time_and_not_a_moment_before(home: Home) -> None:
    remind(home, ONE, "call Bob")
    home.later(microseconds=-1)
    assert fire(home) == []
    home.later(microseconds=1)
    assert fire(home) == [ONE]
    fired_at = header(home, ONE)["fired_at"]
    assert fired_at == "2026-05-06T10:00:00Z"


def test_reminder_that_fired_changes_nothing_more(home: Home) -> None:
    remind(home, ONE, "call Bob")
    fire(home)
    before = home.everything()
    assert fire(home) == []
    assert home.everything() == before


def test_reminder_fires_once_however_late_it_is_looked_for(home: Home) -> None:
    remind(home, ONE, "call Bob")
    fire(home)
    home.later(days=400)
    assert fire(home) == []
    assert home.pushed == [["call Bob"]]  # type: ignore[attr-defined]


def test_reminder_whose_firing_is_undone_fires_again(home: Home) -> None:
    remind(home, ONE, "call Bob")
    fire(home)
    home.memory.undo()
    assert fire(home) == [ONE]


def test_a_reminder_put_off_leaves_the_list_and_fires_again_and_one_that_repeats_is_left_alone(
    home: Home,
) -> None:
    remind(home, ONE, "call Bob")
    remind(home, TWO, "water", further={"repeat": DAILY})
    assert fire(home) == [ONE, TWO]
    reminders.snooze(home.memory, ONE, "in 2 hours")
    fire(home)
    assert "call Bob" not in pending(home)
    home.later(hours=2)
    assert fire(home) == [ONE]
    reminders.acknowledge(home.memory, ONE)
    reminders.snooze(home.memory, ONE, "2026-05-08 09:00")
    assert header(home, ONE)["due_at"] == "2026-05-08T09:00:00Z"
    assert "acked_at" not in header(home, ONE)
    home.memory.undo()
    assert "acked_at" in header(home, ONE)
    with pytest.raises(InvalidInput, match="not a reminder"):
        reminders.snooze(home.memory, home.write("no reminder"), "tomorrow")


@pytest.fixture
def watering(home: Home) -> Home:
    """A reminder of every second day that fired on May 6; the one of May 8 is put off by a day."""
    due = datetime(2026, 5, 6, 9, tzinfo=UTC)
    further = {"repeat": "FREQ=DAILY;INTERVAL=2"}
    remind(home, ONE, "water", due, further=further)
    assert fire(home) == [ONE]
    reminders.snooze(home.memory, ONE, "2026-05-09 12:00")
    fire(home)
    return home


def times_fired(home: Home) -> list[str]:
    """The times for which the reminder fires in the next six days."""
    times = []
    for _ in range(12):
        home.later(hours=12)
        for _ in fire(home):
            time = header(home, ONE)["fired_for"]
            times.append(time)
    return times


def test_occurrence_that_is_put_off_is_pending_no_more(watering: Home) -> None:
    assert "water" not in pending(watering)


def test_occurrences_beside_one_that_is_put_off_come_when_they_would(watering: Home) -> None:
    assert times_fired(watering) == [
        "2026-05-08T09:00:00Z",
        "2026-05-09T12:00:00Z",
        "2026-05-10T09:00:00Z",
        "2026-05-12T09:00:00Z",
    ]


def test_occurrence_still_to_come_fires_when_it_was_put_off_to_at_last(watering: Home) -> None:
    times_fired(watering)
    reminders.acknowledge(watering.memory, ONE)
    reminders.snooze(watering.memory, ONE, "2026-05-14 18:00")
    watering.later(days=2)
    assert fire(watering) == []
    # Put off once more
    reminders.snooze(watering.memory, ONE, "2026-05-14 19:00")
    watering.later(hours=10)
    assert fire(watering) == [ONE]
    text = pending(watering)
    assert text == f"{HEAD}1. water\n   due 2026-05-14 19:00, id 11111111\n\n"


def test_occurrence_that_is_put_off_changes_neither_the_rule_nor_the_next_one(
    watering: Home,
) -> None:
    times_fired(watering)
    reminders.acknowledge(watering.memory, ONE)
    reminders.snooze(watering.memory, ONE, "2026-05-14 18:00")
    watering.later(days=2)
    reminders.snooze(watering.memory, ONE, "2026-05-14 19:00")
    watering.later(hours=10)
    fire(watering)
    fields = header(watering, ONE)
    assert fields["due_at"] == "2026-05-16T09:00:00Z"
    assert fields["repeat"] == "FREQ=DAILY;INTERVAL=2"


def test_an_occurrence_put_off_and_then_done_does_not_fire_and_a_rule_nobody_can_read_fires_once_more(
    home: Home,
) -> None:
    remind(home, ONE, "water", further={"repeat": DAILY})
    remind(home, TWO, "moon", further={"repeat": "every blue moon"})
    fire(home)
    reminders.snooze(home.memory, ONE, "in 2 hours")
    reminders.acknowledge(home.memory, ONE)
    reminders.snooze(home.memory, TWO, "in 2 hours")
    home.later(hours=3)
    assert fire(home) == [TWO]
    home.later(days=1)
    assert fire(home) == [ONE]


def test_a_repeating_reminder_that_is_done_before_a_round_found_it_due_comes_at_its_next_time(
    home: Home,
) -> None:
    remind(home, ONE, "water", datetime(2026, 5, 6, 9, tzinfo=UTC), further={"repeat": DAILY})
    reminders.acknowledge(home.memory, ONE)
    assert fire(home) == []
    assert header(home, ONE)["due_at"] == "2026-05-07T09:00:00Z"
    home.later(days=1)
    assert fire(home) == [ONE]


def test_firing_changes_no_other_byte_of_the_file_and_is_no_change_of_the_content(
    home: Home,
) -> None:
    remind(home, ONE, "call\r\nBob", further={"colour": "red"})
    before = home.file(ONE).read_bytes()
    home.later(hours=1)
    fire(home)
    text = home.file(ONE).read_bytes()

    assert text.replace(b"fired_at: 2026-05-06T11:00:00Z\n", b"") == before


def test_a_repeating_reminder_goes_on_to_its_next_time_and_what_was_missed_is_not_made_up(
    home: Home,
) -> None:
    remind(
        home,
        ONE,
        "water the plants",
        datetime(2026, 5, 6, 9, tzinfo=UTC),
        further={"repeat": DAILY},
    )
    assert fire(home) == [ONE]
    assert header(home, ONE)["due_at"] == "2026-05-07T09:00:00Z"
    assert fire(home) == []
    home.later(days=5)
    assert fire(home) == [ONE]
    assert header(home, ONE)["due_at"] == "2026-05-12T09:00:00Z"
    assert fire(home) == []
    assert pending(home) == f"{HEAD}1. water the plants\n   due 2026-05-07 09:00, id 11111111\n\n"


def test_every_other_week_stays_every_other_week_though_one_was_missed(home: Home) -> None:
    rule = "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO;BYHOUR=9;BYMINUTE=0"
    remind(home, ONE, "bins", datetime(2026, 5, 4, 9, tzinfo=UTC), further={"repeat": rule})
    home.now = datetime(2026, 5, 26, 12, tzinfo=UTC)

    assert fire(home) == [ONE]
    due_at = header(home, ONE)["due_at"]
    assert due_at == "2026-06-01T09:00:00Z"


def test_the_rule_is_in_local_time_also_over_the_change_of_clocks(tmp_path: Path) -> None:
    home = Home(tmp_path, "timezone: Europe/Berlin\nnotification:\n  enabled: false\n")
    with home.memory:
        home.now = datetime(2026, 3, 28, 8, 0, tzinfo=UTC)
        remind(home, ONE, "coffee", home.now, further={"repeat": DAILY})
        assert fire(home) == [ONE]
        due_at = header(home, ONE)["due_at"]
        assert due_at == "2026-03-29T07:00:00Z"
        assert "due 2026-03-28 09:00" in pending(home)


def test_undated_unreadable_locked_and_other_memories_never_fire(home: Home) -> None:
    home.put(ONE, "buy milk", "reminders")
    remind(home, TWO, "locked", further={"locked": True})
    home.put(THREE, "no reminder", further={"due_at": stamp(MOMENT)})
    home.put(FOUR, "odd", "reminders", further={"due_at": "whenever"})
    home.later(days=1)
    before = {memory_id: home.file(memory_id).read_bytes() for memory_id in (ONE, TWO, THREE, FOUR)}

    assert fire(home) == []
    assert {memory_id: home.file(memory_id).read_bytes() for memory_id in before} == before
    assert pending(home) == f"{HEAD}None.\n"


def test_a_time_written_by_hand_counts_in_any_form_and_without_any_other_key(home: Home) -> None:
    place = home.memory.home / "categories" / "reminders" / "tea.md"
    place.parent.mkdir(parents=True)
    place.write_text(
        "---\ndue_at: 2026-05-06T11:30:00+02:00\n---\nput the kettle on\n", encoding="utf-8"
    )
    (ref,) = fire(home)

    fired_at = header(home, ref)["fired_at"]
    assert fired_at == stamp(MOMENT)
    text = place.read_text(encoding="utf-8")
    assert text.endswith("---\nput the kettle on\n")
    row = "1. put the kettle on (by a file, unconfirmed)"
    assert pending(home) == f"{HEAD}{row}\n   due 2026-05-06 09:30, id {ref[:8]}\n\n"


def test_several_go_in_the_order_of_their_times_and_are_one_notification(home: Home) -> None:
    remind(home, ONE, "second")
    remind(home, TWO, "first", datetime(2026, 5, 6, 9, tzinfo=UTC))
    assert fire(home) == [TWO, ONE]
    assert home.pushed == [["first", "second"]]  # type: ignore[attr-defined]
    assert pending(home) == (
        f"{HEAD}1. first\n   due 2026-05-06 09:00, id 22222222\n\n2. second\n   due 2026-05-06 10:00, id 11111111\n\n"
    )


def test_the_daemon_fires_and_logs_when_the_desktop_cannot_be_reached(
    home: Home, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(
        reminders, "show", lambda settings, texts: "notify: notify-send failed: no bus"
    )
    remind(home, ONE, "call Bob")
    notify = dict(home.daemon.steps())["notify"]
    assert notify() == 1
    assert caplog.messages == ["notify: notify-send failed: no bus"]
    assert notify() == 0


def test_what_could_not_be_listed_does_not_fire_but_the_next_time(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    remind(home, ONE, "call Bob")

    def full(*_: Any) -> bool:
        raise StorageError("pending.md", "the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr("memoranda.engine.overview.put_derived", full)
        with pytest.raises(StorageError):
            reminders.notify(home.memory)
    assert "fired_at" not in header(home, ONE)
    assert fire(home) == [ONE]


def test_a_reminder_edited_while_it_is_about_to_fire_fires_the_next_time(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    remind(home, ONE, "call Bob")
    refresh = Pending.refresh

    def edits_meanwhile(self: Pending, *args: Any, **more: Any) -> bool:
        monkeypatch.setattr(Pending, "refresh", refresh)
        written = refresh(self, *args, **more)
        replace_in(home.file(ONE), "Bob", "Alice")
        return written

    monkeypatch.setattr(Pending, "refresh", edits_meanwhile)
    outcome = reminders.notify(home.memory)
    assert (outcome.notified, outcome.pending, home.pushed) == ((), 0, [])  # type: ignore[attr-defined]
    assert pending(home) == f"{HEAD}None.\n"
    assert fire(home) == [ONE]
    # Nobody knows who wrote what another program saved.
    assert "1. call Alice (by a file, unconfirmed)\n" in pending(home)


def test_a_reminder_stays_listed_for_the_days_configured_after_it_fired(home: Home) -> None:
    first_of_april = datetime(2026, 4, 1, tzinfo=UTC)
    remind(home, ONE, "call Bob", first_of_april)
    fire(home)
    home.later(days=7)
    reminders.notify(home.memory)
    assert "1. call Bob\n   due 2026-04-01 00:00" in pending(home)
    home.later(seconds=1)
    reminders.notify(home.memory)
    assert pending(home) == f"{HEAD}None.\n"


def test_an_acknowledged_reminder_leaves_the_list_and_a_repeating_one_comes_back(
    home: Home,
) -> None:
    remind(home, ONE, "water", further={"repeat": DAILY})
    fire(home)
    reminders.acknowledge(home.memory, ONE)
    assert Overview(home.memory).keep_up()
    assert pending(home) == f"{HEAD}None.\n"
    home.later(days=1)
    assert fire(home) == [ONE]
    assert "1. water\n" in pending(home)
    assert "acked_at" not in header(home, ONE)


@pytest.mark.parametrize("change", ["delete", "edit", "by hand"])
def test_the_list_follows_whatever_happens_to_the_memory(home: Home, change: str) -> None:
    remind(home, ONE, "call Bob")
    fire(home)
    place = home.file(ONE)
    if change == "delete":
        home.memory.delete(ONE)
    elif change == "edit":
        home.upkeep.rewrite(home.info(ONE), "call\nAlice", {}, "edit")
    else:
        replace_in(place, "fired_at:", "was:")
    Overview(home.memory).refresh()
    if change == "edit":
        rest = "1. call Alice (by an agent, unconfirmed)\n   due 2026-05-06 10:00, id 11111111\n\n"
    else:
        rest = "None.\n"
    assert pending(home) == HEAD + rest


def test_keeping_up_makes_no_list_where_there_is_none(home: Home) -> None:
    remind(home, ONE, "call Bob")
    Overview(home.memory).refresh()
    assert not (home.memory.home / "pending.md").exists()


@pytest.mark.promise("001-17.8")
def test_a_scope_written_by_hand_leads_to_no_file_outside(home: Home) -> None:
    remind(home, ONE, "x", scope="agent:claude")
    place = home.file(ONE)
    replace_in(place, "agent:claude", "agent:../../x")
    before = set(home.memory.home.parent.rglob("*.md"))
    fire(home)

    names = {path.name for path in set(home.memory.home.parent.rglob("*.md")) - before}
    assert names <= {"pending.md"}


def test_a_file_of_the_user_that_has_such_a_name_stays(home: Home) -> None:
    mine = home.memory.home / "pending.things.md"
    mine.write_text("my list\n")
    reminders.notify(home.memory)
    assert mine.read_text() == "my list\n"
