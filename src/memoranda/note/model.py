"""The classes of a note and its parts, as plain values, and the names that notes use.

A memory is a note of the project `categories`, or of its archive. Source: docs/format.md; contracts
000b (2, 3) and 001 (2).
"""

from __future__ import annotations

import unicodedata
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
OLD_FOLDERS = {"short-term": INBOX, "long-term": ORGANIZED}
"""The folders in which older programs kept memories, and the phase each means."""

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
"""The header keys that a memory may also have, written behind MEMORY_KEYS in this order."""

BUILT_IN_PROJECTS = ("categories", "memories", "notes", "graph", "banks", "kv")
CATEGORY_PROJECT = "categories"
BANK_PROJECT = "banks"
KV_PROJECT = "kv"
GRAPH_PROJECT = "graph"
"""The built-in projects whose notes have a special form: memories, key-value entries, entities."""
ARCHIVE_PROJECT = ".archive"
"""The project that index and ledger use for the archived memories in `archive/`.

Lists of projects leave it out. The dot keeps it apart from a user's project `archive`.
"""
TRACE_PROJECT = "session-traces"
"""The project of notes that hooks make of sessions with agents. They are found when the project is
named, and in no other search or list."""
MEMORY_PROJECTS = (CATEGORY_PROJECT, ARCHIVE_PROJECT)

GLOBAL = "global"
SCOPE = lazy_pattern(r"global|agent:[a-z0-9][a-z0-9._-]*")
"""Matches a scope, which says who may see a note: everybody or one agent (contract 001, 1)."""
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
"""The codes of warnings about a file that is not UTF-8, is UTF-16, or is too long to read whole."""
CATEGORY_DIFFERS = "category_differs"
"""The code of the warning about a memory whose header names another category than its folder."""
MERGE_CONFLICT = "merge_conflict"
"""The code of the warning about a text with the marks of a merge that stopped."""
WARNING_CODES = frozenset(
    {BAD_HEADER, NOT_UTF8_CODE, UTF16_CODE, PARTLY_READ, CATEGORY_DIFFERS, MERGE_CONFLICT}
)


# How people write a flag of a header. YAML itself reads only `true` and `false` as one.
_FLAGS = {
    "true": True,
    "yes": True,
    "on": True,
    "1": True,
    "false": False,
    "no": False,
    "off": False,
    "0": False,
}


def flag(value: object) -> bool | None:
    """Return whether a flag of a header, such as `pinned`, is set.

    An empty value is a flag that is not set. None for a value that is not a flag, such as `maybe`.
    """
    if value is None or value == "":
        return False
    return _FLAGS.get(str(value).strip().lower())


def with_code(code: str, text: str) -> str:
    """Return a warning that begins with its code: `not_utf8: …`. `warning_parts` splits it."""
    return f"{code}: {text}"


def warning_parts(warning: str) -> tuple[str, str]:
    """Split a warning into its code, "" if it has none, and its text."""
    code, _, text = warning.partition(": ")
    if code in WARNING_CODES:
        return code, text
    return "", warning


def warning_text(warnings: Iterable[str], code: str) -> str | None:
    """Return the text of the first warning with this code, None if no warning has it.

    warnings: texts that begin with a code, as `warning_parts` splits them.
    """
    for warning in warnings:
        warning_code, text = warning_parts(warning)
        if warning_code == code:
            return text
    return None


@dataclass(slots=True, eq=False, repr=False)
class Observation(ValueObject):
    """An observation of a note: `- [category] content #tag (context)`.

    category: None for an item that has only a tag.
    content: the text with its tags, without category and context.
    tags: without `#`, each once.
    context: the text in parentheses at the end, or None.
    line: its line in the whole file, counted from 1.
    text: the whole text of the item, decoded if it was coded (contract 002, 5.2).
    """

    category: str | None
    content: str
    tags: tuple[str, ...] = ()
    context: str | None = None
    line: int = 0
    text: str = ""


@dataclass(slots=True, eq=False, repr=False)
class Relation(ValueObject):
    """A relation of a note: `- type [[target]] (context)`.

    A link `[[target]]` in running text is a relation of type `links_to`.

    context: the text in parentheses, or None.
    project: the project in `[[project::target]]`, None if the link names none.
    line: the line in the whole file, counted from 1.
    is_item: whether it is an item of a list (in project `graph`, of `Relations`), rather than a
        link in running text.
    rest: the text after the target, from its `#` on, with the blanks before it: `#Heading`. It may
        be the end of a name such as `C# tips`. "" if the link has no `#`.
    """

    type: str
    target: str
    context: str | None = None
    project: str | None = None
    line: int = 0
    is_item: bool = False
    rest: str = ""


