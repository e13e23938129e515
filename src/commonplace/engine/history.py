"""`log`, `undo`, `restore`: what changed, and taking it back."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from commonplace.clock import parse_stamp
from commonplace.engine import elsewhere
from commonplace.engine.core import Core
from commonplace.engine.elsewhere import Elsewhere, Place
from commonplace.engine.storing import scope_of
from commonplace.errors import Ambiguous, CannotUndo, CommonplaceError, Exists, NotFound
from commonplace.index import lookup, places
from commonplace.note.edit import SetKeys
from commonplace.note.entry import PROJECT
from commonplace.note.model import GLOBAL, MEMORY_KEYS
from commonplace.store import path_guard
from commonplace.store.base import File, Stamp
from commonplace.store.folder import FolderStore
from commonplace.store.history import FOLD, LINES, Change, Touched
from commonplace.store.home import Step

if TYPE_CHECKING:
    from commonplace.engine.memory import Memory
    from commonplace.index.rows import NoteInfo

EXPIRE = "expire"
"""The verb of removing entries whose time to live is over."""
MEMORIES = "categories"
_DELETING = ("delete", EXPIRE, "decay")
_PASSING = "the text of an entry with a time to live is not kept"


def log(memory: Memory, ref: str | None, *, limit: int, agent: str | None, since: datetime | None) -> list[Change]:
    """Changes the caller may see, newest first; `limit` 0 = all."""
    core = memory._core
    place = None if ref is None else _place(memory, ref)
    found: list[Change] = []
    for change in core.home.history.changes():
        if since is not None and parse_stamp(change.time) < since:
            break
        if change.verb == FOLD or (agent is not None and change.agent != agent):
            continue
        seen = replace(change, files=[each for each in change.files if memory.sees(each.scope)])
        if place is not None and not _concerns(seen, place):
            continue
        if _is_visible(memory, change):
            found.append(seen)
            if limit and len(found) >= limit:
                break
    return found


def _is_visible(memory: Memory, change: Change) -> bool:
    """Whether the caller sees all files of a change; of a deletion the links that other memories lost do not count."""
    about = [each for each in change.files if (each.project, each.path) == (change.project, change.path)]
    files = about if about and change.verb in _DELETING else change.files
    return all(memory.sees(each.scope) for each in files)


def _concerns(change: Change, place: Place) -> bool:
    project, path, root = place
    if (change.project, change.path, change.root) == place:
        return True
    return any((each.project, each.root) == (project, root) and _reaches(each, path) for each in change.files)


def _reaches(each: Touched, path: str) -> bool:
    """Whether a step touched the file at `path`: itself, or with a folder above it."""
    if path in (each.path, each.to):
        return True
    is_folder = each.do == "move" and each.old is None
    return is_folder and (path.startswith(f"{each.path}/") or path.startswith(f"{each.to}/"))


def _place(memory: Memory, ref: str) -> Place:
    """The place of `project/path` or an absolute path, also of a note that is gone, or of an id the index or the
    history knows."""
    core = memory._core
    place = elsewhere.named(memory, ref)
    if place is not None:
        return place
    try:
        return _place_of(memory, memory.memory_id(ref))
    except (NotFound, Ambiguous):
        pass
    if len(ref) >= 4:
        for change in core.home.history.changes():
            for each in change.files:
                named = each.project == "categories" and each.path.endswith(f"-{ref[:8]}.md")
                if named and memory.sees(each.scope):
                    return each.project, each.path, each.root
    return _place_of(memory, memory.find(ref))


def _place_of(memory: Memory, info: NoteInfo) -> Place:
    return info.project, info.path, elsewhere.root_of(memory._core, info.project)


def undo(memory: Memory, number: int | None) -> Change:
    """Take change `number` back, else the latest that is no undo and was not taken back."""
    core = memory._core
    with core.writing():
        change, later = _find(memory, number)
        if change is None:
            raise CannotUndo("There is nothing to undo." if number is None else f"There is no change #{number}.")
        if number is not None and change.undoes is None and any(each.undoes == change.number for each in later):
            undone = next(each for each in later if each.undoes == change.number)
            if not any(each.undoes == undone.number for each in later):
                raise CannotUndo(f"cannot undo #{change.number}: it was undone already (#{undone.number})")
        texts = list(change.texts())
        if texts and not any(each.kept for each in texts):
            raise CannotUndo(f"cannot undo #{change.number}: {_PASSING}")
        if any(each.do == LINES for each in change.files):
            from commonplace.engine.graph_file import undo_lines

            return undo_lines(memory, change, lambda *place: _blocked(change, *place, later))
        steps: list[Step] = []
        for each in reversed(change.files):
            if each.do == "move" and each.old is None:
                _refuse_foreign(memory, change, each)
            steps += _inverse(core, change, each, later, steps)
        if not steps:
            raise CannotUndo(f"cannot undo #{change.number}: nothing of it is left")
        about = (change.project, change.path)
        return core.commit("undo", steps, about, memory.agent, memory.face, undoes=change.number)


def _find(memory: Memory, number: int | None) -> tuple[Change | None, list[Change]]:
    """The change to take back, and all later ones. That an entry expired is upkeep, which only its number names."""
    later: list[Change] = []
    undone: set[int] = set()
    for change in memory._core.home.history.changes():
        visible = _is_visible(memory, change)
        stands = change.undoes is None and change.number not in undone and not _is_upkeep(change)
        if number is None and stands and visible:
            return change, later
        if number == change.number:
            return (change if visible else None), later
        # An undo that was itself taken back leaves its change standing.
        if change.undoes is not None and change.number not in undone:
            undone.add(change.undoes)
        later.append(change)
    return None, later


def _is_upkeep(change: Change) -> bool:
    """Whether a change is none somebody made or would take back: folded counts, entries past their time to live."""
    return change.verb == FOLD or (change.verb == EXPIRE and change.project == PROJECT)


def last_change(memory: Memory, besides: str) -> datetime | None:
    """When something last changed by anything but the face `besides`, as far as the history goes back; None: never.

    A change made by hand in a file is not in the history.
    """
    for change in memory._core.home.history.changes():
        if change.face != besides and not _is_upkeep(change):
            return parse_stamp(change.time)
    return None


def _refuse_foreign(memory: Memory, change: Change, moved: Touched) -> None:
    """A folder that holds notes the caller may not see is not theirs to move back."""
    core = memory._core
    if elsewhere.is_here(core, moved.project, moved.root):
        core.fresh()
        scopes = [info.scope for info in lookup.below(core.db, moved.project, moved.to)]
    else:
        store = _store(core, change, moved)
        scopes = [scope_of(store.read(path).data) for path in store.list(moved.to).stamps]
    if not all(map(memory.sees, scopes)):
        raise CannotUndo(f"cannot undo #{change.number}: {moved.project}/{moved.to} holds notes of another agent")


def _inverse(core: Core, change: Change, each: Touched, later: list[Change], before: list[Step]) -> list[Step]:
    """The steps that take one step of `change` back, after those `before`; CannotUndo when the file is not as it
    left it."""
    store = _store(core, change, each)
    step = partial(core.step, project=each.project, store=store, scope=each.scope)
    if each.do == "move":
        _expect_there(store, change, each, each.to, each.new or each.old, later)
        _expect_free(store, change, each, later)
        return [step("move", path=each.to, to=each.path, old=_read(store, each.to) if each.old else None)]
    if each.do == "put":
        file = _expect_there(store, change, each, each.path, each.new, later)
        if each.old is None:
            return [step("remove", path=each.path, old=file)]
        return [step("put", path=each.path, data=_kept(core, change, each), old=file, mode=each.mode)]
    if each.do == "remove" and not each.kept:
        return []  # one of several that were cleared; the others come back
    if each.do == "remove":
        _expect_free(store, change, each, later)
        return [step("put", path=each.path, data=_kept(core, change, each), mode=each.mode)]
    full = os.path.join(store.root, each.path)
    if each.do == "mkdir":
        leaving = (one for one in before if one.root == store.root and one.do not in ("put", "mkdir", "symlink"))
        gone = {one.path for one in leaving}
        inside = {f"{each.path}/{name}" for name in os.listdir(full)} if os.path.isdir(full) else None
        return [step("rmdir", path=each.path)] if inside is not None and inside <= gone else []
    if each.do == "rmdir":
        return [] if os.path.isdir(full) else [step("mkdir", path=each.path)]
    if each.do == "unlink":
        _expect_free(store, change, each, later)
        return [step("symlink", path=each.path, link=each.link)]
    place = store.place(each.path)
    if place.kind != "link" or place.link != each.link:
        raise _blocked(change, each.project, each.path, later, each.root)
    return [step("unlink", path=each.path, link=each.link)]


def _store(core: Core, change: Change, each: Touched) -> FolderStore:
    """The store the step was on."""
    try:
        return elsewhere.store_at(core, each.project, each.root)
    except Elsewhere as error:
        raise CannotUndo(f"cannot undo #{change.number}: {error}") from None


def _read(store: FolderStore, path: str) -> File | None:
    try:
        return store.read(path)
    except CommonplaceError:
        return None


def _expect_there(store: FolderStore, change: Change, each: Touched, path: str, digest: str | None,
                  later: list[Change]) -> File | None:  # fmt: skip
    """The file as the change left it at `path`; a moved folder (no digest) must just be there."""
    if digest is None:
        if os.path.lexists(os.path.join(store.root, path)):
            return None
        raise _blocked(change, each.project, path, later, each.root)
    file = _read(store, path)
    if file is None or file.etag != _folded(digest, each.project, path, later):
        raise _blocked(change, each.project, path, later, each.root)
    return file


def _folded(digest: str, project: str, path: str, later: list[Change]) -> str:
    """What the text with this SHA-256 became by counts written into it."""
    for each in (each for change in reversed(later) if change.verb == FOLD for each in change.files):
        if (each.project, each.path, each.old) == (project, path, digest):
            digest = each.new or digest
    return digest


def _expect_free(store: FolderStore, change: Change, each: Touched, later: list[Change]) -> None:
    if os.path.lexists(os.path.join(store.root, each.path)):
        raise _blocked(change, each.project, each.path, later, each.root)


def _blocked(change: Change, project: str, path: str, later: list[Change], root: str = "") -> CannotUndo:
    cause = next((each for each in later if each.verb != FOLD and _concerns(each, (project, path, root))), None)
    by = f"#{cause.number}" if cause else "outside commonplace"
    return CannotUndo(f"cannot undo #{change.number}: {os.path.join(root or project, path)} changed later ({by})")


def _kept(core: Core, change: Change, each: Touched) -> bytes:
    if not each.kept or each.old is None:
        raise CannotUndo(f"cannot undo #{change.number}: {_PASSING}")
    name = f"{each.project}/{each.path}"
    try:
        return core.home.history.text(each.old, name)
    except NotFound:
        raise CannotUndo(f"cannot undo #{change.number}: the text of {name} is no longer kept") from None


def restore(memory: Memory, ref: str, *, at: datetime | None, change: int | None, to: str | None) -> tuple[str, int]:
    """Bring back the text `ref` had before `change`, at the moment `at`, or before it last changed."""
    core = memory._core
    with core.writing():
        project, path, root = place = _place(memory, ref)
        store = elsewhere.store_at(core, project, root)
        source, each = _older(memory, place, _read(store, path), at, change)
        data = core.home.history.text(each.old or each.new or "", f"{project}/{path}")
        if to is not None:
            project, path, root = _target(core, place, to)
            store = elsewhere.store_at(core, project, root)
        here = _read(store, path)
        if to is not None and here is not None:
            raise Exists(f"{project}/{path}")
        before = scope_of(here.data) if here is not None else GLOBAL
        if not (memory.sees(before) and memory.sees(scope_of(data))):
            raise NotFound(f"{project}/{path}", "the history")  # what is there now is not theirs to replace
        scope = each.scope if before == GLOBAL else before
        if root == "":
            core.check_writable(project)
            data = _with_own_id(memory, project, path, data)
        step = core.step("put", project, path, store=store, data=data, old=here, mode=each.mode, scope=scope)
        core.commit("restore", [step], (project, path), memory.agent, memory.face)
        return os.path.join(root or project, path), source.number


def _with_own_id(memory: Memory, project: str, path: str, data: bytes) -> bytes:
    """The bytes of a memory to be restored, with a new id if another file has its own: of two memories with one id
    neither could be named any more."""
    if project != MEMORIES:
        return data
    core = memory._core
    note = core.note_of(project, path, File(data, Stamp(0, 0, 0), ""))
    core.fresh()
    if note is None or all(info.path == path for info in places.with_ids(core.db, [note.id], (project,))):
        return data
    from uuid import uuid4

    try:
        return SetKeys({"id": str(uuid4())}, MEMORY_KEYS).apply(data.decode()).text.encode()
    except ValueError:
        return data  # no header that could hold it


def _target(core: Core, place: Place, to: str) -> Place:
    name, _, rest = to.partition("/")
    for known in core.stores:
        if rest and known.lower() == name.lower():
            return known, path_guard.clean(rest, known, hidden=True), elsewhere.root_of(core, known)
    return place[0], path_guard.clean(to, place[0], hidden=True), place[2]


def _older(memory: Memory, place: Place, now: File | None, at: datetime | None,
           number: int | None) -> tuple[Change, Touched]:  # fmt: skip
    """The change whose replaced text is wanted. Raises NotFound when the history holds none."""
    best: tuple[Change, Touched] | None = None
    for change in memory._core.home.history.changes():
        for each in change.texts():
            is_it = (each.project, each.path, each.root) == place
            if not is_it or each.do == "move" or each.old is None or not each.kept:
                continue
            if not memory.sees(each.scope) or (number is not None and change.number != number):
                continue
            if at is not None:
                if parse_stamp(change.time) > at:
                    best = (change, each)  # the earliest change after `at` replaced what stood then
                continue
            if number is None and now is not None and each.old == now.etag:
                continue
            return change, each
    if best is None:
        raise NotFound(os.path.join(place[2] or place[0], place[1]), "the history")
    return best
