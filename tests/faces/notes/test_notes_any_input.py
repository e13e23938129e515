"""Whatever a client sends, a note tool answers: a bounded reply or an error of the contract's
codes.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.tables import tables
from memoranda.faces.notes import toolset

TABLES = tables("note_any")

CODES = {
    "not_found",
    "ambiguous",
    "exists",
    "conflict",
    "count",
    "section",
    "outside",
    "locked",
    "timeframe",
    "project_not_found",
    "project_refused",
    "invalid",
    "not_text",
    "storage",
}
TOOLS = {tool.name: tool for tool in toolset().tools}
WORDS = TABLES["words"]
TEXTS = st.one_of(st.sampled_from(WORDS), st.text(max_size=40))
VALUES = st.one_of(
    TEXTS,
    st.integers(-3, 10**20),
    st.booleans(),
    st.none(),
    st.floats(allow_nan=False),
    st.lists(TEXTS, max_size=3),
    st.dictionaries(
        TEXTS, st.one_of(TEXTS, st.integers(), st.lists(TEXTS, max_size=2)), max_size=3
    ),
)


def arguments(tool):
    """Arguments mostly of the right kinds, some of any kind."""
    numbers = st.integers(-3, 10**20)
    lists = st.lists(TEXTS, max_size=3)
    kinds = {"string": TEXTS, "integer": numbers, "boolean": st.booleans(), "array": lists}
    properties = {
        name: st.one_of(kinds.get(schema.get("type"), VALUES), VALUES)
        for name, schema in tool.schema["properties"].items()
        if name != "project_path"
    }
    if "operation" in properties:
        properties["operation"] = st.sampled_from(tool.schema["properties"]["operation"]["enum"])
    if "project_path" in tool.schema["properties"]:
        properties["project_path"] = st.text(max_size=20).map("relative/{}".format)
    required = {name: properties.pop(name) for name in tool.schema.get("required", ())}
    return st.fixed_dictionaries(
        required, optional=properties | {"output_format": st.sampled_from(["text", "json"])}
    )


@pytest.mark.parametrize("name", TOOLS)
def test_any_input_is_answered(shared, name):
    @given(arguments(TOOLS[name]))
    def check(given_arguments):
        shared.put("A.md", "- [fact] a #tag\n- see [[B]]\n")
        reply = shared.call(name, **given_arguments)
        if reply.is_error:
            assert reply.data["code"] in CODES
            assert str(shared.memory.home) not in reply.text

    check()
