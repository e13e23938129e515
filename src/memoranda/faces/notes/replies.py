"""The common parts of all note tools' replies: pages of lists, warnings and the longest text
(contract 000b, 7).

Here are also their two prompts and their resource template (contract 000b, 9).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from string import Template as TextTemplate
from typing import TYPE_CHECKING, Any

from memoranda.documents.cutting import compact, cut, rows_that_fit
from memoranda.documents.listed import Document, Listed
from memoranda.documents.wording import counted, note_section, short
from memoranda.engine.completion import permalinks
from memoranda.engine.telling.manner import author
from memoranda.errors import (
    CannotRead,
    InvalidInput,
    MemorandaError,
    OutsideError,
    ProjectNotFound,
    ProjectWarning,
)
from memoranda.faces.arguments import Arguments
from memoranda.faces.reply import Reply, error_reply
from memoranda.faces.texts import text_file
from memoranda.faces.tool import Prompt, Run, Template
from memoranda.index.rows import Hits, NoteInfo
from memoranda.note.frontmatter import split
from memoranda.query import Query, parse

if TYPE_CHECKING:
    from memoranda.engine import MemorySession

TEXT_LIMIT = 20_000
"""A reply has at most this many characters. More would crowd out a model's context."""
ROOM = 17_000
"""Characters that the entries of a reply may take. Its first and last lines and its warnings need
the remaining ones of TEXT_LIMIT."""
# A reply has at most this many warnings, and this many characters of each.
_MAX_WARNINGS = 5
_WARNING_CHARACTERS = 300
# A longer error is cut in the middle. Its end stays, because it says what to do.
_ERROR_CHARACTERS = 2500
_ERROR_END_CHARACTERS = 500
# A prompt has at most this many characters, quotes this many notes, and this many observations of
# each.
_PROMPT_CHARACTERS = 8000
_PROMPT_NOTES = 8
_PROMPT_OBSERVATIONS = 3
_DEFAULT_TIMEFRAME = "7d"
# A completion has at most this many values.
_MAX_COMPLETIONS = 100
# Larger offsets are not numbers of SQLite.
_MAX_OFFSET = 2**62


def whole_number(args: Arguments, name: str, least: int, most: int | None = None) -> int:
    """Return an argument that is a number, lowered to `most` if it is larger.

    name: the name of the argument.
    least: the smallest number. Raises InvalidInput for a smaller one.
    most: the largest number. None means any.
    """
    value = args[name]
    if value < least:
        raise InvalidInput(f"Parameter `{name}` must be {least} or more; got {value}.")
    if most is None:
        return value
    return min(value, most)


