"""The checks that every HTTP request passes: the check of Host and Origin, the time a body may
take, the line in the log; the answer to one that is not let in; and what is counted, as Prometheus
reads it, with whether the server is ready (docs/http.md)."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlsplit

import anyio
from h11 import LocalProtocolError
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memoranda import __version__
from memoranda.clock import waited, waits_at_most
from memoranda.errors import MemorandaError
from memoranda.serve.auth import StoredToken
from memoranda.text.unicode import one_line

if TYPE_CHECKING:
    from memoranda.engine import MemorySession

_log = logging.getLogger("memoranda.http")

ANY_ORIGIN = ("/.well-known/", "/register", "/token", "/revoke", "/healthz")
"""Where every web page may ask: nothing there takes the word of a browser that somebody is logged
in.
"""
# Seconds for the whole body of a request, however slowly it comes.
BODY_SECONDS = 30.0
BODY_BYTES = 8 << 20
"""Bytes of any request; those of MCP have a lower limit."""
TOO_LATE = f"The request did not come within {BODY_SECONDS:.0f} s."
CALL = "memoranda.call"
TOKEN = "memoranda.token"
"""Where the scope of a request keeps who was let in."""
T = TypeVar("T")
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Upper ends, in seconds, of the groups a call's time is counted in."""
# Characters of what a caller sent that a refusal shows
_SHOWN = 80
# Seconds between two looks whether a client is still there.
_LOOK_AFTER = 1.0
# Callers whose number of notes is remembered for that time.
# Seconds an answer about the memory is good for: whoever asks more often gets it again.
_MOST_COUNTED = 1_000
# Seconds the memory is waited for; one that takes longer is not ready.
_PATIENCE = 2.0


class RequestRefused(Exception):
    """A request that is not let in: the answer."""

    def __init__(self, status: int, message: str, error: str = "", **headers: str):
        super().__init__(message)
        body: dict[str, Any] = {
            "jsonrpc": "2.0",
            "id": None,
            "error": {"code": -32000, "message": message},
        }
        # As OAuth has it (RFC 6750), which clients look for
        if error:
            body = {"error": error, "error_description": message}
        self.response = JSONResponse(
            body, status, {key.replace("_", "-"): value for key, value in headers.items()}
        )


async def _answer(request: Request, error: Exception) -> Response:
    if isinstance(error, RequestRefused):
        return error.response
    _log.error("%s", error)
    return RequestRefused(503, "The memory cannot be opened; its log says why.").response


async def _missing(request: Request, error: Exception) -> Response:
    """Answer as JSON to a program, which reads nothing else, and as text on the page, which is for
    people.
    """
    assert isinstance(error, HTTPException)
    if request.url.path.startswith("/page"):
        return PlainTextResponse(error.detail, error.status_code, error.headers)
    body = {"error": _OAUTH_ERRORS.get(error.status_code, "invalid_request")}
    body["error_description"] = f"{error.detail}. MCP is at /mcp; docs/http.md has all addresses."
    return JSONResponse(body, error.status_code, error.headers)


# Codes of RFC 6749 for errors of the path and the method.
_OAUTH_ERRORS = {404: "not_found", 405: "method_not_allowed"}
HANDLERS = {RequestRefused: _answer, MemorandaError: _answer, HTTPException: _missing}
"""What Starlette answers to a request that is refused, or where the home is in no state to answer
anybody.
"""


def in_time(receive: Receive) -> Receive:
    """Wrap `receive` so that the whole body must arrive in time.

    It raises TimeoutError otherwise, and ClientDisconnect if the client goes away.
    """
    end = anyio.current_time() + BODY_SECONDS
    is_whole = False

    async def bounded() -> Message:
        nonlocal is_whole
        if is_whole:
            return await receive()
        with anyio.fail_after(max(0.0, end - anyio.current_time())):
            message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        is_whole = not message.get("more_body", False)
        return message

    return bounded


class HostAndOrigin:
    """Refuses requests for another host (421) or from a foreign page (403): a page can have this
    server's address. `public` is the address on the web, without a path.
    """

    def __init__(
        self, app: ASGIApp, settings: TransportSecuritySettings, public: str | None = None
    ):
        self._app = app
        self._check = TransportSecurityMiddleware(settings)
        self._public = urlsplit(public or "")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            request = Request(scope)
            refused = await self._check.validate_request(request)
            is_open = scope["path"].startswith(ANY_ORIGIN)
            if refused is not None and refused.status_code == 403 and is_open:
                refused = None
            if refused is not None:
                answer = _not_let_in(refused, request.headers)
                return await answer(scope, receive, send)
            if request.headers.get("host") == self._public.netloc:
                # A proxy speaks plain HTTP to us; redirects go where the client came from
                scope["scheme"] = self._public.scheme
        await self._app(scope, receive, send)


