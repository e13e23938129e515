"""`upgrade`, `decay`, `consolidate`, `dream` on the command line (contract 001, 3, 5, 6)."""

from __future__ import annotations

from typing import Any

import pytest

from cli.conftest import tree
from memoranda.engine.upkeep import Upkeep

LATER = "2027-01-01T00:00:00Z"


@pytest.mark.promise("001-17.6")
def test_an_explicit_category_is_kept_also_for_a_memory_that_is_organized(terminal: Any) -> None:
    memory_id = terminal.write("deploy the repo on branch main")
    row = terminal("upgrade", memory_id, "--category", "skills", "--json", "--now", LATER).json
    assert list(row) == ["schema", "memory", "changed"]
    assert (row["memory"]["category"], row["memory"]["phase"], row["changed"]) == (
        "skills",
        "organized",
        True,
    )
    assert row["memory"]["updated_at"] == LATER
    assert row["memory"]["path"].startswith("categories/skills/")
    assert terminal("upgrade", memory_id, "--category", "skills", "--json").json["changed"] is False
    assert (
        terminal("upgrade", memory_id, "--category", "people", "--json").json["memory"]["category"]
        == "people"
    )
    terminal.ok("undo")
    assert terminal("read", memory_id, "--json").json["memory"]["category"] == "skills"
    assert terminal.ok("delete", memory_id) == f"Deleted memory: {memory_id}\n"
    assert terminal.ok("list") == "No memories found.\n"


def test_upgrade_refuses_what_is_no_category_and_what_is_no_memory(terminal: Any) -> None:
    memory_id = terminal.write("x")
    for name in ("nope", "inbox", "../x"):
        ran = terminal("upgrade", memory_id, "--category", name)
        assert ran.status == 1
        assert ran.out == ""
        assert ran.error == f'invalid category "{name}"'
    ran = terminal("upgrade", "deadbeef")

    assert ran.status == 1
    assert ran.out == ""
    assert ran.error == "memory not found: deadbeef"
    assert terminal("upgrade").status == 2


def test_upgrade_dry_run_only_says_what_it_would_do(terminal: Any) -> None:
    memory_id = terminal.write("deploy the repo on branch main")
    before = tree(terminal)
    assert terminal.ok("upgrade", memory_id, "--dry-run") == (
        f"would upgrade {memory_id[:8]} asked for: project (deploy, repo, branch)\n"
    )
    assert tree(terminal) == before
    terminal.ok("upgrade", memory_id)
    assert terminal.ok("upgrade", memory_id, "--dry-run") == "Nothing to do.\n"


WRITTEN = ("--now", "2026-05-01T00:00:00Z")
FORGOTTEN = ("--now", "2026-06-10T00:00:00Z")


@pytest.fixture
def unused(terminal: Any) -> str:
    """The id of a memory that nobody has read."""
    return terminal.write("old and unused", "--category", "knowledge", *WRITTEN)


def test_decay_as_a_dry_run_says_which_and_why(terminal: Any, unused: str) -> None:
    output = terminal.ok("decay", "--dry-run", *FORGOTTEN)
    assert output == f"would decay {unused[:8]} never read since 2026-05-01T00:00:00Z\n"


def test_decay_as_a_dry_run_has_its_actions_as_json(terminal: Any, unused: str) -> None:
    row = terminal("decay", "--dry-run", "--json", *FORGOTTEN).json
    assert list(row) == ["schema", "actions", "decayed"]
    assert list(row["actions"][0]) == ["job", "verb", "id", "reason", "path"]
    assert row["decayed"] == 1


def test_decay_says_how_many_and_has_none_the_second_time(terminal: Any, unused: str) -> None:
    outputs = [terminal.ok("decay", *FORGOTTEN) for _ in range(2)]
    assert outputs == ["Decayed 1 unused memories\n", "Decayed 0 unused memories\n"]
    output = terminal.ok("decay", "--dry-run", *FORGOTTEN)
    assert output == "Nothing to do.\n"


