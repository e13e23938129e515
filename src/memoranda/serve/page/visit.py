"""One request of the page or of `/api`: who sends it, whether it may, and the answer: templates,
the words of the page in each language, and note text as safe HTML.

The page is the home's owner's, by cookie. `/api` takes a token as `/mcp` does, or the cookie. A
view is a function of a Visit, run on a thread with the caller's memory; it calls verbs and returns
an answer. Every value a template shows passes `visible`: control and bidi characters are spelled
out before they are escaped.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from memoranda.clock import parse_stamp
from memoranda.engine import MemorySession
from memoranda.engine.access_table import AccessRefused
from memoranda.errors import InvalidInput, MemorandaError, NotFound
from memoranda.serve.auth import PageVisitors, digest
from memoranda.serve.http import AdmittedRequest, HttpServer
from memoranda.serve.middleware import RequestRefused, in_time
from memoranda.serve.page.programs import is_program_address
from memoranda.text.compare import grouped_changes
from memoranda.text.unicode import flat, visible

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline

HOME = "/page"
BODY = 4 << 20
"""The largest form: a note of 1 MiB, of which each byte may be sent as three."""
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
LANGUAGES = {"en": "English", "zh": "中文"}
RENDERED = 100_000
"""Characters of a note that are rendered; the rest is in its text."""
_DIFF_LINES = 400
_DIFF_WIDTH = 2000
_WIKI = re.compile(r"\[\[([^\[\]\n]{1,500})\]\]")
_BLOCKS = re.compile(r"\n\s*(?:\n|[-*+#>|]|\d+[.)])")
_MARKS = re.compile(r"[\[\]!*_~`<(|]")
_MOST_MARKS = 2000
"""The time a paragraph takes grows with the square of its marks: one of so many is shown as it is.
"""
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


@dataclass
class Visit:
    """What a view is told: `memory` as the caller uses it, `given` of the form, or else of the
    query. `csrf` is empty for a caller with a token."""

    request: Request
    memory: MemorySession
    given: Mapping[str, str] = field(default_factory=dict)
    csrf: str = ""

    @property
    def is_post(self) -> bool:
        return self.request.method == "POST"

    @property
    def is_api(self) -> bool:
        """Whether a program asks, which wants JSON."""
        return _is_api(self.request)

    @property
    def is_live(self) -> bool:
        """Whether a script of the page asks for a part of it, not a person for a whole one."""
        return "hx-request" in self.request.headers

    def number(self, name: str, default: int) -> int:
        """A whole number that was given, or stands in the address. Raises InvalidInput."""
        text = self.request.path_params.get(name) or self.given.get(name) or str(default)
        if not text.isdecimal() or len(text) > 9:
            raise InvalidInput(f'invalid {name} "{text[:50]}": not a number')
        return int(text)

    def html(self, template: str, status: int = 200, **values: Any) -> Response:
        """A page, or a part of one, of this template."""
        values |= {"visit": self, "csrf": self.csrf, "zone": self.memory.settings.reading_zone}
        return HTMLResponse(render(template, language_of(self.request), **values), status)

    def back(self, to: str | None = None, *, is_final: bool = False) -> Response:
        """To another address of the page [where the form stood], which then says what change was
        made, and, unless it `is_final`, offers to take it back."""
        to = self.given.get("back", "") if to is None else to
        if not to.startswith(f"{HOME}/") and to != HOME:
            to = HOME
        path, _, query = to.partition("?")
        kept = [(name, value) for name, value in parse_qsl(query) if name != "done"]
        kept += [("done", str(self.memory.changed))] if self.memory.changed and not is_final else []
        return RedirectResponse(
            path + ("?" if kept else "") + "&".join(f"{a}={quote(b)}" for a, b in kept), 303
        )


View = Callable[[Visit], "Response | dict[str, Any]"]


def at_once(view: View) -> View:
    """A view that calls many verbs, each short: one look at the disk serves all that a GET asks."""
    return lambda visit: view(visit) if visit.is_post else visit.memory.at_once(lambda: view(visit))


class PageEndpoint:
    """One address of the page or of `/api`. What `answer` raises is said on a page, below `/api` in
    JSON.
    """

    def __init__(self, answer: Callable[[Request], Awaitable[Response]]):
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, in_time(receive))
        try:
            answer = await self._answer(request)
        except RequestRefused as refused:
            kept = {
                name: refused.response.headers[name]
                for name in ("www-authenticate", "retry-after")
                if name in refused.response.headers
            }
            answer = _failed(request, refused.response.status_code, "refused", str(refused), kept)
        except MemorandaError as error:
            if isinstance(error, AccessRefused):
                status = 503
            else:
                status = _STATUS.get(error.code, 400)
            if isinstance(error, NotFound):
                said = f"There is nothing here: {error.identifier}"
            else:
                said = str(error)
            answer = _failed(
                request, status, error.code, " ".join(filter(None, (said, error.hint)))
            )
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
        call = server.admitted(request)
    else:
        raise RequestRefused(401, "This page is opened by the command: memory page")
    # Which nobody makes without the cookie
    csrf = digest(f"csrf {secret}") if is_owner else ""
    if request.method != "POST":
        given = dict(parse_qsl(request.url.query, keep_blank_values=True))
    else:
        given = {}
    if request.method == "POST":
        if call.scope == "read":
            raise RequestRefused(403, "This token may only read.")
        given = await _form(request)
        sent = given.pop("csrf", "") or request.headers.get("x-csrf-token", "")
        if is_owner and not hmac.compare_digest(sent.encode("utf-8", "replace"), csrf.encode()):
            raise RequestRefused(
                403, "This form is of another session. Load the page again, and repeat it."
            )
    agent_name = request.headers.get("user-agent", "").partition("/")[0]

    def work(memory: MemorySession) -> Response:
        if is_owner:
            memory = memory.as_caller(
                None, "page", client="page", session=digest(f"session {secret}")[:8]
            )
        else:
            memory = call.caller(memory, agent_name, "http", f"http {agent_name}")
        answer = view(Visit(request, memory, given, csrf))
        if isinstance(answer, Response):
            return answer
        return JSONResponse(answer)

    return await server.run(call, work)


def cookie_name(request: Request) -> str:
    """The cookie's name: cookies know no ports, and one machine may have servers of several homes."""
    return f"memoranda-{request.url.port or 80}"


