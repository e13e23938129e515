"""How it fits together: the page of the documentation, shown here."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from starlette.responses import Response

from memoranda.serve.page.note_text import LinkTargets, as_html
from memoranda.serve.page.visit import Visit


@cache
def _text() -> str:
    return files(__package__).joinpath("texts", "how-it-fits-together.md").read_text("utf-8")


def show(visit: Visit) -> Response:
    """The text of docs/how-it-fits-together.md, which comes with the package."""
    return visit.html("help.html", body=as_html(_text(), "", "", LinkTargets()))
