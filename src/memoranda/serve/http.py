"""Serves MCP over HTTP (docs/http.md) on the daemon's event loop.

The SDK speaks the protocol. Before a request reaches the SDK, it passes checks in this order: Host
and Origin, the method, the token, the space, the rate and the body. No state is kept between the
requests of a client, so clients of older and newer revisions of MCP are served alike. Each caller
gets the tools that its token allows.
"""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
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
from memoranda.serve.call_queue import InternalError, Stopping
from memoranda.serve.connections import LOOPBACK, Connection
from memoranda.serve.mcp import Handlers, ServerIdentity, agent_of, client_text
from memoranda.serve.middleware import (
    ADMITTED,
    HANDLERS,
    NOTHING_HERE,
    TOKEN,
    TOO_LATE,
    BodyLimits,
    Health,
    HostAndOrigin,
    Metrics,
    RequestLog,
    RequestRefused,
    SdkAnswer,
    check_json_type,
)
from memoranda.serve.socket import LIMIT

if TYPE_CHECKING:
    from memoranda.config import Settings
    from memoranda.engine import MemorySession

T = TypeVar("T")
_log = logging.getLogger("memoranda.http")

WEB_CLIENTS = ("https://claude.ai", "https://claude.com", "https://chatgpt.com")
"""Origins whose pages may call a server with a public address."""
# When the server ends, calls in progress may take this many seconds.
_SHUTDOWN_SECONDS = 5
# An idle connection stays open for this many seconds.
_IDLE_SECONDS = 75
# The script of a web page may send these headers.
_SCRIPT_HEADERS = [
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
    """Where the server listens, and how callers may reach it.

    host: the name or IP address at which it listens.
    port: the port at which it listens. 0 means any free one.
    is_open: whether callers need no token.
    public: the server's address on the web, without a path. None means that it is not on the web.
    hosts: more names of this server that a request may use.
    origins: more origins of web pages that may call it.
    """

    host: str
    port: int
    is_open: bool = False
    public: str | None = None
    hosts: Sequence[str] = ()
    origins: Sequence[str] = ()

    def check(self) -> None:
        """Raise ConfigError for a place where anybody could call, or an invalid public address."""
        is_for_this_machine = self.host in LOOPBACK and not self.public
        if self.is_open and not is_for_this_machine:
            raise ConfigError(
                "--no-token is for this machine alone: listen on 127.0.0.1, and without --public-url"
            )
        if self.public:
            parts = urlsplit(self.public)
            is_local = parts.scheme == "http" and parts.hostname in LOOPBACK
            is_safe = parts.scheme == "https" or is_local
            if not is_safe or not parts.hostname or parts.path or parts.query:
                raise ConfigError(
                    f'--public-url must be https://HOST without a path, got "{self.public}"'
                )

    def security(self) -> TransportSecuritySettings:
        """Return the names that requests may use for this server, and the origins that may call it.

        These are the addresses of this machine, the public address with the clients on the web, and
        `hosts` and `origins`.
        """
        local_hosts = [_url_host(host) for host in {*LOOPBACK, self.host}]
        host_names = [*local_hosts, *self.hosts]
        web_origins: list[str] = []
        if self.public:
            host_names.append(urlsplit(self.public).netloc)
            web_origins = [self.public, *WEB_CLIENTS]
        local_origins = [f"http://{host}" for host in local_hosts]
        # The SDK reads `:*` as any port.
        local_origins += [f"{origin}:*" for origin in local_origins]
        return TransportSecuritySettings(
            allowed_hosts=host_names + [f"{name}:*" for name in host_names],
            allowed_origins=[*local_origins, *web_origins, *self.origins],
        )

    def address(self, port: int) -> str:
        """Return the address that a program on this machine can use to reach the server.

        port: the port at which it really listens.
        """
        # A server that listens on all addresses is reached at the loopback address.
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return f"http://{_url_host(host)}:{port}"

    def listen(self) -> socket.socket:
        """Open the listening socket. Raises StorageError."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        try:
            listener = socket.create_server((self.host, self.port), family=family, backlog=1024)
            # Connections inherit the option. Without it, each answer after the first waits 40 ms.
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return listener
        except OSError as error:
            # Python adds "(while attempting to bind on address …)", which our sentence says.
            why = str(error.strerror).partition(" (while")[0]
            address = f"{self.host}:{self.port}"
            refused = StorageError(address, why)
            # The usual sentence of this error is about files.
            refused.args = (
                f"cannot listen on {address}: {why}. Choose another address with --http.",
            )
            raise refused from None


def _url_host(host: str) -> str:
    """Return a host as an address has it: an IPv6 address is in brackets."""
    return f"[{host}]" if ":" in host else host


def host_and_port(text: str) -> tuple[str, int]:
    """Split the value of `--http` into a host and a port. Raises ConfigError.

    `0.0.0.0:80` gives ("0.0.0.0", 80), `[::1]:80` gives ("::1", 80), and `80` gives
    ("127.0.0.1", 80).
    """
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if not port.isdecimal() or int(port) > 65535 or "/" in host:
        raise ConfigError(f'--http takes HOST:PORT, e.g. 127.0.0.1:8377, got "{text}"')
    return host, int(port)


class Homes:
    """Opens the memories that one server serves: its home, and the spaces. Thread-safe.

    A memory stays open until `close`, so that later requests find it open.

    memory: the memory of the home's owner. Its opener closes it.
    registry: the tools of the home.
    registry_for: makes the tools of a space from its memory.
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
        # The key is the place of the space (None for the home), and the sorted projects.
        self._open_memories: dict[tuple[str | None, tuple[str, ...]], MemorySession] = {}
        self._open_contexts = ExitStack()

    def memory(self, space: Space | None, projects: tuple[str, ...] = ()) -> MemorySession:
        """Return an open memory.

        space: the space. None means the home.
        projects: the only projects that the memory shows. Empty means all.
        """
        if space is None and not projects:
            return self._memory
        # Calls with the same space and projects share one open memory.
        key = (space.place if space else None, tuple(sorted(projects)))
        with self._lock:
            if key not in self._open_memories:
                session = self._session(space, projects)
                self._open_memories[key] = self._open_contexts.enter_context(session)
            return self._open_memories[key]

    def _session(
        self, space: Space | None, projects: tuple[str, ...]
    ) -> AbstractContextManager[MemorySession]:
        """Return a memory that is not open yet. `memory` explains the arguments."""
        from memoranda.engine import open_session

        home = str(self._memory.home)
        settings = self._memory.settings
        own_settings: Settings | None = settings
        if space:
            home = settings.address_of(space.database) if space.database else str(space.home)
            # A space has its own configuration, which is read there.
            own_settings = None
        return open_session(
            home,
            config=own_settings,
            face="mcp",
            clock=self._memory.clock,
            only=projects,
            serving=True,
        )

    def registry(self, space: Space | None) -> Registry:
        """Return all tools of a space, or of the home if `space` is None."""
        if space is None:
            return self._registry
        return self._registry_for(self.memory(space))

    def close(self) -> None:
        """Close all memories except the one given by the server's opener."""
        self._open_contexts.close()


@dataclass
class AdmittedRequest:
    """A request that passed the checks.

    token: the caller's token. None means the owner, who needs none.
    space: the space that the request is for. None means the home.
    server: the server that admitted it.
    called_tools: the names of the tools that the request called, for the log.
    """

    token: StoredToken | None
    space: Space | None
    server: HttpServer
    called_tools: list[str] = field(default_factory=list)

    @property
    def scope(self) -> str:
        """The rights of the caller. In a space, its role there may allow less than its token."""
        if self.token is None:
            return "admin"
        if self.space is None or self.token.member is None:
            return self.token.scope
        role = self.space.members[self.token.member]
        return least_scope(self.token.scope, ROLES[role])

    @property
    def projects(self) -> tuple[str, ...]:
        """The only projects that the caller sees. Empty means all."""
        if self.token:
            return self.token.projects
        return ()

    def memory_of_caller(
        self, memory: MemorySession, *, client_name: str, face: str, recorded_client: str
    ) -> MemorySession:
        """Return `memory` as this caller may use it: with the caller's agent and rights.

        memory: the memory of the home or space.
        client_name: the name that the client gives itself, which may tell its agent.
        face: the interface of the call, such as `mcp`, for the ledger.
        recorded_client: the name under which the ledger records the client.
        """
        # Without a token, the caller belongs to no session of its own.
        session: dict[str, str] = {}
        if self.token is not None:
            session["session"] = self.token.id
        agent = self._agent(client_name)
        caller_memory = memory.as_caller(agent, face, client=recorded_client, **session)
        caller_memory.only_reads = self.scope == "read"
        return caller_memory

    def _agent(self, client_name: str) -> str | None:
        """Return the agent as which the caller acts: the first one that is set.

        1. the agent of the token, or in a space the name of the token's member
        2. the agent that the server was told to take for every caller
        3. the agent that the client's own name stands for

        client_name: the name that the client gives itself.
        """
        token_agent = None
        if self.token is not None:
            token_agent = self.token.agent if self.space is None else self.token.member
        identity = self.server.identity
        return token_agent or identity.agent or agent_of(client_name, identity.clients)


def program_of(request: Request) -> str:
    """Return the name of the program that sends a request: "my-editor" for "my-editor/2.1 (Linux)".

    "" if the request does not name it.
    """
    name, _, _ = request.headers.get("user-agent", "").partition("/")
    return name


class _HttpHandlers(Handlers):
    """Answers the requests of many callers. Each request uses the memory of its caller.

    Callers are not told of changed resources, because no connection stays open for them.
    """

    async def call(self, ctx: Any, params: Any) -> dict[str, Any]:
        """Run a tool, and count the call and its time.

        ctx: the context of the request, from the SDK.
        params: the name of the tool, and its arguments.
        """
        if params.name not in self._registry.tools:
            return await super().call(ctx, params)
        admitted_request: AdmittedRequest = ctx.request.scope[ADMITTED]
        admitted_request.called_tools.append(params.name)
        begin = time.perf_counter()
        outcome = "error"
        try:
            result = await super().call(ctx, params)
            if not result["isError"]:
                outcome = "ok"
            return result
        finally:
            seconds = time.perf_counter() - begin
            admitted_request.server.metrics.count_call(params.name, outcome, seconds)

    async def _run_for_caller(self, ctx: Any, call: Callable[[MemorySession], T]) -> T:
        """Run `call` on a thread, with the memory of the request's caller.

        ctx: the context of the request, from the SDK.
        """
        admitted_request: AdmittedRequest = ctx.request.scope[ADMITTED]
        client = self._client(ctx)
        if client:
            client_name = client.name
        else:
            client_name = program_of(ctx.request)
        client_label = f"http {client_text(client, '')}".strip()

        def call_as_caller(memory: MemorySession) -> T:
            return call(
                admitted_request.memory_of_caller(
                    memory, client_name=client_name, face="mcp", recorded_client=client_label
                )
            )

        return await admitted_request.server.run(admitted_request, call_as_caller)


class HttpServer:
    """The HTTP server of a home and its spaces.

    place: where it listens, and whom it lets in.
    identity: its name, and how it finds a caller's agent.
    toolsets: the names of the toolsets to offer.
    threads: where calls run.
    stopping: set as soon as calls must end.
    listener: the socket to accept connections on. None: `app` is called directly, as by tests.
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
        # A manager of the SDK for each offer of tools. The first request with an offer starts it as
        # one of `_tasks`, which are there while the application runs. The lock keeps two requests
        # from making the same manager.
        self._managers: dict[_Offer, StreamableHTTPSessionManager] = {}
        self._managers_lock = anyio.Lock()
        self._tasks: TaskGroup | None = None
        # The server behind `listener`, and the task that runs it. None before the start.
        self._server: _Uvicorn | None = None
        self._serving: asyncio.Task[None] | None = None
        self.metrics = Metrics()
        self.last_uses: dict[str, datetime] = {}
        """When each token was last used with this server, by the token's id."""
        own_pages = pages(self) if pages else ()
        self.app = self._application([*routes, *own_pages])
        self.app.state.server = self
        self.app.state.rounds = None
        self.app.state.sessions = None

    def _application(self, further_routes: Sequence[BaseRoute]) -> Starlette:
        """Return the ASGI application with the MCP addresses, the health checks and further routes."""
        security = self._place.security()
        # `:*` means any port.
        origin_pattern = "|".join(
            re.escape(allowed_origin).replace(r":\*", r":\d+")
            for allowed_origin in security.allowed_origins
        )
        # Scripts of a web page may call an MCP address if their origin is allowed.
        endpoint = CORSMiddleware(
            ExceptionMiddleware(self._answer, HANDLERS),
            allow_origin_regex=origin_pattern,
            allow_methods=["POST"],
            allow_headers=_SCRIPT_HEADERS,
            expose_headers=["www-authenticate", "mcp-session-id", "retry-after"],
        )
        mcp_paths = ("/mcp", "/mcp/", "/s/{space}/mcp", "/s/{space}/mcp/")
        # Any method: the endpoint says what to do in place of a GET.
        mcp_routes = [Route(path, endpoint) for path in mcp_paths]
        health = Health(
            self.metrics,
            self.stopping,
            memory=self.homes.memory(None),
            connections=self.connections,
            admit=self.admit,
        )
        return Starlette(
            routes=[*mcp_routes, *health.routes(), *further_routes],
            middleware=[
                Middleware(RequestLog, counts=self.metrics.requests),
                Middleware(HostAndOrigin, settings=security, public=self._place.public),
                Middleware(BodyLimits),
            ],
            exception_handlers=HANDLERS,
            lifespan=self._lifespan,
        )

    def connections(self) -> int:
        """Return how many connections are open."""
        if self._server is not None:
            return len(self._server.server_state.connections)
        return 0

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Keep the task group of the SDK's servers open until the server ends."""
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
            timeout_keep_alive=_IDLE_SECONDS,
            timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        )
        self._server = _Uvicorn(config)
        self._serving = asyncio.create_task(self._server.serve([self._listener]))
        while not self._server.started and not self._serving.done():
            await asyncio.sleep(0.01)

    async def stop(self) -> None:
        """Accept no new requests, answer the present ones, and close."""
        self.stopping.set()
        if self._server is not None and self._serving is not None:
            self._server.should_exit = True
            await self._serving
        await asyncio.to_thread(self._threads.shutdown)
        await asyncio.to_thread(self.homes.close)
        self.access.close()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request at the MCP address of the home or of a space, as an ASGI application.

        scope: the facts about the request.
        receive: gives its body.
        send: takes the answer.

        Raises RequestRefused for a request that is not served.
        """
        request = Request(scope)
        if request.method != "POST":
            why = "Send requests with POST; there are no streams or sessions here."
            raise RequestRefused(405, why, allow="POST, OPTIONS")
        admitted_request = self.admit(request)
        # The handlers and the log find it there.
        scope[ADMITTED] = admitted_request
        manager = await self._manager(admitted_request)
        check_json_type(request)
        answer = SdkAnswer(send, LIMIT)
        try:
            await manager.handle_request(_with_accept_header(scope), receive, answer.send)
        except TimeoutError:
            raise RequestRefused(408, TOO_LATE) from None
        answer.check()

    def admit(self, request: Request) -> AdmittedRequest:
        """Check the token, the space and the rate of a request. Raises RequestRefused."""
        token = self._token_of(request)
        # The log names the token of a request that is refused below, too.
        request.scope[TOKEN] = token
        space = self._space_of(request, token)
        if token is not None:
            refusal = self._budgets.take(token.id, token.rate, token.quota)
            if refusal:
                retry_after = str(refusal.wait_seconds)
                raise RequestRefused(429, refusal.reason, retry_after=retry_after)
            self.last_uses[token.id] = self.access.clock()
            # A request is not refused only because the day of the last use cannot be stored.
            with suppress(StorageError):
                self.access.record_use(token)
        return AdmittedRequest(token, space, self)

    def _token_of(self, request: Request) -> StoredToken | None:
        """Return the token of a request. Raises RequestRefused if it has no valid one.

        None if the request has no token and the server needs none.
        """
        kind, _, secret = request.headers.get("authorization", "").partition(" ")
        # Where no token is needed, a wrong one is refused all the same.
        if not kind and self._place.is_open:
            return None
        path = request.url.path
        if kind.lower() != "bearer" or not secret.strip():
            why = (
                "Send a token: Authorization: Bearer cpl_…. "
                "The owner makes one with memory token add."
            )
            challenge = self._challenge(path)
            raise RequestRefused(401, why, "invalid_request", www_authenticate=challenge)
        token = self.access.find(secret.strip())
        address = f"{self._place.public}{path.rstrip('/')}"
        # A token of OAuth is only for the address that it was given out for (its audience).
        is_for_here = token is not None and (token.audience is None or token.audience == address)
        if token is None or not is_for_here:
            why = "This token is unknown, expired or revoked, or for another address."
            challenge = self._challenge(path, 'error="invalid_token"')
            raise RequestRefused(401, why, "invalid_token", www_authenticate=challenge)
        return token

    def _challenge(self, path: str, *further_parameters: str) -> str:
        """Return the header that tells a client how to get a token: `Bearer resource_metadata="…"`.

        path: the path that the client asked for.
        further_parameters: parameters such as `error="invalid_token"`.
        """
        parameters = list(further_parameters)
        public = self._place.public
        # Only a server with a public address has OAuth, whose documents say where tokens are given.
        if public:
            metadata = f"{public}/.well-known/oauth-protected-resource{quote(path)}"
            parameters.insert(0, f'resource_metadata="{metadata}"')
        return f"Bearer {', '.join(parameters)}".rstrip()

    def _space_of(self, request: Request, token: StoredToken | None) -> Space | None:
        """Return the space that a request is for. None means the home.

        Raises RequestRefused for a space that does not exist or does not have the caller as a member,
        with the same answer. A member's token is refused at the home.
        """
        name = request.path_params.get("space")
        member = None if token is None else token.member
        if name is None and member is None:
            return None
        # The answer is the same in each case, so that nobody learns which spaces there are.
        refusal = RequestRefused(404, NOTHING_HERE)
        if name is None or member is None:
            raise refusal
        space = self.access.spaces().get(name)
        if space is None or member not in space.members:
            raise refusal
        return space

    async def run(self, call: AdmittedRequest, work: Callable[[MemorySession], T]) -> T:
        """Run `work` with the memory of the request, on a thread, and return its result.

        Raises MemorandaError.
        """
        if self.stopping.is_set():
            raise Stopping
        # A call waits for locks only until the server must stop.
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
        """Return the SDK's server of the tools that this caller may use.

        Callers with the same space, scope and toolsets share a server.
        """
        own_projects = {project.lower() for project in call.projects}
        toolset_names = tuple(
            toolset for toolset in self._toolsets if _may_use_toolset(toolset, own_projects)
        )
        space_name = call.space.name if call.space else None
        offer = _Offer(space_name, call.scope, bool(call.projects), toolset_names)
        async with self._managers_lock:
            if offer not in self._managers:
                assert self._tasks is not None
                whole_registry = await asyncio.to_thread(self.homes.registry, call.space)
                registry = _limited_registry(whole_registry, offer)
                # Returns what `_run_manager` passes to `task_status.started`. The task goes on.
                self._managers[offer] = await self._tasks.start(self._run_manager, registry)
            return self._managers[offer]

    async def _run_manager(
        self,
        registry: Registry,
        *,
        task_status: TaskStatus[StreamableHTTPSessionManager] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Run the SDK's server of `registry` until this server ends.

        registry: the tools that it offers.
        task_status: told as soon as requests can be handled.
        """
        server = _HttpHandlers(registry, None, self.identity).server()
        manager = StreamableHTTPSessionManager(
            server, json_response=True, stateless=True, max_request_body_size=LIMIT
        )
        async with manager.run():
            task_status.started(manager)
            await anyio.sleep_forever()


