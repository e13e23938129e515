"""`log`, `undo`, `restore`: what changed, and taking it back."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from commonplace.clock import parse_stamp
from commonplace.engine.core import Core
from commonplace.engine.storing import scope_of
from commonplace.errors import Ambiguous, CannotUndo, CommonplaceError, Exists, NotFound
from commonplace.index import lookup
from commonplace.note.model import GLOBAL
from commonplace.store import jail
from commonplace.store.base import File
from commonplace.store.history import FOLD, LINES, Change, Touched
from commonplace.store.home import Step

if TYPE_CHECKING:
    from commonplace.engine.memory import Memory

EXPIRE = "expire"
"""The verb of removing entries whose time to live is over."""
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
    files = about if about and change.verb == "delete" else change.files
    return all(memory.sees(each.scope) for each in files)


def _concerns(change: Change, place: tuple[str, str]) -> bool:
    project, path = place
    if (change.project, change.path) == place:
        return True
    return any(each.project == project and _reaches(each, path) for each in change.files)


def _reaches(each: Touched, path: str) -> bool:
    """Whether a step touched the file at `path`: itself, or with a folder above it."""
    if path in (each.path, each.to):
        return True
    is_folder = each.do == "move" and each.old is None
    return is_folder and (path.startswith(f"{each.path}/") or path.startswith(f"{each.to}/"))


def _place(memory: Memory, ref: str) -> tuple[str, str]:
    """(project, path) of `project/path`, also of a note that is gone, or of an id the index or history knows."""
    core = memory._core
    project, _, path = ref.partition("/")
    for name in core.stores:
        if path and name.lower() == project.lower():
            return name, jail.clean(path, name, hidden=True)
    try:
        info = memory.memory_id(ref)
        return info.project, info.path
    except (NotFound, Ambiguous):
        pass
    if len(ref) >= 4:
        for change in core.home.history.changes():
            for each in change.files:
                named = each.project == "categories" and each.path.endswith(f"-{ref[:8]}.md")
                if named and memory.sees(each.scope):
                    return each.project, each.path
    info = memory.find(ref)
    return info.project, info.path


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
        stands = change.undoes is None and change.number not in undone and change.verb not in (EXPIRE, FOLD)
        if number is None and stands and visible:
            return change, later
        if number == change.number:
            return (change if visible else None), later
        # An undo that was itself taken back leaves its change standing.
        if change.undoes is not None and change.number not in undone:
            undone.add(change.undoes)
        later.append(change)
    return None, later


def _refuse_foreign(memory: Memory, change: Change, moved: Touched) -> None:
    """A folder that holds notes the caller may not see is not theirs to move back."""
    core = memory._core
    core.fresh()
    if any(not memory.sees(info.scope) for info in lookup.below(core.db, moved.project, moved.to)):
        raise CannotUndo(f"cannot undo #{change.number}: {moved.project}/{moved.to} holds notes of another agent")


def _inverse(core: Core, change: Change, each: Touched, later: list[Change], before: list[Step]) -> list[Step]:
    """The steps that take one step of `change` back, after those `before`; CannotUndo when the file is not as it
    left it."""
    if each.do == LINES:
        raise CannotUndo(
            f"cannot undo #{change.number}: it changed lines of {each.path}, a file used in place;"
            f" the lines it replaced are kept in {core.home.history.object_path(each.old or '')}"
        )
    if each.do == "move":
        _expect_there(core, change, each.project, each.to, each.new or each.old, later)
        _expect_free(core, change, each.project, each.path, later)
        old = _read(core, each.project, each.to) if each.old else None
        return [core.step("move", each.project, each.to, to=each.path, old=old, scope=each.scope)]
    if each.do == "put":
        file = _expect_there(core, change, each.project, each.path, each.new, later)
        if each.old is None:
            return [core.step("remove", each.project, each.path, old=file, scope=each.scope)]
        data = _kept(core, change, each)
        return [core.step("put", each.project, each.path, data=data, old=file, mode=each.mode, scope=each.scope)]
    if each.do == "remove" and not each.kept:
        return []  # one of several that were cleared; the others come back
    if each.do == "remove":
        _expect_free(core, change, each.project, each.path, later)
        data = _kept(core, change, each)
        return [core.step("put", each.project, each.path, data=data, mode=each.mode, scope=each.scope)]
    if each.do == "mkdir":
        full = os.path.join(core.store(each.project).root, each.path)
        gone = {step.path for step in before if step.project == each.project and step.do not in ("put", "mkdir", "symlink")}
        inside = {f"{each.path}/{name}" for name in os.listdir(full)} if os.path.isdir(full) else None
        return [core.step("rmdir", each.project, each.path)] if inside is not None and inside <= gone else []
    if each.do == "rmdir":
        full = os.path.join(core.store(each.project).root, each.path)
        return [] if os.path.isdir(full) else [core.step("mkdir", each.project, each.path)]
    if each.do == "unlink":
        _expect_free(core, change, each.project, each.path, later)
        return [core.step("symlink", each.project, each.path, link=each.link)]
    place = core.store(each.project).place(each.path)
    if place.kind != "link" or place.link != each.link:
        raise _blocked(change, each.project, each.path, later)
    return [core.step("unlink", each.project, each.path, link=each.link)]


def _read(core: Core, project: str, path: str) -> File | None:
    try:
        return core.store(project).read(path)
    except CommonplaceError:
        return None


def _expect_there(core: Core, change: Change, project: str, path: str, digest: str | None, later: list[Change]) -> File | None:
    """The file as the change left it; a moved folder (no digest) must just be there."""
    if digest is None:
        if os.path.lexists(os.path.join(core.store(project).root, path)):
            return None
        raise _blocked(change, project, path, later)
    file = _read(core, project, path)
    if file is None or file.etag != _folded(digest, project, path, later):
        raise _blocked(change, project, path, later)
    return file


def _folded(digest: str, project: str, path: str, later: list[Change]) -> str:
    """What the text with this SHA-256 became by counts written into it."""
    for each in (each for change in reversed(later) if change.verb == FOLD for each in change.files):
        if (each.project, each.path, each.old) == (project, path, digest):
            digest = each.new or digest
    return digest


def _expect_free(core: Core, change: Change, project: str, path: str, later: list[Change]) -> None:
    if os.path.lexists(os.path.join(core.store(project).root, path)):
        raise _blocked(change, project, path, later)


def _blocked(change: Change, project: str, path: str, later: list[Change]) -> CannotUndo:
    cause = next((each for each in later if each.verb != FOLD and _concerns(each, (project, path))), None)
    by = f"#{cause.number}" if cause else "outside commonplace"
    return CannotUndo(f"cannot undo #{change.number}: {project}/{path} changed later ({by})")


def _kept(core: Core, change: Change, each: Touched) -> bytes:
    if not each.kept or each.old is None:
        raise CannotUndo(f"cannot undo #{change.number}: {_PASSING}")
    try:
        return core.home.history.text(each.old, f"{each.project}/{each.path}")
    except NotFound:
        raise CannotUndo(f"cannot undo #{change.number}: the text of {each.project}/{each.path} is no longer kept") from None


def restore(memory: Memory, ref: str, *, at: datetime | None, change: int | None, to: str | None) -> tuple[str, int]:
    """Bring back the text `ref` had before `change`, at the moment `at`, or before it last changed."""
    core = memory._core
    with core.writing():
        project, path = _place(memory, ref)
        now = _read(core, project, path)
        source, each = _older(memory, project, path, now, at, change)
        data = core.home.history.text(each.old or each.new or "", f"{project}/{path}")
        target = _target(core, project, path, to)
        here = _read(core, *target)
        if to is not None and here is not None:
            raise Exists(f"{target[0]}/{target[1]}")
        before = scope_of(here.data) if here is not None else GLOBAL
        if not (memory.sees(before) and memory.sees(scope_of(data))):
            raise NotFound(f"{project}/{path}", "the history")  # what is there now is not theirs to replace
        scope = each.scope if before == GLOBAL else before
        step = core.step("put", *target, data=data, old=here, mode=each.mode, scope=scope)
        core.commit("restore", [step], target, memory.agent, memory.face)
        return "/".join(target), source.number


def _target(core: Core, project: str, path: str, to: str | None) -> tuple[str, str]:
    if to is None:
        return project, path
    name, _, rest = to.partition("/")
    for known in core.stores:
        if rest and known.lower() == name.lower():
            return known, jail.clean(rest, known, hidden=True)
    return project, jail.clean(to, project, hidden=True)


def _older(memory: Memory, project: str, path: str, now: File | None, at: datetime | None,
           number: int | None) -> tuple[Change, Touched]:  # fmt: skip
    """The change whose replaced text is wanted. Raises NotFound when the history holds none."""
    best: tuple[Change, Touched] | None = None
    for change in memory._core.home.history.changes():
        for each in change.texts():
            if each.project != project or each.path != path or each.do == "move" or each.old is None or not each.kept:
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
        raise NotFound(f"{project}/{path}", "the history")
    return best


