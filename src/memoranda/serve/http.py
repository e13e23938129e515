"""MCP over HTTP (docs/http.md): who is let in, and what each caller is served, on the daemon's own
event loop.

Stateless: each request is complete, for clients of both kinds of revision. The SDK speaks the
protocol; before it come, in this order, the checks of Host and Origin, of the method, the token,
the space, the rate and the body.
"""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlsplit

import anyio
import uvicorn
from anyio.abc import TaskGroup, TaskStatus
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from memoranda.clock import waits_until
from memoranda.errors import ConfigError, MemorandaError, StorageError
from memoranda.faces import FACES
from memoranda.faces.tool import Registry
from memoranda.serve.auth import (
    ROLES,
    Access,
    Budgets,
    Space,
    StoredToken,
    least_scope,
    may_use,
)
from memoranda.serve.connections import LOOPBACK, Connection
from memoranda.serve.mcp import Handlers, ServerIdentity, agent_of, client_text
from memoranda.serve.middleware import (
    CALL,
    HANDLERS,
    TOKEN,
    TOO_LATE,
    BodyInTime,
    Health,
    HostAndOrigin,
    Metrics,
    RequestLog,
    RequestRefused,
)
from memoranda.serve.socket import LIMIT
from memoranda.serve.turns import InternalError, Stopping

if TYPE_CHECKING:
    from memoranda.engine import MemorySession

T = TypeVar("T")
_log = logging.getLogger("memoranda.http")

WEB_CLIENTS = ("https://claude.ai", "https://claude.com", "https://chatgpt.com")
"""Origins whose pages may call a server with a public address."""
# Seconds that calls in progress have when the server ends.
_LAST_WORDS = 5
# Seconds for which an idle connection stays open.
_KEPT_ALIVE = 75
_HEADERS = [
    "authorization",
    "content-type",
    "mcp-protocol-version",
    "mcp-method",
    "mcp-name",
    "mcp-session-id",
    "last-event-id",
]


@dataclass(frozen=True)
class Place:
    """The place where the server listens, and the addresses it answers to.

    public: its address on the web, without a path.
    """

    host: str
    port: int
    is_open: bool = False
    """Whether callers need no token."""
    public: str | None = None
    hosts: Sequence[str] = ()
    origins: Sequence[str] = ()

    def check(self) -> None:
        """Raises ConfigError for a place where anybody could call."""
        if self.is_open and (self.host not in LOOPBACK or self.public):
            raise ConfigError(
                "--no-token is for this machine alone: listen on 127.0.0.1, and without --public-url"
            )
        if self.public:
            parts = urlsplit(self.public)
            local = parts.scheme == "http" and parts.hostname in LOOPBACK
            if (
                not (parts.scheme == "https" or local)
                or not parts.hostname
                or parts.path
                or parts.query
            ):
                raise ConfigError(
                    f'--public-url must be https://HOST without a path, got "{self.public}"'
                )

    def security(self) -> TransportSecuritySettings:
        """The hosts and origins to let in: this machine, the public address, and the configured
        ones.
        """
        local_hosts = [f"[{host}]" if ":" in host else host for host in {*LOOPBACK, self.host}]
        far = urlsplit(self.public or "")
        names = [*local_hosts, *self.hosts, *([far.netloc] if self.public else [])]
        if self.public:
            web = [self.public, *WEB_CLIENTS]
        else:
            web = []
        origins = [f"http://{name}" for name in local_hosts] + [
            f"http://{name}:*" for name in local_hosts
        ]
        return TransportSecuritySettings(
            allowed_hosts=names + [f"{name}:*" for name in names],
            allowed_origins=[*origins, *web, *self.origins],
        )

    def address(self, port: int) -> str:
        """The address at which this machine reaches it, if it listens on `port`."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"

    def listen(self) -> socket.socket:
        """The listening socket. Raises StorageError."""
        try:
            if ":" in self.host:
                family = socket.AF_INET6
            else:
                family = socket.AF_INET
            listener = socket.create_server((self.host, self.port), family=family, backlog=1024)
            # Connections inherit it. Without it each answer on a kept connection waits 40 ms.
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return listener
        except OSError as error:
            # Python adds the address as a tuple
            why = str(error.strerror).partition(" (while")[0]
            refused = StorageError(f"{self.host}:{self.port}", why)
            refused.args = (
                f"cannot listen on {self.host}:{self.port}: {why}. Choose another address with --http.",
            )
            raise refused from None


def place_of(text: str) -> tuple[str, int]:
    """HOST and PORT of `HOST:PORT`, `[::1]:PORT` or a port alone. Raises ConfigError."""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if not port.isdecimal() or int(port) > 65535 or "/" in host:
        raise ConfigError(f'--http takes HOST:PORT, e.g. 127.0.0.1:8377, got "{text}"')
    return host, int(port)


class Homes:
    """The open memories of one server: of its home and of spaces, each perhaps limited to some
    projects.

    Thread-safe.

    memory: the memory of the home's owner, which is not closed here.
    registry: its tools.
    registry_for: makes the tools of a space.
    """

    def __init__(
        self,
        memory: MemorySession,
        registry: Registry,
        registry_for: Callable[[MemorySession], Registry],
    ):
        self._memory = memory
        self._registry = registry
        self._registry_for = registry_for
        self._lock = threading.Lock()
        self._open: dict[tuple[str | None, tuple[str, ...]], MemorySession] = {}
        self._ends = ExitStack()

    def memory(self, space: Space | None, projects: tuple[str, ...] = ()) -> MemorySession:
        """The memory of a space (None: the home), limited to these projects (empty: all)."""
        if space is None and not projects:
            return self._memory
        from memoranda.engine import open_session

        key = (space.place if space else None, tuple(sorted(projects)))
        with self._lock:
            if key not in self._open:
                home = str(space.home if space else self._memory.home)
                if space and space.database:
                    home = self._memory.settings.address_of(space.database)
                if space:
                    settings = None
                else:
                    settings = self._memory.settings
                clock = self._memory.clock
                session = open_session(
                    home, config=settings, face="mcp", clock=clock, only=projects, serving=True
                )
                self._open[key] = self._ends.enter_context(session)
            return self._open[key]

    def registry(self, space: Space | None) -> Registry:
        """All tools of a space, or of the home."""
        if space is None:
            return self._registry
        return self._registry_for(self.memory(space))

    def close(self) -> None:
        """Close all but the home's own memory."""
        self._ends.close()


