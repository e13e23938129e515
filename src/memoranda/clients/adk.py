"""A memory service for Google's Agent Development Kit, ADK (extra `memoranda[adk]`).

The texts of sessions become traces, which are not searched by default. Texts that are added as
memories become normal memories, which every agent finds. A search of the service only finds the
traces and memories of one application and user.
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

# Header keys of the notes that the service writes.
_APP = "adk_app"
_USER = "adk_user"
_ID = "adk_id"
_AUTHOR = "adk_author"
_SESSION = "adk_session"
_DELETED = "adk_deleted"
_PROJECTS = (TRACE_PROJECT, CATEGORY_PROJECT)


class MemorandaMemoryService(BaseMemoryService):
    """A `BaseMemoryService` that stores sessions and memories in an open memory.

    The text of each event of a session becomes a note of the traces. If a session is added again,
    only its new events are added. Deleted events are not added again. Methods that add or delete
    something raise the errors of `Memory.write`.
    """

    def __init__(self, memory: Memory, *, limit: int = 10):
        """Use an open memory, which the caller must close.

        limit: how many results a search returns at most.
        """
        self._memory = session_of(memory)
        self._limit = limit

    async def add_session_to_memory(self, session: Session) -> None:
        """Add the events of a session that were not added yet. Events without text are left out."""
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
        """Add events that were not added yet. Events without text are left out.

        app_name: the application of the session.
        user_id: the user of the session.
        events: messages of the session, as ADK has them.
        session_id: the session of the events; None if they belong to no session.
        custom_metadata: has no effect, whether a mapping or None.
        """
        await asyncio.to_thread(self._add, app_name, user_id, events, session_id)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store texts as memories of category `knowledge`, as one change. Blank texts are left out.

        app_name: the application for which they are stored.
        user_id: the user for whom they are stored.
        memories: the texts, with their authors and times.
        custom_metadata: has no effect, whether a mapping or None.
        """
        drafts: list[Draft] = []
        for memory in memories:
            text = _text(memory.content)
            if not text:
                continue
            keys = {_APP: app_name, _USER: user_id, _AUTHOR: memory.author or "memory"}
            if memory.id:
                keys[_ID] = memory.id
            drafts.append(
                Draft(
                    text,
                    CATEGORY_PROJECT,
                    category="knowledge",
                    tags=("adk",),
                    date=memory.timestamp,
                    metadata=keys,
                )
            )
        if drafts:
            await asyncio.to_thread(self._memory.write_many, drafts)

    async def search_memory(
        self, *, app_name: str, user_id: str, query: str
    ) -> SearchMemoryResponse:
        """Return the events and memories that match a query, the best first.

        The response is empty for a blank query.

        app_name: only events and memories of this application.
        user_id: only events and memories of this user.
        """
        memories: list[MemoryEntry] = []
        if query.strip():
            memories = await asyncio.to_thread(self._search, app_name, user_id, query)
        return SearchMemoryResponse(memories=memories)

    async def delete_memory(
        self, *, app_name: str, user_id: str, memory_id: str | None = None
    ) -> None:
        """Delete an event or a memory. A deleted event is not added again with its session.

        app_name: the application to which it belongs.
        user_id: the user to whom it belongs.
        memory_id: the id, as `search_memory` returns it. Nothing happens if it is None or unknown.
        """
        if memory_id:
            await asyncio.to_thread(self._delete, app_name, user_id, memory_id)

    def _notes_of(self, app: str, user: str) -> list[NoteInfo]:
        """Return all events and memories of an application and user, deleted events included."""
        query = Query(projects=_PROJECTS, metadata={_USER: user})
        notes, _ = self._memory.list(query, limit=0)
        return [note for note in notes if _is_of(note, app, user)]

    def _add(self, app: str, user: str, events: Sequence[Event], session: str | None) -> None:
        """Store events as notes of the traces, as one change. Events stored before are left out.

        An event that was added and then deleted is not added again.

        app: the application of the session.
        user: the user of the session.
        events: the events of a session. Events without text are left out.
        session: the id of the session; None if the events belong to no session.
        """
        # A deleted event is among these notes: `_delete` leaves a note with the id of the event.
        added_ids = {note.header.get(_ID) for note in self._notes_of(app, user)}
        drafts: dict[str, Draft] = {}
        for event in events:
            text = _text(event.content)
            if not text or event.id in added_ids:
                continue
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
        """Return the best matches of an application and user, without deleted events."""
        query_of_user = Query(query, projects=_PROJECTS, metadata={_USER: user})
        # Some hits belong to other applications of the user, or are deleted events.
        hits = self._memory.search(query_of_user, limit=self._limit * 10).hits
        results: list[MemoryEntry] = []
        for hit in hits:
            if _is_of(hit.note, app, user) and _DELETED not in hit.note.header:
                results.append(self._entry_of(hit.note))
        return results[: self._limit]

    def _entry_of(self, note: NoteInfo) -> MemoryEntry:
        """Convert a note with an event or a memory to the form that ADK uses."""
        text = self._memory.read((note.project, note.path), count=False).content
        author = str(note.header.get(_AUTHOR) or "memory")
        role = "user" if author in ("user", "memory") else "model"
        return MemoryEntry(
            id=_identity(note),
            content=Content(role=role, parts=[Part(text=text)]),
            author=author,
            timestamp=note.date or note.created,
        )

    def _delete(self, app: str, user: str, identity: str) -> None:
        """Delete a memory. An event is replaced by a mark that it was deleted.

        Without this mark, the event would be added again with its session.

        app: the application that the memory belongs to.
        user: the user that the memory belongs to.
        identity: the id that a search returned for the memory.
        """
        for note in self._notes_of(app, user):
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
    """Whether a note belongs to this application and user."""
    return note.header.get(_APP) == app and note.header.get(_USER) == user


def _identity(note: NoteInfo) -> str:
    """Return the id that a search returns for a note: its id in ADK, or else the id of the note."""
    return str(note.header.get(_ID) or note.id)


def _text(content: Any) -> str:
    """Return the text of a content, without the thoughts of a model.

    "" if it has no text, but only calls and files.
    """
    if content is None or not content.parts:
        return ""
    texts = [part.text for part in content.parts if part.text and not part.thought]
    return "\n".join(texts).strip()


def _digest(*names: str) -> str:
    """Return 12 hex digits that identify a list of names."""
    return sha256("\0".join(names).encode("utf-8", "surrogatepass")).hexdigest()[:12]
