"""The first characters of a text, as rows of lists show them."""

from __future__ import annotations

import tracemalloc

import pytest

from memoranda.documents.wording import preview


@pytest.mark.parametrize(
    ("content", "line"),
    [
        pytest.param("", "", id="empty"),
        pytest.param("abc", "abc", id="as-long"),
        pytest.param("abcd", "abc...", id="longer"),
        pytest.param("a\r\nb", "a b", id="break-of-two-characters"),
        pytest.param("\r\n\r\n\r\n", "   ", id="breaks-alone"),
        pytest.param("\r\n\r\n\r\n\r\n", "   ...", id="more-breaks"),
        pytest.param("\r\n\r\n\r\n\r", "   ...", id="half-a-break-more"),
        pytest.param("a\r\nb\r\n", "a b...", id="break-at-the-end"),
        pytest.param("a\tb\u2028", "a b...", id="control-characters"),
    ],
)
def test_a_preview_has_the_first_characters_in_one_line(content: str, line: str) -> None:
    assert preview(content, 3) == line


def test_a_preview_of_a_very_long_text_copies_little_of_it() -> None:
    content = "some words\n" * 500_000
    tracemalloc.start()
    try:
        preview(content, 60)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 100_000
