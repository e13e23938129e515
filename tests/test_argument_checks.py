"""Wrong arguments of the library's verbs are refused by name, in the same way by every verb."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memoranda import Draft, InvalidInput, Memory, ProjectNotFound, Query, open_memory
from memoranda.api import _CHECKS
from memoranda.argument_checks import check_of

CHECKED_BY_THE_VERB = {
    "write.draft",
    "write_many.drafts",
    "edit.edit",
    "configure.value",
    "reindex.progress",
}
"""The parameters that the signature alone cannot check."""
ARGUMENTS: dict[str, Any] = {
    "list": {},
    "search": {"query": "red"},
    "recent": {},
    "directory": {"project": "notes"},
    "context": {"question": "red"},
    "related": {"ref": "Apples"},
    "log": {},
    "revisions": {"change": 1},
    "review": {},
    "undo": {},
    "restore": {"ref": "notes/Apples.md"},
    "read": {"ref": "Apples"},
    "find": {"ref": "Apples"},
    "move": {"ref": "Apples", "destination": "fruit/"},
    "delete": {"ref": "Apples"},
    "edit": {"ref": "Apples", "edit": None},
    "erase": {"agent": "claude", "dry_run": True},
    "tag": {"ref": "Apples"},
    "remind": {"text": "tea", "at": "tomorrow at 3pm"},
}
"""Valid arguments of the verbs that take what a test gets wrong."""
HUGE = 10**30


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with open_memory(tmp_path / "home", watch=False) as opened:
        opened.write(Draft("Apples are red", title="Apples"))
        yield opened


def parameters() -> dict[str, str]:
    """The type hint of each parameter of each public verb, by `verb.parameter`."""
    hints: dict[str, str] = {}
    for verb, method in inspect.getmembers(Memory, inspect.isfunction):
        if not verb.startswith("_"):
            for name, parameter in inspect.signature(method).parameters.items():
                if name != "self":
                    hints[f"{verb}.{name}"] = parameter.annotation
    return hints


def verbs_with(name: str) -> list[str]:
    return [verb for verb in ARGUMENTS if f"{verb}.{name}" in parameters()]


def refused_calls(memory: Memory, name: str, value: object) -> dict[str, str]:
    """The answer of each verb that takes the parameter, if the value is wrong there."""
    answers: dict[str, str] = {}
    for verb in verbs_with(name):
        with pytest.raises(InvalidInput) as refusal:
            getattr(memory, verb)(**ARGUMENTS[verb] | {name: value})
        answers[verb] = str(refusal.value)
    return answers


def test_every_parameter_of_a_verb_is_checked() -> None:
    unchecked = {name for name, hint in parameters().items() if check_of(hint, _CHECKS) is None}
    assert unchecked == CHECKED_BY_THE_VERB


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("limit", -1, "`limit` must be at least 0; got -1."),
        ("limit", HUGE, f"`limit` must be at most {10**15}; got {HUGE}."),
        ("limit", 1.5, "`limit` must be a whole number; got 1.5."),
        ("limit", True, "`limit` must be a whole number; got True."),
        ("limit", None, "`limit` must be a whole number; got None."),
        ("offset", -3, "`offset` must be at least 0; got -3."),
        ("offset", "x", "`offset` must be a whole number; got 'x'."),
        ("depth", 0, "`depth` must be at least 1; got 0."),
        ("max_tokens", 0, "`max_tokens` must be at least 1; got 0."),
        ("change", -HUGE, f"`change` must be at least {-(10**15)}; got {-HUGE}."),
        ("project", 5, "`project` must be a text; got 5."),
        ("projects", "notes", "`projects` must be a list of texts; got 'notes'."),
        ("projects", [5], "`projects` must be a list of texts; got [5]."),
        ("tags", None, "`tags` must be a list of texts; got None."),
        ("dry_run", "no", "`dry_run` must be True or False; got 'no'."),
        ("since", "yesterday", "`since` must be a datetime; got 'yesterday'."),
    ],
)
def test_a_wrong_value_is_refused_alike_by_each_verb_that_takes_it(
    memory: Memory, name: str, value: object, sentence: str
) -> None:
    answers = refused_calls(memory, name, value)
    assert answers
    assert set(answers.values()) == {sentence}


def test_a_time_without_a_zone_is_refused_with_the_remedy(memory: Memory) -> None:
    moment = datetime(2026, 5, 6)
    for name in ("as_of", "since"):
        for answer in refused_calls(memory, name, moment).values():
            assert answer.startswith(f"`{name}` must be a datetime with a time zone; got datetime")
    with pytest.raises(InvalidInput, match="`at` must be a datetime with a time zone") as refusal:
        memory.restore("notes/Apples.md", at=moment)
    assert "astimezone()" in refusal.value.hint


def test_a_project_that_does_not_exist_is_named_by_each_verb(memory: Memory) -> None:
    for name, value in (("project", "nope"), ("projects", ["nope"])):
        verbs = [verb for verb in verbs_with(name) if verb != "edit"]
        assert verbs
        for verb in verbs:
            with pytest.raises(ProjectNotFound, match='No project "nope"'):
                getattr(memory, verb)(**ARGUMENTS[verb] | {name: value})
    with pytest.raises(ProjectNotFound):
        memory.session.passed_over("red", projects=("nope",))


@pytest.mark.parametrize("ref", [5, None, ["Apples"], ("notes",), ("notes", 5)])
def test_what_cannot_name_a_note_is_refused(memory: Memory, ref: Any) -> None:
    calls = (memory.read, memory.find, memory.backlinks, memory.delete, memory.related)
    for call in calls:
        with pytest.raises(InvalidInput, match="`ref` must be a text, a pair"):
            call(ref)
    with pytest.raises(InvalidInput, match="`more` must be"):
        memory.delete("Apples", "Apples", ref)
    with pytest.raises(InvalidInput, match="`refs` must be"):
        memory.erase(ref, dry_run=True)
    assert memory.read("Apples").title == "Apples"


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("search_type", "titel", 'invalid search_type "titel"'),
        ("order", "size", 'invalid order "size"'),
        ("category", "preference", 'invalid category "preference"'),
        ("phase", "new", 'invalid phase "new"'),
        ("scope", "mine", 'invalid scope "mine"'),
        ("tags", "ui", "`tags` must be a list of texts"),
        ("ids", 5, "`ids` must be a list of texts"),
        ("folder", None, "`folder` must be a text"),
        ("after", "yesterday", "`after` must be a datetime"),
        ("as_of", datetime(2026, 5, 6), "`as_of` must be a datetime with a time zone"),
        ("pinned", 1, "`pinned` must be True or False"),
        ("metadata", ["status"], "`metadata` must be a dict"),
    ],
)
def test_a_wrong_field_of_a_query_is_refused_by_lists_and_searches(
    memory: Memory, field: str, value: Any, sentence: str
) -> None:
    query = Query("red").replace(**{field: value})
    for call in (memory.list, memory.search):
        with pytest.raises(InvalidInput) as refusal:
            call(query)
        assert str(refusal.value).startswith(sentence)


def test_a_search_type_with_a_wrong_letter_is_guessed(memory: Memory) -> None:
    with pytest.raises(InvalidInput) as refusal:
        memory.search(Query("Apples", search_type="titel"))
    assert refusal.value.hint == "Did you mean title? One of: text, title, permalink."


@pytest.mark.parametrize(
    ("field", "value"),
    [("title", 5), ("project", ["notes"]), ("scope", None), ("expires", "soon"), ("metadata", 5)],
)
def test_a_wrong_field_of_a_draft_is_named(memory: Memory, field: str, value: Any) -> None:
    with pytest.raises(InvalidInput, match=f"`{field}` must be"):
        memory.write(Draft("text", **{field: value}))
    with pytest.raises(InvalidInput, match=f"`{field}` must be"):
        memory.supersede("Apples", Draft("text", **{field: value}))


def test_lines_to_import_are_lines(memory: Memory) -> None:
    wrong_lines: Any
    for wrong_lines in ("{}\n", 5, None, [5]):
        with pytest.raises(InvalidInput, match="`lines` must be a list of lines"):
            memory.import_(wrong_lines)


@pytest.mark.parametrize("nothing", [{}, {"agent": ""}, {"source": ""}, {"observation": "x"}])
def test_an_erasure_of_nothing_is_refused(memory: Memory, nothing: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="erase needs a ref, an agent, a project or a source"):
        memory.erase(**nothing)


def test_what_names_no_question_and_no_setting_is_refused(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match="`question` must be the key"):
        memory.decide(5, "y")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r'unknown setting "daemon.intervall"') as refusal:
        memory.configure("daemon.intervall", "5m")
    assert "daemon.interval" in refusal.value.hint
    assert not (memory.home / "config.yaml").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"agent": "a b"}, 'invalid agent "a b"'),
        ({"agent": ""}, 'invalid agent ""'),
        ({"agent": "owner"}, 'invalid agent "owner"'),
        ({"agent": 5}, "`agent` must be a text; got 5."),
        ({"only": "notes"}, "`only` must be a list of texts; got 'notes'."),
        ({"projects": ["notes"]}, "`projects` must be a dict; got ['notes']."),
        ({"projects": {"a/b": "/tmp"}}, "invalid project name: a/b"),
        ({"projects": {"x": 5}}, "`projects['x']` must be a path; got 5."),
        ({"home": 5}, "`home` must be a path; got 5."),
    ],
)
def test_a_memory_is_opened_with_valid_names_only(
    tmp_path: Path, arguments: dict[str, Any], sentence: str
) -> None:
    home = tmp_path / "home"
    with pytest.raises(InvalidInput) as refusal:
        open_memory(**{"home": home, "watch": False} | arguments)
    assert str(refusal.value) == sentence
    assert not home.exists()


def test_only_projects_that_exist_can_be_the_only_ones(tmp_path: Path) -> None:
    with pytest.raises(ProjectNotFound, match=r'No project "zz"\. Projects: banks, categories'):
        open_memory(tmp_path, only=["notes", "zz"], watch=False)
    with open_memory(tmp_path, only=["Notes"], watch=False) as memory:
        assert [project.name for project in memory.projects] == ["notes"]


def test_valid_arguments_of_other_types_are_taken(memory: Memory) -> None:
    class Name(str):
        pass

    assert memory.list(Query(tags=["ui"])).total == 0  # type: ignore[arg-type]
    assert memory.recent(projects=("notes",))[1] == 1
    assert memory.read(Name("Apples")).title == "Apples"
    assert memory.read(("notes", "Apples.md")).title == "Apples"
    assert memory.log(since=datetime(2020, 1, 1, tzinfo=UTC))
    assert memory.tag("Apples", iter(["ui"])).tags == ("ui",)  # type: ignore[arg-type]