@dataclass
class AdmittedRequest:
    """A request that was let in: its caller, its space, and its facts for the access log."""

    token: StoredToken | None
    space: Space | None
    server: HttpServer
    did: list[str] = field(default_factory=list)

    @property
    def scope(self) -> str:
        """The rights of the caller: those that the token and its member's role both allow."""
        if self.token is None:
            return "admin"
        if self.space is None or self.token.member is None:
            return self.token.scope
        return least_scope(self.token.scope, ROLES[self.space.members[self.token.member]])

    @property
    def projects(self) -> tuple[str, ...]:
        """The only projects that the caller sees. Empty means all."""
        if self.token:
            return self.token.projects
        return ()

    def caller(
        self, memory: MemorySession, agent_name: str, face: str, client: str
    ) -> MemorySession:
        """`memory` for this caller.

        agent_name: the agent that the client says it is.
        client: the name of the client in the ledger.
        """
        identity = self.server.identity
        token = self.token
        if token:
            session = {"session": token.id}
        else:
            session = {}
        if token is None:
            own_agent = None
        elif self.space is not None:
            own_agent = token.member
        else:
            own_agent = token.agent
        agent = own_agent or identity.agent or agent_of(agent_name, identity.clients)
        memory = memory.as_caller(agent, face, client=client, **session)
        memory.only_reads = self.scope == "read"
        return memory


class _HttpHandlers(Handlers):
    """Requests of many callers, each with a separate memory.

    Without a connection, callers cannot be told about changes.
    """

    async def call(self, ctx: Any, params: Any) -> dict[str, Any]:
        if params.name not in self._registry.tools:
            return await super().call(ctx, params)
        request: AdmittedRequest = ctx.request.scope[CALL]
        request.did.append(params.name)
        begun = time.perf_counter()
        end = "error"
        try:
            result = await super().call(ctx, params)
            if result["isError"]:
                end = "error"
            else:
                end = "ok"
            return result
        finally:
            request.server.metrics.count_call(params.name, end, time.perf_counter() - begun)

    async def _take(self, ctx: Any, call: Callable[[MemorySession], T]) -> T:
        request: AdmittedRequest = ctx.request.scope[CALL]
        client = self._client(ctx)
        if client:
            client_name = client.name
        else:
            client_name = ctx.request.headers.get("user-agent", "").partition("/")[0]
        client_label = f"http {client_text(client, '')}".strip()
        return await request.server.run(
            request, lambda memory: call(request.caller(memory, client_name, "mcp", client_label))
        )


