"""Chooses the notes that a graph of a whole memory shows.

Nobody can read a graph of all notes. The notes with the most links are not a good choice either:
upkeep links memories that say nearly the same, so hundreds of similar notes link to each other.
Therefore links between groups count more, several groups get hubs, and only a few of many similar
memories are chosen. The other notes are those that connect the hubs, so that the graph is not made
of single points.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import ceil
from zlib import crc32

Pairs = set[tuple[int, int, str]]
"""Links: the index row of the note with the link, the row of its target, and the kind of link."""

MOST_GROUPS = 11
"""Groups of a graph: as many colours as people can tell apart."""
PALETTE = (
    "#4c86b0",
    "#d08a3a",
    "#6b9e5b",
    "#a86a9d",
    "#c4635b",
    "#b3a63c",
    "#45a3a3",
    "#7a78c2",
    "#8a5a3c",
    "#d07fae",
    "#5b6f86",
    "#9a9a98",
)
"""Colours of groups: the same on every day and in every picture. The last one is grey."""
COLOURS = len(PALETTE)
# The colours of what most memories have.
_OWN_COLOURS = {
    "notes": 0,
    "categories": 1,
    "vault": 2,
    "categories/people": 1,
    "categories/preferences": 5,
    "categories/knowledge": 3,
    "categories/lessons": 4,
    "categories/habits": 2,
    "categories/decisions": 6,
    "notes/people": 8,
    "notes/projects": 7,
}
# A link inside a group counts as this part of a link to another group.
_INSIDE = 0.25
# One of so many notes is a hub. No group has more of the hubs than this part.
_PART_OF_HUBS = 4
_GROUPS_OF_HUBS = 3
# A memory with links to this many chosen memories is similar to them.
_ALIKE = 2


def group_of(place: Sequence[str]) -> str:
    """Return the group of a place: the project with the first folder or the category."""
    return "/".join(place[:2])


def groups_by_row(places: Mapping[int, Sequence[str]], pairs: Pairs) -> dict[int, str]:
    """Return the group of each note, by its row in the index: at most about MOST_GROUPS groups.

    The least important groups are joined to the group of their project.

    places: row -> the project of the note and the parts of its folder.
    pairs: the links between the notes.
    """
    groups = {row: group_of(place) for row, place in places.items()}
    importance = importance_of(groups, pairs)
    group_importance: dict[str, float] = defaultdict(float)
    for row, name in groups.items():
        group_importance[name] += importance[row]
    if len(group_importance) <= MOST_GROUPS:
        return groups
    names = sorted(group_importance, key=lambda name: (-group_importance[name], name))
    kept_names = set(names[: MOST_GROUPS - 1])
    return {
        row: name if name in kept_names else name.partition("/")[0] for row, name in groups.items()
    }


def colours_of(names: Iterable[str]) -> dict[str, int]:
    """Return the number of each group's colour, by its name: 0 to COLOURS - 1.

    A group has the same colour in every picture, unless another one has it there. The last colour
    is for groups of which there are too many to tell them apart.
    """
    colours: dict[str, int] = {}
    last = COLOURS - 1
    # Names with a colour of their own come first, so that no other name takes it.
    for name in sorted(names, key=lambda name: (name not in _OWN_COLOURS, name)):
        # A checksum of the name is the same on every day.
        first_choice = _OWN_COLOURS.get(name, crc32(name.encode()) % last)
        taken = set(colours.values())
        # If the first choice is taken, the next free number, from the last one on to the first.
        choices = ((first_choice + step) % last for step in range(last))
        colours[name] = next((number for number in choices if number not in taken), last)
    return colours


def notes_that_matter(
    groups: Mapping[int, str], memories: Collection[int], pairs: Pairs, limit: int
) -> list[int]:
    """Return the rows of at most `limit` notes to show, the most important first.

    These are hubs, which many notes link to, and notes that connect them. A memory without any links
    gives its first notes.

    groups: the group of each note, by its row in the index.
    memories: the rows of memories. Upkeep links memories that are similar.
    pairs: the links between the notes.
    """
    importance = importance_of(groups, pairs)
    ordered = sorted(groups, key=lambda row: (-importance[row], row))
    linked = [row for row in ordered if importance[row]]
    if len(groups) <= limit or not linked:
        return ordered[:limit]
    # Of many memories that are like each other, only a few are shown.
    alike = _similar_memories(groups, memories, pairs)
    hubs = _hubs(linked, groups, alike, limit // _PART_OF_HUBS)
    chosen = _with_neighbours(hubs, importance, pairs, alike, limit)
    taken = set(chosen)
    # The rest of the room is for the most important of the other notes.
    for row in linked:
        if len(chosen) >= limit:
            break
        if row not in taken and not _is_like(row, taken, alike):
            chosen.append(row)
            taken.add(row)
    return chosen


def nearest_rows(rows: Sequence[int], pairs: Pairs, start: Collection[int], limit: int) -> set[int]:
    """Return at most `limit` rows: those to begin with, then the most linked ones.

    Each of the others is linked to a row that was chosen before it.

    rows: the rows to choose from.
    start: the rows to begin with.
    """
    among = set(rows)
    all_neighbours = neighbours_of(rows, pairs)
    neighbours = {row: linked & among for row, linked in all_neighbours.items()}
    # False sorts before True, so those to begin with come first.
    order = sorted(rows, key=lambda row: (row not in start, -len(neighbours[row])))
    chosen = {row for row in order[:limit] if row in start}
    while len(chosen) < limit:
        near = (row for row in order if row not in chosen and neighbours[row] & chosen)
        next_row = next(near, None)
        if next_row is None:
            break
        chosen.add(next_row)
    return chosen


def neighbours_of(rows: Iterable[int], pairs: Pairs, kind: str = "") -> Mapping[int, set[int]]:
    """Return the rows that are linked with each of these rows.

    kind: the kind of links. "" means all.
    """
    neighbours: dict[int, set[int]] = {row: set() for row in rows}
    for source, target, name in pairs:
        if kind not in ("", name) or source == target:
            continue
        if source in neighbours:
            neighbours[source].add(target)
        if target in neighbours:
            neighbours[target].add(source)
    return neighbours


def _hubs(
    rows: Iterable[int], groups: Mapping[int, str], alike: Mapping[int, set[int]], room: int
) -> list[int]:
    """Return the first rows that are not similar to each other, with room for several groups.

    rows: the rows of notes, the most important first.
    groups: row of a note -> its group.
    alike: row of a memory -> the rows of the memories that are similar to it.
    room: how many rows to return at most.
    """
    hubs: list[int] = []
    numbers = Counter[str]()
    most_of_group = ceil(room / _GROUPS_OF_HUBS)
    for row in rows:
        if len(hubs) >= room:
            break
        if numbers[groups[row]] < most_of_group and not _is_like(row, set(hubs), alike):
            hubs.append(row)
            numbers[groups[row]] += 1
    return hubs


def _with_neighbours(
    hubs: Sequence[int],
    importance: Mapping[int, float],
    pairs: Pairs,
    alike: Mapping[int, set[int]],
    limit: int,
) -> list[int]:
    """Return the hubs, and notes that are linked with them, at most `limit` rows.

    The hubs take turns: each adds its next neighbour, those first that connect most hubs.

    hubs: the rows of the hubs.
    importance: row of a note -> how important the note is.
    pairs: the links between the notes.
    alike: row of a memory -> the rows of the memories that are similar to it.
    """
    neighbours = neighbours_of(importance, pairs)
    hub_counts = Counter(row for hub in hubs for row in neighbours[hub])

    def rank(row: int) -> tuple[int, float, int]:
        """Put the neighbours of most hubs first, then the most important ones."""
        return -hub_counts[row], -importance[row], row

    chosen = list(hubs)
    taken = set(hubs)
    # The neighbours of each hub that were not looked at yet. A hub without any leaves the list.
    queues = [iter(sorted(neighbours[hub], key=rank)) for hub in hubs]
    while queues and len(chosen) < limit:
        queue = queues.pop(0)
        new_row = next(
            (row for row in queue if row not in taken and not _is_like(row, taken, alike)), None
        )
        if new_row is None:
            continue
        chosen.append(new_row)
        taken.add(new_row)
        queues.append(queue)
    return chosen


def _is_like(row: int, chosen: Collection[int], alike: Mapping[int, set[int]]) -> bool:
    """Whether a memory is similar to several of those that are chosen."""
    return len(alike.get(row, set()).intersection(chosen)) >= _ALIKE


def importance_of(groups: Mapping[int, str], pairs: Pairs) -> dict[int, float]:
    """Return how important each note is, by row: the number of its links, with their weights.

    groups: row of a note -> its group. A link inside a group has less weight.
    pairs: the links between the notes.
    """
    importance: dict[int, float] = defaultdict(float)
    for source, target, _ in pairs:
        is_inside = groups.get(source) == groups.get(target)
        weight = _INSIDE if is_inside else 1.0
        importance[source] += weight
        importance[target] += weight
    return importance


def _similar_memories(
    groups: Mapping[int, str], memories: Collection[int], pairs: Pairs
) -> Mapping[int, set[int]]:
    """Return the memories that are similar to each memory: row -> rows.

    Upkeep links similar memories. So memories of one group that are linked count as similar.

    groups: row of a note -> its group.
    memories: the rows of memories.
    pairs: the links between the notes.
    """
    alike: dict[int, set[int]] = defaultdict(set)
    for source, target, _ in pairs:
        are_memories = source in memories and target in memories
        if are_memories and groups.get(source) == groups.get(target):
            alike[source].add(target)
            alike[target].add(source)
    return alike
