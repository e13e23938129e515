"""Checks, logs and counts every HTTP request (docs/http.md).

`HostAndOrigin` and `BodyLimits` are the checks, `RequestRefused` the answer to a request that fails
one. `RequestLog` writes the log. `Metrics` counts requests and calls, and `Health` reports the
counts in the format of Prometheus, and whether the server is ready.
"""

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
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
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
from memoranda.text.outside import outside_text
from memoranda.text.unicode import one_line

if TYPE_CHECKING:
    from memoranda.engine import MemorySession

_log = logging.getLogger("memoranda.http")

PATHS_FOR_ANY_ORIGIN = ("/.well-known/", "/register", "/token", "/revoke", "/healthz")
"""Pages of any origin may request paths with these beginnings. Cookies have no effect there, so a
foreign page cannot act for a visitor."""
BODY_SECONDS = 30.0
"""The whole body of a request may take this many seconds, however slowly it comes."""
BODY_BYTES = 8 << 20
"""A request may have this many bytes. MCP has a lower limit."""
TOO_LATE = f"The request did not come within {BODY_SECONDS:.0f} s."
NOTHING_HERE = (
    "There is nothing here for this token. Ask the owner for one that opens this address."
)
"""The answer to a request for what the token does not open, whether it exists or not."""
ADMITTED = "memoranda.call"
"""The key in the scope of a request of its AdmittedRequest (serve/http.py)."""
TOKEN = "memoranda.token"
"""The key in the scope of a request of the caller's StoredToken, or None."""
T = TypeVar("T")
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Upper bounds, in seconds, of the groups in which the times of calls are counted."""
_WHAT_TO_SEND = 'Send one object with "jsonrpc": "2.0", "method" and, for a call, "id".'
# A refusal quotes at most this many characters of a header.
_MAX_QUOTED_CHARACTERS = 80
# For this many seconds, the answer about the memory is repeated without asking the memory.
_REUSE_SECONDS = 1.0
# The number of notes is remembered for at most this many callers.
_MAX_COUNTED_CALLERS = 1_000
# A line of the log has at most this many characters of a path.
_MAX_LOGGED_CHARACTERS = 100
# A memory that takes longer to answer is not ready.
_MEMORY_WAIT_SECONDS = 2.0


class RequestRefused(Exception):
    """A request fails a check.

    response: the answer to it.
    """

    def __init__(
        self, status: int, message: str, error: str = "", *, code: int = -32000, **headers: str
    ):
        """Make the answer.

        status: the HTTP status of the answer.
        message: a sentence for the caller.
        error: the error code of OAuth (RFC 6750), such as "invalid_token". "" makes the answer an
            error of JSON-RPC.
        code: the code of an error of JSON-RPC.
        headers: headers of the answer, with `_` in place of `-`.
        """
        super().__init__(message)
        body: dict[str, Any]
        if error:
            body = {"error": error, "error_description": message}
        else:
            rpc_error = {"code": code, "message": message}
            body = {"jsonrpc": "2.0", "id": None, "error": rpc_error}
        named_headers = {key.replace("_", "-"): value for key, value in headers.items()}
        self.response = JSONResponse(body, status, named_headers)


async def _answer_refusal(request: Request, error: Exception) -> Response:
    """Return the answer to a request that was refused, or whose memory cannot be opened."""
    if isinstance(error, RequestRefused):
        return error.response
    _log.error("%s", error)
    return RequestRefused(503, "The memory cannot be opened; its log says why.").response


async def _answer_wrong_address(request: Request, error: Exception) -> Response:
    """Answer a wrong path or method: in JSON for programs, as text for people on the page."""
    assert isinstance(error, HTTPException)
    if request.url.path.startswith("/page"):
        return PlainTextResponse(error.detail, error.status_code, error.headers)
    description = f"{error.detail}. MCP is at /mcp; docs/http.md has all addresses."
    if error.status_code == 405 and error.headers:
        methods = " or ".join(sorted(error.headers["Allow"].split(", ")))
        description = f"Call this address with {methods}. docs/http.md has all addresses."
    body = {"error": _OAUTH_ERRORS.get(error.status_code, "invalid_request")}
    body["error_description"] = description
    return JSONResponse(body, error.status_code, error.headers)


# Codes of RFC 6749 for errors of the path and the method.
_OAUTH_ERRORS = {404: "not_found", 405: "method_not_allowed"}
HANDLERS = {
    RequestRefused: _answer_refusal,
    MemorandaError: _answer_refusal,
    HTTPException: _answer_wrong_address,
}
"""The functions by which Starlette answers an exception, by its class."""


def timed_receive(receive: Receive) -> Receive:
    """Return `receive` with a limit: it raises TimeoutError if the body takes over BODY_SECONDS.

    It raises ClientDisconnect if the client goes away before the end of the body.
    """
    end = anyio.current_time() + BODY_SECONDS
    is_whole = False

    async def receive_before_end() -> Message:
        """Return the next part of the request. Raises TimeoutError, ClientDisconnect."""
        nonlocal is_whole
        # After the body, `receive` waits until the client goes away, which takes any time.
        if is_whole:
            return await receive()
        with anyio.fail_after(max(0.0, end - anyio.current_time())):
            message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        is_whole = not message.get("more_body", False)
        return message

    return receive_before_end


def check_json_type(request: Request) -> None:
    """Raise RequestRefused for a request to MCP whose Content-Type is not JSON."""
    if not request.headers.get("content-type", "").lower().startswith("application/json"):
        raise RequestRefused(400, "Send JSON, with the header Content-Type: application/json.")


class SdkAnswer:
    """The SDK's answer to a request to MCP, or our own in place of one that does not say what to do.

    The SDK says of a long body only that it is too large. About a body that is no JSON or no
    JSON-RPC, it repeats what the library says that reads it, with names of classes.

    send: takes the answer.
    limit: the number of bytes that a body may have.
    """

    def __init__(self, send: Send, limit: int):
        self._send = send
        self._limit = limit
        # The beginning of an answer, until its body tells whether it is replaced.
        self._held_start: Message | None = None
        self._refusal: RequestRefused | None = None

    async def send(self, message: Message) -> None:
        """Send a part of the SDK's answer, or drop it if the answer is replaced."""
        if message["type"] == "http.response.start" and message["status"] in (400, 413):
            self._held_start = message
            return
        start, self._held_start = self._held_start, None
        if start is not None:
            self._refusal = self._replacement(start["status"], message.get("body", b""))
            if self._refusal is None:
                await self._send(start)
        if self._refusal is None:
            await self._send(message)

    def _replacement(self, status: int, body: bytes) -> RequestRefused | None:
        """Return the refusal to send in place of the SDK's answer. None leaves the answer."""
        if status == 413:
            return RequestRefused(413, f"A request may have {self._limit:,} bytes.")
        if b'"message":"Parse error' in body:
            return RequestRefused(400, f"The body is no JSON. {_WHAT_TO_SEND}", code=-32700)
        if b'"message":"Validation error: ' in body:
            return RequestRefused(400, f"The body is no JSON-RPC. {_WHAT_TO_SEND}", code=-32600)
        return None

    def check(self) -> None:
        """Raise RequestRefused if the SDK's answer is replaced."""
        if self._refusal is not None:
            raise self._refusal


