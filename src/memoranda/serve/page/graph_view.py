"""Graph: the notes around a note, or around the hits of a search, or all of them in clusters.

The page is shown immediately; graph.js asks `/api/graph` what to draw. Without a script the same
notes are a list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import tzinfo
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from memoranda.engine import MemorySession
from memoranda.engine.contents import places_passing
from memoranda.engine.link_walk import neighbourhood, relations
from memoranda.index.rows import NoteInfo, NotePlace, day_of
from memoranda.query import Query
from memoranda.serve.page.rendering import note_url
from memoranda.serve.page.search import query_of
from memoranda.serve.page.visit import HOME, Visit

FIRST_SHOWN = 150
"""Notes shown at first of a graph by links."""
# Notes drawn when nothing is asked for, and at most: beyond it nobody can read a graph.
SHOWN = 300
"""Notes shown unless told otherwise."""
MOST = 3000
"""Notes shown at most."""
HITS = 60
"""Hits of a search whose neighbourhood is shown."""
WHOLE = 400
"""The largest graph that is shown whole, in notes."""
BY_LINKS = "links"
"""How the page shows very many notes at first: those with most links, not the folders."""
# Characters of a title in the graph.
_TITLE = 120
_FIELDS = ("q", "project", "category", "tag", "agent", "from", "until", "archive")
# The fields of the form: it is open where one of them is chosen.
_CHOSEN = ("q", "project", "type", "limit")
_SEARCHING = ("tag", "agent", "from", "until")

Pairs = set[tuple[int, int, str]]
"""Links: from a row, to a row, of a kind."""


def show(visit: Visit) -> Response:
    """The page, or (`part` list) the same notes as a list."""
    memory = visit.memory
    fields = visit.fields
    query_fields = {
        name: fields[name]
        for name in (*_FIELDS, "note", "cluster", "depth", "limit", "type", "by")
        if fields.get(name)
    }
    is_whole = not any(fields.get(name) for name in ("note", "cluster", "q", *_SEARCHING))
    if is_whole:
        query_fields.setdefault("by", BY_LINKS)
    title = fields.get("cluster", "")
    if fields.get("note"):
        title = memory.find(fields["note"]).title
    return visit.html(
        "graph.html",
        fields=fields,
        asked=query_fields,
        by=query_fields["by"] if is_whole else "",
        kept={
            name: query_fields[name]
            for name in ("project", "category", "archive")
            if name in query_fields
        },
        title=title,
        is_filtered=any(fields.get(name) for name in _CHOSEN),
        depth=_depth(visit),
        projects=[project.name for project in memory.projects],
        drawing=drawing(visit) if fields.get("part") == "list" else None,
    )


def drawing(visit: Visit) -> dict[str, Any]:
    """Return what the script draws: `nodes`, `links` between them by `id`, `total` notes there are, and
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
    """All notes, or the notes of one cluster. Very many are shown as clusters."""
    memory = visit.memory
    fields = visit.fields
    all_places = places_passing(memory, query_of(memory, fields))
    places = _places_in(all_places, fields.get("cluster", ""))
    if _are_clusters(places, fields):
        clusters = _clusters(memory, places, fields)
        if clusters is not None:
            return clusters
    pairs = _relations_among(memory, places)
    if fields.get("by") == BY_LINKS and not fields.get("limit"):
        limit = FIRST_SHOWN
    chosen = set(_most_linked(places, pairs, limit))
    ids = tuple(place.id for place in all_places if place.row in chosen)
    listed, _ = memory.list(Query(ids=ids), limit=0)
    infos = [info for info in listed if info.row in chosen]
    return _notes(infos, pairs, set(), limit, len(places), fields, memory.settings.zone)


def _relations_among(memory: MemorySession, rows: Collection[int]) -> Pairs:
    """The links between these notes. For most of the notes, they are taken from the remembered
    links of all notes."""
    if 2 * len(rows) > memory.stats().total:
        return _pairs_among(
            relations(
                memory,
            ),
            set(rows),
            "",
        )
    return relations(memory, set(rows))


def _places_in(all_places: Iterable[NotePlace], cluster: str) -> dict[int, list[str]]:
    """By row, where the notes of a cluster are; of all notes where none is named."""
    places = {
        place.row: _place(place.project, place.path, place.category, place.phase)
        for place in all_places
    }
    if not cluster:
        return places
    return {row: place for row, place in places.items() if _is_in(place, cluster)}


def _are_clusters(places: Mapping[int, Sequence[str]], fields: Mapping[str, str]) -> bool:
    """Whether so many notes are drawn as clusters. Notes of one folder and the most linked notes
    are not.
    """
    is_folder_itself = fields.get("cluster", "").endswith("/")
    return len(places) > WHOLE and not is_folder_itself and fields.get("by") != BY_LINKS


