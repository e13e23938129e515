"""Dreams (contract 001, 6; acceptance tests 4, 5 and 13)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contract.language_model import LanguageModel, language_model
from jobs.homes import FOUR, MOMENT, ONE, THREE, TWO, Home
from memoranda.jobs import dream, lifecycle
from memoranda.jobs.job import last_dream


def done(dreamt: dream.Dream) -> list[tuple[str, str, str | None]]:
    """(verb, id, category or target) of a dream's actions; no step may have failed."""
    assert [outcome.failure for outcome in dreamt.outcomes if outcome.failure] == []
    return [(action.verb, action.id, action.category or action.target) for action in dreamt.actions]


def fill(home: Home) -> None:
    """Something for every step of a deep dream, also of what one step leaves to the next."""
    home.put(
        ONE,
        "Kestrel is our billing service, version 4.2.7 runs on hawk-prod",
        "project",
        tags=("billing",),
    )
    home.put(
        TWO,
        "We learned that hawk-prod with Kestrel needs 4.2.7 or newer",
        "lessons",
        tags=("billing",),
    )
    home.write("the red fox jumps over the lazy dog every single morning")
    home.write("the red fox jumps over the lazy dog every single morning\nand sleeps")
    home.write("the red fox jumps over the lazy cat every single morning", "habits")
    home.write(f"read [[{ONE}]] and [[the red fox jumps over the lazy dog every single morning]]")
    home.write("偏好简洁的回答", scope="agent:x")


@pytest.mark.promise("001-17.5")
def test_a_light_dream_empties_the_inbox_and_says_which_words_decided(home: Home) -> None:
    texts = ("lesson: never force push", "偏好简洁的回答", "xyz")
    a, b, c = (home.write(text) for text in texts if home.later(seconds=1) is None)
    created = home.info(a).created
    home.later(hours=1)
    dreamt = dream.run(home.memory, 1)
    assert done(dreamt) == [
        ("classify", a, "lessons"),
        ("classify", b, "preferences"),
        ("classify", c, "knowledge"),
    ]
    assert [action.words for action in dreamt.actions] == [("lesson",), ("偏好",), ()]
    info = home.info(a)
    assert (info.phase, info.category, info.expires, info.created) == (
        "organized",
        "lessons",
        None,
        created,
    )
    assert home.file(a).parent.name == "lessons"


def test_a_medium_dream_merges_what_is_the_same_and_links_what_is_similar(home: Home) -> None:
    text = "the quick red fox of our neighbours jumps over that lazy old dog every single"
    home.put(ONE, f"{text} morning")
    home.put(TWO, f"Intro\n{text} morning", "habits")
    home.put(THREE, f"{text} evening", "people")

    assert done(dream.run(home.memory, 2)) == [("merge", ONE, TWO), ("link", TWO, THREE)]
    assert home.info(ONE).id == TWO
    links = home.info(THREE).links
    assert links == (TWO,)


def test_a_wikilink_becomes_a_link_both_ways(home: Home) -> None:
    bob = home.write("Bob", "people")
    note = home.write("ask [[bob]] and [[nobody]]", "project")
    assert done(dream.run(home.memory, 2)) == [("link", note, bob)]
    assert (home.info(note).links, home.info(bob).links) == ((bob,), (note,))


def test_a_wikilink_of_a_note_just_merged_leads_from_the_survivor(home: Home) -> None:
    bob = home.write("Bob", "people")
    text = "ask [[Bob]] about the very long list of open questions"
    home.put(ONE, text)
    home.put(TWO, f"{text}\nat once")

    assert done(dream.run(home.memory, 2)) == [("merge", ONE, TWO), ("link", TWO, bob)]