def _is_api(request: Request) -> bool:
    return not request.url.path.startswith(HOME)


def is_foreign(request: Request) -> bool:
    """Whether another site's page sends this: one on another port of this machine is another site."""
    origin = request.headers.get("origin")
    headers = request.headers
    is_walk = request.method == "GET" and headers.get("sec-fetch-mode") == "navigate"
    is_elsewhere = (
        headers.get("sec-fetch-site", "none") not in ("same-origin", "none") and not is_walk
    )
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
            return {
                str(name): value if isinstance(value, str) else json.dumps(value)
                for name, value in found.items()
            }
        if kind == "application/x-www-form-urlencoded" and not _is_api(request):
            pairs = parse_qsl(
                body.decode(), keep_blank_values=True, max_num_fields=200, errors="strict"
            )
            return dict(pairs)
    except (ValueError, RecursionError):
        raise RequestRefused(400, "The form cannot be read.") from None
    raise RequestRefused(415, "Send a form, or to /api an object of application/json.")


def _failed(
    request: Request, status: int, code: str, message: str, headers: Mapping[str, str] | None = None
) -> Response:
    if _is_api(request):
        return JSONResponse({"error": {"code": code, "message": message}}, status, headers)
    page = render(
        "error.html",
        language_of(request),
        message=message,
        status=status,
        csrf="",
        visit=None,
        zone=None,
    )
    return HTMLResponse(page, status)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("memoranda.serve.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: (
            visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
        ),
    )
    made.globals |= {"note_url": note_url, "languages": LANGUAGES}
    made.filters |= {"flat": lambda text: flat(str(text)), "raw": lambda text: Markup(escape(text))}
    return made


@cache
def prepare() -> None:
    """Read all templates, and what renders notes, before somebody waits for them."""
    for name in _environment().list_templates(["html"]):
        _environment().get_template(name)
    _markdown()


def render(template: str, language: str, **values: Any) -> str:
    """The text of a template in a language (see LANGUAGES); `zone` is that of its times."""
    zone = values.get("zone")
    more = {
        "_": partial(told, language),
        "lang": language,
        "time": lambda at: local_time(at, zone),
        "day": lambda at: local_time(at, zone)[:10],
        "clock": lambda at: local_time(at, zone)[11:],
    }
    return _environment().get_template(template).render(**more, **values)


def language_of(request: Request) -> str:
    """The language chosen (a cookie), else the first the browser wants that there is, else English."""
    wanted = [
        request.cookies.get("memoranda-language", ""),
        *request.headers.get("accept-language", "").split(","),
    ]
    names = (each.strip().partition(";")[0].partition("-")[0].lower() for each in wanted)
    return next((name for name in names if name in LANGUAGES), "en")


@cache
def words(language: str) -> Mapping[str, str]:
    """The words of a language by the English ones, which stand in the templates; in English itself,
    what is called by another name than the journal's."""
    found: dict[str, str] = json.loads(
        files(__package__).joinpath("texts", f"{language}.json").read_text("utf-8")
    )
    return found


def told(language: str, said: str, /, **values: Any) -> str:
    """An English sentence in a language; `{name}` in it stands for a value."""
    found = words(language).get(said, said)
    if values:
        return found.format(**values)
    return found


def local_time(at: str | datetime | None, zone: tzinfo | None) -> str:
    """`2026-11-23 09:05` of a stamp in a zone; the text itself where it is no time."""
    try:
        if isinstance(at, datetime):
            moment = at
        else:
            moment = parse_stamp(at or "")
        return f"{moment.astimezone(zone):%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError):
        return str(at or "")


