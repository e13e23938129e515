"""Shows the panel beside a graph: the note that was clicked, in a few words and with its links."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from starlette.responses import Response

from memoranda.engine.contents import content_of
from memoranda.index.rows import Edge, NoteInfo
from memoranda.note.grammar import LINKS_TO
from memoranda.serve.page.addresses import note_of_ref
from memoranda.serve.page.graph.names import shown_title
from memoranda.serve.page.note.contradicted import contradicted_in, struck_out
from memoranda.serve.page.search import readable_passage
from memoranda.serve.page.visit import Visit

# Characters of the note's text, and of the text that is examined for them.
_MAX_CHARACTERS = 260
_EXAMINED = 1200
# Links in one direction that are read, and notes of one relation that are named.
_MAX_LINKS = 300
_NAMED = 5


@dataclass
class RelatedNotes:
    """The notes at the other end of one relation of a note.

    name: the relation. "" for ordinary links.
    is_incoming: whether the relation leads from the other notes to this one.
    notes: the first of the other notes.
    more: how many other notes are not in `notes`.
    """

    name: str
    is_incoming: bool
    notes: list[NoteInfo] = field(default_factory=list)
    more: int = 0


def show(visit: Visit) -> Response:
    """Show the panel of the note in the field `note`.

    Its text is shown with secrets masked, and not at all if it seems to hold instructions.
    """
    memory = visit.memory
    info = note_of_ref(memory, visit.text("note"))
    # Masked before it is cut: the beginning of a secret does not look like one.
    text = memory.rules_for_reading().redacted_beginning(content_of(memory, info), _EXAMINED)
    outgoing = memory.outgoing(info)
    edges = [*outgoing[:_MAX_LINKS], *memory.incoming(info, limit=_MAX_LINKS)]
    relations = related_notes(edges)
    infos = [info, *chain.from_iterable(related.notes for related in relations)]
    passage = readable_passage(text, info.title)[:_MAX_CHARACTERS]
    contradicted = contradicted_in(memory, info, outgoing)
    values: dict[str, Any] = {
        "info": info,
        "text": passage,
        "parts": struck_out([(False, passage)], contradicted),
        "contradicted": contradicted,
        "relations": relations,
        "titles": {named_info.row: shown_title(visit, named_info) for named_info in infos},
        "is_held_back": memory.is_held_back(info),
    }
    return visit.html("graph_panel.html", **values)


def related_notes(edges: Iterable[Edge], most_named: int = _NAMED) -> list[RelatedNotes]:
    """Return the links by relation and direction, the relations with a name and few notes first.

    most_named: how many notes of a relation are named. The others are counted.
    """
    # By (whether the relation leads to the note, its name): the notes, and the rows seen so far.
    relations: dict[tuple[bool, str], RelatedNotes] = {}
    rows: dict[tuple[bool, str], set[int]] = {}
    for edge in edges:
        # The link leads nowhere.
        if edge.note is None:
            continue
        # A plain link is a relation without a name.
        name = "" if edge.type == LINKS_TO else edge.type.replace("_", " ")
        is_incoming = edge.direction == "in"
        key = (is_incoming, name)
        related = relations.setdefault(key, RelatedNotes(name, is_incoming))
        rows_of_relation = rows.setdefault(key, set())
        # Several links of one kind to a note are one relation.
        if edge.note.row in rows_of_relation:
            continue
        rows_of_relation.add(edge.note.row)
        if len(related.notes) < most_named:
            related.notes.append(edge.note)
        else:
            related.more += 1
    # False sorts before True.
    return sorted(
        relations.values(),
        key=lambda related: (not related.name, related.is_incoming, len(related.notes)),
    )
