"""Repair texts that UTF-8 cannot encode, and make texts of unknown origin harmless to show.

UTF-8 cannot encode a lone surrogate, which comes from a JSON escape or from bytes that are not
UTF-8 (`surrogateescape`).

To be shown, characters that act on a terminal or are invisible become visible escapes. A few
invisible characters stay where a script needs them: zero-width joiners between letters (Persian,
Indic scripts) and emoji, the tags of a flag, and the variant of an ideograph.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

from memoranda.text.pattern import lazy_pattern

CONTROL = r"\x00-\x1f\x7f-\x9f\u2028\u2029"
"""Control characters and line breaks of every kind, for a character class of `re`."""
SURROGATES = r"\ud800-\udfff"
# Blanks inside a line. Blanks that indent a line do not match.
_BLANKS = lazy_pattern(r"(?<=[^ \t])[ \t]+")
# A character of a script that may need invisible characters: none of Latin, no punctuation.
_BEYOND_LATIN = r"[^\x00-\u024f\u2000-\u206f\ufeff]"
# Invisible characters that a script needs: joiners between letters or emoji, the tags of a flag, the
# variant of an ideograph.
_NEEDED = (
    rf"(?<={_BEYOND_LATIN})[\u200c\u200d](?={_BEYOND_LATIN})"
    r"|(?<=\U0001f3f4)[\U000e0061-\U000e007a]{2,6}\U000e007f"
    r"|(?<=[\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])[\U000e0100-\U000e01ef]"
)
# Control, bidi and other invisible characters.
_UNSEEN = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\U000e0000-\U000e0fff"
)
# An escape that `flat` writes.
_ESCAPED = r"\\(?:[nr]|x[0-9a-f]{2}|u[0-9a-f]{4}|U000[0-9a-f]{5})"
# The source of a pattern that is compiled at its first use.
_NEEDED_OR_UNSEEN = f"(?:{_NEEDED})|(?P<unseen>[{_UNSEEN}])"


def is_valid_unicode(text: str) -> bool:
    """Whether `text` has no lone surrogate, so that UTF-8 can encode it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def repair_surrogates(text: str) -> str:
    """Join pairs of surrogates to their character, and replace lone surrogates by U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def sqlite_text(text: str) -> str:
    """Replace every surrogate by `?`, since SQLite cannot store surrogates."""
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode("utf-8")


def sqlite_value(value: Any) -> Any:
    """Return `value` with `sqlite_text` applied to each str in a dict, list, tuple or dataclass."""
    if isinstance(value, str):
        return sqlite_text(value)
    if isinstance(value, dict):
        return {sqlite_value(name): sqlite_value(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(sqlite_value, value))
    if is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in fields(value)]
        return replace(value, **{name: sqlite_value(getattr(value, name)) for name in names})
    return value


def one_line(text: str) -> str:
    """Replace every line break and control character by a blank: `a\\nb` → `a b`."""
    return re.sub(f"\r\n|[{CONTROL}]", " ", text)


def unescaped(text: str) -> str:
    r"""Undo `flat`: replace escapes such as `\x1b`, `\n` and `\u202e` by their characters.

    Escapes that `flat` never writes are left unchanged.
    """
    if "\\" not in text:
        return text

    def character(escape_match: re.Match[str]) -> str:
        char = escape_match[0].encode("ascii").decode("unicode_escape")
        if flat(char) == escape_match[0]:
            return char
        return escape_match[0]

    return re.sub(_ESCAPED, character, text)


def cut_bytes(text: str, limit: int) -> str:
    """Return the longest beginning of `text` that has at most `limit` bytes in UTF-8."""
    data = text.encode("utf-8", "replace")
    if len(data) <= limit:
        return text
    return data[:limit].decode("utf-8", "ignore")


def compared_lines(text: str) -> tuple[str, ...]:
    """Return the lines of a text in a form for comparing in a merge (contract 001, 18.6).

    Differences of line ends, blanks at line ends, runs of blanks inside a line, and blank lines are
    removed. Case, indentation, order and all other characters are kept.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    compared = [_BLANKS.sub(" ", line.rstrip(" \t")) for line in lines]
    return tuple(line for line in compared if line)


def escape(character: str) -> str:
    r"""Return the escape of a character in Python: `\x1b`, `\n`, `\u202e`, `\U000e0041`."""
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")


def json_escape(character: str) -> str:
    r"""Return the escape of a character in a JSON string: `\u001b`."""
    import json

    return json.dumps(character)[1:-1]


def visible(text: str, escaped: Callable[[str], str] = escape) -> str:
    """Escape control, bidi and other invisible characters.

    Line feeds and tabs stay, and CR LF becomes a line feed. Invisible characters that a script needs
    stay, too, such as a joiner between Persian letters.

    escaped: returns the escape of a character.
    """

    def shown(match: re.Match[str]) -> str:
        # A match without the group is a character that a script needs.
        if match["unseen"] is None:
            return match[0]
        return escaped(match["unseen"])

    if text.isprintable():
        return text
    if "\r\n" in text:
        text = text.replace("\r\n", "\n")
    return re.sub(_NEEDED_OR_UNSEEN, shown, text)


def flat(text: str) -> str:
    """Return `text` as one line: also escape line breaks and tabs, which `visible` keeps."""
    if text.isprintable():
        return text
    return visible(text.replace("\r", r"\r").replace("\n", r"\n").replace("\t", " "))
