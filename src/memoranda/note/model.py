"""Notes as plain values. Source: docs/format.md; contracts 000b (2, 3) and 001 (2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from memoranda.text.pattern import lazy_pattern
from memoranda.value_object import FrozenValueObject, ValueObject

CATEGORIES = (
    "soul",
    "character",
    "people",
    "project",
    "date",
    "knowledge",
    "feedback",
    "preferences",
    "decisions",
    "lessons",
    "habits",
    "skills",
    "inbox",
    "reminders",
)
"""The categories of the `categories` project, in the order shown everywhere (contract 001, 2)."""
REMINDERS = "reminders"
"""The category whose memories have a time (note/reminder.py)."""

INBOX = "inbox"
ORGANIZED = "organized"
ARCHIVED = "archived"
PHASES = (INBOX, ORGANIZED, ARCHIVED)
OLD_PHASES = {"short": INBOX, "long": ORGANIZED}
"""The types that older programs gave to memories, and the phase each means."""

MEMORY_KEYS = (
    "id",
    "content_hash",
    "phase",
    "category",
    "scope",
    "tags",
    "source",
    "created_at",
    "updated_at",
    "expires_at",
    "access_count",
    "links",
    "version",
)
"""The header keys of a memory, in the order they are written (contract 001, 2)."""

VALIDITY_KEYS = ("valid_from", "valid_until", "supersedes")

FURTHER = (
    "title",
    "aliases",
    "source_ref",
    "due_at",
    "due_text",
    "all_day",
    "repeat",
    "fired_at",
    "acked_at",
    "reminder_of",
    "merged",
    "unlinked",
    "pinned",
    "last_used_at",
    "archived_at",
    "archived_by",
    "archived_from",
    "kept_from",
    *VALIDITY_KEYS,
)
"""Further header keys of contract 001, 2, and those of facts that change; they follow `version`."""

BUILT_IN_PROJECTS = ("categories", "memories", "notes", "graph", "banks", "kv")
CATEGORY_PROJECT = "categories"
KV_PROJECT = "kv"
GRAPH_PROJECT = "graph"
"""The built-in projects whose notes have a form of their own: memories, key-value entries,
entities.
"""
ARCHIVE_PROJECT = ".archive"
"""The name of the archived memories in `archive/` in index and ledger: no list of projects
names it, and a project of the user's may be called `archive`."""
TRACE_PROJECT = "session-traces"
"""The project of notes that hooks make of sessions with agents. They are found when the project is
named, and in no other search or list."""
MEMORY_PROJECTS = (CATEGORY_PROJECT, ARCHIVE_PROJECT)

GLOBAL = "global"
SCOPE = lazy_pattern(r"global|agent:[a-z0-9][a-z0-9._-]*")
"""Who may see a note, as a whole (contract 001, 1)."""
SCOPE_HINT = (
    "A scope is global, or agent:NAME with a name of a-z, 0-9, dots, dashes and underscores."
)
TAKEN_AGENTS = ("owner", "manual", "import", "web", "file")
"""Names that no agent may have, because notes say with them who wrote them."""


BAD_HEADER = "bad_frontmatter"
"""The code of the warning about a header that cannot be read."""
NOT_UTF8_CODE = "not_utf8"
UTF16_CODE = "utf16"
PARTLY_READ = "partly_read"
"""Codes of warnings about bytes that are no text, and about text that is too long to read whole."""
CATEGORY_DIFFERS = "category_differs"
"""The code of the warning about a memory whose header names another category than its folder."""
WARNING_CODES = frozenset({BAD_HEADER, NOT_UTF8_CODE, UTF16_CODE, PARTLY_READ, CATEGORY_DIFFERS})


def with_code(code: str, text: str) -> str:
    """A warning of a note that has a code. `warning_parts` takes it apart again."""
    return f"{code}: {text}"


def warning_parts(warning: str) -> tuple[str, str]:
    """The code of a warning and its text; the code of a warning without one is empty."""
    code, _, text = warning.partition(": ")
    if code in WARNING_CODES:
        return code, text
    return "", warning


def warning_text(warnings: Iterable[str], code: str) -> str | None:
    """The text of the first warning that has this code, or None."""
    for warning in warnings:
        own_code, text = warning_parts(warning)
        if own_code == code:
            return text
    return None


@dataclass(slots=True, eq=False, repr=False)
class Observation(ValueObject):
    """`- [category] content #tag (context)`; `line` counts from 1 in the whole file. `text` is the
    item's whole text, decoded if it was coded (contract 002, 5.2)."""

    category: str | None
    content: str
    tags: tuple[str, ...] = ()
    context: str | None = None
    line: int = 0
    text: str = ""


@dataclass(slots=True, eq=False, repr=False)
class Relation(ValueObject):
    """`- type [[target]] (context)`, or any other `[[target]]` as type `links_to`. `project` is set
    by `[[project::target]]`; `line` counts from 1 in the whole file. `is_item` tells the first form
    (in project `graph`: an item of `Relations`) from a link in running text. `rest` is what follows
    the target: `#Heading`, or the end of a name such as `C# tips`."""

    type: str
    target: str
    context: str | None = None
    project: str | None = None
    line: int = 0
    is_item: bool = False
    rest: str = ""


@dataclass(slots=True, eq=False, repr=False)
class Heading(ValueObject):
    """An ATX heading outside code: `level` 1–6, its text, its line from 1 in the whole file."""

    level: int
    text: str
    line: int


