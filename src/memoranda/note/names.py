"""How far a name may differ from the name of a note that it means (docs/format.md, "Names").

A name is compared in five forms, the strictest first: as it is written, as it is shown, as a list
on a terminal shows it, without case, and without signs, marks and blanks. Pure text:
index/resolve.py decides which note is meant.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import NamedTuple

from memoranda.note.links import fold
from memoranda.text.pattern import lazy_pattern
from memoranda.text.unicode import CONTROL, flat

# An id as this program makes them.
UUID = lazy_pattern(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
# An extension of a file name.
_EXTENSION = lazy_pattern(r"\.[A-Za-z][A-Za-z0-9]{0,9}$")


# Signs that a name shows as a blank.
_BLANK_OR_CONTROL = lazy_pattern(rf"\r\n|[{CONTROL}]|\s")
# A name written as a wikilink, perhaps with an alias.
_LINK = lazy_pattern(r"\[\[([^\[\]|]+)(?:\|[^\[\]]*)?\]\]")


class Looseness(IntEnum):
    """How loosely a caller lets a name be read."""

    EXACT = 0
    """The name as written, or as a reply shows it; in any Unicode form."""
    CASE = 1
    """Where no note has the exact name: without regard to case."""
    SIGNS = 2
    """Where none fits so either: without signs, marks and blanks."""


class Form(NamedTuple):
    """One form in which names are compared. `title` and `address` give it to a text; an address
    keeps the `/` between folders."""

    looseness: Looseness
    title: Callable[[str], str]
    address: Callable[[str], str]


def as_written(name: str) -> str:
    """The name itself."""
    return name


def as_shown(name: str) -> str:
    """The name as a reply shows it on a line, composed, without blanks around it."""
    return unicodedata.normalize("NFC", flat(name)).strip()


def as_listed(name: str) -> str:
    """The name as a list on a terminal shows it: with a blank for each character that would break
    the line, and for each kind of blank."""
    if name.isprintable():
        return as_shown(name)
    return as_shown(_BLANK_OR_CONTROL.sub(" ", name))


def without_case(name: str) -> str:
    """The name as shown, in one case."""
    if name.isascii():
        return as_shown(name).lower()
    return unicodedata.normalize("NFC", as_shown(name).casefold())


def _folded_address(address: str) -> str:
    return "/".join([fold(part) for part in address.split("/")])


FORMS = (
    Form(Looseness.EXACT, as_written, as_written),
    Form(Looseness.EXACT, as_shown, as_shown),
    Form(Looseness.EXACT, as_listed, as_listed),
    Form(Looseness.CASE, without_case, without_case),
    Form(Looseness.SIGNS, fold, _folded_address),
)


def named_one(name: str, names: Iterable[str]) -> str | None:
    """The entry of `names` that `name` means.

    An exact match comes first, then one in another case, then one that differs in signs and blanks
    too. None if no entry or several match.
    """
    listed = list(names)
    if name in listed:
        return name
    for form in (without_case, fold):
        wanted_form = form(name)
        alike = [candidate for candidate in listed if form(candidate) == wanted_form]
        if alike:
            if len(alike) == 1:
                return alike[0]
            return None
    return None


def stem(path: str) -> str:
    """A path without the extension of its file; `v1.2` has none."""
    return _EXTENSION.sub("", path)


def file_key(path: str) -> str:
    """A key that is equal for two paths if a file system that ignores case and Unicode form takes
    them for one file.

    Letter by letter, as file systems fold: `ß` and `ss` are different names.
    """
    if path.isascii():
        return path.lower()
    composed = unicodedata.normalize("NFC", path)
    return unicodedata.normalize("NFC", "".join(map(_folded_letter, composed)))


def _folded_letter(letter: str) -> str:
    folded = letter.casefold()
    if len(folded) == 1:
        return folded
    return letter


def link_target(text: str) -> str:
    """The target of a link that is the whole text, as `C++` of `[[C++]]` and `[[C++|the language]]`;
    "" for other texts."""
    match = _LINK.fullmatch(text.strip())
    if match:
        return match[1].strip()
    return ""
