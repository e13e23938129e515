"""Values that are compared and printed by shared functions are as `dataclass` would make them."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass, field, replace

import pytest

from memoranda.value_object import FrozenValueObject, ValueObject


@dataclass(slots=True, eq=False, repr=False)
class Spot(ValueObject):
    name: str
    number: int = 0
    note: str = field(default="", compare=False)
    secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FrozenSpot(FrozenValueObject):
    name: str
    number: int = 0


@dataclass(slots=True, eq=False, repr=False)
class OtherSpot(ValueObject):
    name: str
    number: int = 0


def test_objects_are_equal_by_class_and_fields() -> None:
    assert Spot("a", 1) == Spot("a", 1)
    assert Spot("a", 1) != Spot("a", 2)
    assert Spot("a", note="x") == Spot("a", note="y")
    assert Spot("a") != OtherSpot("a")
    assert Spot("a") != ("a", 0)


def test_an_object_is_printed_with_its_fields() -> None:
    assert repr(Spot("a", 1, secret="s")) == "Spot(name='a', number=1, note='')"


def test_only_a_frozen_object_has_a_hash() -> None:
    assert len({FrozenSpot("a"), FrozenSpot("a"), FrozenSpot("b")}) == 2
    with pytest.raises(TypeError):
        hash(Spot("a"))


def test_a_frozen_object_is_copied_with_other_values_and_never_changed() -> None:
    spot = FrozenSpot("a")
    assert replace(spot, number=2) == FrozenSpot("a", 2)
    with pytest.raises(FrozenInstanceError):
        spot.number = 3  # type: ignore[misc]
