"""Checks the arguments of a call against a JSON schema, in the words of the tool's contract.

How the contracts differ is data, in texts/contracts.json; class Contract explains its keys.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from memoranda.errors import InvalidInput
from memoranda.faces.texts import text_file
from memoranda.text.unicode import is_valid_unicode, repair_surrogates

Arguments = dict[str, Any]
Also = Mapping[str, str | Mapping[str, Any] | None]

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "list": (list,),
    "object": (dict,),
}
_TEXT = {"type": "string"}
_FOUND = {
    bool: "boolean",
    str: "string",
    int: "number",
    float: "number",
    list: "array",
    type(None): "null",
}
_DIGITS = re.compile(r"[+-]?[0-9]{1,18}")
# Characters of a wrong value in an error: as JSON, as text
_SHOWN = 80
_CUT = 60


@dataclass(frozen=True, slots=True)
class Contract:
    """How the tools of one contract treat arguments.

    - `order`: which arguments are checked in turn, and so which of several errors is reported:
      `given` (as the caller wrote them), `schema` (as the schema lists them, missing ones too),
      `reverse` (those the schema has, sorted backwards), `required` (the missing ones), `unknown`.
    - `wording`: message templates. Unknown arguments are refused where it has a text for that,
      else dropped; enums and lone surrogates likewise.
    - `coerce`: which texts may be sent for other types: `json` (all types, lists also separated by
      commas), `containers` (lists and objects as JSON) or `digits` (integers).
    - `null`: `absent`, or `optional` where it is absent for optional arguments only.
    - `blank`: an empty text for an optional argument is an absent one (amendment 5). `absent`: for
      a required one, too; `kept`: never, because an empty text has a meaning.
    - `empty`: required texts that may be left out for the empty text (amendment 5).
    - `repair`: lone surrogates become U+FFFD.
    - `minimum`: of integers whose schema has none.
    - `kinds`: how the types are called in errors.
    - `meant`: names people write for ours.
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
            shown = json.dumps(value, ensure_ascii=True, default=str)
            values["json"] = shown if len(shown) <= _SHOWN else shown[: _SHOWN - 3] + "..."
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
    also: Also | None = None,
) -> Arguments:
    """The arguments that `schema` has, converted to its types, with its defaults for those that are
    absent.

    `contract` is a key of texts/contracts.json; `tool` is how errors name the tool. `also` maps
    further accepted names to the parameter they stand for, to a schema of their own, or to None
    (ignored). Raises InvalidInput, in the words of the contract, for arguments that do not fit.
    """
    rules = _contract(contract)
    if not isinstance(arguments, dict):
        raise rules.error("arguments", tool=tool, value=arguments)
    properties = dict(schema.get("properties", {}))
    checker = _Checker(rules, tool, list(properties))
    if also:
        given = arguments
        arguments = {}
        for name, value in given.items():
            if name in properties:
                target = name
            else:
                target = also.get(name, name)
            if isinstance(target, Mapping):
                arguments[name] = value
                properties[name] = target
            elif target == name and (value is not None or name not in arguments):
                arguments[name] = value
            elif target != name and target and value is not None and given.get(target) is None:
                arguments[target] = value
                checker.shown[target] = name
    return checker.object(
        arguments, {"properties": properties, "required": schema.get("required", ())}, ""
    )


