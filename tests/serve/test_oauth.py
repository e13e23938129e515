"""OAuth: a client without a token is let in by somebody who has one (docs/http.md)."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import socket
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.server.auth.provider import RefreshToken, TokenError
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

from memoranda.serve import client_documents
from memoranda.serve.client_documents import LIMIT, Documents, NoDocument, fetch, is_public
from memoranda.serve.oauth import Grants, may_redirect
from serve.web import ACCEPT, FAR, LIST, Web, bearer, tools

pytestmark = pytest.mark.anyio

BACK = "https://claude.ai/api/mcp/auth_callback"
DOCUMENT = "https://client.example/oauth.json"
VERIFIER = "v" * 64
CHALLENGE = (
    base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")
)


@pytest.fixture
def web(tmp_path):
    new_web = Web(tmp_path / "home", public=FAR)
    yield new_web
    new_web.close()


class Storage:
    """What the official client remembers."""

    tokens = client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info):
        self.client = client_info


def document(**more):
    return {"client_id": DOCUMENT, "client_name": "Claude", "redirect_uris": [BACK]} | more


async def registered(client, **more):
    """The id of a public client that registered itself."""
    body = {
        "redirect_uris": [BACK],
        "client_name": "Web",
        "token_endpoint_auth_method": "none",
    } | more
    return (await client.post("/register", json=body)).json()["client_id"]


async def asked(client, id, **more):
    """The answer to a request for authorization."""
    params = {
        "client_id": id,
        "redirect_uri": BACK,
        "response_type": "code",
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
        "state": "s1",
        "resource": FAR + "/mcp",
        "scope": "write",
        **more,
    }
    params = {key: value for key, value in params.items() if value is not None}
    return await client.get("/authorize", params=params, follow_redirects=False)


async def answered(client, location, secret, answer="allow"):
    """The answer to the form of the page at `location`."""
    key = parse_qs(urlsplit(location).query)["request"][0]
    form = {"request": key, "token": secret, "answer": answer}
    return await client.post("/consent", data=form, headers={"origin": FAR}, follow_redirects=False)


def query(answer):
    return {
        key: value[0] for key, value in parse_qs(urlsplit(answer.headers["location"]).query).items()
    }


async def code_for(client, id, secret, **more):
    location = (await asked(client, id, **more)).headers["location"]
    return query(await answered(client, location, secret))["code"]


async def exchanged(client, id, **more):
    """The answer of the token endpoint."""
    form = {
        "grant_type": "authorization_code",
        "client_id": id,
        "redirect_uri": BACK,
        "code_verifier": VERIFIER,
    }
    return await client.post("/token", data=form | more)


async def renewed(client, id, refresh, **more):
    form = {"grant_type": "refresh_token", "client_id": id, "refresh_token": refresh}
    return await client.post("/token", data=form | more)


async def status(client, secret, path="/mcp"):
    return (await client.post(path, json=LIST, headers=ACCEPT | bearer(secret))).status_code


@pytest.mark.promise("oauth-client")
@pytest.mark.parametrize("how", ["registers", "has a document"])
async def test_the_official_client_gets_in_by_itself_once_a_token_was_shown(web, how, client):
    secret = web.token(scope="write", agent="claude")
    web.documents[DOCUMENT] = document()
    storage = Storage()
    parameters = {}

    async def browser(url):
        redirect = await client.get(url, follow_redirects=False)
        consent = redirect.headers["location"]
        page = await client.get(consent)
        assert "claude.ai" in page.text
        assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
        parameters.update(query(await answered(client, consent, secret)))

    async def back():
        return AuthorizationCodeResult(**parameters)

    about = OAuthClientMetadata(redirect_uris=[BACK], client_name="Claude", scope="write")
    url = DOCUMENT if how == "has a document" else None
    auth = OAuthClientProvider(FAR + "/mcp", about, storage, browser, back, client_metadata_url=url)
    async with (
        httpx2.AsyncClient(transport=client._transport, auth=auth) as http,
        Client(streamable_http_client(FAR + "/mcp", http_client=http)) as connected,
    ):
        listed = await connected.list_tools()
        assert "write_note" in {tool.name for tool in listed.tools}
        note = {"title": "A", "content": "b", "directory": ""}
        result = await connected.call_tool("write_note", note)
        assert not result.is_error
    assert (storage.client.client_id == DOCUMENT) == (how == "has a document")
    assert parameters["iss"] == FAR
    who = web.memory.find("a").provenance.who
    assert who == "agent:claude"


async def tokens_of(client, secret, **scope):
    """A new client's id, and what it gets for a code that this token let it have."""
    client_id = await registered(client)
    code = await code_for(client, client_id, secret, **scope)
    reply = await exchanged(client, client_id, code=code)
    return client_id, reply.json()


