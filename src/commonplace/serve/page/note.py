"""One note: its text, facts, links and history, and all that can be done with it."""

from __future__ import annotations

from typing import Any

from starlette.responses import RedirectResponse, Response

from commonplace.serve.page.render import note_url
from commonplace.serve.page.visit import Visit


def find(visit: Visit) -> Response:
    """To the page of the note that `ref` names."""
    info = visit.memory.find(visit.given.get("ref", ""))
    return RedirectResponse(note_url(info.project, info.path), 303)


def show(visit: Visit) -> Response:
    raise NotImplementedError


def json(visit: Visit) -> dict[str, Any]:
    raise NotImplementedError
