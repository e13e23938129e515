"""MCP over HTTP: who is let in, and what each caller is served (docs/http.md)."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest
from mcp import MCPError

from memoranda import Draft
from memoranda.engine import open_session
from memoranda.errors import ConfigError
from memoranda.serve.auth import Access, Budgets
from memoranda.serve.http import LIMIT, Place, host_and_port
from serve.web import ACCEPT, FAR, LIST, Web, bearer, official, rpc, tool, tools

pytestmark = pytest.mark.anyio


@pytest.mark.promise("http-revisions")
@pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
async def test_clients_of_both_revisions_find_every_toolset_with_a_token(web, mode, client):
    async with official(client, web.token(scope="admin"), mode=mode) as connected:
        names = {tool_found.name for tool_found in (await connected.list_tools()).tools}
        assert {"memory", "write_note", "memory_read_graph", "activate", "memory_recall"} <= names
        result = await connected.call_tool(
            "write_note", {"title": "Tea", "content": "green", "directory": ""}
        )
        assert not result.is_error, result
        read = await connected.call_tool("read_note", {"identifier": "tea"})
        assert "green" in read.content[0].text
        with pytest.raises(MCPError, match="Unknown tool: nothing"):
            await connected.call_tool("nothing", {})
        assert (await connected.list_prompts()).prompts


@pytest.mark.promise("http-refused")
async def test_what_is_wrong_about_a_request_is_said_by_its_status(web, client):
    good = web.token()
    old = web.token("old")
    late = web.token("late", lasts=web.now - web.now.replace(hour=11))
    far = "cpl_" + "x" * 43
    web.access.revoke("old")
    body = json.dumps(LIST)
    web.later(hours=2)
    wrong = [
        (401, {}, body),
        (401, {"authorization": f"Basic {good}"}, body),
        (401, {"authorization": "Bearer"}, body),
        (401, bearer(far), body),
        (401, bearer(old), body),
        (401, bearer(late), body),
        (401, bearer(good[:-1]), body),
        (401, bearer(good + " x"), body),
        (401, bearer("cpl_\x7f"), body),
        (401, bearer(far), "x" * (LIMIT + 1)),
        (421, bearer(good) | {"host": "evil.example"}, body),
        (421, bearer(good) | {"host": ""}, body),
        (421, bearer(good) | {"host": "127.0.0.1.evil.example:8377"}, body),
        (403, bearer(good) | {"origin": "https://evil.example"}, body),
        (403, {"origin": "null"}, body),
        (403, bearer(good) | {"origin": "http://localhost.evil.example"}, body),
        (413, bearer(good), "x" * (LIMIT + 1)),
        (400, bearer(good), "{"),
        (400, bearer(good), "[" * 100_000),
        (400, bearer(good), b"\xff\xfe"),
        (400, bearer(good), "[]"),
        (400, bearer(good), '{"id": 1}'),
        (400, bearer(good) | {"content-type": "text/plain"}, body),
        (406, bearer(good) | {"accept": "text/html"}, body),
        (400, bearer(good) | {"mcp-protocol-version": "1999-01-01"}, body),
        (200, bearer(good), body),
        (200, bearer(good) | {"origin": "http://localhost:3000"}, body),
    ]
    for status, headers, content in wrong:
        answer = await client.post("/mcp", content=content, headers=ACCEPT | headers)
        assert answer.status_code == status, (
            status,
            headers,
            answer.status_code,
            answer.text[:200],
        )
        assert "Traceback" not in answer.text
        assert answer.status_code != 401 or answer.headers["www-authenticate"].startswith("Bearer")
    for method in ("GET", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "PURGE"):
        answer = await client.request(method, "/mcp", headers=ACCEPT | bearer(good))
        assert (answer.status_code, "POST" in answer.headers["allow"]) == (405, True), method
    for path in (
        "/",
        "/mcp/x",
        "/s/",
        "/s/x/y",
        "/../etc/passwd",
        "/authorize",
        "/consent",
        "/app",
    ):
        answer = await client.post(
            path, content=body, headers=ACCEPT | bearer(good), follow_redirects=False
        )
        assert answer.status_code == 404, path
        assert answer.json()["error"] == "not_found", path


@pytest.mark.promise("http-refused")
async def test_a_slash_at_the_end_and_no_accept_header_change_nothing(web, client):
    headers = bearer(web.token()) | {"content-type": "application/json"}
    del client.headers["accept"]
    for path in ("/mcp", "/mcp/"):
        answer = await client.post(path, json=LIST, headers=headers)
        assert answer.status_code == 200, answer.text


@pytest.mark.promise("http-refused")
@pytest.mark.parametrize(
    ("content", "headers", "status", "code", "advice"),
    [
        ("x" * (LIMIT + 1), {}, 413, -32000, f"{LIMIT:,} bytes"),
        ("{", {}, 400, -32700, "Send one object"),
        ("", {}, 400, -32700, "Send one object"),
        ("[]", {}, 400, -32600, "Send one object"),
        ('[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', {}, 400, -32600, "Send one object"),
        ('{"id": 1}', {}, 400, -32600, "Send one object"),
        ("{}", {"content-type": "text/plain"}, 400, -32000, "Content-Type: application/json"),
    ],
)
async def test_a_body_that_is_not_taken_is_answered_in_json_with_what_to_send(
    web, client, content, headers, status, code, advice
):
    answer = await client.post(
        "/mcp", content=content, headers=ACCEPT | bearer(web.token()) | headers
    )
    error = answer.json()["error"]
    message = error["message"]
    assert (answer.status_code, error["code"]) == (status, code)
    assert advice in message
    # No words of a library.
    assert "JSONRPCRequest" not in message


@pytest.mark.promise("http-refused")
@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/s/team/mcp"])
async def test_a_get_of_mcp_is_told_to_post(web, client, path):
    answer = await client.get(path, headers=ACCEPT | bearer(web.token()))
    assert answer.status_code == 405
    assert "with POST" in answer.json()["error"]["message"]


@pytest.mark.promise("http-refused")
async def test_a_wrong_method_elsewhere_is_told_the_right_one(web, client):
    answer = await client.post("/healthz", content="x")
    assert answer.status_code == 405
    assert "with GET or HEAD" in answer.json()["error_description"]


@pytest.mark.promise("http-refused")
async def test_a_refused_host_or_origin_is_told_what_to_do(web, client):
    good = bearer(web.token())
    answer = await client.post("/mcp", json=LIST, headers=good | {"host": "notes.example\t<x>"})
    assert answer.status_code == 421
    message = answer.json()["error"]["message"]
    assert '"notes.example <x>"' in message
    message = answer.json()["error"]["message"]
    assert "--allow-host" in message
    answer = await client.post("/mcp", json=LIST, headers=good | {"origin": "https://a.example"})
    assert answer.status_code == 403
    message = answer.json()["error"]["message"]
    assert "--allow-origin" in message


@pytest.mark.promise("http-refused")
@pytest.mark.parametrize(
    "path",
    [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-authorization-server",
        "/.well-known/oauth-authorization-server/mcp",
        "/.well-known/openid-configuration",
        "/register",
    ],
)
async def test_discovery_is_answered_in_json_where_there_is_no_oauth(client, path):
    answer = await client.get(path)
    assert (answer.status_code, answer.json()["error"]) == (404, "not_found")


async def test_a_page_of_a_let_in_origin_may_ask_before_it_calls(client):
    preflight = {
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,mcp-method",
    }
    answer = await client.options("/mcp", headers={"origin": "http://localhost:6274"} | preflight)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == "http://localhost:6274"
    assert "mcp-name" in answer.headers["access-control-allow-headers"]
    answer = await client.options("/mcp", headers={"origin": "https://evil.example"} | preflight)
    assert answer.status_code == 403


async def test_without_tokens_a_caller_of_this_machine_is_who_its_client_says(tmp_path):
    web = Web(tmp_path / "home", is_open=True)
    new = {"title": "Mine", "content": "x", "directory": "", "metadata": {"scope": "agent:tester"}}
    async with web.served() as client:
        async with official(client) as connected:
            assert (await connected.list_tools()).tools
        body = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "write_note", "arguments": new},
        }
        answer = await client.post("/mcp", json=body, headers=ACCEPT | {"user-agent": "Tester/2.0"})
        assert answer.status_code == 200
        assert (
            await client.post("/mcp", json=LIST, headers=ACCEPT | bearer("wrong"))
        ).status_code == 401
    assert web.memory.find("mine").provenance.who == "agent:tester"
    web.close()


@pytest.mark.parametrize(
    "place",
    [
        Place("0.0.0.0", 1, is_open=True),
        Place("127.0.0.1", 1, is_open=True, public=FAR),
        Place("127.0.0.1", 1, public="http://memory.example.org"),
        Place("127.0.0.1", 1, public=FAR + "/memory"),
        Place("127.0.0.1", 1, public="nonsense"),
    ],
)
def test_a_place_where_anybody_could_call_is_refused(place):
    with pytest.raises(ConfigError):
        place.check()


def test_an_address_is_host_and_port():
    assert host_and_port("127.0.0.1:8377") == ("127.0.0.1", 8377)
    assert host_and_port("[::1]:80") == ("::1", 80)
    assert host_and_port("8377") == ("127.0.0.1", 8377)
    for wrong in ("localhost", "x:y", "1.2.3.4:99999", "http://x:80", ""):
        with pytest.raises(ConfigError, match="--http takes HOST:PORT"):
            host_and_port(wrong)


@pytest.mark.promise("http-scopes")
async def test_a_tool_a_token_may_not_use_is_not_there(web, client):
    read, write, admin = (web.token(scope, scope=scope) for scope in ("read", "write", "admin"))
    few = web.token("few", scope="admin", projects=["notes"])
    assert {"read_note", "search_notes"} <= await tools(client, read)
    assert not {"write_note", "memory", "delete_note", "memory_remember", "activate"} & await tools(
        client, read
    )
    assert "write_note" in await tools(client, write)
    for secret in (write, few):
        assert not {"create_memory_project", "delete_project"} & await tools(client, secret)
    assert "create_memory_project" in await tools(client, admin)
    assert "Unknown tool: write_note" in await tool(
        client, read, "write_note", title="x", content="y"
    )
    first = await rpc(
        client,
        read,
        "initialize",
        protocolVersion="2025-11-25",
        capabilities={},
        clientInfo={"name": "x", "version": "1"},
    )
    assert "persistent memory across" not in first["result"].get("instructions", "")
    assert web.memory.stats().projects.get("notes", 0) == 0


@pytest.mark.promise("http-projects")
async def test_what_a_token_may_not_see_does_not_exist_for_it(web, tmp_path, client):
    web.memory.add_project("work", str(tmp_path / "work"))
    web.memory.write(Draft("secret plan, see [[Lunch]]", title="Plan", project="work"))
    web.memory.write(Draft("soup at noon", title="Lunch", project="notes"))
    web.memory.write(Draft("mine alone", title="Own", project="notes", scope="agent:other"))
    plan = web.memory.find("plan")
    secret = web.token(projects=["notes"], agent="claude")
    all_token = web.token("all", agent="claude")
    assert "secret" in await tool(client, all_token, "read_note", identifier="plan")
    for refused in (plan.id, "plan", "Plan", plan.permalink, "memory://work/plan"):
        reply = await tool(client, secret, "read_note", identifier=refused)
        assert "secret" not in reply
    unknown = await tool(client, secret, "read_note", identifier="nowhere")
    assert (await tool(client, secret, "read_note", identifier="plan")) == unknown.replace(
        "nowhere", "plan"
    )
    for name, arguments in (
        ("search_notes", {"query": "secret plan"}),
        ("recent_activity", {}),
        ("list_memory_projects", {}),
        ("build_context", {"url": "memory://lunch"}),
        ("list_directory", {"project": "notes"}),
        ("write_note", {"title": "A", "content": "b", "project": "work"}),
        ("memory_read_graph", {}),
        ("list_directory", {"project": "work"}),
        ("delete_note", {"identifier": "plan"}),
    ):
        reply = (
            (await tool(client, secret, name, **arguments))
            .replace('"work"', "")
            .replace("secret plan", "")
        )
        assert not [word for word in ("secret", "Plan", str(tmp_path / "work")) if word in reply], (
            name,
            reply,
        )
    assert "soup" in await tool(client, secret, "search_notes", query="soup noon")
    assert "# 0 notes" in await tool(client, all_token, "search_notes", query="mine alone")
    assert "# Created" in await tool(
        client, secret, "write_note", title="New", content="kept", directory=""
    )
    assert web.memory.find("new").provenance.who == "agent:claude"
    assert web.memory.find("new").provenance.client.startswith("http")
    assert "secret" in web.memory.read(plan.id).text


async def listing_of(client, secret):
    """The answer to a call with this token."""
    return await client.post("/mcp", json=LIST, headers=ACCEPT | bearer(secret))


@pytest.mark.promise("http-rates")
async def test_more_calls_a_minute_than_a_token_may_make_are_refused_with_the_time_to_wait(
    web, client
):
    fast = web.token(rate=2)
    status_codes = [(await listing_of(client, fast)).status_code for _ in range(3)]
    assert status_codes == [200, 200, 429]

    refused = await listing_of(client, fast)
    assert refused.headers["retry-after"] == "31"
    message = refused.json()["error"]["message"]
    assert message.startswith("More than 2 calls a minute with this token.")


@pytest.mark.promise("http-rates")
async def test_call_after_the_time_to_wait_is_answered(web, client):
    fast = web.token(rate=1)
    await listing_of(client, fast)
    refused = await listing_of(client, fast)
    web.later(seconds=int(refused.headers["retry-after"]))
    assert (await listing_of(client, fast)).status_code == 200


@pytest.mark.promise("http-rates")
async def test_more_calls_a_day_than_a_token_may_make_are_refused_until_the_next_day(web, client):
    few = web.token("few", quota=3)
    status_codes = [(await listing_of(client, few)).status_code for _ in range(4)]
    assert status_codes == [200, 200, 200, 429]

    data = (await listing_of(client, few)).json()
    assert "3 calls a day" in data["error"]["message"]

    web.later(hours=13)
    assert (await listing_of(client, few)).status_code == 200


@pytest.mark.promise("http-log")
async def test_the_access_log_tells_who_did_what_and_nothing_that_was_said(web, caplog, client):
    caplog.set_level(logging.INFO, logger="memoranda.http")
    secret = web.token()
    await tool(client, secret, "write_note", title="Hidden", content="whispered", directory="")
    await client.get("/nowhere%0A%20status%3D200?code=abcdef")
    lines = [record.getMessage() for record in caplog.records if record.name == "memoranda.http"]

    assert "method=POST path=/mcp status=200" in lines[0]
    assert "token=laptop/" in lines[0]
    assert lines[0].endswith("tool=write_note")
    assert "path=/nowhere%0A%20status%3D200 status=404" in lines[1]
    assert not {"whispered", "Hidden", secret, "abcdef"} & set(
        " ".join(lines).replace("=", " ").split()
    )


@pytest.mark.promise("http-spaces")
async def test_a_space_is_there_for_its_members_alone(web, client):
    web.access.add_space("team")
    web.access.add_space("other")
    for name, role in (("ann", "member"), ("bob", "reader"), ("eve", "owner")):
        web.access.set_member("team" if name != "eve" else "other", name, role)
    ann, bob, eve = (web.token(name, member=name, scope="admin") for name in ("ann", "bob", "eve"))
    mine = web.token("mine", scope="admin")
    web.memory.write(Draft("private diary", title="Diary", project="notes"))

    async def status(secret, path):
        return (await client.post(path, json=LIST, headers=ACCEPT | bearer(secret))).status_code

    team = "/s/team/mcp"
    await tool(client, ann, "write_note", team, title="Plan", content="for all", directory="")
    assert "for all" in await tool(client, bob, "read_note", team, identifier="plan")
    assert "write_note" not in await tools(client, bob, team)
    assert "create_memory_project" not in await tools(client, ann, team)
    assert "create_memory_project" in await tools(client, eve, "/s/other/mcp")
    assert "# 0 notes" in await tool(client, ann, "search_notes", team, query="diary private")
    assert [await status(who, team) for who in (eve, mine, "x")] == [404, 404, 401]
    answer = await client.post(team, json=LIST, headers=ACCEPT | bearer(eve))
    not_there = await client.post("/s/no/mcp", json=LIST, headers=ACCEPT | bearer(eve))
    assert answer.status_code == not_there.status_code
    assert answer.content == not_there.content
    assert "Ask the owner" in answer.json()["error"]["message"]
    assert await status(ann, "/mcp") == 404
    web.access.set_member("team", "ann", None)
    assert await status(ann, team) == 404
    with open_session(web.access.space("team").home) as shared:
        assert shared.find("plan").provenance.who == "agent:ann"


async def test_revoking_a_token_ends_it_at_once_and_its_name_is_free_again(web, client):
    secret = web.token()
    assert await tools(client, secret)
    web.access.revoke("laptop")
    assert (
        await client.post("/mcp", json=LIST, headers=ACCEPT | bearer(secret))
    ).status_code == 401
    assert await tools(client, web.token())


def test_no_secret_is_kept(web):
    secret = web.token()
    for name in ("ledger.db", "ledger.db-wal"):
        place = web.memory.home / ".memoranda" / name
        assert secret[4:].encode() not in place.read_bytes()
        assert place.stat().st_mode & 0o777 == 0o600


async def test_a_damaged_file_of_tokens_lets_nobody_in(web, caplog, client):
    secret = web.token()
    for damaged in ("{", "[]"):
        file = web.memory.home / ".memoranda" / "access.json"
        file.write_text(damaged)
        assert (
            await client.post("/mcp", json=LIST, headers=ACCEPT | bearer(secret))
        ).status_code == 503
        answer = await client.get("/metrics", headers=bearer(secret))
        assert answer.status_code == 503

    assert "access.json of the home cannot be read" in caplog.text


async def test_the_calls_of_a_day_count_on_after_a_new_start(web, client):
    secret = web.token(quota=3)
    for _ in range(2):
        await tools(client, secret)
    budgets = Budgets(web.access.clock, Access(web.memory.home).table)
    id = web.access.tokens()[0].id
    assert budgets.take(id, 600, 3) is None
    refusal = budgets.take(id, 600, 3)
    assert refusal is not None
    assert "3 calls a day" in refusal[1]


async def test_many_callers_at_once_lose_nothing(web, client):
    secrets = [web.token(f"t{number}", rate=0) for number in range(8)]

    async def caller(number):
        for turn in range(5):
            reply = await tool(
                client,
                secrets[number],
                "write_note",
                title=f"N {number} {turn}",
                content="x",
                directory="",
            )
            assert "N" in reply

    await asyncio.gather(*(caller(number) for number in range(len(secrets))))
    assert web.memory.stats().projects["notes"] == 40


async def test_no_tool_fails_inside_for_a_token_limited_to_one_project(web, client):
    secret = web.token(scope="admin", projects=["kv"])
    arguments = {
        "memory": {"command": "view", "path": "/memories"},
        "read_note": {"identifier": "x"},
        "list_directory": {},
        "edit_note": {"identifier": "x", "operation": "append", "content": "y"},
        "list": {},
        "write_note": {"title": "x", "content": "y"},
        "search_notes": {"query": "x"},
        "build_context": {"url": "memory://x"},
        "activate": {"bankType": "global"},
        "memory_create_entities": {
            "entities": [{"name": "a", "entityType": "b", "observations": []}]
        },
        "memory_search_nodes": {"query": "x"},
        "memory_open_nodes": {"names": ["x"]},
        "update": {"bankType": "global"},
        "memory_remember": {"key": "k", "value": "v"},
        "memory_recall": {"key": "k"},
        "memory_search": {"query": "v"},
    }
    for name in sorted(await tools(client, secret)):
        answer = await rpc(
            client, secret, "tools/call", name=name, arguments=arguments.get(name, {})
        )
        assert "failed inside the server" not in str(answer), name
    assert "v" in await tool(client, secret, "memory_recall", key="k")
    assert {name for name, count in web.memory.stats().projects.items() if count} == {"kv"}


async def test_a_body_that_does_not_come_is_not_waited_for(web, monkeypatch, client):
    monkeypatch.setattr("memoranda.serve.middleware.BODY_SECONDS", 0.05)
    secret = web.token()

    async def never():
        yield b"{"
        await asyncio.Event().wait()

    answer = await client.post("/mcp", content=never(), headers=ACCEPT | bearer(secret))
    assert answer.status_code == 408
    assert (
        await client.post("/mcp", json=LIST, headers=ACCEPT | bearer(secret))
    ).status_code == 200


async def instructions(client, secret) -> str:
    begun = await rpc(
        client,
        secret,
        "initialize",
        protocolVersion="2025-11-25",
        capabilities={},
        clientInfo={"name": "x", "version": "1"},
    )
    return begun["result"]["instructions"]


@pytest.mark.promise("http-scopes")
async def test_tools_about_a_project_the_token_does_not_have_are_not_there(web, tmp_path, client):
    web.memory.add_project("work", str(tmp_path / "work"))
    work = web.token(projects=["work"])
    mixed = web.token("mixed", projects=["Kv", "work"])
    all_token = web.token("all")

    offered = await tools(client, work)
    assert {"write_note", "search_notes", "memory_read_graph"} <= offered
    assert not {"memory", "activate", "update", "memory_recall", "memory_remember"} & offered
    assert "ALWAYS VIEW YOUR MEMORY DIRECTORY" not in await instructions(client, work)
    assert "search_notes" in await instructions(client, work)
    assert "Unknown tool: memory_recall." in await tool(client, work, "memory_recall", key="k")
    assert "# Created note" in await tool(client, work, "write_note", title="A", content="b")

    assert await tools(client, mixed) - offered >= {"memory_recall", "memory_remember"}
    assert not {"memory", "activate"} & await tools(client, mixed)
    assert {"memory", "activate", "memory_recall"} <= await tools(client, all_token)
    assert "ALWAYS VIEW YOUR MEMORY DIRECTORY" in await instructions(client, all_token)
