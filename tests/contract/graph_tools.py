"""The graph tools in this process, by their short names."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from contract.mcp_server import environment
from memoranda.engine import MemorySession
from memoranda.engine.graphs import opener
from memoranda.faces import graph
from memoranda.faces.tool import Registry
from serve.forked import run


class Nodes:
    """The tools by their short names; each answer is its data, checked against its text."""

    def __init__(self, memory: MemorySession, **options: Any):
        self.memory = memory
        self._registry = Registry([graph.toolset(**options)])

    def like(self, **options: Any) -> Nodes:
        return Nodes(self.memory, **options)

    def reply(self, tool: str, arguments: Any):
        return self._registry.call(self.memory, f"memory_{tool}", arguments)

    def error(self, tool: str, **arguments: Any) -> str:
        reply = self.reply(tool, arguments)
        assert reply.is_error
        assert reply.data is None
        return reply.text

    def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        reply = self.reply(tool, arguments)
        assert not reply.is_error, reply.text
        assert reply.data is not None
        return reply.data

    def text(self, tool: str, **arguments: Any) -> str:
        return self.reply(tool, arguments).text

    def entity(self, name: str, *observations: str, kind: str = "thing") -> None:
        self(
            "create_entities",
            entities=[{"name": name, "entityType": kind, "observations": list(observations)}],
        )

    def relate(self, *triples: str) -> None:
        split = [triple.split() for triple in triples]
        self(
            "create_relations",
            relations=[{"from": a, "to": c, "relationType": b} for a, b, c in split],
        )

    def names(self, tool: str, **arguments: Any) -> list[str]:
        return [found_entity["name"] for found_entity in self(tool, **arguments)["entities"]]

    def triples(self, tool: str, **arguments: Any) -> list[str]:
        return [
            f"{r['from']} {r['relationType']} {r['to']}"
            for r in self(tool, **arguments)["relations"]
        ]

    def files(self, project: str = "graph") -> dict[str, str]:
        root = self.memory.home / project
        return {str(p.relative_to(root)): p.read_text("utf-8") for p in sorted(root.rglob("*.md"))}


class GraphFile:
    """A graph file, alone in its folder, and the tools over it."""

    def __init__(self, folder: Path, memory: MemorySession):
        self.place = folder / "memory.jsonl"
        self.memory = memory
        self.nodes = Nodes(memory, open_graph=opener(self.place))

    def write(self, data: str | bytes) -> None:
        self.place.write_bytes(data if isinstance(data, bytes) else data.encode())

    @property
    def data(self) -> bytes:
        return self.place.read_bytes()

    @property
    def text(self) -> str:
        return self.data.decode()

    def names(self) -> list[str]:
        return self.nodes.names("read_graph")

    def names_anew(self) -> list[str]:
        """As a reader sees them that has not read the file before."""
        return Nodes(self.memory, open_graph=opener(self.place)).names("read_graph")

    def add(self, name: str, *texts: str) -> None:
        self.nodes("add_observations", observations=[{"entityName": name, "contents": [*texts]}])

    def drop(self, name: str, *texts: str) -> None:
        self.nodes(
            "delete_observations", deletions=[{"entityName": name, "observations": [*texts]}]
        )

    def delete(self, *names: str) -> None:
        self.nodes("delete_entities", entityNames=[*names])

    def warnings(self) -> list[str]:
        meta = self.nodes.reply("read_graph", {}).meta
        if meta:
            return meta["memoranda/warnings"]
        return []

    def log(self) -> list[str]:
        return [change.verb for change in self.memory.log()]

    def is_alone(self) -> bool:
        return [path.name for path in self.place.parent.iterdir()] == [self.place.name]


def person(name: str, *texts: str) -> str:
    """The line of an entity as we write it."""
    row = {"type": "entity", "name": name, "entityType": "person", "observations": texts}
    return json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n"


DEADLY = """
import os, sys
from pathlib import Path
from memoranda.engine import open_session
from memoranda.note.entity import Entity
from memoranda.engine.graphs import opener

point, count, file, home, change = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4], sys.argv[5]
with open_session(home, watch=False) as memory:
    graph = opener(file)(memory, "graph")
    graph.keys()
    name = {"torn": "write"}.get(point, point.split()[-1])
    real, inode, seen = getattr(os, name), file.stat().st_ino, []

    def torn(fd, data):
        if os.fstat(fd).st_ino != inode:
            return real(fd, data)
        real(fd, data[:count])
        os._exit(9)

    def deadly(*arguments, **more):
        seen.append(name)
        if len(seen) == count and point == name:
            os._exit(9)
        found = real(*arguments, **more)
        if len(seen) == count:
            os._exit(9)
        return found

    setattr(os, name, torn if point == "torn" else deadly)
    if change == "append":
        graph.create_entities([Entity(each, "person") for each in "xyz"])
    else:
        graph.add_observations([("Ada", ["x"])])
os._exit(7)
"""
"""Changes a graph file and dies: at the `count`-th call of os.NAME, right `after NAME`, or having
written only `count` bytes of an append (`torn`). Status 7: it lived."""


def die(graph_file: GraphFile, point: str, count: int, change: str = "append") -> int:
    """The status of a process that dies there."""
    arguments = [point, str(count), str(graph_file.place), str(graph_file.memory.home), change]
    return run([sys.executable, "-c", DEADLY, *arguments], env=environment()).returncode
