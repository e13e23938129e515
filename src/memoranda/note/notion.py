"""Names and addresses of Notion's pages.

Notion's export ends each file name in a blank and the 32 digits of the page's id. Links inside the
export are relative paths, but links to pages of other workspaces, of databases and copied ones are
addresses on the web, which end in the same digits. Both mean the page, so a note whose file name has
the digits is found by them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memoranda.text.pattern import lazy_pattern

_ID = r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}"
# The digits with which Notion's export ends each name.
_FILE_ID = lazy_pattern(r"(?<=\S) ([0-9a-f]{32})$")
_HOST = r"(?:(?:https?|notion)://)?(?:[a-z0-9-]+\.)*notion\.(?:so|site|com)/"
# The address of a page of Notion; the group is its id.
_PAGE = lazy_pattern(
    rf"{_HOST}(?:[^\s?#<>]*[/-])?({_ID})/?(?:\?[^\s#<>]*)?(?:#[^\s<>]*)?$", re.IGNORECASE
)
# A page that is shown on top of its database: `?v=…&p=0123…`.
_SHOWN_PAGE = lazy_pattern(rf"[?&]p=({_ID})(?:[&#]|$)", re.IGNORECASE)
# An address of Notion anywhere in a text.
_IN_TEXT = lazy_pattern(rf"(?<![^\s<(（]){_HOST}[^\s<>()\[\]]*", re.IGNORECASE)
_SENTENCE_ENDS = ".,;:!?\"'"
_FRONT = "notion.so/"


def file_address(stem: str) -> str:
    """The address of the page whose export has a file of this name (without extension).

    Empty for other names.
    """
    match = _FILE_ID.search(stem)
    if match:
        return _FRONT + match[1]
    return ""


def without_id(stem: str) -> str:
    """The name of a file without its extension and the digits of a page."""
    return _FILE_ID.sub("", stem)


def page_address(address: str) -> str:
    """The name used here for a Notion page on the web: `notion.so/` and 32 digits.

    Empty for other addresses.
    """
    page = _PAGE.match(address)
    if page is None:
        return ""
    shown_page = _SHOWN_PAGE.search(address)
    digits = shown_page[1] if shown_page else page[1]
    return _FRONT + digits.replace("-", "").lower()


def is_page(target: str) -> bool:
    """Whether the target of a link is a name that `page_address` returned.

    It is a link between notes only if its page is here. Otherwise it leads to the web.
    """
    return target.startswith(_FRONT) and len(target) == len(_FRONT) + 32


def bare_addresses(text: str) -> Iterator[tuple[int, str]]:
    """The place of each address of a Notion page that is not in a Markdown link, and the address."""
    for match in _IN_TEXT.finditer(text):
        start = match.start()
        opening = text[max(0, start - 2) : start]
        is_destination = opening in ("](", "(<")
        is_label = text.startswith("](", match.end())
        if not (is_destination or is_label):
            yield start, match[0].rstrip(_SENTENCE_ENDS)
