"""Searching and walking (contract 002, 2 and 4)."""

from __future__ import annotations

import pytest

from contract.tables import tables

TABLES = tables("graph_walks")

pytestmark = pytest.mark.promise("002-14.8", "002-14.9", "002-14.11")


@pytest.fixture
def chain(nodes):
    for name in "ABC":
        nodes.entity(name)
    nodes.relate("A to B", "B to C")
    return nodes


@pytest.mark.parametrize(("arguments", "entities", "relations"), TABLES["walks"])
def test_a_chain_is_opened_and_walked(chain, arguments, entities, relations):
    assert chain.names("open_nodes", **arguments) == entities
    assert chain.triples("open_nodes", **arguments) == relations


def test_walk_around_a_circle_ends(chain):
    chain.relate("C to A", "A self A")
    assert chain.names("open_nodes", names=["A"], depth=5) == ["A", "B", "C"]
    assert chain.triples("open_nodes", names=["A"], depth=5) == [
        "A to B",
        "A self A",
        "B to C",
        "C to A",
    ]


def test_a_name_that_is_no_entity_counts_as_reached(chain):
    chain.relate("A to ghost", "ghost to C")
    assert chain.names("open_nodes", names=["A"], depth=1) == ["A", "B"]
    assert chain.triples("open_nodes", names=["A"], depth=1) == ["A to B", "A to ghost"]
    assert chain.names("open_nodes", names=["A"], depth=2) == ["A", "B", "C"]
    assert "ghost to C" in chain.triples("open_nodes", names=["A"], depth=2)


def test_the_nearest_come_first_and_then_the_oldest(nodes):
    for name in "ZYXW":
        nodes.entity(name)
    nodes.relate("W to Y", "W to X", "X to Z")
    assert nodes.names("open_nodes", names=["W"], depth=2) == ["W", "Y", "X", "Z"]


def test_only_the_named_types_are_followed(nodes):
    for name in "ABC":
        nodes.entity(name)
    nodes.relate("A knows B", "A likes C")
    assert nodes.names("open_nodes", names=["A"], depth=1, relationTypes=["likes"]) == ["A", "C"]


@pytest.mark.parametrize(("query", "expected_names"), TABLES["queries"])
def test_the_query_is_one_piece_of_text(nodes, query, expected_names):
    nodes.entity("Ada", "likes tea", kind="person")
    nodes.entity("Bob", "tea", "likes milk", "a\nb")
    nodes.entity("École")
    nodes.relate("Ada works_at Acme")
    assert nodes.names("search_nodes", query=query) == expected_names


def test_search_follows_every_change(nodes):
    nodes.entity("Ada", "likes tea")
    assert nodes.names("search_nodes", query="tea") == ["Ada"]
    nodes("delete_observations", deletions=[{"entityName": "Ada", "observations": ["likes tea"]}])
    assert nodes.names("search_nodes", query="tea") == []
    nodes("add_observations", observations=[{"entityName": "Ada", "contents": ["green TEA"]}])
    assert nodes.names("search_nodes", query="tea") == ["Ada"]
    nodes("delete_entities", entityNames=["Ada"])
    assert nodes.names("search_nodes", query="tea") == []


def test_ranked_finds_words_in_any_order_and_types_too(nodes):
    nodes.entity("Ada", "likes tea", kind="person")
    nodes.entity("Bob", "tea", kind="bridge")
    assert nodes.names("search_nodes", query="tea likes", ranked=True) == ["Ada"]
    assert nodes.names("search_nodes", query="bridge", ranked=True) == ["Bob"]
    assert nodes("search_nodes", query="", ranked=True, limit=0)["totalEntities"] == 2
