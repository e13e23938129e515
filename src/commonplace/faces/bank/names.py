"""Kinds of banks, their ids and files, as far as names go (contract 003, 1 and 3)."""

from __future__ import annotations

import unicodedata

from commonplace.store.layout import SKIPPED_FOLDERS
from commonplace.store.path_guard import NAME_BYTES

KINDS = ("global", "project", "code")
FOLDERS = {"global": "global", "project": "projects", "code": "code"}
AUTO = ("", "auto")
"""Ids that ask for detection."""

_LENGTH, _PARTS, _PATH_LENGTH = 100, 10, 200
_MARKS = " ._-"


def is_id(text: str) -> bool:
    """Whether `text` can be a bank's id, or one part of a file's path."""
    return (
        0 < len(text) <= _LENGTH
        and text[0] not in ". "
        and ".." not in text
        and all(_is_allowed(sign) for sign in text)
        and len(text.encode()) <= NAME_BYTES
        and text not in SKIPPED_FOLDERS
    )


def _is_allowed(sign: str) -> bool:
    """Letters, with the marks some scripts write them with, and digits; blank, dot, underscore, hyphen."""
    return sign in _MARKS or unicodedata.category(sign)[0] in "LMN"


def is_target(path: str) -> bool:
    """Whether `path` can be a file of a bank."""
    parts = path.split("/")
    return len(path) <= _PATH_LENGTH and len(parts) <= _PARTS and path.endswith(".md") and all(map(is_id, parts))


def id_of_project(name: str) -> str:
    """The id a project's name stands for; it need not be a valid one."""
    return "_".join(name.lower().split())


def id_of_repository(name: str) -> str:
    """The id for a repository's folder; what an id cannot have becomes `_`."""
    text = "".join(sign if _is_allowed(sign) else "_" for sign in id_of_project(name)).replace("..", "__")
    if text[:1] in ("", "."):
        text = f"_{text[1:]}"
    while len(text) > _LENGTH or len(text.encode()) > NAME_BYTES:
        text = text[:-1]
    return text if is_id(text) else f"_{text}"


def marked(id: str, mark: str) -> str:
    """`id` with `-mark` after it, shortened if need be."""
    while not is_id(f"{id}-{mark}"):
        id = id[:-1]
    return f"{id}-{mark}"


def title_of(name: str) -> str:
    """An id or a file's stem as a title: `my_proj` -> `My Proj`."""
    words = name.replace("_", " ").replace("-", " ").split()
    return " ".join(word[:1].upper() + word[1:] for word in words)
