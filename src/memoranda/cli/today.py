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

# At most this many new notes are shown, so that the whole overview has ten lines.
_SHOWN_ROWS = 3
# A reminder is shown if it is due by then.
_DUE_WITHIN = timedelta(hours=24)
# Further open questions are not counted: the overview then says `20+`.
_MOST_QUESTIONS = 20
# With more memories than these, open questions are not counted: it would take too long to compare
# all pairs of memories.
_MOST_COMPARED = 2_000
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
    """Return an overview of today's notes, reminders and questions, in about ten lines."""
    now = memory.clock().astimezone(memory.settings.zone)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    new_notes, new_count = memory.list(Query(created_from=midnight, order="created"), limit=200)
    # These include the new notes.
    _, touched_count = memory.list(Query(after=midnight), limit=1)
    counts = memory.stats()
    total = counts.total - counts.projects.get(TRACE_PROJECT, 0)
    lines = [f"{plural(total, 'note')} in {memory.settings.shown_home}. Today:"]
    lines.append(f"  new        {new_count}{_writers_text(new_notes)}")
    lines += _rows(memory, new_notes[:_SHOWN_ROWS])
    lines.append(f"  changed    {max(0, touched_count - new_count)}")
    lines.append(f"  due        {_due_text(memory, now)}")
    # To find the questions, memories are compared with each other, which takes long if they are many.
    if counts.projects.get(CATEGORY_PROJECT, 0) <= _MOST_COMPARED:
        lines.append(f"  questions  {_questions_text(memory)}")
    hidden = left_out(memory, Query())
    if hidden:
        lines.append(f"  not shown  {', '.join(hidden)}")
    return lines


def _writers_text(infos: list[NoteInfo]) -> str:
    """Return the three writers with the most notes: ` by claude 3, owner 1`. "" without notes."""
    counts = Counter(info.provenance.writer for info in infos)
    if not counts:
        return ""
    writers = [f"{writer} {count}" for writer, count in counts.most_common(3)]
    return f" by {', '.join(writers)}"


def _rows(memory: MemorySession, infos: list[NoteInfo]) -> list[str]:
    """Return a line for each note: its id, its kind, and the beginning of its text."""
    text_width = max(20, min(output.columns(), 100) - _COLUMNS_BESIDE_TEXT)
    lines = []
    for info, content in zip(infos, contents(memory, infos), strict=True):
        kind_cell = output.fit(kind(info), 12)
        text = flat(preview(row_text(info, content), text_width))
        lines.append(f"    {info.id[:8]} {kind_cell:<12} {text}")
    return lines


def _due_text(memory: MemorySession, now: datetime) -> str:
    """Return the next reminder within a day, and how many more follow: `15:00 Call Bob (+1 more)`.

    Returns `nothing` if no reminder is due.
    """
    from memoranda.jobs import reminders

    # The earliest is the first.
    due_reminders = [
        (reminder.due, info)
        for info, reminder in reminders.listed(memory)
        if reminder.due is not None and reminder.due <= now + _DUE_WITHIN
    ]
    if not due_reminders:
        return "nothing"
    due, info = due_reminders[0]
    time = due.astimezone(memory.settings.reading_zone).strftime("%H:%M")
    (content,) = contents(memory, [info])
    text = f"{time} {preview(content, 40)}"
    if len(due_reminders) > 1:
        text += f" (+{len(due_reminders) - 1} more)"
    return flat(text)


def _questions_text(memory: MemorySession) -> str:
    """Return how many questions wait for the owner: `3: memory review`, or `none`."""
    count = len(memory.review(limit=_MOST_QUESTIONS))
    if not count:
        return "none"
    # At the limit, there may be more.
    plus_sign = "+" if count == _MOST_QUESTIONS else ""
    return f"{count}{plus_sign}: memory review"
