"""Entities and relations that stay in memory are those of the index, whatever happened to it since."""

from __future__ import annotations

import random

import pytest

from index.conftest import Desk
from memoranda.index.index import Index
from memoranda.sources.base import Stamp

NAMES = [
    "Ada",
    "ADA",
    "Ada Lovelace",
    "東京",
    "x::y",
    "C#",
    "a/b",
    *(f"N {number}" for number in range(12)),
]
VIEWERS = (None, "ann", "bob")


def entity(
    name: str, *observations: str, relations: tuple[str, ...] = (), more: str = "type: thing"
) -> str:
    lines = [
        "## Observations",
        *(f"- {observation}" for observation in observations),
        "## Relations",
        *relations,
    ]
    return f"---\ntitle: '{name}'\n{more}\n---\n" + "\n".join(lines) + "\n"


def test_a_look_at_the_memory_and_one_at_the_index_find_the_same(desk: Desk) -> None:
    chance = random.Random(7)
    headers = ("type: thing", "type: thing", "type: thing\nscope: agent:ann", "placeholder: true")
    for _ in range(30):
        for path in chance.sample(range(20), 4):
            targets = chance.choices(
                [*NAMES, "ghost", "GRAPH::N 3", "notes::Zed"], k=chance.randrange(5)
            )
            relations = tuple(
                f"- {chance.choice(('knows', 'is a'))} [[{target}]]" for target in targets
            )
            text = entity(
                chance.choice(NAMES), "tea", relations=relations, more=chance.choice(headers)
            )
            desk.put(f"{path}.md", text, project="graph")
        desk.remove(f"{chance.randrange(20)}.md", project="graph")
        # It has nothing in memory yet, so it looks names up
        fresh = Index(desk.path)
        for viewer in VIEWERS:
            remembering = desk.index.entities
            remembering.all(viewer)
            for names in ({"Ada"}, {"ghost", "notes::Zed", "x::y"}, set(NAMES)):
                assert remembering.relations_at(names, viewer) == fresh.entities.relations_at(
                    names, viewer
                )
        for viewer in VIEWERS:
            assert remembering.relations(viewer) == fresh.entities.relations(viewer)
            assert remembering.matching("tea", viewer) == fresh.entities.matching("tea", viewer)
        fresh.close()


def test_once_the_last_entity_is_gone_nothing_is_left(desk: Desk) -> None:
    desk.put("ada.md", entity("Ada", "likes tea", relations=("- knows [[Bob]]",)), project="graph")
    names = [row.name for row in desk.index.entities.matching("tea", None)]
    assert names == ["Ada"]
    desk.remove("ada.md", project="graph")
    assert desk.index.entities.matching("tea", None) == []
    assert desk.index.entities.relations(None) == []


def test_what_no_text_can_hold_finds_no_entity(desk: Desk) -> None:
    for name in ("Ada", "Bob", "Eve"):
        desk.put(f"{name}.md", entity(name, "tea"), project="graph")
    assert (
        desk.index.entities.matching("\udfff", None)
        == desk.index.entities.matching("\udfffbob", None)
        == []
    )


def test_what_a_transaction_that_failed_had_put_in_is_forgotten(desk: Desk) -> None:
    index = desk.index
    desk.put("ada.md", entity("Ada", "tea"), project="graph")
    bob = desk.note("bob.md", entity("Bob", "tea", relations=("- knows [[Ada]]",)), "graph")

    def put_and_fail() -> None:
        with index.transaction():
            index.put(bob, Stamp(1, 1, 1))
            rows = index.entities.matching("tea", None)
            names = [row.name for row in rows]
            assert names == ["Ada", "Bob"]
            raise KeyError

    with pytest.raises(KeyError):
        put_and_fail()
    desk.put("eve.md", entity("Eve", "tea"), project="graph")
    row_names = [row.name for row in index.entities.matching("tea", None)]
    assert row_names == ["Ada", "Eve"]
    assert index.entities.relations(None) == []


def test_two_observations_hold_nothing_together(desk: Desk) -> None:
    desk.put("ada.md", entity("Ada", "likes tea", "works"), project="graph")
    desk.put("bob.md", entity("Bob", '`"likes tea\\nworks"`'), project="graph")
    assert [row.name for row in desk.index.entities.matching("tea\nwor", None)] == ["Bob"]
    assert [row.name for row in desk.index.entities.matching("ada\nthing", None)] == []
