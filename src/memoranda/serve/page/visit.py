"""Answers a request of the page or of `/api` by a view.

A view is a function that gets a `Visit` and returns the answer. It runs on a thread, with the
memory of the caller. Only the owner of the home may use the page, by a cookie. `/api` takes the
cookie or a token, as `/mcp` does.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from memoranda.clock import now
from memoranda.engine import MemorySession
from memoranda.engine.access_table import AccessRefused
from memoranda.engine.history.newest_texts import newest_texts
from memoranda.errors import InvalidInput, MemorandaError, NoSuchChange, NotFound, SecretRefused
from memoranda.index.rows import NoteInfo
from memoranda.jobs.lifecycle import FACE
from memoranda.ledger.change import ERASE, FIRST_OF_MACHINE, Change
from memoranda.note.model import Note
from memoranda.query import Query
from memoranda.serve.auth import PageVisitors, digest
from memoranda.serve.http import AdmittedRequest, HttpServer, program_of
from memoranda.serve.middleware import RequestRefused, timed_receive
from memoranda.serve.page.addresses import id_url, note_url
from memoranda.serve.page.deleted_lately import deleted_lately
from memoranda.serve.page.framing import framed
from memoranda.serve.page.near_pages import near_pages
from memoranda.serve.page.near_titles import nearest, words_of_address
from memoranda.serve.page.note.secret_question import (
    FIELD,
    SecretQuestion,
    holds_secret,
    mode_for,
    question_of,
)
from memoranda.serve.page.package_files import is_program_replaced
from memoranda.serve.page.rendering import render, render_frame
from memoranda.serve.page.words.sentences import ErrorWords, error_words, sentence_words
from memoranda.serve.page.words.text_origin import text_origin
from memoranda.serve.page.words.times import Clock
from memoranda.serve.page.words.toasts import toast_of
from memoranda.serve.page.words.wording import first_weekday_of, language_of, translated
from memoranda.text.unicode import is_valid_unicode

if TYPE_CHECKING:
    from memoranda.serve.sessions import McpSession

HOME = "/page"
_NOTE_PAGES = (f"{HOME}/note/", f"{HOME}/id/")
BODY = 8 << 20
"""Bytes that a form may have: a note of 1 MiB before and after the edit, of which each byte may be
sent as three."""
PART_HEADER = "x-part"
"""The header by which a script of the page asks for a part of a page."""
DONE = "done"
"""The field of an address that names the change that was just made, for the message of the next page."""
# The HTTP status of each error. Any other error is the client's fault: 400.
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
    "unknown_outcome": 503,
    "internal": 500,
}
_NOT_FOUND = 404
# Notes that the page of an error offers if no title comes near.
_MAX_LATELY = 5
_FAILED = 500
_UNAVAILABLE = 503
_REPLACED = "memoranda was updated while its page was served."
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
# Digits that a number in an address or a form may have, as the number of a change.
MAX_DIGITS = len(str(FIRST_OF_MACHINE))
# Characters of one field of an address. The arguments of tools have the same limit.
_MAX_FIELD_CHARACTERS = 10_000
# Fields of a form that are no longer than that, unlike the text of a note
_ONE_LINE_FIELDS = frozenset(
    ["agent", "by", "category", "choice", "day", "tags", "type", "until", "when"]
)


@dataclass
class Visit:
    """A request, with everything that a view needs to answer it.

    memory: the memory as the caller may use it.
    fields: the fields of the form after a POST, otherwise of the address. If a field was sent
        several times, its texts are joined by line breaks.
    csrf: a text that each form must send back, to prove that it is a form of this page. "" for a
        caller with a token.
    begin_page: a view calls it when the fields are valid and the answer will be a page. The frame
        of the page may then be sent before the rest is known.
    secret: the question about a secret in the form that was sent, or None.
    merged_with: the name of the writer whose change of the same note is merged with this one, or
        "".
    """

    request: Request
    memory: MemorySession
    fields: Mapping[str, str] = field(default_factory=dict)
    csrf: str = ""
    begin_page: Callable[[], object] = lambda: None
    secret: SecretQuestion | None = None
    merged_with: str = ""

    @property
    def is_post(self) -> bool:
        """Whether the request changes something."""
        return self.request.method == "POST"

    @property
    def is_api(self) -> bool:
        """Whether the request is for `/api`, whose answers are JSON."""
        return _is_api(self.request)

    @property
    def is_part(self) -> bool:
        """Whether a script asks for a part of a page, to put it into the page that is open."""
        return PART_HEADER in self.request.headers

    @property
    def now(self) -> datetime:
        """The time by the memory's clock."""
        return self.memory.clock()

    @property
    def language(self) -> str:
        """The language of the answer: "en" or "zh"."""
        return language_of(self.request)

    @property
    def reader_clock(self) -> Clock:
        """The language and the clock of the reader."""
        return Clock(self.language, self.now, self.memory.settings.reading_zone)

    @property
    def first_weekday(self) -> int:
        """The first day of the reader's week: 0 for Monday, 6 for Sunday."""
        return first_weekday_of(self.request)

    @property
    def here(self) -> str:
        """The path and query of the request, without the field DONE."""
        return address_without(str(self.request.url.path), self.request.url.query, (DONE,))

    @property
    def back_address(self) -> str:
        """The address of the page with the form that was sent. "" if it is unknown."""
        target = self.fields.get("back", "")
        return target if _is_own(target) else ""

    def text(self, name: str) -> str:
        """Return a field without blanks around it. "" if it was not sent."""
        return self.fields.get(name, "").strip()

    def number(self, name: str, default: int) -> int:
        """Return a whole number from the path, or else from the fields. Raises InvalidInput.

        default: the number if the request has none.
        """
        text = self.request.path_params.get(name) or self.fields.get(name) or str(default)
        if not text.isdecimal() or len(text) > MAX_DIGITS:
            raise InvalidInput(f'invalid {name} "{text[:50]}": not a number')
        return int(text)

    def part_or_page(self, part: str, page: str, status: int = 200, **values: Any) -> Response:
        """Render the template `part` for a script of the page, or the template `page`."""
        if self.is_part:
            return self.html(part, status, **values)
        return self.html(page, status, **values)

    def connected(self) -> Sequence[McpSession]:
        """Return the sessions of clients that are connected now."""
        sessions = self.request.app.state.sessions
        if sessions is None:
            return ()
        connected: Sequence[McpSession] = sessions.connected()
        return connected

    def html(self, template: str, status: int = 200, **values: Any) -> Response:
        """Render a template with `values` as the answer."""
        change = self._change_just_made()
        toast = None if change is None else toast_of(self.memory, change)
        values |= self._values() | {"toast": toast}
        return HTMLResponse(render(template, self.language, **values), status)

    def piece(self, template: str, **values: Any) -> Markup:
        """Render a template as a piece of a page."""
        return Markup(render(template, self.language, **values, **self._values()))

    def frame(self, template: str) -> str:
        """Render the part of a page before its content."""
        return render_frame(template, self.language, **self._values())

    def _values(self) -> dict[str, Any]:
        """Return the values that every page uses."""
        return {
            "visit": self,
            "csrf": self.csrf,
            "zone": self.memory.settings.reading_zone,
            "now": self.now,
            "here": self.here,
            "origin_of": partial(text_origin, self.memory),
            "rail": getattr(self.request.app.state, "rail", None),
        }

    def back(self, to: str | None = None, *, is_final: bool = False) -> Response:
        """Redirect to an address of the page after a form was carried out.

        The page there says which change was made, and offers to undo it.

        to: the address. None means the page with the form, which the field `back` names.
        is_final: whether the change cannot be undone. Then nothing is said or offered.
        """
        target = self.fields.get("back", "") if to is None else to
        if not _is_own(target):
            target = HOME
        path, _, query = target.partition("?")
        address = address_without(path, query, (DONE,))
        # The number of the change that the form made. 0 if it made none.
        change_number = self.memory.changed
        if change_number and not is_final:
            signed = self._signed(change_number, self.merged_with)
            joint = "&" if "?" in address else "?"
            address += f"{joint}{urlencode({DONE: signed})}"
        return RedirectResponse(address, 303)

    @property
    def address_to_leave(self) -> str:
        """The address that a question leads to if the reader wants none of its answers.

        It is the page with the form that was sent, or the first page if that is unknown.
        """
        if self.back_address:
            return self.back_address
        path = str(self.request.url.path)
        # Only the page of a note is at the address to which its forms are sent.
        return path if path.startswith(_NOTE_PAGES) else HOME

    def _signed(self, number: int, merged_with: str) -> str:
        """Return the number of a change with a signature: `17.0f3b…`, `17.0f3b….codex`.

        The signature keeps a foreign link from making the page say that a change was just made.

        merged_with: whose change was merged with it, "" for nobody's.
        """
        signature = digest(f"{DONE} {self.csrf} {number} {merged_with}")[:16]
        if merged_with:
            return f"{number}.{signature}.{merged_with}"
        return f"{number}.{signature}"

    def _change_just_made(self) -> Change | None:
        """Return the change that was just made, which the field DONE of the address names.

        None without such a field, or unless this page signed it.
        """
        signed = self.fields.get(DONE, "")
        number, _, rest = signed.partition(".")
        _, _, merged_with = rest.partition(".")
        if self.is_post or not self.csrf:
            return None
        if not number.isdecimal() or len(number) > MAX_DIGITS:
            return None
        expected = self._signed(int(number), merged_with).encode("utf-8", "replace")
        if not hmac.compare_digest(signed.encode("utf-8", "replace"), expected):
            return None
        change = self.memory.change_numbered(int(number))
        # An erased note cannot be brought back, so there is nothing to offer.
        if change is None or change.verb == ERASE:
            return None
        self.merged_with = merged_with
        return change

    def note_address(self, note: Note | NoteInfo) -> str:
        """Return the address of a note's page. It has the id in the place of a name with a secret."""
        text = self.memory.read(note, count=False).text
        if holds_secret(self.memory, text):
            return id_url(note.id)
        return note_url(note.project, note.path, self.request.path_params.get("path", ""))

    def title_of(self, note: Note) -> str:
        """Return the title that a browser shows for a note. It is neutral if the note has a secret."""
        if holds_secret(self.memory, note.text):
            return translated(self.language, "A note with a secret")
        return note.title

    def ask_about(self, refused: SecretRefused, *, is_maskable: bool | None = None) -> None:
        """Have the next page ask about a secret that was refused.

        refused: the refusal, which says where the secret is.
        is_maskable: whether the secret can be masked in the part of the form that has it. None means
            yes if that part is the text, and no if it is another one, such as the title.
        """
        self.secret = question_of(self.memory, self.fields, refused, is_maskable=is_maskable)


