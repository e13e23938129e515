"""`link`, `unlink`, `backlinks`, `resolve-links` (contract 001, 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from commonplace.cli import memories
from commonplace.cli.failures import Failure, sentence
from commonplace.cli.invocation import Invocation
from commonplace.cli.notes import rows
from commonplace.cli.syntax import command
from commonplace.errors import NotFound

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.index.rows import NoteInfo


def _both(memory: Memory, a: str, b: str) -> tuple[NoteInfo, NoteInfo]:
    """Both ends. Raises Failure naming the end that is missing, or when they are one memory."""
    ends = []
    for name, ref in (("source", a), ("target", b)):
        try:
            ends.append(memory.memory_id(ref))
        except NotFound as error:
            raise Failure(f"{name} not found: {sentence(error)}", error.code) from None
    if ends[0].id == ends[1].id:
        raise Failure("cannot link a memory to itself")
    return ends[0], ends[1]


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
        call.answer(
            f"Unlinked {source.id[:8]} <-> {target.id[:8]}",
            source=source.id,
            target=target.id,
            changed=changed,
        )


@command("backlinks", "ID", keys=("id", "memories"))
def backlinks(call: Invocation, ref: str) -> None:
    """List the memories that link to a memory, newest first."""
    with call.memory() as memory:
        info = memory.memory_id(ref)
        found = [each for each in memory.backlinks(info) if each.project == memories.PROJECT]
        if call.json:
            return call.document(id=info.id, memories=memories.records(memory, found))
        if not found:
            return call.answer("No backlinks found.")
        head = [memories.SEARCH_ROW.format("ID", "Phase", "Category", "Preview"), "-" * 80]
        call.answer("\n".join([*head, *rows(memory, found, 50), "", f"Found: {len(found)} backlinks"]))


@command("resolve-links", keys={"resolved": (), "links_added": (), "unresolved": ("id", "target")})
@click.option("--dry-run", is_flag=True, help="Only say what would be linked.")
def resolve_links(call: Invocation, *, dry_run: bool) -> None:
    """Turn [[wikilinks]] in the text of memories into links."""
    with call.memory() as memory:
        done = memory.resolve_links(dry_run)
        if call.json:
            unresolved = [{"id": source, "target": target} for source, target in done.unresolved]
            return call.document(resolved=done.resolved, links_added=done.added, unresolved=unresolved)
        if dry_run:
            lines = [f"would link {each.source[:8]} {each.reason}" for each in done.actions]
            return call.answer("\n".join(lines) if lines else "Nothing to link.")
        call.answer(f"Resolved backlinks for {done.resolved} memories")
