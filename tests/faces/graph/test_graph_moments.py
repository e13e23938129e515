"""A reply shows the graph as it is at one moment, whatever others write meanwhile (contract 002,
9).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contract.graph_tools import Nodes
from memoranda.engine import open_session
from memoranda.engine.graph import FileGraph, graph_lines
from memoranda.engine.graphs import NoteGraph, open_graph, opener

pytestmark = pytest.mark.promise("002-14.26")

WHOLE = {
    "entities": [{"name": "Ada", "entityType": "thing", "observations": ["likes tea"]}],
    "relations": [{"from": "Ada", "to": "Acme", "relationType": "works_at"}],
}


@pytest.fixture(params=["notes", "file"])
def race(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """`race(read)`: what `read` returns while another process deletes Ada in the middle of it."""
    kind = FileGraph if request.param == "file" else NoteGraph

    def process() -> Any:
        if request.param == "file":
            return opener(tmp_path / "people.jsonl")
        return open_graph

    open_here = process()

    def run(read: Callable[[Nodes], Any]) -> Any:
        with (
            open_session(tmp_path / "home") as ours,
            open_session(tmp_path / "home", watch=False) as theirs,
        ):
            nodes = Nodes(ours, open_graph=open_here)
            other_nodes = Nodes(theirs, open_graph=process())
            nodes.entity("Ada", "likes tea")
            nodes.relate("Ada works_at Acme")
            for name in ("keys", "named", "matching"):
                looked = getattr(kind, name)

                def looking(graph: Any, *arguments: Any, looked: Any = looked) -> Any:
                    answer = looked(graph, *arguments)
                    if graph.session.engine is ours.engine:
                        other_nodes("delete_entities", entityNames=["Ada"])
                    return answer

                monkeypatch.setattr(kind, name, looking)
            answer = read(nodes)
            monkeypatch.undo()
            assert nodes("read_graph") == {"entities": [], "relations": []}
            return answer

    run.open = open_here  # type: ignore[attr-defined]
    return run


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read_graph", {}),
        ("search_nodes", {"query": "tea"}),
        ("open_nodes", {"names": ["Ada"]}),
        ("read_graph", {"project": "*"}),
    ],
)
def test_no_reply_shows_half_of_what_another_process_did(
    race, tool: str, arguments: dict[str, Any]
) -> None:
    answer = race(lambda nodes: nodes(tool, **arguments))
    entities = []
    for entity in answer["entities"]:
        entities.append({key: entity[key] for key in WHOLE["entities"][0]})
    assert {"entities": entities, "relations": answer["relations"]} == WHOLE


def test_no_export_shows_half_of_what_another_process_did(race) -> None:
    lines = race(lambda nodes: list(graph_lines(race.open(nodes.memory, "graph"))))
    assert len(lines) == 2
    assert "likes tea" in lines[0]
