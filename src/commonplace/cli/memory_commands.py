"""`write`, `read`, `list`, `search`, `context`, `delete`, `tag`, and links between memories (contract 001, 3 and 4).

Also how a memory is shown as text: block, row, preview.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any

import click

from commonplace.cli.invocation import Invocation
from commonplace.cli.output import Failure, error_sentence
from commonplace.cli.syntax import Names, Number, Usage, command, dry_run_option, text_from
from commonplace.clock import parse_stamp
from commonplace.engine.memories import contents, holding, record, records
from commonplace.errors import NotFound
from commonplace.note.model import CATEGORIES, CATEGORY_PROJECT, GLOBAL, INBOX, PHASES, Draft
from commonplace.query import check_memory, day, memory_query, split_list
from commonplace.text.unicode import one_line

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.index.rows import Hit, NoteInfo

DEFAULT_TOKENS = 2_000
NO_LIMIT = 1 << 30
LIST_ROW = "{:<8} {:<10} {:<10} {:<10} {:<20} {}"
SEARCH_ROW = "{:<8} {:<10} {:<10} {}"


def category_option(help: str = "One of the categories.") -> Callable[..., Any]:
    """The option `--category` with its help text."""
    return click.option("--category", type=Names("category", lambda: CATEGORIES), help=help)


_phase_option = click.option("--phase", type=Names("phase", lambda: PHASES), help="inbox or organized.")
_scope_option = click.option("--scope", help="global or agent:NAME.")
_NEW_OPTIONS = (
    click.option("--tags", metavar="A,B", help="Tags, separated by commas."),
    click.option("--scope", default=GLOBAL, show_default=True, help="global or agent:NAME."),
    click.option("--source", default="manual", show_default=True, help="Where it comes from."),
)


def new_memory_options(function: Any) -> Any:
    """The options `--tags`, `--scope` and `--source` of a memory to be written."""
    for option in reversed(_NEW_OPTIONS):
        function = option(function)
    return function


def content_from(words: tuple[str, ...], **checked: str | None) -> str:
    """The content of a new memory: `words` or stdin. Raises Failure if it is blank, InvalidInput for `checked`."""
    check_memory(**checked)
    text = text_from(words)
    if not text.strip():
        raise Failure("content must not be empty")
    return text


@command("write", "CONTENT...", keys=("memory",), now=True)
@category_option()
@new_memory_options
def write(call: Invocation, *words: str, category: str | None, tags: str | None, scope: str, source: str) -> None:
    """Store a memory: in the inbox, or organized when a category is given.

    CONTENT is joined by blanks; `-` reads it from stdin.
    """
    text = content_from(words, category=category, scope=scope)
    with call.memory() as memory:
        draft = Draft(text, CATEGORY_PROJECT, category=category, tags=split_list(tags), scope=scope, source=source)
        note = memory.write(draft)
        kind = "inbox" if note.phase == INBOX else f"{note.category}/organized"
        call.answer(f"Created {kind} memory: {note.id}", memory=record(memory, note, note.content))


@command("read", "ID", keys=("memory",))
def read(call: Invocation, ref: str) -> None:
    """Show a memory. Counts as one access."""
    with call.memory() as memory:
        note = memory.read(memory.memory_id(ref))
        row = record(memory, note, note.content)
        call.answer("" if call.json else _block(row, memory.settings.zone), memory=row)


def _block(row: dict[str, Any], zone: tzinfo | None) -> str:
    """The text of `read`."""
    lines = [
        f"ID:     {row['id']}",
        f"Phase:   {row['phase']}",
        f"Category: {row['category']}",
        f"Scope:  {row['scope']}",
        f"Source: {row['source'] or ''}",
        f"Tags:   [{' '.join(row['tags'])}]",
        f"Links:  [{' '.join(row['links'])}]",
        f"Access: {row['access_count']}",
        f"Created: {_local(row['created_at'], zone)}",
        f"Updated: {_local(row['updated_at'], zone)}",
    ]
    if row["expires_at"]:
        lines.append(f"Expires: {_local(row['expires_at'], zone)}")
    if due := row.get("due_at"):
        try:
            due = minute(due, zone)
        except (ValueError, OverflowError):
            pass  # shown as the note has it
        lines.append(f"Due:     {due}" + (f" repeat {row['repeat']}" if row.get("repeat") else ""))
    return "\n".join([*lines, "", row["content"]])


def _local(value: datetime | str, zone: tzinfo | None, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """A time in the clock time of `zone`; None = the system's."""
    moment = parse_stamp(value) if isinstance(value, str) else value
    return moment.astimezone(zone).strftime(form)


