"""Reminders a deep dream makes of texts (contract 001, 6; acceptance tests 4 and 5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import pytest

from jobs.homes import MOMENT, ONE, TWO, Home, further
from memoranda.engine import open_session
from memoranda.engine.contents import content_of
from memoranda.errors import NotFound
from memoranda.index.rows import NoteInfo
from memoranda.jobs import dream, lifecycle
from memoranda.jobs.reminders import notify, snooze
from memoranda.note import timephrase


def reminders(home: Home) -> list[NoteInfo]:
    return [memory for memory in home.upkeep.every() if memory.category == "reminders"]


def deep(home: Home) -> dict[str, Any]:
    """The report of a deep dream in which nothing failed."""
    dreamt = dream.run(home.memory, 3)
    assert [outcome.failure for outcome in dreamt.outcomes if outcome.failure] == []
    return dreamt.report["report"]


def test_a_time_in_a_text_becomes_a_reminder_linked_with_it(home: Home) -> None:
    source = home.write("Pay the tax tomorrow at 3pm", "project", tags=["money"], scope="agent:x")
    home.later(hours=1)
    (row,) = deep(home)["reminders"]
    (reminder,) = reminders(home)
    record = home.memory.read(reminder, count=False)
    assert record.id == row["id"] == str(uuid5(UUID(source), "tomorrow at 3pm"))
    assert (record.content, record.category, record.phase) == (
        "Pay the tax tomorrow at 3pm",
        "reminders",
        "organized",
    )
    assert (record.tags, record.source, record.scope) == (
        ("money", "auto-reminder"),
        "dream-engine",
        "agent:x",
    )
    assert (record.created, record.expires) == (home.now, None)
    assert further(record) == {
        "due_at": "2026-05-07T15:00:00Z",
        "due_text": "tomorrow at 3pm",
        "reminder_of": source,
    }
    assert (record.links, home.info(source).links) == ((source,), (record.id,))
    assert row == {
        "id": record.id,
        "source": source,
        "due_at": "2026-05-07T15:00:00Z",
        "phrase": "tomorrow at 3pm",
    }


def test_a_text_of_the_inbox_too_is_read_with_its_own_time_of_writing_as_the_clock(
    home: Home,
) -> None:
    sources = home.write("call Bob in 3 days at 9:00"), home.write("明天下午3点交报告")
    home.later(hours=20)
    deep(home)

    assert {
        reminder.header["reminder_of"]: reminder.header["due_at"] for reminder in reminders(home)
    } == dict(zip(sources, ("2026-05-09T09:00:00Z", "2026-05-07T15:00:00Z"), strict=True))


def test_a_reminder_holds_the_paragraph_that_names_the_time(home: Home) -> None:
    text = "# Plans\n\nFirst things first.\n\nCall Bob\ntomorrow at 3pm\n \nAnd on 2026-06-01 at 9:00 the tax."
    home.write(text, "people")
    deep(home)
    assert sorted(content_of(home.memory, reminder) for reminder in reminders(home)) == [
        "And on 2026-06-01 at 9:00 the tax.",
        "Call Bob\ntomorrow at 3pm",
    ]


def test_one_time_said_twice_in_a_paragraph_is_one_reminder(home: Home) -> None:
    home.write("tomorrow at 3pm, I mean 2026-05-07 15:00", "people")
    home.write("review tomorrow at 4pm and again tomorrow at 4pm", "skills")

    assert len(deep(home)["reminders"]) == 2
    assert deep(home)["reminders"] == []
    for outcome in lifecycle.consolidate(home.memory):
        assert not outcome.actions


def test_what_is_ambiguous_over_or_vague_makes_none_and_the_report_tells_of_the_first_two(
    home: Home,
) -> None:
    a = home.write("meet at 3 tomorrow", "people")
    b = home.write("it rained yesterday", "knowledge")
    home.write("call soon", "lessons")
    home.write("the morning sun", "habits")
    c = home.write("call in one hour", "skills")
    home.later(hours=2)
    report = deep(home)

    assert reminders(home) == []
    assert sorted((skipped["id"], skipped["code"]) for skipped in report["skipped"]) == sorted(
        [(a, "ambiguous_time"), (b, "past_time"), (c, "past_time")]
    )


@pytest.mark.promise("001.18.7-reminders")
@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("The application must be in by 30 June 2026.", ["2026-06-30"]),
        ("Conference from 8 to 11 September.", ["2026-09-08"]),
        ("Holiday 20 July to 8 August.", ["2026-07-20"]),
        ("The report is due on Friday.", ["2026-05-08"]),
        ("周五之前交报告", ["2026-05-08"]),
        ("Don't forget: 9 June, dentist.", ["2026-06-09"]),
        ("6月9日看牙", ["2026-06-09"]),
        ("water the plants every Monday at 10:00", []),
        ("I run on Tuesdays.", []),
        ("Dinner on Friday", []),
        ("The trip on 9 June is cancelled, do not book.", []),
        ("我不打算6月9日去了。", []),
        ("Rent on the 15th", []),
        ("Room 15 is free at noon", []),
        ("She might come on 9 June.", []),
        ("We usually leave by 9 June", []),
        ("Built on 2 May 2019.", []),
        ("a week of 9 June, not the week of 16 June", []),
        ("Cancel Netflix by 9 June", ["2026-06-09"]),
        ("Please cancel the gym before 9 June", ["2026-06-09"]),
        ("- [ ] cancel the gym by 9 June", ["2026-06-09"]),
        ("取消健身房会员，6月9日之前", ["2026-06-09"]),
        ("Cancel the meeting on 9 June", []),
        ("Never cancel by 9 June", []),
        ("取消了6月9日之前的预约", []),
        ("Everything due by 9 June is cancelled", []),
        ("Mia was born on 6 May 2026", []),
        ("Bought on 6 May 2026, warranty until 6 May 2028", ["2028-05-06"]),
        ("The report is due on 6 May 2026", ["2026-05-06"]),
    ],
)
def test_only_an_explicit_date_ahead_or_a_deadline_makes_a_reminder(
    home: Home, text: str, due: list[str]
) -> None:
    home.write(text, "project")
    deep(home)
    assert [str(reminder.header["due_at"])[:10] for reminder in reminders(home)] == due


@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("Flight to Lisbon on 9 June, LX2080, at 7:15", "2026-06-09T07:15:00Z"),
        ("6月9日飞北京，CA932，早上9点的航班", "2026-06-09T09:00:00Z"),
        ("Concert on 9 June, doors 19:00, show 20:00", "2026-06-09T09:00:00Z"),
        ("Party on 9 June, from 10pm to 3am", "2026-06-09T22:00:00Z"),
        ("Trip on 9 June, Ben comes on 10 June at 7:00", "2026-06-09T09:00:00Z"),
        ("Send the form by 9 June, the office opens at 7:00", "2026-06-09T09:00:00Z"),
    ],
)
def test_an_early_hour_later_in_the_sentence_of_a_day_is_its_hour(
    home: Home, text: str, due: str
) -> None:
    home.write(text, "project")
    rows = deep(home)["reminders"]

    assert rows[0]["due_at"] == due
    assert ("all_day" in home.info(rows[0]["id"]).header) == (
        not any(word in text for word in ("飞", "Flight", "Party"))
    )
    questions = home.memory.review(kind="reminder")
    assert questions == []


CHANGED = "[its memory changed] Dentist on 9 June at 10:00"


@pytest.mark.parametrize(
    ("new", "pending_line", "why"),
    [
        ("Dentist on 16 June at 10:00", CHANGED, 'says now "Dentist on 16 June at 10:00"'),
        (
            "Dentist on 9 June at 10:00 is cancelled",
            CHANGED,
            'says now "Dentist on 9 June at 10:00 is cancelled"',
        ),
        (None, "[its memory is gone] Dentist on 9 June at 10:00", "is gone"),
    ],
)
def test_a_reminder_whose_memory_asks_for_it_no_more_says_so_and_the_owner_is_asked(
    home: Home, new: str | None, pending_line: str, why: str
) -> None:
    source = home.write("Dentist on 9 June at 10:00", "date")
    (row,) = deep(home)["reminders"]
    questions = home.memory.review(kind="reminder")
    assert questions == []
    if new is None:
        home.memory.delete(source)
    else:
        home.upkeep.rewrite(home.info(source), new, {}, "edit")
    deep(home)
    (item,) = home.memory.review(kind="reminder")
    question_text = (
        f'Keep the reminder "Dentist on 9 June at 10:00" on 2026-06-09 at 10:00? Its memory {why}'
    )
    assert item.text == question_text
    assert item.refs == (row["id"],)
    home.memory.decide(item, "n")
    questions = home.memory.review(kind="reminder")
    assert questions == []
    assert row["id"] not in {reminder["id"] for reminder in deep(home)["reminders"]} | home.ids()
    with pytest.raises(NotFound):
        home.memory.decide(item, "y")
    home.memory.undo()
    home.memory.decide(item, "y")
    questions = home.memory.review(kind="reminder")
    assert questions == []
    home.now = home.now.replace(month=6, day=9, hour=9)
    ids = [reminder.id for reminder in notify(home.memory).notified]
    assert ids == [row["id"]]
    text = (home.memory.home / "pending.md").read_text()
    assert f"1. {pending_line}\n" in text


@pytest.mark.parametrize(
    "new",
    [
        "Dentist, Main St 12, on 9 June at 10:00",
        "Dentist\n\nIt is on 2026-06-09 at 10:00, bring the card",
        "Dentist on 9 June at 10:00\n\nNo coffee before.",
    ],
)
def test_a_reminder_whose_memory_still_names_its_time_says_nothing(home: Home, new: str) -> None:
    source = home.write("Dentist on 9 June at 10:00", "date")
    (row,) = deep(home)["reminders"]
    home.upkeep.rewrite(home.info(source), new, {}, "edit")
    snooze(home.memory, row["id"], "8 June at 8:00")
    questions = home.memory.review(kind="reminder")
    assert questions == []
    home.now = home.now.replace(month=6, day=9, hour=9)
    notify(home.memory)
    text = (home.memory.home / "pending.md").read_text()
    assert "1. Dentist on 9 June at 10:00\n" in text


def test_a_reminder_another_memory_asks_for_stays_as_it_is_when_its_own_is_gone(home: Home) -> None:
    source = home.write("Dentist on 9 June at 10:00", "date")
    home.write("The user has a dentist appointment on June 9th at 10am", "people")
    deep(home)
    home.memory.delete(source)
    assert home.memory.review(kind="reminder") == []


def test_a_memory_an_agent_does_not_see_is_not_gone(home: Home) -> None:
    source = home.write("Dentist on 9 June at 10:00", "date")
    (row,) = deep(home)["reminders"]
    home.upkeep.change(home.info(source), {"scope": "agent:bob"}, "edit")
    home.now = home.now.replace(month=6, day=9, hour=9)
    with open_session(home.memory.home, agent="alice", clock=lambda: home.now) as memory:
        ids = [reminder.id for reminder in notify(memory).notified]
        assert ids == [row["id"]]

    text = (home.memory.home / "pending.md").read_text()
    assert "1. Dentist on 9 June at 10:00\n" in text


def test_a_memory_is_read_once_for_all_reminders_that_are_compared_with_it(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = [
        home.write(f"Dentist visit {number} on {number} June at 10:00", "date")
        for number in range(10, 20)
    ]
    deep(home)
    for number in range(10):
        home.write(f"Dentist number {number} moved to the {number + 10} of July", "people")
        home.write(f"The release of version {number} is on {number + 10} June", "project")
    for source in sources:
        home.memory.delete(source)
    read = list[str]()
    times = timephrase.read_all
    monkeypatch.setattr(
        timephrase, "read_all", lambda text, *args: (read.append(text), times(text, *args))[1]
    )
    home.now = home.now.replace(month=7)

    notified = notify(home.memory).notified
    assert len(notified) == 10
    assert 10 <= len(read) == len(set(read))


def test_reminders_make_no_reminders(home: Home) -> None:
    home.write("call Bob tomorrow at 3pm", "reminders")
    deep(home)
    assert len(reminders(home)) == 1


@pytest.mark.promise("001-17.4")
def test_no_reminder_is_made_twice_also_when_it_was_deleted_as_the_files_alone_tell(
    home: Home, tmp_path: Path
) -> None:
    source = home.write("Pay the tax tomorrow at 3pm", "project")
    (row,) = deep(home)["reminders"]
    assert deep(home)["reminders"] == []
    home.memory.delete(row["id"])
    links = home.info(source).links
    assert links == ()
    before = home.tree()
    report = deep(home)
    assert report["reminders"] == []
    assert report["skipped"] == []
    assert home.tree() == before
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    (home.memory.home / "categories").rename(fresh / "categories")
    with open_session(fresh, clock=lambda: MOMENT, watch=False) as memory:
        assert dream.run(memory, 3).report["report"]["reminders"] == []


def test_other_words_in_the_text_are_another_reminder(home: Home) -> None:
    source = home.put(ONE, "Pay the tax tomorrow at 3pm")
    deep(home)
    home.upkeep.rewrite(home.info(source), "Pay the tax tomorrow at 4pm", {}, "ingest")
    assert [reminder["due_at"] for reminder in deep(home)["reminders"]] == ["2026-05-07T16:00:00Z"]


def test_a_merged_memory_does_not_make_the_reminder_of_the_other_again(home: Home) -> None:
    home.put(TWO, "Pay the tax tomorrow at 3pm")
    (row,) = deep(home)["reminders"]
    home.memory.delete(row["id"])
    home.put(ONE, "Pay the tax tomorrow at 3pm\nto the new account")
    home.upkeep.merge(home.info(ONE), home.info(TWO))

    assert deep(home)["reminders"] == []


def test_a_memory_whose_id_is_no_uuid_has_its_reminders_too(home: Home) -> None:
    path = home.memory.home / "categories" / "people" / "bob.md"
    path.parent.mkdir(parents=True)
    path.write_text(
        "---\nid: bob\ncreated_at: 2026-05-06T10:00:00Z\n---\ncall Bob tomorrow at 3pm\n"
    )

    sources = [reminder["source"] for reminder in deep(home)["reminders"]]
    assert sources == ["bob"]
    assert deep(home)["reminders"] == []


def test_the_configuration_says_when_a_day_begins_and_where(tmp_path: Path) -> None:
    home = Home(tmp_path / "home", "timezone: Asia/Shanghai\nnotification:\n  day_hour: 8\n")
    with home.memory:
        home.write("send the report on 2026-05-20", "project")
        deep(home)
        (reminder,) = reminders(home)
        assert (reminder.header["due_at"], reminder.header["all_day"]) == (
            "2026-05-20T00:00:00Z",
            True,
        )


@pytest.mark.parametrize(
    ("first_text", "second_text", "expected_count"),
    [
        ("Dentist on 9 June at 10:00", "The user has a dentist appointment on June 9th at 10am", 1),
        (
            "Flight to Lisbon LX2080 on 12 June at 07:15",
            "Flight LX2080 to Lisbon leaves 2026-06-12 07:15",
            1,
        ),
        ("下周三下午3点和王总开会", "用户下周三15点与王总开会", 1),
        ("Tax return is due on 31 July 2026", "User must file the tax return by 31 July", 1),
        ("Dentist for Tom on 9 June at 10:00", "Dentist for Lea on 9 June at 10:00", 2),
        ("Send the report to Ben by 3 June", "Send the report to Anna by 3 June", 2),
        ("Pay invoice 12 by 9 June 2026", "Pay invoice 13 by 9 June 2026", 2),
        ("Call Christina on 9 June 2026", "Call Christoph on 9 June 2026", 2),
        ("Call him on 9 June 2026", "Call her on 9 June 2026", 2),
        ("6月9日开会", "6月9日开学", 2),
        ("Dentist on 9 June at 10:00", "Dentist on 10 June at 10:00", 2),
    ],
)
def test_an_appointment_noted_twice_makes_one_reminder(
    home: Home, first_text: str, second_text: str, expected_count: int
) -> None:
    home.put(ONE, first_text, "date")
    home.put(TWO, second_text, "date")
    assert len(deep(home)["reminders"]) == expected_count
    assert deep(home)["reminders"] == []
    if expected_count == 1:
        home.memory.delete(reminders(home)[0].id)
        assert deep(home)["reminders"] == []


def test_what_the_owner_asked_to_be_reminded_of_is_not_made_again_of_a_text(home: Home) -> None:
    home.write("dentist on 9 June at 10:00", "reminders")
    home.write("My dentist appointment is on 9 June at 10:00", "date")
    assert deep(home)["reminders"] == []


# It is over, and is only near the word
@pytest.mark.parametrize(
    ("text", "due", "rule"),
    [
        ("Anna's birthday is 12 May", "2026-05-12T09:00:00Z", "BYMONTH=5;BYMONTHDAY=12"),
        ("Dad's birthday: 3 March 1951", "2027-03-03T09:00:00Z", "BYMONTH=3;BYMONTHDAY=3"),
        ("安娜的生日：1984年5月12日", "2026-05-12T09:00:00Z", "BYMONTH=5;BYMONTHDAY=12"),
        (
            "Our wedding anniversary is on the 3rd of June",
            "2026-06-03T09:00:00Z",
            "BYMONTH=6;BYMONTHDAY=3",
        ),
        ("Leo's birthday is 29 February 2012", "2027-02-28T09:00:00Z", "BYMONTH=2;BYMONTHDAY=-1"),
        ("Leo's birthday: 29 February", "2027-02-28T09:00:00Z", "BYMONTH=2;BYMONTHDAY=-1"),
        ("12 May is Anna's birthday.", "2026-05-12T09:00:00Z", "BYMONTH=5;BYMONTHDAY=12"),
        ("Anna's birthday party is on 12 May", "2026-05-12T09:00:00Z", None),
        ("Passport expires on 4 July 2026, Anna's birthday.", "2026-07-04T09:00:00Z", None),
        ("Company 10th anniversary: launch v2 on 1 September 2026", "2026-09-01T09:00:00Z", None),
        ("Anna's birthday is tomorrow", "2026-05-07T09:00:00Z", None),
        (
            "Bought Anna a birthday card on 3 March 2026",
            None,
            None,
        ),
        ("2026年3月5日给妈妈买了生日卡", None, None),
    ],
)
def test_a_birthday_is_a_reminder_for_every_year(
    home: Home, text: str, due: str | None, rule: str | None
) -> None:
    home.write(text, "people")
    deep(home)
    expected = rule and f"FREQ=YEARLY;{rule};BYHOUR=9;BYMINUTE=0"
    due_rules = [
        (reminder.header["due_at"], reminder.header.get("repeat")) for reminder in reminders(home)
    ]

    assert due_rules == ([(due, expected)] if due else [])


@pytest.mark.parametrize(("config", "first"), [("", 9), ("notification:\n  before: 0s\n", 10)])
def test_an_appointment_fires_an_hour_before_and_what_was_put_off_at_its_time(
    tmp_path: Path, config: str, first: int
) -> None:
    home = Home(tmp_path / "home", f"timezone: UTC\n{config}")
    with home.memory:
        home.write("Dentist on 9 June at 10:00", "date")
        asked_id = home.write("call Bob on 9 June at 10:00", "reminders")
        deep(home)
        (made_id,) = (reminder.id for reminder in reminders(home) if reminder.id != asked_id)
        fired = []
        for hour in (8, 9, 10, 11, 12):
            home.now = MOMENT.replace(month=6, day=9, hour=hour)
            fired += [(hour, reminder_shown.id) for reminder_shown in notify(home.memory).notified]
            if hour == 10:
                snooze(home.memory, made_id, "2026-06-09 12:00")
        assert fired == sorted([(first, made_id), (10, asked_id), (12, made_id)])


@pytest.mark.promise("001.9-whole-text")
@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("Call the office on 9 June at 10am New York time", ["2026-06-09T14:00:00Z"]),
        ("9 June, 15:00 Berlin time: webinar", ["2026-06-09T13:00:00Z"]),
        ("6月9日北京时间上午10点开会", ["2026-06-09T02:00:00Z"]),
        ("Conference from 9 June to 11 June", ["2026-06-09T09:00:00Z"]),
        ("Handover on 9 June between 14:00 and 16:00", ["2026-06-09T14:00:00Z"]),
        ("Flight on 9.6.2026 at 7:15", ["2026-06-09T07:15:00Z"]),
        ("Mum comes on Christmas Eve at 5pm", ["2026-12-24T17:00:00Z"]),
        ("On Christmas we visit Anna", []),
        ("He takes his pills twice a day", []),
    ],
)
def test_a_note_is_read_with_the_same_grammar(home: Home, text: str, due: list[str]) -> None:
    home.write(text, "project")
    deep(home)
    assert [reminder.header["due_at"] for reminder in reminders(home)] == due


@pytest.mark.promise("001.9-whole-text")
@pytest.mark.parametrize(
    "text",
    [
        "Call on 9 June at 10am their time",
        "Call on 9 June at 10am IST",
        "Tuesday the 10th of June: dentist",
        "Towards 9 June the warranty ends",
        "Feed the cat on 9 June at 9:00 and 18:00",
        "爸爸的生日是农历八月十五",
    ],
)
def test_a_time_of_a_note_with_unused_words_makes_none_and_the_report_names_it(
    home: Home, text: str
) -> None:
    source = home.write(text, "project")
    report = deep(home)
    assert reminders(home) == []
    assert [(skipped["id"], skipped["code"]) for skipped in report["skipped"]] == [
        (source, "ambiguous_time")
    ]
