"""Taking a change to the lines of a graph file back: the lines that came go, those that went come back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from commonplace.engine.entities import Entity, Relation
from commonplace.engine.graph_file import FileGraph
from commonplace.engine.graph_store import GraphStore, Held, read_line
from commonplace.errors import CannotUndo, NotFound, StorageError
from commonplace.store.journal import LINES, Change, Touched
from commonplace.store.json_lines import BadLine
from commonplace.store.line_changes import Said
from commonplace.store.records import Edit

if TYPE_CHECKING:
    from commonplace.engine.memory import Memory


def take_back(memory: Memory, change: Change, blocked: Callable[[str, str], CannotUndo]) -> Change:
    """Undo `change`, which is one to lines; the home's lock is held. `blocked` words that a place changed since.

    Raises CannotUndo, NotRecords, StorageError.
    """
    core = memory._core
    touched = next(each for each in change.files if each.do == LINES and each.new is not None)
    try:
        said = core.home.lines.said(touched)
    except (NotFound, StorageError):
        raise CannotUndo(f"cannot undo #{change.number}: its lines are no longer kept") from None
    assert said is not None
    graph = FileGraph(memory, _store(memory, touched))

    def plan() -> Edit:
        edit = _inverse(graph.store.held, said)
        if edit is None:
            raise blocked(change.project, change.path)
        return edit

    made = graph.change(plan, undoes=change.number)
    if made is None:
        raise CannotUndo(f"cannot undo #{change.number}: nothing of it is left")
    return made


def _store(memory: Memory, touched: Touched) -> GraphStore:
    """The project the file is, if it is one in this process."""
    known = memory._core.stores.get(touched.project)
    if isinstance(known, GraphStore):
        return known
    return memory._core.graph_at(touched.file) or GraphStore(touched.project, touched.file)


def _inverse(held: Held, said: Said) -> Edit | None:
    """The edit that takes it back; None when a line of it is not there as it was left, or what went is there again."""
    lines = held.records.lines
    places: dict[bytes, list[int]] = {}
    for slot, line in enumerate(lines):
        if line:
            places.setdefault(line.rstrip(b"\r\n"), []).append(slot)
    edit = Edit(verb="undo")
    for line in reversed(said.added):
        if not (slots := places.get(line.rstrip(b"\r\n"))):
            return None
        edit.lines[slots.pop()] = b""
    returning: list[tuple[int, bytes]] = []
    for number, old, new in said.replaced:
        if not new:
            returning.append((number, old))
        elif slots := places.get(new.rstrip(b"\r\n")):
            edit.lines[slots.pop(0)] = old
        else:
            return None
    if any(_is_there(held, edit, old) for _, old in returning):
        return None
    left = [slot for slot, line in enumerate(lines) if line and edit.lines.get(slot) != b""]
    for before, (number, old) in enumerate(returning):
        at = number - before
        edit.inserted.setdefault(left[at] if at < len(left) else len(lines), []).append(old)
    return edit


def _is_there(held: Held, edit: Edit, line: bytes) -> bool:
    """Whether the entity or relation of a line stands in the file, but for what the edit removes."""
    try:
        found = read_line(line)
    except BadLine:
        return False
    if isinstance(found, Entity):
        slots = held.named.get(found.name, [])
    elif isinstance(found, Relation):
        slots = [slot for slot in held.ends.get(found.source, ()) if held.relations[slot].triple == found.triple]
    else:
        return False
    return any(slot not in edit.lines for slot in slots)
