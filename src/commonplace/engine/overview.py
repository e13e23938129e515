"""`memory.md`: the index of memories an agent reads at start (contract 001, 10).

Derived and never read back; equal memories give equal bytes.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from commonplace.engine.memories import PROJECT, content_of
from commonplace.engine.memory import verb
from commonplace.engine.pending import Pending
from commonplace.index.notes import Section
from commonplace.index.rows import NoteInfo
from commonplace.note.links import first_line
from commonplace.note.model import CATEGORIES
from commonplace.note.reminder import Reminder
from commonplace.store.atomic import put_derived

if TYPE_CHECKING:
    from commonplace.engine import Memory

MOST_LINES = 200
_LENGTH = 80


class Overview:
    """The overview of the memories of scope `global` in the home of `memory`, whoever the caller is."""

    def __init__(self, memory: Memory):
        self.memory = memory.as_caller(None)
        self._core = memory._core

    @verb
    def text(self) -> str:
        """The whole file, at most 200 lines."""
        core = self._core
        core.fresh()
        most = core.settings.per_category
        found = {each.category: each for each in core.index.notes.sections(most, core.access.counts())}
        total, inbox = sum(each.total for each in found.values()), sum(each.inbox for each in found.values())
        lines = [
            "# Memory Index", "",
            f"{total} memories, {inbox} in the inbox. Read one: `memory read ID`. Search: `memory search WORDS`.",
        ]  # fmt: skip
        for category in CATEGORIES:
            if category in found:
                lines += ["", f"## {category} ({found[category].total})", "", *self._lines(found[category], most)]
        if len(lines) > MOST_LINES:
            lines[MOST_LINES - 2 :] = ["", "… more: `memory list --limit 0`"]
        return "\n".join(lines) + "\n"

    def refresh(self, *, create: bool = True) -> bool:
        """Write the file if it is not as it should be, and with it the lists of pending reminders there are.

        Without `create` a home that has no overview gets none. Returns whether something was written.
        Raises StorageError.
        """
        core = self._core
        if not create and not core.layout.overview.exists():
            return False
        with core.guard:
            core.changed.discard(PROJECT)
            written = put_derived(core.layout.overview, self.text().encode())
            return Pending(self.memory).refresh(create=False) or written

    def keep_up(self) -> bool:
        """As `refresh`, if this process changed a memory since the last time."""
        return PROJECT in self._core.changed and self.refresh()

    def _lines(self, section: Section, most: int) -> list[str]:
        if section.category == "reminders":
            pending = self._pending()
            lines, left = [self._reminder(*each) for each in pending[:most]], len(pending) - most
            more = "memory remind --list"
        else:
            lines, left = [self._line(info, "") for info in section.first], section.total - most
            more = f"memory list --category {section.category}"
        return [*lines, *([f"- … {left} more: `{more}`"] if left > 0 else [])]

    def _pending(self) -> list[tuple[NoteInfo, datetime | None]]:
        """Reminders still to fire with their time, the next one first, undated ones last."""
        dated: list[tuple[NoteInfo, datetime]] = []
        undated: list[tuple[NoteInfo, datetime | None]] = []
        for info in self._core.index.notes.reminders():
            reminder = Reminder.of(info.header)
            if reminder.is_undated:
                undated.append((info, None))
            elif reminder.is_waiting and reminder.due is not None:
                dated.append((info, reminder.due))
        return [*sorted(dated, key=lambda each: (each[1], each[0].id)), *undated]

    def _reminder(self, info: NoteInfo, due: datetime | None) -> str:
        when = due.astimezone(self._core.settings.zone).strftime("%Y-%m-%d %H:%M") if due else "no date"
        return self._line(info, f"{when} ")

    def _line(self, info: NoteInfo, lead: str) -> str:
        text = first_line(content_of(self.memory, info)).lstrip("#").strip()
        shown = text if len(text) <= _LENGTH else text[:_LENGTH] + "..."
        return " ".join([f"- {info.id[:8]} {lead}{shown}", *(f"#{tag}" for tag in info.tags)])
