"""`remind` and `notify` on the command line, and reminders written by other ways (contract 001, 3,
8, 9).
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import tree
from editing import replace_in
from memoranda.engine import open_session
from memoranda.note.model import Draft

NOW = "2026-05-06T10:00:00Z"
LATE = "2026-05-07T15:00:00Z"
KEYS = [
    "schema",
    "stored",
    "text",
    "phrase",
    "due_at",
    "due_local",
    "reading",
    "all_day",
    "repeat",
    "others",
]
DATA = json.loads(
    (Path(__file__).parents[1] / "contract/data/time_expressions.json").read_text(encoding="utf-8")
)


def remind(terminal: Any, *argv: str) -> Any:
    ran = terminal("remind", *argv, "--json", "--now", NOW)
    assert ran.status == 0, ran
    return ran.json


@pytest.mark.promise("001-17.2")
@pytest.mark.parametrize(
    "row", DATA["rows"], ids=lambda row: f"{row['text']} {row.get('now', '')}".strip()
)
def test_a_phrase_is_read_as_the_contract_says(terminal: Any, row: dict[str, Any]) -> None:
    terminal.configure(f"timezone: {row.get('timezone', DATA['timezone'])}\n")
    ran = terminal(
        "remind", row["text"], "--dry-run", "--json", "--now", row.get("now", DATA["now"])
    )
    if "error" in row:
        error = ran.json["error"]
        assert ran.status == 1
        assert list(ran.json) == ["schema", "error"]
        assert list(error) == ["code", "message", "candidates"]
        assert error["code"] == row["error"]
        assert ran.error == error["message"]
        if "candidates" in row:
            assert error["candidates"] == row["candidates"]
        return
    assert ran.status == 0
    assert list(ran.json) == KEYS
    document = ran.json
    assert document["due_local"] == row["due"]
    assert datetime.fromisoformat(document["due_at"]) == datetime.fromisoformat(row["due"])
    assert document["due_at"].endswith("Z")
    assert document["all_day"] == row.get("all_day", False)
    assert document["repeat"] == row.get("repeat")
    assert document["stored"] is False
    assert document["phrase"] in document["reading"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("buy milk", 'no time found in "buy milk"'),
        (
            "next friday 9am",
            'ambiguous time "next friday 9am": 2026-05-08 09:00 or 2026-05-15 09:00; say which',
        ),
        ("yesterday", 'time is in the past: "yesterday"'),
        ("2026-02-30", 'not a valid time: "2026-02-30"'),
        ("someday", 'time is too vague: "someday"'),
    ],
)
def test_what_is_refused_stores_nothing(terminal: Any, text: str, message: str) -> None:
    ran = terminal("remind", text, "--now", NOW)
    assert (ran.status, ran.out, ran.error) == (1, "", message)
    assert not (terminal.home / "categories").exists()


@pytest.mark.parametrize(
    ("zone", "due"),
    [(None, "2026-05-07T15:00:00+02:00"), ("Asia/Tokyo", "2026-05-07T15:00:00+09:00")],
)
def test_the_zone_is_the_configured_one_else_that_of_now(
    terminal: Any, zone: str | None, due: str
) -> None:
    if zone:
        terminal.configure(f"timezone: {zone}\n")
    ran = terminal(
        "remind", "tomorrow 3pm", "--dry-run", "--json", "--now", "2026-05-06T10:00:00+02:00"
    )
    assert ran.json["due_local"] == due


def test_without_either_it_is_the_systems_with_its_summer_time(
    terminal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import time

    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    ran = terminal("remind", "tomorrow at noon", "--json", "--now", "2026-03-28T12:00:00")
    assert ran.json["due_local"] == "2026-03-29T12:00:00+02:00"
    assert ran.json["due_at"] == "2026-03-29T10:00:00Z"
    assert terminal.ok("remind", "--list")[9:26] == "2026-03-29 12:00 "


def test_several_times_joined_by_and_are_several_reminders(terminal: Any) -> None:
    ran = terminal("remind", "take the pill every day at 8am and 8pm", "--json", "--now", NOW)
    rows = ran.json["results"]
    assert [row["due_at"] for row in rows] == ["2026-05-06T20:00:00Z", "2026-05-07T08:00:00Z"]
    assert [row["repeat"] for row in rows] == [
        "FREQ=DAILY;BYHOUR=20;BYMINUTE=0",
        "FREQ=DAILY;BYHOUR=8;BYMINUTE=0",
    ]
    assert len({row["memory"]["id"] for row in rows}) == 2
    out = terminal.ok("remind", "pills at 8am and 8pm", "--dry-run", "--now", NOW)
    assert out.splitlines() == [
        "Would remind: Wed 6 May 2026 20:00 (at 8am and 8pm)",
        "Would remind: Thu 7 May 2026 08:00 (at 8am and 8pm)",
    ]


def test_reminders_for_two_times_of_a_text_are_undone_together(terminal: Any) -> None:
    terminal.ok("remind", "pills at 8am and 8pm", "--now", NOW)
    terminal.ok("undo")
    assert terminal.ok("remind", "--list") == "No reminders.\n"


def test_words_apart_are_one_time_and_shown_as_they_were_read(terminal: Any) -> None:
    out = terminal.ok("remind", "tomorrow call Bob at 3pm", "--dry-run", "--now", NOW)
    assert out == "Would remind: Thu 7 May 2026 15:00 (tomorrow … at 3pm)\n"


def test_time_words_that_were_left_are_named_and_nothing_is_stored(terminal: Any) -> None:
    ran = terminal("remind", "morgen um 15:00 Zahnarzt", "--now", NOW)
    assert (ran.status, ran.out) == (1, "")
    assert '"morgen" was not used; say it in other words' in ran.err
    assert not (terminal.home / "categories").exists()


def test_an_unknown_zone_is_an_error_of_the_configuration(terminal: Any) -> None:
    terminal.configure("timezone: Mars/Olympus\n")
    ran = terminal("remind", "tomorrow", "--json")
    assert (ran.status, ran.json["error"]["code"]) == (1, "config")


def test_a_reminder_is_a_memory_with_its_time(terminal: Any) -> None:
    document = remind(
        terminal,
        "water",
        "the",
        "plants",
        "every day at 9am",
        "--tags",
        "home,green",
        "--source",
        "me",
    )
    assert list(document) == [*KEYS, "memory"]
    memory = document["memory"]
    assert (document["stored"], memory["content"]) == (True, "water the plants every day at 9am")
    assert (memory["category"], memory["phase"], memory["expires_at"]) == (
        "reminders",
        "organized",
        None,
    )
    assert (memory["tags"], memory["source"]) == (["home", "green"], "me")
    assert document["reading"] == (
        "Thu 7 May 2026 09:00 (every day at 9am) repeat FREQ=DAILY;BYHOUR=9;BYMINUTE=0"
    )
    text = (terminal.home / memory["path"]).read_text(encoding="utf-8")
    assert text.endswith(
        "version: 1\ndue_at: 2026-05-07T09:00:00Z\ndue_text: every day at 9am\n"
        "repeat: FREQ=DAILY;BYHOUR=9;BYMINUTE=0\n---\nwater the plants every day at 9am\n"
    )


def test_at_names_the_time_and_the_text_is_kept_as_it_is(terminal: Any) -> None:
    document = remind(terminal, "call Bob about Friday", "--at", "tomorrow 8pm")
    assert (document["text"], document["phrase"], document["due_at"]) == (
        "call Bob about Friday",
        "tomorrow 8pm",
        "2026-05-07T20:00:00Z",
    )
    assert document["memory"]["due_text"] == "tomorrow 8pm"
    ran = terminal("remind", "call Bob tomorrow", "--at", "no idea", "--now", NOW)
    assert (ran.status, ran.error) == (1, 'no time found in "no idea"')


def test_the_text_may_come_from_stdin(terminal: Any) -> None:
    text = "tomorrow at\n3pm call Bob"
    ran = terminal("remind", "-", "--dry-run", "--json", "--now", NOW, stdin=text)
    assert (ran.json["due_at"], ran.json["others"]) == ("2026-05-07T15:00:00Z", [])
    assert "\n" not in ran.json["reading"]


@pytest.mark.parametrize(
    ("argv", "status", "message"),
    [
        ((), 2, "requires at least 1 arg(s), only received 0"),
        (("--list", "x"), 2, "accepts 0 arg(s), received 1"),
        (("x", "--all"), 2, "--all needs --list"),
        (("--list", "--done", "x"), 2, "--list and --done do not go together"),
        ((" ",), 1, "content must not be empty"),
        (("tomorrow", "--scope", "me"), 1, 'invalid scope "me"'),
        (("tomorrow", "--agent", "a", "--scope", "agent:b"), 1, 'invalid scope "agent:b"'),
        (("--done", "abcd"), 1, "memory not found: abcd"),
    ],
)
def test_wrong_usage_is_told(
    terminal: Any, argv: tuple[str, ...], status: int, message: str
) -> None:
    ran = terminal("remind", *argv, "--now", NOW)
    assert (ran.status, ran.error, ran.out) == (status, message, "")


@pytest.mark.parametrize("way", ["write", "tool", "python"])
@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("call Bob on 2126-05-07 at 3pm", "2126-05-07T15:00:00Z"),
        ("buy milk", None),
        ("someday tomorrow", None),
    ],
)
def test_whoever_writes_into_the_category_has_the_time_read(
    terminal: Any, way: str, text: str, due: str | None
) -> None:
    if way == "write":
        ref = terminal.write(text, "--category", "reminders")
    elif way == "tool":
        ran = terminal(
            "call", "memory_write", json.dumps({"content": text, "category": "reminders"})
        )
        ref = json.loads(ran.out)["id"]
    else:
        with open_session(terminal.home, watch=False) as memory:
            ref = memory.write(Draft(text, project="categories", category="reminders")).id
    memory = terminal("read", ref, "--json").json["memory"]

    assert memory["content"] == text
    assert memory.get("due_at") == due
    assert ("due_text" in memory) == (due is not None)


def test_write_takes_the_zone_of_now_as_remind_does(terminal: Any) -> None:
    now = "2026-05-06T10:00:00+08:00"
    ran = terminal("write", "tea tomorrow 3pm", "--category", "reminders", "--json", "--now", now)
    assert ran.json["memory"]["due_at"] == "2026-05-07T07:00:00Z"


def test_a_time_in_a_memory_of_another_category_makes_no_reminder_of_it(terminal: Any) -> None:
    ran = terminal("write", "tea tomorrow 3pm", "--category", "date", "--json", "--now", NOW)
    assert "due_at" not in ran.json["memory"]


def test_the_list_goes_by_time_and_ends_with_what_has_none(terminal: Any) -> None:
    undated = terminal.write("buy milk", "--category", "reminders")
    late = remind(terminal, "b on Friday at noon")["memory"]["id"]
    soon = remind(terminal, "a tomorrow at 3pm\nand more " + "x" * 60)["memory"]["id"]
    odd = remind(terminal, "odd tomorrow")["memory"]
    place = terminal.home / odd["path"]
    replace_in(place, odd["due_at"], "when pigs fly")
    lines = terminal.ok("remind", "--list").splitlines()
    assert lines[:2] == [
        f"{soon[:8]} 2026-05-07 15:00 a tomorrow at 3pm and more {'x' * 33}...",
        f"{late[:8]} 2026-05-08 12:00 b on Friday at noon",
    ]
    assert set(lines[2:]) == {
        f"{undated[:8]} no date          buy milk",
        f"{odd['id'][:8]} unreadable date  odd tomorrow",
    }
    ran = terminal("remind", "--list", "--json")
    assert list(ran.json) == ["schema", "reminders"]
    assert [reminder["id"] for reminder in ran.json["reminders"]][:2] == [soon, late]


def test_doctor_names_the_reminders_that_will_not_fire(terminal: Any) -> None:
    fine = remind(terminal, "every day at 9am fine")["memory"]
    first, second, third = (
        remind(terminal, f"every day at 9am {name}")["memory"] for name in ("one", "two", "three")
    )
    for memory, old, new in (
        (first, "due_at: 2026-05-07T09:00:00Z", "due_at: soon"),
        (second, "FREQ=DAILY;", "FREQ=FULLMOON;"),
        (third, "version: 1", "version: 1\nlocked: true"),
    ):
        place = terminal.home / memory["path"]
        assert old in place.read_text()
        replace_in(place, old, new)
    ran = terminal("doctor", "--json")
    findings = {
        finding["path"]: (finding["level"], finding["code"], finding["text"])
        for finding in ran.json["findings"]
    }
    assert findings == {
        first["path"]: (
            "warning",
            "bad_frontmatter",
            'due_at "soon" is no time, so the reminder never fires',
        ),
        second["path"]: (
            "warning",
            "bad_frontmatter",
            'repeat "FREQ=FULLMOON;BYHOUR=9;BYMINUTE=0" is no rule or has no time left, so the reminder fires'
            " once at most",
        ),
        third["path"]: ("warning", "bad_frontmatter", "the reminder is locked, so it never fires"),
    }
    assert fine["path"] not in findings


@pytest.mark.promise("001-17.9")
def test_all_adds_what_fired_and_what_is_done(terminal: Any) -> None:
    first, second = (
        remind(terminal, f"{name} tomorrow at 3pm")["memory"]["id"] for name in ("one", "two")
    )
    output = terminal.ok("notify", "--now", LATE)
    assert output == "Notified 2 reminders\n"
    terminal.ok("remind", "--done", first)
    assert terminal.ok("remind", "--list") == "No reminders.\n"
    assert {line[:8] for line in terminal.ok("remind", "--list", "--all").splitlines()} == {
        first[:8],
        second[:8],
    }


@pytest.mark.promise("001-17.9")
def test_done_takes_it_off_the_list_at_once(terminal: Any) -> None:
    ref = remind(terminal, "tomorrow at 3pm")["memory"]["id"]
    terminal.ok("notify", "--now", LATE)
    output = terminal.ok("remind", "--done", ref[:8], "--now", LATE)
    assert output == f"Done: {ref[:8]}\n"
    text = (terminal.home / "pending.md").read_text()
    assert text == "# Pending Reminders\n\nNone.\n"


@pytest.mark.promise("001-17.9")
def test_done_twice_is_once(terminal: Any) -> None:
    ref = remind(terminal, "tomorrow at 3pm")["memory"]["id"]
    terminal.ok("notify", "--now", LATE)
    terminal.ok("remind", "--done", ref[:8], "--now", LATE)
    before = tree(terminal)
    output = terminal.ok("remind", "--done", ref)
    assert output == f"Done: {ref[:8]}\n"
    assert tree(terminal) == before
    memory = terminal("read", ref, "--json").json["memory"]
    assert memory["acked_at"] == LATE
    assert memory["version"] == 1
    assert memory["updated_at"] == NOW


def test_what_is_done_before_its_time_does_not_fire(terminal: Any) -> None:
    ref = remind(terminal, "tomorrow at 3pm")["memory"]["id"]
    before = tree(terminal)
    output = terminal.ok("remind", "--done", ref, "--dry-run")
    assert output == f"Would be done: {ref[:8]}\n"
    assert tree(terminal) == before
    ran = terminal("remind", "--done", ref, "--json", "--now", NOW)
    assert list(ran.json) == ["schema", "id", "memory"]
    assert ran.json["id"] == ref
    assert ran.json["memory"]["acked_at"] == NOW
    output = terminal.ok("notify", "--now", LATE)
    assert output == "Notified 0 reminders\n"
    assert terminal.ok("remind", "--list") == "No reminders.\n"


def test_only_a_reminder_can_be_done(terminal: Any) -> None:
    ref = terminal.write("x", "--category", "skills")
    ran = terminal("remind", "--done", ref)
    assert (ran.status, ran.error) == (1, f"not a reminder: {ref}")


@pytest.mark.promise("001-17.9", "001-17.4")
def test_notify_twice_with_one_clock_changes_not_a_byte(terminal: Any) -> None:
    remind(terminal, "tomorrow at 3pm")
    terminal.ok("notify", "--now", LATE)
    before = tree(terminal)
    output = terminal.ok("notify", "--now", LATE)
    assert output == "Notified 0 reminders\n"
    output = terminal.ok("notify", "--dry-run", "--now", LATE)
    assert output == "Nothing to do.\n"
    assert tree(terminal) == before


@pytest.mark.promise("001-17.4")
def test_notify_tells_what_would_fire_and_then_what_fired(terminal: Any) -> None:
    ref = remind(terminal, "tomorrow at 3pm")["memory"]["id"]
    output = terminal.ok("notify", "--dry-run", "--now", LATE)
    assert output == f"would fire {ref[:8]} due 2026-05-07 15:00\n"
    ran = terminal("notify", "--json", "--now", LATE)
    assert list(ran.json) == ["schema", "notified", "pending"]
    assert ran.json["pending"] == 1
    assert [(reminder["id"], reminder["fired_at"]) for reminder in ran.json["notified"]] == [
        (ref, LATE)
    ]


@pytest.mark.promise("001-17.9")
def test_a_method_that_fails_is_said_and_the_reminder_has_fired_all_the_same(
    terminal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal.configure("notification:\n  method: notify-send\n")
    monkeypatch.setenv("PATH", str(terminal.folder))
    remind(terminal, "tomorrow at 3pm")
    ran = terminal("notify", "--now", LATE)
    assert (ran.status, ran.out, ran.err) == (
        0,
        "Notified 1 reminders\n",
        "notify: notify-send failed: it is not installed\n",
    )
    assert terminal.ok("notify", "--now", LATE) == "Notified 0 reminders\n"


@pytest.mark.promise("001-17.13")
def test_an_agent_lists_fires_and_acknowledges_only_what_it_sees(terminal: Any) -> None:
    own_id = remind(terminal, "own tomorrow at 3pm", "--agent", "x", "--scope", "agent:x")[
        "memory"
    ]["id"]
    terminal("remind", "foreign tomorrow at 3pm", "--scope", "agent:y", "--now", NOW)
    assert (
        terminal.ok("--agent", "x", "remind", "--list")
        == f"{own_id[:8]} 2026-05-07 15:00 own tomorrow at 3pm\n"
    )
    assert terminal.ok("--agent", "x", "notify", "--now", LATE) == "Notified 1 reminders\n"
    assert terminal.ok("--agent", "x", "remind", "--list") == "No reminders.\n"
    assert (
        terminal("--agent", "y", "remind", "--done", own_id).error == f"memory not found: {own_id}"
    )
    assert terminal.ok("notify", "--now", LATE) == "Notified 1 reminders\n"
    assert (
        "foreign"
        not in (terminal.home / "pending.md").read_text()
        + (terminal.home / "pending.x.md").read_text()
    )


@pytest.mark.promise("001-17.15")
def test_reminders_survive_export_and_import(terminal: Any) -> None:
    remind(terminal, "every day at 9am")
    terminal.ok("notify", "--now", LATE)
    first = terminal.ok("export")
    (terminal.folder / "all.jsonl").write_text(first, encoding="utf-8")
    other_home = ("--home", str(terminal.folder / "other"))
    terminal.ok("import", "--input", str(terminal.folder / "all.jsonl"), *other_home)

    output = terminal.ok("export", *other_home)
    assert output == first
    output = terminal.ok("notify", "--now", LATE, *other_home)
    assert output == "Notified 0 reminders\n"
