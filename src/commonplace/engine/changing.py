"""Changing notes that are there: edit, move, delete, tag."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from commonplace.clock import stamp
from commonplace.engine import storing
from commonplace.engine.results import Changed, Deleted, Moved
from commonplace.errors import (
    CommonplaceError,
    Conflict,
    CountMismatch,
    Exists,
    InvalidInput,
    Locked,
    NotFound,
    NotText,
    OutsideError,
    SectionError,
)
from commonplace.index import graph, lookup, places
from commonplace.index.rows import NoteInfo
from commonplace.note import edit as edits
from commonplace.note import links
from commonplace.note.frontmatter import REMOVE
from commonplace.note.model import MEMORY_KEYS, Draft, Note
from commonplace.store import path_guard
from commonplace.store.base import File
from commonplace.store.home import Step

if TYPE_CHECKING:
    from commonplace.engine.memory import Memory, Ref


def edit(memory: Memory, ref: Ref, change: Any, *, checksum: str | None, create: bool, project: str | None) -> Changed:
    """Apply `change` to the note's text as it is under the lock."""
    core = memory._core
    with core.writing():
        try:
            info = memory.find_ref(ref, project)
        except NotFound:
            if not create or not isinstance(ref, str):
                raise
            return _created(memory, ref, change, project)
        file, text = editable(memory, info)
        if checksum is not None and file.etag[:8] != checksum[:8].lower():
            raise Conflict(info.permalink, file.etag[:8], checksum)
        edited = _applied(change, text, info)
        data = _kept_up(memory, info, text, edited.text).encode()
        scope = storing.new_scope(memory, data, info)
        step = core.step("put", info.project, info.path, data=data, old=file, scope=scope)
        core.commit("edit", [step], (info.project, info.path), memory.agent, memory.face)
        return Changed(storing.written(memory, step), edited)


def editable(memory: Memory, info: NoteInfo) -> tuple[File, str]:
    """The note's bytes and text for a change. Raises Locked, NotText, ReadOnlyProject."""
    memory._core.check_writable(info.project)
    file = memory._core.store(info.project).read(info.path)
    try:
        text = file.data.decode()
    except UnicodeDecodeError:
        raise NotText(info.path) from None
    if storing.parsed(memory, info.project, info.path, file).locked:
        raise Locked(info.permalink)
    return file, text


def _applied(change: Any, text: str, info: NoteInfo) -> edits.Edited:
    """The edit's own errors name the note by its permalink."""
    try:
        return change.apply(text)
    except CountMismatch as error:
        raise CountMismatch(error.found, error.expected, error.lines, info.permalink) from None
    except SectionError as error:
        raise SectionError(error.section, error.headings, error.lines, info.permalink) from None


def _kept_up(memory: Memory, info: NoteInfo, before: str, after: str) -> str:
    """A memory's own keys follow its content: hash, updated_at, version (contract 001, 2)."""
    if info.project != "categories" or after == before:
        return after
    note = memory._core.note_of(info.project, info.path, _as_file(after))
    if note is None or not note.header:
        return after
    keys: dict[str, Any] = {"updated_at": stamp(memory.clock())}
    digest = hashlib.sha256(note.content.encode()).hexdigest()
    if digest != note.header.get("content_hash"):
        keys |= {"content_hash": digest, "version": note.version + 1}
    return edits.SetKeys(keys).apply(after).text


def _as_file(text: str) -> File:
    from commonplace.store.base import Stamp

    return File(text.encode(), Stamp(0, 0, 0), "")


def _created(memory: Memory, identifier: str, change: Any, project: str | None) -> Changed:
    """`append` and `prepend` make a missing note; the identifier is its path or title."""
    if not isinstance(change, (edits.Append, edits.Prepend)):
        raise NotFound(identifier, project or memory.default_project)
    name = memory._core.store(project).name if project else memory.default_project
    path = links.parse_address(identifier)
    first, slash, rest = path.partition("/")
    known = {each.lower(): each for each in memory._core.stores}
    if slash and first.lower() in known and (project is None or known[first.lower()] == name):
        name, path = known[first.lower()], rest
    folder, _, title = path.rpartition("/")
    title = title.removesuffix(".md") if title.lower().endswith(".md") else title
    if title.startswith("."):
        raise OutsideError(identifier, name)
    stored = storing.store(memory, [Draft(change.text, project=name, folder=folder, title=title)])[0]
    return Changed(stored.note, edits.Edited(stored.note.text, 1, 1, False), created=True)


