"""Checks the arguments of a call against a JSON schema, in the words of the tool's contract.

How the contracts differ is data, in texts/contracts.json; class Contract explains its keys.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from memoranda.errors import InvalidInput
from memoranda.faces.texts import text_file
from memoranda.text.unicode import is_valid_unicode, repair_surrogates

Arguments = dict[str, Any]
Also = Mapping[str, str | Mapping[str, Any] | None]

# The types of JSON schemas, as Python reads them.
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "list": (list,),
    "object": (dict,),
}
_NUMBERS = ("integer", "number")
_TEXT = {"type": "string"}
# How an error names the type it got.
_FOUND = {
    bool: "boolean",
    str: "string",
    int: "number",
    float: "number",
    list: "array",
    type(None): "null",
}
# A whole number of at most 18 digits: more would not fit SQLite's integers.
_DIGITS = re.compile(r"[+-]?[0-9]{1,18}")
# Characters of a wrong value in an error: as JSON, as text
_SHOWN = 80
# Characters of a wrong value that the error repeats.
_CUT = 60


@dataclass(frozen=True, slots=True)
class Contract:
    """How the tools of one contract treat arguments.

    - `order`: the order of checks, which decides which of several errors is reported:
      `given` (as the caller wrote them), `schema` (as the schema lists them, missing ones too),
      `reverse` (those the schema has, sorted backwards), `required` (the missing ones), `unknown`.
    - `wording`: message templates. Unknown arguments, enums and lone surrogates are refused if it
      has a text for that. Otherwise they are dropped.
    - `coerce`: which texts may be sent for other types: `json` (all types, lists also separated by
      commas), `containers` (lists and objects as JSON) or `digits` (integers).
    - `null`: `absent`, or `optional` if null counts as absent only for optional arguments.
    - `blank`: an empty text for an optional argument is an absent one (amendment 5). `absent`
      extends this to required ones; `kept` never does it, because an empty text has a meaning.
    - `empty`: required texts that may be left out for the empty text (amendment 5).
    - `repair`: lone surrogates become U+FFFD.
    - `minimum`: the minimum of integers whose schema names none.
    - `kinds`: the names of the types in errors.
    - `meant`: names that people write instead of ours.
    """

    order: list[str]
    wording: dict[str, str]
    kinds: dict[str, str] = field(default_factory=dict)
    prefix: str = ""
    coerce: str = ""
    null: str = "absent"
    blank: str = ""
    empty: list[str] = field(default_factory=list)
    repair: bool = False
    minimum: int | None = None
    meant: dict[str, list[str]] = field(default_factory=dict)

    def error(self, key: str, **values: Any) -> InvalidInput:
        """The error with the wording `key`; `kind`, if given, is the type that was expected."""
        value = values.get("value")
        if "kind" in values:
            values["kind"] = self.kinds.get(values["kind"], values["kind"])
        if key in ("enum", "minimum", "range"):
            values["text"] = repair_surrogates(str(value))[:_CUT]
        template = self.wording[key]
        if "{json}" in template:
            value_text = json.dumps(value, ensure_ascii=True, default=str)
            values["json"] = (
                value_text if len(value_text) <= _SHOWN else value_text[: _SHOWN - 3] + "..."
            )
        return InvalidInput(
            self.prefix + template.format(**values, found=_FOUND.get(type(value), "object"))
        )


@cache
def _contract(name: str) -> Contract:
    return Contract(**json.loads(text_file("contracts.json"))[name])


def check(
    arguments: Any,
    schema: Mapping[str, Any],
    contract: str,
    tool: str = "",
    other_names: Also | None = None,
) -> Arguments:
    """Convert arguments to the types of `schema`, and add the defaults of those that are absent.

    Arguments that the schema does not have are left out.

    `contract` is a key of texts/contracts.json; `tool` is how errors name the tool. `other_names` maps
    further accepted names to the parameter they mean, to a separate schema, or to None (ignored).
    Raises InvalidInput, in the words of the contract, for arguments that do not fit.
    """
    rules = _contract(contract)
    if not isinstance(arguments, dict):
        raise rules.error("arguments", tool=tool, value=arguments)
    properties = dict(schema.get("properties", {}))
    checker = _Checker(rules, tool, list(properties))
    if other_names:
        arguments = checker.with_usual_names(arguments, properties, other_names)
    required = schema.get("required", ())
    return checker.object(arguments, {"properties": properties, "required": required}, "")


@dataclass(slots=True)
class _Checker:
    """Checks the values of one call.

    known: the names that an error lists.
    shown: a parameter -> the name that the caller used for it.
    """

    rules: Contract
    tool: str
    known: list[str]
    shown: dict[str, str] = field(default_factory=dict)

    def with_usual_names(
        self, arguments: Arguments, properties: dict[str, Any], other_names: Also
    ) -> Arguments:
        """Replace further names of arguments (see `check`) by the names in the schema.

        A further name with a schema is added to `properties`.
        """
        renamed: Arguments = {}
        for name, value in arguments.items():
            target = name if name in properties else other_names.get(name, name)
            if isinstance(target, Mapping):
                renamed[name] = value
                properties[name] = target
            elif target == name:
                if value is not None or name not in renamed:
                    renamed[name] = value
            elif target and value is not None and arguments.get(target) is None:
                # A further name counts if the usual one is not given.
                renamed[target] = value
                self.shown[target] = name
        return renamed

    def object(self, arguments: Arguments, schema: Mapping[str, Any], path: str) -> Arguments:
        """The checked arguments of an object at `path` ("" = the call's own). Raises InvalidInput."""
        properties = schema["properties"]
        required = schema.get("required", ())
        present = self._present(arguments, schema)
        # Not all turns look at arguments that were left out
        checked: Arguments = {name: "" for name in self.rules.empty if present.get(name) == ""}
        for turn in self.rules.order:
            for name in self._names_in_turn(turn, arguments, present, schema):
                if name in present:
                    place = self._place(name, path)
                    checked[name] = self.value(present[name], properties.get(name), place)
                elif name in required:
                    raise self._missing(name, self._place(name, path), arguments, properties)
                elif name not in properties and "unknown" in self.rules.wording:
                    raise self._unknown(name, arguments, properties)
        if len(checked) == len(properties):
            return checked
        return _defaults(properties) | checked

    def _present(self, arguments: Arguments, schema: Mapping[str, Any]) -> Arguments:
        """The arguments that were given, and an empty text for those that may be left out for it."""
        required = schema.get("required", ())
        present = {
            name: value
            for name, value in arguments.items()
            if name in schema["properties"] and not self._is_absent(value, name in required)
        }
        for name in self.rules.empty:
            if name in required:
                present.setdefault(name, "")
        return present

    def _place(self, name: str, path: str) -> str:
        """The name that errors give an argument of the object at `path`."""
        if path:
            return f"{path}.{name}"
        return self.shown.get(name, name)

    def _names_in_turn(
        self, turn: str, arguments: Arguments, present: Arguments, schema: Mapping[str, Any]
    ) -> Iterable[str]:
        """The names that a contract's order of checks looks at in one turn."""
        properties = schema["properties"]
        if turn == "schema":
            return list(properties)
        if turn == "given":
            return [name for name in arguments if name in present or name not in properties]
        if turn == "reverse":
            return sorted(present, reverse=True)
        if turn == "required":
            return [name for name in schema.get("required", ()) if name not in present]
        return sorted(arguments.keys() - properties.keys())

    def _missing(
        self, name: str, place: str, arguments: Arguments, properties: Mapping[str, Any]
    ) -> InvalidInput:
        """The error for a required argument that is missing, with a name the caller may have meant."""
        error = self._error("required", place, kind=properties[name].get("type"))
        for other_name in self.rules.meant.get(name, ()):
            if other_name in arguments and other_name not in properties:
                meant_text = self.rules.wording["meant"].format(other=other_name, name=name)
                return InvalidInput(str(error) + meant_text)
        return error

    def _unknown(
        self, name: str, arguments: Arguments, properties: Mapping[str, Any]
    ) -> InvalidInput:
        """The error for arguments that the schema does not have."""
        unknown = sorted(arguments.keys() - properties.keys())
        return self._error(
            "unknown",
            name,
            known=", ".join(self.known) or "none",
            names=", ".join(map(repr, unknown)),
            verb="was" if len(unknown) == 1 else "were",
        )

    def _is_absent(self, value: Any, is_required: bool) -> bool:
        """Whether a value says that its argument was not given."""
        if value is None:
            return self.rules.null == "absent" or not is_required
        if value != "" or self.rules.blank == "kept":
            return False
        return self.rules.blank == "absent" or not is_required

    def value(self, value: Any, schema: Mapping[str, Any], name: str) -> Any:
        """The checked value of an argument. Raises InvalidInput."""
        rules = self.rules
        kind = schema.get("type", "list" if "list" in rules.kinds else None)
        if kind is None:
            return value
        if type(value) not in _TYPES[kind]:
            value = _convert(value, kind, rules.coerce)
        self._check_kind(value, kind, schema, name)
        value = self._inner(value, kind, schema, name)
        if "unicode" in rules.wording and has_surrogate(value):
            raise self._error("unicode", name)
        if kind == "list":
            return _not_blank(value)
        return value

    def _check_kind(self, value: Any, kind: str, schema: Mapping[str, Any], name: str) -> None:
        """Raise InvalidInput for a value of another type, or none of those the schema lists."""
        if not _is_of_kind(value, kind):
            raise self._error("type", name, kind=kind, value=value)
        if "enum" in schema and "enum" in self.rules.wording and value not in schema["enum"]:
            options = ", ".join(schema["enum"])
            raise self._error("enum", name, value=value, enum=schema["enum"], options=options)

    def _inner(self, value: Any, kind: str, schema: Mapping[str, Any], name: str) -> Any:
        """A value of the right kind with what is in it checked. Raises InvalidInput."""
        if kind in _NUMBERS:
            self._check_range(value, schema, name)
        elif kind == "object" and "properties" in schema:
            return self.object(value, schema, name)
        elif kind in ("array", "list"):
            return self._items(value, schema.get("items", _TEXT), name)
        elif kind == "string" and self.rules.repair:
            return repair_surrogates(value)
        return value

    def _check_range(self, value: float, schema: Mapping[str, Any], name: str) -> None:
        """Raise InvalidInput for a number outside the schema's or the contract's range."""
        minimum = schema.get("minimum", self.rules.minimum)
        maximum = schema.get("maximum")
        is_small = minimum is not None and value < minimum
        is_large = maximum is not None and value > maximum
        if is_small or is_large:
            if maximum is None:
                key = "minimum"
            else:
                key = "range"
            raise self._error(key, name, value=value, minimum=minimum, maximum=maximum)

    def _items(self, values: list[Any], schema: Mapping[str, Any], name: str) -> list[Any]:
        """The checked items of a list. Raises InvalidInput."""
        if "item" not in self.rules.wording:
            return [
                self.value(item, schema, f"{name}[{number}]") for number, item in enumerate(values)
            ]
        if schema["type"] == "string":
            for item in values:
                if not isinstance(item, str):
                    raise self._error("item", name, value=item)
        return values

    def _error(self, key: str, name: str, **values: Any) -> InvalidInput:
        return self.rules.error(key, name=name, tool=self.tool, **values)


def _defaults(properties: Mapping[str, Any]) -> Arguments:
    """The values of arguments that are not given."""
    return {name: inner["default"] for name, inner in properties.items() if "default" in inner}


def _is_of_kind(value: Any, kind: str) -> bool:
    # A truth value is a number in Python, and none in JSON.
    if kind in _NUMBERS and isinstance(value, bool):
        return False
    return isinstance(value, _TYPES[kind])


def _convert(value: Any, kind: str, coerce: str) -> Any:
    """The number, list or object that a client sent as text; the value itself if it sent none."""
    if isinstance(value, float) and kind == "integer" and value.is_integer():
        return int(value)
    is_text = isinstance(value, str) and kind != "string"
    if not is_text or not coerce:
        return value
    if coerce == "containers":
        return _container(value, kind)
    text = value.strip()
    if kind == "list" or _is_bare_list(text, kind, coerce):
        return _not_blank(text.split(","))
    if coerce == "digits":
        return _from_digits(value, kind)
    return _from_json(value, kind)


def _is_bare_list(text: str, kind: str, coerce: str) -> bool:
    """Whether a text is a list separated by commas, not one in JSON."""
    return kind == "array" and coerce == "json" and not text.startswith("[")


def _not_blank(texts: Sequence[str]) -> list[str]:
    """The texts without blanks around them, those that are not empty."""
    stripped = [text.strip() for text in texts]
    return [text for text in stripped if text]


def _from_digits(value: str, kind: str) -> Any:
    """The integer that a text spells; the text itself when it spells none."""
    text = value.strip()
    if kind == "integer" and _DIGITS.fullmatch(text):
        return int(text)
    return value


def _from_json(value: str, kind: str) -> Any:
    """The value that a text spells in JSON, truth values in any case; the text itself when it
    spells none."""
    text = value.strip()
    if kind == "boolean" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return json.loads(text)
    except ValueError:
        return value


def _container(text: str, kind: str) -> Any:
    """The list or object that is sent as JSON text; the text itself when it is something else."""
    if kind not in ("array", "object"):
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(value, _TYPES[kind]):
        return value
    return text


def has_surrogate(value: Any) -> bool:
    """Whether a text in `value` holds a lone surrogate, which UTF-8 cannot carry."""
    if isinstance(value, str):
        return not is_valid_unicode(value)
    parts: Sequence[Any] = ()
    if isinstance(value, dict):
        parts = [*value, *value.values()]
    elif isinstance(value, list):
        parts = value
    return any(map(has_surrogate, parts))