@pytest.mark.promise("oauth-client")
async def test_client_may_do_no_more_than_the_token_that_let_it_in(web, client):
    secret = web.token(scope="read", projects=["notes"])
    _, tokens_got = await tokens_of(client, secret, scope="admin")
    assert tokens_got["scope"] == "read"

    access_token = tokens_got["access_token"]
    names = await tools(client, access_token)
    assert "read_note" in names
    assert "write_note" not in names

    status_code = await status(client, access_token, "/s/team/mcp")
    assert status_code == 401


@pytest.mark.promise("oauth-client")
async def test_access_token_is_good_for_an_hour_and_is_renewed(web, client):
    client_id, tokens_got = await tokens_of(client, web.token(scope="read"), scope="admin")
    assert tokens_got["expires_in"] == 3600
    assert await status(client, tokens_got["refresh_token"]) == 401

    web.later(hours=1)
    assert await status(client, tokens_got["access_token"]) == 401

    renewed_tokens = (await renewed(client, client_id, tokens_got["refresh_token"])).json()
    assert await status(client, renewed_tokens["access_token"]) == 200


@pytest.mark.promise("oauth-client")
async def test_revoked_token_ends_what_its_clients_got(web, client):
    client_id, tokens_got = await tokens_of(client, web.token(scope="read"), scope="admin")
    assert await status(client, tokens_got["access_token"]) == 200

    web.access.revoke("laptop")
    assert await status(client, tokens_got["access_token"]) == 401

    data = (await renewed(client, client_id, tokens_got["refresh_token"])).json()
    assert data["error"] == "invalid_grant"


@pytest.mark.promise("oauth-client")
async def test_ledger_holds_no_token_of_a_client(web, client):
    client_id, tokens_got = await tokens_of(client, web.token(scope="read"), scope="admin")
    await renewed(client, client_id, tokens_got["refresh_token"])
    for name in ("ledger.db", "ledger.db-wal"):
        stored = (web.memory.home / ".memoranda" / name).read_bytes()
        assert b"cpa_" not in stored
        assert b"cpr_" not in stored


@pytest.mark.promise("oauth-rotation")
async def test_a_refresh_token_that_comes_twice_ends_all_it_led_to(web, client):
    secret = web.token()
    id = await registered(client)
    other_client = await registered(client)
    first = (await exchanged(client, id, code=await code_for(client, id, secret))).json()
    assert (await renewed(client, other_client, first["refresh_token"])).json()[
        "error"
    ] == "invalid_grant"
    second = (await renewed(client, id, first["refresh_token"])).json()
    assert await status(client, first["access_token"]) == 401
    assert await status(client, second["access_token"]) == 200
    data = (await renewed(client, id, first["refresh_token"])).json()
    assert data["error"] == "invalid_grant"
    assert await status(client, second["access_token"]) == 401
    data = (await renewed(client, id, second["refresh_token"])).json()
    assert data["error"] == "invalid_grant"


async def test_a_code_works_once_for_its_client_its_verifier_and_a_minute(web, monkeypatch, client):
    secret = web.token()
    id = await registered(client)
    other_client = await registered(client)
    code = await code_for(client, id, secret)
    for wrong in (
        {"code_verifier": "w" * 64},
        {"redirect_uri": BACK + "/x"},
        {"client_id": other_client},
        {"code": "x"},
    ):
        answer = await exchanged(client, id, **{"code": code} | wrong)
        assert answer.status_code == 400, wrong
    got = (await exchanged(client, id, code=code)).json()
    assert await status(client, got["access_token"]) == 200
    answer = await exchanged(client, id, code=code)
    assert answer.status_code == 400
    # Somebody else has the code too
    assert await status(client, got["access_token"]) == 401
    code = await code_for(client, id, secret)
    import time

    late = time.time() + 61
    monkeypatch.setattr("time.time", lambda: late)
    answer = await exchanged(client, id, code=code)
    assert answer.status_code == 400


