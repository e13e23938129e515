"""Bases of dataclasses, with methods that compare and print their objects.

`dataclass` would generate these methods for each class, which takes half of the time that it needs
for a class. A short command makes forty classes before it begins. A class is declared in this way:

    @dataclass(slots=True, eq=False, repr=False)
    class Place(ValueObject):
"""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any


class ValueObject:
    """The base of a dataclass whose objects are equal if their classes and fields are."""

    __slots__ = ()

    # An object that can change must not have a hash.
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return compared_fields(self) == compared_fields(other)

    def __repr__(self) -> str:
        value: Any = self
        shown_fields = [field.name for field in fields(value) if field.repr]
        texts = [f"{name}={getattr(self, name)!r}" for name in shown_fields]
        return f"{type(self).__qualname__}({', '.join(texts)})"


class FrozenValueObject(ValueObject):
    """The base of a frozen dataclass, whose objects have a hash as well."""

    __slots__ = ()

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(compared_fields(self))


def compared_fields(value: Any) -> tuple[Any, ...]:
    """Return the values of the fields that count when a dataclass is compared."""
    value_class: Any = type(value)
    return tuple([getattr(value, name) for name in _compared_names(value_class)])


@cache
def _compared_names(value_class: Any) -> tuple[str, ...]:
    """Return the names of the fields that count when objects of a dataclass are compared."""
    return tuple(field.name for field in fields(value_class) if field.compare)
