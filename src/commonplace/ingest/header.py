"""What the frontmatter of a foreign note says: aliases, tags, single texts."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from commonplace.note import frontmatter


@lru_cache(maxsize=4)
def read(text: str) -> dict[str, Any] | None:
    """The frontmatter's keys in lower case; None when there is none that can be read."""
    yaml_text, _ = frontmatter.split(text)
    if yaml_text is None:
        return None
    try:
        return {key.lower(): value for key, value in frontmatter.parse(yaml_text).items()}
    except ValueError:
        return None


def length(text: str) -> int:
    """How many characters the frontmatter takes; 0 when it cannot be read: then it is text."""
    return 0 if read(text) is None else frontmatter.split(text).body_at


def is_broken(text: str) -> bool:
    """Whether there is a frontmatter that cannot be read."""
    return frontmatter.split(text).yaml is not None and read(text) is None


def text(content: str, key: str) -> str:
    """The text of a key, empty when it has none."""
    value = (read(content) or {}).get(key)
    return value.strip() if isinstance(value, str) else ""


def aliases(content: str) -> tuple[str, ...]:
    """Other names of the note: `aliases`, `alias`, a list or parted by commas."""
    return _texts(content, ("aliases", "alias"), ",")


def tags(content: str) -> tuple[str, ...]:
    """The tags: `tags`, `tag`, a list or parted by commas and blanks."""
    return _texts(content, ("tags", "tag"), r"[,\s]")


def _texts(content: str, keys: tuple[str, str], between: str) -> tuple[str, ...]:
    found: list[str] = []
    for key in keys:
        value = (read(content) or {}).get(key)
        parts = re.split(between, value) if isinstance(value, str) else value if isinstance(value, list) else ()
        found += [part.strip() for part in parts if isinstance(part, str) and part.strip()]
    return tuple(dict.fromkeys(found))
