"""`write`, `read`, `list`, `search`, `delete`, `tag` (contract 001, 3)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from commonplace.cli import memories
from commonplace.cli.failures import Failure
from commonplace.cli.invocation import Invocation
from commonplace.cli.syntax import Names, Number, Usage, command, text_from
from commonplace.engine.memories import holding
from commonplace.note.model import CATEGORIES, GLOBAL, INBOX, PHASES, Draft
from commonplace.query import check_memory, day, memory_query, split_list

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.index.rows import Hit, NoteInfo

CATEGORY_NAMES = Names("category", lambda: CATEGORIES)
ALL = 1 << 30
PHASE_NAMES = Names("phase", lambda: PHASES)


def _category_option(function):
    return click.option("--category", type=CATEGORY_NAMES, help="One of the categories.")(function)


def _phase_option(function):
    return click.option("--phase", type=PHASE_NAMES, help="inbox or organized.")(function)


@command("write", "CONTENT...", keys=("memory",), now=True)
@_category_option
@click.option("--tags", metavar="A,B", help="Tags, separated by commas.")
@click.option("--scope", default=GLOBAL, show_default=True, help="global or agent:NAME.")
@click.option("--source", default="manual", show_default=True, help="Where it comes from.")
def write(call: Invocation, *words: str, category: str | None, tags: str | None, scope: str, source: str) -> None:
    """Store a memory: in the inbox, or organized when a category is given.

    CONTENT is joined by blanks; `-` reads it from stdin.
    """
    check_memory(category, scope=scope)
    text = text_from(words)
    if not text.strip():
        raise Failure("content must not be empty")
    with call.memory() as memory:
        draft = Draft(
            text,
            project=memories.PROJECT,
            category=category,
            tags=split_list(tags),
            scope=scope,
            source=source,
        )
        note = memory.write(draft)
        organized = note.phase != INBOX
        said = (
            f"Created {note.category}/organized memory: {note.id}" if organized else f"Created inbox memory: {note.id}"
        )
        call.answer(said, memory=memories.record(memory, note, note.content))


@command("read", "ID", keys=("memory",))
def read(call: Invocation, ref: str) -> None:
    """Show a memory. Counts as one access."""
    with call.memory() as memory:
        note = memory.read(memory.memory_id(ref))
        row = memories.record(memory, note, note.content)
        if call.json:
            call.document(memory=row)
        else:
            call.answer(memories.block(row, memory.settings.zone))


@command("list", keys=("memories", "shown", "total"))
@_phase_option
@_category_option
@click.option("--scope", help="global or agent:NAME.")
@click.option("--source", help="Only from this source.")
@click.option("--limit", type=Number(), default=50, show_default=True, help="How many at most; 0 = all.")
def list_memories(call: Invocation, *, phase: str | None, category: str | None, scope: str | None,
                  source: str | None, limit: int) -> None:  # fmt: skip
    """List memories, newest first."""
    wanted = memory_query(category=category, phase=phase, scope=scope, source=source)
    with call.memory() as memory:
        infos, total = memory.list(wanted, limit=limit, order="created")
        if call.json:
            return call.document(memories=memories.records(memory, infos), shown=len(infos), total=total)
        if not infos:
            return call.answer("No memories found.")
        zone = memory.settings.zone
        lines = [
            memories.LIST_ROW.format("ID", "Phase", "Category", "Source", "Created", "Preview"),
            "-" * 100,
        ]
        for info, content in zip(infos, memories.contents(memory, infos), strict=True):
            shown = memories.preview(content, 40)
            lines.append(memories.LIST_ROW.format(info.id[:8], info.phase, info.category, info.source or "",
                                                  memories.minute(info.created, zone), shown))  # fmt: skip
        call.answer("\n".join([*lines, "", f"Showing {len(infos)} of {total} memories"]))


@command("search", "QUERY", keys=("query", "memories", "total"))
@click.option("--tags", metavar="A,B", help="All of these tags.")
@click.option("--scope", help="global or agent:NAME.")
@_phase_option
@_category_option
@click.option("--from", "first", metavar="YYYY-MM-DD", help="Created on this day or later.")
@click.option("--to", "last", metavar="YYYY-MM-DD", help="Created on this day or earlier.")
@click.option("--limit", type=Number(), default=0, show_default=True, help="How many at most; 0 = all.")
@click.option("--ranked", is_flag=True, help="Search words in title, tags and text; best first.")
@click.option("--max-tokens", type=Number(), metavar="N", help="With --ranked: the best that fit into N tokens.")
def search(
    call: Invocation,
    text: str,
    *,
    tags: str | None,
    scope: str | None,
    phase: str | None,
    category: str | None,
    first: str | None,
    last: str | None,
    limit: int,
    ranked: bool,
    max_tokens: int | None,
) -> None:
    """Find memories whose text holds QUERY, newest first. An empty QUERY finds all."""
    if max_tokens is not None and not ranked:
        raise Usage("--max-tokens needs --ranked", click.get_current_context())
    wanted = memory_query(category=category, phase=phase, scope=scope, tags=split_list(tags))
    with call.memory() as memory:
        zone = memory.settings.zone
        wanted = wanted.replace(created_from=day(first, "--from", zone), created_until=day(last, "--to", zone, after=1))
        hits: Iterable[Hit] = ()
        if ranked and text.strip():
            hits = ranking = memory.search(wanted.replace(text=text), limit=limit or ALL, max_tokens=max_tokens or None)
            found, total = [hit.note for hit in hits], ranking.total
        else:
            found, total = holding(memory, wanted, text, limit)
        if call.json:
            records = memories.records(memory, found)
            for record, hit in zip(records, hits, strict=False):
                record |= {"passage": hit.passage, "score": round(hit.score, 4), "why": hit.why}
            return call.document(query=text, memories=records, total=total)
        if not found:
            return call.answer("No matching memories found.")
        call.answer("\n".join([*rows(memory, found, 80), "", f"Found: {total} memories"]))


def rows(memory: Memory, infos: list[NoteInfo], length: int) -> list[str]:
    """Lines of id, phase, category and a preview of `length` characters."""
    return [
        memories.SEARCH_ROW.format(info.id[:8], info.phase, info.category,
                                   memories.preview(content, length))
        for info, content in zip(infos, memories.contents(memory, infos), strict=True)
    ]  # fmt: skip


@command("delete", "ID", keys=("id", "path"))
@click.option("--dry-run", is_flag=True, help="Only say what would be deleted.")
def delete(call: Invocation, ref: str, *, dry_run: bool) -> None:
    """Delete a memory. `memory undo` brings it back."""
    with call.memory() as memory:
        info = memory.memory_id(ref)
        if not dry_run:
            memory.delete(info)
        verb = "Would delete" if dry_run else "Deleted"
        call.answer(f"{verb} memory: {info.id}", id=info.id, path=f"{memories.PROJECT}/{info.path}")


@command("tag", "ID", keys=("id", "tags"))
@click.option("--add", metavar="A,B", help="Tags to add.")
@click.option("--remove", metavar="A,B", help="Tags to remove.")
def tag(call: Invocation, ref: str, *, add: str | None, remove: str | None) -> None:
    """Add tags to a memory or take them away."""
    with call.memory() as memory:
        note = memory.tag(memory.memory_id(ref), split_list(add), split_list(remove))
        call.answer(f"Tags of {note.id[:8]}: [{' '.join(note.tags)}]", id=note.id, tags=list(note.tags))
