"""The graph as notes: placeholders, hand edits, order, titles that stand twice (contract 002, 5)."""

from __future__ import annotations

import os
import threading
from datetime import timedelta

import pytest

from editing import replace_in

pytestmark = pytest.mark.promise("002-14.18", "002-14.19", "002-14.20", "002-14.29")


def test_a_placeholder_appears_becomes_an_entity_and_disappears(nodes):
    nodes.relate("Ghost knows Ada", "Ghost likes tea")
    (text,) = nodes.files().values()
    assert "placeholder: true\n" in text
    assert "Observations" not in text
    assert nodes("read_graph")["entities"] == []
    assert nodes("read_graph", limit=0)["totalEntities"] == 0
    nodes.entity("Ghost", "boo", kind="spirit")
    (text,) = nodes.files().values()
    assert "placeholder" not in text
    assert (
        "\n## Observations\n\n- boo\n\n## Relations\n\n- knows [[Ada]]\n- likes [[tea]]\n" in text
    )
    assert nodes.triples("open_nodes", names=["Ghost"]) == ["Ghost knows Ada", "Ghost likes tea"]


def test_the_last_relation_of_a_placeholder_takes_its_file_along(nodes):
    nodes.relate("Ghost knows Ada", "Ghost likes tea")
    for target, kind in (("Ada", "knows"), ("tea", "likes")):
        assert len(nodes.files()) == 1
        nodes("delete_relations", relations=[{"from": "Ghost", "to": target, "relationType": kind}])

    assert nodes.files() == {}


def test_deleting_the_name_of_a_placeholder_removes_every_relation_to_it(nodes):
    nodes.entity("Ada")
    nodes.relate("Ghost knows Ada", "Ada knows Ghost", "Other knows Ghost")
    nodes("delete_entities", entityNames=["Ghost"])

    assert list(nodes.files()) == ["Ada.md"]
    relations = nodes("read_graph")["relations"]
    assert relations == []


def test_deleting_an_entity_removes_relations_in_other_notes_and_nothing_else(nodes):
    nodes.entity("Ada")
    nodes.entity("Bob", "sees [[Ada]]")
    nodes.relate("Bob knows Ada", "Bob knows Eve", "Ada knows Bob")
    before = nodes.files()["Bob.md"]
    nodes("delete_entities", entityNames=["Ada"])
    without_relation = before.replace("- knows [[Ada]]\n", "")

    assert nodes.files() == {"Bob.md": without_relation}


def test_a_call_that_changes_nothing_writes_nothing(nodes):
    nodes.entity("Ada", "likes tea")
    nodes.relate("Ada knows Bob")
    changes = len(nodes.memory.log(limit=100))
    nodes.entity("Ada", "other")
    nodes.relate("Ada knows Bob")
    nodes("add_observations", observations=[{"entityName": "Ada", "contents": ["likes tea"]}])
    nodes("delete_entities", entityNames=["nobody"])
    nodes("delete_observations", deletions=[{"entityName": "Ada", "observations": ["x"]}])
    nodes("delete_relations", relations=[{"from": "Ada", "to": "Eve", "relationType": "knows"}])

    assert len(nodes.memory.log(limit=100)) == changes


def test_the_order_is_that_of_creation_also_when_the_clock_goes_back(nodes, clock):
    nodes.entity("first")
    clock.now -= timedelta(days=9)
    nodes(
        "create_entities",
        entities=[
            {"name": name, "entityType": "t", "observations": []} for name in ("z", "y", "x")
        ],
    )
    clock.now -= timedelta(days=9)
    nodes.entity("last")
    order = ["first", "z", "y", "x", "last"]
    assert nodes.names("read_graph") == order
    nodes.memory.reindex()
    assert nodes.names("read_graph") == order


