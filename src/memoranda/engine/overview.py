"""Show the memories of a home in files that are derived from them, and in numbers for people.

`memory.md` is the overview that an agent reads at the start of a session (contract 001, 10). The
lists of pending reminders (contract 001, 8) have the reminders that are due and that nobody has
acknowledged. Reminders of scope `global` are in `pending.md`, which every agent may read. Reminders
of scope `agent:X` are in `pending.X.md`. These files are only written, and never read as notes. The
same memories always give the same bytes.

The numbers say how large a home is, how it grew, and who wrote its notes.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoranda.clock import EPOCH
from memoranda.engine.contents import contents
from memoranda.engine.engine import verb
from memoranda.engine.reading import ReadVerbs
from memoranda.engine.telling.contested import newer_marks
from memoranda.errors import Ambiguous, NotFound
from memoranda.index.note_queries import HomeCounts, Section
from memoranda.index.rows import NoteInfo
from memoranda.index.told_notes import Mark
from memoranda.note.links import first_line
from memoranda.note.model import (
    CATEGORIES,
    CATEGORY_PROJECT,
    GLOBAL,
    REMINDERS,
)
from memoranda.note.project_access import is_agent
from memoranda.query import Query
from memoranda.sources.files import open_own, put_derived
from memoranda.text.unicode import one_line

if TYPE_CHECKING:
    from memoranda.engine.history.log import LogVerbs
    from memoranda.engine.write_gate import Use
    from memoranda.note.reminder import Reminder

# How many lines `memory.md` has at most.
MOST_LINES = 200
# How many characters of a memory are shown.
_LENGTH = 80
# The beginning of each list of pending reminders, and the rest of an empty list.
_HEAD = "# Pending Reminders\n\n"
_NONE = "None.\n"
# The beginning of the scope of a note that only one agent sees.
_AGENT = "agent:"
# Shown in place of the words of a memory that seems to hold instructions.
_WITHHELD = "[withheld: it may hold instructions, see `memory review`]"
# Sorts reminders without a time behind all others.
_NEVER = datetime.max.replace(tzinfo=UTC)
WEEKS = 12
"""How many weeks the growth of a home is shown for."""

Firing = Mapping[int, Mapping[str, Any]]
"""The header keys that reminders are about to get, by row of the reminder."""


def complaint(error: NotFound | Ambiguous) -> str:
    """Return the error message for an id that matches no memory, or several (contract 001, 1)."""
    if isinstance(error, Ambiguous) and not error.is_id:
        return f'"{error.identifier}" names {error.total} notes: {", ".join(error.candidates)}'
    if isinstance(error, Ambiguous):
        return f'ambiguous id "{error.identifier}": {error.total} memories match'
    return f"memory not found: {error.identifier}"


class Overview:
    """Writes `memory.md`, the overview of the memories of scope `global` in a home.

    The text is the same for every caller.
    """

    def __init__(self, memory: ReadVerbs):
        self.memory = memory.as_caller(agent=None)
        self.engine = memory.engine

    @verb
    def text(self) -> str:
        """Return the text of `memory.md`, at most 200 lines."""
        engine = self.engine
        engine.fresh()
        sections = engine.index.notes.sections(
            engine.settings.per_category,
            engine.reads.counts(),
            engine.clock().astimezone(engine.settings.zone),
            self.memory.upheld_rows(),
        )
        sections_by_category = {section.category: section for section in sections}
        total = sum(section.total for section in sections_by_category.values())
        inbox = sum(section.inbox for section in sections_by_category.values())
        lines = [
            "# Memory Index",
            "",
            f"{total} memories, {inbox} in the inbox. Read one: `memory read ID`. Search: `memory search WORDS`.",
        ]
        for category in CATEGORIES:
            section = sections_by_category.get(category)
            if section is not None:
                lines += ["", f"## {category} ({section.total})", ""]
                lines += self._section_lines(section)
        if len(lines) > MOST_LINES:
            # The last two lines say that there is more.
            lines[MOST_LINES - 2 :] = ["", "… more: `memory list --limit 0`"]
        return "\n".join(lines) + "\n"

    def _section_lines(self, section: Section) -> list[str]:
        """Return a line for each memory of a category that is shown, such as `- 1a2b3c4d Buy milk
        #shopping`.

        If some memories are not shown, a last line has their number.
        """
        limit = self.engine.settings.per_category
        if section.category == REMINDERS:
            rows = self._reminder_rows()
            hidden_count = len(rows) - limit
            rows = rows[:limit]
            command = "memory remind --list"
        else:
            rows = [(info, "") for info in section.first]
            hidden_count = section.total - limit
            command = f"memory list --category {section.category}"
        lines: list[str] = []
        infos = [info for info, _ in rows]
        newer = newer_marks(self.memory, infos)
        texts = contents(self.memory, infos)
        for (info, lead), content in zip(rows, texts, strict=True):
            words = self._words(info, content, newer.get(info.row, ""))
            lines.append(f"- {info.id[:8]} {lead}{words}")
        if hidden_count > 0:
            lines.append(f"- … {hidden_count} more: `{command}`")
        return lines

    def _words(self, info: NoteInfo, content: str, newer_mark: str) -> str:
        """Return the first line of a memory with its tags, and its author if that is not the owner.

        newer_mark: what a newer note says instead, which comes last. "" if none contradicts it.
        """
        if self.memory.is_held_back(info):
            return _WITHHELD
        text = first_line(content).lstrip("#").strip()
        if len(text) > _LENGTH:
            text = text[:_LENGTH] + "..."
        tags = [f"#{tag}" for tag in info.tags]
        words = " ".join([text, *tags]) + _author_in_brackets(self.memory, info)
        return f"{words} [{newer_mark}]" if newer_mark else words

    def _reminder_rows(self) -> list[tuple[NoteInfo, str]]:
        """Return the reminders that are not due yet, each with its time as text.

        The next reminder comes first. Reminders without a time come last, with the text `no date `.
        """
        # Most commands show no reminder.
        from memoranda.note.reminder import Reminder

        zone = self.engine.settings.zone
        waiting: list[tuple[datetime, NoteInfo]] = []
        undated: list[tuple[NoteInfo, str]] = []
        for info in self.engine.index.notes.reminders():
            reminder = Reminder.of(info.header)
            if reminder.is_undated:
                undated.append((info, "no date "))
            elif reminder.is_waiting and reminder.due:
                waiting.append((reminder.due, info))
        dated: list[tuple[NoteInfo, str]] = []
        for due, info in sorted(waiting, key=_order_of_waiting):
            dated.append((info, f"{due.astimezone(zone):%Y-%m-%d %H:%M} "))
        return dated + undated

    def refresh(self, *, create: bool = True) -> bool:
        """Write `memory.md` and the existing lists of pending reminders, if they are out of date.

        create: whether to write `memory.md` if the home has none.

        Returns whether a file was written. Raises StorageError.
        """
        engine = self.engine
        if not create and not engine.layout.overview.exists():
            return False
        with engine.guard:
            # Before the text is read, so that a change from now on asks for the next refresh.
            engine.changed_projects.discard(CATEGORY_PROJECT)
            written = put_derived(engine.layout.overview, self.text().encode())
            return Pending(self.memory).refresh(create=False) or written

    def keep_up(self) -> bool:
        """Refresh the files if this process has changed a memory since the last refresh.

        Returns whether a file was written.
        """
        return CATEGORY_PROJECT in self.engine.changed_projects and self.refresh()


class Pending:
    """Writes the lists of pending reminders of a home.

    A reminder is pending if it has become due (fired) and nobody has acknowledged it. The lists do
    not depend on the caller.
    """

    def __init__(self, memory: ReadVerbs):
        self.memory = memory.as_caller(agent=None)
        self.engine = memory.engine

    @verb
    def reminders(self) -> list[NoteInfo]:
        """Return all memories of category `reminders`, of every scope."""
        return self.memory.list(
            Query(projects=(CATEGORY_PROJECT,), category=REMINDERS, order="created"), limit=0
        )[0]

    def listed(
        self, now: datetime, infos: Sequence[NoteInfo], firing: Firing | None = None
    ) -> list[tuple[NoteInfo, Reminder]]:
        """Return the reminders that are pending at a moment, in the order of their times.

        now: the moment.
        infos: the notes of the reminders to look at.
        firing: changes of headers that are not in the files yet, but count as made. None if there
            are no such changes.
        """
        from memoranda.note.reminder import Reminder

        days = self.engine.settings.pending_days
        new_keys_by_row = firing or {}
        pending: list[tuple[NoteInfo, Reminder]] = []
        for info in infos:
            header = _with_changes(info.header, new_keys_by_row.get(info.row, {}))
            reminder = Reminder.of(header)
            if reminder.is_pending(now, days):
                pending.append((info, reminder))
        pending.sort(key=_order_of_pending)
        return pending

    def refresh(
        self, now: datetime | None = None, firing: Firing | None = None, *, create: bool = True
    ) -> bool:
        """Write the lists of pending reminders as they should be at `now`, if they are out of date.

        now: the moment; None means the present moment.
        firing: changes of headers that are not in the files yet, but count as made. None if there
            are no such changes.
        create: whether to write a list if the home has none.

        Returns whether a file was written. Raises StorageError.
        """
        engine = self.engine
        with engine.writing():
            list_files = [path for path in engine.layout.pending_lists() if _is_our_list(path)]
            if not list_files and not create:
                return False
            reminders = self.listed(now or self.memory.clock(), self.reminders(), firing)
            has_written = False
            for path, reminders_of_file in sorted(self._by_file(list_files, reminders).items()):
                text = _HEAD + (self._rows(reminders_of_file) or _NONE)
                # A file that has this text already is not written.
                is_written = put_derived(path, text.encode())
                has_written = has_written or is_written
            return has_written

    def _by_file(
        self, list_files: Sequence[Path], reminders: Iterable[tuple[NoteInfo, Reminder]]
    ) -> dict[Path, list[tuple[NoteInfo, Reminder]]]:
        """Return the reminders for each list file.

        list_files: the present list files. If no reminders belong into one, it gets an empty list.
        """
        layout = self.engine.layout
        # The list of the scope `global`, and a list for each agent.
        by_file: dict[Path, list[tuple[NoteInfo, Reminder]]] = {
            path: [] for path in (layout.pending, *list_files)
        }
        for info, reminder in reminders:
            if info.scope == GLOBAL:
                by_file[layout.pending].append((info, reminder))
                continue
            # Somebody may have written another scope by hand. Then nobody can see the reminder.
            agent = info.scope.removeprefix(_AGENT)
            is_of_agent = info.scope.startswith(_AGENT) and is_agent(agent)
            if is_of_agent:
                by_file.setdefault(layout.pending_of(agent), []).append((info, reminder))
        return by_file

    def _rows(self, reminders: Sequence[tuple[NoteInfo, Reminder]]) -> str:
        """Return the text of a list file without its heading; "" for an empty list.

        A reminder has, for example, the line `1. Call Ann`, and below it `due 2025-03-01 09:00, id
        1a2b3c4d`.
        """
        zone = self.engine.settings.reading_zone
        texts = contents(self.memory, [info for info, _ in reminders])
        rows: list[str] = []
        for (info, reminder), content in zip(reminders, texts, strict=True):
            number = len(rows) + 1
            due = reminder.shown_due
            when = f"{due.astimezone(zone):%Y-%m-%d %H:%M}" if due else "no date"
            if self.memory.is_held_back(info):
                text = _WITHHELD
            else:
                text = reminder.caveat + one_line(content).strip()
                text += _author_in_brackets(self.memory, info)
            rows.append(f"{number}. {text}\n   due {when}, id {info.id[:8]}\n\n")
        return "".join(rows)


def _with_changes(header: Mapping[str, Any], new_keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return a header with some keys changed. REMOVE as a value removes a key."""
    from memoranda.note.frontmatter import REMOVE

    changed_header = {**header, **new_keys}
    return {key: value for key, value in changed_header.items() if value is not REMOVE}


