"""One request of the page or of `/api`: who sends it, whether it may, and the answer.

The page is the home's owner's, by cookie. `/api` takes a token as `/mcp` does, or the cookie. A view is a function of a
Visit, run on a thread with the caller's memory; it calls verbs and returns an answer.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from commonplace.engine import Memory
from commonplace.errors import CommonplaceError, InvalidInput, NotFound
from commonplace.serve.auth import AccessRefused, PageVisitors, digest
from commonplace.serve.http import AdmittedRequest, HttpServer
from commonplace.serve.middleware import RequestRefused, in_time
from commonplace.serve.page.render import language_of, render

HOME = "/page"
BODY = 4 << 20
"""The largest form: a note of 1 MiB, of which each byte may be sent as three."""
_STATUS = {"not_found": 404, "project_not_found": 404, "conflict": 409, "exists": 409, "cannot_undo": 409,
           "locked": 423, "storage": 503, "busy": 503, "stopping": 503, "internal": 500}  # fmt: skip
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}  # fmt: skip


@dataclass
class Visit:
    """What a view is told: `memory` as the caller uses it, `given` of the form, or else of the query, and the rest of
    the address in `place`. `csrf` is empty for a caller with a token."""

    request: Request
    memory: Memory
    given: Mapping[str, str] = field(default_factory=dict)
    csrf: str = ""

    @property
    def place(self) -> Mapping[str, str]:
        """What stands in the address, by the names in the route's path."""
        return self.request.path_params

    @property
    def is_post(self) -> bool:
        return self.request.method == "POST"

    @property
    def is_live(self) -> bool:
        """Whether a script of the page asks for a part of it, not a person for a whole one."""
        return "hx-request" in self.request.headers

    def number(self, name: str, default: int) -> int:
        """A whole number that was given, or stands in the address. Raises InvalidInput."""
        text = self.place.get(name) or self.given.get(name) or str(default)
        if not text.isdecimal() or len(text) > 9:
            raise InvalidInput(f'invalid {name} "{text[:50]}": not a number')
        return int(text)

    def html(self, template: str, status: int = 200, **values: Any) -> Response:
        """A page, or a part of one, of this template."""
        values |= {"visit": self, "csrf": self.csrf, "zone": self.memory.settings.reading_zone}
        return HTMLResponse(render(template, language_of(self.request), **values), status)

    def back(self, to: str | None = None, *, is_final: bool = False) -> Response:
        """To another address of the page [where the form stood], which then says what change was made, and, unless it
        `is_final`, offers to take it back."""
        to = self.given.get("back", "") if to is None else to
        if not to.startswith(f"{HOME}/") and to != HOME:
            to = HOME
        path, _, query = to.partition("?")
        kept = [(name, value) for name, value in parse_qsl(query) if name != "done"]
        kept += [("done", str(self.memory.changed))] if self.memory.changed and not is_final else []
        return RedirectResponse(path + ("?" if kept else "") + "&".join(f"{a}={quote(b)}" for a, b in kept), 303)


View = Callable[[Visit], "Response | dict[str, Any]"]


def at_once(view: View) -> View:
    """A view that calls many verbs, each short: one look at the disk serves all that a GET asks."""
    return lambda visit: view(visit) if visit.is_post else visit.memory.at_once(lambda: view(visit))


