"""Shows the first page of an empty memory: the three steps with which to begin."""

from __future__ import annotations

from starlette.responses import Response

from memoranda.serve.page.visit import Visit


def show(visit: Visit, since: str) -> Response:
    """Show the three steps, with the programs on this machine that can be connected.

    since: the stamp of the ledger. The page is replaced as soon as the first note is written.
    """
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
