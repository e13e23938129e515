"""Links between notes: ids both ways for memories (contract 001, 4), relation lines for other notes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.engine import changing
from commonplace.engine.results import LinkAction, ResolvedLinks
from commonplace.errors import InvalidInput
from commonplace.index.rows import NoteInfo
from commonplace.note import edit as edits
from commonplace.note.frontmatter import REMOVE
from commonplace.query import Query
from commonplace.store.home import Step

if TYPE_CHECKING:
    from commonplace.engine.memory import Memory, Ref

MEMORIES = "categories"


def link(memory: Memory, a: Ref, b: Ref, type: str) -> bool:
    """Write the link; nothing is written when it is there already."""
    core = memory._core
    with core.writing():
        first, second = memory.find_ref(a), memory.find_ref(b)
        if (first.project, first.path) == (second.project, second.path):
            raise InvalidInput("cannot link a memory to itself")
        if first.project == second.project == MEMORIES:
            steps = [step for step in (_with_link(memory, first, second), _with_link(memory, second, first)) if step]
        else:
            steps = _relation_line(memory, first, second, type)
        if steps:
            core.commit("link", steps, (first.project, first.path), memory.agent, memory.face)
        return bool(steps)


def _with_link(memory: Memory, info: NoteInfo, other: NoteInfo) -> Step | None:
    """The step that puts `other`'s id into the links of `info`, None when it is there."""
    if other.id in info.links:
        return None
    file, text = changing.editable(memory, info)
    return changing.key_step(memory, info, file, text, linked_keys(info, other))


def linked_keys(info: NoteInfo, other: NoteInfo) -> dict[str, Any]:
    """The header keys of a memory once it links to `other`; the pair is not unwanted any more."""
    keys: dict[str, Any] = {"links": [*info.links, other.id]}
    unlinked = ids(info.header.get("unlinked"))
    if other.id in unlinked:
        keys["unlinked"] = [each for each in unlinked if each != other.id] or REMOVE
    return keys


def ids(value: Any) -> list[str]:
    """The ids a header key lists; none for anything but a list."""
    return [str(each) for each in value] if isinstance(value, list) else []


def _relation_line(memory: Memory, source: NoteInfo, target: NoteInfo, type: str) -> list[Step]:
    """The step that adds `- type [[Target]]` to the source's Relations."""
    edges = memory._core.index.links.outgoing(source, memory.agent)
    if any(edge.type == type and edge.note and edge.note.row == target.row for edge in edges):
        return []
    name = target.title if source.project == target.project else f"{target.project}::{target.title}"
    found = memory._core.index.links.resolve(target.title, project=source.project, folder="", viewer=memory.agent,
                          target_project=None if source.project == target.project else target.project)  # fmt: skip
    if found.note is None or found.note.row != target.row:
        name = target.permalink
    file, text = changing.editable(memory, source)
    kind = type if " " not in type else f'"{type}"'
    edited = edits.AddItem("Relations", f"- {kind} [[{name}]]").apply(text).text
    return [memory._core.step("put", source.project, source.path, data=edited.encode(), old=file, scope=source.scope)]


def unlink(memory: Memory, a: Ref, b: Ref) -> bool:
    """Remove each other's id from two memories, and remember that the pair is not wanted."""
    core = memory._core
    with core.writing():
        first, second = memory.find_ref(a), memory.find_ref(b)
        if (first.project, first.path) == (second.project, second.path):
            raise InvalidInput("cannot link a memory to itself")
        if not first.project == second.project == MEMORIES:
            raise InvalidInput("Only links between memories can be removed here; edit the note's text instead.")
        if second.id not in first.links and first.id not in second.links:
            return False
        steps = [_without_link(memory, first, second), _without_link(memory, second, first)]
        core.commit("unlink", steps, (first.project, first.path), memory.agent, memory.face)
        return True


def _without_link(memory: Memory, info: NoteInfo, other: NoteInfo) -> Step:
    file, text = changing.editable(memory, info)
    links = [each for each in info.links if each != other.id]
    unlinked = ids(info.header.get("unlinked"))
    keys = {"links": links or REMOVE, "unlinked": [*unlinked, other.id] if other.id not in unlinked else unlinked}
    return changing.key_step(memory, info, file, text, keys)


def resolve_links(memory: Memory, dry_run: bool) -> ResolvedLinks:
    """Plan first: for each wikilink of a memory that leads to another one, a link both ways; then write.

    Locked memories are left out: nothing is written to them, and a link stands on both sides or not at all.
    """
    core = memory._core
    with core.writing():
        infos, _ = memory.list(Query(projects=(MEMORIES,)), limit=0, order="path")
        by_row = {info.row: info for info in infos}
        wanted: dict[int, list[str]] = {info.row: list(info.links) for info in infos}
        actions: list[LinkAction] = []
        unresolved: list[tuple[str, str]] = []
        gained: set[int] = set()
        added = 0
        place = {info.row: number for number, info in enumerate(infos)}
        leading = core.index.links.leading(sorted(by_row), memory.agent)
        for row, name, reached in sorted(leading, key=lambda each: place[each[0]]):
            info = by_row[row]
            if reached is None:
                if name not in info.links:  # an id in the header is no wikilink, and may be another agent's
                    unresolved.append((info.id, name))
                continue
            target = by_row.get(reached)
            if target is None or target.row == info.row or info.locked or target.locked:
                continue
            if target.id not in wanted[info.row]:
                actions.append(LinkAction(info.id, target.id, f"[[{name}]]", info.path))
                gained.add(info.row)
            for one, other in ((info, target), (target, info)):
                if other.id not in wanted[one.row]:
                    wanted[one.row].append(other.id)
                    added += 1
        if not dry_run:
            _write_links(memory, by_row, wanted)
        return ResolvedLinks(actions, len(gained), added, unresolved)


def _write_links(memory: Memory, infos: dict[int, NoteInfo], wanted: dict[int, list[str]]) -> None:
    steps = []
    for row, links in wanted.items():
        info = infos[row]
        if links != list(info.links):
            file, text = changing.editable(memory, info)
            steps.append(changing.key_step(memory, info, file, text, {"links": links}))
    if steps:
        memory._core.commit("link", steps, (MEMORIES, ""), memory.agent, memory.face)