@dataclass(slots=True, eq=False, repr=False)
class Heading(ValueObject):
    """A heading `## Text` outside code: its level 1–6, its text, its line in the file, from 1."""

    level: int
    text: str
    line: int


AGENT_PREFIX = "agent:"
"""The beginning of `Provenance.who` of a text that an agent wrote."""
TRUST = ("web", "import", "agent", "owner")
"""How far a note is trusted, from least to most. A note made from several has the least of theirs."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Provenance(FrozenValueObject):
    """Where a note's text comes from. The interface through which the text came says it, never the text itself.

    who: `owner`, `agent:NAME`, `import`, `web`, or `file` (a program on this machine wrote the
        file).
    trust: one of TRUST.
    client: the MCP client with its version, or the interface (`cli`, `socket`, `python` …).
    session, tool: the session and the tool that wrote the text.
    time: when it was written, in ISO 8601.
    origin: the path or address it was taken from.

    A field is None if its value is not known.
    """

    who: str = "file"
    trust: str = "agent"
    client: str | None = None
    session: str | None = None
    tool: str | None = None
    time: str | None = None
    origin: str | None = None

    @property
    def writer(self) -> str:
        """The name of the agent that wrote the text, or else `who`."""
        return self.who.removeprefix(AGENT_PREFIX)

    @property
    def agent(self) -> str | None:
        """The name of the agent that wrote the text. None if no agent wrote it."""
        if self.who.startswith(AGENT_PREFIX):
            return self.writer
        return None

    def row(self) -> dict[str, str]:
        """Return the fields whose value is known, by name, for JSON."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in fields.items() if value is not None}


def least(*trusts: str) -> str:
    """Return the lowest of several values of TRUST: `web` for `owner` and `web`."""
    return min(trusts, key=TRUST.index)


def united(tags: Iterable[str]) -> list[str]:
    """Return the tags without leading `#`.

    Tags that differ only in case or Unicode form count as the first.
    """
    texts_by_key: dict[str, str] = {}
    for tag in tags:
        text = tag.strip().lstrip("#").strip()
        if text:
            key = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
            texts_by_key.setdefault(key, text)
    return list(texts_by_key.values())


@dataclass(slots=True, eq=False, repr=False)
class Note(ValueObject):
    """A Markdown note: its contents, and where it is. Times are aware UTC.

    Header keys that are not set are None, empty or the default.

    path: the path of the file in the folder of its project.
    text: the whole file.
    header: the values of the header as written. They are strings (`1.10`, `no`, `2026-11-01`),
        except `true`, `false` and `null` without quotes.
    body_at: the offset in `text` where the body begins.
    permalink: the one that the header names, or else the one derived from the path.
    changed: when the file was changed.
    own_permalink, own_id: whether the header names the permalink, and the id.
    date: the day or time that the note is about, as written.
    scope: who may see it: `global` or `agent:NAME`.
    phase, category: None for a note that is not a memory.
    updated: the time of the last change that the header names.
    expires: when the note ends.
    access_count: how often it was read.
    links: the links of the header of a memory.
    locked: whether programs may not change the file.
    valid_from, valid_until: since when and until when the note's text holds.
    supersedes: the ids or names of the notes that it replaces.
    warnings: the parts of the file that could not be read, in words.
    etag: the SHA-256 of the file's bytes, in hex.
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


# How many characters a `repr` shows of a note's place, and of its text.
_REPR_LENGTH = 36


def one_line_repr(name: str, place: str, text: str) -> str:
    """Return the `repr` of a value of class `name`, on one line: `<Note 'notes/tea.md': 'Tea'>`."""
    return f"<{name} {_cut_text(place)!r}: {_cut_text(text)!r}>"


def _cut_text(text: str) -> str:
    """Cut a text to _REPR_LENGTH, and put a blank for each character that is not printable."""
    if len(text) > _REPR_LENGTH:
        text = f"{text[: _REPR_LENGTH - 1]}…"
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else " " for char in text)


@dataclass(slots=True, eq=False, repr=False)
class Draft(ValueObject):
    """A note that `Memory.write` and other functions can write.

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
    valid_from: since when its text holds: a day, `yesterday`, `2 weeks ago`.
    valid_until: until when its text holds.
    supersedes: the notes that it replaces.
    file_name: the name of the file; by default made from the title.
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
