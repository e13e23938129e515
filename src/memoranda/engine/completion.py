"""What a shell is offered for a word that is being typed: read from the index and the journal as
they lie there.

Nothing is opened for writing, brought up to date or imported beyond need: an answer takes a few
milliseconds, and may be a moment old.
"""

from __future__ import annotations

import json
from contextlib import suppress

from memoranda.config import Settings
from memoranda.index.rows import indexed
from memoranda.note.model import BUILT_IN_PROJECTS
from memoranda.store.layout import Layout
from memoranda.text.unicode import one_line

MOST = 100
_TAIL = 64 << 10
"""Bytes of the journal looked at for the latest changes."""
_PREVIEW = 50


def offers(settings: Settings, kind: str, prefix: str = "", agent: str | None = None) -> list[str]:
    """At most 100 values of `kind` that begin with `prefix`, newest or most used first, each with a
    tab and a preview if there is one. Kinds: `id`, `tag`, `scope`, `source`, `entity`, `project`,
    `change`. None for a home that is not there."""
    layout = Layout(settings.home)
    if kind == "project":
        return [*BUILT_IN_PROJECTS, *settings.projects]
    # number, and what was done to what
    if kind == "change" and agent is None:
        found = list[str]()
        lines = list[bytes]()
        with suppress(OSError), layout.journal.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _TAIL))
            lines = file.read().splitlines()[1 if size > _TAIL else 0 :]
        for line in reversed(lines):
            with suppress(ValueError, KeyError, TypeError):
                row = json.loads(line)
                found.append(f"{row['change']}\t{row['verb']} {row['project']}/{row['path']}")
        return [each for each in found if each.startswith(prefix)][:MOST]
    if kind == "change":
        return []
    rows = indexed(layout.index, kind, prefix, agent, MOST)
    return [f"{value}\t{one_line(text).strip()[:_PREVIEW]}".rstrip("\t") for value, text in rows]