def test_a_deep_dream_links_across_categories_and_says_why(home: Home) -> None:
    fill(home)
    dreamt = dream.run(home.memory, 3)
    assert ("link", ONE, TWO) in done(dreamt)
    (row,) = [link for link in dreamt.report["report"]["links"] if link["b"] == TWO]
    assert row["a"] == ONE
    assert row["a_category"] == "project"
    assert row["b_category"] == "lessons"
    assert 'tag "billing"' in row["reason"]
    assert 'term "kestrel"' in row["reason"]
    report_line = f"  {ONE[:8]} (project) <-> {TWO[:8]} (lessons): {row['reason']}"
    assert report_line in dream.report_lines(dreamt.report["report"], None)


@pytest.mark.promise("001-17.4")
@pytest.mark.parametrize("level", dream.LEVELS)
def test_a_dry_run_changes_nothing_and_names_the_actions_after_which_a_second_dream_has_none(
    home: Home, level: int
) -> None:
    fill(home)
    home.later(hours=1)
    before = home.everything()
    planned = dream.run(home.memory, level, dry_run=True)
    assert home.everything() == before
    dreamt = dream.run(home.memory, level)
    assert done(dreamt)
    assert [action.document() for action in planned.actions] == [
        action.document() for action in dreamt.actions
    ]
    assert planned.report == dreamt.report
    before = home.tree()
    assert done(dream.run(home.memory, level)) == []
    assert home.tree() == before


@pytest.mark.promise("001-17.4")
def test_after_a_deep_dream_no_other_job_finds_anything_to_do(home: Home) -> None:
    fill(home)
    dream.run(home.memory, 3)
    before = home.tree()
    for outcome in lifecycle.consolidate(home.memory):
        assert not outcome.actions
    assert done(dream.run(home.memory, 2)) == []
    assert home.tree() == before
    home.memory.resolve_links()
    assert done(dream.run(home.memory, 3)) == []


@pytest.mark.promise("001-17.5")
def test_ids_and_times_of_creation_survive_a_deep_dream(home: Home) -> None:
    fill(home)
    before = {memory.id: (memory.created, memory.source) for memory in home.upkeep.every()}
    home.later(days=1)
    merged = {action.id for action in dream.run(home.memory, 3).actions if action.verb == "merge"}
    after = {memory.id: (memory.created, memory.source) for memory in home.upkeep.every()}

    assert {key: value for key, value in before.items() if key not in merged} == {
        key: value for key, value in after.items() if key in before
    }
    assert len(merged) == 1
    for memory_id in before:
        assert home.memory.read(memory_id)


def test_every_action_of_a_dream_can_be_taken_back(home: Home) -> None:
    fill(home)
    before = home.tree()
    actions = dream.run(home.memory, 3).actions
    for _ in actions:
        home.memory.undo()
    assert home.forgotten_undos() == before
    again = {
        (action.verb, action.id, action.target) for action in dream.run(home.memory, 3).actions
    }
    assert again.isdisjoint((action.verb, action.id, action.target) for action in actions)


def test_the_report_is_kept_and_a_light_dream_without_work_leaves_it(home: Home) -> None:
    fill(home)
    dreamt = dream.run(home.memory, 3)
    assert dream.load_report(home.memory.home) == dreamt.report
    assert last_dream(home.memory.home) == MOMENT
    home.later(hours=3)
    dream.run(home.memory, 1)
    stored_report = dream.load_report(home.memory.home)
    assert stored_report == dreamt.report | {"last_dream": "2026-05-06T13:00:00Z"}
    assert last_dream(home.memory.home) == home.now


@pytest.mark.promise("001-17.13")
def test_an_agent_sees_of_a_report_only_what_is_about_memories_it_sees(home: Home) -> None:
    fill(home)
    dreamt = dream.run(home.memory, 3)
    assert dreamt.report["report"]["classified"]["preferences"] == 1
    seen_report = dream.report_seen_by(home.memory.as_caller("y"), dreamt.report)
    assert "preferences" not in seen_report["report"]["classified"]
    assert "preferences" in seen_report["report"]["empty_categories"]
    (foreign,) = [memory.id for memory in home.upkeep.every() if memory.scope == "agent:x"]
    assert foreign not in json.dumps(seen_report)
    assert foreign in json.dumps(dream.report_seen_by(home.memory.as_caller("x"), dreamt.report))
    assert seen_report["processed"] == dreamt.report["processed"] - 1
    assert len(seen_report["actions"]) == dreamt.report["processed"] - 1