@dataclass(frozen=True, slots=True)
class Page:
    """The part of a list that a caller asks for.

    number: the number of the page, from 1.
    size: how many entries each page has.
    """

    number: int
    size: int

    @classmethod
    def of(cls, args: Arguments, most: int) -> Page:
        """Make the page that the arguments ask for, with at most `most` entries.

        Raises InvalidInput for a page or a size below 1.
        """
        return cls(
            whole_number(args, "page", least=1), whole_number(args, "page_size", least=1, most=most)
        )

    @property
    def offset(self) -> int:
        """The number of entries before this page."""
        return min((self.number - 1) * self.size, _MAX_OFFSET)

    @property
    def end(self) -> int:
        """The number of entries up to the end of this page."""
        return self.offset + self.size

    def part(self, rows: Sequence[Document], total: int, *, is_lower_bound: bool = False) -> Listed:
        """Return the rows of this page as a part of a list.

        total: the number of all rows in the list.
        is_lower_bound: whether there may be more rows than `total`.
        """
        return Listed.part(rows, total, self.offset, is_lower_bound=is_lower_bound)

    def fit(
        self,
        listed: Listed,
        lines: list[str],
        as_json: bool,
        asked_size: int | None = None,
    ) -> tuple[Page, Listed, list[str]]:
        """Shorten this page until its entries fit into ROOM.

        A page starts at a multiple of its size, so a shortened page may get smaller still: it may
        have fewer entries than would fit (see `shorter`).

        Returns (page, rows of the page, lines of the page).

        listed: the entries of this page as data.
        lines: the same entries as text.
        as_json: whether the reply is JSON.
        asked_size: how many entries the whole page would have, if the caller has already left out
            those at its end. None means that `listed` and `lines` have them all.
        """
        fitting_rows = listed.fit(lengths(listed.rows, lines, as_json), ROOM, self.offset)
        whole_size = len(lines) if asked_size is None else asked_size
        is_whole = len(fitting_rows) >= whole_size
        page = self if is_whole else self.shorter(len(fitting_rows))
        return page, listed.first(page.size, self.offset), lines[: page.size]

    def shorter(self, count: int) -> Page:
        """Return a page that begins at the same entry and has at most `count` entries.

        A caller names a page by its number and size, so a page begins at a multiple of its size.
        After 20 entries, a page of at most 7 entries is therefore page 5 with the size 5: the sizes
        7 and 6 do not divide 20.

        count: at least 1.
        """
        size = count
        # This ends, since the size 1 divides every offset.
        while self.offset % size:
            size -= 1
        return Page(self.offset // size + 1, size)

    def data(self, listed: Listed) -> dict[str, Any]:
        """Return the keys that a reply with a list has in addition to its rows (contract 000b, 7)."""
        more = listed.is_lower_bound or self.offset + len(listed) < listed.total
        return {"total": listed.total, "page": self.number, "page_size": self.size, "more": more}

    def foot(self, listed: Listed) -> str:
        """Return the last line of a list, e.g. `Shown: 1-10 of 25. Next: page=2, page_size=10.`

        "" if the page has the whole list.
        """
        total = listed.total
        if not listed.rows:
            if total:
                last_page = math.ceil(total / self.size)
                return f"Nothing on page {self.number}. Last page: {last_page}."
            return ""
        if len(listed) == total:
            return ""
        last = self.offset + len(listed)
        entries = f"Shown: {self.offset + 1}-{last} of {total}"
        if listed.is_lower_bound:
            entries += " or more"
        if listed.is_lower_bound or last < total:
            return f"{entries}. Next: page={self.number + 1}, page_size={self.size}."
        return f"{entries}."


def lengths(entries: Sequence[dict[str, Any]], rows: Sequence[str], as_json: bool) -> list[int]:
    """Return the characters that each entry takes in the text of a reply.

    entries: the entries as data.
    rows: the same entries as text.
    as_json: whether the reply is JSON, whose text is the data.
    """
    if as_json:
        return [len(compact(entry)) + 1 for entry in entries]
    return [len(row) + 1 for row in rows]


def body_of(memory: MemorySession, info: NoteInfo, *, is_listed: bool = True) -> tuple[str, str]:
    """Read a note from disk. Return its text below the frontmatter, and its checksum.

    is_listed: whether the note is one of a list. The note is then not counted as used, and if it
        cannot be read, its text comes from the index.
    """
    try:
        note = memory.read(info, count=not is_listed)
    except CannotRead:
        if not is_listed:
            raise
        text = memory.text_of(info)
        return text[split(text).body_at :].strip("\r\n"), info.checksum
    return note.text[note.body_at :].strip("\r\n"), note.checksum


def _short_error(text: str) -> str:
    """Return the text of an error, with its middle left out if it is long.

    The remedy is at its end.
    """
    if len(text) <= _ERROR_CHARACTERS:
        return text
    begin = text[: _ERROR_CHARACTERS - _ERROR_END_CHARACTERS]
    return f"{begin} … {text[-_ERROR_END_CHARACTERS:]}"


def with_complete_replies(run: Run, shows_warnings: bool = True) -> Run:
    """Wrap a tool so that its replies have warnings, a bounded text, and JSON if asked for.

    A tool itself returns only its own text and data.

    The tool gets `as_json` in its arguments, for `output_format: "json"`.

    run: the function of the tool.
    shows_warnings: whether the text has the warnings about projects, too. Otherwise only the data
        has them.
    """

    def answer(memory: MemorySession, args: Arguments) -> Reply:
        """Run the tool, and complete its reply."""
        args["as_json"] = args.pop("output_format", "text") == "json"
        reply = _reply_of(run, memory, args)
        data = dict(reply.data or {})
        # The tool's own warnings are about this call, e.g. about the encoding of a note.
        own_warnings = data.get("warnings", [])
        project_warnings = _warnings_about(memory, args.get("project"))
        all_warnings = [*own_warnings, *shown_warnings(project_warnings)]
        if all_warnings:
            data["warnings"] = all_warnings
        if args["as_json"] and not reply.is_error:
            return Reply(cut(data, TEXT_LIMIT), data)

        text = reply.text
        end = warning_lines(all_warnings if shows_warnings else own_warnings)
        # The text is shortened so that the warnings fit behind it.
        if len(text) + len(end) > TEXT_LIMIT:
            mark = " …"
            text = text[: TEXT_LIMIT - len(end) - len(mark)].rstrip() + mark
        if reply.is_error:
            text = _short_error(text)
            data["error"] = text + end
        return Reply(text + end, data, reply.is_error, hint=reply.hint, advice=reply.advice)

    return answer


def _reply_of(run: Run, memory: MemorySession, args: Arguments) -> Reply:
    """Run a tool. A MemorandaError becomes an error reply.

    The argument `project_id` is replaced by the name of the project.

    run: the function of the tool.
    args: its arguments.
    """
    try:
        identity = args.pop("project_id", "")
        if identity:
            args["project"] = _project_of_id(memory, identity)
        return run(memory, args)
    except OutsideError as error:
        # An error about an address does not know its project.
        project = error.project or short(args.get("project") or memory.default_project)
        return error_reply(OutsideError(error.path, project))
    except MemorandaError as error:
        return error_reply(error)


def _project_of_id(memory: MemorySession, identity: str) -> str:
    """Return the name of the project with this id. Raises ProjectNotFound."""
    names = sorted(project.name for project in memory.projects)
    for name in names:
        if project_id(name) == identity.strip().lower():
            return name
    raise ProjectNotFound(identity, names)


def _warnings_about(memory: MemorySession, project: str | None) -> Sequence[ProjectWarning]:
    """Return the warnings that matter to a call about a project.

    project: the name of the project. None means all projects.
    """
    if not project:
        return memory.warnings
    return [warning for warning in memory.warnings if warning.is_about(project)]


def project_id(name: str) -> str:
    """Return the id of a project, which other programs use instead of its name.

    It depends only on the name.
    """
    from uuid import NAMESPACE_URL, uuid5

    return str(uuid5(NAMESPACE_URL, f"memory://{name}"))


def shown_warnings(warnings: Sequence[str]) -> list[str]:
    """Return the first few warnings, each shortened to one line, and how many more there are."""
    shown = [short(warning, _WARNING_CHARACTERS) for warning in warnings[:_MAX_WARNINGS]]
    hidden_count = len(warnings) - _MAX_WARNINGS
    if hidden_count > 0:
        shown.append(f"{hidden_count} more warnings; `memory doctor` lists them.")
    return shown


def warning_lines(warnings: list[str]) -> str:
    """Return the lines with warnings below the text of a reply, or "" without warnings."""
    if warnings:
        return "\n" + "".join(f"\nWarning: {warning}" for warning in warnings)
    return ""


def _continue_conversation(memory: MemorySession, args: dict[str, str]) -> str:
    """Make a prompt with the best notes on `topic`, or the latest notes. Raises TimeframeError.

    They are of the named time frame. If none is named, they are of the last 7 days, or older if
    these days have no note on the topic.
    """
    topic = _argument(args, "topic")
    named_timeframe = _argument(args, "timeframe")
    timeframe = named_timeframe or _DEFAULT_TIMEFRAME
    hits = _search(memory, topic, timeframe)
    order_word = "best" if topic else "latest"
    opening = f"{counted(hits)} changed in the time frame {timeframe}, the {order_word} first:"
    may_be_older = bool(topic) and not named_timeframe
    # An older note on the topic is better than no note.
    if may_be_older and not hits:
        hits = _search(memory, topic, timeframe="")
        opening = (
            f"Nothing changed in the last {_DEFAULT_TIMEFRAME}; "
            f"{counted(hits, 'older note')}, the best first:"
        )
    # These two are for a prompt that says that nothing was found, and where.
    about = f' with "{short(topic, 200)}"' if topic else ""
    frame = "" if may_be_older else f" in the time frame {timeframe}"
    return _prompt_text(memory, "notes-continue.md", hits, opening, about=about, frame=frame)


def _argument(args: dict[str, str], name: str) -> str:
    """Return an argument of a prompt without blanks around it. "" if it is missing."""
    return (args.get(name) or "").strip()


def _search_knowledge_base(memory: MemorySession, args: dict[str, str]) -> str:
    """Make a prompt with the hits for `query`. Raises InvalidInput if it is empty, TimeframeError."""
    query = _argument(args, "query")
    timeframe = _argument(args, "timeframe")
    if not query:
        raise InvalidInput('Parameter `query` must be a text; got "".')
    hits = _search(memory, query, timeframe)
    shown_query = short(query, 200)
    frame_words = f" in the time frame {timeframe}" if timeframe else ""
    opening = f"{counted(hits)} found{frame_words}, the best first:"
    return _prompt_text(
        memory,
        "notes-search.md",
        hits,
        opening,
        query=shown_query,
        about=f' for "{shown_query}"',
        frame=frame_words,
    )


def _search(memory: MemorySession, text: str, timeframe: str) -> Hits:
    """Find the best notes for `text`, or the latest notes if it is "".

    timeframe: only notes changed in this time frame, e.g. `7d`. "" means all.
    """
    query = parse(text, now=memory.clock(), zone=memory.settings.zone)
    # The text may have a time, too: the later one counts.
    after = query.after
    if timeframe:
        since = memory.since(timeframe)
        after = since if after is None else max(since, after)
    return memory.search(query.replace(after=after), limit=_PROMPT_NOTES, vetted=True)


def author_words(memory: MemorySession, info: NoteInfo) -> list[str]:
    """Return the words on the author of a note, such as `by claude` and `unconfirmed`.

    Empty if the owner wrote or confirmed the note. A note that an agent moved has the agent.
    """
    return [mark.words for mark in memory.origin_marks(info)]


def author_data(memory: MemorySession, info: NoteInfo) -> Document:
    """Return the author of a note as JSON. Empty if the owner wrote or confirmed the note."""
    if memory.author_marks(info):
        return {"by": author(info.provenance), "confirmed": False}
    return {}


def _prompt_text(memory: MemorySession, name: str, hits: Hits, opening: str, **words: str) -> str:
    """Fill in the text of a prompt with as many notes as fit, or say that nothing was found.

    name: the file of the text.
    opening: the sentence before the notes.
    words: values for other placeholders.
    """
    if not hits:
        return TextTemplate(text_file("notes-nothing.md")).substitute(words).strip()
    template = TextTemplate(text_file(name))
    text_without_notes = template.substitute(words, found=opening, notes="")
    room = _PROMPT_CHARACTERS - len(text_without_notes)
    validity_marks = memory.validity_marks([hit.note for hit in hits])
    sections = []
    for hit in hits:
        observations = memory.observations(hit.note)[:_PROMPT_OBSERVATIONS]
        remarks = [*author_words(memory, hit.note)]
        mark = validity_marks.get(hit.note.row)
        # A passage has the mark before it. Facts are shown without one.
        if mark is not None and observations:
            remarks.append(mark)
        sections.append(note_section(hit, observations, memory.settings.zone, *remarks))
    separator = "\n\n"
    count = rows_that_fit([len(section) + len(separator) for section in sections], room)
    notes = separator.join(sections[:count])
    return template.substitute(words, found=opening, notes=notes).strip()


def _complete(
    memory: MemorySession, variable: str, beginning: str, other_values: dict[str, str]
) -> list[str]:
    """Complete a variable of the address: `project` by names of projects, `path` by permalinks.

    [] for another variable.

    variable: the name of the variable.
    beginning: the beginning of its value.
    other_values: the variables that already have a value.
    """
    if variable == "project":
        folded_beginning = beginning.casefold()
        names = [project.name for project in memory.projects]
        matching_names = [name for name in names if name.casefold().startswith(folded_beginning)]
        return matching_names[:_MAX_COMPLETIONS]
    if variable != "path":
        return []
    project_name = other_values.get("project") or ""
    if not project_name:
        return permalinks(memory, beginning, _MAX_COMPLETIONS)
    return _paths_in(memory, project_name, beginning)


def _paths_in(memory: MemorySession, project_name: str, beginning: str) -> list[str]:
    """Return the permalinks in a project that have this beginning, without the project's name.

    [] if there is no such project.

    project_name: the name in any case.
    """
    folded_names = [project.name.casefold() for project in memory.projects]
    if project_name.casefold() not in folded_names:
        return []
    name = memory.project(project_name).name
    try:
        query = Query(projects=(name,), address=f"{beginning}*", order="address")
        notes, _ = memory.list(query, limit=_MAX_COMPLETIONS)
    except (InvalidInput, OutsideError):
        # An invalid address has no completion.
        return []
    return [note.permalink.removeprefix(f"{name}/") for note in notes]


_TIMEFRAME = ("timeframe", "Only notes changed since, e.g. 2h, 7d, 2026-11-01", False)
PROMPTS = [
    Prompt(
        "continue_conversation",
        "Take up earlier work again, with the notes that bear on it.",
        _continue_conversation,
        [("topic", "What to continue; without it the latest notes", False), _TIMEFRAME],
    ),
    Prompt(
        "search_knowledge_base",
        "Answer a question from the notes.",
        _search_knowledge_base,
        [("query", "Words to look for", True), _TIMEFRAME],
    ),
]


def _note_text(memory: MemorySession, variables: dict[str, str]) -> str:
    """Return the text of the note at an address of the resource template."""
    return memory.read(variables["path"], project=variables["project"]).text


TEMPLATE = Template(
    uri="memory://{project}/{+path}",
    name="note",
    description="A note by project and path or permalink, percent-encoded.",
    mime="text/markdown",
    read=_note_text,
    complete=_complete,
)
