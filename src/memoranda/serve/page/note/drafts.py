"""Looks at a text that somebody is typing: how it will look as a note, and whether it has a secret."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from markupsafe import Markup
from starlette.responses import Response

from memoranda.engine import MemorySession
from memoranda.engine.history.former_places import Place
from memoranda.errors import Ambiguous, MemorandaError
from memoranda.note import frontmatter
from memoranda.serve.page.addresses import note_url, place_of_id
from memoranda.serve.page.note_text import RENDERED, LinkTargets, as_html
from memoranda.serve.page.visit import Visit
from memoranda.text.gate import SECRET

# Links of a draft that are looked up, and secrets in it that are named.
_MAX_LINKS = 200
_MAX_SECRETS = 3
_LINK = re.compile(r"\[\[([^\[\]|\n]{1,500})(?:\|[^\[\]\n]*)?\]\]")
_DEFAULT_PROJECT = "notes"


@dataclass(frozen=True)
class SecretInDraft:
    """Something in a text that looks like a secret.

    line: the number of its line.
    why: what it looks like, in words to translate.
    """

    line: int
    why: str


@dataclass(frozen=True)
class Draft:
    """A text that is not saved yet.

    body: the text as it will look. None if nobody asked for it.
    """

    secrets: Sequence[SecretInDraft]
    body: Markup | None


def show(visit: Visit) -> Response:
    """Show remarks on the field `text` and, if the field `preview` is sent, how the text will look."""
    return visit.html("draft.html", draft=draft_of(visit))


def draft_of(visit: Visit) -> Draft:
    """Return the text that is typed in a form.

    The field `note` is the id of its note, at whose place relative links begin. The form of a new
    note has the field `project`.
    """
    text = visit.fields.get("text", "").replace("\r\n", "\n")
    body = None
    if visit.fields.get("preview"):
        project, path = _place_of_draft(visit)
        body = _as_shown(visit.memory, text, project, path)
    return Draft(_secrets(visit.memory, text), body)


def _place_of_draft(visit: Visit) -> Place:
    """Return the place of the note that is edited, or would be made."""
    with suppress(MemorandaError):
        return place_of_id(visit.memory, visit.text("note"))
    return visit.text("project") or _DEFAULT_PROJECT, ""


def _secrets(memory: MemorySession, text: str) -> list[SecretInDraft]:
    matches = memory.rules_for_reading().find(text, SECRET)
    return [
        SecretInDraft(text.count("\n", 0, match.start) + 1, match.rule.why)
        for match in matches[:_MAX_SECRETS]
    ]


def _as_shown(memory: MemorySession, text: str, project: str, path: str) -> Markup:
    """Return a text as the page of its note will show it."""
    body = text[frontmatter.split(text).body_at :][:RENDERED]
    names = list(dict.fromkeys(name.strip() for name in _LINK.findall(body)))
    return as_html(body, project, path, _link_targets(memory, project, names[:_MAX_LINKS]))


def _link_targets(memory: MemorySession, project: str, names: Sequence[str]) -> LinkTargets:
    """Return where the links of a draft will lead."""
    addresses = {}
    ambiguous = {}
    for name in names:
        try:
            info = memory.find(name, project)
            addresses[name] = note_url(info.project, info.path)
        except Ambiguous as error:
            ambiguous[name] = error.total
        except MemorandaError:
            # Links may lead to another project, too.
            with suppress(MemorandaError):
                info = memory.find(name)
                addresses[name] = note_url(info.project, info.path)
    return LinkTargets(addresses, ambiguous)
