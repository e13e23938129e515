"""The commands `list`, `recent`, `search`, `context`, `backlinks` and `orphans` (contract 001, 3 and
4).
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from memoranda import documents
from memoranda.cli import output
from memoranda.cli.invocation import Invocation
from memoranda.cli.memory_commands import (
    as_of_moment,
    as_of_option,
    category_option,
    moment_of,
    scope_option,
    tags_option,
)
from memoranda.cli.rows import (
    ListedNotes,
    cells,
    limit_option,
    list_notes,
    mention_left_out,
    noun,
    project_option,
    traces_flag,
    within,
)
from memoranda.cli.syntax import Names, Number, Text, Usage, command, flag, option
from memoranda.clock import stamp
from memoranda.documents.wording import minute, origin, score_line
from memoranda.index.rows import Hits, NoteInfo
from memoranda.note.model import PHASES, TRACE_PROJECT
from memoranda.query import Query, day, memory_query, narrowed
from memoranda.text.unicode import one_line

if TYPE_CHECKING:
    from memoranda.engine.reading import ReadVerbs
    from memoranda.transcripts.search import TraceHit

DEFAULT_TOKENS = 2_000
# A limit that is higher than the number of notes of any home.
NO_LIMIT = 1 << 30
_ROW = "{:<8} {:<10} {:<10} {}"
_LIST_ROW = "{:<8} {:<10} {:<10} {:<10} {:<20} {}"
_DAY = 'YYYY-MM-DD, or e.g. yesterday, 7d, "last week", 上周.'
_FRAMES = "Use e.g. 2h, 7d, yesterday, last week or 2026-11-01."
# How many similar notes are offered if no note matches.
_NEAREST_NOTES = 5
# How many passages of transcripts are shown.
_PASSAGES = 10
# A longer question is not repeated in a reply.
_MAX_REPEATED_CHARACTERS = 120
# A text with fewer words than this is not a question.
_WORDS_OF_QUESTION = 3
# On a terminal with at least this many columns, a list has all of its columns.
_WIDE_COLUMNS = 110


phase_option = option(
    "--phase", type=Names("phase", lambda _: PHASES), help="inbox, organized or archived."
)
archived_flag = flag("--archived", "Only archived memories.")
_by_option = option(
    "--by",
    metavar="WHO",
    help="Only notes by this writer: owner, the name of an agent, import, web or file.",
)
_client_option = option(
    "--client",
    help="Only notes written with this program: cli, socket, or the name of an MCP client.",
)


@command(
    "list",
    keys=("memories", "shown", "total"),
    example="memory list --category preferences --limit 10",
)
@project_option
@phase_option
@category_option()
@tags_option("All of these tags.")
@scope_option
@option("--source", type=Names("text", "source"), help="Only from this source.")
@archived_flag
@traces_flag
@as_of_option
@_by_option
@_client_option
@limit_option(50)
def list_(
    call: Invocation,
    *,
    limit: int,
    projects: tuple[str, ...],
    archived: bool,
    traces: bool,
    as_of: Text,
    by: Text,
    client: Text,
    **filters: Any,
) -> None:
    """List the notes of the whole memory, newest first.

    Archived notes and traces of sessions are only counted, below the list. Options show them.
    """
    query = memory_query(**filters, archived=archived or None).replace(by=by, client=client)
    with call.reading() as memory:
        query = within(memory, query, projects, traces=traces)
        query = query.replace(as_of=as_of_moment(memory, as_of))
        listed = list_notes(memory, query, limit, needs_noun=not call.json)
        if call.json:
            call.listed("memories", documents.notes(memory, listed.infos, listed.total))
        elif not listed.infos:
            call.answer("No memories found.")
        else:
            _show_list(call, memory, listed.infos, _showing(listed))
        mention_left_out(listed.left_out)


def _showing(listed: ListedNotes) -> str:
    """Return the line below a list: `Showing 50 of 300 memories`."""
    return f"Showing {len(listed.infos)} of {listed.total} {listed.noun}"


def _show_list(
    call: Invocation,
    memory: ReadVerbs,
    infos: Sequence[NoteInfo],
    *last: str,
    changed: bool = False,
) -> None:
    """Print notes as a table. On a narrow terminal, it has fewer columns.

    last: lines below the table.
    changed: whether to show when the notes were changed, and not when they were created.
    """
    zone = memory.settings.zone
    word = "Changed" if changed else "Created"
    is_narrow = call.on_terminal and output.columns() < _WIDE_COLUMNS
    rows: list[tuple[str, ...]] = []
    for info, (ref, phase, kind, text) in zip(infos, cells(call, memory, infos, 40), strict=True):
        time = minute(info.changed if changed else info.created, zone)
        if is_narrow:
            rows.append((ref, kind, time[:10], text))
        else:
            rows.append((ref, phase, kind, origin(info), time, text))
    if is_narrow:
        return call.table(("ID", "Category", word, "Text"), rows, *last)
    head = ("ID", "Phase", "Category", "Source", word, "Preview")
    call.table(head, rows, *last, form=_LIST_ROW, rule=100)


@command("recent", keys=("since", "memories", "shown", "total"), example="memory recent -n 5")
@option("--since", default="7d", metavar="DATE", help="E.g. 2h, 7d, yesterday, 2026-05-07.")
@project_option
@tags_option("All of these tags.")
@traces_flag
@limit_option(20)
def recent(
    call: Invocation,
    *,
    since: str,
    projects: tuple[str, ...],
    tags: tuple[str, ...],
    traces: bool,
    limit: int,
) -> None:
    """List the notes that anybody added or changed lately, the latest change first."""
    with call.reading() as memory:
        start = moment_of(memory.since, since, "--since date", _FRAMES)
        query = within(memory, Query(tags=tuple(tags), after=start), projects, traces=traces)
        listed = list_notes(memory, query, limit, needs_noun=not call.json)
        if call.json:
            call.listed(
                "memories", documents.notes(memory, listed.infos, listed.total), since=stamp(start)
            )
        elif not listed.infos:
            call.answer(f"Nothing changed since {minute(start, memory.settings.zone)}.")
        else:
            _show_list(call, memory, listed.infos, _showing(listed), changed=True)
        mention_left_out(listed.left_out)


@command(
    "search",
    "QUERY...",
    keys=("query", "memories", "total"),
    example='memory search dark mode --from "last week"',
)
@project_option
@tags_option("All of these tags.")
@scope_option
@phase_option
@category_option()
@option("--from", "first", metavar="DAY", help=f"Created on this day or later: {_DAY}")
@option("--to", "last", metavar="DAY", help="Created on this day or earlier.")
@archived_flag
@traces_flag
@as_of_option
@_by_option
@_client_option
@limit_option(0)
@flag("--ranked", "Search words in title, tags and text; best first.")
@option(
    "--max-tokens",
    "most",
    type=Number(),
    metavar="N",
    help="With --ranked: show the best hits that fit into N tokens.",
)
@flag("--explain", "With --ranked: also show what each feature added to a score (docs/ranking.md).")
@click.option("--all", "finds_all", is_flag=True, hidden=True)
def search(
    call: Invocation,
    *words: str,
    projects: tuple[str, ...],
    first: Text,
    last: Text,
    as_of: Text,
    limit: int,
    ranked: bool,
    archived: bool,
    traces: bool,
    most: int | None,
    explain: bool,
    by: Text,
    client: Text,
    finds_all: bool,
    **filters: Any,
) -> None:
    """Find notes whose text or title contains QUERY, newest first. An empty QUERY finds all.

    The words of QUERY are joined by blanks. Words such as `tag:work`, `project:notes`, `type:`,
    `status:` and `before:` are filters. Letters are compared as people type them: `strasse` finds
    Straße. Archived notes are found with --archived; with --ranked they come after the others. If no
    note contains the words, notes with some of them are shown, below a line on stderr. With --ranked
    and --limit, JSON has `total_is_lower_bound` if more than 10,000 notes match.
    """
    if not ranked:
        if most is not None:
            raise Usage("--max-tokens needs --ranked")
        if explain:
            raise Usage("--explain needs --ranked")
    written = " ".join(words)
    query = memory_query(**filters, archived=archived or None).replace(by=by, client=client)
    with call.reading() as memory:
        zone = memory.settings.zone
        now = memory.clock()
        query = within(memory, query, projects, traces=traces).replace(
            created_from=day(first, "--from", zone, now=now),
            created_until=day(last, "--to", zone, 1, now),
            as_of=as_of_moment(memory, as_of),
        )
        # Words such as `tag:work` become filters, and leave the text.
        query, text = narrowed(query, written, now=now, zone=zone)
        if ranked:
            infos, hits, parts = _ranked_notes(memory, query, text, limit, most, explain=explain)
        else:
            listed = list_notes(memory, query.replace(contains=text or None), limit)
            infos = listed.infos
            hits = Hits([], listed.total)
            parts = listed.left_out

        # `parts` are the notes that only further options would show.
        passages = _in_transcripts(memory, written, limit) if traces else []
        if call.json:
            _search_document(call, memory, written, infos, hits, passages)
        else:
            _show_found(call, memory, query, text, infos, hits)
            if explain:
                _show_scores(call, hits)
            _show_passages(call, memory, passages)
        mention_left_out(parts)


def _show_scores(call: Invocation, hits: Hits) -> None:
    """Print for each hit how its score came about (`--explain`)."""
    if hits.hits:
        call.answer("\n".join(["", *map(score_line, hits)]))


def _in_transcripts(memory: ReadVerbs, text: str, limit: int) -> list[TraceHit]:
    """Search the transcripts of agents. Nothing is found if the owner does not allow to read them.

    limit: how many hits to return at most; 0 means _PASSAGES.
    """
    from memoranda.transcripts.tier import find_traces

    return find_traces(memory, text, limit=limit or _PASSAGES)


def _show_passages(call: Invocation, memory: ReadVerbs, passages: Sequence[TraceHit]) -> None:
    """Print the passages that were found in transcripts. Without any, print nothing."""
    if passages:
        from memoranda.cli.transcript_commands import hit_lines

        lines = ["", "In transcripts (memory transcripts show REF):", *hit_lines(memory, passages)]
        call.answer("\n".join(lines))


def _search_document(
    call: Invocation,
    memory: ReadVerbs,
    text: str,
    infos: Sequence[NoteInfo],
    hits: Hits,
    passages: Sequence[TraceHit],
) -> None:
    """Answer a search with a JSON document.

    text: the query as the person wrote it.
    passages: the hits in transcripts.
    """
    listed = documents.found_notes(memory, infos, hits)
    if passages:
        transcript_keys = {"transcripts": [hit.row() for hit in passages]}
    else:
        transcript_keys = {}
    call.document(
        query=text, memories=listed.rows, total=listed.total, **hits.bound, **transcript_keys
    )


class _RankedNotes(NamedTuple):
    """Notes found by a ranked search.

    infos: the notes, the best first.
    hits: the hits with these notes. If the text is blank, they only have the total.
    left_out: for people, how many notes further options would find: `3 traces (--traces)`.
    """

    infos: Sequence[NoteInfo]
    hits: Hits
    left_out: Sequence[str]


def _ranked_notes(
    memory: ReadVerbs,
    query: Query,
    text: str,
    limit: int,
    max_tokens: int | None,
    *,
    explain: bool,
) -> _RankedNotes:
    """Search for a text, by rank. A blank text finds all notes.

    limit: how many notes at most; 0 means all.
    max_tokens: how many tokens all passages together may have. None means any number.
    explain: whether each hit says how its score came about.
    """

    def look() -> _RankedNotes:
        """Search once. Everything is read from one state of the index (see `at_once`)."""
        if text.strip():
            hits = memory.search(
                query.replace(text=text),
                limit=limit or NO_LIMIT,
                max_tokens=max_tokens or None,
                explain=explain,
            )
            infos = [hit.note for hit in hits]
        else:
            infos, total = memory.list(query.replace(contains=text or None), limit=limit)
            hits = Hits([], total)
        return _RankedNotes(infos, hits, _traces_left_out(memory, query.replace(text=text)))

    # In one `at_once`, the disk is compared with the index only once for all searches.
    return memory.at_once(look)


def _traces_left_out(memory: ReadVerbs, query: Query) -> list[str]:
    """Count the traces that a ranked search of all projects would find with a further option."""
    has_traces = any(project.name == TRACE_PROJECT for project in memory.projects)
    if query.projects is not None or not has_traces:
        return []
    total = memory.search(query.replace(projects=(TRACE_PROJECT,)), limit=1).total
    return [f"{total} traces (--traces)"] if total else []


def _count_text(hits: Hits) -> str:
    """Return how many notes match: `12`, or `10000 or more`."""
    return f"{hits.total} or more" if hits.is_lower_bound else str(hits.total)


def _show_found(
    call: Invocation,
    memory: ReadVerbs,
    query: Query,
    text: str,
    infos: Sequence[NoteInfo],
    hits: Hits,
) -> None:
    """Print the notes that a search found, for people and pipes.

    If it found nothing, print notes with some of the words.
    """
    total = _count_text(hits)
    # Longer texts are questions. Nobody expects a note with all words of a question.
    if hits.relaxed and infos and len(text.split()) < _WORDS_OF_QUESTION:
        output.notice(f'No note holds all of "{one_line(text)}". Those that hold some, best first:')
    if not infos and text.strip():
        infos = _nearest(memory, query, text)
        total = str(len(infos))
        if infos:
            output.notice(f'Nothing holds "{one_line(text)}". Nearest by words:')
    if not infos:
        return call.answer("No matching memories found.")

    foot = f"Found: {total} {noun(infos)}"
    if call.on_terminal:
        head = ("ID", "Phase", "Category", "Text")
        return call.table(head, list(cells(call, memory, infos, 0)), foot)
    lines = [output.table_row(_ROW, *row) for row in cells(call, memory, infos, 80)]
    call.answer("\n".join([*lines, "", foot]))


def _nearest(memory: ReadVerbs, query: Query, text: str) -> list[NoteInfo]:
    """Return a few notes with all words of a text or, if no note has all of them, with some.

    Archived notes are only included if the query asks for them.
    """
    from memoranda.text.tokens import pairs, words

    if query.archived is None and not query.lists_archived:
        query = query.replace(archived=False)
    parts = list(chain.from_iterable(map(pairs, words(text))))
    any_part = " OR ".join(f'"{part}"' for part in parts)
    for words_to_find in (text, any_part):
        if words_to_find:
            hits = memory.search(query.replace(text=words_to_find), limit=_NEAREST_NOTES)
            if hits.hits:
                return [hit.note for hit in hits]
    return []


@command(
    "context",
    "QUESTION...",
    keys=("question", "context", "passed_over"),
    example="memory context what does Anna like",
)
@option(
    "--max-tokens",
    type=Number(),
    default=DEFAULT_TOKENS,
    help="The most tokens to print; a token is about 4 characters.",
)
@project_option
@as_of_option
def context(
    call: Invocation, *words: str, max_tokens: int, projects: tuple[str, ...], as_of: Text
) -> None:
    """Print the passages that best answer QUESTION, with the date and address of each note.

    If notes were found but none is near enough to the question, it says how to see them.
    """
    with call.reading() as memory:
        names = tuple(memory.project(name).name for name in projects)
        question = " ".join(words)
        token_limit = max_tokens or DEFAULT_TOKENS
        moment = as_of_moment(memory, as_of)
        result = memory.context_for(
            question, max_tokens=token_limit, projects=names or None, as_of=moment
        )
        number = 0
        if not result:
            number = memory.passed_over(question, projects=names or None, as_of=moment)
        call.answer(
            result or _nothing_near(question, number, token_limit),
            question=question,
            context=result,
            passed_over=number,
        )


def _nothing_near(question: str, number: int, token_limit: int) -> str:
    """Say that a context is empty, and how to see the notes that are not near enough.

    number: how many such notes a search finds.
    """
    if not number:
        return f"Nothing found that fits into {token_limit} tokens."
    if len(question) > _MAX_REPEATED_CHARACTERS:
        words = "QUESTION"
    else:
        words = shlex.quote(question)
    if number == 1:
        notes = "a note"
    else:
        notes = f"{number} notes"
    return (
        f"No note is near enough to answer that. To see {notes} with some of its words:"
        f" memory search --ranked {words}"
    )


@command("backlinks", "ID", keys=("id", "memories"), example="memory backlinks 5a1f")
@project_option
def backlinks(call: Invocation, ref: str, *, projects: tuple[str, ...]) -> None:
    """List the notes that link to a note, newest first."""
    with call.memory(looks_once=True) as memory:
        info = memory.find_any(ref)
        names = {memory.project(name).name for name in projects}
        infos = [
            source
            for source in memory.backlinks(info)
            if source.project in names or (not names and source.project != TRACE_PROJECT)
        ]
        if call.json:
            return call.document(id=info.id, memories=documents.notes(memory, infos).rows)
        if not infos:
            return call.answer("No backlinks found.")
        rows = list(cells(call, memory, infos, 50))
        last = f"Found: {len(infos)} backlinks"
        call.table(("ID", "Phase", "Category", "Preview"), rows, last, form=_ROW, rule=80)


@command("orphans", keys=("memories", "shown", "total"), example="memory orphans --project notes")
@project_option
@limit_option(50)
def orphans(call: Invocation, *, projects: tuple[str, ...], limit: int) -> None:
    """List the notes that link to no note and that no note links to, newest first."""
    from memoranda.engine.link_walk import relations

    with call.memory(looks_once=True) as memory:
        query = within(memory, Query(order="created"), projects)
        linked: set[int] = set()
        for source, target, _ in relations(memory):
            linked |= {source, target}
        notes, _ = memory.list(query, limit=0)
        orphan_notes = [info for info in notes if info.row not in linked]
        infos = orphan_notes[: limit or None]
        if call.json:
            return call.listed("memories", documents.notes(memory, infos, len(orphan_notes)))
        if not infos:
            return call.answer("Every note is linked.")
        _show_list(
            call, memory, infos, f"Showing {len(infos)} of {len(orphan_notes)} {noun(orphan_notes)}"
        )