def _is_own(target: str) -> bool:
    """Whether an address belongs to the page. A form's field could name another site."""
    return target == HOME or target.startswith((f"{HOME}/", f"{HOME}?"))


def address_without(path: str, query: str, names: Iterable[str]) -> str:
    """Return an address without the fields `names` of its query.

    Without "done", the path `/page` and the query `day=x&done=1` give `/page?day=x`.
    """
    removed_names = set(names)
    fields = parse_qsl(query, keep_blank_values=True)
    remaining_fields = [(name, text) for name, text in fields if name not in removed_names]
    if remaining_fields:
        return f"{path}?{urlencode(remaining_fields)}"
    return path


View = Callable[[Visit], "Response | dict[str, Any]"]


def at_once(view: View) -> View:
    """Return a view that checks the disk for changed files only once for a GET.

    Otherwise each verb that the view calls would check it, which is slow for many short verbs.
    """

    def view_at_once(visit: Visit) -> Response | dict[str, Any]:
        # After a POST, the view must see its own changes.
        if visit.is_post:
            return view(visit)
        return visit.memory.at_once(lambda: view(visit))

    return view_at_once


class PageEndpoint:
    """Answers the requests for one address by `answer`.

    An error of `answer` becomes a page that tells it, or JSON for `/api`.
    """

    def __init__(self, answer: Callable[[Request], Awaitable[Response]]):
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, timed_receive(receive))
        try:
            answer = await self._answer(request)
        except RequestRefused as refused:
            answer = _answer_to_refusal(request, refused)
        except MemorandaError as error:
            answer = _answer_to_error(request, error)
        except TimeoutError:
            answer = _answer_to_late_request(request)
        for name, value in HEADERS.items():
            answer.headers.setdefault(name, value)
        await answer(scope, receive, send)


