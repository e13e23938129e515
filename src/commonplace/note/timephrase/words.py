"""The words of both languages, and the numbers made of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

HALF = Fraction(1, 2)


@cache
def words() -> dict[str, Any]:
    """words.toml, read once."""
    import tomllib

    return tomllib.loads((Path(__file__).parent / "words.toml").read_text(encoding="utf-8"))


def either(names: Iterable[str]) -> str:
    """A pattern for any of the plain `names`, longest first."""
    return "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))


def number(text: str) -> Fraction:
    """The value of digits or of an English or Chinese number. Raises ValueError when it is none."""
    text = text.strip()
    if re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", text):
        return Fraction(text)
    if text == "半":
        return HALF
    english = words()["english"]["numbers"]
    parts = re.split(r"[\s-]+", text)
    if all(part in english for part in parts):
        return Fraction(_english([english[part] for part in parts]))
    return Fraction(_chinese(text))


def whole(text: str) -> int:
    """As `number`, for a value that has no fraction. Raises ValueError."""
    value = number(text)
    if value.denominator != 1:
        raise ValueError(text)
    return int(value)


def _english(values: list[int]) -> int:
    if len(values) == 1:
        return values[0]
    if len(values) == 2 and values[0] >= 20 and values[1] < 10:
        return values[0] + values[1]
    raise ValueError(values)


def _chinese(text: str) -> int:
    """二十, 十五, 一百零五, and digits said one by one: 二〇二六."""
    digits = words()["chinese"]["digits"]
    if text and all(c in digits for c in text):
        if len(text) > 1 and text[0] not in "零〇" and len(text) != 4:
            raise ValueError(text)
        return int("".join(str(digits[c]) for c in text))
    match = re.fullmatch(r"(?:(.)百)?[零〇]?(?:(.?)(十))?(.?)", text)
    if not text or not match:
        raise ValueError(text)
    hundreds, tens, ten, ones = match.groups()
    try:
        value = 100 * digits[hundreds] if hundreds else 0
        value += 10 * (digits[tens] if tens else 1) if ten else 0
        return value + (digits[ones] if ones else 0)
    except KeyError:
        raise ValueError(text) from None
