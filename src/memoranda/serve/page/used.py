"""Shows which notes agents got: by agent, by note, and as a preview for a prompt.

An agent gets notes when it reads or finds them, or when a hook gives them to it ("told"). The calls
of one day are listed together, and like calls are one row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from itertools import chain, groupby
from typing import NamedTuple

from starlette.responses import Response

from memoranda.engine import MemorySession
from memoranda.engine.telling.contested import Contradiction, newer_contradictions
from memoranda.engine.telling.served import Served, log_of
from memoranda.engine.telling.session_start import reminders_told_no_more
from memoranda.index.rows import NoteInfo
from memoranda.index.told_notes import ToldNote, ToldText
from memoranda.query import Query
from memoranda.serve.page.paging import page_of_list
from memoranda.serve.page.search import readable_passage, telling_words, writers
from memoranda.serve.page.visit import Visit
from memoranda.text.unicode import flat

# Calls on one page, and the notes that are named for a row.
_ROWS_PER_PAGE = 100
_MAX_NOTES = 30
# The days that are not folded.
_DAYS_OPEN = 2
# The calls in which notes are counted, and the notes that are named as those got most often.
_CALLS_COUNTED = 1_000
_MAX_OFTEN = 8
# The words of a prompt that are counted in all notes.
_MAX_WORDS_COUNTED = 8
# The way of notes that a hook gave before anything was asked.
_SESSION_START = "session start"
# The words for the ways to get notes, by parts of the names of tools.
_WAYS = {
    "told": (_SESSION_START, "prompt"),
    "found": ("search", "recall", "context", "find", "query", "list", "recent"),
    "read": ("read", "view", "get", "open", "fetch", "memory", "graph"),
}
_OTHER_WAY = "other"
_DEFAULT_AGENT = "claude"
_NO_AGENTS = ("owner", "import", "web", "file")


@dataclass
class UsedRow:
    """A row of the page: calls of one day that were alike and gave notes to an agent.

    time: the time of the last call.
    agent: the name of the agent.
    how: how the notes got there: "told", "found", "read", or else the name of the tool.
    asked: the words that the agent asked with. "" if there were none.
    title: the title of the row.
    notes: the notes that were given and still exist.
    times: the number of calls.
    """

    time: str
    agent: str
    how: str
    asked: str
    title: str
    notes: list[NoteInfo]
    times: int = 1

    @property
    def is_of_one_note(self) -> bool:
        """Whether the agent asked for one note, which names the row."""
        return self.how == "read" and len(self.notes) == 1


@dataclass
class UsedDay:
    """The notes that agents got on one day.

    time: a time of that day.
    ways: the rows by the way in which notes were got, in the order of `_WAYS`.
    """

    time: str
    ways: Mapping[str, list[UsedRow]]


class _Remarks(NamedTuple):
    """Remarks on the validity of notes, by row of the note.

    marks: the remark in words, which an agent is told before the passages of the note.
    newer: the newer note that contradicts it.
    """

    marks: Mapping[int, str]
    newer: Mapping[int, Contradiction]


def show(visit: Visit) -> Response:
    """Show which notes the agent in the field `agent` got."""
    agent = visit.text("agent")
    return _show_calls(visit, {"agent": agent}, agent=agent)


def of_note(visit: Visit, info: NoteInfo) -> Response:
    """Show which agents got a note."""
    return _show_calls(visit, {"part": "used"}, info=info)


def _show_calls(
    visit: Visit, fields: Mapping[str, str], *, agent: str = "", info: NoteInfo | None = None
) -> Response:
    """Show the calls of an agent, or the calls that gave a note.

    fields: the fields of the page's address, for the links to its other parts.
    """
    offset = visit.number("offset", 0)
    # One more than is shown, to know whether there are more. The notes that were given most often
    # are counted among the first _CALLS_COUNTED calls, whatever part of them is shown.
    end = max(offset + _ROWS_PER_PAGE + 1, _CALLS_COUNTED)
    if info is None:
        rows = log_of(visit.memory).rows(agent=agent, limit=end)
    else:
        rows = log_of(visit.memory).rows(note=info.id, limit=end)
    listed = page_of_list(rows[offset : offset + _ROWS_PER_PAGE + 1], offset, _ROWS_PER_PAGE)
    infos = _infos(visit.memory, rows)
    return visit.html(
        "used.html",
        info=info,
        agent=agent,
        listed=listed,
        days=_days(visit, listed.rows, infos),
        often=_most_often(rows, infos) if info is None else [],
        most_notes=_MAX_NOTES,
        days_open=_DAYS_OPEN,
        path=visit.request.url.path,
        fields=fields,
    )


def _infos(memory: MemorySession, rows: Iterable[Served]) -> dict[str, NoteInfo]:
    """Return the notes of these calls, by id. Notes that are gone are left out."""
    ids = set(chain.from_iterable(row.notes for row in rows))
    listed, _ = memory.list(Query(ids=tuple(ids)), limit=0)
    return {info.id: info for info in listed}


def _most_often(
    rows: Iterable[Served], infos: Mapping[str, NoteInfo]
) -> list[tuple[NoteInfo, int]]:
    """Return the notes that some calls gave most often, each with how often it was."""
    counts = Counter(chain.from_iterable(row.notes for row in rows))
    often = [(infos[id], times) for id, times in counts.most_common() if id in infos and times > 1]
    return often[:_MAX_OFTEN]


def _days(visit: Visit, rows: Iterable[Served], infos: Mapping[str, NoteInfo]) -> list[UsedDay]:
    """Return calls by day, and the calls of a day by the way in which they gave notes.

    Calls that are alike share a row. The newest calls come first.
    """

    def day_of(call: Served) -> date | None:
        """Return the day of a call in the reader's time zone. None if its time cannot be read."""
        local = visit.reader_clock.local(call.time)
        return local.date() if local else None

    days = []
    # The rows are in the order of time, so those of one day follow each other.
    for _, day_calls in groupby(rows, day_of):
        calls = list(day_calls)
        rows_by_way: dict[str, list[UsedRow]] = {way: [] for way in (*_WAYS, _OTHER_WAY)}
        for used_row in _rows_of_day(calls, infos):
            way = used_row.how if used_row.how in _WAYS else _OTHER_WAY
            rows_by_way[way].append(used_row)
        # A way without a row is not shown.
        shown_ways = {way: used_rows for way, used_rows in rows_by_way.items() if used_rows}
        days.append(UsedDay(calls[0].time, shown_ways))
    return days