async def answer_by_view(
    server: HttpServer,
    visitors: PageVisitors,
    view: View,
    request: Request,
    template: str | None = None,
) -> Response:
    """Find out who sends a request, and answer it by a view.

    Raises RequestRefused if the sender may not see the page, MemorandaError, TimeoutError.

    template: the template of the page, if its frame may be sent before the view has answered. None
        if it may not.
    """
    if is_foreign(request):
        raise RequestRefused(403, "This request comes from another site.")
    secret = request.cookies.get(cookie_name(request), "")
    is_owner = bool(secret) and visitors.knows(secret)
    if is_owner:
        # The owner of the home, who needs no token.
        admitted_request = AdmittedRequest(token=None, space=None, server=server)
    elif _is_api(request):
        # A token counts for `/api` only, not for the page.
        admitted_request = server.admit(request)
    else:
        raise RequestRefused(401, "This page is opened by the command: memory page")
    # A form must send this text back. Another site cannot, since only the holder of the cookie can
    # compute the text.
    csrf = digest(f"csrf {secret}") if is_owner else ""
    if request.method == "POST":
        fields = await _checked_fields(request, admitted_request, csrf)
    else:
        fields = _join_fields(parse_qsl(request.url.query, keep_blank_values=True))
        _check_lengths(fields)
    program = program_of(request)

    def visit_of(memory: MemorySession) -> Visit:
        """Return the visit, with the memory as the sender of the request may use it."""
        if is_owner:
            session = digest(f"session {secret}")[:8]
            memory = memory.as_caller(None, "page", client="page", session=session)
            # A look by a person does not count as use by an agent.
            memory.only_reads = request.method != "POST"
            if request.method == "POST" and not _is_api(request):
                memory.own_secret_mode = mode_for(memory, fields)
        else:
            memory = admitted_request.memory_of_caller(
                memory, client_name=program, face="http", recorded_client=f"http {program}"
            )
        return Visit(
            request=request, memory=memory, fields=fields, csrf=csrf, begin_page=begin_page
        )

    # Set when the view is sure that it will answer with its page. Views run on other threads.
    has_begun = asyncio.Event()
    begin_page = partial(asyncio.get_running_loop().call_soon_threadsafe, has_begun.set)
    # A coroutine: the view does not run before somebody waits for it.
    answer = server.run(admitted_request, lambda memory: _answer_of(view, visit_of(memory)))
    is_page = request.method == "GET" and PART_HEADER not in request.headers
    if template is None or not is_page:
        return await answer
    # The frame of the page is sent at once, and the rest when the view has answered.
    frame = partial(server.run, admitted_request, lambda memory: visit_of(memory).frame(template))
    return await framed(answer, frame, has_begun, partial(_answer_to_error, request))