@pytest.fixture
def ann(web):
    """The token of a member of the space team."""
    web.access.add_space("team")
    web.access.set_member("team", "ann", "member")
    return web.token("ann", member="ann")


async def consent_of(client, id, **more):
    """The address at which a person is asked for a client."""
    return (await asked(client, id, **more)).headers["location"]


async def test_consent_without_a_valid_token_is_refused(client, ann):
    id = await registered(client)
    location = await consent_of(client, id)
    for secret in ("", "cpl_wrong", ann):
        answer = await answered(client, location, secret)
        assert answer.status_code == 403
        assert "no valid token" in answer.text


async def test_consent_that_is_denied_sends_the_client_an_error_and_is_over(web, client):
    secret = web.token()
    id = await registered(client)
    location = await consent_of(client, id)
    refused = query(await answered(client, location, secret, "deny"))
    assert refused == {"error": "access_denied", "state": "s1", "iss": FAR}
    answer = await answered(client, location, secret)
    assert answer.status_code == 400


async def test_consent_is_over_after_a_few_wrong_tokens(client):
    id = await registered(client)
    location = await consent_of(client, id)
    statuses = [(await answered(client, location, "x")).status_code for _ in range(6)]
    assert statuses == [403] * 4 + [400] * 2


async def test_consent_to_a_space_is_given_by_its_members_alone(web, client, ann):
    own_secret = web.token()
    id = await registered(client)
    location = await consent_of(client, id, resource=f"{FAR}/s/team/mcp")
    answer = await answered(client, location, own_secret)
    assert answer.status_code == 403
    code = query(await answered(client, location, ann))["code"]
    got = (await exchanged(client, id, code=code)).json()
    assert await status(client, got["access_token"], "/s/team/mcp") == 200


async def test_token_that_a_client_got_gives_no_consent(client, ann):
    team = f"{FAR}/s/team/mcp"
    id = await registered(client)
    location = await consent_of(client, id, resource=team)
    code = query(await answered(client, location, ann))["code"]
    got = (await exchanged(client, id, code=code)).json()
    again = await consent_of(client, id, resource=team)
    answer = await answered(client, again, got["access_token"])
    assert answer.status_code == 403


async def test_consent_sent_by_another_site_is_refused(client):
    page = await client.post("/consent", data={}, headers={"origin": "https://evil.example"})
    assert page.status_code == 403


async def test_wrong_requests_are_refused_and_errors_say_who_sends_them(client):
    id = await registered(client)
    for wrong in ({"client_id": "nobody"}, {"redirect_uri": "https://evil.example/"}):
        assert (await asked(client, id, **wrong)).status_code == 400
    for error, wrong in (
        ("invalid_request", {"code_challenge": None}),
        ("unsupported_response_type", {"response_type": "token"}),
        ("invalid_request", {"code_challenge_method": "plain"}),
        ("invalid_scope", {"scope": "root"}),
        ("invalid_target", {"resource": "https://evil.example/mcp"}),
    ):
        answer = await asked(client, id, **wrong)
        assert answer.status_code == 302
        assert (query(answer)["error"], query(answer)["iss"], query(answer)["state"]) == (
            error,
            FAR,
            "s1",
        ), wrong
    for address in (
        "http://evil.example/",
        "javascript:alert(1)",
        "data:text/html,x",
        "https://a.example/#x",
    ):
        refused = await client.post("/register", json={"redirect_uris": [address]})
        assert refused.status_code == 400, address
    assert (await client.post("/register", content="{")).status_code == 400


async def test_of_what_a_client_tells_of_itself_only_little_is_kept(web, client):
    many_words = ["x" * 1000] * 1000
    id = await registered(
        client,
        grant_types=["authorization_code", "refresh_token", *many_words],
        response_types=["code", *many_words],
        contacts=many_words,
        client_uri=f"https://a.example/{'x' * 10_000}",
    )
    stored_client = web.access.rows()["clients"][id]["client"]
    assert len(json.dumps(stored_client)) < 2_000
    assert (await asked(client, id)).status_code == 302


