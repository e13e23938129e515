"""The first page of an empty memory: three steps, with the programs found on this machine."""

from __future__ import annotations

from starlette.responses import Response

from memoranda.serve.page.visit import Visit


def show(visit: Visit, since: str) -> Response:
    """The three steps; the page changes when the first note comes."""
    state = visit.request.app.state
    programs = getattr(state, "programs", None)
    connected = [session.client for session in visit.connected()]
    return visit.html(
        "first_run.html",
        clients=programs() if programs is not None else [],
        connected=connected,
        since=since,
        home=visit.memory.settings.shown_home,
    )
