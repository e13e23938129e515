"""Storing and reading whole notes."""

from __future__ import annotations

import os
import re
import sqlite3
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeGuard

from commonplace.errors import Conflict, Exists, InvalidInput, Locked, NotFound, NotText
from commonplace.index.notes import DirectoryEntry as FolderEntry
from commonplace.index.rows import NoteInfo
from commonplace.note import links
from commonplace.note.model import CATEGORIES, GLOBAL, INBOX, Draft, Note
from commonplace.store import path_guard
from commonplace.store.base import File
from commonplace.store.home import Step

if TYPE_CHECKING:
    from commonplace.engine.memory import Memory, Ref
    from commonplace.engine.results import Directory, DirectoryEntry, Stored

REMINDERS = "reminders"
_EPOCH = datetime.fromtimestamp(0, UTC)
_SCOPE = re.compile(r"global|agent:[a-z0-9][a-z0-9._-]*")
ID_LENGTH = 36


def store(memory: Memory, drafts: list[Draft], *, overwrite: bool = False, checksum: str | None = None) -> list[Stored]:
    """Write the drafts as one change. Every one is checked before the first byte is written."""
    from commonplace.engine.results import Stored

    core = memory._core
    with core.writing():
        if any(draft.project != "categories" for draft in drafts):
            core.fresh()
        planned = [_plan(memory, draft, overwrite, checksum) for draft in drafts]
        taken: set[tuple[str, str]] = set()
        for step in planned:
            if (step.project, step.path.lower()) in taken:
                raise Exists(step.path)
            taken.add((step.project, step.path.lower()))
        first = planned[0] if planned else None
        if first is None:
            return []
        verb = "write" if first.old is None else "overwrite"
        core.commit(verb, planned, (first.project, first.path), memory.agent, memory.face)
        return [Stored(written(memory, step), step.old is None) for step in planned]


def written(memory: Memory, step: Step) -> Note:
    """The note a `put` step just wrote."""
    core, path = memory._core, step.to or step.path
    note = core.shown.pop((step.project, path), None)
    if note is None:  # it is in no index
        note = parsed(memory, step.project, path, core.store(step.project).read(path))
    try:
        return with_address(memory, note)
    except sqlite3.Error:  # the note is written; its index is made anew
        memory._core.rebuild()
        return with_address(memory, note)


def parsed(memory: Memory, project: str, path: str, file: File) -> Note:
    """The note these bytes are. Raises NotText."""
    note = memory._core.note_of(project, path, file)
    if note is None:
        raise NotText(path)
    return note


def with_address(memory: Memory, note: Note) -> Note:
    """`note` with the permalink and access count the index knows."""
    note.permalink = memory._core.index.notes.permalink(note.project, note.path) or note.permalink
    note.access_count += memory._core.access.counts().get(note.id, 0)
    return note


def is_agent(name: str) -> bool:
    """Whether `name` can be an agent's (contract 001, 1)."""
    return _SCOPE.fullmatch(f"agent:{name}") is not None


def check_scope(memory: Memory, scope: str) -> None:
    """A scope nobody can read, or another agent's, is refused (contract 001, 1)."""
    if not _SCOPE.fullmatch(scope) or not memory.sees(scope):
        raise InvalidInput(f'invalid scope "{scope}"')


def _plan(memory: Memory, draft: Draft, overwrite: bool, checksum: str | None) -> Step:
    check_scope(memory, draft.scope)
    if draft.project == "categories":
        return _plan_memory(memory, draft)
    return _plan_note(memory, draft, overwrite, checksum)


def _plan_memory(memory: Memory, draft: Draft) -> Step:
    """A new memory of contract 001, 2: `categories/<category>/<slug>-<id8>.md`."""
    core, moment = memory._core, memory.clock()
    category = draft.category or INBOX
    if category not in CATEGORIES:
        raise InvalidInput(f'invalid category "{category}"')
    if not draft.text.strip():
        raise InvalidInput("content must not be empty")
    from uuid import uuid4  # 5 ms, for new memories only

    from commonplace.note import compose

    identity = str(uuid4())
    expires = draft.expires
    if category == INBOX and expires is None:
        with suppress(OverflowError):  # an end no calendar has is none
            expires = moment + core.settings.short_term_ttl
    text = compose.compose_memory(
        draft.text, id=identity, category=category, scope=draft.scope, tags=draft.tags,
        source=draft.source or memory.agent or "manual", created=moment, expires=expires,
        extra=_extra(draft) | (_when(memory, draft, moment) if category == REMINDERS else {}),
    )  # fmt: skip
    store = core.store("categories")
    path = f"{category}/{links.memory_file_name(draft.text, identity)}"
    if os.path.lexists(os.path.join(store.root, path)):
        path = f"{category}/{identity}.md"
    return core.step("put", "categories", path, data=_encoded(text), scope=draft.scope)


