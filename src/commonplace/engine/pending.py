"""`pending.md` and `pending.X.md`: reminders that fired and nobody has acknowledged (contract 001, 8).

Derived and never read back. `pending.md` holds those of scope `global`, which every agent may read; those of
`agent:X` are in `pending.X.md`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commonplace.engine.memories import PROJECT, content_of, on_one_line
from commonplace.engine.memory import verb
from commonplace.engine.storing import is_agent
from commonplace.index.rows import NoteInfo
from commonplace.note.frontmatter import REMOVE
from commonplace.note.model import GLOBAL
from commonplace.note.reminder import CATEGORY, Reminder
from commonplace.query import Query
from commonplace.store.atomic import put_derived

if TYPE_CHECKING:
    from commonplace.engine import Memory

_HEAD, _NONE = "# Pending Reminders\n\n", "None.\n"
_AGENT = "agent:"

Firing = Mapping[int, Mapping[str, Any]]
"""By row, the header keys a reminder is about to get."""


class Pending:
    """The pending lists of the home of `memory`, whoever the caller is."""

    def __init__(self, memory: Memory):
        self.memory = memory.as_caller(None)
        self._core = memory._core

    @verb
    def reminders(self) -> list[NoteInfo]:
        """All memories of category `reminders`, of every scope."""
        return self.memory.list(Query(projects=(PROJECT,), category=CATEGORY), limit=0, order="created")[0]

    def listed(
        self, now: datetime, infos: Sequence[NoteInfo], firing: Firing | None = None
    ) -> list[tuple[NoteInfo, Reminder]]:
        """Those of `infos` that are pending at `now`, oldest due first; `firing` as if it were done."""
        days = self._core.settings.pending_days
        found = [(info, Reminder.of(_with(info.header, (firing or {}).get(info.row, {})))) for info in infos]
        pending = [each for each in found if each[1].is_pending(now, days)]
        return sorted(pending, key=lambda each: (_order(each[1]), each[0].id))

    def refresh(self, now: datetime | None = None, firing: Firing | None = None, *, create: bool = True) -> bool:
        """Make the files as they should be at `now`. Returns whether one was written. Raises StorageError.

        Without `create` a home that has no such file gets none.
        """
        core = self._core
        with core.writing():
            known = [path for path in core.layout.pending_lists() if _is_ours(path)]
            if not known and not create:
                return False
            parts: dict[Path, list[tuple[NoteInfo, Reminder]]] = {path: [] for path in (core.layout.pending, *known)}
            for each in self.listed(now or self.memory.clock(), self.reminders(), firing):
                if (path := self._place(each[0].scope)) is not None:
                    parts.setdefault(path, []).append(each)
            written = [put_derived(path, self._text(part).encode()) for path, part in sorted(parts.items())]
            return any(written)

    def _place(self, scope: str) -> Path | None:
        """The list for a scope; None for one nobody can have, which somebody wrote into a file by hand."""
        agent = scope.removeprefix(_AGENT)
        if scope == GLOBAL:
            return self._core.layout.pending
        return self._core.layout.pending_of(agent) if agent != scope and is_agent(agent) else None

    def _text(self, part: Sequence[tuple[NoteInfo, Reminder]]) -> str:
        zone = self._core.settings.reading_zone
        rows = []
        for number, (info, reminder) in enumerate(part, 1):
            due = reminder.shown_due
            when = f"{due.astimezone(zone):%Y-%m-%d %H:%M}" if due else "no date"
            text = on_one_line(content_of(self.memory, info)).strip()
            rows.append(f"{number}. {text}\n   due {when}, id {info.id[:8]}\n\n")
        return _HEAD + ("".join(rows) or _NONE)


def _is_ours(path: Path) -> bool:
    """Whether a file is a list we made, not some file of the user's with such a name."""
    try:
        with open(path, "rb") as file:
            return file.read(len(_HEAD)) == _HEAD.encode()
    except OSError:
        return False


def _order(reminder: Reminder) -> float:
    due = reminder.shown_due
    return due.timestamp() if due else float("inf")


def _with(header: Mapping[str, Any], keys: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in {**header, **keys}.items() if value is not REMOVE}
