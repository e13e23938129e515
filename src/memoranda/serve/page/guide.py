"""Shows the documentation's page "How it fits together"."""

from __future__ import annotations

import re
from functools import cache

from starlette.responses import Response

from memoranda.serve.page.note_text import LinkTargets, as_html
from memoranda.serve.page.package_files import TEXTS, text_in
from memoranda.serve.page.visit import Visit

# The files of the translated texts, by language.
_TRANSLATED = {"zh": "how-it-fits-together.zh.md"}


# A link to another page of the documentation, which the server does not have.
_LINK = re.compile(r"\[([^\]]+)\]\([\w-]+\.md[^)]*\)")


@cache
def _text(language: str) -> str:
    """Return the text in a language, without links to other pages of the documentation.

    The text is English if it has no translation.
    """
    name = _TRANSLATED.get(language, "how-it-fits-together.md")
    return _LINK.sub(r"\1", text_in(TEXTS, name))


def show(visit: Visit) -> Response:
    """Show docs/how-it-fits-together.md, a copy of which is in the package, or its translation."""
    return visit.html("help.html", body=as_html(_text(visit.language), "", "", LinkTargets()))
