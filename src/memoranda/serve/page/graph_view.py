"""Graph: the notes around a note, or around the hits of a search, or all of them in clusters.

The page comes at once; graph.js asks `/api/graph` what to draw. Without a script the same notes
stand in a list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import tzinfo
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from memoranda.engine import MemorySession
from memoranda.index.rows import NoteInfo, day_of
from memoranda.serve.page.rendering import note_url
from memoranda.serve.page.search import query_of
from memoranda.serve.page.visit import HOME, Visit

# Notes drawn when nothing is asked for, and at most: beyond it nobody can read a graph.
SHOWN = 300
MOST = 3000
HITS = 60
WHOLE = 400
"""Notes shown unless told otherwise, and at most; hits of a search; the whole graph is shown by
notes up to so many.
"""
# Characters of a title in the graph.
_TITLE = 120
_FIELDS = ("q", "project", "category", "tag", "agent", "from", "until", "archive")
_SEARCHING = ("tag", "agent", "from", "until")

Pairs = set[tuple[int, int, str]]
"""Links: from a row, to a row, of a kind."""


def show(visit: Visit) -> Response:
    """The page, or (`part` list) what is to be drawn as a list."""
    memory = visit.memory
    fields = visit.fields
    asked = {
        name: fields[name]
        for name in (*_FIELDS, "note", "cluster", "depth", "limit", "type")
        if fields.get(name)
    }
    title = fields.get("cluster", "")
    if fields.get("note"):
        title = memory.find(fields["note"]).title
    return visit.html(
        "graph.html",
        fields=fields,
        asked=asked,
        title=title,
        depth=_depth(visit),
        projects=[project.name for project in memory.projects],
        drawing=drawing(visit) if fields.get("part") == "list" else None,
    )


def drawing(visit: Visit) -> dict[str, Any]:
    """What is to be drawn: `nodes`, `links` between them by `id`, `total` notes there are, and
    whether these are `clusters`.
    """
    memory = visit.memory
    fields = visit.fields
    limit = min(visit.number("limit", SHOWN) or SHOWN, MOST)
    if fields.get("note"):
        return _around(visit, [memory.find(fields["note"])], limit)
    if fields.get("q", "").strip() or any(fields.get(name) for name in _SEARCHING):
        hits = memory.search(query_of(memory, fields), limit=HITS, explain=True)
        return _around(visit, [hit.note for hit in hits], limit, hits.total) | hits.bound
    return _whole(visit, limit)


def _whole(visit: Visit, limit: int) -> dict[str, Any]:
    """All notes, or those of a cluster: by themselves, or of very many as clusters."""
    memory = visit.memory
    fields = visit.fields
    cluster = fields.get("cluster", "")
    listed, _ = memory.list(query_of(memory, fields), limit=0)
    places = {info.row: _place(info) for info in listed}
    if cluster:
        places = {row: place for row, place in places.items() if _is_in(place, cluster)}
    if len(places) > WHOLE and not cluster.endswith("/"):
        clusters = _clusters(memory, places, fields)
        if clusters is not None:
            return clusters
    pairs = memory.relations(set(places))
    by_row = {info.row: info for info in listed}
    infos = [by_row[row] for row in _most_linked(places, pairs, limit)]
    return _notes(infos, pairs, set(), limit, len(places), fields, memory.settings.zone)


def _is_in(place: Sequence[str], cluster: str) -> bool:
    """Whether a place is in a cluster: a folder with all below it, with a final `/` without."""
    name = "/".join(place) + "/"
    return name == cluster or name.startswith(f"{cluster}/")


def _most_linked(rows: Iterable[int], pairs: Pairs, limit: int) -> list[int]:
    """The rows with the most links."""
    degree = Counter(row for pair in pairs for row in pair[:2])
    return sorted(rows, key=lambda row: -degree[row])[:limit]


def _depth(visit: Visit) -> int:
    return min(max(visit.number("depth", 2 if visit.fields.get("note") else 1), 1), 4)


def _around(visit: Visit, infos: Sequence[NoteInfo], limit: int, total: int = 0) -> dict[str, Any]:
    notes, pairs = visit.memory.neighbourhood(infos, depth=_depth(visit), limit=limit)
    project = visit.fields.get("project")
    shown = [note for note in notes if not project or note.project == project]
    start = {info.row for info in infos}
    zone = visit.memory.settings.zone
    return _notes(shown, pairs, start, limit, max(total, len(notes)), visit.fields, zone)


def _notes(
    infos: Sequence[NoteInfo],
    pairs: Pairs,
    start: set[int],
    limit: int,
    total: int,
    fields: Mapping[str, str],
    zone: tzinfo | None,
) -> dict[str, Any]:
    """These notes, of too many those that begin it and those with most links; days are of `zone`."""
    pairs = _pairs_among(pairs, {info.row for info in infos}, fields.get("type", ""))
    degree = Counter(row for pair in pairs for row in pair[:2])

    def importance(info: NoteInfo) -> tuple[bool, int, str]:
        return info.row not in start, -degree[info.row], info.title

    shown = sorted(infos, key=importance)[:limit]
    shown_rows = {info.row for info in shown}
    nodes = [
        {
            "id": info.row,
            "title": info.title[:_TITLE],
            "url": note_url(info.project, info.path),
            "size": degree[info.row],
            "cluster": "/".join(_place(info)[:2]),
            "start": info.row in start,
            "date": day_of(info, zone),
            "project": info.project,
        }
        for info in shown
    ]
    links = [
        {"from": source, "to": target, "type": name}
        for source, target, name in sorted(pairs)
        if source in shown_rows and target in shown_rows
    ]
    return {"nodes": nodes, "links": links, "total": total, "clusters": False}


def _pairs_among(pairs: Pairs, rows: set[int], kind: str) -> Pairs:
    """The links between these notes, of one kind; empty: of all kinds."""
    return {pair for pair in pairs if pair[0] in rows and pair[1] in rows and kind in ("", pair[2])}


def _clusters(
    memory: MemorySession, places: Mapping[int, Sequence[str]], fields: Mapping[str, str]
) -> dict[str, Any] | None:
    """The clusters of notes as nodes, `size` the notes in each, and how many links lead from one to
    another. They are the folders of the first level that has several; None when none has.
    """
    cluster_of = _first_split(places)
    if cluster_of is None:
        return None
    sizes = Counter(cluster_of.values())
    between = _links_between(memory, cluster_of, fields.get("type", ""))
    kept = {name: fields[name] for name in ("project", "category", "archive") if fields.get(name)}
    inside = fields.get("cluster", "")
    projects = {name.partition("/")[0] for name in sizes}
    nodes = [
        {
            "id": name,
            "title": name.removeprefix(inside).strip("/") or name.strip("/").rpartition("/")[2],
            "url": f"{HOME}/graph?{urlencode(kept | {'cluster': name})}",
            "size": size,
            "cluster": name.partition("/")[0] if len(projects) > 1 else name,
            "start": False,
            "date": "",
        }
        for name, size in sizes.most_common(MOST)
    ]
    links = [
        {"from": source, "to": target, "type": "", "weight": number}
        for (source, target), number in sorted(between.items())
    ]
    return {"nodes": nodes, "links": links, "total": len(cluster_of), "clusters": True}


def _first_split(places: Mapping[int, Sequence[str]]) -> dict[int, str] | None:
    """By row, the cluster a note is in: at the first depth at which there are several."""
    for depth in range(1, max(map(len, places.values()))):
        names: dict[tuple[str, ...], str] = {}
        cluster_of = {}
        for row, place in places.items():
            head = tuple(place[: depth + 1])
            # What is in the folder itself, besides its folders
            key = head if len(place) > depth else (*head, "")
            name = names.get(key)
            if name is None:
                name = "/".join(key)
                names[key] = name
            cluster_of[row] = name
        if len(names) > 1:
            return cluster_of
    return None


def _links_between(
    memory: MemorySession, cluster_of: Mapping[int, str], kind: str
) -> Counter[tuple[str, str]]:
    """How many links lead from a note of one cluster to one of another."""
    between = Counter[tuple[str, str]]()
    for source, target, name in memory.relations():
        one = cluster_of.get(source)
        other = cluster_of.get(target)
        if one is None or other is None or one == other or kind not in ("", name):
            continue
        between[(one, other) if one < other else (other, one)] += 1
    return between


def _place(info: NoteInfo) -> list[str]:
    """The project and the category, else the folders, a note is in."""
    if info.category and info.phase:
        return [info.project, info.category]
    return [info.project, *info.path.split("/")[:-1]]
