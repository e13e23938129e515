"""What a call gives, in the shape the tool's schema says; the wording of contract 002, 3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from commonplace.errors import InvalidInput
from commonplace.text.unicode import repair_surrogates

_MEANT = {
    "entityName": ("name", "entity"),
    "contents": ("observations",),
    "entityType": ("type",),
    "relationType": ("type",),
}
"""Keys people write for ours."""
_SHOWN = 60


def checked(arguments: Any, schema: Mapping[str, Any]) -> dict[str, Any]:
    """`arguments` with the schema's keys alone; a lone surrogate in a text becomes U+FFFD.

    Raises InvalidInput naming the place. Optional arguments that are null count as not given.
    """
    return _checked(arguments, schema, "")


def _checked(value: Any, schema: Mapping[str, Any], path: str) -> Any:
    kind = schema["type"]
    if kind == "object":
        return _object(value, schema, path)
    if kind == "array":
        if not isinstance(value, list):
            raise _mistyped(path, "array", value)
        items = schema["items"]
        if items["type"] == "string" and all(type(each) is str for each in value):
            return [repair_surrogates(each) for each in value]
        return [_checked(each, items, f"{path}[{at}]") for at, each in enumerate(value)]
    if kind == "string":
        return _word(value, schema, path)
    if kind == "boolean":
        if not isinstance(value, bool):
            raise _mistyped(path, kind, value)
        return value
    return _whole(value, schema, path)


def _object(value: Any, schema: Mapping[str, Any], path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _mistyped(path, "object", value)
    required = schema.get("required", ())
    found: dict[str, Any] = {}
    for name, inner in schema["properties"].items():
        place = f"{path}.{name}" if path else name
        if name not in value:
            if name in required:
                raise InvalidInput(f"{_invalid(place, inner['type'], 'nothing')}{_hint(name, value, schema)}")
        elif value[name] is not None or name in required:
            found[name] = _checked(value[name], inner, place)
    return found


def _hint(missing: str, value: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    for other in _MEANT.get(missing, ()):
        if other in value and other not in schema["properties"]:
            return f'; "{other}" is not a field here, did you mean "{missing}"?'
    return ""


def _word(value: Any, schema: Mapping[str, Any], path: str) -> str:
    if not isinstance(value, str):
        raise _mistyped(path, "string", value)
    if "enum" in schema and value not in schema["enum"]:
        raise InvalidInput(
            _invalid(path, f"one of {', '.join(schema['enum'])}", f'"{repair_surrogates(value)[:_SHOWN]}"')
        )
    return repair_surrogates(value)


def _whole(value: Any, schema: Mapping[str, Any], path: str) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _mistyped(path, "integer", value)
    least, most = schema["minimum"], schema.get("maximum")
    if value < least or (most is not None and value > most):
        bounds = f"integer from {least}" + (f" to {most}" if most is not None else "")
        raise InvalidInput(_invalid(path, bounds, f"{value}"[:_SHOWN]))
    return value


def _mistyped(path: str, wanted: str, value: Any) -> InvalidInput:
    return InvalidInput(_invalid(path or "arguments", wanted, _kind_of(value)))


def _invalid(path: str, wanted: str, found: str) -> str:
    return f"Input validation error: {path}: expected {wanted}, found {found}"


def _kind_of(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int | float):
        return "number"
    return "array" if isinstance(value, list) else "object"