def test_idle_time_is_counted_from_the_last_change_that_upkeep_did_not_make(home: Home) -> None:
    assert home.memory.last_change("daemon") is None
    memory_id = home.write("lesson learned")
    home.later(hours=1)
    dream.run(home.memory.as_caller(None, "daemon"), 1)
    home.memory.read(memory_id)
    home.upkeep.fold()
    assert home.memory.last_change("daemon") == MOMENT
    dream.run(home.memory, 1)
    assert home.memory.last_change("daemon") == MOMENT
    home.memory.tag(memory_id, add=["x"])
    assert home.memory.last_change("daemon") == home.now


@pytest.fixture
def model() -> Iterator[LanguageModel]:
    with language_model() as model:
        yield model


@pytest.fixture
def helped(tmp_path: Path, model: LanguageModel) -> Iterator[Home]:
    home = Home(tmp_path / "home", f'llm:\n  base_url: "{model.url}"\n  model: small\n')
    with home.memory:
        yield home


def deep(home: Home, level: int = 3) -> dream.Dream:
    return dream.run(home.memory, level, endpoint=dream.endpoint_of(home.memory.settings))


def answers(model: LanguageModel, *replies: Any) -> None:
    """Let the model give these answers, one after the other."""
    rest = [reply if isinstance(reply, str) else json.dumps(reply) for reply in replies]

    def content(self: Any = None) -> bytes:
        text = rest.pop(0) if rest else "{}"
        return json.dumps(
            {"choices": [{"message": {"role": "assistant", "content": text}}]}
        ).encode()

    model.answer = content  # type: ignore[method-assign]


def test_the_model_is_asked_only_about_what_the_table_says_nothing_of(
    helped: Home, model: LanguageModel
) -> None:
    sure = helped.write("lesson learned")
    helped.later(seconds=1)
    unsure = helped.write("copper conducts heat badly")
    answers(model, {"categories": {unsure: "soul"}}, {"links": []})
    dreamt = deep(helped)
    assert done(dreamt) == [("classify", sure, "lessons"), ("classify", unsure, "soul")]
    assert dreamt.actions[1].reason == "soul (the language model's choice)"
    asked_memories = json.loads(model.asked[0][2]["messages"][1]["content"])
    ids = [asked_memory["id"] for asked_memory in asked_memories]
    assert ids == [unsure]
    assert model.asked[0][2]["temperature"] == 0


def test_below_level_three_and_without_configuration_nobody_is_asked(
    helped: Home, model: LanguageModel
) -> None:
    helped.write("copper conducts heat badly")
    deep(helped, 2)
    assert model.asked == []


@pytest.mark.parametrize(
    "answer",
    [
        "no JSON",
        [],
        {},
        {"categories": []},
        {"categories": {"ID": "nonsense"}},
        {"categories": {"ID": "inbox"}},
        {"categories": {"ID": ["soul"]}},
        {"categories": {"ID": "soul", ONE: "soul"}},
        None,
    ],
)
def test_without_an_answer_that_keeps_the_rules_the_table_decides(
    helped: Home, model: LanguageModel, answer: Any
) -> None:
    unsure = helped.write("copper conducts heat badly")
    model.status = model.status if answer is not None else 500
    answers(model, json.dumps(answer).replace("ID", unsure) if answer != "no JSON" else answer)
    assert done(deep(helped)) == [("classify", unsure, "knowledge")]


