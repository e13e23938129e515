"""The hints of the graph's reading tools about notes that are not in the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memoranda.engine.graph import Graph
from memoranda.faces.arguments import Arguments
from memoranda.faces.other_notes import count_sentence, note_named, notes_matching
from memoranda.faces.reply import Reply
from memoranda.text.unicode import flat

if TYPE_CHECKING:
    from memoranda.engine import MemorySession

# A hint looks for at most this many names in other projects.
_MAX_NAMES = 3


def add_hint(
    name: str, memory: MemorySession, graph: Graph, arguments: Arguments, reply: Reply
) -> None:
    """Add to a reply which notes outside the graph the caller may have meant, too.

    A caller who names a project, or who has not seen the last page yet, is told nothing.

    name: the tool that replied, such as `search_nodes`.
    """
    data = reply.data
    if data is None or "project" in arguments or "nextCursor" in data:
        return
    if name == "open_nodes":
        hint = _named(memory, graph.project, arguments["names"], data["entities"])
    elif name == "search_nodes" and arguments["query"].strip() and arguments.get("limit") != 0:
        hint = _matching(memory, graph.project, arguments["query"], data["entities"])
    else:
        hint = _all_others(memory, graph.project)
    # A note outside the graph is a better answer than an entity of a similar name.
    reply.hint = hint or reply.hint


def _all_others(memory: MemorySession, project: str) -> str:
    """Return how many notes are outside the graph, and how to see them. "" if there are none."""
    sentence = count_sentence(memory, project, "the graph")
    if not sentence:
        return ""
    return f'{sentence} The argument project="*" shows them as entities.'


def _matching(memory: MemorySession, project: str, query: str, entities: Sequence[object]) -> str:
    """Return the notes outside the graph that match a query. "" if there are none.

    entities: the entities of the reply. If there are none, a note with some of the words will do.
    """
    notes = notes_matching(memory, project, query, takes_any_word=not entities)
    if not notes:
        return ""
    lines = [
        "Notes outside the graph that match:",
        *(note.line for note in notes),
        "memory_open_nodes shows one as an entity, if you name its project.",
    ]
    return "\n".join(lines)


def _named(
    memory: MemorySession,
    project: str,
    names: Sequence[str],
    entities: Sequence[dict[str, object]],
) -> str:
    """Return in which projects the notes are whose names no entity has. "" if there are none.

    names: the names of the call.
    entities: the entities of the reply.
    """
    found_names = {entity["name"] for entity in entities}
    missing_names = [name for name in dict.fromkeys(names) if name not in found_names]
    sentences = []
    for name in missing_names[:_MAX_NAMES]:
        note = note_named(memory, project, name)
        if note is not None:
            place = f'project="{flat(note.project)}"'
            noun = f"a note ({note.remarks})" if note.remarks else "a note"
            sentences.append(f'"{note.title}" is {noun} outside the graph: open it with {place}.')
    return " ".join(sentences)