class HostAndOrigin:
    """Refuses requests for another host (421) or from a foreign web page (403).

    Without this check, a foreign page whose host name leads to this server's IP address could use
    it in the visitor's browser.

    settings: the hosts and origins to let in.
    public: the server's address on the web, without a path.
    """

    def __init__(
        self, app: ASGIApp, settings: TransportSecuritySettings, public: str | None = None
    ):
        self._app = app
        self._check = TransportSecurityMiddleware(settings)
        self._public = urlsplit(public or "")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request from a wrong place, or pass it on, as an ASGI application."""
        if scope["type"] == "http":
            request = Request(scope)
            refusal = await self._check.validate_request(request)
            # The SDK refuses an origin by 403, and a host by another status. Some addresses may be
            # called from pages of any origin.
            is_refused_origin = refusal is not None and refusal.status_code == 403
            if is_refused_origin and scope["path"].startswith(PATHS_FOR_ANY_ORIGIN):
                refusal = None
            if refusal is not None:
                answer = _refusal_with_advice(refusal, request.headers)
                return await answer(scope, receive, send)
            # The client came by https to a proxy, which speaks http to us. Redirects must lead to
            # https.
            if request.headers.get("host") == self._public.netloc:
                scope["scheme"] = self._public.scheme
        await self._app(scope, receive, send)


def _refusal_with_advice(refusal: Response, headers: Mapping[str, str]) -> Response:
    """Return the SDK's refusal of a host or an origin with advice what to do.

    headers: the headers of the request.
    """
    if refusal.status_code == 421:
        host = _printable(headers.get("host", ""))
        return RequestRefused(
            421,
            f"This server is not called {host}. "
            "Call it by the address it was started with, or start it with --allow-host and this name "
            "(behind a proxy with --public-url and its address).",
        ).response
    if refusal.status_code == 403:
        origin = _printable(headers.get("origin", ""))
        return RequestRefused(
            403,
            f"Web pages of {origin} may not call this server."
            " The owner lets them in with --allow-origin and this origin.",
        ).response
    return refusal


def _printable(text: str) -> str:
    """Return a text that a caller sent: in one line, short, and in quotes."""
    return f'"{one_line(text)[:_MAX_QUOTED_CHARACTERS]}"'


class BodyLimits:
    """Refuses a request whose body is too large (413) or does not come in time (408)."""

    def __init__(self, app: ASGIApp):
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with a body that is counted and timed, as an ASGI application."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        # Whether a part of an answer was sent, and how many bytes the body has so far.
        is_answered = False
        size = 0
        receive_part = timed_receive(receive)

        async def receive_counted() -> Message:
            """Return the next part of the request, and count its bytes."""
            nonlocal size
            message = await receive_part()
            size += len(message.get("body", b""))
            if size > BODY_BYTES:
                raise RequestRefused(413, f"A request may have {BODY_BYTES:,} bytes.")
            return message

        async def send_recorded(message: Message) -> None:
            """Send a part of the answer. After that, no other answer is possible."""
            nonlocal is_answered
            is_answered = True
            await send(message)

        try:
            await self._app(scope, receive_counted, send_recorded)
        except (TimeoutError, RequestRefused) as error:
            if is_answered:
                raise
            if isinstance(error, TimeoutError):
                error = RequestRefused(408, TOO_LATE)
            await error.response(scope, receive, send)


def _log_request(scope: Scope, status: int, seconds: float) -> None:
    """Write the line of a request into the log.

    status: the status of the answer. 0 if there was no answer.
    seconds: how long the answer took.
    """
    # A request that was refused has no ADMITTED, and perhaps no TOKEN.
    admitted_request = scope.get(ADMITTED)
    token: StoredToken | None = scope.get(TOKEN)
    row = {
        "method": scope["method"],
        "path": outside_text(quote(scope["path"]), _MAX_LOGGED_CHARACTERS),
        "status": status,
        "ms": round(seconds * 1000),
        "token": f"{token.name}/{token.id}" if token else "-",
        "tool": ",".join(admitted_request.called_tools) if admitted_request else "",
    }
    _log.info(" ".join(f"{key}={value}" for key, value in row.items() if value != ""))


class RequestLog:
    """Writes a line into the log for each request, and counts the requests by status.

    A line has the caller, the path, the status and the time, but nothing of the contents:
    `method=POST path=/mcp status=200 ms=12 token=laptop/1a2b3c4d tool=search`.

    counts: the number of requests by status, as a text.
    """

    def __init__(self, app: ASGIApp, counts: Counter[str]):
        self._app = app
        self._counts = counts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and log it as soon as it is answered, as an ASGI application."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        begin = time.perf_counter()
        status = 0

        async def send_recorded(message: Message) -> None:
            nonlocal status
            # Only the first message of an answer has a status.
            status = message.get("status", status)
            # Raised if the client sent invalid HTTP, which uvicorn has answered already.
            with suppress(LocalProtocolError):
                await send(message)

        try:
            await self._app(scope, receive, send_recorded)
        except ClientDisconnect:
            # By convention: the client closed the connection before the answer.
            status = 499
        finally:
            self._counts[str(status)] += 1
            _log_request(scope, status, time.perf_counter() - begin)


class Metrics:
    """Counts requests and calls since the server began.

    It is not thread-safe: only the thread of the event loop may use it.
    """

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()
        """HTTP requests by the status of their answer."""
        self.calls: Counter[tuple[str, str]] = Counter()
        """Calls by tool, and `ok` or `error`."""
        # By tool, the number of calls in each group of BOUNDS. The last group has no bound.
        self._counts_by_time: dict[str, list[int]] = {}
        # By tool, the seconds of all calls.
        self._total_seconds: dict[str, float] = {}

    def count_call(self, tool: str, outcome: str, seconds: float) -> None:
        """Count a call.

        outcome: `ok` or `error`.
        seconds: the time from the moment when the request was admitted.
        """
        self.calls[tool, outcome] += 1
        counts = self._counts_by_time.setdefault(tool, [0] * (len(BOUNDS) + 1))
        # The first group whose bound is not below the time, or the last group of all.
        counts[bisect_left(BOUNDS, seconds)] += 1
        self._total_seconds[tool] = self._total_seconds.get(tool, 0.0) + seconds

    def text(self, gauges: Mapping[str, tuple[str, float | None]]) -> str:
        """Return all metrics in the text format of Prometheus.

        gauges: the name of a number with its description and its value. None if the value is not
            known now.
        """
        request_samples = [
            _Sample(f'{{status="{status}"}}', count)
            for status, count in sorted(self.requests.items())
        ]
        call_samples = [
            _Sample(f'{{tool="{tool}",outcome="{outcome}"}}', count)
            for (tool, outcome), count in sorted(self.calls.items())
        ]
        requests_description = "HTTP requests by the status of the answer."
        times_description = "How long calls took, their waiting included."
        version = _Sample(f'{{version="{__version__}"}}', 1)
        wait_count = _Sample("", waited.count)
        wait_seconds = _Sample("", waited.seconds)
        families = [
            _family("info", "gauge", "The version of memoranda.", [version]),
            _family("requests_total", "counter", requests_description, request_samples),
            _family("calls_total", "counter", "Calls by tool and outcome.", call_samples),
            _family("call_seconds", "histogram", times_description, self._time_samples()),
            _family("lock_waits_total", "counter", "Waits for a lock.", [wait_count]),
            _family(
                "lock_wait_seconds_total", "counter", "Seconds waited for locks.", [wait_seconds]
            ),
        ]
        for name, (description, value) in gauges.items():
            samples = [] if value is None else [_Sample("", value)]
            families.append(_family(name, "gauge", description, samples))
        return "".join(families)

    def _time_samples(self) -> list[_Sample]:
        """Return the histogram of each tool.

        A bucket counts all calls that took at most as long as its bound, so it includes the calls
        of the buckets before it.
        """
        samples: list[_Sample] = []
        bounds = (*map(str, BOUNDS), "+Inf")
        for tool, counts in sorted(self._counts_by_time.items()):
            for bound, calls_within in zip(bounds, accumulate(counts), strict=True):
                samples.append(_Sample(f'_bucket{{tool="{tool}",le="{bound}"}}', calls_within))
            samples.append(_Sample(f'_sum{{tool="{tool}"}}', self._total_seconds[tool]))
            samples.append(_Sample(f'_count{{tool="{tool}"}}', sum(counts)))
        return samples


class _Sample(NamedTuple):
    """A line of a metric.

    labels: the labels after its name, like `{tool="search"}`.
    value: the number.
    """

    labels: str
    value: float


def _family(name: str, kind: str, description: str, samples: Sequence[_Sample]) -> str:
    """Return the lines of one metric, with its description and type.

    name: its name without `memoranda_`.
    kind: `counter`, `gauge` or `histogram`.
    description: a sentence.
    samples: its lines, each with the end of its name.
    """
    lines = [f"# HELP memoranda_{name} {description}", f"# TYPE memoranda_{name} {kind}"]
    for labels, value in samples:
        number = value if isinstance(value, int) else round(value, 6)
        lines.append(f"memoranda_{name}{labels} {number}")
    return "".join(f"{line}\n" for line in lines)


class Health:
    """Reports the state of the server.

    Anybody may read `/healthz` and `/readyz`. `/metrics` needs a token that is not limited to some
    projects, since its numbers are about the whole home.

    stopping: set as soon as the server must end.
    memory: the memory of the home's owner.
    connections: returns the number of open connections.
    admit: checks a request, as `HttpServer.admitted`, or raises RequestRefused.
    """

    def __init__(
        self,
        metrics: Metrics,
        stopping: threading.Event,
        memory: MemorySession,
        connections: Callable[[], int],
        admit: Callable[[Request], Any],
    ):
        self._metrics = metrics
        self._stopping = stopping
        self._memory = memory
        self._connections = connections
        self._admit = admit
        # Held while the memory is asked, so that many requests ask it only once.
        self._lock = asyncio.Lock()
        # The last answer of the memory, which is used again for a while: when it was asked, whether
        # it answered in time, and how many changes the index lacked.
        self._asked_at = float("-inf")
        self._is_readable = False
        self._lag: int | None = None
        # By agent, since each sees other notes.
        self._note_counts: dict[str | None, _NoteCount] = {}

    def routes(self) -> list[BaseRoute]:
        """Return the routes of `/healthz`, `/readyz` and `/metrics`."""
        answers = {
            "/healthz": self._answer_healthz,
            "/readyz": self._answer_readyz,
            "/metrics": self._answer_metrics,
        }
        return [Route(path, answer, methods=["GET"]) for path, answer in answers.items()]

    async def _answer_healthz(self, request: Request) -> Response:
        """Answer `/healthz`: whether the server runs and does not stop."""
        if self._stopping.is_set():
            return JSONResponse({"status": "stopping"}, 503)
        return JSONResponse({"status": "ok"}, 200)

    async def _answer_readyz(self, request: Request) -> Response:
        """Answer `/readyz`: whether a call would see everything that was acknowledged before it."""
        is_readable, lag = await self._memory_state()
        # `lag` is the number of changes that the index lacks. A number that is unknown, as in a
        # memory that is one file for all, counts as none.
        if self._stopping.is_set():
            status = "stopping"
        elif not is_readable:
            status = "unavailable"
        elif lag:
            status = "behind"
        else:
            status = "ready"
        return JSONResponse({"status": status, "lag": lag}, 200 if status == "ready" else 503)

    async def _answer_metrics(self, request: Request) -> Response:
        """Answer `/metrics`: numbers about the server and the home, in the format of Prometheus.

        Raises RequestRefused for a token that sees only some projects.
        """
        admitted_request = self._admit(request)
        if admitted_request.projects:
            raise RequestRefused(404, NOTHING_HERE)
        is_readable, lag = await self._memory_state()
        notes = None
        connections = None
        if is_readable:
            caller_memory = admitted_request.memory_of_caller(
                self._memory, client_name="", face="http", recorded_client="metrics"
            )
            notes = await self._notes_seen(caller_memory)
            connections = self._connections()
        gauges: dict[str, tuple[str, float | None]] = {
            "ready": ("Whether the memory can be read.", int(is_readable)),
            "index_lag_changes": ("Acknowledged changes that are not shown here yet.", lag),
            "notes": ("Notes of the home that the caller sees.", notes),
            "connections": ("Open connections.", connections),
        }
        return PlainTextResponse(
            self._metrics.text(gauges), media_type="text/plain; version=0.0.4; charset=utf-8"
        )

    async def _memory_state(self) -> tuple[bool, int | None]:
        """Return whether the memory answered in time, and how many changes the index lacks.

        The changes were acknowledged and are not shown yet. None if their number is unknown.
        """
        async with self._lock:
            if time.monotonic() - self._asked_at >= _REUSE_SECONDS:
                self._is_readable = False
                self._lag = None
                with suppress(MemorandaError, TimeoutError):
                    self._lag = await _ask_memory(self._read_lag)
                    self._is_readable = True
                self._asked_at = time.monotonic()
            return self._is_readable, self._lag

    def _read_lag(self) -> int | None:
        """Return how many changes the index lacks. Raises MemorandaError if it cannot be read."""
        # Called only for its error: it reads the notes, which `lag` does not.
        self._memory.stats()
        return self._memory.lag()

    async def _notes_seen(self, caller: MemorySession) -> int | None:
        """Return how many notes the caller sees. None if they could not be counted in time."""
        async with self._lock:
            last = self._note_counts.get(caller.agent)
            if last is not None and time.monotonic() - last.counted_at < _REUSE_SECONDS:
                return last.notes
            with suppress(MemorandaError, TimeoutError):
                stats = await _ask_memory(caller.stats)
                if len(self._note_counts) >= _MAX_COUNTED_CALLERS:
                    self._note_counts.clear()
                self._note_counts[caller.agent] = _NoteCount(stats.total, time.monotonic())
                return stats.total
        return None


class _NoteCount(NamedTuple):
    """How many notes a caller sees, kept for a while because counting takes time.

    notes: the number of notes.
    counted_at: when they were counted, in seconds of `time.monotonic`.
    """

    notes: int
    counted_at: float


async def _ask_memory(ask: Callable[[], T]) -> T:
    """Run `ask` on a thread and return its result.

    Raises TimeoutError after `_MEMORY_WAIT_SECONDS` seconds.
    """
    # `wait_for` cannot end the thread. So the thread itself waits no longer for locks, either.
    limited_ask = waits_at_most(_MEMORY_WAIT_SECONDS)(ask)
    return await asyncio.wait_for(asyncio.to_thread(limited_ask), _MEMORY_WAIT_SECONDS)
