"""Shows the page "How it fits together", which explains the words of the page."""

from __future__ import annotations

from starlette.responses import Response

from memoranda.serve.page.note_text import LinkTargets, as_html
from memoranda.serve.page.package_files import TEXTS, text_in
from memoranda.serve.page.visit import Visit

# The files of the text, by language.
_NAMES = {"en": "help.md", "zh": "help.zh.md"}


def show(visit: Visit) -> Response:
    """Show the text in the reader's language."""
    text = text_in(TEXTS, _NAMES[visit.language])
    return visit.html("help.html", body=as_html(text, "", "", LinkTargets()))
