"""Parts of a note that links lead to: headings and block ids, and which of them an edit renamed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote, unquote

from memoranda.note.frontmatter import split
from memoranda.note.grammar import mask_code, scan
from memoranda.note.links import WrittenLink, fold
from memoranda.text.pattern import lazy_pattern

# A block id at the end of a line: `^id`.
_BLOCK = lazy_pattern(r"(?:^|[ \t])\^([A-Za-z0-9-]+)[ \t]*\r?$", re.MULTILINE)
# A block id after a heading, which is no part of its name.
_BLOCK_AT_END = lazy_pattern(r"[ \t]+\^[A-Za-z0-9-]+[ \t]*$")
# Signs that Obsidian leaves out of a heading in a link.
_NOT_IN_LINKS = lazy_pattern(r"[#|^\[\]:]|%%")
# A link to a heading or a block of the same note, in either style.
_OWN_LINK = lazy_pattern(r"\[\[(#[^\[\]|\n]+?)(?=\\?\||\]\])|\]\((#[^()\s]+)\)")
# Any run of blanks counts as one.
_BLANKS = lazy_pattern(r"\s+")


class Anchor(NamedTuple):
    """A heading, or a block where `level` is 0, by its text or id."""

    level: int
    name: str


def anchors_of(text: str) -> list[Anchor]:
    """The headings and the block ids of a note, headings first, each in their order."""
    header = split(text)
    _, _, headings = scan(text, header.body_at)
    anchors = [Anchor(heading.level, _BLOCK_AT_END.sub("", heading.text)) for heading in headings]
    anchors += [Anchor(0, name) for name in _BLOCK.findall(text[header.body_at :])]
    return anchors


def renamed(before: str, after: str) -> dict[Anchor, str]:
    """The headings and blocks of `before` that have a new name in `after`, with that name.

    They are matched by their order, so only if each level has as many as before. A name that was
    there before, or an old name that still exists, does not count.
    """
    old = anchors_of(before)
    new = anchors_of(after)
    if [anchor.level for anchor in old] != [anchor.level for anchor in new]:
        return {}
    names_before = {_key(anchor) for anchor in old}
    names_after = {_key(anchor) for anchor in new}
    names: dict[Anchor, str] = {}
    for anchor, now in zip(old, new, strict=True):
        is_new = _key(now) not in names_before
        if is_new and _key(anchor) not in names_after:
            names[anchor] = now.name
    return names


def renamed_rest(link: WrittenLink, names: Mapping[Anchor, str]) -> str | None:
    """The part of a link from its `#` on, with the new names of these anchors.

    None if it names none of them.
    """
    keys = {_key(anchor): name for anchor, name in names.items()}
    parts = link.rest.split("#")[1:]
    changed = [_renamed_part(part, keys, is_markdown=link.is_markdown) for part in parts]
    if changed == parts:
        return None
    return "".join(f"#{part}" for part in changed)


def with_own_anchors(text: str, body_at: int, names: Mapping[Anchor, str]) -> str:
    """The text of a note whose links to its own parts, `[[#Part]]` and `[x](#part)`, have the new
    names; links in code stay."""
    lines = text.split("\n")
    first = text.count("\n", 0, body_at)
    is_code = False
    for number, line in enumerate(lines[first:], first):
        if line.lstrip().startswith(("```", "~~~")):
            is_code = not is_code
        if not is_code and ("[[#" in line or "](#" in line):
            lines[number] = _with_own_line(line, names)
    return "\n".join(lines)


def _with_own_line(line: str, names: Mapping[Anchor, str]) -> str:
    masked = mask_code(line)
    for match in reversed([*_OWN_LINK.finditer(masked)]):
        is_markdown = match[2] is not None
        # Group 1 is a wikilink, group 2 a Markdown link
        number = 1 + is_markdown
        raw = line[match.start(number) : match.end(number)]
        link = WrittenLink(raw, match.start(number), None, "", raw, is_markdown, False)
        renamed_part = renamed_rest(link, names)
        if renamed_part is not None:
            line = line[: match.start(number)] + renamed_part + line[match.end(number) :]
    return line


def _renamed_part(part: str, keys: Mapping[str, str], *, is_markdown: bool) -> str:
    heading_text = part
    if is_markdown:
        heading_text = unquote(part)
    if heading_text.startswith("^"):
        block = keys.get(f"^{heading_text[1:]}")
        if block is None:
            return part
        return f"^{block}"
    name = keys.get(fold(heading_text))
    if name is None:
        return part
    heading = _BLANKS.sub(" ", _NOT_IN_LINKS.sub(" ", name)).strip()
    if not is_markdown:
        return heading
    is_slug = (
        heading_text == heading_text.lower() and " " not in heading_text and "-" in heading_text
    )
    if is_slug:
        return quote(re.sub(r"[^\w\- ]", "", name.lower()).replace(" ", "-"), safe="-_")
    return quote(heading)


def _key(anchor: Anchor) -> str:
    if anchor.level == 0:
        return f"^{anchor.name}"
    return fold(anchor.name)


def changed_anchors(before: str, after: str) -> bool:
    """Whether lines that may be headings, or end in a block id, differ; quicker than to read both
    texts."""
    begin = before.rfind("\n", 0, _same_characters(before, after)) + 1
    before = before[begin:]
    after = after[begin:]
    same_at_end = _same_characters(before[::-1], after[::-1])
    end = before.find("\n", len(before) - same_at_end)
    if end >= 0:
        after = after[: len(after) - (len(before) - end)]
        before = before[:end]
    return _heading_words(before) != _heading_words(after)


def _same_characters(text: str, other: str) -> int:
    """How many characters two texts begin with alike, found by halves."""
    same_count = 0
    different = min(len(text), len(other)) + 1
    while different - same_count > 1:
        middle = (same_count + different) // 2
        if text[same_count:middle] == other[same_count:middle]:
            same_count = middle
        else:
            different = middle
    return same_count


def _heading_words(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.lstrip().startswith("#") or "^" in line]
