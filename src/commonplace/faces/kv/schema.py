"""Arguments against a tool's schema, in the words clients of the reference server know (contract 004, 6).

The words are those of the `jsonschema` package, of the error it would pick; a test compares them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_KINDS: dict[str, tuple[type, ...]] = {"string": (str,), "integer": (int, float), "object": (dict,)}


def problem(schema: Mapping[str, Any], given: Any) -> str | None:
    """What is wrong with `given`, None when it fits. A null in place of an optional argument is no argument."""
    if not isinstance(given, dict):
        return f"{given!r} is not of type 'object'"
    required = schema.get("required", ())
    for name in required:
        if name not in given:
            return f"{name!r} is a required property"
    properties = schema["properties"]
    if extra := sorted(given.keys() - properties.keys()):
        verb = "was" if len(extra) == 1 else "were"
        return f"Additional properties are not allowed ({', '.join(map(repr, extra))} {verb} unexpected)"
    for name in sorted(given, reverse=True):
        value, wanted = given[name], properties[name]
        if value is None and name not in required:
            continue
        if not _is_of(value, wanted["type"]):
            return f"{value!r} is not of type {wanted['type']!r}"
        if "enum" in wanted and value not in wanted["enum"]:
            return f"{value!r} is not one of {wanted['enum']!r}"
    return None


def _is_of(value: Any, kind: str) -> bool:
    if not isinstance(value, _KINDS[kind]) or isinstance(value, bool):
        return False
    return not isinstance(value, float) or value.is_integer()
