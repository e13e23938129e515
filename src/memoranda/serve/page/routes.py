"""Names all addresses of the page and of `/api`, with the view that answers each.

Requests that have no view are answered here: entering with a code, the choice of a language, and
the stream that announces changes to open pages.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from memoranda.errors import NotFound
from memoranda.serve.auth import COOKIE_LASTS, PageVisitors
from memoranda.serve.http import HttpServer
from memoranda.serve.page import (
    agents,
    api,
    calendar,
    guide,
    health,
    late_modules,
    note_names,
    search,
    shell,
    undoing,
    used,
)
from memoranda.serve.page.graph import view as graph_view
from memoranda.serve.page.note import actions as note_actions
from memoranda.serve.page.note import create, drafts
from memoranda.serve.page.note import note_page as note
from memoranda.serve.page.package_files import package_files
from memoranda.serve.page.people import about_me, person
from memoranda.serve.page.people import people_page as people
from memoranda.serve.page.rendering import prepare, render
from memoranda.serve.page.review import merge_pages
from memoranda.serve.page.review import review_page as review
from memoranda.serve.page.static_files import STATIC, YEAR, static_file
from memoranda.serve.page.today import digest
from memoranda.serve.page.visit import (
    HOME,
    PageEndpoint,
    View,
    Visit,
    answer_by_view,
    at_once,
    cookie_name,
    is_foreign,
)
from memoranda.serve.page.words.wording import LANGUAGE_COOKIE, LANGUAGES, language_of

# Seconds between two checks for changes.
_CHECK_SECONDS = 0.5
# Seconds of silence after which a stream sends a comment, because proxies close silent streams.
_MAX_SILENT_SECONDS = 15.0
GET = ("GET",)
POST = ("POST",)
GET_AND_POST = ("GET", "POST")


def leave(visit: Visit) -> Response:
    """Make the cookie invalid, and show the page for entering."""
    secret = visit.request.cookies.get(cookie_name(visit.request), "")
    PageVisitors(visit.request.app.state.server.access).leave(secret)
    visit.csrf = ""
    return visit.html("enter.html", is_in=None)


def nothing_here(visit: Visit) -> Response:
    """Say that the page has nothing at the address. Always raises NotFound."""
    raise NotFound(visit.request.url.path)


PAGES: dict[str, tuple[tuple[str, ...], View]] = {
    HOME: (GET, at_once(digest.show)),
    f"{HOME}/change/{{change}}": (GET, undoing.show),
    f"{HOME}/undo": (POST, undoing.undo),
    f"{HOME}/find": (GET, note.find),
    f"{HOME}/note/{{project}}/{{path:path}}": (GET_AND_POST, at_once(note.show)),
    f"{HOME}/id/{{id}}": (GET_AND_POST, at_once(note.show)),
    f"{HOME}/new": (GET_AND_POST, create.show),
    f"{HOME}/remind": (GET_AND_POST, create.remind),
    f"{HOME}/draft": (POST, drafts.show),
    f"{HOME}/merge": (GET, at_once(merge_pages.show)),
    f"{HOME}/titles": (GET, at_once(note_names.suggest)),
    f"{HOME}/bulk": (POST, note_actions.act_on_several),
    f"{HOME}/export": (GET_AND_POST, create.export),
    f"{HOME}/review": (GET_AND_POST, review.show),
    f"{HOME}/search": (GET, at_once(search.show)),
    f"{HOME}/palette": (GET, at_once(search.suggest)),
    f"{HOME}/tags": (GET, search.tags),
    f"{HOME}/people": (GET, at_once(people.show)),
    f"{HOME}/about": (GET_AND_POST, at_once(person.show)),
    f"{HOME}/me": (GET_AND_POST, about_me.show),
    f"{HOME}/graph": (GET, graph_view.show),
    f"{HOME}/calendar": (GET, at_once(calendar.show)),
    f"{HOME}/reminder": (POST, calendar.change),
    f"{HOME}/agents": (GET, agents.show),
    f"{HOME}/agents/pause": (POST, agents.pause),
    f"{HOME}/agents/undo": (GET_AND_POST, agents.undo_since),
    f"{HOME}/session": (GET_AND_POST, agents.session),
    f"{HOME}/agents/revoke": (POST, agents.revoke),
    f"{HOME}/used": (GET, used.show),
    f"{HOME}/ask": (GET, used.ask),
    f"{HOME}/health": (GET, health.show),
    f"{HOME}/doctor": (GET_AND_POST, health.doctor),
    f"{HOME}/rail": (GET, shell.rail),
    f"{HOME}/needs": (GET, shell.needs),
    f"{HOME}/menu": (GET, shell.menu),
    f"{HOME}/help": (GET, guide.show),
    f"{HOME}/leave": (POST, leave),
    # Also an address to which only forms are sent, which a browser may load again.
    f"{HOME}/{{address:path}}": (GET, nothing_here),
}
"""The addresses of the page, each with its methods and its view. They need the owner's cookie."""
FRAMES = {
    HOME: "today.html",
    f"{HOME}/search": "search.html",
    f"{HOME}/people": "people.html",
    f"{HOME}/calendar": "calendar.html",
    f"{HOME}/health": "health.html",
}
"""The templates of the pages that take a while, whose frame is sent at once."""
API: dict[str, tuple[tuple[str, ...], View]] = {
    "/changes": (GET, api.changes),
    "/change/{change}": (GET, api.change),
    "/undo": (POST, undoing.undo),
    "/note": (GET_AND_POST, note_actions.as_json),
    "/review": (GET_AND_POST, review.show),
    "/search": (GET, search.as_json),
    "/graph": (GET, graph_view.drawing),
    "/calendar": (GET, calendar.as_json),
    "/reminder": (POST, calendar.change),
    "/health": (GET, agents.health_json),
}
"""The addresses below `/api`, and below `/s/SPACE/api` for the members of a space. They need a token
or the owner's cookie."""


