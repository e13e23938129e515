"""`list`, `search`, `context`, `backlinks` (contract 001, 3 and 4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from memoranda.cli import output
from memoranda.cli.invocation import Invocation, preview
from memoranda.cli.memory_commands import (
    as_of_moment,
    as_of_option,
    category_option,
    minute,
    place_of,
    scope_option,
    tags_option,
)
from memoranda.cli.syntax import Names, Number, Text, Usage, command, flag, option
from memoranda.engine.overview import contents, records
from memoranda.index.rows import Hits, NoteInfo
from memoranda.note.model import CATEGORY_PROJECT, PHASES
from memoranda.query import day, memory_query
from memoranda.text.unicode import one_line

if TYPE_CHECKING:
    from memoranda.engine import MemorySession
    from memoranda.query import Query

DEFAULT_TOKENS = 2_000
NO_LIMIT = 1 << 30
_ROW = "{:<8} {:<10} {:<10} {}"
_DAY = 'YYYY-MM-DD, or e.g. yesterday, 7d, "last week", 上周.'
_NEAREST = 5


phase_option = option(
    "--phase", type=Names("phase", lambda _: PHASES), help="inbox, organized or archived."
)
archived_flag = flag("--archived", "Only archived memories.")
_by_option = option(
    "--by", metavar="WHO", help="Only written by: owner, an agent's name, import, web, file."
)
_client_option = option(
    "--client", help="Only written with this program: cli, socket, an MCP client's name ..."
)


@command(
    "list",
    keys=("memories", "shown", "total"),
    example="memory list --category preferences --limit 10",
)
@phase_option
@category_option()
@scope_option
@option("--source", type=Names("text", "source"), help="Only from this source.")
@archived_flag
@as_of_option
@_by_option
@_client_option
@option("--limit", type=Number(), default=50, help="How many at most; 0 = all.")
def list_(
    call: Invocation,
    *,
    limit: int,
    archived: bool,
    as_of: Text,
    by: Text,
    client: Text,
    **filters: Any,
) -> None:
    """List memories, newest first; archived ones only when asked for."""
    wanted = memory_query(**filters, archived=archived or None).replace(by=by, client=client)
    with call.memory() as memory:
        wanted = wanted.replace(as_of=as_of_moment(memory, as_of))
        infos, total = memory.list(wanted, limit=limit, order="created")
        if call.json:
            return call.document(memories=records(memory, infos), shown=len(infos), total=total)
        if not infos:
            return call.answer("No memories found.")
        head = ("ID", "Phase", "Category", "Source", "Created", "Preview")
        rows = [
            (*cells, info.source or "", minute(info.created, memory.settings.zone), text)
            for info, (*cells, text) in zip(infos, _cells(call, memory, infos, 40), strict=True)
        ]
        form = "{:<8} {:<10} {:<10} {:<10} {:<20} {}"
        call.table(head, rows, f"Showing {len(infos)} of {total} memories", form=form, rule=100)


@command(
    "search",
    "QUERY...",
    keys=("query", "memories", "total"),
    example='memory search dark mode --from "last week"',
)
@tags_option("All of these tags.")
@scope_option
@phase_option
@category_option()
@option("--from", "first", metavar="DAY", help=f"Created on this day or later: {_DAY}")
@option("--to", "last", metavar="DAY", help="Created on this day or earlier.")
@archived_flag
@as_of_option
@_by_option
@_client_option
@option("--limit", type=Number(), default=0, help="How many at most; 0 = all.")
@flag("--ranked", "Search words in title, tags and text; best first.")
@option(
    "--max-tokens",
    "most",
    type=Number(),
    metavar="N",
    help="With --ranked: the best that fit into N tokens.",
)
@flag("--all", "Also the notes of all other projects.", "every")
def search(
    call: Invocation,
    *words: str,
    first: Text,
    last: Text,
    as_of: Text,
    limit: int,
    ranked: bool,
    archived: bool,
    most: int | None,
    by: Text,
    client: Text,
    every: bool,
    **filters: Any,
) -> None:
    """Find memories whose text holds QUERY, newest first. An empty QUERY finds all.

    The words of QUERY are joined by blanks. Archived ones are found with --archived, and with
    --ranked below the others. On a terminal, when no text holds the words, the nearest by words are
    shown. With --all the document has the notes of other projects under `notes`, and how many there
    are as `notes_total`. With --ranked and --limit it has `total_is_lower_bound` where more than
    10,000 match.
    """
    if most is not None and not ranked:
        raise Usage("--max-tokens needs --ranked")
    text = " ".join(words)
    wanted = memory_query(**filters, archived=archived or None).replace(by=by, client=client)
    with call.memory() as memory:
        zone = memory.settings.zone
        now = memory.clock()
        from_ = day(first, "--from", zone, now=now)
        until = day(last, "--to", zone, 1, now)
        wanted = wanted.replace(
            created_from=from_, created_until=until, as_of=as_of_moment(memory, as_of)
        )
        elsewhere = wanted.replace(
            projects=tuple(each.name for each in memory.projects if each.name != CATEGORY_PROJECT)
        )
        found, hits = _found(memory, wanted, text, limit, most, ranked=ranked)
        others = list[NoteInfo]()
        other_hits = Hits([], 0)
        if every:
            others, other_hits = _found(memory, elsewhere, text, limit, most, ranked=ranked)
        if call.json:
            keys = ("id", "title", "type", "project", "path", "permalink")
            rows = records(memory, found)
            notes = [{key: getattr(info, key) for key in keys} for info in others]
            for row, hit in (*zip(rows, hits, strict=False), *zip(notes, other_hits, strict=False)):
                row |= {"passage": hit.passage, "score": round(hit.score, 4), "why": hit.why}
            for row, hit in zip(rows, hits, strict=False):
                row["provenance"] = hit.note.provenance.row()
            if every:
                more = {"notes": notes, "notes_total": other_hits.total}
            else:
                more = {}
            more |= {f"notes_{name}": value for name, value in other_hits.bound.items()}
            return call.document(query=text, memories=rows, total=hits.total, **hits.bound, **more)
        if call.on_terminal:
            total = _counted(hits, other_hits)
            return _show_found(
                call, memory, wanted, text, [*found, *others], total, elsewhere, every
            )
        if not found and not others:
            return call.answer("No matching memories found.")
        lines = [output.table_row(_ROW, *cells) for cells in _cells(call, memory, found, 80)]
        lines += [f"{place_of(each)}  {each.title}" for each in others]
        last_line = f"Found: {_counted(hits)} memories" + (
            f", {_counted(other_hits)} other notes" if every else ""
        )
        call.answer("\n".join([*lines, "", last_line]))


def _found(
    memory: MemorySession, wanted: Query, text: str, limit: int, most: int | None, *, ranked: bool
) -> tuple[list[NoteInfo], Hits]:
    """The notes found; with `ranked` as hits too, else how many there are alone."""
    if ranked and text.strip():
        ranking = memory.search(
            wanted.replace(text=text), limit=limit or NO_LIMIT, max_tokens=most or None
        )
        return [hit.note for hit in ranking], ranking
    infos, total = memory.list(wanted.replace(contains=text or None), limit=limit, order="created")
    return infos, Hits([], total)


def _counted(*found: Hits) -> str:
    is_lower_bound = any(each.is_lower_bound for each in found)
    return f"{sum(each.total for each in found)}{' or more' if is_lower_bound else ''}"


def _show_found(
    call: Invocation,
    memory: MemorySession,
    wanted: Query,
    text: str,
    found: Sequence[NoteInfo],
    total: str,
    elsewhere: Query,
    every: bool,
) -> None:
    """What was found, for a person: when nothing was, the nearest by words; and how much more other
    projects hold.
    """
    from memoranda.text.tokens import is_cjk, words

    foot = [f"Found: {total} {'notes' if every else 'memories'}"]
    if not found and text.strip():
        near = wanted.replace(projects=None if every else wanted.projects)
        parts = (
            [each[at : at + 2] for at in range(max(1, len(each) - 1))] if is_cjk(each) else [each]
            for each in words(text)
        )
        for asked in filter(
            None, (text, " OR ".join(f'"{part}"' for pair in parts for part in pair))
        ):
            # Those with all words, else with any
            hits = memory.search(near.replace(text=asked), limit=_NEAREST)
            found = [hit.note for hit in hits]
            if found:
                break
        foot = ["No matching memories found."]
        if found:
            output.text(f'Nothing holds "{one_line(text)}". Nearest by words:\n')
            foot = []
    is_alone = not every and text.strip()
    if is_alone:
        others = memory.list(elsewhere.replace(contains=text), limit=0, order="created")[0]
    else:
        others = []
    if others:
        names = dict.fromkeys(each.project for each in others)
        foot.append(f"{len(others)} more in {', '.join(names)}: memory search --all")
    if not found:
        return call.answer("\n".join(foot))
    call.table(
        ("ID", "Phase", "Category", "Text"),
        list(_cells(call, memory, found, 0, marked=False)),
        *foot,
    )


def _cells(
    call: Invocation,
    memory: MemorySession,
    infos: Sequence[NoteInfo],
    length: int,
    *,
    marked: bool = True,
) -> Iterator[tuple[str, ...]]:
    """Id, phase, category and text of each; of a note of another project its place, type, project,
    title. Where no person reads, `length` characters of the text; and `marked` if it is not valid
    all the time."""
    marks = memory.validity_marks(infos) if marked else {}
    for info, content in zip(infos, contents(memory, infos), strict=True):
        if info.phase:
            if call.on_terminal:
                text = content
            else:
                text = preview(content, length)
            mark = f" ({marks[info.row]})" if info.row in marks else ""
            yield info.id[:8], info.phase, info.category or "", text + mark
        else:
            yield place_of(info), info.type, info.project, info.title


@command(
    "context",
    "QUESTION...",
    keys=("question", "context"),
    example="memory context what does Anna like",
)
@option(
    "--max-tokens",
    type=Number(),
    default=DEFAULT_TOKENS,
    help="How long at most; a token is about 4 characters.",
)
@option("--project", type=Names("name", "project"), help="Only notes of this project [all].")
@as_of_option
def context(call: Invocation, *words: str, max_tokens: int, project: Text, as_of: Text) -> None:
    """Print the passages that best answer QUESTION, under the dates and addresses of their notes."""
    with call.memory() as memory:
        if project is None:
            projects = None
        else:
            projects = (memory.project(project).name,)
        question = " ".join(words)
        most = max_tokens or DEFAULT_TOKENS
        found = memory.context_for(
            question, max_tokens=most, projects=projects, as_of=as_of_moment(memory, as_of)
        )
        call.answer(
            found or f"Nothing found that fits into {most} tokens.",
            question=question,
            context=found,
        )


@command("backlinks", "ID", keys=("id", "memories"), example="memory backlinks 5a1f")
def backlinks(call: Invocation, ref: str) -> None:
    """List the memories that link to a memory, newest first."""
    with call.memory() as memory:
        info = memory.memory_id(ref)
        found = [each for each in memory.backlinks(info) if each.project == CATEGORY_PROJECT]
        if call.json:
            return call.document(id=info.id, memories=records(memory, found))
        if not found:
            return call.answer("No backlinks found.")
        rows = list(_cells(call, memory, found, 50, marked=not call.on_terminal))
        last = f"Found: {len(found)} backlinks"
        call.table(("ID", "Phase", "Category", "Preview"), rows, last, form=_ROW, rule=80)
