"""Servers of one space on several machines: any request may go to any of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memoranda.engine import open_session
from memoranda.faces import ALL
from memoranda.serve.auth import Access
from memoranda.serve.http import Place
from serve.test_oauth import answered, asked, exchanged, query, registered, renewed, status
from serve.web import FAR, Web, bearer, tool, tools


class Server(Web):
    """A server over a space, as on a separate machine."""

    def __init__(self, space: str):
        self.now = datetime(2026, 11, 22, 12, tzinfo=UTC)
        self.memory = open_session(space, clock=lambda: self.now)
        self.access = Access(self.memory.home, lambda: self.now)
        self.documents = {}
        self._public = FAR
        self._tools = ALL
        self._place = Place("127.0.0.1", 8377, public=FAR)


@pytest.fixture
def servers(
    space: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Server, Server]]:
    started = []
    for name in ("a", "b"):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache" / name))
        started.append(Server(space))
    yield started[0], started[1]
    for server in started:
        server.close()


def test_a_token_a_note_and_its_end_count_on_every_server(servers: tuple[Server, Server]):
    first_server, second_server = servers
    secret = first_server.token()

    async def conversation(first):
        async with second_server.served() as second:
            await tool(first, secret, "write_note", title="Tea", content="green", directory="")
            assert "green" in await tool(second, secret, "read_note", identifier="tea")
            assert await tools(first, secret) == await tools(second, secret)
            for client in (first, second):
                data = (await client.get("/readyz")).json()
                assert data == {"status": "ready", "lag": 0}
                text = (await client.get("/metrics", headers=bearer(secret))).text
                assert "memoranda_notes 1\n" in text
                assert "memoranda_index_lag_changes 0\n" in text
            second_server.access.revoke("laptop")
            assert await status(first, secret) == 401
            assert await status(second, secret) == 401

    first_server.run(conversation)


def test_each_step_of_oauth_may_go_to_another_server(servers: tuple[Server, Server]):
    first_server, second_server = servers
    secret = first_server.token(scope="write")

    async def conversation(first):
        async with second_server.served() as second:
            id = await registered(first)
            location = (await asked(second, id)).headers["location"]
            code = query(await answered(first, location, secret))["code"]
            got = (await exchanged(second, id, code=code)).json()
            assert await status(first, got["access_token"]) == 200
            got = (await renewed(first, id, got["refresh_token"])).json()
            assert await status(second, got["access_token"]) == 200
            answer = await exchanged(first, id, code=code)
            assert answer.status_code == 400
            assert await status(second, got["access_token"]) == 401

    first_server.run(conversation)