def _order_of_waiting(row: tuple[datetime, NoteInfo]) -> tuple[datetime, str]:
    """Return the sort key of a waiting reminder: its time, then the id of its note."""
    due, info = row
    return due, info.id


def _order_of_pending(row: tuple[NoteInfo, Reminder]) -> tuple[datetime, str]:
    """Return the sort key of a pending reminder: its time, then the id of its note."""
    info, reminder = row
    return (reminder.shown_due or _NEVER, info.id)


def authors_named(memory: ReadVerbs, info: NoteInfo) -> tuple[Mark, ...]:
    """Return the remarks on the author of a note for a text that contract 001 fixes.

    What the owner imported from a file of memories (`memory import`) has none: the contract has no
    remarks in a home in which only the command wrote. Other notes have the remarks of
    `origin_marks`.
    """
    is_own_import = info.provenance.who == "import" and info.provenance.origin is None
    if is_own_import:
        return ()
    return memory.origin_marks(info)


def _author_in_brackets(memory: ReadVerbs, info: NoteInfo) -> str:
    """Return ` (by claude, unconfirmed)`, or "" if there is no author to name (`authors_named`)."""
    marks = [mark.words for mark in authors_named(memory, info)]
    if marks:
        return f" ({', '.join(marks)})"
    return ""


