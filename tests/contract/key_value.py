"""The key-value tools as callers meet them, a clock to set, and the cases of kv_replies.json."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from contract.tables import pattern
from memoranda import faces
from memoranda.engine import MemorySession
from memoranda.faces.tool import Registry

LIMIT = 25_000
CASES = json.loads(
    (Path(__file__).parent / "data" / "kv_replies.json").read_text(encoding="utf-8")
)["cases"]
NAMES = [case["name"] for case in CASES]
_MASKS = {
    "<TSMS>": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z",
    "<TS>": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
    "<INT>": r"\d+",
    "<SIZE>": r"\d+\.\d (?:B|KB|MB)",
    "<PATH>": r'/[^\n"]*',
}


class KeyValue:
    """Calls the tools as one caller. Every reply is one text within the limit, and nothing else."""

    def __init__(self, memory: MemorySession, registry: Registry | None = None):
        self.memory = memory
        self.registry = registry or faces.registry(["kv"], memory.settings)
        self.root = memory.home / "kv"

    def call(self, tool: str, **arguments: Any) -> tuple[str, bool]:
        """The text of a reply, and whether it is an error."""
        reply = self.registry.call(self.memory, f"memory_{tool}", arguments)
        assert reply.data is None
        assert len(reply.text) <= LIMIT
        return reply.text, reply.is_error

    def ok(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The fields of a reply that is no error."""
        text, failed = self.call(tool, format="json", **arguments)
        assert not failed, text
        fields = json.loads(text)
        assert fields.pop("status") == "ok"
        return fields

    def refused(self, tool: str, **arguments: Any) -> str:
        """The message of an error, which both formats word alike."""
        text, failed = self.call(tool, format="json", **arguments)
        assert failed, text
        fields = json.loads(text)
        assert fields == {"status": "error", "error": fields["error"], "isError": True}
        return fields["error"]

    def remember(self, key: str, value: str, namespace: str = "default", ttl: int = 0) -> None:
        """An entry kept."""
        fields = self.ok("remember", key=key, value=value, namespace=namespace, ttl_seconds=ttl)
        assert (fields["key"], fields["namespace"]) == (key, namespace or "default")

    def value(self, key: str, namespace: str = "default") -> str:
        """A whole value, in as many recalls as it takes."""
        pieces = []
        offset = 0
        while offset is not None:
            fields = self.ok("recall", key=key, namespace=namespace, offset=offset)
            pieces.append(fields["value"])
            offset = fields.get("next_offset")
        return "".join(pieces)

    def found(self, query: str, **arguments: Any) -> list[tuple[str, str]]:
        """(namespace, key) of what a search finds."""
        return [
            (result["namespace"], result["key"])
            for result in self.ok("search", query=query, **arguments)["results"]
        ]

    def as_agent(self, name: str) -> KeyValue:
        """The same entries for another caller."""
        return KeyValue(self.memory.as_caller(name, "mcp"), self.registry)

    def file(self, path: str) -> Path:
        """Return the path of a file of the project."""
        return self.root / path

    def put(self, path: str, text: str) -> Path:
        """A file made by hand."""
        file = self.file(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
        return file

    def files(self) -> dict[str, bytes]:
        """Every file of the project with its bytes."""
        return {
            str(path.relative_to(self.root)): path.read_bytes()
            for path in self.root.rglob("*")
            if path.is_file()
        }


def play(
    case: dict[str, Any],
    call: Callable[[str, dict[str, Any]], tuple[str, bool]],
    wait: Callable[[float], object],
) -> None:
    """Run the steps of a case; `call` gives (text, is error), `wait` lets seconds pass."""
    for step in case["steps"]:
        if "sleep" in step:
            wait(step["sleep"])
            continue
        text, failed = call(
            step["tool"], {name: _whole(value) for name, value in step["args"].items()}
        )
        assert failed == step["is_error"], text
        assert len(text) <= step.get("max_chars", LIMIT)
        if "text" in step:
            assert re.fullmatch(pattern(step["text"], _MASKS), text), text
        if "json_has" in step:
            assert json.loads(text).items() >= step["json_has"].items()


def _whole(value: Any) -> Any:
    if isinstance(value, dict):
        return value["repeat"][0] * value["repeat"][1]
    return value