class PageEndpoint:
    """One address, answered by a view."""

    def __init__(self, server: HttpServer, visitors: PageVisitors, view: View):
        self._server, self._visitors, self._view = server, visitors, view

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, in_time(receive))
        try:
            answer = await self._answered(request)
        except RequestRefused as refused:
            kept = {name: refused.response.headers[name] for name in ("www-authenticate", "retry-after")
                    if name in refused.response.headers}  # fmt: skip
            answer = _failed(request, refused.response.status_code, "refused", str(refused), kept)
        except CommonplaceError as error:
            status = 503 if isinstance(error, AccessRefused) else _STATUS.get(error.code, 400)
            said = f"There is nothing here: {error.identifier}" if isinstance(error, NotFound) else str(error)
            answer = _failed(request, status, error.code, " ".join(filter(None, (said, error.hint))))
        except TimeoutError:
            answer = _failed(request, 408, "timeout", "The request did not come in time.")
        for name, value in HEADERS.items():
            answer.headers.setdefault(name, value)
        await answer(scope, receive, send)

    async def _answered(self, request: Request) -> Response:
        if is_foreign(request):
            raise RequestRefused(403, "This request comes from another site.")
        secret = request.cookies.get(cookie_name(request), "")
        is_owner = bool(secret) and self._visitors.knows(secret)
        if is_owner:
            call = AdmittedRequest(None, None, self._server)
        elif _is_api(request):
            call = self._server.admitted(request)
        else:
            raise RequestRefused(401, "This page is opened by the command: memory page")
        csrf = digest(f"csrf {secret}") if is_owner else ""  # which nobody makes without the cookie
        given = dict(parse_qsl(request.url.query, keep_blank_values=True)) if request.method != "POST" else {}
        if request.method == "POST":
            if call.scope == "read":
                raise RequestRefused(403, "This token may only read.")
            given = await _form(request)
            sent = given.pop("csrf", "") or request.headers.get("x-csrf-token", "")
            if is_owner and not hmac.compare_digest(sent.encode("utf-8", "replace"), csrf.encode()):
                raise RequestRefused(403, "This form is of another session. Load the page again, and repeat it.")
        agent_name = request.headers.get("user-agent", "").partition("/")[0]

        def viewed(memory: Memory) -> Response:
            if is_owner:
                memory = memory.as_caller(None, "page", client="page", session=digest(f"session {secret}")[:8])
            else:
                memory = call.caller(memory, agent_name, "http", f"http {agent_name}")
            answer = self._view(Visit(request, memory, given, csrf))
            return answer if isinstance(answer, Response) else JSONResponse(answer)

        return await self._server.run(call, viewed)


def cookie_name(request: Request) -> str:
    """The cookie's name: cookies know no ports, and one machine may have servers of several homes."""
    return f"commonplace-{request.url.port or 80}"


def _is_api(request: Request) -> bool:
    return not request.url.path.startswith(HOME)


def is_foreign(request: Request) -> bool:
    """Whether another site's page sends this: one on another port of this machine is another site."""
    origin, headers = request.headers.get("origin"), request.headers
    is_walk = request.method == "GET" and headers.get("sec-fetch-mode") == "navigate"
    is_elsewhere = headers.get("sec-fetch-site", "none") not in ("same-origin", "none") and not is_walk
    return is_elsewhere or (origin is not None and urlsplit(origin).netloc != headers.get("host"))


async def _form(request: Request) -> dict[str, str]:
    """What a form, or JSON, says. Raises RequestRefused, TimeoutError."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY:
            raise RequestRefused(413, f"A form may have {BODY >> 20} MiB. Edit the file itself.")
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    try:
        if kind == "application/json":
            found = json.loads(body or b"{}")
            if not isinstance(found, dict):
                raise ValueError
            return {str(name): value if isinstance(value, str) else json.dumps(value) for name, value in found.items()}
        if kind == "application/x-www-form-urlencoded" and not _is_api(request):
            pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=200, errors="strict")
            return dict(pairs)
    except (ValueError, RecursionError):
        raise RequestRefused(400, "The form cannot be read.") from None
    raise RequestRefused(415, "Send a form, or to /api an object of application/json.")


def _failed(
    request: Request, status: int, code: str, message: str, headers: Mapping[str, str] | None = None
) -> Response:
    if _is_api(request):
        return JSONResponse({"error": {"code": code, "message": message}}, status, headers)
    page = render("error.html", language_of(request), message=message, status=status, csrf="", visit=None, zone=None)
    return HTMLResponse(page, status)
