"""The text that a hook or the MCP server gives to a session at its start.

It has the reminders that are due, and facts about the user.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from memoranda.engine.contents import contents
from memoranda.engine.review import ReviewVerbs
from memoranda.engine.telling.contested import (
    leader_rows_of,
    newer_contradictions,
    newer_marks,
    with_leaders_first,
)
from memoranda.engine.telling.manner import Telling, author, claimed
from memoranda.engine.telling.profile import PINNED, ProfileEntry, profile
from memoranda.index.rows import NoteInfo, day_of
from memoranda.index.told_notes import Mark, ToldNote, item_line
from memoranda.note.model import CATEGORY_PROJECT, KV_PROJECT, REMINDERS
from memoranda.note.reminder import Reminder
from memoranda.query import Query
from memoranda.text.fence import CLOSE, OPEN, fenced
from memoranda.text.tokens import tokens_in
from memoranda.text.unicode import flat, visible

INTRODUCTION_TOKENS = 400
"""The most tokens of the text for a client that connects."""
# The most tokens of the reminders, so that the other sections get the rest.
_DUE_TOKENS = 100
_LINE_CHARACTERS = 220
# How many files are read and indexed within a second on a slow machine.
_QUICKLY_READ_FILES = 500
# How many unconfirmed notes of one agent about the user are shown.
_MOST_NOTES_OF_AGENT = 4
_DAY = timedelta(hours=24)
# For how long a session is told of a reminder that became due.
_TOLD_LATE = 7 * _DAY


def introduction(memory: ReviewVerbs) -> str:
    """Return the due reminders and the profile that `memory.agent` may see, as text for a session.

    The text is between the marks of a fence, and has at most INTRODUCTION_TOKENS tokens. It is ""
    if there is nothing to show, and for a large home without an index.
    """
    # Making the index of a large home takes long, and during this time the first call of the client
    # would be refused. So the index is not made here: the first call makes it and waits for it.
    if not memory.index.notes.has_any() and _is_large(memory):
        return ""

    room = INTRODUCTION_TOKENS - tokens_in(f"{OPEN}\n{CLOSE}\n")
    reminders = list(due_reminders(memory, memory.clock()))
    reminder_texts = _texts(memory, reminders)
    due_lines = _section(memory, "Due", reminders, reminder_texts, min(room, _DUE_TOKENS))
    room -= sum(tokens_in(f"{line}\n") for line in due_lines)

    # A due reminder is not told a second time as part of the profile.
    reminder_ids = {info.id for info, _ in reminders}
    all_entries = owner_first(memory, profile(memory))
    entries = [entry for entry in all_entries if entry.info.id not in reminder_ids]
    lines = list(due_lines)
    for title, part in by_title(entries):
        notes = [(entry.info, marks_of(entry)) for entry in part]
        texts = [entry.text for entry in part]
        part_lines = _section(memory, title, notes, texts, room)
        room -= sum(tokens_in(f"{line}\n") for line in part_lines)
        lines += part_lines
    if not lines:
        return ""
    return fenced("\n".join(lines))


def by_title(entries: Iterable[ProfileEntry]) -> list[tuple[str, list[ProfileEntry]]]:
    """Group the entries of the profile under the titles that a session sees.

    A note that is only pinned may be about anybody, so it is not told as one about the user.
    """
    only_pinned: list[ProfileEntry] = []
    about_user: list[ProfileEntry] = []
    for entry in entries:
        if entry.is_only_pinned:
            only_pinned.append(entry)
        else:
            about_user.append(entry)
    return [("Pinned", only_pinned), ("About the user", about_user)]


def marks_of(entry: ProfileEntry) -> Sequence[Mark]:
    """Return the remarks that an entry of the profile is told with."""
    return [Mark(PINNED)] if entry.why == PINNED else []


def _is_large(memory: ReviewVerbs) -> bool:
    """Whether the number of files in the projects makes indexing slow."""
    file_count = 0
    for source in memory.engine.sources.values():
        for _, _, file_names in os.walk(source.root):
            file_count += len(file_names)
            if file_count > _QUICKLY_READ_FILES:
                return True
    return False


def _texts(memory: ReviewVerbs, notes: Iterable[tuple[NoteInfo, Sequence[Mark]]]) -> list[str]:
    """Return the contents of the notes in these pairs."""
    return contents(memory, [info for info, _ in notes])


def _section(
    memory: ReviewVerbs,
    title: str,
    notes: Iterable[tuple[NoteInfo, Sequence[Mark]]],
    texts: Iterable[str],
    most_tokens: int,
) -> list[str]:
    """Return the lines of a section: its title, and a line for each note. [] if no note fits.

    notes: pairs of a note and the remarks to show with it.
    texts: the content of each note.
    most_tokens: how many tokens the section may have.
    """
    lines = [f"{title}:"]
    room = most_tokens - tokens_in(f"{title}:\n")
    for (info, marks), text in zip(notes, texts, strict=True):
        telling = memory.telling(info)
        # Its words may be planted, as on a web page.
        if telling is Telling.SILENT:
            continue
        told_note = told_note_of(memory, info, text, telling, marks=marks, longest=_LINE_CHARACTERS)
        line = item_line(told_note, _LINE_CHARACTERS)
        room -= tokens_in(f"{line}\n")
        if room < 0:
            break
        lines.append(line)
    # There is more than the title.
    if len(lines) > 1:
        return lines
    return []


def told_note_of(
    memory: ReviewVerbs,
    info: NoteInfo,
    body: str,
    telling: Telling,
    *,
    marks: Sequence[Mark] = (),
    names_author: bool = False,
    longest: int,
) -> ToldNote:
    """Return a note in the form that `item_line` words. Its passages are the lines of its content.

    If a newer note contradicts the note, a mark says what the newer note says.

    info: the note.
    body: the content of the note.
    telling: whether the note is told as a fact, or as a claim of its author with "unconfirmed".
    marks: remarks to show after the address.
    names_author: whether a remark names the author, who is then not named a second time.
    longest: about how many characters of the note are needed.
    """
    # Empty lines and indents are left out, so a part longer than what is told is read.
    lines = visible(body[: 3 * longest]).splitlines()
    passages = [flat(line.strip()) for line in lines if line.strip()]
    if not passages:
        passages = [""]
    name = " ".join(flat(info.title).split())
    # The text is told behind the title, unless it begins with the title itself. A value needs its
    # key, even if both begin alike.
    beginning = f"{name}:" if info.project == KV_PROJECT else name
    repeats_name = " ".join(passages).lstrip("# ").startswith(beginning)
    # The title of a memory is made from its first line.
    has_own_title = info.project != CATEGORY_PROJECT
    if has_own_title and not repeats_name:
        passages[0] = f"{name}: {passages[0]}"
    all_marks = list(marks)
    newer_mark = newer_marks(memory, [info]).get(info.row)
    if newer_mark:
        all_marks.append(Mark("{newer}", newer_mark))
    if telling is Telling.CLAIM and not names_author:
        passages[0] = claimed(info.provenance, passages[0])
        all_marks.append(Mark("unconfirmed"))
    if telling is Telling.FACT and not names_author:
        all_marks += memory.name_marks(info)
    day = day_of(info, memory.settings.zone)
    return ToldNote(info, day, tuple(passages), tuple(all_marks))


def owner_first(memory: ReviewVerbs, entries: Iterable[ProfileEntry]) -> list[ProfileEntry]:
    """Return the owner's entries, followed by a few entries of each other author.

    The number is limited so that no author fills the whole text.
    """
    facts: list[ProfileEntry] = []
    claims: list[ProfileEntry] = []
    ids_by_author: dict[str, set[str]] = {}
    for entry in entries:
        info = entry.info
        if memory.telling(info) is not Telling.CLAIM:
            facts.append(entry)
            continue
        ids = ids_by_author.setdefault(author(info.provenance), set())
        # Further entries of a note that is told already do not count.
        if len(ids) < _MOST_NOTES_OF_AGENT or info.id in ids:
            ids.add(info.id)
            claims.append(entry)
    return _newest_first(memory, facts) + _newest_first(memory, claims)


def _newest_first(memory: ReviewVerbs, entries: list[ProfileEntry]) -> list[ProfileEntry]:
    """Return the entries in their order, but each contradicted entry behind its leader."""
    pairs = newer_contradictions(memory, [entry.info for entry in entries])
    return with_leaders_first(entries, lambda entry: entry.info, leader_rows_of(memory, pairs))


class _DueNote(NamedTuple):
    """A reminder, and the time for which a session is told of it."""

    due: datetime
    info: NoteInfo

    def order(self) -> tuple[datetime, str]:
        """The sort key: the earliest first, and a fixed order for the same time."""
        return self.due, self.info.id


def due_reminders(memory: ReviewVerbs, now: datetime) -> Iterator[tuple[NoteInfo, Sequence[Mark]]]:
    """Yield the reminders that are due within a day, or became due in the last seven days.

    Each comes with the mark `due 2026-11-28 09:00`. Acknowledged reminders are left out.

    now: the present time.
    """
    due_notes: list[_DueNote] = []
    for info, reminder in _unacknowledged_reminders(memory):
        due = told_due(reminder, now)
        if due is not None:
            due_notes.append(_DueNote(due, info))
    for due, info in sorted(due_notes, key=_DueNote.order):
        local_due = due.astimezone(memory.settings.reading_zone)
        yield info, [Mark("due {when}", f"{local_due:%Y-%m-%d %H:%M}")]


def told_due(reminder: Reminder, now: datetime) -> datetime | None:
    """Return the time with which a session is told of a reminder. None if it is not told of it.

    A repeating reminder that fired is told with the time for which it fired, and not yet with the
    next one. Once it fired more than seven days ago, only its next time counts.

    reminder: a reminder that nobody acknowledged.
    now: the present time.
    """
    earliest = now - _TOLD_LATE
    latest = now + _DAY
    # First the time for which it fired, and then its next one.
    for due in (reminder.shown_due, reminder.due):
        if due is not None and earliest <= due <= latest:
            return due
    return None


def reminders_told_no_more(memory: ReviewVerbs, now: datetime) -> list[NoteInfo]:
    """Return the reminders that became due so long ago that no session is told of them any more.

    They are in the order of their times.

    now: the present time.
    """
    silent: list[_DueNote] = []
    for info, reminder in _unacknowledged_reminders(memory):
        due = reminder.shown_due
        if due is not None and due <= now and told_due(reminder, now) is None:
            silent.append(_DueNote(due, info))
    return [note.info for note in sorted(silent, key=_DueNote.order)]


def _unacknowledged_reminders(memory: ReviewVerbs) -> Iterator[tuple[NoteInfo, Reminder]]:
    """Yield the reminders that nobody acknowledged, each with its state."""
    infos, _ = memory.list(Query(projects=(CATEGORY_PROJECT,), category=REMINDERS), limit=0)
    for info in infos:
        reminder = Reminder.of(info.header)
        if not reminder.is_done:
            yield info, reminder
