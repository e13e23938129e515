"""What every HTTP request passes: the check of Host and Origin, the time a body may take, the line in the log; and the
answer to one that is not let in."""

from __future__ import annotations

import logging
import time
from collections import Counter
from contextlib import suppress
from typing import Any
from urllib.parse import quote

import anyio
from h11 import LocalProtocolError
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from commonplace.serve.auth import StoredToken

_log = logging.getLogger("commonplace.http")

ANY_ORIGIN = ("/.well-known/", "/register", "/token", "/revoke", "/healthz")
"""Where every web page may ask: nothing there takes the word of a browser that somebody is logged in."""
BODY_SECONDS = 30.0
CALL, TOKEN = "commonplace.call", "commonplace.token"
"""Where the scope of a request keeps who was let in."""


class RequestRefused(Exception):
    """A request that is not let in: the answer."""

    def __init__(self, status: int, message: str, error: str = "", **headers: str):
        super().__init__(message)
        body: dict[str, Any] = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": message}}
        if error:  # as OAuth has it (RFC 6750), which clients look for
            body = {"error": error, "error_description": message}
        self.response = JSONResponse(body, status, {key.replace("_", "-"): value for key, value in headers.items()})


def in_time(receive: Receive) -> Receive:
    """`receive`, which raises TimeoutError when the whole body is not there in time, ClientDisconnect when it will not
    be."""
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
    """Refuses requests for another host (421) or from a foreign page (403): a page can have this server's address."""

    def __init__(self, app: ASGIApp, settings: TransportSecuritySettings):
        self._app = app
        self._check = TransportSecurityMiddleware(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            request = Request(scope)
            refused = await self._check.validate_request(request)
            if refused is not None and refused.status_code == 403 and scope["path"].startswith(ANY_ORIGIN):
                refused = None
            if refused is not None:
                return await refused(scope, receive, send)
        await self._app(scope, receive, send)


class RequestLog:
    """One line for each request: who, what, how it ended, how long it took; nothing of what was said. Each is counted
    by its status."""

    def __init__(self, app: ASGIApp, counts: Counter[str]):
        self._app, self._counts = app, counts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        begin, status = time.perf_counter(), 0

        async def watched(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            with suppress(LocalProtocolError):  # what came was no HTTP in the end; it has been answered
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
                "method": scope["method"], "path": quote(scope["path"])[:100], "status": status,
                "ms": round((time.perf_counter() - begin) * 1000),
                "token": f"{token.name}/{token.id}" if token else "-",
                "tool": ",".join(call.did) if call else "",
            }  # fmt: skip
            _log.info(" ".join(f"{key}={value}" for key, value in row.items() if value != ""))
