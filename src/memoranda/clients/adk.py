"""A memory service of Google's Agent Development Kit over a memory (extra `memoranda[adk]`).

The words of sessions go into the traces, which default search leaves out. Memories added as such
are normal memories, which every agent finds. A search of the service only sees the traces and
memories of its application and user.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from memoranda.extras import install_command

try:
    from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.genai.types import Content, Part
except ImportError as error:
    raise ImportError(
        f"memoranda.clients.adk needs Google's Agent Development Kit: {install_command('adk')}"
    ) from error

from google.adk.events.event import Event
from google.adk.sessions.session import Session

from memoranda import Memory
from memoranda.engine import session_of
from memoranda.index.rows import NoteInfo
from memoranda.note.model import CATEGORY_PROJECT, TRACE_PROJECT, Draft
from memoranda.query import Query

_APP = "adk_app"
_USER = "adk_user"
_ID = "adk_id"
_AUTHOR = "adk_author"
_SESSION = "adk_session"
_DELETED = "adk_deleted"
_PROJECTS = (TRACE_PROJECT, CATEGORY_PROJECT)


class MemorandaMemoryService(BaseMemoryService):
    """A `BaseMemoryService` over an open memory, which the caller closes.

    The text of each event of a session is a note of the traces; adding a session again adds only
    its new events, and what was deleted stays so. `add_memory` stores memories of category
    `knowledge`. `search_memory` gives the best ten. Raises as `Memory.write`.
    """

    def __init__(self, memory: Memory, *, limit: int = 10):
        self._memory = session_of(memory)
        self._limit = limit

    async def add_session_to_memory(self, session: Session) -> None:
        """Add the events of a session that are not there yet."""
        await asyncio.to_thread(
            self._add, session.app_name, session.user_id, session.events, session.id
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Add events that are not there yet. `custom_metadata` has no effect."""
        await asyncio.to_thread(self._add, app_name, user_id, events, session_id)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store memories, all or none. `custom_metadata` has no effect."""
        drafts = []
        for memory in memories:
            text = _text(memory.content)
            if text:
                keys = {_APP: app_name, _USER: user_id, _AUTHOR: memory.author or "memory"}
                drafts.append(
                    Draft(
                        text,
                        CATEGORY_PROJECT,
                        category="knowledge",
                        tags=("adk",),
                        date=memory.timestamp,
                        metadata=keys | ({_ID: memory.id} if memory.id else {}),
                    )
                )
        if drafts:
            await asyncio.to_thread(self._memory.write_many, drafts)

    async def search_memory(
        self, *, app_name: str, user_id: str, query: str
    ) -> SearchMemoryResponse:
        """Return the memories of this application and user that match, best first. Empty for no
        query.
        """
        if query.strip():
            notes = await asyncio.to_thread(self._search, app_name, user_id, query)
        else:
            notes = []
        return SearchMemoryResponse(memories=notes)

    async def delete_memory(
        self, *, app_name: str, user_id: str, memory_id: str | None = None
    ) -> None:
        """Delete the memory with the id a search gave. An event's place is kept, so that it does
        not come back.
        """
        if memory_id:
            await asyncio.to_thread(self._delete, app_name, user_id, memory_id)

    def _own(self, app: str, user: str) -> list[NoteInfo]:
        """Return the notes of this application and user."""
        notes = self._memory.list(Query(projects=_PROJECTS, metadata={_USER: user}), limit=0)[0]
        return [note for note in notes if _is_of(note, app, user)]

    def _add(self, app: str, user: str, events: Sequence[Event], session: str | None) -> None:
        """Store each event that has text and is not stored yet as a note of the traces."""
        stored_ids = {note.header.get(_ID) for note in self._own(app, user)}
        drafts: dict[str, Draft] = {}
        for event in events:
            if event.id not in stored_ids and (text := _text(event.content)):
                keys = {
                    _APP: app,
                    _USER: user,
                    _ID: event.id,
                    _AUTHOR: event.author,
                    _SESSION: session,
                }
                drafts[event.id] = Draft(
                    text,
                    TRACE_PROJECT,
                    folder=f"adk/{_digest(app, user)}",
                    title=f"{event.author} {_digest(session or '', event.id)}",
                    type="event",
                    date=datetime.fromtimestamp(event.timestamp, UTC).isoformat(timespec="seconds"),
                    metadata={name: value for name, value in keys.items() if value is not None},
                )
        if drafts:
            self._memory.write_many(drafts.values())

    def _search(self, app: str, user: str, query: str) -> list[MemoryEntry]:
        """Return the best matches of this application and user, without deleted events."""
        query_of_user = Query(query, projects=_PROJECTS, metadata={_USER: user})
        results = []
        for hit in self._memory.search(query_of_user, limit=self._limit * 10).hits:
            note = hit.note
            if _is_of(note, app, user) and _DELETED not in note.header:
                text = self._memory.read((note.project, note.path), count=False).content
                author = str(note.header.get(_AUTHOR) or "memory")
                content = Content(
                    role="model" if author not in ("user", "memory") else "user",
                    parts=[Part(text=text)],
                )
                results.append(
                    MemoryEntry(
                        id=_identity(note),
                        content=content,
                        author=author,
                        timestamp=note.date or note.created,
                    )
                )
        return results[: self._limit]

    def _delete(self, app: str, user: str, identity: str) -> None:
        """Delete a memory. An event is replaced by a note that says so, and is not added again."""
        for note in self._own(app, user):
            if _identity(note) != identity or _DELETED in note.header:
                continue
            place = (note.project, note.path)
            if note.project == CATEGORY_PROJECT:
                self._memory.delete(place)
                continue
            header = {name: note.header[name] for name in (_APP, _USER, _ID)}
            folder, _, _ = note.path.rpartition("/")
            self._memory.store(
                Draft(
                    "Deleted.",
                    TRACE_PROJECT,
                    folder=folder,
                    title=note.title,
                    type="event",
                    metadata=header | {_DELETED: True},
                ),
                overwrite=True,
            )


def _is_of(note: NoteInfo, app: str, user: str) -> bool:
    return note.header.get(_APP) == app and note.header.get(_USER) == user


def _identity(note: NoteInfo) -> str:
    """Return the id by which a search names a note: the id given in ADK, or the note's."""
    return str(note.header.get(_ID) or note.id)


def _text(content: Any) -> str:
    """Return the text of a content; "" if the content is only calls and files."""
    parts = (content.parts if content is not None else None) or ()
    return "\n".join(part.text for part in parts if part.text and not part.thought).strip()


def _digest(*names: str) -> str:
    return sha256("\0".join(names).encode("utf-8", "surrogatepass")).hexdigest()[:12]