def note_url(project: str, path: str) -> str:
    """The address of a note's page."""
    return "/page/note/" + quote(f"{project}/{path}", safe="/", errors="replace")


def markdown(text: str, project: str, path: str, known: Mapping[str, str]) -> Markup:
    """A note's text as HTML: no HTML of its own, no foreign images, links only to notes and the
    web. `known`: where the targets of its wikilinks lead. Only the first RENDERED characters
    count."""
    text = visible(text[:RENDERED])
    if any(len(_MARKS.findall(part)) > _MOST_MARKS for part in _BLOCKS.split(text)):
        return Markup(f"<pre>{escape(text)}</pre>")
    env = {"base": f"{project}/{path.rpartition('/')[0]}".rstrip("/"), "known": known}
    return Markup(_markdown().render(text, env))


@cache
def _markdown() -> MarkdownIt:
    from markdown_it import MarkdownIt

    made = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    made.inline.ruler.before("link", "wikilink", _wikilink)
    made.validateLink = lambda url: True  # type: ignore[method-assign]  # decided in _link_open, by what is left

    def _link_open(self: Any, tokens: Sequence[Any], at: int, options: Any, env: Any) -> str:
        token = tokens[at]
        href = _address(str(token.attrGet("href") or ""), env["base"])
        if href is None:
            return '<a class="dead">'
        if urlsplit(href).scheme:
            outside = ' rel="noreferrer noopener nofollow" target="_blank"'
        else:
            outside = ""
        if token.meta.get("missing"):
            missing = ' class="missing"'
        else:
            missing = ""
        return f'<a href="{escape(href)}"{outside}{missing}>'

    image = '<span class="image">🖼 {} ({})</span>'
    shown = lambda _, tokens, at, *__: image.format(
        *map(escape, (tokens[at].content, tokens[at].attrGet("src") or ""))
    )
    made.add_render_rule("link_open", _link_open)
    made.add_render_rule("image", shown)
    # A wide one scrolls, by keys too
    made.add_render_rule("table_open", lambda *_: '<table tabindex="0">')
    return made


def _wikilink(state: StateInline, silent: bool) -> bool:
    """`[[target]]` and `[[target|shown]]` as a link to the note."""
    found = _WIKI.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    if not silent:
        target, _, shown = found[1].partition("|")
        known = state.env["known"].get(target.strip())
        token = state.push("link_open", "a", 1)
        token.attrSet("href", known or "/page/find?ref=" + quote(target.strip(), errors="replace"))
        token.meta = {"missing": known is None}
        state.push("text", "", 0).content = shown or target
        state.push("link_close", "a", -1)
    state.pos = found.end()
    return True


def _address(href: str, base: str) -> str | None:
    """Where a link of a note may lead: the web, a note; None: nowhere."""
    if href.startswith("/page/") or href.startswith("#"):
        return href
    try:
        parts = urlsplit(href)
    except ValueError:
        return None
    scheme = parts.scheme.lower()
    if is_program_address(href):
        return href
    if scheme == "mailto" or (scheme in ("http", "https") and parts.netloc):
        return href
    if scheme == "memory":
        return "/page/find?ref=" + quote(href)
    if scheme or href.startswith(("/", "\\")):
        return None
    path = unquote(href.partition("#")[0])
    names: list[str] = base.split("/")
    for part in path.split("/"):
        if part == "..":
            names = names[:-1]
        elif part not in ("", "."):
            names.append(part)
    if len(names) > 1:
        return note_url(names[0], "/".join(names[1:]))
    return None


def diff(before: str, after: str) -> list[tuple[str, str]]:
    """The lines of two texts that differ, with two around them, as (sign, line): `-`, `+`, ` `, and
    `…` for lines left out."""
    old = before.splitlines()
    new = after.splitlines()
    if old == new:
        return []
    start = next(
        (n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b),
        min(len(old), len(new)),
    )
    left = min(len(old), len(new)) - start
    end = next((n for n in range(left) if old[-1 - n] != new[-1 - n]), left)
    one = old[start : len(old) - end]
    two = new[start : len(new) - end]
    rows: list[tuple[str, str]] = [(" ", each) for each in old[max(0, start - 2) : start]]
    groups = grouped_changes(one, two, 2)
    for number, group in enumerate(groups):
        rows += [("…", "")] if number else []
        for tag, a, b, c, d in group:
            rows += [(" " if tag == "equal" else "-", each) for each in one[a:b]]
            rows += [("+", each) for each in two[c:d] if tag != "equal"]
    rows += [(" ", each) for each in old[len(old) - end :][:2]]
    more = [("…", "")] if len(rows) > _DIFF_LINES else []
    return [(sign, line[:_DIFF_WIDTH]) for sign, line in rows[:_DIFF_LINES]] + more
