"""Functions that all writers of notes share.

They read a note for a change, set keys in its header (the frontmatter), keep links right, and check
scopes (who may see a note).
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from functools import cache
from typing import Any

from memoranda.clock import EPOCH, stamp
from memoranda.engine.session import HomeSession
from memoranda.engine.transaction import Transaction
from memoranda.errors import Conflict, InvalidInput, Locked, MemorandaError, NotText
from memoranda.index.rows import NoteInfo
from memoranda.note.model import GLOBAL, MEMORY_KEYS, MEMORY_PROJECTS, Note
from memoranda.sources.base import File, Stamp, sha256
from memoranda.sources.step import Step
from memoranda.text.pattern import lazy_pattern
from memoranda.text.utf16 import utf16_coding

RESERVED_SOURCES = ("owner", "user", "import", "web", "file")
"""Sources that agents may not claim."""
# An id that needs no quotes in a header and is safe in an address.
_PLAIN_ID = lazy_pattern(r"[0-9A-Za-z][0-9A-Za-z_-]{0,99}")


def editable(session: HomeSession, info: NoteInfo) -> tuple[File, str]:
    """Read a note for a change: its file and its text.

    Raises Locked, ReadOnlyProject, and NotText if it is not UTF-8.
    """
    session.engine.source(info.project).check_writable()
    file = session.engine.file_of(info)
    if utf16_coding(file.data):
        raise NotText(info.path)
    try:
        text = file.data.decode()
    except UnicodeDecodeError:
        raise NotText(info.path) from None
    _check_unlocked(session, info, file)
    return file, text


def read_unlocked(session: HomeSession, info: NoteInfo) -> File:
    """Read a note's file, even if it is not text. Raises Locked."""
    file = session.engine.file_of(info)
    _check_unlocked(session, info, file)
    return file


def _check_unlocked(session: HomeSession, info: NoteInfo, file: File) -> None:
    """Raise Locked if the note is locked in the file that was read."""
    # With an equal hash, the index has read the same bytes.
    if file.etag == info.etag:
        locked = info.locked
    else:
        note = session.engine.parse(info.project, info.path, file)
        locked = note is not None and note.locked
    if locked:
        raise Locked(info.permalink)


def check_etag(info: NoteInfo, file: File, checksum: str) -> None:
    """Raise Conflict if a file has another checksum than the one that the caller read.

    checksum: the checksum that the caller read. Only its first eight digits count.
    """
    if file.etag[:8] != checksum[:8].lower():
        raise Conflict(info.permalink, file.etag[:8], checksum)


def set_keys(
    session: HomeSession,
    transaction: Transaction,
    info: NoteInfo,
    keys: Mapping[str, Any],
    *,
    file: File | None = None,
    text: str = "",
) -> Step:
    """Set header keys of a note; a memory's `updated_at` becomes the present time.

    keys: the new values; REMOVE as a value takes a key out.
    file: the file of the note as it was read. None means that it is read here.
    text: the text of that file.

    Raises InvalidInput for a header that is not valid YAML, and the errors of `editable`.
    """
    if file is None:
        file, text = editable(session, info)
    now = session.engine.clock()
    if info.project in MEMORY_PROJECTS:
        keys = {**keys, "updated_at": stamp(now)}
    data = with_keys(info, text, keys, now)
    return transaction.put(info.project, info.path, data, old=file, scope=info.scope)


def with_keys(
    info: NoteInfo, text: str, keys: Mapping[str, Any], now: datetime | None = None
) -> bytes:
    """Return the text of a note with some header keys set, as bytes.

    keys: the new values; REMOVE as a value takes a key out.
    now: the time of the change. It is written into the header if the header has such a time. None
        leaves that time as it is.

    Raises InvalidInput for a header that is not valid YAML.
    """
    from memoranda.note.edit import SetKeys
    from memoranda.note.markdown import with_counted_time

    order = MEMORY_KEYS if info.project in MEMORY_PROJECTS else ()
    try:
        edited = SetKeys(dict(keys), order).apply(text).text
    except ValueError:
        raise InvalidInput(
            f"The frontmatter of {info.permalink} is not valid YAML, so nothing was changed. Fix it first."
        ) from None
    if now is not None and info.project not in MEMORY_PROJECTS:
        edited = with_counted_time(text, edited, now)
    return edited.encode()


def follow_content(session: HomeSession, info: NoteInfo, before: str, after: str) -> str:
    """Bring the header keys up to date that depend on the content, and return the new text.

    In a memory, these keys are `content_hash`, `updated_at` and `version` (contract 001, 2). In
    another note, it is the time of the last change, if the header has it.

    before, after: the text of the note before and after its content was changed.
    """
    if info.project not in MEMORY_PROJECTS:
        from memoranda.note.markdown import with_counted_time

        return with_counted_time(before, after, session.engine.clock())
    if after == before:
        return after
    note = session.engine.parse(info.project, info.path, as_file(after.encode()))
    # A file that a person made by hand may have no header. It gets none.
    if note is None or not note.header:
        return after
    from memoranda.note.edit import SetKeys

    keys: dict[str, Any] = {"updated_at": stamp(session.engine.clock())}
    digest = sha256(note.content.encode())
    if digest != note.header.get("content_hash"):
        keys |= {"content_hash": digest, "version": note.version + 1}
    return SetKeys(keys).apply(after).text


