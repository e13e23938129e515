"""Read the tags and fields inside a note's text: `#tag`, `#nested/tag`, `key:: value`.

A tag follows a blank or begins a line, as in Obsidian, and has a character other than a digit, so
`#12` is not a tag. Code, comments, headings, addresses (`page#part`) and colours have none. A field
is a line, a list item, or is in brackets: `[due:: 2026-03-01]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from memoranda.note.grammar import STRUCTURED, mask_code
from memoranda.note.links import TAG_SIGNS
from memoranda.text.pattern import lazy_pattern
from memoranda.text.remembered import remembered
from memoranda.value_object import ValueObject

MOST = 1_000
"""How many tags, and how many fields, of a note are read."""

# The emoji, which a tag may hold.
_PICTURES = "\u2600-\u27bf\U0001f000-\U0001fbff"
# Tags in a row, `#a#b`. The first `#` begins a line or follows a blank. `##` begins no tag, so a note
# with headings and without tags is not read line by line.
_TAGS = lazy_pattern(rf"#(?<!\S#)(?!#)([{TAG_SIGNS}{_PICTURES}#]+)")
# The digits of a colour such as `#fff`.
_HEX = lazy_pattern(r"[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8}", re.I)
# Letters without a vowel, or one letter again and again.
_SPELLS_NOTHING = lazy_pattern(r"[^aeiou]*|(.)\1*", re.I)
_KEY = r"[^\W\d_][\w -]{0,59}?"
# A field that takes a whole line: `key:: value`.
_LINE_FIELD = lazy_pattern(
    rf"[ \t]*(?:[-*+>][ \t]+)?(?:\*\*)?({_KEY})(?:\*\*)?::(?:\*\*)?[ \t]+(\S.*)"
)
# A field inside a line: `[key:: value]` or `(key:: value)`.
_BRACKET_FIELD = lazy_pattern(rf"[\[(]({_KEY})::[ \t]+([^\[\]()\n]+)[\])]")
# The line that opens or closes fenced code, also in a quote or a list.
_FENCE = lazy_pattern(r"[ \t>]*(?:[-*+][ \t]+)?(`{3,}|~{3,})")
# A comment of HTML or Obsidian.
_COMMENT = lazy_pattern(r"<!--.*?(?:-->|\Z)|%%.*?%%", re.S)
# The beginning of a list item.
_LIST_ITEM = lazy_pattern(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]")
_TAG_KEYS = ("tag", "tags")
# A field of a page of Logseq, at the beginning of a block.
_PAGE_FIELD = lazy_pattern(r"[ \t]*(?:[-*][ \t]+)?([\w\-]+)::[ \t]*(.*)")
# A link, a name in quotes, or a name up to the next comma.
_NAMES = lazy_pattern(r'\[\[([^\[\]]+)\]\]|"([^"]+)"|([^,，\[\]"]+)')
# A link, whose commas are part of its name.
_BRACKETED = lazy_pattern(r"\[\[[^\[\]]*\]\]")
# One value of a list with commas; a link is whole.
_PARTED_BY_COMMAS = lazy_pattern(r"\[\[([^\[\]]*)\]\]|([^,，\[\]]+)")
# One value of a list with blanks; a link is whole.
_PARTED_BY_BLANKS = lazy_pattern(r"\[\[([^\[\]]*)\]\]|([^\s\[\]]+)")


@dataclass(slots=True, eq=False, repr=False)
class Inline(ValueObject):
    """The tags and fields of a text.

    tags: as written, each once.
    fields: the values under each key, in order.
    """

    tags: tuple[str, ...] = ()
    fields: dict[str, list[str]] = field(default_factory=dict)


LEVELS = 32
"""How many levels of a nested tag are searched for: `a/b/c` has three."""


def _add_fields(line: str, tags: dict[str, str], fields: dict[str, list[str]]) -> None:
    """Add the fields of a line, such as `due:: 2026-03-01`, to `fields`.

    A field of tags, such as `tags:: red, blue`, is added to `tags` instead.
    """
    for key, value in _fields_of(line):
        if key.casefold() in _TAG_KEYS:
            for tag in listed_tags(value):
                tags[tag.casefold()] = tag
        elif len(fields) < MOST:
            fields.setdefault(key, []).append(value)


@remembered
def inline(body: str) -> Inline:
    """Read the tags and fields in the text of a note.

    body: the text without its header.
    """
    text = body[:STRUCTURED]
    has_tags = _TAGS.search(text) is not None
    has_fields = "::" in text
    if not (has_tags or has_fields):
        return Inline()

    tags: dict[str, str] = {}
    fields: dict[str, list[str]] = {}
    for line in mask_code(_without_code_blocks(text)).split("\n"):
        has_field = has_fields and "::" in line
        # Most lines have neither
        if not has_field and "#" not in line:
            continue
        if has_field:
            _add_fields(line, tags, fields)
        for tag in _tags_of(line):
            if len(tags) < MOST:
                tags.setdefault(tag.casefold(), tag)
    return Inline(tuple(tags.values()), fields)


def page_fields(body: str) -> dict[str, str]:
    """Read the fields that a page of Logseq begins with, one on each line.

    `Title:: Tea` and `alias:: Cha` become `{"title": "Tea", "alias": "Cha"}`.
    """
    fields: dict[str, str] = {}
    for line in body.lstrip().split("\n"):
        match = _PAGE_FIELD.match(line)
        if match is None:
            return fields
        fields.setdefault(match[1].lower(), match[2].strip())
    return fields


def listed_names(value: str) -> list[str]:
    """Split the value of a field into names: `[[Green tea]], "Cha", Chai` into three.

    Commas separate the names, but not inside `[[ ]]` or quotes.
    """
    # Each match has three groups, one for each way to write a name. Two of them are "".
    names = ["".join(groups).strip() for groups in _NAMES.findall(value)]
    return [name for name in names if name]


def levels(tag: str) -> list[str]:
    """Return a nested tag and the tags that contain it.

    `journal/2025/03` becomes `["journal/2025/03", "journal/2025", "journal"]`. If a tag has more than
    LEVELS levels, the result is the tag and the LEVELS outermost, because the length of all would
    grow with the square of the tag's length.
    """
    tag = tag.strip("/")
    # The parts after the first LEVELS are one text.
    parts = tag.split("/", LEVELS)
    deepest = min(len(parts), LEVELS)
    outer_tags = ["/".join(parts[:depth]) for depth in range(deepest, 0, -1)]
    if len(parts) > LEVELS:
        return [tag, *outer_tags]
    return outer_tags


def _tags_of(line: str) -> Iterator[str]:
    """Yield the tags of a line without their `#`."""
    for match in _TAGS.finditer(line):
        is_before_semicolon = line[match.end() : match.end() + 1] == ";"
        for tag in match[1].split("#"):
            if not tag or tag.isdecimal():
                # `#12` is not a tag, and neither are tags behind it in the same run.
                break
            # `color: #bad;` is a line of CSS.
            is_in_style = is_before_semicolon and _HEX.fullmatch(tag)
            if not is_in_style and not _is_colour(tag):
                yield tag.strip("/")


def _is_colour(tag: str) -> bool:
    """Whether a tag is a colour such as `#fff` or `#a1b2c3`.

    Hexadecimal letters that may be a word, such as `#bad`, are a tag.
    """
    if not _HEX.fullmatch(tag):
        return False
    has_digit = not tag.isalpha()
    return has_digit or _SPELLS_NOTHING.fullmatch(tag) is not None


def _fields_of(line: str) -> Iterator[tuple[str, str]]:
    """Yield the key and the value of each field in a line."""
    match = _LINE_FIELD.match(line)
    if match:
        yield match[1].strip(), match[2].strip()
    for bracketed in _BRACKET_FIELD.finditer(line):
        yield bracketed[1].strip(), bracketed[2].strip()


def listed_tags(value: str) -> list[str]:
    """Split the value of a field into tags: `a, [[b c]], #d` into `["a", "b c", "d"]`.

    If the value has no commas outside `[[ ]]`, blanks separate the tags.
    """
    has_commas = re.search("[,，]", _BRACKETED.sub("", value)) is not None
    if has_commas:
        pattern = _PARTED_BY_COMMAS
    else:
        pattern = _PARTED_BY_BLANKS
    tags: list[str] = []
    # One of the two is ""
    for link, word in pattern.findall(value):
        tag = (link or word).strip().lstrip("#").strip()
        if tag:
            tags.append(tag)
    return tags


def _without_code_blocks(text: str) -> str:
    """Remove fenced code, indented code and comments from `text`."""
    may_be_code = "```" in text or "~~~" in text or "    " in text or "\t" in text
    if may_be_code:
        text = _without_code_lines(text)
    if "<!--" in text or "%%" in text:
        return _COMMENT.sub(" ", text)
    return text


def _without_code_lines(text: str) -> str:
    """Remove the lines of fenced code and of indented code."""
    lines: list[str] = []
    # The signs that opened the code we are in, or "".
    fence = ""
    is_after_blank = True
    is_in_list = False
    for line in text.split("\n"):
        marker = _FENCE.match(line)
        if fence:
            if marker and _closes_fence(line, marker[1], fence):
                fence = ""
            continue
        if marker:
            fence = marker[1]
            continue
        is_blank = not line.strip()
        is_indented = line.startswith(("    ", "\t"))
        # In a list, indented lines continue an item.
        continues_list = is_in_list and (is_blank or is_indented)
        is_in_list = continues_list or _LIST_ITEM.match(line) is not None
        # Without a blank line above it, an indented line continues a paragraph.
        is_indented_code = is_indented and is_after_blank and not is_in_list
        if is_indented_code:
            continue
        is_after_blank = is_blank
        lines.append(line)
    return "\n".join(lines)


def _closes_fence(line: str, mark: str, fence: str) -> bool:
    """Whether a line ends the code that `fence` opened, such as three backticks.

    mark: the signs with which the line begins. They must be at least as many as in `fence`, and be
        alone in the line.
    """
    return mark.startswith(fence) and not line.strip(" \t>\r").strip(fence[0])
