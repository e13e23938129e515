"""All addresses of the page and of `/api`."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from commonplace.serve.http import HttpServer
from commonplace.serve.page import agents, calendar, graph, inbox, note, search, today
from commonplace.serve.page.live import Live
from commonplace.serve.page.render import LANGUAGES, language_of, render
from commonplace.serve.page.session import COOKIE_LASTS, PageVisitors
from commonplace.serve.page.visit import HEADERS, HOME, Visit, at_once, cookie_name, route

GET, POST, BOTH = ("GET",), ("POST",), ("GET", "POST")
PAGES = {
    HOME: (GET, at_once(today.show)),
    f"{HOME}/change/{{number}}": (GET, today.change),
    f"{HOME}/undo": (POST, today.undo),
    f"{HOME}/find": (GET, note.find),
    f"{HOME}/note/{{project}}/{{path:path}}": (BOTH, at_once(note.show)),
    f"{HOME}/inbox": (BOTH, inbox.show),
    f"{HOME}/search": (GET, at_once(search.show)),
    f"{HOME}/graph": (GET, graph.show),
    f"{HOME}/calendar": (GET, at_once(calendar.show)),
    f"{HOME}/reminder": (POST, calendar.change),
    f"{HOME}/agents": (GET, agents.show),
    f"{HOME}/agents/revoke": (POST, agents.revoke),
    f"{HOME}/doctor": (BOTH, agents.doctor),
}
"""Path, methods, view: for the owner, by cookie."""
API = {
    "/changes": (GET, today.changes_json),
    "/change/{number}": (GET, today.change_json),
    "/undo": (POST, today.undo_json),
    "/note": (BOTH, note.json),
    "/review": (BOTH, inbox.json),
    "/search": (GET, search.json),
    "/graph": (GET, graph.json),
    "/calendar": (GET, calendar.json),
    "/reminder": (POST, calendar.change_json),
    "/health": (GET, agents.json),
}
"""The same below `/api`, and `/s/SPACE/api` for a member of a space: with a token, or by cookie."""


def page_routes(server: HttpServer) -> Sequence[BaseRoute]:
    """The routes of the page over what `server` serves."""
    visitors = PageVisitors(server.access, server.clock)

    async def enter(request: Request) -> Response:
        secret = visitors.enter(request.query_params.get("code", "")) if request.method == "GET" else None
        status = 200 if secret else 401
        page = render("enter.html", language_of(request), is_in=bool(secret), csrf="", visit=None)
        answer = HTMLResponse(page, status, HEADERS)
        if secret:
            answer.set_cookie(
                cookie_name(request), secret, max_age=int(COOKIE_LASTS.total_seconds()), httponly=True,
                samesite="strict", secure=request.url.scheme == "https",
            )  # fmt: skip
        return answer

    async def language(request: Request) -> Response:
        answer = RedirectResponse(request.headers.get("referer", HOME) if _is_own(request) else HOME, 303, HEADERS)
        wanted = request.query_params.get("to", "")
        answer.set_cookie("commonplace-language", wanted if wanted in LANGUAGES else "en", max_age=31536000,
                          httponly=True, samesite="strict")  # fmt: skip
        return answer

    def leave(visit: Visit) -> Response:
        visitors.leave(visit.request.cookies.get(cookie_name(visit.request), ""))
        return visit.html("enter.html", is_in=None)

    return [
        Route(f"{HOME}/enter", enter, methods=["GET"]),
        Route(f"{HOME}/language", language, methods=["GET"]),
        Route(f"{HOME}/live", Live(server), methods=["GET"]),
        Mount(f"{HOME}/static", StaticFiles(packages=[("commonplace.serve.page", "static")])),
        route(server, f"{HOME}/leave", leave, POST),
        *(route(server, path, view, methods) for path, (methods, view) in PAGES.items()),
        *(route(server, f"{base}/api{path}", view, methods)
          for path, (methods, view) in API.items() for base in ("", "/s/{space}")),
    ]  # fmt: skip


def _is_own(request: Request) -> bool:
    """Whether the visitor comes from a page of this server."""
    return request.headers.get("referer", "").startswith(f"{request.url.scheme}://{request.headers.get('host')}{HOME}")
