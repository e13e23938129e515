"""Bounded replies: pages are complete, without repetition, and survive changes in between (contract
002, 4).
"""

from __future__ import annotations

import json
from itertools import chain

import pytest

pytestmark = pytest.mark.promise("002-14.11", "002-14.28")


@pytest.fixture
def small(nodes):
    """A graph of 40 entities around a hub, whose replies hold 2,000 characters."""
    nodes(
        "create_entities",
        entities=[
            {
                "name": f"n{i:02}",
                "entityType": "t",
                "observations": [f"observation {i} " + "x" * 40],
            }
            for i in range(40)
        ],
    )
    nodes.entity("hub", kind="hub")
    nodes.relate(
        *(f"hub knows n{i:02}" for i in range(40)),
        *(f"n{i:02} likes hub" for i in range(20)),
        "ghost haunts phantom",
        "ghost haunts nobody",
    )
    return nodes.like(reply_chars=2000)


def pages(nodes, tool, between=lambda number: None, **arguments):
    """All pages of a call."""
    pages_read = []
    cursor = {}
    while True:
        reply = nodes.reply(tool, arguments | cursor)
        assert not reply.is_error, reply.text
        assert len(reply.text) <= 2000
        assert json.loads(reply.text) == reply.data
        pages_read.append(reply.data)
        between(len(pages_read))
        if "nextCursor" not in reply.data:
            return pages_read
        cursor = {"cursor": reply.data["nextCursor"]}
        assert list(reply.data)[-1] == "nextCursor"


def joined(pages_read, key):
    return list(chain.from_iterable(page[key] for page in pages_read))


@pytest.mark.parametrize("indent", [None, "thoughtbox"])
def test_pages_hold_every_entity_and_relation_exactly_once(small, nodes, indent):
    pages_read = pages(
        small if indent is None else nodes.like(reply_chars=2000, like=indent), "read_graph"
    )
    whole = nodes.like(reply_chars=0)("read_graph")

    assert len(pages_read) > 3
    assert joined(pages_read, "entities") == whole["entities"]
    assert sorted(map(str, joined(pages_read, "relations"))) == sorted(map(str, whole["relations"]))
    for page in pages_read:
        assert page["totalEntities"] == 41
        assert page["totalRelations"] == 62


def test_a_reply_at_the_bound_has_no_further_keys(nodes):
    nodes.entity("a", "b" * 100)
    size = len(nodes.text("read_graph"))
    assert "totalEntities" not in nodes.like(reply_chars=size)("read_graph")
    assert "totalEntities" in nodes.like(reply_chars=size - 1)("read_graph")


def test_a_relation_comes_with_the_first_entity_it_touches(small):
    first = pages(small, "read_graph", limit=1)[0]
    (entity,) = first["entities"]
    assert entity["name"] == "n00"
    ends = {(relation["from"], relation["to"]) for relation in first["relations"]}
    assert ends == {("hub", "n00"), ("n00", "hub")}


def test_entities_that_come_and_go_between_pages_disturb_no_other(small, nodes):
    before = nodes.like(reply_chars=0)("read_graph")
    deleted_names = ("n03", "n17", "n18", "n30")

    def change(number):
        if number <= len(deleted_names):
            nodes("delete_entities", entityNames=[deleted_names[number - 1]])
            nodes.entity(f"new{number}")
            nodes.relate(f"hub knows new{number}", f"ghost haunts new{number}")

    pages_read = pages(small, "read_graph", change)
    names = [entity["name"] for entity in joined(pages_read, "entities")]
    triples = [tuple(relation.values()) for relation in joined(pages_read, "relations")]
    assert len(set(names)) == len(names)
    assert len(set(triples)) == len(triples)
    assert {entity["name"] for entity in before["entities"]} - set(names) <= set(deleted_names)
    missing = {tuple(relation.values()) for relation in before["relations"]} - set(triples)
    for source, target, _ in missing:
        assert {source, target} & set(deleted_names)


def test_a_ranking_goes_on_after_what_was_seen(nodes):
    for number in range(30):
        nodes.entity(f"tea {number}", "likes " * (number % 5 + 1))
    first = nodes("search_nodes", query="likes tea", ranked=True)
    assert len(first["entities"]) == 20
    assert first["totalEntities"] == 30
    nodes("delete_entities", entityNames=[first["entities"][3]["name"]])
    nodes.entity("tea new", "likes likes")
    second = nodes("search_nodes", query="likes tea", ranked=True, cursor=first["nextCursor"])
    names = [entity["name"] for entity in first["entities"] + second["entities"]]
    assert len(set(names)) == 31
    assert len(names) == 31


def test_limit_and_offset_narrow_and_the_totals_stay(small):
    page = small("read_graph", limit=2, offset=3)
    assert [entity["name"] for entity in page["entities"]] == ["n03", "n04"]
    assert (page["totalEntities"], page["totalRelations"]) == (41, 62)
    assert small("read_graph", offset=100)["entities"] == []
    assert small("read_graph", limit=0) == {
        "entities": [],
        "relations": [],
        "totalEntities": 41,
        "totalRelations": 62,
    }


def test_the_observations_of_an_entity_have_a_window(nodes):
    nodes.entity("a", *(f"o{i}" for i in range(9)))
    page = nodes("open_nodes", names=["a"], observationLimit=2, observationOffset=3)

    assert page["entities"] == [
        {"name": "a", "entityType": "thing", "observations": ["o3", "o4"], "observationCount": 9}
    ]
    assert nodes("read_graph", observationLimit=0)["entities"][0]["observationCount"] == 9
    assert "observationCount" not in nodes("read_graph", observationLimit=9)["entities"][0]


def test_an_entity_too_large_for_a_page_can_be_read_to_its_end(nodes):
    texts = [f"observation {i}" for i in range(500)]
    nodes.entity("before")
    nodes.entity("big", *texts)
    nodes.entity("after")
    small = nodes.like(reply_chars=2000)
    pages_read = pages(small, "read_graph")
    names = [row["name"] for row in joined(pages_read, "entities")]
    assert names == ["before", "big", "after"]
    read: list[str] = []
    while len(read) < 500:
        (entity,) = small("open_nodes", names=["big"], observationOffset=len(read))["entities"]
        assert entity["observationCount"] == 500
        read += entity["observations"]
    assert read == texts


def test_the_reply_to_creating_many_entities_is_bounded_and_names_them_without_their_observations(
    nodes,
):
    texts = ["what is known of it, in a sentence of some length " * 4]
    new_entities = [
        {"name": f"e{i:03}", "entityType": "thing", "observations": texts} for i in range(800)
    ]
    reply = nodes.reply("create_entities", {"entities": new_entities})

    assert len(reply.text) <= 80_000
    assert json.loads(reply.text) == reply.data["entities"]
    names = [entity["name"] for entity in new_entities]
    entity_names = [entity["name"] for entity in reply.data["entities"]]
    assert entity_names == names
    for entity in reply.data["entities"]:
        assert not entity["observations"]
    assert nodes("read_graph", limit=0)["totalEntities"] == 800