def _answer_of(view: View, visit: Visit) -> Response:
    """Return the answer of a view. For a person, an error is a page with the usual frame."""
    try:
        answer = view(visit)
    except SecretRefused as refused:
        if visit.is_api or not visit.is_post:
            raise
        visit.ask_about(refused)
        return visit.html("secret.html", 400, fields=_lines_of(visit.fields))
    except MemorandaError as error:
        if visit.is_api or visit.is_part:
            raise
        return _framed_error(visit, error)
    if isinstance(answer, Response):
        return answer
    return JSONResponse(answer)


def _framed_error(visit: Visit, error: MemorandaError) -> Response:
    """Return the page about an error, with the usual frame.

    For an address that leads nowhere, it shows where to go.
    """
    status = _status_of(error)
    values: dict[str, Any] = {"sought": "", "pages": [], "near": [], "lately": [], "deleted": []}
    if status == _NOT_FOUND and not visit.is_post:
        values = _ways_out(visit)
    return visit.html(
        "error.html",
        status,
        words=error_words(visit.reader_clock, error),
        status_shown=status,
        is_replaced=False,
        # Only a note goes elsewhere.
        may_be_elsewhere=not isinstance(error, NoSuchChange),
        **values,
    )


def _ways_out(visit: Visit) -> dict[str, Any]:
    """Return what a page offers whose address leads nowhere, as values for the template.

    sought: the words that were probably looked for. "" if the address has none.
    pages: pages with an address like this one.
    near: notes with a title like `sought`.
    lately: the notes that were written last, if no title is like `sought`.
    deleted: notes that were deleted lately.
    """
    memory = visit.memory
    sought = _words_sought(visit)
    near = nearest(memory, sought) if sought else []
    return {
        "sought": sought,
        "pages": near_pages(visit.request.path_params.get("address", "")),
        "near": [info for info in near if not memory.is_held_back(info)],
        "lately": [] if near else _written_lately(memory),
        "deleted": deleted_lately(memory),
    }


