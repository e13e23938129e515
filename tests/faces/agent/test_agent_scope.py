"""As agent X nothing of agent:Y is there (contract 001, 1 and 17.13); the same over the command:
test_001_scope.py.
"""

from __future__ import annotations

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


def test_the_ids_of_foreign_memories_once_unlinked_are_not_shown(
    desk: Any, refs: dict[str, str]
) -> None:
    memory = desk.memory
    memory.unlink(memory.memory_id(refs["global"]), memory.memory_id(refs["agent:y"]))
    assert desk("memory_read", id=refs["global"])["unlinked"] == [refs["agent:y"]]
    assert "unlinked" not in desk.as_agent("x")("memory_read", id=refs["global"])


def test_nobody_writes_with_the_scope_of_another(desk: Any, refs: dict[str, str]) -> None:
    x = desk.as_agent("x")
    assert (
        x.error("memory_write", {"content": "a", "scope": "agent:y"}) == 'invalid scope "agent:y"'
    )
    own_note = x.write("a", scope="agent:x")
    assert (
        desk.as_agent("y").error("memory_read", {"id": own_note}) == f"memory not found: {own_note}"
    )
