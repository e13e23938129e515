"""The tables of cases below `data`, which say nothing of Python, and how what is found is compared
with them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def tables(name: str) -> dict[str, Any]:
    """The content of `data/NAME.json`."""
    return json.loads((Path(__file__).parent / "data" / f"{name}.json").read_text(encoding="utf-8"))


def pattern(expected: str, masks: Mapping[str, str]) -> str:
    """`expected` as a regular expression; a mask in it matches what it means."""
    text = re.escape(expected)
    for mask, meaning in masks.items():
        text = text.replace(re.escape(mask), meaning)
    return text


def assert_has(
    actual: Any, expected: Any, is_same: Callable[[str, Any], bool], at: str = "$"
) -> None:
    """`actual` holds all of `expected`: objects may have more keys, lists have as many items;
    `is_same` compares texts.
    """
    if isinstance(expected, dict):
        for key, value in expected.items():
            assert key in actual, f"{at}.{key} is missing"
            assert_has(actual[key], value, is_same, f"{at}.{key}")
    elif isinstance(expected, list):
        assert len(actual) == len(expected), f"{at}: {actual}"
        for index, value in enumerate(expected):
            assert_has(actual[index], value, is_same, f"{at}[{index}]")
    elif isinstance(expected, str):
        assert is_same(expected, actual), f"{at}: {actual!r}, not {expected!r}"
    else:
        assert [actual, type(actual)] == [expected, type(expected)], (
            f"{at}: {actual!r}, not {expected!r}"
        )