def tag(memory: Memory, ref: Ref, add: Sequence[str], remove: Sequence[str]) -> Note:
    """The note's own tags, united with `add`, less `remove`, in order."""
    core = memory._core
    with core.writing():
        info = memory.find_ref(ref)
        file, text = editable(memory, info)
        note = storing.parsed(memory, info.project, info.path, file)
        gone = {each.lower() for each in remove}
        tags = [each for each in note.tags if each.lower() not in gone]
        for each in add:
            if each.lower() not in {known.lower() for known in tags} and each.lower() not in gone:
                tags.append(each)
        if tags == list(note.tags):
            return storing.with_address(memory, note)
        step = key_step(memory, info, file, text, {"tags": tags or REMOVE})
        core.commit("tag", [step], (info.project, info.path), memory.agent, memory.face)
        return storing.written(memory, step)


def key_step(memory: Memory, info: NoteInfo, file: File, text: str, keys: dict[str, Any]) -> Step:
    """The step that sets frontmatter keys; a memory's `updated_at` follows."""
    if info.project == "categories":
        keys = keys | {"updated_at": stamp(memory.clock())}
    try:
        data = edits.SetKeys(keys, MEMORY_KEYS if info.project == "categories" else ()).apply(text).text.encode()
    except ValueError:
        raise InvalidInput(
            f"The frontmatter of {info.permalink} is not valid YAML, so nothing was changed. Mend it first."
        ) from None
    return memory._core.step("put", info.project, info.path, data=data, old=file, scope=info.scope)


def move(memory: Memory, ref: Ref, destination: str, *, project: str | None) -> Moved:
    """Rename the file; other notes are never rewritten."""
    core = memory._core
    with core.writing():
        info = memory.find_ref(ref, project)
        store = core.store(info.project)
        target = _destination(destination, info.path, info.project)
        storing.check_place(memory, info.project, target)
        file = store.read(info.path)
        note = core.note_of(info.project, info.path, file)
        if note is not None and note.locked:
            raise Locked(info.permalink)
        if target == info.path:
            raise Exists(target)
        place = store.place(target)
        if place.kind != "missing" and not (target.lower() == info.path.lower() and place.kind == "file"):
            raise Exists(target)
        linking = {edge.note.path: edge.note for edge in graph.incoming(core.db, info, memory.agent) if edge.note}
        step = core.step("move", info.project, info.path, to=target, old=file, scope=info.scope)
        core.commit("move", [step], (info.project, info.path), memory.agent, memory.face)
        moved = lookup.get(core.db, info.project, target)
        broken = _broken(memory, linking, {moved.row} if moved else set())
        return Moved(info.project, info.path, target, 1, broken)


def _destination(text: str, path: str, project: str) -> str:
    name = path.rpartition("/")[2]
    cleaned = path_guard.clean(text.removeprefix("/") if text == "/" else text, project)
    if text.endswith("/"):
        return f"{cleaned}/{name}" if cleaned else name
    if not cleaned:
        raise InvalidInput("Parameter `destination_path` must not be empty.")
    return cleaned if os.path.splitext(cleaned)[1] in (".md", ".markdown") else f"{cleaned}.md"


def _broken(memory: Memory, linking: dict[str, NoteInfo], moved: set[int]) -> list[str]:
    """Of the notes that linked to what moved, those that no longer lead to it and that the caller sees."""
    db, found = memory._core.db, []
    for path, before in linking.items():
        source = lookup.get(db, before.project, path)
        if source is None or not memory.sees(source.scope) or source.row in moved:
            continue
        leads = {edge.note.row for edge in graph.outgoing(db, source, memory.agent) if edge.note}
        if not leads & moved:
            found.append(source.path if source.project == before.project else source.permalink)
    return sorted(set(found))