TRUST = ("web", "import", "agent", "owner")
"""How far a note is trusted, from least to most. A note has the least trust of what it was made
from.
"""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Provenance(FrozenValueObject):
    """Where a note's text comes from, as its channel says; the text itself never decides.

    who: `owner`, `agent:NAME`, `import`, `web`, or `file` (a program on this machine wrote the
        file).
    trust: one of TRUST.
    client: the MCP client with its version, or the face (`cli`, `socket`, `python` …).
    session, tool: the session and the tool, if known.
    time: in ISO 8601, if known.
    origin: the path or address it was taken from, if known.
    """

    who: str = "file"
    trust: str = "agent"
    client: str | None = None
    session: str | None = None
    tool: str | None = None
    time: str | None = None
    origin: str | None = None

    def row(self) -> dict[str, str]:
        """The fields that are known, for JSON."""
        return {
            name: value for name in self.__slots__ if (value := getattr(self, name)) is not None
        }


def least(*trusts: str) -> str:
    """The least of some values of TRUST."""
    return min(trusts, key=TRUST.index)


def united(tags: Iterable[str]) -> list[str]:
    """The tags without leading `#`, each once whatever its case, as first written."""
    texts_by_key: dict[str, str] = {}
    for tag in tags:
        text = tag.strip().lstrip("#").strip()
        if text:
            texts_by_key.setdefault(text.casefold(), text)
    return list(texts_by_key.values())


@dataclass(slots=True, eq=False, repr=False)
class Note(ValueObject):
    """One Markdown note: its contents, and where it is. Times are aware UTC.

    header: the frontmatter as written. Scalars are strings (`1.10`, `no`, `2026-11-01`), except
        plain `true`, `false`, `null`.
    text: the whole file.
    body_at: where the body begins in `text`.
    permalink: the frontmatter's as written, or else derived from the path.
    date: the event time as written.
    """

    project: str
    path: str
    text: str
    header: dict[str, Any]
    body_at: int
    id: str
    title: str
    type: str
    permalink: str
    created: datetime
    changed: datetime
    own_permalink: bool = False
    own_id: bool = False
    aliases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    date: str | None = None
    scope: str = GLOBAL
    source: str | None = None
    phase: str | None = None
    category: str | None = None
    updated: datetime | None = None
    expires: datetime | None = None
    access_count: int = 0
    links: tuple[str, ...] = ()
    version: int = 1
    locked: bool = False
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    supersedes: tuple[str, ...] = ()
    observations: list[Observation] = field(default_factory=list)
    relations: list[Relation] = field(default_factory=list)
    headings: list[Heading] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    etag: str = ""
    suspicious: tuple[str, ...] = ()
    """The rules of the write gate that saw injected instructions in the text (docs/gate.md)."""
    provenance: Provenance = Provenance()

    def __repr__(self) -> str:
        return one_line_repr("Note", f"{self.project}/{self.path}", self.title)

    @property
    def body(self) -> str:
        """Everything after the frontmatter."""
        return self.text[self.body_at :]

    @property
    def content(self) -> str:
        """The body without the one final newline a writer adds (contract 001, 2)."""
        body = self.body
        if body.endswith("\n"):
            return body[:-1]
        return body

    @property
    def checksum(self) -> str:
        """First 8 hex digits of SHA-256 over the file's bytes."""
        return self.etag[:8]


_REPR_LENGTH = 36


def one_line_repr(name: str, place: str, text: str) -> str:
    """How a value that represents a note is shown: on one line, whatever its text is."""
    return f"<{name} {_cut_text(place)!r}: {_cut_text(text)!r}>"


def _cut_text(text: str) -> str:
    if len(text) > _REPR_LENGTH:
        text = f"{text[: _REPR_LENGTH - 1]}…"
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " for c in text)


@dataclass(slots=True, eq=False, repr=False)
class Draft(ValueObject):
    """A note to be written, by `Memory.write` and others.

    text: the text, without a header.
    project: the project it goes to. By default `categories` for a draft with a category, and
        `notes` for others.
    folder: the folder inside the project, for notes that are not memories.
    title: the title; by default the first line of the text.
    type: the type, such as `note` or `decision`, for notes that are not memories.
    tags: the tags, with or without `#`.
    category: the category of a memory, one of `CATEGORIES`; by default `inbox`.
    scope: who sees it: `global`, or `agent:NAME`.
    source: where the text comes from, as one word.
    date: the day or time it is about, in ISO 8601.
    expires: when a memory ends. By default only memories of the inbox end.
    metadata: further keys of the header.
    valid_from: since when it holds: a day, `yesterday`, `2 weeks ago`.
    valid_until: until when it holds.
    supersedes: the notes that it replaces.
    file_name: the name of the file, if not made from the title.
    """

    text: str
    project: str = ""
    folder: str = ""
    title: str | None = None
    type: str | None = None
    tags: tuple[str, ...] | list[str] = ()
    category: str | None = None
    scope: str = GLOBAL
    source: str | None = None
    date: str | None = None
    expires: datetime | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    valid_from: str | None = None
    valid_until: str | None = None
    supersedes: Sequence[str | tuple[str, str]] = ()
    file_name: str | None = None

    def __post_init__(self) -> None:
        if not self.project:
            if self.category is None:
                self.project = "notes"
            else:
                self.project = CATEGORY_PROJECT
