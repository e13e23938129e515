"""Completions for a word that is being typed in a shell.

They are read from the index and the ledger without bringing these up to date. Nothing is opened for
writing or imported beyond need: an answer takes a few milliseconds, and may be a moment old.
"""

from __future__ import annotations

from contextlib import suppress

from memoranda.config import Settings
from memoranda.engine.engine import verb
from memoranda.engine.session import HomeSession
from memoranda.errors import StorageError
from memoranda.index.rows import indexed
from memoranda.ledger.copying import latest_changes
from memoranda.note.model import BUILT_IN_PROJECTS
from memoranda.sources.layout import Layout
from memoranda.text.unicode import one_line

MOST = 100
# Changes looked at for those whose numbers begin in a certain way.
_LATEST_CHANGES = 1000
# Characters of the text beside a completion.
_PREVIEW_CHARACTERS = 50


@verb
def permalinks(memory: HomeSession, prefix: str, limit: int = MOST) -> list[str]:
    """The permalinks that begin with `prefix`, of notes that the caller sees."""
    memory.engine.fresh()
    return memory.index.notes.complete(prefix, memory.agent, limit)


def offers(settings: Settings, kind: str, prefix: str = "", agent: str | None = None) -> list[str]:
    """At most 100 values of `kind` that begin with `prefix`, newest or most used first.

    A value with a preview is followed by a tab and the preview: `12 TAB edit notes/a.md`. The list
    is empty if the home does not exist.

    kind: `id`, `tag`, `scope`, `source`, `entity`, `project` or `change`.
    agent: the caller. None is the owner.
    """
    layout = Layout(settings.home)
    if kind == "project":
        return [*BUILT_IN_PROJECTS, *settings.projects]
    # number, and what was done to what
    if kind == "change" and agent is None:
        latest = list[tuple[int, str, str, str]]()
        with suppress(StorageError):
            latest = latest_changes(layout.ledger, _LATEST_CHANGES)
        offered = [f"{number}\t{verb} {project}/{path}" for number, verb, project, path in latest]
        return [line for line in offered if line.startswith(prefix)][:MOST]
    if kind == "change":
        return []
    rows = indexed(layout.index, kind, prefix, agent, MOST)
    return [
        f"{value}\t{one_line(text).strip()[:_PREVIEW_CHARACTERS]}".rstrip("\t")
        for value, text in rows
    ]
