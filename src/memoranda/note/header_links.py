"""Read the links in the values of a header: `up: "[[Target]]"`, in lists and nested values too.

The links are read from the header's text, not from its values: YAML reads `up: [[Target]]` without
quotes as a list in a list, and an edit must know where in the text a link is.
"""

from __future__ import annotations

from typing import NamedTuple

from memoranda.note.links import WrittenLink, written_links
from memoranda.text.pattern import lazy_pattern

# A key of a header: in double quotes, in single ones, or bare.
_KEY = lazy_pattern(r"""(?:"([^"]+)"|'([^']+)'|([^\s:#\-\[\]{}"'][^:]*?))[ \t]*:(?:[ \t]|$)""")
# A key that can be the type of a relation.
_WORD = lazy_pattern(r"[^\W\d][\w\-./+]*")
# Keys whose values name the note itself, or hold ids.
_NAMES = frozenset(("title", "aliases", "alias", "permalink", "id", "links"))


class HeaderLink(NamedTuple):
    """A link in a header.

    key: the header key in whose value the link is.
    line: its line in the file, from 1.
    link: the link as that line has it.
    """

    key: str
    line: int
    link: WrittenLink


def header_links(yaml_text: str) -> list[HeaderLink]:
    """Return the links to notes in a header.

    yaml_text: the header without its `---` lines.
    """
    if "[[" not in yaml_text:
        return []
    links: list[HeaderLink] = []
    key = ""
    # The header begins in line 2, below the first `---`.
    for number, line in enumerate(yaml_text.replace("\r\n", "\n").split("\n"), 2):
        match = _KEY.match(line)
        if match:
            key = (match[1] or match[2] or match[3]).strip()
        is_comment = line.lstrip().startswith("#")
        if "[[" not in line or is_comment or key.casefold() in _NAMES:
            continue
        for link in written_links(line, line):
            if _is_link(line, link):
                links.append(HeaderLink(key, number, link))
    return links


def _is_link(line: str, link: WrittenLink) -> bool:
    """Whether double brackets are a link. `[[1, 2]]` without quotes is a list in a list."""
    text_before = line[: link.start - 2].rstrip()
    is_quoted = text_before[-1:] in ("'", '"')
    may_be_list = "," in link.raw and not is_quoted
    return not link.is_markdown and not may_be_list


def relation_type(key: str, default: str) -> str:
    """Return the type of the relation that a link under a header key makes.

    The type is the key itself, or `default` if the key has several words.
    """
    if _WORD.fullmatch(key):
        return key
    return default
