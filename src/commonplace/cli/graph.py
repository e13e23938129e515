"""`graph export | import` (contract 002, 11)."""

from __future__ import annotations

from pathlib import Path

from commonplace.cli import output
from commonplace.cli.failures import Failure
from commonplace.cli.invocation import Invocation
from commonplace.cli.notes import text_from
from commonplace.cli.syntax import Group, command

graph = Group(
    "graph",
    {"export": "graph:export", "import": "graph:import_graph"},
    help="Hand out the knowledge graph as JSON Lines, or take one in.",
)


@command("export", "[FILE]", keys=("file", "count", "lines"))
def export(call: Invocation, file: str | None = None) -> None:
    """Write the graph to FILE, one entity or relation a line; without FILE, print it.

    With --json and no FILE the lines are in the document.
    """
    from commonplace.engine.graph_lines import written
    from commonplace.engine.graph_notes import NoteGraph

    with call.memory() as memory:
        lines = list(written(NoteGraph(memory)))
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

    Entities that exist get the observations they lack. Running it twice changes nothing.
    """
    from commonplace.engine.graph_lines import read
    from commonplace.engine.graph_notes import NoteGraph

    found = read(_text(file))
    for number, why in found.bad:
        output.notice(f"line {number}: {why}")
    with call.memory() as memory:
        NoteGraph(memory).merge(found.entities, found.relations)
    entities = len({each.name for each, _ in found.entities})
    relations = len({each.triple for each in found.relations})
    call.answer(
        f"Imported {entities} entities, {relations} relations ({len(found.bad)} lines skipped)",
        entities=entities, relations=relations, skipped=len(found.bad),
    )  # fmt: skip


def _text(file: str) -> str:
    """The file's text; bytes that are no UTF-8 make only their own line a bad one."""
    if file == "-":
        return text_from((file,))
    try:
        return Path(file).expanduser().read_bytes().decode("utf-8", "surrogateescape")
    except OSError as error:
        raise Failure(f"cannot read {file}: {error.strerror}", "not_found") from None