def test_a_job_that_fails_is_an_error_and_the_others_are_done(
    terminal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memoranda.jobs import lifecycle

    def fails(*_: object) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr(lifecycle, "plan_duplicates", fails)
    terminal.write("soon gone", "--now", "2026-05-01T00:00:00Z")
    ran = terminal("consolidate", "--json", "--now", LATER)
    assert ran.status == 1
    assert list(ran.json) == ["schema", "error", "jobs"]
    assert ran.json["error"]["code"] == "internal"
    assert ran.json["jobs"]["expire"]["processed"] == 1
    ran = terminal("consolidate", "--now", LATER)
    assert ran.status == 1
    assert ran.out.endswith("upgrade         0 items processed\nconsolidate     error\n")
    assert ran.err.startswith(
        "Error: consolidate: something went wrong inside memoranda (RuntimeError: out of order"
    )
    assert ran.err.count("\n") == 1


def test_a_light_dream_prints_one_line(terminal: Any) -> None:
    memory_id = terminal.write("lesson: never force push")
    output = terminal.ok("dream", "--dry-run")
    assert output == f"would classify {memory_id[:8]} lessons (lesson)\n"
    assert terminal.ok("dream") == "Dream (level 1) processed 1 items\n"
    assert terminal.ok("dream", "--level", "2") == "Dream (level 2) processed 0 items\n"
    assert terminal.ok("dream", "--dry-run") == "Nothing to do.\n"


def test_a_level_there_is_not_is_refused(terminal: Any) -> None:
    for level in ("0", "4", "-1"):
        ran = terminal("dream", f"--level={level}")
        assert (ran.status, ran.out, ran.err) == (
            1,
            "",
            f"Error: invalid dream level {level} (must be 1-3)\n",
        )
    ran = terminal("dream", "--level", "x", "--json")
    assert (ran.status, ran.json["error"]["code"], ran.error) == (
        2,
        "usage",
        'invalid value "x" for --level: not a number',
    )


def test_the_report_of_a_deep_dream_is_printed_and_shown_again(terminal: Any) -> None:
    first = terminal.write(
        "Kestrel 4.2.7 is our billing service", "--category", "project", "--tags", "billing"
    )
    second = terminal.write(
        "Kestrel 4.2.7 cost us a night", "--category", "lessons", "--tags", "billing"
    )
    terminal.write("我喜欢简洁的回答")
    printed = terminal.ok("dream", "--level", "3")
    a, b = sorted((first, second))
    kinds = {first: "project", second: "lessons"}
    head, *rest = printed.splitlines()
    assert head == "Dream (level 3) processed 2 items"
    assert rest[:4] == [
        "Classified: preferences 1",
        "Merged: 0",
        "Similar: 0",
        "Links added: 1",
    ]
    assert rest[4].startswith(
        f'  {a[:8]} ({kinds[a]}) <-> {b[:8]} ({kinds[b]}): tag "billing", term '
    )
    assert rest[-1].startswith(
        "Categories without a memory: soul, character, people, date, knowledge, "
    )
    assert terminal.ok("dream", "--report") == printed
    document = terminal("dream", "--report", "--json").json
    assert list(document) == ["schema", "level", "processed", "actions", "report"]
    assert (document["level"], document["processed"], len(document["actions"])) == (3, 2, 2)
    assert terminal.ok("status").count("last dream: never") == 0


def test_before_the_first_dream_there_is_no_report(terminal: Any) -> None:
    assert terminal.ok("dream", "--report") == "No dream yet.\n"
    assert terminal("dream", "--report", "--json").json == {
        "schema": "dream/1",
        "level": None,
        "processed": 0,
        "actions": [],
        "report": None,
    }
    assert "last dream: never" in terminal.ok("status")
    terminal.ok("dream", "--dry-run")
    assert terminal.ok("dream", "--report") == "No dream yet.\n"


def test_a_step_that_fails_is_an_error_and_the_others_are_done(
    terminal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memoranda.jobs import dream

    def fails(*_: object) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr(dream, "plan_similar", fails)
    terminal.write("lesson learned")
    ran = terminal("dream", "--level", "2")
    assert ran.status == 1
    assert ran.out == "Dream (level 2) processed 1 items\n"
    assert ran.err.startswith(
        "Error: similar: something went wrong inside memoranda (RuntimeError: out of order"
    )
    assert ran.err.count("\n") == 1


@pytest.mark.promise("001-17.13")
def test_as_an_agent_jobs_neither_touch_nor_name_foreign_memories(terminal: Any) -> None:
    foreign = terminal.write("for claude only", "--scope", "agent:claude")
    own_id = terminal.write("we decided to use this for all")
    before = tree(terminal)
    for argv in (
        ["dream", "--level", "3"],
        ["consolidate", "--now", LATER],
        ["decay", "--now", LATER],
    ):
        out = terminal.ok(*argv, "--agent", "copilot", "--json", "--dry-run")
        assert foreign not in out
        assert own_id in out or argv[0] == "decay"
    assert tree(terminal) == before
    terminal.ok("dream")
    assert foreign not in terminal.ok("dream", "--report", "--json", "--agent", "copilot")
    ran = terminal("upgrade", foreign, "--agent", "copilot")
    assert (ran.status, ran.error) == (1, f"memory not found: {foreign}")


@pytest.fixture
def interfering(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Somebody tags and moves a memory just before the first change of it; lists the categories it
    then went to.
    """
    real = Upkeep.change_all
    gone_to = []

    def change_all(self: Upkeep, memories: Any, keys: Any, verb: str, **more: Any) -> Any:
        if not gone_to:
            ((info, _),) = memories
            gone_to.append("people" if info.category == "inbox" else info.category)
            tagged = self.memory.memory_id(self.memory.tag(info, ["meanwhile"]).id)
            real(self, [(tagged, gone_to[0])], {"phase": "organized"}, "upgrade")
        return real(self, memories, keys, verb, **more)

    monkeypatch.setattr(Upkeep, "change_all", change_all)
    return gone_to


def test_an_upgrade_sees_what_another_program_did_at_that_moment(
    terminal: Any, interfering: list[str]
) -> None:
    memory_id = terminal.write("deploy the repo on branch main")
    row = terminal("upgrade", memory_id, "--category", "skills", "--json").json["memory"]
    assert interfering == ["people"]
    assert (row["category"], row["tags"]) == ("skills", ["meanwhile"])


def test_a_reminder_that_changes_at_that_moment_is_acknowledged(
    terminal: Any, interfering: list[str]
) -> None:
    reminder_id = terminal.write("tea tomorrow at 3pm", "--category", "reminders")
    assert terminal.ok("remind", "--done", reminder_id) == f"Done: {reminder_id[:8]}\n"
    assert interfering == ["reminders"]
    assert terminal.ok("remind", "--list") == "No reminders.\n"


def test_an_inbox_memory_whose_end_no_calendar_has_does_not_expire(terminal: Any) -> None:
    memory_id = terminal.write("far", "--now", "9999-12-31T00:00:00Z")
    assert terminal("read", memory_id, "--json").json["memory"]["expires_at"] is None


def test_a_dream_says_its_times_in_the_zone_of_now(terminal: Any) -> None:
    now = ("--now", "2026-05-06T10:00:00+08:00")
    terminal.write("call Bob tomorrow at 3pm", *now)
    assert " 2026-05-07 15:00 tomorrow at 3pm\n" in terminal.ok("dream", "--level", "3", *now)


def test_upkeep_mends_the_overview_a_killed_program_left_behind(terminal: Any) -> None:
    terminal.ok("consolidate")
    assert not (terminal.home / "memory.md").exists()
    terminal.write("green tea", "--category", "skills")
    overview = (terminal.home / "memory.md").read_text()
    for command in (("consolidate",), ("dream",), ("decay",), ("notify",)):
        (terminal.home / "memory.md").write_text("old")
        terminal.ok(*command, "--dry-run")
        text = (terminal.home / "memory.md").read_text()
        assert text == "old"
        terminal.ok(*command)
        text = (terminal.home / "memory.md").read_text()
        assert text == overview
