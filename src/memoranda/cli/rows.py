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
from memoranda.documents.wording import kind, preview, row_text, unfilled_files
from memoranda.engine.contents import contents
from memoranda.index.rows import NoteInfo
from memoranda.note.model import BANK_PROJECT, CATEGORY_PROJECT, MEMORY_PROJECTS, TRACE_PROJECT
from memoranda.text.unicode import one_line

if TYPE_CHECKING:
    from memoranda.engine.reading import ReadVerbs
    from memoranda.query import Query

# A category or project takes at most this many columns. So the text has half of 80 columns.
_KIND_COLUMNS = 12
# No terminal shows more characters of one line.
_MOST_LINE_CHARACTERS = 1_000

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


def in_projects(
    memory: ReadVerbs, query: Query, projects: Sequence[str] = (), *, traces: bool = False
) -> Query:
    """Return `query` limited to these projects. Raises ProjectNotFound.

    projects: the names of the projects. Empty means all projects.
    traces: whether to include the project of traces, too.
    """
    names = [memory.project(name).name for name in projects]
    if not traces:
        # Without names, a query is for all projects except the project of traces.
        return query.replace(projects=tuple(names) or None)
    if not names:
        names = [project.name for project in memory.projects]
    names_without_repeats = tuple(dict.fromkeys([*names, TRACE_PROJECT]))
    return query.replace(projects=names_without_repeats)


class ListedNotes(NamedTuple):
    """Notes that a command lists, and what it leaves out.

    infos: the listed notes.
    total: how many notes match the query, listed or not.
    left_out: how many notes only further options would list: `["12 traces (--traces)"]`.
    noun: the word for all of them: `memories` or `notes`. "" if it was not needed.
    """

    infos: Sequence[NoteInfo]
    total: int
    left_out: Sequence[str]
    noun: str


def list_notes(
    memory: ReadVerbs,
    query: Query,
    limit: int,
    *,
    needs_noun: bool = False,
    with_unfilled: bool = False,
) -> ListedNotes:
    """List notes, and count the notes that are left out.

    limit: how many at most; 0 means all.
    needs_noun: whether the result must have the word for all of them: `memories` or `notes`.
    with_unfilled: whether to list the files of memory banks that nobody has filled yet.
    """

    def list_and_count() -> ListedNotes:
        unfilled_count = 0
        if with_unfilled:
            infos, total = memory.list(query, limit=limit)
        else:
            infos, total, unfilled_count = memory.list_filled(query, limit=limit)
        counts = left_out(memory, query)
        if unfilled_count:
            counts.insert(0, f"{unfilled_files(unfilled_count)} (--project {BANK_PROJECT})")
        noun = _noun_of(memory, query, total) if needs_noun else ""
        return ListedNotes(infos, total, counts, noun)

    # `at_once` compares the disk with the index once, before all of these queries.
    return memory.at_once(list_and_count)


def left_out(memory: ReadVerbs, query: Query) -> list[str]:
    """Return how many notes only further options would list.

    For example, `["3 archived (--archived)", "12 traces (--traces)"]`. [] without such notes.
    """
    counts = []
    # False means that the caller has asked to leave archived notes out, and need not be told.
    is_asked_to_hide = query.archived is False
    if not query.lists_archived and not is_asked_to_hide:
        _, archived_count = memory.list(query.replace(archived=True), limit=1)
        if archived_count:
            counts.append(f"{archived_count} archived (--archived)")
    has_traces = any(project.name == TRACE_PROJECT for project in memory.projects)
    if query.projects is None and has_traces:
        _, trace_count = memory.list(query.replace(projects=(TRACE_PROJECT,)), limit=1)
        if trace_count:
            counts.append(f"{trace_count} traces (--traces)")
    return counts


def mention_left_out(counts: Sequence[str]) -> None:
    """Print on stderr how many notes a list leaves out, in one line.

    counts: their numbers, as `left_out` returns them. If it is empty, nothing is printed.
    """
    if counts:
        output.notice(f"Not shown: {', '.join(counts)}")


def noun(infos: Sequence[NoteInfo]) -> str:
    """Return the word for these notes: `memories`, or `notes` if any of them is not a memory."""
    if all(info.project in MEMORY_PROJECTS for info in infos):
        return "memories"
    return "notes"


def _noun_of(memory: ReadVerbs, query: Query, total: int) -> str:
    """Return the word for the notes that a query lists: `memories` if all of them are, else `notes`.

    total: how many notes the query lists.
    """
    if query.projects is not None and CATEGORY_PROJECT not in query.projects:
        return "notes"
    memory_query = query.replace(projects=(CATEGORY_PROJECT,))
    _, memory_count = memory.list(memory_query, limit=1)
    return "memories" if memory_count == total else "notes"


def cells(
    call: Invocation, memory: ReadVerbs, infos: Sequence[NoteInfo], length: int
) -> Iterator[tuple[str, str, str, str]]:
    """Yield (id, phase or type, kind, text) of each note.

    The text has a mark if the note is not always valid.

    length: how many characters of the text a program gets. A terminal gets the text in one line.
    """
    marks = memory.validity_marks(infos)
    for info, content in zip(infos, contents(memory, infos), strict=True):
        text = row_text(info, content)
        mark = marks.get(info.row, "")
        phase = info.phase or info.type
        if call.on_terminal:
            text = one_line(text[:_MOST_LINE_CHARACTERS])
            if mark:
                text = f"({mark}) {text}"
            yield info.id[:8], output.fit(phase, 9), output.fit(kind(info), _KIND_COLUMNS), text
        else:
            # Programs find the text at the beginning of its cell, so the mark comes last.
            text = preview(text, length)
            if mark:
                text = f"{text} ({mark})"
            yield info.id[:8], phase, kind(info), text
