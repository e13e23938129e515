"""Shows the first page of an empty memory: the three steps with which to begin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.responses import Response

from memoranda.serve.page.visit import Visit


def show(visit: Visit, since: str) -> Response:
    """Show the three steps, with the programs on this machine that can be connected.

    since: the stamp of the ledger. The page is replaced as soon as the first note is written, and
        shown again as soon as a program connects.
    """
    connected = [session.client for session in visit.connected() if session.client]
    clients = programs_of(visit)
    settings = visit.memory.settings
    return visit.html(
        "first_run.html",
        clients=clients,
        are_connected=any(client.is_connected for client in clients) or bool(connected),
        connected=connected,
        calling={client.id for client in clients if _is_here(client.id, connected)},
        since=since,
        home=settings.shown_home,
        is_on_disk=settings.url is None,
    )


def programs_of(visit: Visit) -> Sequence[Any]:
    """Return the programs on this machine (`clients.preview.InstalledProgram`).

    Empty if the server was started without the function that looks for them.
    """
    find_programs = getattr(visit.request.app.state, "programs", None)
    if find_programs is None:
        return ()
    programs: Sequence[Any] = find_programs()
    return programs


def _is_here(client_id: str, connected: list[str]) -> bool:
    """Whether one of the connected programs is a client: `claude-code` if `Claude Code` is."""
    names = [name.casefold().replace(" ", "-") for name in connected]
    return any(name.startswith(client_id) for name in names)
