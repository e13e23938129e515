"""Amounts and telephone numbers that people write in several ways, each in one form for the index.

`1,299.99`, `1.299,99` and `1 299,99` are one amount: `1299 99`. `+49 30 1234567`, `030/1234567` and
`+49301234567` may be one telephone number, of which the last seven digits are compared: the digits
before them depend on the country from which somebody calls.
"""

from __future__ import annotations

from memoranda.text.pattern import lazy_pattern

# Each pattern begins with a class of characters, and looks at the character before only then. `re`
# passes over a text that has none of the class five times as fast as it looks back everywhere.
AMOUNT = (
    r"[1-9](?<![\w.,'].)\d{0,2}(?P<mark>[ ,.'’\u00a0\u202f])\d{3}(?:(?P=mark)\d{3}){0,3}"
    r"(?:[.,]\d\d?)?(?![.,]?\d|\w)"
)
"""The pattern of an amount with marks between its thousands."""
TELEPHONE = (
    r"[+(02-9](?<![\w.,/+-].)"
    r"(?:(?:(?<=[+0])\d|(?<=\()0\d)(?:[ ()/.-]{0,3}\d){5,13}(?!\d|\w|[.,]\d)"
    r"|(?:(?<=[2-9])\d\d|(?<=\()[2-9]\d\d)\)?[ .-]{1,2}\d{3}[ .-]\d{4}(?!\d|\w|[.,]\d))"
)
"""The pattern of a telephone number: with a country or area code, or grouped as in America."""
# What each such number has.
_MAY_BE = lazy_pattern(
    r"[0-9+](?:(?<=[0-9])[^\w\n]{1,2}[0-9]{3}|(?<=0)[0-9][^\n][0-9]|(?<=\+)[0-9])"
)
_AMOUNT = lazy_pattern(AMOUNT)
_TELEPHONE = lazy_pattern(TELEPHONE)
_NO_DIGIT = lazy_pattern(r"\D+")
# A date or a time, which has no more to do with another of the same last digits.
_DATE = lazy_pattern(r"(?:\d{4}[./-]\d\d?[./-]\d\d?|\d\d?[./-]\d\d?[./-]\d{4})\b")
# The decimals of an amount, with the sign before them.
_DECIMALS = lazy_pattern(r"[.,](\d\d?)\Z")
# Digits at the end that two ways of writing a telephone number share.
_SHARED_DIGITS = 7


def number_forms(text: str) -> list[str]:
    """Return the amounts and telephone numbers in a text, in the form of the index.

    `Pay 1,299.99, call 030/1234567` gives `1299 99` and `1234567`. A number without any marks is a
    word of the index as it is, so it is left out.
    """
    # Most texts have no such number, and one look is much faster than the patterns.
    if not _MAY_BE.search(text):
        return []
    forms = [_joined(match[0]) for match in _AMOUNT.finditer(text)]
    for match in _TELEPHONE.finditer(text):
        digits = _NO_DIGIT.sub("", match[0])
        if len(digits) > _SHARED_DIGITS and not _DATE.match(match[0]):
            forms.append(digits[-_SHARED_DIGITS:])
    return list(dict.fromkeys(forms))


def _joined(amount: str) -> str:
    """Return an amount without the marks of its thousands: `1,299.99` → `1299 99`."""
    decimals = _DECIMALS.search(amount)
    if decimals is None:
        return _NO_DIGIT.sub("", amount)
    whole = _NO_DIGIT.sub("", amount[: decimals.start()])
    return f"{whole} {decimals[1]}"