async def test_the_names_a_client_gives_itself_are_only_text_on_the_page(client):
    id = await registered(client, client_name="<script>alert(1)</script>{request}")
    page = await client.get((await asked(client, id)).headers["location"])

    assert "<script" not in page.text
    matches = re.findall(r"<input", page.text)
    assert len(matches) == 2
    assert page.headers["x-frame-options"] == "DENY"


ANY_PAGE = {"origin": "https://inspector.example"}
BEFORE_A_REQUEST = {"access-control-request-method": "POST"} | ANY_PAGE


async def test_every_page_is_told_what_the_server_of_tokens_can_do(client):
    address = "/.well-known/oauth-authorization-server"
    server = await client.get(address, headers=ANY_PAGE)
    assert server.headers["access-control-allow-origin"] == "*"
    document = server.json()
    assert document["issuer"] == FAR
    assert document["code_challenge_methods_supported"] == ["S256"]
    assert document["client_id_metadata_document_supported"] is True
    assert document["authorization_response_iss_parameter_supported"] is True


async def test_every_page_is_told_who_gives_tokens_for_a_resource(client):
    resource_by_path = {
        "/mcp": f"{FAR}/mcp",
        "": f"{FAR}/mcp",
        "/s/team/mcp": f"{FAR}/s/team/mcp",
    }
    for path, resource in resource_by_path.items():
        address = f"/.well-known/oauth-protected-resource{path}"
        answer = await client.get(address, headers=ANY_PAGE)
        document = answer.json()
        assert document["resource"] == resource
        assert document["authorization_servers"] == [FAR]


async def test_resource_that_there_is_not_is_not_described(client):
    answer = await client.get("/.well-known/oauth-protected-resource/x")
    assert answer.status_code == 404


async def test_call_without_a_token_is_told_where_the_resource_is_described(client):
    answer = await client.post("/mcp", json=LIST, headers=ACCEPT)
    challenge = answer.headers["www-authenticate"]
    assert f'resource_metadata="{FAR}/.well-known/oauth-protected-resource/mcp"' in challenge


async def test_page_of_another_site_may_ask_before_a_request(client):
    answer = await client.options("/token", headers=BEFORE_A_REQUEST)
    assert answer.status_code == 200
    claude = {"origin": "https://claude.ai"}
    headers = BEFORE_A_REQUEST | claude
    web_app = await client.options("/mcp", headers=headers)
    assert web_app.headers["access-control-allow-origin"] == "https://claude.ai"


@pytest.mark.promise("http-strangers")
async def test_strangers_may_not_ask_without_end(web, client):
    statuses = [(await client.post("/register", content="{")).status_code for _ in range(121)]
    assert statuses == [400] * 120 + [429]
    web.later(minutes=1)
    assert (await client.post("/register", content="{")).status_code == 400


async def test_clients_that_registered_and_got_nothing_are_forgotten_after_a_day(web, client):
    secret = web.token()
    kept_client = await registered(client)
    forgotten = await registered(client)
    await exchanged(client, kept_client, code=await code_for(client, kept_client, secret))
    web.later(days=2)
    await registered(client)

    answer = await asked(client, kept_client)
    assert answer.status_code == 302
    answer = await asked(client, forgotten)
    assert answer.status_code == 400


@pytest.mark.parametrize(
    "wrong",
    [
        {"client_id": "https://other.example/x"},
        {"redirect_uris": []},
        {"redirect_uris": ["javascript:x"]},
        {"redirect_uris": "x"},
    ],
)
async def test_a_document_that_is_not_the_clients_own_is_none(web, wrong, client):
    web.documents[DOCUMENT] = document(**wrong)
    assert (await asked(client, DOCUMENT)).status_code == 400
    assert (await asked(client, "https://unknown.example/x.json")).status_code == 400


async def test_a_client_on_this_machine_may_answer_at_any_port(web, client):
    web.documents[DOCUMENT] = document(redirect_uris=["http://127.0.0.1/callback"])
    assert (
        await asked(client, DOCUMENT, redirect_uri="http://127.0.0.1:51234/callback")
    ).status_code == 302
    assert (
        await asked(client, DOCUMENT, redirect_uri="http://127.0.0.1:51234/other")
    ).status_code == 400
    assert (
        await asked(client, DOCUMENT, redirect_uri="http://evil.example/callback")
    ).status_code == 400


