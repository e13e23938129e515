"""Which texts UTF-8 can hold, and what to make of the others. A lone surrogate comes from a JSON escape or from
bytes that are no UTF-8 (`surrogateescape`)."""

from __future__ import annotations

import re

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
