"""Wording and bounds of the note tools' replies: pages of lists, notes as data and as lines
(contract 000b, 7); the two prompts and the resource template (contract 000b, 9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from string import Template as TextTemplate
from typing import TYPE_CHECKING, Any

from memoranda.documents.cutting import compact, cut, fitting
from memoranda.documents.listed import Document, Listed
from memoranda.documents.wording import counted, note_section, short
from memoranda.engine.completion import permalinks
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

# Characters of a reply: more would crowd out a model's context.
TEXT_LIMIT = 20_000
ROOM = 17_000
"""Characters the entries of one reply may take; the rest is for its head, its foot and warnings."""
# Warnings of one reply, and the characters of each.
_WARNINGS = 5
_WARNING = 300
# Characters of an error; of a longer one the middle goes.
_ERROR = 2500
# Characters of a prompt, and the notes it quotes.
_PROMPT_LIMIT = 8000
_PROMPT_NOTES = 8
_PROMPT_OBSERVATIONS = 3
_FRAME = "7d"
# Values a completion has at most
_COMPLETIONS = 100
# An offset the index still counts to
_LAST_ROW = 2**62


def whole(args: Arguments, name: str, least: int, most: int | None = None) -> int:
    """The whole number `args[name]`, lowered to `most`. Raises InvalidInput below `least`."""
    value = args[name]
    if value < least:
        raise InvalidInput(f"Parameter `{name}` must be {least} or more; got {value}.")
    if most is None:
        return value
    return min(value, most)


@dataclass(frozen=True, slots=True)
class Page:
    """Which part of a list is asked for: `number` from 1, `size` entries."""

    number: int
    size: int

    @classmethod
    def of(cls, args: Arguments, most: int) -> Page:
        """The page `args` asks for, its size lowered to `most`. Raises InvalidInput below 1."""
        return cls(whole(args, "page", 1), whole(args, "page_size", 1, most))

    @property
    def offset(self) -> int:
        """How many entries come before this page."""
        return min((self.number - 1) * self.size, _LAST_ROW)

    @property
    def end(self) -> int:
        """How many entries there are up to the end of this page."""
        return self.offset + self.size

    def part(self, rows: Sequence[Document], total: int, *, is_lower_bound: bool = False) -> Listed:
        """The rows of this page as a part of the list."""
        return Listed.part(rows, total, self.offset, is_lower_bound=is_lower_bound)

    def fit(
        self,
        listed: Listed,
        lines: list[str],
        as_json: bool,
        asked_size: int | None = None,
    ) -> tuple[Page, Listed, list[str]]:
        """This page with the rows of `listed` and their `lines`, or a shorter one when they exceed
        ROOM. `asked_size` is how many rows the page should have, when not all of them are given."""
        fitted = listed.fit(lengths(listed.rows, lines, as_json), ROOM, self.offset)
        if len(fitted) >= (asked_size or len(lines)):
            page = self
        else:
            page = self.shorter(len(fitted))
        return page, listed.first(page.size, self.offset), lines[: page.size]

    def shorter(self, count: int) -> Page:
        """A page of at most `count` entries with the same first one. Its size divides the offset,
        so that the following pages miss nothing."""
        size = next(n for n in range(count, 0, -1) if self.offset % n == 0)
        return Page(self.offset // size + 1, size)

    def data(self, listed: Listed) -> dict[str, Any]:
        """The keys every list of this face carries beside its rows (contract 000b, 7)."""
        more = listed.is_lower_bound or self.offset + len(listed) < listed.total
        return {"total": listed.total, "page": self.number, "page_size": self.size, "more": more}

    def foot(self, listed: Listed) -> str:
        """The line that says what is shown and how to get the next page; "" when everything is."""
        total = listed.total
        if not listed.rows:
            if total:
                return f"Nothing on page {self.number}. Last page: {-(-total // self.size)}."
            return ""
        if len(listed) == total:
            return ""
        last = self.offset + len(listed)
        shown = f"Shown: {self.offset + 1}-{last} of {total}"
        if listed.is_lower_bound:
            shown += " or more"
        if listed.is_lower_bound or last < total:
            return f"{shown}. Next: page={self.number + 1}, page_size={self.size}."
        return f"{shown}."


def lengths(entries: Sequence[dict[str, Any]], rows: Sequence[str], as_json: bool) -> list[int]:
    """The length of each entry in the reply's text: of its line, or of its JSON if that is the
    text.
    """
    if as_json:
        return [len(compact(entry)) + 1 for entry in entries]
    return [len(row) + 1 for row in rows]


def body_of(memory: MemorySession, info: NoteInfo, *, is_listed: bool = True) -> tuple[str, str]:
    """The note's text below its frontmatter, as it is on disk now, and its checksum. In a list no
    access is counted, and what cannot be read is as it was last seen."""
    try:
        note = memory.read(info, count=not is_listed)
    except CannotRead:
        if not is_listed:
            raise
        text = memory.text_of(info)
        return text[split(text).body_at :].strip("\r\n"), info.checksum
    return note.text[note.body_at :].strip("\r\n"), note.checksum


def answering(run: Run, shows_warnings: bool = True) -> Run:
    """`run` with what all note tools share: warnings, `output_format: "json"`, bounded text.
    Without `shows_warnings` they are in the data only: the text is about one note. `run` sees
    `as_json` in its arguments."""

    def answer(memory: MemorySession, args: Arguments) -> Reply:
        args["as_json"] = args.pop("output_format", "text") == "json"
        reply = _asked(run, memory, args)
        data = dict(reply.data or {})
        own_warnings = data.get("warnings", [])
        listed = [*own_warnings, *shown_warnings(_warnings_about(memory, args.get("project")))]
        if listed:
            data["warnings"] = listed
        if args["as_json"] and not reply.is_error:
            return Reply(cut(data, TEXT_LIMIT), data)
        end = warning_lines(listed if shows_warnings else own_warnings)
        text = reply.text
        if len(text) + len(end) > TEXT_LIMIT:
            text = text[: TEXT_LIMIT - len(end) - 2].rstrip() + " …"
        if reply.is_error:
            # The remedy stands at its end
            if len(text) > _ERROR:
                text = f"{text[: _ERROR - 500]} … {text[-500:]}"
            data["error"] = text + end
        return Reply(text + end, data, reply.is_error, hint=reply.hint)

    return answer


def _asked(run: Run, memory: MemorySession, args: Arguments) -> Reply:
    """The reply of a tool. An error of ours becomes an error reply.

    In `args`, `project_id` is replaced by the name of the project.
    """
    try:
        identity = args.pop("project_id", "")
        if identity:
            args["project"] = _project_of_id(memory, identity)
        return run(memory, args)
    except OutsideError as error:
        # An address alone does not tell its project.
        project = error.project or short(args.get("project") or memory.default_project)
        return error_reply(OutsideError(error.path, project))
    except MemorandaError as error:
        return error_reply(error)


def _project_of_id(memory: MemorySession, identity: str) -> str:
    """The name of the project with an id. Raises ProjectNotFound."""
    names = [project.name for project in memory.projects]
    for name in names:
        if project_id(name) == identity.strip().lower():
            return name
    raise ProjectNotFound(identity, names)


def _warnings_about(memory: MemorySession, project: str | None) -> Sequence[ProjectWarning]:
    """The warnings for a call about a project, None for all: the trouble of others is not its own."""
    if not project:
        return memory.warnings
    return [warning for warning in memory.warnings if warning.is_about(project)]


def project_id(name: str) -> str:
    """The id a project has in other programs' arguments: the same in every process."""
    from uuid import NAMESPACE_URL, uuid5

    return str(uuid5(NAMESPACE_URL, f"memory://{name}"))


