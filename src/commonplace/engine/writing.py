"""What every writer of notes shares: reading a note for a change, setting header keys, links, scopes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from commonplace.clock import EPOCH, stamp
from commonplace.engine.transaction import HomeSession, Transaction
from commonplace.errors import CommonplaceError, Conflict, InvalidInput, Locked, NotText
from commonplace.index.rows import NoteInfo
from commonplace.note.model import CATEGORY_PROJECT, GLOBAL, MEMORY_KEYS
from commonplace.store.base import File, Stamp, sha256
from commonplace.store.change import Step

_AGENT = re.compile(r"[a-z0-9][a-z0-9._-]*")


def editable(session: HomeSession, info: NoteInfo) -> tuple[File, str]:
    """The note's bytes and text for a change. Raises Locked, NotText, ReadOnlyProject."""
    session.engine.store(info.project).check_writable()
    file = session.engine.store(info.project).read(info.path)
    try:
        text = file.data.decode()
    except UnicodeDecodeError:
        raise NotText(info.path) from None
    _check_unlocked(session, info, file)
    return file, text


def read_unlocked(session: HomeSession, info: NoteInfo) -> File:
    """The note's bytes, whatever they are. Raises Locked."""
    file = session.engine.store(info.project).read(info.path)
    _check_unlocked(session, info, file)
    return file


def _check_unlocked(session: HomeSession, info: NoteInfo, file: File) -> None:
    if file.etag == info.etag:  # the index has read these very bytes
        locked = info.locked
    else:
        note = session.engine.parse(info.project, info.path, file)
        locked = note is not None and note.locked
    if locked:
        raise Locked(info.permalink)


def check_etag(info: NoteInfo, file: File, checksum: str) -> None:
    """Raises Conflict when the file is not the one whose checksum the caller read."""
    if file.etag[:8] != checksum[:8].lower():
        raise Conflict(info.permalink, file.etag[:8], checksum)


def set_keys(
    session: HomeSession, change: Transaction, info: NoteInfo, keys: Mapping[str, Any],
    file: File | None = None, text: str = "",
) -> Step:  # fmt: skip
    """Set frontmatter keys (REMOVE takes one out); a memory's `updated_at` follows. `file` and `text`: as read.

    Raises InvalidInput for a header that is not valid YAML, and as `editable`.
    """
    if file is None:
        file, text = editable(session, info)
    if info.project == CATEGORY_PROJECT:
        keys = {**keys, "updated_at": stamp(session.engine.clock())}
    return change.put(info.project, info.path, with_keys(info, text, keys), old=file, scope=info.scope)


def with_keys(info: NoteInfo, text: str, keys: Mapping[str, Any]) -> bytes:
    """The note's text with these frontmatter keys. Raises InvalidInput for a header that is not valid YAML."""
    from commonplace.note.edit import SetKeys

    try:
        return SetKeys(dict(keys), MEMORY_KEYS if info.project == CATEGORY_PROJECT else ()).apply(text).text.encode()
    except ValueError:
        raise InvalidInput(
            f"The frontmatter of {info.permalink} is not valid YAML, so nothing was changed. Mend it first."
        ) from None


def follow_content(session: HomeSession, info: NoteInfo, before: str, after: str) -> str:
    """`after` with a memory's own keys following its content: hash, updated_at, version (contract 001, 2)."""
    if info.project != CATEGORY_PROJECT or after == before:
        return after
    note = session.engine.parse(info.project, info.path, as_file(after.encode()))
    if note is None or not note.header:
        return after
    from commonplace.note.edit import SetKeys

    keys: dict[str, Any] = {"updated_at": stamp(session.engine.clock())}
    digest = sha256(note.content.encode())
    if digest != note.header.get("content_hash"):
        keys |= {"content_hash": digest, "version": note.version + 1}
    return SetKeys(keys).apply(after).text


def as_file(data: bytes) -> File:
    """Bytes as a file that is on no disk."""
    return File(data, Stamp(0, 0, 0), "")


def encoded(text: str) -> bytes:
    """The text as UTF-8. Raises InvalidInput for a lone surrogate."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidInput("The text must be valid Unicode. Remove the lone surrogate.") from None


def remove_note(session: HomeSession, change: Transaction, *removed: tuple[NoteInfo, File]) -> None:
    """Remove the notes' files, and the ids of memories from the `links` of the others."""
    for info, file in removed:
        change.remove(info.project, info.path, file, scope=info.scope)
    gone = {(info.project, info.path) for info, _ in removed}
    ids = [info.id for info, _ in removed if info.project == CATEGORY_PROJECT]
    linking = {other.row: other for id in ids for other in session.index.notes.holding_link(id)}
    for other in linking.values():
        if (other.project, other.path) not in gone:
            with suppress(CommonplaceError):  # a locked or unreadable note keeps its link; doctor names it as dangling
                file, text = editable(session, other)
                set_keys(session, change, other, links_without(other, *ids), file, text)


def linked_keys(info: NoteInfo, other: NoteInfo) -> dict[str, Any]:
    """The header keys of a memory once it links to `other`; the pair is not unwanted any more."""
    from commonplace.note.frontmatter import REMOVE

    keys: dict[str, Any] = {"links": [*info.links, other.id]}
    unlinked = id_list(info.header.get("unlinked"))
    if other.id in unlinked:
        keys["unlinked"] = [each for each in unlinked if each != other.id] or REMOVE
    return keys


def links_without(info: NoteInfo, *ids: str) -> dict[str, Any]:
    """The `links` key of a memory that no longer links to these."""
    from commonplace.note.frontmatter import REMOVE

    return {"links": [each for each in info.links if each not in ids] or REMOVE}


def id_list(value: Any) -> list[str]:
    """The ids a header key lists; none for anything but a list."""
    return [str(each) for each in value] if isinstance(value, list) else []


def new_scope(session: HomeSession, data: bytes, before: str | None = None) -> str:
    """The scope a change to these bytes is listed under. Refused when the caller would not see the note any more."""
    scope = scope_of(data)
    if not session.sees(scope):
        raise InvalidInput(f'invalid scope "{scope}"')
    return before if before is not None and before != GLOBAL else scope


def scope_of(data: bytes) -> str:
    """The scope the frontmatter of these bytes names; `global` without one."""
    if b"scope" not in data:
        return GLOBAL
    from commonplace.note.markdown import parse_note

    text = data.decode("utf-8", "replace")
    return parse_note(text, project="memories", path="x", changed=EPOCH).scope


def is_agent(name: str) -> bool:
    """Whether `name` can be an agent's (contract 001, 1)."""
    return _AGENT.fullmatch(name) is not None
