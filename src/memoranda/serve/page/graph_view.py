"""Graph: the notes around a note, or around the hits of a search, or all of them in clusters.

The page comes at once; graph.js asks `/api/graph` what to draw. Without a script the same notes
stand in a list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from memoranda.engine import MemorySession
from memoranda.index.rows import NoteInfo, day_of
from memoranda.serve.page import lists
from memoranda.serve.page.visit import HOME, Visit, note_url

SHOWN = 300
MOST = 3000
HITS = 60
WHOLE = 400
"""Notes shown unless told otherwise, and at most; hits of a search; the whole graph is shown by
notes up to so many.
"""
_FIELDS = ("q", "project", "category", "tag", "agent", "from", "until", "archive")


def show(visit: Visit) -> Response:
    """The page, or (`part` list) what is to be drawn as a list."""
    memory = visit.memory
    given = visit.given
    asked = {
        name: given[name]
        for name in (*_FIELDS, "note", "cluster", "depth", "limit", "type")
        if given.get(name)
    }
    if given.get("note"):
        title = memory.find(given["note"]).title
    else:
        title = given.get("cluster", "")
    return visit.html(
        "graph.html",
        given=given,
        asked=asked,
        title=title,
        depth=_depth(visit),
        projects=[project.name for project in memory.projects],
        found=drawing(visit) if given.get("part") == "list" else None,
    )


def drawing(visit: Visit) -> dict[str, Any]:
    """What is to be drawn: `nodes`, `links` between them by `id`, `total` notes there are, and
    whether these are `clusters`."""
    memory = visit.memory
    given = visit.given
    limit = min(visit.number("limit", SHOWN) or SHOWN, MOST)
    if given.get("note"):
        return _around(visit, [memory.find(given["note"])], limit)
    if given.get("q", "").strip() or any(
        given.get(name) for name in ("tag", "agent", "from", "until")
    ):
        hits = memory.search(lists.query_of(memory, given), limit=HITS, explain=True)
        return _around(visit, [hit.note for hit in hits], limit, hits.total) | hits.bound
    infos, _ = memory.list(lists.query_of(memory, given), limit=0)
    cluster = given.get("cluster", "")
    # A folder with all below it, with a final `/` without
    if cluster:
        places = ((info, "/".join(_place(info)) + "/") for info in infos)
        infos = [each for each, at in places if at == cluster or at.startswith(f"{cluster}/")]
    if (
        len(infos) > WHOLE
        and not cluster.endswith("/")
        and (found := _clusters(memory, infos, given))
    ):
        return found
    pairs = memory.relations({info.row for info in infos})
    return _notes(infos, pairs, set(), limit, len(infos), given, memory.settings.zone)


def _depth(visit: Visit) -> int:
    return min(max(visit.number("depth", 2 if visit.given.get("note") else 1), 1), 4)


def _around(visit: Visit, infos: Sequence[NoteInfo], limit: int, total: int = 0) -> dict[str, Any]:
    notes, pairs = visit.memory.neighbourhood(infos, depth=_depth(visit), limit=limit)
    found = [note for note in notes if visit.given.get("project") in (None, "", note.project)]
    start = {info.row for info in infos}
    zone = visit.memory.settings.zone
    return _notes(found, pairs, start, limit, max(total, len(notes)), visit.given, zone)


def _notes(
    infos: Sequence[NoteInfo],
    pairs: set[tuple[int, int, str]],
    start: set[int],
    limit: int,
    total: int,
    given: Mapping[str, str],
    zone: tzinfo | None,
) -> dict[str, Any]:
    """These notes, of too many those that begin it and those with most links; days are of `zone`."""
    known = {info.row for info in infos}
    pairs = {
        (a, b, kind)
        for a, b, kind in pairs
        if a in known and b in known and given.get("type") in (None, "", kind)
    }
    degree = Counter(row for pair in pairs for row in pair[:2])
    infos = sorted(infos, key=lambda each: (each.row not in start, -degree[each.row], each.title))[
        :limit
    ]
    shown = {info.row for info in infos}
    nodes = [
        {
            "id": info.row,
            "title": info.title[:120],
            "url": note_url(info.project, info.path),
            "size": degree[info.row],
            "cluster": "/".join(_place(info)[:2]),
            "start": info.row in start,
            "date": day_of(info, zone),
        }
        for info in infos
    ]
    links = [
        {"from": a, "to": b, "type": kind}
        for a, b, kind in sorted(pairs)
        if a in shown and b in shown
    ]
    return {"nodes": nodes, "links": links, "total": total, "clusters": False}


def _clusters(
    memory: MemorySession, infos: Sequence[NoteInfo], given: Mapping[str, str]
) -> dict[str, Any] | None:
    """The clusters of notes as nodes, `size` the notes in each, and how many links lead from one to
    another. They are the folders of the first level that has several; None when none has."""
    places = {info.row: _place(info) for info in infos}
    for depth in range(1, max(map(len, places.values()))):
        of = {
            row: "/".join(place[: depth + 1]) + "/" * (len(place) <= depth)
            for row, place in places.items()
        }
        if len(set(of.values())) > 1:
            break
    else:
        return None
    sizes = Counter(of.values())
    between = Counter[tuple[str, str]]()
    for a, b, kind in memory.relations():
        if a in of and b in of and of[a] != of[b] and given.get("type") in (None, "", kind):
            between[min(of[a], of[b]), max(of[a], of[b])] += 1
    kept = {name: given[name] for name in ("project", "category", "archive") if given.get(name)}
    inside = given.get("cluster", "")
    projects = {name: name.partition("/")[0] for name in sizes}
    if len(set(projects.values())) > 1:
        colours = projects
    else:
        colours = {name: name for name in sizes}
    nodes = [
        {
            "id": name,
            "title": name.removeprefix(inside).strip("/") or name.strip("/").rpartition("/")[2],
            "url": f"{HOME}/graph?{urlencode(kept | {'cluster': name})}",
            "size": size,
            "cluster": colours[name],
            "start": False,
            "date": "",
        }
        for name, size in sizes.most_common(MOST)
    ]
    links = [
        {"from": a, "to": b, "type": "", "weight": number}
        for (a, b), number in sorted(between.items())
    ]
    return {"nodes": nodes, "links": links, "total": len(of), "clusters": True}


def _place(info: NoteInfo) -> list[str]:
    """The project and the category, else the folders, a note is in."""
    if info.category and info.phase:
        return [info.project, info.category]
    return [info.project, *info.path.split("/")[:-1]]