def shown_warnings(warnings: Sequence[str]) -> list[str]:
    """The warnings a reply carries: the first few, each on one line."""
    more = len(warnings) - _WARNINGS
    if more > 0:
        rest = [f"{more} more warnings; `memory doctor` lists them."]
    else:
        rest = []
    return [short(warning, _WARNING) for warning in warnings[:_WARNINGS]] + rest


def warning_lines(warnings: list[str]) -> str:
    """The lines below a reply's text that carry these warnings; "" for none."""
    if warnings:
        return "\n" + "".join(f"\nWarning: {warning}" for warning in warnings)
    return ""


def _continue_conversation(memory: MemorySession, args: dict[str, str]) -> str:
    """One message with the best notes for `topic`, or the latest ones. Raises TimeframeError."""
    topic, timeframe_given = ((args.get(name) or "").strip() for name in ("topic", "timeframe"))
    frame = timeframe_given or _FRAME
    hits = _search(memory, topic, frame)
    if topic:
        order_word = "best"
    else:
        order_word = "latest"
    opening = f"{counted(hits)} changed in the time frame {frame}, the {order_word} first:"
    # An older note on the topic is better than none
    if topic and not hits and not timeframe_given:
        hits = _search(memory, topic, "")
        opening = (
            f"Nothing changed in the last {_FRAME}; {counted(hits, 'older note')}, the best first:"
        )
    if topic:
        about = f' with "{short(topic, 200)}"'
    else:
        about = ""
    searched = f" in the time frame {frame}"
    return _message(
        memory,
        "notes-continue.md",
        hits,
        opening,
        about=about,
        frame=searched if timeframe_given or not topic else "",
    )


