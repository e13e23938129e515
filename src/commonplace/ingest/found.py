"""What a source holds, as values: one `Found` per file (contract 001, 11)."""

from __future__ import annotations

import datetime
import hashlib
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field

from commonplace.ingest import inline
from commonplace.note.links import without_suffix

BEGINNING = 5000


@dataclass(frozen=True, slots=True)
class Found:
    """The text of one file that may become a memory.

    `source_ref` is `<source>:<path relative to the root>`; `content` is trimmed and not empty; `given` are the tags
    its place and header give it; `inline` tells which tags in the text count: none (None), `#tag` (""), also
    `#[[two words]]` ("[["). `date` is the day the text is about, as written, if the file says so.
    """

    source: str
    source_ref: str
    content: str
    title: str
    given: tuple[str, ...] = ()
    inline: str | None = None
    aliases: tuple[str, ...] = ()
    date: str | None = None
    content_hash: str = field(init=False, default="")

    def __post_init__(self) -> None:
        object.__setattr__(self, "content_hash", hashlib.sha256(self.content.encode()).hexdigest())

    @property
    def tags(self) -> tuple[str, ...]:
        """All tags in lower case, each once. Reads the text, which files that are known already need not."""
        found = () if self.inline is None else inline.tags(self.content, bracketed=self.inline == "[[")
        return lowered((*self.given, *found))


def source_ref(source: str, path: str) -> str:
    """The name of a file that outlives runs and systems: file systems differ in how they compose letters."""
    return f"{source}:{unicodedata.normalize('NFC', path)}"


def stem(path: str) -> str:
    """The file's name without folders and `.md`."""
    return unicodedata.normalize("NFC", without_suffix(path.rpartition("/")[2]))


def lowered(tags: Iterable[str]) -> tuple[str, ...]:
    """Tags in lower case without leading `#`, each once, empty ones dropped."""
    plain = (tag.strip().lstrip("#").strip().lower() for tag in tags)
    return tuple(dict.fromkeys(tag for tag in plain if tag))


def beginning(text: str) -> str:
    """The text trimmed; of a longer one the first 5,000 characters and `...`."""
    text = text.strip()
    return text if len(text) <= BEGINNING else text[:BEGINNING] + "..."


def day(text: str) -> str | None:
    """`text` if it begins with a day that exists, as YYYY-MM-DD."""
    try:
        datetime.date.fromisoformat(text[:10])
    except ValueError:
        return None
    return text if len(text) == 10 or text[10] in "T " else None
