"""Recognize pages of Notion by the names of exported files and by addresses on the web.

Notion's export ends each file name with a blank and the 32 digits of the page's id. Some links in
an export are addresses on the web that end with these digits: links to databases, to other
workspaces, and links that somebody copied. Here both become the address `notion.so/` with the 32
digits, so that such a link finds the note of its page.
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
# Signs at the end of an address that belong to the sentence around it.
_SENTENCE_ENDS = ".,;:!?\"'"
# The beginning of the addresses that `page_address` returns.
_FRONT = "notion.so/"


def file_address(stem: str) -> str:
    """Return the web address of a page in Notion from the name of its exported file.

    "" for other names.

    stem: the name of the file without its extension.
    """
    match = _FILE_ID.search(stem)
    if match:
        return _FRONT + match[1]
    return ""


def without_id(stem: str) -> str:
    """Remove the digits of a Notion page from the name of a file without its extension."""
    return _FILE_ID.sub("", stem)


def page_address(address: str) -> str:
    """Return the address of a Notion page in the form used here, `notion.so/` with 32 digits.

    `https://www.notion.so/acme/Tea-0123…` becomes `notion.so/0123…`. "" for other addresses.
    """
    page = _PAGE.match(address)
    if page is None:
        return ""
    shown_page = _SHOWN_PAGE.search(address)
    digits = shown_page[1] if shown_page else page[1]
    return _FRONT + digits.replace("-", "").lower()


def is_page(target: str) -> bool:
    """Whether the target of a link is an address that `page_address` returned.

    The link leads to a note if the page was imported, and to the web if not.
    """
    return target.startswith(_FRONT) and len(target) == len(_FRONT) + 32


def bare_addresses(text: str) -> Iterator[tuple[int, str]]:
    """Yield the position and the text of each Notion address that is not part of a Markdown link."""
    for match in _IN_TEXT.finditer(text):
        start = match.start()
        opening = text[max(0, start - 2) : start]
        is_destination = opening in ("](", "(<")
        is_label = text.startswith("](", match.end())
        if not (is_destination or is_label):
            yield start, match[0].rstrip(_SENTENCE_ENDS)