class _Offer(NamedTuple):
    """The facts that decide which tools a caller is served.

    space: the name of the space. None means the home.
    scope: the scope of the caller's token: `read` or `write`, for example.
    is_limited: whether the caller sees only some projects.
    toolset_names: the toolsets that the server offers.
    """

    space: str | None
    scope: str
    is_limited: bool
    toolset_names: tuple[str, ...]


def _may_use_toolset(toolset: str, own_projects: Collection[str]) -> bool:
    """Whether a caller may use a toolset, which may be about one project only.

    own_projects: the names of the projects that the caller sees, in lower case. Empty if the caller
        sees all projects.
    """
    project_of_toolset = FACES[toolset].project
    if project_of_toolset is None or not own_projects:
        return True
    return project_of_toolset in own_projects


def _limited_registry(whole_registry: Registry, offer: _Offer) -> Registry:
    """Return a registry of only the tools that `offer` allows.

    whole_registry: all tools of the home or space.
    """
    toolsets = []
    for toolset in whole_registry.toolsets:
        if toolset.name not in offer.toolset_names:
            continue
        tools = [tool for tool in toolset.tools if may_use(offer.scope, offer.is_limited, tool)]
        if tools:
            # The toolset of the whole registry is shared, so it stays unchanged.
            toolsets.append(replace(toolset, tools=tools))
    return Registry(toolsets, whole_registry.hooks)


def _with_accept_header(scope: Scope) -> Scope:
    """Return `scope` with an Accept header, which the SDK demands.

    A client that sends none accepts any type (RFC 9110, 12.5.1).
    """
    if any(name == b"accept" for name, _ in scope["headers"]):
        return scope
    return {**scope, "headers": [*scope["headers"], (b"accept", b"*/*")]}


class _Uvicorn(uvicorn.Server):
    """A server that leaves signals to the daemon."""

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]  # a generator there
        return nullcontext()