def _rows_of_day(calls: Iterable[Served], infos: Mapping[str, NoteInfo]) -> list[UsedRow]:
    """Return the rows for one day. Calls of one agent with the same question share a row."""
    rows: dict[tuple[str, ...], UsedRow] = {}
    for call in calls:
        notes = [infos[note_id] for note_id in call.notes if note_id in infos]
        how = _way(call.how)
        # A note may be asked for by its id and by its name, which is the same question.
        question = call.asked or call.how
        if how == "read" and len(call.notes) == 1:
            question = call.notes[0]
        key = (call.agent, how, question)
        if key not in rows:
            rows[key] = UsedRow(
                time=call.time,
                agent=call.agent,
                how=how,
                asked=call.asked,
                title=_title_of_row(call, infos),
                notes=notes,
            )
            continue
        row = rows[key]
        row.times += 1
        known_rows = {info.row for info in row.notes}
        row.notes += [info for info in notes if info.row not in known_rows]
    return list(rows.values())


def _way(tool: str) -> str:
    """Return in a word how a tool gives notes: "found" for `search_notes`."""
    for word, names in _WAYS.items():
        if any(name in tool for name in names):
            return word
    return tool


def _title_of_row(call: Served, infos: Mapping[str, NoteInfo]) -> str:
    """Return the words that an agent asked with. If they are a note's id, return its title.

    A call without words gives the name of its tool. At the start of a session, nothing asks: "".
    """
    if not call.asked and call.how != _SESSION_START:
        return call.how
    info = infos.get(call.asked)
    return call.asked if info is None else info.title


