"""What is wrong with a call is named with its place (contract 002, 3)."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.promise("002-14.1", "002-14.5")

ENTITY = {"name": "Ada", "entityType": "person", "observations": []}


@pytest.mark.parametrize(
    ("tool", "arguments", "text"),
    [
        ("create_entities", {"entities": [{"name": "a", "entityType": "t"}]},
         "entities[0].observations: expected array, found nothing"),
        ("create_entities", {}, "entities: expected array, found nothing"),
        ("create_entities", {"entities": None}, "entities: expected array, found null"),
        ("create_entities", {"entities": "[]"}, "entities: expected array, found string"),
        ("create_entities", {"entities": [ENTITY, 7]}, "entities[1]: expected object, found number"),
        ("create_entities", {"entities": [ENTITY | {"observations": ["a", True]}]},
         "entities[0].observations[1]: expected string, found boolean"),
        ("create_entities", {"entities": [{"name": "a", "type": "t", "observations": []}]},
         'entities[0].entityType: expected string, found nothing; "type" is not a field here,'
         ' did you mean "entityType"?'),
        ("add_observations", {"observations": [{"name": "a", "contents": []}]},
         'observations[0].entityName: expected string, found nothing; "name" is not a field here,'
         ' did you mean "entityName"?'),
        ("add_observations", {"observations": [{"entityName": "a", "observations": []}]},
         'observations[0].contents: expected array, found nothing; "observations" is not a field here,'
         ' did you mean "contents"?'),
        ("create_relations", {"relations": [{"from": "a", "to": "b", "type": "c"}]},
         'relations[0].relationType: expected string, found nothing; "type" is not a field here,'
         ' did you mean "relationType"?'),
        ("delete_entities", {"entityNames": {"a": 1}}, "entityNames: expected array, found object"),
        ("open_nodes", {"names": ["a"], "depth": 6}, "depth: expected integer from 0 to 5, found 6"),
        ("open_nodes", {"names": ["a"], "depth": True}, "depth: expected integer, found boolean"),
        ("open_nodes", {"names": ["a"], "direction": "up"},
         'direction: expected one of out, in, both, found "up"'),
        ("read_graph", {"limit": -1}, "limit: expected integer from 0, found -1"),
        ("read_graph", [], "arguments: expected object, found array"),
    ],
)  # fmt: skip
def test_a_bad_argument_is_named_with_its_path(nodes, tool, arguments, text):
    reply = nodes.reply(tool, arguments)
    assert (reply.text, reply.is_error, reply.data) == (f"Input validation error: {text}", True, None)
    assert nodes.files() == {}


def test_unknown_keys_are_dropped_at_both_levels(nodes):
    made = nodes("create_entities", entities=[ENTITY | {"age": 3}], extra=1)
    assert made == {"entities": [ENTITY]}


def test_optional_arguments_that_are_null_count_as_not_given(nodes):
    assert nodes("read_graph", limit=None, cursor=None, project=None) == {"entities": [], "relations": []}


def test_a_lone_surrogate_becomes_the_replacement_character(nodes):
    made = nodes("create_entities", entities=[{"name": "a\ud800", "entityType": "\ud83d\ude00", "observations": []}])
    assert made["entities"][0] | {"observations": []} == {"name": "a\ufffd", "entityType": "😀", "observations": []}
    assert nodes.names("open_nodes", names=["a\ufffd"]) == ["a\ufffd"]


@pytest.mark.parametrize("cursor", ["", "x", "!!", "W10", "WzEsMiwzLDRd", "e30", "é", "WyJhIixudWxsLGZhbHNlLG51bGxd"])
def test_a_cursor_that_is_none_is_refused(nodes, cursor):
    nodes.entity("a")
    assert nodes.error("read_graph", cursor=cursor) == "Invalid cursor"
