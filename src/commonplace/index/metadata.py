"""`metadata_filters` of search_notes (contract 000b, 7): values of the header, compared by kind.

Numbers and dates compare by value, everything else as text; of a list one element is enough.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from commonplace.errors import InvalidInput

_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}.*)?")
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": lambda have, limit: have > limit,
    "$gte": lambda have, limit: have >= limit,
    "$lt": lambda have, limit: have < limit,
    "$lte": lambda have, limit: have <= limit,
}
_OPERATORS = "$in, $gt, $gte, $lt, $lte, $between"

UNDERSTOOD = ("type", "title", "permalink", "scope", "source", "category", "phase", "tags")
"""Keys whose meaning the index knows, wherever it comes from."""

Test = Callable[[Any], bool]


def predicate(filters: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], bool]:
    """A test for the values of a note: its header, with the UNDERSTOOD keys as they are understood.

    Raises InvalidInput for a filter nobody can read.
    """
    if not isinstance(filters, Mapping):
        raise _broken(f"must be an object, got {type(filters).__name__}")
    tests = [(str(name), _test(str(name), wanted)) for name, wanted in filters.items()]
    return lambda values: all(any(map(test, _named(values, name))) for name, test in tests)


def needs_header(filters: Mapping[str, Any]) -> list[str]:
    """The names of `filters` that only the header can answer."""
    return [name for name in map(str, filters) if name not in UNDERSTOOD]


def _named(values: Mapping[str, Any], name: str) -> list[Any]:
    """What stands under a dotted name: each value, and each element of a list."""
    found = [values[name]] if name in values else _dotted(values, name.split("."))
    return [element for value in found for element in ((value, *value) if isinstance(value, list) else (value,))]


def _dotted(value: Any, names: list[str]) -> list[Any]:
    if not names:
        return [value]
    if isinstance(value, list):
        return [found for element in value for found in _dotted(element, names)]
    if isinstance(value, Mapping) and names[0] in value:
        return _dotted(value[names[0]], names[1:])
    return []


def _test(name: str, wanted: Any) -> Test:
    if isinstance(wanted, Mapping):
        if not wanted:
            raise _broken(f'has an empty condition for "{name}"')
        tests = [_operator(name, str(operator), limit) for operator, limit in wanted.items()]
        return lambda have: all(test(have) for test in tests)
    if isinstance(wanted, list | tuple):
        every = [_test(name, one) for one in wanted]
        return lambda have: isinstance(have, list) and all(any(map(test, have)) for test in every)
    typed = _typed(wanted)
    return lambda have: not isinstance(have, list) and _equal(_typed(have), typed)


def _operator(name: str, operator: str, limit: Any) -> Test:
    if operator == "$in":
        if not isinstance(limit, list | tuple):
            raise _broken(f'takes a list for $in of "{name}"')
        tests = [_test(name, one) for one in limit]
        return lambda have: any(test(have) for test in tests)
    if operator == "$between":
        if not isinstance(limit, list | tuple) or len(limit) != 2:
            raise _broken(f'takes a list of two values for $between of "{name}"')
        low, high = _bound(name, operator, limit[0]), _bound(name, operator, limit[1])
        return lambda have: _ordered(have, low, _COMPARE["$gte"]) and _ordered(have, high, _COMPARE["$lte"])
    if operator not in _COMPARE:
        raise _broken(f'knows no "{operator}" (for "{name}")')
    bound, compare = _bound(name, operator, limit), _COMPARE[operator]
    return lambda have: _ordered(have, bound, compare)


def _bound(name: str, operator: str, limit: Any) -> Any:
    if limit is None or isinstance(limit, bool | list | tuple | Mapping):
        raise _broken(f'takes a number, a date or a text for {operator} of "{name}"')
    return _typed(limit)


def _typed(value: Any) -> Any:
    """A number or a moment where the value is one, true, false and null as they are, else text."""
    if value is None or isinstance(value, bool | list | Mapping):
        return value
    if isinstance(value, int | float):
        return float(value)
    text = str(value).strip()
    if _NUMBER.fullmatch(text):
        return float(text)
    if _DATE.fullmatch(text):
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            return text
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    return {"true": True, "false": False}.get(text, text)


def _equal(have: Any, wanted: Any) -> bool:
    return type(have) is type(wanted) and have == wanted


def _ordered(have: Any, bound: Any, compare: Callable[[Any, Any], bool]) -> bool:
    typed = _typed(have)
    if type(typed) is not type(bound) or isinstance(typed, bool | list | Mapping):
        return False
    return compare(typed, bound)


def _broken(what: str) -> InvalidInput:
    return InvalidInput(
        f'Parameter `metadata_filters` {what}. Use e.g. {{"status": "draft"}} or '
        f'{{"priority": {{"$gte": 2}}}}; operators: {_OPERATORS}.'
    )