def test_answers_go_to_https_this_machine_or_a_programs_own_scheme():
    for good in (
        BACK,
        "http://localhost:3/x",
        "http://[::1]:3/x",
        "cursor://anysphere.cursor-retrieval/oauth",
    ):
        assert may_redirect(good)
    for bad in (
        "http://a.example",
        "https://",
        "file:///etc",
        "https://u@a.example/",
        "blob:x",
        "https://a.example/#x",
    ):
        assert not may_redirect(bad)


@pytest.mark.promise("oauth-documents")
@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "0.0.0.0",
        "100.64.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1",
        "fc00::1",
        "::ffff:127.0.0.1",
        "::ffff:8.8.8.8",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "ff02::1",
        "fe80::1%eth0",
    ],
)
def test_documents_are_fetched_from_public_addresses_alone(monkeypatch, address):
    assert not is_public(address)
    if ":" in address:
        family = socket.AF_INET6
    else:
        family = socket.AF_INET
    names = [(socket.AF_INET, 1, 6, "", ("8.8.8.8", 443)), (family, 1, 6, "", (address, 443))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: names)
    monkeypatch.setattr(socket, "create_connection", lambda *_: pytest.fail("connected"))
    with pytest.raises(NoDocument, match="not on the public Internet"):
        fetch(DOCUMENT)


def test_addresses_of_documents_are_https_with_a_path_and_no_more():
    assert is_public("8.8.8.8")
    assert is_public("2606:4700:4700::1111")
    for wrong in (
        "http://a.example/x",
        "https://a.example",
        "https://a.example/",
        "https://u:p@a.example/x",
        "https://a.example/x#y",
        "https://a.example:22/x",
        "https://a.example:x/y",
        "ftp://a.example/x",
    ):
        with pytest.raises(NoDocument):
            fetch(wrong)


class Reply:
    def __init__(self, status, data):
        self.status = status
        self._data = data

    def read(self, most):
        return self._data[:most]


@pytest.mark.parametrize(
    ("status", "data", "why"),
    [
        (301, b"{}", "status 301"),
        (404, b"{}", "status 404"),
        (200, b"x" * (LIMIT + 1), "larger"),
        (200, b"{", "not JSON"),
        (200, b"[]", "no object"),
        (200, b"\xff", "not JSON"),
        (200, b"[" * 5000, "not JSON"),
    ],
)
def test_a_document_is_small_plain_json_that_is_not_redirected(monkeypatch, status, data, why):
    monkeypatch.setattr(client_documents, "public_address", lambda *_: "8.8.8.8")
    monkeypatch.setattr(client_documents._FixedAddressConnection, "request", lambda *_, **__: None)
    monkeypatch.setattr(
        client_documents._FixedAddressConnection, "getresponse", lambda _: Reply(status, data)
    )
    with pytest.raises(NoDocument, match=why):
        fetch(DOCUMENT)


def test_the_connection_goes_to_the_address_that_was_checked(monkeypatch):
    called = []

    def connect(address, timeout):
        called.append(address)
        raise OSError("no network in tests")

    monkeypatch.setattr(client_documents, "public_address", lambda *_: "8.8.8.8")
    monkeypatch.setattr(socket, "create_connection", connect)
    with pytest.raises(NoDocument, match="cannot be fetched"):
        fetch(DOCUMENT)
    assert called == [("8.8.8.8", 443)]


def test_a_document_and_its_absence_are_asked_for_once():
    asked_for = []

    def found(url):
        asked_for.append(url)
        if "none" in url:
            raise NoDocument("its host is unknown")
        return {"client_id": url}

    documents = Documents(found)
    for _ in range(2):
        assert documents.get("https://a.example/x") == {"client_id": "https://a.example/x"}
        with pytest.raises(NoDocument):
            documents.get("https://none.example/x")
    assert len(asked_for) == 2


async def test_each_step_may_be_answered_by_another_server_of_the_home(web, client, tmp_path):
    other_web = Web(tmp_path / "home", public=FAR)
    secret = web.token(scope="write")
    async with other_web.served() as second:
        id = await registered(client)
        location = (await asked(second, id)).headers["location"]
        answer = await answered(client, location, "cpl_wrong")
        assert answer.status_code == 403
        code = query(await answered(client, location, secret))["code"]
        answer = await answered(second, location, secret)
        assert answer.status_code == 400
        got = (await exchanged(second, id, code=code)).json()
        assert await status(client, got["access_token"]) == 200
        assert await status(second, got["access_token"]) == 200
        got = (await renewed(client, id, got["refresh_token"])).json()
        assert await status(second, got["access_token"]) == 200
        # It came twice: all it led to ends
        answer = await exchanged(client, id, code=code)
        assert answer.status_code == 400
        assert await status(second, got["access_token"]) == 401
    other_web.close()


