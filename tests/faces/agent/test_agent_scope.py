"""As agent X nothing of agent:Y is there (contract 001, 1 and 17.13); the same over the command: test_001_scope.py."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytestmark = pytest.mark.promise("001-17.13")


@pytest.fixture
def refs(desk: Any) -> dict[str, str]:
    """Ids of a memory for all, one of x's and one of y's, all linked to each other."""
    scopes = ("global", "agent:x", "agent:y")
    refs = {scope: desk.write(f"secret of {scope}", scope=scope, tags="t") for scope in scopes}
    for a, b in (("global", "agent:x"), ("global", "agent:y"), ("agent:x", "agent:y")):
        desk.memory.link(desk.memory.memory_id(refs[a]), desk.memory.memory_id(refs[b]))
    return refs


def test_a_foreign_memory_is_not_found(desk: Any, refs: dict[str, str]) -> None:
    theirs = refs["agent:y"]
    for tool in ("memory_read", "memory_delete", "memory_tag"):
        for ref in (theirs, theirs[:8]):
            assert desk.as_agent("x").error(tool, {"id": ref}) == f"memory not found: {ref}"
    assert desk.as_agent("y")("memory_read", id=theirs)["tags"] == ["t"]


def test_a_foreign_memory_is_in_no_list_and_no_count(desk: Any, refs: dict[str, str]) -> None:
    x = desk.as_agent("x")
    for tool, arguments in (
        ("memory_list", {}), ("memory_search", {"query": "secret"}), ("memory_search", {"query": "agent", "tags": "t"}),
        ("memory_smart_search", {"query": "secret agent y"}), ("memory_list", {"scope": "agent:y"}),
        ("memory_smart_search", {"query": "secret", "scope": "agent:y"}),
    ):  # fmt: skip
        outcome = x.result(tool, **arguments)
        assert "agent:y" not in outcome["content"], tool
        assert refs["agent:y"] not in outcome["content"], tool
        answer = json.loads(outcome["content"])
        shown = answer["results"] if isinstance(answer, dict) else answer
        assert outcome["metadata"]["count"] == len(shown) <= 2
        if isinstance(answer, dict):
            assert answer["total_scored"] == len(shown)


def test_the_ids_of_foreign_memories_are_left_out_of_links(desk: Any, refs: dict[str, str]) -> None:
    x = desk.as_agent("x")
    assert x("memory_read", id=refs["global"])["links"] == [refs["agent:x"]]
    assert x("memory_read", id=refs["agent:x"])["links"] == [refs["global"]]
    assert {each["id"]: each["links"] for each in x("memory_list")} == {
        refs["global"]: [refs["agent:x"]],
        refs["agent:x"]: [refs["global"]],
    }
    assert len(desk("memory_read", id=refs["global"])["links"]) == 2


def test_the_ids_of_foreign_memories_once_unlinked_are_not_shown(desk: Any, refs: dict[str, str]) -> None:
    memory = desk.memory
    memory.unlink(memory.memory_id(refs["global"]), memory.memory_id(refs["agent:y"]))
    assert desk("memory_read", id=refs["global"])["unlinked"] == [refs["agent:y"]]
    assert "unlinked" not in desk.as_agent("x")("memory_read", id=refs["global"])


def test_the_context_of_an_agent_holds_nothing_foreign(desk: Any, refs: dict[str, str]) -> None:
    session = desk.as_agent("x").session
    assert sorted(session.inject_context("secret agent y").split("\n")) == ["secret of agent:x", "secret of global"]


def test_nobody_writes_with_the_scope_of_another(desk: Any, refs: dict[str, str]) -> None:
    x = desk.as_agent("x")
    assert x.error("memory_write", {"content": "a", "scope": "agent:y"}) == 'invalid scope "agent:y"'
    own = x.write("a", scope="agent:x")
    assert desk.as_agent("y").error("memory_read", {"id": own}) == f"memory not found: {own}"