def minute(value: datetime | str, zone: tzinfo | None) -> str:
    """A time as `YYYY-MM-DD HH:MM` in the clock time of `zone`; None = the system's."""
    return _local(value, zone, "%Y-%m-%d %H:%M")


def preview(content: str, length: int) -> str:
    """The first `length` characters on one line, `...` appended when cut."""
    flat = one_line(content)
    return flat if len(flat) <= length else flat[:length] + "..."


@command("list", keys=("memories", "shown", "total"))
@_phase_option
@category_option()
@_scope_option
@click.option("--source", help="Only from this source.")
@click.option("--limit", type=Number(), default=50, show_default=True, help="How many at most; 0 = all.")
def list_(call: Invocation, *, limit: int, **filters: Any) -> None:
    """List memories, newest first."""
    wanted = memory_query(**filters)
    with call.memory() as memory:
        infos, total = memory.list(wanted, limit=limit, order="created")
        if call.json:
            return call.document(memories=records(memory, infos), shown=len(infos), total=total)
        if not infos:
            return call.answer("No memories found.")
        zone = memory.settings.zone
        lines = [LIST_ROW.format("ID", "Phase", "Category", "Source", "Created", "Preview"), "-" * 100]
        for info, content in zip(infos, contents(memory, infos), strict=True):
            cells = info.id[:8], info.phase, info.category, info.source or "", minute(info.created, zone)
            lines.append(LIST_ROW.format(*cells, preview(content, 40)))
        call.answer("\n".join([*lines, "", f"Showing {len(infos)} of {total} memories"]))


@command("search", "QUERY", keys=("query", "memories", "total"))
@click.option("--tags", metavar="A,B", help="All of these tags.")
@_scope_option
@_phase_option
@category_option()
@click.option("--from", "first", metavar="YYYY-MM-DD", help="Created on this day or later.")
@click.option("--to", "last", metavar="YYYY-MM-DD", help="Created on this day or earlier.")
@click.option("--limit", type=Number(), default=0, show_default=True, help="How many at most; 0 = all.")
@click.option("--ranked", is_flag=True, help="Search words in title, tags and text; best first.")
@click.option("--max-tokens", type=Number(), metavar="N", help="With --ranked: the best that fit into N tokens.")
def search(
    call: Invocation,
    text: str,
    *,
    first: str | None,
    last: str | None,
    limit: int,
    ranked: bool,
    max_tokens: int | None,
    tags: str | None,
    **filters: Any,
) -> None:
    """Find memories whose text holds QUERY, newest first. An empty QUERY finds all."""
    if max_tokens is not None and not ranked:
        raise Usage("--max-tokens needs --ranked")
    wanted = memory_query(tags=split_list(tags), **filters)
    with call.memory() as memory:
        zone = memory.settings.zone
        wanted = wanted.replace(created_from=day(first, "--from", zone), created_until=day(last, "--to", zone, after=1))
        hits: Iterable[Hit] = ()
        if ranked and text.strip():
            hits = ranking = memory.search(
                wanted.replace(text=text), limit=limit or NO_LIMIT, max_tokens=max_tokens or None
            )
            found, total = [hit.note for hit in hits], ranking.total
        else:
            found, total = holding(memory, wanted, text, limit)
        if call.json:
            rows = records(memory, found)
            for row, hit in zip(rows, hits, strict=False):
                row |= {"passage": hit.passage, "score": round(hit.score, 4), "why": hit.why}
            return call.document(query=text, memories=rows, total=total)
        if not found:
            return call.answer("No matching memories found.")
        call.answer("\n".join([*_rows(memory, found, 80), "", f"Found: {total} memories"]))


def _rows(memory: Memory, infos: list[NoteInfo], length: int) -> list[str]:
    """Lines of id, phase, category and a preview of `length` characters."""
    return [
        SEARCH_ROW.format(info.id[:8], info.phase, info.category, preview(content, length))
        for info, content in zip(infos, contents(memory, infos), strict=True)
    ]


