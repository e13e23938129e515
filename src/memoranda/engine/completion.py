"""Complete a word that a person types in a shell.

An answer must take only a few milliseconds. So the index and the ledger are read as they are, and
an answer may lack the latest changes.
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
from memoranda.note.project_access import EVERYTHING
from memoranda.sources.layout import Layout
from memoranda.text.unicode import one_line

MOST = 100
"""How many completions are offered at most."""
# How many of the latest changes are searched for a number that begins as the typed word does.
_LATEST_CHANGES = 1000
# How many characters of its text are shown beside a completion.
_PREVIEW_CHARACTERS = 50


@verb
def permalinks(memory: HomeSession, prefix: str, limit: int = MOST) -> list[str]:
    """Return permalinks that begin with `prefix`, at most `limit`. Hidden notes are left out."""
    memory.engine.fresh()
    return memory.index.notes.complete(prefix, memory.agent, limit)


def offers(settings: Settings, kind: str, prefix: str = "", agent: str | None = None) -> list[str]:
    """Return up to MOST completions of a kind, the newest or most used first.

    A completion may be followed by a tab and a text that explains it: `12 TAB edit notes/a.md`.

    kind: `id`, `tag`, `scope`, `source`, `entity`, `project` or `change`.
    prefix: the word typed so far. All projects are returned, even those that begin in another way.
    agent: the caller; None for the owner. An agent gets no changes.

    Returns [] if the home does not exist.
    """
    layout = Layout(settings.home)
    if kind == "project":
        access = settings.access
        own_projects = [
            name for name in settings.projects if access.get(name, EVERYTHING).admits(agent)
        ]
        return [*BUILT_IN_PROJECTS, *own_projects]
    if kind == "change":
        # The list has changes of notes that an agent may not see.
        return _changes(layout, prefix) if agent is None else []
    completions: list[str] = []
    for value, text in indexed(layout.index, kind, prefix, agent, MOST):
        preview = one_line(text).strip()[:_PREVIEW_CHARACTERS]
        completions.append(f"{value}\t{preview}".rstrip("\t"))
    return completions


def _changes(layout: Layout, prefix: str) -> list[str]:
    """Return the latest changes whose numbers begin with `prefix`, at most MOST."""
    latest: list[tuple[int, str, str, str]] = []
    with suppress(StorageError):
        latest = latest_changes(layout.ledger, _LATEST_CHANGES)
    lines = [f"{number}\t{verb} {project}/{path}" for number, verb, project, path in latest]
    return [line for line in lines if line.startswith(prefix)][:MOST]