def _extra(draft: Draft) -> dict[str, object]:
    found: dict[str, object] = {"title": draft.title} if draft.title else {}
    if draft.date:
        found["date"] = draft.date
    return found | draft.metadata


def _when(memory: Memory, draft: Draft, moment: datetime) -> dict[str, object]:
    """The keys of the time a reminder's text names (contract 001, 3); none when it is given, or none can be read."""
    if draft.metadata.get("due_at"):
        return {}
    from commonplace.note import reminder, timephrase  # 10 ms, for reminders only

    settings = memory.settings
    try:
        return reminder.keys_of(timephrase.read(draft.text, moment, settings.reading_zone, settings.day_hour))
    except InvalidInput:
        return {}


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidInput("The text must be valid Unicode. Remove the lone surrogate.") from None


def _plan_note(memory: Memory, draft: Draft, overwrite: bool, checksum: str | None) -> Step:
    """A note of contract 000b, 7 (write_note), new or in place of an existing one."""
    from commonplace.note import compose

    core = memory._core
    store = core.store(draft.project)
    title = draft.title or next((line.strip("# \t") for line in draft.text.splitlines() if line.strip("# \t")), "")
    if not title.strip():
        raise InvalidInput("Parameter `title` must not be empty.")
    folder = path_guard.clean("" if draft.folder == "/" else draft.folder, store.name)
    name = links.file_name(title)
    if name.startswith("."):
        name = "_" + name[1:]
    path = f"{folder}/{name}" if folder else name
    check_place(memory, store.name, path)
    info, file = _existing(memory, store.name, path, draft)
    if info is not None and not memory.sees(info.scope):
        raise Exists(path, f"{store.name}/{path}")
    if checksum is not None:
        if info is None or file is None:
            raise NotFound(f"{store.name}/{path}", store.name)
        if file.etag[:8] != checksum[:8].lower():
            raise Conflict(info.permalink, file.etag[:8], checksum)
    if info is not None and not overwrite:
        raise Exists(info.path, info.permalink)
    keep: dict[str, object] = {}
    if info is not None and file is not None:
        if info.locked:
            raise Locked(info.permalink)
        path, keep = info.path, _kept_keys(memory, info, file)
    metadata = dict(draft.metadata)
    for key, value in (("scope", draft.scope if draft.scope != GLOBAL else None), ("source", draft.source),
                       ("date", draft.date), ("expires_at", draft.expires)):  # fmt: skip
        if value is not None:
            metadata.setdefault(key, value)
    text = compose.compose_note(
        draft.text, title=title, type=draft.type, tags=draft.tags, metadata=metadata, created=memory.clock(),
        permalink=links.permalink_for(store.name, path), keep=keep,
    )  # fmt: skip
    data = _encoded(text)
    _check_permalink(memory, store.name, path, text)
    return core.step("put", store.name, path, data=data, old=file, scope=new_scope(memory, data, info))


def check_place(memory: Memory, project: str, path: str) -> None:
    """A note may only go where it would be one."""
    if not memory._core.store(project).is_note(path):
        raise InvalidInput(f'"{path}" cannot hold a note: no part of it may be node_modules or begin with a dot.')


def _check_permalink(memory: Memory, project: str, path: str, text: str) -> None:
    """The permalink the new text gives itself must not be another note's."""
    from commonplace.note.markdown import own_permalink

    permalink = own_permalink(text)
    other = memory._core.index.notes.by_permalink(project, permalink) if permalink else None
    if other is not None and permalink and other.path != path:
        raise Exists(other.path if memory.sees(other.scope) else path, permalink)