def _is_our_list(path: Path) -> bool:
    """Whether memoranda wrote a file as a list. The user may have a file with the same name."""
    try:
        with open(open_own(path, os.O_RDONLY), "rb") as file:
            return file.read(len(_HEAD)) == _HEAD.encode()
    except OSError:
        return False


@verb
def by_writer(memory: ReadVerbs) -> dict[str, int]:
    """Return how many of the notes that the caller sees each writer has written.

    A writer is `owner`, the name of an agent, `file` or `import`.
    """
    memory.engine.fresh()
    return memory.index.notes.by_writer(memory.agent)


@verb
def by_day(memory: ReadVerbs, first: date, until: date) -> dict[str, int]:
    """Return the number of notes for each day (YYYY-MM-DD), from `first` until the day before
    `until`.

    A note counts on the day that it is about. Without such a day, it counts on the day when it was
    written. Notes in the archive and traces do not count.
    """
    memory.engine.fresh()
    zone = memory.settings.zone
    return memory.index.notes.by_day(first, until, zone, memory.agent)


def written_today(memory: ReadVerbs) -> dict[str, Use]:
    """Return how much each agent has written since midnight, by name.

    An agent gets only its own numbers.
    """
    engine = memory.engine
    with engine.guard:
        uses = engine.day_use.since_midnight(memory.clock(), memory.settings)
        return {
            name: use
            for name, use in sorted(uses.items())
            if memory.agent is None or memory.agent == name
        }


