"""One request of the page or of `/api`: who sends it, whether it may, and the answer.

The page is the home's owner's, by cookie. `/api` takes a token as `/mcp` does, or the cookie. A
view is a function of a Visit, run on a thread with the caller's memory; it calls verbs and returns
an answer.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from memoranda.engine import MemorySession
from memoranda.engine.access_table import AccessRefused
from memoranda.errors import InvalidInput, MemorandaError, NotFound
from memoranda.ledger.change import ERASE, Change
from memoranda.serve.auth import PageVisitors, digest
from memoranda.serve.http import AdmittedRequest, HttpServer
from memoranda.serve.middleware import RequestRefused, in_time
from memoranda.serve.page.rendering import render
from memoranda.serve.page.wording import language_of, translated

if TYPE_CHECKING:
    from memoranda.serve.sessions import McpSession

HOME = "/page"
BODY = 8 << 20
"""The largest form: a note of 1 MiB before and after the edit, of which each byte may be sent as
three.
"""
PART_HEADER = "x-part"
"""The header by which a script of the page asks for a part of a page."""
DONE = "done"
# The HTTP status of each error; others are the client's fault.
_STATUS = {
    "not_found": 404,
    "project_not_found": 404,
    "conflict": 409,
    "exists": 409,
    "cannot_undo": 409,
    "locked": 423,
    "storage": 503,
    "busy": 503,
    "stopping": 503,
    "internal": 500,
}
# No script, style or picture from elsewhere, no frame around the page.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
# Digits of a number in an address.
_LONGEST_NUMBER = 9
# Characters of one field of an address, as a text among the arguments of a tool.
_LONGEST_FIELD = 10_000


@dataclass
class Visit:
    """Everything that a view needs.

    memory: the memory as the caller uses it.
    fields: the fields of the form, or else of the query. The texts of a field that was sent several
        times are joined by line breaks.
    csrf: a token for forms. Empty for a caller with an access token.
    """

    request: Request
    memory: MemorySession
    fields: Mapping[str, str] = field(default_factory=dict)
    csrf: str = ""

    @property
    def is_post(self) -> bool:
        """Whether the request changes something."""
        return self.request.method == "POST"

    @property
    def is_api(self) -> bool:
        """Whether a program asks, which wants JSON."""
        return _is_api(self.request)

    @property
    def is_part(self) -> bool:
        """Whether a script of the page asks for a part of it, rather than a person for the whole."""
        return PART_HEADER in self.request.headers

    @property
    def now(self) -> datetime:
        """The time by the memory's clock."""
        return self.memory.clock()

    @property
    def language(self) -> str:
        """The language of the answer."""
        return language_of(self.request)

    @property
    def here(self) -> str:
        """The address asked for, without what was done before it."""
        return without(str(self.request.url.path), self.request.url.query, (DONE,))

    def text(self, name: str) -> str:
        """A field without blanks around it. Empty if it was not sent."""
        return self.fields.get(name, "").strip()

    def number(self, name: str, default: int) -> int:
        """A whole number of the form or of the address. Raises InvalidInput."""
        text = self.request.path_params.get(name) or self.fields.get(name) or str(default)
        if not text.isdecimal() or len(text) > _LONGEST_NUMBER:
            raise InvalidInput(f'invalid {name} "{text[:50]}": not a number')
        return int(text)

    def part_or_page(self, part: str, page: str, status: int = 200, **values: Any) -> Response:
        """Render `part` if the page's script asks for it, or the whole `page` for a person."""
        if self.is_part:
            return self.html(part, status, **values)
        return self.html(page, status, **values)

    def connected(self) -> Sequence[McpSession]:
        """The sessions of clients that are connected now, if the server has any."""
        sessions = self.request.app.state.sessions
        if sessions is None:
            return ()
        connected: Sequence[McpSession] = sessions.connected()
        return connected

    def html(self, template: str, status: int = 200, **values: Any) -> Response:
        """A page, or a part of one, of this template."""
        values |= {
            "visit": self,
            "csrf": self.csrf,
            "zone": self.memory.settings.reading_zone,
            "now": self.now,
            "here": self.here,
            "toast": self._toast(),
            "rail": getattr(self.request.app.state, "rail", None),
        }
        return HTMLResponse(render(template, self.language, **values), status)

    def back(self, to: str | None = None, *, is_final: bool = False) -> Response:
        """Redirect to another address of the page, by default the one with the form.

        That page says which change was made. It offers to undo the change unless it `is_final`.
        """
        target = self.fields.get("back", "") if to is None else to
        if not target.startswith((f"{HOME}/", f"{HOME}?")) and target != HOME:
            target = HOME
        path, _, query = target.partition("?")
        address = without(path, query, (DONE,))
        # A change that cannot be taken back is not offered.
        if self.memory.changed and not is_final:
            joint = "&" if "?" in address else "?"
            address += f"{joint}{urlencode({DONE: self._signed(self.memory.changed)})}"
        return RedirectResponse(address, 303)

    def _signed(self, number: int) -> str:
        """The number of a change with a signature, so that only this page can name it to itself."""
        return f"{number}.{digest(f'{DONE} {self.csrf} {number}')[:16]}"

    def _toast(self) -> Change | None:
        """The change that the address says was just made.

        None unless this page signed the address.
        """
        signed = self.fields.get(DONE, "")
        number, _, _ = signed.partition(".")
        if self.is_post or not self.csrf or not number.isdecimal():
            return None
        if len(number) > _LONGEST_NUMBER or not hmac.compare_digest(
            signed.encode("utf-8", "replace"), self._signed(int(number)).encode()
        ):
            return None
        change = self.memory.change_numbered(int(number))
        if change is None or change.verb == ERASE:
            return None
        return change


