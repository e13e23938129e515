"""Arguments of the agent tools: what is missing or wrong is said in the contract's words (contract 001, 14)."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from commonplace.errors import InvalidInput
from commonplace.query import split_list
from commonplace.text.unicode import is_valid_unicode

_MOST = 1_000_000_000
_NUMBER = re.compile(r"[+-]?[0-9]{1,18}")


def parsed(data: bytes | str) -> Any:
    """What UTF-8 JSON says. Raises ValueError, also for NaN and numbers beyond all measure, which could not be
    written again; RecursionError."""
    text = data.decode("utf-8-sig") if isinstance(data, bytes) else data
    return json.loads(text, parse_constant=_refuse, parse_float=_finite)


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is no number of JSON")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse(text)


class Given:
    """The arguments of one call. null and an empty text are an argument not given; unknown ones are ignored."""

    def __init__(self, arguments: Any):
        if not isinstance(arguments, dict):
            raise InvalidInput("arguments must be an object")
        self._arguments = arguments

    def text(self, name: str) -> str | None:
        """An optional text. Raises InvalidInput for anything else."""
        value = self._arguments.get(name)
        if value is None or value == "":
            return None
        if not isinstance(value, str):
            raise InvalidInput(f"{name} must be a string")
        return _sound(name, value)

    def required(self, name: str) -> str:
        """A text that must be there. Raises InvalidInput."""
        value = self.text(name)
        if value is None:
            raise InvalidInput(f"{name} is required")
        return value

    def names(self, name: str) -> list[str]:
        """A comma list or an array of texts, trimmed, without empty ones. Raises InvalidInput."""
        value = self._arguments.get(name)
        if value is None or isinstance(value, str):
            return split_list(_sound(name, value or ""))
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise InvalidInput(f"{name} must be a comma list or an array of strings")
        return [stripped for each in value if (stripped := _sound(name, each).strip())]

    def whole(self, name: str, default: int) -> int:
        """A whole number from 0 on, also written as text. Raises InvalidInput."""
        value = self._arguments.get(name)
        if value is None or value == "":
            return default
        if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
            value = int(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise InvalidInput(f"{name} must be an integer")
        if value < 0:
            raise InvalidInput(f"{name} must be at least 0")
        return min(value, _MOST)


def _sound(name: str, text: str) -> str:
    if not is_valid_unicode(text):
        raise InvalidInput(f"{name} must be valid Unicode text")
    return text