def test_a_hand_edit_a_new_and_a_deleted_file_are_seen(nodes):
    nodes.entity("Ada", "likes tea")
    root = nodes.memory.home / "graph"
    replace_in(root / "Ada.md", "likes tea", "likes milk")
    (root / "sub").mkdir()
    (root / "sub" / "By hand.md").write_text("# Hand\n\n## Observations\n1. one\n   - nested\n")
    entities = {entity["name"]: entity for entity in nodes("read_graph")["entities"]}
    assert entities["Ada"]["observations"] == ["likes milk"]
    assert entities["By hand"] == {
        "name": "By hand",
        "entityType": "note",
        "observations": ["one", "nested"],
    }
    (root / "Ada.md").unlink()
    assert nodes.names("read_graph") == ["By hand"]


def test_a_moved_and_renamed_file_keeps_its_name_in_the_graph(nodes):
    nodes.entity("Ada", "likes tea")
    nodes.relate("Ada knows Bob")
    root = nodes.memory.home / "graph"
    (root / "people").mkdir()
    (root / "Ada.md").rename(root / "people" / "someone.md")
    assert nodes.triples("open_nodes", names=["Ada"]) == ["Ada knows Bob"]
    nodes("add_observations", observations=[{"entityName": "Ada", "contents": ["x"]}])
    assert "- x\n" in nodes.files()["people/someone.md"]


def test_writing_to_a_title_that_stands_twice_is_refused(nodes):
    root = nodes.memory.home / "graph"
    root.mkdir(parents=True)
    for name in ("b", "a"):
        (root / f"{name}.md").write_text("---\ntitle: X\n---\n")
    text = "Entity with name X is ambiguous: a.md, b.md"
    assert nodes.names("open_nodes", names=["X"]) == ["X", "X"]
    assert (
        nodes.error("add_observations", observations=[{"entityName": "X", "contents": ["y"]}])
        == text
    )
    assert nodes.error("delete_entities", entityNames=["X"]) == text
    assert (
        nodes.error("create_relations", relations=[{"from": "X", "to": "X", "relationType": "y"}])
        == text
    )


def test_a_locked_note_is_not_changed(nodes):
    nodes.entity("Ada")
    place = nodes.memory.home / "graph" / "Ada.md"
    replace_in(place, "type:", "locked: true\ntype:")
    before = nodes.files()
    assert "is locked" in nodes.error(
        "add_observations", observations=[{"entityName": "Ada", "contents": ["y"]}]
    )
    assert "is locked" in nodes.error("delete_entities", entityNames=["Ada"])
    assert nodes.files() == before


def test_names_that_differ_in_case_alone_lie_side_by_side(nodes):
    for name in ("Ada", "ada", "ADA", "a/b", "..", "\0", "x" * 300, ""):
        nodes.entity(name, f"I am {name}")
    assert len(nodes.files()) == 8
    assert "Ada.md" in nodes.files()
    observations = nodes("open_nodes", names=["ada"])["entities"][0]["observations"]
    assert observations == ["I am ada"]
    observations = nodes("open_nodes", names=[""])["entities"][0]["observations"]
    assert observations == ["I am "]
    for path in nodes.files():
        assert len(path.encode()) < 130


def test_the_number_of_files_a_write_opens_does_not_depend_on_the_number_of_entities(
    nodes, monkeypatch
):
    opened: list[str] = []
    real = os.open
    this_thread = threading.get_ident()

    def counting(path, *rest, **more):
        # Another thread opens the files of the last changes when their time comes
        is_of_the_write = threading.get_ident() == this_thread
        # Which of its folders is new is chance
        is_history = "objects" in str(path) or str(path).endswith("history")
        if is_of_the_write and not is_history:
            opened.append(str(path))
        return real(path, *rest, **more)

    def count(name):
        opened.clear()
        monkeypatch.setattr(os, "open", counting)
        nodes.entity(name, "x")
        nodes("add_observations", observations=[{"entityName": name, "contents": ["y"]}])
        nodes.relate(f"{name} knows e1")
        monkeypatch.setattr(os, "open", real)
        return len(opened)

    nodes.entity("e1")
    first = count("before")
    nodes(
        "create_entities",
        entities=[{"name": f"m{i}", "entityType": "t", "observations": []} for i in range(200)],
    )
    assert count("after") == first


