"""The text that a session is told first, by a hook or by the MCP server.

It has the due reminders and facts about the user.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from memoranda.engine.contents import contents
from memoranda.engine.contested import newer, newer_marks, newest_first
from memoranda.engine.profile import PINNED, ProfileEntry, profile
from memoranda.engine.review import ReviewVerbs
from memoranda.engine.telling import Telling, author, claimed
from memoranda.index.rows import NoteInfo, day_of
from memoranda.note.model import CATEGORY_PROJECT, REMINDERS
from memoranda.note.reminder import Reminder
from memoranda.query import Query
from memoranda.text.fence import CLOSE, MARKS, OPEN, PLAIN_MARK, cut, fenced
from memoranda.text.tokens import tokens_in
from memoranda.text.unicode import flat, visible

INTRODUCTION_TOKENS = 400
"""At most this many tokens for a client as it connects."""
# Reminders leave the rest of the budget to other sections.
_DUE_TOKENS = 100
_LINE_CHARACTERS = 220
# Files that are read and indexed within a second on a slow machine.
_QUICKLY_READ_FILES = 500
# Notes of one agent about the user that a session is told unconfirmed.
_MOST_NOTES_OF_AGENT = 4
_DAY = timedelta(hours=24)


def introduction(memory: ReviewVerbs) -> str:
    """The due reminders and the profile that `memory.agent` may see, between the marks of a fence.

    It has at most INTRODUCTION_TOKENS tokens. It is empty if there is nothing to tell, and for a
    large home without an index.
    """
    # The first look at a large home takes long, and the client's first call would be refused
    # meanwhile. So that call makes the index, and waits for it.
    if not memory.index.notes.has_any() and _is_large(memory):
        return ""
    room = INTRODUCTION_TOKENS - tokens_in(f"{OPEN}\n{CLOSE}\n")
    reminders = list(due_reminders(memory, memory.clock()))
    due = _section(memory, "Due", reminders, _texts(memory, reminders), min(room, _DUE_TOKENS))
    told_ids = {info.id for info, _ in reminders}
    entries = [
        entry for entry in owner_first(memory, profile(memory)) if entry.info.id not in told_ids
    ]
    notes = [(entry.info, PINNED if entry.why == PINNED else "") for entry in entries]
    room -= sum(tokens_in(f"{line}\n") for line in due)
    about_user_lines = _section(
        memory, "About the user", notes, [entry.text for entry in entries], room
    )
    lines = [*due, *about_user_lines]
    if lines:
        return fenced("\n".join(lines))
    return ""


def _is_large(memory: ReviewVerbs) -> bool:
    """Whether the projects have so many files that the first comparison with the disk is slow."""
    number = 0
    for source in memory.engine.sources.values():
        for _, _, names in os.walk(source.root):
            number += len(names)
            if number > _QUICKLY_READ_FILES:
                return True
    return False


def _texts(memory: ReviewVerbs, notes: Iterable[tuple[NoteInfo, str]]) -> list[str]:
    """The contents of the notes of these pairs."""
    return contents(memory, [info for info, _ in notes])


def _section(
    memory: ReviewVerbs,
    title: str,
    notes: Iterable[tuple[NoteInfo, str]],
    texts: Iterable[str],
    most_tokens: int,
) -> list[str]:
    """The lines of a section, the title first. [] if no note fits.

    notes: pairs of a note and a remark to show with it ("" for no remark).
    texts: the content of each note.
    most_tokens: how long the section may be.
    """
    lines = [f"{title}:"]
    room = most_tokens - tokens_in(f"{title}:\n")
    for (info, mark), text in zip(notes, texts, strict=True):
        telling = memory.telling(info)
        if telling is Telling.SILENT:
            continue
        line = told_line(memory, info, text, telling, mark=mark, longest=_LINE_CHARACTERS)
        room -= tokens_in(f"{line}\n")
        if room < 0:
            break
        lines.append(line)
    if len(lines) > 1:
        return lines
    return []


def told_line(
    memory: ReviewVerbs,
    info: NoteInfo,
    body: str,
    telling: Telling,
    *,
    mark: str = "",
    names_author: bool = False,
    longest: int,
) -> str:
    """A note as one line: `- (2026-11-28, notes/tea) Anna likes tea`.

    body: the content of the note.
    telling: whether it is told as a fact, or as its author's claim with "unconfirmed".
    mark: a remark beside the address.
    names_author: whether the remark names the author, who is then not named a second time.
    longest: how many characters of the note are shown.

    If a newer note contradicts it, the line also tells what the newer note says.
    """
    day = day_of(info, memory.settings.zone)
    origin = f"{day}, {flat(info.permalink)}"
    for remark in (mark, newer_marks(memory, [info]).get(info.row, "")):
        if remark:
            origin += f", {flat(remark)}"
    text = " ".join(
        flat(line.strip()) for line in visible(body[: 3 * longest]).splitlines() if line.strip()
    )
    name = " ".join(flat(info.title).split())
    if info.project != CATEGORY_PROJECT and not text.lstrip("# ").startswith(name):
        text = f"{name}: {text}"
    if telling is Telling.CLAIM and not names_author:
        text = claimed(info.provenance, text)
        origin += ", unconfirmed"
    return MARKS.sub(PLAIN_MARK, f"- ({origin}) {cut(text, longest)}")


def owner_first(memory: ReviewVerbs, entries: Iterable[ProfileEntry]) -> list[ProfileEntry]:
    """The owner's entries, then a few of each other author, so that no author fills the session."""
    facts: list[ProfileEntry] = []
    claims: list[ProfileEntry] = []
    ids_by_author: dict[str, set[str]] = {}
    for entry in entries:
        info = entry.info
        if memory.telling(info) is not Telling.CLAIM:
            facts.append(entry)
            continue
        ids = ids_by_author.setdefault(author(info.provenance), set())
        if len(ids) < _MOST_NOTES_OF_AGENT or info.id in ids:
            ids.add(info.id)
            claims.append(entry)
    return _newest_first(memory, facts) + _newest_first(memory, claims)


def _newest_first(memory: ReviewVerbs, entries: list[ProfileEntry]) -> list[ProfileEntry]:
    """The entries, with each one that a newer entry contradicts moved behind that newer entry."""
    pairs = newer(memory, [entry.info for entry in entries])
    return newest_first(entries, lambda entry: entry.info, pairs)


def due_reminders(memory: ReviewVerbs, now: datetime) -> Iterator[tuple[NoteInfo, str]]:
    """The reminders due within a day, or due in the last seven days and not acknowledged.

    Each comes with its time as a text: `due 2026-11-28 09:00`.
    """
    infos, _ = memory.list(Query(projects=(CATEGORY_PROJECT,), category=REMINDERS), limit=0)
    reminders = [(info, Reminder.of(info.header)) for info in infos]
    dated = [
        (reminder.due, info)
        for info, reminder in reminders
        if reminder.due is not None and not reminder.is_done
    ]
    for due, info in sorted(dated, key=lambda reminder: (reminder[0], reminder[1].id)):
        if now - 7 * _DAY <= due <= now + _DAY:
            yield info, f"due {due.astimezone(memory.settings.reading_zone):%Y-%m-%d %H:%M}"
