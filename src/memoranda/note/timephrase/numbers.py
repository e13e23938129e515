"""Numbers as digits and as words, English and Chinese."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

from memoranda.note.timephrase.words import table

HALF = Fraction(1, 2)
# A number in digits.
_DECIMAL = re.compile(r"[0-9]+(?:\.[0-9]+)?")
# "2 1/2" or "1/2".
_WITH_FRACTION = re.compile(r"(?:(?P<whole>[0-9]+)\s+)?(?P<fraction>[0-9]/[0-9])")
# A Chinese number below 1,000 by its digits and places.
_HUNDREDS = re.compile(
    r"(?:(?P<hundreds>.)百)?[零〇]?(?:(?P<tens>.?)(?P<has_tens>十))?(?P<units>.?)"
)


def number(text: str) -> Fraction:
    """Return the value of a number in digits, or in English or Chinese words.

    `"twenty"` and 二十 are 20, 一百零五 is 105. Raises ValueError if the text is not a number.
    """
    text = text.strip()
    if _DECIMAL.fullmatch(text):
        return Fraction(text)
    with_fraction = _WITH_FRACTION.fullmatch(text)
    if with_fraction:
        return int(with_fraction["whole"] or 0) + Fraction(with_fraction["fraction"])
    if text == "半":
        return HALF
    words = re.split(r"[\s-]+", text)
    english = table("english.numbers")
    if all(word in english for word in words):
        return _english([english[word] for word in words], text)
    return _chinese(text)


def read_whole_number(text: str) -> int:
    """Read a number without a fraction, in digits or in words. Raises ValueError."""
    value = number(text)
    if value.denominator != 1:
        raise ValueError(text)
    return int(value)


def whole_or_none(text: str | None) -> int | None:
    """Read a number without a fraction. None if there is no text. Raises ValueError."""
    if not text:
        return None
    return read_whole_number(text)


def _english(values: list[int], text: str) -> Fraction:
    """Add the values of English number words: `[20, 5]` is 25.

    Raises ValueError for several values that are not tens and a digit.
    """
    is_sum = len(values) == 2 and values[0] >= 20 and values[1] < 10
    if len(values) > 1 and not is_sum:
        raise ValueError(text)
    return Fraction(sum(values))


def _chinese(text: str) -> Fraction:
    """Return the value of a Chinese number. Raises ValueError if the text is not a number."""
    digits = table("chinese.digits")
    is_digit_by_digit = bool(text) and all(char in digits for char in text)
    if not is_digit_by_digit:
        return _hundreds(text, digits)
    # Only a year (二〇二六) and a number that begins with zero (零五) are spelled so.
    is_year = len(text) == 4
    begins_with_zero = text[0] in "零〇"
    if len(text) > 1 and not is_year and not begins_with_zero:
        raise ValueError(text)
    return Fraction("".join(str(digits[char]) for char in text))


def _hundreds(text: str, digits: Mapping[str, int]) -> Fraction:
    """Return the value of a Chinese number in hundreds, tens and ones: 一百零五 is 105.

    digits: the value of each Chinese digit.
    """
    match = _HUNDREDS.fullmatch(text)
    if not text or not match:
        raise ValueError(text)
    spelled = match.group("hundreds", "tens", "units")
    if not all(char in digits for char in spelled if char):
        raise ValueError(text)
    hundreds, tens, units = (digits.get(char, 0) for char in spelled)
    if match["has_tens"] and not match["tens"]:
        # 十五 has no digit before its tens
        tens = 1
    return Fraction(100 * hundreds + 10 * tens + units)
