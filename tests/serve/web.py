"""The HTTP server in this process, and its callers: the official SDK's client, and requests made by
hand.
"""

from __future__ import annotations

import asyncio
import html
import re
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from memoranda import Draft
from memoranda.clients.preview import InstalledProgram, preview
from memoranda.engine import open_session
from memoranda.faces import ALL, registry
from memoranda.note.model import Note
from memoranda.serve.auth import Access, PageVisitors
from memoranda.serve.http import Homes, HttpServer, Place
from memoranda.serve.mcp import ServerIdentity
from memoranda.serve.oauth import oauth_routes
from memoranda.serve.page.routes import page_routes

NEAR = "http://127.0.0.1:8377"
FAR = "https://memory.example.org"
ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


class Web:
    """A home, its tokens, and the server over them, at a time that a test sets."""

    def __init__(self, home: Path, public: str | None = None, tools=ALL, **place: Any):
        self.now = datetime(2026, 11, 22, 12, tzinfo=UTC)
        self.memory = open_session(home, clock=lambda: self.now)
        self.access = Access(home, lambda: self.now)
        self.documents: dict[str, Any] = {}
        self._public = public
        self._tools = tools
        self._place = Place("127.0.0.1", 8377, public=public, **place)

    def later(self, **span: float) -> None:
        self.now += timedelta(**span)

    def token(self, name: str = "laptop", **more: Any) -> str:
        """The secret of a new token."""
        return self.access.add(name, **more)[1]

    def note(self, title: str, text: str, **fields: Any) -> Note:
        """A note that the owner writes into the project `notes`."""
        return self.memory.write(Draft(text, project="notes", title=title, **fields))

    @asynccontextmanager
    async def served(self) -> AsyncIterator[httpx2.AsyncClient]:
        """A client of the running server."""
        tools = registry(self._tools, self.memory.settings)
        homes = Homes(self.memory, tools, lambda space: registry(self._tools, space.settings))
        if self._public:
            routes = oauth_routes(self.access, self._public, self._fetch)
        else:
            routes = []
        identity = ServerIdentity("memoranda", "0", None, {})
        threads = ThreadPoolExecutor(4)
        server = HttpServer(
            homes,
            self.access,
            self._place,
            identity,
            self._tools,
            threads,
            threading.Event(),
            routes=routes,
            pages=page_routes,
        )
        server.app.state.preview = preview
        server.app.state.programs = lambda: [InstalledProgram("claude-code", "Claude Code", False)]
        try:
            async with server.app.router.lifespan_context(server.app):
                transport = httpx2.ASGITransport(app=server.app)
                async with httpx2.AsyncClient(
                    transport=transport, base_url=self._public or NEAR
                ) as client:
                    yield client
        finally:
            await server.stop()

    def _fetch(self, url: str) -> dict[str, Any]:
        from memoranda.serve.client_documents import NoDocument

        if url not in self.documents:
            raise NoDocument("its host is unknown")
        return self.documents[url]

    def run(self, conversation: Callable[[httpx2.AsyncClient], Any]) -> Any:
        """The result of a conversation with the running server."""

        async def whole() -> Any:
            async with self.served() as client:
                return await conversation(client)

        return asyncio.run(whole())

    def close(self) -> None:
        self.access.close()
        self.memory.close()


def plain(page: str) -> str:
    """The text of a page."""
    # A time is a word of its sentence.
    without_times = re.sub("</?time[^>]*>", "", page)
    without_tags = re.sub("<[^>]*>", " ", without_times)
    with_single_blanks = re.sub(r"\s+", " ", without_tags)
    return html.unescape(with_single_blanks)


def bearer(secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"}


@asynccontextmanager
async def official(
    client: httpx2.AsyncClient, secret: str = "", path: str = "/mcp", mode: str = "legacy"
):
    """The official client over the connection of `client`."""
    async with httpx2.AsyncClient(
        transport=client._transport,
        base_url=client.base_url,
        headers=bearer(secret) if secret else {},
    ) as http:
        transport = streamable_http_client(
            str(client.base_url).rstrip("/") + path, http_client=http
        )
        async with Client(transport, mode=mode) as connected:
            yield connected


async def rpc(
    client: httpx2.AsyncClient, secret: str, method: str, path: str = "/mcp", **params: Any
) -> Any:
    """The answer to one request, read as JSON."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer = await client.post(path, json=body, headers=ACCEPT | bearer(secret))
    assert answer.status_code == 200, answer.text
    return answer.json()


async def tool(
    client: httpx2.AsyncClient, secret: str, name: str, path: str = "/mcp", **arguments: Any
) -> str:
    """The text of a tool's result."""
    answer = await rpc(client, secret, "tools/call", path, name=name, arguments=arguments)
    if "result" in answer:
        return answer["result"]["content"][0]["text"]
    return answer["error"]["message"]


async def tools(client: httpx2.AsyncClient, secret: str, path: str = "/mcp") -> set[str]:
    """The names of the tools a caller is offered."""
    return {
        tool["name"] for tool in (await rpc(client, secret, "tools/list", path))["result"]["tools"]
    }


class Browser:
    """Somebody who looks at the page: with a cookie once they entered."""

    def __init__(self, web: Web, client: httpx2.AsyncClient):
        self.web = web
        self.client = client
        self.csrf = ""

    def code(self) -> str:
        return PageVisitors(self.web.access).new_code()

    async def enter(self) -> None:
        answer = await self.client.get("/page/enter", params={"code": self.code()})
        assert answer.status_code == 200, answer.text
        self.csrf = re.search(r'name="csrf" value="(\w+)"', (await self.client.get("/page")).text)[
            1
        ]

    async def see(self, path: str, **headers: str) -> str:
        """The HTML of a page's main part."""
        answer = await self.client.get(path, headers=headers)
        assert answer.status_code == 200, (path, answer.status_code, answer.text)
        return answer.text.partition("<main")[2] or answer.text

    async def text(self, path: str, **headers: str) -> str:
        """The words of a page's main part."""
        return plain(await self.see(path, **headers))

    async def send(self, path: str, **form: str) -> httpx2.Response:
        return await self.client.post(path, data={"csrf": self.csrf} | form)


@asynccontextmanager
async def browser(web: Web) -> AsyncIterator[Browser]:
    """A visitor of the page who has entered."""
    async with web.served() as client:
        visitor = Browser(web, client)
        await visitor.enter()
        yield visitor