def without(path: str, query: str, names: Iterable[str]) -> str:
    """An address without some fields of its query."""
    dropped = set(names)
    pairs = [pair for pair in parse_qsl(query, keep_blank_values=True) if pair[0] not in dropped]
    if pairs:
        return f"{path}?{urlencode(pairs)}"
    return path


View = Callable[[Visit], "Response | dict[str, Any]"]


def at_once(view: View) -> View:
    """A view that calls many verbs, each short: one look at the disk serves all that a GET asks."""

    def looked_at_once(visit: Visit) -> Response | dict[str, Any]:
        if visit.is_post:
            return view(visit)
        return visit.memory.at_once(lambda: view(visit))

    return looked_at_once


class PageEndpoint:
    """One address of the page or of `/api`.

    What `answer` raises is said on a page, below `/api` in JSON.
    """

    def __init__(self, answer: Callable[[Request], Awaitable[Response]]):
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, in_time(receive))
        try:
            answer = await self._answer(request)
        except RequestRefused as refused:
            answer = _refusal(request, refused)
        except MemorandaError as error:
            answer = _error(request, error)
        except TimeoutError:
            answer = _failed(request, 408, "timeout", "The request did not come in time.")
        for name, value in HEADERS.items():
            answer.headers.setdefault(name, value)
        await answer(scope, receive, send)


async def viewed(
    server: HttpServer, visitors: PageVisitors, view: View, request: Request
) -> Response:
    """The answer of a view to who sends the request. Raises RequestRefused, MemorandaError,
    TimeoutError.
    """
    if is_foreign(request):
        raise RequestRefused(403, "This request comes from another site.")
    secret = request.cookies.get(cookie_name(request), "")
    is_owner = bool(secret) and visitors.knows(secret)
    if is_owner:
        call = AdmittedRequest(None, None, server)
    elif _is_api(request):
        # Programs come with a token, and only to the addresses made for them.
        call = server.admitted(request)
    else:
        raise RequestRefused(401, "This page is opened by the command: memory page")
    # Which nobody makes without the cookie
    csrf = digest(f"csrf {secret}") if is_owner else ""
    if request.method == "POST":
        fields = await _posted(request, call, csrf)
    else:
        fields = _join_fields(parse_qsl(request.url.query, keep_blank_values=True))
        _check_lengths(fields)
    agent_name = request.headers.get("user-agent", "").partition("/")[0]

    def work(memory: MemorySession) -> Response:
        if is_owner:
            session = digest(f"session {secret}")[:8]
            memory = memory.as_caller(None, "page", client="page", session=session)
            # A look by a person does not count as use by an agent.
            memory.only_reads = request.method != "POST"
        else:
            memory = call.caller(memory, agent_name, "http", f"http {agent_name}")
        return _answer_of(view, Visit(request, memory, fields, csrf))

    return await server.run(call, work)


def _answer_of(view: View, visit: Visit) -> Response:
    """Return the answer of a view; for a person an error is a page like the others."""
    try:
        answer = view(visit)
    except MemorandaError as error:
        if visit.is_api or visit.is_part:
            raise
        status, message = _status_and_message(error, visit.language)
        return visit.html("error.html", status, message=message, status_shown=status)
    if isinstance(answer, Response):
        return answer
    return JSONResponse(answer)


