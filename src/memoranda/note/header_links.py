"""Links in the values of a header: `up: "[[Target]]"`, in lists and nested values too.

They are read from the header's text, not from its values: YAML reads an unquoted `up: [[Target]]`
as a list in a list, and an edit must know where the link is.
"""

from __future__ import annotations

from memoranda.note.links import WrittenLink, written_links
from memoranda.text.pattern import lazy_pattern

# A key of a header: in double quotes, in single ones, or bare.
_KEY = lazy_pattern(r"""(?:"([^"]+)"|'([^']+)'|([^\s:#\-\[\]{}"'][^:]*?))[ \t]*:(?:[ \t]|$)""")
# A key that can be the type of a relation.
_WORD = lazy_pattern(r"[^\W\d][\w\-./+]*")
# Keys whose values name the note itself, or hold ids.
_NAMES = frozenset(("title", "aliases", "alias", "permalink", "id", "links"))

HeaderLink = tuple[str, int, WrittenLink]
"""The key a link is the value of, its line in the file, and the link as that line has it."""


def header_links(yaml_text: str) -> list[HeaderLink]:
    """The links to notes in a header, without its fences."""
    if "[[" not in yaml_text:
        return []
    values: list[HeaderLink] = []
    key = ""
    for number, line in enumerate(yaml_text.replace("\r\n", "\n").split("\n"), 2):
        match = _KEY.match(line)
        if match:
            key = (match[1] or match[2] or match[3]).strip()
        if "[[" not in line or line.lstrip().startswith("#") or key.casefold() in _NAMES:
            continue
        values += [
            (key, number, link) for link in written_links(line, line) if _is_link(line, link)
        ]
    return values


def _is_link(line: str, link: WrittenLink) -> bool:
    """Whether brackets are a link rather than a list in a list, as `[[1, 2]]` is."""
    before = line[: link.start - 2].rstrip()
    return not link.is_markdown and ("," not in link.raw or before[-1:] in ("'", '"'))


def relation_type(key: str, default: str) -> str:
    """The type of the relation that a link under this key is."""
    if _WORD.fullmatch(key):
        return key
    return default
