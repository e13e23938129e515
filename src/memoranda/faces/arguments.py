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
"""Further accepted names of arguments. Each is mapped to the parameter that it means, to a schema
for an argument of that name, or to None: the argument is ignored."""

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
# How an error names the type of a wrong value.
_TYPE_NAMES = {
    bool: "boolean",
    str: "string",
    int: "number",
    float: "number",
    list: "array",
    type(None): "null",
}
# A whole number of at most 18 digits: more would not fit SQLite's integers.
_DIGITS = re.compile(r"[+-]?[0-9]{1,18}")
# An error repeats at most this many characters of a wrong value as JSON, and as text.
_MAX_JSON_CHARACTERS = 80
_MAX_TEXT_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Contract:
    """The rules by which the tools of one contract check arguments.

    - `order`: the checks in the order in which they are made. The first that fails is reported.
      Each check is named after the arguments it looks at:
        - `given`: the arguments of the call, in the caller's order.
        - `schema`: all parameters in the schema's order, also missing ones.
        - `reverse`: the arguments of the call that the schema has, from Z to A.
        - `required`: required parameters that are missing in the call.
        - `unknown`: arguments that the schema does not have.
      For example, `["required", "given"]` reports a missing argument before a wrong one.
    - `wording`: kind of error -> message template, e.g. `type` -> "{name} must be {kind}".
      Without a template for `unknown`, `enum` or `unicode`, that error is never raised.
    - `coerce`: which values may be sent as text. `json`: all types, and lists also as `a, b`.
      `containers`: lists and objects as JSON. `digits`: integers. Empty: none.
    - `null`: `absent` treats null as a missing argument. `optional` treats only optional
      arguments in this way.
    - `blank`: how "" is treated. Models send it for an optional argument that they mean to leave
      out
      (docs/contracts/amendments.md, 5).
        - Empty: as a missing argument, if the argument is optional.
        - `absent`: as a missing argument always.
        - `kept`: as a text.
    - `empty`: required arguments that become "" if they are missing, as models leave out an empty
      text.
    - `repair`: whether lone surrogates in texts become U+FFFD.
    - `minimum`: the smallest number allowed if the schema sets no minimum.
    - `kinds`: type of the schema -> its name in errors, e.g. `array` -> "a list".
    - `meant`: parameter -> wrong names that callers often use for it. An error then suggests the
      parameter.
    - `prefix`: the beginning of every message.
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
        """Return the error of the kind `key` of `wording`.

        values: values for the placeholders of its template. `value` is the wrong value, `kind` the
            type that the schema expects.
        """
        value = values.get("value")
        if "kind" in values:
            values["kind"] = self.kinds.get(values["kind"], values["kind"])
        if key in ("enum", "minimum", "range"):
            values["text"] = repair_surrogates(str(value))[:_MAX_TEXT_CHARACTERS]
        template = self.wording[key]
        if "{json}" in template:
            values["json"] = _short_json(value)
        found_type = _TYPE_NAMES.get(type(value), "object")
        return InvalidInput(self.prefix + template.format(**values, found=found_type))


def _short_json(value: Any) -> str:
    """Return a value as JSON. A long text is cut and ends in `...`."""
    text = json.dumps(value, ensure_ascii=True, default=str)
    if len(text) <= _MAX_JSON_CHARACTERS:
        return text
    return text[: _MAX_JSON_CHARACTERS - len("...")] + "..."


@cache
def _contract(name: str) -> Contract:
    """Return a contract by its key in texts/contracts.json."""
    return Contract(**json.loads(text_file("contracts.json"))[name])


def check(
    arguments: Any,
    schema: Mapping[str, Any],
    contract: str,
    tool: str = "",
    other_names: Also | None = None,
) -> Arguments:
    """Return the arguments, converted to the types of `schema`, with defaults for missing ones.

    With the contract `notes`, `{"page": "2"}` becomes `{"page": 2, "page_size": 10}`, for example.
    Arguments that the schema does not have are left out, unless the contract refuses them.
    Raises InvalidInput, in the words of the contract, for arguments that do not fit.

    contract: a key of texts/contracts.json.
    tool: how errors name the tool.
    other_names: further accepted names of arguments (see `Also`). None for none.
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

    rules: how the tools of this contract treat arguments.
    tool: how errors name the tool.
    known: the parameters that an error about an unknown argument lists.
    shown: parameter -> the name that the caller used instead. Errors use the caller's name.
    """

    rules: Contract
    tool: str
    known: list[str]
    shown: dict[str, str] = field(default_factory=dict)

    def with_usual_names(
        self, arguments: Arguments, properties: dict[str, Any], other_names: Also
    ) -> Arguments:
        """Return the arguments under the names of the schema, also those with another accepted name.

        With `{"path": "identifier", "verbose": None}` as other names, `{"path": "a", "verbose": 1}`
        becomes `{"identifier": "a"}`.

        properties: the parameters of the schema. Another name that is mapped to a separate schema is
            added here.
        """
        renamed: Arguments = {}
        for name, value in arguments.items():
            meaning: str | Mapping[str, Any] | None = name
            if name not in properties:
                meaning = other_names.get(name, name)
            if meaning is None:
                # This name is accepted and ignored.
                continue
            if isinstance(meaning, Mapping):
                # This name has a schema of its own, and becomes a parameter of this call.
                properties[name] = meaning
                renamed[name] = value
                continue
            if meaning == name:
                # A null must not replace a value that came under another name.
                if value is not None or name not in renamed:
                    renamed[name] = value
                continue
            # Another name counts only if the parameter's own name is missing.
            is_own_name_missing = arguments.get(meaning) is None
            if value is not None and is_own_name_missing:
                renamed[meaning] = value
                self.shown[meaning] = name
        return renamed

    def object(self, arguments: Arguments, schema: Mapping[str, Any], path: str) -> Arguments:
        """Check and convert the arguments of an object. Raises InvalidInput.

        schema: the JSON schema of the object.
        path: the argument that the object is, e.g. `filter.date`. "" is the call itself.
        """
        properties = schema["properties"]
        required = schema.get("required", ())
        present = self._present_arguments(arguments, schema)

        # These are added first, because not every contract has a check that visits missing arguments.
        checked: Arguments = {name: "" for name in self.rules.empty if present.get(name) == ""}
        for check_name in self.rules.order:
            for name in self._names_in_check(check_name, arguments, present, schema):
                if name in present:
                    place = self._place(name, path)
                    checked[name] = self.value(present[name], properties.get(name), place)
                elif name in required:
                    raise self._missing_error(name, self._place(name, path), arguments, properties)
                elif name not in properties and "unknown" in self.rules.wording:
                    raise self._unknown_error(name, arguments, properties)
        # Most calls lack some arguments. For the others, the defaults need not be collected.
        if len(checked) == len(properties):
            return checked
        return _defaults(properties) | checked

    def _present_arguments(self, arguments: Arguments, schema: Mapping[str, Any]) -> Arguments:
        """Return the arguments that the schema has and that are not missing.

        Missing arguments of the contract's `empty` are added as "".
        """
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
        """Return how errors name an argument, e.g. `filter.date` for `date` at the path `filter`."""
        if path:
            return f"{path}.{name}"
        return self.shown.get(name, name)

    def _names_in_check(
        self, check_name: str, arguments: Arguments, present: Arguments, schema: Mapping[str, Any]
    ) -> Iterable[str]:
        """Return the arguments to look at for one check of the contract's `order`.

        check_name: the check, such as `required`.
        present: the arguments that are not missing.
        schema: the JSON schema of the object.
        """
        properties = schema["properties"]
        if check_name == "schema":
            return list(properties)
        if check_name == "given":
            return [name for name in arguments if name in present or name not in properties]
        if check_name == "reverse":
            return sorted(present, reverse=True)
        if check_name == "required":
            return [name for name in schema.get("required", ()) if name not in present]
        return sorted(arguments.keys() - properties.keys())

    def _missing_error(
        self, name: str, place: str, arguments: Arguments, properties: Mapping[str, Any]
    ) -> InvalidInput:
        """Return the error for a missing argument.

        If the caller used a common wrong name (`meant`), the error says which name is right.

        place: how the error names the argument.
        properties: the parameters of the schema.
        """
        error = self._error("required", place, kind=properties[name].get("type"))
        for other_name in self.rules.meant.get(name, ()):
            if other_name in arguments and other_name not in properties:
                meant_text = self.rules.wording["meant"].format(other=other_name, name=name)
                return InvalidInput(str(error) + meant_text)
        return error

    def _unknown_error(
        self, name: str, arguments: Arguments, properties: Mapping[str, Any]
    ) -> InvalidInput:
        """Return the error for arguments that the schema does not have.

        name: the first of them.
        properties: the parameters of the schema.
        """
        unknown = sorted(arguments.keys() - properties.keys())
        return self._error(
            "unknown",
            name,
            known=", ".join(self.known) or "none",
            names=", ".join(map(repr, unknown)),
            verb="was" if len(unknown) == 1 else "were",
        )

    def _is_absent(self, value: Any, is_required: bool) -> bool:
        """Whether a null or "" counts as a missing argument in this contract.

        An optional argument is left out by either of them, unless the contract keeps "". Whether a
        required argument can be left out so depends on the contract, too.

        is_required: whether the schema requires the argument.
        """
        if value is None:
            is_always_absent = self.rules.null == "absent"
        elif value == "" and self.rules.blank != "kept":
            is_always_absent = self.rules.blank == "absent"
        else:
            return False
        # Where it is not always absent, it only is for an optional argument.
        return is_always_absent or not is_required

    def value(self, value: Any, schema: Mapping[str, Any], name: str) -> Any:
        """Check a value against its schema and return it, converted to the schema's type.

        For the type `integer`, `5` and "5" both return 5. Raises InvalidInput.

        name: how errors name the value.
        """
        rules = self.rules
        # Contracts with lists of texts leave out their type.
        untyped_kind = "list" if "list" in rules.kinds else None
        kind = schema.get("type", untyped_kind)
        if kind is None:
            return value
        if type(value) not in _TYPES[kind]:
            value = _convert(value, kind, rules.coerce)
        self._check_kind(value, kind, schema, name)
        value = self._checked_contents(value, kind, schema, name)
        if "unicode" in rules.wording and has_surrogate(value):
            raise self._error("unicode", name)
        if kind == "list":
            return _stripped_items(value)
        return value

    def _check_kind(self, value: Any, kind: str, schema: Mapping[str, Any], name: str) -> None:
        """Raise InvalidInput if a value has a wrong type or is not in the schema's `enum`."""
        if not _is_of_kind(value, kind):
            raise self._error("type", name, kind=kind, value=value)
        if "enum" in schema and "enum" in self.rules.wording and value not in schema["enum"]:
            options = ", ".join(schema["enum"])
            raise self._error("enum", name, value=value, enum=schema["enum"], options=options)

    def _checked_contents(self, value: Any, kind: str, schema: Mapping[str, Any], name: str) -> Any:
        """Check the contents of a value whose type is right: its range, items or keys.

        kind: the type, such as `array`.
        schema: the JSON schema of the value.
        name: how errors name the value.

        Returns the value, with its contents converted. Raises InvalidInput.
        """
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
            kind_of_error = "minimum" if maximum is None else "range"
            raise self._error(kind_of_error, name, value=value, minimum=minimum, maximum=maximum)

    def _items(self, values: list[Any], schema: Mapping[str, Any], name: str) -> list[Any]:
        """Check the items of a list and return them. Raises InvalidInput.

        schema: the JSON schema of an item.
        name: how errors name the list.
        """
        has_own_error_for_items = "item" in self.rules.wording
        if not has_own_error_for_items:
            return [
                self.value(item, schema, f"{name}[{number}]") for number, item in enumerate(values)
            ]
        # Such a contract does not convert items. It only refuses items that are not texts.
        if schema["type"] == "string":
            for item in values:
                if not isinstance(item, str):
                    raise self._error("item", name, value=item)
        return values

    def _error(self, key: str, name: str, **values: Any) -> InvalidInput:
        """Return the error of the kind `key` about an argument. See `Contract.error`."""
        return self.rules.error(key, name=name, tool=self.tool, **values)


