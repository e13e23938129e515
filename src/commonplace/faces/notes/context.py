"""build_context: a note with what it says and what surrounds it (contract 000b, 7)."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from commonplace.errors import InvalidInput
from commonplace.faces.notes.page import ROOM, Page, lengths, whole
from commonplace.faces.notes.words import address, lines, local, note_data, short
from commonplace.faces.tool import Arguments, Reply
from commonplace.index.rows import Edge, NoteInfo, Reached
from commonplace.note.model import Observation

if TYPE_CHECKING:
    from commonplace.engine import Memory

_LINE, _CONTENT = 240, 2000


def build_context(memory: Memory, args: Arguments) -> Reply:
    """The notes at an address, each with its observations, relations and related notes."""
    url, project = args["url"].strip(), args.get("project")
    page = Page.of(args, 100)
    depth, most = whole(args, "depth", 1, 5), whole(args, "max_related", 0, 100)
    since = memory.since(args["timeframe"]) if args.get("timeframe") is not None else None
    if not url:
        raise InvalidInput('Parameter `url` must be an address, permalink or title; got "".')
    if "*" in url:
        infos, total = memory.matching(url, project=project, limit=page.size, offset=page.offset)
    else:
        infos, total = [memory.find(url, project)][page.offset : page.offset + page.size], 1
    entries, blocks, used = [], [], 0
    for info in infos:
        entry, block = _around(memory, info, depth, since, most, args["as_json"])
        entries.append(entry)
        blocks.append(block)
        used += lengths([entry], [block], args["as_json"])[0]
        if used > ROOM:
            break  # the rest goes to the next pages
    page = page.fitting([*lengths(entries, blocks, args["as_json"]), *[ROOM] * (len(infos) - len(entries))])
    entries, blocks = entries[: page.size], blocks[: page.size]
    foot = page.foot(total, len(entries))
    if not total:
        foot = f'No note matches "{short(url)}". Find one with search_notes or list_directory.'
    return Reply(
        "\n\n".join([*blocks, foot] if foot else blocks),
        {"results": entries, **page.data(total, len(entries))},
    )


def _around(
    memory: Memory, info: NoteInfo, depth: int, since: datetime | None, most: int, as_json: bool
) -> tuple[dict[str, Any], str]:
    """A note's entry in the data and its block of text; long lists are cut in both alike."""
    found = memory.context(info, depth=depth, since=since, limit=most)
    said = [_observation(each) for each in found.observations], [_said(each) for each in found.observations]
    linked = [_relation(each) for each in found.edges], [_related(each) for each in found.edges]
    reached = [_step(each) for each in found.reached], [_reached_line(each) for each in found.reached]
    kept = _shared([lengths(*each, as_json) for each in (said, linked, reached)])
    entry: dict[str, Any] = {
        "primary_result": note_data(found.note), "observations": said[0][: kept[0]], "relations": linked[0][: kept[1]],
        "related_results": reached[0][: kept[2]],
    }  # fmt: skip
    for key, entries, count in (("observations", said[0], kept[0]), ("relations", linked[0], kept[1])):
        if len(entries) > count:
            entry[f"more_{key}"] = len(entries) - count
    head = f"# {short(info.title)} ({address(info)}), {info.type}, changed {local(memory, info.changed):%Y-%m-%d}"
    return entry, lines(
        head,
        *_section("Observations", said[1], kept[0], "read_note shows them"),
        *_section("Relations", linked[1], kept[1], f'find them with search_notes "{short(info.title)}"'),
        *_section("Related notes", reached[1], kept[2], "lower max_related"),
    )


def _shared(lists: list[list[int]]) -> list[int]:
    """How many entries of each list are shown: what a short list leaves of its share goes to longer ones."""
    kept, room = [0] * len(lists), ROOM - 1000
    order = sorted(range(len(lists)), key=lambda n: sum(lists[n]))
    for left, n in zip(range(len(lists), 0, -1), order, strict=True):
        used = 0
        for length in lists[n]:
            if used + length > room // left:
                break
            used += length
            kept[n] += 1
        room -= used
    return kept


def _section(name: str, rows: list[str], count: int, rest: str) -> list[str]:
    if not rows:
        return []
    more = [f"- and {len(rows) - count:,} more: {rest}"] if count < len(rows) else []
    return [f"## {name}", *rows[:count], *more]


def _observation(each: Observation) -> dict[str, Any]:
    return {
        "category": each.category, "content": each.content[:_CONTENT], "tags": list(each.tags), "context": each.context,
    }  # fmt: skip


def _said(each: Observation) -> str:
    category = f"[{each.category}] " if each.category else ""
    context = f" ({each.context})" if each.context else ""
    return "- " + short(f"{category}{each.content}{context}", _LINE)


def _relation(each: Edge) -> dict[str, Any]:
    return {
        "type": each.type, "direction": each.direction, "target": each.target,
        "permalink": each.note.permalink if each.note else None, "state": each.state, "context": each.context,
    }  # fmt: skip


def _related(each: Edge) -> str:
    context = f" ({each.context})" if each.context else ""
    if each.direction == "in":
        where = f" ({address(each.note)})" if each.note else ""
        return "- " + short(f"from {each.target}{where}: {each.type}{context}", _LINE)
    states = {"unwritten": " (not written yet)", "ambiguous": " (ambiguous)"}
    where = f" ({address(each.note)})" if each.note else states.get(each.state, "")
    kind = f'"{each.type}"' if " " in each.type else each.type  # as the line in the note would have it
    return "- " + short(f"{kind} [[{each.target}]]{context}{where}", _LINE)


def _step(each: Reached) -> dict[str, Any]:
    return {**note_data(each.note), "depth": each.depth, "via": each.via}


def _reached_line(each: Reached) -> str:
    return f"- {short(each.note.title)} ({address(each.note)}), depth {each.depth}, via {each.via}"
