"""The text of new files: notes of write_note (contract 000b, 7) and memories (contract 001, 2)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from commonplace.errors import InvalidInput
from commonplace.note import frontmatter
from commonplace.note.model import GLOBAL, INBOX, MEMORY_KEYS, ORGANIZED, united

_FIRST = ("id", "title", "type", "permalink", "tags", "created_at")


def compose_note(
    content: str, *, title: str, permalink: str, created: datetime, type: str | None = None,
    tags: Sequence[str] = (), metadata: Mapping[str, Any] | None = None, keep: Mapping[str, Any] | None = None,
    old: str = "",
) -> str:  # fmt: skip
    """The file of a note: `title`, `type`, `permalink`, `tags`, `created_at`, then other keys, then the body.

    `content` may begin with its own frontmatter: its keys stay as written, but `title`, `type`, `tags` (united) and
    `metadata` win; its own permalink and date stand before `permalink` and `created`. `keep` holds `id`, `permalink`,
    `created_at` of a note that is replaced and wins over all; of that note's text `old` the keys stay that are not set
    now. The body is as given, with a final newline.
    Raises InvalidInput when content's frontmatter is not valid YAML.
    """
    own, rows, body = _parts(content)
    extra = {key: value for key, value in (metadata or {}).items() if key not in ("title", "type")}
    try:
        before, old_rows, _ = _parts(old)
    except InvalidInput:
        before, old_rows = {}, []
    rows += [(key, text) for key, text in old_rows if key not in own and not (key == "created" and keep)]
    named = [*_listed(own.get("tags")), *_listed(extra.pop("tags", None)), *tags]
    own = before | own
    listed = united(named or _listed(own.get("tags")))
    fixed = {key: value for key, value in (keep or {}).items() if value is not None}
    put: dict[str, Any] = {"title": title, "type": type or own.get("type") or "note", "tags": listed or None}
    defaults = {"permalink": permalink, "created_at": created}
    written = dict(rows)
    lines: list[str] = []
    for key in _FIRST:
        if key in fixed or key in extra or put.get(key) is not None:
            value = fixed.get(key, put.get(key))
            lines.append(frontmatter.dump({key: extra[key] if value is None else value}))
        elif key in written and key not in put and own[key] is not None:
            lines.append(written[key])
        elif key in defaults and not (key == "created_at" and own.get("created")):
            lines.append(frontmatter.dump({key: defaults[key]}))
    lines += [text for key, text in rows if key not in _FIRST and key not in extra]
    lines.append(frontmatter.dump({key: value for key, value in extra.items() if key not in _FIRST}))
    newline = "\r\n" if frontmatter.is_crlf(body) else "\n"
    head = f"---\n{''.join(lines)}---\n".replace("\n", newline)
    return head + body + ("" if body.endswith("\n") else newline)


def _parts(content: str) -> tuple[dict[str, Any], list[tuple[str, str]], str]:
    """(values, lines by key, body) of content that may begin with its own frontmatter."""
    yaml_text, body_at = frontmatter.split(content)
    if yaml_text is None:
        return {}, [], content[body_at:]
    yaml_text = yaml_text.replace("\r\n", "\n")
    try:
        own = frontmatter.parse(yaml_text)
    except ValueError as error:
        raise InvalidInput(
            f"Parameter `content` begins with frontmatter that is not valid YAML: {error}. Mend it or leave it out."
        ) from None
    rows = frontmatter.entries(yaml_text)
    try:  # whether the lines alone say what they said among the others: an anchor may be elsewhere
        is_whole = [frontmatter.parse(text) for _, text in rows] == [{key: value} for key, value in own.items()]
    except ValueError:
        is_whole = False
    if not is_whole:
        rows = [(key, frontmatter.dump({key: value})) for key, value in own.items()]
    return own, rows, content[body_at:]


def _listed(value: Any) -> list[str]:
    each = value.split(",") if isinstance(value, str) else value if isinstance(value, (list, tuple)) else ()
    return [str(one) for one in each if one is not None and not isinstance(one, (list, dict))]


@dataclass(frozen=True, slots=True)
class Record:
    """One memory. Times are aware UTC; `further` holds the keys after `version`, unknown ones too, in their order.
    `phase` None means what the category says: inbox in category `inbox`, else organized."""

    id: str
    content: str
    category: str
    created: datetime
    updated: datetime
    scope: str = GLOBAL
    phase: str | None = None
    tags: tuple[str, ...] = ()
    source: str | None = None
    expires: datetime | None = None
    access_count: int = 0
    links: tuple[str, ...] = ()
    version: int = 1
    further: dict[str, Any] = field(default_factory=dict)

    def text(self) -> str:
        """The whole file, keys in the order of contract 001, 2. The content is kept byte for byte, one newline
        added."""
        digest = hashlib.sha256(self.content.encode("utf-8", "surrogatepass")).hexdigest()
        phase = self.phase or (INBOX if self.category == INBOX else ORGANIZED)
        values = (
            self.id, digest, phase, self.category, self.scope, united(self.tags), self.source or "manual", self.created,
            self.updated, self.expires, self.access_count, list(self.links), self.version,
        )  # fmt: skip
        header = {key: value for key, value in zip(MEMORY_KEYS, values, strict=True) if value != []}
        return f"---\n{frontmatter.dump(header | self.further)}---\n{self.content}\n"
