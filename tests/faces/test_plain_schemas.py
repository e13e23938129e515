"""Schemas for clients that hand them to Gemini as they are: `memory mcp --plain-schemas`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from memoranda.engine import MemorySession
from memoranda.faces import TOOLSETS, registry
from memoranda.faces.tool import plain_schema

GEMINI = frozenset(
    [
        "type",
        "format",
        "title",
        "description",
        "nullable",
        "enum",
        "maxItems",
        "minItems",
        "properties",
        "required",
        "minProperties",
        "maxProperties",
        "minLength",
        "maxLength",
        "pattern",
        "example",
        "anyOf",
        "propertyOrdering",
        "default",
        "items",
        "minimum",
        "maximum",
    ]
)
"""The fields of `Schema` in Gemini's interface."""


def keywords(schema: Mapping[str, Any]) -> Iterator[str]:
    yield from schema
    for value in schema.get("properties", {}).values():
        yield from keywords(value)
    for value in [schema.get("items"), *schema.get("anyOf", [])]:
        if isinstance(value, dict):
            yield from keywords(value)


def kinds(schema: Mapping[str, Any]) -> Iterator[object]:
    if "anyOf" not in schema:
        yield schema.get("type")
    for value in schema.get("properties", {}).values():
        yield from kinds(value)
    if isinstance(schema.get("items"), dict):
        yield from kinds(schema["items"])


@pytest.mark.parametrize("name", TOOLSETS)
def test_plain_schemas_have_only_what_gemini_knows(memory: MemorySession, name: str) -> None:
    for tool in registry([name], memory.settings).with_plain_schemas().tools.values():
        assert set(keywords(tool.schema)) <= GEMINI, tool.name
        assert all(isinstance(kind, str) for kind in kinds(tool.schema)), tool.name


def test_the_default_toolsets_need_no_option(memory: MemorySession) -> None:
    for tool in registry(["memory", "notes"], memory.settings).tools.values():
        assert set(keywords(tool.schema)) <= GEMINI, tool.name


def test_arguments_are_checked_as_before(memory: MemorySession) -> None:
    tools = registry(["kv"], memory.settings)
    plain = tools.with_plain_schemas()
    for arguments in (
        {"key": "a", "value": "b", "bogus": 1},
        {"key": 3, "value": "b"},
        {"value": "b"},
        {"key": "a", "value": "b"},
    ):
        expected = tools.call(memory, "memory_remember", arguments)
        reply = plain.call(memory, "memory_remember", arguments)
        assert (reply.text, reply.is_error) == (expected.text, expected.is_error)


@pytest.mark.parametrize(
    ("schema", "plain"),
    [
        ({"additionalProperties": False}, {}),
        ({"additionalProperties": {"type": "string"}, "type": "object"}, {"type": "object"}),
        (
            {"properties": {"additionalProperties": {"type": "string"}}},
            {"properties": {"additionalProperties": {"type": "string"}}},
        ),
        (
            {"items": {"items": {"additionalProperties": True, "type": "object"}}},
            {"items": {"items": {"type": "object"}}},
        ),
        (
            {"anyOf": [{"type": "object", "additionalProperties": False}, {"type": "null"}]},
            {"anyOf": [{"type": "object"}, {"type": "null"}]},
        ),
        (
            {"default": {"additionalProperties": 1}, "enum": ["additionalProperties"]},
            {"default": {"additionalProperties": 1}, "enum": ["additionalProperties"]},
        ),
    ],
)
def test_the_keyword_goes_and_no_name_or_value_like_it(
    schema: dict[str, Any], plain: dict[str, Any]
) -> None:
    assert plain_schema(schema) == plain
