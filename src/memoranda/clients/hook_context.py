"""Composes the texts that a client gets without asking for them: at the start of a session, and for
a prompt (docs/hooks.md).

A text is between marks which say that it is data and not instructions. Each note is one line with
its day and its address. Once a session got the line of a note, the note is told. The ledger records
the told notes of each session, so that no note is told twice.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from memoranda.clients.hook_conversation import conversation
from memoranda.clients.hook_events import HookEvent, is_long_enough
from memoranda.clients.hook_news import latest_of_others, notes_of_others
from memoranda.clients.hook_words import own_words
from memoranda.engine import MemorySession
from memoranda.engine.contents import contents
from memoranda.engine.telling.manner import Telling
from memoranda.engine.telling.profile import profile
from memoranda.engine.telling.session_start import (
    by_title,
    due_reminders,
    marks_of,
    owner_first,
    told_note_of,
)
from memoranda.index.rows import NoteInfo
from memoranda.index.told_notes import (
    Mark,
    ToldNote,
    ToldSection,
    ToldText,
    evidence_lines,
    item_line,
)
from memoranda.ledger.sessions import SessionRows
from memoranda.note.citations import CITES
from memoranda.note.model import TRACE_PROJECT
from memoranda.query import Query
from memoranda.text.fence import CLOSE, OPEN, fenced, without_marks
from memoranda.text.tokens import tokens_in
from memoranda.text.unicode import flat
from memoranda.text.user_path import user_folder

if TYPE_CHECKING:
    from memoranda.citations.check import CitationCheck

START_TOKENS = 1_500
"""The most tokens of the text at the start of a session."""
PROMPT_TOKENS = 600
"""The most tokens of the text for a prompt."""
# About as many of them are left for the marks around the text, the opening and the marks of stale
# notes.
_TOKENS_BESIDE_PASSAGES = 120
# The text for a prompt stays at least this many tokens below its limit.
_SPARE_TOKENS = 2
FLOOR = 0.65
"""The lowest relevance of a passage that is shown for a prompt.