def page_routes(server: HttpServer) -> Sequence[BaseRoute]:
    """Return all routes of the page and of `/api`, for the memories that `server` serves.

    All files and modules of the page are read now. A later update of the package then cannot
    replace some of them while the server runs.
    """
    package_files()
    late_modules.load()
    visitors = PageVisitors(server.access)
    answers: dict[str, Callable[[Request], Awaitable[Response]]] = {
        f"{HOME}/enter": partial(_enter, visitors),
        f"{HOME}/language": _language,
        f"{HOME}/live": partial(_live, server, visitors),
    }
    views: dict[str, tuple[tuple[str, ...], View]] = {}
    for path, (methods, view) in PAGES.items():
        # Only a view that takes a form may change something, which the rail then shows.
        views[path] = (methods, shell.with_own_act(view) if POST[0] in methods else view)
    for path, methods_and_view in API.items():
        views[f"/api{path}"] = methods_and_view
        views[f"/s/{{space}}/api{path}"] = methods_and_view

    routes: list[BaseRoute] = [Route(f"{STATIC}/{{path:path}}", static_file, methods=GET)]
    # Starlette takes the first route that fits, so those without a view come first: the last of
    # PAGES fits any address.
    for path, answer in answers.items():
        routes.append(_route(path, answer, GET))
    for path, (methods, view) in views.items():
        answer = partial(answer_by_view, server, visitors, view, template=FRAMES.get(path))
        routes.append(_route(path, answer, methods))
    return routes


def _route(
    path: str, answer: Callable[[Request], Awaitable[Response]], methods: Sequence[str]
) -> Route:
    return Route(path, PageEndpoint(answer), methods=list(methods))


async def _enter(visitors: PageVisitors, request: Request) -> Response:
    """Exchange a code in the address for a cookie. A code is valid once."""
    secret = None
    if request.method == "GET":
        secret = visitors.enter(request.query_params.get("code", ""))
    page = render(
        "enter.html",
        language_of(request),
        is_in=bool(secret),
        csrf="",
        visit=None,
        here="",
        toast=None,
        rail=None,
    )
    answer = HTMLResponse(page, 200 if secret else 401)
    if secret:
        answer.set_cookie(
            cookie_name(request),
            secret,
            max_age=int(COOKIE_LASTS.total_seconds()),
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
    return answer


async def _language(request: Request) -> Response:
    """Remember the chosen language, and return to the page where it was chosen."""
    referer = request.headers.get("referer", "")
    own_pages = f"{request.url.scheme}://{request.headers.get('host')}{HOME}"
    # A page of another site is not returned to.
    return_address = referer if referer.startswith(own_pages) else HOME
    language = request.query_params.get("to", "")
    if language not in LANGUAGES:
        language = "en"
    answer = RedirectResponse(return_address, 303)
    answer.set_cookie(
        LANGUAGE_COOKIE,
        language,
        max_age=YEAR,
        httponly=True,
        samesite="strict",
    )
    return answer


async def _live(server: HttpServer, visitors: PageVisitors, request: Request) -> Response:
    """Answer with a stream that sends an event for each change in the ledger, by any process.

    Without a valid cookie the answer has status 204, after which a browser does not ask again.
    """
    secret = request.cookies.get(cookie_name(request), "")
    if is_foreign(request) or not visitors.knows(secret):
        return Response(status_code=204)
    events = _events(server, visitors, secret, request.query_params.get("since"))
    headers = {"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"}
    return StreamingResponse(events, headers=headers)


async def _events(
    server: HttpServer, visitors: PageVisitors, secret: str, since: str | None
) -> AsyncIterator[str]:
    """Yield an event for each change of the ledger, as long as the cookie is valid.

    A program that connects or goes is an event, too. Without an event for some time, a comment is
    sent, so that nobody on the way takes the connection for dead.

    secret: the secret of the cookie.
    since: the stamp of the ledger that the browser has seen. None means the present one.
    """
    # The first page opens the stream after it is shown. Then there is time to load the templates
    # of the other pages.
    asyncio.get_running_loop().run_in_executor(None, prepare)
    memory = server.homes.memory(None)
    last_stamp = memory.journal_stamp() if since is None else since
    last_clients = _connected_clients(server)
    silent_seconds = 0.0
    yield "retry: 2000\n\n"
    while not server.stopping.is_set() and visitors.knows(secret):
        stamp = await asyncio.to_thread(memory.journal_stamp)
        clients = _connected_clients(server)
        if stamp != last_stamp or clients != last_clients:
            last_stamp = stamp
            last_clients = clients
            silent_seconds = 0.0
            yield f"event: change\ndata: {stamp}\n\n"
        elif silent_seconds >= _MAX_SILENT_SECONDS:
            silent_seconds = 0.0
            yield ": alive\n\n"
        await asyncio.sleep(_CHECK_SECONDS)
        silent_seconds += _CHECK_SECONDS


def _connected_clients(server: HttpServer) -> frozenset[str]:
    """Return the names of the programs that are connected now."""
    sessions = server.app.state.sessions
    if sessions is None:
        return frozenset()
    return frozenset(session.client for session in sessions.connected())
