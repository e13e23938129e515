"""Text of unknown origin made harmless to show: what acts on a terminal or hides from the eye becomes a visible escape.

Zero-width joiners stay between letters and emoji, where Persian, Indic scripts and families of emoji need them, and so
do the tags of a flag and the variant of an ideograph; everywhere else they are escaped like all format characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

_BASIC = r"[^\x00-\u024f\u2000-\u206f\ufeff]"
_KEPT = (
    rf"(?<={_BASIC})[\u200c\u200d](?={_BASIC})"
    r"|(?<=\U0001f3f4)[\U000e0061-\U000e007a]{2,6}\U000e007f"
    r"|(?<=[\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])[\U000e0100-\U000e01ef]"
)
_UNSEEN = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\U000e0000-\U000e0fff"
)


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile(f"(?:{_KEPT})|([{_UNSEEN}])")


def escape(character: str) -> str:
    r"""A character as Python writes it: `\x1b`, `\n`, `\u202e`, `\U000e0041`."""
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")


def json_escape(character: str) -> str:
    r"""A character as JSON writes it in a string: `\u001b`."""
    import json

    return json.dumps(character)[1:-1]


def visible(text: str, escaped: Callable[[str], str] = escape) -> str:
    """`text` with control, bidi and other invisible characters escaped; line feeds, tabs and CR LF stay line breaks."""
    if text.isprintable():
        return text
    if "\r\n" in text:
        text = text.replace("\r\n", "\n")
    return _pattern().sub(lambda found: escaped(found[1]) if found[1] else found[0], text)


def flat(text: str) -> str:
    """`text` on one line: as `visible`, and what breaks a line or moves the cursor is escaped too."""
    if text.isprintable():
        return text
    return visible(text.replace("\r", r"\r").replace("\n", r"\n").replace("\t", " "))