def test_the_model_may_link_what_this_dream_organized(helped: Home, model: LanguageModel) -> None:
    helped.put(ONE, "the telescope stands in the garden shed")
    fresh = helped.write("my favorite: the garden at night")
    a, b = sorted((ONE, fresh))
    answers(model, {"links": [{"a": b, "b": a, "reason": "both are about the garden"}]})
    dreamt = deep(helped)
    assert done(dreamt) == [("classify", fresh, "preferences"), ("link", a, b)]
    assert dreamt.actions[1].reason == "both are about the garden (the language model's)"
    count = len(model.asked)
    assert done(deep(helped)) == []
    assert len(model.asked) == count


@pytest.mark.parametrize(
    "row",
    [
        {"a": "FRESH", "b": "FRESH", "reason": "x"},
        {"a": "FRESH", "b": THREE, "reason": "x"},
        "x",
        {"a": "FRESH"},
        {"a": "FRESH", "b": TWO, "reason": "another scope"},
        {"a": "FRESH", "b": ONE, "reason": " "},
        {"a": ONE, "b": FOUR, "reason": "neither is new"},
        {"a": "FRESH", "b": ["x"], "reason": "x"},
    ],
)
def test_a_link_that_breaks_a_rule_is_not_made(
    helped: Home, model: LanguageModel, row: Any
) -> None:
    helped.put(ONE, "the telescope stands in the garden shed")
    helped.put(FOUR, "a garden has beds")
    helped.put(TWO, "the garden of somebody else", scope="agent:x")
    fresh = helped.write("my favorite: the garden at night")
    answers(model, json.dumps({"links": [row]}).replace("FRESH", fresh))

    assert done(deep(helped)) == [("classify", fresh, "preferences")]


def test_the_model_gets_no_text_of_another_scope_and_may_not_exceed_the_limits(
    helped: Home, model: LanguageModel
) -> None:
    other_ids = []
    for n in range(5):
        memory_id = f"{n}0000000-1111-4111-8111-111111111111"
        other_ids.append(helped.put(memory_id, f"garden number {n}"))
    helped.put(TWO, "the garden of somebody else", scope="agent:x")
    fresh = helped.write("my favorite: the garden at night")
    links = [{"a": fresh, "b": other_id, "reason": "garden"} for other_id in other_ids]
    answers(model, {"links": links})
    linked = [verb for verb, *_ in done(deep(helped)) if verb == "link"]

    assert len(linked) == dream.MOST_LINKS
    assert "somebody else" not in model.asked[0][2]["messages"][1]["content"]


@pytest.mark.promise("001-17.4")
def test_resolve_links_a_second_time_finds_nothing_and_changes_no_byte(home: Home) -> None:
    bob = home.write("Bob", "people")
    note = home.write("ask [[bob]] and [[nobody]]", "project")
    home.write("ask [[bob]] too", "people", metadata={"locked": True})
    before = home.tree()
    planned = home.memory.resolve_links(dry_run=True)
    assert home.tree() == before
    resolved = home.memory.resolve_links()
    assert resolved.resolved == 1
    assert resolved.added == 2
    assert resolved.unresolved == [(note, "nobody")]
    assert resolved.actions == planned.actions
    links = home.info(bob).links
    assert links == (note,)
    before = home.tree()
    resolved = home.memory.resolve_links().resolved
    assert resolved == 0
    assert home.tree() == before


@pytest.mark.parametrize(
    "stored_text",
    [
        "{bad",
        "[]",
        '{"last_dream": "2026-05-06T10:00:00Z", "level": 3, "actions": [], "report": {}}',
        '{"last_dream": 1, "level": 3, "processed": 1, "actions": [], "report": {"links": []}}',
    ],
)
def test_a_report_that_is_not_whole_is_none_and_the_next_dream_makes_it_anew(terminal, stored_text):
    terminal.write("lesson: test first")
    (terminal.home / ".memoranda" / "dream-report.json").write_text(stored_text)

    assert terminal.ok("dream", "--report") == "No dream yet.\n"
    assert terminal.ok("dream") == "Dream (level 1) processed 1 items\n"
    assert "Classified: lessons 1\n" in terminal.ok("dream", "--report")