@command("context", "QUESTION", keys=("question", "context"))
@click.option(
    "--max-tokens",
    type=Number(),
    default=DEFAULT_TOKENS,
    show_default=True,
    help="How long at most; a token is about 4 characters.",
)
@click.option("--project", metavar="NAME", help="Only notes of this project [all].")
def context(call: Invocation, question: str, *, max_tokens: int, project: str | None) -> None:
    """Print the passages that best answer QUESTION, under the dates and addresses of their notes."""
    with call.memory() as memory:
        projects = None if project is None else (memory.project(project).name,)
        most = max_tokens or DEFAULT_TOKENS
        found = memory.context_for(question, max_tokens=most, projects=projects)
        call.answer(found or f"Nothing found that fits into {most} tokens.", question=question, context=found)


@command("delete", "ID", keys=("id", "path"))
@dry_run_option("Only say what would be deleted.")
def delete(call: Invocation, ref: str, *, dry_run: bool) -> None:
    """Delete a memory. `memory undo` brings it back."""
    with call.memory() as memory:
        info = memory.memory_id(ref)
        if not dry_run:
            memory.delete(info)
        verb = "Would delete" if dry_run else "Deleted"
        call.answer(f"{verb} memory: {info.id}", id=info.id, path=f"{CATEGORY_PROJECT}/{info.path}")


@command("tag", "ID", keys=("id", "tags"))
@click.option("--add", metavar="A,B", help="Tags to add.")
@click.option("--remove", metavar="A,B", help="Tags to remove.")
def tag(call: Invocation, ref: str, *, add: str | None, remove: str | None) -> None:
    """Add tags to a memory or take them away."""
    with call.memory() as memory:
        note = memory.tag(memory.memory_id(ref), split_list(add), split_list(remove))
        call.answer(f"Tags of {note.id[:8]}: [{' '.join(note.tags)}]", id=note.id, tags=list(note.tags))


@command("link", "A", "B", keys=("source", "target", "changed"))
def link(call: Invocation, a: str, b: str) -> None:
    """Link two memories, both ways."""
    with call.memory() as memory:
        source, target = _both(memory, a, b)
        changed = memory.link(source, target)
        call.answer(f"Linked {source.id[:8]} <-> {target.id[:8]}", source=source.id, target=target.id, changed=changed)


@command("unlink", "A", "B", keys=("source", "target", "changed"))
def unlink(call: Invocation, a: str, b: str) -> None:
    """Remove the links between two memories, both ways."""
    with call.memory() as memory:
        source, target = _both(memory, a, b)
        changed = memory.unlink(source, target)
        said = f"Unlinked {source.id[:8]} <-> {target.id[:8]}"
        call.answer(said, source=source.id, target=target.id, changed=changed)


def _both(memory: Memory, a: str, b: str) -> list[NoteInfo]:
    """Both ends of a link. Raises Failure naming the end that is missing, or when they are one memory."""
    ends = []
    for name, ref in (("source", a), ("target", b)):
        try:
            ends.append(memory.memory_id(ref))
        except NotFound as error:
            raise Failure(f"{name} not found: {error_sentence(error)}", error.code) from None
    if ends[0].id == ends[1].id:
        raise Failure("cannot link a memory to itself")
    return ends


@command("backlinks", "ID", keys=("id", "memories"))
def backlinks(call: Invocation, ref: str) -> None:
    """List the memories that link to a memory, newest first."""
    with call.memory() as memory:
        info = memory.memory_id(ref)
        found = [each for each in memory.backlinks(info) if each.project == CATEGORY_PROJECT]
        if call.json:
            return call.document(id=info.id, memories=records(memory, found))
        if not found:
            return call.answer("No backlinks found.")
        head = [SEARCH_ROW.format("ID", "Phase", "Category", "Preview"), "-" * 80]
        call.answer("\n".join([*head, *_rows(memory, found, 50), "", f"Found: {len(found)} backlinks"]))


@command("resolve-links", keys={"resolved": (), "links_added": (), "unresolved": ("id", "target")})
@dry_run_option("Only say what would be linked.")
def resolve_links(call: Invocation, *, dry_run: bool) -> None:
    """Turn [[wikilinks]] in the text of memories into links."""
    with call.memory() as memory:
        done = memory.resolve_links(dry_run)
        said = f"Resolved backlinks for {done.resolved} memories"
        if dry_run:
            said = "\n".join(f"would link {each.source[:8]} {each.reason}" for each in done.actions)
        unresolved = [{"id": source, "target": target} for source, target in done.unresolved]
        call.answer(said or "Nothing to link.", resolved=done.resolved, links_added=done.added, unresolved=unresolved)