async def _posted(request: Request, call: AdmittedRequest, csrf: str) -> dict[str, str]:
    """The fields of a form that may be acted on. Raises RequestRefused, TimeoutError."""
    if call.scope == "read":
        raise RequestRefused(403, "This token may only read.")
    fields = await _form(request)
    # A script sends it as a header, so that a body of JSON needs no field of ours
    sent = fields.pop("csrf", "") or request.headers.get("x-csrf-token", "")
    if csrf and not hmac.compare_digest(sent.encode("utf-8", "replace"), csrf.encode()):
        raise RequestRefused(
            403, "This form is of another session. Load the page again, and repeat it."
        )
    return fields


def cookie_name(request: Request) -> str:
    """The cookie's name: cookies know no ports, and one machine may have servers of several homes."""
    return f"memoranda-{request.url.port or 80}"


def _is_api(request: Request) -> bool:
    return not request.url.path.startswith(HOME)


def is_foreign(request: Request) -> bool:
    """Whether another site's page sent this request.

    Another port of this machine is another site.
    """
    origin = request.headers.get("origin")
    headers = request.headers
    is_walk = request.method == "GET" and headers.get("sec-fetch-mode") == "navigate"
    site = headers.get("sec-fetch-site", "none")
    is_elsewhere = site not in ("same-origin", "none") and not is_walk
    return is_elsewhere or (origin is not None and urlsplit(origin).netloc != headers.get("host"))


def _check_lengths(fields: Mapping[str, str]) -> None:
    """Raises RequestRefused for a field that is longer than any that a person would send."""
    for name, text in fields.items():
        if len(text) > _LONGEST_FIELD:
            raise RequestRefused(
                414, f"{name[:50]} has {len(text)} characters; at most {_LONGEST_FIELD} are taken"
            )


def _join_fields(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Fields by name; the texts of one that was sent several times are joined."""
    fields: dict[str, str] = {}
    for name, text in pairs:
        if name in fields:
            fields[name] += f"\n{text}"
        else:
            fields[name] = text
    return fields


async def _form(request: Request) -> dict[str, str]:
    """Return the fields of a form, or of JSON. Raises RequestRefused, TimeoutError."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY:
            raise RequestRefused(413, f"A form may have {BODY >> 20} MiB. Edit the file itself.")
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    try:
        if kind == "application/json":
            return _object(bytes(body))
        if kind == "application/x-www-form-urlencoded" and not _is_api(request):
            pairs = parse_qsl(
                body.decode(), keep_blank_values=True, max_num_fields=2000, errors="strict"
            )
            return _join_fields(pairs)
    except (ValueError, RecursionError):
        raise RequestRefused(400, "The form cannot be read.") from None
    raise RequestRefused(415, "Send a form, or to /api an object of application/json.")


def _object(body: bytes) -> dict[str, str]:
    """The members of a JSON object, as texts. Raises ValueError, RecursionError."""
    value = json.loads(body or b"{}")
    if not isinstance(value, dict):
        raise ValueError
    return {
        str(name): member if isinstance(member, str) else json.dumps(member)
        for name, member in value.items()
    }


def _refusal(request: Request, refused: RequestRefused) -> Response:
    headers = {
        name: refused.response.headers[name]
        for name in ("www-authenticate", "retry-after")
        if name in refused.response.headers
    }
    return _failed(request, refused.response.status_code, "refused", str(refused), headers)


def _error(request: Request, error: MemorandaError) -> Response:
    # What a program reads is not translated
    language = "en" if _is_api(request) else language_of(request)
    status, message = _status_and_message(error, language)
    return _failed(request, status, error.code, message)


def _status_and_message(error: MemorandaError, language: str) -> tuple[int, str]:
    status = _STATUS.get(error.code, 400)
    if isinstance(error, AccessRefused):
        status = 503
    sentence = str(error)
    if isinstance(error, NotFound):
        sentence = translated(language, "There is nothing here: {name}", name=error.identifier)
    return status, " ".join(filter(None, (sentence, error.hint)))


def _failed(
    request: Request, status: int, code: str, message: str, headers: Mapping[str, str] | None = None
) -> Response:
    if _is_api(request):
        return JSONResponse({"error": {"code": code, "message": message}}, status, headers)
    page = render(
        "error.html",
        language_of(request),
        message=message,
        status_shown=status,
        csrf="",
        visit=None,
        zone=None,
        here="",
        toast=None,
        rail=None,
    )
    return HTMLResponse(page, status)