def as_file(data: bytes) -> File:
    """Return a file with these bytes that is not on the disk, for functions that take a file."""
    return File(data, Stamp(size=0, mtime_ns=0, inode=0), etag="")


def encoded(text: str) -> bytes:
    """Return a text in UTF-8. Raises InvalidInput if it has a lone surrogate."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidInput("The text must be valid Unicode. Remove the lone surrogate.") from None


def place_memory(
    session: HomeSession,
    transaction: Transaction,
    info: NoteInfo,
    file: File,
    data: bytes,
    project: str,
    category: str,
    scope: str,
    taken_paths: set[str] | None = None,
) -> None:
    """Add the steps that write a memory, and move it if it changes its project or category.

    file: the present file of the memory, as it was read.
    data: its new bytes.
    project: the project that it belongs to afterwards. This may be the archive.
    category: the category that it belongs to afterwards, which is its folder.
    scope: who may see it.
    taken_paths: the paths that this change uses already, in lower case. The new path is added.
        None if the change writes no other memory.
    """
    # It is in the right folder, and stays there.
    if info.project == project and info.path.startswith(f"{category}/"):
        transaction.put(project, info.path, data, old=file, scope=scope)
        return
    path = free_path(
        session,
        project,
        category=category,
        name=info.path.rpartition("/")[2],
        identity=info.id,
        taken_paths=taken_paths or (),
    )
    if taken_paths is not None:
        taken_paths.add(path.lower())
    transaction.put(project, path, data, mode=file.mode, scope=scope)
    transaction.remove(info.project, info.path, file, scope=info.scope)


def free_path(
    session: HomeSession,
    project: str,
    category: str,
    name: str,
    identity: str,
    taken_paths: Collection[str] = (),
) -> str:
    """Return a path for a memory in the folder of a category. No file has this path yet.

    name: the file name to use if it is free. If not, the name is `<id>.md`, `<id>-2.md` and so on.
    identity: the id of the memory.
    taken_paths: further paths that are not free, in lower case.
    """
    root = session.engine.source(project).root
    for file_name in _names_to_try(name, plain_id(identity)):
        path = f"{category}/{file_name}"
        is_taken = path.lower() in taken_paths or os.path.lexists(os.path.join(root, path))
        if not is_taken:
            break
    return path


def _names_to_try(name: str, file_id: str) -> Iterator[str]:
    """Yield file names for a memory without end: `name`, `<id>.md`, `<id>-2.md`, `<id>-3.md`."""
    yield name
    yield f"{file_id}.md"
    for number in itertools.count(2):
        yield f"{file_id}-{number}.md"


def plain_id(identity: str) -> str:
    """Return an id as a part of a file name. If a file name cannot contain it, return its hash."""
    if _PLAIN_ID.fullmatch(identity):
        return identity
    return sha256(identity.encode("utf-8", "replace"))


def pinned_down(info: NoteInfo) -> dict[str, Any]:
    """Return the header keys to add to a hand-made file before a job rewrites it.

    They are the id, the source and the time of creation. Without the keys, these follow from the
    path and the times of the file, which the job changes. Keys that the header has already are left
    out.
    """
    header = info.header
    keys: dict[str, Any] = {}
    if info.id and not header.get("id"):
        keys["id"] = info.id
    if info.source and not header.get("source"):
        keys["source"] = info.source
    has_date = header.get("created_at") or header.get("created")
    if info.created and not has_date:
        keys["created_at"] = info.created
    return keys


def remove_note(
    session: HomeSession,
    transaction: Transaction,
    *removed: tuple[NoteInfo, File],
    survivor: NoteInfo | None = None,
) -> None:
    """Remove the files of notes, and their ids from the `links` of other memories.

    removed: the notes and their files.
    survivor: a note that the caller writes in the same change. So its links are not changed here.
        None if the caller writes no other note.
    """
    for info, file in removed:
        transaction.remove(info.project, info.path, file, scope=info.scope)
    # The places of notes whose links are not changed.
    excluded_places = {(info.project, info.path) for info, _ in removed}
    if survivor is not None:
        excluded_places.add((survivor.project, survivor.path))
    # Only memories are linked by their ids.
    ids = [info.id for info, _ in removed if info.project in MEMORY_PROJECTS]
    # By row, so that a note that links to several removed memories is changed only once.
    linking_notes: dict[int, NoteInfo] = {}
    for removed_id in ids:
        for note in session.index.notes.holding_link(removed_id):
            linking_notes[note.row] = note
    for note in linking_notes.values():
        if (note.project, note.path) in excluded_places:
            continue
        # A locked or unreadable note keeps its link, and `memory doctor` reports the link.
        with suppress(MemorandaError):
            file, text = editable(session, note)
            keys = links_without(note, *ids)
            set_keys(session, transaction, note, keys, file=file, text=text)


def linked_keys(info: NoteInfo, partner: NoteInfo) -> dict[str, Any]:
    """Return the header keys that link a memory to `partner`.

    `partner` is added to `links`. It is also removed from `unlinked`, the memories that must not be
    linked.
    """
    from memoranda.note.frontmatter import REMOVE

    keys: dict[str, Any] = {"links": [*info.links, partner.id]}
    unlinked = id_list(info.header.get("unlinked"))
    if partner.id in unlinked:
        keys["unlinked"] = [note_id for note_id in unlinked if note_id != partner.id] or REMOVE
    return keys


def links_without(info: NoteInfo, *ids: str) -> dict[str, Any]:
    """Return the header key `links` of a memory without some ids."""
    from memoranda.note.frontmatter import REMOVE

    return {"links": [link for link in info.links if link not in ids] or REMOVE}


def id_list(value: Any, single: bool = False) -> list[str]:
    """Return the ids in the value of a header key: the items of a list. [] for another value.

    single: whether a text is also accepted, as one id.
    """
    if single and isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [str(item) for item in value]
    return []


def new_scope(
    session: HomeSession, data: bytes, old: bytes | None = None, *, identity: str | None = None
) -> str:
    """Check a change of a note, and return the scope that the history lists it under.

    It is the scope of the note before the change. If that is `global`, or if the note is new, it is
    the scope after the change.

    data: the bytes of the note after the change.
    old: the bytes before the change. None for a new note.
    identity: the id that the program itself gave the note. None if it gave none.

    Raises InvalidInput if the caller could no longer see the note. It is also raised if an agent
    sets a header key that agents may not set: an id, a lock, or a source such as `owner`.
    """
    header = _header(data)
    former_header = _header(old or b"")
    scope = _scope_in(header)
    if not session.sees(scope):
        raise InvalidInput(
            f'invalid scope "{scope}"',
            f"You could not see the note. Use global or agent:{session.agent}.",
        )
    # The owner may set any key.
    is_agent = session.agent is not None
    if is_agent and header is not None and _has_new_header(data, old or b""):
        _check_header(header, former_header, identity)
    former_scope = _scope_in(former_header)
    if former_scope != GLOBAL:
        return former_scope
    return scope


def _has_new_header(data: bytes, old: bytes) -> bool:
    """Whether a note has a header that it did not have before.

    data: the bytes of the note now.
    old: its bytes before the change; empty for a new note.
    """
    header_text = _front(data)
    return header_text is not None and header_text != _front(old)


def _front(data: bytes) -> str | None:
    """Return the header of a note as text. None if the note has no header."""
    from memoranda.note.frontmatter import split

    return split(data.decode("utf-8", "replace"))[0]


def _check_header(note: Note, before: Note | None, identity: str | None) -> None:
    """Raise InvalidInput for header keys that an agent may not give a note.

    note: the header after the change.
    before: the header before the change. None if there was no header.
    identity: an id that the program itself gave. None if it gave no id.
    """
    if before is None:
        before = _without_header()
    former_id = before.id if before.own_id else None
    # An agent may keep the id of a note. A new id is only one that the program gave.
    if note.own_id and note.id not in (former_id, identity):
        raise InvalidInput(
            "The frontmatter key `id` is given by the memory, not by an agent. Leave it out."
        )
    if note.locked and not before.locked:
        raise InvalidInput("The frontmatter key `locked` is for the owner. Leave it out.")
    merged = note.header.get("merged")
    if merged is not None and merged != before.header.get("merged"):
        raise InvalidInput(
            "The frontmatter key `merged` is written by merging, not by an agent. Leave it out."
        )
    source = (note.source or "").lower()
    if source in RESERVED_SOURCES and source != (before.source or "").lower():
        raise InvalidInput(
            f"The source `{source}` is not an agent's to claim. Name another source, or leave it out."
        )


def _header(data: bytes) -> Note | None:
    """Return the header of a note, as a note without text. None if the note has no header."""
    if data.startswith((b"---", b"\xef\xbb\xbf---")):
        return _parsed(data)
    return None


@cache
def _without_header() -> Note:
    """Return a note without header and text, for comparison. It must not be changed."""
    return _parsed(b"")


def _parsed(data: bytes) -> Note:
    """Return the header of a note, as a note without text."""
    from memoranda.note.frontmatter import split
    from memoranda.note.markdown import parse_note

    text = data.decode("utf-8", "replace")
    return parse_note(text[: split(text)[1]], project="memories", path="x", changed=EPOCH)


def scope_of(data: bytes) -> str:
    """Return the scope that the header of a note names. It is `global` if the header names none.

    The header is always parsed, because YAML has many ways to write the key.
    """
    return _scope_in(_header(data))


def _scope_in(header: Note | None) -> str:
    """Return the scope that a header names. `global` without a header."""
    return GLOBAL if header is None else header.scope
