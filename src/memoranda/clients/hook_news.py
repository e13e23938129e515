"""Finds what is new for a session: the notes that others added since its client was last told some.

Others are the owner, other agents, and other programs of the same agent. Claude Desktop and Claude
Code are both the agent `claude`, and may see the same notes. But neither knows what the other wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from memoranda.clients.hook_events import CLIENTS, HookEvent
from memoranda.engine import MemorySession
from memoranda.engine.telling.manner import FILE
from memoranda.index.rows import NoteInfo
from memoranda.index.told_notes import Mark
from memoranda.note.model import CATEGORY_PROJECT, KV_PROJECT, REMINDERS, TRACE_PROJECT, Provenance
from memoranda.query import Query

BY_USER = "by the user"
"""The pattern of the remark (`Mark`) at a note that the owner wrote."""
# The newest notes and changes among which news are looked for.
_MOST_READ = 300
# The interface of commands in a shell. A program that runs commands does not tell its name there.
_COMMAND = "cli"
# How the ledger marks a program that is connected over HTTP.
_OVER_HTTP = "http "


def notes_of_others(
    memory: MemorySession, event: HookEvent, since: datetime, now: datetime
) -> Iterator[tuple[NoteInfo, Sequence[Mark]]]:
    """Yield the notes that were created after `since` by anybody but this client, the newest first.

    Each note comes with its author, and with `unconfirmed` unless its words and its place are the
    owner's.

    event: the start of the session, with the client and its name of the session.
    """
    for info in _new_notes(memory, event, since, now):
        yield info, _marks_of(memory, info)


def latest_of_others(
    memory: MemorySession, event: HookEvent, since: datetime, now: datetime
) -> Iterator[tuple[NoteInfo, Sequence[Mark]]]:
    """Yield the same notes for the first session of a client, files that appeared last.

    A folder that was just added has many files, which would leave no room for what a person or an
    agent stored.
    """
    infos = _new_notes(memory, event, since, now)
    for info in sorted(infos, key=lambda info: info.provenance.who == FILE):
        yield info, _marks_of(memory, info)


def _new_notes(
    memory: MemorySession, event: HookEvent, since: datetime, now: datetime
) -> Iterator[NoteInfo]:
    """Yield the notes that were created after `since` by anybody but this client, the newest first."""
    origins = _origins_of_new_files(memory, since)
    # Entries and traces are not news.
    projects = tuple(
        name for name in memory.project_names if name not in (KV_PROJECT, TRACE_PROJECT)
    )
    query = Query(
        projects=projects,
        created_from=since,
        archived=False,
        valid_at=now,
        upheld=memory.upheld_rows(),
        # A file of a bank that nobody has filled is not news, either.
        filled=True,
        order="created",
    )
    infos, _ = memory.list(query, limit=_MOST_READ)
    for info in infos:
        # An import brings what was known elsewhere, and a reminder is told when its time comes.
        is_import = info.provenance.who == "import"
        is_reminder = info.project == CATEGORY_PROJECT and info.category == REMINDERS
        if is_import or is_reminder:
            continue
        origin = origins.get((info.project, info.path), info.provenance)
        if not _is_of_client(origin, memory.agent, event):
            yield info


def _marks_of(memory: MemorySession, info: NoteInfo) -> Sequence[Mark]:
    """Return the remarks on who wrote a note, and on who gave it its place."""
    marks = memory.origin_marks(info)
    if info.provenance.trust == "owner":
        return (Mark(BY_USER), *marks)
    return marks


def _is_of_client(origin: Provenance, agent: str | None, event: HookEvent) -> bool:
    """Whether the client of an event wrote a text, or took it down in this very session.

    origin: the origin of the text.
    agent: the agent that acts through the client.
    """
    client = origin.client or ""
    is_of_session = bool(event.session) and origin.session == event.session
    if is_of_session and client == event.client:
        return True
    if origin.agent is None or origin.agent != agent:
        return False
    return client == _COMMAND or is_program(client, event.client)


def is_program(recorded_client: str, client: str) -> bool:
    """Whether a client of the ledger is the program with these hooks.

    `codex-mcp-client 0.5` and `http codex-mcp-client 0.5` are the program `codex`.

    recorded_client: the name and version that a program gave, as the ledger has them.
    client: the id of the client, a key of CLIENTS. Other programs are known by their own name.
    """
    words = recorded_client.removeprefix(_OVER_HTTP).lower().split()
    name = "-".join(words)
    own_names = [client]
    if client in CLIENTS:
        own_names.append(CLIENTS[client].handshake)
    # A client may add words to its name, and its version follows.
    return any(name == own_name or name.startswith(f"{own_name}-") for own_name in own_names)


def _origins_of_new_files(
    memory: MemorySession, since: datetime
) -> dict[tuple[str, str], Provenance]:
    """Return the origin of each file that was created since a moment, by project and path.

    If a file was created twice, the later time counts.
    """
    origins: dict[tuple[str, str], Provenance] = {}
    # The newest change comes first.
    for change in memory.log(since=since, limit=_MOST_READ):
        for text in change.texts():
            if text.makes_file:
                origins.setdefault((text.project, text.path), change.provenance(text))
    return origins
