"""The graph tools over a file that is a project beside others (contract 002, 8 and 10)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.graph_tools import Nodes
from memoranda.engine import open_session
from memoranda.engine.graphs import opener
from memoranda.sources.graph_file import GraphFileSource

pytestmark = pytest.mark.promise("002-14.11", "002-14.15")


@pytest.fixture
def file_nodes(tmp_path: Path) -> Iterator[Nodes]:
    """The tools as a server with `--graph-file` has them, over a home that also has notes."""
    file = tmp_path / "place" / "people.jsonl"
    projects = {"people": GraphFileSource("people", file)}
    with open_session(tmp_path / "home", watch=False, projects=projects) as memory:
        Nodes(memory).entity("old", "a note of the graph")
        yield Nodes(memory, open_graph=opener(file))


def test_the_file_is_the_graph_and_a_project_by_its_name(file_nodes: Nodes) -> None:
    file_nodes.entity("Ada", "likes tea")
    assert file_nodes.names("read_graph") == ["Ada"]
    assert file_nodes.names("read_graph", project="people") == ["Ada"]
    assert file_nodes.names("read_graph", project="GRAPH") == ["Ada"]
    file_nodes(
        "add_observations",
        project="people",
        observations=[{"entityName": "Ada", "contents": ["x"]}],
    )
    assert file_nodes("open_nodes", names=["Ada"])["entities"][0]["observations"] == [
        "likes tea",
        "x",
    ]
    file_nodes("delete_entities", project="people", entityNames=["Ada"])
    assert file_nodes.names("read_graph") == []


def test_all_projects_show_the_file_once_and_not_the_notes_it_stands_for(file_nodes: Nodes) -> None:
    file_nodes.entity("Ada")
    file_nodes.relate("Ada knows Bob")
    (file_nodes.memory.home / "notes").mkdir()
    (file_nodes.memory.home / "notes" / "One.md").write_text("- knows [[Two]]\n")
    whole_graph = file_nodes("read_graph", project="*")
    assert {(entity["name"], entity["project"]) for entity in whole_graph["entities"]} == {
        ("Ada", "people"),
        ("One", "notes"),
    }
    assert {(relation["from"], relation["to"]) for relation in whole_graph["relations"]} == {
        ("Ada", "Bob"),
        ("One", "Two"),
    }
    assert (
        file_nodes.error("create_entities", entities=[], project="*")
        == "Name one project to write to"
    )


def test_pages_of_all_projects_hold_the_relations_of_notes_and_of_a_file_at_one_name(
    file_nodes: Nodes,
) -> None:
    file_nodes.entity("Ada")
    file_nodes.relate("Ada knows Bob", "Nobody knows Bob")
    (file_nodes.memory.home / "notes").mkdir()
    (file_nodes.memory.home / "notes" / "Ada.md").write_text("- knows [[Cleo]]\n")
    told_relations = list[str]()
    cursor = {}
    while (page := file_nodes("read_graph", project="*", limit=1, **cursor)).get("nextCursor"):
        told_relations += [f"{relation['from']} {relation['to']}" for relation in page["relations"]]
        cursor = {"cursor": page["nextCursor"]}
    told_relations += [f"{relation['from']} {relation['to']}" for relation in page["relations"]]
    assert sorted(told_relations) == ["Ada Bob", "Ada Cleo", "Nobody Bob"]


def test_ranking_is_the_engines_over_names_types_and_observations(file_nodes: Nodes) -> None:
    file_nodes(
        "create_entities",
        entities=[
            {
                "name": f"filler {at}",
                "entityType": "thing",
                "observations": ["green tea and much else " * 5],
            }
            for at in range(30)
        ],
    )
    file_nodes.entity("kettle", "for green tea")
    file_nodes.entity("green tea", "a drink")
    file_nodes.entity("chair", kind="furniture")
    file_nodes.entity("unrelated", "agreeable", "coffee")
    assert file_nodes.names("search_nodes", query="green TEA", ranked=True, limit=1) == [
        "green tea"
    ]
    assert file_nodes("search_nodes", query="tea green", ranked=True)["totalEntities"] == 32
    assert file_nodes.names("search_nodes", query="furniture", ranked=True) == ["chair"]
    # Inside a word
    assert "unrelated" in file_nodes.names("search_nodes", query="greeable", ranked=True)
    # Two words that nothing holds together are relaxed
    relaxed = file_nodes.names("search_nodes", query="tea nothing", ranked=True)
    assert relaxed[0] == "green tea"
    assert "chair" not in relaxed


def test_a_cursor_of_the_file_goes_on_in_another_process(file_nodes: Nodes, tmp_path: Path) -> None:
    file_nodes(
        "create_entities",
        entities=[{"name": f"n{at}", "entityType": "t", "observations": []} for at in range(9)],
    )
    page = file_nodes("read_graph", limit=4)
    file_nodes.memory.close()
    file = tmp_path / "place" / "people.jsonl"
    with open_session(tmp_path / "home", watch=False) as memory:
        later = Nodes(memory, open_graph=opener(file))
        assert later.names("read_graph", limit=9, cursor=page["nextCursor"]) == [
            f"n{at}" for at in range(4, 9)
        ]