def _search_knowledge_base(memory: MemorySession, args: dict[str, str]) -> str:
    """One message with the hits for `query`. Raises InvalidInput without one, TimeframeError."""
    query, frame = ((args.get(name) or "").strip() for name in ("query", "timeframe"))
    if not query:
        raise InvalidInput('Parameter `query` must be a text; got "".')
    hits = _search(memory, query, frame)
    query_shown = short(query, 200)
    if frame:
        searched = f" in the time frame {frame}"
    else:
        searched = ""
    opening = f"{counted(hits)} found{searched}, the best first:"
    return _message(
        memory,
        "notes-search.md",
        hits,
        opening,
        query=query_shown,
        about=f' for "{query_shown}"',
        frame=searched,
    )


def _search(memory: MemorySession, text: str, frame: str) -> Hits:
    """The best notes for `text`, the latest without; only those changed in the time frame, if one
    is given.
    """
    query = parse(text, now=memory.clock(), zone=memory.settings.zone)
    if frame:
        since = memory.since(frame)
    else:
        since = None
    after = max(filter(None, (since, query.after)), default=None)
    return memory.search(query.replace(after=after), limit=_PROMPT_NOTES, vetted=True)


def _message(memory: MemorySession, name: str, hits: Hits, opening: str, **words: str) -> str:
    if not hits:
        return TextTemplate(text_file("notes-nothing.md")).substitute(words).strip()
    frame = TextTemplate(text_file(name))
    room = _PROMPT_LIMIT - len(frame.substitute(words, found=opening, notes=""))
    zone = memory.settings.zone
    blocks = [
        note_section(hit, memory.observations(hit.note)[:_PROMPT_OBSERVATIONS], zone)
        for hit in hits
    ]
    count = fitting([len(block) + 2 for block in blocks], room)
    return frame.substitute(words, found=opening, notes="\n\n".join(blocks[:count])).strip()


def _complete(
    memory: MemorySession, variable: str, beginning: str, other_names: dict[str, str]
) -> list[str]:
    """Projects by the beginning of their names; permalinks, without the project given, by theirs."""
    if variable == "project":
        names = [match.name for match in memory.projects]
        return [name for name in names if name.casefold().startswith(beginning.casefold())][
            :_COMPLETIONS
        ]
    if variable != "path":
        return []
    project = other_names.get("project") or ""
    if not any(match.name.casefold() == project.casefold() for match in memory.projects):
        if project:
            return []
        return permalinks(memory, beginning, _COMPLETIONS)
    name = memory.project(project).name
    try:
        query = Query(projects=(name,), address=f"{beginning}*", order="address")
        matches, _ = memory.list(query, limit=_COMPLETIONS)
    except (InvalidInput, OutsideError):
        # An invalid address has no completion.
        return []
    return [match.permalink.removeprefix(f"{name}/") for match in matches]


_TIMEFRAME = ("timeframe", "Only notes changed since, e.g. 2h, 7d, 2026-11-01", False)
PROMPTS = [
    Prompt(name, about, render, [argument, _TIMEFRAME])
    for name, about, render, argument in (
        (
            "continue_conversation",
            "Take up earlier work again, with the notes that bear on it.",
            _continue_conversation,
            ("topic", "What to continue; without it the latest notes", False),
        ),
        (
            "search_knowledge_base",
            "Answer a question from the notes.",
            _search_knowledge_base,
            ("query", "Words to look for", True),
        ),
    )
]


def _note_text(memory: MemorySession, variables: dict[str, str]) -> str:
    return memory.read(variables["path"], project=variables["project"]).text


_NOTE_URI = "memory://{project}/{+path}"
_NOTE = "A note by project and path or permalink, percent-encoded."
TEMPLATE = Template(_NOTE_URI, "note", _NOTE, "text/markdown", _note_text, _complete)
