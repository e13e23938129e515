"""Figures of the graph and key-value tools, called as a client calls them, but in this process."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import plain
from ground import Ground
from memoranda.engine import MemorySession, open_session
from memoranda.faces import registry
from memoranda.faces.tool import Registry
from memoranda.note.entry import DEFAULT_NAMESPACE, places
from table import Budget, Row, interleaved, milliseconds

GRAPH_TIMES = 0.2
SMALL_TIMES = 1.0
RECALL_TIMES = 2.0
REWRITE_TIMES = 0.1
RECALL_MS = 5.0
REMEMBER_MS = 10.0
MANY = 10_000
"""The number of entities from which a graph call may take a fifth of the baseline's time, and a
recall a tenth of the time of writing all entries as one file. With fewer, each may take all of it.
"""
ROUNDS = 30


def graph(ground: Ground) -> list[Row]:
    """Lookup, search and write of entities, beside a JSON Lines file read whole for each call, and
    written whole for a change, as the reference server does it."""
    rows = []
    for entities in (ground.small, ground.notes):
        home = ground.folder / f"graph-{entities}"
        lines = ground.folder / f"graph-{entities}.jsonl"
        _seed_graph(home / "graph", lines, entities)
        budget = Budget(times=GRAPH_TIMES if entities >= MANY else SMALL_TIMES)
        with open_session(home) as memory:
            memory.sync()
            times_by_call = _graph_times(
                memory, registry(["graph"], memory.settings), lines, entities
            )
        rows += [
            Row(f"graph {name}, {entities:,} entities", "ms", *times, "JSON Lines", budget)
            for name, times in times_by_call.items()
        ]
    return rows


def _graph_times(
    memory: MemorySession, tools: Registry, lines: Path, entities: int
) -> dict[str, list[list[float]]]:
    chance = Random(5)
    call = partial(_call, tools, memory)
    calls = {
        "lookup": "memory_open_nodes",
        "search": "memory_search_nodes",
        "write": "memory_create_entities",
    }
    times: dict[str, list[list[float]]] = {name: [[], []] for name in calls}
    for number in range(ROUNDS):
        name = _name(chance.randrange(entities))
        new = {"name": f"Newcomer {number}", "entityType": "person", "observations": ["came late"]}
        mark = _mark(chance.randrange(entities))
        arguments = {
            "lookup": {"names": [name]},
            "search": {"query": mark},
            "write": {"entities": [new]},
        }
        raw = {
            "lookup": partial(plain.open_node, lines, name),
            "search": partial(plain.search_nodes, lines, mark),
            "write": partial(plain.create_entity, lines, {"type": "entity", **new}),
        }
        for verb, tool in calls.items():
            pair = interleaved(
                1,
                partial(milliseconds, partial(call, tool, arguments[verb])),
                partial(milliseconds, raw[verb]),
            )
            for times_so_far, measured in zip(times[verb], pair, strict=True):
                times_so_far += measured
    return times


def recall(ground: Ground) -> list[Row]:
    """One key read by its name, with few and with many other keys, and beside a JSON file written
    whole at each recall, as the agent-memory server does it; and a key written among many."""
    times_by_size: dict[int, list[float]] = {}
    written: list[float] = []
    for entries in (ground.small, ground.notes):
        home = ground.folder / f"kv-{entries}"
        _seed_keys(home / "kv", entries)
        chance = Random(6)
        with open_session(home) as memory:
            memory.sync()
            call = partial(_call, registry(["kv"], memory.settings), memory, "memory_recall")
            call({"key": _key(0)})
            keys = [_key(chance.randrange(entries)) for _ in range(100)]
            times_by_size[entries] = [milliseconds(partial(call, {"key": key})) for key in keys]
            put = partial(_call, registry(["kv"], memory.settings), memory, "memory_remember")
            new = [{"key": f"new-{number}", "value": f"value {number}"} for number in range(ROUNDS)]
            written = [milliseconds(partial(put, new_key)) for new_key in new]
    few, many = times_by_size.values()
    file = ground.folder / f"kv-{ground.notes}.json"
    plain.write_entries(file, {_key(number): f"value {number}" for number in range(ground.notes)})
    whole = [milliseconds(partial(plain.recall, file, key)) for key in keys[:ROUNDS]]
    share = Budget(times=REWRITE_TIMES if ground.notes >= MANY else SMALL_TIMES)
    few_keys = f"with {ground.small:,} keys"
    return [
        Row(
            f"recall of a key, {ground.notes:,} keys",
            "ms",
            many,
            few,
            few_keys,
            Budget(times=RECALL_TIMES),
        ),
        Row(f"  beside a JSON file of {ground.notes:,}", "ms", many, whole, "JSON file", share),
        Row("  by the clock", "ms", many, budget=Budget(most=RECALL_MS)),
        Row(
            f"remember a key, {ground.notes:,} keys", "ms", written, budget=Budget(most=REMEMBER_MS)
        ),
    ]


def _call(tools: Registry, memory: MemorySession, name: str, arguments: dict[str, Any]) -> None:
    """One tool call. Raises RuntimeError when the tool refuses."""
    reply = tools.call(memory, name, arguments)
    if reply.is_error:
        raise RuntimeError(f"{name} was refused: {reply.text}")


def _name(number: int) -> str:
    return f"Person {number}"


def _mark(number: int) -> str:
    """A word only the observations of entity `number` hold."""
    return f"mark{number}end"


def _key(number: int) -> str:
    return f"setting-{number}"


def _seed_graph(folder: Path, lines: Path, entities: int) -> None:
    """Entities of three observations and two relations each: as notes, and as a JSON Lines file."""
    folder.mkdir(parents=True)
    entity_rows = []
    relation_rows = []
    for number in range(entities):
        name = _name(number)
        neighbors = [_name((number * 7 + step) % entities) for step in (1, 2)]
        observations = [
            f"was seen with {_mark(number)}",
            "likes tea in the morning",
            "works at the harbour",
        ]
        items = "\n".join(f"- {observation}" for observation in observations)
        links = "\n".join(f"- knows [[{neighbor}]]" for neighbor in neighbors)
        header = f"---\ntitle: {name}\ntype: person\n---\n"
        (folder / f"{name}.md").write_text(
            f"{header}\n## Observations\n\n{items}\n\n## Relations\n\n{links}\n"
        )
        entity_rows.append(
            {"type": "entity", "name": name, "entityType": "person", "observations": observations}
        )
        relation_rows += [
            {"type": "relation", "from": name, "to": neighbor, "relationType": "knows"}
            for neighbor in neighbors
        ]
    lines.write_text("\n".join(map(json.dumps, [*entity_rows, *relation_rows])))


def _seed_keys(folder: Path, entries: int) -> None:
    for number in range(entries):
        place = folder / next(places(DEFAULT_NAMESPACE, _key(number)))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(
            f"---\ntype: kv\nnamespace: {DEFAULT_NAMESPACE}\nkey: {_key(number)}\ncreated_at: 2026-01-01T00:00:00Z\n"
            f"accessed_at: 2026-01-01T00:00:00Z\nexpires_at: null\naccess_count: 0\n---\nvalue {number}\n"
        )
