"""The commands `list`, `recent`, `search`, `context`, `backlinks` and `orphans` (contract 001, 3 and
4).
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import suppress
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
    in_projects,
    limit_option,
    list_notes,
    mention_left_out,
    noun,
    project_option,
    traces_flag,
)
from memoranda.cli.syntax import Names, Number, Text, Usage, command, flag, option
from memoranda.clock import stamp
from memoranda.documents.wording import minute, origin, score_line
from memoranda.errors import ConfigError
from memoranda.index.rows import Hits, NoteInfo
from memoranda.note.model import PHASES, TRACE_PROJECT
from memoranda.query import Query, day, memory_query, narrowed
from memoranda.text.unicode import flat, one_line

if TYPE_CHECKING:
    from memoranda.engine.reading import ReadVerbs
    from memoranda.transcripts.search import TraceHit

# The tokens of the passages that `context` prints, if it is called without a number.
DEFAULT_TOKENS = 2_000
# A limit that is higher than the number of notes of any home.
NO_LIMIT = 1 << 30
# Templates of a row in a pipe: of a list of hits, and of a list of notes with source and time.
_HIT_ROW = "{:<8} {:<10} {:<10} {}"
_LIST_ROW = "{:<8} {:<10} {:<10} {:<10} {:<20} {}"
_DAY_HELP = 'YYYY-MM-DD, or e.g. yesterday, 7d, "last week", 上周.'
_TIME_HINT = "Use e.g. 2h, 7d, yesterday, last week or 2026-11-01."
# How many similar notes are offered if no note matches.
_NEAREST_NOTES = 5
# At most this many passages of transcripts are shown, unless `--limit` names another number.
_MOST_PASSAGES = 10
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
    # `filters` has the options that `memory_query` knows: phase, category, tags, scope and source.
    # There, None hides archived notes unless the phase asks for them, and False would always do so.
    query = memory_query(**filters, archived=archived or None).replace(by=by, client=client)
    with call.reading() as memory:
        query = in_projects(memory, query, projects, traces=traces)
        query = query.replace(as_of=as_of_moment(memory, as_of))
        listed_notes = list_notes(memory, query, limit, needs_noun=not call.json)
        if call.json:
            call.answer_list(
                "memories", documents.notes(memory, listed_notes.infos, listed_notes.total)
            )
        elif not listed_notes.infos:
            call.answer("No memories found.")
        else:
            _show_list(call, memory, listed_notes.infos, _count_line(listed_notes))
        mention_left_out(listed_notes.left_out)


def _count_line(listed_notes: ListedNotes) -> str:
    """Return the line below a list: `Showing 50 of 300 memories`."""
    return f"Showing {len(listed_notes.infos)} of {listed_notes.total} {listed_notes.noun}"


def _show_list(
    call: Invocation,
    memory: ReadVerbs,
    infos: Sequence[NoteInfo],
    *last_lines: str,
    shows_changed: bool = False,
) -> None:
    """Print notes as a table. On a narrow terminal, it has fewer columns.

    last_lines: lines below the table.
    shows_changed: whether to show when the notes were changed, and not when they were created.
    """
    time_title = "Changed" if shows_changed else "Created"
    is_narrow = call.on_terminal and output.columns() < _WIDE_COLUMNS
    rows: list[tuple[str, ...]] = []
    for info, note_cells in zip(infos, cells(call, memory, infos, 40), strict=True):
        ref, phase, kind, text = note_cells
        time = minute(info.changed if shows_changed else info.created, memory.settings.zone)
        if is_narrow:
            day_of_time = time[:10]
            rows.append((ref, kind, day_of_time, text))
        else:
            rows.append((ref, phase, kind, origin(info), time, text))
    if is_narrow:
        return call.table(("ID", "Category", time_title, "Text"), rows, *last_lines)
    head = ("ID", "Phase", "Category", "Source", time_title, "Preview")
    call.table(head, rows, *last_lines, form=_LIST_ROW, rule=100)


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
        start = moment_of(memory.since, since, "--since date", _TIME_HINT)
        query = in_projects(memory, Query(tags=tuple(tags), after=start), projects, traces=traces)
        listed_notes = list_notes(memory, query, limit, needs_noun=not call.json)
        if call.json:
            call.answer_list(
                "memories",
                documents.notes(memory, listed_notes.infos, listed_notes.total),
                since=stamp(start),
            )
        elif not listed_notes.infos:
            call.answer(f"Nothing changed since {minute(start, memory.settings.zone)}.")
        else:
            _show_list(
                call, memory, listed_notes.infos, _count_line(listed_notes), shows_changed=True
            )
        mention_left_out(listed_notes.left_out)


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
@option("--from", "first", metavar="DAY", help=f"Created on this day or later: {_DAY_HELP}")
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
    "max_tokens",
    type=Number(least=1),
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
    max_tokens: int | None,
    explain: bool,
    by: Text,
    client: Text,
    finds_all: bool,
    **filters: Any,
) -> None:
    """Find notes whose text or title contains QUERY, newest first. An empty QUERY finds all.

    The words of QUERY are joined by blanks. Words such as `tag:work`, `project:notes`, `type:`,
    `status:` and `before:` are filters. Spelling is compared as people type it: `strasse` finds
    Straße. Archived notes are found with --archived; with --ranked they come after the others. If
    no note contains all words, notes with some of them are shown, and a line on stderr says so.
    With --ranked and --limit, JSON has `total_is_lower_bound` if more than 10,000 notes match.
    """
    if max_tokens is not None and not ranked:
        raise Usage("--max-tokens needs --ranked")
    if explain and not ranked:
        raise Usage("--explain needs --ranked")
    typed_query = " ".join(words)
    query = memory_query(**filters, archived=archived or None).replace(by=by, client=client)
    with call.reading() as memory:
        zone = memory.settings.zone
        now = memory.clock()
        query = in_projects(memory, query, projects, traces=traces).replace(
            created_from=day(first, "--from", zone, now=now),
            created_until=day(last, "--to", zone, after=1, now=now),
            as_of=as_of_moment(memory, as_of),
        )
        # Words such as `tag:work` become filters. `text` has the other words.
        query, text = narrowed(query, typed_query, now=now, zone=zone)
        if ranked:
            found_notes = _ranked_notes(
                memory, query, text, limit=limit, max_tokens=max_tokens, explain=explain
            )
        else:
            found_notes = _containing_notes(memory, query, text, limit)
        passages = _passages_of_transcripts(memory, typed_query, limit) if traces else []
        if call.json:
            _search_document(call, memory, typed_query, found_notes, passages)
        else:
            _show_found(call, memory, query, text, found_notes)
            if explain:
                _show_scores(call, found_notes.hits)
            _show_passages(call, memory, passages)
        mention_left_out(found_notes.left_out)


def _show_scores(call: Invocation, hits: Hits) -> None:
    """Print how much each feature added to the score of each hit (`--explain`)."""
    if hits.hits:
        call.answer("\n".join(["", *map(score_line, hits)]))


def _passages_of_transcripts(memory: ReadVerbs, text: str, limit: int) -> list[TraceHit]:
    """Search the transcripts of agents. Returns [] if the owner has not allowed reading them.

    limit: how many hits to return at most; 0 means _MOST_PASSAGES.
    """
    from memoranda.transcripts.tier import find_traces

    return find_traces(memory, text, limit=limit or _MOST_PASSAGES)


def _show_passages(call: Invocation, memory: ReadVerbs, passages: Sequence[TraceHit]) -> None:
    """Print the passages that were found in transcripts. Without any, print nothing."""
    if passages:
        from memoranda.cli.transcript_commands import hit_lines

        lines = ["", "In transcripts (memory transcripts show REF):", *hit_lines(memory, passages)]
        call.answer("\n".join(lines))


def _search_document(
    call: Invocation,
    memory: ReadVerbs,
    typed_query: str,
    found_notes: _FoundNotes,
    passages: Sequence[TraceHit],
) -> None:
    """Answer a search with a JSON document.

    typed_query: the query as the person typed it.
    passages: the hits in transcripts.
    """
    listed = documents.found_notes(memory, found_notes.infos, found_notes.hits)
    document: dict[str, Any] = {
        "query": typed_query,
        "memories": listed.rows,
        "total": listed.total,
        **found_notes.hits.bound,
    }
    if passages:
        document["transcripts"] = [hit.row() for hit in passages]
    call.document(**document)


class _FoundNotes(NamedTuple):
    """The result of a search.

    infos: the notes. A ranked search has the best first, any other the newest.
    hits: the hits of a ranked search with these notes. Without ranking, they only have the total.
    left_out: for people, how many notes further options would find: `3 traces (--traces)`.
    """

    infos: Sequence[NoteInfo]
    hits: Hits
    left_out: Sequence[str]


def _containing_notes(memory: ReadVerbs, query: Query, text: str, limit: int) -> _FoundNotes:
    """Find the notes that contain a text, the newest first. A blank text finds all notes.

    limit: how many notes at most; 0 means all.
    """
    listed_notes = list_notes(
        memory, query.replace(contains=text or None), limit, with_unfilled=True
    )
    return _FoundNotes(listed_notes.infos, Hits([], listed_notes.total), listed_notes.left_out)


def _ranked_notes(
    memory: ReadVerbs,
    query: Query,
    text: str,
    *,
    limit: int,
    max_tokens: int | None,
    explain: bool,
) -> _FoundNotes:
    """Search for a text, the best notes first. A blank text finds all notes.

    limit: the most notes to return; 0 means all.
    max_tokens: the most tokens that all passages together may have. None means any number.
    explain: whether each hit lists how much each feature added to its score.
    """

    def search_once() -> _FoundNotes:
        if text.strip():
            hits = memory.search(
                query.replace(text=text),
                limit=limit or NO_LIMIT,
                max_tokens=max_tokens,
                explain=explain,
            )
            infos = [hit.note for hit in hits]
        else:
            # Without words there is nothing to rank by.
            infos, total = memory.list(query.replace(contains=text or None), limit=limit)
            hits = Hits([], total)
        return _FoundNotes(infos, hits, _traces_left_out(memory, query.replace(text=text)))

    # `at_once` compares the disk with the index once, before all of these searches.
    return memory.at_once(search_once)


def _traces_left_out(memory: ReadVerbs, query: Query) -> list[str]:
    """Return how many traces `--traces` would find: `["3 traces (--traces)"]`.

    [] if it would find nothing, or if the search is limited to projects.
    """
    has_traces = any(project.name == TRACE_PROJECT for project in memory.projects)
    if query.projects is not None or not has_traces:
        return []
    total = memory.search(query.replace(projects=(TRACE_PROJECT,)), limit=1).total
    return [f"{total} traces (--traces)"] if total else []


def _count_text(hits: Hits) -> str:
    """Return how many notes match: `12`, or `10000 or more`."""
    return f"{hits.total} or more" if hits.is_lower_bound else str(hits.total)


def _mention_unseen_stores(memory: ReadVerbs) -> None:
    """Say to the owner which stores of other servers were not searched, as no project has them."""
    from memoranda.cli.presets import unseen_stores

    # `memory doctor` reports a bad configuration of another server.
    with suppress(ConfigError):
        stores = unseen_stores(memory)
        if stores:
            places = ", ".join(flat(store.place) for store in stores)
            output.notice(f"Not searched: {places}. memory doctor says how to have it searched.")


def _show_found(
    call: Invocation,
    memory: ReadVerbs,
    query: Query,
    text: str,
    found_notes: _FoundNotes,
) -> None:
    """Print the notes that a search found, for people and pipes.

    If it found nothing, print notes with some of the words.

    query: the filters of the search.
    text: the text that was searched for.
    """
    infos = found_notes.infos
    total = _count_text(found_notes.hits)
    # A relaxed search found only notes with some of the words, and the person should know. But
    # longer texts are questions, and nobody expects a note with all words of a question.
    is_question = len(text.split()) >= _WORDS_OF_QUESTION
    if found_notes.hits.relaxed and infos and not is_question:
        output.notice(f'No note holds all of "{one_line(text)}". Those that hold some, best first:')
    if not infos and text.strip():
        infos = _nearest(memory, query, text)
        total = str(len(infos))
        if infos:
            output.notice(f'Nothing holds "{one_line(text)}". Nearest by words:')
    if not infos:
        _mention_unseen_stores(memory)
        return call.answer("No matching memories found.")

    last_line = f"Found: {total} {noun(infos)}"
    if call.on_terminal:
        head = ("ID", "Phase", "Category", "Text")
        return call.table(head, list(cells(call, memory, infos, 0)), last_line)
    lines = [output.table_row(_HIT_ROW, *row) for row in cells(call, memory, infos, 80)]
    call.answer("\n".join([*lines, "", last_line]))


def _nearest(memory: ReadVerbs, query: Query, text: str) -> list[NoteInfo]:
    """Return a few notes with all words of a text. Without such notes, some words are enough.

    Archived notes are only included if the query asks for them.
    """
    # In a ranked search, an unset `archived` would include archived notes.
    if query.archived is None and not query.lists_archived:
        query = query.replace(archived=False)
    hits = memory.search(query.replace(text=text), limit=_NEAREST_NOTES)
    if not hits.hits:
        any_word = _any_word_of(text)
        if not any_word:
            return []
        hits = memory.search(query.replace(text=any_word), limit=_NEAREST_NOTES)
    return [hit.note for hit in hits]


def _any_word_of(text: str) -> str:
    """Return a query for any word of a text: `"tea" OR "cake"` for `tea with cake`.

    "" if all words are stop words. A run of Chinese has no blanks, so each pair of its characters
    counts as a word: `"記憶" OR "憶術"` for `記憶術`.
    """
    from memoranda.text.tokens import pairs, words

    parts = chain.from_iterable(pairs(word) for word in words(text))
    return " OR ".join(f'"{part}"' for part in parts)


@command(
    "context",
    "QUESTION...",
    keys=("question", "context", "passed_over"),
    example="memory context what does Anna like",
)
@option(
    "--max-tokens",
    type=Number(least=1),
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
        project_names = tuple(memory.project(name).name for name in projects) or None
        question = " ".join(words)
        moment = as_of_moment(memory, as_of)
        passages = memory.context_for(
            question, max_tokens=max_tokens, projects=project_names, as_of=moment
        )
        text = passages
        passed_over = 0
        if not passages:
            passed_over = memory.passed_over(question, projects=project_names, as_of=moment)
            text = _no_context_text(question, passed_over, max_tokens)
        call.answer(text, question=question, context=passages, passed_over=passed_over)


def _no_context_text(question: str, passed_over: int, token_limit: int) -> str:
    """Return the text for an empty context. It says how to see the notes that were passed over.

    passed_over: how many notes with words of the question are not near enough to it.
    token_limit: how many tokens the context might have.
    """
    if not passed_over:
        return f"Nothing found that fits into {token_limit} tokens."
    notes = "a note" if passed_over == 1 else f"{passed_over} notes"
    if len(question) > _MAX_REPEATED_CHARACTERS:
        words = "QUESTION"
    else:
        words = shlex.quote(question)
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
        project_names = {memory.project(name).name for name in projects}
        infos = memory.backlinks(info)
        if project_names:
            infos = [source for source in infos if source.project in project_names]
        else:
            # Traces of sessions are listed only if their project is named.
            infos = [source for source in infos if source.project != TRACE_PROJECT]
        if call.json:
            return call.document(id=info.id, memories=documents.notes(memory, infos).rows)
        if not infos:
            return call.answer("No backlinks found.")
        rows = list(cells(call, memory, infos, 50))
        last_line = f"Found: {len(infos)} backlinks"
        head = ("ID", "Phase", "Category", "Preview")
        call.table(head, rows, last_line, form=_HIT_ROW, rule=80)


@command("orphans", keys=("memories", "shown", "total"), example="memory orphans --project notes")
@project_option
@limit_option(50)
def orphans(call: Invocation, *, projects: tuple[str, ...], limit: int) -> None:
    """List the notes that link to no note and that no note links to, newest first."""
    from memoranda.engine.links.link_walk import relations

    with call.memory(looks_once=True) as memory:
        query = in_projects(memory, Query(order="created"), projects)
        linked_rows: set[int] = set()
        for source, target, _ in relations(memory):
            linked_rows.update((source, target))
        notes, _ = memory.list(query, limit=0)
        all_orphans = [info for info in notes if info.row not in linked_rows]
        # 0 means no limit.
        infos = all_orphans[: limit or None]
        if call.json:
            return call.answer_list("memories", documents.notes(memory, infos, len(all_orphans)))
        if not infos:
            return call.answer("Every note is linked.")
        last_line = f"Showing {len(infos)} of {len(all_orphans)} {noun(all_orphans)}"
        _show_list(call, memory, infos, last_line)