def _defaults(properties: Mapping[str, Any]) -> Arguments:
    """Return the defaults of the parameters that have one."""
    return {name: inner["default"] for name, inner in properties.items() if "default" in inner}


def _is_of_kind(value: Any, kind: str) -> bool:
    """Whether a value has a type of JSON schemas, such as `array`."""
    # In Python, but not in JSON, a truth value is a number.
    if kind in _NUMBERS and isinstance(value, bool):
        return False
    return isinstance(value, _TYPES[kind])


def _convert(value: Any, kind: str, coerce: str) -> Any:
    """Convert a value to the type `kind` if the contract allows it.

    `"5"` becomes 5 for `integer`, and `'["a"]'` or `"a, b"` becomes a list for `array`. A value
    that cannot be converted is returned as it is: the check of its type then refuses it.

    coerce: which values may be sent as text: the field of Contract.
    """
    # JSON has only one kind of numbers: some clients send 5.0 for 5.
    if isinstance(value, float) and kind == "integer" and value.is_integer():
        return int(value)
    is_convertible_text = isinstance(value, str) and kind != "string"
    if not is_convertible_text or not coerce:
        return value
    if coerce == "containers":
        return _from_json_container(value, kind)

    # A text may be a list, a number or JSON, as the contract allows.
    text = value.strip()
    if kind == "list" or _is_bare_list(text, kind, coerce):
        return _stripped_items(text.split(","))
    if coerce == "digits":
        return _from_digits(value, kind)
    return _from_json(value, kind)


def _is_bare_list(text: str, kind: str, coerce: str) -> bool:
    """Whether a text is a list like `a, b`, not a JSON list like `["a", "b"]`.

    coerce: which values may be sent as text: the field of Contract.
    """
    return kind == "array" and coerce == "json" and not text.startswith("[")


def _stripped_items(texts: Sequence[str]) -> list[str]:
    """Return texts without white space at their ends, and without empty ones."""
    stripped = [text.strip() for text in texts]
    return [text for text in stripped if text]


def _from_digits(value: str, kind: str) -> Any:
    """Return the integer that a text spells, or the text if it is not an integer."""
    text = value.strip()
    if kind == "integer" and _DIGITS.fullmatch(text):
        return int(text)
    return value


def _from_json(value: str, kind: str) -> Any:
    """Return the value that a text spells in JSON, or the text if it is not JSON.

    Truth values may be in any case, e.g. `True`.
    """
    text = value.strip()
    if kind == "boolean" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return value


def _from_json_container(text: str, kind: str) -> Any:
    """Return the list or object that a text spells in JSON, or the text if it is anything else."""
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
