"""Offers the titles that somebody may mean while typing one: for a link, or for a merge."""

from __future__ import annotations

from starlette.responses import Response

from memoranda.serve.page.near_titles import titled
from memoranda.serve.page.visit import Visit


def suggest(visit: Visit) -> Response:
    """Show the titles that the field `q` may be the beginning of.

    The field `not` names a note that is left out, by its id.
    """
    text = visit.text("q")
    infos = titled(visit.memory, text) if text else []
    offered = [info for info in infos if info.id != visit.text("not")]
    return visit.html("titles.html", infos=offered)
