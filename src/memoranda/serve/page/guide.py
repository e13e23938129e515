"""How it fits together: the page of the documentation, shown here."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from starlette.responses import Response

from memoranda.serve.page.note_text import LinkTargets, as_html
from memoranda.serve.page.visit import Visit

# The text in each language but English.
_TRANSLATED = {"zh": "how-it-fits-together.zh.md"}


@cache
def _text(language: str) -> str:
    name = _TRANSLATED.get(language, "how-it-fits-together.md")
    return files(__package__).joinpath("texts", name).read_text("utf-8")


def show(visit: Visit) -> Response:
    """Show docs/how-it-fits-together.md, which comes with the package, in the reader's language if
    it exists.
    """
    return visit.html("help.html", body=as_html(_text(visit.language), "", "", LinkTargets()))