def _is_in(place: Sequence[str], cluster: str) -> bool:
    """Whether a place is in a cluster: a folder with all below it, with a final `/` without."""
    name = "/".join(place) + "/"
    return name == cluster or name.startswith(f"{cluster}/")


def _most_linked(rows: Iterable[int], pairs: Pairs, limit: int) -> list[int]:
    """The rows with the most links."""
    degree = _degrees(pairs)
    return sorted(rows, key=lambda row: -degree[row])[:limit]


def _degrees(pairs: Pairs) -> Counter[int]:
    """How many links each row has, in both directions."""
    degree = Counter[int]()
    for source, target, _ in pairs:
        degree[source] += 1
        degree[target] += 1
    return degree


def _depth(visit: Visit) -> int:
    return min(max(visit.number("depth", 2 if visit.fields.get("note") else 1), 1), 4)


def _around(visit: Visit, infos: Sequence[NoteInfo], limit: int, total: int = 0) -> dict[str, Any]:
    notes, pairs = neighbourhood(visit.memory, infos, depth=_depth(visit), limit=limit)
    project = visit.fields.get("project")
    notes_shown = [note for note in notes if not project or note.project == project]
    start = {info.row for info in infos}
    zone = visit.memory.settings.zone
    return _notes(notes_shown, pairs, start, limit, max(total, len(notes)), visit.fields, zone)


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
    degree = _degrees(pairs)

    def importance(info: NoteInfo) -> tuple[bool, int, str]:
        return info.row not in start, -degree[info.row], info.title

    notes_shown = sorted(infos, key=importance)[:limit]
    # A row of the index would tell how many notes there are that this caller does not see
    numbers = {info.row: number for number, info in enumerate(notes_shown, 1)}
    nodes = [
        {
            "id": numbers[info.row],
            "title": info.title[:_TITLE],
            "url": note_url(info.project, info.path),
            "size": degree[info.row],
            "cluster": "/".join(_place(info.project, info.path, info.category, info.phase)[:2]),
            "start": info.row in start,
            "date": day_of(info, zone),
            "project": info.project,
        }
        for info in notes_shown
    ]
    links = [
        {"from": numbers[source], "to": numbers[target], "type": name}
        for source, target, name in sorted(pairs)
        if source in numbers and target in numbers
    ]
    return {"nodes": nodes, "links": links, "total": total, "clusters": False}


def _pairs_among(pairs: Pairs, rows: set[int], kind: str) -> Pairs:
    """The links among these notes, of one kind. An empty kind means all."""
    return {pair for pair in pairs if pair[0] in rows and pair[1] in rows and kind in ("", pair[2])}


def _clusters(
    memory: MemorySession, places: Mapping[int, Sequence[str]], fields: Mapping[str, str]
) -> dict[str, Any] | None:
    """The clusters of notes as nodes, and the number of links between them.

    `size` is the number of notes in each. Clusters are the folders of the first level that has
    several. None if no level has.
    """
    cluster_of = _first_split(places)
    if cluster_of is None:
        return None
    sizes = Counter(cluster_of.values())
    between = _links_between(memory, cluster_of, fields.get("type", ""))
    filters = {
        name: fields[name] for name in ("project", "category", "archive") if fields.get(name)
    }
    inside = fields.get("cluster", "")
    projects = {name.partition("/")[0] for name in sizes}
    nodes = [
        {
            "id": name,
            "title": _cluster_title(name, inside),
            "url": f"{HOME}/graph?{urlencode(filters | {'cluster': name})}",
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


def _cluster_title(name: str, inside: str) -> str:
    """Return the name of a cluster below the one it is shown in: its folder."""
    folder = name.removeprefix(inside).strip("/").removeprefix(".")
    return folder or name.strip("/").rpartition("/")[2]


def _first_split(places: Mapping[int, Sequence[str]]) -> dict[int, str] | None:
    """The cluster of each note, by row, at the first depth that has several.

    None if no depth has.
    """
    for depth in range(1, max(map(len, places.values()))):
        names: dict[tuple[str, ...], str] = {}
        cluster_of = {}
        for row, place in places.items():
            head = tuple(place[: depth + 1])
            # The notes of a folder itself, apart from those of its folders
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
    for source, target, name in relations(
        memory,
    ):
        source_cluster = cluster_of.get(source, "")
        target_cluster = cluster_of.get(target, "")
        if not source_cluster or not target_cluster or source_cluster == target_cluster:
            continue
        if kind not in ("", name):
            continue
        # A link has no direction between clusters
        first = min(source_cluster, target_cluster)
        second = max(source_cluster, target_cluster)
        between[(first, second)] += 1
    return between


def _place(project: str, path: str, category: str | None, phase: str | None) -> list[str]:
    """The project, and the category or the folders that a note is in."""
    if category and phase:
        return [project, category]
    return [project, *path.split("/")[:-1]]