@dataclass(slots=True)
class Figures:
    """The size and growth of a home.

    counts: the numbers of the notes that the caller sees.
    bytes: the size of the notes that the caller sees.
    index_bytes, history_bytes: the sizes of the index and of the history on disk. Both are 0 for an
        agent, because they would tell about notes that the agent does not see.
    weeks: (Monday, number of new notes) of the last WEEKS weeks, the oldest first.
    """

    counts: HomeCounts
    bytes: int
    index_bytes: int
    history_bytes: int
    weeks: list[tuple[date, int]]


@dataclass(slots=True)
class Writer:
    """A writer of changes: an agent, together with the client that it used.

    agent: the agent's name. None means the owner.
    client: the name of the client program or of the interface; "" if it is unknown.
    last: the time of the last change.
    verbs: the number of changes by verb.
    sessions: the ids of the sessions in which the writer made changes.
    """

    agent: str | None
    client: str
    last: str
    verbs: Counter[str] = field(default_factory=Counter)
    sessions: set[str] = field(default_factory=set)


@verb
def figures(memory: LogVerbs) -> Figures:
    """Return the size and growth of the home, as the caller of `memory` sees it."""
    layout = memory.engine.layout
    zone = memory.settings.zone
    today = memory.clock().astimezone(zone).date()
    monday = today - timedelta(days=today.weekday())
    first_monday = monday - timedelta(weeks=WEEKS - 1)
    # One Monday more than there are weeks: the last one is the end of the present week.
    mondays = [first_monday + timedelta(weeks=number) for number in range(WEEKS + 1)]
    # Comparing numbers is fifty times faster than comparing dates in a time zone.
    begins = [_microseconds(day, zone) for day in mondays]
    new_notes = [0] * WEEKS
    total_bytes = 0
    counts = memory.stats()
    for created, size in memory.index.notes.written(memory.agent):
        total_bytes += size
        is_in_these_weeks = begins[0] <= created < begins[-1]
        if is_in_these_weeks:
            week = bisect_right(begins, created) - 1
            new_notes[week] += 1
    index_bytes = 0
    history_bytes = 0
    # The sizes of these files would tell an agent about notes that it may not see.
    if memory.agent is None:
        index_bytes = _size([layout.index, layout.index.with_name(f"{layout.index.name}-wal")])
        history_bytes = _size([layout.ledger, *layout.texts.rglob("*")])
    weeks = list(zip(mondays[:-1], new_notes, strict=True))
    return Figures(
        counts=counts,
        bytes=total_bytes,
        index_bytes=index_bytes,
        history_bytes=history_bytes,
        weeks=weeks,
    )


def _microseconds(day: date, zone: tzinfo | None) -> int:
    """Return when a day begins, in microseconds since 1970.

    zone: the time zone of the day; None means the time zone of the machine.
    """
    midnight = datetime.combine(day, time.min, zone).astimezone(UTC)
    return (midnight - EPOCH) // timedelta(microseconds=1)


def writers(memory: LogVerbs, since: datetime) -> list[Writer]:
    """Return who has changed something since a moment. The writer of the latest change comes first."""
    writers: dict[tuple[str | None, str], Writer] = {}
    for change in memory.log(limit=0, since=since):
        by = change.by or {}
        client = by.get("client") or change.face or ""
        new_writer = Writer(change.agent, client, change.time)
        writer = writers.setdefault((change.agent, client), new_writer)
        writer.verbs[change.verb] += 1
        session = by.get("session")
        if session:
            writer.sessions.add(session)
    return list(writers.values())


def _size(places: Iterable[Path]) -> int:
    """Return the bytes of these files together. A missing file counts as empty."""
    total = 0
    for place in places:
        with suppress(OSError):
            total += os.stat(place).st_size
    return total
