"""`memory` alone: today in ten lines, and the commands to go on with."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from memoranda.cli import output
from memoranda.cli.invocation import Invocation
from memoranda.cli.rows import left_out
from memoranda.documents.wording import kind, plural, preview, row_text
from memoranda.engine.contents import contents
from memoranda.note.model import CATEGORY_PROJECT, TRACE_PROJECT
from memoranda.query import Query
from memoranda.text.unicode import flat

if TYPE_CHECKING:
    from memoranda.engine import MemorySession
    from memoranda.index.rows import NoteInfo

# Rows of each part, so that the whole fits ten lines.
_SHOWN_ROWS = 3
_DUE_WITHIN = timedelta(hours=24)
_MOST_QUESTIONS = 20
# With more memories than these, open questions are not counted, since all pairs are compared.
_MOST_ASKED_ABOUT = 2_000
# The columns that a line has in addition to the text of a note.
_COLUMNS_BESIDE_TEXT = 34


def has_notes(call: Invocation) -> bool:
    """Whether the home exists and has notes. A missing home is not created."""
    settings = call.settings
    if settings.url is None and not settings.home.is_dir():
        return False
    with call.memory() as memory:
        return memory.stats().total > 0


def today_lines(call: Invocation) -> list[str]:
    """Return the lines about new, changed and due notes, open questions, and next commands."""
    with call.memory() as memory:
        return memory.at_once(lambda: _lines(memory))


def _lines(memory: MemorySession) -> list[str]:
    """Return the lines of the overview of the day."""
    zone = memory.settings.zone
    now = memory.clock().astimezone(zone)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    new, count = memory.list(Query(created_from=midnight, order="created"), limit=200)
    touched = memory.list(Query(after=midnight), limit=1)[1]
    counts = memory.stats()
    total = counts.total - counts.projects.get(TRACE_PROJECT, 0)
    lines = [f"{plural(total, 'note')} in {memory.settings.shown_home}. Today:"]
    lines.append(f"  new        {count}{_by_whom(new)}")
    lines += _rows(memory, new[:_SHOWN_ROWS])
    lines.append(f"  changed    {max(0, touched - count)}")
    lines.append(f"  due        {_due(memory, now)}")
    if counts.projects.get(CATEGORY_PROJECT, 0) <= _MOST_ASKED_ABOUT:
        lines.append(f"  questions  {_questions(memory)}")
    hidden = left_out(memory, Query())
    if hidden:
        lines.append(f"  not shown  {', '.join(hidden)}")
    return lines


def _by_whom(infos: list[NoteInfo]) -> str:
    """Return the three writers with the most notes: ` by claude 3, owner 1`. "" without notes."""
    writers = Counter(info.provenance.writer for info in infos)
    if not writers:
        return ""
    return f" by {', '.join(f'{who} {number}' for who, number in writers.most_common(3))}"


def _rows(memory: MemorySession, infos: list[NoteInfo]) -> list[str]:
    """Return a line for each of the newest notes."""
    room = max(20, min(output.columns(), 100) - _COLUMNS_BESIDE_TEXT)
    return [
        f"    {info.id[:8]} {output.fit(kind(info), 12):<12} "
        f"{flat(preview(row_text(info, content), room))}"
        for info, content in zip(infos, contents(memory, infos), strict=True)
    ]


def _due(memory: MemorySession, now: datetime) -> str:
    """Return the next reminder within a day, and how many more follow within the day."""
    from memoranda.jobs import reminders

    due = [
        (reminder.due, info)
        for info, reminder in reminders.listed(memory)
        if reminder.due is not None and reminder.due <= now + _DUE_WITHIN
    ]
    if not due:
        return "nothing"
    moment, info = due[0]
    (content,) = contents(memory, [info])
    if len(due) > 1:
        more_count = f" (+{len(due) - 1} more)"
    else:
        more_count = ""
    clock = moment.astimezone(memory.settings.reading_zone).strftime("%H:%M")
    return flat(f"{clock} {preview(content, 40)}{more_count}")


def _questions(memory: MemorySession) -> str:
    """Return how many questions wait for the owner: `3: memory review`, or `none`."""
    number = len(memory.review(limit=_MOST_QUESTIONS))
    if not number:
        return "none"
    return f"{number}{'+' if number == _MOST_QUESTIONS else ''}: memory review"
