"""All addresses of the page and of `/api`; entering, leaving, and the stream that tells of changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from memoranda.serve.auth import COOKIE_LASTS, PageVisitors
from memoranda.serve.http import HttpServer
from memoranda.serve.page import agents, calendar, graph_view, lists, note
from memoranda.serve.page.visit import (
    HOME,
    LANGUAGES,
    PageEndpoint,
    View,
    Visit,
    at_once,
    cookie_name,
    is_foreign,
    language_of,
    prepare,
    render,
    viewed,
)

_LOOK_EVERY = 0.5
_ALIVE_EVERY = 15.0
GET = ("GET",)
POST = ("POST",)
BOTH = ("GET", "POST")
PAGES = {
    HOME: (GET, at_once(lists.today)),
    f"{HOME}/change/{{change}}": (GET, lists.change),
    f"{HOME}/undo": (POST, lists.undo),
    f"{HOME}/find": (GET, note.find),
    f"{HOME}/note/{{project}}/{{path:path}}": (BOTH, at_once(note.show)),
    f"{HOME}/inbox": (BOTH, lists.inbox),
    f"{HOME}/search": (GET, at_once(lists.search)),
    f"{HOME}/graph": (GET, graph_view.show),
    f"{HOME}/calendar": (GET, at_once(calendar.show)),
    f"{HOME}/reminder": (POST, calendar.change),
    f"{HOME}/agents": (GET, agents.show),
    f"{HOME}/agents/revoke": (POST, agents.revoke),
    f"{HOME}/doctor": (BOTH, agents.doctor),
}
"""Path, methods, view: for the owner, by cookie."""
API = {
    "/changes": (GET, lists.changes_json),
    "/change/{change}": (GET, lists.change_json),
    "/undo": (POST, lists.undo),
    "/note": (BOTH, note.json),
    "/review": (BOTH, lists.inbox),
    "/search": (GET, lists.search_json),
    "/graph": (GET, graph_view.drawing),
    "/calendar": (GET, calendar.json),
    "/reminder": (POST, calendar.change),
    "/health": (GET, agents.json),
}
"""The same below `/api`, and `/s/SPACE/api` for a member of a space: with a token, or by cookie."""


def page_routes(server: HttpServer) -> Sequence[BaseRoute]:
    """The routes of the page over what `server` serves."""
    visitors = PageVisitors(server.access)

    async def enter(request: Request) -> Response:
        if request.method == "GET":
            secret = visitors.enter(request.query_params.get("code", ""))
        else:
            secret = None
        status = 200 if secret else 401
        page = render("enter.html", language_of(request), is_in=bool(secret), csrf="", visit=None)
        answer = HTMLResponse(page, status)
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

    async def language(request: Request) -> Response:
        referer = request.headers.get("referer", "")
        own = f"{request.url.scheme}://{request.headers.get('host')}{HOME}"
        answer = RedirectResponse(referer if referer.startswith(own) else HOME, 303)
        wanted = request.query_params.get("to", "")
        answer.set_cookie(
            "memoranda-language",
            wanted if wanted in LANGUAGES else "en",
            max_age=31536000,
            httponly=True,
            samesite="strict",
        )
        return answer

    async def live(request: Request) -> Response:
        """Server-sent events, one for each change of the journal by whatever process; 204: do not
        ask again.
        """
        secret = request.cookies.get(cookie_name(request), "")
        if is_foreign(request) or not visitors.knows(secret):
            return Response(status_code=204)
        events = _events(server, visitors, secret, request.query_params.get("since"))
        return StreamingResponse(
            events, headers={"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"}
        )

    def leave(visit: Visit) -> Response:
        visitors.leave(visit.request.cookies.get(cookie_name(visit.request), ""))
        return visit.html("enter.html", is_in=None)

    views: dict[str, tuple[tuple[str, ...], View]] = {f"{HOME}/leave": (POST, leave), **PAGES}
    views |= {
        f"{base}/api{path}": view for path, view in API.items() for base in ("", "/s/{space}")
    }
    answers = {f"{HOME}/enter": enter, f"{HOME}/language": language, f"{HOME}/live": live}
    return [
        Mount(f"{HOME}/static", StaticFiles(packages=[("memoranda.serve.page", "static")])),
        *(Route(path, PageEndpoint(answer), methods=["GET"]) for path, answer in answers.items()),
        *(
            Route(
                path, PageEndpoint(partial(viewed, server, visitors, view)), methods=list(methods)
            )
            for path, (methods, view) in views.items()
        ),
    ]


async def _events(
    server: HttpServer, visitors: PageVisitors, secret: str, since: str | None
) -> AsyncIterator[str]:
    """An event for each change after the journal had the stamp `since` [after now], as long as the
    cookie is good.
    """
    # Today asks for this once it is painted: time to get the other pages ready
    asyncio.get_running_loop().run_in_executor(None, prepare)
    memory = server.homes.memory(None)
    seen = memory.journal_stamp() if since is None else since
    quiet = 0.0
    yield "retry: 2000\n\n"
    while not server.stopping.is_set() and visitors.knows(secret):
        now = await asyncio.to_thread(memory.journal_stamp)
        if now != seen:
            seen = now
            quiet = 0.0
            yield f"event: change\ndata: {now}\n\n"
        elif quiet >= _ALIVE_EVERY:
            quiet = 0.0
            yield ": alive\n\n"
        await asyncio.sleep(_LOOK_EVERY)
        quiet += _LOOK_EVERY
