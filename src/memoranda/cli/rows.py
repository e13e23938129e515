"""Listing notes of any project: selecting them, their rows, and the line about those left out.

A row has the note's id, its kind and its text. The kind of a memory is its category. The kind of
any other note is its project.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from memoranda.cli import output
from memoranda.cli.invocation import Invocation
from memoranda.cli.syntax import Names, Number, flag, option
from memoranda.documents.wording import kind, preview, row_text
from memoranda.engine.contents import contents
from memoranda.index.rows import NoteInfo
from memoranda.note.model import CATEGORY_PROJECT, MEMORY_PROJECTS, TRACE_PROJECT
from memoranda.text.unicode import one_line

if TYPE_CHECKING:
    from memoranda.engine.reading import ReadVerbs
    from memoranda.query import Query

# A category or project takes at most this many columns. So the text has half of 80 columns.
_KIND_COLUMNS = 12

project_option = option(
    "--project",
    "projects",
    multiple=True,
    type=Names("name", "project"),
    help="Only notes of this project; may be repeated [all].",
)
traces_flag = flag(
    "--traces", "Include traces of sessions and, in `search`, the transcripts of agents."
)


def limit_option(default: int) -> Callable[..., Any]:
    """Return the decorator that adds the option `--limit`, or `-n`."""
    return option(
        "--limit", "-n", type=Number(), default=default, help="How many at most; 0 = all."
    )


def within(
    memory: ReadVerbs, query: Query, projects: Sequence[str] = (), *, traces: bool = False
) -> Query:
    """Return `query` limited to these projects. Raises ProjectNotFound.

    projects: the names of the projects. Empty means all projects.
    traces: whether to include the project of traces, too.
    """
    names = [memory.project(name).name for name in projects]
    if not traces:
        return query.replace(projects=tuple(names) or None)
    if not names:
        names = [project.name for project in memory.projects]
    return query.replace(projects=tuple(dict.fromkeys([*names, TRACE_PROJECT])))


class ListedNotes(NamedTuple):
    """Notes that a command lists, and what it leaves out.

    infos: the listed notes.
    total: how many there are, listed or not.
    left_out: the notes that only further options would list, as `left_out` counts them.
    noun: the word for all of them: `memories` or `notes`. "" if nobody asked for it.
    """

    infos: Sequence[NoteInfo]
    total: int
    left_out: Sequence[str]
    noun: str


def list_notes(
    memory: ReadVerbs, query: Query, limit: int, *, needs_noun: bool = False
) -> ListedNotes:
    """List notes, and count what is left out, with only one look at the disk.

    limit: how many at most; 0 means all.
    needs_noun: whether to look whether all of them are memories.
    """

    def look() -> ListedNotes:
        infos, total = memory.list(query, limit=limit)
        noun = _noun_of(memory, query, total) if needs_noun else ""
        return ListedNotes(infos, total, left_out(memory, query), noun)

    return memory.at_once(look)


def left_out(memory: ReadVerbs, query: Query) -> list[str]:
    """Count the notes that only further options would list: `["3 archived", "12 traces"]`."""
    parts = []
    if not query.lists_archived and query.archived is not False:
        archived = memory.list(query.replace(archived=True), limit=1)[1]
        if archived:
            parts.append(f"{archived} archived (--archived)")
    has_traces = any(project.name == TRACE_PROJECT for project in memory.projects)
    if query.projects is None and has_traces:
        traces = memory.list(query.replace(projects=(TRACE_PROJECT,)), limit=1)[1]
        if traces:
            parts.append(f"{traces} traces (--traces)")
    return parts


def mention_left_out(parts: Sequence[str]) -> None:
    """Print on stderr how many notes a list leaves out, in one line.

    parts: these notes, as `left_out` counts them.
    """
    if parts:
        output.notice(f"Not shown: {', '.join(parts)}")


def noun(infos: Sequence[NoteInfo]) -> str:
    """Return the word for these notes: `memories`, or `notes` if any of them is not a memory."""
    if all(info.project in MEMORY_PROJECTS for info in infos):
        return "memories"
    return "notes"


def _noun_of(memory: ReadVerbs, query: Query, total: int) -> str:
    """Return the word for the `total` notes that `query` lists.

    This is `memories` if all of them are memories, else `notes`.
    """
    memories = query.replace(projects=(CATEGORY_PROJECT,))
    if query.projects is not None and CATEGORY_PROJECT not in query.projects:
        return "notes"
    if memory.list(memories, limit=1)[1] == total:
        return "memories"
    return "notes"


def cells(
    call: Invocation, memory: ReadVerbs, infos: Sequence[NoteInfo], length: int
) -> Iterator[tuple[str, str, str, str]]:
    """Yield (id, phase or type, kind, text) of each note.

    The text begins with a remark if the note is not always valid.

    length: how many characters of the text a program gets. A terminal gets the text in one line.
    """
    marks = memory.validity_marks(infos)
    for info, content in zip(infos, contents(memory, infos), strict=True):
        text = row_text(info, content)
        mark = marks.get(info.row, "")
        phase = info.phase or info.type
        if call.on_terminal:
            # No terminal shows more of one line.
            text = one_line(text[:1000])
            if mark:
                text = f"({mark}) {text}"
            yield info.id[:8], output.fit(phase, 9), output.fit(kind(info), _KIND_COLUMNS), text
        else:
            # Programs find the text at the beginning of its cell.
            text = preview(text, length)
            if mark:
                text = f"{text} ({mark})"
            yield info.id[:8], phase, kind(info), text
