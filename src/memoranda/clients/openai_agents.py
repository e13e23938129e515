"""A session for the OpenAI Agents SDK that keeps its transcript in a memory (extra
`memoranda[openai-agents]`).

The transcript is in the traces, which are not searched by default. An agent that should remember
something stores it with the memory tools.
"""

from __future__ import annotations

import asyncio
import json
from hashlib import sha256
from pathlib import PurePath
from typing import Any

from memoranda.extras import install_command

try:
    from agents.memory import SessionABC, SessionSettings
except ImportError as error:
    raise ImportError(
        "memoranda.clients.openai_agents needs the OpenAI Agents SDK: "
        f"{install_command('openai-agents')}"
    ) from error

from memoranda import Memory
from memoranda.engine import session_of
from memoranda.errors import Exists, InvalidInput
from memoranda.index.rows import NoteInfo
from memoranda.note.model import TRACE_PROJECT, Draft
from memoranda.query import Query
from memoranda.text.unicode import is_valid_unicode

_OPENING = "```jsonl\n"
_CLOSING = "\n```"
# Another program may use the next number first, so the note is written at most this many times.
_MAX_TRIES = 20


class MemorandaSession(SessionABC):
    """A `SessionABC` that keeps its items in an open memory.

    The items of each call of `add_items` are one note, with one line of JSON for each item. Several
    programs may add items to one session at the same time, and no items are lost.

    Methods that write raise the errors of `Memory.write`. For example, the write gate refuses
    secrets if the memory was opened for a named agent.
    """

    def __init__(
        self, session_id: str, memory: Memory, *, session_settings: SessionSettings | None = None
    ):
        """Open the session in an open memory, which the caller must close.

        session_id: the name of the session. Sessions with the same name share their items.
        session_settings: settings of the SDK, such as a limit; None for its defaults.

        Raises InvalidInput if `session_id` is blank.
        """
        if not session_id.strip():
            raise InvalidInput("session_id must not be empty")
        self.session_id = session_id
        self.session_settings = session_settings or SessionSettings()
        self._memory = session_of(memory)
        digest = sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()
        self._folder = f"openai-agents/{digest[:16]}"

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the newest items. They are in the order of their addition.

        limit: how many at most. None means the limit of the settings, or all items without one.

        Raises InvalidInput for a negative limit, and if somebody damaged a note of the session.
        """
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        if limit is not None and limit < 0:
            raise InvalidInput(f"`limit` must be at least 0; got {limit}.")
        return await asyncio.to_thread(self._items, limit)

    async def add_items(self, items: list[Any]) -> None:
        """Add items at the end of the session, in this order. Nothing is written for no items.

        items: values that can be written as JSON.

        Raises InvalidInput for another value, and the errors of `Memory.write`.
        """
        if items:
            await asyncio.to_thread(self._add, items)

    async def pop_item(self) -> Any | None:
        """Remove the last item and return it. None if the session is empty.

        Raises InvalidInput if somebody damaged the last note of the session.
        """
        return await asyncio.to_thread(self._pop)

    async def clear_session(self) -> None:
        """Remove all items of the session.

        `memory undo` brings them back. `memory erase` removes them for good.
        """
        if await asyncio.to_thread(self._notes):
            await asyncio.to_thread(self._memory.delete_folder, TRACE_PROJECT, self._folder)

    def _notes(self) -> list[NoteInfo]:
        """Return the notes of this session, the oldest first."""
        query = Query(
            projects=(TRACE_PROJECT,), types=("transcript",), folder=self._folder, order="path"
        )
        notes, _ = self._memory.list(query, limit=0)
        return notes

    def _read(self, info: NoteInfo) -> list[Any]:
        """Return the items in one note. Raises InvalidInput if somebody damaged the note."""
        text = self._memory.read((info.project, info.path), count=False).content
        json_lines = text.partition(_OPENING)[2].rpartition(_CLOSING)[0]
        try:
            return [json.loads(line) for line in json_lines.split("\n") if line]
        except (ValueError, RecursionError) as error:
            raise InvalidInput(
                f"{info.project}/{info.path} is no transcript: {error}. "
                "Mend it, or restore it with memory restore."
            ) from None

    def _items(self, limit: int | None) -> list[Any]:
        """Return the last `limit` items, the oldest first. None returns all."""
        # The notes are read from the end, so that older ones need not be read.
        newest_first: list[Any] = []
        for info in reversed(self._notes()):
            if limit is not None and len(newest_first) >= limit:
                break
            newest_first += reversed(self._read(info))
        newest_first = newest_first[:limit]
        return newest_first[::-1]

    def _add(self, items: list[Any]) -> None:
        """Store items as one note, whose name is the next number.

        Raises InvalidInput if other programs always use this number first.
        """
        for _ in range(_MAX_TRIES):
            notes = self._notes()
            number = 1
            if notes:
                number = int(PurePath(notes[-1].path).stem) + 1
            try:
                self._memory.write(self._draft(f"{number:08}", items))
                return
            except Exists:
                # Another program added a note at the same time.
                continue
        raise InvalidInput(
            f"session {self.session_id} is written by too many programs at once; add the items again"
        )

    def _draft(self, title: str, items: list[Any]) -> Draft:
        """Return a note with one line of JSON for each item. Raises InvalidInput for other values."""
        try:
            lines = [json.dumps(item, ensure_ascii=False) for item in items]
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInput(
                f"an item of session {self.session_id} is no JSON: {error}"
            ) from None
        # A lone surrogate cannot be written as UTF-8, but its JSON escape can.
        if not all(is_valid_unicode(line) for line in lines):
            lines = [json.dumps(item) for item in items]
        text = _OPENING + "\n".join(lines) + _CLOSING
        return Draft(
            text,
            TRACE_PROJECT,
            folder=self._folder,
            title=title,
            type="transcript",
            metadata={"session_id": self.session_id},
        )

    def _pop(self) -> Any | None:
        """Remove the last item of the session, and return it. None if the session is empty."""
        notes = self._notes()
        if not notes:
            return None
        last_note = notes[-1]
        items = self._read(last_note)
        item = items.pop() if items else None
        if items:
            draft = self._draft(PurePath(last_note.path).stem, items)
            # The checksum refuses the change if another program has changed the note meanwhile.
            self._memory.store(draft, overwrite=True, checksum=last_note.checksum)
        else:
            self._memory.delete((last_note.project, last_note.path))
        return item
