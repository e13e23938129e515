"""The graph tools in this process, by their short names."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from commonplace.engine import Memory
from commonplace.faces import graph
from commonplace.faces.tool import Registry


class Nodes:
    """The tools by their short names; each answer is its data, checked against its text."""

    def __init__(self, memory: Memory, **options: Any):
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
        self("create_entities", entities=[{"name": name, "entityType": kind, "observations": list(observations)}])

    def relate(self, *triples: str) -> None:
        split = [triple.split() for triple in triples]
        self("create_relations", relations=[{"from": a, "to": c, "relationType": b} for a, b, c in split])

    def names(self, tool: str, **arguments: Any) -> list[str]:
        return [each["name"] for each in self(tool, **arguments)["entities"]]

    def triples(self, tool: str, **arguments: Any) -> list[str]:
        return [f"{r['from']} {r['relationType']} {r['to']}" for r in self(tool, **arguments)["relations"]]

    def files(self, project: str = "graph") -> dict[str, str]:
        root = self.memory.home / project
        return {str(p.relative_to(root)): p.read_text("utf-8") for p in sorted(root.rglob("*.md"))}


class Ticking:
    """A clock that moves a second at each look."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now
