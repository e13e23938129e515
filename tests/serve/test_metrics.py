"""`/metrics`, `/readyz` and `/healthz`: how a server says how it is (docs/http.md)."""

from __future__ import annotations

import re

import pytest

from memoranda.errors import StorageError
from serve.web import ACCEPT, LIST, bearer, tool

pytestmark = pytest.mark.anyio


def values(text: str) -> dict[str, float]:
    """The samples of a page in the text form of Prometheus; every line of it must be well formed."""
    values_found = {}
    types = {}
    for line in text.splitlines():
        described = re.fullmatch(r"# (HELP|TYPE) (memoranda_[a-z_]+) (.+)", line)
        if described:
            types[described[2]] = described[3]
            continue
        sample = re.fullmatch(
            r'(memoranda_[a-z_]+)((?:\{(?:[a-z]+="[^"\\]*",?)+\})?) ([0-9.e+-]+|\+Inf)', line
        )
        assert sample, line
        assert re.sub(r"_(bucket|sum|count)$", "", sample[1]) in types or sample[1] in types, line
        assert sample[1] + sample[2] not in values_found, line
        values_found[sample[1] + sample[2]] = float(sample[3])
    return values_found


async def test_calls_are_counted_by_tool_and_outcome_with_their_time(web, client):
    token, scraper = web.token(), web.token("prometheus", scope="read")
    for name, arguments in [
        ("write_note", {"title": "Tea", "content": "x", "directory": ""}),
        ("read_note", {"identifier": "tea"}),
        ("read_note", {"identifier": "none"}),
        ("no_such_tool", {}),
    ]:
        await tool(client, token, name, **arguments)
    await client.post("/mcp", json=LIST, headers=ACCEPT)
    answer = await client.get("/metrics", headers=bearer(scraper))
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    metrics = values(answer.text)
    assert metrics['memoranda_calls_total{tool="write_note",outcome="ok"}'] == 1
    assert metrics['memoranda_calls_total{tool="read_note",outcome="ok"}'] == 1
    assert metrics['memoranda_calls_total{tool="read_note",outcome="error"}'] == 1
    assert not any("no_such_tool" in name for name in metrics)
    assert metrics['memoranda_call_seconds_count{tool="read_note"}'] == 2
    assert metrics['memoranda_call_seconds_bucket{tool="read_note",le="+Inf"}'] == 2
    groups = [
        value
        for name, value in metrics.items()
        if name.startswith('memoranda_call_seconds_bucket{tool="read')
    ]
    assert groups == sorted(groups)
    assert metrics['memoranda_call_seconds_sum{tool="read_note"}'] > 0
    assert metrics['memoranda_requests_total{status="401"}'] == 1
    assert (
        metrics["memoranda_notes"],
        metrics["memoranda_ready"],
        metrics["memoranda_index_lag_changes"],
    ) == (1, 1, 0)
    assert "memoranda_lock_waits_total" in metrics


async def test_only_the_owners_tokens_for_everything_see_the_numbers(web, client):
    web.access.add_space("team")
    web.access.set_member("team", "ann", "owner")
    kinds = {
        None: 401,
        web.token("few", projects=("notes",)): 404,
        web.token("ann", member="ann", scope="admin"): 404,
        web.token("reads", scope="read"): 200,
        web.token("admin", scope="admin"): 200,
    }
    for token, status in kinds.items():
        answer = await client.get("/metrics", headers=bearer(token) if token else {})
        assert answer.status_code == status, token
        assert ("memoranda_notes" in answer.text) == (status == 200)
    answer = await client.get("/metrics", headers=bearer([*kinds][-1]) | {"host": "evil.example"})

    assert answer.status_code == 421


async def test_nothing_of_what_was_said_is_among_the_numbers(web, client):
    token = web.token("secret-name")
    await tool(client, token, "write_note", title="Payroll", content="hunter2", directory="")
    text = (await client.get("/metrics", headers=bearer(token))).text
    assert not any(word in text for word in ("Payroll", "hunter2", "secret-name", "laptop", token))


async def test_a_server_whose_memory_cannot_be_read_lives_and_is_not_ready(
    web, client, monkeypatch
):
    def broken(self):
        raise StorageError("index.db", "the disk reported an input/output error")

    monkeypatch.setattr(type(web.memory), "lag", broken)
    answer = await client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json() == {"status": "unavailable", "lag": None}
    answer = await client.get("/healthz")
    assert answer.status_code == 200
    metrics = values((await client.get("/metrics", headers=bearer(web.token("m")))).text)
    assert metrics["memoranda_ready"] == 0
    assert "memoranda_notes" not in metrics


@pytest.mark.parametrize(("lag", "code", "status"), [(0, 200, "ready"), (7, 503, "behind")])
async def test_a_server_that_is_behind_says_by_how_much_and_takes_no_calls_from_a_balancer(
    web, monkeypatch, client, lag, code, status
):
    monkeypatch.setattr(type(web.memory), "lag", lambda self: lag)
    answer = await client.get("/readyz")
    assert (answer.status_code, answer.json()) == (code, {"status": status, "lag": lag})
    assert (await client.get("/healthz")).json() == {"status": "ok"}


async def test_who_asks_often_does_not_ask_the_memory_each_time(web, monkeypatch, client):
    calls = []
    lag = type(web.memory).lag
    monkeypatch.setattr(type(web.memory), "lag", lambda self: calls.append(1) or lag(self))
    monkeypatch.setattr("memoranda.serve.middleware._REUSE_SECONDS", 1e9)
    for _ in range(20):
        answer = await client.get("/readyz")
        assert answer.status_code == 200

    assert len(calls) == 1


async def test_a_token_is_told_of_the_notes_it_sees(web, client):
    token = {name: web.token(name) for name in ("alice", "bob")}
    private = "---\nscope: agent:bob\n---\nx\n"
    for title, content in (("Tea", "x\n"), ("Own", private)):
        await tool(client, token["bob"], "write_note", title=title, content=content, directory="")
    counts = {}
    for name, secret in token.items():
        answer = await client.get("/metrics", headers=bearer(secret))
        counts[name] = values(answer.text)["memoranda_notes"]

    assert counts == {"alice": 1, "bob": 2}
