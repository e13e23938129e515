"""expire, decay, upgrade, consolidate (contract 001, 5; acceptance tests 4 and 5)."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.homes import MOMENT, ONE, THREE, TWO, Home
from memoranda.jobs import job, lifecycle

LONG = "p" * 100


def verbs(outcomes: list[job.Outcome]) -> dict[str, list[tuple[str, str]]]:
    """The actions of each job that has some."""
    actions_of_job = {}
    for outcome in outcomes:
        assert outcome.error is None
        if outcome.actions:
            actions_of_job[outcome.job] = [(action.verb, action.id) for action in outcome.actions]
    return actions_of_job


def test_a_memory_of_the_inbox_expires_after_its_time_and_not_a_moment_before(home: Home) -> None:
    memory_id = home.write("soon gone")
    home.later(days=7)
    assert home.job("expire").actions == ()
    home.later(microseconds=1)
    (action,) = home.job("expire").actions
    assert (action.verb, action.id, action.reason) == (
        "expire",
        memory_id,
        "expired 2026-05-13T10:00:00Z",
    )
    assert home.ids() == set()


def test_an_organized_memory_never_expires_whatever_its_file_says(home: Home) -> None:
    home.put(ONE, "kept", "people", expires=MOMENT)
    home.later(days=1)
    assert home.job("expire").actions == ()


def test_old_memories_nobody_read_decay(home: Home) -> None:
    old, read, soul = (
        home.write(text, category)
        for text, category in (("old", "knowledge"), ("read", "knowledge"), ("core", "soul"))
    )
    inbox = home.write("in the inbox")
    home.memory.read(read)
    home.later(days=30)
    young = home.write("young", "knowledge")
    actions = home.job("decay").actions
    assert actions == ()
    home.later(seconds=1)
    ids = [action.id for action in home.job("decay").actions]
    assert ids == [old]
    assert home.ids() == {read, soul, inbox, young}


def test_a_reminder_decays_only_when_it_will_not_fire_any_more(home: Home) -> None:
    home.put(ONE, "to come", "reminders", further={"due_at": "2026-12-01T09:00:00Z"})
    home.put(
        TWO,
        "every day",
        "reminders",
        further={
            "due_at": "2026-12-01T09:00:00Z",
            "repeat": "FREQ=DAILY",
            "fired_at": "2026-05-01T09:00:00Z",
        },
    )
    home.put(
        THREE,
        "fired",
        "reminders",
        further={"due_at": "2026-05-01T09:00:00Z", "fired_at": "2026-05-01T09:00:00Z"},
    )
    home.later(days=31)
    assert [action.id for action in home.job("decay").actions] == [THREE]


def test_the_configuration_says_what_is_old_what_is_exempt_and_what_is_read_often(
    tmp_path: Path,
) -> None:
    config = "daemon:\n  decay_threshold: 1h30m\n  decay_exempt: [people, skills]\n  upgrade_access_threshold: 1\n"
    home = Home(tmp_path / "home", config)
    with home.memory:
        kept_id = home.write("kept", "people")
        decayed_id = home.write("gone", "soul")
        often = home.write("often")
        home.memory.read(often)
        home.later(hours=2)
        assert verbs(lifecycle.consolidate(home.memory)) == {
            "decay": [("decay", decayed_id)],
            "upgrade": [("upgrade", often)],
        }
        assert home.ids() == {kept_id, often}


@pytest.mark.promise("001-17.5")
def test_a_memory_read_three_times_is_organized_and_keeps_what_must_not_change(home: Home) -> None:
    memory_id = home.write("I prefer dark mode", source="claude")
    other_id = home.write("read twice")
    path = home.file(memory_id)
    for _ in range(3):
        home.memory.read(memory_id)
    home.memory.read(other_id)
    home.memory.read(other_id)
    home.later(days=1)
    (action,) = home.job("upgrade").actions
    assert action.id == memory_id
    assert action.category == "preferences"
    assert action.words == ("prefer",)
    info = home.info(memory_id)
    assert info.phase == "organized"
    assert info.category == "preferences"
    assert info.expires is None
    assert info.access_count == 3
    assert info.source == "claude"
    assert info.created == "2026-05-06T10:00:00Z"
    assert not path.exists()
    name = home.file(memory_id).name
    assert name == path.name
    actions = home.job("upgrade").actions
    assert actions == ()
    home.memory.undo()
    assert home.file(memory_id) == path
    assert home.info(memory_id).phase == "inbox"


def test_a_hand_made_file_keeps_its_id_its_time_and_its_source_when_it_is_organized(
    home: Home,
) -> None:
    path = home.memory.home / "categories" / "inbox" / "mine.md"
    path.parent.mkdir(parents=True)
    path.write_text("we decided to use Postgres\n")
    (before,) = home.upkeep.every()
    for _ in range(3):
        home.memory.read(before.id)
    home.job("upgrade")
    after = home.info(before.id)
    assert (after.path, after.created, after.source) == (
        "decisions/mine.md",
        before.created,
        "file",
    )
    assert home.file(before.id).read_text().endswith("\n---\nwe decided to use Postgres\n")


def test_a_memory_of_the_inbox_that_somebody_put_into_a_category_keeps_it(home: Home) -> None:
    home.put(ONE, "lesson learned", "people", phase="inbox", access_count=5)
    (action,) = home.job("upgrade").actions
    assert (action.category, home.category(ONE), home.info(ONE).phase) == (
        "people",
        "people",
        "organized",
    )


@pytest.mark.promise("001-17.5")
def test_equal_texts_are_merged_into_the_one_that_is_read_more(home: Home) -> None:
    a = home.write("same text here", tags=["x"])
    b = home.write("same  text here.", tags=["y"])
    home.memory.read(b)
    consolidate = verbs(lifecycle.consolidate(home.memory))["consolidate"]
    assert consolidate == [("merge", a)]
    info = home.info(a)
    assert info.id == b
    assert info.tags == ("y", "x")
    assert info.access_count == 1
    assert info.header["merged"] == [a]
    content = home.memory.read(a).content
    assert content == "same  text here."


@pytest.mark.promise("001-17.5")
def test_texts_that_only_begin_alike_both_survive(home: Home) -> None:
    both = {home.write(f"{LONG} alpha"), home.write(f"{LONG} beta")}
    assert verbs(lifecycle.consolidate(home.memory)) == {}
    assert home.ids() == both


def test_links_to_what_was_merged_lead_to_the_survivor_and_wikilinks_still_find_it(
    home: Home,
) -> None:
    home.put(ONE, f"{LONG}\nsecond line")
    home.put(TWO, LONG, further={"title": "The short one"})
    home.put(THREE, "see [[The short one]]", links=(TWO,))
    lifecycle.consolidate(home.memory)

    links = home.info(THREE).links
    assert links == (ONE,)
    ids = [backlink.id for backlink in home.memory.backlinks(home.info(TWO))]
    assert ids == [THREE]
    aliases = home.info(ONE).aliases
    assert aliases == ("The short one",)


def test_the_first_line_of_what_was_merged_still_names_the_survivor(home: Home) -> None:
    home.put(ONE, f"{LONG[:60]}\n{LONG[:60]} tail\nmore")
    home.put(TWO, f"{LONG[:60]} tail\n{LONG[:60]}")
    home.upkeep.merge(home.info(ONE), home.info(TWO))
    assert home.info(ONE).aliases == (f"{LONG[:60]} tail",)


def test_of_two_in_the_inbox_the_later_end_counts(home: Home) -> None:
    memory_id = home.write("same text here")
    home.later(days=1)
    home.write("same text here")
    lifecycle.consolidate(home.memory)
    assert home.info(memory_id).expires == "2026-05-14T10:00:00Z"


def test_each_job_sees_what_the_ones_before_it_did(home: Home) -> None:
    """What expires is not merged; what is upgraded is, with its new category."""
    expired_id = home.write("copper conducts heat badly")
    home.later(days=7, seconds=1)
    often = home.write("copper conducts heat badly")
    other_id = home.write("copper conducts heat badly", "people")
    for _ in range(3):
        home.memory.read(often)
    assert verbs(lifecycle.consolidate(home.memory)) == {
        "expire": [("expire", expired_id)],
        "upgrade": [("upgrade", often)],
        "consolidate": [("merge", other_id)],
    }
    assert home.category(often) == "knowledge"


def test_counts_are_folded_before_the_jobs_but_not_by_a_dry_run(home: Home) -> None:
    memory_id = home.write("read", "people")
    home.memory.read(memory_id)
    lifecycle.consolidate(home.memory, dry_run=True)
    content = home.file(memory_id).read_bytes()
    assert b"access_count: 0" in content
    lifecycle.consolidate(home.memory)
    content = home.file(memory_id).read_bytes()
    assert b"access_count: 1" in content


def fill(home: Home) -> None:
    """Something for every job, also of what one job leaves to the next."""
    home.write("same text here")
    home.write("gone")
    home.write("unread", "knowledge")
    home.later(days=31)
    often = home.write("same text here", tags=["a"])
    home.write("same text here", "people", tags=["b"])
    home.write("Same text  here", scope="agent:x")
    home.write(f"see [[{often}]]", "people")
    linked = home.write("linked", "people")
    home.memory.link(linked, often)
    for _ in range(3):
        home.memory.read(often)


@pytest.mark.promise("001-17.4")
def test_a_dry_run_changes_nothing_and_names_the_actions_after_which_a_second_run_has_none(
    home: Home,
) -> None:
    fill(home)
    before = home.everything()
    planned = verbs(lifecycle.consolidate(home.memory, dry_run=True))
    assert home.everything() == before
    assert verbs(lifecycle.consolidate(home.memory)) == planned
    assert planned.keys() == {"expire", "decay", "upgrade", "consolidate"}
    before = home.tree()
    assert verbs(lifecycle.consolidate(home.memory)) == {}
    assert home.tree() == before


def test_every_action_can_be_taken_back_one_after_the_other(home: Home) -> None:
    fill(home)
    home.upkeep.fold()
    before = home.tree()
    actions = []
    for outcome in lifecycle.consolidate(home.memory):
        actions.extend(outcome.actions)
    assert len(actions) == 5
    for _ in actions:
        home.memory.undo()
    assert home.forgotten_undos() == before
    again = []
    for outcome in lifecycle.consolidate(home.memory):
        again.extend(outcome.actions)
    assert {(action.verb, action.id) for action in again}.isdisjoint(
        (action.verb, action.id) for action in actions
    )