def _written_lately(memory: MemorySession) -> list[NoteInfo]:
    """Return the notes that were written last, which somebody may look for."""
    infos, _ = newest_texts(memory, Query(archived=False), _MAX_LATELY, FACE)
    return [info for info in infos if not memory.is_held_back(info)]


def _words_sought(visit: Visit) -> str:
    """Return the words of an address that leads nowhere. "" if it names no note, or has a secret."""
    parameters = visit.request.path_params
    name = visit.text("ref") or parameters.get("path") or parameters.get("address") or ""
    return "" if holds_secret(visit.memory, name) else words_of_address(name)


def _lines_of(fields: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the fields to be sent again, with a separate field for each line of a text.

    In a field with several lines, browsers would change the line ends.
    """
    lines = []
    for name, text in fields.items():
        # The choice about the secret is made anew.
        if name != FIELD:
            lines += [(name, line) for line in text.replace("\r\n", "\n").split("\n")]
    return lines


async def _checked_fields(
    request: Request, admitted_request: AdmittedRequest, csrf: str
) -> dict[str, str]:
    """Check that the sender of a form may change something, and return the fields of the form.

    Raises RequestRefused if the sender may not, TimeoutError.

    csrf: the secret text that our pages put into their forms. A page of another site cannot know
        it. "" if the request has an access token, which another site cannot send either. Then the
        form needs no such text.
    """
    if admitted_request.scope == "read":
        raise RequestRefused(403, "This token may only read.")
    fields = await _read_form(request)
    # A script sends the text as a header, so that its JSON needs no field for it.
    sent_csrf = fields.pop("csrf", "") or request.headers.get("x-csrf-token", "")
    if csrf and not hmac.compare_digest(sent_csrf.encode("utf-8", "replace"), csrf.encode()):
        raise RequestRefused(
            403, "This form is of another session. Load the page again, and repeat it."
        )
    one_line_fields = {name: fields[name] for name in fields.keys() & _ONE_LINE_FIELDS}
    _check_lengths(one_line_fields, status=413)
    return fields


def cookie_name(request: Request) -> str:
    """Return the name of the cookie: `memoranda-8377` for port 8377.

    Browsers send cookies to all ports of a host, and each port may be the server of another home.
    """
    return f"memoranda-{request.url.port or 80}"


def _is_api(request: Request) -> bool:
    return not request.url.path.startswith(HOME)


def is_foreign(request: Request) -> bool:
    """Whether a page of another site sent this request.

    A server at another port of this machine is another site. A link on another site that a person
    follows is allowed.
    """
    headers = request.headers
    is_followed_link = request.method == "GET" and headers.get("sec-fetch-mode") == "navigate"
    # "none": the person typed the address.
    site = headers.get("sec-fetch-site", "none")
    if site not in ("same-origin", "none") and not is_followed_link:
        return True
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc != headers.get("host")


def _check_lengths(fields: Mapping[str, str], status: int = 414) -> None:
    """Raise RequestRefused for a field that is longer than a person would type.

    status: the status of the answer.
    """
    for name, text in fields.items():
        if len(text) > _MAX_FIELD_CHARACTERS:
            raise RequestRefused(
                status,
                f"{name[:50]} has {len(text)} characters; at most {_MAX_FIELD_CHARACTERS} are taken",
            )


def _join_fields(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the fields by name. Several texts of one field are joined by line breaks."""
    fields: dict[str, str] = {}
    for name, text in pairs:
        if name in fields:
            fields[name] += f"\n{text}"
        else:
            fields[name] = text
    return fields


async def _read_form(request: Request) -> dict[str, str]:
    """Read the fields of a form, or for `/api` of a JSON object.

    Raises RequestRefused, TimeoutError.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY:
            raise RequestRefused(413, f"A form may have {BODY >> 20} MiB. Edit the file itself.")
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    try:
        if kind == "application/json":
            return _fields_of_json(bytes(body))
        if kind == "application/x-www-form-urlencoded" and not _is_api(request):
            pairs = parse_qsl(
                body.decode(), keep_blank_values=True, max_num_fields=2000, errors="strict"
            )
            return _join_fields(pairs)
    except (ValueError, RecursionError):
        raise RequestRefused(400, "The form cannot be read.") from None
    raise RequestRefused(415, "Send a form, or to /api an object of application/json.")


def _fields_of_json(body: bytes) -> dict[str, str]:
    """Return the members of a JSON object as texts: `{"limit": 5}` gives `{"limit": "5"}`.

    Raises ValueError, also for half a character such as `\\ud800`, and RecursionError.
    """
    value = json.loads(body or b"{}")
    if not isinstance(value, dict):
        raise ValueError
    fields = {
        str(name): member if isinstance(member, str) else json.dumps(member)
        for name, member in value.items()
    }
    names_and_texts = chain.from_iterable(fields.items())
    if not all(is_valid_unicode(text) for text in names_and_texts):
        raise ValueError
    return fields


def _answer_to_late_request(request: Request) -> Response:
    """Return the answer to a request that did not come in time."""
    sentence = "The request did not come in time."
    if _is_api(request):
        return _error_as_json(408, "timeout", sentence)
    return _page_without_frame(
        request, 408, sentence_words(_clock_without_memory(request), sentence)
    )


def _answer_to_refusal(request: Request, refused: RequestRefused) -> Response:
    """Return the answer to a request that was refused."""
    headers = {
        name: refused.response.headers[name]
        for name in ("www-authenticate", "retry-after")
        if name in refused.response.headers
    }
    status = refused.response.status_code
    if _is_api(request):
        return _error_as_json(status, "refused", str(refused), headers)
    words = sentence_words(_clock_without_memory(request), str(refused))
    # The headers are for programs. By one of them, a browser would ask for a password.
    return _page_without_frame(request, status, words)


def _answer_to_error(request: Request, error: MemorandaError) -> Response:
    """Return the answer that tells an error."""
    status = _status_of(error)
    # Programs read English only.
    if _is_api(request):
        return _error_as_json(status, error.code, _for_programs(error))
    clock = _clock_without_memory(request)
    if status == _FAILED and is_program_replaced():
        return _page_without_frame(
            request, _UNAVAILABLE, sentence_words(clock, _REPLACED), is_replaced=True
        )
    return _page_without_frame(request, status, error_words(clock, error))


def _clock_without_memory(request: Request) -> Clock:
    """Return the clock of a reader whose time zone is not known, as settings have it."""
    return Clock(language_of(request), now(), None)


def _status_of(error: MemorandaError) -> int:
    """Return the HTTP status of an error."""
    if isinstance(error, AccessRefused):
        return 503
    return _STATUS.get(error.code, 400)


def _for_programs(error: MemorandaError) -> str:
    """Return the message of an error for a program, with a hint what to do."""
    sentence = str(error)
    if isinstance(error, NotFound):
        sentence = f"There is nothing here: {error.identifier}"
    return " ".join(filter(None, (sentence, error.hint)))


def _error_as_json(
    status: int, code: str, message: str, headers: Mapping[str, str] | None = None
) -> Response:
    """Return an error as JSON for `/api`."""
    return JSONResponse({"error": {"code": code, "message": message}}, status, headers)


def _page_without_frame(
    request: Request, status: int, words: ErrorWords, *, is_replaced: bool = False
) -> Response:
    """Return an error as a page without the frame, which needs a memory.

    is_replaced: whether the server must be started again, because its program was replaced.
    """
    page = render(
        "error.html",
        language_of(request),
        words=words,
        status_shown=status,
        is_replaced=is_replaced,
        may_be_elsewhere=False,
        sought="",
        near=[],
        lately=[],
        deleted=[],
        pages=[],
        csrf="",
        visit=None,
        zone=None,
        here="",
        toast=None,
        rail=None,
    )
    return HTMLResponse(page, status)
