"""Amounts and telephone numbers are found however they are written, and other numbers are not."""

from __future__ import annotations

import pytest

from index.conftest import Desk
from memoranda.text.written_numbers import number_forms

# Each list has one number in several ways of writing it.
_ALIKE = (
    ("1299.99", "$1,299.99", "1 299,99", "1.299,99 EUR", "1'299.99", "€1299,99"),
    ("12000", "12,000", "12 000", "12.000"),
    ("4500000", "4,500,000", "4 500 000", "4.500.000", "4\u202f500\u202f000"),
    ("+49 30 1234567", "030/1234567", "+49301234567", "+49 (0)30 123 45 67", "0049 30 1234567"),
    ("(555) 123-4567", "555-123-4567", "555.123.4567", "+1 555 123 4567"),
    ("+7 912 345-67-89", "+79123456789", "+7 (912) 345 67 89"),
    ("+33 1 42 68 53 00", "01 42 68 53 00", "01.42.68.53.00"),
    ("+48 601 234 567", "+48601234567"),
    ("+380 44 123 45 67", "044 123-45-67", "(044) 1234567"),
    ("+86 138 1234 5678", "+8613812345678"),
)


@pytest.mark.parametrize("numbers", _ALIKE, ids=lambda numbers: numbers[0])
def test_number_is_found_in_each_way_of_writing(numbers: tuple[str, ...], desk: Desk) -> None:
    for number in numbers:
        desk.put(f"{numbers.index(number)}.md", f"Note {number} down")
    paths = {f"{place}.md" for place in range(len(numbers))}
    missed = []
    for number in numbers:
        found = desk.found(number)
        if paths.difference(found):
            missed.append(number)
    assert missed == []


@pytest.mark.parametrize(
    ("written", "searched"),
    [
        ("Pay 1,299.98", "1299.99"),
        ("Pay 12,000", "120000"),
        ("Pay 112,000", "12 000"),
        ("Call 030/1234568", "+49 30 1234567"),
        ("Call 030/7654321", "030 1234567"),
        ("Build 1.2.345", "12345"),
        ("Take 1, 234 or 5", "1234"),
    ],
)
def test_other_number_is_not_found(written: str, searched: str, desk: Desk) -> None:
    desk.put("note.md", written)
    hits = desk.search(searched)
    is_relaxed = hits.relaxed
    assert is_relaxed or not hits.hits


@pytest.mark.parametrize(
    "text",
    [
        "2026-12-01",
        "01.12.2026",
        "01-12-2026",
        "01/12/2026 14:30",
        "10.0.0.1",
        "v1.10.2",
        "08:30-17:00",
        "1234567890",
        "0.125",
        "a1b2c3d4e5",
    ],
)
def test_text_without_such_a_number_has_no_forms(text: str) -> None:
    assert number_forms(text) == []


def test_numbers_of_a_text_are_given_once_in_order() -> None:
    forms = number_forms("Pay 1,299.99 and 1.299,99, then call 030/1234567")
    assert forms == ["1299 99", "1234567"]


@pytest.mark.parametrize(
    ("number", "form"),
    [("1,299.99", "1299 99"), ("030/1234567", "1234567"), ("555-123-4567", "1234567")],
)
def test_number_begins_after_a_space_or_a_bracket_and_not_within_a_word(
    number: str, form: str
) -> None:
    for before in ("", " ", "\n", "(", "€", "“"):
        assert number_forms(f"{before}{number}") == [form], before
    for before in ("x", "_", ".", "é"):
        assert number_forms(f"{before}{number}") == [], before