def test_a_call_that_did_less_than_asked_says_so_in_a_second_text(nodes):
    nodes(
        "create_entities",
        entities=[{"name": "Bob", "entityType": "person", "observations": ["likes tea"]}],
    )
    add = {"observations": [{"entityName": "bob", "contents": ["x"]}]}
    drop = {"deletions": [{"entityName": "Bob", "observations": ["likes tea", "likes ale"]}]}
    twin = {"entities": [{"name": "Bob", "entityType": "x", "observations": []}]}
    missing = {"relations": [{"from": "Bob", "to": "Ann", "relationType": "knows"}]}
    for tool, arguments, text, hint in (
        (
            "add_observations",
            add,
            "Entity with name bob not found",
            'Did you mean "Bob", not "bob"?',
        ),
        (
            "create_entities",
            twin,
            "[]",
            'Already there, nothing was changed: "Bob". Use memory_add_observations',
        ),
        (
            "delete_observations",
            drop,
            "Observations deleted successfully",
            "1 of 2 deleted: no such observation.",
        ),
        (
            "delete_observations",
            drop,
            "Observations deleted successfully",
            "0 of 2 deleted: no such observation.",
        ),
        (
            "delete_relations",
            missing,
            "Relations deleted successfully",
            "0 of 1 deleted: no such relation.",
        ),
        (
            "delete_entities",
            {"entityNames": ["Bobb"]},
            "Entities deleted successfully",
            '0 of 1 deleted: no such entity. Did you mean "Bob", not "Bobb"?',
        ),
        ("open_nodes", {"names": ["bob"]}, '{"entities":[],"relations":[]}', 'Did you mean "Bob"'),
        ("open_nodes", {"names": ["Bob"]}, '{"entities":', ""),
    ):
        reply = nodes.reply(tool, arguments)
        assert reply.text.startswith(text), tool
        assert reply.hint.startswith(hint), tool
        assert bool(reply.hint) == bool(hint), tool


def test_relations_that_were_deleted_are_counted_and_misspelled_names_told_in_the_order_asked(
    nodes,
):
    for name in ("Ada", "Bob", "Eve"):
        nodes.entity(name)
    nodes.relate("Ada knows Bob", "Ada knows Eve")
    known_relation = {"from": "Ada", "to": "Bob", "relationType": "knows"}
    unknown_relation = {"from": "Ada", "to": "Eve", "relationType": "knows"}
    assert nodes.reply("delete_relations", {"relations": [known_relation]}).hint == ""
    hint = nodes.reply("delete_relations", {"relations": [known_relation, unknown_relation]}).hint
    assert hint == "1 of 2 deleted: no such relation."
    hint = nodes.reply("delete_entities", {"entityNames": ["Evee", "Adaa", "Bobb"]}).hint
    assert hint.endswith('Did you mean "Eve", not "Evee"? "Ada", not "Adaa"? "Bob", not "Bobb"?')


def test_an_entity_named_often_in_one_call_is_read_and_written_as_one(nodes):
    nodes.entity("Ada", "old")
    texts = [f"text {number}" for number in range(300)]
    added = [{"entityName": "Ada", "contents": [text, "old"]} for text in texts]
    results = nodes(
        "add_observations", observations=[*added, {"entityName": "Ada", "contents": ["text 7"]}]
    )
    assert [result["addedObservations"] for result in results["results"]] == [
        *([text] for text in texts),
        [],
    ]
    deletions = [{"entityName": "Ada", "observations": [text]} for text in texts[1:]]
    nodes("delete_observations", deletions=deletions)
    observations = nodes("open_nodes", names=["Ada"])["entities"][0]["observations"]
    assert observations == ["old", "text 0"]
