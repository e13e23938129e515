"""Shows notes and their links as a graph.

The graph has the notes around one note, the notes around the hits of a search, or all notes. Very
many notes are grouped to clusters, which are folders. The page is shown immediately; its script
graph.js asks for the nodes and links to draw. Programs get them at `/api/graph`. Without a script the notes are a list.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from memoranda.engine import MemorySession
from memoranda.engine.contents import places_passing
from memoranda.engine.links.link_walk import neighbourhood, relations
from memoranda.index.rows import NoteInfo, NotePlace, day_of
from memoranda.note.model import CATEGORY_PROJECT
from memoranda.query import Query
from memoranda.serve.page.addresses import note_of_ref, note_url
from memoranda.serve.page.graph import panel as graph_panel
from memoranda.serve.page.graph.choice import (
    PALETTE,
    Pairs,
    colours_of,
    group_of,
    groups_by_row,
    importance_of,
    nearest_rows,
    neighbours_of,
    notes_that_matter,
)
from memoranda.serve.page.graph.names import group_titles, project_title, shown_title
from memoranda.serve.page.search import query_of
from memoranda.serve.page.visit import HOME, Visit

FIRST_SHOWN = 50
"""Notes that are shown if the field `limit` is not sent. The others come when a note is opened."""
EXAMINED = 300
"""Notes around a note or around hits of which the most linked ones are shown."""
MOST = 1000
"""Notes that are shown at most. Nobody can read a larger graph."""
HITS = 60
"""Hits of a search whose neighbourhood is shown."""
WHOLE = 400
"""The largest number of notes that are shown without grouping them to clusters."""
BY_LINKS = "links"
"""The value of the field `by` for the notes that matter instead of clusters."""
_MAX_TITLE_CHARACTERS = 120
_FIELDS = ("q", "project", "category", "tag", "agent", "from", "until", "archive")
# The fields of the form of filters. It is open if one of them has a value.
_FORM_FIELDS = ("q", "project", "type", "limit")
# Fields that make the request a search, even without words.
_SEARCH_FIELDS = ("tag", "agent", "from", "until")


def show(visit: Visit) -> Response:
    """Show the page with the graph.

    The field `part` asks for its notes as a "list", for the "panel" of one note, or for the
    "picture": what the script draws, with the words beside it.
    """
    memory = visit.memory
    fields = visit.fields
    if fields.get("part") == "panel":
        return graph_panel.show(visit)
    if fields.get("part") == "picture":
        return _show_drawing(visit)
    query_fields = {
        name: fields[name]
        for name in (*_FIELDS, "note", "cluster", "depth", "limit", "type", "by")
        if fields.get(name)
    }
    is_whole = not any(fields.get(name) for name in ("note", "cluster", "q", *_SEARCH_FIELDS))
    if is_whole:
        query_fields.setdefault("by", BY_LINKS)
    total = memory.stats().total
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
        title=_title(visit),
        total=total,
        are_folders=is_whole and query_fields["by"] != BY_LINKS and total > WHOLE,
        is_filtered=any(fields.get(name) for name in _FORM_FIELDS),
        depth=_depth(visit),
        today=visit.reader_clock.today,
        projects=[project.name for project in memory.projects],
        drawing=drawing(visit) if fields.get("part") == "list" else None,
    )


@dataclass(frozen=True)
class LegendGroup:
    """A line of the legend.

    address: the graph of the notes of this group. "" if the group is a cluster or a project.
    colour: of its circles, as "#4c86b0".
    notes: how many notes it has, drawn or not. 0 if the nodes are clusters.
    """

    title: str
    address: str
    colour: str
    notes: int


def _show_drawing(visit: Visit) -> Response:
    """Show the page for a drawing: its legend, list and caption. The script draws it."""
    shown = drawing(visit)
    groups = shown["groups"]
    nodes = []
    for node in shown["nodes"]:
        group = groups[node["cluster"]]
        nodes.append(node | {"colour": PALETTE[group["colour"]]})
    legend = [_legend_group(name, group) for name, group in groups.items()]
    return visit.html(
        "graph_picture.html",
        drawing=shown,
        drawing_json=json.dumps({**shown, "nodes": nodes, "groups": {}}),
        legend=sorted(legend, key=lambda group: -group.notes),
        relation_names=sorted({link["type"] for link in shown["links"]} - {""}),
    )


def _legend_group(name: str, group: Mapping[str, Any]) -> LegendGroup:
    notes = group.get("notes", 0)
    address = f"{HOME}/graph?{urlencode({'cluster': name})}" if notes else ""
    return LegendGroup(group["title"], address, PALETTE[group["colour"]], notes)


def _title(visit: Visit) -> str:
    """Return the title of the note or group that the graph shows. "" if it shows neither."""
    note = visit.fields.get("note")
    if note:
        return shown_title(visit, note_of_ref(visit.memory, note))
    group = visit.fields.get("cluster", "").strip("/")
    if group:
        return group_titles(visit.language, [group])[group]
    return ""


def drawing(visit: Visit) -> dict[str, Any]:
    """Return the nodes and links that the script draws.

    The keys are `nodes`, `links` (from and to the `id` of a node), `total` (how many notes there
    are), `clusters` (whether the nodes are clusters), and `groups`: the title and the colour of each
    group, by the `cluster` of its nodes, with its number of notes unless the nodes are clusters. The
    `more` of a node is how many linked notes are not drawn.
    """
    memory = visit.memory
    fields = visit.fields
    limit = min(visit.number("limit", FIRST_SHOWN) or FIRST_SHOWN, MOST)
    if fields.get("note"):
        return _drawing_around(visit, [note_of_ref(memory, fields["note"])], limit)
    if fields.get("q", "").strip() or any(fields.get(name) for name in _SEARCH_FIELDS):
        hits = memory.search(query_of(memory, fields), limit=HITS, explain=True)
        return _drawing_around(visit, [hit.note for hit in hits], limit, hits.total) | hits.bound
    return _drawing_of_all(visit, limit)


def _drawing_of_all(visit: Visit, limit: int) -> dict[str, Any]:
    """Return the drawing of all notes, or of one cluster (a folder of notes).

    Very many notes are drawn as clusters. Otherwise at most `limit` notes are drawn. By default
    these are the notes that matter (`notes_that_matter`); the reader may choose the notes with most
    links.
    """
    memory = visit.memory
    fields = visit.fields
    all_places = places_passing(memory, query_of(memory, fields))
    places = _places_in(all_places, fields.get("cluster", ""))
    if _are_clusters(places, fields):
        drawing_of_clusters = _drawing_of_clusters(visit, places)
        if drawing_of_clusters is not None:
            return drawing_of_clusters
    pairs = _relations_among(memory, places)
    if fields.get("by") != BY_LINKS:
        rows_shown = set(_most_linked(places, pairs, limit))
        infos = _infos_in(memory, all_places, rows_shown)
        return _drawing_of_notes(visit, infos, pairs, start=set(), limit=limit, total=len(places))
    groups = groups_by_row(places, pairs)
    memories = {place.row for place in all_places if place.phase and place.category}
    rows_by_importance = notes_that_matter(groups, memories, pairs, limit)
    infos = _infos_in(memory, all_places, set(rows_by_importance))
    start = _row_of_middle_note(memory, rows_by_importance)
    return _drawing_of_notes(
        visit, infos, pairs, start=start, limit=limit, total=len(places), groups=groups
    )


def _row_of_middle_note(memory: MemorySession, rows: Sequence[int]) -> set[int]:
    """Return the row of the note that belongs in the middle of a whole memory. Empty without notes.

    That is the first pinned note, or else the first note.

    rows: the rows that are shown, the most important first.
    """
    pinned_infos, _ = memory.list(Query(pinned=True), limit=0)
    pinned_rows = {info.row for info in pinned_infos}
    shown_pinned_rows = [row for row in rows if row in pinned_rows]
    candidates = [*shown_pinned_rows, *rows]
    return set(candidates[:1])


def _infos_in(
    memory: MemorySession, all_places: Iterable[NotePlace], rows: Collection[int]
) -> list[NoteInfo]:
    """Return the notes in these index rows."""
    # Notes are listed by their ids, not by their rows. `limit=0` means no limit.
    ids = tuple(place.id for place in all_places if place.row in rows)
    listed, _ = memory.list(Query(ids=ids), limit=0)
    # Several rows may have the same id: copies of a note.
    return [info for info in listed if info.row in rows]


def _relations_among(memory: MemorySession, rows: Collection[int]) -> Pairs:
    """Return the links between the notes in these index rows."""
    # The links of all notes are remembered. For more than half of the notes, filtering them is
    # faster than reading the links.
    is_most_notes = 2 * len(rows) > memory.stats().total
    if is_most_notes:
        return _pairs_among(relations(memory), set(rows), "")
    return relations(memory, set(rows))


def _places_in(all_places: Iterable[NotePlace], cluster: str) -> dict[int, list[str]]:
    """Return the places of the notes in a cluster, by index row.

    A place is the project and the folders of a note: `["notes", "work"]` for `notes/work/plan.md`.

    all_places: the notes to choose from.
    cluster: a folder. `notes/work` means the notes in that folder and below it, `notes/work/` only
        the notes in the folder itself. "" means all notes.
    """
    places = {
        place.row: _place(place.project, place.path, place.category, place.phase)
        for place in all_places
    }
    if not cluster:
        return places
    return {row: place for row, place in places.items() if _is_in(place, cluster)}


def _are_clusters(places: Mapping[int, Sequence[str]], fields: Mapping[str, str]) -> bool:
    """Whether the notes are so numerous that they must be drawn as clusters.

    The notes of a single folder are never clusters, nor are the notes with most links.
    """
    is_folder_itself = fields.get("cluster", "").endswith("/")
    return len(places) > WHOLE and not is_folder_itself and fields.get("by") != BY_LINKS


def _is_in(place: Sequence[str], cluster: str) -> bool:
    """Whether a place is in a cluster.

    The cluster `notes/work` has all notes in that folder and below it. The cluster `notes/work/`
    has only the notes in the folder itself.
    """
    name = "/".join(place) + "/"
    return name == cluster or name.startswith(f"{cluster}/")


def _most_linked(rows: Iterable[int], pairs: Pairs, limit: int) -> list[int]:
    """Return the rows with the most links."""
    link_counts = _link_counts(pairs)
    return sorted(rows, key=lambda row: -link_counts[row])[:limit]


def _importance(groups: Mapping[int, str], pairs: Pairs) -> Mapping[int, float]:
    """Return how important each row is. Upkeep links memories of any category that are similar, so
    links between memories count little.
    """
    # A link inside a group counts little. So all memories are one group here.
    memories = f"{CATEGORY_PROJECT}/"
    wider_groups = {
        row: memories if group.startswith(memories) else group for row, group in groups.items()
    }
    return importance_of(wider_groups, pairs)


def _link_counts(pairs: Pairs) -> Mapping[int, float]:
    """Return how many links each row has, in both directions."""
    link_counts = Counter[int]()
    for source, target, _ in pairs:
        link_counts[source] += 1
        link_counts[target] += 1
    return link_counts


def _depth(visit: Visit) -> int:
    """Return how many links away from the first notes the graph goes: 1 to 4."""
    default = 2 if visit.fields.get("note") else 1
    return min(max(visit.number("depth", default), 1), 4)


def _drawing_around(
    visit: Visit, infos: Sequence[NoteInfo], limit: int, total: int = 0
) -> dict[str, Any]:
    """Return a drawing of these notes and the notes near them.

    total: how many notes a search found, if it found more than are shown.
    """
    examined = max(limit, EXAMINED)
    notes, pairs = neighbourhood(visit.memory, infos, depth=_depth(visit), limit=examined)
    project = visit.fields.get("project")
    notes_shown = [note for note in notes if not project or note.project == project]
    start = {info.row for info in infos}
    rows_shown = nearest_rows([note.row for note in notes_shown], pairs, start, limit)
    infos_shown = [note for note in notes_shown if note.row in rows_shown]
    return _drawing_of_notes(
        visit, infos_shown, pairs, start=start, limit=limit, total=max(total, len(notes))
    )


def _drawing_of_notes(
    visit: Visit,
    infos: Sequence[NoteInfo],
    pairs: Pairs,
    start: set[int],
    limit: int,
    total: int,
    groups: Mapping[int, str] | None = None,
) -> dict[str, Any]:
    """Return the drawing of notes and the links between them.

    start: the rows of the notes with which the graph began. If there are too many notes, these and
        the notes with most links are drawn.
    limit: how many notes are drawn.
    total: how many notes there are.
    groups: the group of every note of the memory, by index row. None: each note that is drawn is
        in the group of its folder or category.
    """
    kind = visit.fields.get("type", "")
    pairs = _pairs_among(pairs, {info.row for info in infos}, kind)
    zone = visit.memory.settings.zone
    link_counts = _link_counts(pairs) if groups is None else _importance(groups, pairs)

    def sort_key(info: NoteInfo) -> tuple[bool, float, str, str]:
        """Put the notes of the beginning first, then those with most links.

        The order decides where the script puts a note, so it must be the same at each visit.
        """
        return info.row not in start, -link_counts[info.row], info.title, info.path

    notes_shown = sorted(infos, key=sort_key)[:limit]
    if groups is None:
        groups = {info.row: _group_of_note(info) for info in notes_shown}
    rows_shown = {info.row for info in notes_shown}
    neighbours = neighbours_of(rows_shown, relations(visit.memory), kind)
    # The script knows the notes by numbers of their own. Their rows in the index would show how many
    # notes there are that this caller may not see.
    numbers = {info.row: number for number, info in enumerate(notes_shown, 1)}
    nodes = [
        {
            "id": numbers[info.row],
            "title": shown_title(visit, info)[:_MAX_TITLE_CHARACTERS],
            "url": note_url(info.project, info.path),
            "size": ceil(link_counts[info.row]),
            "more": len(neighbours[info.row] - numbers.keys()),
            "cluster": groups[info.row],
            "start": info.row in start,
            "date": day_of(info, zone),
            "project": info.project,
        }
        for info in notes_shown
    ]
    numbered_pairs = [
        (numbers[source], numbers[target], name)
        for source, target, name in pairs
        if source in numbers and target in numbers
    ]
    links = [
        {"from": source, "to": target, "type": name}
        for source, target, name in sorted(numbered_pairs)
    ]
    return {
        "nodes": nodes,
        "links": links,
        "total": total,
        "clusters": False,
        "groups": _groups_shown(visit.language, notes_shown, groups),
    }


def _groups_shown(
    language: str, infos: Iterable[NoteInfo], groups: Mapping[int, str]
) -> dict[str, dict[str, Any]]:
    """Return title, number of notes and colour of each group in a drawing, by its name.

    infos: the notes that are drawn.
    groups: row of a note -> its group. The numbers also count notes that are not drawn.
    """
    names = dict.fromkeys(groups[info.row] for info in infos)
    numbers = Counter(groups.values())
    titles = group_titles(language, names)
    # Groups that are not drawn have colours, too: opening a note can add them.
    colours = colours_of(set(groups.values()))
    return {
        name: {"title": titles[name], "notes": numbers[name], "colour": colours[name]}
        for name in names
    }


def _pairs_among(pairs: Pairs, rows: set[int], kind: str) -> Pairs:
    """Return the links of a kind between notes in these rows. The kind "" means all kinds."""
    return {
        (source, target, name)
        for source, target, name in pairs
        if source in rows and target in rows and kind in ("", name)
    }


def _drawing_of_clusters(
    visit: Visit, places: Mapping[int, Sequence[str]]
) -> dict[str, Any] | None:
    """Return the drawing of clusters, and how many links are between them.

    Clusters are the folders at the first level that has several. None if no level has several.

    places: the place (`_place`) of each note, by index row.
    """
    fields = visit.fields
    cluster_of = _first_split(places)
    if cluster_of is None:
        return None
    sizes = Counter(cluster_of.values())
    between = _links_between(visit.memory, cluster_of, fields.get("type", ""))
    filters = {
        name: fields[name] for name in ("project", "category", "archive") if fields.get(name)
    }
    inside = fields.get("cluster", "")
    projects = {name.partition("/")[0] for name in sizes}
    titles = _titles_of_clusters(visit.language, sizes, inside)
    nodes = [
        {
            "id": name,
            "title": titles[name],
            "url": f"{HOME}/graph?{urlencode(filters | {'cluster': name})}",
            "size": size,
            "cluster": _group_of_cluster(name, projects),
            "start": False,
            "date": "",
        }
        for name, size in sizes.most_common(MOST)
    ]
    links = [
        {"from": source, "to": target, "type": "", "weight": number}
        for (source, target), number in sorted(between.items())
    ]
    group_by_cluster = {name: _group_of_cluster(name, projects) for name in sizes}
    colours = colours_of(set(group_by_cluster.values()))
    shown_groups = {
        name: {"title": _title_of_group(visit.language, name, titles), "colour": colour}
        for name, colour in sorted(colours.items())
    }
    return {
        "nodes": nodes,
        "links": links,
        "total": len(cluster_of),
        "clusters": True,
        "groups": shown_groups,
    }


def _group_of_cluster(name: str, projects: Collection[str]) -> str:
    """Return the group of a cluster: its project, or itself if all clusters are of one project."""
    return name.partition("/")[0] if len(projects) > 1 else name


def _title_of_group(language: str, name: str, titles: Mapping[str, str]) -> str:
    """Return the title of a group of clusters: a project, or a single cluster.

    titles: name of a group -> its title. Groups that are projects are missing.
    """
    return titles.get(name) or project_title(language, name)


def _titles_of_clusters(language: str, names: Iterable[str], inside: str) -> dict[str, str]:
    """Return the title of each cluster, by its name.

    inside: the cluster whose folders they are, which their titles need not repeat. "": all notes.
    """
    if not inside:
        titles = group_titles(language, [name.rstrip("/") for name in names])
        return {name: titles[name.rstrip("/")] for name in names}
    folders = {name: name.removeprefix(inside).strip("/") for name in names}
    # A cluster of the notes in the folder itself has the name of that folder.
    return {name: folder or inside.rpartition("/")[2] for name, folder in folders.items()}


def _first_split(places: Mapping[int, Sequence[str]]) -> dict[int, str] | None:
    """Return the name of each note's cluster, by row, at the first depth that has several clusters.

    The places `notes/a/b`, `notes/a` and `notes/a/c` first differ at depth 2. Their clusters are
    `notes/a/b`, `notes/a/` (the folder itself) and `notes/a/c`. None if no depth has several.
    """
    for depth in range(1, max(map(len, places.values()))):
        # Each name is made once, since there are many notes.
        names: dict[tuple[str, ...], str] = {}
        cluster_of = {}
        for row, place in places.items():
            folders = tuple(place[: depth + 1])
            # A final "" makes a cluster of the notes in the folder itself.
            key = folders if len(place) > depth else (*folders, "")
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
    """Return how many links connect two clusters, by their names in alphabetical order.

    cluster_of: row of a note -> the name of its cluster.
    kind: the kind of links to count. "" means all.
    """
    between = Counter[tuple[str, str]]()
    for source, target, name in relations(memory):
        source_cluster = cluster_of.get(source, "")
        target_cluster = cluster_of.get(target, "")
        if not source_cluster or not target_cluster or source_cluster == target_cluster:
            continue
        if kind not in ("", name):
            continue
        # Links between clusters are counted in both directions together.
        if source_cluster < target_cluster:
            between[source_cluster, target_cluster] += 1
        else:
            between[target_cluster, source_cluster] += 1
    return between


def _group_of_note(info: NoteInfo) -> str:
    return group_of(_place(info.project, info.path, info.category, info.phase))


def _place(project: str, path: str, category: str | None, phase: str | None) -> list[str]:
    """Return the place of a note: its project and folders, `["notes", "work"]`.

    The place of a memory is its project and category, `["categories", "facts"]`.
    """
    if category and phase:
        return [project, category]
    return [project, *path.split("/")[:-1]]
