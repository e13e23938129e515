"""Every argument of every tool has a size (docs/limits.md)."""

from __future__ import annotations

import json
import time

import pytest

from memoranda.engine import open_session
from memoranda.errors import InvalidInput
from memoranda.faces import ALL, registry
from memoranda.faces.arguments import check
from memoranda.faces.sizes import _sizes, check_sizes


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    with open_session(tmp_path_factory.mktemp("home"), watch=False, agent="bob") as memory:
        yield memory


@pytest.fixture(scope="module")
def tools(memory):
    return registry(ALL, memory.settings)


def too_large(name, schema):
    """Values of an argument that are too large, whatever its type."""
    kinds = {schema.get("type")} | {
        alternative.get("type") for alternative in schema.get("anyOf", ())
    }
    deep = []
    for _ in range(_sizes().depth + 5):
        deep = [deep]
    yield deep
    very_deep = {}
    for _ in range(490):
        very_deep = {"k": very_deep}
    yield very_deep
    if kinds & {"array"}:
        yield ["x"] * (_sizes().lists.get(name, _sizes().list) + 1)
        yield ",".join(["x"] * (_sizes().lists.get(name, _sizes().list) + 1))
    if kinds & {"object"}:
        yield {f"k{number}": 1 for number in range(_sizes().object + 1)}
        yield {"k": ["x"] * (_sizes().values + 1)}
        yield {"k" * (_sizes().text + 1): 1}
    most = _sizes().texts.get(name, _sizes().text)
    if kinds & {"string"} and most:
        yield "x" * (most + 1)


@pytest.mark.promise("arguments-sizes")
def test_what_is_too_large_is_refused_by_every_tool_at_once(memory, tools):
    for name, tool in tools.tools.items():
        properties = (tool.accepts or tool.schema).get("properties", {})
        usual = dict.fromkeys(tool.schema.get("required", ()), "x")
        for argument, schema in properties.items():
            for value in too_large(argument, schema):
                begun = time.process_time()
                reply = tools.call(memory, name, usual | {argument: value})
                took = time.process_time() - begun
                assert reply.is_error, (name, argument)
                assert len(reply.text) < 2_000, (name, argument)
                assert "internal" not in reply.text.lower(), (name, argument, reply.text)
                assert took < 0.5, (name, argument, took)


@pytest.mark.promise("arguments-sizes")
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"query": "x" * 10_001}, "`query` may have 10,000 characters; it has 10,001"),
        ({"tags": ["x"] * 1_001}, "`tags` may have 1,000 elements; it has 1,001"),
        ({"entities": [{"name": "x" * 10_001}]}, "`name` may have 10,000 characters"),
        ({"metadata": {"a": {"b": [1] * 1_001}}}, "`metadata` may have 1,000 elements"),
        ({f"k{number}": 1 for number in range(201)}, "The call may have 200 keys; it has 201"),
        ({"metadata": {f"k{number}": 1 for number in range(201)}}, "may have 200 keys"),
        ({"a": [[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]}, "nested more than 16 deep"),
        ({"a": [["x"] * 1_000] * 101}, "more than 100,000 values"),
        ({"k" * 20_000: "x" * 20_000}, "has a key of 20,000 characters"),
    ],
)
def test_the_refusal_names_the_size(arguments, sentence):
    with pytest.raises(InvalidInput) as refused:
        check_sizes(arguments)
    assert sentence in str(refused.value)


def test_what_a_note_may_hold_is_as_large_as_a_note(memory, tools):
    check_sizes({"content": "x" * 5_000_000, "observations": ["x" * 50_000]})
    check_sizes({"entities": [{"name": f"n{n}", "observations": ["x"]} for n in range(5_000)]})
    check_sizes({"tags": json.dumps(["x"] * 900), "metadata": {"summary": "x" * 50_000}})


@pytest.mark.promise("arguments-sizes")
def test_a_text_in_very_many_places_is_answered_shortly(memory, tools):
    tools.call(
        memory,
        "memory",
        {"command": "create", "path": "/memories/a.md", "file_text": "ab\n" * 50_000},
    )
    edit = {"command": "str_replace", "path": "/memories/a.md", "old_str": "ab", "new_str": "c"}
    reply = tools.call(memory, "memory", edit)
    assert reply.is_error
    assert reply.text.endswith("99, 100, and 49,900 more. Please ensure it is unique")
    absent = edit | {"old_str": "not there " * 20_000}
    assert len(tools.call(memory, "memory", absent).text) < 3_000


def test_a_number_of_hundreds_of_digits_is_not_repeated_in_full() -> None:
    schema = {"properties": {"page": {"type": "integer", "minimum": 1, "maximum": 5}}}
    with pytest.raises(InvalidInput, match=r"must be 1 to 5; got 1000+\.$") as caught:
        check({"page": 10**400}, schema, "notes")
    assert len(str(caught.value)) < 120