def _not_let_in(refused: Response, headers: Mapping[str, str]) -> Response:
    """The SDK's refusal, with what to do about it."""
    if refused.status_code == 421:
        host = _printable(headers.get("host", ""))
        return RequestRefused(
            421,
            f"This server is not called {host}. Call it by the address it was started with, or start it"
            " with --allow-host and this name (behind a proxy with --public-url and its address).",
        ).response
    if refused.status_code == 403:
        origin = _printable(headers.get("origin", ""))
        return RequestRefused(
            403,
            f"Web pages of {origin} may not call this server."
            " The owner lets them in with --allow-origin and this origin.",
        ).response
    return refused


def _printable(text: str) -> str:
    """A text that a caller sent, short and printable."""
    return f'"{one_line(text)[:_SHOWN]}"'


class BodyInTime:
    """Refuses a request whose body is too large (413) or does not come in time (408)."""

    def __init__(self, app: ASGIApp):
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        is_answered = False
        size = 0
        in_bounds = in_time(receive)

        async def bounded() -> Message:
            nonlocal size
            message = await in_bounds()
            size += len(message.get("body", b""))
            if size > BODY_BYTES:
                raise RequestRefused(413, f"A request may have {BODY_BYTES:,} bytes.")
            return message

        async def watched(message: Message) -> None:
            nonlocal is_answered
            is_answered = True
            await send(message)

        try:
            await self._app(scope, bounded, watched)
        except (TimeoutError, RequestRefused) as error:
            if is_answered:
                raise
            if isinstance(error, RequestRefused):
                refused = error
            else:
                refused = RequestRefused(408, TOO_LATE)
            await refused.response(scope, receive, send)


