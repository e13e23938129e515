"""Notes of other projects as entities (contract 002, 10)."""

from __future__ import annotations

import pytest

from editing import replace_in

pytestmark = pytest.mark.promise("002-14.15")

API = """# API

Read [[Design]] first.

- [fact] speaks HTTP #net (since 1)
- uses [[Database]]
- plain item

## Observations

- an item of the section
"""


@pytest.fixture
def notes(nodes):
    root = nodes.memory.home / "notes"
    (root / "specs").mkdir(parents=True)
    (root / "specs" / "API.md").write_text(
        "---\ntitle: API\ntype: spec\ncreated_at: 2026-01-01T00:00:00Z\n---\n" + API
    )
    (root / "Database.md").write_text(
        "---\ntitle: Database\ncreated_at: 2026-01-02T00:00:00Z\n---\n- [fact] stores\n"
    )
    (root / "Design.md").write_text(
        "---\ntitle: Design\ncreated_at: 2026-01-03T00:00:00Z\n---\nSee [[specs/API]].\n"
    )
    return nodes


def test_notes_are_entities_and_their_links_relations(notes):
    graph_of_notes = notes("read_graph", project="notes")
    assert graph_of_notes["entities"] == [
        {
            "name": "API",
            "entityType": "spec",
            "observations": ["[fact] speaks HTTP #net (since 1)", "an item of the section"],
        },
        {"name": "Database", "entityType": "note", "observations": ["[fact] stores"]},
        {"name": "Design", "entityType": "note", "observations": []},
    ]
    triples = notes.triples("read_graph", project="notes")
    assert sorted(triples) == ["API links_to Design", "API uses Database", "Design links_to API"]
    assert notes.names("open_nodes", names=["Database"], depth=2, project="notes") == [
        "Database",
        "API",
        "Design",
    ]
    assert notes.names("search_nodes", query="HTTP", project="NOTES") == ["API"]


def test_every_project_at_once_tells_the_project_and_is_not_written_to(notes):
    notes.entity("Ada", "likes tea")
    whole_graph = notes("read_graph", project="*")
    assert [(entity["name"], entity["project"]) for entity in whole_graph["entities"]] == [
        ("API", "notes"),
        ("Database", "notes"),
        ("Design", "notes"),
        ("Ada", "graph"),
    ]
    text = notes.error("create_entities", entities=[], project="*")
    assert text == "Name one project to write to"


def test_changes_go_into_the_note(notes):
    before = notes.files("notes")["specs/API.md"]
    added = notes(
        "add_observations",
        project="notes",
        observations=[
            {
                "entityName": "API",
                "contents": ["an item of the section", "new", "[fact] speaks HTTP #net (since 1)"],
            }
        ],
    )
    assert added == {"results": [{"entityName": "API", "addedObservations": ["new"]}]}
    notes(
        "create_relations",
        project="notes",
        relations=[{"from": "API", "to": "Design", "relationType": "follows"}],
    )
    after = notes.files("notes")["specs/API.md"]
    assert after == before + "- new\n\n## Relations\n\n- follows [[Design]]\n"
    notes(
        "delete_relations",
        project="notes",
        relations=[
            {"from": "API", "to": "Design", "relationType": "follows"},
            {"from": "API", "to": "Database", "relationType": "uses"},
        ],
    )
    assert "- uses [[Database]]" in notes.files("notes")["specs/API.md"]
    assert "follows" not in notes.files("notes")["specs/API.md"]


def test_a_new_entity_is_a_new_note(notes):
    notes(
        "create_entities",
        project="notes",
        entities=[{"name": "New one", "entityType": "idea", "observations": ["x"]}],
    )
    assert notes.memory.find("New one", "notes").type == "idea"
    assert (
        notes.error(
            "create_relations",
            project="notes",
            relations=[{"from": "nobody", "to": "API", "relationType": "x"}],
        )
        == "Entity with name nobody not found"
    )


def test_deleting_entities_there_is_refused(notes):
    text = notes.error("delete_entities", entityNames=["API"], project="notes")
    assert text == 'Entities of project "notes" are notes and are not deleted here'
    assert 'No project "nowhere"' in notes.error("read_graph", project="nowhere")


def test_an_agent_does_not_see_entities_of_another_ones_scope(notes):
    notes.entity("Hers", "secret")
    notes.entity("Shared")
    notes.relate("Hers knows Shared")
    place = notes.memory.home / "graph" / "Hers.md"
    replace_in(place, "type:", "scope: agent:y\ntype:")
    for agent, names in (("x", ["Shared"]), ("y", ["Hers", "Shared"])):
        theirs = type(notes)(notes.memory.as_caller(agent))
        assert theirs.names("read_graph") == names
        assert theirs.names("open_nodes", names=["Hers"]) == names[:-1]
        assert theirs.names("search_nodes", query="secret") == names[:-1]
        assert theirs("read_graph", limit=0)["totalRelations"] == len(names) - 1
