"""Chooses the notes that a graph of a whole memory shows.

Nobody can read a graph of all notes. The notes with the most links are not a good choice either:
upkeep links memories that say nearly the same, so hundreds of similar notes link to each other. So
links between groups count more, each group gets some notes, and only one of several similar memories
is chosen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import sqrt

Pairs = set[tuple[int, int, str]]
"""Links: the index row of the note with the link, the row of its target, and the kind of link."""

MOST_GROUPS = 11
"""Groups of a graph: as many colours as people can tell apart."""
# A link inside a group counts as this part of a link to another group.
_INSIDE = 0.25
# Each group gets at least this many notes, and at most this many notes without links.
_LEAST = 3
# A memory with links to this many chosen memories is similar to them.
_ALIKE = 2


def group_of(place: Sequence[str]) -> str:
    """Return the group of a place: the project with the first folder or the category."""
    return "/".join(place[:2])


def groups_by_row(places: Mapping[int, Sequence[str]], pairs: Pairs) -> dict[int, str]:
    """Return the group of each note, by its row in the index: at most about MOST_GROUPS groups.

    The least important groups are joined to the group of their project.

    places: the place of each note, by row (see `group_of`).
    pairs: the links between the notes.
    """
    groups = {row: group_of(place) for row, place in places.items()}
    importance = _importance(groups, pairs)
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


def notes_that_matter(
    groups: Mapping[int, str], memories: Collection[int], pairs: Pairs, limit: int
) -> list[int]:
    """Return the rows of at most `limit` notes to show, the most important first.

    groups: the group of each note, by its row in the index.
    memories: the rows of memories. Upkeep links memories that are similar.
    pairs: the links between the notes.
    """
    if len(groups) <= limit:
        return list(groups)
    rows_by_group: dict[str, list[int]] = defaultdict(list)
    for row, name in groups.items():
        rows_by_group[name].append(row)
    importance = _importance(groups, pairs)
    alike = _alike(groups, memories, pairs)
    # A group gets notes by the square root of its size, so that a large group leaves room for others.
    all_shares = sum(sqrt(len(rows)) for rows in rows_by_group.values())
    chosen: list[int] = []
    for rows in rows_by_group.values():
        room = max(_LEAST, round(limit * sqrt(len(rows)) / all_shares))
        rows.sort(key=lambda row: (-importance[row], row))
        chosen += _first_different(rows, alike, importance, room)
    chosen.sort(key=lambda row: (-importance[row], row))
    return chosen[:limit]


def _importance(groups: Mapping[int, str], pairs: Pairs) -> dict[int, float]:
    """Return how important each note is, by row: the number of its links, with their weights."""
    importance: dict[int, float] = defaultdict(float)
    for source, target, _ in pairs:
        is_inside = groups.get(source) == groups.get(target)
        weight = _INSIDE if is_inside else 1.0
        importance[source] += weight
        importance[target] += weight
    return importance


def _alike(
    groups: Mapping[int, str], memories: Collection[int], pairs: Pairs
) -> Mapping[int, set[int]]:
    """Return the memories of its group that each memory is linked with, by row."""
    alike: dict[int, set[int]] = defaultdict(set)
    for source, target, _ in pairs:
        are_memories = source in memories and target in memories
        if are_memories and groups.get(source) == groups.get(target):
            alike[source].add(target)
            alike[target].add(source)
    return alike


def _first_different(
    rows: Iterable[int],
    alike: Mapping[int, set[int]],
    importance: Mapping[int, float],
    room: int,
) -> list[int]:
    """Return the first rows of notes that are not similar to the notes chosen before them.

    rows: the rows of a group, the most important first.
    alike: the similar memories of each memory.
    room: how many rows to return at most.
    """
    chosen: list[int] = []
    unlinked = 0
    for row in rows:
        is_unlinked = not importance.get(row)
        if len(chosen) >= room or (is_unlinked and unlinked >= _LEAST):
            break
        if len(alike.get(row, set()).intersection(chosen)) >= _ALIKE:
            continue
        chosen.append(row)
        unlinked += is_unlinked
    return chosen
