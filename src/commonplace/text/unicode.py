"""Which texts UTF-8 can hold, and what to make of the others. A lone surrogate comes from a JSON escape or from
bytes that are no UTF-8 (`surrogateescape`)."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass, replace
from typing import Any

CONTROL = r"\x00-\x1f\x7f-\x9f\u2028\u2029"
"""Control characters and line breaks of every kind, for a character class of `re`."""
SURROGATES = r"\ud800-\udfff"
_BLANKS = re.compile(r"(?<=[^ \t])[ \t]+")


def is_valid_unicode(text: str) -> bool:
    """Whether `text` holds no lone surrogate, so that UTF-8 can hold it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def repair_surrogates(text: str) -> str:
    """`text` with pairs of surrogates joined to their character, and U+FFFD for lone ones."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def sqlite_text(text: str) -> str:
    """`text` with `?` for every surrogate, which SQLite cannot hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def sqlite_value(value: Any) -> Any:
    """`value` with `sqlite_text` of every string in it: of a dict, a list, a tuple, a dataclass."""
    if isinstance(value, str):
        return sqlite_text(value)
    if isinstance(value, dict):
        return {sqlite_value(name): sqlite_value(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(sqlite_value, value))
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{one.name: sqlite_value(getattr(value, one.name)) for one in fields(value)})
    return value


def one_line(text: str) -> str:
    """`text` with a blank for every line break and control character."""
    return re.sub(f"\r\n|[{CONTROL}]", " ", text)


def cut_bytes(text: str, limit: int) -> str:
    """The longest beginning of `text` of at most `limit` UTF-8 bytes, no character split."""
    data = text.encode("utf-8", "replace")
    return text if len(data) <= limit else data[:limit].decode("utf-8", "ignore")


def compared_lines(text: str) -> tuple[str, ...]:
    """The lines of a text as merging compares them: CRLF, blanks at line ends, runs of blanks inside a line and blank
    lines do not count; case, indentation, order and every other character do. Source: contract 001, 18.6."""
    lines = (_BLANKS.sub(" ", line.rstrip(" \t")) for line in text.replace("\r\n", "\n").split("\n"))
    return tuple(line for line in lines if line)