@dataclass(slots=True)
class _Checker:
    """Checks the values of one call. `known` are the names an error lists; `shown` maps a parameter
    to the name the caller used for it."""

    rules: Contract
    tool: str
    known: list[str]
    shown: dict[str, str] = field(default_factory=dict)

    def object(self, given: Arguments, schema: Mapping[str, Any], path: str) -> Arguments:
        rules = self.rules
        properties = schema["properties"]
        required = schema.get("required", ())
        present = {
            name: value
            for name, value in given.items()
            if name in properties and not self._is_absent(value, name in required)
        }
        checked: Arguments = {}
        for name in rules.empty:
            if name in required and name not in present:
                present[name] = checked[name] = ""
        for turn in rules.order:
            if turn == "schema":
                names: Iterable[str] = properties
            elif turn == "given":
                names = [name for name in given if name in present or name not in properties]
            elif turn == "reverse":
                names = sorted(present, reverse=True)
            elif turn == "required":
                names = [name for name in required if name not in present]
            else:
                names = sorted(given.keys() - properties.keys())
            for name in names:
                value = present.get(name)
                inner = properties.get(name)
                if path:
                    place = f"{path}.{name}"
                else:
                    place = self.shown.get(name, name)
                if name in present:
                    checked[name] = self.value(value, inner, place)
                elif name in required:
                    error = self._error("required", place, kind=inner.get("type"))
                    for other in rules.meant.get(name, ()):
                        if other in given and other not in properties:
                            raise InvalidInput(
                                str(error) + rules.wording["meant"].format(other=other, name=name)
                            )
                    raise error
                elif name not in properties and "unknown" in rules.wording:
                    unknown = sorted(given.keys() - properties.keys())
                    verb = "was" if len(unknown) == 1 else "were"
                    known = ", ".join(self.known) or "none"
                    raise self._error(
                        "unknown", name, known=known, names=", ".join(map(repr, unknown)), verb=verb
                    )
        if len(checked) == len(properties):
            return checked
        return {
            name: each["default"] for name, each in properties.items() if "default" in each
        } | checked

    def _is_absent(self, value: Any, is_required: bool) -> bool:
        """Whether a value says that its argument was not given."""
        if value is None:
            return self.rules.null == "absent" or not is_required
        if value != "" or self.rules.blank == "kept":
            return False
        return self.rules.blank == "absent" or not is_required

    def value(self, value: Any, schema: Mapping[str, Any], name: str) -> Any:
        rules, kind = self.rules, schema.get("type", "list" if "list" in self.rules.kinds else None)
        if kind is None:
            return value
        if type(value) not in _TYPES[kind]:
            value = _converted(value, kind, rules.coerce)
        is_number = kind in ("integer", "number")
        fits = isinstance(value, _TYPES[kind]) and not (is_number and isinstance(value, bool))
        if not fits:
            raise self._error("type", name, kind=kind, value=value)
        if "enum" in schema and "enum" in rules.wording and value not in schema["enum"]:
            options = ", ".join(schema["enum"])
            raise self._error("enum", name, value=value, enum=schema["enum"], options=options)
        if is_number:
            minimum = schema.get("minimum", rules.minimum)
            maximum = schema.get("maximum")
            if (minimum is not None and value < minimum) or (
                maximum is not None and value > maximum
            ):
                key = "minimum" if maximum is None else "range"
                raise self._error(key, name, value=value, minimum=minimum, maximum=maximum)
        elif kind == "object" and "properties" in schema:
            value = self.object(value, schema, name)
        elif kind in ("array", "list"):
            items = schema.get("items", _TEXT)
            if "item" not in rules.wording:
                value = [self.value(each, items, f"{name}[{at}]") for at, each in enumerate(value)]
            elif items["type"] == "string" and (
                wrong := [each for each in value if not isinstance(each, str)]
            ):
                raise self._error("item", name, value=wrong[0])
        elif kind == "string" and rules.repair:
            value = repair_surrogates(value)
        if "unicode" in rules.wording and has_surrogate(value):
            raise self._error("unicode", name)
        if kind == "list":
            return [text for each in value if (text := each.strip())]
        return value

    def _error(self, key: str, name: str, **values: Any) -> InvalidInput:
        return self.rules.error(key, name=name, tool=self.tool, **values)


def _converted(value: Any, kind: str, coerce: str) -> Any:
    """What a client meant that sends a number, list or object as text; the value itself when it did
    not.
    """
    if isinstance(value, float) and kind == "integer" and value.is_integer():
        return int(value)
    if not isinstance(value, str) or kind == "string" or not coerce:
        return value
    text = value.strip()
    if coerce == "containers":
        return _container(value, kind)
    if kind == "list" or (kind == "array" and coerce == "json" and not text.startswith("[")):
        return [part.strip() for part in text.split(",") if part.strip()]
    if coerce == "digits":
        if kind == "integer" and _DIGITS.fullmatch(text):
            return int(text)
        return value
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
    parts = (
        [*value, *value.values()]
        if isinstance(value, dict)
        else value
        if isinstance(value, list)
        else ()
    )
    return any(map(has_surrogate, parts))
