"""What is wrong with a call is named with its place (contract 002, 3)."""

from __future__ import annotations

import pytest

from contract.tables import tables

TABLES = tables("graph_arguments")

pytestmark = pytest.mark.promise("002-14.1", "002-14.5")

ENTITY = {"name": "Ada", "entityType": "person", "observations": []}


@pytest.mark.parametrize(("tool", "arguments", "text"), TABLES["refused"])
def test_a_bad_argument_is_named_with_its_path(nodes, tool, arguments, text):
    reply = nodes.reply(tool, arguments)
    assert (reply.text, reply.is_error, reply.data) == (
        f"Input validation error: {text}",
        True,
        None,
    )
    assert nodes.files() == {}


def test_unknown_keys_are_dropped_at_both_levels(nodes):
    created = nodes("create_entities", entities=[ENTITY | {"age": 3}], extra=1)
    assert created == {"entities": [ENTITY]}


def test_optional_arguments_that_are_null_count_as_not_given(nodes):
    assert nodes("read_graph", limit=None, cursor=None, project=None) == {
        "entities": [],
        "relations": [],
    }


def test_a_lone_surrogate_becomes_the_replacement_character(nodes):
    created = nodes(
        "create_entities",
        entities=[{"name": "a\ud800", "entityType": "\ud83d\ude00", "observations": []}],
    )
    assert created["entities"][0] | {"observations": []} == {
        "name": "a\ufffd",
        "entityType": "😀",
        "observations": [],
    }
    assert nodes.names("open_nodes", names=["a\ufffd"]) == ["a\ufffd"]


@pytest.mark.parametrize(
    "cursor", ["x", "!!", "W10", "WzEsMiwzLDRd", "e30", "é", "WyJhIixudWxsLGZhbHNlLG51bGxd"]
)
def test_a_cursor_that_is_none_is_refused(nodes, cursor):
    nodes.entity("a")
    assert nodes.error("read_graph", cursor=cursor) == "Invalid cursor"
