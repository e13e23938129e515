"""Says who wrote the text of a note, and when, as all lists of the page show it.

A change that moved links in a note, moved the note, changed its header, or was made by upkeep, did
not write its text. Nor did an undo, or what it took back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from memoranda.engine import MemorySession
from memoranda.engine.history.former_places import PlacedChange, history_through_moves
from memoranda.index.rows import NoteInfo
from memoranda.ledger.change import Change, Standing, Touched
from memoranda.note.frontmatter import split
from memoranda.serve.page.words.writers import (
    AUTHORS,
    is_upkeep,
    writer_of,
    writer_of_provenance,
    writing_agent,
)

# Changes of a note that are looked at.
_MAX_CHANGES = 12
# Where a link leads: `[[Name|`, `[[Name]]`, `](Name.md)`.
_TARGET = re.compile(r"\[\[[^\[\]\n]*\]\]|\]\([^()\n]*\)")


class TextOrigin(NamedTuple):
    """Where the text of a note comes from.

    writer: who wrote it, as `writer_of` says it.
    agent: the agent whose avatar it has. None means the owner.
    time: when it was written (ISO 8601, UTC).
    tidied: when its links or its header were changed last, after that. "" if they were not.
    """

    writer: str
    agent: str | None
    time: str
    tidied: str = ""


def text_origin(memory: MemorySession, info: NoteInfo) -> TextOrigin:
    """Return who wrote the text of a note, and when.

    It is the last change that wrote the text. If the history has none, it is who the note names.
    """
    recorded = TextOrigin(writer_of(info), writing_agent(info), info.created)
    # No change says when a program wrote the file.
    if info.provenance.who == "file":
        return recorded._replace(time=info.updated or info.changed)
    tidied = ""
    # An undone change, and its undo, do not count. The changes come from the latest on.
    standing = Standing()
    for step in history_through_moves(memory, info.project, info.path, limit=_MAX_CHANGES):
        if not standing.counts(step.change):
            continue
        # Upkeep and a move write no text.
        may_write = not is_upkeep([step.change]) and step.place_before is None
        for touched in _own_steps(step):
            if may_write and _wrote_text(memory, step.change, touched):
                return _origin(step.change, touched, tidied)
        # The first such change is the latest.
        tidied = tidied or step.change.time
    return recorded


def agents_of_text(memory: MemorySession, info: NoteInfo) -> list[str]:
    """Return the agents that wrote words of a note, the latest first, as far as its history says it.

    It is for a text of agents that the owner edited, which names no agent itself.
    """
    agents: dict[str, None] = {}
    standing = Standing()
    for step in history_through_moves(memory, info.project, info.path, limit=_MAX_CHANGES):
        change = step.change
        if not standing.counts(change) or change.agent is None or step.place_before is not None:
            continue
        if any(_wrote_text(memory, change, touched) for touched in _own_steps(step)):
            agents[change.agent] = None
    return list(agents)


def _own_steps(step: PlacedChange) -> Iterator[Touched]:
    """Yield the parts of a change that are of the note itself."""
    for touched in step.change.texts():
        if (touched.project, touched.path) == step.place:
            yield touched


def _wrote_text(memory: MemorySession, change: Change, touched: Touched) -> bool:
    """Whether a change wrote words of a note."""
    if touched.do != "put":
        return False
    if touched.old is None:
        return True
    # The ledger names the origin of a text with its time, if a change only carries it on.
    if change.provenance(touched).time != change.time:
        return False
    # The texts of the other notes of the change need not be read.
    own_change = replace(change, files=[touched])
    (revision,) = memory.revisions_of([own_change])[change.number]
    if revision.is_text_lost or revision.before is None or revision.after is None:
        return True
    # In a note that a change is not about, it only moved links.
    is_edit = (change.project, change.path) == (touched.project, touched.path)
    return _body_of(revision.before, is_edit) != _body_of(revision.after, is_edit)


def _body_of(text: str, with_targets: bool) -> str:
    """Return the text of a note without its header.

    with_targets: whether to keep where its links lead.
    """
    body = text[split(text).body_at :].strip()
    return body if with_targets else _TARGET.sub("[]", body)


def _origin(change: Change, touched: Touched, tidied: str) -> TextOrigin:
    writer = writer_of_provenance(change.provenance(touched))
    agent = None if writer == AUTHORS["owner"] else writer
    return TextOrigin(writer, agent, change.time, tidied)