async def test_what_waits_is_kept_without_its_secrets_and_only_for_minutes(web, client):
    secret = web.token(scope="write")
    id = await registered(client)
    location = (await asked(client, id)).headers["location"]
    key = parse_qs(urlsplit(location).query)["request"][0]
    assert key not in str(web.access.rows())
    code = await code_for(client, id, secret)
    assert code not in str(web.access.rows())
    web.later(minutes=11)
    answer = await answered(client, location, secret)
    assert answer.status_code == 400
    await asked(client, id)
    assert {kind: len(rows) for kind, rows in web.access.rows()["oauth"].items()} == {
        "asked": 1,
    }


async def test_a_client_that_gives_its_access_back_has_none(web, client):
    id = await registered(client)
    secret = web.token()
    for kind in ("access_token", "refresh_token"):
        got = (await exchanged(client, id, code=await code_for(client, id, secret))).json()
        for token in ("cpa_unknown", got[kind]):
            # Which the SDK asks for, empty or not
            form = {
                "client_id": id,
                "client_secret": "",
                "token": token,
            }
            assert (await client.post("/revoke", data=form)).status_code == 200
        assert await status(client, got["access_token"]) == 401
        assert (await renewed(client, id, got["refresh_token"])).json()["error"] == "invalid_grant"


@pytest.mark.promise("http-strangers")
async def test_a_stranger_s_registrations_and_requests_push_out_its_own(web, client, monkeypatch):
    monkeypatch.setattr("memoranda.serve.oauth.MOST_CLIENTS", 5)
    monkeypatch.setattr("memoranda.serve.oauth._MAX_WAITING_REQUESTS", 5)
    used = await registered(client)
    secret = web.token()
    tokens = (await exchanged(client, used, code=await code_for(client, used, secret))).json()
    waiting = await registered(client)
    asks = (await asked(client, waiting)).headers["location"]
    fresh = await registered(client)
    client.headers["x-forwarded-for"] = "192.0.2.66"
    theirs = [await registered(client) for _ in range(20)]
    for id in theirs[-2:] * 10:
        await asked(client, id)
    del client.headers["x-forwarded-for"]

    answer = await renewed(client, used, tokens["refresh_token"])
    assert answer.status_code == 200
    answer = await answered(client, asks, secret)
    assert answer.status_code == 302
    location = (await asked(client, fresh)).headers["location"]
    assert "request=" in location
    clients = web.access.rows()["clients"]
    assert len(clients) == 5


@pytest.mark.promise("http-strangers")
async def test_a_good_refresh_token_or_code_passes_whatever_strangers_do(web, client):
    id = await registered(client)
    secret = web.token()
    code = await code_for(client, id, secret)
    for _ in range(125):
        wrong = await renewed(client, id, "cpr_guess")
    assert wrong.status_code == 429
    tokens = (await exchanged(client, id, code=code)).json()
    answer = await renewed(client, id, tokens["refresh_token"])
    assert answer.status_code == 200
    answer = await exchanged(client, id, code="guess")
    assert answer.status_code == 429


async def test_of_two_renewals_with_one_token_at_once_the_later_is_refused(web):
    late = RefreshToken(token="cpr_used_meanwhile", client_id="c", scopes=["read"])
    with pytest.raises(TokenError) as refused:
        await Grants(web.access, FAR, Documents(fetch)).exchange_refresh_token(None, late, ["read"])
    assert refused.value.error == "invalid_grant"


async def test_a_damaged_file_of_tokens_lets_no_client_in_and_the_server_lives(web, client):
    id = await registered(client)
    (web.memory.home / ".memoranda" / "access.json").write_text("{")
    answers = [
        await client.get("/consent", params={"request": "x"}),
        await renewed(client, id, "x"),
        await client.post("/register", json={"redirect_uris": [BACK]}),
    ]

    status_codes = {answer.status_code for answer in answers}
    assert status_codes == {503}
    response = await client.get("/healthz")
    assert response.status_code == 200
