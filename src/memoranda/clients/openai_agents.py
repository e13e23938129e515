"""A session of the OpenAI Agents SDK whose transcript is in the traces of a memory (extra
`memoranda[openai-agents]`).

Traces are not memories: default search leaves them out. The agent stores what it should remember
with the memory tools.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
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
# How often a name is tried that another program may take first.
_TRIES = 20


class MemorandaSession(SessionABC):
    """The transcript `session_id` in an open memory, which the caller closes.

    Each `add_items` is one note: its items as lines of JSON, exactly as they came. Two programs may
    add to one session; both keep what they added. Raises as `Memory.write`: with a named agent the
    write gate refuses secrets.
    """

    def __init__(
        self, session_id: str, memory: Memory, *, session_settings: SessionSettings | None = None
    ):
        """Raises InvalidInput if `session_id` is blank."""
        if not session_id.strip():
            raise InvalidInput("session_id must not be empty")
        self.session_id, self.session_settings = session_id, session_settings or SessionSettings()
        self._memory = session_of(memory)
        self._folder = (
            f"openai-agents/{sha256(session_id.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
        )

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the items, oldest first.

        limit: the most items to return, the newest ones. None means the limit of the settings.
        """
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        return await asyncio.to_thread(self._items, limit)

    async def add_items(self, items: list[Any]) -> None:
        """Add items at the end."""
        if items:
            await asyncio.to_thread(self._add, items)

    async def pop_item(self) -> Any | None:
        """Remove the last item and return it. None if the session is empty."""
        return await asyncio.to_thread(self._pop)

    async def clear_session(self) -> None:
        """Remove all items. `memory undo` brings them back; `memory erase` removes them for good."""
        if await asyncio.to_thread(self._notes):
            await asyncio.to_thread(self._memory.delete_folder, TRACE_PROJECT, self._folder)

    def _notes(self) -> list[NoteInfo]:
        """The notes of this session, in their order."""
        query = Query(
            projects=(TRACE_PROJECT,), types=("transcript",), folder=self._folder, order="path"
        )
        return self._memory.list(query, limit=0)[0]

    def _read(self, info: NoteInfo) -> list[Any]:
        """Return the items in one note. Raises InvalidInput if the note was damaged."""
        text = self._memory.read((info.project, info.path), count=False).content
        json_lines = text.partition(_OPENING)[2].rpartition(_CLOSING)[0]
        try:
            return [json.loads(line) for line in json_lines.split("\n") if line]
        except ValueError as error:
            raise InvalidInput(
                f"{info.project}/{info.path} is no transcript: {error}. Mend it, or restore it with memory restore."
            ) from None

    def _items(self, limit: int | None) -> list[Any]:
        """Return the items, oldest first; only the last `limit` ones unless `limit` is None."""
        items: deque[Any] = deque()
        for info in reversed(self._notes()):
            if limit is not None and len(items) >= limit:
                break
            items.extendleft(reversed(self._read(info)))
        return list(items)[max(0, len(items) - limit) if limit is not None else 0 :]

    def _add(self, items: list[Any]) -> None:
        """Store the items as one note, whose number follows the last note's."""
        for _ in range(_TRIES):
            notes = self._notes()
            if notes:
                number = int(PurePath(notes[-1].path).stem) + 1
            else:
                number = 1
            try:
                self._memory.write(self._draft(f"{number:08}", items))
                return
            except Exists:
                # Another program added one at the same time.
                continue
        raise InvalidInput(
            f"session {self.session_id} is written by too many programs at once; add the items again"
        )

    def _draft(self, title: str, items: list[Any]) -> Draft:
        """Return the note named `title`, with one line of JSON for each item."""
        try:
            lines = [json.dumps(item, ensure_ascii=False) for item in items]
        except (TypeError, ValueError) as error:
            raise InvalidInput(
                f"an item of session {self.session_id} is no JSON: {error}"
            ) from None
        # Half of a surrogate pair
        if not all(map(is_valid_unicode, lines)):
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
        last = notes[-1]
        items = self._read(last)
        if items:
            item = items.pop()
        else:
            item = None
        if items:
            draft = self._draft(PurePath(last.path).stem, items)
            self._memory.store(draft, overwrite=True, checksum=last.checksum)
        else:
            self._memory.delete((last.project, last.path))
        return item
