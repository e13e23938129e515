"""An agent's token is told the same over HTTP with and without another agent's private notes: tools,
resources, completions, prompts, figures, `/api` and the page, byte for byte except ids and times.

The twin homes are those of `faces/test_isolation.py`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from faces.test_isolation import CANARIES, PROMPTS, SHARED, THEIRS, fill, shown
from memoranda.serve.page.routes import API, PAGES
from serve.web import ACCEPT, Web, bearer

GUESSES = ("amber", "quokka", "notes/quokka plan", "2111", "narwhal title", "notes/shared/ember")
"""What is asked for: of everybody, and of Bob alone."""
PARAMETERS = ("ref", "q", "note", "project", "category", "tag", "agent", "cluster", "month", "kind")
TOOL_CALLS = (
    ("list_directory", {"dir_name": "/", "depth": 4}),
    ("read_note", {"identifier": "quokka plan"}),
    ("read_note", {"identifier": "amber"}),
    ("recent_activity", {"timeframe": "5y"}),
    ("memory", {"command": "view", "path": "/memories"}),
    ("memory", {"command": "view", "path": "/memories/quokka"}),
    ("memory_read_graph", {}),
    ("memory_list_namespaces", {}),
    ("list", {}),
    ("memory_stats", {}),
)


def addresses() -> list[str]:
    """Every address that can be read, without and with each parameter."""
    paths = [f"/api{path}" for path in API] + [*PAGES]
    paths = [re.sub(r"\{[^}]*\}", "1", path) for path in paths]
    queries = []
    for name in PARAMETERS:
        queries += [f"{name}={guess}" for guess in GUESSES]
    api_queries = []
    for path in API:
        api_queries += [f"/api{path}?{query}" for query in queries if "{" not in path]
    return [*paths, *api_queries, "/metrics", "/", "/health", "/page/note/notes/quokka%20plan.md"]


def requests() -> list[tuple[str, dict[str, object]]]:
    """Every kind of request of MCP that reads."""
    plain = ["tools/list", "resources/list", "resources/templates/list", "prompts/list"]
    calls: list[tuple[str, dict[str, object]]] = [(method, {}) for method in plain]
    calls += [("tools/call", {"name": name, "arguments": more}) for name, more in TOOL_CALLS]
    for name in PROMPTS:
        for guess in GUESSES:
            calls.append(("prompts/get", {"name": name, "arguments": {"topic": guess}}))
    for guess in ("", "notes/", *GUESSES):
        reference = {"type": "ref/resource", "uri": "memory://{project}/{+path}"}
        argument = {"name": "path", "value": guess}
        context = {"arguments": {"project": "notes"}}
        completion = {"ref": reference, "argument": argument, "context": context}
        calls.append(("completion/complete", completion))
        calls.append(("resources/read", {"uri": f"memory://notes/{guess}".replace(" ", "%20")}))
    calls.append(("resources/read", {"uri": "memory://knowledge-graph"}))
    calls.append(("resources/read", {"uri": "thoughtbox://memory/graph"}))
    return calls


SCORES = r"(words|conversation|conversation_words|near|names|rare)(\\?\"?:? ?)\d+\.\d+"
"""Scores of a ranked search, which come from the words of all notes (docs/trust.md)."""


async def answers(client: httpx2.AsyncClient, secret: str) -> AsyncIterator[tuple[str, str]]:
    """What a caller is answered to everything, with what it asked."""
    for address in addresses():
        answer = await client.get(address, headers=bearer(secret))
        yield address, f"{answer.status_code} {answer.text}"
    for method, parameters in requests():
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}
        answer = await client.post("/mcp", json=body, headers=ACCEPT | bearer(secret))
        yield f"{method} {parameters}", f"{answer.status_code} {answer.text}"


def everything(root: Path) -> dict[str, str]:
    """What Alice is answered in a home, without what no two homes share."""
    web = Web(root)
    secret = web.token("alice", agent="alice", scope="write", rate=0, quota=0)

    async def whole() -> dict[str, str]:
        async with web.served() as client:
            return {
                request: re.sub(SCORES, "SCORE", shown(answer, root))
                async for request, answer in answers(client, secret)
            }

    try:
        return asyncio.run(whole())
    finally:
        web.close()


@pytest.mark.promise("trust-isolation")
def test_a_token_of_an_agent_is_answered_as_if_anothers_private_notes_did_not_exist(
    tmp_path: Path,
) -> None:
    both = tmp_path / "both/home"
    alone = tmp_path / "alone/home"
    fill(both, SHARED, THEIRS)
    fill(alone, SHARED)
    with_bob = everything(both)
    without_bob = everything(alone)
    assert len(with_bob) > 400
    different = [request for request in with_bob if with_bob[request] != without_bob[request]]
    assert different == [], (with_bob[different[0]], without_bob[different[0]])
    own_words = []
    for request, answer in with_bob.items():
        if any(name in answer and name not in request for name in CANARIES) and not any(
            name in without_bob[request] for name in CANARIES
        ):
            own_words.append(request)
    assert own_words == []
