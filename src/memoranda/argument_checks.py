"""Check the arguments of public functions against the signatures of these functions.

The type hint of a parameter says what it takes. So a parameter is checked in the same way by all
functions, and a new function is checked as soon as it has type hints. A wrong argument is refused
with InvalidInput, which names the parameter, says what it must be, and shows the argument.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import fields
from datetime import datetime
from functools import wraps
from itertools import chain, repeat
from types import FunctionType
from typing import Any, TypeVar

from memoranda.errors import InvalidInput
from memoranda.text.numbers import LARGEST

T = TypeVar("T")
Check = Callable[[str, Any], None]
"""Raises InvalidInput for a wrong argument. It gets the name of the parameter, and the argument."""

_LEAST = {"limit": 0, "offset": 0, "depth": 1, "max_tokens": 1}
"""The least numbers that parameters take, by name. Other parameters take negative numbers, too."""
_OR_NONE = " | None"
_MOST_SHOWN_CHARACTERS = 60


def refusal(name: str, expected: str, value: object, remedy: str = "") -> InvalidInput:
    """Return the error for a wrong argument.

    name: the name of the parameter.
    expected: says what the parameter must be.
    value: the argument.
    remedy: the hint of the error.
    """
    shown_value = repr(value)
    if len(shown_value) > _MOST_SHOWN_CHARACTERS:
        shown_value = f"{shown_value[: _MOST_SHOWN_CHARACTERS - 1]}…"
    return InvalidInput(f"`{name}` must be {expected}; got {shown_value}.", remedy)


def _check_text(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise refusal(name, "a text", value)


def _check_truth(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise refusal(name, "True or False", value)


def _check_number(name: str, value: Any) -> None:
    # In Python, a truth value is a number.
    if isinstance(value, bool) or not isinstance(value, int):
        raise refusal(name, "a whole number", value)
    least = _LEAST.get(name, -LARGEST)
    if value < least:
        raise refusal(name, f"at least {least}", value)
    if value > LARGEST:
        raise refusal(name, f"at most {LARGEST}", value)


def _check_moment(name: str, value: Any) -> None:
    if not isinstance(value, datetime):
        raise refusal(name, "a datetime", value)
    if value.utcoffset() is None:
        remedy = "Say which time is meant: datetime.now(UTC), or value.astimezone() for local time."
        raise refusal(name, "a datetime with a time zone", value, remedy)


def _check_texts(name: str, value: Any) -> None:
    if isinstance(value, str):
        raise refusal(name, "a list of texts", value, f"Use [{value!r}].")
    if not isinstance(value, Iterable):
        raise refusal(name, "a list of texts", value)
    # An iterator could not be read again.
    if isinstance(value, Collection) and not all(isinstance(item, str) for item in value):
        raise refusal(name, "a list of texts", value)


def _check_lines(name: str, value: Any) -> None:
    if isinstance(value, str | bytes):
        raise refusal(name, "a list of lines", value, "Use text.splitlines(), or an open file.")
    if not isinstance(value, Iterable):
        raise refusal(name, "a list of lines", value)


def _check_path(name: str, value: Any) -> None:
    if not isinstance(value, str | os.PathLike):
        raise refusal(name, "a path", value)


def _check_mapping(name: str, value: Any) -> None:
    if not isinstance(value, Mapping):
        raise refusal(name, "a dict", value)


_CHECKS: dict[str, Check] = {
    "str": _check_text,
    "bool": _check_truth,
    "int": _check_number,
    "datetime": _check_moment,
    "Sequence[str]": _check_texts,
    "Collection[str]": _check_texts,
    "tuple[str, ...]": _check_texts,
    "tuple[str, ...] | list[str]": _check_texts,
    "Iterable[str | bytes]": _check_lines,
    "str | os.PathLike[str]": _check_path,
    "dict[str, Any]": _check_mapping,
}
"""The check of each type hint, without `| None`. Parameters with other hints are not checked."""


def check_of(hint: str, further_checks: Mapping[str, Check]) -> Check | None:
    """Return the check of a type hint. None if it has no check.

    further_checks: the checks of type hints that only the caller of this module knows.
    """
    bare_hint = hint.removesuffix(_OR_NONE)
    check = further_checks.get(bare_hint) or _CHECKS.get(bare_hint)
    if check is None or bare_hint == hint:
        return check

    def check_unless_none(name: str, value: Any) -> None:
        if value is not None:
            check(name, value)

    return check_unless_none


def check(name: str, value: Any, hint: str) -> None:
    """Check one argument. Raises InvalidInput.

    name: the name of the parameter.
    value: the argument.
    hint: the type hint of the parameter, one of those that this module knows.
    """
    check_value = check_of(hint, {})
    assert check_value is not None
    check_value(name, value)


def check_fields(value: Any) -> None:
    """Check the fields of a dataclass whose module has postponed annotations.

    Raises InvalidInput.
    """
    for field in fields(value):
        check = check_of(str(field.type), {})
        if check is not None:
            check(field.name, getattr(value, field.name))


def check_arguments(further_checks: Mapping[str, Check]) -> Callable[[type[T]], type[T]]:
    """Return a class decorator that lets all public methods check their arguments.

    further_checks: the checks of the type hints that only the module of the class knows.
    """

    def decorated(cls: type[T]) -> type[T]:
        for name, method in list(vars(cls).items()):
            if isinstance(method, FunctionType) and not name.startswith("_"):
                setattr(cls, name, _checked(method, further_checks))
        return cls

    return decorated


def _checked(method: FunctionType, further_checks: Mapping[str, Check]) -> Callable[..., Any]:
    """Return a method that checks its arguments before it does anything."""
    checks: dict[str, Check] = {}
    for name, hint in method.__annotations__.items():
        check = check_of(hint, further_checks)
        if check is not None and name != "return":
            checks[name] = check
    positional_names = _positional_names(method)

    @wraps(method)
    def checked_method(self: object, *args: Any, **kwargs: Any) -> Any:
        named_arguments = zip(positional_names(), args, strict=False)
        for name, value in chain(named_arguments, kwargs.items()):
            check = checks.get(name)
            if check is not None:
                check(name, value)
        return method(self, *args, **kwargs)

    return checked_method


def _positional_names(method: FunctionType) -> Callable[[], Iterator[str]]:
    """Return a function that yields the name of the parameter of each positional argument.

    The names do not end if the method takes any number of arguments, such as `*refs`.
    """
    code = method.__code__
    # The first parameter is `self`.
    names = code.co_varnames[1 : code.co_argcount]
    takes_any_number = bool(code.co_flags & _HAS_VARIABLE_ARGUMENTS)
    if not takes_any_number:
        return lambda: iter(names)
    # Their name comes after the names of all other parameters.
    variable_name = code.co_varnames[code.co_argcount + code.co_kwonlyargcount]
    return lambda: chain(names, repeat(variable_name))


_HAS_VARIABLE_ARGUMENTS = 0x04
"""The flag of the code of a function that has a parameter such as `*refs` (`inspect.CO_VARARGS`)."""