def ask(visit: Visit) -> Response:
    """Show what hooks would tell an agent for a prompt, and at the start of a session."""
    agents = [name for name in writers(visit.memory) if name not in _NO_AGENTS]
    agent = visit.text("agent") or next(iter(agents), _DEFAULT_AGENT)
    prompt = visit.fields.get("prompt", "")
    # The function is missing if the page is served without our clients, as by tests.
    preview = getattr(visit.request.app.state, "preview", None)
    at_start = ToldText()
    for_prompt = ToldText()
    nearest: list[ToldNote] = []
    is_too_short = False
    floor = 0.0
    if preview is not None:
        # A Preview of clients/preview.py, whose module the page must not import.
        previewed = preview(visit.memory, agent, prompt)
        at_start = previewed.at_start
        for_prompt = previewed.for_prompt
        nearest = previewed.nearest
        is_too_short = previewed.is_too_short
        floor = previewed.floor
    told_notes = list(nearest)
    for section in (*at_start.sections, *for_prompt.sections):
        told_notes += section.notes
    remarks = _remarks(visit.memory, [told_note.note for told_note in told_notes])
    return visit.html(
        "ask.html",
        agents=agents or [_DEFAULT_AGENT],
        agent=agent,
        prompt=prompt,
        tellings={"prompt": for_prompt, "start": at_start},
        nearest=nearest,
        is_too_short=is_too_short,
        nearness_of=partial(_nearness, floor),
        spread=_note_count_by_word(visit.memory, prompt) if nearest else [],
        remarks=remarks,
        words_of=partial(_words_of, remarks),
        told_no_more=_told_no_more(visit, agent),
    )


def _nearness(floor: float, told_note: ToldNote) -> int | None:
    """Return how much of the needed relevance a note has by its words, in percent.

    None for a note that has enough by its words, or that was not looked for by words.

    floor: the relevance that a note needs.
    """
    if not 0 < told_note.relevance < floor:
        return None
    return int(100 * told_note.relevance / floor)


def _note_count_by_word(memory: MemorySession, prompt: str) -> list[tuple[str, int]]:
    """Return the words of a prompt, each with the number of notes that have it, the rarest first."""
    counts = []
    for word in list(dict.fromkeys(telling_words(prompt)))[:_MAX_WORDS_COUNTED]:
        hits = memory.search(Query(text=word), limit=1, is_use=False)
        counts.append((word, hits.total))
    return sorted(counts, key=lambda pair: pair[1])


def _told_no_more(visit: Visit, agent: str) -> list[NoteInfo]:
    """Return overdue reminders that an agent may see, but is no longer told about."""
    caller = visit.memory.as_caller(agent, "preview")
    overdue = reminders_told_no_more(caller, visit.now)
    return [info for info in overdue if not visit.memory.is_held_back(info)]


def _remarks(memory: MemorySession, infos: Sequence[NoteInfo]) -> _Remarks:
    """Return the remarks on the validity of notes that are told."""
    return _Remarks(memory.validity_marks(infos), newer_contradictions(memory, infos))


def _words_of(remarks: _Remarks, told: ToldNote) -> str:
    """Return the words that an agent is told of a note, without its title and marks of Markdown.

    "" if they are nothing but the title. They begin with the title if that begins their sentence.

    remarks: the remarks on all notes that are told. The page shows the remark on this note apart.
    """
    title = " ".join(flat(told.note.title).split())
    mark = remarks.marks.get(told.note.row, "")
    passages = [passage.removeprefix(f"[{mark}] ") for passage in told.passages]
    # A note is told with its title before its first line.
    passages[0] = passages[0].removeprefix(f"{title}: ")
    return readable_passage("\n".join(passages), title)