class RequestLog:
    """Writes one line for each request: the caller, the address, the status and the time. Contents
    are not logged.

    Requests are counted by status.
    """

    def __init__(self, app: ASGIApp, counts: Counter[str]):
        self._app = app
        self._counts = counts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        begin = time.perf_counter()
        status = 0

        async def watched(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            # The client did not send HTTP after all; it has been answered.
            with suppress(LocalProtocolError):
                await send(message)

        try:
            await self._app(scope, receive, watched)
        except ClientDisconnect:
            status = 499
        finally:
            self._counts[str(status)] += 1
            call = scope.get(CALL)
            token: StoredToken | None = scope.get(TOKEN)
            row = {
                "method": scope["method"],
                "path": quote(scope["path"])[:100],
                "status": status,
                "ms": round((time.perf_counter() - begin) * 1000),
                "token": f"{token.name}/{token.id}" if token else "-",
                "tool": ",".join(call.did) if call else "",
            }
            _log.info(" ".join(f"{key}={value}" for key, value in row.items() if value != ""))


class Metrics:
    """Counts since the server began. For the event loop's thread."""

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()
        """HTTP requests by the status of their answer."""
        self.calls: Counter[tuple[str, str]] = Counter()
        """Calls by tool, and `ok` or `error`."""
        self._times: dict[str, list[int]] = {}
        self._sums: Counter[str] = Counter()

    def count_call(self, tool: str, outcome: str, seconds: float) -> None:
        """Count a call that took so long, from the moment it was let in."""
        self.calls[tool, outcome] += 1
        self._times.setdefault(tool, [0] * (len(BOUNDS) + 1))[bisect_left(BOUNDS, seconds)] += 1
        self._sums[tool] += seconds  # type: ignore[assignment]  # a Counter of floats

    def text(self, gauges: Mapping[str, tuple[str, float | None]]) -> str:
        """All metrics as text.

        gauges: name to (meaning, value). None if the value is not known now.
        """
        rows: list[tuple[str, float]] = [
            (f'{{status="{status}"}}', n) for status, n in sorted(self.requests.items())
        ]
        calls = [
            (f'{{tool="{tool}",outcome="{end}"}}', n)
            for (tool, end), n in sorted(self.calls.items())
        ]
        times: list[tuple[str, float]] = []
        for tool, counts in sorted(self._times.items()):
            sums = zip((*map(str, BOUNDS), "+Inf"), accumulate(counts), strict=True)
            times += [(f'_bucket{{tool="{tool}",le="{bound}"}}', total) for bound, total in sums]
            times += [
                (f'_sum{{tool="{tool}"}}', self._sums[tool]),
                (f'_count{{tool="{tool}"}}', sum(counts)),
            ]
        return "".join(
            [
                _family(
                    "info",
                    "gauge",
                    "The version of memoranda.",
                    [(f'{{version="{__version__}"}}', 1)],
                ),
                _family(
                    "requests_total", "counter", "HTTP requests by the status of the answer.", rows
                ),
                _family("calls_total", "counter", "Calls by tool and outcome.", calls),
                _family(
                    "call_seconds",
                    "histogram",
                    "How long calls took, their waiting included.",
                    times,
                ),
                _family("lock_waits_total", "counter", "Waits for a lock.", [("", waited.count)]),
                _family(
                    "lock_wait_seconds_total",
                    "counter",
                    "Seconds waited for locks.",
                    [("", waited.seconds)],
                ),
                *(
                    _family(name, "gauge", description, [] if value is None else [("", value)])
                    for name, (description, value) in gauges.items()
                ),
            ]
        )


def _family(name: str, kind: str, description: str, rows: Sequence[tuple[str, float]]) -> str:
    lines = [f"# HELP memoranda_{name} {description}", f"# TYPE memoranda_{name} {kind}"]
    for labels, value in rows:
        lines.append(
            f"memoranda_{name}{labels} {value if isinstance(value, int) else round(value, 6)}"
        )
    return "".join(f"{line}\n" for line in lines)


class Health:
    """Reports the state of the server: `/healthz` and `/readyz` for anybody, `/metrics` for the
    owner's tokens.

    Callers limited to some projects may not see the numbers of the whole home.

    memory: the memory of the home's owner.
    connections: gives the number of connections.
    admitted: lets a request in, as `HttpServer.admitted`, or raises RequestRefused.
    """

    def __init__(
        self,
        metrics: Metrics,
        stopping: threading.Event,
        memory: MemorySession,
        connections: Callable[[], int],
        admitted: Callable[[Request], Any],
    ):
        self._metrics = metrics
        self._stopping = stopping
        self._memory = memory
        self._connections = connections
        self._admitted = admitted
        self._turn = asyncio.Lock()
        self._asked = float("-inf")
        self._is_known = False
        self._lag: int | None = None
        self._counted: dict[str | None, tuple[float, int]] = {}

    def routes(self) -> list[BaseRoute]:
        """The routes of all three."""
        answers = {"/healthz": self._alive, "/readyz": self._ready, "/metrics": self._numbers}
        return [Route(path, answer, methods=["GET"]) for path, answer in answers.items()]

    async def _alive(self, request: Request) -> Response:
        stops = self._stopping.is_set()
        return JSONResponse({"status": "stopping" if stops else "ok"}, 503 if stops else 200)

    async def _ready(self, request: Request) -> Response:
        """Whether a call would see everything that was acknowledged before it."""
        is_known, lag = await self._state()
        if self._stopping.is_set():
            status = "stopping"
        elif not is_known:
            status = "unavailable"
        elif lag:
            status = "behind"
        else:
            status = "ready"
        return JSONResponse({"status": status, "lag": lag}, 200 if status == "ready" else 503)

    async def _numbers(self, request: Request) -> Response:
        call = self._admitted(request)
        if call.projects:
            raise RequestRefused(404, "There is nothing here for this token.")
        is_known, lag = await self._state()
        notes = None
        connections = None
        if is_known:
            notes = await self._notes_seen(call.caller(self._memory, "", "http", "metrics"))
            connections = self._connections()
        gauges: dict[str, tuple[str, float | None]] = {
            "ready": ("Whether the memory can be read.", int(is_known)),
            "index_lag_changes": ("Acknowledged changes that are not shown here yet.", lag),
            "notes": ("Notes of the home that the caller sees.", notes),
            "connections": ("Open connections.", connections),
        }
        return PlainTextResponse(
            self._metrics.text(gauges), media_type="text/plain; version=0.0.4; charset=utf-8"
        )

    async def _state(self) -> tuple[bool, int | None]:
        """Whether the memory could be asked in time; and the acknowledged changes that are not
        shown yet, None where the database cannot be asked.
        """
        async with self._turn:
            if time.monotonic() - self._asked >= _LOOK_AFTER:
                self._is_known = False
                self._lag = None
                with suppress(MemorandaError, TimeoutError):
                    self._lag = await _in_time(self._ask)
                    self._is_known = True
                self._asked = time.monotonic()
            return self._is_known, self._lag

    def _ask(self) -> int | None:
        # A memory that cannot be read raises here
        self._memory.stats()
        return self._memory.lag()

    async def _notes_seen(self, caller: MemorySession) -> int | None:
        """How many notes the caller sees. None if they could not be counted in time."""
        async with self._turn:
            last, number = self._counted.get(caller.agent, (float("-inf"), 0))
            if time.monotonic() - last < _LOOK_AFTER:
                return number
            with suppress(MemorandaError, TimeoutError):
                number = (await _in_time(caller.stats)).total
                if len(self._counted) >= _MOST_COUNTED:
                    self._counted.clear()
                self._counted[caller.agent] = (time.monotonic(), number)
                return number
        return None


async def _in_time(ask: Callable[[], T]) -> T:
    """The result of `ask`, on a thread. Raises TimeoutError after `_PATIENCE` seconds."""
    patient = waits_at_most(_PATIENCE)(ask)
    return await asyncio.wait_for(asyncio.to_thread(patient), _PATIENCE)