class HttpServer:
    """Serves `homes` at `place`, on `listener`.

    toolsets: the toolsets to offer.
    threads: where calls run, until `stopping`.
    routes: the routes of OAuth, if any.
    pages: makes the routes of the page (serve/page).
    """

    def __init__(
        self,
        homes: Homes,
        access: Access,
        place: Place,
        identity: ServerIdentity,
        toolsets: Sequence[str],
        threads: ThreadPoolExecutor,
        stopping: threading.Event,
        *,
        listener: socket.socket | None = None,
        routes: Sequence[BaseRoute] = (),
        pages: Callable[[HttpServer], Sequence[BaseRoute]] | None = None,
    ):
        self.homes = homes
        self.access = access
        self.identity = identity
        self.stopping = stopping
        self._place = place
        self._toolsets = toolsets
        self._threads = threads
        self._listener = listener
        self._budgets = Budgets(access.clock, access.table)
        self._tasks: TaskGroup | None = None
        self._managers: dict[
            tuple[str | None, str, bool, tuple[str, ...]], StreamableHTTPSessionManager
        ] = {}
        self._turn = anyio.Lock()
        self._server: _Uvicorn | None = None
        self._served: asyncio.Task[None] | None = None
        self.metrics = Metrics()
        self.seen: dict[str, datetime] = {}
        """When each token, by its id, was last used here."""
        security = place.security()
        pattern = "|".join(
            re.escape(allowed_origin).replace(r":\*", r":\d+")
            for allowed_origin in security.allowed_origins
        )
        endpoint = CORSMiddleware(
            ExceptionMiddleware(self._answer, HANDLERS),
            allow_origin_regex=pattern,
            allow_methods=["POST"],
            allow_headers=_HEADERS,
            expose_headers=["www-authenticate", "mcp-session-id", "retry-after"],
        )
        health = Health(self.metrics, stopping, homes.memory(None), self.connections, self.admitted)
        self.app = Starlette(
            routes=[
                *(
                    Route(path, endpoint, methods=["POST", "OPTIONS"])
                    for path in ("/mcp", "/mcp/", "/s/{space}/mcp", "/s/{space}/mcp/")
                ),
                *health.routes(),
                *routes,
                *(pages(self) if pages else ()),
            ],
            middleware=[
                Middleware(RequestLog, counts=self.metrics.requests),
                Middleware(HostAndOrigin, settings=security, public=place.public),
                Middleware(BodyInTime),
            ],
            exception_handlers=HANDLERS,
            lifespan=self._lifespan,
        )
        self.app.state.server = self
        self.app.state.rounds = None
        self.app.state.sessions = None

    def connections(self) -> int:
        """How many are open."""
        if self._server is not None:
            return len(self._server.server_state.connections)
        return 0

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            try:
                yield
            finally:
                tasks.cancel_scope.cancel()

    async def start(self) -> None:
        """Begin to accept connections."""
        assert self._listener is not None
        config = uvicorn.Config(
            self.app,
            http=Connection,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=_KEPT_ALIVE,
            timeout_graceful_shutdown=_LAST_WORDS,
        )
        self._server = _Uvicorn(config)
        self._served = asyncio.create_task(self._server.serve([self._listener]))
        while not self._server.started and not self._served.done():
            await asyncio.sleep(0.01)

    async def stop(self) -> None:
        """Accept nothing more, answer what is in progress, and close."""
        self.stopping.set()
        if self._server is not None and self._served is not None:
            self._server.should_exit = True
            await self._served
        await asyncio.to_thread(self._threads.shutdown)
        await asyncio.to_thread(self.homes.close)
        self.access.close()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request at the MCP address of the home or of a space, as an ASGI application."""
        request = Request(scope)
        if request.method != "POST":
            why = "Send requests with POST; there are no streams or sessions here."
            raise RequestRefused(405, why, allow="POST")
        call = scope[CALL] = self.admitted(request)
        manager = await self._manager(call)
        try:
            await manager.handle_request(_accepting(scope), receive, send)
        except TimeoutError:
            raise RequestRefused(408, TOO_LATE) from None

    def admitted(self, request: Request) -> AdmittedRequest:
        """The call a request makes, if it is let in. Raises RequestRefused."""
        token = self._token_of(request)
        request.scope[TOKEN] = token
        space = self._space_of(request, token)
        if token is not None:
            refusal = self._budgets.take(token.id, token.rate, token.quota)
            if refusal:
                wait, why = refusal
                raise RequestRefused(429, why, retry_after=str(wait))
            self.seen[token.id] = self.access.clock()
            # The day of the last use is not worth a refusal
            with suppress(StorageError):
                self.access.note_use(token)
        return AdmittedRequest(token, space, self)

    def _token_of(self, request: Request) -> StoredToken | None:
        """The token of a request. None if there is none and none is needed. Raises RequestRefused."""
        kind, _, secret = request.headers.get("authorization", "").partition(" ")
        if not kind and self._place.is_open:
            return None
        public = self._place.public
        challenge = "Bearer"
        if public:
            metadata = f"{public}/.well-known/oauth-protected-resource{quote(request.url.path)}"
            challenge += f' resource_metadata="{metadata}"'
        if kind.lower() != "bearer" or not secret.strip():
            why = "Send a token: Authorization: Bearer cpl_…. The owner makes one with memory token add."
            raise RequestRefused(401, why, "invalid_request", www_authenticate=challenge)
        token = self.access.find(secret.strip())
        address = f"{public}{request.url.path.rstrip('/')}"
        if token is None or token.audience not in (None, address):
            why = "This token is unknown, expired or revoked, or for another address."
            challenge += ("," if public else "") + ' error="invalid_token"'
            raise RequestRefused(401, why, "invalid_token", www_authenticate=challenge)
        return token

    def _space_of(self, request: Request, token: StoredToken | None) -> Space | None:
        """The space that a request is about. None for the home. Raises RequestRefused: a space does
        not exist for a caller who is not its member.
        """
        name = request.path_params.get("space")
        member = None if token is None else token.member
        if name is None and member is None:
            return None
        space = self.access.spaces().get(name or "")
        if space is None or member is None or member not in space.members:
            raise RequestRefused(404, "There is nothing here for this token.")
        return space

    async def run(self, call: AdmittedRequest, work: Callable[[MemorySession], T]) -> T:
        """The result of `work` with the caller's memory, on a thread. Raises MemorandaError."""
        if self.stopping.is_set():
            raise Stopping
        stoppable = waits_until(self.stopping)(
            lambda: work(self.homes.memory(call.space, call.projects))
        )
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, stoppable)
        except MemorandaError:
            raise
        except Exception:
            # The outermost loop of this transport: errors are reported, and the server goes on.
            _log.exception("A call failed")
            raise InternalError from None

    async def _manager(self, call: AdmittedRequest) -> StreamableHTTPSessionManager:
        """The SDK's server of the tools this caller may use."""
        own_projects = {project.lower() for project in call.projects}
        names = tuple(
            toolset
            for toolset in self._toolsets
            if not own_projects or FACES[toolset].project in (None, *own_projects)
        )
        key = (call.space.name if call.space else None, call.scope, bool(call.projects), names)
        async with self._turn:
            if key not in self._managers:
                assert self._tasks is not None
                whole_registry = await asyncio.to_thread(self.homes.registry, call.space)
                toolsets = [
                    replace(
                        toolset,
                        tools=[
                            tool
                            for tool in toolset.tools
                            if may_use(call.scope, bool(call.projects), tool)
                        ],
                    )
                    for toolset in whole_registry.toolsets
                    if toolset.name in names
                ]
                # Which are shared
                registry = Registry(
                    [served_toolset for served_toolset in toolsets if served_toolset.tools],
                    whole_registry.hooks,
                )
                self._managers[key] = await self._tasks.start(self._keep, registry)
            return self._managers[key]

    async def _keep(
        self,
        registry: Registry,
        *,
        task_status: TaskStatus[StreamableHTTPSessionManager] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Run the SDK's server of `registry` until the end."""
        server = _HttpHandlers(registry, None, self.identity).server()
        manager = StreamableHTTPSessionManager(
            server, json_response=True, stateless=True, max_request_body_size=LIMIT
        )
        async with manager.run():
            task_status.started(manager)
            await anyio.sleep_forever()


def _accepting(scope: Scope) -> Scope:
    """`scope` with an Accept header: who sends none takes whatever there is (RFC 9110, 12.5.1)."""
    if any(name == b"accept" for name, _ in scope["headers"]):
        return scope
    return {**scope, "headers": [*scope["headers"], (b"accept", b"*/*")]}


class _Uvicorn(uvicorn.Server):
    """The signals are the daemon's."""

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]  # a generator there
        return nullcontext()