def new_scope(memory: Memory, data: bytes, info: NoteInfo | None = None) -> str:
    """The scope a change to these bytes is listed under. Refused when the caller would not see the note any more."""
    scope = scope_of(data)
    if not memory.sees(scope):
        raise InvalidInput(f'invalid scope "{scope}"')
    return info.scope if info is not None and info.scope != GLOBAL else scope


def scope_of(data: bytes) -> str:
    """The scope the frontmatter of these bytes names; `global` without one."""
    if b"scope" not in data:
        return GLOBAL
    from commonplace.note.markdown import parse_note

    text = data.decode("utf-8", "replace")
    return parse_note(text, project="memories", path="x", changed=_EPOCH).scope


def _existing(memory: Memory, project: str, path: str, draft: Draft) -> tuple[NoteInfo | None, File | None]:
    """The note already at the path (in any case) or with its permalink, and its bytes."""
    core = memory._core
    info = core.index.notes.get(project, path) or core.index.notes.in_other_case(project, path)
    if info is None:
        info = core.index.notes.by_permalink(project, links.permalink_for(project, path))
    if info is None:
        if core.store(project).place(path).kind != "missing":
            raise Exists(path, f"{project}/{path}")
        return None, None
    return info, core.store(project).read(info.path)


def _kept_keys(memory: Memory, info: NoteInfo, file: File) -> dict[str, object]:
    """The header keys an overwrite keeps: `id`, `permalink`, `created_at`."""
    note = parsed(memory, info.project, info.path, file)
    kept: dict[str, object] = {"id": note.id} if note.own_id else {}
    kept["permalink"] = info.permalink
    kept["created_at"] = note.header.get("created_at") or note.header.get("created") or note.created
    return kept


def read(memory: Memory, ref: Ref, project: str | None, count: bool) -> Note:
    """The note as on disk now; the read is counted."""
    core = memory._core
    info = ref if _is_current(memory, ref) else memory.find_ref(ref, project)
    file = core.store(info.project).read(info.path)
    note = parsed(memory, info.project, info.path, file)
    if count:
        core.access.note(note.id)
    return with_address(memory, note)


def by_id(memory: Memory, text: str) -> NoteInfo:
    """The memory with this id or unique prefix; the index alone answers when the file is as it says."""
    core = memory._core
    given, text = text, text.strip().lower()
    if not text.isascii():
        raise NotFound(given, "categories")  # an id has no such characters
    if len(text) == ID_LENGTH and not core.is_swept:
        try:
            info = core.index.notes.find_id(text, viewer=memory.agent)
        except NotFound:
            info = None
        if info is not None and core.store(info.project).stamp(info.path) == _stamp(info):
            core.counted([info])
            return info
    core.fresh()
    try:
        info = core.index.notes.find_id(text, viewer=memory.agent)
    except NotFound:
        raise NotFound(given, "categories") from None
    core.counted([info])
    return info


def _is_current(memory: Memory, ref: Ref) -> TypeGuard[NoteInfo]:
    """Whether `ref` is what the index says of a file that is still the same; then no other file need be looked at."""
    if not isinstance(ref, NoteInfo) or not memory.sees(ref.scope):
        return False
    return memory._core.store(ref.project).stamp(ref.path) == _stamp(ref)


def _stamp(info: NoteInfo) -> tuple[int, int, int]:
    return info.size, info.mtime_ns, info.inode


def directory(
    memory: Memory, project: str, folder: str, depth: int, glob: str | None, limit: int, offset: int
) -> Directory:
    """One page of a folder. Raises NotFound, OutsideError, ProjectNotFound."""
    from commonplace.engine.results import Directory

    core = memory._core
    store = core.store(project)
    folder = path_guard.clean(folder.strip("/"), store.name)
    core.fresh()
    if folder and store.place(folder).kind != "folder":
        raise NotFound(folder, store.name)
    entries, total = core.index.notes.directory(store.name, folder, depth=depth, viewer=memory.agent, glob=glob,
                                      limit=limit or None, offset=offset)  # fmt: skip
    return Directory([_entry(each) for each in entries], total)


def _entry(each: FolderEntry) -> DirectoryEntry:
    from commonplace.engine.results import DirectoryEntry

    if each.note is None:
        return DirectoryEntry("folder", each.path, notes=each.notes)
    return DirectoryEntry("note", each.path, each.note.title, each.note.permalink, each.note.changed)
