"""`graph export | import` (contract 002, 11)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from commonplace.cli import output, presets
from commonplace.cli.failures import Failure
from commonplace.cli.invocation import Invocation
from commonplace.cli.notes import text_from
from commonplace.cli.syntax import Group, command

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.engine.graph import NoteGraph
    from commonplace.engine.graph_file import FileGraph

graph = Group(
    "graph",
    {"export": "graph:export", "import": "graph:import_graph"},
    help="Hand out the knowledge graph as JSON Lines, or take one in.",
)


@command("export", "[FILE]", keys=("file", "count", "lines"))
def export(call: Invocation, file: str | None = None) -> None:
    """Write the graph to FILE, one entity or relation a line; without FILE, print it.

    With --json and no FILE the lines are in the document. The graph is where the graph tools have it.
    """
    from commonplace.engine.entities import graph_lines

    with call.memory() as memory:
        lines = graph_lines(graph_at(memory, _place(call)))
    if file is None:
        if call.json:
            call.document(file=None, count=len(lines), lines=lines)
        elif lines:
            output.text("\n".join(lines))
        return
    place = Path(file).expanduser()
    try:
        place.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    except OSError as error:
        raise Failure(f"cannot write {place}: {error.strerror}", "storage") from None
    call.answer(f"Exported {len(lines)} lines to {place}", file=str(place), count=len(lines), lines=None)


@command("import", "FILE", keys=("entities", "relations", "skipped"))
def import_graph(call: Invocation, file: str) -> None:
    """Take in the entities and relations of FILE: JSON Lines, or one JSON value. `-` reads stdin.

    Entities that exist get the observations they lack. Running it twice changes nothing. They go where the graph
    tools have the graph; if that is FILE itself, into the notes.
    """
    from commonplace.engine.entities import parse_graph

    found = parse_graph(text_of(file))
    for number, why in found.bad:
        output.notice(f"line {number}: {why}")
    with call.memory() as memory:
        graph_at(memory, place_for(call, file)).merge(found.entities, found.relations)
    entities = len({each.name for each, _ in found.entities})
    relations = len({each.triple for each in found.relations})
    call.answer(
        f"Imported {entities} entities, {relations} relations ({len(found.bad)} lines skipped)",
        entities=entities, relations=relations, skipped=len(found.bad),
    )  # fmt: skip


def _place(call: Invocation) -> Path | None:
    """The graph file in use (contract 002, 8), None for the notes."""
    return presets.graph_file(None, None, call.settings().graph_file)


def place_for(call: Invocation, file: str) -> Path | None:
    """Where what `file` holds goes: the graph file in use, unless it is that one; None for the notes."""
    place = _place(call)
    if place is not None and place.exists() and file != "-" and place.samefile(Path(file).expanduser()):
        return None
    return place


def graph_at(memory: Memory, file: Path | None) -> NoteGraph | FileGraph:
    """The graph the tools work on."""
    from commonplace.engine.graph import graph_in

    return graph_in(memory, file)


def text_of(file: str) -> str:
    """The file's text, of stdin for `-`; bytes that are no UTF-8 make only their own line a bad one."""
    if file == "-":
        return text_from((file,))
    try:
        return Path(file).expanduser().read_bytes().decode("utf-8", "surrogateescape")
    except OSError as error:
        raise Failure(f"cannot read {file}: {error.strerror}", "not_found") from None
