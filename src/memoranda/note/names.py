"""The forms in which a caller's name for a note is compared with the note's name (docs/format.md).

There are five forms (FORMS), the strictest first: as written, as shown in a reply, as shown in a
list on a terminal, without case, and without signs, marks and blanks. index/resolve.py uses them to
decide which note is meant.
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
# The end of a name that is the file of a note.
_NOTE_FILE = lazy_pattern(r"\.(?:md|markdown)$", re.IGNORECASE)


# Signs of a name that a list shows as a blank.
_BLANK_OR_CONTROL = lazy_pattern(rf"\r\n|[{CONTROL}]|\s")
ID_DIGITS = 8
"""How many digits of its id the name of a memory's file ends with."""
_ID_AT_END = lazy_pattern(rf"-([0-9a-f]{{{ID_DIGITS}}})\.md$")
# A name written as a wikilink, perhaps with an alias.
_LINK = lazy_pattern(r"\[\[([^\[\]|]+)(?:\|[^\[\]]*)?\]\]")


class Looseness(IntEnum):
    """How far a caller allows a name to differ from the name of the note that it means."""

    EXACT = 0
    """The name must be as written, or as a reply shows it, in any Unicode form."""
    CASE = 1
    """If no note has the exact name, the case may differ."""
    SIGNS = 2
    """If no note has the name in another case either, signs, marks and blanks may differ."""


class Form(NamedTuple):
    """A form for comparing names.

    looseness: the looseness from which on this form is tried.
    title: returns a title in this form.
    address: returns an address in this form. It keeps the `/` between folders.
    """

    looseness: Looseness
    title: Callable[[str], str]
    address: Callable[[str], str]


def as_written(name: str) -> str:
    """Return the name unchanged."""
    return name


def as_shown(name: str) -> str:
    """Return the name as a reply shows it: on one line, trimmed, its letters composed (NFC)."""
    return unicodedata.normalize("NFC", flat(name)).strip()


def as_listed(name: str) -> str:
    """Return the name as a list on a terminal shows it.

    This is `as_shown` with a plain blank for each control character, line break and other blank.
    """
    if name.isprintable():
        return as_shown(name)
    return as_shown(_BLANK_OR_CONTROL.sub(" ", name))


def without_case(name: str) -> str:
    """Return the name as shown, in small letters."""
    if name.isascii():
        return as_shown(name).lower()
    return unicodedata.normalize("NFC", as_shown(name).casefold())


def _folded_address(address: str) -> str:
    """Return an address with `fold` done to each of its parts."""
    return "/".join([fold(part) for part in address.split("/")])


FORMS = (
    Form(Looseness.EXACT, as_written, as_written),
    Form(Looseness.EXACT, as_shown, as_shown),
    Form(Looseness.EXACT, as_listed, as_listed),
    Form(Looseness.CASE, without_case, without_case),
    Form(Looseness.SIGNS, fold, _folded_address),
)


def named_one(name: str, names: Iterable[str]) -> str | None:
    """Return the entry of `names` that `name` means, None if it is not clear which.

    An equal entry counts first. Without one, an entry that differs only in case counts, and without
    that, one that differs also in signs and blanks. If several differ so, none is meant.
    """
    candidates = list(names)
    if name in candidates:
        return name
    for form_of in (without_case, fold):
        form = form_of(name)
        matches = [candidate for candidate in candidates if form_of(candidate) == form]
        if len(matches) > 1:
            return None
        if matches:
            return matches[0]
    return None


def is_named_by_id(text: str, note_id: str, looseness: Looseness) -> bool:
    """Whether a text by which a note was found is close enough to the note's id.

    Anybody may give a note an id such as `20240101-meeting`, and its beginning may be the name of a
    note that is gone. So a change may only shorten UUIDs. The id of a merged memory finds the note
    into which it was merged. That note is another one, so it is not deleted by that id.

    text: the beginning of the note's id, or of the id of a memory that was merged into it.
    note_id: the note's id.
    looseness: how much a name may differ from the note's own: EXACT, CASE or SIGNS.
    """
    if looseness is Looseness.SIGNS or text == note_id:
        return True
    if note_id.startswith(text):
        return UUID.fullmatch(note_id) is not None
    return looseness is Looseness.CASE


def is_file(name: str) -> bool:
    """Whether a name ends as the file of a note does: `tea.md`."""
    return _NOTE_FILE.search(name) is not None


def is_place(name: str, *, begins_with_project: bool) -> bool:
    """Whether a name is the place of a file, as lists and the log print it: `notes/plans/tea.md`.

    Where something is changed, it means that file only. When the file is gone, anybody may call
    another note so, and a call that is repeated must not reach that one.

    begins_with_project: whether a project is called as the part before the first `/`. Its files may
        have any extension.
    """
    if "/" not in name.strip("/"):
        return False
    return is_file(name) or (begins_with_project and _EXTENSION.search(name) is not None)


def id_in_file_name(path: str) -> str | None:
    """Return the first 8 digits of the id that the file name of a memory ends with.

    `people/tea-1a2b3c4d.md` has `1a2b3c4d`. None if the name does not end so.
    """
    match = _ID_AT_END.search(path)
    return None if match is None else match[1]


def stem(path: str) -> str:
    """Return a path without its extension: `a/tea` for `a/tea.md`. `v1.2` has no extension."""
    return _EXTENSION.sub("", path)


def file_key(path: str) -> str:
    """Return a key that is equal for two paths which some file system takes for the same file.

    Such file systems ignore case and Unicode form. They compare letter by letter, so `ß` and `ss`
    have different keys.
    """
    if path.isascii():
        return path.lower()
    composed = unicodedata.normalize("NFC", path)
    return unicodedata.normalize("NFC", "".join(map(_folded_letter, composed)))


def _folded_letter(letter: str) -> str:
    """Return a letter without case. It stays if its form without case has several letters."""
    folded = letter.casefold()
    if len(folded) == 1:
        return folded
    return letter


def link_target(text: str) -> str:
    """Return the target of a text that is only a link: `C++` for `[[C++]]` or `[[C++|a language]]`.

    "" for any other text.
    """
    match = _LINK.fullmatch(text.strip())
    if match:
        return match[1].strip()
    return ""
