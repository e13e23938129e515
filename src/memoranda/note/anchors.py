"""Find the headings and block ids of a note, and give links to them the names that an edit gave.

A link `[[Tea#Taste]]` leads to a heading, `[[Tea#^ab1]]` to a block: a line that ends with its id,
`^ab1`. Both are called anchors here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote, unquote

from memoranda.note.frontmatter import split
from memoranda.note.grammar import mask_code, scan
from memoranda.note.links import fold
from memoranda.text.pattern import lazy_pattern

# A block id at the end of a line: `^id`.
_BLOCK = lazy_pattern(r"(?:^|[ \t])\^([A-Za-z0-9-]+)[ \t]*\r?$", re.MULTILINE)
# A block id after a heading. It is not part of the heading's name.
_BLOCK_AT_END = lazy_pattern(r"[ \t]+\^[A-Za-z0-9-]+[ \t]*$")
# Signs that Obsidian leaves out of a heading in a link.
_NOT_IN_LINKS = lazy_pattern(r"[#|^\[\]:]|%%")
# A link to a heading or a block of the same note: `[[#Taste]]` or `[x](#taste)`. Its groups are the
# part of each from its `#` on.
_OWN_LINK = lazy_pattern(r"\[\[(#[^\[\]|\n]+?)(?=\\?\||\]\])|\]\((#[^()\s]+)\)")
# A run of blanks.
_BLANKS = lazy_pattern(r"\s+")


class Anchor(NamedTuple):
    """A heading or a block.

    level: the level of the heading, 1 to 6; 0 for a block.
    name: the text of the heading, or the id of the block without `^`.
    """

    level: int
    name: str


def anchors_of(text: str) -> list[Anchor]:
    """Return the headings of a note in their order, then its blocks in their order."""
    header = split(text)
    headings = scan(text, header.body_at).headings
    anchors = [Anchor(heading.level, _BLOCK_AT_END.sub("", heading.text)) for heading in headings]
    anchors += [Anchor(level=0, name=name) for name in _BLOCK.findall(text[header.body_at :])]
    return anchors


def renamed(before: str, after: str) -> dict[Anchor, str]:
    """Return the headings and blocks that an edit renamed, each with its new name.

    `# Taste` in `before` and `# Flavour` in `after` give `{Anchor(1, "Taste"): "Flavour"}`. Headings
    are matched by their order, so the result is empty if the edit added, removed or moved any. A
    name that the note had before is not a new one. A name that the note still has is not an old one.

    before, after: the note's text before and after the edit.
    """
    old_anchors = anchors_of(before)
    new_anchors = anchors_of(after)
    if [anchor.level for anchor in old_anchors] != [anchor.level for anchor in new_anchors]:
        return {}
    old_keys = {_key(anchor) for anchor in old_anchors}
    new_keys = {_key(anchor) for anchor in new_anchors}
    new_names: dict[Anchor, str] = {}
    for old_anchor, new_anchor in zip(old_anchors, new_anchors, strict=True):
        is_new_name = _key(new_anchor) not in old_keys
        is_old_name_gone = _key(old_anchor) not in new_keys
        if is_new_name and is_old_name_gone:
            new_names[old_anchor] = new_anchor.name
    return new_names


def renamed_rest(rest: str, names: Mapping[Anchor, str], *, is_markdown: bool) -> str | None:
    """Return the part of a link from its `#` on with new names, None if nothing in it changes.

    rest: the part as it is written, such as `#Taste`.
    names: the new name of each renamed anchor, as `renamed` returns it.
    is_markdown: whether the link is a Markdown link, not a wikilink.
    """
    names_by_key = {_key(anchor): name for anchor, name in names.items()}
    parts = rest.split("#")[1:]
    new_parts = [_renamed_part(part, names_by_key, is_markdown=is_markdown) for part in parts]
    if new_parts == parts:
        return None
    return "".join(f"#{part}" for part in new_parts)


def with_own_anchors(text: str, body_at: int, names: Mapping[Anchor, str]) -> str:
    """Return the text of a note with new names in the links to its own anchors.

    These links are `[[#Taste]]` and `[x](#taste)`. Links in code stay.

    body_at: the offset in `text` where the body begins.
    names: the new name of each renamed anchor, as `renamed` returns it.
    """
    lines = text.split("\n")
    first_index = text.count("\n", 0, body_at)
    is_in_code = False
    for index, line in enumerate(lines[first_index:], first_index):
        if line.lstrip().startswith(("```", "~~~")):
            is_in_code = not is_in_code
        if not is_in_code and ("[[#" in line or "](#" in line):
            lines[index] = _line_with_own_anchors(line, names)
    return "\n".join(lines)


def _line_with_own_anchors(line: str, names: Mapping[Anchor, str]) -> str:
    """Give the new names to links in a line that lead to anchors of the same note.

    names: the new name of each renamed anchor, as `renamed` returns it.
    """
    masked = mask_code(line)
    # The last link first, so that the positions of the links before it stay right.
    for match in reversed([*_OWN_LINK.finditer(masked)]):
        # Group 1 is in a wikilink, group 2 in a Markdown link.
        is_markdown = match[2] is not None
        start, end = match.span(2 if is_markdown else 1)
        new_rest = renamed_rest(line[start:end], names, is_markdown=is_markdown)
        if new_rest is not None:
            line = line[:start] + new_rest + line[end:]
    return line


def _renamed_part(part: str, names_by_key: Mapping[str, str], *, is_markdown: bool) -> str:
    """Return the new name of an anchor as a link writes it; `part` itself if it has no new name.

    part: the name as the link writes it, `Taste` or `^ab1`. In a Markdown link it may be encoded,
        `green%20tea`, or a slug, `green-tea`.
    names_by_key: the new names, each by the `_key` of its anchor.
    is_markdown: whether the link is a Markdown link, not a wikilink.
    """
    old_name = unquote(part) if is_markdown else part
    if old_name.startswith("^"):
        new_block = names_by_key.get(old_name)
        return part if new_block is None else f"^{new_block}"

    new_heading = names_by_key.get(fold(old_name))
    if new_heading is None:
        return part
    if not is_markdown:
        return _as_link_text(new_heading)
    is_slug = old_name == old_name.lower() and " " not in old_name and "-" in old_name
    if is_slug:
        slug = re.sub(r"[^\w\- ]", "", new_heading.lower()).replace(" ", "-")
        return quote(slug, safe="-_")
    return quote(_as_link_text(new_heading))


def _as_link_text(heading: str) -> str:
    """Return a heading as a link names it: without signs that would end or divide the link."""
    return _BLANKS.sub(" ", _NOT_IN_LINKS.sub(" ", heading)).strip()


def _key(anchor: Anchor) -> str:
    """Return a key of an anchor. Different spellings of its name in links have the same key."""
    if anchor.level == 0:
        return f"^{anchor.name}"
    return fold(anchor.name)


def changed_anchors(before: str, after: str) -> bool:
    """Whether an edit may have changed headings or block ids. A quick check before `renamed`.

    Compares only the lines between the first and the last change.
    """
    # Cut off the lines that are equal at the beginning.
    start = before.rfind("\n", 0, _common_start(before, after)) + 1
    before = before[start:]
    after = after[start:]

    # Cut off the lines that are equal at the end.
    common_end = _common_start(before[::-1], after[::-1])
    end = before.find("\n", len(before) - common_end)
    if end >= 0:
        characters_cut = len(before) - end
        before = before[:end]
        after = after[: len(after) - characters_cut]
    return _anchor_lines(before) != _anchor_lines(after)


def _common_start(text: str, other_text: str) -> int:
    """Return how many characters at their beginning two texts have in common."""
    # A binary search, which is quicker than comparing single characters. The first `same_count`
    # characters are equal, the first `different` ones are not.
    same_count = 0
    different = min(len(text), len(other_text)) + 1
    while different - same_count > 1:
        middle = (same_count + different) // 2
        if text[same_count:middle] == other_text[same_count:middle]:
            same_count = middle
        else:
            different = middle
    return same_count


def _anchor_lines(text: str) -> list[str]:
    """Return the lines that may be a heading or end in a block id."""
    return [line for line in text.split("\n") if line.lstrip().startswith("#") or "^" in line]
