"""A key-value entry as a note of the project `kv`: its place and the contents of its file (contract
004, 7).

The names in the frontmatter are the truth. Folder and file name replace missing ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from memoranda.clock import EPOCH, milliseconds, seconds
from memoranda.note import frontmatter
from memoranda.note.markdown import parse_note
from memoranda.note.model import KV_PROJECT, Note
from memoranda.text.checksum import sha256
from memoranda.text.pattern import lazy_pattern

PROJECT = KV_PROJECT
DEFAULT_NAMESPACE = "default"
ENTRY_KEYS = (
    "namespace",
    "key",
    "value",
    "created_at",
    "accessed_at",
    "expires_at",
    "access_count",
)
"""The keys of an entry as data, in their order."""
_KEYS = ("type", "namespace", "key", "created_at", "accessed_at", "expires_at", "access_count")
# Names a field of another program must not take in the header, where they would mean something.
_MEANING = {*_KEYS, "value", "id", "scope", "locked", "permalink", "title", "fields"}
# A name that is the same on every file system.
_SAFE_NAME = lazy_pattern(r"[a-z0-9][a-z0-9_-]*(?:\.[a-z0-9_-]+)*")
_BEGINNING = "---\ntype: kv\n"


def places(namespace: str, key: str) -> Iterator[str]:
    """Paths for the entry, the usual one first; the others serve where another entry took it."""
    folder, *names = _file_name(namespace), _file_name(key), _hashed(key, 10), _hashed(key, 64)
    return (f"{folder}/{name}.md" for name in dict.fromkeys(names))


def _file_name(name: str) -> str:
    if len(name) <= 80 and name != "node_modules" and _SAFE_NAME.fullmatch(name):
        return name
    return _hashed(name, 10)


def _hashed(name: str, digits: int) -> str:
    slug = re.sub(r"[^a-z0-9_-]+", "-", name.lower())[:40].strip("-")
    return f"{slug}~{sha256(name.encode())[:digits]}"


def namespace_of(header: Mapping[str, Any], path: str) -> str:
    """The namespace an entry at `path` belongs to; the empty one is `default`."""
    written = header.get("namespace")
    if isinstance(written, bool):
        written = str(written).lower()
    return (written if isinstance(written, str) else path.rpartition("/")[0]) or DEFAULT_NAMESPACE


def namespace_in(front: str, path: str) -> str:
    """`namespace_of` from the frontmatter with its fences; quick for files this program wrote."""
    line, _, other_lines = front.removeprefix(_BEGINNING).partition("\n")
    is_ours = front.startswith(_BEGINNING + "namespace: ") and "\nnamespace" not in other_lines
    try:
        header = frontmatter.parse(line if is_ours else frontmatter.split(front).yaml or "")
    except ValueError:
        header = {}
    return namespace_of(header, path)


def read_entry(
    text: str, path: str, changed: datetime, born: datetime | None = None
) -> tuple[Note, str]:
    """The entry in `text`, the whole file: a note of its frontmatter alone (its title is the key),
    and the value. `changed` and `born` are the file's times, as for `parse_note`."""
    head = text[: frontmatter.split(text).body_at]
    note = parse_note(head, project=PROJECT, path=path, changed=changed, born=born)
    return note, value_of(text[note.body_at :])


def value_of(body: str) -> str:
    """The value in the text after the frontmatter: all but the one line break a writer adds."""
    return body.removesuffix("\n")


def is_passing(data: bytes) -> bool:
    """Whether these bytes are an entry with a time to live. No copy of such a text is kept."""
    if not data.startswith((b"---", b"\xef\xbb\xbf---")):
        return False
    return read_entry(data.decode("utf-8", "replace"), "x/x.md", EPOCH)[0].expires is not None


def compose_entry(
    value: str,
    *,
    namespace: str,
    key: str,
    created: datetime,
    expires: datetime | None,
    before: str = "",
    accessed: datetime | None = None,
    access_count: int = 0,
    other_keys: Mapping[str, Any] | None = None,
) -> str:
    """Compose the file of an entry.

    before: the text that it replaces. Keys of its header that are not ours stay, such as `scope`.
    accessed: the time of the last read; by default `created`.
    other_keys: further fields of the entry. A field with the name of one of our keys is written
        below `fields`.
    """
    end = expires and milliseconds(expires)
    moments = seconds(created), seconds(accessed or created)
    ours = dict(zip(_KEYS, (PROJECT, namespace, key, *moments, end, access_count), strict=True))
    remaining_keys = dict(other_keys or {})
    meaning = {name: remaining_keys.pop(name) for name in [*remaining_keys] if name in _MEANING}
    if meaning:
        remaining_keys["fields"] = meaning
    ours |= remaining_keys
    head = f"---\n{frontmatter.dump(ours)}---\n"
    yaml_text, body_at = frontmatter.split(before)
    try:
        if yaml_text and frontmatter.parse(yaml_text).keys() - set(_KEYS):
            head = frontmatter.set_keys(before[:body_at], ours)
    except ValueError:
        # A header nobody can read is replaced as a whole; the history has it
        pass
    return f"{head}{value}\n"
