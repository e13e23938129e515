"""Numbers as digits and as words, English and Chinese."""

from __future__ import annotations

import re
from fractions import Fraction

from memoranda.note.timephrase.words import table

HALF = Fraction(1, 2)
_DECIMAL = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_HUNDREDS = re.compile(r"(?:(.)百)?[零〇]?(?:(.?)(十))?(.?)")


def number(text: str) -> Fraction:
    """The value of digits or of an English or Chinese number: 二十, 一百零五, or digit by digit.

    Raises ValueError when it is no number.
    """
    text = text.strip()
    if _DECIMAL.fullmatch(text):
        return Fraction(text)
    if text == "半":
        return HALF
    words = re.split(r"[\s-]+", text)
    english = table("english.numbers")
    if all(word in english for word in words):
        return _english([english[word] for word in words], text)
    return _chinese(text)


def whole(text: str) -> int:
    """As `number`, for a value that has no fraction. Raises ValueError."""
    value = number(text)
    if value.denominator != 1:
        raise ValueError(text)
    return int(value)


def _english(values: list[int], text: str) -> Fraction:
    tens, *ones = values
    is_sum = not ones or (len(ones) == 1 and tens >= 20 and ones[0] < 10)
    if not is_sum:
        raise ValueError(text)
    return Fraction(sum(values))


def _chinese(text: str) -> Fraction:
    digits = table("chinese.digits")
    if text and all(char in digits for char in text):
        # A year is spelled digit by digit, and so is 零五
        if len(text) > 1 and text[0] not in "零〇" and len(text) != 4:
            raise ValueError(text)
        return Fraction("".join(str(digits[char]) for char in text))
    match = _HUNDREDS.fullmatch(text)
    if not text or not match or not all(char in digits for char in match.group(1, 2, 4) if char):
        raise ValueError(text)
    hundred, ten, has_ten, one = match.groups()
    tens = digits.get(ten, 1) if has_ten else 0
    return Fraction(100 * digits.get(hundred, 0) + 10 * tens + digits.get(one, 0))
