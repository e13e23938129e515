"""One form for each kind of thing: what several faces say of the same note is the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memoranda import Draft, documents
from memoranda.documents.cutting import (
    compact,
    cut,
    largest_size,
    rows_that_fit,
    text_that_fits,
)
from memoranda.faces import registry
from memoranda.query import Query


def called(memory: Any, toolset: str, tool: str, **arguments: Any) -> Any:
    return registry([toolset], memory.settings).call(memory, tool, arguments)


@pytest.fixture
def tea(memory: Any) -> Any:
    draft = Draft("Anna likes tea", category="preferences", tags=("anna",))
    return memory.write(draft)


def test_memory_read_by_agent_tool_is_the_document_of_the_list(memory: Any, tea: Any) -> None:
    (listed,) = documents.notes(memory, memory.list(Query(), limit=0)[0])
    listed_by_tool = json.loads(called(memory, "agent", "memory_list").text)
    assert listed_by_tool == [listed]
    read = json.loads(called(memory, "agent", "memory_read", id=tea.id).text)
    assert read == listed | {"access_count": 1}


def test_command_and_agent_tool_give_the_same_document(terminal: Any) -> None:
    identity = terminal.write("Anna likes tea", "--category", "preferences")
    listed = terminal("list", "--json").json["memories"]
    reply = terminal("call", "memory_list", "{}", "--tools", "agent", "--json").json

    assert json.loads(reply["text"]) == listed
    assert listed[0]["id"] == identity


def test_hit_of_note_tool_has_the_values_of_the_hit_document(memory: Any) -> None:
    memory.write(Draft("The harbour opens in May", project="notes", title="Harbour", tags=("sea",)))
    (row,) = called(memory, "notes", "search_notes", query="harbour").data["results"]
    (hit,) = memory.search(Query(text="harbour"))
    document = documents.reference(hit.note) | documents.hit(hit)
    passage = document.pop("passage")
    del document["line"]

    assert row == {**document, "snippet": passage}


def test_project_is_the_same_for_command_and_note_tool(terminal: Any) -> None:
    listed = terminal("project", "list", "--json").json["projects"]
    structured = terminal("call", "list_memory_projects", "{}", "--json").json["structured"]
    assert structured == {"projects": listed}
    assert tuple(listed[0]) == documents.PROJECT_KEYS


def test_change_is_the_same_for_command_and_page(memory: Any, tea: Any) -> None:
    (change,) = memory.log(limit=1)
    document = documents.change(change)
    assert tuple(document)[: len(documents.CHANGE_KEYS)] == documents.CHANGE_KEYS
    assert (document["verb"], document["new_hash"]) == ("write", next(iter(change.texts())).new)


def test_link_to_what_an_agent_may_not_see_is_in_no_document(memory: Any) -> None:
    secret = memory.write(Draft("only mine", category="knowledge", scope="agent:claude"))
    public_note = memory.write(Draft("for all", category="knowledge"))
    memory.link(public_note.id, secret.id)
    info = memory.memory_id(public_note.id)
    links = documents.notes(memory, [info]).rows[0]["links"]
    assert links == [secret.id]
    other_agent = memory.as_caller("codex", "mcp")
    links = documents.notes(other_agent, [info]).rows[0]["links"]
    assert links == []


@pytest.mark.parametrize(
    "document",
    [
        {"results": [{"title": "t" * 3000, "n": n} for n in range(40)]},
        {"text": "深" * 90_000},
        {"rows": list(range(100_000))},
        {"deep": {"er": [["x" * 5000] * 100] * 20}},
    ],
)
def test_document_too_long_is_cut_to_its_room_and_stays_json(document: dict[str, Any]) -> None:
    text = cut(document, 20_000)
    assert len(text) <= 20_000
    assert json.loads(text).keys() - {"truncated"} == document.keys()


def test_document_that_fits_is_whole() -> None:
    document = {"title": "t", "rows": [1, 2]}
    assert cut(document, 100) == compact(document)


def test_largest_size_is_the_last_that_fits() -> None:
    assert largest_size(100, lambda size: 3 * size, 10) == 3
    assert largest_size(2, lambda size: 3 * size, 10) == 2
    assert largest_size(5, lambda size: 20 + size, 10) == 0
    assert rows_that_fit([3, 3, 3, 3], 10) == 3
    assert rows_that_fit([0, 0], 0) == 2
    assert rows_that_fit([], 5) == 0


@pytest.mark.parametrize("size", [0, 5, 98, 100])
def test_text_is_worded_few_times_and_whole_where_the_whole_fits(size: int) -> None:
    calls = []

    def text(part: int) -> str:
        calls.append(part)
        return "x" * part + ("" if part == 100 else "…")

    assert text_that_fits(100, text, size if size == 100 else size + 1) == text(size)
    assert len(calls) < 12
