"""Read and write the files of key-value entries, which are notes of the project `kv`.

An entry has a namespace, a key and a value. The header of its file names the namespace and the key;
the value is the body. The file's folder and name only count for a name that the header lacks.
Source: contract 004, 7.
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
# The header keys of an entry, in their order.
_KEYS = ("type", "namespace", "key", "created_at", "accessed_at", "expires_at", "access_count")
# Header keys that mean something here. A caller's field of such a name must not be one.
_MEANINGFUL_KEYS = {*_KEYS, "value", "id", "scope", "locked", "permalink", "title", "fields"}
# A name that is the same on every file system.
_SAFE_NAME = lazy_pattern(r"[a-z0-9][a-z0-9_-]*(?:\.[a-z0-9_-]+)*")
# The beginning of each file that this program writes.
_BEGINNING = "---\ntype: kv\n"


def places(namespace: str, key: str) -> Iterator[str]:
    """Return paths for the file of an entry, such as `default/tea.md`.

    The first path is the usual one. Each further path is for the case that another entry has the
    path before it.

    namespace, key: the names of the entry. They may contain characters that file names cannot.
    """
    folder = _file_name(namespace)
    names = (_file_name(key), _hashed(key, 10), _hashed(key, 64))
    return (f"{folder}/{name}.md" for name in dict.fromkeys(names))


def _file_name(name: str) -> str:
    """Return `name` if every file system allows it, or else a name with a hash."""
    # Sources skip folders called `node_modules`.
    is_usable = len(name) <= 80 and name != "node_modules"
    if is_usable and _SAFE_NAME.fullmatch(name):
        return name
    return _hashed(name, 10)


def _hashed(name: str, digits: int) -> str:
    """Return a short file name for a long name: its beginning and its hash, `my-tea~1a2b3c4d5e`.

    digits: how many digits of the hash.
    """
    slug = re.sub(r"[^a-z0-9_-]+", "-", name.lower())[:40].strip("-")
    return f"{slug}~{sha256(name.encode())[:digits]}"


def namespace_of(header: Mapping[str, Any], path: str) -> str:
    """Return the namespace of an entry: by its header, or else by the folder of its file.

    `default` if both are empty.

    path: the path of the file.
    """
    namespace = header.get("namespace")
    # A namespace called `true` without quotes.
    if isinstance(namespace, bool):
        namespace = str(namespace).lower()
    if not isinstance(namespace, str):
        namespace = path.rpartition("/")[0]
    return namespace or DEFAULT_NAMESPACE


def namespace_in(front: str, path: str) -> str:
    """Return the namespace of the entry at `path`. Quick for files that this program wrote.

    front: the header of the file with its `---` lines.
    """
    # Files that this program wrote begin with `---`, `type: kv` and `namespace: …`. There, this one
    # line is enough, and the other lines need not be parsed.
    namespace_line, _, other_lines = front.removeprefix(_BEGINNING).partition("\n")
    has_usual_form = front.startswith(f"{_BEGINNING}namespace: ")
    if has_usual_form and "\nnamespace" not in other_lines:
        yaml_text = namespace_line
    else:
        yaml_text = frontmatter.split(front).yaml or ""
    try:
        header = frontmatter.parse(yaml_text)
    except ValueError:
        header = {}
    return namespace_of(header, path)


def read_entry(
    text: str, path: str, changed: datetime, born: datetime | None = None
) -> tuple[Note, str]:
    """Read the file of an entry. Return its header as a note whose title is the key, and its value.

    text: the whole file.
    changed: when the file was last changed, aware UTC.
    born: when the file was made, aware UTC. None if unknown.
    """
    head = text[: frontmatter.split(text).body_at]
    note = parse_note(head, project=PROJECT, path=path, changed=changed, born=born)
    return note, value_of(text[note.body_at :])


def value_of(body: str) -> str:
    """Return the value in the body of a file: all except the one line break that a writer adds."""
    return body.removesuffix("\n")


def is_passing(data: bytes) -> bool:
    """Whether the bytes of a file are an entry that expires. No copy of such a text is kept."""
    # A file without a header needs no decoding.
    if not data.startswith((b"---", b"\xef\xbb\xbf---")):
        return False
    # Neither the path nor the time of change matters for `expires`.
    note, _ = read_entry(data.decode("utf-8", "replace"), path="x/x.md", changed=EPOCH)
    return note.expires is not None


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
    """Write the file of a key-value entry, and return its text.

    value: the value, which becomes the body of the file.
    namespace, key: the two names by which the entry is found.
    created: when the entry was first set.
    expires: when it expires. None means never.
    before: the text of the file that is replaced. Keys of its header that are not in `_KEYS`, such
        as `scope`, stay.
    accessed: the time of the last read; by default `created`.
    access_count: how often the entry was read.
    other_keys: further fields of the entry, or None. A field whose name means something in a header
        is written below the key `fields`.
    """
    header: dict[str, Any] = {
        "type": PROJECT,
        "namespace": namespace,
        "key": key,
        "created_at": seconds(created),
        "accessed_at": seconds(accessed or created),
        "expires_at": milliseconds(expires) if expires is not None else None,
        "access_count": access_count,
    }

    # A field called `scope`, for example, must not change who sees the entry.
    ambiguous_fields: dict[str, Any] = {}
    plain_fields: dict[str, Any] = {}
    for name, field_value in (other_keys or {}).items():
        if name in _MEANINGFUL_KEYS:
            ambiguous_fields[name] = field_value
        else:
            plain_fields[name] = field_value
    header |= plain_fields
    if ambiguous_fields:
        header["fields"] = ambiguous_fields
    front = f"---\n{frontmatter.dump(header)}---\n"

    # Keep the keys that somebody else put into the header of the replaced file.
    yaml_text, body_at = frontmatter.split(before)
    try:
        has_other_keys = yaml_text and frontmatter.parse(yaml_text).keys() - set(_KEYS)
        if has_other_keys:
            front = frontmatter.set_keys(before[:body_at], header)
    except ValueError:
        # A header that nobody can read is replaced as a whole. The history still has it.
        pass
    return f"{front}{value}\n"