def move_folder(memory: Memory, project: str, folder: str, destination: str) -> Moved:
    """One rename of the whole folder."""
    core = memory._core
    with core.writing():
        store = core.store(project)
        source = path_guard.clean(folder.strip("/"), store.name)
        target = path_guard.clean(destination.strip("/"), store.name)
        if destination.endswith("/") and store.place(target).kind == "folder":
            target = f"{target}/{source.rpartition('/')[2]}" if target else source.rpartition("/")[2]
        core.fresh()
        if not source or store.place(source).kind != "folder":
            raise NotFound(folder, store.name)
        if not target or f"{target}/".startswith(f"{source}/"):
            raise InvalidInput(
                f'A folder cannot be moved into itself: "{destination}". Choose another destination_path.'
            )
        if store.place(target).kind != "missing":
            raise Exists(target)
        storing.check_place(memory, store.name, f"{target}/x.md")
        infos = lookup.below(core.db, store.name, source)
        paths = [info.path for info in infos]
        _refuse_foreign(memory, infos, source)
        linking = {e.note.path: e.note for info in infos for e in graph.incoming(core.db, info, memory.agent) if e.note}
        core.commit("move", [core.step("move", store.name, source, to=target)], (store.name, f"{source}/"),
                    memory.agent, memory.face)  # fmt: skip
        after = {info.row for info in lookup.below(core.db, store.name, target)}
        outside = {path: info for path, info in linking.items() if path not in set(paths)}
        return Moved(store.name, source, target, len(paths), _broken(memory, outside, after))


def _refuse_foreign(memory: Memory, infos: list[NoteInfo], folder: str) -> None:
    if any(not memory.sees(info.scope) for info in infos):
        raise InvalidInput(f'Folder "{folder}" holds notes outside your scope. Name single notes instead.')
    for info in infos:
        if info.locked:
            raise Locked(info.permalink)


def delete(memory: Memory, ref: Ref, *, project: str | None) -> Deleted:
    """Remove the file; memories that hold the note's id in `links` lose it in the same change."""
    core = memory._core
    with core.writing():
        info = memory.find_ref(ref, project)
        file = core.store(info.project).read(info.path)
        note = core.note_of(info.project, info.path, file)
        if note is not None and note.locked:
            raise Locked(info.permalink)
        steps = [core.step("remove", info.project, info.path, old=file, scope=info.scope)]
        steps += unlink_steps(memory, info)
        change = core.commit("delete", steps, (info.project, info.path), memory.agent, memory.face)
        return Deleted(info.project, [info.path], 1, change.number)


def unlink_steps(memory: Memory, info: NoteInfo) -> list[Step]:
    """Steps that take the memory's id out of the `links` of others."""
    steps: list[Step] = []
    if info.project != "categories":
        return steps
    for other in places.holding_link(memory._core.db, info.id):
        if (other.project, other.path) == (info.project, info.path):
            continue
        try:
            file, text = editable(memory, other)
        except CommonplaceError:
            continue  # a locked or unreadable note keeps its link; doctor names it as dangling
        kept = [each for each in other.links if each != info.id]
        steps.append(key_step(memory, other, file, text, {"links": kept or REMOVE}))
    return steps


def delete_folder(memory: Memory, project: str, folder: str) -> Deleted:
    """Remove the folder's notes, and each folder that is empty then."""
    core = memory._core
    with core.writing():
        store = core.store(project)
        source = path_guard.clean(folder.strip("/"), store.name)
        core.fresh()
        if not source or store.place(source).kind != "folder":
            raise NotFound(folder, store.name)
        infos = lookup.below(core.db, store.name, source)
        paths = [info.path for info in infos]
        _refuse_foreign(memory, infos, source)
        steps = [
            core.step("remove", store.name, info.path, old=store.read(info.path), scope=info.scope) for info in infos
        ]
        steps += [core.step("rmdir", store.name, each) for each in _emptied(store.root, source, set(paths))]
        if not steps:
            raise InvalidInput(f'Folder "{source}" holds no notes; files that are no notes are not deleted.')
        change = core.commit("delete", steps, (store.name, f"{source}/"), memory.agent, memory.face)
        return Deleted(store.name, paths, len(paths), change.number)


def _emptied(root: str, folder: str, removed: set[str]) -> list[str]:
    """Folders that hold nothing once `removed` are gone, deepest first."""
    found: list[str] = []
    base = os.path.join(root, folder)
    for place, folders, files in os.walk(base, topdown=False):
        here = os.path.relpath(place, root)
        names = [f"{here}/{name}" for name in files]
        inside = [f"{here}/{name}" for name in folders]
        if all(name in removed for name in names) and all(name in found for name in inside):
            found.append(here)
    return found
