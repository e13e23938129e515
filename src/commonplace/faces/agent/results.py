"""What a call answers, as clients of the agent tools see it: contract 001, 13 and 14."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from commonplace.faces import Reply

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.faces.tool import Registry

_PREFIX = "commonplace/"
_SOFT = ("invalid", "timeframe")


def compact(value: Any) -> str:
    """`value` as the text of a result: JSON without blanks, keys sorted, non-ASCII as it is."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def success(content: str, **metadata: Any) -> Reply:
    """The reply with this text."""
    return Reply(content, meta={_PREFIX + key: value for key, value in metadata.items()} or None)


def failure(text: str, code: str) -> Reply:
    """The error reply with this text; any code but `invalid` makes it one that ends a batch."""
    return Reply(text, {"error": text, "is_error": True, "code": code}, is_error=True)


def result(reply: Reply) -> dict[str, Any]:
    """`reply` as `{"content", "is_error", "metadata"?}`."""
    found: dict[str, Any] = {"content": reply.text, "is_error": reply.is_error}
    meta = (reply.meta or {}).items()
    metadata = {key.removeprefix(_PREFIX): value for key, value in meta if key.startswith(_PREFIX)}
    return found | ({"metadata": metadata} if metadata else {})


def is_hard(reply: Reply) -> bool:
    """Whether the reply is an error that ends a batch: all but those about the arguments."""
    return reply.is_error and "code" in (reply.data or {}) and reply.data["code"] not in _SOFT  # type: ignore[index]


def call(registry: Registry, memory: Memory, name: str, arguments: Any) -> Reply:
    """As `Registry.call`; a tool there is not gives an error reply, with hooks and events as any call."""
    if name in registry.tools:
        return registry.call(memory, name, arguments)
    missing = failure(f"tool not found: {name}", "not_found")
    return registry.hooks.call(memory.agent, name, arguments, lambda _: missing)


def described(registry: Registry) -> list[dict[str, Any]]:
    """The tools of `registry` as `{"name", "description", "schema"}`."""
    return [
        {
            "name": tool.name,
            "description": tool.description,
            "schema": {
                "type": "object",
                "properties": tool.schema.get("properties", {}),
                "required": list(tool.schema.get("required", ())),
            },
        }
        for tool in registry.tools.values()
    ]
