"""Inbox: what upkeep asks the owner."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from commonplace.serve.page.visit import Visit


def show(visit: Visit) -> Response:
    raise NotImplementedError


def json(visit: Visit) -> dict[str, Any]:
    raise NotImplementedError
