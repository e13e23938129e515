"""What the key-value tools make of arguments that are wrong."""

from __future__ import annotations

from contextlib import nullcontext

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema.exceptions import best_match

from contract.key_value import LIMIT
from memoranda.errors import InvalidInput
from memoranda.faces.arguments import check
from memoranda.faces.kv import toolset

SCHEMAS = {tool.name: tool.schema for tool in toolset().tools}
_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.floats(-9, 9)
    | st.sampled_from(["a", "json", "3", ""])
)
_VALUES = (
    _SCALARS
    | st.lists(_SCALARS, max_size=2)
    | st.dictionaries(st.sampled_from("ab"), _SCALARS, max_size=2)
)


def without_nulls(schema: dict, arguments: object) -> object:
    """Return the arguments without the nulls that mean an absent argument. The schema does not say
    this.
    """
    if not isinstance(arguments, dict):
        return arguments
    optional = schema["properties"].keys() - set(schema.get("required", ()))
    return {
        name: value
        for name, value in arguments.items()
        if value is not None or name not in optional
    }


@given(data=st.data())
def test_the_words_are_those_of_jsonschema_for_the_error_it_picks(data):
    schema = SCHEMAS[data.draw(st.sampled_from(sorted(SCHEMAS)))]
    names = st.sampled_from([*schema["properties"], "bogus", "other"])
    arguments = data.draw(st.dictionaries(names, _VALUES, max_size=6) | _VALUES)
    error = best_match(
        jsonschema.Draft202012Validator(schema).iter_errors(without_nulls(schema, arguments))
    )
    with nullcontext() if error is None else pytest.raises(InvalidInput) as refused:
        check(arguments, schema, "kv")
    assert error is None or str(refused.value) == f"Input validation error: {error.message}"


def test_null_is_an_argument_not_given_but_for_required_ones(entries):
    entries.ok("remember", key="k", value="v", namespace=None, ttl_seconds=None)
    text, failed = entries.call("recall", key="k", namespace=None, format=None, offset=None)
    assert not failed
    assert "**value:** v\n" in text
    assert entries.found("v", namespace=None, limit=None, offset=None) == [("default", "k")]
    assert entries.call("recall", key=None) == (
        "Input validation error: None is not of type 'string'",
        True,
    )


@pytest.mark.parametrize("arguments", [[], "key", 5, True])
def test_arguments_that_are_no_object_are_a_schema_error(entries, arguments):
    reply = entries.registry.call(entries.memory, "memory_stats", arguments)
    assert reply.is_error
    assert reply.text == f"Input validation error: {arguments!r} is not of type 'object'"


def test_a_schema_error_stays_within_the_limit(entries):
    text, failed = entries.call("remember", key=["x" * 100_000], value="v")
    assert failed
    assert len(text) <= LIMIT


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("remember", {"key": "a\ud800", "value": "v"}, "Key is not valid Unicode text"),
        ("remember", {"key": "k", "value": "\udfff"}, "Value is not valid Unicode text"),
        (
            "remember",
            {"key": "k", "value": "v", "namespace": "\ud83c"},
            "Namespace is not valid Unicode text",
        ),
        ("recall", {"key": "\ud800"}, "Key is not valid Unicode text"),
        ("search", {"query": "\ud800"}, "Query is not valid Unicode text"),
        ("search", {"query": "\u2003\n"}, "Query must not be empty"),
        ("search", {"query": "x", "offset": -1}, "offset must not be negative"),
        ("list_namespaces", {"offset": -1}, "offset must not be negative"),
        ("clear_namespace", {"namespace": ""}, "Namespace must not be empty"),
        (
            "clear_namespace",
            {"namespace": "n" * 1001},
            "Namespace is too long (1001 characters, at most 1000)",
        ),
        ("forget", {"key": "世" * 1001}, "Key is too long (1001 characters, at most 1000)"),
        (
            "remember",
            {"key": "k", "value": "v", "ttl_seconds": 10**30},
            "ttl_seconds is too large (at most 100000000000)",
        ),
        (
            "remember",
            {"key": "k", "value": "世" * 3_495_254},
            "Value is too long (10485762 bytes, at most 10485760)",
        ),
    ],
)
def test_what_no_entry_can_have_is_refused_in_one_sentence(entries, tool, arguments, message):
    assert entries.refused(tool, **arguments) == message
    assert entries.call(tool, **arguments) == (f"## ❌ Error\n**{message}**", True)
    assert not entries.root.exists() or entries.files() == {}


@pytest.mark.slow
def test_a_value_of_just_ten_megabytes_is_kept(entries):
    entries.remember("k", "x" * 10_485_760)
    assert entries.ok("recall", key="k", offset=10_485_759)["value"] == "x"


def test_whole_numbers_may_be_written_with_a_point(entries):
    assert entries.ok("remember", key="k", value="v", ttl_seconds=5.0)["expires_in"] == "5s"
    assert entries.found("v", limit=1.0, offset=0.0) == [("default", "k")]