docs/hooks.md says what the relevance means, and how this number was chosen.
"""

_INTRODUCTION = (
    "You have a memory shared with the user's other agents. "
    "Search it before you ask what they may have said before; "
    "store what will matter later: decisions, preferences, facts."
)
# The line of a note has at most this many characters, and a line of the profile this many.
_LINE_CHARACTERS = 220
_PROFILE_LINE_CHARACTERS = 400
# The first session of a client cannot be told the notes since its last session. It is told the notes
# of these days, and at most this many.
_RECENT = timedelta(days=7)
_MOST_RECENT_NOTES = 10
# At most this many notes since the last session are told.
_MOST_NEWS = 60
# The pattern of the remark (`Mark`) at a note that cites code which has changed or is gone.
_STALE_CODE = "outdated? {code}"
# A task with such a status is not open.
_DONE_STATUSES = frozenset(("done", "closed", "cancelled", "canceled", "completed"))
# The largest numbers of tokens of the parts of the text at the start of a session.
_DUE_TOKENS = 300
_PROFILE_TOKENS = 600
_PROJECT_TOKENS = 1_000
_RECENT_TOKENS = 400


def at_start(memory: MemorySession, event: HookEvent, session: SessionRows) -> ToldText:
    """Return the text for the start of a session.

    A new session gets an introduction, and the notes that others added since the client's last
    session. A session that continues, for example after its context was compressed, gets only the
    notes that were added since it was last told some.

    event: the start of the session.
    session: the record of the notes that this session was told.
    """
    now = memory.clock()
    teller = _Teller(memory, START_TOKENS, session.notes, event.cwd)
    continues = session.is_known
    if continues:
        last_told = session.saw
    else:
        last_told = session.last_seen()
        _tell_new_session(teller, memory, event, now)

    if last_told is not None:
        _tell_news(teller, memory, event, last_told, now)
    elif not continues:
        # This is the first session of the client.
        _tell_latest(teller, memory, event, now)
    teller.end()

    # A session that continues knows the introduction, so without notes it is told nothing.
    has_nothing_new = continues and not teller.sections
    if has_nothing_new or not teller.lines:
        return ToldText()
    return ToldText(fenced("\n".join(teller.lines)), tuple(teller.sections))


def _tell_news(
    teller: _Teller, memory: MemorySession, event: HookEvent, last_told: datetime, now: datetime
) -> None:
    """Tell the notes that others wrote since this client was last told any."""
    news = notes_of_others(memory, event, last_told, now)
    teller.section(
        "Added by others since your last session",
        news,
        START_TOKENS,
        most_notes=_MOST_NEWS,
        marks_name_authors=True,
    )


def _tell_latest(teller: _Teller, memory: MemorySession, event: HookEvent, now: datetime) -> None:
    """Add the latest notes of others, for the first session of a client."""
    latest = latest_of_others(memory, event, now - _RECENT, now)
    teller.section(
        "Added by others lately",
        latest,
        _RECENT_TOKENS,
        most_notes=_MOST_RECENT_NOTES,
        marks_name_authors=True,
    )


def _tell_new_session(
    teller: _Teller, memory: MemorySession, event: HookEvent, now: datetime
) -> None:
    """Add the introduction for a new session.

    It says how to use the memory. Then follow the reminders that are due, the profile (notes about
    the user), and notes about the present project.

    teller: collects the lines.
    event: the start of the session, with its working folder.
    """
    teller.say(_INTRODUCTION)
    teller.section("Due", due_reminders(memory, now), _DUE_TOKENS)

    entries = owner_first(memory, profile(memory))
    # The profile may show only a part of a note.
    texts = {entry.info.row: entry.text for entry in entries}
    end_of_profile = teller.room - _PROFILE_TOKENS
    for title, part in by_title(entries):
        teller.section(
            title,
            [(entry.info, marks_of(entry)) for entry in part],
            teller.room - end_of_profile,
            texts=texts,
            longest=_PROFILE_LINE_CHARACTERS,
        )

    names = project_names(event.cwd)
    title = _project_title(memory, names[0]) if names else ""
    notes_about_project = _about_project(memory, event.cwd, names, now)
    teller.section(title, notes_about_project, _PROJECT_TOKENS)


def _project_title(memory: MemorySession, name: str) -> str:
    """Return the title of the section about a project.

    The name may come from a stranger whose repository the user cloned. So it is left out if it
    seems to instruct its reader.
    """
    if memory.rules_for_reading().name_suspicions(name):
        return "About this project"
    return f"About this project ({flat(name)})"


def for_prompt(
    memory: MemorySession, event: HookEvent, session: SessionRows, opening: str = ""
) -> ToldText:
    """Return a text with passages of notes that fit a prompt.

    event: the prompt.
    session: the record of the notes that this session was told. These notes are left out.
    opening: a sentence to put before the passages; "" for no sentence.
    """
    prompt = own_words(event.prompt)
    notes: list[ToldNote] = []
    if is_long_enough(prompt) and not session.is_full:
        query = session.without_given(conversation(prompt, event.transcript))
        max_tokens = PROMPT_TOKENS - _TOKENS_BESIDE_PASSAGES
        notes = memory.recall(query, least=FLOOR, max_tokens=max_tokens, known_ids=session.notes)

    lines = evidence_lines(_with_stale_marks(memory, event.cwd, notes))
    # A mark may be spread over several lines, so they are cleaned together.
    line_texts = without_marks("\n".join(line.text for line in lines)).split("\n")

    # Tell as many lines as there is room for.
    room = PROMPT_TOKENS - _SPARE_TOKENS - tokens_in(fenced(opening))
    told_lines = [opening] if opening else []
    told_notes = []
    for line, line_text in zip(lines, line_texts, strict=False):
        room -= tokens_in(line_text + "\n")
        if room < 0:
            break
        told_lines.append(line_text)
        # Only the first line of a note has the note.
        if line.begins is not None:
            told_notes.append(line.begins)
    if not told_lines:
        return ToldText()
    return ToldText(fenced("\n".join(told_lines)), (ToldSection("", told_notes),))


def _with_stale_marks(
    memory: MemorySession, cwd: str, notes: Sequence[ToldNote]
) -> Sequence[ToldNote]:
    """Return the notes, with a remark at each note that cites code which has changed or is gone.

    cwd: the working folder, in which the cited code is looked up.
    """
    bodies = contents(memory, [told_note.note for told_note in notes])
    # Notes cite code between backquotes. Without any, the import and the check are not needed.
    if not any("`" in body for body in bodies):
        return notes
    from memoranda.citations.check import CitationCheck

    check = CitationCheck(memory, [cwd] if os.path.isabs(cwd) else [])
    marked_notes = []
    for told_note, body in zip(notes, bodies, strict=True):
        stale_code = check.stale(told_note.note, body)
        if stale_code:
            remark = Mark(_STALE_CODE, stale_code)
            told_note = told_note._replace(marks=(*told_note.marks, remark))
        marked_notes.append(told_note)
    check.save()
    return marked_notes


def project_names(cwd: str) -> list[str]:
    """Return the names of the git repository that contains `cwd`: its folder and its remotes.

    For example, `/home/ann/shop/src` may give `["shop", "web-shop"]`. [] if no git repository
    contains `cwd`. Names of one or two letters are left out, because too many notes have them.
    """
    root = _repository(cwd)
    if root is None:
        return []
    names = [root.name]
    with suppress(OSError, UnicodeDecodeError):
        for line in (root / ".git" / "config").read_text("utf-8")[:20_000].splitlines():
            # Such as `url = git@example.org:ann/web-shop.git`.
            match = re.match(r"\s*url\s*=\s*\S*?[/:]([^/:\s]+?)(?:\.git)?/?\s*\Z", line)
            if match:
                names.append(match[1])
    return [name for name in dict.fromkeys(names) if len(name) > 2]


def _repository(cwd: str) -> Path | None:
    """Return the folder of the git repository that contains `cwd`. None without such a repository.

    A repository that is the user's whole home folder does not count.
    """
    if not os.path.isabs(cwd) or "\0" in cwd:
        return None
    folder = Path(cwd)
    home = user_folder()
    for candidate in (folder, *folder.parents)[:_MOST_PARENTS]:
        # A home folder under version control is not a project, and neither is a folder above it.
        if candidate == home:
            return None
        if (candidate / ".git").exists():
            return candidate
    return None


# At most this many folders are searched for a repository, from the working folder upwards.
_MOST_PARENTS = 40


class _NoteToTell(NamedTuple):
    """A note for a section.

    info: the note.
    marks: remarks such as `open`.
    telling: whether it is told as a fact, or as the claim of its author.
    body: its text without the header.
    stale: the remark that code which it cites changed or is gone. None without such code.
    """

    info: NoteInfo
    marks: Sequence[Mark]
    telling: Telling
    body: str
    stale: Mark | None


class _Teller:
    """Collects lines about notes within a budget of tokens. No note is told twice.

    lines: the lines so far.
    sections: the notes in these lines, under their titles.
    room: how many tokens of the budget are left.
    """

    def __init__(
        self, memory: MemorySession, tokens: int, told_before: Iterable[str], cwd: str = ""
    ):
        """Begin without lines.

        tokens: the budget for all lines and for the marks around them.
        told_before: the ids of notes that the session was told earlier. They are not told again.
        cwd: the working folder, in which cited code is looked up; "" if it is unknown.
        """
        self._memory = memory
        self.room = tokens - tokens_in(f"{OPEN}\n{CLOSE}\n")
        self._known = set(told_before)
        self._cwd = cwd
        self.lines: list[str] = []
        self.sections: list[ToldSection] = []

    @cached_property
    def _citations(self) -> CitationCheck:
        """The check whether code that notes cite has changed. The first note that needs it makes it."""
        from memoranda.citations.check import CitationCheck

        return CitationCheck(self._memory, [self._cwd] if os.path.isabs(self._cwd) else [])

    def end(self) -> None:
        """Save the results of checking cited code, so that later sessions can use them."""
        # The check is only in `__dict__` if some note needed it.
        if "_citations" in self.__dict__:
            self._citations.save()

    def say(self, *lines: str) -> None:
        """Add lines, and take their tokens from the budget."""
        self.room -= _tokens_in_lines(lines)
        self.lines += lines

    def section(
        self,
        title: str,
        infos: Iterable[tuple[NoteInfo, Sequence[Mark]]],
        most_tokens: int,
        *,
        most_notes: int | None = None,
        marks_name_authors: bool = False,
        texts: Mapping[int, str] = {},
        longest: int = _LINE_CHARACTERS,
    ) -> None:
        """Add notes under a title, until the tokens are used up.

        title: the title; "" for no title.
        infos: pairs of a note and marks such as `open`, which are shown at the note.
        most_tokens: how many tokens the section may use at most.
        most_notes: how many notes the section may have at most. None means any number.
        marks_name_authors: whether the marks name the authors of the notes.
        texts: the texts to show in place of whole notes, by row of the note.
        longest: how many characters of a note are shown at most.
        """
        # How many tokens of the budget must remain for later sections.
        reserved_tokens = max(0, self.room - most_tokens)
        notes: list[ToldNote] = []
        for note in self._to_tell(infos, most_notes):
            marks = list(note.marks)
            if note.stale is not None:
                marks.append(note.stale)
            told_note = told_note_of(
                self._memory,
                note.info,
                texts.get(note.info.row, note.body),
                note.telling,
                marks=marks,
                names_author=marks_name_authors and bool(note.marks),
                longest=longest,
            )
            lines = [item_line(told_note, longest)]
            # The title comes with the first note, so that no title is alone.
            if title and not notes:
                lines.insert(0, f"{title}:")
            if self.room - _tokens_in_lines(lines) < reserved_tokens:
                break
            self.say(*lines)
            notes.append(told_note)
        if notes:
            self.sections.append(ToldSection(title, notes))

    def _to_tell(
        self, infos: Iterable[tuple[NoteInfo, Sequence[Mark]]], most_notes: int | None
    ) -> list[_NoteToTell]:
        """Return the notes that may be told, and count them as known.

        Notes that cite changed code come last, so that they are the first to be left out.

        infos: pairs of a note and its marks. A mark is shown at the note.
        most_notes: how many notes to return at most. None means any number.
        """
        chosen: list[tuple[NoteInfo, Sequence[Mark], Telling]] = []
        for info, marks in infos:
            # A note that was told before takes no other's place, so only those to tell count.
            if len(chosen) == most_notes:
                break
            telling = self._memory.telling(info)
            if info.id not in self._known and telling is not Telling.SILENT:
                self._known.add(info.id)
                chosen.append((info, marks, telling))

        # Reading all texts together is faster.
        bodies = contents(self._memory, [info for info, _, _ in chosen])
        notes = []
        for (info, marks, telling), body in zip(chosen, bodies, strict=True):
            stale_mark = self._stale_mark(info, body)
            notes.append(_NoteToTell(info, marks, telling, body, stale_mark))
        return sorted(notes, key=lambda note: note.stale is not None)

    def _stale_mark(self, info: NoteInfo, body: str) -> Mark | None:
        """Return a remark if the note cites code that changed or is gone; otherwise None.

        body: the text of the note.
        """
        # Code is cited in backticks or in the header. Most notes have neither, and need no check.
        if "`" not in body and CITES not in info.header:
            return None
        stale_code = self._citations.stale(info, body)
        return Mark(_STALE_CODE, stale_code) if stale_code else None


def _tokens_in_lines(lines: Iterable[str]) -> int:
    """Return how many tokens lines take, with their line breaks."""
    return sum(tokens_in(line + "\n") for line in lines)


def _about_project(
    memory: MemorySession, cwd: str, names: list[str], now: datetime
) -> Iterator[tuple[NoteInfo, Sequence[Mark]]]:
    """Yield notes about the present project, each with marks such as `open`.

    First comes the last session in this project, then the open tasks. Notes of the memory projects
    in this folder follow, and then all notes that name the project.

    cwd: the working folder of the session.
    names: the names of the project's repository. Without names nothing is yielded.
    """
    if not names:
        return
    valid_notes = Query(archived=False, valid_at=now, upheld=memory.upheld_rows())
    # A note may be yielded several times: the teller leaves out repeats.
    for name in names:
        traces, _ = memory.list(Query(projects=(TRACE_PROJECT,), tags=(name,)), limit=1)
        for info in traces:
            yield info, [Mark("last session here")]
    for name in names:
        for info in _open_tasks(memory, valid_notes, name):
            yield info, [Mark("open")]
    projects = _projects_at(memory, cwd)
    if projects:
        own_notes, _ = memory.list(valid_notes.replace(projects=projects), limit=5)
        for info in own_notes:
            yield info, []
    for name in names:
        query = valid_notes.replace(text=f'"{name}"')
        for hit in memory.search(query, limit=8, vetted=True):
            yield hit.note, []


# The filters that find tasks. Programs mark an open task in different ways.
_TASK_FILTERS: tuple[dict[str, Any], ...] = (
    {"types": ("task",)},
    {"status": "open"},
    {"status": "active"},
    {"status": "todo"},
)


def _open_tasks(memory: MemorySession, valid_notes: Query, name: str) -> Iterator[NoteInfo]:
    """Yield the tasks that mention the project `name` and are not done.

    valid_notes: a query for notes that are valid now.
    """
    for filters in _TASK_FILTERS:
        query = valid_notes.replace(text=f'"{name}"', **filters)
        for hit in memory.search(query, limit=5, vetted=True).hits:
            status = str(hit.note.header.get("status", ""))
            if status.lower() not in _DONE_STATUSES:
                yield hit.note


def _projects_at(memory: MemorySession, cwd: str) -> tuple[str, ...]:
    """Return the names of the memory projects whose folder is near `cwd`.

    The folder of such a project is inside the git repository that contains `cwd`, or contains it.
    """
    root = Path(os.path.realpath(_repository(cwd) or cwd))
    result = []
    for project in memory.projects:
        folder = Path(os.path.realpath(project.root))
        if folder.is_relative_to(root) or root.is_relative_to(folder):
            result.append(project.name)
    return tuple(result)
